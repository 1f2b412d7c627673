"""The Gaussian mechanism and zCDP against high precision, the literature's numbers, and quadrature."""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting import gaussian_mechanism

from auditdp.accountants import (
    ZCDP,
    AccountantError,
    ClassicGaussian,
    GaussianCurve,
    Soundness,
)
from auditdp.claims.statements import GaussianDP


@pytest.mark.parametrize("sigma", [1e-2, 0.3, 1.0, 5.0, 1e3])
@pytest.mark.parametrize("epsilon", [0.0, 1e-4, 0.5, 3.0, 100.0])
def test_the_curve_to_many_digits(sigma, epsilon):
    with mpmath.workdps(400):
        mu, e = 1 / mpmath.mpf(sigma), mpmath.mpf(epsilon)
        exact = mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(
            -mu / 2 - e / mu
        )
        ours = GaussianCurve(sigma).delta_at(epsilon)
        assert mpmath.mpf(ours) >= exact
        assert abs(ours - exact) <= 1e-15 * exact + 1e-323


@pytest.mark.parametrize("sigma", [1e-3, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("beyond", [0.0, 4.0, 30.0])
def test_the_curve_with_hardly_any_noise(sigma, beyond):
    """With a, b = ε/μ ∓ μ/2, e^ε Φ(−b) = φ(a) Φ(−b)/φ(b), and the ratio is 1/b − 1/b³ + 3/b⁵ − 15/b⁷ but for 105/b⁹."""
    epsilon = 0.5 / sigma**2 + beyond / sigma
    with mpmath.workdps(100):
        mu, e = 1 / mpmath.mpf(sigma), mpmath.mpf(epsilon)
        a, b = e / mu - mu / 2, e / mu + mu / 2
        exact = mpmath.ncdf(-a) - mpmath.npdf(a) * (
            1 / b - b**-3 + 3 * b**-5 - 15 * b**-7
        )
    assert GaussianCurve(sigma).delta_at(epsilon) == pytest.approx(
        float(exact), rel=1e-14
    )


def test_known_values():
    """σ = 1, Δ = 1: δ(1) of Balle & Wang's Theorem 8 by hand; ε(1e-5) as in dp-accounting's and Opacus' documentation."""
    assert GaussianCurve(1.0).delta_at(1.0) == pytest.approx(
        0.12693673750664397, rel=1e-14
    )
    assert GaussianCurve(1.0).epsilon_at(1e-5) == pytest.approx(4.377178, abs=1e-6)
    assert GaussianCurve(1.0).epsilon_at(0.0) == math.inf


def test_the_least_sigma_is_that_of_dp_accounting():
    for epsilon, delta in ((0.1, 1e-6), (1.0, 1e-5), (20.0, 1e-9)):
        ours = GaussianCurve.sigma_for(epsilon, delta)
        assert (
            GaussianCurve(ours).delta_at(epsilon)
            <= delta
            < GaussianCurve(ours * (1 - 1e-9)).delta_at(epsilon)
        )
        assert ours == pytest.approx(
            gaussian_mechanism.get_sigma_gaussian(epsilon, delta), rel=1e-6
        )


def test_releases_add_up_in_the_square():
    assert GaussianCurve(2.0, 3.0, 4).delta_at(1.3) == pytest.approx(
        GaussianDP(3.0).delta_at(1.3), rel=1e-12
    )


@pytest.mark.parametrize(("delta", "first"), [(1e-2, 6.78), (1e-5, 8.42), (1e-9, 9.63)])
def test_the_classic_formula_fails_from_some_epsilon_on(delta, first):
    """Where the formula's noise is first too small, to .01: Balle & Wang (2018), Section 2.3, say that it is for large ε."""
    for epsilon, holds in (
        (first - 0.01, True),
        (first, False),
        (2 * first, False),
        (100.0, False),
    ):
        sigma = ClassicGaussian.sigma_for(epsilon, delta, everywhere=True)
        assert (GaussianCurve(sigma).delta_at(epsilon) <= delta) is holds
        assert ClassicGaussian(sigma, everywhere=True).epsilon_at(
            delta
        ) == pytest.approx(epsilon, rel=1e-14)
        assert (
            ClassicGaussian(sigma, everywhere=True).soundness is Soundness.APPROXIMATION
        )


def test_the_classic_theorem_is_silent_above_one():
    accountant = ClassicGaussian(1.0)
    assert accountant.epsilon_at(1e-5) == math.inf
    assert (
        accountant.delta_at(5.0)
        == accountant.delta_at(1.0)
        == pytest.approx(1.25 * math.exp(-0.5))
    )
    with pytest.raises(
        AccountantError,
        match=r"proved for epsilon <= 1, got epsilon=3\.0; use GaussianCurve",
    ):
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


def test_the_conversion_never_undercuts_the_gaussian_that_it_is_exact_for():
    """N(0, 1) against N(μ, 1) has ρ = μ²/2, and the conversion is a bound for it."""
    for mu in (0.01, 1.0, 10.0):
        for epsilon in (0.0, 0.3 * mu, mu**2, 3 * mu + mu**2):
            assert ZCDP(mu**2 / 2).delta_at(epsilon) >= GaussianCurve(1 / mu).delta_at(
                epsilon
            )


def test_the_conversion_at_the_extremes():
    assert ZCDP(1e4).delta_at(0.0) == 1.0
    assert ZCDP(1e4).epsilon_at(1e-15) == pytest.approx(11171.530644, rel=1e-9)
    assert ZCDP(1e-12).epsilon_at(1e-15) < 1e-4
    assert ZCDP(1.0).epsilon_at(0.0) == math.inf
