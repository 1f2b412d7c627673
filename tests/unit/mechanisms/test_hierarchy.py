"""Exact laws of the dendrogram step and of the released graph.

Closed forms, and the claims.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditdp import Edges, Pair, PureDP
from auditdp.errors import AdjacencyError
from auditdp.evidence.exact import exact_evidence
from mechanisms.graphs import Graph
from mechanisms.hierarchy import (
    DendrogramStep,
    EdgeRR,
    NoisyCounts,
    PrivateEdgeDP,
    PrivHRG,
    Thresholds,
)
from mechanisms.hierarchy.dendrogram import Dendrogram, Layer, balanced, uniform
from mechanisms.hierarchy.exact_chain import states
from mechanisms.hierarchy.noisy_probabilities import (
    DRAWS,
    drawn_probability,
    noisy_counts,
)
from tests.statistical.stated_laws import NEVER, losses, matrix, outputs_of

approx = pytest.approx
parametrize = pytest.mark.parametrize

RNG = np.random.default_rng
WEDGE = ((0, 1), (0, 2))
LADDER = ((((0, 1), 2), 3), 4)


def epsilon_of(mechanism, adjacency):
    """The exact loss over all pairs."""
    found = exact_evidence(mechanism, PureDP(1.0), adjacency)
    assert "all" in found.statement or "only" in found.statement
    if found.epsilon_lower < math.inf:
        assert found.epsilon_lower == approx(found.epsilon_upper, rel=1e-12)
    return found.epsilon_lower


def law_by_tree(mechanism, data):
    """Probabilities of the dendrograms over 0, 1, 2 that join 0-1, 0-2 and 1-2 first."""
    law = mechanism.distribution(data)
    found = [0.0] * 3
    for sizes, p in zip(law.outcomes.tolist(), law.floats, strict=True):
        found[sizes.index(2)] = p
    return found


of_three_nodes = parametrize("epsilon", [0.2, 1.0, 5.0])


@of_three_nodes
def test_the_stationary_law_of_three_nodes(epsilon):
    """Δ = 2 log 2, and an edge that is not joined first costs 2 log 2.

    Weights 1, w, w with w = e^(−ε/2).
    """
    weights = np.exp([0, -epsilon / 2, -epsilon / 2])
    law = law_by_tree(DendrogramStep(epsilon, 3), matrix(3, "01"))
    assert law == approx(weights / weights.sum(), rel=1e-12)


@of_three_nodes
@parametrize("steps", [0, 1, 2, 11])
def test_the_law_after_t_steps_of_three_nodes(epsilon, steps):
    """From the tree that joins the edge.

    P_t = π + (1 − π)(1/2 − w)^t with π = (1/2)/(1/2 + w).

    That tree is left with probability w, and reached from either other one with
    probability 1/2.
    """
    w = math.exp(-epsilon / 2)
    stationary = 0.5 / (0.5 + w)
    best = stationary + (1 - stationary) * (0.5 - w) ** steps
    step = DendrogramStep(epsilon, 3, steps=steps, start=((0, 1), 2))
    law = law_by_tree(step, matrix(3, "01"))
    rest = (1 - best) / 2
    assert law == approx([best, rest, rest], rel=1e-9, abs=1e-15)


@pytest.mark.dear
@parametrize(
    ("readings", "epsilon", "ratio"),
    [
        ({}, 1.0, 0.470638009),
        ({}, 40.0, 0.697360812),
        ({"factor": 1}, 5.0, 1.159378157),
        ({"factor": 1, "equation": "15"}, 0.5, 1.260636808),
        ({"steps": 2}, 1.0, 0.798480505),
        ({"steps": 2, "start": (((0, 1), 2), 3)}, 1.0, 0.963771),
        ({"steps": 1, "start": "uniform"}, 1.0, 0.294908),
    ],
)
def test_the_exact_epsilon_of_four_nodes(readings, epsilon, ratio):
    """Figures of an independent enumeration in floating point, as multiples of the claimed ε."""
    found = epsilon_of(DendrogramStep(epsilon, 4, **readings), Edges(4))
    assert found / epsilon == approx(ratio, rel=1e-5)


@parametrize("nodes", [3, 4])
def test_one_step_from_a_public_start_has_no_finite_loss(nodes):
    """If every move is accepted for certain, the start cannot be kept.

    If one may be refused, it can.
    """
    assert epsilon_of(DendrogramStep(1.0, nodes, steps=1), Edges(nodes)) == math.inf


@parametrize("scale", [0.3, 1.0, 4.0])
def test_the_unit_of_a_released_bit(scale):
    """One pair with noise of scale s is released with probability 1/2 ± (1 − s(1 − e^(−1/s)))/2."""
    half = (1 - scale * (1 - math.exp(-1 / scale))) / 2
    for edges, sign in ((1, 1), (0, -1)):
        found = drawn_probability(1, 0, edges, 1, scale)
        assert float(found) == approx(0.5 + sign * half, rel=1e-12)
    total = 0
    for k in range(6):
        total += math.comb(5, k) * drawn_probability(k, 5 - k, 2, 7, scale)
    assert bool(total.contains(1))


def counts_of(nested, thresholds, members=range(5)):
    return noisy_counts(Dendrogram.of(nested, [Layer([], members)]), thresholds)


@parametrize(
    ("draws", "pairs"),
    [
        ("one", [10]),
        ("fresh", [10] * 4),
        ("nested", [10, 6, 3, 1]),
    ],
)
def test_pooled_counts_by_reading(draws, pairs):
    found = counts_of(LADDER, Thresholds(1.0, draws=draws))
    assert sorted((count.pairs for count in found), reverse=True) == pairs


@parametrize(
    ("sides", "pooled"),
    [
        ((4, 5), True),
        ((3, 7), False),
        ((1, 13), True),
        ((1, 14), False),
        ((0, 5), True),
    ],
)
def test_the_printed_thresholds(sides, pooled):
    """ε₂ = 1: a root with 4 against 5 leaves has 20 pairs across (1/20 >= .05) and 36 below (1/36 >= .01): pooled."""
    assert Thresholds(1.0).pools(*sides) is pooled


@parametrize(
    ("leaves", "pairs"),
    [
        (9, [36]),
        (16, [64, 28, 28]),
    ],
)
def test_pairs_of_balanced_dendrograms_are_pooled_by_the_thresholds(leaves, pairs):
    tree = Dendrogram(balanced(leaves), [Layer([], range(leaves))])
    assert [count.pairs for count in noisy_counts(tree, Thresholds(1.0))] == pairs


@parametrize("readings", [{}, NEVER, {"draws": "fresh"}])
def test_nodes_without_private_nodes_on_both_sides_need_no_noise(readings):
    thresholds = Thresholds(1.0, **readings)
    found = counts_of(LADDER, thresholds, members=[0, 4])
    assert [(count.drawn, count.pairs) for count in found] == [((8,), 1)]
    assert counts_of(LADDER, thresholds, members=[2]) == []


@parametrize(
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
def test_the_cost_of_noisy_counts_of_a_ladder_of_four(draws, thresholds, uses):
    """One draw: ε₂. Fresh draws: one for each internal node.

    Nested ones: one for each ancestor.
    """
    counts = Thresholds(0.7, draws=draws, **thresholds)
    mechanism = NoisyCounts((((0, 1), 2), 3), counts)
    largest = max(each.upper for each in losses(mechanism, Edges(4)))
    assert uses * 0.7 * (1 - 1e-12) <= largest <= uses * 0.7


@pytest.mark.dear
@parametrize(
    ("mechanism", "adjacency", "claimed", "holds"),
    [
        (PrivHRG(0.5, 0.5, 4), Edges(4), 1.0, True),
        (PrivHRG(0.5, 0.5, 4, **NEVER), Edges(4), 1.0, True),
        (PrivHRG(0.1, 0.01, 4, steps=3, **NEVER), Edges(4), 0.11, False),
        (
            PrivHRG(0.1, 0.001, 3, moves="joint", public=WEDGE, **NEVER),
            PrivateEdgeDP(3, WEDGE),
            0.101,
            True,
        ),
        (PrivHRG(0.1, 0.9, 3, draws="nested"), Edges(3), 1.0, False),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_which_claims_of_the_released_graph_hold(mechanism, adjacency, claimed, holds):
    found = epsilon_of(mechanism, adjacency)
    assert (found <= claimed) == holds
    assert found != math.inf


def test_private_nodes_from_the_data_give_an_edge_away():
    """A pair may become an edge if it is private, and without a private edge no pair is."""
    mechanism = EdgeRR(0.5, 0.5, 2, steps=3)
    assert epsilon_of(mechanism, Edges(2)) == math.inf
    assert not outputs_of(mechanism, matrix(2), 50).any()
    assert outputs_of(mechanism, matrix(2, "01"), 50).any()


def test_public_pairs_outside_the_private_nodes_are_copied():
    """0-1 is copied, 0-2 and 0-3 are absent, and all pairs of private nodes are drawn."""
    mechanism = PrivHRG(0.5, 0.5, 4, private_nodes=(1, 2, 3), public=((0, 1), (1, 2)))
    data = matrix(4, "23")
    outputs = outputs_of(mechanism, data, 200)
    assert (outputs[:, :3] == [1, 0, 0]).all()
    assert len(np.unique(outputs, axis=0)) == 8
    assert len(mechanism.distribution(data).outcomes) == 8
    noisy = mechanism.whole_graph(Graph.from_matrix(data), rng=RNG(1))
    assert noisy.to_matrix()[0].tolist() == [0, 1, 0, 0]


def test_a_graph_that_the_dendrogram_explains_is_returned_without_noise():
    """Two cliques below a root without edges across: every probability is 0 or 1."""
    cliques = matrix(5, "01", "02", "12", "34")
    start = (((0, 1), 2), (3, 4))
    mechanism = PrivHRG(1.0, 1e9, 5, steps=0, start=start)
    bits = outputs_of(mechanism, cliques, 30)
    assert (bits == cliques[np.triu_indices(5, 1)]).all()
    noisy = mechanism.whole_graph(Graph.from_matrix(cliques), rng=RNG(0))
    np.testing.assert_array_equal(noisy.to_matrix(), cliques)


def test_neighbours_differ_in_one_private_edge():
    adjacency = PrivateEdgeDP(4, ((0, 1),), (0, 1, 2))
    assert adjacency.candidates == [(0, 2), (1, 2)]
    everything = adjacency.exhaustive()
    assert len(everything) == 2 * 2
    for pair in [*everything, *adjacency.pairs()]:
        adjacency.check(pair)
    assert len(PrivateEdgeDP(4).exhaustive()) == len(Edges(4).exhaustive())


def test_other_pairs_are_refused():
    adjacency = PrivateEdgeDP(4, ((0, 1),), (0, 1, 2))
    refused = {
        "may not have private edges": [(0, 1)],
        "differ in 2 edges": [(0, 2), (1, 2)],
    }
    for message, edges in refused.items():
        with pytest.raises(AdjacencyError, match=message):
            adjacency.check(Pair(matrix(4, *edges), matrix(4)))


def test_an_adjacency_without_a_pair_is_refused():
    with pytest.raises(AdjacencyError, match="no pair"):
        PrivateEdgeDP(2, ((0, 1),))


def test_states_are_found_by_their_children():
    for number, nested in enumerate(states(4).dendrograms):
        law = DendrogramStep(1.0, 4, steps=0, start=nested).distribution(matrix(4))
        assert law.floats.argmax() == number
        assert law.floats.sum() == 1


@given(
    st.integers(2, 12),
    st.integers(0, 2**32),
    st.floats(0.05, 20),
    st.sampled_from(DRAWS),
    st.sampled_from([{}, NEVER]),
    st.data(),
)
def test_every_pair_is_drawn_once_and_every_edge_is_counted(
    nodes, seed, epsilon, draws, pooling, data
):
    """With one draw every edge is counted once."""
    members = data.draw(st.sets(st.integers(0, nodes - 1)))
    pairs = [(i, j) for i in members for j in members if i < j]
    edges = [pair for pair in pairs if data.draw(st.booleans())]
    layers = [Layer(edges, sorted(members))]
    tree = Dendrogram(uniform(nodes, RNG(seed)), layers)
    found = noisy_counts(tree, Thresholds(epsilon, draws=draws, **pooling))
    drawn = [node for count in found for node in count.drawn]
    assert len(drawn) == len(set(drawn))
    assert sum(tree.counts(0, node)[1] for node in drawn) == len(pairs)
    assert all(0 <= count.value(tree) <= count.pairs for count in found)
    most = 1 if draws == "one" else len(members) - 1
    counted = [node for count in found for node in count.counted]
    for edge in edges:
        assert 1 <= sum(edge in tree.across[0][node] for node in counted) <= most
