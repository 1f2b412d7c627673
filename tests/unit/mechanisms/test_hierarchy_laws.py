"""Exact laws of the dendrogram step and of the released graph: closed forms, and what is true of every claim."""

import math
from fractions import Fraction

import numpy as np
import pytest

from auditdp import Edges, Pair, PureDP
from auditdp.errors import AdjacencyError, MechanismError
from auditdp.evidence.exact import exact_evidence
from mechanisms.graphs import Graph, erdos_renyi
from mechanisms.hierarchy import (
    DendrogramStep,
    EdgeRR,
    NoisyCounts,
    PrivateEdgeDP,
    PrivHRG,
    Thresholds,
)
from mechanisms.hierarchy.dendrogram import Dendrogram, Layer, balanced
from mechanisms.hierarchy.exact_chain import states
from mechanisms.hierarchy.noisy_probabilities import drawn_probability, noisy_counts

pytestmark = pytest.mark.dear

RNG = np.random.default_rng
NEVER = {"tau1": math.inf, "tau2": math.inf}
WEDGE = ((0, 1), (0, 2))


def matrix(nodes, *edges):
    found = np.zeros((nodes, nodes), np.int8)
    for i, j in edges:
        found[i, j] = found[j, i] = 1
    return found


def epsilon_of(mechanism, adjacency):
    """The exact loss over all pairs."""
    found = exact_evidence(mechanism, PureDP(1.0), adjacency)
    assert "all" in found.statement or "only" in found.statement
    assert (
        found.epsilon_lower == pytest.approx(found.epsilon_upper, rel=1e-12)
        or found.epsilon_lower == math.inf
    )
    return found.epsilon_lower


def law_by_tree(mechanism, data):
    """Probabilities of the three dendrograms over 0, 1, 2 by the pair that is joined first: 0-1, 0-2, 1-2."""
    law = mechanism.distribution(data)
    return {
        tuple(sizes.tolist()).index(2): float(p.mid())
        for sizes, p in zip(law.outcomes, law.balls, strict=True)
    }


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
def test_the_stationary_law_of_three_nodes(epsilon):
    """Δ = 2 log 2, and an edge that is not joined first costs 2 log 2: weights 1, w, w with w = e^(−ε/2)."""
    w = math.exp(-epsilon / 2)
    law = law_by_tree(DendrogramStep(epsilon, 3), matrix(3, (0, 1)))
    assert law == pytest.approx(
        {0: 1 / (1 + 2 * w), 1: w / (1 + 2 * w), 2: w / (1 + 2 * w)}, rel=1e-12
    )


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("steps", [0, 1, 2, 5, 11])
def test_the_law_after_t_steps_of_three_nodes(epsilon, steps):
    """From the tree that joins the edge: P_t = π + (1 − π)(1/2 − w)^t with π = (1/2)/(1/2 + w).

    That tree is left with probability w, and reached from either other one with probability 1/2.
    """
    w = math.exp(-epsilon / 2)
    stationary = 0.5 / (0.5 + w)
    at_best = stationary + (1 - stationary) * (0.5 - w) ** steps
    law = law_by_tree(
        DendrogramStep(epsilon, 3, steps=steps, start=((0, 1), 2)), matrix(3, (0, 1))
    )
    assert law == pytest.approx(
        {0: at_best, 1: (1 - at_best) / 2, 2: (1 - at_best) / 2}, rel=1e-9, abs=1e-15
    )


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_exact_epsilon_of_three_nodes(epsilon):
    """A path u-v-w and the same without v-w: both laws have weights 1, w, w in some order, so ε is −log w."""
    assert epsilon_of(DendrogramStep(epsilon, 3), Edges(3)) == pytest.approx(
        epsilon / 2, rel=1e-9
    )
    assert epsilon_of(DendrogramStep(epsilon, 3, factor=1), Edges(3)) == pytest.approx(
        epsilon, rel=1e-9
    )


@pytest.mark.parametrize(
    ("readings", "epsilon", "ratio"),
    [
        ({}, 1.0, 0.470638009),
        ({}, 40.0, 0.697360812),
        ({"factor": 1}, 1.0, 0.932186941),
        ({"factor": 1}, 5.0, 1.159378157),
        ({"factor": 1, "equation": "15"}, 0.5, 1.260636808),
        ({"equation": "15"}, 40.0, 0.949561170),
        ({"steps": 2}, 1.0, 0.798480505),
        ({"steps": 2, "start": (((0, 1), 2), 3)}, 1.0, 0.963771),
        ({"steps": 1, "start": "uniform"}, 1.0, 0.294908),
    ],
)
def test_the_exact_epsilon_of_four_nodes(readings, epsilon, ratio):
    """Figures of an independent enumeration in floating point, as multiples of the claimed ε."""
    found = epsilon_of(DendrogramStep(epsilon, 4, **readings), Edges(4))
    assert found / epsilon == pytest.approx(
        ratio, rel=1e-4 if "steps" in readings else 1e-8
    )


