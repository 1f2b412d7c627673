"""All users of a graph, each releasing their own neighbour list through a mechanism, in the clear, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from auditdp.adjacency import Pair
from auditdp.errors import MechanismError
from auditdp.mechanism.laws import FiniteLaw, ball, precision
from auditdp.mechanism.protocol import Array, name_of
from mechanisms.cells import Rng
from mechanisms.edges.sparse import user_ids
from mechanisms.graphs import DirectedGraph, Graph
from mechanisms.validation import bit_list, bit_matrix, check_integer, rows_of

MAX_OUTCOMES = 2**16


@dataclass(frozen=True)
class Publish:
    """The list as it is: a user without privacy (ε = ∞)."""

    @property
    def name(self) -> str:
        """The name in reports."""
        return "Publish"

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return the list ``size`` times."""
        return np.repeat(self._released(data)[None], size, axis=0)

    def _released(self, data: Array) -> Array:
        return bit_list(self.name, data)

    def distribution(self, data: Array) -> FiniteLaw:
        """Return the law: all mass on one list."""
        return FiniteLaw(self._released(data)[None], [Fraction(1)])

    def log_prob(self, outputs: Array, data: Array) -> Array:
        """Return 0 for the list that is released and -inf for any other, shape (size,)."""
        return np.where(
            (np.asarray(outputs) == self._released(data)).all(axis=1), 0.0, -np.inf
        )

    def whole_graph(
        self, graph: Graph, *, rng: Rng, users: Sequence[int] | Array | None = None
    ) -> DirectedGraph:
        """Return the true lists of the users."""
        return DirectedGraph(
            graph.nodes, graph.arcs[:, np.isin(graph.arcs[0], user_ids(graph, users))]
        )


@dataclass(frozen=True)
class Withhold(Publish):
    """An all-zero list whatever the data: a user who does not take part."""

    @property
    def name(self) -> str:
        """The name in reports."""
        return "Withhold"

    def _released(self, data: Array) -> Array:
        return np.zeros_like(bit_list(self.name, data))

    def whole_graph(
        self, graph: Graph, *, rng: Rng, users: Sequence[int] | Array | None = None
    ) -> DirectedGraph:
        """Return no arcs."""
        user_ids(graph, users)
        return DirectedGraph(graph.nodes, np.empty((2, 0), np.int64))


