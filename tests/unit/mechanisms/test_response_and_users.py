"""Randomised response, EdgeRand, and graphs of users who each do as they like."""

import math
from fractions import Fraction

import numpy as np
import pytest

from auditdp.adjacency import Edges, NeighbourList, Pair, Relationship
from auditdp.errors import MechanismError
from auditdp.mechanism.laws import precision
from mechanisms.edges import (
    DPRR,
    Customised,
    EdgeRand,
    LocalLaplaceRow,
    NonPrivFull,
    NonPrivPart,
    PerUser,
    Publish,
    RandomisedResponse,
    RandomisedResponseGraph,
    Withhold,
)
from mechanisms.graphs import Graph, barabasi_albert
from mechanisms.validation import all_bits, rows_of

RNG = np.random.default_rng
LN3 = math.log(3)
TRIANGLE_AND_TAIL = Graph(4, np.array([[0, 0, 1, 2], [1, 2, 2, 3]])).to_matrix()


def loss(mechanism, pair):
    a, b = mechanism.distribution(pair.data), mechanism.distribution(pair.neighbour)
    return max(
        abs(math.log(x / y))
        for x, y in zip(a.probabilities, b.probabilities, strict=True)
    )


def test_randomised_response_known_law():
    """e^ε = 3 keeps a bit with probability 3/4, so (1, 0) becomes (0, 0) with probability 1/4 · 3/4."""
    law = RandomisedResponse(LN3).distribution(np.array([1, 0]))
    assert all(isinstance(p, Fraction) for p in law.probabilities)
    assert sum(law.probabilities) == 1
    by_output = dict(zip(map(tuple, law.outcomes.tolist()), law.floats, strict=True))
    assert by_output == pytest.approx(
        {(1, 0): 9 / 16, (0, 0): 3 / 16, (1, 1): 3 / 16, (0, 1): 1 / 16}
    )


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_randomised_response_spends_at_most_epsilon(epsilon):
    mechanism = RandomisedResponse(epsilon)
    p = Fraction(mechanism.keep)
    assert math.log(p / (1 - p)) == pytest.approx(epsilon, rel=1e-12)
    for pair in NeighbourList(4).exhaustive():
        assert loss(mechanism, pair) == pytest.approx(epsilon, rel=1e-12)


@pytest.mark.parametrize(
    ("mechanism", "pairs", "outcomes"),
    [(RandomisedResponse(0.7), NeighbourList(6), 32), (EdgeRand(0.9, 4), Edges(4), 64)],
)
def test_log_prob_and_score_agree_with_the_law(mechanism, pairs, outcomes):
    pair = pairs.pairs()[1]
    law, other = (
        mechanism.distribution(pair.data),
        mechanism.distribution(pair.neighbour),
    )
    assert len(law.outcomes) == outcomes
    np.testing.assert_allclose(
        mechanism.log_prob(law.outcomes, pair.data),
        law.log_prob(law.outcomes),
        atol=1e-13,
    )
    ratio = law.log_prob(law.outcomes) - other.log_prob(law.outcomes)
    np.testing.assert_allclose(
        mechanism.score(law.outcomes, pair) * mechanism.epsilon, ratio, atol=1e-13
    )


def test_long_lists_have_no_enumerated_law():
    with pytest.raises(MechanismError, match="at most 16 bits"):
        RandomisedResponse(1.0).distribution(np.zeros(17, np.int8))


@pytest.mark.parametrize(
    "data", [np.array([]), np.zeros((2, 2)), np.array([0, 3]), np.array([np.nan, 1])]
)
def test_what_is_not_a_neighbour_list_is_refused(data):
    with pytest.raises(MechanismError, match="neighbour list"):
        RandomisedResponse(1.0)(data, 1, rng=RNG(0))


