"""DPRR's law: quadrature against an independent integrator, enclosures, and the claim."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.integrate import quad

from auditdp.adjacency import NeighbourList, Pair
from auditdp.mechanism.laws import precision
from audits.audit_edges_degrees import KURTOSIS
from mechanisms.edges import DPRR, NoisyDegree, RandomisedResponse
from mechanisms.edges.dprr_statistic import DPRRStatistic
from tests.statistical.stated_laws import degree_law, loss

approx = pytest.approx
parametrize = pytest.mark.parametrize

close = np.testing.assert_allclose

budgets = st.floats(1e-3, 8.0)
of_clip = parametrize("clip", [True, False])


def bits_with(ones, length):
    return np.r_[np.ones(ones, np.int8), np.zeros(length - ones, np.int8)]


def by_quad(mechanism, bits, degree, k1, k0):
    """The definition, integrated over the noisy degree by another integrator."""
    p = mechanism.keep
    b = mechanism.scale

    def integrand(t):
        q = float(mechanism.rate(np.array(t), bits))
        one, zero = p * q, (1 - p) * q
        ones = one**k1 * (1 - one) ** (degree - k1)
        zeros = zero**k0 * (1 - zero) ** (bits - degree - k0)
        return ones * zeros * math.exp(-abs(t - degree) / b) / (2 * b)

    turn = -bits * (1 - p) / (2 * p - 1)
    kinks = np.array([-60 * b, turn - degree, -degree, 0.0, bits / 2 - degree, 60 * b])
    ends = degree + np.unique(kinks.clip(-60 * b, 60 * b))
    total = 0.0
    for start, end in pairwise(ends):
        if integrand((start + end) / 2) > 0:
            total += quad(integrand, start, end, epsabs=0, epsrel=1e-11, limit=500)[0]
    return total


@pytest.mark.dear
@parametrize(
    ("bits", "degree"),
    [
        (4, 2),
        (1, 0),
        (1, 1),
        (12, 9),
    ],
)
@parametrize(
    ("epsilon1", "epsilon2"),
    [
        (0.1, 0.9),
        (1.0, 1.0),
        (5.0, 3.0),
    ],
)
@of_clip
def test_log_prob_is_the_definition_integrated(clip, epsilon1, epsilon2, bits, degree):
    mechanism = DPRR(epsilon1, epsilon2, clip)
    law = mechanism.law(bits, degree)
    for k1, k0 in np.ndindex(degree + 1, bits - degree + 1):
        expected = by_quad(mechanism, bits, degree, k1, k0)
        found = np.exp(law.log_prob([k1], [k0]))
        assert found == approx(expected, rel=1e-8), (k1, k0)


@pytest.mark.dear
@parametrize(
    ("bits", "degree", "epsilons", "clip", "kept", "added"),
    [
        (1, 1, (0.1, 0.9), True, 1, 0),
        (30, 29, (3.0, 0.2), True, 4, 1),
        (300, 0, (0.0067, 8.0), True, 0, 252),
        (300, 3, (30.0, 0.01), False, 0, 40),
        (3000, 3, (1.5, 7.6), False, 3, 67),
        (3000, 2685, (0.27, 8.0), False, 2140, 2),
        (3000, 1500, (0.1, 0.9), True, 700, 300),
        (3000, 1, (0.05, 20.0), True, 1, 0),
    ],
)
def test_quadrature_lies_within_the_rigorous_enclosure(
    bits, degree, epsilons, clip, kept, added
):
    law = DPRR(*epsilons, clip).law(bits, degree)
    with precision():
        enclosure = law.enclosure(kept, added)
        assert enclosure.rel_accuracy_bits() > 83, "relative radius above 1e-25"
        exact = float(enclosure.log())
    assert law.log_prob([kept], [added]) == approx(exact, abs=1e-10)


def test_ratio_tables_enclosures_and_scores_agree():
    mechanism = DPRR(0.4, 1.1)
    table = mechanism.log_ratio_table(7, 3)
    exact = np.empty((2, 4, 4))
    with precision():
        for cell in np.ndindex(exact.shape):
            exact[cell] = float(mechanism.ratio_enclosure(7, 3, *cell).log())
    close(table, exact, rtol=0, atol=1e-10)
    (pair,) = [p for p in NeighbourList(8).pairs() if p.data.sum() == 4]
    output = np.array([[1, 0, 1, 1, 0, 1, 0]])  # own bit is at place 3
    assert mechanism.score(output, pair) == approx(table[1, 2, 1], abs=1e-10)


def moment(law, centre, power):
    return law @ (np.arange(len(law)) - centre) ** power


@pytest.mark.dear
@parametrize(
    ("bits", "degree"),
    [
        (3, 0),
        (9, 9),
        (200, 120),
    ],
)
@of_clip
def test_degree_moments_by_enumeration(clip, bits, degree):
    mechanism = DPRR(0.3, 1.2, clip)
    law = degree_law(mechanism, bits, degree)
    mean = moment(law, 0, 1)
    assert law.sum() == approx(1, abs=1e-10)
    assert mechanism.expected_degree(degree, bits) == approx(mean, rel=1e-9)
    variance = moment(law, mean, 2)
    assert mechanism.degree_variance(degree, bits) == approx(variance, rel=1e-9)


@pytest.mark.dear
@parametrize(
    ("epsilon", "bits", "degree", "expected"),
    [
        (1.2, 499, 0, 10.90),
        (1.2, 499, 100, 6),
        (1.0, 3781, 0, 13.05),
    ],
)
def test_the_kurtosis_that_audits_declare_is_that_of_the_law(
    epsilon, bits, degree, expected
):
    """It is largest for isolated users."""
    law = degree_law(DPRR.allocated(epsilon, bits + 1), bits, degree)
    mean = moment(law, 0, 1)
    kurtosis = moment(law, mean, 4) / moment(law, mean, 2) ** 2
    assert kurtosis == approx(expected, abs=3 if degree else 0.01)
    assert kurtosis < KURTOSIS


def test_the_negative_denominator_of_the_printed_formula():
    printed = DPRR(0.1, 0.9, clip_degree=False)
    p, bits = printed.keep, 20
    turn = bits * (1 - p) / (2 * p - 1)
    noisy = np.array([-1e12, -turn - 1e-6, -turn + 1e-6, -1.0, 0.0])
    assert printed.rate(noisy, bits).tolist() == [1, 1, 0, 0, 0]
    assert not DPRR(0.1, 0.9).rate(noisy, bits).any()


def test_q_reaches_one_at_half_the_bits():
    rate = DPRR(0.1, 0.9).rate([9.99, 10.0, 10.01, 1e9], 20)
    assert rate[0] < 1
    close(rate[1:], 1, rtol=1e-15)


def test_the_published_allocation_overspends_on_small_graphs():
    published = DPRR.allocated(0.5, n_max=20)
    assert published.epsilon1 == approx(math.sqrt(8 / 19))
    assert published.epsilon2 == approx(0.45)
    assert DPRR.allocated(1.0, n_max=3783).epsilon1 == approx(0.1)
    assert DPRR.allocated_within(0.5, 34).epsilon2 > 0


@given(st.floats(0.01, 5), st.integers(2, 10**6))
def test_the_repaired_allocation_stays_within_epsilon(epsilon, n_max):
    assume(8 / (n_max - 1) < (0.999 * epsilon) ** 2)
    repaired = DPRR.allocated_within(epsilon, n_max)
    spent = Fraction(repaired.epsilon1) + Fraction(repaired.epsilon2)
    assert Fraction(epsilon) * (1 - Fraction(1, 2**50)) <= spent <= Fraction(epsilon)
    assert repaired.epsilon1 == DPRR.allocated(epsilon, n_max).epsilon1


def test_degrees_are_counts_of_ones():
    outputs = np.array(
        [
            [1, 0, 1],
            [0, 0, 0],
        ],
        np.int8,
    )
    assert DPRR(0.1, 0.9).degree(outputs).tolist() == [2, 0]
    counted = NoisyDegree(RandomisedResponse(50.0))
    found = counted(bits_with(2, 5), 3, rng=np.random.default_rng(0))
    assert found.tolist() == [2, 2, 2]
    assert counted.output_range(bits_with(3, 9)) == (0, 9)


def test_a_vanishing_bit_budget_is_a_fair_coin():
    """If p rounds to 1/2, the output is independent of which bits are one."""
    mechanism = DPRR(1.0, 1e-20)
    pair = Pair(bits_with(2, 4), bits_with(2, 4)[::-1].copy())
    outputs = mechanism.distribution(pair.data).outcomes
    assert mechanism.keep == 0.5
    close(mechanism.score(outputs, pair), 0, atol=1e-12)


@given(st.data(), st.integers(2, 30), budgets, budgets, st.booleans())
def test_no_class_of_any_pair_exceeds_the_claim(data, nodes, epsilon1, epsilon2, clip):
    pair = data.draw(NeighbourList(nodes).strategy())
    bits = data.draw(st.lists(st.booleans(), min_size=nodes - 1, max_size=nodes - 1))
    mechanism = DPRR(epsilon1, epsilon2, clip)
    degree = min(pair.data.sum(), pair.neighbour.sum())
    largest = np.abs(mechanism.log_ratio_table(nodes - 1, int(degree))).max()
    (score,) = mechanism.score(np.array([bits], np.int8), pair)
    assert largest <= epsilon1 + epsilon2 + 1e-9
    assert abs(score) <= largest + 1e-9


@parametrize("degree", [0, 2, 4])
def test_the_statistic_has_the_law_and_the_loss_of_the_whole_output(degree):
    mechanism = DPRR(0.4, 0.9)
    statistic = DPRRStatistic(mechanism, 5, degree)
    pair = statistic.pair
    assert np.flatnonzero(pair.data != pair.neighbour).tolist() == [0]
    assert pair.neighbour.sum() == degree
    for data in (pair.data, pair.neighbour):
        whole = mechanism.distribution(data)
        reduced = statistic.distribution(data)
        values = statistic.reduce(whole.outcomes)
        for outcome, probability in zip(reduced.outcomes, reduced.floats, strict=True):
            expected = whole.floats[(values == outcome).all(axis=1)].sum()
            assert probability == approx(expected, rel=1e-9)
    full, kept = (
        loss(each, pair.data, pair.neighbour).upper for each in (mechanism, statistic)
    )
    assert kept == approx(full, rel=1e-8)
