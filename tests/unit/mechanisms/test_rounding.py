"""The roundings never spend more than the budget, and waste none of it."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import assume, given
from hypothesis import strategies as st

from auditdp.mechanism.laws import precision
from mechanisms.rounding import (
    GRID,
    keep_probability,
    laplace_scale,
    on_grid,
    places,
    portion,
    remaining,
)

parametrize = pytest.mark.parametrize

EPSILONS = [5e-324, 1e-300, 2**-53, 2**-51, 1e-9, 0.01, 0.1, math.log(3)]
EPSILONS += [1.0, 2.0, 7.3, 20.0, 36.5, 36.9]
EPSILONS += np.random.default_rng(0).uniform(0, 37, 10).tolist()


@parametrize("epsilon", EPSILONS)
def test_keep_probability_is_the_largest_private_one(epsilon):
    m = int(Fraction(keep_probability(epsilon)) * GRID)
    assert Fraction(m, GRID) == Fraction(keep_probability(epsilon))
    # An oracle that shares nothing with ball arithmetic.
    with localcontext() as context:
        context.prec = 400
        bound = Decimal(epsilon).exp()
        assert Decimal(m) / Decimal(GRID - m) <= bound
        assert m == GRID - 1 or Decimal(m + 1) / Decimal(GRID - m - 1) > bound


def test_keep_probability_at_the_ends():
    assert keep_probability(0) == 0.5
    assert keep_probability(37) == keep_probability(1000) == 1 - 2**-53


@parametrize("epsilon", [0.1, 0.3, 1 / 3, 7.7, 1e-8])
@parametrize("sensitivity", [1, 2.5, Fraction(1, 3)])
def test_laplace_scale_is_the_smallest_private_one(sensitivity, epsilon):
    b = laplace_scale(sensitivity, epsilon)
    assert Fraction(sensitivity) / Fraction(b) <= Fraction(epsilon)
    assert Fraction(sensitivity) / Fraction(math.nextafter(b, 0)) > Fraction(epsilon)


@given(st.floats(1e-6, 1e3), st.lists(st.floats(1e-9, 1e3), max_size=4))
def test_the_rest_of_a_budget_is_the_largest_double_within_it(epsilon, spent):
    whole = Fraction(epsilon) - sum(map(Fraction, spent), Fraction(0))
    assume(whole > 0)
    left = remaining(epsilon, *spent)
    assert Fraction(left) <= whole < Fraction(np.nextafter(left, np.inf))


def test_portions():
    assert remaining(1.0, 0.25) == 0.75
    assert portion(1.0, Fraction(1, 10)) == math.nextafter(0.1, 0)
    assert portion(1.0, 0.1) == 0.1


@given(
    st.floats(1e-6, 60),
    st.fractions(Fraction(1, 1000), 1000, max_denominator=1000),
    st.integers(2, GRID),
)
def test_places_attain_the_largest_private_odds(epsilon, odds, total):
    m = places(epsilon, odds=odds, total=total)
    assert 0 <= m < total
    with precision():
        bound = arb(epsilon).exp() * odds.numerator / odds.denominator
        assert bool(arb(m) / (total - m) <= bound)
        assert m == total - 1 or not bool(arb(m + 1) / (total - m - 1) <= bound)


@parametrize("epsilon", [0.1, 1.0, 20.0])
def test_places_of_the_grid_are_the_keep_probability(epsilon):
    assert places(epsilon) / GRID == keep_probability(epsilon)


@given(st.floats(0, 1))
def test_the_grid_moves_a_probability_by_half_a_place(p):
    rounded = float(on_grid(np, np.array(p)))
    assert (rounded * GRID).is_integer()
    assert abs(Fraction(rounded) - Fraction(p)) <= Fraction(1, 2 * GRID)
