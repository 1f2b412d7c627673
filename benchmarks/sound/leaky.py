"""Leaky mechanisms whose loss is known: a bound that an auditor states below it is false.

Unless another pair is given, a mechanism gets 0 or 1; unless another claim is given, its authors say that it is 1-DP.
A loss is infinite where an output, or a set of outputs, has a probability on one input alone.
"""

from __future__ import annotations

import copy
import json
import math
import pickle
import random
from collections import Counter
from itertools import count

import numpy as np
import pandas as pd

from auditdp import ApproxDP, GaussianDP, PureDP, ZeroConcentratedDP
from benchmarks.sound.case import KnownCases, loss_of, rdp, softmax
from benchmarks.sound.correct import two_sided

LEAKY = KnownCases()
loses = LEAKY.loses
ENDLESS = math.inf
PURE, NORMAL, CONCENTRATED = PureDP(1.0), GaussianDP(1.0), ZeroConcentratedDP(0.5)
APPROXIMATE, RENYI = ApproxDP(1.0, 1e-5), rdp(2.0, 1.0)


def endless(claim, *rows):
    """Add functions of 0 or 1 with an infinite loss, in whatever notion of privacy their authors claim it."""
    LEAKY.rows(claim, *rows, truth=ENDLESS)


# Noise that is used again.

endless(
    PURE,
    ("with its sign", lambda x, rng: [x + (z := rng.laplace()), z > 0], "A positive z with x + z < 1 is 0."),
    ("with its rounding", lambda x, rng: [x + (z := rng.laplace()), round(z, 1)], "The difference is near x."),
    ("with the noise", lambda x, rng: [x + (z := rng.laplace()), z], "The difference is x."),
    ("with its opposite", lambda x, rng: [x + (z := rng.laplace()), -z], "The sum is x."),
)
endless(
    NORMAL,
    ("with twice the value", lambda x, rng: [x + (z := rng.laplace()), 2 * x + z], "The difference is x."),
    (
        "with a sum of noises",
        lambda x, rng: [x + (a := rng.laplace()) + (b := rng.laplace()), a + b],
        "The difference is x.",
    ),
    (
        "with a part of the noise",
        lambda x, rng: [x + (z := rng.laplace()), math.floor(z)],
        "The difference is in x + [0, 1).",
    ),
)
endless(
    CONCENTRATED,
    ("with its size", lambda x, rng: [x + (z := rng.laplace()), abs(z)], "x is the value plus or minus the size."),
    (
        "two thresholds of one noise",
        lambda x, rng: [x + (z := rng.laplace()) > 0, z > 0],
        "Yes and no is an answer of 1.",
    ),
    ("sorted with its noise", lambda x, rng: sorted([x + (z := rng.laplace()), z]), "The difference is x."),
)
endless(
    APPROXIMATE,
    ("on a sum and its part", lambda x, rng: [x + 5 + (z := rng.laplace()), 5 + z], "The difference is x."),
    ("as a text and a number", lambda x, rng: [f"{x + (z := rng.laplace()):.2f}", z], "The difference is near x."),
    ("with the largest noise", lambda x, rng: [x + max(z := rng.laplace(size=2).tolist()), *z], "The difference is x."),
)


@loses(ENDLESS, ([1.0, 5.0], [0.0, 5.0]))
def one_noise_for_all(values, rng):
    """The difference of two entries has no noise."""
    return np.array(values) + rng.laplace()


@loses(ENDLESS, ([1.0, 5.0], [0.0, 5.0]))
def one_noise_by_comprehension(values, rng):
    """The difference of two entries has no noise."""
    noise = rng.laplace()
    return [value + noise for value in values]


