"""Mechanisms that declare the sensitivity of what their noise is added to, each rightly or wrongly.

A declaration is right where no single release moves further, in the declared norm, than is declared; the claim of such a
mechanism is exact. It is wrong where one release by itself does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from auditdp import AccountedDP, ApproxDP, GaussianDP, PureDP, ZeroConcentratedDP
from auditdp.accountants import LaplaceUpper
from auditdp.claims.claim import Claim
from benchmarks.sound.case import APART, UP, Known
from benchmarks.sound.laws import (
    ahead,
    exactly,
    gaussian_statement,
    laplace_divergence,
    laplace_rho,
    laplace_statement,
    rdp,
    sampled_gaussian_statement,
    two_sided,
)


class Declared:
    """A function with the sensitivity that its noise is calibrated to."""

    def __init__(
        self, function: Callable[..., Any], sensitivity: float, norm: str
    ) -> None:
        self.function, self.sensitivity, self.norm = function, sensitivity, norm

    def __call__(self, data: Any, rng: np.random.Generator) -> Any:
        """Return what the function returns."""
        return self.function(data, rng)


RIGHT: list[Known] = []
WRONG: list[Known] = []


def declares(
    known: list[Known],
    claim: Claim,
    sensitivity: float,
    norm: str,
    *pairs: tuple[Any, Any],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds a function with what it declares; the argument is its docstring."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        name, why = function.__name__.replace("_", " "), function.__doc__ or ""
        declared = Declared(function, sensitivity, norm)
        known.append(Known(name, declared, claim, pairs or [APART], claim.level, why))
        return function

    return add


def right(claim, sensitivity, norm, *pairs):
    """Add a function that is calibrated to what it declares, with an exact claim."""
    return declares(RIGHT, claim, sensitivity, norm, *pairs)


def wrong(claim, sensitivity, norm, *pairs):
    """Add a function of which one release moves further than it declares."""
    return declares(WRONG, claim, sensitivity, norm, *pairs)


@right(PureDP(1.0), 1.0, "l1")
def one_release(x, rng):
    """Laplace noise for a move of 1."""
    return x + rng.laplace()


@right(PureDP(1.0), 1.0, "l1")
def release_after_cancelled_noise(x, rng):
    """The first noise cancels, the second is that of the claim."""
    z = rng.normal()
    return ((x + z) + (x - z)) / 2 + rng.laplace()


@right(PureDP(1.0), 1.0, "l1")
def release_after_a_control_variate(x, rng):
    """The first noise cancels, the second is that of the claim."""
    z = rng.laplace(scale=0.1)
    return (x + z) - z + rng.laplace()


@right(PureDP(4.0), 1.0, "l1")
def four_releases(x, rng):
    """Each release moves by 1, and the claim is that of four."""
    return [x + rng.laplace() for _ in range(4)]


@right(AccountedDP(LaplaceUpper(1.0, count=8), quoted=1e-3), 1.0, "l1")
def eight_releases_by_their_curve(x, rng):
    """Each release moves by 1, and the claim is the exact curve of eight."""
    return [x + rng.laplace() for _ in range(8)]


@right(ApproxDP(3.0, LaplaceUpper(1.0, count=8).delta_at(3.0)), 1.0, "l1")
def eight_releases_by_a_statement(x, rng):
    """Each release moves by 1, and the claim is the exact statement of eight."""
    return [x + rng.laplace() for _ in range(8)]


@right(ZeroConcentratedDP(8 * laplace_rho(0.5) * UP), 1.0, "l1")
def eight_releases_concentrated(x, rng):
    """Each release moves by 1, for ρ = ε − 1 + e^−ε at ε = 1/2."""
    return [x + rng.laplace(scale=2.0) for _ in range(8)]


@right(rdp(2.0, 8 * laplace_divergence(0.5, 2.0)), 1.0, "l1")
def eight_releases_of_order_two(x, rng):
    """Each release moves by 1, and divergences add up."""
    return [x + rng.laplace(scale=2.0) for _ in range(8)]


@right(laplace_statement(1.0, 0.5), 1.0, "l1")
def release_by_a_statement(x, rng):
    """The exact statement of Laplace noise at ε = 1/2."""
    return x + rng.laplace()


@right(
    exactly([ahead(1), ahead(-1)], [ahead(-1), ahead(1)]), 2.0, "l1", ([4, 3], [3, 4])
)
def largest_noisy_score(scores, rng):
    """Both scores move by 1, and the law of the place is known."""
    return int(np.argmax(np.array(scores) + rng.laplace(scale=2.0, size=2)))


@right(
    exactly([ahead(1), ahead(-1)], [ahead(-1), ahead(1)]), 1.0, "l1", ([4, 3], [3, 4])
)
def largest_of_scores_one_by_one(scores, rng):
    """Each score has a release of its own and moves by 1, and the law of the place is known."""
    noisy = [score + rng.laplace(scale=2.0) for score in scores]
    return noisy.index(max(noisy))


@right(PureDP(1.0), 2.0, "l1", ([3, 1], [2, 2]))
def histogram(counts, rng):
    """A replaced record moves two counts by 1."""
    return np.array(counts) + rng.laplace(scale=2.0, size=2)


@right(PureDP(1.0), 1.0, "l1", ([3, 1, 2], [3, 1, 3]))
def counts_in_sorted_order(counts, rng):
    """One count moves by 1, whatever the order of the noise."""
    out, order = np.empty(3), np.argsort(counts)
    out[order] = np.array(counts)[order] + rng.laplace(size=3)
    return out


@right(PureDP(1.0), 1.0, "l1", (3, 4))
def whole_number(number, rng):
    """Two-sided geometric noise for a move of 1."""
    return number + two_sided(1.0, rng)


@right(
    GaussianDP((1 - 2.0**-8) / math.sqrt(0.25 * (1 - 4.0**-8) / 0.75) * UP), 1.0, "l2"
)
def last_of_eight_iterates(x, rng):
    """Each gradient moves by 1; the last iterate is normal with variance (1 − 4^−8)/3."""
    weight = 0.0
    for _ in range(8):
        weight -= 0.5 * (weight - x + rng.normal())
    return weight


@right(
    gaussian_statement((1 - 2.0**-4) / math.sqrt(0.25 * (1 - 4.0**-4) / 0.75), 1.0),
    1.0,
    "l2",
)
def last_of_four_iterates_by_a_statement(x, rng):
    """Each gradient moves by 1; the last iterate is normal with variance (1 − 4^−4)/3."""
    weight = 0.0
    for _ in range(4):
        weight -= 0.5 * (weight - x + rng.normal())
    return weight


@right(GaussianDP(2.0 * UP), 1.0, "l2")
def mean_of_four(x, rng):
    """Four releases move by 1 each, and their mean has deviation 1/2."""
    return sum(x + rng.normal() for _ in range(4)) / 4


@right(GaussianDP(math.sqrt(3) * UP), 1.0, "l2", ([1, 0, 0, 0], [0, 0, 0, 0]))
def levels_of_a_tree(values, rng):
    """Each of three levels moves by 1."""
    levels = [
        np.array(values),
        np.add.reduceat(values, [0, 2]),
        np.array([sum(values)]),
    ]
    return np.concatenate([level + rng.normal(size=len(level)) for level in levels])


@right(GaussianDP(1.0), 1.0, "l2", ([0.6, 0.8], [0.0, 0.0]))
def vector(values, rng):
    """A vector of length 1."""
    return np.array(values) + rng.normal(size=2)


@right(GaussianDP(1.0), 1.0, "l2", ([1.0, 2.0, 0.5, 0.0], [1.0, 2.0, 1.5, 0.0]))
def shares_of_parties(values, rng):
    """Four parties have a quarter of the variance each."""
    return sum(value + rng.normal(scale=0.5) for value in values)


@right(ZeroConcentratedDP(2.0), 1.0, "l2")
def four_normal_releases_concentrated(x, rng):
    """Four releases of ρ = 1/2."""
    return [x + rng.normal() for _ in range(4)]


@right(rdp(4.0, 4.0), 1.0, "l2")
def two_normal_releases_of_order_four(x, rng):
    """Two releases of αμ²/2 = 2."""
    return x + rng.normal(), 1 - x + rng.normal()


@right(gaussian_statement(2.0, 2.0), 1.0, "l2")
def four_normal_releases_by_a_statement(x, rng):
    """Four releases of 1-GDP."""
    return [x + rng.normal() for _ in range(4)]


@right(sampled_gaussian_statement(1.0, 0.25, 0.5), 1.0, "l2", ([1] + [0] * 7, [0] * 8))
def sum_of_a_batch(bits, rng):
    """The sum of a batch moves by 1, and a record is in it with probability 1/4."""
    return sum(bit for bit in bits if rng.random() < 0.25) + rng.normal()


@wrong(PureDP(1.0), 1.0, "l1")
def moves_by_two(x, rng):
    """The value moves by 2."""
    return 2 * x + rng.laplace()


@wrong(PureDP(1.0), 1.0, "l1", ([3.0, 1.0], [0.0, 1.0]))
def sum_without_a_bound(values, rng):
    """A value of 3 moves the sum by 3."""
    return sum(values) + rng.laplace()


@wrong(PureDP(1.0), 1.0, "l1", ([3, 1], [2, 2]))
def histogram_of_replaced_records(counts, rng):
    """Two counts move by 1."""
    return np.array(counts) + rng.laplace(size=2)


@wrong(PureDP(1.0), 1.0, "l1", ([1, 0, 1], [0, 0, 1]))
def sums_of_prefixes(bits, rng):
    """The first bit is in three sums of one release."""
    return np.cumsum(bits) + rng.laplace(size=3)


@wrong(GaussianDP(1.0), 1.0, "l2", ([3.0, 4.0], [0.0, 0.0]))
def vector_without_a_bound(values, rng):
    """The vector has length 5."""
    return np.array(values) + rng.normal(size=2)


@wrong(GaussianDP(1.0), 1.0, "l2", ([1.0, 1.0], [0.0, 0.0]))
def bounded_by_entry(values, rng):
    """Each entry moves by 1, and the vector by √2."""
    return np.clip(values, 0, 1) + rng.normal(size=2)


@wrong(ZeroConcentratedDP(0.5), 1.0, "l2")
def squared(x, rng):
    """The value moves by 3."""
    return (x + 1) ** 2 + rng.normal()


@wrong(gaussian_statement(1.0, 1.0), 1.0, "l2", ([2.0, -2.0], [2.0, 2.0]))
def clipped_to_both_sides(values, rng):
    """A value in ±1 moves the sum by 2."""
    return float(np.clip(values, -1, 1).sum()) + rng.normal()


@wrong(PureDP(1.0), 1.0, "l1", (3, 5))
def number_of_a_group(number, rng):
    """Two records of a user move the number by 2."""
    return number + two_sided(1.0, rng)


@wrong(rdp(2.0, 1.0), 1.0, "l2", ([1.0, 5.0], [1.0, 9.0]))
def largest_value(values, rng):
    """The largest value moves by 4."""
    return max(values) + rng.normal()
