"""Composition of unequal mechanisms: exact while the losses can be listed in two halves, and a sound bound above that."""

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
from typing import ClassVar

import numpy as np
from flint import arb
from numpy.typing import NDArray
from scipy.special import expit

from auditdp.accountants.accountant import (
    AccountantError,
    Inverted,
    Soundness,
    check_delta,
    check_epsilon,
    check_positive,
)
from auditdp.accountants.composition import Composition, OptimalComposition, responses
from auditdp.accountants.description import CompositionPart, Description
from auditdp.mechanism.laws import precision
from auditdp.numerics.balls import PRECISION_BITS, above, double_above

MOST_LOSSES = 2**14
"""How many privacy losses are listed in one half: enough for 28 mechanisms that all differ."""
CELLS = 2**15
"""How many cells the grid of losses has, where they cannot be listed."""


@dataclass(frozen=True)
class HeterogeneousComposition(Description, Inverted):
    """The curve of the adaptive composition of (ε_i, δ_i)-DP mechanisms, the worst that there are.

    δ(ε) = 1 − ∏(1−δ_i) (1 − D) with

        D = Σ_S (e^{Σ_{i∈S} ε_i} − e^{ε + Σ_{i∉S} ε_i})₊ / ∏(1 + e^{ε_i}),

    the curve of independent randomised responses, each with one ε_i. It is exact while they can be listed as two halves
    of at most 16,384 privacy losses each (equal ε_i count once per multiplicity): with a half's losses a, and with the
    curve h of the other half, D(ε) = Σ_a P(a) h(ε − a). Losses are compared as exact rationals; the rest is ball
    arithmetic.

    Beyond that it is an upper bound: every loss is split between its two neighbours on a grid, preserving its probability
    under both inputs. The randomised responses are post-processings of the split ones (merge the two), so they
    are no less private. Losses above the grid count as revealing the input and losses below it as its lowest, which
    can only raise δ. That is computed in floating point, with positive terms only, in which elementary functions are off by
    4 units in the last place at most. Each of k parts multiplies a mass twice and adds twice, so that δ is off by a relative
    16k·2^−53 at most; it is raised by 1e-14 k. The share of the upper neighbour is off by 2^−49 at most and moves mass by
    one step of the grid, which is less than Σ ε_i/1000, so the losses are off by k·2^−49 Σ ε_i/1000 and by 2^−50 Σ ε_i for
    rounding of their own; ε is lowered by (1e-13 + 1e-17 k) Σ ε_i.

    Source: Murtagh & Vadhan (2016), "The Complexity of Computing the Optimal Composition of Differential Privacy", TCC
    2016-A, arXiv:1507.03113, Theorem 1.5.

    Args:
        epsilons: ε_i in nats, each finite and > 0.
        deltas: δ_i in [0, 1], as many as there are ε_i.

    Raises:
        AccountantError: If a parameter is outside its range, or there are not as many of both.
    """

    epsilons: tuple[float, ...]
    deltas: tuple[float, ...]
    adjacency: ClassVar[str] = "as for the parts"
    source: ClassVar[str] = "Murtagh & Vadhan (2016), arXiv:1507.03113, Theorem 1.5"

    def __post_init__(self) -> None:
        kind = type(self).__name__
        if len(self.epsilons) != len(self.deltas) or not self.epsilons:
            raise AccountantError(
                f"{kind}: expected one delta for each epsilon, got {len(self.epsilons)} epsilons and "
                f"{len(self.deltas)} deltas"
            )
        for epsilon, delta in zip(self.epsilons, self.deltas, strict=True):
            check_positive(kind, epsilon=epsilon)
            check_delta(kind, delta)

    @property
    def name(self) -> str:
        """The analysis and its parameters, abridged."""
        return (
            f"HeterogeneousComposition({len(self.epsilons)} mechanisms, epsilon {min(self.epsilons):g} to "
            f"{max(self.epsilons):g}, delta up to {max(self.deltas):g})"
        )

    @property
    def text(self) -> str:
        """The class in a few words."""
        return (
            f"any {len(self.epsilons):,} adaptive mechanisms of (ε, δ)-DP, ε from {min(self.epsilons):.6g} to "
            f"{max(self.epsilons):.6g}, δ up to {max(self.deltas):.6g}"
        )

    @property
    def zcdp(self) -> Fraction | None:
        """ρ = Σ ε_i²/2 of parts with δ = 0."""
        return (
            None
            if any(self.deltas)
            else sum((Fraction(e) ** 2 for e in self.epsilons), Fraction(0)) / 2
        )

    def concentrated(self, order: float | None) -> tuple[arb, arb]:
        """Return what the randomised responses have; ∞ where a part may reveal its input."""
        return (
            responses(self._groups, order)
            if not any(self.deltas)
            else (arb.pos_inf(), arb.pos_inf())
        )

    @property
    def part(self) -> CompositionPart:
        """A curve that holds for each of the parts."""
        return CompositionPart(
            len(self.epsilons),
            OptimalComposition(max(self.epsilons), max(self.deltas), 1),
        )

    def includes(self, other: Description) -> bool:
        """Return whether the other class is a composition of no more parts, each as private as the most private here."""
        return Composition(
            min(self.epsilons), min(self.deltas), len(self.epsilons)
        ).includes(other)

    @property
    def soundness(self) -> Soundness:
        """Exact where the losses can be listed."""
        return (
            Soundness.EXACT
            if len(self._groups) == 1 or self._halves
            else Soundness.UPPER
        )

    def delta_at(self, epsilon: float) -> float:
        """Return δ(ε), rounded up."""
        check_epsilon(self.name, epsilon)
        if epsilon >= self.largest_loss and sum(map(bool, self.deltas)) <= 1:
            return max(self.deltas)
        with precision(self._bits):
            # 1 − ∏(1−δ_i) (1 − D), in terms that are >= 0.
            own = (
                -sum(((-arb(d)).log1p() for d in self.deltas), arb(0)).expm1()
                if max(self.deltas) < 1
                else arb(1)
            )
            excess = self._excess(epsilon) if epsilon < self.largest_loss else arb(0)
            return min(1.0, above(own + (1 - own) * excess))

    @cached_property
    def largest_loss(self) -> float:
        """Σ ε_i, rounded up: beyond it only the parts' own δ remain."""
        return double_above(lambda read: sum(map(read, self.epsilons), Fraction(0)))

    def _excess(self, epsilon: float) -> arb:
        """D, or on the grid something that is at least D."""
        if len(self._groups) == 1:
            return arb(
                OptimalComposition(self.epsilons[0], 0.0, len(self.epsilons)).delta_at(
                    epsilon
                )
            )
        if self._halves is None:
            return arb(min(1.0, self._grid.delta_at(epsilon)))
        ours, theirs = self._halves
        p = q = arb(0)
        for loss, mass, other in zip(ours.losses, ours.p, ours.q, strict=True):
            above_it = bisect_right(
                theirs.losses, math.floor(Fraction(epsilon) * self._unit) - loss
            )
            p += mass * theirs.tails_p[above_it]
            q += other * theirs.tails_q[above_it]
        return p - arb(epsilon).exp() * q

    @cached_property
    def _groups(self) -> list[tuple[float, int]]:
        """(ε, how many have it), the most numerous first."""
        return Counter(self.epsilons).most_common()

    @cached_property
    def _unit(self) -> int:
        """Every ε_i is an integer multiple of 1/unit, since doubles are multiples of powers of two."""
        return max(Fraction(epsilon).denominator for epsilon in self.epsilons)

    @property
    def _bits(self) -> int:
        """Precision with which the least likely loss, e^−Σε_i, keeps as many bits as a double has, and more."""
        return PRECISION_BITS + math.ceil(3 * self.largest_loss)

    @cached_property
    def _halves(self) -> tuple[_Half, _Half] | None:
        """The losses in two halves of similar size, or None where there are too many."""
        halves: tuple[list[tuple[float, int]], list[tuple[float, int]]] = ([], [])
        sizes = [1, 1]
        for group in self._groups:
            smaller = sizes.index(min(sizes))
            halves[smaller].append(group)
            sizes[smaller] *= group[1] + 1
        if max(sizes) > MOST_LOSSES:
            return None
        return _Half.of(halves[0], self._unit, self._bits), _Half.of(
            halves[1], self._unit, self._bits
        )

    @cached_property
    def _grid(self) -> _Grid:
        return _Grid.of(self._groups)


