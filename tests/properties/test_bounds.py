"""Properties of every record.

Bounds grow with the evidence and with alpha, and depend on nothing else.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditdp.bounds import from_counts, from_guesses, from_scores, methods
from auditdp.bounds.bound_levels import highest_chain, highest_rejected, smallest_alpha
from auditdp.bounds.one_run import curve_refuted
from auditdp.bounds.privacy_curves import EpsilonDelta, Gaussian

CURVES = st.one_of(
    st.builds(EpsilonDelta, st.sampled_from([0.0, 1e-5, 0.1])), st.just(Gaussian())
)
LEVELS = st.floats(0, 5)
SHARES = st.floats(0.001, 0.999)


@given(CURVES, LEVELS, SHARES)
def test_smallest_q_is_the_inverse_of_largest_p(curve, level, p):
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
    p, q = (float(curve.largest_p(x, level)) for x in sorted((a, b)))
    assert p <= q + 1e-12
    assert curve.largest_p(a, level) <= curve.largest_p(a, level + more) + 1e-12
    assert curve.largest_p((a + b) / 2, level) >= (p + q) / 2 - 1e-12

    # F(1 - F(q)) = 1 - q where F(q) < 1: inputs exchanged, complement of the event.
    most = curve.largest_p(a, level)
    if most < 1 - 1e-6 and a > curve.delta:
        assert curve.largest_p(1 - most, level) >= 1 - a - 1e-6


@settings(max_examples=4)  # the exact method takes a fifth of a second
@given(
    st.integers(1, 8),
    st.integers(1, 8),
    st.sampled_from(["exact", "clopper-pearson"]),
    st.sampled_from([0.0, 0.05]),
)
def test_bounds_from_counts_grow_with_the_evidence(first, second, method, delta):
    def bound(first, second, alpha=0.05):
        options = {"method": method, "delta": delta, "alpha": alpha}
        return from_counts(first, 9, second, 9, **options).lower

    # The exact bound is one of a grid of ratio 1 + 0.2/sqrt(18), and may lose one step.
    least = bound(first, second) / 1.048
    assert bound(first + 1, second) >= least
    assert bound(first, second - 1) >= least
    assert bound(first, second, alpha=0.2) >= least


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


@given(st.integers(1, 40), st.integers(1, 40), CURVES, SHARES, LEVELS, LEVELS)
def test_the_recursion_is_monotone_in_alpha_and_level(
    correct, guesses, curve, alpha, level, more
):
    def refuted(level, alpha):
        return curve_refuted(right, guesses, guesses, curve, level, alpha)[0]

    right = min(correct, guesses)
    if refuted(level, alpha):
        assert refuted(level, min(1.0, alpha * (1 + more)))
    else:
        assert not refuted(level + more, alpha * (1 - 1e-9))


@given(st.integers(0, 2**32 - 1), st.sampled_from(["scan", "dkw"]))
def test_only_the_order_of_the_scores_matters(seed, method):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat([0, 1], 30))
    scores = labels + rng.integers(-3, 4, 60)
    rows = rng.permutation(60)
    options = {"design": "coin", "method": method}
    found = from_scores(scores, labels, **options).lower
    again = from_scores(np.exp(scores[rows] / 2), labels[rows], **options).lower

    assert again == pytest.approx(found)


@given(st.floats(0, 64), st.floats(1e-12, 0.999))
def test_the_searches_end_on_the_safe_side(level, alpha):
    found = highest_rejected(lambda levels: levels <= level)
    assert level - 1e-9 <= found <= level
    p_value = smallest_alpha(lambda alphas: alphas >= alpha)
    assert alpha <= p_value <= alpha * (1 + 1e-8)


@given(st.sets(st.integers(0, 300), max_size=5), st.floats(1e-3, 60))
def test_a_chain_ends_below_the_first_level_that_stands(standing, claim):
    """A p-value that is not monotone: some levels far down are not rejected."""
    tested = []

    def p_value(level, _):
        tested.append(level)
        return 1.0 if len(tested) - 1 in standing else 0.0

    found = highest_chain(p_value, lambda level: 1.0, alpha=0.05, claim=claim, n=100)
    assert tested == sorted(tested)

    below = tested[: min(standing)] if standing else tested
    assert found == max(below, default=0.0)
    assert standing or claim in tested
