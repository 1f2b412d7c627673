"""Runs that are killed or interrupted in the middle lose no finished cell and go on from there."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from gnn.experiments.record import read

pytestmark = pytest.mark.dear

ROOT = Path(__file__).resolve().parents[4]
TOY = """
import time
from pathlib import Path

from gnn.experiments.catalogue import Catalogue
from gnn.experiments.cli import main
from gnn.experiments.experiment import Experiment, Factor, Metric


def cell(parameters, seed, device):
    with Path("calls").open("a") as calls:
        calls.write(f"{parameters['number']}\\n")
    while parameters["number"] > 2 and not Path("go").exists():
        time.sleep(0.01)
    return {"value": seed / 2**63}


TOY = Experiment(
    name="toy", title="t", source="s", factors=(Factor("number", (1, 2, 3, 4)),), metrics=(Metric("value"),), cell=cell,
    repetitions={"quick": 1, "paper": 1},
)


def start():
    main(Catalogue.of([TOY]))
"""


@pytest.fixture
def start(tmp_path):
    """Start the command line in a process group of its own; the group is killed at the end."""
    (tmp_path / "slow_toy.py").write_text(TOY)
    started = []

    def run(*arguments):
        process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "import slow_toy; slow_toy.start()",
                "run",
                "toy",
                "--out",
                ".",
                *arguments,
            ],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # Where the tests run in the background of a script, SIGINT is ignored, and children inherit that.
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
        assert time.monotonic() < end, "it did not come to that in time"
        time.sleep(0.02)


def calls(folder):
    path = folder / "calls"
    return Counter(path.read_text().split()) if path.exists() else Counter()


@pytest.mark.full
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_killed_run_goes_on_with_what_is_missing(start, tmp_path, workers):
    record = tmp_path / "experiments" / "toy.jsonl"
    process = start("-n", workers)
    wait_for(
        lambda: record.exists() and len(read(record)) == 2 and calls(tmp_path)["3"] == 1
    )
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = read(record)
    assert sorted(found.parameters["number"] for found in kept.values()) == [1, 2]
    with record.open("a") as file:
        file.write('{"key": "cut off in the mid')
    (tmp_path / "go").touch()
    again = start("-n", workers)
    err = again.communicate(timeout=120)[1]
    assert again.returncode == 0, err
    assert "2 of 4 cells recorded, 2 to run" in err
    found = read(record)
    assert sorted(each.parameters["number"] for each in found.values()) == [1, 2, 3, 4]
    assert all(found[key] == each for key, each in kept.items())
    assert (calls(tmp_path)["1"], calls(tmp_path)["2"], calls(tmp_path)["3"]) == (
        1,
        1,
        2,
    )


@pytest.mark.full
@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_interrupted_run_says_how_to_go_on(start, tmp_path, workers):
    record = tmp_path / "experiments" / "toy.jsonl"
    process = start("-n", workers)
    wait_for(
        lambda: record.exists() and len(read(record)) == 2 and calls(tmp_path)["3"] == 1
    )
    os.kill(process.pid, signal.SIGINT)
    err = process.communicate(timeout=120)[1]
    assert process.returncode == 130, err
    assert (
        "interrupted; what was finished is recorded, and the same command goes on from there"
        in err
    )
    assert "Traceback" not in err
    assert len(read(record)) == 2
