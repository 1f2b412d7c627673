"""Privacy-safe rounding: the doubles that a mechanism uses never spend more than the epsilon it was given.

Formulas such as e^ε/(1+e^ε), 1/ε and ε − ε₁ are irrational or have no double that equals them. Rounded to nearest, half
of them are a little less private than claimed, and an exact audit then finds a violation of 1e-16. Here each is rounded
towards more privacy, decided in exact or outward-rounded arithmetic. Every ``epsilon`` is in nats and stands for the
exact rational that the double is.
"""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb

from auditdp.errors import MechanismError
from auditdp.laws import PRECISION_BITS, precision

GRID = 2**53


def keep_probability(epsilon: float) -> float:
    """Return the largest multiple p of 2^-53 below 1 with p/(1−p) <= e^ε: Warner's probability of keeping a bit.

    With p = m 2^-53 the condition reads m <= x = 2^53/(1+e^-ε), so m is the floor of x. The floor is taken of a ball
    that contains x; where the ball straddles an integer the precision is doubled, which ends because x is irrational
    for rational ε > 0 (e^ε is transcendental). For ε >= 37, (2^53−1)/1 <= e^ε, and p is capped at 1 − 2^-53.

    p lies in [1/2, 1), where every multiple of 2^-53 is a double. ``numpy.random.Generator.random`` is uniform on the
    multiples of 2^-53 in [0, 1), so ``rng.random() < p`` is true with probability exactly p, and 1 − p is exact too.

    Args:
        epsilon: Privacy loss of one bit in nats, finite and >= 0.

    Raises:
        MechanismError: If epsilon is negative or not finite.
    """
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise MechanismError(f"keep_probability: expected a finite epsilon >= 0, got {epsilon!r}")
    if epsilon == 0:
        return 0.5
    if epsilon >= 37:
        return (GRID - 1) / GRID
    bits = PRECISION_BITS
    while True:
        with precision(bits):
            steps = (GRID / (1 + (-arb(float(epsilon))).exp())).floor().unique_fmpz()
        if steps is not None:
            return int(steps) / GRID
        bits *= 2


def laplace_scale(sensitivity: float | Fraction, epsilon: float) -> float:
    """Return the smallest double b with sensitivity/b <= ε: the Laplace scale that spends at most epsilon.

    The rational sensitivity/ε is rounded to the nearest double, and up to the next one where that fell short.

    Args:
        sensitivity: Largest change of the query between neighbours, > 0; read as the exact rational that it is.
        epsilon: Privacy loss in nats, finite and > 0.

    Raises:
        MechanismError: If either is not positive and finite, or the scale is too large for a double.
    """
    if not (math.isfinite(epsilon) and epsilon > 0 and math.isfinite(sensitivity) and sensitivity > 0):
        raise MechanismError(
            f"laplace_scale: expected sensitivity and epsilon, finite and > 0, got {sensitivity!r} and {epsilon!r}"
        )
    exact = Fraction(sensitivity) / Fraction(epsilon)
    try:
        scale = float(exact)
    except OverflowError:
        raise MechanismError(f"laplace_scale: {sensitivity!r}/{epsilon!r} overflows; use a larger epsilon") from None
    return scale if Fraction(scale) >= exact else math.nextafter(scale, math.inf)


def remaining(epsilon: float, *spent: float) -> float:
    """Return the largest double e with e + sum(spent) <= epsilon in exact rational arithmetic.

    Split budgets made with it never exceed the whole, which ``epsilon - spent`` in floating point may.

    Args:
        epsilon: The whole budget in nats.
        spent: The parts that other steps use.

    Raises:
        MechanismError: If nothing remains.
    """
    left = Fraction(epsilon) - sum(map(Fraction, spent), Fraction(0))
    if left <= 0:
        raise MechanismError(
            f"remaining: nothing is left of epsilon={epsilon!r} after {', '.join(map(repr, spent))}; "
            "use a larger epsilon or spend less before"
        )
    return _round_down(left)


def portion(epsilon: float, share: float | Fraction) -> float:
    """Return the largest double that is at most share·epsilon.

    Args:
        epsilon: The whole budget in nats, finite and > 0.
        share: The part of it, strictly between 0 and 1; ``Fraction(1, 10)`` is a tenth exactly, 0.1 nearly.

    Raises:
        MechanismError: If share is not strictly between 0 and 1.
    """
    if not 0 < share < 1:
        raise MechanismError(f"portion: expected a share strictly between 0 and 1, got {share!r}")
    return _round_down(Fraction(share) * Fraction(epsilon))


def _round_down(exact: Fraction) -> float:
    """The largest double <= exact."""
    nearest = float(exact)
    return nearest if Fraction(nearest) <= exact else math.nextafter(nearest, -math.inf)
