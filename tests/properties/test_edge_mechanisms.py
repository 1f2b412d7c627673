"""What holds for every input: ranges, laws that sum to one, equivariance, monotone budgets, valid graphs."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from auditdp.adjacency import NeighbourList
from auditdp.mechanism.laws import precision
from mechanisms.cells import (
    arc_cells,
    arcs_at,
    distinct_cells,
    pair_cells,
    pair_count,
    pairs_at,
)
from mechanisms.edges import (
    DPRR,
    EdgeRand,
    LapGraph,
    LapGraphNoisy,
    LocalLaplace,
    LocalLaplaceGraph,
    LocalLaplaceRow,
    RandomisedResponse,
    RandomisedResponseGraph,
)
from mechanisms.graphs import Graph
from mechanisms.rounding import keep_probability, laplace_scale, portion, remaining


def in_order(numbers):
    """Return what draws two numbers, the smaller one first."""
    return st.tuples(numbers, numbers).map(sorted)


budgets = st.floats(1e-3, 8.0)
seeds = st.integers(0, 2**32 - 1)
lists = st.lists(st.integers(0, 1), min_size=1, max_size=8).map(
    lambda bits: np.array(bits, np.int8)
)
row_mechanisms = st.one_of(
    st.builds(RandomisedResponse, budgets),
    st.builds(DPRR, budgets, budgets, st.booleans()),
)


@st.composite
def graphs(draw, least=2, most=9):
    nodes = draw(st.integers(least, most))
    present = draw(
        st.lists(st.booleans(), min_size=pair_count(nodes), max_size=pair_count(nodes))
    )
    return Graph(nodes, pairs_at(np.flatnonzero(present), nodes))


@given(
    st.one_of(row_mechanisms, st.builds(LocalLaplaceRow, budgets)),
    lists,
    st.integers(0, 5),
    seeds,
)
def test_noisy_lists_are_bits_of_the_same_length(mechanism, data, size, seed):
    outputs = mechanism(data, size, rng=np.random.default_rng(seed))
    assert outputs.dtype == np.int8
    assert outputs.shape == (size, len(data))
    assert np.isin(outputs, (0, 1)).all()


@given(
    st.sampled_from([EdgeRand, LapGraph, LocalLaplaceGraph, RandomisedResponseGraph]),
    budgets,
    graphs(most=6),
    seeds,
)
def test_noisy_graphs_are_bits_of_the_stated_shape(factory, epsilon, graph, seed):
    outputs = factory(epsilon, graph.nodes)(
        graph.to_matrix(), 3, rng=np.random.default_rng(seed)
    )
    cells = pair_count(graph.nodes) * (2 if factory is RandomisedResponseGraph else 1)
    assert outputs.dtype == np.int8
    assert outputs.shape == (3, cells)
    assert np.isin(outputs, (0, 1)).all()


@given(row_mechanisms, lists)
def test_laws_sum_to_one(mechanism, data):
    law = mechanism.distribution(data)
    with precision():
        assert sum(law.balls).contains(1)
    np.testing.assert_allclose(
        mechanism.log_prob(law.outcomes, data), law.log_prob(law.outcomes), atol=1e-10
    )


@given(row_mechanisms, lists, st.randoms(use_true_random=False))
def test_renaming_the_other_nodes_renames_the_output(mechanism, data, random):
    order = list(range(len(data)))
    random.shuffle(order)
    outcomes = mechanism.distribution(data).outcomes
    np.testing.assert_allclose(
        mechanism.log_prob(outcomes[:, order], data[order]),
        mechanism.log_prob(outcomes, data),
        atol=1e-12,
    )


@given(st.data(), st.integers(2, 30), budgets, budgets, st.booleans())
def test_no_class_of_any_pair_exceeds_the_claim_of_dprr(
    data, nodes, epsilon1, epsilon2, clip
):
    pair = data.draw(NeighbourList(nodes).strategy())
    mechanism = DPRR(epsilon1, epsilon2, clip)
    outputs = np.array(
        data.draw(st.lists(st.integers(0, 1), min_size=nodes - 1, max_size=nodes - 1))
    )
    table = mechanism.log_ratio_table(
        nodes - 1, min(int(pair.data.sum()), int(pair.neighbour.sum()))
    )
    assert np.abs(table).max() <= epsilon1 + epsilon2 + 1e-9
    assert abs(mechanism.score(outputs[None], pair)[0]) <= np.abs(table).max() + 1e-9


@given(in_order(st.floats(0, 50)))
def test_more_budget_keeps_more(two):
    a, b = two
    assert 0.5 <= keep_probability(a) <= keep_probability(b) < 1


@given(in_order(st.floats(1e-3, 50)))
def test_more_budget_means_less_noise(two):
    a, b = two
    assert laplace_scale(1, a) >= laplace_scale(1, b) > 0


@given(st.data(), st.integers(1, 15), in_order(st.floats(0.05, 3)))
def test_more_budget_keeps_more_of_a_degree(data, bits, two):
    """The mean sampling rate grows with d, and the loss of any pair of lists with ε₂."""
    (a, b), degree = two, data.draw(st.integers(0, bits - 1))
    low, high = (
        np.abs(DPRR(0.5, e).log_ratio_table(bits, degree)).max() for e in (a, b)
    )
    assert low <= high + 1e-9
    assert (
        DPRR(0.5, a).law(bits, degree).rate_moments[0]
        <= DPRR(0.5, a).law(bits, degree + 1).rate_moments[0] + 1e-12
    )


@given(st.floats(1e-6, 1e3), st.lists(st.floats(1e-9, 1e3), max_size=4))
def test_split_budgets_never_exceed_the_whole(epsilon, spent):
    whole = Fraction(epsilon) - sum(map(Fraction, spent), Fraction(0))
    assume(whole > 0)
    left = remaining(epsilon, *spent)
    assert Fraction(left) <= whole < Fraction(np.nextafter(left, np.inf))


@given(st.floats(1e-6, 1e3), st.fractions(Fraction(1, 1000), Fraction(999, 1000)))
def test_every_split_mechanism_stays_within_epsilon(epsilon, share):
    assert Fraction(portion(epsilon, share)) <= share * Fraction(epsilon)
    for split in (LocalLaplace(epsilon, share), LapGraphNoisy(epsilon, 3, share)):
        assert Fraction(split.epsilon1) + Fraction(split.epsilon2) <= Fraction(epsilon)
    scales = (
        LocalLaplace(epsilon, share).degree_scale,
        LocalLaplace(epsilon, share).cell_scale,
    )
    assert sum(1 / Fraction(b) for b in scales) <= Fraction(epsilon)


@given(st.floats(0.01, 5), st.integers(2, 10**6))
def test_the_repaired_allocation_of_dprr_stays_within_epsilon(epsilon, n_max):
    assume(8 / (n_max - 1) < (0.999 * epsilon) ** 2)
    repaired = DPRR.allocated_within(epsilon, n_max)
    assert Fraction(repaired.epsilon1) + Fraction(repaired.epsilon2) <= Fraction(
        epsilon
    )


@given(graphs(least=1, most=12))
def test_graphs_survive_the_matrix(graph):
    matrix = graph.to_matrix()
    np.testing.assert_array_equal(Graph.from_matrix(matrix).edges, graph.edges)
    np.testing.assert_array_equal(matrix.sum(axis=1), graph.degrees)
    np.testing.assert_array_equal(np.stack(np.nonzero(matrix)), graph.arcs)


@given(graphs(most=12))
def test_cells_are_numbers_of_edges_and_arcs(graph):
    np.testing.assert_array_equal(
        pairs_at(pair_cells(graph.edges, graph.nodes), graph.nodes), graph.edges
    )
    np.testing.assert_array_equal(
        arcs_at(arc_cells(graph.arcs, graph.nodes), graph.nodes), graph.arcs
    )


@given(graphs(), budgets, seeds)
def test_sparse_samplers_return_valid_graphs(graph, epsilon, seed):
    """The constructors of Graph and DirectedGraph check order, range, loops and repetitions."""
    rng = np.random.default_rng(seed)
    for mechanism in (EdgeRand(epsilon, graph.nodes), LapGraph(epsilon, graph.nodes)):
        assert mechanism.whole_graph(graph, rng=rng).nodes == graph.nodes
    for mechanism in (
        RandomisedResponse(epsilon),
        DPRR(epsilon, epsilon),
        LocalLaplaceRow(epsilon),
    ):
        assert mechanism.whole_graph(graph, rng=rng).nodes == graph.nodes


@given(st.data(), st.integers(1, 12), seeds)
def test_distinct_cells_are_distinct_free_and_as_many_as_asked(data, capacity, seed):
    taken = np.array(
        sorted(data.draw(st.sets(st.integers(0, 3 * capacity - 1)))), np.int64
    )
    free = capacity - np.bincount(taken // capacity, minlength=3)
    sizes = np.array([data.draw(st.integers(0, int(n))) for n in free])
    keys = distinct_cells(sizes, capacity, np.random.default_rng(seed), taken=taken)
    assert len(np.unique(keys)) == len(keys)
    assert not np.isin(keys, taken).any()
    np.testing.assert_array_equal(np.bincount(keys // capacity, minlength=3), sizes)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_edge_rand_treats_all_pairs_alike(epsilon):
    """Relabelling the nodes permutes the law."""
    graph, order = Graph(4, np.array([[0, 0, 2], [1, 2, 3]])), np.array([2, 0, 3, 1])
    matrix, mechanism = graph.to_matrix(), EdgeRand(epsilon, 4)
    upper = np.triu_indices(4, 1)
    outputs = mechanism.distribution(matrix).outcomes
    full = np.zeros((len(outputs), 4, 4), np.int8)
    full[:, upper[0], upper[1]] = outputs
    full += full.transpose(0, 2, 1)
    renamed = full[:, order][:, :, order][:, upper[0], upper[1]]
    np.testing.assert_allclose(
        mechanism.log_prob(renamed, matrix[np.ix_(order, order)]),
        mechanism.log_prob(outputs, matrix),
        atol=1e-12,
    )
