"""What the scores of one training show ASSUMING that they are Gaussian: more than without, and never a verdict.

Assumption: the scores are independent, N(a, s²) of canaries that are out and N(a + μs, s²) of those that are in. Then any
canary is distinguished as N(0, 1) from N(μ, 1) is, so that no smaller level of the claim than theirs holds. The guarantee of
the bound is exact under it: with n₁ and n₀ of either kind, (mean₁ − mean₀)/(s_pooled √(1/n₁ + 1/n₀)) is noncentral t with
n₁ + n₀ − 2 degrees of freedom and noncentrality μ/√(1/n₁ + 1/n₀), and the bound is the largest μ that this refutes at alpha.

The assumption is looked at: third and fourth moments of the residuals (D'Agostino & Pearson 1973), the ratio of both
variances, and the correlation of each residual with the next one, in the order of the canaries. Under the assumption all
three are ancillary, so independent of means and pooled variance (Basu 1955): the bound keeps its guarantee although it is
only given where none of them speaks against it. What they cannot see is tails beyond the canaries that there are, which ε at
a small δ is about, and correlation of canaries that are not next to each other.

Source: scores of one training as two normal laws are those of Agrawal, Wei, Singh, Magdon-Ismail & Zikas (2026), "Let's Ask
Gauss", arXiv:2606.12733. One variance, and the bound by the exact law of the statistic, are derived here.

Recorded outputs played as a game: every part of the outputs is bet on, and nothing is split off to learn from.

The outputs of either input are handed out in random order, each at most once, to the input that a fair coin chooses. That
is what a mechanism does which is run on demand, so the wealth of the game (``auditdp/betting/wealth/regions.py``) is
a certificate here as there, for a delta and for the whole curve of Gaussian DP. The game ends when one of the two
records is used up, which depends on the coins alone; and since a level counts as certified when its wealth has *ever*
reached 1/alpha, ending early can only lose certificates.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtr, fdtrc, nctdtr, ndtr

from auditdp.adjacency import Pair
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.betting.game import Game
from auditdp.betting.wealth.levels import level_grid
from auditdp.bounds.bound_levels import highest_rejected
from auditdp.bounds.privacy_curves import EpsilonDelta, Gaussian, OfClaim
from auditdp.bounds.result import ROUNDING, Answer, Question
from auditdp.claims.claim import Claim
from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP
from auditdp.errors import MechanismError
from auditdp.numerics.arrays import Floats, Labels
from auditdp.numerics.rounding import outwards

ASSUMED = "ASSUMING independent Gaussian scores of one variance"
FEWEST = 20
"""Canaries of either kind below which moments have no law that is known well enough."""
LEAST_P = 0.01
"""The p-value, of all three looks together, below which the assumption is taken to be wrong."""
FREEDOM = 10
"""Degrees of freedom of Student's t, the alternative of which the power is said."""
SIMULATED = 200_000
"""How many scores are drawn to say it."""


@dataclass(frozen=True)
class Assumed:
    """A lower bound that holds if scores are Gaussian, and what is seen of whether they are."""

    lower: float | None
    """On the claim's parameter; None where the assumption is seen to be wrong."""
    p_value: float
    """Of the assumption."""
    against: str
    """What speaks most against it."""
    power: float
    """How often Student's t would have been seen."""

    def statement(self, symbol: str, confidence: str) -> str:
        """Return what is shown in one sentence, with the symbol of the claim's parameter."""
        p_value = f"p = {self.p_value:.2g}"
        if self.lower is None:
            return f"{ASSUMED} nothing is said: the {self.against} of the residuals speak against it ({p_value})"
        seen = f"Student's t with {FREEDOM} degrees of freedom would in {self.power:.0%} of trainings"
        shown = (
            f"{symbol} ≥ {outwards(self.lower, up=False)} ({confidence}), no verdict"
        )
        return (
            f"{ASSUMED}, {shown}; residuals do not speak against it ({p_value}; {seen})"
        )


def assuming_gaussian(
    scores: Floats, labels: Labels, question: Question
) -> Assumed | None:
    """Return what independent Gaussian scores would show of the level of a claim.

    None where there are too few canaries, or where no level has such a pair, as of pure ε-DP. The bound exceeds the true
    level with probability at most alpha if the assumption holds.

    Args:
        scores: Shape (canaries,), in the order in which canaries may be correlated.
        labels: Shape (canaries,): 1 for in, 0 for out.
        question: What is asked.
    """
    first, second = scores[labels == 1], scores[labels == 0]
    if (
        min(len(first), len(second)) < FEWEST
        or question.curve == EpsilonDelta()
        or not (np.ptp(first) and np.ptp(second))
    ):
        return None
    residuals = scores - np.where(labels == 1, first.mean(), second.mean())
    p_values = _against(residuals, labels)
    against = min(p_values, key=p_values.__getitem__)
    p_value = min(1.0, len(p_values) * p_values[against])
    lower = (
        _level(_separation(first, second, question.alpha), question)
        if p_value >= LEAST_P
        else None
    )
    return Assumed(
        lower, p_value, against, _power(len(scores), LEAST_P / len(p_values))
    )


