"""What is recognised beside a generator that is handed in, with the outputs of plain runs."""

import random
import secrets

import numpy as np
import pytest
import scipy.stats
from sklearn.utils import check_random_state

from auditdp.claims.statements import PureDP
from auditdp.tracing import Trace, compare
from auditdp.tracing.draws import CHOICE, COIN


def seeded(function, v):
    """Run with the global generators at the same state."""
    np.random.seed(3)  # noqa: NPY002
    random.seed(3)
    return function(v, np.random.default_rng(3))


NOISY = {
    "np.random": (lambda v, rng: v + np.random.laplace(0, 2.0), "Laplace"),  # noqa: NPY002
    "np.random.normal": (
        lambda v, rng: v + np.random.normal(scale=2.0, size=3),  # noqa: NPY002
        "Gaussian",
    ),
    "np.random.randn": (lambda v, rng: v + np.random.randn(2, 2), "Gaussian"),  # noqa: NPY002
    "np.random.rand": (lambda v, rng: v + np.random.rand(2), "uniform"),  # noqa: NPY002
    "RandomState": (
        lambda v, rng: v + np.random.RandomState(5).laplace(size=2),
        "Laplace",
    ),
    "default_rng": (lambda v, rng: v + np.random.default_rng(5).normal(), "Gaussian"),
    "Generator": (
        lambda v, rng: v + np.random.Generator(np.random.PCG64(5)).laplace(),
        "Laplace",
    ),
    "spawned": (lambda v, rng: v + rng.spawn(1)[0].laplace(), "Laplace"),
    "random.gauss": (lambda v, rng: v + random.gauss(0, 2.0), "Gaussian"),
    "random.normalvariate": (
        lambda v, rng: v + random.normalvariate(0, 2.0),
        "Gaussian",
    ),
    "random.uniform": (lambda v, rng: v + random.uniform(-1, 1), "uniform"),
    "random.randint": (lambda v, rng: v + random.randint(-3, 3), "integer"),
    "random.randrange": (lambda v, rng: v + random.randrange(0, 10, 2), "integer"),
    "random.Random": (lambda v, rng: v + random.Random(5).gauss(0, 1), "Gaussian"),
    "scipy.stats": (
        lambda v, rng: v + scipy.stats.norm.rvs(scale=2.0, size=3),
        "Gaussian",
    ),
    "of other libraries": (
        lambda v, rng: v + check_random_state(None).normal(scale=2.0, size=3),
        "Gaussian",
    ),
    "random.expovariate": (
        lambda v, rng: v + random.expovariate(1.0) - random.expovariate(1.0),
        "Laplace",
    ),
}


@pytest.mark.parametrize("name", NOISY)
def test_noise_of_every_source_is_released_and_outputs_are_those_of_plain_runs(name):
    function, family = NOISY[name]
    traced = seeded(lambda v, rng: Trace(function).record(v, rng), 2)
    assert [release.law.family for release in traced.releases] == [family]
    assert not traced.opaque
    plain = seeded(function, 2)
    assert type(traced.output) is type(plain)
    np.testing.assert_array_equal(traced.output, plain)


@pytest.mark.parametrize(
    "sample",
    [secrets.SystemRandom().gauss, random.SystemRandom().gauss],
    ids=["secrets", "random"],
)
def test_noise_of_the_operating_system_is_released(sample):
    pair = compare(
        Trace(lambda v, rng: v + sample(0, 1)), 1.0, 2.0, np.random.default_rng(0)
    )
    assert [release.law.family for release in pair.first.releases] == ["Gaussian"]
    assert pair.differ is None


@pytest.mark.parametrize(
    ("choose", "kind"),
    [
        (lambda rng: random.choices("abc", weights=[1, 2, 3])[0], CHOICE),
        (lambda rng: rng.choice(["a", "b"], p=[0.3, 0.7]), CHOICE),
        (lambda rng: random.random() < 0.3, COIN),
        (lambda rng: secrets.randbelow(10) < 3, COIN),
        (lambda rng: np.random.random() < 0.3, COIN),  # noqa: NPY002
    ],
)
def test_choices_and_coins_of_every_source(choose, kind):
    traced = seeded(lambda v, rng: Trace(lambda v, rng: choose(rng)).record(v, rng), 0)
    assert [release.kind for release in traced.releases] == [kind]
    assert not traced.opaque


