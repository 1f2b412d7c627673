"""Batches of a fixed size: the bracket, the closed forms at its ends, and why Poisson's number is the wrong one."""

import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, NeighboringRelation
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st

from auditdp.accountants import (
    AccountantError,
    FixedSizeLower,
    FixedSizeRDP,
    FixedSizeUpper,
    PLDUpper,
    fixed_size_accountants,
)
from auditdp.claims.statements import GaussianDP

SETTINGS = st.tuples(
    st.floats(0.6, 6), st.just(200), st.integers(1, 200), st.integers(1, 200)
)


def test_poisson_is_the_wrong_account():
    """Lebeda et al. (2024), arXiv:2405.20769, show ε ≈ 1 for Poisson and more than 10 for batches of a fixed size."""
    lower, upper, renyi = (
        kind(1.0, 10_000, 100, 1000).epsilon_at(1e-5)
        for kind in (FixedSizeLower, FixedSizeUpper, FixedSizeRDP)
    )
    assert PLDUpper(1.0, 0.01, 1000).epsilon_at(1e-5) < 1.83
    assert lower == pytest.approx(13.36, abs=0.01)
    assert upper == pytest.approx(14.82, abs=0.01)
    assert renyi == pytest.approx(20.987, abs=0.01)


@pytest.mark.parametrize("steps", [1, 10, 1000])
def test_a_batch_of_all_records_is_the_gaussian_of_twice_the_sensitivity(steps):
    noise = 2 * math.sqrt(steps)
    exact = GaussianDP(2 * math.sqrt(steps) / noise)
    lower, upper = (
        FixedSizeLower(noise, 50, 50, steps),
        FixedSizeUpper(noise, 50, 50, steps),
    )
    for epsilon in (0.0, 0.5, 2.0, 6.0):
        assert (
            lower.delta_at(epsilon)
            <= exact.delta_at(epsilon)
            <= upper.delta_at(epsilon)
        )
    assert upper.epsilon_at(1e-6) - lower.epsilon_at(1e-6) < 0.02
    assert FixedSizeRDP(noise, 50, 50, steps).epsilon_at(1e-6) > lower.epsilon_at(1e-6)


def test_one_step_is_the_amplified_gaussian():
    """Balle, Barthe & Gaboardi (2018), Theorem 9: δ(ln(1 + q(e^ε − 1))) = q δ_Gauss(ε), attained."""
    noise, rate = 1.5, 0.1
    for epsilon in (0.01, 0.5, 2.0):
        exact = rate * GaussianDP(2 / noise).delta_at(epsilon)
        amplified = math.log1p(rate * math.expm1(epsilon))
        assert FixedSizeLower(noise, 100, 10, 1).delta_at(amplified) == pytest.approx(
            exact, rel=1e-4
        )
        assert FixedSizeUpper(noise, 100, 10, 1).delta_at(amplified) == pytest.approx(
            exact, rel=1e-4
        )
        assert FixedSizeLower(noise, 100, 10, 1).delta_at(amplified) <= exact
        assert FixedSizeUpper(noise, 100, 10, 1).delta_at(amplified) >= exact


@settings(max_examples=5)
@given(parameters=SETTINGS, delta=st.sampled_from([1e-3, 1e-6]), factor=st.floats(1, 2))
def test_bounds_do_not_cross_and_more_noise_loses_less(parameters, delta, factor):
    noise, records, batch, steps = parameters
    curves = [
        kind(*parameters) for kind in (FixedSizeLower, FixedSizeUpper, FixedSizeRDP)
    ]
    lower, upper, renyi = (curve.epsilon_at(delta) for curve in curves)
    assert lower <= upper * (1 + 1e-9)
    assert lower <= renyi
    assert (
        FixedSizeLower(noise * factor, records, batch, steps).epsilon_at(delta) <= upper
    )
    assert (
        FixedSizeLower(noise, records, max(1, int(batch / factor)), steps).epsilon_at(
            delta
        )
        <= upper
    )
    assert (
        FixedSizeLower(noise, records, records, steps).epsilon_at(delta)
        >= lower * 0.97 - 0.01
    )
    for curve, epsilon in zip(curves, (lower, upper, renyi), strict=True):
        assert curve.epsilon_at(min(1.0, delta * factor)) <= epsilon
        if epsilon > 0:
            assert curve.delta_at(epsilon) == pytest.approx(delta, rel=3e-3)


def test_dp_accounting_takes_replacement_for_addition():
    """dp-accounting 0.6: the Gaussian's Rényi account does not depend on the neighbours. So we halve the noise ourselves."""
    epsilons = [
        RdpAccountant(neighboring_relation=relation)
        .compose(GaussianDpEvent(1.0))
        .get_epsilon(1e-5)
        for relation in (
            NeighboringRelation.ADD_OR_REMOVE_ONE,
            NeighboringRelation.REPLACE_ONE,
        )
    ]
    assert epsilons[0] == epsilons[1] == pytest.approx(4.7285, abs=1e-4)
    orders, divergences = FixedSizeRDP(1.0, 100, 100, 1).divergences()
    np.testing.assert_allclose(divergences, orders * 2**2 / 2)


def test_parameters_are_checked():
    with pytest.raises(AccountantError, match="batch <= records=10, got batch=11"):
        FixedSizeUpper(1.0, 10, 11, 1)
    accountants = fixed_size_accountants(1.0, 10, 2, 3)
    assert (
        accountants[0].name
        == "FixedSizeUpper(noise_multiplier=1, records=10, batch=2, steps=3)"
    )
    assert {a.adjacency for a in accountants} == {"replace one record"}
