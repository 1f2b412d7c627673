"""The sandbox of audits' processes: they may write to one scratch folder only.

An audit, and processes that it leaves running, cannot change the log, the baseline,
settings, sources, installed packages or reports, and cannot reach other audits or the
run. Reading is allowed, since audits import modules and read data. ``sandbox_of`` finds
the available isolation before code of users runs. A process that cannot enter it ends.

Landlock is the kernel's access control for processes without privileges. Its rules
apply to the calling thread and to everything that it starts later, and cannot be
removed. The version of Landlock's ABI determines the rights that a kernel can restrict
(https://docs.kernel.org/userspace-api/landlock.html). Its system calls are made by
number, which needs no functions of the C library. The other part of the sandbox is
``namespaces``.
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
from enum import IntEnum, IntFlag
from multiprocessing import forkserver, process, resource_tracker
from pathlib import Path
from typing import Any

from auditdp.errors import ConfigurationError
from auditdp.runner import namespaces

DEVICES = ("null", "zero", "full", "random", "urandom", "shm", "dri", "kfd", "nvidia*")
"""Writable entries of /dev: devices without storage, shared memory, accelerators."""
CACHES = (
    "MPLCONFIGDIR",
    "NUMBA_CACHE_DIR",
    "HYPOTHESIS_STORAGE_DIRECTORY",
    "TRITON_CACHE_DIR",
    "CUDA_CACHE_PATH",
)
"""Environment variables that name cache folders of libraries."""
REFUSALS = tuple(
    map(os.strerror, (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENETUNREACH))
)


@dataclass(frozen=True)
class Sandbox:
    """The isolation of audits' processes; ``str`` returns a phrase for records."""

    landlock: int = 0
    """Version of the ABI of the kernel's Landlock; 0 without a sandbox."""
    namespaces: bool = False
    """True if the process of each file has namespaces of its own."""
    network: bool = False
    """True if audits may use the network."""
    of_audits: bool = False
    """True if each audit of a file has further namespaces of its own."""

    def __str__(self) -> str:
        if not self.landlock:
            return "none"
        shared = "" if self.of_audits else " that audits of a file share"
        held = "Landlock" + (f" and namespaces{shared}" if self.namespaces else "")
        return f"{held}, network {'open' if self.network else 'closed' if self.closes_network else 'not closed'}"

    @property
    def closes_network(self) -> bool:
        """True if the network is closed to audits.

        With namespaces all of it is closed, and with Landlock alone only TCP.
        """
        return not self.network and (self.namespaces or self.landlock >= Since.TCP)

    @property
    def lacking(self) -> list[str]:
        """Phrases for the resources from which this system cannot isolate audits."""
        if not self.landlock:
            return ["files", "processes", "the network"]
        return [
            *(
                ["processes"]
                if not self.namespaces and self.landlock < Since.SCOPES
                else []
            ),
            *(["the network"] if not self.network and not self.closes_network else []),
        ]

    def enter(self, folder: Path) -> None:
        """Restrict this process to a folder, before code of users is imported.

        With namespaces, the work continues in another process, and the function returns
        only there.

        Args:
            folder: The only folder to which the process may write.

        Raises:
            OSError: If the kernel refuses the isolation that it offered.
        """
        _let_go()
        if self.namespaces:
            namespaces.enter(folder, network=self.network)
        self.confine(folder)

    def separate(self) -> None:
        """Separate this process, which runs one audit, from other audits of its file.

        With namespaces of files, it becomes a session of its own. With namespaces of
        audits, it also gets shared memory, IPC and a network of its own.

        Raises:
            OSError: If the kernel refuses the isolation that it offered.
        """
        if self.namespaces:
            # The kernel shares processors between sessions, so an audit that forks
            # without end takes the time of one audit. Without namespaces, processes of
            # a new session could outlive the run.
            with suppress(OSError):
                os.setsid()
        if self.of_audits:
            namespaces.enter_own()

    def end_left(self, running: Iterable[int]) -> None:
        """End the processes that ended audits of this file left running.

        Without namespaces of audits these are not identified, and nothing is done.

        Args:
            running: Ids of the processes of running audits, which stay.
        """
        if self.of_audits:
            namespaces.end_left(running)

    def confine(self, folder: Path) -> None:
        """Allow this process, and all that it starts, to write to one folder only.

        ``DEVICES`` and the shared memory of audits stay writable, too. Temporary files
        and caches of libraries are moved to that folder. Without Landlock nothing is
        done.

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
    """Return the message of a failure, with a hint if the sandbox may be the cause.

    The hint is added if this process is confined, and the message has an error of
    permission.
    """
    if not _confined or not any(refusal in failure for refusal in REFUSALS):
        return failure
    return (
        f"{failure}; in the sandbox audits write only to temporary files (tempfile), and connect to nothing outside: give "
        "--network, or --sandbox off, if they have to; with observe=('files',) the files that a mechanism leaves where it "
        "runs are part of its output"
    )


def _let_go() -> None:
    """Close connections that this process inherited from the run.

    By the connection to the resource tracker, an audit could remove shared memory of
    the run. The connection to the fork server would hide the end of this process.
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
        mode: 'auto' for the available isolation, 'required' for an error if it is
            incomplete, or 'off' for none.
        network: Whether audits may use the network.

    Raises:
        ConfigurationError: If the sandbox is required and incomplete.
    """
    if mode == "off":
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


class LandlockCall(IntEnum):
    """Numbers of Landlock's system calls, the same on every processor."""

    CREATE_RULESET = 444
    ADD_RULE = 445
    RESTRICT_SELF = 446


