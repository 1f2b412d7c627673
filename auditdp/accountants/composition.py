"""Composition of equal mechanisms: the optimum, and theorems quoted instead.

All of them are about the k-fold adaptive composition of mechanisms each of which is (ε,
δ)-DP, whatever else it is. In all closed forms a double stands for the exact rational
that it is; they are evaluated in ball arithmetic and rounded up. At the ends of a
curve, kε and the parts' own δ, a double stands for the decimal that people write
(``double_above``).

The quoted theorems are sound and none is tight: ``OptimalComposition`` is the curve
that they bound. Their statements have a δ̃ that the analyst chooses.
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
        """ρ = kε²/2 of parts with δ = 0, or None.

        Source: Bun & Steinke (2016), arXiv:1605.02065, Proposition 1.4 and Lemma 1.7.
        """
        return None if self.delta else self.count * Fraction(self.epsilon) ** 2 / 2

    def concentrated(self, order: float | None) -> tuple[arb, arb]:
        """Return D_α/α of k randomised responses; ∞ if a part may reveal its input."""
        if self.delta:
            return arb.pos_inf(), arb.pos_inf()
        return responses([(self.epsilon, self.count)], order)

    @property
    def part(self) -> CompositionPart:
        """One of the parts."""
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
        """k·ε, rounded up: beyond it only the parts' own δ remains."""
        return double_above(lambda rational: self.count * rational(self.epsilon))

    @property
    def own_delta(self) -> float:
        """1 − (1−δ)^k, rounded up, below which no ε suffices."""
        # The power of a fraction has k times its digits, which take long for large k.
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
    E^(k−l)/(1+E)^k, E = e^ε, with privacy loss (k−2l)ε. Hence δ(ε_g) = 1 − (1−δ)^k (1 −
    D), with L the largest l of a loss above ε_g and

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
        """Return 1 − (1−δ)^k (1 − D), in terms that are >= 0."""
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
        """D, given L."""
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
        """Return the largest ε per mechanism that meets a target.

        With it, ``count`` mechanisms of ``delta_each`` are (epsilon, delta)-DP
        together.

        Raises:
            AccountantError: If the parts' own δ exceed ``delta`` already.
        """
        check_positive("largest_epsilon", epsilon=epsilon, delta=delta)
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
    """(kε, kδ)-DP, and the curve of the worst pair that is (kε, kδ)-DP.

    That is δ(ε_g) = kδ + (1 − kδ)(e^{kε} − e^{ε_g})₊/(1 + e^{kε}).

    Source: Dwork & Roth (2014), "The Algorithmic Foundations of Differential Privacy",
    Theorem 3.16; the curve below kε is that of the (kε, kδ)-DP pair that every other
    one is a post-processing of (Kairouz, Oh & Viswanath 2015).
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
        """Return δ(ε_g) below kε."""
        any_revealed = (arb(self.delta) * self.count).min(arb(1))
        largest = arb(self.epsilon) * self.count
        # The curve of randomised response with loss kε, without overflow.
        revealed = (1 - (arb(epsilon) - largest).exp()) / (1 + (-largest).exp())
        return any_revealed + (1 - any_revealed) * revealed


def responses(
    parts: Iterable[tuple[float, int]], order: float | None
) -> tuple[arb, arb]:
    """Return the largest D_α/α of ε-DP mechanisms, that of randomised responses.

    A Rényi divergence falls under post-processing and adds up over independent parts,
    and no adaptive composition has more than the sum of the parts' largest. For one
    response it is ln((e^{αε} + e^{(1−α)ε})/(1 + e^ε))/(α−1), and at most αε·tanh(ε/2),
    the divergence of order 1: the loss is ±ε with mean ε·tanh(ε/2), so that Kearns &
    Saul (1998, "Large Deviation Methods for Approximate Probabilistic Inference") bound
    ln E[e^{λ·loss}] by λ(1 + λ)ε·tanh(ε/2). D_α rises with α, and so the supremum of
    D_α/α is D_1.

    Args:
        parts: Each ε and the number of parts that have it.
        order: α > 1, or None for the supremum.

    Returns:
        A lower and an upper bound, which are the same.
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
    """Return P(Bin(count, probability) <= most) for 0 <= most < count."""
    # The shorter tail is computed, so that small probabilities keep their digits.
    more, fewer = arb(successes + 1), arb(count - successes)
    if successes + 1 > count * probability:
        return 1 - probability.beta_lower(more, fewer, regularized=True)
    return (1 - probability).beta_lower(fewer, more, regularized=True)


