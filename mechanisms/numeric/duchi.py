"""The mechanism of Duchi, Jordan and Wainwright: one of two values."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from auditdp.mechanism.laws import Envelope, FiniteLaw
from auditdp.mechanism.protocol import Array
from mechanisms.backend import Backend, Values
from mechanisms.numeric.scalar import Scalar, extremes, record
from mechanisms.rounding import keep_probability


@dataclass(frozen=True)
class Duchi(Scalar):
    """C with probability ½ + x(E−1)/(2(E+1)), else −C, where E = e^ε and C = (E+1)/(E−1).

    Claimed: ε-LDP, unbiased, variance C² − x². True: the probability is linear in x, so the loss is largest between 1 and
    −1, where it is ln E.

    Source: Duchi, Jordan & Wainwright (2018), "Minimax Optimal Procedures for Locally Private Estimation", JASA 113.

    Note:
        P(C | x = 1) is rounded towards privacy to p, a multiple of 2^-53, and C is 1/(2p − 1). P(C | x) is rounded to such
        a multiple between 1 − p and p, which moves the mean by at most C 2^-52.

    Args:
        epsilon: Privacy loss in nats, finite and at least 2^-30.
    """

    epsilon: float
    finite = True

    @property
    def atoms(self) -> tuple[float, ...]:
        """−C and C."""
        return (-self.size, self.size)

    @cached_property
    def keep(self) -> float:
        """p, the probability of the sign of an input at either end."""
        return keep_probability(self.epsilon)

    @cached_property
    def size(self) -> float:
        """C."""
        return 1 / (2 * self.keep - 1)

    def positive(self, x: Values, xp: Any) -> Values:
        """Return P(C | x): ½ + |x|(p − ½), in [½, p] where all doubles are multiples of 2^-53, or 1 minus that."""
        agree = 0.5 + abs(x) * (self.keep - 0.5)
        return xp.where(x < 0, 1 - agree, agree)

    def output_range(self, data: Any) -> tuple[float, float]:
        """Return −C and C."""
        return -self.size, self.size

    def draw(self, x: Values, backend: Backend) -> Values:
        """Return C or −C for each number."""
        return self.size * (
            2 * backend.array(backend.uniform(*x.shape) < self.positive(x, backend.xp))
            - 1
        )

    def distribution(self, data: Any) -> FiniteLaw:
        """Return the exact law as Fractions."""
        (p,) = self.positive(record(self.name, data), np)
        return FiniteLaw(
            np.array([-self.size, self.size]),
            [1 - Fraction(float(p)), Fraction(float(p))],
        )

    def log_prob(self, outputs: Array, data: Any) -> Array:
        """Return the log probability of each output, shape (size,)."""
        return self.distribution(data).log_prob(outputs)

    def envelope(self) -> Envelope:
        """Return 1 − p and p for either value, from the laws at both ends."""
        return extremes(self, -1.0, 1.0)

    def variance(self, x: Any) -> Any:
        """Return C² − x²."""
        return self.size**2 - np.square(x)

    @property
    def largest_variance(self) -> float:
        """C², at x = 0."""
        return self.size**2