@dataclass(frozen=True, eq=False)
class _Half:
    """Independent randomised responses: their losses in ascending order, the probabilities, and the sums above each."""

    losses: list[int]
    p: list[arb]
    q: list[arb]
    tails_p: list[arb]
    tails_q: list[arb]

    @classmethod
    def of(cls, groups: Iterable[tuple[float, int]], unit: int, bits: int) -> _Half:
        with precision(bits):
            found = [(0, arb(1), arb(1))]
            for epsilon, count in groups:
                step, keep = (
                    int(Fraction(epsilon) * unit),
                    1 / (1 + (-arb(epsilon)).exp()),
                )
                flip = keep * (-arb(epsilon)).exp()
                one = [
                    (m, math.comb(count, m) * keep ** (count - m) * flip**m)
                    for m in range(count + 1)
                ]
                found = [
                    (loss + (count - 2 * m) * step, p * mass, q * one[count - m][1])
                    for loss, p, q in found
                    for m, mass in one
                ]
            losses, ps, qs = map(
                list, zip(*sorted(found, key=itemgetter(0)), strict=True)
            )
            return cls(losses, ps, qs, _tails(ps), _tails(qs))


def _tails(masses: list[arb]) -> list[arb]:
    """The sum of masses[i:], for i = 0..len."""
    return list(accumulate(reversed(masses), initial=arb(0)))[::-1]


