"""DPRR's law: quadrature against an independent integrator, enclosures against quadrature, and the claim itself."""

import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammaln

from auditdp.adjacency import NeighbourList, Pair
from auditdp.errors import MechanismError
from auditdp.mechanism.laws import ball, precision
from audits.audit_edges_degrees import KURTOSIS
from mechanisms.edges import DPRR, NoisyDegree, RandomisedResponse

pytestmark = pytest.mark.dear


def bits_with(ones, length):
    return np.r_[np.ones(ones, np.int8), np.zeros(length - ones, np.int8)]


def by_quad(mechanism, bits, degree, k1, k0):
    """The definition, integrated over the noisy degree with the mechanism's own q, by another integrator."""
    p, b = mechanism.keep, mechanism.scale

    def integrand(t):
        q = float(mechanism.rate(np.array(t), bits))
        value = (p * q) ** k1 * (1 - p * q) ** (degree - k1)
        value *= ((1 - p) * q) ** k0 * (1 - (1 - p) * q) ** (bits - degree - k0)
        return value * math.exp(-abs(t - degree) / b) / (2 * b)

    turn = -bits * (1 - p) / (2 * p - 1)
    ends = sorted(
        {degree - 60 * b, turn, 0.0, float(degree), bits / 2, degree + 60 * b}
    )
    ends = [e for e in ends if degree - 60 * b <= e <= degree + 60 * b]
    return sum(
        quad(integrand, low, high, epsabs=0, epsrel=1e-11, limit=500)[0]
        for low, high in pairwise(ends)
        if integrand((low + high) / 2) > 0
    )


@pytest.mark.parametrize("clip", [True, False])
@pytest.mark.parametrize(("epsilon1", "epsilon2"), [(0.1, 0.9), (1.0, 1.0), (5.0, 3.0)])
@pytest.mark.parametrize(("bits", "degree"), [(1, 0), (1, 1), (4, 2), (5, 1), (12, 9)])
def test_log_prob_is_the_definition_integrated(clip, epsilon1, epsilon2, bits, degree):
    mechanism = DPRR(epsilon1, epsilon2, clip)
    for k1, k0 in product(range(degree + 1), range(bits - degree + 1)):
        ours = math.exp(mechanism.law(bits, degree).log_prob([k1], [k0])[0])
        assert ours == pytest.approx(
            by_quad(mechanism, bits, degree, k1, k0), rel=1e-8
        ), (k1, k0)


