"""Estimation evidence: promises that hold, are broken, or are not decided."""

import math
from functools import partial

import numpy as np
import pytest

from auditdp import Unbiased, VarianceAtMost
from auditdp.errors import ClaimError, MechanismError
from auditdp.evidence.estimation import estimation_evidence
from auditdp.numerics.streams import stream
from tests.unit.evidence.toys import EQUIVALENT, NOT_REFUTED, VIOLATED

INPUTS = {"low": [1.0], "high": [5.0]}
BOTH = {"both": [1.0, 5.0]}
MANY = {str(k): [float(k)] for k in range(20)}
ONLY = {"only": [0.0]}
WIDE = (-10.0, 20.0)


def truth(data):
    return data


def one(data):
    return 1.0


def estimator(bias=0.0, spread=1.0, noise=np.random.Generator.standard_normal):
    """The input plus a bias plus noise.

    Bias and spread are numbers or functions of it.
    """

    def estimate(data, size, *, rng):
        shift = bias(data) if callable(bias) else bias
        scale = spread(data) if callable(spread) else spread
        return data + shift + scale * noise(rng, size)

    return estimate


def constant(value):
    return lambda data, size, *, rng: np.full(size, value)


def rare(data, size, *, rng):
    """1/p with probability p = 1e-5, which is unbiased for 1."""
    return 1e5 * (rng.random(size) < 1e-5)


def rarely_noisy(data, size, *, rng):
    """One call in 10,000 differs a little.

    The large values that make it unbiased are rarer.
    """
    u = rng.random(size)
    return np.select([u < 1e-7, u < 1e-4], [1e7, 1e-3], 0.0)


def uniform(rng, size):
    return (rng.random(size) - 0.5) * math.sqrt(12)


class Bounded:
    """Uniform noise whose range depends on the input."""

    def __call__(self, data, size, *, rng):
        return data + data * (rng.random(size) - 0.5)

    def output_range(self, data):
        return 0.5 * data, 1.5 * data


def evidence(mechanism, promise, inputs=INPUTS, *, alpha=0.05, calls=4000, seed=0):
    return estimation_evidence(
        mechanism,
        promise,
        inputs,
        alpha=alpha,
        calls=calls,
        streams=partial(stream, seed),
    )


def unbiased(margin, **options):
    return Unbiased(truth, margin=margin, **options)


def variance(bound, **options):
    return VarianceAtMost(bound, truth, **options)


def above_2(low, high):
    """A function of the input."""
    return lambda data: high if data > 2 else low


NO_NOISE = estimator(spread=0.0)


@pytest.mark.parametrize(
    ("mechanism", "promise", "verdict"),
    [
        (estimator(), unbiased(0.2), EQUIVALENT),
        # A bias within the margin.
        (estimator(bias=0.3), unbiased(0.5), VIOLATED),
        (estimator(bias=0.3), unbiased(0.5, almost=True), EQUIVALENT),
        # Estimates without noise need a declared range.
        (estimator(0.25, 0.0), unbiased(0.5, range=WIDE), VIOLATED),
        (NO_NOISE, variance(0.9, range=WIDE), EQUIVALENT),
        (NO_NOISE, unbiased(0.5), NOT_REFUTED),
        # A range of the mechanism precedes that of the promise.
        (Bounded(), unbiased(0.5, range=(0.9, 1.1)), EQUIVALENT),
        (estimator(), variance(1.2), EQUIVALENT),
        (estimator(spread=above_2(0.5, 1.2)), variance(1.2), VIOLATED),
    ],
)
def test_verdicts(mechanism, promise, verdict):
    found = evidence(mechanism, promise)
    assert found.verdict is verdict
    assert (found.counterexample is None) == (verdict is not VIOLATED)


@pytest.mark.parametrize(
    ("mechanism", "promise", "verdict"),
    [
        (estimator(bias=above_2(-1.0, 1.0)), unbiased(0.2), VIOLATED),
        (estimator(spread=above_2(0.01, math.sqrt(1.8))), variance(1.2), VIOLATED),
        (estimator(bias=lambda x: 10 * x), variance(1.2), EQUIVALENT),
    ],
)
def test_biases_and_variances_of_one_class_do_not_average_out(
    mechanism, promise, verdict
):
    assert evidence(mechanism, promise, BOTH).verdict is verdict


def test_calls_are_shared_and_classes_are_described():
    found = evidence(estimator(bias=3.0), unbiased(0.2))
    # The test of independence needs 161 more calls.
    assert 4_000 < found.calls <= 4_000 + 161

    for described, true in zip(found.details.classes, (1.0, 5.0), strict=True):
        assert (described.truth, described.n) == (true, 2000)
        assert described.low < true + 3.0 < described.high
        assert described.mean == pytest.approx(true + 3.0, abs=0.2)
    spread = evidence(estimator(bias=3.0), variance(2.0)).details.classes[0]
    assert spread.mean == pytest.approx(4.0, abs=0.2)


