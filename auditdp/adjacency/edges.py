"""Edge DP: neighbour lists that differ in one bit, graphs that differ in one edge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditdp.adjacency import strategies as st
from auditdp.adjacency.adjacency import (
    LIMITS,
    Pair,
    is_integer,
    require_integer,
    sides,
)
from auditdp.errors import AdjacencyError
from auditdp.mechanism.protocol import brief

Bits = NDArray[np.int8]
Place = tuple[int, int]
"""Row and column of a bit; the two nodes of an undirected edge, the smaller first."""


def _bits_of(name: str, pair: Pair, shape: tuple[int, ...]) -> list[Bits]:
    """Return both inputs of a pair, after a check of their shape and of their bits."""
    arrays = []
    for which, data in sides(pair):
        array = np.asarray(data)
        if array.shape != shape:
            raise AdjacencyError(
                f"{name}: {which} has shape {array.shape}, expected {shape}"
            )
        if not np.isin(array, (0, 1)).all():
            raise AdjacencyError(
                f"{name}: {which} holds values other than 0 and 1: {brief(array)}"
            )
        arrays.append(array.astype(np.int8))
    return arrays


def _are_nodes(given: Any, nodes: int) -> bool:
    return np.iterable(given) and all(is_integer(x) and 0 <= x < nodes for x in given)


@dataclass(frozen=True)
class Flips:
    """Pairs of 0/1 matrices that differ in one place.

    Attributes:
        nodes: Number of rows and of columns. The matrices are int8.
        places: The places where a matrix may have ones.
        changing: The places, among these, in which the matrices of a pair may differ.
        symmetric: Whether a one at (i, j) is also one at (j, i), so that a place is an
            undirected edge.
    """

    nodes: int
    places: Sequence[Place]
    changing: Sequence[Place]
    symmetric: bool = True

    def _matrix(self, ones: Sequence[Place]) -> Bits:
        matrix = np.zeros((self.nodes, self.nodes), np.int8)
        for i, j in ones:
            matrix[i, j] = 1
            if self.symmetric:
                matrix[j, i] = 1
        return matrix

    def pair(self, rest: Sequence[Place], place: Place, name: str = "") -> Pair:
        """Return a pair of matrices: with a one at ``place``, and with a zero there.

        Both matrices have ones at ``rest``.
        """
        return Pair(self._matrix([*rest, place]), self._matrix(rest), name)

    def exhaustive(self, ones: str) -> list[Pair] | None:
        """Return every pair, fewest ones first, or None if there are too many.

        Args:
            ones: A plural noun for the ones, for the names of pairs.
        """
        count = len(self.places)
        if len(self.changing) * 2 ** (count - 1) > LIMITS.exhaustive_pairs:
            return None
        return [
            self.pair(rest, place, f"{size + 1} | {size} {ones}")
            for size in range(count)
            for rest in combinations(self.places, size)
            for place in self.changing
            if place not in rest
        ]

    def unlabelled(self, ones: str) -> list[Pair] | None:
        """Return the pairs up to the order of the nodes, fewest edges first.

        It is for undirected graphs. Two pairs belong to one orbit if an order of the
        nodes turns one into the other; the nodes of changing edges stay among
        themselves. One pair of every orbit is returned.

        Args:
            ones: A plural noun for the ones, for the names of pairs.

        Returns:
            The pairs, or None if there are too many nodes.
        """
        if self.nodes > LIMITS.unlabelled_nodes:
            return None
        # A set of edges is a number with one bit per edge. The smallest number in the
        # orbit of a graph represents the orbit. Up to the order, every graph is a
        # representative with an added edge, so only representatives are extended.
        count = len(self.places)
        number = {edge: k for k, edge in enumerate(self.places)}
        number |= {(j, i): k for (i, j), k in number.items()}
        inner = {node for edge in self.changing for node in edge}
        # One row per order: the number of the edge to which it moves each edge.
        moved = np.array(
            [
                [number[order[i], order[j]] for i, j in self.places]
                for order in permutations(range(self.nodes))
                if {order[node] for node in inner} == inner
            ]
        )
        bits = np.int64(1) << moved
        pairs, graphs = [], {0}
        for size in range(count):
            larger = set()
            for graph in sorted(graphs):
                present = [k for k in range(count) if graph >> k & 1]
                rest = [self.places[k] for k in present]
                # The numbers of the graph in all orders.
                images = bits[:, present].sum(axis=1)
                listed = set()
                # Which pair represents an orbit depends on the order of this set.
                for k in set(range(count)) - set(present):
                    place = self.places[k]
                    larger.add(int((images + bits[:, k]).min()))
                    # A pair is a graph and an edge: the graph is the higher digit.
                    orbit = int((images * count + moved[:, k]).min())
                    if place in self.changing and orbit not in listed:
                        listed.add(orbit)
                        name = f"{size + 1} | {size} {ones}"
                        pairs.append(self.pair(rest, place, name))
            graphs = larger
        return pairs

    def _flipped(self, ones: Sequence[Place], flipped: Place) -> Pair:
        """Return the pair of a matrix and the same matrix with a place flipped."""
        pair = self.pair([place for place in ones if place != flipped], flipped)
        if flipped in ones:
            return pair
        return pair.swapped()

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return pairs of any matrix and a copy with any one changing place flipped."""

        def build(present: list[bool], flipped: Place) -> Pair:
            flagged = zip(self.places, present, strict=True)
            return self._flipped([place for place, one in flagged if one], flipped)

        count = len(self.places)
        flags = st.lists(st.booleans(), min_size=count, max_size=count)
        return st.builds(build, flags, st.sampled_from(self.changing))

    def wide(self) -> st.SearchStrategy[Pair]:
        """Return pairs with few ones, few zeros, or full rows of some nodes."""
        # Code may treat sparse graphs, dense graphs and hubs in different ways, and
        # independent bits seldom give one of them.
        exceptions = st.lists(st.sampled_from(self.places), max_size=4, unique=True)
        node = st.integers(0, self.nodes - 1)
        hubs = st.lists(node, max_size=self.nodes, unique=True)

        def build(hubs: list[int], exceptions: list[Place], flipped: Place) -> Pair:
            # A row of the matrix belongs to a node. A place of a symmetric matrix is in
            # the rows of two nodes.
            ends = 2 if self.symmetric else 1
            full = {
                place for place in self.places if not set(hubs).isdisjoint(place[:ends])
            }
            return self._flipped(sorted(full ^ set(exceptions)), flipped)

        return st.builds(build, hubs, exceptions, st.sampled_from(self.changing))


