"""The laws of the classic mechanisms against closed forms, integration and enumeration."""

import math
from collections import Counter
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from auditdp import GaussianDP
from mechanisms.classic import (
    SVT1,
    SVT3,
    SVT4,
    SVT5,
    SVT6,
    BatchSums,
    ExponentialMechanism,
    Gaussian,
    GaussianAbove,
    LaplaceParallel,
    LaplaceSum,
    NaiveLaplace,
    NoisyHistogram1,
    NoisyHistogram2,
    NoisyMax1,
    NoisyMax2,
    NoisyMax3,
    NoisyMax4,
    NumericSVT,
    OneTimeRappor,
    PrefixSum,
    Rappor,
    TruncatedGeometric,
)
from mechanisms.classic.crossing_law import Crossing
from tests.statistical.stated_laws import loss

approx = pytest.approx
parametrize = pytest.mark.parametrize

ANSWERS = np.array([1.0, -0.5, 2.0])
vectors = st.lists(st.integers(-4, 4), min_size=1, max_size=4)
seeds = st.integers(0, 2**32 - 1)


TEN = [1.0] * 10
HALF = [2.0] * 5 + [0.0] * 5
ONE = [1.0]
TWO = [1.0, 1.0]


@parametrize(
    ("mechanism", "first", "second", "expected", "digits"),
    [
        (SVT1(0.1, 1, 0.5), TEN, HALF, 0.0885, 5e-5),
        (SVT4(0.1), TEN, HALF, 0.1725, 5e-5),
        (SVT6(0.1), TEN, HALF, 0.420, 5e-4),
        (SVT5(0.1), TEN, HALF, math.inf, 0),
        (NoisyMax1(0.1), [1.0] * 5, [0, 2, 2, 2, 2], 0.0946, 5e-5),
        (LaplaceSum(0.25), ONE, [2.0], 0.25, 0),
        (LaplaceSum(0.25), TWO, [2.0, 2.0], 0.5, 0),
        (LaplaceParallel(0.25, 20), ONE, [0.0], 5.0, 0),
        (NoisyHistogram1(0.25), TWO, [2.0, 1.0], 0.25, 0),
        (NoisyHistogram2(0.25), TWO, [2.0, 1.0], 4.0, 0),
        (PrefixSum(0.25), [1.0] * 4, [2.0] * 4, 1.0, 0),
        (TruncatedGeometric(0.1), [2.0], [3.0], math.log(33 / 32), 1e-15),
        (
            TruncatedGeometric(0.1, logarithm="natural"),
            [2.0],
            [3.0],
            math.log(9 / 8),
            1e-15,
        ),
    ],
)
def test_exact_epsilon_of_a_pair(mechanism, first, second, expected, digits):
    """The first five are printed by the benchmark.

    Additive noise loses Σ|difference|/scale.
    """
    found = loss(mechanism, np.array(first, float), np.array(second, float))
    assert found.lower == approx(expected, abs=digits)
    if math.isfinite(expected):
        assert found.upper == approx(expected, abs=digits)
    if isinstance(mechanism, TruncatedGeometric):
        assert mechanism.spent == approx(expected)


@parametrize("gap", [0.0, 0.7, 3.0])
def test_noisy_max_of_two_answers(gap):
    """P(second wins) is e^-d (1 + d/2)/2 for Laplace noise, and e^-d/2 for exponential noise."""
    d = gap / 2  # in units of the scale 2/ε at ε = 1
    laplace = NoisyMax1(1.0).distribution([gap, 0.0]).floats[1]
    exponential = NoisyMax2(1.0).distribution([gap, 0.0]).floats[1]
    assert laplace == approx(math.exp(-d) * (1 + d / 2) / 2, rel=1e-14)
    assert exponential == approx(math.exp(-d) / 2, rel=1e-14)


def test_crossing_probability_is_the_integral_that_defines_it():
    below = Fraction(-1, 2), Fraction(1)
    above = (Fraction(2),)
    centre = Fraction(1, 3)

    def integrand(tau):
        density = stats.laplace.pdf(tau, 1 / 3, 2)
        falls = math.prod(stats.laplace.cdf(tau, float(q), 3) for q in below)
        rises = math.prod(stats.laplace.sf(tau, float(q), 3) for q in above)
        return density * falls * rises

    direct, error = integrate.quad(
        integrand, -80, 80, points=[-0.5, 1 / 3, 1, 2], limit=400, epsabs=1e-13
    )
    crossing = Crossing([*below, *above], centre, Fraction(2), Fraction(3))
    exact = crossing.probability(below, above)
    assert abs(float(exact.mid()) - direct) < 1e-10 + error
    assert float(exact.rad()) < 1e-60


