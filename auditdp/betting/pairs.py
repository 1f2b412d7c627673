"""Pairs that nobody listed: a search for those that show most, and for the smallest that still shows a violation.

Both run on Hypothesis (`search.py`) over what the adjacency generates, and judge a pair by frozen randomness, so that a
pair has one value. That is no evidence: what they find is played, or confirmed, on randomness of its own.

Where the adjacency lists corner cases, many pairs are *screened* before: the corner cases, and pairs that it generates, by
so few calls that only a gross difference shows, such as that of an overflow. Those that differ most are judged like others.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace

import numpy as np
from hypothesis.strategies import SearchStrategy

from auditdp.adjacency import Adjacency, Neighbours, Pair
from auditdp.betting.cells import VARIANTS
from auditdp.betting.forecasters import Single
from auditdp.betting.game import Game
from auditdp.betting.views import as_rows
from auditdp.calls import Calls
from auditdp.errors import AuditError
from auditdp.mechanism import Array
from auditdp.randomness import Streams
from auditdp.search import key, maximise, smallest

CALLS_PER_PAIR = 128
SCREENING_CALLS = 8
SCREENING_SHARE = 2
"""Half of the calls of a search may go into screening."""
SPREAD_SHARE = 0.1
AGAIN = 4
NEVER_REPEATING = 0.9
RATIO = 4.0
"""Of eight outputs of normal noise, the deviations of the two halves are this many times each other in one case of 20."""
MOST_CORNERS = 200
MOST_SCREENED = 100
"""Generated pairs that are screened, beside the corner cases."""
MOST_JUDGED = 8
"""Screened pairs that are looked at once more, by four times the calls, and then judged like others."""
GROSS = 3.0
"""Distance from which a pair is played whatever the judgement: noise of ε = 1 moves by .7 of its deviation."""
FEWEST_EXAMPLES = 8
MOST_EXAMPLES = 200
MOST_PROPOSED = 4
CAUTIOUS = [k for k, variant in enumerate(VARIANTS) if variant.endswith("cautious")]
SHRINK_EXAMPLES = 30
SHRINK_FACTOR = 3
MOST_CALLS_TO_SHRINK = 200_000


def can_search(adjacency: Adjacency) -> bool:
    """Return whether the adjacency generates pairs that it does not list."""
    if not hasattr(adjacency, "strategy") or (isinstance(adjacency, Neighbours) and adjacency.search is None):
        return False
    every = adjacency.exhaustive()
    return every is None or len(every) > len(adjacency.pairs())


def propose(game: Game, adjacency: Adjacency, calls: int) -> int:
    """Add the pairs whose outputs tell the inputs apart best to a game, and return how many calls that took.

    A pair's score is the largest privacy loss that its law shows on a few outputs, or, without a law, the largest that
    the counts of half of them leave plausible: enough to tell where to look.
    """
    if calls // CALLS_PER_PAIR < FEWEST_EXAMPLES:
        return 0
    seed, listed = int(game.streams("proposals", 0).integers(2**32)), len(game.tables)
    spent = 0

    def score(pair: Pair, calls: Calls | None = None) -> float:
        nonlocal spent
        adjacency.check(pair)
        spent += CALLS_PER_PAIR
        return _loss(game, pair, seed, calls or game.calls.anew())

    corners: list[Pair] = getattr(adjacency, "corner_cases", list)()
    judged: list[tuple[float, Pair]] = []
    if corners:
        screened, spent = _screened(game, adjacency, corners, calls // SCREENING_SHARE, seed)
        for far, pair in screened:
            with suppress(AuditError):
                loss = score(pair, game.calls)
                judged.append((math.inf if far > GROSS else loss, pair))
    if (examples := min((calls - spent) // CALLS_PER_PAIR, MOST_EXAMPLES)) > 0:
        judged += maximise(adjacency.strategy(), score, examples=examples, seed=seed)
    known = {key(pair) for table in game.tables for pair in (table.pair, table.pair.swapped())}
    for _, pair in sorted(judged, key=lambda entry: -entry[0]):
        if key(pair) not in known and len(game.tables) < listed + MOST_PROPOSED:
            known |= {key(pair), key(pair.swapped())}
            game.add(replace(pair, name=pair.name or "found"))
    return spent


def _screened(
    game: Game, adjacency: Adjacency, corners: list[Pair], calls: int, seed: int
) -> tuple[list[tuple[float, Pair]], int]:
    """Return the pairs that differ most by a few calls each, the most different first, and the calls that this took."""
    assert game.calls.like is not None  # calls were looked at
    like = as_rows(game.calls.like)
    spent, most = 0, calls // SCREENING_CALLS - AGAIN * MOST_JUDGED

    def apart(pair: Pair, factor: int = 1) -> float:
        nonlocal spent
        adjacency.check(pair)
        size, rng = factor * SCREENING_CALLS // 2, np.random.default_rng([seed, factor])
        spent += 2 * size
        ones, zeros = (as_rows(game.calls(data, size, rng)) for data in (pair.data, pair.neighbour))
        return distance(ones, zeros, like)

    found: list[tuple[float, Pair]] = []
    for pair in corners[: max(min(MOST_CORNERS, most), 0)]:
        with suppress(AuditError):
            found.append((apart(pair), pair))
    if (examples := min(most - spent // SCREENING_CALLS, MOST_SCREENED)) > 0:
        with suppress(AuditError):  # all of them are refused, which may not be so for more calls
            found += maximise(_generated(adjacency), apart, examples=examples, seed=seed)
    known = {key(table.pair) for table in game.tables}
    distinct = {key(pair): (far, pair) for far, pair in found if far > 0 and key(pair) not in known}
    best = sorted(distinct.values(), key=lambda entry: -entry[0])
    again: list[tuple[float, Pair]] = []
    for _, pair in best[:MOST_JUDGED]:
        with suppress(AuditError):
            again.append((apart(pair, AGAIN), pair))
    return sorted(again, key=lambda entry: -entry[0]), spent


def _generated(adjacency: Adjacency) -> SearchStrategy[Pair]:
    """Return what an adjacency generates; where it lists corner cases, also pairs that are like them."""
    wide = getattr(adjacency, "wide", None) if hasattr(adjacency, "corner_cases") else None
    return adjacency.strategy() if wide is None else adjacency.strategy() | wide()


def distance(ones: Array, zeros: Array, like: Array) -> float:
    """Return how far apart two few outputs are, in standard deviations, where that is largest.

    Looked at are the columns, their sum and their largest. Of each it is the gap between the means, or, if that is more, how
    many times one side's deviation is that of the other, divided by ``RATIO``. Where outputs hardly ever repeat, as those of
    continuous noise, a side that does not vary makes this infinite; elsewhere few outputs may be equal by chance, and a
    deviation is at least ``SPREAD_SHARE`` of the usual one. It is infinite too where all numbers of one side alone are
    missing.

    Args:
        ones: Outputs of one input, shape (n, d).
        zeros: Outputs of the other.
        like: What outputs look like.
    """
    if not ones.shape[1]:
        return 0.0
    with np.errstate(all="ignore"):
        sides = [np.column_stack([rows, rows.sum(axis=1), rows.max(axis=1)]) for rows in (ones, zeros, like)]
        finite = [np.isfinite(side) for side in sides]
        one, zero, usual = (
            np.where(here, side, 0.0).astype(np.float64) for here, side in zip(finite, sides, strict=True)
        )
        repeating = np.array([len(set(column)) < NEVER_REPEATING * len(column) for column in usual.T])
        floor = np.where(repeating, SPREAD_SHARE * usual.std(axis=0), 0.0)
        low, high = np.sort([np.maximum(side.std(axis=0), floor) for side in (one, zero)], axis=0)
        gap = np.abs(one.mean(axis=0) - zero.mean(axis=0))
        far = np.fmax(gap / high, high / low / RATIO)
    missing = np.abs(finite[0].mean(axis=0) - finite[1].mean(axis=0)) == 1
    return float(np.max(np.where(missing, np.inf, np.nan_to_num(far, nan=0.0, posinf=np.inf))))


def _loss(game: Game, pair: Pair, seed: int, calls: Calls) -> float:
    """Return how far apart a few outputs of a pair look, in nats of log-odds, with frozen randomness.

    Minus infinity for a pair whose outputs are of another shape than those of the game, if these calls represent them so.
    """
    probe = Game(calls, game.claim, [pair], game.forecasters, lambda *_: np.random.default_rng(seed))
    if probe.calls.row != game.calls.row:
        return -math.inf
    probe.play(CALLS_PER_PAIR // 2, alpha=game.alpha)
    said = probe.tables[0].players[0].forecast(probe.draw(pair, CALLS_PER_PAIR // 2, np.random.default_rng(seed + 1)))
    if isinstance(probe.tables[0].players[0], Single):
        return float(np.max(np.abs(said[0].log_odds), initial=0.0))
    cautious = [f.log_odds[:, (f.ones + f.zeros) > 0] for f in said]
    return float(max(np.max(np.abs(odds[CAUTIOUS]), initial=0.0) for odds in cautious))


def smaller(game: Game, adjacency: Adjacency, alpha: float) -> tuple[Game | None, int]:
    """Look for the smallest pair that refutes the claim as the best pair did.

    Returns:
        A game on that pair that refuted the claim, to be confirmed, or None if there was no other; and the calls spent.
    """
    seed = int(game.streams("smaller pairs", 0).integers(2**32))
    budget = SHRINK_FACTOR * max(game.refuted_at or game.wealth.calls, CALLS_PER_PAIR)
    examples = min(SHRINK_EXAMPLES, MOST_CALLS_TO_SHRINK // (2 * budget))
    if examples < FEWEST_EXAMPLES:
        return None, 0
    played: dict[object, Game] = {}
    spent = 0

    def refutes(pair: Pair) -> bool:
        nonlocal spent
        adjacency.check(pair)
        attempt = Game(game.calls.anew(), game.claim, [pair], game.forecasters, _frozen(seed))
        attempt.play(budget, alpha=alpha, stop_when_refuted=True)
        spent += attempt.wealth.calls
        played[key(pair)] = attempt
        return attempt.refuted_at is not None

    best = game.best.pair
    found = smallest(_generated(adjacency), refutes, examples=examples, seed=seed, start=best)
    if found is None or key(found) == key(best):
        return None, spent
    return played[key(found)], spent


def _frozen(seed: int) -> Streams:
    """Return streams that depend on nothing but the batch."""
    return lambda purpose, batch: np.random.default_rng([seed, batch])
