"""DP-SGD with batches that are not Poisson samples: of a fixed size, or shuffled.

Neither has the guarantee of Poisson batches.

*Fixed size, drawn without replacement.* With σ = 1, 100 of 10,000 records, 1,000 steps
and δ = 1e-5 Poisson batches lose ε = 1.83 and these at least 13.3: neighbours replace a
record here, which moves a sum of clipped gradients twice as far.

*Shuffled, and cut into batches once an epoch.* With σ = .6, one epoch of 1,000 batches
and δ = 1e-5 Poisson batches lose ε = 1.42 and these between 7.987 and 8.004.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from auditdp.accountants.accountant import (
    Accountant,
    Analysis,
    Description,
    Soundness,
)
from auditdp.accountants.additive_noise import GaussianCurve, GaussianNoise
from auditdp.accountants.concentrated import RenyiCurve, dp_accounting
from auditdp.accountants.dp_sgd_parameters import REPLACE, ZERO_OUT
from auditdp.accountants.dp_sgd_poisson import SampledCurve, SampledLower, deviations
from auditdp.accountants.loss_grid import (
    AttainedPair,
    OnGrid,
    from_above,
)
from auditdp.accountants.normal_quantiles import Enclosed, log_cdf
from auditdp.accountants.parameter_checks import AccountantError
from auditdp.mechanism.protocol import Array


@dataclass(frozen=True)
class FixedSize(Description):
    """Batches of a fixed size, drawn without replacement for each step.

    Neighbours replace a record. Replacing a record changes the sum of clipped gradients
    by up to 2C, so the noise counts half of what it counts for records that are added
    or removed.

    Args:
        noise_multiplier: σ: standard deviation of the noise on the sum of clipped
            gradients, over the clipping norm C.
        records: N, which is public.
        batch: The number of records in a batch.
        steps: The number of batches.
    """

    noise_multiplier: float
    records: int
    batch: int
    steps: int
    adjacency = REPLACE
    sampling = "fixed size without replacement"
    sensitivity = 2.0
    words = (
        "DP-SGD in {self.steps:,} batches of {self.batch:,} among {self.records:,} records "
        "with noise multiplier {self.noise_multiplier:.6g}"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch > self.records:
            raise AccountantError(
                f"{type(self).__name__}: expected batch <= records={self.records}, got "
                f"batch={self.batch!r}"
            )

    def wider(self) -> tuple[Description, ...]:
        """Return the steps without sampling: a record moves each sum by 2C at most."""
        return (GaussianNoise(self.noise_multiplier, self.sensitivity, self.steps),)

    @property
    def rate(self) -> float:
        """A batch's share of the records."""
        return self.batch / self.records


class FixedSizeUpper(FixedSize, SampledCurve):
    """The amplified curve, composed.

    With q = batch/N, write M(x) = (1−q) A + q B and M(x′) = (1−q) A + q B′, given
    whether the record is in the batch; all of A, B, B′ are mixtures of Gaussians that
    pair up at most 2C apart. Advanced joint convexity gives, for every pair in either
    order and ε >= 0, δ(ε) <= q δ_Gauss(ε₀) with ε = ln(1 + q(e^ε₀ − 1)) and sensitivity
    2C. For Poisson batches with half the noise that is the curve of the record's
    removal; here it holds in both orders at once, so that no composition of one order
    bounds the composition, and the curve itself is put on the grid.

    Source: Balle, Barthe & Gaboardi (2018), arXiv:1807.01647v2, Theorem 9; Zhu, Dong &
    Wang (2022), arXiv:2106.08567v3, Theorem 11, part 2.
    """

    soundness = Soundness.UPPER
    source = (
        "amplified curve (Zhu, Dong & Wang 2022, arXiv:2106.08567v3, Theorem 11), by connecting "
        "the dots"
    )

    def losses(self, negligible: float, interval: float) -> list[OnGrid]:
        """Return the loss whose curve is the amplified one.

        Above zero it is that of the record's removal, below zero that of its addition,
        and the remaining mass is at zero.
        """
        last = int(self.pair.points(negligible, interval)[-1])
        ends = np.arange(last + 1) * interval
        with_record, without = self.pair.cells(ends)
        # The first cell has the losses below zero, whose mass is that of the other
        # order above zero.
        low, high = with_record[0][1:], with_record[1][1:]
        low_second, high_second = without[0][1:], without[1][1:]
        first = np.concatenate([high_second[::-1], high])
        second = np.concatenate([low[::-1], low_second])
        # Sums are off by less than 200u.
        first[last] += 1 - low.sum() - low_second.sum() + 2.0**-44
        second[last] += max(0.0, 1 - high_second.sum() - high.sum() - 2.0**-44)
        off = self.pair.rounding(ends)
        return [from_above(first, second, -last, interval, rounding=off)]


