"""An audit that hangs or kills its process costs only itself; a time limit ends one with the verdict of what was played."""

import pytest

pytestmark = pytest.mark.dear

LIMIT = 1.0
AUDITS = """
import signal

END = time.monotonic() + 8

def sound():
    return Audit(Response(0.5), PureDP(1.0), BITS, evidence=["exact"])

def sleeps(data, size, *, rng):
    time.sleep(3600)

def spins(data, size, *, rng):
    while True:
        pass

def stubborn(data, size, *, rng):
    while time.monotonic() < END:  # as where a mechanism talks to a server
        try:
            time.sleep(0.1)
        except Exception:
            pass
    return rng.integers(0, 2, size)

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
def retries():
    return Audit(stubborn, PureDP(1.0), BITS, calls=100)

@audit(timeout=0.5)
def with_its_own_limit():
    return Audit(sleeps, PureDP(1.0), BITS, calls=100)

@audit()
def last():
    return sound()
"""
DEADLY = """
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
HANGING = ("hangs_asleep", "hangs_awake", "hangs_in_its_factory", "retries")


def is_timeout(found, seconds):
    words = (found["id"], f"stopped after {seconds:g} seconds", "--timeout")
    stopped = all(each in found["summary"] for each in words)
    return found["verdict"] == "ERROR" and stopped


def test_an_audit_that_hangs_is_stopped_and_the_next_one_runs(project):
    """An audit's own limit holds against the settings, and the command line against both."""
    project.write("pyproject.toml", f"[tool.auditdp]\ntimeout = {LIMIT}")
    project.audits(AUDITS)
    outcome = project.run()
    assert outcome.code == 3
    for name in HANGING:
        assert is_timeout(outcome.audit(name), LIMIT)
        assert LIMIT <= outcome.audit(name)["seconds"] < LIMIT + 5
    assert is_timeout(outcome.audit("with_its_own_limit"), 0.5)
    for name in ("first", "last"):
        assert outcome.audit(name)["verdict"] == "CERTIFIED"
    shorter = project.run("-k own --timeout 0.3").audit("with_its_own_limit")
    assert is_timeout(shorter, 0.3)


@pytest.mark.full
def test_with_workers_an_audit_that_kills_its_process_costs_only_itself(project):
    project.audits(AUDITS + DEADLY)
    outcome = project.run("-n 2 --timeout 1")
    assert (outcome.code, outcome.record["status"]) == (3, "complete")
    own = "with_its_own_limit"
    expected = ["first", *HANGING, own, "last", "beside", "crashes", "stuck", "after"]
    assert outcome.names == expected
    for name in ("first", "last", "beside", "after"):
        assert outcome.audit(name)["verdict"] == "CERTIFIED", name
    for name in (*HANGING, "stuck"):
        assert is_timeout(outcome.audit(name), LIMIT), outcome.audit(name)["summary"]
    died = "the process that ran it died (killed by SIGSEGV)"
    assert died in outcome.audit("crashes")["summary"]
    for name, expected in (("crashes", "violation"), ("stuck", "holds")):
        found = outcome.audit(name)
        assert (found["verdict"], found["expected"]) == ("ERROR", expected)
        assert found["summary"].startswith(f"audits/audit_it.py::{name}: ")
        assert found["alpha"] == pytest.approx(0.05 / len(outcome.names))
        assert found["reproduce"].startswith(f"auditdp run audits/audit_it.py::{name} ")


PLAYED_FOR = 12.0
SLOW = """
def slow(scale):
    def count(value, rng):
        time.sleep(0.005)
        return value + rng.laplace(scale=scale)

    return count

def hangs(value, rng):
    if rng.random() < 0.002:
        time.sleep(3600)
    return value + rng.laplace(scale=1.5)

def transcript(value, rng):
    answers = []
    for _ in range(200):  # each question depends on the answers before
        shift = 1.0 if sum(answers[-3:]) > 15 else 0.0
        answers.append(value + shift + rng.laplace(scale=30.0))
    return sorted(answers)

@audit()
def leaks():
    return Audit(slow(0.2), PureDP(1.0), [(5, 6)])

@audit()
def holds():
    return Audit(slow(1.5), PureDP(1.0), [(5, 6)], controls=[slow(0.2)])

@audit()
def hangs_at_times():
    return Audit(hangs, PureDP(1.0), [(5, 6)], evidence=["game"])

@audit()
def fifty_answers():
    return Audit(transcript, PureDP(1.0), [(5, 8)])
"""


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("leaks", "VIOLATED"),
        ("holds", "NOT_REFUTED"),
        ("hangs_at_times", "NOT_REFUTED"),
        ("fifty_answers", "VIOLATED"),
    ],
)
def test_what_was_played_before_a_time_limit_stands(project, name, verdict):
    project.audits(SLOW)
    options = f"--timeout {PLAYED_FOR} --seed 4 --format json"
    result = project(f"run audits/audit_it.py::{name} {options}").audit(name)
    assert result["verdict"] == verdict, result
    (game,) = (each for each in result["evidence"] if each["kind"] == "game")
    assert 0 < game["calls"] <= result["calls"] < 50_000
    assert result["seconds"] < PLAYED_FOR + 1
    if verdict == "NOT_REFUTED":
        notices = " ".join(game["details"]["notices"])
        assert "time limit ended the game" in notices
