"""The loop of the game: choose a pair, flip coins, run the mechanism, forecast, bet, learn.

Looking on while an audit plays: how far it is, and a request to stop with what it has.

A game may end whenever somebody likes, since its wealth is a supermartingale under the claim: what was played so far has the
same guarantee. So the first interrupt of a ``Watcher`` only asks the game to end, and the second interrupts as usual.
"""

from __future__ import annotations

import copy
import math
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditdp.adjacency import Adjacency, Pair
from auditdp.betting.forecasters.batches import Batch
from auditdp.betting.forecasters.forecaster import Single, Unbound
from auditdp.betting.forecasters.traced import ReplayedRatio
from auditdp.betting.pair_tables import PairTable, next_pair
from auditdp.betting.wealth.mixture import Wealth
from auditdp.claims.claim import Claim
from auditdp.errors import AdjacencyError, ExhaustedError, Timeout
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.calls.allowance import allowance
from auditdp.mechanism.calls.inputs import difference
from auditdp.mechanism.protocol import Mechanism, brief
from auditdp.numerics.arrays import Floats
from auditdp.numerics.streams import Streams

FIRST_BATCH = 4
"""Calls."""
BATCH_GROWTH = 0.1
"""Of a batch, relative to the calls of its pair."""
CATCHING_UP = 0.5
"""Part of the calls that pairs have on average, from which on a pair has fallen behind."""
LANDING = 0.25
"""Of what is left to be won, which a batch may win at the rate so far: few calls are made beyond the verdict."""
FINEST_GROWTH = 0.02
"""Smaller batches save few calls, and cost much where the wealth stays just below what is needed."""
FEWEST = 1
"""Calls of such a batch, and of the first one of a pair, at least, where laws are read off the code: ten calls may then
refute a claim. The median of eight functions of ``benchmarks/ordinary.py`` is 1.12 times ln(1/α)/growth; with 4, 1.44."""
LARGEST_BATCH = 1 << 16
"""Calls; bounds memory."""
LEADER = 1.0
"""Prior weight of all leaders, beside the sum of the shares."""
MOST_RANKED = 4
"""Levels from the lowest open one on for which views are ranked."""


