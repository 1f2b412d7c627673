"""Logs and records: no run loses or mixes what another has found, and no file of others is lost, or imported."""

import os
import subprocess
import time

import pytest

from tests.adversary.records import with_digests
from tests.cli.conftest import IMPORTS, SCRIPT, environment, git
from tests.faults.catalogue import HEAD
from tests.faults.conftest import QUICK, lines_of, script

pytestmark = [pytest.mark.faults, pytest.mark.usefixtures("without_sandbox")]
TWO = """
@audit()
def leaks():
    return Audit(Response(2.0), PureDP(1.0), BITS, evidence=["exact"])

@audit()
def holds():
    return Audit(Response(0.5), PureDP(1.0), BITS, evidence=["exact"])
"""


@pytest.fixture
def two(project):
    """A project with one audit that is refuted and one that is certified."""
    project.audits(TWO)
    project.log = project.root / ".auditdp/run.jsonl"
    return project


def unfinished(project, workers: str) -> dict:
    """Leave the log of a run that was killed before its last audit; return the record of the whole run."""
    whole = project.run(f"-n {workers}").untimed
    lines = project.log.read_bytes().splitlines(keepends=True)
    project.log.write_bytes(b"".join(lines[:2]))
    return whole


def test_two_runs_in_one_folder_do_not_mix(root, workers, see):
    slow = "@audit()\ndef slow():\n    time.sleep(60)\n    return sound()\n"
    (root / "audits/audit_it.py").write_text(HEAD + slow)
    command = f"{QUICK} -n {workers}"
    first = subprocess.Popen(
        [SCRIPT, *command.split()],
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
        second = script(root, command)
    finally:
        first.terminate()
        first.wait(60)
    expected = "the second is refused, exit code 2"
    is_refused = "another run is writing the log" in second.stderr
    seen = f"the second is {'refused' if is_refused else 'run'}, exit code {second.returncode}"
    see("two runs in one folder", expected, seen)
    assert first.returncode == 130


def test_an_unfinished_log_is_kept(two, workers, see):
    whole = unfinished(two, workers)
    plain = two.run(f"-n {workers}")
    kept = two.root / ".auditdp/run.1.jsonl"
    resumed = two.run(f"-n {workers} --resume --log", kept)
    same = "is kept, and resumed" if resumed.untimed == whole else "is lost"
    see("the log of before a plain run", "is kept, and resumed", same)
    assert "--resume --log" in plain.err


def test_last_failed_of_an_unfinished_run_says_what_is_not_known(two, workers, see):
    two.audits(TWO.replace("Response(2.0)", "Response(0.5)"))
    unfinished(two, workers)
    done = two.run(f"-n {workers} --last-failed")
    code = f"exit code {done.code}"
    see("--last-failed of an unfinished run", "exit code 5", code)
    assert "1 of its 2 audits have no result yet" in done.err


def set_back(lines):
    """Write the lines as they would be if the clock had been set back since."""
    text = "".join(lines)
    for name in ("time", "started"):
        text = text.replace(f'"{name}": "20', f'"{name}": "21')
    return with_digests(text.encode()).decode().splitlines(keepends=True)


DAMAGE = {
    "the last line cut short": (lambda a, b: [a, b[:40]], ""),
    "a line of other text": (lambda a, b: [a, "somebody else's\n", b], "line 2 of"),
    "a line of another run": (
        lambda a, b: [a, b.replace('"run": "', '"run": "0'), b],
        "line 2 of .auditdp/run.jsonl is not what was written after the lines before it",
    ),
    "bytes that are no text": (lambda a, b: [a, "\udcff\udcfe\n", b], "line 2 of"),
    "the clock was set back": (lambda *lines: set_back(lines), ""),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_log_is_resumed(two, workers, damage, see):
    whole = unfinished(two, workers)
    harm, message = DAMAGE[damage]
    lines = two.log.read_text().splitlines(keepends=True)
    two.log.write_bytes("".join(harm(*lines)).encode("utf-8", "surrogateescape"))
    resumed = two.run(f"-n {workers} --resume")
    same = "--resume has the same record"
    seen = same if resumed.untimed == whole else resumed.err[:90]
    see(f"in the log: {damage}", same, seen)
    assert message in resumed.err


def test_a_log_of_another_version_is_refused(two, workers, see):
    unfinished(two, workers)
    other = two.log.read_bytes().replace(b'"schema": ', b'"schema": 9', 1)
    two.log.write_bytes(with_digests(other))
    done = two.run(f"-n {workers} --resume")
    see("in the log: another version", "exit code 2", f"exit code {done.code}")
    assert done.refuses("was written by auditdp", "schema")


THEIRS = ("mine = 1\n", "<html>a page of mine</html>\n", '{"mine": 1}\n')


@pytest.mark.parametrize("option", ["--log ", "--report html="])
def test_no_file_of_others_and_no_pipe_is_overwritten(two, workers, option, see):
    os.mkfifo(two.root / "device")
    for content in THEIRS:
        theirs = two.write("theirs", content)
        done = two.run(f"-n {workers} {option}theirs")
        kept = "as it was" if theirs.read_text() == content else "overwritten"
        see(
            f"{option.partition(' ')[0]} of a file that is not its own",
            "exit code 2, the file is as it was",
            f"exit code {done.code}, the file is {kept}",
        )
        assert "give another" in done.err
    done = two.run(f"-n {workers} {option}device")
    kept = "as it was" if (two.root / "device").is_fifo() else "replaced"
    see(
        f"{option.partition(' ')[0]} of a pipe or a device",
        "exit code 2, it is as it was",
        f"exit code {done.code}, it is {kept}",
    )


FOREIGN = IMPORTS + "Path('imported').write_text('by replay')\n" + TWO


PLACES = {
    "outside the working folder": "{outside}/audit_theirs.py",
    "above it": "../outside/audit_theirs.py",
    "outside, by a link": "linked/audit_theirs.py",
    "that is no audit file": "setup.py",
    "in a hidden folder": ".cache/audit_theirs.py",
}


def test_a_record_does_not_choose_what_is_imported(two, workers, see):
    """A record is data from others: it names paths, and replay imports those that collection finds."""
    two.run(f"-n {workers} --report json=run.json")
    outside = two.root.with_name("outside")
    outside.mkdir()
    (two.root / "linked").symlink_to(outside)
    for path in ("linked/audit_theirs.py", "setup.py", ".cache/audit_theirs.py"):
        two.write(path, FOREIGN)
    text = (two.root / "run.json").read_text()
    for name, place in PLACES.items():
        path = place.replace("{outside}", str(outside))
        two.write("theirs.json", text.replace("audits/audit_it.py", path))
        done = two("replay --run theirs.json leaks")
        taken = "imported" if (two.root / "imported").exists() else "not imported"
        see(
            f"replay of a record that names a file {name}",
            "exit code 2, not imported",
            f"exit code {done.code}, {taken}",
        )
        assert "a record must not choose what is imported" in done.err


def test_the_folder_of_logs_ignores_itself_and_lines_have_times(two, workers, see):
    two.run(f"-n {workers}")
    git(two.root, "init -q")
    untracked = ".auditdp" in git(two.root, "status --porcelain")
    seen = "untracked" if untracked else "ignored"
    see("the folder of logs in git", "ignored", seen)
    assert all(line["time"] for line in lines_of(two.log))
