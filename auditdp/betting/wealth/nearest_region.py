"""The law nearest to a forecast among all that a claim allows: the reverse information projection.

A forecast gives cells c, sorted by their log-odds, the probabilities P(c) and Q(c) under the two coins. Of all laws
(P₀, Q₀) that the claim allows we want the one that maximises Σ P ln P₀ + Q ln Q₀. With a_k and b_k the probabilities of
the cells from the k-th on, a law whose likelihood ratio increases along the cells satisfies the claim exactly if b_k <=
T(a_k) for all k (`auditdp/claims/dominating.py`), since its most telling events are such tails. So the problem is

    maximise  Σ_c P(c) ln(a_c - a_{c+1}) + Q(c) ln(b_c - b_{c+1})   over  u b_k <= v a_k + w  for all k and all lines of T,

which is concave, with a Hessian of bandwidth two: a primal-dual interior-point method takes some fourteen banded solves
(Boyd & Vandenberghe 2004, Section 11.7). Several problems of one size are solved at once. Only power depends on the result:
whatever comes out of here, the bet that is made of it pays its price (`regions.py`).
"""

from __future__ import annotations

import numpy as np

from auditdp.betting.wealth.regions import Region
from auditdp.claims.dominating import DominatingPair
from auditdp.numerics.arrays import Floats

FIRST_FORCE = 1e-3
"""Of the bounds to begin with."""
SHRINK = 0.03
"""Of the force in a step that was not cut."""
HELD = 0.5
"""What the force of the bounds becomes after a step that had to be cut, as a fraction of the gap; after others, SHRINK."""
KEPT = 0.98
"""How much of the way to the nearest bound a step may go."""
FULL = 0.9
"""Length from which on a step was not cut."""
TOLERANCE = 1e-8
"""Of the duality gap. With 1e-6, 15 of 150 learned laws beyond a claim gave bets that cost more than they won; now 1."""
RAREST, DEAR = (1e-6, 1e-5, 1e-4, 1e-3), 0.02
"""Cells below the first of these probabilities set no price; below the next, where the price is such a part of what is won.
With the first alone, a known law of twice the loss of a printed (ε, 1e-5) won nothing in three cases of four."""
LEAST = 1e-9
"""Probabilities of cells below this are taken for it: smaller ones are lost in the rounding of the tails."""
MOST_STEPS = 60
"""Some fourteen are usual."""


def excess(zeros: Floats, ones: Floats, lines: Floats) -> float:
    """Return the largest u b - v a - w over all events, for the laws of cells that are sorted by their log-odds."""
    a, b = (np.cumsum(law[::-1])[:-1] for law in (zeros, ones))
    return float(
        np.max(
            np.outer(b, lines[:, 0]) - np.outer(a, lines[:, 1]) - lines[:, 2],
            initial=-np.inf,
        )
    )