class FixedSizeLower(FixedSize, SampledLower):
    """The attained pair of a step, in both orders.

    All other gradients are −C while the record's changes from C to −C. Both orders are
    composed. The batch's sum has one law without the record, and is 2C higher with it:
    Poisson's pair with half the noise.

    Note:
        The worst data of one step need not be the worst of a composition (Lebeda,
        Regehr, Kamath & Steinke 2024, "Avoiding Pitfalls for Privacy Accounting of
        Subsampled Mechanisms under Composition", arXiv:2405.20769), which is why this
        is a lower bound.
    """

    source = (
        "an attained pair (Lebeda, Regehr, Kamath & Steinke 2024, arXiv:2405.20769)"
    )


class FixedSizeRDP(FixedSize, RenyiCurve):
    """dp-accounting's Rényi bound for any mechanism on batches of a fixed size.

    Note:
        dp-accounting takes its noise multiplier relative to the sensitivity under
        replacement, 2C, and does not document that: with that of DP-SGD it answers for
        half the sensitivity.
    """

    source = (
        "dp-accounting 0.6, RDP (Wang, Balle & Kasiviswanathan 2019, arXiv:1808.00087, "
        "Theorem 27), at sensitivity 2C"
    )

    def divergences(self) -> tuple[Array, Array]:
        """Return dp-accounting's orders and the divergence of a step for each."""
        library = dp_accounting()
        relation = library.NeighboringRelation.REPLACE_ONE
        accountant = library.rdp.RdpAccountant(neighboring_relation=relation)
        noise = library.GaussianDpEvent(self.noise_multiplier / 2)
        accountant.compose(
            library.SampledWithoutReplacementDpEvent(self.records, self.batch, noise)
        )
        return accountant.orders, accountant.rdp


def fixed_size_accountants(
    noise_multiplier: float, records: int, batch: int, steps: int
) -> list[Accountant]:
    """Return every accountant of DP-SGD with batches of a fixed size."""
    kinds = (FixedSizeUpper, FixedSizeLower, FixedSizeRDP)
    return [kind(noise_multiplier, records, batch, steps) for kind in kinds]


@dataclass(frozen=True)
class Shuffled(Description):
    """Records shuffled and cut into batches anew for each epoch.

    Neighbours replace one record by one without gradient.

    Args:
        noise_multiplier: σ: standard deviation of the noise on the sum of clipped
            gradients, over the clipping norm.
        batches: The number of batches (steps) in an epoch.
        epochs: The number of epochs.
    """

    noise_multiplier: float
    batches: int
    epochs: int = 1
    adjacency = ZERO_OUT
    sampling = "shuffled"
    words = (
        "DP-SGD in {self.epochs:,} shuffled epochs of {self.batches:,} batches with noise "
        "multiplier {self.noise_multiplier:.6g}"
    )

    def wider(self) -> tuple[GaussianNoise]:
        """Return one release an epoch, since a record is in one batch of it."""
        return (GaussianNoise(self.noise_multiplier, 1.0, self.epochs),)


