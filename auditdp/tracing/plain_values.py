"""Shapes, truth and items of values, and functions of torch on arrays of numpy."""

from __future__ import annotations

import functools
import math
import operator
import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

PLAIN = frozenset({float, int, bool, np.float64, np.int64, np.bool_})
"""Types of plain numbers.

Most values are plain numbers, and numpy is slow for these.
"""


def placed(index: Any, array: Any) -> Any:
    """Return an index with its tensors moved to the device of the tensor ``array``."""
    # A tensor on a GPU indexes no array on the CPU.
    if isinstance(index, tuple):
        return tuple(placed(part, array) for part in index)
    if hasattr(index, "is_cuda"):
        return index.to(array.device)
    return index


def rebuilt(container: Collection[Any], items: Sequence[Any]) -> Any:
    """Return a container of the same class with other items, in the same order.

    It is the same object if all items are the same objects.
    """
    if all(map(operator.is_, items, container)):
        return container
    # The class of a named tuple takes its fields as separate arguments.
    build: Any = getattr(type(container), "_make", type(container))
    return build(items)


def ndim(value: Any) -> int:
    """Return the number of axes of a value."""
    if type(value) in PLAIN:
        return 0
    return np.ndim(value)


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of a value."""
    if type(value) in PLAIN:
        return ()
    return np.shape(value)


def size_of(value: Any) -> int:
    """Return the number of entries of a value."""
    if type(value) in PLAIN:
        return 1
    return math.prod(np.shape(value))


def any_of(value: Any) -> bool:
    """Return True if any entry is not zero."""
    if type(value) in PLAIN:
        return bool(value)
    return bool(np.any(value))


def all_of(value: Any) -> bool:
    """Return True if all entries are true."""
    if type(value) in PLAIN:
        return bool(value)
    return bool(np.all(value))


def for_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of tensors that also takes arrays of numpy.

    If a positional argument is an array, or a list that has one, the result is an
    array, or a list of arrays. Its floats are doubles.
    """

    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        parts = [arguments, *(a for a in arguments if type(a) in (list, tuple))]
        if not any(np.ndarray in map(type, part) for part in parts):
            return function(*arguments, **keywords)
        options = {name: _on_cpu(value) for name, value in keywords.items()}
        result = function(*_on_cpu(arguments), **options)
        if isinstance(result, list | tuple):
            return [part.numpy() for part in result]
        return result.numpy()

    return call


def _on_cpu(value: Any) -> Any:
    """Return arrays and tensors, also those in a list, as tensors on the CPU.

    Floats become doubles. Any other value is returned as it is.
    """
    # Noise is followed by arrays of double precision, so floats become doubles.
    if type(value) in (list, tuple):
        return type(value)([_on_cpu(part) for part in value])
    if isinstance(value, np.ndarray):
        value = sys.modules["torch"].from_numpy(np.array(value))
    if not hasattr(value, "is_cuda"):
        return value
    value = value.detach().cpu()
    if value.is_floating_point():
        return value.double()
    return value
