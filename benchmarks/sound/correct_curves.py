"""Correct mechanisms with Gaussian noise, and with claims that are curves; see ``correct``."""

from __future__ import annotations

import math

import numpy as np
import scipy.stats

from auditdp import AccountedDP, ApproxDP, GaussianDP, ZeroConcentratedDP
from auditdp.accountants import LaplaceUpper, PLDUpper
from benchmarks.sound.case import UP, KnownCases
from benchmarks.sound.laws import (
    TRUE,
    discrete_gaussian,
    gaussian_statement,
    laplace_divergence,
    laplace_rho,
    laplace_statement,
    rdp,
    response_divergence,
    response_rho,
)

CURVE_CASES = KnownCases()
holds, rows = CURVE_CASES.holds, CURVE_CASES.rows
NORMAL = GaussianDP(1.0)
FOUR = AccountedDP(LaplaceUpper(1.0, count=4), quoted=1e-3)
STEPS = AccountedDP(PLDUpper(1.0, rate=0.25, steps=3), quoted=1e-3)


# Gaussian noise of deviation 1, drawn in many ways, for a number that moves by 1.

rows(
    NORMAL,
    ("gaussian", lambda x, rng: x + rng.normal(), "Deviation 1."),
    (
        "two halves",
        lambda x, rng: x + (rng.normal() + rng.normal()) / math.sqrt(2),
        "Variances add up.",
    ),
    (
        "four in the mean",
        lambda x, rng: np.mean([x + rng.normal(0, 2.0) for _ in range(4)]),
        "The mean has variance 1.",
    ),
    (
        "by polar coordinates",
        lambda x, rng: (
            x + math.sqrt(2 * rng.exponential()) * math.cos(rng.uniform(0, math.tau))
        ),
        "Box and Muller.",
    ),
    (
        "chi with a coin",
        lambda x, rng: x + math.sqrt(rng.chisquare(1)) * rng.choice([-1, 1]),
        "It is normal.",
    ),
)
rows(
    gaussian_statement(1.0, 1.0),
    (
        "quantile of a uniform",
        lambda x, rng: x + scipy.stats.norm.ppf(rng.random()),
        "It is normal.",
    ),
    (
        "difference of two",
        lambda x, rng: (x + rng.normal(0, 0.6)) - rng.normal(0, 0.8),
        "Variances add up to 1.",
    ),
    (
        "of many only one",
        lambda x, rng: (np.array([x, 0.0, 5.0]) + rng.normal(size=3))[0],
        "One entry is shown.",
    ),
    (
        "product of noise",
        lambda x, rng: (
            (np.array([x, x]) @ [0.5, 0.5]) + rng.normal(size=2) @ [0.6, 0.8]
        ),
        "Norm 1.",
    ),
    (
        "antithetic and anew",
        lambda x, rng: ((x + (z := rng.laplace())) + (x - z)) / 2 + rng.normal(),
        "z cancels.",
    ),
)
rows(
    ZeroConcentratedDP(0.5),
    (
        "sign by the value",
        lambda x, rng: x + (-1) ** int(x) * rng.normal(),
        "Normal noise is symmetric.",
    ),
    (
        "deviation of a child",
        lambda x, rng: rng.spawn(2)[1].normal(x),
        "A child is a generator of its own.",
    ),
    (
        "walk of nine steps",
        lambda x, rng: x + rng.normal(size=9).cumsum()[-1] / 3,
        "Nine steps of variance 1/9.",
    ),
    (
        "shown with a twin",
        lambda x, rng: [x + rng.normal(), rng.normal()],
        "The second is noise alone.",
    ),
    (
        "normal and rounded text",
        lambda x, rng: str(round(x + rng.normal(), 6)),
        "Rounding to 1e-6 hides nothing.",
    ),
)


@holds(GaussianDP(2**0.5 * UP))
def two_releases(x, rng):
    """Two releases of 1-GDP."""
    return [x + rng.normal(), x + rng.normal()]


@holds(GaussianDP(2**0.5 * UP))
def second_release_by_the_first(x, rng):
    """The second query is chosen by the first answer, and moves by 1 either way."""
    first = x + rng.normal()
    return first, (x if first > 0 else 3 - x) + rng.normal()


