"""The law of independent Gaussian noise on a vector."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb
from numpy.typing import NDArray

from auditdp.errors import MechanismError
from auditdp.mechanism.laws.balls import ball, precision
from auditdp.mechanism.protocol import Array

FAR = 1000
"""From here on e^(b²) is not computed: it and erfc(b) are enclosed well up to about 10 times that."""


@dataclass(frozen=True, eq=False)
class GaussianLaw:
    """N(location, σ² I). Location and σ are read as the exact rationals that the floats are.

    Args:
        location: Centre of each coordinate, shape (k,).
        sigma: Standard deviation of each coordinate, > 0.
    """

    location: Array
    sigma: float

    def __post_init__(self) -> None:
        if np.ndim(self.location) != 1 or not np.isfinite(self.location).all() or not 0 < self.sigma < math.inf:
            raise MechanismError(
                f"GaussianLaw: expected a finite location of shape (k,) and a finite sigma > 0, got {self.location!r} "
                f"and {self.sigma!r}"
            )

    def mu_against(self, other: GaussianLaw) -> arb:
        """Return μ = ‖location − location′‖₂/σ: telling the two laws apart is exactly as hard as N(μ, 1) from N(0, 1).

        Project on the line through both centres: the other directions have the same law under either.

        Raises:
            MechanismError: If σ or the number of coordinates depends on the data.
        """
        if self.sigma != other.sigma or np.shape(self.location) != np.shape(other.location):
            raise MechanismError(
                "GaussianLaw: sigma or the shape depends on the data; the closed form needs equal ones"
            )
        squares = [
            (Fraction(float(a)) - Fraction(float(b))) ** 2 for a, b in zip(self.location, other.location, strict=True)
        ]
        with precision():
            return ball(sum(squares, Fraction(0))).sqrt() / ball(Fraction(float(self.sigma)))

    def log_prob(self, outputs: Array) -> NDArray[np.float64]:
        """Return the log density of each output, shape (size,)."""
        distance = (np.asarray(outputs, dtype=np.float64).reshape(len(outputs), -1) - self.location) / self.sigma
        constant = len(self.location) * math.log(self.sigma * math.sqrt(2 * math.pi))
        return np.asarray(-(distance**2).sum(axis=1) / 2 - constant)

    def same_as(self, other: GaussianLaw) -> bool:
        """Return whether two laws agree up to rounding."""
        mine, theirs = (np.append(law.location, law.sigma) for law in (self, other))
        return mine.shape == theirs.shape and np.allclose(mine, theirs, rtol=1e-9, atol=0)


def gaussian_delta(mu: arb, epsilon: arb) -> arb:
    """Return Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), enclosed: the exact δ(ε) between N(μ, 1) and N(0, 1).

    With a, b = (ε/μ ∓ μ/2)/√2 that is (erfc(a) − e^ε erfc(b))/2, and ε = b² − a². Where e^ε is too large to be enclosed well
    beside erfc(b), e^(b²) erfc(b) = U(1/2, 1/2, b²)/√π takes its place.

    Source: Balle & Wang (2018), arXiv:1805.06530, Theorem 8.
    """
    with precision():
        if mu == 0:
            return arb(0)
        root = arb(2).sqrt()
        near, far = ((epsilon / mu + sign * mu / 2) / root for sign in (-1, 1))
        if far < FAR:
            return (near.erfc() - epsilon.exp() * far.erfc()) / 2
        half = arb(1) / 2
        scaled = (far**2).hypgeom_u(half, half) / arb.pi().sqrt()
        return (near.erfc() - (-(near**2)).exp() * scaled) / 2
