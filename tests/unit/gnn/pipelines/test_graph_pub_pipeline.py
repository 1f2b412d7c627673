"""GraphPub on lists of edges: weights, constructors, reverse learning against the dense form, published graphs, learning."""

import numpy as np
import pytest
import torch

from auditdp.errors import ConfigurationError
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
    learn,
    learned_adjacency,
    published_arcs,
    publishing_weights,
)
from gnn.pipelines.graph_pub.constructors import Features
from gnn.pipelines.graph_pub.weights import FixedWeights, LearnedWeights, ListedEdges
from gnn.reverse_learning import ReverseLearning
from mechanisms.edges.graph_pub import counts
from mechanisms.edges.graph_pub_response import publishing_rates
from mechanisms.graphs import Graph, erdos_renyi
from tests.unit.gnn.draws import generator

QUICK = ScoreSettings(reverse=ReverseLearning(steps=10), epochs=20)


@pytest.fixture(scope="module")
def split(graph):
    return random_split(graph.y, (0.2, 0.2, 0.6), generator=generator())


def weighted(nodes=7, seed=0):
    """A symmetric matrix with entries in [0, 1] and zeros on the diagonal."""
    matrix = torch.rand(nodes, nodes, generator=generator(seed))
    return ((matrix + matrix.t()) / 2).fill_diagonal_(0)


def test_listed_edges_and_their_matrix_are_one(graph):
    listed = ListedEdges(graph.edge_index, 120)
    fixed = FixedWeights(listed.dense)
    values = torch.rand(120, 3, generator=generator())
    torch.testing.assert_close(listed.product(values), fixed.product(values))
    torch.testing.assert_close(listed.totals, fixed.totals)
    assert listed.dense.sum() == graph.edge_index.shape[1]


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_columns_of_learned_weights_are_the_gradient(name):
    """The gradient of a loss in A, by torch on the dense matrix: U Vᵀ, or what dense.grad holds."""
    matrix, x = weighted(), Features(torch.rand(7, 4, generator=generator(1)))
    model = constructor(name, 4, 3, generator=generator(2)).requires_grad_(False)
    leaf = matrix.clone().requires_grad_()
    model(FixedWeights(leaf), x).square().sum().backward()
    edges = LearnedWeights(matrix)
    model(edges, x).square().sum().backward()
    left, right = (each.detach() for each in edges.columns)
    rest = 0 if edges.dense.grad is None else edges.dense.grad
    found = left @ right.t() + rest
    torch.testing.assert_close(
        found + found.t(), leaf.grad + leaf.grad.t(), rtol=1e-4, atol=1e-6
    )
    assert leaf.grad.abs().max() > 0.01


@pytest.mark.parametrize("name", ["GAT", "GraphSAGE"])
def test_constructors_are_the_networks_of_torch_geometric(name, graph):
    """On the listed edges, with the same weights."""
    mine = constructor(name, 6, 2, generator=generator())
    if name == "GraphSAGE":
        other = GraphSAGE(6, 2, hidden=16, dropout=0.0, generator=generator())
        for number, layer in enumerate(other.layers):
            layer.lin_l.weight.data = mine.weights[number].data.t()
            layer.lin_r.weight.data = mine.own_weights[number].data.t()
            mine.biases[number].data = layer.lin_l.bias.data
    else:
        other = GAT(
            6,
            2,
            hidden=16,
            heads=1,
            dropout=0.0,
            activation="relu",
            generator=generator(),
        )
        for number, layer in enumerate(other.layers):
            layer.lin.weight.data = mine.weights[number].data.t()
            layer.att_src.data = mine.sources[number].data.t()[None]
            layer.att_dst.data = mine.targets[number].data.t()[None]
    edges = ListedEdges(graph.edge_index, 120)
    torch.testing.assert_close(
        mine(edges, Features(graph.x)), other.eval()(graph.x, graph.edge_index)
    )
    torch.testing.assert_close(
        mine.hidden(edges, Features(graph.x)), other.hidden(graph.x, graph.edge_index)
    )


def test_reverse_learning_is_that_of_the_audited_pipeline():
    """The same A_s as the dense gradient descent on a GCN with the same weights."""
    x, labels = torch.rand(12, 5, generator=generator()), torch.arange(12) % 3
    model = constructor("GCN", 5, 3, generator=generator(1)).requires_grad_(False)
    same = batch_of_models.GCN(model.weights[0][None], model.weights[1][None])
    predictions = (labels + 1) % 3
    reverse = ReverseLearning(steps=15, eta=2.0, beta=0.01)
    expected = reverse.learned(same, x, predictions[None], labels)[0]
    found = learned_adjacency(reverse, model, Features(x), predictions, labels)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-5)
    assert 0 < (found > 0).float().mean() < 1


def test_labels_that_are_unknown_are_left_out():
    x, labels = torch.rand(12, 5, generator=generator()), torch.arange(12) % 3
    model = constructor("GCN", 5, 3, generator=generator(1)).requires_grad_(False)
    reverse = ReverseLearning(steps=3, eta=2.0)
    few = torch.where(torch.arange(12) < 6, labels, -1)
    found = [
        learned_adjacency(reverse, model, Features(x), labels, each)
        for each in (labels, few, few)
    ]
    assert (found[0] != found[1]).any()
    torch.testing.assert_close(found[1], found[2])


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_embeddings_tell_communities_apart(name, graph, split):
    settings = ScoreSettings(
        constructor=name, reverse=ReverseLearning(steps=10), epochs=60
    )
    z = embedding(graph, settings, split=split, generator=generator())
    z = torch.nn.functional.normalize(z, dim=1)
    same = graph.y[:, None] == graph.y
    assert (z @ z.t())[same].mean() > (z @ z.t())[~same].mean() + 0.2
    torch.testing.assert_close(
        z,
        torch.nn.functional.normalize(
            embedding(graph, settings, split=split, generator=generator()), dim=1
        ),
    )


