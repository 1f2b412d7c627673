"""Every adjacency lists, enumerates and generates neighbours.

An enumeration has all of them.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditdp import (
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
from tests.unit.adjacency.toys import FIELDS, NUMBER, PERSON, Person, Row

NOT_COUNTED = -1
COUNTED = [
    *((NeighbourList(n), (n - 1) * 2 ** (n - 2)) for n in (2, 3, 8)),
    *((NeighbourLists(n), n * (n - 1) * 2 ** (n * (n - 1) - 1)) for n in (2, 3)),
    (NeighbourLists(3, protected=(1,)), 2 * 2**5),
    *((Edges(n), math.comb(n, 2) * 2 ** (math.comb(n, 2) - 1)) for n in (2, 4, 5)),
    (Edges(4, among=(0, 2)), 2**5),
    (Relationship(4), 6 * 2**5),
    *((Nodes(n), NOT_COUNTED) for n in (2, 3)),
    # By node, 2³ graphs of the others and C(8, 2) pairs of neighbour sets, less the
    # 6·2⁵ that are counted for both ends.
    (Nodes(4), 4 * 8 * 28 - 6 * 32),
    # By node, 2³ graphs and 7 sets of neighbours, less the 6·2 graphs in which an
    # edge stands alone.
    (Nodes(4, "removed"), 4 * 8 * 7 - 12),
    # By the nodes that are there: k of each of the C(4, k)·2^C(k, 2) graphs.
    (Nodes(4, "removed", loops=True), 4 * 64 + 3 * 4 * 8 + 2 * 6 * 2 + 4),
    (Nodes(4, "replaced", loops=True), NOT_COUNTED),
    (Nodes(1, "removed", loops=True), 1),
    *((AnyValues(tuple(range(k))), math.comb(k, 2)) for k in (2, 10)),
    # One change: 3 places, 2 steps, 3² others. All changes: ((3·3−2)³ − 3³)/2, which
    # are steps −1, 0, 1 within 0..2 less none.
    (QueryAnswers(3, largest=2), 54),
    (QueryAnswers(3, "all", largest=2), 158),
    (QueryAnswers(3, "all", largest=2, sensitivity=2.0), NOT_COUNTED),
    # Of 3² populations of two records each has 2 others for either record.
    (Records(2, (-1.0, 0.0, 1.0)), 9 * 2 * 2 // 2),
    (Records(2, (0.0, 0.5, 2.0), 2), NOT_COUNTED),
    (Records(2, ("a", "bc")), 4),
    # Each of 3 canaries, with the 2² sets of the others.
    (Canaries(3), 12),
]
TOO_MANY = [
    NeighbourList(60),
    NeighbourLists(6),
    Edges(8, unlabelled=True),
    Nodes(5),
    AnyValues(tuple(range(201))),
    AnyValues((0.0, 0.5, 1.0), finite=False),
    QueryAnswers(12, "all", largest=5),
    Box(-2.5, 7, 5, shortest=2),
    Canaries(100),
    *(Fields(FIELDS, "one", into) for into in (dict, Person, Row)),
    Fields(FIELDS, "any"),
    *(Rows(NUMBER, change) for change in ("add/remove", "replace")),
    Rows(st.floats(0, 1), "add/remove", into=np.ndarray),
    Rows(st.characters(codec="ascii"), "replace", into=str),
    Rows(PERSON, "replace", into=dict),
    Rows(PERSON, "add/remove", into="table"),
    Rows(st.one_of(st.none(), st.tuples(st.text())), "add/remove"),
]
CASES = [*COUNTED, *((adjacency, None) for adjacency in TOO_MANY)]
of_each = pytest.mark.parametrize(
    "adjacency", [adjacency for adjacency, _ in CASES], ids=lambda each: each.name
)


def key(pair):
    return frozenset((identity_key(pair.data), identity_key(pair.neighbour)))


def check_neighbours(adjacency, pair):
    adjacency.check(pair)
    adjacency.check(pair.swapped())
    assert len(key(pair)) == 2
    assert len(str(pair)) < 400


@of_each
def test_listed_pairs_and_corner_cases_are_distinct_neighbours(adjacency):
    assert adjacency.pairs()
    for pairs in (adjacency.pairs(), offers(adjacency).corner_cases or []):
        for pair in pairs:
            check_neighbours(adjacency, pair)
        distinct = len({key(pair) for pair in pairs}) == len(pairs)
        # With few values, some patterns of these two coincide.
        assert distinct or isinstance(adjacency, QueryAnswers | Records)


@pytest.mark.parametrize(("adjacency", "count"), CASES, ids=lambda v: str(v)[:40])
def test_generated_pairs_are_neighbours_and_an_enumeration_has_each_pair_once(
    adjacency, count
):
    everything = adjacency.exhaustive()
    listed = {key(pair) for pair in everything or ()}
    if count is None:
        assert everything is None
    else:
        assert len(listed) == len(everything)
        assert count in (NOT_COUNTED, len(listed))
    for pair in everything or ():
        adjacency.check(pair)
    strategy, wide = adjacency.strategy(), offers(adjacency).wide

    @given(strategy if wide is None else strategy | wide)
    def generated(pair):
        check_neighbours(adjacency, pair)
        assert everything is None or key(pair) in listed
        with pytest.raises(AdjacencyError):
            adjacency.check(Pair(pair.data, pair.data))

    generated()


def test_given_pairs_are_played_and_not_enumerated():
    given_pairs = Neighbours([(0, 1), Pair(1, 2)])
    assert len(given_pairs.pairs()) == 2
    assert given_pairs.exhaustive() is None


NAMES = [
    (Edges(4, unlabelled=True), "up to their order"),
    (Nodes(4), "node DP (the edges of one node replaced), 4 ids"),
    (
        Nodes(1, "removed", loops=True),
        "node DP (one node added or removed), 1 id, self-loops",
    ),
    (
        Rows(st.text(), "replace", least=3, most=3, into=tuple, called="word"),
        "one word replaced (3 words of text(), tuple)",
    ),
    (
        Fields(FIELDS, "any", Person),
        "value LDP (any fields of a record change), Person of age, city, ok",
    ),
    (Neighbours([(0, 1)]), "not checked"),
]


@pytest.mark.parametrize(("adjacency", "part"), NAMES)
def test_the_name_states_what_may_change(adjacency, part):
    assert part in adjacency.name


def test_the_name_is_short_and_states_no_missing_check_where_there_is_one():
    assert len(Rows(PERSON, "replace").name) < 120
    checked = Neighbours([(0, 1)], relation=lambda a, b: True)
    assert "not checked" not in checked.name
