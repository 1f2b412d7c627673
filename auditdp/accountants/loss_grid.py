"""Composed privacy losses on a grid, which bound the true curve from above or below.

``from_above`` and ``from_below`` put the loss of one use on a grid. ``Composed`` is the
loss of T uses. ``GridCurve`` chooses the grids. Everything is computed in doubles, and
every rounding error is bounded: of probabilities in ``normal_quantiles``, of the
convolution in ``convolution``, of losses by a shift, and of sums by ``SUMMING``. u =
2^−53 below.

**From above** (Doroshenko, Ghazi, Kamath, Kumar & Manurangsi 2022, "Connect the Dots",
arXiv:2207.04380v2): join the outputs whose loss lies between two points a < b of the
grid, P(cell) = p and Q(cell) = q, and give p to two outputs of loss a and b such that q
does not change: p_b = (p − q e^a)/(1 − e^(a−b)) and p_a = p − p_b. δ is a convex
function of e^ε, and this is the polygon through its values at the points, so it lies
above it. A pair of laws whose curve lies above another's everywhere still does so after
adaptive composition (Zhu, Dong & Wang 2022, "Optimal Accounting of Differential Privacy
via Characteristic Function", arXiv:2106.08567v3, Theorem 10). The curve rises with p
and falls with q at every ε, so bounds p' >= p and q' <= q give one that lies above. An
error of p_b moves mass by one step of the grid and makes none: it shifts the mean loss
by its own size times b − a, so that fine grids stay exact, where differences of δ would
not. If losses lie up to ξ outside their cell, because its ends are rounded, put them on
its ends and keep P: the curve moves by ξ a use, and Q(cell) falls by a factor e^−ξ at
most.

**From below**: join outputs into cells, which is post-processing, so that δ can only
fall. Take p_j <= P(cell j) and q_j >= Q(cell j), rounded outwards, and round the loss
ln(p_j/q_j) down to the largest k_j·w − s that does not exceed it, for any s >= 0. Then,
after T uses,

    δ_T(ε) >= Σ_{j₁…j_T} (∏ p_j − e^ε ∏ q_j)₊ >= E[(1 − e^{ε + Ts − Σ k_j w})₊],

which is δ of the loss {k_j w: p_j} at ε + Ts. If cells end half-way between the points
of the grid, their losses differ from its points by O(w²). Each cell is mixed with a
share of a neighbouring cell, so that its loss is that of its point (``centred``). To
give away a random share of an output is post-processing as well. Then with a tiny s
hardly any loss is rounded down by a whole step. The remaining cost is the spread of
losses within a cell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import ClassVar, NamedTuple

import numpy as np

from auditdp.accountants.accountant import Analysis, Soundness
from auditdp.accountants.convolution import Tilt, repeated
from auditdp.accountants.normal_quantiles import Enclosed
from auditdp.accountants.parameter_checks import check_delta, check_epsilon
from auditdp.accountants.root_finding import epsilon_below, epsilon_from
from auditdp.mechanism.protocol import Array

SUMMING = 1e-12
"""Relative error of a sum of terms >= 0, and of an elementary function in the terms.

