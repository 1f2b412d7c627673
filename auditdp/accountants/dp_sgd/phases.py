"""DP-SGD whose noise, sampling rate or both change in the course of the training, as a schedule says beforehand.

Each phase has Poisson batches of its own, whose worst pair is attained by the same data as that of all others: every
gradient zero but that of the record, always C. So the composition of the worst pairs of all steps, in either order, is
attained, and bounds adaptive ones (Zhu, Dong & Wang 2022, arXiv:2106.08567v3, Theorems 10 and 11).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from auditdp.accountants.base import Accountant, AccountantError, Soundness
from auditdp.accountants.description import Description
from auditdp.accountants.dp_sgd.loss_distributions import GridCurve, OnGrid, mixed
from auditdp.accountants.dp_sgd.parameters import ADD_OR_REMOVE, Poisson
from auditdp.accountants.dp_sgd.poisson import PLDLower, PLDUpper


@dataclass(frozen=True)
class PoissonPhases(Description):
    """Phases of Poisson batches.

    Args:
        phases: Noise multiplier σ, sampling rate q and number of steps of each, as of ``Poisson``.

    Raises:
        AccountantError: If there is none, or a parameter is outside its range.
    """

    phases: tuple[tuple[float, float, int], ...]
    adjacency: ClassVar[str] = ADD_OR_REMOVE
    sampling: ClassVar[str] = Poisson.sampling

    def __post_init__(self) -> None:
        if not self.phases:
            raise AccountantError(f"{type(self).__name__}: expected one phase at least, got none")
        for phase in self.phases:
            Poisson(*phase)

    @property
    def name(self) -> str:
        """The class or the analysis, and its phases."""
        return f"{type(self).__name__}({', '.join(f'({noise:g}, {rate:g}, {n})' for noise, rate, n in self.phases)})"

    @property
    def text(self) -> str:
        """The class in a few words."""
        each = (f"{n:,} at rate {rate:.6g} with noise multiplier {noise:.6g}" for noise, rate, n in self.phases)
        return f"DP-SGD in Poisson batches, {', then '.join(each)}"

    @property
    def zcdp(self) -> Fraction:
        """ρ of the steps without sampling."""
        return sum((n / (2 * Fraction(noise) ** 2) for noise, _, n in self.phases), Fraction(0))

    @property
    def uses(self) -> int:
        """How many steps there are."""
        return sum(n for _, _, n in self.phases)

    def largest_loss(self, negligible: float) -> float:
        """Return the largest of any phase."""
        return max(PLDUpper(*phase).largest_loss(negligible) for phase in self.phases)

    def of_each(self, kind: type[PLDLower | PLDUpper], negligible: float, interval: float) -> list[OnGrid]:
        """Return the loss of a step when the record is removed, and when it is added, bounded in each phase by the kind."""
        each = [kind(*phase).losses(negligible, interval) for phase in self.phases]
        counts = [n for _, _, n in self.phases]
        return [mixed(list(zip(losses, counts, strict=True))) for losses in zip(*each, strict=True)]


@dataclass(frozen=True)
class PhasesUpper(PoissonPhases, GridCurve):
    """The curve of the worst pairs, rounded up."""

    soundness: ClassVar[Soundness] = Soundness.UPPER
    source: ClassVar[str] = PLDUpper.source

    def losses(self, negligible: float, interval: float) -> list[OnGrid]:
        """Return the losses of either order."""
        return self.of_each(PLDUpper, negligible, interval)


@dataclass(frozen=True)
class PhasesLower(PoissonPhases, GridCurve):
    """The curve of the worst pairs, which are attained, rounded down."""

    soundness: ClassVar[Soundness] = Soundness.LOWER
    source: ClassVar[str] = PLDLower.source

    def losses(self, negligible: float, interval: float) -> list[OnGrid]:
        """Return the losses of either order."""
        return self.of_each(PLDLower, negligible, interval)


def phases_accountants(phases: Sequence[tuple[float, float, int]]) -> list[Accountant]:
    """Return every accountant of DP-SGD in phases, tightest first."""
    return [kind(tuple(phases)) for kind in (PhasesUpper, PhasesLower)]
