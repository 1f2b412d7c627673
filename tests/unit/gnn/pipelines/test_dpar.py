"""DPAR: noise and budget against their definitions, its matrix, inference against the dense solution, whole runs."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from auditdp.accountants import (
    FixedSizeSubsampled,
    GaussianCurve,
    NodeLevelUpper,
    PLDUpper,
    amplified,
)
from auditdp.errors import ConfigurationError, MechanismError
from gnn.pipelines.dpar import (
    Budget,
    DPARParameters,
    PageRankMatrix,
    budget_of,
    capped,
    fit_dpar,
    normalised,
    pagerank_matrix,
    supported_epsilon,
)
from gnn.pipelines.dpar.matrix import walk_matrix
from gnn.pipelines.parts import part
from gnn.training import evaluate, predict
from gnn.validation import DataError
from mechanisms.pagerank import ista, row_epsilon, share_of_row
from tests.unit.gnn.draws import generator, rng

SMALL = DPARParameters(
    epsilon=8.0,
    delta=0.02,
    rate=0.5,
    pagerank_rows=20,
    k=2,
    batch=20,
    epochs=5,
    learning_rate=0.02,
    hidden=8,
)
NODES = 120


# Budget


def test_published_noise_is_that_of_the_theorems():
    """Theorem 2 divides ε by q; Theorems 1 and 3 and Corollary 1 give what a row and a selection have."""
    found = budget_of(SMALL, NODES)
    assert found.pagerank == found.training == (8.0, 0.01)  # half of 8/.5 and of .02
    delta = 0.01 / 40
    row = share_of_row(8.0, 20, delta)
    assert row_epsilon(found.entry_epsilon, 2, delta) == pytest.approx(row, rel=1e-6)
    values = budget_of(replace(SMALL, method="EM1"), NODES)
    assert values.value_epsilon + row_epsilon(
        values.entry_epsilon, 2, delta
    ) == pytest.approx(row, rel=1e-6)
    gaussian = budget_of(replace(SMALL, method="GM"), NODES)
    assert gaussian.row_sigma == pytest.approx(
        math.sqrt(2 * math.log(1.25 / delta)) / row
    )
    assert PLDUpper(found.noise_multiplier, 20 / 60, 15).epsilon_at(0.01) <= 8.0
    assert PLDUpper(found.noise_multiplier * 0.999, 20 / 60, 15).epsilon_at(0.01) > 8.0


@pytest.mark.parametrize("method", ["EM0", "EM1", "GM"])
def test_repaired_parts_add_up_to_the_printed_budget(method):
    """What is proved of either part on the drawn nodes adds up, and is amplified to at most (ε, δ)."""
    parameters = replace(SMALL, method=method, accounting="repaired")
    found = budget_of(parameters, NODES)
    (first, one), (second, other) = found.pagerank, found.training
    pagerank = found.pagerank_accountant(20, 2)
    assert pagerank.delta_at(first * (1 + 1e-9)) <= one * (1 + 1e-9)
    assert pagerank.epsilon_at(one) > 0.95 * first
    training = NodeLevelUpper(found.noise_multiplier, 60, 2, 20, 15)
    assert training.delta_at(second) <= other
    assert training.epsilon_at(other) > 0.95 * second
    whole = FixedSizeSubsampled(first + second, one + other, 0.5)
    assert whole.own_delta <= 0.02
    assert amplified(first + second, 0.5) == pytest.approx(8.0, rel=1e-3)
    assert whole.epsilon_at(0.02) <= 8.0


def test_what_supports_the_published_form_is_far_more_than_it_prints():
    assert supported_epsilon(replace(SMALL, accounting="repaired"), NODES) == 8.0
    assert supported_epsilon(replace(SMALL, epsilon=math.inf), NODES) == math.inf
    budget, found = budget_of(SMALL, NODES), supported_epsilon(SMALL, NODES)
    alone = GaussianCurve(budget.noise_multiplier, 2.0 * 20, 15).epsilon_at(
        0.02 * (1 - 1e-12) / 0.5 / 2
    )
    assert found > alone > 100
    assert found < alone + 16


def test_repaired_noise_is_larger():
    repaired = replace(SMALL, accounting="repaired")
    assert (
        budget_of(repaired, NODES).noise_multiplier
        > 3 * budget_of(SMALL, NODES).noise_multiplier
    )


# Matrix


def plain(ids, weights, owners=None, nodes=4):
    return PageRankMatrix(
        np.arange(len(ids)) if owners is None else np.array(owners),
        np.array(ids),
        np.array(weights, float),
        nodes,
    )


def test_columns_are_clipped_or_scaled():
    """Columns of ℓ₁ norm 1.5, .5 and 0: clipping leaves the second, scaling makes it 1."""
    matrix = plain([[0, 1], [0, 1]], [[1.0, 0.25], [-0.5, 0.25]])
    assert matrix.column_norms.tolist() == [1.5, 0.5, 0, 0]
    assert normalised(matrix, 1.0, "clipped").weights == pytest.approx(
        np.array([[2 / 3, 0.25], [-1 / 3, 0.25]])
    )
    scaled = normalised(matrix, 1.0, "scaled")
    assert scaled.column_norms == pytest.approx([1.0, 1.0, 0, 0])
    assert normalised(matrix, 3.0, "clipped").weights == pytest.approx(matrix.weights)
    with pytest.raises(MechanismError, match="tau"):
        normalised(matrix, 0.0, "clipped")


def test_a_node_is_in_at_most_so_many_rows():
    """Node 0 owns a row and is in three others; one of these is left where the cap is two, another one by the seed."""
    matrix = plain([[0, 1], [0, 1], [0, 2], [0, 3]], [[1.0, 1.0]] * 4)
    assert matrix.rows_of_nodes.tolist() == [4, 2, 1, 1]
    found = [capped(matrix, 2, rng=rng(seed)) for seed in range(20)]
    assert all(each.rows_of_nodes.tolist() == [2, 2, 1, 1] for each in found)
    assert all(each.weights[0].tolist() == [1, 1] for each in found)  # its own row
    assert len({each.weights.tobytes() for each in found}) == 3
    assert (
        capped(matrix, 1, rng=rng()).weights.sum() == 4 - 1 + 1
    )  # own entries of nodes 0 to 3: (0,0), (1,1), (2,2), (3,3)
    assert (capped(matrix, 4, rng=rng()).weights == matrix.weights).all()


def test_exact_rows_are_the_largest_entries_of_pagerank(graph):
    parameters = replace(SMALL, epsilon=math.inf, pagerank_rows=NODES)
    found = pagerank_matrix(graph, parameters, None, rng=rng())
    exact = ista(walk_matrix(graph).toarray(), np.arange(NODES))
    best = np.sort(exact, axis=1)[:, -2:]
    assert np.sort(found.weights, axis=1) == pytest.approx(best)
    assert np.take_along_axis(exact, found.ids, axis=1) == pytest.approx(found.weights)


def budget(entry=0.0, value=0.0, sigma=0.0):
    return Budget((1.0, 0.01), (1.0, 0.01), entry, value, sigma, 1.0)


def test_selections_are_gumbel_noisy(graph):
    """With little noise clipped entries decide; with much, every id is selected equally often: within 6 deviations."""
    parameters = replace(SMALL, pagerank_rows=NODES, k=1, entry_clip=0.001)
    rows = ista(walk_matrix(graph).toarray(), np.arange(NODES))
    clear = pagerank_matrix(graph, parameters, budget(entry=1e9), rng=rng())
    clipped = np.minimum(rows, 0.001)
    assert np.take_along_axis(clipped, clear.ids, axis=1)[:, 0] == pytest.approx(
        clipped.max(axis=1)
    )
    noise = np.concatenate(
        [
            pagerank_matrix(graph, parameters, budget(entry=1e-9), rng=rng(i)).ids[:, 0]
            for i in range(6)
        ]
    )
    counts = np.bincount(noise, minlength=NODES)
    assert (
        counts.max() <= 24
    )  # Poisson with mean 6, in 120 places: beyond with probability 1e-6
    assert (clear.weights == 1.0).all()


def test_values_are_laplace_noisy_with_scale_k_times_the_clip(graph):
    """Of 4 × 240 values, all clipped to C₂ or below: the mean absolute deviation of Lap(b) is b."""
    parameters = replace(SMALL, method="EM1", pagerank_rows=NODES, k=2, entry_clip=1e-6)
    found = [
        pagerank_matrix(graph, parameters, budget(1e9, 0.5), rng=rng(i)).weights
        for i in range(4)
    ]
    scale = 2 * 1e-6 / 0.5
    deviation = np.mean(
        np.abs(np.array(found) - 1e-6)
    )  # the selected entries are at least the clip, or 0
    assert deviation == pytest.approx(scale, rel=0.2)


def test_rows_are_gaussian_noisy_and_clipped(graph):
    """All entries of all rows are released with K = n: their second moment is σ² plus that of rows of norm C₁."""
    parameters = replace(
        SMALL, method="GM", pagerank_rows=NODES, k=NODES, row_clip=0.01
    )
    quiet = pagerank_matrix(graph, parameters, budget(sigma=1e-12), rng=rng())
    assert np.linalg.norm(quiet.weights, axis=1) == pytest.approx(
        np.full(NODES, 0.01), rel=1e-6
    )
    loud = pagerank_matrix(graph, parameters, budget(sigma=3.0), rng=rng())
    assert np.std(loud.weights) == pytest.approx(0.03, rel=0.05)


def test_other_nodes_are_trained_with_themselves(graph):
    found = pagerank_matrix(
        graph, replace(SMALL, pagerank_rows=20), budget(entry=1.0), rng=rng()
    )
    assert sorted(found.owners.tolist()) == list(range(NODES))
    assert (found.ids[20:, 0] == found.owners[20:]).all()
    assert (found.weights[20:] == [1.0, 0.0]).all()
    only = pagerank_matrix(
        graph,
        replace(SMALL, pagerank_rows=20, others="none"),
        budget(entry=1.0),
        rng=rng(),
    )
    assert len(only.owners) == 20
    with pytest.raises(ConfigurationError, match="at most 120 nodes, got 121"):
        pagerank_matrix(graph, replace(SMALL, k=121), None, rng=rng())


# Inference


def test_power_iteration_tends_to_the_dense_solution(graph):
    """Q = α(I − (1−α)D⁻¹A)⁻¹H: after P steps the rest is at most (1−α)^P of the largest difference."""
    tiny = part(graph, torch.arange(12))
    model, _ = fit_dpar(
        graph,
        replace(SMALL, epsilon=math.inf, epochs=1),
        classes=2,
        generator=generator(),
    )
    h = model.mlp(tiny.x).detach().numpy()
    a = np.zeros((12, 12))
    a[tiny.edge_index[1], tiny.edge_index[0]] = 1
    walk = a / np.maximum(a.sum(axis=1, keepdims=True), 1)
    exact = 0.25 * np.linalg.solve(np.eye(12) - 0.75 * walk, h)
    model.steps = 60
    assert predict(model, tiny).numpy() == pytest.approx(exact, abs=1e-5)
    model.steps = 2
    two = 0.75 * walk @ (0.75 * walk @ h + 0.25 * h) + 0.25 * h
    assert predict(model, tiny).numpy() == pytest.approx(two, abs=1e-5)
    assert np.abs(two - exact).max() > 1e-3


# Whole runs


@pytest.mark.parametrize("method", ["EM0", "EM1", "GM"])
def test_a_run_is_a_function_of_its_seed(graph, method):
    parameters = replace(SMALL, method=method)
    found = [
        fit_dpar(graph, parameters, classes=2, generator=generator(seed))
        for seed in (3, 3, 4)
    ]
    weights = [
        torch.cat([p.flatten() for p in model.parameters()]).detach()
        for model, _ in found
    ]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    record = found[0][1]
    assert record.counts["rows"] == 60
    assert record.counts["steps"] == 15
    assert record.noise["training"] == budget_of(parameters, NODES).noise_multiplier


def test_without_noise_the_communities_are_learned_and_with_the_repaired_noise_hardly(
    graph,
):
    exact, record = fit_dpar(
        graph,
        replace(SMALL, epsilon=math.inf, epochs=20),
        classes=2,
        generator=generator(),
    )
    assert evaluate(exact, graph, torch.arange(NODES)) > 0.95
    assert record.epsilon == math.inf
    assert not record.noise
    _, repaired = fit_dpar(
        graph, replace(SMALL, accounting="repaired"), classes=2, generator=generator()
    )
    assert repaired.epsilon == 8.0
    assert repaired.counts["rows of a node"] <= 2


def test_sparse_features_give_the_same_model(graph):
    sparse = graph.clone()
    sparse.x = graph.x.to_sparse_csr()
    first, second = (
        fit_dpar(data, SMALL, classes=2, generator=generator())[0]
        for data in (graph, sparse)
    )
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        torch.testing.assert_close(one, other)


def test_data_that_cannot_be_trained_on_are_refused(graph):
    unlabelled, looped, infinite = graph.clone(), graph.clone(), graph.clone()
    unlabelled.y = torch.full_like(graph.y, -1)
    looped.edge_index = torch.tensor([[0], [0]])
    infinite.x = graph.x * math.inf
    empty = part(graph, torch.arange(0))
    for data, message in (
        (unlabelled, "a label from 0 to 1"),
        (looped, "self-loops"),
        (infinite, "finite"),
        (empty, "no nodes"),
    ):
        with pytest.raises(DataError, match=message):
            fit_dpar(data, SMALL, classes=2, generator=generator())


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 0.0},
        {"epsilon": math.nan},
        {"delta": 1.0},
        {"share": 1.0},
        {"rate": 0.0},
        {"k": 0},
        {"method": "EM2"},
        {"accounting": "honest"},
        {"tau": -1.0},
    ],
)
def test_parameters_outside_their_range_are_refused(change):
    with pytest.raises(ConfigurationError, match=next(iter(change))):
        replace(SMALL, **change)


def test_a_delta_that_is_none_on_the_drawn_nodes_is_refused():
    with pytest.raises(ConfigurationError, match=r"delta / rate = 1\.4"):
        budget_of(replace(SMALL, delta=0.7, accounting="repaired"), NODES)
    with pytest.raises(ConfigurationError, match="infinite"):
        budget_of(replace(SMALL, epsilon=math.inf), NODES)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_trains_nearly_the_same_model(graph):
    first, second = (
        fit_dpar(graph, SMALL, classes=2, generator=generator(), device=device)[0].cpu()
        for device in ("cpu", "cuda")
    )
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        torch.testing.assert_close(one, other, atol=1e-3, rtol=1e-3)
