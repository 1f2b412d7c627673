"""The convolution: its error bound against the same sums in balls, and where nearly all of the mass lies."""

import math

import numpy as np
import pytest
from flint import arb, arb_poly
from hypothesis import given
from hypothesis import strategies as st

from auditdp.accountants.base import AccountantError
from auditdp.accountants.dp_sgd import convolution
from auditdp.accountants.dp_sgd.convolution import _window, repeated
from auditdp.accountants.dp_sgd.poisson import PLDUpper
from auditdp.mechanism.laws import precision


def in_balls(masses, times):
    with precision(400):
        power = arb_poly([arb(float(m)) for m in masses]) ** times
        return list(power)


@given(
    weights=st.lists(st.floats(0, 1) | st.just(0.0) | st.floats(1e-12, 1e-9), min_size=1, max_size=40),
    times=st.integers(1, 200),
    whole=st.floats(0.9, 1.001),
)
def test_every_mass_is_within_its_bound(weights, times, whole):
    masses = np.array(weights) + 1e-9
    masses *= whole / masses.sum()
    found, exact = repeated(masses, times), in_balls(masses, times)
    inside = range(found.first, found.first + len(found.masses))
    with precision(400):
        for mass, index in zip(found.masses, inside, strict=True):
            # what has wrapped around adds to it
            off = arb(float(mass)) - exact[index]
            assert -found.each <= off
            assert off <= found.each + found.outside
        elsewhere = sum((m for k, m in enumerate(exact) if k not in inside), arb(0))
        assert elsewhere <= found.outside


def test_the_bound_is_of_use():
    """A thousand uses of 10,000 points: all masses together are off by 2e-10, where the largest is 1e-4."""
    masses = np.exp(-(np.linspace(-6, 6, 10_001) ** 2) / 2)
    found = repeated(masses / masses.sum(), 1000)
    assert found.each * len(found.masses) < 5e-10
    assert found.masses.sum() == pytest.approx(1, abs=1e-10)
    # Sixteen times more uses have four times as wide a sum, and lose sixteen times as much.
    assert repeated(masses / masses.sum(), 16_000).each < 20 * found.each


def test_a_window_that_is_too_narrow_would_be_seen(monkeypatch):
    """Were the logarithm of what lies outside taken to be e^-48 for a window of e^-2, the balls would say so."""
    monkeypatch.setattr(convolution, "LOG_OUTSIDE", -2.0)
    masses = np.full(50, 0.02)
    found, exact = repeated(masses, 100), in_balls(masses, 100)
    inside = range(found.first, found.first + len(found.masses))
    elsewhere = float(sum((m for k, m in enumerate(exact) if k not in inside), arb(0)))
    assert math.exp(-48) < elsewhere <= found.outside


def test_a_few_large_sums_of_little_probability_do_not_widen_the_window():
    """At orders of 10/deviation·2^−5 and more it had 120,536,938 sums for the record that is added."""
    for loss in PLDUpper(0.37, 1e-4, 1000).losses():
        assert np.diff(_window(loss.masses, 1000)) < 1_000_000


def test_too_many_uses_are_refused():
    with pytest.raises(AccountantError, match="at most"):
        repeated(np.array([0.5, 0.5]), 10**10)
