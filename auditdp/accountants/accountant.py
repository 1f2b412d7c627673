"""What every accountant answers, and what it says of its own answers.

An accountant is a frozen dataclass of a mechanism's parameters that *is* a privacy curve: it turns ε into δ and back.
It never sees the mechanism itself. ``delta_at`` computes and rounds up; ``epsilon_at`` inverts it and returns an ε at which
``delta_at`` was seen to be at most δ, so that an inverse is never less sound than the curve that it inverts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from flint import arb

from auditdp.errors import AuditError, MissingExtraError
from auditdp.mechanism.laws import precision

if TYPE_CHECKING:
    from auditdp.accountants.description import Description

ROUNDED_UP = 1e-12
"""How far, relative to ε and to δ, an exact or upper accountant may lie above its closed form because it rounds up."""


class AccountantError(AuditError, ValueError):
    """Parameters that describe no mechanism, or that a theorem does not cover."""


class Soundness(StrEnum):
    """What the curve of an accountant is to the true one: that of the worst mechanism and data that it describes.

    The first three are proofs, of numbers that were rounded in their own direction: in ball arithmetic, or with a bound on
    what floating point can have done that is derived and not measured.
    """

    EXACT = "exact"
    """Both a proof and attained: all that is described is (ε, δ)-DP, and no smaller δ holds for all of it."""
    UPPER = "upper bound"
    """A proof: all that is described is (ε, δ)-DP. A smaller δ may hold as well."""
    LOWER = "lower bound"
    """A proof that something that is described loses so much: no analysis of it can promise less."""
    UNPROVED = "unproved upper bound"
    """An upper bound in real numbers, whose error in floating point nobody has bounded: it proves nothing."""
    APPROXIMATION = "approximation"
    """Neither: it may lie on either side of the truth, and proves nothing."""

    @property
    def is_proof(self) -> bool:
        """Whether all that is described is proved to be (ε, δ)-DP where the curve says so: exact, or an upper bound."""
        return self in (Soundness.EXACT, Soundness.UPPER)

    @property
    def is_attained(self) -> bool:
        """Whether something that is described is proved to lose what the curve says: exact, or a lower bound."""
        return self in (Soundness.EXACT, Soundness.LOWER)


@runtime_checkable
class Accountant(Protocol):
    """A privacy curve of a mechanism that is described by its parameters."""

    @property
    def name(self) -> str:
        """The analysis and its parameters, as one would call it."""

    @property
    def soundness(self) -> Soundness:
        """What the numbers are to the true curve."""

    @property
    def describes(self) -> Description:
        """The class of mechanisms of whose worst one the curve speaks."""

    @property
    def adjacency(self) -> str:
        """For which neighbours the curve holds."""

    @property
    def sampling(self) -> str:
        """How records are drawn for each use of the data, ``"none"`` where all are used."""

    @property
    def source(self) -> str:
        """The paper, theorem and version, or the library and version, that it is taken from."""

    def delta_at(self, epsilon: float) -> float:
        """Return δ at ``epsilon`` >= 0 nats, in [0, 1]; it never rises with ``epsilon``."""

    def epsilon_at(self, delta: float) -> float:
        """Return ε in nats at ``delta`` in [0, 1], ``inf`` where there is none; it never rises with ``delta``."""


def least(
    function: Callable[[float], float],
    target: float,
    *,
    low: float = 0.0,
    high: float = math.inf,
    near: tuple[float, float] | None = None,
) -> float:
    """Return the smallest x in [low, high] with ``function(x) <= target``: the inverse of a decreasing function.

    The x that is returned satisfies the inequality as computed, and lies at most 1e-13 (relative) above the smallest; only
    signs are trusted, so a function that is not quite monotone still gives an x that satisfies it.

    The function decreases and is >= 0, the target is > 0, and ``low`` is >= 0. Without ``high`` the search doubles;
    ``near`` are two numbers between which x lies most likely. It is ``inf`` where no x up to ``high``, or up to 1e300,
    satisfies the inequality.
    """
    function = cache(function)
    if near is not None and function(near[0]) > target >= function(near[1]):
        a, b = near
    elif function(low) <= target:
        return low
    else:
        b = min(max(2 * low, 1.0), high)
        while b / 16 > low and function(b / 16) <= target:
            b /= 16
        a = max(low, b / 16)
        while function(b) > target:
            if b >= min(high, 1e300):
                return math.inf
            a, b = b, min(2 * b, high)

    def gap(x: float) -> float:
        value = function(x)
        logs = math.log(max(value, 5e-324)) - math.log(target)
        return (
            max(logs, 5e-324) if value > target else min(logs, 0.0)
        )  # the sign is that of the inequality itself

    return crossing(gap, a, b)


def crossing(gap: Callable[[float], float], a: float, b: float) -> float:
    """Return the x in (a, b] just beyond which a decreasing function changes its sign, from > 0 at a to <= 0, to 2e-15·b.

    Interpolate, truncate and project (Oliveira & Takahashi 2020, "An Enhancement of the Bisection Method Average
    Performance Preserving Minmax Optimality"): secants that are kept near enough to the middle that no function takes a
    step more than bisection. Loading a library's root finders takes longer than all else that a calculator does.
    """
    left, right, width, apart = gap(a), gap(b), b - a, 2e-15 * max(abs(a), abs(b))
    slack = apart * 2.0 ** math.ceil(math.log2(max(width / apart, 1.0)))
    while b - a > apart:
        middle, secant = (a + b) / 2, (a * right - b * left) / (right - left)
        towards = math.copysign(1.0, middle - secant)
        x = secant + towards * min(0.2 * (b - a) ** 2 / width, abs(middle - secant))
        radius = max(0.0, slack - (b - a) / 2)
        x = x if abs(x - middle) <= radius else middle - towards * radius
        slack /= 2
        x = x if a < x < b else middle  # rounding may have put it on an end
        at = gap(x)
        a, left, b, right = (x, at, b, right) if at > 0 else (a, left, x, at)
    return b


def greatest(function: Callable[[float], float], target: float) -> float:
    """Return the largest x > 0 with ``function(x) <= target``: the inverse of an increasing function.

    As for ``least``, the x that is returned satisfies the inequality as computed.

    The function increases and is >= 0, and the target is > 0. It is 0.0 where no x down to 1e-300 satisfies the inequality.
    """
    x = 1.0
    while function(x) <= target:
        if x >= 1e300:
            return x
        x *= 2
    while function(x) > target:
        x /= 2
        if x < 1e-300:
            return 0.0
    # function(x) <= target, and twice that x is too large: as a function of 1/x it falls.
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
    """Return the smallest ε with ``delta_at(ε) <= delta``, rounded up: what every ``epsilon_at`` is made of.

    ``pure`` is the largest privacy loss, beyond which the curve is constant; the answer where δ = 0 is exact. ``near`` are
    two numbers > 0 between which the answer lies most likely.

    Raises:
        AccountantError: If ``delta`` is not in [0, 1].
    """
    check_delta("epsilon_at", delta)
    delta_at = cache(delta_at)
    if delta > 0 and near is not None:
        return least(delta_at, delta, high=pure, near=near)
    if delta_at(0.0) <= delta:
        return 0.0
    if delta == 0:
        return pure if pure == math.inf or delta_at(pure) == 0 else math.inf
    return least(delta_at, delta, high=pure)


class Inverted:
    """An accountant whose ε at a δ is the inverse of its curve."""

    if TYPE_CHECKING:

        def delta_at(self, epsilon: float) -> float:
            """Return δ at ``epsilon``."""

    @property
    def largest_loss(self) -> float:
        """The ε from which on the curve is constant."""
        return math.inf

    def epsilon_at(self, delta: float) -> float:
        """Return the smallest ε for δ, rounded up; ``inf`` where there is none."""
        return epsilon_from(self.delta_at, delta, pure=self.largest_loss)


def epsilon_below(
    delta_at: Callable[[float], float],
    delta: float,
    *,
    pure: float = math.inf,
    near: tuple[float, float] | None = None,
) -> float:
    """Return an ε at which ``delta_at`` was seen to exceed ``delta``, just below the crossing: for lower bounds.

    Returns:
        That ε; 0.0 where the curve starts at or below ``delta``, which bounds nothing, and ``inf`` where it stays above.
    """
    found, step = epsilon_from(delta_at, delta, pure=pure, near=near), 2.0**-50
    while 0 < found < math.inf and delta_at(found) <= delta:
        found, step = max(found * (1 - step), 0.0), 2 * step
    return found


def settle(value: Callable[[], arb], *, bits: int = 60) -> arb:
    """Return an enclosure with ``bits`` correct bits, by evaluating it with ever more precision until it has them.

    Raises:
        AccountantError: If 6144 bits of working precision do not do: the value is zero, or a difference of huge numbers.
    """
    for doublings in range(7):
        with precision(96 << doublings):
            found = value()
        if found.is_exact() or (
            found.is_finite() and found.rel_accuracy_bits() >= bits
        ):
            return found
    raise AccountantError(
        f"expected a number that {96 << doublings:,} bits tell from zero, got {found}; use parameters nearer to 1"
    )


def failure(error: Exception) -> str:
    """Say that an accountant gave no answer, and what to do."""
    if isinstance(error, MissingExtraError):
        return str(error)
    if isinstance(error, MemoryError):
        reason, remedy = (
            "ran out of memory",
            "use fewer uses of the data, more noise, or a machine with more memory",
        )
    else:
        reason, remedy = (
            f"raised {type(error).__name__}: {error}",
            "use another accountant or other parameters",
        )
    return f"{reason}; it gave no answer: {remedy}"


def check_positive(kind: str, **values: float) -> None:
    """Raise unless every value is finite and > 0."""
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise AccountantError(
                f"{kind}: expected finite {name} > 0, got {name}={value!r}"
            )


def check_delta(kind: str, delta: float) -> None:
    """Raise unless ``delta`` is in [0, 1]."""
    if not 0 <= delta <= 1:
        raise AccountantError(f"{kind}: expected delta in [0, 1], got delta={delta!r}")


def check_rate(kind: str, rate: float) -> None:
    """Raise unless ``rate`` is in (0, 1]."""
    if not 0 < rate <= 1:
        raise AccountantError(f"{kind}: expected rate in (0, 1], got rate={rate!r}")


def check_epsilon(kind: str, epsilon: float) -> None:
    """Raise unless ``epsilon`` is >= 0; ``inf`` is allowed."""
    if not epsilon >= 0:
        raise AccountantError(f"{kind}: expected epsilon >= 0, got epsilon={epsilon!r}")


def check_count(kind: str, **counts: int) -> None:
    """Raise unless every count is an integer >= 1."""
    for name, count in counts.items():
        if isinstance(count, bool) or not float(count).is_integer() or count < 1:
            raise AccountantError(
                f"{kind}: expected an integer {name} >= 1, got {name}={count!r}"
            )
