"""Two further bounds from recorded data: by an assumed law, and by a game.

First, a bound from the scores of one training, ASSUMING that they are Gaussian. It is
larger than a bound without this assumption, and never a verdict.

Assumption: the scores are independent, N(a, s²) of canaries that are out and
N(a + μs, s²) of those that are in. Then in and out are as distinguishable as N(μ, 1)
and N(0, 1) for every canary, so the claim is false at every level that this pair
exceeds. The guarantee of the bound is exact under the assumption: with n₁ and n₀
canaries of either kind, (mean₁ − mean₀)/(s_pooled √(1/n₁ + 1/n₀)) is noncentral t with
n₁ + n₀ − 2 degrees of freedom and noncentrality μ/√(1/n₁ + 1/n₀), and the bound is the
largest μ that this refutes at alpha.

Three tests check the assumption: third and fourth moments of the residuals (D'Agostino
& Pearson 1973), the ratio of both variances, and the correlation of each residual with
the next one, in the order of the canaries. Under the assumption all three are
ancillary, so independent of means and pooled variance (Basu 1955). So the bound keeps
its guarantee although it is only given if none of the tests rejects. The tests cannot
detect tails beyond the recorded canaries, which decide ε at a small δ, nor correlation
of canaries that are not next to each other.

Source: scores of one training as two normal laws are those of Agrawal, Wei, Singh,
Magdon-Ismail & Zikas (2026), "Let's Ask Gauss", arXiv:2606.12733. One variance, and the
bound by the exact law of the statistic, are derived here.

Second, a bound from a game on recorded outputs. No part of the outputs is split off to
learn from: the forecaster learns during the game.

The outputs of either input are handed out in random order, each at most once, to the
input that a fair coin chooses. A mechanism that is run on demand does the same, so the
wealth of the game (``auditdp/betting/wealth/regions.py``) is a certificate here as
there, for a delta and for the whole curve of Gaussian DP. The game ends when one of the
two records is used up, which depends on the coins alone; and since a level counts as
certified when its wealth has *ever* reached 1/alpha, ending early can only lose
certificates.
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
from auditdp.bounds.result import LIMITS, MIN_FIT_P, ROUNDING, Answer, Question
from auditdp.claims.claim import Claim
from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP
from auditdp.errors import MechanismError
from auditdp.numerics.arrays import Floats, Labels
from auditdp.numerics.rounding import outwards

ASSUMED = "ASSUMING independent Gaussian scores of one variance"
FREEDOM = 10
"""Degrees of freedom of Student's t law, the alternative to Gaussian scores for which
the power of the test is stated."""


@dataclass(frozen=True)
class Assumed:
    """A lower bound that holds if scores are Gaussian, and the test of this assumption.

    Attributes:
        lower: The bound on the claim's parameter, or None if the assumption was
            rejected.
        p_value: The p-value of the assumption, over all three tests (Bonferroni).
        against: The test with the smallest p-value: 'moments', 'variances' or
            'neighbours'.
        power: Probability that the test of the moments rejects the assumption if the
            scores have Student's t law with ``FREEDOM`` degrees of freedom.
    """

    lower: float | None
    p_value: float
    against: str
    power: float

    def statement(self, symbol: str, confidence: str) -> str:
        """Return one sentence on the bound and the test of its assumption.

        Args:
            symbol: Symbol of the claim's parameter, such as 'ε'.
            confidence: The confidence of the bound, in words.
        """
        p_value = f"p = {self.p_value:.2g}"
        if self.lower is None:
            return f"{ASSUMED} no bound is given: the {self.against} of the residuals contradict it ({p_value})"
        power = f"Student's t with {FREEDOM} degrees of freedom would in {self.power:.0%} of trainings"
        bound = (
            f"{symbol} ≥ {outwards(self.lower, up=False)} ({confidence}), no verdict"
        )
        return f"{ASSUMED}, {bound}; residuals do not speak against it ({p_value}; {power})"


def assuming_gaussian(
    scores: Floats, labels: Labels, question: Question
) -> Assumed | None:
    """Return the bound under the assumption of independent Gaussian scores.

    If the assumption holds, the bound exceeds the true level with probability at most
    alpha.

    Args:
        scores: Shape (canaries,), in the order in which canaries may be correlated.
        labels: Shape (canaries,): 1 for in, 0 for out.
        question: The family of claims, the error probability and the claim.

    Returns:
        The bound, or None if there are fewer than 20 canaries of either label, or all
        scores of a label are equal, or for pure ε-DP, which no Gaussian pair satisfies.
    """
    first, second = scores[labels == 1], scores[labels == 0]
    # The law of the moments is not known well enough for fewer than 20 canaries of a
    # kind.
    is_short = min(len(first), len(second)) < 20
    if is_short or question.curve == EpsilonDelta():
        return None
    if not (np.ptp(first) and np.ptp(second)):
        return None
    residuals = scores - np.where(labels == 1, first.mean(), second.mean())
    p_values = _against(residuals, labels)
    against = min(p_values, key=p_values.__getitem__)
    p_value = min(1.0, len(p_values) * p_values[against])
    lower = None
    if p_value >= MIN_FIT_P:
        lower = _level(_separation(first, second, question.alpha), question)
    power = _power(len(scores), MIN_FIT_P / len(p_values))
    return Assumed(lower, p_value, against, power)


def _separation(first: Floats, second: Floats, alpha: float) -> float:
    """Return the largest μ that the t statistic refutes at alpha, or 0 if none.

    ``first`` has the scores of canaries that are in, ``second`` of those that are out.
    """
    freedom = len(first) + len(second) - 2
    width = math.sqrt(1 / len(first) + 1 / len(second))
    squares = len(first) * np.var(first) + len(second) * np.var(second)
    pooled = math.sqrt(squares / freedom)
    statistic = float(first.mean() - second.mean()) / (pooled * width)
    return highest_rejected(
        lambda levels: 1 - nctdtr(freedom, levels / width, statistic) <= alpha
    )


def _level(separation: float, question: Question) -> float:
    """Return a level that N(μ, 1) against N(0, 1) exceeds, for μ = ``separation``.

    For a curve other than Gaussian DP it is the largest level that a threshold on a
    grid refutes.
    """
    if isinstance(question.curve, Gaussian):
        return separation * (1 - ROUNDING)
    best, level = separation / 2 + 6, 0.0
    # First over a wide range of thresholds, then around the best of them.
    for reach in (6.0, 0.2):
        thresholds = best + np.linspace(-reach, reach, 61)
        levels = question.curve.level(ndtr(separation - thresholds), ndtr(-thresholds))
        best, level = float(thresholds[np.argmax(levels)]), float(levels.max())
    return level * (1 - ROUNDING)


def _against(residuals: Floats, labels: Labels) -> dict[str, float]:
    """Return the p-value of each test of the assumption, by its name."""
    sides = residuals[labels == 1], residuals[labels == 0]
    freedom = len(sides[0]) - 1, len(sides[1]) - 1
    first, second = (float(np.var(side, ddof=1)) for side in sides)
    tail = min(fdtr(*freedom, first / second), fdtrc(*freedom, first / second))
    # Under independence this is standard normal for many canaries.
    scaled = residuals / np.std(residuals)
    following = float(np.dot(scaled[1:], scaled[:-1])) / math.sqrt(len(scaled))
    return {
        "moments": float(_moments(residuals[None])[0]),
        "variances": 2 * float(tail),
        "neighbours": 2 * float(ndtr(-abs(following))),
    }


@cache
def _power(canaries: int, least: float) -> float:
    """Return the simulated power of the test of the moments against Student's t.

    Args:
        canaries: Number of scores.
        least: The test rejects if its p-value is below this number.
    """
    repeats = max(20, LIMITS.simulated_scores // canaries)
    rng = np.random.default_rng(canaries)
    scores = rng.standard_t(FREEDOM, size=(repeats, canaries))
    return float(np.mean(_moments(scores) < least))


def _moments(residuals: Floats) -> Floats:
    """Return for each row the p-value of a test of the third and fourth moments."""
    # This import is slow, so it is made when it is needed.
    from scipy.stats import normaltest

    return np.asarray(normaltest(residuals, axis=1).pvalue)


class _SpentError(MechanismError):
    """A record has fewer outputs left than a call needs."""


class _Recorded:
    """A mechanism that returns recorded outputs in random order, each at most once.

    Its input is 1 for outputs of the first input, and 0 for those of the second.
    """

    name = "the record"

    def __init__(self, first: Floats, second: Floats, rng: np.random.Generator) -> None:
        self._left = {1: rng.permutation(first), 0: rng.permutation(second)}

    def __call__(
        self, data: int, size: int, *, rng: np.random.Generator
    ) -> NDArray[Any]:
        """Return the next ``size`` outputs of one record.

        Raises:
            _SpentError: If fewer outputs are left.
        """
        left = self._left[data]
        if size > len(left):
            raise _SpentError(f"{len(left)} outputs are left, and {size} are needed")
        self._left[data] = left[size:]
        return left[:size]


def played(
    first: Floats, second: Floats, question: Question, seed: int
) -> tuple[Answer, int]:
    """Return the answer of a game on recorded outputs, and the number of used outputs.

    Args:
        first: Outputs of one input, shape (n,) or (n, features).
        second: Outputs of the other input, shape (m,) or (m, features).
        question: The family of claims, the error probability and the claim.
        seed: Seed of the order of the outputs and of the coins.
    """
    # Two streams, so that the coins do not depend on the lengths of the records.
    order, coins = (
        np.random.default_rng(part) for part in np.random.SeedSequence(seed).spawn(2)
    )
    claim = _claim(question)
    record = _Recorded(first, second, order)
    shorter = min(len(first), len(second))
    # Coins are not thrown equally often either way: outputs are left over, four times
    # the root of a record's length.
    calls = math.floor(2 * shorter - 4 * math.sqrt(shorter))
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
            game.play(calls, alpha=question.alpha)
        wealth = game.wealth
        p_value = None if question.claim is None else math.exp(-wealth.highest)
        return Answer(wealth.lower_bound(question.alpha), p_value), wealth.calls
    return Answer(0.0, None if question.claim is None else 1.0), 0


def _claim(question: Question) -> Claim:
    """Return the claim against which the game bets.

    It is the claim of the family at the claimed level, or at level 1 without one. For
    ``OfClaim`` it is the claim that defines the family.
    """
    curve = question.curve
    level = 1.0 if question.claim is None else question.claim
    if isinstance(curve, OfClaim):
        return curve.claim
    if curve.parameter == "mu":
        return GaussianDP(level)
    return ApproxDP(level, curve.delta) if curve.delta else PureDP(level)