class Game:
    """The state of one game: its wealth, and for every pair what has been seen and learned.

    Batches start at 4 calls and grow by a tenth of the calls of their pair, so that forecasters never know much less than
    what there is; a batch is forecast with what was learned before it, and learned from afterwards. Where a pair has less
    than half as many calls as pairs have on average, they grow by a tenth of that, or it would stay behind for good. Where
    laws are read off the code, the first batch of a pair, and those just before a verdict, may have a single call.

    Args:
        mechanism: The mechanism, or its ``Calls``; they must be independent (see ``auditdp.mechanism.protocol``).
        claim: The claim to play against.
        pairs: The pairs to play, each already known to be adjacent.
        forecasters: Templates, bound or copied once per pair.
        streams: Randomness by purpose and batch number.
        levels: Grid for the lower bound, or None for the verdict alone.

    Attributes:
        looked_at: Pairs that a search looked at.
        is_late: Whether the time ended before the calls did.
        choose: Returns the place of the pair to play next; see ``next_pair``.
    """

    choose = staticmethod(next_pair)

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
        calls = mechanism if isinstance(mechanism, Calls) else Calls(mechanism)
        calls.look(
            (data for pair in pairs for data in (pair.data, pair.neighbour)),
            streams("shape", 0),
        )
        self.calls, self.claim, self.pairs, self.forecasters = (
            calls,
            claim,
            pairs,
            tuple(forecasters),
        )
        tables = [self.seat(pair) for pair in pairs]
        for table in tables:
            table.match(max(tables, key=lambda each: len(each.names)))
        shares = [share for p in tables[0].players for share in p.shares]
        wealth = Wealth(
            claim,
            shares=shares,
            leader=LEADER if len(shares) > 1 else 0.0,
            levels=levels,
        )
        self._begin(streams, tables, wealth)

    def _begin(self, streams: Streams, tables: list[PairTable], wealth: Wealth) -> None:
        self.streams, self.tables, self.wealth = streams, tables, wealth
        self.names = tables[0].names
        self._prior = np.log(
            np.asarray([share for p in tables[0].players for share in p.shares])
        )[:, None]
        self._batch = 0
        self.path: list[tuple[int, float]] = [(0, 0.0)]
        self.bounds: list[tuple[int, float]] = [(0, 0.0)]
        self.refuted_at: int | None = None
        self._refuting: PairTable | None = None
        self.looked_at, self.is_late = 0, False

    def add(self, pair: Pair, *, promise: float = 1.0) -> None:
        """Add a pair to those that are played; ``promise`` says how many times as much as others it may gain."""
        table = self.seat(pair)
        table.match(self.tables[0])
        table.promise = promise
        self.tables.append(table)

    def seat(self, pair: Pair, forecasters: Sequence[Any] | None = None) -> PairTable:
        """Return a pair with players of this game, all or some, which have seen nothing of it yet."""
        unbound: list[Any] = [Unbound(f) for f in forecasters or self.forecasters]
        table = PairTable(pair, unbound)
        table.players = table.of_players(
            lambda each: each.on(self.calls.offering, pair)
        )
        assert self.calls.like is not None  # they were looked at
        table.of_players(
            lambda each: each.open(self.calls.like, self.pairs, self.calls.labels)
        )
        return table

    def play(
        self,
        calls: int,
        *,
        alpha: float,
        stop_when_refuted: bool = False,
        going_on: Callable[[int, int], bool] | None = None,
        first: int = 0,
    ) -> None:
        """Play until ``calls`` calls have been made, or until the claim is refuted at ``alpha``.

        Only the pairs from place ``first`` on are played.
        ``going_on`` is asked after every batch, with the calls made and those to make: a game may stop at any time. So it
        ends with its allowance, too, also in the middle of a batch, on which nothing is bet then.
        """
        self.wealth.alpha = alpha
        while self.wealth.calls < calls and not (
            stop_when_refuted and self.wealth.refuted(alpha)
        ):
            most = min(calls - self.wealth.calls, allowance().left)
            if most < 1 or self.is_late:
                return
            try:
                self._play_batch(int(most), first)
            except (ExhaustedError, Timeout):  # a batch that was cut is none
                return
            finally:
                self.is_late = allowance().is_late
            if self.refuted_at is None and self.wealth.refuted(alpha):
                self.refuted_at, self._refuting = self.wealth.calls, self.best
            if going_on is not None and not going_on(self.wealth.calls, calls):
                return

    def _play_batch(self, most: int, first: int) -> None:
        rng = self.streams("game", self._batch)
        place = first + self.choose(
            self.tables[first:], self.wealth, batch=self._batch, remaining=most, rng=rng
        )
        table = self.tables[place]
        self._batch += 1
        batch = self.draw(table.pair, self._size(table, most), rng)
        forecasts = table.forecasts(batch)
        leaders = None if table.recent is None else self._leaders(table)
        log_factors = self.wealth.bet(forecasts, len(batch), leaders, pair=place)
        table.memory.add(batch.ones, batch.zeros)
        table.add(log_factors, len(batch))
        table.of_players(
            lambda each: each.learn(table.memory, stalled=self.refuted_at is None)
        )
        if table.calls >= table.next_ranking:
            self._rank(table)
        self.path.append((self.wealth.calls, self.wealth.log_wealth))
        if (bound := self.wealth.lower_bound(self.wealth.alpha)) > self.bounds[-1][1]:
            self.bounds.append((self.wealth.calls, bound))

    def _size(self, table: PairTable, most: int) -> int:
        """Return how many calls the next batch of a pair has."""
        average = self.wealth.calls / len(self.tables)
        # A confirmation starts small on a pair that is well known.
        calls = min(max(table.calls, CATCHING_UP * average), self.wealth.calls)
        first = FIRST_BATCH if table.calls or not self._reads else FEWEST
        return min(
            max(first, math.ceil(BATCH_GROWTH * calls)),
            LARGEST_BATCH,
            most,
            self._nearly_there(),
        )

    def _leaders(self, table: PairTable) -> NDArray[np.intp]:
        """Return who is to lead on a pair at every anchor, the first one first: who has lately gained most."""
        standing = table.score() + self._prior
        if self.claim.delta == 0:
            return np.asarray(np.argmax(standing, axis=0))
        return np.asarray(np.argsort(-standing, axis=0, kind="stable"))

    def _nearly_there(self) -> int:
        """Return how many calls the next batch should not exceed, so that few are made beyond the verdict."""
        gained, needed = self.wealth.log_wealth, math.log(1 / self.wealth.alpha)
        if (
            self.refuted_at is not None
            or gained <= 0
            or (gained >= needed and not self._reads)
        ):
            return LARGEST_BATCH
        growth = max(LANDING * (needed - gained) / gained, FINEST_GROWTH)
        return max(
            FEWEST if self._reads else FIRST_BATCH,
            math.ceil(growth * self.wealth.calls),
        )

    @property
    def _reads(self) -> bool:
        """Whether laws are read off the code."""
        return any(isinstance(each, ReplayedRatio) for each in self.forecasters)

    def draw(self, pair: Pair, size: int, rng: np.random.Generator) -> Batch:
        """Flip ``size`` fair coins and run the mechanism on the inputs that they choose."""
        heads = int(rng.binomial(size, 0.5))
        return Batch(
            *self.calls.sides(pair.data, heads, pair.neighbour, size - heads, rng), rng
        )

    def _rank(self, table: PairTable) -> None:
        """Tell the players who of them gains, against the claim and against the levels that the bound may reach next."""
        table.next_ranking = 2 * table.calls
        first = max(
            self.wealth.anchor(self.wealth.open_level(self.wealth.alpha)) - 1, 0
        )
        live = [
            self._claim_anchor,
            *range(first, len(self.wealth.anchors))[:MOST_RANKED],
        ]
        table.rank(table.score(live))

    @property
    def _claim_anchor(self) -> int:
        """Where the leaders against the claim are chosen."""
        return self.wealth.anchor(self.wealth.position)

    @property
    def best(self) -> PairTable:
        """The pair that has lately gained most against the claim; if that is little, the one that did when that fell."""
        best = max(self.tables, key=self.gained)
        if self._refuting is not None and self.gained(best) < math.log(
            1 / self.wealth.alpha
        ):
            return self._refuting
        return best

    def gained(self, table: PairTable) -> float:
        """Log wealth that the best forecaster of a pair won there lately against the claim."""
        return table.gained(self._claim_anchor)

    @property
    def best_forecaster(self) -> str:
        """Name of the forecaster with the largest wealth against the claim."""
        return str(self.names[self.wealth.best])

    @property
    def unlisted(self) -> int:
        """Outputs on which the likelihood ratio abstained, since the law that is stated does not list them."""
        return sum(self.of_forecasters("unlisted"))

    @property
    def abstained(self) -> int:
        """Outputs on which the replayed ratio abstained, since they do not look like those that were traced."""
        return sum(self.of_forecasters("abstained"))

    def of_forecasters(self, name: str) -> list[Any]:
        """Return what forecasters of all pairs have under a name, those that have it."""
        players = (player for table in self.tables for player in table.players)
        single = [p.forecaster for p in players if hasattr(p, "forecaster")]
        return [getattr(each, name) for each in single if hasattr(each, name)]

    @property
    def failures(self) -> dict[str, str]:
        """Why forecasters failed, by the name of the first one of each player that abstains."""
        return {
            name: reason
            for table in self.tables
            for name, reason in table.failures.items()
        }

    @property
    def is_blind(self) -> bool:
        """Whether no forecaster is left that could bet."""
        return all(len(table.failures) == len(table.players) for table in self.tables)

    def confirmation(self, calls: Calls, streams: Streams) -> Game:
        """Return a fresh game on the best pair alone: new calls and randomness, no wealth, and what was learned."""
        table = copy.copy(self.best)
        table.players = [
            each.afresh() if isinstance(each, Single) else each
            for each in table.players
        ]
        if table.recent is not None:
            table.recent = table.recent[:, [self._claim_anchor]]
        fresh = copy.copy(self)
        fresh.calls = calls
        fresh._begin(streams, [table], self.wealth.fresh())
        return fresh


