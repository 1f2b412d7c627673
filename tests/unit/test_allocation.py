"""Thompson sampling: plays everything once, then what earns most, and survives infinite losses."""

import numpy as np
import pytest

from auditdp.betting.allocation import Thompson


def rng(seed=0):
    return np.random.default_rng(seed)


def test_every_pair_is_played_once_first():
    allocation, played = Thompson(5), []
    for seed in range(5):
        pair = allocation.choose(rng(seed))
        played.append(pair)
        allocation.learn(pair, np.full(8, 1.0 if pair == 0 else -1.0))
    assert played == [0, 1, 2, 3, 4]


def test_one_pair_needs_no_choice():
    allocation = Thompson(1)
    for seed in range(3):
        assert allocation.choose(rng(seed)) == 0
        allocation.learn(0, np.full(4, -np.inf))


def test_most_calls_go_to_the_pair_that_earns():
    random, allocation = rng(1), Thompson(10)
    for _ in range(300):
        pair = allocation.choose(random)
        allocation.learn(pair, random.normal(0.1 if pair == 6 else -0.02, 0.3, 20))
    assert allocation.calls.argmax() == 6
    assert allocation.calls[6] > 0.5 * allocation.calls.sum()
    assert allocation.growth.argmax() == 6


def test_growth_is_the_discounted_mean():
    allocation = Thompson(2, memory=0.5)
    allocation.learn(1, np.array([1.0, 3.0]))
    assert allocation.growth.tolist() == [0.0, 2.0]
    allocation.learn(1, np.array([5.0, 5.0]))
    assert allocation.growth[1] == pytest.approx((0.5 * 4 + 10) / (0.5 * 2 + 2))
    assert allocation.calls.tolist() == [0, 4]


def test_a_pair_that_lost_everything_is_still_finite():
    allocation = Thompson(2)
    allocation.learn(0, np.array([-np.inf, 0.5]))
    allocation.learn(1, np.array([0.1, 0.1]))
    assert np.isfinite(allocation.growth).all()
    assert allocation.choose(rng()) == 1


def test_a_fresh_look_at_a_bad_start_is_possible():
    """The price of learning must not bury a pair for good."""
    random, allocation = rng(2), Thompson(2)
    allocation.learn(0, random.normal(-0.3, 0.5, 8))
    allocation.learn(1, random.normal(0.0, 0.5, 8))
    for _ in range(200):
        pair = allocation.choose(random)
        allocation.learn(pair, random.normal(0.2 if pair == 0 else 0.0, 0.3, 8))
    assert allocation.calls[0] > allocation.calls[1]
