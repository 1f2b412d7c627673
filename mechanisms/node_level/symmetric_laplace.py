"""Symmetric multivariate Laplace noise: Gaussian noise in all coordinates times the root of one exponential number."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from flint import arb

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import FiniteLaw, LaplaceLaw, precision
from auditdp.mechanism.protocol import Array
from mechanisms.cells import Rng
from mechanisms.validation import check_integer, check_positive


@dataclass(frozen=True)
class SymmetricLaplace:
    """A vector whose first coordinate is ``data`` and whose others are 0, plus √W·N(0, σ² I), W exponential with mean 1.

    Claimed, for vectors at most Δ apart: √2·Δ/σ-DP, as for Laplace noise of scale σ/√2 on one number. In one dimension that
    is its law. Input: a number. Output: float64, shape (size, dimension).

    Source: Xiang, Wang & Wang (2023), arXiv:2311.06888v1; ``other_routine`` in train_scheduler.py and ``from_rdp_to_dp`` in
    privacy/mix.py of zihangxiang/PNPiGNNs at 805abe43.

    Args:
        sigma: σ, finite and > 0.
        dimension: Number of coordinates.
    """

    sigma: float
    dimension: int

    def __post_init__(self) -> None:
        check_positive("SymmetricLaplace", "sigma", self.sigma)
        check_integer("SymmetricLaplace", "dimension", self.dimension, 1)

    @property
    def name(self) -> str:
        """The noise and its dimension."""
        return f"SymmetricLaplace(sigma={self.sigma:g}, dimension={self.dimension})"

    def __call__(self, data: float, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent noisy vectors."""
        vectors = (
            np.sqrt(rng.exponential(size=(size, 1)))
            * self.sigma
            * rng.standard_normal((size, self.dimension))
        )
        vectors[:, 0] += data
        return vectors


@dataclass(frozen=True)
class SymmetricLaplaceNumber(SymmetricLaplace):
    """The same law in one dimension, where it is Laplace noise of scale σ/√2."""

    dimension: int = 1

    def __call__(self, data: float, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent noisy numbers, float64, shape (size, 1)."""
        return data + rng.laplace(0.0, self.sigma / math.sqrt(2), (size, 1))

    def distribution(self, data: float) -> LaplaceLaw:
        """Return the law."""
        return LaplaceLaw(
            np.array([float(data)]), np.array([self.sigma / math.sqrt(2)])
        )


@dataclass(frozen=True)
class WithinBall:
    """A bit: True if a noisy vector of three coordinates lies in a ball around 0.

    Output: bool, shape (size,).

    With a = √2/σ the density of the noise is a²e^(−ar)/(4πr), and the ball of radius ρ has the probability
    1 − (1 + aρ)e^(−aρ) around the vector itself, and (ρ cosh aρ − sinh(aρ)/a)·e^(−as)/s where the vector is s > ρ away
    (the screened potential of a ball). For small ρ the ratio is about 3s·e^(as)/(2ρ), and has no bound.

    Args:
        noisy: The vector, in three dimensions.
        radius: ρ, finite and > 0.
    """

    noisy: SymmetricLaplace
    radius: float

    def __post_init__(self) -> None:
        check_positive("WithinBall", "radius", self.radius)
        if self.noisy.dimension != 3:
            raise MechanismError(
                f"WithinBall: expected noise in 3 dimensions, got {self.noisy.dimension}"
            )

    @property
    def name(self) -> str:
        """The vector, and the ball."""
        return f"{self.noisy.name} within {self.radius:g} of 0"

    def __call__(self, data: float, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent bits, True for a vector in the ball."""
        return np.linalg.norm(self.noisy(data, size, rng=rng), axis=1) <= self.radius

    def distribution(self, data: float) -> FiniteLaw:
        """Return the law, enclosed.

        Raises:
            MechanismError: If 0 < |data| <= radius, for which it is not worked out here.
        """
        distance = abs(data)
        if 0 < distance <= self.radius:
            raise MechanismError(
                f"{self.name}: expected 0 or a distance > {self.radius}, got {data!r}"
            )
        with precision():
            a, rho = arb(2).sqrt() / arb(self.noisy.sigma), arb(self.radius)
            if distance:
                s = arb(distance)
                inside = (
                    (rho * (a * rho).cosh() - (a * rho).sinh() / a) * (-a * s).exp() / s
                )
            else:
                inside = 1 - (1 + a * rho) * (-a * rho).exp()
            return FiniteLaw(np.array([False, True]), [1 - inside, inside])
