"""Generated graphs against their expectations; features and conversions against small cases by hand."""

import math

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import contains_self_loops, is_undirected

from auditdp.errors import ConfigurationError, MechanismError
from gnn.datasets import features, generated, published
from gnn.datasets.conversion import restricted, to_data, to_graph
from gnn.sparse import csr, rows
from gnn.validation import DataError
from mechanisms.graphs import DirectedGraph, Graph

RNG = np.random.default_rng
PATH = to_data(Graph.of(3, [[0, 1], [1, 2]]))


def blocks(seed=0, **changed):
    arguments = {"inside": 0.2, "across": 0.05, "features": 4, "signal": 3.0} | changed
    return generated.stochastic_block_model([60, 90], rng=RNG(seed), **arguments)


def test_block_model_counts():
    """Edges inside and across are binomial: each count lies within six standard deviations (two-sided 2e-9 each)."""
    data = blocks()
    assert data.y.bincount().tolist() == [60, 90]
    assert is_undirected(data.edge_index)
    assert not contains_self_loops(data.edge_index)
    same = data.y[data.edge_index[0]] == data.y[data.edge_index[1]]
    for count, pairs, p in (
        (int(same.sum()) / 2, math.comb(60, 2) + math.comb(90, 2), 0.2),
        (int((~same).sum()) / 2, 60 * 90, 0.05),
    ):
        assert abs(count - pairs * p) < 6 * math.sqrt(pairs * p * (1 - p))


def test_block_model_with_more_edges_across():
    data = blocks(inside=0.0, across=0.1)
    assert data.num_edges > 0
    assert (data.y[data.edge_index[0]] != data.y[data.edge_index[1]]).all()
    assert blocks(inside=0.0, across=0.0).num_edges == 0


def test_block_model_features_have_means_at_the_signal():
    """The mean of N(s·u, I) over m nodes has norm s up to about √(k/m); here within 6·√(4/60)."""
    data = blocks()
    for c in (0, 1):
        assert abs(float(data.x[data.y == c].mean(dim=0).norm()) - 3) < 6 * math.sqrt(
            4 / 60
        )
    silent = blocks(signal=0.0)
    assert float(silent.x[silent.y == 0].mean(dim=0).norm()) < 6 * math.sqrt(4 / 60)


def test_a_seed_is_a_graph():
    assert (blocks(0).edge_index == blocks(0).edge_index).all()
    assert blocks(0).edge_index.shape != blocks(1).edge_index.shape


def test_barabasi_albert():
    graphs = generated.barabasi_albert(3, 50, 3, rng=RNG(0))
    assert [graph.num_edges for graph in graphs] == [2 * 3 * 47] * 3
    assert [int(graph.y) for graph in graphs] == [0, 1, 0]


def test_threads_are_like_those_of_reddit():
    """Degree 2.32 on average; discussions have one hub, questions several; sizes vary."""
    graphs = generated.threads(200, rng=RNG(0))
    nodes, arcs = (
        sum(getattr(graph, f"num_{what}") for graph in graphs)
        for what in ("nodes", "edges")
    )
    assert arcs / nodes == pytest.approx(2.32, abs=0.1)
    assert nodes / 200 == pytest.approx(429.6, rel=0.4)
    assert [int(graph.y) for graph in graphs] == [0, 1] * 100
    shares = [[], []]
    for graph in graphs:
        degrees = graph.edge_index[0].bincount().sort(descending=True).values
        shares[int(graph.y)].append(float(degrees[0] / degrees[:5].sum()))
    assert np.mean(shares[1]) > np.mean(shares[0]) + 0.2
    assert not any(contains_self_loops(graph.edge_index) for graph in graphs)
    assert (
        min(
            graph.num_nodes for graph in generated.threads(50, mean_nodes=7, rng=RNG(0))
        )
        >= 6
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: blocks(inside=1.5), "inside, a probability"),
        (lambda: blocks(across=-0.1), "across, a probability"),
        (lambda: blocks(features=0), "features, an integer >= 1"),
        (lambda: blocks(signal=-1.0), r"signal in \[0"),
        (
            lambda: generated.stochastic_block_model(
                [], inside=1, across=0, features=1, signal=0, rng=RNG()
            ),
            "communities",
        ),
        (
            lambda: generated.stochastic_block_model(
                [0], inside=1, across=0, features=1, signal=0, rng=RNG()
            ),
            "sizes",
        ),
        (lambda: generated.barabasi_albert(0, 9, 3, rng=RNG()), "count"),
        (lambda: generated.barabasi_albert(1, 3, 3, rng=RNG()), "nodes"),
        (lambda: generated.threads(1, mean_nodes=2, rng=RNG()), "mean_nodes"),
        (lambda: generated.threads(1, cycles=1.0, rng=RNG()), "cycles"),
        (lambda: published.published("coraa", "."), "did you mean 'cora"),
    ],
)
def test_refusals(call, message):
    with pytest.raises((ConfigurationError, MechanismError), match=message):
        call()


