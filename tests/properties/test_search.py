"""Searches return what they saw, in order and within their cost, for any target."""

import math

from hypothesis import given
from hypothesis import strategies as st

from auditdp.adjacency.pair_search import maximise, smallest

TOP = 10**6
seeds = st.integers(0, 2**63 - 1)


@given(st.integers(0, TOP), seeds, st.integers(1, 80))
def test_what_is_returned_was_scored_and_comes_best_first(peak, seed, examples):
    asked = []

    def score(x):
        asked.append(x)
        return -abs(x - peak)

    found = maximise(st.integers(0, TOP), score, examples=examples, seed=seed)
    assert len(asked) <= examples
    assert sorted(x for _, x in found) == sorted(set(asked))
    assert [score for score, _ in found] == sorted(
        (-abs(x - peak) for _, x in found), reverse=True
    )
    assert found == maximise(st.integers(0, TOP), score, examples=examples, seed=seed)


@given(st.integers(0, TOP), seeds)
def test_a_threshold_is_found_exactly(threshold, seed):
    """In the strategy's order the simplest number above a threshold is the threshold; nine tenths are met at once."""
    found = smallest(
        st.integers(0, TOP),
        lambda x: x >= 0.9 * threshold,
        score=float,
        examples=400,
        seed=seed,
    )
    assert found == math.ceil(0.9 * threshold)


@given(st.sets(st.integers(0, 50)), seeds, st.integers(1, 80))
def test_what_is_returned_holds(wanted, seed, examples):
    asked = []

    def holds(xs):
        asked.append(xs)
        return wanted <= set(xs)

    found = smallest(
        st.lists(st.integers(0, 50), max_size=60), holds, examples=examples, seed=seed
    )
    assert len(asked) <= 2 * examples
    assert found is None or wanted <= set(found)
    assert (found is None) == (not any(wanted <= set(xs) for xs in asked))
