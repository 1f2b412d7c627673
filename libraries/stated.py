"""Common parts of the audits of libraries: names with versions, and calls."""

from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

from auditdp import audit, unseeded


def of(distribution: str) -> Callable[..., Any]:
    """Return ``audit`` for one installed distribution, whose name and version become the row of the ledger.

    >>> of("numpy").keywords["row"].startswith("numpy 2")
    True
    """
    return partial(audit, row=f"{distribution} {version(distribution)}")


def each(function: Callable[[Any], Any]) -> Any:
    """Return a mechanism that calls a function with randomness of its own."""

    def released(data: Any, size: int) -> np.ndarray:
        return np.array([function(data) for _ in range(size)])

    return unseeded(released)


def together(function: Callable[[list[Any]], Any]) -> Any:
    """Return a mechanism of a function that releases many inputs at once, each with noise of its own.

    The outputs of one call are independent, as the library says of the noise of a vector.
    """

    def released(data: Any, size: int) -> np.ndarray:
        return np.array(function([data] * size))

    return unseeded(released)


def state(rng: np.random.Generator) -> np.random.RandomState:
    """Return the RandomState that draws from a generator's own bits, for libraries that take ``random_state``."""
    return np.random.RandomState(rng.bit_generator)
