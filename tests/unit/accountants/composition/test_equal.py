"""Composition of mechanisms.

It is compared with an enumeration, with the literature's numbers, and with the privacy
loss distributions of dp-accounting.
"""

import math
import time
from itertools import product

import numpy as np
import pytest
from dp_accounting.pld import common, privacy_loss_distribution
from flint import arb

from auditdp import ApproxDP
from auditdp.accountants import (
    AccountantError,
    AdvancedComposition,
    BasicComposition,
    GaussianCurve,
    HeterogeneousComposition,
    KairouzCorollary,
    OptimalComposition,
    Soundness,
    corollary_budget,
    unequal_composition,
)
from auditdp.accountants.unequal_composition import _Grid
from auditdp.mechanism.laws import precision


def enumerated(epsilons, deltas, epsilon):
    """Return δ(ε) over all 2^k answers of independent randomised responses, in balls."""
    with precision():
        nothing, excess = arb(1), arb(0)
        for delta in deltas:
            nothing *= 1 - arb(delta)
        for signs in product((1, -1), repeat=len(epsilons)):
            p = q = arb(1)
            for sign, each in zip(signs, epsilons, strict=True):
                p *= 1 / (1 + (-sign * arb(each)).exp())
                q *= 1 / (1 + (sign * arb(each)).exp())
            excess += (p - arb(epsilon).exp() * q).max(arb(0))
        return float((1 - nothing * (1 - excess)).mid())


def is_enumerated(accountant, epsilons, deltas):
    total = math.fsum(epsilons)
    for share in (0.0, 0.1, 1 / 3, 0.9, 0.9999, 1.0):
        exact = enumerated(epsilons, deltas, share * total)
        # At the end the decimal Σε is meant, and not the rational.
        near = 1e-60 if share < 1 else 1e-15
        expected = pytest.approx(exact, rel=1e-12, abs=near)
        assert accountant.delta_at(share * total) == expected


@pytest.mark.parametrize("each", [1e-4, 0.1, 1.0, 7.0, 100.0])
@pytest.mark.parametrize("delta", [0.0, 1e-15, 1e-3, 0.4])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_the_closed_form_is_the_enumeration(each, delta, count):
    accountant = OptimalComposition(each, delta, count)
    is_enumerated(accountant, [each] * count, [delta] * count)


@pytest.mark.parametrize(
    ("epsilons", "deltas"),
    [
        ((0.3,), (0.0,)),
        ((0.1, 0.1, 0.1, 2.0, 2.0), (0.0, 1e-3, 0.0, 0.0, 1e-9)),
        ((1e-4, 3e-2, 0.5, 0.5, 7.0, 40.0), (0.0,) * 6),
        ((0.11, 0.13, 0.17, 0.19, 0.23, 0.29, 0.31, 0.37, 0.41), (1e-8,) * 9),
    ],
)
def test_unequal_parts_are_the_enumeration(epsilons, deltas):
    accountant = HeterogeneousComposition(epsilons, deltas)
    assert accountant.soundness is Soundness.EXACT
    is_enumerated(accountant, epsilons, deltas)


@pytest.mark.parametrize("count", [1, 40, 1000])
def test_the_closed_form_is_the_pld_of_dp_accounting(count):
    each, delta = 0.125, 1e-9
    parameters = common.DifferentialPrivacyParameters(each, delta)
    loss = privacy_loss_distribution.from_privacy_parameters(
        parameters, value_discretization_interval=each
    )
    composed = loss.self_compose(count, tail_mass_truncation=0)
    ours = OptimalComposition(each, delta, count)
    for epsilon in np.linspace(0, min(count * each, 10), 17).tolist():
        theirs = composed.get_delta_for_epsilon(epsilon)
        assert ours.delta_at(epsilon) == pytest.approx(theirs, abs=1e-10)


@pytest.mark.parametrize(
    ("each", "delta", "target"),
    [(1e-4, 0.0, 1e-15), (1.0, 0.0, 1e-6), (100.0, 1e-15, 1e-6)],
)
def test_a_million_mechanisms_take_less_than_a_second(each, delta, target):
    accountant = OptimalComposition(each, delta, 10**6)
    start = time.process_time()
    epsilon = accountant.epsilon_at(target)
    assert time.process_time() - start < 1.0
    assert (
        accountant.delta_at(epsilon)
        <= target
        < accountant.delta_at(epsilon * (1 - 1e-6))
    )


def test_the_limit_of_many_is_gaussian():
    """Randomised response composes to μ-GDP for a fixed √k ε = μ.

    Dong, Roth & Su (2022), Theorem 3.5; the error is O(1/k).
    """
    ours = OptimalComposition(1e-3, 0.0, 10**6).delta_at(1.0)
    assert ours == pytest.approx(GaussianCurve(1.0).delta_at(1.0), rel=1e-3)


def test_the_largest_epsilon_per_mechanism_spends_the_budget():
    each = OptimalComposition.largest_epsilon(1.0, 1e-6, 70, delta_each=1e-9)
    assert OptimalComposition(each, 1e-9, 70).delta_at(1.0) <= 1e-6
    assert OptimalComposition(each * (1 + 1e-9), 1e-9, 70).delta_at(1.0) > 1e-6
    with pytest.raises(AccountantError, match="use a smaller delta_each"):
        OptimalComposition.largest_epsilon(1.0, 1e-6, 70, delta_each=1e-7)


