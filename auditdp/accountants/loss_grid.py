"""Privacy losses on a grid that bound the true ones from either side, and the curve of what they compose to.

Everything here is in doubles, and every rounding is bounded: of probabilities in ``normal``, of the convolution in
``convolution``, of losses by a shift, of what is left by ``SUMMING``. u = 2^−53 below.

**From above** (Doroshenko, Ghazi, Kamath, Kumar & Manurangsi 2022, "Connect the Dots", arXiv:2207.04380v2): join the
outputs whose loss lies between two points a < b of the grid, P(cell) = p and Q(cell) = q, and give p to two outputs of loss
a and b such that q stays what it is: p_b = (p − q e^a)/(1 − e^(a−b)) and p_a = p − p_b. δ is a convex function of e^ε, and
this is the polygon through its values at the points, so it lies above it. A pair of laws whose curve lies above another's
everywhere still does so after adaptive composition (Zhu, Dong & Wang 2022, "Optimal Accounting of Differential Privacy via
Characteristic Function", arXiv:2106.08567v3, Theorem 10). The curve rises with p and falls with q at every ε, so bounds
p' >= p and q' <= q give one that lies above. An error of p_b moves mass by one step of the grid and makes none: it shifts
the mean loss by its own size times b − a, so that fine grids stay exact, where differences of δ would not. Where losses lie
up to ξ outside their cell, because its ends are rounded, put them on its ends and keep P: the curve moves by ξ a use, and
Q(cell) falls by a factor e^−ξ at most.

**From below**: join outputs into cells, which is post-processing, so that δ can only fall. Keep p_j <= P(cell j) and
q_j >= Q(cell j), rounded outwards, and put the loss ln(p_j/q_j) down to the largest k_j·w − s that does not exceed it, for
any s >= 0. Then, after T uses,

    δ_T(ε) >= Σ_{j₁…j_T} (∏ p_j − e^ε ∏ q_j)₊ >= E[(1 − e^{ε + Ts − Σ k_j w})₊] = δ of the loss {k_j w: p_j} at ε + Ts.

Where cells end half-way between the points of the grid their losses differ from its points by O(w²). A share of a neighbour
puts them onto the points (to give away shares of an output, left to chance, is post-processing as well), so that a tiny s
spares nearly all of them the step down; what is lost is the spread of losses within a cell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditdp.accountants.accountant import (
    Soundness,
    check_delta,
    check_epsilon,
    epsilon_below,
    epsilon_from,
)
from auditdp.accountants.convolution import Sum, Tilt, repeated
from auditdp.accountants.description import Repeated
from auditdp.mechanism.protocol import Array

SUMMING = 1e-12
"""What sums of terms >= 0 lose, relatively: numpy adds in pairs above blocks of 128, so less than 200u for 2^60 terms; and
4 units in the last place for the terms' own elementary function."""

DECADES = 3
LEVELS = 10
"""One grid for δ down to 1e-3, 1e-6, ..., 1e-30."""
NEGLIGIBLE = 1e-5
"""The part of δ that may lie beyond a grid."""
MOVED = 2e-5
"""The part of ε that the distance of the points of a grid may make, about."""
PROBED = 2**10
"""How many points, up to the largest loss, the grid has on which the deviation of a use is seen."""
ROUGH = 2**13
"""How many points, up to the largest loss, the grid has at most on which is seen what a finer one has to be like."""
ROUGH_PER_DEVIATION = 64
"""How many of its points a standard deviation of the sum has, where that is fewer; and one of a use has four."""
REFINED = 4
"""How many rough grids are tried."""
FEWEST_POINTS = 2**13
"""A grid of fewer takes no less time."""
MOST_POINTS = 2**19
"""How many points that may have at most, for all uses."""
MOST_LOSSES = 2**21
"""How many points, up to the largest loss, it may have at most for one use: 16 MB for each array."""
MOST_ROUNDS = 60
"""How often shares of cells are corrected for what the cells that take them give away, at most."""
NEAR = 0.02
"""How far from its estimate ε is sought first."""


