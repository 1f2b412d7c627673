"""Dominating pairs: two laws as easy to distinguish as a claim allows.

A claim is a list of statements (ε, δ), each meant in both orders of the neighbours. A
pair of laws (P, Q) satisfies all of them exactly if for every event A

    Q(A) <= T(P(A)),   T(a) = min over the statements of  δ + e^ε a  and  1 - (1 - δ -
    a)/e^ε,

where the second line is the first one for the complement and the other order. T is
concave and piecewise linear, and equal to its own mirror image in the line a + b = 1.
Its segments, from the steepest to the flattest, are a pair of laws on finitely many
atoms: an atom has the width of its segment under p₀ and the height under q₀ (what T(0)
leaves at a = 0 is an atom of q₀ alone). By construction the event "the k steepest
atoms" attains T, so that (p₀, q₀) is allowed by the claim and dominates all others: by
Blackwell's theorem (for privacy: Dong, Roth & Su 2022, arXiv:1905.02383v3, Theorem
2.10; Zhu, Dong & Wang 2022, arXiv:2106.08567v3) every pair that satisfies the claim is
(p₀, q₀) sent through one channel. For one statement (ε, 0) the atoms are randomised
response, for (ε, δ) the four outputs of Kairouz, Oh & Viswanath (2015,
arXiv:1311.0776v4, Theorem 3.3). A curve that is given by some of its points is replaced
by the promises of these points alone, which are weaker: a refutation of them refutes
the curve.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from auditdp.errors import ClaimError
from auditdp.numerics.arrays import Floats

LARGEST_EPSILON = 700.0
"""Statements at a larger epsilon are left out, which promises less: e^ε overflows."""


@dataclass(frozen=True, eq=False)
class DominatingPair:
    """Two laws on the same finitely many atoms, each the mirror image of the other.

    Args:
        p: Probabilities under the first law, shape (atoms,).
        q: Probabilities under the second, shape (atoms,); q/p decreases along the
            atoms.
    """

    p: Floats
    q: Floats

    @classmethod
    def of(cls, statements: Floats) -> DominatingPair:
        """Return the pair that dominates all for which statements hold in both orders.

        Args:
            statements: Their epsilon and delta, shape (statements, 2), with epsilon >=
                0 and 0 <= delta <= 1.

        Raises:
            ClaimError: If an epsilon or a delta is out of range.
        """
        points = _corners(statements)
        # The steepest line comes first.
        slope, height = np.exp(points[:, 0])[::-1], points[:, 1][::-1]
        crossing = np.diff(height) / -np.diff(slope)
        # Each line meets a + b = 1 here; from there on T is the mirror image.
        axis = (1 - height) / (1 + slope)
        start, end = np.append(0.0, crossing), np.append(crossing, np.inf)
        p = np.maximum(np.minimum(end, axis) - start, 0.0)
        # Half of the atoms, with the one of q₀ alone; the others are their mirror
        # images.
        half_p, half_q = np.append(0.0, p), np.append(height[0], slope * p)
        occupied = (half_p > 0) | (half_q > 0)
        half_p, half_q = half_p[occupied], half_q[occupied]
        return cls(np.append(half_p, half_q[::-1]), np.append(half_q, half_p[::-1]))

    def hockey_stick(self, epsilon: float) -> float:
        """Return the δ of the pair at an epsilon, the sum of (q₀ − e^ε p₀)₊."""
        return float(np.maximum(self.q - np.exp(epsilon) * self.p, 0.0).sum())

    @cached_property
    def log_odds(self) -> Floats:
        """The log-odds ln q₀/p₀ of every atom, infinite if a law excludes it."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.q) - np.log(self.p))


def lines(statements: Floats) -> Floats:
    """Return T as linear bounds (u, v, w), which stand for u b <= v a + w.

    They are sorted by slope, shape (2 statements, 3).
    """
    # SciPy is slow to load.
    from scipy.special import expit

    epsilon, delta = statements[:, 0], statements[:, 1]
    share, rest = expit(-epsilon), expit(epsilon)
    above = np.stack([share, rest, delta * share], axis=1)
    below = np.stack([rest, share, rest + (delta - 1) * share], axis=1)
    return np.concatenate([below[np.argsort(-epsilon)], above[np.argsort(epsilon)]])


def _corners(statements: Floats) -> Floats:
    """Return the statements that no two others imply, by increasing epsilon.

    They are a convex chain in (e^ε, δ).
    """
    points = np.asarray(statements, dtype=np.float64)
    valid = points.ndim == 2 and len(points) > 0 and np.isfinite(points).all()
    if valid:
        epsilons, deltas = points[:, 0], points[:, 1]
        valid = (epsilons >= 0).all() and ((deltas >= 0) & (deltas <= 1)).all()
    if not valid:
        raise ClaimError(
            "a curve: expected statements (epsilon, delta) with finite epsilon >= 0 and "
            f"0 <= delta <= 1, got {points.tolist()!r:.200}"
        )
    points = points[points[:, 0] <= LARGEST_EPSILON]
    points = np.append(points, [[LARGEST_EPSILON, 1.0]], axis=0)
    points = points[np.lexsort((points[:, 1], points[:, 0]))]
    chain: list[tuple[float, float, float]] = []
    for epsilon, delta in points.tolist():
        slope = float(np.exp(epsilon))
        # A smaller epsilon promises a delta that is no larger.
        if chain and delta >= chain[-1][2]:
            continue
        # Equal but for rounding.
        if chain and slope == chain[-1][1]:
            chain.pop()
        while len(chain) > 1:
            (_, s0, d0), (_, s1, d1) = chain[-2:]
            if (d1 - d0) * (slope - s0) < (delta - d0) * (s1 - s0):
                break
            chain.pop()
        chain.append((epsilon, slope, delta))
    return np.array([(epsilon, delta) for epsilon, _, delta in chain])
