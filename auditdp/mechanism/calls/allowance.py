"""The allowance of an audit: the runs of the mechanism and the time that are left.

The number of calls that a user gives bounds all runs, whatever phase makes them:
checks, traces, searches, games, confirmations and the search for a smaller pair. Each
phase has an allowance of its own inside that of the phase around it. Each run is
counted in the process that makes it (``spend``), and a request to the process of a
mechanism contains the allowance of the requesting phase.

A game may stop at any time, so the end of an allowance ends a phase and discards
nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from auditdp.errors import ExhaustedError

ASIDE = 1 / 4
"""Share of the remaining time that a phase other than a game may use.

Some phases apply it to the remaining runs, too.
"""
MAIN = 3 / 4
"""Share of the remaining time that a game or its confirmation may use.

The search for a smaller pair has this share, too, of the time and of the runs.
"""

LATE = "the time for it has ended"


class Allowance:
    """The runs and the time of one phase.

    Args:
        most: Largest number of runs; infinite without a bound.
        until: End on the clock of ``time.monotonic``; infinite without a time limit.
        around: The allowance of the phase around this one, or None. Runs count there
            too.

    Attributes:
        made: Number of runs so far.
    """

    def __init__(
        self,
        most: float = math.inf,
        until: float = math.inf,
        around: Allowance | None = None,
    ) -> None:
        self.most = most
        self.until = until
        self.around = around
        self.made = 0
        self._started = time.monotonic()

    @property
    def left(self) -> float:
        """Number of runs that this phase and those around it still allow."""
        own = max(self.most - self.made, 0)
        return own if self.around is None else min(own, self.around.left)

    @property
    def seconds(self) -> float:
        """Seconds that are left; infinite without a time limit."""
        return self.until - time.monotonic()

    @property
    def is_late(self) -> bool:
        """True if the time has ended."""
        return self.seconds <= 0

    def affordable(self, share: float) -> float:
        """Return the number of runs that fit into a share of the remaining seconds.

        It assumes the average pace of this phase so far. Without a time limit it is
        infinite.
        """
        if math.isinf(self.until):
            return math.inf
        pace = self.made / max(time.monotonic() - self._started, 1e-9)
        return max(share * self.seconds * pace, 0.0)

    def spend(self, runs: int) -> None:
        """Count runs that are about to be made.

        Raises:
            ExhaustedError: If fewer than ``runs`` runs are left, or the time has ended.
        """
        if runs > self.left:
            raise ExhaustedError(
                f"the next step needs {runs:,} runs of the mechanism, and {self.left:,.0f} are left"
            )
        if self.is_late:
            raise ExhaustedError(LATE)
        self.count(runs)

    def each(self, runs: int) -> Iterator[None]:
        """Count runs, and yield once for each of them.

        Runs that the end of the time prevents are not counted.

        Raises:
            ExhaustedError: If fewer than ``runs`` runs are left, or the time ends
                before all of them are made.
        """
        self.spend(runs)
        for made in range(runs):
            if self.is_late:
                self.count(made - runs)
                raise ExhaustedError(LATE)
            yield

    def count(self, runs: int) -> None:
        """Count runs, in this allowance and those around it, whatever is left."""
        self.made += runs
        if self.around is not None:
            self.around.count(runs)


# The default is shared on purpose: it counts all runs of a process.
_current: ContextVar[Allowance] = ContextVar("allowance", default=Allowance())  # noqa: B039


def allowance() -> Allowance:
    """Return the allowance of the current phase; outside all phases it is unlimited."""
    return _current.get()


@contextmanager
def allowing(
    runs: float = math.inf, *, share: float = 1.0, seconds: float = math.inf
) -> Iterator[Allowance]:
    """Give the block a new allowance within the current one; it is the yielded value.

    Args:
        runs: Largest number of runs; the current allowance may have fewer left.
        share: Share of the remaining seconds, in (0, 1].
        seconds: Largest number of seconds.
    """
    around = allowance()
    until = time.monotonic() + min(around.seconds * share, seconds)
    token = _current.set(Allowance(runs, until, around))
    try:
        yield allowance()
    finally:
        _current.reset(token)