CASES = [
    # bits, degree, epsilon1, epsilon2, clip, ones kept, zeros set
    (1, 1, 0.1, 0.9, True, 1, 0),
    (2, 1, 0.5, 2.0, False, 0, 0),
    (30, 29, 3.0, 0.2, True, 4, 1),
    (300, 0, 0.0067, 8.0, True, 0, 252),
    (300, 3, 30.0, 0.01, False, 0, 40),
    (3000, 2, 0.03, 3.75, True, 0, 2492),
    (3000, 3, 1.5, 7.6, False, 3, 67),
    (3000, 2685, 0.27, 8.0, False, 2140, 2),
    (3000, 1500, 0.1, 0.9, True, 700, 300),
    (3000, 1, 0.05, 20.0, True, 1, 0),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_quadrature_lies_within_the_rigorous_enclosure(case):
    bits, degree, epsilon1, epsilon2, clip, k1, k0 = case
    law = DPRR(epsilon1, epsilon2, clip).law(bits, degree)
    with precision():
        enclosure = law.enclosure(k1, k0)
        assert enclosure.rel_accuracy_bits() > 83, "relative radius above 1e-25"
        exact = float(enclosure.log().mid())
    assert law.log_prob([k1], [k0])[0] == pytest.approx(exact, abs=1e-10)


@pytest.mark.parametrize("clip", [True, False])
def test_distribution_is_a_law_and_agrees_with_log_prob(clip):
    mechanism, data = DPRR(0.1, 0.9, clip), bits_with(3, 12)[::-1]
    law = mechanism.distribution(data)
    with precision():
        total = sum(law.probabilities)
        assert total.contains(1)
        assert total.rad() < 1e-50
    np.testing.assert_allclose(
        mechanism.log_prob(law.outcomes, data), law.log_prob(law.outcomes), atol=1e-11
    )


@pytest.mark.parametrize("clip", [True, False])
@pytest.mark.parametrize(("epsilon1", "epsilon2"), [(0.1, 0.9), (1.0, 0.3), (4.0, 2.0)])
def test_proposition_2_holds_rigorously_for_every_pair_of_short_lists(
    clip, epsilon1, epsilon2
):
    """Every class of every pair of 6-bit lists: the ratio and its inverse are at most e^(ε₁+ε₂)."""
    mechanism = DPRR(epsilon1, epsilon2, clip)
    with precision():
        cap = ball(Fraction(epsilon1) + Fraction(epsilon2)).exp()
        for degree in range(6):
            for own, k1, k0 in np.ndindex(2, degree + 1, 6 - degree):
                ratio = mechanism.ratio_enclosure(6, degree, own, k1, k0)
                assert ratio <= cap
                assert 1 / ratio <= cap


def test_twice_the_budget_is_visibly_worse():
    """The check above can fail: the loss of DPRR(ε₁, 2ε₂) exceeds ε₁ + ε₂."""
    assert np.abs(DPRR(0.1, 1.8).log_ratio_table(6, 0)).max() > 1.0


def test_ratio_tables_enclosures_and_scores_agree():
    mechanism = DPRR(0.4, 1.1)
    table = mechanism.log_ratio_table(7, 3)
    assert table.shape == (2, 4, 4)
    with precision():
        for own, k1, k0 in np.ndindex(table.shape):
            exact = float(mechanism.ratio_enclosure(7, 3, own, k1, k0).log())
            assert table[own, k1, k0] == pytest.approx(exact, abs=1e-10)
    (pair,) = [p for p in NeighbourList(8).pairs() if p.data.sum() == 4]
    output = np.array([[1, 0, 1, 1, 0, 1, 0]])  # own bit is at place 3
    assert mechanism.score(output, pair)[0] == pytest.approx(table[1, 2, 1], abs=1e-10)


def test_a_ratio_for_thousands_of_bits_is_tight():
    with precision():
        ratio = DPRR(0.1, 0.9).ratio_enclosure(4000, 3, 1, 2, 5)
        assert ratio.rel_accuracy_bits() > 83
        assert ratio < ball(1).exp()


def degree_law(law, bits, degree):
    """The law of the number of ones, summed over classes with their multiplicities."""
    k1, k0 = np.indices((degree + 1, bits - degree + 1)).reshape(2, -1)
    many = [
        gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
        for n, k in ((degree, k1), (bits - degree, k0))
    ]
    return np.bincount(
        k1 + k0, np.exp(law.log_prob(k1, k0) + many[0] + many[1]), bits + 1
    )


@pytest.mark.parametrize("clip", [True, False])
@pytest.mark.parametrize(("bits", "degree"), [(3, 0), (9, 9), (40, 3), (200, 120)])
def test_degree_moments_by_enumeration(clip, bits, degree):
    mechanism = DPRR(0.3, 1.2, clip)
    law = degree_law(mechanism.law(bits, degree), bits, degree)
    values = np.arange(bits + 1)
    mean = law @ values
    assert law.sum() == pytest.approx(1, abs=1e-10)
    assert mechanism.expected_degree(degree, bits) == pytest.approx(mean, rel=1e-9)
    assert mechanism.degree_variance(degree, bits) == pytest.approx(
        law @ values**2 - mean**2, rel=1e-9
    )


@pytest.mark.parametrize(
    ("epsilon", "bits", "degree"),
    [(1.2, 499, 0), (1.2, 499, 2), (1.2, 499, 100), (1.0, 3781, 0)],
)
def test_the_kurtosis_that_audits_declare_is_that_of_the_law(epsilon, bits, degree):
    """It is largest for isolated users: 10.90 with 500 nodes and 13.05 with 3,782."""
    law = degree_law(DPRR.allocated(epsilon, bits + 1).law(bits, degree), bits, degree)
    away = np.arange(bits + 1) - law @ np.arange(bits + 1)
    kurtosis = law @ away**4 / (law @ away**2) ** 2
    assert kurtosis == pytest.approx(
        {(499, 0): 10.90, (3781, 0): 13.05}.get((bits, degree), 6.3),
        abs=0.01 if not degree else 3,
    )
    assert kurtosis < KURTOSIS


def test_the_range_of_a_noisy_degree_is_all_of_the_list():
    assert NoisyDegree(DPRR(1.0, 1.0)).output_range(bits_with(3, 9)) == (0, 9)


def test_the_negative_denominator_of_the_printed_formula():
    printed, clipped = DPRR(0.1, 0.9, clip_degree=False), DPRR(0.1, 0.9)
    p, bits = printed.keep, 20
    turn = bits * (1 - p) / (2 * p - 1)
    just_below = (turn + 1e-6) / ((turn + 1e-6) * (2 * p - 1) - bits * (1 - p))
    assert just_below > 1 / (2 * p - 1) > 1
    noisy = np.array([-1e12, -turn - 1e-6, -turn + 1e-6, -1.0, 0.0])
    assert printed.rate(noisy, bits).tolist() == [1, 1, 0, 0, 0]
    assert not clipped.rate(noisy, bits).any()


def test_q_reaches_one_at_half_the_bits():
    rate = DPRR(0.1, 0.9).rate(np.array([9.99, 10.0, 10.01, 1e9]), 20)
    assert rate[0] < 1
    np.testing.assert_allclose(rate[1:], 1, rtol=1e-15)


def test_the_published_allocation_overspends_on_small_graphs():
    published = DPRR.allocated(0.5, n_max=20)
    assert published.epsilon1 == pytest.approx(math.sqrt(8 / 19))
    assert published.epsilon2 == pytest.approx(0.45)
    assert published.epsilon1 + published.epsilon2 > 0.5
    assert DPRR.allocated(1.0, n_max=3783).epsilon1 == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("epsilon", "n_max"), [(0.5, 40), (1.0, 3783), (0.1, 802), (2.0, 10)]
)
def test_the_repair_spends_exactly_within_epsilon(epsilon, n_max):
    repaired = DPRR.allocated_within(epsilon, n_max)
    assert Fraction(repaired.epsilon1) + Fraction(repaired.epsilon2) <= Fraction(
        epsilon
    )
    assert repaired.epsilon1 == DPRR.allocated(epsilon, n_max).epsilon1


