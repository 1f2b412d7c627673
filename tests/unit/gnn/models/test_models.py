"""Models against sums over neighbours by hand, against torch-geometric's own layers, and against the batch of GCNs."""

import math

import pytest
import torch
from torch.nn import functional
from torch_geometric.nn import GATConv, GCNConv, SAGEConv
from torch_geometric.utils import to_dense_adj

from auditdp.errors import ConfigurationError
from gnn import gcn as batch_of_models
from gnn.layers import graph_convolution, propagation
from gnn.models import APPNP, GAT, GCN, GIN, MLP, DecoupledPageRank, GraphSAGE
from gnn.models.sage import NarrowSAGEConv
from gnn.sparse import dropout
from tests.unit.gnn.draws import generator

# A triangle 0 1 2 with a tail 2 - 3, and the isolated node 4.
EDGES = torch.tensor([[0, 1, 0, 2, 1, 2, 2, 3], [1, 0, 2, 0, 2, 1, 3, 2]])
ADJACENCY = to_dense_adj(EDGES, max_num_nodes=5)[0]
X = torch.rand(5, 6, generator=torch.Generator().manual_seed(7))
NODE_MODELS = [GCN, GAT, GraphSAGE, MLP, APPNP, DecoupledPageRank]


def test_gcn_by_hand():
    """Two nodes with an edge: S has entries 1/2, so both logits are (x0 + x1)/2 W + b, with one layer."""
    model = GCN(2, 2, layers=1, generator=generator())
    weight, bias = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([0.5, -0.5])
    model.layers[0].lin.weight.data, model.layers[0].bias.data = weight.t(), bias
    x = torch.tensor([[1.0, 0.0], [0.0, 3.0]])
    expected = torch.tensor([0.5 * 1 + 1.5 * 3 + 0.5, 0.5 * 2 + 1.5 * 4 - 0.5])
    torch.testing.assert_close(
        model(x, torch.tensor([[0, 1], [1, 0]])), torch.stack([expected, expected])
    )


def test_gcn_is_torch_geometrics():
    model = GCN(6, 3, hidden=4, generator=generator()).eval()
    first, second = GCNConv(6, 4), GCNConv(4, 3)
    first.load_state_dict(model.layers[0].state_dict())
    second.load_state_dict(model.layers[1].state_dict())
    weights = torch.rand(8, generator=generator())
    for given in (None, weights):
        expected = second(first(X, EDGES, given).relu(), EDGES, given)
        torch.testing.assert_close(model(X, EDGES, given), expected)


def test_the_batch_of_gcns_is_torch_geometrics_layer():
    """graph_convolution(propagation(A), X, W) and GCNConv with weights W and no bias, layer and network."""
    layer = GCNConv(6, 4, bias=False)
    torch.testing.assert_close(
        graph_convolution(propagation(ADJACENCY), X, layer.lin.weight.t()),
        layer(X, EDGES),
    )
    models = batch_of_models.GCN.initial(
        3, features=X, hidden=4, classes=2, generator=generator()
    )
    logits = models.logits(propagation(ADJACENCY), X)
    for number in range(3):
        model = GCN(6, 2, hidden=4, generator=generator()).eval()
        for convolution, weight in zip(
            model.layers, (models.first, models.second), strict=True
        ):
            convolution.lin.weight.data = weight[number].t()
        torch.testing.assert_close(model(X, EDGES), logits[number])
        torch.testing.assert_close(
            model.hidden(X, EDGES), models.hidden(propagation(ADJACENCY), X)[number]
        )


def test_sage_by_hand():
    """W₁ mean + b + W₂ x, node by node; the isolated node has mean 0."""
    model = GraphSAGE(6, 3, layers=1, generator=generator())
    layer = model.layers[0]
    logits = model(X, EDGES)
    for node in range(5):
        neighbours = ADJACENCY[node].nonzero().squeeze(1)
        mean = X[neighbours].mean(dim=0) if len(neighbours) else torch.zeros(6)
        torch.testing.assert_close(
            logits[node], layer.lin_l(mean) + layer.lin_r(X[node])
        )


@pytest.mark.parametrize("width", [2, 9], ids=["narrow", "wide"])
def test_means_on_either_side_are_the_same(width):
    ours, theirs = NarrowSAGEConv(6, width), SAGEConv(6, width)
    theirs.load_state_dict(ours.state_dict())
    torch.testing.assert_close(ours(X, EDGES), theirs(X, EDGES))


