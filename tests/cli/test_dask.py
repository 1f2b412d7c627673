"""A run on the workers of a dask cluster, of which some die."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.cli.conftest import RESPONSES

pytestmark = [pytest.mark.dear, pytest.mark.usefixtures("without_sandbox")]

distributed = pytest.importorskip("distributed")

AUDITS = f"""{RESPONSES}
@audit()
def third(epsilon=1.0):
    with open("started", "a") as file:
        file.write(f"{{os.getpid()}}\\n")
    while not os.path.exists("go"):
        time.sleep(.05)
    return Audit(made(.7), PureDP(epsilon), BITS, calls=600)

@audit()
def fourth(epsilon=1.0):
    return Audit(made(.65), PureDP(epsilon), BITS, calls=600)
"""
RUN = "run --seed 5 --budget quick --format json"
DASK = f"{RUN} --executor dask --scheduler"
PATIENCE = 240


def until(condition, what):
    """Wait for a condition and return its value."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.05)
    raise AssertionError(f"waited {PATIENCE} s for {what}")


def started(project):
    """The processes in which the third audit was begun, in order."""
    file = project.root / "started"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def is_gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.fixture
def whole(project):
    """The record of the run on one machine, without times."""
    project.audits(AUDITS)
    (project.root / "go").touch()
    record = project(f"{RUN} --log whole.jsonl").untimed
    (project.root / "go").unlink()
    (project.root / "started").unlink()
    return record


@pytest.mark.full
def test_a_worker_that_is_killed_costs_nothing(project, whole):
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        process = project.start(f"{DASK} {cluster.scheduler_address}")
        (busy,) = until(lambda: started(project), "the third audit")

        def worker():
            busy_with = client.processing().items()
            return [name for name, keys in busy_with if "third" in str(keys)]

        (address,) = until(worker, "the worker that has it")
        nannies = {each.worker_address: each for each in cluster.workers.values()}
        os.kill(nannies[address].pid, signal.SIGKILL)
        until(lambda: len(started(project)) == 2, "another worker")
        until(lambda: is_gone(busy), "the end of the audit whose worker was killed")
        (project.root / "go").touch()
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1, err  # the second audit is a finding
    assert project("report --format json").untimed == whole
    assert json.loads(out)["status"] == "complete"
    log = (project.root / ".auditdp/run.jsonl").read_text()
    assert log.count('"kind": "result"') == 4


@pytest.fixture
def scheduler(tmp_path):
    """A scheduler in a process of its own, with one worker; its process and its scheduler file."""
    file, log = tmp_path / "scheduler.json", (tmp_path / "dask.log").open("w")

    def start(command):
        words = [sys.executable, "-m", *command.split(), "--no-dashboard"]
        words += ["--scheduler-file", file]
        return subprocess.Popen(words, stdout=log, stderr=log, cwd=tmp_path)

    scheduler = start("distributed.cli.dask_scheduler --port 0 --host 127.0.0.1")
    until(file.exists, "the scheduler")
    worker = start("distributed.cli.dask_worker --nthreads 1 --no-nanny")
    yield scheduler, file
    for process in (worker, scheduler):
        process.kill()
        process.wait()
    log.close()


@pytest.mark.faults
def test_where_the_scheduler_goes_away_the_run_is_resumed(project, whole, scheduler):
    process, file = scheduler
    run = project.start(DASK, file)
    log = project.root / ".auditdp/run.jsonl"
    until(
        lambda: started(project) and log.read_text().count('"kind": "result"') == 2,
        "two results",
    )
    process.kill()
    _, err = run.communicate(timeout=PATIENCE)
    assert run.returncode == 3, err
    assert f"the dask scheduler {file} went away" in err
    assert "--resume" in err
    assert "Traceback" not in err
    interrupted = project("report --format json")
    assert interrupted.record["status"] == "interrupted"
    assert interrupted.names == ["first", "second"]
    (project.root / "go").touch()
    assert project(f"{RUN} --resume").untimed == whole


@pytest.mark.faults
def test_an_interrupt_ends_the_audits_on_the_workers(project, scheduler):
    project.audits(AUDITS)
    run = project.start(DASK, scheduler[1])
    (busy,) = until(lambda: started(project), "the third audit")
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=PATIENCE)
    assert run.returncode == 130, err
    assert "continue with --resume" in err
    until(lambda: is_gone(busy), "the end of the audit that nobody waits for")


def test_an_address_without_scheduler_is_refused_within_seconds(project):
    project.audits(AUDITS)
    began = time.monotonic()
    outcome = project(f"{DASK} tcp://127.0.0.1:1")
    assert outcome.refuses("no dask scheduler answers")
    assert time.monotonic() - began < 30
    assert not (project.root / ".auditdp").exists()
