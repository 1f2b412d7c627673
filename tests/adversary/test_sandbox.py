"""What an audit can do to the run, to what that leaves behind, and to the machine: with a sandbox, nothing."""

import ctypes
import inspect
import json
import platform
import socket
import struct
import subprocess
import sys
import threading
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest

from auditdp.runner.run_record import scan_log
from auditdp.runner.sandbox import sandbox_of
from tests.adversary.attacks import ATTACKS, DAEMON, Attack, in_files, source
from tests.cli.conftest import (  # noqa: F401 - fixtures are among them
    RUN,
    SCRIPT,
    Outcome,
    environment,
    fork_server,
    project,
)

HERE = sandbox_of("auto", network=False)
UNSHARE = {"x86_64": 272, "aarch64": 97}.get(platform.machine())
LANDLOCK = 444
REPORTS = "--report json=reports/run.json --report html=reports/index.html"
HONEST = """
from auditdp import Audit, PureDP, audit

@audit
def leaks():
    return Audit(lambda x, rng: x, PureDP(1.0), pairs=[(0, 1)])

@audit
def keeps():
    return Audit(lambda x, rng: 0, PureDP(1.0), pairs=[(0, 1)])
"""
ALL = "files, processes, the network"
LEAKS = HONEST.partition("\n@audit\ndef keeps")[0]
TWO = """
@audit
def first():
    return looks()

@audit
def second():
    return looks()
"""
"""Two audits that do the same."""
LEAVES = """
import ctypes, json, os, socket, tempfile, time
from pathlib import Path
from auditdp import Audit, PureDP, audit

LIBC = ctypes.CDLL(None)
KEY, PORT, SECONDS = 77, 5555, 600

def daemon_answers():
    try:
        socket.create_connection(("127.0.0.1", PORT), 1).close()
    except OSError:
        return False
    return True

def found():
    commands = [path.read_text() for path in Path("/proc").glob("[0-9]*/comm")]
    memory, scratch = os.statvfs("/dev/shm"), Path(tempfile.gettempdir())
    return {
        "shared memory": Path("/dev/shm/mark").exists(),
        "System V": LIBC.shmget(KEY, 4096, 0o600) >= 0,
        "queue": LIBC.mq_open(b"/mark", 0) >= 0,
        "daemon": daemon_answers(),
        "mode of shared memory": os.stat("/dev/shm").st_mode & 0o777 == 0o711,
        "attribute of shared memory": "user.mark" in os.listxattr("/dev/shm"),
        "process": "left\\n" in commands,
        "hidden process": "hidden\\n" in commands,
        "files that it goes on to write": any(scratch.parent.glob("*.scratch/written")),
        "room that it took": memory.f_blocks - memory.f_bfree > 1_000,
    }

def leave():
    Path("/dev/shm/mark").write_bytes(bytes(8 << 20))
    os.chmod("/dev/shm", 0o711)
    os.setxattr("/dev/shm", "user.mark", b"x")
    scratch = tempfile.gettempdir()
    LIBC.shmget(KEY, 4096, 0o1600)
    LIBC.mq_open(b"/mark", 0o102, 0o600, None)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            LIBC.prctl(1, 0)
            LIBC.prctl(15, b"left")
            server = socket.create_server(("127.0.0.1", PORT))
            time.sleep(SECONDS)
        if os.fork() == 0:
            LIBC.prctl(1, 0)
            LIBC.prctl(4, 0)  # nobody may look at it
            LIBC.prctl(15, b"hidden")
            while True:
                for name in ("written", *map(str, range(100))):
                    try:
                        open(f"{scratch}/{name}", "w").close()
                    except OSError:
                        pass
                time.sleep(0.001)
        os._exit(0)
    while not all(found().values()):
        time.sleep(0.01)

def looks():
    before = found()
    leave()
    print(json.dumps([before, found()]))
    return Audit(lambda x, rng: x, PureDP(1.0), pairs=[(0, 1)])
"""
"""Two audits that look for what the other one left, and then leave it."""
LIMITS = """
import json, os, resource
from auditdp import Audit, PureDP, audit

def looks():
    print(json.dumps([resource.getrlimit(resource.RLIMIT_NOFILE), os.getpriority(os.PRIO_PROCESS, 0)]))
    try:
        resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (20, 20))
        os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)
    except OSError:  # of an audit that runs alone, it is another user's
        pass
    return Audit(lambda x, rng: x, PureDP(1.0), pairs=[(0, 1)])
"""
"""Two audits that look at their limits, and then lower those of the process that they were forked from."""
LOWERS = """
import resource
from pathlib import Path

for process in Path("/proc").glob("[0-9]*"):
    try:
        if "lowered.jsonl" in (process / "cmdline").read_text():
            resource.prlimit(int(process.name), resource.RLIMIT_FSIZE, (1, 1))
    except OSError:
        pass
"""
SEEN_BESIDE = (
    "process",
    "hidden process",
    "files that it goes on to write",
    "room that it took",
)
"""What is seen of an audit that runs beside another one."""
LAST = Attack("daemon", "a daemon that outlives it", DAEMON, alone=True)

