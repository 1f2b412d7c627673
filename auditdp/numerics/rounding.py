"""How bounds are written: rounded so that what is written still holds; and which numbers are the same on all machines."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal


def confidence(alpha: float) -> str:
    """Return 1 - alpha as a reader sees it, rounded down.

    >>> confidence(0.05), confidence(0.05 / 60), confidence(1e-6)
    ('confidence 95%', 'confidence 99.91%', 'confidence 99.9999%')
    """
    digits = max(0, math.ceil(round(-math.log10(100 * alpha), 9))) if 0 < alpha < 1 else 0
    return f"confidence {math.floor(100 * (1 - alpha) * 10**digits + 1e-6) / 10**digits:.{digits}f}%"


def count(value: int, noun: str, plural: str = "") -> str:
    """Return how many there are of something.

    >>> count(1, "audit"), count(2_184, "audit")
    ('1 audit', '2,184 audits')
    """
    return f"{value:,} {noun if value == 1 else plural or noun + 's'}"


SAME = 1e-6
"""Relative difference of two numbers that floating point explains: another processor may compute other digits."""


def same_number(one: float, other: float, *, near: float = 0.0) -> bool:
    """Return whether two numbers are the same but for what floating point may change, or differ by that little.

    >>> same_number(0.1 + 0.2, 0.3), same_number(1.0, 1.00001)
    (True, False)
    """
    return math.isclose(one, other, rel_tol=SAME, abs_tol=near)


NEAR = 1e-12
"""Relative difference from a short decimal that is called rounding: a bound so near to it is written as that decimal."""
WRITTEN = 9
"""Digits before the point up to which a number is written with all of them, and without an exponent."""


LEAST = 4
"""Digits that a larger number has at least."""
EXACT = Context(prec=1100, Emin=-999999, Emax=999999)
"""Holds every double to its last digit."""


def significant(value: float, digits: int, rounding: str = ROUND_HALF_EVEN) -> Decimal:
    """Return a finite number to so many significant digits; below 1e9 all digits before the point are kept, above it four.

    >>> significant(12345.678, 4), significant(0.00012345, 2, ROUND_FLOOR)
    (Decimal('12346'), Decimal('0.00012'))
    """
    exact = Decimal(value)
    if exact.adjusted() < WRITTEN:
        places = min(0, exact.adjusted() - digits + 1)
    else:
        places = exact.adjusted() - max(digits, LEAST) + 1
    return exact.quantize(Decimal(1).scaleb(places), rounding=rounding, context=EXACT)


def outward(bound: float, *, up: bool, digits: int, near: float = NEAR) -> Decimal:
    """Return a finite bound to so many significant digits, rounded so that it still holds, but for ``near``.

    An upper bound is rounded ``up``, another one down, to so many significant digits. What differs from such a decimal by
    no more than ``near``, relatively, does so by rounding; 0 allows none.

    >>> outward(1.03456, up=False, digits=4), outward(1.0 + 1e-13, up=True, digits=4), outward(1.03, up=False, digits=2)
    (Decimal('1.034'), Decimal('1.000'), Decimal('1.0'))
    """
    shown = significant(bound, digits)
    if abs(shown - Decimal(bound)) > Decimal(near) * abs(Decimal(bound)):
        shown = significant(bound, digits, ROUND_CEILING if up else ROUND_FLOOR)
    return shown


def outwards(bound: float, *, up: bool, digits: int = 4, near: float = NEAR) -> str:
    """Return a bound as it is written in a sentence; see ``outward``.

    >>> outwards(1.03456, up=False), outwards(1.03456, up=True), outwards(0.0, up=False), outwards(1.0, up=True)
    ('1.034', '1.035', '0', '1')
    """
    if not math.isfinite(bound):
        return "∞" if bound > 0 else "−∞"
    return f"{float(outward(bound, up=up, digits=digits, near=near)):.{max(digits, WRITTEN)}g}"
