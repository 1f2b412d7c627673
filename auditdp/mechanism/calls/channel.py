"""Requests to the process of a mechanism, and its answers, which are only data.

A request has a ticket that cannot be guessed, and its answer repeats the ticket. An
answer that was not requested, comes twice, or belongs to another request ends the
conversation. The judging process is trusted, so requests are pickled. Answers are not
trusted. An answer is a line of JSON, followed by the bytes of arrays of numbers. If it
announces more bytes than are allowed, it is not read (``files`` has the bounds).
``ANSWERS`` has the types of the answers of the methods in ``remote_mechanism``; an
answer of another type is an error. Callers of other methods check the type (``shaped``).

``Channel`` is the end of the pipe in the judging process. ``answer`` is the loop at the
other end.
``ForkedProcess`` is a process that this process forks. It answers through a pipe, ends
with this process, and its standard streams lead nowhere.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import secrets
import select
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import field
from math import prod
from multiprocessing.connection import Connection, Pipe
from typing import Annotated, Any, TypeVar

import numpy as np
from pydantic import Field, TypeAdapter
from pydantic.dataclasses import dataclass

import auditdp.errors as of_the_harness
from auditdp.errors import (
    AuditError,
    MissingExtraError,
    Timeout,
    die_with_parent,
    raised_in,
)
from auditdp.files import FileLimits, without_middle
from auditdp.mechanism.calls.allowance import Allowance, allowance, allowing
from auditdp.mechanism.calls.phases import cpu_seconds
from auditdp.mechanism.protocol import Array

MAX_NAME_LENGTH = 200
"""Largest number of characters of the name of a type or of an exception."""
ANSWERS: dict[str, TypeAdapter[Any]] = {}
"""Types of the answers of the other process, by the name of the requested method."""
_DTYPE = re.compile(r"[<>|=]?(b1|[iu][1248]|f2|f4|f8|f16)")
_SHARED_ERRORS: dict[str, type[BaseException]] = {
    name: kind
    for name, kind in vars(of_the_harness).items()
    if isinstance(kind, type) and (issubclass(kind, AuditError) or kind is Timeout)
}
"""Errors that the judging process raises again with their own class, by its name.

