"""Folders: a project, a log or temporary files where nothing can be written end in one line that names the remedy."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

from auditdp.files import write_together
from auditdp.runner.run_record import read_log
from tests.cli.conftest import SCRIPT, environment
from tests.faults.catalogue import HEAD
from tests.faults.conftest import WORKERS

pytestmark = [pytest.mark.faults, pytest.mark.usefixtures("without_sandbox")]
RUN = ("run", "--seed", "1", "--budget", "quick")
AUDITS = HEAD + "@audit()\ndef holds():\n    return sound()\n"
RESULTS_OF_A_RUN = 1


@pytest.fixture
def place(root):
    """A project with one audit, and its finished run."""
    (root / "audits/audit_it.py").write_text(AUDITS)
    assert auditdp(root, *RUN).returncode == 0
    return root


def auditdp(folder, *arguments, limit=None, **variables):
    """Run the script to its end."""
    return subprocess.run(
        [SCRIPT, *arguments],
        cwd=folder,
        env=environment() | variables,
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=limit,
    )


def without_writing(folder, prefix, *arguments):
    """Run the script where the folders of ``prefix`` can be read only, which binds root too."""
    if (
        shutil.which("unshare") is None
        or subprocess.run(["unshare", "-rm", "true"], check=False).returncode
    ):
        pytest.skip("no mount namespaces here")
    steps = [
        f"mount --bind {path} {path} && mount -o remount,ro,bind {path}"
        for path in prefix
    ]
    line = " && ".join([*steps, f"cd {folder}", f'exec {SCRIPT} "$@"'])
    return subprocess.run(
        ["unshare", "-rm", "bash", "-c", line, "auditdp", *arguments],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )


def no_file_grows():
    """Let no file have more than 100 bytes, which is how a full disk looks to a process."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))


@pytest.mark.parametrize("has_ignore_file", [True, False])
@pytest.mark.parametrize("workers", WORKERS)
def test_a_folder_of_logs_that_is_read_only_names_the_option_for_another(
    place, has_ignore_file, workers, see
):
    logs = place / ".auditdp"
    if not has_ignore_file:
        (logs / ".gitignore").unlink()
    seen = without_writing(place, [logs], *RUN, "-n", workers)
    see(
        "a folder of logs that is read-only",
        "exit code 2",
        f"exit code {seen.returncode}",
        workers=workers,
    )
    assert seen.returncode == 2, seen.stderr
    assert (
        ".auditdp/run.jsonl: Read-only file system; give another --log" in seen.stderr
    )
    assert "Traceback" not in seen.stderr


@pytest.mark.parametrize("workers", WORKERS)
def test_a_project_that_is_read_only_is_audited_with_a_log_elsewhere(
    place, tmp_path, workers, see
):
    refused = without_writing(place, [place], *RUN, "-n", workers)
    seen = without_writing(
        place, [place], *RUN, "-n", workers, "--log", str(tmp_path / "run.jsonl")
    )
    codes = f"exit codes {refused.returncode} and {seen.returncode}"
    see(
        "a project that is read-only, then --log elsewhere",
        "exit codes 2 and 0",
        codes,
        workers=workers,
    )
    assert (refused.returncode, seen.returncode) == (2, 0), refused.stderr + seen.stderr
    assert "give another --log" in refused.stderr


@pytest.mark.parametrize("workers", WORKERS)
def test_a_run_that_has_no_room_for_its_first_line_leaves_the_log_of_the_run_before(
    place, workers, see
):
    log = place / ".auditdp/run.jsonl"
    before = log.read_bytes()
    seen = auditdp(place, *RUN, "-n", workers, limit=no_file_grows)
    kept = log.read_bytes() == before
    what = f"exit code {seen.returncode}, the log before is {'as it was' if kept else 'lost'}"
    see(
        "no room for the first line of the log",
        "exit code 3, the log before is as it was",
        what,
        workers=workers,
    )
    assert seen.returncode == 3, seen.stderr
    assert "make room, or give another --log" in seen.stderr
    assert kept
    assert sorted(os.listdir(log.parent)) == [".gitignore", "run.jsonl"]


@pytest.mark.parametrize("workers", WORKERS)
def test_an_unfinished_log_that_cannot_be_kept_stays_and_leaves_no_part(
    place, workers, see
):
    log = place / ".auditdp/run.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))
    seen = auditdp(place, *RUN, "-n", workers, limit=no_file_grows)
    found = sorted(os.listdir(log.parent))
    see(
        "no room to keep an unfinished log",
        "exit code 3, it stays",
        f"exit code {seen.returncode}",
        workers=workers,
    )
    assert seen.returncode == 3, seen.stderr
    assert "it is still in" in seen.stderr
    assert found == [".gitignore", "run.jsonl"]
    assert len(read_log(log).results) == RESULTS_OF_A_RUN


@pytest.mark.parametrize(
    "command",
    [RUN, ("list",), ("trace", "audits/audit_it.py::holds"), ("replay", "holds")],
)
def test_no_folder_for_temporary_files_names_tmpdir(place, command, see):
    folders = [
        folder
        for folder in ("/tmp", "/var/tmp", "/usr/tmp", place)
        if os.path.isdir(folder)
    ]
    seen = without_writing(place, folders, *command)
    see(
        f"no folder for temporary files: {command[0]}",
        "exit code 2",
        f"exit code {seen.returncode}",
    )
    assert seen.returncode == 2, seen.stderr
    assert "set TMPDIR to a folder that can be written" in seen.stderr


WRITES = """
import sys
from pathlib import Path
from auditdp.files import write

for _ in range(400):
    write(Path("report.html"), sys.argv[1] * 200_000)
"""


def test_a_file_that_three_processes_write_at_once_is_always_whole(root, see):
    """Each of them ends without an error, and whoever reads meanwhile finds all that one of them has written."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITES, letter],
            cwd=root,
            env=environment(),
            stderr=subprocess.PIPE,
        )
        for letter in "abc"
    ]
    report, mixed = root / "report.html", 0
    while any(writer.poll() is None for writer in writers):
        text = report.read_text() if report.exists() else ""
        mixed += bool(text) and text != text[0] * 200_000
    failed = [error for writer in writers if (error := writer.communicate()[1])]
    what = (
        "it is whole"
        if not mixed and not failed
        else f"{mixed} times not whole, {len(failed)} ended in an error"
    )
    see("three processes write one report", "it is whole", what)
    assert failed == []
    assert mixed == 0
    assert sorted(os.listdir(root)) == ["audits", "report.html"]


class Slowly(dict):
    """Files of a report, between which another one has time to write all of its own."""

    def items(self):
        for item in super().items():
            yield item
            time.sleep(0.5)


def test_pages_of_two_reports_of_one_name_do_not_mix(root, see):
    page, index = root / "page.html", root / "index.html"
    slow = threading.Thread(
        target=write_together,
        args=[Slowly({page: "one", index: "one"})],
        kwargs={"below": root},
    )
    slow.start()
    while not page.exists():
        time.sleep(0.01)
    write_together({page: "two", index: "two"}, below=root)
    slow.join()
    found = [page.read_text(), index.read_text()]
    see(
        "two reports of one name at once",
        "the later one, whole",
        f"page {found[0]}, index {found[1]}",
    )
    assert found == ["two", "two"]
