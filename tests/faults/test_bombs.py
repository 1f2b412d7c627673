"""Bombs: an audit that takes all processes or all memory that it can get leaves the results of others as they are."""

import pytest

from auditdp.runner.sandbox import sandbox_of
from tests.cli.conftest import untimed
from tests.faults.catalogue import HEAD
from tests.faults.conftest import QUICK, results, script

HERE = sandbox_of("auto", network=False)
pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(
        not HERE.namespaces,
        reason="without namespaces no number of processes is kept to",
    ),
]
BESIDE = """
@audit()
def before():
    return Audit(coin, PureDP(1.0), BITS, calls=2000)

@audit(timeout=6)
def bomb():
    return Audit(explode, PureDP(1.0), BITS, calls=64)

@audit()
def leaks():
    return Audit(Response(2.0), PureDP(1.0), BITS, calls=2000)
"""
IN_ANOTHER_FILE = "\n@audit()\ndef elsewhere():\n    return Audit(coin, PureDP(1.0), BITS, calls=2000)\n"
QUIET = "return rng.integers(0, 2, size)"
# Its copies wait: the machine that runs this test has others to serve. Of copies that count, see the test of sessions.
FORKS = "while True:\n try:\n  if os.fork() == 0: time.sleep(60)\n except OSError: time.sleep(0.05)"
EATS = "held = []\nwhile True: held.append(bytearray(1 << 24))"
BOMBS = {"forks without end": FORKS, "takes memory without end": EATS}


def run(root, code, workers):
    """Run all audits with these statements in the one that may be a bomb; return the results by name."""
    body = code.replace("\n", "\n    ")
    bomb = f"\ndef explode(data, size, *, rng):\n    {body}\n"
    lines = (HEAD + bomb).count("\n")
    # Every audit stands in one line whatever the bomb is, since a record has the line.
    padding = "\n" * (30 + HEAD.count("\n") - lines)
    (root / "audits/audit_bombs.py").write_text(HEAD + bomb + padding + BESIDE)
    (root / "audits/audit_other.py").write_text(HEAD + IN_ANOTHER_FILE)
    options = f"--seed 1 --format json -n {workers} --max-memory 1G"
    return results(script(root, f"run {options}"))


@pytest.mark.parametrize("what", BOMBS)
def test_the_results_beside_a_bomb_are_those_without_it(root, what, workers, see):
    quiet, loud = (run(root, code, workers) for code in (QUIET, BOMBS[what]))
    verdict = loud.pop("bomb")["verdict"]
    quiet.pop("bomb")
    others = "unchanged" if untimed(loud) == untimed(quiet) else "changed"
    see(
        f"an audit that {what}",
        "ERROR, the others unchanged",
        f"{verdict}, the others {others}",
    )
    assert quiet["leaks"]["verdict"] == "VIOLATED"


SESSIONS = """
def shows(data, size, *, rng):
    print("session", os.getsid(0))
    return rng.integers(0, 2, size)

@audit()
def one():
    return Audit(shows, PureDP(1.0), BITS, calls=64)

@audit()
def other():
    return Audit(shows, PureDP(1.0), BITS, calls=64)
"""


def test_each_audit_is_a_session_so_that_one_with_many_processes_takes_no_more_time_than_another(
    root, see
):
    """Linux shares processors out between sessions first, then between the processes of each."""
    (root / "audits/audit_it.py").write_text(HEAD + SESSIONS)
    found = results(script(root, f"{QUICK} --format json"))
    one, other = (
        {*found[name]["printed"].split("\n")} - {""} for name in ("one", "other")
    )
    seen = "a session each" if one.isdisjoint(other) else "one session"
    see("many processes of one audit", "a session each", seen)
    assert len(one) == len(other) == 1
