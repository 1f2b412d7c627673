"""DP-SGD with batches of a fixed size, drawn without replacement, where neighbours zero the gradient of one record out.

The record is in a batch with probability q = m/N, and another one in its place otherwise. Given the rest of the batch, with
the other one's gradient u, that of the record v, and C = 1, a noisy sum is up to a shift

    P = (1−q) N(u, σ²I) + q N(v, σ²I) with the record,   Q = (1−q) N(u, σ²I) + q N(0, σ²I) without it,   ‖u‖, ‖v‖ <= 1,

and what is not given mixes such pairs, which are no worse than the worst of them. N(a) of an event is at least
Φ(Φ⁻¹(N(b) of it) − ‖a − b‖/σ) (Neyman & Pearson). Hence for λ >= 1, κ = (1−q)(λ−1), and the s with Φ(s) = N(v)(E), or
N(0)(E) in the second line,

    P(E) − λQ(E) = qN(v)(E) − λqN(0)(E) − κN(u)(E) <= qΦ(s) − λqΦ(s − 1/σ) − κΦ(s − 2/σ),
    Q(E) − λP(E) = qN(0)(E) − λqN(v)(E) − κN(u)(E) <= qΦ(s) − (λq + κ)Φ(s − 1/σ),

with equality where v = −u = 1 and E is {x > 1 − σs} in the first, and where u = v = 1 and E is {x < σs} in the second. So
the largest hockey-stick divergences are those of two attained pairs: of

    far: (1−q) N(−1, σ²) + q N(1, σ²) against (1−q) N(−1, σ²) + q N(0, σ²), of P against Q;
    near: (1−q) N(0, σ²) + q N(1, σ²) against N(0, σ²), that of Poisson batches, of Q against P.

Losses above zero are those of the first, those below zero are those of the second with the other sign, and what is left is
at zero: that is a pair of laws that no step exceeds in either order, and so it bounds compositions (Zhu, Dong & Wang 2022,
arXiv:2106.08567v3, Theorem 10). For one step it is exact. The first pair costs far more than Poisson's: with σ = 1, 100 of
10,000 records, 1,000 steps and δ = 1e-5, ε is at least 10.36, and 1.83 in Poisson batches.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from auditdp.accountants.base import Accountant, Soundness
from auditdp.accountants.description import Description
from auditdp.accountants.dp_sgd import sampled_gaussian
from auditdp.accountants.dp_sgd.fixed_size import FixedSize, FixedSizeUpper, joined
from auditdp.accountants.dp_sgd.loss_distributions import GridCurve, OnGrid, from_below
from auditdp.accountants.dp_sgd.parameters import ZERO_OUT
from auditdp.accountants.gaussian import GaussianNoise
from auditdp.accountants.normal import Enclosed, gaussian_cells
from auditdp.mechanism.protocol import Array

CELLS = 50_000


@dataclass(frozen=True)
class ZeroedOut(FixedSize, Description):
    """Batches of a fixed number of records, as of ``FixedSize``; neighbours replace one by one without gradient."""

    adjacency: ClassVar[str] = ZERO_OUT

    def wider(self) -> tuple[Description, ...]:
        """Return what replaces a record by any other, and the steps without sampling."""
        return (
            FixedSize(self.noise_multiplier, self.records, self.batch, self.steps),
            GaussianNoise(self.noise_multiplier, 1.0, self.steps),
        )

    def largest_loss(self, negligible: float) -> float:
        """Return the largest loss of the far pair that is likelier than ``negligible``; the near one's is smaller."""
        return float(self.loss(1 + sampled_gaussian.deviations(negligible) * self.noise_multiplier))

    def loss(self, output: Any) -> Any:
        """Return the losses of outputs of the far pair, in nats, which rise from 0 at 1/2."""
        square = self.noise_multiplier**2
        other = (math.log1p(-self.rate) if self.rate < 1 else -math.inf) - (output + 0.5) / square
        own = math.log(self.rate)
        return np.logaddexp(other, own + (output - 0.5) / square) - np.logaddexp(other, own)

    def outputs(self, losses: Array) -> Array:
        """Return the outputs that have these losses, all of them >= 0: a quadratic equation for e^(output/σ²)."""
        square, odds = self.noise_multiplier**2, (1 - self.rate) / self.rate
        root = np.sqrt(1 - 4 * odds * math.exp(-1 / square) * np.exp(-losses) * np.expm1(-losses))
        return np.asarray(0.5 + square * (losses + np.log1p((root - 1) / 2)))

    def far(self, edges: Array) -> tuple[Enclosed, Enclosed]:
        """Return bounds on the probabilities, with the record and without it, of cells of outputs of the far pair."""
        without, none, own = (gaussian_cells(edges, mean, self.noise_multiplier) for mean in (-1.0, 0.0, 1.0))
        return sampled_gaussian.mixture(self.rate, without, own), sampled_gaussian.mixture(self.rate, without, none)


@dataclass(frozen=True)
class ZeroedOutUpper(ZeroedOut, GridCurve):
    """The curve of both pairs, rounded up."""

    soundness: ClassVar[Soundness] = Soundness.UPPER
    source: ClassVar[str] = "two attained pairs (auditdp/accountants/dp_sgd/zeroed_out.py), by connecting the dots"

    def losses(self, negligible: float, interval: float) -> list[OnGrid]:
        """Return the loss when the record is zeroed out, and when it comes back."""
        noise, rate = self.noise_multiplier, self.rate
        ends = np.arange(math.ceil(self.largest_loss(negligible) / interval) + 1) * interval
        edges = self.outputs(ends)
        sizes = 1 + np.abs(ends) + 2 * (np.abs(edges) + 1) / noise**2 + abs(math.log(rate))
        sizes += abs(math.log1p(-rate)) if rate < 1 else 0.0
        off = float(np.abs(self.loss(edges) - ends).max()) + 2.0**-48 * float(sizes.max())
        far, near = self.far(edges), sampled_gaussian.cells(noise, rate, ends)
        off = max(off, sampled_gaussian.rounding(noise, rate, ends))
        return [joined(far, near, interval, off), joined(near, far, interval, off)]


@dataclass(frozen=True)
class ZeroedOutLower(ZeroedOut, GridCurve):
    """The far pair in both orders, rounded down: all other gradients −C, and that of the record C."""

    soundness: ClassVar[Soundness] = Soundness.LOWER
    source: ClassVar[str] = "an attained pair (auditdp/accountants/dp_sgd/zeroed_out.py)"

    def losses(self, negligible: float, interval: float) -> list[OnGrid]:
        """Return the loss of a step in both orders."""
        reach = 1 + sampled_gaussian.deviations(negligible) * self.noise_multiplier
        (low, high), (low_without, high_without) = self.far(np.linspace(-reach, reach, CELLS + 1))
        return [from_below(low, high_without, interval), from_below(low_without, high, interval)]


def zeroed_out_accountants(noise_multiplier: float, records: int, batch: int, steps: int) -> list[Accountant]:
    """Return every accountant of DP-SGD with batches of a fixed size where a record is zeroed out, tightest first."""
    kinds = (ZeroedOutUpper, ZeroedOutLower, FixedSizeUpper)
    return [kind(noise_multiplier, records, batch, steps) for kind in kinds]
