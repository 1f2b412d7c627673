"""Pairs of inputs with their players, and the choice of the pair that is played next.

The choice depends on earlier batches alone, so validity does not depend on it: every
bet is placed before its coin is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from auditdp.adjacency import Pair
from auditdp.betting.forecasters.batches import Batch, Memory
from auditdp.betting.forecasters.forecaster import Single
from auditdp.betting.forecasters.players import Abstaining, Player
from auditdp.betting.limits import LIMITS
from auditdp.betting.wealth.forecasts import Forecasts
from auditdp.betting.wealth.mixture import Wealth
from auditdp.mechanism.calls.channel import LostError
from auditdp.numerics.arrays import Floats

Answer = TypeVar("Answer")


@dataclass
class PairTable:
    """One pair with its players, the stored calls, and the gains of each forecaster.

    Attributes:
        recent: Recent gain of each forecaster at every anchor by each way of betting,
            in nats, shape (forecasters, anchors, ways); None before the first batch.
        promise: Factor by which the gain that a search expects of this pair exceeds
            that of a listed pair; 1 without a search.
        memory: The first outputs of this pair, and the number of its calls.
        next_ranking: Number of calls from which on players rank their forecasters
            again.
    """

    pair: Pair
    players: list[Player]
    promise: float = 1.0
    memory: Memory = field(default_factory=Memory)
    recent: Floats | None = None
    next_ranking: int = LIMITS.ranked_calls

    @property
    def calls(self) -> int:
        """Number of calls of this pair so far."""
        return self.memory.calls

    def add(self, log_factors: Floats, size: int) -> None:
        """Add the log factors of a batch of ``size`` calls to ``recent``.

        The outputs of the batch have to be in ``memory`` already. The log factors have
        the shape of ``recent``.

        A call that was the n-th of N calls so far has the weight (n/N)², so that early
        losses, while forecasters learned, fade.
        """
        # In a plain sum, the losses of learning would count for good.
        if self.recent is not None:
            log_factors = log_factors + self.recent * (1 - size / self.calls) ** 2
        self.recent = log_factors

    def score(self, anchors: slice | int | Sequence[int] = slice(None)) -> Floats:
        """Return the recent gain of each forecaster at some anchors.

        It is the gain of its best way of betting. A batch must have been played.

        Args:
            anchors: Places of the anchors; by default all of them.

        Returns:
            The gains in nats, shape (forecasters, anchors), or (forecasters,) if
            ``anchors`` is one number.
        """
        assert self.recent is not None
        return np.asarray(self.recent[:, anchors].max(axis=-1))

    @property
    def names(self) -> list[str]:
        """The names of all forecasters."""
        return [name for player in self.players for name in player.names]

    @property
    def failures(self) -> dict[str, str]:
        """The errors of failed players, by the name of the first forecaster of each."""
        failed = [each for each in self.players if isinstance(each, Abstaining)]
        return {player.names[0]: player.failed for player in failed}

    def match(self, other: PairTable) -> None:
        """Replace each player whose number of forecasters differs from another pair's.

        All pairs need the same number of forecasters. It differs if the player has
        failed on one of the two pairs. Then it abstains on this pair, with the
        forecasters of the other pair.
        """
        for place, mine in enumerate(self.players):
            theirs = other.players[place]
            if len(mine.names) != len(theirs.names):
                failed = mine if isinstance(mine, Abstaining) else theirs
                # A player that did not fail has the same forecasters on every pair.
                assert isinstance(failed, Abstaining)
                self.players[place] = failed.like(theirs)

    def of_players(
        self, ask: Callable[..., Answer], *given: Sequence[Any]
    ) -> list[Answer]:
        """Call a function for every player and return the results, in their order.

        This is the only way from a game to its players. If a player raises an error, an
        abstaining player replaces it and gives the result. So no error of a forecaster
        ends an audit.

        Args:
            ask: The function; its first argument is a player.
            given: For each further argument, a list with its value for every player.

        Raises:
            LostError: If the process of the mechanism has ended.
        """
        answers = []
        for place, (player, *own) in enumerate(zip(self.players, *given, strict=True)):
            try:
                answers.append(ask(player, *own))
            except LostError:
                raise
            except (Exception, SystemExit) as error:
                self.players[place] = Abstaining.after(error, player)
                # The abstaining player gives the result instead.
                answers.append(ask(self.players[place], *own))
        return answers

    def forecasts(self, batch: Batch) -> list[Forecasts]:
        """Return the forecasts of all players for a batch."""
        forecasts = self.of_players(lambda player: _checked(player, batch))
        return [each for part in forecasts for each in part]

    def rank(self, score: Floats) -> None:
        """Let every player rank its forecasters.

        Args:
            score: Recent gains of the forecasters of all players, shape (forecasters,
                anchors).
        """
        self.of_players(
            lambda player, own: player.rank(own, self.calls), self._split(score)
        )

    def _split(self, score: Floats) -> list[Floats]:
        """Split the rows of a score by player."""
        ends = np.cumsum([len(player.names) for player in self.players])
        return np.split(score, ends[:-1])

    def gained(self, anchor: int) -> float:
        """Return the recent gain of the best forecaster at an anchor, in nats.

        It is -inf before the first batch.
        """
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
        """Draw a plausible gain of a call of this pair, in nats.

        A batch must have been played.

        Args:
            anchor: Place of the anchor at which the leading forecaster is chosen.
            epsilon: The epsilon that is bet against.
            believed: True for the gain of the player that has a law of the mechanism,
                False for the largest gain of the other players. It has no effect if no
                player has a law, or if there is one player.
            worn: Fraction of the pair's promise that has faded, 0 to 1.
            rng: Generator of the draw.
        """

        def drawn(player: Player, gained: Floats) -> float:
            leading = int(np.argmax(gained)) if gained.max() > 0 else None
            growth = player.plausible_growth(epsilon, rng, leading)
            if math.isnan(growth):
                raise ValueError("the growth that it expects is NaN")
            return growth

        # The promise of a search fades with the calls of the pair.
        promise = 1 + (self.promise - 1) * (1 - worn)
        draws = self.of_players(drawn, self._split(self.score(anchor)))
        first, last = self.players[0], self.players[-1]
        if len(draws) == 1:
            return draws[0] * promise
        # A forecaster with a law is the first player, or the last one if its law was
        # derived from traces.
        if isinstance(last, Single) and last.foretells:
            return draws[-1] if believed else max(draws[:-1]) * promise
        if isinstance(first, Single):
            return (draws[0] if believed else max(draws[1:])) * promise
        return max(draws) * promise


def _checked(player: Player, batch: Batch) -> list[Forecasts]:
    """Return the forecasts of a player.

    Raises:
        ValueError: If a forecast, or a part of an expected law, is NaN.
    """
    forecasts = player.forecast(batch)
    for each in forecasts:
        if any(
            np.isnan(odds).any() for odds in (each.log_odds, *(each.expected or ()))
        ):
            raise ValueError("its log-odds are NaN")
    return forecasts


@dataclass(frozen=True)
class Allocation:
    """Parameters of the choice of the next pair.

    Attributes:
        favour: Factor of the plausible gain of the pair with most calls, since nothing
            that forecasters learned about it helps on another pair.
        belief: Probability that the plausible gain is drawn from a player's law. The
            mechanism may not follow this law.
        neglect: A pair gets at least the fraction 1/``neglect`` of an equal share of
            the calls.
        neglect_from: Number of calls of a game after which this fraction falls.
        explore: For one batch in ``explore``, the pair is drawn; the other batches go
            to the pair that gains.
        trial: Fraction of the game's calls, on one pair, within which the promise of a
            search fades to nothing.
        least_gain: Smallest recent gain of a pair that counts as a gain, in nats.
    """

    favour: float = 1.5
    belief: float = 0.6
    neglect: int = 8
    neglect_from: int = 1_000_000
    explore: int = 4
    trial: float = 1 / 4
    least_gain: float = 0.01


ALLOCATION = Allocation()


def next_pair(
    tables: Sequence[PairTable],
    wealth: Wealth,
    *,
    batch: int,
    remaining: int,
    rng: np.random.Generator,
) -> int:
    """Return the index in ``tables`` of the pair that is played next.

    No pair gets less than an eighth of an equal share of the calls. In games of
    millions of calls, this fraction falls.

    Three batches of four go to the pair that has recently gained most, since
    forecasters learn on each pair separately. Until the claim is refuted, gains are
    against the claim. Afterwards they are against the *open* level, the lowest one that
    the bound has not reached. Many pairs gain against a low level, so a game that
    followed these gains earlier might never play the pair that refutes the claim.

    For every fourth batch, and while no pair gains, a plausible gain of each pair is
    drawn (Thompson sampling), and the largest one decides. If it is not enough to
    refute the claim within the remaining calls, gains against the open level are used
    instead. While no pair gains, every second draw is against the open level.

    Args:
        tables: The pairs with their players.
        wealth: The wealth of the game.
        batch: Number of batches so far.
        remaining: Number of remaining calls.
        rng: Generator of the draws.
    """
    calls = [table.calls for table in tables]
    # Every pair is played at times, even if it has gained nothing so far.
    least_played, most_played = int(np.argmin(calls)), int(np.argmax(calls))
    shared = min(wealth.calls, math.sqrt(wealth.calls * ALLOCATION.neglect_from))
    if (
        len(calls) == 1
        or calls[least_played] * ALLOCATION.neglect * len(calls) <= shared
    ):
        return least_played

    def gaining(level: int) -> int | None:
        anchor = wealth.anchor(level)
        gained = [table.gained(anchor) for table in tables]
        best = int(np.argmax(gained))
        is_followed = batch % ALLOCATION.explore != 0
        return best if is_followed and gained[best] >= ALLOCATION.least_gain else None

    def drawn(level: int) -> Floats:
        draws = _plausible(tables, wealth, level, wealth.calls + remaining, rng)
        draws[most_played] *= ALLOCATION.favour
        return draws

    open_level = wealth.open_level(wealth.alpha)
    if not wealth.refuted(wealth.alpha):
        best = gaining(wealth.position)
        if best is not None:
            return best
        draws = drawn(wealth.position)
        # If no plausible gain refutes the claim within the remaining calls, the batch
        # goes to the bound.
        needed = math.log(1 / wealth.alpha) - min(wealth.log_wealth, 0.0)
        if np.max(draws) * remaining > needed:
            if batch % 2:
                draws = drawn(open_level)
            return _best(draws, rng)
    best = gaining(open_level)
    return _best(drawn(open_level), rng) if best is None else best


def _plausible(
    tables: Sequence[PairTable],
    wealth: Wealth,
    level: int,
    calls: int,
    rng: np.random.Generator,
) -> Floats:
    """Draw a plausible gain of a call of each pair against a level, in nats.

    Args:
        tables: The pairs.
        wealth: The wealth of the game.
        level: Index of the level.
        calls: Number of calls of the game, including the remaining ones.
        rng: Generator of the draws.
    """
    epsilon = wealth.claim.at(float(wealth.levels[level])).tangents()[0][0]
    anchor, believed = wealth.anchor(level), rng.random() < ALLOCATION.belief
    draws = []
    for table in tables:
        worn = min(1.0, table.calls / ALLOCATION.trial / calls)
        draws.append(
            table.plausible_growth(
                anchor, epsilon, believed=believed, worn=worn, rng=rng
            )
        )
    return np.array(draws)


def _best(draws: Floats, rng: np.random.Generator) -> int:
    return int(rng.choice(np.flatnonzero(draws == np.max(draws))))
