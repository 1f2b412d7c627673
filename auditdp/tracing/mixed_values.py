"""Noise whose entries come from several draws.

`gathered` puts entries of several arrays into one array. `linear` applies a linear
function to Gaussian noise. Both return noise of one combined draw, which has the
coordinates of its entries in the original draws (see `coordinates`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from auditdp.tracing.coordinates import Coordinates, Mixed, coordinates, together
from auditdp.tracing.draws import Term
from auditdp.tracing.linear_forms import is_numeric, number
from auditdp.tracing.noise import Noise, opened, value_of
from auditdp.tracing.noise_families import NoiseLaw
from auditdp.tracing.plain_values import all_of, any_of, shape_of, size_of
from auditdp.tracing.sites import here


@dataclass(frozen=True)
class EntryLimits:
    """Sizes up to which mixed noise is followed: time and memory grow with them."""

    gathered: int = 1_000_000
    """Largest total number of entries of arrays that are put together."""
    mixed: int = 512
    """Largest number of entries of noise to which a linear function is applied."""


LIMITS = EntryLimits()


def gathered(items: Sequence[Any], gather: Callable[[list[Any]], Any]) -> Noise | None:
    """Return the result of a function that puts entries of several arrays into one.

    Args:
        items: Arrays, numbers and noise, at least one of them noise.
        gather: The function. It takes a list of arrays with the shapes of ``items``.
            It places entries without regard to their values.

    Returns:
        The noise, or None if it is not followed.
    """
    items = [opened(item) for item in items]
    values = [value_of(item) for item in items]
    noisy = [item for item in items if type(item) is Noise]
    families = {term.draw.law.family for item in noisy for term in item.terms}
    are_sums = any(len(item.terms) > 1 for item in noisy) and families != {"Gaussian"}
    if len(families) != 1 or are_sums or not all(map(_is_plain, noisy)):
        return None
    # All entries get a number, also those of arrays without noise.
    sizes = [size_of(value) for value in values]
    if not all(map(is_numeric, values)) or sum(sizes) > LIMITS.gathered:
        return None

    # The function is called with numbered entries, which show the entries that it
    # takes.
    starts = np.cumsum([0, *sizes])[:-1].tolist()
    entries = [
        np.arange(start, start + size).reshape(shape_of(value))
        for start, size, value in zip(starts, sizes, values, strict=True)
    ]
    places = np.asarray(gather(entries))
    offsets = _flat([_centre(item) for item in items], entries)
    drawn = _flat([number(value) for value in values], entries) - offsets
    parts, after = [], []
    for item, start in zip(items, starts, strict=True):
        if type(item) is Noise:
            parts.append(coordinates(item.terms, shape_of(item.value)))
            after.append(start)
    noise = noisy[0]
    term = _mixed(noise, together(parts, after), places, drawn)
    site = noise.site or here()
    return without_zeros(
        Noise(noise.run, gather(values), (term,), offsets[places], site)
    )


def _centre(item: Any) -> Any:
    if type(item) is Noise:
        return item.centre
    return number(item)


def _flat(parts: Sequence[Any], entries: Sequence[Any]) -> Any:
    """Return the entries of all parts in one vector.

    Each part is first broadcast to the shape of its item in ``entries``.
    """
    return np.concatenate(
        [
            np.broadcast_to(part, each.shape).ravel()
            for part, each in zip(parts, entries, strict=True)
        ]
    )


def without_zeros(noise: Noise) -> Noise:
    """Remove the offset of noise if it is zero and all entries have noise.

    Returns:
        The given object.
    """
    offset = noise.offset
    if offset is not None and not any_of(offset) and all_of(noise.law.scale):
        noise.offset = noise.site = None
    return noise


def linear(noise: Noise, function: Callable[[Any], Any], value: Any = None) -> Any:
    """Return the result of a linear function of Gaussian noise.

    Args:
        noise: The noise.
        function: The function of one array of double precision. It may add a constant.
        value: The function's result for the numbers of the noise; None to compute it.

    Returns:
        Noise. If a constant or an offset was added, an ordinary array, which is
        released. None if the noise is not followed.
    """
    shape, size = shape_of(noise.value), size_of(noise.value)
    families = {term.draw.law.family for term in noise.terms}
    if not 0 < size <= LIMITS.mixed or families != {"Gaussian"} or not _is_plain(noise):
        return None
    if value is None:
        value = function(noise.value)
    constant = np.asarray(function(np.zeros(shape)))
    has_constant = any_of(constant)
    # With large arguments, the coefficients lose few digits when the constant is
    # subtracted.
    magnitude = 2.0**20 if has_constant else 1.0
    # The matrix of the function, column by column.
    units = magnitude * np.eye(size).reshape(-1, *shape)
    images = [np.ravel(function(unit) - constant) for unit in units]
    matrix = np.stack(images, axis=1) / magnitude

    # The same entry of a draw may be in several entries of the noise: each has one
    # column.
    of = coordinates(noise.terms, shape)
    _, first, columns = np.unique(of.columns, return_index=True, return_inverse=True)
    draws = np.zeros((size, len(first)))
    np.add.at(draws, (of.rows, columns), of.numbers)
    mixed = matrix @ draws
    if has_constant:
        # The rounding error of the constant must not pass for a scale that depends on
        # the data.
        largest = np.abs(mixed).max() or 1.0
        grain = 2.0**-32 * 2.0 ** np.floor(np.log2(largest))
        mixed = np.rint(mixed / grain) * grain
    rows, columns = np.nonzero(mixed)
    which, places = of.which[first][columns], of.places[first][columns]
    combined = Coordinates(of.draws, rows, which, places, mixed[rows, columns])

    offset: Any = constant
    if noise.offset is not None:
        offset = np.asarray(function(np.array(np.broadcast_to(noise.offset, shape))))
    entries = np.arange(size_of(value)).reshape(shape_of(value))
    term = _mixed(noise, combined, entries, number(value) - offset)
    if noise.offset is None and not has_constant:
        offset = None
    return noise.summed(value, (term,), offset)


def _is_plain(noise: Noise) -> bool:
    """Return True if code neither compared nor changed the draws of noise.

    Draws of a family with a shape parameter are not plain either.
    """
    return not noise.was_changed() and not any(
        term.draw.limits or term.draw.is_lent or term.draw.law.parameter is not None
        for term in noise.terms
    )


def _mixed(noise: Noise, of: Coordinates, places: Any, drawn: Any) -> Term:
    """Return a term whose draw is made of entries of several draws.

    Args:
        noise: Noise whose first draw has the family, number, method and line of the new
            draw.
        of: Coordinates of the entries of the new draw.
        places: For each entry of the result, its entry in the new draw.
        drawn: The numbers of the new draw, without location.
    """
    draw, size = noise.terms[0].draw, size_of(drawn)
    if draw.law.family == "Gaussian":
        scales = np.sqrt(np.bincount(of.rows, np.square(of.numbers), size))
    else:
        # Each entry has one draw, and the sign of its factor may matter.
        scales = np.bincount(of.rows, of.numbers, size)
    scale = scales[places]
    if scale.size and np.all(scale == scale.flat[0]):
        scale = float(scale.flat[0])
    law = NoiseLaw(draw.law.family, scale)
    combined = Mixed(draw.number, draw.method, law, drawn, draw.site, drawn=drawn)
    combined.of = of
    return Term(combined, places if np.ndim(places) else int(places))
