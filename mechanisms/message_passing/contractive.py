"""Noisy iterations of a map that contracts: how much all of them lose where only the last one is released."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import GaussianLaw
from auditdp.mechanism.protocol import Array
from mechanisms.cells import Rng
from mechanisms.validation import check_integer, check_positive


def counted_hops(lipschitz: float, hops: int) -> float:
    """Return as how many hops K hops count: min{K, (1 − c^K)(1 + c)/((1 + c^K)(1 − c))}, at most (1 + c)/(1 − c).

    Noise for so many releases of the sensitivity of one hop is calibrated to it.

    Source: Zheng et al. (2025), arXiv:2506.22727; ``calibrate`` in core/methods/node/caribou/caribou_edp.py of
    yuzhengcuhk/caribou-public at bc7bf38f.

    Args:
        lipschitz: c, the Lipschitz constant of a hop, in (0, 1).
        hops: K.
    """
    c, shrunk = lipschitz, lipschitz**hops
    return min(float(hops), (1 - shrunk) * (1 + c) / ((1 - c) * (1 + shrunk)))


@dataclass(frozen=True)
class ContractiveIterations:
    """K hops x ← c·x + s·data + N(0, σ²) from x = 0, of which the last is released.

    ``data`` is 0 or 1, so that s is the sensitivity of a hop. Among maps with Lipschitz constant c whose values on two
    inputs are at most s apart this one is the worst: it is the one that attains the claim.

    Claimed: μ-Gaussian DP with μ² = counted_hops(c, K)·s²/σ². Output: float64, shape (size, 1).

    Source: see ``counted_hops``.

    Args:
        lipschitz: c, in (0, 1).
        sensitivity: s, finite and > 0.
        sigma: Standard deviation of the noise of a hop, finite and > 0.
        hops: K, at least 1.
    """

    lipschitz: float
    sensitivity: float
    sigma: float
    hops: int

    def __post_init__(self) -> None:
        check_positive("ContractiveIterations", "sensitivity", self.sensitivity)
        check_positive("ContractiveIterations", "sigma", self.sigma)
        check_integer("ContractiveIterations", "hops", self.hops, 1)
        if not 0 < self.lipschitz < 1:
            raise MechanismError(
                f"ContractiveIterations: expected lipschitz in (0, 1), got {self.lipschitz!r}"
            )

    @property
    def name(self) -> str:
        """The iteration and its parameters."""
        return f"{type(self).__name__}(c={self.lipschitz:g}, s={self.sensitivity:g}, σ={self.sigma:g}, K={self.hops})"

    @property
    def mu(self) -> float:
        """The claimed μ, and a relative 1e-9 for rounding."""
        return (
            math.sqrt(counted_hops(self.lipschitz, self.hops))
            * self.sensitivity
            / self.sigma
            * (1 + 1e-9)
        )

    def __call__(self, data: int, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent last hops, float64, shape (size, 1)."""
        state = np.zeros((size, 1))
        for _ in range(self.hops):
            state = (
                self.lipschitz * state
                + self.sensitivity * data
                + self.sigma * rng.standard_normal((size, 1))
            )
        return state

    @cached_property
    def _weights(self) -> Array:
        """Share of the noise, or of the shift, of each hop in the last one."""
        return self.lipschitz ** np.arange(self.hops)[::-1].astype(float)

    def distribution(self, data: int) -> GaussianLaw:
        """Return the law of the last hop."""
        shift = self.sensitivity * data * self._weights.sum()
        return GaussianLaw(
            np.array([shift]), float(self.sigma * np.linalg.norm(self._weights))
        )


@dataclass(frozen=True)
class AllIterations(ContractiveIterations):
    """The same hops, all of which are released: μ² = K·s²/σ², whatever c is.

    Output: what each hop adds to c times the one before, which is all that they show; float64, shape (size, K).
    """

    def __call__(self, data: int, size: int, *, rng: Rng) -> Array:
        """Return the sum of all hops of ``size`` independent iterations."""
        return self.sensitivity * data + self.sigma * rng.standard_normal(
            (size, self.hops)
        )

    def distribution(self, data: int) -> GaussianLaw:
        """Return the law of the sum of all hops."""
        return GaussianLaw(
            np.full(self.hops, float(self.sensitivity * data)), self.sigma
        )
