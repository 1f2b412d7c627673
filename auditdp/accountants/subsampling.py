"""What drawing a sample of the dataset first adds to the privacy of a mechanism.

With ε = ln(1 + q(e^ε₀ − 1)) and δ the curve of the sampled mechanism, δ₀ that of the mechanism itself (Balle, Barthe &
Gaboardi 2018, "Privacy Amplification by Subsampling", arXiv:1807.01647v2):

- Theorem 8: each record by a coin with probability q, neighbours add or remove a record: δ(ε) = q δ₀(ε₀);
- Theorem 9: m of N without replacement, q = m/N, neighbours replace a record: δ(ε) = q δ₀(ε₀);
- Theorem 10: m of N with replacement, q = 1 − (1 − 1/N)^m, neighbours replace a record:
  δ(ε) <= Σ_k P(Bin(m, 1/N) = k) δ_k(ε₀), with δ_k the curve for k records that differ.

The first two are attained by randomised response on whether the record is in the sample, mixed with revealing it. (The
first was known to Li, Qardaji & Su 2012, "On Sampling, Anonymization, and Differential Privacy", for an (ε₀, δ₀) alone.)
What is often claimed is (qε₀, qδ₀). ln(1 + q(e^ε₀ − 1)) is strictly concave in q, 0 at q = 0 and ε₀ at q = 1, so above its
chord qε₀ between them: the claim is false for every 0 < q < 1, as a cross-check shows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from flint import arb

from auditdp.accountants.accountant import Inverted, Soundness, check_epsilon
from auditdp.accountants.additive_noise import GaussianCurve
from auditdp.accountants.composition import Composition
from auditdp.accountants.description import Description
from auditdp.accountants.dp_sgd_parameters import ADD_OR_REMOVE, REPLACE, Poisson
from auditdp.mechanism.laws import precision
from auditdp.numerics.balls import above, double_above

LEFT_OUT = 1e-18
"""How likely it is at most that a record is drawn more often than is summed up."""


@dataclass(frozen=True)
class Subsampled(Description, Inverted):
    """Any (epsilon, delta)-DP mechanism on a sample of the data.

    Args:
        epsilon: ε₀ of the mechanism in nats, finite and > 0.
        delta: δ₀ of the mechanism, in [0, 1].
        rate: q, the probability of a record to be in the sample, in (0, 1].
    """

    epsilon: float
    delta: float
    rate: float
    soundness: ClassVar[Soundness] = Soundness.EXACT
    words: ClassVar[str] = (
        "any ({self.epsilon:.6g}, {self.delta:.6g})-DP mechanism on a sample ({self.sampling}) at rate {self.rate:.6g}"
    )

    @property
    def describes(self) -> Subsampled:
        """Itself: how the sample is drawn is part of the class."""
        return self

    def wider(self) -> tuple[Composition]:
        """Return the mechanisms without sampling: a mixture over samples is no worse than the worst of them."""
        return (Composition(self.epsilon, self.delta, 1),)

    def delta_at(self, epsilon: float) -> float:
        """Return q δ₀(ln(1 + (e^ε − 1)/q)), δ₀ being the curve of the worst mechanism, rounded up."""
        check_epsilon(type(self).__name__, epsilon)
        if epsilon >= self.largest_loss:
            return self.own_delta
        with precision():
            rate = arb(self.rate)
            return min(
                1.0,
                above(
                    rate
                    * worst_delta(
                        arb(self.epsilon), arb(self.delta), arb(epsilon), rate
                    )
                ),
            )

    @property
    def largest_loss(self) -> float:
        """ln(1 + q(e^ε₀ − 1)), rounded up, from which on only qδ₀ remains."""
        with precision():
            return above((arb(self.rate) * arb(self.epsilon).expm1()).log1p())

    @property
    def own_delta(self) -> float:
        """qδ₀, rounded up, below which no ε suffices."""
        return double_above(lambda read: read(self.rate) * read(self.delta))


@dataclass(frozen=True)
class PoissonSubsampled(Subsampled):
    """Every record comes into the sample by a coin of its own (Theorem 8)."""

    def includes(self, other: Description) -> bool:
        """Return whether the other class is one step of DP-SGD at this rate, with noise that makes it (ε₀, δ₀)-DP."""
        return (
            isinstance(other, Poisson)
            and (other.rate, other.steps) == (self.rate, 1)
            and GaussianCurve(other.noise_multiplier).delta_at(self.epsilon)
            <= self.delta
        )

    adjacency: ClassVar[str] = ADD_OR_REMOVE
    sampling: ClassVar[str] = "Poisson"
    source: ClassVar[str] = (
        "Balle, Barthe & Gaboardi (2018), arXiv:1807.01647v2, Theorem 8"
    )


@dataclass(frozen=True)
class FixedSizeSubsampled(Subsampled):
    """A sample of fixed size without replacement; ``rate`` is its share of the records (Theorem 9)."""

    adjacency: ClassVar[str] = REPLACE
    sampling: ClassVar[str] = "fixed size without replacement"
    source: ClassVar[str] = (
        "Balle, Barthe & Gaboardi (2018), arXiv:1807.01647v2, Theorem 9"
    )


@dataclass(frozen=True)
class WithReplacementSubsampled(Description, Inverted):
    """Any (epsilon, delta)-DP mechanism on ``batch`` records that are drawn one by one from all of them (Theorem 10).

    The record may be drawn k times, and k records that differ have group privacy (kε₀, δ₀ (e^(kε₀) − 1)/(e^ε₀ − 1)) (Vadhan
    2017, "The Complexity of Differential Privacy", Lemma 2.2), of which the worst curve is taken for each k.

    Args:
        epsilon: ε₀ of the mechanism in nats, finite and > 0.
        delta: δ₀ of the mechanism, in [0, 1].
        records: N, how many there are.
        batch: m, how many are drawn.
    """

    epsilon: float
    delta: float
    records: int
    batch: int
    soundness: ClassVar[Soundness] = Soundness.UPPER
    adjacency: ClassVar[str] = REPLACE
    sampling: ClassVar[str] = "fixed size with replacement"
    source: ClassVar[str] = (
        "Balle, Barthe & Gaboardi (2018), arXiv:1807.01647v2, Theorem 10"
    )
    words: ClassVar[str] = (
        "any ({self.epsilon:.6g}, {self.delta:.6g})-DP mechanism on {self.batch:,} records drawn with replacement "
        "among {self.records:,}"
    )

    @property
    def rate(self) -> float:
        """Probability that a record is drawn at all."""
        return (
            -math.expm1(self.batch * math.log1p(-1 / self.records))
            if self.records > 1
            else 1.0
        )

    def delta_at(self, epsilon: float) -> float:
        """Return the sum of Theorem 10 at ln(1 + (e^ε − 1)/q), rounded up; what it leaves out counts as revealed."""
        check_epsilon(type(self).__name__, epsilon)
        if math.isinf(epsilon) and self.delta == 0:
            return 0.0
        with precision():
            each = 1 / arb(self.records)
            not_drawn = (1 - each) ** self.batch if self.records > 1 else arb(0)
            drawn, odds = (
                1 - not_drawn,
                each / (1 - each) if self.records > 1 else arb(0),
            )
            mass, left, total = not_drawn, drawn, arb(0)
            for times in range(1, self.batch + 1):
                mass = (
                    mass * odds * (self.batch - times + 1) / times
                    if self.records > 1
                    else arb(times == self.batch)
                )
                group = arb(self.epsilon) * times
                revealed = (
                    arb(self.delta) * group.expm1() / arb(self.epsilon).expm1()
                ).min(arb(1))
                total += mass * worst_delta(group, revealed, arb(epsilon), drawn)
                left -= mass
                if left < LEFT_OUT:
                    break
            return min(1.0, above(total + left.max(arb(0))))


def amplified(epsilon: float, rate: float) -> float:
    """Return ln(1 + q(e^ε − 1)).

    >>> round(amplified(1.0, 0.01), 6)
    0.017037
    """
    if epsilon < 30:
        return math.log1p(rate * math.expm1(epsilon))
    return (
        epsilon + math.log(rate) + math.log1p((1 - rate) / rate * math.exp(-epsilon))
        if epsilon < math.inf
        else epsilon
    )


def unamplified(epsilon: float, rate: float) -> float:
    """Return ln(1 + (e^ε − 1)/q), the inverse of ``amplified``."""
    if epsilon < 30:
        return math.log1p(math.expm1(epsilon) / rate)
    return (
        epsilon - math.log(rate) + math.log1p(-(1 - rate) * math.exp(-epsilon))
        if epsilon < math.inf
        else epsilon
    )


def worst_delta(epsilon: arb, delta: arb, at: arb, rate: arb) -> arb:
    """Return δ₀(ln(1 + (e^at − 1)/q)) for the worst (epsilon, delta)-DP mechanism, enclosed.

    It reveals its input with probability δ and is randomised response otherwise (Kairouz, Oh & Viswanath 2015,
    arXiv:1311.0776v4, proof of Theorem 3.3): δ₀ = δ + (1 − δ)(e^ε − 1 − (e^at − 1)/q)₊/(1 + e^ε).
    """
    if not at.is_finite():
        return delta
    excess = (epsilon.expm1() - at.expm1() / rate) / (1 + epsilon.exp())
    return delta + (1 - delta) * excess.max(arb(0))
