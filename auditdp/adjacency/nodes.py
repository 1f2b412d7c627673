"""The adjacencies of node DP and of canaries."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from auditdp.adjacency import strategies as st
from auditdp.adjacency.adjacency import (
    LIMITS,
    Pair,
    places,
    require_change,
    require_integer,
    sides,
)
from auditdp.errors import AdjacencyError
from auditdp.mechanism.protocol import Array, brief

EdgeList = list[tuple[int, int]]
Ids = Collection[int]


@dataclass(frozen=True)
class Nodes:
    """Node DP over a public universe of node ids: graphs that differ in one node.

    An input is a symmetric int8 adjacency matrix of shape (nodes, nodes). With change
    "replaced", any edges of one node are replaced by any others. With "removed", one
    graph is the other graph without one node: the row and the column of this node are
    zero. So every "removed" pair is also a "replaced" pair of matrices, apart from the
    diagonal.

    Without loops the diagonal is zero, and an id without edges stands for an absent
    node as well as for an isolated one. With loops every present node has a one on the
    diagonal, and every absent id a zero. With "replaced" and loops, all nodes are
    present.

    Source: Kasiviswanathan, Nissim, Raskhodnikova & Smith (2013), "Analyzing Graphs
    with Node Differential Privacy", Definition 2.1 (add or remove); for rewiring,
    Raskhodnikova & Smith (2016), "Differential Privacy for Graphs".

    Args:
        nodes: Number of ids, >= 2; with "removed" and loops, >= 1.
        change: The change of the node.
        loops: Whether nodes that are present have a one on the diagonal.

    Raises:
        AdjacencyError: If an argument is out of range.
    """

    nodes: int
    change: Literal["replaced", "removed"] = "replaced"
    loops: bool = False

    def __post_init__(self) -> None:
        require_change(self, "replaced", "removed")
        require_integer(self, "nodes", 1 if self._may_be_empty else 2)

    @property
    def _is_removed(self) -> bool:
        return self.change == "removed"

    @property
    def _may_be_empty(self) -> bool:
        """True if an isolated node differs from an absent one."""
        return self.loops and self._is_removed

    @property
    def name(self) -> str:
        """The adjacency, its size, and the use of the diagonal."""
        what = "the edges of one node replaced"
        if self._is_removed:
            what = "one node added or removed"
        ids = "1 id" if self.nodes == 1 else f"{self.nodes} ids"
        return f"node DP ({what}), {ids}{', self-loops' * self.loops}"

    def check(self, pair: Pair) -> None:
        """Raise unless both are graphs of this form and differ in one node."""
        a, b = (self._graph(which, data) for which, data in sides(pair))
        # The changed node is an end of every edge that differs.
        changed_edges = np.argwhere(a != b)
        if not len(changed_edges):
            raise AdjacencyError(f"{self.name}: the two graphs are equal: {brief(a)}")
        common_ends = set.intersection(*map(set, changed_edges.tolist()))
        if not common_ends:
            raise AdjacencyError(
                f"{self.name}: the graphs differ in edges that share no node: {pair}"
            )
        nodes = sorted(common_ends)
        if self._is_removed and all(a[v].any() and b[v].any() for v in nodes):
            raise AdjacencyError(
                f"{self.name}: node {nodes[0]} has edges in both graphs, "
                f"so it is not removed: {pair}"
            )

    def _graph(self, which: str, data: Any) -> Array:
        """Return an input as an array, after a check that it is such a graph."""
        graph = np.asarray(data)
        if (
            graph.shape != (self.nodes, self.nodes)
            or not np.isin(graph, (0, 1)).all()
            or (graph != graph.T).any()
        ):
            raise AdjacencyError(
                f"{self.name}: {which} is not a symmetric matrix of zeros and ones of "
                f"shape ({self.nodes}, {self.nodes}): {brief(graph)}"
            )
        present = np.diagonal(graph) == 1
        problem = ""
        if not self.loops and present.any():
            problem = "ones on the diagonal; give loops=True for self-loops"
        elif self.loops and not self._is_removed and not present.all():
            problem = "zeros on the diagonal; with 'replaced' all nodes are there"
        elif self.loops and graph[~present].any():
            problem = f"edges of a node that is not there: {brief(graph)}"
        if problem:
            raise AdjacencyError(f"{self.name}: {which} has {problem}")
        return graph

    def _matrix(self, edges: EdgeList, present: Ids) -> Array:
        matrix = np.zeros((self.nodes, self.nodes), np.int8)
        for i, j in edges:
            matrix[i, j] = matrix[j, i] = 1
        if self.loops:
            matrix[[*present], [*present]] = 1
        return matrix

    def _pair(
        self,
        rest: EdgeList,
        node: int,
        first: Ids,
        second: Ids | None,
        others: Ids,
        name: str = "",
    ) -> Pair:
        """Return the pair in which a node has other neighbours, or is absent.

        Args:
            rest: The edges of the other nodes.
            node: The node.
            first: Its neighbours in the first graph.
            second: Its neighbours in the second graph, or None if it is absent there.
            others: The other nodes that are present.
            name: The name of the pair.
        """
        # An absent node has no edges and, with loops, no one on the diagonal.
        graphs = []
        for neighbours in (first, second):
            edges, present = [*rest], {*others}
            if neighbours is not None:
                edges += [(node, other) for other in neighbours]
                present.add(node)
            graphs.append(self._matrix(edges, present))
        return Pair(graphs[0], graphs[1], name)

    def pairs(self) -> list[Pair]:
        """Return pairs in which a hub, a member of a clique or a leaf changes.

        The last node has no edges in one of the two graphs. With "replaced", there is
        one more pair: node 0 is a leaf of one hub, or of another.
        """
        last = self.nodes - 1
        rest = range(last)
        absent = None if self._is_removed else ()
        cases: list[tuple[EdgeList, Ids, str]] = [([], rest, "hub | no hub")]
        if self._may_be_empty and self.nodes > 1:
            cases.append(([], (), "isolated node | no node"))
        if self.nodes > 2:
            star = [(0, j) for j in range(1, last)]
            cases += [
                (list(combinations(rest, 2)), rest, "clique ± 1 node"),
                (star, rest[1:], "two hubs share all leaves | one hub"),
                (star, (0,), "star ± 1 leaf"),
            ]
        listed = [
            self._pair(edges, last, neighbours, absent, rest, name)
            for edges, neighbours, name in cases
        ]
        if self.nodes > 2 and not self._is_removed:
            hubs = [(1 + j % 2, j) for j in range(3, self.nodes)]
            name = "leaf of one hub | of another"
            listed.append(self._pair(hubs, 0, {1}, {2}, range(self.nodes), name))
        return listed

    def exhaustive(self) -> list[Pair] | None:
        """Return every unordered pair, fewest edges first.

        Returns:
            The pairs, or None if there are too many.
        """
        most = LIMITS.removed_ids if self._is_removed else LIMITS.replaced_ids
        if self.nodes > most:
            return None
        pairs = self._removed() if self._is_removed else self._replaced()
        return sorted(
            pairs, key=lambda pair: int(pair.data.sum() + pair.neighbour.sum())
        )

    def _replaced(self) -> Iterator[Pair]:
        everybody = set(range(self.nodes))
        for node in range(self.nodes):
            others = everybody - {node}
            for first, second in combinations(_subsets(others), 2):
                changed = first ^ second
                if len(changed) == 1 and min(changed) < node:
                    # One edge differs, so the pair is listed with its other end.
                    continue
                for rest in _graphs(others):
                    name = f"node {node} rewired"
                    yield self._pair(rest, node, second, first, everybody, name)

    def _removed(self) -> Iterator[Pair]:
        for node in range(self.nodes):
            others = set(range(self.nodes)) - {node}
            for present in _subsets(others) if self.loops else [others]:
                for rest, neighbours in product(_graphs(present), [*_subsets(present)]):
                    if not self.loops and not neighbours:
                        continue
                    if not self.loops and len(neighbours) == 1:
                        (other,) = neighbours
                        if other < node and all(other not in edge for edge in rest):
                            # The edge is isolated, so it is listed with its other end.
                            continue
                    name = f"node {node} removed"
                    yield self._pair(rest, node, neighbours, None, present, name)

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return pairs with any graph and any changed node.

        In the simplest pairs there are few edges, and node 0 changes.
        """
        everybody = list(range(self.nodes))

        @st.composite
        def pairs(draw: st.DrawFn) -> Pair:
            def subset(items: Sequence[Any]) -> list[Any]:
                return [item for item in items if draw(st.booleans())]

            node = draw(st.sampled_from(everybody))
            others = [other for other in everybody if other != node]
            present = others
            if self._may_be_empty:
                absent = subset(others)
                present = [other for other in others if other not in absent]
            rest = subset([*combinations(present, 2)])
            first = subset(present)
            if self._is_removed:
                if not first and not self.loops:
                    first = others[:1]
                pair = self._pair(rest, node, first, None, present)
                if draw(st.booleans()):
                    return pair.swapped()
                return pair
            second = subset(others)
            # One edge more keeps the draw, which would otherwise be rejected.
            if first == second:
                second = [*({*second} ^ {others[0]})]
            return self._pair(rest, node, first, second, others)

        return pairs()


