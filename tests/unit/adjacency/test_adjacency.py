"""Adjacencies: the pairs they list are neighbours, all of them where they say so, and nothing else passes."""

import math
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import find
from hypothesis import strategies as st

from auditdp.adjacency import (
    AnyValues,
    Box,
    Edges,
    NeighbourList,
    NeighbourLists,
    Neighbours,
    Pair,
    QueryAnswers,
    Records,
    Relationship,
    as_adjacency,
)
from auditdp.errors import AdjacencyError


def identity(data):
    return np.asarray(data).tobytes() if isinstance(data, np.ndarray) else repr(data)


ZEROS = np.zeros(4, np.int8)
EMPTY = np.zeros((4, 4), np.int8)


def bits(*ones):
    row = ZEROS.copy()
    row[list(ones)] = 1
    return row


def matrix(*cells):
    made = EMPTY.copy()
    for cell in cells:
        made[cell] = 1
    return made


NOT_NEIGHBOURS = [
    (NeighbourList(5), Pair(bits(0, 1), ZEROS), "2 bits"),
    (NeighbourList(5), Pair(ZEROS, ZEROS), "0 bits"),
    (NeighbourList(5), Pair(bits(0), np.zeros(3)), r"\(3,\)"),
    (NeighbourList(5), Pair(2 * bits(0), ZEROS), "2,0,0,0"),
    (NeighbourList(5), Pair(0.5 * bits(0), ZEROS), "0.5"),
    (NeighbourList(5), Pair(bits(0).reshape(2, 2), ZEROS.reshape(2, 2)), r"\(2, 2\)"),
    (NeighbourLists(4), Pair(matrix((0, 1), (1, 2)), EMPTY), "2 bits"),
    (NeighbourLists(4), Pair(matrix((1, 1)), EMPTY), "off-diagonal"),
    (NeighbourLists(4), Pair(matrix((2, 2), (0, 1)), matrix((2, 2))), "off-diagonal"),
    (NeighbourLists(4), Pair(EMPTY, EMPTY), "0 bits"),
    (NeighbourLists(4, protected=(1,)), Pair(matrix((0, 1)), EMPTY), "user 0"),
    (Edges(4), Pair(matrix((0, 1)), EMPTY), "symmetric"),
    (Edges(4), Pair(matrix((1, 1)), EMPTY), "symmetric"),
    (Edges(4), Pair(matrix((0, 1), (1, 0), (2, 3), (3, 2)), EMPTY), "2 edges"),
    (Edges(4), Pair(EMPTY, EMPTY), "0 edges"),
    (Edges(4), Pair(ZEROS, EMPTY), r"\(4,\)"),
    (AnyValues((0, 1)), Pair(0, 7), "7"),
    (AnyValues((0, 1)), Pair(1, 1), "1"),
    (Neighbours([(0, 1)], relation=lambda a, b: abs(a - b) <= 1), Pair(3, 5), "3 | 5"),
]


@pytest.mark.parametrize(("adjacency", "pair", "shown"), NOT_NEIGHBOURS)
def test_inputs_that_are_not_neighbours_are_refused_with_what_is_wrong(
    adjacency, pair, shown
):
    for order in (pair, pair.swapped()):
        with pytest.raises(AdjacencyError, match=shown if order is pair else None):
            adjacency.check(order)


@pytest.mark.parametrize("kind", [NeighbourList, NeighbourLists, Edges, Relationship])
@pytest.mark.parametrize("nodes", [1, 0, -3, 2.0, "8", None], ids=repr)
def test_numbers_of_nodes_that_make_no_pairs_are_refused(kind, nodes):
    with pytest.raises(AdjacencyError, match="nodes"):
        kind(nodes)


@pytest.mark.parametrize("protected", [(), (3,), (-1,), (0, 9)], ids=repr)
def test_protected_users_must_exist(protected):
    with pytest.raises(AdjacencyError, match="protected"):
        NeighbourLists(3, protected=protected)


