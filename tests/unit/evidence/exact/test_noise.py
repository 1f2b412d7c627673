"""Certificates by a declared sensitivity are about a model: one scale, one shape, the query, and its sensitivity."""

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
    Nodes,
    Pair,
    PureDP,
    QueryAnswers,
    Records,
)
from auditdp.evidence.exact import exact_evidence
from auditdp.mechanism.laws import GaussianLaw, LaplaceLaw
from auditdp.record.results import Verdict

pytestmark = pytest.mark.dear


@dataclass(frozen=True)
class Noise:
    """Additive noise whose parts a test replaces: functions of the input, given as numbers."""

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
        centre, scale = (
            np.atleast_1d(np.asarray(self.centre(x), float)),
            float(self.scale(x)),
        )
        if self.norm == "l2":
            return GaussianLaw(centre, scale)
        return LaplaceLaw(centre, np.full(len(centre), scale))


ANSWERS = QueryAnswers(1)
CLAIMS = {"l1": PureDP(1.0), "l2": GaussianDP(1.0)}


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize(
    "adjacency",
    [ANSWERS, QueryAnswers(3), QueryAnswers(4, shortest=1)],
    ids=lambda a: a.name,
)
def test_a_model_that_holds_is_certified_and_said_to_be_searched(norm, adjacency):
    for claim in (CLAIMS[norm], *([ApproxDP(1.0, 0.2)] if norm == "l2" else [])):
        found = exact_evidence(Noise(norm=norm), claim, adjacency)
        assert found.verdict is Verdict.CERTIFIED
        assert f"at most 1 apart in {norm}, as declared" in found.statement
        assert (
            sum(
                "searched, not proved" in assumption for assumption in found.assumptions
            )
            == 2
        )


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_a_sensitivity_is_compared_in_its_own_norm_and_not_squared(norm):
    def doubled(sensitivity):
        return Noise(
            lambda x: 2.0, lambda x: 2 * x, lambda x, rng: 2 * x, norm, sensitivity
        )

    assert (
        exact_evidence(doubled(2.0), CLAIMS[norm], ANSWERS).verdict is Verdict.CERTIFIED
    )
    assert (
        exact_evidence(doubled(1.9), CLAIMS[norm], ANSWERS).verdict
        is not Verdict.CERTIFIED
    )


SHRINKING = {
    "beyond 3.5": (ANSWERS, lambda x: 0.5 if abs(x[0]) > 3.5 else 1.0),
    "beyond 3.5 in one of five": (
        QueryAnswers(5),
        lambda x: 0.5 if (abs(x) > 3.5).any() else 1.0,
    ),
    "where the sum is large": (QueryAnswers(5), lambda x: 0.5 if x.sum() > 9 else 1.0),
    "where the maximum is 7": (QueryAnswers(5), lambda x: 0.5 if x.max() == 7 else 1.0),
    "at one value": (ANSWERS, lambda x: 0.5 if x[0] == -8 else 1.0),
    "beyond a thousand": (ANSWERS, lambda x: 0.5 if x[0] > 1000 else 1.0),
    "where all are equal and large": (
        QueryAnswers(6),
        lambda x: 0.5 if (x == x[0]).all() and abs(x[0]) > 3 else 1.0,
    ),
    "at fractions": (ANSWERS, lambda x: 0.5 if x[0] % 1 else 1.0),
    "with the number of answers": (QueryAnswers(4, shortest=1), lambda x: 1.0 / len(x)),
    "smoothly": (ANSWERS, lambda x: 1 / (1 + 1e-6 * x[0] ** 2)),
    "near one end of a box": (Box(0, 1), lambda x: 0.5 if x[0] > 0.97 else 1.0),
    "with one coordinate of a box": (
        Box(-1, 1, 6),
        lambda x: 0.5 if x[3] > 0.9 else 1.0,
    ),
    "with a record": (
        Records(8, tuple(map(float, range(10)))),
        lambda x: 0.5 if (x == 7).any() else 1.0,
    ),
    "with the number of edges": (Edges(9), lambda x: 0.5 if x.sum() > 60 else 1.0),
    "with the largest degree": (
        Edges(12),
        lambda x: 0.5 if x.sum(axis=0).max() == 11 else 1.0,
    ),
    "with an edge": (Edges(9), lambda x: 0.5 if x[2, 5] else 1.0),
    "with an isolated node": (
        Nodes(9),
        lambda x: 0.5 if (x.sum(axis=0) == 0).any() else 1.0,
    ),
    "at one value of a grid": (
        AnyValues(tuple(np.linspace(0, 1, 11))),
        lambda x: 0.5 if abs(x - 0.3) < 0.01 else 1.0,
    ),
}


def small(x):
    """A query of sensitivity at most 1 for any two inputs, so that nothing but the scale is wrong."""
    return np.tanh(np.sum(x)) / 2


