"""Bets against claims with a delta and against curves, by regions that are learned.

Leaders bet against all levels, by plans (`plans.py`) that are renewed when the calls of
a pair have grown by a quarter. Other forecasters bet against the claim alone. Each does
so in several *ways*, whose wealth is averaged. One way uses the region that the plan
learned for the level nearest to the claim. The others need no learning:

- *stretched*: the region for the claim's dominating pair with log-odds that are 1.3
  times as large, for forecasters whose odds are all a little beyond the claim's;
- *hard*: the factors (1 - λ, 1 + λ e^-ε), their mirror image and (1, 1), for
  forecasters of rare events with large log-odds.

At a few anchors the gain of every forecaster is computed; it decides which one leads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from auditdp.betting.limits import LIMITS
from auditdp.betting.wealth.forecasts import ForecastLine, Forecasts
from auditdp.betting.wealth.levels import BatchResult, Grid
from auditdp.betting.wealth.plans import BettingPlan, Planner
from auditdp.claims.claim import Claim
from auditdp.claims.dominating import DominatingPair
from auditdp.numerics.arrays import Floats

LEARNED_SHARE = 0.7
"""Share of the way with the learned region in the stake of a forecaster."""


class Curves:
    """Bets, at every level, against a claim with a delta or a privacy curve.

    Args:
        claim: The claim.
        grid: The levels.

    Attributes:
        shares: The share of each way of betting in the stake of a forecaster: learned,
            stretched, then the hard ones.
        plans: The current plan of each pair, by the index of the pair.
    """

    _ready = 1 + len(Planner.hard)
    shares = (LEARNED_SHARE, *[(1 - LEARNED_SHARE) / _ready] * _ready)

    def __init__(self, claim: Claim, grid: Grid) -> None:
        self._planner, self._grid = Planner(claim, grid), grid
        self.plans: dict[int, BettingPlan] = {}
        self._calls: dict[int, int] = {}
        self._bins = _bins(self._planner.at(grid.position).pair)
        below = np.append(0.0, self._bins[:-1])
        self._rounded = np.where(self._bins > 0, below, self._bins)
        self._beyond = np.abs(self._rounded) > claim.tangents()[0][0]

    def settle(
        self,
        forecasts: Sequence[Forecasts],
        leaders: NDArray[np.intp] | None,
        *,
        calls: int,
        pair: int,
        crossed: int,
    ) -> BatchResult:
        """Bet on a batch, and return its log factors.

        Args:
            forecasts: The forecasts of all forecasters, from earlier batches only.
            leaders: Indices of forecasters in order of rank at every anchor, shape
                (ranks, anchors), or (anchors,) for the first in rank only; None for no
                leader. They count when the plan of the pair is renewed.
            calls: Number of calls in the batch.
            pair: Index of the pair of inputs that the batch is of.
            crossed: Number of levels, from the smallest on, that need no more bets.
        """
        line = ForecastLine(forecasts)
        before = self._calls.get(pair, 0)
        plan = self.plans.get(pair)
        if plan is None or before >= plan.until:
            plan = self.plans[pair] = self._planner.plan(line, leaders, before, crossed)
        self._calls[pair] = before + calls

        # Leaders bet on exact log-odds, all others on rounded ones, which are counted.
        led = np.zeros(len(self._grid))
        for post in plan.posts:
            odds, ones, zeros = line.of(post.leader)
            on_zeros, on_ones = post.region.choose(odds)
            paid = (ones.sum() + zeros.sum()) * post.prices
            led[post.levels] = on_ones @ ones + on_zeros @ zeros - paid

        zeros, ones = self._binned(line, line.zeros), self._binned(line, line.ones)
        # A call without a forecast is not bet on, and costs nothing.
        forecast = zeros.sum(axis=1) + ones.sum(axis=1)
        gained = np.zeros((line.count, len(self._grid.anchors), len(self.shares)))
        for place, ways in zip(plan.places, plan.ways, strict=True):
            for way, (region, price) in enumerate(ways):
                on_zeros, on_ones = region.choose(self._rounded)
                paid = forecast * price
                gained[:, place, way] = zeros @ on_zeros + ones @ on_ones - paid
        up = self._beyond & (self._rounded > 0)
        down = self._beyond & (self._rounded < 0)
        return BatchResult(
            leaders=led,
            at_anchors=gained,
            right=ones[:, up].sum(axis=1) + zeros[:, down].sum(axis=1),
            wrong=zeros[:, up].sum(axis=1) + ones[:, down].sum(axis=1),
        )

    def _binned(self, line: ForecastLine, counts: Floats) -> Floats:
        """Return the counts of each forecaster by bin, shape (forecasters, bins)."""
        size = len(self._rounded)
        where = line.who * size + self._bin_of(line.log_odds)
        totals = np.bincount(where, weights=counts, minlength=line.count * size)
        return np.asarray(totals, np.float64).reshape(-1, size)

    def rounded(self, log_odds: Floats) -> Floats:
        """Return log-odds rounded towards 0 to the edges of bins."""
        return np.asarray(self._rounded[self._bin_of(log_odds)])

    def _bin_of(self, log_odds: Floats) -> NDArray[np.intp]:
        return np.searchsorted(self._bins, log_odds).clip(0, len(self._bins) - 1)


def _bins(pair: DominatingPair) -> Floats:
    """Return edges of bins of log-odds, increasing from -40 to 40 around 0.

    They are dense on the scale of the log-odds of a claim's dominating pair.
    """
    with np.errstate(invalid="ignore"):
        # The mean size of small log-odds l: tanh(l/2) is l/2, and the weights sum to 2.
        typical = np.abs(np.tanh(pair.log_odds / 2)) @ (pair.p + pair.q)
    scale = min(1.0, max(float(typical), 1e-4))
    # Bets hardly grow beyond log-odds of 40.
    step = math.asinh(40 / scale) / LIMITS.bins
    return np.asarray(scale * np.sinh(np.arange(-LIMITS.bins, LIMITS.bins + 1) * step))
