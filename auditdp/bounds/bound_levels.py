"""Lower bounds and p-values from a test that accepts or rejects one level at a time.

There is one claim for each level, and the claims are nested: a law that meets the claim
at a level meets it at every level above. Let t be the smallest level whose claim is
true. A bound is wrong only if it is at least t.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable

import numpy as np

from auditdp.betting.wealth.levels import HIGHEST_LEVEL, LOWEST_LEVEL
from auditdp.numerics.arrays import Booleans, Floats

SMALLEST_ALPHA = 1e-300
"""Smallest p-value that is reported, near the smallest positive double."""


def highest_rejected(rejected: Callable[[Floats], Booleans], parts: int = 32) -> float:
    """Return the largest level rejected by a test that is monotone in the level.

    A monotone test that rejects a level rejects all lower levels. If the result is at
    least the true level t, then t is rejected, which has probability at most alpha. The
    result is the lower end of a bisection, so it is itself rejected.

    Args:
        rejected: Tests an array of levels at alpha, and returns one truth value for
            each.
        parts: Number of parts that an interval of levels is divided into; ``rejected``
            gets ``parts`` - 1 levels at once.

    Returns:
        The level, at most ``HIGHEST_LEVEL``; 0 if none is rejected.
    """
    if bool(rejected(np.array([HIGHEST_LEVEL]))[0]):
        return HIGHEST_LEVEL
    return _last_true(rejected, 0.0, HIGHEST_LEVEL, parts)[0]


def highest_chain(
    p_value: Callable[[float, float], float],
    easy: Callable[[float], float],
    *,
    alpha: float,
    claim: float | None,
    n: int,
) -> float:
    """Return the largest level of a fixed grid such that it and all below are rejected.

    The test need not be monotone. Let g be the smallest grid level that is at least the
    true level t; the data did not choose g. If the result is >= t, then g is rejected.
    The claim at g is true, so this has probability at most alpha.

    Args:
        p_value: Computes the p-value at a level, or an upper bound on it. Its second
            argument is the alpha that the p-value is compared with; a p-value above
            that alpha may be inaccurate.
        easy: Computes an upper bound on the p-value that never decreases with the
            level. Levels at which it is at most alpha are rejected without ``p_value``.
        alpha: The error probability.
        claim: The claimed level, which is added to the grid, or None.
        n: The number of observations. The ratio of the grid is 1 + 1/(5 sqrt(n)), since
            the spread of a bound falls with sqrt(n).

    Returns:
        The level, or 0 if none is rejected.
    """
    ratio = 1 + 0.2 / math.sqrt(n)
    steps = math.ceil(math.log(HIGHEST_LEVEL / LOWEST_LEVEL) / math.log(ratio))
    levels = np.geomspace(LOWEST_LEVEL, HIGHEST_LEVEL, 1 + steps)
    if claim is not None:
        levels = np.unique(np.append(levels, claim))
    # Skip the levels that the monotone bound rejects, then test one after the other.
    rejected = bisect.bisect_right(levels, alpha, key=lambda level: easy(float(level)))
    while rejected < len(levels) and p_value(float(levels[rejected]), alpha) <= alpha:
        rejected += 1
    return float(levels[rejected - 1]) if rejected else 0.0


def smallest_alpha(refuted: Callable[[Floats], Booleans]) -> float:
    """Return the smallest alpha at which the claim is refuted, which is a p-value.

    A claim that is refuted at one alpha has to be refuted at every larger alpha. Then
    P(p <= alpha) = P(refuted at alpha) <= alpha. The result is the upper end of a
    bisection in ln alpha.

    Args:
        refuted: Tests the claim at an array of alphas, and returns one truth value for
            each.

    Returns:
        The alpha, at least ``SMALLEST_ALPHA``, or 1 if the claim is not refuted.
    """
    if bool(refuted(np.array([SMALLEST_ALPHA]))[0]):
        return SMALLEST_ALPHA
    start = math.log(SMALLEST_ALPHA)
    return math.exp(_last_true(lambda logs: ~refuted(np.exp(logs)), start, 0.0)[1])


def _last_true(
    holds: Callable[[Floats], Booleans], low: float, high: float, parts: int = 32
) -> tuple[float, float]:
    """Return the ends of a short interval in which a property ends.

    The property holds at ``low`` and, once it fails, fails up to ``high``. ``holds``
    gets ``parts`` - 1 points at once.
    """
    # Forty halvings leave 1e-12 of the interval; each round makes log2(parts) of them.
    for _ in range(math.ceil(40 / math.log2(parts))):
        points = np.linspace(low, high, parts + 1)
        last = int(np.searchsorted(~holds(points[1:-1]), True))
        low, high = float(points[last]), float(points[last + 1])
    return low, high
