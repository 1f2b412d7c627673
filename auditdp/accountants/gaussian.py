"""The Gaussian mechanism: its exact curve, and the formula by which its noise is usually chosen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from flint import arb

from auditdp.accountants.base import AccountantError, Inverted, Soundness, check_epsilon, check_positive, greatest
from auditdp.accountants.description import CompositionPart, Description
from auditdp.mechanism.laws import precision
from auditdp.mechanism.laws.balls import above, ball
from auditdp.mechanism.laws.gaussian import gaussian_delta


@dataclass(frozen=True)
class GaussianNoise(Description):
    """``count`` releases of any query of a sensitivity plus N(0, σ² I), the query being chosen adaptively.

    Args:
        sigma: Standard deviation of the noise of each coordinate, finite and > 0.
        sensitivity: Δ, the largest ‖q(x) − q(x′)‖₂ between neighbours, finite and > 0.
        count: How many releases there are.
    """

    sigma: float
    sensitivity: float = 1.0
    count: int = 1
    adjacency: ClassVar[str] = "any with that sensitivity"

    @property
    def text(self) -> str:
        """The class in a few words."""
        return (
            f"{self.count:,} release{'s' * (self.count > 1)} of any query of sensitivity {self.sensitivity:.6g} with "
            f"Gaussian noise of σ = {self.sigma:.6g}"
        )

    @property
    def zcdp(self) -> Fraction:
        """ρ = kΔ²/(2σ²) (Bun & Steinke 2016, arXiv:1605.02065, Proposition 1.6 and Lemma 1.7)."""
        return self.count * (Fraction(self.sensitivity) / Fraction(self.sigma)) ** 2 / 2

    @property
    def gaussian(self) -> Fraction:
        """μ² = kΔ²/σ² (Dong, Roth & Su 2022, arXiv:1905.02383v3, Theorem 2.7 and Corollary 3.3)."""
        return 2 * self.zcdp

    def concentrated(self, order: float | None) -> tuple[arb, arb]:
        """Return ρ for every order: D_α = αρ where the queries are Δ apart (Bun & Steinke 2016, Lemma 2.4)."""
        del order
        with precision():
            return ball(self.zcdp), ball(self.zcdp)

    @property
    def part(self) -> CompositionPart:
        """One release."""
        return CompositionPart(self.count, GaussianCurve(self.sigma, self.sensitivity))


class GaussianShaped(Inverted):
    """The exact curve of μ-Gaussian DP, δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), from the μ² of what is described."""

    if TYPE_CHECKING:
        name: str
        gaussian: Fraction

    def delta_at(self, epsilon: float) -> float:
        """Return δ(ε), rounded up."""
        check_epsilon(self.name, epsilon)
        return min(1.0, above(curve_of(self.gaussian, epsilon)))


def curve_of(square: Fraction, epsilon: float) -> arb:
    """Return δ(ε) of μ-Gaussian DP from μ², enclosed."""
    with precision():
        return gaussian_delta(ball(square).sqrt(), arb(epsilon)) if epsilon < math.inf else arb(0)


@dataclass(frozen=True)
class GaussianCurve(GaussianShaped, GaussianNoise):
    """The exact curve of such releases.

    It is that of μ = √count Δ/σ, attained by neighbours whose queries are Δ apart.

    Source: Balle & Wang (2018), "Improving the Gaussian Mechanism for Differential Privacy", arXiv:1805.06530v2,
    Theorem 8; composition: Dong, Roth & Su (2022), arXiv:1905.02383v3, Corollary 3.3.

    >>> round(GaussianCurve(1.0).delta_at(1.0), 6)
    0.126937
    """

    soundness: ClassVar[Soundness] = Soundness.EXACT
    source: ClassVar[str] = "Balle & Wang (2018), arXiv:1805.06530v2, Theorem 8"

    @classmethod
    def sigma_for(cls, epsilon: float, delta: float, *, sensitivity: float = 1.0, count: int = 1) -> float:
        """Return the smallest σ, rounded up, with which ``count`` releases are (epsilon, delta)-DP."""
        check_positive("sigma_for", delta=delta, sensitivity=sensitivity)
        check_epsilon("sigma_for", epsilon)
        return 1 / greatest(lambda inverse: cls(1 / inverse, sensitivity, count).delta_at(epsilon), delta)


@dataclass(frozen=True)
class ClassicGaussian(GaussianNoise, Inverted):
    """(ε, δ)-DP of such releases by σ = Δ√(2k ln(1.25/δ))/ε, which is proved for ε < 1; k of them are one of √kΔ.

    There it is an upper bound, and at ε = 1 by continuity, so that above 1 the δ of 1 holds as well. ``everywhere``
    uses the formula at every ε, as many do: the noise is then too small for large ε, and the numbers prove nothing.

    Source: Dwork & Roth (2014), "The Algorithmic Foundations of Differential Privacy", Theorem A.1.

    Args:
        everywhere: Whether to use the formula where it is not proved; the others are those of ``GaussianNoise``.
    """

    everywhere: bool = False
    source: ClassVar[str] = "Dwork & Roth (2014), Theorem A.1"

    @property
    def soundness(self) -> Soundness:
        """An upper bound where the theorem speaks, an approximation where it is stretched."""
        return Soundness.APPROXIMATION if self.everywhere else Soundness.UPPER

    @property
    def largest_loss(self) -> float:
        """The ε beyond which nothing more is proved."""
        return math.inf if self.everywhere else 1.0

    def delta_at(self, epsilon: float) -> float:
        """Return 1.25 e^(−(εσ/Δ)²/(2k)), rounded up, at most 1."""
        check_epsilon(self.name, epsilon)
        used = epsilon if self.everywhere else min(epsilon, 1.0)
        if math.isinf(used):
            return 0.0
        with precision():
            return min(1.0, above(arb(1.25) * (-(arb(used) ** 2) / (2 * ball(self.gaussian))).exp()))

    @classmethod
    def sigma_for(cls, epsilon: float, delta: float, *, sensitivity: float = 1.0, everywhere: bool = False) -> float:
        """Return Δ√(2 ln(1.25/δ))/ε, rounded up.

        Raises:
            AccountantError: If ``epsilon`` > 1 and not ``everywhere``.
        """
        check_positive("sigma_for", epsilon=epsilon, delta=delta, sensitivity=sensitivity)
        if epsilon > 1 and not everywhere:
            raise AccountantError(
                f"ClassicGaussian: the formula is proved for epsilon <= 1, got epsilon={epsilon!r}; use GaussianCurve, "
                "or everywhere=True for what is deployed without a proof"
            )
        with precision():
            return above(arb(sensitivity) * (2 * (arb(1.25) / arb(delta)).log()).sqrt() / arb(epsilon))
