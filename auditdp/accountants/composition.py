"""Composition of equal mechanisms: the optimal curve, and older theorems.

All curves are about the k-fold adaptive composition of any (ε, δ)-DP mechanisms. In the
closed forms a double stands for the exact rational that it is; they are evaluated in
ball arithmetic and rounded up. At the ends of a curve, kε and the parts' own δ, a
double stands for the decimal that people write (``double_above``).

``OptimalComposition`` is the exact curve. The other theorems are sound, and none is
tight. ``AdvancedComposition`` and ``KairouzCorollary`` are stated with a δ̃ that the
analyst chooses; here it is eliminated.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from auditdp.accountants.accountant import (
    Analysis,
    CompositionPart,
    Description,
    Soundness,
)
from auditdp.accountants.parameter_checks import (
    AccountantError,
    check_count,
    check_delta,
    check_positive,
    check_target,
)
from auditdp.accountants.root_finding import greatest, settle
from auditdp.mechanism.laws import precision
from auditdp.numerics.balls import above, double_above

KAIROUZ = "Kairouz, Oh & Viswanath (2015), arXiv:1311.0776v4"


@dataclass(frozen=True)
class Composition(Description):
    """Every k-fold adaptive composition of (ε, δ)-DP mechanisms.

    Args:
        epsilon: ε of each mechanism in nats, finite and > 0.
        delta: δ of each mechanism, in [0, 1].
        count: k, the number of mechanisms.
    """

    epsilon: float
    delta: float
    count: int
    adjacency = "as for the parts"
    words = (
        "any {self.count:,} adaptive mechanisms of "
        "({self.epsilon:.6g}, {self.delta:.6g})-DP"
    )

    @property
    def zcdp(self) -> Fraction | None:
        """The ρ for which the class is ρ-zCDP, kε²/2; None if δ > 0.

        Source: Bun & Steinke (2016), arXiv:1605.02065, Proposition 1.4 and Lemma 1.7.
        """
        return None if self.delta else self.count * Fraction(self.epsilon) ** 2 / 2

    def concentrated(self, order: float | None) -> tuple[arb, arb]:
        """Return (d, d) with d = D_α/α of k randomised responses; (∞, ∞) if δ > 0.

        For ``order`` = None, d is the supremum over α. With δ > 0 a part may reveal its
        input.
        """
        if self.delta:
            return arb.pos_inf(), arb.pos_inf()
        return responses([(self.epsilon, self.count)], order)

    @property
    def part(self) -> CompositionPart:
        """The k parts, and the curve of the worst (ε, δ)-DP mechanism."""
        curve = OptimalComposition(self.epsilon, self.delta, 1)
        return CompositionPart(self.count, curve)

    def includes(self, other: Description) -> bool:
        """Return True if the other class has at most k parts, each (ε, δ)-DP."""
        part = other.part
        if part is None or part.count > self.count:
            return False
        return part.curve.delta_at(self.epsilon) <= self.delta

    @property
    def largest_loss(self) -> float:
        """kε, rounded up; at larger ε the curve is ``own_delta``."""
        return double_above(lambda rational: self.count * rational(self.epsilon))

    @property
    def own_delta(self) -> float:
        """1 − (1−δ)^k, rounded up; no ε suffices for a smaller δ."""
        # The exact power has k times the digits of 1 − δ, which is slow for large k.
        if self.count > 64:
            return min(1.0, above(settle(self.any_failure)))
        return double_above(
            lambda rational: 1 - (1 - rational(self.delta)) ** self.count
        )

    def any_failure(self) -> arb:
        """Return 1 − (1−δ)^k, the probability that any part reveals its input."""
        if self.delta == 1:
            return arb(1)
        return -(self.count * (-arb(self.delta)).log1p()).expm1()


class OptimalComposition(Composition, Analysis):
    """The exact curve of k adaptive (ε, δ)-DP mechanisms in the worst case.

    Every (ε, δ)-DP mechanism is a post-processing of the one that reveals its input
    with probability δ and is randomised response with ε otherwise. If nothing is
    revealed, l of the k answers speak against the input with probability C(k,l)
    E^(k−l)/(1+E)^k, E = e^ε, with privacy loss (k−2l)ε. Let L be the largest l whose
    loss is above ε_g. Then δ(ε_g) = 1 − (1−δ)^k (1 − D) with

        D = Σ_{l<=L} C(k,l) (E^(k−l) − e^(ε_g) E^l)/(1+E)^k
          = P(Bin(k, 1/(1+E)) <= L) − e^(ε_g) P(Bin(k, E/(1+E)) <= L),

    two incomplete beta functions, computed with enough bits for their difference.

    Source: Kairouz, Oh & Viswanath (2015), "The Composition Theorem for Differential
    Privacy", arXiv:1311.0776v4, Theorem 3.3.

    Note:
        The theorem states the curve at ε_g = (k−2i)ε; between these points it follows
        from the same extreme pair.

    >>> round(OptimalComposition(0.1, 0.0, 20).epsilon_at(1e-6), 2)
    1.79
    """

    soundness = Soundness.EXACT
    source = f"{KAIROUZ}, Theorem 3.3"

    def enclosed_delta(self, epsilon: float) -> arb:
        """Return a ball that contains δ(ε_g) = 1 − (1−δ)^k (1 − D)."""
        # L is computed in fractions, since rounding must not change it.
        ratio = Fraction(epsilon) / Fraction(self.epsilon)
        max_against = math.ceil((self.count - ratio) / 2) - 1

        def curve() -> arb:
            any_revealed = self.any_failure()
            return any_revealed + (1 - any_revealed) * self._excess(
                arb(epsilon), max_against
            )

        return settle(curve)

    def _excess(self, epsilon: arb, max_against: int) -> arb:
        """Return the D of the curve at ε_g = ``epsilon``, with L = ``max_against``."""
        # No loss is above ε_g.
        if max_against < 0:
            return arb(0)
        against = 1 / (1 + arb(self.epsilon).exp())
        likely = binomial_cdf(self.count, max_against, against)
        unlikely = binomial_cdf(self.count, max_against, 1 - against)
        return likely - epsilon.exp() * unlikely

    @classmethod
    def largest_epsilon(
        cls, epsilon: float, delta: float, count: int, *, delta_each: float = 0.0
    ) -> float:
        """Return the largest ε of each of ``count`` mechanisms that meets a target.

        With this ε and δ = ``delta_each`` of each mechanism, their composition is
        (epsilon, delta)-DP.

        Raises:
            AccountantError: If a number is outside its range, or the composition of the
                mechanisms' own δ exceeds ``delta``.
        """
        check_target("largest_epsilon", epsilon, delta)
        largest = greatest(
            lambda each: cls(each, delta_each, count).delta_at(epsilon), delta
        )
        if not largest:
            raise AccountantError(
                f"largest_epsilon: {count} mechanisms with delta={delta_each!r} each exceed "
                f"delta={delta!r} whatever their epsilon; use a smaller delta_each"
            )
        return largest


class BasicComposition(Composition, Analysis):
    """Basic composition: the curve of the worst (kε, kδ)-DP mechanism.

    It is δ(ε_g) = kδ + (1 − kδ)(e^{kε} − e^{ε_g})₊/(1 + e^{kε}).

    Source: Dwork & Roth (2014), "The Algorithmic Foundations of Differential Privacy",
    Theorem 3.16. Every (kε, kδ)-DP mechanism is a post-processing of the worst one
    (Kairouz, Oh & Viswanath 2015).
    """

    soundness = Soundness.UPPER
    source = "Dwork & Roth (2014), Theorem 3.16"

    @property
    def own_delta(self) -> float:
        """kδ, rounded up, at most 1."""
        return min(
            1.0, double_above(lambda rational: self.count * rational(self.delta))
        )

    def enclosed_delta(self, epsilon: float) -> arb:
        """Return a ball that contains δ(ε_g), for ε_g < kε."""
        any_revealed = (arb(self.delta) * self.count).min(arb(1))
        largest = arb(self.epsilon) * self.count
        # The curve of randomised response with loss kε, without overflow.
        revealed = (1 - (arb(epsilon) - largest).exp()) / (1 + (-largest).exp())
        return any_revealed + (1 - any_revealed) * revealed


def responses(
    parts: Iterable[tuple[float, int]], order: float | None
) -> tuple[arb, arb]:
    """Return the largest D_α/α of compositions of ε-DP mechanisms.

    Randomised responses attain it: a Rényi divergence falls under post-processing and
    adds up over independent parts, and that of an adaptive composition is at most the
    sum of the parts' largest divergences. For one randomised response D_α is ln((e^{αε}
    + e^{(1−α)ε})/(1 + e^ε))/(α−1). It is at most αD_1 with D_1 = ε·tanh(ε/2): the loss
    is ±ε with mean D_1, so that Kearns & Saul (1998, "Large Deviation Methods for
    Approximate Probabilistic Inference") bound ln E[e^{λ·loss}] by λ(1 + λ)D_1. Since
    D_α/α tends to D_1 as α falls to 1, its supremum is D_1.

    Args:
        parts: Pairs of an ε and the number of parts that have it.
        order: α > 1, or None for the supremum over all α > 1.

    Returns:
        The value twice, as the lower and the upper bound of
        ``Description.concentrated``.
    """
    with precision():
        total = arb(0)
        for each, count in parts:
            epsilon = arb(each)
            if order is None:
                total += count * epsilon * (epsilon / 2).tanh()
                continue
            alpha = arb(order)
            moment = (alpha * epsilon).exp() + ((1 - alpha) * epsilon).exp()
            log_moment = (moment / (1 + epsilon.exp())).log()
            total += count * log_moment / ((alpha - 1) * alpha)
        return total, total


def binomial_cdf(count: int, successes: int, probability: arb) -> arb:
    """Return P(Bin(count, probability) <= successes) for 0 <= successes < count."""
    # The shorter tail is computed, so that small probabilities keep their digits.
    more, fewer = arb(successes + 1), arb(count - successes)
    if successes + 1 > count * probability:
        return 1 - probability.beta_lower(more, fewer, regularized=True)
    return (1 - probability).beta_lower(fewer, more, regularized=True)


class AdvancedComposition(Composition, Analysis):
    """Advanced composition by Dwork, Rothblum & Vadhan.

    The composition is (kε(e^ε − 1) + ε√(2k ln(1/δ̃)), kδ + δ̃)-DP for every δ̃ in (0,
    1).

    Source: Dwork, Rothblum & Vadhan (2010), "Boosting and Differential Privacy", FOCS,
    Theorem III.3.
    """

    soundness = Soundness.UPPER
    source = "Dwork, Rothblum & Vadhan (2010), Theorem III.3"

    @property
    def largest_loss(self) -> float:
        """Infinity, since the theorem does not imply that every loss is at most kε."""
        return math.inf

    @property
    def own_delta(self) -> float:
        """kδ, rounded up, at most 1."""
        return self._rounded_up(math.inf)

    def enclosed_delta(self, epsilon: float) -> arb:
        """Return δ(ε_g); 1 if ε_g <= kε(e^ε − 1), where the theorem states nothing."""
        each = arb(self.epsilon)
        beyond = arb(epsilon) - self.count * each * each.expm1()
        if not beyond > 0:
            return arb(1)
        extra = (-((beyond / each) ** 2) / (2 * self.count)).exp()
        return self.count * arb(self.delta) + extra


class KairouzCorollary(Composition, Analysis):
    """The closed form of Kairouz, Oh & Viswanath that follows from their optimum.

    The composition is (ε̃, 1 − (1−δ)^k (1−δ̃))-DP for every δ̃ in [0, 1]. With m =
    kε(e^ε − 1)/(e^ε + 1),

        ε̃ = min{ kε, m + ε√(2k ln(e + √k ε/δ̃)), m + ε√(2k ln(1/δ̃)) }.

    Source: Kairouz, Oh & Viswanath (2015), "The Composition Theorem for Differential
    Privacy", arXiv:1311.0776v4, Theorem 3.4.
    """

    soundness = Soundness.UPPER
    source = f"{KAIROUZ}, Theorem 3.4"

    def enclosed_delta(self, epsilon: float) -> arb:
        """Return δ(ε̃); 1 if ε̃ <= m, where the theorem states nothing.

        With x = (ε̃ − m)²/(2kε²), the last two bounds give δ̃ = √k ε/(e^x − e), if x >
        1, and δ̃ = e^−x.
        """
        each, root = arb(self.epsilon), arb(self.count).sqrt()
        beyond = arb(epsilon) - self.count * each * (each / 2).tanh()
        if not beyond > 0:
            return arb(1)
        x = (beyond / (each * root)) ** 2 / 2
        extra = (-x).exp()
        # A comparison that balls do not decide is false, and keeps the larger bound.
        if x > 1:
            extra = extra.min(root * each / (x.exp() - arb(1).exp()))
        any_revealed = self.any_failure()
        return any_revealed + (1 - any_revealed) * extra


def corollary_budget(epsilon: float, delta: float, count: int) -> tuple[float, float]:
    """Return the (ε₀, δ₀) of each of k mechanisms by a published corollary.

    The corollary claims that k mechanisms that are (ε₀, δ₀)-DP are (ε, δ)-DP together,
    with ε₀ = ε/(2√(k ln(e + ε/δ))) and δ₀ = δ/(2k). It is stated for ε in (0, .9] and δ
    in (0, 1]. For larger ε compare with ``OptimalComposition`` at (ε₀, δ₀), the true
    cost of k such mechanisms. The result is computed in floating point, without a bound
    on rounding.

    Source: Kairouz, Oh & Viswanath (2015), arXiv:1311.0776v4, Corollary 4.1.

    Args:
        epsilon: ε of the composition in nats, finite and > 0.
        delta: δ of the composition, in (0, 1].
        count: k, the number of mechanisms.
    """
    check_positive("corollary_budget", epsilon=epsilon, delta=delta)
    check_delta("corollary_budget", delta)
    check_count("corollary_budget", count=count)
    divisor = 2 * math.sqrt(count * math.log(math.e + epsilon / delta))
    return epsilon / divisor, delta / (2 * count)
