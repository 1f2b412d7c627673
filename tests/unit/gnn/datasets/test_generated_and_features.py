"""Generated graphs against their expectations; features and conversions by hand."""

import math

import numpy as np
import pytest
import torch
from torch import tensor
from torch_geometric.utils import contains_self_loops, is_undirected

from gnn.datasets import features, generated
from gnn.datasets.conversion import restricted, to_data, to_graph
from gnn.sparse import csr, rows
from gnn.validation import DataError
from mechanisms.graphs import DirectedGraph, Graph
from tests.unit.gnn.draws import arcs, rng

PATH = to_data(Graph.of(3, arcs("01 12")))


def blocks(seed=0, sizes=(60, 90), **changed):
    arguments = {"inside": 0.2, "across": 0.05, "features": 4, "signal": 3.0} | changed
    return generated.stochastic_block_model(sizes, rng=rng(seed), **arguments)


# Graphs


@pytest.mark.parametrize(
    ("inside", "across"),
    [
        (0.2, 0.05),
        (0.0, 0.1),
    ],
)
def test_block_models_have_binomial_counts(inside, across):
    """Within six standard deviations."""
    data = blocks(inside=inside, across=across)
    assert data.y.bincount().tolist() == [60, 90]
    assert is_undirected(data.edge_index)
    assert not contains_self_loops(data.edge_index)

    first, second = data.y[data.edge_index]
    other = int((first != second).sum()) / 2
    pairs = math.comb(60, 2) + math.comb(90, 2)
    for count, n, p in (
        (data.num_edges / 2 - other, pairs, inside),
        (other, 60 * 90, across),
    ):
        assert abs(count - n * p) <= 6 * math.sqrt(n * p * (1 - p))


def test_a_block_model_is_a_function_of_its_seed():
    first, same, other = (blocks(seed).edge_index for seed in (0, 0, 1))
    assert first.equal(same)
    assert not first.equal(other)


def test_threads_are_like_those_of_reddit():
    """Degree 2.32 on average; discussions have one hub, and questions several."""
    graphs = generated.threads(100, rng=rng())
    nodes = sum(graph.num_nodes for graph in graphs)
    edges = sum(graph.num_edges for graph in graphs)

    assert edges / nodes == pytest.approx(2.32, abs=0.1)
    assert nodes / 100 == pytest.approx(429.6, rel=0.5)
    assert [int(graph.y) for graph in graphs] == [0, 1] * 50

    shares = []
    for graph in graphs:
        degrees, _ = graph.edge_index[0].bincount().sort(descending=True)
        shares.append(float(degrees[0] / degrees[:5].sum()))

    assert np.mean(shares[1::2]) > np.mean(shares[::2]) + 0.2

    small = generated.threads(50, mean_nodes=7, rng=rng())
    assert min(graph.num_nodes for graph in small) >= 6


# Conversions


def test_graphs_there_and_back():
    graph = Graph.of(5, arcs("31 02 12"))
    data = to_data(graph, y=tensor([1]))

    assert (to_graph(data).edges == graph.edges).all()
    assert data.num_nodes == 5

    lists = DirectedGraph.from_matrix(np.array([[0, 1], [0, 0]]))
    assert to_data(lists).edge_index.tolist() == [[0], [1]]


@pytest.mark.parametrize("sparse", [False, True])
def test_graphs_restricted_to_some_nodes(sparse):
    data = to_data(Graph.of(4, arcs("01 12 23")), y=tensor([5, -1, 2, 5]))
    x = torch.arange(8.0).reshape(4, 2)
    data.x = x.to_sparse_csr() if sparse else x
    kept = tensor([True, True, False, True])
    part = restricted(data, kept)

    assert part.edge_index.tolist() == [[0, 1], [1, 0]]
    assert part.y.tolist() == [0, -1, 0]
    assert part.num_classes == 1
    assert part.x.to_dense().equal(x[kept])
    with pytest.raises(DataError, match="no node"):
        restricted(data, torch.zeros_like(kept))


def test_rows_of_a_sparse_matrix():
    x = csr(np.array([1, 2, 3]), np.array([0, 2, 1]), np.array([0, 2, 2, 3]), (3, 3))
    index = tensor([2, 0, 0, 1])

    assert rows(x, index).to_dense().equal(x.to_dense()[index])
    assert rows(x, index[:0]).shape == (0, 3)


def test_a_matrix_without_entries_has_contiguous_parts():
    """An empty array of numpy has stride 0, which some versions of torch refuse."""
    none = np.zeros(0, dtype=np.int32)
    x = csr(none, none, np.zeros(4, dtype=np.int32), (3, 2))

    assert x.col_indices().stride() == x.values().stride() == (1,)
    assert x.to_dense().tolist() == [[0, 0]] * 3


# Features


def test_features_of_a_path():
    assert features.constant(PATH, 2).tolist() == [[1, 1]] * 3
    assert features.one_hot_degree(PATH, 3).argmax(dim=1).tolist() == [1, 2, 1]
    assert features.one_hot_degree(PATH, 2).tolist() == [[0, 1]] * 3
    assert features.identity(PATH).to_dense().equal(torch.eye(3))


def test_the_degree_of_isolated_nodes():
    isolated = to_data(Graph(2, np.empty((2, 0), int)))
    assert features.one_hot_degree(isolated, 2).tolist() == [[1, 0], [1, 0]]


def test_rows_are_normalised():
    x = tensor(
        [
            [1.0, 3.0],
            [0.0, 0.0],
            [0.0, 2.0],
        ]
    )
    expected = [
        [0.25, 0.75],
        [0.0, 0.0],
        [0.0, 1.0],
    ]
    for given in (x, x.to_sparse_csr()):
        assert features.rows_normalised(given).to_dense().tolist() == expected


def test_columns_are_scaled_and_constant_ones_are_the_least():
    x = tensor(
        [
            [1.0, 3.0],
            [3.0, 3.0],
            [2.0, 3.0],
        ]
    )
    assert features.scaled(x).tolist() == [
        [0, 0],
        [1, 0],
        [0.5, 0],
    ]
    assert features.scaled(x, -1, 1)[:, 0].tolist() == [-1, 1, 0]
    with pytest.raises(DataError, match="expected dense features"):
        features.scaled(x.to_sparse_csr())
