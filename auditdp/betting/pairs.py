"""Pairs that nobody listed: a search for those that show most, and for the smallest that still shows a violation.

Both run on Hypothesis (`search.py`) over what the adjacency generates, and judge a pair by frozen randomness, so that a
pair has one value. That is no evidence: what they find is played, or confirmed, on randomness of its own.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from auditdp.adjacency import Adjacency, Neighbours, Pair
from auditdp.betting.cells import VARIANTS
from auditdp.betting.forecasters import Single
from auditdp.betting.game import Game
from auditdp.randomness import Streams
from auditdp.search import key, maximise, smallest

CALLS_PER_PAIR = 128
FEWEST_EXAMPLES = 8
MOST_EXAMPLES = 200
MOST_PROPOSED = 4
CAUTIOUS = [k for k, variant in enumerate(VARIANTS) if variant.endswith("cautious")]
SHRINK_EXAMPLES = 30
SHRINK_FACTOR = 3
MOST_CALLS_TO_SHRINK = 200_000


def can_search(adjacency: Adjacency) -> bool:
    """Return whether the adjacency generates pairs that it does not list."""
    if isinstance(adjacency, Neighbours) or not hasattr(adjacency, "strategy"):
        return False
    every = adjacency.exhaustive()
    return every is None or len(every) > len(adjacency.pairs())


def propose(game: Game, adjacency: Adjacency, calls: int) -> int:
    """Add the pairs whose outputs tell the inputs apart best to a game, and return how many calls that took.

    A pair's score is the largest privacy loss that its law shows on a few outputs, or, without a law, the largest that
    the counts of half of them leave plausible: enough to tell where to look.
    """
    examples = min(calls // CALLS_PER_PAIR, MOST_EXAMPLES)
    if examples < FEWEST_EXAMPLES:
        return 0
    seed = int(game.streams("proposals", 0).integers(2**32))
    spent = 0

    def score(pair: Pair) -> float:
        nonlocal spent
        adjacency.check(pair)
        spent += CALLS_PER_PAIR
        return _loss(game, pair, seed)

    known = {key(table.pair) for table in game.tables}
    found = [pair for _, pair in maximise(adjacency.strategy(), score, examples=examples, seed=seed)]
    fresh = [pair for pair in found if key(pair) not in known and key(pair.swapped()) not in known]
    for pair in fresh[:MOST_PROPOSED]:
        game.add(replace(pair, name=pair.name or "found"))
    return spent


def _loss(game: Game, pair: Pair, seed: int) -> float:
    """Return how far apart a few outputs of a pair look, in nats of log-odds, with frozen randomness.

    Minus infinity for a pair whose outputs are of another shape than those of the game, which it could not play.
    """
    probe = Game(game.calls.anew(), game.claim, [pair], game.forecasters, lambda *_: np.random.default_rng(seed))
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
    found = smallest(adjacency.strategy(), refutes, examples=examples, seed=seed, start=best)
    if found is None or key(found) == key(best):
        return None, spent
    return played[key(found)], spent


def _frozen(seed: int) -> Streams:
    """Return streams that depend on nothing but the batch."""
    return lambda purpose, batch: np.random.default_rng([seed, batch])
