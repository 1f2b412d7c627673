"""The loop of the game: choose a pair, flip coins, run the mechanism, forecast, bet, learn."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditdp.adjacency import Adjacency, Pair
from auditdp.betting.batch import Batch
from auditdp.betting.forecasters import Player, Single, player
from auditdp.betting.memory import Memory
from auditdp.betting.repeats import Repeats
from auditdp.betting.watcher import Watcher
from auditdp.betting.wealth import Wealth
from auditdp.calls import Calls
from auditdp.calls.inputs import difference
from auditdp.claims import Claim
from auditdp.dominating import Floats
from auditdp.errors import AdjacencyError
from auditdp.mechanism import Mechanism, brief
from auditdp.randomness import Streams

FIRST_BATCH = 4
BATCH_GROWTH = 0.1
CATCHING_UP = 0.5
LANDING = 0.25
FINEST_GROWTH = 0.02
"""Smaller batches save few calls, and cost much where the wealth stays just below what is needed."""
LARGEST_BATCH = 1 << 16
LEADER = 1.0
FIRST_RANKING = 20_000
FAVOUR = 1.5
BELIEF = 0.6
NEGLECT = 8
NEGLECT_MORE_FROM = 1_000_000
EXPLORE = 4
EARNING = 0.01


@dataclass
class Table:
    """What happened on one pair: its players, what they remember, and what they won on every statement."""

    pair: Pair
    players: list[Player]
    memory: Memory = field(default_factory=Memory)
    won: Floats | None = None
    ranked: int = FIRST_RANKING

    def score(self, anchors: slice | int | Sequence[int] = slice(None)) -> Floats:
        """Return what each forecaster has lately earned at some anchors, or all, by the way that suits it best.

        Returns:
            Shape (K, anchors), or (K,) for one anchor.
        """
        assert self.won is not None  # a batch has been played
        return np.asarray(self.won[:, anchors].max(axis=-1))

    @property
    def calls(self) -> int:
        """Calls of this pair."""
        return self.memory.calls


class Game:
    """The state of one game: its wealth, and for every pair what has been seen and learned.

    Batches start at 4 calls and grow by a tenth of the calls of their pair, so that forecasters never know much less than
    what there is; a batch is forecast with what was learned before it, and learned from afterwards. Where a pair has less
    than half as many calls as pairs have on average, they grow by a tenth of that, or it would stay behind for good.

    Args:
        mechanism: The mechanism, or its ``Calls``; they must be independent (see ``auditdp.mechanism``).
        claim: The claim to play against.
        pairs: The pairs to play, each already known to be adjacent.
        forecasters: Templates, bound or copied once per pair.
        streams: Randomness by purpose and batch number.
        levels: Grid for the lower bound, or None for the verdict alone.
    """

    def __init__(
        self,
        mechanism: Mechanism | Calls,
        claim: Claim,
        pairs: Sequence[Pair],
        forecasters: Sequence[Any],
        streams: Streams,
        *,
        levels: Floats | None = None,
    ) -> None:
        self.calls = mechanism if isinstance(mechanism, Calls) else Calls(mechanism)
        self.claim = claim
        self.streams = streams
        self.alpha = 0.05
        self._batch = 0
        self.calls.look((data for pair in pairs for data in (pair.data, pair.neighbour)), streams("shape", 0))
        self.forecasters = list(forecasters)
        self.tables: list[Table] = []
        self._first_pairs = pairs
        for pair in pairs:
            self.add(pair)
        players = self.tables[0].players
        shares = [share for p in players for share in p.shares]
        self.names = [name for p in players for name in p.names]
        self.wealth = Wealth(claim, shares=shares, leader=LEADER if len(shares) > 1 else 0.0, levels=levels)
        self._prior = np.log(np.asarray(shares))[:, None]
        self.path: list[tuple[int, float]] = [(0, 0.0)]
        self.bounds: list[tuple[int, float]] = [(0, 0.0)]
        self.refuted_at: int | None = None

    def add(self, pair: Pair) -> None:
        """Add a pair to those that are played."""
        self.tables.append(self.seat(pair))

    def seat(self, pair: Pair) -> Table:
        """Return a pair with players of this game, which have seen nothing of it yet."""
        players = [player(f, self.calls.mechanism, pair) for f in self.forecasters]
        assert self.calls.like is not None  # they were looked at
        for p in players:
            if isinstance(p, Watcher):
                p.open(self.calls.like, self._first_pairs, self.calls.labels)
            elif isinstance(p, Repeats):
                p.open(self.calls.like, self.calls.labels)
        return Table(pair, players)

    def play(
        self,
        calls: int,
        *,
        alpha: float,
        stop_when_refuted: bool = False,
        going_on: Callable[[int, int], bool] | None = None,
    ) -> None:
        """Play until ``calls`` calls have been made, or until the claim is refuted at ``alpha``.

        ``going_on`` is asked after every batch, with the calls made and those to make: a game may stop at any time.
        """
        self.alpha = self.wealth.alpha = alpha
        while self.wealth.calls < calls and not (stop_when_refuted and self.wealth.refuted(alpha)):
            self._play_batch(calls - self.wealth.calls)
            if self.refuted_at is None and self.wealth.refuted(alpha):
                self.refuted_at = self.wealth.calls
            if going_on is not None and not going_on(self.wealth.calls, calls):
                return

    def _play_batch(self, most: int) -> None:
        rng = self.streams("game", self._batch)
        table = self._choose(rng, most)
        self._batch += 1
        fair = CATCHING_UP * self.wealth.calls / len(self.tables)
        # A confirmation starts small on a pair that is well known.
        calls = min(max(table.calls, fair), self.wealth.calls)
        size = min(max(FIRST_BATCH, math.ceil(BATCH_GROWTH * calls)), LARGEST_BATCH, most, self._nearly_there())
        batch = self.draw(table.pair, size, rng)
        forecasts = [said for p in table.players for said in p.forecast(batch)]
        leaders = None if table.won is None else self._ranked(table)
        won = self.wealth.bet(forecasts, size, leaders, pair=self.tables.index(table))
        table.memory.add(batch.ones, batch.zeros)
        # Lately earned: a call counts with the square of its age's share, so that the price of learning is forgotten.
        faded = 0.0 if table.won is None else table.won * (1 - size / table.calls) ** 2
        table.won = won + faded
        for p in table.players:
            p.learn(table.memory, stalled=self.refuted_at is None)
        if table.calls >= table.ranked:
            self._rank(table)
        self.path.append((self.wealth.calls, self.wealth.log_wealth))
        if (bound := self.wealth.lower_bound(self.alpha)) > self.bounds[-1][1]:
            self.bounds.append((self.wealth.calls, bound))

    def _ranked(self, table: Table) -> NDArray[np.intp]:
        """Return who is to lead on a pair at every anchor, the first one first: who has lately earned most."""
        standing = table.score() + self._prior
        if self.claim.delta == 0:
            return np.asarray(np.argmax(standing, axis=0))
        return np.asarray(np.argsort(-standing, axis=0, kind="stable"))

    def _nearly_there(self) -> int:
        """Return how many calls the next batch should not exceed, so that few are made beyond the verdict."""
        won, needed = self.wealth.log_wealth, math.log(1 / self.alpha)
        if self.refuted_at is not None or not 0 < won < needed:
            return LARGEST_BATCH
        growth = max(LANDING * (needed - won) / won, FINEST_GROWTH)
        return max(FIRST_BATCH, math.ceil(growth * self.wealth.calls))

    def draw(self, pair: Pair, size: int, rng: np.random.Generator) -> Batch:
        """Flip ``size`` fair coins and run the mechanism on the inputs that they choose."""
        heads = int(rng.binomial(size, 0.5))
        ones = self.calls(pair.data, heads, rng)
        return Batch(ones, self.calls(pair.neighbour, size - heads, rng), rng)

    def _rank(self, table: Table) -> None:
        """Tell the players who of them earns, against the claim and against the levels that the bound may reach next."""
        table.ranked = 2 * table.calls
        frontier = self.wealth.anchor(self._frontier)
        live = [self._claim_anchor, *range(max(frontier - 1, 0), len(self.wealth.anchors))[:4]]
        first, score = 0, table.score(live)
        for p in table.players:
            p.rank(score[first : first + len(p.names)], table.calls)
            first += len(p.names)

    def _choose(self, rng: np.random.Generator, remaining: int) -> Table:
        """Return the pair to play next: the one that earns, or Thompson sampling on what a call of each pair may earn.

        Validity does not depend on the choice, because every bet is placed before its coin is known. No pair gets less
        than an eighth of its share, however dull it looks; in games of millions of calls that becomes less and less.

        Three batches of four go to the pair that has lately earned most against the claim, since what was learned of one
        pair is lost on another; once the claim is refuted, or hardly can be within the remaining calls, to the one that has
        earned most against the lowest level that the bound has not reached. Not before: pairs that earn at a low level are
        many, and whoever follows them may never come to the one that refutes. In all other batches, what each pair may earn
        is drawn, by turns against the claim and that level.
        """
        fewest = min(self.tables, key=lambda table: table.calls)
        shared = min(self.wealth.calls, math.sqrt(self.wealth.calls * NEGLECT_MORE_FROM))
        if len(self.tables) == 1 or fewest.calls * NEGLECT * len(self.tables) <= shared:
            return fewest
        follow = self._batch % EXPLORE != 0
        if not self.wealth.refuted(self.alpha):
            if follow and (earning := self._earning(self.wealth.position)):
                return earning
            draws = self._draws(self.wealth.position, rng)
            if np.max(draws) * remaining > math.log(1 / self.alpha) - min(self.wealth.log_wealth, 0.0):
                return self._best(draws if self._batch % 2 == 0 else self._draws(self._frontier, rng), rng)
        return (follow and self._earning(self._frontier)) or self._best(self._draws(self._frontier, rng), rng)

    def _earning(self, position: int) -> Table | None:
        """Return the pair that has lately earned most against a level, if any has earned."""
        anchor = self.wealth.anchor(position)
        best = max(self.tables, key=lambda table: self._earned(table, anchor))
        return best if self._earned(best, anchor) >= EARNING else None

    def _draws(self, position: int, rng: np.random.Generator) -> Floats:
        """Draw what a call of each pair may earn against a level.

        The pair that was played most is favoured: what the forecasters know of one pair is lost on another.
        """
        epsilon = self.claim.at(float(self.wealth.levels[position])).tangents()[0][0]
        anchor = self.wealth.anchor(position)
        believed = rng.random() < BELIEF  # the law that a mechanism states may not be the law that it draws from
        draws = np.array([self._plausible(table, anchor, epsilon, believed, rng) for table in self.tables])
        draws[np.argmax([table.calls for table in self.tables])] *= FAVOUR
        return draws

    def _best(self, draws: Floats, rng: np.random.Generator) -> Table:
        return self.tables[int(rng.choice(np.flatnonzero(draws == np.max(draws))))]

    def _plausible(self, table: Table, anchor: int, epsilon: float, believed: bool, rng: np.random.Generator) -> float:
        """Draw what a call of a pair may earn: by the first player where it knows the law, or by the others."""
        draws, first, score = [], 0, table.score(anchor)
        for p in table.players:
            won = score[first : first + len(p.names)]
            first += len(p.names)
            leading = int(np.argmax(won)) if won.max() > 0 else None
            draws.append(p.plausible_growth(epsilon, rng, leading))
        if not isinstance(table.players[0], Single) or len(draws) == 1:
            return max(draws)
        return draws[0] if believed else max(draws[1:])

    @property
    def _frontier(self) -> int:
        """Position of the lowest level that the bound has not reached."""
        return min(self.wealth.crossed(self.alpha), len(self.wealth.levels) - 1)

    @property
    def _claim_anchor(self) -> int:
        """Where the leaders against the claim are chosen."""
        return self.wealth.anchor(self.wealth.position)

    @property
    def best(self) -> Table:
        """The pair that has earned most against the claim."""
        return max(self.tables, key=self.earned)

    def earned(self, table: Table) -> float:
        """Log wealth that the best forecaster of a pair won there lately against the claim."""
        return self._earned(table, self._claim_anchor)

    def _earned(self, table: Table, anchor: int) -> float:
        return -math.inf if table.won is None else float(table.score(anchor).max())

    @property
    def best_forecaster(self) -> str:
        """Name of the forecaster with the largest wealth against the claim."""
        return str(self.names[self.wealth.best])

    def confirmation(self, streams: Streams, *, singly: bool = True) -> Game:
        """Return a fresh game on the best pair alone: new randomness, no wealth, and what was learned.

        Args:
            streams: Its randomness.
            singly: Whether calls are made one by one, by untouched copies of the mechanism.
        """
        fresh = copy.copy(self)
        fresh.calls = self.calls.singly() if singly else self.calls
        table = copy.copy(self.best)
        if table.won is not None:
            table.won = table.won[:, [self._claim_anchor]]
        fresh.tables = [table]
        fresh.streams, fresh._batch = streams, 0
        fresh.wealth = self.wealth.fresh()
        fresh.path, fresh.bounds, fresh.refuted_at = [(0, 0.0)], [(0, 0.0)], None
        return fresh


def checked_pairs(adjacency: Adjacency, given: Sequence[Pair] | None = None) -> list[Pair]:
    """Return the pairs to play after checking that every one is adjacent.

    Raises:
        AdjacencyError: If there is none, if one is not adjacent, or if its two inputs are the same.
    """
    pairs = list(given) if given is not None else adjacency.pairs()
    if not pairs:
        raise AdjacencyError(f"{adjacency.name}: lists no pairs to play")
    for pair in pairs:
        if difference(pair.data, pair.neighbour, opaque="unknown") is None:
            raise AdjacencyError(
                f"{adjacency.name}: both inputs of a pair are {brief(pair.data)}, so nothing can tell them apart; give two "
                "different inputs"
            )
        adjacency.check(pair)
    return pairs
