"""What an audited function can answer: whatever it sends settles no other audit, ends no run and hides no missing one."""

from __future__ import annotations

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
from auditdp.runner.plan import Collected, Listed, PlanOptions, Task, make_plan
from auditdp.runner.pool import CrashError, Workers, result_for

TASK = Task(
    "audits/audit_a.py::leaks",
    "/a.py",
    "leaks",
    "/",
    {},
    "holds",
    0.05,
    "quick",
    None,
    root_seed=1,
)


def certified(name=TASK.id, **more):
    found = AuditResult(
        name,
        Verdict.CERTIFIED,
        "",
        evidence=[Evidence("exact", Verdict.CERTIFIED, "")],
        **more,
    )
    return json.loads(RESULT.dump_json(found))


ANSWERS = [
    *(
        [1],
        1,
        "x",
        True,
        {},
        {"id": 1},
        [[]],
        {"id": TASK.id, "verdict": "FINE", "summary": ""},
    ),
    *(
        certified() | {"calls": -1},
        certified() | {"evidence": []},
        certified("audits/audit_b.py::other"),
    ),
    certified(controls=[ControlResult("twin", Verdict.NOT_REFUTED)]),
]


@pytest.mark.parametrize("value", ANSWERS, ids=lambda value: json.dumps(value)[:30])
def test_what_is_no_result_of_a_task_is_its_error(value):
    for sent in (value, json.dumps(value)):
        found = result_for(TASK, WorkAnswer(1, sent))
        assert (found.id, found.verdict) == (TASK.id, Verdict.ERROR)


def test_a_result_has_what_its_task_declares_and_was_given():
    found = result_for(
        TASK, WorkAnswer(1, json.dumps(certified(expected="violation", alpha=0.9)))
    )
    assert (found.verdict, found.expected, found.alpha) == (
        Verdict.CERTIFIED,
        "holds",
        0.05,
    )


class Alive:
    """A process that has not ended."""

    exitcode = None

    def is_alive(self):
        return False

    def join(self, seconds):
        pass


@pytest.mark.parametrize(
    "message",
    [
        *(
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
        ),
        *(
            b'{"value": 1, "libraries": [1]}',
            b'{"value": "\\ud800"}',
            b'{"number": 7, "failed": 1, "printed": 2}',
        ),
    ],
    ids=lambda message: str(message)[:30],
)
def test_whatever_comes_through_the_pipe_of_a_child_is_an_answer_of_its_own_work(
    message, tmp_path
):
    receiver, sender = multiprocessing.Pipe(duplex=False)
    sender.send_bytes(message)
    answer = Child(
        Work(3, "run", TASK), Alive(), receiver, tmp_path / "out", None
    ).answer()
    assert (answer.number, answer.printed) == (3, "")
    assert answer.value is None
    assert result_for(TASK, answer).verdict is Verdict.ERROR


def test_of_two_processes_that_ended_together_the_mechanisms_is_named():
    here, there = multiprocessing.Pipe()
    both = pool._TwoProcesses(Work(1, "run", TASK), here, alone=True)
    assert not both.ended(
        Work(1, "serve", TASK), WorkAnswer(1, failed="the process that ran it died")
    )
    assert both.ended(both.work, None)
    assert both.answer == WorkAnswer(1, failed="the process that ran it died")
    there.close()


def test_an_answer_that_nobody_asked_for_costs_the_process_that_gave_it(monkeypatch):
    """Its work is done again, alone, and nothing else ends."""
    here, there = multiprocessing.Pipe()
    with Workers(needed=()) as processes:
        host = pool._Host(Path("/a.py"), Alive(), here, busy={3: Work(3, "run", TASK)})
        processes._hosts[host.path] = host
        there.send_bytes(
            json.dumps(
                {"number": 99, "value": certified("audits/audit_b.py::other")}
            ).encode()
        )
        assert list(processes._answers()) == [(Work(3, "run", TASK), None)]
        assert not processes._hosts


def test_work_of_a_process_that_is_found_dead_is_done_again():
    """The run waited without end for what such a process had been given, if it was found dead when more was handed to it."""
    here, _ = multiprocessing.Pipe()
    with Workers(needed=()) as processes:
        host = pool._Host(Path("/a.py"), Alive(), here, busy={3: Work(3, "run", TASK)})
        processes._hosts[host.path] = host
        processes._close(host)
        assert list(processes._answers()) == [(Work(3, "run", TASK), None)]


@pytest.mark.parametrize(
    "audits",
    [
        [Listed("audits/audit_b.py::other", "/x/audits/audit_a.py")],
        [Listed("audits/audit_a.py::mine", "/x/audits/audit_b.py")],
        [Listed("audits/audit_a.py::mine", "/x/audits/audit_a.py")] * 2,
    ],
)
def test_an_import_lists_no_audit_of_another_file(audits, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    there = [
        replace(each, path=each.path.replace("/x", str(tmp_path))) for each in audits
    ]
    assert not pool._of_its_own(Collected(tuple(there)), tmp_path / "audits/audit_a.py")
    mine = Listed("audits/audit_a.py::mine", str(tmp_path / "audits/audit_a.py"))
    assert pool._of_its_own(Collected((mine,)), tmp_path / "audits/audit_a.py")


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
    monkeypatch.setattr(
        Workers, "_work", lambda self, wanted: [(TASK, WorkAnswer(1, value))]
    )
    with (
        Workers(needed=()) as processes,
        pytest.raises(CrashError, match="something else than a result"),
    ):
        processes.ask(kind, TASK)


def test_a_planned_audit_without_a_result_is_no_clean_run():
    done = AuditResult(
        "a",
        Verdict.NOT_REFUTED,
        "",
        evidence=[Evidence("game", Verdict.NOT_REFUTED, "")],
    )
    whole = RunRecord(
        1, "complete", {}, {}, "", "", [LedgerEntry("a", "", 0.01)], [done]
    )
    lacking = replace(
        whole, alpha_ledger=[LedgerEntry("a", "", 0.01), LedgerEntry("b", "", 0.01)]
    )
    assert code_of(whole) == 0
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
HONEST = """
from auditdp import Audit, PureDP, audit

@audit
def leaks():
    return Audit(lambda x, rng: x, claim=PureDP(1.0), pairs=[(0, 1)])
"""


def test_an_audit_that_answers_for_another_one_is_an_error_and_the_other_is_judged(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path("audits").mkdir()
    Path("audits/audit_a.py").write_text(FORGER)
    Path("audits/audit_b.py").write_text(HONEST)
    with Workers() as processes:
        plan = make_plan(
            ["audits"],
            PlanOptions(root_seed=1, budget="quick"),
            collect=processes.collect,
        )
        found = {result.id: result for result in processes.run(plan.tasks)}
    assert {name: result.verdict for name, result in found.items()} == {
        "audits/audit_a.py::theirs": Verdict.ERROR,
        "audits/audit_b.py::leaks": Verdict.VIOLATED,
    }
    assert "ended before it had answered" in found["audits/audit_a.py::theirs"].summary
