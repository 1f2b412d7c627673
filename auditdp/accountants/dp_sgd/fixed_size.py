"""DP-SGD with batches of a fixed size, drawn without replacement: not the guarantee of Poisson batches.

With σ = 1, 100 of 10,000 records, 1,000 steps and δ = 1e-5 Poisson batches lose ε = 1.83 and these at least 13.3: neighbours
replace a record here, which moves a sum of clipped gradients twice as far.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from auditdp.accountants.base import Accountant, AccountantError, Soundness
from auditdp.accountants.description import Description
from auditdp.accountants.dp_sgd import sampled_gaussian
from auditdp.accountants.dp_sgd.loss_distributions import GridCurve, OnGrid, from_above
from auditdp.accountants.dp_sgd.parameters import REPLACE
from auditdp.accountants.dp_sgd.poisson import removed_and_added
from auditdp.accountants.gaussian import GaussianNoise
from auditdp.accountants.renyi import RenyiCurve, dp_accounting
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
            raise AccountantError(f"{kind}: expected batch <= records={self.records}, got batch={self.batch!r}")

    def wider(self) -> tuple[Description, ...]:
        """Return the steps without sampling, in each of which a record that is replaced moves the sum by 2C at most."""
        return (GaussianNoise(self.noise_multiplier, 2.0, self.steps),)

    @property
    def rate(self) -> float:
        """Share of the records that a batch has."""
        return self.batch / self.records

    def largest_loss(self, negligible: float) -> float:
        """Return the largest loss of Poisson's pair with half the noise that is likelier than ``negligible``."""
        return sampled_gaussian.largest_loss(self.noise_multiplier / 2, self.rate, negligible)


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
        last = int(sampled_gaussian.points(noise, rate, negligible, interval)[-1])
        ends = np.arange(last + 1) * interval
        # The first cell has the losses below zero, whose mass is that of the other order above zero.
        (low, high), (low_second, high_second) = (
            [side[1:] for side in both] for both in sampled_gaussian.cells(noise, rate, ends)
        )
        first, second = np.concatenate([high_second[::-1], high]), np.concatenate([low[::-1], low_second])
        # Sums are off by less than 200u.
        first[last] += 1 - low.sum() - low_second.sum() + 2.0**-44
        second[last] += max(0.0, 1 - high_second.sum() - high.sum() - 2.0**-44)
        return [from_above(first, second, -last, interval, rounding=sampled_gaussian.rounding(noise, rate, ends))]


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
    source: ClassVar[str] = "an attained pair (Lebeda, Regehr, Kamath & Steinke 2024, arXiv:2405.20769)"

    def losses(self, negligible: float, interval: float) -> list[OnGrid]:
        """Return the loss of a step in both orders."""
        return removed_and_added(self.noise_multiplier / 2, self.rate, negligible, interval)


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
        accountant = library.rdp.RdpAccountant(neighboring_relation=library.NeighboringRelation.REPLACE_ONE)
        accountant.compose(library.SampledWithoutReplacementDpEvent(self.records, self.batch, noise))
        return accountant.orders, accountant.rdp


def fixed_size_accountants(noise_multiplier: float, records: int, batch: int, steps: int) -> list[Accountant]:
    """Return every accountant of DP-SGD with batches of a fixed size without replacement."""
    return [kind(noise_multiplier, records, batch, steps) for kind in (FixedSizeUpper, FixedSizeLower, FixedSizeRDP)]
