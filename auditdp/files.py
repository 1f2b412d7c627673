"""Reading files and messages of others within limits, and writing files safely.

A record, a log, a baseline, settings or a file of outputs may come from anybody. At
most ``FileLimits.file_bytes`` of it are read. JSON nests at most 200 levels deep and
contains no lone surrogates. Whatever a file contains, only ``ConfigurationError``,
``ValueError`` and ``OSError`` are raised. A link in a folder cannot redirect a file
that is written there.

A process that imports an audit file may send anything. ``FileLimits`` has all limits of
its messages.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import subprocess
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from auditdp.errors import ConfigurationError


class FileLimits:
    """Limits of files and messages, which protect the time and the memory of a run."""

    file_bytes = 1 << 30
    """Largest record, log or file of outputs; a run of 5,000 audits needs 60 MB."""
    settings_bytes = 1 << 24
    """Largest file that people write or review: settings and baselines."""
    message_bytes = 1 << 25
    """Largest message of an audit's process, without arrays."""
    array_bytes = 1 << 30
    """Largest size of all arrays of a message, unless a request sets another one."""
    result_bytes = 1 << 23
    """Largest result of an audit. In a message it is quoted as text, which has at most
    three times this size."""
    run_bytes = 1 << 28
    """Largest size of all results of a run. Its log then stays below ``file_bytes``."""
    audits = 1_000
    """Largest number of audits of a file. Each one reduces the alpha of all others."""
    id_characters = 4_096
    """Longest id of an audit."""
    sources = 20_000
    """Largest number of files below the working folder that an audit file imports."""
    source_bytes = 1 << 30
    """Largest size of all files in ``sources`` together."""
    path_parts = 100
    """Largest number of parts of the path of an imported file."""
    shown_characters = 16_384
    """Characters of a longer text that are kept, half at either end."""
    lock_seconds = 30.0
    """Time for which a report waits for another process that writes to its folder."""


def without_middle(text: str) -> str:
    """Return a text of limited length: the middle of a longer one is left out.

    The limit is ``FileLimits.shown_characters``. The result states the number of the
    characters that were left out.
    """
    if len(text) <= FileLimits.shown_characters:
        return text
    half = FileLimits.shown_characters // 2
    return (
        f"{text[:half]}\n[{len(text) - 2 * half:,} characters left out]\n{text[-half:]}"
    )


def open_file(
    path: Path, most: int = FileLimits.file_bytes, *, below: Path | None = None
) -> BinaryIO:
    """Open a regular file for reading.

    Args:
        path: The file.
        most: Largest size of the file, in bytes.
        below: A folder, given without links, that must contain the file after the links
            in its path are resolved. The file itself must not be a link then. None for
            any place, with links.

    Raises:
        FileNotFoundError: If there is no such file.
        OSError: If the file cannot be read, or is a link although ``below`` is given.
        ConfigurationError: If it is not a regular file, has more than ``most`` bytes,
            or lies outside ``below``.
    """
    # Without O_NONBLOCK, opening a pipe would wait for its writer.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    if below is not None:
        folder = Path(os.path.realpath(path.parent))
        if not folder.is_relative_to(below):
            raise ConfigurationError(f"{path} cannot be read: it is not below {below}")
        path, flags = folder / path.name, flags | os.O_NOFOLLOW
    file = os.open(path, flags)
    status = os.fstat(file)
    refused = ""
    if not stat.S_ISREG(status.st_mode):
        refused = "it is no file"
    elif status.st_size > most:
        refused = f"it has {status.st_size:,} bytes, and at most {most:,} are read"
    if refused:
        os.close(file)
        raise ConfigurationError(f"{path} cannot be read: {refused}")
    return os.fdopen(file, "rb")


def content_of(path: Path, most: int = FileLimits.file_bytes) -> bytes:
    """Return the content of a file of at most ``most`` bytes.

    The errors are those of ``open_file``.
    """
    with open_file(path, most) as file:
        return file.read()


