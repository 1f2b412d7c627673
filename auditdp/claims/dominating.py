"""Dominating pairs: two laws as easy to distinguish as a claim allows.

A claim is a list of statements (ε, δ), each meant in both orders of the neighbours. A
pair of laws (P, Q) satisfies all of them exactly if for every event A

    Q(A) <= T(P(A)),
    T(a) = min over the statements of  δ + e^ε a  and  1 - (1 - δ - a)/e^ε.

The second term is the first one for the complement of A and the other order. T is
concave and piecewise linear, and equal to its own mirror image in the line a + b = 1.
Its segments, from the steepest to the flattest, are the atoms of a pair of laws: the
probability of an atom is the width of its segment under p₀, and the height under q₀ (a
jump T(0) > 0 at a = 0 is an atom of q₀ alone). By construction the event "the k
steepest atoms" attains T. So the claim allows (p₀, q₀), and this pair dominates all
others: by Blackwell's theorem (for privacy: Dong, Roth & Su 2022, arXiv:1905.02383v3,
Theorem 2.10; Zhu, Dong & Wang 2022, arXiv:2106.08567v3) every pair that satisfies the
claim is (p₀, q₀) sent through one channel.

For one statement (ε, 0) the atoms are randomised response, for (ε, δ) the four outputs
of Kairouz, Oh & Viswanath (2015, arXiv:1311.0776v4, Theorem 3.3). Of a curve, only the
statements at some of its points are used. They are weaker than the curve, so a
refutation of them refutes the curve.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from auditdp.errors import ClaimError
from auditdp.numerics.arrays import Floats

LARGEST_EPSILON = 700.0
"""Largest epsilon of a statement that is used, because e^ε overflows beyond it.

Statements with a larger epsilon are left out, so the tested claim promises less.
"""


@dataclass(frozen=True, eq=False)
class DominatingPair:
    """Two laws (p₀, q₀) on the same atoms; q₀ is p₀ with the atoms in reverse order.

    Args:
        p: Probabilities of the atoms under p₀, shape (atoms,).
        q: Probabilities of the atoms under q₀, shape (atoms,); q/p decreases along the
            atoms.
    """

    p: Floats
    q: Floats

    @classmethod
    def of(cls, statements: Floats) -> DominatingPair:
        """Return the pair that dominates all pairs of laws that satisfy the statements.

        Args:
            statements: The epsilon and delta of every statement, shape (statements, 2),
                with epsilon >= 0 and 0 <= delta <= 1. Each holds in both orders of the
                two laws.

        Raises:
            ClaimError: If there are no statements, or an epsilon or a delta is out of
                range.
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
        """The log-odds ln q₀/p₀ of every atom, infinite if p₀ or q₀ excludes it."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.q) - np.log(self.p))


def lines(statements: Floats) -> Floats:
    """Return the lines whose minimum is T, as (u, v, w) with u b <= v a + w.

    Here a = P(A) and b = Q(A), as in the module's docstring.

    Args:
        statements: The epsilon and delta of every statement, shape (statements, 2).

    Returns:
        Two lines for each statement, by increasing slope v/u, shape
        (2 statements, 3).
    """
    # SciPy is slow to load.
    from scipy.special import expit

    epsilon, delta = statements[:, 0], statements[:, 1]
    share, rest = expit(-epsilon), expit(epsilon)
    above = np.stack([share, rest, delta * share], axis=1)
    below = np.stack([rest, share, rest + (delta - 1) * share], axis=1)
    return np.concatenate([below[np.argsort(-epsilon)], above[np.argsort(epsilon)]])


def _corners(statements: Floats) -> Floats:
    """Return the statements that the others do not imply, by increasing epsilon.

    They are the corners of a convex chain in (e^ε, δ).
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
