"""The theorems that make a refutation valid, checked on every forecast: no bet gains in expectation if the claim is true.

Expectations are exact: over both coins and all outputs of the extreme pair, and for whole games over all that may happen.
"""

import itertools
import math
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from auditdp.betting.limits import LIMITS
from auditdp.betting.wealth import levels as levels_module
from auditdp.betting.wealth import mixture as module
from auditdp.betting.wealth.forecasts import Forecasts, Law
from auditdp.betting.wealth.levels import level_grid
from auditdp.betting.wealth.mixture import Wealth
from auditdp.betting.wealth.plans import Planner
from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP

levels = st.floats(1e-3, 30.0)
deltas = st.floats(0.0, 0.9)
odds = st.floats(-60.0, 60.0) | st.sampled_from([math.inf, -math.inf, 0.0])


def bet(wealth, log_odds, coins, leaders=None, *, law=None, pair=0):
    message = [
        Forecasts.of_calls(row[None], np.asarray(coins, np.int8), law)
        for row in np.atleast_2d(log_odds)
    ]
    return wealth.bet(message, len(coins), leaders, pair=pair)


def both(log_odds, epsilon):
    """Return f if the coin shows 1, and f if it shows 0."""
    factors = []
    for coin in (1, 0):
        wealth = Wealth(PureDP(epsilon))
        bet(wealth, [[log_odds]], [coin])
        factors.append(math.exp(wealth.log_wealth))
    return factors


@given(odds, levels, st.floats(0.0, 1.0))
def test_no_forecast_gains_on_a_posterior_within_the_cap(log_odds, epsilon, share):
    posterior = expit((2 * share - 1) * epsilon)
    right, wrong = both(log_odds, epsilon)
    assert posterior * right + (1 - posterior) * wrong <= 1 + 1e-12


@given(odds, levels)
def test_at_the_cap_every_forecast_is_fair(log_odds, epsilon):
    """The test is not conservative: at the posterior that the claim just allows, the expectation is exactly 1."""
    right, wrong = both(log_odds, epsilon)
    posterior = expit(math.copysign(epsilon, log_odds))
    assert posterior * right + (1 - posterior) * wrong == pytest.approx(1.0, abs=1e-12)


@given(st.floats(0.01, 60.0) | st.just(math.inf), levels, st.floats(1e-3, 1.0))
def test_a_posterior_beyond_the_cap_is_what_pays(beyond, epsilon, excess):
    posterior = expit(epsilon + excess)
    right, wrong = both(epsilon + min(beyond, excess), epsilon)
    assert posterior * right + (1 - posterior) * wrong > 1 - 1e-15


@given(odds, levels)
def test_a_factor_is_never_negative_and_never_above_its_supremum(log_odds, epsilon):
    right, wrong = both(log_odds, epsilon)
    for value in (right, wrong):
        assert 0 <= value <= (1 + math.exp(-epsilon)) * (1 + 1e-12)
    mirrored = both(-log_odds, epsilon)
    assert [right, wrong] == pytest.approx([mirrored[1], mirrored[0]], abs=1e-15)


def reveal_or_respond(epsilon, delta):
    """Probabilities of the four outputs of the extreme pair: bit 1, bit 0, revealed 1, revealed 0, for coins 1 and 0."""
    keep, lose = expit(epsilon), expit(-epsilon)
    rest = 1 - delta
    return {
        1: [rest * keep, rest * lose, delta, 0.0],
        0: [rest * lose, rest * keep, 0.0, delta],
    }


def outcomes(epsilon, delta):
    """Return (probability, coin, output) of everything that one call of the extreme pair may give."""
    pair = reveal_or_respond(epsilon, delta)
    return [
        (p / 2, coin, y)
        for coin, law in pair.items()
        for y, p in enumerate(law)
        if p > 0
    ]


def some_law(random, most=4):
    """What a forecaster may expect: anything, or nothing."""
    count = random.integers(0, most)
    return Law(
        random.normal(size=count) * 3
        if random.random() < 0.7
        else np.full(count, np.inf),
        random.random(count),
    )


@given(levels, deltas, st.lists(odds, min_size=4, max_size=4), st.integers(0, 10**6))
def test_no_bet_gains_on_the_extreme_pair_of_an_approximate_claim(
    epsilon, delta, forecasts, seed
):
    """Any forecast for each of the four outputs, whatever is expected, by every way of betting and for leaders."""
    law, expected = some_law(np.random.default_rng(seed)), 0.0
    for p, coin, y in outcomes(epsilon, delta):
        wealth = Wealth(ApproxDP(epsilon, delta), leader=1.0)
        bet(wealth, [[forecasts[y]]], [coin], np.zeros(1, int), law=law)
        by_way = wealth.log_by_way[0] if delta else [wealth.log_wealth]
        expected = expected + p * np.exp([*by_way, wealth.log_led[0, 0]])
    assert np.max(expected) <= 1 + 1e-9


