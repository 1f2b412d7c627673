"""Graphs like a pair that is given: the same change of one node, in other graphs on as many nodes, of records like its own.

A graph is a tuple of features, labels or both, and edges last; or an object with ``x``, ``y`` and ``edge_index``, as those
of torch_geometric are. Edges are an array of integers of shape (2, edges), or a list of pairs; where not every one of them
comes both ways round, they are directed, and so are those of other graphs.

What a node does to its neighbours' sums, and to whom they send, is worst where it is a hub of all, or where each of its
neighbours has one other. Records are those of ``Alike``: its neighbours have one, the others another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditdp.adjacency import strategies as st
from auditdp.adjacency.alike import Alike
from auditdp.adjacency.base import GivenPairs, Pair, different
from auditdp.adjacency.tabular import Tabular, remade, tabular, with_attributes
from auditdp.errors import AdjacencyError
from auditdp.mechanism.calls.inputs import of_tensor
from auditdp.numerics.arrays import Floats

Arcs = NDArray[np.int64]
"""Edges as they are written, source and target, shape (2, edges)."""
ADDED, EDGES, REPLACED = "one node added or removed", "the edges of one node there or not", "one node replaced"


@dataclass(frozen=True, eq=False)
class GraphData:
    """A graph: its nodes' records, its edges, and what makes such a graph of others."""

    records: Tabular
    arcs: Arcs
    made: Callable[[Floats, Arcs], Any]


