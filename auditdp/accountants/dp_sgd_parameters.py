"""The parameters of DP-SGD with Poisson batches, and names of adjacencies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from auditdp.accountants.accountant import Description
from auditdp.accountants.additive_noise import GaussianNoise
from auditdp.mechanism.laws import precision
from auditdp.numerics.balls import ball

ADD_OR_REMOVE = "add or remove one record"
REPLACE = "replace one record"
ZERO_OUT = "zero one record out"
MAX_ORDER = 1024
"""The largest order for which the sum of a Rényi divergence is computed."""


@dataclass(frozen=True)
class Poisson(Description):
    """DP-SGD in which each record enters each batch independently, with probability q.

    Args:
        noise_multiplier: σ, the standard deviation of the noise on the sum of clipped
            gradients, divided by the clipping norm.
        rate: q, the probability of each record to be in a batch.
        steps: T, the number of batches.
    """

    noise_multiplier: float
    rate: float
    steps: int
    adjacency = ADD_OR_REMOVE
    sampling = "Poisson"
    words = (
        "DP-SGD in {self.steps:,} Poisson batches at rate {self.rate:.6g} with noise "
        "multiplier {self.noise_multiplier:.6g}"
    )

    def wider(self) -> tuple[GaussianNoise]:
        """Return a tuple of one class: Gaussian noise for the same steps, no sampling.

        The δ of a mixture over samples is at most that of the worst sample.
        """
        return (GaussianNoise(self.noise_multiplier, 1.0, self.steps),)

    def concentrated(self, order: float | None) -> tuple[arb, arb]:
        """Return bounds on D_α/α, which are equal at an integer α.

        Between integers, D_α lies between its values at the next smaller and the next
        larger integer. A bound that would need order 1, or an order above
        ``MAX_ORDER``, is trivial: 0 from below, infinity from above. At an integer α
        the divergence is that of the attained pair, with the record against without it.
        This order of the pair has the larger divergence (Mironov, Talwar & Zhang 2019,
        arXiv:1908.10530v1, Theorems 4 and 5, Section 3.3). For each step

            D_α = ln(Σ_k C(α,k) (1−q)^{α−k} q^k e^{k(k−1)/(2σ²)})/(α−1).

        The last term of the sum alone gives D_α/α >= 1/(2σ²) − ln(1/q)/(α−1). So the
        supremum over α is 1/(2σ²), as without sampling.
        """
        if order is None:
            return self.wider()[0].concentrated(None)
        smaller, larger = math.floor(order), math.ceil(order)
        low, high = arb(0), arb.pos_inf()
        with precision():
            # D_α rises with α, so that the next integers bound it from either side.
            if 1 < smaller <= MAX_ORDER:
                low = self._divergence(smaller) / arb(order)
            if larger <= MAX_ORDER:
                high = self._divergence(larger) / arb(order)
        return low, high

    def _divergence(self, order: int) -> arb:
        """Return D_α of all steps together, for an integer order α."""
        rate, twice = ball(Fraction(self.rate)), 2 * arb(self.noise_multiplier) ** 2
        moment = arb(0)
        for k in range(order + 1):
            weight = math.comb(order, k) * (1 - rate) ** (order - k) * rate**k
            moment += weight * (arb(k * (k - 1)) / twice).exp()
        return self.steps * moment.log() / (order - 1)
