"""The sandbox of audits' processes: one scratch folder to write to, and nothing else.

An audit, and processes that it leaves running, cannot reach the log, the baseline,
settings, sources, installed packages, reports, other audits or the run. The available
isolation is determined before code of users runs; if a process cannot enter it, the
process ends. Reading is allowed, since audits import modules and read data.

Landlock is the kernel's access control for processes without privileges; its system
calls are made by number. Its rules apply to the calling thread and to everything it
starts later, and cannot be removed. The ABI of a kernel determines the rights that it
knows (https://docs.kernel.org/userspace-api/landlock.html); other rights are not
requested.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import forkserver, process, resource_tracker
from pathlib import Path
from typing import Any

from auditdp.errors import ConfigurationError
from auditdp.runner import namespaces

DEVICES = ("null", "zero", "full", "random", "urandom", "shm", "dri", "kfd", "nvidia*")
"""Writable entries of /dev: those that store nothing, shared memory, and accelerators.
"""
CACHES = (
    "MPLCONFIGDIR",
    "NUMBA_CACHE_DIR",
    "HYPOTHESIS_STORAGE_DIRECTORY",
    "TRITON_CACHE_DIR",
    "CUDA_CACHE_PATH",
)
"""Environment variables that name cache folders of libraries."""
OFF, NOTHING = "off", "none"
REFUSALS = tuple(
    map(os.strerror, (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENETUNREACH))
)


@dataclass(frozen=True)
class Sandbox:
    """The available isolation of audits' processes."""

    landlock: int = 0
    """ABI of the kernel's Landlock; 0 where none is used."""
    namespaces: bool = False
    """True if each file has namespaces of its own."""
    network: bool = False
    of_audits: bool = False
    """True if each audit of a file has further namespaces of its own."""

    def __str__(self) -> str:
        if not self.landlock:
            return NOTHING
        shared = "" if self.of_audits else " that audits of a file share"
        held = "Landlock" + (f" and namespaces{shared}" if self.namespaces else "")
        return f"{held}, network {'open' if self.network else 'closed' if self.closes_network else 'not closed'}"

    @property
    def closes_network(self) -> bool:
        """True if no connection is possible; Landlock alone forbids TCP."""
        return not self.network and (self.namespaces or self.landlock >= TCP)

    @property
    def lacking(self) -> list[str]:
        """Phrases for the missing kinds of isolation."""
        if not self.landlock:
            return ["files", "processes", "the network"]
        return [
            *(["processes"] if not self.namespaces and self.landlock < SCOPES else []),
            *(["the network"] if not self.network and not self.closes_network else []),
        ]

    def enter(self, folder: Path) -> None:
        """Restrict this process to a folder, before anything of users is imported.

        With namespaces, the work continues in another process.

        Raises:
            OSError: If the kernel refuses the isolation that it offered.
        """
        _let_go()
        if self.namespaces:
            namespaces.enter(folder, network=self.network)
        self.confine(folder)

    def separate(self) -> None:
        """Separate this process from other audits of its file: memory, IPC and network.

        It also becomes a session of its own. Without namespaces of audits, that is all.

        Raises:
            OSError: If the kernel refuses the isolation that it offered.
        """
        if self.namespaces:
            # The kernel shares processors out between sessions: one that forks without end takes no more than one audit.
            # That is for namespaces only, with which all that an audit left ends, of whatever session it is.
            with suppress(OSError):
                os.setsid()
        if self.of_audits:
            namespaces.enter_own()

    def end_left(self, running: Iterable[int]) -> None:
        """End the processes that ended audits of this file left, if they are known."""
        if self.of_audits:
            namespaces.end_left(running)

    def confine(self, folder: Path) -> None:
        """Allow this process, and everything it starts, to write to one folder only.

        Libraries are configured to write to that folder.

        Raises:
            OSError: If the kernel refuses the isolation that it offered.
        """
        if not self.landlock:
            return
        folder.mkdir(mode=0o700, exist_ok=True)
        _confined.append(folder)
        devices = [path for name in DEVICES for path in Path("/dev").glob(name)]
        writable = [folder, *devices, *namespaces.for_audits()]
        restrict(self.landlock, writable, network=self.network or self.namespaces)
        os.environ |= dict.fromkeys(("TMPDIR", *CACHES), str(folder))
        tempfile.tempdir = process.current_process()._config["tempdir"] = str(folder)  # type: ignore[attr-defined]


_confined: list[Path] = []


