"""Pairs of graphs like a given pair: the same change, of a node or an edge.

A graph is a tuple of features, labels or both, with the edges last; or a dict or any
object that has edges called ``edge_index`` or ``edges`` beside features, labels and
masks of nodes, such as a graph of torch_geometric. Edges are an array of integers of
shape (2, edges), or a list of pairs. A graph is undirected if every edge comes in both
directions, or if no edge has the larger end first; then the generated graphs are
undirected too. If every node has an edge to itself, so has every node of a generated
graph. Generated pairs have these limits:

- The two graphs of a generated pair have the numbers of nodes of the given ones.
- No pair changes more kinds of things than the given one. For example, if the features
  are the same in both inputs, only edges differ, and the features are the given ones.
  The readings of a pair (``AlikeGraph.readings``) name its change.
- No node has more edges than the node with most edges in the given graphs.

Graph networks sum the features of neighbours. A node changes these sums most if it has
many neighbours. It changes the sums of the next layer most if each of its neighbours
has one other neighbour. The listed graphs have such nodes. The records of a node, of
its neighbours and of all other nodes are chosen as in ``Alike``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditdp.adjacency import strategies as st
from auditdp.adjacency.adjacency import GivenPairs, Pair, different
from auditdp.adjacency.symmetry import RECORD_REPLACED, Alike
from auditdp.adjacency.tabular import (
    Tabular,
    remade,
    same_entries,
    tabular,
    with_attributes,
)
from auditdp.errors import AdjacencyError
from auditdp.mechanism.calls.inputs import attributes, of_tensor
from auditdp.numerics.arrays import Floats

Arcs = NDArray[np.int64]
"""Sources and targets of edges as they are written, shape (2, edges)."""
Edge = tuple[int, ...]
Edges = frozenset[Edge]
"""Set of edges; an edge of an undirected graph occurs once, the smaller end first."""

NO_EDGES: Edges = frozenset()
EDGE_NAMES = ("edge_index", "edges")

NODE_ADDED = "one node added or removed, with its edges"
ISOLATED_ADDED = "one node without edges added or removed"
EDGE_ADDED = "one edge added or removed"
EDGES_ADDED = "the edges of one node there or not"
EDGES_REPLACED = "the edges of one node replaced"
EDGES_UNCHANGED = "edges unchanged"


@dataclass(frozen=True, eq=False)
class GraphData:
    """A graph, with the records of its nodes.

    Attributes:
        records: The records of the nodes.
        arcs: The edges. If every node has an edge to itself, these edges are left out.
        build: Function that returns a graph of the original type with other records and
            edges.
    """

    records: Tabular
    arcs: Arcs
    build: Callable[[Floats, Arcs], Any]


class _Change(NamedTuple):
    """The change between the two graphs of a pair.

    Attributes:
        edges: How edges differ: a constant of this module, such as ``EDGE_ADDED``.
        node: The node that changes, or an end of the edge that changes.
        records: How the record of the node differs, as a reading of ``Alike``, or None
            if it does not differ or the node is missing in one graph.
    """

    edges: str
    node: int
    records: str | None = None

    @property
    def is_of_nodes(self) -> bool:
        """True if one graph has one node more than the other."""
        return self.edges in (NODE_ADDED, ISOLATED_ADDED)


class _Shape(NamedTuple):
    """The edges of both graphs of a pair.

    Attributes:
        name: The name of the shape, for the name of a pair.
        node: The node that changes, or an end of the edge that changes.
        edges: The edges of the first graph.
        others: The edges of the second graph.
    """

    name: str
    node: int
    edges: Edges
    others: Edges


@dataclass(frozen=True)
class AlikeGraph(GivenPairs):
    """Pairs of graphs that differ in one node or one edge, as a given pair does.

    The module's docstring describes the form and the limits of a graph.

    Args:
        given: The pairs to play. The first one states how neighbours differ, and the
            form of a graph.
        change: How neighbours differ, such as 'one edge added or removed, features
            unchanged': a key of ``readings``, by default the narrowest.

    Raises:
        AdjacencyError: If the first pair does not differ in one node or one edge, or
            not by that change.
    """

    @property
    def name(self) -> str:
        """The change of neighbours, and the ranges of the search."""
        return (
            "pairs as given (adjacency not checked); neighbours searched: "
            f"{self.reading}, within the data's ranges"
        )

    @cached_property
    def _sides(self) -> list[GraphData]:
        """Both graphs, the one with more nodes or more edges first."""
        first = self.given[0]
        graphs = [*filter(None, map(graph_of, (first.data, first.neighbour)))]
        if len(graphs) < 2:
            raise AdjacencyError(f"AlikeGraph: expected two graphs, got {first}")
        graphs.sort(
            key=lambda graph: (len(graph.records.rows), graph.arcs.shape[1]),
            reverse=True,
        )
        return graphs

    @property
    def _both_rows(self) -> list[Floats]:
        return [graph.records.rows for graph in self._sides]

    @cached_property
    def _comes_both_ways(self) -> bool:
        """True if every edge comes in both directions."""
        arcs = [graph.arcs for graph in self._sides]
        return all(_edges_of(each) == _edges_of(each[::-1]) for each in arcs)

    @cached_property
    def _is_undirected(self) -> bool:
        """True if every edge comes in both directions, or no edge has a larger source.

        A source is the first end of an edge.
        """
        are_sorted = (graph.arcs[0] <= graph.arcs[1] for graph in self._sides)
        return self._comes_both_ways or all(map(np.all, are_sorted))

    @cached_property
    def _edges(self) -> list[Edges]:
        """The edges of both graphs."""
        arcs = [graph.arcs for graph in self._sides]
        if self._is_undirected:
            arcs = [np.sort(each, axis=0) for each in arcs]
        return [*map(_edges_of, arcs)]

    @cached_property
    def _is_single(self) -> bool:
        """True if no two nodes have edges in both directions.

        It is also True for an undirected graph, whose edges occur once.
        """
        return not any(
            a != b and (b, a) in edges for edges in self._edges for a, b in edges
        )

    @cached_property
    def readings(self) -> dict[str, _Change]:
        """The changes that explain how the first pair differs, the narrowest first.

        The keys are texts for reports.
        """
        rows, others = self._both_rows
        changes = {}
        if rows.shape == others.shape:
            changes = self._of_same_nodes()
        elif rows.shape == (len(others) + 1, *others.shape[1:]):
            changes = self._of_added_node()
        if not changes:
            raise AdjacencyError(
                "AlikeGraph: the graphs do not differ in one node or one edge: "
                f"{self.given[0]}"
            )
        return changes

    def _of_added_node(self) -> dict[str, _Change]:
        rows, others = self._both_rows
        unlike = np.flatnonzero((rows[:-1] != others).any(axis=1))
        last = int([*unlike, len(others)][0])
        if not np.array_equal(np.delete(rows, last, axis=0), others):
            return {}
        # Any of several consecutive nodes with equal records may be the missing one, so
        # that the edges decide between them.
        node = last
        while node >= 0 and same_entries(rows[node], rows[last]).all():
            rest = _without(self._edges[0], node)
            if _renumbered(rest, node) == self._edges[1]:
                kinds = [NODE_ADDED]
                if rest == self._edges[0]:
                    kinds.insert(0, ISOLATED_ADDED)
                return {kind: _Change(kind, node) for kind in kinds}
            node -= 1
        return {}

    def _of_same_nodes(self) -> dict[str, _Change]:
        rows, others = self._both_rows
        unlike = np.flatnonzero(~same_entries(rows, others).all(axis=1)).tolist()
        changed = self._edges[0] ^ self._edges[1]
        # The changed node is an end of every changed edge.
        candidates = unlike or sorted(set(chain(*changed)))
        nodes = [node for node in candidates if all(node in edge for edge in changed)]
        if len(unlike) > 1 or not nodes or any(a == b for a, b in changed):
            return {}
        isolated = [
            node
            for node in nodes
            if any(_without(edges, node) == edges for edges in self._edges)
        ]
        # Each change of edges, the nodes that explain it, and whether it is possible.
        kinds = [
            (EDGES_UNCHANGED, nodes, not changed),
            (EDGE_ADDED, nodes, len(changed) == 1),
            (EDGES_ADDED, isolated, bool(changed)),
            (EDGES_REPLACED, nodes, True),
        ]
        of_records: dict[str, str | None] = {
            "features unchanged": None,
            f"and of the features {RECORD_REPLACED}": RECORD_REPLACED,
        }
        if unlike:
            build = self._sides[0].records.build
            names = Alike([Pair(build(rows), build(others))]).readings
            of_records = {f"and of the features {name}": name for name in names}
        readings = {}
        for kind, places, is_possible in kinds:
            for text, name in of_records.items():
                if is_possible and places:
                    readings[f"{kind}, {text}"] = _Change(kind, places[0], name)
        return readings

    @cached_property
    def _nodes(self) -> Alike:
        """Adjacency of the records of nodes, for the change of the node's record."""
        rows, others = self._both_rows
        change = self._change.records
        is_same = np.array_equal(rows, others, equal_nan=True)
        if is_same or len(rows) > len(others):
            # Without a change of records, any record may be the node's.
            others, change = np.delete(rows, self._change.node, axis=0), None
        build = self._sides[0].records.build
        return Alike([Pair(build(rows), build(others))], change)

    def _degrees(self, edges: Iterable[Edge]) -> Counter[tuple[str, int]]:
        """Return the degrees that are limited, by their kind and node.

        The kinds are "from" and "to" the node, for a directed graph, and "at" the node
        for all its edges. If any two nodes of the given graphs have edges in both
        directions, "at" has no limit of its own, so it is left out.
        """
        degrees: Counter[tuple[str, int]] = Counter()
        for source, target in edges:
            if not self._is_undirected:
                degrees.update([("from", source), ("to", target)])
            if self._is_single:
                degrees.update([("at", source), ("at", target)])
        return degrees

    @cached_property
    def _max_degrees(self) -> Counter[str]:
        """The largest degree of any node of the given graphs, by the kind of degree."""
        largest: Counter[str] = Counter()
        for edges in self._edges:
            for (kind, _), degree in self._degrees(edges).items():
                largest[kind] = max(largest[kind], degree)
        return largest

    def _grown(self, edges: Edges, wanted: Iterable[Edge]) -> Edges:
        """Return edges and those wanted edges that the largest degrees allow."""
        grown, degrees = set(edges), self._degrees(edges)
        for a, b in wanted:
            edge = (min(a, b), max(a, b)) if self._is_undirected else (a, b)
            if a == b or edge in grown or (self._is_single and edge[::-1] in grown):
                continue
            more = self._degrees([edge])
            if all(degrees[key] < self._max_degrees[key[0]] for key in more):
                grown.add(edge)
                degrees.update(more)
        return frozenset(grown)

    @cached_property
    def _by_length(self) -> list[int]:
        """The nodes, the node with the longest record first."""
        lengths = np.linalg.norm(self._both_rows[0], axis=1)
        order: list[int] = np.argsort(-lengths, kind="stable").tolist()
        return order

    @cached_property
    def _shapes(self) -> list[_Shape]:
        """The shapes of the listed pairs."""
        kind, node, records = self._change
        if kind == EDGE_ADDED:
            return self._shapes_of_edge()
        nodes = [node]
        are_edges = kind in (EDGES_ADDED, EDGES_REPLACED) and records is None
        if are_edges and len(self._directions) != 1:
            # The features stay with the nodes, so a pair depends on which node changes.
            nodes.append(self._by_length[0])
        return [*chain(*map(self._shapes_of_node, dict.fromkeys(nodes)))]

    @cached_property
    def _directions(self) -> list[int]:
        """The directions of the given edges of the changed node: from it 1, to it -1.

        The list is empty for an undirected graph.
        """
        if self._is_undirected:
            return []
        ends = [*zip(*self._edges[0], strict=True)] or [(), ()]
        node = self._change.node
        return [way for way, nodes in zip((1, -1), ends, strict=True) if node in nodes]

    def _shapes_of_node(self, node: int) -> list[_Shape]:
        given = self._edges[0]
        others = [other for other in self._by_length if other != node]
        rest, half = _without(given, node), len(others) // 2
        shapes = []
        # A star changes the sums of its leaves. A tree, in which each leaf has one
        # other edge, also changes the sums of nodes at a distance of two.
        for way in self._directions or [1]:
            star = [(node, other)[::way] for other in others]
            count = min([half, *self._max_degrees.values()])
            outer = [(a, b)[::way] for a, b in zip(others, others[half:], strict=False)]
            tree = [*star[:count], *outer[:count]]
            shapes += [
                ("a hub whose neighbours have one other", self._grown(NO_EDGES, tree)),
                ("a hub", self._grown(NO_EDGES, star)),
                ("a hub, and edges as given", self._grown(rest, star)),
            ]
        shapes += [("edges as given", given), ("edges as given, and none", rest)]
        return [self._shape(name, node, edges) for name, edges in shapes]

    def _shape(self, name: str, node: int, edges: Edges) -> _Shape:
        """Return the shape whose first graph has the given edges.

        The edges of the second graph follow from the change.
        """
        rest = _without(edges, node)
        if self._change.edges == EDGES_REPLACED:
            # The neighbours are taken in the reverse order, so that each edge becomes
            # another one if possible.
            others = [other for other in self._by_length if other != node]
            turned = dict(zip(others, others[::-1], strict=True)) | {node: node}
            moved = [(turned[a], turned[b]) for a, b in edges - rest]
            return _Shape(name, node, edges, self._grown(rest, moved))
        if self._change.edges == ISOLATED_ADDED:
            edges = rest
        if self._change.edges == EDGES_UNCHANGED:
            rest = edges
        return _Shape(name, node, edges, rest)

    def _shapes_of_edge(self) -> list[_Shape]:
        """Return shapes in which one edge is added, for several choices of its ends.

        The other edges are the given ones, or none, or those of one hub or two.
        """
        (given,) = self._edges[0] ^ self._edges[1]
        order, rows = self._by_length, self._both_rows[0]
        longest = order[0]
        unlike = int(np.argmax(np.linalg.norm(rows - rows[longest], axis=1)))
        # The other end has the next longest, the most different or the shortest record.
        targets = (order[:2][-1], unlike, order[-1])
        ends = [given, *((longest, target) for target in targets)]
        shapes = []
        for a, b in dict.fromkeys(edge[::way] for edge in ends for way in (1, -1)):
            if self._change.records is not None and a != self._change.node:
                continue
            star, other_star = ([(end, other) for other in order] for end in (a, b))
            both = [*chain(*zip(star, other_star, strict=True))]
            shapes += [
                self._with_edge("edges as given", self._edges[0], (a, b)),
                self._with_edge("one edge", NO_EDGES, (a, b)),
                self._with_edge("an edge of a hub", NO_EDGES, (a, b), star),
                self._with_edge("an edge of two hubs", NO_EDGES, (a, b), both),
            ]
        return shapes

    def _with_edge(
        self, name: str, base: Edges, edge: Edge, around: Iterable[Edge] = ()
    ) -> _Shape:
        """Return the shape in which an edge is added.

        Args:
            name: The name of the shape.
            base: The other edges.
            edge: The added edge.
            around: Further edges of both graphs. Those beyond the largest degrees are
                left out.
        """
        rest = base - {edge, edge[::-1]}
        alone = self._grown(rest, [edge])
        edges = self._grown(alone, around)
        return _Shape(name, edge[0], edges, edges - (alone - rest))

    @cached_property
    def _roles(self) -> list[tuple[Floats, Floats, Floats]]:
        """Triples of records: of the node, of its neighbours, and of other nodes."""
        long, quiet = self._nodes.candidates[0], self._nodes.quiet
        against = self._nodes.opposite(long)
        return [
            (long, long, quiet),
            (self._nodes.shortest, long, quiet),
            (long, against, quiet),
            (long, quiet, quiet),
            (long, quiet, against),
            (long, long, long),
        ]

    @property
    def _has_given_records(self) -> bool:
        """True if only edges differ, so that all pairs have the given records."""
        return not self._change.is_of_nodes and self._change.records is None

    def _graph(self, rows: Floats, edges: Edges) -> Any:
        # Each edge is held once, and written in the way of the given graphs.
        if self._comes_both_ways:
            edges |= {(b, a) for a, b in edges if a != b}
        arcs = np.array(sorted(edges), np.int64).reshape(-1, 2).T
        return self._sides[0].build(rows, arcs)

    def _pair(self, rows: Floats, shape: _Shape) -> Pair:
        """Return the pair of a shape.

        If the change is of nodes, the second graph lacks the node. If it is of records,
        the node has another record there.
        """
        node, others, other_rows = shape.node, shape.others, rows
        if self._change.is_of_nodes:
            other_rows = np.delete(rows, node, axis=0)
            others = _renumbered(others, node)
        elif self._change.records:
            rows, other_rows = rows.copy(), rows.copy()
            rows[node], other_rows[node] = self._nodes.both(rows[node])
        return Pair(
            self._graph(rows, shape.edges),
            self._graph(other_rows, others),
            f"like the given: {shape.name}",
        )

    def _pair_of_roles(self, shape: _Shape, roles: Iterable[Floats]) -> Pair:
        """Return the pair of a shape with records by role: node, neighbour or other."""
        node, neighbour, rest = roles
        rows = np.tile(rest, (len(self._both_rows[0]), 1))
        touching = shape.edges - _without(shape.edges, shape.node)
        rows[[*chain(*touching)]] = neighbour
        rows[shape.node] = node
        return self._pair(rows, shape)

    def corner_cases(self) -> list[Pair]:
        """Return pairs of listed shapes, first with records by role, then as given.

        The first cases have several shapes and several choices of records.
        """
        roles = [] if self._has_given_records else self._roles
        cases = [*product(enumerate(self._shapes), enumerate(roles))]
        cases.sort(key=lambda case: case[0][0] + case[1][0])
        by_role = [self._pair_of_roles(shape, role) for (_, shape), (_, role) in cases]
        given_rows = self._both_rows[0]
        return different(
            [*by_role, *(self._pair(given_rows, shape) for shape in self._shapes)]
        )

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return pairs of listed shapes with any combination of candidate records.

        If only edges differ, the records are the given ones, and an edge that is added
        or removed joins any two nodes.
        """
        rows = self._both_rows[0]
        nodes = st.integers(0, len(rows) - 1)

        @st.composite
        def pairs(draw: st.DrawFn) -> Pair:
            shape = draw(st.sampled_from(self._shapes))
            if not self._has_given_records:
                records = [*self._nodes.candidates, self._nodes.shortest]
                others = st.sampled_from([*records, self._nodes.quiet])
                roles = st.tuples(st.sampled_from(records), others, others)
                pair = self._pair_of_roles(shape, draw(roles))
            else:
                if self._change.edges == EDGE_ADDED:
                    edge = draw(nodes), draw(nodes)
                    shape = self._with_edge(shape.name, shape.others, edge)
                pair = self._pair(rows, shape)
            if different([pair]):
                return pair
            return st.reject()

        return pairs()


def _edges_of(arcs: Arcs) -> Edges:
    return frozenset(map(tuple, arcs.T.tolist()))


def _without(edges: Edges, node: int) -> Edges:
    return frozenset(edge for edge in edges if node not in edge)


def _renumbered(edges: Edges, node: int) -> Edges:
    """Return edges with the numbers that nodes have after one node is removed."""
    return frozenset((a - (a > node), b - (b > node)) for a, b in edges)


def graph_of(data: Any) -> GraphData | None:
    """Return data as a graph.

    Returns:
        The graph, or None if the data are no graph, or have parts that another graph
        would need in another form, such as weights of edges.
    """
    fields = _fields(data)
    name_of_edges = next((name for name in EDGE_NAMES if name in fields), None)
    if name_of_edges is None:
        if not (isinstance(data, tuple) and data):
            return None
        name_of_edges = [*fields][-1]
    parsed = _arcs(fields[name_of_edges])
    if parsed is None:
        return None
    arcs, as_given = parsed
    tables: dict[Any, Tabular] = {}
    for name, value in fields.items():
        if name != name_of_edges:
            # A field that is no table, such as a name, stays as it is.
            with suppress(AdjacencyError):
                tables[name] = tabular(value)
    sizes = {name: len(table.rows) for name, table in tables.items()}
    nodes = sizes.get("x", next(iter(sizes.values()), 0))
    names = [name for name in tables if sizes[name] == nodes]
    # Labels come last, as in a tuple.
    names.sort(key=lambda name: {"x": 0, "y": 1}.get(name, -1))
    has_edge_data = any(
        size == arcs.shape[1] for name, size in sizes.items() if name not in names
    )
    is_whole = not isinstance(data, tuple) or len(names) == len(data) - 1
    # There are no weights or labels for other edges than the given ones, and the
    # meaning of a part of another size, such as an index of a batch, is unknown.
    is_inside = not arcs.size or 0 <= arcs.min() <= arcs.max() < nodes
    if not nodes or has_edge_data or not is_whole or not is_inside:
        return None
    records = tabular({name: fields[name] for name in names})
    is_loop = arcs[0] == arcs[1]
    has_loops = len(set(arcs[0, is_loop].tolist())) == nodes

    def build(rows: Floats, others: Arcs) -> Any:
        if has_loops:
            loops = np.tile(np.arange(len(rows)), (2, 1))
            others = np.concatenate([others, loops], axis=1)
        values = records.build(rows) | {name_of_edges: as_given(others)}
        if "num_nodes" in fields or hasattr(data, "num_nodes"):
            values["num_nodes"] = len(rows)
        return _replaced(data, values)

    return GraphData(records, arcs[:, ~is_loop] if has_loops else arcs, build)


def may_be_edges(data: Any) -> bool:
    """Return True if records may be the edges of a graph.

    Such records are different pairs of two different integers, and a number occurs as
    the first of one pair and as the second of another.
    """
    parsed = _arcs(data.T if isinstance(data, np.ndarray) else data)
    if parsed is None:
        return False
    (sources, targets), pairs = parsed[0].tolist(), _edges_of(parsed[0])
    is_simple = len(pairs) == len(sources) and all(a != b for a, b in pairs)
    return is_simple and not set(sources).isdisjoint(targets)


def _fields(data: Any) -> dict[Any, Any]:
    """Return the parts of a graph of any type by their names or indices."""
    if isinstance(data, tuple):
        return dict(zip(getattr(data, "_fields", range(len(data))), data, strict=True))
    if isinstance(data, Mapping):
        return dict(data)
    if hasattr(data, "edge_index") and hasattr(data, "to_dict"):
        return dict(data.to_dict())
    return attributes(data)


def _replaced(data: Any, values: dict[Any, Any]) -> Any:
    """Return a graph of any type with other values of some of its parts."""
    if isinstance(data, tuple | Mapping):
        return remade(data, [*(_fields(data) | values).values()])
    return with_attributes(data, **values)


def _arcs(edges: Any) -> tuple[Arcs, Callable[[Arcs], Any]] | None:
    """Return edges as an array, and the function for the way back to their type.

    Returns:
        Both, or None if the edges have another form than the module describes.
    """
    array = of_tensor(edges)
    if isinstance(array, np.ndarray):
        if array.ndim != 2 or len(array) != 2 or array.dtype.kind not in "iu":
            return None

        def as_given(arcs: Arcs) -> Any:
            if array is edges:
                return arcs.astype(array.dtype)
            return edges.new_tensor(np.ascontiguousarray(arcs))

        return array.astype(np.int64), as_given
    if not isinstance(edges, list):
        return None
    for edge in edges:
        if not (isinstance(edge, tuple) and len(edge) == 2):
            return None
        if not all(isinstance(end, int | np.integer) for end in edge):
            return None
    arcs = np.array(edges, np.int64).reshape(-1, 2).T
    return arcs, lambda arcs: sorted(map(tuple, arcs.T.tolist()))