@pytest.mark.parametrize("nodes", [3, 4])
def test_one_step_from_a_public_start_has_no_finite_loss(nodes):
    """Where every move is certainly accepted the start cannot be kept; where one may be refused it can."""
    assert epsilon_of(DendrogramStep(1.0, nodes, steps=1), Edges(nodes)) == math.inf


@pytest.mark.parametrize("nodes", [3, 4])
def test_the_law_tends_to_the_stationary_one(nodes):
    graph = matrix(nodes, (0, 1), (1, 2))
    for readings in (
        {},
        {"moves": "joint", "public": ((0, 2),)},
        {"moves": "alternating", "public": ((0, 2),)},
    ):
        late = (
            DendrogramStep(1.0, nodes, steps=120, **readings).distribution(graph).floats
        )
        assert late == pytest.approx(
            DendrogramStep(1.0, nodes, **readings).distribution(graph).floats, rel=1e-9
        )


def test_alternating_moves_have_neither_target_as_their_stationary_law():
    """By detailed balance one kind of moves has the exponential mechanism's law; both in turn have another one."""
    graph = matrix(3, (1, 2))
    laws = [
        law_by_tree(DendrogramStep(0.1, 3, moves=m, public=WEDGE), graph)
        for m in ("private", "joint", "alternating")
    ]
    assert laws[2] != pytest.approx(laws[0], rel=0.05)
    assert laws[2] != pytest.approx(laws[1], rel=0.05)
    adjacency = PrivateEdgeDP(3, WEDGE)
    losses = [
        epsilon_of(DendrogramStep(0.1, 3, moves=m, public=WEDGE), adjacency)
        for m in ("joint", "alternating")
    ]
    assert losses == pytest.approx([0.0336095489, 0.1039694241], rel=1e-8)


def test_the_unit_of_a_released_bit():
    """One pair with an edge, noise of scale s: 1/2 + (1 − s(1 − e^(−1/s)))/2, and without one the rest of 1 at count 0."""
    for scale in (0.3, 1.0, 4.0):
        expected = 0.5 + (1 - scale * (1 - math.exp(-1 / scale))) / 2
        assert float(drawn_probability(1, 0, 1, 1, scale).mid()) == pytest.approx(
            expected, rel=1e-12
        )
        assert float(drawn_probability(1, 0, 0, 1, scale).mid()) == pytest.approx(
            1 - expected, rel=1e-12
        )
        sums = sum(
            math.comb(5, k) * drawn_probability(k, 5 - k, 2, 7, scale) for k in range(6)
        )
        assert bool(sums.contains(1))


def test_two_nodes_lose_less_than_the_noise():
    """P(edge) is 1/2 ± (1 − s(1 − e^(−1/s)))/2."""
    half = (1 - 2 * (1 - math.exp(-0.5))) / 2
    expected = math.log((0.5 + half) / (0.5 - half))
    assert epsilon_of(PrivHRG(0.5, 0.5, 2), Edges(2)) == pytest.approx(
        expected, rel=1e-9
    )


def counts_of(nested, thresholds, members=None):
    tree = Dendrogram.of(nested, [Layer([], range(5) if members is None else members)])
    return noisy_counts(tree, thresholds)


LADDER = ((((0, 1), 2), 3), 4)


@pytest.mark.parametrize(
    ("draws", "pairs"),
    [("one", [10]), ("fresh", [10, 10, 10, 10]), ("nested", [10, 6, 3, 1])],
)
def test_pooled_counts_by_reading(draws, pairs):
    found = counts_of(LADDER, Thresholds(1.0, draws=draws))
    assert sorted((count.pairs for count in found), reverse=True) == pairs
    assert sorted(node for count in found for node in count.drawn) == [5, 6, 7, 8]


def test_the_printed_thresholds():
    """ε₂ = 1: a root with 4 against 5 leaves has 20 pairs across (1/20 >= .05) and 36 below (1/36 >= .01): pooled."""
    thresholds = Thresholds(1.0)
    assert thresholds.pools(4, 5)
    assert not thresholds.pools(3, 7)  # 21 pairs across
    assert thresholds.pools(1, 13)  # 91 pairs below
    assert not thresholds.pools(1, 14)  # 105 pairs below
    assert not Thresholds(1.0, **NEVER).pools(1, 1)
    assert thresholds.pools(0, 5)  # nothing across, and few below
    nine, sixteen = (Dendrogram(balanced(n), [Layer([], range(n))]) for n in (9, 16))
    assert [count.pairs for count in noisy_counts(nine, thresholds)] == [36]
    assert [count.pairs for count in noisy_counts(sixteen, thresholds)] == [64, 28, 28]


