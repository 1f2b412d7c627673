"""Releases of graphs with randomised neighbour lists, in the customised privacy setting."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from auditdp.errors import ConfigurationError
from auditdp.mechanism.protocol import Array
from gnn.validation import check_choice, check_count, check_positive
from mechanisms.cells import Rng, pair_count
from mechanisms.edges import (
    DPRR,
    Customised,
    LocalLaplace,
    LocalLaplaceRow,
    NonPrivPart,
    RandomisedResponse,
)
from mechanisms.edges.laplace_cells import rounded_total
from mechanisms.edges.sparse import largest_pairs
from mechanisms.graphs import DirectedGraph, Graph
from mechanisms.rounding import portion, remaining

MECHANISMS = ("DPRR", "RR", "LocalLap", "NonPriv-Part", "NonPriv-Full")
ALLOCATIONS = ("published", "within", "1:9")
LOCAL_LAP = ("pairs", "rows")


@dataclass(frozen=True)
class Release:
    """The way in which users release their neighbour lists.

    ⌊share · n⌋ random users of a graph are non-private and publish their lists; the others run the mechanism. The server's
    graph is directed: an arc (i, j) says that j is in the list that it has of i.

    Source: Hidano & Murakami (2022), arXiv:2202.10209, Sections IV-A and V-A.

    Note:
        The paper does not say what LocalLap does in the customised setting. "pairs" is its published code: T, half of the
        sum of the private users' noisy degrees, is the number of pairs of private users that become edges, and a pair with
        a non-private user is known from that user's list, in both directions. "rows" lets each private user's list have as
        many ones as the user's own noisy degree. In both the private users send the same messages.

    Args:
        mechanism: One of ``MECHANISMS``; NonPriv-Full is everybody publishing, whatever the share.
        epsilon: ε of a private user, in nats.
        share: Share of non-private users α, in [0, 1].
        nodes_max: Nodes of the largest graph, on which DPRR's allocation depends; public.
        allocation: Of DPRR: "published", ε₁ = max{√(8/(n_max − 1)), .1ε} and ε₂ = .9ε, which can exceed ε; "within", the
            repair ε₂ = ε − ε₁; "1:9", ε₁ = .1ε and ε₂ = .9ε.
        local_lap: "pairs" or "rows".

    Raises:
        ConfigurationError: If a parameter is outside its range, or NonPriv-Part is left without a user.
        MechanismError: If the repaired allocation leaves nothing for the list.
    """

    mechanism: str
    epsilon: float = 1.0
    share: float = 0.0
    nodes_max: int = 3782
    allocation: str = "published"
    local_lap: str = "pairs"

    def __post_init__(self) -> None:
        check_choice("Release", "mechanism", self.mechanism, MECHANISMS)
        check_choice("Release", "allocation", self.allocation, ALLOCATIONS)
        check_choice("Release", "local_lap", self.local_lap, LOCAL_LAP)
        check_positive("Release", "epsilon", self.epsilon)
        check_count("Release", "nodes_max", self.nodes_max, 2)
        if (
            isinstance(self.share, bool)
            or not isinstance(self.share, int | float)
            or not 0 <= self.share <= 1
        ):
            raise ConfigurationError(
                f"Release: expected share, a number in [0, 1], got {self.share!r}"
            )
        if self.mechanism == "NonPriv-Part" and not self.share:
            raise ConfigurationError(
                "Release: NonPriv-Part has no user where share = 0; give a share > 0"
            )
        _ = self.row_mechanism

    @cached_property
    def row_mechanism(self) -> Any:
        """Mechanism of a private user's list; None if it has no release, or T ones in all."""
        if self.mechanism == "RR":
            return RandomisedResponse(self.epsilon)
        if self.mechanism == "LocalLap" and self.local_lap == "rows":
            return LocalLaplaceRow(self.epsilon)
        if self.mechanism != "DPRR":
            return None
        if self.allocation == "1:9":
            first = portion(self.epsilon, Fraction(1, 10))
            return DPRR(first, remaining(self.epsilon, first))
        allocate = (
            DPRR.allocated if self.allocation == "published" else DPRR.allocated_within
        )
        return allocate(self.epsilon, self.nodes_max)

    @property
    def spent(self) -> float:
        """The ε-edge LDP of a private user's list: ε₁ + ε₂ for DPRR; infinite where everybody publishes."""
        if self.mechanism == "NonPriv-Full":
            return math.inf
        if self.mechanism == "NonPriv-Part":
            return 0.0
        row = self.row_mechanism
        return row.epsilon1 + row.epsilon2 if isinstance(row, DPRR) else self.epsilon

    def lists(self, graph: Graph, *, rng: Rng) -> DirectedGraph:
        """Return the lists that the server has; NonPriv-Part has the graph of the non-private users alone, renumbered."""
        published = math.floor(self.share * graph.nodes)
        if self.mechanism == "NonPriv-Full":
            return DirectedGraph(graph.nodes, graph.arcs)
        public = np.sort(rng.permutation(graph.nodes)[:published])
        private = np.setdiff1d(np.arange(graph.nodes), public)
        if self.mechanism == "NonPriv-Part":
            left = (
                NonPrivPart(graph.nodes, tuple(private)).whole_graph(graph, rng=rng)
                if graph.nodes > 1
                else graph
            )
            return DirectedGraph(len(public), np.searchsorted(public, left.arcs))
        if graph.nodes < 2:
            return DirectedGraph(graph.nodes, graph.arcs)
        if self.row_mechanism is None:
            return self._pairs(graph, private, rng)
        return Customised(self.row_mechanism, graph.nodes, tuple(private)).whole_graph(
            graph, rng=rng
        )

    def _pairs(self, graph: Graph, private: Array, rng: Rng) -> DirectedGraph:
        """The T largest noisy cells of pairs of private users, and all edges of the others, in both directions."""
        split = LocalLaplace(self.epsilon)
        inside = np.isin(graph.edges, private).all(axis=0)
        among = Graph(len(private), np.searchsorted(private, graph.edges[:, inside]))
        noisy = graph.degrees[private] + rng.laplace(
            0, split.degree_scale, len(private)
        )
        total = int(rounded_total(noisy.sum() / 2, pair_count(len(private))))
        found = (
            private[largest_pairs(among, total, split.cell_scale, rng).edges]
            if total
            else among.edges[:, :0]
        )
        whole = Graph.of(
            graph.nodes, np.concatenate([graph.edges[:, ~inside], found], axis=1)
        )
        return DirectedGraph(graph.nodes, whole.arcs)
