"""Curves from Rényi divergences of many orders.

Zero-concentrated differential privacy: it adds up under composition, and is turned into a curve once, at the end.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from flint import arb

from auditdp.accountants.accountant import (
    Inverted,
    Soundness,
    check_delta,
    check_epsilon,
    crossing,
)
from auditdp.accountants.description import Description, Repeated
from auditdp.errors import MissingExtraError
from auditdp.mechanism.laws import precision
from auditdp.mechanism.protocol import Array
from auditdp.numerics.balls import above

LOG_MOMENT_ERROR = 1e-12
"""What is added to (α−1) times the divergence of each use; dp-accounting ends its series at terms of e^−30 = 9e-14, and
rounding can make it zero or negative, of which it makes ε = 0. That this is enough was measured and is not derived, so these
curves prove nothing; those of loss distributions are tighter, and do."""


def dp_accounting() -> Any:
    """Return dp-accounting, which is imported when a number is asked for.

    Raises:
        MissingExtraError: If it is not installed.
    """
    try:
        import dp_accounting.rdp
    except ModuleNotFoundError as error:
        raise MissingExtraError.of(error) or error from None
    return dp_accounting


@dataclass(frozen=True)
class RenyiCurve(Repeated):
    """The curve of T equal uses from the Rényi divergences of one: for each δ, the least ε over all orders.

    Source: Canonne, Kamath & Steinke (2020), "The Discrete Gaussian for Differential Privacy", arXiv:2004.00010v4,
    Proposition 12, as implemented in dp-accounting.
    """

    soundness: ClassVar[Soundness] = Soundness.UNPROVED

    def divergences(self) -> tuple[Array, Array]:
        """Return orders α > 1 and an upper bound on the divergence of one use for each."""
        raise NotImplementedError

    @cached_property
    def _composed(self) -> tuple[Any, Any]:
        absl = logging.getLogger("absl")
        disabled, absl.disabled = (
            absl.disabled,
            True,
        )  # dp-accounting names every order that it leaves out
        try:
            orders, each = self.divergences()
        finally:
            absl.disabled = disabled
        return orders, self.uses * (
            np.maximum(each, 0.0) + LOG_MOMENT_ERROR / (orders - 1)
        )

    def delta_at(self, epsilon: float) -> float:
        """Return the least δ over the orders."""
        check_epsilon(type(self).__name__, epsilon)
        if epsilon == math.inf:
            return 0.0
        return float(
            dp_accounting().rdp.rdp_privacy_accountant.compute_delta(
                *self._composed, epsilon
            )[0]
        )

    def epsilon_at(self, delta: float) -> float:
        """Return the least ε over the orders; ``inf`` for δ = 0."""
        check_delta(type(self).__name__, delta)
        if delta == 0:
            return math.inf
        return float(
            dp_accounting().rdp.rdp_privacy_accountant.compute_epsilon(
                *self._composed, delta
            )[0]
        )


@dataclass(frozen=True)
class ZCDP(Description, Inverted):
    """The curve that ρ-zCDP implies: δ(ε) = inf over α > 1 of e^{(α−1)(αρ−ε)}/(α−1) · (1 − 1/α)^α.

    Every α gives a valid δ. Its logarithm is convex in α with derivative (2α−1)ρ − ε + ln(1 − 1/α), whose root
    is found in floating point; the δ of that α is then evaluated in ball arithmetic and rounded up, so that an error of
    the root costs nothing but tightness.

    Source: Canonne, Kamath & Steinke (2020), "The Discrete Gaussian for Differential Privacy", arXiv:2004.00010v3,
    Proposition 12, for the Rényi curve αρ; composition, ρ = Σ ρ_i: Bun & Steinke (2016), arXiv:1605.02065, Lemma 1.7.
    A Gaussian release has ρ = Δ²/(2σ²), an ε-DP mechanism ρ = ε²/2 (ibid., Propositions 1.6 and 1.4).

    Args:
        rho: ρ of the whole, finite and > 0.
    """

    rho: float
    soundness: ClassVar[Soundness] = Soundness.UPPER
    adjacency: ClassVar[str] = "any with that rho"
    source: ClassVar[str] = (
        "Canonne, Kamath & Steinke (2020), arXiv:2004.00010v3, Proposition 12"
    )
    words: ClassVar[str] = "any mechanism of {self.rho:.6g}-zCDP"

    @property
    def zcdp(self) -> Fraction:
        """ρ."""
        return Fraction(self.rho)

    def concentrated(self, order: float | None) -> tuple[arb, arb]:
        """Return ρ for every order, which Gaussian noise attains."""
        del order
        return arb(self.rho), arb(self.rho)

    def includes(self, other: Description) -> bool:
        """Return whether the other class is ρ-zCDP."""
        return other.zcdp is not None and other.zcdp <= Fraction(self.rho)

    def delta_at(self, epsilon: float) -> float:
        """Return δ(ε), rounded up, at most 1."""
        check_epsilon(self.name, epsilon)
        if math.isinf(epsilon):
            return 0.0
        with precision():
            less = arb(math.exp(self._log_order(epsilon)))  # α − 1
            exponent = (
                less * ((less + 1) * arb(self.rho) - arb(epsilon))
                + less * less.log()
                - (less + 1) * less.log1p()
            )
            return min(1.0, above(exponent.exp()))

    def _log_order(self, epsilon: float) -> float:
        """ln(α − 1) of the best order α, to double precision, between -700 and 700."""

        def falling(u: float) -> float:
            return (
                math.log(epsilon + math.log1p(math.exp(-u)))
                - math.log(self.rho)
                - math.log1p(2 * math.exp(u))
            )

        if falling(-700.0) <= 0 or falling(700.0) >= 0:
            return math.copysign(700.0, falling(0.0))
        return crossing(falling, -700.0, 700.0)
