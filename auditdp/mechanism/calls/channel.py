"""Between who judges and the process of a mechanism: one question, one answer to it, which holds data and nothing else.

A question has a ticket that nobody can guess, and an answer names it: what comes unasked, twice, or to another question
ends the conversation. Who judges is trusted, so questions are pickled. Answers are not: they are a line of JSON and the
bytes of arrays of numbers, and one that announces more bytes than were allowed is not read (``files`` has the bounds).

A process that is forked from this one, writes nowhere, and answers through a pipe until whoever asks has ended.
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
import time
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
from auditdp.files import MOST_ARRAYS, MOST_MESSAGE, without_middle
from auditdp.mechanism.calls.allowance import Allowance, allowance, allowing
from auditdp.mechanism.protocol import Array

LONGEST_NAME = 200
_DTYPE = re.compile(r"[<>|=]?(b1|[iu][1248]|f2|f4|f8|f16)")
_KNOWN: dict[str, type[BaseException]] = {
    name: kind
    for name, kind in vars(of_the_harness).items()
    if isinstance(kind, type) and (issubclass(kind, AuditError) or kind is Timeout)
}
"""Errors that are the same on both sides; nothing is skipped for what a mechanism raises."""


class LostError(AuditError):
    """The process of a mechanism has ended, or answers something that was not asked."""


class ForeignError(Exception):
    """What code of an audit raised in its process, beside the errors of the harness; its class has the name of that."""

    place: str = ""
    """The file and line, in words; empty where it is not known."""


Value = TypeVar("Value")
Name = Annotated[str, Field(max_length=LONGEST_NAME)]


@dataclass(frozen=True)
class _Line:
    """The first line of an answer."""

    ticket: str
    cpu: Annotated[float, Field(ge=0)]
    runs: Annotated[int, Field(ge=0, lt=1 << 48)] = 0
    """Runs of the mechanism that it took."""
    value: Any = None
    arrays: list[tuple[Name, list[Annotated[int, Field(ge=0)]]]] = field(
        default_factory=list
    )
    """The type and shape of each array."""
    error: tuple[Name, str, str] | None = None
    """What was raised in its place: its name, what it says, and where."""


_LINE: TypeAdapter[_Line] = TypeAdapter(_Line)


class Channel:
    """The end of who judges.

    Attributes:
        cpu: Seconds that the process has computed, as it says.
    """

    def __init__(self, connection: Connection) -> None:
        self.cpu = 0.0
        self._connection = connection
        self._ready = select.poll()
        self._ready.register(connection, select.POLLIN)
        self._given_up: set[str] = set()
        self._lost = ""

    def ask(
        self, what: str, *arguments: Any, most: int = MOST_ARRAYS
    ) -> tuple[Any, list[Array]]:
        """Return the answer to a question: plain data, and arrays of numbers.

        Arrays have at most so many bytes.

        Raises:
            LostError: If there is none.
            AuditError: What the harness raised there.
            ForeignError: What code of the audit raised there.
        """
        if self._lost:
            raise LostError(self._lost)
        ticket = secrets.token_hex(8)
        try:
            allowed = allowance()
            self._connection.send_bytes(
                pickle.dumps((ticket, what, arguments, (allowed.left, allowed.seconds)))
            )
            line, arrays = self._answer(ticket, most)
        except (EOFError, OSError):
            self._lost = "the process of the mechanism ended before it had answered"
            raise LostError(self._lost) from None
        except ValueError as error:
            reason = str(error).splitlines()[0]
            self._lost = f"the process of the mechanism answered {what!r} with something else than was asked: {reason}"
            raise LostError(self._lost) from None
        self.cpu = line.cpu
        allowed.count(line.runs)
        if line.error is not None:
            raise _raised(*line.error)
        return line.value, arrays

    def _answer(self, ticket: str, most: int) -> tuple[_Line, list[Array]]:
        while True:
            try:
                self._ready.poll()
            except (
                BaseException
            ):  # a time limit: what comes late is no answer to the next question
                self._given_up.add(ticket)
                raise
            try:
                content = self._connection.recv_bytes(MOST_MESSAGE + most)
            except (EOFError, ConnectionError):
                raise
            except OSError:  # of a length that was announced
                raise ValueError("more bytes than were asked for") from None
            except BaseException:
                self._lost = "a time limit came in the middle of an answer of the process of the mechanism"
                raise
            line, arrays = _read(content)
            if line.ticket == ticket:
                return line, arrays
            if line.ticket not in self._given_up:
                raise ValueError("an answer that nobody asked for")
            self._given_up.discard(line.ticket)


def shaped(kind: TypeAdapter[Value], value: Any) -> Value:
    """Return what was answered as what was asked for.

    Raises:
        LostError: If it is something else.
    """
    try:
        return kind.validate_python(value)
    except ValueError as error:
        raise LostError(
            f"the process of the mechanism answered with something else than was asked: {error}"
        ) from None


def _read(content: bytes) -> tuple[_Line, list[Array]]:
    end = content.find(b"\n", 0, MOST_MESSAGE)
    if end < 0 and len(content) > MOST_MESSAGE:
        raise ValueError("a line of more bytes than any answer has")
    line = _LINE.validate_json(content[:end] if end >= 0 else content)
    rest, start, arrays = memoryview(content), end + 1 if end >= 0 else len(content), []
    for name, shape in line.arrays:
        if not _DTYPE.fullmatch(name):
            raise ValueError(f"an array of {name!r}")
        dtype = np.dtype(name)
        size = prod(shape) * dtype.itemsize
        if len(shape) > 32 or size > len(rest) - start:
            raise ValueError(f"an array of shape {shape} that is not there")
        flat = np.frombuffer(
            rest[start : start + size], np.uint8 if dtype.kind == "b" else dtype
        )
        arrays.append(flat.astype(dtype).reshape(shape))  # a copy; a truth is 0 or 1
        start += size
    if start != len(rest):
        raise ValueError("more bytes than its arrays have")
    return line, arrays


def _raised(name: str, text: str, place: str) -> BaseException:
    """Return an error of the harness as it was raised, and any other by its name."""
    if name in _KNOWN:
        return _KNOWN[name](text)
    error: ForeignError = type(name, (ForeignError,), {})(text)
    error.place = place
    return error


def answer(
    connection: Connection,
    path: str,
    answers: Callable[[str, tuple[Any, ...]], tuple[Any, Sequence[Array]]],
    explained: Callable[[str], str] = str,
) -> None:
    """Answer questions until there are no more.

    ``answers`` returns plain data and arrays of numbers. Errors name lines of the audit's file, and ``explained`` adds what
    this process has to do with them.
    """
    with suppress(EOFError, OSError):  # who judges has ended
        while True:
            ticket, what, arguments, (runs, seconds) = pickle.loads(
                connection.recv_bytes()
            )
            line, arrays = {"ticket": ticket}, []
            with allowing(runs, seconds=seconds) as allowed:
                try:
                    value, found = answers(what, arguments)
                    arrays = [np.ascontiguousarray(array) for array in found]
                    line |= {
                        "value": value,
                        "arrays": [(array.dtype.str, array.shape) for array in arrays],
                    }
                    first = json.dumps(line | _spent(allowed))
                except (
                    BaseException
                ) as error:  # an exit, or an interrupt that a mechanism raises
                    arrays = []
                    first = json.dumps(
                        {"ticket": ticket, "error": _described(error, path, explained)}
                        | _spent(allowed)
                    )
            connection.send_bytes(
                b"".join(
                    [first.encode(), b"\n", *(array.tobytes() for array in arrays)]
                )
            )


def _spent(allowed: Allowance) -> dict[str, float]:
    """Return the processor time of this process, in seconds, and the runs that a question took."""
    return {"cpu": time.process_time(), "runs": allowed.made}


def _described(
    error: BaseException, path: str, explained: Callable[[str], str]
) -> tuple[str, str, str]:
    error = MissingExtraError.of(error) or error
    try:
        text = explained(str(error))
    except Exception:  # whatever the errors of a user raise
        text = ""
    return (
        type(error).__name__[:LONGEST_NAME],
        without_middle(text.encode("utf-8", "backslashreplace").decode()),
        raised_in(error, path),
    )


class ForkedProcess:
    """The end of who asks.

    Args:
        serve: Answers in the process, until the pipe is closed.

    Attributes:
        pipe: To the process; None where a platform cannot fork, or has no room, and after the end.
        process: Its number.
    """

    def __init__(self, serve: Callable[[Connection], object]) -> None:
        self.pipe: Connection | None = None
        if not hasattr(os, "fork"):
            return
        ours, theirs = Pipe()
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # of threads, which a fork lacks: calls that wait for one are given up
            with suppress(OSError):
                self.process = os.fork()
                self.pipe = ours
        if self.pipe is None:
            ours.close()
        elif self.process == 0:
            with suppress(
                BaseException
            ):  # and it ends without whatever the other process would do at its end
                ours.close()
                die_with_parent()
                signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks decides
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                nothing = os.open(os.devnull, os.O_RDWR)
                for stream in (0, 1, 2):
                    os.dup2(nothing, stream)
                sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115  # until the end
                serve(theirs)
            os._exit(0)
        theirs.close()

    def close(self) -> None:
        """End the process."""
        if self.pipe is None:
            return
        self.pipe.close()
        self.pipe = None
        with suppress(OSError):
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
