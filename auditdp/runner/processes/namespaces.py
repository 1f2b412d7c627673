"""Namespaces: a process of an audit file sees, and can reach, only processes, mounts and a network of its own.

Three processes stand where one would: the one that the run started, which only waits; the first of the namespace, which
only waits too, and with whose end the kernel ends every process of the namespace, whatever it did to outlive it; and the one
that goes on with the work. Users' code runs in the last alone. When the run ends the first, the second ends with it.

Root needs no user namespace for that, others do; many containers and some distributions refuse it.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import struct
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from auditdp.mechanism.ending import die_with_parent

MOUNTS, IPC, USERS, PROCESSES, NETWORK = 0x0002_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000
NO_SUID, NO_DEVICES, NO_EXECUTION, BIND, RECURSIVELY, PRIVATE = 2, 4, 8, 0x1000, 0x4000, 0x4_0000
MOUNT_SETATTR, WORKING_FOLDER, ALL_BELOW, READ_ONLY = 442, -100, 0x8000, 1
OF_FILES = 0b1111
"""Capabilities that root keeps: to read, own and change files of others, where they can be written at all."""
MOST_PROCESSES = max(512, 16 * (os.cpu_count() or 1))
"""Processes and threads that an audit file may have at a time."""
OWN = ("/dev/shm", "/run")
"""Folders that are empty in the namespace: shared memory, and where services of the machine have their sockets."""


def available() -> bool:
    """Whether a process may have namespaces of its own, tried in one that does nothing else."""
    if sys.platform != "linux":
        return False
    with tempfile.TemporaryDirectory() as folder:
        if (trying := os.fork()) == 0:
            with suppress(BaseException):
                enter(Path(folder), network=False)
                os._exit(0)
            os._exit(1)
        return os.waitpid(trying, 0)[1] == 0


def enter(folder: Path, *, network: bool) -> None:
    """Return in a new process, in namespaces of its own; the process that called this waits for it, and ends as it ended.

    Of the file system ``folder`` stays writable, and with ``network`` the network stays that of the machine.

    Raises:
        OSError: If the kernel refuses.
    """
    root = _unshare(MOUNTS | IPC | PROCESSES | (0 if network else NETWORK))
    seen, told = os.pipe()
    if (first := os.fork()) != 0:
        os.close(told)
        _end_as_in(first, seen)
    os.close(seen)
    die_with_parent()
    if _has_no_reader(told):
        os._exit(1)
    os.setsid()  # away from the terminal of the run
    _mount(folder)
    if not network:
        _open_loopback()
    with suppress(OSError):  # kernels before 6.14 have one number for the whole machine
        Path("/proc/sys/kernel/pid_max").write_text(str(MOST_PROCESSES))
    if (working := os.fork()) != 0:
        _wait_for(working, told)
    os.close(told)
    if not root:
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NPROC)
        most = MOST_PROCESSES if most == resource.RLIM_INFINITY else min(most, MOST_PROCESSES)
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
    _give_up_capabilities(OF_FILES if root else 0)


def _unshare(wanted: int) -> bool:
    """Leave the namespaces of the machine; return whether that needed no user namespace, as for root."""
    user, group = os.getuid(), os.getgid()
    with suppress(PermissionError):
        _checked("unshare", wanted)
        return True
    _checked("unshare", wanted | USERS)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    return False


def _end_as_in(first: int, seen: int) -> None:
    """Wait for the namespace to end, and end this process as the one in it did that worked."""
    import resource

    os.waitpid(first, 0)
    code = int.from_bytes(
        os.read(seen, 4) or (-signal.SIGKILL).to_bytes(4, "little", signed=True), "little", signed=True
    )
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(OSError):  # SIGKILL has no other
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _wait_for(working: int, told: int) -> None:
    """Be the first process of the namespace: wait until the one that works has ended, and tell how."""
    while True:
        ended, status = os.wait()
        if ended == working:
            os.write(told, os.waitstatus_to_exitcode(status).to_bytes(4, "little", signed=True))
            os._exit(0)


def _has_no_reader(pipe: int) -> bool:
    watch = select.poll()
    watch.register(pipe, 0)
    return bool(watch.poll(0))


def _mount(folder: Path) -> None:
    """Make all that is mounted read-only but for one folder, and mount what belongs to the namespace."""
    _checked("mount", None, b"/", None, RECURSIVELY | PRIVATE, None)
    _checked("mount", os.fsencode(folder), os.fsencode(folder), None, BIND, None)
    _read_only(Path("/"), ALL_BELOW, READ_ONLY, 0)
    _read_only(folder, 0, 0, READ_ONLY)
    _checked("mount", b"proc", b"/proc", b"proc", NO_SUID | NO_DEVICES | NO_EXECUTION, None)
    needed = [folder, Path.cwd(), *map(Path, sys.path)]
    for name in OWN:
        if os.path.isdir(name) and not any(path.is_relative_to(os.path.realpath(name)) for path in needed):
            _checked(
                "mount", b"tmpfs", os.fsencode(os.path.realpath(name)), b"tmpfs", NO_SUID | NO_DEVICES, b"mode=1777"
            )


def _read_only(path: Path, flags: int, given: int, taken: int) -> None:
    attributes = struct.pack("=QQQQ", given, taken, 0, 0)
    size = ctypes.c_size_t(len(attributes))
    _checked("syscall", MOUNT_SETATTR, WORKING_FOLDER, os.fsencode(path), flags, attributes, size)


def _open_loopback() -> None:
    """Let processes of the namespace connect to each other."""
    import fcntl
    import socket

    with socket.socket() as made:
        fcntl.ioctl(made, 0x8914, struct.pack("16sh14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP


def _give_up_capabilities(kept: int) -> None:
    sets = struct.pack("=IIIIII", kept, kept, 0, 0, 0, 0)
    _checked("capset", struct.pack("=Ii", 0x2008_0522, 0), sets)


def _checked(name: str, *arguments: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
