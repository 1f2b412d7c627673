"""What an estimate may promise: that it is unbiased, or that its variance is at most a bound."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from auditdp.errors import ClaimError

Limits = tuple[float, float]
Range = Limits | Callable[[Any], Limits]


@dataclass(frozen=True)
class Unbiased:
    """The estimate's expectation is the truth.

    Args:
        truth: The quantity that is estimated, as a function of the input.
        margin: How far an expectation may be off and still count as equivalent, in the units of the estimate.
        almost: Whether the promise itself is only "almost unbiased": then a bias within the margin refutes nothing.
        range: (low, high) between which every estimate lies, or a function of the input that returns it; not needed where
            the mechanism has a method ``output_range(data)``. Without either, the tests are asymptotic.
        source: Where it is promised.

    Raises:
        ClaimError: If the margin is not positive, or the range is empty or infinite.
    """

    truth: Callable[[Any], float]
    margin: float
    almost: bool = False
    range: Range | None = field(default=None, kw_only=True)
    source: str = field(default="", kw_only=True)
    kind: ClassVar[str] = "Unbiased"
    kurtosis: ClassVar[None] = None

    def __post_init__(self) -> None:
        if not (self.margin > 0 and math.isfinite(self.margin)):
            raise ClaimError(
                f"Unbiased: expected a finite margin > 0, got margin={self.margin!r}"
            )
        _check_range(self)

    def __str__(self) -> str:
        return f"{'almost ' if self.almost else ''}unbiased (margin {self.margin:.4g})"


@dataclass(frozen=True)
class VarianceAtMost:
    """The estimate's variance is at most a bound.

    Args:
        bound: The bound, in squared units of the estimate.
        truth: The quantity that is estimated, as a function of the input (for the report).
        range: (low, high) between which every estimate lies, or a function of the input that returns it; not needed where
            the mechanism has a method ``output_range(data)``.
        kurtosis: The most that E[(X − μ)⁴]/σ⁴ can be, for any input (3 for normal noise, 6 for Laplace noise). It takes the
            place of the range when the bound is shown to hold, which it does better where the range is many standard
            deviations wide. Without either, that test is asymptotic.
        source: Where it is promised.

    Raises:
        ClaimError: If the bound is not positive, the kurtosis is below 1, or the range is empty or infinite.
    """

    bound: float
    truth: Callable[[Any], float]
    range: Range | None = field(default=None, kw_only=True)
    kurtosis: float | None = field(default=None, kw_only=True)
    source: str = field(default="", kw_only=True)
    kind: ClassVar[str] = "VarianceAtMost"
    margin: ClassVar[None] = None

    def __post_init__(self) -> None:
        if not (self.bound > 0 and math.isfinite(self.bound)):
            raise ClaimError(
                f"VarianceAtMost: expected a finite bound > 0, got bound={self.bound!r}"
            )
        if self.kurtosis is not None and not 1 <= self.kurtosis < math.inf:
            raise ClaimError(
                f"VarianceAtMost: expected a finite kurtosis >= 1, got kurtosis={self.kurtosis!r}"
            )
        _check_range(self)

    def __str__(self) -> str:
        return f"variance ≤ {self.bound:.6g}"


Promise = Unbiased | VarianceAtMost


def _check_range(promise: Promise) -> None:
    if promise.range is not None and not callable(promise.range):
        checked_range(promise.range, promise.kind, ClaimError)


def checked_range(given: Any, owner: str, error: type[Exception]) -> Limits:
    """Return a declared range as two numbers, or raise ``error`` if it is none."""
    try:
        low, high = (float(end) for end in given)
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    if not (math.isfinite(high - low) and low < high):
        raise error(
            f"{owner}: expected a range (low, high) of finite numbers with low < high, got {given!r}"
        )
    return low, high
