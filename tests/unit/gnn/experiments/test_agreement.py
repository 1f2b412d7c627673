"""An answer to each printed table and figure."""

import json
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest

from gnn.experiments.agreement import (
    AGREES,
    BY_CHANCE,
    CONFIRMED,
    DIFFERS,
    FEW,
    NO_SETTING,
    NOT_RUN,
    OPEN,
    PLANNED,
    REVERSED,
    answer,
    answers,
)
from gnn.experiments.agreement_json import as_json
from gnn.experiments.agreement_text import sentence, verdict
from gnn.experiments.catalogue import catalogue
from gnn.experiments.cli import SEED
from gnn.experiments.experiment import PUBLISHED, REPAIRED, Experiment, Factor, Metric
from gnn.experiments.grid import cells, plain, settings
from gnn.experiments.published import Ordering, Printed, Published
from gnn.experiments.published.papers import PAPERS, Paper
from gnn.experiments.record import CellRecord, read, record_path
from gnn.experiments.summary import summary
from tests.unit.gnn.experiments.toy import ROOT

ALL = catalogue().experiments
EVERY = [(paper.name, printed) for paper in PAPERS for printed in paper.printed]
METHODS = ("ours", "theirs", "another")
NUMBERS = {
    (method, epsilon): Published(0.5, "Table 1", cell=(method, f"ε = {epsilon:g}"))
    for method in METHODS
    for epsilon in (1.0, 2.0, 4.0)
}


def printed_number(parameters, metric):
    return NUMBERS.get((parameters["method"], parameters["epsilon"]))


SMALL = Experiment(
    name="small",
    title="Small",
    source="Nobody (2020), Table 1",
    factors=(
        Factor("method", METHODS[:2]),
        Factor("epsilon", (1.0, 2.0)),
        Factor("epochs", (200,), quick=(3,)),
    ),
    metrics=(Metric("accuracy"),),
    cell=lambda *_: {},
    repetitions={"quick": 1, "paper": 3},
    repaired=lambda parameters: parameters["method"] == "ours",
    common=("method",),
    published=printed_number,
)
ORDER = Ordering("ours is better", "small", "accuracy", "method", "ours", "theirs")
TABLE = Printed(
    "Table 1",
    "accuracy",
    ("small",),
    tuple(NUMBERS.values()),
    (ORDER,),
    {"another, ε = 4": "its data is not here"},
)


def recorded(values, experiment=SMALL, profile="paper"):
    """The summary of runs with these accuracies by (method, ε); one value more for the repaired form."""
    records = {}
    for cell in cells(experiment, profile=profile, root_seed=1):
        given = cell.parameters
        mine = values.get((given["method"], given["epsilon"]), ())
        if cell.repetition < len(mine):
            metrics = {"accuracy": mine[cell.repetition]}
            if given["form"] == REPAIRED:
                metrics = {"accuracy": 0.5}
            records[cell.key] = CellRecord.of(
                cell, device="cpu", seconds=1.0, metrics=metrics
            )
    return {experiment.name: summary(experiment, records, root_seed=1)}


def outcomes(found):
    return {cell.printed.cell: cell.outcome for cell in found.cells}


# Numbers


@pytest.mark.parametrize(
    ("ours", "outcome"),
    [
        ((0.50, 0.52, 0.54), AGREES),  # mean .52, sd .02: one sd
        ((0.53, 0.54, 0.55), DIFFERS),  # mean .54, sd .01: four sd
        ((0.46, 0.47, 0.48), DIFFERS),
        ((0.499, 0.499, 0.499), DIFFERS),  # closer than .02, and never .5
        ((0.5, 0.5), FEW),
        ((), NOT_RUN),
    ],
)
def test_a_printed_number_agrees_within_two_sd_of_at_least_three_runs(ours, outcome):
    found = answer(TABLE, recorded({("ours", 1.0): ours}))
    assert outcomes(found)["ours", "ε = 1"] == outcome


def test_cells_that_are_not_run_have_their_reason():
    found = answer(TABLE, recorded({("ours", 1.0): (0.5, 0.51, 0.52)}))
    because = {cell.printed.cell: cell.because for cell in found.cells}
    assert because["ours", "ε = 1"] == ""
    assert because["ours", "ε = 2"] == PLANNED
    assert because["another", "ε = 1"] == NO_SETTING
    assert because["another", "ε = 4"] == "its data is not here"
    assert sentence(found).startswith(
        "1 of 9 cells are within 2 sd of ours and 8 are not run: 3 because they are "
    )


def test_the_repaired_form_and_the_quick_profile_are_no_printed_number():
    quick = replace(SMALL, repetitions={"quick": 3, "paper": 5})
    found = answer(TABLE, recorded({("ours", 1.0): (0.5, 0.51, 0.52)}, quick, "quick"))
    assert set(outcomes(found).values()) == {NOT_RUN}
    assert (found.recorded, found.planned, found.quick) == (0, 20, 3)


