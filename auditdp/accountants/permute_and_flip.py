"""Permute-and-flip, the selection of the largest of some scores with exponential noise: ε-DP, and of no bounded range ε.

The largest of q_i + E_i is taken, E_i exponential with scale 2Δ/ε, where a neighbour moves every score by at most Δ
(McKenna & Sheldon 2020, "Permute-and-Flip", arXiv:2010.12603; with noise: Ding, Kifer, Steinke et al. 2021,
arXiv:2105.07260). With the weights w_i = e^(ε(q_i − max q)/(2Δ)) it takes r with probability w_r ∫₀¹ ∏_{s≠r} (1 − w_s u) du,
so that the odds of r and r' are

    O = (w_r/w_r') (1 − w_r' m)/(1 − w_r m),   m <= ½ the mean of u under the density ∝ ∏_{s≠r,r'} (1 − w_s u), which falls.

*Range.* ln O differs between neighbours by at most η = max(2 ln(2e^(ε/2) − 1), min(2ε, ε + ln 2)). Let g >= 0 be the lead
of r over r', in units of 2Δ/ε; neighbours change it by ε at most. As w_r <= 1 and m <= ½, e^g <= O <= 2e^g − 1. Where r
leads on one input by g and r' on the other by g', ln(2e^g − 1) + ln(2e^g' − 1) with g + g' <= ε is the largest for
g = g' = ε/2, as it is concave: the first term. Where r leads on both, by g and at least g − ε, O differs by a factor of at
most 2e^ε, and of at most e^2ε as a selection is ε-DP. So it is η²/8-zCDP, as every mechanism of bounded range η is
(``top_k``).

*Attained.* With leads of ±ε/2 of one of two scores it is randomised response with ε' = ln(2e^(ε/2) − 1) = ε − ε²/4 + ...:
its zCDP is that of ε-DP to first order, ε²/2, and four times the ε²/8 of the exponential mechanism.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from flint import arb

from auditdp.accountants.base import ROUNDED_UP, Inverted, Soundness, check_delta, epsilon_below
from auditdp.accountants.composition.equal import Composition, OptimalComposition, responses
from auditdp.accountants.description import Description
from auditdp.accountants.zcdp import ZCDP
from auditdp.mechanism.laws import precision
from auditdp.mechanism.laws.balls import above, below


@dataclass(frozen=True)
class PermuteAndFlip(Description):
    """``count`` adaptive selections.

    Args:
        epsilon: ε of each in nats, finite and > 0: 2Δ over the scale of the noise.
        count: How many there are.
    """

    epsilon: float
    count: int = 1
    adjacency: ClassVar[str] = "any with that sensitivity of the scores"
    words: ClassVar[str] = "any {self.count:,} selections by permute-and-flip of ε = {self.epsilon:.6g}"

    @property
    def eta(self) -> float:
        """η, the range of the losses of one selection, rounded up."""
        with precision():
            epsilon = arb(self.epsilon)
            other = (2 * epsilon).min(epsilon + arb(2).log())
            return above((2 * (2 * (epsilon / 2).exp() - 1).log()).max(other))

    @property
    def response(self) -> float:
        """ε' of the randomised response that it may be, rounded down."""
        with precision():
            return below((2 * (arb(self.epsilon) / 2).expm1()).log1p())

    @property
    def zcdp(self) -> Fraction:
        """ρ of range η, or of ε-DP."""
        return self.count * min(Fraction(self.eta) ** 2 / 8, Fraction(self.epsilon) ** 2 / 2)

    def concentrated(self, order: float | None) -> tuple[arb, arb]:
        """Return what the randomised responses have that it may be, and the least that follows of range and ε."""
        low, _ = responses([(self.response, self.count)], order)
        _, high = super().concentrated(order)
        return low, high

    def wider(self) -> tuple[Composition]:
        """Return the compositions of ε-DP mechanisms."""
        return (Composition(self.epsilon, 0.0, self.count),)


@dataclass(frozen=True)
class PermuteAndFlipUpper(PermuteAndFlip, Inverted):
    """The better of what all ε-DP mechanisms keep, and all of this ρ."""

    soundness: ClassVar[Soundness] = Soundness.UPPER
    source: ClassVar[str] = "ε-DP (McKenna & Sheldon 2020, arXiv:2010.12603), and its range (auditdp/accountants)"

    def delta_at(self, epsilon: float) -> float:
        """Return δ(ε), rounded up."""
        with precision():
            rho = above(arb(self.zcdp.numerator) / arb(self.zcdp.denominator))
        return min(OptimalComposition(self.epsilon, 0.0, self.count).delta_at(epsilon), ZCDP(rho).delta_at(epsilon))


@dataclass(frozen=True)
class PermuteAndFlipLower(PermuteAndFlip):
    """Two scores, whose lead changes sides in each selection: randomised responses, rounded down."""

    soundness: ClassVar[Soundness] = Soundness.LOWER
    source: ClassVar[str] = "two scores that are nearly equal (auditdp/accountants/permute_and_flip.py)"

    def delta_at(self, epsilon: float) -> float:
        """Return δ(ε) of the composed responses."""
        return OptimalComposition(self.response, 0.0, self.count).delta_at(epsilon) * (1 - 2 * ROUNDED_UP)

    def epsilon_at(self, delta: float) -> float:
        """Return an ε at which more than δ is lost."""
        check_delta(self.name, delta)
        pure = OptimalComposition(self.response, 0.0, self.count).largest_loss
        return math.nextafter(pure, 0) if delta == 0 else epsilon_below(self.delta_at, delta, pure=pure)
