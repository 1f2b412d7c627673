"""The report of a small made record: rows, the paper's numbers, audited budgets, t-tests, plots."""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from scipy import stats

from auditdp.errors import ConfigurationError
from gnn.experiments.experiment import LARGEST, REPAIRED, Comparison, Guarantee, Metric
from gnn.experiments.grid import cells
from gnn.experiments.page import html, markdown, mean_and_sd, section
from gnn.experiments.plots import draw
from gnn.experiments.privacy import Ledger, printed, supported
from gnn.experiments.published import Published
from gnn.experiments.record import CellRecord
from gnn.experiments.summary import Measured, _test, summary
from tests.unit.gnn.experiments.toy import TOY

LINE = {
    "row": "Warner RR",
    "reading": "as stated",
    "claim": "1-DP",
    "verdict": "CERTIFIED",
    "found": "ε = 1",
}
AUDIT = "audits/audit_edges.py::warner_rr"
LEDGER = Ledger({AUDIT: LINE})


def accuracy(cell):
    """70 for ours, 5 less repaired, 62 for theirs; ±1 between the two repetitions, and ε on top."""
    base = {"ours": 70.0, "theirs": 62.0}[cell.parameters["method"]] - 5 * (
        cell.parameters["form"] == REPAIRED
    )
    return base + (-1) ** cell.repetition + cell.parameters["epsilon"]


def made(profile="quick", **changes):
    """The records of a whole profile."""
    return {
        cell.key: CellRecord.of(
            cell,
            device="cpu",
            seconds=2.0,
            revision="abc",
            environment="Python 3",
            metrics={
                "accuracy": accuracy(cell),
                "path": [[1, 1.0], [2, accuracy(cell)]],
            },
            **changes,
        )
        for cell in cells(TOY, profile=profile, root_seed=1)
    }


def of_toy(records, **arguments):
    return summary(TOY, records, root_seed=1, **arguments)


# Rows


def test_rows_are_means_and_standard_deviations_beside_the_papers_numbers():
    found = of_toy(made())
    assert (found.profile, found.done, found.planned, found.seconds) == (
        "quick",
        12,
        12,
        24.0,
    )
    assert [
        (r.parameters["epsilon"], r.parameters["method"], r.parameters["form"])
        for r in found.rows[:3]
    ] == [
        (1.0, "ours", "published"),
        (1.0, "ours", "repaired"),
        (1.0, "theirs", "published"),
    ]
    ours, repaired, theirs = (row.measured["accuracy"] for row in found.rows[:3])
    assert (ours.mean, ours.sd) == (71.0, pytest.approx(2**0.5))
    assert ours.published == Published(61.5, "Table 7", 0.3)
    assert (repaired.mean, repaired.published, theirs.published) == (66.0, None, None)
    assert found.rows[0].curves == {"path": [(1, 1.0), (2, 71.0)]}


def test_other_root_seeds_and_versions_do_not_count():
    assert summary(TOY, made(), root_seed=2).rows == []
    assert of_toy({}).rows == []


def test_the_profile_with_more_records_is_reported_unless_one_is_asked_for():
    both = made() | made("paper")
    assert of_toy(both).profile == "paper"
    assert of_toy(both, profile="quick").planned == 12
    assert of_toy(made(), profile="paper").rows == []


def test_a_failure_is_named_and_not_averaged():
    records = made()
    cell = cells(TOY, profile="quick", root_seed=1)[0]
    records[cell.key] = CellRecord.of(
        cell, device="cpu", seconds=1.0, error="ValueError: lost", traceback="..."
    )
    found = of_toy(records)
    assert (found.done, found.rows[0].repetitions) == (11, 1)
    assert found.rows[0].measured["accuracy"].values == [70.0]
    shown = section(found, LEDGER, [])
    assert shown.failures == [
        "epsilon = 1, method = ours, epochs = 3, form = published, repetition 0: ValueError: lost"
    ]
    assert "1 cell failed" in html([shown], root_seed=1, unrecorded=[])
    assert "- epsilon = 1, method = ours" in markdown(
        [shown], root_seed=1, unrecorded=[]
    )


