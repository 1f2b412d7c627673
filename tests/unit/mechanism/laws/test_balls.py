"""Balls of numbers, and their ends as doubles: never inside, and never far outside."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from auditdp.mechanism.laws import PRECISION_BITS, ball, precision
from auditdp.numerics.balls import above, below


def test_the_ends_of_a_third_are_neighbouring_doubles():
    with precision():
        third = arb(1) / 3
    assert Fraction(below(third)) < Fraction(1, 3) < Fraction(above(third))
    assert above(third) == math.nextafter(below(third), 1)


@pytest.mark.parametrize("number", [0.5, 0.0, -3.0, math.inf, -math.inf])
def test_doubles_are_their_own_ends(number):
    assert above(arb(number)) == below(arb(number)) == number
    assert math.copysign(1, below(arb(0))) == 1


def test_numbers_beyond_the_doubles():
    with precision():
        tiny = arb(10) ** -400
        huge = arb(10) ** 400
    assert below(tiny) == 0.0
    assert above(tiny) == 5e-324
    assert below(huge) == 1.7976931348623157e308
    assert above(huge) == math.inf


@pytest.mark.parametrize("number", [2.0, 0.1, 0.0])
def test_a_float_may_be_off_by_its_rounding(number):
    """The error is up to 1e-9 of it and 1e-12, at any precision."""
    wide = ball(number)
    radius = number * 1e-9 + 1e-12
    assert below(wide) <= number - radius < number + radius <= above(wide)
    assert above(wide) - below(wide) == pytest.approx(2 * radius, rel=1e-3)


def test_exact_numbers_have_exact_balls():
    with precision():
        third = ball(Fraction(1, 3))
        assert third.contains(arb(1) / 3)
        assert third.rad() < 1e-70
    assert [ball(3), ball(np.int64(3)), ball(0)] == [3, 3, 0]
    exact = arb(0.25)
    assert ball(exact) is exact


def test_precision_is_put_back():
    before = ctx.prec
    with precision():
        assert ctx.prec == PRECISION_BITS
    with pytest.raises(ZeroDivisionError), precision():
        Fraction(1, 0)
    assert ctx.prec == before
