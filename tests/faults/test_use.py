"""Use: what cannot be meant is refused before anything runs, and every way of ending has its own exit code."""

import resource
import subprocess
import sys

import pytest

from tests.cli.conftest import SCRIPT, environment
from tests.cli.test_refusals import (  # noqa: F401 - a fixture is among them
    SETTINGS,
    TABLES,
    content,
    everything,
    refusals,
)
from tests.faults.conftest import QUICK, on_terminal, run

pytestmark = pytest.mark.faults
AUDITS = """
@audit()
def first(epsilon=1.0):
    return Audit(Response(2.0), PureDP(epsilon), BITS, evidence=["exact"])

@audit()
def second():
    return Audit(Response(2.0), PureDP(1.0), BITS, evidence=["exact"])

@audit()
def holds():
    print("printed by it")
    return Audit(Response(0.5), PureDP(1.0), BITS, evidence=["exact"])
"""
UNDECIDED = """
@audit()
def skipped():
    raise Skip("needs a CUDA device")

class Crowd:
    '''Tells the input where it is called for many outputs at once, and not one by one.'''

    def __call__(self, data, size, *, rng):
        return np.full(size, data if size > 1 else 0)

@audit()
def undecided():
    return Audit(Crowd(), PureDP(1.0), AnyValues((0, 1)), calls=600)

@audit()
def crashes():
    raise ValueError

@audit()
def fine():
    return Audit(Response(0.5), PureDP(1.0), BITS, evidence=["exact"])
"""


@pytest.fixture
def three(project):
    project.audits(AUDITS)
    return project


def test_what_cannot_be_meant_is_refused(everything, workers, see):  # noqa: F811
    """The commands of the table of refusals, whose messages the tests of the command line read."""
    before = content(everything.root)
    for command, _ in refusals(TABLES["run"], 1):
        options = "" if " -n " in command else f" -n {workers}"
        done = everything(command + options)
        what = command if len(command) < 80 else f"{command[:40]}…"
        see(what, "exit code 2", f"exit code {done.code}", done.text)
        assert "Traceback" not in done.err
    assert content(everything.root) == before


def test_a_project_file_that_cannot_be_used_is_refused(three, workers, see):
    for text in SETTINGS:
        three.write("pyproject.toml", text)
        seen = three(f"run -n {workers}")
        code = f"exit code {seen.code}"
        see(f"pyproject.toml with {text!r}", "exit code 2", code, seen.text)


ENDINGS = {
    "-k skipped": 5,
    "-k 'skipped or first' --fail-on skipped": 1,
    "-k 'skipped or fine'": 0,
    "-k 'skipped or fine' --fail-on skipped": 4,
    "-k undecided": 4,
    "-k undecided --fail-on inconclusive": 4,
    "-k 'crashes or fine'": 3,
    "-k 'crashes or undecided' --fail-on inconclusive --fail-on error": 3,
    "-k nothing": 5,
}


def test_every_ending_has_its_exit_code(project, workers, see):
    project.audits(AUDITS + UNDECIDED)
    for options, code in ENDINGS.items():
        seen = project(f"{QUICK} -n {workers} {options}")
        see(f"run {options}", f"exit code {code}", f"exit code {seen.code}", seen.text)


def test_stopping_at_the_first_finding_and_going_on(three, workers, see):
    stopped = three.run(f"-n {workers} -x")
    see(
        "-x",
        "stops after 1 finding, exit code 1",
        f"stops after {len(stopped.names)} finding, exit code {stopped.code}",
    )
    assert stopped.record["status"] == "interrupted"
    assert len(three.run(f"-n {workers} --resume").names) == 3
    again = ", ".join(three.run(f"-n {workers} --last-failed").names)
    see("--last-failed after 2 findings of 3", "first, second", again)


@pytest.mark.parametrize(
    ("option", "shown"),
    [("-q", "2 audits, no summary"), ("-v", "3 audits, what they print")],
)
def test_less_and_more_is_printed(three, option, shown, workers, see):
    seen = three(f"{QUICK} -n {workers} {option}").out
    audits = sum(f"::{name}  " in seen for name in ("first", "second", "holds"))
    parts = [f"{audits} audits"] + ["what they print"] * ("printed by it" in seen)
    parts += ["no summary"] * ("verdicts " not in seen)
    see(option, shown, ", ".join(parts))


LOADED = """
import sys, auditdp.cli
sys.argv = ["auditdp", *sys.argv[1:]]
try:
    auditdp.cli.main()
except SystemExit:
    pass
print(*[name for name in ("scipy.stats", "auditdp.bounds", "sklearn", "matplotlib") if name in sys.modules], file=sys.stderr)
"""


@pytest.mark.parametrize(
    "command",
    ["--version", "--help", "list", "account gaussian --sigma 2 --delta 1e-5"],
)
def test_starting_up_costs_little(three, command, see):
    """CPU seconds of the command itself, the least of three times, and of an empty loop, which shows how busy it is here."""
    loop = [sys.executable, "-c", "for _ in range(10_000_000): pass"]
    least, steps = (
        min(cpu_seconds(three.root, words) for _ in range(3))
        for words in ([SCRIPT, *command.split()], loop)
    )
    loads = [sys.executable, "-c", LOADED, *command.split()]
    assert run(loads, three.root, {}).stderr.split() == []
    see(
        f"start-up of {command.partition(' ')[0]}",
        "under 0.5 s of CPU, or what 25 million steps of an empty loop take where that is more",
        "under 0.5 s of CPU, or what 25 million steps of an empty loop take where that is more"
        if least < max(0.5, 2.5 * steps)
        else f"{least:.2f} s; 10 million steps take {steps:.2f} s",
    )


def cpu_seconds(folder, command) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


CHECK = """
import os, signal, numpy as np
from auditdp import PureDP, check

def leaks(data, size, *, rng):
    return data + rng.laplace(scale=0.5, size=size)

def slow(data, size, *, rng):
    global calls
    calls += size
    if calls > 3_000:
        calls = -10**9
        os.kill(os.getpid(), signal.SIGINT)
    return data + rng.laplace(scale=2.0, size=size)

calls = 0
found = check(leaks, PureDP(1.0), [(0, 1)], calls=5_000)
early = check(slow, PureDP(1.0), [(0, 1)], calls=50_000)
print(found.verdict, early.verdict, early.interrupted, 0 < early.calls < 50_000)
"""


def test_a_check_raises_on_no_finding_and_keeps_what_it_has(project, see):
    project.write("notebook.py", CHECK)
    done = run([sys.executable, "notebook.py"], project.root, {})
    found, *interrupted = done.stdout.split()
    see("auditdp.check of a false claim", "VIOLATED", found)
    kept = interrupted == ["NOT_REFUTED", "True", "True"]
    seen = "keeps what there is" if kept else done.stdout
    see("an interrupt of auditdp.check", "keeps what there is", seen, done.stderr)


def test_help_fits_a_narrow_terminal(three, see):
    code, text = on_terminal(three.root, 40, "run --help")
    see("run --help on 40 columns", "exit code 0", f"exit code {code}")
    assert "--resume" in text
