"""Gaussian noise that releases share in part, as that of trees and of matrix mechanisms: what one loses given those before.

The noise of releases is A z with z the draws. Given earlier ones, a release is Gaussian with what is left of its row of A
once it is projected onto theirs: by the chain rule the losses of all of them add up as those of independent noise, to that
of the moves A⁻¹ Δ where A is a square matrix. Noise of which nothing is left hides no move.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from auditdp.tracing.draws import NOISY, Release
from auditdp.tracing.families import same
from auditdp.tracing.plain import ndim

if TYPE_CHECKING:
    from auditdp.tracing.losses import Moved

NOTHING_LEFT = 1e-9
"""What is left of a row, relative to it, is none below this."""


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


def _row(release: Release) -> Row | None:
    """Return the draws of a release, whose entries are those of the same place each; None where they are not."""
    row: dict[int, tuple[float, Any]] = {}
    if (
        release.kind != NOISY
        or release.law.family != "Gaussian"
        or release.groups is not None
        or release.location is None
    ):
        return None
    for term in release.terms:
        scale = term.factor * term.draw.law.scale
        if ndim(scale) or term.draw.limits or hasattr(term.draw, "parts") or id(term.draw.used) in row:
            return None
        row[id(term.draw.used)] = (float(scale), term.index)
    return row or None


def _coefficients(row: Row) -> list[float]:
    return [scale for scale, _ in row.values()]


def _move(first: Release, second: Release) -> Any:
    return np.asarray(second.centre, float) - np.asarray(first.centre, float)
