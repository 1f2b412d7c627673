"""DP-SGD with batches of a fixed size, drawn without replacement: not the guarantee of Poisson batches.

With σ = 1, 100 of 10,000 records, 1,000 steps and δ = 1e-5 Poisson batches lose ε = 1.83 and these at least 13.3: neighbours
replace a record here, which moves a sum of clipped gradients twice as far.

DP-SGD with records that are shuffled and cut into batches once an epoch: not the guarantee of Poisson batches.

With σ = .6, one epoch of 1,000 batches and δ = 1e-5 Poisson batches lose ε = 1.42 and these between 7.987 and 8.004.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from auditdp.accountants import dp_sgd_poisson
from auditdp.accountants.accountant import (
    Accountant,
    AccountantError,
    Inverted,
    Soundness,
)
from auditdp.accountants.additive_noise import GaussianCurve, GaussianNoise
from auditdp.accountants.concentrated import RenyiCurve, dp_accounting
from auditdp.accountants.description import Description
from auditdp.accountants.dp_sgd_parameters import REPLACE, ZERO_OUT
from auditdp.accountants.dp_sgd_poisson import removed_and_added
from auditdp.accountants.loss_grid import GridCurve, OnGrid, from_above, from_below
from auditdp.accountants.normal_quantiles import Enclosed, log_at_most
from auditdp.mechanism.protocol import Array


@dataclass(frozen=True)
class FixedSize(Description):
    """Batches of a fixed number of records, drawn without replacement for each step afresh; neighbours replace a record.

    Replacing a record changes the sum of clipped gradients by up to 2C, so the noise counts half of what it counts for
    records that are added or removed.

    Args:
        noise_multiplier: σ: standard deviation of the noise on the sum of clipped gradients, over the clipping norm C.
        records: N, which is public.
        batch: How many records a batch has.
        steps: How many batches.
    """

    noise_multiplier: float
    records: int
    batch: int
    steps: int
    adjacency: ClassVar[str] = REPLACE
    sampling: ClassVar[str] = "fixed size without replacement"
    words: ClassVar[str] = (
        "DP-SGD in {self.steps:,} batches of {self.batch:,} among {self.records:,} records with noise multiplier "
        "{self.noise_multiplier:.6g}"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch > self.records:
            kind = type(self).__name__
            raise AccountantError(
                f"{kind}: expected batch <= records={self.records}, got batch={self.batch!r}"
            )

    def wider(self) -> tuple[Description, ...]:
        """Return the steps without sampling, in each of which a record that is replaced moves the sum by 2C at most."""
        return (GaussianNoise(self.noise_multiplier, 2.0, self.steps),)

    @property
    def rate(self) -> float:
        """Share of the records that a batch has."""
        return self.batch / self.records

    def largest_loss(self, negligible: float) -> float:
        """Return the largest loss of Poisson's pair with half the noise that is likelier than ``negligible``."""
        return dp_sgd_poisson.largest_loss(
            self.noise_multiplier / 2, self.rate, negligible
        )


@dataclass(frozen=True)
class FixedSizeUpper(FixedSize, GridCurve):
    """The amplified curve, composed.

    With q = batch/N, write M(x) = (1−q) A + q B and M(x′) = (1−q) A + q B′, given whether the record is in the batch; all
    of A, B, B′ are mixtures of Gaussians that pair up at most 2C apart. Advanced joint convexity gives, for every pair in
    either order and ε >= 0, δ(ε) <= q δ_Gauss(ε₀) with ε = ln(1 + q(e^ε₀ − 1)) and sensitivity 2C. For Poisson batches with
    half the noise that is the curve of the record's removal; here it holds in both orders at once, so that no composition of
    one order bounds the composition, and the curve itself is put on the grid.

    Source: Balle, Barthe & Gaboardi (2018), arXiv:1807.01647v2, Theorem 9; Zhu, Dong & Wang (2022), arXiv:2106.08567v3,
    Theorem 11, part 2.
    """

    soundness: ClassVar[Soundness] = Soundness.UPPER
    source: ClassVar[str] = (
        "amplified curve (Zhu, Dong & Wang 2022, arXiv:2106.08567v3, Theorem 11), by connecting the dots"
    )

    def losses(self, negligible: float, interval: float) -> list[OnGrid]:
        """Return the loss whose curve is the amplified one.

        Above zero it is that of the record's removal, below zero that of its addition, and what remains of the mass is at
        zero.
        """
        noise, rate = self.noise_multiplier / 2, self.rate
        last = int(dp_sgd_poisson.points(noise, rate, negligible, interval)[-1])
        ends = np.arange(last + 1) * interval
        # The first cell has the losses below zero, whose mass is that of the other order above zero.
        (low, high), (low_second, high_second) = (
            [side[1:] for side in both]
            for both in dp_sgd_poisson.cells(noise, rate, ends)
        )
        first, second = (
            np.concatenate([high_second[::-1], high]),
            np.concatenate([low[::-1], low_second]),
        )
        # Sums are off by less than 200u.
        first[last] += 1 - low.sum() - low_second.sum() + 2.0**-44
        second[last] += max(0.0, 1 - high_second.sum() - high.sum() - 2.0**-44)
        return [
            from_above(
                first,
                second,
                -last,
                interval,
                rounding=dp_sgd_poisson.rounding(noise, rate, ends),
            )
        ]