def _separation(first: Floats, second: Floats, alpha: float) -> float:
    """The largest μ that the t statistic refutes, 0 if none."""
    freedom, width = (
        len(first) + len(second) - 2,
        math.sqrt(1 / len(first) + 1 / len(second)),
    )
    pooled = math.sqrt(
        (len(first) * np.var(first) + len(second) * np.var(second)) / freedom
    )
    statistic = float(first.mean() - second.mean()) / (pooled * width)
    return highest_rejected(
        lambda levels: 1 - nctdtr(freedom, levels / width, statistic) <= alpha
    )


def _level(separation: float, question: Question) -> float:
    """The least level of the claim that N(0, 1) against N(μ, 1) has: that of thresholds, of which some are tried."""
    if isinstance(question.curve, Gaussian):
        return separation * (1 - ROUNDING)
    best, level = separation / 2 + 6, 0.0
    for reach in (6.0, 0.2):
        thresholds = best + np.linspace(-reach, reach, 61)
        levels = question.curve.level(ndtr(separation - thresholds), ndtr(-thresholds))
        best, level = float(thresholds[np.argmax(levels)]), float(levels.max())
    return level * (1 - ROUNDING)


def _against(residuals: Floats, labels: Labels) -> dict[str, float]:
    """The p-value of each look at the assumption, by what it looks at."""
    (n_first, first), (n_second, second) = (
        (len(r), float(np.var(r, ddof=1)))
        for r in (residuals[labels == 1], residuals[labels == 0])
    )
    ratio, freedom = first / second, (n_first - 1, n_second - 1)
    scaled = residuals / np.std(residuals)
    following = float(np.dot(scaled[1:], scaled[:-1])) / math.sqrt(len(scaled))
    return {
        "moments": float(_moments(residuals[None])[0]),
        "variances": 2
        * min(float(fdtr(*freedom, ratio)), float(fdtrc(*freedom, ratio))),
        "neighbours": 2 * float(ndtr(-abs(following))),
    }


@cache
def _power(canaries: int, least: float) -> float:
    """How often the moments of so many draws of Student's t have a p-value below the least, by simulation."""
    drawn = np.random.default_rng(canaries).standard_t(
        FREEDOM, size=(max(20, SIMULATED // canaries), canaries)
    )
    return float(np.mean(_moments(drawn) < least))


def _moments(residuals: Floats) -> Floats:
    """The p-value of third and fourth moments together, of each row."""
    from scipy.stats import normaltest  # slow to load: only where it is needed

    return np.asarray(normaltest(residuals, axis=1).pvalue)


SOURCE = "the bet against a whole privacy curve (Ville's inequality; auditdp/betting/wealth/regions.py)"
UNCLAIMED = 1.0
"""The level that leaders bet against first where nothing is claimed."""
KEPT_BACK = 4.0
"""Outputs that are left over, in units of the root of a record's length: coins are not thrown equally often either way."""


class _SpentError(MechanismError):
    """A record has no more outputs."""


class _Recorded:
    """A mechanism that returns what was recorded: input 1 is the first record, input 0 the second."""

    name = "the record"

    def __init__(self, first: Floats, second: Floats, rng: np.random.Generator) -> None:
        self._left = {1: rng.permutation(first), 0: rng.permutation(second)}

    def __call__(
        self, data: int, size: int, *, rng: np.random.Generator
    ) -> NDArray[Any]:
        """Return the next outputs of one record."""
        left = self._left[data]
        if size > len(left):
            raise _SpentError(f"{len(left)} outputs are left, and {size} are needed")
        self._left[data] = left[size:]
        return left[:size]


def played(
    first: Floats, second: Floats, question: Question, seed: int
) -> tuple[Answer, int]:
    """Return the bound, the p-value of the claim, and how many of the outputs were bet on.

    Outputs are of shape (n,) or (n, features); the seed is what their order and the coins are made from.
    """
    order, coins = (
        np.random.default_rng(part) for part in np.random.SeedSequence(seed).spawn(2)
    )
    claim = _claim(question)
    record = _Recorded(first, second, order)
    shorter = min(len(first), len(second))
    with suppress(_SpentError):
        game = Game(
            record,
            claim,
            [Pair(1, 0)],
            [ViewExperts()],
            lambda *_: coins,
            levels=level_grid(claim),
        )
        with suppress(_SpentError):
            game.play(
                math.floor(2 * shorter - KEPT_BACK * math.sqrt(shorter)),
                alpha=question.alpha,
            )
        wealth = game.wealth
        p_value = None if question.claim is None else math.exp(-wealth.highest)
        return Answer(wealth.lower_bound(question.alpha), p_value), wealth.calls
    return Answer(0.0, None if question.claim is None else 1.0), 0


def _claim(question: Question) -> Claim:
    curve, level = (
        question.curve,
        UNCLAIMED if question.claim is None else question.claim,
    )
    if isinstance(curve, OfClaim):
        return curve.claim
    if curve.parameter == "mu":
        return GaussianDP(level)
    return ApproxDP(level, curve.delta) if curve.delta else PureDP(level)
