"""The line of the caller's code that is running.

The caller's code is all code outside of the harness, of Python and of installed
libraries.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

from auditdp.errors import ELSEWHERE

HERE = str(Path(__file__).parent)
OUTERMOST = str(Path(__file__).with_name("trace.py"))
"""The file that calls watched code. Frames outside of its frame belong to no run."""


class CodeLine(NamedTuple):
    """A line of code.

    Attributes:
        file: Path of its file.
        line: Its number, from 1; 0 for an unknown line.
        function: Name of the function that it is in.
    """

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        if self.line:
            return f"{Path(self.file).name}:{self.line}"
        return "an unknown line"


NOWHERE = CodeLine("", 0, "")


@lru_cache(maxsize=4096)
def _is_callers(code: CodeType) -> bool:
    return not code.co_filename.startswith(
        (*ELSEWHERE, "<frozen", "<__array_function__")
    )


def _frames() -> Iterator[FrameType]:
    """Yield the running frames, from the innermost one to the call of watched code."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != OUTERMOST:
        yield frame
        frame = frame.f_back


def is_importing() -> bool:
    """Return True while the running code imports a module."""
    return any(
        frame.f_code.co_filename.startswith("<frozen importlib") for frame in _frames()
    )


def called_by_builtin() -> bool:
    """Return True if C code, such as ``sum``, called the operator that is running.

    It is False if Python code uses the operator, as in ``a + b``: the innermost frame
    outside of this room is then at a binary instruction.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(HERE):
        frame = frame.f_back
    if frame is None:
        return False
    instruction = dis.opname[frame.f_code.co_code[frame.f_lasti]]
    return not instruction.startswith("BINARY")


def here() -> CodeLine:
    """Return the innermost line of the caller's code that is running.

    If only the harness, Python and installed libraries are running, return the innermost
    line outside of this room, or ``NOWHERE`` if there is none.
    """
    fallback = NOWHERE
    for frame in _frames():
        code = frame.f_code
        if _is_callers(code):
            return CodeLine(code.co_filename, frame.f_lineno, code.co_name)
        if fallback is NOWHERE and not code.co_filename.startswith(HERE):
            fallback = CodeLine(code.co_filename, frame.f_lineno, code.co_name)
    return fallback
