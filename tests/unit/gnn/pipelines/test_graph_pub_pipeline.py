"""GraphPub on lists of edges: constructors, reverse learning, publication, learning."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from torch.testing import assert_close

from gnn import gcn as batch_of_models
from gnn.datasets import random_split
from gnn.datasets.conversion import to_graph
from gnn.models import GAT, GraphSAGE
from gnn.pipelines.graph_pub import (
    CONSTRUCTORS,
    Release,
    ScoreSettings,
    constructor,
    embedding,
    learned_adjacency,
    published_arcs,
    publishing_weights,
)
from gnn.pipelines.graph_pub.constructors import Features
from gnn.pipelines.graph_pub.weights import FixedWeights, LearnedWeights, ListedEdges
from gnn.reverse_learning import ReverseLearning
from mechanisms.edges import DPRR
from mechanisms.edges.graph_pub import counts
from mechanisms.edges.graph_pub_response import publishing_rates
from mechanisms.graphs import Graph
from tests.unit.gnn.draws import generator, rng

parametrize = pytest.mark.parametrize

QUICK = {"reverse": ReverseLearning(steps=3), "epochs": 5}


@pytest.fixture(scope="module")
def split(graph):
    return random_split(graph.y, (0.2, 0.2, 0.6), generator=generator())


@pytest.fixture(scope="module")
def embed(graph, split):
    """The embedding of a graph, by default of ``graph``, under settings."""

    def found(data=graph, **settings):
        return embedding(
            data, ScoreSettings(**QUICK | settings), split=split, generator=generator()
        )

    return found


def published(private, release, embedding=None):
    return published_arcs(private, release, rng=rng(), embedding=embedding).numpy()


# Constructors and reverse learning


@parametrize("name", CONSTRUCTORS)
def test_columns_of_learned_weights_are_the_gradient(name):
    """The gradient of a loss in A, by torch on the dense matrix: U Vᵀ and dense.grad."""
    matrix = torch.rand(7, 7, generator=generator())
    matrix = ((matrix + matrix.t()) / 2).fill_diagonal_(0)
    x = Features(torch.rand(7, 4, generator=generator(1)))
    model = constructor(name, 4, 3, generator=generator(2)).requires_grad_(False)
    leaf = matrix.clone().requires_grad_()
    edges = LearnedWeights(matrix)
    for weights in (FixedWeights(leaf), edges):
        model(weights, x).square().sum().backward()

    left, right = edges.columns
    found = (left @ right.t()).detach()
    if edges.dense.grad is not None:
        found += edges.dense.grad

    expected = leaf.grad + leaf.grad.t()
    assert_close(found + found.t(), expected, rtol=1e-4, atol=1e-6)
    assert expected.abs().max() > 0.01


SAME = {"hidden": 16, "dropout": 0.0}


def graph_sage(mine):
    """The network of torch-geometric with the same weights."""
    network = GraphSAGE(6, 2, generator=generator(), **SAME)
    parts = mine.weights, mine.own_weights, mine.biases
    for layer, weight, own, bias in zip(network.layers, *parts, strict=True):
        layer.lin_l.weight.data = weight.data.t()
        layer.lin_r.weight.data = own.data.t()
        bias.data = layer.lin_l.bias.data
    return network


def gat(mine):
    network = GAT(6, 2, heads=1, activation="relu", generator=generator(), **SAME)
    parts = mine.weights, mine.sources, mine.targets
    for layer, weight, source, target in zip(network.layers, *parts, strict=True):
        layer.lin.weight.data = weight.data.t()
        layer.att_src.data = source.data.t()[None]
        layer.att_dst.data = target.data.t()[None]
    return network


@parametrize(
    ("name", "network"),
    [
        ("GAT", gat),
        ("GraphSAGE", graph_sage),
    ],
)
def test_constructors_are_the_networks_of_torch_geometric(name, network, graph):
    mine = constructor(name, 6, 2, generator=generator())
    other = network(mine).eval()
    edges, x = ListedEdges(graph.edge_index, 120), Features(graph.x)

    assert_close(mine(edges, x), other(graph.x, graph.edge_index))
    assert_close(mine.hidden(edges, x), other.hidden(graph.x, graph.edge_index))


def test_reverse_learning_is_that_of_the_audited_pipeline():
    """The dense gradient descent on a GCN with the same weights."""
    x = torch.rand(12, 5, generator=generator())
    labels = torch.arange(12) % 3
    predictions = (labels + 1) % 3
    model = constructor("GCN", 5, 3, generator=generator(1)).requires_grad_(False)
    same = batch_of_models.GCN(model.weights[0][None], model.weights[1][None])
    reverse = ReverseLearning(steps=15, eta=2.0, beta=0.01)
    expected = reverse.learned(same, x, predictions[None], labels)[0]
    found = learned_adjacency(reverse, model, Features(x), predictions, labels)

    assert_close(found, expected, rtol=1e-3, atol=1e-5)
    assert 0 < (found > 0).float().mean() < 1


# The embedding


@parametrize("edges", [False, True])
def test_the_repaired_form_reads_no_edges(edges, graph, embed):
    other = graph.clone()
    other.edge_index = graph.edge_index[:, :10]
    same = torch.equal(embed(edges=edges), embed(other, edges=edges))

    assert same is not edges


@parametrize(
    ("labels", "parts"),
    [
        ("training", 1),
        ("training and validation", 2),
        ("all", 3),
    ],
)
@parametrize("name", CONSTRUCTORS)
def test_the_embedding_is_learned_from_labels_of_the_given_parts(
    labels, parts, name, graph, split, embed
):
    """A label is changed in each part of the split in turn."""
    settings = {"labels": labels, "constructor": name}
    first = embed(**settings)
    for number, part in enumerate((split.training, split.validation, split.test)):
        other = graph.clone()
        other.y = graph.y.clone()
        other.y[part[0]] = 1 - graph.y[part[0]]
        same = torch.equal(embed(other, **settings), first)
        assert same is (number >= parts)


# Publication


@parametrize("epsilon", [0.5, 4.0])
def test_each_node_publishes_its_rounded_numbers_of_edges(epsilon, graph, embed):
    """E₁ real and E₂ other nodes, whatever the embedding is."""
    private, z = to_graph(graph), embed()
    arcs = published(private, Release(epsilon=epsilon), z)
    sender, receiver = arcs
    real = private.to_matrix()[receiver, sender] == 1
    shown, added = counts(epsilon, private.degrees.astype(float), 120)
    shown, added = np.rint(shown), np.rint(added)

    assert_array_equal(np.bincount(receiver[real], minlength=120), shown)
    assert_array_equal(np.bincount(receiver[~real], minlength=120), added)

    union = published(private, Release(epsilon=epsilon, arcs="union"), z)
    assert_array_equal(union, Graph.of(120, arcs).arcs)


@parametrize("epsilon", [1.0, 8.0])
def test_weights_of_the_repair_publish_the_expected_number_of_others(epsilon):
    """The mean probability of others is m/(Em+N−m), up to rounding."""
    z = rng().normal(size=(200, 4)) * 3
    upper = np.triu_indices(200, 1)
    weights = publishing_weights(z, epsilon, 4.0)
    others, real = publishing_rates(epsilon, 4.0, 200, weights[upper])
    expected = 4 / (np.exp(epsilon) * 4 + 196)
    order = (z @ z.T)[upper].argsort()

    assert (weights == weights.T).all()
    assert others.mean() == pytest.approx(expected, rel=1e-3)
    assert (real <= np.exp(epsilon) * others).all()
    assert (np.diff(others[order]) >= -1e-15).all()


@parametrize("method", ["RR", "LAPGRAPH", "none"])
def test_other_graphs_are_the_private_one_at_a_large_budget(method, graph):
    private = to_graph(graph)
    arcs = published(private, Release(method, 3000.0))
    assert_array_equal(arcs, private.arcs)


def test_the_listed_send_to_the_owner_of_a_list_of_dprr(graph):
    private = to_graph(graph)
    lists = DPRR.allocated(2.0, 120).whole_graph(private, rng=rng())
    found = published(private, Release("DPRR", 2.0))
    assert_array_equal(found, lists.arcs[::-1])
