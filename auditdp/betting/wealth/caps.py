"""Bets against pure claims: one region for each level, which needs nothing but the odds.

For an ε-claim the dominating pair is randomised response, with q = e^ε/(1+e^ε). The region

    R = {(e₀, e₁): (1-q) e₀ + q e₁ <= 1  and  q e₀ + (1-q) e₁ <= 1}

has price 1 (`regions.py`), contains (1, 1), and holds the best bet at log-odds l = ln(r/(1-r)) in closed form: with r₀ the
number of [1-q, q] that is nearest to r,

    e₁ = r/r₀,   e₀ = (1-r)/(1-r₀).

So within the cap nothing is bet, whatever the law of the log-odds is; all levels are bet on in one pass over the forecasts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditdp.betting.wealth.forecasts import ForecastLine, Forecasts
from auditdp.betting.wealth.levels import Grid
from auditdp.betting.wealth.results import BatchResult
from auditdp.numerics.arrays import Floats


def log_cap(epsilon: Any) -> tuple[Any, Any]:
    """Return ln q and ln(1-q) for q = e^ε/(1+e^ε), without cancellation for large ε."""
    log_q = -np.log1p(np.exp(-np.asarray(epsilon, dtype=float)))
    return log_q, log_q - epsilon


def growth(p: Any, epsilon: float) -> Any:
    """Return what a call gains against an epsilon where the likelier coin has probability p: kl(p ‖ q), 0 for p <= q.

    Args:
        p: Probabilities strictly between 0 and 1, a number or of any shape.
        epsilon: The epsilon.
    """
    log_q, log_1q = log_cap(epsilon)
    kl = p * (np.log(p) - log_q) + (1 - p) * (np.log1p(-p) - log_1q)
    return np.where(np.log(p) > log_q, kl, 0.0)


class Caps:
    """Bets against a pure claim at every level.

    Args:
        grid: The levels.

    Attributes:
        shares: The share of each way of betting in what a forecaster has.
    """

    shares: tuple[float, ...] = (1.0,)

    def __init__(self, grid: Grid) -> None:
        self._grid = grid

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
        line = ForecastLine(forecasts)
        values, claim = self._grid.values, self._grid.claim
        gained, right, wrong = _factors(
            line.who, line.count, line.log_odds, line.ones, line.zeros, values[self._grid.anchors]
        )
        led = np.zeros(len(values))
        if leaders is not None:
            leading = np.atleast_2d(leaders)[0][self._grid.anchor]
            for k in np.unique(leading):
                odds, ones, zeros = line.of(int(k))
                own = np.flatnonzero(leading == k)
                (led[own],), _, _ = _factors(np.zeros(len(odds), np.intp), 1, odds, ones, zeros, values[own])
        return BatchResult(gained[:, claim, None], led, gained[..., None], right[:, claim], wrong[:, claim])


def _factors(
    who: NDArray[np.intp], count: int, log_odds: Floats, ones: Floats, zeros: Floats, levels: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the log factors of forecasters at increasing levels, and how many calls beyond each cap were right and wrong.

    Forecasts are counted by how many caps they exceed: a sum from the end on is then over all that exceed a cap.
    """
    far = np.abs(log_odds)
    right, wrong = np.where(log_odds > 0, ones, zeros), np.where(log_odds > 0, zeros, ones)
    unsure = np.log1p(np.exp(-far))  # -ln max(r, 1-r), and -ln min(r, 1-r) is more by the log-odds
    with np.errstate(invalid="ignore"):
        lost = np.where(wrong > 0, wrong * (far + unsure), 0.0)
    size = len(levels) + 1
    beyond = who * size + np.searchsorted(levels, far, side="left")

    def summed(weights: Floats) -> Floats:
        totals = np.bincount(beyond, weights=weights, minlength=count * size).reshape(count, size)
        return np.asarray(np.cumsum(totals[:, ::-1], axis=1)[:, ::-1][:, 1:])

    log_q, log_1q = log_cap(levels)
    rights, wrongs = summed(right), summed(wrong)
    return np.asarray(summed(-lost - right * unsure) - rights * log_q - wrongs * log_1q), rights, wrongs