PUBLIC = {
    "permutation": lambda rows, rng: [rows[k] for k in rng.permutation(len(rows))],
    "permuted": lambda rows, rng: rng.permuted(rows).tolist(),
    "along an axis": lambda rows, rng: rng.permutation(np.array([rows, rows]), axis=1)[
        0
    ].tolist(),
    "each line permuted": lambda rows, rng: rng.permuted(
        np.array([rows, rows]), axis=1
    )[0].tolist(),
    "shuffled along an axis": lambda rows, rng: (
        rng.shuffle(a := np.array([rows, rows]), axis=1),
        a,
    )[1][0].tolist(),
    "permutation of items": lambda rows, rng: rng.permutation(rows).tolist(),
    "shuffle": lambda rows, rng: (rng.shuffle(rows := list(rows)), rows)[1],
    "shuffle of an array": lambda rows, rng: (
        rng.shuffle(rows := np.array(rows)),
        rows,
    )[1].tolist(),
    "random.shuffle": lambda rows, rng: (random.shuffle(rows := list(rows)), rows)[1],
    "random.sample": lambda rows, rng: random.sample(list(rows), 3),
    "random.choice": lambda rows, rng: random.choice(rows),
    "secrets.choice": lambda rows, rng: secrets.choice(rows),
    "choice": lambda rows, rng: rng.choice(rows, size=3, replace=False).tolist(),
}


@pytest.mark.parametrize("name", PUBLIC)
def test_orders_and_samples_pick_from_the_neighbour_what_the_record_picked(name):
    trace, places = Trace(PUBLIC[name]), ["0", "1", "2", "3", "4"]
    recorded = seeded(trace.record, places)
    if name != "secrets.choice":
        assert recorded.output == seeded(PUBLIC[name], places)
    other = trace.replay(["00", "11", "22", "33", "44"], recorded)
    assert not other.parted
    picked = recorded.output if isinstance(recorded.output, list) else [recorded.output]
    assert (other.output if isinstance(other.output, list) else [other.output]) == [
        2 * place for place in picked
    ]


@pytest.mark.parametrize("name", ["shuffle", "random.shuffle", "permutation"])
def test_an_order_of_another_number_of_items_has_each_of_them_once(name):
    trace = Trace(PUBLIC[name])
    recorded = seeded(trace.record, ["0", "1", "2", "3", "4"])
    for items in (["00", "11", "22"], [str(k) for k in range(10, 19)]):
        other = trace.replay(items, recorded)
        assert sorted(other.output) == items


def test_a_seed_that_is_used_twice_makes_the_same_draws():
    def twice(v, rng):
        return [
            v + np.random.default_rng(9).laplace(),
            -v + np.random.default_rng(9).laplace(),
        ]

    pair = compare(Trace(twice), 1.0, 2.0, np.random.default_rng(0), claim=PureDP(9.0))
    assert [finding.kind for finding in pair.findings] == ["seed", "reuse"]


def test_a_legacy_seed_from_the_data_is_said():
    def noisy(v, rng):
        np.random.seed(v)  # noqa: NPY002
        return v + np.random.laplace()  # noqa: NPY002

    pair = compare(Trace(noisy), 1, 2, np.random.default_rng(0), claim=PureDP(9.0))
    assert pair.findings[0].kind == "seed"


def test_generators_in_the_arguments_are_watched():
    def noisy(data):
        return data["count"] + data["source"].laplace()

    traced = Trace(noisy).record(
        {"count": 3, "source": np.random.default_rng(2)}, np.random.default_rng(0)
    )
    assert [release.location for release in traced.releases] == [3]
    assert traced.output == 3 + np.random.default_rng(2).laplace()


def test_a_function_that_draws_from_elsewhere_is_traced():
    traced = Trace(lambda v: v + random.gauss(0, 1)).record(
        3.0, np.random.default_rng(0)
    )
    assert [release.location for release in traced.releases] == [3.0]


FIXED = {
    "a generator": lambda v: v + np.random.default_rng(7).normal(),
    "the legacy seed": lambda v: (np.random.seed(7), v + np.random.normal())[1],  # noqa: NPY002
    "the standard library": lambda v: v + random.Random(7).gauss(0, 1),
}


@pytest.mark.parametrize("name", FIXED)
def test_noise_that_is_the_same_in_every_run_is_read_off(name):
    pair = compare(
        Trace(FIXED[name]), 1.0, 2.0, np.random.default_rng(0), claim=PureDP(9.0)
    )
    assert "seed" in [finding.kind for finding in pair.findings if finding.is_read_off]


@pytest.mark.parametrize(
    "function",
    [
        lambda v, rng: v + np.random.default_rng(int(rng.integers(2**40))).laplace(),
        lambda v, rng: v + random.gauss(0, 1),
        lambda v, rng: v + np.random.default_rng().laplace(),
        lambda v, rng: v + rng.laplace() + 0 * np.random.default_rng(7).laplace(),
    ],
)
def test_other_noise_is_not(function):
    pair = compare(
        Trace(function), 1.0, 2.0, np.random.default_rng(0), claim=PureDP(9.0)
    )
    assert "seed" not in [finding.kind for finding in pair.findings]
