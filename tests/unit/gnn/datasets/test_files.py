"""The loader against the counts of the data folder, and against files written here."""

import os

import numpy as np
import pytest
import torch
from torch_geometric.utils import contains_self_loops, is_undirected

from gnn.datasets import NODE_SETS, load, load_graphs
from gnn.validation import DataError
from tests.unit.gnn.draws import arcs

# Nodes, simple edges, classes and features.
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


# The data folder


@pytest.mark.parametrize("name", NODE_SETS)
def test_counts(name, folder):
    nodes, edges, classes, features = COUNTS[name]
    data = load(name, folder)

    assert (data.num_nodes, data.num_edges) == (nodes, 2 * edges)
    assert is_undirected(data.edge_index)
    assert not contains_self_loops(data.edge_index)
    assert data.num_classes == data.y.max() + 1 == classes
    assert data.y.shape == (nodes,)

    if features is None:
        assert data.x is None
    else:
        assert data.x.shape == (nodes, features)
        assert data.x.layout == torch.sparse_csr


# Files by hand


def write(path, **changed):
    """A path 0 – 1 – 2, with two features."""
    arrays = {
        "kind": "node",
        "num_nodes": 3,
        "num_classes": 2,
        "edge_index": arcs("01 12").numpy(),
        "edges_stored": "once_u_lt_v",
        "y": np.array([0, 1, -1], np.int16),
        "x_data": np.array([2, 5], np.uint8),
        "x_indices": np.array([1, 0]),
        "x_indptr": np.array([0, 1, 1, 2]),
        "x_shape": np.array([3, 2]),
    } | changed
    np.savez(path, **{key: value for key, value in arrays.items() if value is not None})


def test_a_file_by_hand_in_the_folder_of_the_environment(tmp_path, monkeypatch):
    write(tmp_path / "cora.npz")
    monkeypatch.setenv("AUDITDP_DATA", str(tmp_path))
    data = load("cora", features="dense")

    assert data.edge_index.equal(arcs("01 10 12 21"))
    assert data.x.tolist() == [
        [0, 2],
        [0, 0],
        [5, 0],
    ]
    assert data.y.tolist() == [0, 1, -1]


def test_graphs_by_hand_in_the_folder_of_substitutes(tmp_path):
    """A graph of two nodes with an edge, one of three with another, one without nodes."""
    folder = tmp_path / "substitutes"
    folder.mkdir()
    np.savez(
        folder / "deezer_egos.npz",
        kind="graphs",
        edge_index=arcs("01 12").numpy(),
        edges_stored="once_u_lt_v",
        graph_ptr_nodes=np.array([0, 2, 5, 5]),
        graph_ptr_edges=np.array([0, 1, 2, 2]),
        y=np.array([1, 0, 1], np.int16),
    )
    graphs = load_graphs("deezer_egos", tmp_path)

    assert [graph.num_nodes for graph in graphs] == [2, 3, 0]
    assert [graph.y.tolist() for graph in graphs] == [[1], [0], [1]]

    edges = [graph.edge_index.tolist() for graph in graphs]
    assert edges == [[[0, 1], [1, 0]], [[1, 2], [2, 1]], [[], []]]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"y": None}, "lacks y"),
        ({"edges_stored": None}, "lacks edges_stored"),
        ({"x_indices": np.array([7, 0])}, "no CSR matrix"),
    ],
)
def test_bad_files_are_refused(changed, message, tmp_path):
    write(tmp_path / "cora.npz", **changed)
    with pytest.raises(DataError, match=message):
        load("cora", tmp_path)
