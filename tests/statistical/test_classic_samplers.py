"""Every classic sampler has the law that it states.

Each assertion has alpha = 1e-6: the null hypothesis is that the sampler is right, runs are independent and their number
is fixed. Finite outputs by a chi-square test, cells pooled until 20 are expected in each; continuous ones by
Kolmogorov and Smirnov against their distribution function.
"""

import math

import numpy as np
import pytest
from scipy import stats

from mechanisms.classic import (
    SVT1,
    SVT2,
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
from mechanisms.classic.noise import laplace_noise
from tests.statistical.goodness import check, chi_square_p, follows

pytestmark = pytest.mark.statistical
ANSWERS = np.array([1.0, -0.5, 2.0, 0.7])
RUNS = 200_000


def rng_of(*key):
    return np.random.default_rng([11235, *key])


FINITE = [
    (SVT1(0.8, 1, 0.5), ANSWERS),
    (SVT1(0.8, 2, 0.5), ANSWERS),
    (SVT2(0.8, 2, 0.5), ANSWERS),
    (SVT4(0.8, 3, 0.5), ANSWERS),
    (SVT5(0.8, 0.5), ANSWERS),
    (SVT6(0.8, 0.5), ANSWERS),
    (NoisyMax1(0.8), ANSWERS),
    (NoisyMax2(0.8), ANSWERS),
    (ExponentialMechanism(0.8), ANSWERS),
    (TruncatedGeometric(0.1, 5), np.array([2.0])),
    (TruncatedGeometric(0.1, 5, "natural"), np.array([0.0])),
    (OneTimeRappor(2, 6, 0.7), np.array([3.0])),
    (Rappor(3, 6, 0.5, 0.2, 0.9), np.array([4.0])),
    (GaussianAbove(Gaussian(1.0, 0.1)), np.array([1.0])),
]


@pytest.mark.dear
@pytest.mark.parametrize(
    ("mechanism", "data"), FINITE, ids=lambda x: getattr(x, "name", "")
)
def test_finite_outputs(mechanism, data):
    outputs = mechanism(data, RUNS, rng=rng_of(1))
    follows(outputs, mechanism.distribution(data), mechanism.name)


@pytest.mark.parametrize(
    "mechanism", [SVT3(0.8, 2, 0.5), NumericSVT(0.8, 2, 0.5)], ids=lambda m: m.name
)
def test_flags_of_the_numeric_techniques(mechanism):
    message = mechanism(ANSWERS, RUNS, rng=rng_of(2))[:, : len(ANSWERS)]
    follows(message, mechanism.flags(ANSWERS), mechanism.name)


@pytest.mark.parametrize(
    "mechanism", [SVT3(0.8, 1, 0.5), NumericSVT(0.8, 1, 0.5)], ids=lambda m: m.name
)
def test_numbers_of_the_numeric_techniques(mechanism):
    """Given that the third query was the first above, its number has the stated density, integrated on a grid."""
    outputs = mechanism(ANSWERS, RUNS, rng=rng_of(3))
    numbers = outputs[outputs[:, 2] == 1, 6]
    grid = np.linspace(-60, 80, 28_001)
    rows = np.full((len(grid), 8), np.nan)
    rows[:, :4] = [0, 0, 1, -1]
    rows[:, 6] = grid
    cdf = np.cumsum(np.exp(mechanism.log_prob(rows, ANSWERS)))
    assert len(numbers) > 20_000
    check(
        stats.kstest(
            numbers, lambda y: np.interp(y, grid + 0.0025, cdf / cdf[-1])
        ).pvalue,
        mechanism.name,
    )


@pytest.mark.parametrize(
    ("mechanism", "data", "centre"),
    [
        (LaplaceSum(0.5), ANSWERS, [ANSWERS.sum()]),
        (LaplaceParallel(0.5, 3), ANSWERS[:1], [1.0] * 3),
        (NoisyHistogram1(0.5), ANSWERS, ANSWERS),
        (NoisyHistogram2(0.5), ANSWERS, ANSWERS),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_laplace_coordinates(mechanism, data, centre):
    """All coordinates together: independent, so that their standardised values are one sample."""
    outputs = mechanism(data, 50_000, rng=rng_of(4))
    check(
        stats.kstest(((outputs - centre) / mechanism.scale).ravel(), "laplace").pvalue,
        mechanism.name,
    )


def test_prefix_sums():
    outputs = PrefixSum(0.5)(ANSWERS, 50_000, rng=rng_of(5))
    noise = (np.diff(outputs, axis=1, prepend=0.0) - ANSWERS) / 2
    check(
        stats.kstest(noise.ravel(), "laplace").pvalue, "first differences of PrefixSum"
    )


@pytest.mark.parametrize(
    "mechanism", [NoisyMax3(0.5), NoisyMax4(0.5)], ids=lambda m: m.name
)
def test_released_maxima(mechanism):
    outputs = mechanism(ANSWERS, 100_000, rng=rng_of(6))
    check(
        stats.kstest(outputs, lambda y: mechanism.cdf(y, ANSWERS)).pvalue,
        mechanism.name,
    )


def test_gaussian():
    mechanism = Gaussian(1.0, 1e-3)
    outputs = mechanism(ANSWERS, 50_000, rng=rng_of(7))
    check(
        stats.kstest(((outputs - ANSWERS) / mechanism.sigma).ravel(), "norm").pvalue,
        mechanism.name,
    )


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_naive_laplace_is_laplace_up_to_rounding(precision):
    outputs = NaiveLaplace(0.5, precision)(np.array([1.0]), 100_000, rng=rng_of(8))
    check(
        stats.kstest((outputs.astype(float) - 1) / 2, "laplace").pvalue,
        f"NaiveLaplace {precision}",
    )


@pytest.mark.parametrize("sampling", ["poisson", "shuffled"])
def test_batch_sums(sampling):
    """Both batches together in 20 x 20 cells, whose probabilities are the stated density summed over 30 x 30 points."""
    mechanism, records = BatchSums(0.5, 2, sampling), np.array([-1.0, -1.0, -1.0, 1.0])
    outputs = mechanism(records, 100_000, rng=rng_of(9))
    grid = -7 + 0.02 * (np.arange(600) + 0.5)
    points = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
    mass = 0.02**2 * np.exp(mechanism.log_prob(points, records)).reshape(
        20, 30, 20, 30
    ).sum(axis=(1, 3))
    assert mass.sum() == pytest.approx(1, abs=1e-6)
    seen, *_ = np.histogram2d(*outputs.T, bins=20, range=[(-7, 5), (-7, 5)])
    assert seen.sum() == len(outputs)
    check(chi_square_p(seen.ravel(), mass.ravel()), mechanism.name)


def test_laplace_noise_is_laplace_and_its_signs_are_independent_coins():
    noise = laplace_noise(
        400_001, rng_of(10), scale=3.0
    )  # an odd number: the last byte of sign bits is cut
    check(stats.kstest(noise / 3, "laplace").pvalue, "laplace_noise")
    positive = noise > 0
    large = np.abs(noise) > 3 * math.log(2)
    for other, what in (
        (large, "size"),
        (np.roll(positive, 1), "previous sign"),
        (np.roll(positive, 8), "sign a byte ago"),
    ):
        table = np.bincount(2 * positive + other, minlength=4)
        check(stats.chisquare(table).pvalue, f"sign and {what}")
