"""Probabilities on the grid of uniform numbers, rounded towards privacy.

A probability is m 2^-53 for an integer m, so that ``uniform < p`` is true with probability exactly p. ``places`` finds the
largest m whose odds stay within e^ε; ``on_grid`` rounds what depends on the input, between ends that do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from flint import arb

from auditdp.laws import PRECISION_BITS, ball, precision
from mechanisms.backend import Values
from mechanisms.rounding import GRID


def floor(value: Callable[[], arb]) -> int:
    """Return the floor of an irrational number, computed with ever more precision until it is certain."""
    bits = PRECISION_BITS
    while True:
        with precision(bits):
            whole = value().floor().unique_fmpz()
        if whole is not None:
            return int(whole)
        bits *= 2


def places(epsilon: float, *, odds: Fraction = Fraction(1), total: int = GRID) -> int:
    """Return the largest integer m < total with m/(total − m) <= odds·e^ε.

    Of ``total`` places on the grid, m go to the likelier side and total − m to the other. The condition reads
    m <= total/(1 + e^-ε/odds), which is irrational for rational ε > 0, so that its floor can be found.

    Args:
        epsilon: Privacy loss in nats, finite and > 0.
        odds: How many times longer the likelier side is than the other.
        total: Places in all, >= 2.
    """
    with precision():
        if ball(odds) * arb(epsilon).exp() > total:
            return total - 1
    return floor(lambda: total / (1 + (-arb(epsilon)).exp() / ball(odds)))


def multiple(value: arb, unit: Any) -> int:
    """Return how often ``unit`` goes into a number, to the nearest integer (of the middle of its ball)."""
    return math.floor(float((value / arb(unit)).mid()) + 0.5)


def on_grid(xp: Any, probabilities: Values) -> Values:
    """Return probabilities rounded to the nearest multiple of 2^-53."""
    return xp.round(probabilities * GRID) / GRID
