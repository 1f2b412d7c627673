"""Trainings in phases: the exact composition of few steps, Gaussian noise that changes, and the bracket."""

import math
from itertools import product

import numpy as np
import pytest

from auditdp.accountants.base import AccountantError
from auditdp.accountants.description import within
from auditdp.accountants.dp_sgd.convolution import Tilt, repeated
from auditdp.accountants.dp_sgd.loss_distributions import OnGrid, mixed
from auditdp.accountants.dp_sgd.phases import PhasesLower, PhasesUpper, PoissonPhases, phases_accountants
from auditdp.accountants.dp_sgd.poisson import PLDUpper
from auditdp.accountants.gaussian import GaussianCurve
from auditdp.accountants.zcdp import ZCDP


@pytest.mark.parametrize("slope", [0.0, 0.3])
def test_unequal_uses_are_summed_one_by_one(slope):
    """Two of one law and three of another, with and without a tilt: every sum within its bound of the exact one."""
    rng = np.random.default_rng(1)
    one, other = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5)) * 0.9
    exact = np.zeros(21)
    for places in product(range(5), repeat=5):
        exact[sum(places)] += np.prod([*one[list(places[:2])], *other[list(places[2:])]])
    found = repeated((2 * one + 3 * other) / 5, 5, Tilt(slope), [(one, 2), (other, 3)])
    numbers = found.first + np.arange(len(found.masses))
    masses = found.masses * np.exp(found.exponent(numbers))
    slack = (found.each + found.outside) * np.exp(found.exponent(numbers)) + found.relative * exact[numbers]
    assert len(numbers) == 21
    assert np.all(np.abs(masses - exact[numbers]) <= slack)
    assert slack.max() < 1e-9


def test_losses_on_one_grid_are_mixed_place_by_place():
    loss = mixed(
        [(OnGrid(np.array([0.5, 0.4]), -1, 0.1, 0.1, 0.02), 1), (OnGrid(np.array([1.0]), 1, 0.1, 0.0, 0.0), 3)]
    )
    assert loss.masses == pytest.approx([0.125, 0.1, 0.75])
    assert (loss.lowest, [count for _, count in loss.parts]) == (-1, [1, 3])
    assert (1 - loss.unbounded) ** 4 == pytest.approx(0.9, abs=1e-12)
    assert loss.shift * 4 == pytest.approx(0.02)


def test_noise_that_changes_without_sampling_is_gaussian():
    """μ² adds up: 2/1² + 3/2²."""
    exact = GaussianCurve(1 / math.sqrt(2.75))
    upper, lower = phases_accountants([(1.0, 1.0, 2), (2.0, 1.0, 3)])
    assert lower.epsilon_at(1e-5) <= exact.epsilon_at(1e-5) <= upper.epsilon_at(1e-5)
    assert lower.epsilon_at(1e-5) == pytest.approx(upper.epsilon_at(1e-5), rel=1e-4)
    assert within(upper.describes, ZCDP(1.375))


def test_a_schedule_lies_between_its_phases():
    """And near dp-accounting's pessimistic 1.69495 for these three."""
    upper, lower = phases_accountants([(1.0, 0.01, 500), (2.0, 0.02, 500), (0.7, 0.001, 2000)])
    epsilon = upper.epsilon_at(1e-5)
    assert epsilon * (1 - 1e-4) <= lower.epsilon_at(1e-5) <= epsilon <= 1.6950
    assert epsilon > PLDUpper(1.0, 0.01, 500).epsilon_at(1e-5)


def test_parameters_are_checked():
    with pytest.raises(AccountantError, match="expected one phase at least"):
        PoissonPhases(())
    with pytest.raises(AccountantError, match="rate"):
        PhasesUpper(((1.0, 0.1, 1), (1.0, 2.0, 1)))
    assert PhasesLower(((1.0, 0.1, 2),)).name == "PhasesLower((1, 0.1, 2))"
