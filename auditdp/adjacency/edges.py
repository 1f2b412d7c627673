"""Neighbours among neighbour lists and graphs: one bit of a list, one bit of anybody's list, one edge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, permutations, product
from typing import Any

import numpy as np

from auditdp.adjacency import strategies as st
from auditdp.adjacency.adjacency import MAX_EXHAUSTIVE, Pair, sides
from auditdp.adjacency.tabular import Flips
from auditdp.errors import AdjacencyError
from auditdp.mechanism.protocol import brief


def _check_bits(
    name: str, which: str, data: Any, shape: tuple[int, ...]
) -> np.ndarray[Any, Any]:
    array = np.asarray(data)
    if array.shape != shape:
        raise AdjacencyError(
            f"{name}: {which} has shape {array.shape}, expected {shape}"
        )
    if not np.isin(array, (0, 1)).all():
        raise AdjacencyError(
            f"{name}: {which} holds values other than 0 and 1: {brief(array)}"
        )
    return array.astype(np.int8)


def _check_nodes(kind: str, nodes: int, least: int) -> None:
    if not isinstance(nodes, int | np.integer) or nodes < least:
        raise AdjacencyError(
            f"{kind}: expected nodes, an integer >= {least}, got {nodes!r}"
        )


@dataclass(frozen=True)
class NeighbourList:
    """Edge local DP: two neighbour lists of one user that differ in one bit.

    An input is the user's neighbour list without the diagonal, an int8 array of nodes - 1 zeros and ones.

    Source: Qin et al. (2017), "Generating Synthetic Decentralized Social Graphs with Local Differential Privacy",
    Definition 2, as used by Hidano & Murakami (arXiv:2202.10209), Section III-B.
    """

    nodes: int

    def __post_init__(self) -> None:
        _check_nodes("NeighbourList", self.nodes, 2)

    @property
    def name(self) -> str:
        """The adjacency and its size."""
        return f"edge LDP (one bit of a neighbour list), {self.nodes} nodes"

    def check(self, pair: Pair) -> None:
        """Raise unless the lists have nodes - 1 bits and differ in exactly one."""
        a, b = (
            _check_bits(self.name, which, x, (self.nodes - 1,))
            for which, x in sides(pair)
        )
        if (differ := int((a != b).sum())) != 1:
            raise AdjacencyError(
                f"{self.name}: the lists differ in {differ} bits, expected exactly 1: {pair}"
            )

    def _pair(self, degree: int) -> Pair:
        low = np.zeros(self.nodes - 1, np.int8)
        low[:degree] = 1
        high = low.copy()
        high[degree] = 1
        return Pair(high, low, f"degree {degree + 1} | {degree}")

    def pairs(self) -> list[Pair]:
        """Return the pairs of degrees 1|0, half, and full: up to the order of the nodes, the ends and the middle."""
        bits = self.nodes - 1
        return [self._pair(degree) for degree in sorted({0, bits // 2, bits - 1})]

    def exhaustive(self) -> list[Pair] | None:
        """Return all (nodes - 1) 2^(nodes - 2) pairs, or None above the limit."""
        bits = self.nodes - 1
        if bits > 20 or bits * 2 ** (bits - 1) > MAX_EXHAUSTIVE:
            return None
        return list(self._all(bits))

    @staticmethod
    def _all(bits: int) -> Iterator[Pair]:
        for low in sorted(product((0, 1), repeat=bits), key=sum):
            for j in range(bits):
                if not low[j]:
                    neighbour = np.array(low, np.int8)
                    data = neighbour.copy()
                    data[j] = 1
                    yield Pair(data, neighbour, f"degree {sum(low) + 1} | {sum(low)}")

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return pairs with any list and any flipped bit."""
        bits = self.nodes - 1

        def build(low: list[int], j: int) -> Pair:
            neighbour = np.array(low, np.int8)
            data = neighbour.copy()
            data[j] ^= 1
            return Pair(data, neighbour)

        return st.builds(
            build,
            st.lists(st.integers(0, 1), min_size=bits, max_size=bits),
            st.integers(0, bits - 1),
        )

    def wide(self) -> st.SearchStrategy[Pair]:
        """Return pairs of every degree alike."""
        bits = self.nodes - 1

        def build(degree: int, start: int, flipped: int) -> Pair:
            neighbour = np.zeros(bits, np.int8)
            neighbour[(start + np.arange(degree)) % bits] = 1
            data = neighbour.copy()
            data[flipped] ^= 1
            return Pair(data, neighbour)

        return st.builds(
            build,
            st.integers(0, bits),
            st.integers(0, bits - 1),
            st.integers(0, bits - 1),
        )


