"""Dendrograms with edge counts that a move keeps up to date without a pass over the graph.

A dendrogram over n leaves is a rooted binary tree; leaves are 0..n−1 and internal nodes n..2n−2. The *move* (r, side)
takes an internal node r that is not the root, with children x (that of ``side``) and y and sibling c, and exchanges x with
c: r then has children y and c, and its parent p has children r and x. Only the pairs across r and p change. Of the edges
across p, those between y and c come to r, and those across r, between x and y, come to p.

Each internal node keeps the list of the edges across it. A move looks at the edges across p and climbs from each to the
child of p or r above it. Every p is the parent of at most two internal nodes, so over all moves that is on average at most
2E/(n−2) edges, whatever the shape of the tree, times the depth that is climbed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from auditdp.errors import MechanismError
from auditdp.mechanism.protocol import Array
from mechanisms.cells import Rng
from mechanisms.hierarchy.likelihood import gain, term

Nested = Any
"""A dendrogram in brackets: a leaf is its number, an internal node the tuple of its two children."""
Edge = tuple[int, int]


@dataclass(frozen=True)
class Layer:
    """Edges whose likelihood a dendrogram is judged by.

    Args:
        edges: The edges (i, j).
        members: The leaves that count as possible ends of such edges.
    """

    edges: Sequence[Edge]
    members: Iterable[int]


class Move(NamedTuple):
    """A proposed move: its nodes, the weighted change of log L, and the edges' new places."""

    r: int
    p: int
    x: int
    y: int
    c: int
    change: float
    parts: list[tuple[list[Edge], list[Edge]]]


