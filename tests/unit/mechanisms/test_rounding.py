"""The roundings never spend more than they were given, and nothing is left on the table."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from auditdp.errors import MechanismError
from mechanisms.rounding import (
    GRID,
    keep_probability,
    laplace_scale,
    portion,
    remaining,
)

EPSILONS = [
    5e-324,
    1e-300,
    2**-53,
    2**-51,
    1e-9,
    0.01,
    0.1,
    math.log(3),
    1.0,
    2.0,
    7.3,
    20.0,
    36.5,
    36.9,
]


@pytest.mark.parametrize(
    "epsilon", EPSILONS + np.random.default_rng(0).uniform(0, 37, 40).tolist()
)
def test_keep_probability_is_the_largest_private_one(epsilon):
    m = int(Fraction(keep_probability(epsilon)) * GRID)
    assert Fraction(m, GRID) == Fraction(keep_probability(epsilon))
    with (
        localcontext() as context
    ):  # an oracle that shares nothing with ball arithmetic
        context.prec = 400
        bound = Decimal(epsilon).exp()
        assert Decimal(m) / Decimal(GRID - m) <= bound
        assert m == GRID - 1 or Decimal(m + 1) / Decimal(GRID - m - 1) > bound


def test_keep_probability_known_values():
    assert keep_probability(0) == 0.5
    assert keep_probability(math.log(3)) == pytest.approx(0.75, abs=2**-52)
    assert keep_probability(37) == keep_probability(1000) == 1 - 2**-53


def test_nearest_rounding_would_not_be_private():
    """The reason for the module: the textbook formula exceeds the bound for some epsilons."""
    textbook = [
        (e, math.exp(e) / (1 + math.exp(e))) for e in np.linspace(0.1, 5, 200).tolist()
    ]
    assert any(p > keep_probability(e) for e, p in textbook)


@pytest.mark.parametrize("epsilon", [-1e-9, math.inf, math.nan])
def test_keep_probability_refuses(epsilon):
    with pytest.raises(MechanismError, match="finite epsilon >= 0"):
        keep_probability(epsilon)


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1 / 3, 0.9, 7.7, 1e-8])
@pytest.mark.parametrize("sensitivity", [1, 2.5, Fraction(1, 3)])
def test_laplace_scale_is_the_smallest_private_one(sensitivity, epsilon):
    b = laplace_scale(sensitivity, epsilon)
    assert Fraction(sensitivity) / Fraction(b) <= Fraction(epsilon)
    assert Fraction(sensitivity) / Fraction(math.nextafter(b, 0)) > Fraction(epsilon)


def test_nearest_scale_would_not_be_private():
    assert any(
        Fraction(1) / Fraction(1 / e) > Fraction(e)
        for e in np.linspace(0.1, 5, 200).tolist()
    )


@pytest.mark.parametrize(
    ("sensitivity", "epsilon"),
    [(1, 0.0), (1, -1.0), (0, 1.0), (1, math.inf), (1, 5e-324)],
)
def test_laplace_scale_refuses(sensitivity, epsilon):
    with pytest.raises(MechanismError, match=r"laplace_scale: .*(> 0|larger epsilon)"):
        laplace_scale(sensitivity, epsilon)


def test_remaining_and_portion():
    assert remaining(1.0, 0.25) == 0.75
    e = remaining(1.0, 0.1)
    assert (
        Fraction(e) + Fraction(0.1)
        <= 1
        < Fraction(math.nextafter(e, 2)) + Fraction(0.1)
    )
    assert Fraction(portion(1.0, Fraction(1, 10))) <= Fraction(1, 10)
    assert portion(1.0, Fraction(1, 10)) == math.nextafter(0.1, 0)
    assert portion(1.0, 0.1) == 0.1


def test_remaining_and_portion_refuse():
    with pytest.raises(MechanismError, match="nothing is left"):
        remaining(1.0, 0.5, 0.5)
    with pytest.raises(MechanismError, match="strictly between 0 and 1"):
        portion(1.0, 1)
