"""The law nearest to a forecast among all that a claim allows: the reverse information projection.

A forecast gives cells c, sorted by their log-odds, the probabilities P(c) and Q(c) under the two coins. Of all laws
(P₀, Q₀) that the claim allows we want the one that maximises Σ P ln P₀ + Q ln Q₀. With a_k and b_k the probabilities of
the cells from the k-th on, a law whose likelihood ratio increases along the cells satisfies the claim exactly if b_k <=
T(a_k) for all k (`auditdp/dominating.py`), since its most telling events are such tails. So the problem is

    maximise  Σ_c P(c) ln(a_c - a_{c+1}) + Q(c) ln(b_c - b_{c+1})   over  u b_k <= v a_k + w  for all k and all lines of T,

which is concave, with a Hessian of bandwidth two: Newton's method on its logarithmic barrier takes some twenty banded
solves (Boyd & Vandenberghe 2004, Section 11.3). Several problems of one size are solved at once. Only power depends on the
result: whatever comes out of here, the bet that is made of it pays its price (`regions.py`).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpbsv

from auditdp.betting.regions import Region
from auditdp.dominating import Floats

NEAR = 6
"""Lines of T around the nearest one that the barrier of a cut takes into account."""
FIRST_BARRIER = 1e-2
SHRINK = 0.03
TOLERANCE = 1e-8
"""Of the whole barrier. With 1e-6, 15 of 150 learned laws beyond a claim gave bets that cost more than they won; now 1."""
RAREST = 1e-6
LEAST = 1e-9
"""Probabilities of cells below this are taken for it: smaller ones are lost in the rounding of the tails."""
MOST_STEPS = 60


def excess(zeros: Floats, ones: Floats, lines: Floats) -> float:
    """Return the largest u b - v a - w over all events, for the laws of cells that are sorted by their log-odds."""
    a, b = (np.cumsum(law[::-1])[:-1] for law in (zeros, ones))
    return float(np.max(np.outer(b, lines[:, 0]) - np.outer(a, lines[:, 1]) - lines[:, 2], initial=-np.inf))


def nearest_regions(zeros: Floats, ones: Floats, lines: Floats) -> list[Region]:
    """Return for each of several forecasts the region of the factors (P/P₀, Q/Q₀), but for cells that are too rare.

    The factors of a cell whose probability is of the order of the barrier are not near their optimum, and would set the
    price.

    Args:
        zeros: P, shape (problems, cells), positive.
        ones: Q, of the same shape.
        lines: The lines of T of each problem's claim, sorted by slope, shape (problems, lines, 3).
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        p, q = _nearest(zeros, ones, lines)
        factors = np.stack([zeros / p, ones / q], axis=2)
    # Where rounding has spoilt a problem, nothing is bet.
    factors[~(np.isfinite(factors) & (factors > 0)).all(axis=(1, 2))] = 1.0
    kept = zeros + ones > RAREST
    return [Region(each[k]) for each, k in zip(factors, kept, strict=True)]


def _nearest(zeros: Floats, ones: Floats, lines: Floats) -> tuple[Floats, Floats]:
    """Return P₀ and Q₀, shape (problems, cells) each."""
    problems, cells = zeros.shape
    size = 2 * (cells - 1)
    if not size:
        return zeros, ones
    zeros, ones = np.maximum(zeros, LEAST), np.maximum(ones, LEAST)
    zeros, ones = zeros / zeros.sum(axis=1, keepdims=True), ones / ones.sum(axis=1, keepdims=True)
    u, v, w = (lines[:, None, :, j] for j in range(3))
    # Knowing nothing of the coin is strictly inside all bounds.
    a = np.cumsum(((zeros + ones) / 2)[:, ::-1], axis=1)[:, -2::-1].copy()
    b = a.copy()
    barrier = np.full(problems, FIRST_BARRIER / cells)
    live = np.ones(problems, dtype=bool)
    near = min(NEAR, lines.shape[1])
    hessian, gradient, step = np.zeros((problems, 3, size)), np.zeros((problems, size)), np.zeros((problems, size))
    for _ in range(MOST_STEPS):
        if not live.any():
            break
        cell_a, cell_b = _steps(a, 1.0), _steps(b, 1.0)
        slack = w + v * a[..., None] - u * b[..., None]
        first = np.clip(slack.argmin(axis=2) - near // 2, 0, lines.shape[1] - near)[..., None] + np.arange(near)
        inverse = 1 / np.take_along_axis(slack, first, axis=2)
        push_a = inverse * np.take_along_axis(np.broadcast_to(v, slack.shape), first, axis=2)
        push_b = inverse * np.take_along_axis(np.broadcast_to(u, slack.shape), first, axis=2)
        force = barrier[:, None]
        slope_a, slope_b = zeros / cell_a, ones / cell_b
        bend_a, bend_b = slope_a / cell_a, slope_b / cell_b
        gradient[:, 0::2] = slope_a[:, 1:] - slope_a[:, :-1] + force * push_a.sum(axis=2)
        gradient[:, 1::2] = slope_b[:, 1:] - slope_b[:, :-1] - force * push_b.sum(axis=2)
        hessian[:, 2, 0::2] = bend_a[:, 1:] + bend_a[:, :-1] + force * np.square(push_a).sum(axis=2)
        hessian[:, 2, 1::2] = bend_b[:, 1:] + bend_b[:, :-1] + force * np.square(push_b).sum(axis=2)
        hessian[:, 1, 1::2] = -force * (push_a * push_b).sum(axis=2)
        hessian[:, 0, 2::2], hessian[:, 0, 3::2] = -bend_a[:, 1:-1], -bend_b[:, 1:-1]
        for k in np.flatnonzero(live):
            _, solved, failed = dpbsv(hessian[k], gradient[k])
            step[k] = 0.0 if failed or not np.isfinite(solved).all() else solved
        step_a, step_b = step[:, 0::2], step[:, 1::2]
        length = np.minimum(1.0, 0.95 * _room(slack, v * step_a[..., None] - u * step_b[..., None]))
        length = np.minimum(length, 0.95 * _room(cell_a, _steps(step_a, 0.0)))
        length = np.where(live, np.minimum(length, 0.95 * _room(cell_b, _steps(step_b, 0.0))), 0.0)[:, None]
        a, b = a + length * step_a, b + length * step_b
        arrived = ((gradient * step).sum(axis=1) < 0.1 * barrier * size + 1e-13) | (length[:, 0] > 0.9)
        live &= ~(arrived & (barrier * size < TOLERANCE)) & np.isfinite(length[:, 0])
        barrier = np.where(arrived, barrier * SHRINK, barrier)
    return _steps(a, 1.0), _steps(b, 1.0)


def _steps(tails: Floats, total: float) -> Floats:
    """Return the probabilities of the cells from those of the tails, shape (problems, cells)."""
    ends = np.full((len(tails), 1), total), np.zeros((len(tails), 1))
    return np.asarray(-np.diff(np.concatenate([ends[0], tails, ends[1]], axis=1)))


def _room(values: Floats, changes: Floats) -> Floats:
    """Return how far each problem may go before one of its values reaches 0, shape (problems,)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(changes < 0, values / -changes, np.inf)
    return np.asarray(room.reshape(len(values), -1).min(axis=1))
