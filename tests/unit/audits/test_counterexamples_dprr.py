"""The counterexamples to statements of the DPRR paper, by another route than the audits."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import gammaln

from auditdp import Relationship
from mechanisms.edges import DPRR, Customised, NonPrivPart, RandomisedResponse


def test_the_variance_bound_holds_over_the_figures():
    """E[V] + V[E] by quadrature over degrees and all ε of the figures.

    The sum is at most .954 of (n_max − 1)/2.
    """
    worst = max(
        DPRR.allocated(epsilon, n).degree_variance(int(degree), n - 1) / ((n - 1) / 2)
        for n in (957, 3782)
        for epsilon in (0.1, 0.2, 0.5, 1.0, 2.0)
        for degree in (
            0,
            1,
            2,
            5,
            20,
            *np.linspace(50, n - 1, 13).astype(int),
            1732 if n == 3782 else 398,
        )
    )
    assert 0.95 < worst < 0.954


def test_memory_of_orkut():
    nodes, edges = 3_072_441, 117_185_083
    pairs = nodes * (nodes - 1) // 2
    least_bits = (
        gammaln(pairs + 1) - gammaln(edges + 1) - gammaln(pairs - edges + 1)
    ) / math.log(2)
    assert least_bits / 8 > 245e6 > 30e6
    assert 2 * edges / 8 == pytest.approx(29.3e6, rel=1e-3)
    assert nodes**2 / 8 == pytest.approx(1.18e12, rel=1e-2)
    assert edges * 64 / 8 == pytest.approx(0.94e9, rel=1e-2)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 2.0])
@pytest.mark.parametrize("users", [2, 3, 10, 130, 957, 3782])
def test_arcs_that_the_server_gets(users, epsilon):
    """E[d̃] <= d + 1/(2ε₁), at degrees across the range of a graph, with a clipped degree and without."""
    allocated = DPRR.allocated(epsilon, users)
    most_added = 1 / (2 * allocated.epsilon1)
    degrees = {0, 1, 2, 5, 20, 100, 400, 700, users // 2, users - 1}
    for clip in (True, False):
        mechanism = replace(allocated, clip_degree=clip)
        for degree in (d for d in degrees if d < users):
            added = mechanism.expected_degree(degree, users - 1) - degree
            assert added <= most_added


@pytest.mark.parametrize(("degree", "added"), [(0, 4.85), (2, 3.93)])
def test_arcs_that_a_user_with_few_friends_adds(degree, added):
    found = DPRR.allocated(1.0, 957).expected_degree(degree, 956) - degree
    assert found == pytest.approx(added, abs=0.005)


@pytest.mark.parametrize(("clip", "expected"), [(True, 0.9953), (False, 0.9271)])
def test_losses_of_an_edge_of_four_users_by_both_rules_for_negative_degrees(
    clip, expected
):
    """One edge is in two lists of three bits, each with 0 to 2 other ones, and the losses of both add."""
    mechanism = DPRR(0.25, 0.25, clip)
    losses = [np.abs(mechanism.log_ratio_table(3, ones)).max() for ones in range(3)]
    assert 2 * max(losses) == pytest.approx(expected, abs=5e-5)


def test_a_graph_of_non_private_users_shows_no_other_edge():
    """All graphs of 4 users, of whom 0 and 1 are private: what is learned from is the edge 23, whatever else changes."""
    part = NonPrivPart(4, private=(0, 1))
    shown = set()
    for pair in Relationship(4).exhaustive():
        first, second = (
            part.distribution(graph).outcomes for graph in (pair.data, pair.neighbour)
        )
        is_private = (pair.data != pair.neighbour)[:2].any()
        assert (first == second).all() == is_private
        shown.add(int(first.sum()))
    assert shown == {0, 2}


@pytest.mark.parametrize("epsilon", [0.01, 0.2, 0.99, 3.0])
def test_geometric_noise_has_the_smaller_variance(epsilon):
    k = np.arange(1, int(60 / epsilon))
    a = math.exp(-epsilon)
    geometric = 2 * np.sum(k**2 * (1 - a) / (1 + a) * a**k)
    laplace = 2 / epsilon**2
    assert geometric == pytest.approx(1 / (2 * math.sinh(epsilon / 2) ** 2), rel=1e-6)
    assert geometric < laplace
    assert (laplace - geometric) / laplace < epsilon**2 / 12


def test_a_non_private_user_publishes_the_edge():
    """Two users, of whom the second publishes their list.

    The output is possible on one of the two graphs alone.
    """
    customised = Customised(RandomisedResponse(1.0), 2, private=(0,))
    joined, apart = (
        customised.distribution(np.array([[0, bit], [bit, 0]])) for bit in (1, 0)
    )
    assert not {tuple(np.ravel(x)) for x in joined.outcomes} & {
        tuple(np.ravel(x)) for x in apart.outcomes
    }