class ShuffledLower(Shuffled, AttainedPair):
    """The loss of an epoch's largest output.

    Let all other gradients be −C and the record's +C, against none. Up to a shift that
    is the same for both, the batch that has the record sums to 2 against 1, every other
    to 0, and which one it is, is uniform. The maximum M of an epoch's outputs is
    post-processing, and P(M <= x) is Φ((x−2)/σ) Φ(x/σ)^(T−1) against Φ((x−1)/σ)
    Φ(x/σ)^(T−1). Both orders are composed.

    Source: Chua, Ghazi, Kamath, Kumar, Manurangsi, Sinha & Zhang (2024), "How Private
    are DP-SGD Implementations?", arXiv:2403.17673v2, for one epoch; Chua et al. (2024),
    "Scalable DP-SGD: Shuffling vs. Poisson Subsampling", arXiv:2411.04205, for several.
    """

    source = (
        "the largest output of an attained pair (Chua et al. 2024, arXiv:2403.17673v2)"
    )

    @property
    def uses(self) -> int:
        """One for each epoch."""
        return self.epochs

    def loss_quantile(self, negligible: float) -> float:
        """Return the loss of one release with the record in its batch."""
        sigma = self.noise_multiplier
        return 0.5 / sigma**2 + deviations(negligible) / sigma

    def cells(self, negligible: float) -> tuple[Enclosed, Enclosed]:
        """Return bounds on the probabilities of cells of the maximum."""
        reach = deviations(negligible) * self.noise_multiplier
        edges = np.linspace(-reach, 2 + reach, 50_001)
        return self.cells_between(edges, 2.0), self.cells_between(edges, 1.0)

    def cells_between(self, edges: Array, mean: float) -> Enclosed:
        """Return bounds on the masses of the maximum between edges and beyond.

        ``mean`` is that of the batch with the record.
        """
        sigma, other_batches = self.noise_multiplier, self.batches - 1
        with_record_cdf, each = log_cdf((edges - mean) / sigma), log_cdf(edges / sigma)
        low = (with_record_cdf[0] + other_batches * each[0]) * (1 + 2.0**-50)
        high = (with_record_cdf[1] + other_batches * each[1]) * (1 - 2.0**-50)
        # Differences of the upper tail if it is the smaller one, so that small
        # probabilities keep their digits.
        tails_low = np.append(-np.expm1(high), 0.0) * (1 - 2.0**-50)
        tails_high = np.append(-np.expm1(low), 0.0) * (1 + 2.0**-50)
        below_low = np.append(np.exp(low), 1.0) * (1 - 2.0**-50)
        below_high = np.append(np.exp(high) * (1 + 2.0**-50), 1.0)
        upper = tails_high[:-1] < 0.5
        mass_low = np.where(
            upper, tails_low[:-1] - tails_high[1:], below_low[1:] - below_high[:-1]
        )
        mass_high = np.where(
            upper, tails_high[:-1] - tails_low[1:], below_high[1:] - below_low[:-1]
        )
        cells_low = np.maximum(mass_low * (1 - 2.0**-52), 0.0)
        return cells_low, np.maximum(mass_high * (1 + 2.0**-52), 0.0)


class ShuffledUpper(Shuffled, Analysis):
    """A bound for every order of the records, even a public one.

    Each record is in one batch of each epoch. Given the permutations only the steps
    with the record differ, one an epoch, each an adaptive Gaussian release of
    sensitivity C; a mixture of pairs is no worse than the worst of them. So an epoch is
    1/σ-Gaussian DP, and all of them together √epochs/σ (Dong, Roth & Su 2022,
    arXiv:1905.02383v3, Corollary 3.3).
    """

    soundness = Soundness.UPPER
    source = "each record is in one batch of each epoch (Dong, Roth & Su 2022, arXiv:1905.02383v3)"

    def delta_at(self, epsilon: float) -> float:
        """Return δ(ε) of the Gaussian curve."""
        return GaussianCurve(self.noise_multiplier, count=self.epochs).delta_at(epsilon)


def shuffled_accountants(
    noise_multiplier: float, batches: int, epochs: int = 1
) -> list[Accountant]:
    """Return every accountant of DP-SGD with batches shuffled for each epoch."""
    kinds = (ShuffledUpper, ShuffledLower)
    return [kind(noise_multiplier, batches, epochs) for kind in kinds]
