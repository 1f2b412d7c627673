"""The Gaussian mechanism: its exact curve, and the formula by which its noise is usually chosen.

Laplace noise, composed as what it is: no composition of (ε, 0)-DP mechanisms loses as little.

A release adds noise of scale b to a number that neighbours move by Δ at most. With ε₀ = Δ/b, the loss of an output x of
P = Lap(0, b) against Q = Lap(Δ, b) is ε₀ for x <= 0, −ε₀ for x >= Δ and ε₀ − 2x/b between, so that

    δ(ε) = 1 − e^((ε − ε₀)/2) for |ε| <= ε₀,   1 − e^ε below,   0 above.

That rises with ε₀ at every ε of either sign, and is the same in both orders. So numbers that are less than Δ apart lose less
everywhere, and so do adaptive compositions of them: the pair dominates each release, whatever was released before (Zhu, Dong
& Wang 2022, "Optimal Accounting of Differential Privacy via Characteristic Function", arXiv:2106.08567v3, Theorem 10). It is
attained: the composed curve is the true one, which grids bound from either side. A grid has a whole number n of steps w up
to nw, which replaces ε₀: a larger one above, and a smaller one below.

*zCDP.* A release is (ε₀ − 1 + e^−ε₀)-zCDP, and no less: that is D_1, and D_α <= αD_1 for every α > 1. With t = α − ½,

    (α − 1) D_α = ln(α/(2α−1) e^((α−1)ε₀) + (α−1)/(2α−1) e^(−αε₀)) = ln F(t²) − ε₀/2,  F(w) = cosh ε₀√w + sinh(ε₀√w)/(2√w),

which is 0 at w = ¼, where α = 1. F is entire and of order ½. Where F(−y²) = 0 for a complex y, u(x) = cos xy + sin(xy)/(2y)
has −u″ = y²u, u(0) = 1, u′(0) = ½ and u(ε₀) = 0, so that y² ∫|u|² = ½ + ∫|u′|² > 0. Hence F(w) = F(0) ∏(1 + w/y_k²) with
y_k² > 0 (Hadamard), and ln F is concave in w = ¼ + α(α − 1) > 0, below its tangent at ¼, whose rise is α(α − 1) D_1. (The
constant is that of Harrison & Manurangsi 2025, arXiv:2510.25746.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from flint import arb

from auditdp.accountants.accountant import (
    AccountantError,
    Inverted,
    Soundness,
    check_epsilon,
    check_positive,
    greatest,
    settle,
)
from auditdp.accountants.composition import Composition
from auditdp.accountants.description import CompositionPart, Description
from auditdp.accountants.loss_grid import GridCurve, OnGrid, from_above, from_below
from auditdp.accountants.normal_quantiles import Enclosed
from auditdp.mechanism.laws import precision
from auditdp.mechanism.laws.additive import gaussian_delta
from auditdp.mechanism.protocol import Array
from auditdp.numerics.balls import above, ball, double_above


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
        return (
            gaussian_delta(ball(square).sqrt(), arb(epsilon))
            if epsilon < math.inf
            else arb(0)
        )


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
    def sigma_for(
        cls, epsilon: float, delta: float, *, sensitivity: float = 1.0, count: int = 1
    ) -> float:
        """Return the smallest σ, rounded up, with which ``count`` releases are (epsilon, delta)-DP."""
        check_positive("sigma_for", delta=delta, sensitivity=sensitivity)
        check_epsilon("sigma_for", epsilon)
        return 1 / greatest(
            lambda inverse: cls(1 / inverse, sensitivity, count).delta_at(epsilon),
            delta,
        )


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
            return min(
                1.0,
                above(
                    arb(1.25) * (-(arb(used) ** 2) / (2 * ball(self.gaussian))).exp()
                ),
            )

    @classmethod
    def sigma_for(
        cls,
        epsilon: float,
        delta: float,
        *,
        sensitivity: float = 1.0,
        everywhere: bool = False,
    ) -> float:
        """Return Δ√(2 ln(1.25/δ))/ε, rounded up.

        Raises:
            AccountantError: If ``epsilon`` > 1 and not ``everywhere``.
        """
        check_positive(
            "sigma_for", epsilon=epsilon, delta=delta, sensitivity=sensitivity
        )
        if epsilon > 1 and not everywhere:
            raise AccountantError(
                f"ClassicGaussian: the formula is proved for epsilon <= 1, got epsilon={epsilon!r}; use GaussianCurve, "
                "or everywhere=True for what is deployed without a proof"
            )
        with precision():
            return above(
                arb(sensitivity)
                * (2 * (arb(1.25) / arb(delta)).log()).sqrt()
                / arb(epsilon)
            )


SOURCE = "the attained pair (Zhu, Dong & Wang 2022, arXiv:2106.08567v3, Theorem 10)"


@dataclass(frozen=True)
class LaplaceNoise(Description):
    """``count`` releases of any number of a sensitivity plus Laplace noise, the query being chosen adaptively.

    Args:
        scale: b of the noise, finite and > 0: its density is e^(−|x|/b)/(2b).
        sensitivity: Δ, the largest |q(x) − q(x′)| between neighbours, finite and > 0.
        count: How many releases there are.
    """

    scale: float
    sensitivity: float = 1.0
    count: int = 1
    adjacency: ClassVar[str] = "any with that sensitivity"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(type(self).__name__, ratio=self.sensitivity / self.scale)

    @property
    def text(self) -> str:
        """The class in a few words."""
        return (
            f"{self.count:,} release{'s' * (self.count > 1)} of any number of sensitivity {self.sensitivity:.6g} with "
            f"Laplace noise of scale {self.scale:.6g}"
        )

    @property
    def uses(self) -> int:
        """One for each release."""
        return self.count

    @property
    def epsilon(self) -> float:
        """ε₀ of one release, rounded up."""
        return double_above(
            lambda read: Fraction(read(self.sensitivity)) / Fraction(read(self.scale))
        )

    def concentrated(self, order: float | None) -> tuple[arb, arb]:
        """Return D_α/α, which is attained by numbers that are Δ apart; as the supremum, that of α = 1."""

        def of_one() -> arb:
            epsilon = arb(self.sensitivity) / arb(self.scale)
            if order is None:
                return epsilon + (-epsilon).expm1()
            alpha = arb(order)
            moment = (
                alpha * ((alpha - 1) * epsilon).expm1()
                + (alpha - 1) * (-alpha * epsilon).expm1()
            )
            return (moment / (2 * alpha - 1)).log1p() / ((alpha - 1) * alpha)

        with precision():
            found = self.count * settle(of_one)
        return found, found

    @property
    def zcdp(self) -> Fraction:
        """ρ, rounded up."""
        return Fraction(above(self.concentrated(None)[1]))

    @property
    def part(self) -> CompositionPart:
        """One release."""
        return CompositionPart(self.count, LaplaceUpper(self.scale, self.sensitivity))

    def wider(self) -> tuple[Composition]:
        """Return the compositions of ε₀-DP mechanisms."""
        return (Composition(self.epsilon, 0.0, self.count),)

    def largest_loss(self, negligible: float) -> float:
        """Return ε₀."""
        del negligible
        return self.epsilon

    def _cells(self, ends: Array, interval: float, steps: int) -> Enclosed:
        """Bounds on the probabilities under P of the losses between ends, in steps of the interval; steps·interval is ε₀.

        Those under Q are the same from the other end. Where e^x vanishes the absolute 1e-300 is what it may have been.
        """
        reach, widths = interval * steps, np.diff(ends) * interval
        found = np.exp((ends[1:] - steps) * (interval / 2)) * -np.expm1(-widths / 2) / 2
        off = 2.0**-50 * (8 + reach)
        return np.maximum(found * (1 - off) - 1e-300, 0.0), found * (1 + off) + 1e-300

    def _atom(self, reach: float, way: int) -> float:
        """A bound on the probability of the least loss under P, which is that of the largest under Q."""
        return max(
            math.exp(-reach) / 2 * (1 + way * 2.0**-50 * (8 + reach)) + way * 1e-300,
            0.0,
        )

    def _steps(self, interval: float, way: int) -> tuple[int, float]:
        """How many steps there are to ε₀, no longer than the interval, and how long they are, off to one side."""
        steps = math.ceil(self.sensitivity / self.scale / interval)
        return steps, self.sensitivity / self.scale / steps * (1 + way * 2.0**-50)


@dataclass(frozen=True)
class LaplaceUpper(LaplaceNoise, GridCurve):
    """The curve of the attained pair, rounded up, and no ε above kε₀.

    >>> round(LaplaceUpper(1.0, count=10).epsilon_at(1e-5), 2)
    9.99
    """

    soundness: ClassVar[Soundness] = Soundness.UPPER
    source: ClassVar[str] = SOURCE

    def losses(self, negligible: float, interval: float) -> list[OnGrid]:
        """Return the loss of a release, all of it on the grid or between points of it."""
        del negligible
        steps, interval = self._steps(interval, 1)
        low, high = self._cells(np.arange(-steps, steps + 1.0), interval, steps)
        reach = steps * interval
        first, second = (
            np.concatenate([[self._atom(reach, 1)], high, [0.0]]),
            np.concatenate([[0.5], low[::-1], [0.0]]),
        )
        # The largest loss is the last point of the last cell, where the polygon leaves it.
        first[-2] = (first[-2] + 0.5) * (1 + 2.0**-52)
        second[-2] = (second[-2] + self._atom(reach, -1)) * (1 - 2.0**-52)
        return [from_above(first, second, -steps, interval, rounding=2.0**-50 * reach)]

    def delta_at(self, epsilon: float) -> float:
        """Return δ(ε), rounded up."""
        check_epsilon(self.name, epsilon)
        return 0.0 if epsilon >= self._pure else super().delta_at(epsilon)

    def epsilon_at(self, delta: float) -> float:
        """Return ε(δ), rounded up."""
        return min(super().epsilon_at(delta), self._pure)

    @property
    def _pure(self) -> float:
        return double_above(
            lambda read: (
                self.count
                * Fraction(read(self.sensitivity))
                / Fraction(read(self.scale))
            )
        )


@dataclass(frozen=True)
class LaplaceLower(LaplaceNoise, GridCurve):
    """The curve of the attained pair, rounded down: cells around points of the grid have their points' losses exactly."""

    soundness: ClassVar[Soundness] = Soundness.LOWER
    source: ClassVar[str] = SOURCE

    def losses(self, negligible: float, interval: float) -> list[OnGrid]:
        """Return the loss of a release."""
        del negligible
        steps, interval = self._steps(interval, -1)
        ends = np.concatenate([[-steps], np.arange(-steps, steps) + 0.5, [steps]])
        low, high = self._cells(ends, interval, steps)
        reach = steps * interval
        first = np.concatenate([[self._atom(reach, -1)], low, [0.5]])
        second = np.concatenate([[0.5], high[::-1], [self._atom(reach, 1)]])
        return [from_below(first, second, interval)]