def test_numbers_as_they_are_shown():
    assert mean_and_sd(Measured({0: 71.5, 1: 72.5})) == "72 ± 0.71"
    assert mean_and_sd(Measured({0: 71.5})) == "71.5"
    assert mean_and_sd(None) == "–"


# t-tests


def test_settings_are_paired_and_tested_two_sidedly():
    """Ours − theirs is 8 at either ε, without variation: no p. With one value moved, scipy's paired test gives it."""
    (test,) = of_toy(made()).tests
    assert (test.difference, test.p_value) == (pytest.approx(8), None)
    records = made("paper")
    moved = next(
        k
        for k, r in records.items()
        if r.parameters["epsilon"] == 2 and r.parameters["method"] == "theirs"
    )
    records[moved] = CellRecord(
        **records[moved].__dict__ | {"metrics": {"accuracy": 50.0}}
    )
    (test,) = of_toy(records).tests
    ours = [
        row.measured["accuracy"].mean
        for row in of_toy(records).rows
        if row.parameters["method"] == "ours"
    ]
    theirs = [
        row.measured["accuracy"].mean
        for row in of_toy(records).rows
        if row.parameters["method"] == "theirs"
    ]
    assert test.p_value == pytest.approx(stats.ttest_rel(ours[::2], theirs).pvalue)
    assert test.how == "paired, 3 settings, each the mean of its repetitions"


def test_a_single_setting_is_tested_on_its_repetitions():
    rows = [row for row in of_toy(made("paper")).rows if row.parameters["epsilon"] == 1]
    comparison = Comparison("accuracy", "method", "ours", "theirs")
    welch = _test(rows, comparison, common=False)
    values = [
        next(r for r in rows if r.parameters["method"] == m).measured["accuracy"].values
        for m in ("ours", "theirs")
    ]
    assert welch.p_value == pytest.approx(
        stats.ttest_ind(*values, equal_var=False).pvalue
    )
    assert welch.how == "Welch's, 3 and 3 repetitions of one setting"
    paired = _test(rows, comparison, common=True)
    assert (paired.difference, paired.p_value) == (
        pytest.approx(8),
        None,
    )  # the same in every repetition
    moved = {0: 3.0, 1: 4.0, 2: 8.0}
    found = _test(
        [
            replace(row, measured={"accuracy": Measured(moved)})
            if row is rows[0]
            else row
            for row in rows
        ],
        comparison,
        common=True,
    )
    assert found.p_value == pytest.approx(
        stats.ttest_rel(list(moved.values()), values[1]).pvalue
    )
    assert paired.how == "paired, 3 repetitions of one setting"


def test_nothing_is_tested_where_a_side_is_missing():
    rows = [row for row in of_toy(made()).rows if row.parameters["method"] == "ours"]
    assert _test(rows, TOY.comparisons[0], common=False).p_value is None


# Budgets