def test_the_first_experiment_with_enough_runs_counts():
    other = replace(SMALL, name="other")
    printed = replace(TABLE, experiments=("small", "other"))
    two, three = (0.5, 0.51), (0.7, 0.71, 0.72)
    for first, second, chosen in ((two, three, "other"), (three, three, "small")):
        contents = recorded({("ours", 1.0): first})
        contents |= recorded({("ours", 1.0): second}, other)
        cell = answer(printed, contents).cells[0]
        assert (cell.experiment, cell.outcome) == (chosen, DIFFERS)


def test_a_count_agrees_if_it_is_equal_at_the_printed_digits():
    printed = replace(TABLE, exact=True)
    for value, outcome in ((0.5, AGREES), (0.54, AGREES), (0.56, DIFFERS)):
        found = answer(printed, recorded({("ours", 1.0): (value,)}))
        assert outcomes(found)["ours", "ε = 1"] == outcome


# Stated orders


@pytest.mark.parametrize(
    ("ours", "theirs", "outcome"),
    [
        ((0.6, 0.7, 0.8), (0.5, 0.59, 0.71), CONFIRMED),  # paired: .1, .11, .09
        ((0.5, 0.59, 0.71), (0.6, 0.7, 0.8), REVERSED),
        ((0.6, 0.7, 0.8), (0.5, 0.9, 0.6), OPEN),
        ((0.6, 0.7), (0.5, 0.6), FEW),
        ((0.6, 0.7, 0.8), (), NOT_RUN),
    ],
)
def test_an_order_is_tested_at_each_setting_on_common_draws(ours, theirs, outcome):
    values = {("ours", 1.0): ours, ("theirs", 1.0): theirs}
    found = answer(TABLE, recorded(values)).contrasts
    assert [(each.setting["epsilon"], each.outcome) for each in found] == [
        (1.0, outcome),
        (2.0, NOT_RUN),
    ]
    assert all(each.setting["form"] == PUBLISHED for each in found)


def test_an_order_without_common_draws_has_the_spread_of_both():
    apart = replace(SMALL, common=())
    values = {("ours", 1.0): (0.6, 0.7, 0.8), ("theirs", 1.0): (0.5, 0.6, 0.7)}
    first = answer(TABLE, recorded(values, apart)).contrasts[0]
    assert first.difference == pytest.approx(0.1)
    assert first.sd == pytest.approx(0.02**0.5)
    assert first.outcome == OPEN


def test_the_probability_that_equal_means_pass_by_chance():
    """20,000 triples of normal differences; the limits are five standard deviations."""
    differences = np.random.default_rng(1).normal(size=(20_000, 3))
    sd = differences.std(axis=1, ddof=1)
    found = (abs(differences.mean(axis=1)) > 2 * sd).mean()
    assert found == pytest.approx(BY_CHANCE, abs=5 * 0.00186)


# All that the papers print


def test_every_table_and_figure_of_the_papers_is_listed():
    """Numbered floats of the papers' texts; LPGNN's are slides without numbers."""
    places = {paper.name: [each.place for each in paper.printed] for paper in PAPERS}
    expected = {
        "DPRR": [*_figures(9), "Table I", "Table II", "Table III"],
        "GraphPub": [
            *("Figure 1", "Figure 2a", "Figure 2b", "Figure 2c", "Figure 2d"),
            *("Figure 3", "Table 1", "Table 2", "Table 3", "Table 4"),
        ],
        "HeteroRR": [*_figures(11), "Section V, text"],
        "DPAR": [*_figures(12), "Table 1", "Table 2"],
    }
    for name, wanted in expected.items():
        assert sorted(places[name]) == sorted(wanted)
    assert len(places["LPGNN"]) == 6


def _figures(last):
    return [f"Figure {number}" for number in range(1, last + 1)]


@pytest.mark.parametrize(
    ("name", "place", "numbers"),
    [
        ("DPRR", "Table III", 18),
        ("LPGNN", "Table of ad-hoc features", 16),
        ("LPGNN", "Table of learning algorithms", 27),
        ("GraphPub", "Table 1", 11),
        ("GraphPub", "Table 2", 3 * 3 * 4 * 8),
        ("GraphPub", "Table 3", 12),
        ("GraphPub", "Table 4", 4),
        ("DPAR", "Table 1", 5 * (2 * 6 + 3)),
        ("DPAR", "Table 2", 20),
    ],
)
def test_a_table_has_as_many_cells_as_it_prints(name, place, numbers):
    (found,) = (p for paper, p in EVERY if (paper, p.place) == (name, place))
    assert len(found.cells) == len({cell.cell for cell in found.cells}) == numbers


