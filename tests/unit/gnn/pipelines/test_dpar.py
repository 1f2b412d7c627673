"""DPAR: noise and budget against their definitions, its matrix, and small runs."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch.testing import assert_close

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
from gnn.training import evaluate
from mechanisms.pagerank import ista, row_epsilon, share_of_row
from tests.unit.gnn.draws import flat, generator, rng

approx = pytest.approx
parametrize = pytest.mark.parametrize

NODES = 120
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
REPAIRED = replace(SMALL, accounting="repaired")
EXACT = replace(SMALL, epsilon=math.inf)


def fitted(graph, parameters=SMALL, seed=0, **device):
    return fit_dpar(graph, parameters, classes=2, generator=generator(seed), **device)


# Budget


ROW_DELTA = 0.01 / 40
ROW = share_of_row(8.0, 20, ROW_DELTA)


def spent_on_row(budget):
    return budget.value_epsilon + row_epsilon(budget.entry_epsilon, 2, ROW_DELTA)


@parametrize("method", ["EM0", "EM1"])
def test_selections_have_the_share_of_a_row(method):
    """Theorems 1 and 3 and Corollary 1 give the share."""
    found = budget_of(replace(SMALL, method=method), NODES)
    assert spent_on_row(found) == approx(ROW, rel=1e-6)
    assert (found.value_epsilon > 0) is (method == "EM1")


def test_published_noise_is_that_of_the_theorems():
    """Theorem 2 divides ε by q."""
    found = budget_of(replace(SMALL, method="GM"), NODES)
    assert found.pagerank == found.training == (8.0, 0.01)
    assert found.row_sigma == approx(math.sqrt(2 * math.log(1.25 / ROW_DELTA)) / ROW)

    noise = found.noise_multiplier
    assert PLDUpper(noise, 20 / 60, 15).epsilon_at(0.01) <= 8.0
    assert PLDUpper(noise * 0.999, 20 / 60, 15).epsilon_at(0.01) > 8.0


@parametrize("method", ["EM0", "EM1", "GM"])
def test_repaired_parts_add_up_to_the_printed_budget(method):
    """The proved budgets on the drawn nodes are amplified to at most (ε, δ)."""
    found = budget_of(replace(REPAIRED, method=method), NODES)
    (first, one), (second, other) = found.pagerank, found.training
    pagerank = found.pagerank_accountant(20, 2)

    assert pagerank.delta_at(first * (1 + 1e-9)) <= one * (1 + 1e-9)
    assert pagerank.epsilon_at(one) > 0.95 * first

    training = NodeLevelUpper(found.noise_multiplier, 60, 2, 20, 15)
    assert training.delta_at(second) <= other
    assert training.epsilon_at(other) > 0.95 * second

    whole = FixedSizeSubsampled(first + second, one + other, 0.5)
    assert whole.own_delta <= 0.02
    assert whole.epsilon_at(0.02) <= 8.0
    assert amplified(first + second, 0.5) == approx(8.0, rel=1e-3)


def test_the_published_form_supports_far_more_than_its_printed_budget():
    assert supported_epsilon(REPAIRED, NODES) == 8.0
    assert supported_epsilon(EXACT, NODES) == math.inf

    curve = GaussianCurve(budget_of(SMALL, NODES).noise_multiplier, 2.0 * 20, 15)
    alone = curve.epsilon_at(0.02 * (1 - 1e-12) / 0.5 / 2)

    assert 100 < alone < supported_epsilon(SMALL, NODES) < alone + 16


@parametrize(
    ("changes", "message"),
    [
        ({"delta": 1.0}, "delta"),
        ({"epsilon": math.inf}, "infinite"),
        ({"delta": 0.7}, r"delta / rate = 1\.4"),
    ],
)
def test_parameters_without_a_budget_are_refused(changes, message):
    with pytest.raises(ConfigurationError, match=message):
        budget_of(replace(REPAIRED, **changes), NODES)


# Matrix


def matrix_of(ids, entries):
    owners = np.arange(len(ids))
    return PageRankMatrix(owners, np.array(ids), np.array(entries, float), 4)


def test_columns_are_clipped_or_scaled():
    """Columns of ℓ₁ norm 1.5, .5 and 0: clipping leaves the second, scaling makes it 1."""
    matrix = matrix_of([[0, 1], [0, 1]], [[1.0, 0.25], [-0.5, 0.25]])
    assert matrix.column_norms.tolist() == [1.5, 0.5, 0, 0]

    clipped = normalised(matrix, 1.0, "clipped").weights
    assert_allclose(clipped, [[2 / 3, 0.25], [-1 / 3, 0.25]])

    scaled = normalised(matrix, 1.0, "scaled")
    assert_allclose(scaled.column_norms, [1, 1, 0, 0])
    with pytest.raises(MechanismError, match="tau"):
        normalised(matrix, 0.0, "clipped")


def test_a_node_is_in_at_most_the_given_number_of_rows():
    """Node 0 owns a row, which is kept, and is in three others."""
    matrix = matrix_of(
        [
            [0, 1],
            [0, 1],
            [0, 2],
            [0, 3],
        ],
        np.ones((4, 2)),
    )
    assert matrix.rows_of_nodes.tolist() == [4, 2, 1, 1]

    kept = set()
    for seed in range(20):
        found = capped(matrix, 2, rng=rng(seed))
        assert found.rows_of_nodes.tolist() == [2, 2, 1, 1]
        assert found.weights[0].tolist() == [1, 1]
        kept.add(found.weights.tobytes())

    assert len(kept) == 3
    assert capped(matrix, 1, rng=rng()).weights.sum() == 4
    assert (capped(matrix, 4, rng=rng()).weights == matrix.weights).all()


def released(graph, *, entry=0.0, value=0.0, sigma=0.0, seed=0, **changes):
    """The matrix of all nodes with the given noise."""
    parameters = replace(SMALL, pagerank_rows=NODES, **changes)
    budget = Budget((1.0, 0.01), (1.0, 0.01), entry, value, sigma, 1.0)
    return pagerank_matrix(graph, parameters, budget, rng=rng(seed))


@pytest.fixture(scope="module")
def exact_rows(graph):
    return ista(walk_matrix(graph).toarray(), np.arange(NODES))


def test_exact_rows_are_the_largest_entries_of_pagerank(graph, exact_rows):
    parameters = replace(EXACT, pagerank_rows=NODES)
    found = pagerank_matrix(graph, parameters, None, rng=rng())
    best = np.sort(exact_rows, axis=1)[:, -2:]
    chosen = np.take_along_axis(exact_rows, found.ids, axis=1)

    assert_allclose(np.sort(found.weights, axis=1), best)
    assert_allclose(found.weights, chosen)


ONE = {"k": 1, "entry_clip": 0.001}


def test_selections_with_little_noise_are_decided_by_clipped_entries(graph, exact_rows):
    clear = released(graph, entry=1e9, **ONE)
    clipped = np.minimum(exact_rows, 0.001)
    chosen = np.take_along_axis(clipped, clear.ids, axis=1)[:, 0]

    assert (clear.weights == 1.0).all()
    assert_allclose(chosen, clipped.max(axis=1))


def test_all_ids_are_equally_likely_with_much_noise(graph):
    """Poisson with mean 3 in 120 places: beyond 18 with probability 1e-6."""
    counts = np.zeros(NODES)
    for seed in range(3):
        ids = released(graph, entry=1e-9, seed=seed, **ONE).ids
        counts += np.bincount(ids[:, 0], minlength=NODES)

    assert counts.max() <= 18


def test_values_are_laplace_noisy_with_scale_k_times_the_clip(graph):
    """240 values clipped to C₂; the mean absolute deviation of Lap(b) is b."""
    found = released(graph, entry=1e9, value=0.5, method="EM1", entry_clip=1e-6)
    scale = 2 * 1e-6 / 0.5
    deviation = np.abs(found.weights - 1e-6).mean()

    assert abs(deviation - scale) < 6 * scale / math.sqrt(240)


def test_rows_are_gaussian_noisy_and_clipped(graph):
    """All entries of rows that are clipped to C₁ are released with K = n."""
    whole = {"method": "GM", "k": NODES, "row_clip": 0.01}
    quiet = released(graph, sigma=1e-12, **whole).weights

    assert_allclose(np.linalg.norm(quiet, axis=1), 0.01, rtol=1e-6)

    loud = released(graph, sigma=3.0, **whole).weights
    assert np.std(loud) == approx(0.03, rel=0.05)


def test_other_nodes_are_trained_with_themselves(graph):
    def found(**changes):
        budget = Budget((1.0, 0.01), (1.0, 0.01), 1.0, 0.0, 0.0, 1.0)
        return pagerank_matrix(graph, replace(SMALL, **changes), budget, rng=rng())

    whole = found()
    assert sorted(whole.owners.tolist()) == list(range(NODES))
    assert (whole.ids[20:, 0] == whole.owners[20:]).all()
    assert (whole.weights[20:] == [1.0, 0.0]).all()
    assert len(found(others="none").owners) == 20
    with pytest.raises(ConfigurationError, match="at most 120 nodes, got 121"):
        found(k=121)


# Runs


@parametrize("method", ["EM0", "EM1", "GM"])
def test_a_run_is_a_function_of_its_seed_for_any_layout_of_features(graph, method):
    parameters = replace(SMALL, method=method, epochs=1)
    sparse = graph.clone()
    sparse.x = graph.x.to_sparse_csr()
    first, record = fitted(graph, parameters)
    same, _ = fitted(sparse, parameters)
    other, _ = fitted(graph, parameters, seed=4)

    assert_close(flat(first), flat(same))
    assert (flat(first) != flat(other)).any()
    assert (record.counts["rows"], record.counts["steps"]) == (60, 3)

    noise = budget_of(parameters, NODES).noise_multiplier
    assert record.noise["training"] == noise


def test_the_communities_are_learned_without_noise(graph):
    exact, record = fitted(graph, replace(EXACT, epochs=20))
    assert evaluate(exact, graph, torch.arange(NODES)) > 0.95
    assert record.epsilon == math.inf
    assert not record.noise

    _, repaired = fitted(graph, replace(REPAIRED, epochs=1))
    assert repaired.epsilon == 8.0
    assert repaired.counts["rows of a node"] <= 2
