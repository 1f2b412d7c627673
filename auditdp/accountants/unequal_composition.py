"""Composition of mechanisms with different (ε, δ).

The curve is exact if all ε are equal or the composed privacy losses can be listed.
Otherwise it is an upper bound on a grid of losses.
"""

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
"""Largest number of listed losses of one half of the mechanisms.

It is enough for 28 mechanisms that all differ.
"""
CELLS = 2**15
"""Number of cells of the grid of losses, which is used if they cannot be listed."""


@dataclass(frozen=True)
class HeterogeneousComposition(Analysis):
    """The worst curve of the adaptive composition of (ε_i, δ_i)-DP mechanisms.

    It is δ(ε) = 1 − ∏(1−δ_i) (1 − D) with

        D = Σ_S (e^{Σ_{i∈S} ε_i} − e^{ε + Σ_{i∉S} ε_i})₊ / ∏(1 + e^{ε_i}),

    the curve of independent randomised responses, each with one ε_i. The curve is exact
    if all ε_i are equal, or if their losses can be listed: a greedy division of the
    groups of equal ε_i then gives two halves with at most 16,384 privacy losses each (n
    equal ε_i have n + 1 losses). With the losses a of one half and the curve h of the
    other half, D(ε) = Σ_a P(a) h(ε − a). Losses are compared as exact rationals; the
    rest is ball arithmetic.

    Otherwise the curve is an upper bound. Every loss is split between its two
    neighbours on a grid, such that its probability under both inputs stays the same.
    The randomised responses are post-processings of the split ones (merge the two
    neighbours), so they are no less private. A loss above the grid counts as revealing
    the input, and one below the grid as the lowest loss of the grid, which can only
    raise δ. The masses are computed in floating point, with positive terms only, and
    with elementary functions that are off by at most 4 units in the last place. Each of
    k parts multiplies a mass twice and adds twice, so that δ is off by a relative
    16k·2^−53 at most; it is raised by 1e-14 k. The share of the upper neighbour is off
    by 2^−49 at most and moves mass by one step of the grid, which is less than Σ
    ε_i/1000. So the losses are off by k·2^−49 Σ ε_i/1000, and by 2^−50 Σ ε_i for their
    own rounding; ε is lowered by (1e-13 + 1e-17 k) Σ ε_i.

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
        """The name of the Python class, with the ranges of its parameters."""
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
        """The ρ for which the class is ρ-zCDP, Σ ε_i²/2; None if any δ_i > 0."""
        if any(self.deltas):
            return None
        return sum((Fraction(e) ** 2 for e in self.epsilons), Fraction(0)) / 2

    def concentrated(self, order: float | None) -> tuple[arb, arb]:
        """Return (d, d), d being the largest D_α/α; (∞, ∞) if any δ_i > 0.

        For ``order`` = None, d is the supremum over α.
        """
        if any(self.deltas):
            return arb.pos_inf(), arb.pos_inf()
        return responses(self._groups, order)

    @property
    def part(self) -> CompositionPart:
        """The parts, and one curve that holds for each part."""
        curve = OptimalComposition(max(self.epsilons), max(self.deltas), 1)
        return CompositionPart(len(self.epsilons), curve)

    def includes(self, other: Description) -> bool:
        """Return True if ``other`` is proved to lie within this class.

        The proof needs a composition of at most the same number of parts that are
        (min ε_i, min δ_i)-DP.
        """
        smallest = min(self.epsilons), min(self.deltas)
        return Composition(*smallest, len(self.epsilons)).includes(other)

    @property
    def soundness(self) -> Soundness:
        """EXACT if all ε_i are equal or their losses can be listed, else UPPER."""
        listed = len(self._groups) == 1 or self._halves
        return Soundness.EXACT if listed else Soundness.UPPER

    @cached_property
    def largest_loss(self) -> float:
        """Σ ε_i, rounded up; at larger ε the curve is ``own_delta``."""
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
        """Return a ball that contains δ(ε), or on the grid an upper bound on δ(ε)."""
        # The precision is so high that even the smallest mass, e^−Σε_i, has more
        # correct bits than a double.
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
        """Return D at ε, or on the grid an upper bound on D."""
        if len(self._groups) == 1:
            each, count = self._groups[0]
            return arb(OptimalComposition(each, 0.0, count).delta_at(epsilon))
        if self._halves is None:
            return arb(min(1.0, self._grid.delta_at(epsilon)))
        ours, theirs = self._halves
        # D(ε) = Σ_a P(a) h(ε − a). The curve h of the other half is computed by its
        # tails.
        total_p = total_q = arb(0)
        threshold = math.floor(Fraction(epsilon) * self._unit)
        for loss, p, q in zip(ours.losses, ours.p, ours.q, strict=True):
            first = bisect_right(theirs.losses, threshold - loss)
            total_p += p * theirs.tails_p[first]
            total_q += q * theirs.tails_q[first]
        return total_p - arb(epsilon).exp() * total_q

    @cached_property
    def _groups(self) -> list[tuple[float, int]]:
        """The different ε_i and their multiplicities, the most frequent ε_i first."""
        return Counter(self.epsilons).most_common()

    @cached_property
    def _grid(self) -> _Grid:
        return _Grid.of(self._groups)

    @cached_property
    def _unit(self) -> int:
        """An integer n such that n·ε_i is an integer for every i.

        It exists, since every double is an integer over a power of two.
        """
        return max(Fraction(epsilon).denominator for epsilon in self.epsilons)

    @property
    def _bits(self) -> int:
        return PRECISION_BITS + math.ceil(3 * self.largest_loss)

    @cached_property
    def _halves(self) -> tuple[_Half, _Half] | None:
        """The losses of two halves of the parts; None if there are too many losses."""
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
    """The losses of several randomised responses, ascending, and their probabilities.

    ``p`` are the probabilities under P, ``q`` those under Q.
    """

    losses: list[int]
    """Losses as multiples of 1/``unit``."""
    p: list[arb]
    q: list[arb]
    tails_p: list[arb]
    """The sum of ``p`` from each loss on, and a final 0."""
    tails_q: list[arb]

    @classmethod
    def of(cls, groups: Iterable[tuple[float, int]], unit: int) -> _Half:
        """Return the losses of the responses with the given ε and multiplicities.

        ``unit`` is a number whose product with every ε is an integer.
        """
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
    """The masses under P of the composed losses (j − origin)·step, j = 0..CELLS−1."""

    origin: int
    step: float
    """Distance of the losses of the grid, in nats."""
    masses: Floats
    beyond: float
    """The mass of all losses above the grid."""
    slack: float
    """The most by which rounding may have lowered a composed loss, in nats."""
    factor: float
    """The largest factor by which rounding may have lowered δ."""

    @classmethod
    def of(cls, groups: Iterable[tuple[float, int]]) -> _Grid:
        """Return the composed loss of randomised responses, on a grid.

        Args:
            groups: Pairs of an ε and the number of responses that have it.
        """
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
    """Add ``masses``, moved by ``offset`` cells, to ``fresh``, which is changed.

    Mass that would move below the lowest cell is added to this cell.

    Returns:
        The mass that would move above the highest cell; it is not added.
    """
    # Beyond the grid, slices with this offset would count from the other end.
    offset = max(min(offset, CELLS), -CELLS)
    if offset >= 0:
        fresh[offset:] += masses[: CELLS - offset]
        return float(masses[CELLS - offset :].sum())
    fresh[:offset] += masses[-offset:]
    fresh[0] += masses[:-offset].sum()
    return 0.0
