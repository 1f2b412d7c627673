"""The theorems that make a refutation valid, checked on every forecast: no bet gains in expectation if the claim is true."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from auditdp.betting.wealth import FRACTIONS, Wealth, level_grid, log_factors
from auditdp.claims import ApproxDP, GaussianDP, PureDP

levels = st.floats(1e-3, 30.0)
deltas = st.floats(0.0, 0.9)
odds = st.floats(-60.0, 60.0) | st.sampled_from([math.inf, -math.inf, 0.0])
COINS = np.array([1, 0], np.int8)


def both(log_odds, epsilon):
    """Return f if the coin shows 1, and f if it shows 0."""
    return np.exp(log_factors(np.array([log_odds, log_odds]), COINS, epsilon))


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


def components(claim, log_odds, coin):
    """The factor of each single bet of one forecaster after one call."""
    wealth = Wealth(claim, forecasters=1)
    wealth.bet(np.array([[log_odds]]), np.array([coin], np.int8))
    return np.exp(wealth._log[0])


def reveal_or_respond(epsilon, delta):
    """Probabilities of the four outputs of the extreme pair: bit 1, bit 0, revealed 1, revealed 0, for coins 1 and 0."""
    keep, lose = expit(epsilon), expit(-epsilon)
    rest = 1 - delta
    return {1: [rest * keep, rest * lose, delta, 0.0], 0: [rest * lose, rest * keep, 0.0, delta]}


def expectation(claim, pair, forecasts):
    total = 0.0
    for coin, law in pair.items():
        for probability, log_odds in zip(law, forecasts, strict=True):
            if probability:
                total = total + 0.5 * probability * components(claim, log_odds, coin)
    return total


@given(levels, deltas, st.lists(odds, min_size=4, max_size=4))
def test_no_bet_gains_on_the_extreme_pair_of_an_approximate_claim(epsilon, delta, forecasts):
    """Exact enumeration: any forecast for each of the four outputs, soft and hard bets, every fraction."""
    gains = expectation(ApproxDP(epsilon, delta), reveal_or_respond(epsilon, delta), forecasts)
    assert gains.max() <= 1 + 1e-12


@given(levels, st.floats(1e-6, 0.9), st.floats(0.01, 20.0))
def test_the_price_of_delta_is_the_smallest_that_is_valid(epsilon, delta, beyond):
    """The best forecast makes the hard bets exactly fair, so a smaller price would be invalid."""
    sure = [epsilon + beyond, -epsilon - beyond, math.inf, -math.inf]
    gains = expectation(ApproxDP(epsilon, delta), reveal_or_respond(epsilon, delta), sure)
    hard = gains[0, len(FRACTIONS) :]
    assert hard.shape == (len(FRACTIONS),)
    assert hard == pytest.approx(1.0, abs=1e-12)
    certain = expectation(ApproxDP(epsilon, delta), reveal_or_respond(epsilon, delta), [math.inf, -math.inf] * 2)
    assert certain[0, : len(FRACTIONS)] == pytest.approx(1.0, abs=1e-12), "a certain soft bet is the hard one"


@given(st.floats(1e-3, 10.0), st.floats(1e-3, 0.5), st.floats(1.5, 10.0))
def test_more_delta_than_was_claimed_pays(epsilon, delta, times):
    claim = ApproxDP(epsilon, delta / times)
    sure = [math.inf, -math.inf, math.inf, -math.inf]
    assert expectation(claim, reveal_or_respond(epsilon, delta), sure).max() > 1


@settings(max_examples=60, deadline=None)
@given(levels, st.floats(0.0, 0.5), levels, st.lists(odds, min_size=4, max_size=4))
def test_no_level_at_or_above_the_truth_gains(truth, delta, stated, forecasts):
    """The bound's theorem: the wealth against every level that the pair satisfies is fair, whatever level was claimed."""
    claim = ApproxDP(stated, delta)
    grid = level_grid(claim, ratio=2.0)
    expected = np.zeros(len(grid))
    for coin, law in reveal_or_respond(truth, delta).items():
        for probability, log_odds in zip(law, forecasts, strict=True):
            if probability:
                wealth = Wealth(claim, forecasters=1, levels=grid)
                wealth.bet(np.array([[log_odds]]), np.array([coin], np.int8))
                expected += 0.5 * probability * wealth_by_level(wealth)
    assert expected[grid >= truth].max(initial=0.0) <= 1 + 1e-9


def wealth_by_level(wealth):
    """The wealth against every level after one bet, as the bound's chain uses it."""
    flat = np.exp(np.moveaxis(wealth._grid, 1, 0).reshape(len(wealth.levels), -1)).mean(axis=1)
    own = math.exp(wealth.log_wealth)
    below = wealth.levels < wealth.claim.level
    return np.where(wealth.levels == wealth.claim.level, own, np.where(below, (flat + own) / 2, flat))


@settings(max_examples=60)
@given(
    st.sampled_from([PureDP(0.5), ApproxDP(1.0, 0.05), GaussianDP(0.8)]),
    st.lists(st.tuples(odds, st.integers(0, 1)), min_size=2, max_size=30),
    st.integers(1, 29),
)
def test_splitting_a_batch_changes_nothing(claim, calls, cut):
    forecasts = np.array([[log_odds for log_odds, _ in calls]])
    coins = np.array([coin for _, coin in calls], np.int8)
    whole, parts = Wealth(claim, forecasters=1), Wealth(claim, forecasters=1)
    path = whole.bet(forecasts, coins)
    cut = min(cut, len(calls) - 1)
    pieces = np.concatenate([parts.bet(forecasts[:, :cut], coins[:cut]), parts.bet(forecasts[:, cut:], coins[cut:])])
    assert pieces == pytest.approx(path, abs=1e-9)
    assert parts.highest == pytest.approx(whole.highest, abs=1e-9)


@settings(max_examples=60)
@given(
    st.sampled_from([PureDP(0.5), ApproxDP(1.0, 0.05), GaussianDP(0.8)]),
    st.lists(st.tuples(odds, st.integers(0, 1)), min_size=1, max_size=60),
    st.floats(1e-9, 0.9),
    st.floats(1e-9, 0.9),
)
def test_a_smaller_alpha_never_gives_a_larger_bound(claim, calls, one, other):
    wealth = Wealth(claim, forecasters=1, levels=level_grid(claim, ratio=1.3))
    wealth.bet(np.array([[log_odds for log_odds, _ in calls]]), np.array([coin for _, coin in calls], np.int8))
    assert wealth.lower_bound(min(one, other)) <= wealth.lower_bound(max(one, other)) <= wealth.levels[-1]
