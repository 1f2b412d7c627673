"""Privacy-safe rounding: the doubles that a mechanism uses never spend more than the epsilon it was given.

Formulas such as e^ε/(1+e^ε), 1/ε and ε − ε₁ are irrational or have no double that equals them. Rounded to nearest, half
of them are a little less private than claimed, and an exact audit then finds a violation of 1e-16. Here each is rounded
towards more privacy, decided in exact or outward-rounded arithmetic. A probability is m 2^-53 for an integer m, so that
``uniform < p`` is true with probability exactly p. Every ``epsilon`` is in nats and stands for the
exact rational that the double is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from flint import arb

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import PRECISION_BITS, ball, precision
from mechanisms.backend import Values

GRID = 2**53


def keep_probability(epsilon: float) -> float:
    """Return the largest multiple p of 2^-53 below 1 with p/(1−p) <= e^ε: Warner's probability of keeping a bit.

    It is m 2^-53 for the largest m < 2^53 with m/(2^53 − m) <= e^ε (``places``).

    p lies in [1/2, 1), where every multiple of 2^-53 is a double. ``numpy.random.Generator.random`` is uniform on the
    multiples of 2^-53 in [0, 1), so ``rng.random() < p`` is true with probability exactly p, and 1 − p is exact too.

    Args:
        epsilon: Privacy loss of one bit in nats, finite and >= 0.

    Raises:
        MechanismError: If epsilon is negative or not finite.
    """
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise MechanismError(
            f"keep_probability: expected a finite epsilon >= 0, got {epsilon!r}"
        )
    return places(epsilon) / GRID if epsilon else 0.5


def places(epsilon: float, *, odds: Fraction = Fraction(1), total: int = GRID) -> int:
    """Return the largest integer m < total with m/(total − m) <= odds·e^ε.

    Of ``total`` places on the grid, m go to the likelier side and total − m to the other. The condition reads
    m <= total/(1 + e^-ε/odds), which is irrational for rational ε > 0 (e^ε is transcendental), so its floor can be found.

    Args:
        epsilon: Privacy loss in nats, finite and > 0.
        odds: How many times longer the likelier side is than the other.
        total: Places in all, >= 2.
    """
    with precision():
        if ball(odds) * arb(float(epsilon)).exp() > total:
            return total - 1
    return floor(lambda: total / (1 + (-arb(float(epsilon))).exp() / ball(odds)))


def floor(value: Callable[[], arb]) -> int:
    """Return the floor of an irrational number, computed with ever more precision until it is certain.

    Raises:
        MechanismError: If it is not certain with 64 times the usual precision: the number is then an integer, most likely.
    """
    for doublings in range(7):
        with precision(PRECISION_BITS << doublings):
            whole = value().floor().unique_fmpz()
        if whole is not None:
            return int(whole)
    raise MechanismError(
        f"floor: {value()} straddles an integer; give an irrational number"
    )


def multiple(value: arb, unit: Any) -> int:
    """Return a number divided by ``unit``, to the nearest integer.

    The middle of the number's ball is rounded.
    """
    return math.floor(float((value / arb(unit)).mid()) + 0.5)


def on_grid(xp: Any, probabilities: Values) -> Values:
    """Return probabilities rounded to multiples of 2^-53, between ends that are private."""
    return xp.round(probabilities * GRID) / GRID


def laplace_scale(sensitivity: float | Fraction, epsilon: float) -> float:
    """Return the smallest double b with sensitivity/b <= ε: the Laplace scale that spends at most epsilon.

    The rational sensitivity/ε is rounded to the nearest double, and up to the next one where that fell short.

    Args:
        sensitivity: Largest change of the query between neighbours, > 0; read as the exact rational that it is.
        epsilon: Privacy loss in nats, finite and > 0.

    Raises:
        MechanismError: If either is not positive and finite, or the scale is too large for a double.
    """
    if not (
        math.isfinite(epsilon)
        and epsilon > 0
        and math.isfinite(sensitivity)
        and sensitivity > 0
    ):
        raise MechanismError(
            f"laplace_scale: expected sensitivity and epsilon, finite and > 0, got {sensitivity!r} and {epsilon!r}"
        )
    exact = Fraction(sensitivity) / Fraction(epsilon)
    try:
        scale = float(exact)
    except OverflowError:
        raise MechanismError(
            f"laplace_scale: {sensitivity!r}/{epsilon!r} overflows; use a larger epsilon"
        ) from None
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
        raise MechanismError(
            f"portion: expected a share strictly between 0 and 1, got {share!r}"
        )
    return _round_down(Fraction(share) * Fraction(epsilon))


def _round_down(exact: Fraction) -> float:
    """The largest double <= exact."""
    nearest = float(exact)
    return nearest if Fraction(nearest) <= exact else math.nextafter(nearest, -math.inf)
