"""Logs and records: no run loses or mixes what another has found, and no file of others is lost, or imported."""

from __future__ import annotations

import json
import os
import subprocess
import time

import pytest

from tests.adversary.records import with_digests
from tests.cli.conftest import IMPORTS, SCRIPT, environment, untimed
from tests.faults.catalogue import HEAD
from tests.faults.conftest import WORKERS, shell

pytestmark = [pytest.mark.faults, pytest.mark.usefixtures("without_sandbox")]
TWO = """
@audit()
def leaks():
    return Audit(Response(2.0), PureDP(1.0), AnyValues((0, 1)), evidence=["exact"])

@audit()
def holds():
    return Audit(Response(0.5), PureDP(1.0), AnyValues((0, 1)), evidence=["exact"])
"""


@pytest.fixture
def two(project):
    """A project with one audit that is refuted and one that is certified, and its finished run."""
    project.audits(TWO)
    project.log = project.root / ".auditdp/run.jsonl"
    return project


@pytest.fixture(params=WORKERS)
def workers(request):
    return request.param


def unfinished(project, workers: str) -> dict:
    """Leave the log of a run that was killed before its last audit; return the record of the whole run."""
    whole = untimed(project.run("-n", workers).record)
    lines = project.log.read_bytes().splitlines(keepends=True)
    project.log.write_bytes(b"".join(lines[:2]))
    return whole


