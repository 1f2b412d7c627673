"""Streams, disks and the machine: what cannot be written or had is said in a line, and never ends as a finding does."""

from __future__ import annotations

import json
import resource
import shlex
import signal
import sys

import pytest

from tests.faults.catalogue import LEAKY
from tests.faults.conftest import WORKERS, results, script, shell

pytestmark = pytest.mark.faults
RUN = "auditdp run --budget quick --seed 1"


@pytest.fixture
def leaky(root):
    """A project whose audits are all refuted."""
    (root / "audits/audit_it.py").write_text(LEAKY)
    return root


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize(
    ("line", "codes"),
    [
        (f"{RUN} | head -1", {130}),
        (f"{RUN} --format json | true", {130}),
        (f"{RUN} > /dev/full", {3}),
        (f"{RUN} --format json > /dev/full", {3}),
        (f"{RUN} >&-", {1}),
        (f"{RUN} <&-", {1}),
        (f"{RUN} <&- >&- 2>&-", {1}),
        (f"PYTHONIOENCODING=latin-1 {RUN}", {1}),
        (f"PYTHONIOENCODING=ascii {RUN} --format json", {1}),
        (f"LC_ALL=C LANG=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 {RUN}", {1}),
        (f"ulimit -n 10; {RUN}", {3}),
        (f"mkdir gone; cd gone; rmdir ../gone; {RUN}", {3}),
    ],
)
def test_a_run_whose_surroundings_are_not_as_usual(leaky, line, codes, workers, see):
    done = shell(leaky, line.replace("auditdp run", f"auditdp run -n {workers}"))
    codes_of = " or ".join(f"exit code {code}" for code in sorted(codes))
    see(
        line.replace(RUN, "run").replace("LANG=C ", ""),
        codes_of,
        f"exit code {done.returncode}",
        workers=workers,
    )
    assert done.returncode in codes, done.stderr
    assert "Traceback" not in done.stderr
    if done.returncode == 1:
        kept = results(script(leaky, "report", "-f", "json"))
        assert [r["verdict"] for r in kept.values()] == ["VIOLATED"] * 4


@pytest.mark.parametrize(
    ("line", "codes"),
    [
        ("auditdp --help > /dev/full", {3}),
        ("auditdp --help | true", {0, 141}),
        ("auditdp list > /dev/full", {3}),
        ("auditdp list <&-", {0}),
        ("auditdp account gaussian --sigma 2 --delta 1e-5 > /dev/full", {3}),
    ],
)
def test_commands_that_audit_nothing(leaky, line, codes, see):
    done = shell(leaky, line)
    codes_of = " or ".join(f"exit code {code}" for code in sorted(codes))
    see(
        line.removeprefix("auditdp "),
        codes_of,
        f"exit code {done.returncode}" if len(codes) == 1 else "one of them",
    )
    assert done.returncode in codes, done.stderr
    assert "Traceback" not in done.stderr


def little_room(size: int):
    """Let no file of a process grow beyond so many bytes, which is what a full disk looks like to it."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


@pytest.mark.parametrize("workers", WORKERS)
def test_a_full_disk_is_one_line_and_what_was_finished_is_safe(leaky, workers, see):
    done = shell(leaky, f"{RUN} -n {workers}", preexec_fn=little_room(12_000))
    lines = [
        json.loads(line)
        for line in (leaky / ".auditdp/run.jsonl").read_text().splitlines()
    ]
    kept = [line for line in lines if line["kind"] == "result"]
    see(
        "no room for the log",
        "exit code 3, what was finished is kept",
        f"exit code {done.returncode}, {len(kept)} of 4 results kept",
        workers=workers,
    )
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr
    assert "cannot write the run's log" in done.stderr
    assert 0 < len(kept) < 4
    assert shell(leaky, f"{RUN} -n {workers} --resume").returncode == 1


@pytest.mark.parametrize("workers", WORKERS)
def test_no_room_for_a_report_leaves_the_last_one_whole(leaky, workers, see):
    assert shell(leaky, f"{RUN} --report html=page.html").returncode == 1
    before = (leaky / "page.html").read_bytes()
    done = shell(leaky, "auditdp report -o page.html", preexec_fn=little_room(9_000))
    whole = (leaky / "page.html").read_bytes() == before
    see(
        "no room for a report",
        "exit code 2, the last one is whole",
        f"exit code {done.returncode}, the last one is {'whole' if whole else 'lost'}",
        workers=workers,
    )
    assert (done.returncode, whole) == (2, True)
    assert "cannot write" in done.stderr
    assert not list(leaky.glob(".*.part"))


@pytest.mark.parametrize("workers", WORKERS)
def test_a_folder_for_temporary_files_with_a_long_name(leaky, workers, see, tmp_path):
    """Longer than the name of a socket may be."""
    folder = tmp_path / ("long" * 30)
    folder.mkdir(parents=True)
    done = script(leaky, *RUN.split()[1:], "-n", workers, TMPDIR=str(folder))
    see(
        "TMPDIR with a name of 120 letters",
        "exit code 1",
        f"exit code {done.returncode}",
        workers=workers,
    )
    assert done.returncode == 1, done.stderr
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


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("name", ["make_plan", "header", "report_files"])
def test_a_mistake_of_ours_is_no_finding(leaky, name, workers, see):
    (leaky / "broken.py").write_text(INTERNAL.replace("{name}", name))
    command = [
        sys.executable,
        "broken.py",
        *RUN.split()[1:],
        "-n",
        workers,
        "--report",
        "html=page.html",
    ]
    done = shell(leaky, shlex.join(command))
    see(
        f"a mistake in auditdp itself, in {name}",
        "exit code 3",
        f"exit code {done.returncode}",
        workers=workers,
    )
    assert done.returncode == 3
    assert "auditdp itself failed; this says nothing about any mechanism" in done.stderr
