"""Shuffled batches: the published numbers, the event of the paper, and a bracket for several epochs."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr
from scipy.stats import norm

from auditdp.accountants import (
    PLDUpper,
    ShuffledLower,
    ShuffledUpper,
    shuffled_accountants,
)
from auditdp.claims.statements import GaussianDP


def event_delta(sigma, batches, epsilon):
    """Return the supremum over C of P(max >= C) − e^ε Q(max >= C), the bound of Chua et al. (2024), arXiv:2403.17673v2."""
    events = np.linspace(-2, 4 + 9 * sigma, 20_001)
    others = (batches - 1) * log_ndtr(events / sigma)
    first = -np.expm1(log_ndtr((events - 2) / sigma) + others)
    second = -np.expm1(log_ndtr((events - 1) / sigma) + others)
    return float(np.max(first - math.exp(epsilon) * second))


def test_one_epoch_of_a_thousand_batches():
    """σ = .6 and δ = 1e-5: Poisson batches lose 1.43 or less and shuffled ones 7.99, to three digits (Chua et al. 2024)."""
    lower, upper = ShuffledLower(0.6, 1000), ShuffledUpper(0.6, 1000)
    assert PLDUpper(0.6, 0.001, 1000).epsilon_at(1e-5) < 1.43
    assert lower.epsilon_at(1e-5) == pytest.approx(7.9876, abs=2e-4)
    assert upper.epsilon_at(1e-5) == pytest.approx(8.0037, abs=1e-4)


@pytest.mark.parametrize(
    ("sigma", "batches"), [(0.6, 1000), (0.4, 10_000), (2.0, 10), (1.0, 2)]
)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_one_epoch_is_the_best_event(sigma, batches, epsilon):
    """The loss of the maximum increases, so that its own δ is that of the best threshold."""
    lower, event = (
        ShuffledLower(sigma, batches).delta_at(epsilon),
        event_delta(sigma, batches, epsilon),
    )
    assert lower <= event * (1 + 1e-4) + 1e-9
    assert lower >= event * (1 - 1e-2) - 1e-9


def test_two_batches_by_integration_over_the_plane():
    """The maximum is post-processing: what it shows is no more than what both outputs show."""
    sigma, epsilon = 1.0, 0.5
    x = np.linspace(-6, 8, 1401)
    first, second = (
        sum(
            norm.pdf(x, mean * (k == 0), sigma)[:, None]
            * norm.pdf(x, mean * (k == 1), sigma)[None]
            for k in (0, 1)
        )
        / 2
        for mean in (2, 1)
    )
    whole = float(
        np.maximum(first - math.exp(epsilon) * second, 0).sum() * (x[1] - x[0]) ** 2
    )
    assert (
        ShuffledLower(sigma, 2).delta_at(epsilon)
        <= whole
        <= ShuffledUpper(sigma, 2).delta_at(epsilon)
    )
    assert ShuffledLower(sigma, 2).delta_at(epsilon) >= 0.7 * whole


@pytest.mark.parametrize("epochs", [1, 9])
def test_one_batch_is_the_gaussian(epochs):
    exact, lower, upper = (
        GaussianDP(math.sqrt(epochs) / 3.0),
        ShuffledLower(3.0, 1, epochs),
        ShuffledUpper(3.0, 1, epochs),
    )
    for epsilon in (0.0, 1.0, 3.0):
        assert lower.delta_at(epsilon) <= exact.delta_at(epsilon)
        assert upper.delta_at(epsilon) == pytest.approx(
            exact.delta_at(epsilon), rel=1e-9
        )
    assert lower.epsilon_at(1e-6) == pytest.approx(upper.epsilon_at(1e-6), abs=0.01)


@settings(max_examples=10)
@given(
    sigma=st.floats(0.4, 5),
    batches=st.integers(1, 5000),
    epochs=st.integers(1, 20),
    delta=st.sampled_from([1e-3, 1e-6]),
    factor=st.floats(1.05, 2),
)
def test_bounds_do_not_cross_and_are_monotone(sigma, batches, epochs, delta, factor):
    lower, upper = (
        ShuffledLower(sigma, batches, epochs),
        ShuffledUpper(sigma, batches, epochs),
    )
    epsilon = lower.epsilon_at(delta)
    assert epsilon <= upper.epsilon_at(delta)
    assert ShuffledLower(sigma * factor, batches, epochs).epsilon_at(
        delta
    ) <= upper.epsilon_at(delta)
    assert ShuffledLower(sigma, batches, epochs + 1).epsilon_at(delta) >= epsilon - 1e-3
    assert lower.epsilon_at(min(1.0, delta * factor)) <= epsilon
    assert upper.delta_at(1.0) >= upper.delta_at(factor)
    if epsilon > 0:
        assert lower.delta_at(epsilon) == pytest.approx(delta, rel=3e-3)


def test_names_say_the_parameters():
    accountants = shuffled_accountants(1.0, 10)
    assert (
        accountants[1].name == "ShuffledLower(noise_multiplier=1, batches=10, epochs=1)"
    )
    assert {(a.adjacency, a.sampling) for a in accountants} == {
        ("zero one record out", "shuffled")
    }
