"""DP-SGD with Poisson batches: known values, closed forms, what must be monotone, and what Opacus says."""

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from auditdp.accountants import (
    RDP,
    Accountant,
    PLDLower,
    PLDUpper,
    Soundness,
    poisson_accountants,
)
from auditdp.accountants.dp_sgd_poisson import SampledPair
from auditdp.claims.statements import GaussianDP

KNOWN = {"noise_multiplier": 1.0, "rate": 0.01, "steps": 1000}
SETTINGS = st.tuples(st.floats(0.5, 5), st.floats(0.01, 1), st.integers(1, 200))
DELTAS = st.sampled_from([1e-3, 1e-5, 1e-8])


def test_known_values():
    """σ = 1, q = .01, 1,000 steps, δ = 1e-5; dp-accounting's upper bound at an interval of 1e-4 is 1.82824."""
    assert PLDLower(**KNOWN).epsilon_at(1e-5) == pytest.approx(1.82822, rel=5e-5)
    assert PLDUpper(**KNOWN).epsilon_at(1e-5) == pytest.approx(1.82827, rel=5e-5)
    assert RDP(**KNOWN).epsilon_at(1e-5) == pytest.approx(2.101366, abs=1e-6)
    optimistic = privacy_loss_distribution.from_gaussian_mechanism(
        1.0, pessimistic_estimate=False, use_connect_dots=False, sampling_prob=0.01
    ).self_compose(1000)
    assert optimistic.get_epsilon_for_delta(1e-5) == pytest.approx(1.778240, abs=1e-6)


@pytest.mark.parametrize(
    ("noise", "rate", "steps"),
    [(1.0, 0.01, 1000), (0.6, 0.1, 50), (4.0, 0.5, 100), (2.0, 1.0, 5)],
)
def test_it_is_dp_accountings_own_bound_where_that_is_exact(noise, rate, steps):
    own = privacy_loss_distribution.from_gaussian_mechanism(
        noise,
        sampling_prob=rate,
        value_discretization_interval=SampledPair(noise, rate).loss_quantile(1e-20)
        / 1e4,
    ).self_compose(steps)
    upper = PLDUpper(noise, rate, steps)
    assert upper.epsilon_at(1e-5) == pytest.approx(
        own.get_epsilon_for_delta(1e-5), rel=1e-4
    )
    for epsilon in (0.0, 0.5, 2.0):
        assert upper.delta_at(epsilon) == pytest.approx(
            own.get_delta_for_epsilon(epsilon), rel=3e-3, abs=1e-11
        )


@pytest.mark.dear
@pytest.mark.parametrize(
    ("noise", "rate", "steps", "apart"),
    [(30.0, 1e-4, 10**5, 1.001), (10.0, 1e-6, 10**6, 1.02), (1.0, 1e-6, 10**6, 1.001)],
)
def test_the_bounds_stay_together_at_tiny_rates(noise, rate, steps, apart):
    """dp-accounting's own bound is 1.9 and 10 times the lower one at the first and last, and none at the second."""
    lower, upper = (
        kind(noise, rate, steps).epsilon_at(1e-5) for kind in (PLDLower, PLDUpper)
    )
    assert 0 < lower <= upper <= apart * lower


def test_dp_accounting_adds_what_it_truncates_to_its_optimistic_estimate():
    """Why the lower bound does without it: δ may only be underestimated there. The day this fails, the note can go."""
    optimistic = privacy_loss_distribution.from_gaussian_mechanism(
        1.0, pessimistic_estimate=False, use_connect_dots=False, sampling_prob=0.01
    ).self_compose(2)
    assert (
        optimistic.get_delta_for_epsilon(100.0)
        >= 1e-15
        > GaussianDP(2.0).delta_at(100.0)
    )


def one_step_delta(epsilon, noise, rate):
    """Q times the Gaussian's δ at the ε₀ of which ε is the amplification, ε = ln(1 + q(e^ε₀ − 1))."""
    unamplified = math.log1p(math.expm1(epsilon) / rate)
    return rate * GaussianDP(1 / noise).delta_at(unamplified)


