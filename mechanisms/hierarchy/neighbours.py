"""Neighbours where only some edges are private: graphs of private edges that differ in one."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from auditdp.adjacency import Edges, Pair
from auditdp.adjacency.edges import Flips
from auditdp.errors import AdjacencyError
from mechanisms.hierarchy.dendrogram import Edge


@dataclass(frozen=True)
class PrivateEdgeDP:
    """Edge DP for private edges: graphs of private edges that differ in one edge.

    Public edges and nodes are known.

    An input is the symmetric int8 matrix of the private edges, shape (nodes, nodes). A pair with a public edge has no
    private one.

    Source: Tran et al. (2022), HeteroRR, the guarantee of EdgeRR.

    Args:
        nodes: Number of nodes.
        public: The public edges (i, j), i < j.
        private_nodes: The nodes that may have private edges; all of them unless given.
    """

    nodes: int
    public: tuple[Edge, ...] = ()
    private_nodes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not self.candidates:
            raise AdjacencyError(
                f"PrivateEdgeDP: no pair of {self.private_nodes!r} is free for a private edge"
            )

    @property
    def name(self) -> str:
        """The adjacency, its size, and its public part."""
        nodes = f"{self.nodes} nodes"
        if self.private_nodes is not None:
            nodes += f", private edges among {', '.join(map(str, self.private_nodes))}"
        public = ", ".join(f"{i}-{j}" for i, j in self.public) or "none"
        return f"edge DP for private edges, {nodes}, public edges: {public}"

    @property
    def candidates(self) -> list[Edge]:
        """The pairs that may have a private edge."""
        return [
            pair
            for pair in combinations(range(self.nodes), 2)
            if self._may_be_private(pair)
        ]

    def _may_be_private(self, edge: Edge) -> bool:
        return edge not in self.public and (
            self.private_nodes is None or set(edge) <= set(self.private_nodes)
        )

    @property
    def _flips(self) -> Flips:
        return Flips(self.nodes, self.candidates, self.candidates)

    def check(self, pair: Pair) -> None:
        """Raise unless the graphs differ in one edge and all their edges may be private."""
        Edges(self.nodes, self.name).check(pair)
        for matrix in (pair.data, pair.neighbour):
            edges = [(int(i), int(j)) for i, j in np.argwhere(np.triu(matrix))]
            if wrong := [edge for edge in edges if not self._may_be_private(edge)]:
                raise AdjacencyError(
                    f"{self.name}: {wrong} may not have private edges: {pair}"
                )

    def pairs(self) -> list[Pair]:
        """Return no private edges and all that may be, each with and without one edge."""
        flips = self._flips
        *rest, last = flips.places
        named = [
            flips.pair([], last, "no private edge + 1"),
            flips.pair(rest, last, "all private edges - 1"),
        ]
        return named if rest else named[:1]

    def exhaustive(self) -> list[Pair] | None:
        """Return every pair of graphs that differ in one private edge, or None above the limit."""
        return self._flips.exhaustive("private edges")

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return pairs with any private edges and any one added or removed."""
        return self._flips.strategy()
