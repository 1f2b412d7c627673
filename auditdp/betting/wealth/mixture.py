"""The wealth of all bets, averaged, against a claim and all levels of its lower bound.

`regions.py` has the factor of one call, the proof that wealth is not expected to grow
under a true claim, and the bets against pure claims. `curve_regions.py` has the bets
against all other claims, and `levels.py` explains crossed levels. This file has the
rest:

**Mixtures.** An average of wealths, each with expected factors of at most 1, is again
one. Wealth is averaged, with weights fixed beforehand, over forecasters, over ways of
betting, and with the wealth of *leaders*. Before every batch, a leader chooses the
forecaster that has recently gained most on the pair that is played, and bets with it.
This choice is made from the past, so the leader's wealth is one more supermartingale.
Leaders differ in their start: a later leader has no losses from the first batches, in
which forecasters learn.

**Batches.** Within a batch all forecasts come from earlier batches, so the wealth after
it depends only on the number of calls of either coin with each forecast. Bets are
therefore counted, not listed, and the wealth is computed between batches.

**Below the claim.** The wealth against a level below the claim is an average of two:
that of bets against the level, and the wealth against the claim. This is valid, since a
pair that satisfies the level also satisfies the claim. So the levels below follow soon
after the claim is crossed, even if only the claim's region isolates the rare events
that refute it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from auditdp.betting.wealth.curve_regions import Curves
from auditdp.betting.wealth.forecasts import Forecasts
from auditdp.betting.wealth.levels import Grid, crossed
from auditdp.betting.wealth.regions import Caps
from auditdp.claims.claim import Claim
from auditdp.numerics.arrays import Floats

CLAIM_SHARE = 0.2
"""Fraction of the wealth against lower levels that is bet against the claim itself.

