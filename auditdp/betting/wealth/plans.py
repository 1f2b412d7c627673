"""What is bet against a claim with a curve until it is renewed: who leads where, with which region, and how others bet.

At a few levels, the *posts*, the region is that of the law nearest to what the leader there expects (`nearest_region.py`).
Posts lie ever denser below the highest level that the leader's law exceeds, since what can be won falls with the square
of the distance to it. A level between two posts takes the region of the one from which it expects more, at its own
price. All of it is made from earlier batches only.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from auditdp.betting.wealth.forecasts import ForecastLine, Law
from auditdp.betting.wealth.levels import Grid
from auditdp.betting.wealth.nearest_region import excess, nearest_regions
from auditdp.betting.wealth.regions import Region
from auditdp.claims.claim import Claim
from auditdp.claims.dominating import DominatingPair, lines
from auditdp.numerics.arrays import Floats

STRETCH = 1.3
"""Of the log-odds in the stretched region."""
HARD = (0.5, 0.1)
"""Fractions of the wealth that hard bets risk."""
GAPS = (1, 2, 3, 4, 6, 8, 11, 16, 22, 32, 45, 64, 90, 128, 256, 512)
"""Levels between the highest that a law exceeds and the posts below it."""
MOST_JUDGED = 5
"""Anchors at which all forecasters are judged."""
UNTRIED = 0.25
"""What a leader may bet that has not gained its rank, as a fraction of the whole."""
MOST_ASKED = 48
"""Forecasters, by rank, that are asked whether their law exceeds a claim."""
RENEWED = 1.25
"""Growth of the calls of a pair from which on a plan is renewed."""
LINES = 60
"""Statements of a curve that the nearest law is found with; all of them make the price."""
TINY = 1e-9
"""What a law may exceed a level by rounding alone."""
NOTHING = Region(np.ones((1, 2)))
"""The region without a bet."""

Cells = tuple[Floats, Floats]
"""Probabilities of cells under coin 0 and coin 1, sorted by their log-odds."""


@dataclass(frozen=True, eq=False)
class Post:
    """What a leader bets at some levels.

    Attributes:
        leader: Who it is.
        region: What is chosen from.
        levels: Indices of the levels.
        prices: ln S of the region at each of them.
    """

    leader: int
    region: Region
    levels: NDArray[np.intp]
    prices: Floats


@dataclass(frozen=True, eq=False)
class BettingPlan:
    """What is bet on one pair until it is renewed.

    Attributes:
        until: Calls of the pair from which on another plan is needed.
        posts: The bets of leaders; empty where nobody leads.
        places: The anchors, by their place among them, at which all forecasters are judged; the claim's comes first.
        ways: For each of them the regions, each with its ln S there.
    """

    until: float
    posts: list[Post]
    places: list[int]
    ways: list[list[tuple[Region, float]]]


@dataclass(frozen=True, eq=False)
class LevelPlan:
    """What is known of the claim at one level: its dominating pair, and the lines that the nearest law is found with."""

    pair: DominatingPair
    lines: Floats


class Planner:
    """Makes plans against a claim at every level.

    Args:
        claim: The claim.
        grid: The levels.
    """

    def __init__(self, claim: Claim, grid: Grid) -> None:
        self._claim, self._grid = claim, grid
        self._known: dict[int, LevelPlan] = {}
        self._fixed: dict[int, list[tuple[Region, float]]] = {}

    def at(self, level: int) -> LevelPlan:
        """Return what is known of the claim at a level."""
        if level not in self._known:
            statements = self._claim.at(float(self._grid.values[level])).statements()
            few = statements[:: -(-len(statements) // LINES)]
            self._known[level] = LevelPlan(DominatingPair.of(statements), lines(few))
        return self._known[level]

    def plan(
        self,
        line: ForecastLine,
        leaders: NDArray[np.intp] | None,
        calls: int,
        crossed: int,
    ) -> BettingPlan:
        """Return what is bet on a pair from now on.

        Args:
            line: The forecasts for the batch to come, and what is expected.
            leaders: Forecasters by rank at every anchor, the first one first; None where nobody leads yet.
            calls: Calls of the pair so far.
            crossed: How many levels need no more bets.
        """
        claim = self._grid.claim
        first = int(self._grid.anchor[min(crossed, len(self._grid) - 1)])
        anybody = np.arange(line.count)[:, None]
        ranks = (
            np.tile(anybody, len(self._grid.anchors))
            if leaders is None
            else np.atleast_2d(leaders)
        )
        expected = _Expected(line, self)
        leading, untried = self._leading(ranks, expected, claim, first)
        wanted, last = self._wanted(leading, expected, first, crossed)
        regions = {
            post: region.mixed(UNTRIED) if untried[self._grid.anchor[post]] else region
            for post, region in self._nearest(wanted).items()
        }
        posts = (
            self._posts(regions, wanted, leading, crossed)
            if leaders is not None
            else []
        )
        # Who leads is judged at the claim's anchor, and at some between what is crossed and what may be reached.
        judged = np.unique(np.linspace(first, last, MOST_JUDGED).astype(int))
        places = [claim, *(int(place) for place in judged if place != claim)]
        ways = [
            [
                self._learned(self._level(place), regions, wanted),
                *self._ready(self._level(place)),
            ]
            for place in places
        ]
        return BettingPlan(max(RENEWED * calls, 1), posts, places, ways)

    def top(self, cells: Cells) -> int:
        """Return the highest level that a law exceeds, -1 if it exceeds none."""
        return (
            bisect_left(
                range(len(self._grid)),
                True,
                key=lambda k: excess(*cells, self.at(k).lines) <= TINY,
            )
            - 1
        )

    def _leading(
        self, ranks: NDArray[np.intp], expected: _Expected, claim: int, first: int
    ) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return who leads at every anchor, -1 for nobody, and whether it has not gained that.

        Who expects to win nothing does not lead. Where that is the first in rank, another one leads whose law exceeds the
        claim at its level or at the lowest open one, with a fraction of the stake until it has gained the rank.
        """
        eager = []
        for place in dict.fromkeys((claim, first)):
            bounds = self.at(self._level(place)).lines
            asked = ranks[:MOST_ASKED, place].tolist()
            eager += [k for k in asked if excess(*expected.cells(k), bounds) > TINY][:1]
        leading, untried = (
            np.full(len(self._grid.anchors), -1),
            np.zeros(len(self._grid.anchors), bool),
        )
        for place in range(first, len(self._grid.anchors)):
            able = [
                k
                for k in (int(ranks[0, place]), *eager)
                if expected.top(k) >= self._level(place)
            ]
            if able:
                leading[place], untried[place] = able[0], able[0] != ranks[0, place]
        return leading, untried

    def _wanted(
        self, leading: NDArray[np.intp], expected: _Expected, first: int, crossed: int
    ) -> tuple[dict[int, Cells], int]:
        """Return the posts, each with the law that it is for, and the last anchor that a leader's law exceeds."""
        wanted: dict[int, Cells] = {}
        last = first
        for k in {int(k) for k in leading if k >= 0}:
            top = expected.top(k)
            last = max(last, int(self._grid.anchor[top]))
            own = np.flatnonzero(leading[self._grid.anchor] == k)
            for post in ({top - gap for gap in GAPS} | {self._grid.position}) & set(
                own[own >= crossed].tolist()
            ):
                if post <= top:
                    wanted[post] = expected.cells(k)
        return wanted, last

    def _level(self, place: int) -> int:
        """Return the level that an anchor stands for: the claim's anchor for the claim, every other one for its own."""
        return (
            self._grid.position
            if place == self._grid.claim
            else int(self._grid.anchors[place])
        )

    def _nearest(self, wanted: dict[int, Cells]) -> dict[int, Region]:
        """Return the regions of some posts, all found together."""
        if not wanted:
            return {}
        most = max(len(zeros) for zeros, _ in wanted.values())
        few = max(len(self.at(post).lines) for post in wanted)
        found = nearest_regions(
            np.stack([_split(zeros, most) for zeros, _ in wanted.values()]),
            np.stack([_split(ones, most) for _, ones in wanted.values()]),
            np.stack(
                [
                    np.pad(at, ((0, few - len(at)), (0, 0)), mode="edge")
                    for at in (self.at(p).lines for p in wanted)
                ]
            ),
        )
        return dict(zip(wanted, found, strict=True))

    def _posts(
        self,
        regions: dict[int, Region],
        laws: dict[int, Cells],
        leading: NDArray[np.intp],
        crossed: int,
    ) -> list[Post]:
        """Give every level that is still open the neighbouring post from which its leader expects most."""
        posts = sorted(regions)
        if not posts:
            return []
        open_levels = np.arange(crossed, posts[-1] + 1)
        best, taken, priced = (
            np.zeros(len(open_levels)),
            np.full(len(open_levels), -1),
            np.zeros(len(open_levels)),
        )
        for k, post in enumerate(posts):
            near = slice(
                max(posts[k - 1] + 1 - crossed, 0) if k else 0,
                posts[min(k + 1, len(posts) - 1)] + 1 - crossed,
            )
            prices = regions[post].prices(
                [self.at(level).pair for level in open_levels[near].tolist()]
            )
            gains = _expected(regions[post], laws[post]) - prices
            better = gains > best[near]
            best[near][better], taken[near][better], priced[near][better] = (
                gains[better],
                k,
                prices[better],
            )
        made = []
        for k in np.unique(taken[taken >= 0]):
            own = taken == k
            leader = int(leading[self._grid.anchor[posts[k]]])
            made.append(Post(leader, regions[posts[k]], open_levels[own], priced[own]))
        return made

    def _learned(
        self, level: int, regions: dict[int, Region], laws: dict[int, Cells]
    ) -> tuple[Region, float]:
        """Return the region of the post that is nearest to a level with ln S there, or no bet where it costs too much."""
        near = min(regions, key=lambda post: abs(post - level), default=None)
        if near is None:
            return NOTHING, 0.0
        price = regions[near].price(self.at(level).pair)
        return (
            (regions[near], price)
            if _expected(regions[near], laws[near]) > price
            else (NOTHING, 0.0)
        )

    def _ready(self, level: int) -> list[tuple[Region, float]]:
        """Return the regions at a level that need nothing to be learned, with ln S of each."""
        if level not in self._fixed:
            at = self.at(level)
            odds = at.pair.log_odds
            weights = (at.pair.p + at.pair.q) / 2
            zeros, ones = Law(STRETCH * odds, weights).cells()
            (stretched,) = nearest_regions(zeros[None], ones[None], at.lines[None])
            hard = [_hard(self._surest(level), fraction) for fraction in HARD]
            self._fixed[level] = [
                (region, region.price(at.pair)) for region in (stretched, *hard)
            ]
        return self._fixed[level]

    def _surest(self, level: int) -> float:
        """Return the epsilon beyond which hard bets are made at a level."""
        return max(
            epsilon
            for epsilon, _ in self._claim.at(float(self._grid.values[level])).tangents()
        )