def test_the_repair_says_which_n_max_would_do():
    with pytest.raises(MechanismError, match="n_max >= 34"):
        DPRR.allocated_within(0.5, 33)
    assert DPRR.allocated_within(0.5, 34).epsilon2 > 0


@pytest.mark.parametrize("bad", [0, -1.0, math.inf, math.nan, "1"])
def test_bad_budgets_are_refused(bad):
    with pytest.raises(MechanismError, match="epsilon1, a finite number > 0"):
        DPRR(bad, 1.0)
    with pytest.raises(MechanismError, match="epsilon2, a finite number > 0"):
        DPRR(1.0, bad)


def test_bad_lists_and_classes_are_refused():
    mechanism = DPRR(0.1, 0.9)
    with pytest.raises(MechanismError, match="neighbour list"):
        mechanism(np.array([0, 2]), 1, rng=np.random.default_rng(0))
    with pytest.raises(MechanismError, match="at most 12"):
        mechanism.distribution(np.zeros(13, np.int8))
    with pytest.raises(MechanismError, match="impossible"):
        mechanism.law(5, 2).log_prob([3], [0])
    with pytest.raises(MechanismError, match="degree from 0 to 5"):
        mechanism.law(5, 6)
    with pytest.raises(MechanismError, match="alpha"):
        DPRR.allocated(1.0, 100, alpha=1.0)


def test_degrees_are_counts_of_ones():
    outputs = np.array([[1, 0, 1], [0, 0, 0]], np.int8)
    assert DPRR(0.1, 0.9).degree(outputs).tolist() == [2, 0]
    counted = NoisyDegree(RandomisedResponse(50.0))
    assert counted(bits_with(2, 5), 3, rng=np.random.default_rng(0)).tolist() == [
        2,
        2,
        2,
    ]
    assert counted.name == "NoisyDegree(RandomisedResponse(epsilon=50))"


def test_a_vanishing_bit_budget_is_a_fair_coin():
    """With ε₂ so small that p rounds to 1/2, the output is independent of which bits are one."""
    mechanism = DPRR(1.0, 1e-20)
    pair = Pair(bits_with(2, 4), bits_with(2, 4)[::-1].copy())
    outputs = mechanism.distribution(pair.data).outcomes
    assert mechanism.keep == 0.5
    np.testing.assert_allclose(mechanism.score(outputs, pair), 0, atol=1e-12)
