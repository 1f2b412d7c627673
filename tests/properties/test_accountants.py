"""What every accountant must satisfy, whatever its parameters."""

import math
from dataclasses import fields, replace

from flint import arb
from hypothesis import assume, given
from hypothesis import strategies as st

from auditdp.accountants import (
    ZCDP,
    AdvancedComposition,
    BasicComposition,
    ClassicGaussian,
    GaussianCurve,
    HeterogeneousComposition,
    KairouzCorollary,
    OptimalComposition,
    Soundness,
    TopKAdvanced,
    TopKBoundedRange,
    TopKDurfeeRogers,
    TopKNonAdaptive,
    TopKOptimalComposition,
    TopKPure,
    TopKZCDP,
    corollary_budget,
)
from auditdp.accountants.accountant import ROUNDED_UP
from auditdp.mechanism.laws import precision
from mechanisms.top_k_law import plackett_luce, unordered_top_k

each = st.floats(-4, 2).map(lambda x: 10**x)
own = st.just(0.0) | st.floats(-15, -2).map(lambda x: 10**x)
targets = st.floats(-15, -0.01).map(lambda x: 10**x)
counts = st.integers(1, 60) | st.sampled_from([10**3, 10**6])
shares = st.floats(0.0, 1.1)
factors = st.floats(1.0, 3.0)
SLACK = 1 + 4 * ROUNDED_UP

EQUAL = (OptimalComposition, BasicComposition, AdvancedComposition, KairouzCorollary)
TOP_K = (
    TopKPure,
    TopKAdvanced,
    TopKDurfeeRogers,
    TopKBoundedRange,
    TopKZCDP,
    TopKOptimalComposition,
)
compositions = st.builds(
    lambda kind, *rest: kind(*rest), st.sampled_from(EQUAL), each, own, counts
)
selections = st.one_of(
    st.builds(lambda kind, *rest: kind(*rest), st.sampled_from(TOP_K), counts, each),
    st.builds(TopKNonAdaptive, st.integers(1, 60), each),
)
unequal = st.lists(st.tuples(each, own), min_size=1, max_size=8).map(
    lambda parts: HeterogeneousComposition(*map(tuple, zip(*parts, strict=True)))
)
gaussians = st.builds(GaussianCurve, each, each, counts)
concentrated = st.builds(ZCDP, each)
accountants = st.one_of(
    compositions,
    selections,
    unequal,
    gaussians,
    concentrated,
    st.builds(ClassicGaussian, each, each, everywhere=st.booleans()),
)


def scale(accountant):
    """An ε of the size at which the curve falls."""
    epsilon = accountant.epsilon_at(0.01)
    return epsilon if 0 < epsilon < math.inf else 1.0


@given(accountants, shares, shares)
def test_the_curve_falls_in_epsilon_and_stays_a_probability(accountant, one, other):
    low, high = sorted((one * scale(accountant), other * scale(accountant)))
    assert 0.0 <= accountant.delta_at(high) <= accountant.delta_at(low) * SLACK
    assert accountant.delta_at(low) <= 1.0


@given(accountants, targets, targets)
def test_epsilon_falls_in_delta(accountant, one, other):
    low, high = sorted((one, other))
    assert 0.0 <= accountant.epsilon_at(high) <= accountant.epsilon_at(low) * SLACK


@given(accountants, targets)
def test_an_upper_conversion_and_back_is_never_optimistic_and_a_lower_one_never_pessimistic(
    accountant, delta
):
    epsilon = accountant.epsilon_at(delta)
    assume(0 < epsilon < math.inf)
    if accountant.soundness is Soundness.LOWER:
        assert accountant.delta_at(epsilon) > delta
        assert accountant.delta_at(epsilon * (1 + 1e-9)) <= delta * (1 + 1e-6)
    else:
        assert accountant.delta_at(epsilon) <= delta
        # Where the curve jumps, as the pure bound of a theorem does, nothing smaller reaches delta either.
        assert accountant.delta_at(epsilon * (1 - 1e-9)) >= delta * (1 - 1e-6)


MORE_LOSS = {
    "epsilon": lambda value, factor: value * factor,
    "delta": lambda value, factor: min(1.0, value * factor),
    "eta": lambda value, factor: value * factor,
    "rho": lambda value, factor: value * factor,
    "sensitivity": lambda value, factor: value * factor,
    "sigma": lambda value, factor: value / factor,
    "count": lambda value, factor: value + 1,
}
"""For each parameter, a value that loses more."""


