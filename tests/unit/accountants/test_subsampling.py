"""Amplification by sampling the dataset: attained values by enumeration, the false claim, and what must be monotone."""

import math
from fractions import Fraction
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditdp.accountants import (
    Accountant,
    FixedSizeSubsampled,
    PoissonSubsampled,
    WithReplacementSubsampled,
    amplified,
    cross_check,
    unamplified,
)
from auditdp.claims.statements import ApproxDP
from auditdp.numerics.balls import as_written
from auditdp.record.results import Verdict

EPSILONS = st.floats(1e-4, 50)
RATES = st.floats(1e-4, 1)


def respond(bit, odds, reveal):
    """The law of randomised response on a bit that is revealed with a probability: {output: probability}, exactly."""
    keep = odds / (1 + odds)
    told = {
        ("answer", bit): (1 - reveal) * keep,
        ("answer", 1 - bit): (1 - reveal) * (1 - keep),
    }
    return told | {("revealed", bit): reveal}


def mixture(laws):
    total = {}
    for weight, law in laws:
        for output, p in law.items():
            total[output] = total.get(output, Fraction(0)) + weight * p
    return total


def delta_of(first, second, scale):
    """The larger of both orders of Σ (P − e^ε Q)₊, ``scale`` being e^ε."""
    outputs = set(first) | set(second)
    return max(
        sum(
            max(Fraction(0), p.get(y, Fraction(0)) - scale * q.get(y, Fraction(0)))
            for y in outputs
        )
        for p, q in ((first, second), (second, first))
    )


@pytest.mark.parametrize("odds", [Fraction(3, 2), Fraction(20)])
@pytest.mark.parametrize("reveal", [Fraction(0), Fraction(1, 100)])
@pytest.mark.parametrize("scale", [Fraction(1), Fraction(21, 20), Fraction(2)])
def test_poisson_is_attained_by_asking_whether_the_record_is_in_the_sample(
    odds, reveal, scale
):
    rate = Fraction(3, 10)
    present, absent = respond(1, odds, reveal), respond(0, odds, reveal)
    exact = delta_of(mixture([(rate, present), (1 - rate, absent)]), absent, scale)
    curve = PoissonSubsampled(math.log(odds), float(reveal), float(rate))
    assert curve.delta_at(math.log(scale)) == pytest.approx(
        float(exact), rel=1e-10, abs=1e-13
    )


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(21, 20), Fraction(2)])
def test_fixed_size_is_attained_by_enumerating_all_samples(scale):
    """Records 0…4, samples of two; the mechanism asks whether a record 'x' is in the sample; record 0 is 'x' or is not."""
    odds, reveal = Fraction(4), Fraction(1, 50)
    samples = list(combinations(range(5), 2))
    first, second = (
        mixture(
            [
                (Fraction(1, len(samples)), respond(int(is_x and 0 in s), odds, reveal))
                for s in samples
            ]
        )
        for is_x in (True, False)
    )
    curve = FixedSizeSubsampled(math.log(odds), float(reveal), 2 / 5)
    assert curve.delta_at(math.log(scale)) == pytest.approx(
        float(delta_of(first, second, scale)), rel=1e-10, abs=1e-13
    )


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(11, 10), Fraction(3)])
def test_with_replacement_bounds_a_mechanism_that_counts(scale):
    """Three draws from three records; the odds of the answer are to the power of the count, as group privacy allows."""
    odds = Fraction(2)
    draws = list(product(range(3), repeat=3))
    laws = []
    for is_x in (True, False):
        told = []
        for draw in draws:
            keep = odds ** (draw.count(0) if is_x else 0) / (
                1 + odds ** (draw.count(0) if is_x else 0)
            )
            told.append((Fraction(1, len(draws)), {1: keep, 0: 1 - keep}))
        laws.append(mixture(told))
    curve = WithReplacementSubsampled(math.log(odds), 0.0, 3, 3)
    assert float(delta_of(*laws, scale)) <= curve.delta_at(math.log(scale)) < 1
    assert curve.rate == pytest.approx(1 - (2 / 3) ** 3)


