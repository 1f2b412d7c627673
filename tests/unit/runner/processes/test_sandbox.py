"""What a kernel is asked to refuse to a process, and what is said of it."""

import errno
import os
import socket
import stat
import sys
import tempfile
from functools import partial
from pathlib import Path

import pytest

from auditdp.errors import ConfigurationError
from auditdp.files import remove
from auditdp.runner import namespaces, sandbox
from auditdp.runner import sandbox as landlock
from auditdp.runner.sandbox import UNCONFINED, Sandbox, explained, sandbox_of

HERE = landlock.abi()
held = pytest.mark.skipif(not HERE, reason="the kernel has no Landlock")


def in_fork(action):
    """What an action returns in a process of its own, as the code with which that exits."""
    if (child := os.fork()) == 0:
        code = 99
        try:
            code = action()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def refusal(attempt):
    """The number of the error that an attempt ends with; 0 where it succeeds."""
    try:
        attempt()
    except OSError as error:
        return error.errno
    return 0


@held
@pytest.mark.parametrize("known", range(1, HERE + 1))
def test_every_version_of_landlock_refuses_what_it_knows_of(known, tmp_path):
    inside, outside = tmp_path / "in", tmp_path / "out"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "old").write_text("as it was")
        (folder / "gone").touch()
    server = socket.create_server(("127.0.0.1", 0))
    address = server.getsockname()[:2]
    # Each attempt in a folder, and the version since which it is refused.
    attempts = [
        (lambda folder: (folder / "new").write_text("x"), 1),
        (lambda folder: os.open(folder / "old", os.O_WRONLY), 1),
        (lambda folder: (folder / "gone").unlink(), 1),
        (lambda folder: (folder / "a").mkdir(), 1),
        (lambda folder: (folder / "b").symlink_to("x"), 1),
        (lambda folder: os.truncate(folder / "old", 0), 3),
        (
            lambda folder: folder == inside or socket.create_connection(address),
            landlock.Since.TCP,
        ),
        (
            lambda folder: os.kill(
                os.getpid() if folder == inside else os.getppid(), 0
            ),
            landlock.Since.SCOPES,
        ),
    ]

    def tried():
        landlock.restrict(known, [inside, tmp_path / "not there"], network=False)
        assert (outside / "old").read_text() == "as it was"
        refused = [refusal(partial(each, outside)) != 0 for each, _ in attempts]
        assert [refusal(partial(each, inside)) for each, _ in attempts] == [0] * 8
        return sum(each << k for k, each in enumerate(refused))

    expected = [known >= since for _, since in attempts]
    assert in_fork(tried) == sum(each << k for k, each in enumerate(expected))


@held
def test_who_is_confined_twice_has_the_smaller_folder_alone(tmp_path):
    def tried():
        held = Sandbox(HERE)
        held.confine(tmp_path)
        held.confine(tmp_path / "own")
        assert tempfile.gettempdir() == os.environ["TMPDIR"] == str(tmp_path / "own")
        assert stat.S_IMODE((tmp_path / "own").stat().st_mode) == 0o700
        tempfile.TemporaryFile().close()
        return refusal(lambda: (tmp_path / "other").write_text("x"))

    assert in_fork(tried) == errno.EACCES


@pytest.mark.skipif(not namespaces.available()[0], reason="namespaces are refused here")
@pytest.mark.parametrize(
    "ending",
    [
        lambda: os._exit(7),
        lambda: os.kill(os.getpid(), 15),
        lambda: os.kill(os.getpid(), 9),
    ],
)
def test_a_process_in_namespaces_ends_as_one_that_is_not(ending, tmp_path):
    def entered():
        namespaces.enter(tmp_path, network=False)
        return ending()

    assert in_fork(entered) == in_fork(ending)


@pytest.mark.skipif(not namespaces.available()[0], reason="namespaces are refused here")
def test_in_namespaces_servers_of_ones_own_answer_and_no_other_process_is_seen(
    tmp_path,
):
    def entered():
        namespaces.enter(tmp_path, network=False)
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname()[:2]).close()
        assert refusal(lambda: os.open("/proc/1/mem", os.O_RDONLY))
        return len([name for name in os.listdir("/proc") if name.isdigit()])

    assert (
        in_fork(entered) == 3
    )  # and the first one of the namespace, and the one that makes those of audits