``Skip`` is not among them, because a mechanism must not skip its own audit.
"""


class LostError(AuditError):
    """The process of a mechanism has ended, or its answer is not valid."""


class ForeignError(Exception):
    """An exception that an audit's code raised in the other process.

    The judging process raises it as a subclass with the name of the original type.
    """

    place: str = ""
    """The file and line that raised it, as text; empty if unknown."""


Value = TypeVar("Value")
Name = Annotated[str, Field(max_length=MAX_NAME_LENGTH)]


@dataclass(frozen=True)
class _Line:
    """The first line of an answer, in JSON."""

    ticket: str
    """The ticket of the request."""
    cpu: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """Processor seconds of the other process since its start."""
    runs: Annotated[int, Field(ge=0, lt=1 << 48)] = 0
    """Number of runs of the mechanism that the answer took."""
    value: Any = None
    """The plain data of the answer."""
    arrays: list[tuple[Name, list[Annotated[int, Field(ge=0)]]]] = field(
        default_factory=list
    )
    """The type and shape of each array."""
    error: tuple[Name, str, str] | None = None
    """The exception that was raised, if any: its name, its message, and its place."""


_LINE: TypeAdapter[_Line] = TypeAdapter(_Line)


class Channel:
    """The judging process's end of the pipe to the process of a mechanism.

    Attributes:
        cpu: Processor seconds of the other process, from its last answer.
    """

    def __init__(self, connection: Connection) -> None:
        self.cpu = 0.0
        self._connection = connection
        self._ready = select.poll()
        self._ready.register(connection, select.POLLIN)
        self._given_up: set[str] = set()
        self._lost = ""

    def ask(
        self, what: str, *arguments: Any, max_bytes: int = FileLimits.array_bytes
    ) -> tuple[Any, list[Array]]:
        """Call a method of the other process.

        Args:
            what: The name of the method.
            arguments: The arguments, which are pickled.
            max_bytes: Largest number of bytes of the arrays.

        Returns:
            The plain data and the arrays of numbers of the answer.

        Raises:
            LostError: If there is no valid answer, or its type is not that of
                ``ANSWERS``.
            AuditError: If the other process raised an error of the harness: the same
                class is raised here. This includes ``Timeout``, which is no AuditError.
            ForeignError: If the audit's code raised any other exception there.
        """
        # A conversation that was once out of step is never trusted again.
        if self._lost:
            raise LostError(self._lost)
        ticket = secrets.token_hex(8)
        allowed = allowance()
        limits = allowed.left, allowed.seconds
        try:
            self._connection.send_bytes(pickle.dumps((ticket, what, arguments, limits)))
            line, arrays = self._answer(ticket, max_bytes)
        except (EOFError, OSError):
            self._lost = "the process of the mechanism ended before it had answered"
            raise LostError(self._lost) from None
        except ValueError as error:
            reason = str(error).splitlines()[0]
            self._lost = f"the process of the mechanism answered {what!r} with something other than the answer: {reason}"
            raise LostError(self._lost) from None
        self.cpu = max(self.cpu, line.cpu)
        allowed.count(line.runs)
        if line.error is not None:
            raise _raised(*line.error)
        if what in ANSWERS:
            return shaped(ANSWERS[what], line.value), arrays
        return line.value, arrays

    def _answer(self, ticket: str, max_bytes: int) -> tuple[_Line, list[Array]]:
        while True:
            try:
                self._ready.poll()
            except BaseException:
                # A time limit ended the wait. The late answer must not be taken for
                # that to the next request.
                self._given_up.add(ticket)
                raise
            try:
                content = self._connection.recv_bytes(
                    FileLimits.message_bytes + max_bytes
                )
            except (EOFError, ConnectionError):
                raise
            except OSError:
                # The announced length is above the limit.
                raise ValueError("more bytes than requested") from None
            except BaseException:
                self._lost = "a time limit came in the middle of an answer of the process of the mechanism"
                raise
            line, arrays = _read(content)
            if line.ticket == ticket:
                return line, arrays
            if line.ticket not in self._given_up:
                raise ValueError("an answer without a question")
            self._given_up.discard(line.ticket)


def shaped(kind: TypeAdapter[Value], value: Any) -> Value:
    """Return the value of an answer after a check of its type.

    Raises:
        LostError: If the value has another type than ``kind``.
    """
    try:
        return kind.validate_python(value)
    except ValueError as error:
        raise LostError(
            f"the process of the mechanism answered with data of another type: {error}"
        ) from None


def _read(content: bytes) -> tuple[_Line, list[Array]]:
    # The line of JSON ends before the bytes of the arrays.
    end = content.find(b"\n", 0, FileLimits.message_bytes)
    if end < 0:
        end = len(content)
        if end > FileLimits.message_bytes:
            raise ValueError("a line of more bytes than any answer has")
    line = _LINE.validate_json(content[:end])
    rest, arrays = memoryview(content)[end + 1 :], []
    for name, shape in line.arrays:
        if not _DTYPE.fullmatch(name):
            raise ValueError(f"an array of {name!r}")
        dtype = np.dtype(name)
        size = prod(shape) * dtype.itemsize
        if len(shape) > 32 or size > len(rest):
            raise ValueError(f"an array of shape {shape} that is not there")
        # A bool is any byte here. The conversion, which copies, makes it 0 or 1.
        stored = np.uint8 if dtype.kind == "b" else dtype
        flat = np.frombuffer(rest[:size], stored)
        arrays.append(flat.astype(dtype).reshape(shape))
        rest = rest[size:]
    if rest:
        raise ValueError("more bytes than its arrays have")
    return line, arrays


def _raised(name: str, text: str, place: str) -> BaseException:
    if name in _SHARED_ERRORS:
        return _SHARED_ERRORS[name](text)
    error: ForeignError = type(name, (ForeignError,), {})(text)
    error.place = place
    return error


def answer(
    connection: Connection,
    path: str,
    answers: Callable[[str, tuple[Any, ...]], tuple[Any, Sequence[Array]]],
    explained: Callable[[str], str] = str,
) -> None:
    """Answer requests until the other end is closed.

    Args:
        connection: This process's end of the pipe.
        path: The audit's file; an error names a line of it.
        answers: Function that returns plain data and arrays of numbers for the name of
            a method and its arguments.
        explained: Function that adds to an error message the effect of this process's
            sandbox, if there is one.
    """
    # The judging process may end at any time.
    with suppress(EOFError, OSError):
        while True:
            request = pickle.loads(connection.recv_bytes())
            ticket, what, arguments, (runs, seconds) = request
            with allowing(runs, seconds=seconds) as allowed:
                try:
                    value, found = answers(what, arguments)
                    arrays = [np.ascontiguousarray(array) for array in found]
                    kinds = [(array.dtype.str, array.shape) for array in arrays]
                    line = _line(ticket, allowed, value=value, arrays=kinds)
                except BaseException as error:
                    # A mechanism may also raise an exit or an interrupt.
                    arrays = []
                    raised = _described(error, path, explained)
                    line = _line(ticket, allowed, error=raised)
            content = [array.tobytes() for array in arrays]
            connection.send_bytes(b"".join([line, b"\n", *content]))


def _line(ticket: str, allowed: Allowance, **content: Any) -> bytes:
    """Return the first line of an answer, with the processor time and the runs."""
    spent = {"cpu": cpu_seconds(), "runs": allowed.made}
    return json.dumps({"ticket": ticket} | content | spent).encode()


def _described(
    error: BaseException, path: str, explained: Callable[[str], str]
) -> tuple[str, str, str]:
    error = MissingExtraError.of(error) or error
    try:
        text = explained(str(error))
    except Exception:
        # The errors of a user may raise when they are turned into text.
        text = ""
    name = type(error).__name__[:MAX_NAME_LENGTH]
    readable = text.encode("utf-8", "backslashreplace").decode()
    return name, without_middle(readable), raised_in(error, path)


class ForkedProcess:
    """A process that this process forks, and the pipe to it.

    Args:
        serve: Function of a connection. It runs in the forked process and answers until
            the pipe is closed.

    Attributes:
        pipe: This process's end of the pipe. It is None if the platform cannot fork, if
            the system refuses a further process, and after ``close``.
        process: The process id of the forked process; unset if there never was one.
    """

    def __init__(self, serve: Callable[[Connection], object]) -> None:
        self.pipe: Connection | None = None
        if not hasattr(os, "fork"):
            return
        ours, theirs = Pipe()
        with warnings.catch_warnings():
            # A fork lacks threads, and Python warns of it. Calls that wait for a thread
            # are given up.
            warnings.simplefilter("ignore")
            with suppress(OSError):
                self.process = os.fork()
                self.pipe = ours
        if self.pipe is None:
            ours.close()
        elif self.process == 0:
            # The fork must end here, without the exit handlers of the other process.
            with suppress(BaseException):
                ours.close()
                die_with_parent()
                # The process that forked decides when this one is interrupted.
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                nothing = os.open(os.devnull, os.O_RDWR)
                for stream in (0, 1, 2):
                    os.dup2(nothing, stream)
                sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115  # until the end
                serve(theirs)
            os._exit(0)
        theirs.close()

    def close(self) -> None:
        """End the forked process."""
        if self.pipe is None:
            return
        self.pipe.close()
        self.pipe = None
        with suppress(OSError):
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
