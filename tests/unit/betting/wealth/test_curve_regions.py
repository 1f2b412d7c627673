"""Bets against claims with a delta and against curves.

A batch is settled by the factors of the plan that was made before it.
"""

from math import inf

import numpy as np
import pytest
from numpy.random import default_rng

from auditdp import ApproxDP, GaussianDP
from auditdp.betting.wealth import plans as module
from auditdp.betting.wealth.curve_regions import Curves
from auditdp.betting.wealth.forecasts import Forecasts, Law
from auditdp.betting.wealth.levels import Grid, level_grid
from auditdp.betting.wealth.mixture import Wealth
from auditdp.claims.dominating import DominatingPair

CLAIMS = [ApproxDP(1.0, 0.01), ApproxDP(0.3, 0.2), GaussianDP(1.0), GaussianDP(0.2)]
each_claim = pytest.mark.parametrize("claim", CLAIMS, ids=str)


def pair_at(claim, level):
    return DominatingPair.of(claim.at(float(level)).statements())


class Bettor:
    """Bets of forecasters who expect the claim's own pair at 1.6 times its level."""

    def __init__(self, claim, *, ratio=1.3, levels=None):
        if levels is None:
            levels = level_grid(claim, ratio=ratio)
        self.truth = 1.6 * claim.level
        self.wealth = Wealth(claim, leader=1.0, levels=np.array(levels))
        self.levels = self.wealth.levels
        self.position = self.wealth.position
        self.bets = Curves(claim, Grid(self.levels, self.position))
        pair = pair_at(claim, self.truth)
        self.law = Law(pair.log_odds, pair.p + pair.q)
        self.leaders = np.zeros(len(self.wealth.anchors), int)

    def batch(self, size, seed, forecasters=1):
        """Return forecasts drawn from that law, and coins of the first one's odds."""
        random = default_rng(seed)
        weights = self.law.weights / self.law.weights.sum()
        odds = random.choice(self.law.log_odds, (forecasters, size), p=weights)
        posterior = 1 / (1 + np.exp(-odds[0].clip(-500, 500)))
        return odds, (random.random(size) < posterior).astype(np.int8)

    def play(self, size, seed, **options):
        return self.settle(*self.batch(size, seed), **options)

    def settle(self, odds, coins, *, led=True, pair=0, crossed=0):
        forecasts = [Forecasts.of_calls(row, coins, self.law) for row in odds]
        leaders = self.leaders if led else None
        return self.bets.settle(
            forecasts, leaders, calls=len(coins), pair=pair, crossed=crossed
        )


@pytest.mark.parametrize(
    "claim",
    [
        *CLAIMS,
        GaussianDP(0.003),
        ApproxDP(1e-3, 1e-6),
    ],
    ids=str,
)
def test_rounding_is_towards_0_and_small_compared_with_the_claim(claim):
    bets = Bettor(claim).bets
    odds = np.append(np.linspace(-39, 39, 2001), [1e-9, -1e-9])
    certain = np.array([45, inf, -inf])
    for each in (odds, certain):
        assert (np.abs(bets.rounded(each)) <= np.abs(each)).all()
        assert (np.sign(bets.rounded(each)) * each >= 0).all()
    error = np.abs(bets.rounded(odds) - odds)
    assert (error <= 0.08 * np.sqrt(1 + odds**2) + 1e-12).all()
    own = DominatingPair.of(claim.statements()).log_odds
    own = own[np.abs(own) < 39]
    error = np.abs(bets.rounded(own) - own)
    assert error.max() <= 0.08 * np.abs(own).max(), "the claim's own odds stay apart"


def log_gain(region, price, odds, coins):
    """Return the gain of all calls by one region, call by call."""
    factors = region.choose(odds)[coins, np.arange(len(coins))]
    return (factors - price).sum()


@each_claim
def test_a_batch_is_settled_by_the_regions_and_prices_of_its_plan(claim):
    """By every call: leaders at every level, and all ways at every judged anchor."""
    bettor = Bettor(claim)
    bets = bettor.bets
    levels = bettor.levels

    def check_price(region, price, level):
        own = region.price(pair_at(claim, levels[level]))
        assert price == pytest.approx(own, abs=1e-12)

    for seed, size in enumerate((5, 3, 40)):
        odds, coins = bettor.batch(size, seed, forecasters=2)
        found = bettor.settle(odds, coins, led=seed > 0)
        plan = bets.plans[0]
        assert (not plan.posts) == (seed == 0)
        led = np.zeros(len(levels))
        bet_on = []
        for post in plan.posts:
            bet_on += list(post.levels)
            for level, price in zip(post.levels, post.prices, strict=True):
                check_price(post.region, price, level)
                led[level] += log_gain(post.region, price, odds[post.leader], coins)
        assert found.leaders == pytest.approx(led, abs=1e-9)
        assert len(bet_on) == len(set(bet_on)), "one bet at each level"
        rounded = bets.rounded(odds)
        gained = np.zeros_like(found.at_anchors)
        for place, ways in zip(plan.places, plan.ways, strict=True):
            assert len(ways) == len(Curves.shares)
            level = bettor.wealth.anchors[place]
            if place == plan.places[0]:
                level = bettor.position
            for way, (region, price) in enumerate(ways):
                if region is not module.NOTHING:
                    check_price(region, price, level)
                for k in range(2):
                    gained[k, place, way] = log_gain(region, price, rounded[k], coins)
        assert found.at_anchors == pytest.approx(gained, abs=1e-9)
        claimed = np.searchsorted(bettor.wealth.anchors, bettor.position)
        assert plan.places[0] == claimed
    assert np.abs(found.leaders).max() > 0.1
    assert sum(Curves.shares) == pytest.approx(1.0)