@given(st.floats(1e-3, 10.0), st.floats(1e-3, 0.5), st.floats(1.5, 10.0))
@settings(max_examples=20)
def test_more_delta_than_was_claimed_pays(epsilon, delta, times):
    """By some way of betting, for who is certain of what is revealed and says nothing of the rest."""
    claim, forecasts, expected = (
        ApproxDP(epsilon, delta / times),
        [0.0, 0.0, math.inf, -math.inf],
        0.0,
    )
    law = Law(
        np.array([0.0, math.inf, -math.inf]),
        np.array([1 - delta, delta / 2, delta / 2]),
    )
    for p, coin, y in outcomes(epsilon, delta):
        wealth = Wealth(claim)
        bet(wealth, [[forecasts[y]]], [coin], law=law)
        expected = expected + p * np.exp(wealth.log_by_way[0])
    assert expected.max() > 1


CLAIMS = [
    PureDP(0.5),
    PureDP(2.0),
    ApproxDP(1.0, 0.1),
    ApproxDP(0.2, 0.4),
    GaussianDP(0.8),
]
TRUTHS = [(0.5, 0.0), (2.0, 0.0), (1.0, 0.1), (0.2, 0.4), None]


def gaussian_bits(mu):
    """The four-output coarsening of N(0, 1) and N(mu, 1) at thresholds mu/2 and mu/2 ± 1: a true mu-GDP pair."""
    from scipy.stats import norm

    edges = np.array([-np.inf, mu / 2 - 1, mu / 2, mu / 2 + 1, np.inf])
    return [
        (p / 2, coin, y)
        for coin, centre in ((1, mu), (0, 0.0))
        for y, p in enumerate(np.diff(norm.cdf(edges - centre)))
    ]


def expected_wealth(claim, possible, seed, grid, *, calls=3, peek=False, pairs=1):
    """The expected wealth against every level after whole games, over everything that may happen; it begins at 1.

    Three forecasters answer as they like, and expect what they like, differently after every history; leaders follow
    whoever has won most, as in the game, or, if they ``peek``, whoever wins most in the very batch. With several pairs,
    the one that is played depends on the past as well.
    """
    total = 0.0
    for path in itertools.product(possible, repeat=calls):
        wealth, won, history = (
            Wealth(claim, shares=(1, 1, 1), leader=1.5, levels=grid),
            None,
            [],
        )
        for _, coin, y in path:
            random = np.random.default_rng([seed, *history])
            table = random.normal(size=(3, 4)) * 3
            table[:, random.random(4) < 0.2] *= math.inf
            law, pair = some_law(random), int(random.integers(pairs))
            leaders = None if won is None else np.argmax(won.max(axis=2), axis=0)
            if peek:
                trial = Wealth(claim, shares=(1, 1, 1), leader=1.5, levels=grid)
                leaders = np.argmax(
                    bet(trial, table[:, [y]], [coin], law=law).max(axis=2), axis=0
                )
            new = bet(wealth, table[:, [y]], [coin], leaders, law=law, pair=pair)
            won = new if won is None else new + 0.5 * np.maximum(won, -1e3)
            history += [coin, y]
        total = total + math.prod(p for p, _, _ in path) * np.exp(wealth.log_by_level)
    return total


@pytest.fixture(autouse=True)
def _known_levels(monkeypatch):
    """What is known of a level is computed once for all games of a test: its pair, its lines, and its ready regions."""
    known, made = {}, Planner.__init__

    def init(self, claim, grid):
        made(self, claim, grid)
        self._level_plans, self._fixed_regions = known.setdefault(
            (str(claim), tuple(grid.values)), ({}, {})
        )

    monkeypatch.setattr(Planner, "__init__", init)


@pytest.mark.dear
@pytest.mark.parametrize(
    ("claim", "truth"), list(zip(CLAIMS, TRUTHS, strict=True)), ids=map(str, CLAIMS)
)
@pytest.mark.parametrize(("seed", "calls", "pairs"), [(0, 2, 1), (1, 2, 2)])
def test_whole_games_with_leaders_gain_nothing_at_any_true_level(
    claim, truth, seed, calls, pairs
):
    """Every coin and output of all calls, played against the true level, those above and the claim's."""
    possible = gaussian_bits(0.8) if truth is None else outcomes(*truth)
    calls += claim.delta == 0
    grid = (
        level_grid(claim, ratio=2.5)
        if claim.delta == 0
        else claim.level * np.array([0.5, 0.8, 1.0, 1.2, 2.0])
    )
    with (
        patch.object(module, "STARTS", {0: 0.5, 1: 0.3, 2: 0.2}),
        patch.object(levels_module, "LIMITS", replace(LIMITS, anchor_spacing=2)),
    ):
        expected = expected_wealth(
            claim, possible, seed, grid, calls=calls, pairs=pairs
        )
        assert (expected[grid >= claim.level] <= 1 + 1e-9).all()


