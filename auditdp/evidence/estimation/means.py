"""Betting on means: is the mean of independent numbers, or their variance, above a value or below it?

Every test multiplies factors that are not negative and have expectation at most 1 under its null hypothesis, given the
numbers before. Their product, the *wealth*, is a supermartingale: it ever reaches 1/alpha with probability at most alpha
where the hypothesis is true (Ville 1939), and if it does, the hypothesis is refuted at level alpha. That holds for any
number of numbers; for a mean they need not have one law. Functions return the logarithm of the wealth that counts.

Mean. Under "the mean is at most m" the factor is 1 + s(X − m). Its expectation is at most 1 for every stake s >= 0 that is
fixed before X is seen, and it is positive where s < 1/(m − low) and X >= low. The stakes are the predictable plug-in ones of
Waudby-Smith & Ramdas (2024), "Estimating means of bounded random variables by betting", JRSS B 86(1), arXiv:2010.09686, for
n numbers: √(2 ln(1/alpha)/(nv)), where v is here the mean square distance of the numbers before from m. What that costs
beside Student's test: to find a bias of a coin nine times in ten takes 1.6, 1.2 and 1.2 times the calls at alpha = .05,
2.3e-4 and 1e-6 (2,000 calls, 150 samples); without declared limits 2.0, 1.3 and 1.3 times, with normal noise.

Variance, from above. Groups of five numbers have sample variances that are not negative and have the variance as their mean,
so "the variance is at most B" is a hypothesis on a mean with low = 0: no further assumption. Variance, from below. Given the
past, (X − c)² has a mean of at least the variance, whatever c the past suggests: "the variance is at least B" is a
hypothesis on the mean of numbers up to the square of the range.

Without declared limits the mean is tested with limits that are what was seen so far, widened on both sides by its width.
Factors that a number beyond them would make negative are 0, which adds to their expectation what such numbers contribute:
the test is asymptotic. To have more in hand, the wealth counts where it ends and not where it was largest. Exponential and
log-normal noise (σ = 1) keep alpha = 1e-4 and 1e-6, in 3,000,000 samples of 100 calls, in tests of the mean and of the
variance. What the calls do not show breaks it, as it does every such test: with normal noise that jumps by 30 standard
deviations in one call of 1,000, a variance at its bound is shown to be below it in 35 % of 3,000 samples of 1,000 calls, at
alpha = .05 and at 1e-3; 37 % of the samples have no jump.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditdp.claims.estimates import Limits
from auditdp.numerics.arrays import Floats, Integers

START = 10
"""Calls without a stake, from which the first stakes are sized; without limits, as many calls have to differ."""
SHARE = 0.75
"""The most that one number may cost, as a share of the wealth."""
GROUP = 5
"""Calls of one sample variance: it varies as (excess kurtosis + 2.5)/n, for pairs + 4, for all n calls + 2."""
INFLATION = 3.0
"""The assumed kurtosis over that of the sample, where none is stated. With 2, log-normal noise (σ = 1) breaks alpha = 1e-6
8 times too often (4 of 500,000 samples of 400 calls); with 3, never."""


def bias(values: Floats, low: float, high: float, alpha: float, limits: Limits | None) -> float:
    """Return the log wealth against "the mean lies between ``low`` and ``high``", half of it staked on either side.

    Args:
        values: Independent numbers, shape (n,).
        low: Least mean of the hypothesis.
        high: Greatest mean of the hypothesis.
        alpha: The level that the stakes are sized for; the wealth is valid at every level.
        limits: What all values lie between, or None where nothing is declared.
    """
    least, most = limits or (None, None)
    above = mean_bets(values, high, alpha / 2, least)
    below = mean_bets(-values, -low, alpha / 2, None if most is None else -most)
    return _wealth(np.logaddexp(above, below) - math.log(2), limits is not None)


def mean_within(values: Floats, margin: float, alpha: float, limits: Limits | None) -> float:
    """Return the log wealth against "the mean is not within ±margin": the lesser of two, against either side.

    Each is valid against its side, and the hypothesis is one of the two, so the lesser is valid against both.
    """
    least, most = limits or (None, None)
    above = mean_bets(values, -margin, alpha, least)
    below = mean_bets(-values, -margin, alpha, None if most is None else -most)
    return min(_wealth(below, limits is not None), _wealth(above, limits is not None))


def variance_above(values: Floats, bound: float, alpha: float) -> float:
    """Return the log wealth against "the variance is at most ``bound``", of independent numbers of any one law."""
    return _wealth(mean_bets(sample_variances(values), bound, alpha, 0.0, start=2), True)


def variance_below(
    values: Floats, bound: float, alpha: float, limits: Limits | None = None, kurtosis: float | None = None
) -> float:
    """Return the log wealth against "the variance is at least ``bound``".

    Args:
        values: Independent numbers of one law, shape (n,).
        bound: The least variance of the hypothesis.
        alpha: The level that the stakes are sized for.
        limits: What all values lie between; used where no kurtosis is stated.
        kurtosis: The most that E[(X − μ)⁴]/σ⁴ can be. Where neither is given, three times that of the sample is assumed: the
            test is asymptotic, and not valid where the sample shows less than a third of it.
    """
    if kurtosis is None and limits is not None:
        centre = np.concatenate([values[:1], np.cumsum(values)[:-1] / np.arange(1, len(values))])
        widest = np.maximum(centre - limits[0], limits[1] - centre) ** 2
        return _wealth(mean_bets(-((values - centre) ** 2), -bound, alpha, -widest), True)
    if kurtosis is None and not varies(values):
        return 0.0
    assumed = INFLATION * sample_kurtosis(values) if kurtosis is None else kurtosis
    return _wealth(kurtosis_bets(values, bound, alpha, assumed), kurtosis is not None)


def kurtosis_bets(values: Floats, bound: float, alpha: float, kurtosis: float) -> Floats:
    """Return the log wealth of bets against "the variance is at least B", given the most that the kurtosis can be.

    For the sample variance Y of a group of k = 5 calls the factor is f(Y)/(1 − s + s²c/4), with f(Y) = (1 − sY/(2B))² up to
    Y = 2B/s and 0 from there. Y = σ²U with E[U] = 1 and E[U²] <= c = 1 + (K − 3)/k + 2/(k − 1). f decreases, so that
    E[f(σ²U)] <= E[f(BU)] where σ² >= B, and f(Y) <= 1 − sY/B + s²Y²/(4B²) everywhere, so that E[f(BU)] <= 1 − s + s²c/4:
    the factor's expectation is at most 1. s is fixed beforehand.
    """
    groups = sample_variances(values)
    second = 1 + (kurtosis - 3) / GROUP + 2 / (GROUP - 1)
    stake = min(math.sqrt(2 * math.log(1 / alpha) / len(groups) / (second - 1)), 1.0)
    with np.errstate(divide="ignore"):
        factors = 2 * np.log(np.maximum(1 - stake * groups / bound / 2, 0.0))
    return np.cumsum(factors - math.log(1 - stake + stake**2 * second / 4))


def sample_variances(values: Floats) -> Floats:
    """Return the sample variances of disjoint groups of five calls."""
    return np.asarray(values[: len(values) // GROUP * GROUP].reshape(-1, GROUP).var(axis=1, ddof=1))


def sample_kurtosis(values: Floats) -> float:
    """Return the mean fourth power of the distances from the mean over the square of the mean square."""
    squares = (values - values.mean()) ** 2
    return float((squares**2).mean() / squares.mean() ** 2)


def varies(values: Floats) -> bool:
    """Return whether enough calls differ for a test without declared limits."""
    return bool(_changes(values)[-1] >= 2 * START)


def _changes(values: Floats) -> Integers:
    """Return how often each number, and those before it, differ from the one before: an odd one out differs twice."""
    return np.cumsum(np.diff(values, prepend=values[:1]) != 0)


def _wealth(process: Floats, valid: bool) -> float:
    """Return the largest log wealth that was reached, or the last where the test is asymptotic; 0 is where it began."""
    return max(0.0, float(process.max())) if valid else float(process[-1])


def mean_bets(values: Floats, mean: float, alpha: float, low: Floats | float | None, start: int = START) -> Floats:
    """Return the log wealth of bets against "the mean is at most ``mean``", after every number.

    ``low`` is what each number is at least, None where nothing is declared.
    """
    place = np.arange(len(values))
    if low is None:
        least, most = np.minimum.accumulate(values), np.maximum.accumulate(values)
        low, allowed = _before(2 * least - most, values[0]), _before(_changes(values), 0) >= 2 * START
    else:
        allowed = place >= start
    gains = values - mean
    mean_squares = _before(np.cumsum(gains**2), 0.0) / np.maximum(place, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = np.sqrt(2 * math.log(1 / alpha) / len(values) / mean_squares)
        bearable = np.where(low < mean, SHARE / (mean - low), np.inf)
        stakes = np.minimum(wanted, bearable)
        stakes = np.where(allowed & np.isfinite(stakes), stakes, 0.0)
        return np.cumsum(np.log(np.maximum(1 + stakes * gains, 0.0)))


def _before(running: NDArray[Any], first: float) -> NDArray[Any]:
    """Return a running quantity as it was before each number."""
    return np.concatenate([[first], running[:-1]])
