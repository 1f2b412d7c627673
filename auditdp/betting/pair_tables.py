"""What happened on one pair of inputs.

Which pair is played next.

It is chosen by what is known before the batch, so validity does not depend on it: every bet is placed before its coin is
known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from auditdp.adjacency import Pair
from auditdp.betting.forecasters.batches import Batch, Memory
from auditdp.betting.forecasters.forecaster import Abstaining, Player, Single
from auditdp.betting.wealth.forecasts import Forecasts
from auditdp.betting.wealth.mixture import Wealth
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
        faded = (
            0.0 if self.recent is None else self.recent * (1 - size / self.calls) ** 2
        )
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
        return {
            player.names[0]: player.failed
            for player in self.players
            if isinstance(player, Abstaining)
        }

    def match(self, other: PairTable) -> None:
        """Take as many forecasters as another pair has, where a player failed on one of the two before it had any."""
        for place, (mine, theirs) in enumerate(
            zip(self.players, other.players, strict=True)
        ):
            if len(mine.names) != len(theirs.names):
                failed = mine if isinstance(mine, Abstaining) else theirs
                assert isinstance(
                    failed, Abstaining
                )  # players that did not fail have as many everywhere
                self.players[place] = failed.like(theirs)

    def of_players(
        self, ask: Callable[..., Answer], *given: Sequence[Any]
    ) -> list[Answer]:
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
        return [
            each
            for found in self.of_players(lambda player: _checked(player, batch))
            for each in found
        ]

    def rank(self, score: Floats) -> None:
        """Tell every player what it gains; ``score`` has the rows of all forecasters."""
        self.of_players(
            lambda player, own: player.rank(own, self.calls), self._split(score)
        )

    def _split(self, score: Floats) -> list[Floats]:
        """Return the rows of a score that are each player's own."""
        ends = np.cumsum([len(player.names) for player in self.players])
        return np.split(score, ends[:-1])

    def gained(self, anchor: int) -> float:
        """Return what the best forecaster has lately gained at an anchor; -inf before the first batch."""
        return -math.inf if self.recent is None else float(self.score(anchor).max())

    def plausible_growth(
        self,
        anchor: int,
        epsilon: float,
        *,
        believed: bool,
        worn: float,
        rng: np.random.Generator,
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


FAVOUR = 1.5
"""Factor of what the pair that was played most may gain: what forecasters know of one pair is lost on another."""
BELIEF = 0.6
"""How often a stated law is believed: it may not be the law that the mechanism draws from."""
NEGLECT = 8
"""No pair gets less than this part of its share."""
NEGLECT_MORE_FROM = 1_000_000
"""Calls of a game from which on that becomes less and less."""
EXPLORE = 4
"""One batch of so many is drawn, the others follow the pair that gains."""
SHOWN = 4
"""A pair that has had this part of the calls has shown what it promised."""
GAINING = 0.01
"""Nats from which on a pair has gained."""


def next_pair(
    tables: Sequence[PairTable],
    wealth: Wealth,
    *,
    batch: int,
    remaining: int,
    rng: np.random.Generator,
) -> int:
    """Return the place of the pair that gains, or draw one by Thompson sampling from what a call of each pair may gain.

    No pair gets less than an eighth of its share, whatever it shows; in games of millions of calls that becomes less and
    less.

    Three batches of four go to the pair that has lately gained most against the claim, since what was learned of one pair
    is lost on another; once the claim is refuted, or hardly can be within the remaining calls, to the one that has gained
    most against the lowest level that the bound has not reached. Not before: pairs that gain at a low level are many, and
    whoever follows them may never come to the one that refutes. In all other batches, what each pair may gain is drawn, by
    turns against the claim and that level.

    Args:
        tables: The pairs with what was seen of them.
        wealth: The wealth of the game.
        batch: How many batches were played.
        remaining: Calls that are left to be made.
        rng: Draws.
    """
    calls, alpha = [table.calls for table in tables], wealth.alpha
    fewest, most = int(np.argmin(calls)), int(np.argmax(calls))
    shared = min(wealth.calls, math.sqrt(wealth.calls * NEGLECT_MORE_FROM))
    if len(calls) == 1 or calls[fewest] * NEGLECT * len(calls) <= shared:
        return fewest

    def gaining(level: int) -> int | None:
        gained = [table.gained(wealth.anchor(level)) for table in tables]
        best = int(np.argmax(gained))
        return best if batch % EXPLORE and gained[best] >= GAINING else None

    def drawn(level: int) -> Floats:
        draws = _plausible(tables, wealth, level, wealth.calls + remaining, rng)
        draws[most] *= FAVOUR
        return draws

    claim, open_level = wealth.position, wealth.open_level(alpha)
    if not wealth.refuted(alpha):
        if (best := gaining(claim)) is not None:
            return best
        draws = drawn(claim)
        if np.max(draws) * remaining > math.log(1 / alpha) - min(
            wealth.log_wealth, 0.0
        ):
            return _best(draws if batch % 2 == 0 else drawn(open_level), rng)
    best = gaining(open_level)
    return _best(drawn(open_level), rng) if best is None else best


def _plausible(
    tables: Sequence[PairTable],
    wealth: Wealth,
    level: int,
    calls: int,
    rng: np.random.Generator,
) -> Floats:
    """Draw what a call of each pair may gain against a level, given by its position, in a game of so many calls."""
    epsilon = wealth.claim.at(float(wealth.levels[level])).tangents()[0][0]
    anchor, believed = wealth.anchor(level), rng.random() < BELIEF
    worn = [min(1.0, SHOWN * table.calls / calls) for table in tables]
    return np.array(
        [
            table.plausible_growth(
                anchor, epsilon, believed=believed, worn=part, rng=rng
            )
            for table, part in zip(tables, worn, strict=True)
        ]
    )


def _best(draws: Floats, rng: np.random.Generator) -> int:
    return int(rng.choice(np.flatnonzero(draws == np.max(draws))))