class OnGrid(NamedTuple):
    """A privacy loss on a grid; the true one is bounded by the grid's minus ``shift`` per use."""

    masses: NDArray[np.float64]
    """How likely P makes the losses ``lowest``·w, (``lowest`` + 1)·w, ..."""
    lowest: int
    """Number of the first point."""
    interval: float
    """w, in nats."""
    unbounded: float
    """How likely the loss has no bound."""
    shift: float
    """In nats; negative where the grid's losses are too small."""
    lost: float = 0.0
    """By how much less the mean loss is than it was, about, with the shift."""

    @property
    def right(self) -> float:
        """The shift with which the mean loss is right, about."""
        return self.shift - self.lost

    @property
    def deviation(self) -> float:
        """The standard deviation of the loss, in nats."""
        numbers, total = np.arange(len(self.masses)), float(self.masses.sum())
        mean = float(np.dot(numbers, self.masses)) / total
        return self.interval * math.sqrt(
            float(np.dot((numbers - mean) ** 2, self.masses)) / total
        )


@dataclass(frozen=True, eq=False)
class Composed:
    """A composed loss."""

    sums: Sum
    """Numbers of the points of the grid, and what is known of their masses."""
    lowest: int
    """Number of the point, in all uses, that the sum 0 is."""
    interval: float
    """w, in nats."""
    rest: float
    """How likely the loss has no bound."""
    shift: float
    """What to add to ε."""
    sign: int
    """1 for an upper bound, −1 for a lower one, 0 for neither."""

    def delta_at(self, epsilon: float) -> float:
        """Return a bound on the δ(ε) of the loss; a lower one may be that of a larger ε, where that is larger."""
        if math.isinf(epsilon):
            return self.rest if self.sign > 0 else 0.0
        at = epsilon + self.shift - self.sign * (self._rounding + 2.0**-50 * epsilon)
        at = max(at, self._best) if self.sign < 0 else at
        first = int(np.searchsorted(self._losses, at))
        mass, beyond, loss = self._from(first)
        found = mass * -math.expm1(at - loss) + beyond * math.exp(at - loss)
        found *= 1 + self.sign * (self.sums.relative + SUMMING)
        return (
            found
            + self.sign * float(self._outside(at))
            + (self.rest + 1e-300 if self.sign > 0 else 0.0)
        )

    def _from(self, first: int) -> tuple[float, float, float]:
        """The mass from a point on, δ at that point, and its loss l: δ at l − x is (1 − e^−x) mass + e^−x δ."""
        if first not in self._known:
            masses, losses = self._masses[first:], self._losses[first:]
            loss = float(losses[0]) if len(losses) else math.inf
            self._known[first] = (
                float(masses.sum()),
                float((masses * -np.expm1(loss - losses)).sum()),
                loss,
            )
        return self._known[first]

    @cached_property
    def _known(self) -> dict[int, tuple[float, float, float]]:
        return {}

    @cached_property
    def _losses(self) -> NDArray[np.float64]:
        return np.asarray(
            (self.lowest + self.sums.first + np.arange(len(self.sums.masses)))
            * self.interval
        )

    @cached_property
    def _rounding(self) -> float:
        """Losses and ε are off by a unit or two in the last place."""
        return 2.0**-51 * (
            max(abs(float(self._losses[0])), abs(float(self._losses[-1])))
            + abs(self.shift)
        )

    @cached_property
    def _masses(self) -> NDArray[np.float64]:
        """Masses without the tilt, off to the side that the bound may be off to."""
        numbers = self.sums.first + np.arange(len(self.sums.masses))
        tilted = np.maximum(self.sums.masses + self.sign * self.sums.each, 0.0)
        return np.asarray(tilted * np.exp(self.sums.exponent(numbers)))

    def _outside(self, at: Any) -> Any:
        """What lies outside, or has wrapped around and lies inside: no likelier than the first sum beyond would be."""
        return (
            1.01
            * self.sums.outside
            * np.exp(self.sums.exponent(np.floor(at / self.interval) - self.lowest))
        )

    @cached_property
    def _best(self) -> float:
        """The loss at which a lower bound is the largest, about: what lies outside costs more before it."""
        masses, lowered = (
            self._masses,
            np.exp(np.maximum(self._losses[0] - self._losses, -700.0)),
        )
        above, weighted = (
            np.cumsum(each[::-1])[::-1] for each in (masses, masses * lowered)
        )
        outside, slope = self._outside(self._losses), self.sums.tilt / self.interval
        best = int(np.argmax(above - weighted / lowered - outside))
        if best > 0:
            return float(self._losses[best])
        # Before the first mass the bound is S − R e^x − O e^(−slope x), x being the distance from it.
        if slope * outside[0] == 0 or weighted[0] == 0:
            return -math.inf
        return float(self._losses[0]) + min(
            0.0, math.log(slope * outside[0] / weighted[0]) / (1 + slope)
        )


