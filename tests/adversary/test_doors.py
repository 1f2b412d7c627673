"""What a process of an audit says is bounded: too much of it is the ERROR of that file or audit, and of nothing else."""

import errno
import hashlib
import json
import math
import multiprocessing
import os
import re
import signal
import struct
import tempfile
import time
from functools import partial
from pathlib import Path

import pytest

from auditdp import files
from auditdp.record.results import (
    RESULT,
    AuditResult,
    LedgerEntry,
    Published,
    RunRecord,
    Verdict,
)
from auditdp.report.formats import render
from auditdp.runner import pool
from auditdp.runner.child import Child, Inbox, Work, WorkAnswer, printed_to
from auditdp.runner.plan import Collected, Listed
from auditdp.runner.pool import ResultRoom, Workers
from auditdp.runner.run_record import header
from auditdp.runner.sandbox import sandbox_of
from tests.adversary.projects import (
    HONEST,
    Ended,
    judged,
    planned,
    proved,
    task,
    verdicts_of,
)

SAYS = """
import os, sys, time
from dataclasses import replace
from pathlib import Path
from auditdp.runner.plan import Collected, Listed
from auditdp.runner import file_host as host

HERE, OWN = Path(__file__).parent.parent, f"audits/{Path(__file__).name}"

def listed(name, path=__file__, **more):
    return Listed(f"{OWN}::{name}", path, **more)

def connection():
    frame = sys._getframe()
    while frame.f_code.co_name != "host":
        frame = frame.f_back
    return frame.f_locals["connection"]

def says(found, **more):
    return replace(found, **{**more, **SAID}) if isinstance(found, Collected) else replace(found, **more)

host.replace = says
"""
"""Makes the process of a file say of it what ``SAID`` has."""


