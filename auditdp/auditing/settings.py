"""What a run decides for each of its audits."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from auditdp.errors import ConfigurationError
from auditdp.numerics.randomness import Streams, stream
from auditdp.record.budgets import Fault, Goal


@dataclass(frozen=True)
class Settings:
    """What a run decides for an audit: its level, its budget, and the root of its randomness.

    Raises:
        ConfigurationError: If alpha is not strictly between 0 and 1.
    """

    alpha: float
    calls: int
    """Calls of a game, unless the audit names its own number."""
    root_seed: int
    key: str = field(default="audit")
    """What the audit's randomness is keyed by."""
    brief: bool = False
    """Whether no game has more calls than that, whatever the audit names, games end at their verdict, and searches are a
    quarter as long.
    """
    least: int = 1
    """Calls that evidence has at least, whatever number the audit names."""
    find: Fault | None = None
    """A fault that the game is to find nine times in ten, instead of the audit's own; it then has as many calls as that
    takes, and at least those that the audit names. All other evidence has ``calls``.
    """
    further: tuple[Goal, ...] = ()
    """How many calls the game has altogether when it has gone on, once for each time that it does. All other evidence, but
    for that of controls, stays as it is.
    """
    recorded: float | None = None
    """The log wealth of the game before it goes on for the last time, if that is known."""
    trace: bool = True
    within: bool = False
    """Whether the calls of a game are all runs that it may make; see ``GameOptions``, as of the next two."""
    proposed: int | None = None
    """Runs in their place where a trace proposes that the claim fails."""
    stop_when_refuted: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise ConfigurationError(f"expected alpha strictly between 0 and 1, got alpha={self.alpha!r}")

    def streams(self, purpose: str) -> Streams:
        """Return the streams of one purpose, keyed by audit, purpose and batch."""
        return partial(stream, self.root_seed, self.key, purpose)

    def lacking(self, named: int | None) -> int:
        """Return how many calls the game of an audit lacks of those that the audit names."""
        return max(named - self.calls, 0) if self.brief and named is not None else 0

    @property
    def most(self) -> int | None:
        """Calls of a game at most, whatever it is to find; None for no limit."""
        return self.calls if self.brief else None
