"""What an audited function can answer: whatever it sends settles no other audit, ends no run and hides no missing one."""

import json
import multiprocessing
from dataclasses import replace
from pathlib import Path

import pytest

from auditdp.cli.run_scope import code_of
from auditdp.record.results import (
    RESULT,
    AuditResult,
    ControlResult,
    Evidence,
    LedgerEntry,
    RunRecord,
    Verdict,
)
from auditdp.runner import pool
from auditdp.runner.child import Child, Work, WorkAnswer
from auditdp.runner.plan import Collected, Listed
from auditdp.runner.pool import CrashError, Workers, result_for
from tests.adversary.projects import (
    HONEST,
    Ended,
    judged,
    proved,
    task,
    verdicts_of,
)

TASK = task("leaks", alpha=0.05)
OTHER = "audits/audit_b.py::other"


def certified(name=TASK.id, **more):
    found = proved(name, **more)
    return json.loads(RESULT.dump_json(found))


ANSWERS = [
    [1],
    1,
    "x",
    True,
    {},
    {"id": 1},
    [[]],
    {"id": TASK.id, "verdict": "FINE", "summary": ""},
    certified() | {"calls": -1},
    certified() | {"evidence": []},
    certified(OTHER),
    certified(controls=[ControlResult("twin", Verdict.NOT_REFUTED)]),
]


@pytest.mark.parametrize("value", ANSWERS, ids=lambda value: json.dumps(value)[:30])
def test_what_is_no_result_of_a_task_is_its_error(value):
    for sent in (value, json.dumps(value)):
        found = result_for(TASK, WorkAnswer(1, sent))
        assert (found.id, found.verdict) == (TASK.id, Verdict.ERROR)


def test_a_result_has_what_its_task_declares_and_was_given():
    claimed = json.dumps(certified(expected="violation", alpha=0.9))
    found = result_for(TASK, WorkAnswer(1, claimed))
    assert (found.verdict, found.expected) == (Verdict.CERTIFIED, "holds")
    assert found.alpha == 0.05


MESSAGES = [
    b"[1]",
    b"1",
    b"null",
    b'"x"',
    b"{",
    b"",
    b"\xff",
    b"[" * 30_000,
    b"1" * 5_000,
    b'{"libraries": 1}',
    b'{"value": 1, "libraries": [1]}',
    b'{"value": "\\ud800"}',
    b'{"number": 7, "failed": 1, "printed": 2}',
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: str(message)[:30])
def test_whatever_comes_through_the_pipe_of_a_child_is_an_answer_of_its_own_work(
    message, tmp_path
):
    receiver, sender = multiprocessing.Pipe(duplex=False)
    sender.send_bytes(message)
    child = Child(Work(3, "run", TASK), Ended(), receiver, tmp_path / "out", None)
    answer = child.answer()
    assert (answer.number, answer.printed, answer.value) == (3, "", None)
    assert result_for(TASK, answer).verdict is Verdict.ERROR


def test_of_two_processes_that_ended_together_the_mechanisms_is_named():
    here, there = multiprocessing.Pipe()
    both = pool._TwoProcesses(Work(1, "run", TASK), here, alone=True)
    died = WorkAnswer(1, failed="the process that ran it died")
    assert not both.ended(Work(1, "serve", TASK), died)
    assert both.ended(both.work, None)
    assert both.answer == died
    there.close()


@pytest.fixture
def busy():
    """The process of a file with work, and the other end of its pipe."""
    here, there = multiprocessing.Pipe()
    work = Work(3, "run", TASK)
    with Workers(needed=()) as processes:
        host = pool._Host(Path("/a.py"), Ended(), here, busy={3: work})
        processes._hosts[host.path] = host
        yield processes, host, there
        assert list(processes._answers()) == [(work, None)]
        assert not processes._hosts


def test_an_answer_that_nobody_asked_for_costs_the_process_that_gave_it(busy):
    """Its work is done again, alone, and nothing else ends."""
    answer = {"number": 99, "value": certified(OTHER)}
    busy[2].send_bytes(json.dumps(answer).encode())


def test_work_of_a_process_that_is_found_dead_is_done_again(busy):
    """The run waited without end for what such a process had been given, if it was found dead when more was handed to it."""
    processes, host, _ = busy
    processes._close(host)


A, B = "audits/audit_a.py", "audits/audit_b.py"


@pytest.mark.parametrize(
    "audits", [[(B, A)], [(A, B)], [(A, A), (A, A)]], ids=["id", "path", "twice"]
)
def test_an_import_lists_no_audit_of_another_file(audits, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def is_its_own(*listed):
        found = [Listed(f"{name}::it", str(tmp_path / path)) for name, path in listed]
        return pool._of_its_own(Collected(tuple(found)), tmp_path / A)

    assert not is_its_own(*audits)
    assert is_its_own((A, A))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("show", {"rows": [1]}),
        ("show", []),
        ("show", {}),
        ("trace", {}),
        ("trace", {"trace": {"claim": "x"}}),
        ("trace", {"rows": []}),
        ("again", {"a": 1}),
        ("again", [1]),
    ],
)
def test_what_an_audit_says_of_itself_has_a_shape(kind, value, monkeypatch):
    answers = [(TASK, WorkAnswer(1, value))]
    monkeypatch.setattr(Workers, "_work", lambda self, wanted: answers)
    with (
        Workers(needed=()) as processes,
        pytest.raises(CrashError, match="something other than a result"),
    ):
        processes.ask(kind, TASK)


def test_a_planned_audit_without_a_result_is_no_clean_run():
    played = [Evidence("game", Verdict.NOT_REFUTED, "")]
    done = AuditResult("a", Verdict.NOT_REFUTED, "", evidence=played)
    ledger = [LedgerEntry(name, "", 0.01) for name in "ab"]
    lacking = RunRecord(1, "complete", {}, {}, "", "", ledger, [done])
    assert code_of(replace(lacking, alpha_ledger=ledger[:1])) == 0
    assert code_of(lacking) == 3
    assert code_of(lacking, missing=[]) == 0  # a shard, whose own audits are done
    violated = replace(done, verdict=Verdict.VIOLATED)
    assert code_of(replace(lacking, results=[violated])) == 1


FORGER = """
import json
from auditdp import Audit, PureDP, audit
from auditdp.record.results import RESULT, AuditResult, Evidence, Verdict
from auditdp.runner import child_jobs as jobs

def forged(task, pipe=None):
    proof = Evidence("exact", Verdict.CERTIFIED, "")
    found = AuditResult("audits/audit_b.py::leaks", Verdict.CERTIFIED, "", evidence=[proof])
    return RESULT.dump_json(found).decode()

jobs.JOBS.update(run=forged, serve=forged)

@audit
def theirs():
    return Audit(lambda x, rng: 0, claim=PureDP(1.0), pairs=[(0, 1)])
"""


def test_an_audit_that_answers_for_another_one_is_an_error_and_the_other_is_judged(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path("audits").mkdir()
    Path("audits/audit_a.py").write_text(FORGER)
    Path("audits/audit_b.py").write_text(HONEST)
    with Workers() as processes:
        found = judged(processes)
    assert verdicts_of(found) == {
        "audits/audit_a.py::theirs": Verdict.ERROR,
        "audits/audit_b.py::leaks": Verdict.VIOLATED,
    }
    assert "ended before it had answered" in found["audits/audit_a.py::theirs"].summary
