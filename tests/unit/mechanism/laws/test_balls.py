"""The ends of balls as doubles: never inside, and no farther out than the next double."""

import math
from fractions import Fraction

import pytest
from flint import arb

from auditdp.mechanism.laws import ball, precision
from auditdp.numerics.balls import above, below


def test_the_ends_of_a_third_are_neighbouring_doubles():
    with precision():
        third = arb(1) / 3
    assert Fraction(below(third)) < Fraction(1, 3) < Fraction(above(third))
    assert above(third) == math.nextafter(below(third), 1)


def test_the_ends_of_a_wide_ball_are_outside_of_it():
    """2 ± (1e-9·2 + 1e-12); the working precision outside of a block is 53 bits, and does not matter."""
    wide = ball(2.0)
    assert below(wide) <= 2 - 2e-9 < 2 + 2e-9 <= above(wide)
    assert above(wide) - below(wide) == pytest.approx(4.002e-9, rel=1e-3)


@pytest.mark.parametrize("number", [0.5, 0.0, -3.0, math.inf, -math.inf])
def test_doubles_are_their_own_ends(number):
    assert above(arb(number)) == below(arb(number)) == number
    assert math.copysign(1, below(arb(0))) == 1


def test_numbers_beyond_the_doubles():
    with precision():
        tiny, huge = arb(10) ** -400, arb(10) ** 400
    assert (below(tiny), above(tiny)) == (0.0, 5e-324)
    assert below(huge) == 1.7976931348623157e308
    assert above(huge) == math.inf