With a share of .25, and of .8 for the first leader in ``STARTS``, the bounds of tight
claims are up to 1 % smaller. With a smaller share, rare events take up to 15 % more
calls.
"""
STARTS = {0: 0.92, 10_000: 0.02, 100_000: 0.02, 1_000_000: 0.02, 10_000_000: 0.02}
"""Share of each leader in the stake of all leaders, by the calls before its start."""


class Wealth:
    """The wealth of forecasters and of their leaders, against a claim at every level.

    Forecasters bet against the claim itself; against the other levels only leaders bet.
    Leaders are chosen at the anchors of the grid.

    Args:
        claim: The claim that is played against.
        shares: Positive prior weights of the forecasters, shape (K,). Together with
            ``leader``, they are normalised to sum to 1.
        leader: Prior weight of all leaders together in the bets against the claim; 0
            for no leaders.
        levels: Increasing levels for the lower bound, the claim's level among them;
            None for the claim's level alone.

    Attributes:
        alpha: The level of the test, .05 until a game sets it. A grid level whose
            wealth has reached 1/alpha needs no more bets.
        calls: Number of calls so far.
        position: Index of the claim's level.
        anchors: Indices of the levels at which leaders are chosen.
        right: Number of calls on which each forecaster's log-odds were beyond the
            claim's cap (its ε, or the first ε of its curve) and favoured the true coin,
            shape (K,).
        wrong: Number of calls on which they were beyond the cap and favoured the other
            coin, shape (K,).
        log_by_way: Log wealth against the claim of each forecaster by each way of
            betting, shape (K, ways).
        log_led: Log wealth of each leader at every level, shape (starts, levels); the
            leaders are ordered by their start.
        log_by_level: Log wealth against every level, averaged over all bets, shape
            (levels,).
        way_shares: The share of each way of betting in the stake of a forecaster.
    """

    def __init__(
        self,
        claim: Claim,
        *,
        shares: Sequence[float] = (1.0,),
        leader: float = 0.0,
        levels: Floats | None = None,
    ) -> None:
        self.claim, self.shares, self.leader = claim, shares, leader
        self.levels = np.array([claim.level]) if levels is None else levels
        self.alpha = 0.05
        self.calls = 0
        self.position = int(np.flatnonzero(self.levels == claim.level)[0])
        self._grid = Grid(self.levels, self.position)
        self.anchors = self._grid.anchors
        self._bets: Caps | Curves = Caps(self._grid)
        if claim.delta != 0:
            self._bets = Curves(claim, self._grid)
        self.way_shares: Sequence[float] = self._bets.shares
        self.right = self.wrong = np.zeros(len(shares))
        total = sum(shares) + leader
        self._log_shares = np.log(np.asarray(shares, dtype=float) / total)
        self._log_leader = math.log(leader / total) if leader > 0 else -math.inf
        # A leader of one forecaster can only follow that one, whenever it starts.
        starts = STARTS if len(shares) > 1 else {0: 1.0}
        self._starts = np.array(list(starts))
        self._log_starts = np.log(list(starts.values()))
        self.log_by_way = np.zeros((len(shares), len(self.way_shares)))
        self.log_led = np.zeros((len(starts), len(self.levels)))
        self.log_by_level = np.zeros(len(self.levels))
        self._highest = np.zeros(len(self.levels))

    def anchor(self, position: int) -> int:
        """Return the place in ``anchors`` of the anchor whose leader bets at a level.

        The argument is the index of the level.
        """
        return int(self._grid.anchor[position])

    def fresh(self) -> Wealth:
        """Return a new wealth of 1 with the same shares, against the claim alone."""
        return Wealth(self.claim, shares=self.shares, leader=self.leader)

    @property
    def log_wealth(self) -> float:
        """Log wealth against the claim, averaged over all bets."""
        return float(self.log_by_level[self.position])

    @property
    def highest(self) -> float:
        """The highest log wealth against the claim so far; 0 at the start."""
        return float(self._highest[self.position])

    @property
    def best(self) -> int:
        """Index of the forecaster with the largest wealth against the claim."""
        return int(np.argmax(self.log_by_forecaster))

    @property
    def record_of_best(self) -> tuple[int, int]:
        """Numbers of right and of wrong calls of the forecaster ``best``."""
        return int(self.right[self.best]), int(self.wrong[self.best])

    @property
    def log_by_forecaster(self) -> Floats:
        """Log wealth against the claim of each forecaster alone, shape (K,)."""
        return _log_sum_exp((self.log_by_way + np.log(self.way_shares)).T)

    def bet(
        self,
        forecasts: Sequence[Forecasts],
        calls: int,
        leaders: NDArray[np.intp] | None = None,
        *,
        pair: int = 0,
    ) -> Floats:
        """Bet on a batch of calls.

        Args:
            forecasts: Forecasts of all K forecasters for the batch, in order, from
                earlier batches only. A forecaster may leave calls out, if the choice of
                these calls depends neither on their coins nor on their outputs.
            calls: Number of calls in the batch.
            leaders: Index of the leader at every anchor, chosen from earlier batches,
                shape (anchors,), or indices of forecasters in order of rank, shape
                (ranks, anchors); None for no leader. Bets against claims with a delta
                use the ranks, other bets only the first one.
            pair: Index of the pair of inputs that the batch is of.

        Returns:
            The log factors of the batch that each forecaster would have at every
            anchor, by each way of betting, shape (K, anchors, ways). The next leaders
            are chosen by them. Against a claim with a delta, they are 0 at anchors that
            the plan of the pair does not judge.
        """
        batch = self._bets.settle(
            forecasts, leaders, calls=calls, pair=pair, crossed=self.crossed(self.alpha)
        )
        self.log_by_way += batch.at_anchors[:, self._grid.claim]
        self.right, self.wrong = self.right + batch.right, self.wrong + batch.wrong
        self.log_led[self.calls >= self._starts] += batch.leaders
        self.calls += calls
        self._average()
        return batch.at_anchors

    def _average(self) -> None:
        """Average all wealth at each level, and update the highest wealth so far."""
        wealth = _log_sum_exp(self.log_led + self._log_starts[:, None])
        claim, below = self.position, np.s_[: self.position]
        # Only against the claim itself do forecasters bet beside their leaders.
        own = _log_sum_exp((self.log_by_forecaster + self._log_shares)[:, None])[0]
        wealth[claim] = np.logaddexp(wealth[claim] + self._log_leader, own)
        wealth[below] = np.logaddexp(
            wealth[below] + math.log(1 - CLAIM_SHARE),
            wealth[claim] + math.log(CLAIM_SHARE),
        )
        self.log_by_level = wealth
        self._highest = np.maximum(self._highest, wealth)

    def crossed(self, alpha: float) -> int:
        """Return the number of crossed levels, from the smallest without a gap."""
        return crossed(self._highest, alpha)

    def open_level(self, alpha: float) -> int:
        """Return the index of the lowest level that the bound has not reached.

        If it has reached all levels, this is the last one.
        """
        return min(self.crossed(alpha), len(self.levels) - 1)

    def lower_bound(self, alpha: float) -> float:
        """Return the bound at confidence 1 - alpha, 0 if no level is crossed."""
        count = self.crossed(alpha)
        return float(self.levels[count - 1]) if count else 0.0

    def refuted(self, alpha: float) -> bool:
        """Return True if the claim is refuted: the bound has reached it."""
        return self.crossed(alpha) > self.position


def _log_sum_exp(values: Floats) -> Floats:
    """Return ln of the sum of e^values along the first axis."""
    highest = np.max(values, axis=0)
    highest[~np.isfinite(highest)] = 0.0
    with np.errstate(divide="ignore"):
        return np.asarray(highest + np.log(np.exp(values - highest).sum(axis=0)))