@pytest.mark.parametrize(
    "factory", [RandomisedResponse, lambda e: EdgeRand(e, 3), LocalLaplaceRow]
)
@pytest.mark.parametrize("epsilon", [0.0, -1, math.inf])
def test_bad_budgets_are_refused(factory, epsilon):
    with pytest.raises(MechanismError, match="epsilon, a finite number > 0"):
        factory(epsilon)


@pytest.mark.parametrize(
    ("mechanism", "pairs", "total"),
    [
        (RandomisedResponseGraph(0.4, 3), Relationship(3), 0.8),
        (EdgeRand(0.4, 3), Edges(3), 0.4),
    ],
)
def test_proposition_1_an_undirected_edge_costs_twice_the_budget_in_lists_and_once_in_edge_rand(
    mechanism, pairs, total
):
    assert [loss(mechanism, pair) for pair in pairs.exhaustive()] == pytest.approx(
        [total] * 12, rel=1e-12
    )


def test_edge_rand_is_the_fair_coin_of_its_source():
    e = math.exp(1.3)
    coin = 2 / (e + 1)
    law = EdgeRand(1.3, 2).distribution(np.array([[0, 1], [1, 0]]))
    np.testing.assert_allclose(
        law.floats[law.outcomes[:, 0] == 1], (1 - coin) + coin / 2
    )


def test_edge_rand_takes_graphs_of_its_size():
    with pytest.raises(MechanismError, match="shape"):
        EdgeRand(0.9, 4)(np.zeros((3, 3)), 1, rng=RNG(0))


@pytest.mark.parametrize(
    "row", [RandomisedResponse(0.8), DPRR(0.3, 0.8), DPRR(0.3, 0.8, clip_degree=False)]
)
def test_the_law_of_all_users_is_the_product_of_rows(row):
    mechanism = PerUser(row, 4)
    law = mechanism.distribution(TRIANGLE_AND_TAIL)
    assert law.outcomes.shape == (4096, 12)
    with precision():
        total = sum(law.balls)
        assert total.contains(1)
    np.testing.assert_allclose(
        mechanism.log_prob(law.outcomes, TRIANGLE_AND_TAIL),
        law.log_prob(law.outcomes),
        atol=1e-10,
    )
    other = TRIANGLE_AND_TAIL.copy()
    other[0, 3] = other[3, 0] = 1
    ratio = law.log_prob(law.outcomes) - mechanism.distribution(other).log_prob(
        law.outcomes
    )
    np.testing.assert_allclose(
        mechanism.score(law.outcomes, Pair(TRIANGLE_AND_TAIL, other)), ratio, atol=1e-10
    )


def test_users_offer_a_law_where_every_row_mechanism_states_one_and_refuse_too_many():
    def lawless(data, size, *, rng):
        return np.repeat(data[None], size, axis=0)

    assert hasattr(PerUser(RandomisedResponse(1.0), 3), "distribution")
    assert not hasattr(PerUser(lawless, 3), "distribution")
    assert not hasattr(Customised(lawless, 3, private=(0,)), "log_prob")
    assert not hasattr(
        Customised(RandomisedResponse(1.0), 3, private=(0,), others=lawless), "score"
    )
    with pytest.raises(MechanismError, match="outcomes, at most"):
        RandomisedResponseGraph(1.0, 5).distribution(np.zeros((5, 5)))
    with pytest.raises(MechanismError, match="expected a graph of 4 nodes"):
        RandomisedResponseGraph(1.0, 4).whole_graph(
            Graph(3, np.empty((2, 0), int)), rng=RNG(0)
        )


