"""Noise that is added to a constant: it hides later values, or nothing."""

import random

import numpy as np
import pytest

from auditdp import GaussianDP, PureDP
from auditdp.tracing import Trace, compare, in_full
from tests.unit.tracing.toys import pair_of

ROWS = np.array([1.0, 2.0])
GAUSSIAN = GaussianDP(1.0)


def overwritten(v, rng):
    weights = 1 + rng.normal(size=2)
    weights[:] = 0.0
    return np.abs(weights) + v, v + rng.normal(size=2)


def kept(v, rng):
    weights = 1 + rng.normal(size=2)
    return np.abs(weights) + v, v + rng.normal(size=2)


@pytest.mark.parametrize(("function", "proposes"), [(overwritten, True), (kept, False)])
def test_only_noise_that_is_overwritten_hides_nothing(function, proposes):
    pair = pair_of(function, ROWS, np.array([1.0, 3.0]), GAUSSIAN)
    assert pair.differ
    assert pair.proposes == proposes


def test_later_pairs_need_fewer_runs():
    """The first pair needs a run with another constant on either input, and one more."""
    trace = Trace(overwritten)
    counts = []
    for other in ([1.0, 3.0], [4.0, 5.0]):
        before = trace.runs
        rng = np.random.default_rng(0)
        quick = compare(trace, ROWS, np.array(other), rng, claim=GAUSSIAN, outcomes=0)
        assert in_full(trace, quick, 1).proposes
        counts.append(trace.runs - before)
    assert counts == [6, 3]


def test_noise_that_an_unknown_function_changes_may_hide_a_move():
    pair = pair_of(lambda v, rng: v + np.abs(5 + rng.laplace()), 1.0, 2.0, PureDP(1.0))
    assert pair.differ
    assert not pair.proposes
    assert any(
        "may hide the difference" in finding.sentence for finding in pair.findings
    )


@pytest.mark.parametrize(
    ("function", "first", "second"),
    [
        (lambda v, rng: bool(v > np.abs(1 + rng.laplace())), 1.0, 1.2),
        (
            lambda v, rng: int(np.argmax(v + np.abs(1 + rng.laplace(size=3)))),
            [0, 1, 1],
            [0, 1, 0],
        ),
    ],
)
def test_a_decision_by_such_noise_proposes_nothing(function, first, second):
    for seed in range(8):
        assert not pair_of(function, first, second, PureDP(1.0), seed).proposes


def test_a_threshold_with_noise_is_compared_as_noise():
    pair = pair_of(
        lambda v, rng: bool(v >= 4 + rng.laplace(scale=2.0)), 3, 5, PureDP(0.4)
    )
    # P(T ≤ 3) = e^-½ / 2, and P(T ≤ 5) is its complement.
    tail = np.exp(-0.5) / 2
    assert pair.outcomes.complete
    assert pair.outcomes.epsilon == pytest.approx(np.log((1 - tail) / tail))


@pytest.mark.parametrize(
    "counts", [([0, 3], [0, 2]), ([0, 0], [1, 0]), ([1, 0], [0, 0])]
)
def test_a_sampler_with_a_location_of_0_adds_noise_to_it(counts):
    def first_large(counts, rng):
        for k, count in enumerate(counts):
            if rng.laplace(loc=count, scale=4.0) > 1.5:
                return k
        return None

    pair = pair_of(first_large, *counts, PureDP(1.0), seed=3)
    assert pair.is_bound
    assert pair.level == pytest.approx(0.25)


@pytest.mark.parametrize("values", [(0.0, 1.0), (1.0, 0.0)])
def test_a_location_of_0_is_a_value_for_samplers_without_numpy(values):
    pair = pair_of(lambda v, rng: random.gauss(v, 1.0), *values, GaussianDP(0.5))
    assert pair.is_bound
    assert pair.level == pytest.approx(1.0)
