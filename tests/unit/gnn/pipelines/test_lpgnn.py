"""LPGNN: KProp against dense matrix powers, losses by hand, and small runs."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch import tensor
from torch.testing import assert_close
from torch_geometric.data import Data
from torch_geometric.utils import to_dense_adj

from gnn.datasets import Split, random_split
from gnn.models import GAT, GCN, GraphSAGE
from gnn.pipelines.lpgnn import (
    LocallyPrivateGNN,
    Parameters,
    below_ceiling,
    denoised_labels,
    k_prop,
    log_corrected,
    log_denoised,
    lpgnn,
    noisy_labels,
    normalised_adjacency,
    propagated,
    transition,
)
from gnn.pipelines.lpgnn import propagation as propagation_module
from gnn.pipelines.lpgnn.features import multi_bit, scaled_by_population
from gnn.training import Epoch, evaluate
from gnn.validation import DataError
from mechanisms.features import MinMaxScaled, MultiBit
from mechanisms.labels import LabelRR
from tests.unit.gnn.draws import arcs, generator, rng, two_communities

approx = pytest.approx
parametrize = pytest.mark.parametrize


def communities(isolated=0):
    """Two communities with features in [0, 1], and isolated nodes of class 0 after them."""
    data = two_communities(60, inside=0.15, across=0.01, features=4, signal=2.0)
    x = torch.cat([data.x.sigmoid(), torch.full((isolated, 4), 0.5)])
    y = torch.cat([data.y, data.y.new_zeros(isolated)])
    found = Data(x=x, edge_index=data.edge_index, y=y, num_nodes=len(y))
    found.num_classes = 2
    return found


DATA = communities()
SPLIT = random_split(DATA.y, (0.5, 0.25, 0.25), generator=generator())
EASY = Parameters(
    epsilon_features=8.0,
    epsilon_labels=2.0,
    steps_features=2,
    steps_labels=2,
    epochs=30,
)
SHORT = replace(EASY, epochs=3)
PATH = arcs("01 10 12 21")
"""0 – 1 – 2; any other nodes are isolated."""


def run(parameters=EASY, data=DATA, *, split=SPLIT, seed=0):
    return lpgnn(data, parameters, split=split, generator=generator(seed))


def operator_of(data):
    return normalised_adjacency(data.edge_index, data.num_nodes)


# KProp


@parametrize("steps", [0, 1, 5])
@parametrize("sparse", [False, True])
def test_kprop_is_a_power_of_the_normalised_adjacency(monkeypatch, steps, sparse):
    # Four columns are one whole block, and one of a single column.
    monkeypatch.setattr(propagation_module, "COLUMNS", 3)
    data = communities(isolated=2)
    x = data.x.to_sparse_csr() if sparse else data.x
    adjacency = to_dense_adj(data.edge_index)[0].double()
    degrees = adjacency.sum(dim=1).clamp(min=1)
    dense = adjacency / (degrees * degrees[:, None]).sqrt()
    expected = torch.linalg.matrix_power(dense, steps) @ data.x[:120].double()
    isolated = data.x[120:] * (steps == 0)
    expected = torch.cat([expected.float(), isolated])
    operator = operator_of(data)

    assert_close(k_prop(operator, x, steps), expected, rtol=1e-5, atol=1e-5)
    found = propagated(operator, data.x, steps)
    assert_close(found, expected, rtol=1e-5, atol=1e-5)


@parametrize(
    ("kind", "density"),
    [
        (GraphSAGE, 0.1),
        (GraphSAGE, 0.9),
        (GCN, 0.1),
        (GAT, 0.9),
    ],
)
def test_the_model_is_the_network_behind_kprop(kind, density):
    """torch-geometric's operators with the same weights, on the dense S²(3E + ½).

    A sparse E is multiplied by the weights first, a dense one is propagated first.
    """
    data = communities(isolated=1)
    encoded = (torch.rand(121, 30, generator=generator()) < density).float()
    options = {"dropout": 0.0, "activation": "selu"}
    network, same = (kind(30, 2, generator=generator(1), **options) for _ in range(2))
    model = LocallyPrivateGNN(same, steps=2, scale=3.0, shift=0.5)
    dense = k_prop(operator_of(data), 3 * encoded + 0.5, 2)
    expected = network(dense, data.edge_index)
    found = model(encoded.to_sparse_csr(), data.edge_index)

    assert_close(found, expected, atol=1e-4, rtol=1e-4)

    gradients = []
    for layers, output in ((model.layers, found), (network.layers, expected)):
        weights = [p for p in layers[0].parameters() if p.ndim == 2]
        gradients.append(torch.autograd.grad(output.square().sum(), weights))

    assert_close(*gradients, atol=1e-3, rtol=1e-3)


# Features


def test_reports_are_those_of_the_encoder_with_its_rectifier():
    encoder = MultiBit(4.4, 4)
    x = torch.rand(40, 4, generator=generator())
    sent = encoder.perturb(x.double().numpy(), rng=rng())
    for given in (x, x.to_sparse_csr()):
        found = multi_bit(given, encoder, rng=rng())
        encoded = found.encoded.to_dense().numpy()
        assert_array_equal(encoded, sent)
        estimates = found.scale * encoded + found.shift
        assert_allclose(estimates, encoder.rectify(sent), rtol=1e-6)


def test_scaling_by_the_population_is_the_mechanisms_own():
    """Constant features are dropped."""
    x = tensor(
        [
            [0.0, 0.2, 5.0, 0.0],
            [0.5, 0.0, 5.0, 0.0],
            [0.0, 0.1, 5.0, 0.0],
        ]
    )
    mechanism = MinMaxScaled(MultiBit(1.0, 4), 3, "drop")
    expected = mechanism.prepared(x.double().numpy(), np)
    for given in (x, x.to_sparse_csr(), x[:, :2].to_sparse_csr(), x - 1):
        found = scaled_by_population(given).to_dense()
        assert_allclose(found, expected, atol=1e-6)

    with pytest.raises(DataError, match="every feature is the same"):
        scaled_by_population(x[:, 2:])


# Labels

LAW = LabelRR(math.log(2), 3)
"""A label of three classes is kept with probability ½."""


SENT = Split(tensor([3]), tensor([0]), tensor([1, 2]))


def test_noisy_labels_are_of_training_and_validation_nodes_alone():
    labels = tensor([0, 1, 2, 1])
    assert noisy_labels(labels, SENT, None, rng=rng()).tolist() == [0, -1, -1, 1]

    everybody = replace(SENT, training=torch.arange(3, 4000))
    labels = torch.zeros(4000, dtype=torch.long)
    kept = noisy_labels(labels, everybody, LAW, rng=rng()) == 0

    assert abs(float(kept.float().mean()) - 0.5) < 6 * 0.5 / math.sqrt(4000)


def test_forward_correction_by_hand():
    """P = (.8, .1, .1) gives p'₀ = .8·½ + .2·¼ = .45, p'₁ = .9·¼ + .1·½ = .275."""
    logits = tensor([[0.8, 0.1, 0.1]]).log()
    found = log_corrected(logits, transition(LAW, 3)).exp()

    assert_close(found, tensor([[0.45, 0.275, 0.275]]))
    assert_close(log_corrected(logits, None), logits)
    assert transition(None, 3).equal(torch.eye(3))


def test_drop_by_hand():
    """Node 1 gets the mean of p' of 0 and 2, and nodes 0 and 2 get p' of node 1."""
    logits = tensor(
        [
            [0.8, 0.1, 0.1],
            [0.2, 0.6, 0.2],
            [0.1, 0.8, 0.1],
        ]
    ).log()
    operator = normalised_adjacency(PATH, 3)
    reach = propagated(operator, torch.ones(3, 1), 1)
    found = log_denoised(logits, transition(LAW, 3), operator, 1, reach).exp()
    end = [0.3, 0.4, 0.3]
    middle = [(0.45 + 0.275) / 2, (0.275 + 0.45) / 2, 0.275]

    assert_close(found, tensor([end, middle, end]))


@parametrize(
    ("noisy", "steps", "expected"),
    [
        ([2, 0, 2, 1], 0, [2, 0, 2, 1]),
        ([2, 0, 2, 1], 1, [0, 2, 0, -1]),
        ([-1, 0, -1, -1], 1, [0, -1, 0, -1]),
    ],
)
def test_denoised_labels_by_hand(noisy, steps, expected):
    """0 – 1 – 2, and 3 apart; a node takes the label of most of its messages."""
    operator = normalised_adjacency(PATH, 4)
    found = denoised_labels(operator, tensor(noisy), 3, steps)
    assert found.tolist() == expected


@parametrize(
    ("loss", "score", "expected"),
    [
        (0.9, 0.6, True),
        (0.9, 0.601, False),
        (1.0, 0.55, False),
        (0.9, 0.5, False),
    ],
)
def test_an_epoch_is_better_if_loss_falls_and_accuracy_rises_to_the_ceiling(
    loss, score, expected
):
    better = below_ceiling(0.6)
    assert better(Epoch(1, 0, 0, 9.0, 0.9), None)

    found = better(Epoch(2, 0, 0, loss, score), Epoch(1, 0, 0, 1.0, 0.5))
    assert found is expected


# Runs


@parametrize("model", ["GraphSAGE", "GCN", "GAT"])
def test_a_run_learns_the_communities(model):
    trained, record = run(replace(EASY, model=model))
    assert record.test_accuracy > 0.8
    assert record.label_accuracy > record.ceiling - 0.05
    assert record.ceiling == approx(math.exp(2) / (math.exp(2) + 1))

    labelled = record.released.clone()
    labelled.y = DATA.y
    accuracy = evaluate(trained, labelled, SPLIT.test)

    assert accuracy == approx(record.test_accuracy)

    best = record.training.best.validation_score
    assert best <= record.ceiling or record.training.chosen == 1


@parametrize(
    ("learning", "features", "scaling"),
    [
        ("cross-entropy", "MBM", "population"),
        ("forward correction", "Ones", "none"),
        ("Drop", "OHD", "none"),
        ("Drop", "RND", "none"),
    ],
)
def test_a_run_is_a_function_of_its_seed(learning, features, scaling):
    parameters = replace(SHORT, learning=learning, features=features, scaling=scaling)
    first, same, other = (run(parameters, seed=seed)[1] for seed in (1, 1, 2))

    assert first.training.epochs == same.training.epochs
    assert first.training.epochs != other.training.epochs


def test_without_privacy_features_and_labels_are_sent_as_they_are():
    infinite = {"epsilon_features": math.inf, "epsilon_labels": math.inf}
    _, record = run(replace(SHORT, learning="cross-entropy", **infinite))
    assert record.released.x.equal(DATA.x)
    sent = torch.cat([SPLIT.training, SPLIT.validation])
    assert record.released.y[sent].equal(DATA.y[sent])
    assert record.released.y[SPLIT.test].eq(-1).all()


def test_test_labels_change_nothing_but_the_reported_accuracy():
    flipped = DATA.clone()
    flipped.y = DATA.y.clone()
    flipped.y[SPLIT.test] = 1 - DATA.y[SPLIT.test]
    one, two = run(SHORT)[1], run(SHORT, flipped)[1]

    assert one.training.epochs == two.training.epochs
    assert one.test_accuracy == approx(1 - two.test_accuracy)


@parametrize(
    ("learning", "isolated"),
    [
        ("Drop", 0),
        ("forward correction", 10),
    ],
)
def test_isolated_training_nodes_are_left_out_of_the_loss_of_drop(learning, isolated):
    """Drop leaves out all ten, and forward correction none."""
    data = communities(isolated=10)
    training = torch.cat([SPLIT.training, torch.arange(120, 130)])
    split = replace(SPLIT, training=training)
    _, record = run(replace(SHORT, learning=learning), data, split=split)
    _, connected = run(SHORT)

    assert record.training_nodes == connected.training_nodes + isolated
