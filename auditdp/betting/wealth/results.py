"""What one batch of bets has come to, and what makes the bets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from auditdp.betting.wealth.forecasts import Forecasts
from auditdp.numerics.arrays import Floats


@dataclass(frozen=True, eq=False)
class BatchResult:
    """Log factors of one batch.

    Attributes:
        own: Of each forecaster against the claim, by each way of betting, shape (forecasters, ways).
        leaders: Of the leaders against every level, shape (levels,).
        at_anchors: Of each forecaster, had it bet there, at every anchor by each way, shape (forecasters, anchors, ways).
        right: Calls on which each forecaster's odds were beyond the claim's cap and on the side of the coin, shape (K,).
        wrong: Calls on which they were on the other side.
    """

    own: Floats
    leaders: Floats
    at_anchors: Floats
    right: Floats
    wrong: Floats


class Bets(Protocol):
    """Bets against a claim at every level of a grid.

    Attributes:
        shares: The share of each way of betting in what a forecaster has.
    """

    @property
    def shares(self) -> tuple[float, ...]: ...  # noqa: D102

    def settle(
        self, forecasts: Sequence[Forecasts], leaders: NDArray[np.intp] | None, *, calls: int, pair: int, crossed: int
    ) -> BatchResult:
        """Bet on a batch, and return what that has come to; a call on which nothing is bet costs nothing.

        Args:
            forecasts: The forecasts of all forecasters, from earlier batches only.
            leaders: Who leads at every anchor, chosen from earlier batches, shape (anchors,), or forecasters by rank, the
                first one first, shape (ranks, anchors); None for nobody.
            calls: Calls in the batch.
            pair: Which pair of inputs the batch is of.
            crossed: How many levels need no more bets.
        """
