"""Sources of randomness beside the generator that is handed in."""

import random
import secrets

import numpy as np
import pytest
from sklearn.utils import check_random_state

from auditdp import PureDP
from auditdp.tracing import Trace
from auditdp.tracing.draws import CHOICE, COIN
from tests.unit.tracing.toys import certain_kinds, families, kinds, pair_of, record


def seeded(function, v):
    """Run with global generators in the same state."""
    np.random.seed(3)  # noqa: NPY002
    random.seed(3)
    return function(v, np.random.default_rng(3))


NOISES = {
    "np.random": (lambda rng: np.random.normal(scale=2.0, size=3), "Gaussian"),  # noqa: NPY002
    "RandomState": (lambda rng: np.random.RandomState(5).laplace(size=2), "Laplace"),
    "Generator": (
        lambda rng: np.random.Generator(np.random.PCG64(5)).laplace(),
        "Laplace",
    ),
    "random.gauss": (lambda rng: random.gauss(0, 2.0), "Gaussian"),
    "random.randint": (lambda rng: random.randint(-3, 3), "integer"),
    "random.expovariate": (
        lambda rng: random.expovariate(1.0) - random.expovariate(1.0),
        "Laplace",
    ),
    "scikit-learn": (lambda rng: check_random_state(None).normal(size=3), "Gaussian"),
}


@pytest.mark.parametrize("name", NOISES)
def test_noise_is_released_and_outputs_are_those_of_plain_runs(name):
    draw, family = NOISES[name]

    def noisy(v, rng):
        return v + draw(rng)

    traced = seeded(Trace(noisy).record, 2)
    plain = seeded(noisy, 2)
    assert families(traced) == [family]
    assert not traced.opaque
    assert type(traced.output) is type(plain)
    np.testing.assert_array_equal(traced.output, plain)


@pytest.mark.parametrize("module", [secrets, random])
def test_noise_of_the_operating_system_is_released(module):
    sample = module.SystemRandom().gauss
    pair = pair_of(lambda v, rng: v + sample(0, 1))
    assert families(pair.first) == ["Gaussian"]
    assert pair.differ is None


@pytest.mark.parametrize(
    ("choose", "kind"),
    [
        (lambda v, rng: random.choices("abc", weights=[1, 2, 3])[0], CHOICE),
        (lambda v, rng: rng.choice(["a", "b"], p=[0.3, 0.7]), CHOICE),
        (lambda v, rng: secrets.randbelow(10) < 3, COIN),
        (lambda v, rng: np.random.random() < 0.3, COIN),  # noqa: NPY002
    ],
)
def test_choices_and_coins_of_every_source(choose, kind):
    traced = seeded(Trace(choose).record, 0)
    assert [release.kind for release in traced.releases] == [kind]
    assert not traced.opaque


def shuffled(shuffle):
    """Return code that changes a copy of the rows, and returns it."""

    def code(rows, rng):
        rows = np.array(rows)
        shuffle(rows, rng)
        return rows.tolist()

    return code


def both_lines_shuffled(rows, rng):
    lines = np.array([rows, rows])
    rng.shuffle(lines, axis=1)
    return lines[0].tolist()


ORDERS = {
    "permutation": lambda rows, rng: [rows[k] for k in rng.permutation(len(rows))],
    "shuffle": shuffled(lambda rows, rng: rng.shuffle(rows)),
    "shuffle along an axis": both_lines_shuffled,
    "random.shuffle": shuffled(lambda rows, rng: random.shuffle(rows)),
    "random.sample": lambda rows, rng: random.sample(list(rows), 3),
    "secrets.choice": lambda rows, rng: [secrets.choice(rows)],
    "choice": lambda rows, rng: rng.choice(rows, size=3, replace=False).tolist(),
}


@pytest.mark.parametrize("name", ORDERS)
def test_a_replay_takes_the_same_items_of_the_neighbour(name):
    trace = Trace(ORDERS[name])
    items = ["0", "1", "2", "3", "4"]
    recorded = seeded(trace.record, items)
    if name != "secrets.choice":
        assert recorded.output == seeded(ORDERS[name], items)
    other = trace.replay([2 * item for item in items], recorded)
    assert not other.parted
    assert other.output == [2 * item for item in recorded.output]


@pytest.mark.parametrize("name", ["shuffle", "random.shuffle", "permutation"])
def test_an_order_of_another_number_of_items_has_each_of_them_once(name):
    trace = Trace(ORDERS[name])
    recorded = seeded(trace.record, ["0", "1", "2", "3", "4"])
    for items in (["00", "11", "22"], [str(k) for k in range(10, 19)]):
        assert sorted(trace.replay(items, recorded).output) == items


def test_a_seed_that_is_used_twice_makes_the_same_draws():
    def twice(v, rng):
        one, other = (np.random.default_rng(9).laplace() for _ in range(2))
        return v + one, other - v

    assert kinds(pair_of(twice, claim=PureDP(9.0))) == ["seed", "reuse"]


def test_draws_of_a_seed_that_is_used_twice_are_recorded_before_they_are_changed():
    def in_place(v, rng):
        np.random.default_rng(9).laplace(size=2)
        noise = np.random.default_rng(9).laplace(size=2)
        noise += v
        return noise

    trace = Trace(in_place)
    recorded = trace.record(10.0, np.random.default_rng(1))
    output = np.array(recorded.output)
    again = trace.redrawn(recorded, fresh=frozenset(), forced={}, seed=0)
    np.testing.assert_array_equal(again.output, output)


def test_a_legacy_seed_from_the_data_is_found():
    def noisy(v, rng):
        np.random.seed(v)  # noqa: NPY002
        return v + np.random.laplace()  # noqa: NPY002

    assert kinds(pair_of(noisy, 1, 2, PureDP(9.0)))[0] == "seed"


def test_generators_in_the_arguments_are_watched():
    def noisy(data):
        return data["count"] + data["source"].laplace()

    traced = record(noisy, {"count": 3, "source": np.random.default_rng(2)})
    assert [release.location for release in traced.releases] == [3]
    assert traced.output == 3 + np.random.default_rng(2).laplace()


@pytest.mark.parametrize(
    ("function", "is_fixed"),
    [
        (lambda v: v + np.random.default_rng(7).normal(), True),
        (lambda v: v + random.Random(7).gauss(0, 1), True),
        (
            lambda v, rng: v + np.random.default_rng(int(rng.integers(2**40))).normal(),
            False,
        ),
    ],
)
def test_noise_that_is_the_same_in_every_run_is_found(function, is_fixed):
    pair = pair_of(function, 1.0, 2.0, PureDP(9.0))
    assert ("seed" in certain_kinds(pair)) == ("seed" in kinds(pair)) == is_fixed
