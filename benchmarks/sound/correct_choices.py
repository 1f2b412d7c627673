"""Correct mechanisms with integers, responses, choices and sampled records; see ``correct``."""

from __future__ import annotations

import math

import numpy as np

from auditdp import PureDP
from benchmarks.sound.case import UP, KnownCases
from benchmarks.sound.laws import (
    TAKEN,
    TRUE,
    ahead,
    amplified,
    discrete_laplace,
    exactly,
    flipped,
    sampled_gaussian_statement,
    softmax,
    two_sided,
)

CHOICE_CASES = KnownCases()
holds, rows = CHOICE_CASES.holds, CHOICE_CASES.rows


# Integers.


rows(
    PureDP(1.0),
    (
        "geometric",
        lambda x, rng: int(x) + two_sided(1.0, rng),
        "The ratio of neighbouring integers is e.",
    ),
    (
        "geometric and clipped",
        lambda x, rng: min(max(int(x) + two_sided(1.0, rng), 0), 5),
        "Post-processing; 0 loses 1.",
    ),
    (
        "laplace and floor",
        lambda x, rng: math.floor(x + rng.laplace()),
        "Post-processing; below 0 it loses 1.",
    ),
    (
        "laplace to halves",
        lambda x, rng: round(2 * (x + rng.laplace())) / 2,
        "Post-processing; below 0 it loses 1.",
    ),
)


@holds(PureDP(0.5), (3, 4))
def discrete_laplace_by_rejection(count, rng):
    """Discrete Laplace noise of scale 2 has ratios of e^(1/2)."""
    return count + discrete_laplace(2, rng)


@holds(PureDP(1.0), (3, 4))
def geometric_by_size_and_sign(count, rng):
    """A size and a sign, drawn again where it is −0, make the two-sided geometric law."""
    while True:
        size, negative = int(rng.geometric(-math.expm1(-1.0))) - 1, rng.random() < 0.5
        if size or not negative:
            return count - size if negative else count + size


@holds(PureDP(1.0))
def staircase(x, rng):
    """The density falls by the factor e after every step of 1 (Geng & Viswanath 2014, arXiv:1212.1186), γ = 1/2."""
    step = int(rng.geometric(-math.expm1(-1.0))) - 1
    outer = rng.random() < math.exp(-1.0) / (1 + math.exp(-1.0))
    z = step + (0.5 + 0.5 * rng.random() if outer else 0.5 * rng.random())
    return x + (z if rng.random() < 0.5 else -z)


@holds(PureDP(1.0), ((0, 0, 1), (0, 1, 1)))
def modular_shares(bits, rng):
    """Shares modulo 2^20 hide the bits from each party, and the sum has geometric noise."""
    masks = rng.integers(2**20, size=len(bits))
    first, second = (
        sum(int(mask) for mask in masks),
        sum(int(bit - mask) for bit, mask in zip(bits, masks, strict=True)),
    )
    return (first + second + two_sided(1.0, rng)) % 2**20


@holds(PureDP(0.0), (0, 1))
def one_time_pad(bit, rng):
    """A bit under a fair bit is fair."""
    return bit ^ int(rng.integers(2))


@holds(PureDP(0.0), (3, 8))
def share_of_one_party(digit, rng):
    """A digit plus a uniform one, modulo 10, is uniform."""
    return (digit + int(rng.integers(10))) % 10


# Randomised response and choices.

rows(
    PureDP(1.0 * UP),
    (
        "response",
        lambda x, rng: int(x) if rng.random() < TRUE else 1 - int(x),
        "True with e/(1 + e).",
    ),
    (
        "response by exclusive or",
        lambda x, rng: int(x) ^ int(rng.random() >= TRUE),
        "Turned with 1/(1 + e).",
    ),
    (
        "response by choice",
        lambda x, rng: int(rng.choice([x, 1 - x], p=[TRUE, 1 - TRUE])),
        "True with e/(1 + e).",
    ),
    (
        "response by binomial",
        lambda x, rng: int(x) if rng.binomial(1, TRUE) else 1 - int(x),
        "True with e/(1 + e).",
    ),
)

