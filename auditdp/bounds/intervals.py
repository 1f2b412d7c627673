"""Bounds from confidence limits on the two probabilities of an event: what readers of the literature know.

Both are conservative: they pay for two simultaneous limits where the claim is about one comparison. For two arms of 150
and a tight claim, Clopper-Pearson refutes some ten times more rarely than its alpha allows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from auditdp.bounds.curves import Curve
from auditdp.numerics.arrays import Floats
from auditdp.numerics.binomial import lower_limit, upper_limit

CLOPPER_PEARSON = (
    "Clopper & Pearson (1934), 'The use of confidence or fiducial limits illustrated in the case of the binomial', with "
    "alpha/2 for each arm"
)
DKW = (
    "Massart (1990), 'The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality', Theorem 1, one-sided, with "
    "alpha/2 for each arm"
)


class Counts(NamedTuple):
    """How often an event occurred: ``first`` of ``n_first`` outputs of one input, ``second`` of ``n_second``."""

    first: int
    n_first: int
    second: int
    n_second: int

    def __str__(self) -> str:
        return f"the event in {self.first} of {self.n_first} first and {self.second} of {self.n_second} second outputs"


def clopper_pearson(counts: Counts, curve: Curve, alpha: float) -> float:
    """Return the level refuted by the lower limit on P(A) and the upper limit on Q(A), each at alpha/2.

    Null: the pair meets the curve at level t. Let p, q be the true probabilities. With probability at least
    1 - alpha both p_lo <= p and q_hi >= q; then p_lo <= p <= F_t(q) <= F_t(q_hi), so level t allows (p_lo, q_hi), and
    the bound, which is the infimum of the levels that do, is at most t. Any delta; it also covers the complement.

    The event must have been chosen without looking at these outputs.
    """
    low = lower_limit(counts.first, counts.n_first, alpha / 2)
    high = upper_limit(counts.second, counts.n_second, alpha / 2)
    return float(curve.level(float(low), float(high)))


def dkw(first: Floats, second: Floats, curve: Curve, alpha: float) -> float:
    """Return the largest level that is refuted by any threshold on a score, for all thresholds at once.

    Null: the pair meets the curve at level t. By Massart's inequality, with probability at least 1 - alpha/2 each,
    P(s >= x) >= (share of first at or above x) - sqrt(ln(2/alpha)/(2n)) for every x, and Q(s >= x) is bounded from above
    in the same way. From there on the proof is that of ``clopper_pearson``, for every x at once, so the threshold may
    be chosen on the same data. Blind to events that are rarer than the margin.
    Scores are those of independent outputs, larger for what is more like the first input.
    """
    thresholds = np.unique(first)
    p = 1 - np.searchsorted(np.sort(first), thresholds) / len(first)
    q = 1 - np.searchsorted(np.sort(second), thresholds) / len(second)
    margin = np.sqrt(np.log(2 / alpha) / 2 / np.array([len(first), len(second)]))
    return float(np.max(curve.level(np.maximum(0.0, p - margin[0]), np.minimum(1.0, q + margin[1]))))
