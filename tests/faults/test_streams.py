"""Streams, disks and the machine: what cannot be written or had is said in a line, and never ends as a finding does."""

import resource
import signal
import sys

import pytest

from tests.faults.catalogue import LEAKY
from tests.faults.conftest import QUICK, lines_of, results, script, shell

pytestmark = pytest.mark.faults
RUN = f"auditdp {QUICK}"


@pytest.fixture
def leaky(root):
    """A project whose audits are all refuted."""
    (root / "audits/audit_it.py").write_text(LEAKY)
    return root


def ended_as(see, fault, code, done):
    """Compare the exit code of a line with one of those that are expected of it."""
    codes = code.split(" or ")
    is_expected = f"exit code {done.returncode}" in codes
    seen = code if is_expected else f"exit code {done.returncode}"
    see(fault, code, seen, done.stderr)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (f"{RUN} | head -1", 130),
        (f"{RUN} --format json | true", 130),
        (f"{RUN} > /dev/full", 3),
        (f"{RUN} --format json > /dev/full", 3),
        (f"{RUN} >&-", 1),
        (f"{RUN} <&-", 1),
        (f"{RUN} <&- >&- 2>&-", 1),
        (f"PYTHONIOENCODING=latin-1 {RUN}", 1),
        (f"PYTHONIOENCODING=ascii {RUN} --format json", 1),
        (f"LC_ALL=C LANG=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 {RUN}", 1),
        (f"ulimit -n 10; {RUN}", 3),
        (f"mkdir gone; cd gone; rmdir ../gone; {RUN}", 3),
    ],
)
def test_a_run_whose_surroundings_are_not_as_usual(leaky, line, code, workers, see):
    done = shell(leaky, line.replace("auditdp run", f"auditdp run -n {workers}"))
    fault = line.replace(RUN, "run").replace("LANG=C ", "")
    ended_as(see, fault, f"exit code {code}", done)
    if code == 1:
        kept = results(script(leaky, "report -f json"))
        assert [r["verdict"] for r in kept.values()] == ["VIOLATED"] * 4


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("--help > /dev/full", "exit code 3"),
        ("--help | true", "exit code 0 or exit code 141"),
        ("list > /dev/full", "exit code 3"),
        ("list <&-", "exit code 0"),
        ("account gaussian --sigma 2 --delta 1e-5 > /dev/full", "exit code 3"),
    ],
)
def test_commands_that_audit_nothing(leaky, line, code, see):
    ended_as(see, line, code, shell(leaky, f"auditdp {line}"))


def little_room(size: int):
    """Let no file of a process have more than ``size`` bytes, which is what a full disk looks like to it."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


def test_a_full_disk_is_one_line_and_what_was_finished_is_safe(leaky, workers, see):
    done = shell(leaky, f"{RUN} -n {workers}", preexec_fn=little_room(12_000))
    lines = lines_of(leaky / ".auditdp/run.jsonl")
    kept = [line for line in lines if line["kind"] == "result"]
    see("no room for the log", "exit code 3", f"exit code {done.returncode}")
    assert "Traceback" not in done.stderr
    assert "cannot write the run's log" in done.stderr
    assert 0 < len(kept) < 4
    assert shell(leaky, f"{RUN} -n {workers} --resume").returncode == 1


def test_no_room_for_a_report_leaves_the_last_one_whole(leaky, workers, see):
    first = shell(leaky, f"{RUN} -n {workers} --report html=page.html")
    assert first.returncode == 1
    before = (leaky / "page.html").read_bytes()
    done = shell(leaky, "auditdp report -o page.html", preexec_fn=little_room(9_000))
    whole = "whole" if (leaky / "page.html").read_bytes() == before else "lost"
    see(
        "no room for a report",
        "exit code 2, the last one is whole",
        f"exit code {done.returncode}, the last one is {whole}",
    )
    assert "cannot write" in done.stderr
    assert not list(leaky.glob(".*.part"))


def test_a_folder_for_temporary_files_with_a_long_name(leaky, workers, see, tmp_path):
    """Longer than the name of a socket may be."""
    folder = tmp_path / ("long" * 30)
    folder.mkdir(parents=True)
    done = script(leaky, f"{QUICK} -n {workers}", TMPDIR=str(folder))
    seen = f"exit code {done.returncode}"
    see("TMPDIR with a name of 120 letters", "exit code 1", seen, done.stderr)
    assert not list(folder.iterdir())


INTERNAL = """
import sys
import auditdp.cli.running as running
def fails(*arguments, **options):
    raise ZeroDivisionError("a mistake of ours")
running.{name} = fails
sys.argv = ["auditdp", *sys.argv[1:]]
from auditdp.cli import main
main()
"""


@pytest.mark.parametrize("name", ["make_plan", "header", "report_files"])
def test_a_mistake_of_ours_is_no_finding(leaky, name, workers, see):
    (leaky / "broken.py").write_text(INTERNAL.replace("{name}", name))
    command = f"{sys.executable} broken.py {QUICK} -n {workers} --report html=p.html"
    done = shell(leaky, command)
    seen = f"exit code {done.returncode}"
    see(f"a mistake in auditdp itself, in {name}", "exit code 3", seen)
    assert "auditdp itself failed; this says nothing about any mechanism" in done.stderr
