"""The command line: cells that run, their records, and bad input."""

import json
from pathlib import Path

import pytest
from markupsafe import escape

from auditdp.errors import ConfigurationError
from gnn.experiments.execute import attempt
from gnn.experiments.grid import cells
from gnn.experiments.record import CellRecord, Recorder, read
from tests.unit.gnn.experiments.toy import TOY

FOLDER = Path("out/experiments")
RECORD = FOLDER / "toy.jsonl"


def lines(path=RECORD):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_run_records_every_cell_with_its_seed(command):
    code, _, err = command("run", "toy", "--out", "out", "--seed", 5)
    assert code == 0
    assert "12/12 toy epsilon=2, method=theirs" in err
    assert len(lines()) == 12

    first = lines()[0]
    parameters = {"epsilon": 1, "method": "ours", "epochs": 3, "form": "published"}

    assert first["parameters"] == parameters
    assert (first["root_seed"], first["repetition"]) == (5, 0)
    assert first["metrics"]["accuracy"] == 61 + first["seed"] / 2**63


def test_recorded_cells_are_not_run_again_even_after_a_line_was_cut_short(command):
    command("run", "toy", "--out", "out", "--only", "method=theirs")
    before = RECORD.read_bytes()
    _, _, err = command("run", "toy", "--out", "out")

    assert "4 of 12 cells recorded, 8 to run" in err

    whole = RECORD.read_bytes()
    assert whole.startswith(before)

    RECORD.write_bytes(whole[:-20])
    assert len(read(RECORD)) == 11

    _, _, err = command("run", "toy", "--out", "out")
    assert "11 of 12 cells recorded, 1 to run" in err
    assert len(lines()) == 12


@pytest.mark.full
def test_records_are_the_same_for_any_number_of_processes(command):
    found = []
    for workers in (1, 2):
        folder = f"out-{workers}"
        only = ("--only", "epsilon=1", "-n", workers)
        command("run", "toy", "--out", folder, *only)
        written = lines(Path(folder, "experiments/toy.jsonl"))
        metrics = {line["key"]: (line["seed"], line["metrics"]) for line in written}
        found.append(metrics)
    assert found[0] == found[1]


def test_a_failing_cell_is_recorded_and_tried_again_and_the_others_go_on(command):
    error = "ValueError: no convergence <here>"
    code, _, err = command("run", "broken", "--out", "out")

    assert code == 3
    assert f"FAILED {error}" in err

    found = lines(FOLDER / "broken.jsonl")
    assert [line["error"] for line in found] == ["", "", error]
    assert "in cell" in found[2]["traceback"]

    code, _, err = command("run", "broken", "--out", "out")
    assert code == 3
    assert "2 of 3 cells recorded, 1 to run" in err


def test_metrics_that_cannot_be_recorded_are_an_error():
    cell = cells(TOY, profile="quick", root_seed=1)[0]
    found = attempt(lambda *_: {"m": float("nan")}, cell, "cpu", ["m"])
    assert "metric 'm' = nan" in found["error"]


def test_two_runs_do_not_write_one_file(tmp_path):
    path = tmp_path / "toy.jsonl"
    cell = cells(TOY, profile="quick", root_seed=1)[0]
    record = CellRecord.of(cell, device="cpu", seconds=1.5, metrics={"accuracy": 0.25})
    with Recorder(path) as recorder:
        with pytest.raises(ConfigurationError, match="another run is writing"):
            Recorder(path)
        recorder.add(record)

    assert read(path) == {cell.key: record}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("run tou", "did you mean 'toy'?; absent: needs torch"),
        ("run toy --profile papers", "did you mean 'paper'?"),
        ("run toy -n 0", "-n 0: expected a number >= 1, or auto"),
        ("run toy --out out", "toy.jsonl, line 1 is no record of a cell"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(command, arguments, message):

    FOLDER.mkdir(parents=True)
    RECORD.write_text('{"key": "k"}\n')
    code, out, err = command(*arguments.split())

    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
    assert err.count("\n") == 1


def test_the_report_is_a_page_a_text_and_the_answers(command):
    assert command("run", "toy", "-n", "1")[0] == 0
    code, out, _ = command("report")
    assert (code, out.strip()[-12:]) == (0, "1 experiment")

    page, text, answers = (
        Path("reports", f"experiments.{kind}").read_text(encoding="utf-8")
        for kind in ("html", "md", "json")
    )
    for paper in json.loads(answers)["papers"]:
        assert f"## {paper['name']}" in text
        for printed in paper["printed"]:
            line = f"- **{printed['place']}**: {printed['shows']}. "
            assert line + printed["sentence"] in text
            assert str(escape(printed["sentence"])) in page
