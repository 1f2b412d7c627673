"""What code of an audit can do to who judges it: a leak is found all the same, or the audit is an error, and never clean."""

from dataclasses import replace
from pathlib import Path

import pytest

from auditdp import PureDP, check
from auditdp.betting.wealth.mixture import Wealth
from auditdp.record.results import LedgerEntry, Published, RunRecord, Verdict
from auditdp.report.formats import render
from auditdp.runner.pool import Workers
from tests.adversary.projects import judged

HEAD = """
import gc, json, os, signal, struct, sys, time
import numpy as np
from auditdp import Audit, PureDP, audit

calls = [0]

def telling(x, rng):
    return x

def talk():
    frame = sys._getframe()
    while frame.f_code.co_name != "answer":
        frame = frame.f_back
    return frame.f_locals["connection"], frame.f_locals["ticket"]

def late():
    calls[0] += 1
    return calls[0] > 120

def frame_of(ticket, arrays, content):
    line = {"ticket": ticket, "cpu": 0.0, "value": [{"state": None, "spawned": 0, "raising": False, "raised": {},
            "kept": []}, None], "arrays": arrays}
    return json.dumps(line).encode() + b"\\n" + content
"""
TAIL = """
@audit(timeout={timeout})
def hides():
    return Audit(lambda x, rng: telling(x, rng), claim=PureDP(1.0), pairs=[(0, 1)], evidence={asked}, calls=400)
"""
PATCHES = {
    "run_audit": """
from auditdp.auditing import judging
from auditdp.record.results import AuditResult, Evidence, Verdict
from auditdp.runner import child_jobs as execute
judging.run_audit = execute.run_audit = lambda built, settings: AuditResult(
    settings.key, Verdict.NOT_REFUTED, "", evidence=[Evidence("game", Verdict.NOT_REFUTED, "")])
""",
    "conclude": """
from auditdp.auditing import judging
from auditdp.record import verdict
from auditdp.record.results import Verdict
judging.conclude = verdict.conclude = lambda evidence, controls: (Verdict.NOT_REFUTED, "")
""",
    "the game": """
from auditdp.betting.game import Game
from auditdp.betting.wealth.mixture import Wealth
Game.play = lambda *given, **more: None
Wealth.refuted = lambda self, alpha: False
from auditdp.betting.forecasters import experts, forecaster as forecasters, repeated_outputs as repeats
from auditdp.record import results
for each in (experts.ViewExperts, forecasters.LikelihoodRatio, forecasters.Scored, repeats.Repeating):
    each.forecast = lambda self, batch: np.full(len(batch), 0.5)
results.AuditResult.is_finding = results.Evidence.verdict = False
results.result_of = results.RESULT = None
""",
    "generators": """
class Heads(np.random.Generator):
    def binomial(self, size, p):
        return size
np.random.Generator = Heads
np.random.default_rng = lambda *key: Heads(np.random.PCG64(*key))
""",
    "a tracer": """
import ctypes, threading
def edit(frame, event, argument):
    if frame.f_code.co_name in ("play", "_play_batch", "draw", "conclude", "run_audit"):
        for name in ("size", "heads", "most", "calls", "verdict"):
            if name in frame.f_locals:
                frame.f_locals[name] = 0
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
    return edit
sys.settrace(edit)
threading.settrace(edit)
""",
    "what lies in memory": """
def telling(x, rng):
    for each in gc.get_objects():
        if type(each).__name__ in ("Wealth", "Game", "Batch"):
            vars(each).update(refuted=lambda alpha: False, log_wealth=0.0)
    return x
""",
    "a float that lies": """
class Lying(float):
    def __float__(self):
        return 0.0
def telling(x, rng):
    return Lying(1 + x)
""",
    "a certificate": """
from auditdp.auditing import serving
from auditdp.record.results import Evidence, Verdict
serving.gathered_here = lambda kind, request, alpha: Evidence(kind, Verdict.CERTIFIED, "proved", epsilon_upper=0.5)
""",
}
"""What an import, or a mechanism, does to hide that it names its input: it is found all the same."""
FRAMES = {
    "another ticket": 'frame_of("0" * 16, [["<f8", [0]]], b"")',
    "another shape": 'frame_of(ticket, [["<f8", [1, 1]], ["<f8", [1, 1]]], bytes(16))',
    "more than its bytes": 'frame_of(ticket, [["<f8", [1 << 40]]], bytes(8))',
    "an object": 'frame_of(ticket, [["|O8", [1]]], bytes(8))',
    "no JSON": "b\"cos\\nsystem\\n(S'true'\\ntR.\"",
    "a skip": 'json.dumps({"ticket": ticket, "cpu": 0, "error": ["Skip", "not here", ""]}).encode()',
    "an answer twice": 'frame_of(ticket, [["<f8", [0]]], b"")',
}
"""What is sent in place of an answer, or before it."""
SENDS = """
def telling(x, rng):
    connection, ticket = talk()
    late() and connection.send_bytes({})
    return x
"""
FAULTS = {
    **{name: ("", SENDS.format(sent)) for name, sent in FRAMES.items()},
    "2 GB are announced": (
        "more bytes than requested",
        """
def telling(x, rng):
    if late():
        os.write(talk()[0].fileno(), struct.pack("!i", (1 << 31) - 1))
    return x
""",
    ),
    "too few outputs": (
        "was asked for",
        """
from auditdp.mechanism.calls.calling import Calls
Calls.__call__ = lambda self, data, size, rng: self.like[:1]
""",
    ),
    "an object that is called where it is unpickled": (
        "",
        """
class Runs:
    def __reduce__(self):
        return (open, ("unpickled", "w"))
def telling(x, rng):
    return Runs()
""",
    ),
    "death": (
        "killed by SIGKILL",
        "def telling(x, rng):\n    late() and os.kill(os.getpid(), signal.SIGKILL)\n    return x",
    ),
    "an end": (
        "ended itself, with exit code 0",
        "def telling(x, rng):\n    late() and os._exit(0)\n    return x",
    ),
    "silence": (
        "until the time limit, did not confirm",
        "def telling(x, rng):\n    late() and time.sleep(1000)\n    return x",
    ),
    "two processes": (
        "",
        """
def telling(x, rng):
    late()
    if calls[0] == 121 and not os.fork():
        try:
            talk()[0].send_bytes(frame_of("1" * 16, [], b""))
        finally:
            os._exit(0)  # at once: a copy that goes on would fork again
    time.sleep(0.2 * (calls[0] == 121))
    return x
""",
    ),
}
"""What a mechanism's process does in the middle of a game: the reason that the error names, and the code."""