@holds(NORMAL, ((1.0, 2.0, 0.5, 0.0), (1.0, 2.0, 1.5, 0.0)))
def shares_of_four_parties(values, rng):
    """Each party adds a quarter of the variance."""
    return sum(value + rng.normal(scale=0.5) for value in values)


@holds(NORMAL, ((1.0, 2.0, 0.5), (1.0, 2.0, 1.5)))
def masks_that_cancel(values, rng):
    """Masks of pairs of parties cancel in the sum, and one noise stays."""
    n = len(values)
    masks = rng.normal(scale=100.0, size=(n, n))
    shares = [values[k] + masks[k].sum() - masks[:, k].sum() for k in range(n)]
    return round(sum(shares) + rng.normal(), 6)


@holds(NORMAL, ((0.6, 0.8), (0.0, 0.0)))
def vector_of_length_one(vector, rng):
    """The vector moves by 1."""
    return np.array(vector) + rng.normal(size=2)


@holds(NORMAL, ((0.6, 0.8), (0.0, 0.0)))
def rotated(vector, rng):
    """A rotation of the noise has the same law."""
    turn = np.array([[0.8, -0.6], [0.6, 0.8]])
    return np.array(vector) + turn @ rng.normal(size=2)


@holds(GaussianDP(math.sqrt(1 / 0.75) * UP), ((1.0, 0.0), (0.0, 0.0)))
def correlated_noise(vector, rng):
    """Covariance [[1, 1/2], [1/2, 1]] has 4/3 as the first entry of its inverse."""
    return rng.multivariate_normal(vector, [[1.0, 0.5], [0.5, 1.0]])


@holds(GaussianDP(math.sqrt(1 / 0.75) * UP), ((1.0, 0.0), (0.0, 0.0)))
def correlated_by_a_factor(vector, rng):
    """The same covariance by its factor."""
    return np.array(vector) + np.linalg.cholesky([[1.0, 0.5], [0.5, 1.0]]) @ rng.normal(
        size=2
    )


@holds(GaussianDP(math.sqrt(1.390625) * UP), ([1.0, 0.0, 0.0], [0.0, 0.0, 0.0]))
def factored_prefix_sums(values, rng):
    """Prefix sums are the square of this root, and the noise is inside: its first column has norm² 1 + 1/4 + 9/64."""
    root = np.array([[1, 0, 0], [0.5, 1, 0], [0.375, 0.5, 1]])
    return root @ (root @ np.array(values) + rng.normal(size=3))


@holds(GaussianDP(math.sqrt(3) * UP), ([1, 0, 0, 0], [0, 0, 0, 0]))
def tree_of_sums(values, rng):
    """A value is in three nodes."""
    nodes = [
        sum(values[k : k + length]) for length in (1, 2, 4) for k in range(0, 4, length)
    ]
    return np.array(nodes) + rng.normal(size=7)


@holds(GaussianDP((1 - 2.0**-8) / math.sqrt(0.25 * (1 - 4.0**-8) / 0.75) * UP))
def noisy_descent(x, rng):
    """The last of eight iterates is normal: its mean moves by 1 − 2^−8, its variance is (1 − 4^−8)/3."""
    weight = 0.0
    for _ in range(8):
        weight -= 0.5 * (weight - x + rng.normal())
    return weight


@holds(GaussianDP(2.0 * UP))
def averaged_iterates(x, rng):
    """Four noisy gradients of the same loss are averaged: deviation 1/2."""
    return np.mean([x + rng.normal() for _ in range(4)])


@holds(GaussianDP(3.0 / math.sqrt(1 + 4 + 1) * UP))
def weighted_sum(x, rng):
    """The sum moves by 1 − 2 + 4 = 3, and its noise has variance 1 + 4 + 1."""
    return (x + rng.normal()) - 2 * (x + rng.normal()) + 4 * x + rng.normal()


@holds(GaussianDP(math.sqrt(5) * UP))
def momentum(x, rng):
    """The first step moves by 1, and the difference of both by 2, each with noise of its own."""
    first = x + rng.normal()
    return first, first + 2 * x + rng.normal()


