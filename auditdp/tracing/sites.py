"""Where in the caller's code something happens: the innermost line that is neither numpy's, nor a library's, nor ours."""

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
"""What calls the code that is watched: further out are the caller's files no more, but what started the process."""


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
        return f"{Path(self.file).name}:{self.line}" if self.line else "an unknown line"


NOWHERE = CodeLine("", 0, "")


@lru_cache(maxsize=4096)
def _is_callers(code: CodeType) -> bool:
    return not code.co_filename.startswith(
        (*ELSEWHERE, "<frozen", "<__array_function__")
    )


def _frames() -> Iterator[FrameType]:
    """Yield the frames of whatever is under way, from this room's own out to what calls the code that is watched."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != OUTERMOST:
        yield frame
        frame = frame.f_back


def is_importing() -> bool:
    """Return whether a module is imported."""
    return any(
        frame.f_code.co_filename.startswith("<frozen importlib") for frame in _frames()
    )


def called_by_builtin() -> bool:
    """Return whether the caller's code is in a call of a function in C, such as ``sum``, not at an operator."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(HERE):
        frame = frame.f_back
    return frame is not None and not dis.opname[
        frame.f_code.co_code[frame.f_lasti]
    ].startswith("BINARY")


def here() -> CodeLine:
    """Return the caller's line; where libraries alone are on the stack, the innermost line outside this room."""
    fallback = NOWHERE
    for frame in _frames():
        code = frame.f_code
        if _is_callers(code):
            return CodeLine(code.co_filename, frame.f_lineno, code.co_name)
        if fallback is NOWHERE and not code.co_filename.startswith(HERE):
            fallback = CodeLine(code.co_filename, frame.f_lineno, code.co_name)
    return fallback


def label() -> str:
    """Return the texts among the local variables of the caller's code: in a loop over keys they tell its passes apart."""
    frame = next((frame for frame in _frames() if _is_callers(frame.f_code)), None)
    variables = {} if frame is None else frame.f_locals
    return "\n".join(
        f"{name}={value}" for name, value in variables.items() if type(value) is str
    )
