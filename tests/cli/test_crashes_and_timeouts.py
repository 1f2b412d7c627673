"""An audit that hangs or kills its process costs only itself."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.dear

LIMIT = 1.0
AUDITS = """
BITS = AnyValues((0, 1))

def sound():
    return Audit(Response(0.5), PureDP(1.0), BITS, evidence=["exact"])

def sleeps(data, size, *, rng):
    time.sleep(3600)

def spins(data, size, *, rng):
    while True:
        pass

@audit()
def first():
    return sound()

@audit()
def hangs_asleep():
    return Audit(sleeps, PureDP(1.0), BITS, calls=100)

@audit()
def hangs_awake():
    return Audit(spins, PureDP(1.0), BITS, calls=100)

@audit()
def hangs_in_its_factory():
    time.sleep(3600)

@audit()
def last():
    return sound()
"""
DEADLY = """
import signal

def segfaults(data, size, *, rng):
    os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(60)

def deaf(data, size, *, rng):
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])  # as good as native code that never returns
    time.sleep(3600)

@audit()
def beside():
    return sound()

@audit(expect="violation")
def crashes():
    return Audit(segfaults, PureDP(1.0), BITS, calls=100)

@audit()
def stuck():
    return Audit(deaf, PureDP(1.0), BITS, calls=100)

@audit()
def after():
    return sound()
"""
HANGING = ("hangs_asleep", "hangs_awake", "hangs_in_its_factory")


def is_timeout(found, seconds):
    return found["verdict"] == "ERROR" and all(
        words in found["summary"]
        for words in (found["id"], f"stopped after {seconds:g} seconds", "--timeout")
    )


def test_an_audit_that_hangs_is_stopped_and_the_next_one_runs(project):
    project.audits(AUDITS)
    outcome = project.run("--timeout", str(LIMIT))
    assert outcome.code == 3
    for name in HANGING:
        assert is_timeout(outcome.audit(name), LIMIT)
        assert LIMIT <= outcome.audit(name)["seconds"] < LIMIT + 5
    assert (
        outcome.audit("first")["verdict"]
        == outcome.audit("last")["verdict"]
        == "CERTIFIED"
    )


@pytest.mark.full
def test_with_workers_an_audit_that_hangs_or_kills_its_process_costs_only_itself(
    project,
):
    project.audits(AUDITS + DEADLY)
    outcome = project.run("-n", "2", "--timeout", str(LIMIT))
    assert (outcome.code, outcome.record["status"]) == (3, "complete")
    order = [r["id"].partition("::")[2] for r in outcome.record["results"]]
    assert order == ["first", *HANGING, "last", "beside", "crashes", "stuck", "after"]
    for name in ("first", "last", "beside", "after"):
        assert outcome.audit(name)["verdict"] == "CERTIFIED", outcome.audit(name)[
            "summary"
        ]
    for name in HANGING:
        assert is_timeout(outcome.audit(name), LIMIT), outcome.audit(name)["summary"]
    assert is_timeout(outcome.audit("stuck"), LIMIT), outcome.audit("stuck")["summary"]
    assert (
        "the process that ran it died (killed by SIGSEGV)"
        in outcome.audit("crashes")["summary"]
    )
    for name in ("crashes", "stuck"):
        found = outcome.audit(name)
        assert found["verdict"] == "ERROR"
        assert found["summary"].startswith(f"audits/audit_it.py::{name}: ")
        assert found["expected"] == ("violation" if name == "crashes" else "holds")
        assert found["alpha"] == pytest.approx(0.05 / 9)
        assert found["reproduce"].startswith(f"auditdp run audits/audit_it.py::{name} ")


def test_an_audit_that_declares_its_own_limit_keeps_it(project):
    """``@audit(timeout=...)`` holds unless the command line says otherwise; settings are for audits that say nothing."""
    project.write("pyproject.toml", "[tool.auditdp]\ntimeout = 3")
    project.audits(
        AUDITS.replace(
            "@audit()\ndef hangs_asleep", "@audit(timeout=0.5)\ndef hangs_asleep"
        )
    )
    found = project.run("-k", "hangs_asleep").audit("hangs_asleep")
    assert is_timeout(found, 0.5)


def test_the_command_line_beats_the_limit_that_an_audit_declares(project):
    project.audits(
        AUDITS.replace(
            "@audit()\ndef hangs_asleep", "@audit(timeout=3600)\ndef hangs_asleep"
        )
    )
    assert is_timeout(
        project.run("-k", "hangs_asleep", "--timeout", "0.5").audit("hangs_asleep"), 0.5
    )


def test_a_mechanism_that_swallows_every_exception_is_stopped_too(project):
    """Retrying after any exception is common where a mechanism talks to a database or a server."""
    project.audits(
        """
        END = time.monotonic() + 8

        def stubborn(data, size, *, rng):
            while time.monotonic() < END:
                try:
                    time.sleep(0.1)
                except Exception:
                    pass
            return rng.integers(0, 2, size)

        @audit()
        def retries():
            return Audit(stubborn, PureDP(1.0), AnyValues((0, 1)), calls=100)
        """
    )
    found = project.run("--timeout", "0.5").audit("retries")
    assert is_timeout(found, 0.5)
    assert found["seconds"] < 5