@pytest.mark.parametrize(
    ("name", "expected"), [("cora", "Planetoid"), ("reddit_multi_5k", "TUDataset")]
)
def test_published_data_sets_are_torch_geometrics(
    name, expected, monkeypatch, tmp_path
):
    monkeypatch.setattr(published.datasets, expected, lambda *given: given)
    assert published.published(name, tmp_path)[0] == str(tmp_path / name)


def test_graphs_there_and_back():
    graph = Graph.of(5, [[3, 0, 1], [1, 2, 2]])
    data = to_data(graph, y=torch.tensor([1]))
    assert (to_graph(data).edges == graph.edges).all()
    assert data.num_nodes == 5
    lists = DirectedGraph.from_matrix(np.array([[0, 1], [0, 0]]))
    assert to_data(lists).edge_index.tolist() == [[0], [1]]


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_restricted_to_some_nodes(layout):
    data = to_data(Graph.of(4, [[0, 1, 2], [1, 2, 3]]), y=torch.tensor([5, -1, 2, 5]))
    data.x = torch.arange(8.0).reshape(4, 2)
    if layout == "sparse":
        data.x = data.x.to_sparse_csr()
    part = restricted(data, torch.tensor([True, True, False, True]))
    assert part.edge_index.tolist() == [[0, 1], [1, 0]]
    assert part.y.tolist() == [0, -1, 0]
    assert part.num_classes == 1
    assert part.x.to_dense().tolist() == [[0, 1], [2, 3], [6, 7]]
    with pytest.raises(DataError, match="no node"):
        restricted(data, torch.zeros(4, dtype=torch.bool))


def test_features_of_a_path():
    assert features.constant(PATH, 2).tolist() == [[1, 1]] * 3
    assert features.one_hot_degree(PATH, 3).tolist() == [
        [0, 1, 0],
        [0, 0, 1],
        [0, 1, 0],
    ]
    assert features.one_hot_degree(PATH, 2).tolist() == [[0, 1]] * 3
    assert (features.identity(PATH).to_dense() == torch.eye(3)).all()
    uniform = features.uniform(PATH, 4, generator=torch.Generator().manual_seed(0))
    assert uniform.shape == (3, 4)
    assert 0 <= uniform.min() <= uniform.max() < 1
    with pytest.raises(ConfigurationError, match="width, an integer >= 1"):
        features.constant(PATH, 0)


def test_isolated_nodes_have_degree_0():
    data = Data(edge_index=torch.empty(2, 0, dtype=torch.long), num_nodes=2)
    assert features.one_hot_degree(data, 2).tolist() == [[1, 0], [1, 0]]


def test_rows_normalised_dense_and_sparse():
    x = torch.tensor([[1.0, 3.0], [0.0, 0.0], [0.0, 2.0]])
    expected = [[0.25, 0.75], [0.0, 0.0], [0.0, 1.0]]
    assert features.rows_normalised(x).tolist() == expected
    assert features.rows_normalised(x.to_sparse_csr()).to_dense().tolist() == expected


def test_scaled():
    x = torch.tensor([[1.0, 3.0], [3.0, 3.0], [2.0, 3.0]])
    assert features.scaled(x).tolist() == [[0, 0], [1, 0], [0.5, 0]]
    assert features.scaled(x, -1, 1)[:, 0].tolist() == [-1, 1, 0]
    with pytest.raises(DataError, match="expected dense features"):
        features.scaled(x.to_sparse_csr())


def test_a_matrix_without_entries_has_contiguous_parts():
    """An empty array of numpy has stride 0, which not every version of torch takes for contiguous."""
    none = np.zeros(0, dtype=np.int32)
    x = csr(none, none, np.zeros(4, dtype=np.int32), (3, 2))
    assert x.col_indices().stride() == x.values().stride() == (1,)
    assert x.to_dense().tolist() == [[0, 0]] * 3


def test_rows_of_a_sparse_matrix():
    x = csr(np.array([1, 2, 3]), np.array([0, 2, 1]), np.array([0, 2, 2, 3]), (3, 3))
    index = torch.tensor([2, 0, 0, 1])
    assert rows(x, index).to_dense().tolist() == x.to_dense()[index].tolist()
    assert rows(x, index[:0]).shape == (0, 3)
