"""What every adjacency obeys: pairs that it lists, enumerates or generates are neighbours, and an enumeration has all."""

import dataclasses
import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditdp.adjacency import (
    AnyValues,
    Box,
    Canaries,
    Edges,
    Fields,
    NeighbourList,
    NeighbourLists,
    Neighbours,
    Nodes,
    Pair,
    QueryAnswers,
    Records,
    Relationship,
    Rows,
)
from auditdp.adjacency.adjacency import offers
from auditdp.errors import AdjacencyError
from auditdp.mechanism.protocol import identity_key


@dataclasses.dataclass
class Person:
    age: int
    city: str
    ok: bool


class Row(NamedTuple):
    age: int
    city: str
    ok: bool


FIELDS = {"age": st.integers(0, 1000), "city": st.text(max_size=3), "ok": st.booleans()}
PERSON = st.fixed_dictionaries(
    {
        "age": st.integers(0, 120),
        "city": st.sampled_from("ABC"),
        "pay": st.floats(0, 1e5),
    }
)
NUMBER = st.integers(0, 1000)
GRAPHS = [
    *(NeighbourList(n) for n in (2, 3, 5, 8, 30)),
    *(NeighbourLists(n) for n in (2, 3, 6)),
    *(NeighbourLists(3, protected) for protected in ((1,), (0, 2))),
    NeighbourLists(7, protected=(6,)),
    *(Edges(n) for n in (2, 3, 4, 9)),
    Edges(4, among=(0, 2)),
    *(Relationship(n) for n in (4, 6)),
    *(
        Nodes(n, change, loops)
        for n in (2, 3, 4, 7)
        for change in ("replaced", "removed")
        for loops in (False, True)
    ),
    Nodes(1, "removed", loops=True),
]
VALUES = [
    AnyValues((0, 1)),
    AnyValues(tuple(range(7)), label="label LDP"),
    AnyValues((0.0, 0.5, 1.0), finite=False),
    AnyValues(([0, 1], [1, 0], [1, 1])),
    QueryAnswers(1),
    QueryAnswers(4),
    QueryAnswers(4, "all"),
    QueryAnswers(5, "all", sensitivity=0.5, shortest=2),
    *(
        QueryAnswers(k, change, largest=most)
        for k in (1, 3)
        for change in ("one", "all")
        for most in (1, 2)
    ),
    QueryAnswers(3, "all", largest=2, sensitivity=2.0),
    *(Box(-1, 1), Box(0, 1, 4), Box(-2.5, 7, 5, shortest=2)),
    *(
        Records(1, (0.0, 1.0)),
        Records(3, (-1.0, 0.0, 1.0)),
        Records(2, (0.0, 0.5, 2.0), 2),
        Records(3, ("a", "bc"), 2),
    ),
    *(Canaries(n) for n in (1, 2, 7)),
    *(
        Fields(FIELDS, change, into)
        for change in ("one", "any")
        for into in (dict, Person, Row)
    ),
]
ROWS = [
    Rows(NUMBER, "add/remove"),
    Rows(NUMBER, "replace"),
    Rows(NUMBER, "replace", least=5, most=5, into=tuple),
    Rows(NUMBER, "add/remove", least=3, most=300),
    Rows(st.floats(), "add/remove"),
    Rows(st.floats(0, 1), "add/remove", into=np.ndarray),
    Rows(st.integers(), "replace", into=np.ndarray),
    Rows(
        st.lists(st.floats(0, 1), min_size=2, max_size=2), "add/remove", into=np.ndarray
    ),
    Rows(st.characters(codec="ascii"), "replace", into=str, called="character"),
    Rows(st.text(), "add/remove", called="word"),
    Rows(PERSON, "add/remove"),
    *(
        Rows(PERSON, change, into=into)
        for change in ("add/remove", "replace")
        for into in (dict, "table")
    ),
    Rows(st.builds(Person, st.integers(0, 120), st.text(), st.booleans()), "replace"),
    Rows(st.dates(), "add/remove"),
    Rows(st.booleans(), "replace", most=1),
]
CHECKED = [*GRAPHS, *VALUES, *ROWS]


def key(pair):
    return frozenset((identity_key(pair.data), identity_key(pair.neighbour)))


