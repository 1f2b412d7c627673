"""Losses of pairs that were computed by another route.

Naive enumeration or quadrature in floating point.
"""

from itertools import combinations

import numpy as np
import pytest

from mechanisms.edges import DPRR
from mechanisms.edges.graph_pub import GraphPub
from mechanisms.features import LinearExtractor, RecordFeatureRR
from mechanisms.hierarchy import DendrogramStep, PrivHRG
from mechanisms.hierarchy.dendrogram_step import RepeatedMoves
from mechanisms.link_ldp import LinkMessage, LinkMessages
from mechanisms.node_level import SymmetricLaplace, WithinBall
from tests.statistical.stated_laws import EDGE, NEVER, loss, matrix

WEDGE = {"moves": "alternating", "public": ((0, 1), (0, 2))}
JOINT = {**WEDGE, "moves": "joint"}
BALL = WithinBall(SymmetricLaplace(2**0.5, 3), 0.2)


NO_EDGE = matrix(3)
PRIVATE = matrix(3, "12")
CLIQUE = matrix(6, *combinations(range(4), 2))


def by_record(**options):
    extractor = LinearExtractor(((1.0, 0.0), (0.0, 1.0)), **options)
    return RecordFeatureRR(4.0, extractor, 4)


def step(**readings):
    return DendrogramStep(0.1, 3, **readings)


def many_moves(**readings):
    return RepeatedMoves(0.1, 3, **WEDGE, public_moves=10, **readings)


def three_private_moves(epsilon, nodes, public):
    return RepeatedMoves(
        epsilon,
        nodes,
        moves="alternating",
        public=public,
        public_moves=100,
        private_moves=3,
    )


MATCHING = ((0, 3), (1, 2))
SIX_EDGES = ((0, 3), (0, 4), (1, 2), (1, 4), (2, 4), (3, 4))
ACROSS = [(0, 2), (1, 3), (2, 3)]
AROUND = [(0, 1), (0, 2), (2, 3)]


FACTOR_1 = PrivHRG(0.5, 0.01, 4, factor=1, equation="15", **NEVER)


@pytest.mark.parametrize(
    ("mechanism", "first", "second", "expected"),
    [
        (by_record(), [0.5, 1.0], [0.0, 0.0], 4.39076743838),
        (by_record(sensitive=(0,)), [0.5, 0.0], [1.0, 1.0], 4.2925673021),
        (DPRR.allocated(2.0, 2), [1], [0], 2.808038723986),
        (step(**JOINT), PRIVATE, NO_EDGE, 0.0336095489),
        (step(**WEDGE), PRIVATE, NO_EDGE, 0.1039694241),
        (many_moves(), PRIVATE, NO_EDGE, 0.17821),
        (many_moves(factor=1), PRIVATE, NO_EDGE, 0.32255),
        (
            three_private_moves(0.05, 4, MATCHING),
            matrix(4, (0, 1), *ACROSS),
            matrix(4, *ACROSS),
            0.0529317,
        ),
        pytest.param(
            three_private_moves(0.1, 5, SIX_EDGES),
            matrix(5, (1, 3), *AROUND),
            matrix(5, *AROUND),
            0.117543,
            marks=pytest.mark.dear,
        ),
        (
            DendrogramStep(0.1, 6, private_nodes="data"),
            CLIQUE + matrix(6, "45"),
            CLIQUE,
            0.119995641958,
        ),
        (FACTOR_1, matrix(4, "01", "02"), matrix(4, "01"), 0.628328063922),
        (PrivHRG(0.25, 0.75, 3, draws="fresh"), PRIVATE, NO_EDGE, 1.40106523385),
        (LinkMessages(LinkMessage(1.0), 2), EDGE, 0 * EDGE, 2.0),
        (BALL, 0.0, 1.0, 2.878692829708),
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