def test_customised_publishes_the_lists_of_those_who_agree():
    mechanism = Customised(RandomisedResponse(1.0), 4, private=(2,))
    outputs = mechanism(TRIANGLE_AND_TAIL, 200, rng=RNG(0)).reshape(200, 4, 3)
    rows = rows_of(TRIANGLE_AND_TAIL)
    assert (outputs[:, [0, 1, 3]] == rows[[0, 1, 3]]).all()
    assert (outputs[:, 2] != rows[2]).any()
    law = mechanism.distribution(TRIANGLE_AND_TAIL)
    assert len(law.outcomes) == 8
    np.testing.assert_allclose(
        mechanism.log_prob(law.outcomes, TRIANGLE_AND_TAIL), law.log_prob(law.outcomes)
    )
    wrong = law.outcomes.copy()
    wrong[:, 0] ^= 1
    assert (mechanism.log_prob(wrong, TRIANGLE_AND_TAIL) == -np.inf).all()


def test_customised_protects_a_bit_of_a_private_list_but_not_an_edge():
    """One bit of the private row costs ε; the undirected edge is also in a published row, at infinite cost."""
    mechanism = Customised(RandomisedResponse(0.5), 3, private=(0,))
    empty = np.zeros((3, 3), np.int8)
    own, edge = empty.copy(), empty.copy()
    own[0, 1] = 1
    edge[0, 1] = edge[1, 0] = 1
    outcomes = mechanism.distribution(own).outcomes
    np.testing.assert_allclose(np.abs(mechanism.score(outcomes, Pair(own, empty))), 0.5)
    assert (
        mechanism.score(mechanism.distribution(edge).outcomes, Pair(edge, empty))
        == np.inf
    ).all()


def test_non_private_baselines():
    full, part = NonPrivFull(4), NonPrivPart(4, private=(0, 3))
    rows = rows_of(TRIANGLE_AND_TAIL)
    np.testing.assert_array_equal(
        full(TRIANGLE_AND_TAIL, 2, rng=RNG(0)), np.tile(rows.ravel(), (2, 1))
    )
    (released,) = part(TRIANGLE_AND_TAIL, 1, rng=RNG(0)).reshape(1, 4, 3)
    among = TRIANGLE_AND_TAIL * np.outer([0, 1, 1, 0], [0, 1, 1, 0])
    assert among.sum() == 2
    np.testing.assert_array_equal(released, rows_of(among))
    assert part.distribution(TRIANGLE_AND_TAIL).probabilities == [1]
    assert (part.name, full.name) == (
        "NonPriv-Part, 2 of 4 users private",
        "Publish by each of 4 users",
    )


@pytest.mark.parametrize(
    "mechanism", [NonPrivFull(30), NonPrivPart(30, tuple(range(0, 30, 2)))]
)
def test_baselines_of_whole_graphs_are_their_dense_form(mechanism):
    graph = barabasi_albert(30, 2, RNG(0))
    dense = mechanism(graph.to_matrix(), 1, rng=RNG(0)).reshape(30, 29)
    np.testing.assert_array_equal(
        rows_of(mechanism.whole_graph(graph, rng=RNG(0)).to_matrix()), dense
    )


def test_customised_whole_graph_keeps_the_published_rows():
    graph = barabasi_albert(30, 2, RNG(0))
    noisy = (
        Customised(DPRR(0.5, 1.0), 30, private=tuple(range(10)))
        .whole_graph(graph, rng=RNG(0))
        .to_matrix()
    )
    np.testing.assert_array_equal(noisy[10:], graph.to_matrix()[10:])
    assert (noisy[:10] != graph.to_matrix()[:10]).any()


@pytest.mark.parametrize(
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
    graph = barabasi_albert(30, 2, RNG(0))
    assert set(row.whole_graph(graph, rng=RNG(0), users=[3, 7]).arcs[0]) <= {3, 7}
    with pytest.raises(MechanismError, match="user ids from 0 to 29"):
        row.whole_graph(graph, rng=RNG(0), users=[30])


def test_private_ids_are_checked():
    with pytest.raises(MechanismError, match="private ids from 0 to 3"):
        Customised(RandomisedResponse(1.0), 4, private=(4,))


def test_all_bits_lists_every_list_once():
    assert len(np.unique(all_bits(5), axis=0)) == 32
