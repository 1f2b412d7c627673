"""LapGraph: a noisy edge count and noisy cells in the central model; the largest cells become edges."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from auditdp.mechanism.laws import LaplaceLaw
from auditdp.mechanism.protocol import Array
from mechanisms.cells import Rng, pair_count
from mechanisms.edges.laplace_cells import (
    LaplaceMessage,
    LargestCells,
    SplitBudget,
    rounded_total,
)
from mechanisms.edges.sparse import largest_pairs
from mechanisms.graphs import Graph
from mechanisms.rounding import laplace_scale, portion
from mechanisms.validation import bit_matrix, check_integer, check_positive


@dataclass(frozen=True)
class LapGraphNoisy(SplitBudget, LaplaceMessage):
    """LapGraph as its theorem states it, before post-processing: |E| + Lap(1/ε₁) and every cell + Lap(1/ε₂).

    Claimed: ε-edge DP with ε₁ = ε/100 and ε₂ = ε − ε₁. One edge changes the count by 1 and one cell by 1.

    Input: symmetric matrix, shape (nodes, nodes). Output: the noisy count, then the noisy cells in ``np.triu_indices``
    order, float64, shape (size, 1 + nodes·(nodes−1)/2).

    Source: Wu et al. (2022), "LinkTeller", arXiv:2108.06504.

    Args:
        epsilon: Whole budget in nats, finite and > 0.
        nodes: Number of nodes, at least 2.
        share: Part of the budget for the count.
    """

    epsilon: float
    nodes: int
    share: float | Fraction = Fraction(1, 100)

    def __post_init__(self) -> None:
        check_positive("LapGraph", "epsilon", self.epsilon)
        check_integer("LapGraph", "nodes", self.nodes, 2)
        portion(self.epsilon, self.share)

    @property
    def name(self) -> str:
        """The mechanism, its budget and the number of nodes."""
        return f"{type(self).__name__}(epsilon={self.epsilon:g}, nodes={self.nodes})"

    @cached_property
    def count_scale(self) -> float:
        """Laplace scale of the edge count (sensitivity 1)."""
        return laplace_scale(1, self.epsilon1)

    def distribution(self, data: Array) -> LaplaceLaw:
        """Return the law: the noisy count first, then the cells."""
        cells = bit_matrix(self.name, data, self.nodes)[np.triu_indices(self.nodes, 1)]
        location = np.concatenate([[cells.sum(dtype=np.int64)], cells]).astype(float)
        return LaplaceLaw(
            location, np.array([self.count_scale] + [self.cell_scale] * len(cells))
        )


@dataclass(frozen=True)
class LapGraph(LargestCells):
    """LapGraph as deployed: the T largest noisy cells become edges, T = |E| + Lap(1/ε₁).

    Post-processing of ``LapGraphNoisy``. T is rounded to the nearest integer and clipped to [0, n(n−1)/2]. Input:
    symmetric matrix. Output: the pairs above the diagonal, int8, shape (size, nodes·(nodes−1)/2).

    Args:
        epsilon: Whole budget in nats, finite and > 0.
        nodes: Number of nodes, at least 2.
        share: Part of the budget for the count.
    """

    epsilon: float
    nodes: int
    share: float | Fraction = Fraction(1, 100)

    def __post_init__(self) -> None:
        _ = self.message

    @property
    def name(self) -> str:
        """The mechanism, its budget and the number of nodes."""
        return f"LapGraph(epsilon={self.epsilon:g}, nodes={self.nodes})"

    @cached_property
    def message(self) -> LapGraphNoisy:
        """The noisy count and cells that the graph is made of."""
        return LapGraphNoisy(self.epsilon, self.nodes, self.share)

    def whole_graph(self, graph: Graph, *, rng: Rng) -> Graph:
        """Return one noisy graph in O(nodes + edges + T)."""
        noisy = graph.edges.shape[1] + rng.laplace(0, self.message.count_scale)
        total = rounded_total(noisy, pair_count(graph.nodes))
        return largest_pairs(graph, int(total), self.message.cell_scale, rng)
