"""How bounds are written: rounded so that what is written still holds; and which numbers are the same on all machines."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal


def confidence(alpha: float) -> str:
    """Return 1 - alpha as a reader sees it, rounded down.

    >>> confidence(0.05), confidence(0.05 / 60), confidence(1e-6)
    ('confidence 95%', 'confidence 99.91%', 'confidence 99.9999%')
    """
    digits = (
        max(0, math.ceil(round(-math.log10(100 * alpha), 9))) if 0 < alpha < 1 else 0
    )
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


MOST_DIGITS = 13
"""Digits that set a bound apart from a claim, at most: beyond them they differ by rounding."""
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


def outward(
    bound: float,
    *,
    up: bool,
    digits: int,
    near: float = NEAR,
    against: float | None = None,
) -> Decimal:
    """Return a finite bound to so many significant digits, rounded so that it still holds, but for ``near``.

    An upper bound is rounded ``up``, another one down, to so many significant digits. What differs from such a decimal by
    no more than ``near``, relatively, does so by rounding; 0 allows none. Digits are added until the bound is written on the
    same side of ``against``, such as a claim, as it is.

    >>> outward(1.03456, up=False, digits=4), outward(1.0 + 1e-13, up=True, digits=4), outward(1.03, up=False, digits=2)
    (Decimal('1.034'), Decimal('1.000'), Decimal('1.0'))
    >>> outward(1.00003, up=False, digits=4, against=1.0)
    Decimal('1.00003')
    """
    shown = Decimal(0)
    for places in range(digits, MOST_DIGITS + 1):
        shown = significant(bound, places)
        if abs(shown - Decimal(bound)) > Decimal(near) * abs(Decimal(bound)):
            shown = significant(bound, places, ROUND_CEILING if up else ROUND_FLOOR)
        if against is None or (float(shown) > against, float(shown) < against) == (
            bound > against,
            bound < against,
        ):
            break
    return shown


def outwards(
    bound: float,
    *,
    up: bool,
    digits: int = 4,
    near: float = NEAR,
    against: float | None = None,
) -> str:
    """Return a bound as it is written in a sentence; see ``outward``.

    >>> outwards(1.03456, up=False), outwards(1.03456, up=True), outwards(0.0, up=False), outwards(1.0, up=True)
    ('1.034', '1.035', '0', '1')
    """
    if not math.isfinite(bound):
        return "∞" if bound > 0 else "−∞"
    shown = outward(bound, up=up, digits=digits, near=near, against=against)
    return f"{float(shown):.{max(len(shown.as_tuple().digits), WRITTEN)}g}"


def at_least(bound: float, claimed: float, *, digits: int = 4) -> str:
    """Return a lower bound with its sign; where it is the claimed level, and refutes that, the true value exceeds it.

    >>> at_least(0.98765, 1.0), at_least(1.00003, 1.0), at_least(1.0, 1.0)
    ('≥ 0.9876', '≥ 1.00003', '> 1')
    """
    return f"{'>' if bound == claimed else '≥'} {outwards(bound, up=False, digits=digits, against=claimed)}"


def apart(lower: float, upper: float, *, digits: int = 4) -> tuple[str, str]:
    """Return a lower bound and an upper one below it as they are written, with digits that show the contradiction.

    >>> apart(2.5, 1.0), apart(1.00049, 1.00041)
    (('2.5', '1'), ('1.00049', '1.00041'))
    """
    for places in range(digits, MOST_DIGITS):
        shown = (
            outwards(lower, up=False, digits=places),
            outwards(upper, up=True, digits=places),
        )
        if math.isinf(lower) or float(shown[0]) > float(shown[1]):
            return shown
    return f"{lower:.17g}", f"{upper:.17g}"
