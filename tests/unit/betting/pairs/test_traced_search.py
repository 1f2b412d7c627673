"""Pairs that a trace proposes within few runs, and code that it leaves alone."""

import numpy as np
import pytest
from hypothesis import strategies as st

from auditdp import Alike, GaussianDP, Pair, Rows
from auditdp.adjacency.pair_search import key
from auditdp.betting.forecasters.traced import RunBudget
from auditdp.betting.pairs.trace_summary import PROMISED
from auditdp.betting.pairs.traced_search import looked_by_trace, trace_runs
from auditdp.errors import MechanismError
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.protocol import as_mechanism
from tests.unit.betting.toys import CLAIM

AGES = Rows(st.integers(0, 120), "add/remove", most=6)


def total(ages, rng):
    return sum(ages) + rng.laplace(scale=100.0)


def looked(function, calls=2_000, adjacency=AGES, listed=None):
    listed = adjacency.pairs() if listed is None else listed
    mechanism = as_mechanism(function)
    return looked_by_trace(mechanism, CLAIM, listed, adjacency, calls=calls, seed=1)


def change(pair, of=sum):
    return abs(of(pair.data) - of(pair.neighbour))


def exact_over_five(ages, rng):
    return len(ages) if len(ages) > 5 else len(ages) + rng.laplace()


def mean_of_shares(shares, rng):
    return np.mean(shares) + rng.laplace(scale=1 / (len(shares) + 1))


SHARES = Rows(st.floats(0.0, 1.0), "add/remove", least=1, most=5)


@pytest.mark.parametrize(
    ("function", "adjacency", "measure", "expected"),
    [
        (total, AGES, change, 120),
        # This pair bypasses the noise.
        (exact_over_five, AGES, lambda p: max(len(p.data), len(p.neighbour)), 6),
        # Of unbounded losses, the one of the most distant laws is proposed.
        (mean_of_shares, SHARES, lambda p: change(p, np.mean), 0.5),
    ],
)
def test_the_pair_that_loses_most_is_proposed(function, adjacency, measure, expected):
    found = looked(function, adjacency=adjacency)
    (pair, promise), *_ = found.proposed
    assert promise == PROMISED
    assert measure(pair) == expected
    if function is total:
        assert found.share == pytest.approx(1.2)


def test_of_noise_whose_scale_moves_the_pair_with_the_largest_gain_is_proposed():
    """All pairs lose without bound, but in tails alone if there are many records."""

    def mean(ages, rng):
        return (sum(ages) + rng.laplace(scale=120.0)) / max(len(ages), 1)

    adjacency = Rows(st.integers(0, 120), "add/remove")
    found = looked(mean, adjacency=adjacency)
    calls = Calls(as_mechanism(mean))
    inputs = [
        data for pair in adjacency.pairs() for data in (pair.data, pair.neighbour)
    ]
    calls.look(inputs, np.random.default_rng(1))
    assert found.replayed(calls.form, CLAIM) is not None
    (pair, promise), *_ = found.proposed
    assert promise == PROMISED
    assert sorted((len(pair.data), len(pair.neighbour))) == [1, 2]
    assert change(pair) == 120
    assert key(pair) in {key(each.pair) for each in found.looked}


def test_correct_code_promises_nothing_and_its_loss_is_bounded():
    def clipped_total(ages, rng):
        return total([min(age, 100) for age in ages], rng)

    found = looked(clipped_total)
    assert all(promise < PROMISED for _, promise in found.proposed)
    assert found.share == pytest.approx(1.0)
    assert found.covers


def test_a_refused_input_is_no_candidate():
    def refusing(ages, rng):
        if max(ages, default=0) > 100:
            raise MechanismError("expected ages of at most 100")
        return total(ages, rng)

    found = looked(refusing, listed=[Pair([50], [])])
    assert found.share >= 0.9
    for pair, _ in found.proposed:
        assert max([*pair.data, *pair.neighbour]) <= 100


def test_opaque_code_costs_few_runs():
    def opaque(ages, rng):
        return len(ages) + np.sqrt(np.abs(rng.standard_cauchy()))

    found = looked(opaque)
    assert not found.proposed
    assert found.runs <= trace_runs(2_000, vectorised=False) // 2


def test_code_that_ends_the_process_ends_the_trace_alone():
    def exits(ages, rng):
        raise SystemExit(3)

    found = looked(exits)
    assert not found.proposed
    assert "SystemExit" in found.failed


@pytest.mark.parametrize("calls", [60, 300, 2_000])
def test_runs_are_bounded_by_the_calls_of_the_game(calls):
    def coins(ages, rng):
        return [age if rng.random() < 0.7 else 0 for age in ages]

    most = 3 * trace_runs(calls, vectorised=False)
    assert looked(coins, calls).runs <= (0 if calls == 60 else most)


RECORDS = np.array([0.3, -0.2, 2.5, 0.1, -1.5, 0.4])


def clipped(data):
    return np.clip(data, -1, 1).sum()


def bounded(function, calls):
    """Search with a run budget, from a pair whose sums differ by 0.3."""
    pair = Pair(RECORDS, RECORDS[1:])
    budget = RunBudget(total=calls, before_game=calls // 2)
    options = {"calls": calls, "seed": 1, "budget": budget}
    mechanism = as_mechanism(function)
    return looked_by_trace(mechanism, GaussianDP(0.3), [pair], Alike([pair]), **options)


def test_with_a_run_budget_a_search_ends_at_a_pair_with_a_short_game():
    look = bounded(lambda data, rng: clipped(data) + rng.normal(), 600)
    ((pair, promise), *_) = look.proposed
    assert promise == PROMISED
    assert look.runs < 100
    assert change(pair, clipped) == pytest.approx(1.0)


def test_of_opaque_code_the_pair_with_the_most_distant_outputs_is_proposed():
    def mixed(data, rng):
        return clipped(data) + np.array([[1.0, 0.0], [0.9, 0.4]]) @ rng.laplace(size=2)

    runs = []
    for calls in (600, 12_000):
        look = bounded(mixed, calls)
        ((pair, _),) = look.proposed
        assert not look.is_traced
        assert change(pair, clipped) == pytest.approx(1.0)
        runs.append(look.runs)
    assert runs[1] > 2 * runs[0]


def test_a_trace_of_opaque_code_bounds_nothing():
    budget = RunBudget(total=400, before_game=200)
    look = looked_by_trace(
        lambda value, rng: value + rng.standard_t(3),
        CLAIM,
        [Pair(0.0, 1.0)],
        None,
        calls=400,
        seed=0,
        budget=budget,
    )
    assert look.looked
    assert not look.is_traced
    assert not look.covers