def test_two_runs_in_one_folder_do_not_mix(root, workers, see):
    (root / "audits/audit_it.py").write_text(
        HEAD + "@audit()\ndef slow():\n    time.sleep(60)\n    return sound()\n"
    )
    command = [SCRIPT, "run", "--seed", "1", "--budget", "quick", "-n", workers]
    first = subprocess.Popen(
        command,
        cwd=root,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    log = root / ".auditdp/run.jsonl"
    try:
        end = time.monotonic() + 60
        while not log.exists() or not log.stat().st_size:
            assert time.monotonic() < end
            time.sleep(0.05)
        second = shell(root, f"auditdp run --budget quick --seed 1 -n {workers}")
    finally:
        first.terminate()
        first.wait(60)
    see(
        "two runs in one folder",
        "the second is refused, exit code 2",
        f"exit code {second.returncode}",
        workers=workers,
    )
    assert second.returncode == 2
    assert "another run is writing the log" in second.stderr
    assert first.returncode == 130


def test_an_unfinished_log_is_kept(two, workers, see):
    whole = unfinished(two, workers)
    plain = two.run("-n", workers)
    kept = two.root / ".auditdp/run.1.jsonl"
    resumed = two.run("-n", workers, "--resume", "--log", kept)
    same = untimed(resumed.record) == whole
    see(
        "a plain run after an unfinished one",
        "the log of before is kept, and can be resumed",
        f"{'kept' if kept.exists() else 'erased'}, {'resumed' if same else 'not resumed'}",
        workers=workers,
    )
    assert "--resume --log" in plain.err
    assert kept.exists()
    assert same


def test_last_failed_of_an_unfinished_run_says_what_is_not_known(project, workers, see):
    project.audits(TWO.replace("Response(2.0)", "Response(0.5)"))
    project.log = project.root / ".auditdp/run.jsonl"
    unfinished(project, workers)
    seen = project.run("-n", workers, "--last-failed")
    see(
        "--last-failed of an unfinished run",
        "exit code 5, which says so",
        f"exit code {seen.code}",
        workers=workers,
    )
    assert seen.code == 5
    assert "1 of its 2 audits have no result yet" in seen.err


DAMAGE = {
    "the last line cut short": (lambda lines: [*lines[:-1], lines[-1][:40]], ""),
    "a line of other text": (
        lambda lines: [lines[0], "somebody else's\n", *lines[1:]],
        "line 2 of",
    ),
    "a line of another run": (
        lambda lines: [lines[0], lines[1].replace('"run": "', '"run": "0'), *lines[1:]],
        "line 2 of .auditdp/run.jsonl is not what was written after the lines before it",
    ),
    "bytes that are no text": (
        lambda lines: [lines[0], "\udcff\udcfe\n", *lines[1:]],
        "line 2 of",
    ),
    "the clock was set back": (
        lambda lines: (
            with_digests(
                "".join(lines)
                .replace('"time": "20', '"time": "21')
                .replace('"started": "20', '"started": "21')
                .encode()
            )
            .decode()
            .splitlines(keepends=True)
        ),
        "",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_log_is_resumed(two, workers, damage, see):
    whole = unfinished(two, workers)
    harm, message = DAMAGE[damage]
    lines = two.log.read_text().splitlines(keepends=True)
    two.log.write_bytes("".join(harm(lines)).encode("utf-8", "surrogateescape"))
    resumed = two.run("-n", workers, "--resume")
    same = untimed(resumed.record) == whole
    expected = (
        "named by its number, and --resume has the same record"
        if message
        else "--resume has the same record"
    )
    see(
        f"in the log: {damage}",
        expected,
        expected if same and message in resumed.err else resumed.err[:90],
        workers=workers,
    )
    assert same
    assert message in resumed.err


def test_a_log_of_another_version_is_refused(two, workers, see):
    unfinished(two, workers)
    two.log.write_bytes(
        with_digests(two.log.read_bytes().replace(b'"schema": ', b'"schema": 9', 1))
    )
    seen = two.run("-n", workers, "--resume")
    see(
        "in the log: another version",
        "refused with what differs, exit code 2",
        f"exit code {seen.code}",
        workers=workers,
    )
    assert seen.code == 2
    assert "was written by auditdp" in seen.err
    assert "schema" in seen.err


@pytest.mark.parametrize("option", ["--log", "--report"])
@pytest.mark.parametrize(
    "content", ["mine = 1\n", "<html>a page of mine</html>\n", '{"mine": 1}\n']
)
def test_no_file_of_others_is_overwritten(two, workers, option, content, see):
    theirs = two.write("theirs", content)
    value = "theirs" if option == "--log" else "html=theirs"
    seen = two.run("-n", workers, option, value)
    whole = theirs.read_text() == content
    what = (
        f"exit code {seen.code}, the file is {'as it was' if whole else 'overwritten'}"
    )
    see(
        f"{option} of a file that is not its own",
        "exit code 2, the file is as it was",
        what,
        workers=workers,
    )
    assert (seen.code, whole) == (2, True)
    assert "give another" in seen.err


@pytest.mark.parametrize(
    ("option", "value"), [("--log", "device"), ("--report", "html=device")]
)
def test_no_pipe_and_no_device_is_replaced(two, workers, option, value, see):
    os.mkfifo(two.root / "device")
    seen = two.run("-n", workers, option, value)
    kept = (two.root / "device").is_fifo()
    what = f"exit code {seen.code}, it is {'as it was' if kept else 'replaced'}"
    see(
        f"{option} of a pipe or a device",
        "exit code 2, it is as it was",
        what,
        workers=workers,
    )
    assert (seen.code, kept) == (2, True)


FOREIGN = IMPORTS + "Path('imported').write_text('by replay')\n" + TWO


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("outside the working folder", "{outside}/audit_theirs.py"),
        ("above it", "../outside/audit_theirs.py"),
        ("outside, by a link", "linked/audit_theirs.py"),
        ("that is no audit file", "setup.py"),
        ("in a hidden folder", ".cache/audit_theirs.py"),
    ],
)
def test_a_record_does_not_choose_what_is_imported(two, name, place, workers, see):
    """A record is data from others: it names paths, and replay imports those that collection finds."""
    two.run("-n", workers, "--report", "json=run.json")
    outside = two.root.with_name("outside")
    outside.mkdir()
    (two.root / "linked").symlink_to(outside)
    for file in (
        outside / "audit_theirs.py",
        two.root / "setup.py",
        two.root / ".cache/audit_theirs.py",
    ):
        file.parent.mkdir(exist_ok=True)
        file.write_text(FOREIGN)
    path = place.replace("{outside}", str(outside))
    text = (two.root / "run.json").read_text().replace("audits/audit_it.py", path)
    (two.root / "theirs.json").write_text(text)
    seen = two("replay", "--run", "theirs.json", "leaks")
    imported = (two.root / "imported").exists()
    see(
        f"replay of a record that names a file {name}",
        "exit code 2, not imported",
        f"exit code {seen.code}, {'imported' if imported else 'not imported'}",
        workers=workers,
    )
    assert seen.code == 2
    assert "a record must not choose what is imported" in seen.err
    assert not imported


def test_the_folder_of_logs_ignores_itself_and_lines_have_times(two, workers, see):
    two.run("-n", workers)
    subprocess.run(["git", "init", "-q"], cwd=two.root, check=True)
    status = subprocess.run(
        ["git", "status", "--porcelain"],
        cwd=two.root,
        capture_output=True,
        text=True,
        check=True,
    )
    timed = all(json.loads(line)["time"] for line in two.log.read_text().splitlines())
    clean = ".auditdp" not in status.stdout
    see(
        "the folder of logs in git",
        "ignored; every line has a time",
        f"{'ignored' if clean else 'untracked'}; {'every line has a time' if timed else 'no times'}",
        workers=workers,
    )
    assert clean
    assert timed