numpy adds in pairs above blocks of 128, so the sum is off by less than 200u for 2^60
terms, and the function by 4 units in the last place.
"""
DECADES = 3
"""Number of decades of δ that one grid covers; the first grid is for δ >= 1e-3."""
MOVED = 2e-5
"""Approximate relative change of ε that the spacing of a grid may cause."""
BRACKET_RTOL = 0.02
"""Relative half-width of the first bracket around an estimated ε."""


@dataclass(frozen=True)
class GridLimits:
    """Limits on the numbers of points of grids.

    The points of one use are counted from a loss of 0 up to its largest loss.
    """

    probed: int = 2**10
    """Points of one use on the grid on which its standard deviation is estimated."""
    coarse: int = 2**13
    """Largest number of points of one use on the first coarse grid.

    The coarse grid serves to choose the fine one.
    """
    coarse_per_deviation: int = 64
    """Points of the coarse grid for each standard deviation of the sum."""
    min_points: int = 2**13
    """Smallest number of points of a fine grid; fewer would take no less time."""
    max_points: int = 2**19
    """Largest number of points of a fine grid for the sum of all uses."""
    max_points_of_use: int = 2**21
    """Largest number of points of a fine grid for one use: 16 MB for each array."""
    refinements: int = 4
    """Largest number of coarse grids, and of refinements of the fine grid."""


LIMITS = GridLimits()


class OnGrid(NamedTuple):
    """The privacy loss of one use on a grid.

    The curve of this loss, minus ``shift``, bounds the true curve.
    """

    masses: Array
    """The masses under P of the losses ``lowest``·w, (``lowest`` + 1)·w, ..."""
    lowest: int
    """The first loss of the grid, as a multiple of w."""
    interval: float
    """w, the distance of two points of the grid, in nats."""
    unbounded: float
    """The probability under P of an infinite loss."""
    shift: float
    """Nats to subtract from each loss of the grid, so that its curve is a bound."""
    lost: float = 0.0
    """True mean loss minus the mean of the shifted loss, approximately, in nats."""

    @property
    def right(self) -> float:
        """The shift after which the loss has approximately the true mean."""
        return self.shift - self.lost

    @property
    def deviation(self) -> float:
        """The standard deviation of the finite losses, in nats."""
        numbers, total = np.arange(len(self.masses)), float(self.masses.sum())
        mean = float(np.dot(numbers, self.masses)) / total
        variance = float(np.dot((numbers - mean) ** 2, self.masses)) / total
        return self.interval * math.sqrt(variance)


class Composed:
    """The loss of several independent uses, and the bound on δ(ε) that it gives.

    Args:
        loss: The loss of one use.
        uses: The number of uses.
        tilt: The tilt of the transform.
        sign: 1 for an upper bound on δ, −1 for a lower bound, 0 for an estimate.
    """

    def __init__(self, loss: OnGrid, uses: int, tilt: Tilt, sign: int) -> None:
        self.sums, self.sign = repeated(loss.masses, uses, tilt), sign
        self.interval, self.lowest = loss.interval, loss.lowest * uses
        self.shift = uses * (loss.shift if sign else loss.right)
        # The probability that any use has an unbounded loss.
        self.rest = 1.0
        if loss.unbounded < 1:
            log_bounded = uses * math.log1p(-loss.unbounded)
            self.rest = -math.expm1(log_bounded) * (1 + SUMMING)
        numbers: Array = self.sums.first + np.arange(len(self.sums.masses))
        self.losses = (self.lowest + numbers) * self.interval
        # The masses without the tilt; their error has the direction of the bound on δ.
        tilted = np.maximum(self.sums.masses + sign * self.sums.each, 0.0)
        self.masses = tilted * np.exp(self.sums.exponent(numbers))
        # Losses and ε are off by a unit or two in the last place.
        largest = max(abs(float(self.losses[0])), abs(float(self.losses[-1])))
        self.rounding = 2.0**-51 * (largest + abs(self.shift))
        # δ never rises with ε, so that a lower bound at a larger ε holds as well.
        self.best = self._best() if sign < 0 else -math.inf
        # An inversion of the curve ends with many evaluations between the same points.
        self.from_point = cache(self._from_point)

    def delta_at(self, epsilon: float) -> float:
        """Return the bound on δ(ε), or the estimate; it may lie outside [0, 1]."""
        if math.isinf(epsilon):
            return self.rest if self.sign > 0 else 0.0
        at = epsilon + self.shift - self.sign * (self.rounding + 2.0**-50 * epsilon)
        at = max(at, self.best)
        mass, beyond, loss = self.from_point(int(np.searchsorted(self.losses, at)))
        # δ at l − x is (1 − e^−x) times the mass from l on, and e^−x times δ at l.
        delta = mass * -math.expm1(at - loss) + beyond * math.exp(at - loss)
        delta *= 1 + self.sign * (self.sums.relative + SUMMING)
        delta += self.sign * float(self._outside(np.array(at)))
        return delta + (self.rest + 1e-300) if self.sign > 0 else delta

    def _from_point(self, first: int) -> tuple[float, float, float]:
        """Return the mass at losses from one point on, δ at the point, and its loss.

        ``first`` is the index of the point in ``losses``. Beyond the last point the
        result is (0, 0, inf).
        """
        masses, losses = self.masses[first:], self.losses[first:]
        loss = float(losses[0]) if len(losses) else math.inf
        beyond = (masses * -np.expm1(loss - losses)).sum()
        return float(masses.sum()), float(beyond), loss

    def _outside(self, at: Array) -> Array:
        """Return a bound on the mass of sums outside the window, for each loss ``at``.

        The bound also covers mass that wrapped around into the window. The tilted mass
        is converted to a probability by the factor of the first sum beyond ``at``.
        """
        sums = np.floor(at / self.interval) - self.lowest
        return 1.01 * self.sums.outside * np.exp(self.sums.exponent(sums))

    def _best(self) -> float:
        """Return the approximate loss at which the lower bound on δ is the largest.

        At smaller losses the deduction for mass outside the window costs more.
        """
        # Below −700 the exponential may become 0, by which it is divided later.
        lowered = np.exp(np.maximum(self.losses[0] - self.losses, -700.0))
        above = np.cumsum(self.masses[::-1])[::-1]
        weighted = np.cumsum((self.masses * lowered)[::-1])[::-1]
        outside, slope = self._outside(self.losses), self.sums.tilt / self.interval
        best = int(np.argmax(above - weighted / lowered - outside))
        if best > 0:
            return float(self.losses[best])
        # Before the first mass the bound is S − R e^x − O e^(−slope x), x being the
        # distance from it.
        if slope * outside[0] == 0 or weighted[0] == 0:
            return -math.inf
        distance = math.log(slope * outside[0] / weighted[0]) / (1 + slope)
        return float(self.losses[0]) + min(0.0, distance)


def from_above(
    first: Array, second: Array, lowest: int, interval: float, *, rounding: float = 0
) -> OnGrid:
    """Return a loss on a grid. Minus its ``shift``, it has a curve above the true one.

    The true curve is that of P against Q.

    Args:
        first: Upper bounds on the probabilities under P of the cells between the points
            ``lowest``·w, (``lowest`` + 1)·w, .. of the grid, shape (points + 1,). The
            first cell has all losses below the first point, which are raised to this
            point. The last cell has all losses above the last point, which are treated
            as infinite.
        second: Lower bounds on the probabilities of the same cells under Q.
        lowest: The first point, as a multiple of w.
        interval: Distance w of the points of the grid, in nats.
        rounding: ξ, the largest distance of a loss from its cell, in nats.
    """
    p, q = first[1:-1], second[1:-1]
    at = (lowest + np.arange(len(p))) * interval
    with np.errstate(divide="ignore"):
        log_q = np.log(q)
    excess = p - np.exp(at + log_q - rounding)
    # The exponent is off by 3u of its parts, and its exponential is below p.
    parts = 8 + np.abs(at) + np.abs(np.maximum(log_q, -750.0))
    excess += np.where(q > 0, 2.0**-50 * parts, 0.0) * p
    up = np.clip(excess / -math.expm1(-interval) * (1 + 2.0**-50), 0.0, p)
    masses = np.concatenate([first[:1], up]) + np.concatenate([p - up, [0.0]])
    masses = masses * (1 + 2.0**-50)
    return OnGrid(masses, lowest, interval, float(first[-1]), -rounding)


def from_below(
    first: Array, second: Array, interval: float, offset: float = 0.0
) -> OnGrid:
    """Return a loss on a grid. Minus its ``shift``, it has a curve below the true one.

    The true curve is that of P against Q.

    Args:
        first: Lower bounds on the probabilities of cells under P, shape (cells,); cells
            may be left out.
        second: Upper bounds on the probabilities of the same cells under Q.
        interval: Distance w of the points of the grid, in nats.
        offset: The losses of the cells lie near multiples of w minus this distance,
            which is >= 0.
    """
    occupied = (first > 1e-300) & (second > 1e-300)
    p, q = first[occupied], second[occupied]
    nearest = np.rint((np.log(p / q) + offset) / interval).astype(np.int64)
    # Cells that are nearest to the same point are joined, so that their mean loss is
    # nearer still. A sum of N terms is off by Nu.
    index = nearest - nearest.min()
    lost = 2.0**-52 * float(np.bincount(index).max())
    p = np.bincount(index, weights=p) * (1 - lost)
    q = np.bincount(index, weights=q) * (1 + lost)
    points = (nearest.min() + np.arange(len(p))) * interval - offset
    positive = p > 0
    mean = float(np.dot(p[positive], np.log(p[positive] / q[positive])))
    p, q = centred(p, q, points)
    mass, mass_q = p[p > 0], q[p > 0]
    loss = np.log(mass / mass_q) + offset
    above_it = np.rint(loss / interval) * interval - loss
    order = np.argsort(above_it)
    stepping_down = mass.sum() - np.cumsum(mass[order])
    shifts = np.maximum(above_it[order], 0.0)
    # The mean loss falls by s, and by w for each cell whose nearest point lies more than
    # s above it. A little is added to s, so that cells at exactly s are not moved.
    best = np.argmin(shifts + interval * stepping_down)
    shift = float(shifts[best]) + 1e-6 * interval
    numbers = np.floor((loss + shift) / interval).astype(np.int64)
    lowest = int(numbers.min())
    # Cells of one point are joined again, with the same error; losses and points are
    # off by a few units in the last place.
    index = numbers - lowest
    lost = 2.0**-52 * float(np.bincount(index).max())
    masses = np.bincount(index, weights=mass) * (1 - lost)
    shift += offset + 2.0**-48 * (1 + float(np.abs(loss).max()) + shift)
    grid_mean = float(np.dot(lowest + np.arange(len(masses)), masses)) * interval
    lost_mean = mean - (grid_mean - shift * float(masses.sum()))
    return OnGrid(masses, lowest, interval, 0.0, shift, lost_mean)


def centred(first: Array, second: Array, points: Array) -> tuple[Array, Array]:
    """Return the masses under P and Q with shares of cells moved to neighbours.

    ``first`` and ``second`` are bounds as for ``from_below``, and stay such bounds.
    ``points`` has the loss of the point of each cell. All have shape (cells,).

    Afterwards nearly every cell has the loss of its point. A cell whose loss lies above
    its point takes a share of the cell below, and a cell whose loss lies below takes a
    share of the cell above. Let t be the share that a whole cell needs, and r the part
    that a cell keeps. A cell keeps 1 minus the sum of t·r over the cells that it gives
    to. This fixed point is iterated, and converges quickly, since t is far below 1. A
    cell with t >= .4 takes nothing.
    """
    size, cells = len(points), np.arange(len(points))
    remaining: Array
    excess = first - np.exp(np.log(np.maximum(second, 1e-300)) + points)
    giver = np.clip(np.where(excess > 0, cells - 1, cells + 1), 0, size - 1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = -excess / (first[giver] - np.exp(np.log(second[giver]) + points))
    # A cell gives to two others at most, so that it gives away less than it has.
    share = np.where((share > 0) & (share < 0.4) & (first > 0), share, 0.0)
    taken: Array = share
    for _ in range(60):
        remaining = 1 - np.bincount(giver, weights=taken, minlength=size)
        change = np.abs(share * remaining - taken).max()
        taken = share * remaining
        if change < 1e-12:
            break
    remaining = 1 - np.bincount(giver, weights=taken, minlength=size)
    remaining = remaining * (1 - 2.0**-50)
    p = (remaining * first + taken * first[giver]) * (1 - 2.0**-51)
    return p, (remaining * second + taken * second[giver]) * (1 + 2.0**-51)


class GridCurve(Analysis):
    """The curve of T equal uses of the data, whose loss is bounded on a grid.

    ``delta_at`` adds the error of the arithmetic to an upper bound, and subtracts it
    from a lower bound, as ``convolution`` derives. The range of the grid, its step and
    the tilt of its masses depend on the size of δ. There is one grid for each three
    decades of δ, down to 1e-30. As soon as δ falls below the decades of one grid, the
    next grid is used. For a δ far below 1e-30 the ε of an upper bound is infinite.
    """

    soundness: ClassVar[Soundness]
    steps: int
    """The number of uses, unless ``uses`` is overridden."""

    @property
    def uses(self) -> int:
        """T, the number of uses that add up."""
        return self.steps

    def loss_quantile(self, negligible: float) -> float:
        """Return a loss that one use exceeds with about this probability, in nats."""
        raise NotImplementedError

    def losses(self, negligible: float, interval: float) -> list[OnGrid]:
        """Return the loss of one use on a grid, for each of the pairs of laws.

        There is one pair, or one pair for each order of the neighbours.

        Args:
            negligible: Events of one use with about this probability may be neglected,
                in the direction of the bound.
            interval: Distance of the points of the grid, in nats.
        """
        raise NotImplementedError

    @cached_property
    def _levels(self) -> list[_Level]:
        return [_Level(self, 10.0 ** (-DECADES * (k + 1))) for k in range(10)]

    def delta_at(self, epsilon: float) -> float:
        """Return the bound on δ(ε), the largest over the pairs of laws."""
        check_epsilon(type(self).__name__, epsilon)
        levels = self._levels
        # Estimates are off by much less than a factor of ten.
        while (
            len(levels) > 1 and levels[0].estimate(epsilon) < levels[0].min_delta / 10
        ):
            levels = levels[1:]
        # A δ below the decades of a grid is recomputed on the next grid. It is capped,
        # so that the curve cannot rise where the grids meet.
        ceiling = 1.0
        for level in levels:
            delta = min(ceiling, level.bound(epsilon))
            if delta >= level.min_delta:
                break
            ceiling = level.min_delta
        return delta

    def epsilon_at(self, delta: float) -> float:
        """Return the bound on ε(δ), the largest over the pairs of laws."""
        check_delta(type(self).__name__, delta)
        level = self._levels[-1]
        for finer in reversed(self._levels):
            if finer.min_delta <= delta:
                level = finer
        near = level.near(delta)
        if self.soundness is Soundness.LOWER:
            # Below this δ the curve is taken to be zero.
            return epsilon_below(level.bound, max(delta, 1e-300), near=near)
        if level.bound(math.inf) > delta:
            return math.inf
        return epsilon_from(level.bound, delta, near=near)


class AttainedPair(GridCurve):
    """A lower bound on the curve, from one pair of neighbours in both orders.

    The outputs on the two inputs are joined into cells.
    """

    soundness = Soundness.LOWER

    def cells(self, negligible: float) -> tuple[Enclosed, Enclosed]:
        """Return bounds on the probabilities of the same cells on either input.

        Events of about the probability ``negligible`` may be neglected.
        """
        raise NotImplementedError

    def losses(self, negligible: float, interval: float) -> list[OnGrid]:
        """Return two losses of one use, one for each order of the inputs."""
        return in_both_orders(*_cells_of(self, negligible), interval)


@lru_cache(maxsize=1)
def _cells_of(pair: AttainedPair, negligible: float) -> tuple[Enclosed, Enclosed]:
    return pair.cells(negligible)


def in_both_orders(
    first: Enclosed, second: Enclosed, interval: float, offset: float = 0.0
) -> list[OnGrid]:
    """Return the losses of two laws in both orders, each on a grid, as lower bounds.

    Args:
        first: Bounds on the probabilities of cells under the first law.
        second: Bounds on the probabilities of the same cells under the second law.
        interval: Distance of the points of the grid, in nats.
        offset: The losses of the first law against the second lie near multiples of
            ``interval`` minus this distance, those of the second law near multiples
            plus this distance.
    """
    return [
        from_below(first[0], second[1], interval, offset % interval),
        from_below(second[0], first[1], interval, -offset % interval),
    ]


@dataclass(frozen=True, eq=False)
class _Level:
    """The part of a curve with δ within ``DECADES`` decades, and its grids."""

    curve: GridCurve
    min_delta: float
    """The smallest δ of these decades."""

    def estimate(self, epsilon: float) -> float:
        """Return an estimate of δ(ε) on the coarse grid: fast, and no bound."""
        return self._largest(self._coarse[1], epsilon)

    def bound(self, epsilon: float) -> float:
        """Return a bound on δ(ε), from the fine grid."""
        return self._largest(self._fine, epsilon)

    def near(self, delta: float) -> tuple[float, float] | None:
        """Return (low, high), between which ε(δ) probably lies.

        It is None if the estimate of ε is 0 or infinite, as for δ = 0.
        """
        estimate = epsilon_from(self.estimate, delta) if delta > 0 else 0.0
        if not 0 < estimate < math.inf:
            return None
        return estimate * (1 - BRACKET_RTOL), estimate * (1 + BRACKET_RTOL)

    def _largest(self, composed: list[Composed], epsilon: float) -> float:
        return min(1.0, max(0.0, *(loss.delta_at(epsilon) for loss in composed)))

    @property
    def _typical(self) -> float:
        return self.min_delta * 10 ** (DECADES / 2)

    @property
    def _negligible(self) -> float:
        # All uses together may neglect 1e-5 of the smallest δ beyond the grid.
        return 1e-5 * self.min_delta / self.curve.uses

    def _losses(self, interval: float) -> list[OnGrid]:
        return self.curve.losses(self._negligible, interval)

    @cached_property
    def _coarse(self) -> tuple[list[OnGrid], list[Composed], list[Tilt]]:
        """The losses of one use on a coarse grid, the composed losses, and the tilts.

        Each list has one entry for each pair of laws. The grid is refined until δ(0) on
        it reaches ``min_delta``, or no longer doubles, or the grid has too many points.
        """
        uses, largest = self.curve.uses, self.curve.loss_quantile(self._negligible)
        probed = self._losses(largest / LIMITS.probed)
        deviation = max(loss.deviation for loss in probed)
        # At most a quarter of the standard deviation of one use.
        part = min(0.25, math.sqrt(uses) / LIMITS.coarse_per_deviation)
        interval = max(largest / LIMITS.coarse, deviation * part)
        previous = 0.0
        for _ in range(LIMITS.refinements):
            losses = self._losses(interval)
            log_delta = math.log(self._typical)
            tilts = [Tilt.of(loss.masses, uses, log_delta) for loss in losses]
            composed = self._composed(losses, tilts, sign=0)
            longest = max(len(loss.masses) for loss in losses)
            longest = max(longest, *(len(loss.sums.masses) for loss in composed))
            delta = self._largest(composed, 0.0)
            unchanged = 0 < delta <= 2 * previous
            if delta >= self.min_delta or unchanged or longest > LIMITS.max_points / 8:
                break
            interval, previous = interval / 8, delta
        return losses, composed, tilts

    @cached_property
    def _fine(self) -> list[Composed]:
        """The composed losses on a grid whose spacing changes ε by about ``MOVED``.

        Points at distance w change the variance of one use by at most w²/4. If ln δ
        falls by λ per nat, this changes ln δ by λ²Tw²/8, and ε by λTw²/8.
        """
        uses, (losses, _, steepest) = self.curve.uses, self._coarse
        epsilon = epsilon_from(self.estimate, self._typical)
        epsilon = max(epsilon, epsilon_from(self.estimate, self.min_delta) / 2)
        epsilon = min(epsilon, 1e300)
        interval = losses[0].interval
        # The transform should be the most precise for the sums beyond ε.
        tilts = []
        for loss, tilt in zip(losses, steepest, strict=True):
            threshold = (epsilon + uses * loss.right) / interval - loss.lowest * uses
            log_tail = math.log(self._typical)
            tilts.append(tilt.towards(loss.masses, uses, log_tail, threshold))
        longest = max(len(loss.masses) for loss in losses)
        longest = max(longest, *(tilt.length for tilt in tilts))
        before = max(self.estimate(epsilon * (1 - BRACKET_RTOL)), 1e-300)
        after = max(self.estimate(epsilon * (1 + BRACKET_RTOL)), 1e-300)
        # If the curve is 0 from the start, any grid will do.
        epsilon = epsilon or math.inf
        slope = max(math.log(before / after) / (2 * BRACKET_RTOL * epsilon), 1e-300)
        # Losses of negligible probability take memory while they are computed, and are
        # left out of a lower bound later.
        computed = self.curve.loss_quantile(self._negligible) / interval
        finest = max(longest / LIMITS.max_points, computed / LIMITS.max_points_of_use)
        finest = min(finest, 1.0)
        finer = math.sqrt(8 * MOVED * epsilon / (slope * uses)) / interval
        finer = max(min(finer, longest / LIMITS.min_points, 1.0), finest)
        losses = self._losses(interval * finer)
        # A lower bound also loses where a cell's loss is rounded down to a point.
        for _ in range(LIMITS.refinements):
            lost = uses * max(loss.lost for loss in losses)
            if finer == finest or lost <= 2 * MOVED * epsilon:
                break
            finer = max(finer / 2, finest)
            losses = self._losses(interval * finer)
        sign = 1 if self.curve.soundness is Soundness.UPPER else -1
        return self._composed(losses, [tilt.on(finer) for tilt in tilts], sign=sign)

    def _composed(
        self, losses: list[OnGrid], tilts: list[Tilt], *, sign: int
    ) -> list[Composed]:
        pairs = zip(losses, tilts, strict=True)
        return [Composed(loss, self.curve.uses, tilt, sign) for loss, tilt in pairs]
