"""Blink: the messages of users, noisy lists and degrees, and the server's estimates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any

import numpy as np
from flint import arb

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import FiniteLaw, ball, precision
from auditdp.mechanism.protocol import Array
from mechanisms.cells import Rng
from mechanisms.rounding import keep_probability, laplace_scale, portion, remaining
from mechanisms.validation import (
    all_bits,
    bit_list,
    bit_matrix,
    check_integer,
    check_positive,
    rows_of,
)

MAX_OUTCOMES = 2**16


@dataclass(frozen=True)
class LinkMessage:
    """The message of one user: randomised bits, and a noisy degree.

    Every bit is by Warner's response with (1−share)·ε; the degree gets
    Laplace(1/(share·ε)).

    Claimed: ε-link LDP. Input: neighbour list, int8 bits, shape (k,). Output: the noisy bits, then the cell of the noisy
    degree: its floor, −1 below 0 and k from k on; int8, shape (size, k + 1).

    Source: Zhu, Tan & Xiao (2023), arXiv:2309.03190; src/blink/client.py of zhxchd/Blink_GNN at 947ec30c.

    Note:
        The source sends the noisy degree itself. The two outer cells are those in which it loses share·ε, so that the
        cells lose exactly as much, and the law is finite.

    Args:
        epsilon: Whole budget in nats, finite and > 0.
        share: Part of it for the degree, in (0, 1); the source calls it δ.
    """

    epsilon: float
    share: float | Fraction = Fraction(1, 10)

    def __post_init__(self) -> None:
        check_positive("LinkMessage", "epsilon", self.epsilon)
        portion(self.epsilon, self.share)

    @property
    def name(self) -> str:
        """The message and its budget."""
        return f"LinkMessage(epsilon={self.epsilon:g}, share={float(self.share):g})"

    @cached_property
    def scale(self) -> float:
        """Laplace scale of the degree, whose sensitivity is 1."""
        return laplace_scale(1, portion(self.epsilon, self.share))

    @cached_property
    def keep(self) -> float:
        """The probability of keeping a bit."""
        return keep_probability(
            remaining(self.epsilon, portion(self.epsilon, self.share))
        )

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent messages, int8, shape (size, k + 1)."""
        bits = bit_list(self.name, data)
        noisy = bits ^ (rng.random((size, len(bits))) >= self.keep)
        degree = bits.sum() + rng.laplace(0.0, self.scale, size)
        return np.column_stack(
            [noisy, np.clip(np.floor(degree), -1, len(bits))]
        ).astype(np.int8)

    def distribution(self, data: Array) -> FiniteLaw:
        """Return the exact law."""
        bits = bit_list(self.name, data)
        k, p = len(bits), Fraction(self.keep)
        lists = all_bits(k)
        of_lists = [
            p ** (k - flips) * (1 - p) ** flips
            for flips in (lists != bits).sum(axis=1).tolist()
        ]
        cells = FiniteLaw(
            np.arange(-1, k + 1, dtype=np.int8)[:, None],
            self._cells(int(bits.sum()), k),
        )
        return _product([FiniteLaw(lists, of_lists), cells])

    def _cells(self, degree: int, k: int) -> list[arb]:
        """Return the probabilities of the k + 2 cells."""
        with precision():
            below = [self._below(edge - degree) for edge in range(k + 1)]
            return [below[0], *(b - a for a, b in pairwise(below)), 1 - below[-1]]

    def _below(self, distance: int) -> arb:
        """Return the probability that the noise is below a number."""
        tail = (-ball(abs(distance) / Fraction(self.scale))).exp() / 2
        return tail if distance <= 0 else 1 - tail


@dataclass(frozen=True)
class LinkMessages:
    """All messages that the server receives: ``runs`` of every user, each with fresh noise.

    Input: adjacency matrix, shape (nodes, nodes), zero diagonal. Output: int8, shape (size, runs·nodes·nodes).

    Args:
        message: What a user sends in one run.
        nodes: Number of users, at least 2.
        runs: How often the server asks, at least 1.
    """

    message: LinkMessage
    nodes: int
    runs: int = 1

    def __post_init__(self) -> None:
        check_integer("LinkMessages", "nodes", self.nodes, 2)
        check_integer("LinkMessages", "runs", self.runs, 1)

    @property
    def name(self) -> str:
        """The message, and how many there are."""
        return f"{self.message.name} of {self.nodes} users, {self.runs} times"

    def _lists(self, data: Any) -> list[Array]:
        return [
            *rows_of(bit_matrix(self.name, data, self.nodes, symmetric=False))
        ] * self.runs

    def __call__(self, data: Any, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent sets of messages."""
        return np.concatenate(
            [self.message(row, size, rng=rng) for row in self._lists(data)], axis=1
        )

    def distribution(self, data: Any) -> FiniteLaw:
        """Return the exact law.

        Raises:
            MechanismError: If it has more than 2^16 outcomes.
        """
        return _product([self.message.distribution(row) for row in self._lists(data)])


def posterior(links: Array | int, prior: float, flip: float) -> Any:
    """Return the server's probability of a link of which both users sent a bit, ``links`` of the two bits being 1.

    Source: Zhu, Tan & Xiao (2023), arXiv:2309.03190; estimate_posterior in src/blink/server.py at 947ec30c, as published:
    polynomials through the three values of x = ``links``.

    Args:
        links: 0, 1 or 2.
        prior: Prior probability of the link, in (0, 1).
        flip: Probability with which a bit is flipped.
    """
    x, p = np.asarray(links), flip
    edge = (
        0.5 * (x - 1) * (x - 2) * p**2
        + 0.5 * x * (x - 1) * (1 - p) ** 2
        - x * (x - 2) * p * (1 - p)
    )
    none = (
        0.5 * (x - 1) * (x - 2) * (1 - p) ** 2
        + 0.5 * x * (x - 1) * p**2
        - x * (x - 2) * p * (1 - p)
    )
    return edge * prior / (edge * prior + none * (1 - prior))


def _product(laws: Sequence[FiniteLaw]) -> FiniteLaw:
    """Return the law of independent outputs, side by side."""

    def beside(left: FiniteLaw, right: FiniteLaw) -> FiniteLaw:
        many, few = len(left.outcomes), len(right.outcomes)
        if many * few > MAX_OUTCOMES:
            raise MechanismError(
                f"the law has {many * few} outcomes, expected at most {MAX_OUTCOMES}; use fewer nodes"
            )
        outcomes = np.concatenate(
            [np.repeat(left.outcomes, few, axis=0), np.tile(right.outcomes, (many, 1))],
            axis=1,
        )
        with precision():
            return FiniteLaw(outcomes, [a * b for a in left.balls for b in right.balls])

    return reduce(beside, laws)