@dataclass(frozen=True)
class FixedSizeLower(FixedSize, GridCurve):
    """Two attained pairs: all other gradients −C while the record's changes from C to −C, in both orders.

    The batch's sum has one law without the record, and is 2C higher with it: Poisson's pair with half the noise.

    Note:
        The worst data of one step need not be the worst of a composition (Lebeda, Regehr, Kamath & Steinke 2024, "Avoiding
        Pitfalls for Privacy Accounting of Subsampled Mechanisms under Composition", arXiv:2405.20769), which is why this is
        a lower bound.
    """

    soundness: ClassVar[Soundness] = Soundness.LOWER
    source: ClassVar[str] = (
        "an attained pair (Lebeda, Regehr, Kamath & Steinke 2024, arXiv:2405.20769)"
    )

    def losses(self, negligible: float, interval: float) -> list[OnGrid]:
        """Return the loss of a step in both orders."""
        return removed_and_added(
            self.noise_multiplier / 2, self.rate, negligible, interval
        )


@dataclass(frozen=True)
class FixedSizeRDP(FixedSize, RenyiCurve):
    """dp-accounting's Rényi bound for any mechanism on batches of a fixed size.

    Note:
        dp-accounting takes its noise multiplier relative to the sensitivity under replacement, 2C, and does not say so: with
        that of DP-SGD it answers for half the sensitivity.
    """

    source: ClassVar[str] = (
        "dp-accounting 0.6, RDP (Wang, Balle & Kasiviswanathan 2019, arXiv:1808.00087, Theorem 27), at sensitivity 2C"
    )

    def divergences(self) -> tuple[Array, Array]:
        """Return dp-accounting's orders and the divergence of a step for each."""
        library = dp_accounting()
        noise = library.GaussianDpEvent(self.noise_multiplier / 2)
        accountant = library.rdp.RdpAccountant(
            neighboring_relation=library.NeighboringRelation.REPLACE_ONE
        )
        accountant.compose(
            library.SampledWithoutReplacementDpEvent(self.records, self.batch, noise)
        )
        return accountant.orders, accountant.rdp


def fixed_size_accountants(
    noise_multiplier: float, records: int, batch: int, steps: int
) -> list[Accountant]:
    """Return every accountant of DP-SGD with batches of a fixed size without replacement."""
    return [
        kind(noise_multiplier, records, batch, steps)
        for kind in (FixedSizeUpper, FixedSizeLower, FixedSizeRDP)
    ]


@dataclass(frozen=True)
class Shuffled(Description):
    """Records shuffled and cut into batches anew for each epoch; neighbours replace one record by one without gradient.

    Args:
        noise_multiplier: σ: standard deviation of the noise on the sum of clipped gradients, over the clipping norm.
        batches: Batches (steps) of an epoch.
        epochs: How many epochs.
    """

    noise_multiplier: float
    batches: int
    epochs: int = 1
    adjacency: ClassVar[str] = ZERO_OUT
    sampling: ClassVar[str] = "shuffled"
    words: ClassVar[str] = (
        "DP-SGD in {self.epochs:,} shuffled epochs of {self.batches:,} batches with noise multiplier "
        "{self.noise_multiplier:.6g}"
    )

    def wider(self) -> tuple[GaussianNoise]:
        """Return one release an epoch, since a record is in one batch of it."""
        return (GaussianNoise(self.noise_multiplier, 1.0, self.epochs),)

    @property
    def uses(self) -> int:
        """One for each epoch."""
        return self.epochs