pytestmark = [
    pytest.mark.skipif(
        sys.platform != "linux", reason="Landlock and namespaces are of Linux"
    ),
    pytest.mark.skipif(
        UNSHARE is None,
        reason="numbers of system calls are not known for this processor",
    ),
]


@dataclass(frozen=True)
class Attacked:
    """A run that was attacked.

    Attributes:
        root: The folder of the project.
        done: The command as it ended.
        before: Contents of files as they were, by path.
        connections: How many a server of the machine has seen.
        mark: What the run's command line, and a file of shared memory, are known by.
    """

    root: Path
    done: subprocess.CompletedProcess[str]
    before: dict[Path, bytes]
    connections: int
    mark: str

    @property
    def record(self) -> dict:
        return json.loads((self.root / "reports/run.json").read_text())

    def came_to(self, name: str) -> str:
        """What an attack printed of its end: REFUSED or DONE; nothing where it had none."""
        lines = [
            line.split()
            for each in self.record["results"]
            for line in each["printed"].splitlines()
        ]
        return next((words[1] for words in lines if words[0] == name), "")


def attacked(
    root: Path, attacks: list[Attack], *options: str, refused: tuple[int, ...] = ()
) -> Attacked:
    """Run attacks between honest audits.

    Args:
        root: Of the project.
        attacks: What its audits do.
        options: Of the command.
        refused: Numbers of system calls that the kernel refuses, as it does in some containers.
    """
    mark = f"mark-{uuid.uuid4().hex}"
    log = f".auditdp/{mark}.jsonl"
    for folder in ("audits", "reports"):
        (root / folder).mkdir(parents=True)
    shared = Path("/dev/shm") / mark
    shared.write_bytes(b"as it was")
    (root / "auditdp-baseline.toml").write_text("schema = 1\n")
    (root / "pyproject.toml").write_text("[tool.auditdp]\n")
    connections: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        values = {
            "mark": mark,
            "port": server.getsockname()[1],
            "log": log,
            "sandboxed": "off" not in options,
        }
        for name, tried in in_files(attacks).items():
            (root / f"audits/audit_{name}.py").write_text(source(name, tried, **values))
        (root / "audits/audit_a.py").write_text(HONEST)
        (root / "audits/audit_z.py").write_text(HONEST)
        before = {
            path: path.read_bytes()
            for path in [shared, *root.rglob("*")]
            if path.is_file()
        }
        threading.Thread(
            target=_accepting, args=(server, connections), daemon=True
        ).start()
        more = ("--log", log, "-n", "2", *REPORTS.split(), *options)
        done = run(root, *more, refused=refused)
        server.shutdown(socket.SHUT_RDWR)
    found = Attacked(root, done, before, len(connections), mark)
    assert (root / "reports/run.json").exists(), done.stderr
    return found