def nearest_regions(zeros: Floats, ones: Floats, lines: Floats) -> list[Region]:
    """Return for each of several forecasts the region of the factors (P/P₀, Q/Q₀), but for cells that are too rare.

    The factors of a cell whose probability is of the order of the barrier are not near their optimum, and would set the
    price: how rare such cells are, the price tells.

    Args:
        zeros: P, shape (problems, cells), positive.
        ones: Q, of the same shape.
        lines: The lines of T of each problem's claim, sorted by slope, shape (problems, lines, 3).
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        p, q = nearest_laws(zeros, ones, lines)
        factors = np.stack([zeros / p, ones / q], axis=2)
    # Where rounding has spoilt a problem, nothing is bet.
    factors[~(np.isfinite(factors) & (factors > 0)).all(axis=(1, 2))] = 1.0
    return [
        _affordable(*problem)
        for problem in zip(factors, zeros, ones, lines, strict=True)
    ]


def _affordable(factors: Floats, zeros: Floats, ones: Floats, bounds: Floats) -> Region:
    """Return the region of the factors of all cells but the rarest, of which so many are left out that its price is low."""
    share, rest, height = bounds[bounds[:, 1] >= bounds[:, 0]].T
    share = np.maximum(share, np.finfo(float).tiny)  # of an ε beyond those of doubles
    claim = DominatingPair.of(
        np.stack([np.log(rest / share), np.minimum(height / share, 1.0)], axis=1)
    )
    odds, made = np.log(ones) - np.log(zeros), list[tuple[float, Region]]()
    for rarest in RAREST:
        region = (
            Region(factors[kept])
            if (kept := zeros + ones > rarest).any()
            else Region(np.ones((1, 2)))
        )
        on_zeros, on_ones = region.choose(odds)
        won, price = float(zeros @ on_zeros + ones @ on_ones) / 2, region.price(claim)
        made.append((won - price, region))
        if price <= DEAR * won:
            break
    return max(made, key=lambda each: each[0])[1]


def nearest_laws(zeros: Floats, ones: Floats, lines: Floats) -> tuple[Floats, Floats]:
    """Return P₀ and Q₀, shape (problems, cells) each; arguments as of ``nearest_regions``.

    With t = (a, b) the tails, n = (v, -u) the normals of the lines, s = w + n t > 0 the slacks and λ > 0 their duals, a step
    goes towards the gradient of the objective + Σ λ n = 0 and λ s = force, linearised at (t, λ).
    """
    from scipy.linalg.lapack import dpbsv  # slow to load: only where it is needed

    problems, cells = zeros.shape
    size = 2 * (cells - 1)
    if not size:
        return zeros, ones
    laws = np.maximum(np.stack([zeros, ones], axis=2), LEAST)
    laws /= laws.sum(axis=1, keepdims=True)
    normals = lines[:, :, 1::-1] * (1, -1)
    products = np.concatenate(
        [np.square(normals), normals.prod(axis=2, keepdims=True)], axis=2
    )
    across = normals.transpose(0, 2, 1)
    # Knowing nothing of the coin is strictly inside all bounds.
    tails = np.repeat(
        np.cumsum(laws.mean(axis=2)[:, ::-1], axis=1)[:, -2::-1, None], 2, axis=2
    )
    slack = lines[:, None, :, 2] + tails @ across
    force = np.full((problems, 1, 1), FIRST_FORCE / cells)
    dual = force / slack
    live = np.ones(problems, dtype=bool)
    hessian, step = np.zeros((problems, 3, size)), np.zeros_like(tails)
    for _ in range(MOST_STEPS):
        law = _law(tails, 1.0)
        slope = laws / law
        bend = slope / law
        inverse = 1 / slack
        gradient = (np.diff(slope, axis=1) + force * (inverse @ normals)).reshape(
            problems, size
        )
        pushed = (dual * inverse) @ products
        hessian[:, 2] = (bend[:, 1:] + bend[:, :-1] + pushed[:, :, :2]).reshape(
            problems, size
        )
        hessian[:, 1, 1::2] = pushed[:, :, 2]
        hessian[:, 0, 2:] = -bend[:, 1:-1].reshape(problems, size - 2)
        for k in np.flatnonzero(live):
            _, solved, failed = dpbsv(hessian[k], gradient[k])
            step[k] = (
                0.0
                if failed or not np.isfinite(solved).all()
                else solved.reshape(-1, 2)
            )
        # All changes are relative ones: what comes to -1 would reach its bound.
        slack_change = (step @ across) * inverse
        dual_change = force * inverse / dual - 1 - slack_change
        lowest = np.minimum(
            (_law(step, 0.0) / law).min(axis=(1, 2)), slack_change.min(axis=(1, 2))
        )
        length, dual_length = (
            np.where(live, KEPT / np.maximum(-change, KEPT), 0.0)
            for change in (lowest, dual_change.min(axis=(1, 2)))
        )
        tails = tails + length[:, None, None] * step
        slack = slack * (1 + length[:, None, None] * slack_change)
        dual = dual * (1 + dual_length[:, None, None] * dual_change)
        gap = (slack * dual).sum(axis=(1, 2))
        full = np.minimum(length, dual_length) > FULL
        live &= ~(full & (gap < TOLERANCE)) & np.isfinite(gap)
        if not live.any():
            break
        aim = np.where(full, SHRINK, HELD) * gap / slack[0].size
        force = np.where(live, aim, force[:, 0, 0])[:, None, None]
    law = _law(tails, 1.0)
    return law[:, :, 0], law[:, :, 1]


def _law(tails: Floats, total: float) -> Floats:
    """Return the probabilities of the cells from those of the tails, shape (problems, cells, 2)."""
    first, last = np.full((len(tails), 1, 2), total), np.zeros((len(tails), 1, 2))
    return np.asarray(-np.diff(np.concatenate([first, tails, last], axis=1), axis=1))
