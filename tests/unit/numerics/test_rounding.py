"""Bounds are written so that the written number still holds."""

import math
from decimal import Decimal

import numpy as np
import pytest

from auditdp.bounds.result import rounded_down, rounded_up
from auditdp.numerics.rounding import NEAR, outward, outwards
from auditdp.report.numbers import bound

EXPONENTS = np.random.default_rng(5).uniform(-40, 25, size=500)
VALUES = np.exp(EXPONENTS).tolist()
NEAR_1 = [1.0, math.nextafter(1, 2), math.nextafter(1, 0), 1e-300]


@pytest.mark.parametrize("digits", [1, 2, 4, 6])
def test_the_written_number_is_beyond_the_bound_and_near_it(digits):
    for value in VALUES:
        low, high = (outward(value, up=up, digits=digits) for up in (False, True))
        assert low * (1 - Decimal(NEAR)) <= Decimal(value) <= high * (1 + Decimal(NEAR))
        assert high - low <= Decimal(value) * Decimal(10) ** (1 - digits)


def test_without_a_tolerance_nothing_is_rounded_inwards():
    for value in [*VALUES, *NEAR_1]:
        low, high = Decimal(rounded_down(value)), Decimal(rounded_up(value))
        assert low <= Decimal(value) <= high
        assert float(high - low) <= 0.11 * value
    assert float(rounded_up(0.0)) == 0


def test_all_writers_of_bounds_agree_on_the_number():
    """Reports take a relative 1e-9 for rounding."""
    for value in filter(lambda value: value < 1e6, VALUES):
        for up in (False, True):
            text = bound(value, up=up).replace(",", "").replace("−", "-")
            written = float(outwards(value, up=up))
            assert float(text) == pytest.approx(written, rel=2e-9)


@pytest.mark.parametrize(
    ("value", "up", "written"),
    [
        (1.0000000000000002, True, "1"),
        (0.9999999999999999, False, "1"),
        (1.00001, True, "1.001"),
        (0.00012345, False, "0.0001234"),
        (12345.6, True, "12346"),
        (math.inf, False, "∞"),
        (0.0, True, "0"),
    ],
)
def test_bounds_in_sentences(value, up, written):
    assert outwards(value, up=up) == written
