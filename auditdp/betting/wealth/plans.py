"""Plans of bets against a curve: leaders, their regions, and the bets of all others.

At a few levels, the *posts*, the region is computed from the law that the claim allows
and that is nearest to the leader's expected law (`nearest_region.py`). The posts get
denser towards the highest level that the leader's law exceeds, since the possible gain
falls with the square of the distance to it. A level between two posts takes the region
of one of them: the one with the larger expected gain minus price. The price is the log
wealth that each call with a bet costs (`regions.py`). A plan uses earlier batches only.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from auditdp.betting.limits import LIMITS, NEGLIGIBLE
from auditdp.betting.wealth.forecasts import ForecastLine, Law
from auditdp.betting.wealth.levels import Grid
from auditdp.betting.wealth.nearest_region import excess, nearest_regions
from auditdp.betting.wealth.regions import Region
from auditdp.claims.claim import Claim
from auditdp.claims.dominating import DominatingPair, lines
from auditdp.numerics.arrays import Floats

STRETCH = 1.3
"""Factor of the log-odds in the stretched region.

With twice this value, the games of the benchmark take 5.2 % fewer calls, and games on
the mechanisms of `benchmarks/ablation_mechanisms.py` 2.0 % more.
"""
UNTRIED = 0.25
"""Fraction of the stake that a leader bets if it is not first in rank.

With half of this value, games on the mechanisms of `benchmarks/ablation_mechanisms.py`
take 2.5 % more calls.
"""
RENEWED = 1.25
"""Growth factor of the calls of a pair after which a plan is renewed.

