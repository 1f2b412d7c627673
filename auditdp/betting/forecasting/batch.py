"""One batch of calls: their outputs by coin, and in random order."""

from __future__ import annotations

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
