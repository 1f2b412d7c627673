"""The bet against any claim, and the theorem that it rests on.

A claim is given by its dominating pair (p₀, q₀), laws on some z
(`auditdp/claims/dominating.py`). A *region* is a set R of pairs of factors (e₀, e₁),
chosen from earlier batches. On every call the bettor picks one of them by any
information from before the coin, and the wealth is multiplied by e_b/S(R), where b is
the coin and

    S(R) = Σ_z max over (e₀, e₁) in R of  ½ p₀(z) e₀ + ½ q₀(z) e₁

is the *price* of the region; in the code, a price is its logarithm.

*Theorem.* If the claim is true, the expected product of n such factors is at most 1,
even if the bettor has all n outputs before any bet is placed. *Proof.* By Blackwell's
theorem the two laws of the output y are p₀ and q₀ sent through one channel: the coin b
is thrown, z is drawn from p₀ or q₀, and y is drawn given z alone. So given all z and
all y, the coins are independent and P(b = 1 | z, y) = q₀(z)/(p₀(z) + q₀(z)). With m(z)
= ½ p₀(z) + ½ q₀(z), the law of z, the expected factor of one call given all z and y is
[½ p₀(z) e₀ + ½ q₀(z) e₁]/(m(z) S(R)), at most the maximum over R, and the product over
the calls has no larger expectation than the product of these maxima. These depend on
the z alone, which are independent, and Σ_z m(z) max[...]/(m(z) S(R)) = 1. ∎

So wealth is a non-negative supermartingale from batch to batch, for every region and
every forecaster, and by Ville's inequality it ever reaches 1/α with probability at most
α. Nothing in it depends on the kind of the claim. A dominating pair that allows more
than the claim has a larger price; rounding is paid for by raising it (`ROUNDING`).

*Which region.* Among all laws of (y, b) that the claim allows let (P₀, Q₀) be the one
from which the forecast's law (P, Q) has the smallest Kullback–Leibler divergence. The
factors (P/P₀, Q/Q₀) have price 1, and their growth, that divergence, is the largest of
all bets (Grünwald, de Heide & Koolen 2024, "Safe Testing", arXiv:1906.07801; Larsson,
Ramdas & Ruf 2025, "The numeraire e-variable and reverse information projection",
arXiv:2402.18810). No sequential test of level α needs fewer than about ln(1/α)/growth
calls. `nearest_region.py` finds that law; a bet that is only near it pays with its
price, and stays valid.

*Which bet of the region.* For log-odds l, the pair that maximises (1-r) ln e₀ + r ln e₁
with r = e^l/(1+e^l).

*Pure claims* have one region for each level, which needs nothing but the odds. For an
ε-claim the dominating pair is randomised response, with q = e^ε/(1+e^ε). The region

    R = {(e₀, e₁): (1-q) e₀ + q e₁ <= 1  and  q e₀ + (1-q) e₁ <= 1}

has price 1, contains (1, 1), and holds the best bet at log-odds l = ln(r/(1-r)) in
closed form: with r₀ the number of [1-q, q] that is nearest to r,

    e₁ = r/r₀,   e₀ = (1-r)/(1-r₀).

So within the *cap*, |l| <= ε, nothing is bet, for any law of the log-odds. All levels
are bet on in one pass over the forecasts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from auditdp.betting.wealth.forecasts import ForecastLine, Forecasts
from auditdp.betting.wealth.levels import BatchResult, Grid
from auditdp.claims.dominating import DominatingPair
from auditdp.numerics.arrays import Floats

ROUNDING = 1e-11
"""Relative error added to every price, far above the error of sums of doubles."""


class Region:
    """Finitely many pairs of factors; the log-odds of a forecast choose one of them.

    Args:
        factors: e₀ and e₁ of each pair, positive, shape (n, 2). Pairs that no log-odds
            choose are dropped.

    Attributes:
        logs: ln e₀ and ln e₁ of the remaining pairs, from the best under coin 0 to the
            best under coin 1, shape (2, m).
        thresholds: Log-odds at which the next pair becomes the best, shape (m-1,),
            increasing.
    """

    def __init__(self, factors: Floats) -> None:
        logs = np.log(factors[np.lexsort((factors[:, 0], factors[:, 1]))])
        chain, thresholds = _hull(logs)
        self.logs = logs[chain].T
        # Forecasts of exactly 0 are frequent: the last digits of a solver must not
        # decide which bet they choose.
        self.thresholds = np.round(thresholds, 8)

    def price(self, pair: DominatingPair) -> float:
        """Return the price ln S(R) against a dominating pair, rounded up.

        It is the log wealth that each call costs, to be subtracted from ln e₀ or ln e₁.
        """
        return float(self.prices([pair])[0])

    def prices(self, pairs: Sequence[DominatingPair]) -> Floats:
        """Return the price against each dominating pair, shape (pairs,)."""
        p = np.concatenate([pair.p for pair in pairs])
        q = np.concatenate([pair.q for pair in pairs])
        odds = np.concatenate([pair.log_odds for pair in pairs])
        factors, thresholds = self._linear
        e0, e1 = factors[:, np.searchsorted(thresholds, odds)]
        # The sums over the atoms of all pairs are made in one pass.
        first = np.cumsum([0, *(len(pair.p) for pair in pairs[:-1])])
        price = np.add.reduceat(p * e0 + q * e1, first) / 2
        return np.asarray(np.log(price) + ROUNDING)

    @cached_property
    def _linear(self) -> tuple[Floats, Floats]:
        """The factors that maximise p₀ e₀ + q₀ e₁ for some atom, shape (2, k).

        The second array has the thresholds of ln q₀/p₀ between them. All maximisers are
        among the pairs in ``logs``, since p e₀ + q e₁ <= c is a convex set of (ln e₀,
        ln e₁).
        """
        factors = np.exp(self.logs.T)
        chain, thresholds = _hull(factors)
        return factors[chain].T, thresholds

    def choose(self, log_odds: Floats) -> Floats:
        """Return ln e₀ and ln e₁ of the best bet for each log-odds, shape (2, n)."""
        return np.asarray(self.logs[:, np.searchsorted(self.thresholds, log_odds)])

    def mixed(self, fraction: float) -> Region:
        """Return the region that bets a fraction of the wealth and keeps the rest.

        Its factors are 1 - fraction + fraction * e, for each factor e of this region.
        """
        return Region(1 - fraction + fraction * np.exp(self.logs.T))


def _hull(points: Floats) -> tuple[list[int], Floats]:
    """Return the points (x, y) that maximise (1 - r) x + r y for some r.

    Args:
        points: Sorted by y, then by x, shape (n, 2).

    Returns:
        The indices of these points in the order of increasing r, and the log-odds of r
        at which the next point becomes the best.
    """
    chain: list[int] = []
    odds: list[float] = []
    rows = points.tolist()
    # Invariant: chain has the maximisers among the points so far, and odds the log-odds
    # from which on each of them is the best.
    for k, (x, y) in enumerate(rows):
        while chain:
            lost, gained = rows[chain[-1]][0] - x, y - rows[chain[-1]][1]
            # The point before is not better in x.
            if lost <= 0:
                level = -math.inf
            elif gained <= 0:
                # This point is not better in y.
                level = math.inf
            else:
                level = math.log(lost / gained)
            if odds[-1] < level:
                break
            chain.pop()
            odds.pop()
        if not chain:
            level = -math.inf
        if level < math.inf:
            chain.append(k)
            odds.append(level)
    return chain, np.array(odds[1:])


def log_cap(epsilon: Any) -> tuple[Any, Any]:
    """Return ln q and ln(1-q) for q = e^ε/(1+e^ε), without cancellation for large ε."""
    log_q = -np.log1p(np.exp(-np.asarray(epsilon, dtype=float)))
    return log_q, log_q - epsilon


def growth(p: Any, epsilon: float) -> Any:
    """Return the expected log factor of a call against an ε-claim, in nats.

    It is kl(p ‖ q) with q = e^ε/(1+e^ε), and 0 for p <= q.

    Args:
        p: Probabilities of the likelier coin, strictly between 0 and 1, of any shape;
            the result has this shape.
        epsilon: The epsilon of the claim.
    """
    log_q, log_1q = log_cap(epsilon)
    kl = p * (np.log(p) - log_q) + (1 - p) * (np.log1p(-p) - log_1q)
    return np.where(np.log(p) > log_q, kl, 0.0)


class Caps:
    """Bets against a pure claim at every level.

    Args:
        grid: The levels.

    Attributes:
        shares: The share of each way of betting in the stake of a forecaster.
    """

    shares: ClassVar[tuple[float, ...]] = (1.0,)

    def __init__(self, grid: Grid) -> None:
        self._grid = grid

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
            leaders: Index of the leader at every anchor, chosen from earlier batches,
                shape (anchors,), or indices of forecasters in order of rank, shape
                (ranks, anchors), of which the first row counts; None for no leader.
            calls: Not used; ``Curves.settle`` has the same arguments.
            pair: Not used.
            crossed: Not used: there are bets against all levels.
        """
        line = ForecastLine(forecasts)
        values, claim = self._grid.values, self._grid.claim
        gained, right, wrong = _factors(
            line.who,
            line.count,
            line.log_odds,
            line.ones,
            line.zeros,
            values[self._grid.anchors],
        )
        led = np.zeros(len(values))
        if leaders is not None:
            leading = np.atleast_2d(leaders)[0][self._grid.anchor]
            for k in np.unique(leading):
                parts = line.of(int(k))
                own = np.flatnonzero(leading == k)
                who = np.zeros(len(parts[0]), np.intp)
                (led[own],), _, _ = _factors(who, 1, *parts, values[own])
        return BatchResult(
            leaders=led,
            at_anchors=gained[..., None],
            right=right[:, claim],
            wrong=wrong[:, claim],
        )


