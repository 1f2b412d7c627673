"""Bets against claims with a delta and against curves: what is settled is the product of the factors of the plan."""

import itertools
import math

import numpy as np
import pytest

from auditdp.betting.wealth import plans as module
from auditdp.betting.wealth.curve_regions import Curves
from auditdp.betting.wealth.forecasts import Forecasts, Law
from auditdp.betting.wealth.levels import Grid, level_grid
from auditdp.betting.wealth.mixture import Wealth
from auditdp.claims.dominating import DominatingPair
from auditdp.claims.statements import ApproxDP, GaussianDP

CLAIMS = [ApproxDP(1.0, 0.01), ApproxDP(0.3, 0.2), GaussianDP(1.0), GaussianDP(0.2)]


def law_of(claim, level):
    """What a forecaster expects who plays the pair of the claim at another level."""
    pair = DominatingPair.of(claim.at(level).statements())
    return Law(pair.log_odds, pair.p + pair.q)


def some_batch(claim, level, size, seed, forecasters=1):
    """Forecasts drawn from that law, with the coins that go with them: (log-odds, coins)."""
    random, law = np.random.default_rng(seed), law_of(claim, level)
    odds = random.choice(
        law.log_odds, (forecasters, size), p=law.weights / law.weights.sum()
    )
    return odds, (
        random.random(size) < 1 / (1 + np.exp(-odds[0].clip(-500, 500)))
    ).astype(np.int8)


def bets_of(claim, *, ratio=1.3, levels=None):
    wealth = Wealth(
        claim,
        shares=(1.0,),
        leader=1.0,
        levels=level_grid(claim, ratio=ratio) if levels is None else levels,
    )
    return wealth, Curves(claim, Grid(wealth.levels, wealth.position))


def settle(bets, odds, coins, law, leaders=None, *, pair=0, crossed=0):
    forecasts = [Forecasts.of_calls(row[None], coins, law) for row in odds]
    return bets.settle(forecasts, leaders, calls=len(coins), pair=pair, crossed=crossed)


