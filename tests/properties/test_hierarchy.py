"""Dendrograms and hierarchical releases: what holds for every tree, graph, move and budget."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditdp.adjacency import Edges
from auditdp.evidence.loss_of_laws import pair_loss
from mechanisms.hierarchy import DendrogramStep, PrivHRG, Thresholds
from mechanisms.hierarchy.dendrogram import Dendrogram, Layer, uniform
from mechanisms.hierarchy.likelihood import (
    acceptance_rate,
    most_pairs,
    sensitivity,
    term,
)
from mechanisms.hierarchy.noisy_probabilities import DRAWS, noisy_counts

EPSILONS = st.floats(0.05, 5.0)
SEEDS = st.integers(0, 2**32)
NEVER = {"tau1": math.inf, "tau2": math.inf}


@st.composite
def graphs(draw, least=3, most=4):
    """A symmetric matrix, and its edges."""
    nodes = draw(st.integers(least, most))
    matrix = np.zeros((nodes, nodes), np.int8)
    for i in range(nodes):
        for j in range(i):
            matrix[i, j] = matrix[j, i] = draw(st.integers(0, 1))
    return matrix


def edges_of(matrix):
    return [(int(i), int(j)) for i, j in np.argwhere(np.triu(matrix))]


def counted_anew(tree, layer):
    """(edges, pairs) across every internal node from the leaves below its children and nothing else."""
    below, members = tree.below(), set(layer.members)
    found = []
    for node in range(tree.leaves, 2 * tree.leaves - 1):
        left, right = (set(below[child]) for child in tree.children[node])
        edges = sum(
            (u in left and v in right) or (u in right and v in left)
            for u, v in layer.edges
        )
        found.append((edges, len(left & members) * len(right & members)))
    return found


@given(graphs(3, 9), SEEDS, st.lists(st.integers(0, 10**6), max_size=30), st.data())
def test_a_move_keeps_counts_and_likelihood_up_to_date(matrix, seed, moves, data):
    nodes = len(matrix)
    members = data.draw(st.sets(st.integers(0, nodes - 1)))
    inside = [edge for edge in edges_of(matrix) if set(edge) <= members]
    layers = [Layer(edges_of(matrix), range(nodes)), Layer(inside, sorted(members))]
    tree = Dendrogram(uniform(nodes, np.random.default_rng(seed)), layers)
    for index in moves:
        before = [tree.log_likelihood(0), tree.log_likelihood(1)]
        move = tree.move(index % (2 * (nodes - 2)), (1.0, 0.5))
        clusters = {tuple(found) for found in tree.below()}
        tree.accept(move)
        after = [tree.log_likelihood(0), tree.log_likelihood(1)]
        assert move.change == pytest.approx(
            after[0] - before[0] + (after[1] - before[1]) / 2, abs=1e-9
        )
        assert (
            len(clusters ^ {tuple(found) for found in tree.below()}) == 2
        )  # one cluster is replaced by another
        for number, layer in enumerate(layers):
            counts = [tree.counts(number, node) for node in range(nodes, 2 * nodes - 1)]
            assert counts == counted_anew(tree, layer)
        assert tree.below()[tree.root] == list(range(nodes))


@given(st.integers(1, 400), st.data())
def test_no_step_of_the_likelihood_exceeds_that_of_the_first_edge_and_it_grows_with_the_pairs(
    pairs, data
):
    edges = data.draw(st.integers(0, pairs - 1))
    first = abs(term(1, pairs) - term(0, pairs))
    assert abs(term(edges + 1, pairs) - term(edges, pairs)) <= first * (1 + 1e-9) + 1e-9
    assert first <= abs(term(1, pairs + 1) - term(0, pairs + 1)) + 1e-9


@given(st.integers(3, 5000), EPSILONS, st.sampled_from([1, 2]))
def test_rates_spend_at_most_epsilon(leaves, epsilon, factor):
    assert 2 * acceptance_rate(epsilon, leaves) * sensitivity(leaves) <= epsilon * (
        1 + 1e-15
    )
    assert acceptance_rate(
        epsilon, leaves, equation="15", factor=factor
    ) >= acceptance_rate(epsilon, leaves, factor=factor)
    assert most_pairs(leaves) == (leaves // 2) * (leaves - leaves // 2)


@given(
    st.integers(2, 12),
    SEEDS,
    st.floats(0.05, 20),
    st.sampled_from(DRAWS),
    st.booleans(),
    st.data(),
)
@settings(deadline=None)
def test_every_pair_of_private_nodes_is_drawn_once_and_one_draw_counts_every_edge_once(
    nodes, seed, epsilon, draws, pooled, data
):
    members = data.draw(st.sets(st.integers(0, nodes - 1)))
    edges = [
        (i, j) for i in members for j in members if i < j and data.draw(st.booleans())
    ]
    tree = Dendrogram(
        uniform(nodes, np.random.default_rng(seed)), [Layer(edges, sorted(members))]
    )
    found = noisy_counts(
        tree, Thresholds(epsilon, draws=draws, **({} if pooled else NEVER))
    )
    drawn = [node for count in found for node in count.drawn]
    assert len(drawn) == len(set(drawn))
    assert sum(tree.counts(0, node)[1] for node in drawn) == math.comb(len(members), 2)
    assert all(0 <= count.value(tree) <= count.pairs for count in found)
    uses = {
        edge: sum(
            edge in tree.across[0][node] for count in found for node in count.counted
        )
        for edge in edges
    }
    assert all(
        1 <= use <= (1 if draws == "one" else len(members) - 1) for use in uses.values()
    )


STEPS = st.sampled_from(
    [{}, {"steps": 4}, {"steps": 3, "start": "uniform"}, {"moves": "joint"}]
)


@given(graphs(), EPSILONS, STEPS, st.randoms())
def test_renaming_the_nodes_renames_the_dendrogram(matrix, epsilon, readings, random):
    if readings == {"steps": 4}:
        readings = {
            "steps": 4,
            "start": "uniform",
        }  # a fixed start knows the nodes by name
    nodes = len(matrix)
    order = list(range(nodes))
    random.shuffle(order)
    step = DendrogramStep(epsilon, nodes, **readings)
    law, renamed = (
        step.distribution(matrix),
        step.distribution(matrix[np.ix_(order, order)]),
    )
    above = np.triu_indices(nodes, 1)
    square = np.zeros((len(law.outcomes), nodes, nodes), np.int16)
    square[:, above[0], above[1]] = square[:, above[1], above[0]] = law.outcomes
    moved = square[:, order][:, :, order][:, above[0], above[1]]
    assert np.exp(renamed.log_prob(moved)) == pytest.approx(law.floats, rel=1e-9)


@given(graphs(), EPSILONS, st.data())
def test_k_edges_lose_at_most_k_epsilon_at_the_stationary_law(matrix, epsilon, data):
    other = matrix.copy()
    nodes = len(matrix)
    pairs = [(i, j) for i in range(nodes) for j in range(i)]
    changed = data.draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))
    for i, j in changed:
        other[i, j] = other[j, i] = 1 - other[i, j]
    step = DendrogramStep(epsilon, nodes)
    assert (
        pair_loss(step.distribution(matrix), step.distribution(other)).upper
        <= len(changed) * epsilon
    )
    release = PrivHRG(epsilon, epsilon, nodes)
    assert (
        pair_loss(release.distribution(matrix), release.distribution(other)).upper
        <= 2 * len(changed) * epsilon
    )


@given(EPSILONS, EPSILONS, st.sampled_from(Edges(4).exhaustive()))
@settings(max_examples=20)
def test_counts_of_one_dendrogram_lose_more_with_a_larger_budget(one, two, pair):
    """The graph of a given dendrogram; its likelihood's weight is another matter, since laws concentrate as ε grows."""
    small, large = (
        pair_loss(
            *(
                PrivHRG(1.0, e, 4, steps=0, **NEVER).distribution(x)
                for x in (pair.data, pair.neighbour)
            )
        ).upper
        for e in sorted((one, two))
    )
    assert small <= large * (1 + 1e-9)


@given(
    graphs(2, 8),
    EPSILONS,
    EPSILONS,
    st.sampled_from(DRAWS),
    st.integers(0, 9),
    st.booleans(),
    SEEDS,
)
def test_released_graphs_are_bits(
    matrix, epsilon1, epsilon2, draws, steps, pooled, seed
):
    mechanism = PrivHRG(
        epsilon1,
        epsilon2,
        len(matrix),
        steps=steps,
        draws=draws,
        **({} if pooled else NEVER),
    )
    outputs = mechanism(matrix, 3, rng=np.random.default_rng(seed))
    assert outputs.dtype == np.int8
    assert outputs.shape == (3, math.comb(len(matrix), 2))
    assert np.isin(outputs, (0, 1)).all()


@given(graphs(), EPSILONS, STEPS)
def test_laws_sum_to_one(matrix, epsilon, readings):
    nodes = len(matrix)
    for mechanism in (
        DendrogramStep(epsilon, nodes, **readings),
        PrivHRG(epsilon, 1.0, nodes, **readings, **NEVER),
    ):
        assert mechanism.distribution(matrix).floats.sum() == pytest.approx(
            1, abs=1e-12
        )
