"""GraphPub's selection: every node publishes some real neighbours and some others, by a matrix L of scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, product
from typing import Any, Literal

import numpy as np
from flint import arb

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import FiniteLaw, ball, precision
from auditdp.mechanism.protocol import Array
from mechanisms.cells import Rng
from mechanisms.rounding import GRID, laplace_scale
from mechanisms.validation import bit_matrix, check_integer, check_positive, rows_of

MAX_OUTCOMES = 2**12
Scores = Callable[[Array], Array]


def score_matrix(embedding: Array) -> Array:
    """Return L = sigmoid(ZZᵀ), shape (nodes, nodes), for an embedding Z of shape (nodes, k)."""
    return 1 / (1 + np.exp(-(embedding @ embedding.T)))


def linear_scores(features: Array) -> Scores:
    """Return L as a function of the graph, Z = D^-½(A+I)D^-½X: one untrained linear layer on the private edges themselves.

    What is left of the published pipeline in the ablation that replaces the learned A_s by A.
    """

    def scores(matrix: Array) -> Array:
        looped = matrix + np.eye(len(matrix))
        scale = 1 / np.sqrt(looped.sum(axis=1))
        return score_matrix((scale[:, None] * looped * scale) @ features)

    return scores


def counts(epsilon: float, degree: Any, nodes: int) -> tuple[Any, Any]:
    """Return E₁ = Em²/(Em+N−m) and E₂ = (N−m)m/(Em+N−m), E = e^ε, before rounding; they sum to the degree m."""
    total = math.exp(epsilon) * degree + nodes - degree
    return math.exp(epsilon) * degree**2 / total, (nodes - degree) * degree / total


@dataclass(frozen=True)
class GraphPub:
    """Node i of degree m publishes the E₁ real neighbours and the E₂ other nodes with the largest L_ij.

    Input: symmetric matrix, shape (nodes, nodes). Output: the published lists, the rows without the diagonal one after
    the other, int8, shape (size, nodes·(nodes−1)); or, with ``union``, the pairs above the diagonal that one of both ends
    publishes, shape (size, nodes·(nodes−1)/2).

    Claimed: ε-edge DP; with noisy degrees (Section 3.6) (ε₁+ε₂)-edge DP. False for every ε, even where L is a public matrix,
    and so before asking what L gives away: E₁ + E₂ is the degree, and which of the real neighbours are published is
    determined by them, or is a subset of them. Two nodes without an edge publish nothing, and with one they publish it
    (E₁ = E/(E+1) rounds to 1; rounded down to 0 it takes a third node). Noisy degrees do not help: the noise does not change
    which neighbours are real, so a node without any never publishes one as real. See ``GraphPubResponse`` for the repair.

    Source: Xu et al. (2024), "GraphPub: Generation of Differential Privacy Graph with High Availability",
    arXiv:2403.00030. Readings that the paper leaves open are arguments here.

    Note:
        A count that exceeds what there is to choose from is cut to it (N − m counts the node itself among the others).
        Ties of L are broken by the smaller index.

    Args:
        epsilon: ε, or ε₂ with noisy degrees, in nats, finite and > 0.
        nodes: Number of nodes N, at least 2.
        scores: L, a public matrix of shape (nodes, nodes), or a function of the private adjacency matrix that returns it.
        rounding: How E₁ and E₂ become counts: "round" to nearest, "floor", or "random": E₁ up with the probability of its
            fraction, and E₂ the rest of the degree.
        choice: Who is published: "largest" L, "real uniformly" (real neighbours uniformly, others by largest L), or
            "uniformly" (the ablation with a random matrix L, fresh in every run).
        degree_epsilon: ε₁ of the noisy degrees max{round(m + Lap(1/ε₁)), 1}; the true degrees are used by default.
        union: Whether the undirected graph is released instead of the lists.
    """

    epsilon: float
    nodes: int
    scores: Any = field(repr=False)
    rounding: Literal["round", "floor", "random"] = "round"
    choice: Literal["largest", "real uniformly", "uniformly"] = "largest"
    degree_epsilon: float | None = None
    union: bool = False

    def __post_init__(self) -> None:
        check_positive("GraphPub", "epsilon", self.epsilon)
        check_integer("GraphPub", "nodes", self.nodes, 2)
        if self.degree_epsilon is not None:
            check_positive("GraphPub", "degree_epsilon", self.degree_epsilon)
        readings = {
            "rounding": ("round", "floor", "random"),
            "choice": ("largest", "real uniformly", "uniformly"),
        }
        for name, known in readings.items():
            if getattr(self, name) not in known:
                raise MechanismError(
                    f"GraphPub: expected {name} to be one of {known}, got {getattr(self, name)!r}"
                )
        if not callable(self.scores):
            checked_scores("GraphPub", self.scores, self.nodes)

    @property
    def name(self) -> str:
        """The mechanism, its budget, and the readings."""
        degrees = (
            ""
            if self.degree_epsilon is None
            else f", degree_epsilon={self.degree_epsilon:g}"
        )
        released = ", undirected" if self.union else ""
        return f"GraphPub(epsilon={self.epsilon:g}, nodes={self.nodes}{degrees}, {self.rounding}, {self.choice}{released})"

    def _nodes(self, data: Any) -> Iterator[tuple[Array, Array]]:
        """Each node's real neighbours and others as places in its list, both with the largest score first."""
        matrix = bit_matrix(self.name, data, self.nodes)
        scores = checked_scores(
            self.name,
            self.scores(matrix) if callable(self.scores) else self.scores,
            self.nodes,
        )
        for bits, row in zip(rows_of(matrix), rows_of(scores), strict=True):
            order = np.argsort(-row, kind="stable")
            yield order[bits[order] == 1], order[bits[order] == 0]

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent releases, int8."""
        lists = np.zeros((size, self.nodes, self.nodes - 1), np.int8)
        for node, (real, others) in enumerate(self._nodes(data)):
            shown, added = self._drawn_counts(len(real), size, rng)
            lists[:, node, real] = (
                self._ranks(len(real), self.choice != "largest", size, rng)
                < shown[:, None]
            )
            lists[:, node, others] = (
                self._ranks(len(others), self.choice == "uniformly", size, rng)
                < added[:, None]
            )
        return self._released(lists)

    def _drawn_counts(self, degree: int, size: int, rng: Rng) -> tuple[Array, Array]:
        used = np.full(size, float(degree))
        if self.degree_epsilon is not None:
            noise = rng.laplace(scale=laplace_scale(1, self.degree_epsilon), size=size)
            used = np.maximum(np.rint(degree + noise), 1)
        real, others = counts(self.epsilon, used, self.nodes)
        if self.rounding == "random":
            up = np.rint((real - np.floor(real)) * GRID) / GRID
            real = np.floor(real) + (rng.random(size) < up)
            others = used - real
        to_count = np.floor if self.rounding == "floor" else np.rint
        return to_count(real), to_count(others)

    def _ranks(self, count: int, uniformly: bool, size: int, rng: Rng) -> Array:
        """The place of each candidate in the order of choice, shape (size or 1, count)."""
        return (
            rng.random((size, count)).argsort(axis=1).argsort(axis=1)
            if uniformly
            else np.arange(count)[None]
        )

    def _released(self, lists: Array) -> Array:
        """The output for the lists of all nodes, shape (size, nodes, nodes−1)."""
        if not self.union:
            return lists.reshape(len(lists), -1)
        matrices = np.zeros((len(lists), self.nodes, self.nodes), np.int8)
        matrices[:, ~np.eye(self.nodes, dtype=bool)] = lists.reshape(len(lists), -1)
        upper = np.triu_indices(self.nodes, 1)
        return (matrices | matrices.transpose(0, 2, 1))[:, *upper]

    def distribution(self, data: Array) -> FiniteLaw:
        """Return the law, exact as Fractions, or enclosed with noisy degrees; at most 2^12 combinations of lists.

        Raises:
            MechanismError: If there are more.
        """
        with precision():
            rows = [self._row_law(real, others) for real, others in self._nodes(data)]
            if (count := math.prod(map(len, rows))) > MAX_OUTCOMES:
                raise MechanismError(
                    f"{self.name}: {count} combinations, at most {MAX_OUTCOMES}; use fewer nodes"
                )
            law: dict[bytes, Any] = {}
            for combination in product(*(row.items() for row in rows)):
                lists = np.array(
                    [list(published) for published, _ in combination], np.int8
                )
                key = self._released(lists[None])[0].tobytes()
                law[key] = law.get(key, 0) + math.prod(
                    probability for _, probability in combination
                )
            return FiniteLaw(
                np.array([np.frombuffer(key, np.int8) for key in law]),
                list(law.values()),
            )

    def _row_law(self, real: Array, others: Array) -> dict[tuple[int, ...], Any]:
        """The law of one node's published list."""
        law: dict[tuple[int, ...], Any] = {}
        for shown, added, probability in self._count_law(len(real)):
            chosen = product(
                _chosen(real, shown, self.choice != "largest"),
                _chosen(others, added, self.choice == "uniformly"),
            )
            for (some, p), (more, q) in chosen:
                bits = [0] * (self.nodes - 1)
                for place in (*some, *more):
                    bits[place] = 1
                law[tuple(bits)] = law.get(tuple(bits), 0) + probability * self._number(
                    p * q
                )
        return law

    def _number(self, probability: Fraction) -> Any:
        """A probability in the arithmetic of the law: exact, or enclosed where degrees are noisy."""
        return probability if self.degree_epsilon is None else ball(probability)

    def _count_law(self, degree: int) -> Iterator[tuple[int, int, Any]]:
        """(E₁, E₂, probability) of a node; noisy degrees of N and more all publish the real neighbours and no others."""
        degrees = [(degree, Fraction(1))]
        if self.degree_epsilon is not None:
            degrees = list(noisy_degree_law(degree, self.degree_epsilon, self.nodes))
        for used, probability in degrees:
            real, others = counts(self.epsilon, float(used), self.nodes)
            if self.rounding == "random":
                up = Fraction(round((real - math.floor(real)) * GRID), GRID)
                for step, p in ((1, up), (0, 1 - up)):
                    if p:
                        yield (
                            math.floor(real) + step,
                            used - math.floor(real) - step,
                            probability * self._number(p),
                        )
            else:
                to_count = math.floor if self.rounding == "floor" else round
                yield to_count(real), to_count(others), probability


