"""The contract with diffprivlib: family, scale and value of each primitive, outputs of plain runs, and what a pair loses."""

import inspect
import math

import numpy as np
import pytest

from auditdp.claims.statements import ApproxDP, PureDP
from auditdp.tracing import Trace, compare
from auditdp.tracing.sources.of_diffprivlib import LIBRARY

pytest.importorskip(
    "diffprivlib", reason="diffprivlib is in the environment of `make libraries`"
)
from diffprivlib import mechanisms, tools

NUMERIC = {
    "Laplace": (
        lambda: mechanisms.Laplace(epsilon=0.5, sensitivity=2.0, random_state=1),
        "Laplace",
        4.0,
        0.5,
    ),
    "LaplaceTruncated": (
        lambda: mechanisms.LaplaceTruncated(
            epsilon=1, sensitivity=2, lower=-9, upper=9, random_state=1
        ),
        "Laplace",
        2.0,
        1.0,
    ),
    "Gaussian": (
        lambda: mechanisms.Gaussian(
            epsilon=0.5, delta=1e-3, sensitivity=2.0, random_state=1
        ),
        "Gaussian",
        math.sqrt(2 * math.log(1250)) * 4,
        None,
    ),
    "GaussianAnalytic": (
        lambda: mechanisms.GaussianAnalytic(
            epsilon=1, delta=1e-3, sensitivity=2.0, random_state=1
        ),
        "Gaussian",
        None,
        None,
    ),
    "Uniform": (
        lambda: mechanisms.Uniform(delta=0.25, sensitivity=2.0, random_state=1),
        "uniform",
        8.0,
        0.0,
    ),
    "Staircase": (
        lambda: mechanisms.Staircase(
            epsilon=1.0, sensitivity=2.0, gamma=0.5, random_state=1
        ),
        "Staircase of diffprivlib",
        1.0,
        1.0,
    ),
    "Snapping": (
        lambda: mechanisms.Snapping(
            epsilon=1.0, sensitivity=2.0, lower=0, upper=10, random_state=None
        ),
        "Snapping of diffprivlib",
        1.0,
        1.0,
    ),
    "LaplaceBoundedDomain": (
        lambda: mechanisms.LaplaceBoundedDomain(
            epsilon=1.0, sensitivity=2.0, lower=0, upper=10, random_state=1
        ),
        "LaplaceBoundedDomain of diffprivlib",
        1.0,
        1.0,
    ),
}


@pytest.mark.parametrize("name", NUMERIC)
def test_a_number_is_one_release_with_the_primitives_own_scale(name):
    make, family, scale, level = NUMERIC[name]

    def noisy(v, rng):
        return make().randomise(v)

    pair = compare(
        Trace(noisy), 3.0, 5.0, np.random.default_rng(0), claim=ApproxDP(9.0, 0.5)
    )
    (release,) = pair.first.releases
    assert release.law.family == family
    if scale is not None:
        assert release.law.scale == pytest.approx(scale)
    assert release.site.line == noisy.__code__.co_firstlineno + 1
    assert pair.extent == "full"
    assert pair.differ is None
    if name != "Snapping":  # draws from the operating system
        assert pair.first.output == noisy(3.0, None)
    if level is not None:
        assert pair.composed.statements == pytest.approx(level)


@pytest.mark.parametrize(
    ("make", "family"),
    [
        (
            lambda: mechanisms.Geometric(epsilon=0.5, sensitivity=1, random_state=1),
            "two-sided geometric",
        ),
        (
            lambda: mechanisms.GeometricTruncated(
                epsilon=0.5, lower=0, upper=9, random_state=1
            ),
            "two-sided geometric",
        ),
        (
            lambda: mechanisms.GaussianDiscrete(
                epsilon=0.5, delta=1e-3, random_state=1
            ),
            "discrete Gaussian",
        ),
    ],
)
def test_whole_noise(make, family):
    pair = compare(
        Trace(lambda v, rng: make().randomise(v)),
        3,
        5,
        np.random.default_rng(0),
        claim=PureDP(1.0),
    )
    assert [release.law.family for release in pair.first.releases] == [family]
    assert pair.first.output == make().randomise(3)
    assert pair.extent == "full"
    if family == "two-sided geometric":
        assert pair.level == pytest.approx(1.0)
    else:
        assert pair.composed.squared_mu == pytest.approx((2 / make()._scale) ** 2)


