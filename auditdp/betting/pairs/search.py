"""Searches by calls of a game: for pairs to play, and for a smaller one that suffices.

Both run on Hypothesis over the pairs that an adjacency generates, and judge a pair by
frozen randomness, so that the judgement is a function of the pair. It is no evidence:
the result is played, or confirmed, on randomness of its own.

Many pairs are compared by eight calls each, or by four if calls are few: the corner
cases of the adjacency, and generated pairs. Those that differ most are compared again
by more calls, and the best of these by enough to estimate their distance. Half of the
calls go to the first round, a quarter to each of the others, as in successive halving:

    Jamieson & Talwalkar (2016), "Non-stochastic Best Arm Identification and
    Hyperparameter Optimization", AISTATS, arXiv:1502.07943v1.

Both inputs of a pair get the same randomness. Where noise is added to a query, each
output then differs from its partner by the change of the query, and few calls show a
change that independent noise would hide.
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
from auditdp.adjacency.pair_search import draws, key, smallest
from auditdp.adjacency.remote_adjacency import MOST_PROMISED, AdjacencyElsewhere
from auditdp.betting.forecasters.views import as_rows
from auditdp.betting.game import Game, is_stopped
from auditdp.betting.pairs.distances import Usual, distance, spread_of
from auditdp.errors import AdjacencyError
from auditdp.mechanism.calls.allowance import MAIN, allowance, allowing
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Result = TypeVar("Result")

FEWEST_CALLS = 128
"""Calls below which no pairs are searched."""
FEW_CALLS = 1_024
"""Calls of a search below which a pair gets half of the calls in each round."""
MOST_PROPOSED = 4
"""Pairs that are added to a game: each gets a share of the calls."""
REFERENCE_PAIRS = 2
"""Listed pairs whose outputs show the usual deviation with a round's randomness."""


@dataclass(frozen=True)
class SearchSizes:
    """Numbers of calls and pairs of a search; each bounds its time.

    Attributes:
        first: Calls of a pair in the first round.
        second: Calls of a pair in the second round, at least.
        third: Calls of a pair in the third round, at least.
        stretch: Factor by which a later round may have more calls for each pair.
        corners: Corner cases in the first round.
        corner_share: Largest share of corner cases in the first round.
        generated: Generated pairs in the first round.
        second_pairs: Pairs in the second round.
        third_pairs: Pairs in the third round.
        smaller_pairs: Smaller pairs that are tried after a finding.
        smaller_factor: Calls of a smaller pair, as a multiple of those needed before.
    """

    first: int = 8
    second: int = 32
    third: int = 128
    stretch: int = 4
    corners: int = 200
    corner_share: float = 2 / 3
    generated: int = 240
    second_pairs: int = 64
    third_pairs: int = 16
    smaller_pairs: int = 30
    smaller_factor: int = 3


SIZES = SearchSizes()


def can_search(adjacency: Adjacency) -> bool:
    """True if the adjacency generates pairs that it does not list."""
    if isinstance(adjacency, AdjacencyElsewhere):
        return adjacency.can_search()
    if isinstance(adjacency, Neighbours) and adjacency.search is None:
        return False
    if offers(adjacency).generated is None:
        return False
    every = adjacency.exhaustive()
    return every is None or len(every) > len(adjacency.pairs())


