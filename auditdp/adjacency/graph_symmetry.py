"""Graphs like a pair that is given: the same change, of a node or of an edge, in other graphs on as many nodes.

A graph is a tuple of features, labels or both, and edges last; or a dict or any object whose edges are called
``edge_index`` or ``edges`` beside features, labels and masks of nodes, such as those of torch_geometric. Edges are an array
of integers of shape (2, edges), or a list of pairs. Where every one of them comes both ways round, or none has the larger
end first, the graph is undirected, and so are others; where every node has an edge to itself, so has every node of others.

- No pair changes more kinds of things than the given one: where features are the same in both inputs, edges alone differ,
  and the features are those that were given; one edge is one edge of any two nodes; and so on (``AlikeGraph.readings``).
- No node has more edges than a node of the given graphs.

A node does most to its neighbours' sums, and to those to whom they send, where it has many neighbours, or where each of its
neighbours has one other. Records are those of ``Alike``: its neighbours have one, the others another.
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
from auditdp.adjacency.symmetry import REPLACED, Alike
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
"""Edges as they are written, source and target, shape (2, edges)."""
Edges = frozenset[tuple[int, ...]]
"""Edges, each once: of an undirected graph with the smaller end first."""
NONE: Edges = frozenset()
EDGE_NAMES = ("edge_index", "edges")
ADDED, ALONE = (
    "one node added or removed, with its edges",
    "one node without edges added or removed",
)
ONE, THERE, REWIRED = (
    "one edge added or removed",
    "the edges of one node there or not",
    "the edges of one node replaced",
)
SAME = "edges unchanged"


@dataclass(frozen=True, eq=False)
class GraphData:
    """A graph: its nodes' records, its edges, and what makes such a graph of others."""

    records: Tabular
    arcs: Arcs
    made: Callable[[Floats, Arcs], Any]


class _Change(NamedTuple):
    """How the graphs of a pair differ.

    Attributes:
        edges: How edges differ.
        node: The node that changes; an end of the edge where that is all.
        records: How the record of the node differs, as ``Alike`` reads it; None where it does not, or the node is missing.
    """

    edges: str
    node: int
    records: str | None = None


class _Shape(NamedTuple):
    """The edges of both graphs of a pair, what they are called, and the node that changes."""

    name: str
    node: int
    edges: Edges
    others: Edges