def _accepting(server: socket.socket, connections: list[socket.socket]) -> None:
    try:
        while True:
            connections.append(server.accept()[0])
    except OSError:
        return


def refuse(*numbers: int) -> None:
    """Have the kernel refuse system calls to this process and to all that it starts, by a filter that nothing lifts."""
    steps = [struct.pack("=HBBI", 0x20, 0, 0, 0)]  # the number of the call
    for number in numbers:
        steps += [
            struct.pack("=HBBI", 0x15, 0, 1, number),
            struct.pack("=HBBI", 0x06, 0, 0, 0x0005_0001),
        ]  # EPERM
    steps += [struct.pack("=HBBI", 0x06, 0, 0, 0x7FFF_0000)]
    code = ctypes.create_string_buffer(b"".join(steps))
    program = ctypes.create_string_buffer(
        struct.pack("@HP", len(steps), ctypes.addressof(code))
    )
    libc = ctypes.CDLL(None)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, program) == 0


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """All attacks on a run with all that this kernel has."""
    if not HERE.namespaces:
        pytest.skip(
            f"this system has {HERE}: namespaces are refused, or there is no Landlock"
        )
    return attacked(tmp_path_factory.mktemp("whole") / "project", [*ATTACKS, LAST])


@pytest.fixture(scope="module")
def without_namespaces(tmp_path_factory):
    """The attacks that Landlock alone stands against, where namespaces are refused."""
    if HERE.lacking:
        pytest.skip(f"this system has {HERE}")
    attacks = [attack for attack in ATTACKS if attack.by == "landlock"]
    return attacked(
        tmp_path_factory.mktemp("landlock") / "project",
        [*attacks, LAST],
        refused=(UNSHARE,),
    )


@pytest.fixture(scope="module")
def off(tmp_path_factory):
    """The attacks that are safe to try on a run without a sandbox: all succeed, so that they are attacks."""
    attacks = [attack for attack in ATTACKS if attack.lands]
    return attacked(
        tmp_path_factory.mktemp("off") / "project", attacks, "--sandbox", "off"
    )


def as_it_has_to_be(run: Attacked, attacks: list[Attack]) -> None:
    """The run has ended in order, every result is there and true, and nothing but its log and reports has changed."""
    assert run.done.returncode == 1, run.done.stderr
    assert run.record["status"] == "complete"
    verdicts = {
        each["id"].rpartition("/")[2]: each["verdict"] for each in run.record["results"]
    }
    honest = {
        f"audit_{k}.py::{n}": v
        for k in "az"
        for n, v in (("leaks", "VIOLATED"), ("keeps", "NOT_REFUTED"))
    }
    expected = {
        **{f"audit_{name}.py::audit_{name}": "VIOLATED" for name in in_files(attacks)},
        **honest,
    }
    assert verdicts == expected
    log = scan_log(run.root / f".auditdp/{run.mark}.jsonl")
    assert not log.problems
    assert {
        each.id.rpartition("/")[2]: each.verdict.value for each in log.record.results
    } == expected
    assert "was written anew" not in run.done.stderr
    assert {path: path.read_bytes() for path in run.before} == run.before
    left = {
        path.relative_to(run.root).parts[0]
        for path in run.root.rglob("*")
        if path.is_file()
    }
    assert left == {
        ".auditdp",
        "audits",
        "reports",
        "auditdp-baseline.toml",
        "pyproject.toml",
    }
    assert "VIOLATED" in (run.root / "reports/index.html").read_text()
    assert run.connections == 0


def test_a_run_that_is_attacked_ends_as_one_that_is_not(whole):
    as_it_has_to_be(whole, [*ATTACKS, LAST])
    assert whole.record["sandbox"] == "Landlock and namespaces, network closed"


