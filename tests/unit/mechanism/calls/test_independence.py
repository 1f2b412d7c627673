"""What is assumed of calls: honest mechanisms pass, and each way to break the assumption is told apart."""

import functools
import itertools
import math
import os
import random
import time

import numpy as np
import pytest
from scipy.stats import binom, rankdata

from auditdp import Audit, PureDP, Unbiased, VarianceAtMost, check
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.errors import MechanismError
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.calls.calling import Run
from auditdp.mechanism.calls.independence import (
    _ranks,
    alike,
    check_batch,
    check_seeded,
    independence,
    look,
)
from auditdp.mechanism.calls.untouched import starting_untouched, untouched
from auditdp.mechanism.protocol import as_mechanism, unseeded
from auditdp.numerics.streams import stream
from auditdp.record.budget import Budget
from auditdp.record.results import Verdict
from auditdp.testing import LaplaceMechanism, LeakyResponse, Response, SharedNoise

pytestmark = pytest.mark.dear


def rng(seed=0):
    return np.random.default_rng(seed)


def told(mechanism, seed, count=64):
    """Return how calls depend, by a look with so many calls of two outputs; empty where nothing was seen."""
    calls = Calls(mechanism)
    check_seeded(calls, 1, seed)
    check_batch(calls, 1, rng(seed))
    return look(
        calls, [1], lambda purpose, number: stream(seed, purpose, number), 100 * count
    ).dependent


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
    "one a call": as_mechanism(lambda data, rng: data + rng.laplace()),
}


@pytest.mark.parametrize("mechanism", HONEST.values(), ids=HONEST)
def test_independent_outputs_pass(mechanism):
    for seed in range(20):
        assert told(mechanism, seed) == ""


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
            told(mechanism, seed)


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


@pytest.mark.parametrize(("mechanism", "what"), DEPENDENT.values(), ids=DEPENDENT)
def test_dependent_calls_are_told(mechanism, what):
    calls = Calls(mechanism)
    for seed in range(5):
        assert what in independence(
            [
                np.stack(
                    [calls(1, 2, rng([seed, k])).reshape(2, -1) for k in range(2_048)]
                )
            ]
        )


def test_a_state_that_outlives_a_call_is_told():
    state = [0.0]

    def walk(data, rng):
        state[0] = 0.9 * state[0] + math.sqrt(0.19) * rng.normal()
        return data + state[0]

    calls = Calls(as_mechanism(walk))
    rows = np.stack([calls(0, 2, rng(seed)) for seed in range(1_024)])
    assert "outputs of one call are more alike" in independence([rows])
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
    "numpy's global state": lambda data, size, *, rng: (
        data + np.random.laplace(size=size)  # noqa: NPY002
    ),
    "a generator of its own": lambda data, size, *, rng: (
        data + np.random.default_rng().laplace(size=size)
    ),
    "in part": lambda data, size, *, rng: (
        data + rng.laplace(size=size) + np.random.default_rng().laplace(size=size)
    ),
}


@pytest.mark.parametrize("mechanism", ELSEWHERE.values(), ids=ELSEWHERE)
def test_randomness_from_elsewhere_is_told_unless_it_is_declared(mechanism):
    with pytest.raises(MechanismError, match="draws from elsewhere"):
        check_seeded(Calls(mechanism), 0, 1)
    check_seeded(Calls(unseeded(lambda data: mechanism(data, 1, rng=rng())[0])), 0, 1)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["normal", "cauchy", "bits", "vectors", "skewed"])
def test_independent_calls_are_refused_as_rarely_as_stated(kind, monkeypatch, repeats):
    """At a false alarm rate of .02 instead of 1e-6, in 2,000 checks."""
    draw = {
        "normal": lambda g, n: g.normal(size=n),
        "cauchy": lambda g, n: g.standard_cauchy(size=n),
        "bits": lambda g, n: g.random(n) < 0.3,
        "vectors": lambda g, n: g.normal(size=(n, 12)),
        "skewed": lambda g, n: np.floor(g.standard_exponential(n)),
    }[kind]
    monkeypatch.setattr("auditdp.mechanism.calls.independence.FALSE_ALARM", 0.02)
    refused, samples = 0, repeats(2_000, least=200)
    for seed in range(samples):
        drawn = draw(rng(seed), 64)
        refused += (
            independence(
                [
                    side.reshape(-1, 2, *drawn.shape[1:])
                    for side in np.split(drawn, [24])
                ]
            )
            != ""
        )
    most = repeats.most(samples, 0.02)
    assert refused <= most, (
        f"{refused} of {samples} refused at .02, at most {most} (alpha of this test: 1e-6)"
    )


