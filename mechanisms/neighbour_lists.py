"""Concatenated neighbour lists in four bytes an entry, for hundreds of millions of arcs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from auditdp.errors import MechanismError
from auditdp.mechanism.protocol import Array
from mechanisms.graphs import DirectedGraph, Graph


@dataclass(frozen=True, eq=False)
class PackedLists:
    """The list of every node: targets[starts[v]:starts[v + 1]], ascending, without v.

    Args:
        starts: int64, shape (nodes + 1,), from 0 to the number of arcs, ascending.
        targets: Node ids, int32 where they fit (``id_type``), shape (arcs,).

    Raises:
        MechanismError: If the starts are not those of the targets.
    """

    starts: Array
    targets: Array

    def __post_init__(self) -> None:
        if not (
            len(self.starts)
            and self.starts[0] == 0
            and self.starts[-1] == len(self.targets)
        ):
            raise MechanismError(
                f"PackedLists: expected starts from 0 to the number of targets, {len(self.targets)}, got {self.starts!r}"
            )

    @classmethod
    def of(cls, graph: Graph | DirectedGraph) -> PackedLists:
        """Return the lists of a graph, in time and memory proportional to its arcs.

        Edges are ascending. So a node's later neighbours lie next to each other, and a counting sort of the edges by their
        second end, which scipy's conversion to rows is, puts the earlier ones in order.
        """
        nodes, kind = graph.nodes, id_type(graph.nodes)
        if isinstance(graph, DirectedGraph):
            return cls(_starts(graph.out_degrees), graph.arcs[1].astype(kind))
        first, second = graph.edges.astype(kind)
        earlier = csr_array(
            (np.ones(len(first), bool), (second, first)), shape=(nodes, nodes)
        )
        before, after = np.diff(earlier.indptr), np.bincount(first, minlength=nodes)
        starts = _starts(before + after)
        targets = np.empty(starts[-1], kind)
        # Where each entry goes: as far from the start of its part of the list as it is from the start of its part here.
        places = np.arange(len(first), dtype=np.int64)
        targets[places + np.repeat(starts[:-1] - earlier.indptr[:-1], before)] = (
            earlier.indices
        )
        targets[
            places + np.repeat(starts[:-1] + before - _starts(after)[:-1], after)
        ] = second
        return cls(starts, targets)

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.starts) - 1

    @property
    def sizes(self) -> Array:
        """Length of each list, shape (nodes,)."""
        return np.diff(self.starts)

    @property
    def graph(self) -> DirectedGraph:
        """The same as a directed graph."""
        sources = np.repeat(np.arange(self.nodes), self.sizes)
        return DirectedGraph(self.nodes, np.stack([sources, self.targets]))

    def cells(self, users: Array) -> Array:
        """Return the ones of some users' lists as ascending keys row·(nodes − 1) + place, row = position in ``users``."""
        sizes = self.starts[users + 1] - self.starts[users]
        row = np.repeat(np.arange(len(users), dtype=np.int64), sizes)
        at = np.arange(len(row)) + np.repeat(
            self.starts[users] - _starts(sizes)[:-1], sizes
        )
        targets = self.targets[at]
        return row * (self.nodes - 1) + targets - (targets > users[row])


def id_type(nodes: int) -> Any:
    """Return the type for ids of a number of nodes: int32 if it suffices."""
    return np.int32 if nodes <= np.iinfo(np.int32).max else np.int64


def _starts(sizes: Array) -> Array:
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
