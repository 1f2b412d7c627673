import multiprocessing
import sys
import threading

import pytest

from auditdp.record.results import Published, Verdict
from auditdp.runner.child_jobs import judge, serve_task
from auditdp.runner.plan import PlanOptions, Task, make_plan
from tests.unit.runner.test_plan import collect

AUDITS = """
import asyncio
import os
import sys
import time
from pathlib import Path

from auditdp import AnyValues, Audit, PureDP, Skip, audit, data_file
from auditdp.testing import Response

def sound():
    return Audit(Response(0.5), PureDP(1.0), AnyValues((0, 1)), evidence=["exact"])

def interrupting(data, size, *, rng):
    raise KeyboardInterrupt

@audit(source="declared")
def first(epsilon=0.5):
    '''First line.'''
    return sound()

@audit()
def second():
    return sound()

@audit()
def cancelled():
    raise asyncio.CancelledError("by somebody")

@audit()
def interrupts():
    return Audit(interrupting, PureDP(1.0), AnyValues((0, 1)), calls=50)

@audit(expect="violation")
def raises(epsilon=0.5):
    raise KeyError("missing")

@audit()
def raises_much():
    raise ValueError("x" * 3_000_000)

@audit()
def skips():
    raise Skip("not here")

@audit()
def prints():
    print("printed")
    return sound()

@audit()
def hangs():
    time.sleep(3600)

@audit(expect="violation", row="a mechanism", reading="as stated", smallest={"level": range(1, 5)})
def grows(level=1):
    '''Responses with ε are 2-DP.'''
    return Audit(Response(level), PureDP(2.0), AnyValues((0, 1)), evidence=["exact"], cost="none")

class Counted:
    '''A count that is declared to change by 1.'''

    name, sensitivity, norm = "Counted", 1.0, "l1"

    def __init__(self, level):
        self.level = level

    def query(self, data, rng=None):
        return data * self.level

    def __call__(self, data, size, *, rng):
        return rng.integers(0, 2, size)

def counted(level):
    return Audit(Counted(level), PureDP(2.0), AnyValues((0, 1)), evidence=["sensitivity"])

@audit(expect="miscalibration", smallest={"level": range(1, 4)})
def understated(level=1):
    return counted(level)

@audit(expect="violation", smallest={"level": range(1, 4)})
def not_violated(level=1):
    return counted(level)

@audit()
def reads():
    Path("seen").write_text(data_file("value").read_text() + os.environ["AUDITDP_DATA"])
    return sound()
"""


def run_task(task: Task):
    """Judge an audit here, whose mechanism answers in a process of its own."""
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe()
    served = fork.Process(target=serve_task, args=(task, theirs))
    served.start()
    theirs.close()
    try:
        return judge(task, ours)
    finally:
        ours.close()
        served.kill()
        served.join()


@pytest.fixture
def tasks(tmp_path, monkeypatch):
    """Return tasks by name, in a current folder with one audit file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delenv("AUDITDP_DATA", raising=False)
    (tmp_path / "audit_it.py").write_text(AUDITS)

    def chosen(*names: str, **settings) -> list[Task]:
        plan = make_plan(
            ["audit_it.py"],
            PlanOptions(root_seed=1, budget="quick", **settings),
            collect=collect,
        )
        by_name = {task.name: task for task in plan.tasks}
        return [by_name[name] for name in names]

    return chosen


def test_a_result_carries_what_was_declared_and_asked(tasks):
    (task,) = tasks("first", overrides={"epsilon": "0.25"})
    result = run_task(task)
    assert (result.id, result.verdict) == ("audit_it.py::first", Verdict.CERTIFIED)
    assert (result.description, result.parameters) == ("First line.", {"epsilon": 0.25})
    assert result.claim.source == "declared"
    assert result.alpha == task.alpha
    assert result.reproduce == task.reproduce


def test_the_first_size_that_violates_is_the_result(tasks):
    result = run_task(tasks("grows")[0])
    assert (result.id, result.verdict) == ("audit_it.py::grows", Verdict.VIOLATED)
    assert result.parameters == {"level": 3}
    assert result.summary.endswith("No violation was found at level = 1 or level = 2")
    assert result.published == Published("a mechanism", "as stated", cost="none")
    assert result.alpha == tasks("grows")[0].alpha


def test_the_first_size_that_is_miscalibrated_is_the_result_unless_a_violation_is_declared(
    tasks,
):
    result = run_task(tasks("understated")[0])
    assert (result.verdict, result.parameters, result.as_expected) == (
        Verdict.MISCALIBRATED,
        {"level": 2},
        True,
    )
    assert result.summary.endswith("No larger difference was found at level = 1")
    result = run_task(tasks("not_violated")[0])
    assert (result.verdict, result.parameters, result.is_finding) == (
        Verdict.MISCALIBRATED,
        {"level": 3},
        True,
    )
    assert "was found at" not in result.summary


def test_a_size_that_is_given_is_the_only_one(tasks):
    result = run_task(tasks("grows", overrides={"level": "4"})[0])
    assert result.parameters == {"level": 4}
    assert "No violation" not in result.summary
    assert (
        run_task(tasks("grows", overrides={"level": "1"})[0]).verdict
        is Verdict.CERTIFIED
    )


def test_an_exception_is_an_error_with_its_type_place_and_parameters(tasks):
    result = run_task(tasks("raises", overrides={"epsilon": "0.25"})[0])
    line = AUDITS[: AUDITS.index('raise KeyError("missing")')].count("\n") + 1
    assert result.verdict is Verdict.ERROR
    assert (
        result.summary
        == f"audit_it.py::raises: KeyError: 'missing' (audit_it.py, line {line})"
    )
    assert result.expected == "violation"
    assert not result.is_finding
    assert set(result.parameters) == {"epsilon"}


def test_of_an_error_of_megabytes_the_ends_are_kept(tasks):
    result = run_task(tasks("raises_much")[0])
    assert result.verdict is Verdict.ERROR
    assert "characters left out" in result.summary
    assert len(result.summary) < 20_000


def test_a_time_limit_stops_a_task_and_leaves_no_alarm_behind(tasks):
    import signal

    before = signal.getsignal(signal.SIGALRM)
    result = run_task(tasks("hangs", timeout=0.2)[0])
    assert result.verdict is Verdict.ERROR
    assert "stopped after 0.2 seconds; raise --timeout" in result.summary
    assert 0.2 <= result.seconds < 3
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_task_runs_in_a_thread_where_no_alarm_can_reach_it(tasks):
    results = []
    thread = threading.Thread(
        target=lambda: results.append(run_task(tasks("first", timeout=5.0)[0]))
    )
    thread.start()
    thread.join(20)
    assert [r.verdict for r in results] == [Verdict.CERTIFIED]


def test_what_an_audit_prints_goes_to_standard_error(tasks, capfd):
    run_task(tasks("prints")[0])
    assert capfd.readouterr() == ("", "printed\n")


@pytest.mark.parametrize(
    ("name", "message"),
    [("cancelled", "CancelledError: by somebody"), ("interrupts", "Interrupt")],
)
def test_what_is_no_exception_is_an_error_too(tasks, name, message):
    result = run_task(tasks(name)[0])
    assert result.verdict is Verdict.ERROR
    assert message in result.summary
