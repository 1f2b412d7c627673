"""Graphs, numbers of their cells, their generators and loader, and drawn sets of cells."""

import os
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.cells import (
    arc_cells,
    arcs_at,
    bernoulli_cells,
    contains,
    distinct_cells,
    pair_cells,
    pair_count,
    pairs_at,
)
from mechanisms.edges import (
    DPRR,
    EdgeRand,
    LapGraph,
    LocalLaplaceRow,
    RandomisedResponse,
)
from mechanisms.graphs import (
    DirectedGraph,
    Graph,
    barabasi_albert,
    erdos_renyi,
    load_graph,
    load_graphs,
)
from tests.statistical.stated_laws import arcs

RNG = np.random.default_rng
PATH = arcs("01 12 23")
same = np.testing.assert_array_equal


@st.composite
def graphs(draw):
    nodes = draw(st.integers(2, 12))
    count = pair_count(nodes)
    present = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    return Graph(nodes, pairs_at(np.flatnonzero(present), nodes))


def data_file(name):
    beside = Path(__file__).resolve().parents[3].parent / "shared" / "data"
    path = Path(os.environ.get("AUDITDP_DATA", beside)) / name
    if not path.exists():
        pytest.skip(f"{name} is not in AUDITDP_DATA or ../shared/data")
    return path


@given(graphs())
def test_a_graph_has_its_matrix_degrees_and_arcs(graph):
    matrix = graph.to_matrix()
    same(matrix, matrix.T)
    same(Graph.from_matrix(matrix).edges, graph.edges)
    same(matrix.sum(axis=1), graph.degrees)
    same(np.stack(np.nonzero(matrix)), graph.arcs)


def test_of_sorts_mirrors_and_drops_repetitions():
    same(Graph.of(4, arcs("32 12 10 01 22")).edges, PATH)


def test_edges_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        Graph(4, PATH).edges[0, 0] = 3


def test_directed_graphs():
    graph = DirectedGraph(3, arcs("01 20 21"))
    assert graph.out_degrees.tolist() == [1, 0, 2]
    same(DirectedGraph.from_matrix(graph.to_matrix()).arcs, graph.arcs)


def test_erdos_renyi_at_the_ends():
    assert erdos_renyi(5, 0.0, RNG(0)).edges.shape == (2, 0)
    same(erdos_renyi(5, 1.0, RNG(0)).edges, np.triu_indices(5, 1))


def test_barabasi_albert_has_the_shape_of_networkx():
    """And is connected."""
    ours = barabasi_albert(200, 3, RNG(0))
    theirs = nx.barabasi_albert_graph(200, 3, seed=0)
    assert ours.edges.shape == (2, theirs.number_of_edges())
    assert ours.degrees[4:].min() >= 3
    assert nx.is_connected(nx.Graph(ours.edges.T.tolist()))


def test_cora_has_the_published_counts():
    graph = load_graph(data_file("cora.npz"))
    assert graph.nodes == 2708
    assert graph.edges.shape == (2, 5278)
    assert graph.degrees.max() == 168


def test_reddit_binary_has_the_published_counts():
    """Hidano & Murakami print 2000 graphs, 429.6 nodes and degree 2.32 on average, degree 3062 at most."""
    found = load_graphs(data_file("reddit_binary.npz"))
    nodes = sum(graph.nodes for graph in found)
    edges = sum(graph.edges.shape[1] for graph in found)
    assert (len(found), edges) == (2000, 995_508)
    assert nodes / 2000 == pytest.approx(429.627)
    assert 2 * edges / nodes == pytest.approx(2.317, abs=5e-4)
    assert max(graph.degrees.max() for graph in found) == 3062


@pytest.mark.parametrize("nodes", [2, 3, 7, 20])
def test_pairs_are_numbered_as_triu_indices_and_arcs_row_by_row(nodes):
    edges = np.triu_indices(nodes, 1)
    arcs = np.nonzero(~np.eye(nodes, dtype=bool))
    same(pairs_at(np.arange(pair_count(nodes)), nodes), edges)
    same(pair_cells(np.array(edges), nodes), np.arange(pair_count(nodes)))
    same(arcs_at(np.arange(2 * pair_count(nodes)), nodes), arcs)
    same(arc_cells(np.array(arcs), nodes), np.arange(2 * pair_count(nodes)))


def test_the_last_pair_of_a_large_graph_has_no_rounding():
    nodes = 3_000_000
    found = pairs_at([0, pair_count(nodes) - 1], nodes)
    same(found, [[0, nodes - 2], [1, nodes - 1]])


def test_contains():
    found = contains(np.array([1, 4]), [0, 1, 4, 9])
    assert found.tolist() == [False, True, True, False]
    assert not contains(np.array([], int), [3]).any()


@pytest.mark.parametrize(
    ("count", "p", "expected"),
    [
        (5, 0.0, []),
        (4, 1.0, [0, 1, 2, 3]),
        (0, 0.5, []),
        (10**10, 2**-53, []),
    ],
)
def test_bernoulli_cells_at_the_ends(count, p, expected):
    assert bernoulli_cells(count, p, RNG(0)).tolist() == expected


@given(st.data(), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_distinct_cells_are_distinct_free_and_of_the_given_number(data, capacity, seed):
    drawn = data.draw(st.sets(st.integers(0, 3 * capacity - 1)))
    taken = np.array(sorted(drawn), np.int64)
    rows = np.bincount(taken // capacity, minlength=3)
    sizes = np.array([data.draw(st.integers(0, capacity - n)) for n in rows.tolist()])
    keys = distinct_cells(sizes, capacity, RNG(seed), taken=taken)
    assert (np.diff(keys) > 0).all()
    assert drawn.isdisjoint(keys.tolist())
    same(np.bincount(keys // capacity, minlength=3), sizes)


@given(graphs(), st.floats(1e-3, 8.0), st.integers(0, 2**32 - 1))
def test_sparse_samplers_return_valid_graphs(graph, epsilon, seed):
    """The constructors of Graph and DirectedGraph check order, range, loops and repetitions."""
    for mechanism in (
        EdgeRand(epsilon, graph.nodes),
        LapGraph(epsilon, graph.nodes),
        RandomisedResponse(epsilon),
        DPRR(epsilon, epsilon),
        LocalLaplaceRow(epsilon),
    ):
        assert mechanism.whole_graph(graph, rng=RNG(seed)).nodes == graph.nodes
