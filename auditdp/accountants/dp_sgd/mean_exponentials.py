"""The law of the mean of t independent e^L, with L the loss of one Gaussian release, bounded in convex order.

With X = e^L under the law without the record, E[X] = 1, let S = (X_1 + ... + X_t)/t. Both hockey-stick divergences of a pair
whose likelihood ratio is S, E[(S − x)₊] and E[(1 − xS)₊], are means of convex functions of S. A mean-preserving spread of a
summand raises them, as it does whatever independent is added to it; a mean-preserving contraction lowers them.

Laws are on points e^{wj}. Two are added lag by lag: ln(e^{wi} + e^{w(i−d)}) = wi + ln(1 + e^{−wd}), so that all pairs with
lag d lie equally far beyond a point, in one cell. **From above** a cell is split between the two points around it such that
its mean stays; what lies above all points is put on the last one and its excess at infinity, with no mass, and what lies
below them is split between the first one and 0. **From below** a cell lies around a point, and shares of its neighbours put
its mean there; what does not come to lie there is left out. The sum of t is that of two halves, on grids that become
finer as laws become narrower.

*Rounding.* All terms are >= 0: masses are off relatively by the sums and products that they are made of, and S by what the
mean of a cell is off when it is put on points; a sum is off by the larger of what its halves are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from auditdp.accountants.base import AccountantError
from auditdp.accountants.dp_sgd import sampled_gaussian
from auditdp.accountants.dp_sgd.loss_distributions import centred
from auditdp.accountants.normal import Enclosed, gaussian_cells

POINTS = 1_500
"""A law of fewer points is added on a grid that is twice as fine."""
STEPS = (1, 2, 4, 8)
"""How far away are neighbours whose shares put a cell onto its point: refined grids have masses on few of their points."""
LARGEST = 300.0
"""Of which logarithm values are computed with at most: their squares, and shares of them, are doubles."""
MOST_OFF = 1e-3
"""By how much masses and points may be off in all, which is that of some 1e9 terms."""
NEAR = 1e-10
"""How far from its point, in nats, a joined cell may lie."""


@dataclass(frozen=True, eq=False)
class PositiveLaw:
    """The law of a sum, bounded from one side in convex order."""

    masses: NDArray[np.float64]
    """How likely e^{w·lowest}, e^{w·(lowest + 1)}, ... are."""
    lowest: int
    interval: float
    """w, in nats."""
    zero: float = 0.0
    """How likely 0 is."""
    beyond: float = 0.0
    """How much of the mean is at infinity."""
    off: tuple[float, float] = (0.0, 0.0)
    """By how much masses may be off, relatively, and points, in nats."""

    @property
    def logs(self) -> NDArray[np.float64]:
        """The logarithms of the points."""
        return np.asarray((self.lowest + np.arange(len(self.masses))) * self.interval)

    @property
    def enclosed(self) -> tuple[Enclosed, Enclosed]:
        """Bounds on the masses of the points with the record, which are weighted with what they are, and without it."""
        off = 1.01 * sum(self.off) + 2.0**-48 * (1 + float(abs(self.logs).max()))
        if off > MOST_OFF:
            raise AccountantError("expected batches that floating point can take; use fewer of them")
        weighted = self.masses * np.exp(self.logs)
        return (weighted * (1 - off), weighted * (1 + off)), (self.masses * (1 - off), self.masses * (1 + off))


@dataclass(frozen=True)
class MeanExponentials:
    """How a law of such sums is found: for which noise, how many terms, from which side, and up to what probability."""

    noise: float
    terms: int
    negligible: float
    upper: bool

    def law(self) -> PositiveLaw:
        """Return the law of the mean, by the binary digits of t: of each prefix m that of m, and of m + 1 where needed."""
        one = two = self._single()
        if "1" in (digits := format(self.terms, "b")[1:]):
            two = self._sum(one, one, 2, 1)
        count = 1
        for k, digit in enumerate(digits):
            finer = 1 + (max(len(one.masses), len(two.masses)) <= POINTS)
            odd, count = digit == "1", 2 * count + int(digit)
            first, second = (one, two) if odd else (one, one), (two, two) if odd else (one, two)
            one = self._sum(*first, count, finer)
            two = self._sum(*second, count + 1, finer) if "1" in digits[k + 1 :] else one
        return one

    def _single(self) -> PositiveLaw:
        """The law of X/t."""
        reach = sampled_gaussian.deviations(self.negligible / self.terms) * self.noise
        span = (np.array([-reach, 1 + reach]) - 0.5) / self.noise**2 - math.log(self.terms)
        if np.abs(span).max() > LARGEST:
            raise AccountantError(
                f"expected noise that floating point can take, got noise_multiplier={self.noise!r}; use more, or "
                "GaussianCurve, which holds whatever the batches are"
            )
        interval = float(span[1] - span[0]) / (2 * POINTS)
        numbers = np.arange(math.floor(span[0] / interval), math.ceil(span[1] / interval) + 1)
        ends = (numbers if self.upper else np.append(numbers, numbers[-1] + 1) - 0.5) * interval + math.log(self.terms)
        edges = sampled_gaussian.output_of(ends, self.noise, 1.0)
        both = [gaussian_cells(edges, mean, self.noise) for mean in (1.0, 0.0)]
        off = max(float((1 - low / high).max()) for low, high in both)
        p, q = (high for _, high in both)
        law = PositiveLaw(
            q, int(numbers[0]), interval, 0.0, 0.0, (off, 2 * sampled_gaussian.rounding(self.noise, 1.0, ends))
        )
        return self._on_points(law, p / self.terms, off, 1)

    def _sum(self, one: PositiveLaw, other: PositiveLaw, count: int, finer: int) -> PositiveLaw:
        """The law of a sum of two, which has ``count`` terms, on a grid that is so many times as fine."""
        size, more, apart = len(one.masses), len(other.masses), one.lowest - other.lowest
        lags = np.arange(apart - more + 1, apart + size) if one is not other else np.arange(size)
        interval = one.interval / finer
        rises = np.log1p(np.exp(-np.abs(lags) * one.interval)) / interval
        # Sums lie beyond the larger term. The first cell has all that lies below the others.
        lowest = finer * max(one.lowest, other.lowest) + math.floor(rises.min())
        last = finer * max(one.lowest + size, other.lowest + more) + math.ceil(rises.max())
        masses = np.zeros(last - lowest + 3)
        weighted = masses.copy()
        values, others = (np.exp(law.logs) for law in (one, other))
        for lag, rise in zip(lags.tolist(), rises.tolist(), strict=True):
            begin, end = max(0, lag - apart), min(size, more + lag - apart)
            terms, rest = slice(begin, end), slice(begin - lag + apart, end - lag + apart)
            product = one.masses[terms] * other.masses[rest]
            if one is other and lag:
                product += product
            means = product * (values[terms] + others[rest])
            step = math.floor(rise)
            at = finer * (one.lowest + begin - min(lag, 0)) - lowest + 1
            for cell, share in ((step, 1.0),) if self.upper else ((step, step + 1 - rise), (step + 1, rise - step)):
                cells = slice(at + cell, at + cell + finer * (end - begin - 1) + 1, finer)
                masses[cells] += share * product
                weighted[cells] += share * means
        for zero, law, known in ((one.zero, other, others), (other.zero, one, values)):
            places = finer * (law.lowest + np.arange(len(known))) - lowest + 1
            for each, terms_of in ((masses, law.masses), (weighted, law.masses * known)):
                np.add.at(each, np.maximum(places, 0), zero * terms_of)
        added = 2.0**-51 * (len(lags) + 64)
        off = one.off[0] + other.off[0] + added, max(one.off[1], other.off[1])
        zero, beyond = one.zero * other.zero, one.beyond + other.beyond
        return self._on_points(PositiveLaw(masses, lowest, interval, zero, beyond, off), weighted, added, count)

    def _on_points(self, cells: PositiveLaw, weighted: NDArray[np.float64], added: float, count: int) -> PositiveLaw:
        """Put cells on points: all but negligible ones, of which the first lies below all points, and the last above.

        Args:
            cells: Their masses; the other cells lie between points from above, and around them from below.
            weighted: Their masses times their means.
            added: By how much either may be off, relatively.
            count: How many terms they are sums of.
        """
        negligible = self.negligible * count / self.terms / (4 * self.terms.bit_length())
        first = max(int(np.searchsorted(np.cumsum(cells.masses), negligible)) - 1, 0)
        last = len(weighted) - max(int(np.searchsorted(np.cumsum(weighted[::-1]), negligible)) - 1, 0)
        p, q = (
            np.concatenate([[each[: first + 1].sum()], each[first + 1 : last - 1], [each[last - 1 :].sum()]])
            for each in (weighted, cells.masses)
        )
        off = cells.off[0] + 2.0**-50, cells.off[1] + 2 * added + 2.0**-46
        law = replace(cells, lowest=cells.lowest + first, off=off)
        return _split(law, p, q) if self.upper else _joined(law, p[1:-1], q[1:-1])


def _split(law: PositiveLaw, weighted: NDArray[np.float64], cells: NDArray[np.float64]) -> PositiveLaw:
    """Split cells between points such that their means stay."""
    values = np.exp((law.lowest + np.arange(len(cells) - 1)) * law.interval)
    p, q = weighted[1:-1], cells[1:-1]
    share = np.clip((p / np.maximum(q, 1e-300) / values[:-1] - 1) / math.expm1(law.interval), 0.0, 1.0)
    up = min(float(cells[0]), float(weighted[0] / values[0]))
    masses = np.concatenate([[up], share * q]) + np.concatenate([(1 - share) * q, cells[-1:]])
    beyond = max(float(weighted[-1] - cells[-1] * values[-1]), 0.0)
    return replace(
        law, masses=masses, zero=law.zero + float(cells[0]) - up, beyond=(law.beyond + beyond) * (1 + 2.0**-40)
    )


def _joined(law: PositiveLaw, weighted: NDArray[np.float64], cells: NDArray[np.float64]) -> PositiveLaw:
    """Join shares of cells such that their means are on points; what is not is left out."""
    points = (law.lowest + np.arange(len(cells))) * law.interval
    p, q = centred(weighted, cells, points, steps=STEPS)
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.abs(np.log(p / q) - points)
    kept = apart <= NEAR
    shift = law.off[1] + float(apart[kept].max(initial=0.0))
    return replace(law, masses=np.where(kept, q, 0.0), off=(law.off[0], shift))