def test_crossing_probability_if_a_rate_vanishes():
    """With ρ = ν the integrand is constant between 0 and 2.

    P(2 + X < Y) = e^-2 (1 + 2/2)/2.
    """
    one = Fraction(1)
    two = Fraction(2)
    exact = Crossing([two], Fraction(0), one, one).probability([two], [])
    assert float(exact.mid()) == approx(math.exp(-2), rel=1e-15)


def test_sparse_vector_lists_every_output_once():
    """With c = 2 of 4 queries.

    1 + 4 without a second positive, and C(1,1) + C(2,1) + C(3,1) that stop.
    """
    outcomes = SVT1(0.5, 2).distribution(np.arange(4.0)).outcomes.tolist()
    assert len(outcomes) == 1 + 4 + 6
    assert outcomes[-1] == [0, 0, 1, 1]
    assert [1, 1, -1, -1] in outcomes


def test_released_maximum_with_exponential_noise_shows_the_largest_answer():
    """Below 2 only the first input is possible, with probability (1 − e^(−ε/2))^k."""
    mechanism = NoisyMax4(1.0)
    assert mechanism.log_prob(np.array([1.5]), np.full(3, 2.0)) == -np.inf
    below = mechanism.cdf(np.array([2.0]), np.ones(3))
    assert below == approx((1 - math.exp(-0.5)) ** 3)


@parametrize("mechanism", [NoisyMax3(0.5), NoisyMax4(0.5)])
def test_density_of_a_released_maximum_integrates_to_its_distribution_function(
    mechanism,
):
    def density(y):
        return np.exp(mechanism.log_prob(np.array([y]), ANSWERS))[0]

    for end in (1.2, 300.0):
        kinks = sorted(x for x in ANSWERS if x < end)
        mass, _ = integrate.quad(density, -100, end, points=kinks, limit=500)
        expected = mechanism.cdf(np.array([end]), ANSWERS)[0]
        assert mass == approx(expected, abs=1e-9)


@pytest.mark.dear
@parametrize(
    "mechanism",
    [SVT3(0.8, 1, 0.5), SVT3(0.8, 2, 0.5), NumericSVT(0.8, 2, 0.5)],
    ids=lambda m: m.name,
)
def test_density_of_released_answers_integrates_to_the_law_of_the_flags(mechanism):
    law = mechanism.flags(ANSWERS)
    for flags, probability in zip(law.outcomes, law.floats, strict=True):
        at = np.flatnonzero(flags == 1)
        if len(at) > 1:
            continue

        def density(v, flags=flags, at=at):
            numbers = np.full(3, np.nan)
            numbers[at] = v
            row = np.r_[flags, numbers][None]
            return np.exp(mechanism.log_prob(row, ANSWERS))[0]

        mass = density(0.0)
        if len(at):
            kinks = [-0.5, 0.5, 1, 2]
            mass, _ = integrate.quad(density, -150, 150, points=kinks, limit=500)
        assert mass == approx(probability, abs=1e-8)


def test_truncated_geometric_is_the_geometric_law():
    """(1−α)/(1+α) α^|z−c| inside and α^|z−c|/(1+α) at the ends, α = 2^k/(2^k + 1) (Ghosh et al. 2009)."""
    mechanism = TruncatedGeometric(0.3, 5)
    alpha = Fraction(2**mechanism.halvings, 2**mechanism.halvings + 1)
    for count in range(6):
        wanted = [alpha ** abs(z - count) / (1 + alpha) for z in range(6)]
        wanted[1:5] = [p * (1 - alpha) for p in wanted[1:5]]
        assert list(mechanism.distribution([count]).probabilities) == wanted


def test_bloom_filters_are_those_of_dp_sniper():
    """MurmurHash3 of "0" and "1", seeds 0 to 3, modulo 20: six places differ."""
    mechanism = OneTimeRappor()
    ones = [np.flatnonzero(mechanism.bloom(np.array([x]))) for x in (0.0, 1.0)]
    assert [each.tolist() for each in ones] == [[0, 11, 18], [3, 10, 13]]
    assert mechanism.ones == approx((0.475, 0.525), abs=2**-52)


