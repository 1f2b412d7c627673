"""One noisy sum over a sampled batch: N(0, σ²) against (1−q) N(0, σ²) + q N(1, σ²), exactly and on a grid.

The loss of an output x is ln((1−q) + q e^((2x−1)/(2σ²))), increasing, and never below ln(1−q).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logit, ndtr

from auditdp.accountants.loss_distributions import gaussian_cells
from auditdp.mechanism import Array

DEVIATIONS = 9.5
"""How far out, in standard deviations, grids reach; 1e-21 of the probability lies beyond, in cells without end."""

Cells = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Lower and upper bounds on the probabilities of cells."""


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


def step_interval(noise_multiplier: float, rate: float) -> float:
    """Return a distance of the points of a grid that suits the loss of a step.

    A hundredth of its standard deviation, q √(e^(1/σ²) − 1), so that a composition is off by a small part of its own; but
    between 1e4 and 1e5 points up to the largest loss.
    """
    deviation = rate * math.sqrt(math.expm1(min(noise_multiplier**-2, 600.0)))
    largest = largest_loss(noise_multiplier, rate)
    return min(max(deviation / 100, largest / 1e5), largest / 1e4)


def cells(noise_multiplier: float, rate: float, interval: float) -> tuple[Cells, Cells]:
    """Return the cells' probabilities with the record, and without it; cells end half-way between points of the grid."""
    reach = DEVIATIONS * noise_multiplier
    low, high = loss(np.array([-reach, 1 + reach]), noise_multiplier, rate) / interval
    ends = (np.arange(math.floor(low), math.ceil(high)) + 0.5) * interval
    if rate < 1:
        ends = ends[ends > math.log1p(-rate)]
    edges = output_of(ends, noise_multiplier, rate)
    without = gaussian_cells(edges, 0.0, noise_multiplier)
    shifted = gaussian_cells(edges, 1.0, noise_multiplier)
    low_with, high_with = ((1 - rate) * a + rate * b for a, b in zip(without, shifted, strict=True))
    return (low_with, high_with), without


def delta(epsilon: Array, noise_multiplier: float, rate: float) -> NDArray[np.float64]:
    """Return δ(ε) of removing the record, which for ε >= 0 is the larger of both orders.

    It is q times the Gaussian's δ at the ε₀ of which ε is the amplification, ε = ln(1 + q(e^ε₀ − 1)).

    Args:
        epsilon: >= 0, in nats, shape (n,).
        noise_multiplier: σ.
        rate: q.
    """
    output = output_of(np.asarray(epsilon, dtype=np.float64), noise_multiplier, rate)
    # P(X > x) − e^ε Q(X > x) with P = (1−q) Q + q R is q (R − e^ε₀ Q)(X > x) for ln(1 + q(e^ε₀ − 1)) = ε.
    unamplified = loss(output, noise_multiplier, 1.0)
    shifted = ndtr((1 - output) / noise_multiplier)
    return np.asarray(rate * np.maximum(shifted - np.exp(unamplified + log_ndtr(-output / noise_multiplier)), 0.0))