@dataclass(frozen=True)
class PerUser:
    """Every user applies the same row mechanism to their own neighbour list, independently.

    Input: adjacency matrix, shape (nodes, nodes), zero diagonal. A matrix need not be symmetric: then a pair may differ
    in one bit of one list (edge LDP) and not only in an undirected edge (relationship DP, one bit of two lists).
    Output: the noisy rows without the diagonal, one after the other, int8, shape (size, nodes·(nodes−1)).

    Args:
        row_mechanism: What a user does with their list.
        nodes: Number of users, at least 2.
    """

    row_mechanism: Any
    nodes: int

    def __post_init__(self) -> None:
        check_integer(type(self).__name__, "nodes", self.nodes, 2)

    @property
    def name(self) -> str:
        """The row mechanism and the number of users."""
        return f"{name_of(self.row_mechanism)} by each of {self.nodes} users"

    def mechanism_of(self, user: int) -> Any:
        """Return the row mechanism that a user applies."""
        return self.row_mechanism

    def _rows(self, data: Any) -> list[tuple[Any, Array]]:
        rows = rows_of(bit_matrix(self.name, data, self.nodes, symmetric=False))
        return [(self.mechanism_of(user), row) for user, row in enumerate(rows)]

    def _offer(self, law: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method, or raise AttributeError: a law is offered where all row mechanisms state theirs."""
        for user in range(self.nodes):
            if not hasattr(self.mechanism_of(user), law):
                raise AttributeError(
                    f"{self.name}: {name_of(self.mechanism_of(user))} has no {law}"
                )
        return method

    @property
    def distribution(self) -> Callable[[Array], FiniteLaw]:
        """``distribution(data)``: the product of the rows' laws, exact where they are; at most 2^16 outcomes."""
        return self._offer("distribution", self._distribution)

    @property
    def log_prob(self) -> Callable[[Array, Array], Array]:
        """``log_prob(outputs, data)``: the sum over rows of their log probabilities, shape (size,)."""
        return self._offer("log_prob", self._log_prob)

    @property
    def score(self) -> Callable[[Array, Pair], Array]:
        """``score(outputs, pair)``: log likelihood ratio from the rows that differ, 0 where both are impossible."""
        return self._offer("log_prob", self._score)

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent runs of all users, shape (size, nodes·(nodes−1))."""
        return np.concatenate(
            [mechanism(row, size, rng=rng) for mechanism, row in self._rows(data)],
            axis=1,
        )

    def _distribution(self, data: Array) -> FiniteLaw:
        rows = self._rows(data)
        laws = [mechanism.distribution(row) for mechanism, row in rows]
        if (count := prod(len(law.outcomes) for law in laws)) > MAX_OUTCOMES:
            raise MechanismError(
                f"{self.name}: {count} outcomes, at most {MAX_OUTCOMES}; use fewer nodes, or log_prob"
            )
        outcomes: Array = np.zeros((1, 0), np.int8)
        probabilities: list[Any] = [Fraction(1)]
        with precision():
            for law in laws:
                left, right = len(outcomes), len(law.outcomes)
                outcomes = np.hstack(
                    [
                        np.repeat(outcomes, right, axis=0),
                        np.tile(law.outcomes, (left, 1)),
                    ]
                )
                probabilities = [
                    _times(p, q) for p in probabilities for q in law.probabilities
                ]
        return FiniteLaw(outcomes, probabilities)

    def _row_logs(self, outputs: Array, data: Array, users: Sequence[int]) -> Array:
        rows, bits = self._rows(data), self.nodes - 1
        outputs = np.asarray(outputs)
        logs = [
            rows[i][0].log_prob(outputs[:, i * bits : (i + 1) * bits], rows[i][1])
            for i in users
        ]
        return np.sum(logs, axis=0) if logs else np.zeros(len(outputs))

    def _log_prob(self, outputs: Array, data: Array) -> Array:
        return self._row_logs(outputs, data, range(self.nodes))

    def _score(self, outputs: Array, pair: Pair) -> Array:
        differ = np.flatnonzero(
            (np.asarray(pair.data) != np.asarray(pair.neighbour)).any(axis=1)
        ).tolist()
        with np.errstate(invalid="ignore"):
            ratio = self._row_logs(outputs, pair.data, differ) - self._row_logs(
                outputs, pair.neighbour, differ
            )
        return np.where(np.isnan(ratio), 0.0, ratio)

    def whole_graph(self, graph: Graph, *, rng: Rng) -> DirectedGraph:
        """Return the directed graph of all noisy lists, in the row mechanism's sparse form."""
        graphs = [
            mechanism.whole_graph(graph, rng=rng, users=users)
            for mechanism, users in self._groups(graph)
            if len(users)
        ]
        arcs = np.concatenate([part.arcs for part in graphs], axis=1)
        return DirectedGraph(
            graph.nodes, arcs[:, np.argsort(arcs[0], kind="stable")]
        )  # users of parts are disjoint

    def _groups(self, graph: Graph) -> list[tuple[Any, Array]]:
        if graph.nodes != self.nodes:
            raise MechanismError(
                f"{self.name}: expected a graph of {self.nodes} nodes, got {graph.nodes}"
            )
        return [(self.row_mechanism, np.arange(self.nodes))]


@dataclass(frozen=True)
class Customised(PerUser):
    """The customised setting: private users apply the row mechanism, the others publish their lists as they are.

    Claimed: the row mechanism's ε for one bit of a private user's list. An undirected edge to a non-private user is in
    that user's list in the clear, so nothing is claimed for the edge itself. Input and output as for ``PerUser``.

    Source: Hidano & Murakami (2022), arXiv:2202.10209 (customised privacy settings).

    Args:
        row_mechanism: What a private user does with their list.
        nodes: Number of users.
        private: Ids of the private users.
        others: What the other users do: ``Publish()`` by default.
    """

    private: tuple[int, ...]
    others: Any = Publish()

    def __post_init__(self) -> None:
        super().__post_init__()
        ids = tuple(sorted(set(self.private)))
        if ids and not (ids[0] >= 0 and ids[-1] < self.nodes):
            raise MechanismError(
                f"Customised: expected private ids from 0 to {self.nodes - 1}, got {self.private}"
            )
        object.__setattr__(self, "private", ids)

    @property
    def name(self) -> str:
        """Both mechanisms and the numbers of users."""
        count = len(self.private)
        return f"{name_of(self.row_mechanism)} by {count}, {name_of(self.others)} by {self.nodes - count} users"

    def mechanism_of(self, user: int) -> Any:
        """Return the row mechanism that a user applies."""
        return self.row_mechanism if user in self.private else self.others

    def _groups(self, graph: Graph) -> list[tuple[Any, Array]]:
        ((_, everybody),) = super()._groups(graph)
        private = np.array(self.private, np.int64)
        return [
            (self.row_mechanism, private),
            (self.others, np.setdiff1d(everybody, private)),
        ]


def _times(p: Any, q: Any) -> Any:
    """The product, exact while both are Fractions and enclosed otherwise."""
    return (
        p * q
        if isinstance(p, Fraction) and isinstance(q, Fraction)
        else ball(p) * ball(q)
    )


@dataclass(frozen=True)
class PublishTo(Publish):
    """The bits of some friends, the others being zero.

    Args:
        friends: Which bits of the list, ascending.
    """

    friends: tuple[int, ...]

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"Publish {len(self.friends)} bits"

    def _released(self, data: Array) -> Array:
        bits = bit_list(self.name, data)
        return np.where(np.isin(np.arange(len(bits)), self.friends), bits, 0).astype(
            bits.dtype
        )


@dataclass(frozen=True)
class NonPrivPart(PerUser):
    """The baseline that discards the private users: the graph of the non-private users only, in the clear.

    Input and output as for ``PerUser``; whoever is private has no edge. No privacy is claimed. Edges of private users are
    not used, so that nothing of them is lost.

    Source: Hidano & Murakami (2022), arXiv:2202.10209, Section V ("a graph composed of only non-private users").

    Args:
        row_mechanism: What a private user does with their list: ``Withhold()``.
        nodes: Number of users.
        private: Ids of the private users.
    """

    row_mechanism: Any = field(default=Withhold(), init=False)
    nodes: int
    private: tuple[int, ...]

    @property
    def name(self) -> str:
        """The baseline and the numbers of users."""
        return f"NonPriv-Part, {len(self.private)} of {self.nodes} users private"

    def mechanism_of(self, user: int) -> Any:
        """Return the mechanism of a user: no release, or the list of non-private friends."""
        if user in self.private:
            return self.row_mechanism
        others = [other for other in range(self.nodes) if other != user]
        return PublishTo(
            tuple(k for k, other in enumerate(others) if other not in self.private)
        )

    def whole_graph(self, graph: Graph, *, rng: Rng) -> DirectedGraph:
        """Return the true graph of the non-private users."""
        self._groups(graph)
        return DirectedGraph(
            graph.nodes, graph.arcs[:, ~np.isin(graph.arcs, self.private).any(axis=0)]
        )


def NonPrivFull(nodes: int) -> PerUser:  # noqa: N802 - the baseline's name
    """Return the baseline in which everybody publishes their list: no privacy."""
    return PerUser(Publish(), nodes)
