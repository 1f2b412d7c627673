"""The analyses of Gumbel top-k against the literature's numbers and the exact law."""

import math

import numpy as np
import pytest

from auditdp.accountants import (
    Soundness,
    TopKAdvanced,
    TopKBoundedRange,
    TopKDurfeeRogers,
    TopKNonAdaptive,
    TopKOptimalComposition,
    TopKPure,
    TopKZCDP,
    bounded_range,
)
from auditdp.mechanism.laws import precision


@pytest.mark.parametrize(
    ("analysis", "epsilon"),
    [
        (TopKPure, 2.000),
        (TopKAdvanced, 2.000),
        (TopKOptimalComposition, 1.789),
        (TopKDurfeeRogers, 1.275),
        (TopKBoundedRange, 1.200),
        (TopKZCDP, 1.014),
        (TopKNonAdaptive, 0.926),
    ],
)
def test_twenty_selections_of_a_tenth(analysis, epsilon):
    """The ε for δ = 1e-6; closed forms are computed by hand.

    One of them is 20·.1·tanh(.05) + .1·√(10 ln 1e6) = 1.275.
    """
    accountant = analysis(20, 0.1)
    assert accountant.epsilon_at(1e-6) == pytest.approx(epsilon, abs=6e-4)
    assert accountant.soundness is (
        Soundness.LOWER if analysis is TopKNonAdaptive else Soundness.UPPER
    )


def test_corollary_1_of_dpar_written_out():
    k, epsilon, delta = 200, 0.05, 1e-6
    stated = 2 * min(
        k * epsilon,
        k * epsilon * math.expm1(2 * epsilon) / (math.exp(2 * epsilon) + 1)
        + epsilon * math.sqrt(2 * k * math.log(1 / delta)),
    )
    eta = bounded_range(1 / epsilon)
    assert eta == pytest.approx(2 * epsilon, rel=1e-15)
    assert TopKAdvanced(k, eta).epsilon_at(delta) == pytest.approx(stated, rel=1e-14)


def test_the_mean_of_bounded_range_is_the_largest_of_all_two_point_losses():
    eta = 0.8
    t = np.linspace(0, eta, 200_001)
    means = t - eta * np.expm1(t) / np.expm1(eta)
    with precision():
        assert float(TopKBoundedRange(1, eta)._mean().mid()) == pytest.approx(
            means.max(), rel=1e-9
        )


def test_bounded_range_counts_both_directions_unless_scores_are_monotone():
    assert bounded_range(4.0, sensitivity=0.5) == 0.25
    assert bounded_range(4.0, sensitivity=0.5, monotone=True) == 0.125


def test_the_lower_bound_is_the_largest_over_all_t():
    k, eta, epsilon = 5, 0.9, 1.1
    best = 0.0
    for t in np.linspace(0, eta, 20_001):
        p = (math.exp(-t) - math.exp(-eta)) / -math.expm1(-eta)
        curve = sum(
            math.comb(k, i)
            * p ** (k - i)
            * (1 - p) ** i
            * max(math.exp(k * t - i * eta) - math.exp(epsilon), 0)
            for i in range(k + 1)
        )
        best = max(best, curve)
    assert TopKNonAdaptive(k, eta).delta_at(epsilon) == pytest.approx(best, rel=1e-6)
