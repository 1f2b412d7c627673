"""Names of types of arrays, for annotations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Integers = NDArray[np.int64]
Labels = NDArray[np.int8]
"""1 for a member, or the first input; 0 for a non-member, or the second."""
