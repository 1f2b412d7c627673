"""Bounds written as decimals that still hold, and the comparison of two numbers."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal


def confidence(alpha: float) -> str:
    """Return the confidence 1 - alpha in words, as a percentage that is rounded down.

    >>> confidence(0.05), confidence(0.05 / 60), confidence(1e-6)
    ('confidence 95%', 'confidence 99.91%', 'confidence 99.9999%')
    """
    digits = 0
    if 0 < alpha < 1:
        digits = max(0, math.ceil(round(-math.log10(100 * alpha), 9)))
    # 1e-6 is added, since 1 - alpha as a double may be slightly below 99.9999 %.
    percent = math.floor(100 * (1 - alpha) * 10**digits + 1e-6) / 10**digits
    return f"confidence {percent:.{digits}f}%"


def count(value: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun, which is in the plural unless the count is 1.

    >>> count(1, "audit"), count(2_184, "audit")
    ('1 audit', '2,184 audits')
    """
    return f"{value:,} {noun if value == 1 else plural or noun + 's'}"


SAME = 1e-6
"""Relative difference up to which the results of two processors count as the same."""


def same_number(first: float, second: float, *, near: float = 0.0) -> bool:
    """Return True if two numbers differ by at most a relative 1e-6, or ``near``.

    >>> same_number(0.1 + 0.2, 0.3), same_number(1.0, 1.00001)
    (True, False)
    """
    return math.isclose(first, second, rel_tol=SAME, abs_tol=near)


NEAR = 1e-12
"""Relative distance of a bound from a short decimal that counts as rounding."""
MAX_PLAIN_DIGITS = 9
"""Digits before the point up to which a number is written without an exponent."""
MAX_DIGITS = 13
"""Largest number of digits of a written bound; smaller differences are rounding."""
EXACT = Context(prec=1100, Emin=-999999, Emax=999999)
"""A context with enough digits for every double."""


def significant(value: float, digits: int, rounding: str = ROUND_HALF_EVEN) -> Decimal:
    """Return a finite number to ``digits`` significant digits.

    Below 1e9, all digits before the point are kept. From 1e9 on, ``digits`` is at least
    four. ``rounding`` is a mode of the module ``decimal``.

    >>> significant(12345.678, 4), significant(0.00012345, 2, ROUND_FLOOR)
    (Decimal('12346'), Decimal('0.00012'))
    """
    exact = Decimal(value)
    if exact.adjusted() < MAX_PLAIN_DIGITS:
        places = min(0, exact.adjusted() - digits + 1)
    else:
        places = exact.adjusted() - max(digits, 4) + 1
    return exact.quantize(Decimal(1).scaleb(places), rounding=rounding, context=EXACT)


def outward(
    bound: float,
    *,
    up: bool,
    digits: int,
    near: float = NEAR,
    against: float | None = None,
) -> Decimal:
    """Return a finite bound to ``digits`` significant digits, rounded outwards.

    Args:
        bound: The bound.
        up: Whether it is an upper bound, which is rounded up; a lower one is rounded
            down.
        digits: Number of digits. More are used if the written bound would otherwise lie
            on another side of ``against`` than the bound.
        near: Relative difference up to which the nearest decimal is taken for the bound
            itself, on either side of it.
        against: A number that the bound is compared with, such as a claim.

    >>> outward(1.03456, up=False, digits=4), outward(1.0 + 1e-13, up=True, digits=4)
    (Decimal('1.034'), Decimal('1.000'))
    >>> outward(1.03, up=False, digits=2)
    Decimal('1.0')
    >>> outward(1.00003, up=False, digits=4, against=1.0)
    Decimal('1.00003')
    """
    # The nearest decimal is tried first, and the outward one if it is too far.
    written = Decimal(0)
    for places in range(digits, MAX_DIGITS + 1):
        written = significant(bound, places)
        if abs(written - Decimal(bound)) > Decimal(near) * abs(Decimal(bound)):
            written = significant(bound, places, ROUND_CEILING if up else ROUND_FLOOR)
        if against is None or _side(float(written), against) == _side(bound, against):
            break
    return written


def _side(bound: float, against: float) -> tuple[bool, bool]:
    return bound > against, bound < against


def outwards(
    bound: float,
    *,
    up: bool,
    digits: int = 4,
    near: float = NEAR,
    against: float | None = None,
) -> str:
    """Return a bound as text for a sentence, rounded outwards.

    The arguments are those of ``outward``. An infinite bound is "∞" or "−∞".

    >>> outwards(1.03456, up=False), outwards(1.03456, up=True), outwards(1.0, up=True)
    ('1.034', '1.035', '1')
    """
    if not math.isfinite(bound):
        return "∞" if bound > 0 else "−∞"
    written = outward(bound, up=up, digits=digits, near=near, against=against)
    places = max(len(written.as_tuple().digits), MAX_PLAIN_DIGITS)
    return f"{float(written):.{places}g}"


def at_least(bound: float, claimed: float, *, digits: int = 4) -> str:
    """Return a lower bound with the sign ≥, or > if it equals the claimed level.

    A bound that reaches the claimed level refutes it, so the true level is larger.

    >>> at_least(0.98765, 1.0), at_least(1.00003, 1.0), at_least(1.0, 1.0)
    ('≥ 0.9876', '≥ 1.00003', '> 1')
    """
    sign = ">" if bound == claimed else "≥"
    return f"{sign} {outwards(bound, up=False, digits=digits, against=claimed)}"


def apart(lower: float, upper: float, *, digits: int = 4) -> tuple[str, str]:
    """Return a lower bound and a smaller upper bound as texts that differ.

    Each has ``digits`` significant digits, or more if the texts would be equal.

    >>> apart(2.5, 1.0), apart(1.00049, 1.00041)
    (('2.5', '1'), ('1.00049', '1.00041'))
    """
    # Rounded outwards, the bounds may look equal with few digits.
    for places in range(digits, MAX_DIGITS):
        low = outwards(lower, up=False, digits=places)
        high = outwards(upper, up=True, digits=places)
        if math.isinf(lower) or float(low) > float(high):
            return low, high
    return f"{lower:.17g}", f"{upper:.17g}"