@pytest.mark.parametrize(
    "claim", [*CLAIMS, GaussianDP(0.003), ApproxDP(1e-3, 1e-6)], ids=str
)
def test_rounding_is_towards_0_and_keeps_0_and_what_small_claims_need(claim):
    odds = np.concatenate(
        [np.linspace(-45, 45, 2001), [0.0, 1e-9, -1e-9, math.inf, -math.inf]]
    )
    bets = bets_of(claim)[1]
    rounded = bets.rounded(odds)
    assert (np.abs(rounded) <= np.abs(odds)).all()
    assert (rounded * odds >= 0)[np.isfinite(odds)].all()
    assert rounded[2001] == 0.0
    inside = np.abs(odds) < 39
    assert (
        np.abs(rounded - odds)[inside] <= 0.08 * np.sqrt(1 + odds[inside] ** 2) + 1e-12
    ).all()
    own = DominatingPair.of(claim.statements()).log_odds
    seen = own[np.isfinite(own) & (np.abs(own) < 39)]
    nearer = bets.rounded(seen)
    assert np.abs(nearer - seen).max() <= 0.08 * np.abs(seen).max(), (
        "a claim's own odds are told apart"
    )


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_what_is_settled_is_the_product_of_the_factors_of_the_plan(claim):
    """Call by call: the leaders' posts at every level, and all ways of all forecasters at every judged anchor."""
    truth = 1.6 * claim.level
    wealth, bets = bets_of(claim)
    law, leaders = law_of(claim, truth), np.zeros(len(wealth.anchors), int)
    for seed, size in enumerate((5, 3, 40)):
        odds, coins = some_batch(claim, truth, size, seed, forecasters=2)
        found = settle(bets, odds, coins, law, leaders if seed else None)
        plan, levels = bets.plans[0], wealth.levels
        led = np.zeros(len(levels))
        for post in plan.posts:
            for level, price in zip(post.levels, post.prices, strict=True):
                pair = DominatingPair.of(claim.at(float(levels[level])).statements())
                assert price == pytest.approx(post.region.price(pair), abs=1e-12)
                for message, coin in zip(odds[post.leader], coins, strict=True):
                    led[level] += (
                        post.region.choose(np.array([message]))[coin, 0] - price
                    )
        assert found.leaders == pytest.approx(led, abs=1e-9)
        assert (not plan.posts) == (seed == 0)
        won = np.zeros_like(found.at_anchors)
        for place, ways in zip(plan.places, plan.ways, strict=True):
            for way, (region, price) in enumerate(ways):
                for k in range(2):
                    for message, coin in zip(odds[k], coins, strict=True):
                        nearer = bets.rounded(np.array(message))
                        won[k, place, way] += (
                            region.choose(np.array([nearer]))[coin, 0] - price
                        )
        assert found.at_anchors == pytest.approx(won, abs=1e-9)
        claimed = int(np.searchsorted(wealth.anchors, wealth.position))
        assert plan.places[0] == claimed
    assert np.abs(found.leaders).max() > 0.1


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_every_price_pays_for_the_region_at_its_level(claim):
    wealth, bets = bets_of(claim)
    odds, coins = some_batch(claim, 1.6 * claim.level, 10, 0)
    settle(
        bets,
        odds,
        coins,
        law_of(claim, 1.6 * claim.level),
        np.zeros(len(wealth.anchors), int),
    )
    plan = bets.plans[0]
    for place, ways in zip(plan.places, plan.ways, strict=True):
        level = wealth.position if place == plan.places[0] else wealth.anchors[place]
        pair = DominatingPair.of(claim.at(float(wealth.levels[level])).statements())
        for region, price in ways[1:] if ways[0][0] is module.NOTHING else ways:
            assert price == pytest.approx(region.price(pair), abs=1e-12)
    assert sum(Curves.shares) == pytest.approx(1.0)
    assert {len(ways) for ways in plan.ways} == {len(Curves.shares)}
    taken = [level for post in plan.posts for level in post.levels]
    assert len(taken) == len(set(taken)), "one bet at each level"


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_a_plan_is_kept_until_the_calls_of_its_pair_have_grown_by_a_quarter(claim):
    _, bets = bets_of(claim, levels=np.array([claim.level]))
    law, leaders = law_of(claim, 1.6 * claim.level), np.zeros(1, int)
    plans, calls = [], []
    for seed, size in enumerate((8, 1, 8, 3, 2, 1, 10)):
        settle(bets, *some_batch(claim, 1.6 * claim.level, size, seed), law, leaders)
        plans.append(bets.plans[0])
        calls.append(size)
    renewed = [a is not b for a, b in itertools.pairwise(plans)]
    before = np.cumsum(calls)[:-1]
    expected, until = [], 1.0
    for played in before:
        expected.append(bool(played >= until))
        until = module.RENEWED * played if played >= until else until
    assert renewed == expected
    settle(bets, *some_batch(claim, 1.6 * claim.level, 4, 9), law, leaders, pair=1)
    assert bets.plans[1] is not bets.plans[0]
    assert bets.plans[0] is plans[-1]


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_within_a_plan_batches_may_be_split(claim):
    law, leaders = law_of(claim, 1.6 * claim.level), np.zeros(1, int)
    (_, whole), (_, parts) = (
        bets_of(claim, levels=np.array([claim.level])) for _ in "ab"
    )
    for bets in (whole, parts):
        settle(bets, *some_batch(claim, 1.6 * claim.level, 200, 1), law, leaders)
        settle(
            bets, *some_batch(claim, 1.6 * claim.level, 1, 2), law, leaders
        )  # renews: good for 50 calls more
    odds, coins = some_batch(claim, 1.6 * claim.level, 30, 3)
    together = settle(whole, odds, coins, law, leaders)
    pieces = [
        settle(parts, odds[:, a:b], coins[a:b], law, leaders)
        for a, b in ((0, 1), (1, 20), (20, 30))
    ]
    for name in ("leaders", "at_anchors"):
        assert sum(getattr(piece, name) for piece in pieces) == pytest.approx(
            getattr(together, name), abs=1e-9
        )


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_nothing_depends_on_the_batch_that_is_bet_on(claim):
    """The same plan whatever the coins and the forecasts of the batch are."""
    plans = []
    for seed in (1, 2):
        wealth, bets = bets_of(claim)
        settle(
            bets,
            *some_batch(claim, 1.6 * claim.level, 20, seed),
            law_of(claim, 1.6 * claim.level),
            None,
        )
        leaders = np.zeros(len(wealth.anchors), int)
        settle(
            bets,
            *some_batch(claim, 1.6 * claim.level, 9, seed),
            law_of(claim, 1.6 * claim.level),
            leaders,
        )
        plans.append(bets.plans[0])
    one, other = (
        [(post.levels.tolist(), post.prices.tolist()) for post in plan.posts]
        for plan in plans
    )
    assert one == other
    assert len(one) > 0


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_levels_that_are_crossed_need_no_bets(claim):
    wealth, bets = bets_of(claim, ratio=1.1)
    leaders, law = np.zeros(len(wealth.anchors), int), law_of(claim, 1.6 * claim.level)
    crossed = wealth.position - 3
    found = settle(
        bets,
        *some_batch(claim, 1.6 * claim.level, 30, 4),
        law,
        leaders,
        crossed=crossed,
    )
    assert (found.leaders[:crossed] == 0).all()
    assert (found.leaders[crossed : wealth.position] != 0).any()
    everything = settle(
        bets,
        *some_batch(claim, 1.6 * claim.level, 9, 4),
        law,
        leaders,
        crossed=len(wealth.levels),
        pair=1,
    )
    assert np.isfinite(everything.at_anchors).all()


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_forecasters_that_abstain_throughout_win_and_lose_nothing(claim):
    wealth, bets = bets_of(claim)
    leaders = np.zeros(len(wealth.anchors), int)
    for who in (None, leaders, leaders + 1):
        found = bets.settle([Forecasts.abstaining(2)], who, calls=7, pair=0, crossed=0)
        for part in (
            found.leaders,
            found.at_anchors,
            found.right,
            found.wrong,
        ):
            assert (part == 0).all()


