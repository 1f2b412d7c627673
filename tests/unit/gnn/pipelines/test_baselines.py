"""GAP, SAGE-DP and Features: noise of aggregations, bounded degrees, accounting, whole runs."""

import math

import numpy as np
import pytest
import torch

from auditdp.accountants import GaussianCurve, NodeLevelUpper, PLDUpper
from auditdp.errors import ConfigurationError
from gnn.models import GraphSAGE
from gnn.pipelines.degrees import bounded_out_degree
from gnn.pipelines.features import FeaturesParameters, fit_features
from gnn.pipelines.gap import (
    GAPParameters,
    aggregation_sigma,
    fit_gap,
    noisy_aggregations,
    training_noise,
)
from gnn.pipelines.sage_dp import SAGEParameters, fit_sage, with_means
from gnn.training import evaluate, predict
from gnn.validation import DataError
from tests.unit.gnn.draws import generator

FEATURES = FeaturesParameters(
    epsilon=8.0, delta=0.01, batch=30, epochs=5, learning_rate=0.02, hidden=8
)
GAP = GAPParameters(epsilon=8.0, delta=0.01, batch=30, epochs=5, out_degree=4, hidden=8)
SAGE = SAGEParameters(epsilon=8.0, delta=0.01, batch=30, steps=20, learning_rate=0.02)
PIPELINES = {
    "features": (fit_features, FEATURES),
    "gap": (fit_gap, GAP),
    "sage": (fit_sage, SAGE),
}
PIPELINES["gap, edges"] = (
    fit_gap,
    GAPParameters(epsilon=8.0, delta=0.01, level="edge", epochs=5, hidden=8),
)


def changed(parameters, **changes):
    return type(parameters)(**(vars(parameters) | changes))


# Aggregations


def test_aggregations_without_noise_are_normalised_sums(graph):
    found = noisy_aggregations(
        graph.x, graph.edge_index, hops=2, sigma=0.0, generator=generator()
    ).numpy()
    a = np.zeros((120, 120))
    a[graph.edge_index[1], graph.edge_index[0]] = 1

    def unit(m):
        return m / np.maximum(np.linalg.norm(m, axis=1, keepdims=True), 1e-12)

    first = unit(graph.x.numpy())
    second = unit(a @ first)
    assert found == pytest.approx(
        np.hstack([first, second, unit(a @ second)]), abs=1e-5
    )


def test_aggregation_noise_is_gaussian_on_sums_before_they_are_normalised():
    """Without arcs a hop is noise alone: unit vectors of all directions; and one arc of weight 100σ is seen through it."""
    x = torch.ones(20_000, 2)
    none = torch.empty(2, 0, dtype=torch.long)
    found = noisy_aggregations(x, none, hops=1, sigma=2.0, generator=generator())[:, 2:]
    assert found.norm(dim=1) == pytest.approx(torch.ones(20_000), abs=1e-5)
    assert float(found.mean(dim=0).abs().max()) < 6 * math.sqrt(0.5 / 20_000)
    ends = torch.stack([torch.arange(20_000), torch.arange(20_000).flip(0)])
    heard = noisy_aggregations(x, ends, hops=1, sigma=0.01, generator=generator())[
        :, 2:
    ]
    # Across the sum (1, 1)/√2 of norm 1 the noise is an angle of σ.
    across = (heard[:, 0] - heard[:, 1]) / math.sqrt(2)
    assert float(across.std()) == pytest.approx(0.01, rel=0.05)


def test_an_arc_changes_the_sums_of_a_hop_by_one(graph):
    """The matrix of sums, before noise: one undirected edge less changes two rows by 1 each."""
    unit = torch.nn.functional.normalize(graph.x, dim=1)
    a, b = graph.edge_index[:, 0].tolist()
    ends = graph.edge_index
    kept = ~(((ends[0] == a) & (ends[1] == b)) | ((ends[0] == b) & (ends[1] == a)))
    sums = [
        torch.zeros_like(unit).index_add_(0, e[1], unit[e[0]])
        for e in (ends, ends[:, kept])
    ]
    assert float((sums[0] - sums[1]).norm()) == pytest.approx(math.sqrt(2), abs=1e-4)


def test_sigma_of_aggregations_is_that_of_the_audited_accounting():
    node = aggregation_sigma(GAP)
    assert GaussianCurve(node, 2.0, 2).delta_at(4.0) <= 0.005
    assert GaussianCurve(node * 0.999, 2.0, 2).delta_at(4.0) > 0.005
    edge = aggregation_sigma(changed(GAP, level="edge"))
    assert GaussianCurve(edge, math.sqrt(2), 2).delta_at(8.0) <= 0.01
    assert GaussianCurve(edge * 0.999, math.sqrt(2), 2).delta_at(8.0) > 0.01
    assert aggregation_sigma(changed(GAP, epsilon=math.inf)) == 0.0