class Dendrogram:
    """A dendrogram that keeps, for every layer of edges, which of them lie across each internal node.

    Args:
        children: The two children of internal nodes n..2n−2, in this order, n−1 pairs of numbers.
        layers: The layers.

    Attributes:
        root: The number of the root; it never changes.
        children: The two children of every internal node; none of a leaf.
        parent: The parent of every node; of the root, a number that no node has.
        sizes: For every layer, how many of its members are below each node.
        across: For every layer, the edges across each node.

    Raises:
        MechanismError: If the children do not make a tree.
    """

    def __init__(
        self, children: Sequence[tuple[int, int]], layers: Sequence[Layer] = ()
    ) -> None:
        self.leaves = n = len(children) + 1
        self.children: list[list[int]] = [[] for _ in range(n)] + [
            list(pair) for pair in children
        ]
        self.parent = [2 * n - 1] * (2 * n - 1)
        for node in range(n, 2 * n - 1):
            for child in self.children[node]:
                self.parent[child] = node
        given = sorted(child for pair in children for child in pair)
        self.root = self.parent.index(2 * n - 1)
        if (
            given != [node for node in range(2 * n - 1) if node != self.root]
            or len(self._from_leaves_up()) != n - 1
        ):
            raise MechanismError(
                f"Dendrogram: expected every node but the root as one child of one node, got {children!r}"
            )
        self.movable = [node for node in range(n, 2 * n - 1) if node != self.root]
        self.sizes = [self._count(layer.members) for layer in layers]
        self.across = [self._place(layer.edges) for layer in layers]

    @classmethod
    def of(cls, nested: Nested, layers: Sequence[Layer] = ()) -> Dendrogram:
        """Return the dendrogram that the brackets show."""
        return cls(children_of(nested), layers)

    def _from_leaves_up(self) -> list[int]:
        """All internal nodes, children before parents."""
        order, stack = [], [self.root]
        while stack:
            node = stack.pop()
            if node >= self.leaves:
                order.append(node)
                stack += self.children[node]
        return order[::-1]

    def _count(self, members: Iterable[int]) -> list[int]:
        sizes = [0] * (2 * self.leaves - 1)
        for leaf in members:
            sizes[leaf] = 1
        for node in self._from_leaves_up():
            sizes[node] = sum(sizes[child] for child in self.children[node])
        return sizes

    def _place(self, edges: Sequence[Edge]) -> list[list[Edge]]:
        across: list[list[Edge]] = [[] for _ in range(2 * self.leaves - 1)]
        for edge in edges:
            across[self.common_ancestor(*edge)].append(edge)
        return across

    def common_ancestor(self, u: int, v: int) -> int:
        """Return the lowest common ancestor of two leaves."""
        above = set(self._upwards(u))
        return next(node for node in self._upwards(v) if node in above)

    def _upwards(self, node: int) -> list[int]:
        """The node, its parent, and so on to the root."""
        found = [node]
        while found[-1] != self.root:
            found.append(self.parent[found[-1]])
        return found

    def counts(self, layer: int, node: int) -> tuple[int, int]:
        """Return the edges and the pairs of members across an internal node."""
        left, right = self.children[node]
        return len(self.across[layer][node]), self.sizes[layer][left] * self.sizes[
            layer
        ][right]

    def log_likelihood(self, layer: int = 0) -> float:
        """Return log L of a layer, in nats."""
        return sum(
            term(*self.counts(layer, node))
            for node in range(self.leaves, 2 * self.leaves - 1)
        )

    def move(self, index: int, weights: Sequence[float]) -> Move:
        """Return move number ``index``, 0 to 2(n−2)−1, with Σ weight·(change of log L) over the layers."""
        r = self.movable[index // 2]
        x, y = self.children[r] if index % 2 == 0 else self.children[r][::-1]
        p = self.parent[r]
        c = self.children[p][self.children[p][0] == r]
        change, parts = 0.0, []
        for weight, sizes, across in zip(weights, self.sizes, self.across, strict=True):
            down, stay = self._split(across[p], r, p, y)
            parts.append((down, stay))
            if weight:
                moved, kept = len(down), len(across[r]) + len(stay)
                change += weight * gain(
                    (
                        (len(across[r]), sizes[x] * sizes[y]),
                        (len(across[p]), sizes[r] * sizes[c]),
                    ),
                    (
                        (moved, sizes[y] * sizes[c]),
                        (kept, (sizes[y] + sizes[c]) * sizes[x]),
                    ),
                )
        return Move(r, p, x, y, c, change, parts)

    def _split(
        self, edges: list[Edge], r: int, p: int, y: int
    ) -> tuple[list[Edge], list[Edge]]:
        """The edges across p with an end below y, and the others."""
        parent = self.parent
        down: list[Edge] = []
        stay: list[Edge] = []
        for edge in edges:
            for end in edge:
                above = parent[end]
                while above != r and above != p:
                    end = above
                    above = parent[end]
                if above == r:
                    break
            (down if end == y else stay).append(edge)
        return down, stay

    def accept(self, move: Move) -> None:
        """Carry a move out."""
        r, p, x, y, c = move.r, move.p, move.x, move.y, move.c
        self.children[r], self.children[p] = [y, c], [r, x]
        self.parent[c], self.parent[x] = r, p
        for sizes, across, (down, stay) in zip(
            self.sizes, self.across, move.parts, strict=True
        ):
            sizes[r] = sizes[y] + sizes[c]
            across[p] = across[r] + stay
            across[r] = down

    def below(self) -> list[list[int]]:
        """Return the leaves below every node, ascending."""
        found: list[list[int]] = [[leaf] for leaf in range(self.leaves)] + [
            [] for _ in range(self.leaves - 1)
        ]
        for node in self._from_leaves_up():
            found[node] = sorted(
                leaf for child in self.children[node] for leaf in found[child]
            )
        return found

    def pair_sizes(self) -> Array:
        """Return for each pair of leaves how many leaves its lowest common ancestor has below it.

        Int16, in ``np.triu_indices`` order. Distances of this kind determine the dendrogram.
        """
        sizes = np.zeros((self.leaves, self.leaves), np.int16)
        found = self.below()
        for node in range(self.leaves, 2 * self.leaves - 1):
            left, right = (found[child] for child in self.children[node])
            sizes[np.ix_(left, right)] = len(found[node])
        return np.maximum(sizes, sizes.T)[np.triu_indices(self.leaves, 1)]


def children_of(nested: Nested) -> list[tuple[int, int]]:
    """Return the children of internal nodes n..2n−2 of a dendrogram in brackets; the root comes last.

    Raises:
        MechanismError: If it is not made of pairs, or its leaves are not 0..n−1, each once.
    """
    leaves = sorted(leaves_of(nested))
    if leaves != list(range(len(leaves))) or len(leaves) < 2:
        raise MechanismError(
            f"children_of: expected leaves 0..n-1, each once, at least two of them, got {nested!r}"
        )
    children: list[tuple[int, int]] = []

    def number(tree: Nested) -> int:
        if isinstance(tree, int):
            return tree
        left, right = number(tree[0]), number(tree[1])
        children.append((left, right))
        return len(leaves) + len(children) - 1

    number(nested)
    return children


def leaves_of(nested: Nested) -> list[int]:
    """Return the leaves of a dendrogram in brackets, from left to right."""
    if isinstance(nested, int | np.integer):
        return [int(nested)]
    if not isinstance(nested, tuple) or len(nested) != 2:
        raise MechanismError(f"expected a leaf or a pair (left, right), got {nested!r}")
    return leaves_of(nested[0]) + leaves_of(nested[1])


def balanced(leaves: int) -> list[tuple[int, int]]:
    """Return the children of a dendrogram that joins neighbouring subtrees level by level."""
    level, children = list(range(leaves)), []
    while len(level) > 1:
        joined = []
        for left, right in zip(level[::2], level[1::2], strict=False):
            children.append((left, right))
            joined.append(leaves + len(children) - 1)
        level = joined + level[len(level) - len(level) % 2 :]
    return children


def uniform(leaves: int, rng: Rng) -> list[tuple[int, int]]:
    """Return the children of a uniformly random dendrogram.

    Leaf k is put on one of the 2k−1 places of the dendrogram of the first k leaves (above any of its nodes), all equally
    likely; each dendrogram arises from exactly one sequence of places, so all (2n−3)!! are equally likely.
    """
    children = [[-1, -1] for _ in range(leaves - 1)]
    parent = [-1] * (2 * leaves - 1)
    for k in range(1, leaves):
        place, new = int(rng.integers(2 * k - 1)), leaves + k - 1
        node = place if place < k else leaves + place - k
        above = parent[node]
        if above >= 0:
            pair = children[above - leaves]
            pair[pair[0] != node] = new
        children[k - 1] = [node, k]
        parent[new], parent[node], parent[k] = above, new, new
    return [(left, right) for left, right in children]
