"""Orders and samples of records on an input with one record fewer or more."""

import itertools
import random
import sys
from collections import Counter

import numpy as np
import pytest

from auditdp.tracing import Trace
from auditdp.tracing.among import among
from tests.unit.tracing.toys import pair_of

PLACE = 1
DRAWS = {
    "permutation": lambda n: itertools.permutations(range(n)),
    "sample of items": lambda n: itertools.permutations(range(n), 2),
    "choice of items": lambda n: itertools.product(range(n), repeat=2),
    "integer": lambda n: itertools.product(range(n)),
}


@pytest.mark.parametrize("family", DRAWS)
@pytest.mark.parametrize("more", [False, True])
def test_uniform_draws_stay_uniform_and_other_records_stay(family, more):
    before = 4
    after = 5 if more else 3
    # The names of the records after the change; None is the new one.
    names = [0, 1, 2, 3]
    if more:
        names.insert(PLACE, None)
    else:
        names.remove(PLACE)
    seen = Counter()
    draws = itertools.product(DRAWS[family](before), DRAWS[family](after))
    for recorded, fresh in draws:
        single = family == "integer"
        recorded = np.array(recorded[0] if single else recorded)[()]
        fresh = np.array(fresh[0] if single else fresh)[()]
        made = among(family, recorded, fresh, PLACE, more)
        # A replay calls it for the draw and for the release.
        assert np.array_equal(among(family, recorded, made, PLACE, more), made)
        was = np.atleast_1d(recorded)
        now = [names[k] for k in np.atleast_1d(made)]
        if family == "permutation":
            kept = [k for k in was if more or k != PLACE]
            assert [k for k in now if k is not None] == kept
        else:
            for new, old in zip(now, was, strict=True):
                assert new in (old, None) or (old == PLACE and not more)
        seen[tuple(np.atleast_1d(made).tolist())] += 1
    assert len(set(seen.values())) == 1
    assert sorted(seen) == sorted(DRAWS[family](after))


@pytest.mark.parametrize("records", [3, 5])
def test_uniform_numbers_are_drawn_anew_if_their_range_depends_on_the_records(records):
    def in_moving_range(rows, rng):
        return rng.uniform(len(rows), len(rows) + 1, len(rows))

    pair = pair_of(in_moving_range, np.arange(4.0), np.arange(float(records)))
    assert np.all(np.floor(pair.second.draws[0].numbers) == records)


def test_a_draw_of_another_shape_is_left_as_it_is():
    fresh = np.array([2, 0])
    assert among("permutation", np.array([3, 1, 0, 2]), fresh, PLACE, False) is fresh
    assert among("sample of items", np.array([3, 1, 0]), fresh, PLACE, False) is fresh


def torch():
    return sys.modules["torch"]


def shuffled_by(shuffle):
    def order(n, rng):
        places = np.arange(n)
        shuffle(places, rng)
        return places

    return order


def from_a_loader(n, rng):
    data = torch().utils.data.TensorDataset(torch().arange(n))
    loader = torch().utils.data.DataLoader(data, batch_size=2, shuffle=True)
    return [int(k) for (batch,) in loader for k in batch]


ORDERS = {
    "permutation": lambda n, rng: rng.permutation(n),
    "shuffle": shuffled_by(lambda places, rng: rng.shuffle(places)),
    "torch.randperm": lambda n, rng: torch().randperm(n).tolist(),
    "torch's loader": from_a_loader,
    "choice": lambda n, rng: rng.choice(n, 3, replace=False),
    "integers": lambda n, rng: rng.integers(0, n, size=3),
    "random.sample": lambda n, rng: random.sample(range(n), 3),
    "torch.randint": lambda n, rng: torch().randint(0, n, (3,)).tolist(),
}
RECORDS = np.array([1.0, 10.0, 100.0, 1000.0, 10000.0])


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("more", [False, True])
def test_the_other_records_are_drawn_alike_on_both_inputs(name, more):
    if "torch" in name:
        pytest.importorskip("torch")

    def train(data, rng):
        return [data[int(k)] + rng.normal() for k in ORDERS[name](len(data), rng)]

    first = RECORDS
    second = np.delete(RECORDS, PLACE)
    if more:
        first, second = second, first
    for seed in range(3):
        random.seed(seed)
        pair = pair_of(train, first, second, seed=seed, outcomes=0)
        locations = [
            [r.location for r in run.releases if r.location is not None]
            for run in (pair.first, pair.second)
        ]
        shorter, longer = locations if more else locations[::-1]
        if len(longer) == len(shorter):
            assert pair.second.parted == []
            for one, other in zip(longer, shorter, strict=True):
                assert one in (other, RECORDS[PLACE])
        else:
            assert [value for value in longer if value != RECORDS[PLACE]] == shorter


def test_numbers_below_several_bounds_are_no_places_of_records():
    def train(data, rng):
        return rng.integers(0, np.full(2, len(data))) + rng.normal(size=2)

    pair = pair_of(train, RECORDS, RECORDS[1:], outcomes=0)
    assert pair.first.untraceable == pair.second.untraceable == ""
    assert pair.differ is None


@pytest.mark.parametrize("added", [False, True])
def test_both_runs_differ_by_the_missing_record_alone(added):
    def train(data, rng):
        places = [rng.permutation(len(data))[:2] for _ in range(8)]
        return [data[drawn].sum() + rng.normal() for drawn in places]

    inputs = [np.array([0.0, 1.0, 0.0, 0.0]), np.zeros(3)]
    if added:
        inputs.reverse()
    one, other = Trace(train).both(*inputs, np.random.default_rng(1))
    moves = np.abs(np.subtract(one.output, other.output))
    assert set(np.round(moves, 9).tolist()) == {0.0, 1.0}


def test_both_runs_have_the_same_generator_if_no_records_are_drawn():
    trace = Trace(lambda x, rng: x + rng.normal())
    first, second = trace.both(1.0, 3.0, np.random.default_rng(1))
    assert second.output - first.output == pytest.approx(2.0)