@pytest.mark.dear
@pytest.mark.parametrize("rate", [1e-3, 0.1, 0.9, 1.0])
@pytest.mark.parametrize("noise", [0.4, 1.0, 6.0])
def test_one_step_is_the_integral_of_the_positive_part(noise, rate):
    def densities(x):
        without = norm.pdf(x, 0, noise)
        return (1 - rate) * without + rate * norm.pdf(x, 1, noise), without

    for epsilon in (0.0, 0.1, 1.0):
        crossing = float(SampledPair(noise, rate).output_of(np.array([epsilon]))[0])

        def excess(x, epsilon=epsilon):
            with_it, without = densities(x)
            return max(0.0, with_it - math.exp(epsilon) * without)

        # quad needs to be told where the excess begins
        exact = quad(
            excess, crossing, max(crossing, 1) + 12 * noise, epsabs=1e-13, limit=200
        )[0]
        closed = one_step_delta(epsilon, noise, rate)
        assert closed == pytest.approx(exact, abs=1e-10)
        assert PLDLower(noise, rate, 1).delta_at(epsilon) <= closed + 1e-15
        assert PLDUpper(noise, rate, 1).delta_at(epsilon) >= closed - 1e-15


@given(losses=st.floats(-0.999, 1), noise=st.floats(0.2, 20), rate=st.floats(1e-6, 1))
def test_loss_and_output_are_inverse(losses, noise, rate):
    loss = (
        losses * 30
        if losses >= 0
        else losses * min(30.0, -math.log1p(-rate) if rate < 1 else 30.0)
    )
    pair = SampledPair(noise, rate)
    output = pair.output_of(np.array([loss]))
    assert pair.loss(output)[0] == pytest.approx(loss, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(("noise", "steps"), [(1.0, 10), (3.0, 1), (20.0, 1000)])
def test_without_sampling_it_is_the_gaussian(noise, steps):
    exact = GaussianDP(math.sqrt(steps) / noise)
    lower, upper = PLDLower(noise, 1.0, steps), PLDUpper(noise, 1.0, steps)
    for epsilon in (0.1, 1.0, 5.0, 20.0):
        assert (
            lower.delta_at(epsilon)
            <= exact.delta_at(epsilon)
            <= upper.delta_at(epsilon)
        )
    assert exact.delta_at(lower.epsilon_at(1e-6)) == pytest.approx(1e-6, rel=0.01)
    assert exact.delta_at(upper.epsilon_at(1e-6)) == pytest.approx(1e-6, rel=0.01)


@settings(max_examples=8)
@given(parameters=SETTINGS, delta=DELTAS)
def test_bounds_do_not_cross(parameters, delta):
    lower, upper = (
        PLDLower(*parameters).epsilon_at(delta),
        PLDUpper(*parameters).epsilon_at(delta),
    )
    assert 0 <= lower <= upper <= RDP(*parameters).epsilon_at(delta)
    assert upper <= 1.03 * lower + 0.01


@settings(max_examples=6)
@given(parameters=SETTINGS, delta=DELTAS, factor=st.floats(1, 2))
def test_more_noise_less_sampling_and_fewer_steps_lose_less(parameters, delta, factor):
    noise, rate, steps = parameters
    base = PLDUpper(*parameters).epsilon_at(delta)
    assert PLDLower(noise * factor, rate, steps).epsilon_at(delta) <= base
    assert PLDLower(noise, rate / factor, steps).epsilon_at(delta) <= base
    for kind in (PLDLower, PLDUpper, RDP):
        curve, longer = kind(*parameters), kind(noise, rate, steps + 7)
        assert curve.epsilon_at(delta) <= longer.epsilon_at(delta) + 1e-9
        assert curve.epsilon_at(delta) >= curve.epsilon_at(min(1.0, factor * delta))
        assert curve.delta_at(1.0) >= curve.delta_at(1.0 * factor)


@settings(max_examples=6)
@given(parameters=SETTINGS, delta=DELTAS)
def test_sampling_never_hurts_and_epsilon_and_delta_are_inverse(parameters, delta):
    noise, _, steps = parameters
    assert PLDLower(*parameters).epsilon_at(delta) <= PLDUpper(
        noise, 1.0, steps
    ).epsilon_at(delta)
    for kind in (PLDLower, PLDUpper, RDP):
        curve = kind(*parameters)
        epsilon = curve.epsilon_at(delta)
        if epsilon > 0:
            assert curve.delta_at(epsilon) == pytest.approx(delta, rel=3e-3)


def test_tiny_losses_are_not_zero():
    """dp-accounting makes a divergence that rounding made negative or zero an ε of zero."""
    curve = RDP(50.0, 1e-9, 1)
    assert curve.epsilon_at(1e-15) > 0
    assert curve.delta_at(0.0) > 0
    assert RDP(1.0, 0.1, 10).epsilon_at(0.0) == math.inf


@pytest.mark.parametrize(
    ("delta", "epsilon"),
    [
        (1e-10, 3.32299),
        *(
            pytest.param(*known, marks=pytest.mark.full)
            for known in ((1e-6, 2.42084), (1e-25, 5.5568))
        ),
    ],
)
def test_a_million_steps(delta, epsilon):
    """The bounds stay together; Rényi's is the looser one."""
    parameters = (2.0, 1e-3, 10**6)
    lower, upper = (
        PLDLower(*parameters).epsilon_at(delta),
        PLDUpper(*parameters).epsilon_at(delta),
    )
    assert lower == pytest.approx(epsilon, rel=1e-4)
    assert lower < upper < 1.001 * lower
    assert upper < RDP(*parameters).epsilon_at(delta)


@pytest.mark.parametrize(
    ("parameters", "delta"),
    [
        ((0.888, 1.137e-5, 245), 5.2e-10),
        pytest.param((0.85, 1.6e-4, 24_092), 1.5e-10, marks=pytest.mark.full),
        pytest.param((1.0, 1e-3, 24_092), 1e-7, marks=pytest.mark.full),
    ],
)
def test_bounds_are_a_thousandth_apart_where_delta_is_small(parameters, delta):
    """At tiny rates a single step has most of δ; what a transform loses of the rest was once larger than δ."""
    lower, upper = (
        PLDLower(*parameters).epsilon_at(delta),
        PLDUpper(*parameters).epsilon_at(delta),
    )
    assert 0 < lower <= upper <= 1.001 * lower


def test_the_curve_falls_where_one_grid_follows_another():
    """Grids change where δ is 1e-3, 1e-6, ..: a curve and its inverse agree there as well."""
    for kind in (PLDLower, PLDUpper):
        curve = kind(1.0, 0.01, 300)
        border = curve.epsilon_at(1e-6)
        at = [
            curve.delta_at(border * factor)
            for factor in (0.9, 1 - 1e-4, 1 - 1e-9, 1.0, 1 + 1e-9, 1 + 1e-4, 1.1)
        ]
        assert at == sorted(at, reverse=True)
        assert at[3] == pytest.approx(1e-6, rel=1e-3)


def test_all_are_accountants_for_the_same_thing():
    accountants = poisson_accountants(1.0, 0.1, 3)
    assert all(isinstance(accountant, Accountant) for accountant in accountants)
    assert {(a.adjacency, a.sampling) for a in accountants} == {
        ("add or remove one record", "Poisson")
    }
    assert [a.soundness for a in accountants].count(Soundness.APPROXIMATION) == 2
    assert accountants[0].name == "PLDUpper(noise_multiplier=1, rate=0.1, steps=3)"


def test_hardly_any_noise_takes_a_grid_of_bounded_size(monkeypatch):
    """σ = 1e-5: most losses are too unlikely for a lower bound, and are computed all the same; they were 4 billion."""
    made = []

    def recorded(pair, negligible, interval):
        made.append(pair.loss_quantile(negligible) / interval)
        assert made[-1] <= 2**22
        return half_way(pair, negligible, interval)

    half_way = SampledPair.half_way
    monkeypatch.setattr(SampledPair, "half_way", recorded)
    assert (
        0
        < PLDLower(1e-5, 0.01, 1000).epsilon_at(1e-5)
        < PLDUpper(1e-5, 0.01, 1000).epsilon_at(1e-5)
    )
    assert made