def from_above(
    first: Array, second: Array, lowest: int, interval: float, *, rounding: float = 0.0
) -> OnGrid:
    """Return a loss on the grid whose curve, shifted, lies above that of two laws.

    Args:
        first: Upper bounds on the probabilities under P of the cells between the points ``lowest``·w, (``lowest`` + 1)·w, ..
            of the grid, shape (points + 1,). The first cell has all losses below the points, which are put up to the first
            one; the last has all above them, where the loss is taken to be unbounded.
        second: Lower bounds on them under Q.
        lowest: Number of the first point.
        interval: Distance w of the points of the grid, in nats.
        rounding: ξ, how far beyond the points losses of their cells may lie, in nats.
    """
    p, at = first[1:-1], (lowest + np.arange(len(first) - 2)) * interval
    with np.errstate(divide="ignore"):
        log_second = np.log(second[1:-1])
    excess = p - np.exp(at + log_second - rounding)
    # The exponent is off by 3u of its parts, what it is the exponent of is below p.
    excess += (
        np.where(
            second[1:-1] > 0,
            2.0**-50 * (8 + np.abs(at) + np.abs(np.maximum(log_second, -750.0))),
            0.0,
        )
        * p
    )
    up = np.clip(excess / -math.expm1(-interval) * (1 + 2.0**-50), 0.0, p)
    masses = (np.concatenate([first[:1], up]) + np.concatenate([p - up, [0.0]])) * (
        1 + 2.0**-50
    )
    return OnGrid(
        np.asarray(masses, np.float64), lowest, interval, float(first[-1]), -rounding
    )


def from_below(
    first: Array, second: Array, interval: float, offset: float = 0.0
) -> OnGrid:
    """Return a loss on the grid whose curve, shifted, lies below that of two laws.

    Args:
        first: Lower bounds on the probabilities of cells under P, shape (cells,); cells may be left out.
        second: Upper bounds on them under Q.
        interval: Distance w of the points of the grid, in nats.
        offset: The points that cells are meant for are multiples of w minus this, >= 0.
    """
    kept = (first > 1e-300) & (second > 1e-300)
    nearest = np.rint((np.log(first[kept] / second[kept]) + offset) / interval).astype(
        np.int64
    )
    # Cells that are nearest to the same point are joined, so that their mean loss is nearer still. N terms lose Nu.
    index = nearest - nearest.min()
    lost = 2.0**-52 * float(np.bincount(index).max())
    one, two = (
        np.bincount(index, weights=masses[kept]) * (1 + way * lost)
        for masses, way in ((first, -1), (second, 1))
    )
    joined = centred(
        one, two, (nearest.min() + np.arange(len(one))) * interval - offset
    )
    positive = one > 0
    mean = float(np.dot(one[positive], np.log(one[positive] / two[positive])))
    mass, other = (masses[joined[0] > 0] for masses in joined)
    loss = np.log(mass / other) + offset
    above_it = np.rint(loss / interval) * interval - loss
    order = np.argsort(above_it)
    stepping_down = mass.sum() - np.cumsum(mass[order])
    shifts = np.maximum(above_it[order], 0.0)
    # The mean loss falls by s, and by w for each cell whose nearest point lies higher than s above it.
    shift = (
        float(shifts[np.argmin(shifts + interval * stepping_down)]) + 1e-6 * interval
    )  # so that ties stay in place
    points = np.floor((loss + shift) / interval).astype(np.int64)
    lowest = int(points.min())
    # Joined again, off by as little; losses and points are off by a few units in the last place.
    index = points - lowest
    masses = np.bincount(index, weights=mass) * (
        1 - 2.0**-52 * float(np.bincount(index).max())
    )
    shift += offset + 2.0**-48 * (1 + float(np.abs(loss).max()) + shift)
    remains = float(
        np.dot(lowest + np.arange(len(masses)), masses)
    ) * interval - shift * float(masses.sum())
    return OnGrid(
        np.asarray(masses, np.float64), lowest, interval, 0.0, shift, mean - remains
    )


