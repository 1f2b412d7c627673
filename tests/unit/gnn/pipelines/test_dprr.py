"""GIN on randomised neighbour lists: what the server receives, in which direction messages go, and a run."""

import math

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

from auditdp.errors import ConfigurationError, MechanismError
from gnn.datasets import Split, random_split
from gnn.datasets.conversion import to_data, to_graph
from gnn.datasets.generated import threads
from gnn.models import GIN
from gnn.models.blocks import Blocks, packed
from gnn.pipelines.dprr import MECHANISMS, GINParameters, Release, fit_gin
from gnn.pipelines.dprr.pipeline import as_received
from gnn.training.prediction import logits_of
from gnn.validation import DataError
from mechanisms.graphs import DirectedGraph, Graph, erdos_renyi
from tests.unit.gnn.draws import generator, rng

SHORT = GINParameters(layers=3, hidden=8, dropout=0.0, epochs=3)


@pytest.fixture(scope="module")
def graphs():
    torch.set_num_threads(1)
    return threads(40, mean_nodes=30, rng=rng())


@pytest.fixture(scope="module")
def split(graphs):
    return random_split(
        torch.cat([graph.y for graph in graphs]),
        (0.5, 0.25, 0.25),
        generator=generator(),
    )


# What the server receives


@pytest.mark.parametrize("mechanism", ["DPRR", "RR", "LocalLap"])
def test_lists_of_non_private_users_are_true_ones(mechanism):
    """With 100 users and a share of .3, 30 lists are true; the others hardly are at ε = .1."""
    graph = erdos_renyi(100, 0.1, rng())
    lists = Release(mechanism, 0.1, 0.3, nodes_max=100_000, local_lap="rows").lists(
        graph, rng=rng(1)
    )
    true, found = graph.to_matrix(), lists.to_matrix()
    assert 30 <= (true == found).all(axis=1).sum() <= 32
    everybody = Release(mechanism, 0.1, 1.0, nodes_max=100_000).lists(graph, rng=rng(1))
    assert (everybody.to_matrix() == true).all()


def test_nobody_is_non_private_below_one_user():
    """⌊.1 · 9⌋ = 0."""
    lists = Release("RR", 1e-9, 0.1).lists(
        Graph.of(9, np.empty((2, 0), int)), rng=rng()
    )
    assert (lists.out_degrees > 0).all()


def test_non_priv_part_is_the_graph_of_the_non_private_users():
    """A complete graph of ten users, four of them non-private, leaves a complete graph of four."""
    graph = Graph.from_matrix(1 - np.eye(10, dtype=np.int8))
    lists = Release("NonPriv-Part", share=0.4).lists(graph, rng=rng())
    assert (lists.to_matrix() == 1 - np.eye(4)).all()
    full = Release("NonPriv-Full").lists(graph, rng=rng())
    assert (full.to_matrix() == graph.to_matrix()).all()


def test_local_lap_knows_pairs_of_non_private_users_and_draws_as_many_others_as_degrees_say():
    """At a huge ε the server has the graph and, among private users, T − E more edges: half of their arcs to the others."""
    graph, release = erdos_renyi(60, 0.2, rng()), Release("LocalLap", 1e6, 0.5)
    found = release.lists(graph, rng=rng(3)).to_matrix()
    assert (found == found.T).all()
    assert (found >= graph.to_matrix()).all()
    public = np.sort(rng(3).permutation(60)[:30])
    inside = np.setdiff1d(np.arange(60), public)
    true = graph.to_matrix()
    assert (found[public] == true[public]).all()
    assert abs(found[np.ix_(inside, inside)].sum() - graph.degrees[inside].sum()) <= 1


