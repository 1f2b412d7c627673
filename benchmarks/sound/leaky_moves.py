"""Leaky mechanisms whose values move too far, and wrong responses and choices; see ``leaky``."""

from __future__ import annotations

import math

import numpy as np

from auditdp import ApproxDP, GaussianDP, PureDP, ZeroConcentratedDP
from benchmarks.sound.case import KnownCases
from benchmarks.sound.laws import (
    discrete_level,
    discrete_table,
    gaussian_level,
    loss_of,
    rdp,
    softmax,
    two_sided,
)

MOVE_CASES = KnownCases()
loses = MOVE_CASES.loses
ENDLESS = math.inf
PURE, NORMAL, CONCENTRATED = PureDP(1.0), GaussianDP(1.0), ZeroConcentratedDP(0.5)
APPROXIMATE, RENYI = ApproxDP(1.0, 1e-5), rdp(2.0, 1.0)


# Values that move further than they seem to.


@loses(255.0, (np.array([100, 27], np.int8), np.array([100, 28], np.int8)))
def overflowing_sum(values, rng):
    """127 and −128 are 255 apart."""
    return int(values.sum(dtype=np.int8)) + rng.laplace()


@loses(255.0, (np.array([3, 3], np.uint8), np.array([3, 4], np.uint8)))
def unsigned_difference(values, rng):
    """0 and −1 are 0 and 255."""
    return int((values[:1] - values[1:])[0]) + rng.laplace()


@loses(3.0, ([1, 1, 1], [1, 1, 2]))
def value_in_three_sums(values, rng):
    """The last value is in every sum, each for 1."""
    return [sum(values[k:]) + rng.laplace() for k in range(3)]


@loses(8.0)
def broadcast_over_eight(x, rng):
    """Eight entries move by 1 each."""
    return x + rng.laplace(size=8)


@loses(4.0)
def filled_with_the_value(x, rng):
    """Four entries move by 1 each."""
    return (np.full(4, x) + rng.laplace(size=4)).tolist()


@loses(2.0, ([2, 3], [2, 4]))
def replaced_in_a_histogram(values, rng):
    """A replaced record moves two counts."""
    return np.bincount(values, minlength=6) + rng.laplace(size=6)


@loses(2.0, ([(0, 1.0), (1, 1.0)], [(0, 1.0)]))
def sum_and_number_for_all(rows, rng):
    """The sum and the number move by 1, each for 1."""
    return sum(value for _, value in rows) + rng.laplace(), len(rows) + rng.laplace()


@loses(math.sqrt(3), claim=NORMAL)
def three_releases(x, rng):
    """Three releases of 1-GDP."""
    return [x + rng.normal() for _ in range(3)]


@loses(2.0, claim=NORMAL)
def mean_of_four_normals(x, rng):
    """The mean has deviation 1/2."""
    return np.mean([x + rng.normal() for _ in range(4)])


@loses(math.sqrt(1 / 0.19), ((1.0, 0.0), (0.0, 0.0)), claim=NORMAL)
def correlated_normals(vector, rng):
    """Correlation 0.9: the first entry of the inverse is 1/0.19."""
    return rng.multivariate_normal(vector, [[1.0, 0.9], [0.9, 1.0]])


@loses(2.0, ((1.0, 0.0), (0.0, 0.0)), claim=NORMAL)
def difference_has_less_noise(vector, rng):
    """Noise z₁ and z₁ + z₂/√3: a move of the first has norm² 1 + 3."""
    first = rng.normal()
    return np.array(vector) + np.array([first, first + rng.normal() / math.sqrt(3)])


@loses(1.0, claim=ZeroConcentratedDP(0.4))
def two_for_the_cost_of_one(x, rng):
    """ρ is 1/2 for each."""
    return x + rng.normal(), x + rng.normal()


@loses(2.0, claim=rdp(2.0, 1.0))
def divergence_of_two(x, rng):
    """αμ²/2 is 1 for each."""
    return {"a": x + rng.normal(), "b": 2 - x + rng.normal()}


@loses(4.0, ([0, 1, 1, 0], [0, 1, 1, 1]))
def tree_without_its_levels(bits, rng):
    """The last bit is in three nodes and the total, each for 1."""
    return [sum(bits[k:]) + rng.laplace() for k in (3, 2, 0)] + [
        sum(bits) + rng.laplace()
    ]


