"""Bets against claims with a delta and against curves: regions that are learned from what forecasters expect.

Leaders bet on all levels, by plans (`plans.py`) that are renewed when the calls of a pair have grown by a quarter. Other
forecasters bet on the claim alone, each by several *ways*, whose wealth is averaged: with the region of the post nearest to
the claim, and with regions that need nothing to be learned:

- *stretched*: the nearest law for the claim's own pair with log-odds a third larger, for forecasters whose odds are all a
  little beyond the claim's;
- *hard*: (1 - λ, 1 + λ e^-ε), its mirror image and (1, 1), for forecasters of events that are rare and telling.

What all of them would have won at a few anchors decides who leads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from auditdp.betting.wealth.forecasts import ForecastLine, Forecasts
from auditdp.betting.wealth.levels import BatchResult, Grid
from auditdp.betting.wealth.plans import HARD, BettingPlan, Planner
from auditdp.claims.claim import Claim
from auditdp.claims.dominating import DominatingPair
from auditdp.numerics.arrays import Floats

LEARNED_SHARE = 0.7
"""Share of the learned region among the ways of betting."""
BINS = 200
"""Log-odds on either side that forecasts are rounded to, towards 0, where all forecasters bet."""
LARGEST_BIN = 40.0
"""Bets hardly grow beyond log-odds of this size."""
FINEST_SCALE = 1e-4
"""Bins are no finer than claims with odds of this size ask for."""


class Curves:
    """Bets against a claim with a curve at every level.

    Args:
        claim: The claim.
        grid: The levels.

    Attributes:
        plans: What is bet on each pair until it is renewed.
    """

    shares = (
        LEARNED_SHARE,
        *((1 - LEARNED_SHARE) / (1 + len(HARD)) for _ in range(1 + len(HARD))),
    )

    def __init__(self, claim: Claim, grid: Grid) -> None:
        self._planner, self._grid = Planner(claim, grid), grid
        self.plans: dict[int, BettingPlan] = {}
        self._calls: dict[int, int] = {}
        self._cap = claim.tangents()[0][0]
        self._bins = _bins(self._planner.at(grid.position).pair)
        self._rounded = np.where(
            self._bins > 0, np.append(0.0, self._bins[:-1]), self._bins
        )

    def settle(
        self,
        forecasts: Sequence[Forecasts],
        leaders: NDArray[np.intp] | None,
        *,
        calls: int,
        pair: int,
        crossed: int,
    ) -> BatchResult:
        """Bet on a batch, and return what that has come to; see ``Caps.settle``."""
        line = ForecastLine(forecasts)
        before = self._calls.get(pair, 0)
        plan = self.plans.get(pair)
        if plan is None or before >= plan.until:
            plan = self.plans[pair] = self._planner.plan(line, leaders, before, crossed)
        self._calls[pair] = before + calls

        led = np.zeros(len(self._grid))
        for post in plan.posts:
            odds, ones, zeros = line.of(post.leader)
            on_zeros, on_ones = post.region.choose(odds)
            led[post.levels] = (
                on_ones @ ones
                + on_zeros @ zeros
                - (ones.sum() + zeros.sum()) * post.prices
            )

        size = len(self._rounded)
        where = line.who * size + self._bin_of(line.log_odds)
        zeros, ones = (
            np.asarray(
                np.bincount(where, weights=side, minlength=line.count * size),
                np.float64,
            ).reshape(-1, size)
            for side in (line.zeros, line.ones)
        )
        seen = zeros.sum(axis=1) + ones.sum(
            axis=1
        )  # calls that are left out are not bet on, and cost nothing
        gained = np.zeros((line.count, len(self._grid.anchors), len(self.shares)))
        for place, ways in zip(plan.places, plan.ways, strict=True):
            for way, (region, price) in enumerate(ways):
                on_zeros, on_ones = region.choose(self._rounded)
                gained[:, place, way] = zeros @ on_zeros + ones @ on_ones - seen * price
        beyond = np.abs(self._rounded) > self._cap
        up = self._rounded > 0
        right = ones[:, beyond & up].sum(axis=1) + zeros[:, beyond & ~up].sum(axis=1)
        wrong = zeros[:, beyond & up].sum(axis=1) + ones[:, beyond & ~up].sum(axis=1)
        return BatchResult(gained[:, self._grid.claim], led, gained, right, wrong)

    def rounded(self, log_odds: Floats) -> Floats:
        """Return log-odds as they are bet on where all forecasters bet: rounded towards 0."""
        return np.asarray(self._rounded[self._bin_of(log_odds)])

    def _bin_of(self, log_odds: Floats) -> NDArray[np.intp]:
        return np.searchsorted(self._bins, log_odds).clip(0, len(self._bins) - 1)


def _bins(pair: DominatingPair) -> Floats:
    """Return increasing log-odds, symmetric and with 0, as fine as the odds that a claim allows ask for."""
    with np.errstate(invalid="ignore"):
        typical = float(
            np.abs(np.tanh(pair.log_odds / 2)) @ (pair.p + pair.q)
        )  # small log-odds are twice their tanh
    scale = min(1.0, max(typical, FINEST_SCALE))
    return np.asarray(
        scale
        * np.sinh(np.arange(-BINS, BINS + 1) * (math.asinh(LARGEST_BIN / scale) / BINS))
    )