@dataclass(frozen=True)
class ShuffledLower(Shuffled, GridCurve):
    """What the largest output of an epoch gives away.

    Let all other gradients be −C and the record's +C, against none. Up to a shift that is the same for both, the batch that
    has the record sums to 2 against 1, every other to 0, and which one it is, is uniform. The maximum M of an epoch's
    outputs is post-processing, and P(M <= x) is Φ((x−2)/σ) Φ(x/σ)^(T−1) against Φ((x−1)/σ) Φ(x/σ)^(T−1). Both orders are
    composed.

    Source: Chua, Ghazi, Kamath, Kumar, Manurangsi, Sinha & Zhang (2024), "How Private are DP-SGD Implementations?",
    arXiv:2403.17673v2, for one epoch; Chua et al. (2024), "Scalable DP-SGD: Shuffling vs. Poisson Subsampling",
    arXiv:2411.04205, for several.
    """

    soundness: ClassVar[Soundness] = Soundness.LOWER
    source: ClassVar[str] = (
        "the largest output of an attained pair (Chua et al. 2024, arXiv:2403.17673v2)"
    )

    def largest_loss(self, negligible: float) -> float:
        """Return the loss of one release with the record in its batch."""
        return (
            0.5 / self.noise_multiplier**2
            + dp_sgd_poisson.deviations(negligible) / self.noise_multiplier
        )

    def losses(self, negligible: float, interval: float) -> list[OnGrid]:
        """Return the loss of an epoch in both orders."""
        (low, high), (low_other, high_other) = _attained(self, negligible)
        return [
            from_below(low, high_other, interval),
            from_below(low_other, high, interval),
        ]

    def cells(self, edges: Array, mean: float, sigma: float) -> Enclosed:
        """Return bounds on the probabilities that the maximum lies between two edges, or beyond the last."""
        own, others = log_at_most((edges - mean) / sigma), log_at_most(edges / sigma)
        low, high = (
            (a + (self.batches - 1) * b) * (1 + way * 2.0**-50)
            for a, b, way in zip(own, others, (1, -1), strict=True)
        )
        # By differences of the upper tail where it is the smaller one, so that small probabilities keep their digits.
        tails = (
            np.append(-np.expm1(high), 0.0) * (1 - 2.0**-50),
            np.append(-np.expm1(low), 0.0) * (1 + 2.0**-50),
        )
        below = (
            np.append(np.exp(low), 1.0) * (1 - 2.0**-50),
            np.append(np.exp(high) * (1 + 2.0**-50), 1.0),
        )
        upper = tails[1][:-1] < 0.5
        least = np.where(
            upper, tails[0][:-1] - tails[1][1:], below[0][1:] - below[1][:-1]
        )
        most = np.where(
            upper, tails[1][:-1] - tails[0][1:], below[1][1:] - below[0][:-1]
        )
        return np.maximum(least * (1 - 2.0**-52), 0.0), np.maximum(
            most * (1 + 2.0**-52), 0.0
        )


@lru_cache(maxsize=1)
def _attained(pair: ShuffledLower, negligible: float) -> tuple[Enclosed, Enclosed]:
    """Bounds on the probabilities of cells of the maximum, in either order."""
    sigma = pair.noise_multiplier
    reach = dp_sgd_poisson.deviations(negligible) * sigma
    edges = np.linspace(-reach, 2 + reach, 50_001)
    return pair.cells(edges, 2.0, sigma), pair.cells(edges, 1.0, sigma)


@dataclass(frozen=True)
class ShuffledUpper(Shuffled, Inverted):
    """What holds whatever the order of the records, even if it is known: each record is in one batch of each epoch.

    Given the permutations only the steps with the record differ, one an epoch, each an adaptive Gaussian release of
    sensitivity C; a mixture of pairs is no worse than the worst of them. So an epoch is 1/σ-Gaussian DP, and all of them
    together √epochs/σ (Dong, Roth & Su 2022, arXiv:1905.02383v3, Corollary 3.3).
    """

    soundness: ClassVar[Soundness] = Soundness.UPPER
    source: ClassVar[str] = (
        "each record is in one batch of each epoch (Dong, Roth & Su 2022, arXiv:1905.02383v3)"
    )

    def delta_at(self, epsilon: float) -> float:
        """Return δ(ε) of the Gaussian curve."""
        return GaussianCurve(self.noise_multiplier, count=self.epochs).delta_at(epsilon)


def shuffled_accountants(
    noise_multiplier: float, batches: int, epochs: int = 1
) -> list[Accountant]:
    """Return every accountant of DP-SGD with batches shuffled for each epoch."""
    return [
        kind(noise_multiplier, batches, epochs)
        for kind in (ShuffledUpper, ShuffledLower)
    ]