# Steps of noisy descent on batches, of which a record comes into each with probability 1/4.


@holds(STEPS, ([1] + [0] * 7, [0] * 8), truth=2.22)
def three_batches_by_coins(bits, rng):
    """The record moves the sum of its batch by 1: the exact curve of the accountant, bounded from above."""
    return [
        sum(bit for bit in bits if rng.random() < 0.25) + rng.normal() for _ in range(3)
    ]


@holds(STEPS, ([1] + [0] * 7, [0] * 8), truth=2.22)
def three_batches_of_binomial_size(bits, rng):
    """A batch of binomial size, drawn without replacement, is a batch by coins."""
    batches = [rng.choice(8, rng.binomial(8, 0.25), replace=False) for _ in range(3)]
    return [float(np.array(bits)[batch].sum()) + rng.normal() for batch in batches]


@holds(STEPS, ([3] + [0] * 7, [0] * 8), truth=0.0)
def last_of_three_batches(values, rng):
    """Gradients are clipped to 1, and only the last weight is released: at most the curve of all steps."""
    weight = 0.0
    for _ in range(3):
        batch = [value for value in values if rng.random() < 0.25]
        weight -= 0.1 * (sum(min(value, 1.0) for value in batch) + rng.normal())
    return weight


# Statements (ε, δ), exact at their ε.


@holds(gaussian_statement(1.0, 1.0))
def gaussian_at_one(x, rng):
    """Normal noise of deviation 1."""
    return x + rng.normal()


@holds(gaussian_statement(2**0.5, 2.0))
def two_gaussians_at_two(x, rng):
    """Two releases of normal noise of deviation 1."""
    return x + rng.normal(), x - rng.normal()


@holds(gaussian_statement(0.5, 0.3))
def gaussian_by_parties(x, rng):
    """Four parties of variance 1 each."""
    return x + sum(rng.normal() for _ in range(4))


@holds(laplace_statement(1.0, 0.5))
def laplace_at_half(x, rng):
    """The curve of Laplace noise."""
    return x + rng.laplace()


@holds(laplace_statement(2.0, 0.5))
def exponential_difference_at_half(x, rng):
    """The curve of Laplace noise of scale 1/2."""
    return x + rng.exponential(0.5) - rng.exponential(0.5)


@holds(FOUR, truth=3.984)
def four_laplace_releases(x, rng):
    """The exact curve of four releases, bounded from above."""
    return [x + rng.laplace() for _ in range(4)]


@holds(ApproxDP(3.0, LaplaceUpper(1.0, count=8).delta_at(3.0)), truth=2.999)
def eight_laplace_numbers(x, rng):
    """The exact statement at ε = 3 of eight releases, bounded from above."""
    return (x + rng.laplace(size=8)).tolist()


@holds(ApproxDP(0.0, 0.1 * UP))
def uniform_noise(x, rng):
    """The intervals overlap in 9/10."""
    return x + rng.uniform(-5, 5)


@holds(ApproxDP(1.0 * UP, 0.05))
def seldom_in_the_open(x, rng):
    """The answer is open with probability 1/20, else it is randomised response."""
    if rng.random() < 0.05:
        return "open", int(x)
    return "hidden", int(x) if rng.random() < TRUE else 1 - int(x)


@holds(ApproxDP(0.0, 0.02), ([1, 2, 3], [1, 2, 4]))
def name_and_shame(records, rng):
    """The record that changes is shown with probability 1/50."""
    return records[2] if rng.random() < 0.02 else None


@holds(ApproxDP(1.0, 0.5 * math.exp(-2) * UP), (["a", "b"], ["a"]), truth=0.0)
def keys_above_a_threshold(names, rng):
    """A key of one record passes 3 with probability e^−2/2."""
    noisy = {name: names.count(name) + rng.laplace() for name in sorted(set(names))}
    return {name: value for name, value in noisy.items() if value > 3}


