"""The loop of the game: choose a pair, run the mechanism, forecast, bet, learn.

The wealth is a supermartingale under the claim. So a game may end at any time with the
same guarantee for the bets so far. A ``Watcher`` uses this: it reports progress, its
first interrupt asks the game to end, and its second interrupt raises as usual.
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
"""Number of calls of the first batch of a pair."""
BATCH_GROWTH = 0.1
"""Number of calls of a later batch, as a fraction of the calls of its pair so far."""
CATCHING_UP = 0.5
"""Fraction of the average number of calls of a pair. A pair with fewer calls gets
batches as if it had this fraction."""
LANDING = 0.25
"""Largest gain of a batch, at the gain per call so far, as a fraction of the log wealth
that is missing for the verdict. It limits the calls after the verdict."""
FINEST_GROWTH = 0.02
"""Smallest number of calls of a batch near the verdict, as a fraction of the calls so
far. Smaller batches are slow, and save a small number of calls."""
FEWEST = 1
"""Smallest number of calls of a batch if laws are derived from traces, since ten calls
may then refute a claim. The median number of calls over eight functions of
``benchmarks/ordinary.py`` is 1.12 times ln(1/α) divided by the log growth of the best
bet; with batches of at least 4 calls it is 1.44 times."""
LARGEST_BATCH = 1 << 16
"""Largest number of calls of a batch; it limits memory."""
LEADER = 1.0
"""Prior weight of all leaders together, on the scale of the forecasters' shares."""
MOST_RANKED = 4
"""Largest number of anchors at which views are ranked, besides the claim's anchor. They
start one anchor below that of the lowest level that the bound has not reached."""


