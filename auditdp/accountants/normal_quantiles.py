"""Normal probabilities in doubles, with proved lower and upper bounds.

Two facts are assumed: doubles round to nearest (IEEE 754), so that an operation is off
by u = 2^−53 relatively, and the elementary functions of numpy are off by 4 units in the
last place at most, as it documents.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from flint import arb

from auditdp.mechanism.laws import precision
from auditdp.numerics.arrays import Booleans, Floats

Enclosed = tuple[Floats, Floats]
"""An array of lower bounds, and one of upper bounds, of the same shape."""

NODES_PER_DEVIATION = 128
LAST_NODE = 37
"""The last node, in standard deviations; the probability beyond it is 6e-300."""


@cache
def _nodes() -> tuple[Floats, Floats]:
    """Return P(N > c) and the density at each node c = k/128, rounded to doubles."""
    tails, densities = [], []
    with precision(96):
        root, scale = arb(2).sqrt(), (2 * arb.pi()).sqrt()
        for k in range(LAST_NODE * NODES_PER_DEVIATION + 1):
            c = arb(k) / NODES_PER_DEVIATION
            tails.append(float((c / root).erfc() / 2))
            densities.append(float((-c * c / 2).exp() / scale))
    return np.array(tails), np.array(densities)


def upper_tail(z: Floats) -> Enclosed:
    """Return bounds on P(N > z') for every z' within 3u·z of ``z`` >= 0.

    N is standard normal, and u = 2^−53. With the nearest node c, h = z − c (exactly,
    |h| <= 1/256) and φ the density,

        P(N > c + h) = P(N > c) − φ(c) ∫₀^h e^{−cs − s²/2} ds,

    whose series Σ a_n s^n has (n+1) a_{n+1} = −c a_n − a_{n−1}. It is cut after 10
    terms, and |a_n| is at most that of e^{cs + s²/2}, so with c|h| <= .15 the rest is
    below |h| .151^10/10! e^.151 < 2e-15 |h|, and the sum is rounded by 30u·1.2|h| at
    most. As φ(c) <= (c + 1) P(N > c) and P(N > c + h) > .85 P(N > c), both are less
    than 12u relatively, and with the nodes' own errors less than 2^−48. Moving z by
    3u·z changes the probability by (z + 1)·3u·z relatively.

    Args:
        z: Standard deviations, of any shape; ``inf`` is allowed.
    """
    tails, densities = _nodes()
    inside = np.minimum(z, LAST_NODE)
    node = np.rint(inside * NODES_PER_DEVIATION).astype(np.int64)
    c = node / NODES_PER_DEVIATION
    h = inside - c
    # a_{n−1} and a_n.
    previous, coefficient = np.zeros_like(h), np.ones_like(h)
    power, total = h.copy(), h.copy()
    for n in range(1, 10):
        previous, coefficient = coefficient, (-c * coefficient - previous) / n
        power = power * h
        total += coefficient * power / (n + 1)
    tail = tails[node] - densities[node] * total
    error = 2.0**-48 + 4 * 2.0**-53 * inside * (inside + 1)
    low = np.where(z > LAST_NODE, 0.0, tail * (1 - error))
    return low, tail * (1 + error)


def log_cdf(z: Floats) -> Enclosed:
    """Return bounds on ln P(N <= z') for every z' within 3u·|z| of ``z``.

    N is standard normal, and u = 2^−53. The bounds keep their digits for probabilities
    that are nearly 1.
    """
    low, high = upper_tail(np.abs(z))
    with np.errstate(divide="ignore"):
        below = np.where(z <= 0, np.log(low), np.log1p(-np.minimum(high, 0.5)))
        above = np.where(z <= 0, np.log(high), np.log1p(-np.minimum(low, 0.5)))
    return below * (1 + 2.0**-50), above * (1 - 2.0**-50)


def gaussian_cells(edges: Floats, mean: float, sigma: float) -> Enclosed:
    """Return bounds on the masses of N(mean, sigma²) in cells between ``edges``.

    The bounds allow for standardised edges that are off by at most 3·2^−53 relatively.

    Args:
        edges: Ascending edges, shape (cells − 1,). The first cell reaches down to −∞,
            and the last one up to ∞.
        mean: The mean.
        sigma: The standard deviation.
    """
    ends = np.concatenate([[-np.inf], (edges - mean) / sigma, [np.inf]])
    low, high = upper_tail(np.abs(ends))
    right, across = ends[:-1] > 0, (ends[:-1] <= 0) & (ends[1:] > 0)
    near_low, far_low = _nearer_first(right, low)
    near_high, far_high = _nearer_first(right, high)
    # The nearer tail of a cell with the mean in it is more than a half.
    near_low = np.where(across, (1 - near_high) * (1 - 2.0**-52), near_low)
    one_minus = np.minimum(1.0, (1 - low[1:]) * (1 + 2.0**-52))
    near_high = np.where(across, one_minus, near_high)
    cells_low = np.maximum((near_low - far_high) * (1 - 2.0**-52), 0.0)
    return cells_low, np.maximum((near_high - far_low) * (1 + 2.0**-52), 0.0)


def _nearer_first(right: Booleans, tails: Floats) -> Enclosed:
    """Return the tails at the two ends of each cell, the end nearer to the mean first.

    ``right`` is True for cells above the mean.
    """
    left_end, right_end = tails[:-1], tails[1:]
    nearer = np.where(right, left_end, right_end)
    return nearer, np.where(right, right_end, left_end)


def sum_above(masses: Floats) -> float:
    """Return an upper bound on the sum of masses >= 0."""
    return math.nextafter(math.fsum(masses.tolist()), math.inf)
