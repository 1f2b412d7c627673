"""Recorded values in the types and shapes that a replay computes.

In a replay, the code gets the recorded results of releases in place of those that it
computes. They need the type of the computed result, such as a tensor or a table. They
also need its shape, which may differ between the two inputs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from auditdp.mechanism.calls.inputs import of_tensor
from auditdp.tracing.draws import Release, WatchedDraw
from auditdp.tracing.noise_families import NoiseLaw, same
from auditdp.tracing.plain_values import ndim, shape_of


def is_array(value: Any) -> bool:
    """Return True if a value is an array, a tensor, or a table of pandas."""
    if isinstance(value, np.ndarray):
        return True
    return any(hasattr(value, name) for name in ("detach", "aval", "iloc"))


def copied(value: Any) -> Any:
    """Return an array, tensor or table as a copy in numpy; else the value itself."""
    return np.array(of_tensor(value), subok=True) if is_array(value) else value


def in_type_of(example: Any, values: Any) -> Any:
    """Return an array of numbers as a number, array, tensor or table like ``example``.

    A table gets the index and the columns of the example.
    """
    # A library's type is recognised by an attribute, so that no library is imported.
    if hasattr(example, "detach"):
        made = example.new_tensor(values)
        return made.requires_grad_() if example.requires_grad else made
    if hasattr(example, "aval"):
        return example.at[...].set(values)
    if hasattr(example, "columns"):
        return type(example)(values, index=example.index, columns=example.columns)
    if hasattr(example, "iloc"):
        return type(example)(values, index=example.index, name=example.name)
    return values if isinstance(example, np.ndarray) else type(example)(values)


def forced_result(computed: Any, recorded: Any) -> Any:
    """Return a recorded result in the type and shape that the code computed.

    Args:
        computed: The result that the code computed in this run.
        recorded: The recorded result.

    Returns:
        The result. Entries that the record lacks, and imaginary parts, are those of
        ``computed``. If the shapes do not fit, the result is ``computed``.
    """
    if not is_array(computed):
        return computed if ndim(recorded) else _forced_number(computed, recorded)
    made = copied(computed)
    target = made.real if made.dtype.kind == "c" else made
    source = np.real(recorded)
    if target.ndim and ndim(source) == target.ndim:
        sizes = map(min, target.shape, shape_of(source))
        common = tuple(slice(0, size) for size in sizes)
        with np.errstate(all="ignore"):
            target[common] = source[common]
    elif shape_of(source) == target.shape:
        target[...] = source
    return in_type_of(computed, made)


def _forced_number(computed: Any, recorded: Any) -> Any:
    kind = type(computed)
    try:
        if isinstance(computed, complex | np.complexfloating):
            return kind(complex(np.real(recorded), computed.imag))
        return recorded if kind is type(recorded) else kind(recorded)
    # Whole numbers take no NaN and no infinity.
    except (TypeError, ValueError, OverflowError):
        return recorded


def moved_draw(draw: WatchedDraw, law: NoiseLaw, location: Any) -> Any:
    """Return the numbers of a recorded draw, moved to another scale and location.

    Args:
        draw: The recorded draw.
        law: A law of the same family, with the new scale.
        location: The new location: a number or an array.
    """
    ratio: Any = 1.0
    with np.errstate(all="ignore"):
        if not same(law.scale, draw.law.scale):
            ratio = np.divide(np.asarray(law.scale, float), draw.law.scale)
        moved = location + (copied(draw.numbers) - draw.location) * ratio
    return in_type_of(draw.value, moved)


def renamed_result(recorded: Release, names: tuple[Any, ...] | None) -> Any:
    """Return a recorded result, with places of items as on this input.

    Args:
        recorded: The recorded release.
        names: Texts of the items on this input; None if there are none.

    Returns:
        For a choice with named items, the places of the chosen items on this input, or
        0 for an item that it lacks. For any other release, the recorded result.
    """
    if names is None or recorded.names is None or names == recorded.names:
        return recorded.result
    places: dict[Any, int] = {}
    for place, name in enumerate(names):
        places.setdefault(name, place)
    chosen = [recorded.names[k] for k in np.ravel(recorded.result).tolist()]
    moved = np.array([places.get(name, 0) for name in chosen])
    return moved.reshape(shape_of(recorded.result))[()]