def test_rappor_attains_the_theorem_for_filters_that_share_no_bit():
    """Theorem 2: h ln(q*(1−p*)/(p*(1−q*))) for two filters of h ones each that share none."""
    mechanism = Rappor(1, 4)
    a, b = next(
        (a, b)
        for a, b in product(range(6), repeat=2)
        if not (mechanism.bloom(np.array([a])) & mechanism.bloom(np.array([b]))).any()
    )
    low, high = mechanism.ones
    expected = math.log(high * (1 - low) / (low * (1 - high)))
    assert loss(mechanism, [a], [b]).upper == approx(expected, rel=1e-12)


@parametrize(("eps", "delta"), [(1.0, 1e-5), (0.1, 0.01), (8.0, 1e-6)])
def test_analytic_gaussian_noise_is_the_least_that_holds(eps, delta):
    mu = 1 / Gaussian(eps, delta).sigma
    assert GaussianDP(mu).delta_at(eps) <= delta
    assert GaussianDP(mu * (1 + 1e-7)).delta_at(eps) > delta


def test_other_calibrations_of_gaussian_noise():
    assert Gaussian(1.0, 1e-5, "classic").sigma == approx(4.8448, abs=1e-4)
    assert Gaussian(0.5, 1e-5, "laplace").sigma == 2.0


def test_thresholded_gaussian_shows_the_whole_delta():
    """The best event is a half line, so one bit has the δ(ε) of the noise (Balle & Wang 2018, Theorem 8)."""
    gaussian = Gaussian(10.0, 0.01, "classic")
    shown = loss(GaussianAbove(gaussian), [1.0], [0.0], epsilon=10.0)
    found = float(shown.delta.mid())
    expected = GaussianDP(1 / gaussian.sigma).delta_at(10.0)
    assert found == approx(expected, rel=1e-9)
    assert found > 0.04


OUTPUTS = np.random.default_rng(0).normal(-1, 2, (5, 2))


def test_shuffled_law_is_the_mixture_over_all_orders():
    records = np.array([-1.0, -1.0, -1.0, 1.0])
    direct = np.zeros(5)
    for order in permutations(records):
        sums = np.array(order).reshape(2, 2).sum(axis=1)
        direct += stats.norm.pdf(OUTPUTS, sums, 0.7).prod(axis=1) / 24
    found = BatchSums(0.7, 2, "shuffled").log_prob(OUTPUTS, records)
    assert np.exp(found) == approx(direct, rel=1e-12)


def test_poisson_law_is_the_mixture_over_all_batches():
    records = np.array([-1.0, -1.0, 0.0, 1.0])
    sums = Counter(float(np.dot(drawn, records)) for drawn in product((0, 1), repeat=4))
    batch = np.zeros_like(OUTPUTS)
    for value, count in sums.items():
        batch += count / 16 * stats.norm.pdf(OUTPUTS, value, 0.7)
    found = BatchSums(0.7, 2, "poisson").log_prob(OUTPUTS, records)
    assert np.exp(found) == approx(batch.prod(axis=1), rel=1e-12)


@pytest.mark.dear
@parametrize("scale", [0.1, 1.0, 10.0])
def test_possible_agrees_with_all_float32_outputs(scale):
    """All 2^25 outputs for 1, listed.

    1,500 outputs for 0 and for 1, and their float neighbours, looked up.
    """
    mechanism = NaiveLaplace(1 / scale, "float32")
    rng = np.random.default_rng(7)
    drawn = [mechanism(np.array([x]), 1500, rng=rng) for x in (0.0, 1.0)]
    outputs = np.concatenate(drawn)
    outputs = np.concatenate([outputs, np.nextafter(outputs, np.float32(np.inf))])
    z = -np.log(np.arange(1, 2**24 + 1, dtype=np.float32) * np.float32(2**-24))
    noise = (np.float32(1) / np.float32(1 / scale)) * z
    listed = np.zeros(len(outputs), bool)
    # Noise descends, so that each list of outputs is sorted or reversed.
    for reached in ((np.float32(1) + noise)[::-1], np.float32(1) - noise):
        at = np.minimum(np.searchsorted(reached, outputs), len(reached) - 1)
        listed |= reached[at] == outputs
    claimed = mechanism.possible(outputs, np.array([1.0]))
    assert not (listed & ~claimed).any()
    assert (claimed & ~listed).mean() < 0.02


