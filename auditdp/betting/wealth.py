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
post-processing of "with probability δ reveal b, else an ε-DP pair" (Kairouz, Oh & Viswanath 2015, Theorem 3.1). On the
second branch E[f] <= 1 by the theorem above, on the first f <= sup f = 1/q = 1 + 1/E. ∎ So each factor is divided by
1 + λδ/E. Betting everything (λ = 1) is best when δ = 0; the wealth against a claim with δ > 0 is the average over
several λ, and over soft bets (g as the forecast says) and hard ones (g = 1 as soon as the forecast leaves the cap,
which is the event that attains δ(ε)).

**Mixtures.** An average of such wealths is again one. Wealth is averaged over forecasters, over λ, over soft and hard,
and over the (ε, δ) tangents of a curve claim.

**The lower bound.** The same forecasts are also bet against the claim at every level of a grid (levels of ε, or of μ).
A level is *crossed* when the wealth against it has reached 1/α, and ε_L is the largest level such that it and all below
it are crossed. If the truth is ε*, ε_L >= ε* needs the smallest level >= ε* to be crossed, which has probability at
most α. The claim is one of the levels, so "ε_L >= claim" is the very event that makes a verdict VIOLATED, and one α
covers both statements. Below the claim's level the wealth is the average of the bets at that level and at the claim's:
a pair that is ε-DP also satisfies the weaker claim, so this is valid, and rare events that only the claim's cap
isolates do not break the chain.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditdp.claims import Claim

Floats = NDArray[np.float64]

FRACTIONS = (0.1, 0.25, 0.5, 1.0)
ROUNDING_SLACK = 1e-9
GRID_RATIO = 1.01
GRID_LIMITS = (1e-3, 64.0)


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


def log_mean_exp(values: Floats) -> Floats:
    """Return ln of the mean of e^values along the first axis."""
    if len(values) == 1:
        return np.asarray(values[0])
    return np.asarray(np.logaddexp.reduce(values, axis=0) - math.log(len(values)))


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


def log_truth(log_odds: Floats, labels: NDArray[np.int8]) -> tuple[NDArray[np.bool_], Floats]:
    """Return whether each forecast leans the right way, and the log probability that it gave to the coin's side."""
    signed = np.where(labels == 1, log_odds, -log_odds)
    return signed > 0, -np.logaddexp(0.0, -signed)


def log_factors(log_odds: Floats, labels: NDArray[np.int8], epsilon: float) -> Floats:
    """Return ln f of each call for a pure claim: 0 where the forecast stays within the cap.

    Args:
        log_odds: Forecast log-odds of b = 1, shape (..., n), possibly infinite.
        labels: The coins, shape (n,), 0 or 1.
        epsilon: The claimed epsilon, in nats.
    """
    right, log_p = log_truth(log_odds, labels)
    log_q, log_1q = log_cap(epsilon)
    return np.asarray(np.where(np.abs(log_odds) > epsilon, log_p - np.where(right, log_q, log_1q), 0.0))


