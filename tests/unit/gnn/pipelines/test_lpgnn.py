"""LPGNN: KProp against dense matrix powers, losses against numbers worked out by hand, and whole runs on a small graph."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from auditdp.errors import ConfigurationError, MechanismError
from gnn.datasets import Split, random_split
from gnn.datasets.generated import stochastic_block_model
from gnn.models import GAT, GCN, GraphSAGE
from gnn.pipelines.lpgnn import (
    LocallyPrivateGNN,
    Parameters,
    PropagatedFeatures,
    below_ceiling,
    denoised_labels,
    k_prop,
    log_corrected,
    log_denoised,
    lpgnn,
    noisy_labels,
    normalised_adjacency,
    propagated,
    reports,
    transition,
)
from gnn.pipelines.lpgnn import propagation as propagation_module
from gnn.pipelines.lpgnn.features import clipped, multi_bit, scaled_by_population
from gnn.training import Epoch, evaluate
from gnn.validation import DataError
from mechanisms.features import MinMaxScaled, MultiBit
from mechanisms.labels import LabelRR
from tests.unit.gnn.draws import generator


def communities(isolated=0):
    """Two communities whose features in [0, 1] tell them apart, and isolated nodes of class 0 after them."""
    data = stochastic_block_model(
        [60, 60],
        inside=0.15,
        across=0.01,
        features=4,
        signal=2.0,
        rng=np.random.default_rng(0),
    )
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
PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
"""0 – 1 – 2; of more nodes the others are isolated."""


def run(parameters=EASY, data=DATA, *, split=SPLIT, seed=0):
    return lpgnn(data, parameters, split=split, generator=generator(seed))


# KProp


def dense_operator(data):
    adjacency = torch.zeros(data.num_nodes, data.num_nodes, dtype=torch.float64)
    adjacency[data.edge_index[0], data.edge_index[1]] = 1
    scale = adjacency.sum(dim=1)
    scale = torch.where(scale > 0, scale.rsqrt(), 0.0)
    return scale[:, None] * adjacency * scale


@pytest.mark.parametrize("steps", [0, 1, 2, 5])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_kprop_is_a_power_of_the_normalised_adjacency(monkeypatch, steps, layout):
    monkeypatch.setattr(
        propagation_module, "COLUMNS", 3
    )  # four columns: one whole block, and one of a single column
    data = communities(isolated=2)
    operator = normalised_adjacency(data.edge_index, data.num_nodes)
    x = data.x if layout == "dense" else data.x.to_sparse_csr()
    expected = torch.linalg.matrix_power(dense_operator(data), steps) @ data.x.double()
    torch.testing.assert_close(
        k_prop(operator, x, steps).double(), expected, atol=1e-5, rtol=1e-5
    )
    torch.testing.assert_close(
        propagated(operator, data.x, steps).double(), expected, atol=1e-5, rtol=1e-5
    )
    if steps:
        assert not k_prop(operator, x, steps)[-2:].any()


def test_kprop_of_a_path():
    """Degrees 1, 2, 1: every weight is 1/√2, so S (1, 0, 0) = (0, 1/√2, 0) and S² (1, 0, 0) = (½, 0, ½)."""
    start = torch.tensor([[1.0], [0.0], [0.0]])
    found = propagated(normalised_adjacency(PATH, 3), start, 2)
    torch.testing.assert_close(found, torch.tensor([[0.5], [0.0], [0.5]]))


def test_kprop_refuses_arcs_of_one_direction():
    with pytest.raises(DataError, match="one direction only"):
        normalised_adjacency(PATH[:, :3], 3)


@pytest.mark.parametrize("density", [0.1, 0.9])
def test_products_before_propagation_are_those_after_it(density):
    """A sparse E is multiplied first, a dense one propagated first; products and gradients are the same."""
    operator = normalised_adjacency(DATA.edge_index, 120)
    encoded = (torch.rand(120, 30, generator=generator()) < density).float()
    weight = torch.randn(5, 30, generator=generator(1), requires_grad=True)
    features = PropagatedFeatures(
        encoded.to_sparse_csr(), operator, 3, scale=2.0, shift=0.5
    )
    found = features.product(weight)
    expected = k_prop(operator, 2 * encoded + 0.5, 3) @ weight.t()
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    slope = torch.randn(120, 5, generator=generator(2))
    gradients = [
        torch.autograd.grad(each, weight, slope)[0] for each in (found, expected)
    ]
    torch.testing.assert_close(*gradients, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", [GraphSAGE, GCN, GAT])
def test_the_model_is_the_network_behind_kprop(kind):
    """With the same weights: torch-geometric's own operators on the dense S²(3E + ½), gradients too."""
    data = communities(isolated=1)
    encoded = (torch.rand(121, 30, generator=generator()) < 0.1).float()
    network, same = (
        kind(30, 2, dropout=0.0, activation="selu", generator=generator(1))
        for _ in range(2)
    )
    model = LocallyPrivateGNN(same, steps=2, scale=3.0, shift=0.5)
    operator = normalised_adjacency(data.edge_index, 121)
    expected = network(k_prop(operator, 3 * encoded + 0.5, 2), data.edge_index)
    found = model(encoded.to_sparse_csr(), data.edge_index)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    for each in (found, expected):
        each.square().sum().backward()
    first = [p.grad for p in network.layers[0].parameters() if p.ndim == 2]
    mine = [p.grad for p in model.layers[0].parameters() if p.ndim == 2]
    assert len(first) == len(mine) == len(list(model.layers[0].maps))
    for ours, theirs in zip(mine, first, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-3, rtol=1e-3)