@pytest.mark.parametrize("claim", CLAIMS[1:3], ids=str)
def test_a_plan_stays_until_the_calls_of_its_pair_have_grown_by_a_quarter(claim):
    bettor = Bettor(claim, levels=[claim.level])
    plan = None
    calls = 0
    until = 0.0
    for seed, size in enumerate((8, 1, 8, 3, 2, 1, 10)):
        bettor.play(size, seed)
        assert (bettor.bets.plans[0] is not plan) == (calls >= until)
        if calls >= until:
            until = max(module.RENEWED * calls, 1.0)
        plan, calls = bettor.bets.plans[0], calls + size
    bettor.play(4, 9, pair=1)
    assert bettor.bets.plans[1] is not bettor.bets.plans[0]
    assert bettor.bets.plans[0] is plan


@each_claim
def test_levels_that_are_crossed_need_no_bets(claim):
    bettor = Bettor(claim, ratio=1.1)
    crossed = bettor.position - 3
    leaders = bettor.play(30, 4, crossed=crossed).leaders
    assert not leaders[:crossed].any()
    assert leaders[crossed : bettor.position].any()
    found = bettor.play(9, 4, crossed=len(bettor.levels), pair=1)
    assert np.isfinite(found.at_anchors).all()


@pytest.mark.parametrize("claim", CLAIMS[1:3], ids=str)
def test_calls_beyond_the_cap_are_right_or_wrong(claim):
    bettor = Bettor(claim, levels=[claim.level])
    coins = np.array([0, 1, 1, 0, 1, 1])
    for odds, right, wrong in ((0.0, 0, 0), (30.0, 4, 2)):
        found = bettor.settle(np.full((1, 6), odds), coins)
        assert found.right[0] == right
        assert found.wrong[0] == wrong


@pytest.mark.parametrize(
    "claim",
    [
        ApproxDP(64.0, 1e-12),
        ApproxDP(1e-3, 0.9),
        GaussianDP(0.01),
        GaussianDP(30.0),
    ],
    ids=str,
)
@pytest.mark.parametrize("size", [1e-9, 700.0, inf])
def test_extreme_claims_and_forecasts_leave_the_wealth_a_number(claim, size):
    """On grids up to 64 and beyond: every forecast right twice, then wrong."""
    levels = level_grid(claim, ratio=2.0)
    wealth = Wealth(claim, shares=(1.0, 2.0), leader=1.0, levels=levels)
    law = Law(np.array([-size, size, 0.0]), np.ones(3))
    random = default_rng(0)
    for side in (1, 1, -1):
        coins = random.integers(0, 2, 20).astype(np.int8)
        odds = side * np.where(coins == 1, size, -size)
        sure = Forecasts.of_calls(odds, coins, law)
        unsure = Forecasts.of_calls(np.zeros(20), coins)
        wealth.bet([sure, unsure], 20, np.zeros(len(wealth.anchors), int))
    assert not np.isnan(wealth.log_by_level).any()
    # An average of ways of betting is never lost altogether.
    assert np.isfinite(wealth.log_by_forecaster).all()


def test_a_claim_beyond_all_doubles_is_never_refuted():
    wealth = Wealth(ApproxDP(1000.0, 0.01))
    certain = Forecasts.of_calls(np.full(50, inf), np.ones(50, np.int8))
    for _ in range(3):
        wealth.bet([certain], 50)
    assert wealth.log_wealth <= 1e-6


@each_claim
def test_a_violation_is_bounded_at_nearly_its_level_by_the_true_law(claim):
    """Guards that the bets are made at all."""
    bettor = Bettor(claim, ratio=1.05)
    wealth = bettor.wealth
    for seed in range(8):
        odds, coins = bettor.batch(2_000, seed)
        forecasts = Forecasts.of_calls(odds, coins, bettor.law)
        wealth.bet([forecasts], 2_000, bettor.leaders)
    assert wealth.refuted(0.05)
    share = 0.85 if claim.level >= 1 else 0.6
    assert share * bettor.truth <= wealth.lower_bound(0.05) <= bettor.truth
