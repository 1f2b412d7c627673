"""Pairs of 0/1 matrices of which one has one bit, or one undirected edge, more than the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

import numpy as np

from auditdp.adjacency import strategies as st
from auditdp.adjacency.base import MAX_EXHAUSTIVE, Pair

MOST_UNLABELLED = 7
"""Nodes up to which the order of nodes is tried out."""

Place = tuple[int, int]
"""Row and column of a bit; for an undirected edge, the smaller node first."""


@dataclass(frozen=True)
class Flips:
    """The pairs of matrices that differ in one place."""

    nodes: int
    """The matrices are int8, shape (nodes, nodes)."""
    places: Sequence[Place]
    """Where a matrix may have ones; elsewhere it is 0."""
    changing: Sequence[Place]
    """The places, among these, in which the two matrices of a pair may differ."""
    symmetric: bool = True
    """Whether a one at (i, j) is one at (j, i) too: a place is then an undirected edge."""

    def _matrix(self, ones: Sequence[Place]) -> np.ndarray[Any, Any]:
        matrix = np.zeros((self.nodes, self.nodes), np.int8)
        for i, j in ones:
            matrix[i, j] = 1
            if self.symmetric:
                matrix[j, i] = 1
        return matrix

    def pair(self, rest: Sequence[Place], place: Place, name: str = "") -> Pair:
        """Return the matrix with ones at the rest and at the place, against the one without the place."""
        return Pair(self._matrix([*rest, place]), self._matrix(rest), name)

    def exhaustive(self, ones: str) -> list[Pair] | None:
        """Return every pair, fewest ones first, or None above the limit; names of pairs count ``ones``, a plural."""
        if len(self.places) > 20 or len(self.changing) * 2 ** (len(self.places) - 1) > MAX_EXHAUSTIVE:
            return None
        return [
            self.pair(rest, place, f"{size + 1} | {size} {ones}")
            for size in range(len(self.places))
            for rest in combinations(self.places, size)
            for place in self.changing
            if place not in rest
        ]

    def unlabelled(self, ones: str) -> list[Pair] | None:
        """Return one of all pairs that differ in the order of the nodes only, fewest edges first, or None above 7 nodes.

        For undirected graphs with all edges as places. Reorderings map the nodes of changing edges to themselves. A set of
        edges is a number, one bit for each edge; the smallest that a reordering makes of it stands for all of them.
        """
        if self.nodes > MOST_UNLABELLED:
            return None
        inner, number = {node for edge in self.changing for node in edge}, {e: k for k, e in enumerate(self.places)}
        orders = [p for p in permutations(range(self.nodes)) if {p[node] for node in inner} == inner]
        moved = np.array([[number[min(p[i], p[j]), max(p[i], p[j])] for i, j in self.places] for p in orders])
        bits = np.int64(1) << moved
        found, graphs = [], {0}
        for size in range(len(self.places)):
            larger = set()
            for graph in sorted(graphs):
                rest = [k for k in range(len(self.places)) if graph >> k & 1]
                images, seen = bits[:, rest].sum(axis=1), set()
                for k in set(range(len(self.places))) - set(rest):
                    larger.add(int((images + bits[:, k]).min()))
                    flipped = int((images * len(self.places) + moved[:, k]).min())
                    if self.places[k] in self.changing and flipped not in seen:
                        seen.add(flipped)
                        edges = [self.places[r] for r in rest]
                        found.append(self.pair(edges, self.places[k], f"{size + 1} | {size} {ones}"))
            graphs = larger
        return found

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return pairs of any matrix and the same with any changing place flipped."""

        def build(present: list[bool], flipped: Place) -> Pair:
            ones = [place for place, here in zip(self.places, present, strict=True) if here]
            pair = self.pair([place for place in ones if place != flipped], flipped)
            return pair if flipped in ones else pair.swapped()

        flags = st.lists(st.booleans(), min_size=len(self.places), max_size=len(self.places))
        return st.builds(build, flags, st.sampled_from(self.changing))

    def wide(self) -> st.SearchStrategy[Pair]:
        """Return pairs of matrices with few ones, few zeros, or all ones of a few nodes, but for a few places."""
        few = st.lists(st.sampled_from(self.places), max_size=4, unique=True)
        hubs = st.lists(st.integers(0, self.nodes - 1), max_size=self.nodes, unique=True)

        def build(hubs: list[int], others: list[Place], flipped: Place) -> Pair:
            # A row of the matrix is a node's own, so that a place of a symmetric one belongs to two.
            full = {place for place in self.places if place[0] in hubs or (self.symmetric and place[1] in hubs)}
            ones = full ^ set(others)
            pair = self.pair(sorted(ones - {flipped}), flipped)
            return pair if flipped in ones else pair.swapped()

        return st.builds(build, hubs, few, st.sampled_from(self.changing))