# Features


def test_reports_are_the_encoders_and_are_rectified_without_bias():
    """At ε = 4.4 two of four features are sent; the mean of 4,000 estimates is within 6 standard errors of the truth."""
    encoder = MultiBit(4.4, 4)
    x = torch.tensor([[0.0, 1.0, 0.5, 0.25]]).expand(4000, 4)
    for given in (x, x.to_sparse_csr()):
        found = multi_bit(given, encoder, rng=np.random.default_rng(0))
        sent = found.encoded.to_dense()
        assert sent.abs().sum(dim=1).eq(2).all()
        estimates = found.scale * sent + found.shift
        np.testing.assert_allclose(
            estimates[:9], encoder.rectify(sent[:9].numpy()), rtol=1e-6
        )
        error = np.sqrt(encoder.variance(x[0].numpy().astype(float)) / 4000)
        assert (abs(estimates.mean(dim=0).numpy() - x[0].numpy()) < 6 * error).all()


def test_scaling_by_the_population_is_the_mechanisms_own_without_constant_features():
    x = torch.tensor([[0.0, 0.2, 5.0, 0.0], [0.5, 0.0, 5.0, 0.0], [0.0, 0.1, 5.0, 0.0]])
    expected = MinMaxScaled(MultiBit(1.0, 4), 3, "drop").prepared(
        x.double().numpy(), np
    )
    assert expected.shape == (3, 2)
    for given in (x, x.to_sparse_csr(), x[:, :2].to_sparse_csr(), x - 1):
        found = scaled_by_population(given)
        np.testing.assert_allclose(
            found.to_dense() if found.is_sparse_csr else found, expected, atol=1e-6
        )
    with pytest.raises(DataError, match="every feature is the same"):
        scaled_by_population(x[:, 2:])


def test_clipping_keeps_to_the_bounds():
    x = torch.tensor([[-1.0, 0.0], [3.0, 0.5]])
    for given in (x, x.to_sparse_csr()):
        assert clipped(given, 0.0, 1.0).to_dense().tolist() == [[0, 0], [1, 0.5]]
        assert clipped(given, 0.25, 1.0).to_dense().tolist() == [[0.25, 0.25], [1, 0.5]]


def test_ad_hoc_features():
    data = Data(edge_index=PATH, num_nodes=4)
    made = {
        kind: reports(data, Parameters(features=kind, width=3), generator=generator())
        for kind in ("Ones", "OHD", "RND")
    }
    ones = made["Ones"]
    assert (ones.scale * ones.encoded.to_dense() + ones.shift).tolist() == [[1] * 3] * 4
    assert made["OHD"].encoded.to_dense().tolist() == [
        [0, 1, 0],
        [0, 0, 1],
        [0, 1, 0],
        [1, 0, 0],
    ]
    assert made["RND"].encoded.std() > 0.2
    with pytest.raises(DataError, match="give width"):
        reports(data, Parameters(features="OHD"), generator=generator())


# Labels


def test_noisy_labels_are_of_training_and_validation_nodes_alone():
    labels, split = (
        torch.tensor([0, 1, 2, 1]),
        Split(torch.tensor([3]), torch.tensor([0]), torch.tensor([1, 2])),
    )
    assert noisy_labels(labels, split, None, rng=np.random.default_rng(0)).tolist() == [
        0,
        -1,
        -1,
        1,
    ]
    many = torch.zeros(4000, dtype=torch.long)
    split = Split(
        torch.arange(3999), torch.tensor([3999]), torch.tensor([], dtype=torch.long)
    )
    found = noisy_labels(many, split, LabelRR(1.0, 3), rng=np.random.default_rng(0))
    assert abs(
        float((found == 0).float().mean()) - math.e / (math.e + 2)
    ) < 6 * 0.5 / math.sqrt(4000)


