"""numpy's questions about shapes and truth, answered at once for plain numbers: most of what a run asks is about these."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

PLAIN = frozenset({float, int, bool, np.float64, np.int64, np.bool_})


def placed(index: Any, array: Any) -> Any:
    """Return an index as one of an array: a tensor on a GPU takes nothing out of what is on the CPU."""
    if isinstance(index, tuple):
        return tuple(placed(part, array) for part in index)
    return index.to(array.device) if hasattr(index, "is_cuda") else index


def put_at(index: Any) -> Callable[[Any, Any], None]:
    """Return what writes into the entries of an array that an index names."""
    return lambda array, part: array.__setitem__(placed(index, array), part)


def ndim(value: Any) -> int:
    """Return how many axes a value has."""
    return 0 if type(value) in PLAIN else np.ndim(value)


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of a value."""
    return () if type(value) in PLAIN else np.shape(value)


def size_of(value: Any) -> int:
    """Return how many entries a value has."""
    return 1 if type(value) in PLAIN else math.prod(np.shape(value))


def any_of(value: Any) -> bool:
    """Return whether any entry is not zero."""
    return bool(value) if type(value) in PLAIN else bool(np.any(value))


def all_of(value: Any) -> bool:
    """Return whether all entries are true."""
    return bool(value) if type(value) in PLAIN else bool(np.all(value))
