from __future__ import annotations

import math

import pytest

from auditdp.record.results import ClaimRecord
from auditdp.report import numbers

ONE = ClaimRecord("PureDP", "1-DP", "edge", epsilon=1.0)
HALF_GAUSSIAN = ClaimRecord("GaussianDP", "0.5-GDP", "value", parameter="mu", mu=0.5)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        ("no number", "–"),
        (math.nan, "–"),
        (True, "–"),
        (math.inf, "∞"),
        ("inf", "∞"),
        (-math.inf, "−∞"),
        (0, "0"),
        (0.0, "0"),
        (1234567, "1,234,567"),
        (1.0, "1"),
        (0.1 + 0.2, "0.3"),
        (-2.5, "−2.5"),
        (12345.6, "12,346"),
        (0.000012, "1.2e-5"),
        (-0.000012, "−1.2e-5"),
        (3e12, "3e12"),
        (1e300, "1e300"),
    ],
)
def test_number(value, shown):
    assert numbers.number(value) == shown


@pytest.mark.parametrize(
    ("value", "up", "against", "shown"),
    [
        (1.31289, False, None, "1.312"),
        (1.31289, True, None, "1.313"),
        (0.99999, False, 1.0, "0.9999"),
        (0.99999, True, 1.0, "0.99999"),
        (1.00003, False, 1.0, "1.00003"),
        (math.log(3), True, math.log(3), "1.09861"),
        (1.0000000000000002, True, 1.0, "1"),
        (0.0, False, 1.0, "0"),
        (math.inf, True, 1.0, "∞"),
    ],
)
def test_bounds_are_rounded_outwards_and_never_across_the_claim(value, up, against, shown):
    assert numbers.bound(value, up=up, against=against) == shown


@pytest.mark.parametrize(
    ("lower", "upper", "claim", "shown"),
    [
        (None, None, ONE, "–"),
        (1.312, None, ONE, "1.312 ≤ ε"),
        (None, 0.98, ONE, "ε ≤ 0.98"),
        (0.5, 0.98, None, "0.5 ≤ ε ≤ 0.98"),
        (1.0, 1.0000000000000002, ONE, "ε = 1"),
        (math.inf, math.inf, ONE, "ε = ∞"),
        (math.inf, None, ONE, "ε = ∞"),
        (0.2, math.inf, ONE, "0.2 ≤ ε"),
        (0.51, None, HALF_GAUSSIAN, "0.51 ≤ μ"),
    ],
)
def test_interval(lower, upper, claim, shown):
    assert numbers.interval(lower, upper, claim) == shown


@pytest.mark.parametrize(
    ("log", "shown"),
    [(None, "–"), (0.0, "1"), (math.log(320), "320"), (5000.0, "3.0e2171"), (-5000.0, "3.4e-2172"), ("inf", "∞")],
)
def test_e_value(log, shown):
    assert numbers.e_value(log) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0.00 s"), (9.99, "9.99 s"), (9.996, "10.0 s"), (59.97, "1 min 0 s"), (75, "1 min 15 s"), (7300, "2 h 1 min")],
)
def test_duration(seconds, shown):
    assert numbers.duration(seconds) == shown