def test_equal_outputs_are_dependent_only_where_chance_does_not_explain_them():
    """Two bits that differ come with probability 1/4: eleven times the same once in 10^6 times, and ten times more often."""
    told = [independence([np.tile([[0.0, 1.0]], (count, 1))]) for count in range(2, 12)]
    assert told[:-1] == [""] * 9
    assert "the same 11 times two outputs" in told[-1]


@pytest.mark.parametrize(
    "values", [[3.0, 1.0, 2.0, 4.0], [0.0, 0.0, 1.0, 0.0], [0.0] * 4], ids=str
)
def test_the_bet_on_equal_outputs_of_one_process_is_fair(values):
    """Over all orders of the second outputs, on two inputs, the mean e-value is 1."""
    first = np.array(values)
    sides = [
        np.column_stack([first, first[list(order)]])[:, :, None]
        for order in itertools.permutations(range(4))
    ]
    assert np.mean([np.exp(alike([side])) for side in sides]) == pytest.approx(1.0)
    assert np.mean(
        [np.exp(alike([a, b])) for a in sides for b in sides]
    ) == pytest.approx(1.0)


class Memo(dict):
    """Answers that are kept for ever, by input."""

    def all_rows(self, data, size, *, rng):
        self.setdefault(data, data + rng.laplace())
        return np.full(size, self[data])

    def one_row(self, data, rng):
        self.setdefault(data, data + rng.laplace())
        return self[data]

    def elsewhere(self, data):
        if data not in self:
            self[data] = data + np.random.default_rng().laplace()
        return self[data]

    def globally(self, data):
        if data not in self:
            self[data] = data + np.random.laplace()  # noqa: NPY002
        return self[data]

    def bit(self, data):
        return self.setdefault(
            data, float((np.random.default_rng().random() < 0.27) ^ (data > 0))
        )

    def partly(self, data):
        if data not in self:
            self[data] = 30 * data + 100 * np.random.default_rng().laplace()
        return self[data] + np.random.default_rng().laplace()


class Every:
    """Noise that is drawn anew after so many calls."""

    def __init__(self, period):
        self.period, self.calls, self.noise = period, 0, 0.0

    def __call__(self, data, rng):
        drawn = rng.laplace()
        if self.calls % self.period == 0:
            self.noise = drawn
        self.calls += 1
        return data + self.noise

    def elsewhere(self, data):
        return self(data, np.random.default_rng())


class Alternating:
    calls = 0

    def __call__(self, data, rng):
        Alternating.calls += 1
        return data + rng.laplace() * (1.0 if Alternating.calls % 2 else 0.1)


class Own:
    """A generator of its own, and an answer that is kept."""

    def __init__(self):
        self.rng = np.random.default_rng(5)
        self.answer = functools.cache(lambda data: data + self.rng.laplace())


def without_noise_now_and_then():
    state = itertools.count(1)
    return lambda data, size, *, rng: (
        data + rng.laplace(size=size) * (next(state) % 20 > 0)
    )


def once_for_all():
    noise = []

    def released(data):
        if not noise:
            noise.append(random.gauss(0, 1))
        return data + noise[0]

    return released


REMEMBERING = {
    "a vectorised memo": lambda: Memo().all_rows,
    "a memo of rows": lambda: Memo().one_row,
    "an unseeded memo": lambda: unseeded(Memo().elsewhere),
    "an unseeded memo, numpy's global state": lambda: unseeded(Memo().globally),
    "an unseeded memo with fresh noise on top": lambda: unseeded(Memo().partly),
    "a cache and a generator of its own": lambda: unseeded(Own().answer),
    "noise of 50 calls": lambda: Every(50),
    "unseeded noise of 50 calls": lambda: unseeded(Every(50).elsewhere),
    "unseeded noise of 2 calls": lambda: unseeded(Every(2).elsewhere),
    "permanent randomised response": lambda: unseeded(Memo().bit),
    "a class that alternates": lambda: Alternating(),
    "every twentieth call without noise": without_noise_now_and_then,
    "one noise for all": lambda: unseeded(once_for_all()),
}


@pytest.mark.parametrize("make", REMEMBERING.values(), ids=REMEMBERING)
def test_calls_that_depend_on_earlier_calls_decide_nothing(make):
    """All of these were VIOLATED, "confirmed on fresh calls", or printed a bound above the truth."""
    found = check(
        make(), PureDP(1.0), [(0.0, 1.0)], calls=800, trace=False
    )  # whose runs move what counts calls
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.epsilon_lower is None
    assert "Wrap it so that every call starts afresh" in found.summary


NOISE = rng(9).laplace()
BEFORE_ALL_CALLS = {
    "no noise": lambda data, rng: data,
    "no noise, vectorised": lambda data, size, *, rng: np.full(size, data),
    "no noise, unseeded": unseeded(lambda data: data),
    "noise of the import": lambda data, rng: data + NOISE,
    "a seed made from the data": lambda data, rng: (
        data + np.random.default_rng(int(data)).laplace()
    ),
}