@pytest.fixture(autouse=True)
def ends():
    """Fail a test that waits for what never comes."""

    def stop(*_):
        raise TimeoutError("it waits without end")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with an honest file; ``audits/audit_a.py`` is to be written."""
    root = tmp_path / "project"
    (root / "audits").mkdir(parents=True)
    (root / "audits/audit_b.py").write_text(HONEST)
    monkeypatch.chdir(root)
    return root


def planned_where(said, **options):
    """Return the plan, and the record before the first audit, where an import says something of itself."""
    Path("audits/audit_a.py").write_text(f"{HONEST}{SAYS}\nSAID = {said}\n")
    with Workers(**options) as processes:
        plan = planned(processes)
        return plan, header(plan, {}, 1, sources=processes.sources)


def sha(name):
    return hashlib.sha256(Path(name).read_bytes()).hexdigest()


REFUSED = {
    "what never ends": "{'sources': ('/proc/kcore',)}",
    "a file elsewhere": "{'sources': (str(HERE.parent / 'secret.py'),)}",
    "a way out": "{'sources': (str(HERE / '..' / 'secret.py'),)}",
    "a pipe": "{'sources': (str(HERE / 'pipe.py'),)}",
    "a folder": "{'sources': (str(HERE / 'audits'),)}",
    "a link": "{'sources': (str(HERE / 'link.py'),)}",
    "a linked folder": "{'sources': (str(HERE / 'linked' / 'secret.py'),)}",
    "links in a circle": "{'sources': (str(HERE / 'circle' / 'a.py'),)}",
    "a gigabyte and a byte": "{'sources': (str(HERE / 'sparse.py'),)}",
    "a name of a million files": "{'sources': tuple(str(HERE / f'{k}.py') for k in range(20_001))}",
    "many large files": "{'sources': (str(HERE / 'large.py'), str(HERE / 'larger.py'))}",
    "a source a million folders deep": "{'sources': (str(HERE) + '/a' * 1_000_000,)}",
    "thousands of sources two thousand folders deep": (
        "{'sources': tuple(str(HERE) + f'/{k}' + '/a' * 1_900 for k in range(8_000))}"
    ),
    "an audit a million folders deep": "{'audits': (listed('it', str(HERE) + '/a' * 1_000_000),)}",
    "an id that begins as another file's": "{'audits': (Listed(f'audits/audit_b.py::leaks/../{OWN[7:]}::it', __file__),)}",
    "no path": "{'sources': ('a\\0b',)}",
    "an audit of a circle": "{'audits': (Listed('circle/a.py::it', __file__),)}",
    "too many audits": "{'audits': tuple(listed(f'audit_{k}') for k in range(5_000))}",
    "a long id": "{'audits': (listed('a' * 100_000),)}",
    "no time limit": "{'audits': (listed('leaks', timeout=-1.0),)}",
    "a time limit of an age": "{'audits': (listed('leaks', timeout=1e18),)}",
    "no declaration": "{'audits': (listed('leaks', expect='nothing'),)}",
    "a message of 64 MB": "{'printed': 'x' * (1 << 26)}",
    "a description of 64 MB": "{'audits': (listed('leaks', description='x' * (1 << 26)),)}",
    "a message that is announced": "{}; os.write(connection().fileno(), b'\\x7f\\xff\\xff\\xff')",
    "a message of 4 GB": "{}; os.write(connection().fileno(), b'\\xff\\xff\\xff\\xff' + (1 << 32).to_bytes(8, 'big'))",
    "half a message": "{}; os.write(connection().fileno(), b'\\0\\0\\1\\0['); time.sleep(60)",
}
"""What an import says of itself, which is refused."""


HALF = "half a message"


@pytest.fixture(scope="module", params=[False, True], ids=["the others", "alone"])
def refused(request, tmp_path_factory):
    """The names of what is said, by file; the plan, and the record before the first audit."""
    root = tmp_path_factory.mktemp("said") / "project"
    (root / "audits").mkdir(parents=True)
    (root.parent / "secret.py").write_text("SECRET = 1\n")
    half = 1 << 29
    sizes = {"sparse": 2 * half + 1, "large": half, "larger": half + 1}
    said = {
        f"audits/audit_c{k:02}.py": name
        for k, name in enumerate(REFUSED)
        if (name == HALF) == request.param
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        Path("audits/audit_b.py").write_text(HONEST)
        os.mkfifo("pipe.py")
        Path("link.py").symlink_to(root.parent / "secret.py")
        Path("linked").symlink_to(root.parent)
        Path("circle").symlink_to("circle")
        for file, size in sizes.items():
            Path(f"{file}.py").touch()
            os.truncate(f"{file}.py", size)
        for path, name in said.items():
            Path(path).write_text(f"{HONEST}{SAYS}\nSAID = {REFUSED[name]}\n")
        with Workers(limit=1.0 if request.param else 20.0) as processes:
            plan = planned(processes)
            start = header(plan, {}, 1, sources=processes.sources)
        hashes = {path: sha(path) for path in ("audits/audit_b.py", *said)}
    return said, plan, start, hashes


def test_what_an_import_says_too_much_is_an_error_of_its_file_alone(refused):
    said, plan, start, hashes = refused
    assert {said[path] for path in failed(plan)} == {*said.values()}
    (task,) = plan.tasks
    assert (task.id, task.alpha) == ("audits/audit_b.py::leaks", 0.05)
    assert start.sources == hashes
    assert len(start.to_json()) < 100_000


def failed(plan):
    return [path for path, _ in plan.failures]


def test_a_file_that_is_no_file_is_not_imported(project):
    os.mkfifo("audits/audit_a.py")
    Path("audits/audit_c.py").symlink_to("/proc/kcore")
    Path("audits/audit_d.py").symlink_to("audit_d.py")
    with Workers() as processes:
        plan = planned(processes)
    assert failed(plan) == [f"audits/audit_{name}.py" for name in "acd"]
    assert len(plan.tasks) == 1


def test_the_file_of_an_audit_is_a_source_whatever_its_import_says(project):
    Path("other.py").write_text("")
    plan, start = planned_where("{'sources': (str(HERE / 'other.py'),)}")
    assert len(plan.tasks) == 2
    own = "audits/audit_a.py"
    assert set(start.sources) == {own, "audits/audit_b.py", "other.py"}
    assert start.sources[own] == sha(own)


def test_long_text_from_an_import_is_cut(project):
    lengths = []
    planned_where(
        "{'printed': 'x' * 1_000_000}",
        on_print=lambda path, text: lengths.append(len(text)),
    )
    # Not as long as before: a file of one second and size is cached.
    plan, _ = planned_where("{'failure': 'x' * 10**6}")
    lengths.append(len(plan.failures[0][1]))
    assert len(lengths) == 2
    assert max(lengths) < 20_000


def test_a_parameter_that_nobody_gave_is_refused_to_nobody(project):
    plan, _ = planned_where("{'audits': (listed('leaks', unreadable='no run today'),)}")
    assert (len(plan.tasks), plan.failures) == (2, [])


def test_an_audit_that_is_listed_and_not_declared_is_an_error(project):
    said = "{'audits': (listed('nowhere'),)}"
    Path("audits/audit_a.py").write_text(f"{HONEST}{SAYS}\nSAID = {said}\n")
    with Workers() as processes:
        found = judged(processes)
    assert verdicts_of(found) == {
        "audits/audit_a.py::nowhere": Verdict.ERROR,
        "audits/audit_b.py::leaks": Verdict.VIOLATED,
    }
    assert "does not declare it" in found["audits/audit_a.py::nowhere"].summary


LONG_RESULTS = {
    "a statement": "Evidence(kind, Verdict.CERTIFIED, 'x' * (9 << 20), epsilon_upper=0.5)",
    "a statement longer than any message": "Evidence(kind, Verdict.CERTIFIED, 'x' * (40 << 20), epsilon_upper=0.5)",
}
LONG_DECLARATIONS = {
    "a name": "mechanisms=[MechanismNamed('x' * (9 << 20), True)]",
    "a parameter": "parameters={'x': 'x' * (9 << 20)}",
}
LONG = """
from dataclasses import replace
from auditdp.auditing import serving
from auditdp.auditing.remote_audit import MechanismNamed
from auditdp.record.results import Evidence, Verdict
"""
SAYS_EVIDENCE = "serving.gathered_here = lambda kind, request, alpha: {}\n"
SAYS_DECLARATION = """
held = serving.AuditHeld
serving.AuditHeld = lambda **given: replace(held(**given), {})
"""
RAISES = """
@audit
def raises():
    raise RuntimeError("x" * (40 << 20))