def json_of(content: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: If the text is not JSON, nests too deep, has numbers of more than
            4,300 digits, or contains half a character (a lone surrogate).
    """
    # Commands that read no record do not need this import.
    from pydantic_core import (
        from_json,
    )

    return from_json(content)


def toml_of(content: bytes) -> dict[str, Any]:
    """Return the table of a TOML text.

    Raises:
        ValueError: If the text is not TOML, nests too deep, or has integers outside 64
            bits with sign.
    """
    try:
        found = tomllib.loads(content.decode())
    except RecursionError as error:
        raise ValueError("it nests too deep") from error
    refuse_integers(found, 1 << 63)
    return found


def refuse_integers(value: Any, most: int) -> None:
    """Raise if nested data contain an integer whose absolute value is ``most`` or more.

    Such an integer may be too large to be printed or drawn.

    Raises:
        ValueError: With the number of bits of the integer.
    """
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, int) and abs(item) >= most:
            raise ValueError(
                f"an integer of {item.bit_length():,} bits, where fewer than {most.bit_length():,} are expected"
            )
        waiting += (
            item.values()
            if isinstance(item, dict)
            else item
            if isinstance(item, list | tuple)
            else ()
        )


def place_to_write(path: Path, *, below: Path | None = None) -> Path:
    """Return the path to which a file is written, with links resolved.

    Args:
        path: The requested path.
        below: A folder that links must not leave, if it contains ``path``; by default
            the folder of ``path``. The same holds for the working folder.

    Raises:
        ConfigurationError: If a link leads out of one of these folders.
        OSError: If links form a circle, before Python 3.13.
    """
    asked, here = Path(os.path.abspath(path)), Path.cwd()
    try:
        found = asked.resolve()
    except RuntimeError as error:
        # This is needed before Python 3.13.
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from error
    for root in (below or asked.parent, here):
        if asked.is_relative_to(os.path.abspath(root)) and not found.is_relative_to(
            root.resolve()
        ):
            raise ConfigurationError(
                f"{path} leads to {found} by a link, out of {root}, which is not followed; give that path if it is meant"
            )
    return found


def place_of_temporary_files() -> str:
    """Return the folder in which temporary files are made.

    Raises:
        ConfigurationError: If no such folder can be written.
    """
    try:
        return tempfile.gettempdir()
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"no folder for temporary files: {error.strerror}; make room in one of them, or set TMPDIR to a folder that "
            "can be written"
        ) from error


def open_new(path: Path, flags: int = 0) -> int:
    """Replace a file by a new empty one, without following a link.

    Args:
        path: The file, which may be missing.
        flags: Additional flags for ``os.open``.

    Returns:
        A file descriptor for reading and writing.

    Raises:
        OSError: If the file cannot be made.
    """
    path.unlink(missing_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | flags, 0o666)


def write_together(files: Mapping[Path, str], *, below: Path) -> None:
    """Write the files of one report.

    If another process writes a report to the same folder, this one first waits for it.
    So files of both reports are not mixed, unless the other process takes longer than
    ``FileLimits.lock_seconds``.

    Args:
        files: The text of each file by its path.
        below: The folder of the report, which links must not leave.

    Raises:
        ConfigurationError: If a file cannot be written, or a link leads out of the
            folder.
    """
    with _alone_in(below):
        for path, text in files.items():
            write(path, text, below=below)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder during the block.

    The block runs without the lock if the folder does not exist or its file system has
    no locks, or if another process holds the lock for ``FileLimits.lock_seconds``.
    """
    # Some systems lack this module, and the rest of this file works there.
    import fcntl

    try:
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        # The folder is made with the first file.
        yield
        return
    try:
        until = time.monotonic() + FileLimits.lock_seconds
        while time.monotonic() < until:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.05)
            except OSError:
                # A file system without locks.
                break
        yield
    finally:
        os.close(held)


def write(path: Path, text: str, *, below: Path | None = None) -> None:
    """Write a file completely or not at all.

    If ``path`` is a link, its target is replaced. Missing folders are made.

    Args:
        path: The file.
        text: Its content.
        below: A folder that links must not leave, if it contains ``path``; by default
            the folder of ``path``. The same holds for the working folder.

    Raises:
        ConfigurationError: If the file cannot be written, or a link leads out of one of
            these folders.
    """
    temporary = None
    try:
        path = place_to_write(path, below=below)
        path.parent.mkdir(parents=True, exist_ok=True)
        # The name is random: with a shared one, another process could move the
        # unfinished file of this process to ``path``.
        temporary = path.with_name(f".auditdp-{secrets.token_hex(8)}.part")
        with open(open_new(temporary), "w", encoding="utf-8") as file:
            file.write(text)
        temporary.replace(path)
    except (OSError, ValueError) as error:
        # A lone surrogate is half a character.
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink()
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(
            f"cannot write {path}: {reason}; give another path"
        ) from error


def remove(folder: Path) -> None:
    """Remove a folder, even if an audit left deep or unreadable subfolders in it."""
    with suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            subprocess.run([*command, "--", folder], capture_output=True, check=False)
