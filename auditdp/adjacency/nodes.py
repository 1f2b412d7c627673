"""Neighbours in node DP: graphs that differ in one node, all of its edges rewired, or the node itself there or not.

Which of some canaries are in the training data: neighbours differ in one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from auditdp.adjacency import strategies as st
from auditdp.adjacency.adjacency import MAX_EXHAUSTIVE, Pair, places, sides
from auditdp.errors import AdjacencyError
from auditdp.mechanism.protocol import Array, brief

EdgeList = list[tuple[int, int]]
MOST_REPLACED, MOST_REMOVED = 4, 5
"""Ids up to which there are at most ``MAX_EXHAUSTIVE`` pairs."""


@dataclass(frozen=True)
class Nodes:
    """Node DP over a public universe of node ids: two undirected graphs that differ in one node and its edges.

    An input is a symmetric int8 adjacency matrix of shape (nodes, nodes). With change "replaced", any edges of one node are
    replaced by any others. With "removed", one graph is the other without one node: its row and column are zero there. So
    every "removed" pair is a "replaced" pair of matrices, if the diagonal is left aside.

    Without loops the diagonal is zero, and an id without edges is a node that is not there: an isolated node cannot be told
    from an absent one. With loops every node that is there has a one on the diagonal, and other ids have none; with
    "replaced", all nodes are there.

    Source: Kasiviswanathan, Nissim, Raskhodnikova & Smith (2013), "Analyzing Graphs with Node Differential Privacy",
    Definition 2.1 (add or remove); for rewiring, Raskhodnikova & Smith (2016), "Differential Privacy for Graphs".

    Args:
        nodes: Number of ids, >= 2; with "removed" and loops, >= 1.
        change: What happens to the node.
        loops: Whether nodes that are there have a one on the diagonal.

    Raises:
        AdjacencyError: If an argument is out of range.
    """

    nodes: int
    change: Literal["replaced", "removed"] = "replaced"
    loops: bool = False

    def __post_init__(self) -> None:
        if self.change not in ("replaced", "removed"):
            raise AdjacencyError(
                f"Nodes: expected change='replaced' or 'removed', got {self.change!r}"
            )
        least = 1 if self.loops and self.change == "removed" else 2
        if not isinstance(self.nodes, int | np.integer) or self.nodes < least:
            raise AdjacencyError(
                f"Nodes: expected nodes, an integer >= {least}, got {self.nodes!r}"
            )

    @property
    def name(self) -> str:
        """The adjacency, its size, and what the diagonal says."""
        what = (
            "the edges of one node replaced"
            if self.change == "replaced"
            else "one node added or removed"
        )
        ids = "1 id" if self.nodes == 1 else f"{self.nodes} ids"
        return f"node DP ({what}), {ids}{', self-loops' if self.loops else ''}"

    def check(self, pair: Pair) -> None:
        """Raise unless both are such graphs and differ in one node."""
        a, b = (self._graph(which, data) for which, data in sides(pair))
        rows, columns = np.nonzero(a != b)
        if not len(rows):
            raise AdjacencyError(f"{self.name}: the two graphs are equal: {brief(a)}")
        changed = [v for v in range(self.nodes) if ((rows == v) | (columns == v)).all()]
        if not changed:
            raise AdjacencyError(
                f"{self.name}: the graphs differ in edges that share no node: {pair}"
            )
        if self.change == "removed" and not any(
            not a[v].any() or not b[v].any() for v in changed
        ):
            raise AdjacencyError(
                f"{self.name}: node {changed[0]} has edges in both graphs, so it is not removed: {pair}"
            )

    def _graph(self, which: str, data: Any) -> Array:
        graph = np.asarray(data)
        if (
            graph.shape != (self.nodes,) * 2
            or not np.isin(graph, (0, 1)).all()
            or (graph != graph.T).any()
        ):
            raise AdjacencyError(
                f"{self.name}: {which} is not a symmetric matrix of zeros and ones of shape ({self.nodes}, {self.nodes}): "
                f"{brief(graph)}"
            )
        there = np.diagonal(graph) == 1
        if not self.loops and there.any():
            raise AdjacencyError(
                f"{self.name}: {which} has ones on the diagonal; give loops=True for self-loops"
            )
        if self.loops and self.change == "replaced" and not there.all():
            raise AdjacencyError(
                f"{self.name}: {which} has zeros on the diagonal; with 'replaced' all nodes are there"
            )
        if self.loops and graph[~there].any():
            raise AdjacencyError(
                f"{self.name}: {which} has edges of a node that is not there: {brief(graph)}"
            )
        return graph

    def _matrix(self, edges: EdgeList, there: set[int]) -> Array:
        matrix = np.zeros((self.nodes, self.nodes), np.int8)
        for i, j in edges:
            matrix[i, j] = matrix[j, i] = 1
        if self.loops:
            matrix[list(there), list(there)] = 1
        return matrix

    def _pair(
        self,
        rest: EdgeList,
        node: int,
        first: set[int],
        second: set[int] | None,
        there: set[int],
        name: str,
    ) -> Pair:
        """The pair in which a node has the first neighbours, or the second; with None it is not there."""
        a = self._matrix([*rest, *((node, j) for j in first)], there | {node})
        b = self._matrix(
            [*rest, *((node, j) for j in second or ())],
            there if second is None else there | {node},
        )
        return Pair(a, b, name)

    def pairs(self) -> list[Pair]:
        """Return a hub, the node that joins a clique, one of two hubs that share all leaves, a leaf, and a change of hub.

        Node 0 changes from hub to hub where edges are replaced; in all other pairs the last node has no edges in one graph.
        """
        last, rest = self.nodes - 1, set(range(self.nodes - 1))
        gone: set[int] | None = set() if self.change == "replaced" else None
        found = [self._pair([], last, rest, gone, rest, "hub | no hub")]
        if self.loops and self.change == "removed" and self.nodes > 1:
            found.append(
                self._pair([], last, set(), None, rest, "isolated node | no node")
            )
        if self.nodes > 2:
            clique, star = (
                list(combinations(range(last), 2)),
                [(0, j) for j in range(1, last)],
            )
            found += [
                self._pair(clique, last, rest, gone, rest, "clique ± 1 node"),
                self._pair(
                    star,
                    last,
                    rest - {0},
                    gone,
                    rest,
                    "two hubs share all leaves | one hub",
                ),
                self._pair(star, last, {0}, gone, rest, "star ± 1 leaf"),
            ]
        if self.nodes > 2 and self.change == "replaced":
            hubs = [(1 + j % 2, j) for j in range(3, self.nodes)]
            found.append(
                self._pair(
                    hubs, 0, {1}, {2}, rest | {last}, "leaf of one hub | of another"
                )
            )
        return found

    def exhaustive(self) -> list[Pair] | None:
        """Return every unordered pair, or None above the limit."""
        if self.nodes > (MOST_REPLACED if self.change == "replaced" else MOST_REMOVED):
            return None
        found = list(self._replaced() if self.change == "replaced" else self._removed())
        return sorted(
            found, key=lambda pair: int(pair.data.sum() + pair.neighbour.sum())
        )

    def _replaced(self) -> Iterator[Pair]:
        everybody = set(range(self.nodes))
        for node in range(self.nodes):
            for first, second in combinations(_subsets(everybody - {node}), 2):
                if len(first ^ second) == 1 and min(first ^ second) < node:
                    continue  # one edge differs: the pair is listed with its other end
                for rest in _graphs(everybody - {node}):
                    yield self._pair(
                        rest, node, second, first, everybody, f"node {node} rewired"
                    )

    def _removed(self) -> Iterator[Pair]:
        for node in range(self.nodes):
            others = set(range(self.nodes)) - {node}
            for there in _subsets(others) if self.loops else [others]:
                for rest in _graphs(there):
                    ends = {end for edge in rest for end in edge}
                    for neighbours in _subsets(there):
                        alone = (
                            len(neighbours) == 1
                            and min(neighbours) < node
                            and not neighbours & ends
                        )
                        if self.loops or (
                            neighbours and not alone
                        ):  # an edge by itself is listed with its other end
                            yield self._pair(
                                rest,
                                node,
                                neighbours,
                                None,
                                there,
                                f"node {node} removed",
                            )

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return pairs with any graph and any node changed; the simplest have few edges, and node 0 changes."""
        everybody = list(range(self.nodes))

        @st.composite
        def pairs(draw: st.DrawFn) -> Pair:
            node = draw(st.sampled_from(everybody))
            others = [j for j in everybody if j != node]
            there = set(others)
            if self.loops and self.change == "removed":
                there = {j for j in others if not draw(st.booleans())}
            rest = [
                edge for edge in combinations(sorted(there), 2) if draw(st.booleans())
            ]
            first = {j for j in sorted(there) if draw(st.booleans())}
            if self.change == "removed":
                pair = self._pair(
                    rest,
                    node,
                    first or (set() if self.loops else {others[0]}),
                    None,
                    there,
                    "",
                )
                return pair.swapped() if draw(st.booleans()) else pair
            second = {j for j in others if draw(st.booleans())}
            if first == second:
                second = second ^ {others[0]}
            return self._pair(rest, node, first, second, there, "")

        return pairs()