@dataclass(frozen=True)
class AlikeGraph(GivenPairs):
    """Pairs of graphs that differ as a given one does, in one node; see the module.

    Args:
        given: The pairs to play; the first one says how neighbours differ, and what nodes look like.

    Raises:
        AdjacencyError: If the first pair does not differ in one node.
    """

    _nodes: Alike = field(init=False, repr=False)
    _like: GraphData = field(init=False, repr=False)
    _what: str = field(init=False, repr=False)
    _place: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        first, second = (graph_of(data) for data in (self.given[0].data, self.given[0].neighbour))
        if first is None or second is None:
            raise AdjacencyError(f"AlikeGraph: expected two graphs, got {self.given[0]}")
        large, small = (first, second) if len(first.records.rows) >= len(second.records.rows) else (second, first)
        what, place = _change(large, small)
        rows, made = large.records.rows, large.records.made
        nodes = Alike([Pair(made(rows), made(np.delete(rows, place, axis=0)))])
        for name, value in (("_nodes", nodes), ("_like", large), ("_what", what), ("_place", place)):
            object.__setattr__(self, name, value)

    @property
    def name(self) -> str:
        """How neighbours differ, and where others are looked for."""
        return f"pairs as given (adjacency not checked), and others: {self._what}, records within the data's ranges"

    def _pair(self, rows: Floats, arcs: Arcs, name: str = "") -> Pair:
        """Return the pair of a graph and the same without the node, without its edges, or with another in its place."""
        v, made = self._place, self._like.made
        without = arcs[:, (arcs != v).all(axis=0)]
        if self._what == ADDED:
            return Pair(made(rows, arcs), made(np.delete(rows, v, axis=0), without - (without > v)), name)
        other = rows.copy()
        if self._what == REPLACED:
            other[v] = self._nodes.opposite(rows[v])
        return Pair(made(rows, arcs), made(other, without if self._what == EDGES else arcs), name)

    @cached_property
    def _shapes(self) -> list[tuple[str, Arcs]]:
        """Edges of as many nodes, with what they are called."""
        v, arcs = self._place, self._like.arcs
        others = np.delete(np.arange(len(self._like.records.rows)), v)
        near, far = np.array_split(others, 2)
        near = near[: len(far)]
        pairs = np.stack([np.append(np.full(len(near), v), near), np.append(near, far)])
        star = np.stack([np.full(len(others), v), others])
        beside = arcs[:, (arcs != v).all(axis=0)]
        found, mirrored = [], _is_mirrored(arcs)
        for way in (1,) if mirrored else (1, -1):
            turned = (each[::way] for each in (pairs, star))
            two, one = (np.concatenate([each, each[::-1]], axis=1) if mirrored else each for each in turned)
            found += [("a hub whose neighbours have one other", two), ("a hub of all others", one)]
            found.append(("a hub of all others, and edges as given", np.concatenate([beside, one], axis=1)))
        return [*found, ("edges as given", arcs), ("edges as given, and none", beside)]

    @cached_property
    def _roles(self) -> list[tuple[Floats, Floats, Floats]]:
        """Records of the node, of its neighbours, and of the others."""
        long, quiet = self._nodes.candidates[0], self._nodes.quiet
        against = self._nodes.opposite(long)
        return [
            (long, long, quiet),
            (quiet, long, quiet),
            (long, against, quiet),
            (long, quiet, quiet),
            (long, quiet, against),
            (long, long, long),
        ]

    def _played(self, arcs: Arcs, roles: Sequence[Floats], name: str = "") -> Pair:
        """Return the pair of a graph with some edges, whose nodes have records by where they are."""
        node, near, rest = roles
        rows = np.tile(rest, (len(self._like.records.rows), 1))
        rows[arcs[:, (arcs == self._place).any(axis=0)].ravel()] = near
        rows[self._place] = node
        return self._pair(rows, arcs, name)

    def corner_cases(self) -> list[Pair]:
        """Return other edges with records by where nodes are: few show some of each; then other edges alone."""
        tried = sorted(
            product(enumerate(self._shapes), enumerate(self._roles)), key=lambda each: each[0][0] + each[1][0]
        )
        made = [self._played(arcs, roles, f"like the given: {name}") for (_, (name, arcs)), (_, roles) in tried]
        rows = self._like.records.rows
        return different([*made, *(self._pair(rows, arcs, f"like the given: {name}") for name, arcs in self._shapes)])

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return pairs with the edges and records of corner cases in all combinations, and of candidates at random."""
        records = st.sampled_from([*self._nodes.candidates, self._nodes.quiet])

        @st.composite
        def pairs(draw: st.DrawFn) -> Pair:
            _, arcs = draw(st.sampled_from(self._shapes))
            made = self._played(arcs, draw(st.tuples(records, records, records)))
            return made if different([made]) else st.reject()

        return pairs()


def _is_mirrored(arcs: Arcs) -> bool:
    """Return whether every edge comes both ways round."""
    return set(map(tuple, arcs.T.tolist())) == set(map(tuple, arcs[::-1].T.tolist()))


def graph_of(data: Any) -> GraphData | None:
    """Return data as a graph; None where it is none."""
    parts = [getattr(data, name, None) for name in ("x", "y", "edge_index")]
    if parts[2] is None and isinstance(data, tuple) and len(data) > 1:
        parts = list(data)
    given, edges = [part for part in parts[:-1] if part is not None], parts[-1]
    if not given or edges is None or (read := _edges(edges)) is None:
        return None
    try:
        records = tabular(tuple(given) if len(given) > 1 else given[0])
    except AdjacencyError:
        return None
    arcs, as_given = read
    if arcs.size and not 0 <= arcs.min() <= arcs.max() < len(records.rows):
        return None

    def made(rows: Floats, others: Arcs) -> Any:
        kept = records.made(rows)
        values = [*(kept if len(given) > 1 else [kept]), as_given(others)]
        names = [name for name in ("x", "y", "edge_index") if getattr(data, name, None) is not None]
        if "edge_index" not in names:
            return remade(data, values)
        return with_attributes(data, **dict(zip(names, values, strict=True)), num_nodes=len(rows))

    return GraphData(records, arcs, made)


def _edges(edges: Any) -> tuple[Arcs, Callable[[Arcs], Any]] | None:
    """Return edges as source and target, and what makes such edges of others; None where they are none."""
    array = of_tensor(edges)
    if isinstance(array, np.ndarray):
        if array.ndim != 2 or len(array) != 2 or array.dtype.kind not in "iu":
            return None
        return array.astype(
            np.int64
        ), lambda arcs: arcs.astype(array.dtype) if array is edges else edges.new_tensor(np.ascontiguousarray(arcs))
    if not isinstance(edges, list) or not all(isinstance(edge, tuple) and len(edge) == 2 for edge in edges):
        return None
    if not all(isinstance(end, int | np.integer) for edge in edges for end in edge):
        return None
    made = np.array(edges, np.int64).reshape(-1, 2).T
    return made, lambda arcs: sorted(map(tuple, arcs.T.tolist()))


def _change(large: GraphData, small: GraphData) -> tuple[str, int]:
    """Return what differs in words, and the node."""
    rows, others = large.records.rows, small.records.rows
    one, other = (set(map(tuple, graph.arcs.T.tolist())) for graph in (large, small))
    if len(rows) == len(others) + 1 and rows.shape[1] == others.shape[1]:
        unlike = np.flatnonzero((rows[:-1] != others).any(axis=1))
        last = int(unlike[0]) if len(unlike) else len(others)
        first = max((k + 1 for k in range(last) if (rows[k] != rows[last]).any()), default=0)
        for node in range(last, first - 1, -1) if np.array_equal(np.delete(rows, last, axis=0), others) else ():
            kept = large.arcs[:, (large.arcs != node).all(axis=0)]
            if set(map(tuple, (kept - (kept > node)).T.tolist())) == other:
                return ADDED, node
    elif rows.shape == others.shape:
        unlike, edges = np.flatnonzero((rows != others).any(axis=1)), one ^ other
        nodes = {int(unlike[0])} if len(unlike) == 1 else set(chain(*edges)) if not len(unlike) else set()
        for node in nodes:
            if all(node in edge for edge in edges):
                alone = any(all(node not in edge for edge in side) for side in (one, other))
                return (EDGES if alone and not len(unlike) else REPLACED), node
    raise AdjacencyError("AlikeGraph: the graphs do not differ in one node")
