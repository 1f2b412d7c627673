"""The schedule: games with it and without, and the calls that are left out."""

import math

import numpy as np
import pytest
from scipy.stats import hypergeom

from auditdp import ApproxDP, PureDP
from auditdp.betting.forecasters.batches import Memory
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.betting.forecasters.schedule import Schedule
from tests.unit.betting.forecasters.test_experts import (
    SIZES,
    batch,
    batches,
    bets,
    opened,
    play,
)
from tests.unit.betting.toys import new_game

pytestmark = pytest.mark.dear

LATE = Schedule.many_calls


def schedule_of(**options):
    """Return a schedule with other numbers."""
    return type("Other", (Schedule,), options)


class Everything(Schedule):
    """No schedule: every view counts every call, and is always learned and cut again."""

    by_output = False

    def rank(self, log_wealth, calls):
        pass


@pytest.mark.parametrize("kind", ["bits", "matrix", "half new", "constant", "vector"])
def test_counting_distinct_outputs_is_counting_calls(kind):
    found = []
    for schedule in (Schedule, schedule_of(by_output=False), Everything):
        player = opened(kind, schedule=schedule)
        counts = []
        for forecasts in play(player, Memory(), batches(kind, SIZES)):
            for each in forecasts:
                columns = (each.log_odds, each.ones, each.zeros)
                counts.append([column.tolist() for column in columns])
        found.append(counts)
    assert found[0] == found[1] == found[2]


def noisy_bits(data, size, *, rng):
    shift = 0.2 * data * (np.arange(4) == 2)
    return (rng.random((size, 4)) < 0.5 + shift).astype(np.int8)


def noisy_numbers(data, size, *, rng):
    return rng.laplace(size=(size, 3)) + 0.9 * data * (np.arange(3) == 1)


@pytest.mark.parametrize("mechanism", [noisy_bits, noisy_numbers])
@pytest.mark.parametrize(
    "claim",
    [
        PureDP(0.3),
        ApproxDP(0.3, 1e-3),
    ],
    ids=str,
)
def test_a_game_with_a_schedule_gains_as_much_as_without(mechanism, claim):
    """The same until views are ranked, and always if distinct outputs are counted."""
    games = []
    early = []
    for schedule in (Schedule, Everything):
        game = new_game(mechanism, claim, [ViewExperts(schedule=schedule)], seed=1)
        game.tables[0].next_ranking = 2_000
        game.play(5_000, alpha=0.05)
        games.append(game)
        early.append([at for at in game.path if at[0] <= 2_000])
    one, other = games
    assert early[0] == early[1]
    assert (one.path == other.path) == (mechanism is noisy_bits)
    log_wealth = other.wealth.log_wealth
    assert one.wealth.log_wealth == pytest.approx(log_wealth, rel=0.05, abs=1.0)
    assert one.refuted_at == other.refuted_at is not None


def ranked(heavy, best, calls=100):
    """Return a schedule of views of which those at ``best`` gained, in this order."""
    schedule = Schedule(heavy)
    gained = np.full((len(heavy), 3), -1.0)
    for place, view in enumerate(best):
        gained[view] = 100.0 - place
    schedule.rank(gained, calls)
    return schedule


@pytest.mark.parametrize(
    ("best", "calls", "others"),
    [
        ([4, 0, 9, 2, 7], 100, Schedule.part),
        ([1], LATE, Schedule.late_part),
    ],
)
def test_the_best_views_count_every_call_and_the_others_a_part(best, calls, others):
    thinning = ranked([False] * 12, best, calls).thinning
    assert thinning == [1 if k in best else others for k in range(12)]
    assert Schedule.whole == 5


@pytest.mark.parametrize(
    ("best", "calls", "thinning"),
    [
        ([0, 2], 100, Schedule.part),
        ([2, 0], 100, 1),  # it leads by 1
        ([2, 0], LATE, Schedule.late_part),
        ([2], LATE, 1),  # by 101
    ],
)
def test_a_heavy_view_has_to_lead_and_late_to_lead_clearly(best, calls, thinning):
    assert ranked([False, False, True], best, calls).thinning[2] == thinning


def test_views_that_are_clearly_behind_are_frozen_if_any_gained():
    assert ranked([False] * 4, [0, 1]).frozen == [False, False, True, True]
    assert not any(ranked([False] * 4, []).frozen)


def test_a_view_of_a_part_forecasts_and_counts_that_part_alone():
    player = opened("vector", schedule=schedule_of(whole=1, part=8))
    memory = Memory()
    play(player, memory, batches("vector", [300]))
    before = player.forecast(batch(*next(batches("vector", [4]))))
    gained = np.zeros((len(player.names), 1))
    gained[0] = 1.0
    player.rank(gained, 300)
    forecasts, after = play(player, memory, batches("vector", [100, 10], seed=5))
    for k, forecast in enumerate(forecasts):
        if bets([forecast]):
            calls = 100 if k == 0 else 13
            assert forecast.ones.sum() + forecast.zeros.sum() == calls
            new = after[k].expected[1]
            old = before[k].expected[1]
            assert new.sum() - old.sum() == calls


def test_a_new_cut_counts_all_stored_calls():
    player = opened("number", schedule=schedule_of(whole=0))
    memory = Memory()
    play(player, memory, batches("number", [300]))
    player.rank(np.zeros((len(player.names), 1)), 300)
    *_, last = play(player, memory, batches("number", [50, 400, 8], seed=6))
    assert last[0].expected[1].sum() == 750
    assert last[0].ones.sum() + last[0].zeros.sum() == 1


@pytest.mark.parametrize(
    ("zeros", "ones", "thinning"),
    [
        (5, 7, 3),
        (0, 9, 4),
        (40, 30, 64),
    ],
)
def test_the_choice_of_calls_does_not_depend_on_their_coins(zeros, ones, thinning):
    """The part has a fixed size, and its coins are hypergeometric.

    The mean of 4,000 draws is within six standard errors: 2e-9 by normality.
    """
    schedule = Schedule([False])
    drawn = np.array([schedule.thinned(thinning, zeros, ones) for _ in range(4_000)])
    size = -(-(zeros + ones) // thinning)
    assert (drawn.sum(axis=1) == size).all()
    assert (drawn <= [zeros, ones]).all()
    if zeros:
        law = hypergeom(zeros + ones, zeros, size)
        error = abs(drawn[:, 0].mean() - law.mean())
        assert error <= 6 * law.std() / math.sqrt(4_000)
    assert schedule.thinned(1, zeros, ones) == (zeros, ones)
