"""privHRG and EdgeRR as deployed: a dendrogram, noisy probabilities, and the graph that is drawn from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import FiniteLaw, LaplaceLaw, precision
from auditdp.mechanism.protocol import Array
from mechanisms.cells import Rng, bernoulli_cells
from mechanisms.edges.laplace_cells import LaplaceMessage
from mechanisms.graphs import Graph
from mechanisms.hierarchy.dendrogram import Dendrogram, Edge, Nested
from mechanisms.hierarchy.dendrogram_step import DendrogramStep
from mechanisms.hierarchy.exact_chain import states
from mechanisms.hierarchy.noisy_probabilities import (
    NoisyCount,
    Thresholds,
    drawn_probability,
    noisy_counts,
)
from mechanisms.rounding import laplace_scale
from mechanisms.validation import all_bits

MAX_NODES = 4


@dataclass(frozen=True)
class HierarchicalRelease:
    """Draws a dendrogram, perturbs the edge counts it asks for, and draws a graph; only the graph is released.

    Pairs of private nodes are drawn with the noisy probability of their lowest common ancestor; other pairs are copied (they
    have public edges or none). Claimed: (ε₁ + ε₂)-edge DP, ε₁ for the dendrogram and ε₂ for the probabilities.

    Input: the symmetric matrix of the (private) edges. Output: the pairs above the diagonal in ``np.triu_indices`` order,
    int8, shape (size, nodes·(nodes−1)/2). The noise is that of real-valued Laplace variables.

    Source: Xiao, Chen & Tan (2014), KDD; Tran et al. (2022), HeteroRR, pHRG. ``PrivHRG`` and ``EdgeRR`` make it.

    Note:
        As printed, a public edge between two private nodes is drawn anew like every pair of private nodes.

    Args:
        step: How the dendrogram is drawn.
        thresholds: How its probabilities are perturbed.
    """

    step: DendrogramStep
    thresholds: Thresholds

    @property
    def name(self) -> str:
        """The mechanism, its parts and their readings."""
        draws = (
            "" if self.thresholds.draws == "one" else f", {self.thresholds.draws} draws"
        )
        return f"HierarchicalRelease({self.step.name}, epsilon2={self.thresholds.epsilon:g}{draws})"

    @cached_property
    def scale(self) -> float:
        """Laplace scale of every count."""
        return laplace_scale(1, self.thresholds.epsilon)

    @cached_property
    def _positions(self) -> Array:
        """The position of each pair of nodes above the diagonal, shape (nodes, nodes)."""
        nodes = self.step.nodes
        positions = np.zeros((nodes, nodes), np.int64)
        i, j = np.triu_indices(nodes, 1)
        positions[i, j] = positions[j, i] = np.arange(len(i))
        return positions

    def _copied(self, edges: Sequence[Edge]) -> tuple[Array, Array]:
        """The public edges as bits, and which pairs are copied because they are not both private nodes."""
        is_member = np.isin(np.arange(self.step.nodes), self.step.members(edges))
        bits = np.zeros(len(np.triu_indices(self.step.nodes, 1)[0]), np.int8)
        for i, j in self.step.public:
            bits[self._positions[i, j]] = 1
        return bits, ~np.outer(is_member, is_member)[
            np.triu_indices(self.step.nodes, 1)
        ]

    def _drawn(
        self, dendrogram: Dendrogram, count: NoisyCount, members: Sequence[int]
    ) -> Array:
        """The positions of the pairs that are drawn with one noisy probability."""
        below = dendrogram.below()
        found = [
            self._positions[
                np.ix_(
                    *(
                        np.intersect1d(below[child], members)
                        for child in dendrogram.children[node]
                    )
                )
            ].ravel()
            for node in count.drawn
        ]
        return np.concatenate(found)

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent graphs as bits, int8."""
        edges = self.step.private_edges(data)
        members = self.step.members(edges)
        found, which = self.step.draw(edges, size, rng)
        public, copied = self._copied(edges)
        outputs = np.tile(np.where(copied, public, 0).astype(np.int8), (size, 1))
        for number, dendrogram in enumerate(found):
            rows = np.flatnonzero(which == number)
            for count in noisy_counts(dendrogram, self.thresholds):
                noisy = (
                    count.value(dendrogram) + rng.laplace(0.0, self.scale, len(rows))
                ) / count.pairs
                places = self._drawn(dendrogram, count, members)
                outputs[np.ix_(rows, places)] = (
                    rng.random((len(rows), len(places))) < noisy[:, None]
                )
        return outputs

    def distribution(self, data: Array) -> FiniteLaw:
        """Return the law of the released graph as rigorous balls, for at most 4 nodes.

        Raises:
            MechanismError: If there are more nodes.
        """
        if self.step.nodes > MAX_NODES:
            raise MechanismError(
                f"{self.name}: the law of a graph of {self.step.nodes} nodes is too large to list; use at most {MAX_NODES}, "
                "or play the game"
            )
        edges = self.step.private_edges(data)
        public, copied = self._copied(edges)
        outcomes = all_bits(len(public))
        outcomes = outcomes[(outcomes[:, copied] == public[copied]).all(axis=1)]
        with precision():
            totals = [arb(0)] * len(outcomes)
            for nested, weight in zip(
                states(self.step.nodes).dendrograms, self.step.law(edges), strict=True
            ):
                dendrogram = Dendrogram.of(nested, self.step.layers(edges))
                given = self._law_given(dendrogram, outcomes, self.step.members(edges))
                totals = [
                    total + weight * p for total, p in zip(totals, given, strict=True)
                ]
        return FiniteLaw(outcomes, totals)

    def _law_given(
        self, dendrogram: Dendrogram, outcomes: Array, members: Sequence[int]
    ) -> list[arb]:
        """The probability of each graph, given the dendrogram."""
        given = [arb(1)] * len(outcomes)
        for count in noisy_counts(dendrogram, self.thresholds):
            places = self._drawn(dendrogram, count, members)
            value, ones = (
                count.value(dendrogram),
                outcomes[:, places].sum(axis=1).tolist(),
            )
            given = [
                p
                * drawn_probability(k, len(places) - k, value, count.pairs, self.scale)
                for p, k in zip(given, ones, strict=True)
            ]
        return given

    def whole_graph(self, graph: Graph, *, rng: Rng) -> Graph:
        """Return one released graph for the private edges of ``graph``.

        Time and memory are proportional to the steps, the leaves below every node, and the released edges.
        """
        edges = self.step.checked(list(zip(*graph.edges.tolist(), strict=True)))
        members = self.step.members(edges)
        dendrogram = self.step.draw(edges, 1, rng)[0][0]
        below = [np.intersect1d(found, members) for found in dendrogram.below()]
        public = np.array(self.step.public, np.int64).reshape(-1, 2).T
        released = [public[:, ~np.isin(public, members).all(axis=0)]]
        for count in noisy_counts(dendrogram, self.thresholds):
            noisy = (
                count.value(dendrogram) + rng.laplace(0.0, self.scale)
            ) / count.pairs
            for node in count.drawn:
                left, right = (below[child] for child in dendrogram.children[node])
                row, column = np.divmod(
                    bernoulli_cells(len(left) * len(right), min(noisy, 1.0), rng),
                    len(right),
                )
                released.append(np.stack([left[row], right[column]]))
        return Graph.of(graph.nodes, np.concatenate(released, axis=1))


