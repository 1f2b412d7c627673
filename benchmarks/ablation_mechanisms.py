"""Mechanisms of other shapes with false claims, on which no constant of the game was chosen.

Each is a function of (data, size, rng) whose claim is false for the one pair that is played, mostly by a factor of 1.5 to 2
in ε: discrete and bounded noise, noise whose scale shows, order statistics, parities, long vectors, traces of varying
length, atoms, and numbers that are released as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from auditdp import ApproxDP, GaussianDP, Pair, PureDP
from auditdp.claims.claim import Claim
from auditdp.mechanism.protocol import Array
from benchmarks.parts import Rng

BITS = Pair(1, 0)


@dataclass(frozen=True)
class Shape:
    """A false claim of a mechanism.

    Attributes:
        name: What the outputs are.
        function: Makes ``size`` outputs from (data, size, rng).
        claim: What is claimed.
        pair: The pair for which it is false.
    """

    name: str
    function: Callable[[Any, int, Rng], Array]
    claim: Claim
    pair: Pair = BITS

    def __call__(self, data: Any, size: int, *, rng: Rng) -> Array:
        """Return the outputs, shape (size, ...)."""
        return self.function(data, size, rng)


def _geometric(data: int, size: int, rng: Rng) -> Array:
    return data + rng.geometric(0.6, size) - rng.geometric(0.6, size)


def _outliers(data: int, size: int, rng: Rng) -> Array:
    return rng.normal(size=size) + np.where(
        rng.random(size) < 0.03, 8.0 + 4.0 * data, 0.0
    )


def _correlation(data: int, size: int, rng: Rng) -> Array:
    x, y = rng.normal(size=(2, size))
    return np.stack([x, y + (0.8 if data else -0.8) * x], axis=1)


def _sign_of_a_product(data: int, size: int, rng: Rng) -> Array:
    rows, sign = rng.normal(size=(size, 5)), rng.choice([-1, 1], size)
    rows[:, 0] += 0.84 * sign
    rows[:, 3] += 0.84 * (sign if data else -sign)
    return rows


def _one_sample(data: int, size: int, rng: Rng) -> Array:
    return rng.laplace(size=(size, 4)) + data * (rng.random((size, 1)) < 0.1)


def _sorted_noise(data: int, size: int, rng: Rng) -> Array:
    return np.sort(
        rng.laplace(size=(size, 5)) + 1.8 * data * (np.arange(5) == 0), axis=1
    )


def _noisy_minimum(data: Array, size: int, rng: Rng) -> Array:
    return np.asarray(np.argmin(data + rng.exponential(size=(size, 6)), axis=1))


def _histogram(data: Array, size: int, rng: Rng) -> Array:
    return data + rng.laplace(size=(size, 8))


def _unary_code(data: int, size: int, rng: Rng) -> Array:
    return np.asarray(
        rng.random((size, 64)) < 0.3 + 0.35 * data * (np.arange(64) == 41),
        dtype=np.int8,
    )


def _trace(data: int, size: int, rng: Rng) -> Array:
    stop = rng.geometric(0.25 if data else 0.15, (size, 1))
    return np.where(np.arange(12) < stop, rng.normal(size=(size, 12)), np.nan)


def _walk(data: int, size: int, rng: Rng) -> Array:
    return np.cumsum(rng.normal(size=(size, 20)) + 0.35 * data, axis=1)


def _median(data: int, size: int, rng: Rng) -> Array:
    return np.asarray(np.median(rng.laplace(size=(size, 9)) + 0.7 * data, axis=1))


def _gradient(data: Array, size: int, rng: Rng) -> Array:
    return data + rng.normal(size=(size, 100))


def _clipped(data: int, size: int, rng: Rng) -> Array:
    return np.clip(0.3 + 0.4 * data + 0.35 * rng.laplace(size=size), 0.0, 1.0)


def _category(data: int, size: int, rng: Rng) -> Array:
    return np.where(rng.random(size) < 0.3, data, rng.integers(0, 10, size))


def _parity(data: int, size: int, rng: Rng) -> Array:
    bits = rng.integers(0, 2, (size, 4))
    bits[:, 3] = (bits[:, :3].sum(axis=1) + data + (rng.random(size) < 0.25)) % 2
    return bits


def _rounded_noise(data: int, size: int, rng: Rng) -> Array:
    return (
        0.37 * data
        + np.round(rng.laplace(size=size), 2)
        + 0.001 * rng.integers(0, 2, size)
    )


def _released(data: int, size: int, rng: Rng) -> Array:
    rows = rng.normal(size=(size, 3))
    rows[rng.random(size) < 0.02, 1] = 0.731 + data
    return rows


def _noisy_maximum(data: Array, size: int, rng: Rng) -> Array:
    return np.asarray(np.max(data + rng.exponential(size=(size, 6)), axis=1))


def _permutation(data: int, size: int, rng: Rng) -> Array:
    return np.asarray(
        np.argsort(
            rng.gumbel(size=(size, 5)) + 1.2 * data * (np.arange(5) == 2), axis=1
        )
    )


def _matrix(data: Array, size: int, rng: Rng) -> Array:
    return np.asarray(
        data + (rng.geometric(0.5, (size, 3, 3)) - rng.geometric(0.5, (size, 3, 3)))
    )


def _smallest(data: int, size: int, rng: Rng) -> Array:
    rows = rng.normal(size=(size, 6))
    rows[np.arange(size), rng.integers(0, 6, size)] -= 2.0 * data
    return rows


_FIRST = np.arange(8) == 3

SHAPES = (
    Shape("geometric noise", _geometric, PureDP(0.5)),
    Shape(
        "uniform noise",
        lambda data, size, rng: 0.05 * data + rng.random(size),
        PureDP(1.0),
    ),
    Shape(
        "Cauchy noise",
        lambda data, size, rng: 1.6 * data + rng.standard_cauchy(size),
        PureDP(0.8),
    ),
    Shape(
        "scale of the noise",
        lambda data, size, rng: (1.0 + 0.4 * data) * rng.laplace(size=size),
        PureDP(0.15),
    ),
    Shape("outliers", _outliers, PureDP(1.0)),
    Shape("sign of a correlation", _correlation, PureDP(0.5)),
    Shape("sign of a product", _sign_of_a_product, PureDP(1.0)),
    Shape(
        "one sample for four numbers",
        _one_sample,
        PureDP(4 * math.log1p(0.1 * math.expm1(1.0))),
    ),
    Shape("sorted noise", _sorted_noise, PureDP(0.8)),
    Shape(
        "noisy minimum",
        _noisy_minimum,
        PureDP(0.8),
        Pair(np.array([0.0, 1, 1, 1, 1, 1]), np.ones(6)),
    ),
    Shape("histogram", _histogram, PureDP(0.8), Pair(1.6 * _FIRST, 0.0 * _FIRST)),
    Shape("unary code", _unary_code, PureDP(0.7)),
    Shape("length of a trace", _trace, PureDP(0.3)),
    Shape("random walk", _walk, GaussianDP(1.0)),
    Shape("median", _median, PureDP(1.0)),
    Shape(
        "gradient", _gradient, GaussianDP(1.0), Pair(np.full(100, 0.2), np.zeros(100))
    ),
    Shape("clipped noise", _clipped, PureDP(0.7)),
    Shape("one of ten", _category, PureDP(1.0)),
    Shape("parity", _parity, PureDP(0.5)),
    Shape("rounded noise", _rounded_noise, PureDP(0.8)),
    Shape("released at times", _released, ApproxDP(1.0, 1e-3)),
    Shape(
        "noisy maximum",
        _noisy_maximum,
        PureDP(0.5),
        Pair(np.array([1.0, 0, 0, 0, 0, 0]), np.zeros(6)),
    ),
    Shape("permutation", _permutation, PureDP(0.6)),
    Shape(
        "matrix of counts",
        _matrix,
        ApproxDP(1.0, 1e-3),
        Pair(np.ones((3, 3), int), np.zeros((3, 3), int)),
    ),
    Shape("smallest of six", _smallest, ApproxDP(0.7, 1e-3)),
)
