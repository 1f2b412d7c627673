"""GIN on randomised neighbour lists: the released lists, the data, and small runs."""

import math

import numpy as np
import pytest
import torch
from torch.testing import assert_close
from torch_geometric.data import Batch

from gnn.datasets import random_split
from gnn.datasets.conversion import to_data, to_graph
from gnn.datasets.generated import threads
from gnn.models import GIN
from gnn.pipelines.dprr import MECHANISMS, GINParameters, Release, fit_gin
from gnn.pipelines.dprr.pipeline import as_received
from gnn.training.prediction import logits_of
from mechanisms.graphs import DirectedGraph, Graph, erdos_renyi
from tests.unit.gnn.draws import arcs, generator, rng

parametrize = pytest.mark.parametrize

SHORT = GINParameters(layers=3, hidden=8, dropout=0.0, epochs=2)
NO_ARCS = np.empty((2, 0), int)
LABEL = torch.tensor([0])


# The released lists


@parametrize("mechanism", ["DPRR", "RR", "LocalLap"])
@parametrize(
    ("share", "most"),
    [
        (0.3, 32),
        (1.0, 100),
    ],
)
def test_lists_of_non_private_users_are_true_ones(mechanism, share, most):
    """Hardly another user of 100 has a true list at ε = .1."""
    graph = erdos_renyi(100, 0.1, rng())
    release = Release(mechanism, 0.1, share, nodes_max=100_000, local_lap="rows")
    found = release.lists(graph, rng=rng(1)).to_matrix()
    true = (graph.to_matrix() == found).all(axis=1).sum()

    assert share * 100 <= true <= most


def test_the_non_private_part_is_the_graph_of_the_non_private_users():
    graph = Graph.from_matrix(1 - np.eye(10, dtype=np.int8))
    part = Release("NonPriv-Part", share=0.4).lists(graph, rng=rng())

    assert (part.to_matrix() == 1 - np.eye(4)).all()

    full = Release("NonPriv-Full").lists(graph, rng=rng())
    assert (full.to_matrix() == graph.to_matrix()).all()


def test_local_lap_has_true_pairs_of_non_private_users_and_draws_the_rest():
    """It adds half of the arcs of private users to the others, at a huge ε."""
    graph = erdos_renyi(60, 0.2, rng())
    true = graph.to_matrix()
    found = Release("LocalLap", 1e6, 0.5).lists(graph, rng=rng(3)).to_matrix()

    assert (found == found.T).all()
    assert (found >= true).all()

    public = np.sort(rng(3).permutation(60)[:30])
    assert (found[public] == true[public]).all()

    private = np.delete(np.arange(60), public)
    arcs = found[np.ix_(private, private)].sum()

    assert abs(arcs - graph.degrees[private].sum()) <= 1


@parametrize(
    ("release", "spent"),
    [
        # √(8/3781) = .046 > .02, so that the published allocation spends more than .2.
        (Release("DPRR", 0.2), 0.2259989),
        (Release("DPRR", 0.2, allocation="1:9"), 0.2),
        (Release("DPRR", 1.0), 1.0),
        (Release("RR", 0.3), 0.3),
        (Release("LocalLap", 0.3), 0.3),
        (Release("NonPriv-Part", share=0.1), 0.0),
        (Release("NonPriv-Full"), math.inf),
    ],
)
def test_the_spent_budget_of_an_allocation(release, spent):
    assert release.spent == pytest.approx(spent, abs=1e-6)


# Data for the model


@parametrize(
    ("sums", "messages"),
    [
        ("own list", [2, 0, 0]),
        ("lists of others", [0, 1, 1]),
    ],
)
def test_a_node_sums_over_a_list(sums, messages):
    """User 0 lists 1 and 2, whose lists are empty."""
    lists = [DirectedGraph(3, arcs("01 02").numpy())]
    (data,) = as_received(lists, [LABEL], sums=sums)
    assert data.edge_index[1].bincount(minlength=3).tolist() == messages


def lists_of(nodes, p):
    return DirectedGraph(nodes, erdos_renyi(nodes, p, rng(nodes)).arcs)


def test_dense_lists_are_matrices_and_give_the_same_logits():
    graphs = [lists_of(101, 0.4), lists_of(140, 0.4)]
    dense = as_received(graphs, [LABEL] * 2)
    listed = [to_data(graph, x=torch.ones(graph.nodes, 1)) for graph in graphs]

    assert all("bits" in data for data in dense)

    model = GIN(1, 2, layers=3, hidden=8, generator=generator()).eval()
    found = [logits_of(model, Batch.from_data_list(each)) for each in (dense, listed)]

    assert_close(*found, rtol=1e-4, atol=1e-4)


def test_sparse_lists_stay_lists():
    (data,) = as_received([lists_of(400, 0.01)], [LABEL])
    assert "bits" not in data


# Runs


def forum(count, mean_nodes):
    torch.set_num_threads(1)
    graphs = threads(count, mean_nodes=mean_nodes, rng=rng())
    labels = torch.cat([graph.y for graph in graphs])
    return graphs, random_split(labels, (0.5, 0.25, 0.25), generator=generator())


def run(data, release, parameters=SHORT, seed=0):
    graphs, split = data
    fitted = fit_gin(
        graphs, release, parameters, split=split, generator=generator(seed)
    )
    return fitted[1]


@parametrize("mechanism", MECHANISMS)
def test_a_run_is_a_function_of_its_seed(mechanism):
    release = Release(mechanism, 1.0, 0.5, nodes_max=200)
    first, same = (run(forum(24, 20), release, seed=2) for _ in range(2))

    assert first.training.epochs == same.training.epochs
    assert (first.accuracy, first.area) == (same.accuracy, same.area)


def test_kinds_of_threads_are_learned_without_noise():
    data = forum(120, 100)
    parameters = GINParameters(layers=3, hidden=16, dropout=0.0, epochs=25, batch=16)
    record = run(data, Release("NonPriv-Full"), parameters)

    assert record.area > 0.8
    assert record.degree_error == 0

    arcs = [to_graph(graph).arcs.shape[1] for graph in data[0]]
    assert record.arcs == pytest.approx(np.mean(arcs))
