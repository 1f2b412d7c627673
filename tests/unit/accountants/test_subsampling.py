"""Amplification by sampling the dataset.

The values are attained, by enumeration, and the naive claim is false.
"""

import math
from fractions import Fraction
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditdp import ApproxDP, Verdict
from auditdp.accountants import (
    FixedSizeSubsampled,
    PoissonSubsampled,
    WithReplacementSubsampled,
    amplified,
    cross_check,
    unamplified,
)
from auditdp.numerics.balls import as_written

EPSILONS = st.floats(1e-4, 50)
RATES = st.floats(1e-4, 1)
SCALES = [Fraction(1), Fraction(21, 20), Fraction(2)]
"""Values of e^ε."""


def respond(bit, odds, reveal):
    """Return {output: probability} of randomised response on a bit.

    The bit is revealed with the probability ``reveal``.
    """
    keep = (1 - reveal) * odds / (1 + odds)
    other = 1 - reveal - keep
    return {
        ("answer", bit): keep,
        ("answer", 1 - bit): other,
        ("revealed", bit): reveal,
    }


def mixture(laws):
    total = {}
    for weight, law in laws:
        for output, mass in law.items():
            total[output] = total.get(output, Fraction(0)) + weight * mass
    return total


def delta_of(first, second, scale):
    """The larger of both orders of Σ (P − e^ε Q)₊."""
    deltas = []
    for p, q in ((first, second), (second, first)):
        excess = [p.get(y, 0) - scale * q.get(y, 0) for y in {*p, *q}]
        deltas.append(sum(max(Fraction(0), each) for each in excess))
    return float(max(deltas))


def close_to(exact):
    return pytest.approx(exact, rel=1e-10, abs=1e-13)


@pytest.mark.parametrize("odds", [Fraction(3, 2), Fraction(20)])
@pytest.mark.parametrize("reveal", [Fraction(0), Fraction(1, 100)])
@pytest.mark.parametrize("scale", SCALES)
def test_poisson_is_attained_by_a_query_for_the_record(odds, reveal, scale):
    rate = Fraction(3, 10)
    present, absent = respond(1, odds, reveal), respond(0, odds, reveal)
    sampled = mixture([(rate, present), (1 - rate, absent)])
    curve = PoissonSubsampled(math.log(odds), float(reveal), float(rate))
    exact = delta_of(sampled, absent, scale)
    assert curve.delta_at(math.log(scale)) == close_to(exact)


@pytest.mark.parametrize("scale", SCALES)
def test_fixed_size_is_attained_by_enumerating_all_samples(scale):
    """Samples of two of five records.

    The query is for the first record, which is replaced.
    """
    odds, reveal = Fraction(4), Fraction(1, 50)
    samples = list(combinations(range(5), 2))
    weight = Fraction(1, len(samples))
    present = mixture((weight, respond(int(0 in s), odds, reveal)) for s in samples)
    curve = FixedSizeSubsampled(math.log(odds), float(reveal), 2 / 5)
    exact = delta_of(present, respond(0, odds, reveal), scale)
    assert curve.delta_at(math.log(scale)) == close_to(exact)


@pytest.mark.parametrize("scale", SCALES)
def test_with_replacement_bounds_a_mechanism_that_counts(scale):
    """Three draws from three records.

    The odds of the answer are to the power of the count, as group privacy allows.
    """
    draws = list(product(range(3), repeat=3))
    weight, none = Fraction(1, len(draws)), Fraction(0)
    counted = mixture(
        (weight, respond(1, Fraction(2) ** draw.count(0), none)) for draw in draws
    )
    curve = WithReplacementSubsampled(math.log(2), 0.0, 3, 3)
    exact = delta_of(counted, respond(1, Fraction(1), none), scale)
    assert exact <= curve.delta_at(math.log(scale)) < 1
    assert curve.rate == pytest.approx(1 - (2 / 3) ** 3)


def test_one_draw_with_replacement_is_a_sample_of_one():
    drawn = WithReplacementSubsampled(1.0, 1e-6, 20, 1)
    sampled = FixedSizeSubsampled(1.0, 1e-6, 1 / 20)
    for epsilon in (0.001, 0.05):
        expected = pytest.approx(sampled.delta_at(epsilon), rel=1e-8)
        assert drawn.delta_at(epsilon) == expected


def test_group_privacy_of_delta():
    """If the only record is drawn twice, ε doubles, and δ becomes δ₀(1 + e^ε₀)."""
    curve = WithReplacementSubsampled(0.5, 1e-6, 1, 2)
    assert curve.delta_at(1.0) == pytest.approx(1e-6 * (1 + math.exp(0.5)), rel=1e-6)
    assert curve.delta_at(0.5) > 0.1


@given(epsilon=EPSILONS, rate=st.floats(1e-3, 0.999), delta=st.floats(0, 0.01))
def test_the_naive_claim_is_always_violated(epsilon, rate, delta):
    """ln(1 + q(e^ε − 1)) > qε by at least about q(1−q)ε²/2, far above rounding here."""
    naive = ApproxDP(rate * epsilon, rate * delta)
    check = cross_check(naive, [PoissonSubsampled(epsilon, delta, rate)])
    assert check.verdict is Verdict.VIOLATED


@given(
    kind=st.sampled_from([PoissonSubsampled, FixedSizeSubsampled]),
    epsilon=EPSILONS,
    rate=RATES,
    delta=st.just(0.0) | st.floats(1e-300, 0.5),
)
def test_the_amplified_claim_is_never_violated(kind, epsilon, rate, delta):
    curve, level = kind(epsilon, delta, rate), amplified(epsilon, rate)
    claim = ApproxDP(level, rate * delta)
    assert cross_check(claim, [curve]).verdict is not Verdict.VIOLATED
    own = curve.own_delta
    rounded_up = Fraction(own) >= Fraction(rate) * Fraction(delta)
    assert rounded_up or as_written(own) == as_written(rate) * as_written(delta)
    assert own == pytest.approx(rate * delta, rel=1e-15)
    assert curve.epsilon_at(own) == pytest.approx(level, rel=1e-11)
    larger = ApproxDP(level * (1 + 1e-9), own)
    assert cross_check(larger, [curve]).verdict is Verdict.CERTIFIED


@given(epsilon=st.floats(1e-6, 600), rate=st.floats(1e-6, 1))
def test_amplified_and_unamplified_are_inverse(epsilon, rate):
    there = amplified(epsilon, rate)
    assert unamplified(there, rate) == pytest.approx(epsilon, rel=1e-9)


def test_large_and_infinite_epsilons():
    assert amplified(1000.0, 0.25) == pytest.approx(1000 + math.log(0.25))
    assert amplified(math.inf, 0.5) == unamplified(math.inf, 0.5) == math.inf
    exact = math.log1p(0.3 * math.expm1(30.0))
    assert amplified(30.0, 0.3) == pytest.approx(exact, rel=1e-14)
    assert PoissonSubsampled(1.0, 0.01, 0.1).epsilon_at(0.0) == math.inf