@pytest.mark.parametrize("shrinking", SHRINKING)
def test_a_scale_that_depends_on_the_data_is_found_and_leaves_no_certificate(shrinking):
    adjacency, scale = SHRINKING[shrinking]
    norm = ("l1", "l2")[list(SHRINKING).index(shrinking) % 2]
    mechanism = Noise(scale, small, lambda x, rng: small(x), norm)
    found = exact_evidence(mechanism, CLAIMS[norm].at(4.0), adjacency)
    assert found.verdict is not Verdict.CERTIFIED
    assert (
        "the scale of the noise depends on the data" in found.statement
        or found.verdict is Verdict.VIOLATED
    )
    assert found.epsilon_upper is None


def test_a_pair_of_different_scales_loses_without_bound():
    """Lap(1) against Lap(1/2): the log ratio grows with |y|."""
    found = exact_evidence(
        Noise(lambda x: 0.5 if abs(x[0]) > 3.5 else 1.0), PureDP(50.0), ANSWERS
    )
    assert found.verdict is Verdict.VIOLATED
    assert found.epsilon_lower == math.inf
    assert "no bound" in found.counterexample.explanation


def test_a_location_that_is_not_the_query_leaves_no_certificate():
    """The law doubles what the query says, so that its sensitivity is not the one of the noise."""
    mechanism = Noise(lambda x: 2.0, lambda x: 2 * x)
    broken = exact_evidence(mechanism, PureDP(0.9), ANSWERS)
    assert broken.verdict is Verdict.VIOLATED
    assert broken.epsilon_lower == 1.0
    loose = exact_evidence(mechanism, PureDP(1.1), ANSWERS)
    assert loose.verdict is Verdict.NOT_REFUTED
    assert "not of noise around the query" in loose.statement
    assert loose.epsilon_upper is None


@pytest.mark.parametrize(
    ("mechanism", "epsilon"),
    [
        (Noise(centre=lambda x: x + (abs(x) > 5) * 0.25), 1.5),  # a shift far away
        (
            Noise(answer=lambda x, rng: x + rng.random()),
            1.0,
        ),  # a query of its own randomness
    ],
)
def test_a_law_whose_location_is_not_the_query_is_not_certified(mechanism, epsilon):
    found = exact_evidence(mechanism, PureDP(epsilon), ANSWERS)
    assert found.verdict is Verdict.NOT_REFUTED
    assert "not of noise around the query" in found.statement


def test_answers_further_apart_than_declared_leave_no_certificate():
    """Beyond 8, a step of the input is two of the answer: no listed pair shows it."""

    def steep(x):
        return x + np.maximum(abs(x) - 8, 0)

    mechanism = Noise(lambda x: 2.0, steep, lambda x, rng: steep(x))
    found = exact_evidence(mechanism, PureDP(1.0), ANSWERS)
    assert found.verdict is Verdict.NOT_REFUTED
    assert "more than the declared sensitivity 1" in found.statement
    assert exact_evidence(mechanism, PureDP(0.9), ANSWERS).verdict is Verdict.VIOLATED


def test_a_family_that_depends_on_the_data_leaves_no_certificate():
    class Mixed(Noise):
        def distribution(self, data):
            law = super().distribution(data)
            return LaplaceLaw(law.location, np.ones(1)) if abs(data[0]) > 9 else law

    found = exact_evidence(Mixed(norm="l2"), GaussianDP(1.0), ANSWERS)
    assert found.verdict is Verdict.NOT_REFUTED
    assert "the law is a LaplaceLaw on" in found.statement


def test_pairs_that_are_given_show_nothing_of_other_inputs():
    found = exact_evidence(Noise(), PureDP(1.0), AnyValues((0.0, 1.0)))
    assert found.verdict is Verdict.NOT_REFUTED
    assert "generates no pairs" in found.statement


def test_a_bound_that_no_pair_attains_is_not_called_exact():
    found = exact_evidence(Noise(sensitivity=4.0), PureDP(5.0), ANSWERS)
    assert found.verdict is Verdict.CERTIFIED
    assert found.statement.startswith("At most ε = 4 over all neighbours")
    assert (found.epsilon_lower, found.epsilon_upper) == (1.0, 4.0)
    undecided = exact_evidence(Noise(sensitivity=4.0), PureDP(3.0), ANSWERS)
    assert undecided.verdict is Verdict.NOT_REFUTED
    assert "no pair that was looked at attains" in undecided.statement


def test_an_undeclared_sensitivity_certifies_nothing():
    for sensitivity in (math.nan, math.inf, 0.0, -1.0, "1"):
        assert (
            exact_evidence(Noise(sensitivity=sensitivity), PureDP(1.0), ANSWERS).verdict
            is Verdict.NOT_REFUTED
        )


def test_what_is_given_is_compared_and_no_more():
    pair = Pair(np.array([1.0]), np.array([0.0]))
    assert (
        exact_evidence(Noise(), PureDP(1.0), ANSWERS, play=[pair]).verdict
        is Verdict.NOT_REFUTED
    )