def noisy_degree_law(
    degree: int, epsilon: float, most: int
) -> Iterator[tuple[int, arb]]:
    """Yield the values 1..most of min{max{round(m + Lap(1/ε)), 1}, most} with their probabilities, enclosed."""
    scale = arb(laplace_scale(1, epsilon))

    def below(x: Fraction) -> arb:
        tail = (-abs(ball(x)) / scale).exp() / 2
        return tail if x < 0 else 1 - tail

    for value in range(1, most + 1):
        lower = below(value - Fraction(1, 2) - degree) if value > 1 else arb(0)
        upper = below(value + Fraction(1, 2) - degree) if value < most else arb(1)
        yield value, upper - lower


def checked_scores(owner: str, scores: Any, nodes: int) -> Array:
    """Return a matrix of scores, float64, shape (nodes, nodes).

    Raises:
        MechanismError: If it is anything else, or not finite.
    """
    array = np.asarray(scores, np.float64)
    if array.shape != (nodes, nodes) or not np.isfinite(array).all():
        raise MechanismError(
            f"{owner}: expected finite scores of shape ({nodes}, {nodes}), got shape {array.shape}"
        )
    return array


def _chosen(
    pool: Sequence[int], count: int, uniformly: bool
) -> list[tuple[tuple[int, ...], Fraction]]:
    """The sets of ``count`` of a pool that may be published, with their probabilities."""
    count = max(0, min(count, len(pool)))
    if not uniformly:
        return [(tuple(pool[:count]), Fraction(1))]
    sets = list(combinations(pool, count))
    return [(each, Fraction(1, len(sets))) for each in sets]
