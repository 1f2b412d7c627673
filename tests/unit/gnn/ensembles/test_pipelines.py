"""Pipelines of graphs as mechanisms: what they sample and sum, by hand; displaced arcs in the game."""

from functools import partial

import numpy as np
import pytest
import torch
from torch.nn import functional

from auditdp import GaussianDP, Pair
from auditdp.betting.forecasters.experts import ViewExperts
from auditdp.betting.forecasters.forecaster import Scored
from auditdp.betting.game import Game
from auditdp.numerics.streams import stream
from audits.audit_trainers_graphs import aggregated, hub, pagerank_sums, sage_sums
from gnn.ensembles.pipelines import GAPAggregations, arcs_of
from tests.unit.gnn.draws import rng

ALPHA = 1e-6
PATH = np.array([[0, 1, 0, 0], [1, 0, 1, 1], [0, 1, 0, 0], [0, 1, 0, 0]], np.int8)
"""Node 1 between three others."""
ROWS = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, 2.0], [3.0, 4.0]])
UNIT = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0], [0.6, 0.8]])


def test_gap_releases_normalised_sums_of_all_neighbours_and_noise():
    """At edge level, almost without noise; the query is the product with the matrix, and one row is left out."""
    made = GAPAggregations(ROWS, 1, 1e-6, 1.0)
    np.testing.assert_allclose(made.query(PATH, rng()), PATH @ UNIT, rtol=1e-6)
    expected = functional.normalize(torch.from_numpy(PATH @ UNIT), dim=1).numpy()
    found = made(PATH, 3, rng=rng())
    np.testing.assert_allclose(found, np.tile(expected, (3, 1, 1)), atol=1e-4)
    assert len(np.unique(found.astype(np.float32), axis=0)) == 3
    assert GAPAggregations(ROWS, 2, 1.0, 1.0, unseen=1)(PATH, 3, rng=rng()).shape == (
        3,
        3,
        4,
    )
    np.testing.assert_allclose(
        GAPAggregations(ROWS, 1, 1.0, 1.0, unseen=1).query(PATH, rng()),
        (PATH @ UNIT)[[0, 2, 3]],
        rtol=1e-6,
    )


def test_a_score_is_along_the_change_of_the_mean_sums():
    """Node 1 sends to each of three with 1/3 and to each of two with 1/2."""
    made, without = GAPAggregations(ROWS, 1, 1.0, 1.0, out_degree=1), PATH.copy()
    without[0, 1] = without[1, 0] = 0
    mean = [
        matrix * np.minimum(1, 1 / matrix.sum(axis=1).clip(min=1))[None] @ UNIT
        for matrix in (PATH, without)
    ]
    outputs = rng().standard_normal((5, 4, 2))
    found = made.score(outputs, Pair(PATH, without))
    np.testing.assert_allclose(
        found, (outputs * (mean[0] - mean[1])).sum(axis=(1, 2)), rtol=1e-6
    )


def test_sage_samples_arcs_for_each_training_and_sums_their_gradients():
    """A node of two neighbours sends to one; at zero weights a gradient is (p − y)(row, 1), clipped to norm 1."""
    mechanism, pair = sage_sums(1.0, 2, 1)(), hub(2, 0)
    rows = mechanism.sampled(pair.data, rng()).inputs[0]
    total = np.zeros(6)
    for number, row in enumerate(rows.numpy()):
        delta = np.array([-0.5, 0.5]) * (
            1 if number else -1
        )  # the hub is of the other class
        gradient = np.concatenate([np.outer(delta, row).ravel(), delta])
        total += gradient / max(1.0, np.linalg.norm(gradient))
    np.testing.assert_allclose(mechanism.query(pair.data, rng()), total, rtol=1e-6)
    generator = rng(1)
    received = [
        int((mechanism.sampled(pair.data, generator).inputs[0][3:, 0] > 0).sum())
        for _ in range(40)
    ]
    assert set(received) == {0, 1, 2}  # nodes 3 and 4 receive with 1/2 each
    assert mechanism(pair.data, 3, rng=rng()).shape == (3, 1, 6)


@pytest.mark.parametrize(("most_rows", "change"), [(None, 6.0), (1, 2.0)])
def test_a_node_turns_the_gradients_of_the_rows_that_it_is_in(most_rows, change):
    """Three rows, whose column of norm 1.5 is clipped to 1; by 2C each, and in one row where no more are left."""
    built = pagerank_sums(3, most_rows, 1.0)
    both = [
        built.mechanism.query(data, rng())
        for data in (built.pairs[1].data, built.pairs[1].neighbour)
    ]
    assert np.linalg.norm(both[0] - both[1]) == pytest.approx(change, rel=1e-5)


def refuted(mechanism, pair, forecaster, most):
    """Whether 1-GDP is refuted within so many calls at α = 1e-6."""
    game = Game(mechanism, GaussianDP(1.0), [pair], [forecaster], partial(stream, 0))
    game.play(most, alpha=ALPHA, stop_when_refuted=True)
    return game.refuted_at is not None


@pytest.mark.statistical
@pytest.mark.parametrize(("out_degree", "reach"), [(1, 1.0), (5, 5**0.5)])
def test_displaced_arcs_refute_the_accounting_of_gap(out_degree, reach):
    """Where nodes send one arc, and not where they send all."""
    pair = hub(20, 4) if out_degree == 1 else hub(5, 4)
    nodes = 41 if out_degree == 1 else 11
    made = GAPAggregations(
        aggregated(pair, nodes), 1, reach, reach, out_degree, unseen=0
    )
    assert refuted(made, pair, Scored(), 600) is (out_degree == 1)


@pytest.mark.statistical
@pytest.mark.parametrize(("count", "out_degree"), [(16, 1), (3, 3)])
def test_displaced_arcs_refute_the_accounting_of_sage(count, out_degree):
    mechanism = sage_sums(1.0, count, out_degree)()
    assert refuted(mechanism, hub(count, 0), ViewExperts(), 1_000) is (out_degree == 1)


def test_arcs_go_both_ways():
    assert arcs_of(PATH).tolist() == [[0, 1, 1, 1, 2, 3], [1, 0, 2, 3, 1, 1]]
