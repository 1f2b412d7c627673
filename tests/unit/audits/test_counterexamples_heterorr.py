"""Figures of the statements of HeteroRR, from printed formulas and from the laws of the mechanisms."""

import math
from itertools import pairwise, product

import numpy as np
import pytest

from mechanisms.features import FeatureRR, MinMaxScaled, OneBit
from mechanisms.hierarchy.dendrogram import leaves_of
from mechanisms.hierarchy.exact_chain import all_dendrograms
from mechanisms.hierarchy.likelihood import sensitivity


def table(budget, bins):
    """P(u | t) of one feature."""
    mechanism = FeatureRR(budget, (1.0,), bins)
    middles = (np.arange(bins) + 0.5) / bins
    return np.array([mechanism.distribution(np.array([z])).floats for z in middles])


def test_population_scaling_before_feature_rr():
    """Two users with value 1/2 and 0 or 1.

    They are scaled to (1, 0) or (0, 1), so that both reports change bins.
    """
    scaled = MinMaxScaled(OneBit(1.0, 1), 2)
    prepared = [scaled.prepared(np.array([[0.5], [x]]), np).ravel() for x in (0, 1)]
    assert np.array_equal(prepared, [[1, 0], [0, 1]])
    logs = np.log(table(1.0, 5))
    losses = (logs[4] - logs[0])[:, None] + (logs[0] - logs[4])
    assert losses.max() == pytest.approx(2.0)


def test_errors_of_feature_rr_and_of_an_unbiased_mechanism():
    law = table(0.1, 10)
    values = np.arange(1, 11) / 10
    middle = law[4] @ (values - 0.5) ** 2
    high = law[9] @ (values - 1.0) ** 2
    assert (middle, high) == pytest.approx((0.08, 0.28), abs=0.005)
    bias = law[9] @ values - 1.0
    assert (bias, law[0] @ values) == pytest.approx((-0.44, 0.54), abs=0.005)
    duchi = OneBit(0.1, 1).variance(1.0)
    assert duchi == pytest.approx(100, rel=0.01)
    n = np.arange(1, 5000)
    unbiased = duchi / n < bias**2 + (high - bias**2) / n
    assert n[unbiased][0] == 514


# Dendrograms of three nodes, by the two leaves that are siblings.

SIBLINGS = [(0, 1), (0, 2), (1, 2)]
DELTA = 2 * math.log(2)
"""Both printed sensitivities for three nodes."""


def log_likelihood(siblings, edges):
    """One pair below, two across the root."""
    across = sum(edge != siblings for edge in edges)
    return -2 * math.log(2) if across == 1 else 0.0


def kernel(edges, weight):
    """One move: one of the two other dendrograms, accepted with min(1, exp(weight·Δ log L))."""
    logs = np.array([log_likelihood(siblings, edges) for siblings in SIBLINGS])
    step = np.minimum(1, np.exp(weight * (logs - logs[:, None]))) / 2
    np.fill_diagonal(step, 0)
    return step + np.diag(1 - step.sum(axis=1))


def flow(step):
    """The flow between states under the law that the step leaves as it is."""
    stationary = np.linalg.matrix_power(step, 4096)[0]
    return stationary[:, None] * step


def test_the_alternating_chain_is_not_reversible():
    step = kernel([(0, 1)], 1.0) @ kernel([(0, 2)], 0.1 / (2 * DELTA))
    assert np.abs(flow(step) - flow(step).T).max() > 1e-3
    assert (step > 0).all(), "ergodic"
    for part in (kernel([(0, 1)], 1.0), kernel([(0, 2)], 0.1)):
        assert np.abs(flow(part) - flow(part).T).max() < 1e-12


def clusters(nested):
    """The sets of leaves below the internal nodes."""
    if isinstance(nested, int):
        return frozenset()
    here = frozenset([frozenset(leaves_of(nested))])
    return here | clusters(nested[0]) | clusters(nested[1])


def test_the_number_of_dendrograms():
    """The double factorial of 2n − 3."""
    for leaves, count in ((2, 1), (3, 3), (4, 15), (5, 105), (6, 945)):
        found = list(all_dendrograms(range(leaves)))
        assert len(found) == math.prod(range(1, 2 * leaves - 2, 2)) == count
        assert len(set(map(clusters, found))) == count


def test_both_sensitivities_grow():
    for equation in ("15", "19"):
        values = [sensitivity(n, equation) for n in range(3, 60)]
        assert all(a < b for a, b in pairwise(values))
    assert (sensitivity(2, "15"), sensitivity(2, "19")) == (math.inf, 0)


def test_the_published_pm_sub_shows_its_input():
    """(C − g₂)g₂ in place of a number of [g₂, C], for three values.

    Each has it with its own probability P₃ > 0.
    """
    e = math.exp(1.0)
    t = math.exp(1 / 3)
    unit = (e + t) / (t * (e - 1))
    size = unit * (t + 1)
    same = (t - 1) / t  # (C − g₂)g₂ is a parabola in x, and has each value twice
    right = {x: unit * (x * t + 1) for x in (0.0, 0.5, same)}
    atoms = {x: (size - right[x]) * right[x] for x in right}
    chance = {x: (1 - x) * t / (2 * t + 2 * e) for x in right}
    assert (atoms[0.0], chance[0.0]) == pytest.approx((4.11, 0.17), abs=0.005)
    assert (same, chance[same]) == pytest.approx((0.28, 0.12), abs=0.005)
    assert atoms[same] == pytest.approx(atoms[0.0])
    assert chance[0.5] > 0
    for x, other in product(right, repeat=2):
        if 0.5 in (x, other) and x != other:
            assert atoms[other] not in (atoms[x], -size, right[x])
            assert atoms[other] > right[x], "beyond both intervals that x has"


def edge_rand_with_a_constant_seed(graph, epsilon):
    """The flips of the published code: a pair is replaced with probability 2/(e^ε + 1), above the diagonal."""
    numbers = np.random.RandomState(1608)
    replaced = numbers.binomial(1, 2 / (math.exp(epsilon) + 1), graph.shape)
    values = np.zeros_like(graph)
    values[replaced == 1] = numbers.binomial(1, 0.5, replaced.sum())
    return np.triu(np.where(replaced == 1, values, graph), 1)


def test_a_constant_seed_publishes_edges():
    """EdgeRand: all pairs but a known few; LapGraph: the number of edges, since the noise is known."""
    edge, none = np.array([[0, 1], [1, 0]]), np.zeros((2, 2), int)
    assert edge_rand_with_a_constant_seed(edge, 5.0)[0, 1] == 1
    assert edge_rand_with_a_constant_seed(none, 5.0)[0, 1] == 0
    complete = 1 - np.eye(100, dtype=int)
    shown = edge_rand_with_a_constant_seed(complete, 1.0)
    assert np.array_equal(shown, edge_rand_with_a_constant_seed(complete, 1.0))
    differ = shown != edge_rand_with_a_constant_seed(0 * complete, 1.0)
    assert 0.4 < differ.sum() / (100 * 99 / 2) < 0.52, "1 − s = .462 of the pairs"
    noise = {np.random.RandomState(1608).laplace(0, 1 / 0.01) for _ in range(3)}
    assert len(noise) == 1
