"""GraphPub's selection in every reading, and its repairs: counts, known lists, exact losses, and errors."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from auditdp.adjacency import Edges, NeighbourList
from auditdp.errors import MechanismError
from auditdp.evidence.loss_of_laws import pair_loss
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

RNG = np.random.default_rng
PATH = np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]])
RANKING = np.array([[0, 1, 2, 3], [1, 0, 5, 4], [2, 5, 0, 6], [3, 4, 6, 0]], float)


def flat(nodes):
    return np.ones((nodes, nodes))


def largest_loss(mechanism, adjacency):
    return max(
        (
            pair_loss(
                mechanism.distribution(p.data), mechanism.distribution(p.neighbour)
            )
            for p in adjacency.exhaustive()
        ),
        key=lambda each: each.lower,
    )


def only_output(mechanism, data):
    (law,) = [mechanism.distribution(data)]
    assert len(law.outcomes) == 1
    return law.outcomes[0]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_counts_sum_to_the_degree(epsilon):
    for degree in range(9):
        real, others = counts(epsilon, degree, 9)
        assert real + others == pytest.approx(degree)
        assert real == pytest.approx(math.exp(epsilon) * others * degree / (9 - degree))


def test_known_lists():
    """N = 4 and E = 8: a degree of 1 gives E₁ = 8/11 → 1 and E₂ = 3/11 → 0; a degree of 2, 32/18 → 2 and 4/18 → 0."""
    published = only_output(GraphPub(math.log(8), 4, flat(4)), PATH)
    assert published.tolist() == [1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1]


def test_known_lists_with_little_budget():
    """N = 4 and E = 1.1: of degree 2, E₁ = 4.4/4.2 → 1 and E₂ = 4/4.2 → 1; of degree 1, 1.1/4.1 → 0 and 3/4.1 → 1.

    So node 1 shows neighbour 2 (L = 5 > 1) and other 3, node 2 neighbour 3 (6 > 5) and other 0, nodes 0 and 3 the others of
    the largest L.
    """
    published = only_output(GraphPub(math.log(1.1), 4, RANKING), PATH)
    assert published.tolist() == [0, 0, 1, 0, 1, 1, 1, 0, 1, 0, 1, 0]


def test_union_is_of_both_directions():
    """The same lists as above as an undirected graph: pairs 01, 02, 03, 12, 13, 23."""
    assert only_output(
        GraphPub(math.log(1.1), 4, RANKING, union=True), PATH
    ).tolist() == [0, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("choice", ["largest", "real uniformly", "uniformly"])
@pytest.mark.parametrize("nodes", [2, 3])
@pytest.mark.parametrize("rounding", ["round", "random"])
def test_no_epsilon_holds_from_two_nodes_on(nodes, rounding, choice):
    assert (
        largest_loss(
            GraphPub(0.5, nodes, flat(nodes), rounding, choice), Edges(nodes)
        ).lower
        == math.inf
    )


def test_rounded_down_two_nodes_publish_nothing_and_three_break_the_claim():
    assert largest_loss(GraphPub(0.5, 2, flat(2), "floor"), Edges(2)).upper == 0
    assert largest_loss(GraphPub(0.5, 3, flat(3), "floor"), Edges(3)).lower == math.inf


@pytest.mark.parametrize(
    ("rounding", "nodes"), [("round", 2), ("floor", 2), ("random", 3)]
)
def test_noisy_degrees_do_not_help(rounding, nodes):
    assert (
        largest_loss(
            GraphPub(0.5, nodes, flat(nodes), rounding, degree_epsilon=0.5),
            Edges(nodes),
        ).lower
        == math.inf
    )


def test_noisy_degrees_with_random_rounding_break_the_claim_at_two_nodes_already():
    exact = largest_loss(
        GraphPub(0.5, 2, flat(2), "random", degree_epsilon=0.5), Edges(2)
    )
    assert exact.lower > 2 * (0.5 + 0.5)
    assert exact.upper < math.inf


def test_the_most_favourable_reading_by_hand():
    """Two nodes: with an edge an end hides it, and without one it shows it, if m̃ = 1 and E₁ = E/(E+1) is rounded down.

    P(m̃ = 1) is 1 − e^(−ε₁/2)/2 for m = 1 and 1 − e^(−3ε₁/2)/2 for m = 0. The edge is hidden if both ends hide it.
    """
    mechanism = GraphPub(
        1.0, 2, flat(2), "random", "uniformly", degree_epsilon=0.5, union=True
    )
    with_edge, without = (
        mechanism.distribution(data)
        for data in (np.array([[0, 1], [1, 0]]), np.zeros((2, 2)))
    )
    hidden = {
        tuple(y): float(p.mid())
        for y, p in zip(
            with_edge.outcomes.tolist(), with_edge.probabilities, strict=True
        )
    }
    flip = 1 / (1 + math.e)
    assert hidden[(0,)] == pytest.approx(
        ((1 - math.exp(-0.25) / 2) * flip) ** 2, rel=1e-12
    )
    shown = {
        tuple(y): float(p.mid())
        for y, p in zip(without.outcomes.tolist(), without.probabilities, strict=True)
    }
    assert shown[(1,)] == pytest.approx(
        1 - (1 - (1 - math.exp(-0.75) / 2) * flip) ** 2, rel=1e-12
    )
    assert pair_loss(with_edge, without).lower == pytest.approx(3.15326, abs=1e-5)


def test_noisy_degree_law():
    law = dict(noisy_degree_law(2, 0.7, 6))
    assert float(sum(law.values()).mid()) == pytest.approx(1)
    assert float(law[2].mid()) == pytest.approx(1 - math.exp(-0.35), rel=1e-12)
    assert float(law[1].mid()) == pytest.approx(math.exp(-0.35) / 2, rel=1e-12)
    assert float(law[6].mid()) == pytest.approx(math.exp(-0.7 * 3.5) / 2, rel=1e-12)


def test_scores_from_the_graph():
    """Z = D^-½(A+I)D^-½X by hand for one edge: every entry of the operator is 1/2."""
    scores = linear_scores(np.array([[1.0], [3.0]]))(np.array([[0, 1], [1, 0]]))
    np.testing.assert_allclose(scores, 1 / (1 + np.exp(-4.0)) * np.ones((2, 2)))
    np.testing.assert_allclose(score_matrix(np.array([[0.0], [1.0]]))[0], 0.5)
    assert (
        largest_loss(GraphPub(1.0, 2, linear_scores(np.ones((2, 1)))), Edges(2)).lower
        == math.inf
    )


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 3.0, 8.0, 20.0])
@pytest.mark.parametrize("degree", [0.01, 1, 2.5])
def test_rates_keep_both_ratios_exactly(epsilon, degree):
    weights = RNG(0).random(30) + 1e-3
    others, real = publishing_rates(epsilon, degree, 9, weights)
    with precision():
        most = arb(epsilon).exp()
        for q, p in zip(others, real, strict=True):
            q, p = Fraction(float(q)), Fraction(float(p))
            assert (q * GRID).denominator == (p * GRID).denominator == 1
            assert 0 < q <= p < 1
            assert ball(p / q) <= most
            assert ball((1 - q) / (1 - p)) <= most
    assert np.log(real / others).max() == pytest.approx(epsilon, rel=1e-3)


def test_repair_keeps_the_expected_counts():
    """Equal weights and the public degree m: p·m = E₁ and q·(N−m) = E₂."""
    (q,), (p,) = publishing_rates(1.0, 3.0, 20, np.ones(1))
    real, others = counts(1.0, 3.0, 20)
    assert p * 3 == pytest.approx(real, rel=1e-12)
    assert q * 17 == pytest.approx(others, rel=1e-12)


@pytest.mark.dear
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
@pytest.mark.parametrize("nodes", [2, 3, 4])
def test_repair_spends_epsilon(nodes, epsilon):
    mechanism = GraphPubResponse(
        epsilon, nodes, score_matrix(RNG(0).random((nodes, 2))), nodes / 2
    )
    exact = largest_loss(mechanism, Edges(nodes))
    assert exact.upper <= epsilon
    assert exact.lower == pytest.approx(epsilon, rel=1e-9)
    law = mechanism.distribution(np.zeros((nodes, nodes)))
    outputs = mechanism.log_prob(law.outcomes, np.zeros((nodes, nodes)))
    np.testing.assert_allclose(outputs, law.log_prob(law.outcomes), atol=1e-12)


def test_list_repair_spends_at_most_both_budgets():
    exact = largest_loss(
        GraphPubList(0.5, 1.0, 5, scores=(1.0, 2.0, 3.0, 4.0)), NeighbourList(5)
    )
    assert exact.upper <= 1.5
    assert exact.lower > 1.2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GraphPub(0.0, 3, flat(3)), r"expected epsilon, a finite number > 0"),
        (lambda: GraphPub(1.0, 1, flat(1)), r"expected nodes, an integer >= 2"),
        (
            lambda: GraphPub(1.0, 3, flat(2)),
            r"finite scores of shape \(3, 3\), got shape \(2, 2\)",
        ),
        (
            lambda: GraphPub(1.0, 3, flat(3), "up"),
            r"expected rounding to be one of .*, got 'up'",
        ),
        (
            lambda: GraphPub(1.0, 3, flat(3), choice="best"),
            r"expected choice to be one of .*, got 'best'",
        ),
        (
            lambda: GraphPub(1.0, 3, flat(3), degree_epsilon=0.0),
            r"expected degree_epsilon, a finite number > 0",
        ),
        (
            lambda: GraphPub(1.0, 3, flat(3))(PATH, 1, rng=RNG(0)),
            r"adjacency matrix of shape \(3, 3\)",
        ),
        (
            lambda: GraphPub(1.0, 6, flat(6), "random", "uniformly").distribution(
                np.ones((6, 6)) - np.eye(6)
            ),
            r"combinations, at most 4096; use fewer nodes",
        ),
        (
            lambda: GraphPubResponse(1.0, 4, flat(4), 2.5),
            r"a degree in \(0, 2\], half the nodes, got 2\.5",
        ),
        (
            lambda: GraphPubResponse(1.0, 4, 0 * flat(4), 1.0),
            r"symmetric scores, > 0 off the diagonal",
        ),
        (
            lambda: GraphPubResponse(1.0, 6, flat(6), 1.0).distribution(
                np.zeros((6, 6))
            ),
            r"use at most 12 bits",
        ),
        (
            lambda: GraphPubList(1.0, 1.0, 3, scores=(1.0,)),
            r"expected 2 scores > 0, got \(1\.0,\)",
        ),
        (
            lambda: GraphPubList(1.0, 1.0, 3)(np.zeros(3, int), 1, rng=RNG(0)),
            r"expected a list of 2 bits, got 3",
        ),
    ],
)
def test_errors_show_the_value_and_the_remedy(make, message):
    with pytest.raises(MechanismError, match=message):
        make()