class _Expected:
    """The laws that forecasters expect, and the highest levels that these exceed, computed where they are asked for."""

    def __init__(self, line: ForecastLine, planner: Planner) -> None:
        self.cells: Callable[[int], Cells] = cache(
            lambda forecaster: line.law(forecaster).cells()
        )
        self.top: Callable[[int], int] = cache(
            lambda forecaster: planner.top(self.cells(forecaster))
        )


def _expected(region: Region, law: Cells) -> float:
    """Return what a law expects of a call, in nats, before the price."""
    zeros, ones = law
    on_zeros, on_ones = region.choose(np.log(ones) - np.log(zeros))
    return float(zeros @ on_zeros + ones @ on_ones) / 2


def _hard(epsilon: float, fraction: float) -> Region:
    """Return the region of bets on either coin, or none, with a fraction of what there is."""
    lost, gained = 1 - fraction, 1 + fraction * math.exp(-epsilon)
    return Region(np.array([[1.0, 1.0], [lost, gained], [gained, lost]]))


def _split(cells: Floats, count: int) -> Floats:
    """Cut the last cell in equal parts, so that there are ``count`` cells: nothing else changes."""
    return np.append(
        cells[:-1],
        np.full(count - len(cells) + 1, cells[-1] / (count - len(cells) + 1)),
    )