def centred(first: Array, second: Array, points: Array) -> list[NDArray[np.float64]]:
    """Move shares of cells to neighbours, so that the loss of nearly every cell becomes that of its point.

    A cell whose loss lies above its point needs a share of the cell below, and the other way round. With t the share that a
    whole cell needs, the part r that a cell keeps is 1 minus the sum of t·r of those that it gives to; as t is far below 1
    that converges quickly when it is repeated. Where it is not, the cell takes nothing.
    """
    size, cells = len(points), np.arange(len(points))
    excess = first - np.exp(np.log(np.maximum(second, 1e-300)) + points)
    giver = np.clip(np.where(excess > 0, cells - 1, cells + 1), 0, size - 1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = -excess / (first[giver] - np.exp(np.log(second[giver]) + points))
    # A cell gives to two others at most, so that it gives away less than it has.
    share = np.where((share > 0) & (share < 0.4) & (first > 0), share, 0.0)
    taken = share
    for _ in range(MOST_ROUNDS):
        before, taken = (
            taken,
            share * (1 - np.bincount(giver, weights=taken, minlength=size)),
        )
        if np.abs(taken - before).max() < 1e-12:
            break
    left = (1 - np.bincount(giver, weights=taken, minlength=size)) * (1 - 2.0**-50)
    return [
        (left * masses + taken * masses[giver]) * (1 + way * 2.0**-51)
        for masses, way in ((first, -1), (second, 1))
    ]


@dataclass(frozen=True)
class GridCurve(Repeated):
    """The curve of T equal uses whose loss is bounded on a grid: what the accountants of batches share.

    ``delta_at`` adds what the arithmetic may have lost where the curve is an upper bound, and takes it away where it is a
    lower bound, as ``convolution`` derives. How far the grid reaches, how fine it is and how its masses are tilted depends
    on the size of δ: there is one grid for each three decades. From ε on at which δ on one grid is below its decades,
    the next one is asked, so that the curve falls. Below 1e-30 there is no finer one, and no ε for much smaller δ.
    """

    soundness: ClassVar[Soundness]

    def largest_loss(self, negligible: float) -> float:
        """Return a loss, in nats, beyond which one use has only about the probability ``negligible``."""
        raise NotImplementedError

    def losses(self, negligible: float, interval: float) -> list[OnGrid]:
        """Return the loss of one use for each of the pairs of data that are looked at.

        Args:
            negligible: What probability of one use does not matter.
            interval: Distance of the points of the grid, in nats.
        """
        raise NotImplementedError

    @cached_property
    def _levels(self) -> list[_Level]:
        return [_Level(self, 10.0 ** (-DECADES * (k + 1))) for k in range(LEVELS)]

    def delta_at(self, epsilon: float) -> float:
        """Return δ(ε), the largest over the pairs."""
        check_epsilon(type(self).__name__, epsilon)
        # The estimates are good to much less than a factor of ten.
        start = next(
            (
                k
                for k, level in enumerate(self._levels)
                if level.rough(epsilon) >= level.least / 10
            ),
            LEVELS - 1,
        )
        most, found = 1.0, 0.0
        for level in self._levels[start:]:
            found = min(most, level.fine(epsilon))
            if found >= level.least:
                break
            most = level.least
        return found

    def epsilon_at(self, delta: float) -> float:
        """Return ε(δ), the largest over the pairs."""
        check_delta(type(self).__name__, delta)
        level = next(
            (level for level in self._levels if level.least <= delta), self._levels[-1]
        )
        near = level.near(delta)
        if self.soundness is Soundness.LOWER:
            return epsilon_below(
                level.fine, max(delta, 1e-300), near=near
            )  # all that the curve has beyond is zero
        return (
            math.inf
            if level.fine(math.inf) > delta
            else epsilon_from(level.fine, delta, near=near)
        )


@dataclass(frozen=True, eq=False)
class _Level:
    """A curve where δ is of one size."""

    curve: GridCurve
    least: float

    def rough(self, epsilon: float) -> float:
        """Return an estimate of δ(ε) that takes little time, and bounds nothing."""
        return self._largest(self._seen[1], epsilon)

    def fine(self, epsilon: float) -> float:
        """Return a bound on δ(ε)."""
        return self._largest(self._fine, epsilon)

    def near(self, delta: float) -> tuple[float, float] | None:
        """Return between which two ε(δ) lies most likely."""
        estimate = epsilon_from(self.rough, delta) if delta > 0 else 0.0
        return (
            (estimate * (1 - NEAR), estimate * (1 + NEAR))
            if 0 < estimate < math.inf
            else None
        )

    def _largest(self, composed: list[Composed], epsilon: float) -> float:
        return min(1.0, max(0.0, *(loss.delta_at(epsilon) for loss in composed)))

    @property
    def _typical(self) -> float:
        return self.least * 10 ** (DECADES / 2)

    @property
    def _negligible(self) -> float:
        return NEGLIGIBLE * self.least / self.curve.uses

    @cached_property
    def _seen(self) -> tuple[list[OnGrid], list[Composed], list[Tilt]]:
        """The losses on a rough grid, which is refined as long as it shows nothing of such a size, and composed."""
        uses, largest = self.curve.uses, self.curve.largest_loss(self._negligible)
        deviation = max(
            loss.deviation
            for loss in self.curve.losses(self._negligible, largest / PROBED)
        )
        interval = max(
            largest / ROUGH,
            deviation * min(0.25, math.sqrt(uses) / ROUGH_PER_DEVIATION),
        )
        before = 0.0
        for _ in range(REFINED):
            losses = self.curve.losses(self._negligible, interval)
            tilts = [
                Tilt.of(loss.masses, uses, math.log(self._typical)) for loss in losses
            ]
            composed = [
                self._composed(*each, sign=0)
                for each in zip(losses, tilts, strict=True)
            ]
            longest = max(
                *(len(loss.masses) for loss in losses),
                *(len(loss.sums.masses) for loss in composed),
            )
            shown = self._largest(composed, 0.0)
            if (
                shown >= self.least
                or 0 < shown <= 2 * before
                or longest > MOST_POINTS / 8
            ):
                break
            interval, before = interval / 8, shown
        return losses, composed, tilts

    @cached_property
    def _fine(self) -> list[Composed]:
        """On a grid of which the points move ε by a small part of it.

        Points w apart add at most w²/4 to the variance of a use, or take as much away. Where ln δ falls by λ per nat that
        moves ln δ by λ²Tw²/8, and ε by λTw²/8.
        """
        uses, log_tail, (rough, _, steepest) = (
            self.curve.uses,
            math.log(self._typical),
            self._seen,
        )
        epsilon = min(
            max(
                epsilon_from(self.rough, self._typical),
                epsilon_from(self.rough, self.least) / 2,
            ),
            1e300,
        )
        interval, sign = (
            rough[0].interval,
            1 if self.curve.soundness is Soundness.UPPER else -1,
        )
        tilts = [
            tilt.towards(
                loss.masses,
                uses,
                log_tail,
                (epsilon + uses * loss.right) / interval - loss.lowest * uses,
            )
            for loss, tilt in zip(rough, steepest, strict=True)
        ]
        longest = max(
            *(len(loss.masses) for loss in rough), *(tilt.length for tilt in tilts)
        )
        before, after = (
            max(self.rough(epsilon * factor), 1e-300) for factor in (1 - NEAR, 1 + NEAR)
        )
        epsilon = epsilon or math.inf  # where there is nothing to see, any grid does
        slope = max(math.log(before / after) / (2 * NEAR * epsilon), 1e-300)
        # Losses of negligible probability take room while they are computed, and are left out of a lower bound later.
        computed = self.curve.largest_loss(self._negligible) / interval
        finest = min(max(longest / MOST_POINTS, computed / MOST_LOSSES), 1.0)
        finer = math.sqrt(8 * MOVED * epsilon / (slope * uses)) / interval
        finer = max(min(finer, longest / FEWEST_POINTS, 1.0), finest)
        losses = self.curve.losses(self._negligible, interval * finer)
        for _ in range(REFINED):
            if (
                finer == finest
                or uses * max(loss.lost for loss in losses) <= 2 * MOVED * epsilon
            ):
                break
            finer = max(finer / 2, finest)
            losses = self.curve.losses(self._negligible, interval * finer)
        return [
            self._composed(loss, tilt.on(finer), sign=sign)
            for loss, tilt in zip(losses, tilts, strict=True)
        ]

    def _composed(self, loss: OnGrid, tilt: Tilt, *, sign: int) -> Composed:
        uses = self.curve.uses
        rest = (
            -math.expm1(uses * math.log1p(-loss.unbounded)) * (1 + SUMMING)
            if loss.unbounded < 1
            else 1.0
        )
        sums = repeated(loss.masses, uses, tilt)
        shift = loss.shift if sign else loss.right
        return Composed(
            sums, loss.lowest * uses, loss.interval, rest, uses * shift, sign
        )
