"""The law nearest to a forecast among all that a claim allows: a reverse projection.

A forecast gives cells c, sorted by their log-odds, the probabilities P(c) and Q(c)
under the two coins. Of all laws (P₀, Q₀) that the claim allows, the reverse information
projection is the one that maximises Σ P ln P₀ + Q ln Q₀. With a_k and b_k the
probabilities of the cells from the k-th on, a law whose likelihood ratio increases
along the cells satisfies the claim exactly if b_k <= T(a_k) for all k, since the events
with the largest loss are such tails. T is the largest probability that the claim
allows, a minimum of lines u b = v a + w (`auditdp/claims/dominating.py`). So the
problem is

    maximise  Σ_c P(c) ln(a_c - a_{c+1}) + Q(c) ln(b_c - b_{c+1})
    over      u b_k <= v a_k + w  for all k and all lines of T,

which is concave, with a Hessian of bandwidth two: a primal-dual interior-point method
takes some fourteen banded solves (Boyd & Vandenberghe 2004, Section 11.7). Several
problems of one size are solved at once. Only power depends on the result: for any
result of the solver, the bet pays its price (ln S in `regions.py`) and is valid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from auditdp.betting.limits import LIMITS, NEGLIGIBLE
from auditdp.betting.wealth.regions import Region
from auditdp.claims.dominating import DominatingPair
from auditdp.numerics.arrays import Floats


@dataclass(frozen=True)
class Solver:
    """Parameters of the interior-point method and of the choice among its regions.

    The *force* is the parameter of the barrier that keeps a solution off its bounds:
    the product of each slack with its dual that a step aims at.

    Attributes:
        first_force: The force of the first step, times the number of cells.
        shrinkage: The next force after a full step, as a fraction of the mean product
            of slack and dual.
        cut_shrinkage: The same fraction after a step that was shortened.
        step_fraction: Largest part of the way to the nearest bound that a step goes.
        full_step: Length from which on a step counts as full; 1 is the longest.
        tolerance: Largest duality gap of a solution. With 1e-6, the price of a bet
            exceeded its gain for 15 of 150 learned laws that violate a claim; with
            1e-8, for one.
        rarest: Thresholds that are tried one after the other: cells with a smaller
            P + Q are left out, so that they do not raise the price. With the first
            threshold alone, bets against (ε, 1e-5) gained nothing in three cases of
            four, although the law was known and had twice the loss.
        dear: Largest price, as a fraction of the gain, with which no further threshold
            is tried.
    """

    first_force: float = 1e-3
    shrinkage: float = 0.03
    cut_shrinkage: float = 0.5
    step_fraction: float = 0.98
    full_step: float = 0.9
    tolerance: float = 1e-8
    rarest: tuple[float, ...] = (1e-6, 1e-5, 1e-4, 1e-3)
    dear: float = 0.02


SOLVER = Solver()


def excess(zeros: Floats, ones: Floats, lines: Floats) -> float:
    """Return the amount by which a law exceeds a claim, positive if it does.

    A law satisfies the claim if u b <= v a + w for all lines of the claim and all
    events "log-odds above a threshold", with probabilities a and b under coin 0 and
    coin 1. The result is the largest u b - v a - w, and -inf for a single cell.

    Args:
        zeros: Probabilities of the cells under coin 0, by ascending log-odds of coin 1.
        ones: Probabilities of the cells under coin 1, in the same order.
        lines: The lines (u, v, w) of a claim, shape (lines, 3).
    """
    a, b = (np.cumsum(law[::-1])[:-1] for law in (zeros, ones))
    u, v, w = lines.T
    return float(np.max(np.outer(b, u) - np.outer(a, v) - w, initial=-np.inf))


def nearest_regions(zeros: Floats, ones: Floats, lines: Floats) -> list[Region]:
    """Return for each forecast the region of the factors (P/P₀, Q/Q₀) of its cells.

    Rare cells are left out. The solver does not reach the optimal factors of a cell
    whose probability is as small as the last force of the solver, and such factors
    would raise the price. The price decides the threshold (``Solver.rarest``). If
    rounding spoils a problem, its region is the one without a bet.

    Args:
        zeros: P, positive, by ascending log-odds of coin 1, shape (problems, cells).
        ones: Q, of the same shape.
        lines: The lines (u, v, w) of T of each problem's claim, by increasing slope
            v/u, shape (problems, lines, 3).
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        p, q = nearest_laws(zeros, ones, lines)
        factors = np.stack([zeros / p, ones / q], axis=2)
    # If rounding has spoilt a problem, nothing is bet.
    factors[~(np.isfinite(factors) & (factors > 0)).all(axis=(1, 2))] = 1.0
    return [
        _affordable(*problem)
        for problem in zip(factors, zeros, ones, lines, strict=True)
    ]


def _affordable(factors: Floats, zeros: Floats, ones: Floats, bounds: Floats) -> Region:
    """Return the region without rare cells that has the largest gain minus price.

    The thresholds of rare cells are tried in order, until the price is small.

    Args:
        factors: P/P₀ and Q/Q₀ of each cell, shape (cells, 2).
        zeros: P, shape (cells,).
        ones: Q, shape (cells,).
        bounds: The lines of the claim, shape (lines, 3).
    """
    share, rest, height = bounds[bounds[:, 1] >= bounds[:, 0]].T
    # An ε beyond the range of doubles would have the share 0.
    share = np.maximum(share, np.finfo(float).tiny)
    epsilon, delta = np.log(rest / share), np.minimum(height / share, 1.0)
    claim = DominatingPair.of(np.stack([epsilon, delta], axis=1))
    odds = np.log(ones) - np.log(zeros)
    best, largest = None, -np.inf
    for rarest in SOLVER.rarest:
        kept = factors[zeros + ones > rarest]
        region = Region(kept if len(kept) else np.ones((1, 2)))
        on_zeros, on_ones = region.choose(odds)
        gain, price = float(zeros @ on_zeros + ones @ on_ones) / 2, region.price(claim)
        if best is None or gain - price > largest:
            best, largest = region, gain - price
        if price <= SOLVER.dear * gain:
            break
    assert best is not None
    return best


