"""Laplace noise, composed as what it is: no composition of (ε, 0)-DP mechanisms loses as little.

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
from typing import ClassVar

import numpy as np
from flint import arb

from auditdp.accountants.base import Soundness, check_epsilon, check_positive, settle
from auditdp.accountants.composition.equal import Composition
from auditdp.accountants.description import CompositionPart, Description
from auditdp.accountants.dp_sgd.loss_distributions import GridCurve, OnGrid, from_above, from_below
from auditdp.accountants.normal import Enclosed
from auditdp.mechanism.laws import precision
from auditdp.mechanism.laws.balls import above, double_above
from auditdp.mechanism.protocol import Array

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
        return double_above(lambda read: Fraction(read(self.sensitivity)) / Fraction(read(self.scale)))

    def concentrated(self, order: float | None) -> tuple[arb, arb]:
        """Return D_α/α, which is attained by numbers that are Δ apart; as the supremum, that of α = 1."""

        def of_one() -> arb:
            epsilon = arb(self.sensitivity) / arb(self.scale)
            if order is None:
                return epsilon + (-epsilon).expm1()
            alpha = arb(order)
            moment = alpha * ((alpha - 1) * epsilon).expm1() + (alpha - 1) * (-alpha * epsilon).expm1()
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
        return max(math.exp(-reach) / 2 * (1 + way * 2.0**-50 * (8 + reach)) + way * 1e-300, 0.0)

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
        first, second = np.concatenate([[self._atom(reach, 1)], high, [0.0]]), np.concatenate([[0.5], low[::-1], [0.0]])
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
        return double_above(lambda read: self.count * Fraction(read(self.sensitivity)) / Fraction(read(self.scale)))


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
