"""Leaky mechanisms whose noise is used again, cancels, or can be computed; see ``leaky``."""

from __future__ import annotations

import copy
import math
import pickle
import random

import numpy as np

from auditdp import ApproxDP, GaussianDP, PureDP, ZeroConcentratedDP
from benchmarks.sound.case import KnownCases
from benchmarks.sound.laws import rdp, two_sided

NOISE_CASES = KnownCases()
loses = NOISE_CASES.loses
ENDLESS = math.inf
PURE, NORMAL, CONCENTRATED = PureDP(1.0), GaussianDP(1.0), ZeroConcentratedDP(0.5)
APPROXIMATE, RENYI = ApproxDP(1.0, 1e-5), rdp(2.0, 1.0)


def endless(claim, *rows):
    """Add functions of 0 or 1 with an infinite loss, in whatever notion of privacy their authors claim it."""
    NOISE_CASES.rows(claim, *rows, truth=ENDLESS)


# Noise that is used again.

endless(
    PURE,
    (
        "with its sign",
        lambda x, rng: [x + (z := rng.laplace()), z > 0],
        "A positive z with x + z < 1 is 0.",
    ),
    (
        "with its rounding",
        lambda x, rng: [x + (z := rng.laplace()), round(z, 1)],
        "The difference is near x.",
    ),
    (
        "with the noise",
        lambda x, rng: [x + (z := rng.laplace()), z],
        "The difference is x.",
    ),
    (
        "with its opposite",
        lambda x, rng: [x + (z := rng.laplace()), -z],
        "The sum is x.",
    ),
)
endless(
    NORMAL,
    (
        "with twice the value",
        lambda x, rng: [x + (z := rng.laplace()), 2 * x + z],
        "The difference is x.",
    ),
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
    (
        "with its size",
        lambda x, rng: [x + (z := rng.laplace()), abs(z)],
        "x is the value plus or minus the size.",
    ),
    (
        "two thresholds of one noise",
        lambda x, rng: [x + (z := rng.laplace()) > 0, z > 0],
        "Yes and no is an answer of 1.",
    ),
    (
        "sorted with its noise",
        lambda x, rng: sorted([x + (z := rng.laplace()), z]),
        "The difference is x.",
    ),
)
endless(
    APPROXIMATE,
    (
        "on a sum and its part",
        lambda x, rng: [x + 5 + (z := rng.laplace()), 5 + z],
        "The difference is x.",
    ),
    (
        "as a text and a number",
        lambda x, rng: [f"{x + (z := rng.laplace()):.2f}", z],
        "The difference is near x.",
    ),
    (
        "with the largest noise",
        lambda x, rng: [x + max(z := rng.laplace(size=2).tolist()), *z],
        "The difference is x.",
    ),
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
    return [
        value + known.setdefault(k % 2, rng.laplace()) for k, value in enumerate(values)
    ]


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
    (
        "antithetic mean",
        lambda x, rng: ((x + (z := rng.laplace())) + (x - z)) / 2,
        "No noise is left.",
    ),
    ("times nothing", lambda x, rng: x + 0 * rng.laplace(), "No noise is left."),
)
endless(
    RENYI,
    (
        "floor of the noise",
        lambda x, rng: x / 2 + math.floor(rng.laplace()),
        "Halves come from 1 alone.",
    ),
    (
        "part of the noise",
        lambda x, rng: x + rng.laplace() % 0.5,
        "The two intervals are disjoint.",
    ),
    (
        "noise in an interval",
        lambda x, rng: x + float(np.clip(rng.laplace(), -3, 3)),
        "The ends have mass.",
    ),
    (
        "noise drawn again",
        lambda x, rng: x + next(z for z in iter(rng.laplace, None) if abs(z) < 3),
        "Intervals differ.",
    ),
)
endless(
    NORMAL,
    (
        "noise to tenths",
        lambda x, rng: x / 20 + round(rng.laplace(), 1),
        "Halves of tenths come from 1 alone.",
    ),
    ("uniform noise", lambda x, rng: x + rng.uniform(-4, 4), "The intervals differ."),
)
endless(
    CONCENTRATED,
    (
        "triangular noise",
        lambda x, rng: x + rng.triangular(-4, 0, 4),
        "The intervals differ.",
    ),
    (
        "exponential noise",
        lambda x, rng: x + rng.exponential(),
        "Below 1 comes from 0 alone.",
    ),
    (
        "size of the noise",
        lambda x, rng: x + abs(rng.laplace()),
        "Below 1 comes from 0 alone.",
    ),
)
endless(
    PURE,
    (
        "gumbel noise",
        lambda x, rng: x + rng.gumbel(),
        "Its lower tail falls doubly exponentially.",
    ),
    ("gaussian noise", lambda x, rng: x + rng.normal(), "It is of no finite ε."),
)
endless(
    RENYI,
    (
        "poisson noise",
        lambda x, rng: int(x) + rng.poisson(4.0),
        "0 comes from 0 alone.",
    ),
    (
        "binomial noise",
        lambda x, rng: int(x) + rng.binomial(10, 0.5),
        "0 comes from 0 alone.",
    ),
    (
        "log-normal noise",
        lambda x, rng: x + rng.lognormal(),
        "Below 1 comes from 0 alone.",
    ),
    (
        "one-sided geometric noise",
        lambda x, rng: int(x) + rng.geometric(0.5),
        "1 comes from 0 alone.",
    ),
    (
        "whole noise on halves",
        lambda x, rng: x / 2 + two_sided(1.0, rng),
        "Halves come from 1 alone.",
    ),
)
endless(
    PURE,
    (
        "noise as a factor",
        lambda x, rng: (x + 1) * rng.laplace(),
        "The tails have other rates.",
    ),
    (
        "scale by the value",
        lambda x, rng: x + rng.laplace(scale=1 + x),
        "The tails have other rates.",
    ),
)
endless(
    APPROXIMATE,
    (
        "noise for one answer alone",
        lambda x, rng: x + (rng.laplace() if x else 0.0),
        "0 comes from 0 alone.",
    ),
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
    return x + np.random.default_rng(seed).laplace(), np.random.default_rng(
        seed
    ).laplace()


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
    return [
        x * k + np.random.default_rng(child).laplace()
        for k, child in enumerate(children)
    ]


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