@pytest.mark.full
def test_where_namespaces_are_refused_it_does_so_too(without_namespaces):
    tried = [attack for attack in ATTACKS if attack.by == "landlock"]
    as_it_has_to_be(without_namespaces, [*tried, LAST])
    assert without_namespaces.record["sandbox"] == "Landlock, network closed"


def test_every_attack_is_refused(whole):
    assert [
        attack.name for attack in ATTACKS if whole.came_to(attack.name) != "REFUSED"
    ] == []


@pytest.mark.full
def test_landlock_alone_refuses_what_it_stands_against(without_namespaces):
    tried = [attack.name for attack in ATTACKS if attack.by == "landlock"]
    assert [
        name for name in tried if without_namespaces.came_to(name) != "REFUSED"
    ] == []


@pytest.mark.full
def test_an_attack_is_one_where_nothing_refuses_it(off):
    tried = [attack.name for attack in ATTACKS if attack.lands]
    assert [name for name in tried if off.came_to(name) != "DONE"] == []
    assert off.record["sandbox"] == "none"


@pytest.mark.parametrize(
    "kind", ["whole", pytest.param("without_namespaces", marks=pytest.mark.full)]
)
def test_what_an_audit_leaves_running_ends_with_the_run(kind, request):
    run = request.getfixturevalue(kind)
    log = run.root / f".auditdp/{run.mark}.jsonl"
    written = log.read_bytes()
    assert run.came_to("daemon") == "DONE"
    for _ in range(50):
        left = [line for line in command_lines() if run.mark in line]
        if not left:
            break
        time.sleep(0.05)
    assert not left
    assert log.read_bytes() == written


@pytest.fixture
def honest(project):  # noqa: F811
    """A project whose audits attack nothing."""
    project.write("audits/audit_a.py", LEAKS)
    return project


def where_refused(*numbers: int) -> str:
    """Code that has the kernel refuse system calls to the process that executes it."""
    code = inspect.getsource(refuse)
    return f"import ctypes, struct\n{code}\nrefuse(*{numbers})"


def run(
    root: Path, *options: str, refused: tuple[int, ...] = ()
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SCRIPT, *RUN.split(), *options],
        cwd=root,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        preexec_fn=(lambda: refuse(*refused)) if refused else None,
    )


def test_where_the_kernel_refuses_all_of_it_the_run_says_so_once_and_goes_on(honest):
    refused = where_refused(LANDLOCK, UNSHARE)
    done = honest(f"{RUN} --format json", patch=refused)
    assert (done.code, done.record["sandbox"]) == (1, "none")
    assert done.err.count(f"cannot shut audits off from {ALL}") == 1


def test_where_it_is_required_and_refused_nothing_runs(honest):
    refused = where_refused(LANDLOCK, UNSHARE)
    done = honest(f"{RUN} --sandbox required", patch=refused)
    assert done.refuses(f"this system cannot shut audits off from {ALL}")
    assert not (honest.root / ".auditdp").exists()


@pytest.mark.skipif(bool(HERE.lacking), reason=f"this system has {HERE}")
def test_where_it_is_required_and_can_be_had_it_is_had(honest):
    done = honest.run("--sandbox required")
    assert (done.code, done.err) == (1, "")
    assert done.record["sandbox"] == str(HERE)


def test_settings_that_turn_it_off_are_named(honest):
    honest.write("pyproject.toml", '[tool.auditdp]\nsandbox = "off"\n')
    done = honest.run()
    assert (done.code, done.record["sandbox"]) == (1, "none")
    assert "no sandbox, by" in done.err
    assert "pyproject.toml" in done.err
    assert honest(f"{RUN} -k none --sandbox off").err.count("sandbox") == 0


@pytest.mark.full
@pytest.mark.skipif(not HERE.landlock, reason="the kernel has no Landlock")
def test_the_network_is_open_where_that_is_asked_for(honest):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        connects = f"import socket\nsocket.create_connection(('127.0.0.1', {port}))\n"
        honest.write("audits/audit_a.py", connects + LEAKS)
        closed, opened = honest.run(), honest.run("--network")
    assert (closed.code, opened.code) == (3, 1)
    assert "ConnectionRefusedError" in closed.out or "PermissionError" in closed.out
    assert opened.record["sandbox"].endswith("network open")


