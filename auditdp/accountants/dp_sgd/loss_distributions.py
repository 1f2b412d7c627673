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

Where cells end half-way between the points of the grid their losses differ from its points by O(w²), so a small s spares
nearly all of them the step down, and the bound is off by O(w²) a use; plain rounding down loses w/2 a use.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditdp.accountants.base import Soundness, check_delta, check_epsilon, epsilon_below, epsilon_from
from auditdp.accountants.description import Repeated
from auditdp.accountants.dp_sgd.convolution import repeated
from auditdp.mechanism.protocol import Array

SUMMING = 1e-12
"""What sums of terms >= 0 lose, relatively: numpy adds in pairs above blocks of 128, so less than 200u for 2^60 terms; and
4 units in the last place for the terms' own elementary function."""


class OnGrid(NamedTuple):
    """A privacy loss on a grid; the true one is bounded by the grid's minus ``shift`` per use.

    Attributes:
        masses: How likely P makes the losses ``lowest``·w, (``lowest`` + 1)·w, ...
        lowest: Number of the first point.
        interval: w, in nats.
        unbounded: How likely the loss has no bound.
        shift: In nats; negative where the grid's losses are too small.
    """

    masses: NDArray[np.float64]
    lowest: int
    interval: float
    unbounded: float
    shift: float


class Composed(NamedTuple):
    """A composed loss.

    Attributes:
        losses: Ascending, in nats.
        masses: How likely P makes them, each off by ``each`` at most.
        rest: How likely the loss is none of these, all of which counts as unbounded.
        each: See ``masses``.
        outside: How much of the masses may have come from elsewhere.
        shift: What to add to ε.
        rounding: By how much losses and ε may be off, in nats.
    """

    losses: NDArray[np.float64]
    masses: NDArray[np.float64]
    rest: float
    each: float
    outside: float
    shift: float
    rounding: float

    def delta_at(self, epsilon: float, sign: int) -> float:
        """Return at least (``sign`` 1) or at most (−1) the δ(ε) of the loss."""
        if math.isinf(epsilon):
            return self.rest + self.outside if sign > 0 else 0.0
        at = epsilon + self.shift - sign * (self.rounding + 2.0**-50 * epsilon)
        first = int(np.searchsorted(self.losses, at))
        beyond = self.losses[first:] - at
        found = float((self.masses[first:] * -np.expm1(-beyond)).sum())
        error = self.each * len(beyond) + self.outside
        return self.rest + found * (1 + SUMMING) + error if sign > 0 else found * (1 - SUMMING) - error


def from_above(first: Array, second: Array, lowest: int, interval: float, *, rounding: float = 0.0) -> OnGrid:
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
    excess += np.where(second[1:-1] > 0, 2.0**-50 * (8 + np.abs(at) + np.abs(np.maximum(log_second, -750.0))), 0.0) * p
    up = np.clip(excess / -math.expm1(-interval) * (1 + 2.0**-50), 0.0, p)
    masses = (np.concatenate([first[:1], up]) + np.concatenate([p - up, [0.0]])) * (1 + 2.0**-50)
    return OnGrid(np.asarray(masses, np.float64), lowest, interval, float(first[-1]), -rounding)


def from_below(first: Array, second: Array, interval: float) -> OnGrid:
    """Return a loss on the grid whose curve, shifted, lies below that of two laws.

    Args:
        first: Lower bounds on the probabilities of cells under P, shape (cells,); cells may be left out.
        second: Upper bounds on them under Q.
        interval: Distance w of the points of the grid, in nats.
    """
    kept = (first > 1e-300) & (second > 1e-300)
    nearest = np.rint(np.log(first[kept] / second[kept]) / interval).astype(np.int64)
    # Cells that are nearest to the same point are joined, so that their mean loss is nearer still. N terms lose Nu.
    index = nearest - nearest.min()
    lost = 2.0**-52 * float(np.bincount(index).max())
    joined = [np.bincount(index, weights=masses[kept]) * (1 + way * lost) for masses, way in ((first, -1), (second, 1))]
    mass, other = (masses[joined[0] > 0] for masses in joined)
    loss = np.log(mass / other)
    above_it = np.rint(loss / interval) * interval - loss
    order = np.argsort(above_it)
    stepping_down = mass.sum() - np.cumsum(mass[order])
    shifts = np.maximum(above_it[order], 0.0)
    # The mean loss falls by s, and by w for each cell whose nearest point lies higher than s above it.
    shift = float(shifts[np.argmin(shifts + interval * stepping_down)]) + 1e-6 * interval  # so that ties stay in place
    points = np.floor((loss + shift) / interval).astype(np.int64)
    lowest = int(points.min())
    # Joined again, off by as little; losses and points are off by a few units in the last place.
    index = points - lowest
    masses = np.bincount(index, weights=mass) * (1 - 2.0**-52 * float(np.bincount(index).max()))
    rounding = 2.0**-48 * (1 + float(np.abs(loss).max()) + shift)
    return OnGrid(np.asarray(masses, np.float64), lowest, interval, 0.0, shift + rounding)


@dataclass(frozen=True)
class GridCurve(Repeated):
    """The curve of T equal uses whose loss is bounded on a grid: what the accountants of batches share.

    ``delta_at`` adds what the arithmetic may have lost where the curve is an upper bound, and takes it away where it is a
    lower bound: of the order of 1e-14 T, as ``convolution`` derives. An upper bound has no finite ε for smaller δ.
    """

    soundness: ClassVar[Soundness]

    def losses(self) -> list[OnGrid]:
        """Return the loss of one use for each of the pairs of data that are looked at."""
        raise NotImplementedError

    @cached_property
    def _composed(self) -> list[Composed]:
        return [_composed(loss, self.uses) for loss in self.losses()]

    def delta_at(self, epsilon: float) -> float:
        """Return δ(ε), the largest over the pairs."""
        check_epsilon(type(self).__name__, epsilon)
        sign = 1 if self.soundness is Soundness.UPPER else -1
        return min(1.0, max(0.0, *(loss.delta_at(epsilon, sign) for loss in self._composed)))

    def epsilon_at(self, delta: float) -> float:
        """Return ε(δ), the largest over the pairs."""
        check_delta(type(self).__name__, delta)
        if self.soundness is Soundness.LOWER:
            return epsilon_below(self.delta_at, max(delta, 1e-300))  # all that the curve has beyond is zero
        return math.inf if self.delta_at(math.inf) > delta else epsilon_from(self.delta_at, delta)


def _composed(loss: OnGrid, uses: int) -> Composed:
    found = repeated(loss.masses, uses)
    losses = (loss.lowest * uses + found.first + np.arange(len(found.masses))) * loss.interval
    rest = -math.expm1(uses * math.log1p(-loss.unbounded)) * (1 + SUMMING) if loss.unbounded < 1 else 1.0
    rounding = 2.0**-51 * (float(np.abs(losses).max()) + uses * abs(loss.shift))
    return Composed(
        np.asarray(losses, np.float64), found.masses, rest, found.each, found.outside, uses * loss.shift, rounding
    )
