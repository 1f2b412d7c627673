"""The loader against the counts that the data folder states, and against files written here."""

import os

import numpy as np
import pytest
import torch
from torch_geometric.utils import contains_self_loops, is_undirected

from auditdp.errors import ConfigurationError
from gnn.datasets import GRAPH_SETS, NODE_SETS, load, load_graphs
from gnn.validation import DataError

# Nodes, simple edges, classes, features: the table of the data folder.
COUNTS = {
    "cora": (2708, 5278, 7, 1433),
    "citeseer": (3327, 4552, 6, 3703),
    "polblogs": (1490, 16715, 2, None),
    "pubmed": (19717, 44324, 3, 500),
    "facebook": (22470, 170823, 4, 4714),
    "lastfm_asia": (7624, 27806, 18, None),
    "cora_ml": (2995, 8158, 7, 2879),
    "coauthor_cs": (18333, 81894, 15, 6805),
    "coauthor_physics": (34493, 247962, 5, 8415),
}


@pytest.fixture
def folder():
    named = os.environ.get("AUDITDP_DATA")
    if not named:
        pytest.skip("AUDITDP_DATA names no data folder")
    return named


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name, folder):
    nodes, edges, classes, features = COUNTS[name]
    data = load(name, folder)
    assert (data.num_nodes, data.num_edges, data.num_classes, data.name) == (
        nodes,
        2 * edges,
        classes,
        name,
    )
    assert is_undirected(data.edge_index)
    assert not contains_self_loops(data.edge_index)
    assert data.edge_index.dtype == data.y.dtype == torch.int64
    assert data.y.shape == (nodes,)
    assert data.y.max() == classes - 1
    assert (data.x is None) == (features is None)
    if features is not None:
        assert data.x.shape == (nodes, features)
        assert data.x.layout == torch.sparse_csr
        assert data.x.dtype == torch.float32


def test_every_name_is_counted():
    assert set(COUNTS) == set(NODE_SETS)


def test_masks_and_missing_labels(folder):
    cora, citeseer = load("cora", folder, features="none"), load("citeseer", folder)
    assert cora.x is None
    assert [int(cora[f"{part}_mask"].sum()) for part in ("train", "val", "test")] == [
        140,
        500,
        1000,
    ]
    assert int((citeseer.y == -1).sum()) == 15
    assert int(load("lastfm_asia", folder).lpgnn_top10_mask.sum()) == 7083


def test_dense_features_are_the_sparse_ones(folder):
    dense, sparse = load("cora", folder, features="dense").x, load("cora", folder).x
    assert dense.layout == torch.strided
    assert (dense == sparse.to_dense()).all()
    assert set(dense.unique().tolist()) == {0.0, 1.0}


def test_reddit_binary(folder):
    graphs = load_graphs("reddit_binary", folder)
    sizes = [graph.num_nodes for graph in graphs]
    assert (len(graphs), sum(graph.num_edges for graph in graphs)) == (2000, 2 * 995508)
    assert (min(sizes), max(sizes)) == (6, 3782)
    assert np.mean(sizes) == pytest.approx(429.627)
    assert sum(int(graph.y) for graph in graphs) == 1000
    assert all(int(graph.edge_index.max()) < graph.num_nodes for graph in graphs)


def test_graphs_without_labels(folder):
    graphs = load_graphs("ppi_structure", folder)
    assert len(graphs) == 24
    assert sum(graph.num_nodes for graph in graphs) == 56944
    assert graphs[0].y is None


def test_graphs_by_hand_in_the_folder_of_substitutes(tmp_path):
    """A graph of two nodes with an edge, one of three with another, one without nodes."""
    (tmp_path / "substitutes").mkdir()
    np.savez(
        tmp_path / "substitutes" / "deezer_egos.npz",
        kind="graphs",
        edge_index=np.array([[0, 1], [1, 2]], np.int32),
        edges_stored="once_u_lt_v",
        graph_ptr_nodes=np.array([0, 2, 5, 5]),
        graph_ptr_edges=np.array([0, 1, 2, 2]),
        y=np.array([1, 0, 1], np.int16),
    )
    graphs = load_graphs("deezer_egos", tmp_path)
    assert [graph.num_nodes for graph in graphs] == [2, 3, 0]
    assert [graph.edge_index.tolist() for graph in graphs] == [
        [[0, 1], [1, 0]],
        [[1, 2], [2, 1]],
        [[], []],
    ]
    assert [graph.y.tolist() for graph in graphs] == [[1], [0], [1]]


def test_features_that_are_no_matrix(tmp_path):
    write(tmp_path / "cora.npz", x_indices=np.array([7, 0]))
    with pytest.raises(DataError, match="no CSR matrix"):
        load("cora", tmp_path)


def write(path, **changed):
    """Three nodes in a path 0 - 1 - 2, with two features."""
    arrays = {
        "kind": "node",
        "num_nodes": 3,
        "num_classes": 2,
        "edge_index": np.array([[0, 1], [1, 2]], np.int32),
        "edges_stored": "once_u_lt_v",
        "y": np.array([0, 1, -1], np.int16),
        "x_data": np.array([2, 5], np.uint8),
        "x_indices": np.array([1, 0]),
        "x_indptr": np.array([0, 1, 1, 2]),
        "x_shape": np.array([3, 2]),
    } | changed
    np.savez(path, **{key: value for key, value in arrays.items() if value is not None})


def test_a_file_by_hand(tmp_path):
    write(tmp_path / "cora.npz")
    data = load("cora", tmp_path, features="dense")
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert data.x.tolist() == [[0, 2], [0, 0], [5, 0]]
    assert data.y.tolist() == [0, 1, -1]


def test_the_environment_names_the_folder(tmp_path, monkeypatch):
    write(tmp_path / "cora.npz")
    monkeypatch.setenv("AUDITDP_DATA", str(tmp_path))
    assert load("cora").num_nodes == 3


@pytest.mark.parametrize("missing", ["y", "num_classes", "x_indptr", "edges_stored"])
def test_a_file_that_lacks_something(missing, tmp_path):
    write(tmp_path / "cora.npz", **{missing: None})
    with pytest.raises(DataError, match=f"lacks {missing}"):
        load("cora", tmp_path)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda folder: load("coral", folder),
            "no data set 'coral'; did you mean 'cora'",
        ),
        (lambda folder: load_graphs("reddit", folder), "did you mean"),
        (lambda folder: load("cora", folder), "is not in .*no file .*cora.npz"),
        (lambda folder: load("cora"), "give it as an argument or set AUDITDP_DATA"),
        (
            lambda folder: load("reddit_binary", folder),
            r"use load_graphs\('reddit_binary'\)",
        ),
        (lambda folder: load_graphs("cora", folder), r"use load\('cora'\)"),
        (
            lambda folder: load("cora", folder, features="spars"),
            "did you mean 'sparse'",
        ),
    ],
)
def test_refusals(call, message, tmp_path, monkeypatch):
    monkeypatch.delenv("AUDITDP_DATA", raising=False)
    with pytest.raises(ConfigurationError, match=message):
        call(tmp_path)


def test_graphs_of_a_wrong_file(tmp_path):
    write(tmp_path / "reddit_binary.npz")
    with pytest.raises(DataError, match="holds kind 'node'"):
        load_graphs("reddit_binary", tmp_path)
    assert "reddit_binary" in GRAPH_SETS
