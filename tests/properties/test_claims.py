"""What every claim's curve must satisfy, whatever its level."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP
from auditdp.errors import ClaimError

levels = st.floats(1e-3, 30.0)
epsilons = st.floats(0.0, 40.0)
deltas = st.floats(0.0, 0.999)
SLACK = 1e-12

claims = st.one_of(st.builds(PureDP, levels), st.builds(ApproxDP, levels, deltas), st.builds(GaussianDP, levels))


@given(claims, epsilons, epsilons)
def test_the_curve_falls_in_epsilon_and_stays_a_probability(claim, one, other):
    low, high = sorted((one, other))
    assert 0.0 <= claim.delta_at(high) <= claim.delta_at(low) + SLACK
    assert claim.delta_at(low) <= 1.0


@given(claims, levels, epsilons)
def test_the_curve_rises_with_the_level(claim, level, epsilon):
    weak, strong = claim.at(max(level, claim.level)), claim.at(min(level, claim.level))
    assert strong.delta_at(epsilon) <= weak.delta_at(epsilon) + SLACK


@given(claims, epsilons, epsilons, st.floats(0.0, 1.0))
def test_the_curve_is_convex_in_the_exponential_of_epsilon(claim, one, other, share):
    """A hockey-stick divergence is a supremum of functions that are affine in e^ε."""
    a, b = math.exp(one), math.exp(other)
    between = math.log(share * a + (1 - share) * b)
    chord = share * claim.delta_at(one) + (1 - share) * claim.delta_at(other)
    assert claim.delta_at(between) <= chord + 1e-9


@given(claims, epsilons)
def test_the_curve_lies_above_the_line_that_trivial_pairs_give(claim, epsilon):
    """δ(ε) >= 1 - e^ε (1 - δ(0)): raising ε costs at most e^ε - 1 times the mass that is left."""
    assert claim.delta_at(epsilon) >= 1 - math.exp(epsilon) * (1 - claim.delta_at(0.0) + SLACK)


@given(levels, deltas, epsilons)
def test_an_approximate_claim_is_reveal_or_randomised_response(level, delta, epsilon):
    keep = 1 / (1 + math.exp(-level))
    lose = math.exp(-level) * keep
    p, q = [(1 - delta) * keep, (1 - delta) * lose, delta, 0.0], [(1 - delta) * lose, (1 - delta) * keep, 0.0, delta]
    brute = math.fsum(max(a - math.exp(epsilon) * b, 0.0) for a, b in zip(p, q, strict=True))
    assert ApproxDP(level, delta).delta_at(epsilon) == pytest.approx(brute, abs=1e-12)


@given(levels, levels)
def test_the_cap_rises_with_epsilon(one, other):
    low, high = sorted((one, other))
    assert 0.5 <= PureDP(low).posterior_cap() <= PureDP(high).posterior_cap() <= 1.0


@given(claims, levels)
def test_at_gives_the_level_that_was_asked_for(claim, level):
    assert claim.at(level).level == level
    assert claim.at(level).at(claim.level) == claim


@given(claims)
def test_every_tangent_lies_on_the_curve(claim):
    for epsilon, delta in claim.tangents():
        assert epsilon >= 0
        assert delta == pytest.approx(claim.delta_at(epsilon), abs=SLACK)


@given(st.floats(max_value=0.0, exclude_max=True) | st.just(math.inf) | st.just(math.nan))
def test_no_other_float_is_a_level(value):
    for build in (PureDP, GaussianDP, lambda v: ApproxDP(v, 0.1)):
        with pytest.raises(ClaimError):
            build(value)