@dataclass(frozen=True, eq=False)
class _Grid:
    """How likely P makes each loss (j − origin)·step, j = 0..cells−1, and any loss above them."""

    origin: int
    step: float
    masses: NDArray[np.float64]
    beyond: float
    slack: float
    """What rounding may have taken from the losses, in all."""
    factor: float
    """By how much rounding may have lowered δ."""

    @classmethod
    def of(cls, groups: Iterable[tuple[float, int]]) -> _Grid:
        """Compose, with losses from 0 to their mean and twelve times their largest standard deviation to either side."""
        each = [epsilon for epsilon, count in groups for _ in range(count)]
        mean, largest = math.fsum(e * math.tanh(e / 2) for e in each), math.fsum(each)
        deviation = 12 * math.sqrt(math.fsum(e * e for e in each))
        step = (mean + 2 * deviation) / CELLS
        origin = int(deviation / step)
        masses, beyond = np.zeros(CELLS), 0.0
        masses[origin] = 1.0
        for epsilon in each:
            fresh = np.zeros(CELLS)
            for loss, mass in ((epsilon, expit(epsilon)), (-epsilon, expit(-epsilon))):
                cell = math.floor(loss / step)
                upper = math.expm1(-(loss - cell * step)) / math.expm1(
                    -step
                )  # keeps the mass under both inputs
                for offset, part in (
                    (cell, mass * (1 - upper)),
                    (cell + 1, mass * upper),
                ):
                    beyond += _add_shifted(fresh, part * masses, offset)
            masses = fresh
        return cls(
            origin,
            step,
            masses,
            beyond,
            (1e-13 + 1e-17 * len(each)) * largest,
            1 + 1e-14 * (len(each) + 1000),
        )

    def delta_at(self, epsilon: float) -> float:
        """Return at least δ(ε)."""
        beyond = (np.arange(CELLS) - self.origin) * self.step - (epsilon - self.slack)
        return (
            float(
                (self.masses * -np.expm1(-np.maximum(beyond, 0.0))).sum() + self.beyond
            )
            * self.factor
        )


def _add_shifted(
    fresh: NDArray[np.float64], masses: NDArray[np.float64], offset: int
) -> float:
    """Add masses moved by some cells; what falls off below stays in the lowest cell, what falls off above is returned."""
    offset = max(min(offset, CELLS), -CELLS)
    if offset >= 0:
        fresh[offset:] += masses[: CELLS - offset]
        return float(masses[CELLS - offset :].sum())
    fresh[:offset] += masses[-offset:]
    fresh[0] += masses[:-offset].sum()
    return 0.0
