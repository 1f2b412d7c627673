"""Inverses of monotone functions, and evaluation of balls to a wanted precision.

The function is evaluated at the argument that is returned, and satisfies the inequality
there. So an ε that is the inverse of a proof is a proof as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

from flint import arb

from auditdp.accountants.parameter_checks import AccountantError, check_delta
from auditdp.mechanism.laws import precision

SMALLEST_DOUBLE = math.ulp(0.0)
HUGE = 1e300
"""Largest argument of a search without an upper end.

1/``HUGE`` is the smallest argument of ``greatest``.
"""


def least(
    function: Callable[[float], float],
    target: float,
    *,
    low: float = 0.0,
    high: float = math.inf,
    near: tuple[float, float] | None = None,
) -> float:
    """Return the smallest x in [low, high] with ``function(x) <= target``.

    This is the inverse of a decreasing function. The returned x satisfies the
    inequality as computed, and lies at most 1e-13 (relative) above the smallest such x.
    If rounding makes the function not quite monotone, the returned x still satisfies
    the inequality.

    Args:
        function: Decreasing and >= 0.
        target: The value to reach, > 0.
        low: Smallest argument, >= 0.
        high: Largest argument. If it is infinite, the search doubles x up to 1e300.
        near: Two ascending arguments between which x probably lies; a hint that saves
            time.

    Returns:
        x, or ``inf`` if no x up to ``high``, or up to 1e300, satisfies the inequality.
    """
    function = cache(function)
    if near is not None and function(near[0]) > target >= function(near[1]):
        left, right = near
    elif function(low) <= target:
        return low
    else:
        right = min(max(2 * low, 1.0), high)
        while right / 16 > low and function(right / 16) <= target:
            right /= 16
        left = max(low, right / 16)
        while function(right) > target:
            if right >= min(high, HUGE):
                return math.inf
            left, right = right, min(2 * right, high)

    def gap(x: float) -> float:
        value = function(x)
        log_ratio = math.log(max(value, SMALLEST_DOUBLE)) - math.log(target)
        # Logarithms are rounded, and the sign has to be that of the inequality itself.
        if value > target:
            return max(log_ratio, SMALLEST_DOUBLE)
        return min(log_ratio, 0.0)

    return crossing(gap, left, right)


def crossing(gap: Callable[[float], float], a: float, b: float) -> float:
    """Return an x in (a, b] just above the root of a decreasing function.

    ``gap`` has to be > 0 at a and <= 0 at b. At the returned x it is <= 0. Within 2e-15
    max(|a|, |b|) below x there is an argument at which it is > 0.

    The method is ITP, "interpolate, truncate and project" (Oliveira & Takahashi 2020,
    "An Enhancement of the Bisection Method Average Performance Preserving Minmax
    Optimality"). It takes secant steps that stay near enough to the middle, so that it
    needs no more steps than bisection. SciPy's root finders are not used, since to load
    them takes longer than everything else that a calculator does.
    """
    left, right, width = gap(a), gap(b), b - a
    resolution = 2e-15 * max(abs(a), abs(b))
    slack = resolution * 2.0 ** math.ceil(math.log2(max(width / resolution, 1.0)))
    while b - a > resolution:
        middle, secant = (a + b) / 2, (a * right - b * left) / (right - left)
        towards = math.copysign(1.0, middle - secant)
        x = secant + towards * min(0.2 * (b - a) ** 2 / width, abs(middle - secant))
        radius = max(0.0, slack - (b - a) / 2)
        # An infinite gap makes x NaN, which counts as too far from the middle.
        if not abs(x - middle) <= radius:
            x = middle - towards * radius
        slack /= 2
        # Rounding may have put x on an end of the interval.
        if not a < x < b:
            x = middle
        at = gap(x)
        if at > 0:
            a, left = x, at
        else:
            b, right = x, at
    return b


def greatest(function: Callable[[float], float], target: float) -> float:
    """Return the largest x > 0 with ``function(x) <= target``.

    This is the inverse of an increasing function that is >= 0, for a target > 0. The
    returned x satisfies the inequality as computed. It is 0.0 if no x down to 1e-300
    does, and some x >= 1e300 if every x up to 1e300 does.
    """
    x = 1.0
    while function(x) <= target:
        if x >= HUGE:
            return x
        x *= 2
    while function(x) > target:
        x /= 2
        if x < 1 / HUGE:
            return 0.0
    # The crossing lies between x and 2x; as a function of 1/x the function decreases.
    return 1 / least(
        lambda inverse: function(1 / inverse), target, low=0.5 / x, high=1 / x
    )


def epsilon_from(
    delta_at: Callable[[float], float],
    delta: float,
    *,
    pure: float = math.inf,
    near: tuple[float, float] | None = None,
) -> float:
    """Return the smallest ε with ``delta_at(ε) <= delta``, rounded up.

    Args:
        delta_at: A privacy curve.
        delta: δ in [0, 1]. For δ = 0 there is no search: ε is 0, ``pure`` or ``inf``.
        pure: The largest privacy loss, beyond which the curve is constant.
        near: Two ascending numbers > 0 between which ε probably lies; a hint that saves
            time.

    Returns:
        ε, or ``inf`` if no ε suffices.

    Raises:
        AccountantError: If ``delta`` is not in [0, 1].
    """
    check_delta("epsilon_from", delta)
    if delta > 0:
        return least(delta_at, delta, high=pure, near=near)
    if delta_at(0.0) == 0:
        return 0.0
    if pure < math.inf and delta_at(pure) > 0:
        return math.inf
    return pure


def epsilon_below(
    delta_at: Callable[[float], float],
    delta: float,
    *,
    pure: float = math.inf,
    near: tuple[float, float] | None = None,
) -> float:
    """Return an ε at which a lower bound on δ still exceeds ``delta``.

    It lies just below the ε of ``epsilon_from``.

    Args:
        delta_at: A lower bound on a privacy curve.
        delta: δ in [0, 1].
        pure: The largest privacy loss, beyond which the curve is constant.
        near: Two ascending numbers > 0 between which ε probably lies; a hint that saves
            time.

    Returns:
        An ε at which ``delta_at`` was evaluated and exceeds ``delta``; 0.0 if the curve
        is at most ``delta`` from the start, which is a trivial bound; ``inf`` if the
        curve exceeds ``delta`` everywhere.
    """
    epsilon, step = epsilon_from(delta_at, delta, pure=pure, near=near), 2.0**-50
    while 0 < epsilon < math.inf and delta_at(epsilon) <= delta:
        epsilon = max(epsilon * (1 - step), 0.0)
        step *= 2
    return epsilon


def settle(value: Callable[[], arb], *, bits: int = 60) -> arb:
    """Return a ball with ``bits`` correct bits, or an exact value.

    ``value`` is evaluated with a working precision that doubles until it suffices.

    Raises:
        AccountantError: If 6144 bits of working precision are not enough: the value is
            zero, or a difference of huge numbers.
    """
    working = 96
    while True:
        with precision(working):
            enclosure = value()
        accurate = enclosure.is_finite() and enclosure.rel_accuracy_bits() >= bits
        if enclosure.is_exact() or accurate:
            return enclosure
        if working >= 6144:
            raise AccountantError(
                f"expected a number that {working:,} bits tell from zero, got "
                f"{enclosure}; use parameters nearer to 1"
            )
        working *= 2
