"""Experts: their counts against naive ones, and forecasts that know nothing of their batch."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from auditdp.adjacency import Pair
from auditdp.betting.forecasters.batches import Batch, Memory
from auditdp.betting.forecasters.estimators import ESTIMATORS
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.betting.forecasters.learned_views import Learner
from auditdp.betting.forecasters.partitions import Names, Partition
from auditdp.betting.limits import LIMITS

PAIR = Pair(1, 0)
MIXED = np.array([0.5, math.nan, math.inf, -1.0])
PLAIN = [estimator.name for estimator in ESTIMATORS].index("cells")


def batch(ones, zeros):
    return Batch(ones, zeros, np.random.default_rng(0))


def outputs(kind, coin, size, rng):
    """Outputs under a coin that makes a small difference."""
    return {
        "number": rng.normal(size=size) + coin,
        "bit": (rng.random(size) < 0.5 + 0.2 * coin),
        "no number": rng.choice(MIXED, size=size, p=[0.4, 0.2, 0.2, 0.2]),
        "vector": rng.normal(size=(size, 3)) + 0.3 * coin,
        "bits": (rng.random((size, 4)) < 0.5 + 0.2 * coin).astype(np.int8),
        "matrix": rng.integers(0, 3, (size, 2, 2)),
        "half new": np.where(
            rng.random((size, 2)) < 0.5, 7.0, rng.normal(size=(size, 2))
        ),
        "long": (rng.random((size, 40)) < 0.5),
        "no width": np.zeros((size, 0)),
        "constant": np.full((size, 2), 3),
    }[kind]


KINDS = [
    "number",
    "bit",
    "no number",
    "vector",
    "bits",
    "matrix",
    "half new",
    "long",
    "no width",
    "constant",
]


def opened(kind, **options):
    player = ViewExperts(**options).player(None, PAIR)
    player.open(outputs(kind, 0, 8, np.random.default_rng(99)))
    return player


def batches(kind, sizes, seed=0):
    """Outputs under coin 1 and coin 0, batch by batch."""
    rng = np.random.default_rng(seed)
    for size in sizes:
        heads = int(rng.binomial(size, 0.5))
        yield outputs(kind, 1, heads, rng), outputs(kind, 0, size - heads, rng)


def play(player, memory, pairs):
    """Forecasts of some batches, from each of which the player then learns."""
    forecasts = []
    for ones, zeros in pairs:
        forecasts.append(player.forecast(batch(ones, zeros)))
        memory.add(ones, zeros)
        player.learn(memory, stalled=True)
    return forecasts


SIZES = [1, 2, 1, 4, 4, 8, 3, 30, 60, 1, 200, 5, 700, 40, 40, 900]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_forecasts_of_fixed_views_are_odds_of_all_calls_so_far_in_cells_of_the_kept_ones(
    kind,
):
    """By brute force: calls are cut after 200 of them, and a batch comes before the next cut."""
    player, memory = opened(kind), Memory()
    (kept, later, now) = batches(kind, [200, 50, 40])
    *_, forecasts = play(player, memory, [kept, later, now])
    rows = [[side.reshape(len(side), -1) if side.size else side.reshape(len(side), 0) for side in part]
            for part in (kept, later, now)]  # fmt: skip
    checked = 0
    for view, forecast in zip(player.views, forecasts, strict=True):
        if isinstance(view, Learner) or not forecast.log_odds.shape[1]:
            continue
        checked += 1
        ones, zeros, new = (
            [view.values(rows[0][0]), view.values(rows[1][0])],
            [view.values(rows[0][1]), view.values(rows[1][1])],
            [view.values(side) for side in rows[2]],
        )
        partition = (Names if view.names else Partition)(
            np.concatenate([zeros[0], ones[0]])
        )
        n1, n0 = (partition.count(np.concatenate(side)) for side in (ones, zeros))
        odds = np.log((n1 + 0.5) / (n0 + 0.5))
        if view.names:
            odds[-1] = 0
        assert forecast.log_odds[PLAIN] == pytest.approx(odds), view.name
        assert forecast.expected[1].tolist() == (n1 + n0).tolist()
        assert [forecast.ones.tolist(), forecast.zeros.tolist()] == [
            partition.count(side).tolist() for side in new
        ]
    assert checked


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_every_call_is_counted_by_every_view_that_forecasts(kind):
    """Since every call pays for delta; and what a learned view has counted are never more than all calls."""
    player, memory, calls = opened(kind), Memory(), 0
    for ones, zeros in batches(kind, SIZES):
        (forecasts,) = play(player, memory, [(ones, zeros)])
        assert (
            sum(len(each.log_odds) for each in forecasts)
            == len(player.names)
            == len(player.shares)
        )
        for each in forecasts:
            if each.log_odds.shape[1]:
                assert (each.ones.sum(), each.zeros.sum()) == (len(ones), len(zeros))
                assert calls / 2 - 1 <= each.expected[1].sum() <= calls
        calls += len(ones) + len(zeros)
    assert any(each.log_odds.shape[1] for each in forecasts)


@pytest.mark.parametrize("kind", ["number", "bits", "half new"])
def test_a_forecast_of_an_output_depends_on_earlier_batches_only(kind):
    """Two players with the same past, asked of a batch and of the batch with its coins exchanged, forecast the same."""
    first, second = opened(kind), opened(kind)
    *past, now = batches(kind, SIZES)
    for player in (first, second):
        play(player, Memory(), past)
    for one, other in zip(
        first.forecast(batch(*now)), second.forecast(batch(*now[::-1])), strict=True
    ):
        assert one.log_odds.tolist() == other.log_odds.tolist()
        assert (one.ones.tolist(), one.zeros.tolist()) == (
            other.zeros.tolist(),
            other.ones.tolist(),
        )


def test_before_both_coins_were_seen_every_expert_abstains():
    player, memory = opened("number"), Memory()
    one_sided = play(player, memory, itertools.repeat((np.ones(4), np.ones(0)), 5))
    assert all(
        each.log_odds.shape[1] == 0 for forecasts in one_sided for each in forecasts
    )
    play(player, memory, [(np.ones(0), np.ones(4))])
    assert any(
        each.log_odds.shape[1]
        for each in player.forecast(batch(np.ones(3), np.ones(2)))
    )


@pytest.mark.parametrize(
    ("kind", "again"), [("bits", True), ("vector", False), ("constant", True)]
)
def test_names_are_used_only_where_they_come_again(kind, again):
    player = opened(kind)
    play(player, Memory(), batches(kind, [200]))
    (found,) = [
        each
        for view, each in zip(
            player.views,
            player.forecast(batch(*next(batches(kind, [10])))),
            strict=True,
        )
        if view.names
    ]
    assert bool(found.log_odds.shape[1]) == again


def test_a_full_memory_ends_learning_and_not_counting(monkeypatch):
    from auditdp.betting.forecasters import batches as memory_module

    monkeypatch.setattr(memory_module, "LIMITS", replace(LIMITS, memory_bytes=400))
    player, memory = opened("number"), Memory()
    forecasts = play(player, memory, batches("number", [30, 30, 200, 100, 10]))
    assert memory.full
    assert forecasts[-1][0].expected[1].sum() == 360
    assert len(forecasts[-1][0].ones) == len(forecasts[2][0].ones)


def test_what_prepares_outputs_is_never_asked_for_nothing():
    """People's score functions need not know what to do with no outputs; a batch with one coin alone has none."""

    def score(rows):
        return np.full(len(rows), rows.max())

    player, memory = opened("vector", prepare=score), Memory()
    assert {name.split(" in ")[0] for name in player.names} == {"value", "fingerprint"}
    first = [
        (np.ones((3, 3)), np.ones((0, 3))),
        (np.ones((0, 3)), np.ones((20, 3))),
        *batches("vector", [3, 9]),
    ]
    play(player, memory, first)
    player.forecast(batch(np.ones((3, 3)), np.ones((0, 3))))


def test_every_expert_has_a_name_of_its_own():
    for kind in KINDS:
        player = opened(kind, prefix="seen: ", share=3.0)
        assert (
            len(set(player.names))
            == len(player.names)
            == len(player.views) * len(ESTIMATORS)
        )
        assert all(name.startswith("seen: ") for name in player.names)
        assert sum(player.shares) == pytest.approx(3.0)


def test_the_cells_draw_what_a_call_may_earn():
    """Many counts of randomised response at 2: the growth against 1 is p ln(p/q) + (1-p) ln((1-p)/(1-q)), about .054."""
    player, memory = opened("bit"), Memory()
    rng = np.random.default_rng(0)
    assert player.plausible_growth(1.0, rng, None) == math.inf
    p, q = 1 / (1 + math.exp(-2)), 1 / (1 + math.exp(-1))
    memory.add(rng.random(20_000) < p, rng.random(20_000) < 1 - p)
    player.learn(memory, stalled=True)
    growth = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
    for leading in (None, PLAIN):
        assert player.plausible_growth(1.0, rng, leading) == pytest.approx(
            growth, rel=0.2
        )
    assert player.plausible_growth(3.0, rng, None) == 0.0
