"""DP-SGD with batches that are not Poisson samples: of a fixed size, or shuffled.

The guarantee of Poisson batches holds for neither of them.

*Fixed size, drawn without replacement.* With σ = 1, 100 of 10,000 records, 1,000 steps
and δ = 1e-5 Poisson batches have ε = 1.83, and batches of fixed size have ε >= 13.3:
neighbours replace a record here, which moves a sum of clipped gradients twice as far.

*Shuffled, and cut into batches once an epoch.* With σ = .6, one epoch of 1,000 batches
and δ = 1e-5 Poisson batches have ε = 1.42, and shuffled ones between 7.987 and 8.004.
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
    """DP-SGD with batches of a fixed size, drawn without replacement for each step.

    Neighbours replace a record. This changes the sum of clipped gradients by up to 2C;
    adding or removing a record changes it by up to C. So in units of the largest
    change, the noise is half as large.

    Args:
        noise_multiplier: σ, the standard deviation of the noise on the sum of clipped
            gradients, divided by the clipping norm C.
        records: N, the number of records, which is public.
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
        """Return a tuple of one class: Gaussian noise for the same steps, no sampling.

        A record moves each sum by at most 2C.
        """
        return (GaussianNoise(self.noise_multiplier, self.sensitivity, self.steps),)

    @property
    def rate(self) -> float:
        """The fraction of the records that is in a batch."""
        return self.batch / self.records


class FixedSizeUpper(FixedSize, SampledCurve):
    """An upper bound: the composition of a step's amplified curve.

    With q = batch/N, write M(x) = (1−q) A + q B and M(x′) = (1−q) A + q B′, given
    whether the record is in the batch; all of A, B, B′ are mixtures of Gaussians that
    pair up at most 2C apart. Advanced joint convexity gives, for every pair in either
    order and ε >= 0, δ(ε) <= q δ_Gauss(ε₀) with ε = ln(1 + q(e^ε₀ − 1)) and sensitivity
    2C. This is the curve of Poisson batches with half the noise when the record is
    removed. Here it holds in both orders at once. So a composition of one order of
    Poisson's pair is no bound, and the curve itself is put on a grid.

    Source: Balle, Barthe & Gaboardi (2018), arXiv:1807.01647v2, Theorem 9; Zhu, Dong &
    Wang (2022), arXiv:2106.08567v3, Theorem 11, part 2.
    """

    soundness = Soundness.UPPER
    source = (
        "amplified curve (Zhu, Dong & Wang 2022, arXiv:2106.08567v3, Theorem 11), by connecting "
        "the dots"
    )

    def losses(self, negligible: float, interval: float) -> list[OnGrid]:
        """Return a list of one loss, whose curve is the amplified curve of a step.

        Its positive part is that of Poisson's pair when the record is removed, its
        negative part that of the pair when the record is added. The remaining mass is
        at zero.
        """
        last = int(self.pair.points(negligible, interval)[-1])
        ends = np.arange(last + 1) * interval
        with_record, without = self.pair.cells(ends)
        # The first cell has the losses below zero. They are replaced by those of the
        # other order above zero, with the other sign.
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
    """A lower bound: the composition of an attained pair, in both orders.

    All other gradients are −C, and the gradient of the record is C or, replaced, −C. A
    batch with the record has a sum that is 2C higher than that of any other batch. So
    each step is Poisson's pair with half the noise.

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
        dp-accounting's noise multiplier is relative to the sensitivity under
        replacement, 2C, which it does not document. So DP-SGD's multiplier is halved
        here. Without that its answer would be for half the sensitivity.
    """

    source = (
        "dp-accounting 0.6, RDP (Wang, Balle & Kasiviswanathan 2019, arXiv:1808.00087, "
        "Theorem 27), at sensitivity 2C"
    )

    def divergences(self) -> tuple[Array, Array]:
        """Return dp-accounting's orders, and its D_α of one step for each of them."""
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
    """Return the accountants of ``FixedSize`` with these parameters.

    They are an upper bound, a lower bound and dp-accounting's Rényi bound.
    """
    kinds = (FixedSizeUpper, FixedSizeLower, FixedSizeRDP)
    return [kind(noise_multiplier, records, batch, steps) for kind in kinds]


