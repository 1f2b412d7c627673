"""Which pair is played next.

A policy chooses from what is known before the batch, so validity does not depend on it: every bet is placed before its coin
is known. ``Following`` is the game's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from auditdp.betting.tables import PairTable
from auditdp.betting.wealth.mixture import Wealth
from auditdp.claims.dominating import Floats

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


@dataclass(frozen=True)
class PairStatistics:
    """What a policy knows.

    Attributes:
        tables: The pairs with what was seen of them.
        wealth: The wealth of the game.
        alpha: The level of the test.
        batch: How many batches were played.
        remaining: Calls that are left to be made.
    """

    tables: Sequence[PairTable]
    wealth: Wealth
    alpha: float
    batch: int
    remaining: int

    @property
    def calls(self) -> list[int]:
        """Calls of each pair."""
        return [table.calls for table in self.tables]

    def gained(self, level: int) -> list[float]:
        """Return what each pair has lately gained against a level, given by its position."""
        anchor = self.wealth.anchor(level)
        return [table.gained(anchor) for table in self.tables]

    def plausible(self, level: int, rng: np.random.Generator) -> Floats:
        """Draw what a call of each pair may gain against a level, given by its position."""
        epsilon = self.wealth.claim.at(float(self.wealth.levels[level])).tangents()[0][0]
        anchor, believed, calls = self.wealth.anchor(level), rng.random() < BELIEF, self.wealth.calls + self.remaining
        return np.array(
            [
                table.plausible_growth(
                    anchor, epsilon, believed=believed, worn=min(1.0, SHOWN * table.calls / calls), rng=rng
                )
                for table in self.tables
            ]
        )


class Policy(Protocol):
    """Chooses the pair to play next."""

    def choose(self, statistics: PairStatistics, rng: np.random.Generator) -> int:
        """Return the place of the pair among the tables."""


class Following:
    """Plays the pair that gains, or draws one by Thompson sampling from what a call of each pair may gain.

    No pair gets less than an eighth of its share, whatever it shows; in games of millions of calls that becomes less and
    less.

    Three batches of four go to the pair that has lately gained most against the claim, since what was learned of one pair
    is lost on another; once the claim is refuted, or hardly can be within the remaining calls, to the one that has gained
    most against the lowest level that the bound has not reached. Not before: pairs that gain at a low level are many, and
    whoever follows them may never come to the one that refutes. In all other batches, what each pair may gain is drawn, by
    turns against the claim and that level.
    """

    def choose(self, statistics: PairStatistics, rng: np.random.Generator) -> int:
        """See ``Policy``."""
        calls, wealth = statistics.calls, statistics.wealth
        fewest = int(np.argmin(calls))
        shared = min(wealth.calls, math.sqrt(wealth.calls * NEGLECT_MORE_FROM))
        if len(calls) == 1 or calls[fewest] * NEGLECT * len(calls) <= shared:
            return fewest
        claim, open_level, follow = (
            wealth.position,
            wealth.open_level(statistics.alpha),
            statistics.batch % EXPLORE != 0,
        )
        if not wealth.refuted(statistics.alpha):
            if follow and (gaining := _gaining(statistics.gained(claim))) is not None:
                return gaining
            draws = _favoured(statistics, claim, rng)
            if np.max(draws) * statistics.remaining > math.log(1 / statistics.alpha) - min(wealth.log_wealth, 0.0):
                return _best(draws if statistics.batch % 2 == 0 else _favoured(statistics, open_level, rng), rng)
        if follow and (gaining := _gaining(statistics.gained(open_level))) is not None:
            return gaining
        return _best(_favoured(statistics, open_level, rng), rng)


def _gaining(gained: Sequence[float]) -> int | None:
    """Return the pair that has lately gained most, if any has gained."""
    best = int(np.argmax(gained))
    return best if gained[best] >= GAINING else None


def _favoured(statistics: PairStatistics, level: int, rng: np.random.Generator) -> Floats:
    draws = statistics.plausible(level, rng)
    draws[np.argmax(statistics.calls)] *= FAVOUR
    return draws


def _best(draws: Floats, rng: np.random.Generator) -> int:
    return int(rng.choice(np.flatnonzero(draws == np.max(draws))))
