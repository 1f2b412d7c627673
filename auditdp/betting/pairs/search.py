"""Searches by calls of the mechanism: for pairs to play, and for a smaller pair.

`propose` adds pairs to a game, and `smaller` looks for a smaller pair that also refutes
the claim. Hypothesis generates their pairs by the strategy of an adjacency. A pair is
judged with fixed seeds, so the judgement is a function of the pair. It is no evidence:
the game plays the result, or confirms it, on randomness of its own.

`propose` has three rounds. In the first, corner cases of the adjacency and generated
pairs are compared by eight calls each, or by four in a short search. The pairs that
differ most are compared again by more calls, and the best of them by enough calls to
estimate their distance. The first round gets half of the calls and the others a quarter
each, as in successive halving:

    Jamieson & Talwalkar (2016), "Non-stochastic Best Arm Identification and
    Hyperparameter Optimization", AISTATS, arXiv:1502.07943v1.

Both inputs of a pair get the same randomness. If noise is added to a query, each output
then differs from its partner by the change of the query. So a few calls reveal a change
that would be hidden by independent noise.
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
"""Smallest number of calls of a search; with fewer calls there is none."""
FEW_CALLS = 1_024
"""Number of calls of a search below which a pair gets fewer calls in each round."""
MOST_PROPOSED = 4
"""Largest number of pairs that are added to a game: each gets a share of the calls."""
REFERENCE_PAIRS = 2
"""Number of listed pairs whose outputs give the usual deviations of a round."""


@dataclass(frozen=True)
class SearchSizes:
    """Numbers of calls and pairs of a search, which limit its time.

    The numbers of pairs are upper limits.

    Attributes:
        first: Calls of a pair in the first round.
        second: Smallest number of calls of a pair in the second round.
        third: Smallest number of calls of a pair in the third round.
        stretch: Largest number of calls of a pair in a later round, as a multiple of
            the smallest number.
        corners: Corner cases in the first round.
        corner_share: Largest share of corner cases among the pairs of the first round.
        generated: Generated pairs in the first round.
        second_pairs: Pairs in the second round.
        third_pairs: Pairs in the third round.
        smaller_pairs: Smaller pairs that are tried after a finding.
        smaller_factor: Largest number of calls of a smaller pair, as a multiple of the
            calls of the finding.
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
    """Return True if the adjacency generates pairs that it does not list."""
    if isinstance(adjacency, AdjacencyElsewhere):
        return adjacency.can_search()
    if isinstance(adjacency, Neighbours) and adjacency.search is None:
        return False
    if offers(adjacency).generated is None:
        return False
    every = adjacency.exhaustive()
    return every is None or len(every) > len(adjacency.pairs())


