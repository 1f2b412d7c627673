"""Simple graphs as sorted edge lists, the loader of the data sets, and two random graph models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from auditdp.errors import MechanismError
from auditdp.mechanism.protocol import Array
from mechanisms.cells import Rng, bernoulli_cells, distinct, pair_count, pairs_at
from mechanisms.validation import bit_matrix, check_integer


def _checked_ids(owner: str, nodes: int, ids: Any) -> Array:
    """The two rows of node ids as read-only int64, or an error."""
    check_integer(owner, "nodes", nodes, 0)
    array = np.asarray(ids)
    if (
        array.ndim != 2
        or len(array) != 2
        or (array.size and array.dtype.kind not in "iu")
    ):
        raise MechanismError(
            f"{owner}: expected an integer array of shape (2, count), got {array.dtype} of shape {array.shape}"
        )
    array = array.astype(np.int64)
    if array.size and not (array.min() >= 0 and array.max() < nodes):
        raise MechanismError(
            f"{owner}: expected node ids from 0 to {nodes - 1}, got {array.min()} to {array.max()}; renumber the nodes"
        )
    array.flags.writeable = False
    return array


@dataclass(frozen=True, eq=False)
class Graph:
    """A simple undirected graph.

    Args:
        nodes: Number of nodes, ids 0 to nodes − 1.
        edges: int64, shape (2, E): each edge once as (i, j) with i < j, in ascending order.

    Raises:
        MechanismError: If an edge is out of range, a loop, listed twice, or out of order; ``Graph.of`` puts any list of
            pairs into this form.
    """

    nodes: int
    edges: Array

    def __post_init__(self) -> None:
        edges = _checked_ids("Graph", self.nodes, self.edges)
        i, j = edges
        if (i >= j).any() or (np.diff(i * self.nodes + j) <= 0).any():
            raise MechanismError(
                "Graph: expected each edge once as (i, j) with i < j, in ascending order; use Graph.of(nodes, pairs)"
            )
        object.__setattr__(self, "edges", edges)

    @classmethod
    def of(cls, nodes: int, pairs: Any) -> Graph:
        """Return the graph with an edge for every pair, shape (2, any), in any order and direction, without loops."""
        pairs = _checked_ids("Graph.of", nodes, pairs)
        low, high = pairs.min(axis=0, initial=nodes), pairs.max(axis=0, initial=0)
        keys = distinct((low * nodes + high)[low < high])
        return cls(nodes, np.stack(np.divmod(keys, max(nodes, 1))))

    @classmethod
    def from_matrix(cls, matrix: Any) -> Graph:
        """Return the graph of a symmetric 0/1 matrix, shape (nodes, nodes), zero diagonal."""
        checked = bit_matrix("Graph.from_matrix", matrix, len(matrix))
        return cls(len(checked), np.stack(np.nonzero(np.triu(checked))))

    def to_matrix(self) -> Array:
        """Return the adjacency matrix, int8, shape (nodes, nodes)."""
        matrix = np.zeros((self.nodes, self.nodes), np.int8)
        matrix[self.edges[0], self.edges[1]] = matrix[self.edges[1], self.edges[0]] = 1
        return matrix

    @cached_property
    def degrees(self) -> Array:
        """Number of neighbours of each node, int64, shape (nodes,)."""
        return np.bincount(self.edges.ravel(), minlength=self.nodes)

    @cached_property
    def arcs(self) -> Array:
        """Every edge in both directions, ascending by source, then target; int64, shape (2, 2E)."""
        both = np.concatenate([self.edges, self.edges[::-1]], axis=1)
        return both[:, np.lexsort(both[::-1])]


@dataclass(frozen=True, eq=False)
class DirectedGraph:
    """The neighbour lists that users release: user i's list holds j when (i, j) is an arc.

    Args:
        nodes: Number of nodes.
        arcs: int64, shape (2, A): each (source, target) once, no loops, ascending by source, then target.

    Raises:
        MechanismError: If an arc is out of range, a loop, listed twice, or out of order.
    """

    nodes: int
    arcs: Array

    def __post_init__(self) -> None:
        arcs = _checked_ids("DirectedGraph", self.nodes, self.arcs)
        source, target = arcs
        if (source == target).any() or (
            np.diff(source * self.nodes + target) <= 0
        ).any():
            raise MechanismError(
                "DirectedGraph: expected each arc once, ascending, without loops"
            )
        object.__setattr__(self, "arcs", arcs)

    @classmethod
    def from_matrix(cls, matrix: Any) -> DirectedGraph:
        """Return the directed graph of a 0/1 matrix, row = source, zero diagonal."""
        checked = bit_matrix(
            "DirectedGraph.from_matrix", matrix, len(matrix), symmetric=False
        )
        return cls(len(checked), np.stack(np.nonzero(checked)))

    def to_matrix(self) -> Array:
        """Return the adjacency matrix, int8, shape (nodes, nodes), row = source."""
        matrix = np.zeros((self.nodes, self.nodes), np.int8)
        matrix[self.arcs[0], self.arcs[1]] = 1
        return matrix

    @cached_property
    def out_degrees(self) -> Array:
        """Length of each user's list, int64, shape (nodes,)."""
        return np.bincount(self.arcs[0], minlength=self.nodes)


