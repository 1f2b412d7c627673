"""Privacy curves from Rényi divergences of many orders, or from ρ-zCDP.

Divergences of each order, and ρ, add up under composition. Only the sum is converted to
a curve.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb

from auditdp.accountants.accountant import Analysis, Description, Soundness
from auditdp.accountants.parameter_checks import check_delta, check_epsilon
from auditdp.accountants.root_finding import crossing
from auditdp.errors import MissingExtraError
from auditdp.mechanism.protocol import Array

LOG_MOMENT_ERROR = 1e-12
"""Amount that is added to (α−1) times the divergence of each use.

dp-accounting ends its series at terms of e^−30 = 9e-14. Its rounding can make a
divergence zero or negative, for which it returns ε = 0. That this amount covers both
errors was measured and is not derived. So these curves prove nothing; the curves on
grids of losses (``loss_grid``) are tighter, and are proofs.
"""


def dp_accounting() -> Any:
    """Return the module dp-accounting, which is imported only when a number is needed.

    Raises:
        MissingExtraError: If it is not installed.
    """
    try:
        import dp_accounting.rdp
    except ModuleNotFoundError as error:
        raise MissingExtraError.of(error) or error from None
    return dp_accounting


class RenyiCurve(Analysis):
    """The curve of T equal uses of the data, from the Rényi divergences of one use.

    Each order gives an ε for a δ, and the least ε over the orders is taken.

    Source: Canonne, Kamath & Steinke (2020), "The Discrete Gaussian for Differential
    Privacy", arXiv:2004.00010v4, Proposition 12, as implemented in dp-accounting.
    """

    soundness = Soundness.UNPROVED
    steps: int
    """T, the number of uses."""

    def divergences(self) -> tuple[Array, Array]:
        """Return orders α > 1, and for each an upper bound on D_α of one use."""
        raise NotImplementedError

    @cached_property
    def _composed(self) -> tuple[Any, Any]:
        # dp-accounting logs the name of every order that it leaves out.
        absl = logging.getLogger("absl")
        disabled, absl.disabled = absl.disabled, True
        try:
            orders, each = self.divergences()
        finally:
            absl.disabled = disabled
        largest = np.maximum(each, 0.0) + LOG_MOMENT_ERROR / (orders - 1)
        return orders, self.steps * largest

    def delta_at(self, epsilon: float) -> float:
        """Return the least δ at ε over the orders; 0 for ε = ``inf``."""
        check_epsilon(type(self).__name__, epsilon)
        if epsilon == math.inf:
            return 0.0
        library = dp_accounting().rdp.rdp_privacy_accountant
        return float(library.compute_delta(*self._composed, epsilon)[0])

    def epsilon_at(self, delta: float) -> float:
        """Return the least ε over the orders; ``inf`` for δ = 0."""
        check_delta(type(self).__name__, delta)
        if delta == 0:
            return math.inf
        library = dp_accounting().rdp.rdp_privacy_accountant
        return float(library.compute_epsilon(*self._composed, delta)[0])


@dataclass(frozen=True)
class ZCDP(Analysis):
    """The curve that ρ-zCDP implies.

    It is δ(ε) = inf over α > 1 of e^{(α−1)(αρ−ε)}/(α−1) · (1 − 1/α)^α.

    Every α gives a valid δ. Its logarithm is convex in α with derivative (2α−1)ρ − ε +
    ln(1 − 1/α), whose root is computed in floating point; the δ of that α is then
    evaluated in ball arithmetic and rounded up, so that an error of the root costs
    nothing but tightness.

    Source: Canonne, Kamath & Steinke (2020), "The Discrete Gaussian for Differential
    Privacy", arXiv:2004.00010v3, Proposition 12, for the Rényi curve αρ; composition, ρ
    = Σ ρ_i: Bun & Steinke (2016), arXiv:1605.02065, Lemma 1.7. A Gaussian release has ρ
    = Δ²/(2σ²), an ε-DP mechanism ρ = ε²/2 (ibid., Propositions 1.6 and 1.4).

    Args:
        rho: ρ of the whole, finite and > 0.
    """

    rho: float
    soundness = Soundness.UPPER
    adjacency = "any with that rho"
    source = "Canonne, Kamath & Steinke (2020), arXiv:2004.00010v3, Proposition 12"
    words = "any mechanism of {self.rho:.6g}-zCDP"

    @property
    def zcdp(self) -> Fraction:
        """The parameter ρ."""
        return Fraction(self.rho)

    def concentrated(self, order: float | None) -> tuple[arb, arb]:
        """Return (ρ, ρ) for every order, since Gaussian noise attains ρ."""
        del order
        return arb(self.rho), arb(self.rho)

    def includes(self, other: Description) -> bool:
        """Return True if the other class is ρ-zCDP."""
        return other.zcdp is not None and other.zcdp <= Fraction(self.rho)

    def enclosed_delta(self, epsilon: float) -> arb:
        """Return the δ at ε that a nearly optimal order gives."""
        # ``less`` is α − 1.
        less = arb(math.exp(self._log_order(epsilon)))
        exponent = (
            less * ((less + 1) * arb(self.rho) - arb(epsilon))
            + less * less.log()
            - (less + 1) * less.log1p()
        )
        return exponent.exp()

    def _log_order(self, epsilon: float) -> float:
        """Return ln(α − 1) of the best order α in double precision, in [−700, 700]."""
        # Doubles overflow beyond e^709.
        largest = 700.0

        def falling(u: float) -> float:
            return (
                math.log(epsilon + math.log1p(math.exp(-u)))
                - math.log(self.rho)
                - math.log1p(2 * math.exp(u))
            )

        # The best order of an extreme ε lies outside, and the nearest end is used.
        if falling(-largest) <= 0 or falling(largest) >= 0:
            return math.copysign(largest, falling(0.0))
        return crossing(falling, -largest, largest)
