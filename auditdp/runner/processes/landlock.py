"""Landlock, the kernel's rules for what a process without privileges may still do: system calls, asked for by number.

The rules hold for the thread that takes them on and for whatever it starts from then on, and cannot be taken back. Which
rights a kernel knows follows from its ABI (https://docs.kernel.org/userspace-api/landlock.html); rights that it does not
know are not asked of it.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
"""Numbers of the system calls, the same on every processor."""
WRITE_FILE, REMOVE_DIR, REMOVE_FILE, TRUNCATE, IOCTL_DEV = 1 << 1, 1 << 4, 1 << 5, 1 << 14, 1 << 15
MAKE = sum(1 << bit for bit in range(6, 13))
"""To make devices, folders, files, sockets, pipes and symbolic links."""
REFER = 1 << 13
"""To move and link from one folder to another."""
OF_FILES = WRITE_FILE | TRUNCATE | IOCTL_DEV
ADDED = {1: WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE, 2: REFER, 3: TRUNCATE, 5: IOCTL_DEV}
"""Rights of writing by the ABI that they came with; to read and to execute is left open."""
TCP, SCOPES = 4, 6
"""From which ABI on connections are ruled, and signals and abstract sockets kept within a domain."""
NO_NEW_PRIVILEGES = 38


def abi() -> int:
    """Return the version of Landlock's interface; 0 where the kernel has none, or a filter refuses it."""
    if sys.platform != "linux":
        return 0
    return max(0, int(ctypes.CDLL(None).syscall(CREATE_RULESET, None, ctypes.c_size_t(0), 1)))


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
    fields = struct.pack("=QQQ", rights, tcp, scopes)[: 8 if known < TCP else 16 if known < SCOPES else 24]
    ruleset = _checked(CREATE_RULESET, fields, ctypes.c_size_t(len(fields)), 0)
    try:
        for path in writable:
            try:
                place = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            try:
                allowed = rights if stat.S_ISDIR(os.fstat(place).st_mode) else rights & OF_FILES
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
