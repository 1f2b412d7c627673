"""What happened on one pair of inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from auditdp.adjacency import Pair
from auditdp.betting.forecasting.abstaining import Abstaining
from auditdp.betting.forecasting.batch import Batch
from auditdp.betting.forecasting.forecasters import Player, Single
from auditdp.betting.forecasting.memory import Memory
from auditdp.betting.wealth.forecasts import Forecasts
from auditdp.mechanism.calls.channel import LostError
from auditdp.numerics.arrays import Floats

Answer = TypeVar("Answer")

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

    @property
    def names(self) -> list[str]:
        """The names of all forecasters."""
        return [name for player in self.players for name in player.names]

    @property
    def failures(self) -> dict[str, str]:
        """Why players abstain, by the name of the first forecaster of each."""
        return {player.names[0]: player.failed for player in self.players if isinstance(player, Abstaining)}

    def match(self, other: PairTable) -> None:
        """Take as many forecasters as another pair has, where a player failed on one of the two before it had any."""
        for place, (mine, theirs) in enumerate(zip(self.players, other.players, strict=True)):
            if len(mine.names) != len(theirs.names):
                failed = mine if isinstance(mine, Abstaining) else theirs
                assert isinstance(failed, Abstaining)  # players that did not fail have as many everywhere
                self.players[place] = failed.like(theirs)

    def of_players(self, ask: Callable[..., Answer], *given: Sequence[Any]) -> list[Answer]:
        """Return the answer of every player, each asked with its own part of what is given.

        This is the one way from a game to its players. A player that raises abstains from then on (``Abstaining``), so that
        no error of a forecaster ends an audit; only the loss of the mechanism's process does.
        """
        answers = []
        for place, (player, *own) in enumerate(zip(self.players, *given, strict=True)):
            try:
                answers.append(ask(player, *own))
            except LostError:
                raise
            except (Exception, SystemExit) as error:
                self.players[place] = Abstaining.after(error, player)
                answers.append(ask(self.players[place], *own))
        return answers

    def forecasts(self, batch: Batch) -> list[Forecasts]:
        """Return the forecasts of all players for a batch."""
        return [each for found in self.of_players(lambda player: _checked(player, batch)) for each in found]

    def rank(self, score: Floats) -> None:
        """Tell every player what it gains; ``score`` has the rows of all forecasters."""
        self.of_players(lambda player, own: player.rank(own, self.calls), self._split(score))

    def _split(self, score: Floats) -> list[Floats]:
        """Return the rows of a score that are each player's own."""
        ends = np.cumsum([len(player.names) for player in self.players])
        return np.split(score, ends[:-1])

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

        def drawn(player: Player, gained: Floats) -> float:
            leading = int(np.argmax(gained)) if gained.max() > 0 else None
            growth = player.plausible_growth(epsilon, rng, leading)
            if math.isnan(growth):
                raise ValueError("the growth that it expects is NaN")
            return growth

        draws = self.of_players(drawn, self._split(self.score(anchor)))
        last = self.players[-1]
        if isinstance(last, Single) and last.foretells and len(draws) > 1:
            return draws[-1] if believed else max(draws[:-1]) * promise
        if not isinstance(self.players[0], Single) or len(draws) == 1:
            return max(draws) * promise
        return (draws[0] if believed else max(draws[1:])) * promise


def _checked(player: Player, batch: Batch) -> list[Forecasts]:
    """Return the forecasts of a player.

    Raises:
        ValueError: If one of them is NaN.
    """
    found = player.forecast(batch)
    for each in found:
        expected = () if each.expected is None else each.expected
        if any(np.isnan(numbers).any() for numbers in (each.log_odds, *expected)):
            raise ValueError("its log-odds are NaN")
    return found
