"""Composition of unequal mechanisms: exact if losses can be listed, else bounded."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from flint import arb
from scipy.special import expit

from auditdp.accountants.accountant import (
    Analysis,
    CompositionPart,
    Description,
    Soundness,
)
from auditdp.accountants.composition import Composition, OptimalComposition, responses
from auditdp.accountants.parameter_checks import (
    AccountantError,
    check_delta,
    check_positive,
)
from auditdp.mechanism.laws import precision
from auditdp.numerics.arrays import Floats
from auditdp.numerics.balls import PRECISION_BITS, double_above

MAX_LISTED_LOSSES = 2**14
"""Largest list of losses of one half: enough for 28 mechanisms that all differ."""
CELLS = 2**15
"""Cells of the grid of losses, if the losses cannot be listed."""


@dataclass(frozen=True)
class HeterogeneousComposition(Analysis):
    """The worst curve of the adaptive composition of (ε_i, δ_i)-DP mechanisms.

    δ(ε) = 1 − ∏(1−δ_i) (1 − D) with

        D = Σ_S (e^{Σ_{i∈S} ε_i} − e^{ε + Σ_{i∉S} ε_i})₊ / ∏(1 + e^{ε_i}),

    the curve of independent randomised responses, each with one ε_i. It is exact while
    they can be listed as two halves of at most 16,384 privacy losses each (equal ε_i
    count once per multiplicity): with a half's losses a, and with the curve h of the
    other half, D(ε) = Σ_a P(a) h(ε − a). Losses are compared as exact rationals; the
    rest is ball arithmetic.

    Beyond that it is an upper bound: every loss is split between its two neighbours on
    a grid, preserving its probability under both inputs. The randomised responses are
    post-processings of the split ones (merge the two), so they are no less private.
    Losses above the grid count as revealing the input and losses below it as its
    lowest, which can only raise δ. That is computed in floating point, with positive
    terms only, in which elementary functions are off by 4 units in the last place at
    most. Each of k parts multiplies a mass twice and adds twice, so that δ is off by a
    relative 16k·2^−53 at most; it is raised by 1e-14 k. The share of the upper
    neighbour is off by 2^−49 at most and moves mass by one step of the grid, which is
    less than Σ ε_i/1000, so the losses are off by k·2^−49 Σ ε_i/1000 and by 2^−50 Σ ε_i
    for rounding of their own; ε is lowered by (1e-13 + 1e-17 k) Σ ε_i.

    Source: Murtagh & Vadhan (2016), "The Complexity of Computing the Optimal
    Composition of Differential Privacy", TCC 2016-A, arXiv:1507.03113, Theorem 1.5.

    Args:
        epsilons: ε_i in nats, each finite and > 0.
        deltas: δ_i in [0, 1], one for each ε_i.

    Raises:
        AccountantError: If a parameter is outside its range, or their numbers differ.
    """

    epsilons: tuple[float, ...]
    deltas: tuple[float, ...]
    adjacency = "as for the parts"
    source = "Murtagh & Vadhan (2016), arXiv:1507.03113, Theorem 1.5"

    def __post_init__(self) -> None:
        kind = type(self).__name__
        if len(self.epsilons) != len(self.deltas) or not self.epsilons:
            raise AccountantError(
                f"{kind}: expected one delta for each epsilon, got {len(self.epsilons)} "
                f"epsilons and {len(self.deltas)} deltas"
            )
        for epsilon, delta in zip(self.epsilons, self.deltas, strict=True):
            check_positive(kind, epsilon=epsilon)
            check_delta(kind, delta)

    @property
    def name(self) -> str:
        """The analysis and its parameters, abridged."""
        return (
            f"HeterogeneousComposition({len(self.epsilons)} mechanisms, epsilon "
            f"{min(self.epsilons):g} to {max(self.epsilons):g}, delta up to "
            f"{max(self.deltas):g})"
        )

    @property
    def text(self) -> str:
        """The class in a few words."""
        return (
            f"any {len(self.epsilons):,} adaptive mechanisms of (ε, δ)-DP, ε from "
            f"{min(self.epsilons):.6g} to {max(self.epsilons):.6g}, δ up to "
            f"{max(self.deltas):.6g}"
        )

    @property
    def zcdp(self) -> Fraction | None:
        """ρ = Σ ε_i²/2 of parts with δ = 0, or None."""
        if any(self.deltas):
            return None
        return sum((Fraction(e) ** 2 for e in self.epsilons), Fraction(0)) / 2

    def concentrated(self, order: float | None) -> tuple[arb, arb]:
        """Return D_α/α of randomised responses; ∞ if a part may reveal its input."""
        if any(self.deltas):
            return arb.pos_inf(), arb.pos_inf()
        return responses(self._groups, order)

    @property
    def part(self) -> CompositionPart:
        """A curve that holds for each of the parts."""
        curve = OptimalComposition(max(self.epsilons), max(self.deltas), 1)
        return CompositionPart(len(self.epsilons), curve)

    def includes(self, other: Description) -> bool:
        """Return True if the other class has no more parts, each as private."""
        smallest = min(self.epsilons), min(self.deltas)
        return Composition(*smallest, len(self.epsilons)).includes(other)

    @property
    def soundness(self) -> Soundness:
        """Exact if the losses can be listed, else an upper bound."""
        listed = len(self._groups) == 1 or self._halves
        return Soundness.EXACT if listed else Soundness.UPPER

    @cached_property
    def largest_loss(self) -> float:
        """Σ ε_i, rounded up: beyond it only the parts' own δ remain."""
        return double_above(
            lambda rational: sum(map(rational, self.epsilons), Fraction(0))
        )

    @property
    def own_delta(self) -> float:
        """1 − ∏(1−δ_i), rounded up."""
        # One δ alone is the decimal that people write, and needs no rounding.
        if sum(map(bool, self.deltas)) <= 1:
            return max(self.deltas)
        return self._rounded_up(self.largest_loss)

    def enclosed_delta(self, epsilon: float) -> arb:
        """Return δ(ε), in terms that are >= 0."""
        # The smallest mass, e^−Σε_i, keeps more bits than a double has.
        with precision(self._bits):
            any_revealed = arb(1)
            if max(self.deltas) < 1:
                log_kept = sum(((-arb(delta)).log1p() for delta in self.deltas), arb(0))
                any_revealed = -log_kept.expm1()
            excess = arb(0)
            if epsilon < self.largest_loss:
                excess = self._excess(epsilon)
            return any_revealed + (1 - any_revealed) * excess

    def _excess(self, epsilon: float) -> arb:
        """D, or on the grid an upper bound on D."""
        if len(self._groups) == 1:
            each, count = self._groups[0]
            return arb(OptimalComposition(each, 0.0, count).delta_at(epsilon))
        if self._halves is None:
            return arb(min(1.0, self._grid.delta_at(epsilon)))
        ours, theirs = self._halves
        # D(ε) = Σ_a P(a) h(ε − a), with the curve h of the other half by its tails.
        total_p = total_q = arb(0)
        threshold = math.floor(Fraction(epsilon) * self._unit)
        for loss, p, q in zip(ours.losses, ours.p, ours.q, strict=True):
            first = bisect_right(theirs.losses, threshold - loss)
            total_p += p * theirs.tails_p[first]
            total_q += q * theirs.tails_q[first]
        return total_p - arb(epsilon).exp() * total_q

    @cached_property
    def _groups(self) -> list[tuple[float, int]]:
        """Each ε and its multiplicity, the most numerous first."""
        return Counter(self.epsilons).most_common()

    @cached_property
    def _grid(self) -> _Grid:
        return _Grid.of(self._groups)

    @cached_property
    def _unit(self) -> int:
        """A number whose inverse divides every ε_i, since doubles are dyadic."""
        return max(Fraction(epsilon).denominator for epsilon in self.epsilons)

    @property
    def _bits(self) -> int:
        return PRECISION_BITS + math.ceil(3 * self.largest_loss)

    @cached_property
    def _halves(self) -> tuple[_Half, _Half] | None:
        """The losses in two halves of similar size, or None if there are too many."""
        # Each group goes to the half that has fewer losses so far.
        halves: tuple[list[tuple[float, int]], list[tuple[float, int]]] = ([], [])
        sizes = [1, 1]
        for group in self._groups:
            smaller = sizes.index(min(sizes))
            halves[smaller].append(group)
            sizes[smaller] *= group[1] + 1
        if max(sizes) > MAX_LISTED_LOSSES:
            return None
        with precision(self._bits):
            return _Half.of(halves[0], self._unit), _Half.of(halves[1], self._unit)


