"""Wealth: what betting on the coin earns if the claim is false, and cannot earn if it is true.

One call of the game: a fair coin b chooses between two neighbours, the mechanism runs on the chosen one, and a
forecaster that has seen only earlier calls states the log-odds l = ln(r/(1-r)) of b = 1 given the output y.

**Pure claims.** Let q = e^ε/(1+e^ε). Clip r to [1-q, q] to get r₀, and multiply the wealth by

    f = r^b (1-r)^(1-b) / (r₀^b (1-r₀)^(1-b)).

*Theorem.* If the pair is ε-DP then E[f | past] <= 1. *Proof.* Given y, let ρ be the true posterior of b = 1; the claim
says ρ ∈ [1-q, q] for almost every y. E[f | y, past] = ρ r/r₀ + (1-ρ)(1-r)/(1-r₀). If r is inside the cap this is 1.
If r > q then r₀ = q, the expression is linear and increasing in ρ and equals r + (1-r) = 1 at ρ = q, so it is at most 1
for ρ <= q; the case r < 1-q is the mirror image. ∎ So the wealth is a non-negative supermartingale whatever the
forecaster does, whichever pair is played next and whenever the game stops, and by Ville's inequality it ever reaches
1/α with probability at most α.

**(ε, δ) claims.** With E = e^ε, f - 1 = g(y)(1{b guessed right} - E 1{wrong})/E, where 0 <= g <= 1 is how far r lies
outside the cap. *Theorem.* For 0 <= λ <= 1, E[1 + λ(f-1) | past] <= 1 + λδ/E. *Proof.* Every (ε, δ)-DP pair is a
post-processing of "with probability δ reveal b, else an ε-DP pair" (Kairouz, Oh & Viswanath 2015, proof of Theorem 3.3).
On the second branch E[f] <= 1 by the theorem above, on the first f <= sup f = 1/q = 1 + 1/E. ∎ So each factor is divided by
1 + λδ/E. Betting everything (λ = 1) with g as the forecast says is best when δ = 0; against a claim with δ > 0 the
bets are hard, g = 1 as soon as the forecast leaves the cap (the event that attains δ(ε)), and the wealth is the average
over several λ.

**Mixtures.** An average of such wealths is again one. Wealth is averaged, with weights fixed beforehand, over
forecasters, over λ, and over the (ε, δ) tangents of a curve claim; and with *leaders*, who before every batch follow the
forecaster that has lately earned most on the pair that is played (a choice made from the past, so their wealth is one
more supermartingale). Leaders differ in when they start: what is lost while forecasters learn cannot weigh on those who
come later.

**Batches.** Within a batch all forecasts come from earlier batches, so the wealth after it depends only on how many calls
of either coin got each forecast. Bets are therefore counted, not listed, and the wealth is looked at between batches.

**The lower bound.** The same forecasts are also bet against the claim at every level of a grid (levels of ε, or of μ).
A level is *crossed* when the wealth against it has reached 1/α, and ε_L is the largest level such that it and all below
it are crossed. If the truth is ε*, ε_L >= ε* needs the smallest level >= ε* to be crossed, which has probability at
most α. The claim is one of the levels, so "ε_L >= claim" is the very event that makes a verdict VIOLATED, and one α
covers both statements. Below the claim's level the wealth is a fifth of that level's own and four fifths of the claim's: a
pair that is ε-DP also satisfies the weaker claim, so this is valid; and when the claim is crossed, the levels below it
follow almost at once, even if rare events that only the claim's cap isolates did it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditdp.claims import Claim

Floats = NDArray[np.float64]

FRACTIONS = (0.1, 0.25, 0.5, 1.0)
ROUNDING_SLACK = 1e-9
GRID_RATIO = 1.01
GRID_LIMITS = (1e-3, 64.0)
ANCHORS = 8
CLAIM_SHARE = 0.8
STARTS = {0: 0.5, 1_000: 0.1, 10_000: 0.1, 100_000: 0.1, 1_000_000: 0.1, 10_000_000: 0.1}
"""After how many calls each leader starts, and its part of what all of them have."""


@dataclass(frozen=True, eq=False)
class Forecasts:
    """What several forecasters say of one batch, with the coins: each forecast once, and how often it was made.

    Attributes:
        log_odds: Log-odds of coin 1, possibly infinite, shape (forecasters, m).
        ones: How many calls with coin 1 got each of the m forecasts, shape (m,).
        zeros: The same for coin 0, shape (m,).
    """

    log_odds: Floats
    ones: Floats
    zeros: Floats

    @classmethod
    def of_calls(cls, log_odds: Floats, labels: NDArray[np.int8]) -> Forecasts:
        """Return the forecasts of single calls: ``log_odds`` of shape (forecasters, n), ``labels`` of shape (n,)."""
        ones = np.asarray(labels, dtype=float)
        return cls(np.atleast_2d(log_odds), ones, 1 - ones)

    @classmethod
    def abstaining(cls, forecasters: int) -> Forecasts:
        """Return no forecast at all, which counts as abstaining."""
        return cls(np.zeros((forecasters, 0)), np.zeros(0), np.zeros(0))


def level_grid(claim: Claim, *, ratio: float = GRID_RATIO) -> Floats:
    """Return the levels that a lower bound can take, with the claim's own among them; increasing.

    Levels are the claim times powers of ``ratio``, from 0.001 to 64, so a bound loses at most ``ratio`` to the grid.
    """
    low, high = GRID_LIMITS
    down = max(0, math.ceil(math.log(claim.level / low) / math.log(ratio)))
    up = max(0, math.ceil(math.log(high / claim.level) / math.log(ratio)))
    steps = np.arange(-down, up + 1)
    grid = claim.level * ratio ** steps.astype(float)
    grid[down] = claim.level
    return np.asarray(grid)


def log_cap(epsilon: Any) -> tuple[Any, Any]:
    """Return ln q and ln(1-q) for q = e^ε/(1+e^ε), without cancellation for large ε."""
    log_q = -np.log1p(np.exp(-np.asarray(epsilon, dtype=float)))
    return log_q, log_q - epsilon


def beyond_rounding(epsilon: Any) -> Any:
    """Return where a forecast counts as outside the cap for a hard bet.

    The computed log-ratio of a tight law differs from ε in its last bits, and those bits can depend on the input where
    noise was added in floating point. A hard bet would stake everything on them; what they give away is a question of
    floating-point sampling, which has evidence of its own.
    """
    return epsilon * (1 + ROUNDING_SLACK) + ROUNDING_SLACK


class Wealth:
    """The wealth of several forecasters and of their leaders, against a claim at every level of a grid.

    Forecasters bet against the claim itself; against the other levels only leaders bet. Who leads is decided at anchors,
    every ``ANCHORS``-th level, the claim's among them, and holds up to the next.

    Args:
        claim: The claim that is played against.
        shares: Positive prior weights of the forecasters, shape (K,); they are normalised.
        leader: Prior weight of all leaders beside them in the bets against the claim; 0 for none.
        levels: Increasing levels for the lower bound, the claim's among them; None for the claim's alone.

    Attributes:
        calls: Calls so far.
        position: Index of the claim's level.
        anchors: Indices of the levels at which leaders are chosen.
        tangents: How many (epsilon, delta) statements each level has.
        right: How often each forecaster bet against each statement of the claim and was right, shape (K, tangents).
        wrong: How often it was wrong.
    """

    def __init__(
        self, claim: Claim, *, shares: Sequence[float] = (1.0,), leader: float = 0.0, levels: Floats | None = None
    ) -> None:
        self.claim = claim
        self.shares, self.leader = shares, leader
        self.levels = np.array([claim.level]) if levels is None else levels
        self.position = int(np.flatnonzero(self.levels == claim.level)[0])
        self.anchors = np.arange(self.position % ANCHORS, len(self.levels), ANCHORS)
        self.calls = 0
        self.right = self.wrong = np.zeros((len(shares), 1))
        points = np.array([claim.at(float(level)).tangents() for level in self.levels])  # (G, T, 2)
        self.tangents = points.shape[1]
        self._pure = not points[..., 1].any()
        self._fractions = (1.0,) if self._pure else FRACTIONS
        self._grid = _Statements(points.reshape(-1, 2))
        self._at_anchors = _Statements(points[self.anchors].reshape(-1, 2))
        # At a level bet the leaders of the anchor just below: there they still win where only a little more is true.
        below = np.maximum(np.searchsorted(self.anchors, np.arange(len(self.levels)), side="right") - 1, 0)
        self._anchor = (below[:, None] * self.tangents + np.arange(self.tangents)).ravel()
        total = sum(shares) + leader
        self._log_shares = np.log(np.asarray(shares, dtype=float) / total)
        self._log_leader = math.log(leader / total) if leader > 0 else -math.inf
        self._log_starts = np.log(list(STARTS.values()))
        self._log = np.zeros((len(shares), self.tangents, len(self._fractions)))
        self._led = np.zeros((len(STARTS), len(self.levels) * self.tangents, len(self._fractions)))
        self._current = np.zeros(len(self.levels))
        self._highest = np.zeros(len(self.levels))

    def anchor(self, position: int) -> int:
        """Return the first statement of the anchor that decides who leads at a level, given by its position."""
        return int(self._anchor[position * self.tangents])

    def fresh(self) -> Wealth:
        """Return the same bets against the claim alone, with nothing won yet."""
        return Wealth(self.claim, shares=self.shares, leader=self.leader)

    @property
    def log_wealth(self) -> float:
        """Log wealth against the claim, averaged over all bets."""
        return float(self._current[self.position])

    @property
    def best(self) -> tuple[int, int]:
        """The forecaster with the largest wealth against the claim, and the statement of the claim that it won most on."""
        forecaster = int(np.argmax(self.log_by_forecaster))
        return forecaster, int(np.argmax(_log_mean_exp(self._log[forecaster])))

    @property
    def record_of_best(self) -> tuple[int, int]:
        """How often that forecaster bet against that statement and was right, and was wrong."""
        return int(self.right[self.best]), int(self.wrong[self.best])

    @property
    def log_by_forecaster(self) -> Floats:
        """Log wealth against the claim of each forecaster alone, shape (K,)."""
        return _log_mean_exp(self._log)

    def bet(self, forecasts: Sequence[Forecasts], calls: int, leaders: NDArray[np.intp] | None = None) -> Floats:
        """Bet on a batch of calls.

        Args:
            forecasts: What all K forecasters said of the batch, in order, from earlier batches only. Each may leave calls
                out, if which ones does not depend on their coins.
            calls: Calls in the batch.
            leaders: Who leads at every anchor and tangent, chosen from earlier batches, shape (anchors * tangents,).

        Returns:
            The log wealth that each of them would have won at every anchor and tangent, shape (K, anchors * tangents):
            what the next leaders are chosen from.
        """
        bets = _Bets.on(forecasts, pure=self._pure)
        tally = self._at_anchors.tally(bets)
        claim = self.anchor(self.position)
        against = slice(claim, claim + self.tangents)
        self._log += self._factors(self._at_anchors, tally, self._fractions, against)
        self.right, self.wrong = self.right + tally.right[:, against], self.wrong + tally.wrong[:, against]
        if leaders is not None:
            started = self.calls >= np.array(list(STARTS))
            leading, column = leaders[self._anchor], np.arange(len(self._anchor))
            for k in np.unique(leading):
                (won,) = self._factors(self._grid, self._grid.tally(bets.of(k)), self._fractions)
                self._led[np.ix_(started, column[leading == k])] += won[leading == k]
        self.calls += calls
        self._look()
        middle = self._fractions[len(self._fractions) // 2]
        return self._factors(self._at_anchors, tally, (middle,))[..., 0]

    def _factors(
        self, statements: _Statements, tally: _Tally, fractions: Sequence[float], part: slice = slice(None)
    ) -> Floats:
        """Return the log factors that forecasters win against statements, or some, (forecasters, statements, fractions)."""
        epsilon, delta = statements.epsilon[part], statements.delta[part]
        right, wrong = tally.right[:, part], tally.wrong[:, part]
        if tally.logs is not None:
            log_q, log_1q = log_cap(epsilon)
            return np.asarray(tally.logs[:, part] - right * log_q - wrong * log_1q)[..., None]
        shrink, factors = np.exp(-epsilon), []
        for fraction in fractions:
            with np.errstate(invalid="ignore", divide="ignore"):
                lost = np.where(wrong > 0, wrong * np.log1p(-fraction), 0.0)
            price = np.log1p(fraction * delta * shrink)
            factors.append(right * np.log1p(fraction * shrink) + lost - tally.bets.calls[:, None] * price)
        return np.stack(factors, axis=-1)

    def _look(self) -> None:
        """Average all wealth per level, and remember the highest that it has been."""
        starts, levels = len(STARTS), len(self.levels)
        led = _log_mean_exp(self._led.reshape(starts * levels, -1)).reshape(starts, levels)
        wealth = _log_sum_exp(led + self._log_starts[:, None])
        claim, below = self.position, np.s_[: self.position]
        at_claim = _log_sum_exp((self.log_by_forecaster + self._log_shares)[:, None])[0]
        wealth[claim] = np.logaddexp(wealth[claim] + self._log_leader, at_claim)
        wealth[below] = np.logaddexp(wealth[below] + math.log(1 - CLAIM_SHARE), wealth[claim] + math.log(CLAIM_SHARE))
        self._current = wealth
        self._highest = np.maximum(self._highest, wealth)

    def crossed(self, alpha: float) -> int:
        """Return how many levels, counted from the smallest, have been crossed without a gap.

        Rounding goes towards "the claim looks true": a level counts as crossed only 1e-9 above ln(1/alpha).
        """
        crossed = self._highest >= math.log(1 / alpha) + ROUNDING_SLACK
        return len(crossed) if crossed.all() else int(np.argmin(crossed))

    def lower_bound(self, alpha: float) -> float:
        """Return ε_L at confidence 1 - alpha: 0 where not even the smallest level is crossed."""
        count = self.crossed(alpha)
        return float(self.levels[count - 1]) if count else 0.0

    def refuted(self, alpha: float) -> bool:
        """Return whether the claim is refuted: ε_L reached it."""
        return self.crossed(alpha) > self.position


@dataclass(frozen=True, eq=False)
class _Bets:
    """The forecasts of one batch in a line, shape (n,) each, forecaster by forecaster.

    Attributes:
        count: How many forecasters there are.
        who: Which of them made each forecast, increasing.
        far: The absolute log-odds.
        right: How many calls with the coin that was held for likelier got each forecast.
        wrong: How many calls with the other coin got it.
        logs: ln r^b (1-r)^(1-b), summed over those calls; None against claims that have a delta.
    """

    count: int
    who: NDArray[np.intp]
    far: Floats
    right: Floats
    wrong: Floats
    logs: Floats | None

    @classmethod
    def on(cls, forecasts: Sequence[Forecasts], *, pure: bool) -> _Bets:
        """Put the forecasts of one batch in a line."""
        tables = [(row, f.ones, f.zeros) for f in forecasts for row in f.log_odds]
        who = np.repeat(np.arange(len(tables)), [len(row) for row, _, _ in tables])
        odds, ones, zeros = (np.concatenate(parts) for parts in zip(*tables, strict=True))
        far, right, wrong = np.abs(odds), np.where(odds > 0, ones, zeros), np.where(odds > 0, zeros, ones)
        logs = None
        if pure:
            unsure = np.log1p(np.exp(-far))  # -ln max(r, 1-r), and -ln min(r, 1-r) is more by the log-odds
            with np.errstate(invalid="ignore"):
                lost = np.where(wrong > 0, wrong * (far + unsure), 0.0)
            logs = -lost - right * unsure
        return cls(len(tables), who, far, right, wrong, logs)

    @cached_property
    def calls(self) -> Floats:
        """Calls that each forecaster saw, whatever it bet, shape (count,)."""
        return np.asarray(
            np.bincount(self.who, weights=self.right + self.wrong, minlength=self.count), dtype=np.float64
        )

    def of(self, forecaster: int) -> _Bets:
        """Return the bets of one forecaster alone."""
        part = slice(*np.searchsorted(self.who, [forecaster, forecaster + 1]))
        logs = None if self.logs is None else self.logs[part]
        return _Bets(1, 0 * self.who[part], self.far[part], self.right[part], self.wrong[part], logs)


@dataclass(frozen=True, eq=False)
class _Tally:
    """Sums over the bets of each forecaster that lie beyond the cap of each statement, shape (forecasters, statements).

    Attributes:
        bets: What is summed.
        right: Calls whose coin was held for likelier.
        wrong: The other calls.
        logs: ln r^b (1-r)^(1-b); None against claims that have a delta.
    """

    bets: _Bets
    right: Floats
    wrong: Floats
    logs: Floats | None


class _Statements:
    """A list of (epsilon, delta) statements, ordered for counting.

    Args:
        points: Their epsilon and delta, shape (S, 2).
    """

    def __init__(self, points: Floats) -> None:
        self.epsilon, self.delta = points[:, 0], points[:, 1]
        thresholds = beyond_rounding(self.epsilon) if self.delta.any() else self.epsilon
        order = np.argsort(thresholds, kind="stable")
        self._thresholds = thresholds[order]
        in_order = np.array_equal(order, np.arange(len(order)))
        self._rank = slice(None) if in_order else np.argsort(order, kind="stable")  # indexing by a slice copies nothing

    def tally(self, bets: _Bets) -> _Tally:
        """Sum up what lies beyond each cap, by counting: a bet is made against the first statements in their order."""
        size = len(self.epsilon) + 1
        beyond = bets.who * size + np.searchsorted(self._thresholds, bets.far, side="left")

        def summed(weights: Floats) -> Floats:
            totals = np.bincount(beyond, weights=weights, minlength=bets.count * size).reshape(bets.count, size)
            # After this, column i + 1 holds the total over the forecasts that lie beyond i + 1 caps or more.
            return np.asarray(np.cumsum(totals[:, ::-1], axis=1)[:, ::-1][:, 1:][:, self._rank])

        logs = None if bets.logs is None else summed(bets.logs)
        return _Tally(bets, summed(bets.right), summed(bets.wrong), logs)


def _log_mean_exp(values: Floats) -> Floats:
    """Return ln of the mean of e^values over all axes but the first."""
    flat = values.reshape(len(values), -1)
    return flat[:, 0] if flat.shape[1] == 1 else np.asarray(_log_sum_exp(flat.T) - math.log(flat.shape[1]))


def _log_sum_exp(values: Floats) -> Floats:
    """Return ln of the sum of e^values along the first axis."""
    highest = np.max(values, axis=0)
    highest[~np.isfinite(highest)] = 0.0
    with np.errstate(divide="ignore"):
        return np.asarray(highest + np.log(np.exp(values - highest).sum(axis=0)))
