"""DP-SGD with records that are shuffled and cut into batches once an epoch: not the guarantee of Poisson batches.

With σ = .6, one epoch of 1,000 batches and δ = 1e-5 Poisson batches lose ε = 1.42 and these between 7.987 and 8.004.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from auditdp.accountants.base import Accountant, Inverted, Soundness
from auditdp.accountants.description import Description
from auditdp.accountants.dp_sgd import sampled_gaussian
from auditdp.accountants.dp_sgd.loss_distributions import GridCurve, OnGrid, from_below
from auditdp.accountants.dp_sgd.parameters import ZERO_OUT
from auditdp.accountants.gaussian import GaussianCurve, GaussianNoise
from auditdp.accountants.normal import Enclosed, log_at_most
from auditdp.mechanism.protocol import Array


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
    source: ClassVar[str] = "the largest output of an attained pair (Chua et al. 2024, arXiv:2403.17673v2)"

    def largest_loss(self, negligible: float) -> float:
        """Return the loss of one release with the record in its batch."""
        return 0.5 / self.noise_multiplier**2 + sampled_gaussian.deviations(negligible) / self.noise_multiplier

    def losses(self, negligible: float, interval: float) -> list[OnGrid]:
        """Return the loss of an epoch in both orders."""
        (low, high), (low_other, high_other) = _attained(self, negligible)
        return [from_below(low, high_other, interval), from_below(low_other, high, interval)]

    def cells(self, edges: Array, mean: float, sigma: float) -> Enclosed:
        """Return bounds on the probabilities that the maximum lies between two edges, or beyond the last."""
        own, others = log_at_most((edges - mean) / sigma), log_at_most(edges / sigma)
        low, high = (
            (a + (self.batches - 1) * b) * (1 + way * 2.0**-50) for a, b, way in zip(own, others, (1, -1), strict=True)
        )
        # By differences of the upper tail where it is the smaller one, so that small probabilities keep their digits.
        tails = np.append(-np.expm1(high), 0.0) * (1 - 2.0**-50), np.append(-np.expm1(low), 0.0) * (1 + 2.0**-50)
        below = np.append(np.exp(low), 1.0) * (1 - 2.0**-50), np.append(np.exp(high) * (1 + 2.0**-50), 1.0)
        upper = tails[1][:-1] < 0.5
        least = np.where(upper, tails[0][:-1] - tails[1][1:], below[0][1:] - below[1][:-1])
        most = np.where(upper, tails[1][:-1] - tails[0][1:], below[1][1:] - below[0][:-1])
        return np.maximum(least * (1 - 2.0**-52), 0.0), np.maximum(most * (1 + 2.0**-52), 0.0)


@lru_cache(maxsize=1)
def _attained(pair: ShuffledLower, negligible: float) -> tuple[Enclosed, Enclosed]:
    """Bounds on the probabilities of cells of the maximum, in either order."""
    sigma = pair.noise_multiplier
    reach = sampled_gaussian.deviations(negligible) * sigma
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
    source: ClassVar[str] = "each record is in one batch of each epoch (Dong, Roth & Su 2022, arXiv:1905.02383v3)"

    def delta_at(self, epsilon: float) -> float:
        """Return δ(ε) of the Gaussian curve."""
        return GaussianCurve(self.noise_multiplier, count=self.epochs).delta_at(epsilon)


def shuffled_accountants(noise_multiplier: float, batches: int, epochs: int = 1) -> list[Accountant]:
    """Return every accountant of DP-SGD with batches shuffled for each epoch."""
    return [kind(noise_multiplier, batches, epochs) for kind in (ShuffledUpper, ShuffledLower)]