def _subsets(nodes: set[int]) -> Iterator[set[int]]:
    """Every set of the nodes, the smallest first."""
    for size in range(len(nodes) + 1):
        yield from map(set, combinations(sorted(nodes), size))


def _graphs(nodes: set[int]) -> Iterator[EdgeList]:
    """The edges of every graph on the nodes."""
    everything = list(combinations(sorted(nodes), 2))
    for size in range(len(everything) + 1):
        yield from map(list, combinations(everything, size))


Included = NDArray[np.bool_]
"""Which canaries are in the data, shape (count,)."""


@dataclass(frozen=True)
class Canaries:
    """Records of which each may be in the data or not, beside others that always are; neighbours differ in one of them.

    An input is a bool array of shape (count,). What a canary is, the mechanism knows: a record, a node with its
    edges, an edge. Adding or removing one of them, whatever others are there, has to be a step between neighbours in the
    claim's sense.

    Source: Steinke, Nasr & Jagielski (2023), arXiv:2305.08846v1, Section 2.

    Args:
        count: How many there are, >= 1.

    Raises:
        AdjacencyError: If the count is out of range.

    >>> Canaries(3).pairs()[0].data
    array([False, False,  True])
    """

    count: int

    def __post_init__(self) -> None:
        if (
            isinstance(self.count, bool)
            or not isinstance(self.count, int | np.integer)
            or self.count < 1
        ):
            raise AdjacencyError(
                f"Canaries: expected count, an integer >= 1, got {self.count!r}"
            )

    @property
    def name(self) -> str:
        """The adjacency and how many there are."""
        return (
            "1 canary, in or out"
            if self.count == 1
            else f"one of {self.count:,} canaries added or removed"
        )

    def check(self, pair: Pair) -> None:
        """Raise unless both say which canaries are in, and differ in one."""
        for which, data in sides(pair):
            if np.shape(data) != (self.count,) or np.asarray(data).dtype != bool:
                raise AdjacencyError(
                    f"{self.name}: expected {which}, bool of shape ({self.count},), got {brief(data)}"
                )
        if (differ := int(np.sum(pair.data != pair.neighbour))) != 1:
            raise AdjacencyError(
                f"{self.name}: the inputs differ in {differ} canaries, expected exactly one: {pair}"
            )

    def _pair(
        self, rest: Sequence[bool] | Included, place: int, name: str = ""
    ) -> Pair:
        included, excluded = np.array(rest, bool), np.array(rest, bool)
        included[place], excluded[place] = True, False
        return Pair(included, excluded, name)

    def pairs(self) -> list[Pair]:
        """Return the last, the first and the middle canary in or out, without any other and with all of them."""
        rests = [False, True] if self.count > 1 else [False]
        return [
            self._pair([rest] * self.count, place)
            for rest in rests
            for place, _ in places(self.count)
        ]

    def exhaustive(self) -> list[Pair] | None:
        """Return every unordered pair, or None where there are too many."""
        if self.count > 20 or self.count * 2 ** (self.count - 1) > MAX_EXHAUSTIVE:
            return None
        everything = product((False, True), repeat=self.count)
        return [
            self._pair(rest, place)
            for rest in everything
            for place in range(self.count)
            if not rest[place]
        ]

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return pairs of any canaries; the simplest has one."""

        def build(rest: list[bool], place: int) -> Pair:
            pair = self._pair(rest, place)
            return pair.swapped() if rest[place] else pair

        flags = st.lists(st.booleans(), min_size=self.count, max_size=self.count)
        return st.builds(build, flags, st.integers(0, self.count - 1))
