"""Loss of Gaussian noise whose draws several releases share.

The noise of trees and of matrix mechanisms is of this kind.

The noise of all entries of the releases is A z, where z are the standard draws. Let the
values move by Δ. The outputs are as hard to tell apart as N(0, 1) from N(μ, 1), where μ
is the norm of the shortest solution x of A x = Δ: the draws z + x hide the move.
Without a solution, a part of the move has no noise. By the chain rule a release adds
the difference of μ² with it and μ² without it, so the losses of all releases add up as
those of independent noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from auditdp.tracing.coordinates import Mixed, coordinates, together
from auditdp.tracing.draws import SHARED, Release, Term, WatchedDraw, law_of
from auditdp.tracing.noise_families import NoiseLaw, same
from auditdp.tracing.plain_values import ndim, shape_of
from auditdp.tracing.trace_limits import LIMITS, ROUNDING, SINGLE

Both = tuple[Release, Release]
"""A release on both inputs."""
Row = Mapping[int, tuple[float, Any]]
"""Coefficient and used entries of each draw of a release, by the draw's identity."""


class Added(NamedTuple):
    """Loss that a release adds to that of earlier ones with which it shares draws.

    Attributes:
        squared_mu: The increase of μ². It is infinite if a part of the move has no
            noise beside that of the earlier releases.
        distance: Norm of the part of the move that the earlier moves do not predict, in
            units of the value.
    """

    squared_mu: float
    distance: float


def added_loss(release: Both, before: Sequence[Both]) -> Added | None:
    """Return the loss that a release adds to that of earlier ones with shared draws.

    Args:
        release: A release with Gaussian noise.
        before: The releases of the pair before it.

    Returns:
        The loss. None if an earlier release with the same draws has other noise than
        Gaussian, if the releases have too many entries, and if shapes or noise differ
        between the inputs.
    """
    related = _related(release, before)
    sharing = {first.number for first, _ in before} & set(release[0].earlier)
    if not sharing <= {first.number for first, _ in related}:
        return None
    found = _by_rows([*related, release]) or _by_entries([*related, release])
    if found is None:
        return None
    matrix, moved, own = found
    if not np.all(np.isfinite(moved)):
        return Added(math.inf, math.inf)
    earlier, noise = matrix[:-own], matrix[-own:]
    # Given the earlier releases, only the part of the noise that is orthogonal to
    # theirs is left, and their moves predict a part of the move.
    weights = np.linalg.lstsq(earlier.T, noise.T, rcond=None)[0].T
    rest = noise - weights @ earlier
    shift = moved[-own:] - weights @ moved[:-own]
    size, total = (float(np.linalg.norm(each)) for each in (rest, noise))
    shortest = np.zeros((rest.shape[1], shift.shape[1]))
    if size > ROUNDING * total:
        cutoff = ROUNDING * total / size
        shortest = np.linalg.lstsq(rest, shift, rcond=cutoff)[0]
    uncovered = np.linalg.norm(rest @ shortest - shift)
    distance = float(np.linalg.norm(shift))
    if uncovered > SINGLE * np.linalg.norm(moved):
        return Added(math.inf, distance)
    return Added(float(np.sum(np.square(shortest))), distance)


def _related(release: Both, before: Sequence[Both]) -> list[Both]:
    """Return the earlier releases that share draws with a release.

    Two releases count as sharing draws if others connect them. Only releases with
    Gaussian noise are returned.
    """
    waiting = [both for both in before if _is_gaussian(both[0])]
    draws, related = _draws(release[0]), list[Both]()
    # Each round adds the releases that share draws with those found so far.
    while fresh := [both for both in waiting if draws & _draws(both[0])]:
        related += fresh
        waiting = [both for both in waiting if both not in fresh]
        draws |= {draw for first, _ in fresh for draw in _draws(first)}
    return related


def _by_rows(releases: Sequence[Both]) -> tuple[Any, Any, int] | None:
    """Return the matrix A with one row for each release, and the moves.

    It applies if all releases have the same shape, and each draw uses the same entries
    in all of them.

    Returns:
        The matrix of shape (releases, draws); the moves of shape (releases, entries);
        and 1, the number of rows of the last release. None if it does not apply.
    """
    rows = [[_row(release) for release in both] for both in releases]
    places: dict[int, Any] = {}
    # Every draw has to stand at the same entries of all releases, on both inputs.
    for (first, second), (row, other) in zip(releases, rows, strict=True):
        if row is None or other is None or first.shape != releases[-1][0].shape:
            return None
        if _coefficients(row) != _coefficients(other) or first.shape != second.shape:
            return None
        for draw, (_, place) in row.items():
            if not same(places.setdefault(draw, place), place):
                return None
    matrix = [[row.get(draw, (0.0,))[0] for draw in places] for row, _ in rows if row]
    moved = [_move(both).ravel() for both in releases]
    return np.array(matrix), np.array(moved), 1


