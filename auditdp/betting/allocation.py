"""Which pair to play next: Thompson sampling on what a call of each pair earns.

Validity does not depend on the choice, because every bet is placed before its coin is known; a good choice only makes
the wealth grow faster.
"""

from __future__ import annotations

import math

import numpy as np


class Thompson:
    """Draws a plausible growth rate for every pair from its past bets and plays the pair with the largest draw.

    A pair's growth is modelled as Normal around its discounted mean log factor, with a standard error that shrinks with
    the number of calls; every pair is played once first. Discounting by ``memory`` forgets the price of learning.

    Args:
        pairs: How many pairs there are.
        memory: Weight of the past when a new batch arrives, per batch.
    """

    def __init__(self, pairs: int, *, memory: float = 0.7) -> None:
        self.memory = memory
        self.calls = np.zeros(pairs, dtype=int)
        self._weight = np.zeros(pairs)
        self._sum = np.zeros(pairs)
        self._squares = np.zeros(pairs)

    @property
    def growth(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Discounted mean log factor of each pair, nats a call."""
        return self._sum / np.maximum(self._weight, 1.0)

    def choose(self, rng: np.random.Generator) -> int:
        """Return the index of the pair to play next."""
        if (unplayed := np.flatnonzero(self.calls == 0)).size:
            return int(unplayed[0])
        if len(self.calls) == 1:
            return 0
        spread = np.sqrt(np.maximum(self._squares / self._weight - self.growth**2, 0.01) / self._weight)
        return int(np.argmax(self.growth + spread * rng.standard_normal(len(self.calls))))

    def learn(self, pair: int, log_factors: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
        """Add the log factors that the best forecaster earned on a batch of one pair."""
        finite = np.where(np.isfinite(log_factors), log_factors, -10.0)
        keep = self.memory if self.calls[pair] else 0.0
        self._weight[pair] = keep * self._weight[pair] + len(finite)
        self._sum[pair] = keep * self._sum[pair] + math.fsum(finite)
        self._squares[pair] = keep * self._squares[pair] + float(finite @ finite)
        self.calls[pair] += len(finite)
