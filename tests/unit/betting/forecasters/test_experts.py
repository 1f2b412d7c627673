"""Experts: their counts against naive ones, and forecasts that ignore their batch."""

import itertools
from dataclasses import replace
from math import inf, prod

import numpy as np
import pytest
from numpy.random import default_rng
from scipy.special import expit
from scipy.stats import entropy

from auditdp.betting.forecasters import batches as memory_module
from auditdp.betting.forecasters.batches import Batch, Memory
from auditdp.betting.forecasters.estimators import ESTIMATORS
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.betting.forecasters.learned_views import Learner
from auditdp.betting.forecasters.partitions import Names, Partition
from auditdp.betting.limits import LIMITS
from tests.unit.betting.toys import OUTPUTS, PAIR

PLAIN = [estimator.name for estimator in ESTIMATORS].index("cells")
SIZES = [1, 2, 1, 4, 8, 30, 60, 1, 200, 5, 700, 40, 900]


def batch(ones, zeros):
    return Batch(ones, zeros, default_rng(0))


def opened(kind, **options):
    player = ViewExperts(**options).player(None, PAIR)
    player.open(OUTPUTS[kind](0, 8, default_rng(99)))
    return player


def batches(kind, sizes, seed=0):
    """Yield outputs under coin 1 and coin 0, batch by batch."""
    rng = default_rng(seed)
    for size in sizes:
        heads = int(rng.binomial(size, 0.5))
        yield OUTPUTS[kind](1, heads, rng), OUTPUTS[kind](0, size - heads, rng)


def play(player, memory, pairs):
    """Return forecasts of some batches, from each of which the player then learns."""
    forecasts = []
    for ones, zeros in pairs:
        forecasts.append(player.forecast(batch(ones, zeros)))
        memory.add(ones, zeros)
        player.learn(memory, stalled=True)
    return forecasts


def bets(forecasts):
    return [forecast for forecast in forecasts if forecast.log_odds.shape[1]]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", [*OUTPUTS][:14])
def test_forecasts_of_fixed_views_are_odds_of_all_calls_in_cells_of_stored_ones(kind):
    """By brute force: calls are cut after 200, and a batch comes before the next cut."""
    player = opened(kind)
    played = list(batches(kind, [200, 50, 40]))
    forecasts = play(player, Memory(), played)[-1]
    checked = 0
    for view, forecast in zip(player.views, forecasts, strict=True):
        if isinstance(view, Learner) or not bets([forecast]):
            continue
        checked += 1
        ones = []
        zeros = []
        for pair in played:
            for values, part in zip((ones, zeros), pair, strict=True):
                rows = part.reshape(len(part), prod(part.shape[1:]))
                values.append(view.values(rows))
        kind_of = Names if view.names else Partition
        partition = kind_of(np.append(zeros[0], ones[0]))
        n1 = partition.count(np.append(*ones[:2]))
        n0 = partition.count(np.append(*zeros[:2]))
        odds = np.log((n1 + 0.5) / (n0 + 0.5))
        if view.names:
            odds[-1] = 0
        assert forecast.log_odds[PLAIN] == pytest.approx(odds), view.name
        assert forecast.expected[1].tolist() == (n1 + n0).tolist()
        assert forecast.ones.tolist() == partition.count(ones[2]).tolist()
        assert forecast.zeros.tolist() == partition.count(zeros[2]).tolist()
    assert checked


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", [*OUTPUTS][:14])
def test_every_call_is_counted_by_every_view_that_forecasts(kind):
    """Every call pays for delta; learned views have counted at most all calls."""
    player = opened(kind)
    memory = Memory()
    calls = 0
    for ones, zeros in batches(kind, SIZES):
        (forecasts,) = play(player, memory, [(ones, zeros)])
        experts = sum(len(each.log_odds) for each in forecasts)
        assert experts == len(player.names) == len(player.shares)
        for each in bets(forecasts):
            assert each.ones.sum() == len(ones)
            assert each.zeros.sum() == len(zeros)
            assert calls / 2 - 1 <= each.expected[1].sum() <= calls
        calls += len(ones) + len(zeros)
    assert bets(forecasts)


