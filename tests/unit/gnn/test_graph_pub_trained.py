"""Reverse learning, L of the whole pipeline, the trained mechanism, and leaks of L."""

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch.testing import assert_close

from auditdp.errors import MechanismError
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.calls.independence import check_batch
from gnn.gcn import GCN
from gnn.graph_pub import GraphPubTrained, TrainedScores
from gnn.layers import propagation
from gnn.reverse_learning import ReverseLearning, projected
from mechanisms.edges.graph_pub import GraphPub, score_matrix
from tests.statistical.stated_laws import matrix
from tests.unit.gnn.draws import generator, rng

parametrize = pytest.mark.parametrize


def quick(nodes, **arguments):
    angles = np.arange(nodes)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    given = {"reverse": ReverseLearning(steps=10), "epochs": 10} | arguments
    return TrainedScores(circle, np.arange(nodes) % 2, **given)


def communities(nodes=16):
    """Two cliques, joined by one edge; features are the identity."""
    labels = np.arange(nodes) * 2 // nodes
    graph = (labels[:, None] == labels) & ~np.eye(nodes, dtype=bool)
    middle = nodes // 2
    graph[middle - 1, middle] = graph[middle, middle - 1] = True
    return graph.astype(np.int8), np.eye(nodes), labels


def trained(operator, features, labels, draws, size=3, epochs=30):
    model = GCN.initial(size, features=features, hidden=16, classes=2, generator=draws)
    return model.fitted(operator, features, labels, epochs=epochs, learning_rate=0.01)


def arguments_of_reverse_learning():
    graph, features, labels = map(torch.as_tensor, communities())
    operator = propagation(graph.double())
    model = trained(operator, features, labels, generator())
    return model, features, model.logits(operator, features).argmax(dim=-1), labels


# Reverse learning


def test_projection_of_a_batch_by_hand():
    """Symmetric matrices with entries in [0, 1] and zeros on the diagonal."""
    given = torch.tensor([[[5.0, 0.2], [0.6, -1]], [[5, -3], [1, 9]], [[5, 9], [1, 0]]])
    expected = torch.tensor([0.4, 0.0, 1.0])[:, None, None] * EDGE

    assert_close(projected(given), expected.float())


def test_gradient_descent_lowers_its_objective_within_the_constraints():
    arguments = arguments_of_reverse_learning()
    before = math.inf
    for steps in (0, 1, 50):
        reverse = ReverseLearning(steps=steps)
        adjacency = reverse.learned(*arguments)
        objective = reverse.objective(adjacency, *arguments)
        assert (objective < before).all()
        assert_close(projected(adjacency), adjacency, rtol=0, atol=0)
        before = objective


EYE = torch.eye(2, dtype=torch.float64)
EDGE = (1 - EYE)[None]
OWN = GCN(EYE[None], EYE[None])


@parametrize("alpha", [0.0, 0.25, 1.0])
def test_the_objective_of_predictions_by_hand(alpha):
    """Nodes of odds e : 1 without edges; α of predictions, which are wrong."""
    labels = torch.tensor([0, 1])
    reverse = ReverseLearning(alpha=alpha)
    found = reverse.objective(0 * EDGE, OWN, EYE, 1 - labels[None], labels)
    right, wrong = math.log(1 + math.exp(-1)), math.log(1 + math.exp(1))

    assert found.item() == pytest.approx(alpha * wrong + (1 - alpha) * right)


def test_the_objective_of_edges_by_hand():
    """With an edge the operator is ½ everywhere: even odds, and β‖A_s‖_F."""
    labels = torch.tensor([0, 1])
    reverse = ReverseLearning(beta=0.1)
    found = reverse.objective(EDGE, OWN, EYE, labels[None], labels)

    assert found.item() == pytest.approx(math.log(2) + 0.1 * math.sqrt(2))


# L


@parametrize(
    ("encode", "epochs"),
    [
        ("learned", 20),
        ("private", 20),
        ("private", 0),
    ],
)
def test_the_pipeline_is_its_steps(encode, epochs):
    """M on A, its predictions, A_s from them and labels, the encoder on A_s, and L."""
    graph, features, labels = communities()
    labels[1::2] = -1
    reverse = ReverseLearning(steps=20, eta=5.0)
    training = TrainedScores(
        features, labels, epochs=epochs, reverse=reverse, encode=encode
    )
    seed = int(rng(3).integers(2**63))
    draws = generator(seed)
    x, y = torch.as_tensor(features), torch.as_tensor(labels)
    steps = {"size": 1, "epochs": epochs}
    operator = propagation(torch.as_tensor(graph).double())
    if encode == "learned":
        model = trained(operator, x, y, draws, **steps)
        predictions = model.logits(operator, x).argmax(dim=-1)
        operator = propagation(reverse.learned(model, x, predictions, y))

    expected = trained(operator, x, y, draws, **steps).hidden(operator, x)
    found = training.embeddings(graph, 1, generator=generator(seed))

    assert_close(found, expected)

    scores = training.with_seed(3)(graph)
    assert_allclose(scores, score_matrix(expected[0].numpy()))


# The mechanism


@parametrize("arguments", [{}, {"rounding": "floor"}, {"degree_epsilon": 0.5}], ids=str)
def test_runs_are_independent_and_agree_with_the_selection(arguments):
    """Each run is a list that the selection publishes by the L of its own training."""
    graph = matrix(5, "01", "23", "24", "34")
    training = quick(5)
    mechanism = GraphPubTrained(1.0, training, **arguments)
    outputs = mechanism(graph, 12, rng=rng())
    check_batch(Calls(mechanism), graph, rng(1), size=16)
    for scores, output in zip(training(graph, 12, rng=rng()), outputs, strict=True):
        law = GraphPub(1.0, 5, scores, **arguments).distribution(graph)
        assert (law.outcomes == output).all(axis=1).any()

    assert len(np.unique(outputs, axis=0)) > 1


@parametrize(
    ("make", "message"),
    [
        (lambda: TrainedScores(np.full((3, 1), np.nan), np.arange(3)), "finite"),
        (lambda: quick(3, encode="both"), r"'learned' or 'private', got 'both'"),
        (lambda: quick(3)(np.zeros((4, 4)), 1, rng=rng()), r"\(3, 3\), got \(4, 4\)"),
    ],
)
def test_errors_show_the_value(make, message):
    with pytest.raises(MechanismError, match=message):
        make()
