"""Pairs that nobody listed: a search for those that show most, and for the smallest that still shows a violation.

Both run on Hypothesis (`search.py`) over what the adjacency generates, and judge a pair by frozen randomness, so that a
pair has one value. That is no evidence: what they find is played, or confirmed, on randomness of its own.

Many pairs are looked at by eight calls each, or by four where calls are few: the corner cases of the adjacency, and pairs
that it generates. Those that differ most are looked at again by more calls, and the best of these by so many that forecasts
can be judged. Half of the calls go to the many, a quarter to each of the other rounds, as in successive halving:

    Jamieson & Talwalkar (2016), "Non-stochastic Best Arm Identification and Hyperparameter Optimization", AISTATS,
    arXiv:1502.07943v1.

Both inputs of a pair get the same randomness. Where noise is added to a query, each output then differs from its partner by
the change of the query, and few calls show a change that independent noise would hide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from auditdp.adjacency import Adjacency, Neighbours, Pair
from auditdp.adjacency.adjacency import offers
from auditdp.adjacency.pair_search import Drawn, changed, draws, key, smallest
from auditdp.adjacency.remote_adjacency import MOST_PROMISED, AdjacencyElsewhere
from auditdp.betting.forecasters.batches import Batch, Memory
from auditdp.betting.forecasters.estimators import ESTIMATORS
from auditdp.betting.forecasters.forecaster import Single
from auditdp.betting.forecasters.views import as_rows
from auditdp.betting.game import Game, is_stopped
from auditdp.betting.pairs.distances import Usual, distance, spread_of
from auditdp.errors import AdjacencyError
from auditdp.mechanism.calls.allowance import MAIN, allowance, allowing
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats
from auditdp.numerics.streams import Streams

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Result = TypeVar("Result")

SHARE, FEW_CALLS, SHARE_OF_FEW = 10, 1_024, 3
"""A tenth of a game's calls go into the search; but a third of them, or so many, where that is more."""
FEWEST_CALLS = 128
"""Calls that are worth a search."""
FIRST, AGAIN, JUDGED = 8, 32, 128
"""Calls of one pair in the three rounds, at least; where calls are few, half of that, and a quarter in the last."""
CORNERS = 2 / 3
"""Of the pairs that are looked at first, so many are corner cases, at most."""
LONGER = 4
"""Where there are more calls than pairs for them, a later round has up to so many times as many for each."""
LISTED, SAME = 4, 2
"""Listed pairs whose outputs show what is usual, and what is usual with the randomness of a round."""
MOST_CORNERS = 200
"""Corner cases that are looked at."""
MOST_GENERATED = 240
"""Generated pairs that are looked at."""
MOST_CHANGED = 8
"""Best pairs of which further ones are made."""
MOST_AGAIN = 64
"""Pairs in the second round."""
MOST_JUDGED = 16
"""Pairs in the third round."""
MOST_PROPOSED = 4
"""Pairs that are added to a game: each has its share of the calls."""
BETTER, CLEARLY = 1.05, 1.25
"""A found pair is worth its calls if it shows so many times what listed ones show that differ in the same column, or what
all show: between columns, deviations are known to some tenth."""
CAUTIOUS = [
    k for k, estimator in enumerate(ESTIMATORS) if estimator.name.endswith("cautious")
]
"""Estimators whose odds are not far from 0 by chance."""
FEWEST_EXAMPLES = 8
"""Smaller pairs that have to be affordable, or none is looked for."""
SHRINK_EXAMPLES = 30
"""Smaller pairs that are tried."""
SHRINK_FACTOR = 3
"""Calls of a smaller pair, relative to those that the found one needed."""
FEWEST_TO_SHRINK = 128
"""Calls that a smaller pair has to refute the claim, at least."""


def can_search(adjacency: Adjacency) -> bool:
    """Return whether the adjacency generates pairs that it does not list."""
    if isinstance(adjacency, AdjacencyElsewhere):
        return adjacency.can_search()
    if (isinstance(adjacency, Neighbours) and adjacency.search is None) or offers(
        adjacency
    ).generated is None:
        return False
    every = adjacency.exhaustive()
    return every is None or len(every) > len(adjacency.pairs())


