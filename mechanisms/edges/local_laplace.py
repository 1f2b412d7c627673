"""LocalLap: noisy degrees and noisy cells in the local model, and the graph that the server makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import LaplaceLaw
from auditdp.mechanism.protocol import Array
from mechanisms.cells import Rng, pair_count
from mechanisms.edges.laplace_cells import (
    LaplaceMessage,
    LargestCells,
    SplitBudget,
    rounded_total,
)
from mechanisms.edges.sparse import largest_pairs, largest_rows, user_ids
from mechanisms.graphs import DirectedGraph, Graph
from mechanisms.rounding import laplace_scale, portion
from mechanisms.validation import bit_list, bit_matrix, check_integer, check_positive


@dataclass(frozen=True)
class LocalLaplace(SplitBudget):
    """The budget of LocalLap: ε₁ for the degree, ε₂ = ε − ε₁ for the cells.

    Source: Hidano & Murakami (2022), arXiv:2202.10209 (LocalLap, ε₁ = ε/10).

    Args:
        epsilon: Whole budget in nats, finite and > 0.
        share: Part of it for the degree, a tenth in the source.
    """

    epsilon: float
    share: float | Fraction = Fraction(1, 10)

    def __post_init__(self) -> None:
        check_positive("LocalLaplace", "epsilon", self.epsilon)
        portion(self.epsilon, self.share)

    @cached_property
    def degree_scale(self) -> float:
        """Laplace scale of a degree (sensitivity 1)."""
        return laplace_scale(1, self.epsilon1)


@dataclass(frozen=True)
class LocalLaplaceMessage(LaplaceMessage):
    """The message of one user: (d + Lap(1/ε₁), a_ij + Lap(1/ε₂) for j > i).

    Claimed: ε-edge LDP. Users send fewer cells the later they come; the worst case is user 0, who sends all of them.
    A bit of user i's list with j < i changes the degree alone.

    Input: neighbour list, shape (nodes − 1,). Output: float64, shape (size, 1 + nodes − 1 − user).

    Source: Hidano & Murakami (2022), arXiv:2202.10209.

    Args:
        epsilon: Whole budget in nats.
        user: Which user sends, from 0 to nodes − 1; cells j > user are the places from ``user`` of the list.
        share: Part of the budget for the degree.
    """

    epsilon: float
    user: int = 0
    share: float | Fraction = Fraction(1, 10)

    def __post_init__(self) -> None:
        _ = self.split
        check_integer("LocalLaplaceMessage", "user", self.user, 0)

    @property
    def name(self) -> str:
        """The message, its budget and its sender."""
        return f"LocalLaplaceMessage(epsilon={self.epsilon:g}, user={self.user})"

    @cached_property
    def split(self) -> LocalLaplace:
        """The split of the budget."""
        return LocalLaplace(self.epsilon, self.share)

    def distribution(self, data: Array) -> LaplaceLaw:
        """Return the law: the noisy degree first, then the cells."""
        bits = bit_list(self.name, data)
        if self.user > len(bits):
            raise MechanismError(
                f"{self.name}: a list of {len(bits)} bits has users 0 to {len(bits)}"
            )
        location = np.concatenate([[bits.sum()], bits[self.user :]]).astype(float)
        scale = np.full(len(location), self.split.cell_scale)
        scale[0] = self.split.degree_scale
        return LaplaceLaw(location, scale)


@dataclass(frozen=True)
class LocalLaplaceMessages(LaplaceMessage):
    """The messages of all users together, before the server processes them.

    The published claim is ε-edge LDP. For one undirected edge (relationship DP) two degrees and one cell change, so the
    exact budget is ε₁ + ε₁ + ε₂, that is 1.1 ε with the published split.

    Input: symmetric matrix, shape (nodes, nodes). Output: all noisy degrees, then all cells in ``np.triu_indices``
    order, float64, shape (size, nodes + nodes·(nodes−1)/2).

    Args:
        epsilon: Whole budget of one user in nats.
        nodes: Number of users, at least 2.
        share: Part of the budget for the degree.
    """

    epsilon: float
    nodes: int
    share: float | Fraction = Fraction(1, 10)

    def __post_init__(self) -> None:
        _ = self.split
        check_integer(type(self).__name__, "nodes", self.nodes, 2)

    @property
    def name(self) -> str:
        """The messages, the budget and the number of users."""
        return f"{type(self).__name__}(epsilon={self.epsilon:g}, nodes={self.nodes})"

    @cached_property
    def split(self) -> LocalLaplace:
        """The split of the budget."""
        return LocalLaplace(self.epsilon, self.share)

    def distribution(self, data: Array) -> LaplaceLaw:
        """Return the law: the noisy degrees first, then the cells."""
        matrix = bit_matrix(self.name, data, self.nodes)
        cells = matrix[np.triu_indices(self.nodes, 1)]
        location = np.concatenate([matrix.sum(axis=1, dtype=np.int64), cells]).astype(
            float
        )
        scales = [self.split.degree_scale] * self.nodes + [self.split.cell_scale] * len(
            cells
        )
        return LaplaceLaw(location, np.array(scales))


@dataclass(frozen=True)
class LocalLaplaceGraph(LargestCells):
    """LocalLap as deployed: the server turns the T largest noisy cells into edges, T = Σd*/2.

    Post-processing of ``LocalLaplaceMessages``. T is rounded to the nearest integer and clipped to [0, n(n−1)/2].
    Input: symmetric matrix. Output: the pairs above the diagonal, int8, shape (size, nodes·(nodes−1)/2).

    Args:
        epsilon: Whole budget of one user in nats.
        nodes: Number of users, at least 2.
        share: Part of the budget for the degree.
    """

    epsilon: float
    nodes: int
    share: float | Fraction = Fraction(1, 10)
    weight: ClassVar[Fraction] = Fraction(1, 2)

    def __post_init__(self) -> None:
        _ = self.message

    @property
    def name(self) -> str:
        """The mechanism, its budget and the number of users."""
        return f"LocalLaplaceGraph(epsilon={self.epsilon:g}, nodes={self.nodes})"

    @cached_property
    def message(self) -> LocalLaplaceMessages:
        """The messages of the users."""
        return LocalLaplaceMessages(self.epsilon, self.nodes, self.share)

    @property
    def counts(self) -> int:
        """One noisy degree from every user; each edge is in two of them."""
        return self.nodes

    def whole_graph(self, graph: Graph, *, rng: Rng) -> Graph:
        """Return one noisy graph in O(nodes + edges + T)."""
        split = self.message.split
        noisy = graph.degrees + rng.laplace(0, split.degree_scale, graph.nodes)
        total = rounded_total(noisy.sum() / 2, pair_count(graph.nodes))
        return largest_pairs(graph, int(total), split.cell_scale, rng)


@dataclass(frozen=True)
class LocalLaplaceRow(LargestCells):
    """LocalLap on one list, for the customised setting: the d* largest of all noisy cells of the row become ones.

    Post-processing of user 0's ``LocalLaplaceMessage``. Claimed: ε-edge LDP. Input: neighbour list, shape (k,). Output:
    int8, shape (size, k). d* is rounded to the nearest integer and clipped to [0, k].

    Source: Hidano & Murakami (2022), arXiv:2202.10209 (customised privacy settings).

    Args:
        epsilon: Whole budget in nats.
        share: Part of the budget for the degree.
    """

    epsilon: float
    share: float | Fraction = Fraction(1, 10)

    def __post_init__(self) -> None:
        _ = self.message

    @property
    def name(self) -> str:
        """The mechanism and its budget."""
        return f"LocalLaplaceRow(epsilon={self.epsilon:g})"

    @cached_property
    def message(self) -> LocalLaplaceMessage:
        """The degree and cells that the row is made of."""
        return LocalLaplaceMessage(self.epsilon, 0, self.share)

    def whole_graph(
        self, graph: Graph, *, rng: Rng, users: Sequence[int] | Any = None
    ) -> DirectedGraph:
        """Return the noisy lists of the users (all by default) in O(users + ones in + ones out)."""
        ids, split = user_ids(graph, users), self.message.split
        totals = rounded_total(
            graph.degrees[ids] + rng.laplace(0, split.degree_scale, len(ids)),
            graph.nodes - 1,
        )
        return largest_rows(graph, ids, totals, split.cell_scale, rng)