@pytest.mark.skipif(not namespaces.available()[0], reason="namespaces are refused here")
@pytest.mark.skipif(
    os.getuid() != 0,
    reason="others than root have no namespaces at all without user namespaces",
)
def test_where_user_namespaces_are_refused_audits_of_a_file_share_its_namespaces(
    monkeypatch,
):
    monkeypatch.setattr(namespaces.Clone, "USERS", 1)  # which the kernel refuses
    assert namespaces.available() == (True, False)


@pytest.mark.skipif(
    not namespaces.available()[1], reason="namespaces of audits are refused here"
)
def test_more_audits_than_there_is_shared_memory_wait_for_it_and_find_it_empty(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(namespaces.NamespaceLimits, "at_a_time", 2)
    memory = namespaces.SHARED_MEMORY

    def audited():
        namespaces.enter_own()
        found = len(os.listdir(memory))
        (memory / "left").mkdir(mode=0)
        return found

    def entered():
        namespaces.enter(tmp_path, network=False)
        return sum(in_fork(audited) for _ in range(5))

    assert in_fork(entered) == 0


def test_a_sandbox_says_what_holds_and_what_does_not():
    assert (str(UNCONFINED), UNCONFINED.lacking) == (
        "none",
        ["files", "processes", "the network"],
    )
    assert (str(Sandbox(3)), Sandbox(3).lacking) == (
        "Landlock, network not closed",
        ["processes", "the network"],
    )
    assert (str(Sandbox(5)), Sandbox(5).lacking) == (
        "Landlock, network closed",
        ["processes"],
    )
    assert (str(Sandbox(6)), Sandbox(6).lacking) == ("Landlock, network closed", [])
    files, audits = Sandbox(1, True), Sandbox(7, True, True, True)
    assert (str(files), files.lacking) == (
        "Landlock and namespaces that audits of a file share, network closed",
        [],
    )
    assert (str(audits), audits.lacking) == (
        "Landlock and namespaces, network open",
        [],
    )


def test_what_is_required_is_had_or_refused(monkeypatch):
    monkeypatch.setattr(landlock, "abi", lambda: 0)
    assert (
        sandbox_of("auto", network=False)
        == sandbox_of("off", network=False)
        == UNCONFINED
    )
    with pytest.raises(
        ConfigurationError,
        match="cannot shut audits off from files, processes, the network",
    ):
        sandbox_of("required", network=False)
    monkeypatch.setattr(landlock, "abi", lambda: 5)
    monkeypatch.setattr(namespaces, "available", lambda: (False, False))
    with pytest.raises(
        ConfigurationError, match="cannot shut audits off from processes"
    ):
        sandbox_of("required", network=False)
    monkeypatch.setattr(namespaces, "available", lambda: (True, False))
    assert sandbox_of("required", network=True) == Sandbox(5, True, True)


def test_a_failure_names_the_sandbox_where_that_may_be_why(monkeypatch):
    refused = str(PermissionError(errno.EACCES, os.strerror(errno.EACCES), "out.txt"))
    assert explained(refused) == refused
    monkeypatch.setattr(sandbox, "_confined", [Path("/scratch")])
    assert explained("ValueError: x") == "ValueError: x"
    assert "--sandbox off" in explained(refused)


def test_whatever_an_audit_left_in_its_folder_is_removed(tmp_path):
    deep = folder = tmp_path / "scratch"
    for _ in range(2 * sys.getrecursionlimit()):
        os.mkdir(deep)
        os.chdir(deep)
        deep = Path("a")
    os.chdir("/")
    (folder / "closed").mkdir()
    (folder / "closed/file").write_text("x")
    (folder / "closed").chmod(0)
    (tmp_path / "kept").write_text("x")
    (folder / "link").symlink_to(tmp_path)
    remove(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