@pytest.mark.parametrize(
    "adjacency", [*CHECKED, Neighbours([(0, 1), Pair(1, 2)])], ids=lambda a: a.name
)
def test_pairs_that_are_played_or_break_code_are_distinct_neighbours(adjacency):
    assert adjacency.pairs()
    for pairs in (adjacency.pairs(), offers(adjacency).corner_cases or []):
        for pair in pairs:
            adjacency.check(pair)
            adjacency.check(pair.swapped())
            assert identity_key(pair.data) != identity_key(pair.neighbour)
        once = len({key(pair) for pair in pairs}) == len(pairs)
        assert once or isinstance(
            adjacency, QueryAnswers | Records
        )  # of few values, some of whose patterns are the same


@pytest.mark.parametrize("adjacency", CHECKED, ids=lambda a: a.name)
def test_what_is_generated_are_neighbours_and_among_all_where_these_are_listed(
    adjacency,
):
    everything = adjacency.exhaustive()
    listed = {key(pair) for pair in everything or ()}
    strategy, wide = adjacency.strategy(), offers(adjacency).wide

    @given(strategy if wide is None else strategy | wide)
    def generated(pair):
        adjacency.check(pair)
        adjacency.check(pair.swapped())
        assert everything is None or key(pair) in listed
        with pytest.raises(AdjacencyError):
            adjacency.check(Pair(pair.data, pair.data))

    generated()


def edges(nodes):
    return math.comb(nodes, 2)


COUNTS = [
    *((NeighbourList(n), (n - 1) * 2 ** (n - 2)) for n in range(2, 9)),
    *((Edges(n), edges(n) * 2 ** (edges(n) - 1)) for n in (2, 3, 4, 5)),
    (Edges(4, among=(0, 2)), 2**5),
    (Relationship(4), 6 * 2**5),
    *((NeighbourLists(n), n * (n - 1) * 2 ** (n * (n - 1) - 1)) for n in (2, 3)),
    (NeighbourLists(3, protected=(1,)), 2 * 2**5),
    (NeighbourLists(3, protected=(0, 2)), 4 * 2**5),
    *((AnyValues(tuple(range(k))), math.comb(k, 2)) for k in (2, 3, 10)),
    # By node, 2^3 graphs of the others and C(8, 2) pairs of neighbour sets, less 6·2^5 that are counted for both ends.
    (Nodes(4), 4 * 8 * 28 - 6 * 32),
    # By node, 2^3 graphs and 7 sets of neighbours, less the 6·2 graphs in which an edge stands alone.
    (Nodes(4, "removed"), 4 * 8 * 7 - 12),
    # By the nodes that are there: k of each of the C(4, k)·2^C(k, 2) graphs.
    (Nodes(4, "removed", loops=True), 4 * 64 + 3 * 4 * 8 + 2 * 6 * 2 + 4),
    # One change: 3 places, 2 steps, 3² others; all: ((3·3−2)³ − 3³)/2, steps −1, 0, 1 within 0..2 less none.
    (QueryAnswers(3, largest=2), 54),
    (QueryAnswers(3, "all", largest=2), 158),
    # Of 3² populations of two records each has 2 others for either record.
    (Records(2, (-1.0, 0.0, 1.0)), 9 * 2 * 2 // 2),
    (Records(2, ("a", "bc")), 4),
    # Each of 3 canaries, with the 2² sets of the others.
    (Canaries(3), 12),
]


@pytest.mark.parametrize(
    ("adjacency", "count"), COUNTS, ids=lambda value: getattr(value, "name", value)
)
def test_an_enumeration_lists_every_pair_once(adjacency, count):
    pairs = adjacency.exhaustive()
    assert len({key(pair) for pair in pairs}) == len(pairs) == count
    for pair in pairs:
        adjacency.check(pair)


MANY = [
    *(NeighbourList(60), Edges(8), NeighbourLists(6), Neighbours([(0, 1)]), *ROWS[:1]),
    *(
        AnyValues(tuple(range(201))),
        AnyValues((0, 1), finite=False),
        Box(-1, 1),
        Records(9, (0.0, 1.0, 2.0)),
    ),
    *(
        Nodes(5),
        Nodes(9, "removed"),
        Nodes(200, "removed", loops=True),
        Canaries(1_000),
    ),
    *(
        QueryAnswers(3),
        QueryAnswers(12, "all", largest=5),
        Fields(FIELDS, "one"),
        Edges(8, unlabelled=True),
    ),
]


@pytest.mark.parametrize("adjacency", MANY, ids=lambda a: a.name)
def test_where_there_are_too_many_nothing_is_enumerated(adjacency):
    assert adjacency.exhaustive() is None
