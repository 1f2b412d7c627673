"""Composition of equal mechanisms: the optimum, and the theorems that are quoted in its place.

All of them are about the k-fold adaptive composition of mechanisms each of which is (ε, δ)-DP, whatever else it is. In all
closed forms a double stands for the exact rational that it is; they are evaluated in ball arithmetic and rounded up.
The ends of a curve, kε and the parts' own δ, are compared with what somebody wrote, and so are those of decimals
(``double_above``).

The composition theorems that papers quote, as the curves that they state, and the budget that is derived from them.

Each is sound and none is tight: ``OptimalComposition`` is what they bound. Their statements are about k adaptive
(ε, δ)-DP mechanisms and a δ̃ that the analyst chooses.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import ClassVar

from flint import arb

from auditdp.accountants.accountant import (
    AccountantError,
    Inverted,
    Soundness,
    check_count,
    check_delta,
    check_epsilon,
    check_positive,
    greatest,
    settle,
)
from auditdp.accountants.description import CompositionPart, Description
from auditdp.mechanism.laws import precision
from auditdp.numerics.balls import above, double_above

MOST_FACTORS = 64
"""How many equal factors are multiplied as fractions."""


@dataclass(frozen=True)
class Composition(Description):
    """The parameters of every k-fold composition of equal mechanisms.

    Args:
        epsilon: ε of each mechanism in nats, finite and > 0.
        delta: δ of each mechanism, in [0, 1].
        count: k, how many there are.
    """

    epsilon: float
    delta: float
    count: int
    adjacency: ClassVar[str] = "as for the parts"
    words: ClassVar[str] = (
        "any {self.count:,} adaptive mechanisms of ({self.epsilon:.6g}, {self.delta:.6g})-DP"
    )

    @property
    def zcdp(self) -> Fraction | None:
        """ρ = kε²/2 of parts with δ = 0 (Bun & Steinke 2016, arXiv:1605.02065, Proposition 1.4 and Lemma 1.7)."""
        return None if self.delta else self.count * Fraction(self.epsilon) ** 2 / 2

    def concentrated(self, order: float | None) -> tuple[arb, arb]:
        """Return what k randomised responses have; ∞ where a part may reveal its input."""
        return (
            responses([(self.epsilon, self.count)], order)
            if not self.delta
            else (arb.pos_inf(), arb.pos_inf())
        )

    @property
    def part(self) -> CompositionPart:
        """One of the parts."""
        return CompositionPart(
            self.count, OptimalComposition(self.epsilon, self.delta, 1)
        )

    def includes(self, other: Description) -> bool:
        """Return whether the other class is a composition of no more parts, each of which is (ε, δ)-DP."""
        part = other.part
        return (
            part is not None
            and part.count <= self.count
            and part.curve.delta_at(self.epsilon) <= self.delta
        )

    @property
    def largest_loss(self) -> float:
        """k·ε, rounded up: beyond it only the parts' own δ remains."""
        return double_above(lambda read: self.count * read(self.epsilon))

    @property
    def own_delta(self) -> float:
        """1 − (1−δ)^k, rounded up, below which no ε suffices."""
        if self.count > MOST_FACTORS:
            return min(1.0, above(settle(self.any_failure)))
        return double_above(lambda read: 1 - (1 - read(self.delta)) ** self.count)

    def any_failure(self) -> arb:
        """Return 1 − (1−δ)^k: how likely any of the parts reveals its input."""
        return (
            -(self.count * (-arb(self.delta)).log1p()).expm1()
            if self.delta < 1
            else arb(1)
        )


@dataclass(frozen=True)
class OptimalComposition(Composition, Inverted):
    """The exact curve of k adaptive (ε, δ)-DP mechanisms, the worst that there are.

    Every (ε, δ)-DP mechanism is a post-processing of the one that reveals its input with probability δ and is randomised
    response with ε otherwise. If nothing is revealed, l of the k answers speak against the input with probability
    C(k,l) E^(k−l)/(1+E)^k, E = e^ε, with privacy loss (k−2l)ε. Hence δ(ε_g) = 1 − (1−δ)^k (1 − D), with L the largest l of
    a loss above ε_g and

        D = Σ_{l<=L} C(k,l) (E^(k−l) − e^(ε_g) E^l)/(1+E)^k = P(Bin(k, 1/(1+E)) <= L) − e^(ε_g) P(Bin(k, E/(1+E)) <= L),

    two incomplete beta functions, computed with as many bits as their difference needs.

    Source: Kairouz, Oh & Viswanath (2015), "The Composition Theorem for Differential Privacy", arXiv:1311.0776v4,
    Theorem 3.3.

    Note:
        The theorem states the curve at ε_g = (k−2i)ε; between them it follows from the same extreme pair.

    >>> round(OptimalComposition(0.1, 0.0, 20).epsilon_at(1e-6), 2)
    1.79
    """

    soundness: ClassVar[Soundness] = Soundness.EXACT
    source: ClassVar[str] = (
        "Kairouz, Oh & Viswanath (2015), arXiv:1311.0776v4, Theorem 3.3"
    )

    def delta_at(self, epsilon: float) -> float:
        """Return δ(ε), rounded up."""
        check_epsilon(self.name, epsilon)
        if epsilon >= self.largest_loss:
            return self.own_delta
        return min(1.0, above(settle(lambda: self._delta(epsilon))))

    def _delta(self, epsilon: float) -> arb:
        """1 − (1−δ)^k (1 − D) below kε, in terms that are >= 0."""
        own = self.any_failure()
        most_against = (
            ceil((self.count - Fraction(epsilon) / Fraction(self.epsilon)) / 2) - 1
        )
        return own + (1 - own) * self._excess(arb(epsilon), most_against)

    def _excess(self, epsilon: arb, most_against: int) -> arb:
        """D, given L; 0 for L < 0."""
        if most_against < 0:
            return arb(0)
        against = 1 / (1 + arb(self.epsilon).exp())
        likely, unlikely = (
            at_most(self.count, most_against, p) for p in (against, 1 - against)
        )
        return likely - epsilon.exp() * unlikely

    @classmethod
    def largest_epsilon(
        cls, epsilon: float, delta: float, count: int, *, delta_each: float = 0.0
    ) -> float:
        """Return the largest ε per mechanism with which k of them, each with ``delta_each``, are (epsilon, delta)-DP.

        Raises:
            AccountantError: If the parts' own δ exceed ``delta`` already.
        """
        check_positive("largest_epsilon", epsilon=epsilon, delta=delta)
        found = greatest(
            lambda each: cls(each, delta_each, count).delta_at(epsilon), delta
        )
        if not found:
            raise AccountantError(
                f"largest_epsilon: {count} mechanisms with delta={delta_each!r} each exceed delta={delta!r} whatever "
                "their epsilon; use a smaller delta_each"
            )
        return found


