"""What is found of newer papers' claims and code, by another route than the audits."""

import math
from fractions import Fraction
from itertools import product

import pytest
from scipy.integrate import quad
from scipy.stats import binom, norm

from auditdp.accountants import NodeLevelRDP
from mechanisms.link_ldp.blink import posterior
from mechanisms.message_passing import counted_hops


@pytest.mark.parametrize("flip", [0.1, 0.45])
def test_the_posterior_of_blink_is_that_of_bayes(flip):
    for prior, bits in product((0.01, 0.6), product((0, 1), repeat=2)):
        given = [
            math.prod(1 - flip if bit == link else flip for bit in bits)
            for link in (1, 0)
        ]
        bayes = given[0] * prior / (given[0] * prior + given[1] * (1 - prior))
        assert posterior(sum(bits), prior, flip) == pytest.approx(bayes)


@pytest.mark.parametrize(
    ("c", "hops"), [(Fraction(1, 2), 16), (Fraction(9, 10), 10), (Fraction(9, 10), 2)]
)
def test_the_formula_for_hops_is_the_linear_hop(c, hops):
    """(Σ c^i)²/Σ c^(2i), in fractions; where the formula has a minimum, it is never K."""
    shift, variance = (
        sum(c**i for i in range(hops)),
        sum(c ** (2 * i) for i in range(hops)),
    )
    assert counted_hops(float(c), hops) == pytest.approx(float(shift**2 / variance))
    assert shift**2 / variance <= hops


def test_hops_at_the_default_of_the_code():
    assert counted_hops(0.9, 10) == pytest.approx(9.175, abs=1e-3)
    assert counted_hops(0.9, 2) == pytest.approx(1.994, abs=1e-3)
    assert counted_hops(0.9, 10_000) == pytest.approx(19)


def test_batches_with_replacement_lose_more_than_the_accountant_says():
    """δ of Σ_k Bin(k; 6, 1/3) N(k/2, 1) against N(0, 1) at the accountant's ε, by quadrature."""
    epsilon = NodeLevelRDP(noise=4.0, nodes=6, reached=2, batch=6, steps=1).epsilon_at(
        1 / 60
    )
    weights = binom.pmf(range(7), 6, 1 / 3)

    def excess(x):
        shifted = sum(w * norm.pdf(x, k / 2) for k, w in enumerate(weights))
        return max(0.0, shifted - math.exp(epsilon) * norm.pdf(x))

    assert quad(excess, 0, 12, points=[2, 3, 4], limit=200)[0] > 1.4 / 60


def kept(in_degree, bound):
    """The probability that the sampler keeps one edge into a node.

    Drawn, and no more than ``bound`` are.
    """
    p = Fraction(bound, 2 * in_degree)
    return sum(
        p ** sum(drawn) * (1 - p) ** (in_degree - sum(drawn))
        for drawn in product((0, 1), repeat=in_degree)
        if drawn[0] and sum(drawn) <= bound
    )


def test_a_removed_node_changes_more_subgraphs_than_its_own():
    """Its 100 neighbours have 5 other in-neighbours each, all different.

    The published bound is K + 1 = 6.

    However the samples are paired, an edge is kept in one of them only with at least
    the difference of probabilities.
    """
    with_node, without = kept(6, 5), kept(5, 5)
    assert without == Fraction(1, 2)
    assert 500 * (without - with_node) > 44