def search_calls(calls: int) -> int:
    """Return the number of a game's calls that are for the search for pairs.

    It is a tenth of them; in short games it is a third, but at most 1,024.

    >>> [search_calls(calls) for calls in (1_000, 2_000, 5_000, 50_000)]
    [333, 666, 1024, 5000]
    """
    return max(calls // 10, min(calls // 3, FEW_CALLS))


def attempted(compute: Callable[[], Result]) -> Result | None:
    """Return the result of a function, or None if it raises an error.

    Every use of an unlisted pair goes through this function. The user's code may raise
    any error on an unforeseen input, which must end neither a search nor a finding.
    """
    with suppress(Exception, SystemExit):
        return compute()
    return None


def is_adjacent(adjacency: Adjacency, pair: Pair) -> bool:
    """Return True if a pair is adjacent; False also if its check raises any error."""
    with suppress(Exception, SystemExit):
        adjacency.check(pair)
        return True
    return False


def propose(game: Game, adjacency: Adjacency, calls: int) -> None:
    """Search for pairs with distant outputs, and add them to a game.

    At most four pairs are added. Their outputs are more distant than those of the
    listed pairs; if there is no such pair, the best other pair is added. If several
    pairs differ most in the same column, by the same distance, only the first is added,
    since every pair gets a share of the calls.

    Args:
        game: The game; its ``looked_at`` becomes the number of compared pairs.
        adjacency: The source of the pairs, for which ``can_search`` is True.
        calls: Number of calls of the search; with fewer than 128 there is none.

    Raises:
        AdjacencyError: If the adjacency refuses every pair that it generates.
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
    """A pair with the distance of its outputs, and the column that differs most."""

    pair: Pair
    distance: float
    column: int


class _Search:
    """The comparison of pairs by a few calls each.

    Args:
        game: The game, for its calls and its listed pairs.
        adjacency: The source of other pairs.
        calls: Number of calls of the search.

    Attributes:
        spent: Number of calls so far.
        listed: The listed pairs that give the usual deviations of a round.
    """

    def __init__(self, game: Game, adjacency: Adjacency, calls: int) -> None:
        self.game, self.adjacency = game, adjacency
        self.seed = int(game.streams("proposals", 0).integers(2**32))
        self.spent = 0
        self.listed = [table.pair for table in game.tables[:REFERENCE_PAIRS]]
        # Outputs of four listed pairs; if there are fewer, with other randomness.
        usual: list[Array] = []
        each = min(2 * SIZES.second, calls // 64)
        for k in range(4):
            pair = game.tables[k % len(game.tables)].pair
            usual += self._outputs(pair, each, k + 1)
        self.usual = Usual.of(usual)

    def first_round(self, calls: int, *, each: int) -> list[_Scored]:
        """Compare listed pairs, corner cases and generated pairs.

        Args:
            calls: Number of calls of the round.
            each: Number of calls of each pair, on both inputs together.

        Returns:
            The pairs that differ, in the order of ``_by_turns``.
        """
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
                # A pair is stored for both orders of its inputs, and measured in one.
                scores[name] = scores[key(pair.swapped())] = scored
            return scores[name].distance

        affordable = (calls - self.spent) // each - len(listed)
        most = min(SIZES.corners, int(SIZES.corner_share * affordable))
        for pair in [*listed, *corners[: max(most, 0)]]:
            attempted(partial(score, pair))
        left = max(calls - self.spent, 0) // each
        self._generate(score, min(left, SIZES.generated))
        self.listed = sorted(listed, key=lambda pair: -score(pair))[:REFERENCE_PAIRS]
        # Each pair has two keys, of which one counts.
        found = [each for name, each in scores.items() if name == key(each.pair)]
        self.game.looked_at = len(found)
        return _by_turns(found)

    def _generate(self, score: Callable[[Pair], float], most: int) -> None:
        """Score at most ``most`` pairs that are drawn independently.

        Raises:
            AdjacencyError: If every drawn pair was refused; it is the first error.
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
        """Compare pairs again by more calls, together with two listed pairs.

        Args:
            before: The pairs, the best first.
            calls: Number of calls for all pairs.
            least: Smallest number of calls of a pair. The pairs at the end for which
                this leaves no calls are dropped.

        Returns:
            The pairs that differ, in the order of ``_by_turns``; ``before`` if there
            are too few calls for one pair.
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
        """Return the pairs to play beside the listed ones, each with its promise.

        They are in the order of ``found``. If none is better than the listed pairs, the
        first other pair is returned, if there is one. The promise is the expected gain
        of a call, relative to that of the best listed pair, from 1 to 16.
        """
        names = set()
        for table in self.game.tables:
            names |= {key(table.pair), key(table.pair.swapped())}
        listed = [scored for scored in found if key(scored.pair) in names]
        others = [scored for scored in found if key(scored.pair) not in names]
        most = max((scored.distance for scored in listed), default=0.0)
        distinct: dict[Any, _Scored] = {}
        for scored in others:
            # The deviations of different columns have independent errors of a tenth.
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
        """Return outputs of both inputs as rows, by half of the calls each.

        Both inputs get the same randomness, which depends on ``calls`` and ``stream``.
        """
        seed = [self.seed, calls, stream]
        self.spent += 2 * (calls // 2)
        sides = []
        for data in (pair.data, pair.neighbour):
            rng = np.random.default_rng(seed)
            sides.append(as_rows(self.game.calls(data, calls // 2, rng)))
        return sides


def _by_turns(found: Sequence[_Scored]) -> list[_Scored]:
    """Return the pairs with a distance above 0, each once, by turns from two lists.

    The first list has the best pair of each column, then the second best pairs, and so
    on. The second list has all pairs, the largest distance first. Pairs that differ in
    the same column are often of one kind, and the deviation of a column may be
    underestimated.
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
    """Return the Hypothesis strategy of the pairs of an adjacency.

    The adjacency must have one. It is mixed with the ``wide`` strategy if the adjacency
    lists corner cases and has such a strategy.
    """
    offered = offers(adjacency)
    # Callers search only if there is a strategy.
    assert offered.generated is not None
    if offered.wide is None or not offered.lists_corner_cases:
        return offered.generated
    return offered.generated | offered.wide


def smaller(game: Game, adjacency: Adjacency, alpha: float) -> Game | None:
    """Search for the smallest pair, by the length of its text, that refutes the claim.

    If another process generates the pairs, the search runs there, and the game on the
    resulting pair is played again in this process.

    Args:
        game: A game that has refuted the claim on its best pair.
        adjacency: The source of the pairs.
        alpha: The level of the test.

    Returns:
        A game that refutes the claim on the smallest pair that was found, to be
        confirmed. None if no other pair refutes it, or if the allowance of runs is too
        small for a search.
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
    # Of equally short pairs, the last is the simplest by Hypothesis' order.
    found = min(
        reversed(played), key=lambda attempt: len(str(attempt.best.pair)), default=None
    )
    if found is None or key(found.best.pair) == key(best):
        return None
    return found


def _frozen_game(game: Game, pair: Pair, seed: int) -> Game:
    """Return a game on one pair, with randomness that depends on ``seed`` alone."""

    def streams(purpose: str, batch: int) -> np.random.Generator:
        return np.random.default_rng([seed, batch])

    return Game(game.calls.anew(), game.claim, [pair], game.forecasters, streams)
