"""Inverse problems: the solution meets the target, and the next decimal does not."""

import math
from functools import partial
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditdp.accountants import (
    ZCDP,
    AccountantError,
    BasicComposition,
    ClassicGaussian,
    GaussianCurve,
    OptimalComposition,
    Soundness,
    solve,
)
from auditdp.accountants.calibration import _DECADE, _decimal

EPSILONS, DELTAS = st.floats(0.01, 20), st.floats(1e-12, 0.1)


def next_decimal(value, steps):
    """The decimal of five digits at a distance of ``steps`` units."""
    exponent = math.floor(math.log10(value))
    mantissa = round(value * 10.0 ** (4 - exponent)) + steps
    return float(f"{mantissa}e{exponent - 4}")


def noise(sigma):
    return [GaussianCurve(sigma)]


least_noise = partial(solve, larger_is_safer=True)
largest_part = partial(solve, larger_is_safer=False)


@given(EPSILONS, DELTAS)
def test_the_least_noise_of_the_gaussian(epsilon, delta):
    found = least_noise(noise, epsilon, delta)
    exact = GaussianCurve.sigma_for(epsilon, delta)
    assert exact * (1 - 1e-12) <= found.value <= exact * (1 + 1.0001e-4)
    assert found.accountant == GaussianCurve(found.value)
    assert found.accountant.delta_at(epsilon) <= delta
    assert found.accountant.epsilon_at(delta) <= epsilon * (1 + 1e-12)
    less = GaussianCurve(next_decimal(found.value, -1))
    assert less.epsilon_at(delta) > epsilon


def test_a_part_of_basic_composition_is_an_equal_share():
    basic = largest_part(lambda e: [BasicComposition(e, 0.0, 8)], 1.0, 1e-300)
    assert basic.value == 0.125


ZERO = SimpleNamespace(soundness=Soundness.LOWER, delta_at=lambda epsilon: 0.0)
"""A lower bound that is always zero."""


def test_the_smallest_of_several_proofs_is_enough_and_others_prove_nothing():
    """A tight upper bound decides beside a loose one and an approximation.

    Balle & Wang's σ for (1, 1e-5)-DP is 3.7306.
    """

    def model(sigma):
        classic = ClassicGaussian(sigma, everywhere=True)
        return [classic, ZERO, ZCDP(0.5 / sigma**2), GaussianCurve(sigma)]

    found = least_noise(model, 1.0, 1e-5)
    assert (found.value, found.accountant) == (3.7307, GaussianCurve(3.7307))


# 100 parts with δ = 1e-6 each fail with probability 1e-4, whatever their ε.
NEVER = r"\(1, 1e-05\)-DP is proved for no value from 1 to 1e-06; use a larger"
ALWAYS = "is met by every value from 1 to 1e-06; use a smaller target"


@pytest.mark.parametrize(
    ("function", "model", "epsilon", "message"),
    [
        (largest_part, lambda e: [OptimalComposition(e, 1e-6, 100)], 1.0, NEVER),
        (least_noise, lambda sigma: [ZERO], 1.0, r"for no value from 1 to 1e\+06"),
        (least_noise, lambda sigma: noise(1.0), 5.0, ALWAYS),
    ],
)
def test_a_target_that_no_value_or_every_value_meets(function, model, epsilon, message):
    with pytest.raises(AccountantError, match=message):
        function(model, epsilon, 1e-5)


@pytest.mark.parametrize(
    "smallest",
    [
        partial(least_noise, noise),
        GaussianCurve.sigma_for,
        ClassicGaussian.sigma_for,
        partial(OptimalComposition.largest_epsilon, count=10),
    ],
)
def test_a_target_outside_its_range_is_refused(smallest):
    for wrong in (-1.0, math.inf, math.nan):
        with pytest.raises(AccountantError, match=f"got epsilon={wrong}"):
            smallest(wrong, 0.1)
    for wrong in (0.0, 1.0, math.nan):
        with pytest.raises(AccountantError, match=f"got delta={wrong}"):
            smallest(1.0, wrong)


@given(st.integers(-6 * _DECADE, 6 * _DECADE - 1))
def test_decimals_ascend_by_one_unit_of_the_fifth_digit(place):
    here, there = _decimal(place), _decimal(place + 1)
    assert here < there <= here * (1 + 1.0001e-4)
    assert float(f"{here:.4e}") == here
