"""Compositions of queries with bounded sensitivity and Gaussian or Laplace noise.

*Gaussian noise.* The curve of any number of releases is exact, in closed form. The
classic formula by which its noise is usually chosen is here as well.

*Laplace noise.* Its own loss is composed, since the bound for all ε₀-DP mechanisms is
larger. A release adds noise of scale b to a number that changes by at most Δ between
neighbours. With ε₀ = Δ/b, the loss of an output x of P = Lap(0, b) against Q = Lap(Δ,
b) is ε₀ for x <= 0, −ε₀ for x >= Δ and ε₀ − 2x/b between, so that

    δ(ε) = 1 − e^((ε − ε₀)/2) for |ε| <= ε₀,   1 − e^ε below,   0 above.

This δ(ε) rises with ε₀ at every ε of either sign, and is the same in both orders. So
numbers that are less than Δ apart have a smaller δ at every ε, and so have adaptive
compositions of them: the pair dominates each release, whatever was released before
(Zhu, Dong & Wang 2022, "Optimal Accounting of Differential Privacy via Characteristic
Function", arXiv:2106.08567v3, Theorem 10). The pair is attained, so that its composed
curve is the true one. Grids bound it from either side. A grid has n steps of length w,
and nw replaces ε₀: nw >= ε₀ for the upper bound, and nw <= ε₀ for the lower bound.

*zCDP of Laplace noise.* A release is ρ-zCDP with ρ = D_1 = ε₀ − 1 + e^−ε₀, and with no
smaller ρ, since D_α <= αD_1 for every α > 1. Proof: with t = α − ½,

    (α − 1) D_α = ln(α/(2α−1) e^((α−1)ε₀) + (α−1)/(2α−1) e^(−αε₀)) = ln F(t²) − ε₀/2,
    F(w) = cosh ε₀√w + sinh(ε₀√w)/(2√w),

which is 0 at w = ¼, where α = 1. F is entire and of order ½. Where F(−y²) = 0 for a
complex y, u(x) = cos xy + sin(xy)/(2y) has −u″ = y²u, u(0) = 1, u′(0) = ½ and u(ε₀) =
0, so that y² ∫|u|² = ½ + ∫|u′|² > 0. Hence F(w) = F(0) ∏(1 + w/y_k²) with y_k² > 0
(Hadamard), and ln F is concave in w = ¼ + α(α − 1) > 0, below its tangent at ¼, whose
rise is α(α − 1) D_1. (The constant is that of Harrison & Manurangsi 2025,
arXiv:2510.25746.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb

from auditdp.accountants.accountant import (
    Analysis,
    CompositionPart,
    Description,
    Soundness,
)
from auditdp.accountants.composition import Composition
from auditdp.accountants.loss_grid import GridCurve, OnGrid, from_above, from_below
from auditdp.accountants.normal_quantiles import Enclosed
from auditdp.accountants.parameter_checks import (
    AccountantError,
    check_epsilon,
    check_positive,
    check_target,
)
from auditdp.accountants.root_finding import greatest, settle
from auditdp.mechanism.laws import precision
from auditdp.mechanism.laws.additive import gaussian_delta
from auditdp.mechanism.protocol import Array
from auditdp.numerics.balls import above, ball, double_above


@dataclass(frozen=True)
class GaussianNoise(Description):
    """Releases of adaptively chosen queries of bounded sensitivity plus N(0, σ² I).

    Args:
        sigma: Standard deviation of the noise of each coordinate, finite and > 0.
        sensitivity: Δ, the largest ‖q(x) − q(x′)‖₂ between neighbours, finite and > 0.
        count: k, the number of releases.
    """

    sigma: float
    sensitivity: float = 1.0
    count: int = 1
    adjacency = "any with that sensitivity"

    @property
    def text(self) -> str:
        """The class in a few words."""
        return (
            f"{self.count:,} release{'s' * (self.count > 1)} of any query of sensitivity "
            f"{self.sensitivity:.6g} with Gaussian noise of σ = {self.sigma:.6g}"
        )

    @property
    def zcdp(self) -> Fraction:
        """The ρ for which the releases are ρ-zCDP, kΔ²/(2σ²).

        Source: Bun & Steinke (2016), arXiv:1605.02065, Proposition 1.6 and Lemma 1.7.
        """
        return self.count * (Fraction(self.sensitivity) / Fraction(self.sigma)) ** 2 / 2

    @property
    def gaussian(self) -> Fraction:
        """The square of the μ for which the releases are μ-Gaussian DP, kΔ²/σ².

        Source: Dong, Roth & Su (2022), arXiv:1905.02383v3, Theorem 2.7 and Corollary
        3.3.
        """
        return 2 * self.zcdp

    def concentrated(self, order: float | None) -> tuple[arb, arb]:
        """Return (ρ, ρ) for every order, since D_α = αρ if the queries are Δ apart.

        Source: Bun & Steinke (2016), arXiv:1605.02065, Lemma 2.4.
        """
        del order
        with precision():
            return ball(self.zcdp), ball(self.zcdp)

    @property
    def part(self) -> CompositionPart:
        """The k releases, and the curve of one release."""
        return CompositionPart(self.count, GaussianCurve(self.sigma, self.sensitivity))


class GaussianCurve(GaussianNoise, Analysis):
    """The exact curve of releases with Gaussian noise.

    It is δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) with μ = √count Δ/σ, which is attained
    by neighbours whose queries are Δ apart.

    Source: Balle & Wang (2018), "Improving the Gaussian Mechanism for Differential
    Privacy", arXiv:1805.06530v2, Theorem 8; composition: Dong, Roth & Su (2022),
    arXiv:1905.02383v3, Corollary 3.3.

    >>> round(GaussianCurve(1.0).delta_at(1.0), 6)
    0.126937
    """

    soundness = Soundness.EXACT
    source = "Balle & Wang (2018), arXiv:1805.06530v2, Theorem 8"

    def enclosed_delta(self, epsilon: float) -> arb:
        """Return a ball that contains δ(ε)."""
        return gaussian_delta(ball(self.gaussian).sqrt(), arb(epsilon))

    @classmethod
    def sigma_for(
        cls, epsilon: float, delta: float, *, sensitivity: float = 1.0, count: int = 1
    ) -> float:
        """Return the smallest σ, rounded up, for (epsilon, delta)-DP releases.

        Raises:
            AccountantError: If ``epsilon`` is not finite and >= 0, ``delta`` not in (0,
                1), another number not as in ``GaussianNoise``, or if no σ is found.
        """
        check_positive("sigma_for", sensitivity=sensitivity)
        check_target("sigma_for", epsilon, delta)
        # δ rises with Δ/σ, so that the largest Δ/σ gives the smallest σ.
        largest = greatest(
            lambda ratio: cls(sensitivity / ratio, sensitivity, count).delta_at(
                epsilon
            ),
            delta,
        )
        if not largest:
            raise AccountantError(
                "sigma_for: no sigma up to 1e300 times the sensitivity is proved to meet "
                f"epsilon={epsilon!r} and delta={delta!r}; use a larger target"
            )
        return sensitivity / largest


@dataclass(frozen=True)
class ClassicGaussian(GaussianNoise, Analysis):
    """The classic formula σ = Δ√(2k ln(1.25/δ))/ε for (ε, δ)-DP, proved for ε < 1.

    k releases count as one release of sensitivity √kΔ. For ε < 1 the curve is an upper
    bound, and by continuity also at ε = 1. For ε > 1 the curve is the δ of ε = 1. With
    ``everywhere`` the formula is used at every ε, as is common. For large ε its noise
    is too small, and the numbers prove nothing.

    Source: Dwork & Roth (2014), "The Algorithmic Foundations of Differential Privacy",
    Theorem A.1.

    Args:
        everywhere: Whether to use the formula where it is not proved; the other
            parameters are those of ``GaussianNoise``.
    """

    everywhere: bool = False
    source = "Dwork & Roth (2014), Theorem A.1"

    @property
    def soundness(self) -> Soundness:
        """UPPER, or APPROXIMATION with ``everywhere``."""
        return Soundness.APPROXIMATION if self.everywhere else Soundness.UPPER

    @property
    def largest_loss(self) -> float:
        """The largest ε at which the formula is used: 1, or ∞ with ``everywhere``."""
        return math.inf if self.everywhere else 1.0

    @property
    def own_delta(self) -> float:
        """The δ of the formula at ε = 1, or 0 with ``everywhere``."""
        return 0.0 if self.everywhere else self._rounded_up(1.0)

    def enclosed_delta(self, epsilon: float) -> arb:
        """Return 1.25 e^(−(εσ/Δ)²/(2k))."""
        exponent = -(arb(epsilon) ** 2) / (2 * ball(self.gaussian))
        return arb(1.25) * exponent.exp()

    @classmethod
    def sigma_for(
        cls,
        epsilon: float,
        delta: float,
        *,
        sensitivity: float = 1.0,
        everywhere: bool = False,
    ) -> float:
        """Return the formula's σ for one release, Δ√(2 ln(1.25/δ))/ε, rounded up.

        Raises:
            AccountantError: If ``epsilon`` or ``sensitivity`` is not finite and > 0,
                ``delta`` is not in (0, 1), or ``epsilon`` > 1 and not ``everywhere``.
        """
        check_positive("sigma_for", epsilon=epsilon, sensitivity=sensitivity)
        check_target("sigma_for", epsilon, delta)
        if epsilon > 1 and not everywhere:
            raise AccountantError(
                "ClassicGaussian: the formula is proved for epsilon <= 1, got "
                f"epsilon={epsilon!r}; use GaussianCurve, or everywhere=True for what is "
                "deployed without a proof"
            )
        with precision():
            deviations = (2 * (arb(1.25) / arb(delta)).log()).sqrt()
            return above(arb(sensitivity) * deviations / arb(epsilon))


@dataclass(frozen=True)
class LaplaceNoise(Description):
    """Releases of adaptively chosen numbers of bounded sensitivity plus Laplace noise.

    Args:
        scale: b of the noise, finite and > 0: its density is e^(−|x|/b)/(2b).
        sensitivity: Δ, the largest |q(x) − q(x′)| between neighbours, finite and > 0.
        count: k, the number of releases.
    """

    scale: float
    sensitivity: float = 1.0
    count: int = 1
    adjacency = "any with that sensitivity"
    source = "the attained pair (Zhu, Dong & Wang 2022, arXiv:2106.08567v3, Theorem 10)"

    def __post_init__(self) -> None:
        super().__post_init__()
        # The quotient of extreme numbers may be 0 or infinite.
        check_positive(type(self).__name__, ratio=self.sensitivity / self.scale)

    @property
    def text(self) -> str:
        """The class in a few words."""
        return (
            f"{self.count:,} release{'s' * (self.count > 1)} of any number of sensitivity "
            f"{self.sensitivity:.6g} with Laplace noise of scale {self.scale:.6g}"
        )

    @property
    def uses(self) -> int:
        """The number of releases."""
        return self.count

    @property
    def epsilon(self) -> float:
        """ε₀ = Δ/b of one release, rounded up."""
        return double_above(
            lambda rational: rational(self.sensitivity) / rational(self.scale)
        )

    def concentrated(self, order: float | None) -> tuple[arb, arb]:
        """Return the largest D_α/α of all releases, as the lower and the upper bound.

        It is the value for numbers that are Δ apart. For ``order`` = None it is D_1,
        the supremum over α.
        """

        def of_one_release() -> arb:
            epsilon = arb(self.sensitivity) / arb(self.scale)
            # D_1 = ε₀ − 1 + e^−ε₀.
            if order is None:
                return epsilon + (-epsilon).expm1()
            alpha = arb(order)
            moment = (
                alpha * ((alpha - 1) * epsilon).expm1()
                + (alpha - 1) * (-alpha * epsilon).expm1()
            )
            return (moment / (2 * alpha - 1)).log1p() / ((alpha - 1) * alpha)

        with precision():
            divergence = self.count * settle(of_one_release)
        return divergence, divergence

    @property
    def zcdp(self) -> Fraction:
        """The smallest ρ for which the releases are ρ-zCDP, rounded up."""
        return Fraction(above(self.concentrated(None)[1]))

    @property
    def part(self) -> CompositionPart:
        """The k releases, and the curve of one release."""
        return CompositionPart(self.count, LaplaceUpper(self.scale, self.sensitivity))

    def wider(self) -> tuple[Composition]:
        """Return a tuple of one class: all compositions of k ε₀-DP mechanisms."""
        return (Composition(self.epsilon, 0.0, self.count),)

    def loss_quantile(self, negligible: float) -> float:
        """Return ε₀, which the loss of one release never exceeds."""
        del negligible
        return self.epsilon

    def _steps(self, interval: float, way: int) -> tuple[int, float]:
        """Return the number of grid steps from 0 to ε₀, and the length of a step.

        The length is at most about ``interval``. It is rounded up for ``way`` = 1, and
        down for ``way`` = −1.
        """
        # The quotient and the division are off by a unit in the last place each.
        ratio = self.sensitivity / self.scale
        steps = math.ceil(ratio / interval)
        return steps, ratio / steps * (1 + way * 2.0**-50)

    def _cells(self, ends: Array, interval: float, steps: int) -> Enclosed:
        """Return bounds on the probabilities under P of the losses between the ends.

        In reverse order they are the bounds under Q.

        Args:
            ends: Ascending ends of cells of losses, in steps.
            interval: Length of a step, in nats.
            steps: Number of steps from 0 to ε₀.
        """
        masses = np.exp((ends[1:] - steps) * (interval / 2))
        masses = masses * -np.expm1(-np.diff(ends) * interval / 2) / 2
        error = self._relative_error(interval * steps)
        # Where e^x underflows, its true value is below 1e-300.
        low = np.maximum(masses * (1 - error) - 1e-300, 0.0)
        return low, masses * (1 + error) + 1e-300

    def _atom(self, reach: float, way: int) -> float:
        """Return a bound on the probability under P of the smallest loss, −``reach``.

        The bound is an upper one for ``way`` = 1, and a lower one for ``way`` = −1. The
        largest loss has the same probability under Q.
        """
        factor = 1 + way * self._relative_error(reach)
        return max(math.exp(-reach) / 2 * factor + way * 1e-300, 0.0)

    def _relative_error(self, reach: float) -> float:
        return 2.0**-50 * (8 + reach)


class LaplaceUpper(LaplaceNoise, GridCurve):
    """An upper bound on the curve of k releases with Laplace noise.

    Its ε never exceeds kε₀.
    >>> round(LaplaceUpper(1.0, count=10).epsilon_at(1e-5), 2)
    9.99
    """

    soundness = Soundness.UPPER

    def losses(self, negligible: float, interval: float) -> list[OnGrid]:
        """Return a list of one loss: a release's, on a grid that bounds it from above.

        ``negligible`` has no effect.
        """
        del negligible
        steps, interval = self._steps(interval, 1)
        low, high = self._cells(np.arange(-steps, steps + 1.0), interval, steps)
        reach = steps * interval
        first = np.concatenate([[self._atom(reach, 1)], high, [0.0]])
        second = np.concatenate([[0.5], low[::-1], [0.0]])
        # The largest loss, ε₀, is an outcome of its own at the last point. Its mass is
        # added to the last cell.
        first[-2] = (first[-2] + 0.5) * (1 + 2.0**-52)
        second[-2] = (second[-2] + self._atom(reach, -1)) * (1 - 2.0**-52)
        return [from_above(first, second, -steps, interval, rounding=2.0**-50 * reach)]

    @property
    def largest_loss(self) -> float:
        """The largest loss in nats, kε₀, rounded up."""
        return double_above(
            lambda rational: (
                self.count * rational(self.sensitivity) / rational(self.scale)
            )
        )

    def delta_at(self, epsilon: float) -> float:
        """Return δ(ε), rounded up."""
        check_epsilon(self.name, epsilon)
        return 0.0 if epsilon >= self.largest_loss else super().delta_at(epsilon)

    def epsilon_at(self, delta: float) -> float:
        """Return ε(δ), rounded up, and at most kε₀."""
        return min(super().epsilon_at(delta), self.largest_loss)


class LaplaceLower(LaplaceNoise, GridCurve):
    """A lower bound on the curve of k releases with Laplace noise.

    A cell whose middle is a point of the grid has exactly the loss of this point.
    """

    soundness = Soundness.LOWER

    def losses(self, negligible: float, interval: float) -> list[OnGrid]:
        """Return a list of one loss: a release's, on a grid that bounds it from below.

        ``negligible`` has no effect.
        """
        del negligible
        steps, interval = self._steps(interval, -1)
        ends = np.concatenate([[-steps], np.arange(-steps, steps) + 0.5, [steps]])
        low, high = self._cells(ends, interval, steps)
        reach = steps * interval
        first = np.concatenate([[self._atom(reach, -1)], low, [0.5]])
        second = np.concatenate([[0.5], high[::-1], [self._atom(reach, 1)]])
        return [from_below(first, second, interval)]
