"""Loss of each release on a pair, and the move of its value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from auditdp.tracing.chance import NAMED, tables_of
from auditdp.tracing.coordinates import coordinates
from auditdp.tracing.draws import CHOICE, COIN, Release
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
from auditdp.tracing.shared_noise import added_loss
from auditdp.tracing.trace_limits import ROUNDING


@dataclass(frozen=True, eq=False)
class Moved:
    """One release on both inputs.

    Attributes:
        first: The release on the first input.
        second: The release on the second input.
        distance: Norm of the change of the value, in units of the value. The family of
            the noise decides between the norms L1 and L2. For events, choices and
            maxima it is the ε of the loss, or infinity if the loss has a δ. If a
            library declares the loss, it is the distance in the library's metric.
        loss: Loss of the release on this pair; None if its law is not understood.
        why: Fault of the noise itself: 'scale' if it depends on the data, 'reuse' if
            the same draw was used before or for several entries and does not hide the
            move, 'whole' if a fractional value has whole noise, 'number' if the value
            is no finite number; else empty.
        only: Phrase such as "which is largest", if the output reveals only the order of
            a group of releases; else empty. One release of the group then has the loss
            of the group, and the others have no loss.
    """

    first: Release
    second: Release
    distance: float
    loss: Loss | None
    why: str = ""
    only: str = ""

    @property
    def is_lossy(self) -> bool:
        """True if the loss is positive or not understood."""
        return self.loss is None or any(self.loss)

    @property
    def is_by_outcomes(self) -> bool:
        """True if the release is an event, a choice or a maximum."""
        return self.first.kind in NAMED

    @property
    def apart(self) -> float:
        """Distance of the laws on the two inputs, from 0 to 1.

        It is 0 if there is no loss or the loss is not understood. For events, choices
        and maxima it is δ. It also ranks releases whose loss is unbounded.
        """
        if self.loss is None or not any(self.loss):
            return 0.0
        if self.is_by_outcomes:
            return self.loss.delta
        law, other = self.first.law, self.second.law
        is_other_law = law.known is None or law.family != other.family
        if is_other_law or self.why not in ("", "scale"):
            return 1.0
        scales = np.abs(law.scale), np.abs(other.scale)
        with np.errstate(all="ignore"):
            moved = moves(self.first.centre, self.second.centre) / np.maximum(*scales)
            sizes = np.log(scales[0] / scales[1])
            norms = [np.linalg.norm(np.ravel(part)) for part in (moved, sizes)]
        return float(np.nan_to_num(1 - 1 / (1 + math.hypot(*norms)), nan=1.0))


def compared(first: Release, second: Release, before: Sequence[Moved]) -> Moved:
    """Return the move and the loss of a release on a pair.

    Args:
        first: The release on the first input.
        second: The release on the second input.
        before: The earlier releases of the pair.
    """
    # Events and choices have tables of probabilities, and no noise that is added.
    if first.kind in NAMED:
        return _by_tables(first, second)
    law, other = first.law, second.law
    # The draws of a trusted primitive are not observed, so its own statement counts.
    if law.declared is not None:
        return _by_declaration(first, second)
    if first.shape != second.shape:
        first, second = _common_part(first, second)
        law, other = first.law, second.law
    moved = moves(first.centre, second.centre)
    is_unmoved = ndim(moved) == 0 and moved == 0.0 and not first.earlier
    if is_unmoved and law.known is not None and law.is_same(other):
        return Moved(first, second, 0.0, NOTHING)
    if first.shape and shape_of(moved) != first.shape:
        # Noise of each entry was added to one value.
        shape = np.broadcast_shapes(shape_of(moved), first.shape)
        moved = np.broadcast_to(moved, shape)
    distance = _distance(moved, law)
    groups = first.groups
    # The joint law of Gaussian draws is known, whatever releases and entries share
    # them.
    if law.family == "Gaussian" and (first.earlier or groups is not None):
        earlier = [(each.first, each.second) for each in before]
        added = added_loss((first, second), earlier)
        if added is not None:
            if math.isinf(added.squared_mu):
                return Moved(first, second, added.distance, UNBOUNDED, "reuse")
            added_mu = Loss(squared_mu=added.squared_mu)
            return Moved(first, second, distance, added_mu)
        if groups is not None and np.unique(groups).size == groups.size:
            # Entries share draws in a way that no grouping of entries describes.
            return Moved(first, second, distance, None)
    # Other noise that is used again hides a move only if both values move alike.
    if first.earlier and law.known is not None:
        return _reused(first, second, moved, before)
    # Another scale on the other input shows in the tails of the noise.
    why = ""
    if law.known is not None:
        is_same_family = law.family == other.family
        is_same_shape = same(law.parameter, other.parameter)
        if not law.is_as_wide(other) or (is_same_family and not is_same_shape):
            why = "scale"
    if groups is not None and shape_of(moved) == shape_of(groups):
        # Entries of one draw have to move together. Each draw then counts once.
        _, one, group = np.unique(
            np.ravel(groups), return_index=True, return_inverse=True
        )
        moved = np.ravel(moved)
        scale = np.ravel(np.broadcast_to(law.scale, shape_of(groups)))
        units = in_scales(moved, scale)
        if not all_of(np.abs(units - units[one][group]) <= ROUNDING):
            return Moved(first, second, distance, UNBOUNDED, "reuse")
        moved, law = moved[one], NoiseLaw(law.family, scale[one], law.parameter)
        distance = _distance(moved, law)
        other = other if why else law
    # Each remaining entry has a draw of its own.
    loss = location_loss(law, other, moved)
    if loss is UNBOUNDED and not why:
        known = law.known
        if not all_of(np.isfinite(moved)):
            why = "number"
        elif known is not None and known.is_whole and not known.is_part:
            why = "whole"
    return Moved(first, second, distance, loss, why)


def _by_declaration(first: Release, second: Release) -> Moved:
    """Return the distance of the two locations, and the loss that a library declares.

    If the parameters of the law differ between the inputs, the loss is unbounded.
    """
    declared = first.law.declared
    assert declared is not None
    moved = declared.distance(first.location, second.location)
    if not same(first.law.parameter, second.law.parameter):
        return Moved(first, second, moved, UNBOUNDED, "scale")
    return Moved(first, second, moved, declared.loss(moved) if moved else NOTHING)


def _common_part(first: Release, second: Release) -> tuple[Release, Release]:
    """Return two releases of different shapes, cut to the entries that both have.

    If they have different numbers of axes, both get the location 0 instead.
    """
    if len(first.shape) != len(second.shape):
        return replace(first, location=0.0), replace(second, location=0.0)
    sizes = map(min, first.shape, second.shape)
    common = tuple(slice(0, size) for size in sizes)

    def cut(release: Release) -> Release:
        def entries(value: Any) -> Any:
            if value is None or ndim(value) == 0:
                return value
            return np.broadcast_to(value, release.shape)[common]

        law = release.law
        return replace(
            release,
            law=NoiseLaw(law.family, entries(law.scale), entries(law.parameter)),
            location=entries(release.location),
            result=release.result[common],
            groups=entries(release.groups),
        )

    return cut(first), cut(second)


def _reused(
    first: Release, second: Release, moved: Any, before: Sequence[Moved]
) -> Moved:
    """Return the move and the loss of a release whose draws an earlier one also has.

    The difference of the two noisy values has no noise. So the loss is unbounded,
    unless one shift of the draws hides both moves. Then the release adds no loss, if
    its scale is the same on both inputs.

    Args:
        first: The release on the first input.
        second: The release on the second input.
        moved: Move of its location between the inputs.
        before: The earlier releases of the pair.
    """
    distance = _distance(moved, first.law)
    for each in before:
        if each.first.number not in first.earlier:
            continue
        shift = each.distance
        if not each.is_by_outcomes:
            shift = _per_draw(moves(each.first.centre, each.second.centre), each.first)
        if not any_of(moved) and not any_of(shift):
            continue
        # The draws hide the later move if they hide the earlier one at the same places.
        is_alike = _is_close(_per_draw(moved, first), shift, first.law)
        releases = [release for release in (each.first, first) if release.terms]
        places = [
            coordinates(release.terms, release.shape).places for release in releases
        ]
        if not is_alike or (len(places) == 2 and not same(*places)):
            return Moved(first, second, distance, UNBOUNDED, "reuse")
    is_same_scale = same(first.law.scale, second.law.scale)
    return Moved(first, second, distance, NOTHING if is_same_scale else UNBOUNDED)


def _per_draw(moved: Any, release: Release) -> Any:
    """Return a move divided by the coefficient of the draw.

    If the coefficient is an array, the move is returned as it is.
    """
    return moved / release.factor if ndim(release.factor) == 0 else moved


def _is_close(moved: Any, shift: Any, law: NoiseLaw) -> bool:
    tolerance = ROUNDING * np.max(np.abs(law.scale))
    try:
        return all_of(np.abs(moved - shift) <= tolerance)
    except ValueError:
        # The shapes do not fit to each other.
        return False


def _distance(moved: Any, law: NoiseLaw) -> float:
    if ndim(moved) == 0:
        return abs(float(moved))
    norm = law.known.norm if law.known is not None else "L1"
    return float(np.linalg.norm(np.ravel(moved), 2 if norm == "L2" else 1))


def _by_tables(first: Release, second: Release) -> Moved:
    """Return the move and the loss of an event, a choice or a maximum.

    The loss is that of the worst outcome, whatever the recorded outcome is.
    """
    is_scalar = ndim(first.location) == ndim(second.location) == 0
    if first.kind == COIN and is_scalar and first.location == second.location:
        return Moved(first, second, 0.0, NOTHING)
    if first.names != second.names and first.names and second.names:
        p, q = _by_names(first, second)
    else:
        p, q = tables_of(first), tables_of(second)
    if p.shape != q.shape:
        return Moved(first, second, math.inf, UNBOUNDED)
    with np.errstate(all="ignore"):
        ratios = np.where(p == q, 0.0, np.abs(np.log(p) - np.log(q)))
    # Outcomes of one input alone are a δ, and the others bound the log ratio.
    largest = np.where((p > 0) & (q > 0), ratios, 0.0).max(axis=-1)
    alone = [np.where(b <= 0, a, 0.0).sum(axis=-1) for a, b in ((p, q), (q, p))]
    only = np.maximum(*alone)
    times = 1
    if first.kind == CHOICE:
        times = max(1, math.prod(first.shape))
    # The logarithm of 0 has no value, and a part of δ = 1 makes the whole 1.
    delta = 1.0
    if only.max() < 1:
        delta = float(-np.expm1(times * np.log1p(-only).sum()))
    epsilon = float(largest.sum()) * times
    return Moved(first, second, math.inf if delta else epsilon, Loss(epsilon, delta))


def _by_names(*releases: Release) -> list[Any]:
    """Return the table of each choice, with the same columns for all choices.

    Each table has the shape (1, names). It has a column for each name of any choice, in
    the order in which the names first occur.
    """
    names = [name for release in releases for name in release.names or ()]
    places = {name: place for place, name in enumerate(dict.fromkeys(names))}
    tables = np.zeros((len(releases), 1, len(places)))
    for table, release in zip(tables, releases, strict=True):
        columns = [places[name] for name in release.names or ()]
        np.add.at(table[0], columns, np.ravel(release.location))
    return list(tables)
