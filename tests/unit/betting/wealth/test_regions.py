"""Regions: prices and choices against brute force, and the theorem on random claims, regions and channels."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditdp.betting.wealth.regions import ROUNDING, Region
from auditdp.claims.dominating import DominatingPair
from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP

CLAIMS = [
    PureDP(0.3),
    PureDP(2.0),
    ApproxDP(1.0, 0.05),
    ApproxDP(0.2, 0.4),
    GaussianDP(0.7),
]
seeds = st.integers(0, 2**32 - 1)


def pair_of(claim):
    return DominatingPair.of(claim.statements())


def some_factors(random, count):
    return np.exp(random.normal(size=(count, 2)) * random.choice([0.1, 1.0, 5.0]))


def some_pair(random):
    """A dominating pair of a few random statements, or of a claim."""
    if random.random() < 0.3:
        return pair_of(CLAIMS[random.integers(len(CLAIMS))])
    count = random.integers(1, 4)
    return DominatingPair.of(
        np.stack([random.uniform(0, 3, count), random.uniform(0, 0.7, count)], axis=1)
    )


def expected_factor(pair, channel, factors):
    """E[e(y, b)] exactly, for a channel of shape (z, y) and the factors e0, e1 that are bet at each y, shape (y, 2)."""
    return float(
        (pair.p @ channel @ factors[:, 0] + pair.q @ channel @ factors[:, 1]) / 2
    )


def test_the_price_of_known_regions():
    pair = pair_of(PureDP(math.log(3)))  # (1/4, 3/4) and (3/4, 1/4)
    assert Region(np.ones((1, 2))).price(pair) == pytest.approx(0.0, abs=2 * ROUNDING)
    # The best bet of a certain forecaster: 1/q on its side, nothing on the other.
    sure = Region(np.array([[4 / 3, 1e-300], [1e-300, 4 / 3]]))
    assert sure.price(pair) == pytest.approx(0.0, abs=2 * ROUNDING)
    # Reading both at once, against a pair that reveals everything, doubles what is there.
    assert Region(np.array([[2.0, 1e-300], [1e-300, 2.0]])).price(
        DominatingPair(np.eye(2)[0], np.eye(2)[1])
    ) == (pytest.approx(math.log(2)))


@given(seeds, st.integers(1, 12))
def test_the_price_is_the_sum_of_the_best_in_every_atom(seed, count):
    random = np.random.default_rng(seed)
    factors, pair = some_factors(random, count), some_pair(random)
    total = sum(
        max((p * e0 + q * e1) / 2 for e0, e1 in factors)
        for p, q in zip(pair.p, pair.q, strict=True)
    )
    assert Region(factors).price(pair) == pytest.approx(math.log(total), abs=2e-11)


@given(seeds, st.integers(1, 12))
def test_the_bet_is_the_best_of_all_at_any_log_odds(seed, count):
    random = np.random.default_rng(seed)
    factors = some_factors(random, count)
    if random.random() < 0.5:  # ties and repetitions
        factors = np.exp(np.round(np.log(factors)))
    region = Region(factors)
    odds = np.concatenate(
        [random.normal(size=20) * 4, region.thresholds, [0.0, 800.0, -800.0]]
    )
    r, not_r = (
        1 / (1 + np.exp(-np.clip(odds, -700, 700))),
        1 / (1 + np.exp(np.clip(odds, -700, 700))),
    )
    best = np.max(
        not_r[:, None] * np.log(factors[:, 0]) + r[:, None] * np.log(factors[:, 1]),
        axis=1,
    )
    on_zeros, on_ones = region.choose(odds)
    assert not_r * on_zeros + r * on_ones == pytest.approx(
        best, abs=1e-7
    )  # thresholds are rounded
    (zero, one), (zero_too, one_too) = region.choose(np.array([-math.inf, math.inf])).T
    assert zero == pytest.approx(np.log(factors[:, 0]).max())
    assert one_too == pytest.approx(np.log(factors[:, 1]).max())
    # Of those that are as good at certainty, the one that loses least.
    assert one == pytest.approx(
        np.log(factors[factors[:, 0] >= math.exp(zero) * (1 - 1e-12), 1]).max()
    )
    assert zero_too == pytest.approx(
        np.log(factors[factors[:, 1] >= math.exp(one_too) * (1 - 1e-12), 0]).max()
    )


@given(seeds, st.integers(1, 8))
def test_choices_move_towards_coin_1_as_the_odds_do(seed, count):
    region = Region(some_factors(np.random.default_rng(seed), count))
    assert (np.diff(region.thresholds) > 0).all()
    assert (np.diff(region.logs[0]) < 0).all()
    assert (np.diff(region.logs[1]) > 0).all()


@pytest.mark.parametrize("epsilon", [1.0, 40.0, 700.0])
def test_a_gain_that_is_lost_in_rounding_is_no_bet(epsilon):
    gained = 1 + 0.5 * math.exp(-epsilon)
    on_zeros, on_ones = Region(
        np.array([[1.0, 1.0], [0.5, gained], [gained, 0.5]])
    ).choose(np.array([0.0, math.inf]))
    assert (on_zeros[0], on_ones[0]) == (0.0, 0.0)
    assert on_zeros[1] == (0.0 if gained == 1.0 else math.log(0.5))


@given(seeds, st.integers(1, 5), st.integers(1, 6))
def test_no_post_processing_of_what_a_claim_allows_gains(seed, outputs, count):
    """Any channel from z to a few outputs, and any factor of the region at each: at most the price."""
    random = np.random.default_rng(seed)
    pair, factors = some_pair(random), some_factors(random, count)
    channel = random.dirichlet(
        np.full(outputs, random.choice([0.05, 1.0])), size=len(pair.p)
    )
    price = math.exp(Region(factors).price(pair))
    for _ in range(5):
        bets = factors[random.integers(0, count, outputs)]
        assert expected_factor(pair, channel, bets) <= price * (1 + 1e-9)


@given(seeds, st.integers(1, 6))
def test_the_price_is_the_smallest_that_is_valid(seed, count):
    """Whoever is told z and takes the best factor there attains it, so that .999 of it is too little."""
    random = np.random.default_rng(seed)
    pair, factors = some_pair(random), some_factors(random, count)
    best = factors[
        np.argmax(
            np.outer(pair.p, factors[:, 0]) + np.outer(pair.q, factors[:, 1]), axis=1
        )
    ]
    price = math.exp(Region(factors).price(pair))
    expected = expected_factor(pair, np.eye(len(pair.p)), best)
    assert expected == pytest.approx(price, rel=1e-9)
    assert expected / (price * (1 - 1e-3)) > 1


def all_bets(factors, joint):
    """The largest expected product when every bet may depend on all outputs: the best combination at each of them.

    Args:
        factors: Shape (n, 2).
        joint: Probabilities of the coins given all outputs, times that of the outputs: {outputs: shape (2,) * calls}.
    """
    calls = next(iter(joint.values())).ndim
    total = 0.0
    for law in joint.values():
        total += max(
            sum(
                law[coins]
                * math.prod(
                    factors[k, coin] for k, coin in zip(chosen, coins, strict=True)
                )
                for coins in itertools.product((0, 1), repeat=calls)
            )
            for chosen in itertools.product(range(len(factors)), repeat=calls)
        )
    return total


@pytest.mark.parametrize("claim", CLAIMS[:4], ids=str)
@pytest.mark.parametrize("calls", [2, 3])
def test_seeing_the_outputs_of_the_whole_batch_gains_nothing(claim, calls):
    """Exact: each call has its own channel; the bettor sees all outputs and combines bets as it likes."""
    random = np.random.default_rng(calls)
    pair = pair_of(claim)
    for _ in range(3):
        factors = some_factors(random, 3)
        channels = [
            random.dirichlet([0.3, 0.3], size=len(pair.p)) for _ in range(calls)
        ]
        laws = [
            np.stack([pair.p @ c, pair.q @ c]) / 2 for c in channels
        ]  # by coin and output
        joint = {
            outputs: np.array(
                [
                    math.prod(
                        laws[i][coin, y]
                        for i, (coin, y) in enumerate(zip(coins, outputs, strict=True))
                    )
                    for coins in itertools.product((0, 1), repeat=calls)
                ]
            ).reshape((2,) * calls)
            for outputs in itertools.product((0, 1), repeat=calls)
        }
        price = math.exp(calls * Region(factors).price(pair))
        assert all_bets(factors, joint) <= price * (1 + 1e-9)


def test_leaving_out_a_call_by_its_output_would_gain():
    """Guards the rule that calls are left out without regard to what they gave: a bet and its price go together."""
    claim = ApproxDP(0.2, 0.25)
    pair, factors = pair_of(claim), np.array([[1.0, 1.0], [0.5, 1.4], [1.4, 0.5]])
    price = math.exp(Region(factors).price(pair))
    p, q = pair.p, pair.q
    best = (
        np.max(np.outer(p, factors[:, 0]) + np.outer(q, factors[:, 1]), axis=1)
        / 2
        / price
    )
    free = (p + q) / 2
    assert best.sum() <= 1 + 1e-9
    assert np.maximum(best, free).sum() > 1.01


@given(seeds, st.floats(0.0, 1.0))
def test_a_part_of_the_stake_costs_the_same_part_of_the_price(seed, fraction):
    random = np.random.default_rng(seed)
    pair, region = some_pair(random), Region(some_factors(random, 5))
    whole, part = (
        math.exp(region.price(pair)),
        math.exp(region.mixed(fraction).price(pair)),
    )
    assert part == pytest.approx(1 - fraction + fraction * whole, rel=1e-9)
