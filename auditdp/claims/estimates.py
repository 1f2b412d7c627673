"""Claims about an estimate: that it is unbiased, or that its variance is bounded."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from auditdp.claims.claim import check_positive
from auditdp.errors import ClaimError
from auditdp.numerics.arrays import is_number

Limits = tuple[float, float]
Range = Limits | Callable[[Any], Limits]


@dataclass(frozen=True)
class Unbiased:
    """The claim that the expectation of an estimate is the true value.

    Args:
        truth: A function that returns the true value for an input.
        margin: The largest bias that counts as equivalent to none, in the units of the
            estimate.
        almost: Whether the claim itself is only "almost unbiased". A bias within the
            margin then refutes nothing.
        range: (low, high) between which every estimate lies, or a function of the input
            that returns it; not needed if the mechanism has a method
            ``output_range(data)``. Without either, the tests are asymptotic.
        source: The paper, theorem and version that states the claim.

    Raises:
        ClaimError: If the margin is not positive, or the range is empty or infinite.
    """

    truth: Callable[[Any], float]
    margin: float
    almost: bool = False
    range: Range | None = field(default=None, kw_only=True)
    source: str = field(default="", kw_only=True)
    kind = "Unbiased"
    kurtosis = None

    def __post_init__(self) -> None:
        _check(self, margin=self.margin)

    def __str__(self) -> str:
        return f"{'almost ' if self.almost else ''}unbiased (margin {self.margin:.4g})"


@dataclass(frozen=True)
class VarianceAtMost:
    """The claim that the variance of an estimate is at most a bound.

    Args:
        bound: The bound, in squared units of the estimate.
        truth: A function that returns the true value for an input, for the report.
        range: (low, high) between which every estimate lies, or a function of the input
            that returns it; not needed if the mechanism has a method
            ``output_range(data)``.
        kurtosis: The largest E[(X − μ)⁴]/σ⁴ of the estimate on any input (3 for normal
            noise, 6 for Laplace noise). The proof that the bound holds uses it instead
            of the range, and is sharper if the range is many standard deviations wide.
            With neither a range nor a kurtosis, the proof is an asymptotic test.
        source: The paper, theorem and version that states the claim.

    Raises:
        ClaimError: If the bound is not positive, the kurtosis is below 1, or the range
            is empty or infinite.
    """

    bound: float
    truth: Callable[[Any], float]
    range: Range | None = field(default=None, kw_only=True)
    kurtosis: float | None = field(default=None, kw_only=True)
    source: str = field(default="", kw_only=True)
    kind = "VarianceAtMost"
    margin = None

    def __post_init__(self) -> None:
        _check(self, bound=self.bound)
        kurtosis = 1 if self.kurtosis is None else self.kurtosis
        if not (is_number(kurtosis) and 1 <= kurtosis < math.inf):
            raise ClaimError(
                "VarianceAtMost: expected a finite kurtosis >= 1, got "
                f"kurtosis={self.kurtosis!r}"
            )

    def __str__(self) -> str:
        return f"variance ≤ {self.bound:.6g}"


Promise = Unbiased | VarianceAtMost


def _check(promise: Promise, **positive: float) -> None:
    """Raise ``ClaimError`` unless parameters are finite and > 0, and a range is valid.

    A range that is a function is not checked here.
    """
    for name, value in positive.items():
        check_positive(promise.kind, name, value)
    if promise.range is not None and not callable(promise.range):
        checked_range(promise.range, promise.kind, ClaimError)


def checked_range(given: Any, owner: str, error: type[Exception]) -> Limits:
    """Return a declared range as two numbers.

    Args:
        given: The declared range.
        owner: The beginning of the error's message.
        error: The class of the error.

    Raises:
        error: If the range is not two finite numbers low < high.
    """
    try:
        low, high = (float(end) for end in given)
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    if not (math.isfinite(high - low) and low < high):
        raise error(
            f"{owner}: expected a range (low, high) of finite numbers with low < high, got "
            f"{given!r}"
        )
    return low, high
