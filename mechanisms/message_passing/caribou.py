"""The embedding that CARIBOU's code releases: noisy hops, and after the last noise one more aggregation over the edges."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import FiniteLaw, GaussianLaw
from auditdp.mechanism.protocol import Array
from mechanisms.cells import Rng
from mechanisms.validation import bit_matrix, check_integer, check_positive

LEAST_C = 0.1584
"""The code's constant for nodes of few neighbours: max over d of d(1/√(d+1) − 1/√(d+2))."""


def edge_sensitivity(lipschitz: float, share: float) -> float:
    """Return the code's sensitivity of a hop to an edge where a node may have no neighbours.

    It is √2 c α₁ (1/((D+1)(D+2)) + C/√(D+1) + 1/√((D+1)(D+2))) at the least degree D = 0, with 1.414 for √2.

    Source: _aggregate in core/methods/node/caribou/caribou_edp.py of yuzhengcuhk/caribou-public at bc7bf38f.
    """
    return 1.414 * lipschitz * share * (1 / 2 + LEAST_C + 1 / math.sqrt(2))


@dataclass(frozen=True)
class Hop:
    """One hop x = c(α₁ Âx₀ + (1−α₁) mean over nodes) + βx₀, plus N(0, σ²): what both releases below share.

    x₀ is public, every row (1, 1, …)/√features; Â = D^(−1/2) A D^(−1/2), 0 for isolated nodes.

    Claimed: 1/λ-Gaussian DP for an edge, σ being λ times ``edge_sensitivity``. Input: symmetric matrix of shape (nodes,
    nodes).

    Args:
        noise: λ, finite and > 0.
        nodes: Number of nodes, at least 2.
        features: Number of features, at least 2.
        lipschitz: c, in (0, 1); .9 by default in the source.
        share: α₁, in (0, 1]; .95 by default in the source.
        residual: β; .9 by default in the source.
    """

    noise: float
    nodes: int
    features: int = 2
    lipschitz: float = 0.9
    share: float = 0.95
    residual: float = 0.9

    def __post_init__(self) -> None:
        check_positive(type(self).__name__, "noise", self.noise)
        check_integer(type(self).__name__, "nodes", self.nodes, 2)
        check_integer(type(self).__name__, "features", self.features, 2)
        if not 0 < self.lipschitz < 1 or not 0 < self.share <= 1:
            raise MechanismError(
                f"{type(self).__name__}: expected lipschitz in (0, 1) and share in (0, 1], got {self.lipschitz!r} and "
                f"{self.share!r}"
            )

    @property
    def name(self) -> str:
        """The mechanism and its noise."""
        return f"{type(self).__name__}(noise={self.noise:g}, nodes={self.nodes}, features={self.features})"

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise."""
        return self.noise * edge_sensitivity(self.lipschitz, self.share)

    @property
    def public(self) -> Array:
        """The features, rows of norm 1, shape (nodes, features)."""
        return np.full((self.nodes, self.features), 1 / math.sqrt(self.features))

    def _aggregated(self, data: Array, rows: Array, mean: Array) -> Array:
        """Return c(α₁ Â·rows + (1 − α₁)·mean) + βx₀; rows may have leading axes."""
        matrix = bit_matrix(self.name, data, self.nodes).astype(float)
        degrees = matrix.sum(axis=1)
        roots = np.divide(
            1, np.sqrt(degrees), out=np.zeros(self.nodes), where=degrees > 0
        )
        passed = (roots[:, None] * matrix * roots) @ rows
        return (
            self.lipschitz * (self.share * passed + (1 - self.share) * mean)
            + self.residual * self.public
        )

    def location(self, data: Array) -> Array:
        """Return the hop before the noise, shape (nodes·features,)."""
        return self._aggregated(data, self.public, self.public.mean(axis=0)).ravel()

    def _noisy(self, data: Array, size: int, rng: Rng) -> Array:
        noise = self.sigma * rng.standard_normal((size, self.nodes * self.features))
        return self.location(data) + noise


@dataclass(frozen=True)
class NoisyHop(Hop):
    """The noisy hop, released as it is. Output: float64, shape (size, nodes·features)."""

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent noisy hops."""
        return self._noisy(data, size, rng)

    def distribution(self, data: Array) -> GaussianLaw:
        """Return the law."""
        return GaussianLaw(self.location(data), self.sigma)


@dataclass(frozen=True)
class CaribouEmbedding(Hop):
    """The input of the code's classifier: the noisy hop x, aggregated once more.

    It is c(α₁ Âx + (1−α₁) mean of a row) + βx₀.

    ``compute_aggregations`` ends with that line, whose mean is over the features of each node, and nothing is added to
    it. Without neighbours all features of a node are then equal.

    Source: core/methods/node/caribou/caribou_inf.py of yuzhengcuhk/caribou-public at bc7bf38f.
    """

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent embeddings."""
        noisy = self._noisy(data, size, rng).reshape(size, self.nodes, self.features)
        released = self._aggregated(data, noisy, noisy.mean(axis=2, keepdims=True))
        return released.reshape(size, -1)


@dataclass(frozen=True)
class FeaturesAgree:
    """Number of nodes whose embedding has equal features, int8, shape (size, 1).

    It is a function of the release.

    Args:
        embedding: What is released.
    """

    embedding: CaribouEmbedding

    @property
    def name(self) -> str:
        """The embedding that is counted."""
        return f"nodes with equal features in {self.embedding.name}"

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent counts."""
        rows = self.embedding(data, size, rng=rng).reshape(
            size, self.embedding.nodes, -1
        )
        return (np.ptp(rows, axis=2) == 0).sum(axis=1, dtype=np.int8)[:, None]

    def distribution(self, data: Array) -> FiniteLaw:
        """Return the law for noise of real numbers: the number of isolated nodes, with probability 1."""
        matrix = bit_matrix(self.name, data, self.embedding.nodes)
        return FiniteLaw(
            np.array([[(matrix.sum(axis=1) == 0).sum()]], np.int8), [Fraction(1)]
        )
