"""Random allocation: the moments and the plane integrated independently, both ends that are Gaussian, and a bracket."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from auditdp.accountants.base import AccountantError
from auditdp.accountants.description import within
from auditdp.accountants.dp_sgd.mean_exponentials import MeanExponentials
from auditdp.accountants.dp_sgd.random_allocation import (
    AllocationLower,
    AllocationSum,
    AllocationUpper,
    RandomAllocation,
    allocation_accountants,
)
from auditdp.accountants.gaussian import GaussianCurve, GaussianNoise


@pytest.mark.parametrize(("sigma", "batches"), [(0.5, 37), (4.0, 12)])
def test_second_moments_bracket_the_exact_one(sigma, batches):
    """Spreading raises E[S²] = 1 + (e^(1/σ²) − 1)/t and contracting lowers it; neither moves masses and means."""
    exact = math.expm1(1 / sigma**2) / batches
    for upper in (True, False):
        law = MeanExponentials(sigma, batches, 1e-20, upper).law()
        values = np.exp(law.logs)
        assert law.masses.sum() + law.zero == pytest.approx(1, abs=1e-7)
        assert np.dot(law.masses, values) + law.beyond == pytest.approx(1, abs=1e-7)
        excess = (np.dot(law.masses, values**2) - 1) / exact - 1
        assert (0 < excess < 2e-3) if upper else (-2e-3 < excess < 0)


def two_batches(sigma, epsilon, added):
    """δ of two batches: given one output, the other's part is the price of an option (Black & Scholes 1973)."""
    z = np.linspace(-12 * sigma, 12 * sigma + 1, 40_001)
    first, deviation = np.exp((2 * z - 1) / (2 * sigma**2)), 1 / sigma
    strike = np.maximum(2 * math.exp(-epsilon if added else epsilon) - first, 1e-300)
    d = -np.log(strike) / deviation + deviation / 2
    call = np.where(strike > 1e-300, norm.cdf(d) - strike * norm.cdf(d - deviation), 1 - 2 * math.exp(epsilon) + first)
    put = call - 1 + strike
    values = math.exp(epsilon) * np.where(strike > 1e-300, put, 0) / 2 if added else call / 2
    return float(np.trapezoid(values * norm.pdf(z, scale=sigma), z))


def test_two_batches_by_integration():
    sigma, (upper_curve, lower_curve) = 1.0, allocation_accountants(1.0, 2)
    for epsilon in (0.2, 1.5):
        exact = max(two_batches(sigma, epsilon, added) for added in (False, True))
        lower, upper = lower_curve.delta_at(epsilon), upper_curve.delta_at(epsilon)
        assert lower <= exact * (1 + 1e-6) <= upper * (1 + 2e-6)
        assert lower == pytest.approx(exact, rel=2e-3) == upper


@pytest.mark.parametrize(("batches", "epochs", "participations"), [(1, 3, 1), (3, 1, 3)])
def test_a_record_that_is_in_all_batches_has_the_gaussian_curve(batches, epochs, participations):
    exact = GaussianCurve(2.0, count=3).epsilon_at(1e-5)
    upper, lower = allocation_accountants(2.0, batches, epochs, participations)
    assert lower.epsilon_at(1e-5) <= exact * (1 + 1e-12) <= upper.epsilon_at(1e-5)
    assert lower.epsilon_at(1e-5) == pytest.approx(exact, rel=2e-4) == upper.epsilon_at(1e-5)


def test_two_of_four_batches_by_simulation():
    """The likelihood ratio is the mean over pairs of batches of e^L e^L′.

    A mean of 20,000 numbers in [0, 1] is off by .02 with a probability below 1e-6 (Hoeffding 1963).
    """
    z = np.random.default_rng(1).normal(size=(20_000, 4))
    z[:, :2] += 1
    ratio = np.exp(z - 0.5)
    loss = np.log((ratio.sum(axis=1) ** 2 - (ratio**2).sum(axis=1)) / 2 / 6)
    truth = float(np.maximum(-np.expm1(0.5 - loss), 0).mean())
    upper, lower = allocation_accountants(1.0, 4, 1, 2)
    assert lower.delta_at(0.5) - 0.02 <= truth <= upper.delta_at(0.5) + 0.02
    assert truth > AllocationUpper(1.0, 4).delta_at(0.5) + 0.1  # one of four loses less


@pytest.mark.full
@settings(max_examples=20, deadline=None)
@given(
    sigma=st.floats(0.3, 5),
    batches=st.integers(1, 3000),
    epochs=st.integers(1, 20),
    delta=st.sampled_from([1e-3, 1e-6]),
)
def test_bounds_do_not_cross_and_are_near(sigma, batches, epochs, delta):
    upper, lower = (one.epsilon_at(delta) for one in allocation_accountants(sigma, batches, epochs))
    assert lower <= upper <= GaussianCurve(sigma, count=epochs).epsilon_at(delta) * 1.001
    assert upper - lower <= 5e-3 * upper + 1e-6


@pytest.mark.parametrize(("batches", "noise"), [(3, 1e4), (100, 1e3), (100, 1e6)])
def test_much_noise_takes_little_memory(batches, noise):
    """Laws of two and of three terms are ln 1.5 apart, millions of points of their grid, and their sum has some thousands.

    The second moment of the mean of t independent e^L is 1 + (e^(1/σ²) − 1)/t.
    """
    laws = [MeanExponentials(noise, batches, 1e-13, upper).law() for upper in (True, False)]
    high, low = (float(np.dot(law.masses, np.expm1(law.logs) ** 2)) for law in laws)
    assert max(len(law.masses) for law in laws) < 10_000
    exact = math.expm1(noise**-2) / batches
    assert 0.99 * exact < low <= exact * (1 + 1e-6)
    assert exact * (1 - 1e-6) <= high < 1.01 * exact


def test_parameters_are_checked():
    with pytest.raises(AccountantError, match="expected participations <= batches=3, got participations=4"):
        RandomAllocation(1.0, 3, 1, 4)
    with pytest.raises(AccountantError, match="use AllocationSum"):
        AllocationLower(1.0, 3, 1, 2)
    with pytest.raises(AccountantError, match="noise that floating point can take"):
        AllocationUpper(0.01, 10).delta_at(1.0)
    assert within(AllocationSum(1.0, 8, 2, 3).describes, GaussianNoise(1.0, 1.0, 6))
