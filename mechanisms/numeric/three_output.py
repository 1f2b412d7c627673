"""The three-output mechanism: C, 0 or −C."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb

from auditdp.mechanism.laws import Envelope, FiniteLaw, precision
from auditdp.mechanism.protocol import Array
from mechanisms.backend import Backend, Values
from mechanisms.numeric.scalar import Scalar, extremes, record
from mechanisms.rounding import GRID, floor, multiple, on_grid, places


@dataclass(frozen=True)
class ThreeOutput(Scalar):
    """C, 0 or −C; for x >= 0, P(−C) = (1−a)/2 − (g−b)x, P(0) = a − bx, P(C) = (1−a)/2 + gx; mirrored for x < 0.

    E = e^ε, b = a(E−1)/E, g = (a+1)(E−1)/(2(E+1)), C = E(E+1)/((E−1)(E−a)), and a as ``probability_of_zero`` says.

    Claimed: ε-LDP and unbiased. True, for 0 <= a <= E/(E+2): P(0) goes from a to a/E. At x = 1, P(C) = (E−a)/(E+1) and
    P(−C) is an E-th of it; at 0 both are (1−a)/2, which lies between those two exactly if a <= E/(E+2). All is linear on
    either side of 0, so these are the extremes. The mean is C(2g−b)x = x, whatever a.

    Source: Zhao et al. (2020), "Local Differential Privacy based Federated Learning for Internet of Things",
    arXiv:2004.08856 (Three-Outputs).

    Note:
        The probabilities at 0 and at 1 are multiples of 2^-53 that keep both ratios within e^ε; those between are rounded
        to such multiples that lie between the ends, so that no ratio grows. C is the inverse of P(C | 1) − P(−C | 1): the
        mean is off by at most C 2^-52.

    Args:
        epsilon: Privacy loss in nats, finite and at least 2^-30.
    """

    epsilon: float
    finite = True

    @property
    def atoms(self) -> tuple[float, ...]:
        """−C, C, and 0 where it occurs."""
        return (-self.size, 0.0, self.size) if self.ends[0] else (-self.size, self.size)

    @cached_property
    def ends(self) -> tuple[float, float, float, float]:
        """P(0 | 0), P(0 | 1), P(−C | 0) and P(−C | 1), all multiples of 2^-53."""
        with precision():
            zero_end = multiple(
                probability_of_zero(self.epsilon) * GRID / arb(self.epsilon).exp(), 1
            )
        far_end = GRID - zero_end - places(self.epsilon, total=GRID - zero_end)
        zero = (
            min(
                floor(lambda: zero_end * arb(self.epsilon).exp()) // 2 * 2,
                GRID - 2 * far_end,
            )
            if zero_end
            else 0
        )
        return zero / GRID, zero_end / GRID, (GRID - zero) // 2 / GRID, far_end / GRID

    @cached_property
    def size(self) -> float:
        """C."""
        _, zero, _, far = self.ends
        return 1 / (1 - zero - 2 * far)

    def chances(self, x: Values, xp: Any) -> tuple[Values, Values, Values]:
        """Return the probabilities of −C, 0 and C."""
        zero, zero_end, far, far_end = self.ends
        nothing = on_grid(xp, zero - (zero - zero_end) * abs(x))
        against = on_grid(xp, far - (far - far_end) * abs(x))
        agree = 1 - nothing - against
        return xp.where(x < 0, agree, against), nothing, xp.where(x < 0, against, agree)

    def output_range(self, data: Any) -> tuple[float, float]:
        """Return −C and C."""
        return -self.size, self.size

    def draw(self, x: Values, backend: Backend) -> Values:
        """Return −C, 0 or C for each number."""
        below, nothing, _ = self.chances(x, backend.xp)
        u = backend.uniform(*x.shape)
        return self.size * (
            backend.array(u >= below + nothing) - backend.array(u < below)
        )

    def distribution(self, data: Any) -> FiniteLaw:
        """Return the exact law as Fractions."""
        chances = [
            Fraction(float(p[0])) for p in self.chances(record(self.name, data), np)
        ]
        outcomes = {
            y: p
            for y, p in zip((-self.size, 0.0, self.size), chances, strict=True)
            if p
        }
        return FiniteLaw(np.array(list(outcomes)), list(outcomes.values()))

    def log_prob(self, outputs: Array, data: Any) -> Array:
        """Return the log probability of each output, shape (size,)."""
        return self.distribution(data).log_prob(outputs)

    def envelope(self) -> Envelope:
        """Return the least and the most of the laws at −1, 1 and 0, between which probabilities are linear."""
        return extremes(self, -1.0, 1.0, 0.0)

    def variance(self, x: Any) -> Any:
        """Return C²(1 − a + b|x|) − x²."""
        zero, zero_end, *_ = self.ends
        return self.size**2 * (1 - zero + (zero - zero_end) * np.abs(x)) - np.square(x)

    @property
    def largest_variance(self) -> float:
        """The variance at |x| = C²b/2, or at 1 where that is less."""
        zero, zero_end, *_ = self.ends
        return float(self.variance(min(self.size**2 * (zero - zero_end) / 2, 1.0)))


def probability_of_zero(epsilon: float) -> arb:
    """Return a(ε): 0 for ε < ln 2, E/(E+2) for ε >= ln 5.53, between them the root of a cubic; call within ``precision()``.

    Source: Zhao et al. (2020), arXiv:2004.08856.

    Note:
        Minimising the largest variance numerically over 0 <= a <= E/(E+2) gives the same a on both sides of
        5.53 <= E < 5.5311289, where the cubic's root is still the smaller one and would be better by less than 2e-8.
    """
    e = arb(epsilon).exp()
    if epsilon < math.log(2):
        return arb(0)
    if epsilon >= math.log(5.53):
        return e / (e + 2)
    d0 = e**4 + 14 * e**3 + 50 * e**2 - 2 * e + 25
    d1 = -2 * e**6 - 42 * e**5 - 270 * e**4 - 404 * e**3 - 918 * e**2 + 30 * e - 250
    angle = arb.pi() / 3 + (-d1 / (2 * d0 * d0.sqrt())).acos() / 3
    return ((e**2 + 4 * e + 5 - 2 * d0.sqrt() * angle.cos()) / 6).max(arb(0))
