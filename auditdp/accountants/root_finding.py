"""The inverse problem: the least noise, or the largest part, for which a proof of a target (ε, δ) exists."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from auditdp.accountants.accountant import (
    Accountant,
    AccountantError,
    check_epsilon,
    failure,
)
from auditdp.errors import StoppedError

DIGITS = 5
"""How many significant digits a solution has."""
DECADES = 6
"""Solutions are looked for between 1e-6 and 1e6."""
_DECADE = 9 * 10 ** (DIGITS - 1)


@dataclass(frozen=True)
class Solution:
    """A parameter with which the target is met."""

    value: float
    """A decimal of ``DIGITS`` significant digits."""
    accountant: Accountant
    """The accountant that proves the target at that value."""


def solve(
    model: Callable[[float], Iterable[Accountant]],
    epsilon: float,
    delta: float,
    *,
    larger_is_safer: bool,
) -> Solution:
    """Return the least private decimal of a parameter for which some proof says (epsilon, delta)-DP.

    Bisection over decimals of ``DIGITS`` significant digits between 1e-6 and 1e6, so that rounding is part of the search:
    the returned value was itself seen to meet the target, and the next less private decimal was seen to miss it. That no
    value beyond that meets it rests on δ being monotone in the parameter; that the returned value meets it does not.

    Args:
        model: The accountants for a value of the parameter; only upper bounds and exact curves are asked.
        epsilon: The target, >= 0.
        delta: The target, in (0, 1).
        larger_is_safer: Whether δ falls with the parameter (noise) or rises with it (ε of a part).

    Raises:
        AccountantError: If no value in the range meets the target, or all do, or the target is none.
        StoppedError: If an accountant fails at a value, and no other one proves the target there.
    """
    check_epsilon("solve", epsilon)
    if not 0 < delta < 1:
        raise AccountantError(
            f"solve: expected a target delta in (0, 1), got delta={delta!r}"
        )
    sign = 1 if larger_is_safer else -1

    def proof(place: int) -> Accountant | None:
        """The accountant that proves the target at a decimal; the larger its place, the more private it is."""
        failures = []
        for accountant in model(_decimal(sign * place)):
            try:
                if (
                    accountant.soundness.is_proof
                    and accountant.delta_at(epsilon) <= delta
                ):
                    return accountant
            except AccountantError:
                raise
            except (
                Exception
            ) as error:  # an accountant may run out of memory where others do not
                failures.append(f"{accountant.name}: {failure(error)}")
        if failures:
            raise StoppedError(
                f"solve: whether a value meets the target is not known: {'; '.join(failures)}"
            )
        return None

    misses, meets = _bracket(
        lambda place: proof(place) is not None, epsilon, delta, sign
    )
    while meets - misses > 1:
        middle = (misses + meets) // 2
        misses, meets = (misses, middle) if proof(middle) else (middle, meets)
    found = proof(meets)
    assert found is not None  # accountants are functions of their parameters
    return Solution(_decimal(sign * meets), found)


def _bracket(
    meets: Callable[[int], bool], epsilon: float, delta: float, sign: int
) -> tuple[int, int]:
    """Return two places, of which the first misses the target and the second meets it, a third of a decade apart.

    Begins at 1, since accountants of extreme parameters may be slow.
    """
    end, stride, place = DECADES * _DECADE, _DECADE // 3, 0
    step = -stride if meets(place) else stride
    while abs(place + step) <= end:
        place += step
        if meets(place) is (step > 0):
            return (place - stride, place) if step > 0 else (place, place + stride)
    last = _decimal(sign * place)
    if step < 0:
        raise AccountantError(
            f"solve: ({epsilon:g}, {delta:g})-DP is met by every value from 1 to {last:g}; use a smaller target"
        )
    raise AccountantError(
        f"solve: ({epsilon:g}, {delta:g})-DP is proved for no value from 1 to {last:g}; use a larger target epsilon or "
        "delta, or change the other parameters"
    )


def _decimal(place: int) -> float:
    """Return the decimal that is so many places after 1, counted in decimals of ``DIGITS`` significant digits.

    >>> _decimal(0), _decimal(1), _decimal(-1)
    (1.0, 1.0001, 0.99999)
    """
    exponent, rest = divmod(place, _DECADE)
    return float(f"{10 ** (DIGITS - 1) + rest}e{exponent - DIGITS + 1}")