@pytest.mark.parametrize("kind", ["number", "bits", "half new"])
def test_a_forecast_of_an_output_depends_on_earlier_batches_only(kind):
    """Two players with the same past forecast the same with the coins exchanged."""
    first = opened(kind)
    second = opened(kind)
    *past, (ones, zeros) = batches(kind, SIZES)
    for player in (first, second):
        play(player, Memory(), past)
    found = first.forecast(batch(ones, zeros))
    exchanged = second.forecast(batch(zeros, ones))
    for one, other in zip(found, exchanged, strict=True):
        assert one.log_odds.tolist() == other.log_odds.tolist()
        assert one.ones.tolist() == other.zeros.tolist()
        assert one.zeros.tolist() == other.ones.tolist()


def test_every_expert_abstains_before_calls_of_both_coins():
    player = opened("number")
    memory = Memory()
    one_sided = itertools.repeat((np.ones(4), np.ones(0)), 5)
    for forecasts in play(player, memory, one_sided):
        assert not bets(forecasts)
    play(player, memory, [(np.ones(0), np.ones(4))])
    assert bets(player.forecast(batch(np.ones(3), np.ones(2))))


@pytest.mark.parametrize(
    ("kind", "again"),
    [
        ("bits", True),
        ("vector", False),
        ("constant", True),
    ],
)
def test_names_are_used_only_if_they_repeat(kind, again):
    player = opened(kind)
    play(player, Memory(), batches(kind, [200]))
    forecasts = player.forecast(batch(*next(batches(kind, [10]))))
    (place,) = (k for k, view in enumerate(player.views) if view.names)
    assert bool(bets([forecasts[place]])) == again


def test_a_full_memory_ends_learning_and_not_counting(monkeypatch):
    monkeypatch.setattr(memory_module, "LIMITS", replace(LIMITS, memory_bytes=400))
    player = opened("number")
    memory = Memory()
    forecasts = play(player, memory, batches("number", [30, 30, 200, 100, 10]))
    assert memory.full
    assert forecasts[-1][0].expected[1].sum() == 360
    assert len(forecasts[-1][0].ones) == len(forecasts[2][0].ones)


def test_a_users_score_is_never_called_without_outputs():
    """A batch with one coin alone has no outputs of the other one."""
    player = opened("vector", prepare=lambda rows: np.full(len(rows), rows.max()))
    views = {name.split(" in ")[0] for name in player.names}
    assert views == {"value", "fingerprint"}
    some = np.ones((20, 3))
    none = np.ones((0, 3))
    play(player, Memory(), [(some, none), (none, some), *batches("vector", [3, 9])])
    player.forecast(batch(some, none))


@pytest.mark.parametrize("kind", ["vector", "long", "no width"])
def test_every_expert_has_a_name_of_its_own_and_a_part_of_the_share(kind):
    player = opened(kind, prefix="score: ", share=3.0)
    names = player.names
    assert len(set(names)) == len(names) == len(player.views) * len(ESTIMATORS)
    assert all(name.startswith("score: ") for name in names)
    assert sum(player.shares) == pytest.approx(3.0)


def test_the_cells_draw_the_plausible_growth_of_a_call():
    """That of randomised response at 2 against the same at 1."""
    player = opened("bit")
    memory = Memory()
    rng = default_rng(0)
    assert player.plausible_growth(1.0, rng, None) == inf
    law = expit([2.0, -2.0])
    ones, zeros = (rng.random(20_000) < p for p in law)
    memory.add(ones, zeros)
    player.learn(memory, stalled=True)
    growth = entropy(law, expit([1.0, -1.0]))
    for leading in (None, PLAIN):
        found = player.plausible_growth(1.0, rng, leading)
        assert found == pytest.approx(growth, rel=0.2)
    assert player.plausible_growth(3.0, rng, None) == 0.0