@dataclass(frozen=True)
class Shuffled(Description):
    """DP-SGD whose records are shuffled and cut into batches anew for each epoch.

    Neighbours replace one record by a record with gradient 0.

    Args:
        noise_multiplier: σ, the standard deviation of the noise on the sum of clipped
            gradients, divided by the clipping norm C.
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
        """Return a tuple of one class: Gaussian noise with one release for each epoch.

        A record is in one batch of each epoch.
        """
        return (GaussianNoise(self.noise_multiplier, 1.0, self.epochs),)


class ShuffledLower(Shuffled, AttainedPair):
    """A lower bound from the largest output of each epoch.

    Let all other gradients be −C, and the record's +C on one input and 0 on the other.
    After a shift that is the same for both, and in units of C, the batch of the record
    sums to 2 on the first input and to 1 on the second. Every other batch sums to 0.
    The position of the record's batch is uniform. The maximum M of the T outputs of an
    epoch is post-processing, and P(M <= x) is Φ((x−2)/σ) Φ(x/σ)^(T−1) on the first
    input and Φ((x−1)/σ) Φ(x/σ)^(T−1) on the second. Both orders are composed.

    Source: Chua, Ghazi, Kamath, Kumar, Manurangsi, Sinha & Zhang (2024), "How Private
    are DP-SGD Implementations?", arXiv:2403.17673v2, for one epoch; Chua et al. (2024),
    "Scalable DP-SGD: Shuffling vs. Poisson Subsampling", arXiv:2411.04205, for several.
    """

    source = (
        "the largest output of an attained pair (Chua et al. 2024, arXiv:2403.17673v2)"
    )

    @property
    def uses(self) -> int:
        """The number of epochs."""
        return self.epochs

    def loss_quantile(self, negligible: float) -> float:
        """Return a loss in nats that an epoch exceeds with a small probability.

        The probability is about ``negligible`` for a Gaussian release of sensitivity C,
        and an epoch is no worse.
        """
        sigma = self.noise_multiplier
        return 0.5 / sigma**2 + deviations(negligible) / sigma

    def cells(self, negligible: float) -> tuple[Enclosed, Enclosed]:
        """Return bounds on the masses of cells of an epoch's largest output.

        The first bounds are for the input with gradient C of the record, the second for
        gradient 0.
        """
        reach = deviations(negligible) * self.noise_multiplier
        edges = np.linspace(-reach, 2 + reach, 50_001)
        return self.cells_between(edges, 2.0), self.cells_between(edges, 1.0)

    def cells_between(self, edges: Array, mean: float) -> Enclosed:
        """Return bounds on the masses of an epoch's largest output, in units of C.

        The cells lie between the edges and above the last edge. The mass below the
        first edge is left out, as a lower bound may do. ``mean`` is the mean of the
        record's batch.
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
    """An upper bound for every order of the records, even a public one.

    Each record is in one batch of each epoch. Given the permutations, only one step of
    each epoch differs, an adaptive Gaussian release of sensitivity C. A mixture of
    pairs is no worse than the worst of them. So an epoch is 1/σ-Gaussian DP, and all
    epochs together are √epochs/σ-Gaussian DP (Dong, Roth & Su 2022, arXiv:1905.02383v3,
    Corollary 3.3).
    """

    soundness = Soundness.UPPER
    source = "each record is in one batch of each epoch (Dong, Roth & Su 2022, arXiv:1905.02383v3)"

    def delta_at(self, epsilon: float) -> float:
        """Return δ(ε) of √epochs/σ-Gaussian DP, rounded up."""
        return GaussianCurve(self.noise_multiplier, count=self.epochs).delta_at(epsilon)


def shuffled_accountants(
    noise_multiplier: float, batches: int, epochs: int = 1
) -> list[Accountant]:
    """Return the accountants of ``Shuffled``: an upper bound and a lower bound."""
    kinds = (ShuffledUpper, ShuffledLower)
    return [kind(noise_multiplier, batches, epochs) for kind in kinds]