def search_calls(calls: int) -> int:
    """Return the calls of a game that go into the search for pairs.

    >>> [search_calls(calls) for calls in (1_000, 2_000, 5_000, 50_000)]
    [333, 666, 1024, 5000]
    """
    return max(calls // 10, min(calls // 3, FEW_CALLS))


def attempted(compute: Callable[[], Result]) -> Result | None:
    """Return the result for a candidate, or None if it cannot be made or played.

    This is the one gate for pairs that nobody listed: code of a user may raise anything
    on an unforeseen input, and that ends neither a search nor a finding.
    """
    with suppress(Exception, SystemExit):
        return compute()
    return None


def is_adjacent(adjacency: Adjacency, pair: Pair) -> bool:
    """True if a candidate is a pair of neighbours."""
    with suppress(Exception, SystemExit):
        adjacency.check(pair)
        return True
    return False


def propose(game: Game, adjacency: Adjacency, calls: int) -> None:
    """Add the pairs with the most distant outputs to a game, by ``calls`` calls.

    Listed pairs take part. Only pairs with a larger distance are added, or the best one
    if there is none, and no pair that shows the same as another one, since every pair
    gets a share of the calls.
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
    divisor = 1 + (calls < FEW_CALLS)
    search = _Search(game, adjacency, calls)
    found = search.first_round(calls // 2, each=SIZES.first // divisor)
    least = SIZES.second // divisor
    found = search.repeated(found[: SIZES.second_pairs], calls // 4, least=least)
    # The best of many distances is too large by chance: a third round corrects it.
    left, least = calls - search.spent, SIZES.third // divisor**2
    found = search.repeated(found[: SIZES.third_pairs], left, least=least)
    for pair, promise in search.better_than_listed(found)[:MOST_PROPOSED]:
        game.add(replace(pair, name=pair.name or "found"), promise=promise)


@dataclass(frozen=True, eq=False)
class _Scored:
    """A pair with the distance of its outputs and the column that differs most."""

    pair: Pair
    distance: float
    column: int


class _Search:
    """Compares pairs by a few calls each, and counts these calls."""

    def __init__(self, game: Game, adjacency: Adjacency, calls: int) -> None:
        self.game, self.adjacency = game, adjacency
        self.seed = int(game.streams("proposals", 0).integers(2**32))
        self.spent = 0
        self.listed = [table.pair for table in game.tables[:REFERENCE_PAIRS]]
        # Four listed pairs, or one of them again with other randomness.
        usual: list[Array] = []
        each = min(2 * SIZES.second, calls // 64)
        for k in range(4):
            pair = game.tables[k % len(game.tables)].pair
            usual += self._outputs(pair, each, k + 1)
        self.usual = Usual.of(usual)

    def first_round(self, calls: int, *, each: int) -> list[_Scored]:
        """Compare corner cases and generated pairs, and return those that differ."""
        corners = offers(self.adjacency).corner_cases or []
        listed = [table.pair for table in self.game.tables]
        scores: dict[Any, _Scored] = {}
        references = listed[:REFERENCE_PAIRS]
        spread = spread_of(
            [rows for pair in references for rows in self._outputs(pair, each)]
        )

        def score(pair: Pair) -> float:
            name = key(pair)
            if name not in scores:
                self.adjacency.check(pair)
                scored = self._scored(pair, self._outputs(pair, each), spread)
                scores[name] = scores[key(pair.swapped())] = scored
            return scores[name].distance

        affordable = (calls - self.spent) // each - len(listed)
        most = min(SIZES.corners, int(SIZES.corner_share * affordable))
        for pair in [*listed, *corners[: max(most, 0)]]:
            attempted(partial(score, pair))
        left = max(calls - self.spent, 0) // each
        self._generate(score, min(left, SIZES.generated))
        self.listed = sorted(listed, key=lambda pair: -score(pair))[:REFERENCE_PAIRS]
        found = [each for name, each in scores.items() if name == key(each.pair)]
        self.game.looked_at = len(found)
        return _by_turns(found)

    def _generate(self, score: Callable[[Pair], float], most: int) -> None:
        """Score pairs that are drawn independently.

        Raises:
            AdjacencyError: The first that was raised, if no pair could be scored.
        """
        refused: list[AdjacencyError] = []
        scores: list[float] = []

        def add(pair: Pair) -> None:
            try:
                scores.append(score(pair))
            except AdjacencyError as error:
                refused.append(error)

        for drawn in islice(draws(generated(self.adjacency), seed=self.seed), most):
            attempted(partial(add, drawn.value))
        if refused and not scores:
            raise refused[0]

    def repeated(
        self, before: Sequence[_Scored], calls: int, *, least: int
    ) -> list[_Scored]:
        """Compare pairs by more calls, and return those that differ, the best first.

        Args:
            before: The pairs, the best first.
            calls: Calls for all of them.
            least: Calls of each, at least; this bounds the number of pairs.
        """
        most = min(calls // least - REFERENCE_PAIRS, len(before))
        if most < 1:
            return list(before)
        each = min(calls // (most + REFERENCE_PAIRS), SIZES.stretch * least)
        listed = [(pair, self._outputs(pair, each)) for pair in self.listed]
        spread = spread_of([rows for _, sides in listed for rows in sides])
        found = [self._scored(pair, sides, spread) for pair, sides in listed]
        names = {id(pair) for pair in self.listed}

        def scored(pair: Pair) -> _Scored:
            return self._scored(pair, self._outputs(pair, each), spread)

        for candidate in before[:most]:
            if id(candidate.pair) not in names:
                again = attempted(partial(scored, candidate.pair))
                if again is not None:
                    found.append(again)
        return _by_turns(found)

    def better_than_listed(self, found: Sequence[_Scored]) -> list[tuple[Pair, float]]:
        """Return the pairs to play beside the listed ones, with their expected gain."""
        names = set()
        for table in self.game.tables:
            names |= {key(table.pair), key(table.pair.swapped())}
        listed = [scored for scored in found if key(scored.pair) in names]
        others = [scored for scored in found if key(scored.pair) not in names]
        most = max((scored.distance for scored in listed), default=0.0)
        distinct: dict[Any, _Scored] = {}
        for scored in others:
            # Deviations of different columns have errors of a tenth of their own.
            same = [x.distance for x in listed if x.column == scored.column]
            least = 1.25 * most
            if same:
                least = 1.05 * max(same)
            if scored.distance > least:
                name = (scored.column, f"{scored.distance:.2g}")
                distinct.setdefault(name, scored)
        proposed = []
        for scored in list(distinct.values()) or others[:1]:
            promise = MOST_PROMISED
            if 0 < most < np.inf:
                ratio = (scored.distance / most) ** 2
                promise = min(max(ratio, 1.0), MOST_PROMISED)
            proposed.append((scored.pair, promise))
        return proposed

    def _scored(self, pair: Pair, sides: Sequence[Array], spread: Floats) -> _Scored:
        ones, zeros = sides
        return _Scored(pair, *distance(ones, zeros, self.usual, spread))

    def _outputs(self, pair: Pair, calls: int, stream: int = 0) -> list[Array]:
        """Return rows of both inputs, half of the calls each, with equal randomness."""
        seed = [self.seed, calls, stream]
        self.spent += 2 * (calls // 2)
        sides = []
        for data in (pair.data, pair.neighbour):
            rng = np.random.default_rng(seed)
            sides.append(as_rows(self.game.calls(data, calls // 2, rng)))
        return sides


def _by_turns(found: Sequence[_Scored]) -> list[_Scored]:
    """Return the pairs that differ, the best of a column and the farthest by turns.

    Pairs that differ in one column are often of one kind, and the deviation of one
    column may be estimated too small.
    """
    differing = [scored for scored in found if scored.distance > 0]
    farthest = sorted(differing, key=lambda scored: -scored.distance)
    place = Counter[int]()
    rank: dict[int, int] = {}
    for scored in farthest:
        rank[id(scored)] = place[scored.column]
        place[scored.column] += 1
    by_column = sorted(farthest, key=lambda scored: rank[id(scored)])
    turns = chain.from_iterable(zip(by_column, farthest, strict=True))
    return list({id(scored): scored for scored in turns}.values())


def generated(adjacency: Adjacency) -> SearchStrategy[Pair]:
    """Return the strategy of an adjacency, with pairs near its corner cases."""
    offered = offers(adjacency)
    # Callers search only if there is a strategy.
    assert offered.generated is not None
    if offered.wide is None or not offered.lists_corner_cases:
        return offered.generated
    return offered.generated | offered.wide


def smaller(game: Game, adjacency: Adjacency, alpha: float) -> Game | None:
    """Search the smallest pair that refutes the claim, as the best pair of a game did.

    Where neighbours are made in another process, the search is there, and the game on
    its result is played again here.

    Returns:
        A game on that pair that refuted the claim, to be confirmed; None if there is no
        other pair, or the allowance of runs is too small.
    """
    seed = int(game.streams("smaller pairs", 0).integers(2**32))
    needed = max(game.refuted_at or game.wealth.calls, 128)
    budget = SIZES.smaller_factor * needed
    # A search of fewer than eight pairs rarely comes to a smaller one.
    if allowance().left < 8 * needed:
        return None
    best = game.best.pair
    if isinstance(adjacency, AdjacencyElsewhere):
        with allowing(allowance().left - budget, share=MAIN):
            pair = adjacency.smaller(
                game.calls, best, game.refuted_at or game.wealth.calls, alpha
            )
        if pair is None:
            return None
        again = _frozen_game(game, pair, seed)
        again.play(budget, alpha=alpha, stop_when_refuted=True)
        if again.refuted_at is None:
            return None
        return again
    played: list[Game] = []

    def refutes(pair: Pair) -> bool:
        adjacency.check(pair)
        attempt = _frozen_game(game, pair, seed)
        for most in (needed, budget):
            if attempt.wealth.log_wealth >= 0:
                attempt.play(most, alpha=alpha, stop_when_refuted=True)
        if attempt.refuted_at is not None:
            played.append(attempt)
        return attempt.refuted_at is not None

    def holds(pair: Pair) -> bool:
        if is_stopped() or allowance().left <= 0:
            return False
        return bool(attempted(partial(refutes, pair)))

    short = min([best, *adjacency.pairs()], key=lambda pair: len(str(pair)))
    start = best
    if short is not best and holds(short):
        start = short
    attempted(
        lambda: smallest(
            generated(adjacency),
            holds,
            examples=SIZES.smaller_pairs,
            seed=seed,
            start=start,
        )
    )
    # Of equally short pairs the last one was the simplest for Hypothesis.
    found = min(
        reversed(played), key=lambda attempt: len(str(attempt.best.pair)), default=None
    )
    if found is None or key(found.best.pair) == key(best):
        return None
    return found


def _frozen_game(game: Game, pair: Pair, seed: int) -> Game:
    """Return a game on one pair, whose randomness is the same for all pairs."""

    def streams(purpose: str, batch: int) -> np.random.Generator:
        return np.random.default_rng([seed, batch])

    return Game(game.calls.anew(), game.claim, [pair], game.forecasters, streams)
