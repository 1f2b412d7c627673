"""The composition theorems that papers quote, as the curves that they state, and the budget that is derived from them.

Each is sound and none is tight: ``OptimalComposition`` is what they bound. Their statements are about k adaptive
(ε, δ)-DP mechanisms and a δ̃ that the analyst chooses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from flint import arb

from auditdp.accountants.base import Inverted, Soundness, check_count, check_delta, check_epsilon, check_positive
from auditdp.accountants.composition.equal import Composition
from auditdp.mechanism.laws import precision
from auditdp.mechanism.laws.balls import above


@dataclass(frozen=True)
class AdvancedComposition(Inverted, Composition):
    """(kε(e^ε − 1) + ε√(2k ln(1/δ̃)), kδ + δ̃)-DP for every δ̃ in (0, 1).

    Source: Dwork, Rothblum & Vadhan (2010), "Boosting and Differential Privacy", FOCS, Theorem III.3.
    """

    soundness: ClassVar[Soundness] = Soundness.UPPER
    source: ClassVar[str] = "Dwork, Rothblum & Vadhan (2010), Theorem III.3"

    def delta_at(self, epsilon: float) -> float:
        """Return δ(ε), rounded up; 1 below kε(e^ε − 1), about which the theorem is silent."""
        check_epsilon(self.name, epsilon)
        with precision():
            each = arb(self.epsilon)
            beyond = arb(epsilon) - self.count * each * each.expm1()
            if not beyond > 0:
                return 1.0
            return min(1.0, above(self.count * arb(self.delta) + (-((beyond / each) ** 2) / (2 * self.count)).exp()))

    @property
    def largest_loss(self) -> float:
        """None: the theorem does not say that no loss is above kε."""
        return math.inf


@dataclass(frozen=True)
class KairouzCorollary(Composition, Inverted):
    """(ε̃, 1 − (1−δ)^k (1−δ̃))-DP for every δ̃ in [0, 1].

    With m = kε(e^ε − 1)/(e^ε + 1),

        ε̃ = min{ kε, m + ε√(2k ln(e + √k ε/δ̃)), m + ε√(2k ln(1/δ̃)) }.

    Source: Kairouz, Oh & Viswanath (2015), "The Composition Theorem for Differential Privacy", arXiv:1311.0776v4,
    Theorem 3.4.
    """

    soundness: ClassVar[Soundness] = Soundness.UPPER
    source: ClassVar[str] = "Kairouz, Oh & Viswanath (2015), arXiv:1311.0776v4, Theorem 3.4"

    def delta_at(self, epsilon: float) -> float:
        """Return δ(ε), rounded up; 1 below m, about which the theorem is silent.

        Solved for δ̃ with x = (ε̃ − m)²/(2kε²), the last two bounds are √k ε/(e^x − e) for x > 1, and e^−x.
        """
        check_epsilon(self.name, epsilon)
        if epsilon >= self.largest_loss:
            return self.own_delta
        with precision():
            each, root = arb(self.epsilon), arb(self.count).sqrt()
            beyond = arb(epsilon) - self.count * each * (each / 2).tanh()
            if not beyond > 0:
                return 1.0
            x = (beyond / (each * root)) ** 2 / 2
            extra = (-x).exp()
            if x > 1:
                extra = extra.min(root * each / (x.exp() - arb(1).exp()))
            own = self.any_failure()
            return min(1.0, above(own + (1 - own) * extra))


def corollary_budget(epsilon: float, delta: float, count: int) -> tuple[float, float]:
    """Return (ε₀, δ₀) = (ε/(2√(k ln(e + ε/δ))), δ/(2k)) per mechanism, which is said to make k of them (ε, δ)-DP.

    Stated for ε in (0, .9] and δ in (0, 1]; nothing is stated beyond. There it can be judged by ``OptimalComposition`` at
    (ε₀, δ₀), which says what k such mechanisms cost. The numbers are those of the formula in floating point.

    Source: Kairouz, Oh & Viswanath (2015), arXiv:1311.0776v4, Corollary 4.1.

    Args:
        epsilon: The whole ε in nats, finite and > 0.
        delta: The whole δ, in (0, 1].
        count: k, how many mechanisms share them.
    """
    check_positive("corollary_budget", epsilon=epsilon, delta=delta)
    check_delta("corollary_budget", delta)
    check_count("corollary_budget", count=count)
    return epsilon / (2 * math.sqrt(count * math.log(math.e + epsilon / delta))), delta / (2 * count)
