"""The repair of GraphPub: every pair is published at random, real ones E times as likely as others, weighted by L."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import FiniteLaw, precision
from auditdp.mechanism.protocol import Array
from mechanisms.cells import Rng
from mechanisms.edges.graph_pub import checked_scores, noisy_degree_law
from mechanisms.rounding import GRID, laplace_scale
from mechanisms.validation import (
    all_bits,
    bit_list,
    bit_matrix,
    check_integer,
    check_positive,
)

MAX_BITS = 12
LEAST_STEPS = 2**13
"""The least probability of publishing another pair, in units of 2^-53, so that rounding costs at most a relative 2^-12."""


def publishing_rates(
    epsilon: float, degree: float, nodes: int, weights: Array
) -> tuple[Array, Array]:
    """Return the probabilities q of publishing a pair without an edge and p of publishing one with it, like ``weights``.

    As published, a node of degree m shows the share E/(Em+N−m)·m of its real neighbours and the share m/(Em+N−m) of the
    others. Here these are probabilities: q = w·m/(Em+N−m), at most 1/(E+1), with w the pair's weight over the mean
    weight, and p = Eq. Then p/q = E, and (1−q)/(1−p) <= E because q <= 1/(E+1): ε-DP for one pair, if m and the weights
    are public. With equal weights the expected numbers are those published, but for N − m others being N − 1 − m.

    Both are multiples of 2^-53, with the two inequalities true of them exactly: E is rounded down, products by more than
    their floating-point error, and p is not below q.

    Args:
        epsilon: ε in nats.
        degree: m, > 0; a public number or a noisy degree that was paid for.
        nodes: Number of nodes N.
        weights: Non-negative weights of the pairs, not all 0, public, any shape.
    """
    with precision():
        growth = float(arb(float(epsilon)).exp().lower())
    growth *= 1 - 2.0**-52
    share = degree / (growth * degree + nodes - degree)
    others = np.minimum(share * weights / weights.mean(), 1 / (growth + 1))
    others = np.maximum(np.rint(others * GRID), LEAST_STEPS)
    real = np.minimum(
        growth * others * (1 - 2.0**-51),
        GRID - (GRID - others) / growth * (1 + 2.0**-51),
    )
    return others / GRID, np.maximum(np.floor(real), others) / GRID


@dataclass(frozen=True)
class GraphPubResponse:
    """Every pair above the diagonal is published with probability p_ij if it is an edge, else q_ij, by public degree and L.

    Claimed here: ε-edge DP. True: one edge is one pair, whose probabilities keep the ratio (``publishing_rates``). This is
    the repair of ``GraphPub``. It keeps E₁ and E₂ in expectation for a node of the public degree if L is equal, and prefers
    pairs of large L; it gives up that every node has exactly its degree. L must be public, or learned privately at a cost
    of its own.

    Input: symmetric matrix, shape (nodes, nodes). Output: pairs above the diagonal, int8, shape (size, nodes·(nodes−1)/2).

    Args:
        epsilon: Privacy loss of one edge in nats, finite and > 0.
        nodes: Number of nodes, at least 2.
        scores: L, a public symmetric matrix of shape (nodes, nodes), positive off the diagonal.
        degree: The public mean degree m, in (0, nodes/2].
    """

    epsilon: float
    nodes: int
    scores: Any = field(repr=False)
    degree: float

    def __post_init__(self) -> None:
        check_positive("GraphPubResponse", "epsilon", self.epsilon)
        check_integer("GraphPubResponse", "nodes", self.nodes, 2)
        _check_weights(
            "GraphPubResponse",
            checked_scores("GraphPubResponse", self.scores, self.nodes),
        )
        if not 0 < self.degree <= self.nodes / 2:
            raise MechanismError(
                f"GraphPubResponse: expected a degree in (0, {self.nodes / 2:g}], half the nodes, got {self.degree!r}"
            )

    @property
    def name(self) -> str:
        """The mechanism and its parameters."""
        return f"GraphPubResponse(epsilon={self.epsilon:g}, nodes={self.nodes}, degree={self.degree:g})"

    @cached_property
    def rates(self) -> tuple[Array, Array]:
        """(q, p) of each pair above the diagonal."""
        weights = checked_scores(self.name, self.scores, self.nodes)[
            np.triu_indices(self.nodes, 1)
        ]
        return publishing_rates(self.epsilon, self.degree, self.nodes, weights)

    def _ones(self, data: Any) -> Array:
        bits = bit_matrix(self.name, data, self.nodes)[np.triu_indices(self.nodes, 1)]
        return np.where(bits == 1, self.rates[1], self.rates[0])

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent graphs as bits above the diagonal, int8."""
        ones = self._ones(data)
        return (rng.random((size, len(ones))) < ones).view(np.int8)

    def distribution(self, data: Array) -> FiniteLaw:
        """Return the exact law as Fractions, for at most 12 pairs (5 nodes).

        Raises:
            MechanismError: If there are more.
        """
        return FiniteLaw(
            *_bits_law(self.name, [Fraction(float(p)) for p in self._ones(data)])
        )

    def log_prob(self, outputs: Array, data: Array) -> Array:
        """Return the log probability of each output, shape (size,)."""
        ones = self._ones(data)
        return np.where(np.asarray(outputs) == 1, np.log(ones), np.log1p(-ones)).sum(
            axis=1
        )


