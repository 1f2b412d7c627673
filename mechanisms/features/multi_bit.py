"""The multi-bit encoder: a record sends one bit about each of a few of its features; and the estimate made from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from typing import Any

import numpy as np

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import Envelope, FiniteLaw
from auditdp.mechanism.protocol import Array, brief
from mechanisms.backend import Rng, Values, backend_of
from mechanisms.rounding import keep_probability, on_grid, portion
from mechanisms.validation import check_integer, check_positive

MAX_OUTCOMES = 2**12


@dataclass(frozen=True)
class MultiBit:
    """m of d features, chosen uniformly, are sent as one random bit each, with ε/m each; the others as 0.

    With e = ε/m, the bit for x in [α, β] is +1 with probability 1/(e^e+1) + (x−α)/(β−α)·(e^e−1)/(e^e+1), else −1. Input:
    record, float64, shape (dimension,). Output: int8 of −1, 0, 1, shape (size, dimension), m of them not 0.

    Claimed: ε-LDP for records in [α, β]^d. True, and exactly ε: which features are sent does not depend on the record, a
    bit's probability lies between 1/(e^e+1) at α and e^e/(e^e+1) at β, or the other way round, and all m bits can be
    least likely at once. With m = d it is the 1-bit mechanism on every feature.

    Source: Sajadmanesh & Gatica-Perez (2021), "Locally Private Graph Neural Networks", CCS, arXiv:2006.05535.

    Note:
        ε/m and e^e/(e^e+1) are rounded towards privacy, and a bit's probability to a multiple of 2^-53 between the two
        extremes; the deployed bits have exactly that probability. ``rectify`` divides by the rounded slope, which
        leaves a bias below (β−α)·2^-51/slope.

    Args:
        epsilon: Privacy loss of the whole record in nats, finite and > 0.
        dimension: Number of features d, >= 1.
        low: The bound α of every feature, public.
        high: The bound β of every feature, public, > low.
        sampled: The number m of features that are sent; max(1, min(d, ⌊ε/2.18⌋)) by default. 2.18 is where t·coth²(t/2)
            is least, that is the root of sinh t = 2t, so m = ε/2.18 has the least variance among real numbers. Its floor
            need not be best among the integers: for ε = 4 and d >= 2 it is 1, with 1.25 times the variance of m = 2
            (at most 1.34 times, just below ε = 4.36).
    """

    epsilon: float
    dimension: int
    low: float = 0.0
    high: float = 1.0
    sampled: int | None = None

    def __post_init__(self) -> None:
        check_positive("MultiBit", "epsilon", self.epsilon)
        check_integer("MultiBit", "dimension", self.dimension, 1)
        if not (math.isfinite(self.high - self.low) and self.low < self.high):
            raise MechanismError(
                f"MultiBit: expected finite bounds low < high, got {self.low!r} and {self.high!r}"
            )
        if self.sampled is None:
            object.__setattr__(
                self,
                "sampled",
                max(1, min(self.dimension, math.floor(self.epsilon / 2.18))),
            )
        check_integer("MultiBit", "sampled", self.sampled, 1)
        if self.m > self.dimension:
            raise MechanismError(
                f"MultiBit: expected sampled <= dimension={self.dimension}, got {self.sampled!r}"
            )

    @property
    def name(self) -> str:
        """The mechanism, its budget, and how many features it sends."""
        what = "OneBit" if self.m == self.dimension else "MultiBit"
        bounds = (
            ""
            if (self.low, self.high) == (0, 1)
            else f", low={self.low:g}, high={self.high:g}"
        )
        return f"{what}(epsilon={self.epsilon:g}, {self.m} of {self.dimension} features{bounds})"

    @property
    def m(self) -> int:
        """Number of features that are sent."""
        return int(self.sampled)

    @cached_property
    def keep(self) -> float:
        """e^e/(e^e+1), e = ε/m: the probability of +1 at the upper bound, and of −1 at the lower, a multiple of 2^-53."""
        return keep_probability(
            portion(self.epsilon, Fraction(1, self.m)) if self.m > 1 else self.epsilon
        )

    @property
    def slope(self) -> float:
        """(e^e−1)/(e^e+1): how much more likely +1 is at the upper bound than at the lower; exact."""
        return 2 * self.keep - 1

    def records(self, values: Values, rng: Rng) -> Values:
        """Return records as float64 of shape (n, dimension), on the generator's device.

        Raises:
            MechanismError: If they are anything else, or a feature is out of bounds.
        """
        records = backend_of(rng).array(values)
        if records.ndim != 2 or records.shape[1] != self.dimension:
            raise MechanismError(
                f"{self.name}: expected records of shape (n, {self.dimension}), got {tuple(records.shape)}"
            )
        if not bool(((records >= self.low) & (records <= self.high)).all()):
            raise MechanismError(
                f"{self.name}: expected features in [{self.low:g}, {self.high:g}], got {brief(values)}; clip them to these "
                "bounds, or give wider ones (public, not taken from the data)"
            )
        return records

    def _ones(self, records: Values, xp: Any) -> Values:
        """The probability of +1 for every feature, if it is sent: multiples of 2^-53 in [1−keep, keep]."""
        place = (records - self.low) / (self.high - self.low)
        return on_grid(xp, (1 - self.keep) + place * self.slope)

    def _one_record(self, data: Any) -> Array:
        return self._ones(
            self.records(np.asarray(data, np.float64)[None], np.random.default_rng(0)),
            np,
        )[0]

    def perturb(self, values: Values, *, rng: Rng) -> Values:
        """Return one encoded record for each of n records, int8, shape (n, dimension)."""
        backend = backend_of(rng)
        records = self.records(values, rng)
        sent = backend.subsets(len(records), self.dimension, self.m)
        xp = backend.xp
        signs = xp.where(
            backend.uniform(*records.shape) < self._ones(records, xp), 1, -1
        )
        return xp.asarray(signs * sent, dtype=xp.int8)

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent encodings of one record, int8, shape (size, dimension)."""
        return self.perturb(
            np.repeat(np.asarray(data, np.float64)[None], size, axis=0), rng=rng
        )

    def rectify(self, encoded: Values) -> Values:
        """Return unbiased estimates of the features, float64, same shape: d(β−α)/(2m·slope) x* + (α+β)/2."""
        encoded = (
            encoded.double()
            if hasattr(encoded, "double")
            else np.asarray(encoded, np.float64)
        )
        return self.step * encoded + (self.low + self.high) / 2

    @property
    def step(self) -> float:
        """Change of a feature's estimate by an encoded 1."""
        return self.dimension * (self.high - self.low) / (2 * self.m * self.slope)

    def variance(self, values: Any) -> Any:
        """Return the variance of the estimates of features, elementwise: (m/d)·step² − (x − (α+β)/2)²."""
        return (
            self.m / self.dimension * self.step**2
            - (values - (self.low + self.high) / 2) ** 2
        )

    def distribution(self, data: Array) -> FiniteLaw:
        """Return the exact law as Fractions, where there are at most 2^12 outputs.

        Raises:
            MechanismError: If there are more.
        """
        count = math.comb(self.dimension, self.m) * 2**self.m
        if count > MAX_OUTCOMES:
            raise MechanismError(
                f"{self.name}: {count} outputs, at most {MAX_OUTCOMES}; use log_prob, or fewer features"
            )
        ones = [Fraction(float(p)) for p in self._one_record(data)]
        outcomes, probabilities = [], []
        for places in combinations(range(self.dimension), self.m):
            for signs in product((-1, 1), repeat=self.m):
                row = np.zeros(self.dimension, np.int8)
                row[list(places)] = signs
                outcomes.append(row)
                bits = (
                    ones[i] if sign > 0 else 1 - ones[i]
                    for i, sign in zip(places, signs, strict=True)
                )
                probabilities.append(
                    math.prod(
                        bits, start=Fraction(1, math.comb(self.dimension, self.m))
                    )
                )
        return FiniteLaw(np.array(outcomes), probabilities)

    def envelope(self) -> Envelope:
        """Return the extremes of one bit over the whole domain, reached by each of the m bits on its own."""
        lowest, highest = (
            np.full(self.dimension, float(self.low)),
            np.full(self.dimension, float(self.high)),
        )
        keep = Fraction(self.keep)
        return Envelope(
            outputs=["+1 for a feature that is sent", "-1 for a feature that is sent"],
            least=[1 - keep] * 2,
            most=[keep] * 2,
            inputs=[(highest, lowest), (lowest, highest)],
            uses=self.m,
        )

    def log_prob(self, outputs: Array, data: Array) -> Array:
        """Return the log probability of each output, shape (size,); -inf where not m features are sent."""
        outputs, ones = np.asarray(outputs), self._one_record(data)
        bits = np.select(
            [outputs > 0, outputs < 0], [np.log(ones), np.log1p(-ones)], 0.0
        ).sum(axis=1)
        possible = np.count_nonzero(outputs, axis=1) == self.m
        return np.where(
            possible, bits - math.log(math.comb(self.dimension, self.m)), -np.inf
        )


def OneBit(  # noqa: N802
    epsilon: float, dimension: int, low: float = 0.0, high: float = 1.0
) -> MultiBit:
    """Return the 1-bit mechanism on every feature of a record, with ε/d each: the multi-bit encoder that sends all."""
    return MultiBit(epsilon, dimension, low, high, sampled=dimension)


@dataclass(frozen=True)
class Rectified:
    """The estimate of one feature that the server makes of an encoded record. Output: float64, shape (size,).

    Claimed: unbiased. True: E[x*] = (m/d)(2P(+1) − 1) = (m/d)·slope·(2x−α−β)/(β−α), which ``rectify`` undoes.

    Args:
        encoder: What the user runs.
        feature: Index of the feature.
    """

    encoder: MultiBit
    feature: int = 0

    @property
    def name(self) -> str:
        """The encoder and the feature."""
        return f"feature {self.feature} rectified from {self.encoder.name}"

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent estimates."""
        return self.encoder.rectify(self.encoder(data, size, rng=rng)[:, self.feature])

    def output_range(self, data: Array) -> tuple[float, float]:
        """Return the estimates made of −1 and of 1."""
        low, high = self.encoder.rectify(np.array([-1, 1])).tolist()
        return low, high