def checked_pairs(
    adjacency: Adjacency, given: Sequence[Pair] | None = None
) -> list[Pair]:
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
    texts = Counter(
        map(str, pairs)
    )  # long inputs are cut there, and reports know a pair by its text
    return [
        p if texts[str(p)] == 1 else replace(p, name=f"{p.name or 'pair'} {k}")
        for k, p in enumerate(pairs, 1)
    ]


class Watcher:
    """Hears of every batch that a game plays.

    Args:
        progress: Called with the calls that were made and those that are to be made.
    """

    def __init__(self, progress: Callable[[int, int], None] | None = None) -> None:
        self.stopped = False
        self._progress = progress

    def interrupt(
        self, number: int = signal.SIGINT, frame: FrameType | None = None
    ) -> None:
        """Ask the game to end; the second time, raise ``KeyboardInterrupt``."""
        if self.stopped:
            raise KeyboardInterrupt
        self.stopped = True

    def progressed(self, done: int, of: int) -> bool:
        """Return whether the game is to go on."""
        if self._progress is not None:
            self._progress(done, of)
        return not self.stopped


_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


def going_on(done: int, of: int) -> bool:
    """Tell whoever looks on how many calls of how many were made, and return whether to go on."""
    watcher = _watcher.get()
    return watcher is None or watcher.progressed(done, of)


def is_stopped() -> bool:
    """Return whether somebody who looks on has asked for the end, or the time has ended."""
    watcher = _watcher.get()
    return allowance().is_late or (watcher is not None and watcher.stopped)


@contextmanager
def watched(watcher: Watcher) -> Iterator[Watcher]:
    """Let a watcher see the progress of the games that are played in the block, and take its interrupts."""
    token = _watcher.set(watcher)
    main = (
        threading.current_thread() is threading.main_thread()
    )  # signals reach no other thread
    before = signal.signal(signal.SIGINT, watcher.interrupt) if main else None
    try:
        yield watcher
    finally:
        if main:
            signal.signal(
                signal.SIGINT, before if before is not None else signal.SIG_DFL
            )
        _watcher.reset(token)
