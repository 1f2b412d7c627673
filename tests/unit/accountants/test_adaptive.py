"""Filters and odometers against the worst of all strategies, which is computed backwards over what is spent and lost."""

import math
from functools import cache

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss

from auditdp.accountants.adaptive import Filter, Odometer
from auditdp.accountants.base import AccountantError
from auditdp.accountants.composition.equal import Composition
from auditdp.accountants.dp_sgd.fixed_size import FixedSize
from auditdp.accountants.dp_sgd.parameters import Poisson
from auditdp.accountants.gaussian import GaussianCurve, GaussianNoise
from auditdp.accountants.laplace import LaplaceNoise
from auditdp.accountants.zcdp import ZCDP
from auditdp.claims.curves import RenyiDP, ZeroConcentratedDP
from auditdp.claims.statements import GaussianDP


def keep(epsilon):
    return 1 / (1 + math.exp(-epsilon))


@pytest.mark.parametrize("kind", [ZeroConcentratedDP(0.5), RenyiDP(3.0, 1.2)], ids=str)
def test_no_strategy_of_responses_loses_more_than_the_filter_keeps(kind):
    """δ, or the divergence, of randomised responses of which the next depends on all answers so far."""
    choices = {e: Filter(kind).cost(Composition(e, 0.0, 1)) for e in (0.3, 0.5, 0.8)}
    budget = Filter(kind).budget

    def most(gain, combine):
        @cache
        def of(spent, loss):
            found = [gain(loss)]
            for e, cost in choices.items():
                if spent + cost <= budget:
                    found.append(
                        keep(e) * of(spent + cost, round(loss + e, 9)) + keep(-e) * of(spent + cost, round(loss - e, 9))
                    )
            return combine(found)

        return of(0, 0.0)

    moment = {order: most(lambda loss, o=order: math.exp((o - 1) * loss), max) for order in (1.5, 3.0, 8.0)}
    divergence = {order: math.log(found) / (order - 1) for order, found in moment.items()}
    if isinstance(kind, RenyiDP):
        assert 0.9 * kind.epsilon < divergence[kind.order] <= kind.epsilon
        return
    assert all(0.8 * kind.rho * o < found <= kind.rho * o for o, found in divergence.items() if o < 5)
    for epsilon in (0.0, 1.0, 2.0):
        delta = most(lambda loss, e=epsilon: max(0.0, -math.expm1(e - loss)), max)
        stays = most(lambda loss, e=epsilon: max(0.0, -math.expm1(e - loss)), lambda found: found[-1])
        assert stays < delta <= ZCDP(kind.rho).delta_at(epsilon)


def test_gaussian_parts_lose_what_one_release_of_the_whole_budget_loses():
    """Whatever the order of parts of μ² = 1/2 and 1/4; one more would lose more."""
    budget, nodes, weights = Filter(GaussianDP(1.0)), *hermegauss(40)
    weights, losses = weights / weights.sum(), np.linspace(-20, 20, 1_601)
    costs = [budget.cost(GaussianNoise(sigma)) for sigma in (math.sqrt(2), 2.0)]
    assert costs == [pytest.approx(0.5), 0.25]

    def most(left, epsilon):
        found = np.maximum(0.0, -np.expm1(epsilon - losses))
        for cost in (0.5, 0.25):
            if cost <= left:
                later = most(left - cost, epsilon)
                moved = losses[:, None] + cost / 2 + math.sqrt(cost) * nodes
                found = np.maximum(found, np.interp(moved, losses, later) @ weights)
        return found

    for epsilon in (0.0, 1.0):
        worst = float(np.interp(0.0, losses, most(float(budget.budget), epsilon)))
        assert worst == pytest.approx(GaussianCurve(1.0).delta_at(epsilon), abs=2e-3)
        assert float(np.interp(0.0, losses, most(1.25, epsilon))) > GaussianCurve(1.0).delta_at(epsilon) + 0.02


def test_a_loss_passes_the_odometer_at_any_time_no_more_often_than_delta():
    """The likeliest of all strategies of two responses to pass it; three fifths of the margin are passed too often."""

    def likeliest(margin, delta=0.05, steps=45):
        choices, odometer = (0.2, 0.6), Odometer(delta, expected=1.0)
        costs = [odometer.cost(Composition(e, 0.0, 1)) for e in choices]

        @cache
        def bound(counts):
            odometer.spent = sum(n * cost for n, cost in zip(counts, costs, strict=True))
            return float(odometer.spent) + margin * (odometer.epsilon - float(odometer.spent))

        @cache
        def passes(counts, units):
            if units * 0.2 > bound(counts):
                return 1.0
            if sum(counts) == steps:
                return 0.0
            return max(
                keep(e) * passes(after, units + size) + keep(-e) * passes(after, units - size)
                for e, size, after in zip(
                    choices, (1, 3), ((counts[0] + 1, counts[1]), (counts[0], counts[1] + 1)), strict=True
                )
            )

        return passes((0, 0), 0)

    assert 0.001 < likeliest(1.0) <= 0.05 < likeliest(0.6)


def test_what_is_afforded_is_exact_and_nothing_else_is_spent():
    budget = Filter(GaussianDP(1.0))
    for _ in range(3):
        budget.spend(GaussianNoise(3.0, math.sqrt(3)))
    assert budget.spent == pytest.approx(1.0)
    fresh = Filter(ZeroConcentratedDP(0.75))
    for _ in range(6):
        fresh.spend(GaussianNoise(2.0))
    with pytest.raises(AccountantError, match="costs 0 at most, got 1 release of any query"):
        fresh.spend(GaussianNoise(1e6))
    assert fresh.spent == fresh.budget
    whole = Filter.of(1.0, 1e-6)
    assert ZCDP(float(whole.budget)).delta_at(1.0) <= 1e-6 < ZCDP(1.001 * float(whole.budget)).delta_at(1.0)


def test_a_sample_costs_less_by_its_own_order_and_neighbours_are_the_same():
    step, budget = Poisson(1.0, 0.01, 1), Filter(RenyiDP(8.0, 1.0))
    assert budget.cost(step) < 0.01 * Filter(ZeroConcentratedDP(1.0)).cost(step)
    budget.spend(step)
    budget.spend(LaplaceNoise(20.0))
    with pytest.raises(AccountantError, match="neighbours that add or remove one record, as before"):
        budget.affords(FixedSize(9.0, 100, 1, 1))
    with pytest.raises(AccountantError, match="of the kind of 1-GDP"):
        Filter(GaussianDP(1.0)).cost(LaplaceNoise(20.0))


@pytest.mark.parametrize("delta", [0.0, 1.0, math.nan])
def test_an_odometer_needs_a_delta(delta):
    with pytest.raises(AccountantError, match="delta"):
        Odometer(delta, expected=1.0)
