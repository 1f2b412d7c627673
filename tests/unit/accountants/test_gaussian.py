"""The Gaussian mechanism and zCDP.

They are compared with high precision, with the literature's numbers, and with all
orders.
"""

import math

import mpmath
import numpy as np
import pytest

from auditdp import GaussianDP
from auditdp.accountants import (
    ZCDP,
    AccountantError,
    ClassicGaussian,
    GaussianCurve,
    Soundness,
)


@pytest.mark.parametrize("sigma", [1e-12, 1e-6, 1e-2, 0.3, 1.0, 5.0, 1e3])
@pytest.mark.parametrize("deviations", [-1.0, 0.0, 4.0, 30.0])
def test_the_curve_to_many_digits(sigma, deviations):
    """At a number of deviations from the middle of the loss, or at ε = 0."""
    epsilon = max(0.0, 0.5 / sigma**2 + deviations / sigma)
    with mpmath.workdps(400):
        mu, e = 1 / mpmath.mpf(sigma), mpmath.mpf(epsilon)
        below = mpmath.ncdf(-mu / 2 - e / mu)
        exact = mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * below
        ours = GaussianCurve(sigma).delta_at(epsilon)
        assert mpmath.mpf(ours) >= exact
        assert abs(ours - exact) <= 1e-15 * exact + 1e-323


def test_known_values():
    """σ = 1, as in the documentation of dp-accounting and Opacus."""
    curve = GaussianCurve(1.0)
    assert curve.epsilon_at(1e-5) == pytest.approx(4.377178, abs=1e-6)
    assert curve.epsilon_at(0.0) == math.inf
    composed = GaussianCurve(2.0, 3.0, 4).delta_at(1.3)
    assert composed == pytest.approx(GaussianDP(3.0).delta_at(1.3), rel=1e-12)
    # Balle & Wang's σ for (1, 1e-5)-DP is 3.7306.
    huge = GaussianCurve.sigma_for(1.0, 1e-5, sensitivity=1e300)
    assert 3.73e300 < huge < 3.74e300


@pytest.mark.parametrize(
    ("delta", "first"),
    [(0.1, 5.75), (1e-2, 6.78), (1e-3, 7.47), (1e-5, 8.42), (1e-9, 9.63)],
)
def test_the_classic_formula_fails_from_some_epsilon_on(delta, first):
    """The noise of the formula is too small from ``first`` on, to .01.

    Balle & Wang (2018), Section 2.3, state that it is for large ε.
    """
    for epsilon, holds in ((first - 0.01, True), (first, False), (100.0, False)):
        sigma = ClassicGaussian.sigma_for(epsilon, delta, everywhere=True)
        assert (GaussianCurve(sigma).delta_at(epsilon) <= delta) is holds
        classic = ClassicGaussian(sigma, everywhere=True)
        assert classic.epsilon_at(delta) == pytest.approx(epsilon, rel=1e-14)
        assert classic.soundness is Soundness.APPROXIMATION


def test_the_classic_theorem_is_silent_above_one():
    accountant = ClassicGaussian(1.0)
    assert accountant.epsilon_at(1e-5) == math.inf
    largest = pytest.approx(1.25 * math.exp(-0.5))
    assert accountant.delta_at(5.0) == accountant.delta_at(1.0) == largest
    message = r"proved for epsilon <= 1, got epsilon=3\.0; use GaussianCurve"
    with pytest.raises(AccountantError, match=message):
        ClassicGaussian.sigma_for(3.0, 1e-5)


def test_the_conversion_is_the_smallest_over_all_orders():
    for rho, epsilon in ((0.025, 1.0), (0.5, 4.0), (3.0, 2.0), (1e-6, 1e-2)):
        orders = 1 + np.logspace(-9, 9, 400_001)
        with np.errstate(under="ignore", over="ignore"):
            logs = (
                (orders - 1) * (orders * rho - epsilon)
                - np.log(orders - 1)
                + orders * np.log1p(-1 / orders)
            )
        ours = ZCDP(rho).delta_at(epsilon)
        assert ours == pytest.approx(min(1.0, math.exp(logs.min())), rel=1e-6)
        assert ours <= min(1.0, math.exp(logs.min())) * (1 + 1e-9)


def test_the_conversion_at_the_extremes():
    assert ZCDP(1e4).delta_at(0.0) == 1.0
    assert ZCDP(1e4).epsilon_at(1e-15) == pytest.approx(11171.530644, rel=1e-9)
    assert ZCDP(1e-12).epsilon_at(1e-15) < 1e-4
    assert ZCDP(1.0).epsilon_at(0.0) == math.inf
