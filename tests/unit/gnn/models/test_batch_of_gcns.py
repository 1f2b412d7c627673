"""Graph convolution against sums over neighbours, and batches of GCNs against each GCN."""

import math

import networkx
import torch
from torch.testing import assert_close
from torch_geometric.nn import GCNConv

from gnn.gcn import GCN, UNLABELLED, cross_entropy
from gnn.layers import graph_convolution, propagation
from tests.unit.gnn.draws import generator

GRAPH = networkx.karate_club_graph()
ADJACENCY = torch.as_tensor(networkx.to_numpy_array(GRAPH, weight=None))
X = torch.rand(34, 6, dtype=torch.float64, generator=generator())


def models(count, x=X):
    return GCN.initial(count, features=x, hidden=5, classes=2, generator=generator())


def test_propagation_of_a_batch_of_weighted_graphs():
    """An edge of weight 3: A + I has row sums 4."""
    pair = torch.tensor([[0.0, 3.0], [3.0, 0.0]])
    found = propagation(torch.stack([pair, 0 * pair]))

    assert_close(found[0], torch.tensor([[1.0, 3.0], [3.0, 1.0]]) / 4)
    assert_close(found[1], torch.eye(2))


def test_the_batch_is_torch_geometrics_layer():
    operator = propagation(ADJACENCY)
    batch = models(3)
    logits, hidden = batch.logits(operator, X), batch.hidden(operator, X)
    edges = ADJACENCY.nonzero().t()
    first = GCNConv(6, 5, bias=False).double()
    second = GCNConv(5, 2, bias=False).double()
    for number in range(3):
        first.lin.weight.data = batch.first[number].t()
        second.lin.weight.data = batch.second[number].t()
        one = first(X, edges)
        assert_close(graph_convolution(operator, X, batch.first[number]), one)
        assert_close(hidden[number], one.relu())
        assert_close(logits[number], second(one.relu(), edges))


def test_cross_entropy_by_hand():
    """Odds 3:1 for class 0, and even; their mean where both are labelled."""
    logits = torch.tensor([[[math.log(3), 0.0], [0.0, 0.0]]]).expand(2, 2, 2)
    labels = torch.tensor([[0, 1], [0, UNLABELLED]])
    first = math.log(4 / 3)
    expected = torch.tensor([(first + math.log(2)) / 2, first])

    assert_close(cross_entropy(logits, labels), expected)


def test_a_batch_of_models_trains_as_one_by_one():
    labels = torch.arange(34) % 2
    given = propagation(ADJACENCY), X, labels
    steps = {"epochs": 20, "learning_rate": 0.05}
    start = models(3)
    together = start.fitted(*given, **steps)
    for k in range(3):
        alone = GCN(start.first[[k]], start.second[[k]])
        alone = alone.fitted(*given, **steps)
        assert_close(together.first[[k]], alone.first, rtol=0, atol=1e-9)
        assert_close(together.second[[k]], alone.second, rtol=0, atol=1e-9)
        assert (alone.first - start.first[[k]]).abs().max() > 0.1
