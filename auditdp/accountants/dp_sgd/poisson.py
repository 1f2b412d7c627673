"""DP-SGD with Poisson batches: how tightly its curve is known.

One step adds N(0, σ²C²) to a sum of gradients clipped to norm C, over a batch in which each record is with probability q.
Neighbours differ in one record that is there or not. The worst pair is attained: all other gradients zero, that of the
record always C. In each step its outputs are N(0, σ²) against (1−q) N(0, σ²) + q N(1, σ²), one order when the record is
removed and the other when it is added, and the truth is the larger of both compositions (Zhu, Dong & Wang 2022, "Optimal
Accounting of Differential Privacy via Characteristic Function", arXiv:2106.08567v3, Theorem 11).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from auditdp.accountants.base import Accountant, Soundness
from auditdp.accountants.dp_sgd.loss_distributions import GridCurve, OnGrid, from_above, from_below
from auditdp.accountants.dp_sgd.opacus_sgd import OpacusGDP, OpacusPRV, OpacusRDP
from auditdp.accountants.dp_sgd.parameters import Poisson
from auditdp.accountants.dp_sgd.sampled_gaussian import cells, half_way, largest_loss, points, rounding
from auditdp.accountants.renyi import RenyiCurve, dp_accounting
from auditdp.mechanism.protocol import Array


@dataclass(frozen=True)
class _StepOnGrid(Poisson, GridCurve):
    """What both bounds share."""

    def largest_loss(self, negligible: float) -> float:
        """Return the loss of the record's removal; that of its addition is the smaller one."""
        return largest_loss(self.noise_multiplier, self.rate, negligible)


@dataclass(frozen=True)
class PLDUpper(_StepOnGrid):
    """The curve of the worst pair, rounded up.

    Note:
        dp-accounting's own distribution connects the same dots by differences of δ, whose rounding is divided by the
        distance of the points: at q = 1e-6 and less it gives a bound that is many times too large, or none. Its convolution
        does not say what it loses.
    """

    soundness: ClassVar[Soundness] = Soundness.UPPER
    source: ClassVar[str] = (
        "the worst pair (Zhu, Dong & Wang 2022, Theorem 11), by connecting the dots (arXiv:2207.04380v2)"
    )

    def losses(self, negligible: float, interval: float) -> list[OnGrid]:
        """Return the loss of a step when the record is removed, and when it is added."""
        at = points(self.noise_multiplier, self.rate, negligible, interval)
        (low_with, high_with), (low, high) = cells(self.noise_multiplier, self.rate, at * interval)
        off = rounding(self.noise_multiplier, self.rate, at * interval)
        removed = from_above(high_with, low, int(at[0]), interval, rounding=off)
        return [removed, from_above(high[::-1], low_with[::-1], -int(at[-1]), interval, rounding=off)]


@dataclass(frozen=True)
class PLDLower(_StepOnGrid):
    """The curve of the worst pair, rounded down.

    Note:
        dp-accounting's optimistic estimate rounds every loss down and so lies half an interval a step below the truth: 1.778
        where this bound gives 1.828, for σ = 1, q = .01, 1,000 steps and δ = 1e-5. It also adds 1e-15 to δ, the wrong way.
    """

    soundness: ClassVar[Soundness] = Soundness.LOWER
    source: ClassVar[str] = "the attained pair (Zhu, Dong & Wang 2022, arXiv:2106.08567v3, Theorem 11)"

    def losses(self, negligible: float, interval: float) -> list[OnGrid]:
        """Return the loss of a step when the record is removed, and when it is added."""
        return removed_and_added(self.noise_multiplier, self.rate, negligible, interval)


@dataclass(frozen=True)
class RDP(Poisson, RenyiCurve):
    """dp-accounting's Rényi accountant: sound in real numbers, and loose; its series and their rounding are not bounded."""

    source: ClassVar[str] = "dp-accounting 0.6, RDP (Mironov, Talwar & Zhang 2019, arXiv:1908.10530v1, Section 3.3)"

    def divergences(self) -> tuple[Array, Array]:
        """Return dp-accounting's orders and the divergence of a step for each."""
        library = dp_accounting()
        step = library.PoissonSampledDpEvent(self.rate, library.GaussianDpEvent(self.noise_multiplier))
        accountant = library.rdp.RdpAccountant().compose(step)
        return accountant.orders, accountant.rdp


def removed_and_added(noise_multiplier: float, rate: float, negligible: float, interval: float) -> list[OnGrid]:
    """Return lower bounds on the loss of the attained pair in both orders."""
    ends = half_way(noise_multiplier, rate, negligible, interval)
    (low_with, high_with), (low_without, high_without) = cells(noise_multiplier, rate, ends)
    point = float(ends[0]) - interval / 2
    return [
        from_below(one, other, interval, -sign * point % interval)
        for one, other, sign in ((low_with, high_without, 1), (low_without, high_with, -1))
    ]


def poisson_accountants(noise_multiplier: float, rate: float, steps: int) -> list[Accountant]:
    """Return every accountant of DP-SGD with Poisson batches, Opacus' among them, tightest first."""
    kinds = (PLDUpper, PLDLower, RDP, OpacusPRV, OpacusRDP, OpacusGDP)
    return [kind(noise_multiplier, rate, steps) for kind in kinds]
