"""The CPU seconds of an audit by phase, such as its trace and its game.

A function names its phase with the decorator ``phase``. Seconds count to the innermost
phase alone, so all phases together have the seconds of the audit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


def cpu_seconds() -> float:
    """Return the CPU seconds so far of this process and of its ended children."""
    ended = os.times()
    return time.process_time() + ended.children_user + ended.children_system


class Phases:
    """CPU seconds by phase.

    Args:
        clock: Function that returns the CPU seconds of the audit so far.

    Attributes:
        seconds: CPU seconds of each ended phase; 'other' has the rest, and so what was
            spent before.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.seconds: dict[str, float] = {}
        self._clock = clock
        self._name, self._since = "other", 0.0

    def change(self, name: str) -> str:
        """End the current phase, begin another one, and return the name of the old."""
        before, now = self._name, self._clock()
        self.seconds[before] = self.seconds.get(before, 0.0) + now - self._since
        self._name, self._since = name, now
        return before


_current: ContextVar[Phases | None] = ContextVar("phases", default=None)


@contextmanager
def phases(clock: Callable[[], float]) -> Iterator[Phases]:
    """Count the CPU seconds of the block by phase; see ``Phases``."""
    counted = Phases(clock)
    token = _current.set(counted)
    try:
        yield counted
    finally:
        _current.reset(token)
        counted.change("other")


@contextmanager
def phase(name: str, *, whole: bool = False) -> Iterator[None]:
    """Count the CPU seconds of the block, or of the decorated function, to a phase.

    Args:
        name: The phase.
        whole: Whether phases inside the block count to this one as well.
    """
    counted = _current.get()
    if counted is None:
        yield
        return
    before = counted.change(name)
    token = _current.set(None if whole else counted)
    try:
        yield
    finally:
        _current.reset(token)
        counted.change(before)
