"""Signals: whatever ends a run, what was finished is safe, nothing of it goes on, and it can be resumed."""

import json
import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import SCRIPT, environment, untimed
from tests.faults.catalogue import HEAD, LEAKY
from tests.faults.conftest import QUICK, lines_of, results, script, shell

pytestmark = [pytest.mark.faults, pytest.mark.usefixtures("without_sandbox")]

SLOW = (
    HEAD
    + """
@audit()
def first():
    return sound()

def slow(data, size, *, rng):
    Path("here").write_text(str(os.getpid()))
    ctypes.PyDLL(None).sleep(3600) if {native} else time.sleep(3600)

@audit()
def second():
    return Audit(slow, PureDP(1.0), BITS, calls=64)
"""
)


def heed_signals() -> None:
    """Ignore no signal, whatever whoever runs these tests ignores."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def started(root: Path, options: str, *, native: bool = False):
    """Start a run whose second audit takes for ever; return it, and the process of that audit."""
    (root / "audits/audit_it.py").write_text(SLOW.replace("{native}", str(native)))
    temporary, here = root / "tmp", root / "here"
    temporary.mkdir()
    process = subprocess.Popen(
        [SCRIPT, *QUICK.split(), *options.split()],
        cwd=root,
        env=environment() | {"TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heed_signals,
    )
    end = time.monotonic() + 90
    log = root / ".auditdp/run.jsonl"
    while not (here.exists() and here.read_text() and len(lines_of(log)) >= 2):
        assert time.monotonic() < end
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    return process, int(here.read_text())


def is_gone(pid: int, seconds: float = 10) -> bool:
    """Whether a process ends within ``seconds``."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


REPORTS = ("html", "json", "claims", "terminal")


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda n: n.name
)
def test_a_signal_ends_the_run_as_an_interrupt_does(short_root, number, workers, see):
    root = short_root
    reports = " ".join(f"--report={name}={name}.out" for name in REPORTS)
    native = number is signal.SIGTERM
    process, audit = started(root, f"-n {workers} {reports}", native=native)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    left = [*(root / "tmp").rglob("*")]
    ended = "end" if is_gone(audit) else "go on"
    see(
        f"{number.name} to the run",
        "exit code 130, workers end, 0 temporary files left",
        f"exit code {process.returncode}, workers {ended}, {len(left)} temporary files left",
        err,
    )
    assert "--resume" in err
    assert "Traceback" not in err
    kinds = [line["kind"] for line in lines_of(root / ".auditdp/run.jsonl")]
    assert kinds == ["header", "result", "end"]
    texts = {name: (root / f"{name}.out").read_text() for name in REPORTS}
    assert json.loads(texts["json"])["status"] == "interrupted"
    partial = [
        name for name in REPORTS if "1 of 2 audits" in " ".join(texts[name].split())
    ]
    see(
        "reports of an interrupted run",
        "html, claims, terminal say 1 of 2 audits",
        f"{', '.join(partial)} say 1 of 2 audits",
    )


@pytest.mark.parametrize("native", [False, True], ids=["python", "native"])
def test_workers_of_a_killed_run_end_and_leave_no_folder(
    short_root, workers, native, see
):
    root = short_root
    process, audit = started(root, f"-n {workers}", native=native)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=30)
    seen = "end within seconds" if is_gone(audit) else "go on"
    what = "native code" if native else "Python"
    see(f"SIGKILL to the run: its workers, in {what}", "end within seconds", seen)
    end = time.monotonic() + 10
    while list((root / "tmp").iterdir()):
        assert time.monotonic() < end, list((root / "tmp").rglob("*"))
        time.sleep(0.05)
    kept = results(script(root, "report -f json"))
    assert [r["verdict"] for r in kept.values()] == ["CERTIFIED"]


def begun_by(run: int) -> list[int]:
    """Return the processes that a run has started, directly or not."""
    parents = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            parents[int(place.parent.name)] = int(
                place.read_text().rpartition(")")[2].split()[1]
            )
    found = [run]
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return found[1:]


@pytest.mark.parametrize("victim", ["the run", "one of its processes"])
def test_kills_at_random_moments_resume_to_the_same_record(
    root, workers, victim, see, pytestconfig
):
    """Two moments for each victim and number of workers here, and 25 with ``--full``."""
    slow = "def factory():\n        time.sleep(0.7)\n"
    text = LEAKY.replace("def factory():\n", slow)
    (root / "audits/audit_it.py").write_text(text)
    run = f"{QUICK} --format json -n {workers}"
    began = time.monotonic()
    expected = results(script(root, f"{run} --log whole.jsonl"))
    duration = time.monotonic() - began
    moments = 25 if pytestconfig.getoption("--full") else 2
    log = root / ".auditdp/run.jsonl"
    draw = np.random.default_rng(int(workers))
    same, died, finished = 0, 0, []
    for moment in draw.uniform(0.0, duration, moments):
        log.unlink(missing_ok=True)
        process = subprocess.Popen(
            [SCRIPT, *run.split()],
            cwd=root,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(moment)
        killed = process.pid
        if victim != "the run":
            killed = int(draw.choice([process.pid, *begun_by(process.pid)]))
        with suppress(ProcessLookupError):
            os.kill(killed, signal.SIGKILL)
        process.wait(timeout=120)
        lines = lines_of(log) if log.exists() else []
        before = [line["result"]["id"] for line in lines if line["kind"] == "result"]
        finished.append(len(before))
        again = results(script(root, f"{run} {'--resume' if lines else ''}"))
        # An audit whose process was killed says so.
        lost = [each for each in again.values() if each["verdict"] == "ERROR"]
        for each in lost:
            assert "died" in each["summary"] or "SIGKILL" in each["summary"], each
        died += len(lost)
        assert len(set(before)) == len(before)
        assert len(again) == len(expected)
        same += all(
            untimed(each) == untimed(expected[name])
            for name, each in again.items()
            if each not in lost
        )
    see(
        f"SIGKILL to {victim} at random moments, then --resume",
        f"the same {moments} of {moments} times",
        f"the same {same} of {moments} times; {min(finished)} to {max(finished)} of {len(expected)} audits were finished; "
        f"{died} ended with an ERROR",
    )
    assert victim != "the run" or not died


LAST = """
@audit()
def last():
    if Path("deadly").exists():
        while Path(".auditdp/run.jsonl").read_bytes().count(b"\\n") < 5:  # a header and four results
            time.sleep(0.05)
        os.kill(int(Path("deadly").read_text()), 9)
        time.sleep(60)
    return sound()
"""


def test_resuming_repeats_the_findings_of_before(root, workers, see):
    """The last audit kills the run when the others are finished; resumed without that wish, it is certified."""
    (root / "audits/audit_it.py").write_text(LEAKY + LAST)
    run = f"{QUICK} -n {workers}"
    killed = shell(root, f"echo $$ > deadly; exec auditdp {run}")
    assert killed.returncode == -signal.SIGKILL
    (root / "deadly").unlink()
    again = script(root, f"{run} --resume")
    repeated = again.stdout.count("VIOLATED      audits")
    see(
        "--resume after findings",
        "4 findings printed again, exit code 1",
        f"{repeated} findings printed again, exit code {again.returncode}",
    )
    assert "finished before the interruption: 4" in again.stdout
