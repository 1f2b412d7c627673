"""Folders: a project, a log or temporary files where nothing can be written end in one line that names the remedy."""

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
from tests.faults.conftest import QUICK, run, script

pytestmark = [pytest.mark.faults, pytest.mark.usefixtures("without_sandbox")]
AUDITS = HEAD + "@audit()\ndef holds():\n    return sound()\n"
RESULTS_OF_A_RUN = 1


@pytest.fixture
def place(root):
    """A project with one audit, and its finished run."""
    (root / "audits/audit_it.py").write_text(AUDITS)
    assert script(root, QUICK).returncode == 0
    return root


def without_writing(folder, prefix, command):
    """Run the script where the folders of ``prefix`` can be read only, which binds root too."""
    namespace = ["unshare", "-rm"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*namespace, "true"], check=False).returncode
    ):
        pytest.skip("no mount namespaces here")
    steps = [
        f"mount --bind {path} {path} && mount -o remount,ro,bind {path}"
        for path in prefix
    ]
    line = " && ".join([*steps, f"cd {folder}", f"exec {SCRIPT} {command}"])
    return run([*namespace, "bash", "-c", line], folder, {})


def no_file_grows():
    """Let no file have more than 100 bytes, which is how a full disk looks to a process."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))


@pytest.mark.parametrize("has_ignore_file", [True, False])
def test_a_folder_of_logs_that_is_read_only_names_the_option_for_another(
    place, has_ignore_file, workers, see
):
    logs = place / ".auditdp"
    if not has_ignore_file:
        (logs / ".gitignore").unlink()
    done = without_writing(place, [logs], f"{QUICK} -n {workers}")
    code = f"exit code {done.returncode}"
    see("a folder of logs that is read-only", "exit code 2", code, done.stderr)
    remedy = ".auditdp/run.jsonl: Read-only file system; give another --log"
    assert remedy in done.stderr
    assert "Traceback" not in done.stderr


def test_a_project_that_is_read_only_is_audited_with_a_log_elsewhere(
    place, tmp_path, workers, see
):
    command = f"{QUICK} -n {workers}"
    refused = without_writing(place, [place], command)
    done = without_writing(place, [place], f"{command} --log {tmp_path}/run.jsonl")
    see(
        "a project that is read-only, then --log elsewhere",
        "exit codes 2 and 0",
        f"exit codes {refused.returncode} and {done.returncode}",
        refused.stderr + done.stderr,
    )
    assert "give another --log" in refused.stderr


def test_a_run_that_has_no_room_leaves_the_log_of_the_run_before(place, workers, see):
    log = place / ".auditdp/run.jsonl"
    whole = log.read_bytes()
    unfinished = b"".join(whole.splitlines(keepends=True)[:-1])
    for what, before, message in (
        ("for the first line of the log", whole, "make room, or give another --log"),
        ("to keep an unfinished log", unfinished, "it is still in"),
    ):
        log.write_bytes(before)
        command = [SCRIPT, *QUICK.split(), "-n", workers]
        done = run(command, place, {}, preexec_fn=no_file_grows)
        kept = "as it was" if log.read_bytes() == before else "lost"
        see(
            f"no room {what}",
            "exit code 3, the log before is as it was",
            f"exit code {done.returncode}, the log before is {kept}",
            done.stderr,
        )
        assert message in done.stderr
        assert sorted(os.listdir(log.parent)) == [".gitignore", "run.jsonl"]
        assert len(read_log(log).results) == RESULTS_OF_A_RUN


@pytest.mark.parametrize(
    "command", [QUICK, "list", "trace audits/audit_it.py::holds", "replay holds"]
)
def test_no_folder_for_temporary_files_names_tmpdir(place, command, see):
    candidates = ("/tmp", "/var/tmp", "/usr/tmp", place)
    folders = [folder for folder in candidates if os.path.isdir(folder)]
    done = without_writing(place, folders, command)
    fault = f"no folder for temporary files: {command.partition(' ')[0]}"
    see(fault, "exit code 2", f"exit code {done.returncode}", done.stderr)
    assert "set TMPDIR to a folder that can be written" in done.stderr


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
    found = f"{mixed} times not whole, {len(failed)} ended in an error"
    see(
        "three processes write one report",
        "0 times not whole, 0 ended in an error",
        found,
        str(failed),
    )
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
    found = f"page {page.read_text()}, index {index.read_text()}"
    see("two reports of one name at once", "page two, index two", found)
