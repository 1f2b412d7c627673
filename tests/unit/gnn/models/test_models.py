"""Models against sums over neighbours by hand, and against torch-geometric's layers."""

import math

import pytest
import torch
from torch.nn import functional
from torch.testing import assert_close
from torch_geometric.nn import GATConv, GCNConv, SAGEConv
from torch_geometric.utils import to_dense_adj

from gnn.layers import propagation
from gnn.models import APPNP, GAT, GCN, GIN, MLP, DecoupledPageRank, GraphSAGE
from gnn.models.sage import NarrowSAGEConv
from gnn.sparse import dropout
from tests.unit.gnn.draws import arcs, flat, generator

parametrize = pytest.mark.parametrize

# A triangle 0 1 2 with a tail 2 - 3, and the isolated node 4.
EDGES = arcs("01 10 02 20 12 21 23 32")
ADJACENCY = to_dense_adj(EDGES, max_num_nodes=5)[0]
WALK = ADJACENCY / torch.tensor([[2.0], [2.0], [3.0], [1.0], [1.0]])
X = torch.rand(5, 6, generator=generator(7))
NODE_MODELS = [GCN, GAT, GraphSAGE, MLP, APPNP, DecoupledPageRank]


def made(kind, features=6, classes=3, seed=0, **options):
    return kind(features, classes, generator=generator(seed), **options).eval()


def with_weights_of(layers, model):
    for layer, trained in zip(layers, model.layers, strict=True):
        layer.load_state_dict(trained.state_dict())
    return layers


@parametrize("weights", [None, torch.rand(8, generator=generator())])
def test_gcn_is_torch_geometrics(weights):
    model = made(GCN, hidden=4)
    first, second = with_weights_of([GCNConv(6, 4), GCNConv(4, 3)], model)
    hidden = first(X, EDGES, weights).relu()
    assert_close(model(X, EDGES, weights), second(hidden, EDGES, weights))


def test_gat_is_torch_geometrics():
    model = made(GAT, hidden=2, heads=2)
    first, second = with_weights_of([GATConv(6, 2, 2), GATConv(4, 3)], model)
    expected = second(functional.elu(first(X, EDGES)), EDGES)

    assert_close(model(X, EDGES), expected)


def test_sage_by_hand():
    """W₁ mean + b + W₂ x; the isolated node has mean 0."""
    model = made(GraphSAGE, layers=1)
    layer = model.layers[0]
    expected = layer.lin_l(WALK @ X) + layer.lin_r(X)

    assert_close(model(X, EDGES), expected)


@parametrize("width", [2, 9])
def test_means_before_and_after_the_product_are_the_same(width):
    ours, theirs = NarrowSAGEConv(6, width), SAGEConv(6, width)
    theirs.load_state_dict(ours.state_dict())
    assert_close(ours(X, EDGES), theirs(X, EDGES))


def test_mlp_reads_no_edges():
    model = made(MLP, hidden=4, activation="tanh")
    first, second = model.layers
    expected = second(first(X).tanh())

    assert_close(model(X), expected)
    assert_close(model(X, EDGES), expected)


def test_appnp_is_a_power_iteration():
    model = made(APPNP, steps=4, alpha=0.2)
    start = expected = model.mlp(X)
    for _ in range(4):
        expected = 0.8 * propagation(ADJACENCY) @ expected + 0.2 * start

    assert_close(model(X, EDGES), expected)


def test_pagerank_converges_to_its_closed_form():
    """Q = α (I − (1−α) D⁻¹A)⁻¹ H; a mixture of rows is the weighted sum of outputs."""
    model = made(DecoupledPageRank, alpha=0.3, steps=200)
    h = model.mlp(X)
    expected = 0.3 * torch.linalg.solve(torch.eye(5) - 0.7 * WALK, h)

    assert_close(model(X, EDGES), expected)

    model.steps = 1
    assert_close(model(X, EDGES), 0.7 * WALK @ h + 0.3 * h)

    mixed = model.mixed(X[:3], torch.tensor([0.5, 0.0, 0.25]))
    assert_close(mixed, 0.5 * h[0] + 0.25 * h[2])


def test_gin_by_hand():
    """Messages x + Σ neighbours, a perceptron, the mean; scores of all layers are added."""
    options = {"classes": 2, "hidden": 4, "layers": 2}
    model = made(GIN, **options)
    h = model.layers[0].nn(X + ADJACENCY @ X)
    first, second = model.scores
    batch = torch.tensor([0, 0, 0, 0, 2])
    bias = first.bias + second.bias
    expected = torch.stack(
        [
            first(X[:4].mean(dim=0)) + second(h[:4].mean(dim=0)),
            bias,
            first(X[4]) + second(h[4]),
        ]
    )

    assert_close(model(X, EDGES, batch, 3), expected)

    total = made(GIN, **options, readout="sum")
    sums = (expected[0] - bias) * 4 + bias

    assert_close(total(X, EDGES, batch, 3)[0], sums)


@parametrize("kind", NODE_MODELS)
def test_sparse_features_are_dense_ones(kind):
    model = made(kind)
    x = X * (X > 0.5)
    found = []
    for given in (x, x.to_sparse_csr()):
        outputs = model(given, EDGES)
        loss = outputs.square().sum()
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        found.append([outputs, *gradients])

    assert_close(*found)


@parametrize("kind", NODE_MODELS)
def test_a_prediction_reaches_the_declared_number_of_hops(kind):
    """Logits of node 0 of a path depend on the node ``hops`` edges away."""
    extra = {"steps": 3} if kind is APPNP else {}
    model = made(kind, 2, 2, **extra)
    hops = model.steps if kind is DecoupledPageRank else model.hops
    ends = torch.arange(7)
    forth = torch.stack([ends, ends + 1])
    edges = torch.cat([forth, forth.flip(0)], dim=1)
    x = torch.rand(8, 2, generator=generator()).requires_grad_()
    (gradient,) = torch.autograd.grad(model(x, edges)[0].sum(), x)

    assert gradient.any(dim=1).nonzero().max() == hops


@parametrize("kind", [*NODE_MODELS, GIN])
def test_initial_weights_are_a_function_of_the_generator(kind):
    state = torch.get_rng_state()
    first, same, other = (flat(made(kind, seed=seed)) for seed in (0, 0, 1))

    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(first, same)
    assert not torch.equal(first, other)


def test_initial_weights_are_glorots():
    """Uniform on ±√(6/(in + out)); one of 1,433 · 16 entries is close to the bound."""
    weight = made(GCN, 1433, 7).layers[0].lin.weight.detach()
    bound = math.sqrt(6 / (1433 + 16))
    assert 0.999 * bound < float(weight.abs().max()) <= bound


@parametrize("sparse", [False, True])
def test_dropout_keeps_the_mean(sparse):
    """A quarter of 10,000 ones goes, within six deviations; the rest is divided by 3/4."""
    ones = torch.ones(100, 100)
    given = ones.to_sparse_csr() if sparse else ones
    torch.manual_seed(0)
    dropped = dropout(given, 0.25, training=True).to_dense()

    assert dropped.unique().tolist() == pytest.approx([0.0, 4 / 3])
    assert abs(float(dropped.sum()) - 10_000) < 6 * math.sqrt(10_000 / 3)
    assert dropout(given, 0.25, training=False) is given


@parametrize("option", ["dropout", "input_dropout"])
def test_dropout_is_in_training_alone(option):
    model = made(GCN, **{"dropout": 0.0, option: 0.5})
    assert_close(model(X, EDGES), model(X, EDGES), rtol=0, atol=0)

    model.train()
    assert (model(X, EDGES) != model(X, EDGES)).any()
