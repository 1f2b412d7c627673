"""A run that is killed or interrupted resumes, redoes nothing that it finished, and ends with the same record."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest

from tests.adversary.records import with_digests

pytestmark = [pytest.mark.dear, pytest.mark.usefixtures("without_sandbox")]

ARGUMENTS = ("run", "--seed", "5", "--budget", "quick", "--format", "json")
AUDITS = """
def counted(name, waits=False):
    def mechanism(data, size, *, rng):
        with open("calls.txt", "a") as file:
            file.write(f"{name}\\n")
        while waits and Path("wait").exists():
            time.sleep(0.01)
        return np.where(rng.random(size) < 0.6, data, 1 - data)

    mechanism.__name__ = name
    return mechanism

BITS = AnyValues((0, 1))

@audit()
def first(epsilon=1.0):
    return Audit(counted("first"), PureDP(epsilon), BITS, calls=200)

@audit()
def second(epsilon=1.0):
    return Audit(counted("second", waits=True), PureDP(epsilon), BITS, calls=200)

@audit()
def third(epsilon=1.0):
    return Audit(counted("third"), PureDP(epsilon), BITS, controls=[counted("control")], calls=200)
"""


class Interruptible:
    """A project whose second audit waits for as long as a file named 'wait' is there."""

    def __init__(self, project):
        self.project = project
        project.audits(AUDITS)
        self.log = project.root / ".auditdp" / "run.jsonl"

    def uninterrupted(self):
        """Run everything once, with a log of its own, and return the record."""
        record = self.project(*ARGUMENTS, "--log", "whole.jsonl").untimed
        self.called()
        return record

    def called(self):
        """Which audits called their mechanism since this was asked last."""
        calls = self.project.root / "calls.txt"
        found = set(calls.read_text().split()) if calls.exists() else set()
        calls.unlink(missing_ok=True)
        return found

    def lines(self):
        return self.log.read_bytes().splitlines() if self.log.exists() else []

    def start_and_wait_for_the_second(self, *arguments):
        (self.project.root / "wait").touch()
        process = self.project.start(*ARGUMENTS, *arguments)
        end = time.monotonic() + 40
        while (
            len(self.lines()) < 2
            or "second" not in (self.project.root / "calls.txt").read_text()
        ):
            assert time.monotonic() < end
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        return process

    def let_go(self):
        (self.project.root / "wait").unlink()


@pytest.fixture
def interruptible(project):
    return Interruptible(project)


class Finished(Interruptible):
    """The same with a complete run in its log, which every test may cut as it likes."""

    def __init__(self, project):
        super().__init__(project)
        outcome = project(*ARGUMENTS)
        self.expected, self.code = outcome.untimed, outcome.code
        self.whole = self.log.read_bytes().splitlines(keepends=True)
        assert len(self.whole) == 5

    def cut(self, content):
        self.log.write_bytes(content)
        self.called()

    def resume(self, *arguments):
        return self.project(*ARGUMENTS, *arguments, "--resume")


@pytest.fixture(scope="module")
def finished(shared_project):
    return Finished(shared_project)


@pytest.mark.full
def test_a_killed_run_leaves_a_readable_log_and_resumes_to_the_same_record(
    interruptible,
):
    expected = interruptible.uninterrupted()
    process = interruptible.start_and_wait_for_the_second()
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait(20) == -signal.SIGKILL
    interruptible.let_go()
    partial = interruptible.project("report", "-f", "json").record
    assert partial["status"] == "running"
    assert [r["id"] for r in partial["results"]] == ["audits/audit_it.py::first"]
    interruptible.called()
    resumed = interruptible.project(*ARGUMENTS, "--resume")
    assert resumed.untimed == expected
    assert interruptible.called() == {"second", "third", "control"}


@pytest.mark.full
@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_interrupted_run_ends_with_130_and_resumes_to_the_same_record(
    interruptible, workers
):
    expected = interruptible.uninterrupted()
    process = interruptible.start_and_wait_for_the_second(
        "-n", workers, "--report", "html=partial.html"
    )
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does on ctrl-c
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "--resume" in err
    assert "Traceback" not in err
    partial = json.loads(out)
    assert partial["status"] == "interrupted"
    assert "audits/audit_it.py::first" in [r["id"] for r in partial["results"]]
    assert (interruptible.project.root / "partial.html").stat().st_size > 1000
    interruptible.let_go()
    done = {r["id"].partition("::")[2] for r in partial["results"]}
    interruptible.called()
    resumed = interruptible.project(*ARGUMENTS, "--resume")
    assert resumed.untimed == expected
    assert not interruptible.called() & done


def test_an_interrupt_while_audits_are_collected_ends_with_130(project):
    project.write(
        "audits/audit_slow.py",
        "import pathlib, time\npathlib.Path('here').touch()\ntime.sleep(30)\n",
    )
    process = project.start("run")
    end = time.monotonic() + 30
    while not (project.root / "here").exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 130


HEADER, FIRST, SECOND, THIRD, END = range(5)


@pytest.mark.parametrize(
    ("line", "kept", "redone"),
    [
        (FIRST, 0.5, {"first", "second", "third", "control"}),
        (SECOND, 0.99, {"second", "third", "control"}),
        (THIRD, 0.5, {"third", "control"}),
        (END, 0.5, set()),
    ],
)
def test_a_log_that_was_cut_short_resumes_to_the_same_record(
    finished, line, kept, redone
):
    finished.cut(
        b"".join(finished.whole[:line])
        + finished.whole[line][: int(kept * len(finished.whole[line]))]
    )
    assert finished.resume().untimed == finished.expected
    assert finished.called() == redone
    assert finished.project("report", "-f", "json").untimed == finished.expected


def test_a_finished_run_resumes_to_itself_without_a_call(finished):
    finished.cut(b"".join(finished.whole))
    resumed = finished.resume()
    assert (resumed.untimed, resumed.code) == (finished.expected, finished.code)
    assert finished.called() == set()


@pytest.mark.full
def test_a_verdict_is_never_rolled_again(finished):
    """What the log says stands, even where running again would say something else."""
    assert b'"NOT_REFUTED"' in finished.whole[FIRST]
    changed = finished.whole[FIRST].replace(b'"NOT_REFUTED"', b'"VIOLATED"')
    finished.cut(with_digests(finished.whole[HEADER] + changed))
    assert finished.resume().audit("first")["verdict"] == "VIOLATED"


@pytest.mark.full
def test_resuming_needs_no_seed_and_takes_that_of_the_log(interruptible):
    first = interruptible.project("run", "--budget", "quick", "--format", "json")
    lines = interruptible.log.read_bytes().splitlines(keepends=True)
    interruptible.log.write_bytes(b"".join(lines[:2]))
    assert (
        interruptible.project(
            "run", "--budget", "quick", "--format", "json", "--resume"
        ).untimed
        == first.untimed
    )


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (["--seed", "6"], "root_seed"),
        (["--budget", "standard"], "arguments"),
        (["-P", "epsilon=2"], "arguments"),
        (["-k", "first"], "arguments"),
        (["--timeout", "30"], "arguments"),
        (["--alpha", "0.01"], "alpha_ledger"),
        (["audits/audit_it.py::first"], "arguments"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_another_question_cannot_be_resumed(finished, changed, message):
    content = b"".join(finished.whole[:THIRD])
    finished.cut(content)
    outcome = finished.resume(*changed)
    assert (outcome.code, outcome.out) == (2, "")
    assert f"cannot resume: {message} differs" in outcome.err
    assert "without --resume" in outcome.err
    assert finished.called() == set()
    assert finished.log.read_bytes() == content


def test_changed_sources_cannot_be_resumed(interruptible):
    project = interruptible.project
    helper = project.write("audits/helper.py", "VALUE = 1\n")
    files = [
        helper,
        project.audits("import helper\n", "audits/audit_other.py"),
        project.root / "audits/audit_it.py",
    ]
    project(*ARGUMENTS)
    interruptible.called()
    for file in files:
        text = file.read_text()
        file.write_text(f"{text}\nCHANGED = 1\n")
        outcome = project(*ARGUMENTS, "--resume")
        assert outcome.code == 2
        assert "cannot resume: revision differs" in outcome.err
        file.write_text(text)
    assert interruptible.called() == set()
