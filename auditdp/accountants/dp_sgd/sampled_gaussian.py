"""One noisy sum over a sampled batch: N(0, σ²) against (1−q) N(0, σ²) + q N(1, σ²), exactly and on a grid.

The loss of an output x is ln((1−q) + q e^((2x−1)/(2σ²))), increasing, and never below ln(1−q).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logit, ndtri

from auditdp.accountants.base import crossing
from auditdp.accountants.normal import Enclosed, gaussian_cells
from auditdp.mechanism.protocol import Array


def deviations(negligible: float) -> float:
    """Return how far out, in standard deviations, a grid reaches that may leave out such a probability."""
    return min(max(-float(ndtri(negligible)), 1.0), 37.0)


def loss(output: Any, noise_multiplier: float, rate: float) -> Any:
    """Return the privacy loss of outputs, in nats, when the record is removed."""
    exponent = (2 * output - 1) / (2 * noise_multiplier**2)
    return np.logaddexp(math.log1p(-rate), math.log(rate) + exponent) if rate < 1 else exponent


def output_of(losses: Array, noise_multiplier: float, rate: float) -> NDArray[np.float64]:
    """Return the outputs that have these losses, all of them above ln(1−q)."""
    if rate == 1:
        return np.asarray(0.5 + noise_multiplier**2 * losses)
    beyond = losses - math.log1p(-rate)
    # 1 + (e^loss − 1)/q = (e^beyond − 1)(1−q)/q, in which nothing cancels.
    return np.asarray(0.5 + noise_multiplier**2 * (beyond + np.log(-np.expm1(-beyond)) - logit(rate)))


def largest_loss(noise_multiplier: float, rate: float, negligible: float) -> float:
    """Return the loss that is exceeded with the probability ``negligible`` under the larger mean."""
    return float(loss(1 + deviations(negligible) * noise_multiplier, noise_multiplier, rate))


def points(noise_multiplier: float, rate: float, negligible: float, interval: float) -> NDArray[np.int64]:
    """Return the numbers of the points of a grid from the least loss, or so far out, to the largest."""
    reach = deviations(negligible) * noise_multiplier
    low, high = loss(np.array([-reach, 1 + reach]), noise_multiplier, rate) / interval
    return np.arange(math.floor(low), math.ceil(high) + 1)


def half_way(noise_multiplier: float, rate: float, negligible: float, interval: float) -> NDArray[np.float64]:
    """Return ends of cells, half-way between points of a grid, of which the lowest is the loss of the first cell as a whole.

    Losses end at ln(1−q), and a good part of them lies just above: no cell below the first one could make its loss smaller.
    """
    reach = deviations(negligible) * noise_multiplier

    def gap(output: float) -> float:
        share = math.exp(log_ndtr((output - 1) / noise_multiplier) - log_ndtr(output / noise_multiplier))
        return interval / 2 - float(loss(output, noise_multiplier, rate)) + math.log1p(rate * (share - 1))

    numbers = points(noise_multiplier, rate, negligible, interval)
    first = (float(numbers[0]) + 0.5) * interval
    if rate < 1 and gap(-reach) > 0 >= gap(1 + reach):
        first = float(loss(crossing(gap, -reach, 1 + reach), noise_multiplier, rate))
    return np.asarray(first + np.arange(len(numbers)) * interval, np.float64)


def cells(noise_multiplier: float, rate: float, ends: Array) -> tuple[Enclosed, Enclosed]:
    """Return bounds on the probabilities, with the record and without it, of the cells of losses between ends.

    The losses at their ends ascend, shape (n,): the first of n + 1 cells has the losses below them, the last those above.
    """
    edges = np.full(len(ends), -np.inf)
    possible = ends > math.log1p(-rate) if rate < 1 else np.full(len(ends), True)
    edges[possible] = output_of(ends[possible], noise_multiplier, rate)
    without = gaussian_cells(edges, 0.0, noise_multiplier)
    shifted = gaussian_cells(edges, 1.0, noise_multiplier)
    return mixture(rate, without, shifted), without


def mixture(rate: float, without: Enclosed, shifted: Enclosed) -> Enclosed:
    """Return bounds on the probabilities of cells where the second law is drawn with probability q, the first otherwise."""
    low, high = ((1 - rate) * a + rate * b for a, b in zip(without, shifted, strict=True))
    # A rate that is a quotient of counts is off by u, and so is the share of the law without the record.
    off = 2.0**-52 * rate * without[1]
    return np.maximum(low * (1 - 2.0**-50) - off, 0.0), high * (1 + 2.0**-50) + off


def rounding(noise_multiplier: float, rate: float, ends: Array) -> float:
    """Return how far at most the losses of the cells' outputs lie beyond the ends that ``cells`` was asked for.

    The loss of each edge is computed again: its exponent is off by 4u relatively, and the rest by 8u of what is added up.
    The ends may have been multiples of an interval, off by u.
    """
    ends = ends[ends > math.log1p(-rate)] if rate < 1 else ends
    edges = output_of(ends, noise_multiplier, rate)
    exponents = (2 * edges - 1) / (2 * noise_multiplier**2)
    largest = 1 + float(np.abs(exponents).max()) + abs(math.log(rate)) + float(np.abs(ends).max())
    largest += abs(math.log1p(-rate)) if rate < 1 else 0.0
    return float(np.abs(loss(edges, noise_multiplier, rate) - ends).max()) + 2.0**-48 * largest