def test_one_draw_with_replacement_is_a_sample_of_one():
    for epsilon in (0.001, 0.01, 0.05):
        with_it = WithReplacementSubsampled(1.0, 1e-6, 20, 1).delta_at(epsilon)
        assert with_it == pytest.approx(
            FixedSizeSubsampled(1.0, 1e-6, 1 / 20).delta_at(epsilon), rel=1e-8
        )


def test_group_privacy_of_delta():
    """Drawn twice for sure (one record): ε doubles, and δ becomes δ₀(1 + e^ε₀)."""
    curve = WithReplacementSubsampled(0.5, 1e-6, 1, 2)
    assert curve.delta_at(1.0) == pytest.approx(1e-6 * (1 + math.exp(0.5)), rel=1e-6)
    assert curve.delta_at(0.5) > 0.1


@given(epsilon=EPSILONS, rate=st.floats(1e-3, 0.999), delta=st.floats(0, 0.01))
def test_the_naive_claim_is_always_violated(epsilon, rate, delta):
    """ln(1 + q(e^ε − 1)) > qε by at least about q(1−q)ε²/2, far above rounding here."""
    check = cross_check(
        ApproxDP(rate * epsilon, rate * delta),
        [PoissonSubsampled(epsilon, delta, rate)],
    )
    assert check.verdict is Verdict.VIOLATED


@given(epsilon=EPSILONS, rate=RATES, delta=st.just(0.0) | st.floats(1e-300, 0.5))
def test_the_amplified_claim_is_never_violated(epsilon, rate, delta):
    for kind in (PoissonSubsampled, FixedSizeSubsampled):
        curve, level = kind(epsilon, delta, rate), amplified(epsilon, rate)
        assert (
            cross_check(ApproxDP(level, rate * delta), [curve]).verdict
            is not Verdict.VIOLATED
        )
        own = curve.own_delta
        assert Fraction(own) >= Fraction(rate) * Fraction(delta) or as_written(
            own
        ) == as_written(rate) * as_written(delta)
        assert own == pytest.approx(rate * delta, rel=1e-15)
        assert curve.epsilon_at(own) == pytest.approx(level, rel=1e-11)
        larger = ApproxDP(level * (1 + 1e-9), own)
        assert cross_check(larger, [curve]).verdict is Verdict.CERTIFIED


@given(
    epsilon=EPSILONS,
    rate=RATES,
    delta=st.floats(0, 0.5),
    factor=st.floats(1, 5),
    at=st.floats(0, 2),
)
def test_amplification_never_hurts_and_is_monotone(epsilon, rate, delta, factor, at):
    level = amplified(epsilon, rate)
    assert level <= epsilon * (1 + 1e-12)
    assert level <= amplified(epsilon * factor, rate) * (1 + 1e-12)
    assert amplified(epsilon, rate / factor) <= level * (1 + 1e-12)
    curve = PoissonSubsampled(epsilon, delta, rate)
    assert (
        curve.delta_at(at)
        <= PoissonSubsampled(epsilon, delta, 1.0).delta_at(at) + 1e-12
    )
    assert curve.delta_at(at * factor) <= curve.delta_at(at)
    assert (
        PoissonSubsampled(epsilon, delta, rate / factor).delta_at(at)
        <= curve.delta_at(at) + 1e-12
    )


@given(epsilon=st.floats(1e-6, 600), rate=st.floats(1e-6, 1))
def test_amplified_and_unamplified_are_inverse(epsilon, rate):
    assert unamplified(amplified(epsilon, rate), rate) == pytest.approx(
        epsilon, rel=1e-9
    )


def test_large_and_infinite_epsilons():
    assert amplified(1000.0, 0.25) == pytest.approx(1000 + math.log(0.25))
    assert amplified(math.inf, 0.5) == unamplified(math.inf, 0.5) == math.inf
    assert amplified(30.0, 0.3) == pytest.approx(
        math.log1p(0.3 * math.expm1(30.0)), rel=1e-14
    )


def test_parameters_are_checked():
    curve = PoissonSubsampled(1.0, 0.01, 0.1)
    assert isinstance(curve, Accountant)
    assert curve.name == "PoissonSubsampled(epsilon=1, delta=0.01, rate=0.1)"
    assert curve.epsilon_at(0.0) == math.inf