def test_gat_is_torch_geometrics():
    model = GAT(6, 3, hidden=2, heads=2, generator=generator()).eval()
    first, second = GATConv(6, 2, 2), GATConv(4, 3)
    first.load_state_dict(model.layers[0].state_dict())
    second.load_state_dict(model.layers[1].state_dict())
    torch.testing.assert_close(
        model(X, EDGES), second(functional.elu(first(X, EDGES)), EDGES)
    )


def test_gat_attention_by_hand():
    """Node 3 attends to itself and to 2, with softmax of LeakyReLU(aᵗ of the target + aˢ of the source)."""
    model = GAT(6, 3, layers=1, generator=generator())
    layer = model.layers[0]
    h = layer.lin(X)
    scores = functional.leaky_relu(
        torch.stack(
            [
                (h[j] * layer.att_src[0, 0]).sum() + (h[3] * layer.att_dst[0, 0]).sum()
                for j in (2, 3)
            ]
        ),
        0.2,
    )
    expected = (scores.softmax(dim=0)[:, None] * h[[2, 3]]).sum(dim=0) + layer.bias
    torch.testing.assert_close(model(X, EDGES)[3], expected)
    torch.testing.assert_close(model(X, EDGES)[4], h[4] + layer.bias)


def test_mlp_reads_no_edges():
    model = MLP(6, 3, hidden=4, activation="tanh", generator=generator())
    first, second = model.layers
    torch.testing.assert_close(model(X), second(first(X).tanh()))
    assert (model(X, EDGES) == model(X)).all()


def test_appnp_is_a_power_iteration():
    model = APPNP(6, 3, steps=4, alpha=0.2, generator=generator()).eval()
    start = expected = model.mlp(X)
    for _ in range(4):
        expected = 0.8 * propagation(ADJACENCY) @ expected + 0.2 * start
    torch.testing.assert_close(model(X, EDGES), expected)


def test_pagerank_converges_to_its_closed_form():
    """Q = α (I − (1−α) D⁻¹A)⁻¹ H; and a mixture of rows is the weighted sum of their outputs."""
    model = DecoupledPageRank(6, 3, alpha=0.3, steps=200, generator=generator())
    degrees = ADJACENCY.sum(dim=1, keepdim=True).clamp(min=1)
    expected = 0.3 * torch.linalg.solve(
        torch.eye(5) - 0.7 * ADJACENCY / degrees, model.mlp(X)
    )
    torch.testing.assert_close(model(X, EDGES), expected)
    weights = torch.tensor([0.5, 0.0, 0.25])
    torch.testing.assert_close(
        model.mixed(X[:3], weights), 0.5 * model.mlp(X[0]) + 0.25 * model.mlp(X[2])
    )


def test_gin_by_hand():
    """One layer of messages on the triangle: x + Σ neighbours, perceptron, mean; scores of input and layer are added."""
    model = GIN(6, 2, hidden=4, layers=2, generator=generator()).eval()
    batch = torch.tensor([0, 0, 0, 0, 2])
    summed = X + ADJACENCY @ X
    h = model.layers[0].nn(summed)
    logits = model(X, EDGES, batch, 3)
    expected = model.scores[0](X[:4].mean(dim=0)) + model.scores[1](h[:4].mean(dim=0))
    torch.testing.assert_close(logits[0], expected)
    torch.testing.assert_close(logits[1], model.scores[0].bias + model.scores[1].bias)
    torch.testing.assert_close(logits[2], model.scores[0](X[4]) + model.scores[1](h[4]))


def test_gin_sums_where_it_is_told_to():
    mean, total = (
        GIN(6, 2, layers=2, readout=readout, generator=generator()).eval()
        for readout in ("mean", "sum")
    )
    batch = torch.zeros(5, dtype=torch.long)
    bias = sum(score.bias for score in mean.scores)
    torch.testing.assert_close(
        (mean(X, EDGES, batch, 1) - bias) * 5, total(X, EDGES, batch, 1) - bias
    )


def test_gin_tells_graphs_apart_by_their_degrees():
    """On constant features it separates a path from a star, both of four nodes and three edges."""
    model = GIN(1, 2, layers=3, generator=generator()).eval()
    path = torch.tensor([[0, 1, 2, 1, 2, 3], [1, 2, 3, 0, 1, 2]])
    star = torch.tensor([[0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0]])
    ones, batch = torch.ones(4, 1), torch.zeros(4, dtype=torch.long)
    assert (
        model(ones, path, batch, 1) - model(ones, star, batch, 1)
    ).abs().max() > 1e-4


