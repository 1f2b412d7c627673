"""The Gaussian mechanism: calibrated exactly, by the classic formula, and with a wrong σ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
from flint import arb
from scipy.optimize import brentq

from auditdp.claims.statements import GaussianDP
from auditdp.errors import MechanismError
from auditdp.mechanism.laws import FiniteLaw, ball, precision
from auditdp.mechanism.protocol import Array
from mechanisms.cells import Rng
from mechanisms.classic.noise import answers
from mechanisms.validation import check_positive


@dataclass(frozen=True)
class Gaussian:
    """Every answer plus N(0, σ²). Input shape (k,). Output: float64, shape (size, k).

    Claimed: (ε, δ)-DP where the answers change by at most 1 in ℓ₂. True: exactly the curve of GDP with μ = 1/σ, so
    (ε, δ)-DP iff δ >= Φ(−εσ + 1/(2σ)) − e^ε Φ(−εσ − 1/(2σ)) (Balle & Wang 2018, arXiv:1805.06530, Theorem 8). σ is

    - "analytic": the smallest that satisfies this, rounded up;
    - "classic": √(2 ln(1.25/δ))/ε (Dwork & Roth 2014, Theorem A.1), proved for ε < 1 and too small for large ε;
    - "laplace": 1/ε, the scale that Laplace noise would need.

    Args:
        epsilon: The claimed ε in nats, finite and > 0.
        delta: The claimed δ, in (0, 1).
        calibration: How σ is found.
        sensitivity: The ℓ₂ sensitivity that σ is multiplied by, finite and > 0; 1 is right for the claim.
    """

    epsilon: float
    delta: float
    calibration: Literal["analytic", "classic", "laplace"] = "analytic"
    sensitivity: float = 1.0
    norm = "l2"

    def __post_init__(self) -> None:
        check_positive("Gaussian", "epsilon", self.epsilon)
        check_positive("Gaussian", "sensitivity", self.sensitivity)
        if not 0 < self.delta < 1:
            raise MechanismError(
                f"Gaussian: expected delta in (0, 1), got {self.delta!r}"
            )
        if self.calibration not in ("analytic", "classic", "laplace"):
            raise MechanismError(
                f"Gaussian: expected calibration 'analytic', 'classic' or 'laplace', got {self.calibration!r}"
            )

    @property
    def name(self) -> str:
        """The mechanism and its parameters."""
        return f"Gaussian(epsilon={self.epsilon:g}, delta={self.delta:g}, {self.calibration}, σ={self.sigma:.4g})"

    @cached_property
    def sigma(self) -> float:
        """The standard deviation of the noise."""
        if self.calibration == "analytic":
            return self.sensitivity * _analytic(self.epsilon, self.delta)
        if self.calibration == "laplace":
            return self.sensitivity / self.epsilon
        return (
            self.sensitivity * math.sqrt(2 * math.log(1.25 / self.delta)) / self.epsilon
        )

    def query(self, data: Array, rng: Rng | None = None) -> Array:
        """Return the answers without noise, shape (k,)."""
        return answers("Gaussian", data)

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent noisy answers, float64, shape (size, k)."""
        location = self.query(data)
        noisy = rng.standard_normal((size, len(location)))
        noisy *= self.sigma
        noisy += location
        return noisy

    def log_prob(self, outputs: Array, data: Array) -> Array:
        """Return the log density of each output, shape (size,)."""
        location = self.query(data)
        constant = len(location) * math.log(self.sigma * math.sqrt(2 * math.pi))
        return -(((outputs - location) / self.sigma) ** 2).sum(axis=1) / 2 - constant


@dataclass(frozen=True)
class GaussianAbove:
    """A bit: True if a noisy answer exceeds a threshold.

    Every test of Gaussian noise is a test of such a bit.

    The likelihood ratio of N(1, σ²) to N(0, σ²) grows with the output, so by Neyman and Pearson the largest
    P(A) − e^ε Q(A) is that of "above 1/2 + εσ²", where the ratio is e^ε. With this threshold, exact evidence on the one
    bit for the answers 1 and 0 is exact evidence on the mechanism's δ(ε). Output: bool, shape (size,).

    Args:
        gaussian: The mechanism that is thresholded.
    """

    gaussian: Gaussian

    @property
    def name(self) -> str:
        """The mechanism that is thresholded, and where."""
        return f"{self.gaussian.name} above {self.threshold:.4g}"

    @property
    def threshold(self) -> float:
        """1/2 + εσ²."""
        return 0.5 + self.gaussian.epsilon * self.gaussian.sigma**2

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent bits, bool, shape (size,)."""
        return (
            self.gaussian(answers(self.name, data, length=1), size, rng=rng)[:, 0]
            > self.threshold
        )

    def distribution(self, data: Array) -> FiniteLaw:
        """Return the law of the bit, rigorously enclosed."""
        (answer,) = answers(self.name, data, length=1)
        distance, sigma = (
            Fraction(self.threshold) - Fraction(float(answer)),
            Fraction(self.gaussian.sigma),
        )
        with precision():
            above = (ball(distance / sigma) / arb(2).sqrt()).erfc() / 2
            return FiniteLaw(np.array([False, True]), [1 - above, above])


def _analytic(epsilon: float, delta: float) -> float:
    """The smallest σ of sensitivity 1 whose curve passes below (epsilon, delta), and a relative 1e-9 more."""
    largest = 40 / epsilon + 40
    smallest = 1e-3

    def excess(sigma: float) -> float:
        return GaussianDP(1 / sigma).delta_at(epsilon) - delta

    return float(brentq(excess, smallest, largest, xtol=1e-14)) * (1 + 1e-9)