def test_without_edges_nothing_private_is_used(graph, split):
    """The repaired form's Z is the same for every graph of edges; the published one's is not."""
    other = graph.clone()
    other.edge_index = graph.edge_index[:, :10]
    for edges in (False, True):
        settings = ScoreSettings(
            edges=edges, reverse=ReverseLearning(steps=5), epochs=10
        )
        found = [
            embedding(each, settings, split=split, generator=generator())
            for each in (graph, other)
        ]
        assert torch.equal(*found) is not edges


@pytest.mark.parametrize(
    ("labels", "parts"), [("training", 1), ("training and validation", 2), ("all", 3)]
)
def test_whose_labels_the_embedding_is_learned_from(labels, parts, graph, split):
    """One label of another class, in each part of the split in turn: Z moves where labels of that part are known."""
    settings = ScoreSettings(labels=labels, reverse=ReverseLearning(steps=3), epochs=5)
    first = embedding(graph, settings, split=split, generator=generator())
    for number, part in enumerate((split.training, split.validation, split.test)):
        other = graph.clone()
        other.y = graph.y.clone()
        other.y[part[:1]] = (graph.y[part[0]] + 1) % 2
        found = embedding(other, settings, split=split, generator=generator())
        assert torch.equal(found, first) is (number >= parts)


def test_each_node_publishes_as_many_as_it_has(graph, split):
    """E₁ real and E₂ other nodes, rounded, whatever L is."""
    private = to_graph(graph)
    z = embedding(graph, QUICK, split=split, generator=generator())
    for epsilon in (0.5, 4.0):
        sender, receiver = published_arcs(
            private, Release(epsilon=epsilon), rng=np.random.default_rng(0), embedding=z
        )
        matrix = private.to_matrix()
        real = np.bincount(receiver[matrix[receiver, sender] == 1], minlength=120)
        shown, added = counts(epsilon, private.degrees.astype(float), 120)
        np.testing.assert_array_equal(real, np.rint(shown))
        np.testing.assert_array_equal(
            np.bincount(receiver, minlength=120), np.rint(shown) + np.rint(added)
        )


def test_a_union_has_both_directions_of_every_published_pair(graph, split):
    private, rng = to_graph(graph), np.random.default_rng
    z = embedding(graph, QUICK, split=split, generator=generator())
    lists = published_arcs(private, Release(epsilon=1.0), rng=rng(0), embedding=z)
    union = published_arcs(
        private, Release(epsilon=1.0, arcs="union"), rng=rng(0), embedding=z
    )
    expected = Graph.of(120, lists.numpy()).arcs
    np.testing.assert_array_equal(union.numpy(), expected)


def test_weights_of_the_repair_publish_as_many_others_as_graph_pub():
    """Cut weights lose no pairs: the mean probability of others is m/(Em+N−m), up to what rounding takes."""
    z = np.random.default_rng(0).normal(size=(200, 4)) * 3
    for epsilon in (1.0, 8.0):
        weights = publishing_weights(z, epsilon, 4.0)
        assert (weights == weights.T).all()
        assert (weights > 0).all()
        others, real = publishing_rates(
            epsilon, 4.0, 200, weights[np.triu_indices(200, 1)]
        )
        assert others.mean() == pytest.approx(4 / (np.exp(epsilon) * 4 + 196), rel=1e-3)
        assert (real <= np.exp(epsilon) * others).all()
    order = (z @ z.T)[np.triu_indices(200, 1)].argsort()
    assert (np.diff(others[order]) >= -1e-15).all()


def test_dprr_repaired_has_half_of_the_budget_for_each_list():
    """On 3,000 nodes at ε = 8 less than half as many of the published are real."""
    private = erdos_renyi(3000, 0.002, np.random.default_rng(0))

    def kept(form):
        arcs = published_arcs(
            private, Release("DPRR", 8.0, form=form), rng=np.random.default_rng(1)
        ).numpy()
        return np.isin(
            arcs[0] * 3000 + arcs[1], private.arcs[0] * 3000 + private.arcs[1]
        ).mean()

    assert kept("published") > 2 * kept("repaired")


@pytest.mark.parametrize("method", ["RR", "LAPGRAPH", "none"])
def test_other_graphs_are_symmetric_and_close_to_the_private_at_a_large_budget(
    method, graph
):
    private = to_graph(graph)
    arcs = published_arcs(
        private, Release(method, 3000.0), rng=np.random.default_rng(0)
    ).numpy()
    np.testing.assert_array_equal(arcs, private.arcs)


@pytest.mark.parametrize("model", ["GCN", "GAT", "GraphSAGE"])
def test_networks_learn_from_the_published_graph(model, graph, split):
    found = learn(
        graph, graph.edge_index, model, split=split, generator=generator(), epochs=40
    )
    assert found.test_accuracy > 0.9
    assert len(found.record.epochs) <= 40


def test_settings_out_of_range_are_refused(graph):
    with pytest.raises(ConfigurationError, match="no method 'DPR'"):
        Release("DPR")
    with pytest.raises(ConfigurationError, match="degree_share"):
        Release(degree_share=1.0)
    with pytest.raises(ConfigurationError, match="no constructor"):
        ScoreSettings(constructor="GIN")
    with pytest.raises(ConfigurationError, match="by an embedding Z"):
        published_arcs(to_graph(graph), Release(), rng=np.random.default_rng(0))
