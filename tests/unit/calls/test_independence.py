"""What is assumed of calls: honest mechanisms pass, and each way to break the assumption is told apart."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from auditdp.calls import Calls
from auditdp.calls.independence import check_batch, check_independence, check_seeded
from auditdp.errors import MechanismError
from auditdp.mechanism import as_mechanism, unseeded
from auditdp.testing import LaplaceMechanism, LeakyResponse, Response, SharedNoise


def rng(seed=0):
    return np.random.default_rng(seed)


def one_output(data, rng):
    return data + rng.laplace()


def check(mechanism, seed, count=64):
    calls = Calls(mechanism)
    check_seeded(calls, 1, seed)
    check_batch(calls, 1, rng(seed))
    check_independence(calls, 1, rng(seed), count=count)


HONEST = {
    "constant": lambda data, size, *, rng: np.zeros(size),
    "constant, no number": lambda data, size, *, rng: np.full((size, 2), math.nan),
    "no width": lambda data, size, *, rng: np.zeros((size, 0)),
    "constant vectors": lambda data, size, *, rng: np.tile(data, (size, 3)),
    "skewed bit": lambda data, size, *, rng: rng.random(size) < 0.15,
    "very skewed bit": lambda data, size, *, rng: rng.random(size) < 0.01,
    "noise": LaplaceMechanism(1.0),
    "randomised response": Response(3.0),
    "leaky": LeakyResponse(1.0, 0.01),
    "vectors": lambda data, size, *, rng: rng.random((size, 4)).round(),
    "one a call": as_mechanism(one_output),
}


@pytest.mark.parametrize("mechanism", HONEST.values(), ids=HONEST)
def test_independent_outputs_pass(mechanism):
    for seed in range(40):
        check(mechanism, seed)


SHARED = {
    "shared scalar": SharedNoise(1.0),
    "shared vector": lambda data, size, *, rng: np.tile(rng.laplace(size=3), (size, 1)),
    "shared fair bit": lambda data, size, *, rng: np.full(size, rng.random() < 0.5),
    "repeated": lambda data, size, *, rng: np.repeat(rng.integers(0, 10, 1), size),
}


@pytest.mark.parametrize("mechanism", SHARED.values(), ids=SHARED)
def test_shared_noise_is_noticed(mechanism):
    for seed in range(10):
        with pytest.raises(MechanismError, match="independent runs"):
            check(mechanism, seed)


def test_the_false_alarm_rate_of_equal_batches_is_as_stated():
    """The bound of the docstring: the batch agrees on an atom of probability p, and 48 or fewer single calls do."""
    p = np.linspace(0.5, 1, 100_001)
    assert (p**64 * binom.cdf(48, 64, p)).max() <= 1.25e-6


def half(data, size, *, rng):
    """Half of the variance is shared."""
    return data + rng.normal(size=size) + rng.normal()


def chain(data, size, *, rng):
    """Consecutive states of an autoregressive chain, started afresh in every call."""
    state, states = rng.normal(), []
    for _ in range(size):
        state = 0.9 * state + math.sqrt(0.19) * rng.normal()
        states.append(data + state)
    return np.array(states)


def antithetic(data, size, *, rng):
    noise = rng.normal(size=-(-size // 2))
    return data + np.concatenate([noise, -noise])[:size]


def one_of_twenty(data, size, *, rng):
    """Vectors, of which one number is shared."""
    rows = rng.laplace(size=(size, 20))
    rows[:, 13] = rng.laplace()
    return rows


def far_apart(data, size, *, rng):
    """Heavy tails."""
    return data + rng.standard_cauchy(size) + rng.standard_cauchy()


DEPENDENT = {
    "half shared": (half, "outputs of one call are more alike"),
    "a chain": (chain, "outputs of one call are more alike"),
    "antithetic": (antithetic, "outputs of one call are less alike"),
    "one number of twenty": (one_of_twenty, "outputs of one call are more alike"),
    "heavy tails": (far_apart, "outputs of one call are more alike"),
    "a seed of its own": (
        lambda data, size, *, rng: data + np.random.default_rng(0).laplace(size=size),
        "seeds one of its",
    ),
}


@pytest.mark.parametrize(("mechanism", "told"), DEPENDENT.values(), ids=DEPENDENT)
def test_dependent_calls_are_told(mechanism, told):
    for seed in range(5):
        with pytest.raises(MechanismError, match=told):
            check(mechanism, seed, count=2_048)


def test_a_state_that_outlives_a_call_is_told():
    state = [0.0]

    def walk(data, rng):
        state[0] = 0.9 * state[0] + math.sqrt(0.19) * rng.normal()
        return data + state[0]

    with pytest.raises(MechanismError, match=r"outputs of (one call|consecutive calls) are more alike"):
        check_independence(Calls(as_mechanism(walk)), 0, rng(), count=1_024)
    with pytest.raises(MechanismError, match="keeps state between calls"):
        check_seeded(Calls(as_mechanism(walk)), 0, 1)


def test_remembered_answers_are_told():
    known = {}

    def remembers(data, rng):
        if data not in known:
            known[data] = data + rng.laplace()
        return known[data]

    with pytest.raises(MechanismError, match="remembers its answers"):
        check_seeded(Calls(as_mechanism(remembers)), 0, 1)


ELSEWHERE = {
    "numpy's global state": lambda data, size, *, rng: data + np.random.laplace(size=size),  # noqa: NPY002
    "a generator of its own": lambda data, size, *, rng: data + np.random.default_rng().laplace(size=size),
    "in part": lambda data, size, *, rng: data + rng.laplace(size=size) + np.random.default_rng().laplace(size=size),
}


@pytest.mark.parametrize("mechanism", ELSEWHERE.values(), ids=ELSEWHERE)
def test_randomness_from_elsewhere_is_told_unless_it_is_declared(mechanism):
    with pytest.raises(MechanismError, match="draws from elsewhere"):
        check_seeded(Calls(mechanism), 0, 1)
    check_seeded(Calls(unseeded(lambda data: mechanism(data, 1, rng=rng())[0])), 0, 1)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["normal", "cauchy", "bits", "vectors", "skewed"])
def test_independent_calls_are_refused_as_rarely_as_stated(kind, monkeypatch):
    """At a false alarm rate of .02 instead of 1e-6, in 2,000 checks; binomial test at 1e-6."""
    draw = {
        "normal": lambda g, n: g.normal(size=n),
        "cauchy": lambda g, n: g.standard_cauchy(size=n),
        "bits": lambda g, n: g.random(n) < 0.3,
        "vectors": lambda g, n: g.normal(size=(n, 12)),
        "skewed": lambda g, n: np.floor(g.standard_exponential(n)),
    }[kind]
    monkeypatch.setattr("auditdp.calls.independence.FALSE_ALARM", 0.02)
    refused = 0
    for seed in range(2_000):
        drawn = draw(rng(seed), 64)
        rows = iter(drawn.reshape(32, 2, *drawn.shape[1:]))
        try:
            check_independence(Calls(lambda data, size, *, rng, rows=rows: next(rows)), 0, rng(), count=32)
        except MechanismError:
            refused += 1
    assert binom.sf(refused - 1, 2_000, 0.02) > 1e-6, f"{refused} of 2,000 refused at .02 (alpha of this test: 1e-6)"