def _subsets(nodes: set[int]) -> Iterator[set[int]]:
    """Yield every subset of the nodes, the smallest first."""
    for size in range(len(nodes) + 1):
        yield from map(set, combinations(sorted(nodes), size))


def _graphs(nodes: set[int]) -> Iterator[EdgeList]:
    """Yield the edges of every graph on the nodes, the fewest first."""
    edges = list(combinations(sorted(nodes), 2))
    for size in range(len(edges) + 1):
        yield from map(list, combinations(edges, size))


@dataclass(frozen=True)
class Canaries:
    """Sets of canaries that are in the data; neighbours differ in one canary.

    A canary is a record that is in the data or not. The data also hold records that are
    always there. An input is a bool array of shape (count,): True for every canary in
    the data. The mechanism defines the canaries, such as a record, a node with its
    edges, or an edge. Adding or removing one canary must be a change between neighbours
    in the sense of the claim, whichever other canaries are in the data.

    Source: Steinke, Nasr & Jagielski (2023), arXiv:2305.08846v1, Section 2.

    Args:
        count: Number of canaries, >= 1.

    Raises:
        AdjacencyError: If the count is out of range.

    >>> Canaries(3).pairs()[0].data
    array([False, False,  True])
    """

    count: int

    def __post_init__(self) -> None:
        require_integer(self, "count", 1)

    @property
    def name(self) -> str:
        """The adjacency and the number of canaries."""
        if self.count == 1:
            return "1 canary, in or out"
        return f"one of {self.count:,} canaries added or removed"

    def check(self, pair: Pair) -> None:
        """Raise unless both are arrays of bools and differ in one canary."""
        for which, data in sides(pair):
            if np.shape(data) != (self.count,) or np.asarray(data).dtype != bool:
                raise AdjacencyError(
                    f"{self.name}: expected {which}, bool of shape ({self.count},), "
                    f"got {brief(data)}"
                )
        changed = int(np.sum(pair.data != pair.neighbour))
        if changed != 1:
            raise AdjacencyError(
                f"{self.name}: the inputs differ in {changed} canaries, "
                f"expected exactly one: {pair}"
            )

    def _pair(self, rest: Sequence[bool] | NDArray[np.bool_], place: int) -> Pair:
        """Return the pair with and without the canary at a place."""
        included, excluded = np.array(rest, bool), np.array(rest, bool)
        included[place], excluded[place] = True, False
        return Pair(included, excluded)

    def pairs(self) -> list[Pair]:
        """Return pairs of the last, the first and the middle canary.

        In the first pairs the data have no other canaries, and then all other canaries.
        """
        rests = (False, True) if self.count > 1 else (False,)
        return [
            self._pair([rest] * self.count, place)
            for rest, (place, _) in product(rests, places(self.count))
        ]

    def exhaustive(self) -> list[Pair] | None:
        """Return every unordered pair, or None if there are too many."""
        # A power of a numpy integer could overflow and hide the size.
        count = int(self.count)
        if count * 2 ** (count - 1) > LIMITS.exhaustive_pairs:
            return None
        return [
            self._pair(rest, place)
            for rest in product((False, True), repeat=count)
            for place in range(count)
            if not rest[place]
        ]

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return pairs with any canaries in the data; the simplest pair has one."""

        def build(rest: list[bool], place: int) -> Pair:
            pair = self._pair(rest, place)
            if rest[place]:
                return pair.swapped()
            return pair

        flags = st.lists(st.booleans(), min_size=self.count, max_size=self.count)
        return st.builds(build, flags, st.integers(0, self.count - 1))