@pytest.mark.parametrize(
    ("claim", "truth"),
    [(CLAIMS[3], TRUTHS[3]), (CLAIMS[4], None)],
    ids=map(str, CLAIMS[3:]),
)
def test_whole_games_in_batches_of_several_calls_gain_nothing(claim, truth):
    """After a first call, two are bet on at once: bets see both outputs, and plans are those of before."""
    possible = gaussian_bits(0.8) if truth is None else outcomes(*truth)
    grid, total, before = claim.level * np.array([0.7, 1.0, 1.3]), 0.0, 0.0
    law, message = (
        Law(np.array([-3.0, 1.0, math.inf]), np.ones(3)),
        np.array([[-3.0], [math.inf]]),
    )
    for (p, one, v), (q, other, w) in itertools.product(possible, repeat=2):
        wealth = Wealth(claim, shares=(1, 1), leader=1.0, levels=grid)
        won = bet(wealth, message, [0], law=law)
        before = np.exp(wealth.log_by_level)
        table = (
            np.random.default_rng([v, w]).normal(size=(2, 2)) * 3
        )  # by what both calls gave
        bet(wealth, table, [one, other], np.argmax(won.max(axis=2), axis=0), law=law)
        total = total + p * q * np.exp(wealth.log_by_level)
    assert (
        total[grid >= claim.level] <= before[grid >= claim.level] * (1 + 1e-9)
    ).all()


def test_a_leader_who_peeks_is_found_out():
    """Guards the guard: leaders chosen from the batch they bet on would gain."""
    claim, grid = PureDP(0.5), level_grid(PureDP(0.5), ratio=2.5)
    with (
        patch.object(module, "STARTS", {0: 1.0}),
        patch.object(levels_module, "LIMITS", replace(LIMITS, anchor_spacing=2)),
    ):
        expected = expected_wealth(
            claim, outcomes(0.5, 0.0), 0, grid, calls=2, peek=True
        )
        assert expected[grid == claim.level] > 1.01


def test_a_price_that_is_a_thousandth_too_small_is_found_out(monkeypatch):
    """Guards the guard: the bets of a true claim are fair to less than that."""
    from auditdp.betting.wealth.regions import Region

    claim, price = ApproxDP(0.2, 0.4), Region.price
    monkeypatch.setattr(Region, "price", lambda self, pair: price(self, pair) - 1e-3)
    law, expected = (
        Law(np.array([-math.inf, -0.2, 0.2, math.inf]), np.array([2.0, 1.0, 1.0, 2.0])),
        0.0,
    )
    for p, coin, y in outcomes(0.2, 0.4):
        wealth = Wealth(claim)
        bet(wealth, [[[0.25, -0.25, math.inf, -math.inf][y]]], [coin], law=law)
        expected = expected + p * np.exp(wealth.log_by_way[0])
    assert expected.max() > 1 + 5e-4


@pytest.mark.parametrize("delta", [0.0, 0.2])
@pytest.mark.parametrize("seed", [0, 1])
def test_levels_below_the_claim_are_true_levels_too(delta, seed):
    """A mechanism that is better than claimed: every level from the truth up is fair, those below the claim included."""
    claim, truth = (PureDP(2.0), 0.5) if delta == 0 else (ApproxDP(2.0, delta), 0.5)
    grid = np.array([0.1, 0.25, 0.5, 0.8, 1.2, 2.0, 3.0])
    with (
        patch.object(module, "STARTS", {0: 0.6, 2: 0.4}),
        patch.object(levels_module, "LIMITS", replace(LIMITS, anchor_spacing=2)),
    ):
        expected = expected_wealth(
            claim, outcomes(truth, delta), seed, grid, calls=3 if delta == 0 else 2
        )
        assert (expected[grid >= truth] <= 1 + 1e-9).all()


@given(
    st.sampled_from([PureDP(0.5), PureDP(3.0)]),
    st.lists(st.tuples(odds, st.integers(0, 1)), min_size=2, max_size=30),
    st.integers(1, 29),
)
def test_splitting_a_batch_of_a_pure_claim_changes_nothing(claim, calls, cut):
    forecasts, coins = (
        np.array([[message for message, _ in calls]]),
        [coin for _, coin in calls],
    )
    whole, parts = Wealth(claim), Wealth(claim)
    bet(whole, forecasts, coins)
    cut = min(cut, len(calls) - 1)
    bet(parts, forecasts[:, :cut], coins[:cut])
    bet(parts, forecasts[:, cut:], coins[cut:])
    assert parts.log_wealth == pytest.approx(whole.log_wealth, abs=1e-9)


@given(
    st.sampled_from([PureDP(0.5), ApproxDP(1.0, 0.05), GaussianDP(0.8)]),
    st.lists(st.tuples(odds, st.integers(0, 1)), min_size=1, max_size=60),
    st.floats(1e-9, 0.9),
    st.floats(1e-9, 0.9),
)
def test_a_smaller_alpha_never_gives_a_larger_bound(claim, calls, one, other):
    wealth = Wealth(claim, leader=1.0, levels=level_grid(claim, ratio=1.3))
    leaders = np.zeros(len(wealth.anchors), int)
    law = Law(np.array([-3.0, 3.0]), np.ones(2))
    bet(
        wealth,
        [[message for message, _ in calls]],
        [coin for _, coin in calls],
        leaders,
        law=law,
    )
    assert (
        wealth.lower_bound(min(one, other))
        <= wealth.lower_bound(max(one, other))
        <= wealth.levels[-1]
    )
