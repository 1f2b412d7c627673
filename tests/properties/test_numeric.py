"""What holds for every number, record and budget: ranges, loss of any two inputs, symmetry, more budget, groups."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from auditdp.errors import MechanismError
from auditdp.evidence.loss_of_laws import pair_loss
from auditdp.mechanism.laws import FiniteLaw
from mechanisms.numeric import (
    Duchi,
    GaussianFeatures,
    Hybrid,
    LaplaceFeature,
    NumericVector,
    Piecewise,
    PMSub,
    ThreeOutput,
    every_feature,
)
from mechanisms.rounding import GRID, on_grid, places

budgets = st.floats(1e-6, 30.0)
numbers = st.one_of(st.floats(-1, 1), st.sampled_from([-1.0, 0.0, 1.0]))
seeds = st.integers(0, 2**32 - 1)
bounded = st.sampled_from([Duchi, Piecewise, PMSub, Hybrid, ThreeOutput])
finite = st.sampled_from([Duchi, ThreeOutput])
kinds = st.sampled_from([Duchi, Piecewise, PMSub, Hybrid, ThreeOutput, LaplaceFeature])


def largest_output(mechanism):
    return max(part.size for part in (mechanism, getattr(mechanism, "piecewise", None), getattr(mechanism, "duchi", None))
               if hasattr(part, "size"))  # fmt: skip


@given(bounded, budgets, st.lists(numbers, min_size=1, max_size=20), seeds)
def test_outputs_stay_in_their_range(kind, epsilon, values, seed):
    mechanism = kind(epsilon)
    outputs = mechanism.perturb(values, rng=np.random.default_rng(seed))
    assert outputs.dtype == np.float64
    assert outputs.shape == (len(values),)
    assert (abs(outputs) <= largest_output(mechanism)).all()
    if kind is Duchi or kind is ThreeOutput:
        assert np.isin(outputs, mechanism.atoms).all()


@given(bounded, budgets, numbers, numbers)
def test_no_two_numbers_lose_more_than_epsilon(kind, epsilon, x, other):
    """Of the exact laws with the deployed doubles, certainly."""
    mechanism = kind(epsilon)
    assert (
        pair_loss(mechanism.distribution(x), mechanism.distribution(other)).upper
        <= epsilon
    )


@given(bounded, budgets, numbers)
def test_the_opposite_number_has_the_opposite_law(kind, epsilon, x):
    mechanism = kind(epsilon)
    law, mirrored = mechanism.distribution(x), mechanism.distribution(-x)
    if isinstance(law, FiniteLaw):
        assume(x != 0)
        assert dict(zip(law.outcomes, law.probabilities, strict=True)) == dict(
            zip(-mirrored.outcomes, mirrored.probabilities, strict=True)
        )
    else:
        assert law.ends == [-b for b in mirrored.ends[::-1]]
        assert law.densities == mirrored.densities[::-1]


@given(bounded, budgets, numbers)
def test_log_probabilities_of_outputs_are_finite(kind, epsilon, x):
    mechanism = kind(epsilon)
    assert np.isfinite(
        mechanism.log_prob(mechanism(x, 30, rng=np.random.default_rng(0)), x)
    ).all()


@given(kinds, st.floats(0.01, 8), st.floats(1.01, 3))
def test_more_budget_means_less_variance(kind, epsilon, factor):
    """At the worst input."""
    assert kind(factor * epsilon).largest_variance < kind(epsilon).largest_variance


@given(finite, st.floats(0.01, 4), st.lists(numbers, min_size=1, max_size=3), st.data())
def test_features_that_agree_cost_nothing(kind, epsilon, record, data):
    """Group privacy within a record: two that differ in j of d features lose at most jε/d."""
    d = len(record)
    other = [data.draw(st.one_of(st.just(x), numbers)) for x in record]
    vector, differing = (
        every_feature(kind, epsilon, d),
        sum(a != b for a, b in zip(record, other, strict=True)),
    )
    loss = pair_loss(vector.law(record), vector.law(other))
    assert loss.upper <= differing * vector.one.epsilon + 1e-12
    assert loss.upper <= epsilon


@given(finite, st.floats(0.01, 4), st.lists(numbers, min_size=1, max_size=3), st.data())
def test_renaming_the_features_renames_the_output(kind, epsilon, record, data):
    d = len(record)
    order = data.draw(st.permutations(range(d)))
    vector = NumericVector(kind, epsilon, d, data.draw(st.integers(1, d)))
    law, renamed = vector.law(record), vector.law(np.array(record)[order])
    found = {
        tuple(y[order]): p for y, p in zip(law.outcomes, law.probabilities, strict=True)
    }
    assert found == {
        tuple(y): p
        for y, p in zip(renamed.outcomes, renamed.probabilities, strict=True)
    }


@given(kinds, st.floats(1e-3, 50), st.integers(1, 40), st.data())
def test_split_budgets_sum_to_at_most_the_whole(kind, epsilon, dimension, data):
    vector = NumericVector(
        kind, epsilon, dimension, data.draw(st.integers(1, dimension))
    )
    assert Fraction(vector.one.epsilon) * vector.chosen <= Fraction(epsilon)
    assert vector.envelope().uses == vector.chosen


@given(kinds, st.integers(1, 6), st.data(), seeds)
def test_sampled_features_are_as_many_as_asked(kind, dimension, data, seed):
    vector = NumericVector(kind, 3.0, dimension, data.draw(st.integers(1, dimension)))
    record = np.array(
        data.draw(st.lists(numbers, min_size=dimension, max_size=dimension))
    )
    outputs = vector(record, 5, rng=np.random.default_rng(seed))
    assert outputs.shape == (5, dimension)
    assert ((outputs != 0).sum(axis=1) <= vector.chosen).all()
    assert np.isfinite(vector.log_prob(outputs, record)).all()


@given(
    kinds,
    st.one_of(
        st.floats(1, 1e300, exclude_min=True),
        st.floats(-1e300, -1, exclude_max=True),
        st.just(np.nan),
    ),
)
def test_what_is_outside_the_domain_is_an_error(kind, value):
    """Never clipped in silence: the loss of an input outside would be larger than claimed."""
    for mechanism, values in (
        (kind(1.0), [value]),
        (NumericVector(kind, 1.0, 2), [[0.0, value]]),
        (GaussianFeatures(1.0, 1e-3, 2), [[value, 0.0]]),
    ):
        with pytest.raises(
            MechanismError,
            match=r"expected numbers of \[-1, 1\], got .*; scale and clip",
        ):
            mechanism.perturb(values, rng=np.random.default_rng(0))


@given(
    st.floats(1e-6, 60),
    st.fractions(Fraction(1, 1000), 1000, max_denominator=1000),
    st.integers(2, GRID),
)
def test_places_grow_with_the_budget(epsilon, odds, total):
    m = places(epsilon, odds=odds, total=total)
    assert 0 <= m < total
    assert m <= places(1.5 * epsilon, odds=odds, total=total)
    assert m <= places(epsilon, odds=2 * odds, total=total)


@given(st.floats(0, 1))
def test_the_grid_moves_a_probability_by_half_a_place(p):
    rounded = on_grid(np, np.array(p))
    assert float(rounded * GRID).is_integer()
    assert abs(Fraction(float(rounded)) - Fraction(p)) <= Fraction(1, 2 * GRID)
