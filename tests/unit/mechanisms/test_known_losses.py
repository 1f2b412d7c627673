"""Losses of pairs that were computed by another route.

Naive enumeration or quadrature in floating point.
"""

import math

import numpy as np
import pytest

from mechanisms.edges import DPRR
from mechanisms.edges.graph_pub import GraphPub
from mechanisms.features import LinearExtractor, RecordFeatureRR
from mechanisms.hierarchy import DendrogramStep, PrivHRG
from mechanisms.hierarchy.dendrogram_step import ManyPublicMoves
from mechanisms.link_ldp import LinkMessage, LinkMessages
from mechanisms.node_level import SymmetricLaplace, WithinBall
from tests.statistical.stated_laws import EDGE, NEVER, loss, matrix

TWO_ANSWERS = ((1.0, 0.0), (0.0, 1.0))
WEDGE = {"moves": "alternating", "public": ((0, 1), (0, 2))}
JOINT = {**WEDGE, "moves": "joint"}
CLIQUE = [(i, j) for j in range(4) for i in range(j)]
BALL = WithinBall(SymmetricLaplace(2**0.5, 3), 0.2)


@pytest.mark.parametrize(
    ("mechanism", "first", "second", "expected"),
    [
        (
            RecordFeatureRR(4.0, LinearExtractor(TWO_ANSWERS), 4),
            np.array([0.5, 1.0]),
            np.zeros(2),
            4.39076743838,
        ),
        (
            RecordFeatureRR(4.0, LinearExtractor(TWO_ANSWERS, sensitive=(0,)), 4),
            np.array([0.5, 0.0]),
            np.ones(2),
            4.2925673021,
        ),
        (
            DPRR.allocated(2.0, 2),
            np.array([1]),
            np.array([0]),
            math.log(0.816341504942 / 0.0492443211507),
        ),
        (DendrogramStep(0.1, 3, **JOINT), matrix(3, (1, 2)), matrix(3), 0.0336095489),
        (DendrogramStep(0.1, 3, **WEDGE), matrix(3, (1, 2)), matrix(3), 0.1039694241),
        (
            ManyPublicMoves(0.1, 3, **WEDGE, public_moves=10),
            matrix(3, (1, 2)),
            matrix(3),
            0.17821,
        ),
        (
            ManyPublicMoves(0.1, 3, **WEDGE, factor=1, public_moves=10),
            matrix(3, (1, 2)),
            matrix(3),
            0.32255,
        ),
        (
            DendrogramStep(0.1, 6, private_nodes="data"),
            matrix(6, *CLIQUE, (4, 5)),
            matrix(6, *CLIQUE),
            0.119995641958,
        ),
        (
            PrivHRG(0.5, 0.01, 4, factor=1, equation="15", **NEVER),
            matrix(4, (0, 1), (0, 2)),
            matrix(4, (0, 1)),
            0.628328063922,
        ),
        (
            PrivHRG(0.25, 0.75, 3, draws="fresh"),
            matrix(3, (0, 1)),
            matrix(3),
            1.40106523385,
        ),
        (LinkMessages(LinkMessage(1.0), 2), EDGE, 0 * EDGE, 2.0),
        (BALL, 0.0, 1.0, math.log(0.0175230963064 / 0.000984941500433)),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_the_loss_of_a_pair(mechanism, first, second, expected):
    assert loss(mechanism, first, second).lower == pytest.approx(expected, rel=5e-5)


def test_one_output_of_dprr_on_github():
    """Own bit, 10 of 955 zeros set: the published allocation at ε = .1 loses .18."""
    table = DPRR.allocated(0.1, 957).log_ratio_table(956, 0)
    assert table[1, 0, 10] == pytest.approx(0.181478, abs=2e-5)


def test_nobody_is_published_on_two_nodes_if_both_ends_round_down():
    """E₁ = e/(e+1), so that (1 − E₁)² is the probability of an empty list at both ends."""
    law = GraphPub(1.0, 2, np.ones((2, 2)), "random").distribution(EDGE)
    found = law.floats[~law.outcomes.any(axis=1)]
    assert found == pytest.approx([0.0723294881285])