@pytest.mark.parametrize("mechanism", BEFORE_ALL_CALLS.values(), ids=BEFORE_ALL_CALLS)
def test_a_mechanism_of_one_output_is_refuted_and_said_to_be_one(mechanism):
    found = check(mechanism, PureDP(1.0), [(0.0, 1.0)], calls=800)
    assert found.verdict is Verdict.VIOLATED
    assert "cannot be told from one without noise" in found.summary


def raises(data, rng):
    if rng.random() < 0.1 + 0.8 * data:
        raise ValueError("no answer")
    return 1


own = rng(4)
HONEST_FINDINGS = {
    "numbers": lambda data, rng: data + rng.laplace(scale=0.4),
    "vectors": lambda data, size, *, rng: data + rng.laplace(scale=0.4, size=(size, 3)),
    "texts": lambda data, rng: "yes" if (rng.random() < 0.95) == (data > 0) else "no",
    "ties": lambda data, size, *, rng: rng.random(size) < 0.01 + 0.3 * data,
    "exceptions": raises,
    "the system's randomness": unseeded(
        lambda data: data + np.random.default_rng().laplace(scale=0.4)
    ),
    "numpy's global state": unseeded(lambda data: data + np.random.laplace(scale=0.4)),  # noqa: NPY002
    "a generator of its own": unseeded(lambda data: data + own.laplace(scale=0.4)),
}


@pytest.mark.parametrize("mechanism", HONEST_FINDINGS.values(), ids=HONEST_FINDINGS)
def test_findings_of_independent_calls_stand(mechanism):
    found = check(mechanism, PureDP(1.0), [(0.0, 1.0)], calls=1_000, seed=3)
    assert found.verdict is Verdict.VIOLATED
    assert "cannot be told" not in found.summary
    assert not any(
        "process of its own" in text for text in found.evidence[0].assumptions
    )


@pytest.mark.parametrize(
    "promise",
    [
        Unbiased(float, margin=0.5),
        pytest.param(VarianceAtMost(2.5, float), marks=pytest.mark.full),
    ],
    ids=str,
)
def test_promises_are_not_judged_by_calls_that_depend(promise):
    for make in (lambda: Memo().one_row, lambda: unseeded(Memo().elsewhere)):
        audit = Audit(make(), promise, inputs={"one": [1.0]})
        found = run_audit(
            audit, Settings(alpha=0.05, budget=Budget(1_000), root_seed=1)
        )
        assert found.verdict is Verdict.INCONCLUSIVE
        assert found.counterexample is None


def test_an_untouched_process_makes_the_same_calls_and_ends():
    honest, seen = Calls(HONEST["noise"]), []
    runs = [Run(0.0, 3, 1), Run(1.0, 2, 2)]
    with starting_untouched(honest.mechanism):
        process = untouched(honest.mechanism)
        process.start()
        honest.look([0.0, 1.0], rng())
        seen = process.rows(honest, [runs, runs[1:]], 30.0)
        number = process._forked.process
    assert [rows.tolist() for rows in seen] == [
        honest.runs(runs).tolist(),
        honest.runs(runs[1:]).tolist(),
    ]
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


class Unsendable:
    """An input that no other process can be sent."""

    name = "cannot be sent"

    def __reduce__(self):
        raise TypeError("stays here")

    def __deepcopy__(self, memo):
        return self


@pytest.mark.parametrize(
    "data",
    [Unsendable(), "dies", "waits", "raises there"],
    ids=lambda data: getattr(data, "name", data),
)
def test_where_no_other_process_can_make_the_calls_that_is_assumed(data, monkeypatch):
    monkeypatch.setattr("auditdp.mechanism.calls.independence.CheckLimits.seconds", 0.2)
    here = os.getpid()

    def mechanism(given, rng):
        if os.getpid() != here and given == "dies":
            os._exit(3)
        if os.getpid() != here and given == "waits":
            time.sleep(60)
        if os.getpid() != here and given == "raises there":
            raise RuntimeError("no device in a fork")
        return rng.laplace() + 5 * (given != "other")

    found = check(mechanism, PureDP(1.0), [(data, "other")], calls=2_000)
    assert found.verdict is Verdict.VIOLATED
    assert any(
        "not called in a process of its own" in text
        for text in found.evidence[0].assumptions
    )


@pytest.mark.parametrize("shape", [(1, 3), (40, 1), (64, 5), (6, 0)])
def test_ranks_are_those_of_scipy(shape):
    rng = np.random.default_rng(1)
    for rows in (
        rng.normal(size=shape),
        rng.integers(0, 4, shape).astype(float),
        np.zeros(shape),
    ):
        rows[-1:] = np.inf
        assert np.array_equal(
            _ranks(rows), rankdata(rows, axis=0) if rows.size else rows
        )