def PrivHRG(  # noqa: N802 - reads as the mechanism it returns
    epsilon1: float,
    epsilon2: float,
    nodes: int,
    *,
    steps: int | None = None,
    start: Nested = "balanced",
    **readings: Any,
) -> HierarchicalRelease:
    """Return privHRG: every edge is private, the exponent has the 2 and Δ is that of Xiao et al. (Equation 19).

    Args:
        epsilon1: Budget of the dendrogram in nats.
        epsilon2: Budget of the probabilities in nats.
        nodes: Number of nodes.
        steps: Steps of the chain; None draws from its stationary law.
        start: Where the chain starts.
        readings: ``tau1``, ``tau2``, ``draws`` of ``Thresholds``; others go to ``DendrogramStep``.
    """
    perturbed = {
        name: readings.pop(name)
        for name in ("tau1", "tau2", "draws")
        if name in readings
    }
    return HierarchicalRelease(
        DendrogramStep(epsilon1, nodes, steps=steps, start=start, **readings),
        Thresholds(epsilon2, **perturbed),
    )


def EdgeRR(  # noqa: N802 - reads as the mechanism it returns
    epsilon1: float,
    epsilon2: float,
    nodes: int,
    *,
    steps: int | None = None,
    start: Nested = "balanced",
    **readings: Any,
) -> HierarchicalRelease:
    """Return EdgeRR (pHRG) as printed: alternating moves, no 2 in the exponent, Equation 15, V_pri from the data.

    Arguments are those of ``PrivHRG``; every reading can be replaced.
    """
    printed = {
        "factor": 1,
        "equation": "15",
        "moves": "alternating",
        "private_nodes": "data",
    }
    return PrivHRG(
        epsilon1, epsilon2, nodes, steps=steps, start=start, **{**printed, **readings}
    )


@dataclass(frozen=True)
class NoisyCounts(LaplaceMessage):
    """CalculateNoisyProb as stated: the noisy counts for one dendrogram, before they are divided and cut off at 1.

    Input: the symmetric matrix of the private edges. Output: float64, shape (size, counts). Claimed: ε₂-edge DP.

    Args:
        dendrogram: The dendrogram, in brackets.
        thresholds: How counts are pooled, and their budget.
    """

    dendrogram: Nested
    thresholds: Thresholds

    @property
    def name(self) -> str:
        """The mechanism, its budget and its reading."""
        return f"NoisyCounts(epsilon={self.thresholds.epsilon:g}, {self.thresholds.draws}, {self.dendrogram})"

    @cached_property
    def _step(self) -> DendrogramStep:
        leaves = len(Dendrogram.of(self.dendrogram).children) // 2 + 1
        return DendrogramStep(1.0, leaves, steps=0, start=self.dendrogram)

    def distribution(self, data: Array) -> LaplaceLaw:
        """Return the law: one coordinate per draw of noise."""
        placed = Dendrogram.of(
            self.dendrogram, self._step.layers(self._step.private_edges(data))
        )
        counts = noisy_counts(placed, self.thresholds)
        values = np.array([count.value(placed) for count in counts], float)
        return LaplaceLaw(
            values, np.full(len(counts), laplace_scale(1, self.thresholds.epsilon))
        )
