"""How bounds are written: rounded so that what is written still holds."""

from __future__ import annotations

import math


def confidence(alpha: float) -> str:
    """Return 1 - alpha as a reader sees it, rounded down.

    >>> confidence(0.05), confidence(0.05 / 60), confidence(1e-6)
    ('confidence 95%', 'confidence 99.91%', 'confidence 99.9999%')
    """
    digits = max(0, math.ceil(round(-math.log10(100 * alpha), 9))) if 0 < alpha < 1 else 0
    return f"confidence {math.floor(100 * (1 - alpha) * 10**digits + 1e-6) / 10**digits:.{digits}f}%"


def outwards(bound: float, *, up: bool, digits: int = 4) -> str:
    """Return a bound to so many digits, rounded so that it still holds: an upper one up, a lower one down.

    >>> outwards(1.03456, up=False), outwards(1.03456, up=True), outwards(0.0, up=False), outwards(1.0, up=True)
    ('1.034', '1.035', '0', '1')
    """
    if not 0 < bound < math.inf:
        return "∞" if bound > 0 else f"{bound:.{digits}g}"
    step = 10.0 ** (math.floor(math.log10(bound)) - digits + 1)
    steps = math.ceil(bound / step - 1e-9) if up else math.floor(bound / step + 1e-9)
    return f"{steps * step:.{digits}g}"
