"""A run that is killed or interrupted resumes, redoes nothing that it finished, and ends with the same record."""

import json
import os
import signal
import time

import pytest

from tests.adversary.records import with_digests

pytestmark = [pytest.mark.dear, pytest.mark.usefixtures("without_sandbox")]

RUN = "run --seed 5 --budget quick --format json"
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
HEADER, FIRST, SECOND, THIRD, END = range(5)
REST = {"second", "third", "control"}


def until(condition, process):
    """Wait for a condition while a process goes on."""
    end = time.monotonic() + 40
    while not condition():
        assert time.monotonic() < end
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


class Finished:
    """A project with a complete run in its log; its second audit waits for as long as a file named 'wait' is there."""

    def __init__(self, project):
        self.project, self.root = project, project.root
        self.log = self.root / ".auditdp" / "run.jsonl"
        self.calls = self.root / "calls.txt"
        project.audits(AUDITS)
        outcome = project(RUN)
        self.expected, self.code = outcome.untimed, outcome.code
        self.whole = self.log.read_bytes().splitlines(keepends=True)
        assert len(self.whole) == 5

    def called(self):
        """Return the audits that called their mechanism since the last question."""
        found = set(self.calls.read_text().split()) if self.calls.exists() else set()
        self.calls.unlink(missing_ok=True)
        return found

    def cut(self, content):
        self.log.write_bytes(content)
        self.called()

    def resume(self, options=""):
        return self.project(f"{RUN} {options} --resume")

    def start_and_wait_for_the_second(self, options=""):
        self.cut(b"")
        self.log.unlink()
        (self.root / "wait").touch()
        process = self.project.start(f"{RUN} {options}")

        def is_second():
            lines = self.log.read_bytes().count(b"\n") if self.log.exists() else 0
            return lines >= 2 and "second" in self.calls.read_text()

        until(is_second, process)
        return process

    def end(self):
        """Let the second audit go on in the next run."""
        (self.root / "wait").unlink()
        self.called()


@pytest.fixture(scope="module")
def finished(shared_project):
    return Finished(shared_project)


@pytest.mark.full
def test_a_killed_run_leaves_a_readable_log_and_resumes_to_the_same_record(finished):
    process = finished.start_and_wait_for_the_second()
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait(20) == -signal.SIGKILL
    partial = finished.project("report -f json")
    assert (partial.record["status"], partial.names) == ("running", ["first"])
    finished.end()
    assert finished.resume().untimed == finished.expected
    assert finished.called() == REST


@pytest.mark.full
@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_interrupted_run_ends_with_130_and_resumes_to_the_same_record(
    finished, workers
):
    options = f"-n {workers} --report html=partial.html"
    process = finished.start_and_wait_for_the_second(options)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does on ctrl-c
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "--resume" in err
    assert "Traceback" not in err
    partial = json.loads(out)
    assert partial["status"] == "interrupted"
    done = {result["id"].partition("::")[2] for result in partial["results"]}
    assert "first" in done
    page = finished.root / "partial.html"
    assert page.stat().st_size > 1000
    finished.end()
    assert finished.resume().untimed == finished.expected
    assert not finished.called() & done


def test_an_interrupt_while_audits_are_collected_ends_with_130(project):
    slow = "import pathlib, time\npathlib.Path('here').touch()\ntime.sleep(30)\n"
    project.write("audits/audit_slow.py", slow)
    process = project.start("run")
    until((project.root / "here").exists, process)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 130


@pytest.mark.parametrize(
    ("line", "kept", "redone"),
    [
        (SECOND, 0.99, REST),
        (FIRST, 0.5, {"first", *REST}),
        (THIRD, 0.5, {"third", "control"}),
        (END, 0.5, set()),
        (END, 1.0, set()),
    ],
)
def test_a_log_that_was_cut_short_resumes_to_the_same_record(
    finished, line, kept, redone
):
    part = finished.whole[line]
    end = part[: int(kept * len(part))]
    finished.cut(b"".join([*finished.whole[:line], end]))
    resumed = finished.resume()
    assert (resumed.untimed, resumed.code) == (finished.expected, finished.code)
    assert finished.called() == redone
    assert finished.project("report -f json").untimed == finished.expected


@pytest.mark.full
def test_a_verdict_is_never_rolled_again_and_the_seed_is_that_of_the_log(finished):
    """What the log says stands, even where running again would say something else."""
    assert b'"NOT_REFUTED"' in finished.whole[FIRST]
    changed = finished.whole[FIRST].replace(b'"NOT_REFUTED"', b'"VIOLATED"')
    finished.cut(with_digests(finished.whole[HEADER] + changed))
    resumed = finished.project("run --budget quick --format json --resume")
    assert resumed.audit("first")["verdict"] == "VIOLATED"
    assert resumed.record["root_seed"] == 5


CHANGES = {
    "--seed 6": "root_seed",
    "--budget standard": "arguments",
    "-P epsilon=2": "arguments",
    "-k first": "arguments",
    "--timeout 30": "arguments",
    "--alpha 0.01": "alpha_ledger",
    "audits/audit_it.py::first": "arguments",
}


def test_another_question_cannot_be_resumed(finished):
    content = b"".join(finished.whole[:THIRD])
    finished.cut(content)
    for options, name in CHANGES.items():
        outcome = finished.resume(options)
        message = f"cannot resume: {name} differs"
        assert outcome.refuses(message, "without --resume"), (options, outcome)
    assert finished.called() == set()
    assert finished.log.read_bytes() == content


def test_changed_sources_cannot_be_resumed(project):
    project.audits(AUDITS)
    helper = project.write("audits/helper.py", "VALUE = 1\n")
    other = project.audits("import helper\n", "audits/audit_other.py")
    project(RUN)
    (project.root / "calls.txt").unlink()
    for file in (helper, other, project.root / "audits/audit_it.py"):
        text = file.read_text()
        file.write_text(f"{text}\nCHANGED = 1\n")
        outcome = project(f"{RUN} --resume")
        assert outcome.refuses("cannot resume: revision differs")
        file.write_text(text)
    assert not (project.root / "calls.txt").exists()
