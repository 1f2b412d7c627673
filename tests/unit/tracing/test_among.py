"""Orders and samples of records in a replay on an input with one record fewer or more."""

import itertools
import random
import sys
from collections import Counter

import numpy as np
import pytest

from auditdp.tracing import Trace, compare
from auditdp.tracing.among import among

PLACE = 1
DRAWS = {
    "permutation": lambda n: itertools.permutations(range(n)),
    "sample of items": lambda n: itertools.permutations(range(n), 2),
    "choice of items": lambda n: itertools.product(range(n), repeat=2),
    "integer": range,
}


@pytest.mark.parametrize("family", DRAWS)
@pytest.mark.parametrize("more", [False, True])
def test_what_is_drawn_uniformly_on_one_input_is_uniform_on_the_other_and_the_others_stay(
    family, more
):
    before, after = 4, 5 if more else 3
    seen = Counter()
    for recorded, fresh in itertools.product(
        DRAWS[family](before), DRAWS[family](after)
    ):
        recorded, fresh = (np.array(each)[()] for each in (recorded, fresh))
        made = among(family, recorded, fresh, PLACE, more)
        assert np.array_equal(
            among(family, recorded, made, PLACE, more), made
        )  # a replay asks twice: draw and release
        names = (
            np.arange(after) - (np.arange(after) > PLACE)
            if more
            else np.delete(np.arange(before), PLACE)
        )
        was, now = (
            np.atleast_1d(recorded),
            [None if more and k == PLACE else names[k] for k in np.atleast_1d(made)],
        )
        if family == "permutation":
            assert [k for k in now if k is not None] == [
                k for k in was if more or k != PLACE
            ]
        else:
            assert all(
                k in (old, None) or (old == PLACE and not more)
                for k, old in zip(now, was, strict=True)
            )
        seen[tuple(np.atleast_1d(made).tolist())] += 1
    assert len(set(seen.values())) == 1
    assert sorted(seen) == sorted(
        tuple(np.atleast_1d(each).tolist()) for each in DRAWS[family](after)
    )


def test_a_draw_of_another_shape_is_left_as_it_is():
    fresh = np.array([2, 0])
    assert among("permutation", np.array([3, 1, 0, 2]), fresh, PLACE, False) is fresh
    assert among("sample of items", np.array([3, 1, 0]), fresh, PLACE, False) is fresh


def shuffled_in_place(data, rng):
    order = np.arange(len(data))
    rng.shuffle(order)
    return order


def of_the_standard_library(data, rng):
    order = [*range(len(data))]
    random.shuffle(order)
    return order


def from_a_loader(data, rng):
    torch = sys.modules["torch"]
    data = torch.utils.data.TensorDataset(torch.arange(len(data)))
    return [
        int(k)
        for (batch,) in torch.utils.data.DataLoader(data, batch_size=2, shuffle=True)
        for k in batch
    ]


ORDERS = {
    "permutation": lambda data, rng: rng.permutation(len(data)),
    "shuffle": shuffled_in_place,
    "random.shuffle": of_the_standard_library,
    "torch.randperm": lambda data, rng: (
        sys.modules["torch"].randperm(len(data)).tolist()
    ),
    "a loader": from_a_loader,
    "choice": lambda data, rng: rng.choice(len(data), 3, replace=False),
    "choice with replacement": lambda data, rng: rng.choice(len(data), size=3),
    "integers": lambda data, rng: rng.integers(0, len(data), size=3),
    "random.sample": lambda data, rng: random.sample(range(len(data)), 3),
    "torch.randint": lambda data, rng: (
        sys.modules["torch"].randint(0, len(data), (3,)).tolist()
    ),
}
RECORDS = np.array([1.0, 10.0, 100.0, 1000.0, 10000.0])


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("way", [0, 1])
def test_the_other_records_are_drawn_as_they_were_where_one_is_missing(name, way):
    if name in ("torch.randperm", "a loader", "torch.randint"):
        pytest.importorskip("torch")

    def train(data, rng):
        return [data[int(k)] + rng.normal() for k in ORDERS[name](data, rng)]

    for seed in range(4):
        pair = [RECORDS, np.delete(RECORDS, PLACE)]
        random.seed(seed)
        trace = compare(
            Trace(train), *pair[:: 1 - 2 * way], np.random.default_rng(seed), outcomes=0
        )
        both = [
            [r.location for r in run.releases if r.location is not None]
            for run in (trace.first, trace.second)
        ]
        longer, shorter = both[:: 1 - 2 * way]
        if len(longer) == len(shorter):
            assert trace.second.parted == []
            assert all(
                a in (b, RECORDS[PLACE]) for a, b in zip(longer, shorter, strict=True)
            )
        else:
            assert [value for value in longer if value != RECORDS[PLACE]] == shorter


def test_numbers_that_are_drawn_below_several_bounds_are_no_places_of_records():
    def train(data, rng):
        return rng.integers(0, np.full(2, len(data))) + rng.normal(size=2)

    trace = compare(
        Trace(train), RECORDS, RECORDS[1:], np.random.default_rng(0), outcomes=0
    )
    assert trace.first.untraceable == trace.second.untraceable == ""
    assert trace.differ is None


@pytest.mark.parametrize(
    "draw", [lambda rng, n: rng.random(n) < 0.5, lambda rng, n: rng.permutation(n)[:2]]
)
@pytest.mark.parametrize("added", [False, True])
def test_both_inputs_run_with_the_same_draws_where_one_has_a_record_more(draw, added):
    """What is left of their difference is the record that one of them lacks; the sum is forced to nothing."""

    def train(data, rng):
        return [data[draw(rng, len(data))].sum() + rng.normal() for _ in range(8)]

    data = np.array([0.0, 1.0, 0.0, 0.0])
    inputs = (np.delete(data, 1), data) if added else (data, np.delete(data, 1))
    one, other = (
        np.array(run.output)
        for run in Trace(train).both(*inputs, np.random.default_rng(1))
    )
    moved = np.round((other - one) * (1 if added else -1), 9)
    assert set(moved.tolist()) == {0.0, 1.0}


def test_both_inputs_run_with_the_same_generator_where_no_records_are_drawn():
    first, second = Trace(lambda x, rng: x + rng.normal()).both(
        1.0, 3.0, np.random.default_rng(1)
    )
    assert second.output - first.output == pytest.approx(2.0)
