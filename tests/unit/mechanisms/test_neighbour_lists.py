"""Neighbour lists in little memory: the same graph as arcs, and the same cells."""

import numpy as np
import pytest

from auditdp.errors import MechanismError
from mechanisms.edges import DPRR, sparse
from mechanisms.graphs import Graph, barabasi_albert
from mechanisms.neighbour_lists import PackedLists, id_type

GRAPHS = [
    Graph(5, np.array([[0, 0, 1, 3], [1, 4, 3, 4]])),
    Graph(4, np.empty((2, 0), int)),
    barabasi_albert(60, 3, np.random.default_rng(0)),
]


@pytest.mark.parametrize("graph", GRAPHS)
def test_lists_hold_the_arcs_of_the_graph(graph):
    lists = PackedLists.of(graph)
    np.testing.assert_array_equal(lists.graph.arcs, graph.arcs)
    np.testing.assert_array_equal(lists.sizes, graph.degrees)
    assert lists.targets.dtype == np.int32


def test_lists_of_a_directed_graph():
    lists = PackedLists(np.array([0, 2, 2, 3]), np.array([1, 2, 0], np.int32))
    again = PackedLists.of(lists.graph)
    np.testing.assert_array_equal(again.starts, lists.starts)
    np.testing.assert_array_equal(again.targets, lists.targets)


@pytest.mark.parametrize("users", [[0, 1, 2, 3, 4], [1, 4], []])
def test_cells_are_those_of_the_rows(users):
    users = np.array(users, np.int64)
    np.testing.assert_array_equal(
        PackedLists.of(GRAPHS[0]).cells(users), sparse.row_cells(GRAPHS[0], users)
    )


def test_starts_that_are_not_those_of_the_targets():
    with pytest.raises(
        MechanismError, match="expected starts from 0 to the number of targets, 3"
    ):
        PackedLists(np.array([0, 1, 2]), np.array([1, 0, 1]))


def test_ids_have_four_bytes_as_long_as_they_fit():
    assert id_type(2**31 - 1) is np.int32
    assert id_type(2**31) is np.int64


@pytest.mark.parametrize("users", [None, [3, 17, 40, 59]])
def test_without_noise_the_lists_come_back_whatever_the_blocks(monkeypatch, users):
    monkeypatch.setattr(sparse, "BLOCK", 7)
    graph = GRAPHS[2]
    noisy = DPRR(1e6, 60.0).whole_graph(
        graph, rng=np.random.default_rng(1), users=users
    )
    kept = np.isin(graph.arcs[0], range(60) if users is None else users)
    np.testing.assert_array_equal(noisy.arcs, graph.arcs[:, kept])
