"""Outputs that come again: forecasts from the coins of the same values.

There are none if numbers repeat often.
"""

import numpy as np
import pytest
from numpy.random import default_rng

from auditdp import Neighbours, PureDP, Verdict
from auditdp.betting.forecasters.batches import Batch, Memory
from auditdp.betting.forecasters.repeated_outputs import PRIOR, SHARE, Repeating
from auditdp.betting.limits import LIMITS
from tests.unit.betting.toys import PAIR, new_game, play


def opened(width=1):
    player = Repeating().player(None, PAIR)
    player.open(np.zeros((8, width)), [PAIR], [])
    return player


def played(player, ones, zeros=()):
    """Return forecasts of a batch, from which the player then learns."""
    width = max(len(player.names) - 1, 1)
    ones = np.asarray(ones, np.float64).reshape(-1, width)
    zeros = np.asarray(zeros, np.float64).reshape(-1, width)
    forecasts = player.forecast(Batch(ones, zeros, default_rng(0)))
    player.learn(Memory(), stalled=True)
    return forecasts


def test_a_value_of_one_coin_is_expected_under_that_coin_again():
    player = opened()
    (first,) = played(player, [1.5, 2.5], [3.5])
    assert first.ones.tolist() == [0, 0, 2]
    assert first.zeros.tolist() == [0, 0, 1]
    (second,) = played(player, [1.5, 9.5], [3.5, 1.5])
    # It is not known yet whether coins agree.
    assert second.log_odds.tolist() == [[0, 0, 0]]
    assert second.ones.tolist() == [1, 0, 1]
    assert second.zeros.tolist() == [1, 1, 0]
    (third,) = played(player, [2.5, 1.5])
    odds = np.log((2 + PRIOR) / (1 + PRIOR))  # two agreed and one did not
    assert third.log_odds[0] == pytest.approx([odds, -odds, 0])
    assert third.ones.tolist() == [1, 0, 1]  # 1.5 has come under both coins


def test_every_call_is_counted():
    rng = default_rng(1)
    player = opened(3)
    for size in (5, 30, 20):
        ones = rng.integers(0, 1_000, (size, 3))
        zeros = rng.integers(0, 1_000, (size + 3, 3))
        for forecast in played(player, ones, zeros):
            assert forecast.ones.sum() == size
            assert forecast.zeros.sum() == size + 3
    assert len(player.names) == len(player.shares) == 4
    assert sum(player.shares) == pytest.approx(SHARE)


def test_signs_of_zero_and_payloads_of_nan_are_values_of_their_own():
    player = opened()
    names = np.array([0x7FF8 << 48 | 1, 0x7FF8 << 48 | 2], np.uint64).view(float)
    played(player, [0.0, names[0]])
    (forecast,) = played(player, [0.0, -0.0, *names])
    assert forecast.ones.tolist() == [2, 0, 2]


def test_numbers_that_repeat_often_are_left_out():
    player = opened(2)
    rng = default_rng(1)
    size = LIMITS.repeating_trial
    for _ in range(2):
        rows = np.column_stack([rng.integers(0, 9, size), rng.normal(size=size)])
        forecasts = played(player, rows)
    assert [len(forecast.ones) for forecast in forecasts] == [0, 3, 3]


def sometimes_exact(data, size, *, rng):
    noisy = np.asarray(data) + rng.laplace(scale=4.0, size=(size, len(data)))
    return np.where(rng.random((size, 1)) < 1 / 1000, data, noisy)


@pytest.mark.full
def test_a_raw_vector_in_one_of_a_thousand_calls_is_found():
    evidence = play(
        sometimes_exact,
        PureDP(0.25),
        Neighbours([((3.0, 1.0), (3.0, 2.0))]),
        calls=40_000,
        seed=3,
        stop=True,
    )
    assert evidence.verdict is Verdict.VIOLATED
    assert "seen before" in evidence.details.forecasters[0].name


def test_values_of_either_input_gain_and_lose_little():
    """Zero comes out of either input equally often."""

    def clipped(data, size, *, rng):
        return np.where(rng.random(size) < 0.1, 0.0, data + rng.laplace(size=size))

    game = new_game(clipped, forecasters=[Repeating()], seed=1)
    game.play(10_000, alpha=0.05)
    assert -3 < game.wealth.log_wealth < 3
