"""Ball arithmetic: numbers with rigorous error bounds (python-flint's arb).

A probability is exact (a ``fractions.Fraction`` or an int), a rigorous enclosure (a
``flint.arb`` ball), or a float.

A float p is taken for some number between p - r and p + r, where r = 1e-9 p + 1e-12.
The first term is the error of logarithms of large numbers (the scores of a softmax,
``gammaln``); the second is the error of large numbers that cancel (differences of a
distribution function), are summed up (convolutions) or underflow. A float of 0.0 is
therefore not the number 0. So floats prove only violations whose probability is larger
than r. They certify neither a tight claim nor one about outputs that are less probable
than r. For numbers of fewer bits than a double (``numpy.float32``), 1,000 machine
epsilons replace both 1e-9 and 1e-12.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq

PRECISION_BITS = 256
FLOAT_RELATIVE_ERROR = 1e-9
FLOAT_ABSOLUTE_ERROR = 1e-12


@contextmanager
def precision(bits: int = PRECISION_BITS) -> Iterator[None]:
    """Evaluate ball arithmetic inside the block with the given working precision."""
    before = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = before


def ball(value: Any, unit: float = 1.0) -> arb:
    """Return a ball that contains ``value``; the error of a float is assumed.

    A value that is a ball already is returned as it is.

    Args:
        value: The number.
        unit: Factor of the absolute error of a float: 1 for a probability.
    """
    if isinstance(value, arb):
        return value
    if isinstance(value, Fraction):
        return arb(fmpq(value.numerator, value.denominator))
    if isinstance(value, int | np.integer):
        return arb(int(value))
    double = float(value)
    # For a double, this is 2.2e-13, which is below both errors.
    coarse = 0.0
    if isinstance(value, np.floating):
        coarse = 1000 * float(np.finfo(type(value)).eps)
    relative = max(FLOAT_RELATIVE_ERROR, coarse)
    absolute = max(FLOAT_ABSOLUTE_ERROR, coarse)
    return arb(double, abs(double) * relative + unit * absolute)


def above(value: arb) -> float:
    """Return a double that no number of the ball exceeds."""
    with precision():
        upper = value.upper()
        nearest = float(upper)
        if arb(nearest) >= upper:
            return nearest
        return math.nextafter(nearest, math.inf)


def below(value: arb) -> float:
    """Return a double that exceeds no number of the ball."""
    with precision():
        # The sum turns -0.0 into 0.0.
        return -above(-value) + 0.0


def as_written(value: float) -> Fraction:
    """Return the shortest decimal that is read as this double.

    >>> as_written(0.1) * as_written(1e-6) == as_written(1e-7)
    True
    >>> Fraction(0.1) * Fraction(1e-6) == Fraction(1e-7)
    False
    """
    return Fraction(repr(float(value)))


def double_above(compute: Callable[[Callable[[float], Fraction]], Fraction]) -> float:
    """Return the result of a computation with doubles as a double, rounded up.

    A user who writes 0.1 means that decimal, not the double nearest to it. So the
    result is first computed from the shortest decimals of all doubles. If it has at
    most 15 digits, the double nearest to it is returned, although it may be slightly
    smaller. Otherwise the result is computed from the exact values of the doubles.

    Args:
        compute: The computation, given a function from doubles to rationals.
    """
    written = compute(as_written)
    nearest = float(written)
    if Fraction(f"{nearest:.15g}") == written:
        return nearest
    exact = compute(Fraction)
    nearest = float(exact)
    if Fraction(nearest) >= exact:
        return nearest
    return math.nextafter(nearest, math.inf)


def middle(value: Any) -> float:
    """Return a probability as a float >= 0; for a ball, this is its midpoint."""
    if isinstance(value, arb):
        value = value.mid()
    # Rounding may leave a float below 0.
    return max(0.0, float(value))


@dataclass(frozen=True)
class LeftOut:
    """The probability that a list of probabilities leaves out."""

    most: arb
    """Largest possible value of this probability; exactly 0 for Fractions."""
    floats: bool = False
    """True if a listed probability is a float: a missing one may have underflowed."""
    lacks: bool = False
    """True if outputs are missing: floats sum to less than 1, by more than rounding."""


def left_out(probabilities: Sequence[Any]) -> LeftOut | None:
    """Return the probability that a list leaves out, or None if the list is no law.

    Exact probabilities have to sum to 1. Otherwise the sum of balls, each float taken
    for one, has to contain 1. No probability may certainly be negative.
    """
    # A ball of 256 bits would hide 1e-80.
    if all(isinstance(p, Fraction | int | np.integer) for p in probabilities):
        exact = [Fraction(p) for p in probabilities]
        if sum(exact) != 1 or min(exact) < 0:
            return None
        return LeftOut(arb(0))
    with precision():
        balls = [ball(p) for p in probabilities]
        total = sum(balls, arb(0))
        if (
            not total.is_finite()
            or not total.contains(1)
            or any(bool(p < 0) for p in balls)
        ):
            return None
        floats = any(map(is_float, probabilities))
        rounding = arb(len(balls) * math.ulp(1.0))
        return LeftOut(
            (1 - total.lower()).upper().max(arb(0)),
            floats,
            floats and bool(total.mid() < 1 - rounding),
        )


def is_float(value: Any) -> bool:
    """Return True if a probability is a float, whose error is only assumed."""
    return not isinstance(value, arb | Fraction | int | np.integer)
