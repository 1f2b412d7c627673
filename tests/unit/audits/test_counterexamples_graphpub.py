"""Figures of the statements of GraphPub, from the laws of the mechanism and from randomised response."""

import math
from itertools import product

import numpy as np
import pytest

from mechanisms.edges.graph_pub import GraphPub, counts
from tests.statistical.stated_laws import EDGE, matrix

KEEP = math.e / (1 + math.e)
"""Randomised response at ε = 1."""


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 20.0])
def test_lists_are_as_long_as_degrees(epsilon):
    """The noise on each of the two degrees that one edge changes has scale 1/ε."""
    for nodes in (9, 2708):
        degrees = np.arange(9)
        real, others = counts(epsilon, degrees, nodes)
        assert real + others == pytest.approx(degrees)
        odds = math.exp(epsilon) * degrees / (nodes - degrees)
        assert real == pytest.approx(odds * others)
    graph = matrix(5, (0, 1), (0, 2), (0, 3), (3, 4))
    (lists,) = GraphPub(epsilon, 5, np.ones((5, 5))).distribution(graph).outcomes
    assert lists.reshape(5, 4).sum(axis=1).tolist() == graph.sum(axis=1).tolist()


def test_a_published_edge_can_be_told():
    """Of a node of degree 4 in Cora no neighbour is published.

    Of two nodes one lists a neighbour.
    """
    real, others = counts(1.0, 4, 2708)
    assert (real, others) == pytest.approx((0.016, 3.98), abs=0.005)
    (lists,) = GraphPub(1.0, 2, np.ones((2, 2))).distribution(EDGE).outcomes
    (none,) = GraphPub(1.0, 2, np.ones((2, 2))).distribution(0 * EDGE).outcomes
    assert lists.any()
    assert not none.any()


def test_the_counts_are_expectations():
    """Means of randomised response on a row of N − 1 bits, scaled to m.

    The printed ones count one zero more.
    """
    nodes, degree = 50, 6
    real = KEEP * degree
    others = (1 - KEEP) * (nodes - 1 - degree)
    one_more = (1 - KEEP) * (nodes - degree)
    printed = counts(1.0, degree, nodes)
    scaled = [degree * x / (real + one_more) for x in (real, one_more)]
    assert printed == pytest.approx(scaled)
    assert printed[1] > degree * others / (real + others)


def test_no_function_of_a_noisy_graph_loses_more():
    """All maps of the two outputs of randomised response on one pair, and of the four on two pairs that differ in one."""
    one = np.array([[KEEP, 1 - KEEP], [1 - KEEP, KEEP]])
    two = np.array([np.outer(row, one[0]).ravel() for row in one])
    for laws in (one, two):
        size = laws.shape[1]
        losses = []
        for function in product(range(size), repeat=size):
            mapped = laws @ np.eye(size)[list(function)]
            mapped = mapped[:, mapped[0] > 0]
            losses.append(np.abs(np.log(mapped[0] / mapped[1])).max())
        assert max(losses) == pytest.approx(1.0)