def test_one_value_has_no_neighbour():
    for values in ((), (1,), (1, 1)):
        with pytest.raises(AdjacencyError, match="two different values"):
            AnyValues(values)


def test_values_are_told_apart_however_long_they_are():
    """Vectors that differ only in the middle, or after the eighth digit, are different values."""
    base = np.zeros(30)
    middle, end = base.copy(), base.copy()
    middle[15], end[-1] = 1, 1
    assert len(AnyValues((base, middle, end), finite=True).exhaustive()) == 3
    AnyValues((base, middle)).check(Pair(base, middle))
    close = AnyValues((np.array([0.1]), np.array([0.1 + 1e-12])), finite=True)
    assert len(close.exhaustive()) == 1


def test_any_values_plays_the_two_ends_first_and_at_most_sixteen():
    pairs = AnyValues(tuple(range(10))).pairs()
    assert (pairs[0].data, pairs[0].neighbour) == (9, 0)
    assert len(pairs) == 16
    assert len(AnyValues((0, 1, 2)).pairs()) == 3


def test_the_names_say_what_is_protected_and_whether_it_is_checked():
    assert "user 1" in NeighbourLists(3, protected=(1,)).name
    assert "not checked" in Neighbours([(0, 1)]).name
    assert "not checked" not in Neighbours([(0, 1)], relation=lambda a, b: True).name
    assert "relationship" in Relationship(4).name
    assert "8 nodes" in NeighbourList(8).name


@pytest.mark.parametrize("given", [[], ()], ids=repr)
def test_neighbours_needs_a_pair(given):
    with pytest.raises(AdjacencyError, match="none"):
        Neighbours(given)


@pytest.mark.parametrize("item", [3, (1, 2, 3), "ab", np.zeros(2), None], ids=repr)
def test_what_is_no_pair_is_refused_and_shown(item):
    with pytest.raises(AdjacencyError, match="expected pairs"):
        Neighbours([(0, 1), item])


def played(pairs):
    return [
        (identity(p.data), identity(p.neighbour)) for p in as_adjacency(pairs).pairs()
    ]


A, B = np.array([0, 1, 0]), np.array([0, 1, 1])
ACCEPTED = [
    (Pair(0, 1), [(0, 1)]),
    ([Pair(0, 1), Pair(1, 2)], [(0, 1), (1, 2)]),
    ((Pair(0, 1), Pair(1, 2)), [(0, 1), (1, 2)]),
    ([(0, 1)], [(0, 1)]),
    ([(0, 1), (2, 3)], [(0, 1), (2, 3)]),
    ((Pair(0, 1), (2, 3)), [(0, 1), (2, 3)]),
    (((0, 0), (0, 1)), [((0, 0), (0, 1))]),
    ((("a", 1), ("a", 1.0, 2)), [(("a", 1), ("a", 1.0, 2))]),
    (((0, 1, 2), (0, 1)), [((0, 1, 2), (0, 1))]),
    ([(0, 1), Pair(2, 3), (4, 5)], [(0, 1), (2, 3), (4, 5)]),
    ((0, 1), [(0, 1)]),
    (("a", "b"), [("a", "b")]),
    ((A, B), [(A, B)]),
    ([(A, B)], [(A, B)]),
    (([0, 1, 0], [0, 1, 1]), [([0, 1, 0], [0, 1, 1])]),
    (([0, 1], [1, 1]), [([0, 1], [1, 1])]),
    (({"x": 1}, {"x": 2}), [({"x": 1}, {"x": 2})]),
]


@pytest.mark.parametrize(("given", "expected"), ACCEPTED, ids=lambda v: repr(v)[:40])
def test_as_adjacency_reads_pairs_in_every_shape_that_is_offered(given, expected):
    assert played(given) == [(identity(a), identity(b)) for a, b in expected]