def nearest_laws(zeros: Floats, ones: Floats, lines: Floats) -> tuple[Floats, Floats]:
    """Return P₀ and Q₀, shape (problems, cells) each.

    The arguments are those of ``nearest_regions``.

    Let t = (a, b) be the tails, n = (v, -u) the normals of the lines, s = w + n t > 0
    the slacks and λ > 0 their duals. A step solves two equations, linearised at (t, λ):
    the gradient of the objective plus Σ λ n is 0, and each λ s equals the force.
    """
    # This import is slow, so it is made when it is needed.
    from scipy.linalg.lapack import dpbsv

    problems, cells = zeros.shape
    size = 2 * (cells - 1)
    if not size:
        return zeros, ones
    # Smaller probabilities would be lost in the rounding of the tails.
    laws = np.maximum(np.stack([zeros, ones], axis=2), NEGLIGIBLE)
    laws /= laws.sum(axis=1, keepdims=True)
    normals = lines[:, :, 1::-1] * (1, -1)
    products = np.concatenate(
        [np.square(normals), normals.prod(axis=2, keepdims=True)], axis=2
    )
    across = normals.transpose(0, 2, 1)
    # A law that is independent of the coin is strictly inside all bounds.
    middle = np.cumsum(laws.mean(axis=2)[:, ::-1], axis=1)[:, -2::-1, None]
    tails = np.repeat(middle, 2, axis=2)
    slack = lines[:, None, :, 2] + tails @ across
    force = np.full((problems, 1, 1), SOLVER.first_force / cells)
    dual = force / slack
    live = np.ones(problems, dtype=bool)
    hessian, step = np.zeros((problems, 3, size)), np.zeros_like(tails)
    for _ in range(LIMITS.solver_steps):
        law = _law(tails, 1.0)
        slope = laws / law
        bend = slope / law
        inverse = 1 / slack
        gradient = np.diff(slope, axis=1) + force * (inverse @ normals)
        pushed = (dual * inverse) @ products
        # The bands of the Hessian, the diagonal last, as LAPACK stores them.
        diagonal = bend[:, 1:] + bend[:, :-1] + pushed[:, :, :2]
        hessian[:, 2] = diagonal.reshape(problems, size)
        hessian[:, 1, 1::2] = pushed[:, :, 2]
        hessian[:, 0, 2:] = -bend[:, 1:-1].reshape(problems, size - 2)
        for k in np.flatnonzero(live):
            _, solved, failed = dpbsv(hessian[k], gradient[k].ravel())
            is_solved = not failed and np.isfinite(solved).all()
            step[k] = solved.reshape(-1, 2) if is_solved else 0.0
        # All changes are relative ones: a change of -1 would reach a bound.
        slack_change = (step @ across) * inverse
        dual_change = force * inverse / dual - 1 - slack_change
        law_change = _law(step, 0.0) / law
        # No step may reach a bound: laws and slacks stay positive.
        lowest = np.minimum(law_change.min(axis=(1, 2)), slack_change.min(axis=(1, 2)))
        length = _length(lowest, live)
        dual_length = _length(dual_change.min(axis=(1, 2)), live)
        tails = tails + length[:, None, None] * step
        slack = slack * (1 + length[:, None, None] * slack_change)
        dual = dual * (1 + dual_length[:, None, None] * dual_change)
        gap = (slack * dual).sum(axis=(1, 2))
        # The gap counts as that of a solution only after a full step.
        full = np.minimum(length, dual_length) > SOLVER.full_step
        live &= ~(full & (gap < SOLVER.tolerance)) & np.isfinite(gap)
        if not live.any():
            break
        shrinkage = np.where(full, SOLVER.shrinkage, SOLVER.cut_shrinkage)
        aim = shrinkage * gap / slack[0].size
        force = np.where(live, aim, force[:, 0, 0])[:, None, None]
    law = _law(tails, 1.0)
    return law[:, :, 0], law[:, :, 1]


def _length(change: Floats, live: Any) -> Floats:
    """Return the length of a step, at most 1, that keeps all positive numbers above 0.

    Args:
        change: The smallest relative change of these numbers in a step of length 1, -1
            for a number that would become 0, shape (problems,).
        live: Whether each problem is still being solved; if not, the length is 0.
    """
    fraction = SOLVER.step_fraction
    return np.where(live, fraction / np.maximum(-change, fraction), 0.0)


def _law(tails: Floats, total: float) -> Floats:
    """Return the laws of the cells, shape (problems, cells, 2), from the tails.

    ``total`` is the tail from the first cell on: 1 for laws, 0 for changes of laws.
    """
    first, last = np.full((len(tails), 1, 2), total), np.zeros((len(tails), 1, 2))
    return np.asarray(-np.diff(np.concatenate([first, tails, last], axis=1), axis=1))