def search_calls(calls: int) -> int:
    """Return how many calls of a game go into the search for pairs.

    >>> [search_calls(calls) for calls in (1_000, 2_000, 5_000, 50_000)]
    [333, 666, 1024, 5000]
    """
    return max(calls // SHARE, min(calls // SHARE_OF_FEW, FEW_CALLS))


def attempted(look: Callable[[], Result]) -> Result | None:
    """Return what a look at a candidate gives: the one gate for pairs that nobody listed.

    Code of a user may raise anything on an input that nobody thought of. What cannot be made, checked or played is no
    candidate, and ends neither a search nor a finding.
    """
    with suppress(Exception, SystemExit):
        return look()
    return None


def is_adjacent(adjacency: Adjacency, pair: Pair) -> bool:
    """Return whether a candidate is a pair of neighbours."""
    with suppress(Exception, SystemExit):
        adjacency.check(pair)
        return True
    return False


def propose(game: Game, adjacency: Adjacency, calls: int) -> None:
    """Add the pairs whose outputs tell the inputs apart best to a game, with so many calls.

    A pair has two scores: how far apart its outputs are (`distances.py`), and the largest privacy loss that its law shows on
    them or, without a law, that the counts of half of them leave plausible. The best by either go on, by turns. Listed
    pairs take part: of those found, only they are added that show more than these do, or the best one if none does, and
    none that shows just what another one shows, since every pair that is played has its share of the calls.
    """
    if calls < FEWEST_CALLS:
        return
    if isinstance(adjacency, AdjacencyElsewhere):
        played = [table.pair for table in game.tables]
        proposed, game.looked_at = adjacency.proposed(
            game.calls, played, calls, first=len(game.pairs)
        )
        for pair, promise in proposed:
            game.add(pair, promise=promise)
        return
    few = 2 if calls < FEW_CALLS else 1
    search = _Search(game, adjacency, calls)
    found = search.first_round(calls // 2, each=FIRST // few)
    found = search.again(found[:MOST_AGAIN], calls // 4, least=AGAIN // few)
    found = search.again(
        found[:MOST_JUDGED],
        calls - search.spent,
        least=JUDGED // few**2,
        judged=few == 1,
    )
    for pair, promise in search.worth(found)[:MOST_PROPOSED]:
        game.add(replace(pair, name=pair.name or "found"), promise=promise)


@dataclass(frozen=True, eq=False)
class _Scored:
    """A pair with both of its scores and the column that differs most; the loss is 0 where nobody looked."""

    pair: Pair
    far: float
    where: int
    loss: float = 0.0

    def exceeds(self, others: Sequence[_Scored]) -> bool:
        """Return whether a score is more than those of others are, clearly so if they differ in other columns."""
        alike = [other for other in others if other.where == self.where]
        times, others = (BETTER, alike) if alike else (CLEARLY, others)
        return self.far > times * max((other.far for other in others), default=0.0) or (
            self.loss > times * max((other.loss for other in others), default=0.0)
        )

    @property
    def total(self) -> float:
        """What a climb makes large: the loss where a law tells it."""
        return self.loss or self.far


class _Search:
    """Looks at pairs by a few calls each, and counts these calls."""

    def __init__(self, game: Game, adjacency: Adjacency, calls: int) -> None:
        self.game, self.adjacency = game, adjacency
        self.seed = int(game.streams("proposals", 0).integers(2**32))
        self.spent = 0
        self.listed = [table.pair for table in game.tables[:SAME]]
        listed = [game.tables[k % len(game.tables)].pair for k in range(LISTED)]
        some = [
            self._sides(pair, min(2 * AGAIN, calls // 16 // LISTED), k + 1)
            for k, pair in enumerate(listed)
        ]
        self.usual = Usual.of([as_rows(side) for side in chain.from_iterable(some)])
        first = game.tables[0].players[0]
        self.knows_law = isinstance(first, Single) and getattr(
            first.forecaster, "calibrated", False
        )

    def first_round(self, calls: int, *, each: int) -> list[_Scored]:
        """Look at corner cases and at generated pairs, and return those that differ, the best first."""
        corners = offers(self.adjacency).corner_cases or []
        listed = [table.pair for table in self.game.tables]
        seen: dict[Any, _Scored] = {}
        spread = spread_of(
            [
                as_rows(side)
                for pair in listed[:SAME]
                for side in self._sides(pair, each)
            ]
        )

        def total(pair: Pair) -> float:
            if (name := key(pair)) not in seen:
                self.adjacency.check(pair)
                scored = self._scored(pair, self._sides(pair, each), spread)
                seen[name] = seen[key(pair.swapped())] = scored
            return seen[name].total

        affordable = (calls - self.spent) // each - len(listed)
        for pair in [
            *listed,
            *corners[: max(min(MOST_CORNERS, int(CORNERS * affordable)), 0)],
        ]:
            attempted(partial(total, pair))
        self._generate(total, min(max(calls - self.spent, 0) // each, MOST_GENERATED))
        self.listed = sorted(listed, key=lambda pair: -total(pair))[:SAME]
        found = [scored for name, scored in seen.items() if name == key(scored.pair)]
        self.game.looked_at = len(found)
        return _by_turns(found)

    def _generate(self, total: Callable[[Pair], float], most: int) -> None:
        """Score so many generated pairs, two thirds of them drawn independently and the others made of the best of these.

        Raises:
            AdjacencyError: The first that was raised, if no pair could be scored.
        """
        strategy = generated(self.adjacency)
        scored: list[tuple[float, Drawn[Pair]]] = []
        refused: list[AdjacencyError] = []

        def score(drawn: Drawn[Pair] | None) -> None:
            try:
                if drawn is not None:
                    scored.append((total(drawn.value), drawn))
            except AdjacencyError as error:
                refused.append(error)

        def score_change(parent: Drawn[Pair], seed: int) -> None:
            score(changed(strategy, parent, seed=seed))

        for drawn in islice(draws(strategy, seed=self.seed), most * 2 // 3):
            attempted(partial(score, drawn))
        for k in range(most - most * 2 // 3):
            best = sorted(scored, key=lambda entry: -entry[0])[:MOST_CHANGED]
            if best:
                parent = best[k % len(best)][1]
                seed = self.seed + k
                attempted(partial(score_change, parent, seed))
        if refused and not scored:
            raise refused[0]

    def again(
        self, before: Sequence[_Scored], calls: int, *, least: int, judged: bool = False
    ) -> list[_Scored]:
        """Look at pairs by more calls, and return those that differ, the best first; forecasts may be judged as well.

        Args:
            before: The pairs, the best first.
            calls: Calls for all of them.
            least: Calls of each, at least: no more pairs are looked at than that leaves.
            judged: Whether to judge forecasts.
        """
        if (most := min(calls // least - SAME, len(before))) < 1:
            return list(before)
        each = min(calls // (most + SAME), LONGER * least)
        listed = [(pair, self._sides(pair, each)) for pair in self.listed]
        spread = spread_of([as_rows(side) for _, sides in listed for side in sides])
        found = [
            self._scored(pair, sides, spread, judged=judged) for pair, sides in listed
        ]
        known = {id(pair) for pair in self.listed}
        for pair in (
            scored.pair for scored in before[:most] if id(scored.pair) not in known
        ):
            sides = attempted(partial(self._sides, pair, each))
            if sides is None:
                continue
            scored = attempted(
                partial(self._scored, pair, sides, spread, judged=judged)
            )
            found += [] if scored is None else [scored]
        return _by_turns(found)

    def worth(self, found: Sequence[_Scored]) -> list[tuple[Pair, float]]:
        """Return the pairs that are worth playing beside the listed ones, the best first, with what they promise."""
        known = {
            key(pair)
            for table in self.game.tables
            for pair in (table.pair, table.pair.swapped())
        }
        listed = [scored for scored in found if key(scored.pair) in known]
        others = [scored for scored in found if key(scored.pair) not in known]
        better = [scored for scored in others if scored.exceeds(listed)]
        alike = {
            (scored.where, f"{scored.far:.2g} {scored.loss:.2g}"): scored
            for scored in reversed(better)
        }
        most = max((scored.far for scored in listed), default=0.0)
        return [
            (
                scored.pair,
                min(max((scored.far / most) ** 2, 1.0), MOST_PROMISED)
                if 0 < most < np.inf
                else MOST_PROMISED,
            )
            for scored in list(reversed(alike.values())) or others[:1]
        ]

    def _scored(
        self,
        pair: Pair,
        sides: tuple[Array, Array],
        spread: Floats,
        *,
        judged: bool = False,
    ) -> _Scored:
        ones, zeros = (as_rows(side) for side in sides)
        far, where = distance(ones, zeros, self.usual, spread)
        return _Scored(
            pair,
            far,
            where,
            self._loss(pair, *sides) if judged or self.knows_law else 0.0,
        )

    def _sides(self, pair: Pair, calls: int, stream: int = 0) -> tuple[Array, Array]:
        """Return half of the outputs of the data and half of the neighbour, with the same randomness."""
        seed = [self.seed, calls, stream]
        self.spent += 2 * (calls // 2)
        ones, zeros = (
            self.game.calls(data, calls // 2, np.random.default_rng(seed))
            for data in (pair.data, pair.neighbour)
        )
        return ones, zeros

    def _loss(self, pair: Pair, ones: Array, zeros: Array) -> float:
        """Return how far apart outputs look to a forecaster that has learned from half of them, in nats of log-odds."""
        first, memory, half = (
            self.game.seat(pair, self.game.forecasters[:1]).players[0],
            Memory(),
            0 if self.knows_law else len(ones) // 2,
        )
        if half:
            memory.add(ones[:half], zeros[:half])
            first.learn(memory, stalled=True)
        forecasts = first.forecast(
            Batch(ones[half:], zeros[half:], np.random.default_rng(self.seed))
        )
        if isinstance(first, Single):
            return float(np.max(np.abs(forecasts[0].log_odds), initial=0.0))
        cautious = [f.log_odds[:, (f.ones + f.zeros) > 0] for f in forecasts]
        return float(
            max(np.max(np.abs(odds[CAUTIOUS]), initial=0.0) for odds in cautious)
        )


def _by_turns(found: Sequence[_Scored]) -> list[_Scored]:
    """Return the pairs that differ: by turns the best of every column, those with the largest loss, and the farthest.

    What differs in one column is often of one kind, and the deviation of one column may be taken for too small.
    """
    by_far = sorted(
        (s for s in found if s.far > 0 or s.loss > 0), key=lambda scored: -scored.far
    )
    place = Counter[int]()
    rank: dict[int, int] = {}
    for scored in by_far:
        rank[id(scored)] = place[scored.where]
        place[scored.where] += 1
    ranks = [sorted(by_far, key=lambda scored: rank[id(scored)]), by_far]
    if any(scored.loss for scored in by_far):
        ranks.insert(1, sorted(by_far, key=lambda scored: -scored.loss))
    return list(
        {
            id(scored): scored
            for scored in chain.from_iterable(zip(*ranks, strict=True))
        }.values()
    )


def generated(adjacency: Adjacency) -> SearchStrategy[Pair]:
    """Return what an adjacency generates; where it lists corner cases, also pairs that are like them."""
    offered = offers(adjacency)
    assert offered.generated is not None  # else nothing is searched
    wide = offered.wide if offered.lists_corner_cases else None
    return offered.generated if wide is None else offered.generated | wide


def smaller(game: Game, adjacency: Adjacency, alpha: float) -> Game | None:
    """Look for the smallest pair that refutes the claim as the best pair did, with the runs and the time that are allowed.

    Where neighbours are made in another process, the look is there, and the game on what it found is played again here.

    Returns:
        A game on that pair that refuted the claim, to be confirmed; None if there was no other, or too little is allowed.
    """
    seed = int(game.streams("smaller pairs", 0).integers(2**32))
    needed = max(game.refuted_at or game.wealth.calls, FEWEST_TO_SHRINK)
    budget = SHRINK_FACTOR * needed
    if allowance().left < FEWEST_EXAMPLES * needed:
        return None
    best = game.best.pair
    if isinstance(adjacency, AdjacencyElsewhere):
        with allowing(allowance().left - budget, share=MAIN):
            pair = adjacency.smaller(
                game.calls, best, game.refuted_at or game.wealth.calls, alpha
            )
        if pair is None:
            return None
        again = _attempt(game, pair, seed)
        again.play(budget, alpha=alpha, stop_when_refuted=True)
        return again if again.refuted_at is not None else None
    played: list[Game] = []

    def refutes(pair: Pair) -> bool:
        adjacency.check(pair)
        attempt = _attempt(game, pair, seed)
        for most in (needed, budget):
            if attempt.wealth.log_wealth >= 0:
                attempt.play(most, alpha=alpha, stop_when_refuted=True)
        if attempt.refuted_at is not None:
            played.append(attempt)
        return attempt.refuted_at is not None

    def holds(pair: Pair) -> bool:
        return (
            not is_stopped()
            and allowance().left > 0
            and bool(attempted(partial(refutes, pair)))
        )

    short = min([best, *adjacency.pairs()], key=lambda pair: len(str(pair)))
    start = short if short is not best and holds(short) else best
    attempted(
        lambda: smallest(
            generated(adjacency),
            holds,
            examples=SHRINK_EXAMPLES,
            seed=seed,
            start=start,
        )
    )
    found = min(
        reversed(played), key=lambda attempt: len(str(attempt.best.pair)), default=None
    )
    return None if found is None or key(found.best.pair) == key(best) else found


def _attempt(game: Game, pair: Pair, seed: int) -> Game:
    """Return a game on one pair alone, whose randomness is the same for all pairs."""
    return Game(game.calls.anew(), game.claim, [pair], game.forecasters, _frozen(seed))


def _frozen(seed: int) -> Streams:
    """Return streams that depend on nothing but the batch."""
    return lambda purpose, batch: np.random.default_rng([seed, batch])
