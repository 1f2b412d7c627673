"""Side outputs of calls: prints, log messages and warnings, and files.

The receiver of an output may also have access to all of them. They are no part of an
output unless an audit declares so (``observed.py``).

Prints are recorded if they go through ``sys.stdout`` or ``sys.stderr``. Log messages
are recorded from level INFO on, and below it if the logger's own level allows them.
Warnings are recorded if Python's filters do not suppress them.
"""

from __future__ import annotations

import io
import logging
import os
import sys
import warnings
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

STREAMS = ("stdout", "logging", "files")
"""Names of the streams of side outputs that an audit may observe.

'stdout' includes stderr, and 'logging' includes warnings.
"""


@dataclass
class Showing:
    """The side outputs of a block of code; true if there are any."""

    printed: _Printed
    logged: list[str] = field(default_factory=list)
    """The log messages and warnings of the block, one text each."""
    written: set[Path] = field(default_factory=set)
    """The files below the working directory that the block opened for writing."""

    def __bool__(self) -> bool:
        return bool(self.printed.text or self.logged or self.written)

    @property
    def parts(self) -> dict[str, Any]:
        """The side outputs by stream.

        They are a text of the prints, a list of texts of logs and warnings, and the
        contents of files by their names.
        """
        files = {}
        for path in sorted(self.written):
            if path.is_file():
                files[str(path.relative_to(Path.cwd()))] = content(path)
        logged = list(self.logged)
        return {"stdout": self.printed.text, "logging": logged, "files": files}


class _Printed(io.TextIOWrapper):
    """A stream that records prints, and also writes them to another stream, if any."""

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
        if self._through is None:
            return super().fileno()
        return int(self._through.fileno())

    @property
    def text(self) -> str:
        return self.buffer.getvalue().decode("utf-8", "backslashreplace")  # type: ignore[attr-defined,no-any-return]


_opened: list[Callable[[str], None]] = []
"""Functions to call when a file is opened for writing; only the last one is called."""


@cache
def _add_hook() -> None:
    """Observe all files that this process opens.

    It is done once, because Python's audit hooks cannot be removed.
    """

    def observe(event: str, arguments: tuple[Any, ...]) -> None:
        if not _opened or event != "open":
            return
        path, mode, flags = arguments
        # Python passes a mode, and ``os.open`` passes flags alone.
        writes = flags & (os.O_WRONLY | os.O_RDWR) != 0
        if isinstance(mode, str):
            writes = not set(mode).isdisjoint("wax+")
        if writes and isinstance(path, str | bytes | os.PathLike):
            _opened[-1](os.fsdecode(path))

    sys.addaudithook(observe)


@contextmanager
def showing(
    streams: Sequence[str] = STREAMS, *, quiet: bool = False
) -> Iterator[Showing]:
    """Record the side outputs of the block in the yielded object.

    Args:
        streams: The recorded streams, names of ``STREAMS``.
        quiet: Whether prints, logs and warnings are only recorded, and not passed on.
    """
    _add_hook()
    showed = Showing(_Printed(None if quiet else sys.stdout))
    with ExitStack() as watched:
        if "stdout" in streams:
            watched.enter_context(redirect_stdout(showed.printed))
            watched.enter_context(redirect_stderr(showed.printed))
        if "logging" in streams:
            watched.enter_context(_logging(showed, quiet=quiet))
        if "files" in streams:
            watched.enter_context(_writing(showed))
        yield showed


@contextmanager
def _logging(showed: Showing, *, quiet: bool) -> Iterator[None]:
    """Record log messages before any handler, and warnings before they are printed."""
    # Methods of the class ``Logger`` are replaced, because loggers with levels of their
    # own may exist already.
    logger: Any = logging.Logger
    enabled, handled = logger.isEnabledFor, logger.callHandlers

    def is_enabled(self: logging.Logger, level: int) -> bool:
        return level >= logging.INFO or enabled(self, level)

    def handle(self: logging.Logger, record: logging.LogRecord) -> None:
        text = f"{record.levelname} {record.name}: {record.getMessage()}"
        showed.logged.append(text)
        if not quiet and enabled(self, record.levelno):
            handled(self, record)

    with warnings.catch_warnings():
        print_warning = warnings.showwarning

        def warn(message: Any, category: type[Warning], *more: Any, **kw: Any) -> None:
            showed.logged.append(f"{category.__name__}: {message}")
            if not quiet:
                print_warning(message, category, *more, **kw)

        warnings.showwarning = warn
        logger.isEnabledFor, logger.callHandlers = is_enabled, handle
        try:
            yield
        finally:
            logger.isEnabledFor, logger.callHandlers = enabled, handled


@contextmanager
def _writing(showed: Showing) -> Iterator[None]:
    folder = Path.cwd()

    def opened(name: str) -> None:
        path = Path(os.path.abspath(name))
        if path.is_relative_to(folder) and "__pycache__" not in path.parts:
            showed.written.add(path)

    # Blocks may be nested. The innermost one records the file.
    _opened.append(opened)
    try:
        yield
    finally:
        _opened.pop()


def content(path: Path) -> str | bytes:
    """Return the first mebibyte of a file: text if these bytes are UTF-8, else bytes."""
    with path.open("rb") as file:
        data = file.read(1 << 20)
        is_whole = not file.read(1)
    try:
        # The cut may be inside a character, which is then left out.
        return getincrementaldecoder("utf-8")().decode(data, final=is_whole)
    except UnicodeDecodeError:
        return data
