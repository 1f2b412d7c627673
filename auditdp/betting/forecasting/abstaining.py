"""The player in the place of one that failed: it makes no bets, and keeps the reason.

A bet that is not made changes no guarantee: whoever abstains keeps the stake.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from auditdp.adjacency import Pair
from auditdp.betting.forecasting.batch import Batch
from auditdp.betting.forecasting.forecasters import Player, player
from auditdp.betting.forecasting.memory import Memory
from auditdp.betting.wealth.forecasts import Forecasts
from auditdp.errors import raised_in
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats


class Unbound:
    """A forecaster that knows no pair yet."""

    def __init__(self, forecaster: Any) -> None:
        self.forecaster = forecaster
        self.names = [getattr(forecaster, "name", type(forecaster).__name__)]
        self.shares = [float(getattr(forecaster, "share", 1.0))]

    def on(self, mechanism: Any, pair: Pair) -> Player:
        """Return its player of a pair."""
        return player(self.forecaster, mechanism, pair)


class Abstaining:
    """A player that makes no bets.

    Attributes:
        names: The names of the forecasters that failed.
        shares: Their prior weights.
        failed: The error that ended them, and the line that raised it.
    """

    def __init__(self, names: Sequence[str], shares: Sequence[float], failed: str) -> None:
        self.names, self.shares, self.failed = names, shares, failed

    @classmethod
    def after(cls, error: BaseException, failed: Player | Unbound) -> Self:
        """Return the player in the place of one that raised an error."""
        return cls(failed.names, failed.shares, f"{type(error).__name__}: {error} ({raised_in(error, '')})")

    def like(self, other: Player) -> Self:
        """Return it with the names and the shares of the same player on another pair."""
        return type(self)(other.names, other.shares, self.failed)

    def on(self, mechanism: Any, pair: Pair) -> Self:
        """Return itself: it knows no pair."""
        return self

    def open(self, like: Array, pairs: Sequence[Pair], labels: Sequence[str]) -> None:
        """Do nothing."""

    def forecast(self, batch: Batch) -> list[Forecasts]:
        """Abstain."""
        return [Forecasts.abstaining(len(self.names))]

    def learn(self, memory: Memory, *, stalled: bool) -> None:
        """Do nothing."""

    def plausible_growth(self, epsilon: float, rng: np.random.Generator, leading: int | None) -> float:
        """Return that it gains nothing."""
        return 0.0

    def rank(self, log_wealth: Floats, calls: int) -> None:
        """Do nothing."""
