"""Linux namespaces: separate processes, mounts and networks for audit files.

The process of an audit file enters namespaces by ``enter``. Three processes then take
its place:

1. The first one is started by the run, and only waits.
2. The second one is the first process of the namespace. It only waits as well. If it
   ends, the kernel ends every process of the namespace. It ends with the first one.
3. The third one does the work. Only this one runs code of users.

Each audit of the file then enters further namespaces, by ``enter_own``: it has shared
memory, IPC and a network of its own, and nothing that it leaves there reaches another
audit. Processes that an audit leaves running are identified by their namespaces, and
ended. Landlock forbids the process of a file, and all its children, to mount anything.
So another process makes the namespaces of audits and passes them on, the *maker*. It
has no Landlock, and runs no code of users.

Root needs no user namespace for this. Other users need one, which many containers and
some distributions refuse.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import struct
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from enum import IntEnum
from pathlib import Path
from typing import NoReturn

from auditdp.errors import die_with_parent
from auditdp.files import place_of_temporary_files, remove


class Clone:
    """Kinds of namespaces, as clone(2) numbers them."""

    MOUNTS = 0x0002_0000
    IPC = 0x0800_0000
    USERS = 0x1000_0000
    PROCESSES = 0x2000_0000
    NETWORK = 0x4000_0000


class Mount:
    """Options of a mount, as mount(2) numbers them."""

    NO_SUID = 2
    NO_DEVICES = 4
    NO_EXECUTION = 8
    BIND = 0x1000
    RECURSIVELY = 0x4000
    PRIVATE = 0x4_0000


class SetAttributes:
    """Numbers of the system call mount_setattr(2) and of its arguments."""

    CALL = 442
    WORKING_FOLDER = -100
    ALL_BELOW = 0x8000
    READ_ONLY = 1


OF_FILES = 0b1111
"""Capabilities that root keeps: to read, own and change files of other users, as far as
mounts and Landlock allow it."""
MOST_PROCESSES = max(512, 16 * (os.cpu_count() or 1))
"""Limit of the processes and threads of an audit file at the same time."""
SHARED_MEMORY = Path("/dev/shm")
OWN = (str(SHARED_MEMORY), "/run")
"""Folders that the namespace of a file replaces by its own: shared memory, and sockets
of services. A folder that holds code or scratch files of audits is not replaced."""
KINDS = ("user", "mnt", "ipc", "net")
"""Names of the namespaces of an audit, in the order of entering. The user namespace
gives the right to enter the others."""


class NamespaceLimits:
    """Limits of the namespaces of audits."""

    at_a_time = 64
    """Number of audits of a file that have namespaces at a time. Others wait."""
    seconds_between_checks = 0.01
    """Seconds between two checks whether an audit with namespaces has ended."""
    searches = 100
    """Limit of the searches for processes that an audit left running. If one of them
    forks faster than it is found, it ends with the process of the file."""


class Trial(IntEnum):
    """Exit codes of the process that tries to enter namespaces.

    ``FOR_FILES``: only the namespaces of a file exist. ``FOR_AUDITS``: also those of an
    audit.
    """

    FOR_FILES = 3
    FOR_AUDITS = 4


def available() -> tuple[bool, bool]:
    """Try namespaces, and return (available to files, available to audits).

    Raises:
        ConfigurationError: If no folder for temporary files can be written.
    """
    if sys.platform != "linux":
        return False, False
    with tempfile.TemporaryDirectory(dir=place_of_temporary_files()) as folder:
        if (trying := os.fork()) == 0:
            # A forked copy must not return to the caller, whatever is raised in it.
            with suppress(BaseException):
                enter(Path(folder), network=False)
                with suppress(OSError):
                    enter_own()
                    os._exit(Trial.FOR_AUDITS)
                os._exit(Trial.FOR_FILES)
            os._exit(1)
        code = os.waitstatus_to_exitcode(os.waitpid(trying, 0)[1])
    return code in tuple(Trial), code == Trial.FOR_AUDITS


def for_audits() -> list[Path]:
    """Return the folders for the shared memory of audits; [] outside a namespace."""
    return sorted(SHARED_MEMORY.glob("audit-*"))


def enter(folder: Path, *, network: bool) -> None:
    """Continue in a new process with namespaces of its own.

    The function returns only in the new process. The calling process waits for it, and
    ends with the same exit code.

    Args:
        folder: The only folder that stays writable.
        network: Whether to keep the network of the machine.

    Raises:
        OSError: If the kernel refuses.
    """
    root = _unshare(
        Clone.MOUNTS | Clone.IPC | Clone.PROCESSES | (0 if network else Clone.NETWORK)
    )
    seen, told = os.pipe()
    if (first := os.fork()) != 0:
        os.close(told)
        _end_as_in(first, seen)
    os.close(seen)
    die_with_parent()
    # The parent may have ended before die_with_parent; then nobody reads the pipe.
    if _has_no_reader(told):
        os._exit(1)
    # A new session has no terminal, so signals of the terminal do not arrive here.
    os.setsid()
    _mount(folder)
    if not network:
        _open_loopback()
    # Kernels before 6.14 have one number for the whole machine.
    with suppress(OSError):
        Path("/proc/sys/kernel/pid_max").write_text(str(MOST_PROCESSES))
    asking, asked = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    maker = _start_maker(asked, asking, network=network)
    working = os.fork()
    # If this end stayed open here, a request after the end of the maker would wait
    # forever.
    asked.close()
    if working != 0:
        asking.close()
        _wait_for(working, told)
    os.close(told)
    kept = OF_FILES if root else 0
    _makers.append((maker, asking, kept))
    if not root:
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NPROC)
        most = (
            MOST_PROCESSES
            if most == resource.RLIM_INFINITY
            else min(most, MOST_PROCESSES)
        )
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
    _give_up_capabilities(kept)


_makers: list[tuple[int, socket.socket, int]] = []
"""The id of the maker, the socket to it, and the capabilities that this process keeps.
It has at most one entry."""


def enter_own() -> None:
    """Enter namespaces of this audit alone: shared memory, IPC, and network.

    This process must descend from one in which ``enter`` returned.

    Raises:
        OSError: If the maker could not make them.
    """
    ours, theirs = socket.socketpair()
    _, asking, kept = _makers.pop()
    with asking, theirs:
        socket.send_fds(asking, [b"?"], [theirs.fileno()])
    with ours:
        _, places, _, _ = socket.recv_fds(ours, 1, len(KINDS))
    if not places:
        raise OSError("no namespaces could be made for this audit")
    here = os.getcwd()
    for place in places:
        _checked("setns", place, 0)
        os.close(place)
    # Entering other mounts changes the working folder to their root.
    os.chdir(here)
    _give_up_capabilities(kept)


def end_left(running: Iterable[int]) -> None:
    """End the processes that audits left running when they ended.

    These are processes that belong neither to the file nor to a running audit. A
    process can hide its namespace (``PR_SET_DUMPABLE``), but not its parents: it was
    left if none of them is the process of the file or of a running audit.

    Args:
        running: Ids of the processes of running audits, which stay.
    """
    working = [str(number) for number in running]
    known = {str(os.getpid()), *working}
    for _ in range(NamespaceLimits.searches):
        # A running audit may enter its own namespaces at this moment. So the namespaces
        # of other processes are read first, and those of running audits after them.
        found = {
            name: _own_namespace(name)
            for name in os.listdir("/proc")
            if name.isdigit() and name not in working
        }
        kept = {None, *map(_own_namespace, ("self", *working))}
        left = [int(name) for name, own in found.items() if own not in kept]
        left += [
            int(name)
            for name, own in found.items()
            if own is None and _is_left(name, known)
        ]
        for number in left:
            with suppress(OSError):
                os.kill(number, signal.SIGKILL)
        if not left:
            return


def _is_left(process: str, known: set[str]) -> bool:
    """Return True if a process runs and descends from none of the known ones.

    The first process of the namespace and the maker do not count.
    """
    if process in ("1", *(str(maker) for maker, _, _ in _makers)):
        return False
    while process not in known:
        try:
            # The program's name is in brackets, and may have some itself.
            state, parent, *_ = (
                Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            )
        except (OSError, ValueError):
            return False
        if state in "ZX":
            return False
        if parent in ("0", "1"):
            return True
        process = parent
    return False


def _own_namespace(process: str) -> str | None:
    """Return the name of a process's IPC namespace, or None.

    It is None if the process ended or is not accessible.
    """
    try:
        return os.readlink(f"/proc/{process}/ns/ipc")
    except OSError:
        return None


def _start_maker(asked: socket.socket, asking: socket.socket, *, network: bool) -> int:
    """Start the maker, the process that makes namespaces for audits; return its id.

    The maker enters a user namespace in which each user keeps their id.

    Args:
        asked: The maker's end of the socket.
        asking: The other end.
        network: Whether audits keep the network of the machine.
    """
    if (maker := os.fork()) == 0:
        die_with_parent()
        with suppress(BaseException):
            asking.close()
            try:
                _checked("unshare", Clone.USERS)
            except OSError:
                # The other side waits for a message; an empty one is the failure.
                asked.send(b"")
                raise
            asked.send(b"!")
            asked.recv(1)
            _make_for_audits(asked, network=network)
        os._exit(1)
    # The kernel accepts a map of several users only from outside, with CAP_SETUID.
    if asking.recv(1):
        for kind in ("uid", "gid"):
            rows = [
                row.split()
                for row in Path(f"/proc/self/{kind}_map").read_text().splitlines()
            ]
            same = [f"{inside} {inside} {count}\n" for inside, _, count in rows]
            Path(f"/proc/{maker}/{kind}_map").write_text("".join(same))
        asking.send(b"!")
    return maker


def _make_for_audits(asked: socket.socket, *, network: bool) -> None:
    """Answer each request with new namespaces, in the process of the maker.

    They exist as long as a process is in them.
    """
    wanted = Clone.MOUNTS | Clone.IPC | (0 if network else Clone.NETWORK)
    own = [kind for kind in KINDS if not network or kind != "net"]
    # For each audit the maker enters new namespaces, and then returns to these.
    _checked("unshare", wanted)
    # Mounts that are made for one audit must not appear in other namespaces.
    _checked("mount", None, b"/", None, Mount.RECURSIVELY | Mount.PRIVATE, None)
    back = _opened(own[1:])
    folders = for_audits()
    used: dict[Path, int] = {}
    while True:
        _, (asker, *_), _, _ = socket.recv_fds(asked, 1, 1)
        # After an error no namespaces are sent, and the audit reports that itself.
        with (
            socket.socket(fileno=asker) as door,
            suppress(OSError),
        ):
            folder = None
            if folders:
                while not (
                    free := [
                        each
                        for each in folders
                        if not Path(f"/proc/{used.get(each)}").exists()
                    ]
                ):
                    time.sleep(NamespaceLimits.seconds_between_checks)
                for each in [each for each in free if each in used]:
                    _empty(each)
                    del used[each]
                folder = free[0]
                # The audit's process made this socket, so it is the peer. The folder
                # is in use until that process ends.
                used[folder], *_ = struct.unpack(
                    "3i", door.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
                )
            _checked("unshare", wanted)
            if folder is not None:
                _checked(
                    "mount",
                    os.fsencode(folder),
                    os.fsencode(SHARED_MEMORY),
                    None,
                    Mount.BIND,
                    None,
                )
            if not network:
                _open_loopback()
            made = _opened(own)
            socket.send_fds(door, [b"!"], made)
            for place in made:
                os.close(place)
        for place in back:
            _checked("setns", place, 0)


def _empty(folder: Path) -> None:
    """Empty the shared memory of an ended audit, for the next one."""
    os.chmod(folder, 0o700)
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            remove(entry)
        else:
            entry.unlink()
    for name in os.listxattr(folder):
        os.removexattr(folder, name)
    os.utime(folder)


def _opened(kinds: Iterable[str]) -> list[int]:
    return [os.open(f"/proc/self/ns/{kind}", os.O_RDONLY) for kind in kinds]


def _unshare(wanted: int) -> bool:
    """Move this process to new namespaces.

    Args:
        wanted: Kinds of namespaces, as flags of ``Clone``.

    Returns:
        True if no user namespace was needed, as for root.
    """
    user, group = os.getuid(), os.getgid()
    with suppress(PermissionError):
        _checked("unshare", wanted)
        return True
    _checked("unshare", wanted | Clone.USERS)
    # The kernel accepts a user's map of groups only after this.
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    return False


def _end_as_in(first: int, seen: int) -> NoReturn:
    """Wait for the namespace to end; then exit with its working process's exit code.

    Args:
        first: Id of the first process of the namespace.
        seen: Pipe from which the exit code of the working process is read.
    """
    import resource

    os.waitpid(first, 0)
    # An end without a code means that the first process was killed.
    code = int.from_bytes(
        os.read(seen, 4) or (-signal.SIGKILL).to_bytes(4, "little", signed=True),
        "little",
        signed=True,
    )
    if code < 0:
        # This process only repeats a signal, so a core file would be of no use.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # SIGKILL has no handler, and setting one raises.
        with suppress(OSError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _wait_for(working: int, told: int) -> None:
    """Wait for the working process, send its exit code to a pipe, and exit.

    This runs in the first process of the namespace.

    Args:
        working: Id of the working process.
        told: The pipe.
    """
    while True:
        # Orphans of the namespace become children of this process, and end here, too.
        ended, status = os.wait()
        if ended == working:
            os.write(
                told,
                os.waitstatus_to_exitcode(status).to_bytes(4, "little", signed=True),
            )
            os._exit(0)


def _has_no_reader(pipe: int) -> bool:
    watch = select.poll()
    watch.register(pipe, 0)
    return bool(watch.poll(0))


def _mount(folder: Path) -> None:
    """Make all mounts read-only except ``folder``; mount a new /proc and ``OWN``."""
    _checked("mount", None, b"/", None, Mount.RECURSIVELY | Mount.PRIVATE, None)
    # The attribute below belongs to mounts, so the folder has to become one.
    _checked("mount", os.fsencode(folder), os.fsencode(folder), None, Mount.BIND, None)
    _read_only(Path("/"), SetAttributes.ALL_BELOW, SetAttributes.READ_ONLY, 0)
    _read_only(folder, 0, 0, SetAttributes.READ_ONLY)
    _checked(
        "mount",
        b"proc",
        b"/proc",
        b"proc",
        Mount.NO_SUID | Mount.NO_DEVICES | Mount.NO_EXECUTION,
        None,
    )
    needed = [folder, Path.cwd(), *map(Path, sys.path)]
    for name in OWN:
        # An empty mount would hide the project, or packages, that lie in such a folder.
        if os.path.isdir(name) and not any(
            path.is_relative_to(os.path.realpath(name)) for path in needed
        ):
            _checked(
                "mount",
                b"tmpfs",
                os.fsencode(os.path.realpath(name)),
                b"tmpfs",
                Mount.NO_SUID | Mount.NO_DEVICES,
                b"mode=1777",
            )
            if name == str(SHARED_MEMORY):
                for number in range(NamespaceLimits.at_a_time):
                    (SHARED_MEMORY / f"audit-{number:02}").mkdir(0o700)


def _read_only(path: Path, flags: int, given: int, taken: int) -> None:
    attributes = struct.pack("=QQQQ", given, taken, 0, 0)
    size = ctypes.c_size_t(len(attributes))
    # Older C libraries have no function for mount_setattr.
    _checked(
        "syscall",
        SetAttributes.CALL,
        SetAttributes.WORKING_FOLDER,
        os.fsencode(path),
        flags,
        attributes,
        size,
    )


def _open_loopback() -> None:
    """Enable the loopback device, so that processes of the namespace can connect."""
    import fcntl
    import socket

    with socket.socket() as made:
        # The request is SIOCSIFFLAGS, with the flag IFF_UP.
        fcntl.ioctl(made, 0x8914, struct.pack("16sh14x", b"lo", 1))


def _give_up_capabilities(kept: int) -> None:
    # The number is the kernel's _LINUX_CAPABILITY_VERSION_3, whose sets have two words.
    sets = struct.pack("=IIIIII", kept, kept, 0, 0, 0, 0)
    _checked("capset", struct.pack("=Ii", 0x2008_0522, 0), sets)


def _checked(name: str, *arguments: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
