"""Privacy losses on a grid that bound the true ones from either side, and the curve of what they compose to.

dp-accounting does the arithmetic of grids (the convolution); this module makes the grids and says how far to trust them.

**From above** (Doroshenko, Ghazi, Kamath, Kumar & Manurangsi 2022, "Connect the Dots", arXiv:2207.04380v2): join the
outputs whose loss lies between two points a < b of the grid, P(cell) = p and Q(cell) = q, and give p to two outputs of loss
a and b such that q stays what it is: p_b = (p − q e^a)/(1 − e^(a−b)) and p_a = p − p_b. δ is a convex function of e^ε, and
this is the polygon through its values at the points, so it lies above it. A pair of laws whose curve lies above another's
everywhere still does so after adaptive composition (Zhu, Dong & Wang 2022, "Optimal Accounting of Differential Privacy via
Characteristic Function", arXiv:2106.08567v3, Theorem 10). The curve rises with p and falls with q at every ε, so bounds
p' >= p and q' <= q give one that lies above. An error of p_b moves mass by one step of the grid and makes none: it shifts
the mean loss by its own size times b − a, so that fine grids stay exact, where differences of δ would not.

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
from dp_accounting.pld import pld_pmf
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
from numpy.typing import NDArray
from scipy.special import ndtr

from auditdp.accountants.base import Soundness, check_delta, check_epsilon, least
from auditdp.mechanism import Array

CONVOLUTION_ERROR = 1e-15
"""What the convolution may do to δ, for each use and ten more.

It is one power of one discrete Fourier transform: T uses multiply the relative error of each frequency by T. Against the
closed form of the Gaussian (`tests/unit/accountants/test_loss_distributions.py`) δ was off by at most 1e-15 (T = 100), 1e-13
(1e4) and 3e-11 (1e6), so this is a margin of 40 at T = 1e6. dp-accounting's own truncation of 1e-15 is within the ten.
"""
GRID_ERROR = 1e-12
"""What differences of neighbouring points of a curve may do to δ, relatively: 2e-14 was seen, on 1e4 points."""


class OnGrid(NamedTuple):
    """A privacy loss on a grid; the true one is bounded by the grid's minus ``shift`` per use."""

    loss: PrivacyLossDistribution
    shift: float = 0.0


def from_above(first: Array, second: Array, lowest: int, interval: float) -> OnGrid:
    """Return a loss on the grid whose curve lies above that of two laws.

    Args:
        first: Upper bounds on the probabilities under P of the cells between the points ``lowest``·w, (``lowest`` + 1)·w, ..
            of the grid, shape (points + 1,). The first cell has all losses below the points, which are put up to the first
            one; the last has all above them, where the loss is taken to be unbounded.
        second: Lower bounds on them under Q.
        lowest: Number of the first point.
        interval: Distance w of the points of the grid, in nats.
    """
    p, at = first[1:-1], (lowest + np.arange(len(first) - 2)) * interval
    with np.errstate(divide="ignore"):
        excess = p - np.exp(at + np.log(second[1:-1]))
    excess += 2.0**-50 * (1 + np.abs(at)) * p  # what rounding may have taken
    up = np.clip(excess / -math.expm1(-interval), 0.0, p)
    masses = np.concatenate([first[:1], up]) + np.concatenate([p - up, [0.0]])
    return OnGrid(PrivacyLossDistribution(pld_pmf.DensePLDPmf(interval, lowest, masses, float(first[-1]), True)))


def from_below(first: Array, second: Array, interval: float) -> OnGrid:
    """Return a loss on the grid whose curve, shifted, lies below that of two laws.

    Args:
        first: Lower bounds on the probabilities of cells under P, shape (cells,); cells may be left out.
        second: Upper bounds on them under Q.
        interval: Distance w of the points of the grid, in nats.
    """
    kept = (first > 1e-300) & (second > 1e-300)
    nearest = np.rint(np.log(first[kept] / second[kept]) / interval).astype(np.int64)
    # Cells that are nearest to the same point are joined, so that their mean loss is nearer still.
    joined = [np.bincount(nearest - nearest.min(), weights=masses[kept]) for masses in (first, second)]
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
    masses = np.bincount(points - lowest, weights=mass)
    return OnGrid(PrivacyLossDistribution(pld_pmf.DensePLDPmf(interval, lowest, masses, 0.0, False)), shift)


def gaussian_cells(edges: Array, mean: float, sigma: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return lower and upper bounds on the mass of N(mean, sigma²) in the cells of the real line between ``edges``.

    A tail at z standard deviations is off by a few units in the last place and by z times those of z, the difference of two
    by those of the larger; that is what is given away.

    Args:
        edges: Ends of the cells, ascending, shape (cells − 1,); the first and last cell have no end.
        mean: Of the Gaussian.
        sigma: Its standard deviation.
    """
    ends = np.concatenate([[-np.inf], (edges - mean) / sigma, [np.inf]])
    right = ends[:-1] > 0
    nearer = np.where(right, ndtr(-ends[:-1]), ndtr(ends[1:]))
    farther = np.where(right, ndtr(-ends[1:]), ndtr(ends[:-1]))
    z = np.abs(np.where(right, ends[:-1], ends[1:]))
    mass, error = nearer - farther, 2.0**-50 * (4 + 2 * np.where(np.isfinite(z), z, 0.0) ** 2) * nearer
    return np.maximum(mass - error, 0.0), mass + error


@dataclass(frozen=True)
class GridCurve:
    """The curve of T equal uses whose loss is bounded on a grid: what the accountants of batches share.

    ``delta_at`` adds what the arithmetic may have lost where the curve is an upper bound, and takes it away where it is a
    lower bound. So an upper bound has no finite ε for δ below 1e-15·(T + 10), and a lower bound says little there.
    """

    soundness: ClassVar[Soundness]

    @property
    def uses(self) -> int:
        """How often the loss is composed with itself."""
        raise NotImplementedError

    def losses(self) -> list[OnGrid]:
        """Return the loss of one use for each of the pairs of data that are looked at."""
        raise NotImplementedError

    @cached_property
    def _composed(self) -> list[OnGrid]:
        return [OnGrid(loss.self_compose(self.uses), shift * self.uses) for loss, shift in self.losses()]

    @property
    def _error(self) -> float:
        error = CONVOLUTION_ERROR * (self.uses + 10)
        return error if self.soundness is Soundness.UPPER else -error

    @property
    def _factor(self) -> float:
        return 1 + math.copysign(GRID_ERROR, self._error)

    def _on_grid(self, epsilon: float) -> float:
        """δ(ε) of the composed losses, the largest over the pairs."""
        return max(float(loss.get_delta_for_epsilon(epsilon + shift)) for loss, shift in self._composed)

    def delta_at(self, epsilon: float) -> float:
        """Return δ(ε), the largest over the pairs."""
        check_epsilon(type(self).__name__, epsilon)
        return min(1.0, max(0.0, self._on_grid(epsilon) * self._factor + self._error))

    def epsilon_at(self, delta: float) -> float:
        """Return ε(δ), the largest over the pairs.

        Note:
            By search: dp-accounting's own inverse is infinite where ε is above 700 or so, since e^−ε underflows.
        """
        check_delta(type(self).__name__, delta)
        target = (delta - self._error) / self._factor
        return math.inf if target <= 0 or self._on_grid(math.inf) > target else least(self._on_grid, target)
