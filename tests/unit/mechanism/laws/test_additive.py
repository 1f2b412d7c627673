"""Laplace, Gaussian and step laws: their densities, and their exact losses."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import laplace, norm

from auditdp import FiniteLaw, GaussianDP, GaussianLaw, LaplaceLaw, StepLaw
from auditdp.errors import MechanismError
from auditdp.evidence.loss_of_laws import delta_curve, pair_loss

HALF = Fraction(1, 2)
QUARTER = Fraction(1, 4)
ZEROS = np.zeros(2)
ONES = np.ones(2)


def test_densities_probabilities_of_atoms_and_the_distribution_function():
    atoms = [QUARTER, QUARTER]
    eighth = Fraction(1, 8)
    mixed = StepLaw([-1, 0, 2], [QUARTER, eighth], [-1, 3], atoms)
    outputs = np.array([-2, -1, -0.5, 0.5, 1.9, 2.5, 3, 4])
    with np.errstate(divide="ignore"):
        densities = np.exp(mixed.log_prob(outputs[:, None]))
    assert densities == pytest.approx([0, 0.25, 0.25, 0.125, 0.125, 0, 0.25, 0])
    expected = [0, 0.25, 0.375, 0.5625, 0.7375, 0.75, 1, 1]
    assert mixed.cdf(outputs) == pytest.approx(expected)


def test_atoms_alone_are_a_step_law_too():
    masses = [QUARTER, 1 - QUARTER]
    coins = [
        StepLaw(atoms=[-1, 1], probabilities=each) for each in (masses, masses[::-1])
    ]
    assert coins[0].cdf(np.array([-2, -1, 0, 1])).tolist() == [0, 0.25, 0.25, 1]
    loss = pair_loss(*coins)
    finite = pair_loss(*[FiniteLaw(np.array([-1, 1]), c.probabilities) for c in coins])
    assert loss.lower == pytest.approx(math.log(3), rel=1e-15)
    assert str(loss) == str(finite)


weights = st.lists(st.integers(1, 9), min_size=3, max_size=3)


@given(weights, weights, st.floats(0, 2))
def test_delta_of_step_laws_is_the_integral_of_the_excess(first, second, epsilon):
    p = StepLaw([0, 1, 2, 3], [Fraction(w, sum(first)) for w in first])
    breaks = [k + HALF for k in range(4)]
    q = StepLaw(breaks, [Fraction(w, sum(second)) for w in second])

    def excess(one, other):
        def at(y):
            a, b = (np.exp(law.log_prob(np.array([y])))[0] for law in (one, other))
            return max(a - math.exp(epsilon) * b, 0)

        return quad(at, 0, 3.5, points=[k / 2 for k in range(1, 7)])[0]

    delta = float(pair_loss(p, q, epsilon=epsilon).delta.mid())
    with np.errstate(divide="ignore"):
        assert delta == pytest.approx(max(excess(p, q), excess(q, p)), abs=1e-7)
    assert delta_curve(p, q, [epsilon])[0][1] == pytest.approx(delta, abs=1e-12)


def test_gaussian_laws_lose_their_distance_over_the_deviation():
    p = GaussianLaw(np.array([3.0, 4.0]), 2.5)
    q = GaussianLaw(ZEROS, 2.5)
    delta = GaussianDP(2.0).delta_at(1.0)
    loss = pair_loss(p, q, epsilon=1.0)
    assert float(loss.mu.mid()) == 2.0
    assert loss.lower == math.inf
    assert float(loss.delta.mid()) == pytest.approx(delta, rel=1e-12)
    assert delta_curve(p, q, [0.0, 1.0])[1][1] == pytest.approx(delta, rel=1e-12)
    lower, upper = pair_loss(p, q, delta=delta).needed
    assert lower <= 1 + 1e-12
    assert upper == pytest.approx(1.0, rel=1e-12)
    assert upper - lower < 1e-12
    same = pair_loss(q, q, epsilon=1.0, delta=1e-9)
    assert same.upper == 0 == float(same.delta.mid())
    assert same.needed[0] == 0 <= same.needed[1] < 1e-14


def test_densities_are_those_of_scipy():
    outputs = np.random.default_rng(1).normal(size=(20, 2))
    location = np.array([1.0, -1.0])
    scale = np.array([0.7, 2.0])
    expected = norm.logpdf(outputs, location, 0.7).sum(axis=1)
    assert GaussianLaw(location, 0.7).log_prob(outputs) == pytest.approx(expected)
    expected = laplace.logpdf(outputs, location, scale).sum(axis=1)
    assert LaplaceLaw(location, scale).log_prob(outputs) == pytest.approx(expected)


def test_the_laplace_epsilon_is_exact():
    scale = np.array([0.3, 3.0])
    one = LaplaceLaw(np.array([0.1, 1.0]), scale)
    two = LaplaceLaw(np.array([0.4, 2.0]), scale)
    gap = (Fraction(0.4) - Fraction(0.1)) / Fraction(0.3)
    assert one.epsilon_against(two) == gap + Fraction(1, 3)
    assert one.epsilon_against(one) == 0


@pytest.mark.parametrize("other", [2.0, 1.0 + 1e-9])
def test_a_scale_that_depends_on_the_data_loses_everything(other):
    """P(ln P/Q > ε) is about e^(-ε/3) for σ = 2 against 1, above every δ_μ(ε)."""
    first = GaussianLaw(np.zeros(1), 1.0)
    second = GaussianLaw(np.zeros(1), other)
    loss = pair_loss(first, second, epsilon=1.0, delta=0.1)
    assert loss.lower == float(loss.mu.lower()) == math.inf
    ends = float(loss.delta.lower()), float(loss.delta.upper())
    assert ends == pytest.approx((0.0, 1.0), abs=1e-8)
    assert loss.needed == (0.0, math.inf)
    scales = ONES, np.array([1.0, other])
    loss = pair_loss(LaplaceLaw(ZEROS, scales[0]), LaplaceLaw(ONES, scales[1]))
    assert loss.lower == math.inf


@pytest.mark.parametrize(
    ("other", "fragment"),
    [
        (LaplaceLaw(ZEROS[:1], ONES[:1]), "coordinates"),
        (GaussianLaw(ZEROS, 1), "family"),
    ],
)
def test_laws_of_different_families_are_not_compared(other, fragment):
    with pytest.raises(MechanismError, match=fragment):
        pair_loss(LaplaceLaw(ZEROS, ONES), other)


def test_laplace_laws_of_other_scales_have_no_closed_form():
    with pytest.raises(MechanismError, match="scale depends on the data"):
        LaplaceLaw(ZEROS, ONES).epsilon_against(LaplaceLaw(ZEROS, 2 * ONES))
