"""What processes of audits may touch: a scratch folder of their own, and nothing else of the run or of the machine.

The log, the baseline, settings, sources, installed packages, reports, other audits and the run itself are out of reach of
what an audit does, and of what it leaves running. What the kernel offers is found out before anything of users runs; a
process in which it cannot be had then ends. Reading is left open: audits import, and read data.

Landlock, the kernel's rules for what a process without privileges may still do: system calls, asked for by number.

The rules hold for the thread that takes them on and for whatever it starts from then on, and cannot be taken back. Which
rights a kernel knows follows from its ABI (https://docs.kernel.org/userspace-api/landlock.html); rights that it does not
know are not asked of it.
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
"""Below /dev, what may be written to: what holds nothing, what is shared memory, and accelerators."""
CACHES = (
    "MPLCONFIGDIR",
    "NUMBA_CACHE_DIR",
    "HYPOTHESIS_STORAGE_DIRECTORY",
    "TRITON_CACHE_DIR",
    "CUDA_CACHE_PATH",
)
"""Variables that say where libraries keep what they made once."""
OFF, NOTHING = "off", "none"
REFUSALS = tuple(
    map(os.strerror, (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENETUNREACH))
)


@dataclass(frozen=True)
class Sandbox:
    """What holds processes of audits."""

    landlock: int = 0
    """ABI of the kernel's Landlock; 0 where none is used."""
    namespaces: bool = False
    """Whether each file has namespaces of its own."""
    network: bool = False
    of_audits: bool = False
    """Whether each audit of a file has namespaces of its own, beside those of the file."""

    def __str__(self) -> str:
        if not self.landlock:
            return NOTHING
        shared = "" if self.of_audits else " that audits of a file share"
        held = "Landlock" + (f" and namespaces{shared}" if self.namespaces else "")
        return f"{held}, network {'open' if self.network else 'closed' if self.closes_network else 'not closed'}"

    @property
    def closes_network(self) -> bool:
        """Whether no connection leaves, which Landlock alone sees to for TCP."""
        return not self.network and (self.namespaces or self.landlock >= TCP)

    @property
    def lacking(self) -> list[str]:
        """What is not held, in words."""
        if not self.landlock:
            return ["files", "processes", "the network"]
        return [
            *(["processes"] if not self.namespaces and self.landlock < SCOPES else []),
            *(["the network"] if not self.network and not self.closes_network else []),
        ]

    def enter(self, folder: Path) -> None:
        """Shut this process into a folder, before anything of users is imported; go on in a process of its own if need be.

        Raises:
            OSError: If the kernel refuses what it has offered.
        """
        _let_go()
        if self.namespaces:
            namespaces.enter(folder, network=self.network)
        self.confine(folder)

    def separate(self) -> None:
        """Let this process share no memory, IPC and network with other audits of its file, where that can be had.

        It becomes a session of its own.

        Raises:
            OSError: If the kernel refuses what it has offered.
        """
        if self.namespaces:
            # The kernel shares processors out between sessions: one that forks without end takes no more than one audit.
            # That is for namespaces only, with which all that an audit left ends, of whatever session it is.
            with suppress(OSError):
                os.setsid()
        if self.of_audits:
            namespaces.enter_own()

    def end_left(self, running: Iterable[int]) -> None:
        """End the processes that audits of this file left, but for those of audits that run, where they are known."""
        if self.of_audits:
            namespaces.end_left(running)

    def confine(self, folder: Path) -> None:
        """Leave this process, and all that it starts, nothing but a folder to write to, where libraries are told to write.

        Raises:
            OSError: If the kernel refuses what it has offered.
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
    """Return why something of an audit failed, with what it may do where the sandbox may be why."""
    if not _confined or not any(refusal in failure for refusal in REFUSALS):
        return failure
    return (
        f"{failure}; in the sandbox audits write only to temporary files (tempfile), and connect to nothing outside: give "
        "--network, or --sandbox off, if they have to; with observe=('files',) the files that a mechanism leaves where it "
        "runs are part of its output"
    )


def _let_go() -> None:
    """Close what a process inherits of the run's: a way to remove shared memory, and one to have its end not noticed."""
    tracker: Any = resource_tracker._resource_tracker
    server: Any = forkserver._forkserver
    for inherited in (tracker._fd, server._forkserver_alive_fd):
        if inherited is not None:
            os.close(inherited)
    tracker._fd = tracker._pid = server._forkserver_alive_fd = None


UNCONFINED = Sandbox()


def sandbox_of(mode: str, *, network: bool) -> Sandbox:
    """Return what the kernel offers of a sandbox.

    The mode is 'auto', 'required' or 'off'; with ``network`` audits may use the network.

    Raises:
        ConfigurationError: If it is required, and not all of it can be had.
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
"""To make devices, folders, files, sockets, pipes and symbolic links."""
REFER = 1 << 13
"""To move and link from one folder to another."""
OF_FILES = WRITE_FILE | TRUNCATE | IOCTL_DEV
ADDED = {
    1: WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE,
    2: REFER,
    3: TRUNCATE,
    5: IOCTL_DEV,
}
"""Rights of writing by the ABI that they came with; to read and to execute is left open."""
TCP, SCOPES = 4, 6
"""From which ABI on connections are ruled, and signals and abstract sockets kept within a domain."""
NO_NEW_PRIVILEGES = 38


def abi() -> int:
    """Return the version of Landlock's interface; 0 where the kernel has none, or a filter refuses it."""
    if sys.platform != "linux":
        return 0
    return max(
        0, int(ctypes.CDLL(None).syscall(CREATE_RULESET, None, ctypes.c_size_t(0), 1))
    )


def restrict(known: int, writable: Iterable[Path], *, network: bool) -> None:
    """Let this thread, and all that it starts, write below some folders and files alone.

    Where the ABI has it, signals and abstract sockets reach only what is restricted with it.

    Folders and files that do not exist are left out. TCP stays open with ``network``.

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
    """Have no program that is executed from here on, set-user-ID or not, give this process more rights."""
    ctypes.CDLL(None).prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)


def _checked(number: int, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    if (returned := libc.syscall(number, *arguments)) < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"Landlock: {os.strerror(code)}")
    return int(returned)
