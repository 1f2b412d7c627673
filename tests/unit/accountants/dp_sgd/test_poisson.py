"""DP-SGD with Poisson batches: bounds that stay together, and grids of bounded size."""

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given
from hypothesis import strategies as st

from auditdp.accountants import RDP, PLDLower, PLDUpper
from auditdp.accountants.dp_sgd_poisson import SampledPair


@pytest.mark.parametrize(
    ("noise", "rate", "steps"), [(1.0, 0.01, 1000), (4.0, 0.5, 100)]
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


def test_tiny_losses_are_not_zero():
    """A divergence that rounding makes negative or zero has a positive ε.

    In dp-accounting its ε is zero.
    """
    curve = RDP(50.0, 1e-9, 1)
    assert curve.epsilon_at(1e-15) > 0
    assert curve.delta_at(0.0) > 0
    assert RDP(1.0, 0.1, 10).epsilon_at(0.0) == math.inf


full = pytest.mark.full
MILLION = (2.0, 1e-3, 10**6)
TOGETHER = [
    # At tiny rates a single step has most of δ; the loss of a transform was once larger
    # than the rest.
    (0.888, 1.137e-5, 245, 5.2e-10, 1.001),
    pytest.param(0.85, 1.6e-4, 24_092, 1.5e-10, 1.001, marks=full),
    # dp-accounting's own bound is 1.9 and 10 times the lower one at the first and last,
    # and none at the second.
    (30.0, 1e-4, 10**5, 1e-5, 1.001),
    pytest.param(10.0, 1e-6, 10**6, 1e-5, 1.02, marks=full),
    (*MILLION, 1e-10, 1.001),
    pytest.param(*MILLION, 1e-25, 1.001, marks=full),
]


@pytest.mark.parametrize(("noise", "rate", "steps", "delta", "apart"), TOGETHER)
def test_the_bounds_stay_together(noise, rate, steps, delta, apart):
    low, high, renyi = (
        kind(noise, rate, steps).epsilon_at(delta) for kind in (PLDLower, PLDUpper, RDP)
    )
    assert 0 < low <= high <= apart * low
    assert high < renyi
    if (noise, delta) == (2.0, 1e-10):
        assert low == pytest.approx(3.32299, rel=1e-4)


def test_the_curve_falls_where_one_grid_follows_another():
    """Grids change where δ is 1e-3, 1e-6, ...

    A curve and its inverse agree there as well.
    """
    for kind in (PLDLower, PLDUpper):
        curve = kind(1.0, 0.01, 300)
        border = curve.epsilon_at(1e-6)
        at = [
            curve.delta_at(border * factor)
            for factor in (0.9, 1 - 1e-4, 1 - 1e-9, 1.0, 1 + 1e-9, 1 + 1e-4, 1.1)
        ]
        assert at == sorted(at, reverse=True)
        assert at[3] == pytest.approx(1e-6, rel=1e-3)


def test_hardly_any_noise_takes_a_grid_of_bounded_size(monkeypatch):
    """Most losses are too unlikely for a lower bound, and are computed all the same.

    They were 4 billion once.
    """
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