def test_nodes_without_private_nodes_on_both_sides_need_no_noise():
    for thresholds in (
        Thresholds(1.0),
        Thresholds(1.0, **NEVER),
        Thresholds(1.0, draws="fresh"),
    ):
        found = counts_of(LADDER, thresholds, members=[0, 4])
        assert [(count.drawn, count.pairs) for count in found] == [((8,), 1)]
    assert counts_of(LADDER, Thresholds(1.0), members=[2]) == []


@pytest.mark.parametrize(
    ("draws", "thresholds", "uses"),
    [
        ("one", {}, 1),
        ("one", NEVER, 1),
        ("fresh", {}, 3),
        ("nested", {}, 3),
        ("fresh", NEVER, 1),
        ("nested", NEVER, 1),
    ],
)
def test_what_the_noisy_counts_of_a_ladder_of_four_cost(draws, thresholds, uses):
    """One draw: ε₂. Fresh draws: one for each internal node. Nested ones: one for each ancestor, at most the height."""
    mechanism = NoisyCounts(
        (((0, 1), 2), 3), Thresholds(0.7, draws=draws, **thresholds)
    )
    losses = [
        mechanism.distribution(p.data).epsilon_against(
            mechanism.distribution(p.neighbour)
        )
        for p in Edges(4).exhaustive()
    ]
    assert float(max(losses)) == pytest.approx(uses * 0.7, rel=1e-12)
    assert max(losses) <= uses * Fraction(0.7)


@pytest.mark.parametrize(
    ("mechanism", "adjacency", "claimed", "holds"),
    [
        (PrivHRG(0.5, 0.5, 4), Edges(4), 1.0, True),
        (PrivHRG(0.5, 0.5, 4, **NEVER), Edges(4), 1.0, True),
        (PrivHRG(0.5, 0.5, 3, steps=1, **NEVER), Edges(3), 1.0, False),
        (PrivHRG(0.1, 0.01, 4, steps=3, **NEVER), Edges(4), 0.11, False),
        (
            PrivHRG(0.5, 0.01, 4, factor=1, equation="15", **NEVER),
            Edges(4),
            0.51,
            False,
        ),
        (
            PrivHRG(0.1, 0.001, 3, moves="alternating", public=WEDGE, **NEVER),
            PrivateEdgeDP(3, WEDGE),
            0.101,
            False,
        ),
        (
            PrivHRG(0.1, 0.001, 3, moves="joint", public=WEDGE, **NEVER),
            PrivateEdgeDP(3, WEDGE),
            0.101,
            True,
        ),
        (PrivHRG(0.25, 0.75, 3, draws="fresh"), Edges(3), 1.0, False),
        (PrivHRG(0.1, 0.9, 3, draws="nested"), Edges(3), 1.0, False),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_what_is_true_of_the_released_graph(mechanism, adjacency, claimed, holds):
    found = epsilon_of(mechanism, adjacency)
    assert (found <= claimed) == holds
    assert found != math.inf


def test_private_nodes_from_the_data_give_an_edge_away():
    """Without a private edge no pair is ever drawn; with one its pair may become an edge."""
    mechanism = EdgeRR(0.5, 0.5, 2, steps=3)
    assert epsilon_of(mechanism, Edges(2)) == math.inf
    assert not mechanism(matrix(2), 50, rng=RNG(0)).any()
    assert mechanism(matrix(2, (0, 1)), 50, rng=RNG(0)).any()


def test_private_nodes_from_the_data_change_the_likelihood_by_more_than_the_sensitivity():
    step = DendrogramStep(1.0, 4, private_nodes="data")
    pair = matrix(4, (0, 1)), matrix(4, (0, 1), (2, 3))
    change = np.abs(step.query(pair[0], RNG(0)) - step.query(pair[1], RNG(0))).max()
    assert change == pytest.approx(3.295836866, rel=1e-9)
    assert change > step.sensitivity


def test_public_pairs_outside_the_private_nodes_are_copied():
    mechanism = PrivHRG(0.5, 0.5, 4, private_nodes=(1, 2, 3), public=((0, 1), (1, 2)))
    outputs = mechanism(matrix(4, (2, 3)), 200, rng=RNG(0))
    assert (outputs[:, :3] == [1, 0, 0]).all()  # 0-1, 0-2, 0-3
    assert (
        outputs[:, 3:].mean(axis=0) > 0
    ).all()  # the pairs among private nodes are drawn, the public 1-2 as well
    assert (outputs[:, 3:].mean(axis=0) < 1).all()
    law = mechanism.distribution(matrix(4, (2, 3)))
    assert len(law.outcomes) == 8
    graph = mechanism.whole_graph(
        Graph.from_matrix(matrix(4, (2, 3))), rng=RNG(1)
    ).to_matrix()
    assert graph[0].tolist() == [0, 1, 0, 0]


def test_a_huge_budget_returns_the_graph():
    for nodes in (5, 12):
        graph = erdos_renyi(nodes, 0.4, RNG(3))
        mechanism = PrivHRG(1.0, 1e9, nodes, steps=5, start="uniform")
        # With so little noise nothing is pooled, and only pairs whose counts are all or nothing are certain.
        bits = mechanism(graph.to_matrix(), 40, rng=RNG(0))
        assert bits.shape == (40, nodes * (nodes - 1) // 2)
        empty = Graph(nodes, np.zeros((2, 0), np.int64))
        assert not mechanism(empty.to_matrix(), 40, rng=RNG(0)).mean() > 1e-6
        assert mechanism.whole_graph(empty, rng=RNG(0)).edges.shape[1] == 0


def test_a_graph_that_the_dendrogram_explains_is_returned_without_noise():
    """Two cliques below a root without edges across: every probability is 0 or 1."""
    cliques = matrix(6, (0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5))
    mechanism = PrivHRG(1.0, 1e9, 6, steps=0, start=(((0, 1), 2), ((3, 4), 5)))
    bits = mechanism(cliques, 30, rng=RNG(0))
    assert (bits == cliques[np.triu_indices(6, 1)]).all()
    np.testing.assert_array_equal(
        mechanism.whole_graph(Graph.from_matrix(cliques), rng=RNG(0)).to_matrix(),
        cliques,
    )


def test_laws_beyond_what_can_be_listed_are_refused():
    with pytest.raises(MechanismError, match="at most 4"):
        PrivHRG(0.5, 0.5, 5).distribution(matrix(5))
    with pytest.raises(MechanismError, match="at most 6"):
        DendrogramStep(0.5, 7, steps=1).distribution(matrix(7))
    with pytest.raises(MechanismError, match="give steps"):
        DendrogramStep(0.5, 7, moves="alternating")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"epsilon": 0.0}, "epsilon, a finite number > 0, got 0.0"),
        ({"nodes": 1}, "nodes, an integer >= 2, got 1"),
        ({"steps": -1}, "steps, an integer >= 0, got -1"),
        ({"factor": 3}, "factor one of"),
        ({"equation": "16"}, "equation one of"),
        ({"moves": "both"}, "moves one of"),
        ({"private_nodes": "some"}, "'all', 'data' or node ids"),
        ({"private_nodes": (0, 4)}, "private nodes below 4"),
        ({"public": ((1, 0),)}, "public edges"),
        ({"start": ((0, 1), 2)}, "a start with 4 leaves"),
    ],
)
def test_bad_arguments_name_the_value_and_the_remedy(changed, message):
    with pytest.raises(MechanismError, match=message):
        DendrogramStep(**{"epsilon": 1.0, "nodes": 4} | changed)


