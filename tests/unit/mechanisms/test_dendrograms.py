"""Dendrograms: their number, the moves between them, incremental counts, and the sensitivity of the likelihood."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditdp.adjacency import Edges
from mechanisms.hierarchy import DendrogramStep
from mechanisms.hierarchy.dendrogram import (
    Dendrogram,
    Layer,
    balanced,
    uniform,
)
from mechanisms.hierarchy.exact_chain import met, states
from mechanisms.hierarchy.likelihood import (
    acceptance_rate,
    exact_term,
    most_pairs,
    sensitivity,
    term,
)

approx = pytest.approx
parametrize = pytest.mark.parametrize

RNG = np.random.default_rng


@parametrize("leaves", [3, 4, 5])
def test_a_move_is_proposed_as_often_as_its_reverse(leaves):
    """This makes the target of the acceptance the stationary law; all dendrograms are reached."""
    moves = states(leaves).moves
    count = len(moves)
    steps = np.zeros((count, count), int)
    for here, row in enumerate(moves):
        np.add.at(steps[here], row, 1)
    assert (steps == steps.T).all()
    assert not steps.diagonal().any()
    assert np.linalg.matrix_power(steps + np.eye(count), count).all()


def test_counts_of_a_dendrogram_that_is_worked_out_by_hand():
    """((0, 1), (2, 3)) with edges 0-1, 0-2 and 1-3: 1 of 1, 0 of 1 and 2 of 4.

    Log L = 4 log(1/2).
    """
    tree = Dendrogram.of(((0, 1), (2, 3)), [Layer([(0, 1), (0, 2), (1, 3)], range(4))])
    assert [tree.counts(0, node) for node in (4, 5, 6)] == [(1, 1), (0, 1), (2, 4)]
    assert tree.log_likelihood() == approx(4 * math.log(1 / 2))
    assert tree.pair_sizes().tolist() == [2, 4, 4, 4, 4, 2]


@parametrize("leaves", [2, 5, 8, 13])
def test_balanced_and_uniform_dendrograms_have_every_leaf_once(leaves):
    for children in (balanced(leaves), uniform(leaves, RNG(leaves))):
        tree = Dendrogram(children)
        assert tree.below()[tree.root] == list(range(leaves))
        assert len(children) == leaves - 1
    assert max(map(len, Dendrogram(balanced(8)).below()[8:-1])) == 4


@parametrize(
    ("edges", "pairs"),
    [
        (0, 5),
        (5, 5),
        (2, 5),
        (1, 2),
    ],
)
def test_the_likelihood_of_a_node_is_the_binomial_one_at_its_best(edges, pairs):
    share = edges / pairs
    best = math.log(share**edges * (1 - share) ** (pairs - edges))
    assert term(edges, pairs) == approx(best)
    assert float(exact_term(edges, pairs)) == approx(best, abs=1e-15)


@parametrize("nodes", [3, 4])
def test_equation_19_is_the_sensitivity_exactly(nodes):
    """Compared with the change of the likelihood of every dendrogram by every edge of every graph."""
    step = DendrogramStep(1.0, nodes)
    largest = 0.0
    for pair in Edges(nodes).exhaustive():
        change = step.query(pair.data, RNG(0)) - step.query(pair.neighbour, RNG(0))
        largest = max(largest, np.abs(change).max())
    assert largest == approx(sensitivity(nodes), rel=1e-12)
    assert sensitivity(nodes) >= largest * (1 - 1e-15)


@parametrize("nodes", [*range(3, 12), 39, 2000])
def test_the_sensitivity_is_the_largest_step_between_counts_and_equation_15_is_less(
    nodes,
):
    pairs = most_pairs(nodes)
    assert pairs == (nodes // 2) * (nodes - nodes // 2)
    terms = np.array([term(e, pairs) for e in range(min(pairs, 500) + 1)])
    found = sensitivity(nodes)
    assert found == approx(np.abs(np.diff(terms)).max(), rel=1e-9)
    printed = math.log(pairs) - math.log1p(-1 / pairs)
    assert sensitivity(nodes, "15") == approx(printed, rel=1e-12)
    assert (printed < found * (1 - 1e-12)) == (nodes > 3)
    assert found - printed < 1


@parametrize(
    ("leaves", "equation"),
    [
        (2, "19"),
        (0, "19"),
        (2, "15"),
    ],
)
def test_two_leaves_have_one_dendrogram_of_likelihood_one(leaves, equation):
    assert acceptance_rate(1.0, leaves, equation=equation) == 0


@given(st.integers(3, 5000), st.floats(0.05, 5.0))
def test_rates_spend_epsilon_and_no_more(leaves, epsilon):
    rate = acceptance_rate(epsilon, leaves)
    spent = 2 * rate * sensitivity(leaves)
    assert epsilon * (1 - 1e-12) <= spent <= epsilon * (1 + 1e-15)
    assert acceptance_rate(epsilon, leaves, factor=1) == approx(2 * rate)
    assert acceptance_rate(epsilon, leaves, equation="15") >= rate


def test_a_uniform_number_is_below_a_double_with_the_stated_probability():
    """Of 2^53 multiples of 2^-53, p 2^53 rounded up are below p."""
    expected = {0.0: 0, 1.0: 1, 0.25: 1 / 4, 2.0**-60: 2.0**-53}
    assert {p: met(p) for p in expected} == expected


def counted_anew(tree, layer):
    """(edges, pairs) across every internal node, from the leaves below its children alone."""
    below = tree.below()
    members = set(layer.members)
    found = []
    for children in tree.children[tree.leaves : 2 * tree.leaves - 1]:
        left, right = (set(below[child]) for child in children)
        edges = 0
        for u, v in layer.edges:
            edges += (u in left and v in right) or (u in right and v in left)
        found.append((edges, len(left & members) * len(right & members)))
    return found


@given(
    st.integers(3, 9),
    st.integers(0, 2**32),
    st.lists(st.integers(0, 10**6), max_size=30),
    st.data(),
)
def test_a_move_keeps_counts_and_likelihood_up_to_date(nodes, seed, moves, data):
    """And replaces one cluster by another."""
    edges = [pair for pair in combinations(range(nodes), 2) if data.draw(st.booleans())]
    members = data.draw(st.sets(st.integers(0, nodes - 1)))
    inside = [edge for edge in edges if members.issuperset(edge)]
    layers = [Layer(edges, range(nodes)), Layer(inside, sorted(members))]
    tree = Dendrogram(uniform(nodes, RNG(seed)), layers)

    def weighted():
        return tree.log_likelihood(0) + tree.log_likelihood(1) / 2

    for index in moves:
        before = weighted()
        old = set(map(tuple, tree.below()))
        move = tree.move(index % (2 * (nodes - 2)), (1.0, 0.5))
        tree.accept(move)
        assert move.change == approx(weighted() - before, abs=1e-9)
        assert len(old ^ set(map(tuple, tree.below()))) == 2
        for number, layer in enumerate(layers):
            counts = [tree.counts(number, node) for node in range(nodes, 2 * nodes - 1)]
            assert counts == counted_anew(tree, layer)
        assert tree.below()[tree.root] == list(range(nodes))