def _factors(
    who: NDArray[np.intp],
    count: int,
    log_odds: Floats,
    ones: Floats,
    zeros: Floats,
    levels: Floats,
) -> tuple[Floats, Floats, Floats]:
    """Return log factors, and the numbers of right and wrong calls beyond each cap.

    Forecasts are counted by the number of caps that they exceed. The sum of these
    counts from one number on is the count of forecasts that exceed a cap.

    Args:
        who: Index of the forecaster of each forecast, shape (forecasts,).
        count: Number of forecasters.
        log_odds: Log-odds of each forecast.
        ones: Number of calls with coin 1 for each forecast.
        zeros: Number of calls with coin 0 for each forecast.
        levels: The ε of each cap, increasing.

    Returns:
        Three arrays of shape (count, levels), in the order of the summary.
    """
    size = len(levels) + 1
    distance = np.abs(log_odds)
    right = np.where(log_odds > 0, ones, zeros)
    wrong = np.where(log_odds > 0, zeros, ones)
    # -ln max(r, 1-r); -ln min(r, 1-r) is larger by the log-odds.
    unsure = np.log1p(np.exp(-distance))
    # Infinite log-odds cost nothing without a wrong call, where 0·∞ would be NaN.
    with np.errstate(invalid="ignore"):
        lost = np.where(wrong > 0, wrong * (distance + unsure), 0.0)
    exceeded = who * size + np.searchsorted(levels, distance, side="left")

    def summed(weights: Floats) -> Floats:
        totals = np.bincount(exceeded, weights=weights, minlength=count * size)
        from_end = np.cumsum(totals.reshape(count, size)[:, ::-1], axis=1)
        return np.asarray(from_end[:, ::-1][:, 1:])

    # Each exceeded cap contributes its own ln q and ln(1-q).
    log_q, log_1q = log_cap(levels)
    rights, wrongs = summed(right), summed(wrong)
    gained = summed(-lost - right * unsure) - rights * log_q - wrongs * log_1q
    return np.asarray(gained), rights, wrongs