def test_choices_and_coins():
    def choose(counts, rng):
        return mechanisms.Exponential(
            epsilon=1.0,
            sensitivity=1,
            utility=counts,
            candidates=["a", "b", "c"],
            random_state=1,
        ).randomise()

    pair = compare(
        Trace(choose), [1, 5, 2], [1, 4, 2], np.random.default_rng(0), claim=PureDP(1.0)
    )
    first, second = (np.exp(np.array(u) / 2) for u in ([1, 5, 2], [1, 4, 2]))
    expected = np.abs(np.log(first / first.sum()) - np.log(second / second.sum())).max()
    assert pair.outcomes.epsilon == pytest.approx(expected)
    assert pair.first.output == choose([1, 5, 2], None)

    def respond(answer, rng):
        return mechanisms.Binary(
            epsilon=1.0, value0="no", value1="yes", random_state=1
        ).randomise(answer)

    pair = compare(
        Trace(respond), "no", "yes", np.random.default_rng(0), claim=PureDP(1.0)
    )
    assert pair.outcomes.epsilon == pytest.approx(1.0)
    assert pair.outcomes.complete
    assert pair.first.output == respond("no", None)


def test_permute_and_flip_loses_by_how_far_a_utility_moves():
    def choose(counts, rng):
        return mechanisms.PermuteAndFlip(
            epsilon=1.0, sensitivity=2, utility=counts, random_state=1
        ).randomise()

    pair = compare(
        Trace(choose), [1, 5, 2], [1, 1, 2], np.random.default_rng(0), claim=PureDP(1.0)
    )
    assert pair.level == pytest.approx(2.0)
    assert pair.proposes


def test_tools_are_traced_to_the_line_that_calls_them():
    def mean(ages, rng):
        return tools.mean(ages, epsilon=1.0, bounds=(0, 50), random_state=1)

    ages = np.array([20.0, 30.0, 50.0])
    pair = compare(
        Trace(mean),
        ages,
        np.array([20.0, 30.0, 0.0]),
        np.random.default_rng(0),
        claim=PureDP(1.0),
    )
    assert pair.extent == "full"
    assert [release.site.function for release in pair.first.releases] == ["mean"]
    assert pair.level == pytest.approx(1.0)


def test_a_sensitivity_from_the_data_is_read_off():
    def noisy(values, rng):
        return mechanisms.Laplace(
            epsilon=1.0, sensitivity=max(values), random_state=1
        ).randomise(sum(values))

    pair = compare(
        Trace(noisy),
        [1.0, 2.0],
        [1.0, 4.0],
        np.random.default_rng(0),
        claim=PureDP(1.0),
    )
    assert [finding.kind for finding in pair.findings] == [
        "seed",
        "scale",
    ]  # random_state=1 fixes the noise, too


def test_versions_that_are_not_known_are_opaque(monkeypatch):
    monkeypatch.setattr(
        type(LIBRARY), "why", "is of diffprivlib 9.0, and known are 0.6"
    )
    noisy = NUMERIC["Staircase"][0]
    pair = compare(
        Trace(lambda v, rng: noisy().randomise(v)),
        3.0,
        5.0,
        np.random.default_rng(0),
        claim=PureDP(1.0),
    )
    assert pair.extent != "full"
    assert any("diffprivlib 9.0" in why for _, why in pair.opaque)


def test_after_a_run_the_library_is_as_before():
    before = inspect.getattr_static(mechanisms.Laplace, "randomise")
    Trace(lambda v, rng: NUMERIC["Laplace"][0]().randomise(v)).record(
        3.0, np.random.default_rng(0)
    )
    assert inspect.getattr_static(mechanisms.Laplace, "randomise") is before
