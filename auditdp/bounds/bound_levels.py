"""From tests of single levels to a lower bound.

In each of the three functions the truth is a level t, and the claims are nested: what meets the claim at t meets it at
every level above. A bound is wrong only if it is at least t.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable

import numpy as np

from auditdp.numerics.arrays import Booleans, Floats

HIGHEST = 64.0
LOWEST = 1e-3
PARTS = 32
HALVINGS = 40
SMALLEST = 1e-300


def highest_rejected(
    rejected: Callable[[Floats], Booleans], parts: int = PARTS
) -> float:
    """Return the largest level that is rejected, where a test that rejects a level rejects all lower ones; 0 if none.

    If the result is >= t then t is rejected, which has probability at most alpha. The result is itself rejected.

    ``rejected`` says which of an array of levels are rejected at alpha; it is asked about ``parts`` - 1 of them at once.
    """
    if bool(rejected(np.array([HIGHEST]))[0]):
        return HIGHEST
    return _last_true(rejected, 0.0, HIGHEST, parts)[0]


def highest_chain(
    p_value: Callable[[float, float], float],
    easy: Callable[[float], float],
    *,
    alpha: float,
    claim: float | None,
    n: int,
) -> float:
    """Return the largest level of a fixed grid such that it and all below it are rejected; 0 if none is.

    Needs no monotonicity: if the result is >= t, then the smallest grid level >= t, which the data did not choose, is
    rejected. That level's claim is true, so this has probability at most alpha. The claim is one of the levels.

    Args:
        p_value: The p-value at a level, or an upper bound on it; its second argument is the alpha that it needs to be
            compared with, beyond which it need not be accurate.
        easy: An upper bound on the p-value that never decreases with the level: where it is small, so are the p-values of
            all lower levels, and none of them needs to be computed.
        alpha: The error probability.
        claim: The claimed level, or None.
        n: The number of observations, which the grid's ratio 1 + 1/(5 sqrt(n)) follows, as the spread of a bound does.
    """
    ratio = 1 + 0.2 / math.sqrt(n)
    levels = np.geomspace(
        LOWEST, HIGHEST, 1 + math.ceil(math.log(HIGHEST / LOWEST) / math.log(ratio))
    )
    levels = levels if claim is None else np.unique(np.append(levels, claim))
    rejected = bisect.bisect_right(levels, alpha, key=lambda level: easy(float(level)))
    while rejected < len(levels) and p_value(float(levels[rejected]), alpha) <= alpha:
        rejected += 1
    return float(levels[rejected - 1]) if rejected else 0.0


def smallest_alpha(refuted: Callable[[Floats], Booleans]) -> float:
    """Return the smallest alpha at which the claim is refuted: a p-value, where larger alphas refute whatever smaller do.

    P(p <= alpha) = P(refuted at alpha) <= alpha. The result is the upper end of a bisection in ln alpha.

    ``refuted`` says at which of an array of alphas the claim is refuted.
    """
    if bool(refuted(np.array([SMALLEST]))[0]):
        return SMALLEST
    return math.exp(
        _last_true(lambda logs: ~refuted(np.exp(logs)), math.log(SMALLEST), 0.0)[1]
    )


def _last_true(
    holds: Callable[[Floats], Booleans], low: float, high: float, parts: int = PARTS
) -> tuple[float, float]:
    """Return an interval in which a property that holds at ``low`` and then no more ends, to 1e-12 of the whole."""
    for _ in range(math.ceil(HALVINGS / math.log2(parts))):
        points = np.linspace(low, high, parts + 1)
        last = int(np.searchsorted(~holds(points[1:-1]), True))
        low, high = float(points[last]), float(points[last + 1])
    return low, high
