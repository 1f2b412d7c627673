"""Noise whose entries are made of those of several draws: put into one array, or added up by a linear function."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from auditdp.tracing.coordinates import Coordinates, Mixed, coordinates, together
from auditdp.tracing.draws import Term
from auditdp.tracing.linear_forms import is_numeric, number
from auditdp.tracing.noise import Noise
from auditdp.tracing.noise_families import NoiseLaw
from auditdp.tracing.plain_values import all_of, any_of, shape_of, size_of
from auditdp.tracing.sites import here

MOST_GATHERED = 1_000_000
"""Entries of arrays that are put together, at most."""
MOST_MIXED = 512
"""Entries of noise that a linear function is followed through, at most: it is computed once for each."""
LARGE, GRAIN = 2.0**20, 2.0**-32
"""Beside a constant, what a function is tried at, and to what its coefficients are rounded, relative to the largest."""


def gathered(items: Sequence[Any], gather: Callable[[list[Any]], Any]) -> Noise | None:
    """Return noise whose entries a function takes from several arrays, some of them noise; None where it is not followed.

    Args:
        items: The arrays, or numbers; some of them noise.
        gather: Puts entries of arrays of their shapes into one array, whatever they are.
    """
    items = [
        item.settled[0] if type(item) is Noise and item.settled is not None else item
        for item in items
    ]
    noisy = [item for item in items if type(item) is Noise]
    families = {term.draw.law.family for item in noisy for term in item.terms}
    sums = any(len(item.terms) > 1 for item in noisy) and families != {"Gaussian"}
    sizes = [size_of(item.value if type(item) is Noise else item) for item in items]
    known = (
        all(type(item) is Noise or is_numeric(item) for item in items)
        and sum(sizes) <= MOST_GATHERED
    )
    if not known or len(families) != 1 or sums or not all(map(_is_plain, noisy)):
        return None
    values = [*map(_value, items)]
    starts = np.cumsum([0, *sizes])[:-1].tolist()
    numbers = [
        np.arange(k, k + n).reshape(shape_of(v))
        for k, n, v in zip(starts, sizes, values, strict=True)
    ]
    places = np.asarray(gather(numbers))
    of = {
        k: coordinates(i.terms, shape_of(i.value))
        for k, i in zip(starts, items, strict=True)
        if type(i) is Noise
    }
    given = [item.offset if type(item) is Noise else number(item) for item in items]
    offsets, drawn = (
        np.concatenate(
            [
                np.broadcast_to(part, each.shape).ravel()
                for part, each in zip(parts, numbers, strict=True)
            ]
        )
        for parts in (
            [0.0 if part is None else part for part in given],
            map(number, values),
        )
    )
    term, noise = (
        _mixed(noisy[0], together([*of.values()], [*of]), places, drawn - offsets),
        noisy[0],
    )
    return without_zeros(
        Noise(noise.run, gather(values), (term,), offsets[places], noise.site or here())
    )


def overwritten(
    before: Any, content: Any, put: Callable[[Any, Any], None]
) -> Noise | None:
    """Return what an array holds once something is written into it, one of both being noise; None where it is not followed.

    Args:
        before: The array, or noise.
        content: What is written.
        put: Writes the second of two arrays into the first.
    """
    torch = sys.modules.get("torch") if hasattr(_value(before), "detach") else None

    def gather(parts: list[Any]) -> Any:
        if torch is not None:  # tensors stay where they are, and arrays on the CPU
            parts = [
                torch.from_numpy(part)
                if isinstance(part, np.ndarray)
                else torch.as_tensor(part)
                for part in parts
            ]
        made, part = parts
        made = np.array(made) if torch is None else made.clone()
        put(made, part)
        return made

    return gathered([before, content], gather)


def _value(item: Any) -> Any:
    return item.value if type(item) is Noise else item


def without_zeros(noise: Noise) -> Noise:
    """Return it as noise alone, where zeros are all that was put beside it and none of them is left."""
    if (
        noise.offset is not None
        and not any_of(noise.offset)
        and all_of(noise.law.scale)
    ):
        noise.offset = noise.site = None
    return noise


def linear(
    noise: Noise, compute: Callable[[], Any], function: Callable[[Any], Any]
) -> Any:
    """Return what a linear function, plus a constant, makes of Gaussian noise; None where it is not followed.

    Args:
        noise: The noise.
        compute: Returns what it makes of the numbers.
        function: The function, of arrays of numpy of double precision.
    """
    shape, families = (
        shape_of(noise.value),
        {term.draw.law.family for term in noise.terms},
    )
    if (
        not 0 < size_of(noise.value) <= MOST_MIXED
        or families != {"Gaussian"}
        or not _is_plain(noise)
    ):
        return None
    value, constant = compute(), np.asarray(function(np.zeros(shape)))
    large = LARGE if any_of(constant) else 1.0
    units = large * np.eye(size_of(noise.value)).reshape(-1, *shape)
    matrix = (
        np.stack([np.ravel(function(unit) - constant) for unit in units], axis=1)
        / large
    )
    of = coordinates(noise.terms, shape)
    _, one, columns = np.unique(of.columns, return_index=True, return_inverse=True)
    draws = np.zeros((matrix.shape[1], len(one)))
    np.add.at(draws, (of.rows, columns), of.numbers)
    mixed = matrix @ draws
    if any_of(
        constant
    ):  # what rounding left of it must not pass for a scale that depends on the data
        grain = GRAIN * 2.0 ** np.floor(np.log2(np.abs(mixed).max() or 1.0))
        mixed = np.rint(mixed / grain) * grain
    rows, columns = np.nonzero(mixed)
    made = Coordinates(
        of.draws,
        rows,
        of.which[one][columns],
        of.places[one][columns],
        mixed[rows, columns],
    )
    given = (
        None if noise.offset is None else np.array(np.broadcast_to(noise.offset, shape))
    )
    offset = constant if given is None else np.asarray(function(given))
    drawn = number(value) - offset
    term = _mixed(
        noise, made, np.arange(size_of(value)).reshape(shape_of(value)), drawn
    )
    return noise.made(
        value, (term,), offset if noise.offset is not None or any_of(constant) else None
    )


def _is_plain(noise: Noise) -> bool:
    """Return whether entries are those of draws, that nothing has bounded or changed, but for a factor."""
    return not noise.was_changed() and not any(
        term.draw.limits or term.draw.is_lent or term.draw.law.parameter is not None
        for term in noise.terms
    )


def _mixed(noise: Noise, of: Coordinates, places: Any, drawn: Any) -> Term:
    """Return a term of noise of the same family, whose entries are some of those that have coordinates."""
    draw, count = noise.terms[0].draw, size_of(drawn)
    if draw.law.family == "Gaussian":
        scales = np.sqrt(np.bincount(of.rows, np.square(of.numbers), count))
    else:  # each is of one draw, and its sign may count
        scales = np.bincount(of.rows, of.numbers, count)
    scale = scales[places]
    scale = (
        float(scale.flat[0]) if scale.size and np.all(scale == scale.flat[0]) else scale
    )
    made = Mixed(
        draw.number,
        draw.method,
        NoiseLaw(draw.law.family, scale),
        drawn,
        draw.site,
        drawn=drawn,
    )
    made.of = of
    return Term(made, places if np.ndim(places) else int(places))
