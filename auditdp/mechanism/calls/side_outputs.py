"""What a call shows beside what it returns: what it prints, what it logs or warns of, and the files that it leaves.

Whoever gets a release may see all of that. It is no part of an output unless an audit says so (``observed.py``).

What is printed is seen where it passes ``sys.stdout`` and ``sys.stderr``; what is logged, at level INFO or above, whatever
level is set; warnings where the filters of Python let them pass.
"""

from __future__ import annotations

import io
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

STREAMS = ("stdout", "logging", "files")
"""What may be observed beside what is returned."""
LONGEST_FILE = 1 << 20
"""Bytes of a file that are read."""


@dataclass
class Showing:
    """What a block of code has shown."""

    printed: _Printed
    logged: list[str] = field(default_factory=list)
    """What it logged, and what it warned of, one text each."""
    written: dict[Path, None] = field(default_factory=dict)
    """The files that it opened to write to, below the folder that it ran in."""

    def __bool__(self) -> bool:
        return bool(self.printed.text or self.logged or self.written)

    @property
    def parts(self) -> dict[str, Any]:
        """What it has shown, by stream: a text, a list of texts, and the contents of files by their names."""
        files = {
            str(path.relative_to(Path.cwd())): content(path)
            for path in sorted(self.written)
            if path.is_file()
        }
        return {
            "stdout": self.printed.text,
            "logging": list(self.logged),
            "files": files,
        }


class _Printed(io.TextIOWrapper):
    """Takes what is printed, and prints it, too, where there is somewhere to print to."""

    def __init__(self, through: Any) -> None:
        super().__init__(
            io.BytesIO(),
            encoding="utf-8",
            errors="backslashreplace",
            newline="",
            write_through=True,
        )
        self._through = through

    def write(self, text: str, /) -> int:
        if self._through is not None:
            self._through.write(text)
        return super().write(text)

    def fileno(self) -> int:
        return (
            int(self._through.fileno())
            if self._through is not None
            else super().fileno()
        )

    @property
    def text(self) -> str:
        return self.buffer.getvalue().decode("utf-8", "backslashreplace")  # type: ignore[attr-defined,no-any-return]


_opened: list[Callable[[str], None]] = []
"""Who hears of a file that is opened to be written to; the last one does."""


def _hears(event: str, arguments: tuple[Any, ...]) -> None:
    if _opened and event == "open":
        path, mode, flags = arguments
        writes = (
            set(mode) & set("wax+")
            if isinstance(mode, str)
            else flags & (os.O_WRONLY | os.O_RDWR)
        )
        if writes and isinstance(path, str | bytes | os.PathLike):
            _opened[-1](os.fsdecode(path))


@contextmanager
def showing(
    streams: Sequence[str] = STREAMS, *, quiet: bool = False
) -> Iterator[Showing]:
    """See what the block shows.

    Where it is ``quiet`` nobody else is to see it.
    """
    if _hears not in _installed:
        sys.addaudithook(_hears)
        _installed.append(_hears)
    seen = Showing(_Printed(None if quiet else sys.stdout))
    with ExitStack() as watched:
        if "stdout" in streams:
            watched.enter_context(redirect_stdout(seen.printed))
            watched.enter_context(redirect_stderr(seen.printed))
        if "logging" in streams:
            watched.enter_context(_logging(seen, quiet=quiet))
        if "files" in streams:
            watched.enter_context(_writing(seen))
        yield seen


_installed: list[Any] = []


@contextmanager
def _logging(seen: Showing, *, quiet: bool) -> Iterator[None]:
    """Take what is logged before any handler has it, and what is warned of before it is printed."""
    enabled, handled = logging.Logger.isEnabledFor, logging.Logger.callHandlers

    def is_enabled(self: logging.Logger, level: int) -> bool:
        return level >= logging.INFO or enabled(self, level)

    def handle(self: logging.Logger, record: logging.LogRecord) -> None:
        seen.logged.append(f"{record.levelname} {record.name}: {record.getMessage()}")
        if not quiet and enabled(self, record.levelno):
            handled(self, record)

    with warnings.catch_warnings():
        shown = warnings.showwarning

        def warn(
            message: Any, category: type[Warning], *place: Any, **more: Any
        ) -> None:
            seen.logged.append(f"{category.__name__}: {message}")
            if not quiet:
                shown(message, category, *place, **more)

        warnings.showwarning = warn
        logging.Logger.isEnabledFor, logging.Logger.callHandlers = is_enabled, handle  # type: ignore[method-assign]
        try:
            yield
        finally:
            logging.Logger.isEnabledFor, logging.Logger.callHandlers = enabled, handled  # type: ignore[method-assign]


@contextmanager
def _writing(seen: Showing) -> Iterator[None]:
    folder = Path.cwd()

    def opened(name: str) -> None:
        path = Path(os.path.abspath(name))
        if path.is_relative_to(folder) and "__pycache__" not in path.parts:
            seen.written[path] = None

    _opened.append(opened)
    try:
        yield
    finally:
        _opened.pop()


def content(path: Path) -> str | bytes:
    """Return what is in a file, as text where it is one."""
    with path.open("rb") as file:
        data = file.read(LONGEST_FILE)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data
