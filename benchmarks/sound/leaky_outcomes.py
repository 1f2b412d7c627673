"""Leaky mechanisms that choose by chance, leak seldom, or leak beside their noise; see ``leaky``."""

from __future__ import annotations

import json
import math
from collections import Counter
from itertools import count

import numpy as np
import pandas as pd

from auditdp import AccountedDP, ApproxDP, GaussianDP, PureDP, ZeroConcentratedDP
from auditdp.accountants import PLDUpper
from benchmarks.sound.case import KnownCases
from benchmarks.sound.laws import rdp

OUTCOME_CASES = KnownCases()
loses = OUTCOME_CASES.loses
ENDLESS = math.inf
PURE, NORMAL, CONCENTRATED = PureDP(1.0), GaussianDP(1.0), ZeroConcentratedDP(0.5)
APPROXIMATE, RENYI = ApproxDP(1.0, 1e-5), rdp(2.0, 1.0)


def endless(claim, *rows):
    """Add functions of 0 or 1 with an infinite loss, in whatever notion of privacy their authors claim it."""
    OUTCOME_CASES.rows(claim, *rows, truth=ENDLESS)


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


@loses(
    8.1,
    ([1] + [0] * 7, [0] * 8),
    claim=AccountedDP(PLDUpper(1.0, rate=0.25, steps=3), quoted=1e-3),
)
def three_batches_with_half_the_noise(bits, rng):
    """The lower bound of the accountant for a multiplier of 1/2 is 8.115 at this δ."""
    batches = [rng.choice(8, rng.binomial(8, 0.25), replace=False) for _ in range(3)]
    return [
        float(np.array(bits)[batch].sum()) + rng.normal(scale=0.5) for batch in batches
    ]


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
    (
        "as it is, 1 of 64",
        lambda x, rng: x if rng.integers(64) == 0 else x + rng.laplace(),
        "x is bare with 1/64.",
    ),
    (
        "as it is, 1 of 1000",
        lambda x, rng: x if rng.random() < 1e-3 else x + rng.laplace(),
        "x is bare with 1/1000.",
    ),
)
endless(
    CONCENTRATED,
    (
        "no noise by choice",
        lambda x, rng: x + rng.choice([1.0, 0.0], p=[0.98, 0.02]) * rng.laplace(),
        "Bare with 1/50.",
    ),
    (
        "no noise by binomial",
        lambda x, rng: x + (rng.binomial(6, 0.5) > 0) * rng.laplace(),
        "Bare with 1/64.",
    ),
    (
        "no noise by poisson",
        lambda x, rng: x + sum(rng.laplace(size=rng.poisson(4.0))),
        "No noise with e^−4.",
    ),
)
endless(
    APPROXIMATE,
    (
        "large noise is left out",
        lambda x, rng: x + (0 if abs(z := rng.laplace()) > 5 else z),
        "x has mass e^−5.",
    ),
    (
        "small noise is left out",
        lambda x, rng: x + (0 if abs(z := rng.laplace()) < 0.01 else z),
        "x has mass.",
    ),
)
endless(
    NORMAL,
    (
        "bare where the answer is large",
        lambda x, rng: [y := x + rng.laplace(), x if y > 5 else None],
        "Above 5 it is bare.",
    ),
    (
        "bare by another noise",
        lambda x, rng: x + rng.laplace() if rng.normal() < 2.5 else x,
        "x is bare with .6 %.",
    ),
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
    (
        "length",
        lambda x, rng: [rng.laplace() for _ in range(3 + int(x))],
        "The length is the value.",
    ),
    (
        "padding",
        lambda x, rng: f"{x + rng.laplace():.1f}" + " " * int(x),
        "The space is the value.",
    ),
)
endless(
    NORMAL,
    (
        "exact beside noisy",
        lambda x, rng: {"noisy": x + rng.laplace(), "exact": x},
        "The value is there.",
    ),
    (
        "exact error of it",
        lambda x, rng: [y := x + rng.laplace(), abs(y - x)],
        "The value is one of two.",
    ),
    (
        "number of rounds",
        lambda x, rng: [x + rng.laplace(), sum(1 for _ in range(int(x) + 2))],
        "It is the value plus 2.",
    ),
)
endless(
    PURE,
    (
        "sign of a zero",
        lambda x, rng: [x + rng.laplace(), 0.0 * (x - 0.5)],
        "−0 comes from 0 alone.",
    ),
    (
        "not a number",
        lambda x, rng: [x + rng.laplace(), float("nan") if x else 0.0],
        "NaN comes from 1 alone.",
    ),
    (
        "type",
        lambda x, rng: [x + rng.laplace(), 1 if x else 1.0],
        "An integer comes from 1 alone.",
    ),
)
endless(
    APPROXIMATE,
    (
        "none or zero",
        lambda x, rng: [x + rng.laplace(), None if x else 0],
        "None comes from 1 alone.",
    ),
    (
        "list or tuple",
        lambda x, rng: [1.0, x + rng.laplace()] if x else (1.0, x + rng.laplace()),
        "A list is from 1 alone.",
    ),
    (
        "text or bytes",
        lambda x, rng: [x + rng.laplace(), "a" if x else b"a"],
        "Text comes from 1 alone.",
    ),
)
endless(
    RENYI,
    (
        "precision",
        lambda x, rng: round(x + rng.laplace(), 3 + int(x)),
        "A fourth digit comes from 1 alone.",
    ),
    (
        "half precision",
        lambda x, rng: (np.float16 if x else np.float64)(x + rng.laplace()),
        "Others come from 0 alone.",
    ),
    (
        "shape",
        lambda x, rng: (x + rng.laplace(size=4)).reshape((2, 2) if x else (4, 1)),
        "The shape is the value.",
    ),
    (
        "name",
        lambda x, rng: pd.Series({"n": x + rng.laplace()}, name="a" if x else "b"),
        "The name is the value.",
    ),
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
    return [
        (name, counts[name] + rng.laplace(scale=3.0))
        for name in sorted(counts, key=counts.get)
    ]


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
