"""Gaussian noise that releases share in part, as that of trees and of matrix mechanisms: what one loses given those before.

The noise of releases is A z with z the draws. Given earlier ones, a release is Gaussian with what is left of its row of A
once it is projected onto theirs: by the chain rule the losses of all of them add up as those of independent noise, to that
of the moves A⁻¹ Δ where A is a square matrix. Noise of which nothing is left hides no move.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from auditdp.tracing.coordinates import coordinates, together
from auditdp.tracing.draws import Release, WatchedDraw
from auditdp.tracing.families import same
from auditdp.tracing.plain import ndim

if TYPE_CHECKING:
    from auditdp.tracing.losses import Moved

NOTHING_LEFT = 1e-9
"""What is left of a row, relative to it, is none below this."""
MOST_SHARED = 1_024
"""Entries of releases that share draws in whatever way, at most: they are looked at as one matrix."""
NO_NOISE = 1e-5
"""A part of a move, relative to it, that rounding in single precision may leave without noise."""


Row = Mapping[int, tuple[float, Any]]
"""By a draw, its coefficient and the places of its entries."""


def left_of(first: Release, second: Release, before: Iterable[Moved]) -> tuple[float, Any] | None:
    """Return what is left of the noise of a release that shares draws with earlier ones; None where that is not known.

    Returns:
        The scale of what is left, and the move of the value less what the moves of the earlier ones tell of it.
    """
    row, again = _row(first), _row(second)
    if row is None or again is None or _coefficients(row) != _coefficients(again):
        return None
    rows = {pair: _row(pair.first) for pair in before}
    if any(earlier is None and pair.first.number in first.earlier for pair, earlier in rows.items()):
        return None
    found: dict[Moved, Row] = {}
    places = {name: place for name, (_, place) in row.items()}
    while fresh := {
        pair: each for pair, each in rows.items() if each and pair not in found and places.keys() & each.keys()
    }:
        for pair, earlier in fresh.items():  # and what shares draws with these
            other = _row(pair.second)
            if other is None or _coefficients(earlier) != _coefficients(other) or pair.first.shape != first.shape:
                return None
            if not all(same(places.setdefault(name, place), place) for name, (_, place) in earlier.items()):
                return None
            found[pair] = earlier
    names = sorted(places)
    mine = np.array([row.get(name, (0.0,))[0] for name in names])
    theirs = np.array([[other.get(name, (0.0,))[0] for name in names] for other in found.values()])
    share = np.linalg.lstsq(theirs.T, mine, rcond=None)[0]
    scale = float(np.linalg.norm(mine - share @ theirs))
    moved = _move(first, second)
    for part, pair in zip(share, found, strict=True):
        moved = moved - part * _move(pair.first, pair.second)
    return (scale if scale > NOTHING_LEFT * np.linalg.norm(mine) else 0.0), moved


def added(first: Release, second: Release, before: Iterable[Moved]) -> float | None:
    """Return what a release adds to the square of μ of earlier ones; infinite where a move has no noise, None if not known.

    The noise of all entries of all releases together is A z. With a move Δ they are as hard to tell apart as N(0, 1) from
    N(μ, 1), μ the norm of the shortest solution of A x = Δ: what z moves by where it hides the move.
    """
    rest = [(pair.first, pair.second) for pair in before if _is_gaussian(pair.first)]
    found: list[tuple[Release, Release]] = []
    draws = _draws(first)
    while fresh := [both for both in rest if both not in found and draws & _draws(both[0])]:
        found += fresh
        draws |= {draw for one, _ in fresh for draw in _draws(one)}
    sides = [[each[k] for each in (*found, (first, second))] for k in (0, 1)]
    sizes, again = ([math.prod(release.shape) for release in side] for side in sides)
    if sizes != again or sum(sizes) > MOST_SHARED or not set(first.earlier) <= {one.number for one, _ in found}:
        return None
    starts = np.cumsum([0, *sizes]).tolist()
    one, other = (together([coordinates(r.terms, r.shape) for r in side], starts[:-1]) for side in sides)
    columns = one.columns
    if not (same(columns, other.columns) and same(one.rows, other.rows) and same(one.numbers, other.numbers)):
        return None
    matrix = np.zeros((starts[-1], columns.max(initial=-1) + 1))
    np.add.at(matrix, (one.rows, columns), one.numbers)
    moved = np.concatenate([np.broadcast_to(_move(*both), both[0].shape).ravel() for both in zip(*sides, strict=True)])
    earlier, everything = (_squared_mu(matrix[:end], moved[:end]) for end in (starts[-2], starts[-1]))
    return everything if math.isinf(everything) else max(everything - earlier, 0.0)


def _is_gaussian(release: Release) -> bool:
    return release.law.family == "Gaussian" and bool(release.terms)


def _draws(release: Release) -> set[int]:
    return {id(draw.used) for draw in coordinates(release.terms, release.shape).draws}


def _squared_mu(matrix: Any, moved: Any) -> float:
    if not np.any(moved) or not np.all(np.isfinite(moved)):
        return math.inf if np.any(moved) else 0.0
    shortest = np.linalg.lstsq(matrix, moved, rcond=None)[0]
    left = np.linalg.norm(matrix @ shortest - moved)
    return math.inf if left > NO_NOISE * np.linalg.norm(moved) else float(shortest @ shortest)


def _row(release: Release) -> Row | None:
    """Return the draws of a release, whose entries are those of the same place each; None where they are not."""
    row: dict[int, tuple[float, Any]] = {}
    if not _is_gaussian(release) or release.groups is not None:
        return None
    for term in release.terms:
        scale = term.factor * term.draw.law.scale
        if ndim(scale) or term.draw.limits or type(term.draw) is not WatchedDraw or id(term.draw.used) in row:
            return None
        row[id(term.draw.used)] = (float(scale), term.index)
    return row or None


def _coefficients(row: Row) -> list[float]:
    return [scale for scale, _ in row.values()]


def _move(first: Release, second: Release) -> Any:
    return np.asarray(second.centre, float) - np.asarray(first.centre, float)