@dataclass(frozen=True)
class GraphPubList:
    """A user's own list with a noisy degree: m̃ = max{round(m + Lap(1/ε₁)), 1}, at most N/2; then each bit by p or q of m̃.

    Claimed here: (ε₁+ε₂)-edge LDP, and so 2(ε₁+ε₂) for an undirected edge, which is in two lists. True by composition: the
    noisy degree costs ε₁, and given it each bit costs ε₂. This is the repair of GraphPub's Section 3.6, in the local model.

    Input: neighbour list, int8, shape (nodes−1,). Output: int8, shape (size, nodes−1).

    Args:
        epsilon1: Loss of the degree in nats.
        epsilon2: Loss of a bit given the degree.
        nodes: Number of nodes N, at least 2.
        scores: The user's row of L without the diagonal, public and positive; all equal by default.
    """

    epsilon1: float
    epsilon2: float
    nodes: int
    scores: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_positive("GraphPubList", "epsilon1", self.epsilon1)
        check_positive("GraphPubList", "epsilon2", self.epsilon2)
        check_integer("GraphPubList", "nodes", self.nodes, 2)
        if (
            np.shape(self._weights) != (self.nodes - 1,)
            or not (self._weights > 0).all()
        ):
            raise MechanismError(
                f"GraphPubList: expected {self.nodes - 1} scores > 0, got {self.scores!r}"
            )

    @property
    def name(self) -> str:
        """The mechanism and its parameters."""
        return f"GraphPubList(epsilon1={self.epsilon1:g}, epsilon2={self.epsilon2:g}, nodes={self.nodes})"

    @property
    def _weights(self) -> Array:
        return (
            np.ones(self.nodes - 1)
            if self.scores is None
            else np.asarray(self.scores, np.float64)
        )

    @cached_property
    def rates(self) -> Array:
        """Both probabilities, q and p, of every bit for every noisy degree 1..N/2, shape (N/2, 2, nodes−1)."""
        degrees = range(1, self.nodes // 2 + 1)
        return np.array(
            [
                publishing_rates(self.epsilon2, m, self.nodes, self._weights)
                for m in degrees
            ]
        )

    def _ones(self, data: Any) -> Array:
        """The probability of a 1 at every place for every noisy degree, shape (N/2, nodes−1)."""
        bits = bit_list(self.name, data)
        if len(bits) != self.nodes - 1:
            raise MechanismError(
                f"{self.name}: expected a list of {self.nodes - 1} bits, got {len(bits)}"
            )
        return np.where(bits == 1, self.rates[:, 1], self.rates[:, 0])

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent noisy lists, int8."""
        ones = self._ones(data)
        noise = rng.laplace(scale=laplace_scale(1, self.epsilon1), size=size)
        degrees = np.clip(np.rint(np.sum(data) + noise), 1, len(ones)).astype(np.int64)
        return (rng.random((size, ones.shape[1])) < ones[degrees - 1]).view(np.int8)

    def distribution(self, data: Array) -> FiniteLaw:
        """Return the law, enclosed: the mixture over the noisy degree; for lists of at most 12 bits.

        Raises:
            MechanismError: If the list is longer.
        """
        ones = self._ones(data)
        with precision():
            mixed: list[Any] = []
            for degree, weight in noisy_degree_law(
                int(np.sum(data)), self.epsilon1, len(ones)
            ):
                outcomes, given = _bits_law(
                    self.name, [Fraction(float(p)) for p in ones[degree - 1]]
                )
                part = [weight * arb(p.numerator) / p.denominator for p in given]
                mixed = (
                    [a + b for a, b in zip(mixed, part, strict=True)] if mixed else part
                )
            return FiniteLaw(outcomes, mixed)


def _bits_law(name: str, ones: list[Fraction]) -> tuple[Array, list[Fraction]]:
    """All bit lists and their probabilities, for independent bits."""
    if len(ones) > MAX_BITS:
        raise MechanismError(
            f"{name}: the law of {len(ones)} bits has 2^{len(ones)} outcomes; use at most {MAX_BITS} bits"
        )
    outcomes = all_bits(len(ones))
    return outcomes, [
        math.prod(
            (p if bit else 1 - p for p, bit in zip(ones, row, strict=True)),
            start=Fraction(1),
        )
        for row in outcomes
    ]


def _check_weights(owner: str, scores: Array) -> None:
    upper = scores[np.triu_indices(len(scores), 1)]
    if (scores != scores.T).any() or not (upper > 0).all():
        raise MechanismError(
            f"{owner}: expected symmetric scores, > 0 off the diagonal; sigmoid(ZZᵀ) has them"
        )