@pytest.mark.parametrize(
    ("guarantee", "line", "expected"),
    [
        (Guarantee(None, AUDIT), {}, "no claim"),
        (Guarantee(1.0), {}, "not audited"),
        (
            Guarantee(1.0, "audits/x.py::y"),
            {},
            "not audited: audits/x.py::y is not in the ledger",
        ),
        (Guarantee(1.0, AUDIT), {}, "ε = 1 (Warner RR, as stated: certified)"),
        (
            Guarantee(2.0, AUDIT),
            {},
            "not audited at this ε (Warner RR, as stated: certified at 1-DP)",
        ),
        (
            Guarantee(2.0, AUDIT, supports=2.26),
            {},
            "ε ≤ 2.26 (Warner RR, as stated: certified, there at 1-DP)",
        ),
        (
            Guarantee(1.0, AUDIT, supports=1.0),
            {"verdict": "VIOLATED", "found": "ε = ∞"},
            "refuted (Warner RR, as stated: violated at 1-DP, ε = ∞)",
        ),
        (
            Guarantee(8.0, AUDIT, supports=8.0),
            {"verdict": "VIOLATED", "found": "27.17 ≤ ε"},
            "refuted (Warner RR, as stated: violated at 1-DP, 27.17 ≤ ε)",
        ),
        (
            Guarantee(8.0, AUDIT, supports=8.0),
            {"verdict": "VIOLATED", "found": "4.39 ≤ ε"},
            "none at this ε, the claim is refuted at another (Warner RR, as stated: violated at 1-DP, 4.39 ≤ ε)",
        ),
        (
            Guarantee(8.0, AUDIT, at_most=10.161),
            {"verdict": "VIOLATED", "claim": "4-DP", "found": "4.39 ≤ ε"},
            "ε ≤ 10.17, by a closed form, and not the printed one (Warner RR, as stated: violated at 4-DP, 4.39 ≤ ε)",
        ),
        (
            Guarantee(4.0, AUDIT, at_most=4.4),
            {"verdict": "VIOLATED", "claim": "4-DP", "found": "4.39 ≤ ε"},
            "refuted (Warner RR, as stated: violated at 4-DP, 4.39 ≤ ε)",
        ),
        (
            Guarantee(0.5, AUDIT, supports=0.5),
            {"verdict": "VIOLATED", "found": "1,200.5 ≤ ε"},
            "none at this ε, the claim is refuted at another (Warner RR, as stated: violated at 1-DP, 1,200.5 ≤ ε)",
        ),
        (
            Guarantee(1.0, AUDIT),
            {"verdict": "NOT_REFUTED", "found": "0.8 ≤ ε"},
            "none (Warner RR, as stated: not refuted at 1-DP)",
        ),
        (
            Guarantee(8.0, AUDIT),
            {"claim": "(8, 0.002)-DP", "found": "ε = 4.6"},
            "ε = 4.6 (Warner RR, as stated: certified)",
        ),
    ],
)
def test_what_the_audits_support(guarantee, line, expected):
    assert supported(guarantee, Ledger({AUDIT: LINE | line})) == expected


def test_an_audit_of_the_pipeline_goes_before_a_certificate_of_its_accounting():
    pipeline = LINE | {
        "row": "Its sampler",
        "verdict": "VIOLATED",
        "found": "1.138 ≤ μ",
        "claim": "1-GDP",
    }
    both = Ledger({AUDIT: LINE, "pipeline": pipeline})
    found = supported(Guarantee(1.0, AUDIT, supports=1.0, others=("pipeline",)), both)
    assert (
        found
        == "none at this ε, the claim is refuted at another (Its sampler, as stated: violated at 1-GDP, 1.138 ≤ μ)"
    )
    assert (
        supported(Guarantee(1.0, AUDIT, others=("absent",)), both)
        == "not audited: absent is not in the ledger"
    )


def test_a_supported_budget_is_rounded_up_and_a_printed_one_shown_as_it_is():
    assert supported(Guarantee(0.2, AUDIT, supports=0.22599), LEDGER).startswith(
        "ε ≤ 0.226 "
    )
    assert printed(Guarantee(0.2)) == "0.2"
    assert printed(Guarantee(float("inf"))) == "∞"
    assert printed(Guarantee(None)) == "no claim"


def test_a_ledger_is_read_from_its_file(tmp_path):
    path = tmp_path / "claims.json"
    assert Ledger.read(path).lines == {}
    path.write_text(json.dumps({"claims": [LINE | {"audit": AUDIT}]}))
    assert Ledger.read(path).lines[AUDIT]["found"] == "ε = 1"
    path.write_text("[]")
    with pytest.raises(ConfigurationError, match="no ledger of claims"):
        Ledger.read(path)


# Pages and plots


def test_the_markdown_table():
    text = markdown(
        [section(of_toy(made()), LEDGER, [("a.svg", "a plot")])],
        root_seed=1,
        unrecorded=[TOY],
    )
    lines = text.splitlines()
    assert "## A toy | with a bar" in lines
    assert "In every row: epochs = 3." in lines
    assert (
        "| epsilon | method | form | accuracy (%) | paper | runs | printed ε | what the audits say of it |"
        in lines
    )
    assert (
        "| 1 | ours | published | 71 ± 1.4 | 61.5 ± 0.3 | 2 | 1 | ε = 1 (Warner RR, as stated: certified) |"
        in lines
    )
    assert "| 1 | theirs | published | 63 ± 1.4 | – | 2 | 1 | not audited |" in lines
    assert (
        "| accuracy: ours against theirs | 8 | – | 0.003 (Table 7) | paired, 2 settings, each the mean of its repetitions: "
        "fewer than three, no test |" in lines
    )
    assert "![a plot](a.svg)" in lines
    assert "- Figure 2: a curve (not stated in its text)" in lines
    assert "- `toy`: A toy | with a bar (Nobody (2020), Table 7)" in lines