def test_the_law_of_a_noisy_label():
    """E = 2 and three classes: ½, ¼, ¼."""
    found = transition(LabelRR(math.log(2), 3), 3)
    torch.testing.assert_close(
        found, torch.tensor([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]])
    )
    assert transition(None, 3).equal(torch.eye(3))


def test_forward_correction_by_hand():
    """Of p = (.8, .1, .1): p'₀ = .8·½ + .1·¼ + .1·¼ = .45, p'₁ = .8·¼ + .1·½ + .1·¼ = .275."""
    logits = torch.tensor([[0.8, 0.1, 0.1]]).log()
    law = transition(LabelRR(math.log(2), 3), 3)
    torch.testing.assert_close(
        log_corrected(logits, law).exp(), torch.tensor([[0.45, 0.275, 0.275]])
    )
    torch.testing.assert_close(
        log_corrected(logits, None).exp(), torch.tensor([[0.8, 0.1, 0.1]])
    )


def test_drop_by_hand():
    """One step on 0 – 1 – 2, all weights 1/√2: node 1 gets the mean of p' of 0 and 2, nodes 0 and 2 get p' of 1."""
    logits = torch.tensor([[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.1, 0.8, 0.1]]).log()
    law = transition(LabelRR(math.log(2), 3), 3)
    operator = normalised_adjacency(PATH, 3)
    reach = propagated(operator, torch.ones(3, 1), 1)
    found = log_denoised(logits, law, operator, 1, reach).exp()
    first, second = [0.3, 0.4, 0.3], [(0.45 + 0.275) / 2, (0.275 + 0.45) / 2, 0.275]
    torch.testing.assert_close(found, torch.tensor([first, second, first]))


def test_denoised_labels_by_hand():
    """0 – 1 – 2 and 3 apart. With K = 1 node 1 hears 2 from both sides; with K = 0 everybody keeps their own."""
    operator = normalised_adjacency(PATH, 4)
    noisy = torch.tensor([2, 0, 2, 1])
    assert denoised_labels(operator, noisy, 3, 0).tolist() == [2, 0, 2, 1]
    assert denoised_labels(operator, noisy, 3, 1).tolist() == [0, 2, 0, -1]
    assert denoised_labels(operator, torch.tensor([-1, 0, -1, -1]), 3, 1).tolist() == [
        0,
        -1,
        0,
        -1,
    ]


def test_kprop_makes_labels_more_accurate():
    noisy = noisy_labels(DATA.y, SPLIT, LabelRR(1.0, 2), rng=np.random.default_rng(0))
    operator = normalised_adjacency(DATA.edge_index, 120)
    nodes = SPLIT.training
    raw, better = (
        float(
            (denoised_labels(operator, noisy, 2, steps) == DATA.y)[nodes].float().mean()
        )
        for steps in (0, 4)
    )
    assert better > raw + 0.1


def test_an_epoch_is_kept_if_loss_falls_and_accuracy_rises_up_to_the_ceiling():
    better = below_ceiling(0.6)

    def epoch(loss, score):
        return Epoch(1, 0.0, 0.0, loss, score)

    assert better(epoch(9.0, 0.9), None)
    table = [
        (0.9, 0.55, True),
        (0.9, 0.6, True),
        (0.9, 0.601, False),  # accuracy beyond Acc*
        (1.0, 0.55, False),  # loss no lower
        (0.9, 0.5, False),  # accuracy no higher
    ]
    for loss, score, expected in table:
        assert better(epoch(loss, score), epoch(1.0, 0.5)) is expected, (loss, score)


# Whole runs


@pytest.mark.parametrize("model", ["GraphSAGE", "GCN", "GAT"])
def test_a_run_learns_the_communities(model):
    trained, record = run(replace(EASY, model=model))
    assert record.test_accuracy > 0.8
    assert record.label_accuracy > record.ceiling - 0.05
    assert record.ceiling == pytest.approx(math.exp(2) / (math.exp(2) + 1))
    labelled = record.released.clone()
    labelled.y = DATA.y
    assert evaluate(trained, labelled, SPLIT.test) == pytest.approx(
        record.test_accuracy
    )
    assert (
        record.training.best.validation_score <= record.ceiling
        or record.training.chosen == 1
    )


