"""numpy's questions about shapes and truth, answered at once for plain numbers: most of what a run asks is about these."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

PLAIN = frozenset({float, int, bool, np.float64, np.int64, np.bool_})


def array_of_tensor(tensor: Any) -> Any:
    """Return the numbers of a tensor of torch as an array of numpy, which has no ``bfloat16``."""
    plain = tensor.detach().cpu()
    return (plain.float() if str(plain.dtype) == "torch.bfloat16" else plain).numpy()


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
