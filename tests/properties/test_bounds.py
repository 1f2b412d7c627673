"""What holds for every record: bounds grow with the evidence and with alpha, and know nothing that they should not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditdp.bounds import Bound, from_counts, from_guesses, from_scores, methods
from auditdp.bounds.bound_levels import highest_chain, highest_rejected, smallest_alpha
from auditdp.bounds.one_run import curve_refuted
from auditdp.bounds.privacy_curves import EpsilonDelta, Gaussian

CURVES = st.one_of(
    st.builds(EpsilonDelta, st.sampled_from([0.0, 1e-5, 0.1])), st.just(Gaussian())
)
LEVELS = st.floats(0, 5)
SHARES = st.floats(0.001, 0.999)


@given(CURVES, LEVELS, SHARES)
def test_least_is_the_inverse_of_most(curve, level, p):
    q = float(curve.smallest_q(p, level))
    assert 0 <= q <= p + 1e-12
    assert curve.largest_p(q, level) >= p - 1e-9
    if q > 1e-6:
        assert curve.largest_p(q - 1e-6, level) < p


@given(CURVES, LEVELS, SHARES, SHARES)
def test_the_level_is_where_the_claim_begins_to_allow_both(curve, more, p, q):
    level = float(curve.level(p, q))
    assert p <= curve.largest_p(q, level + 1e-6 + more) + 1e-9
    if level > 1e-3:
        assert p > curve.largest_p(q, level - 1e-3)


@given(CURVES, LEVELS, LEVELS, SHARES, SHARES)
def test_claims_are_nested_and_curves_concave_and_symmetric(curve, level, more, a, b):
    low, high = sorted((a, b))
    assert curve.largest_p(low, level) <= curve.largest_p(high, level) + 1e-12
    assert curve.largest_p(a, level) <= curve.largest_p(a, level + more) + 1e-12
    assert (
        curve.largest_p((a + b) / 2, level)
        >= (curve.largest_p(a, level) + curve.largest_p(b, level)) / 2 - 1e-12
    )
    # Exchanging the inputs and taking the complement gives the same curve: F(1 - F(q)) = 1 - q where F(q) < 1.
    if curve.largest_p(a, level) < 1 - 1e-6 and a > curve.delta:
        assert curve.largest_p(1 - curve.largest_p(a, level), level) >= 1 - a - 1e-6


COUNTS = st.tuples(st.integers(1, 39), st.integers(1, 39))


@settings(max_examples=5)  # the exact method takes a fifth of a second
@given(
    COUNTS, st.sampled_from(["exact", "clopper-pearson"]), st.sampled_from([0.0, 0.05])
)
def test_bounds_from_counts_grow_with_the_evidence(counts, method, delta):
    first, second = counts
    options = {"method": method, "delta": delta}
    found = from_counts(first, 40, second, 40, **options).lower
    # The exact bound is a chain over a grid of ratio 1 + 0.2/sqrt(80), of which it may lose one step.
    assert from_counts(first + 1, 40, second, 40, **options).lower >= found / 1.023
    assert from_counts(first, 40, second - 1, 40, **options).lower >= found / 1.023
    assert (
        from_counts(first, 40, second, 40, alpha=0.2, **options).lower >= found / 1.023
    )


@given(
    st.integers(0, 60),
    st.integers(1, 60),
    st.integers(0, 30),
    st.sampled_from([0.0, 1e-3]),
    st.data(),
)
def test_bounds_from_guesses_grow_with_the_evidence(
    correct, guesses, unguessed, delta, data
):
    correct = min(correct, guesses)
    method = data.draw(st.sampled_from(methods("guesses", delta=delta)))
    options = {"method": method, "delta": delta, "canaries": guesses + unguessed}
    found = from_guesses(correct, guesses, **options).lower
    assert from_guesses(correct, guesses, alpha=0.2, **options).lower >= found
    if correct < guesses:
        assert from_guesses(correct + 1, guesses, **options).lower >= found - 1e-9


@given(
    st.integers(1, 40),
    st.integers(1, 40),
    CURVES,
    SHARES,
    st.floats(1, 3),
    LEVELS,
    LEVELS,
)
def test_the_recursion_is_monotone_in_alpha_and_level(
    correct, guesses, curve, alpha, factor, level, more
):
    correct = min(correct, guesses)
    refuted = curve_refuted(correct, guesses, guesses, curve, level, alpha)[0]
    if refuted:
        assert curve_refuted(
            correct, guesses, guesses, curve, level, min(1.0, alpha * factor)
        )[0]
    else:
        assert not curve_refuted(
            correct, guesses, guesses, curve, level + more, alpha * (1 - 1e-9)
        )[0]


@given(st.integers(0, 2**32 - 1), st.sampled_from(["scan", "dkw"]))
def test_only_the_order_of_the_scores_matters(seed, method):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat([0, 1], 30))
    scores = labels + rng.integers(-3, 4, 60)
    rows = rng.permutation(60)
    found = from_scores(scores, labels, design="coin", method=method).lower
    assert from_scores(
        np.exp(scores[rows] / 2), labels[rows], design="coin", method=method
    ).lower == pytest.approx(found)


@given(
    st.builds(
        Bound,
        method=st.text(),
        parameter=st.sampled_from(["epsilon", "mu"]),
        lower=st.floats(0, allow_infinity=True, allow_nan=False),
        alpha=st.floats(0.001, 0.999),
        n=st.integers(0),
        statistic=st.text(),
        assumptions=st.lists(st.text()),
        source=st.text(),
        claim=st.none() | st.floats(0.001, 100),
        p_value=st.none() | st.floats(0, 1),
        refuted=st.booleans(),
    )
)
def test_a_bound_survives_json(bound):
    assert Bound.from_json(bound.to_json()) == bound
    assert bound.statement


@given(st.floats(0, 64), st.floats(1e-12, 0.999))
def test_the_searches_end_on_the_safe_side(level, alpha):
    found = highest_rejected(lambda levels: levels <= level)
    assert level - 1e-9 <= found <= level
    p_value = smallest_alpha(lambda alphas: alphas >= alpha)
    assert alpha <= p_value <= alpha * (1 + 1e-8)


@given(st.sets(st.integers(0, 300), max_size=5), st.floats(1e-3, 60))
def test_a_chain_ends_below_the_first_level_that_stands(standing, claim):
    """A p-value that is not monotone: some levels far down are not rejected."""
    asked = []

    def p_value(level, _):
        asked.append(level)
        return 1.0 if len(asked) - 1 in standing else 0.0

    found = highest_chain(p_value, lambda level: 1.0, alpha=0.05, claim=claim, n=100)
    assert asked == sorted(asked)
    expected = (
        asked[min(standing) - 1]
        if standing and min(standing) > 0
        else (0.0 if standing else asked[-1])
    )
    assert found == expected
    if not standing:
        assert claim in asked