rows(
    PureDP(math.log(3) * UP),
    (
        "two coins",
        lambda x, rng: int(x) if rng.integers(2) else int(rng.integers(2)),
        "True with 3/4.",
    ),
    (
        "one die of four",
        lambda x, rng: 1 - int(x) if rng.integers(4) == 0 else int(x),
        "Turned with 1/4.",
    ),
    (
        "two coins at once",
        lambda x, rng: int(c[1]) if (c := rng.integers(2, size=2))[0] else int(x),
        "True with 3/4.",
    ),
    (
        "raw bits of a coin",
        lambda x, rng: int(x) ^ int(rng.bit_generator.random_raw() >> 62 == 0),
        "Turned with 1/4.",
    ),
)


@holds(PureDP(math.log(5) * UP), (2, 0))
def response_of_four_values(value, rng):
    """The value with 5/8, any other with 1/8."""
    return value if rng.random() < 0.5 else int(rng.integers(4))


@holds(PureDP(2.0 * UP), (0, 3))
def unary_encoding(value, rng):
    """Two bits differ, each with odds e."""
    bits = np.arange(4) == value
    return (bits ^ (rng.random(4) >= TRUE)).astype(int)


@holds(PureDP(1.0 * UP), (0, 3))
def optimised_unary_encoding(value, rng):
    """A 1 stays with 1/2, a 0 becomes 1 with 1/(1 + e): both bits together lose 1."""
    p = np.where(np.arange(4) == value, 0.5, 1 / (1 + math.e))
    return (rng.random(4) < p).tolist()


@holds(exactly([0.625**2], [0.375**2]), (0, 2))
def permanent_and_instantaneous(value, rng):
    """Each of two bits that differ is turned with 1/4 twice, so that it stays with 5/8."""
    memory = (np.arange(3) == value) ^ (rng.random(3) < 0.25)
    return (memory ^ (rng.random(3) < 0.25)).astype(int)


@holds(PureDP(1.0 * UP), ([0, 1, 1], [0, 1, 0]))
def sum_of_responses(bits, rng):
    """Post-processing of responses; all zero, or all one, loses 1 in the factor of the bit."""
    return sum(bit if rng.random() < TRUE else 1 - bit for bit in bits)


@holds(
    exactly(softmax([1.5, 1.0, 0.5]), softmax([1.0, 1.5, 0.5])), ([3, 2, 1], [2, 3, 1])
)
def exponential_mechanism(scores, rng):
    """Both tables are known."""
    return int(rng.choice(3, p=softmax([score / 2 for score in scores])))


@holds(
    exactly(softmax([1.5, 1.0, 0.5]), softmax([1.0, 1.5, 0.5])), ([3, 2, 1], [2, 3, 1])
)
def largest_with_gumbel_noise(scores, rng):
    """The place of the largest is that of the exponential mechanism."""
    return int(np.argmax(np.array(scores) / 2 + rng.gumbel(size=3)))


@holds(
    exactly(softmax([1.5, 1.0, 0.5]), softmax([1.0, 1.5, 0.5])), ([3, 2, 1], [2, 3, 1])
)
def race_of_exponentials(scores, rng):
    """The first of exponential clocks is drawn by their rates."""
    clocks = [rng.exponential(math.exp(-score / 2)) for score in scores]
    return clocks.index(min(clocks))


@holds(
    exactly(softmax([1.5, 1.0, 0.5]), softmax([1.0, 1.5, 0.5])), ([3, 2, 1], [2, 3, 1])
)
def cumulated_table(scores, rng):
    """A uniform number is looked up in the cumulated table."""
    return int(
        np.searchsorted(
            np.cumsum(softmax([score / 2 for score in scores])), rng.random()
        )
    )


@holds(
    exactly(softmax([1.5, 1.0, 0.5]), softmax([1.0, 1.5, 0.5])), ([3, 2, 1], [2, 3, 1])
)
def accepted_candidate(scores, rng):
    """A candidate is accepted in proportion to its weight."""
    while True:
        k = int(rng.integers(3))
        if rng.random() < math.exp((scores[k] - 3) / 2):
            return k


