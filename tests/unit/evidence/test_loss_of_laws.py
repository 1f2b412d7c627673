"""Losses of two laws: probability that is missing, sources of bounds, and curves."""

import math
from fractions import Fraction

import numpy as np
import pytest

from auditdp import ApproxDP, GaussianDP, GaussianLaw, LaplaceLaw, PureDP, StepLaw
from auditdp.evidence.loss_of_laws import delta_curve, pair_loss
from tests.unit.evidence.toys import (
    CERTIFIED,
    NOT_REFUTED,
    NUMBERS,
    VIOLATED,
    bit,
    exact,
    finite,
)

HALF = Fraction(1, 2)
FAIR = finite(HALF, HALF)
LACK = 5e-10
LACKING = finite(0.5 - LACK, 0.5)


@pytest.mark.parametrize("laws", [(FAIR, LACKING), (LACKING, FAIR)])
def test_missing_probability_counts_as_delta(laws):
    loss = pair_loss(*laws, epsilon=1.0, delta=1e-10)
    assert float(loss.delta.lower()) <= 1e-10
    assert float(loss.delta.upper()) >= LACK
    assert loss.upper == loss.needed[1] == math.inf
    assert loss.lower < 1e-8


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (ApproxDP(1.0, 1e-10), NOT_REFUTED),
        (PureDP(20.0), NOT_REFUTED),
        (GaussianDP(5.0), NOT_REFUTED),
        (ApproxDP(1.0, 1e-8), CERTIFIED),
    ],
)
def test_a_law_is_not_certified_below_the_probability_that_is_missing(claim, verdict):
    assert exact((FAIR, LACKING), claim).verdict is verdict


def test_an_output_that_is_not_listed_may_have_the_missing_probability():
    """An output of 1e-6 against at most 5e-10 and the error of floats.

    The factor between them is finite.
    """
    most = LACK + 1e-9 + 1e-12
    one = finite(1 - Fraction(1, 10**6), Fraction(1, 10**6))
    loss = pair_loss(one, finite(1 - LACK), epsilon=1.0, delta=1e-7)

    assert loss.lower == pytest.approx(math.log(1e-6 / most), rel=1e-3)
    assert loss.upper == math.inf
    assert math.isfinite(loss.needed[0])
    assert float(loss.delta.lower()) == pytest.approx(1e-6 - math.e * most, rel=1e-3)


@pytest.mark.parametrize("claim", [PureDP(0.5), ApproxDP(0.5, 1e-13)])
def test_the_error_of_floats_counts_as_delta_unless_they_list_all_outputs(claim):
    """Floats whose sum is 1 up to rounding list all outputs for a pure ε.

    A pure ε holds with any δ.
    """
    found = exact(bit(0.6), claim)
    assert found.verdict is CERTIFIED

    assumed = " ".join(found.assumptions)
    assert "a relative 1e-09 and an absolute 1e-12 of probability" in assumed
    assert "its law lists every output of positive probability" in assumed

    delta = pair_loss(*(finite(*law) for law in bit(0.6)), epsilon=0.5).delta
    assert 1e-9 < float(delta.upper()) < 3e-9


def test_step_laws_that_lack_probability():
    lacking, whole = StepLaw([0, 1], [1 - LACK]), StepLaw([0, 1], [Fraction(1)])
    loss = pair_loss(lacking, whole, epsilon=0.5)
    assert loss.upper == math.inf
    assert float(loss.delta.upper()) >= LACK


@pytest.mark.filterwarnings("error")
def test_the_curve_of_an_infinite_or_very_large_loss():
    quarter = Fraction(1, 4)
    points = np.array([0.0, 0.5, 5.0, 800.0])
    curve = np.array(delta_curve(finite(HALF, quarter, quarter), FAIR, points))
    assert curve[:, 1].tolist() == pytest.approx([0.25] * 4)


# Sources of bounds.

LOW, HIGH = np.array([0.5]), np.array([1.5])
NEAR = np.array([0.5 * (1 + 1e-14)])


def laplace(scale):
    return LaplaceLaw(LOW, scale)


@pytest.mark.parametrize(
    ("p", "q", "source"),
    [
        (FAIR, LACKING, "some are not listed, so that the pure ε has no upper bound"),
        (LaplaceLaw(HIGH, LOW), laplace(LOW), "summed over the coordinates"),
        (LaplaceLaw(HIGH, LOW), laplace(NEAR), "agree up to rounding only"),
        (GaussianLaw(HIGH, 0.5), GaussianLaw(LOW, NEAR[0]), "leaves μ and δ open"),
    ],
)
def test_a_loss_states_its_source(p, q, source):
    assert source in pair_loss(p, q, epsilon=1.0, delta=0.1).source


def test_evidence_states_the_source_of_the_loss_of_the_worst_pair():
    def scaled(data):
        return LaplaceLaw(np.zeros(1), np.array([1.0 + data]))

    refuted = exact(scaled, PureDP(1.0), NUMBERS)
    assert refuted.verdict is VIOLATED

    explanation = refuted.counterexample.explanation
    assert "the scales of the noise, which depend on the data" in explanation
    assert refuted.details.loss_computed_from in explanation

    def rounded(data):
        return GaussianLaw(np.array([data]), 1.0 if data else 1.0 + 1e-14)

    undecided = exact(rounded, ApproxDP(1.0, 0.2), NUMBERS)
    assert undecided.verdict is NOT_REFUTED
    assert f"from {undecided.details.loss_computed_from}" in undecided.statement
