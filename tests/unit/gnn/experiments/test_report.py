"""The report of a small record: rows, numbers of the paper, audited budgets, tests, plots."""

from dataclasses import replace
from functools import partial

import pytest
from scipy import stats

from gnn.experiments.experiment import REPAIRED, Comparison, Guarantee, Metric
from gnn.experiments.grid import cells
from gnn.experiments.page import markdown
from gnn.experiments.privacy import Ledger, supported
from gnn.experiments.published import Published
from gnn.experiments.record import CellRecord
from gnn.experiments.sections import section
from gnn.experiments.summary import Measured, _test, summary
from tests.unit.gnn.experiments.toy import TOY

approx = pytest.approx

AUDIT = "audits/audit_edges.py::warner_rr"
LINE = {
    "row": "Warner RR",
    "reading": "as stated",
    "claim": "1-DP",
    "verdict": "CERTIFIED",
    "found": "ε = 1",
}
LEDGER = Ledger({AUDIT: LINE})


def accuracy(cell):
    """70 for ours, 5 less repaired, 62 for theirs, plus ±1 for the repetition, and ε."""
    base = {"ours": 70.0, "theirs": 62.0}[cell.parameters["method"]]
    repair = 5 * (cell.parameters["form"] == REPAIRED)
    return base - repair + (-1) ** cell.repetition + cell.parameters["epsilon"]


def made(profile="quick"):
    found = {}
    for cell in cells(TOY, profile=profile, root_seed=1):
        value = accuracy(cell)
        path = [[1, 1.0], [2, value]]
        metrics = {"accuracy": value, "path": path}
        found[cell.key] = CellRecord.of(
            cell, device="cpu", seconds=2.0, metrics=metrics
        )
    return found


def of_toy(records, **arguments):
    return summary(TOY, records, root_seed=1, **arguments)


def rows_of(method, records):
    return [row for row in of_toy(records).rows if row.parameters["method"] == method]


def values(row):
    return row.measured["accuracy"].values


# Rows


def test_rows_are_means_and_standard_deviations_beside_the_papers_numbers():
    found = of_toy(made())
    assert (found.profile, found.done, found.planned) == ("quick", 12, 12)

    ours, repaired, theirs = (row.measured["accuracy"] for row in found.rows[:3])
    assert (ours.mean, ours.sd) == (71.0, approx(2**0.5))
    assert (repaired.mean, theirs.mean) == (66.0, 63.0)
    assert ours.published == Published(61.5, "Table 7", 0.3)
    assert repaired.published is theirs.published is None
    assert found.rows[0].curves == {"path": [(1, 1.0), (2, 71.0)]}
    assert summary(TOY, made(), root_seed=2).rows == []


# Tests


def test_equal_differences_of_settings_have_no_p_value():
    (test,) = of_toy(made()).tests
    assert (test.difference, test.p_value) == (approx(8), None)


def test_settings_are_paired_and_tested_two_sidedly():
    records = made("paper")
    for key, record in records.items():
        given = record.parameters
        if given["epsilon"] == 2 and given["method"] == "theirs":
            records[key] = replace(record, metrics={"accuracy": 50.0})
            break

    (test,) = of_toy(records).tests
    assert test.how == "paired, 3 settings, each the mean of its repetitions"

    means = {}
    for method in ("ours", "theirs"):
        rows = rows_of(method, records)
        means[method] = [row.measured["accuracy"].mean for row in rows]
    expected = stats.ttest_rel(means["ours"][::2], means["theirs"]).pvalue

    assert test.p_value == approx(expected)


@pytest.mark.parametrize(
    ("common", "how", "reference"),
    [
        (
            False,
            "Welch's, 3 and 3 repetitions",
            partial(stats.ttest_ind, equal_var=False),
        ),
        (True, "paired, 3 repetitions of one setting", stats.ttest_rel),
    ],
    ids=["Welch", "paired"],
)
def test_a_single_setting_is_tested_on_its_repetitions(common, how, reference):
    records = made("paper")
    theirs = rows_of("theirs", records)[0]
    measured = {"accuracy": Measured({0: 3.0, 1: 4.0, 2: 8.0})}
    ours = replace(rows_of("ours", records)[0], measured=measured)
    comparison = Comparison("accuracy", "method", "ours", "theirs")
    found = _test([ours, theirs], comparison, common=common)

    assert found.how.startswith(how)
    assert found.p_value == approx(reference(values(ours), values(theirs)).pvalue)
    assert _test([ours], comparison, common=common).p_value is None


