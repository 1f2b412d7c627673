"""Looking on while an audit plays: how far it is, and a request to stop with what it has.

A game may end whenever somebody likes, since its wealth is a supermartingale under the claim: what was played so far has the
same guarantee. So the first interrupt of a ``Watcher`` only asks the game to end, and the second interrupts as usual.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType

from auditdp.mechanism.calls.allowance import allowance


class Watcher:
    """Hears of every batch that a game plays.

    Args:
        progress: Called with the calls that were made and those that are to be made.
    """

    def __init__(self, progress: Callable[[int, int], None] | None = None) -> None:
        self.stopped = False
        self._progress = progress

    def interrupt(self, number: int = signal.SIGINT, frame: FrameType | None = None) -> None:
        """Ask the game to end; the second time, raise ``KeyboardInterrupt``."""
        if self.stopped:
            raise KeyboardInterrupt
        self.stopped = True

    def progressed(self, done: int, of: int) -> bool:
        """Return whether the game is to go on."""
        if self._progress is not None:
            self._progress(done, of)
        return not self.stopped


_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


def going_on(done: int, of: int) -> bool:
    """Tell whoever looks on how many calls of how many were made, and return whether to go on."""
    watcher = _watcher.get()
    return watcher is None or watcher.progressed(done, of)


def is_stopped() -> bool:
    """Return whether somebody who looks on has asked for the end, or the time has ended."""
    watcher = _watcher.get()
    return allowance().is_late or (watcher is not None and watcher.stopped)


@contextmanager
def watched(watcher: Watcher) -> Iterator[Watcher]:
    """Let a watcher see the progress of the games that are played in the block, and take its interrupts."""
    token = _watcher.set(watcher)
    main = threading.current_thread() is threading.main_thread()  # signals reach no other thread
    before = signal.signal(signal.SIGINT, watcher.interrupt) if main else None
    try:
        yield watcher
    finally:
        if main:
            signal.signal(signal.SIGINT, before if before is not None else signal.SIG_DFL)
        _watcher.reset(token)