@pytest.mark.parametrize(
    ("mechanism", "promise", "worst", "explanation"),
    [
        (estimator(bias=lambda x: -0.1 * x), unbiased(1e-3), "19", "-"),
        (estimator(bias=lambda x: 0.5 * (x == 7)), unbiased(1.0), "7", "+0."),
        (estimator(spread=lambda x: 1 + (x == 3)), variance(1.2), "3", "above 1.2"),
    ],
)
def test_the_counterexample_is_the_class_that_is_furthest_off(
    mechanism, promise, worst, explanation
):
    found = evidence(mechanism, promise, MANY, calls=20_000)
    assert found.verdict is VIOLATED
    assert explanation in found.counterexample.explanation
    assert found.counterexample.pair == worst


@pytest.mark.parametrize("mechanism", [rare, rarely_noisy])
def test_a_few_calls_with_a_spread_decide_nothing(mechanism):
    found = evidence(mechanism, Unbiased(one, margin=0.5), ONLY, calls=50_000)
    assert found.verdict is NOT_REFUTED
    assert "a declared range" in found.statement


@pytest.mark.parametrize("value", [(0.1 + 0.2, 0.3), (3 * 1.1, 3.3)])
def test_the_last_bit_of_an_estimate_is_no_bias(value):
    computed, true = value
    promise = Unbiased(lambda data: true, margin=0.1 * true, range=(0.0, 2 * true))
    assert evidence(constant(computed), promise, ONLY).verdict is EQUIVALENT


@pytest.mark.parametrize(
    ("inputs", "calls"), [(INPUTS, 60), ({"one": [1.0, 2.0], "two": [1.0]}, 120)]
)
def test_every_input_needs_thirty_calls(inputs, calls):
    with pytest.raises(MechanismError, match=f"calls={calls}"):
        evidence(estimator(), unbiased(1.0), inputs, calls=calls - 1)
    found = evidence(estimator(), unbiased(1.0), inputs, calls=calls)
    assert found.details.classes[0].n >= 30


@pytest.mark.parametrize(
    ("mechanism", "promise", "message"),
    [
        (lambda data, size, *, rng: rng.random((size, 3)), {}, r"\(3,\)"),
        (lambda data, size, *, rng: np.full(size, rng.random()), {}, "independent"),
        (constant(np.inf), {}, "an infinite number"),
        (
            estimator(),
            {"range": (0.0, 6.0)},
            r"outside the declared range \(0.0, 6.0\)",
        ),
        (estimator(), {"range": lambda data: 3.0}, "expected a range"),
    ],
)
def test_outputs_that_are_no_estimates_are_refused(mechanism, promise, message):
    with pytest.raises(MechanismError, match=message):
        evidence(mechanism, unbiased(0.5, **promise))


@pytest.mark.parametrize(
    ("make", "values", "message"),
    [
        (unbiased, [0, math.nan, math.inf, "x"], "margin"),
        (variance, [0, math.nan, math.inf, "x"], "bound"),
        (lambda value: variance(1.0, kurtosis=value), [0.9, math.inf, "x"], "kurtosis"),
        (
            lambda value: unbiased(1.0, range=value),
            [(1.0, 0.0), (0.0, math.inf), (math.nan, 1.0), 3.0],
            "expected a range",
        ),
    ],
)
def test_numbers_that_promise_nothing_are_refused(make, values, message):
    for value in values:
        with pytest.raises(ClaimError, match=message):
            make(value)


BOUNDED = estimator(noise=uniform)


@pytest.mark.parametrize(
    ("mechanism", "promise", "texts"),
    [
        (estimator(bias=above_2(0.0, 0.5)), unbiased(0.1), ["1 of 2"]),
        (estimator(spread=30.0), unbiased(0.01), ["high, low"]),
        (
            BOUNDED,
            unbiased(0.5),
            ["with asymptotic confidence 95%", "a value of probability below 0.0015"],
        ),
        (estimator(1.0), unbiased(0.5), ["at the asymptotic level 0.05"]),
        (
            estimator(spread=9),
            unbiased(0.5),
            ["more calls are needed for an asymptotic test to show it, or a declared"],
        ),
        (
            BOUNDED,
            unbiased(0.5, range=WIDE),
            ["with confidence 95%", "every estimate lies in the declared range"],
        ),
        (
            estimator(),
            variance(1.5, kurtosis=3),
            ["with confidence 95%", "the kurtosis of the estimates is at most 3"],
        ),
        (
            estimator(),
            variance(1.5),
            [
                "asymptotic",
                "3 times the observed one (not so for normal noise that jumps",
            ],
        ),
    ],
)
def test_statements_and_assumptions(mechanism, promise, texts):
    found = evidence(mechanism, promise)
    assert found.assumptions[0] == "calls are independent"
    for text in texts:
        assert text in " ".join([found.statement, *found.assumptions])


@pytest.mark.parametrize("group", [[1.0], [1.0, 5.0, 9.0]], ids=len)
def test_the_variance_is_the_unbiased_one(group):
    """The average over the inputs of the sample variance.

    It has no bias of 1/n towards a violation.
    """
    samples = []

    def remembering(data, size, *, rng):
        values = data + rng.standard_normal(size)
        if size == 30:
            samples.append(values)
        return values

    only = {"only": group}
    found = evidence(remembering, variance(1.2), only, calls=30 * len(group))
    expected = np.mean([values.var(ddof=1) for values in samples])

    assert found.details.classes[0].variance == pytest.approx(expected, rel=1e-12)