def _by_entries(releases: Sequence[Both]) -> tuple[Any, Any, int] | None:
    """Return the matrix A with one row for each entry of each release, and the moves.

    Returns:
        The matrix; the moves of shape (rows, 1); and the number of rows of the last
        release. None if there are more than ``LIMITS.shared_entries`` entries, or if
        the shapes or the noise differ between the inputs.
    """
    sizes = [math.prod(first.shape) for first, _ in releases]
    others = [math.prod(second.shape) for _, second in releases]
    if sizes != others or sum(sizes) > LIMITS.shared_entries:
        return None
    # The rows of the matrix are the entries of all releases, one after the other.
    starts = np.cumsum([0, *sizes]).tolist()
    sides = []
    for side in zip(*releases, strict=True):
        parts = [coordinates(release.terms, release.shape) for release in side]
        sides.append(together(parts, starts[:-1]))
    one, other = sides
    columns = one.columns
    if not same(columns, other.columns) or not same(one.rows, other.rows):
        return None
    if not same(one.numbers, other.numbers):
        return None
    matrix = np.zeros((starts[-1], columns.max(initial=-1) + 1))
    np.add.at(matrix, (one.rows, columns), one.numbers)
    moved = np.concatenate([_move(both).ravel() for both in releases])
    return matrix, moved[:, None], sizes[-1]


def _is_gaussian(release: Release) -> bool:
    return release.law.family == "Gaussian" and bool(release.terms)


def _draws(release: Release) -> set[int]:
    found = set[int]()
    for term in release.terms:
        draws = term.draw.of.draws if isinstance(term.draw, Mixed) else (term.draw,)
        # Draws that are the same numbers share the record of their uses.
        found |= {id(draw.used) for draw in draws}
    return found


def _row(release: Release) -> Row | None:
    """Return the ``Row`` of a release, or None if it has no such form.

    It has such a form if its noise is Gaussian, no two entries share a draw, and each
    draw has one coefficient for all entries.
    """
    row: dict[int, tuple[float, Any]] = {}
    if not _is_gaussian(release) or release.groups is not None:
        return None
    for term in release.terms:
        scale, draw = term.factor * term.draw.law.scale, id(term.draw.used)
        is_plain = type(term.draw) is WatchedDraw and not term.draw.limits
        if ndim(scale) or not is_plain or draw in row:
            return None
        row[draw] = (float(scale), term.index)
    return row or None


def _coefficients(row: Row) -> list[float]:
    return [scale for scale, _ in row.values()]


def _move(both: Both) -> Any:
    first, second = both
    moved = np.asarray(second.centre, float) - np.asarray(first.centre, float)
    return np.broadcast_to(moved, first.shape)


def law_and_groups(
    terms: tuple[Term, ...], shape: tuple[int, ...]
) -> tuple[NoiseLaw, Any]:
    """Return the law of a linear form, and the groups of entries that share a draw.

    Returns:
        The law of each entry, and the groups: an array with a number for each entry,
        which is equal for entries with the same draw. The groups are None if no two
        entries share a draw. If entries are sums that share only some of their draws,
        each entry has a number of its own.
    """
    law = law_of(terms)
    if math.prod(shape) < 2 or _each_its_own(terms, shape):
        return law, None
    found = coordinates(terms, shape)
    columns = found.columns
    if np.unique(columns).size == columns.size:
        return law, None
    own = np.arange(math.prod(shape))
    if len(np.unique(found.rows)) == len(found.rows):
        # Each entry has one draw, which other entries may have as well.
        groups = -1 - own
        groups[found.rows] = columns
        return law, groups.reshape(shape)
    if law.family != "Gaussian" and law.known is not None:
        law = NoiseLaw(f"{law.family}{SHARED}")
    return law, own.reshape(shape)


def _each_its_own(terms: tuple[Term, ...], shape: tuple[int, ...]) -> bool:
    """Return True if the terms alone prove that no two entries share a draw."""
    if len({id(term.draw.used) for term in terms}) < len(terms):
        return False
    for term in terms:
        if type(term.draw) is not WatchedDraw or shape_of(term.index) != shape:
            return False
        if np.bincount(np.ravel(term.index)).max(initial=0) > 1:
            return False
    return True
