"""What each release loses on a pair, and how far its value moved in the norm of its noise.

Gaussian noise that releases share in part, as that of trees and of matrix mechanisms: what one loses given those before.

The noise of releases is A z with z the draws. Given earlier ones, a release is Gaussian with what is left of its row of A
once it is projected onto theirs: by the chain rule the losses of all of them add up as those of independent noise, to that
of the moves A⁻¹ Δ where A is a square matrix. Noise of which nothing is left hides no move.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from auditdp.tracing.coordinates import coordinates, together
from auditdp.tracing.draws import CHOICE, COIN, MAXIMUM, Release, WatchedDraw
from auditdp.tracing.noise_families import (
    NOTHING,
    UNBOUNDED,
    Loss,
    NoiseLaw,
    in_scales,
    location_loss,
    moves,
    same,
)
from auditdp.tracing.plain_values import all_of, any_of, ndim, shape_of

TOLERANCE = 1e-9
"""By how much, relative to the scale, two moves under one draw may differ by rounding."""


@dataclass(frozen=True, eq=False)
class Moved:
    """One release on both inputs.

    Attributes:
        first: The release on the one input; ``second``, on the other.
        distance: How far the value moved, in the norm of its noise and in units of the value; of events and choices the
            largest |ln p/p′|.
        loss: What it loses on this pair; None where the law is not known.
        why: What is wrong with the noise itself: 'scale' where it depends on the data, 'reuse' where the same draw was used
            before or for several entries, 'whole' where a value between whole numbers has whole noise, 'number' where the
            value is none; else empty.
        only: What the output shows of it and others, where that is their order alone; the loss of all is that of the first.
    """

    first: Release
    second: Release
    distance: float
    loss: Loss | None
    why: str = ""
    only: str = ""

    @property
    def is_lossy(self) -> bool:
        """Whether it loses anything, or its loss is not known."""
        return self.loss is None or any(self.loss)

    @property
    def apart(self) -> float:
        """How far apart both laws are, from 0 to 1, where no bound on the loss says it: 1 where one result tells."""
        if self.loss is None or not any(self.loss):
            return 0.0
        if self.first.kind in (COIN, CHOICE, MAXIMUM):
            return self.loss.delta
        law, other = self.first.law, self.second.law
        if (
            law.known is None
            or law.family != other.family
            or self.why not in ("", "scale")
        ):
            return 1.0
        scales = np.abs(law.scale), np.abs(other.scale)
        with np.errstate(all="ignore"):
            far = np.linalg.norm(
                np.ravel(
                    moves(self.first.centre, self.second.centre) / np.maximum(*scales)
                )
            )
            sizes = np.linalg.norm(np.ravel(np.log(scales[0] / scales[1])))
        return float(np.nan_to_num(1 - 1 / (1 + math.hypot(far, sizes)), nan=1.0))


def compared(first: Release, second: Release, pairs: Sequence[Moved]) -> Moved:
    """Return what a release loses on a pair.

    Args:
        first: It on one input.
        second: On the other.
        pairs: The releases before it.
    """
    if first.kind in (COIN, CHOICE, MAXIMUM):
        return _of_tables(first, second)
    if first.law.declared is not None:
        return _declared(first, second)
    if first.shape != second.shape:
        first, second = _common(first, second)
    moved = moves(first.centre, second.centre)
    law, other = first.law, second.law
    unmoved = (
        ndim(moved) == 0
        and moved == 0.0
        and not first.earlier
        and law.known is not None
    )
    if (
        unmoved
        and law.family == other.family
        and same(law.scale, other.scale)
        and same(law.parameter, other.parameter)
    ):
        return Moved(first, second, 0.0, NOTHING)
    if (
        first.shape and shape_of(moved) != first.shape
    ):  # one value that noise of each entry was added to
        moved = np.broadcast_to(
            moved, np.broadcast_shapes(shape_of(moved), first.shape)
        )
    if law.family == "Gaussian" and (first.earlier or first.groups is not None):
        given = _given(first, second, pairs)
        if given is not None or (
            first.groups is not None
            and np.unique(first.groups).size == first.groups.size
        ):
            return given or Moved(first, second, _distance(moved, law), None)
    if first.earlier and law.known is not None:
        return _reused(first, second, moved, pairs)
    other_parameter = law.family == other.family and not same(
        law.parameter, other.parameter
    )
    why = (
        "scale"
        if law.known is not None and (not law.is_as_wide(other) or other_parameter)
        else ""
    )
    if first.groups is not None and shape_of(moved) == shape_of(first.groups):
        _, one, group = np.unique(
            np.ravel(first.groups), return_index=True, return_inverse=True
        )
        moved, scale = (
            np.ravel(moved),
            np.ravel(np.broadcast_to(law.scale, shape_of(first.groups))),
        )
        units = in_scales(moved, scale)
        if not all_of(np.abs(units - units[one][group]) <= TOLERANCE):
            return Moved(first, second, _distance(moved, law), UNBOUNDED, "reuse")
        moved, law = moved[one], NoiseLaw(law.family, scale[one], law.parameter)
        other = other if why else law
    loss = location_loss(law, other, moved)
    if loss is UNBOUNDED and not why:
        finite = bool(all_of(np.isfinite(moved)))
        whole = law.known is not None and law.known.is_whole and not law.known.is_part
        why = "number" if not finite else "whole" if whole else ""
    return Moved(first, second, _distance(moved, law), loss, why)


def _declared(first: Release, second: Release) -> Moved:
    """Return the loss that a library declares, of the distance of what it was called with."""
    declared = first.law.declared
    assert declared is not None
    moved = declared.distance(first.location, second.location)
    if not same(first.law.parameter, second.law.parameter):
        return Moved(first, second, moved, UNBOUNDED, "scale")
    return Moved(first, second, moved, declared.loss(moved) if moved else NOTHING)


def _common(first: Release, second: Release) -> tuple[Release, Release]:
    """Return two releases cut to the entries that both have; the trace says that they parted."""
    if len(first.shape) != len(second.shape):
        return replace(first, location=0.0), replace(second, location=0.0)
    common = tuple(
        slice(0, min(a, b)) for a, b in zip(first.shape, second.shape, strict=True)
    )

    def cut(release: Release) -> Release:
        shape = release.shape

        def entries(value: Any) -> Any:
            return (
                value
                if value is None or ndim(value) == 0
                else np.broadcast_to(value, shape)[common]
            )

        law = NoiseLaw(
            release.law.family,
            entries(release.law.scale),
            entries(release.law.parameter),
        )
        location, groups = entries(release.location), entries(release.groups)
        return replace(
            release,
            law=law,
            location=location,
            result=release.result[common],
            groups=groups,
        )

    return cut(first), cut(second)


def _given(first: Release, second: Release, pairs: Sequence[Moved]) -> Moved | None:
    """Return the loss of a release given earlier ones that share Gaussian draws; None where that is not known."""
    if (left := left_of(first, second, pairs)) is None:
        if (squared_mu := added(first, second, pairs)) is None:
            return None
        loss, why = (
            (Loss(squared_mu=squared_mu), "")
            if math.isfinite(squared_mu)
            else (UNBOUNDED, "reuse")
        )
        return Moved(
            first,
            second,
            _distance(moves(first.centre, second.centre), first.law),
            loss,
            why,
        )
    scale, moved = left
    if not scale:
        hidden = bool(
            all_of(np.abs(moved) <= TOLERANCE * np.max(np.abs(first.law.scale)))
        )
        loss, why = (NOTHING, "") if hidden else (UNBOUNDED, "reuse")
        return Moved(first, second, _distance(moved, first.law), loss, why)
    law = NoiseLaw("Gaussian", scale)
    first, second = replace(first, law=law), replace(second, law=law)
    return Moved(first, second, _distance(moved, law), location_loss(law, law, moved))


def _reused(
    first: Release, second: Release, moved: Any, pairs: Sequence[Moved]
) -> Moved:
    """Return the loss of a release whose draws went into another one: their difference has no noise."""
    by_number = {pair.first.number: pair for pair in pairs}
    earlier = [by_number[number] for number in first.earlier if number in by_number]
    none_moved = not any_of(moved)
    for pair in earlier:
        before = pair.first
        if before.kind in (COIN, CHOICE, MAXIMUM):
            shift = pair.distance
        else:
            shift = moves(before.centre, pair.second.centre)
            shift = shift / before.factor if ndim(before.factor) == 0 else shift
        mine = moved / first.factor if ndim(first.factor) == 0 else moved
        if none_moved and not any_of(shift):
            continue
        try:
            alike = bool(
                all_of(
                    np.abs(mine - shift) <= TOLERANCE * np.max(np.abs(first.law.scale))
                )
            )
        except ValueError:  # of other shapes
            alike = False
        places = [
            coordinates(each.terms, each.shape).places
            for each in (before, first)
            if each.terms
        ]
        if not alike or (len(places) == 2 and not same(*places)):
            return Moved(first, second, _distance(moved, first.law), UNBOUNDED, "reuse")
    unmoved_scale = same(first.law.scale, second.law.scale)
    return Moved(
        first,
        second,
        _distance(moved, first.law),
        NOTHING if unmoved_scale else UNBOUNDED,
    )


def _distance(moved: Any, law: NoiseLaw) -> float:
    if ndim(moved) == 0:
        return abs(float(moved))
    norm = law.known.norm if law.known is not None else "L1"
    return float(np.linalg.norm(np.ravel(moved), 2 if norm == "L2" else 1))


def _of_tables(first: Release, second: Release) -> Moved:
    """Return the loss of an event, a choice or a maximum: the largest over its outcomes, not that of the one that came."""
    if first.kind == COIN and ndim(first.location) == 0 and ndim(second.location) == 0:
        p, q = float(first.location), float(second.location)
        if p == q:
            return Moved(first, second, 0.0, NOTHING)
    renamed = first.names != second.names and None not in (first.names, second.names)
    p, q = _by_name(first, second) if renamed else map(tables_of, (first, second))
    if p.shape != q.shape:
        return Moved(first, second, math.inf, UNBOUNDED)
    with np.errstate(all="ignore"):
        ratios = np.where(p == q, 0.0, np.log(p) - np.log(q))
        both = (p > 0) & (q > 0)
        largest = np.where(both, np.abs(ratios), 0.0).max(axis=-1)
        only = np.maximum(
            np.where(q <= 0, p, 0.0).sum(axis=-1), np.where(p <= 0, q, 0.0).sum(axis=-1)
        )
    times = max(1, int(np.prod(first.shape))) if first.kind == CHOICE else 1
    delta = (
        float(-np.expm1(times * np.log1p(-np.minimum(only, 1.0)).sum()))
        if only.max() < 1
        else 1.0
    )
    epsilon = float(largest.sum()) * times
    return Moved(first, second, math.inf if delta else epsilon, Loss(epsilon, delta))


def _by_name(*releases: Release) -> list[Any]:
    """Return the probabilities of every name that any of the tables has, shape (1, names) for each release."""
    places = {
        name: place
        for place, name in enumerate(
            dict.fromkeys(chain(*(r.names or () for r in releases)))
        )
    }
    tables = np.zeros((len(releases), 1, len(places)))
    for table, release in zip(tables, releases, strict=True):
        np.add.at(
            table[0],
            [places[name] for name in release.names or ()],
            np.ravel(release.location),
        )
    return list(tables)


def tables_of(release: Release) -> Any:
    """Return the probabilities of the outcomes, shape (events, outcomes)."""
    if release.kind == COIN:
        p = np.atleast_1d(np.asarray(release.location, float)).ravel()
        return np.stack([1 - p, p], axis=-1)
    if release.kind == CHOICE:
        return np.atleast_2d(release.location)
    scores = np.asarray(release.location, float) / release.law.scale
    weights = np.exp(scores - scores.max()) if len(scores) else scores
    return np.atleast_2d(weights / weights.sum())


def chance(release: Release) -> float:
    """Return the probability of the outcome of an event, a choice or a draw of few integers."""
    if release.kind == COIN and not release.shape:
        p = float(release.location)
        return p if release.result else 1 - p
    if release.kind in (COIN, CHOICE, MAXIMUM):
        rows = tables_of(release)
        results = np.atleast_1d(np.asarray(release.result, int)).ravel()
        count = rows.shape[-1]
        return math.prod(
            float(rows[k if len(rows) > 1 else 0][r]) if r < count else 0.0
            for k, r in enumerate(results)
        )
    if release.law.family == "permutation":
        return 1 / math.factorial(int(release.law.parameter))
    return float(release.law.parameter) ** -math.prod(release.shape)


NOTHING_LEFT = 1e-9
"""What is left of a row, relative to it, is none below this."""
MOST_SHARED = 1_024
"""Entries of releases that share draws in whatever way, at most: they are looked at as one matrix."""
NO_NOISE = 1e-5
"""A part of a move, relative to it, that rounding in single precision may leave without noise."""


Row = Mapping[int, tuple[float, Any]]
"""By a draw, its coefficient and the places of its entries."""


def left_of(
    first: Release, second: Release, before: Iterable[Moved]
) -> tuple[float, Any] | None:
    """Return what is left of the noise of a release that shares draws with earlier ones; None where that is not known.

    Returns:
        The scale of what is left, and the move of the value less what the moves of the earlier ones tell of it.
    """
    row, again = _row(first), _row(second)
    if row is None or again is None or _coefficients(row) != _coefficients(again):
        return None
    rows = {pair: _row(pair.first) for pair in before}
    if any(
        earlier is None and pair.first.number in first.earlier
        for pair, earlier in rows.items()
    ):
        return None
    found: dict[Moved, Row] = {}
    places = {name: place for name, (_, place) in row.items()}
    while fresh := {
        pair: each
        for pair, each in rows.items()
        if each and pair not in found and places.keys() & each.keys()
    }:
        for pair, earlier in fresh.items():  # and what shares draws with these
            other = _row(pair.second)
            if (
                other is None
                or _coefficients(earlier) != _coefficients(other)
                or pair.first.shape != first.shape
            ):
                return None
            if not all(
                same(places.setdefault(name, place), place)
                for name, (_, place) in earlier.items()
            ):
                return None
            found[pair] = earlier
    names = sorted(places)
    mine = np.array([row.get(name, (0.0,))[0] for name in names])
    theirs = np.array(
        [[other.get(name, (0.0,))[0] for name in names] for other in found.values()]
    )
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
    while fresh := [
        both for both in rest if both not in found and draws & _draws(both[0])
    ]:
        found += fresh
        draws |= {draw for one, _ in fresh for draw in _draws(one)}
    sides = [[each[k] for each in (*found, (first, second))] for k in (0, 1)]
    sizes, again = ([math.prod(release.shape) for release in side] for side in sides)
    if (
        sizes != again
        or sum(sizes) > MOST_SHARED
        or not set(first.earlier) <= {one.number for one, _ in found}
    ):
        return None
    starts = np.cumsum([0, *sizes]).tolist()
    one, other = (
        together([coordinates(r.terms, r.shape) for r in side], starts[:-1])
        for side in sides
    )
    columns = one.columns
    if not (
        same(columns, other.columns)
        and same(one.rows, other.rows)
        and same(one.numbers, other.numbers)
    ):
        return None
    matrix = np.zeros((starts[-1], columns.max(initial=-1) + 1))
    np.add.at(matrix, (one.rows, columns), one.numbers)
    moved = np.concatenate(
        [
            np.broadcast_to(_move(*both), both[0].shape).ravel()
            for both in zip(*sides, strict=True)
        ]
    )
    earlier, everything = (
        _squared_mu(matrix[:end], moved[:end]) for end in (starts[-2], starts[-1])
    )
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
    return (
        math.inf
        if left > NO_NOISE * np.linalg.norm(moved)
        else float(shortest @ shortest)
    )


def _row(release: Release) -> Row | None:
    """Return the draws of a release, whose entries are those of the same place each; None where they are not."""
    row: dict[int, tuple[float, Any]] = {}
    if not _is_gaussian(release) or release.groups is not None:
        return None
    for term in release.terms:
        scale = term.factor * term.draw.law.scale
        if (
            ndim(scale)
            or term.draw.limits
            or type(term.draw) is not WatchedDraw
            or id(term.draw.used) in row
        ):
            return None
        row[id(term.draw.used)] = (float(scale), term.index)
    return row or None


def _coefficients(row: Row) -> list[float]:
    return [scale for scale, _ in row.values()]


def _move(first: Release, second: Release) -> Any:
    return np.asarray(second.centre, float) - np.asarray(first.centre, float)
