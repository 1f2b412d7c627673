"""The command line: what it runs, records, refuses, and how it goes on."""

import json
from pathlib import Path

import pytest

from auditdp.errors import ConfigurationError, MechanismError
from gnn.experiments.execute import attempt
from gnn.experiments.grid import cells
from gnn.experiments.record import CellRecord, Recorder, read
from tests.unit.gnn.experiments.toy import TOY

RECORD = Path("out/experiments/toy.jsonl")


def lines(path=RECORD):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_run_records_every_cell_with_its_seed(command):
    code, _, err = command("run", "toy", "--out", "out", "--seed", 5)
    assert code == 0
    assert "12 to run" in err
    assert "12/12 toy epsilon=2, method=theirs" in err
    assert len(lines()) == 12
    first = lines()[0]
    assert first["parameters"] == {
        "epsilon": 1,
        "method": "ours",
        "epochs": 3,
        "form": "published",
    }
    assert (first["root_seed"], first["repetition"], first["device"]) == (5, 0, "cpu")
    assert first["metrics"]["accuracy"] == 61 + first["seed"] / 2**63
    assert {"revision", "environment", "date", "seconds"} <= set(first)


def test_recorded_cells_are_not_run_again(command):
    command("run", "toy", "--out", "out", "--only", "method=theirs")
    before = RECORD.read_bytes()
    code, _, err = command("run", "toy", "--out", "out")
    assert code == 0
    assert "4 of 12 cells recorded, 8 to run" in err
    assert RECORD.read_bytes().startswith(before)
    code, _, err = command("run", "toy", "--out", "out")
    assert "12 of 12 cells recorded, 0 to run" in err
    assert len(lines()) == 12


def test_records_are_the_same_for_any_number_of_processes(command):
    command("run", "toy", "--out", "out", "--only", "epsilon=1")
    command("run", "toy", "--out", "two", "--only", "epsilon=1", "-n", 2)

    def told(path):
        return sorted(
            (line["key"], line["seed"], json.dumps(line["metrics"]))
            for line in lines(path)
        )

    assert told(RECORD) == told(Path("two/experiments/toy.jsonl"))


def test_a_failing_cell_is_recorded_and_tried_again_and_the_others_go_on(command):
    path = Path("out/experiments/broken.jsonl")
    code, _, err = command("run", "broken", "--out", "out")
    assert code == 3
    assert "1 cell failed" in err
    assert "FAILED ValueError: no convergence <here>" in err
    assert [line["error"] for line in lines(path)] == [
        "",
        "",
        "ValueError: no convergence <here>",
    ]
    assert "in cell" in lines(path)[2]["traceback"]
    code, _, err = command("run", "broken", "--out", "out")
    assert (code, len(lines(path))) == (3, 4)
    assert "2 of 3 cells recorded, 1 to run" in err


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ({"m": float("nan")}, "metric 'm' = nan"),
        ({"n": 1.0}, "metric 'n' = 1.0: expected finite values of m"),
        ({}, "no metric"),
    ],
)
def test_a_cell_that_returns_nothing_that_can_be_recorded_is_an_error(metrics, message):
    found = attempt(
        lambda *_: metrics, cells(TOY, profile="quick", root_seed=1)[0], "cpu", ["m"]
    )
    assert message in found["error"]
    assert MechanismError.__name__ in found["error"]


def test_a_last_line_that_was_cut_short_is_ignored_and_cut_off(command):
    command("run", "toy", "--out", "out")
    whole = RECORD.read_bytes()
    RECORD.write_bytes(whole[:-20])
    assert len(read(RECORD)) == 11
    code, _, err = command("run", "toy", "--out", "out")
    assert code == 0
    assert "11 of 12 cells recorded, 1 to run" in err
    assert len(lines()) == 12


def test_a_file_that_is_no_record_is_refused(command):
    RECORD.parent.mkdir(parents=True)
    RECORD.write_text('{"key": "k"}\n')
    code, _, err = command("run", "toy", "--out", "out")
    assert code == 2
    assert "toy.jsonl, line 1 is no record of a cell" in err


def test_two_runs_do_not_write_one_file(tmp_path):
    path = tmp_path / "experiments" / "toy.jsonl"
    with (
        Recorder(path),
        pytest.raises(ConfigurationError, match="another run is writing"),
    ):
        Recorder(path)
    with Recorder(path):
        pass


def test_a_record_comes_back_as_it_was_written(tmp_path):
    cell = cells(TOY, profile="quick", root_seed=1)[0]
    record = CellRecord.of(cell, device="cpu", seconds=1.5, metrics={"accuracy": 0.25})
    with Recorder(tmp_path / "toy.jsonl") as recorder:
        recorder.add(record)
    assert read(tmp_path / "toy.jsonl") == {cell.key: record}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["run", "tou"],
            "no experiment 'tou'; did you mean 'toy'?; absent: needs torch",
        ),
        (
            ["run", "toy", "--profile", "papers"],
            "--profile papers: no such profile; did you mean 'paper'?",
        ),
        (["run", "toy", "--only", "methods=ours"], "did you mean 'method'?"),
        (["run", "toy", "-n", "0"], "-n 0: expected a number >= 1, or auto"),
        (["run", "toy", "-n", "two"], "-n two: expected a number >= 1, or auto"),
        (["run", "toy", "--data", "nowhere"], "--data nowhere: no such folder"),
        (
            ["run", "reader"],
            "no data folder is named; give the folder of the data sets with --data or AUDITDP_DATA",
        ),
        (
            ["run", "reader", "--data", "."],
            "reader reads elsewhere.npz, here.npz, not in",
        ),
        (
            ["run", "toy", "--device", "cuda:99"],
            "--device cuda:99: torch cannot use it here",
        ),
        (["run", "toy", "--device", "gpu"], "--device gpu: torch cannot use it here"),
        (["report", "--profile", "fast"], "--profile fast: no such profile"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(command, arguments, message):
    if "--device" in arguments:
        pytest.importorskip("torch")
    code, out, err = command(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
    assert err.count("\n") == 1


def test_settings_whose_files_are_there_run(command, tmp_path):
    (tmp_path / "here.npz").touch()
    code, _, err = command("run", "reader", "--data", ".", "--only", "data=here")
    assert code == 0, err


def test_list_says_what_there_is_and_what_is_recorded(command):
    command("run", "toy", "--out", "out", "--only", "method=theirs")
    code, out, err = command("list", "--out", "out", "--profile", "quick")
    assert code == 0
    assert (
        "toy  A toy | with a bar (Nobody (2020), Table 7)\n    4 of 12 cells recorded; epsilon 1, 2; method"
        in out
    )
    assert "absent: needs torch" in err
