"""The line of the caller's code under way: the innermost outside of libraries."""

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
"""The file that calls watched code. Frames further out are of the process itself."""


class CodeLine(NamedTuple):
    """A line.

    Attributes:
        file: Its file.
        line: Its number.
        function: The function that it is in.
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
    """Yield the frames under way, from the innermost to the call of watched code."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != OUTERMOST:
        yield frame
        frame = frame.f_back


def is_importing() -> bool:
    """Return True while a module is imported."""
    return any(
        frame.f_code.co_filename.startswith("<frozen importlib") for frame in _frames()
    )


def called_by_builtin() -> bool:
    """Return True in a call of a function in C, such as ``sum``, not at an operator."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(HERE):
        frame = frame.f_back
    if frame is None:
        return False
    instruction = dis.opname[frame.f_code.co_code[frame.f_lasti]]
    return not instruction.startswith("BINARY")


def here() -> CodeLine:
    """Return the caller's line, or else the innermost line outside this room."""
    fallback = NOWHERE
    for frame in _frames():
        code = frame.f_code
        if _is_callers(code):
            return CodeLine(code.co_filename, frame.f_lineno, code.co_name)
        if fallback is NOWHERE and not code.co_filename.startswith(HERE):
            fallback = CodeLine(code.co_filename, frame.f_lineno, code.co_name)
    return fallback


def label() -> str:
    """Return the texts among the caller's local variables.

    They differ between the passes of a loop over keys.
    """
    frame = next((frame for frame in _frames() if _is_callers(frame.f_code)), None)
    variables = {} if frame is None else frame.f_locals
    return "\n".join(
        f"{name}={value}" for name, value in variables.items() if type(value) is str
    )