def test_two_pairs_that_could_be_one_are_refused_with_both_readings_and_what_to_write():
    shown = (
        r"one pair, \(0, 1\) \| \(2, 3\), and as two, 0 \| 1 and 2 \| 3: "
        r"write Pair\(\(0, 1\), \(2, 3\)\) .* \[\(0, 1\), \(2, 3\)\], for the two"
    )
    with pytest.raises(AdjacencyError, match=shown):
        as_adjacency(((0, 1), (2, 3)))


def content(both):
    """What two inputs hold, whatever holds it, in either order."""
    sides = [np.asarray(side) for side in both]
    return {
        repr((side if side.dtype.kind == "U" else side.astype(np.float64)).tolist())
        for side in sides
    }


CORNERS = [
    (AnyValues(tuple(range(1001))), (128, 127)),
    (AnyValues(tuple(range(1001))), (1000, 0)),
    (QueryAnswers(1, largest=1000), ([128], [127])),
    (QueryAnswers(3, largest=1000), ([0, 1000, 0], [0, 999, 0])),
    (QueryAnswers(2, largest=200), ([200, 56], [200, 55])),
    (QueryAnswers(1), ([2**31], [2**31 - 1])),
    (QueryAnswers(2, "all"), ([-128, 0], [-129, 0])),
    (Box(0, 1), ([5e-324], [0])),
    (Box(0, 200, 3), ([200, 0, 0], [0, 0, 0])),
    (Records(3, (0.0, 100.0)), ([[100.0], [0.0], [100.0]], [[100.0], [0.0], [0.0]])),
    (Records(2, ("a", "b", "c")), ([["c"], ["c"]], [["c"], ["a"]])),
]


@pytest.mark.parametrize(
    ("adjacency", "expected"), CORNERS, ids=lambda value: getattr(value, "name", None)
)
def test_pairs_at_which_code_breaks_are_neighbours_and_go_to_limits_and_ends(
    adjacency, expected
):
    pairs = adjacency.corner_cases()
    for pair in pairs:
        adjacency.check(pair)
    assert content(expected) in [content((pair.data, pair.neighbour)) for pair in pairs]


def test_adjacencies_of_few_values_or_of_pairs_have_no_corner_cases():
    assert AnyValues(("a", "b", "c")).corner_cases() == []
    assert AnyValues((0, 1)).corner_cases() == []
    assert Neighbours([(0, 1)]).corner_cases() == []


def test_neighbours_with_a_strategy_generate_its_pairs():
    searched = Neighbours([(0, 1)], search=st.integers(0, 9).map(lambda x: (x, x + 1)))
    assert find(searched.strategy(), lambda pair: pair.data > 3).neighbour == 5
    assert Pair(9, 10).data in {pair.data for pair in searched.corner_cases()}
    with pytest.raises(
        AdjacencyError, match=r"search, a Hypothesis strategy of pairs .* got 3"
    ):
        Neighbours([(0, 1)], search=3)
    with pytest.raises(
        AdjacencyError, match=r"expected pairs \(data, neighbour\), got 3"
    ):
        find(Neighbours([(0, 1)], search=st.just(3)).strategy(), lambda pair: True)


def test_as_adjacency_returns_an_adjacency_as_it_is():
    adjacency = NeighbourList(4)
    assert as_adjacency(adjacency) is adjacency


@pytest.mark.parametrize(
    "wrong",
    [3, None, "ab", np.zeros((2, 2)), {0: 1}, [], (), [1, 2], [A, B], (0, 1, 2)],
    ids=repr,
)
def test_as_adjacency_refuses_what_it_cannot_read(wrong):
    with pytest.raises(AdjacencyError):
        as_adjacency(wrong)


def test_a_pair_shows_both_inputs_and_its_name():
    assert str(Pair(1, 0, "ends")) == "ends: 1 | 0"
    swapped = Pair(1, 0, "ends").swapped()
    assert (swapped.data, swapped.neighbour, swapped.name) == (0, 1, "ends")


