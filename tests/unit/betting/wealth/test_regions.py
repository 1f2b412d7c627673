"""Regions: prices and choices against brute force."""

from math import exp, inf, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from scipy.special import expit

from auditdp import ApproxDP, GaussianDP, PureDP
from auditdp.betting.wealth.regions import Region
from auditdp.claims.dominating import DominatingPair

CLAIMS = [PureDP(0.3), PureDP(2.0), ApproxDP(1.0, 0.05), ApproxDP(0.2, 0.4)]
seeds = st.integers(0, 2**32 - 1)


def pair_of(claim):
    return DominatingPair.of(claim.statements())


def some_factors(random, count):
    spread = random.choice([0.1, 1.0, 5.0])
    return np.exp(random.normal(size=(count, 2)) * spread)


def some_pair(random):
    """Return a dominating pair of a few random statements, or of a claim."""
    if random.random() < 0.3:
        return pair_of(random.choice([*CLAIMS, GaussianDP(0.7)]))
    count = random.integers(1, 4)
    epsilons = random.uniform(0, 3, count)
    deltas = random.uniform(0, 0.7, count)
    return DominatingPair.of(np.stack([epsilons, deltas], axis=1))


@given(seeds, st.integers(1, 12))
def test_the_price_is_the_sum_of_the_best_in_every_atom(seed, count):
    random = default_rng(seed)
    factors = some_factors(random, count)
    pair = some_pair(random)
    total = 0.0
    for p, q in zip(pair.p, pair.q, strict=True):
        total += max((p * e0 + q * e1) / 2 for e0, e1 in factors)
    assert Region(factors).price(pair) == pytest.approx(log(total), abs=2e-11)


@given(seeds, st.integers(1, 12))
def test_the_bet_is_the_best_of_all_at_any_log_odds(seed, count):
    random = default_rng(seed)
    factors = some_factors(random, count)
    if random.random() < 0.5:  # ties and repetitions
        factors = np.exp(np.round(np.log(factors)))
    region = Region(factors)
    odds = np.concatenate(
        [random.normal(size=20) * 4, region.thresholds, [0, 999, -999]]
    )
    odds = odds.clip(-700, 700)
    r = expit(odds)
    not_r = expit(-odds)
    logs = np.log(factors)
    best = np.max(np.outer(not_r, logs[:, 0]) + np.outer(r, logs[:, 1]), axis=1)
    on_zeros, on_ones = region.choose(odds)
    # Thresholds are rounded.
    assert not_r * on_zeros + r * on_ones == pytest.approx(best, abs=1e-7)
    certain = region.choose(np.array([-inf, inf])).T
    for coin in (0, 1):
        right = logs[:, coin]
        wrong = logs[:, 1 - coin]
        own = certain[coin, coin]
        other = certain[coin, 1 - coin]
        assert own == pytest.approx(right.max())
        # Of those that are as good at certainty, the one that loses least.
        assert other == pytest.approx(wrong[right >= own - 1e-12].max())


@pytest.mark.parametrize("epsilon", [1.0, 40.0])
def test_a_gain_that_is_lost_in_rounding_is_no_bet(epsilon):
    gained = 1 + 0.5 * exp(-epsilon)
    region = Region(np.array([[1.0, 1.0], [0.5, gained], [gained, 0.5]]))
    on_zeros, on_ones = region.choose(np.array([0.0, inf]))
    assert on_zeros[0] == 0.0
    assert on_ones[0] == 0.0
    assert on_zeros[1] == (0.0 if gained == 1.0 else log(0.5))


@given(seeds, st.floats(0.0, 1.0))
def test_a_part_of_the_stake_costs_the_same_part_of_the_price(seed, fraction):
    random = default_rng(seed)
    pair = some_pair(random)
    region = Region(some_factors(random, 5))
    whole = exp(region.price(pair))
    part = exp(region.mixed(fraction).price(pair))
    assert part == pytest.approx(1 - fraction + fraction * whole, rel=1e-9)
