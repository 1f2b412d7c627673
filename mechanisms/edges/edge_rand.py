"""EdgeRand: randomised response on the edges of a graph in the central model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from auditdp.adjacency import Pair
from auditdp.mechanism.laws import FiniteLaw
from auditdp.mechanism.protocol import Array
from mechanisms.cells import Rng
from mechanisms.edges.randomised_response import RandomisedResponse
from mechanisms.edges.sparse import flipped_pairs
from mechanisms.graphs import Graph
from mechanisms.validation import bit_matrix, check_integer, check_positive


@dataclass(frozen=True)
class EdgeRand:
    """Every pair above the diagonal is kept with probability E/(1+E), E = e^ε, else flipped; then mirrored.

    Claimed: ε-edge DP. The source replaces a bit by a fair coin with probability 2/(E+1). That flips it with
    probability 1/(E+1) and keeps it with probability E/(E+1): the same mechanism.

    Input: symmetric matrix, shape (nodes, nodes). Output: the pairs above the diagonal in ``np.triu_indices`` order,
    int8, shape (size, nodes·(nodes−1)/2); mirroring releases nothing more.

    Source: Wu et al. (2022), "LinkTeller", arXiv:2108.06504.

    Args:
        epsilon: Privacy loss of one edge in nats, finite and > 0.
        nodes: Number of nodes, at least 2.
    """

    epsilon: float
    nodes: int

    def __post_init__(self) -> None:
        check_positive("EdgeRand", "epsilon", self.epsilon)
        check_integer("EdgeRand", "nodes", self.nodes, 2)

    @property
    def name(self) -> str:
        """The mechanism, its budget and the number of nodes."""
        return f"EdgeRand(epsilon={self.epsilon:g}, nodes={self.nodes})"

    @cached_property
    def response(self) -> RandomisedResponse:
        """The randomised response that each pair goes through."""
        return RandomisedResponse(self.epsilon)

    def _bits(self, data: Any) -> Array:
        return bit_matrix(self.name, data, self.nodes)[np.triu_indices(self.nodes, 1)]

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent graphs as bits above the diagonal, int8."""
        return self.response(self._bits(data), size, rng=rng)

    def distribution(self, data: Array) -> FiniteLaw:
        """Return the exact law as Fractions, for at most 16 pairs (6 nodes).

        Raises:
            MechanismError: If there are more pairs.
        """
        return self.response.distribution(self._bits(data))

    def log_prob(self, outputs: Array, data: Array) -> Array:
        """Return the log probability of each output, shape (size,)."""
        return self.response.log_prob(outputs, self._bits(data))

    def score(self, outputs: Array, pair: Pair) -> Array:
        """Return agreements minus disagreements with ``data`` on the pairs that differ, shape (size,)."""
        return self.response.score(
            outputs, Pair(self._bits(pair.data), self._bits(pair.neighbour))
        )

    def whole_graph(self, graph: Graph, *, rng: Rng) -> Graph:
        """Return one noisy graph in time and memory proportional to the true and the flipped pairs."""
        return flipped_pairs(graph, 1 - self.response.keep, rng)
