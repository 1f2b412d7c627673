"""The laws of the k largest with Gumbel noise.

By hand, and by other formulas for the same.
"""

import math
from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest

from auditdp.accountants import TopKPure
from auditdp.evidence.loss_of_laws import pair_loss
from mechanisms.top_k_law import plackett_luce, set_epsilon, unordered_top_k

approx = pytest.approx

SCORES = np.array([0.3, -1.2, 0.0, 2.0, 0.7])


@pytest.mark.parametrize(
    ("law", "orders"),
    [
        (plackett_luce, 120),
        (unordered_top_k, 1),
    ],
)
def test_none_and_all_of_the_scores(law, orders):
    everything = law(SCORES, 5).floats
    assert everything.sum() == approx(1)
    assert len(everything) == orders
    assert law(SCORES, 0).outcomes.shape == (1, 0)
    assert law([], 0).floats.tolist() == [1.0]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_ordered_law_is_the_product_of_selections(count):
    law = plackett_luce(SCORES, count)
    assert len(law.outcomes) == math.perm(5, count)
    for outcome, probability in zip(law.outcomes, law.floats, strict=True):
        left = np.exp(SCORES)
        expected = 1.0
        for i in outcome:
            expected *= left[i] / left.sum()
            left[i] = 0
        assert probability == approx(expected, rel=1e-14)


def test_the_set_forgets_the_order():
    ordered = plackett_luce(SCORES, 3)
    expected = Counter()
    for outcome, probability in zip(ordered.outcomes, ordered.floats, strict=True):
        expected[tuple(sorted(outcome))] += probability
    sets = unordered_top_k(SCORES, 3)
    found = dict(zip(map(tuple, sets.outcomes), sets.floats, strict=True))
    assert list(found) == list(combinations(range(5), 3))
    assert found == approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    ("n", "k"),
    [
        (3, 1),
        (4, 2),
        (5, 4),
    ],
)
def test_the_worst_pair_of_clipped_scores_is_found_among_all_corners(n, k):
    """No pair of scores in {0, Δ}ⁿ shows more than the closed form, and one of them shows it."""
    eta = 0.8
    laws = []
    for corner in product((0, eta / 2), repeat=n):
        laws.append(unordered_top_k(list(corner), k))
    worst = max(pair_loss(p, q).upper for p, q in product(laws, repeat=2))
    found = set_epsilon(n, k, eta)
    assert found == approx(worst, rel=1e-13)
    assert found < TopKPure(k, eta).epsilon_at(0.0) == approx(k * eta)


def test_the_worst_pair_of_many_scores_and_of_all_of_them():
    assert set_epsilon(10**9, 2, 0.8) == approx(1.6, rel=1e-8)
    assert set_epsilon(2, 2, 0.8) == approx(0.0, abs=1e-15)
