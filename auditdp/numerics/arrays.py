"""Names of types of arrays, for annotations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Integers = NDArray[np.int64]
Labels = NDArray[np.int8]
"""Coins: 1 for the first input or a member, 0 for the second or a non-member."""
