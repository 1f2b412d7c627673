"""The theorems that make a refutation valid, checked on every forecast: no bet gains in expectation if the claim is true.

Expectations are exact: over both coins and all outputs of the extreme pair, and for whole games over all that may happen.
"""

import itertools
import math
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from auditdp.betting import wealth as module
from auditdp.betting.forecasts import Forecasts
from auditdp.betting.levels import level_grid
from auditdp.betting.wealth import FRACTIONS, Wealth
from auditdp.claims import ApproxDP, GaussianDP, PureDP

levels = st.floats(1e-3, 30.0)
deltas = st.floats(0.0, 0.9)
odds = st.floats(-60.0, 60.0) | st.sampled_from([math.inf, -math.inf, 0.0])


def bet(wealth, log_odds, coins, leaders=None):
    return wealth.bet([Forecasts.of_calls(np.atleast_2d(log_odds), np.asarray(coins, np.int8))], len(coins), leaders)


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
    return {1: [rest * keep, rest * lose, delta, 0.0], 0: [rest * lose, rest * keep, 0.0, delta]}


def outcomes(epsilon, delta):
    """Return (probability, coin, output) of everything that one call of the extreme pair may give."""
    pair = reveal_or_respond(epsilon, delta)
    return [(p / 2, coin, y) for coin, law in pair.items() for y, p in enumerate(law) if p > 0]


def by_fraction(claim, log_odds, coin):
    """The factor of every single bet of one forecaster after one call, shape (tangents * fractions,)."""
    factors = []
    for fraction in FRACTIONS:
        with patch.object(module, "FRACTIONS", (fraction,)):
            wealth = Wealth(claim)
            bet(wealth, [[log_odds]], [coin])
            factors.append(math.exp(wealth.log_wealth))
    return np.array(factors)


def expectation(claim, epsilon, delta, forecasts):
    return sum(p * by_fraction(claim, forecasts[y], coin) for p, coin, y in outcomes(epsilon, delta))


@given(levels, deltas, st.lists(odds, min_size=4, max_size=4))
def test_no_bet_gains_on_the_extreme_pair_of_an_approximate_claim(epsilon, delta, forecasts):
    """Any forecast for each of the four outputs, and every fraction."""
    assert expectation(ApproxDP(epsilon, delta), epsilon, delta, forecasts).max() <= 1 + 1e-12


@given(levels, st.floats(1e-6, 0.9), st.floats(0.01, 20.0))
def test_the_price_of_delta_is_the_smallest_that_is_valid(epsilon, delta, beyond):
    """The best forecast makes all bets exactly fair, so a smaller price would be invalid."""
    sure = [epsilon + beyond, -epsilon - beyond, math.inf, -math.inf]
    gains = expectation(ApproxDP(epsilon, delta), epsilon, delta, sure)
    assert gains == pytest.approx([1.0] * len(FRACTIONS), abs=1e-12)


@given(st.floats(1e-3, 10.0), st.floats(1e-3, 0.5), st.floats(1.5, 10.0))
def test_more_delta_than_was_claimed_pays(epsilon, delta, times):
    claim = ApproxDP(epsilon, delta / times)
    assert expectation(claim, epsilon, delta, [math.inf, -math.inf, math.inf, -math.inf]).max() > 1


CLAIMS = [PureDP(0.5), PureDP(2.0), ApproxDP(1.0, 0.1), ApproxDP(0.2, 0.4), GaussianDP(0.8)]
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


def expected_wealth(claim, possible, seed, grid, *, calls=3, peek=False):
    """The expected wealth against every level after whole games, over everything that may happen; it begins at 1.

    Three forecasters answer as they like, differently after every history; leaders follow whoever has won most, as in the
    game, or, if they ``peek``, whoever wins most in the very batch.
    """
    total = 0.0
    for path in itertools.product(possible, repeat=calls):
        wealth, won, history = Wealth(claim, shares=(1, 1, 1), leader=1.5, levels=grid), None, []
        for _, coin, y in path:
            table = np.random.default_rng([seed, *history]).normal(size=(3, 4)) * 3
            table[:, np.random.default_rng([seed, 7, *history]).random(4) < 0.2] *= math.inf
            leaders = None if won is None else np.argmax(won, axis=0)
            if peek:
                trial = Wealth(claim, shares=(1, 1, 1), leader=1.5, levels=grid)
                leaders = np.argmax(bet(trial, table[:, [y]], [coin]), axis=0)
            new = bet(wealth, table[:, [y]], [coin], leaders)
            won = new if won is None else new + 0.5 * np.maximum(won, -1e3)
            history += [coin, y]
        total = total + math.prod(p for p, _, _ in path) * np.exp(wealth._current)
    return total