def test_local_lap_of_everybody_is_the_mechanisms_own_law():
    """Without non-private users T is about the number of edges: its noise has scale 10/ε a user."""
    graph = erdos_renyi(200, 0.1, rng())
    lists = Release("LocalLap", 1.0).lists(graph, rng=rng(1))
    sd = math.sqrt(2 * 200) * 10  # of 2T
    assert abs(lists.arcs.shape[1] - graph.arcs.shape[1]) < 6 * sd
    assert (lists.to_matrix() == lists.to_matrix().T).all()


def test_allocations_spend_what_they_say():
    """√(8/3781) = .046 > .02, so that the published allocation spends .226 where it prints .2."""
    assert Release("DPRR", 0.2).spent == pytest.approx(0.2259989, abs=1e-6)
    assert Release("DPRR", 0.2, allocation="within").spent <= 0.2
    assert Release("DPRR", 0.2, allocation="1:9").spent == pytest.approx(0.2)
    assert Release("DPRR", 1.0).spent == pytest.approx(1.0)
    assert (Release("RR", 0.3).spent, Release("LocalLap", 0.3).spent) == (0.3, 0.3)
    assert (
        Release("NonPriv-Part", share=0.1).spent,
        Release("NonPriv-Full").spent,
    ) == (0.0, math.inf)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("nodes", [0, 1, 2])
