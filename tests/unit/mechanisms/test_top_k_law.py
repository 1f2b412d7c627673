"""The laws of the k largest with Gumbel noise: by hand, by other formulas for the same, and against the sampler."""

import math
from itertools import combinations, permutations, product

import numpy as np
import pytest
from flint import arb
from scipy import stats
from scipy.integrate import quad

from auditdp.accountants import TopKPure
from auditdp.errors import MechanismError
from auditdp.evidence.loss_of_laws import pair_loss
from auditdp.mechanism.laws import precision
from mechanisms.top_k_law import plackett_luce, set_epsilon, unordered_top_k

SCORES = np.array([0.3, -1.2, 0.0, 2.0, 0.7])


def test_orders_by_hand():
    """Weights 1, 2, 3: 2 comes first with 3/6 and then 1 with 2/3; 0 first with 1/6 and then 2 with 3/5."""
    law = plackett_luce(np.log([1, 2, 3]), 2)
    found = dict(zip(map(tuple, law.outcomes.tolist()), law.floats, strict=True))
    assert found[(2, 1)] == pytest.approx(3 / 6 * 2 / 3)
    assert found[(0, 2)] == pytest.approx(1 / 6 * 3 / 5)
    assert len(found) == 6


@pytest.mark.parametrize("law", [plackett_luce, unordered_top_k])
def test_none_and_all_of_the_scores(law):
    assert law(SCORES, 0).outcomes.shape == (1, 0)
    assert law([], 0).floats.tolist() == [1.0]
    assert law(SCORES, 5).floats.sum() == pytest.approx(1)
    assert len(law(SCORES, 5).floats) == (120 if law is plackett_luce else 1)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_ordered_law_is_the_product_of_selections(count):
    law = plackett_luce(SCORES, count)
    weights = np.exp(SCORES)
    assert len(law.outcomes) == math.perm(5, count)
    for outcome, probability in zip(law.outcomes, law.floats, strict=True):
        left, expected = weights.copy(), 1.0
        for i in outcome:
            expected *= left[i] / left.sum()
            left[i] = 0
        assert probability == pytest.approx(expected, rel=1e-14)


def test_the_set_forgets_the_order():
    ordered, sets = plackett_luce(SCORES, 3), unordered_top_k(SCORES, 3)
    for outcome, probability in zip(sets.outcomes, sets.floats, strict=True):
        orders = [
            row in set(permutations(outcome)) for row in map(tuple, ordered.outcomes)
        ]
        assert probability == pytest.approx(ordered.floats[orders].sum(), rel=1e-14)
    assert [tuple(row) for row in sets.outcomes] == list(combinations(range(5), 3))


def test_the_set_has_the_integral_of_exponential_clocks():
    """P(S) = ∫₀¹ ∏_{i∈S} (1 − u^{w_i/w(Sᶜ)}) du: the first k clocks, u the chance that the others still run."""
    weights = np.exp(SCORES)
    law = unordered_top_k(SCORES, 2)
    for outcome, probability in zip(law.outcomes, law.floats, strict=True):
        rest = weights.sum() - weights[outcome].sum()
        integral, _ = quad(lambda u, w=weights[outcome] / rest: np.prod(1 - u**w), 0, 1)
        assert probability == pytest.approx(integral, rel=1e-9)


def test_the_law_is_exact():
    law = unordered_top_k(SCORES, 2)
    assert all(float(p.rad()) < 1e-60 for p in law.balls)
    with precision():
        assert sum(law.balls, arb(0)).contains(1)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("law", "ordered"), [(plackett_luce, True), (unordered_top_k, False)]
)
def test_the_laws_are_those_of_the_sampler(law, ordered):
    """Chi-square of 200,000 draws of SCORES plus Gumbel noise; null: the law is right; alpha = 1e-6 each."""
    alpha, size = 1e-6, 200_000
    stated = law(SCORES, 3)
    noisy = SCORES + np.random.default_rng(20240229).gumbel(size=(size, 5))
    rows = np.argsort(-noisy, axis=1)[:, :3]
    rows = rows if ordered else np.sort(rows, axis=1)
    code = [25, 5, 1]
    place = {int(c): i for i, c in enumerate(stated.outcomes @ code)}
    counts = np.bincount([place[c] for c in rows @ code], minlength=len(place))
    p = stats.chisquare(counts, stated.floats * size).pvalue
    assert p > alpha, f"chi-square p = {p:.2g}, alpha={alpha:g}"


@pytest.mark.parametrize(("n", "k"), [(3, 1), (4, 2), (5, 4)])
def test_the_worst_pair_of_clipped_scores_is_found_among_all_corners(n, k):
    """No pair of scores in {0, Δ}ⁿ shows more than the closed form, and one of them shows it."""
    eta = 0.8
    laws = [
        unordered_top_k([eta / 2 * bit for bit in bits], k)
        for bits in product((0, 1), repeat=n)
    ]
    worst = max(pair_loss(p, q).upper for p in laws for q in laws)
    assert set_epsilon(n, k, eta) == pytest.approx(worst, rel=1e-13)
    assert (
        set_epsilon(n, k, eta)
        < TopKPure(k, eta).epsilon_at(0.0)
        == pytest.approx(k * eta)
    )
    assert set_epsilon(10**9, k, eta) == pytest.approx(k * eta, rel=1e-8)
    assert set_epsilon(k, k, eta) == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("law", [plackett_luce, unordered_top_k])
def test_what_cannot_be_listed_is_refused(law):
    for count in (-1, 6):
        with pytest.raises(
            MechanismError,
            match=rf"expected count in 0\.\.5, the number of scores, got count={count}",
        ):
            law(SCORES, count)
    with pytest.raises(
        MechanismError,
        match=r"of 40 scores have \S+ outcomes, at most 200,000; use fewer",
    ):
        law(np.zeros(40), 5)


def test_a_set_needs_a_budget():
    with pytest.raises(MechanismError, match=r"expected finite eta > 0, got eta=0\.0"):
        set_epsilon(3, 1, 0.0)
    with pytest.raises(MechanismError, match=r"expected count in 0\.\.3"):
        set_epsilon(3, 4, 1.0)