@pytest.mark.parametrize(("claim", "truth"), list(zip(CLAIMS, TRUTHS, strict=True)), ids=map(str, CLAIMS))
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_whole_games_with_leaders_gain_nothing_at_any_true_level(claim, truth, seed):
    """Every coin and output of three calls: 216 games, played against the true level, those above and the claim's."""
    possible = gaussian_bits(0.8) if truth is None else outcomes(*truth)
    grid = level_grid(claim, ratio=2.5)
    with patch.object(module, "STARTS", {0: 0.5, 1: 0.3, 2: 0.2}), patch.object(module, "ANCHORS", 2):
        expected = expected_wealth(claim, possible, seed, grid)
        assert (expected[grid >= claim.level] <= 1 + 1e-9).all()


def test_a_leader_who_peeks_is_found_out():
    """Guards the guard: leaders chosen from the batch they bet on would gain."""
    claim, grid = PureDP(0.5), level_grid(PureDP(0.5), ratio=2.5)
    with patch.object(module, "STARTS", {0: 1.0}), patch.object(module, "ANCHORS", 2):
        expected = expected_wealth(claim, outcomes(0.5, 0.0), 0, grid, calls=2, peek=True)
        assert expected[grid == claim.level] > 1.01


@pytest.mark.parametrize("delta", [0.0, 0.2])
@pytest.mark.parametrize("seed", [0, 1])
def test_levels_below_the_claim_are_true_levels_too(delta, seed):
    """A mechanism that is better than claimed: every level from the truth up is fair, those below the claim included."""
    claim, truth = (PureDP(2.0), 0.5) if delta == 0 else (ApproxDP(2.0, delta), 0.5)
    grid = np.array([0.1, 0.25, 0.5, 0.8, 1.2, 2.0, 3.0])
    with patch.object(module, "STARTS", {0: 0.6, 2: 0.4}), patch.object(module, "ANCHORS", 2):
        expected = expected_wealth(claim, outcomes(truth, delta), seed, grid)
        assert (expected[grid >= truth] <= 1 + 1e-9).all()


@settings(max_examples=60)
@given(
    st.sampled_from([PureDP(0.5), ApproxDP(1.0, 0.05), GaussianDP(0.8)]),
    st.lists(st.tuples(odds, st.integers(0, 1)), min_size=2, max_size=30),
    st.integers(1, 29),
)
def test_splitting_a_batch_changes_nothing(claim, calls, cut):
    forecasts, coins = np.array([[said for said, _ in calls]]), [coin for _, coin in calls]
    whole, parts = Wealth(claim), Wealth(claim)
    bet(whole, forecasts, coins)
    cut = min(cut, len(calls) - 1)
    bet(parts, forecasts[:, :cut], coins[:cut])
    bet(parts, forecasts[:, cut:], coins[cut:])
    assert parts.log_wealth == pytest.approx(whole.log_wealth, abs=1e-9)


@settings(max_examples=60)
@given(
    st.sampled_from([PureDP(0.5), ApproxDP(1.0, 0.05), GaussianDP(0.8)]),
    st.lists(st.tuples(odds, st.integers(0, 1)), min_size=1, max_size=60),
    st.floats(1e-9, 0.9),
    st.floats(1e-9, 0.9),
)
def test_a_smaller_alpha_never_gives_a_larger_bound(claim, calls, one, other):
    wealth = Wealth(claim, leader=1.0, levels=level_grid(claim, ratio=1.3))
    leaders = np.zeros(len(wealth.anchors) * wealth.tangents, int)
    bet(wealth, [[said for said, _ in calls]], [coin for _, coin in calls], leaders)
    assert wealth.lower_bound(min(one, other)) <= wealth.lower_bound(max(one, other)) <= wealth.levels[-1]