@holds(ApproxDP(1.0, (math.e - 1) / (math.exp(4) - 1) / 2 * UP))
def truncated_laplace(x, rng):
    """Noise within ±4: only the mass beyond the other interval is in excess of e."""
    while True:
        z = rng.laplace()
        if abs(z) <= 4:
            return x + z


# Concentrated and Rényi claims.

rows(
    ZeroConcentratedDP(laplace_rho(1.0) * UP),
    (
        "laplace concentrated",
        lambda x, rng: x + rng.laplace(),
        "ρ = ε − 1 + e^−ε for Laplace noise.",
    ),
    (
        "exponentials concentrated",
        lambda x, rng: x + rng.exponential() - rng.exponential(),
        "ρ = ε − 1 + e^−ε.",
    ),
    (
        "laplace vector concentrated",
        lambda x, rng: np.array([x, 2.0]) + rng.laplace(size=2),
        "One entry moves.",
    ),
)
rows(
    ZeroConcentratedDP(0.5),
    (
        "gaussian concentrated",
        lambda x, rng: x + rng.normal(),
        "ρ = 1/2 for deviation 1.",
    ),
    (
        "discrete gaussian",
        lambda x, rng: int(x) + discrete_gaussian(1.0, rng),
        "ρ = 1/2, at order 2 exactly.",
    ),
    (
        "noise of two parties",
        lambda x, rng: x + rng.normal(0, 0.6) + rng.normal(0, 0.8),
        "Variances add up to 1.",
    ),
    (
        "cancelled concentrated",
        lambda x, rng: (x + (z := rng.normal())) - z + rng.normal(),
        "The last noise stays.",
    ),
)


@holds(ZeroConcentratedDP(4 * laplace_rho(0.5) * UP))
def four_laplace_concentrated(x, rng):
    """Each of four releases has ρ = ε − 1 + e^−ε at ε = 1/2."""
    return [x + rng.laplace(scale=2.0) for _ in range(4)]


@holds(ZeroConcentratedDP(response_rho(1.0) * UP))
def response_concentrated(x, rng):
    """ρ = ε tanh(ε/2) for randomised response."""
    return int(x) if rng.random() < TRUE else 1 - int(x)


@holds(ZeroConcentratedDP((laplace_rho(1.0) + 0.5) * UP))
def laplace_and_gaussian_concentrated(x, rng):
    """The ρ of two releases add up."""
    return x + rng.laplace(), x + rng.normal()


@holds(ZeroConcentratedDP(0.125))
def discrete_gaussian_of_deviation_two(x, rng):
    """ρ = 1/8, as of normal noise."""
    return 7 - int(x) + discrete_gaussian(2.0, rng)


@holds(rdp(2.0, laplace_divergence(1.0, 2.0)))
def laplace_of_order_two(x, rng):
    """The divergence of Laplace noise is known."""
    return x + rng.laplace()


@holds(rdp(4.0, 2 * laplace_divergence(1.0, 4.0)))
def two_laplace_of_order_four(x, rng):
    """Divergences add up."""
    return x + rng.laplace(), 3 * x + rng.laplace(scale=3.0)


@holds(rdp(3.0, response_divergence(1.0, 3.0)))
def response_of_order_three(x, rng):
    """The divergence of randomised response is known."""
    return bool(x) ^ (rng.random() > TRUE)


@holds(rdp(2.0, 1.0))
def gaussian_of_order_two(x, rng):
    """αμ²/2 for normal noise."""
    return np.float64(x) + rng.normal()


@holds(rdp(8.0, 4.0))
def gaussian_of_parties_of_order_eight(x, rng):
    """αμ²/2 for the noise of four parties."""
    return sum(x / 4 + rng.normal(scale=0.5) for _ in range(4))


@holds(rdp(2.0, laplace_divergence(1.0, 2.0) + 1.0))
def laplace_and_gaussian_of_order_two(x, rng):
    """Divergences add up."""
    return {"laplace": x + rng.laplace(), "normal": x + rng.normal()}


@holds(rdp(2.0, laplace_divergence(1.0, 2.0)))
def mixture_of_order_two(x, rng):
    """√(2E)·N is Laplace."""
    return x + math.sqrt(2 * rng.standard_exponential()) * rng.standard_normal()
