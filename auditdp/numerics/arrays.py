"""Names of types of arrays, for annotations, and which values are numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Integers = NDArray[np.int64]
Labels = NDArray[np.int8]
"""Coins: 1 for the first input or a member, 0 for the second or a non-member."""


def is_number(value: object) -> bool:
    """Return True if a value is an integer or a float, of Python or of NumPy."""
    return isinstance(value, int | float | np.floating | np.integer)