def test_both_trainings_of_gap_are_accounted_as_one():
    noise = training_noise(GAP, 120)
    assert PLDUpper(noise, 30 / 120, 2 * 20).epsilon_at(0.005) <= 4.0
    assert training_noise(changed(GAP, level="edge"), 120) == 0.0


# Degrees


def test_a_node_sends_to_at_most_so_many_and_to_random_ones():
    """A star of 10 leaves: its hub sends to 3, every leaf to the hub; over seeds each leaf is chosen equally often."""
    leaves = torch.arange(1, 11)
    hub = torch.zeros(10, dtype=torch.long)
    star = torch.cat([torch.stack([hub, leaves]), torch.stack([leaves, hub])], dim=1)
    counts = np.zeros(11)
    for seed in range(200):
        found = bounded_out_degree(star, 11, 3, generator=generator(seed))
        out = np.bincount(found[0], minlength=11)
        assert out.tolist() == [3] + [1] * 10
        counts[found[1][found[0] == 0]] += 1
    assert np.abs(counts[1:] - 60).max() < 6 * math.sqrt(200 * 0.3 * 0.7)
    whole = bounded_out_degree(star, 11, 10, generator=generator())
    assert sorted(zip(*whole.tolist(), strict=True)) == sorted(
        zip(*star.tolist(), strict=True)
    )


# SAGE-DP and Features


def test_a_layer_of_sage_is_linear_in_means_and_own_features(graph):
    for x in (graph.x, graph.x.to_sparse_csr()):
        model = GraphSAGE(6, 2, layers=1, dropout=0.0, generator=generator()).eval()
        layer = model.layers[0]
        both = with_means(x, graph.edge_index).to_dense()
        expected = (
            both @ torch.cat([layer.lin_l.weight, layer.lin_r.weight], dim=1).t()
            + layer.lin_l.bias
        )
        torch.testing.assert_close(model(graph.x, graph.edge_index), expected)


def test_sage_is_accounted_for_nodes(graph):
    """A node of out-degree 4 is in five gradients: 2·5·C of sensitivity, so far more noise than a record needs."""
    _, record = fit_sage(graph, SAGE, classes=2, generator=generator())
    noise = record.noise["network"]
    assert record.counts["reached"] == 5
    assert NodeLevelUpper(noise, 120, 5, 30, 20).delta_at(8.0) <= 0.01
    assert (
        noise
        > 4
        * fit_features(graph, FEATURES, classes=2, generator=generator())[1].noise[
            "network"
        ]
    )


def test_features_have_the_noise_of_poisson_batches(graph):
    _, record = fit_features(graph, FEATURES, classes=2, generator=generator())
    assert record.counts == {"nodes": 120, "steps": 20}
    assert PLDUpper(record.noise["network"], 30 / 120, 20).epsilon_at(0.01) <= 8.0
    edgeless = graph.clone()
    edgeless.edge_index = graph.edge_index[:, :0]
    first, second = (
        fit_features(g, FEATURES, classes=2, generator=generator())[0]
        for g in (graph, edgeless)
    )
    assert all(
        torch.equal(a, b)
        for a, b in zip(first.parameters(), second.parameters(), strict=True)
    )


# All of them


@pytest.mark.parametrize("name", PIPELINES)
def test_a_run_is_a_function_of_its_seed(graph, name):
    fit, parameters = PIPELINES[name]
    found = [
        predict(fit(graph, parameters, classes=2, generator=generator(seed))[0], graph)
        for seed in (3, 3, 4)
    ]
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


@pytest.mark.parametrize("name", PIPELINES)
def test_without_noise_the_communities_are_learned(graph, name):
    fit, parameters = PIPELINES[name]
    changes = {"steps": 80} if name == "sage" else {"epochs": 20}
    exact = changed(parameters, epsilon=math.inf, **changes)
    model, record = fit(graph, exact, classes=2, generator=generator())
    assert evaluate(model, graph, torch.arange(120)) > 0.95
    assert record.epsilon == math.inf
    assert not record.noise


@pytest.mark.parametrize("name", PIPELINES)
def test_bad_input_is_refused(graph, name):
    fit, parameters = PIPELINES[name]
    with pytest.raises(DataError, match="a label from 0 to 0"):
        fit(graph, parameters, classes=1, generator=generator())
    with pytest.raises(ConfigurationError, match="epsilon"):
        changed(parameters, epsilon=-1.0)
    with pytest.raises(ConfigurationError, match="clipping_norm"):
        changed(parameters, clipping_norm=0.0)
