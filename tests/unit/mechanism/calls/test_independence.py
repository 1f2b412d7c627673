"""The assumption of independent calls: honest mechanisms pass, and others are named."""

import gc
import importlib
import itertools
import math
import os
import sys
import time

import numpy as np
import pytest
from scipy.stats import rankdata

from auditdp import Audit, PureDP, Unbiased, Verdict, check, unseeded
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
from auditdp.numerics.streams import stream
from auditdp.record.budget import Budget
from auditdp.testing import SharedNoise
from tests.unit.mechanism.toys import calls_of, generator, noisy, noisy_rows

pytestmark = pytest.mark.dear
PURE = PureDP(1.0)


def dependence(mechanism, seed):
    """Return the sentence on how 64 calls of two outputs depend.

    Empty if they do not.
    """
    calls = calls_of(mechanism)
    check_seeded(calls, 1, seed)
    check_batch(calls, 1, generator(seed))

    def streams(purpose, number):
        return stream(seed, purpose, number)

    return look(calls, [1], streams, 6_400).dependent


HONEST = {
    "not a number": lambda data, size, *, rng: np.full((size, 2), math.nan),
    "no width": lambda data, size, *, rng: np.zeros((size, 0)),
    "skewed bit": lambda data, size, *, rng: rng.random(size) < 0.15,
    "one a call": noisy,
}


@pytest.mark.parametrize("mechanism", HONEST.values(), ids=HONEST)
def test_independent_outputs_pass(mechanism):
    for seed in range(12):
        assert dependence(mechanism, seed) == ""


SHARED = {
    "scalar": SharedNoise(1.0),
    "fair bit": lambda data, size, *, rng: np.full(size, rng.random() < 0.5),
}


@pytest.mark.parametrize("mechanism", SHARED.values(), ids=SHARED)
def test_shared_noise_is_noticed(mechanism):
    for seed in range(6):
        with pytest.raises(MechanismError, match="independent runs"):
            dependence(mechanism, seed)


def chain(data, size, *, rng):
    """Return states of an autoregressive chain that starts afresh in every call."""
    state = rng.normal()
    states = []
    for _ in range(size):
        state = 0.9 * state + math.sqrt(0.19) * rng.normal()
        states.append(data + state)
    return np.array(states)