def test_the_page_is_whole_light_and_escaped():
    records = made()
    cell = cells(TOY, profile="quick", root_seed=1)[0]
    records[cell.key] = CellRecord.of(
        cell, device="cpu", seconds=1.0, error="ValueError: <script>", traceback=""
    )
    page = html(
        [section(of_toy(records), LEDGER, [("a.svg", "a plot")])],
        root_seed=1,
        unrecorded=[TOY],
    )
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert '<a href="a.svg">a plot</a>' in page
    body = page[page.index("<body>") : page.index("</html>")]
    ElementTree.fromstring(body)  # every element is closed
    assert len(page) < 60_000


def test_a_plot_of_one_point_is_not_drawn_and_an_old_one_goes(tmp_path):
    (tmp_path / "toy-9.svg").write_text("old")
    records = {
        key: record
        for key, record in made().items()
        if record.parameters["epsilon"] == 1
    }
    assert [caption for _, caption in draw(of_toy(records), folder=tmp_path)] == [
        "path against epoch: epsilon 1"
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["toy-1.svg"]


def test_a_constant_predictor_is_called_so_where_its_accuracy_stands():
    shares = iter([1.0, 1.0, 1.0, 0.5] + [0.5] * 8)
    experiment = replace(TOY, metrics=(*TOY.metrics, Metric(LARGEST)))
    records = {
        key: replace(record, metrics={**record.metrics, LARGEST: share})
        for (key, record), share in zip(
            sorted(made().items(), key=lambda each: order(each[1])), shares, strict=True
        )
    }
    shown = section(summary(experiment, records, root_seed=1), LEDGER, [])
    assert LARGEST not in shown.columns
    accuracies = [row[shown.columns.index("accuracy (%)")] for row in shown.rows]
    assert accuracies[0].endswith(", constant predictor")
    assert accuracies[1].endswith(", constant predictor in 1 of 2")
    assert not any("constant" in text for text in accuracies[2:])


def order(record):
    return (
        record.parameters["epsilon"],
        record.parameters["method"],
        record.parameters["form"],
        record.repetition,
    )


def test_plots_are_what_matplotlib_writes_and_the_same_each_time(tmp_path):
    first, second = (
        draw(of_toy(made()), folder=tmp_path / name) for name in ("a", "b")
    )
    assert [caption for _, caption in first] == [
        "accuracy (%) against epsilon",
        "path against epoch: epsilon 1",
        "path against epoch: epsilon 2",
    ]
    assert first == second
    for name, _ in first:
        content = (tmp_path / "a" / name).read_bytes()
        assert content == (tmp_path / "b" / name).read_bytes()
        ElementTree.fromstring(content)
    legend = (tmp_path / "a" / "toy-1.svg").read_text()
    assert all(
        f">{text}<" in legend
        for text in ("ours", "ours, repaired", "ours, paper", "theirs")
    )


def test_the_command_writes_both_reports(command):
    command("run", "toy", "--out", "out", "--seed", 1)
    code, out, _ = command("report", "--out", "out", "--seed", 1)
    assert code == 0
    assert "1 experiment" in out
    assert {path.name for path in Path("out/experiments").iterdir()} == {
        "toy.jsonl",
        "toy-1.svg",
        "toy-2.svg",
        "toy-3.svg",
    }
    assert 'href="experiments/toy-1.svg"' in Path("out/experiments.html").read_text()
    written = Path("out/experiments.md").read_text()
    assert "- `broken`: One method fails" in written
    assert f"{AUDIT} is not in the ledger" in written
