"""How many runs of a mechanism, and how much time, are left: the one object that every phase of an audit asks.

The calls that a user names bound all runs, whoever makes them: checks, traces, searches, games, confirmations and the search
for a smaller pair. Each of these phases has an allowance of its own, which is a part of the one around it, and each run is
counted where it is made (``spend``). A question to the process of a mechanism carries the allowance with it.

A game may stop at any time, so the end of an allowance ends a phase and throws nothing away.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from auditdp.errors import ExhaustedError

ASIDE, MAIN = 1 / 4, 3 / 4
"""Parts of the time that is left: of what comes before or after a game, and of a game and a confirmation."""

LATE = "the time for it has ended"


class Allowance:
    """Runs and time of one phase.

    Args:
        most: Runs at most; infinite where a user bounds none.
        until: The end, on the clock of ``time.monotonic``; infinite where there is no time limit.
        around: The allowance that this one is a part of.

    Attributes:
        made: Runs so far.
    """

    def __init__(
        self,
        most: float = math.inf,
        until: float = math.inf,
        around: Allowance | None = None,
    ) -> None:
        self.most, self.until, self.around = most, until, around
        self.made, self._started = 0, time.monotonic()

    @property
    def left(self) -> float:
        """Runs that may still be made."""
        own = max(self.most - self.made, 0)
        return own if self.around is None else min(own, self.around.left)

    @property
    def seconds(self) -> float:
        """Seconds that are left."""
        return self.until - time.monotonic()

    @property
    def is_late(self) -> bool:
        """Whether the time has ended."""
        return self.seconds <= 0

    def affordable(self, share: float) -> float:
        """Return how many runs fit into a share of the seconds that are left, as fast as they were made so far."""
        pace = self.made / max(time.monotonic() - self._started, 1e-9)
        return (
            max(share * self.seconds * pace, 0.0)
            if math.isfinite(self.until)
            else math.inf
        )

    def spend(self, runs: int) -> None:
        """Count runs that are about to be made.

        Raises:
            ExhaustedError: If so many are not left, or no time is.
        """
        if runs > self.left:
            raise ExhaustedError(
                f"of {runs:,} runs of the mechanism that it takes, {self.left:,.0f} are left"
            )
        if self.is_late:
            raise ExhaustedError(LATE)
        self.count(runs)

    def each(self, runs: int) -> Iterator[None]:
        """Count runs, and yield once for each of them, until the time ends.

        Raises:
            ExhaustedError: If so many are not left, or the time ends before they are made.
        """
        self.spend(runs)
        for made in range(runs):
            if self.is_late:
                self.count(made - runs)
                raise ExhaustedError(LATE)
            yield

    def count(self, runs: int) -> None:
        """Count runs that were made."""
        self.made += runs
        if self.around is not None:
            self.around.count(runs)


_current: ContextVar[Allowance] = ContextVar("allowance", default=Allowance())  # noqa: B039  # counts all runs of a process


def allowance() -> Allowance:
    """Return what the phase under way may still use."""
    return _current.get()


@contextmanager
def allowing(
    runs: float = math.inf, *, share: float = 1.0, seconds: float = math.inf
) -> Iterator[Allowance]:
    """Give the block an allowance of its own within the present one.

    Args:
        runs: Runs at most, if the present one has as many left.
        share: The part of the seconds that are left, above 0 and at most 1.
        seconds: Seconds at most.
    """
    around = allowance()
    until = time.monotonic() + min(around.seconds * share, seconds)
    token = _current.set(Allowance(runs, until, around))
    try:
        yield allowance()
    finally:
        _current.reset(token)