class AdvancedComposition(Composition, Analysis):
    """(kε(e^ε − 1) + ε√(2k ln(1/δ̃)), kδ + δ̃)-DP for every δ̃ in (0, 1).

    Source: Dwork, Rothblum & Vadhan (2010), "Boosting and Differential Privacy", FOCS,
    Theorem III.3.
    """

    soundness = Soundness.UPPER
    source = "Dwork, Rothblum & Vadhan (2010), Theorem III.3"

    @property
    def largest_loss(self) -> float:
        """Infinity: the theorem does not imply that no loss is above kε."""
        return math.inf

    @property
    def own_delta(self) -> float:
        """kδ, rounded up, at most 1."""
        return self._rounded_up(math.inf)

    def enclosed_delta(self, epsilon: float) -> arb:
        """Return δ(ε_g); 1 up to kε(e^ε − 1), about which the theorem is silent."""
        each = arb(self.epsilon)
        beyond = arb(epsilon) - self.count * each * each.expm1()
        if not beyond > 0:
            return arb(1)
        extra = (-((beyond / each) ** 2) / (2 * self.count)).exp()
        return self.count * arb(self.delta) + extra


class KairouzCorollary(Composition, Analysis):
    """(ε̃, 1 − (1−δ)^k (1−δ̃))-DP for every δ̃ in [0, 1].

    With m = kε(e^ε − 1)/(e^ε + 1),

        ε̃ = min{ kε, m + ε√(2k ln(e + √k ε/δ̃)), m + ε√(2k ln(1/δ̃)) }.

    Source: Kairouz, Oh & Viswanath (2015), "The Composition Theorem for Differential
    Privacy", arXiv:1311.0776v4, Theorem 3.4.
    """

    soundness = Soundness.UPPER
    source = f"{KAIROUZ}, Theorem 3.4"

    def enclosed_delta(self, epsilon: float) -> arb:
        """Return δ(ε̃); 1 up to m, about which the theorem is silent.

        Solved for δ̃ with x = (ε̃ − m)²/(2kε²), the last two bounds are √k ε/(e^x − e)
        for x > 1, and e^−x.
        """
        each, root = arb(self.epsilon), arb(self.count).sqrt()
        beyond = arb(epsilon) - self.count * each * (each / 2).tanh()
        if not beyond > 0:
            return arb(1)
        x = (beyond / (each * root)) ** 2 / 2
        extra = (-x).exp()
        if x > 1:
            extra = extra.min(root * each / (x.exp() - arb(1).exp()))
        any_revealed = self.any_failure()
        return any_revealed + (1 - any_revealed) * extra


def corollary_budget(epsilon: float, delta: float, count: int) -> tuple[float, float]:
    """Return (ε₀, δ₀) per mechanism that is claimed to make k of them (ε, δ)-DP.

    ε₀ = ε/(2√(k ln(e + ε/δ))) and δ₀ = δ/(2k), as the formulas give them in floating
    point. The corollary is stated for ε in (0, .9] and δ in (0, 1]. For larger ε the
    budget can be judged by ``OptimalComposition`` at (ε₀, δ₀), the true cost of k such
    mechanisms.

    Source: Kairouz, Oh & Viswanath (2015), arXiv:1311.0776v4, Corollary 4.1.

    Args:
        epsilon: The whole ε in nats, finite and > 0.
        delta: The whole δ, in (0, 1].
        count: k, the number of mechanisms.
    """
    check_positive("corollary_budget", epsilon=epsilon, delta=delta)
    check_delta("corollary_budget", delta)
    check_count("corollary_budget", count=count)
    divisor = 2 * math.sqrt(count * math.log(math.e + epsilon / delta))
    return epsilon / divisor, delta / (2 * count)
