"""Composed Laplace noise has the loss of closed forms, integrals and dp-accounting."""

import math

import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from auditdp import Verdict, ZeroConcentratedDP
from auditdp.accountants import (
    LaplaceLower,
    LaplaceNoise,
    LaplaceUpper,
    OptimalComposition,
    cross_check,
    narrowest,
)


def one_release(epsilon, whole):
    """δ of one release at any ε."""
    return (
        -math.expm1(epsilon)
        if epsilon < -whole
        else max(0.0, -math.expm1((epsilon - whole) / 2))
    )


def two_releases(epsilon, whole):
    """Over the loss of the first release, δ of the second at the remaining ε."""

    def density(loss):
        remaining = one_release(epsilon - loss, whole)
        return math.exp((loss - whole) / 2) / 4 * remaining

    kinks = {min(max(at, -whole), whole) for at in (epsilon - whole, epsilon + whole)}
    options = {"points": sorted(kinks), "epsabs": 1e-13, "epsrel": 1e-12}
    between, *_ = quad(density, -whole, whole, **options)
    high = one_release(epsilon - whole, whole)
    low = math.exp(-whole) * one_release(epsilon + whole, whole)
    return (high + low) / 2 + between


@settings(max_examples=15)
@given(
    scale=st.floats(0.2, 20),
    sensitivity=st.floats(0.1, 3),
    part=st.floats(0, 0.99),
    count=st.sampled_from([1, 2]),
)
def test_one_and_two_releases_are_between_the_bounds(scale, sensitivity, part, count):
    whole = sensitivity / scale
    epsilon = part * count * whole
    exact = (one_release if count == 1 else two_releases)(epsilon, whole)
    lower, upper = (
        kind(scale, sensitivity, count).delta_at(epsilon)
        for kind in (LaplaceLower, LaplaceUpper)
    )
    assert lower <= exact * (1 + 1e-10) + 1e-13
    assert exact <= upper * (1 + 1e-10) + 1e-13
    assert upper - lower <= 2e-3 * upper + 1e-12


@pytest.mark.parametrize(
    ("scale", "count", "delta"), [(1.0, 10, 1e-5), (10.0, 300, 1e-8)]
)
def test_it_is_the_number_of_dp_accounting(scale, count, delta):
    loss = privacy_loss_distribution.from_laplace_mechanism(scale).self_compose(count)
    kinds = (LaplaceLower, LaplaceUpper)
    lower, upper = (kind(scale, count=count).epsilon_at(delta) for kind in kinds)
    assert lower <= upper <= 1.001 * lower
    assert loss.get_epsilon_for_delta(delta) == pytest.approx(upper, rel=2e-3)


def test_it_loses_less_than_any_pure_mechanisms_and_never_more_than_their_sum():
    upper, parts = LaplaceUpper(2.0, 1.0, 50), OptimalComposition(0.5, 0.0, 50)
    assert upper.epsilon_at(1e-6) < 0.95 * parts.epsilon_at(1e-6)
    assert upper.epsilon_at(0.0) == 25.0
    assert upper.delta_at(25.0) == 0.0 < upper.delta_at(20.0)
    assert LaplaceUpper(10.0, 3.0, 1).epsilon_at(0.0) == 0.3
    assert LaplaceLower(10.0, 3.0, 1).epsilon_at(1e-12) == pytest.approx(0.3, rel=1e-3)
    noise = LaplaceNoise(2.0, 1.0, 50)
    assert narrowest([parts.describes, upper.describes]) == noise


@pytest.mark.parametrize("whole", [1e-6, 0.3, 2.0, 15.0])
def test_its_zcdp_is_the_divergence_of_order_1_which_no_order_exceeds(whole):
    """Half the mass has the loss ε₀, and the rest the density e^((x − ε₀)/2)/4."""
    noise = LaplaceNoise(1 / whole, count=3)
    rho = float(noise.zcdp)
    assert rho == pytest.approx(
        3 * (whole - 1 + math.exp(-whole)) if whole > 1e-3 else 1.5 * whole**2, rel=1e-5
    )
    for order in (1.0001, 1.5, 2.0, 10.0, 300.0):
        low, high = (float(each) for each in noise.concentrated(order))
        assert low == high <= rho
        if 0.1 < whole < 3 and order < 20:

            def weighted(x, order=order):
                return math.exp((order - 1) * x + (x - whole) / 2) / 4

            inner, _ = quad(weighted, -whole, whole)
            atoms = math.exp((order - 1) * whole) + math.exp(-order * whole)
            exact = 3 * math.log(atoms / 2 + inner) / ((order - 1) * order)
            assert high == pytest.approx(exact, rel=1e-6)
    listed = [LaplaceUpper(1 / whole, count=3)]
    for claimed, verdict in ((rho, Verdict.CERTIFIED), (rho * 0.999, Verdict.VIOLATED)):
        check = cross_check(ZeroConcentratedDP(claimed), listed)
        assert check.verdict is verdict
