"""Ball arithmetic: numbers with rigorous error bounds (python-flint's arb).

Probabilities are exact (``fractions.Fraction``, int) or rigorous enclosures (``flint.arb`` balls), or floats.

A float p is taken for some number between p - r and p + r, where r = 1e-9 p + 1e-12. The first term is what logarithms of
large numbers lose (the scores of a softmax, ``gammaln``); the second is what is lost where large numbers cancel (differences
of a distribution function), are summed up (convolutions) or underflow. A float of 0.0 is therefore not the number 0. So
floats can show a violation that weighs more than that, and certify a claim that is neither tight nor about outputs that
weigh less. Numbers of fewer bits than a double (``numpy.float32``) are off by 1,000 units of their last place at least.
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
FLOAT_UNITS = 1_000
"""Units in the last place that any float is off by."""


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
    """Return a ball that contains ``value``: tight for int and Fraction, and what a float is off by for a float.

    An arb ball is returned as it is. An absolute error is relative to ``unit``: 1 for a probability.
    """
    if isinstance(value, arb):
        return value
    if isinstance(value, Fraction):
        return arb(fmpq(value.numerator, value.denominator))
    if isinstance(value, int | np.integer):
        return arb(int(value))
    double = float(value)
    coarse = FLOAT_UNITS * float(
        np.finfo(type(value) if isinstance(value, np.floating) else float).eps
    )
    relative, absolute = (
        max(FLOAT_RELATIVE_ERROR, coarse),
        max(FLOAT_ABSOLUTE_ERROR, coarse),
    )
    return arb(double, abs(double) * relative + unit * absolute)


def above(value: arb) -> float:
    """Return a double that is at least everything in the ball."""
    with precision():
        upper = value.upper()
        nearest = float(upper)
        return (
            nearest
            if bool(arb(nearest) >= upper)
            else math.nextafter(nearest, math.inf)
        )


def below(value: arb) -> float:
    """Return a double that is at most everything in the ball."""
    with precision():
        return -above(-value) + 0.0  # not -0.0


def as_written(value: float) -> Fraction:
    """Return the shortest decimal that is read as this double, which is what somebody wrote.

    >>> as_written(0.1) * as_written(1e-6) == as_written(1e-7), Fraction(0.1) * Fraction(1e-6) == Fraction(1e-7)
    (True, False)
    """
    return Fraction(repr(float(value)))


def double_above(compute: Callable[[Callable[[float], Fraction]], Fraction]) -> float:
    """Return a double that is at least a number that is computed from doubles: as decimals, else as they are.

    Doubles of few digits stand for decimals. Where the same number computed from these is a decimal of at most 15
    digits, one double alone stands for it; rounding up the rational would refuse that double for the place where it
    was cut off.

    ``compute`` is that number, from a function that reads each double as a rational.
    """
    written = compute(as_written)
    nearest = float(written)
    if Fraction(f"{nearest:.15g}") == written:
        return nearest
    exact = compute(Fraction)
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def middle(value: Any) -> float:
    """Return a probability as a float: the middle of a ball; 0 for a float that rounding left below it."""
    return max(0.0, float(value.mid() if isinstance(value, arb) else value))


@dataclass(frozen=True)
class LeftOut:
    """The probability that a list of probabilities leaves out."""

    most: arb
    """The largest probability that may be left out, 1 less the smallest sum; an exact number, 0 for Fractions."""
    floats: bool = False
    """Whether a probability is a float. Then outputs may be missing from the list: code drops what underflows."""
    lacks: bool = False
    """Whether some certainly are: the floats sum to less than 1 by more than their rounding."""


def left_out(probabilities: Sequence[Any]) -> LeftOut | None:
    """Return what probabilities leave out, or None if they are no probabilities of one law.

    Fractions have to sum to 1 exactly, and balls, which is what floats are, to contain 1; none may certainly be negative.
    """
    if all(
        isinstance(p, Fraction | int | np.integer) for p in probabilities
    ):  # a ball of 256 bits would hide 1e-80
        exact = [Fraction(p) for p in probabilities]
        return LeftOut(arb(0)) if sum(exact) == 1 and min(exact) >= 0 else None
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
    """Return whether a probability is a plain float, whose error is assumed and not known."""
    return not isinstance(value, arb | Fraction | int | np.integer)