@dataclass(frozen=True)
class BasicComposition(Composition, Inverted):
    """(kε, kδ)-DP, and the curve of the worst pair that is: δ(ε_g) = kδ + (1 − kδ)(e^{kε} − e^{ε_g})₊/(1 + e^{kε}).

    Source: Dwork & Roth (2014), "The Algorithmic Foundations of Differential Privacy", Theorem 3.16; the curve below
    kε is that of the (kε, kδ)-DP pair that every other one is a post-processing of (Kairouz, Oh & Viswanath 2015).
    """

    soundness: ClassVar[Soundness] = Soundness.UPPER
    source: ClassVar[str] = "Dwork & Roth (2014), Theorem 3.16"

    def delta_at(self, epsilon: float) -> float:
        """Return δ(ε), rounded up, at most 1."""
        check_epsilon(self.name, epsilon)
        if epsilon >= self.largest_loss:
            return min(1.0, double_above(lambda read: self.count * read(self.delta)))
        with precision():
            own = (arb(self.delta) * self.count).min(arb(1))
            revealed = randomised_response(arb(self.epsilon) * self.count, arb(epsilon))
            return min(1.0, above(own + (1 - own) * revealed))


def randomised_response(most: arb, epsilon: arb) -> arb:
    """Return (e^a − e^ε)/(1 + e^a), the curve of randomised response with loss a, for ε <= a."""
    return (1 - (epsilon - most).exp()) / (1 + (-most).exp())


def responses(
    parts: Iterable[tuple[float, int]], order: float | None
) -> tuple[arb, arb]:
    """Return the largest D_α/α of adaptive ε-DP mechanisms, each ε so many times: that of randomised responses.

    A Rényi divergence falls under post-processing and adds up over independent parts, and no adaptive composition has more
    than the sum of the parts' largest. For one response it is ln((e^{αε} + e^{(1−α)ε})/(1 + e^ε))/(α−1), and at most
    αε·tanh(ε/2), the divergence of order 1: the loss is ±ε with mean ε·tanh(ε/2), so that Kearns & Saul (1998, "Large
    Deviation Methods for Approximate Probabilistic Inference") bound ln E[e^{λ·loss}] by λ(1 + λ)ε·tanh(ε/2). D_α rises
    with α, and so the supremum of D_α/α is D_1.

    ``parts`` are ε, and how many parts have it; the order is α > 1, or None for the supremum.
    """
    with precision():
        total = arb(0)
        for each, count in parts:
            epsilon = arb(each)
            if order is None:
                total += count * epsilon * (epsilon / 2).tanh()
            else:
                alpha = arb(order)
                moment = ((alpha * epsilon).exp() + ((1 - alpha) * epsilon).exp()) / (
                    1 + epsilon.exp()
                )
                total += count * moment.log() / ((alpha - 1) * alpha)
        return total, total


def at_most(count: int, most: int, probability: arb) -> arb:
    """Return P(Bin(count, probability) <= most) for 0 <= most < count, from whichever tail is the shorter one."""
    more, fewer = arb(most + 1), arb(count - most)
    if most + 1 > count * probability:
        return 1 - probability.beta_lower(more, fewer, regularized=True)
    return (1 - probability).beta_lower(fewer, more, regularized=True)


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
            return min(
                1.0,
                above(
                    self.count * arb(self.delta)
                    + (-((beyond / each) ** 2) / (2 * self.count)).exp()
                ),
            )

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
    source: ClassVar[str] = (
        "Kairouz, Oh & Viswanath (2015), arXiv:1311.0776v4, Theorem 3.4"
    )

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
    return epsilon / (
        2 * math.sqrt(count * math.log(math.e + epsilon / delta))
    ), delta / (2 * count)