@pytest.mark.parametrize(
    "printed", [each for _, each in EVERY], ids=[f"{n} {p.place}" for n, p in EVERY]
)
def test_its_experiments_have_its_cells_its_factors_and_the_values_of_its_orders(
    printed,
):
    """A name that no experiment has would leave a cell or an order without an answer, in silence."""
    cells_of = {cell.cell for cell in printed.cells}
    known = [
        number
        for name in printed.experiments
        for setting in settings(ALL[name], "paper")
        for metric in ALL[name].metrics
        if (number := ALL[name].published(setting, metric.name))
    ]
    here = [
        n for n in known if n.source.casefold().startswith(printed.place.casefold())
    ]
    assert {number.cell for number in here} <= cells_of
    assert here or not printed.cells or printed.reason or printed.remark
    assert printed.experiments or printed.reason
    for key in printed.lacking:
        assert any(set(key.split(", ")) <= set(cell.cell) for cell in printed.cells)
    for order in printed.orderings:
        experiment = ALL[order.experiment]
        assert order.metric in {metric.name for metric in experiment.metrics}
        for name, value in {**order.where, **printed.where}.items():
            assert plain(value) in _values(experiment, name)
        for value in (order.higher, order.lower):
            assert plain(value) in _values(experiment, order.factor)


def _values(experiment, name):
    return {plain(setting[name]) for setting in settings(experiment, "paper")}


def test_every_answer_is_a_sentence_and_counts_its_cells_in_json():
    empty = {name: summary(each, {}, root_seed=1) for name, each in ALL.items()}
    found = {paper.name: (paper, answers(paper, empty)) for paper in PAPERS}
    whole = json.loads(as_json(found, 1))
    assert [paper["name"] for paper in whole["papers"]] == list(found)
    for paper in whole["papers"]:
        for each in paper["printed"]:
            assert each["sentence"].endswith(".")
            counted = Counter(cell["outcome"] for cell in each["each_cell"])
            assert each["cells"] == counted
            assert set(counted) <= {NOT_RUN}
            reasons = {cell["because"] for cell in each["each_cell"]}
            assert not reasons & {"", NO_SETTING}


def test_the_sentence_of_a_paper_counts_results_and_leaves_counts_of_data_out():
    values = {("ours", 1.0): (0.5, 0.51, 0.52), ("ours", 2.0): (0.7, 0.71, 0.72)}
    contents = recorded(values)
    exact = replace(TABLE, exact=True, orderings=())
    found = answers(Paper("P", "", (TABLE, exact)), contents)
    assert verdict(found) == (
        "1 of 9 printed results are within 2 sd of ours, 1 is not and 7 are open. "
        "Of 2 stated comparisons, 2 are open."
    )


def test_no_table_of_the_report_has_thirteen_columns():
    text = (ROOT / "reports" / "experiments.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) > 100
    assert max(len(row.replace("\\|", "").split(" | ")) for row in rows) < 13


def test_the_tracked_answers_are_those_of_the_tracked_records():
    """If this fails: ``python -m gnn.experiments report``."""
    reports = ROOT / "reports"
    contents = {
        name: summary(each, read(record_path(reports, name)), root_seed=SEED)
        for name, each in ALL.items()
    }
    found = {paper.name: (paper, answers(paper, contents)) for paper in PAPERS}
    tracked = (reports / "experiments.json").read_text(encoding="utf-8")
    assert _sentences(tracked) == _sentences(as_json(found, SEED))


def _sentences(text):
    papers = json.loads(text)["papers"]
    return [
        (paper["sentence"], [each["sentence"] for each in paper["printed"]])
        for paper in papers
    ]


def test_graph_pubs_attack_finds_more_than_features_tell():
    """The remark on Table 3 is true of every recorded run."""
    found = defaultdict(dict)
    for cell in read(record_path(ROOT / "reports", "graph-pub-attack")).values():
        if cell.parameters["form"] == PUBLISHED:
            run = cell.parameters["data"], cell.repetition
            found[run][cell.parameters["method"]] = cell.metrics["AUC (A)"]
    assert len(found) == 9
    for methods in found.values():
        assert methods["GraphPub"] > methods["no edges"] + 0.03


def test_graph_pubs_accuracy_by_who_constructs_l():
    """The remark on Figure 3 is true of the means of the recorded runs."""
    found = defaultdict(list)
    cells = read(record_path(ROOT / "reports", "graph-pub-constructors")).values()
    for cell in cells:
        name, epsilon = cell.parameters["constructor"], cell.parameters["epsilon"]
        found[name, epsilon].append(cell.metrics["accuracy"])
    means = {key: sum(values) / len(values) for key, values in found.items()}
    assert len(cells) == 36
    for epsilon in (2, 1):
        assert round(means["GAT", epsilon], 2) == 0.45
        assert 0.76 <= round(means["GCN", epsilon], 2) <= 0.79
        assert 0.76 <= round(means["GraphSAGE", epsilon], 2) <= 0.79
    for epsilon in (20, 8):
        alike = [means[name, epsilon] for name in ("GCN", "GAT", "GraphSAGE")]
        assert max(alike) - min(alike) < 0.01
