"""Dendrograms: how many there are, which moves lead where, incremental counts, and the sensitivity of the likelihood."""

import math
from collections import Counter

import numpy as np
import pytest

from auditdp.adjacency import Edges
from auditdp.errors import MechanismError
from mechanisms.hierarchy import DendrogramStep
from mechanisms.hierarchy.dendrogram import (
    Dendrogram,
    Layer,
    balanced,
    children_of,
    leaves_of,
    uniform,
)
from mechanisms.hierarchy.dendrogram_step import ManyPublicMoves
from mechanisms.hierarchy.exact_chain import all_dendrograms, met, states
from mechanisms.hierarchy.likelihood import (
    acceptance_rate,
    exact_term,
    most_pairs,
    sensitivity,
    term,
)

RNG = np.random.default_rng


def edges_across(nested, edges):
    """For every internal node, by its leaves: the edges and the pairs across it, counted from the brackets alone."""
    if isinstance(nested, int):
        return {}
    left, right = (set(leaves_of(child)) for child in nested)
    count = sum(
        (u in left and v in right) or (u in right and v in left) for u, v in edges
    )
    here = {frozenset(left | right): (count, len(left) * len(right))}
    return here | edges_across(nested[0], edges) | edges_across(nested[1], edges)


@pytest.mark.parametrize(
    ("leaves", "count"), [(2, 1), (3, 3), (4, 15), (5, 105), (6, 945)]
)
def test_there_are_the_double_factorial_of_2n_minus_3_dendrograms(leaves, count):
    found = list(all_dendrograms(range(leaves)))
    assert len(found) == math.prod(range(1, 2 * leaves - 2, 2)) == count
    assert len({frozenset(edges_across(nested, [])) for nested in found}) == count


def test_more_leaves_than_can_be_listed_are_refused():
    with pytest.raises(MechanismError, match="at most 6"):
        states(7)


@pytest.mark.parametrize("leaves", [3, 4, 5])
def test_a_move_is_proposed_as_often_as_its_reverse(leaves):
    """What makes the target of the acceptance the stationary law (detailed balance); and all dendrograms are reached."""
    moves = states(leaves).moves
    steps = Counter((int(a), int(b)) for a, row in enumerate(moves) for b in row)
    assert all(steps[b, a] == count for (a, b), count in steps.items())
    assert all(a != b for a, b in steps)
    reached = {0}
    while len(reached) < len(
        more := reached | {int(b) for a in reached for b in moves[a]}
    ):
        reached = more
    assert reached == set(range(len(moves)))


def test_from_three_leaves_every_other_dendrogram_is_one_move_away():
    assert sorted(states(3).moves[0].tolist()) == [1, 2]


def test_counts_of_a_dendrogram_that_is_worked_out_by_hand():
    """((0, 1), (2, 3)) with edges 0-1, 0-2 and 1-3: 1 of 1, 0 of 1 and 2 of 4; log L = 4 log(1/2)."""
    tree = Dendrogram.of(((0, 1), (2, 3)), [Layer([(0, 1), (0, 2), (1, 3)], range(4))])
    assert [tree.counts(0, node) for node in (4, 5, 6)] == [(1, 1), (0, 1), (2, 4)]
    assert tree.log_likelihood() == pytest.approx(4 * math.log(1 / 2))
    assert tree.pair_sizes().tolist() == [2, 4, 4, 4, 4, 2]


def test_members_alone_count_as_ends_of_pairs():
    tree = Dendrogram.of(((0, 1), (2, 3)), [Layer([(0, 2)], [0, 1, 2])])
    assert [tree.counts(0, node) for node in (4, 5, 6)] == [(0, 1), (0, 0), (1, 2)]


@pytest.mark.parametrize("leaves", [2, 5, 8, 13])
def test_balanced_and_uniform_dendrograms_have_every_leaf_once(leaves):
    for children in (balanced(leaves), uniform(leaves, RNG(leaves))):
        tree = Dendrogram(children)
        assert tree.below()[tree.root] == list(range(leaves))
        assert len(children) == leaves - 1
    assert max(map(len, Dendrogram(balanced(8)).below()[8:-1])) == 4


@pytest.mark.parametrize("nested", [0, (0, 2), ((0, 1), 1), (0, 1, 2), ((0, "1"), 2)])
def test_brackets_that_are_no_dendrogram_are_refused(nested):
    with pytest.raises(MechanismError, match="expected"):
        children_of(nested)


