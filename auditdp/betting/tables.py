"""What happened on one pair of inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from auditdp.adjacency import Pair
from auditdp.betting.forecasting.forecasters import Player, Single
from auditdp.betting.forecasting.memory import Memory
from auditdp.numerics.arrays import Floats

FIRST_RANKING = 20_000
"""Calls of a pair before its players are told for the first time who gains."""


@dataclass
class PairTable:
    """One pair with its players, the calls that are kept, and what each forecaster won there.

    Attributes:
        recent: Log wealth that each forecaster won lately at every anchor by each way of betting, shape (forecasters,
            anchors, ways); None before the first batch.
        promise: How many times as much as a listed pair it may gain, by what a search saw; 1 where there was none.
        next_ranking: Calls from which on the players are told again who gains.
    """

    pair: Pair
    players: list[Player]
    promise: float = 1.0
    memory: Memory = field(default_factory=Memory)
    recent: Floats | None = None
    next_ranking: int = FIRST_RANKING

    @property
    def calls(self) -> int:
        """Calls of this pair."""
        return self.memory.calls

    def add(self, log_factors: Floats, size: int) -> None:
        """Add the log factors of a batch that is in memory already.

        A call counts with the square of its age's share, so that the price of learning is forgotten.
        """
        faded = 0.0 if self.recent is None else self.recent * (1 - size / self.calls) ** 2
        self.recent = log_factors + faded

    def score(self, anchors: slice | int | Sequence[int] = slice(None)) -> Floats:
        """Return what each forecaster has lately gained at some anchors, or all, by the way that suits it best.

        Returns:
            Shape (forecasters, anchors), or (forecasters,) for one anchor.
        """
        assert self.recent is not None  # a batch has been played
        return np.asarray(self.recent[:, anchors].max(axis=-1))

    def by_player(self, score: Floats) -> list[tuple[Player, Floats]]:
        """Return every player with the rows of a score that are its own."""
        ends = np.cumsum([len(player.names) for player in self.players])
        return list(zip(self.players, np.split(score, ends[:-1]), strict=True))

    def gained(self, anchor: int) -> float:
        """Return what the best forecaster has lately gained at an anchor; -inf before the first batch."""
        return -math.inf if self.recent is None else float(self.score(anchor).max())

    def plausible_growth(
        self, anchor: int, epsilon: float, *, believed: bool, worn: float, rng: np.random.Generator
    ) -> float:
        """Draw what a call of this pair may gain.

        Args:
            anchor: Where it is known who leads.
            epsilon: What is bet against.
            believed: Whether players that know the law are asked alone, or else all others.
            worn: How far its promise counts no more, 0 to 1.
            rng: Draws it.
        """
        promise = 1 + (self.promise - 1) * (1 - worn)
        draws = [
            player.plausible_growth(epsilon, rng, int(np.argmax(gained)) if gained.max() > 0 else None)
            for player, gained in self.by_player(self.score(anchor))
        ]
        last = self.players[-1]
        if isinstance(last, Single) and last.foretells and len(draws) > 1:
            return draws[-1] if believed else max(draws[:-1]) * promise
        if not isinstance(self.players[0], Single) or len(draws) == 1:
            return max(draws) * promise
        return (draws[0] if believed else max(draws[1:])) * promise