@dataclass(frozen=True)
class NeighbourLists:
    """Edge local DP seen from outside: the neighbour lists of all users, one bit of one protected user's list changed.

    An input is an int8 matrix of shape (nodes, nodes) with a zero diagonal; row i is what user i says, so it need not
    be symmetric. It is ``NeighbourList`` for mechanisms that take everybody's lists at once.

    Args:
        nodes: Number of users.
        protected: Users whose lists are protected; all of them unless given.
    """

    nodes: int
    protected: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        _check_nodes("NeighbourLists", self.nodes, 2)
        if not self.users or not set(self.users) <= set(range(self.nodes)):
            raise AdjacencyError(
                f"NeighbourLists: expected protected users in 0..{self.nodes - 1}, got {self.protected!r}"
            )

    @property
    def users(self) -> tuple[int, ...]:
        """The protected users."""
        return tuple(range(self.nodes)) if self.protected is None else self.protected

    @property
    def name(self) -> str:
        """The adjacency, its size, and who is protected."""
        whose = (
            "any user"
            if self.protected is None
            else f"user {', '.join(map(str, self.protected))}"
        )
        return f"edge LDP (one bit of the list of {whose}), {self.nodes} nodes"

    def check(self, pair: Pair) -> None:
        """Raise unless the lists differ in exactly one bit, off the diagonal, of a protected user."""
        a, b = (
            _check_bits(self.name, which, x, (self.nodes,) * 2)
            for which, x in sides(pair)
        )
        rows, columns = np.nonzero(a != b)
        if (
            len(rows) != 1
            or rows[0] == columns[0]
            or a.diagonal().any()
            or b.diagonal().any()
        ):
            raise AdjacencyError(
                f"{self.name}: the lists differ in {len(rows)} bits, not in one off-diagonal: {pair}"
            )
        if rows[0] not in self.users:
            raise AdjacencyError(
                f"{self.name}: the bit that differs is in the list of user {rows[0]}, not a protected one"
            )

    @property
    def _flips(self) -> Flips:
        cells = list(permutations(range(self.nodes), 2))
        return Flips(
            self.nodes,
            cells,
            [cell for cell in cells if cell[0] in self.users],
            symmetric=False,
        )

    def pairs(self) -> list[Pair]:
        """Return empty lists and full lists, each with and without one bit of the first protected user."""
        flips = self._flips
        own = next(cell for cell in flips.changing if cell[0] == self.users[0])
        full = [cell for cell in flips.places if cell != own]
        return [
            flips.pair([], own, "empty lists + 1 bit"),
            flips.pair(full, own, "full lists - 1 bit"),
        ]

    def exhaustive(self) -> list[Pair] | None:
        """Return every pair of lists that differ in one protected bit, or None above the limit."""
        return self._flips.exhaustive("bits")

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return pairs with any lists and any bit of a protected user flipped."""
        return self._flips.strategy()

    def wide(self) -> st.SearchStrategy[Pair]:
        """Return pairs of lists with few ones, few zeros, or full lists beside empty ones."""
        return self._flips.wide()


@dataclass(frozen=True)
class Edges:
    """Edge DP in the central model: two undirected graphs on the same nodes that differ in one edge.

    An input is a symmetric int8 adjacency matrix of shape (nodes, nodes) with a zero diagonal. When every user releases
    a function of their own row, the same pairs are the relationship adjacency: one edge is one bit of *two* rows.

    Source: Hay et al. (2009), "Accurate Estimation of the Degree Distribution of Private Networks", Section II; for
    relationship DP, Imola, Murakami & Chaudhuri (2021), "Locally Differentially Private Analysis of Graph Statistics",
    Definition 3.

    Args:
        nodes: Number of nodes.
        label: What reports call it.
        among: Only edges between these nodes change; any edge unless given.
        unlabelled: Whether ``exhaustive`` returns one of all pairs that differ in the order of the nodes only. That is for
            mechanisms that treat nodes alike (those of ``among``, and the others): they lose the same on all of these.
            Exact evidence tries it on some and names it as an assumption.
    """

    nodes: int
    label: str = "edge DP (one undirected edge)"
    among: tuple[int, ...] | None = None
    unlabelled: bool = False

    def __post_init__(self) -> None:
        _check_nodes("Edges", self.nodes, 2)
        if self.among is not None and (
            len(set(self.among)) < 2 or not set(self.among) <= set(range(self.nodes))
        ):
            raise AdjacencyError(
                f"Edges: expected among, two or more of the nodes 0..{self.nodes - 1}, got {self.among!r}"
            )

    @property
    def name(self) -> str:
        """The adjacency and its size."""
        where = (
            ""
            if self.among is None
            else f", between nodes {', '.join(map(str, self.among))}"
        )
        return f"{self.label}{where}, {self.nodes} nodes{' up to their order' if self.unlabelled else ''}"

    @property
    def _flips(self) -> Flips:
        edges = list(combinations(range(self.nodes), 2))
        return Flips(
            self.nodes,
            edges,
            edges
            if self.among is None
            else list(combinations(sorted(set(self.among)), 2)),
        )

    def check(self, pair: Pair) -> None:
        """Raise unless both matrices are simple undirected graphs that differ in one edge."""
        a, b = (
            _check_bits(self.name, which, x, (self.nodes,) * 2)
            for which, x in sides(pair)
        )
        for which, matrix in (("data", a), ("neighbour", b)):
            if (matrix != matrix.T).any() or matrix.diagonal().any():
                raise AdjacencyError(
                    f"{self.name}: {which} is not symmetric with a zero diagonal: {brief(matrix)}"
                )
        if (differ := int((a != b).sum()) // 2) != 1:
            raise AdjacencyError(
                f"{self.name}: the graphs differ in {differ} edges, expected exactly 1: {pair}"
            )
        i, j = (int(k) for k in np.argwhere(np.triu(a != b))[0])
        if self.among is not None and not {i, j} <= set(self.among):
            raise AdjacencyError(
                f"{self.name}: edge ({i}, {j}) differs, which is not between these nodes: {pair}"
            )

    def pairs(self) -> list[Pair]:
        """Return the empty graph, the star and the clique, each with and without one edge."""
        flips = self._flips
        first, last = flips.changing[0], flips.changing[-1]
        centre, leaf = first[0], last[1]
        star = [(centre, k) for k in range(self.nodes) if k not in (centre, leaf)]
        clique = [edge for edge in flips.places if edge != last]
        candidates = [
            flips.pair([], first, "empty graph + 1 edge"),
            flips.pair(star, (centre, leaf), "star ± 1 leaf"),
            flips.pair(clique, last, "clique - 1 edge"),
        ]
        return (
            candidates
            if self.nodes > 3
            else candidates[:1]
            if self.nodes == 2
            else [candidates[0], candidates[2]]
        )

    def exhaustive(self) -> list[Pair] | None:
        """Return every pair of graphs that differ in one edge, labelled unless declared otherwise; None above the limit."""
        return (
            self._flips.unlabelled("edges")
            if self.unlabelled
            else self._flips.exhaustive("edges")
        )

    def reordered(self, pair: Pair, number: int, rng: np.random.Generator) -> Pair:
        """Return the pair with its nodes in another order: the ``number``-th edge that may change is the one that does.

        Nodes of ``among`` stay among themselves.
        """
        changing = self._flips.changing
        target = np.array(changing[number % len(changing)])
        inner = sorted({node for edge in changing for node in edge})
        source = np.argwhere(np.triu(pair.data != pair.neighbour))[0]
        everybody = np.arange(self.nodes)
        place = everybody.copy()  # where each node goes
        place[source] = rng.permutation(target)
        for nodes in (np.array(inner), np.setdiff1d(everybody, inner)):
            rest, places = (np.setdiff1d(nodes, ends) for ends in (source, target))
            place[rest] = rng.permutation(places)
        order = np.argsort(place)
        data, neighbour = (
            np.asarray(matrix)[np.ix_(order, order)]
            for matrix in (pair.data, pair.neighbour)
        )
        return Pair(data, neighbour, pair.name)

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return pairs with any graph and any edge added or removed."""
        return self._flips.strategy()

    def wide(self) -> st.SearchStrategy[Pair]:
        """Return pairs of graphs with few edges, few that miss, or hubs."""
        return self._flips.wide()


def Relationship(nodes: int, among: tuple[int, ...] | None = None) -> Edges:  # noqa: N802 - reads as what it returns
    """Return relationship DP: one undirected edge, that is, one bit in each of two users' neighbour lists."""
    return Edges(
        nodes, label="relationship DP (one edge, in both users' lists)", among=among
    )
