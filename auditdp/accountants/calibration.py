"""Calibration: the smallest noise, or the largest ε of a part, that meets a target."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from auditdp.accountants.accountant import Accountant, failure
from auditdp.accountants.parameter_checks import AccountantError, check_target
from auditdp.errors import StoppedError

DIGITS = 5
"""Significant digits of a solution."""
_DECADE = 9 * 10 ** (DIGITS - 1)
"""Number of decimals of ``DIGITS`` digits from one power of ten up to the next."""


@dataclass(frozen=True)
class Solution:
    """A result of ``solve``: a value that meets the target, with the proof."""

    value: float
    """The value, a decimal of ``DIGITS`` significant digits."""
    accountant: Accountant
    """The accountant that proves the target at that value."""


def solve(
    model: Callable[[float], Iterable[Accountant]],
    epsilon: float,
    delta: float,
    *,
    larger_is_safer: bool,
) -> Solution:
    """Return the least private decimal for which some proof gives (epsilon, delta)-DP.

    The search is a bisection over decimals of ``DIGITS`` significant digits between
    1e-6 and 1e6. The returned decimal was evaluated and meets the target. The next less
    private decimal was evaluated and misses it. Decimals that are still less private
    are not all evaluated. They miss the target if δ is monotone in the parameter.

    Args:
        model: Function from a value of the parameter to its accountants. Only exact
            curves and upper bounds are evaluated.
        epsilon: ε of the target, finite and >= 0.
        delta: δ of the target, in (0, 1).
        larger_is_safer: True if δ falls with the parameter, as for noise; False if δ
            rises with it, as for the ε of a part.

    Raises:
        AccountantError: If ``epsilon`` or ``delta`` is outside its range, if ``model``
            refuses a value, or if the search finds no value that meets the target, or
            none that misses it.
        StoppedError: If an accountant fails at a value, and no other one proves the
            target there.
    """
    check_target("solve", epsilon, delta)
    sign = 1 if larger_is_safer else -1

    def proof(place: int) -> Accountant | None:
        """Return the first accountant that proves the target at a decimal, or None.

        ``place`` counts decimals from 1. The larger it is, the more private the decimal
        is.
        """
        failures = []
        for accountant in model(_decimal(sign * place)):
            if not accountant.soundness.is_proof:
                continue
            try:
                if accountant.delta_at(epsilon) <= delta:
                    return accountant
            except AccountantError:
                raise
            # An accountant may run out of memory at a value at which others do not.
            except Exception as error:
                failures.append(f"{accountant.name}: {failure(error)}")
        if failures:
            raise StoppedError(
                "solve: whether a value meets the target is not known: "
                + "; ".join(failures)
            )
        return None

    misses, meets = _bracket(
        lambda place: proof(place) is not None, epsilon, delta, sign
    )
    while meets - misses > 1:
        middle = (misses + meets) // 2
        if proof(middle):
            meets = middle
        else:
            misses = middle
    proves = proof(meets)
    # The same decimal was evaluated before, and accountants are deterministic.
    assert proves is not None
    return Solution(_decimal(sign * meets), proves)


def _bracket(
    meets: Callable[[int], bool], epsilon: float, delta: float, sign: int
) -> tuple[int, int]:
    """Return two places: at the first the target is missed, at the second it is met.

    They are a third of a decade apart. The search begins at the decimal 1, since
    accountants of extreme parameters may be slow. ``epsilon``, ``delta`` and ``sign``
    are for messages.

    Raises:
        AccountantError: If the target is met, or missed, at all searched places.
    """
    end, stride, place = 6 * _DECADE, _DECADE // 3, 0
    step = -stride if meets(place) else stride
    while abs(place + step) <= end:
        place += step
        if meets(place) is (step > 0):
            lower = min(place, place - step)
            return lower, lower + stride
    last = _decimal(sign * place)
    if step < 0:
        raise AccountantError(
            f"solve: ({epsilon:g}, {delta:g})-DP is met by every value from 1 to {last:g}; "
            "use a smaller target"
        )
    raise AccountantError(
        f"solve: ({epsilon:g}, {delta:g})-DP is proved for no value from 1 to {last:g}; "
        "use a larger target epsilon or delta, or change the other parameters"
    )


def _decimal(place: int) -> float:
    """Return the decimal ``place`` steps after 1 among those of ``DIGITS`` digits.

    >>> _decimal(0), _decimal(1), _decimal(-1)
    (1.0, 1.0001, 0.99999)
    """
    exponent, rest = divmod(place, _DECADE)
    return float(f"{10 ** (DIGITS - 1) + rest}e{exponent - DIGITS + 1}")
