"""The schedule: results with it and without, and which calls are left out."""

import math
from functools import partial

import numpy as np
import pytest
from scipy.stats import hypergeom

from auditdp.adjacency import Pair
from auditdp.betting.forecasters.batches import Memory
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.betting.forecasters.schedule import (
    Schedule,
)
from auditdp.betting.game import Game
from auditdp.claims.statements import ApproxDP, PureDP
from auditdp.numerics.streams import stream
from tests.unit.betting.forecasting.test_experts import (
    SIZES,
    batch,
    batches,
    opened,
    play,
)

pytestmark = pytest.mark.dear

PAIR = Pair(1, 0)


def schedule_of(**options):
    """A schedule with other numbers."""
    return type("Other", (Schedule,), options)


class Everything(Schedule):
    """No schedule: every view sees every call, and is always learned and cut again."""

    by_output = False

    def rank(self, log_wealth, calls):
        pass


@pytest.mark.parametrize("kind", ["bits", "matrix", "half new", "constant", "vector"])
def test_counting_distinct_outputs_is_counting_calls(kind):
    """Few different outputs are counted once each; those that were never seen are looked at one by one."""
    found = []
    for schedule in (Schedule, schedule_of(by_output=False), Everything):
        forecasts = play(
            opened(kind, schedule=schedule), Memory(), batches(kind, SIZES)
        )
        found.append(
            [
                [(f.log_odds.tolist(), f.ones.tolist(), f.zeros.tolist()) for f in each]
                for each in forecasts
            ]
        )
    assert found[0] == found[1] == found[2]


def noisy_bits(data, size, *, rng):
    return (rng.random((size, 4)) < 0.5 + 0.2 * data * (np.arange(4) == 2)).astype(
        np.int8
    )


def noisy_numbers(data, size, *, rng):
    return rng.laplace(size=(size, 3)) + 0.9 * data * (np.arange(3) == 1)


@pytest.mark.parametrize("mechanism", [noisy_bits, noisy_numbers])
@pytest.mark.parametrize("claim", [PureDP(0.3), ApproxDP(0.3, 1e-3)], ids=str)
def test_a_game_with_a_schedule_wins_as_much_as_without(mechanism, claim):
    """The same until views are ranked; always the same where outputs are counted by their distinct values."""
    games = []
    for schedule in (Schedule, Everything):
        game = Game(
            mechanism,
            claim,
            [PAIR],
            [ViewExperts(schedule=schedule)],
            partial(stream, 1),
        )
        game.tables[0].next_ranking = 2_000
        game.play(5_000, alpha=0.05)
        games.append(game)
    first, second = ([at for at in game.path if at[0] <= 2_000] for game in games)
    assert first == second
    assert (games[0].path == games[1].path) == (mechanism is noisy_bits)
    assert games[0].wealth.log_wealth == pytest.approx(
        games[1].wealth.log_wealth, rel=0.05, abs=1.0
    )
    assert games[0].refuted_at == games[1].refuted_at is not None


def ranked(heavy, best, calls=100):
    """A schedule of views of which those at the places ``best`` gained, in this order."""
    schedule = Schedule(heavy)
    gained = np.full((len(heavy), 3), -1.0)
    for place, view in enumerate(best):
        gained[view] = 100.0 - place
    schedule.rank(gained, calls)
    return schedule


def test_the_best_views_see_everything_and_the_others_a_part():
    best = [4, 0, 9, 2, 7]
    schedule = ranked([False] * 12, best)
    assert len(best) == Schedule.whole
    assert schedule.thinning == [1 if k in best else Schedule.part for k in range(12)]
    schedule = ranked([False] * 12, [1], calls=Schedule.many_calls)
    assert schedule.thinning == [1 if k == 1 else Schedule.late_part for k in range(12)]


def test_a_heavy_view_sees_everything_where_it_leads_and_late_only_where_it_clearly_does():
    heavy = [False, False, True]
    assert ranked(heavy, [0, 2]).thinning[2] == Schedule.part
    assert ranked(heavy, [2, 0]).thinning[2] == 1  # by 1
    assert (
        ranked(heavy, [2, 0], calls=Schedule.many_calls).thinning[2]
        == Schedule.late_part
    )
    assert ranked(heavy, [2], calls=Schedule.many_calls).thinning[2] == 1  # by 101


def test_views_that_are_clearly_behind_are_frozen_and_nobody_where_nothing_was_earned():
    assert ranked([False] * 4, [0, 1]).frozen == [False, False, True, True]
    assert not any(ranked([False] * 4, []).frozen)


def test_a_view_that_sees_a_part_forecasts_and_counts_that_part_alone():
    player, memory = opened("vector", schedule=schedule_of(whole=1, part=8)), Memory()
    play(player, memory, batches("vector", [300]))
    before = player.forecast(batch(*next(batches("vector", [4]))))
    gained = np.zeros((len(player.names), 1))
    gained[0] = 1.0
    player.rank(gained, 300)
    forecasts, after = play(player, memory, batches("vector", [100, 10], seed=5))
    for k, (old, forecast, new) in enumerate(
        zip(before, forecasts, after, strict=True)
    ):
        if forecast.log_odds.shape[1]:
            seen = 100 if k == 0 else 13
            assert forecast.ones.sum() + forecast.zeros.sum() == seen
            assert new.expected[1].sum() - old.expected[1].sum() == seen


def test_a_new_cut_counts_everything_that_is_kept():
    player, memory = opened("number", schedule=schedule_of(whole=0)), Memory()
    play(player, memory, batches("number", [300]))
    player.rank(np.zeros((len(player.names), 1)), 300)
    *_, last = play(player, memory, batches("number", [50, 400, 8], seed=6))
    assert last[0].expected[1].sum() == 750
    assert last[0].ones.sum() + last[0].zeros.sum() == 1


@pytest.mark.parametrize(
    ("zeros", "ones", "thinning"),
    [(5, 7, 3), (0, 9, 4), (1, 0, 8), (40, 30, 64), (3, 0, 3), (0, 0, 8)],
)
def test_which_calls_are_left_out_does_not_depend_on_their_coins(zeros, ones, thinning):
    """The part has a fixed size, and its coins are those of a part drawn without looking: hypergeometric.

    4,000 draws: the mean lies within six standard errors of its value, up to 2e-9 by normality.
    """
    schedule = Schedule([False])
    drawn = np.array([schedule.thinned(thinning, zeros, ones) for _ in range(4_000)])
    size = -(-(zeros + ones) // thinning)
    assert (drawn.sum(axis=1) == size).all()
    assert (drawn <= [zeros, ones]).all()
    if zeros and ones and size < zeros + ones:
        law = hypergeom(zeros + ones, zeros, size)
        assert (
            abs(drawn[:, 0].mean() - law.mean())
            <= 6 * law.std() / math.sqrt(4_000) + 1e-12
        )
    assert schedule.thinned(1, zeros, ones) == (zeros, ones)
