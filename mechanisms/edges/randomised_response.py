"""Warner's randomised response on a neighbour list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from auditdp.adjacency import Pair
from auditdp.errors import MechanismError
from auditdp.mechanism.laws import FiniteLaw
from auditdp.mechanism.protocol import Array
from mechanisms.cells import Rng
from mechanisms.edges.sparse import flipped_rows, user_ids
from mechanisms.edges.users import PerUser
from mechanisms.graphs import DirectedGraph, Graph
from mechanisms.rounding import keep_probability
from mechanisms.validation import all_bits, bit_list, check_positive

MAX_BITS = 16


@dataclass(frozen=True)
class RandomisedResponse:
    """Every bit of the list is kept with probability p = e^ε/(1+e^ε), else flipped.

    Claimed: ε-edge LDP. Input: neighbour list, int8 bits, shape (k,). Output: int8, shape (size, k).

    Source: Warner (1965), JASA 60; Hidano & Murakami (2022), arXiv:2202.10209.

    Note:
        p is rounded towards privacy (``keep_probability``), and the deployed bits have exactly that probability.

    Args:
        epsilon: Privacy loss of one bit in nats, finite and > 0.
    """

    epsilon: float

    def __post_init__(self) -> None:
        check_positive("RandomisedResponse", "epsilon", self.epsilon)

    @property
    def name(self) -> str:
        """The mechanism and its budget."""
        return f"RandomisedResponse(epsilon={self.epsilon:g})"

    @cached_property
    def keep(self) -> float:
        """The probability of keeping a bit, a multiple of 2^-53."""
        return keep_probability(self.epsilon)

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent noisy lists, int8, shape (size, k)."""
        bits = bit_list(self.name, data)
        return bits ^ (rng.random((size, len(bits))) >= self.keep).astype(np.int8)

    def distribution(self, data: Array) -> FiniteLaw:
        """Return the exact law as Fractions, for lists of at most 16 bits.

        Raises:
            MechanismError: If the list is longer.
        """
        bits = bit_list(self.name, data)
        if len(bits) > MAX_BITS:
            raise MechanismError(
                f"{self.name}: the law of {len(bits)} bits has 2^{len(bits)} outcomes; use at most {MAX_BITS} bits, "
                "or log_prob"
            )
        p = Fraction(self.keep)
        by_flips = [
            p ** (len(bits) - flips) * (1 - p) ** flips
            for flips in range(len(bits) + 1)
        ]
        outcomes = all_bits(len(bits))
        return FiniteLaw(
            outcomes, [by_flips[flips] for flips in (outcomes != bits).sum(axis=1)]
        )

    def log_prob(self, outputs: Array, data: Array) -> Array:
        """Return the log probability of each output, shape (size,)."""
        bits = bit_list(self.name, data)
        flips = (np.asarray(outputs) != bits).sum(axis=1)
        return (len(bits) - flips) * np.log(self.keep) + flips * np.log(1 - self.keep)

    def score(self, outputs: Array, pair: Pair) -> Array:
        """Return, over the bits in which the pair differs, agreements minus disagreements.

        Agreements are with ``data``.

        The log likelihood ratio is this number times log(p/(1−p)), so nothing is lost. Shape (size,).
        """
        data, neighbour = (
            bit_list(self.name, pair.data),
            bit_list(self.name, pair.neighbour),
        )
        agree = np.asarray(outputs)[:, data != neighbour] == data[data != neighbour]
        return (2.0 * agree - 1).sum(axis=1)

    def whole_graph(
        self, graph: Graph, *, rng: Rng, users: Sequence[int] | Array | None = None
    ) -> DirectedGraph:
        """Return the noisy lists of the users (all by default), each perturbing their own row.

        Time and memory are proportional to the true and the flipped bits.
        """
        return flipped_rows(graph, user_ids(graph, users), 1 - self.keep, rng)


def RandomisedResponseGraph(epsilon: float, nodes: int) -> PerUser:  # noqa: N802 - reads as the mechanism it returns
    """Return randomised response on a symmetric matrix, every user releasing their own row.

    Claimed: 2ε-relationship DP, because an undirected edge is one bit of two lists. Output: int8, shape
    (size, nodes·(nodes−1)). Source: Hidano & Murakami (2022), arXiv:2202.10209, Proposition 1.
    """
    return PerUser(RandomisedResponse(epsilon), nodes)
