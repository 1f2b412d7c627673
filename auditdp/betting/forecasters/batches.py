"""One batch of calls: their outputs by coin, and in random order.

What is kept of the calls of one pair, for forecasters that learn.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from auditdp.mechanism.protocol import Array


class Batch:
    """The outputs of one batch of calls.

    The mechanism runs once for either coin, so that its outputs arrive sorted by coin. A forecaster that were shown them in
    that order could read the coins from the order: averaging every row with its neighbours would do. Code of the user
    therefore sees ``mixed`` alone, once and as a whole: under a random permutation that is drawn after the outputs, the rows
    with their coins are exchangeable, as in a game that is played call by call, and only an output can tell its coin.

    Args:
        ones: Outputs under coin 1, shape (n1, ...).
        zeros: Outputs under coin 0, shape (n0, ...).
        rng: Draws the permutation, when it is first needed.
    """

    def __init__(self, ones: Array, zeros: Array, rng: np.random.Generator) -> None:
        self.ones = ones
        self.zeros = zeros
        self._rng = rng

    def __len__(self) -> int:
        return len(self.ones) + len(self.zeros)

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        return self._rng.permutation(len(self))

    @property
    def mixed(self) -> Array:
        """All outputs in random order, shape (n, ...): a copy, so changing it changes no other's."""
        return np.concatenate([self.ones, self.zeros])[self._order]

    @property
    def labels(self) -> NDArray[np.int8]:
        """The coins of ``mixed``, shape (n,)."""
        return (self._order < len(self.ones)).astype(np.int8)

    def by_coin(self, values: Array) -> tuple[Array, Array]:
        """Return what was computed for the rows of ``mixed`` under coin 1 and under coin 0."""
        one = self._order < len(self.ones)
        return values[one], values[~one]


MOST_BYTES = 1 << 26
"""Of the outputs of one pair."""
MOST_ROWS = 1 << 23
"""Outputs of one pair that are kept, where each is one number."""
MOST_VECTORS = 1 << 20
"""Outputs that are kept where each is several: learners see them all."""


class Memory:
    """The first outputs of one pair under either coin, up to 64 MiB of them, and how many calls there were.

    Calls are independent and alike, so the first ones are as good as any; what is learned from later ones are counts.
    """

    def __init__(self) -> None:
        self.calls = 0
        self._kept: tuple[_Rows, _Rows] = (_Rows(), _Rows())

    def add(self, ones: Array, zeros: Array) -> None:
        """Add the outputs of a batch, under coin 1 and under coin 0."""
        self.calls += len(ones) + len(zeros)
        if not self.full:
            self._kept[0].extend(ones)
            self._kept[1].extend(zeros)

    @property
    def full(self) -> bool:
        """Whether nothing more is kept."""
        most = MOST_ROWS if self._kept[0].width <= 1 else MOST_VECTORS
        return (
            sum(part.bytes for part in self._kept) >= MOST_BYTES
            or sum(part.length for part in self._kept) >= most
        )

    @property
    def ones(self) -> Array:
        """Outputs under coin 1, shape (n1, ...)."""
        return self._kept[0].rows

    @property
    def zeros(self) -> Array:
        """Outputs under coin 0, shape (n0, ...)."""
        return self._kept[1].rows

    def labelled(self) -> tuple[Array, NDArray[np.int8]]:
        """Return all outputs that are kept and their coins."""
        return np.concatenate([self.ones, self.zeros]), np.repeat(
            np.array([1, 0], np.int8), [len(self.ones), len(self.zeros)]
        )


class _Rows:
    """An array that grows at its end."""

    def __init__(self) -> None:
        self._buffer: Array | None = None
        self.length = 0

    @property
    def bytes(self) -> int:
        return 0 if self._buffer is None else self._buffer[: self.length].nbytes

    @property
    def width(self) -> int:
        return 0 if self._buffer is None else math.prod(self._buffer.shape[1:])

    @property
    def rows(self) -> Array:
        assert self._buffer is not None  # nobody learns before the first batch
        return self._buffer[: self.length]

    def extend(self, rows: Array) -> None:
        needed = self.length + len(rows)
        if self._buffer is None or needed > len(self._buffer):
            larger = np.empty((2 * needed, *rows.shape[1:]), rows.dtype)
            if self._buffer is not None:
                larger[: self.length] = self._buffer[: self.length]
            self._buffer = larger
        self._buffer[self.length : needed] = rows
        self.length = needed
