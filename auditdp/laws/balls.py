"""Ball arithmetic: numbers with rigorous error bounds (python-flint's arb).

Probabilities are exact (``fractions.Fraction``) or rigorous enclosures (``flint.arb`` balls). Plain floats are taken to
be right up to a relative error of 1e-12, so they can show a violation but cannot certify a claim that is tight.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq

PRECISION_BITS = 256
FLOAT_RELATIVE_ERROR = 1e-12
LARGEST_LACK = 1e-9
"""Probability that a law of floats may lack; exact evidence counts it as delta."""


@contextmanager
def precision(bits: int = PRECISION_BITS) -> Iterator[None]:
    """Evaluate ball arithmetic inside the block with the given working precision."""
    before = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = before


def ball(value: Any) -> arb:
    """Return a ball that contains ``value``: tight for int and Fraction, 1e-12 wide (relative) for a float."""
    if isinstance(value, arb):
        return value
    if isinstance(value, Fraction):
        return arb(fmpq(value.numerator, value.denominator))
    if isinstance(value, int | np.integer):
        return arb(int(value))
    return arb(float(value), abs(float(value)) * FLOAT_RELATIVE_ERROR)


def above(value: arb) -> float:
    """Return a double that is at least everything in the ball."""
    with precision():
        upper = value.upper()
        nearest = float(upper)
        return nearest if bool(arb(nearest) >= upper) else math.nextafter(nearest, math.inf)


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


def double_above(exact: Fraction, written: Fraction) -> float:
    """Return a double that is at least a number that was computed from doubles: as decimals, else as they are.

    Doubles of few digits stand for decimals. Where the same number computed from these is a decimal of at most 15 digits, one
    double alone stands for it; rounding up the rational would refuse that double for the place where it was cut off.

    Args:
        exact: The number, from the rationals that the doubles are.
        written: The number, from ``as_written`` of each.
    """
    nearest = float(written)
    if Fraction(f"{nearest:.15g}") == written:
        return nearest
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def middle(value: Any) -> float:
    """Return a probability as a float: the middle of a ball."""
    return float(value.mid()) if isinstance(value, arb) else float(value)


@dataclass(frozen=True)
class LeftOut:
    """The probability that a list of probabilities leaves out.

    Attributes:
        certain: Whether some certainly is: whatever numbers are in the balls, they sum to less than 1.
        most: The largest probability that may be left out, 1 less the smallest sum; an exact number, 0 for Fractions.
    """

    certain: bool
    most: arb


def left_out(probabilities: Sequence[Any]) -> LeftOut | None:
    """Return what probabilities leave out, or None if they are no probabilities of one law.

    Fractions have to sum to 1 exactly, and balls to contain 1. Floats, which are balls of a relative 1e-12, may lack up to
    1e-9, which is then certainly left out, and may not certainly sum to more than 1.
    """
    with precision():
        total = sum((ball(p) for p in probabilities), arb(0))
        rounded = any(is_float(p) for p in probabilities)
        if not total.is_finite():
            return None
        if not total.contains(1) and not (rounded and 1 - arb(LARGEST_LACK) <= total and total < 1):
            return None
        return LeftOut(bool(total < 1), (1 - total.lower()).upper().max(arb(0)))


def is_float(value: Any) -> bool:
    """Return whether a probability is a plain float, whose error is assumed and not known."""
    return not isinstance(value, arb | Fraction | int | np.integer)