@pytest.mark.parametrize("claim", [ApproxDP(1.0, 0.01), GaussianDP(1.0)], ids=str)
def test_saying_nothing_is_neither_right_nor_wrong(claim):
    _, bets = bets_of(claim, levels=np.array([claim.level]))
    found = settle(
        bets,
        np.zeros((1, 6)),
        np.array([0, 1, 1, 0, 1, 1]),
        law_of(claim, 1.5 * claim.level),
        np.zeros(1, int),
    )
    assert (found.right[0], found.wrong[0]) == (0, 0)
    found = settle(
        bets,
        np.full((1, 6), 30.0),
        np.array([0, 1, 1, 0, 1, 1]),
        law_of(claim, 1.5 * claim.level),
        None,
    )
    assert (found.right[0], found.wrong[0]) == (4, 2)


EXTREME = [
    ApproxDP(64.0, 1e-12),
    ApproxDP(700.0, 0.1),
    ApproxDP(1000.0, 0.01),
    ApproxDP(1.0, 0.9),
    ApproxDP(1e-3, 1e-12),
]


@pytest.mark.parametrize(
    "claim", [*EXTREME, *(GaussianDP(mu) for mu in (0.01, 1.0, 30.0, 64.0))], ids=str
)
@pytest.mark.parametrize("size", [1e-9, 1e-3, 3.0, 700.0, math.inf])
def test_extreme_claims_and_forecasts_leave_the_wealth_a_number(claim, size):
    """On grids up to 64 and beyond: every forecast right, then wrong."""
    wealth = Wealth(
        claim, shares=(1.0, 2.0), leader=1.0, levels=level_grid(claim, ratio=2.0)
    )
    law, random = (
        Law(np.array([-size, size, 0.0]), np.ones(3)),
        np.random.default_rng(0),
    )
    for side in (1, 1, -1):
        coins = random.integers(0, 2, 20).astype(np.int8)
        odds = side * np.where(coins == 1, size, -size)
        message = [
            Forecasts.of_calls(odds, coins, law),
            Forecasts.of_calls(np.zeros(20), coins),
        ]
        wealth.bet(message, 20, np.zeros(len(wealth.anchors), int))
    assert not np.isnan(wealth.log_by_level).any()
    assert not np.isnan(wealth.log_by_forecaster).any()


def test_a_claim_beyond_all_doubles_is_never_refuted():
    claim = ApproxDP(1000.0, 0.01)
    wealth = Wealth(claim)
    for _ in range(3):
        wealth.bet(
            [Forecasts.of_calls(np.full(50, math.inf), np.ones(50, np.int8))], 50
        )
    assert wealth.log_wealth <= 1e-6


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_what_is_beyond_the_claim_is_won_at_nearly_the_rate_of_the_nearest_law(claim):
    """Guards that the bets are made at all: by a forecaster who plays the true law at 1.6 times the level."""
    truth = 1.6 * claim.level
    wealth = Wealth(claim, leader=1.0, levels=level_grid(claim, ratio=1.05))
    law, anchors = law_of(claim, truth), np.zeros(len(wealth.anchors), int)
    path = []
    for seed in range(8):
        odds, coins = some_batch(claim, truth, 2_000, seed)
        wealth.bet([Forecasts.of_calls(odds, coins, law)], 2_000, anchors)
        path.append(wealth.log_wealth)
    assert wealth.refuted(0.05)
    assert claim.level <= wealth.lower_bound(0.05) <= truth
    assert wealth.lower_bound(0.05) >= (0.85 if claim.level >= 1 else 0.6) * truth
