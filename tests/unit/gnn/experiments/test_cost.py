"""The cost of honesty: lines, paired tests and outcomes."""

import functools
import math
import zlib

import pytest
from scipy import stats

from auditdp.report.numbers import MISSING
from gnn.experiments import cost, cost_text
from gnn.experiments.agreement import AGREES, DIFFERS, FEW
from gnn.experiments.catalogue.honesty import (
    ALL_LABELS,
    EXPERIMENTS,
    MAJORITY,
    PAPERS,
)
from gnn.experiments.cost import EXPLAINED
from gnn.experiments.grid import cells
from gnn.experiments.record import CellRecord
from gnn.experiments.summary import Measured, summary
from tests.unit.gnn.experiments.toy import LEDGER

(HONESTY,) = EXPERIMENTS


@functools.cache
def honesty_cells():
    return cells(HONESTY, profile="paper", root_seed=1)


def recorded(level, *, papers=tuple(PAPERS), seeds=5):
    """The summary of records with accuracy level(parameters), and a little jitter."""
    records = {}
    for cell in honesty_cells():
        given = cell.parameters
        if given["paper"] not in papers or cell.repetition >= seeds:
            continue
        row = f"{given['method']} {given['form']} {given['epsilon']}"
        jitter = 0.005 * math.sin(zlib.crc32(row.encode()) + cell.repetition)
        metrics = {"accuracy": level(given) + jitter}
        records[cell.key] = CellRecord.of(
            cell, device="cpu", seconds=1.0, metrics=metrics
        )
    return summary(HONESTY, records, root_seed=1)


def plain(given):
    """.4 without the data, .9 without privacy, .7 published and .6 repaired."""
    if given["epsilon"] == 0.0:
        return 0.4
    if given["epsilon"] == math.inf:
        return 0.9
    return 0.6 if given["form"] == "repaired" else 0.7


def of(paper, level, **arguments):
    return cost.lines(recorded(level, papers=(paper,), **arguments))


def test_a_line_compares_published_repaired_unused_and_clean_rows():
    found = of("GraphPub", plain) + of("DPRR", plain)
    assert len(found) == 2 * 2 + 3 * 2

    cora = next(line for line in found if (line.data, line.epsilon) == ("Cora", 8.0))
    assert (cora.method, cora.printed) == ("GraphPub", 0.8202)
    assert set(cora.unused) == {MAJORITY, "no edges"}
    assert set(cora.beside) == {ALL_LABELS}
    assert cora.clean is not None
    assert cora.cost.mean == pytest.approx(0.1, abs=0.01)
    assert cora.gain(cora.published).mean == pytest.approx(0.3, abs=0.01)

    repaired = [line.repaired is not None for line in found if line.paper == "DPRR"]
    assert repaired == [False, False, True, False]


def test_rows_are_compared_on_the_same_seeds_and_not_on_two():
    found = of("LPGNN", plain, seeds=2)
    assert {line.outcome for line in found} <= {FEW, ""}
    assert all(line.cost is None or line.cost.p is None for line in found)
    assert "cost of keeping the printed ε is open" in cost_text.sentence(found)

    line = of("GraphPub", plain)[0]
    first = line.published.measured["accuracy"]
    second = line.unused[MAJORITY].measured["accuracy"]
    for seeds in (range(5), (0, 2, 3)):
        fewer = Measured({seed: first.by_repetition[seed] for seed in seeds})
        others = [second.by_repetition[seed] for seed in seeds]
        expected = stats.ttest_rel(fewer.values, others).pvalue
        assert cost.paired(fewer, second).p == pytest.approx(expected)


@pytest.mark.parametrize(
    ("published", "all_labels", "outcome"),
    [
        (0.781, 0.9, AGREES),
        (0.60, 0.781, EXPLAINED),
        (0.765, 0.9, DIFFERS),
        (0.60, 0.85, DIFFERS),
        (0.60, 0.602, DIFFERS),
    ],
)
def test_a_number_agrees_within_two_sd_or_is_explained_by_a_reading_that_does(
    published, all_labels, outcome
):
    """GraphPub prints .7806 for Cora at ε = 1; the jitter has an sd below .005."""
    levels = {"GraphPub": published, ALL_LABELS: all_labels}
    line = of("GraphPub", lambda given: levels.get(given["method"], 0.4))[0]

    assert line.printed == 0.7806
    assert line.outcome == outcome


def test_the_words_of_a_paper_state_every_difference_and_no_fraction_of_one_row():
    found = of("DPRR", plain) + of("GraphPub", plain)
    texts = [cost_text.sentence(of(paper, plain)) for paper in ("DPRR", "GraphPub")]
    for paper in ("DPRR", "GraphPub"):
        texts += cost_text.details(paper, of(paper, plain))
    assert "(one row, p < 0.01)" in texts[0]
    assert "0.1 at ε = 1 (3 rows, p < 0.01)" in texts[1]
    assert not any("of 1 row" in text for text in texts)

    differing = [line for line in found if line.outcome == DIFFERS]
    named = [text for text in texts if "against the printed" in text]
    assert len(differing) == len(named) > 0


def test_no_table_has_a_column_without_an_entry():
    for paper in PAPERS:
        for columns, rows in cost_text.tables(of(paper, plain), LEDGER, seeds=5):
            assert len(columns) <= 9
            for place in range(len(columns)):
                assert any(row[place] != MISSING for row in rows)