@pytest.mark.parametrize(
    "children",
    [
        [(0, 1), (1, 3)],
        [(0, 1), (2, 4)],
        [(0, 0), (2, 3)],
        [(0, 1), (4, 2), (5, 3), (6, 6)],
    ],
)
def test_children_that_make_no_tree_are_refused(children):
    with pytest.raises(MechanismError, match="one child of one node"):
        Dendrogram(children)


@pytest.mark.parametrize(("edges", "pairs"), [(0, 5), (5, 5), (2, 5), (1, 2)])
def test_the_likelihood_of_a_node_is_the_binomial_one_at_its_best(edges, pairs):
    share = edges / pairs
    best = math.log(share**edges * (1 - share) ** (pairs - edges))
    assert term(edges, pairs) == pytest.approx(best)
    assert float(exact_term(edges, pairs).mid()) == pytest.approx(best, abs=1e-15)


@pytest.mark.parametrize("nodes", [3, 4])
def test_equation_19_is_the_sensitivity_exactly(nodes):
    """Compared with the change of the likelihood of every dendrogram by every edge of every graph."""
    step = DendrogramStep(1.0, nodes)
    change = max(
        np.abs(step.query(p.data, RNG(0)) - step.query(p.neighbour, RNG(0))).max()
        for p in Edges(nodes).exhaustive()
    )
    assert change == pytest.approx(sensitivity(nodes), rel=1e-12)
    assert sensitivity(nodes) >= change * (1 - 1e-15)


@pytest.mark.parametrize("nodes", [*range(3, 40), 2000])
def test_the_sensitivity_is_the_largest_step_between_counts_and_equation_15_is_less(
    nodes,
):
    pairs = most_pairs(nodes)
    steps = [abs(term(e + 1, pairs) - term(e, pairs)) for e in range(min(pairs, 500))]
    assert sensitivity(nodes) == pytest.approx(max(steps), rel=1e-9)
    log_form = math.log(pairs) - (pairs - 1) * math.log((pairs - 1) / pairs)
    assert sensitivity(nodes) == pytest.approx(log_form, rel=1e-9)
    printed = math.log(pairs) + math.log1p(1 / (pairs - 1))
    assert sensitivity(nodes, "15") == pytest.approx(printed, rel=1e-12)
    assert (sensitivity(nodes, "15") < sensitivity(nodes)) == (nodes > 3)
    assert sensitivity(nodes) - sensitivity(nodes, "15") < 1


def test_two_leaves_have_one_dendrogram_of_likelihood_one():
    assert sensitivity(2) == 0
    assert (
        acceptance_rate(1.0, 2)
        == acceptance_rate(1.0, 2, equation="15")
        == acceptance_rate(1.0, 0)
        == 0
    )
    with pytest.raises(MechanismError, match="'19' or '15'"):
        sensitivity(4, "17")


def test_the_rate_never_spends_more_than_epsilon():
    for nodes in (4, 9, 100):
        for epsilon in (0.1, 0.7, 3.0):
            rate = acceptance_rate(epsilon, nodes)
            assert 2 * rate * sensitivity(nodes) == pytest.approx(epsilon)
            assert acceptance_rate(epsilon, nodes, factor=1) == pytest.approx(2 * rate)


def test_a_uniform_number_is_below_a_double_with_the_stated_probability():
    """Of 2^53 multiples of 2^-53, p 2^53 rounded up are below p."""
    assert met(0.0) == 0
    assert met(1.0) == 1
    assert met(0.25) * 4 == 1
    assert met(2.0**-60) * 2**53 == 1


def test_many_public_moves_are_the_public_stage_again():
    found = {"moves": "alternating", "public": ((0, 1), (0, 2))}
    once, thrice = (
        ManyPublicMoves(1.0, 3, **found),
        ManyPublicMoves(1.0, 3, **found, public_moves=3),
    )
    assert once.stages(3) == DendrogramStep(1.0, 3, **found).stages(3)
    public, private = once.stages(3)
    assert thrice.stages(3) == [public, public, public, private]
    with pytest.raises(MechanismError, match="expected moves='alternating'"):
        ManyPublicMoves(1.0, 3)