def test_logarithms_do_not_depend_on_their_place_in_an_array():
    """``possible`` assumes it of np.log."""
    for kind in (np.float32, np.float64):
        v = np.random.default_rng(1).random(1003, dtype=kind) + kind(1e-3)
        singly = np.array([np.log(v[i : i + 1])[0] for i in range(len(v))])
        assert (np.log(v) == singly).all()
        assert (np.log(v[::-1].copy())[::-1] == singly).all()
        assert (np.log(v[5:]) == singly[5:]).all()


@parametrize("precision", ["float32", "float64"])
def test_more_than_half_of_naive_laplace_outputs_betray_their_input(precision):
    """The share that is impossible for the other answer is some 60 % at ε = .1."""
    mechanism = NaiveLaplace(0.1, precision)
    outputs = mechanism(np.array([0.0]), 2000, rng=np.random.default_rng(3))
    assert np.isfinite(mechanism.log_prob(outputs, np.array([0.0]))).all()
    assert (mechanism.log_prob(outputs, np.array([1.0])) == -np.inf).mean() > 0.5


@given(
    st.floats(-1e4, 1e4),
    st.floats(0.01, 100),
    st.sampled_from(["float32", "float64"]),
    seeds,
    st.integers(-40, 40),
)
def test_own_outputs_are_possible(answer, epsilon, precision, seed, magnitude):
    mechanism = NaiveLaplace(epsilon, precision)
    data = np.array([answer * 2.0**magnitude])
    outputs = mechanism(data, 300, rng=np.random.default_rng(seed))
    assert outputs.dtype == precision
    assert mechanism.possible(outputs, data).all()


@given(st.floats(0.05, 20), st.sampled_from(["float32", "float64"]))
def test_the_ends_of_the_lattice_are_possible(epsilon, precision):
    """The smallest and the largest uniform numbers, at which the windows of ``possible`` are cut off."""
    mechanism = NaiveLaplace(epsilon, precision)
    kind = np.dtype(precision).type
    size = 2.0**mechanism.bits
    v = np.r_[np.arange(1, 40), size - np.arange(40)] / size
    noise = (kind(1) / kind(epsilon)) * -np.log(v.astype(kind))
    for answer in (0.0, 1.0, -0.3):
        outputs = np.concatenate([kind(answer) + noise, kind(answer) - noise])
        assert mechanism.possible(outputs, np.array([answer])).all()


@given(vectors, st.integers(-3, 3))
def test_a_common_shift_changes_no_selection(data, shift):
    """Sparse vectors compare answers with the threshold, so that it shifts too."""
    data = np.array(data, float)
    alike = [
        (kind(0.5), kind(0.5)) for kind in (NoisyMax1, NoisyMax2, ExponentialMechanism)
    ]
    alike += [
        (kind(0.5, threshold=1.0), kind(0.5, threshold=1.0 + shift))
        for kind in (SVT1, SVT4, SVT6)
    ]
    for here, there in alike:
        shifted = there.distribution(data + shift).floats
        assert shifted == approx(here.distribution(data).floats, rel=1e-12)


@given(vectors, seeds)
def test_prefix_sums_are_sums_of_noisy_counts(data, seed):
    data = np.array(data, float)
    sums, counts = (
        mechanism(data, 4, rng=np.random.default_rng(seed))
        for mechanism in (PrefixSum(0.5), NoisyHistogram1(0.5))
    )
    assert sums == approx(np.cumsum(counts, axis=1), abs=1e-9)
    expected = NoisyHistogram1(0.5).log_prob(counts, data)
    assert PrefixSum(0.5).log_prob(sums, data) == approx(expected, abs=1e-9)


@given(vectors, seeds)
def test_a_number_is_released_for_each_answer_above(data, seed):
    data = np.array(data, float)
    for mechanism in (SVT3(1.0, 2), NumericSVT(1.0, 2)):
        outputs = mechanism(data, 20, rng=np.random.default_rng(seed))
        flags, numbers = np.split(outputs, 2, axis=1)
        assert (np.isnan(numbers) == (flags != 1)).all()
        assert np.isfinite(mechanism.log_prob(outputs, data)).all()
