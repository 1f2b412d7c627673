"""DP-SGD with random allocation: every record is in k of the t batches of an epoch, chosen uniformly and by itself.

Neighbours differ in one record that is there or not. With k = 1 the worst pair of an epoch is N(0, σ²I) against the mean
of N(e_i, σ²I) over the t batches i, and it is attained. *Proof.* Let z have that law, with the record or without it. A step
whose other gradients sum to s and whose record has a gradient v, ‖v‖ <= 1, all chosen from what was released before,
releases s + v z_i + N(0, σ²(I − vvᵀ)), which is N(s + v, σ²I) in the record's batch and N(s, σ²I) in others. So all that is
released is a post-processing of z, and it is z itself where v is constant and of norm 1. The likelihood ratio of z is the
mean of t independent e^L (``mean_exponentials``). Epochs are adaptive compositions (Zhu, Dong & Wang 2022,
arXiv:2106.08567v3, Theorem 10).

For k > 1 the law of z is a mixture of those of k blocks of ⌊t/k⌋ batches, each of which has the record once: draw the
blocks, then a batch of each. So k uses of such an epoch bound it from above (Feldman & Shenfeld 2025, "Privacy Amplification
by Random Allocation", arXiv:2502.08202), and the sum of z, N(k, tσ²) against N(0, tσ²), from below.

With σ = .6, one epoch of 1,000 batches and δ = 1e-5 this loses ε = 1.39; Poisson batches lose 1.42, and shuffled ones at
least 7.98.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from auditdp.accountants.base import Accountant, AccountantError, Soundness, check_epsilon, epsilon_below
from auditdp.accountants.description import Description
from auditdp.accountants.dp_sgd.loss_distributions import GridCurve, OnGrid, from_above, from_below
from auditdp.accountants.dp_sgd.mean_exponentials import MeanExponentials, PositiveLaw
from auditdp.accountants.dp_sgd.parameters import ADD_OR_REMOVE
from auditdp.accountants.gaussian import GaussianNoise, curve_of
from auditdp.mechanism.laws.balls import below

DECADES = 12
"""What is negligible to a law is so many decades apart."""


@dataclass(frozen=True)
class RandomAllocation(Description):
    """Epochs, in each of which every record is in some of the batches, drawn uniformly.

    Args:
        noise_multiplier: σ: standard deviation of the noise on the sum of clipped gradients, over the clipping norm.
        batches: t, batches (steps) of an epoch.
        epochs: How many epochs.
        participations: k, in how many batches of an epoch a record is.
    """

    noise_multiplier: float
    batches: int
    epochs: int = 1
    participations: int = 1
    adjacency: ClassVar[str] = ADD_OR_REMOVE
    sampling: ClassVar[str] = "random allocation"
    words: ClassVar[str] = (
        "DP-SGD in {self.epochs:,} epochs of {self.batches:,} batches, of which a record is in {self.participations:,}, "
        "with noise multiplier {self.noise_multiplier:.6g}"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.participations > self.batches:
            raise AccountantError(
                f"{type(self).__name__}: expected participations <= batches={self.batches}, got "
                f"participations={self.participations!r}"
            )

    def wider(self) -> tuple[GaussianNoise]:
        """Return the releases with the record, if it is known which they are."""
        return (GaussianNoise(self.noise_multiplier, 1.0, self.uses),)

    @property
    def uses(self) -> int:
        """How many times a record is used."""
        return self.epochs * self.participations

    def law(self, negligible: float, *, upper: bool) -> PositiveLaw:
        """Return bounds on the law of the likelihood ratio of one use."""
        decades = DECADES * math.ceil(-math.log10(negligible) / DECADES)  # one law for several sizes of δ
        terms = self.batches // self.participations
        return _law(MeanExponentials(self.noise_multiplier, terms, 10.0**-decades, upper))

    def largest_loss(self, negligible: float) -> float:
        """Return the largest loss of the record's removal that is not negligible."""
        return max(
            float(self.law(negligible, upper=True).logs[-1]), 1e-12
        )  # that of one batch of much noise is nearly 0


@lru_cache(maxsize=4)
def _law(of: MeanExponentials) -> PositiveLaw:
    return of.law()


@dataclass(frozen=True)
class AllocationUpper(RandomAllocation, GridCurve):
    """The curve of the worst pair of each use, rounded up."""

    soundness: ClassVar[Soundness] = Soundness.UPPER
    source: ClassVar[str] = "the worst pair (Feldman & Shenfeld 2025, arXiv:2502.08202), in convex order"

    def losses(self, negligible: float, interval: float) -> list[OnGrid]:
        """Return the loss of a use when the record is removed, and when it is added."""
        law = self.law(negligible, upper=True)
        (with_low, with_high), (low, high) = law.enclosed
        ends = np.ceil(law.logs / interval).astype(int)
        lowest = int(ends[0]) - 1
        cells, last = ends - lowest, int(ends[-1]) - lowest  # the points around cell k are k − 1 and k after the lowest
        first, second, other_first, other_second = (
            np.bincount(cells, weights=masses, minlength=last + 2) * (1 + way * 2.0**-52 * len(cells))
            for masses, way in ((with_high, 1), (low, -1), (high, 1), (with_low, -1))
        )
        first[-1], other_first[0] = law.beyond, law.zero
        off = sum(law.off) + 2.0**-50 * (1 + float(np.abs(law.logs).max()))
        removed = from_above(first, second, lowest, interval, rounding=off)
        return [removed, from_above(other_first[::-1], other_second[::-1], -lowest - last, interval, rounding=off)]


@dataclass(frozen=True)
class AllocationLower(RandomAllocation, GridCurve):
    """The curve of the attained pair of a record that is in one batch of an epoch, rounded down."""

    soundness: ClassVar[Soundness] = Soundness.LOWER
    source: ClassVar[str] = "the attained pair (Feldman & Shenfeld 2025, arXiv:2502.08202), in convex order"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.participations > 1:
            raise AccountantError(
                f"AllocationLower: expected participations=1, got participations={self.participations!r}; use AllocationSum"
            )

    def losses(self, negligible: float, interval: float) -> list[OnGrid]:
        """Return the loss of an epoch when the record is removed, and when it is added."""
        (with_low, with_high), (low, high) = self.law(negligible, upper=False).enclosed
        return [from_below(with_low, high, interval), from_below(low, with_high, interval)]


@dataclass(frozen=True)
class AllocationSum(RandomAllocation):
    """What the sum of an epoch gives away, rounded down: N(k, tσ²) against N(0, tσ²), all that there is where k = t."""

    soundness: ClassVar[Soundness] = Soundness.LOWER
    source: ClassVar[str] = "the sum of an attained pair (Balle & Wang 2018, arXiv:1805.06530v2, Theorem 8)"

    def delta_at(self, epsilon: float) -> float:
        """Return δ(ε) of that Gaussian pair."""
        check_epsilon(self.name, epsilon)
        square = self.participations**2 * Fraction(self.epochs, self.batches) / Fraction(self.noise_multiplier) ** 2
        return max(0.0, below(curve_of(square, epsilon)))

    def epsilon_at(self, delta: float) -> float:
        """Return an ε at which more than δ is lost."""
        return epsilon_below(self.delta_at, delta)


def allocation_accountants(
    noise_multiplier: float, batches: int, epochs: int = 1, participations: int = 1
) -> list[Accountant]:
    """Return every accountant of DP-SGD with random allocation, tightest first."""
    kinds = (AllocationUpper, AllocationLower if participations == 1 else AllocationSum)
    return [kind(noise_multiplier, batches, epochs, participations) for kind in kinds]
