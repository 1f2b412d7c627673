"""Pairs and adjacencies are accepted in many forms: inputs, values, given pairs."""

import numpy as np
import pytest
from hypothesis import find
from hypothesis import strategies as st

from auditdp.adjacency import (
    AnyValues,
    Box,
    NeighbourList,
    Neighbours,
    Pair,
    QueryAnswers,
    Records,
    as_adjacency,
)
from auditdp.errors import AdjacencyError
from tests.unit.adjacency.toys import both, vectors


def test_distinct_values_are_those_that_differ_within_the_digits_of_a_double():
    """Vectors may differ in the middle alone.

    A difference in the twelfth digit is rounding.
    """
    base = np.zeros(30)
    middle, end = base.copy(), base.copy()
    middle[15], end[-1] = 1, 1
    assert len(AnyValues((base, middle, end), finite=True).exhaustive()) == 3
    AnyValues((base, middle)).check(Pair(base, middle))
    close = AnyValues((np.array([0.1]), np.array([0.1 + 1e-12])), finite=True)
    assert len(close.exhaustive()) == 1


def test_the_two_ends_of_any_values_are_played_first_and_at_most_sixteen_pairs():
    pairs = AnyValues(tuple(range(10))).pairs()
    assert both(pairs[0]) == (9, 0)
    assert len(pairs) == 16
    assert len(AnyValues((0, 1, 2)).pairs()) == 3


A, B = np.array([0, 1, 0]), np.array([0, 1, 1])
ACCEPTED = [
    (Pair(0, 1), [(0, 1)]),
    ((Pair(0, 1), (2, 3)), [(0, 1), (2, 3)]),
    ([(0, 1), Pair(2, 3)], [(0, 1), (2, 3)]),
    (((0, 0), (0, 1)), [((0, 0), (0, 1))]),
    ((("a", 1), ("a", 1.0, 2)), [(("a", 1), ("a", 1.0, 2))]),
    (({"x": 1}, {"x": 2}), [({"x": 1}, {"x": 2})]),
    ((A, B), [(A, B)]),
]


@pytest.mark.parametrize(("given", "expected"), ACCEPTED, ids=lambda v: repr(v)[:40])
def test_pairs_are_accepted_in_many_shapes(given, expected):
    assert repr(list(map(both, as_adjacency(given).pairs()))) == repr(expected)


def test_an_adjacency_is_accepted_as_it_is():
    adjacency = NeighbourList(4)
    assert as_adjacency(adjacency) is adjacency


WRONG = [3, None, "ab", np.zeros((2, 2)), {0: 1}, [], (), [1, 2], [A, B], (0, 1, 2)]


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_other_objects_are_refused(wrong):
    with pytest.raises(AdjacencyError):
        as_adjacency(wrong)


def test_two_pairs_that_could_be_one_are_refused_with_both_readings():
    readings = (
        r"one pair, \(0, 1\) \| \(2, 3\), and as two, 0 \| 1 and 2 \| 3: "
        r"write Pair\(\(0, 1\), \(2, 3\)\) .* \[\(0, 1\), \(2, 3\)\], for the two"
    )
    with pytest.raises(AdjacencyError, match=readings):
        as_adjacency(((0, 1), (2, 3)))


CORNERS = [
    (AnyValues(tuple(range(1001))), "128 | 127"),
    (QueryAnswers(3, largest=1000), "0 1000 0 | 0 999 0"),
    (QueryAnswers(1), "2147483648 | 2147483647"),
    (QueryAnswers(2, "all"), "-128 0 | -129 0"),
    (Box(0, 200, 3), "200 0 0 | 0 0 0"),
    (Records(3, (0.0, 100.0)), "100 0 100 | 100 0 0"),
]


def content(pair):
    return {tuple(np.ravel(side).astype(float)) for side in both(pair)}


@pytest.mark.parametrize(("adjacency", "expected"), CORNERS)
def test_corner_cases_lie_at_limits_and_ends(adjacency, expected):
    assert content(vectors(expected)) in map(content, adjacency.corner_cases())


def test_adjacencies_of_few_values_or_of_pairs_have_no_corner_cases():
    assert AnyValues(("a", "b", "c")).corner_cases() == []
    assert Neighbours([(0, 1)]).corner_cases() == []


def test_given_pairs_may_have_a_strategy():
    searched = Neighbours([(0, 1)], search=st.integers(0, 9).map(lambda x: (x, x + 1)))
    assert find(searched.strategy(), lambda pair: pair.data > 3).neighbour == 5
    assert 9 in {pair.data for pair in searched.corner_cases()}
    of_no_pairs = Neighbours([(0, 1)], search=st.just(3))
    with pytest.raises(AdjacencyError, match=r"pairs \(data, neighbour\), got 3"):
        find(of_no_pairs.strategy(), lambda pair: True)


ROWS, LABELS = np.arange(60.0).reshape(30, 2), np.zeros(30, int)
OTHER = ROWS * (np.arange(30) != 3)[:, None]
SHAPES = "2 items: array of shape (30, 2), array of shape (30,)"
LONG = list(range(100, 150))
TEXTS = [
    (Pair(1, 0, "ends").swapped(), "ends: 0 | 1"),
    (
        Pair((ROWS, LABELS), (OTHER, LABELS)),
        f"{SHAPES} | {SHAPES} ([0][3] is [6.,7.] | [0.,0.])",
    ),
    (
        Pair((ROWS[1:], LABELS[1:]), (ROWS, LABELS)),
        "([0][0] is absent | [0.,1.])",
    ),
    (
        Pair((ROWS, LABELS), (ROWS[:29], LABELS[:29])),
        "([0][29] is [58.,59.] | absent)",
    ),
    (Pair([1000] * 33, [1000] * 32), "33 items: 33 × 1000 | 32 items: 32 × 1000"),
    (Pair([*LONG, 7], [*LONG, 8]), "… ([50] is 7 | 8)"),
]


@pytest.mark.parametrize(("pair", "end"), TEXTS, ids=[text for _, text in TEXTS])
def test_the_text_of_a_pair_is_short_and_ends_with_the_difference(pair, end):
    assert str(pair).endswith(end)
    assert len(str(pair)) < 150
