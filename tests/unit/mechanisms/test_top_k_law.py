"""The laws of the k largest with Gumbel noise.

By hand, and by other formulas for the same.
"""

import math
from itertools import combinations, permutations, product

import numpy as np
import pytest
from scipy.integrate import quad

from auditdp.accountants import TopKPure
from auditdp.evidence.loss_of_laws import pair_loss
from mechanisms.top_k_law import plackett_luce, set_epsilon, unordered_top_k

approx = pytest.approx

SCORES = np.array([0.3, -1.2, 0.0, 2.0, 0.7])
of_laws = pytest.mark.parametrize("law", [plackett_luce, unordered_top_k])


@of_laws
def test_none_and_all_of_the_scores(law):
    everything = law(SCORES, 5).floats
    assert law(SCORES, 0).outcomes.shape == (1, 0)
    assert law([], 0).floats.tolist() == [1.0]
    assert everything.sum() == approx(1)
    assert len(everything) == (120 if law is plackett_luce else 1)


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
    by_order = dict(zip(map(tuple, ordered.outcomes), ordered.floats, strict=True))
    sets = unordered_top_k(SCORES, 3)
    assert [tuple(row) for row in sets.outcomes] == list(combinations(range(5), 3))
    for outcome, probability in zip(sets.outcomes, sets.floats, strict=True):
        expected = sum(by_order[order] for order in permutations(outcome))
        assert probability == approx(expected, rel=1e-14)


def test_the_set_has_the_integral_of_exponential_clocks():
    """P(S) = ∫₀¹ ∏_{i∈S} (1 − u^{w_i/w(Sᶜ)}) du.

    The first k clocks, u the chance that the others still run.
    """
    weights = np.exp(SCORES)
    law = unordered_top_k(SCORES, 2)
    for outcome, probability in zip(law.outcomes, law.floats, strict=True):
        rates = weights[outcome] / (weights.sum() - weights[outcome].sum())
        integral, _ = quad(lambda u, rates=rates: np.prod(1 - u**rates), 0, 1)
        assert probability == approx(integral, rel=1e-9)


@pytest.mark.parametrize(("n", "k"), [(3, 1), (4, 2), (5, 4)])
def test_the_worst_pair_of_clipped_scores_is_found_among_all_corners(n, k):
    """No pair of scores in {0, Δ}ⁿ shows more than the closed form, and one of them shows it."""
    eta = 0.8
    corners = product((0, eta / 2), repeat=n)
    laws = [unordered_top_k(list(corner), k) for corner in corners]
    worst = max(pair_loss(p, q).upper for p in laws for q in laws)
    found = set_epsilon(n, k, eta)
    assert found == approx(worst, rel=1e-13)
    assert found < TopKPure(k, eta).epsilon_at(0.0) == approx(k * eta)
    assert set_epsilon(10**9, k, eta) == approx(k * eta, rel=1e-8)
    assert set_epsilon(k, k, eta) == approx(0.0, abs=1e-15)
