"""What a run decides for each of its audits."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from auditdp.errors import ConfigurationError
from auditdp.numerics.randomness import Streams, stream
from auditdp.record.budgets import Fault, Goal


@dataclass(frozen=True)
class Settings:
    """What a run decides for an audit: its level, its budget, and the root of its randomness.

    Attributes:
        alpha: Error probability of the audit.
        calls: Calls of a game, unless the audit names its own number.
        root_seed: Root of the run's randomness.
        key: What the audit's randomness is keyed by.
        brief: Whether no game has more calls than that, whatever the audit names, games end at their verdict, and searches
            are a quarter as long.
        least: Calls that evidence has at least, whatever number the audit names.
        find: A fault that the game is to find nine times in ten, instead of the audit's own; it then has as many calls as
            that takes, and at least those that the audit names. All other evidence has ``calls``.
        further: How many calls the game has altogether when it has gone on, once for each time that it does. All other
            evidence, but for that of controls, stays as it is.
        recorded: The log wealth of the game before it goes on for the last time, if that is known.
        trace: Whether the code is traced before its game, where the audit does not say no.

    Raises:
        ConfigurationError: If alpha is not strictly between 0 and 1.
    """

    alpha: float
    calls: int
    root_seed: int
    key: str = field(default="audit")
    brief: bool = False
    least: int = 1
    find: Fault | None = None
    further: tuple[Goal, ...] = ()
    recorded: float | None = None
    trace: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise ConfigurationError(f"expected alpha strictly between 0 and 1, got alpha={self.alpha!r}")

    def streams(self, purpose: str) -> Streams:
        """Return the streams of one purpose, keyed by audit, purpose and batch."""
        return partial(_stream, self.root_seed, self.key, purpose)

    def lacking(self, named: int | None) -> int:
        """Return how many calls the game of an audit lacks of those that the audit names."""
        return max(named - self.calls, 0) if self.brief and named is not None else 0

    @property
    def most(self) -> int | None:
        """Calls of a game at most, whatever it is to find; None for no limit."""
        return self.calls if self.brief else None


def _stream(root: int, key: str, purpose: str, kind: str, batch: int) -> np.random.Generator:
    return stream(root, key, purpose, kind, batch)