class Right(IntFlag):
    """Rights of Landlock that this sandbox restricts."""

    WRITE_FILE = 1 << 1
    REMOVE_FOLDER = 1 << 4
    REMOVE_FILE = 1 << 5
    # Devices, folders, files, sockets, pipes and symbolic links.
    MAKE = 0b111_1111 << 6
    # Moving and linking between folders.
    REFER = 1 << 13
    TRUNCATE = 1 << 14
    CONTROL_DEVICE = 1 << 15

    # Rights that also apply to single files.
    OF_FILES = WRITE_FILE | TRUNCATE | CONTROL_DEVICE


RIGHTS_BY_ABI = {
    1: Right.WRITE_FILE | Right.REMOVE_FOLDER | Right.REMOVE_FILE | Right.MAKE,
    2: Right.REFER,
    3: Right.TRUNCATE,
    5: Right.CONTROL_DEVICE,
}
"""Rights of writing, by the version of the ABI that introduced them. Reading and
executing stay allowed."""


class Since(IntEnum):
    """Versions of the ABI that introduced rules for TCP, and for signals."""

    TCP = 4
    # Signals and abstract sockets.
    SCOPES = 6


def abi() -> int:
    """Return the version of Landlock's ABI; 0 if Landlock is missing or forbidden."""
    if sys.platform != "linux":
        return 0
    return max(
        0,
        int(
            ctypes.CDLL(None).syscall(
                LandlockCall.CREATE_RULESET, None, ctypes.c_size_t(0), 1
            )
        ),
    )


def restrict(known: int, writable: Iterable[Path], *, network: bool) -> None:
    """Restrict writing by this thread to some folders and files.

    This also applies to everything that the thread starts. If the ABI allows it,
    signals and abstract sockets reach only processes with the same restriction.

    Args:
        known: Version of the ABI.
        writable: The folders and files; missing ones are skipped.
        network: Whether TCP stays allowed.

    Raises:
        OSError: If the kernel refuses.
    """
    rights = sum(added for since, added in RIGHTS_BY_ABI.items() if since <= known)
    # An older kernel takes a shorter structure, without the later fields.
    fields: list[int] = [rights]
    if known >= Since.TCP:
        fields.append(0 if network else 0b11)
    if known >= Since.SCOPES:
        fields.append(0b11)
    packed = struct.pack(f"={len(fields)}Q", *fields)
    size = ctypes.c_size_t(len(packed))
    ruleset = _checked(LandlockCall.CREATE_RULESET, packed, size, 0)
    try:
        for path in writable:
            try:
                place = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            try:
                is_folder = stat.S_ISDIR(os.fstat(place).st_mode)
                allowed = rights if is_folder else rights & Right.OF_FILES
                rule = struct.pack("=Qi", allowed, place)
                _checked(LandlockCall.ADD_RULE, ruleset, 1, rule, 0)
            finally:
                os.close(place)
        no_new_privileges()
        _checked(LandlockCall.RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def no_new_privileges() -> None:
    """Forbid programs that are executed later to gain rights, as by set-user-ID."""
    no_new_privileges = 38
    ctypes.CDLL(None).prctl(no_new_privileges, 1, 0, 0, 0)


def _checked(number: int, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    if (returned := libc.syscall(number, *arguments)) < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"Landlock: {os.strerror(code)}")
    return int(returned)