@pytest.mark.parametrize("kind", NODE_MODELS)
def test_sparse_features_are_dense_ones(kind):
    model = kind(6, 3, generator=generator()).eval()
    x = X * (X > 0.5)
    torch.testing.assert_close(model(x.to_sparse_csr(), EDGES), model(x, EDGES))
    gradients = []
    for given in (x, x.to_sparse_csr()):
        model.zero_grad()
        model(given, EDGES).square().sum().backward()
        gradients.append([weight.grad.clone() for weight in model.parameters()])
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("kind", NODE_MODELS)
def test_a_prediction_reaches_as_far_as_it_says(kind):
    """On a path, logits of node 0 depend on the node ``hops`` edges away and on none farther."""
    extra = {"steps": 3} if kind is APPNP else {}
    model = kind(2, 2, generator=generator(), **extra).eval()
    hops = model.steps if kind is DecoupledPageRank else model.hops
    ends = torch.arange(7)
    edges = torch.stack([torch.cat([ends, ends + 1]), torch.cat([ends + 1, ends])])
    x = torch.rand(8, 2, generator=generator()).requires_grad_()
    (gradient,) = torch.autograd.grad(model(x, edges)[0].sum(), x)
    assert (gradient != 0).any(dim=1).nonzero().max() == hops


@pytest.mark.parametrize("kind", [*NODE_MODELS, GIN])
def test_a_generator_is_the_initial_weights_and_nothing_else_is(kind):
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first, same, other = (
        kind(6, 3, generator=generator(seed)).state_dict() for seed in (0, 0, 1)
    )
    assert (torch.get_rng_state() == before).all()
    assert all((first[name] == same[name]).all() for name in first)
    assert any((first[name] != other[name]).any() for name in first)


def test_initial_weights_are_glorots():
    """Uniform on ±√(6/(in + out)), as Kipf & Welling's; the largest of 1,433 · 16 entries comes close to it."""
    weight = GCN(1433, 7, generator=generator()).layers[0].lin.weight.detach()
    bound = math.sqrt(6 / (1433 + 16))
    assert 0.999 * bound < float(weight.abs().max()) <= bound


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_dropout_keeps_the_mean(layout):
    """Of 10,000 ones a quarter goes, within six standard deviations, and the rest is divided by 3/4."""
    x = torch.ones(100, 100)
    given = x.to_sparse_csr() if layout == "sparse" else x
    torch.manual_seed(0)
    dropped = dropout(given, 0.25, training=True).to_dense()
    assert dropped.unique().tolist() == pytest.approx([0.0, 4 / 3])
    assert abs(int((dropped == 0).sum()) - 2500) < 6 * math.sqrt(10000 * 3 / 16)
    assert dropout(given, 0.25, training=False) is given


def test_dropout_is_in_training_alone():
    model = GCN(6, 3, dropout=0.5, input_dropout=0.5, generator=generator())
    torch.manual_seed(0)
    assert (model(X, EDGES) != model(X, EDGES)).any()
    model.eval()
    assert (model(X, EDGES) == model(X, EDGES)).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: GCN(0, 3, generator=generator()),
            "GCN: expected features, an integer >= 1, got 0",
        ),
        (lambda: GraphSAGE(6, 0, generator=generator()), "classes, an integer >= 1"),
        (
            lambda: MLP(6, 3, hidden=2.5, generator=generator()),
            "hidden, an integer >= 1, got 2.5",
        ),
        (lambda: GAT(6, 3, heads=0, generator=generator()), "heads, an integer >= 1"),
        (
            lambda: GAT(6, 3, attention_dropout=1.0, generator=generator()),
            r"attention_dropout in \[0, 1\), got 1.0",
        ),
        (lambda: GCN(6, 3, dropout=1.0, generator=generator()), r"dropout in \[0, 1\)"),
        (lambda: GCN(6, 3, input_dropout=-0.1, generator=generator()), "input_dropout"),
        (
            lambda: GCN(6, 3, activation="rellu", generator=generator()),
            "did you mean 'relu'",
        ),
        (lambda: GIN(1, 2, layers=1, generator=generator()), "layers, an integer >= 2"),
        (lambda: GIN(1, 2, readout="max", generator=generator()), "no readout 'max'"),
        (lambda: APPNP(6, 3, alpha=1.5, generator=generator()), "alpha"),
        (lambda: DecoupledPageRank(6, 3, steps=0, generator=generator()), "steps"),
        (
            lambda: GraphSAGE(6, 3, generator=generator())(X, EDGES, torch.ones(8)),
            "reads no edge weights.*use GCN",
        ),
    ],
)
def test_refusals(make, message):
    with pytest.raises(ConfigurationError, match=message):
        make()