@loses(ENDLESS, ([[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [3.0, 5.0]]), claim=NORMAL)
def noise_of_a_column(table, rng):
    """Both entries of a row get one noise."""
    return np.array(table) + rng.laplace(size=(2, 1))


@loses(ENDLESS, ([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 4.0, 4.0]), claim=CONCENTRATED)
def noise_in_tiles(values, rng):
    """The third entry has the noise of the first."""
    return np.array(values) + np.tile(rng.laplace(size=2), 2)


@loses(ENDLESS, ([1.0, 2.0, 3.0], [1.0, 2.0, 4.0]), claim=RENYI)
def noise_remembered_by_name(values, rng):
    """Entries whose index has one parity share their noise."""
    known = {}
    return [value + known.setdefault(k % 2, rng.laplace()) for k, value in enumerate(values)]


@loses(ENDLESS, ((0.0, 0.0), (1.0, 0.0)))
def noise_of_the_first_entry(values, rng):
    """Both entries get the first noise."""
    noise = rng.laplace(size=2)
    return [values[0] + noise[0], values[1] + noise[0]]


@loses(2.0)
def threshold_with_shared_noise(x, rng):
    """At y < 0 and yes, density and event each grow by e."""
    z = rng.laplace()
    return x + z, bool(rng.laplace() > -z)


@loses(ENDLESS, claim=NORMAL)
def normal_and_its_square(x, rng):
    """The square leaves two values for x."""
    z = rng.normal()
    return x + z, z * z


@loses(ENDLESS, claim=CONCENTRATED)
def walk_and_its_end(x, rng):
    """The end of the walk without x is shown as well."""
    walk = np.cumsum(rng.normal(size=3))
    return x + walk[1], walk[2], walk[2] - walk[1]


@loses(ENDLESS, claim=NORMAL)
def matrix_without_full_rank(x, rng):
    """Three numbers have the noise of two."""
    basis = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    return basis @ rng.normal(size=2) + np.array([x, 0.0, 0.0])


# Noise that cancels, or is no noise.

endless(
    PURE,
    ("taken back", lambda x, rng: (x + (z := rng.laplace())) - z, "No noise is left."),
    ("antithetic mean", lambda x, rng: ((x + (z := rng.laplace())) + (x - z)) / 2, "No noise is left."),
    ("times nothing", lambda x, rng: x + 0 * rng.laplace(), "No noise is left."),
)
endless(
    RENYI,
    ("floor of the noise", lambda x, rng: x / 2 + math.floor(rng.laplace()), "Halves come from 1 alone."),
    ("part of the noise", lambda x, rng: x + rng.laplace() % 0.5, "The two intervals are disjoint."),
    ("noise in an interval", lambda x, rng: x + float(np.clip(rng.laplace(), -3, 3)), "The ends have mass."),
    (
        "noise drawn again",
        lambda x, rng: x + next(z for z in iter(rng.laplace, None) if abs(z) < 3),
        "Intervals differ.",
    ),
)
endless(
    NORMAL,
    ("noise to tenths", lambda x, rng: x / 20 + round(rng.laplace(), 1), "Halves of tenths come from 1 alone."),
    ("uniform noise", lambda x, rng: x + rng.uniform(-4, 4), "The intervals differ."),
)
endless(
    CONCENTRATED,
    ("triangular noise", lambda x, rng: x + rng.triangular(-4, 0, 4), "The intervals differ."),
    ("exponential noise", lambda x, rng: x + rng.exponential(), "Below 1 comes from 0 alone."),
    ("size of the noise", lambda x, rng: x + abs(rng.laplace()), "Below 1 comes from 0 alone."),
)
endless(
    PURE,
    ("gumbel noise", lambda x, rng: x + rng.gumbel(), "Its lower tail falls doubly exponentially."),
    ("gaussian noise", lambda x, rng: x + rng.normal(), "It is of no finite ε."),
)
endless(
    RENYI,
    ("poisson noise", lambda x, rng: int(x) + rng.poisson(4.0), "0 comes from 0 alone."),
    ("binomial noise", lambda x, rng: int(x) + rng.binomial(10, 0.5), "0 comes from 0 alone."),
    ("log-normal noise", lambda x, rng: x + rng.lognormal(), "Below 1 comes from 0 alone."),
    ("one-sided geometric noise", lambda x, rng: int(x) + rng.geometric(0.5), "1 comes from 0 alone."),
    ("whole noise on halves", lambda x, rng: x / 2 + two_sided(1.0, rng), "Halves come from 1 alone."),
)
endless(
    PURE,
    ("noise as a factor", lambda x, rng: (x + 1) * rng.laplace(), "The tails have other rates."),
    ("scale by the value", lambda x, rng: x + rng.laplace(scale=1 + x), "The tails have other rates."),
)
endless(
    APPROXIMATE,
    ("noise for one answer alone", lambda x, rng: x + (rng.laplace() if x else 0.0), "0 comes from 0 alone."),
    (
        "mean of a cycle",
        lambda x, rng: x + np.diff(z := rng.laplace(size=4)).sum() + z[0] - z[-1],
        "The noise cancels.",
    ),
)


@loses(2 * math.log((1 + math.sqrt(5)) / 2), claim=PureDP(0.9))
def cauchy_noise(x, rng):
    """The largest ratio of the densities is ((1 + √5)/2)²."""
    return x + rng.standard_cauchy()


@loses(2.0)
def logistic_noise(x, rng):
    """Logistic noise of scale 1/2 has tails of rate 2."""
    return x + rng.logistic(scale=0.5)


@loses(2.0)
def half_the_scale(x, rng):
    """Laplace noise of scale 1/2."""
    return x + rng.laplace(scale=0.5)


@loses(2.0)
def half_of_the_noise(x, rng):
    """Laplace noise of scale 1/2."""
    return x + rng.laplace() / 2


@loses(2.0, claim=NORMAL)
def variance_as_a_deviation(x, rng):
    """Deviation 1/2."""
    return x + 0.25 * 2 * rng.standard_normal()


# Generators that are copied, reset, or seeded.


@loses(ENDLESS)
def copied_generator(x, rng):
    """The copy draws the same noise."""
    twin = copy.deepcopy(rng)
    return x + rng.laplace(), twin.laplace()


@loses(ENDLESS, claim=NORMAL)
def pickled_generator(x, rng):
    """The copy draws the same noise."""
    twin = pickle.loads(pickle.dumps(rng))
    return x + twin.laplace(), rng.laplace()


@loses(ENDLESS, claim=CONCENTRATED)
def reset_generator(x, rng):
    """The state is put back, and the noise comes again."""
    before = rng.bit_generator.state
    noisy = x + rng.laplace()
    rng.bit_generator.state = before
    return noisy, rng.laplace()


@loses(ENDLESS, claim=APPROXIMATE)
def two_generators_of_one_seed(x, rng):
    """Both draw the same noise."""
    seed = int(rng.integers(2**62))
    return x + np.random.default_rng(seed).laplace(), np.random.default_rng(seed).laplace()


@loses(ENDLESS)
def seed_is_shown(x, rng):
    """Who has the seed has the noise."""
    seed = int(rng.integers(2**62))
    return x + np.random.default_rng(seed).laplace(), seed


@loses(ENDLESS, claim=NORMAL)
def twice_the_same_child(x, rng):
    """Children of equal sequences are equal."""
    seed = int(rng.integers(2**62))
    children = [np.random.SeedSequence(seed).spawn(1)[0] for _ in range(2)]
    return [x * k + np.random.default_rng(child).laplace() for k, child in enumerate(children)]


@loses(ENDLESS, claim=RENYI)
def jumped_twice(x, rng):
    """Both generators have jumped from the same state."""
    first, second = (np.random.Generator(rng.bit_generator.jumped()) for _ in range(2))
    rng.random()
    return x + first.laplace(), second.laplace()


@loses(ENDLESS)
def one_of_sixteen_seeds(x, rng):
    """There are sixteen noises, and no two of them differ by 1."""
    return x + np.random.default_rng(int(rng.integers(16))).laplace()


@loses(ENDLESS)
def fixed_seed(x, rng):
    """The noise is always the same."""
    return x + np.random.default_rng(7).laplace() + 0 * rng.random()


@loses(ENDLESS, claim=NORMAL)
def fixed_seed_of_the_standard_library(x, rng):
    """The noise is always the same."""
    own = random.Random(1)
    return x + own.gauss(0, 1) + 0 * rng.random()


@loses(ENDLESS, claim=CONCENTRATED)
def fixed_legacy_state(x, rng):
    """The noise is always the same."""
    return x + np.random.RandomState(3).laplace() + 0 * rng.random()


@loses(ENDLESS)
def seeded_by_the_data(x, rng):
    """Each input has one output."""
    return x + np.random.default_rng(int(x) + 1).laplace() + 0 * rng.random()


@loses(ENDLESS, claim=NORMAL)
def seeded_by_a_digest(x, rng):
    """Each input has one output."""
    return x + random.Random(repr(x)).gauss(0, 1) + 0 * rng.random()


# Chance that chooses the scale, the sample or the run.

OFTEN = math.log((5.0 + 0.05) / (5.0 * math.exp(-10) + 0.05 * math.exp(-0.1)))
"""The loss at 0 of a fair choice between scales 0.1 and 10."""


@loses(OFTEN)
def scale_by_an_event(x, rng):
    """At 0 the densities are (5 + .05)/2 and (5e^−10 + .05e^−.1)/2."""
    return x + rng.laplace(scale=0.1 if rng.random() < 0.5 else 10.0)


@loses(OFTEN)
def scale_by_a_choice(x, rng):
    """At 0 the densities are (5 + .05)/2 and (5e^−10 + .05e^−.1)/2."""
    return x + rng.laplace(scale=rng.choice([0.1, 10.0]))


@loses(OFTEN)
def scale_by_an_integer(x, rng):
    """At 0 the densities are (5 + .05)/2 and (5e^−10 + .05e^−.1)/2."""
    scales = (0.1, 10.0)
    return x + scales[rng.integers(2)] * rng.laplace()


@loses(OFTEN)
def branch_by_an_event(x, rng):
    """At 0 the densities are (5 + .05)/2 and (5e^−10 + .05e^−.1)/2."""
    if rng.random() < 0.5:
        return x + rng.laplace(scale=0.1)
    return x + rng.laplace(scale=10.0)


@loses(10.0)
def scale_that_is_shown(x, rng):
    """Where the scale is 0.1, the loss is 10."""
    scale = 0.1 if rng.random() < 0.01 else 10.0
    return scale, x + rng.laplace(scale=scale)


@loses(ENDLESS)
def random_scale(x, rng):
    """The density is infinite at x alone: 1/s of a uniform s has no mean."""
    return x + rng.laplace(scale=rng.random())


@loses(math.log1p(0.1 * math.expm1(1.0)), ([1, 0, 1], [0, 0, 1]), claim=PureDP(0.1))
def each_bit_by_a_coin(bits, rng):
    """A bit is counted with probability 1/10: ln(1 + (e − 1)/10)."""
    return sum(bit * (rng.random() < 0.1) for bit in bits) + rng.laplace()


@loses(math.log1p(0.25 * math.expm1(1.0)), ([1] + [0] * 7, [0] * 8), claim=PureDP(0.25))
def sampled_and_said_to_be_safer(bits, rng):
    """A record is taken with probability 1/4: ln(1 + (e − 1)/4), not 1/4."""
    return sum(bits[k] for k in rng.choice(8, 2, replace=False)) + rng.laplace()


@loses(3 * math.log1p(math.expm1(1.0) / 3), ([1, 0, 0], [0, 0, 0]))
def bootstrap(bits, rng):
    """The record is drawn a binomial number of times, k times for e^k: (1 + (e − 1)/3)³."""
    return sum(bits[k] for k in rng.integers(3, size=3)) + rng.laplace()


@loses(math.log(2 * math.e - 1))
def drawn_until_positive(x, rng):
    """At 0 the densities are 1 and e^−1/2 / (1 − e^−1/2)."""
    while True:
        noisy = x + rng.laplace()
        if noisy >= 0:
            return noisy


@loses(5.0)
def closest_of_five(x, rng):
    """The smallest of five exponential sizes is exponential with a fifth of the mean."""
    noisy = x + rng.laplace(size=5)
    return noisy[np.argmin(abs(noisy - x))]


@loses(2.0)
def median_of_three(x, rng):
    """Its tails are those of two noises: e² in the limit."""
    return sorted(x + rng.laplace() for _ in range(3))[1]


@loses(3.0)
def largest_of_three(x, rng):
    """Its lower tail is that of three noises: e³ in the limit."""
    return max(x + rng.laplace() for _ in range(3))


@loses(4.0)
def mean_of_four(x, rng):
    """The tails of a mean of four fall with rate 4: e⁴ in the limit."""
    return float(np.mean(x + rng.laplace(size=4)))


@loses(2.0)
def one_of_two_answers(x, rng):
    """Either answer has scale 1/2."""
    answers = [x + rng.laplace(scale=0.5), x - rng.laplace(scale=0.5)]
    return answers[rng.integers(2)]


# Outcomes that are seldom tried, and branches on noise that a recorded run seldom takes.

endless(
    PURE,
    ("as it is, 1 of 64", lambda x, rng: x if rng.integers(64) == 0 else x + rng.laplace(), "x is bare with 1/64."),
    ("as it is, 1 of 1000", lambda x, rng: x if rng.random() < 1e-3 else x + rng.laplace(), "x is bare with 1/1000."),
)
endless(
    CONCENTRATED,
    (
        "no noise by choice",
        lambda x, rng: x + rng.choice([1.0, 0.0], p=[0.98, 0.02]) * rng.laplace(),
        "Bare with 1/50.",
    ),
    ("no noise by binomial", lambda x, rng: x + (rng.binomial(6, 0.5) > 0) * rng.laplace(), "Bare with 1/64."),
    ("no noise by poisson", lambda x, rng: x + sum(rng.laplace(size=rng.poisson(4.0))), "No noise with e^−4."),
)
endless(
    APPROXIMATE,
    ("large noise is left out", lambda x, rng: x + (0 if abs(z := rng.laplace()) > 5 else z), "x has mass e^−5."),
    ("small noise is left out", lambda x, rng: x + (0 if abs(z := rng.laplace()) < 0.01 else z), "x has mass."),
)
endless(
    NORMAL,
    (
        "bare where the answer is large",
        lambda x, rng: [y := x + rng.laplace(), x if y > 5 else None],
        "Above 5 it is bare.",
    ),
    ("bare by another noise", lambda x, rng: x + rng.laplace() if rng.normal() < 2.5 else x, "x is bare with .6 %."),
    (
        "bare after a second draw",
        lambda x, rng: [x + rng.laplace(), x if rng.gamma(2.0) > 8 else 0.0],
        "Bare with .3 %.",
    ),
    (
        "error with the value",
        lambda x, rng: x + 1 / (rng.integers(50) > 0 or bool(x)) * rng.laplace(),
        "0 fails with 1/50.",
    ),
)


@loses(ENDLESS, claim=CONCENTRATED)
def forgets_noise_in_a_long_loop(x, rng):
    """A run of five heads shows x."""
    heads = 0
    while rng.random() < 0.5:
        heads += 1
    return x if heads >= 5 else x + rng.laplace()


@loses(ENDLESS, claim=NORMAL)
def retries_and_gives_up(x, rng):
    """After three answers out of range x itself is shown."""
    for _ in range(3):
        noisy = x + rng.laplace()
        if -2 < noisy < 3:
            return noisy
    return x


@loses(ENDLESS, claim=APPROXIMATE)
def fails_seldom(x, rng):
    """An error of 1 in 200 runs has x in its text."""
    if rng.random() < 0.005:
        raise ValueError(f"no answer for {x}")
    return x + rng.laplace()


@loses(ENDLESS)
def rare_branch_of_the_data(x, rng):
    """Where the noisy number is above 4, an exact comparison is shown."""
    noisy = x + rng.laplace()
    return (noisy, x > 0.5) if noisy > 4 else (noisy, False)


@loses(ENDLESS, claim=ApproxDP(1.0, 1e-3))
def bare_more_often_than_delta(x, rng):
    """The value is bare with probability 1/64, above δ."""
    return x if rng.integers(64) == 0 else x + rng.laplace()


@loses(ENDLESS, (["a", "b"], ["a"]), claim=ApproxDP(1.0, 1e-3))
def threshold_too_low(names, rng):
    """A key of one record passes 2 with probability e^−1/2."""
    noisy = {name: total + rng.laplace() for name, total in Counter(names).items()}
    return {name: value for name, value in sorted(noisy.items()) if value > 2}


@loses(ENDLESS, claim=ApproxDP(1.0, 0.01))
def truncated_too_early(x, rng):
    """A mass of (e^−1 − e^−2)/(2 − 2e^−2) is in one interval alone."""
    while True:
        z = rng.laplace()
        if abs(z) <= 2:
            return x + z


# What is shown beside the noise: types, signs, orders, lengths, errors.

endless(
    PURE,
    ("length", lambda x, rng: [rng.laplace() for _ in range(3 + int(x))], "The length is the value."),
    ("padding", lambda x, rng: f"{x + rng.laplace():.1f}" + " " * int(x), "The space is the value."),
)
endless(
    NORMAL,
    ("exact beside noisy", lambda x, rng: {"noisy": x + rng.laplace(), "exact": x}, "The value is there."),
    ("exact error of it", lambda x, rng: [y := x + rng.laplace(), abs(y - x)], "The value is one of two."),
    (
        "number of rounds",
        lambda x, rng: [x + rng.laplace(), sum(1 for _ in range(int(x) + 2))],
        "It is the value plus 2.",
    ),
)
endless(
    PURE,
    ("sign of a zero", lambda x, rng: [x + rng.laplace(), 0.0 * (x - 0.5)], "−0 comes from 0 alone."),
    ("not a number", lambda x, rng: [x + rng.laplace(), float("nan") if x else 0.0], "NaN comes from 1 alone."),
    ("type", lambda x, rng: [x + rng.laplace(), 1 if x else 1.0], "An integer comes from 1 alone."),
)
endless(
    APPROXIMATE,
    ("none or zero", lambda x, rng: [x + rng.laplace(), None if x else 0], "None comes from 1 alone."),
    (
        "list or tuple",
        lambda x, rng: [1.0, x + rng.laplace()] if x else (1.0, x + rng.laplace()),
        "A list is from 1 alone.",
    ),
    ("text or bytes", lambda x, rng: [x + rng.laplace(), "a" if x else b"a"], "Text comes from 1 alone."),
)
endless(
    RENYI,
    ("precision", lambda x, rng: round(x + rng.laplace(), 3 + int(x)), "A fourth digit comes from 1 alone."),
    (
        "half precision",
        lambda x, rng: (np.float16 if x else np.float64)(x + rng.laplace()),
        "Others come from 0 alone.",
    ),
    ("shape", lambda x, rng: (x + rng.laplace(size=4)).reshape((2, 2) if x else (4, 1)), "The shape is the value."),
    ("name", lambda x, rng: pd.Series({"n": x + rng.laplace()}, name="a" if x else "b"), "The name is the value."),
)


@loses(ENDLESS, ([1, 2], [1, 2, 3]))
def range_of_the_keys(rows, rng):
    """A key comes from one input alone."""
    return {row: rows.count(row) + rng.laplace() for row in rows}


@loses(ENDLESS, (["b", "a"], ["a", "b"]))
def order_of_the_keys(names, rng):
    """The first name comes first in the text."""
    return json.dumps({name: names.count(name) + rng.laplace() for name in names})


@loses(ENDLESS, ({"a": 1, "b": 3}, {"a": 4, "b": 3}))
def sorted_by_the_exact_counts(counts, rng):
    """The order is that of the exact counts."""
    return [(name, counts[name] + rng.laplace(scale=3.0)) for name in sorted(counts, key=counts.get)]


@loses(ENDLESS, ([3.0, 5.0], [3.0, 7.0]), claim=NORMAL)
def edges_of_the_data(values, rng):
    """The last edge is the largest value."""
    totals, edges = np.histogram(values, bins=2)
    return edges, totals + rng.laplace(scale=2.0, size=2)


@loses(ENDLESS, ([2.0, 50.0], [2.0, 60.0]))
def refuses_large_values(values, rng):
    """The error has the value."""
    if max(values) > 55:
        raise ValueError("too large")
    return sum(min(value, 1.0) for value in values) + rng.laplace()


@loses(ENDLESS, ([0.2, 0.5], [0.2, float("nan")]), claim=CONCENTRATED)
def clipped_nan(values, rng):
    """Clipping keeps NaN, and NaN has no noise."""
    return float(np.clip(values, 0, 1).sum()) + rng.laplace()


@loses(ENDLESS, ([1, 2], [1, 2, 2]))
def mean_with_the_exact_number(values, rng):
    """The number is there."""
    return sum(values) / len(values) + rng.laplace(), len(values)


@loses(ENDLESS, ([1.0, 2.0], [1.0, 2.0, 3.0]), claim=RENYI)
def noise_for_the_shortest(values, rng):
    """Values without noise of their own are shown bare."""
    noise = rng.laplace(size=2)
    return [value + (noise[k] if k < 2 else 0.0) for k, value in enumerate(values)]


@loses(ENDLESS, ([1.0, 2.0, 3.0], [1.0, 2.0, 4.0]), claim=NORMAL)
def noise_for_the_first(values, rng):
    """Only the first entry has noise."""
    values = np.array(values)
    values[:1] += rng.laplace(size=1)
    return values


@loses(ENDLESS, ([5, 3], [5, 4]), claim=APPROXIMATE)
def iterations_by_the_data(values, rng):
    """As many numbers come as the last value says."""
    numbers = count()
    return [next(numbers) + rng.laplace() for _ in range(values[-1])]


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
    return [sum(bits[k:]) + rng.laplace() for k in (3, 2, 0)] + [sum(bits) + rng.laplace()]


# Responses, choices and sparse vectors.


@loses(math.log(9))
def honest_too_often(x, rng):
    """True with 9/10."""
    return int(x) if rng.random() < 0.9 else 1 - int(x)


@loses(2.0, (0, 3))
def unary_encoding_of_one_bit(value, rng):
    """Two bits differ, each for 1."""
    return ((np.arange(4) == value) ^ (rng.random(4) >= math.e / (1 + math.e))).astype(int)


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


def discrete_table(sigma):
    """Return the probabilities of discrete Gaussian noise from −60 to 60."""
    weights = np.exp(-(np.arange(-60, 61) ** 2) / (2 * sigma**2))
    return weights / weights.sum()


def discrete_level(sigma, delta, count=1):
    """Return the smallest ε of ``count`` releases of discrete Gaussian noise at a δ, by its table."""
    table = discrete_table(sigma)
    losses = np.subtract(1, 2 * np.arange(-60, 61)) / (2 * sigma**2)
    first, total = table, losses
    for _ in range(count - 1):
        first, total = np.outer(first, table).ravel(), np.add.outer(total, losses).ravel()
    low, high = 0.0, 50.0
    while high - low > 1e-10:
        middle = (low + high) / 2
        excess = float(np.sum(first * -np.expm1(np.minimum(middle - total, 0.0))))
        low, high = (middle, high) if excess > delta else (low, middle)
    return low


def gaussian_level(mu, delta):
    """Return the smallest ε of μ-GDP at a δ."""
    low, high = 0.0, 50.0
    while high - low > 1e-10:
        middle = (low + high) / 2
        low, high = (middle, high) if GaussianDP(mu).delta_at(middle) > delta else (low, middle)
    return high


def discrete(sigma, delta, releases):
    """Add releases of discrete Gaussian noise that are said to lose what Gaussian noise of that σ does."""
    table = discrete_table(sigma)

    def discrete_releases(x, rng):
        return [int(x) + int(rng.choice(121, p=table)) - 60 for _ in range(releases)]

    said = gaussian_level(math.sqrt(releases) / sigma, delta)
    truth = discrete_level(sigma, delta, releases)
    if truth > said * (1 + 1e-3):
        discrete_releases.__name__ = f"discrete_gaussian_{sigma:g}_{delta:g}_{releases}"
        discrete_releases.__doc__ = "Its curve is above that of Gaussian noise at this δ."
        loses(truth, claim=ApproxDP(said, delta))(discrete_releases)


for _sigma in (0.5, 0.7, 1.0, 1.5, 2.0):
    for _delta in (1e-5, 1e-3):
        for _releases in (1, 2):
            discrete(_sigma, _delta, _releases)
