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
"""The largest order of a Rényi divergence whose terms are added up."""


@dataclass(frozen=True)
class Poisson(Description):
    """DP-SGD with batches into which each record comes by a coin of its own.

    Args:
        noise_multiplier: σ: standard deviation of the noise on the sum of clipped
            gradients, over the clipping norm.
        rate: q: probability of each record to be in a batch.
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
        """Return the steps without sampling.

        A mixture over samples is no worse than the worst of them.
        """
        return (GaussianNoise(self.noise_multiplier, 1.0, self.steps),)

    def concentrated(self, order: float | None) -> tuple[arb, arb]:
        """Return D_α/α at integer orders, and bounds by the next integers between them.

        The supremum is that of the steps without sampling.

        At an integer α, of the attained pair with the record against without it, whose
        divergence is the larger order (Mironov, Talwar & Zhang 2019,
        arXiv:1908.10530v1, Theorems 4 and 5, Section 3.3), for each step

            D_α = ln(Σ_k C(α,k) (1−q)^{α−k} q^k e^{k(k−1)/(2σ²)})/(α−1).

        Its last term alone has D_α/α >= 1/(2σ²) − ln(1/q)/(α−1), so that the supremum
        is 1/(2σ²), as without sampling.
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
        """D of an integer order, of all steps."""
        rate, twice = ball(Fraction(self.rate)), 2 * arb(self.noise_multiplier) ** 2
        moment = arb(0)
        for k in range(order + 1):
            weight = math.comb(order, k) * (1 - rate) ** (order - k) * rate**k
            moment += weight * (arb(k * (k - 1)) / twice).exp()
        return self.steps * moment.log() / (order - 1)
