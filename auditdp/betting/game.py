"""The loop of the game: choose a pair, flip coins, run the mechanism, forecast, bet, learn."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditdp.adjacency import Adjacency, Pair
from auditdp.betting.allocation import Thompson
from auditdp.betting.forecasters import bind, forecast
from auditdp.betting.wealth import Floats, Wealth, log_factors
from auditdp.claims import Claim
from auditdp.mechanism import Array, Mechanism, call

Streams = Callable[[str, int], np.random.Generator]
"""Gives the generator for (purpose, batch number)."""

FIRST_BATCH = 8
BATCH_GROWTH = 0.1
LARGEST_BATCH = 20_000


class Game:
    """The state of one game: its wealth, and for every pair what has been seen and learned.

    Batches start at 8 calls and grow by a tenth of the calls of their pair, so that forecasters are never fitted on much
    less than what there is; a batch is forecast with what was learned before it, and learned from afterwards.

    Args:
        mechanism: The mechanism; its calls must be independent (see ``auditdp.mechanism``).
        claim: The claim to play against.
        pairs: The pairs to play, each already known to be adjacent.
        forecasters: Templates, bound or copied once per pair.
        streams: Randomness by purpose and batch number.
        levels: Grid for the lower bound, or None for the verdict alone.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        claim: Claim,
        pairs: Sequence[Pair],
        forecasters: Sequence[Any],
        streams: Streams,
        *,
        levels: Floats | None = None,
    ) -> None:
        self.mechanism = mechanism
        self.claim = claim
        self.pairs = list(pairs)
        self.streams = streams
        self.wealth = Wealth(claim, forecasters=len(forecasters), levels=levels)
        self.bound = [[bind(f, mechanism, pair) for f in forecasters] for pair in self.pairs]
        self.names = [getattr(f, "name", type(f).__name__) for f in self.bound[0]]
        self.allocation = Thompson(len(self.pairs))
        self.path: list[tuple[int, float]] = [(0, 0.0)]
        self.refuted_at: int | None = None
        self.guesses = np.zeros((len(self.pairs), len(forecasters), 2), dtype=int)
        self._seen: list[tuple[Array, NDArray[np.int8]] | None] = [None] * len(self.pairs)
        self._like: Array | None = None
        self._batch = 0

    def play(self, calls: int, *, alpha: float, stop_when_refuted: bool = False) -> None:
        """Play until ``calls`` calls have been made, or until the claim is refuted at ``alpha``."""
        threshold = math.log(1 / alpha)
        while self.wealth.calls < calls and not (stop_when_refuted and self.wealth.refuted(alpha)):
            before = self.wealth.calls
            path = self._play_batch(calls - before)
            if self.refuted_at is None and (crossings := np.flatnonzero(path >= threshold)).size:
                self.refuted_at = before + int(crossings[0]) + 1

    def _play_batch(self, most: int) -> Floats:
        rng = self.streams("game", self._batch)
        self._batch += 1
        chosen = self.allocation.choose(rng)
        size = min(max(FIRST_BATCH, math.ceil(BATCH_GROWTH * self.allocation.calls[chosen])), LARGEST_BATCH, most)
        pair, forecasters = self.pairs[chosen], self.bound[chosen]
        labels, outputs = self._draw(pair, size, rng)
        log_odds = forecast(forecasters, outputs)
        path = self.wealth.bet(log_odds, labels)
        self._tally(chosen, log_odds, labels)
        if (seen := self._seen[chosen]) is not None:
            outputs, labels = np.concatenate([seen[0], outputs]), np.concatenate([seen[1], labels])
        self._seen[chosen] = (outputs, labels)
        for forecaster in forecasters:
            forecaster.fit(outputs, labels)
        self.path.append((self.wealth.calls, self.wealth.log_wealth))
        return path

    def _draw(self, pair: Pair, size: int, rng: np.random.Generator) -> tuple[NDArray[np.int8], Array]:
        """Flip ``size`` fair coins and run the mechanism on the inputs they choose."""
        labels = rng.integers(0, 2, size, dtype=np.int8)
        outputs: Array | None = None
        for side, data in ((1, pair.data), (0, pair.neighbour)):
            chosen = labels == side
            if not chosen.any():
                continue
            drawn = call(self.mechanism, data, int(chosen.sum()), rng, like=self._like)
            self._like = drawn[:0]
            if outputs is None:
                outputs = np.empty((size, *drawn.shape[1:]), drawn.dtype)
            outputs[chosen] = drawn
        assert outputs is not None  # a batch has at least one call
        return labels, outputs

    def _tally(self, chosen: int, log_odds: Floats, labels: NDArray[np.int8]) -> None:
        epsilon = self.claim.tangents()[0][0]
        steps = log_factors(log_odds, labels, epsilon)
        best = int(np.argmax(self.wealth.log_by_forecaster))
        self.allocation.learn(chosen, steps[best])
        bets = np.abs(log_odds) > epsilon
        right = bets & ((log_odds > 0) == (labels == 1))
        self.guesses[chosen] += np.stack([right.sum(axis=1), bets.sum(axis=1)], axis=1)

    @property
    def best_pair(self) -> int:
        """Index of the pair whose calls earn most."""
        return int(np.argmax(self.allocation.growth))

    @property
    def best_forecaster(self) -> int:
        """Index of the forecaster with the largest wealth against the claim."""
        return int(np.argmax(self.wealth.log_by_forecaster))

    def confirmation(self, streams: Streams) -> Game:
        """Return a fresh game on the best pair alone, with new randomness, no wealth, and what was learned so far."""
        fresh = copy.copy(self)
        k = self.best_pair
        fresh.pairs, fresh.bound = [self.pairs[k]], [self.bound[k]]
        fresh._seen = [self._seen[k]]
        fresh.streams = streams
        fresh.wealth = Wealth(self.claim, forecasters=len(self.names))
        fresh.allocation = Thompson(1)
        fresh.path, fresh.refuted_at, fresh._batch = [(0, 0.0)], None, 0
        fresh.guesses = np.zeros((1, len(self.names), 2), dtype=int)
        return fresh


def checked_pairs(adjacency: Adjacency, given: Sequence[Pair] | None = None) -> list[Pair]:
    """Return the pairs to play after checking that every one is adjacent."""
    pairs = list(given) if given is not None else adjacency.pairs()
    for pair in pairs:
        adjacency.check(pair)
    return pairs
