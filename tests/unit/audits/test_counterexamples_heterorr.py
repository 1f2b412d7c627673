"""The counterexamples to statements of HeteroRR, by another route than the audits."""

import math
from itertools import pairwise, product

import numpy as np
import pytest


def table(budget, bins):
    """P(u | t) as printed."""
    rows = np.exp(
        -budget
        * np.abs(np.subtract.outer(np.arange(bins), np.arange(bins)))
        / (bins - 1)
    )
    return rows / rows.sum(axis=1, keepdims=True)


def test_population_scaling_before_feature_rr():
    """Two users with value 1/2 and 0 or 1: scaled to (1, 0) or (0, 1), so that both reports change bins."""
    law = table(1.0, 5)
    losses = [
        math.log(law[4, u] * law[0, v] / (law[0, u] * law[4, v]))
        for u, v in product(range(5), repeat=2)
    ]
    assert max(losses) == pytest.approx(2.0)


def test_errors_of_feature_rr_and_of_an_unbiased_mechanism():
    law, values = table(0.1, 10), np.arange(1, 11) / 10
    middle, high = (
        float(law[t] @ (values - value) ** 2) for t, value in ((4, 0.5), (9, 1.0))
    )
    assert (round(middle, 2), round(high, 2)) == (0.08, 0.28)
    bias = float(law[9] @ values) - 1.0
    assert (round(bias, 2), round(float(law[0] @ values), 2)) == (-0.44, 0.54)
    duchi = (0.5 / math.tanh(0.05)) ** 2 - 0.5**2  # of 1, half a range from the middle
    assert duchi == pytest.approx(100, rel=0.01)
    neighbours = next(
        n for n in range(1, 5000) if duchi / n < bias**2 + (high - bias**2) / n
    )
    assert neighbours == 514


# Dendrograms of three nodes: which pair is joined last does not matter, only which two leaves are siblings.

PAIRS = [(0, 1), (0, 2), (1, 2)]


def log_likelihood(siblings, edges):
    """Log L of the dendrogram whose siblings are these two leaves: one pair below, two across the root."""
    across = sum(edge != siblings for edge in edges)
    return 2 * math.log(1 / 2) if across == 1 else 0.0


def kernel(edges, weight):
    """One move: one of the two other dendrograms, accepted with min(1, exp(weight·Δ log L))."""
    step = np.zeros((3, 3))
    for i, j in product(range(3), repeat=2):
        if i != j:
            step[i, j] = (
                min(
                    1.0,
                    math.exp(
                        weight
                        * (
                            log_likelihood(PAIRS[j], edges)
                            - log_likelihood(PAIRS[i], edges)
                        )
                    ),
                )
                / 2
            )
    return step + np.diag(1 - step.sum(axis=1))


def stationary(step):
    """The law that a step leaves as it is, by running it."""
    return np.linalg.matrix_power(step, 4096)[0]


DELTA = 2 * math.log(2)  # both printed sensitivities for three nodes


def test_the_alternating_chain_is_not_reversible():
    step = kernel([(0, 1)], 1.0) @ kernel([(0, 2)], 0.1 / (2 * DELTA))
    flow = stationary(step)[:, None] * step
    assert np.abs(flow - flow.T).max() > 1e-3
    assert (step > 0).all()  # ergodic
    for part in (kernel([(0, 1)], 1.0), kernel([(0, 2)], 0.1)):
        flow = stationary(part)[:, None] * part
        assert np.abs(flow - flow.T).max() < 1e-12


# Dendrograms of any number of leaves, by inserting leaves one at a time.


def dendrograms(leaves):
    """Every dendrogram over 0..leaves−1 as its set of (left, right) splits."""
    trees = [0]
    for leaf in range(1, leaves):
        trees = [new for tree in trees for new in inserted(tree, leaf)]
    return trees


def inserted(tree, leaf):
    """Every tree that arises from adding a leaf beside some node."""
    found = [(tree, leaf)]
    if isinstance(tree, tuple):
        found += [(new, tree[1]) for new in inserted(tree[0], leaf)] + [
            (tree[0], new) for new in inserted(tree[1], leaf)
        ]
    return found


def leaves_of(tree):
    return (
        leaves_of(tree[0]) + leaves_of(tree[1]) if isinstance(tree, tuple) else [tree]
    )


def test_the_number_of_dendrograms():
    assert [len(dendrograms(n)) for n in (3, 4, 5, 6)] == [3, 15, 105, 945]


def delta(private, equation):
    pairs = private**2 // 4
    step = math.log(1 + 1 / (pairs - 1))
    return math.log(pairs) + (step if equation == 15 else (pairs - 1) * step)


def test_both_sensitivities_grow():
    for equation in (15, 19):
        values = [delta(n, equation) for n in range(4, 60)]
        assert all(a < b for a, b in pairwise(values))


def across(tree):
    """The pairs across each internal node."""
    if not isinstance(tree, tuple):
        return []
    here = [
        (min(a, b), max(a, b)) for a in leaves_of(tree[0]) for b in leaves_of(tree[1])
    ]
    return [here, *across(tree[0]), *across(tree[1])]


def test_the_published_pm_sub_shows_its_input():
    """(C − g₂)g₂ in place of a number of [g₂, C], for two values; each has it with its own probability P₃ > 0."""
    e, t = math.exp(1.0), math.exp(1 / 3)
    unit = (e + t) / (t * (e - 1))
    atoms = {
        x: (unit * (t + 1) - unit * (x * t + 1)) * unit * (x * t + 1)
        for x in (0.0, 0.5)
    }
    chance = {x: (1 - x) * t / (2 * t + 2 * e) for x in atoms}
    assert (round(atoms[0.0], 2), round(chance[0.0], 2)) == (4.11, 0.17)
    assert chance[0.5] > 0
    for x, other in ((0.0, 0.5), (0.5, 0.0)):
        assert atoms[other] not in (
            atoms[x],
            *np.linspace(-unit * (t + 1), unit * (x * t + 1), 2),
        )
        assert atoms[other] > unit * (x * t + 1)  # beyond both intervals that x has