@dataclass(frozen=True)
class NeighbourList:
    """Edge local DP: two neighbour lists of one user that differ in one bit.

    An input is the neighbour list of a user, without an entry for the user: an int8
    array of zeros and ones, shape (nodes - 1,).

    Source: Qin et al. (2017), "Generating Synthetic Decentralized Social Graphs with
    Local Differential Privacy", Definition 2, as used by Hidano & Murakami
    (arXiv:2202.10209), Section III-B.

    Args:
        nodes: Number of users, >= 2.

    Raises:
        AdjacencyError: If ``nodes`` is out of range.
    """

    nodes: int

    def __post_init__(self) -> None:
        require_integer(self, "nodes", 2)

    @property
    def name(self) -> str:
        """The adjacency and its size."""
        return f"edge LDP (one bit of a neighbour list), {self.nodes} nodes"

    def check(self, pair: Pair) -> None:
        """Raise unless the lists have nodes - 1 bits and differ in exactly one."""
        a, b = _bits_of(self.name, pair, (self.nodes - 1,))
        count = int((a != b).sum())
        if count != 1:
            raise AdjacencyError(
                f"{self.name}: the lists differ in {count} bits, "
                f"expected exactly 1: {pair}"
            )

    def _pair(self, low: Sequence[int] | NDArray[Any], place: int) -> Pair:
        """Return the pair of a list with a one at ``place``, and the list ``low``.

        ``low`` has a zero there.
        """
        pair, degree = _flip(low, place), sum(low)
        return replace(pair, name=f"degree {degree + 1} | {degree}")

    def pairs(self) -> list[Pair]:
        """Return one pair each of the smallest, the middle and the largest degree.

        Up to the order of the nodes there is only one pair for every degree.
        """
        bits = self.nodes - 1
        return [
            self._pair(np.arange(bits) < degree, degree)
            for degree in sorted({0, bits // 2, bits - 1})
        ]

    def exhaustive(self) -> list[Pair] | None:
        """Return all (nodes - 1) 2^(nodes - 2) pairs, or None if there are too many."""
        # A power of a numpy integer could overflow and hide the size.
        bits = int(self.nodes) - 1
        if bits * 2 ** (bits - 1) > LIMITS.exhaustive_pairs:
            return None
        return [
            self._pair(low, place)
            for low in sorted(product((0, 1), repeat=bits), key=sum)
            for place in range(bits)
            if not low[place]
        ]

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return pairs with any list and any flipped bit."""
        bits = self.nodes - 1
        lists = st.lists(st.integers(0, 1), min_size=bits, max_size=bits)
        return st.builds(_flip, lists, st.integers(0, bits - 1))

    def wide(self) -> st.SearchStrategy[Pair]:
        """Return pairs of every degree, with consecutive ones in the list.

        Lists of independent bits mostly have middle degrees.
        """
        bits = self.nodes - 1

        def build(degree: int, start: int, flipped: int) -> Pair:
            neighbour = np.zeros(bits, np.int8)
            neighbour[(start + np.arange(degree)) % bits] = 1
            return _flip(neighbour, flipped)

        place = st.integers(0, bits - 1)
        return st.builds(build, st.integers(0, bits), place, place)


def _flip(low: Sequence[int] | NDArray[Any], place: int) -> Pair:
    neighbour = np.array(low, np.int8)
    data = neighbour.copy()
    data[place] ^= 1
    return Pair(data, neighbour)


@dataclass(frozen=True)
class NeighbourLists:
    """Edge local DP for mechanisms that take the neighbour lists of all users at once.

    Neighbours differ in one bit of the list of one protected user. An input is an int8
    matrix of shape (nodes, nodes) with a zero diagonal. Row i is the list of user i, so
    the matrix need not be symmetric.

    Args:
        nodes: Number of users, >= 2.
        protected: Users whose lists are protected; by default, all users.

    Raises:
        AdjacencyError: If an argument is out of range.
    """

    nodes: int
    protected: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        require_integer(self, "nodes", 2)
        if not _are_nodes(self.users, self.nodes) or not self.users:
            raise AdjacencyError(
                "NeighbourLists: expected protected users in "
                f"0..{self.nodes - 1}, got {self.protected!r}"
            )

    @property
    def users(self) -> tuple[int, ...]:
        """The protected users."""
        if self.protected is None:
            return tuple(range(self.nodes))
        return self.protected

    @property
    def name(self) -> str:
        """The adjacency, its size, and the protected users."""
        whose = "any user"
        if self.protected is not None:
            whose = f"user {', '.join(map(str, self.protected))}"
        return f"edge LDP (one bit of the list of {whose}), {self.nodes} nodes"

    def check(self, pair: Pair) -> None:
        """Raise unless the lists differ in one off-diagonal bit of a protected user."""
        a, b = _bits_of(self.name, pair, (self.nodes, self.nodes))
        changed = np.argwhere(a != b)
        if len(changed) != 1 or a.diagonal().any() or b.diagonal().any():
            raise AdjacencyError(
                f"{self.name}: the lists differ in {len(changed)} bits, "
                f"not in one off-diagonal: {pair}"
            )
        user = changed[0][0]
        if user not in self.users:
            raise AdjacencyError(
                f"{self.name}: the bit that differs is in the list of user {user}, "
                "not a protected one"
            )

    @property
    def _flips(self) -> Flips:
        cells = list(permutations(range(self.nodes), 2))
        protected = [cell for cell in cells if cell[0] in self.users]
        return Flips(self.nodes, cells, protected, symmetric=False)

    def pairs(self) -> list[Pair]:
        """Return pairs in which one bit is flipped, in empty lists or in full lists."""
        flips = self._flips
        own = next(cell for cell in flips.changing if cell[0] == self.users[0])
        full = [cell for cell in flips.places if cell != own]
        return [
            flips.pair([], own, "empty lists + 1 bit"),
            flips.pair(full, own, "full lists - 1 bit"),
        ]

    def exhaustive(self) -> list[Pair] | None:
        """Return every pair that differs in one protected bit, or None if too many."""
        return self._flips.exhaustive("bits")

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return pairs with any lists and any bit of a protected user flipped."""
        return self._flips.strategy()

    def wide(self) -> st.SearchStrategy[Pair]:
        """Return pairs with few ones, few zeros, or full lists of some users."""
        return self._flips.wide()


@dataclass(frozen=True)
class Edges:
    """Edge DP in the central model: two undirected graphs that differ in one edge.

    An input is a symmetric int8 adjacency matrix of shape (nodes, nodes) with a zero
    diagonal. If every user releases a function of their own row, the same pairs are
    those of relationship DP: one edge is one bit in each of *two* rows.

    Source: Hay et al. (2009), "Accurate Estimation of the Degree Distribution of
    Private Networks", Section II; for relationship DP, Imola, Murakami & Chaudhuri
    (2021), "Locally Differentially Private Analysis of Graph Statistics", Definition 3.

    Args:
        nodes: Number of nodes, >= 2.
        label: The name in reports.
        among: Two or more nodes; if given, only edges between these nodes change.
        unlabelled: Whether ``exhaustive`` returns only one of all pairs that differ
            only in the order of the nodes. This is for mechanisms that treat all nodes
            of ``among`` alike, and all other nodes alike. Then all these pairs have the
            same privacy loss. Exact evidence checks this in other orders, and names it
            as an assumption.

    Raises:
        AdjacencyError: If an argument is out of range.
    """

    nodes: int
    label: str = "edge DP (one undirected edge)"
    among: tuple[int, ...] | None = None
    unlabelled: bool = False

    def __post_init__(self) -> None:
        require_integer(self, "nodes", 2)
        among = range(self.nodes) if self.among is None else self.among
        if not _are_nodes(among, self.nodes) or len(self._inner) < 2:
            raise AdjacencyError(
                "Edges: expected among, two or more of the nodes "
                f"0..{self.nodes - 1}, got {self.among!r}"
            )

    @property
    def _inner(self) -> set[int]:
        """The nodes between which edges may change."""
        return set(range(self.nodes) if self.among is None else self.among)

    @property
    def name(self) -> str:
        """The adjacency and its size."""
        text = self.label
        if self.among is not None:
            text += f", between nodes {', '.join(map(str, self.among))}"
        text += f", {self.nodes} nodes"
        if self.unlabelled:
            return f"{text} up to their order"
        return text

    @property
    def _flips(self) -> Flips:
        edges = list(combinations(range(self.nodes), 2))
        return Flips(self.nodes, edges, list(combinations(sorted(self._inner), 2)))

    def check(self, pair: Pair) -> None:
        """Raise unless both are simple undirected graphs that differ in one edge."""
        a, b = _bits_of(self.name, pair, (self.nodes, self.nodes))
        for which, matrix in (("data", a), ("neighbour", b)):
            if (matrix != matrix.T).any() or matrix.diagonal().any():
                raise AdjacencyError(
                    f"{self.name}: {which} is not symmetric with a zero diagonal: "
                    f"{brief(matrix)}"
                )
        changed = np.argwhere(np.triu(a != b)).tolist()
        if len(changed) != 1:
            raise AdjacencyError(
                f"{self.name}: the graphs differ in {len(changed)} edges, "
                f"expected exactly 1: {pair}"
            )
        if not set(changed[0]) <= self._inner:
            raise AdjacencyError(
                f"{self.name}: edge {tuple(changed[0])} differs, "
                f"which is not between these nodes: {pair}"
            )

    def pairs(self) -> list[Pair]:
        """Return an empty graph, a star and a clique, each with and without an edge.

        The star needs four nodes, and the clique three.
        """
        flips = self._flips
        first, last = flips.changing[0], flips.changing[-1]
        centre, leaf = first[0], last[1]
        star = [(centre, k) for k in range(self.nodes) if k not in (centre, leaf)]
        clique = [edge for edge in flips.places if edge != last]
        listed = [flips.pair([], first, "empty graph + 1 edge")]
        if self.nodes > 3:
            listed.append(flips.pair(star, (centre, leaf), "star ± 1 leaf"))
        if self.nodes > 2:
            listed.append(flips.pair(clique, last, "clique - 1 edge"))
        return listed

    def exhaustive(self) -> list[Pair] | None:
        """Return every unordered pair of the set, or None if there are too many.

        With ``unlabelled``, only one of all pairs that differ only in the order of the
        nodes is returned.
        """
        flips = self._flips
        if self.unlabelled:
            return flips.unlabelled("edges")
        return flips.exhaustive("edges")

    def reordered(self, pair: Pair, number: int, rng: np.random.Generator) -> Pair:
        """Return the pair with its nodes in another random order.

        Nodes of ``among`` stay among themselves.

        Args:
            pair: The pair.
            number: Index of the edge in which the graphs of the returned pair differ.
                It counts the edges that may change, modulo their number.
            rng: The randomness of the order.
        """
        changing = self._flips.changing
        target = np.array(changing[number % len(changing)])
        source = np.argwhere(np.triu(pair.data != pair.neighbour))[0]
        nodes = np.arange(self.nodes)
        inner = np.array(sorted(self._inner))
        new_place = nodes.copy()
        new_place[source] = rng.permutation(target)
        # The ends of the changed edge go to the ends of the wanted one. All other nodes
        # are permuted, those of ``among`` and the rest each among themselves.
        for group in (inner, np.setdiff1d(nodes, inner)):
            rest, places = (np.setdiff1d(group, ends) for ends in (source, target))
            new_place[rest] = rng.permutation(places)
        order = np.argsort(new_place)
        data, neighbour = (
            np.asarray(matrix)[np.ix_(order, order)] for _, matrix in sides(pair)
        )
        return Pair(data, neighbour, pair.name)

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return pairs with any graph and any edge added or removed."""
        return self._flips.strategy()

    def wide(self) -> st.SearchStrategy[Pair]:
        """Return pairs of graphs with few edges, few missing edges, or hubs."""
        return self._flips.wide()


def Relationship(nodes: int, among: tuple[int, ...] | None = None) -> Edges:  # noqa: N802 - reads as what it returns
    """Return the pairs of relationship DP: one edge is a bit in two neighbour lists."""
    label = "relationship DP (one edge, in both users' lists)"
    return Edges(nodes, label, among)
