"""The normal distribution in doubles, enclosed: every probability with bounds that are proved.

Two things are taken from outside: doubles round to nearest (IEEE 754), so that an operation is off by u = 2^−53 relatively,
and the elementary functions of numpy are off by 4 units in the last place at most, as it documents.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from flint import arb
from numpy.typing import NDArray

from auditdp.mechanism.laws import precision
from auditdp.mechanism.protocol import Array

Enclosed = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Lower and upper bounds."""

PER_UNIT = 128
"""Nodes for each standard deviation."""
FARTHEST = 37
"""The last node, in standard deviations; 6e-300 of the probability lies beyond."""
TERMS = 10


@cache
def _nodes() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """P(N > c) and the density at c, for c = k/128: the doubles nearest to balls."""
    with precision(96):
        root, scale = arb(2).sqrt(), (2 * arb.pi()).sqrt()
        c = [arb(k) / PER_UNIT for k in range(FARTHEST * PER_UNIT + 1)]
        return np.array([float((x / root).erfc() / 2) for x in c]), np.array(
            [float((-x * x / 2).exp() / scale) for x in c]
        )


def upper_tail(z: Array) -> Enclosed:
    """Return bounds on P(N > z') for every z' within 3u·z of ``z`` >= 0, shape of ``z``; ``inf`` is allowed.

    With the nearest node c, h = z − c (exactly, |h| <= 1/256) and φ the density,

        P(N > c + h) = P(N > c) − φ(c) ∫₀^h e^{−cs − s²/2} ds,

    whose series Σ a_n s^n has (n+1) a_{n+1} = −c a_n − a_{n−1}. It is cut after 10 terms, and |a_n| is at most that of
    e^{cs + s²/2}, so with c|h| <= .15 what is cut is below |h| .151^10/10! e^.151 < 2e-15 |h|, and the sum is rounded by
    30u·1.2|h| at most. As φ(c) <= (c + 1) P(N > c) and P(N > c + h) > .85 P(N > c), both are less than 12u relatively, and
    with the nodes' own errors less than 2^−48. Moving z by 3u·z changes the probability by (z + 1)·3u·z relatively.
    """
    z = np.asarray(z, dtype=np.float64)
    tails, densities = _nodes()
    inside = np.minimum(z, FARTHEST)
    node = np.rint(inside * PER_UNIT).astype(np.int64)
    c = node / PER_UNIT
    h = inside - c
    before, term = np.zeros_like(h), np.ones_like(h)  # a_{n−1} and a_n
    power, total = h.copy(), h.copy()
    for n in range(1, TERMS):
        before, term = term, (-c * term - before) / n
        power = power * h
        total += term * power / (n + 1)
    found = tails[node] - densities[node] * total
    error = 2.0**-48 + 4 * 2.0**-53 * inside * (inside + 1)
    beyond = z > FARTHEST
    return np.where(beyond, 0.0, found * (1 - error)), found * (1 + error)


def at_most(z: Array) -> Enclosed:
    """Return bounds on P(N <= z') for every z' within 3u·|z| of ``z``, which may be infinite."""
    z = np.asarray(z, dtype=np.float64)
    low, high = upper_tail(np.abs(z))
    below = z <= 0
    other_low, other_high = (
        (1 - high) * (1 - 2.0**-52),
        np.minimum(1.0, (1 - low) * (1 + 2.0**-52)),
    )
    return np.where(below, low, other_low), np.where(below, high, other_high)


def log_at_most(z: Array) -> Enclosed:
    """Return bounds on ln P(N <= z'), likewise, which keep their digits where the probability is nearly 1."""
    z = np.asarray(z, dtype=np.float64)
    tails = upper_tail(np.abs(z))
    below = z <= 0
    with np.errstate(divide="ignore"):
        low, high = (
            np.where(below, np.log(tail), np.log1p(-np.minimum(other, 0.5)))
            for tail, other in (tails, tails[::-1])
        )
    return low * (1 + 2.0**-50), high * (1 - 2.0**-50)


def gaussian_cells(edges: Array, mean: float, sigma: float) -> Enclosed:
    """Return lower and upper bounds on the mass of N(mean, sigma²) in the cells of the real line between ``edges``.

    By differences of whichever tail is the smaller one. Standardising an edge moves it by 3u relatively at most.

    The edges ascend, shape (cells − 1,); the first and last cell have no end.
    """
    ends = np.concatenate([[-np.inf], (edges - mean) / sigma, [np.inf]])
    low, high = upper_tail(np.abs(ends))
    right, across = ends[:-1] > 0, (ends[:-1] <= 0) & (ends[1:] > 0)
    near_low, near_high = (np.where(right, tail[:-1], tail[1:]) for tail in (low, high))
    far_low, far_high = (np.where(right, tail[1:], tail[:-1]) for tail in (low, high))
    # The nearer tail of a cell with the mean in it is more than a half.
    near_low = np.where(across, (1 - near_high) * (1 - 2.0**-52), near_low)
    near_high = np.where(
        across, np.minimum(1.0, (1 - low[1:]) * (1 + 2.0**-52)), near_high
    )
    return np.maximum((near_low - far_high) * (1 - 2.0**-52), 0.0), np.maximum(
        (near_high - far_low) * (1 + 2.0**-52), 0.0
    )


def sum_above(masses: Array) -> float:
    """Return at least the sum of masses >= 0."""
    return math.nextafter(math.fsum(masses.tolist()), math.inf)
