"""Runs that are killed or interrupted lose no finished cell, and continue from there."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gnn.experiments.record import read

ROOT = Path(__file__).resolve().parents[4]
TOY = """
import time
from pathlib import Path

from gnn.experiments.catalogue import Catalogue
from gnn.experiments.cli import main
from gnn.experiments.experiment import Experiment, Factor, Metric


def cell(parameters, seed, device):
    while parameters["number"] > 2 and not Path("go").exists():
        time.sleep(0.01)
    return {"value": seed / 2**63}


TOY = Experiment(
    name="toy", title="t", source="s", factors=(Factor("number", (1, 2, 3, 4)),),
    metrics=(Metric("value"),), cell=cell, repetitions={"quick": 1, "paper": 1},
)


def start():
    main(Catalogue.of([TOY]))
"""


@pytest.fixture
def start(tmp_path):
    """Start the command line in a process group of its own, which is killed at the end."""
    (tmp_path / "slow_toy.py").write_text(TOY)
    started = []

    def run(workers):
        code = "import slow_toy; slow_toy.start()"
        arguments = ["run", "toy", "--out", ".", "-n", workers]
        process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # Tests in the background of a script ignore SIGINT, and children inherit it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition did not become true in time"
        time.sleep(0.02)


def numbers(records):
    return sorted(each.parameters["number"] for each in records.values())


@pytest.mark.full
@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_ended_loses_no_finished_cell(start, tmp_path, workers, kind):
    """A finished cell is not run again: its record has the same seconds."""
    record = tmp_path / "experiments" / "toy.jsonl"
    process = start(workers)
    wait_for(lambda: record.exists() and len(read(record)) == 2)
    if kind == signal.SIGKILL:
        os.killpg(process.pid, kind)
        process.wait()
    else:
        os.kill(process.pid, kind)
        err = process.communicate(timeout=120)[1]
        assert process.returncode == 130, err
        assert "interrupted; what was finished is recorded" in err
        assert "Traceback" not in err

    kept = read(record)
    assert numbers(kept) == [1, 2]

    with record.open("a") as file:
        file.write('{"key": "cut off in the mid')

    (tmp_path / "go").touch()
    again = start(workers)
    err = again.communicate(timeout=120)[1]

    assert again.returncode == 0, err

    found = read(record)
    assert numbers(found) == [1, 2, 3, 4]
    assert kept.items() <= found.items()
