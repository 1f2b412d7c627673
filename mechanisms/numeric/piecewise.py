"""The piecewise mechanism and its suboptimal relative: a number near the input, or anywhere else."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from flint import arb

from auditdp.mechanism.laws import Envelope, StepLaw, precision
from auditdp.mechanism.protocol import Array
from mechanisms.backend import Backend, Values
from mechanisms.numeric.scalar import HIGH, LOW, Scalar, record
from mechanisms.rounding import GRID, multiple, places


@dataclass(frozen=True)
class Piecewise(Scalar):
    """Uniform on [l, r] with probability E/(E+t), else uniform on the rest of [−C, C], where E = e^ε and t = e^(ε/root).

    C = (E+t)(t+1)/(t(E−1)) and l, r = (E+t)(xt ∓ 1)/(t(E−1)). Here root = 2.

    Claimed: ε-LDP and unbiased, variance at most 4t/(3(t−1)²). True, and the first two for every root. With
    h = (E+t)/(t(E−1)) the interval is [m − h, m + h] around m = (C − h)x, within [−C, C]; C − h = th, so the density inside,
    E/((E+t) 2h), is E times that outside, t/((E+t) 2th). The output is uniform on all of [−C, C], with mean 0, plus an
    excess of mass (E−1)/(E+t) on the interval, so its mean is (E−1)/(E+t) · m = x.

    Source: Wang et al. (2019), "Collecting and Analyzing Multidimensional Data with Local Differential Privacy",
    arXiv:1907.00782, Algorithm 2.

    Note:
        C and h are multiples of u, the spacing of doubles at C, and so is the centre m: then l and r are exact. The
        probability of the interval is the largest multiple of 2^-53 that keeps the ratio of the densities, with these very
        C and h, within e^ε. The mean is off by a few u. The law is that of a uniform real number: that a double has finitely
        many places within its interval is not part of it.

    Args:
        epsilon: Privacy loss in nats, finite and at least 2^-30.
    """

    epsilon: float
    root: ClassVar[int] = 2

    def _ball(self, numerator: Any) -> arb:
        """(E+t)/(t(E−1)) times a function of t; call it within ``precision()``."""
        epsilon = arb(self.epsilon)
        e, t = epsilon.exp(), (epsilon / self.root).exp()
        return (e + t) / (t * (e - 1)) * numerator(t)

    @cached_property
    def size(self) -> float:
        """C, the largest output."""
        with precision():
            return float(self._ball(lambda t: t + 1).mid())

    @cached_property
    def half(self) -> float:
        """h, half the width of the interval near the input: a multiple of the spacing of doubles at C."""
        unit = math.ulp(self.size)
        with precision():
            return max(multiple(self._ball(lambda t: 1), unit), 1) * unit

    @cached_property
    def near(self) -> float:
        """The probability of that interval, a multiple of 2^-53."""
        odds = Fraction(self.half) / (Fraction(self.size) - Fraction(self.half))
        return places(self.epsilon, odds=odds) / GRID

    def centre(self, x: Values, xp: Any) -> Values:
        """Return the middle of the interval, a multiple of the spacing of doubles at C."""
        unit = math.ulp(self.size)
        return xp.round((self.size - self.half) * x / unit) * unit

    def output_range(self, data: Any) -> tuple[float, float]:
        """Return −C and C."""
        return -self.size, self.size

    def draw(self, x: Values, backend: Backend) -> Values:
        """Return a number of [−C, C] for each number."""
        low, place = self.centre(x, backend.xp) - self.half, backend.uniform(*x.shape)
        outside = 2 * (self.size - self.half) * place - self.size
        outside = backend.xp.where(outside < low, outside, outside + 2 * self.half)
        return backend.xp.where(
            backend.uniform(*x.shape) < self.near, low + 2 * self.half * place, outside
        )

    @cached_property
    def densities(self) -> tuple[Fraction, Fraction]:
        """The density inside the interval and outside."""
        near, half, size = Fraction(self.near), Fraction(self.half), Fraction(self.size)
        return near / (2 * half), (1 - near) / (2 * (size - half))

    def distribution(self, data: Any) -> StepLaw:
        """Return the exact law, as Fractions."""
        (middle,) = self.centre(record(self.name, data), np)
        inner, outer = self.densities
        steps = {
            -self.size: outer,
            float(middle) - self.half: inner,
            float(middle) + self.half: outer,
        }
        steps.pop(self.size, None)
        return StepLaw([*steps, self.size], list(steps.values()))

    def log_prob(self, outputs: Array, data: Any) -> Array:
        """Return the log density of each output, shape (size,)."""
        return self.distribution(data).log_prob(outputs)

    def envelope(self) -> Envelope:
        """Return both densities: every output is near some input, and far from one of the two ends."""
        inner, outer = self.densities
        edge = self.size - 2 * self.half
        words = [f"any number above {edge:.6g}", f"any number below {-edge:.6g}"]
        return Envelope(
            outputs=words,
            least=[outer] * 2,
            most=[inner] * 2,
            inputs=[(HIGH, LOW), (LOW, HIGH)],
        )

    def variance(self, x: Any) -> Any:
        """Return (t+1)x²/(E−1) + (E+t)((t+1)³ + E − 1)/(3t²(E−1)²), as the second moment of both parts minus x²."""
        (inner, outer), half, size = map(float, self.densities), self.half, self.size
        middle = (size - half) * np.asarray(x, dtype=np.float64)
        everywhere, excess = 2 * size * outer, 2 * half * (inner - outer)
        return (
            everywhere * size**2 / 3 + excess * (middle**2 + half**2 / 3) - np.square(x)
        )

    @property
    def largest_variance(self) -> float:
        """The variance at x = ±1; with root = 2 that is 4t/(3(t−1)²)."""
        return float(self.variance(1.0))


@dataclass(frozen=True)
class PMSub(Piecewise):
    """The suboptimal piecewise mechanism: ``Piecewise`` with t = e^(ε/3).

    Claimed: ε-LDP and unbiased. True, as for ``Piecewise``.

    Source: Zhao et al. (2020), arXiv:2004.08856 (PM-SUB).

    Args:
        epsilon: Privacy loss in nats, finite and at least 2^-30.
    """

    root: ClassVar[int] = 3
