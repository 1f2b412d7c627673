"""Step laws, Gaussian laws and envelopes: what they refuse, their densities, and their exact losses."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from auditdp.claims.statements import GaussianDP
from auditdp.errors import MechanismError
from auditdp.evidence.exact_losses import aligned, envelope_losses
from auditdp.evidence.loss_of_laws import delta_curve, pair_loss
from auditdp.mechanism.laws import (
    Envelope,
    FiniteLaw,
    GaussianLaw,
    LaplaceLaw,
    StepLaw,
    precision,
)

HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({"breaks": [0, 1], "densities": []}, "2 breaks and 0 densities"),
        (
            {"breaks": [0, 1], "densities": [1], "atoms": [0]},
            "1 atoms and 0 probabilities",
        ),
        ({"breaks": [1, 0], "densities": [1]}, "increasing"),
        ({"breaks": [0, 0, 1], "densities": [1, 1]}, "increasing"),
        ({"atoms": [1, 1], "probabilities": [HALF, HALF]}, "distinct"),
        ({"breaks": [0, 1, 2], "densities": [Fraction(2), Fraction(-1)]}, ">= 0"),
        ({"breaks": [0, 1], "densities": [HALF]}, "sum 0.5"),
        ({"breaks": [0, 1], "densities": [0.999]}, "sum 0.999"),
        ({}, "sum 0"),
    ],
    ids=str,
)
def test_what_is_no_step_law_is_refused(arguments, shown):
    with pytest.raises(MechanismError, match=shown):
        StepLaw(**arguments)


MIXED = StepLaw([-1, 0, 2], [QUARTER, Fraction(1, 8)], [-1, 3], [QUARTER, QUARTER])


def test_densities_probabilities_of_atoms_and_the_distribution_function():
    outputs = np.array([-2, -1, -0.5, 0.5, 1.9, 2.5, 3, 4])
    with np.errstate(divide="ignore"):
        assert np.exp(MIXED.log_prob(outputs)).tolist() == pytest.approx(
            [0, 0.25, 0.25, 0.125, 0.125, 0, 0.25, 0]
        )
    assert MIXED.cdf(outputs).tolist() == pytest.approx(
        [0, 0.25, 0.375, 0.5625, 0.7375, 0.75, 1, 1]
    )
    assert MIXED.log_prob(outputs[:, None]).shape == (8,)


def test_atoms_alone_are_a_step_law_too():
    coin = StepLaw(atoms=[-1, 1], probabilities=[QUARTER, 1 - QUARTER])
    assert coin.cdf(np.array([-2, -1, 0, 1])).tolist() == [0, 0.25, 0.25, 1]
    other = StepLaw(atoms=[-1, 1], probabilities=[1 - QUARTER, QUARTER])
    finite = [FiniteLaw(np.array([-1, 1]), law.probabilities) for law in (coin, other)]
    assert pair_loss(coin, other).lower == pytest.approx(math.log(3), rel=1e-15)
    assert str(pair_loss(coin, other)) == str(pair_loss(*finite))


def test_steps_are_compared_on_the_common_refinement():
    """[0, 2] at 1/2 against [1, 3] at 1/2: each is impossible on one unit, and they agree on [1, 2]."""
    p, q = StepLaw([0, 2], [HALF]), StepLaw([1, 3], [HALF])
    rows = [(float(a.mid()), float(b.mid()), where) for a, b, where in aligned(p, q)]
    assert rows == [
        (0.5, 0, "any number in [0, 1]"),
        (0.5, 0.5, "any number in [1, 2]"),
        (0, 0.5, "any number in [2, 3]"),
    ]
    assert pair_loss(p, q, epsilon=1.0).lower == math.inf
    assert float(pair_loss(p, q, epsilon=1.0).delta.mid()) == 0.5


steps = st.lists(st.integers(1, 9), min_size=3, max_size=3)


@given(steps, steps, st.floats(0, 2))
def test_delta_of_step_laws_is_the_integral_of_the_excess(first, second, epsilon):
    p, q = (
        StepLaw([0, 1, 2, 3], [Fraction(w, sum(weights)) for w in weights])
        for weights in (first, second)
    )
    shifted = StepLaw(
        [Fraction(1, 2), Fraction(3, 2), Fraction(5, 2), Fraction(7, 2)], q.densities
    )

    def density(law, y):
        return float(np.exp(law.log_prob(np.array([y])))[0])

    def excess(a, b):
        points = [k / 2 for k in range(1, 7)]
        return quad(
            lambda y: max(density(a, y) - math.exp(epsilon) * density(b, y), 0),
            0,
            3.5,
            points=points,
        )[0]

    exact = float(pair_loss(p, shifted, epsilon=epsilon).delta.mid())
    with np.errstate(divide="ignore"):
        assert exact == pytest.approx(
            max(excess(p, shifted), excess(shifted, p)), abs=1e-7
        )
    assert delta_curve(p, shifted, [epsilon])[0][1] == pytest.approx(exact, abs=1e-12)


def test_densities_may_be_balls_or_floats():
    with precision():
        third = arb(1) / 3
    StepLaw([0, 3], [third])
    StepLaw([0, 3], [1 / 3])
    with pytest.raises(MechanismError, match="sum"):
        StepLaw([0, 2], [third])


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.inf, math.nan])
def test_what_is_no_gaussian_law_is_refused(sigma):
    with pytest.raises(MechanismError, match="sigma > 0"):
        GaussianLaw(np.zeros(1), sigma)
    with pytest.raises(MechanismError, match="location"):
        GaussianLaw(np.zeros((1, 1)), 1.0)


def test_gaussian_laws_are_as_hard_to_tell_apart_as_their_distance_says():
    p, q = GaussianLaw(np.array([3.0, 4.0]), 2.5), GaussianLaw(np.zeros(2), 2.5)
    loss = pair_loss(p, q, epsilon=1.0)
    assert float(loss.mu.mid()) == 2.0
    assert float(loss.delta.mid()) == pytest.approx(
        GaussianDP(2.0).delta_at(1.0), rel=1e-12
    )
    assert loss.lower == math.inf
    lower, upper = pair_loss(p, q, delta=GaussianDP(2.0).delta_at(1.0)).needed
    assert lower <= 1 + 1e-12
    assert upper == pytest.approx(1.0, rel=1e-12)
    assert upper - lower < 1e-12
    same = pair_loss(q, q, epsilon=1.0, delta=1e-9)
    assert same.upper == 0 == float(same.delta.mid())
    assert same.needed[0] == 0 <= same.needed[1] < 1e-14
    assert delta_curve(p, q, [0.0, 1.0])[1][1] == pytest.approx(
        GaussianDP(2.0).delta_at(1.0), rel=1e-12
    )


def test_gaussian_density_is_that_of_scipy():
    outputs = np.random.default_rng(1).normal(size=(20, 2))
    expected = norm.logpdf(outputs, [1.0, -1.0], 0.7).sum(axis=1)
    assert GaussianLaw(np.array([1.0, -1.0]), 0.7).log_prob(outputs) == pytest.approx(
        expected
    )


@pytest.mark.parametrize("sigma", [2.0, 1.0 + 1e-9])
def test_a_deviation_that_depends_on_the_data_is_no_gaussian_dp_at_all(sigma):
    """With σ = 2 against 1, P(ln P/Q > ε) is about e^(-ε/3): beyond every δ_μ(ε), which is below e^(-(ε/μ - μ/2)²/2)."""
    loss = pair_loss(
        GaussianLaw(np.zeros(1), 1.0),
        GaussianLaw(np.zeros(1), sigma),
        epsilon=1.0,
        delta=0.1,
    )
    assert loss.lower == math.inf
    assert float(loss.mu.lower()) == math.inf
    assert (float(loss.delta.lower()), float(loss.delta.upper())) == pytest.approx(
        (0.0, 1.0), abs=1e-8
    )
    assert loss.needed == (0.0, math.inf)
    loss = pair_loss(
        LaplaceLaw(np.zeros(2), np.ones(2)),
        LaplaceLaw(np.ones(2), np.array([1.0, sigma])),
    )
    assert loss.lower == math.inf


def test_scales_that_agree_up_to_rounding_decide_nothing():
    near = 1.0 + 1e-14
    loss = pair_loss(
        LaplaceLaw(np.zeros(2), np.ones(2)),
        LaplaceLaw(np.ones(2), np.array([1.0, near])),
    )
    assert (loss.lower, loss.upper) == (1.0, math.inf)
    loss = pair_loss(GaussianLaw(np.zeros(1), 1.0), GaussianLaw(np.zeros(1), near))
    assert (max(0.0, float(loss.mu.lower())), float(loss.mu.upper())) == (0.0, math.inf)


def test_laws_of_different_families_are_not_compared():
    with pytest.raises(MechanismError, match="coordinates"):
        pair_loss(
            LaplaceLaw(np.zeros(1), np.ones(1)), LaplaceLaw(np.zeros(2), np.ones(2))
        )
    with pytest.raises(MechanismError, match="one family"):
        pair_loss(GaussianLaw(np.zeros(1), 1.0), LaplaceLaw(np.zeros(1), np.ones(1)))


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({"outputs": [0], "least": [1], "most": [], "inputs": [(0, 1)]}, "as many"),
        ({"outputs": [], "least": [], "most": [], "inputs": []}, "as many"),
        (
            {
                "outputs": [0],
                "least": [QUARTER],
                "most": [HALF],
                "inputs": [(0, 1)],
                "uses": 0,
            },
            "uses",
        ),
        (
            {"outputs": [0], "least": [HALF], "most": [QUARTER], "inputs": [(0, 1)]},
            "least <= most",
        ),
        (
            {"outputs": [0], "least": [-HALF], "most": [QUARTER], "inputs": [(0, 1)]},
            "least <= most",
        ),
    ],
    ids=str,
)
def test_what_is_no_envelope_is_refused(arguments, shown):
    with pytest.raises(MechanismError, match=shown):
        Envelope(**arguments)


def test_an_envelope_loses_as_much_on_every_use():
    envelope = Envelope(
        ["a", "b", "c"],
        [QUARTER, HALF, Fraction(0)],
        [HALF, HALF, QUARTER],
        [(0, 1)] * 3,
        uses=3,
    )
    assert [loss.lower for loss in envelope_losses(envelope)] == pytest.approx(
        [3 * math.log(2), 0, math.inf]
    )
