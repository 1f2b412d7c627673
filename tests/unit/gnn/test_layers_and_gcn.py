"""Graph convolution against sums over neighbours; training against one model at a time, and on what can be learned."""

import math

import networkx
import numpy as np
import pytest
import torch

from auditdp.errors import MechanismError
from gnn.gcn import GCN, UNLABELLED, cross_entropy
from gnn.layers import graph_convolution, propagation
from tests.unit.gnn.draws import generator

GRAPH = networkx.karate_club_graph()
ADJACENCY = torch.as_tensor(networkx.to_numpy_array(GRAPH, weight=None))


def communities(rng, nodes=40):
    """Two communities of a stochastic block model (edges .3 inside, .02 across), with features that are noise alone."""
    labels = np.arange(nodes) % 2
    probability = np.where(labels[:, None] == labels, 0.3, 0.02)
    upper = np.triu(rng.random((nodes, nodes)) < probability, 1)
    return (upper | upper.T).astype(np.int8), rng.normal(size=(nodes, 8)), labels


def test_propagation_sums_over_neighbours():
    """(SX)_i = Σ_{j ∈ N(i) ∪ {i}} x_j / √((d_i+1)(d_j+1)), Kipf & Welling (2017), Equation 2, entry by entry."""
    features = torch.rand(len(GRAPH), 3, dtype=torch.float64, generator=generator())
    expected = torch.zeros_like(features)
    for i in GRAPH:
        for j in (i, *GRAPH[i]):
            expected[i] += features[j] / math.sqrt(
                (GRAPH.degree[i] + 1) * (GRAPH.degree[j] + 1)
            )
    torch.testing.assert_close(propagation(ADJACENCY) @ features, expected)


def test_propagation_has_its_known_eigenvector():
    """S √(d+1) = √(d+1): the operator is similar to a transition matrix, so 1 is its largest eigenvalue."""
    root = (ADJACENCY.sum(dim=1) + 1).sqrt()
    operator = propagation(ADJACENCY)
    torch.testing.assert_close(operator @ root, root)
    assert torch.linalg.eigvalsh(operator)[-1].item() == pytest.approx(1)


def test_propagation_of_weighted_pairs_by_hand():
    """One edge of weight 3: A + I has row sums 4, so every entry is over 4."""
    expected = torch.tensor([[1.0, 3.0], [3.0, 1.0]]) / 4
    torch.testing.assert_close(
        propagation(torch.tensor([[0.0, 3.0], [3.0, 0.0]])), expected
    )


def test_a_batch_of_graphs_is_each_graph():
    batch = torch.stack([ADJACENCY, torch.zeros_like(ADJACENCY), 0.5 * ADJACENCY])
    for graph, operator in zip(batch, propagation(batch), strict=True):
        torch.testing.assert_close(operator, propagation(graph))
    assert (propagation(batch)[1] == torch.eye(len(GRAPH))).all()


def test_convolution_is_the_product_of_three():
    operator, features, weight = (
        torch.rand(*shape, generator=generator())
        for shape in ((4, 4), (4, 3), (5, 3, 2))
    )
    expected = torch.stack([operator @ features @ each for each in weight])
    torch.testing.assert_close(graph_convolution(operator, features, weight), expected)


@pytest.mark.parametrize("shape", [(3,), (3, 4), (2, 3, 4)])
def test_operators_are_of_square_matrices(shape):
    with pytest.raises(
        MechanismError, match=r"expected adjacency matrices of shape .*, got \("
    ):
        propagation(torch.zeros(shape))


def test_initial_weights_fill_glorots_interval():
    """Uniform on ±√(6/(in+out)): of 24,000 draws the largest is below .99 of it with probability .99^24000 < 1e-100."""
    model = GCN.initial(
        50, features=torch.zeros(2, 30), hidden=16, classes=4, generator=generator()
    )
    for weight, shape in ((model.first, (50, 30, 16)), (model.second, (50, 16, 4))):
        bound = math.sqrt(6 / (shape[1] + shape[2]))
        assert weight.shape == shape
        assert 0.99 * bound < weight.abs().max() <= bound
    assert model.first.dtype == torch.float32
    assert (model.first[0] != model.first[1]).any()


def test_cross_entropy_by_hand():
    """Odds 3:1 for class 0, and even: −ln(3/4) and −ln(1/2), their mean where both are labelled."""
    logits = torch.tensor([[[math.log(3), 0.0], [0.0, 0.0]]]).expand(2, 2, 2)
    labels = torch.tensor([[0, 1], [0, UNLABELLED]])
    expected = torch.tensor([(math.log(4 / 3) + math.log(2)) / 2, math.log(4 / 3)])
    torch.testing.assert_close(cross_entropy(logits, labels), expected)


def test_a_batch_of_models_trains_as_one_by_one():
    adjacency, features, labels = communities(np.random.default_rng(0))
    operator, features = (
        propagation(torch.as_tensor(adjacency, dtype=torch.float64)),
        torch.as_tensor(features),
    )
    labels = torch.as_tensor(labels)
    start = GCN.initial(
        4, features=features, hidden=5, classes=2, generator=generator()
    )
    together = start.fitted(operator, features, labels, epochs=20, learning_rate=0.05)
    for k in range(4):
        alone = GCN(start.first[k : k + 1], start.second[k : k + 1])
        alone = alone.fitted(operator, features, labels, epochs=20, learning_rate=0.05)
        torch.testing.assert_close(together.first[k], alone.first[0], rtol=0, atol=1e-9)
        torch.testing.assert_close(
            together.second[k], alone.second[0], rtol=0, atol=1e-9
        )
        assert (together.first[k] - start.first[k]).abs().max() > 0.1


def test_training_finds_communities():
    """Features name the nodes and say no more, so only edges tell the communities of the twenty unlabelled nodes.

    A coin is right 17 times of 20 or more with probability 1,351/2^20 = .0013.
    """
    adjacency, _, labels = communities(np.random.default_rng(1))
    operator = propagation(torch.as_tensor(adjacency, dtype=torch.float64))
    features, labels = (
        torch.eye(len(labels), dtype=torch.float64),
        torch.as_tensor(labels),
    )
    shown = torch.where(torch.arange(len(labels)) < 20, labels, UNLABELLED)
    start = GCN.initial(
        3, features=features, hidden=8, classes=2, generator=generator()
    )
    model = start.fitted(operator, features, shown, epochs=100, learning_rate=0.01)
    right = (model.logits(operator, features).argmax(dim=-1) == labels)[:, 20:]
    assert (right.sum(dim=1) >= 17).all()
    before = cross_entropy(start.logits(operator, features), shown)
    assert (cross_entropy(model.logits(operator, features), shown) < before / 2).all()
