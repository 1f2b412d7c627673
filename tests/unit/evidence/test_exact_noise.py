"""Certificates by a declared sensitivity are about a model.

The model has one scale, one shape, the query, and its sensitivity.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from auditdp import (
    AnyValues,
    ApproxDP,
    Box,
    Edges,
    GaussianDP,
    GaussianLaw,
    LaplaceLaw,
    Pair,
    PureDP,
    QueryAnswers,
    Records,
)
from tests.unit.evidence.toys import CERTIFIED, NOT_REFUTED, VIOLATED, exact


@dataclass(frozen=True)
class Noise:
    """Additive noise whose parts a test replaces by functions of the input."""

    scale: Any = lambda x: 1.0
    centre: Any = lambda x: x
    answer: Any = lambda x, rng: x
    norm: str = "l1"
    sensitivity: float = 1.0
    name: str = "noise"

    def query(self, data, rng):
        return np.atleast_1d(self.answer(np.asarray(data, float), rng))

    def distribution(self, data):
        x = np.asarray(data, float)
        centre = np.atleast_1d(np.asarray(self.centre(x), float))
        scale = float(self.scale(x))
        if self.norm == "l2":
            return GaussianLaw(centre, scale)
        return LaplaceLaw(centre, np.full(len(centre), scale))


class Mixed(Noise):
    """Gaussian noise, and Laplace noise beyond 9."""

    def distribution(self, data):
        law = super().distribution(data)
        return LaplaceLaw(law.location, np.ones(1)) if abs(data[0]) > 9 else law


def doubled(sensitivity, norm):
    """Twice the query, with noise for twice the sensitivity."""
    return Noise(
        lambda x: 2.0, lambda x: 2 * x, lambda x, rng: 2 * x, norm, sensitivity
    )


def shifted(x):
    """The query, and a quarter more beyond 5."""
    return x + (abs(x) > 5) * 0.25


def steep(x):
    """The query, with steps of two beyond 8: no listed pair has them."""
    return x + np.maximum(abs(x) - 8, 0)


def around(function):
    return Noise(lambda x: 2.0, function, lambda x, rng: function(x))


ONE = QueryAnswers(1)
HALVED = Noise(lambda x: 2.0, norm="l2")
DELTA = GaussianDP(0.5).delta_at(1.0)
NOT_THE_QUERY = "not of noise around the query"
SEARCHED = "searched, not proved"


@pytest.mark.parametrize(
    ("mechanism", "claim", "adjacency", "verdict", "text"),
    [
        (Noise(), PureDP(1.0), ONE, CERTIFIED, "at most 1 apart in l1, as declared"),
        (Noise(norm="l2"), GaussianDP(1.0), QueryAnswers(3), CERTIFIED, "in l2"),
        (
            Noise(),
            PureDP(1.0),
            QueryAnswers(4, shortest=1),
            CERTIFIED,
            "around its query",
        ),
        # δ of the Gaussian curve is decided to one part in a million.
        (HALVED, ApproxDP(1.0, DELTA * 1.000001), QueryAnswers(3), CERTIFIED, ""),
        (HALVED, ApproxDP(1.0, DELTA * 0.999999), QueryAnswers(3), VIOLATED, ""),
        # All three answers change: the pairs are √3 apart, whatever is declared.
        (HALVED, GaussianDP(0.5), QueryAnswers(3, "all"), VIOLATED, "0.866025"),
        (Noise(), PureDP(1.0), QueryAnswers(3, "all"), VIOLATED, "ε = 3"),
        # A sensitivity is compared in its own norm, and not squared.
        (doubled(2.0, "l1"), PureDP(1.0), ONE, CERTIFIED, ""),
        (doubled(1.9, "l2"), GaussianDP(1.0), ONE, NOT_REFUTED, "1.9"),
        # The law is not one of noise around the query.
        (Noise(centre=shifted), PureDP(1.5), ONE, NOT_REFUTED, NOT_THE_QUERY),
        (
            Noise(lambda x: 2.0, lambda x: 2 * x),
            PureDP(1.1),
            ONE,
            NOT_REFUTED,
            NOT_THE_QUERY,
        ),
        # Other contradictions of the model.
        (around(steep), PureDP(1.0), ONE, NOT_REFUTED, "the declared sensitivity 1"),
        (
            Mixed(norm="l2"),
            GaussianDP(1.0),
            ONE,
            NOT_REFUTED,
            "the law is a LaplaceLaw on",
        ),
        (
            Noise(),
            PureDP(1.0),
            AnyValues((0.0, 1.0)),
            NOT_REFUTED,
            "generates no others",
        ),
        # No pair attains the bound.
        (Noise(sensitivity=4.0), PureDP(5.0), ONE, CERTIFIED, "At most ε = 4 over all"),
        # Nothing is declared.
        (Noise(sensitivity=math.nan), PureDP(1.0), ONE, NOT_REFUTED, ""),
    ],
)
def test_a_certificate_needs_the_whole_model(
    mechanism, claim, adjacency, verdict, text
):
    found = exact(mechanism, claim, adjacency, examples=30)
    assert found.verdict is verdict
    assert text in found.statement
    assert verdict is not CERTIFIED or found.epsilon_upper is not None

    searched = sum(SEARCHED in assumed for assumed in found.assumptions)
    assert searched == 2 or verdict is not CERTIFIED


def test_bounds_of_a_pair_and_of_the_sensitivity():
    loose = exact(Noise(sensitivity=4.0), PureDP(5.0), ONE, examples=30)
    assert (loose.epsilon_lower, loose.epsilon_upper) == (1.0, 4.0)
    tight = exact(HALVED, GaussianDP(0.5), QueryAnswers(3), examples=30)
    assert (tight.epsilon_lower, tight.epsilon_upper) == (0.5, 0.5)


def test_given_pairs_alone_certify_nothing():
    pair = Pair(np.array([1.0]), np.array([0.0]))
    assert exact(Noise(), PureDP(1.0), ONE, play=[pair]).verdict is NOT_REFUTED


SIX = QueryAnswers(6)
TENTHS = AnyValues(tuple(np.linspace(0, 1, 11)))
ROWS = Records(8, tuple(map(float, range(10))))


@pytest.mark.dear
@pytest.mark.parametrize(
    ("adjacency", "smaller"),
    [
        (ONE, lambda x: abs(x[0]) > 3.5),
        (SIX, lambda x: (x == x[0]).all() and abs(x[0]) > 3),
        (ONE, lambda x: x[0] % 1),
        (QueryAnswers(4, shortest=1), lambda x: len(x) > 1),
        (Box(-1, 1, 6), lambda x: x[3] > 0.9),
        (ROWS, lambda x: (x == 7).any()),
        (Edges(9), lambda x: x[2, 5]),
        (TENTHS, lambda x: abs(x - 0.3) < 0.01),
    ],
)
def test_a_scale_that_depends_on_the_data_leaves_no_certificate(adjacency, smaller):
    """The query has a sensitivity of at most 1: nothing but the scale is wrong."""

    def query(x):
        return np.tanh(np.sum(x)) / 2

    mechanism = Noise(
        lambda x: 0.5 if smaller(x) else 1.0, query, lambda x, rng: query(x)
    )
    found = exact(mechanism, PureDP(4.0), adjacency)
    assert found.verdict is not CERTIFIED
    assert found.epsilon_upper is None

    depends = "the scale of the noise depends on the data" in found.statement
    assert depends or found.verdict is VIOLATED


def test_a_scale_that_depends_smoothly_on_the_data_leaves_no_certificate():
    mechanism = Noise(lambda x: 1 / (1 + 1e-6 * x[0] ** 2), norm="l2")
    found = exact(mechanism, GaussianDP(4.0), ONE)
    assert found.verdict is not CERTIFIED
    assert found.epsilon_upper is None
