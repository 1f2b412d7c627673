"""Noise in proportion to a clipping threshold that is read off the private gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb

from auditdp.mechanism.laws import FiniteLaw, GaussianLaw, ball, precision
from auditdp.mechanism.protocol import Array
from mechanisms.cells import Rng
from mechanisms.validation import check_positive


@dataclass(frozen=True)
class ClippedAtPercentile:
    """The sum of gradients, each a number clipped at the 75th percentile q of their sizes, plus N(0, (λ·b·q)²).

    Claimed: 1/λ-Gaussian DP for a step, b·q being the sensitivity of the sum. Input: gradients, shape (k,), not all 0.
    Output: float64, shape (size,).

    Source: estimate_clipping_thresholds in train.py and dp_aggregate in optimizers.py of google-research/google-research,
    differentially_private_gnns, at 076b2cc7 (the code of Daigavane et al. 2021, arXiv:2111.15521).

    Args:
        noise: λ, finite and > 0.
        base: b, how many thresholds the sum can move by; 2(K + 1) in the source.
        percentile: Which percentile; 75 in the source.
    """

    noise: float
    base: float
    percentile: float = 75.0

    def __post_init__(self) -> None:
        check_positive("ClippedAtPercentile", "noise", self.noise)
        check_positive("ClippedAtPercentile", "base", self.base)

    @property
    def name(self) -> str:
        """The mechanism and its noise."""
        return f"ClippedAtPercentile(noise={self.noise:g}, base={self.base:g})"

    def threshold(self, data: Sequence[float] | Array) -> float:
        """Return the percentile of the gradients' sizes."""
        return float(
            np.percentile(np.abs(np.asarray(data, dtype=float)), self.percentile)
        )

    def moments(self, data: Sequence[float] | Array) -> tuple[float, float]:
        """Return mean and standard deviation of the release."""
        clip = self.threshold(data)
        return float(
            np.clip(np.asarray(data, dtype=float), -clip, clip).sum()
        ), self.noise * self.base * clip

    def __call__(self, data: Sequence[float] | Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent noisy sums."""
        mean, sigma = self.moments(data)
        return mean + sigma * rng.standard_normal(size)


@dataclass(frozen=True)
class ClippedAtConstant(ClippedAtPercentile):
    """The same with a public threshold."""

    clip: float = 1.0

    def threshold(self, data: Sequence[float] | Array) -> float:
        """Return the public threshold."""
        return self.clip

    def distribution(self, data: Sequence[float] | Array) -> GaussianLaw:
        """Return the law."""
        mean, sigma = self.moments(data)
        return GaussianLaw(np.array([mean]), sigma)


@dataclass(frozen=True)
class Beyond:
    """A bit: True if the noisy sum is farther than ``limit`` from 0.

    Output: bool, shape (size,).

    Args:
        noisy: What is released.
        limit: The limit, finite and > 0.
    """

    noisy: ClippedAtPercentile
    limit: float

    def __post_init__(self) -> None:
        check_positive("Beyond", "limit", self.limit)

    @property
    def name(self) -> str:
        """The sum and the limit."""
        return f"{self.noisy.name} beyond {self.limit:g}"

    def __call__(self, data: Sequence[float] | Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent bits, True for a noisy sum beyond the limit."""
        return np.abs(self.noisy(data, size, rng=rng)) > self.limit

    def distribution(self, data: Sequence[float] | Array) -> FiniteLaw:
        """Return the law, enclosed."""
        mean, sigma = (Fraction(moment) for moment in self.noisy.moments(data))
        with precision():
            root = arb(2).sqrt()
            beyond = sum(
                (
                    (
                        (
                            ball((Fraction(self.limit) + sign * mean) / sigma) / root
                        ).erfc()
                        / 2
                    )
                    for sign in (-1, 1)
                ),
                arb(0),
            )
            return FiniteLaw(np.array([False, True]), [1 - beyond, beyond])
