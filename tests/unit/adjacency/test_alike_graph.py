"""Graphs like a given pair: read in each form, changed in one node as the given ones are, and of as many nodes."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings

from auditdp.adjacency import Alike, Pair
from auditdp.adjacency.alike_graph import ADDED, EDGES, REPLACED, AlikeGraph, graph_of
from auditdp.errors import AdjacencyError
from auditdp.training.trainers import neighbours

X, Y = np.array([[3.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, 0.0], [0.0, 2.0]]), np.array([0, 1, 0, 1, 1])
ARCS = np.array([[0, 1, 1, 2, 3, 4, 1, 4], [1, 0, 2, 1, 4, 3, 4, 1]])
NODE = 1
BESIDE = ARCS[:, (ARCS != NODE).all(axis=0)]
REMOVED = Pair((X, Y, ARCS), (np.delete(X, NODE, 0), np.delete(Y, NODE), BESIDE - (BESIDE > NODE)))
OTHER = X.copy()
OTHER[NODE] = X[0]


def as_objects(pair):
    sides = (dict(zip(("x", "y", "edge_index"), data, strict=True)) for data in (pair.data, pair.neighbour))
    return Pair(*(SimpleNamespace(**side, num_nodes=len(side["x"])) for side in sides))


def as_lists(pair):
    return Pair(*((*data[:2], [tuple(edge) for edge in data[2].T.tolist()]) for data in (pair.data, pair.neighbour)))


DIRECTED = Pair((X, ARCS[:, ::2]), (X, ARCS[:, ::2][:, (ARCS[:, ::2] != NODE).all(axis=0)]))
PAIRS = [
    (REMOVED, ADDED),
    (as_objects(REMOVED).swapped(), ADDED),
    (as_lists(REMOVED), ADDED),
    (DIRECTED, EDGES),
    (Pair((X, ARCS), (OTHER, BESIDE)), REPLACED),
]


def parts(data):
    graph = graph_of(data)
    return graph.records.rows, set(map(tuple, graph.arcs.T.tolist()))


@pytest.mark.parametrize(("pair", "what"), PAIRS)
def test_corner_cases_are_pairs_of_the_same_change_on_as_many_nodes(pair, what):
    adjacency = AlikeGraph([pair])
    assert what in adjacency.name
    found = [AlikeGraph([each]) for each in adjacency.corner_cases()]
    assert len(found) > 8
    assert {each._what for each in found} <= {what, REPLACED if what == EDGES else what}
    hubs = [each for each in adjacency.corner_cases() if "hub of all others" in each.name]
    for each in hubs:
        rows, edges = max(map(parts, (each.data, each.neighbour)), key=lambda side: (len(side[0]), len(side[1])))
        assert len(rows) == len(X)
        assert {node for edge in edges if NODE in edge for node in edge} == set(range(len(X)))
        assert rows.min() >= min(X.min(), Y.min())
        assert np.linalg.norm(rows[:, :2], axis=1).max() <= 3 + 1e-9


def test_edges_of_an_undirected_graph_come_both_ways_and_of_a_directed_one_either_way():
    both = [parts(pair.data)[1] for pair in AlikeGraph([REMOVED]).corner_cases()]
    assert all({(b, a) for a, b in edges} == edges for edges in both)
    stars = [parts(pair.data)[1] for pair in AlikeGraph([DIRECTED]).corner_cases() if pair.name.endswith("all others")]
    assert {frozenset(edges) for edges in stars} == {
        frozenset((NODE, k) for k in (0, 2, 3, 4)),
        frozenset((k, NODE) for k in (0, 2, 3, 4)),
    }


def test_the_form_of_a_graph_is_kept():
    made = AlikeGraph([as_objects(REMOVED)]).corner_cases()[0]
    assert (made.data.num_nodes, made.neighbour.num_nodes) == (5, 4)
    assert (made.data.x.dtype, made.data.y.dtype, made.data.edge_index.dtype) == (X.dtype, Y.dtype, ARCS.dtype)
    assert isinstance(AlikeGraph([as_lists(REMOVED)]).corner_cases()[0].data[2], list)


@settings(max_examples=20, deadline=None)
@given(AlikeGraph([REMOVED]).strategy())
def test_generated_pairs_differ_in_one_node_as_well(pair):
    assert AlikeGraph([pair])._what == ADDED


def test_what_is_no_graph_is_left_to_its_records():
    assert graph_of((X, Y)) is None
    assert graph_of((X, np.array([[0, 9], [1, 2]]))) is None
    assert isinstance(neighbours(((X, Y), (X[:-1], Y[:-1])), search=True), Alike)
    assert isinstance(neighbours(REMOVED, search=True), AlikeGraph)
    with pytest.raises(AdjacencyError, match="differ in one node"):
        AlikeGraph([Pair((X, ARCS), (X, ARCS[:, :3]))])
