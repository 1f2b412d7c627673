"""DPDGC's embedding of neighbour lists, A·W plus noise, as far as one node that others may have as a neighbour matters."""

from __future__ import annotations

import math
from dataclasses import dataclass

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import GaussianLaw
from auditdp.mechanism.protocol import Array
from mechanisms.cells import Rng
from mechanisms.validation import bit_list, check_integer, check_positive


@dataclass(frozen=True)
class NeighbourEmbedding:
    """The rows of the other nodes in A·W + N(0, σ²): each has the weights of a node that is its neighbour, or not.

    W is public here (it is trained privately before). Only the row w of W that belongs to the node matters, and of it only
    ‖w‖: along w, and across it everything is noise. σ = λ·s·√(2D), where s is what the rows of W are said to be scaled to.

    Claimed: 1/λ-Gaussian DP for a node that is replaced. Input: who has the node as a neighbour, bits of shape (others,),
    at most D of them 1. Output: float64, shape (size, others).

    Source: Chien et al. (2023), arXiv:2307.06422; ``perturb`` in core/methods/node/dpdgc/dpdgc_ndp.py and
    ``AdjEncoderModule`` in core/modules/node/em.py of thupchnsky/dp-gnn at 6ea28473.

    Args:
        noise: λ, finite and > 0.
        norm_scale: s, finite and > 0.
        max_degree: D, at least 1.
        weight: ‖w‖; None for s, the norm that the rows are said to have.
    """

    noise: float
    norm_scale: float
    max_degree: int
    weight: float | None = None

    def __post_init__(self) -> None:
        check_positive("NeighbourEmbedding", "noise", self.noise)
        check_positive("NeighbourEmbedding", "norm_scale", self.norm_scale)
        check_integer("NeighbourEmbedding", "max_degree", self.max_degree, 1)

    @property
    def name(self) -> str:
        """The embedding and its parameters."""
        row = "" if self.weight is None else f", weight={self.weight:g}"
        return f"NeighbourEmbedding(noise={self.noise:g}, norm_scale={self.norm_scale:g}{row})"

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise, rounded up."""
        return (
            self.noise * self.norm_scale * math.sqrt(2 * self.max_degree) * (1 + 1e-12)
        )

    def location(self, data: Array) -> Array:
        """Return the rows along w before the noise, float64, shape (others,)."""
        bits = bit_list(self.name, data)
        if bits.sum() > self.max_degree:
            raise MechanismError(
                f"{self.name}: expected at most {self.max_degree} ones, got {bits.sum()}"
            )
        return bits.astype(float) * (
            self.norm_scale if self.weight is None else self.weight
        )

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent embeddings along w."""
        location = self.location(data)
        return location + self.sigma * rng.standard_normal((size, len(location)))

    def distribution(self, data: Array) -> GaussianLaw:
        """Return the law."""
        return GaussianLaw(self.location(data), self.sigma)