With twice this value, games on the mechanisms of `benchmarks/ablation_mechanisms.py`
take 5.7 % more calls.
"""
NOTHING = Region(np.ones((1, 2)))
"""The region without a bet."""

Cells = tuple[Floats, Floats]
"""Probabilities of cells under coin 0 and coin 1, sorted by their log-odds."""


@dataclass(frozen=True, eq=False)
class Post:
    """The bet of a leader at some levels.

    Attributes:
        leader: Index of the forecaster.
        region: The region that its forecasts choose from.
        levels: Indices of the levels.
        prices: The price of the region, ln S, at each of these levels.
    """

    leader: int
    region: Region
    levels: NDArray[np.intp]
    prices: Floats


@dataclass(frozen=True, eq=False)
class BettingPlan:
    """The bets on one pair until the plan is renewed.

    Attributes:
        until: Number of calls of the pair from which on another plan is needed.
        posts: The bets of leaders, empty if there are no leaders.
        places: The places, in ``Grid.anchors``, of the anchors at which all forecasters
            are judged; the claim's comes first.
        ways: For each of these anchors, one region for each way of betting, with the
            price ln S of the region at the anchor.
    """

    until: float
    posts: list[Post]
    places: list[int]
    ways: list[list[tuple[Region, float]]]


@dataclass(frozen=True, eq=False)
class LevelPlan:
    """The claim at one level.

    Attributes:
        pair: The dominating pair, by which bets are priced.
        lines: The lines (u, v, w) of at most 60 statements, by which bets are
            optimised, shape (lines, 3).
    """

    pair: DominatingPair
    lines: Floats


@dataclass(frozen=True, eq=False)
class _Expected:
    """Expected laws of the forecasters, computed on demand.

    Attributes:
        cells: Function from the index of a forecaster to its expected law.
        top: Function from this index to the index of the highest level that the law
            exceeds, -1 for none.
    """

    cells: Callable[[int], Cells]
    top: Callable[[int], int]


class Planner:
    """Planner of the bets against a claim at every level.

    Args:
        claim: The claim.
        grid: The levels.

    Attributes:
        hard: Fractions of the wealth that hard bets risk.
    """

    hard = (0.5, 0.1)

    def __init__(self, claim: Claim, grid: Grid) -> None:
        self._claim, self._grid = claim, grid
        self._level_plans: dict[int, LevelPlan] = {}
        self._fixed_regions: dict[int, list[tuple[Region, float]]] = {}

    def at(self, level: int) -> LevelPlan:
        """Return the claim at a level, given by its index, and cache it."""
        if level not in self._level_plans:
            statements = self._claim.at(float(self._grid.values[level])).statements()
            step = -(-len(statements) // LIMITS.curve_lines)
            self._level_plans[level] = LevelPlan(
                DominatingPair.of(statements), lines(statements[::step])
            )
        return self._level_plans[level]

    def plan(
        self,
        line: ForecastLine,
        leaders: NDArray[np.intp] | None,
        calls: int,
        crossed: int,
    ) -> BettingPlan:
        """Return the bets on a pair from now on.

        Args:
            line: The forecasts for the next batch, and their expected laws.
            leaders: Indices of forecasters in order of rank at every anchor, shape
                (ranks, anchors), or (anchors,) for the first in rank only; None if
                there are no leaders yet.
            calls: Number of calls of the pair so far.
            crossed: Number of levels that need no more bets.
        """
        claim = self._grid.claim
        first = int(self._grid.anchor[min(crossed, len(self._grid) - 1)])
        if leaders is None:
            ranks = np.tile(np.arange(line.count)[:, None], len(self._grid.anchors))
        else:
            ranks = np.atleast_2d(leaders)
        cells = cache(lambda forecaster: line.law(forecaster).cells())
        expected = _Expected(cells, cache(lambda k: self.top(cells(k))))
        leading, untried = self._leading(ranks, expected, first)
        laws, last = self._posts_of(leading, expected, first, crossed)
        regions = self._nearest(laws)
        for post, region in regions.items():
            if untried[self._grid.anchor[post]]:
                regions[post] = region.mixed(UNTRIED)
        posts = []
        if leaders is not None:
            posts = self._posts(regions, laws, leading, crossed)
        # All forecasters are judged at the claim's anchor, and at some anchors between
        # the crossed levels and those that may be reached.
        judged = np.linspace(first, last, LIMITS.judged_anchors).astype(int)
        places = list(dict.fromkeys([claim, *np.unique(judged).tolist()]))
        ways = []
        for level in map(self._level, places):
            ways.append([self._learned(level, regions, laws), *self._ready(level)])
        return BettingPlan(max(RENEWED * calls, 1), posts, places, ways)

    def top(self, cells: Cells) -> int:
        """Return the index of the highest level that a law exceeds, -1 for none."""

        def is_allowed(level: int) -> bool:
            return excess(*cells, self.at(level).lines) <= NEGLIGIBLE

        return bisect_left(range(len(self._grid)), True, key=is_allowed) - 1

    def _leading(
        self, ranks: NDArray[np.intp], expected: _Expected, first: int
    ) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Choose the leader at every anchor.

        The forecaster that is first in rank leads if its expected law exceeds the level
        of the anchor. Otherwise one of two substitutes leads, if its law exceeds this
        level: the best in rank whose law exceeds the claim's level, or else the best in
        rank whose law exceeds the lowest open anchor. A substitute bets a fraction of
        the stake.

        Args:
            ranks: Indices of forecasters in order of rank at every anchor, shape
                (ranks, anchors).
            expected: The expected laws of the forecasters.
            first: The place of the lowest open anchor; anchors below it get no leader.

        Returns:
            The index of the leader at every anchor, -1 for none, and whether it is a
            substitute.
        """
        eager = []
        for place in dict.fromkeys((self._grid.claim, first)):
            bounds = self.at(self._level(place)).lines
            for k in ranks[: LIMITS.eager_ranks, place].tolist():
                if excess(*expected.cells(k), bounds) > NEGLIGIBLE:
                    eager.append(k)
                    break
        leading = np.full(len(self._grid.anchors), -1)
        untried = np.zeros(len(leading), bool)
        # The first in rank leads if it expects a gain there, else a substitute.
        for place in range(first, len(leading)):
            best = int(ranks[0, place])
            for k in (best, *eager):
                if expected.top(k) >= self._level(place):
                    leading[place], untried[place] = k, k != best
                    break
        return leading, untried

    def _posts_of(
        self, leading: NDArray[np.intp], expected: _Expected, first: int, crossed: int
    ) -> tuple[dict[int, Cells], int]:
        """Return the leader's law at each post, and the last anchor that a law exceeds.

        A post is given by the index of its level. The anchor is given by its place in
        ``Grid.anchors``, and is the anchor ``first`` if no law exceeds a later one.

        Args:
            leading: The leader at every anchor, -1 for none.
            expected: The expected laws of the forecasters.
            first: The place of the lowest open anchor.
            crossed: Number of levels that need no more bets.
        """
        laws: dict[int, Cells] = {}
        last = first
        # Levels between the highest that a law exceeds and the posts below it.
        gaps = (1, 2, 3, 4, 6, 8, 11, 16, 22, 32, 45, 64, 90, 128, 256, 512)
        for k in {int(k) for k in leading if k >= 0}:
            top = expected.top(k)
            last = max(last, int(self._grid.anchor[top]))
            own = np.flatnonzero(leading[self._grid.anchor] == k)
            levels = {top - gap for gap in gaps} | {self._grid.position}
            for post in levels & set(own[own >= crossed].tolist()):
                if post <= top:
                    laws[post] = expected.cells(k)
        return laws, last

    def _level(self, place: int) -> int:
        """Return the index of the level of an anchor, given by its place."""
        if place == self._grid.claim:
            return self._grid.position
        return int(self._grid.anchors[place])

    def _nearest(self, laws: dict[int, Cells]) -> dict[int, Region]:
        """Return the region of each post; all are computed together."""
        if not laws:
            return {}
        size = max(len(zeros) for zeros, _ in laws.values())
        bounds = [self.at(post).lines for post in laws]
        longest = max(map(len, bounds))
        # All problems get the same number of cells, by splits of the last cell, and of
        # lines, by repetitions of the last line.
        found = nearest_regions(
            np.stack([_split(zeros, size) for zeros, _ in laws.values()]),
            np.stack([_split(ones, size) for _, ones in laws.values()]),
            np.stack(
                [
                    np.pad(at, ((0, longest - len(at)), (0, 0)), mode="edge")
                    for at in bounds
                ]
            ),
        )
        return dict(zip(laws, found, strict=True))

    def _posts(
        self,
        regions: dict[int, Region],
        laws: dict[int, Cells],
        leading: NDArray[np.intp],
        crossed: int,
    ) -> list[Post]:
        """Return the bets of leaders at all open levels.

        Each level takes the region of the neighbouring post with the larger expected
        gain minus price; there is no bet at a level where neither is positive.

        Args:
            regions: The region of each post, by the index of its level.
            laws: The expected law of the leader of each post.
            leading: The leader at every anchor, -1 for none.
            crossed: Number of levels that need no more bets.
        """
        posts = sorted(regions)
        if not posts:
            return []
        open_levels = np.arange(crossed, posts[-1] + 1)
        gains, prices = np.zeros((2, len(open_levels)))
        chosen = np.full(len(open_levels), -1)
        for k, post in enumerate(posts):
            start = max(posts[k - 1] + 1 - crossed, 0) if k else 0
            near = slice(start, posts[min(k + 1, len(posts) - 1)] + 1 - crossed)
            # Each level compares the post below with the post above.
            price = regions[post].prices(
                [self.at(level).pair for level in open_levels[near].tolist()]
            )
            gain = _expected(regions[post], laws[post]) - price
            better = gain > gains[near]
            gains[near][better] = gain[better]
            prices[near][better] = price[better]
            chosen[near][better] = k
        bets = []
        for k in np.unique(chosen[chosen >= 0]):
            own = chosen == k
            leader = int(leading[self._grid.anchor[posts[k]]])
            bets.append(Post(leader, regions[posts[k]], open_levels[own], prices[own]))
        return bets

    def _learned(
        self, level: int, regions: dict[int, Region], laws: dict[int, Cells]
    ) -> tuple[Region, float]:
        """Return the region of the post nearest to a level, and its price at the level.

        If the price exceeds the expected gain, the region without a bet is returned.
        """
        near = min(regions, key=lambda post: abs(post - level), default=None)
        if near is not None:
            price = regions[near].price(self.at(level).pair)
            if _expected(regions[near], laws[near]) > price:
                return regions[near], price
        return NOTHING, 0.0

    def _ready(self, level: int) -> list[tuple[Region, float]]:
        """Return the regions at a level that need no learning, each with its price."""
        if level not in self._fixed_regions:
            at = self.at(level)
            weights = (at.pair.p + at.pair.q) / 2
            zeros, ones = Law(STRETCH * at.pair.log_odds, weights).cells()
            regions = nearest_regions(zeros[None], ones[None], at.lines[None])
            claim = self._claim.at(float(self._grid.values[level]))
            # Hard bets are on log-odds beyond the largest ε of the curve.
            epsilon = max(epsilon for epsilon, _ in claim.tangents())
            regions += map(partial(_hard, epsilon), self.hard)
            self._fixed_regions[level] = [
                (region, region.price(at.pair)) for region in regions
            ]
        return self._fixed_regions[level]


def _expected(region: Region, law: Cells) -> float:
    """Return the expected log gain of a call under a law, before the price, in nats."""
    zeros, ones = law
    on_zeros, on_ones = region.choose(np.log(ones) - np.log(zeros))
    return float(zeros @ on_zeros + ones @ on_ones) / 2


def _hard(epsilon: float, fraction: float) -> Region:
    """Return the region of three bets: a fraction on coin 0, on coin 1, or no bet."""
    lost, gained = 1 - fraction, 1 + fraction * math.exp(-epsilon)
    return Region(np.array([[1.0, 1.0], [lost, gained], [gained, lost]]))


def _split(cells: Floats, count: int) -> Floats:
    """Return ``count`` cells: the last cell is cut into equal parts."""
    parts = count - len(cells) + 1
    return np.append(cells[:-1], np.full(parts, cells[-1] / parts))
