"""The parameters of DP-SGD with Poisson batches, which its accountants share, and the names of adjacencies of records."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from flint import arb

from auditdp.accountants.additive_noise import GaussianNoise
from auditdp.accountants.description import Description
from auditdp.mechanism.laws import precision
from auditdp.numerics.balls import ball

ADD_OR_REMOVE = "add or remove one record"
REPLACE = "replace one record"
ZERO_OUT = "zero one record out"
MOST_ORDER = 1024
"""The largest order of a Rényi divergence whose terms are added up."""


@dataclass(frozen=True)
class Poisson(Description):
    """Batches into which each record comes by a coin of its own.

    Args:
        noise_multiplier: σ: standard deviation of the noise on the sum of clipped gradients, over the clipping norm.
        rate: q: probability of each record to be in a batch.
        steps: How many batches.
    """

    noise_multiplier: float
    rate: float
    steps: int
    adjacency: ClassVar[str] = ADD_OR_REMOVE
    sampling: ClassVar[str] = "Poisson"
    words: ClassVar[str] = (
        "DP-SGD in {self.steps:,} Poisson batches at rate {self.rate:.6g} with noise multiplier "
        "{self.noise_multiplier:.6g}"
    )

    def wider(self) -> tuple[GaussianNoise]:
        """Return the steps without sampling: a mixture over samples is no worse than the worst of them."""
        return (GaussianNoise(self.noise_multiplier, 1.0, self.steps),)

    def concentrated(self, order: float | None) -> tuple[arb, arb]:
        """Return D_α/α at integer orders, between them bounds by the next ones, and that of the steps without sampling.

        At an integer α, of the attained pair with the record against without it, whose divergence is the larger order
        (Mironov, Talwar & Zhang 2019, arXiv:1908.10530v1, Theorems 4 and 5, Section 3.3), for each step

            D_α = ln(Σ_k C(α,k) (1−q)^{α−k} q^k e^{k(k−1)/(2σ²)})/(α−1).

        Its last term alone has D_α/α >= 1/(2σ²) − ln(1/q)/(α−1), so that the supremum is 1/(2σ²), as without sampling.
        """
        (whole,) = self.wider()
        if order is None:
            return whole.concentrated(None)
        least, most = math.floor(order), math.ceil(order)
        with precision():
            low = self._divergence(least) / arb(order) if least > 1 else arb(0)
            high = (
                self._divergence(most) / arb(order)
                if most <= MOST_ORDER
                else arb.pos_inf()
            )
            return low, high

    def _divergence(self, order: int) -> arb:
        """D of an integer order, of all steps; 0 for orders that are too large to add up."""
        if order > MOST_ORDER:
            return arb(0)
        rate, twice = ball(Fraction(self.rate)), 2 * arb(self.noise_multiplier) ** 2
        terms = (
            math.comb(order, k)
            * (1 - rate) ** (order - k)
            * rate**k
            * (arb(k * (k - 1)) / twice).exp()
            for k in range(order + 1)
        )
        return self.steps * sum(terms, arb(0)).log() / (order - 1)
