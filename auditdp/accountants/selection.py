"""Privacy curves of top-k selection by Gumbel noise: the k largest of n noisy scores.

Adding independent Gumbel(β) noise to every score q_i and taking the k largest, in
order, is the same as k selections without replacement, each with probability
proportional to e^{q_i/β} among the remaining candidates (Durfee & Rogers 2019, Lemma
4.2). Let a neighbour change every score by at most Δ. In one selection all log weights
change by at most Δ/β in either direction. With W and W′ the sums of the weights, the
losses ln P(i)/P′(i) = (q_i − q′_i)/β − ln(W/W′) of one pair lie in an interval of
length

    η = 2Δ/β, or η = Δ/β where all scores move the same way (monotone),

that contains 0: the selection has *bounded range* η, and is η-DP. Each class here is
about k adaptive selections of bounded range η, for any scores and any number of scores.
The set of the selected candidates is a post-processing of their order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb
from scipy.special import bdtr

from auditdp.accountants.accountant import Analysis, Description, Soundness
from auditdp.accountants.composition import (
    BasicComposition,
    Composition,
    OptimalComposition,
    binomial_cdf,
)
from auditdp.accountants.concentrated import ZCDP
from auditdp.accountants.parameter_checks import (
    check_delta,
    check_epsilon,
    check_positive,
)
from auditdp.accountants.root_finding import epsilon_below, settle
from auditdp.mechanism.laws import precision
from auditdp.numerics.balls import above, below, double_above


def bounded_range(
    scale: float, *, sensitivity: float = 1.0, monotone: bool = False
) -> float:
    """Return the bounded range η of one selection by Gumbel noise, rounded up.

    It is 2Δ/scale, or Δ/scale if scores are monotone.

    Args:
        scale: The scale β of the noise, finite and > 0.
        sensitivity: Δ, the largest change of a score between neighbours, finite and >
            0.
        monotone: True if all scores move in the same direction between neighbours, as
            counts do when a record is added.
    """
    check_positive("bounded_range", scale=scale, sensitivity=sensitivity)
    directions = 1 if monotone else 2
    return double_above(
        lambda rational: directions * rational(sensitivity) / rational(scale)
    )


@dataclass(frozen=True)
class TopK(Description):
    """k adaptive selections of bounded range, such as top-k by Gumbel noise.

    Args:
        count: k, the number of selections.
        eta: Bounded range of each selection in nats, finite and > 0; see
            ``bounded_range``.
    """

    count: int
    eta: float
    adjacency = "any with that sensitivity of the scores"
    words = "any {self.count:,} adaptive selections of bounded range {self.eta:.6g}"

    @property
    def zcdp(self) -> Fraction:
        """The ρ for which the class is ρ-zCDP, kη²/8; ``TopKZCDP`` has the proof."""
        return self.count * Fraction(self.eta) ** 2 / 8

    def wider(self) -> tuple[Composition]:
        """Return a tuple of one class: all compositions of k η-DP mechanisms."""
        return (Composition(self.eta, 0.0, self.count),)

    @property
    def largest_loss(self) -> float:
        """The largest loss in nats, kη, rounded up."""
        return double_above(lambda rational: self.count * rational(self.eta))


class TopKPure(TopK, Analysis):
    """Basic composition: the curve of the worst kη-DP mechanism.

    kη is the smallest ε with δ = 0. It is attained in the limit by neighbours that
    raise k very small scores and lower all the others. For ε < kη the curve lies far
    above that of any selection.

    Source: McSherry & Talwar (2007), "Mechanism Design via Differential Privacy", FOCS,
    Theorem 6; basic composition.
    """

    soundness = Soundness.UPPER
    source = "McSherry & Talwar (2007), Theorem 6, and basic composition"

    def delta_at(self, epsilon: float) -> float:
        """Return δ(ε), rounded up."""
        return BasicComposition(self.eta, 0.0, self.count).delta_at(epsilon)


class TopKOptimalComposition(TopK, Analysis):
    """The optimal composition of k adaptive η-DP mechanisms.

    It does not use that the range of a selection is bounded.

    Source: Kairouz, Oh & Viswanath (2015), arXiv:1311.0776v4, Theorem 3.3.
    """

    soundness = Soundness.UPPER
    source = OptimalComposition.source

    def delta_at(self, epsilon: float) -> float:
        """Return δ(ε), rounded up."""
        return OptimalComposition(self.eta, 0.0, self.count).delta_at(epsilon)


class TopKZCDP(TopK, Analysis):
    """zCDP: a selection of bounded range η is η²/8-zCDP, and ρ adds up.

    For small δ and several selections it is the smallest of the upper bounds here. By
    Hoeffding's lemma ln E_P[e^{λZ}] <= λ E_P[Z] + λ²η²/8 for the loss Z. With λ = −1,
    where E_P[e^{−Z}] = 1, E_P[Z] is at most η²/8. So ln E_P[e^{λZ}] <= λ(λ+1)η²/8,
    which is ρ-zCDP with ρ = η²/8.

    Source: Cesar & Rogers (2021), "Bounding, Concentrating, and Truncating", ALT,
    arXiv:2004.07223.
    """

    soundness = Soundness.UPPER
    source = (
        "Cesar & Rogers (2021), arXiv:2004.07223; Canonne, Kamath & Steinke (2020), "
        "Proposition 12"
    )

    @property
    def rho(self) -> float:
        """ρ = kη²/8 of all selections, rounded up."""
        with precision():
            return above(self.count * arb(self.eta) ** 2 / 8)

    def enclosed_delta(self, epsilon: float) -> arb:
        """Return the δ at ε that ρ-zCDP implies, for ε below ``largest_loss``."""
        return arb(ZCDP(self.rho).delta_at(epsilon))


class _Azuma(TopK, Analysis):
    """A curve by Azuma's and Hoeffding's inequality, for a bound on the mean loss.

    P(total loss > ε) <= e^{−x} for ε = k·mean + spread·√(2kx), for losses of adaptive
    mechanisms whose means, given the earlier outputs, are at most ``mean``, and whose
    ranges are at most 2·spread. If the loss exceeds ε with probability at most δ, the
    mechanism is (ε, δ)-DP. No loss exceeds kη.
    """

    soundness = Soundness.UPPER

    def _mean(self) -> arb:
        """Return the largest mean loss of an η-DP mechanism, η(e^η − 1)/(e^η + 1)."""
        return arb(self.eta) * (arb(self.eta) / 2).tanh()

    def _spread(self) -> arb:
        return arb(self.eta) / 2

    def enclosed_delta(self, epsilon: float) -> arb:
        """Return δ(ε); 1 if ε <= k·mean, where the inequality states nothing."""
        beyond = arb(epsilon) - self.count * self._mean()
        # If balls do not decide the comparison, it is false, and 1 is the safe value.
        if not beyond > 0:
            return arb(1)
        return (-((beyond / self._spread()) ** 2 / (2 * self.count))).exp()


class TopKAdvanced(_Azuma):
    """Advanced composition of k selections that are η-DP.

    It is ε = min{kη, kη(e^η − 1)/(e^η + 1) + η√(2k ln(1/δ))}. Each selection is η-DP,
    and so its losses have a range of at most 2η. With η = 2ε it is Corollary 1 of DPAR,
    2 min{kε, kε(e^{2ε} − 1)/(e^{2ε} + 1) + ε√(2k ln(1/δ))}, for Gumbel(Δ/ε). It is
    true, but its term with √k is twice that of ``TopKDurfeeRogers``, which uses the
    bounded range.

    Source: Kairouz, Oh & Viswanath (2015), arXiv:1311.0776v4, Theorem 3.4; Zhang et al.
    (2024), "DPAR", WWW, arXiv:2210.04442v3, Corollary 1.
    """

    source = "Zhang et al. (2024), arXiv:2210.04442v3, Corollary 1"

    def _spread(self) -> arb:
        return arb(self.eta)


class TopKDurfeeRogers(_Azuma):
    """Composition of k selections by their bounded range, with the mean loss of η-DP.

    It is ε = min{kη, kη(e^η − 1)/(e^η + 1) + η√(k ln(1/δ)/2)}: ``TopKAdvanced`` with
    the range η of each selection instead of 2η.

    Source: Durfee & Rogers (2019), "Practical Differentially Private Top-k Selection
    with Pay-what-you-get Composition", NeurIPS, arXiv:1905.04273, the composition of
    bounded range.
    """

    source = "Durfee & Rogers (2019), arXiv:1905.04273"


class TopKBoundedRange(_Azuma):
    """Composition of k selections by bounded range, with the mean loss that it implies.

    It is ε = min{kη, k(a − 1 − ln a) + η√(k ln(1/δ)/2)} with a = η/(1 − e^−η). a − 1 −
    ln a is the largest mean loss of bounded range η: the loss Z of a pair lies in some
    [t − η, t], and r = e^Z has mean 1 under Q. As r ln r is convex, E_P[Z] = E_Q[r ln
    r] is largest with r at the two ends: E_P[Z] <= t − η(e^t − 1)/(e^η − 1), which is
    largest at e^t = (e^η − 1)/η = e^η/a.

    Source: Dong, Durfee & Rogers (2020), "Optimal Differential Privacy Composition for
    Exponential Mechanisms", ICML, arXiv:1909.13830, Proposition 4.
    """

    source = "Dong, Durfee & Rogers (2020), ICML, Proposition 4"

    def _mean(self) -> arb:
        a = arb(self.eta) / -(-arb(self.eta)).expm1()
        return a - 1 - a.log()


class TopKNonAdaptive(TopK, Analysis):
    """A lower bound: the worst loss of k independent selections of bounded range η.

    The scores do not depend on earlier selections. This is a lower bound on the worst
    top-k selection with η over all scores and numbers of candidates, hence on every
    upper bound in this module. One fraction of the candidates is raised and the rest is
    lowered, so that the loss of a draw is t with probability p = (e^−t − e^−η)/(1 −
    e^−η) under Q, and t − η otherwise. As the number of candidates of equal score
    grows, removing k of them no longer changes the fractions, and the k draws become
    independent: for every t

        δ(ε) >= Σ_i C(k,i) p^{k−i} (1−p)^i (e^{kt − iη} − e^ε)₊
              = P(Bin(k, 1−p e^t) <= I) − e^ε P(Bin(k, 1−p) <= I)

    with I the largest i with a loss kt − iη above ε. The optimum over t is one of t =
    (ε + (l+1)η)/(k+1), l = 0..k−1. It is chosen in floating point, which affects only
    the tightness, and evaluated in ball arithmetic, rounded down.

    Source: Dong, Durfee & Rogers (2020), "Optimal Differential Privacy Composition for
    Exponential Mechanisms", ICML, arXiv:1909.13830, Theorem 3.

    Note:
        A selection from a small number of candidates may lose less than this.
    """

    soundness = Soundness.LOWER
    source = "Dong, Durfee & Rogers (2020), ICML, Theorem 3"

    def delta_at(self, epsilon: float) -> float:
        """Return a lower bound on δ(ε), rounded down.

        It is the largest value of the class's formula over the tried t.
        """
        check_epsilon(self.name, epsilon)
        if epsilon >= self.largest_loss:
            return 0.0
        # Every l gives a bound. At most 512 evenly spread ones are tried, to save time.
        # The optimum is chosen in floating point; ``_delta`` evaluates it rigorously.
        numbers = np.unique(np.linspace(1, self.count, num=512, dtype=int))
        t = (epsilon + numbers * self.eta) / (self.count + 1)
        t = t[(t > 0) & (t < self.eta)]
        max_lowered = np.ceil((self.count * t - epsilon) / self.eta) - 1
        t, max_lowered = t[max_lowered >= 0], max_lowered[max_lowered >= 0]
        if not len(t):
            return 0.0
        p_times_exp_t = np.expm1(t - self.eta) / math.expm1(-self.eta)
        # e^ε may overflow where it is multiplied by a probability of 0.
        with np.errstate(over="ignore", invalid="ignore"):
            p = p_times_exp_t * np.exp(-t)
            unlikely = np.exp(epsilon) * bdtr(max_lowered, self.count, 1 - p)
        curves = bdtr(max_lowered, self.count, 1 - p_times_exp_t) - np.nan_to_num(
            unlikely
        )
        return self._delta(float(t[np.argmax(curves)]), epsilon)

    def epsilon_at(self, delta: float) -> float:
        """Return the largest ε at which the bound exceeds δ, rounded down."""
        check_delta(self.name, delta)
        return epsilon_below(self.delta_at, delta, pure=self.largest_loss)

    def _delta(self, t: float, epsilon: float) -> float:
        """Return the lower bound on δ(ε) for one t, rounded down."""
        # I is computed in fractions, since rounding must not change it.
        ratio = (self.count * Fraction(t) - Fraction(epsilon)) / Fraction(self.eta)
        max_lowered = math.ceil(ratio) - 1
        if max_lowered < 0:
            return 0.0

        def curve() -> arb:
            p_times_exp_t = (arb(t) - arb(self.eta)).expm1() / (-arb(self.eta)).expm1()
            p = p_times_exp_t * (-arb(t)).exp()
            likely = binomial_cdf(self.count, max_lowered, 1 - p_times_exp_t)
            return likely - arb(epsilon).exp() * binomial_cdf(
                self.count, max_lowered, 1 - p
            )

        return max(0.0, below(settle(curve)))
