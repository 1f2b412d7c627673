"""Randomised response, EdgeRand, graphs of users, LocalLap and LapGraph."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from auditdp.adjacency import Edges, NeighbourList, Pair, Relationship
from mechanisms.edges import (
    DPRR,
    Customised,
    EdgeRand,
    LapGraph,
    LapGraphNoisy,
    LocalLaplace,
    LocalLaplaceGraph,
    LocalLaplaceMessage,
    LocalLaplaceMessages,
    LocalLaplaceRow,
    NonPrivFull,
    NonPrivPart,
    PerUser,
    Publish,
    RandomisedResponse,
    RandomisedResponseGraph,
    Withhold,
    sparse,
)
from mechanisms.edges.laplace_cells import largest_cells, rounded_total
from mechanisms.edges.largest_law import (
    laplace_sum_tail,
    top_probability,
)
from mechanisms.edges.sparse import top_noise
from mechanisms.graphs import Graph, barabasi_albert
from mechanisms.neighbour_lists import PackedLists, id_type
from mechanisms.validation import rows_of
from tests.statistical.stated_laws import arcs, losses, outputs_of

approx = pytest.approx
parametrize = pytest.mark.parametrize

close = np.testing.assert_allclose
same = np.testing.assert_array_equal

RNG = np.random.default_rng
TAIL = Graph(4, arcs("01 02 12 23"))
TRIANGLE_AND_TAIL = TAIL.to_matrix()
LARGER = barabasi_albert(30, 2, RNG(0))


@parametrize(
    ("mechanism", "adjacency", "expected"),
    [
        (RandomisedResponse(3.0), NeighbourList(4), 3.0),
        (RandomisedResponseGraph(0.4, 3), Relationship(3), 0.8),
        (EdgeRand(0.4, 3), Edges(3), 0.4),
        (LocalLaplaceMessage(0.7), NeighbourList(4), 0.7),
        (LocalLaplaceMessage(0.7, user=3), NeighbourList(4), 0.07),
        (LocalLaplaceMessages(1.0, 4), Relationship(4), 1.1),
        (LapGraphNoisy(1.0, 4), Edges(4), 1.0),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_exact_loss_of_every_pair(mechanism, adjacency, expected):
    """An edge is in two lists; the last user sends the degree alone, with a tenth of ε."""
    found = [each.upper for each in losses(mechanism, adjacency)]
    assert found == approx([expected] * len(found), rel=1e-12)


def test_randomised_response_keeps_a_bit_with_probability_three_quarters():
    """For e^ε = 3."""
    law = RandomisedResponse(math.log(3)).distribution([1, 0])
    kept = (law.outcomes == [1, 0]).sum(axis=1)
    assert law.floats == approx(3.0**kept / 16)
    assert sum(law.probabilities) == 1


def another(graph):
    """The graph with the edge 0-3, or the list with its other last bit."""
    other = graph.copy()
    if other.ndim == 1:
        other[-1] ^= 1
    else:
        other[0, 3] = other[3, 0] = 1
    return other


@parametrize(
    ("mechanism", "data", "unit"),
    [
        (RandomisedResponse(0.7), np.array([1, 0, 1, 1]), 0.7),
        (EdgeRand(0.9, 4), TRIANGLE_AND_TAIL, 0.9),
        (PerUser(DPRR(0.3, 0.8), 4), TRIANGLE_AND_TAIL, 1),
        (LocalLaplaceMessage(0.8), np.array([1, 0, 1, 1]), 1),
        (LocalLaplaceMessages(0.8, 4), TRIANGLE_AND_TAIL, 1),
        (LapGraphNoisy(0.8, 4), TRIANGLE_AND_TAIL, 1),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_the_score_is_the_log_ratio_of_the_law(mechanism, data, unit):
    """In units of ε for randomised response of one list and for EdgeRand."""
    pair = Pair(data, another(data))
    outputs = outputs_of(mechanism, data, 50)
    first = mechanism.log_prob(outputs, pair.data)
    second = mechanism.log_prob(outputs, pair.neighbour)
    score = mechanism.score(outputs, pair)
    close(score * unit, first - second, atol=1e-9)


def test_users_offer_a_law_if_every_row_mechanism_states_one():
    def lawless(data, size, *, rng):
        return np.repeat(data[None], size, axis=0)

    stated = RandomisedResponse(1.0)
    assert hasattr(PerUser(stated, 3), "distribution")
    assert not hasattr(PerUser(lawless, 3), "distribution")
    assert not hasattr(Customised(lawless, 3, private=(0,)), "log_prob")
    assert not hasattr(Customised(stated, 3, private=(0,), others=lawless), "score")


def test_customised_protects_a_bit_of_a_private_list_but_not_an_edge():
    """The edge is also in a published row, at infinite cost."""
    mechanism = Customised(RandomisedResponse(0.5), 3, private=(0,))
    empty, own, edge = (np.zeros((3, 3), np.int8) for _ in range(3))
    own[0, 1] = edge[0, 1] = edge[1, 0] = 1
    for data, expected in ((own, 0.5), (edge, np.inf)):
        outcomes = mechanism.distribution(data).outcomes
        score = np.abs(mechanism.score(outcomes, Pair(data, empty)))
        close(score, expected)


def test_non_private_baselines():
    full = outputs_of(NonPrivFull(4), TRIANGLE_AND_TAIL, 2)
    assert (full == rows_of(TRIANGLE_AND_TAIL).ravel()).all()
    part = NonPrivPart(4, private=(0, 3))
    among = np.zeros((4, 4), np.int8)
    among[1, 2] = among[2, 1] = 1
    law = part.distribution(TRIANGLE_AND_TAIL)
    assert law.probabilities == [1]
    for rows in (law.outcomes, outputs_of(part, TRIANGLE_AND_TAIL, 1)):
        assert (rows == rows_of(among).ravel()).all()


@parametrize("mechanism", [NonPrivFull(30), NonPrivPart(30, tuple(range(0, 30, 2)))])
def test_baselines_of_whole_graphs_are_their_dense_form(mechanism):
    dense = outputs_of(mechanism, LARGER.to_matrix(), 1).reshape(30, 29)
    noisy = mechanism.whole_graph(LARGER, rng=RNG(0))
    same(rows_of(noisy.to_matrix()), dense)


@parametrize(
    "row",
    [
        RandomisedResponse(1.0),
        DPRR(0.5, 1.0),
        LocalLaplaceRow(1.0),
        Publish(),
        Withhold(),
    ],
    ids=lambda m: m.name,
)
def test_whole_graph_is_restricted_to_its_users(row):
    noisy = row.whole_graph(LARGER, rng=RNG(0), users=[3, 7])
    assert set(noisy.arcs[0]) <= {3, 7}


# LocalLap and LapGraph.


@given(st.floats(1e-6, 1e3), st.fractions(Fraction(1, 1000), Fraction(999, 1000)))
def test_split_budgets_stay_within_epsilon(epsilon, share):
    for split in (LocalLaplace(epsilon, share), LapGraphNoisy(epsilon, 3, share)):
        assert Fraction(split.epsilon1) + Fraction(split.epsilon2) <= Fraction(epsilon)
        assert split.epsilon1 == approx(epsilon * float(share))
    local = LocalLaplace(epsilon, share)
    scales = local.degree_scale, local.cell_scale
    assert sum(1 / Fraction(b) for b in scales) <= Fraction(epsilon)


def test_budgets_are_split_as_published():
    assert LocalLaplace(0.7).epsilon1 == approx(0.07)
    assert LapGraphNoisy(0.7, 3).epsilon1 == approx(0.007)


def test_a_later_user_sends_the_cells_after_their_own_place():
    """User 2 of 5 has a list of the places 0, 1, 3 and 4."""
    law = LocalLaplaceMessage(1.0, user=2).distribution([1, 0, 1, 0])
    assert law.location.tolist() == [2, 1, 0]
    assert law.scale == approx([10, 1 / 0.9, 1 / 0.9])


def test_largest_cells_and_totals():
    values = np.array(
        [
            [0.1, 3.0, 2.0],
            [5.0, -1.0, 0.0],
        ]
    )
    assert largest_cells(values, [2, 0]).tolist() == [
        [0, 1, 1],
        [0, 0, 0],
    ]
    assert rounded_total([-3.0, 1.4, 1.6, 99.0], 6).tolist() == [0, 1, 2, 6]


COMPLETE = Graph(6, np.array(np.triu_indices(6, 1)))


@parametrize("graph", [TAIL, COMPLETE], ids=["some cells", "all cells"])
def test_a_huge_budget_returns_the_graph(graph):
    """Noise of scale 1e-6 moves neither the count nor the order of the cells."""
    bits = graph.to_matrix()[np.triu_indices(graph.nodes, 1)]
    for kind in (LocalLaplaceGraph, LapGraph):
        mechanism = kind(1e8, graph.nodes)
        assert (outputs_of(mechanism, graph.to_matrix(), 20) == bits).all()
        noisy = mechanism.whole_graph(graph, rng=RNG(0))
        same(noisy.edges, graph.edges)
    row = LocalLaplaceRow(1e7)
    same(row.whole_graph(graph, rng=RNG(0)).arcs, graph.arcs)
    assert (outputs_of(row, bits, 20) == bits).all()


def test_top_noise_is_descending_in_every_row():
    values = top_noise([100, 3, 7], [5, 0, 7], 2.0, RNG(0))
    assert len(values) == 12
    assert (np.diff(values[:5]) < 0).all()
    assert (np.diff(values[5:]) < 0).all()


def test_top_noise_of_a_huge_population_keeps_its_digits():
    """The largest of 10^15 Laplace(1) variables lies near log(10^15/2) = 33.8.

    A survival from 1 − U would be noise.
    """
    values = top_noise(np.full(200, 10**15), np.ones(200, int), 1.0, RNG(0))
    median = math.log(10**15 / 2) - math.log(math.log(2))
    assert len(set(values)) == 200
    assert np.median(values) == approx(median, abs=0.5)


@parametrize(
    ("n", "expected"),
    [
        (1, math.exp(-1.5) / 2),
        (2, (2 + 1.5) * math.exp(-1.5) / 4),
    ],
)
def test_the_tail_of_one_and_of_two_laplace_variables(n, expected):
    found = laplace_sum_tail(Fraction(3, 2), n)
    assert float(found) == approx(expected, rel=1e-14)


@parametrize("n", [3, 5])
def test_the_tail_of_a_sum_is_that_of_its_characteristic_function(n):
    """1/2 − ∫ sin(xw)/(πw (1+w²)ⁿ) dw at x = 5/4."""

    def integrand(w):
        return 1.25 * np.sinc(1.25 * w / np.pi) / (1 + w * w) ** n

    between, _ = quad(integrand, 0, 60, limit=400)
    found = laplace_sum_tail(Fraction(5, 4), n)
    assert float(found) == approx(0.5 - between / math.pi, rel=1e-5)


def test_the_top_cell_of_two_is_the_closed_form():
    """P(1 + X > Y) for two Laplace variables of scale s is 1 - e^(-1/s) (2 + 1/s) / 4."""
    x = 1 / 0.8
    expected = 1 - math.exp(-x) * (2 + x) / 4
    found = top_probability(2, 1, 1, 0, 0.8)
    assert float(found) == approx(expected, rel=1e-13)


# Neighbour lists in little memory.

GRAPHS = [
    Graph(5, arcs("01 04 13 34")),
    Graph(4, np.empty((2, 0), int)),
    barabasi_albert(60, 3, RNG(0)),
]


@parametrize("graph", GRAPHS)
def test_lists_hold_the_arcs_of_the_graph(graph):
    lists = PackedLists.of(graph)
    same(lists.graph.arcs, graph.arcs)
    same(lists.sizes, graph.degrees)
    assert lists.targets.dtype == np.int32


def test_lists_of_a_directed_graph():
    lists = PackedLists([0, 2, 2, 3], np.array([1, 2, 0], np.int32))
    again = PackedLists.of(lists.graph)
    assert again.starts.tolist() == [0, 2, 2, 3]
    assert again.targets.tolist() == [1, 2, 0]


@parametrize("users", [[0, 1, 2, 3, 4], [1, 4], []])
def test_cells_are_those_of_the_rows(users):
    users = np.array(users, np.int64)
    expected = sparse.row_cells(GRAPHS[0], users)
    same(PackedLists.of(GRAPHS[0]).cells(users), expected)


def test_ids_have_four_bytes_if_they_fit():
    assert id_type(2**31 - 1) is np.int32
    assert id_type(2**31) is np.int64


@parametrize("users", [None, [3, 17, 40, 59]])
def test_without_noise_the_lists_come_back_from_all_blocks(monkeypatch, users):
    monkeypatch.setattr(sparse, "BLOCK", 7)
    graph = GRAPHS[2]
    noisy = DPRR(1e6, 60.0).whole_graph(graph, rng=RNG(1), users=users)
    kept = np.isin(graph.arcs[0], range(60) if users is None else users)
    same(noisy.arcs, graph.arcs[:, kept])