def _open(path: Path | str, kind: str, other: str) -> Any:
    try:
        archive = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise MechanismError(f"{path}: no such file; check the data folder") from None
    missing = [
        key
        for key in ("kind", "edge_index", "edges_stored")
        if key not in archive.files
    ]
    if missing:
        raise MechanismError(
            f"{path}: not a data set of the expected schema, it lacks {', '.join(missing)}"
        )
    if str(archive["kind"]) != kind:
        raise MechanismError(
            f"{path}: holds kind {str(archive['kind'])!r}, expected {kind!r}; use {other}"
        )
    if str(archive["edges_stored"]) != "once_u_lt_v":
        raise MechanismError(
            f"{path}: expected edges_stored 'once_u_lt_v', got {str(archive['edges_stored'])!r}"
        )
    return archive


def load_graph(path: Path | str) -> Graph:
    """Return the graph of a node data set (an npz file with ``kind`` 'node'; pickles are refused).

    Raises:
        MechanismError: If the file does not exist or does not follow the schema.
    """
    with _open(path, "node", "load_graphs") as archive:
        return Graph(int(archive["num_nodes"]), archive["edge_index"])


def load_graphs(path: Path | str) -> list[Graph]:
    """Return the graphs of a graph data set (an npz file with ``kind`` 'graphs'; pickles are refused).

    Raises:
        MechanismError: If the file does not exist or does not follow the schema.
    """
    with _open(path, "graphs", "load_graph") as archive:
        edges, node_ptr, edge_ptr = (
            archive[k] for k in ("edge_index", "graph_ptr_nodes", "graph_ptr_edges")
        )
    sizes = np.diff(node_ptr)
    ends: Sequence[Any] = edge_ptr[1:]
    return [
        Graph(int(n), edges[:, a:b])
        for n, a, b in zip(sizes, edge_ptr[:-1], ends, strict=True)
    ]


def erdos_renyi(nodes: int, p: float, rng: Rng) -> Graph:
    """Return a graph in which every pair is an edge independently with probability p, in O(nodes + edges)."""
    check_integer("erdos_renyi", "nodes", nodes, 1)
    if not 0 <= p <= 1:
        raise MechanismError(
            f"erdos_renyi: expected a probability p in [0, 1], got {p!r}"
        )
    return Graph(nodes, pairs_at(bernoulli_cells(pair_count(nodes), p, rng), nodes))


def barabasi_albert(nodes: int, m: int, rng: Rng) -> Graph:
    """Return a preferential attachment graph: a star on m + 1 nodes, then each node joins m distinct old ones.

    Old nodes are chosen with probability proportional to their degree, again and again until m are distinct. The graph
    has m(nodes − m) edges. Source: Barabási & Albert (1999), Science 286.
    """
    check_integer("barabasi_albert", "m", m, 1)
    check_integer("barabasi_albert", "nodes", nodes, m + 1)
    edges = np.empty((2, m * (nodes - m)), np.int64)
    edges[:, :m] = np.stack([np.zeros(m), np.arange(1, m + 1)])
    filled = m
    for node in range(m + 1, nodes):
        chosen: set[int] = set()
        while (
            len(chosen) < m
        ):  # a uniform end of a uniform edge is a node drawn in proportion to its degree
            chosen.add(int(edges[rng.integers(2), rng.integers(filled)]))
        edges[0, filled : filled + m] = sorted(chosen)
        edges[1, filled : filled + m] = node
        filled += m
    return Graph.of(nodes, edges)