def test_basic_composition_is_its_statement_and_the_worst_pair_of_it():
    basic = BasicComposition(0.25, 1e-3, 4)
    assert basic.delta_at(1.0) == pytest.approx(4e-3, rel=1e-15)
    assert basic.epsilon_at(4.1e-3) == pytest.approx(1.0, rel=1e-3)
    worst = ApproxDP(1.0, 4e-3).delta_at(0.5)
    assert basic.delta_at(0.5) == pytest.approx(worst, rel=1e-12)
    assert basic.epsilon_at(3.9e-3) == math.inf
    assert BasicComposition(1.0, 0.5, 4).delta_at(7.0) == 1.0


def test_advanced_composition_is_the_textbook_formula():
    """Dwork & Roth (2014), Example 3.7's formula with k = 100, ε = .1, δ̃ = 1e-5."""
    formula = 0.1 * math.sqrt(200 * math.log(1e5)) + 100 * 0.1 * math.expm1(0.1)
    advanced, total = AdvancedComposition(0.1, 1e-8, 100), 1e-5 + 100 * 1e-8
    assert advanced.epsilon_at(total) == pytest.approx(formula, rel=1e-12)
    assert advanced.delta_at(formula) == pytest.approx(total, rel=1e-9)
    assert advanced.epsilon_at(1e-6) == math.inf
    assert advanced.delta_at(1.0) == 1.0


@pytest.mark.parametrize(
    ("each", "count", "extra"), [(0.1, 100, 1e-5), (0.02, 70, 0.3), (1.0, 10, 1e-5)]
)
def test_the_simplified_theorem_is_its_three_terms(each, count, extra):
    mean = count * each * math.expm1(each) / (math.exp(each) + 1)
    root = each * math.sqrt(2 * count)
    logarithm = math.log(math.e + math.sqrt(count) * each / extra)
    terms = [count * each, mean + root * math.sqrt(logarithm)]
    terms.append(mean + root * math.sqrt(math.log(1 / extra)))
    total = 1 - (1 - 1e-9) ** count * (1 - extra)
    accountant = KairouzCorollary(each, 1e-9, count)
    epsilon = accountant.epsilon_at(total)
    assert epsilon == pytest.approx(min(terms), rel=1e-9)
    assert accountant.epsilon_at(1e-12) == math.inf


def test_the_corollary_does_not_hold_everywhere():
    """70 mechanisms with the corollary's budget, composed optimally.

    It is false for large ε.
    """
    budget = corollary_budget(8.0, 1e-9, 70)
    assert OptimalComposition(*budget, 70).epsilon_at(1e-9) < 0.65 * 8
    budget = corollary_budget(64.0, 1e-3, 70)
    assert OptimalComposition(*budget, 70).epsilon_at(1e-3) > 1.03 * 64


def test_the_corollary_written_out():
    epsilon, delta = corollary_budget(0.5, 1e-5, 16)
    assert epsilon == pytest.approx(0.5 / (8 * math.sqrt(math.log(math.e + 5e4))))
    assert delta == 1e-5 / 32


def grid_of(epsilons, count=1):
    return _Grid.of([(epsilon, count) for epsilon in epsilons])


def test_many_unequal_parts_have_an_upper_bound_close_to_equal_ones():
    """The bound lies between a thousand of the least ε and a thousand of the largest.

    The ε of the parts are from .0099 to .0101.
    """
    epsilons = tuple(np.linspace(0.0099, 0.0101, 1000))
    accountant = HeterogeneousComposition(epsilons, (1e-10,) * 1000)
    assert accountant.soundness is Soundness.UPPER
    low, high = (OptimalComposition(e, 1e-10, 1000) for e in (0.0099, 0.0101))
    epsilon = accountant.epsilon_at(1e-6)
    assert low.epsilon_at(1e-6) < epsilon < high.epsilon_at(1e-6)


@pytest.mark.dear
@pytest.mark.parametrize(("count", "each"), [(1000, 0.01), (200, 0.5), (100, 0.3)])
def test_the_grid_bounds_the_exact_curve(count, each):
    exact, grid = OptimalComposition(each, 0.0, count), grid_of([each], count)
    for target in (0.3, 1e-3, 1e-6, 1e-12):
        epsilon = exact.epsilon_at(target)
        assert exact.delta_at(epsilon) <= grid.delta_at(epsilon) <= 1.2 * target + 1e-25


def test_the_grid_is_never_lower_even_with_few_cells(monkeypatch):
    monkeypatch.setattr(unequal_composition, "CELLS", 64)
    epsilons = (0.05, 0.3, 0.7, 1.1, 4.0)
    grid, exact = grid_of(epsilons), HeterogeneousComposition(epsilons, (0.0,) * 5)
    for epsilon in np.linspace(0, 6.1, 50).tolist():
        assert grid.delta_at(epsilon) >= exact.delta_at(epsilon)
