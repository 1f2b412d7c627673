"""The likelihood of a dendrogram, how much one edge can change it, and how much a move changes it.

log L(T) = Σ_r [e_r log(e_r/N_r) + (N_r − e_r) log(1 − e_r/N_r)], where internal node r has N_r = L_r R_r pairs of leaves
across it, of which e_r are edges.

**One edge.** An edge {u, v} is counted at one node only, the lowest common ancestor of u and v, and N_r does not depend on
edges. So log L changes by f_N(e+1) − f_N(e) for one N and one e < N, with f_N(e) = e log e + (N−e) log(N−e) − N log N.
f_N is convex and symmetric in e ↔ N − e, so its increments grow with e, and the largest in size are the first and the last,

    s(N) = −(f_N(1) − f_N(0)) = N log N − (N−1) log(N−1) = log N − (N−1) log((N−1)/N).

s is an increment of the convex x log x, so it grows with N, and N = L R <= ⌊m²/4⌋ for m leaves. Therefore the sensitivity
of log L is Δ = s(⌊m²/4⌋) exactly: it is attained by the first edge across a root with ⌊m/2⌋ leaves on one side.

**What is printed.** This is Equation 19 of HeteroRR, and since −log((N−1)/N) = log(1 + 1/(N−1)) it is also
log N + (N−1) log(1 + 1/(N−1)). Equation 15 lacks the factor N−1: log N + log(1 + 1/(N−1)) is s(N) for N = 2 and less than
s(N) from N = 3 on (that is from 4 nodes on), by nearly 1 for large N.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import arb

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import ball, precision

EQUATIONS = ("19", "15")


@lru_cache(maxsize=2**16)
def term(edges: int, pairs: int) -> float:
    """Return f_N(e), the log likelihood of one internal node, in nats; 0 where all pairs are edges or none is."""
    if edges in (0, pairs):
        return 0.0
    return edges * math.log(edges / pairs) + (pairs - edges) * math.log1p(
        -edges / pairs
    )


@lru_cache(maxsize=2**12)
def exact_term(edges: int, pairs: int) -> arb:
    """Return a ball that contains f_N(e)."""
    if edges in (0, pairs):
        return arb(0)
    with precision():
        share = ball(Fraction(edges, pairs))
        return edges * share.log() + (pairs - edges) * (1 - share).log()


def gain(before: Sequence[tuple[int, int]], after: Sequence[tuple[int, int]]) -> float:
    """Return by how much a move changes log L, from the (edges, pairs) of a node and its parent before and after.

    Whoever computes an acceptance probability calls this, so that stated laws are those of the very same doubles.
    """
    (e1, n1), (e2, n2) = after
    (d1, m1), (d2, m2) = before
    return (term(e1, n1) + term(e2, n2)) - (term(d1, m1) + term(d2, m2))


def most_pairs(leaves: int) -> int:
    """Return ⌊m²/4⌋, the most pairs that m leaves can have across one internal node."""
    return leaves**2 // 4


def sensitivity(leaves: int, equation: str = "19") -> float:
    """Return the printed sensitivity of log L in nats, rounded up.

    For 2 leaves it is infinite or 0.

    Args:
        leaves: Nodes that may have (private) edges, m.
        equation: '19', which is the sensitivity, or '15', which is smaller from 4 leaves on.

    Raises:
        MechanismError: If the equation is not one of them.
    """
    if equation not in EQUATIONS:
        raise MechanismError(
            f"sensitivity: expected equation '19' or '15', got {equation!r}"
        )
    pairs = most_pairs(leaves)
    if pairs < 2:
        return math.inf if equation == "15" and pairs else 0.0
    with precision():
        step = (1 + arb(1) / (pairs - 1)).log()
        return upwards(
            arb(pairs).log() + (step if equation == "15" else (pairs - 1) * step)
        )


def acceptance_rate(
    epsilon: float, leaves: int, *, equation: str = "19", factor: int = 2
) -> float:
    """Return ε/(factor·Δ), the factor of a change of log L, rounded down.

    It is 0 if log L cannot change.

    With at most two leaves every dendrogram has likelihood 1.
    """
    delta = sensitivity(leaves, equation)
    if most_pairs(leaves) < 2:
        return 0.0
    exact = Fraction(epsilon) / (factor * Fraction(delta))
    nearest = float(exact)
    return nearest if Fraction(nearest) <= exact else math.nextafter(nearest, -math.inf)


def upwards(value: Any) -> float:
    """Return a double that is at least the number in a ball."""
    nearest = float(value.mid())
    return nearest if bool(arb(nearest) >= value) else math.nextafter(nearest, math.inf)