def found_in(run: Outcome) -> list:
    """What each audit found, as it printed it."""
    return [json.loads(result["printed"]) for result in run.record["results"]]


@pytest.mark.skipif(not HERE.of_audits, reason=f"this system has {HERE}")
@pytest.mark.dear
@pytest.mark.parametrize("workers", ["1", "2"])
def test_what_an_audit_leaves_reaches_no_other_audit_of_its_file(honest, workers):
    honest.write("audits/audit_a.py", LEAVES + TWO)
    found = found_in(honest.run(f"-n {workers}"))
    assert len(found) == 2
    for before, after in found:
        assert all(after.values()), after  # else what it looks for could not be found
        if workers == "1":
            assert not any(before.values()), before
        else:
            assert not any(
                before[name] for name in before if name not in SEEN_BESIDE
            ), before


@pytest.mark.skipif(not HERE.of_audits, reason=f"this system has {HERE}")
def test_limits_that_an_audit_sets_to_the_process_of_its_file_reach_no_later_one(
    honest,
):
    honest.write("audits/audit_a.py", LIMITS + TWO)
    first, second = found_in(honest.run("-n 1"))
    assert first == second


@pytest.mark.skipif(not HERE.landlock, reason="the kernel has no Landlock")
def test_with_landlock_alone_limits_of_the_run_can_be_lowered_and_it_is_not_clean(
    honest,
):
    honest.write("audits/audit_a.py", LOWERS + HONEST)
    lowered = run(honest.root, "--log", "lowered.jsonl", refused=(UNSHARE,))
    assert lowered.returncode == 3


def test_what_an_import_shares_reaches_all_audits_of_its_file(honest):
    head = "import mmap\nshared = mmap.mmap(-1, 1)\n"
    step = "    shared[0] += 1\n    print(shared[0])\n"
    text = head + HONEST.replace("    return", f"{step}    return")
    honest.write("audits/audit_a.py", text)
    assert found_in(honest.run("-n 1")) == [1, 2]


@pytest.mark.skipif(not HERE.landlock, reason="the kernel has no Landlock")
def test_what_audits_rightly_write_they_can_write(honest, monkeypatch):
    rightly = """
import multiprocessing, socket, subprocess, sys, tempfile
from pathlib import Path
assert Path("secret").read_text() == "read"
socket.socket(socket.AF_UNIX).connect("display")
from hypothesis import given, settings, strategies as st
Path(tempfile.mkdtemp(), "x").write_text("x")
assert subprocess.run([sys.executable, "-c", "import tempfile; tempfile.TemporaryFile()"]).returncode == 0
lock = multiprocessing.get_context("fork").Lock()
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(abs, [-1, 2]) == [1, 2]
with multiprocessing.Manager() as manager:
    assert manager.list([1])[0] == 1
given(st.integers())(lambda number: None)()
"""
    within = rightly.replace(
        "\n", "\n    "
    )  # an audit has other namespaces than its file
    audits = rightly + LEAKS.replace("def leaks():", f"def leaks():{within}")
    honest.write("audits/audit_a.py", audits)
    honest.write("secret", "read")
    with socket.socket(
        socket.AF_UNIX
    ) as service:  # and what a service with a name is asked, no boundary
        monkeypatch.chdir(honest.root)
        service.bind("display")
        service.listen()
        done = run(honest.root)
    assert done.returncode == 1, done.stdout
    assert {path.name for path in honest.root.iterdir()} == {
        "audits",
        ".auditdp",
        "secret",
        "display",
    }


def command_lines() -> list[str]:
    """Those of all processes."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            found.append((entry / "cmdline").read_text())
        except OSError:
            continue
    return found