class Game:
    """The state of one game: its wealth, and the memory and players of every pair.

    Forecasters use all earlier batches to forecast a batch, and learn from it
    afterwards. The first batch of a pair has 4 calls. A later batch has a tenth of the
    calls of its pair so far, so forecasters are never far behind the data. If a pair
    has less than half of the average number of calls, its batch has a tenth of this
    half, so that it can catch up. If laws are derived from traces, the first batch of a
    pair, and batches just before a verdict, may have a single call.

    Args:
        mechanism: The mechanism, or its ``Calls``; calls must be independent (see
            ``auditdp.mechanism.protocol``).
        claim: The claim to bet against.
        pairs: The pairs to play; they must be adjacent.
        forecasters: Templates of forecasters, which are bound or copied for each pair.
        streams: Random streams by purpose and batch.
        levels: Increasing levels for the lower bound, the claim's level among them;
            None for the verdict alone.

    Attributes:
        wealth: The wealth of all bets so far.
        tables: The pairs with their players, in the order in which they were added.
        path: Pairs of a number of calls and the log wealth against the claim: (0, 0.0),
            then one after each batch.
        bounds: Pairs of a number of calls and the lower bound: (0, 0.0), then one after
            each batch that raised the bound.
        refuted_at: Number of calls at the refutation, or None.
        looked_at: Number of pairs that a search compared; 0 without a search.
        is_late: True if the time limit passed during the game, which ends it.
        choose: Function that returns the index of the pair to play next, by default
            ``next_pair``.
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
        # Pairs need equal numbers of forecasters. The longest list loses the fewest.
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
        """Add a pair to the game.

        Args:
            pair: The pair.
            promise: Factor by which its expected gain exceeds that of a listed pair.
        """
        table = self.seat(pair)
        table.match(self.tables[0])
        table.promise = promise
        self.tables.append(table)

    def seat(self, pair: Pair, forecasters: Sequence[Any] | None = None) -> PairTable:
        """Return a table for a pair, with new players; the game does not play it yet.

        Args:
            pair: The pair.
            forecasters: Templates of its forecasters; by default those of the game.
        """
        unbound: list[Any] = [Unbound(f) for f in forecasters or self.forecasters]
        table = PairTable(pair, unbound)
        table.players = table.of_players(
            lambda each: each.on(self.calls.offering, pair)
        )
        # ``Calls.look`` has fixed the representation of outputs.
        assert self.calls.like is not None
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
        """Play batches until the number of calls is reached.

        The game also ends when the allowance of runs or of time is used up. If this
        happens within a batch, nothing is bet on that batch.

        Args:
            calls: Number of calls of the game, including those of earlier ``play``.
            alpha: The level of the test.
            stop_when_refuted: Whether the game ends when the claim is refuted.
            going_on: Function that is called after every batch with the number of calls
                so far and ``calls``; the game ends if it returns False.
            first: Index in ``tables`` from which on pairs are played.
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
            except (ExhaustedError, Timeout):
                # An incomplete batch does not count.
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
        # Bets are fair only if leaders do not depend on the batch that is bet on.
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
        """Return the number of calls of the next batch of a pair, at most ``most``."""
        average = self.wealth.calls / len(self.tables)
        # In a confirmation, the pair has many calls but the game has none: it starts
        # with small batches.
        calls = min(max(table.calls, CATCHING_UP * average), self.wealth.calls)
        first = FIRST_BATCH if table.calls or not self._reads else FEWEST
        return min(
            max(first, math.ceil(BATCH_GROWTH * calls)),
            LARGEST_BATCH,
            most,
            self._nearly_there(),
        )

    def _leaders(self, table: PairTable) -> NDArray[np.intp]:
        """Return the leader on a pair at every anchor, by recent gain and prior weight.

        Returns:
            For a pure claim the index of the best forecaster, shape (anchors,). For
            other claims the indices of all forecasters, the best first, shape
            (forecasters, anchors).
        """
        standing = table.score() + self._prior
        if self.claim.delta == 0:
            return np.asarray(np.argmax(standing, axis=0))
        return np.asarray(np.argsort(-standing, axis=0, kind="stable"))

    def _nearly_there(self) -> int:
        """Return a limit on the calls of the next batch, by ``LANDING``."""
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
        """True if a forecaster derives laws from traces of the code."""
        return any(isinstance(each, ReplayedRatio) for each in self.forecasters)

    def draw(self, pair: Pair, size: int, rng: np.random.Generator) -> Batch:
        """Flip ``size`` fair coins, and return outputs on the inputs that they choose.

        Coin 1 chooses the data of the pair, and coin 0 the neighbour.
        """
        heads = int(rng.binomial(size, 0.5))
        return Batch(
            *self.calls.sides(pair.data, heads, pair.neighbour, size - heads, rng), rng
        )

    def _rank(self, table: PairTable) -> None:
        """Let players rank their forecasters by the gains at some anchors.

        These are the claim's anchor and those around the lowest open level.
        """
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
        """Place of the anchor at which leaders against the claim are chosen."""
        return self.wealth.anchor(self.wealth.position)

    @property
    def best(self) -> PairTable:
        """Table of the pair with the largest recent gain against the claim.

        If this gain is below ln(1/α) after a refutation, it is the table of the pair
        that had the largest gain at the refutation.
        """
        best = max(self.tables, key=self.gained)
        if self._refuting is not None and self.gained(best) < math.log(
            1 / self.wealth.alpha
        ):
            return self._refuting
        return best

    def gained(self, table: PairTable) -> float:
        """Return the recent gain of a pair's best forecaster against the claim.

        It is in nats, and -inf before the first batch of the pair.
        """
        return table.gained(self._claim_anchor)

    @property
    def best_forecaster(self) -> str:
        """Name of the forecaster with the largest wealth against the claim."""
        return str(self.names[self.wealth.best])

    @property
    def unlisted(self) -> int:
        """Number of outputs on all pairs that neither law of their pair lists."""
        return sum(self.of_forecasters("unlisted"))

    @property
    def abstained(self) -> int:
        """Number of outputs on which the replayed ratio abstained.

        They are unlike the outputs of the traced runs.
        """
        return sum(self.of_forecasters("abstained"))

    def of_forecasters(self, name: str) -> list[Any]:
        """Return attribute ``name`` of the forecasters on all pairs that have it.

        A player of several forecasters, such as that of the views, is left out.
        """
        players = (player for table in self.tables for player in table.players)
        single = [p.forecaster for p in players if hasattr(p, "forecaster")]
        return [getattr(each, name) for each in single if hasattr(each, name)]

    @property
    def failures(self) -> dict[str, str]:
        """The errors of failed players, by the name of the first forecaster of each.

        If a player has failed on several pairs, this is its error on the last one.
        """
        return {
            name: reason
            for table in self.tables
            for name, reason in table.failures.items()
        }

    @property
    def is_blind(self) -> bool:
        """True if every player has failed on every pair."""
        return all(len(table.failures) == len(table.players) for table in self.tables)

    def confirmation(self, calls: Calls, streams: Streams) -> Game:
        """Return a new game on the best pair, to confirm a finding against the claim.

        Its players have learned from this game; its wealth starts at 1. It has no lower
        bound and no calls yet.

        Args:
            calls: The calls of the mechanism, which may be those of this game.
            streams: Random streams that are independent of those of this game.
        """
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
    """Return the pairs to play, after checking that they are adjacent.

    If several pairs have the same text, each of them gets a name with a number.

    Args:
        adjacency: The adjacency, whose ``check`` decides if a pair is adjacent.
        given: The pairs of the user; by default those that the adjacency lists.

    Raises:
        AdjacencyError: If there is no pair, a pair is not adjacent, or both inputs of a
            pair are equal.
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
    # Texts of long inputs are shortened, and reports identify a pair by its text.
    texts = Counter(map(str, pairs))
    return [
        p if texts[str(p)] == 1 else replace(p, name=f"{p.name or 'pair'} {k}")
        for k, p in enumerate(pairs, 1)
    ]


class Watcher:
    """Observer of games, which reports their progress and can ask them to end.

    Args:
        progress: Function that is called after every batch with the number of calls so
            far and in total; None for no reports.

    Attributes:
        stopped: True if a game should end after its batch.
    """

    def __init__(self, progress: Callable[[int, int], None] | None = None) -> None:
        self.stopped = False
        self._progress = progress

    def interrupt(
        self, number: int = signal.SIGINT, frame: FrameType | None = None
    ) -> None:
        """Ask the game to end; the second time, raise ``KeyboardInterrupt``.

        The arguments are those of a signal handler, and are not used.
        """
        if self.stopped:
            raise KeyboardInterrupt
        self.stopped = True

    def progressed(self, done: int, of: int) -> bool:
        """Report ``done`` calls out of ``of``; return False to end the game."""
        if self._progress is not None:
            self._progress(done, of)
        return not self.stopped


_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


def going_on(done: int, of: int) -> bool:
    """Report ``done`` calls out of ``of`` to the watcher, if there is one.

    Returns:
        False to end the game. It is True without a watcher.
    """
    watcher = _watcher.get()
    return watcher is None or watcher.progressed(done, of)


def is_stopped() -> bool:
    """Return True if an interrupt or the time limit ends the game."""
    watcher = _watcher.get()
    return allowance().is_late or (watcher is not None and watcher.stopped)


@contextmanager
def watched(watcher: Watcher) -> Iterator[Watcher]:
    """Context in which games report to a watcher, which is its value.

    In the main thread, the watcher also receives interrupts (SIGINT).
    """
    token = _watcher.set(watcher)
    # Only the main thread receives signals.
    main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, watcher.interrupt) if main else None
    try:
        yield watcher
    finally:
        if main:
            signal.signal(
                signal.SIGINT, before if before is not None else signal.SIG_DFL
            )
        _watcher.reset(token)
