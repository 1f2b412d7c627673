"""Gaussian noise that releases share in part, as that of trees and of matrix mechanisms: what one loses given those before.

The noise of releases is A z with z the draws. Given earlier ones, a release is Gaussian with what is left of its row of A
once it is projected onto theirs: by the chain rule the losses of all of them add up as those of independent noise, to that
of the moves A⁻¹ Δ where A is a square matrix. Noise of which nothing is left hides no move.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np

from auditdp.tracing.draws import NOISY, Release
from auditdp.tracing.families import same
from auditdp.tracing.plain import ndim

NOTHING_LEFT = 1e-9
"""What is left of a row, relative to it, is none below this."""


class OnBoth(Protocol):
    """A release on both inputs."""

    @property
    def first(self) -> Release:
        """It on the one input."""

    @property
    def second(self) -> Release:
        """It on the other."""


Row = Mapping[int, tuple[float, Any]]
"""By a draw, its coefficient and the places of its entries."""


def left_of(first: Release, second: Release, before: Iterable[OnBoth]) -> tuple[float, Any] | None:
    """Return what is left of the noise of a release that shares draws with earlier ones; None where that is not known.

    Returns:
        The scale of what is left, and the move of the value less what the moves of the earlier ones tell of it.
    """
    row, again = _row(first), _row(second)
    if row is None or again is None or _coefficients(row) != _coefficients(again):
        return None
    found, drawn = [], set(row)
    for pair in reversed([*before]):  # so that what shares draws with what shares draws is found, too
        earlier, other = _row(pair.first), _row(pair.second)
        if earlier is None or other is None:
            if pair.first.number in first.earlier:
                return None
        elif drawn & set(earlier):
            if (
                pair.first.shape != first.shape
                or _coefficients(earlier) != _coefficients(other)
                or not _alike(row, earlier)
            ):
                return None
            found.append((pair, earlier))
            drawn |= set(earlier)
    names = sorted(drawn)
    mine = np.array([row.get(name, (0.0,))[0] for name in names])
    theirs = np.array([[other.get(name, (0.0,))[0] for name in names] for _, other in found])
    share = np.linalg.lstsq(theirs.T, mine, rcond=None)[0]
    scale = float(np.linalg.norm(mine - share @ theirs))
    moved = _move(first, second)
    for part, (pair, _) in zip(share, found, strict=True):
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


def _alike(row: Row, other: Row) -> bool:
    """Return whether draws that both have have the same entries at the same places."""
    return all(same(row[name][1], other[name][1]) for name in row.keys() & other.keys())


def _move(first: Release, second: Release) -> Any:
    return np.asarray(second.centre, float) - np.asarray(first.centre, float)