# Responses, choices and sparse vectors.


@loses(math.log(9))
def honest_too_often(x, rng):
    """True with 9/10."""
    return int(x) if rng.random() < 0.9 else 1 - int(x)


@loses(2.0, (0, 3))
def unary_encoding_of_one_bit(value, rng):
    """Two bits differ, each for 1."""
    return ((np.arange(4) == value) ^ (rng.random(4) >= math.e / (1 + math.e))).astype(
        int
    )


@loses(ENDLESS, claim=RENYI)
def turned_for_one_side(x, rng):
    """0 never becomes 1."""
    return int(x) and int(rng.random() < 0.7)


@loses(math.log(19))
def response_and_how_sure(x, rng):
    """A sure answer is true with 19/20."""
    sure = bool(rng.random() < 0.1)
    return sure, int(x) ^ int(rng.random() < (0.05 if sure else 0.4))


@loses(loss_of(softmax([3, 2]), softmax([2, 3])), ([3, 2], [2, 3]), claim=PureDP(0.5))
def exponential_mechanism_without_half(scores, rng):
    """Both scores move by 1: the odds are e and 1/e."""
    return int(rng.choice(2, p=softmax(scores)))


@loses(ENDLESS, ([3, 2, 0], [3, 2, 1]), claim=CONCENTRATED)
def choice_among_the_positive(scores, rng):
    """The third is chosen on one input alone."""
    weights = np.array(scores) / sum(scores)
    return int(rng.choice(3, p=weights))


@loses(ENDLESS, ([4, 3], [3, 4]), claim=APPROXIMATE)
def largest_and_its_score(scores, rng):
    """The exact score of the largest is shown."""
    k = int(np.argmax(np.array(scores) + rng.laplace(scale=2.0, size=2)))
    return k, scores[k]


@loses(2.0, ([4, 3], [4, 4]))
def largest_and_its_noisy_score(scores, rng):
    """Index 1 with a number below 3: its density is e² times as large."""
    noisy = np.array(scores) + rng.laplace(scale=0.5, size=2)
    return int(np.argmax(noisy)), float(noisy.max())


@loses(ENDLESS, ([0, 1, 1], [1, 0, 0]))
def sparse_vector_without_noise_on_answers(answers, rng):
    """Below and then above the same threshold, or above and then below it."""
    threshold = 0.5 + rng.laplace(scale=2.0)
    return [bool(answer > threshold) for answer in answers]


@loses(ENDLESS, ([0, 3], [1, 3]))
def sparse_vector_with_the_answer(answers, rng):
    """The first answer above the noisy threshold is shown bare."""
    threshold = 2 + rng.laplace()
    return next((answer for answer in answers if answer > threshold), None)


@loses(2.0, ([1, 1], [0, 0]))
def thresholds_of_many(answers, rng):
    """Two times no: each is e times as likely."""
    return [bool(answer + rng.laplace() > 0) for answer in answers]


@loses(3.0, (3, 4))
def geometric_of_another_parameter(number, rng):
    """The ratio of neighbouring integers is e³."""
    return number + two_sided(3.0, rng)


@loses(3.0)
def geometric_for_a_step_of_three(x, rng):
    """A move by 3 loses 3."""
    return 3 * int(x) + two_sided(1.0, rng)


# Discrete Gaussian noise, which is no Gaussian noise.


def discrete(sigma, delta, releases):
    """Add releases of discrete Gaussian noise that are said to lose what Gaussian noise of that σ does."""
    table = discrete_table(sigma)

    def discrete_releases(x, rng):
        return [int(x) + int(rng.choice(121, p=table)) - 60 for _ in range(releases)]

    said = gaussian_level(math.sqrt(releases) / sigma, delta)
    truth = discrete_level(sigma, delta, releases)
    if truth > said * (1 + 1e-3):
        discrete_releases.__name__ = f"discrete_gaussian_{sigma:g}_{delta:g}_{releases}"
        discrete_releases.__doc__ = (
            "Its curve is above that of Gaussian noise at this δ."
        )
        loses(truth, claim=ApproxDP(said, delta))(discrete_releases)


for _sigma in (0.5, 0.7, 1.0, 1.5, 2.0):
    for _delta in (1e-5, 1e-3):
        for _releases in (1, 2):
            discrete(_sigma, _delta, _releases)