@holds(exactly(flipped([3, 2, 1]), flipped([2, 3, 1])), ([3, 2, 1], [2, 3, 1]))
def permute_and_flip(scores, rng):
    """All orders and coins are known."""
    for k in rng.permutation(3):
        if rng.random() < math.exp((scores[k] - max(scores)) / 2):
            return int(k)
    return None


@holds(exactly(flipped([3, 2, 1]), flipped([2, 3, 1])), ([3, 2, 1], [2, 3, 1]))
def largest_with_exponential_noise(scores, rng):
    """It has the law of permute-and-flip (Ding et al. 2021, arXiv:2105.07260)."""
    return int(np.argmax([score + rng.exponential(2.0) for score in scores]))


@holds(exactly([ahead(1), ahead(-1)], [ahead(-1), ahead(1)]), ([4, 3], [3, 4]))
def largest_with_laplace_noise(scores, rng):
    """Two scores change places: the probabilities are known."""
    return int(np.argmax(np.array(scores) + rng.laplace(scale=2.0, size=2)))


@holds(PureDP(1.0), ([0, 1, 0], [0, 0, 0]), truth=0.0)
def sparse_vector(answers, rng):
    """Algorithm 1 of Lyu, Su & Li (2017, arXiv:1603.01699): half of ε for the threshold, half for one answer above it."""
    threshold = 1 + rng.laplace(scale=2.0)
    for k, answer in enumerate(answers):
        if answer + rng.laplace(scale=4.0) >= threshold:
            return k
    return None


# Sampled records: a difference by one record is seen as seldom as the record is taken.


def summed_after(take):
    """Return a noisy sum of the records that are taken."""
    return lambda bits, rng: (
        sum(bits[int(k)] for k in take(len(bits), rng)) + rng.laplace()
    )


for _name, _take in TAKEN.items():
    _sum = summed_after(_take)
    _sum.__name__ = f"taken_by_{_name}"
    _sum.__doc__ = "A record is taken with probability 1/4, independently of the data."
    holds(amplified(0.25), ([1] + [0] * 7, [0] * 8))(_sum)


@holds(PureDP(3 * math.log1p(math.expm1(1.0) / 8) * UP), ([1] + [0] * 7, [0] * 8))
def drawn_with_replacement(bits, rng):
    """The record is drawn a binomial number of times, k times for e^k: (1 + (e − 1)/8)³."""
    return sum(bits[int(k)] for k in rng.integers(len(bits), size=3)) + rng.laplace()


@holds(exactly([0.25 * TRUE + 0.75 * (1 - TRUE)], [1 - TRUE]), (1, 0))
def response_of_few(bit, rng):
    """Who is not asked counts as 0: a 1 is seen with a chance of (e/4 + 3/4)/(1 + e)."""
    bit = bit if rng.random() < 0.25 else 0
    return bit if rng.random() < TRUE else 1 - bit


@holds(sampled_gaussian_statement(1.0, 0.25, 0.5), ([1] + [0] * 7, [0] * 8))
def sampled_gaussian(bits, rng):
    """N(0, 1) against a mixture with N(1, 1), weight 1/4, exactly."""
    return sum(bit for bit in bits if rng.random() < 0.25) + rng.normal()


@holds(sampled_gaussian_statement(2.0, 0.25, 0.5), ([1] + [0] * 7, [0] * 8))
def sampled_gaussian_of_fixed_size(bits, rng):
    """N(0, 1) against a mixture with N(2, 1), weight 1/4, exactly."""
    return np.array(bits)[rng.choice(8, 2, replace=False)].sum() + rng.normal(scale=0.5)


@holds(sampled_gaussian_statement(1.0, 0.5, 0.25), (1.0, 0.0))
def step_of_a_batch_of_one(x, rng):
    """A record is in the only batch with probability 1/2, and its gradient is at most 1."""
    weight = 0.0
    weight -= 0.1 * ((min(x, 1.0) if rng.random() < 0.5 else 0.0) + rng.normal())
    return weight
