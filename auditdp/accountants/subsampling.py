"""Privacy amplification: any mechanism that runs on a random sample of the dataset.

Let δ₀ be the curve of the mechanism itself, δ the curve of the mechanism on a sample,
and ε = ln(1 + q(e^ε₀ − 1)). Then (Balle, Barthe & Gaboardi 2018, "Privacy Amplification
by Subsampling", arXiv:1807.01647v2):

- Theorem 8: each record is drawn independently with probability q, neighbours add or
  remove a record: δ(ε) = q δ₀(ε₀);
- Theorem 9: m of N records are drawn without replacement, q = m/N, neighbours replace a
  record: δ(ε) = q δ₀(ε₀);
- Theorem 10: m of N records are drawn with replacement, q = 1 − (1 − 1/N)^m, neighbours
  replace a record: δ(ε) <= Σ_k P(Bin(m, 1/N) = k) δ_k(ε₀), with δ_k the curve for k
  records that differ.

The first two are attained by randomised response on whether the record is in the
sample, mixed with revealing it. (The first is due to Li, Qardaji & Su 2012, "On
Sampling, Anonymization, and Differential Privacy", for an (ε₀, δ₀) alone.) A common
claim is (qε₀, qδ₀). ln(1 + q(e^ε₀ − 1)) is strictly concave in q, 0 at q = 0 and ε₀ at
q = 1, so above its chord qε₀ between them: the claim is false for every 0 < q < 1, and
a cross-check refutes it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from flint import arb

from auditdp.accountants.accountant import Analysis, Description, Soundness
from auditdp.accountants.additive_noise import GaussianCurve
from auditdp.accountants.composition import Composition
from auditdp.accountants.dp_sgd_parameters import ADD_OR_REMOVE, REPLACE, Poisson
from auditdp.accountants.parameter_checks import check_epsilon, check_rate
from auditdp.mechanism.laws import precision
from auditdp.numerics.balls import above, double_above

BALLE = "Balle, Barthe & Gaboardi (2018), arXiv:1807.01647v2"


@dataclass(frozen=True)
class Subsampled(Analysis):
    """Any (epsilon, delta)-DP mechanism on a sample of the data.

    Args:
        epsilon: ε₀ of the mechanism in nats, finite and > 0.
        delta: δ₀ of the mechanism, in [0, 1].
        rate: q, the probability of a record to be in the sample, in (0, 1].
    """

    epsilon: float
    delta: float
    rate: float
    soundness = Soundness.EXACT
    words = (
        "any ({self.epsilon:.6g}, {self.delta:.6g})-DP mechanism on a sample "
        "({self.sampling}) at rate {self.rate:.6g}"
    )

    @property
    def describes(self) -> Subsampled:
        """This accountant itself: the sampling scheme is part of the class."""
        return self

    def wider(self) -> tuple[Composition]:
        """Return a tuple of one class: all (ε₀, δ₀)-DP mechanisms, without sampling.

        The δ of a mixture over samples is at most that of the worst sample.
        """
        return (Composition(self.epsilon, self.delta, 1),)

    @property
    def largest_loss(self) -> float:
        """ln(1 + q(e^ε₀ − 1)), rounded up; at larger ε the curve is qδ₀."""
        with precision():
            return above((arb(self.rate) * arb(self.epsilon).expm1()).log1p())

    @property
    def own_delta(self) -> float:
        """qδ₀, rounded up; no ε suffices for a smaller δ."""
        return double_above(lambda rational: rational(self.rate) * rational(self.delta))

    def enclosed_delta(self, epsilon: float) -> arb:
        """Return q δ₀(ln(1 + (e^ε − 1)/q)) with the curve δ₀ of the worst mechanism."""
        rate = arb(self.rate)
        return rate * worst_delta(
            arb(self.epsilon), arb(self.delta), arb(epsilon), rate
        )


class PoissonSubsampled(Subsampled):
    """A mechanism on a Poisson sample: records enter independently (Theorem 8)."""

    adjacency = ADD_OR_REMOVE
    sampling = "Poisson"
    source = f"{BALLE}, Theorem 8"

    def includes(self, other: Description) -> bool:
        """Return True if the other class is one step of DP-SGD within this class.

        The step has to sample at this rate, and its noise without sampling has to be
        (ε₀, δ₀)-DP.
        """
        if not isinstance(other, Poisson):
            return False
        if (other.rate, other.steps) != (self.rate, 1):
            return False
        noise = GaussianCurve(other.noise_multiplier)
        return noise.delta_at(self.epsilon) <= self.delta


class FixedSizeSubsampled(Subsampled):
    """A mechanism on a sample of fixed size without replacement (Theorem 9).

    ``rate`` is the fraction of the records that is in the sample.
    """

    adjacency = REPLACE
    sampling = "fixed size without replacement"
    source = f"{BALLE}, Theorem 9"


@dataclass(frozen=True)
class WithReplacementSubsampled(Analysis):
    """Any (epsilon, delta)-DP mechanism on a sample with replacement (Theorem 10).

    A record may be drawn k times, so that k records of the sample differ. By group
    privacy the mechanism is then (kε₀, δ₀ (e^(kε₀) − 1)/(e^ε₀ − 1))-DP (Vadhan 2017,
    "The Complexity of Differential Privacy", Lemma 2.2). For each k the curve of the
    worst such mechanism is used.

    Args:
        epsilon: ε₀ of the mechanism in nats, finite and > 0.
        delta: δ₀ of the mechanism, in [0, 1].
        records: N, the number of records.
        batch: m, the number of draws.
    """

    epsilon: float
    delta: float
    records: int
    batch: int
    soundness = Soundness.UPPER
    adjacency = REPLACE
    sampling = "fixed size with replacement"
    source = f"{BALLE}, Theorem 10"
    words = (
        "any ({self.epsilon:.6g}, {self.delta:.6g})-DP mechanism on {self.batch:,} records "
        "drawn with replacement among {self.records:,}"
    )

    @property
    def rate(self) -> float:
        """q, the probability that a record is drawn at least once."""
        if self.records == 1:
            return 1.0
        return -math.expm1(self.batch * math.log1p(-1 / self.records))

    @property
    def own_delta(self) -> float:
        """The δ at ε = ∞, rounded up."""
        return self._rounded_up(math.inf) if self.delta else 0.0

    def enclosed_delta(self, epsilon: float) -> arb:
        """Return the bound on δ(ε): the sum of Theorem 10 at ln(1 + (e^ε − 1)/q)."""
        each = 1 / arb(self.records)
        drawn = 1 - (1 - each) ** self.batch

        def group_delta(times: int) -> arb:
            """Return δ_k(ε₀) for k = ``times``."""
            group = arb(self.epsilon) * times
            revealed = arb(self.delta) * group.expm1() / arb(self.epsilon).expm1()
            return worst_delta(group, revealed.min(arb(1)), arb(epsilon), drawn)

        if self.records == 1:
            return group_delta(self.batch)
        total, left = arb(0), drawn
        # P(Bin(m, 1/N) = times), by the ratio of consecutive probabilities.
        mass, odds = (1 - each) ** self.batch, each / (1 - each)
        for times in range(1, self.batch + 1):
            mass = mass * odds * (self.batch - times + 1) / times
            total += mass * group_delta(times)
            left -= mass
            if left < 1e-18:
                break
        # The remaining probability counts as revealing the input.
        return total + left.max(arb(0))


def amplified(epsilon: float, rate: float) -> float:
    """Return the ε of an ε-DP mechanism on a sample of rate q, ln(1 + q(e^ε − 1)).

    Raises:
        AccountantError: If ``epsilon`` is not >= 0, or ``rate`` is not in (0, 1].

    >>> round(amplified(1.0, 0.01), 6)
    0.017037
    """
    check_epsilon("amplified", epsilon)
    check_rate("amplified", rate)
    if epsilon == math.inf:
        return epsilon
    if epsilon < 30:
        return math.log1p(rate * math.expm1(epsilon))
    rest = (1 - rate) / rate * math.exp(-epsilon)
    return epsilon + math.log(rate) + math.log1p(rest)


def unamplified(epsilon: float, rate: float) -> float:
    """Return the ε before sampling, ln(1 + (e^ε − 1)/q), for a rate q.

    It is the inverse of ``amplified``.

    Raises:
        AccountantError: If ``epsilon`` is not >= 0, or ``rate`` is not in (0, 1].
    """
    check_epsilon("unamplified", epsilon)
    check_rate("unamplified", rate)
    if epsilon == math.inf:
        return epsilon
    if epsilon < 30:
        return math.log1p(math.expm1(epsilon) / rate)
    return epsilon - math.log(rate) + math.log1p(-(1 - rate) * math.exp(-epsilon))


def worst_delta(epsilon: arb, delta: arb, at: arb, rate: arb) -> arb:
    """Return δ₀ of the worst (epsilon, delta)-DP mechanism at ln(1 + (e^at − 1)/rate).

    The worst mechanism reveals its input with probability δ and is randomised response
    otherwise (Kairouz, Oh & Viswanath 2015, arXiv:1311.0776v4, proof of Theorem 3.3):
    δ₀ = δ + (1 − δ)(e^ε − 1 − (e^at − 1)/q)₊/(1 + e^ε).
    """
    if not at.is_finite():
        return delta
    excess = (epsilon.expm1() - at.expm1() / rate) / (1 + epsilon.exp())
    return delta + (1 - delta) * excess.max(arb(0))