class _Half(NamedTuple):
    """Independent randomised responses, in ascending order of their losses."""

    losses: list[int]
    p: list[arb]
    q: list[arb]
    tails_p: list[arb]
    """Sums of p from each loss on, and 0 at the end."""
    tails_q: list[arb]

    @classmethod
    def of(cls, groups: Iterable[tuple[float, int]], unit: int) -> _Half:
        """List the losses, as multiples of 1/unit."""
        outcomes = [(0, arb(1), arb(1))]
        for epsilon, count in groups:
            step = int(Fraction(epsilon) * unit)
            keep = 1 / (1 + (-arb(epsilon)).exp())
            flip = keep * (-arb(epsilon)).exp()
            # The mass of m responses against the input among count.
            against = [
                math.comb(count, m) * keep ** (count - m) * flip**m
                for m in range(count + 1)
            ]
            outcomes = [
                (loss + (count - 2 * m) * step, p * mass, q * against[count - m])
                for loss, p, q in outcomes
                for m, mass in enumerate(against)
            ]
        outcomes.sort(key=itemgetter(0))
        losses, p, q = (list(column) for column in zip(*outcomes, strict=True))
        return cls(losses, p, q, _tails(p), _tails(q))


def _tails(masses: list[arb]) -> list[arb]:
    return list(accumulate(reversed(masses), initial=arb(0)))[::-1]