@pytest.mark.parametrize(
    "adjacency", [NeighbourList(4), NeighbourLists(3), Edges(4)], ids=lambda a: a.name
)
def test_strategies_generate_both_orders(adjacency):
    assert find(
        adjacency.strategy(), lambda pair: pair.data.sum() > pair.neighbour.sum()
    )
    assert find(
        adjacency.strategy(), lambda pair: pair.data.sum() < pair.neighbour.sum()
    )


def test_only_edges_among_the_named_nodes_change():
    adjacency = Edges(4, among=(0, 2))
    for pair in [*adjacency.pairs(), *adjacency.exhaustive()]:
        assert np.argwhere(np.triu(pair.data != pair.neighbour)).tolist() == [[0, 2]]
    with pytest.raises(AdjacencyError, match="not between these nodes"):
        adjacency.check(Edges(4, among=(0, 1)).pairs()[0])
    for among in ((0,), (0, 0), (0, 4)):
        with pytest.raises(AdjacencyError, match="two or more of the nodes"):
            Edges(4, among=among)


def smallest_form(pair, inner):
    """The pair in the order of the nodes, among those that map the inner ones to themselves, that comes first."""
    orders = (
        p
        for p in permutations(range(len(pair.data)))
        if {p[i] for i in inner} == set(inner)
    )
    return min(
        (pair.data[np.ix_(p, p)].tobytes(), pair.neighbour[np.ix_(p, p)].tobytes())
        for p in orders
    )


@pytest.mark.parametrize(
    ("nodes", "among"), [(2, None), (3, None), (4, None), (4, (0, 1)), (4, (1, 2, 3))]
)
def test_unlabelled_pairs_are_one_of_each_that_differ_in_the_order_of_nodes(
    nodes, among
):
    every, one = Edges(nodes, among=among), Edges(nodes, among=among, unlabelled=True)
    inner = range(nodes) if among is None else among
    forms = [smallest_form(pair, inner) for pair in one.exhaustive()]
    assert len(forms) == len(set(forms))
    assert set(forms) == {smallest_form(pair, inner) for pair in every.exhaustive()}
    for pair in one.exhaustive():
        every.check(pair)
    assert "up to their order" in one.name


def test_unlabelled_pairs_of_more_nodes_are_as_many_as_counting_orbits_says():
    """By Burnside's lemma: the mean over reorderings of the pairs that they leave as they are."""
    for nodes in (5, 6):
        edges = list(combinations(range(nodes), 2))
        fixed = 0
        for order in permutations(range(nodes)):
            image = {e: tuple(sorted((order[e[0]], order[e[1]]))) for e in edges}
            cycles, left = 0, set(edges)
            while left:
                edge, cycles = left.pop(), cycles + 1
                while (edge := image[edge]) in left:
                    left.remove(edge)
            fixed += sum(e == f for e, f in image.items()) * 2 ** max(cycles - 1, 0)
        assert len(
            Edges(nodes, unlabelled=True).exhaustive()
        ) == fixed / math.factorial(nodes)


def test_a_pair_of_large_arrays_says_their_shapes_and_the_row_that_differs():
    rows, labels = np.arange(60.0).reshape(30, 2), np.zeros(30, int)
    other = rows.copy()
    other[3] = 0
    shapes = "2 items: array of shape (30, 2), array of shape (30,)"
    assert (
        str(Pair((rows, labels), (other, labels)))
        == f"{shapes} | {shapes} ([0][3] is [6.,7.] | [0.,0.])"
    )
    assert str(Pair((rows, labels), (rows, labels + 1))).endswith("([1][0] is 0 | 1)")
    assert str(Pair((other[1:], labels[1:]), (other, labels))).endswith(
        "([0][0] is absent | [0.,1.])"
    )
    assert str(Pair((rows, labels), (rows[:29], labels[:29]))).endswith(
        "([0][29] is [58.,59.] | absent)"
    )
