"""Values at which code breaks, of intervals, of any structure, and in sums."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditdp.adjacency.corner_cases import (
    Domain,
    at_limits,
    ends,
    numbers,
    values,
    with_extremes,
)
from auditdp.adjacency.pair_search import first_values
from auditdp.errors import AdjacencyError
from auditdp.mechanism.protocol import identity_key


def test_integers_at_which_code_breaks():
    found = set(numbers(None, None, whole=True))
    for power in (7, 8, 15, 16, 31, 32, 53, 63):
        limit = 2**power
        assert {limit - 1, limit, -limit, -limit - 1} <= found
    assert {0, 1, -1, 181, 182, 46340, 46341} <= found
    assert set(map(type, found)) == {int}


def test_floats_at_which_code_breaks():
    found = numbers(-math.inf, math.inf, whole=False)
    assert {math.inf, -math.inf, 5e-324, 2.0**31, 1e300} <= set(found)
    assert any(x == 0 and math.copysign(1, x) < 0 for x in found)
    assert set(map(type, found)) == {float}


@given(st.integers(-(10**6), 10**6), st.integers(0, 10**6), st.booleans())
def test_numbers_lie_in_their_interval_with_the_ends_first(low, width, whole):
    found = numbers(low, low + width, whole=whole)
    assert all(low <= x <= low + width for x in found)
    assert {found[0], found[-1 if len(found) == 1 else 1]} == {low, low + width}
    assert len({repr(x) for x in found}) == len(found)


STRUCTURES = [
    (st.integers(0, 9), (0, 9)),
    (st.integers(2**40), (2**40, 2**41)),
    (st.booleans(), (False, True)),
    (st.sampled_from("abc"), ("a", "c")),
    (st.tuples(st.integers(0, 9), st.booleans()), ((0, False), (9, True))),
    (st.fixed_dictionaries({"a": st.integers(3, 4)}), ({"a": 3}, {"a": 4})),
    (st.builds(complex, st.integers(0, 9), imag=st.just(1)), (0 + 1j, 9 + 1j)),
    (st.integers(0, 9).map(str), ("0", "9")),
    (st.integers(0, 9) | st.none(), (0, 9)),
]


@pytest.mark.parametrize(("strategy", "expected"), STRUCTURES, ids=str)
def test_the_ends_of_a_structure_are_those_of_its_leaves(strategy, expected):
    assert ends(strategy) == expected
    known = {identity_key(value) for value in values(strategy)}
    assert known & {identity_key(value) for value in expected}
    assert first_values(with_extremes(strategy), 5)


@pytest.mark.parametrize(
    "strategy", [st.dates(), st.integers(0, 9).filter(lambda x: 0 < x < 9)], ids=str
)
def test_ends_of_an_unknown_structure_differ(strategy):
    low, high = ends(strategy)
    assert low != high


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (st.text("ab c", max_size=12), ("", "a a a a a a ")),
        (st.text("xy", min_size=1, max_size=3), ("x", "xxx")),
    ],
)
def test_a_long_text_has_as_many_words_as_fit(texts, expected):
    assert ends(texts) == expected


def test_a_strategy_without_values_has_no_ends():
    with pytest.raises(AdjacencyError, match="generates something"):
        ends(st.nothing())


def test_excluded_values_are_not_tried():
    odd = st.fixed_dictionaries({"n": st.integers(0, 10**6).filter(lambda x: x % 2)})
    assert all(value["n"] % 2 for value in first_values(with_extremes(odd), 30))
    assert not any(map(math.isnan, values(st.floats(allow_nan=False))))
    assert any(map(math.isnan, values(st.floats())[:3]))
    normal = values(st.floats(allow_subnormal=False))
    assert not any(0 < abs(x) < 2.2e-308 for x in normal)


def test_limits_among_listed_values():
    low = [100, 101, 127, 128, 129, 181, 182, 199]
    assert at_limits(range(100, 300)) == [*low, 255, 256, 257, 298, 299]
    assert at_limits(["a", "b"]) == []


@given(st.integers(0, 100), st.integers(1, 1000), st.integers(1, 60), st.data())
def test_numbers_with_a_sum_come_as_near_as_integers_can(low, width, count, data):
    domain = Domain(low, low + width, whole=True)
    total = data.draw(st.integers(count * low, count * (low + width)))
    made = domain.summing(total, count)
    assert sum(made) == total
    assert all(low <= x <= low + width for x in made)


def test_listed_numbers_with_a_sum_stay_among_those_listed():
    domain = Domain.listing((0, 3, 10))
    assert domain.summing(29, 4) == [10, 10, 3, 3]
    assert Domain.listing(("a", 1)) is None
    assert Domain.of(st.text()) is None
    assert Domain.of(st.sampled_from((3, 1))) == Domain(1, 3, listed=(1, 3))
    assert Domain.of(st.integers(0, 1000)).limits(40) == [128, 256, 32768]
    assert Domain.of(st.integers(2**40)) == Domain(2**40, 2**41, whole=True)
    assert Domain.of(st.floats(max_value=3)) == Domain(-(2.0**31), 3.0)
