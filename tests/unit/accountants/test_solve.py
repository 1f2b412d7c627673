"""Inverse problems: what comes back meets the target, and the next decimal does not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import pytest
from hypothesis import given, settings
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

targets = st.tuples(st.floats(0.01, 20), st.floats(1e-12, 0.1))


def next_decimal(value, steps):
    """The decimal of five digits that lies so many steps away."""
    exponent = math.floor(math.log10(value))
    mantissa = round(value * 10.0 ** (4 - exponent)) + steps
    return float(f"{mantissa}e{exponent - 4}")


@given(targets)
def test_the_least_noise_of_the_gaussian(target):
    epsilon, delta = target
    found = solve(
        lambda sigma: [GaussianCurve(sigma)], epsilon, delta, larger_is_safer=True
    )
    exact = GaussianCurve.sigma_for(epsilon, delta)
    assert exact * (1 - 1e-12) <= found.value <= exact * (1 + 1.0001e-4)
    assert found.accountant == GaussianCurve(found.value)
    assert GaussianCurve(found.value).delta_at(epsilon) <= delta
    assert GaussianCurve(found.value).epsilon_at(delta) <= epsilon * (1 + 1e-12)
    assert GaussianCurve(next_decimal(found.value, -1)).epsilon_at(delta) > epsilon


@settings(deadline=None, max_examples=10)
@given(targets, st.integers(1, 500))
@pytest.mark.full
def test_the_largest_part_of_a_composition(target, count):
    epsilon, delta = target
    found = solve(
        lambda each: [OptimalComposition(each, 0.0, count)],
        epsilon,
        delta,
        larger_is_safer=False,
    )
    exact = OptimalComposition.largest_epsilon(epsilon, delta, count)
    assert exact * (1 - 1.0001e-4) <= found.value <= exact * (1 + 1e-12)
    assert OptimalComposition(found.value, 0.0, count).epsilon_at(delta) <= epsilon * (
        1 + 1e-12
    )
    assert (
        OptimalComposition(next_decimal(found.value, 1), 0.0, count).epsilon_at(delta)
        > epsilon
    )


def test_known_values():
    """Gaussian (1, 1e-5)-DP: Balle & Wang's σ is 3.7306…; basic composition of 8 parts with ε = 1: 1/8 each."""
    assert (
        solve(lambda s: [GaussianCurve(s)], 1.0, 1e-5, larger_is_safer=True).value
        == 3.7307
    )
    basic = solve(
        lambda e: [BasicComposition(e, 0.0, 8)], 1.0, 1e-300, larger_is_safer=False
    )
    assert basic.value == 0.125


def test_the_smallest_of_several_proofs_is_enough_and_others_prove_nothing():
    """Of an upper bound that is loose, one that is tight, and an approximation that promises more than is true."""
    loose, tight = ZCDP(0.5), GaussianCurve(1.0)
    assert tight.epsilon_at(1e-5) < loose.epsilon_at(1e-5)

    def model(sigma):
        return [
            ClassicGaussian(sigma, everywhere=True),
            Zero(),
            ZCDP(0.5 / sigma**2),
            GaussianCurve(sigma),
        ]

    found = solve(model, 1.0, 1e-5, larger_is_safer=True)
    assert (found.value, found.accountant) == (3.7307, GaussianCurve(3.7307))


@dataclass(frozen=True)
class Zero:
    """A lower bound that always says zero."""

    name: ClassVar[str] = "Zero()"
    soundness: ClassVar[Soundness] = Soundness.LOWER
    adjacency: ClassVar[str] = "any"
    sampling: ClassVar[str] = "none"
    source: ClassVar[str] = "nobody"

    def delta_at(self, epsilon):
        return 0.0

    def epsilon_at(self, delta):
        return 0.0


def test_a_target_that_no_value_meets():
    """100 parts with δ = 1e-6 each fail with probability 1e-4, whatever their ε."""
    with pytest.raises(
        AccountantError,
        match=r"\(1, 1e-05\)-DP is proved for no value from 1 to 1e-06; use a larger",
    ):
        solve(
            lambda e: [OptimalComposition(e, 1e-6, 100)],
            1.0,
            1e-5,
            larger_is_safer=False,
        )
    with pytest.raises(AccountantError, match="for no value from 1 to 1e\\+06"):
        solve(lambda s: [Zero()], 1.0, 1e-5, larger_is_safer=True)


def test_a_target_that_every_value_meets():
    with pytest.raises(
        AccountantError,
        match=r"is met by every value from 1 to 1e-06; use a smaller target",
    ):
        solve(lambda s: [GaussianCurve(1.0)], 5.0, 1e-5, larger_is_safer=True)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(-1.0, 1e-5), (math.nan, 1e-5), (1.0, 0.0), (1.0, 1.0), (1.0, math.nan)],
)
def test_a_target_that_is_none(epsilon, delta):
    with pytest.raises(AccountantError, match="expected"):
        solve(lambda s: [GaussianCurve(s)], epsilon, delta, larger_is_safer=True)


@given(st.integers(-6 * _DECADE, 6 * _DECADE - 1))
def test_decimals_ascend_by_one_unit_of_the_fifth_digit(place):
    here, there = _decimal(place), _decimal(place + 1)
    assert here < there <= here * (1 + 1.0001e-4)
    assert float(f"{here:.4e}") == here


def test_the_ends_of_the_range():
    assert (_decimal(-6 * _DECADE), _decimal(0), _decimal(6 * _DECADE)) == (
        1e-6,
        1.0,
        1e6,
    )