def test_bad_thresholds_are_refused():
    with pytest.raises(MechanismError, match="tau1 > 0"):
        Thresholds(1.0, tau1=0)
    with pytest.raises(MechanismError, match="draws one of"):
        Thresholds(1.0, draws="two")
    with pytest.raises(MechanismError, match="got -1"):
        Thresholds(-1)


def test_private_edges_where_none_may_be_are_refused():
    step = DendrogramStep(1.0, 4, public=((0, 1),), private_nodes=(0, 1, 2))
    for edge in ((0, 1), (2, 3)):
        with pytest.raises(MechanismError, match="may not have a private edge"):
            step.distribution(matrix(4, edge))


def test_neighbours_differ_in_one_private_edge():
    adjacency = PrivateEdgeDP(4, ((0, 1),), (0, 1, 2))
    assert adjacency.candidates == [(0, 2), (1, 2)]
    everything = adjacency.exhaustive()
    assert len(everything) == 2 * 2
    for pair in [*everything, *adjacency.pairs()]:
        adjacency.check(pair)
    with pytest.raises(AdjacencyError, match="may not have private edges"):
        adjacency.check(Pair(matrix(4, (0, 1)), matrix(4)))
    with pytest.raises(AdjacencyError, match="differ in 2 edges"):
        adjacency.check(Pair(matrix(4, (0, 2), (1, 2)), matrix(4)))
    with pytest.raises(AdjacencyError, match="no pair"):
        PrivateEdgeDP(2, ((0, 1),))
    assert len(PrivateEdgeDP(4).exhaustive()) == len(Edges(4).exhaustive())


def test_states_are_found_by_their_children():
    for number, nested in enumerate(states(4).dendrograms):
        step = DendrogramStep(1.0, 4, steps=0, start=nested)
        law = step.distribution(matrix(4))
        assert law.floats.argmax() == number
        assert law.floats.sum() == 1