@dataclass(frozen=True)
class AlikeGraph(GivenPairs):
    """Pairs of graphs that differ as a given one does, in one node or one edge; see the module.

    Args:
        given: The pairs to play; the first one says how neighbours differ, and what nodes look like.
        change: How neighbours differ, such as 'one edge added or removed, features unchanged': one of ``readings``, the
            narrowest unless given.

    Raises:
        AdjacencyError: If the first pair does not differ in one node or one edge, or not by that change.
    """

    def __post_init__(self) -> None:
        _ = self._change

    @property
    def name(self) -> str:
        """How neighbours differ, and where others are looked for."""
        return f"pairs as given (adjacency not checked); neighbours searched: {self.reading}, within the data's ranges"

    @cached_property
    def _sides(self) -> list[GraphData]:
        """Both graphs, that of more nodes or of more edges first."""
        graphs = [
            graph
            for data in (self.given[0].data, self.given[0].neighbour)
            if (graph := graph_of(data)) is not None
        ]
        if len(graphs) < 2:
            raise AdjacencyError(
                f"AlikeGraph: expected two graphs, got {self.given[0]}"
            )
        return sorted(
            graphs,
            key=lambda graph: (len(graph.records.rows), graph.arcs.shape[1]),
            reverse=True,
        )

    @property
    def _rows(self) -> Floats:
        return self._sides[0].records.rows

    @cached_property
    def _both_ways(self) -> bool:
        """Whether every edge comes both ways round."""
        return all(
            _edges_of(graph.arcs) == _edges_of(graph.arcs[::-1])
            for graph in self._sides
        )

    @cached_property
    def _is_sorted(self) -> bool:
        """Whether edges have no direction: each comes both ways round, or with the smaller end first."""
        return self._both_ways or all(
            (graph.arcs[0] <= graph.arcs[1]).all() for graph in self._sides
        )

    @cached_property
    def _is_once(self) -> bool:
        """Whether no two nodes have two edges, apart from those that all come both ways round."""
        return not any(
            a != b and (b, a) in edges for edges in self._edges for a, b in edges
        )

    @cached_property
    def _edges(self) -> list[Edges]:
        """The edges of both graphs."""
        arcs = [
            np.sort(graph.arcs, axis=0) if self._is_sorted else graph.arcs
            for graph in self._sides
        ]
        return [*map(_edges_of, arcs)]

    @cached_property
    def readings(self) -> dict[str, _Change]:
        """The changes that the first pair shows, the narrowest first."""
        shapes = [graph.records.rows.shape for graph in self._sides]
        found = {}
        if shapes[0] == shapes[1]:
            found = self._changed()
        elif shapes[0] == (shapes[1][0] + 1, shapes[1][1]):
            found = self._added()
        if not found:
            raise AdjacencyError(
                f"AlikeGraph: the graphs do not differ in one node or one edge: {self.given[0]}"
            )
        return found

    def _added(self) -> dict[str, _Change]:
        rows, others = (graph.records.rows for graph in self._sides)
        unlike = np.flatnonzero((rows[:-1] != others).any(axis=1))
        last = int(unlike[0]) if len(unlike) else len(others)
        first = max(
            (k + 1 for k in range(last) if (rows[k] != rows[last]).any()), default=0
        )
        # Each of some nodes in a row whose records are equal may be the one, so that edges decide.
        for node in (
            range(last, first - 1, -1)
            if np.array_equal(np.delete(rows, last, axis=0), others)
            else ()
        ):
            beside = _without(self._edges[0], node)
            if _closed_up(beside, node) == self._edges[1]:
                alone = (
                    {ALONE: _Change(ALONE, node)} if beside == self._edges[0] else {}
                )
                return alone | {ADDED: _Change(ADDED, node)}
        return {}

    def _changed(self) -> dict[str, _Change]:
        rows, others = (graph.records.rows for graph in self._sides)
        unlike = np.flatnonzero(~same_entries(rows, others).all(axis=1)).tolist()
        edges = self._edges[0] ^ self._edges[1]
        nodes = [
            node
            for node in unlike or sorted(set(chain(*edges)))
            if all(node in edge for edge in edges)
        ]
        if len(unlike) > 1 or not nodes or any(a == b for a, b in edges):
            return {}
        alone = [
            node
            for node in nodes
            if any(_without(side, node) == side for side in self._edges)
        ]
        kinds = {
            SAME: [] if edges else nodes,
            ONE: nodes if len(edges) == 1 else [],
            THERE: alone if edges else [],
        }
        of_records: list[str | None] = [None, REPLACED]
        if unlike:
            made = self._sides[0].records.made
            of_records = [*Alike([Pair(made(rows), made(others))]).readings]
        return {
            f"{kind}, {'features unchanged' if what is None else f'and of the features {what}'}": _Change(
                kind, places[0], what
            )
            for kind, places in (kinds | {REWIRED: nodes}).items()
            for what in of_records
            if places
        }

    @cached_property
    def _change(self) -> _Change:
        return self.readings[self.reading]

    @cached_property
    def _nodes(self) -> Alike:
        rows, others = (graph.records.rows for graph in self._sides)
        made, is_same = (
            self._sides[0].records.made,
            np.array_equal(rows, others, equal_nan=True),
        )
        if is_same or len(rows) > len(others):
            return Alike(
                [Pair(made(rows), made(np.delete(rows, self._change.node, axis=0)))]
            )
        return Alike([Pair(made(rows), made(others))], self._change.records)

    def _ends(self, edges: Iterable[tuple[int, ...]]) -> Counter[tuple[str, int]]:
        """Return how many edges each node has: from it and to it, and in all where edges come once."""
        ends = [
            [("from", a), ("to", b)] if not self._is_sorted else [] for a, b in edges
        ]
        both = [[("at", a), ("at", b)] if self._is_once else [] for a, b in edges]
        return Counter(chain(*ends, *both))

    @cached_property
    def _most(self) -> dict[str, int]:
        """The most that a node of the given graphs has, of each kind."""
        ends = chain(*(self._ends(edges).items() for edges in self._edges))
        return {
            kind: many
            for many, kind in sorted((many, kind) for (kind, _), many in ends)
        }

    def _grown(self, edges: Edges, wanted: Iterable[tuple[int, ...]]) -> Edges:
        """Return edges and those of the wanted ones, in their order, by which no node has more than one that is given."""
        made, ends = set(edges), self._ends(edges)
        for a, b in wanted:
            edge = (min(a, b), max(a, b)) if self._is_sorted else (a, b)
            more, known = (
                self._ends([edge]),
                edge in made or (self._is_once and edge[::-1] in made),
            )
            if (
                a != b
                and not known
                and all(ends[end] < self._most.get(end[0], 0) for end in more)
            ):
                made.add(edge)
                ends.update(more)
        return frozenset(made)

    @cached_property
    def _by_length(self) -> list[int]:
        """Nodes, those with the longest records first."""
        order: list[int] = np.argsort(
            -np.linalg.norm(self._rows, axis=1), kind="stable"
        ).tolist()
        return order

    @cached_property
    def _shapes(self) -> list[_Shape]:
        """Edges of as many nodes, on either side of a pair."""
        kind, node, records = self._change
        if kind == ONE:
            return self._of_edge()
        nodes = [node]
        if kind in (THERE, REWIRED) and records is None and len(self._ways) != 1:
            nodes.append(
                self._by_length[0]
            )  # features stay, so that it matters which node it is
        return [shape for each in dict.fromkeys(nodes) for shape in self._of_node(each)]

    @cached_property
    def _ways(self) -> list[int]:
        """Which way the edges of the node go: from it (1), to it (-1), or both; of an undirected graph, neither."""
        ends = (1, self._edges[0]), (-1, [edge[::-1] for edge in self._edges[0]])
        return (
            []
            if self._is_sorted
            else [
                way
                for way, edges in ends
                if any(a == self._change.node for a, _ in edges)
            ]
        )

    def _of_node(self, node: int) -> list[_Shape]:
        given, others = (
            self._edges[0],
            [other for other in self._by_length if other != node],
        )
        beside, half = _without(given, node), len(others) // 2
        found = []
        for way in self._ways or [1]:
            star = [(node, other)[::way] for other in others]
            near = min([half, *self._most.values()])
            far = [(a, b)[::way] for a, b in zip(others, others[half:], strict=False)]
            found.append(
                (
                    "a hub whose neighbours have one other",
                    self._grown(NONE, [*star[:near], *far[:near]]),
                )
            )
            found.append(("a hub", self._grown(NONE, star)))
            found.append(("a hub, and edges as given", self._grown(beside, star)))
        found += [("edges as given", given), ("edges as given, and none", beside)]
        return [self._of_edges(name, node, edges) for name, edges in found]

    def _of_edges(self, name: str, node: int, edges: Edges) -> _Shape:
        kind, beside = self._change.edges, _without(edges, node)
        if kind == REWIRED:
            # The same edges in the other order of the other nodes, so that each is another one where that is possible.
            others = [other for other in self._by_length if other != node]
            turned = dict(zip(others, others[::-1], strict=True)) | {node: node}
            return _Shape(
                name,
                node,
                edges,
                self._grown(
                    beside, [(turned[a], turned[b]) for a, b in edges - beside]
                ),
            )
        return _Shape(
            name,
            node,
            beside if kind == ALONE else edges,
            edges if kind == SAME else beside,
        )

    def _of_edge(self) -> list[_Shape]:
        """Return an edge of few ends, among the given edges and among few others."""
        (first,) = self._edges[0] ^ self._edges[1]
        order = self._by_length
        unlike = int(
            np.argmax(np.linalg.norm(self._rows - self._rows[order[0]], axis=1))
        )
        ends = [
            first,
            *((order[0], other) for other in (order[:2][-1], unlike, order[-1])),
        ]
        both = dict.fromkeys(each[::way] for each in ends for way in (1, -1))
        stars = {end: [(end, other) for other in order] for end in chain(*both)}
        return [
            self._with_edge(name, base, (a, b), around)
            for a, b in both
            if self._change.records is None or a == self._change.node
            for name, base, around in (
                ("edges as given", self._edges[0], []),
                ("one edge", NONE, []),
                ("an edge of a hub", NONE, stars[a]),
                (
                    "an edge of two hubs",
                    NONE,
                    [*chain(*zip(stars[a], stars[b], strict=True))],
                ),
            )
        ]

    def _with_edge(
        self,
        name: str,
        base: Edges,
        edge: tuple[int, ...],
        around: Iterable[tuple[int, ...]] = (),
    ) -> _Shape:
        """Return the shape of an edge that is there or not."""
        beside = base - {edge, edge[::-1]}
        alone = self._grown(beside, [edge])
        edges = self._grown(alone, around)
        return _Shape(name, edge[0], edges, edges - (alone - beside))

    @cached_property
    def _roles(self) -> list[tuple[Floats, Floats, Floats]]:
        """Records of the node, of its neighbours, and of the others."""
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
    def _is_public(self) -> bool:
        """Whether edges alone differ, so that the records are those that are given."""
        return self._change.edges not in (ADDED, ALONE) and self._change.records is None

    def _made(self, rows: Floats, edges: Edges) -> Any:
        back = (
            frozenset((b, a) for a, b in edges if a != b) if self._both_ways else NONE
        )
        return self._sides[0].made(
            rows, np.array(sorted(edges | back), np.int64).reshape(-1, 2).T
        )

    def _pair(self, rows: Floats, shape: _Shape) -> Pair:
        """Return the pair of graphs with some records and edges, of which one has no such node, or another record of it."""
        node, others, elsewhere = shape.node, shape.others, rows
        if self._change.edges in (ADDED, ALONE):
            elsewhere, others = np.delete(rows, node, axis=0), _closed_up(others, node)
        elif self._change.records:
            rows, elsewhere = rows.copy(), rows.copy()
            rows[node], elsewhere[node] = self._nodes.both(rows[node])
        return Pair(
            self._made(rows, shape.edges),
            self._made(elsewhere, others),
            f"like the given: {shape.name}",
        )

    def _played(self, shape: _Shape, roles: Iterable[Floats]) -> Pair:
        """Return the pair of graphs whose nodes have records by where they are."""
        node, near, rest = roles
        rows = np.tile(rest, (len(self._rows), 1))
        rows[[end for edge in shape.edges if shape.node in edge for end in edge]] = near
        rows[shape.node] = node
        return self._pair(rows, shape)

    def corner_cases(self) -> list[Pair]:
        """Return other edges with records by where nodes are: few show some of each; then other edges alone."""
        both = product(
            enumerate(self._shapes), enumerate([] if self._is_public else self._roles)
        )
        tried = sorted(both, key=lambda each: each[0][0] + each[1][0])
        made = [self._played(shape, roles) for (_, shape), (_, roles) in tried]
        return different(
            [*made, *(self._pair(self._rows, shape) for shape in self._shapes)]
        )

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return pairs with the edges and records of corner cases in all combinations, and of candidates at random.

        Where one edge differs, it is one of any two nodes.
        """
        nodes = st.integers(0, len(self._rows) - 1)

        @st.composite
        def pairs(draw: st.DrawFn) -> Pair:
            shape = draw(st.sampled_from(self._shapes))
            if self._is_public:
                if self._change.edges == ONE:
                    shape = self._with_edge(
                        shape.name, shape.others, (draw(nodes), draw(nodes))
                    )
                made = self._pair(self._rows, shape)
            else:
                some = [*self._nodes.candidates, self._nodes.shortest]
                node, others = (
                    st.sampled_from(some),
                    st.sampled_from([*some, self._nodes.quiet]),
                )
                made = self._played(shape, draw(st.tuples(node, others, others)))
            return made if different([made]) else st.reject()

        return pairs()


def _edges_of(arcs: Arcs) -> Edges:
    return frozenset(map(tuple, arcs.T.tolist()))


def _without(edges: Edges, node: int) -> Edges:
    return frozenset(edge for edge in edges if node not in edge)


def _closed_up(edges: Edges, node: int) -> Edges:
    """Return edges by the numbers that nodes have where one is missing."""
    return frozenset((a - (a > node), b - (b > node)) for a, b in edges)


def graph_of(data: Any) -> GraphData | None:
    """Return data as a graph; None where it is none, or where no other such graph can be made."""
    fields = _fields(data)
    last = [*fields][-1] if isinstance(data, tuple) and data else None
    where = next((name for name in EDGE_NAMES if name in fields), last)
    if where not in fields or (read := _edges(fields[where])) is None:
        return None
    arcs, as_given = read
    tables: dict[Any, Tabular] = {}
    for name, value in fields.items():
        with suppress(AdjacencyError):
            if name != where:
                tables[name] = tabular(value)
    first = next((name for name in ("x", *tables) if name in tables), None)
    nodes = 0 if first is None else len(tables[first].rows)
    names = [name for name in tables if len(tables[name].rows) == nodes]
    names.sort(
        key=lambda name: ("x", "y").index(name) if name in ("x", "y") else -1
    )  # labels last, as in a tuple
    of_edges = any(
        len(tables[name].rows) == arcs.shape[1] for name in tables.keys() - {*names}
    )
    is_whole = not isinstance(data, tuple) or len(names) == len(data) - 1
    if (
        of_edges
        or not is_whole
        or not nodes
        or (arcs.size and not 0 <= arcs.min() <= arcs.max() < nodes)
    ):
        return None
    records, is_loop = (
        tabular({name: fields[name] for name in names}),
        arcs[0] == arcs[1],
    )
    has_loops = len(set(arcs[0, is_loop].tolist())) == nodes

    def made(rows: Floats, others: Arcs) -> Any:
        loops = np.tile(np.arange(len(rows) * has_loops), (2, 1))
        values = records.made(rows) | {
            where: as_given(np.concatenate([others, loops], axis=1))
        }
        sizes = (
            {"num_nodes": len(rows)}
            if "num_nodes" in fields or hasattr(data, "num_nodes")
            else {}
        )
        return _replaced(data, values | sizes)

    return GraphData(records, arcs[:, ~is_loop] if has_loops else arcs, made)


def may_be_edges(data: Any) -> bool:
    """Return whether records may be the edges of a graph: different pairs of numbers, some of which are in both places."""
    read = _edges(data.T if isinstance(data, np.ndarray) else data)
    pairs = [] if read is None else read[0].T.tolist()
    sources, targets = ({pair[end] for pair in pairs} for end in (0, 1))
    return (
        bool(sources & targets)
        and all(a != b for a, b in pairs)
        and len(set(map(tuple, pairs))) == len(pairs)
    )


def _fields(data: Any) -> dict[Any, Any]:
    """Return the parts of a record of any kind by their names, or by their numbers."""
    if isinstance(data, tuple):
        return dict(zip(getattr(data, "_fields", range(len(data))), data, strict=True))
    if isinstance(data, Mapping):
        return dict(data)
    return (
        data.to_dict()
        if hasattr(data, "edge_index") and hasattr(data, "to_dict")
        else attributes(data)
    )


def _replaced(data: Any, values: dict[Any, Any]) -> Any:
    """Return a record of any kind with other values of some of its parts."""
    if isinstance(data, tuple | Mapping):
        return remade(data, [*(_fields(data) | values).values()])
    return with_attributes(data, **values)


def _edges(edges: Any) -> tuple[Arcs, Callable[[Arcs], Any]] | None:
    """Return edges as source and target, and what makes such edges of others; None where they are none."""
    array = of_tensor(edges)
    if isinstance(array, np.ndarray):
        if array.ndim != 2 or len(array) != 2 or array.dtype.kind not in "iu":
            return None
        return (
            array.astype(np.int64),
            lambda arcs: (
                arcs.astype(array.dtype)
                if array is edges
                else edges.new_tensor(np.ascontiguousarray(arcs))
            ),
        )
    if not isinstance(edges, list) or not all(
        isinstance(edge, tuple) and len(edge) == 2 for edge in edges
    ):
        return None
    if not all(isinstance(end, int | np.integer) for edge in edges for end in edge):
        return None
    made = np.array(edges, np.int64).reshape(-1, 2).T
    return made, lambda arcs: sorted(map(tuple, arcs.T.tolist()))
