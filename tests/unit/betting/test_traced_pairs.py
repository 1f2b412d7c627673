"""Pairs that a trace proposes, in few runs, and what it leaves alone."""

from functools import cache

import numpy as np
import pytest
from hypothesis import strategies as st

from auditdp.adjacency import Alike, Pair, Rows
from auditdp.adjacency.pair_search import key
from auditdp.betting.forecasters.traced import RunBudget
from auditdp.betting.pairs.trace_summary import PROMISED
from auditdp.betting.pairs.traced_search import looked_by_trace, trace_runs
from auditdp.claims.statements import GaussianDP, PureDP
from auditdp.errors import MechanismError
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.protocol import as_mechanism

AGES = Rows(st.integers(0, 120), "add/remove", most=6)


def total(ages, rng):
    return sum(ages) + rng.laplace(scale=100.0)


def clipped_total(ages, rng):
    return sum(min(age, 100) for age in ages) + rng.laplace(scale=100.0)


def exact_over_five(ages, rng):
    return len(ages) if len(ages) > 5 else len(ages) + rng.laplace()


def opaque(ages, rng):
    return len(ages) + np.sqrt(np.abs(rng.standard_cauchy()))


def refusing(ages, rng):
    if max(ages, default=0) > 100:
        raise MechanismError("expected ages of at most 100")
    return total(ages, rng)


def exits(ages, rng):
    raise SystemExit(3)


def looked(function, calls=2_000, adjacency=AGES, listed=None):
    listed = adjacency.pairs() if listed is None else listed
    return looked_by_trace(
        as_mechanism(function), PureDP(1.0), listed, adjacency, calls=calls, seed=1
    )


@cache
def looked_at_total():
    return looked(total)


def test_the_pair_that_loses_most_is_proposed():
    found = looked_at_total()
    (pair, promise), *_ = found.proposed
    assert promise == PROMISED
    assert abs(sum(pair.data) - sum(pair.neighbour)) == 120
    assert found.share == pytest.approx(1.2)


def test_a_pair_that_gets_round_the_noise_comes_first():
    (pair, promise), *_ = looked(exact_over_five).proposed
    assert promise == PROMISED
    assert max(len(pair.data), len(pair.neighbour)) == 6


def test_of_losses_without_bound_that_of_the_laws_farthest_apart_is_proposed():
    def mean(shares, rng):
        return np.mean(shares) + rng.laplace(scale=1 / (len(shares) + 1))

    (pair, _), *_ = looked(
        mean, adjacency=Rows(st.floats(0.0, 1.0), "add/remove", least=1, most=5)
    ).proposed
    assert abs(np.mean(pair.data) - np.mean(pair.neighbour)) == 0.5


def test_of_noise_whose_scale_moves_the_pair_on_which_most_is_won_is_proposed():
    """All pairs lose without bound, but in tails alone where there are many records."""

    def mean(ages, rng):
        return (sum(ages) + rng.laplace(scale=120.0)) / max(len(ages), 1)

    adjacency = Rows(st.integers(0, 120), "add/remove")
    found, calls = looked(mean, adjacency=adjacency), Calls(as_mechanism(mean))
    calls.look(
        (data for pair in adjacency.pairs() for data in (pair.data, pair.neighbour)),
        np.random.default_rng(1),
    )
    assert found.replayed(calls.form, PureDP(1.0)) is not None
    (pair, promise), *_ = found.proposed
    assert promise == PROMISED
    assert sorted((len(pair.data), len(pair.neighbour))) == [1, 2]
    assert abs(sum(pair.data) - sum(pair.neighbour)) == 120
    assert key(pair) in {key(each.pair) for each in found.looked}


def test_nothing_is_promised_of_correct_code_and_its_loss_is_bounded():
    found = looked(clipped_total)
    assert all(promise < PROMISED for _, promise in found.proposed)
    assert found.share == pytest.approx(1.0)
    assert found.covers


def test_an_input_that_is_refused_is_no_candidate():
    found = looked(refusing, listed=[Pair([50], [])])
    assert found.share >= 0.9
    assert not [
        pair
        for pair, promise in found.proposed
        if max([*pair.data, *pair.neighbour]) > 100
    ]


def test_code_that_is_not_understood_costs_few_runs():
    found = looked(opaque)
    assert not found.proposed
    assert found.runs <= trace_runs(2_000, vectorised=False) // 2


def test_code_that_ends_the_process_ends_the_trace_alone_and_it_says_so():
    found = looked(exits)
    assert not found.proposed
    assert "SystemExit" in found.failed


@pytest.mark.parametrize("calls", [300, 2_000])
def test_runs_are_bounded_by_the_calls_of_the_game(calls):
    def coins(ages, rng):
        return [age if rng.random() < 0.7 else 0 for age in ages]

    assert looked(coins, calls).runs < 3 * trace_runs(calls, vectorised=False)


def test_the_same_seed_gives_the_same_pairs():
    one, other = looked_at_total(), looked(total)
    assert [(str(pair), promise) for pair, promise in one.proposed] == [
        (str(p), promise) for p, promise in other.proposed
    ]
    assert (one.runs, one.pairs) == (other.runs, other.pairs)


def test_few_calls_are_not_worth_a_trace():
    assert looked(total, calls=60).runs == 0


RECORDS = np.array([0.3, -0.2, 2.5, 0.1, -1.5, 0.4])


def bounded(function, place, calls=600):
    pair = Pair(RECORDS, np.delete(RECORDS, place))
    return looked_by_trace(
        as_mechanism(function),
        GaussianDP(0.3),
        [pair],
        Alike([pair]),
        calls=calls,
        seed=1,
        budget=RunBudget(total=calls, before_game=calls // 2),
    )


def test_where_runs_are_bounded_a_search_ends_at_a_pair_that_shows_enough():
    look = bounded(lambda data, rng: np.clip(data, -1, 1).sum() + rng.normal(), 0)
    ((pair, promise), *_) = look.proposed
    assert promise == PROMISED
    assert look.runs < 100
    assert abs(
        np.clip(pair.data, -1, 1).sum() - np.clip(pair.neighbour, -1, 1).sum()
    ) == pytest.approx(1.0)


def test_of_code_that_is_not_understood_the_pair_is_proposed_whose_outputs_are_farthest_apart():
    mixed, runs = np.array([[1.0, 0.0], [0.9, 0.4]]), []
    for calls in (600, 12_000):
        look = bounded(
            lambda data, rng: np.clip(data, -1, 1).sum() + mixed @ rng.laplace(size=2),
            0,
            calls,
        )
        ((pair, _),) = look.proposed
        assert not look.is_traced
        assert abs(
            np.clip(pair.data, -1, 1).sum() - np.clip(pair.neighbour, -1, 1).sum()
        ) == pytest.approx(1.0)
        runs.append(look.runs)
    assert runs[1] > 2 * runs[0]  # where there are more, outputs of more tell better


def test_a_trace_that_understands_nothing_bounds_nothing():
    def code(value, rng):
        return value + rng.standard_t(3)

    look = looked_by_trace(
        code,
        PureDP(1.0),
        [Pair(0.0, 1.0)],
        None,
        calls=400,
        seed=0,
        budget=RunBudget(total=400, before_game=200),
    )
    assert look.looked
    assert not look.is_traced
    assert not look.covers
