"""A process in which no call of a mechanism has been made: what calls leave behind in this one is not there."""

from __future__ import annotations

import gc
import os
import pickle
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, NoReturn

import numpy as np

from auditdp.errors import die_with_parent
from auditdp.mechanism.calls.allowance import allowance
from auditdp.mechanism.calls.calling import Calls, Run
from auditdp.mechanism.calls.channel import ForkedProcess
from auditdp.mechanism.calls.remote_mechanism import (
    CallsElsewhere,
    MechanismElsewhere,
    sent,
)
from auditdp.mechanism.protocol import Array, Mechanism

GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)


class Untouched:
    """A process that is forked before the first call of a mechanism, and forks again for calls that are asked of it."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self._forked: ForkedProcess | None = None

    def start(self) -> None:
        """Fork, unless that was done; where a platform cannot, or has no room, no calls will be made."""
        self._forked = self._forked or ForkedProcess(partial(_serve, self.mechanism))

    def rows(
        self,
        calls: Calls,
        parts: Sequence[Sequence[Run]],
        seconds: float,
        *,
        afresh: bool = False,
    ) -> list[Array] | None:
        """Return the rows of some calls, each part made in a process of its own; None where that was not possible.

        Each part is the calls of a process of its own, in which generators start afresh where a mechanism draws from
        elsewhere, or where ``afresh`` says so. An exception that is not known to ``calls`` is taken to come from the
        process, which is given up after so many seconds.
        """
        pipe = None if self._forked is None else self._forked.pipe
        if pipe is None:
            return None
        allowance().spend(sum(run.size for part in parts for run in part))
        try:
            pipe.send_bytes(
                pickle.dumps((calls.decided, parts, afresh or not calls.seeded))
            )
            found = [
                _answer(pipe, calls, sum(run.size for run in part), seconds)
                for part in parts
            ]
        except Exception:  # an input that cannot be sent, whatever it raises, or a process that has ended
            found = [None]
        if any(rows is None for rows in found):
            self.close()
            return None
        return [rows for rows in found if rows is not None]

    def close(self) -> None:
        """End the process."""
        if self._forked is not None:
            self._forked.close()


class UntouchedElsewhere(Untouched):
    """The untouched process of a mechanism in another process, which forks it."""

    mechanism: MechanismElsewhere

    def start(self) -> None:
        """Have it forked there."""
        self.mechanism.channel.ask("untouched", self.mechanism.number)

    def rows(
        self,
        calls: Calls,
        parts: Sequence[Sequence[Run]],
        seconds: float,
        *,
        afresh: bool = False,
    ) -> list[Array] | None:
        """Return the rows of some calls; None where that was not possible."""
        assert isinstance(calls, CallsElsewhere)
        number, asked = self.mechanism.number, [sent(part) for part in parts]
        given = number, calls.number, calls.raising, asked, seconds, afresh
        _, found = self.mechanism.channel.ask("in_untouched", *given)
        sizes = [sum(run.size for run in part) for part in parts]
        return calls.checked(found, sizes) if found else None


def _answer(pipe: Connection, calls: Calls, size: int, seconds: float) -> Array | None:
    if not pipe.poll(seconds) or not (content := pipe.recv_bytes()):
        return None
    assert calls.like is not None  # outputs have a representation
    return np.frombuffer(content[1:], calls.like.dtype).reshape(
        size, *calls.like.shape[1:]
    )


def _serve(mechanism: Mechanism, pipe: Connection) -> NoReturn:
    """Make the calls that are asked for, each part in a fork of this process."""
    generators: list[Any] | None = None
    while True:
        decided, parts, afresh = pickle.loads(pipe.recv_bytes())
        made = Calls(mechanism)
        made.decided = decided
        if generators is None and afresh:
            gc.unfreeze()  # what is frozen, which the process of an audit file does after its import, is in no list
            generators = [
                e for e in gc.get_objects() if issubclass(type(e), GENERATORS)
            ]
        for part in parts:
            if (child := os.fork()) == 0:
                _make(made, part, generators if afresh else None, pipe)
            if os.waitpid(child, 0)[1]:
                pipe.send_bytes(b"")


def _make(
    calls: Calls,
    part: Sequence[Run],
    generators: Sequence[Any] | None,
    pipe: Connection,
) -> NoReturn:
    status = 1
    with suppress(BaseException):
        die_with_parent()
        known = set(calls.raised)
        if generators is not None:
            _start_afresh(generators)
        rows = calls.runs(part)
        if set(calls.raised) <= known:
            pipe.send_bytes(b"+" + rows.tobytes())
            status = 0
    os._exit(status)


def _start_afresh(generators: Sequence[Any]) -> None:
    """Give every generator of this process a state of its own: a fork draws what its parent draws."""
    np.random.seed()  # noqa: NPY002
    random.seed()
    for each in generators:
        if isinstance(each, np.random.Generator):
            each.bit_generator.state = type(each.bit_generator)().state
        else:
            each.seed()
    if (torch := sys.modules.get("torch")) is not None:
        torch.seed()


_known: ContextVar[Untouched | None] = ContextVar("untouched", default=None)


def untouched(mechanism: Mechanism) -> Untouched:
    """Return the process of a mechanism that is being audited; one that makes no calls where there is none."""
    known = _known.get()
    return (
        known if known is not None and known.mechanism is mechanism else _of(mechanism)
    )


def _of(mechanism: Any) -> Untouched:
    return (
        UntouchedElsewhere if isinstance(mechanism, MechanismElsewhere) else Untouched
    )(mechanism)


@contextmanager
def starting_untouched(mechanism: Mechanism) -> Iterator[None]:
    """Let all evidence of the block have one untouched process, which the first of it starts."""
    process = _of(mechanism)
    token = _known.set(process)
    try:
        yield
    finally:
        _known.reset(token)
        process.close()
