"""The contract with diffprivlib: a primitive is one release, with its own scale."""

import inspect
import math

import numpy as np
import pytest

from auditdp import ApproxDP, PureDP
from auditdp.tracing.sources.of_diffprivlib import LIBRARY
from tests.unit.tracing.toys import families, kinds, pair_of, record

pytest.importorskip(
    "diffprivlib", reason="diffprivlib is in the environment of `make libraries`"
)
from diffprivlib import mechanisms, tools

PURE = PureDP(1.0)


def primitive(name, **options):
    """Return a primitive of sensitivity 2 with a seed."""
    options = {"sensitivity": 2.0, "random_state": 1, **options}
    return getattr(mechanisms, name)(**options)


# The options of each primitive, the family, its scale, and what a move by 2 loses.
NUMERIC = {
    "Laplace": ({"epsilon": 0.5}, "Laplace", 4.0, 0.5),
    "LaplaceTruncated": (
        {"epsilon": 1, "lower": -9, "upper": 9},
        "Laplace",
        2.0,
        1.0,
    ),
    "Gaussian": (
        {"epsilon": 0.5, "delta": 1e-3},
        "Gaussian",
        math.sqrt(2 * math.log(1250)) * 4,
        None,
    ),
    "GaussianAnalytic": ({"epsilon": 1, "delta": 1e-3}, "Gaussian", None, None),
    "Uniform": ({"delta": 0.25}, "uniform", 8.0, 0.0),
    "Staircase": (
        {"epsilon": 1.0, "gamma": 0.5},
        "Staircase of diffprivlib",
        1.0,
        1.0,
    ),
    # Its draws are those of the operating system.
    "Snapping": (
        {"epsilon": 1.0, "lower": 0, "upper": 10, "random_state": None},
        "Snapping of diffprivlib",
        1.0,
        1.0,
    ),
    "LaplaceBoundedDomain": (
        {"epsilon": 1.0, "lower": 0, "upper": 10},
        "LaplaceBoundedDomain of diffprivlib",
        1.0,
        1.0,
    ),
}


@pytest.mark.parametrize("name", NUMERIC)
def test_a_number_is_one_release_with_the_scale_of_the_primitive(name):
    options, family, scale, level = NUMERIC[name]

    def noisy(v, rng):
        return primitive(name, **options).randomise(v)

    pair = pair_of(noisy, 3.0, 5.0, ApproxDP(9.0, 0.5))
    (release,) = pair.first.releases
    assert pair.extent == "full"
    assert pair.differ is None
    assert release.law.family == family
    assert release.site.line == noisy.__code__.co_firstlineno + 1
    if scale is not None:
        assert release.law.scale == pytest.approx(scale)
    if name != "Snapping":
        assert pair.first.output == noisy(3.0, None)
    if level is not None:
        assert pair.composed.statements == pytest.approx(level)


@pytest.mark.parametrize(
    ("name", "options", "family"),
    [
        ("Geometric", {"sensitivity": 1}, "two-sided geometric"),
        (
            "GeometricTruncated",
            {"sensitivity": 1, "lower": 0, "upper": 9},
            "two-sided geometric",
        ),
        ("GaussianDiscrete", {"sensitivity": 1, "delta": 1e-3}, "discrete Gaussian"),
    ],
)
def test_whole_noise_is_a_release(name, options, family):
    def noisy(v, rng):
        return primitive(name, epsilon=0.5, **options).randomise(v)

    pair = pair_of(noisy, 3, 5, PURE)
    assert families(pair.first) == [family]
    assert pair.extent == "full"
    assert pair.first.output == noisy(3, None)
    if family == "two-sided geometric":
        assert pair.level == pytest.approx(1.0)
    else:
        sigma = primitive(name, epsilon=0.5, **options)._scale
        assert pair.composed.squared_mu == pytest.approx((2 / sigma) ** 2)


def test_a_choice_has_its_probabilities():
    def choose(counts, rng):
        options = {"utility": counts, "candidates": ["a", "b", "c"]}
        return primitive(
            "Exponential", epsilon=1.0, sensitivity=1, **options
        ).randomise()

    counts = [1, 5, 2]
    others = [1, 4, 2]
    pair = pair_of(choose, counts, others, PURE)
    first, second = (np.exp(np.array(utility) / 2) for utility in (counts, others))
    ratios = np.log(first / first.sum()) - np.log(second / second.sum())
    assert pair.outcomes.epsilon == pytest.approx(np.abs(ratios).max())
    assert pair.first.output == choose(counts, None)


def test_a_coin_has_its_probability():
    def respond(answer, rng):
        options = {"value0": "no", "value1": "yes", "random_state": 1}
        return mechanisms.Binary(epsilon=1.0, **options).randomise(answer)

    pair = pair_of(respond, "no", "yes", PURE)
    assert pair.outcomes.complete
    assert pair.outcomes.epsilon == pytest.approx(1.0)
    assert pair.first.output == respond("no", None)


def test_permute_and_flip_loses_by_the_move_of_a_utility():
    def choose(counts, rng):
        return primitive("PermuteAndFlip", epsilon=1.0, utility=counts).randomise()

    pair = pair_of(choose, [1, 5, 2], [1, 1, 2], PURE)
    assert pair.level == pytest.approx(2.0)
    assert pair.proposes


def test_tools_are_traced_to_the_line_that_calls_them():
    def mean(ages, rng):
        return tools.mean(ages, epsilon=1.0, bounds=(0, 50), random_state=1)

    first = np.array([20.0, 30.0, 50.0])
    second = np.array([20.0, 30.0, 0.0])
    pair = pair_of(mean, first, second, PURE)
    assert pair.extent == "full"
    assert [release.site.function for release in pair.first.releases] == ["mean"]
    assert pair.level == pytest.approx(1.0)


def test_a_sensitivity_from_the_data_is_found():
    def noisy(values, rng):
        mechanism = primitive("Laplace", epsilon=1.0, sensitivity=max(values))
        return mechanism.randomise(sum(values))

    # The random state fixes the noise, too.
    pair = pair_of(noisy, [1.0, 2.0], [1.0, 4.0], PURE)
    assert kinds(pair) == ["seed", "scale"]


def staircase(v, rng):
    return primitive("Staircase", **NUMERIC["Staircase"][0]).randomise(v)


def test_unknown_versions_are_opaque(monkeypatch):
    reason = "is of diffprivlib 9.0, and known are 0.6"
    monkeypatch.setattr(type(LIBRARY), "why", reason)
    pair = pair_of(staircase, 3.0, 5.0, PURE)
    assert pair.extent != "full"
    assert any("diffprivlib 9.0" in why for _, why in pair.opaque)


def test_after_a_run_the_library_is_as_before():
    before = inspect.getattr_static(mechanisms.Staircase, "randomise")
    record(staircase, 3.0)
    assert inspect.getattr_static(mechanisms.Staircase, "randomise") is before