def antithetic(data, size, *, rng):
    noise = rng.normal(size=-(-size // 2))
    return data + np.concatenate([noise, -noise])[:size]


def one_number_of_twenty(data, size, *, rng):
    rows = rng.laplace(size=(size, 20))
    rows[:, 13] = rng.laplace()
    return rows


def seed_of_its_own(data, size, *, rng):
    return data + np.random.default_rng(0).laplace(size=size)


@pytest.mark.parametrize(
    ("mechanism", "sentence"),
    [
        (chain, "outputs of one call are more alike"),
        (antithetic, "outputs of one call are less alike"),
        (one_number_of_twenty, "outputs of one call are more alike"),
        (seed_of_its_own, "seeds one of its"),
    ],
)
def test_dependent_calls_are_named(mechanism, sentence):
    calls = Calls(mechanism)
    for seed in range(2):
        pairs = [calls(1, 2, generator([seed, k])) for k in range(2_048)]
        assert sentence in independence([np.reshape(pairs, (2_048, 2, -1))])


def test_a_state_that_outlives_a_call_is_named():
    state = [0.0]

    def walk(data, rng):
        state[0] = 0.9 * state[0] + math.sqrt(0.19) * rng.normal()
        return data + state[0]

    calls = calls_of(walk)
    rows = np.stack([calls(0, 2, generator(seed)) for seed in range(1_024)])
    assert "outputs of one call are more alike" in independence([rows])
    with pytest.raises(MechanismError, match="keeps state between calls"):
        check_seeded(calls_of(walk), 0, 1)


def global_noise(data, size, *, rng):
    return data + np.random.laplace(size=size)  # noqa: NPY002


def own_noise_in_part(data, size, *, rng):
    own = np.random.default_rng().laplace(size=size)
    return data + own + rng.laplace(size=size)


@pytest.mark.parametrize("mechanism", [global_noise, own_noise_in_part])
def test_randomness_from_elsewhere_is_refused_unless_it_is_declared(mechanism):
    with pytest.raises(MechanismError, match="draws from elsewhere"):
        check_seeded(Calls(mechanism), 0, 1)
    declared = unseeded(lambda data: mechanism(data, 1, rng=generator())[0])
    check_seeded(Calls(declared), 0, 1)


@pytest.mark.statistical
@pytest.mark.parametrize(
    "draw",
    [
        lambda g, n: g.normal(size=n),
        lambda g, n: g.standard_cauchy(size=n),
        lambda g, n: g.random(n) < 0.3,
        lambda g, n: g.normal(size=(n, 12)),
        lambda g, n: np.floor(g.standard_exponential(n)),
    ],
    ids=["normal", "cauchy", "bits", "vectors", "skewed"],
)
def test_independent_calls_are_refused_as_rarely_as_stated(draw, monkeypatch, repeats):
    """The false alarm rate is .02 here instead of 1e-6."""
    monkeypatch.setattr("auditdp.mechanism.calls.independence.FALSE_ALARM", 0.02)
    refused = 0
    samples = repeats(2_000, least=200)
    for seed in range(samples):
        drawn = draw(generator(seed), 64)
        pairs = drawn.reshape(32, 2, *drawn.shape[1:])
        refused += independence([pairs[:12], pairs[12:]]) != ""
    limit = repeats.most(samples, 0.02)
    assert refused <= limit, f"{refused} of {samples}, at most {limit} (α = 1e-6)"


def test_equal_outputs_are_dependent_only_if_chance_does_not_explain_them():
    """Eleven equal pairs of two bits have a probability below 1e-6."""
    found = [independence([np.tile([[0.0, 1.0]], (n, 1))]) for n in range(2, 12)]
    assert found[:-1] == [""] * 9
    assert "the same 11 times two outputs" in found[-1]


@pytest.mark.parametrize("values", [[3.0, 1.0, 2.0, 4.0], [0.0, 0.0, 1.0, 0.0]])
def test_the_bet_on_equal_outputs_of_one_process_is_fair(values):
    """The mean e-value over all orders of the second outputs is 1."""
    first = np.array(values)
    orders = [first[list(order)] for order in itertools.permutations(range(4))]
    sides = [np.column_stack([first, second])[:, :, None] for second in orders]
    single = [alike([side]) for side in sides]
    double = [alike(list(both)) for both in itertools.product(sides, sides)]
    for logs in (single, double):
        assert np.mean(np.exp(logs)) == pytest.approx(1.0)


class Memo(dict):
    """Answers that are kept for ever, by input."""

    def of(self, data, noise):
        if data not in self:
            self[data] = data + noise
        return self[data]

    def seeded(self, data, rng):
        return self.of(data, rng.laplace())

    def elsewhere(self, data):
        return self.of(data, generator(None).laplace())

    def bit(self, data):
        turned = generator(None).random() < 0.27
        return self.setdefault(data, float(turned ^ (data > 0)))

    def with_fresh_noise(self, data):
        noise = generator(None).laplace(size=2) * [100, 1]
        return self.of(30 * data, noise[0]) + noise[1]


class Every:
    """Noise that is drawn anew after a number of calls."""

    def __init__(self, period):
        self.period, self.calls, self.noise = period, 0, 0.0

    def __call__(self, data, rng):
        drawn = rng.laplace()
        if self.calls % self.period == 0:
            self.noise = drawn
        self.calls += 1
        return data + self.noise

    def elsewhere(self, data):
        return self(data, generator(None))


def remembering_rows():
    memo = Memo()
    return lambda data, size, *, rng: np.full(size, memo.seeded(data, rng))


def rarely_without_noise():
    state = itertools.count(1)
    return lambda data, size, *, rng: (
        data + rng.laplace(size=size) * (next(state) % 20 > 0)
    )


def once_for_all():
    noise = []

    def released(data):
        if not noise:
            noise.append(generator(None).normal())
        return data + noise[0]

    return unseeded(released)


REMEMBERING = {
    "vectorised memo": remembering_rows,
    "memo": lambda: Memo().seeded,
    "memo with fresh noise": lambda: unseeded(Memo().with_fresh_noise),
    "permanent response": lambda: unseeded(Memo().bit),
    "one noise for all": once_for_all,
    "unseeded noise of 2 calls": lambda: unseeded(Every(2).elsewhere),
    "rarely without noise": rarely_without_noise,
}


@pytest.mark.parametrize("make", REMEMBERING.values(), ids=REMEMBERING)
def test_calls_that_depend_on_earlier_calls_decide_nothing(make):
    """All of these were VIOLATED once, or had a bound above the truth."""
    # The runs of a trace would move the mechanisms that count calls.
    found = check(make(), PURE, [(0.0, 1.0)], calls=800, trace=False)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.epsilon_lower is None
    assert "Wrap it so that every call starts afresh" in found.summary


def test_remembered_answers_are_named():
    known = {}

    def remembers(data, rng):
        if data not in known:
            known[data] = data + rng.laplace()
        return known[data]

    with pytest.raises(MechanismError, match="remembers its answers"):
        check_seeded(calls_of(remembers), 0, 1)


NOISE = generator(9).laplace()
ONE_OUTPUT = {
    "no noise": lambda data, rng: data,
    "no noise, unseeded": unseeded(lambda data: data),
    "noise of the import": lambda data, rng: data + NOISE,
    "seed from the data": lambda data, rng: data + generator(int(data)).laplace(),
}


@pytest.mark.parametrize("mechanism", ONE_OUTPUT.values(), ids=ONE_OUTPUT)
def test_a_mechanism_of_one_output_is_refuted_and_named(mechanism):
    found = check(mechanism, PURE, [(0.0, 1.0)], calls=800)
    assert found.verdict is Verdict.VIOLATED
    assert "cannot be distinguished from one without noise" in found.summary


HONEST_FINDINGS = {
    "vectors": lambda data, size, *, rng: data + rng.laplace(scale=0.4, size=(size, 3)),
    "texts": lambda data, rng: "yes" if (rng.random() < 0.95) == (data > 0) else "no",
    "fresh seeds": unseeded(lambda data: data + generator(None).laplace(scale=0.4)),
}


@pytest.mark.parametrize("mechanism", HONEST_FINDINGS.values(), ids=HONEST_FINDINGS)
def test_findings_of_independent_calls_stand(mechanism):
    found = check(mechanism, PURE, [(0.0, 1.0)], calls=1_000, seed=3)
    assert found.verdict is Verdict.VIOLATED
    assert "cannot be told" not in found.summary
    assumptions = found.evidence[0].assumptions
    assert not any("process of its own" in text for text in assumptions)


def test_promises_are_not_judged_by_dependent_calls():
    promise = Unbiased(float, margin=0.5)
    for mechanism in (Memo().seeded, unseeded(Memo().elsewhere)):
        audit = Audit(mechanism, promise, inputs={"one": [1.0]})
        settings = Settings(alpha=0.05, budget=Budget(1_000), root_seed=1)
        found = run_audit(audit, settings)
        assert found.verdict is Verdict.INCONCLUSIVE
        assert found.counterexample is None


def test_an_untouched_process_makes_the_same_calls_and_ends():
    honest = Calls(noisy_rows)
    runs = [Run(0.0, 3, 1), Run(1.0, 2, 2)]
    with starting_untouched(honest.mechanism):
        process = untouched(honest.mechanism)
        process.start()
        honest.look([0.0, 1.0], generator())
        found = process.rows(honest, [runs, runs[1:]], 30.0)
        number = process._forked.process
    for rows, expected in zip(found, (runs, runs[1:]), strict=True):
        assert rows.tolist() == honest.runs(expected).tolist()
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_forks_of_an_untouched_process_need_not_import_what_the_one_before_did(
    monkeypatch,
):
    monkeypatch.delitem(sys.modules, "joblib", raising=False)

    def is_imported(data, size, *, rng):
        found = "joblib" in sys.modules
        importlib.import_module("joblib")
        return np.full((size, 1), float(found))

    calls, part = Calls(is_imported), [Run(0.0, 1, 1)]
    with starting_untouched(is_imported):
        process = untouched(is_imported)
        process.start()
        calls.runs(part)
        found = process.rows(calls, [part, part], seconds=30)
    assert [rows.item() for rows in found] == [0.0, 1.0]


MODULE_RNG = generator(1)


@unseeded
def of_a_module(data, size):
    return data + MODULE_RNG.laplace(size=size)


# Objects are frozen after the import of an audit file.
@pytest.mark.parametrize("frozen", [False, True])
def test_generators_of_a_module_start_afresh_in_every_process(frozen):
    calls = Calls(of_a_module)
    runs = [Run(0.0, 4, 1)]
    calls.runs(runs)
    if frozen:
        gc.freeze()
    try:
        with starting_untouched(of_a_module):
            process = untouched(of_a_module)
            process.start()
            rows = process.rows(calls, [runs, runs], seconds=10)
    finally:
        gc.unfreeze()
    assert rows[0].tobytes() != rows[1].tobytes()


class Unsendable:
    """An input that cannot be sent to another process."""

    name = "cannot be sent"

    def __reduce__(self):
        raise TypeError("stays here")

    def __deepcopy__(self, memo):
        return self


@pytest.mark.parametrize("data", [Unsendable(), "dies", "waits", "raises"])
def test_without_another_process_independence_is_an_assumption(data, monkeypatch):
    monkeypatch.setattr("auditdp.mechanism.calls.independence.CheckLimits.seconds", 0.2)
    here = os.getpid()

    def mechanism(given, rng):
        if os.getpid() != here:
            if given == "dies":
                os._exit(3)
            if given == "waits":
                time.sleep(60)
            if given == "raises":
                raise RuntimeError("no device in a fork")
        return rng.laplace() + 5 * (given != "other")

    found = check(mechanism, PURE, [(data, "other")], calls=1_000)
    assert found.verdict is Verdict.VIOLATED
    assumptions = found.evidence[0].assumptions
    assert any("not called in a process of its own" in text for text in assumptions)


@pytest.mark.parametrize("shape", [(1, 3), (64, 5), (6, 0)])
def test_ranks_are_those_of_scipy(shape):
    rng = generator(1)
    continuous = rng.normal(size=shape)
    tied = rng.integers(0, 4, shape).astype(float)
    for rows in (continuous, tied, np.zeros(shape)):
        rows[-1:] = np.inf
        expected = rankdata(rows, axis=0) if rows.size else rows
        assert np.array_equal(_ranks(rows), expected)
