"""The outputs of one batch of calls, and the stored outputs of earlier batches."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from auditdp.betting.limits import LIMITS
from auditdp.mechanism.protocol import Array


class Batch:
    """The outputs of one batch of calls.

    The mechanism is called once for either coin, so its outputs arrive sorted by coin.
    A forecaster that got them in that order could infer the coins from the order, for
    example by averages of neighbouring rows. So the user's code gets only ``mixed``,
    once and as a whole. Its rows are permuted at random after the outputs were drawn.
    Then rows with their coins are exchangeable, as in a game that is played call by
    call, and only an output carries information on its coin.

    Args:
        ones: Outputs under coin 1, on the data of the pair, shape (n1, ...).
        zeros: Outputs under coin 0, on the neighbour, shape (n0, ...).
        rng: Generator of the permutation, which is drawn when it is first needed.
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
        """A copy of all outputs in random order, shape (n, ...)."""
        return np.concatenate([self.ones, self.zeros])[self._order]

    @property
    def labels(self) -> NDArray[np.int8]:
        """The coins of ``mixed``, shape (n,)."""
        return (self._order < len(self.ones)).astype(np.int8)

    def by_coin(self, values: Array) -> tuple[Array, Array]:
        """Split values, one per row of ``mixed``, into those of coin 1 and coin 0."""
        one = self._order < len(self.ones)
        return values[one], values[~one]


class Memory:
    """The first outputs of one pair under either coin, and the number of its calls.

    Calls are independent and identically distributed, so the first ones are as good as
    any others. Later outputs are not stored, and players only count them. Outputs can
    be read after the first ``add``.
    """

    def __init__(self) -> None:
        self.calls = 0
        self._ones: list[Array] = []
        self._zeros: list[Array] = []

    def add(self, ones: Array, zeros: Array) -> None:
        """Add the outputs of a batch, under coin 1 and under coin 0."""
        self.calls += len(ones) + len(zeros)
        if not self.full:
            # The mechanism may reuse its arrays.
            self._ones.append(ones.copy())
            self._zeros.append(zeros.copy())

    @property
    def full(self) -> bool:
        """True if a limit of ``GameLimits`` is reached, so that no more are stored."""
        if not self._ones:
            return False
        chunks = self._ones + self._zeros
        max_rows = LIMITS.memory_vectors
        if math.prod(chunks[0].shape[1:]) <= 1:
            max_rows = LIMITS.memory_numbers
        is_large = sum(chunk.nbytes for chunk in chunks) >= LIMITS.memory_bytes
        return is_large or sum(map(len, chunks)) >= max_rows

    @property
    def ones(self) -> Array:
        """Stored outputs under coin 1, shape (n1, ...)."""
        return _joined(self._ones)

    @property
    def zeros(self) -> Array:
        """Stored outputs under coin 0, shape (n0, ...)."""
        return _joined(self._zeros)

    def labelled(self) -> tuple[Array, NDArray[np.int8]]:
        """Return all stored outputs, coin 1 first, and their coins, shape (n,)."""
        counts = [len(self.ones), len(self.zeros)]
        labels = np.repeat(np.array([1, 0], np.int8), counts)
        return np.concatenate([self.ones, self.zeros]), labels


def _joined(chunks: list[Array]) -> Array:
    """Return chunks of rows as one array, and replace them by it in the list.

    So the same rows are not joined again at the next call.
    """
    if len(chunks) > 1:
        chunks[:] = [np.concatenate(chunks)]
    return chunks[0]
