"""Pipelines of graphs as mechanisms: sampled arcs and sums by hand, in the game."""

import numpy as np
import torch
from numpy.testing import assert_allclose

from auditdp import Pair
from audits.audit_trainers_graphs import hub, sage_sums
from gnn.ensembles.pipelines import GAPAggregations
from tests.unit.gnn.draws import rng

PATH = np.zeros((4, 4), np.int8)
PATH[1, [0, 2, 3]] = PATH[[0, 2, 3], 1] = 1
"""Node 1 between three others."""
ROWS = torch.tensor(
    [
        [1.0, 0.0],
        [0.6, 0.8],
        [0.0, 2.0],
        [3.0, 4.0],
    ]
)
UNIT = np.array(
    [
        [1.0, 0.0],
        [0.6, 0.8],
        [0.0, 1.0],
        [0.6, 0.8],
    ]
)


def test_gap_releases_normalised_sums_of_all_neighbours_and_noise():
    """The noise is almost 0; one row may be left out."""
    made = GAPAggregations(ROWS, 1, 1e-6, 1.0)
    sums = PATH @ UNIT

    assert_allclose(made.query(PATH, rng()), sums, rtol=1e-6)

    expected = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    found = made(PATH, 3, rng=rng())

    assert_allclose(found, np.tile(expected, (3, 1, 1)), atol=1e-4)
    assert len(np.unique(found.astype(np.float32), axis=0)) == 3

    without = GAPAggregations(ROWS, 2, 1.0, 1.0, unseen=1)
    assert without(PATH, 3, rng=rng()).shape == (3, 3, 4)

    one = GAPAggregations(ROWS, 1, 1.0, 1.0, unseen=1)
    assert_allclose(one.query(PATH, rng()), sums[[0, 2, 3]], rtol=1e-6)


def test_a_score_is_along_the_change_of_the_mean_sums():
    """Node 1 sends to each of three with 1/3, and to each of two with 1/2."""
    made = GAPAggregations(ROWS, 1, 1.0, 1.0, out_degree=1)
    without = PATH.copy()
    without[0, 1] = without[1, 0] = 0
    received = PATH / [1, 3, 1, 1] - without / [1, 2, 1, 1]
    outputs = rng().standard_normal((5, 4, 2))
    expected = (outputs * (received @ UNIT)).sum(axis=(1, 2))
    found = made.score(outputs, Pair(PATH, without))

    assert_allclose(found, expected, rtol=1e-6)


def test_sage_samples_arcs_for_each_training_and_sums_their_gradients():
    """A gradient at zero weights is (p − y)(row, 1), clipped to norm 1."""
    mechanism, data = sage_sums(1.0, 2, 1)(), hub(2, 0).data
    rows = mechanism.sampled(data, rng()).inputs[0].numpy()
    total = np.zeros(6)
    for number, row in enumerate(rows):
        # The hub, which is node 0, is of the other class.
        delta = np.array([-0.5, 0.5] if number else [0.5, -0.5])
        gradient = np.concatenate([np.outer(delta, row).ravel(), delta])
        total += gradient / max(1.0, np.linalg.norm(gradient))

    assert_allclose(mechanism.query(data, rng()), total, rtol=1e-6)

    draws, received = rng(1), set()
    for _ in range(40):
        messages = mechanism.sampled(data, draws).inputs[0][3:, 0]
        received.add(int((messages > 0).sum()))

    # Nodes 3 and 4 receive a message with probability 1/2 each.
    assert received == {0, 1, 2}
