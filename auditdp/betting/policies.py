"""Which pair is played next.

It is chosen by what is known before the batch, so validity does not depend on it: every bet is placed before its coin is
known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from auditdp.betting.tables import PairTable
from auditdp.betting.wealth.mixture import Wealth
from auditdp.numerics.arrays import Floats

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
    tables: Sequence[PairTable], wealth: Wealth, *, batch: int, remaining: int, rng: np.random.Generator
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
        if np.max(draws) * remaining > math.log(1 / alpha) - min(wealth.log_wealth, 0.0):
            return _best(draws if batch % 2 == 0 else drawn(open_level), rng)
    best = gaining(open_level)
    return _best(drawn(open_level), rng) if best is None else best


def _plausible(tables: Sequence[PairTable], wealth: Wealth, level: int, calls: int, rng: np.random.Generator) -> Floats:
    """Draw what a call of each pair may gain against a level, given by its position, in a game of so many calls."""
    epsilon = wealth.claim.at(float(wealth.levels[level])).tangents()[0][0]
    anchor, believed = wealth.anchor(level), rng.random() < BELIEF
    worn = [min(1.0, SHOWN * table.calls / calls) for table in tables]
    return np.array(
        [
            table.plausible_growth(anchor, epsilon, believed=believed, worn=part, rng=rng)
            for table, part in zip(tables, worn, strict=True)
        ]
    )


def _best(draws: Floats, rng: np.random.Generator) -> int:
    return int(rng.choice(np.flatnonzero(draws == np.max(draws))))