BLIND = """
from auditdp.mechanism.calls.calling import Calls
rows = Calls.__call__
Calls.__call__ = lambda self, data, size, rng: 0 * rows(self, data, size, rng)
"""
DECLARED = """
from auditdp.auditing import serving
serving.parameters_of = lambda claim: ("PureDP", {"epsilon": 100.0})
"""
CERTIFIED = """
from auditdp.auditing import serving
from auditdp.record.results import Evidence, Verdict
def gathered(kind, request, alpha):
    return Evidence("exact", Verdict.CERTIFIED, "proved", epsilon_upper=0.5) if kind == "exact" else None
serving.gathered_here = gathered
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Run all of these audits; return their results by name, and the folder."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "audits").mkdir()
    names = {}
    faults = {name: code for name, (_, code) in FAULTS.items()}
    for k, (name, code) in enumerate(
        (
            PATCHES
            | faults
            | {"blind": BLIND, "declared": DECLARED, "certified": CERTIFIED}
        ).items()
    ):
        file = folder / "audits" / f"audit_{k:02}.py"
        timeout = 2.0 if name == "silence" else 60.0
        asked = ["exact"] if name == "certified" else ["exact", "game"]
        file.write_text(HEAD + code + TAIL.format(timeout=timeout, asked=asked))
        names[f"audits/{file.name}::hides"] = name
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        with Workers(count=2) as processes:
            found = judged(processes)
    return {names[name]: result for name, result in found.items()}, folder


@pytest.mark.parametrize("name", PATCHES)
def test_who_judges_is_out_of_the_reach_of_what_an_audit_patches(results, name):
    found = results[0][name]
    assert found.verdict is Verdict.VIOLATED, found.summary
    assert [(each.kind, each.self_reported) for each in found.evidence][-1] == (
        "game",
        False,
    )


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_no_answer_is_an_error(results, name):
    found, (reason, _) = results[0][name], FAULTS[name]
    late = (
        Verdict.INCONCLUSIVE if name == "silence" else Verdict.ERROR
    )  # what was played before stands, unconfirmed
    assert found.verdict is late, found.summary
    assert any(each in found.summary for each in reason.split("|")), found.summary


def test_nothing_that_was_answered_was_run(results):
    assert not Path(results[1], "unpickled").exists()


def test_outputs_that_are_replaced_where_they_are_made_are_what_is_audited(results):
    """No boundary: an audit is of what the process of its mechanism gives out."""
    found = results[0]["blind"]
    assert found.verdict is Verdict.NOT_REFUTED
    assert any(
        "all" in notice and "were the same" in notice for notice in found.notices
    )


def test_a_claim_that_is_replaced_where_it_is_declared_is_what_is_audited(results):
    """No boundary: the record has what was declared, which is not what the file says."""
    found = results[0]["declared"]
    assert (found.verdict, found.claim.epsilon) == (Verdict.NOT_REFUTED, 100.0)


def test_one_process_can_be_patched(monkeypatch):
    """No boundary: ``check`` calls a mechanism where it judges."""

    def leaks(x, rng):
        monkeypatch.setattr(Wealth, "refuted", lambda self, alpha: False)
        return x

    assert (
        check(leaks, PureDP(1.0), pairs=[(0, 1)], calls=100, trace=False).verdict
        is Verdict.NOT_REFUTED
    )
    monkeypatch.undo()
    assert (
        check(
            lambda x, rng: x, PureDP(1.0), pairs=[(0, 1)], calls=400, trace=False
        ).verdict
        is Verdict.VIOLATED
    )


def test_a_forged_certificate_is_marked(results):
    """No boundary: evidence from an audit's own code can be forged; the record says whose it is."""
    found = results[0]["certified"]
    assert (found.verdict, [each.self_reported for each in found.evidence]) == (
        Verdict.CERTIFIED,
        [True],
    )


REPORTS = ["terminal", "html", "junit", "pull-request", "claims", "sarif", "github"]


@pytest.mark.parametrize("format", ["json", *REPORTS])
def test_every_report_marks_it(results, format):
    """And leaves what was judged unmarked."""
    words = "1 verdict rests on evidence that code of its audit"
    for name in ("certified", "run_audit"):
        found = replace(
            results[0][name], published=Published("a paper", "", "", "", "")
        )
        ledger = [LedgerEntry(found.id, "verdict", 0.05)]
        record = RunRecord(1, "complete", {}, {}, "", "", ledger, [found])
        text = render(record, format).replace("&#39;", "'")
        forged = name == "certified"
        if format == "json":
            assert ('"self_reported": true' in text) is forged
        else:
            assert (words in text) is forged
