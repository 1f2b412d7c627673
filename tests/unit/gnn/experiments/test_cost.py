"""The cost of honesty: lines, paired tests and outcomes."""

import functools
import math
import zlib

import pytest
from scipy import stats

from gnn.experiments import cost, cost_text
from gnn.experiments.catalogue.honesty import (
    ALL_LABELS,
    EXPERIMENTS,
    MAJORITY,
    PAPERS,
)
from gnn.experiments.grid import cells
from gnn.experiments.record import CellRecord
from gnn.experiments.summary import Measured, summary

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
    assert {line.outcome for line in found} <= {"too few seeds", ""}
    assert all(line.cost is None or line.cost.p is None for line in found)
    assert "what the repair costs is open" in cost_text.sentence(found)

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
        (0.78, 0.9, "agrees"),
        (0.60, 0.79, "explained"),
        (0.60, 0.85, "unexplained"),
        (0.60, 0.62, "unexplained"),
    ],
)
def test_a_number_agrees_or_is_explained_by_a_reading_that_reaches_it(
    published, all_labels, outcome
):
    """GraphPub prints .7806 for Cora at ε = 1."""
    levels = {"GraphPub": published, ALL_LABELS: all_labels}
    line = of("GraphPub", lambda given: levels.get(given["method"], 0.4))[0]

    assert line.printed == 0.7806
    assert line.outcome == outcome
