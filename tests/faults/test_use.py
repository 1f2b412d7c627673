"""Use: what cannot be meant is refused before anything runs, and every way of ending has its own exit code."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from tests.cli.conftest import SCRIPT, environment
from tests.faults.conftest import WORKERS, on_terminal

pytestmark = pytest.mark.faults
AUDITS = """
BITS = AnyValues((0, 1))

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
"""


@pytest.fixture(params=WORKERS)
def workers(request):
    return request.param


@pytest.fixture
def three(project):
    project.audits(AUDITS)
    return project


@pytest.mark.parametrize(
    "arguments",
    [
        ("nosuch",),
        ("audits/audit_it.py::frist",),
        ("-k", "and and"),
        ("-P", "epsilon"),
        ("-P", "epsilom=2"),
        ("-P", "epsilon=much"),
        ("-n", "0"),
        ("-n", "many"),
        ("--alpha", "nan"),
        ("--alpha", "1"),
        ("--seed", "-1"),
        ("--budget", "quik"),
        ("--timeout", "0"),
        ("--timeout", "inf"),
        ("--collection-timeout", "nan"),
        ("--max-memory", "2X"),
        ("--max-memory", "0"),
        ("--report", "page.html"),
        ("--report", "pdf=page.pdf"),
        ("--report", "html=audits"),
        ("--format", "pdf"),
        ("--data", "nosuch"),
        ("--log", "audits"),
        ("--log", "x" * 300),
        ("--fail-on", "warnings"),
        ("--resume",),
        ("--last-failed",),
        ("--nosuch",),
    ],
    ids=" ".join,
)
def test_what_cannot_be_meant_is_refused(three, arguments, workers, see):
    seen = three("run", "-n", workers, *arguments)
    what = " ".join(arguments)
    see(
        f"run {what if len(what) < 80 else what[:40] + '…'}",
        "exit code 2",
        f"exit code {seen.code}",
        workers=workers,
    )
    assert seen.code == 2
    assert "Traceback" not in seen.err
    assert (
        not three.root.joinpath(".auditdp/run.jsonl").exists()
        or not (three.root / ".auditdp/run.jsonl").stat().st_size
    )


@pytest.mark.parametrize(
    "text",
    [
        "[tool.auditdp",
        "tool.auditdp = 3",
        "[tool.auditdp]\nalpha = '5'",
        "[tool.auditdp]\nx = 1",
        "\x00",
    ],
)
def test_a_project_file_that_cannot_be_used_is_refused(three, text, workers, see):
    three.write("pyproject.toml", text)
    seen = three("run", "-n", workers)
    see(
        f"pyproject.toml with {text!r}",
        "exit code 2",
        f"exit code {seen.code}",
        workers=workers,
    )
    assert seen.code == 2
    assert "pyproject.toml" in seen.err


@pytest.mark.parametrize(
    ("selected", "options", "code"),
    [
        ("skipped", (), 5),
        ("skipped or first", ("--fail-on", "skipped"), 1),
        ("skipped or fine", (), 0),
        ("skipped or fine", ("--fail-on", "skipped"), 4),
        ("undecided", (), 0),
        ("undecided", ("--fail-on", "inconclusive"), 4),
        ("crashes or fine", (), 3),
        (
            "crashes or undecided",
            ("--fail-on", "inconclusive", "--fail-on", "error"),
            3,
        ),
        ("nothing", (), 5),
    ],
)
def test_every_ending_has_its_exit_code(project, selected, options, code, workers, see):
    project.audits(
        AUDITS
        + UNDECIDED
        + AUDITS.partition("@audit()\ndef holds")[2].join(("@audit()\ndef fine", ""))
    )
    seen = project(
        "run",
        "--seed",
        "1",
        "--budget",
        "quick",
        "-n",
        workers,
        "-k",
        selected,
        *options,
    )
    see(
        f"run -k '{selected}' {' '.join(options)}".strip(),
        f"exit code {code}",
        f"exit code {seen.code}",
        workers=workers,
    )
    assert seen.code == code, seen.out + seen.err


def test_stopping_at_the_first_finding_and_going_on(three, workers, see):
    stopped = three.run("-n", workers, "-x")
    found = [r["id"] for r in stopped.record["results"]]
    see(
        "-x",
        "stops after 1 finding, exit code 1",
        f"stops after {len(found)} finding, exit code {stopped.code}",
        workers=workers,
    )
    assert (stopped.code, len(found)) == (1, 1)
    assert stopped.record["status"] == "interrupted"
    rest = three.run("-n", workers, "--resume")
    assert len(rest.record["results"]) == 3
    again = three.run("-n", workers, "--last-failed")
    failed = [r["id"].rpartition("::")[2] for r in again.record["results"]]
    see(
        "--last-failed after 2 findings of 3",
        "first, second",
        ", ".join(failed),
        workers=workers,
    )
    assert failed == ["first", "second"]


@pytest.mark.parametrize(
    ("option", "shown"),
    [("-q", "2 audits, no summary"), ("-v", "3 audits, what they print")],
)
def test_less_and_more_is_printed(three, option, shown, workers, see):
    seen = three("run", "--seed", "1", "--budget", "quick", "-n", workers, option)
    audits = sum(f"::{name}  " in seen.out for name in ("first", "second", "holds"))
    parts = [f"{audits} audits"] + ["what they print"] * ("printed by it" in seen.out)
    parts += ["no summary"] * ("verdicts " not in seen.out)
    see(option, shown, ", ".join(parts), workers=workers)
    assert ", ".join(parts) == shown


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
    "arguments",
    [
        ("--version",),
        ("--help",),
        ("list",),
        ("account", "gaussian", "--sigma", "2", "--delta", "1e-5"),
    ],
    ids=" ".join,
)
def test_starting_up_costs_little(three, arguments, see):
    """CPU seconds of the command itself, the least of three times, and of an empty loop, which shows how busy it is here."""
    loop = [sys.executable, "-c", "for _ in range(10_000_000): pass"]
    least, steps = (
        min(cpu_seconds(three.root, command) for _ in range(3))
        for command in ([SCRIPT, *arguments], loop)
    )
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *arguments],
        cwd=three.root,
        env=environment(),
        capture_output=True,
        text=True,
    )
    see(
        f"start-up of {arguments[0]}",
        "under 0.5 s of CPU, or what 25 million steps of an empty loop take where that is more",
        f"{least:.2f} s; 10 million steps take {steps:.2f} s",
    )
    assert done.stderr.split() == []
    assert least < max(0.5, 2.5 * steps)


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
    done = subprocess.run(
        [sys.executable, "notebook.py"],
        cwd=project.root,
        env=environment(),
        capture_output=True,
        text=True,
    )
    seen = done.stdout.strip()
    see(
        "auditdp.check of a false claim",
        "VIOLATED, and no exception",
        seen.partition(" ")[0],
    )
    see(
        "an interrupt of auditdp.check",
        "keeps what there is",
        "keeps what there is" if seen.endswith("True True") else seen,
    )
    assert seen == "VIOLATED NOT_REFUTED True True", done.stderr


def test_help_fits_a_narrow_terminal(three, see):
    code, text = on_terminal(three.root, 40, "run", "--help")
    see("run --help on 40 columns", "exit code 0", f"exit code {code}")
    assert code == 0
    assert "--resume" in text
