"""GAP, SAGE-DP and Features: noise of aggregations, bounded degrees, accounting, runs."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional
from torch.testing import assert_close
from torch_geometric.utils import to_dense_adj

from auditdp.accountants import GaussianCurve, NodeLevelUpper, PLDUpper
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
from tests.unit.gnn.draws import generator

parametrize = pytest.mark.parametrize

BUDGET = {"epsilon": 8.0, "delta": 0.01, "batch": 30}
SMALL = {"epochs": 5, "hidden": 8, "learning_rate": 0.02}
GAP = GAPParameters(**BUDGET, **SMALL, out_degree=4)
PIPELINES = {
    "features": (fit_features, FeaturesParameters(**BUDGET, **SMALL)),
    "gap": (fit_gap, GAP),
    "gap, edges": (fit_gap, replace(GAP, level="edge")),
    "sage": (fit_sage, SAGEParameters(**BUDGET, steps=20, learning_rate=0.02)),
}


def fitted(name, graph, *, seed=0, classes=2, **changes):
    fit, parameters = PIPELINES[name]
    changed = replace(parameters, **changes)
    return fit(graph, changed, classes=classes, generator=generator(seed))


# Aggregations


def test_aggregations_without_noise_are_normalised_sums(graph):
    found = noisy_aggregations(
        graph.x, graph.edge_index, hops=2, sigma=0.0, generator=generator()
    )
    adjacency = to_dense_adj(graph.edge_index)[0]
    first = functional.normalize(graph.x)
    second = functional.normalize(adjacency @ first)
    third = functional.normalize(adjacency @ second)

    assert_close(found, torch.cat([first, second, third], dim=1), rtol=1e-5, atol=1e-5)


@parametrize(
    ("ends", "sigma"),
    [
        ([], 2.0),
        (range(20_000), 0.01),
    ],
    ids=["none", "all"],
)
def test_noise_is_gaussian_on_sums_before_they_are_normalised(ends, sigma):
    """Noise alone has all directions; beside a sum of norm 1 it is an angle of σ."""
    nodes = 20_000
    ends = torch.tensor(ends, dtype=torch.long)
    arcs = torch.stack([ends, ends.flip(0)])
    found = noisy_aggregations(
        torch.ones(nodes, 2), arcs, hops=1, sigma=sigma, generator=generator()
    )[:, 2:]

    assert_close(found.norm(dim=1), torch.ones(nodes))

    across = (found[:, 0] - found[:, 1]) / math.sqrt(2)
    spread = sigma if len(ends) else math.sqrt(0.5)
    assert float(across.std()) == pytest.approx(spread, rel=0.05)
    assert abs(float(across.mean())) < 6 * spread / math.sqrt(nodes)


@parametrize(
    ("level", "sensitivity", "epsilon", "delta"),
    [
        ("node", 2.0, 4.0, 0.005),
        ("edge", math.sqrt(2), 8.0, 0.01),
    ],
)
def test_sigma_of_aggregations_is_that_of_the_audited_accounting(
    level, sensitivity, epsilon, delta
):
    """A node of out-degree 4 changes 4 sums by 1; half of the budget is for training."""
    sigma = aggregation_sigma(replace(GAP, level=level))
    assert GaussianCurve(sigma, sensitivity, 2).delta_at(epsilon) <= delta
    assert GaussianCurve(sigma * 0.999, sensitivity, 2).delta_at(epsilon) > delta
    assert aggregation_sigma(replace(GAP, level=level, epsilon=math.inf)) == 0.0


def test_both_trainings_of_gap_are_accounted_as_one():
    noise = training_noise(GAP, 120)
    assert PLDUpper(noise, 30 / 120, 2 * 20).epsilon_at(0.005) <= 4.0
    assert training_noise(replace(GAP, level="edge"), 120) == 0.0


def test_a_node_sends_to_a_bounded_number_of_random_neighbours():
    """The hub of a star sends to 3 of 10 leaves, each equally often; 6 deviations."""
    leaves = torch.arange(1, 11)
    to_leaves = torch.stack([0 * leaves, leaves])
    star = torch.cat([to_leaves, to_leaves.flip(0)], dim=1)
    counts = np.zeros(11)
    for seed in range(200):
        found = bounded_out_degree(star, 11, 3, generator=generator(seed))
        assert found[0].bincount().tolist() == [3] + [1] * 10
        counts[found[1][found[0] == 0]] += 1

    assert np.abs(counts[1:] - 60).max() < 6 * math.sqrt(200 * 0.3 * 0.7)

    whole = bounded_out_degree(star, 11, 10, generator=generator())
    assert sorted(whole.T.tolist()) == sorted(star.T.tolist())


# SAGE-DP and Features


def test_a_layer_of_sage_is_linear_in_means_and_own_features(graph):
    model = GraphSAGE(6, 2, layers=1, dropout=0.0, generator=generator()).eval()
    layer = model.layers[0]
    weight = torch.cat([layer.lin_l.weight, layer.lin_r.weight], dim=1)
    for x in (graph.x, graph.x.to_sparse_csr()):
        both = with_means(x, graph.edge_index).to_dense()
        expected = both @ weight.t() + layer.lin_l.bias
        assert_close(model(graph.x, graph.edge_index), expected)


def test_sage_is_accounted_for_nodes(graph):
    """A node of out-degree 4 is in five gradients."""
    _, record = fitted("sage", graph)
    noise = record.noise["network"]

    assert record.counts["reached"] == 5
    assert NodeLevelUpper(noise, 120, 5, 30, 20).delta_at(8.0) <= 0.01


def test_features_are_accounted_for_poisson_batches_and_read_no_edges(graph):
    model, record = fitted("features", graph)
    assert record.counts == {"nodes": 120, "steps": 20}
    assert PLDUpper(record.noise["network"], 30 / 120, 20).epsilon_at(0.01) <= 8.0

    edgeless = graph.clone()
    edgeless.edge_index = graph.edge_index[:, :0]
    other, _ = fitted("features", edgeless)

    assert_close(model.state_dict(), other.state_dict(), rtol=0, atol=0)


# All of them


@parametrize("name", PIPELINES)
def test_a_run_is_a_function_of_its_seed(graph, name):
    found = []
    for seed in (3, 3, 4):
        model, _ = fitted(name, graph, seed=seed)
        found.append(predict(model, graph))

    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


@parametrize("name", PIPELINES)
def test_the_communities_are_learned_without_noise(graph, name):
    changes = {"steps": 80} if name == "sage" else {"epochs": 20}
    model, record = fitted(name, graph, epsilon=math.inf, **changes)

    assert evaluate(model, graph, torch.arange(120)) > 0.95
    assert record.epsilon == math.inf
    assert not record.noise
