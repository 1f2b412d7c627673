"""Outputs that were seen before: forecasts from the coins of the same values, and nothing where numbers repeat often."""

import numpy as np
import pytest

from auditdp.adjacency import Neighbours, Pair
from auditdp.betting.forecasters.batches import Batch, Memory
from auditdp.betting.forecasters.repeated_outputs import PRIOR, SHARE, Repeating
from auditdp.betting.game import Game
from auditdp.betting.limits import LIMITS
from auditdp.claims.statements import PureDP
from auditdp.evidence.game_evidence import play_game
from auditdp.evidence.request import GameOptions
from auditdp.numerics.streams import stream
from auditdp.record.budget import AuditBudget
from auditdp.record.results import Verdict

PAIR = Pair(0, 1)


def opened(width=1):
    player = Repeating().player(None, PAIR)
    player.open(np.zeros((8, width)), [PAIR], [])
    return player


def played(player, ones, zeros):
    """Forecasts of a batch, from which the player then learns."""
    width = max(len(player.names) - 1, 1)
    ones, zeros = (
        np.asarray(side, dtype=np.float64).reshape(-1, width) for side in (ones, zeros)
    )
    message = player.forecast(Batch(ones, zeros, np.random.default_rng(0)))
    player.learn(Memory(), stalled=True)
    return message


def test_a_value_of_one_coin_is_expected_under_that_coin_again():
    player = opened()
    (first,) = played(player, [1.5, 2.5], [3.5])
    assert (first.ones.tolist(), first.zeros.tolist()) == ([0, 0, 2], [0, 0, 1])
    (second,) = played(player, [1.5, 9.5], [3.5, 1.5])
    assert second.log_odds.tolist() == [
        [0, 0, 0]
    ]  # nobody knows yet whether coins agree
    assert (second.ones.tolist(), second.zeros.tolist()) == ([1, 0, 1], [1, 1, 0])
    (third,) = played(player, [2.5, 1.5], [])
    odds = np.log((2 + PRIOR) / (1 + PRIOR))  # two agreed and one did not
    assert third.log_odds[0] == pytest.approx([odds, -odds, 0])
    assert third.ones.tolist() == [1, 0, 1]  # 1.5 has come under both coins


def test_every_call_is_counted():
    rng, player = np.random.default_rng(1), opened(3)
    for size in (5, 30, 20):
        ones, zeros = (rng.integers(0, 1_000, (size + k, 3)) for k in (0, 3))
        for message in played(player, ones, zeros):
            assert (message.ones.sum(), message.zeros.sum()) == (size, size + 3)
        assert len(player.names) == len(player.shares) == 4
    assert sum(player.shares) == pytest.approx(SHARE)


def test_signs_of_zero_and_names_of_what_is_missing_are_values_of_their_own():
    player = opened()
    names = np.array([0x7FF8 << 48 | 1, 0x7FF8 << 48 | 2], np.uint64).view(np.float64)
    played(player, [0.0, names[0]], [])
    (message,) = played(player, [0.0, -0.0, names[0], names[1]], [])
    assert message.ones.tolist() == [2, 0, 2]


def test_numbers_that_repeat_often_are_left():
    player, rng = opened(2), np.random.default_rng(1)
    few = LIMITS.repeating_trial
    for _ in range(2):
        rows = np.column_stack([rng.integers(0, 9, few), rng.normal(size=few)])
        message = played(player, rows, rows[:0])
    assert [len(f.ones) for f in message] == [0, 3, 3]


def service(p, scale=1.0):
    """Vectors with noise, and exact ones with probability p."""

    def mechanism(data, size, *, rng):
        noisy = np.asarray(data) + rng.laplace(scale=scale, size=(size, len(data)))
        return np.where(rng.random((size, 1)) < p, data, noisy)

    return mechanism


@pytest.mark.full
def test_a_raw_vector_in_one_of_a_thousand_calls_is_found():
    evidence = play_game(
        service(1 / 1000, 4.0),
        PureDP(0.25),
        Neighbours([((3.0, 1.0), (3.0, 2.0))]),
        GameOptions(alpha=0.05, budget=AuditBudget.of(40_000, stop_when_refuted=True)),
        streams=lambda purpose, n: stream(3, purpose, n),
    )
    assert evidence.verdict is Verdict.VIOLATED
    assert "seen before" in evidence.details.forecasters[0].name


def test_wealth_stays_where_atoms_are_shared():
    """Zero comes out of either input equally often: nothing to win, and little to lose."""

    def clipped(data, size, *, rng):
        return np.where(rng.random(size) < 0.1, 0.0, data + rng.laplace(size=size))

    game = Game(
        clipped,
        PureDP(1.0),
        [PAIR],
        [Repeating()],
        lambda purpose, n: stream(1, purpose, n),
    )
    game.play(20_000, alpha=0.05)
    assert -3 < game.wealth.log_wealth < 3
