"""Ball arithmetic: numbers with rigorous error bounds (python-flint's arb).

Probabilities are exact (``fractions.Fraction``) or rigorous enclosures (``flint.arb`` balls). Plain floats are taken to
be right up to a relative error of 1e-12, so they can show a violation but cannot certify a claim that is tight.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq

PRECISION_BITS = 256
FLOAT_RELATIVE_ERROR = 1e-12


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


def middle(value: Any) -> float:
    """Return a probability as a float: the middle of a ball."""
    return float(value.mid()) if isinstance(value, arb) else float(value)


def can_sum_to_one(probabilities: Sequence[Any]) -> bool:
    """Return whether probabilities may sum to 1: exactly for Fractions, balls if their sum contains 1, floats to 1e-9."""
    if all(isinstance(p, Fraction | int) for p in probabilities):
        return bool(sum(probabilities) == 1)
    if any(isinstance(p, arb) for p in probabilities):
        with precision():
            return bool(sum((ball(p) for p in probabilities), arb(0)).contains(1))
    return bool(abs(sum(map(float, probabilities)) - 1) <= 1e-9)
