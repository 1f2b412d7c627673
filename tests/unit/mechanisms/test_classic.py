"""The laws of the classic mechanisms against closed forms, integration and enumeration."""

import math
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
from tests.statistical.stated_laws import loss, outputs_of

approx = pytest.approx
parametrize = pytest.mark.parametrize

RNG = np.random.default_rng
ANSWERS = np.array([1.0, -0.5, 2.0])


TEN = [1.0] * 10
HALF = [2.0] * 5 + [0.0] * 5


@parametrize(
    ("mechanism", "first", "second", "printed", "digits"),
    [
        (SVT1(0.1, 1, 0.5), TEN, HALF, 0.0885, 5e-5),
        (SVT4(0.1), TEN, HALF, 0.1725, 5e-5),
        (SVT6(0.1), TEN, HALF, 0.420, 5e-4),
        (NoisyMax1(0.1), [1.0] * 5, [0, 2, 2, 2, 2], 0.0946, 5e-5),
    ],
)
def test_the_epsilon_that_the_benchmark_prints(
    mechanism, first, second, printed, digits
):
    found = loss(mechanism, first, second)
    assert (found.lower, found.upper) == approx((printed, printed), abs=digits)


@parametrize(
    ("mechanism", "first", "second", "expected"),
    [
        (SVT5(0.1), TEN, HALF, math.inf),
        (LaplaceSum(0.25), [1.0, 1.0], [2.0, 2.0], 0.5),
        (LaplaceParallel(0.25, 20), [1.0], [0.0], 5.0),
        (NoisyHistogram1(0.25), [1.0, 1.0], [2.0, 1.0], 0.25),
        (NoisyHistogram2(0.25), [1.0, 1.0], [2.0, 1.0], 4.0),
        (PrefixSum(0.25), [1.0] * 4, [2.0] * 4, 1.0),
    ],
)
def test_noise_loses_the_differences_over_its_scale(mechanism, first, second, expected):
    assert loss(mechanism, first, second).lower == expected


@parametrize(
    ("logarithm", "ratio"),
    [
        ("binary", 33 / 32),
        ("natural", 9 / 8),
    ],
)
def test_a_truncated_geometric_count_loses_its_spent_budget(logarithm, ratio):
    mechanism = TruncatedGeometric(0.1, logarithm=logarithm)
    found = loss(mechanism, [2.0], [3.0])
    assert found.lower == approx(math.log(ratio), abs=1e-15)
    assert mechanism.spent == approx(math.log(ratio))


@parametrize("gap", [0.0, 0.7, 3.0])
def test_noisy_max_of_two_answers(gap):
    """P(second wins) is e^-d (1 + d/2)/2 for Laplace noise, and e^-d/2 for exponential noise."""
    d = gap / 2  # in units of the scale 2/ε at ε = 1
    laplace = NoisyMax1(1.0).distribution([gap, 0.0]).floats[1]
    exponential = NoisyMax2(1.0).distribution([gap, 0.0]).floats[1]
    assert laplace == approx(math.exp(-d) * (1 + d / 2) / 2, rel=1e-14)
    assert exponential == approx(math.exp(-d) / 2, rel=1e-14)


def test_crossing_probability_if_a_rate_vanishes():
    """With ρ = ν the integrand is constant between 0 and 2.

    P(2 + X < Y) = e^-2 (1 + 2/2)/2.
    """
    one = Fraction(1)
    two = Fraction(2)
    exact = Crossing([two], Fraction(0), one, one).probability([two], [])
    assert float(exact) == approx(math.exp(-2), rel=1e-15)


def test_released_maximum_with_exponential_noise_shows_the_largest_answer():
    """Below 2 only the first input is possible, with probability (1 − e^(−ε/2))^k."""
    mechanism = NoisyMax4(1.0)
    assert mechanism.log_prob([1.5], np.full(3, 2.0)) == -np.inf
    below = mechanism.cdf([2.0], np.ones(3))
    assert below == approx((1 - math.exp(-0.5)) ** 3)


@parametrize("mechanism", [NoisyMax3(0.5), NoisyMax4(0.5)])
def test_density_of_a_released_maximum_integrates_to_its_distribution_function(
    mechanism,
):
    def density(y):
        return np.exp(mechanism.log_prob([y], ANSWERS))[0]

    for end in (1.2, 300.0):
        kinks = sorted(x for x in ANSWERS if x < end)
        mass, _ = integrate.quad(density, -100, end, points=kinks, limit=500)
        expected = mechanism.cdf([end], ANSWERS)[0]
        assert mass == approx(expected, abs=1e-9)


@pytest.mark.dear
@parametrize(
    "mechanism",
    [SVT3(0.8, 1, 0.5), SVT3(0.8, 2, 0.5), NumericSVT(0.8, 2, 0.5)],
    ids=lambda m: m.name,
)
def test_density_of_released_answers_integrates_to_the_law_of_the_flags(mechanism):
    """For outputs with at most one answer."""
    law = mechanism.flags(ANSWERS)
    for flags, probability in zip(law.outcomes, law.floats, strict=True):
        above = flags == 1
        if above.sum() > 1:
            continue

        def density(answer, flags=flags, above=above):
            row = np.r_[flags, np.where(above, answer, np.nan)]
            return np.exp(mechanism.log_prob(row[None], ANSWERS))[0]

        mass = density(0.0)
        if above.any():
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
    ones = [np.flatnonzero(mechanism.bloom([x])) for x in (0.0, 1.0)]
    assert [each.tolist() for each in ones] == [
        [0, 11, 18],
        [3, 10, 13],
    ]
    assert mechanism.ones == approx((0.475, 0.525), abs=2**-52)