@pytest.mark.parametrize("learning", ["cross-entropy", "forward correction", "Drop"])
@pytest.mark.parametrize("features", ["MBM", "Ones", "OHD", "RND"])
def test_a_run_is_a_function_of_its_seed(learning, features):
    parameters = replace(EASY, learning=learning, features=features, epochs=3)
    (first, one), (second, two), (_, other) = (
        run(parameters, seed=seed) for seed in (1, 1, 2)
    )
    assert all(
        a.equal(b)
        for a, b in zip(
            first.state_dict().values(), second.state_dict().values(), strict=True
        )
    )
    assert one.training.epochs == two.training.epochs
    assert one.training.epochs != other.training.epochs


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("model", ["GraphSAGE", "GCN", "GAT"])
def test_cuda_trains_alike_twice_and_learns(model):
    parameters = replace(EASY, model=model)
    first, second = (
        lpgnn(DATA, parameters, split=SPLIT, generator=generator(), device="cuda")[1]
        for _ in range(2)
    )
    assert first.training.epochs == second.training.epochs
    assert first.test_accuracy > 0.8


def test_without_privacy_features_and_labels_are_sent_as_they_are():
    _, record = run(
        replace(
            EASY,
            epsilon_features=math.inf,
            epsilon_labels=math.inf,
            learning="cross-entropy",
        )
    )
    assert record.released.x.equal(DATA.x)
    sent = torch.cat([SPLIT.training, SPLIT.validation])
    assert record.released.y[sent].equal(DATA.y[sent])
    assert record.released.y[SPLIT.test].eq(-1).all()
    assert (record.ceiling, record.label_accuracy) == (1, 1)
    assert record.test_accuracy > 0.9


def test_features_of_test_nodes_are_sent_and_true_labels_are_not_read():
    """Test labels change nothing but the reported accuracy."""
    changed = DATA.clone()
    changed.y = DATA.y.clone()
    changed.y[SPLIT.test] = 1 - DATA.y[SPLIT.test]
    (_, one), (_, two) = run(), run(data=changed)
    assert one.training.epochs == two.training.epochs
    assert one.test_accuracy == pytest.approx(1 - two.test_accuracy)


def test_isolated_training_nodes_are_left_out_of_the_loss():
    data = communities(isolated=10)
    split = Split(
        torch.cat([SPLIT.training, torch.arange(120, 130)]),
        SPLIT.validation,
        SPLIT.test,
    )
    _, record = run(data=data, split=split)
    connected = run()[1].training_nodes
    assert record.training_nodes == connected
    assert record.test_accuracy > 0.8
    _, plain = run(replace(EASY, learning="forward correction"), data, split=split)
    assert plain.training_nodes == len(split.training)


def test_a_class_without_training_nodes_is_named():
    data = DATA.clone()
    data.y = DATA.y.clone()
    data.y[SPLIT.test[:3]] = 2
    data.num_classes = 3
    _, record = run(data=data)
    assert record.training.untrained_classes == (2,)
    assert record.training.epochs[-1].training_loss < math.log(3)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda x: x + 1, MechanismError, r"expected features in \[0, 1\]"),
        (
            lambda x: torch.where(x == x.max(), torch.nan, x),
            DataError,
            "NaN or infinite",
        ),
        (lambda x: (x > 0.5).long(), DataError, "expected floating point"),
    ],
)
def test_features_that_cannot_be_encoded_are_refused(change, error, message):
    data = DATA.clone()
    data.x = change(DATA.x)
    with pytest.raises(error, match=message):
        run(data=data)


def test_features_outside_the_bounds_can_be_clipped_or_scaled():
    data = DATA.clone()
    data.x = 3 * DATA.x - 1
    for scaling in ("clip", "population"):
        assert run(replace(EASY, scaling=scaling, epochs=3), data)[
            1
        ].released.x.shape == (120, 4)


def test_data_without_labels_to_learn_from_or_features_is_refused():
    bare = Data(edge_index=DATA.edge_index, y=DATA.y, num_nodes=120)
    with pytest.raises(DataError, match="no features x"):
        run(data=bare)
    unlabelled = DATA.clone()
    unlabelled.y = DATA.y.clone()
    unlabelled.y[SPLIT.test[0]] = -1
    with pytest.raises(DataError, match="test nodes have no label"):
        run(data=unlabelled)
    lonely = Data(
        x=DATA.x,
        edge_index=torch.empty(2, 0, dtype=torch.long),
        y=DATA.y,
        num_nodes=120,
    )
    with pytest.raises(DataError, match="steps_labels=0"):
        run(data=lonely)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon_features": 0.0}, "epsilon_features > 0"),
        ({"epsilon_labels": math.nan}, "epsilon_labels > 0"),
        ({"learning": "drop"}, "did you mean 'Drop'"),
        ({"steps_features": -1}, "steps_features"),
        ({"low": 1.0}, "low < high"),
        ({"dropout": 1.0}, "dropout"),
    ],
)
def test_parameters_outside_their_range_are_refused(change, message):
    with pytest.raises(ConfigurationError, match=message):
        replace(EASY, **change)