def test_tiny_graphs_are_released(mechanism, nodes):
    lists = Release(mechanism, share=0.5, epsilon=1.0).lists(
        Graph.of(nodes, np.empty((2, 0), int)), rng=rng()
    )
    assert lists.nodes == (nodes // 2 if mechanism == "NonPriv-Part" else nodes)


# Data for the model


def test_a_node_sums_over_its_own_list():
    """User 0 names 1 and 2, who name nobody: 0 hears two messages, or, by lists of others, 1 and 2 hear one each."""
    lists = [DirectedGraph(3, np.array([[0, 0], [1, 2]]))]
    for sums, expected in (("own list", [2, 0, 0]), ("lists of others", [0, 1, 1])):
        (data,) = as_received(lists, [torch.tensor([0])], sums=sums)
        heard = torch.zeros(3).index_add_(0, data.edge_index[1], torch.ones(2))
        assert heard.tolist() == expected


def test_nodes_may_know_how_many_they_are():
    lists = [DirectedGraph(n, np.empty((2, 0), int)) for n in (3, 0)]
    known = as_received(lists, [torch.tensor([0])] * 2, features="size")
    assert known[0].x.squeeze(1).tolist() == pytest.approx([math.log(3)] * 3)
    assert known[1].x.shape == (0, 1)
    assert as_received(lists, [torch.tensor([0])] * 2)[0].x.tolist() == [[1.0]] * 3


def test_dense_lists_are_matrices_and_give_the_same_logits():
    lists = [DirectedGraph(n, erdos_renyi(n, 0.4, rng(n)).arcs) for n in (101, 140)]
    labels = [torch.tensor([0]), torch.tensor([1])]
    dense = as_received(lists, labels)
    assert all("bits" in data and data.edge_index.shape == (2, 0) for data in dense)
    listed = [
        to_data(graph, x=torch.ones(graph.nodes, 1)) for graph in lists
    ]  # these graphs are undirected
    model = GIN(1, 2, layers=3, hidden=8, generator=generator()).eval()
    first, second = (
        logits_of(model, Batch.from_data_list(found)) for found in (dense, listed)
    )
    torch.testing.assert_close(first, second, rtol=1e-4, atol=1e-4)
    sparse = as_received(
        [DirectedGraph(400, erdos_renyi(400, 0.01, rng()).arcs)], labels[:1]
    )
    assert "bits" not in sparse[0]


def test_bits_by_hand():
    """Two nodes, an arc from 0 to 1: the entries are 0 0 1 0, and the last byte is filled with zeros."""
    bits = packed(torch.tensor([[0], [1]]), 2)
    assert bits.tolist() == [0b00100000]
    blocks = Blocks(
        torch.cat([bits, packed(torch.empty(2, 0, dtype=torch.long), 3)]), [2, 3]
    )
    x = torch.tensor([[5.0], [7.0], [1.0], [1.0], [1.0]])
    assert blocks.sums(x).squeeze(1).tolist() == [0.0, 5.0, 0.0, 0.0, 0.0]
    with pytest.raises(DataError, match="expected 1 bytes"):
        Blocks(torch.zeros(2, dtype=torch.uint8), [2])


# Runs


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_run_is_a_function_of_its_seed(graphs, split, mechanism):
    release = Release(mechanism, 1.0, 0.5, nodes_max=200)
    first, second = (
        fit_gin(graphs, release, SHORT, split=split, generator=generator(2))[1]
        for _ in range(2)
    )
    assert first.training.epochs == second.training.epochs
    assert (first.accuracy, first.area) == (second.accuracy, second.area)
    assert 0 <= first.area <= 1


def test_kinds_of_threads_are_learned_without_noise():
    found = threads(120, mean_nodes=100, rng=rng())
    split = random_split(
        torch.cat([graph.y for graph in found]), (0.5, 0.2, 0.3), generator=generator()
    )
    parameters = GINParameters(layers=3, hidden=16, dropout=0.0, epochs=25, batch=16)
    record = fit_gin(
        found, Release("NonPriv-Full"), parameters, split=split, generator=generator()
    )[1]
    assert record.area > 0.8
    assert record.degree_error == 0
    assert record.arcs == pytest.approx(
        np.mean([to_graph(graph).arcs.shape[1] for graph in found])
    )


def test_initial_weights_do_not_depend_on_the_mechanism(graphs, split, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "gnn.pipelines.dprr.pipeline.fit",
        lambda model, *rest, **more: (seen.append(model), 1 / 0),
    )
    for mechanism in ("DPRR", "RR"):
        with pytest.raises(ZeroDivisionError):
            fit_gin(
                graphs,
                Release(mechanism, nodes_max=200),
                SHORT,
                split=split,
                generator=generator(1),
            )
    torch.testing.assert_close(
        seen[0].state_dict(), seen[1].state_dict(), rtol=0, atol=0
    )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Release("DPR"), ConfigurationError, "did you mean 'DPRR'"),
        (lambda: Release("DPRR", 0.0), ConfigurationError, "epsilon"),
        (lambda: Release("DPRR", share=1.5), ConfigurationError, "share"),
        (lambda: Release("DPRR", nodes_max=1), ConfigurationError, "nodes_max"),
        (
            lambda: Release("DPRR", allocation="half"),
            ConfigurationError,
            "no allocation",
        ),
        (
            lambda: Release("LocalLap", local_lap="row"),
            ConfigurationError,
            "did you mean 'rows'",
        ),
        (lambda: Release("NonPriv-Part"), ConfigurationError, "share > 0"),
        (
            lambda: Release("DPRR", 0.2, nodes_max=97, allocation="within"),
            MechanismError,
            "leaves nothing",
        ),
        (lambda: GINParameters(sums="mine"), ConfigurationError, "no sums"),
        (lambda: GINParameters(features="degree"), ConfigurationError, "no features"),
        (lambda: GINParameters(halving=0), ConfigurationError, "halving"),
    ],
)
def test_parameters_outside_their_range_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_data_without_graphs_labels_or_tests_is_refused(graphs, split):
    run = {"split": split, "generator": generator()}
    with pytest.raises(DataError, match="got none"):
        fit_gin([], Release("RR"), SHORT, **run)
    unlabelled = [graphs[0].clone(), *graphs[1:]]
    unlabelled[0].y = None
    with pytest.raises(DataError, match="graph 0 has no single label"):
        fit_gin(unlabelled, Release("RR"), SHORT, **run)
    untested = Split(split.training, split.validation, split.test[:0])
    with pytest.raises(DataError, match="no test graph"):
        fit_gin(graphs, Release("RR"), SHORT, split=untested, generator=generator())
