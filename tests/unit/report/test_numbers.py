import math

import pytest

from auditdp.numerics.rounding import NEAR, apart, at_least, outwards
from auditdp.record.results import AuditResult, ClaimRecord, Verdict
from auditdp.report import numbers

ONE = ClaimRecord("PureDP", "1-DP", "edge", epsilon=1.0)
HALF_GAUSSIAN = ClaimRecord("GaussianDP", "0.5-GDP", "value", parameter="mu", mu=0.5)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (math.nan, "–"),
        (True, "–"),
        (math.inf, "∞"),
        ("inf", "∞"),
        (-math.inf, "−∞"),
        (1234567, "1,234,567"),
        (1.0, "1"),
        (0.1 + 0.2, "0.3"),
        (-2.5, "−2.5"),
        (12345.6, "12,346"),
        (0.000012, "1.2e-5"),
        (3e12, "3e12"),
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
        (1.0000000005, False, 1.0, "1.0000000005"),
        (1 + 1e-14, False, 1.0, "1"),
        (1.0000000005, True, 1.0, "1"),
        (math.log(3), True, math.log(3), "1.09861"),
        (0.0, False, 1.0, "0"),
        (math.inf, True, 1.0, "∞"),
    ],
)
def test_bounds_are_rounded_outwards_and_never_across_the_claim(
    value, up, against, shown
):
    assert numbers.bound(value, up=up, against=against) == shown


@pytest.mark.parametrize(
    ("lower", "upper", "claim", "shown"),
    [
        (None, None, ONE, "–"),
        (1.312, None, ONE, "1.312 ≤ ε"),
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
    [
        (None, "–"),
        (0.0, "1"),
        (math.log(320), "320"),
        (5000.0, "3.0e2171"),
        (-5000.0, "3.4e-2172"),
        ("inf", "∞"),
        ("-inf", "0"),
    ],
)
def test_e_value(log, shown):
    assert numbers.e_value(log) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0.00 s"),
        (9.99, "9.99 s"),
        (9.996, "10.0 s"),
        (59.97, "1 min 0 s"),
        (75, "1 min 15 s"),
        (7300, "2 h 1 min"),
    ],
)
def test_duration(seconds, shown):
    assert numbers.duration(seconds) == shown


@pytest.mark.parametrize(
    ("lower", "shown"),
    [
        (1.0, "1 < ε"),
        (1 + 1e-13, "1 < ε"),
        (1.0000000005, "1.0000000005 ≤ ε"),
        (1.5, "1.5 ≤ ε"),
        (0.5, "0.5 ≤ ε"),
    ],
)
def test_the_bound_of_a_refuted_claim_is_seen_to_be_above_it(lower, shown):
    assert numbers.interval(lower, None, ONE, refuted=True) == shown
    assert numbers.interval(1.0, None, ONE) == "1 ≤ ε"
    result = AuditResult("a", Verdict.VIOLATED, "", claim=ONE, epsilon_lower=lower)
    assert numbers.bounds(result) == shown


@pytest.mark.parametrize("claimed", [1.0, 0.1, math.log(3), 7.0])
@pytest.mark.parametrize("excess", [1e-2, 1e-4, 1e-7, 1e-11])
def test_a_written_bound_is_on_the_side_of_the_claim_on_which_it_is(claimed, excess):
    lower, upper = claimed * (1 + excess), claimed * (1 - excess)
    assert (
        claimed
        < float(outwards(lower, up=False, against=claimed))
        <= lower * (1 + NEAR)
    )
    assert (
        upper * (1 - NEAR) <= float(outwards(upper, up=True, against=claimed)) < claimed
    )
    assert at_least(lower, claimed).startswith("≥ ")
    least, most = map(float, apart(lower, claimed))
    assert lower * (1 + NEAR) >= least > most >= claimed * (1 - NEAR)
