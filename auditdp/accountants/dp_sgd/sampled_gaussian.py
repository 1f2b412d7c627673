"""One noisy sum over a sampled batch: N(0, σ²) against (1−q) N(0, σ²) + q N(1, σ²), exactly and on a grid.

The loss of an output x is ln((1−q) + q e^((2x−1)/(2σ²))), increasing, and never below ln(1−q).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from auditdp.accountants.normal import Enclosed, gaussian_cells
from auditdp.mechanism.protocol import Array

DEVIATIONS = 9.5
"""How far out, in standard deviations, grids reach; 1e-21 of the probability lies beyond, in cells without end."""


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


def largest_loss(noise_multiplier: float, rate: float) -> float:
    """Return the loss of the output 9.5 standard deviations beyond the larger mean."""
    return float(loss(1 + DEVIATIONS * noise_multiplier, noise_multiplier, rate))


def step_interval(noise_multiplier: float, rate: float, steps: int) -> float:
    """Return a distance of the points of a grid that suits the loss of a step.

    A hundredth of its standard deviation, q √(e^(1/σ²) − 1), so that a composition is off by a small part of its own; but
    1e4 points at least up to the largest loss, fewer for more than 1e4 steps, and 1e6 at most.
    """
    deviation = rate * math.sqrt(math.expm1(min(noise_multiplier**-2, 600.0)))
    largest = largest_loss(noise_multiplier, rate)
    return min(max(deviation / 100, largest / 1e6), largest / 1e4 * max(1.0, math.sqrt(steps / 1e4)))


def points(noise_multiplier: float, rate: float, interval: float) -> NDArray[np.int64]:
    """Return the numbers of the points of a grid from the least loss, or 9.5 standard deviations out, to the largest."""
    reach = DEVIATIONS * noise_multiplier
    low, high = loss(np.array([-reach, 1 + reach]), noise_multiplier, rate) / interval
    return np.arange(math.floor(low), math.ceil(high) + 1)


def cells(noise_multiplier: float, rate: float, ends: Array) -> tuple[Enclosed, Enclosed]:
    """Return bounds on the probabilities, with the record and without it, of the cells of losses between ends.

    Args:
        noise_multiplier: σ.
        rate: q.
        ends: Losses, ascending, shape (n,): the first of n + 1 cells has the losses below them, the last those above.
    """
    edges = np.full(len(ends), -np.inf)
    possible = ends > math.log1p(-rate) if rate < 1 else np.full(len(ends), True)
    edges[possible] = output_of(ends[possible], noise_multiplier, rate)
    without = gaussian_cells(edges, 0.0, noise_multiplier)
    shifted = gaussian_cells(edges, 1.0, noise_multiplier)
    low_with, high_with = ((1 - rate) * a + rate * b for a, b in zip(without, shifted, strict=True))
    # A rate that is a quotient of counts is off by u, and so is the share of the law without the record.
    off = 2.0**-52 * rate * without[1]
    return (np.maximum(low_with * (1 - 2.0**-50) - off, 0.0), high_with * (1 + 2.0**-50) + off), without


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
