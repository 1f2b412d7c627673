"""The untouched process: a process in which the mechanism was never called.

It is forked before the first call. A call in a fork of this process cannot depend on
the calls before, which shows whether a mechanism stores its answers.
"""

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
from mmap import mmap
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
from auditdp.numerics.streams import import_before_fork, slow_modules

Parts = Sequence[Sequence[Run]]
GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)
NAMES_BYTES = 1 << 18
"""Bytes for the names of modules that a fork imported; torch has 90,000."""


class Untouched:
    """A process that is forked before the first call of a mechanism.

    It never calls the mechanism itself. For each part of the requested calls, it forks
    a further process that makes them.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self._forked: ForkedProcess | None = None

    def start(self) -> None:
        """Fork the process, unless it was forked before.

        Before this, and after ``close``, ``rows`` returns None.
        """
        self._forked = self._forked or ForkedProcess(partial(_serve, self.mechanism))

    def rows(
        self, calls: Calls, parts: Parts, seconds: float, *, afresh: bool = False
    ) -> list[Array] | None:
        """Return the rows of repeatable calls, each part made in a process of its own.

        If a call raises an exception of a type that ``calls`` has not recorded, the
        reason may be the process. So the result is None.

        Args:
            calls: Calls of the mechanism, which have decided the form of rows.
            parts: The calls of each process.
            seconds: Time limit of each part; after it, the untouched process is ended.
            afresh: Whether all generators of a process get new random states. They
                always do if the mechanism draws from elsewhere.

        Returns:
            The rows of each part, or None if the calls could not be made.

        Raises:
            ExhaustedError: If the allowance has fewer runs or no time left.
        """
        pipe = None if self._forked is None else self._forked.pipe
        if pipe is None:
            return None
        sizes = [sum(run.size for run in part) for part in parts]
        allowance().spend(sum(sizes))
        found: list[Array] | None
        try:
            request = calls.decided, parts, afresh or not calls.seeded
            pipe.send_bytes(pickle.dumps(request))
            found = [_answer(pipe, calls, size, seconds) for size in sizes]
        except Exception:
            # An input cannot be pickled, and may raise anything; or the process failed.
            found = None
            self.close()
        return found

    def close(self) -> None:
        """End the untouched process."""
        if self._forked is not None:
            self._forked.close()


class UntouchedElsewhere(Untouched):
    """Stand-in, in the judging process, for an untouched process.

    The process of the mechanism forks the untouched process.
    """

    mechanism: MechanismElsewhere

    def start(self) -> None:
        """Request that the process of the mechanism forks the untouched process."""
        self.mechanism.channel.ask("untouched", self.mechanism.number)

    def rows(
        self, calls: Calls, parts: Parts, seconds: float, *, afresh: bool = False
    ) -> list[Array] | None:
        """Return the rows of repeatable calls, or None if they could not be made."""
        assert isinstance(calls, CallsElsewhere)
        number, request = self.mechanism.number, [sent(part) for part in parts]
        given = number, calls.number, calls.raising, request, seconds, afresh
        _, found = self.mechanism.channel.ask("in_untouched", *given)
        sizes = [sum(run.size for run in part) for part in parts]
        return calls.checked(found, sizes) if found else None


def _answer(pipe: Connection, calls: Calls, size: int, seconds: float) -> Array:
    content = pipe.recv_bytes() if pipe.poll(seconds) else b""
    if not content:
        # Without an answer, the part raised an exception.
        raise TimeoutError
    # The form of rows was decided before.
    assert calls.like is not None
    flat = np.frombuffer(content[1:], calls.like.dtype)
    return flat.reshape(size, *calls.like.shape[1:])


def _serve(mechanism: Mechanism, pipe: Connection) -> NoReturn:
    """Answer requests for calls, each part in a fork of this process."""
    generators: list[Any] | None = None
    # A fork writes here which modules its calls imported.
    imported = mmap(-1, NAMES_BYTES)
    while True:
        decided, parts, afresh = pickle.loads(pipe.recv_bytes())
        calls = Calls(mechanism)
        calls.decided = decided
        if generators is None and afresh:
            # The process of an audit file freezes its objects after the import, and
            # frozen objects are in no list of the collector.
            gc.unfreeze()
            generators = [
                each for each in gc.get_objects() if issubclass(type(each), GENERATORS)
            ]
        # Each part has a fork of its own, so its calls have no effect on the next part.
        for part in parts:
            import_before_fork(imported[:].rstrip(b"\0").decode().split())
            child = os.fork()
            if child == 0:
                _make(calls, part, generators if afresh else None, pipe, imported)
            if os.waitpid(child, 0)[1]:
                pipe.send_bytes(b"")


def _make(
    calls: Calls,
    part: Sequence[Run],
    generators: Sequence[Any] | None,
    pipe: Connection,
    imported: mmap,
) -> NoReturn:
    status, before = 1, slow_modules()
    with suppress(BaseException):
        die_with_parent()
        # An exception of a new type may be due to the process, and not to the input.
        recorded = set(calls.raised)
        if generators is not None:
            _start_afresh(generators)
        rows = calls.runs(part)
        if set(calls.raised) <= recorded:
            # The first byte distinguishes rows of no bytes from a failure.
            pipe.send_bytes(b"+" + rows.tobytes())
            status = 0
            names = " ".join(slow_modules() - before).encode()[:NAMES_BYTES]
            imported[:] = names.ljust(NAMES_BYTES, b"\0")
    os._exit(status)


def _start_afresh(generators: Sequence[Any]) -> None:
    """Give every generator a new state, because all forks inherit the same state."""
    np.random.seed()  # noqa: NPY002
    random.seed()
    for each in generators:
        if isinstance(each, np.random.Generator):
            each.bit_generator.state = type(each.bit_generator)().state
        else:
            each.seed()
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.seed()


_current: ContextVar[Untouched | None] = ContextVar("untouched", default=None)


def untouched(mechanism: Mechanism) -> Untouched:
    """Return the untouched process of a mechanism.

    In a block of ``starting_untouched`` for this mechanism, it is the process of the
    block. Otherwise it is a new one, which is not started yet.
    """
    current = _current.get()
    if current is not None and current.mechanism is mechanism:
        return current
    return _of(mechanism)


def _of(mechanism: Any) -> Untouched:
    if isinstance(mechanism, MechanismElsewhere):
        return UntouchedElsewhere(mechanism)
    return Untouched(mechanism)


@contextmanager
def starting_untouched(mechanism: Mechanism) -> Iterator[None]:
    """Give the block one untouched process of a mechanism, and end it afterwards.

    The first evidence of the block starts it.
    """
    process = _of(mechanism)
    token = _current.set(process)
    try:
        yield
    finally:
        _current.reset(token)
        process.close()