def explained(failure: str) -> str:
    """Return the reason for a failure.

    If the sandbox may be the cause, the reason names the allowed actions.
    """
    if not _confined or not any(refusal in failure for refusal in REFUSALS):
        return failure
    return (
        f"{failure}; in the sandbox audits write only to temporary files (tempfile), and connect to nothing outside: give "
        "--network, or --sandbox off, if they have to; with observe=('files',) the files that a mechanism leaves where it "
        "runs are part of its output"
    )


def _let_go() -> None:
    """Close inherited connections of the run.

    One of them could remove shared memory, another one hide the end of the process.
    """
    tracker: Any = resource_tracker._resource_tracker
    server: Any = forkserver._forkserver
    for inherited in (tracker._fd, server._forkserver_alive_fd):
        if inherited is not None:
            os.close(inherited)
    tracker._fd = tracker._pid = server._forkserver_alive_fd = None


UNCONFINED = Sandbox()


def sandbox_of(mode: str, *, network: bool) -> Sandbox:
    """Return the sandbox that the kernel offers.

    Args:
        mode: 'auto', 'required' or 'off'.
        network: Whether audits may use the network.

    Raises:
        ConfigurationError: If the sandbox is required and incomplete.
    """
    if mode == OFF:
        return UNCONFINED
    known = abi()
    of_files, of_audits = namespaces.available() if known else (False, False)
    found = Sandbox(known, of_files, network, of_audits)
    if mode == "required" and found.lacking:
        raise ConfigurationError(
            f"sandbox = 'required': this system cannot shut audits off from {', '.join(found.lacking)} (Landlock "
            f"{known or 'is not there'}{', namespaces are refused' if known else ''}); run where it can, with Linux 6.12 "
            "or newer, or with --sandbox auto"
        )
    return found


CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
"""Numbers of the system calls, the same on every processor."""
WRITE_FILE, REMOVE_DIR, REMOVE_FILE, TRUNCATE, IOCTL_DEV = (
    1 << 1,
    1 << 4,
    1 << 5,
    1 << 14,
    1 << 15,
)
MAKE = sum(1 << bit for bit in range(6, 13))
"""Rights to make devices, folders, files, sockets, pipes and symbolic links."""
REFER = 1 << 13
"""Right to move and link between folders."""
OF_FILES = WRITE_FILE | TRUNCATE | IOCTL_DEV
ADDED = {
    1: WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE,
    2: REFER,
    3: TRUNCATE,
    5: IOCTL_DEV,
}
"""Rights of writing by the ABI that introduced them; reading and executing stay allowed.
"""
TCP, SCOPES = 4, 6
"""From which ABI on connections are ruled, and signals and abstract sockets kept within a domain."""
NO_NEW_PRIVILEGES = 38


def abi() -> int:
    """Return the version of Landlock's ABI; 0 without Landlock, or if a filter forbids it."""
    if sys.platform != "linux":
        return 0
    return max(
        0, int(ctypes.CDLL(None).syscall(CREATE_RULESET, None, ctypes.c_size_t(0), 1))
    )


def restrict(known: int, writable: Iterable[Path], *, network: bool) -> None:
    """Restrict writing by this thread to some folders and files.

    This also applies to everything the thread starts. If the ABI allows it, signals and
    abstract sockets reach only processes with the same restriction. Missing folders and
    files are skipped. TCP stays allowed with ``network``.

    Raises:
        OSError: If the kernel refuses.
    """
    rights = sum(added for since, added in ADDED.items() if since <= known)
    tcp = 0 if network or known < TCP else 0b11
    scopes = 0 if known < SCOPES else 0b11
    fields = struct.pack("=QQQ", rights, tcp, scopes)[
        : 8 if known < TCP else 16 if known < SCOPES else 24
    ]
    ruleset = _checked(CREATE_RULESET, fields, ctypes.c_size_t(len(fields)), 0)
    try:
        for path in writable:
            try:
                place = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            try:
                allowed = (
                    rights
                    if stat.S_ISDIR(os.fstat(place).st_mode)
                    else rights & OF_FILES
                )
                _checked(ADD_RULE, ruleset, 1, struct.pack("=Qi", allowed, place), 0)
            finally:
                os.close(place)
        no_new_privileges()
        _checked(RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def no_new_privileges() -> None:
    """Forbid programs that are executed later to gain rights, set-user-ID or not."""
    ctypes.CDLL(None).prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)


def _checked(number: int, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    if (returned := libc.syscall(number, *arguments)) < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"Landlock: {os.strerror(code)}")
    return int(returned)
