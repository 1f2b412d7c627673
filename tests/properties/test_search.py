"""Searches return scored values, in order and within their cost, for any target."""

from hypothesis import given
from hypothesis import strategies as st

from auditdp.adjacency.pair_search import maximise, smallest

TOP = 10**6
numbers = st.integers(0, TOP)
seeds = st.integers(0, 2**63 - 1)


@given(numbers, seeds, st.integers(1, 40))
def test_all_scored_values_are_returned_and_the_best_first(peak, seed, examples):
    scored = []

    def score(x):
        scored.append(x)
        return -abs(x - peak)

    found = maximise(numbers, score, examples=examples, seed=seed)
    assert len(scored) <= examples
    assert sorted(x for _, x in found) == sorted(set(scored))
    expected = sorted((-abs(x - peak) for _, x in found), reverse=True)
    assert [value for value, _ in found] == expected
    assert found == maximise(numbers, score, examples=examples, seed=seed)


@given(st.sets(st.integers(0, 50)), seeds, st.integers(1, 40))
def test_the_returned_value_has_the_property(wanted, seed, examples):
    visited = []

    def holds(xs):
        visited.append(xs)
        return wanted <= set(xs)

    lists = st.lists(st.integers(0, 50), max_size=60)
    found = smallest(lists, holds, examples=examples, seed=seed)
    assert len(visited) <= 2 * examples
    assert found is None or wanted <= set(found)
    assert (found is None) == (not any(wanted <= set(xs) for xs in visited))
