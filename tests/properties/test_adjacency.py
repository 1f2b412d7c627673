"""Every generated pair is a neighbouring pair, and every enumeration holds every generated pair."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditdp.adjacency import AnyValues, Edges, NeighbourList, NeighbourLists, Neighbours, Relationship, as_adjacency
from auditdp.errors import AdjacencyError

adjacencies = st.one_of(
    st.builds(NeighbourList, st.integers(2, 30)),
    st.builds(Edges, st.integers(2, 9)),
    st.builds(Relationship, st.integers(2, 6)),
    st.integers(2, 6).flatmap(
        lambda n: st.builds(
            NeighbourLists,
            st.just(n),
            st.none() | st.lists(st.integers(0, n - 1), min_size=1, unique=True).map(tuple),
        )
    ),
    st.builds(AnyValues, st.lists(st.integers() | st.floats(allow_nan=False), min_size=2, unique_by=repr).map(tuple)),
    st.builds(Neighbours, st.lists(st.tuples(st.integers(), st.integers()), min_size=1)),
)


def key(pair):
    return frozenset(np.asarray(side).tobytes() for side in (pair.data, pair.neighbour))


@given(adjacencies, st.data())
def test_every_generated_pair_is_adjacent_in_both_orders(adjacency, data):
    pair = data.draw(adjacency.strategy())
    adjacency.check(pair)
    adjacency.check(pair.swapped())


@given(adjacencies)
def test_every_listed_pair_is_adjacent(adjacency):
    for pair in adjacency.pairs():
        adjacency.check(pair)


EVERYTHING = [
    (a, {key(p) for p in a.exhaustive()})
    for a in (NeighbourList(5), Edges(4), NeighbourLists(3), AnyValues((0, 1, 2, 3)))
]


@pytest.mark.parametrize(("adjacency", "everything"), EVERYTHING, ids=[a.name for a, _ in EVERYTHING])
@given(data=st.data())
def test_an_enumeration_holds_whatever_can_be_generated(adjacency, everything, data):
    assert key(data.draw(adjacency.strategy())) in everything


@pytest.mark.parametrize("adjacency", [NeighbourList(6), NeighbourLists(4), Edges(5)], ids=lambda a: a.name)
@given(data=st.data())
def test_an_input_is_not_its_own_neighbour(adjacency, data):
    pair = data.draw(adjacency.strategy())
    with pytest.raises(AdjacencyError):
        adjacency.check(type(pair)(pair.data, pair.data.copy()))


@given(st.data())
def test_a_second_flip_is_always_noticed(data):
    adjacency = NeighbourList(data.draw(st.integers(3, 20)))
    pair = data.draw(adjacency.strategy())
    differs = int(np.flatnonzero(pair.data != pair.neighbour)[0])
    second = data.draw(st.integers(0, adjacency.nodes - 2).filter(lambda j: j != differs))
    far = pair.data.copy()
    far[second] ^= 1
    with pytest.raises(AdjacencyError, match="2 bits"):
        adjacency.check(type(pair)(far, pair.neighbour))


@given(st.lists(st.tuples(st.integers(), st.integers()), min_size=1))
def test_a_list_of_pairs_is_read_in_order(pairs):
    assert [(p.data, p.neighbour) for p in as_adjacency(pairs).pairs()] == pairs
