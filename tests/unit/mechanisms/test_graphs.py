"""Graphs refuse malformed edge lists; generators and the loader give what their sources say."""

import os
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from auditdp.errors import MechanismError
from mechanisms.graphs import (
    DirectedGraph,
    Graph,
    barabasi_albert,
    erdos_renyi,
    load_graph,
    load_graphs,
)

PATH = np.array([[0, 1, 2], [1, 2, 3]])


def data_file(name):
    beside = Path(__file__).resolve().parents[3].parent / "shared" / "data"
    path = Path(os.environ.get("AUDITDP_DATA", beside)) / name
    if not path.exists():
        pytest.skip(f"{name} is not in AUDITDP_DATA or ../shared/data")
    return path


def test_a_graph_knows_its_degrees_arcs_and_matrix():
    graph = Graph(4, PATH)
    assert graph.degrees.tolist() == [1, 2, 2, 1]
    assert graph.arcs.T.tolist() == [[0, 1], [1, 0], [1, 2], [2, 1], [2, 3], [3, 2]]
    matrix = graph.to_matrix()
    assert matrix.dtype == np.int8
    assert (matrix == matrix.T).all()
    np.testing.assert_array_equal(Graph.from_matrix(matrix).edges, PATH)


def test_an_empty_graph():
    graph = Graph(3, np.empty((2, 0), np.int64))
    assert graph.degrees.tolist() == [0, 0, 0]
    assert graph.arcs.shape == (2, 0)
    assert not graph.to_matrix().any()


def test_of_sorts_mirrors_and_drops_repetitions():
    np.testing.assert_array_equal(
        Graph.of(4, [[3, 1, 1, 0, 2], [2, 2, 0, 1, 2]]).edges, PATH
    )


def test_edges_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        Graph(4, PATH).edges[0, 0] = 3


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        (4, [[1], [0]], "i < j"),
        (4, [[1], [1]], "i < j"),
        (4, [[0, 0], [1, 1]], "i < j"),
        (4, [[1, 0], [2, 1]], "ascending"),
        (4, [[0], [4]], "from 0 to 3"),
        (4, [[-1], [2]], "from 0 to 3"),
        (4, [[0, 1, 2]], "shape"),
        (4, [[0.0], [1.0]], "integer"),
        (-1, [[0], [1]], "nodes"),
    ],
)
def test_malformed_edges_are_refused(nodes, edges, message):
    with pytest.raises(MechanismError, match=message):
        Graph(nodes, np.array(edges))


def test_from_matrix_refuses_loops_and_asymmetry():
    with pytest.raises(MechanismError, match="zero diagonal"):
        Graph.from_matrix(np.eye(3))
    with pytest.raises(MechanismError, match="symmetric"):
        Graph.from_matrix(np.triu(np.ones((3, 3)), 1))


def test_directed_graphs():
    graph = DirectedGraph(3, np.array([[0, 2, 2], [1, 0, 1]]))
    assert graph.out_degrees.tolist() == [1, 0, 2]
    np.testing.assert_array_equal(
        DirectedGraph.from_matrix(graph.to_matrix()).arcs, graph.arcs
    )
    with pytest.raises(MechanismError, match="without loops"):
        DirectedGraph(3, np.array([[0], [0]]))


def test_erdos_renyi_at_the_ends():
    rng = np.random.default_rng(0)
    assert erdos_renyi(5, 0.0, rng).edges.shape == (2, 0)
    np.testing.assert_array_equal(erdos_renyi(5, 1.0, rng).edges, np.triu_indices(5, 1))
    with pytest.raises(MechanismError, match="probability"):
        erdos_renyi(5, 1.5, rng)


def test_barabasi_albert_has_the_shape_of_networkx():
    ours = barabasi_albert(200, 3, np.random.default_rng(0))
    theirs = nx.barabasi_albert_graph(200, 3, seed=0)
    assert ours.edges.shape[1] == theirs.number_of_edges() == 3 * (200 - 3)
    assert ours.degrees[4:].min() >= 3
    assert nx.is_connected(nx.Graph(ours.edges.T.tolist()))
    with pytest.raises(MechanismError, match="nodes"):
        barabasi_albert(3, 3, np.random.default_rng(0))


def test_cora_has_the_published_counts():
    graph = load_graph(data_file("cora.npz"))
    assert (graph.nodes, graph.edges.shape[1], graph.degrees.max()) == (2708, 5278, 168)


def test_reddit_binary_has_the_published_counts():
    """Hidano & Murakami print 2000 graphs, 429.6 nodes and degree 2.32 on average, degree 3062 at most."""
    graphs = load_graphs(data_file("reddit_binary.npz"))
    nodes, edges = (
        sum(v) for v in zip(*((g.nodes, g.edges.shape[1]) for g in graphs), strict=True)
    )
    assert len(graphs) == 2000
    assert edges == 995_508
    assert nodes / 2000 == pytest.approx(429.627)
    assert 2 * edges / nodes == pytest.approx(2.317, abs=5e-4)
    assert max(g.degrees.max() for g in graphs) == 3062


def test_the_loader_says_what_is_wrong(tmp_path):
    with pytest.raises(MechanismError, match="no such file"):
        load_graph(tmp_path / "nothing.npz")
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    with pytest.raises(MechanismError, match="lacks kind"):
        load_graph(tmp_path / "other.npz")
    np.savez(
        tmp_path / "node.npz",
        kind="node",
        num_nodes=4,
        edge_index=PATH,
        edges_stored="once_u_lt_v",
    )
    assert load_graph(tmp_path / "node.npz").nodes == 4
    with pytest.raises(MechanismError, match="use load_graph"):
        load_graphs(tmp_path / "node.npz")