@given(compositions | selections | gaussians | concentrated, shares, factors)
def test_the_loss_grows_in_every_parameter(accountant, share, factor):
    epsilon = share * scale(accountant)
    here = accountant.delta_at(epsilon)
    for field in fields(accountant):
        value = getattr(accountant, field.name)
        changed = {field.name: MORE_LOSS[field.name](value, factor)}
        assert here <= replace(accountant, **changed).delta_at(epsilon) * SLACK


@given(unequal, st.tuples(each, own), shares)
def test_composition_never_costs_less_than_its_parts(accountant, extra, share):
    epsilon = share * scale(accountant)
    more = HeterogeneousComposition(
        (*accountant.epsilons, extra[0]), (*accountant.deltas, extra[1])
    )
    assert more.delta_at(epsilon) * SLACK >= accountant.delta_at(epsilon)
    assert more.delta_at(epsilon) * SLACK >= OptimalComposition(*extra, 1).delta_at(
        epsilon
    )


@given(each, own, counts, shares)
def test_every_theorem_lies_above_the_optimum(epsilon, delta, count, share):
    optimum = OptimalComposition(epsilon, delta, count)
    at = share * scale(optimum)
    assert all(
        kind(epsilon, delta, count).delta_at(at) * SLACK >= optimum.delta_at(at)
        for kind in EQUAL
    )


@given(st.integers(1, 60) | st.just(1000), each, shares)
def test_every_analysis_of_selections_lies_above_the_lower_bound(count, eta, share):
    lower = TopKNonAdaptive(count, eta)
    at = share * scale(lower)
    assert all(kind(count, eta).delta_at(at) >= lower.delta_at(at) for kind in TOP_K)


@given(st.floats(0.01, 0.9), targets, counts)
def test_the_corollary_holds_where_it_is_stated(epsilon, delta, count):
    """Corollary 4.1 of Kairouz, Oh & Viswanath on (0, .9] and (0, 1], by the optimum of Theorem 3.3."""
    assert (
        OptimalComposition(*corollary_budget(epsilon, delta, count), count).delta_at(
            epsilon
        )
        <= delta
    )


@given(st.floats(1e-3, 1.0), st.floats(-15, -1e-3).map(lambda x: 10**x))
def test_the_classic_gaussian_is_private_enough_up_to_one(epsilon, delta):
    assert (
        GaussianCurve(ClassicGaussian.sigma_for(epsilon, delta)).delta_at(epsilon)
        <= delta
    )


@given(st.floats(-3, 2).map(lambda x: 10**x), targets)
def test_the_least_sigma_spends_exactly_its_delta(epsilon, delta):
    sigma = GaussianCurve.sigma_for(epsilon, delta)
    assert (
        GaussianCurve(sigma).delta_at(epsilon)
        <= delta
        < GaussianCurve(sigma * (1 - 1e-9)).delta_at(epsilon)
    )


@st.composite
def neighbours(draw):
    """Scores of candidates and of a neighbour, k, and the η that the largest change of a log weight gives."""
    number = draw(st.integers(2, 5))
    count = draw(st.integers(1, number - 1))
    change = draw(st.floats(0.01, 2.0))
    monotone = draw(st.booleans())
    base, other = [], []
    for _ in range(number):
        move = draw(st.sampled_from([-1, 1]) | st.floats(-1, 1))
        base.append(draw(st.floats(-4, 4) | st.just(0.0)))
        other.append(base[-1] + change * (abs(move) if monotone else move))
    eta = change if monotone else 2 * change
    # Scores are rounded to doubles.
    return base, other, count, eta * (1 + 1e-12)


@given(neighbours(), st.floats(0, 1), st.sampled_from([plackett_luce, unordered_top_k]))
def test_an_upper_bound_lies_above_the_exact_curve_of_any_pair(case, share, law):
    base, other, count, eta = case
    first, second = (law(scores, count).balls for scores in (base, other))
    with precision():
        masses = list(zip(first, second, strict=True))
        loss = max(float((p / q).log().mid()) for p, q in masses)
        epsilon = share * max(loss, 0.0)
        factor = arb(epsilon).exp()
        excess = [(p - factor * q).max(arb(0)) for p, q in masses]
        exact = float(sum(excess, arb(0)).lower())
    assert loss <= count * eta
    for kind in TOP_K:
        assert kind(count, eta).delta_at(epsilon) >= exact * (1 - 1e-15)