# Budgets


@pytest.mark.parametrize(
    ("epsilon", "options", "line", "expected"),
    [
        (1.0, {"audit": "x.py::y"}, "", "not audited: x.py::y is not in the ledger"),
        (1.0, {}, "", "ε = 1 (Warner RR, as stated: certified)"),
        (2.0, {}, "", "not audited at this ε (Warner RR, as stated: certified at"),
        (0.2, {"supports": 0.22599}, "", "ε ≤ 0.226 (Warner RR, as stated: certifie"),
        (1.0, {}, "1-DP NOT_REFUTED: 0.8 ≤ ε", "none (Warner RR, as stated: not refu"),
        (8.0, {"supports": 8.0}, "1-DP VIOLATED: 4.39 ≤ ε", "none at this ε, the cl"),
        (0.5, {"supports": 0.5}, "1-DP VIOLATED: 1,200.5 ≤ ε", "none at this ε, the"),
        (8.0, {"at_most": 10.161}, "4-DP VIOLATED: 4.39 ≤ ε", "ε ≤ 10.17, by a clo"),
        (4.0, {"at_most": 4.4}, "4-DP VIOLATED: 4.39 ≤ ε", "refuted (Warner RR"),
    ],
)
def test_the_budget_that_the_audits_support(epsilon, options, line, expected):
    guarantee = Guarantee(epsilon, **{"audit": AUDIT} | options)
    changes = {}
    if line:
        claim, found = line.split(": ")
        claim, verdict = claim.rsplit(maxsplit=1)
        changes = {"claim": claim, "verdict": verdict, "found": found}

    text = supported(guarantee, Ledger({AUDIT: LINE | changes}))
    assert text.startswith(expected)


def test_an_audit_of_the_pipeline_goes_before_a_certificate_of_its_accounting():
    changes = {"verdict": "VIOLATED", "found": "1.138 ≤ μ", "claim": "1-GDP"}
    both = Ledger({AUDIT: LINE, "pipeline": LINE | changes | {"row": "Its sampler"}})
    guarantee = Guarantee(1.0, AUDIT, supports=1.0, others=("pipeline",))
    text = supported(guarantee, both)

    assert text.startswith("none at this ε, the claim is refuted at another (Its samp")

    absent = supported(replace(guarantee, others=("absent",)), both)
    assert absent == "not audited: absent is not in the ledger"


# Pages and plots


def test_the_markdown_table():
    shown = section(of_toy(made()), LEDGER, [("a.svg", "a plot")])
    text = markdown([shown], root_seed=1, unrecorded=[TOY])
    expected = [
        "### A toy | with a bar",
        "In every row: epochs = 3.",
        "| 1 | ours | published | 71 ± 1.4 | 61.5 ± 0.3 | 2 | 1 | ε = 1 [1] |",
        "Audits: [1] ε = 1 (Warner RR, as stated: certified); "
        "[2] not audited at this ε (Warner RR, as stated: certified at 1-DP).",
        "| 1 | theirs | published | 63 ± 1.4 | – | 2 | 1 | not audited |",
        "![a plot](a.svg)",
        "- Figure 2: a curve (not stated in its text)",
        "- `toy`: A toy | with a bar (Nobody (2020), Table 7)",
    ]

    assert set(expected) <= set(text.splitlines())
    assert "| accuracy: ours against theirs | 8 | – | 0.003 (Table 7) |" in text
    assert "fewer than three, no test |" in text


def test_the_first_table_has_one_metric_and_the_second_has_the_others():
    """Two metrics, of which the second is printed: it comes first, and with its paper."""
    two = (Metric("epochs run"), Metric("accuracy", "%"))
    experiment = replace(
        TOY,
        metrics=two,
        plots=(),
        published=lambda given, metric: (
            TOY.published(given, metric) if metric == "accuracy" else None
        ),
    )
    records = made()
    for key, record in records.items():
        metrics = {"accuracy": record.metrics["accuracy"], "epochs run": 7.0}
        records[key] = replace(record, metrics=metrics)
    found = section(summary(experiment, records, root_seed=1), LEDGER, [])

    setting = ["epsilon", "method", "form"]
    columns = [*setting, "accuracy (%)", "paper", "runs", "printed ε", "audits"]
    assert found.table[0] == columns
    assert found.others[0] == [*setting, "epochs run"]
    assert found.others[1][0][-1] == "7 ± 0"
