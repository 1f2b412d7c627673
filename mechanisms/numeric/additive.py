"""Laplace and Gaussian noise on features: the field's baselines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb

from auditdp.mechanism.laws import Envelope, GaussianLaw, precision
from auditdp.mechanism.protocol import Array
from mechanisms.backend import Backend, Rng, Values, backend_of
from mechanisms.classic import Gaussian
from mechanisms.numeric.scalar import HIGH, LOW, Scalar, inside, record, records
from mechanisms.rounding import laplace_scale
from mechanisms.validation import check_integer


@dataclass(frozen=True)
class LaplaceFeature(Scalar):
    """The number plus Lap(2/ε).

    Claimed: ε-LDP and unbiased, variance 8/ε². True: two numbers of [−1, 1] differ by at most 2, and the loss is 2 over the
    scale for every output beyond both.

    Source: Dwork, McSherry, Nissim & Smith (2006), "Calibrating Noise to Sensitivity in Private Data Analysis", TCC.

    Note:
        The scale b is the second smallest double with 2/b <= ε, so that 2/b < ε even where 2/ε is a double. The law is that
        of real-valued noise (``mechanisms.classic.floating`` is about the bits of doubles).

    Args:
        epsilon: Privacy loss in nats, finite and at least 2^-30.
    """

    epsilon: float

    @cached_property
    def scale(self) -> float:
        """b, the scale of the noise."""
        return math.nextafter(laplace_scale(2, self.epsilon), math.inf)

    def draw(self, x: Values, backend: Backend) -> Values:
        """Return each number with noise of its own."""
        return x + self.scale * backend.laplace(*x.shape)

    def log_prob(self, outputs: Array, data: Any) -> Array:
        """Return the log density of each output, shape (size,)."""
        distance = np.abs(np.reshape(outputs, -1) - record(self.name, data))
        return -distance / self.scale - math.log(2 * self.scale)

    def envelope(self) -> Envelope:
        """Return the densities 2 apart and at the centre; their ratio is that of all outputs beyond 1, or below −1."""
        with precision():
            most = 1 / (2 * arb(self.scale))
            least = most * (-2 / arb(self.scale)).exp()
        words = ["1 (or any number above)", "-1 (or any number below)"]
        return Envelope(words, [least] * 2, [most] * 2, [(HIGH, LOW), (LOW, HIGH)])

    def variance(self, x: Any) -> Any:
        """Return 2b²."""
        return 2 * self.scale**2 + 0 * np.asarray(x, dtype=np.float64)

    @property
    def largest_variance(self) -> float:
        """2b², 8/ε² but for rounding."""
        return 2 * self.scale**2


@dataclass(frozen=True)
class GaussianFeatures:
    """A record of d numbers of [−1, 1] plus N(0, σ² I), with the smallest σ for (ε, δ).

    Claimed: (ε, δ)-LDP and unbiased, variance σ² per coordinate. True: two records are at most 2√d apart in ℓ₂, and σ is
    calibrated to that by the exact curve of the Gaussian mechanism.

    Source: Balle & Wang (2018), "Improving the Gaussian Mechanism for Differential Privacy", arXiv:1805.06530, Theorem 8.

    Args:
        epsilon: ε in nats, finite and > 0.
        delta: δ in (0, 1).
        dimension: d, >= 1.
    """

    epsilon: float
    delta: float
    dimension: int = 1
    norm = "l2"

    def __post_init__(self) -> None:
        check_integer("GaussianFeatures", "dimension", self.dimension, 1)
        Gaussian(self.epsilon, self.delta)  # checks both

    @property
    def name(self) -> str:
        """The mechanism and its parameters."""
        return f"GaussianFeatures(epsilon={self.epsilon:g}, delta={self.delta:g}, dimension={self.dimension})"

    @property
    def sensitivity(self) -> float:
        """2√d, the largest ℓ₂ distance of two records, rounded up."""
        return math.nextafter(2 * math.sqrt(self.dimension), math.inf)

    @cached_property
    def sigma(self) -> float:
        """σ, the standard deviation of every coordinate's noise."""
        return Gaussian(self.epsilon, self.delta, sensitivity=self.sensitivity).sigma

    def query(self, data: Any, rng: Any = None) -> Array:
        """Return the record, without noise; shape (d,)."""
        return record(self.name, data, self.dimension)

    def perturb(self, values: Any, *, rng: Rng) -> Values:
        """Return one noisy record for each row, float64, shape (n, d), on the generator's device.

        Raises:
            MechanismError: If a number is outside [−1, 1], or the rows have another length.
        """
        backend = backend_of(rng)
        x = records(self.name, inside(self.name, values, backend), self.dimension)
        return x + self.sigma * backend.normal(*x.shape)

    def __call__(self, data: Any, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent noisy records, float64, shape (size, d)."""
        return self.perturb(np.tile(self.query(data), (size, 1)), rng=rng)

    def distribution(self, data: Any) -> GaussianLaw:
        """Return the law."""
        return GaussianLaw(self.query(data), self.sigma)

    def variance(self, x: Any) -> Any:
        """Return σ², per coordinate."""
        return self.sigma**2 + 0 * np.asarray(x, dtype=np.float64)
