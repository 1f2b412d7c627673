"""GraphPub's selection in every reading, and its repairs.

Counts, known lists, exact losses.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from auditdp.adjacency import Edges, NeighbourList
from auditdp.mechanism.laws import ball, precision
from mechanisms.edges.graph_pub import (
    GraphPub,
    counts,
    linear_scores,
    noisy_degree_law,
    score_matrix,
)
from mechanisms.edges.graph_pub_response import (
    GraphPubList,
    GraphPubResponse,
    publishing_rates,
)
from mechanisms.rounding import GRID
from tests.statistical.stated_laws import EDGE, PATH, loss, losses

approx = pytest.approx
parametrize = pytest.mark.parametrize

close = np.testing.assert_allclose

RNG = np.random.default_rng
RANKING = np.array(
    [
        [0, 1, 2, 3],
        [1, 0, 5, 4],
        [2, 5, 0, 6],
        [3, 4, 6, 0],
    ],
    float,
)


NOISY_DEGREES = {"degree_epsilon": 0.5}


def flat(nodes):
    return np.ones((nodes, nodes))


def largest_loss(mechanism, adjacency):
    return max(losses(mechanism, adjacency), key=lambda each: each.lower)


@parametrize(
    ("odds", "scores", "rounding", "expected"),
    [
        (8, flat(4), "round", "100 110 011 001"),
        (8, flat(4), "floor", "000 100 010 000"),
        (1.1, RANKING, "round", "001 011 101 010"),
    ],
)
def test_known_lists(odds, scores, rounding, expected):
    """N = 4 and E = 8: a degree of 1 gives E₁ = 8/11 → 1 and E₂ = 3/11 → 0.

    A degree of 2, 16/9 and 2/9.

    E = 1.1: of degree 2, E₁ = 4.4/4.2 → 1 and E₂ = 4/4.2 → 1; of degree 1, 1.1/4.1 → 0
    and 3/4.1 → 1. So node 1 shows neighbour 2 (L = 5 > 1) and other 3, node 2 neighbour
    3 (6 > 5) and other 0, nodes 0 and 3 the others of the largest L.
    """
    law = GraphPub(math.log(odds), 4, scores, rounding).distribution(PATH)
    (bits,) = law.outcomes.tolist()
    assert bits == list(map(int, expected.replace(" ", "")))


@parametrize(
    ("nodes", "rounding", "choice", "readings"),
    [
        (2, "round", "largest", {}),
        (2, "round", "real uniformly", {}),
        (2, "round", "uniformly", {}),
        (2, "random", "largest", {}),
        (2, "random", "real uniformly", {}),
        (3, "random", "uniformly", {}),
        (3, "floor", "largest", {}),
        (2, "round", "largest", NOISY_DEGREES),
        (2, "floor", "largest", NOISY_DEGREES),
        (3, "random", "largest", NOISY_DEGREES),
    ],
)
def test_no_epsilon_holds(nodes, rounding, choice, readings):
    """Rounded down, two nodes publish nothing; noisy degrees do not help."""
    mechanism = GraphPub(0.5, nodes, flat(nodes), rounding, choice, **readings)
    assert largest_loss(mechanism, Edges(nodes)).lower == math.inf


def test_rounded_down_two_nodes_publish_nothing():
    assert largest_loss(GraphPub(0.5, 2, flat(2), "floor"), Edges(2)).upper == 0


def test_noisy_degrees_with_random_rounding_break_the_claim_at_two_nodes():
    mechanism = GraphPub(0.5, 2, flat(2), "random", **NOISY_DEGREES)
    assert 2 < largest_loss(mechanism, Edges(2)).lower < math.inf


def test_the_most_favourable_reading_by_hand():
    """Two nodes: with an edge an end hides it, and without one it shows it, if m̃ = 1 and E₁ = E/(E+1) is rounded down.

    P(m̃ = 1) is 1 − e^(−ε₁/2)/2 for m = 1 and 1 − e^(−3ε₁/2)/2 for m = 0. The edge is hidden if both ends hide it.
    """
    mechanism = GraphPub(
        1.0, 2, flat(2), "random", "uniformly", union=True, **NOISY_DEGREES
    )
    flip = 1 / (1 + math.e)
    hides = (1 - math.exp(-0.25) / 2) * flip
    shows = (1 - math.exp(-0.75) / 2) * flip
    hidden = {0: hides**2, 1: 1 - hides**2}
    shown = {0: (1 - shows) ** 2, 1: 1 - (1 - shows) ** 2}
    for data, expected in ((EDGE, hidden), (0 * EDGE, shown)):
        law = mechanism.distribution(data)
        found = dict(zip(law.outcomes[:, 0].tolist(), law.floats, strict=True))
        assert found == approx(expected, rel=1e-12)
    assert loss(mechanism, EDGE, 0 * EDGE).lower == approx(3.15326, abs=1e-5)


def test_noisy_degree_law():
    law = {k: float(p) for k, p in noisy_degree_law(2, 0.7, 6)}
    assert sum(law.values()) == approx(1)
    assert law[2] == approx(1 - math.exp(-0.35), rel=1e-12)
    assert law[1] == approx(math.exp(-0.35) / 2, rel=1e-12)
    assert law[6] == approx(math.exp(-0.7 * 3.5) / 2, rel=1e-12)


def test_scores_from_the_graph():
    """Z = D^-½(A+I)D^-½X by hand for one edge: every entry of the operator is 1/2."""
    scores = linear_scores(np.array([[1.0], [3.0]]))(EDGE)
    close(scores, 1 / (1 + np.exp(-4.0)) * np.ones((2, 2)))
    close(score_matrix(np.array([[0.0], [1.0]]))[0], 0.5)
    mechanism = GraphPub(1.0, 2, linear_scores(np.ones((2, 1))))
    assert largest_loss(mechanism, Edges(2)).lower == math.inf


@parametrize("epsilon", [1e-6, 1.0, 8.0, 20.0])
@parametrize("degree", [0.01, 2.5])
def test_rates_keep_both_ratios_exactly(epsilon, degree):
    weights = RNG(0).random(30) + 1e-3
    rates = publishing_rates(epsilon, degree, 9, weights)
    assert np.log(rates[1] / rates[0]).max() == approx(epsilon, rel=1e-3)
    with precision():
        bound = arb(epsilon).exp()
        for q, p in np.transpose(rates).tolist():
            q, p = Fraction(q), Fraction(p)
            assert (q * GRID).denominator == (p * GRID).denominator == 1
            assert 0 < q <= p < 1
            assert ball(p / q) <= bound
            assert ball((1 - q) / (1 - p)) <= bound


def test_repair_keeps_the_expected_counts():
    """Equal weights and the public degree m: p·m = E₁ and q·(N−m) = E₂."""
    (q,), (p,) = publishing_rates(1.0, 3.0, 20, np.ones(1))
    assert (p * 3, q * 17) == approx(counts(1.0, 3.0, 20), rel=1e-12)


@pytest.mark.dear
@parametrize("epsilon", [0.3, 1.0])
@parametrize("nodes", [3, 2, 4])
def test_repair_spends_epsilon(nodes, epsilon):
    scores = score_matrix(RNG(0).random((nodes, 2)))
    exact = largest_loss(
        GraphPubResponse(epsilon, nodes, scores, nodes / 2), Edges(nodes)
    )
    assert exact.upper <= epsilon
    assert exact.lower == approx(epsilon, rel=1e-9)


def test_list_repair_spends_at_most_both_budgets():
    mechanism = GraphPubList(0.5, 1.0, 5, scores=(1.0, 2.0, 3.0, 4.0))
    exact = largest_loss(mechanism, NeighbourList(5))
    assert exact.upper <= 1.5
    assert exact.lower > 1.2