class _Grid(NamedTuple):
    """The masses under P of the losses (j − origin)·step, j = 0..cells−1."""

    origin: int
    step: float
    masses: Floats
    beyond: float
    """The mass of any loss above the grid."""
    slack: float
    """The most that rounding may have taken from the losses, in all."""
    factor: float
    """The largest factor by which rounding may have lowered δ."""

    @classmethod
    def of(cls, groups: Iterable[tuple[float, int]]) -> _Grid:
        """Compose randomised responses of the given ε and multiplicities."""
        each = [epsilon for epsilon, count in groups for _ in range(count)]
        mean = math.fsum(e * math.tanh(e / 2) for e in each)
        # The grid reaches twelve of the largest standard deviations beyond 0 and the
        # mean.
        reach = 12 * math.sqrt(math.fsum(e * e for e in each))
        step = (mean + 2 * reach) / CELLS
        origin = int(reach / step)
        masses, beyond = np.zeros(CELLS), 0.0
        masses[origin] = 1.0
        for epsilon in each:
            fresh = np.zeros(CELLS)
            for loss in (epsilon, -epsilon):
                mass, cell = expit(loss), math.floor(loss / step)
                # This share of the upper neighbour keeps the mass under both inputs.
                upper = math.expm1(-(loss - cell * step)) / math.expm1(-step)
                beyond += _add_shifted(fresh, mass * (1 - upper) * masses, cell)
                beyond += _add_shifted(fresh, mass * upper * masses, cell + 1)
            masses = fresh
        slack = (1e-13 + 1e-17 * len(each)) * math.fsum(each)
        return cls(origin, step, masses, beyond, slack, 1 + 1e-14 * (len(each) + 1000))

    def delta_at(self, epsilon: float) -> float:
        """Return an upper bound on δ(ε)."""
        losses = (np.arange(CELLS) - self.origin) * self.step
        above_it = np.maximum(losses - (epsilon - self.slack), 0.0)
        total = (self.masses * -np.expm1(-above_it)).sum() + self.beyond
        return float(total) * self.factor


def _add_shifted(fresh: Floats, masses: Floats, offset: int) -> float:
    """Add masses moved by ``offset`` cells.

    Mass that is moved below the lowest cell stays in it; mass that is moved above the
    highest is returned.
    """
    offset = max(min(offset, CELLS), -CELLS)
    if offset >= 0:
        fresh[offset:] += masses[: CELLS - offset]
        return float(masses[CELLS - offset :].sum())
    fresh[:offset] += masses[-offset:]
    fresh[0] += masses[:-offset].sum()
    return 0.0