"""


@pytest.fixture(scope="module")
def long_results(tmp_path_factory):
    """Run audits that say too much in their results, beside an honest one."""
    folder = tmp_path_factory.mktemp("long")
    (folder / "audits").mkdir()
    codes = {name: SAYS_EVIDENCE.format(said) for name, said in LONG_RESULTS.items()}
    codes |= {
        name: SAYS_DECLARATION.format(said) for name, said in LONG_DECLARATIONS.items()
    }
    names = {"audits/audit_z.py::leaks": "honest"}
    for k, (name, code) in enumerate(codes.items()):
        text = HONEST.replace("pairs=", "evidence=['exact', 'game'], pairs=")
        (folder / f"audits/audit_{k}.py").write_text(text + LONG + code)
        names[f"audits/audit_{k}.py::leaks"] = name
    (folder / "audits/audit_y.py").write_text(HONEST.partition("@audit")[0] + RAISES)
    names["audits/audit_y.py::raises"] = "an exception"
    (folder / "audits/audit_z.py").write_text(HONEST)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        with Workers(count=2) as processes:
            found = judged(processes)
            return {names[name]: result for name, result in found.items()}


@pytest.mark.parametrize("name", [*LONG_RESULTS, *LONG_DECLARATIONS, "an exception"])
def test_a_result_that_is_too_long_is_the_error_of_its_audit(long_results, name):
    found = long_results[name]
    assert found.verdict is Verdict.ERROR
    assert len(RESULT.dump_json(found)) < 100_000
    assert long_results["honest"].verdict is Verdict.VIOLATED
    assert ("RuntimeError: xxx" in found.summary) == (name == "an exception")


def answered(name, size):
    """Return an answer with a result of that many bytes."""
    text = RESULT.dump_json(proved(task(name).id)).decode()
    padding = "x" * (size - len(text))
    return WorkAnswer(1, text.replace('"summary":""', f'"summary":"{padding}"'))


@pytest.mark.parametrize(
    ("sizes", "refused"),
    [
        # Of shares of 10,000 the first result leaves nothing of its own.
        ((30_000, 9_000, 20_000, 10_000), 0),
        # What is left of a share goes to the next result, and no other share does.
        ((4_000, 16_001, 20_001, 10_000), 1),
    ],
)
def test_the_results_of_a_run_have_room_together_and_each_has_its_share(
    sizes, refused, monkeypatch
):
    monkeypatch.setattr(files.FileLimits, "run_bytes", 40_000)
    room = ResultRoom(4)
    for k, size in enumerate(sizes):
        found = room.result(task(str(k)), answered(str(k), size))
        expected = Verdict.ERROR if k == refused else Verdict.CERTIFIED
        assert found.verdict is expected, k


def test_results_that_are_let_in_make_a_log_that_is_read():
    longest = 3 * files.FileLimits.run_bytes  # where a log escapes every character
    assert longest < files.FileLimits.file_bytes
    assert 3 * files.FileLimits.result_bytes < files.FileLimits.message_bytes


def test_a_process_that_answers_and_reads_nothing_makes_nobody_wait(
    tmp_path, monkeypatch
):
    here, there = multiprocessing.Pipe()
    spawn = multiprocessing.get_context("spawn")
    process = spawn.Process(target=time.sleep, args=(60,))
    process.start()
    host = pool._Host(tmp_path / "a.py", process, here, Collected())
    while pool._has_room(here, 0.0):
        here.send_bytes(bytes(4_096))
    monkeypatch.setattr(pool, "_has_room", partial(pool._has_room, seconds=0.2))
    pool._hand(host, Work(1, "again", task("a")), None)
    process.join(10)
    assert process.exitcode == -signal.SIGKILL
    assert list(host.busy) == [1]  # which is lost with the process, and done alone
    there.close()


def test_half_a_message_of_a_child_makes_nobody_wait(tmp_path):
    receiver, sender = multiprocessing.Pipe(duplex=False)
    work = Work(3, "run", task("a"))
    child = Child(work, Ended(), receiver, tmp_path / "out", limit=None)
    content = json.dumps({"value": "found"}).encode()
    os.write(sender.fileno(), struct.pack("!i", len(content)) + content[:5])
    assert child.answer() is None
    os.write(sender.fileno(), content[5:])
    assert child.answer().value == "found"


def test_messages_come_out_as_they_were_sent():
    here, there = multiprocessing.Pipe()
    inbox = Inbox(here)
    for message in (b"", b"a", b"b" * 20_000):
        there.send_bytes(message)
    assert [inbox.take() for _ in range(4)] == [b"", b"a", b"b" * 20_000, None]
    there.close()
    with pytest.raises(EOFError):
        inbox.take()


def a_sparse_file(path):
    path.touch()
    os.truncate(path, 1 << 42)


def a_pipe(path):
    os.mkfifo(path)


def a_link(path):
    (path.parent / "secret").write_text("secret")
    path.symlink_to(path.parent / "secret")


@pytest.mark.parametrize(
    ("put", "most"), [(a_sparse_file, 20_000), (a_pipe, 0), (a_link, 0)]
)
def test_what_an_audit_puts_in_the_place_of_its_output_ends_nothing(
    tmp_path, put, most
):
    put(tmp_path / "out")
    began = time.monotonic()
    assert len(printed_to(tmp_path / "out")) <= most
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("made", range(5))
def test_where_no_folder_can_be_made_what_needs_one_is_an_error(
    project, monkeypatch, made
):
    """The files are the first two folders after that of the run, who judges has the third."""
    Path("audits/audit_a.py").write_text(HONEST)
    make, left = tempfile.mkdtemp, [made]

    def until_it_is_full(**options):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return make(**options)

    monkeypatch.setattr(tempfile, "mkdtemp", until_it_is_full)
    if made == 0:
        with pytest.raises(pool.StoppedError, match="No space left"):
            Workers().__enter__()
        return
    with Workers() as processes:
        plan = planned(processes)
        results = list(processes.run(plan.tasks))
    assert len(plan.failures) + len(results) == 2
    verdict = Verdict.VIOLATED if made == 4 else Verdict.ERROR
    ended = {1: 0, 2: 1, 3: 2, 4: 2}[made]
    assert [result.verdict for result in results] == [verdict] * ended
    reasons = [reason for _, reason in plan.failures]
    if made < 4:
        reasons += [result.summary for result in results]
    assert all("No space left" in reason for reason in reasons)


def test_an_import_that_leaves_no_room_is_the_error_of_its_file_and_the_others_have_room_again(
    project, monkeypatch
):
    Path("audits/audit_a.py").write_text(
        f"import tempfile\nopen(tempfile.gettempdir() + '/left', 'w')\n{HONEST}"
    )
    held = sandbox_of("auto", network=False)
    if not held.landlock:
        pytest.skip(
            "the kernel has no Landlock, and temporary files are not in the folder of the process"
        )
    with Workers(sandbox=held) as processes:
        monkeypatch.setattr(pool, "_is_full", lambda folder: any(folder.rglob("left")))
        plan = planned(processes)
        assert not [*processes._folder.rglob("left")]
    assert failed(plan) == ["audits/audit_a.py"]
    assert "no room" in plan.failures[0][1]
    assert len(plan.tasks) == 1


def test_where_an_audit_can_have_no_process_of_its_own_it_is_an_error_and_who_judges_ends(
    project, monkeypatch
):
    said = "{'forkable': False}"
    Path("audits/audit_a.py").write_text(f"{HONEST}{SAYS}\nSAID = {said}\n")
    with Workers() as processes:
        plan, make = planned(processes), pool._new_folder

        def full_for_its_own(parent, prefix="tmp"):
            if processes._judged:
                raise pool.FullError("No space left")
            return make(parent, prefix)

        monkeypatch.setattr(pool, "_new_folder", full_for_its_own)
        alone, beside = processes.run(plan.tasks)
    assert alone.verdict is Verdict.ERROR
    assert "No space left" in alone.summary
    assert beside.verdict is Verdict.VIOLATED


@pytest.mark.parametrize(
    "format", ["terminal", "html", "junit", "pull-request", "claims", "sarif", "github"]
)
def test_every_report_names_a_file_with_more_audits_than_a_hundred(format):
    claim = Published("a", "", "", "", "")
    done = AuditResult(
        "audits/audit_b.py::it", Verdict.ERROR, "it crashed", published=claim
    )
    for many in (100, 101):
        names = [done.id, *(f"audits/audit_a.py::it_{k}" for k in range(many))]
        ledger = [LedgerEntry(name, "verdict", 0.05 / len(names)) for name in names]
        text = render(RunRecord(1, "complete", {}, {}, "", "", ledger, [done]), format)
        named = "101 audits in audits/audit_a.py" in re.sub(r"[\\`]", "", text)
        assert named == (many == 101)


def test_a_collected_file_has_finite_limits():
    def collected(**more):
        listed = {"id": "a", "path": "a", **more}
        return pool.COLLECTED.validate_python({"audits": [listed]})

    for seconds in (0.0, -1.0, math.inf):
        with pytest.raises(ValueError, match="timeout"):
            collected(timeout=seconds)
    assert collected() == Collected((Listed("a", "a"),))
