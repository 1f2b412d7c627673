"""Neighbours where only some edges are private: graphs of private edges that differ in one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from auditdp.adjacency import EdgeDP, Pair
from auditdp.adjacency.base import MAX_EXHAUSTIVE
from auditdp.errors import AdjacencyError
from mechanisms.hierarchy.dendrogram import Edge


@dataclass(frozen=True)
class PrivateEdgeDP:
    """Edge DP for private edges: two graphs of private edges that differ in one; public edges and nodes are known.

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
            raise AdjacencyError(f"PrivateEdgeDP: no pair of {self.private_nodes!r} is free for a private edge")

    @property
    def name(self) -> str:
        """The adjacency, its size, and what is public."""
        nodes = f"{self.nodes} nodes"
        if self.private_nodes is not None:
            nodes += f", private edges among {', '.join(map(str, self.private_nodes))}"
        public = ", ".join(f"{i}-{j}" for i, j in self.public) or "none"
        return f"edge DP for private edges, {nodes}, public edges: {public}"

    @property
    def candidates(self) -> list[Edge]:
        """The pairs that may have a private edge."""
        nodes = range(self.nodes) if self.private_nodes is None else sorted(self.private_nodes)
        return [pair for pair in combinations(nodes, 2) if pair not in self.public]

    def check(self, pair: Pair) -> None:
        """Raise unless the graphs differ in one edge and all their edges may be private."""
        EdgeDP(self.nodes, self.name).check(pair)
        for matrix in (pair.data, pair.neighbour):
            edges = {(int(i), int(j)) for i, j in np.argwhere(np.triu(matrix))}
            if wrong := edges - set(self.candidates):
                raise AdjacencyError(f"{self.name}: {sorted(wrong)} may not have private edges: {pair}")

    def _pair(self, rest: Sequence[Edge], edge: Edge, name: str = "") -> Pair:
        low = np.zeros((self.nodes,) * 2, np.int8)
        for i, j in rest:
            low[i, j] = low[j, i] = 1
        high = low.copy()
        high[edge] = high[edge[::-1]] = 1
        return Pair(high, low, name)

    def pairs(self) -> list[Pair]:
        """Return no private edges and all that may be, each with and without one edge."""
        *rest, last = self.candidates
        named = [self._pair([], last, "no private edge + 1"), self._pair(rest, last, "all private edges - 1")]
        return named if rest else named[:1]

    def exhaustive(self) -> list[Pair] | None:
        """Return every pair of graphs that differ in one private edge, or None above the limit."""
        free = self.candidates
        if len(free) > 20 or len(free) * 2 ** (len(free) - 1) > MAX_EXHAUSTIVE:
            return None
        return [
            self._pair(rest, edge, f"{size + 1} | {size} private edges")
            for size in range(len(free))
            for rest in combinations(free, size)
            for edge in free
            if edge not in rest
        ]

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return pairs with any private edges and any one added or removed."""
        free = self.candidates

        def build(present: list[bool], k: int) -> Pair:
            pair = self._pair(
                [edge for edge, here in zip(free, present, strict=True) if here and edge != free[k]], free[k]
            )
            return pair if present[k] else pair.swapped()

        flags = st.lists(st.booleans(), min_size=len(free), max_size=len(free))
        return st.builds(build, flags, st.integers(0, len(free) - 1))