def test_rappor_attains_the_theorem_for_filters_that_share_no_bit():
    """Theorem 2: h ln(q*(1−p*)/(p*(1−q*))) for two filters of h ones each that share none."""
    mechanism = Rappor(1, 4)
    filters = [mechanism.bloom([x]) for x in range(6)]
    other = next(x for x in range(6) if not (filters[0] & filters[x]).any())
    low, high = mechanism.ones
    expected = math.log(high * (1 - low) / (low * (1 - high)))
    assert loss(mechanism, [0], [other]).upper == approx(expected, rel=1e-12)


@parametrize(
    ("eps", "delta"),
    [
        (1.0, 1e-5),
        (0.1, 0.01),
        (8.0, 1e-6),
    ],
)
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
    found = float(shown.delta)
    expected = GaussianDP(1 / gaussian.sigma).delta_at(10.0)
    assert found == approx(expected, rel=1e-9)
    assert found > 0.04


OUTPUTS = RNG(0).normal(-1, 2, (5, 2))


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
    batch = np.zeros_like(OUTPUTS)
    for drawn in product((0, 1), repeat=4):
        batch += stats.norm.pdf(OUTPUTS, np.dot(drawn, records), 0.7) / 16
    found = BatchSums(0.7, 2, "poisson").log_prob(OUTPUTS, records)
    assert np.exp(found) == approx(batch.prod(axis=1), rel=1e-12)


@pytest.mark.dear
@parametrize("scale", [0.1, 1.0, 10.0])
def test_possible_agrees_with_all_float32_outputs(scale):
    """All 2^25 outputs for 1 against outputs for 0 and 1, and their neighbours."""
    mechanism = NaiveLaplace(1 / scale, "float32")
    one = np.float32(1)
    drawn = [outputs_of(mechanism, [x], 1500) for x in (0.0, 1.0)]
    outputs = np.concatenate(drawn)
    above = np.nextafter(outputs, np.float32(np.inf))
    outputs = np.concatenate([outputs, above])
    v = np.arange(1, 2**24 + 1, dtype=np.float32) * np.float32(2**-24)
    noise = (one / np.float32(1 / scale)) * -np.log(v)
    # Noise descends, so that each list of outputs is sorted or reversed.
    listed = np.zeros(len(outputs), bool)
    for reached in ((one + noise)[::-1], one - noise):
        at = np.searchsorted(reached, outputs).clip(max=len(reached) - 1)
        listed |= reached[at] == outputs
    claimed = mechanism.possible(outputs, [1.0])
    assert not (listed & ~claimed).any()
    assert (claimed & ~listed).mean() < 0.02


@parametrize("kind", [np.float32, np.float64])
def test_logarithms_do_not_depend_on_their_place_in_an_array(kind):
    """``possible`` assumes it of np.log."""
    v = RNG(1).random(1003, dtype=kind) + kind(1e-3)
    singly = np.array([np.log(x[None])[0] for x in v])
    assert (np.log(v) == singly).all()
    assert (np.log(v[5:]) == singly[5:]).all()


@parametrize("precision", ["float32", "float64"])
def test_more_than_half_of_naive_laplace_outputs_betray_their_input(precision):
    """The share that is impossible for the other answer is some 60 % at ε = .1."""
    mechanism = NaiveLaplace(0.1, precision)
    outputs = outputs_of(mechanism, [0.0], 2000)
    assert (mechanism.log_prob(outputs, [1.0]) == -np.inf).mean() > 0.5


PRECISIONS = ["float32", "float64"]


@given(
    st.floats(-1e4, 1e4),
    st.floats(0.01, 100),
    st.sampled_from(PRECISIONS),
    st.integers(0, 2**32 - 1),
    st.integers(-40, 40),
)
def test_own_outputs_are_possible(answer, epsilon, precision, seed, magnitude):
    mechanism = NaiveLaplace(epsilon, precision)
    data = np.array([answer * 2.0**magnitude])
    outputs = mechanism(data, 300, rng=RNG(seed))
    assert outputs.dtype == precision
    assert mechanism.possible(outputs, data).all()


@given(st.floats(0.05, 20), st.sampled_from(PRECISIONS), st.sampled_from([-0.3, 0, 1]))
def test_the_ends_of_the_lattice_are_possible(epsilon, precision, answer):
    """The smallest and the largest uniform numbers, at which the windows of ``possible`` are cut off."""
    mechanism = NaiveLaplace(epsilon, precision)
    kind = np.dtype(precision).type
    size = 2.0**mechanism.bits
    v = np.r_[np.arange(1, 40), size - np.arange(40)] / size
    noise = (kind(1) / kind(epsilon)) * -np.log(v.astype(kind))
    outputs = kind(answer) + np.concatenate([noise, -noise])
    assert mechanism.possible(outputs, [answer]).all()


def test_prefix_sums_have_the_density_of_their_counts():
    counts = NoisyHistogram1(0.5)
    outputs = outputs_of(counts, ANSWERS, 4)
    found = PrefixSum(0.5).log_prob(np.cumsum(outputs, axis=1), ANSWERS)
    assert found == approx(counts.log_prob(outputs, ANSWERS), abs=1e-9)


@parametrize("kind", [SVT3, NumericSVT])
def test_a_number_is_released_for_each_answer_above(kind):
    mechanism = kind(1.0, 2)
    outputs = outputs_of(mechanism, ANSWERS, 100)
    flags, numbers = np.split(outputs, 2, axis=1)
    assert (np.isnan(numbers) == (flags != 1)).all()
    assert np.isfinite(mechanism.log_prob(outputs, ANSWERS)).all()
