"""LocalLap and LapGraph: exact budgets of their messages, and the choice of the largest cells."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from auditdp.adjacency import Edges, NeighbourList, Pair, Relationship
from auditdp.errors import MechanismError
from mechanisms.edges import (
    LapGraph,
    LapGraphNoisy,
    LocalLaplace,
    LocalLaplaceGraph,
    LocalLaplaceMessage,
    LocalLaplaceMessages,
    LocalLaplaceRow,
)
from mechanisms.edges.laplace_cells import largest_cells, rounded_total
from mechanisms.edges.sparse import top_noise
from mechanisms.graphs import Graph, barabasi_albert

RNG = np.random.default_rng
EPSILONS = [0.1, 0.7, 1.0, 3.0]


def exact_losses(mechanism, pairs):
    return [
        mechanism.distribution(p.data).epsilon_against(
            mechanism.distribution(p.neighbour)
        )
        for p in pairs
    ]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_budgets_are_split_as_published_and_never_exceed_the_whole(epsilon):
    split = LocalLaplace(epsilon)
    assert split.epsilon1 == pytest.approx(epsilon / 10)
    assert Fraction(split.epsilon1) + Fraction(split.epsilon2) <= Fraction(epsilon)
    noisy = LapGraphNoisy(epsilon, 3)
    assert noisy.epsilon1 == pytest.approx(epsilon / 100)
    assert Fraction(noisy.epsilon1) + Fraction(noisy.epsilon2) <= Fraction(epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_local_messages_cost_exactly_what_is_claimed(epsilon):
    """User 0 pays ε for any bit; the last user, who sends only the degree, pays ε/10."""
    first = exact_losses(LocalLaplaceMessage(epsilon), NeighbourList(4).exhaustive())
    assert all(
        Fraction(epsilon) * (1 - Fraction(1, 10**12)) < loss <= Fraction(epsilon)
        for loss in first
    )
    last = exact_losses(
        LocalLaplaceMessage(epsilon, user=3), NeighbourList(4).exhaustive()
    )
    assert [float(loss) for loss in last] == pytest.approx([epsilon / 10] * len(last))


def test_a_later_user_sends_the_cells_after_their_own_place():
    law = LocalLaplaceMessage(1.0, user=2).distribution(
        np.array([1, 0, 1, 0])
    )  # user 2 of 5: places of 0, 1, 3, 4
    assert law.location.tolist() == [2, 1, 0]
    assert law.scale[0] == pytest.approx(10)
    assert law.scale[1:] == pytest.approx(1 / 0.9)
    with pytest.raises(MechanismError, match="users 0 to 4"):
        LocalLaplaceMessage(1.0, user=5).distribution(np.array([1, 0, 1, 0]))


def test_one_edge_of_all_messages_costs_a_tenth_more_than_epsilon():
    """Relationship DP: two degrees and one cell, ε₁ + ε₁ + ε₂ = 1.1 ε."""
    losses = exact_losses(LocalLaplaceMessages(1.0, 4), Relationship(4).exhaustive())
    assert [float(loss) for loss in losses] == pytest.approx([1.1] * len(losses))
    assert min(losses) > 1


def test_lap_graph_costs_epsilon_exactly():
    losses = exact_losses(LapGraphNoisy(1.0, 4), Edges(4).exhaustive())
    assert all(1 - Fraction(1, 10**12) < loss <= 1 for loss in losses)


@pytest.mark.parametrize(
    ("mechanism", "pair"),
    [
        (LocalLaplaceMessage(0.8), NeighbourList(5).pairs()[1]),
        (LocalLaplaceMessages(0.8, 4), Edges(4).pairs()[1]),
        (LapGraphNoisy(0.8, 4), Edges(4).pairs()[2]),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_log_prob_is_the_laplace_density_and_score_its_ratio(mechanism, pair):
    outputs = mechanism(pair.data, 50, rng=RNG(0))
    law = mechanism.distribution(pair.data)
    assert outputs.shape == (50, len(law.location))
    oracle = stats.laplace.logpdf(outputs, law.location, law.scale).sum(axis=1)
    np.testing.assert_allclose(
        mechanism.log_prob(outputs, pair.data), oracle, rtol=1e-12
    )
    ratio = mechanism.log_prob(outputs, pair.data) - mechanism.log_prob(
        outputs, pair.neighbour
    )
    np.testing.assert_allclose(mechanism.score(outputs, pair), ratio, atol=1e-9)


def test_largest_cells_and_totals():
    values = np.array([[0.1, 3.0, 2.0], [5.0, -1.0, 0.0]])
    assert largest_cells(values, np.array([2, 0])).tolist() == [[0, 1, 1], [0, 0, 0]]
    assert rounded_total(np.array([-3.0, 1.4, 1.6, 99.0]), 6).tolist() == [0, 1, 2, 6]


@pytest.mark.parametrize(
    "mechanism", [LocalLaplaceGraph(1e7, 5), LapGraph(1e8, 5)], ids=lambda m: m.name
)
def test_a_huge_budget_returns_the_graph(mechanism):
    """Noise of scale 1e-6 moves neither the count nor the order of the cells."""
    graph = Graph(5, np.array([[0, 1, 1], [4, 2, 3]]))
    bits = graph.to_matrix()[np.triu_indices(5, 1)]
    assert (mechanism(graph.to_matrix(), 20, rng=RNG(0)) == bits).all()
    np.testing.assert_array_equal(
        mechanism.whole_graph(graph, rng=RNG(0)).edges, graph.edges
    )


def test_a_huge_budget_returns_the_row():
    row = np.array([0, 1, 0, 1], np.int8)
    assert (LocalLaplaceRow(1e7)(row, 20, rng=RNG(0)) == row).all()


def test_whole_graph_uses_all_cells_of_a_complete_graph():
    everything = Graph(6, np.array(np.triu_indices(6, 1)))
    assert LapGraph(1e8, 6).whole_graph(everything, rng=RNG(0)).edges.shape == (2, 15)


def test_top_noise_is_descending_in_every_row():
    values = top_noise(np.array([100, 3, 7]), np.array([5, 0, 7]), 2.0, RNG(0))
    assert len(values) == 12
    assert (np.diff(values[:5]) < 0).all()
    assert (np.diff(values[5:]) < 0).all()


def test_top_noise_of_a_huge_population_keeps_its_digits():
    """The largest of 10^15 Laplace(1) variables lies near log(10^15/2) = 33.8; a survival from 1 − U would be noise."""
    values = np.concatenate(
        [top_noise(np.array([10**15]), np.array([1]), 1.0, RNG(i)) for i in range(200)]
    )
    assert len(np.unique(values)) == 200
    assert np.median(values) == pytest.approx(
        math.log(10**15 / 2) - math.log(math.log(2)), abs=0.5
    )


@pytest.mark.parametrize(
    "factory", [LocalLaplaceGraph, LapGraph, LapGraphNoisy, LocalLaplaceMessages]
)
def test_bad_parameters_are_refused(factory):
    with pytest.raises(MechanismError, match="epsilon, a finite number > 0"):
        factory(0.0, 4)
    with pytest.raises(MechanismError, match="nodes, an integer >= 2"):
        factory(1.0, 1)
    with pytest.raises(MechanismError, match="share strictly between"):
        factory(1.0, 4, share=1.0)


def test_messages_need_a_symmetric_matrix():
    pair = Pair(np.triu(np.ones((4, 4)), 1), np.zeros((4, 4)))
    with pytest.raises(MechanismError, match="symmetric"):
        LocalLaplaceMessages(1.0, 4).distribution(pair.data)


def test_whole_rows_have_the_rounded_degree():
    graph = barabasi_albert(50, 2, RNG(0))
    noisy = LocalLaplaceRow(1e7).whole_graph(graph, rng=RNG(0))
    np.testing.assert_array_equal(noisy.arcs, graph.arcs)