class Wealth:
    """The wealth of several forecasters against a claim, and against the same claim at every level of a grid.

    Args:
        claim: The claim that is played against.
        forecasters: How many forecasters bet side by side; their wealths are averaged.
        levels: Increasing levels for the lower bound, the claim's among them; None keeps only the claim's wealth.
    """

    def __init__(self, claim: Claim, *, forecasters: int, levels: Floats | None = None) -> None:
        self.claim = claim
        self.forecasters = forecasters
        self.calls = 0
        self._tangents = claim.tangents()
        self._pure = all(delta == 0 for _, delta in self._tangents)
        components = 1 if self._pure else 2 * len(FRACTIONS)
        self._log = np.zeros((forecasters, len(self._tangents), components))
        self.levels = levels
        self.highest = 0.0
        if levels is not None:
            self._position = int(np.flatnonzero(levels == claim.level)[0])
            self._points = np.array([claim.at(float(level)).tangents() for level in levels])  # (G, T, 2)
            shape = (len(levels),) if self._pure else (len(levels), self._points.shape[1], len(FRACTIONS))
            self._grid = np.zeros((forecasters, *shape))
            self._grid_highest = np.zeros(len(levels))

    @property
    def log_wealth(self) -> float:
        """Log wealth against the claim, averaged over all bets."""
        return float(log_mean_exp(self._log.ravel()))

    @property
    def log_by_forecaster(self) -> Floats:
        """Log wealth against the claim of each forecaster alone, shape (forecasters,)."""
        return log_mean_exp(self._log.reshape(self.forecasters, -1).T)

    def bet(self, log_odds: Floats, labels: NDArray[np.int8]) -> Floats:
        """Bet on a batch of calls and return the log wealth against the claim after each of them.

        Args:
            log_odds: Forecasts from earlier batches only, shape (forecasters, n).
            labels: The coins, shape (n,).
        """
        steps = np.stack([self._increments(log_odds, labels, *tangent) for tangent in self._tangents], axis=1)
        paths = self._log[..., None] + np.cumsum(steps, axis=-1)  # (K, T, C, n)
        self._log = paths[..., -1]
        path = log_mean_exp(paths.reshape(-1, paths.shape[-1]))
        self.highest = max(self.highest, float(path.max()))
        self.calls += len(labels)
        if self.levels is not None:
            self._bet_on_grid(log_odds, labels)
        return path

    def _increments(self, log_odds: Floats, labels: NDArray[np.int8], epsilon: float, delta: float) -> Floats:
        """Log factors of every bet against one (epsilon, delta), shape (K, components, n)."""
        soft = log_factors(log_odds, labels, epsilon)
        if self._pure:
            return soft[:, None, :]
        right, _ = log_truth(log_odds, labels)
        gain = np.where(np.abs(log_odds) > beyond_rounding(epsilon), np.where(right, math.exp(-epsilon), -1.0), 0.0)
        with np.errstate(divide="ignore"):
            bets = [np.log1p(f * move) for move in (np.expm1(soft), gain) for f in FRACTIONS]
        price = np.log1p(np.array(FRACTIONS) * delta * math.exp(-epsilon))
        return np.asarray(np.stack(bets, axis=1) - np.tile(price, 2)[None, :, None])

    def _bet_on_grid(self, log_odds: Floats, labels: NDArray[np.int8]) -> None:
        """Add a batch to the wealth at every level, by counting: only forecasts beyond a level's cap bet there."""
        thresholds = self._points[..., 0].ravel()  # (G*T,), the epsilon of each statement
        if not self._pure:
            thresholds = beyond_rounding(thresholds)
        right, log_p = log_truth(log_odds, labels)
        order = np.argsort(thresholds)
        for k in range(self.forecasters):
            # A forecast bets against the statements with epsilon < |log-odds|: the first `beyond` in sorted order.
            beyond = np.searchsorted(thresholds[order], np.abs(log_odds[k]), side="left")
            size = len(thresholds)

            def tally(weights: Floats, beyond: NDArray[np.intp] = beyond, size: int = size) -> Floats:
                totals = np.bincount(beyond, weights=weights, minlength=size + 1)
                sums = np.cumsum(totals[::-1])[::-1][1:]  # sums[i] = total over forecasts with beyond > i
                unsorted = np.empty(size)
                unsorted[order] = sums
                return np.asarray(unsorted.reshape(self._points.shape[:2]))

            n_right, n_wrong = tally(right[k].astype(float)), tally((~right[k]).astype(float))
            epsilon, delta = self._points[..., 0], self._points[..., 1]
            if self._pure:
                log_q, log_1q = log_cap(epsilon)
                self._grid[k] += (tally(log_p[k]) - n_right * log_q - n_wrong * log_1q)[:, 0]
                continue
            for c, f in enumerate(FRACTIONS):
                loss = math.log1p(-f) if f < 1 else -math.inf
                with np.errstate(invalid="ignore"):
                    wrong = np.where(n_wrong > 0, n_wrong * loss, 0.0)
                shrink = np.exp(-epsilon)
                self._grid[k, ..., c] += n_right * np.log1p(f * shrink) + wrong
                self._grid[k, ..., c] -= len(labels) * np.log1p(f * delta * shrink)
        wealth = log_mean_exp(np.moveaxis(self._grid, 1, 0).reshape(len(self._grid_highest), -1).T)
        wealth[self._position] = self.log_wealth
        below = np.s_[: self._position]
        wealth[below] = np.logaddexp(wealth[below], self.log_wealth) - math.log(2)
        self._grid_highest = np.maximum(self._grid_highest, wealth)
        self._grid_highest[self._position] = max(self._grid_highest[self._position], self.highest)
        self._grid_highest[below] = np.maximum(self._grid_highest[below], self.highest - math.log(2))

    def lower_bound(self, alpha: float) -> float:
        """Return ε_L at confidence 1 - alpha: 0 where not even the smallest level is crossed.

        Rounding goes towards "the claim looks true": a level counts as crossed only 1e-9 above ln(1/alpha).
        """
        if self.levels is None:
            raise ValueError("this wealth keeps no grid of levels")
        crossed = self._grid_highest >= math.log(1 / alpha) + ROUNDING_SLACK
        length = len(crossed) if crossed.all() else int(np.argmin(crossed))
        return float(self.levels[length - 1]) if length else 0.0

    def refuted(self, alpha: float) -> bool:
        """Return whether the claim is refuted: ε_L reached it, or, without a grid, its own wealth reached 1/alpha."""
        if self.levels is None:
            return self.highest >= math.log(1 / alpha) + ROUNDING_SLACK
        return self.lower_bound(alpha) >= self.claim.level
