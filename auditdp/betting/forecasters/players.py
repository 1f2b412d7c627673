"""Players: one or more forecasters on one pair, as the game plays them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from auditdp.adjacency import Pair
from auditdp.betting.forecasters.batches import Batch, Memory
from auditdp.betting.wealth.forecasts import Forecasts
from auditdp.errors import raised_in
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats


class Player:
    """Forecasters on one pair, which abstain unless a subclass overrides ``forecast``.

    Attributes:
        names: The name of each forecaster in reports.
        shares: The prior weight of each forecaster.
    """

    names: Sequence[str] = ()
    shares: Sequence[float] = ()

    def afresh(self) -> Self:
        """Return the player for another game, still fitted to the calls so far."""
        return self

    def open(self, like: Array, pairs: Sequence[Pair], labels: Sequence[str]) -> None:
        """Prepare for the outputs of a game, before the first batch.

        Args:
            like: Outputs of independent calls, as examples of those in the game.
            pairs: The pairs of the game.
            labels: The names of the numbers of an output; empty if they are unknown.
        """

    def forecast(self, batch: Batch) -> list[Forecasts]:
        """Return the forecasts for a batch, in the order of ``names``."""
        return [Forecasts.abstaining(len(self.names))]

    def learn(self, memory: Memory, *, stalled: bool) -> None:
        """Learn from all calls so far, including the last batch.

        Args:
            memory: The stored calls of the pair.
            stalled: Whether the claim is not refuted yet.
        """

    def plausible_growth(
        self, epsilon: float, rng: np.random.Generator, leading: int | None
    ) -> float:
        """Draw a plausible gain of a call of this pair against an epsilon, in nats.

        It may be infinite if nothing is known yet, so that the pair is played.

        Args:
            epsilon: The epsilon.
            rng: Generator of the draw.
            leading: Index of the forecaster that gains most, among those of the player,
                or None if none gains.
        """
        return 0.0

    def rank(self, log_wealth: Floats, calls: int) -> None:
        """Spend less work on forecasters with a small recent gain.

        Args:
            log_wealth: Recent gains in nats against the levels of some anchors
                (`wealth/levels.py`), shape (forecasters, anchors).
            calls: Number of calls of the pair.
        """


class Abstaining(Player):
    """The player that replaces a failed one; its forecasters place no bets.

    An omitted bet changes no guarantee: a forecaster that abstains keeps its stake.

    Attributes:
        names: The names of the forecasters that failed.
        shares: The prior weights of these forecasters.
        failed: The error of the failed player, and the line that raised it.
    """

    def __init__(
        self, names: Sequence[str], shares: Sequence[float], failed: str
    ) -> None:
        self.names, self.shares, self.failed = names, shares, failed

    @classmethod
    def after(cls, error: BaseException, failed: Player) -> Self:
        """Return the player that replaces a player after its error."""
        reason = f"{type(error).__name__}: {error} ({raised_in(error, '')})"
        return cls(failed.names, failed.shares, reason)

    def like(self, other: Player) -> Self:
        """Return a copy with the names and shares of the player on another pair."""
        return type(self)(other.names, other.shares, self.failed)

    def on(self, mechanism: Any, pair: Pair) -> Self:
        """Return itself, since it forecasts on no pair."""
        return self
