"""Closed forms of the privacy of simple laws, and draws from laws that numpy does not have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations

import numpy as np

from auditdp import ApproxDP, GaussianDP, PureDP, RenyiDP
from benchmarks.sound.case import UP

TRUE = math.e / (1 + math.e)
"""The chance of a true answer in randomised response that loses 1."""


def gaussian_statement(mu: float, epsilon: float) -> ApproxDP:
    """Return the exact (ε, δ) statement of μ-GDP at an ε (Balle & Wang 2018, arXiv:1805.06530, Theorem 8)."""
    return ApproxDP(epsilon, GaussianDP(mu).delta_at(epsilon) * UP)


def sampled_gaussian_statement(mu: float, q: float, epsilon: float) -> ApproxDP:
    """Return the exact statement at an ε of N(0, 1) against (1 − q) N(0, 1) + q N(μ, 1), the larger of both orders.

    {mixture > e^ε N(0, 1)} is {N(μ, 1) > (e^ε − 1 + q)/q N(0, 1)}, and the other order likewise, so that both are
    multiples of the δ of μ-GDP.
    """
    factor = math.exp(epsilon)
    more = q * GaussianDP(mu).delta_at(math.log((factor - 1 + q) / q))
    kept = 1 - factor * (1 - q)
    less = (
        kept * GaussianDP(mu).delta_at(math.log(factor * q / kept))
        if kept > 0 and factor * q > kept
        else 0.0
    )
    return ApproxDP(epsilon, max(more, less) * UP)


def laplace_statement(epsilon: float, at: float) -> ApproxDP:
    """Return the exact statement of a Laplace release that loses ε, at a smaller ε: δ = 1 − e^((at − ε)/2)."""
    return ApproxDP(at, -math.expm1((at - epsilon) / 2) * UP)


def laplace_divergence(epsilon: float, order: float) -> float:
    """Return the Rényi divergence of a Laplace release that loses ε (Mironov 2017, arXiv:1702.07476, Proposition 6)."""
    up, down = order / (2 * order - 1), (order - 1) / (2 * order - 1)
    return math.log(
        up * math.exp((order - 1) * epsilon) + down * math.exp(-order * epsilon)
    ) / (order - 1)


def laplace_rho(epsilon: float) -> float:
    """Return the ρ of a Laplace release that loses ε (`auditdp.accountants.additive_noise`): its divergence of order 1."""
    return epsilon - 1 + math.exp(-epsilon)


def response_divergence(epsilon: float, order: float) -> float:
    """Return the Rényi divergence of binary randomised response that loses ε."""
    p = 1 / (1 + math.exp(-epsilon))
    return math.log(
        p**order * (1 - p) ** (1 - order) + (1 - p) ** order * p ** (1 - order)
    ) / (order - 1)


def response_rho(epsilon: float) -> float:
    """Return the ρ of binary randomised response that loses ε: its divergence of order 1."""
    return epsilon * math.tanh(epsilon / 2)


def loss_of(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the largest |ln p/q| of two laws over the same outcomes."""
    return max(abs(math.log(p / q)) for p, q in zip(first, second, strict=True))


def exactly(first: Sequence[float], second: Sequence[float]) -> PureDP:
    """Return the claim of pure DP that two laws over the same outcomes keep, and no smaller one."""
    return PureDP(loss_of(first, second) * UP)


def rdp(order: float, divergence: float) -> RenyiDP:
    """Return a Rényi claim whose divergence was computed."""
    return RenyiDP(order, divergence * UP)


def softmax(scores: Sequence[float]) -> list[float]:
    """Return the table of the exponential mechanism."""
    weights = np.exp(np.array(scores, float) - max(scores))
    return [float(weight) for weight in weights / weights.sum()]


def two_sided(epsilon, rng):
    """Return a difference of geometric numbers: P(z) is proportional to e^(−ε|z|)."""
    p = -math.expm1(-epsilon)
    return int(rng.geometric(p)) - int(rng.geometric(p))


def discrete_laplace(scale, rng):
    """Return discrete Laplace noise of an integer scale (Canonne, Kamath & Steinke 2020, arXiv:2004.00010, Algorithm 2)."""
    while True:
        low = int(rng.integers(scale))
        if rng.random() >= math.exp(-low / scale):
            continue
        high = 0
        while rng.random() < math.exp(-1):
            high += 1
        size, negative = low + scale * high, rng.random() < 0.5
        if not (negative and size == 0):
            return -size if negative else size


def discrete_gaussian(sigma, rng):
    """Return discrete Gaussian noise (Canonne, Kamath & Steinke 2020, Algorithm 3)."""
    scale = math.floor(sigma) + 1
    while True:
        z = discrete_laplace(scale, rng)
        if rng.random() < math.exp(
            -((abs(z) - sigma**2 / scale) ** 2) / (2 * sigma**2)
        ):
            return z


def flipped(scores):
    """Return the table of permute-and-flip (McKenna & Sheldon 2020, arXiv:2010.12603): all orders, one coin each."""
    table = [0.0] * len(scores)
    coins = [math.exp((score - max(scores)) / 2) for score in scores]
    for order in permutations(range(len(scores))):
        left = 1.0 / math.factorial(len(scores))
        for k in order:
            table[k] += left * coins[k]
            left *= 1 - coins[k]
    return table


def ahead(gap):
    """Return P(z₂ − z₁ < gap) for Laplace noise of scale 2: the difference has density (2 + |z|)e^(−|z|/2)/16."""
    tail = math.exp(-abs(gap) / 2) * (0.5 + abs(gap) / 8)
    return 1 - tail if gap > 0 else tail


def amplified(q):
    """Return the claim of a record that is taken with probability q and then loses 1: ln(1 + q (e − 1))."""
    return PureDP(math.log1p(q * math.expm1(1.0)) * UP)


def reservoir(n, rng):
    """Return two of n places, each pair as likely as any other."""
    kept = [0, 1]
    for k in range(2, n):
        if (place := int(rng.integers(k + 1))) < 2:
            kept[place] = k
    return kept


def in_shuffled_order(items, rng):
    """Return the items in random order."""
    rng.shuffle(items)
    return items


TAKEN = {
    "coins": lambda n, rng: np.flatnonzero(rng.random(n) < 0.25),
    "coins one by one": lambda n, rng: [k for k in range(n) if rng.random() < 0.25],
    "raw bits": lambda n, rng: [
        k for k in range(n) if rng.bit_generator.random_raw() >> 62 == 0
    ],
    "a choice": lambda n, rng: rng.choice(n, 2, replace=False),
    "a permutation": lambda n, rng: rng.permutation(n)[:2],
    "a shuffle": lambda n, rng: in_shuffled_order(list(range(n)), rng)[:2],
    "smallest keys": lambda n, rng: np.argsort(rng.random(n))[:2],
    "a reservoir": reservoir,
    "a binomial number": lambda n, rng: rng.choice(
        n, rng.binomial(n, 0.25), replace=False
    ),
}
"""Ways in which each of n records is taken with probability 1/4, independently of the data."""


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
        first, total = (
            np.outer(first, table).ravel(),
            np.add.outer(total, losses).ravel(),
        )
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
        low, high = (
            (middle, high) if GaussianDP(mu).delta_at(middle) > delta else (low, middle)
        )
    return high
