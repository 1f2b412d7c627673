"""What the Laplace graphs share: noisy counts and noisy cells before post-processing, and the choice of the largest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from auditdp.adjacency import Pair
from auditdp.laws import LaplaceLaw
from auditdp.mechanism import Array
from mechanisms.cells import Rng


class LaplaceMessage(ABC):
    """A mechanism that releases independent Laplace coordinates; a subclass says which, by ``laplace(data)``.

    The coordinates are those of real-valued Laplace noise: rounding of numpy's doubles is not part of the law.
    """

    @abstractmethod
    def laplace(self, data: Any) -> LaplaceLaw:
        """Return location and scale of every coordinate."""

    def __call__(self, data: Any, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent messages, float64, shape (size, coordinates)."""
        law = self.laplace(data)
        return law.location + rng.laplace(0.0, law.scale, (size, len(law.scale)))

    def log_prob(self, outputs: Array, data: Any) -> Array:
        """Return the log density of each message, shape (size,)."""
        law = self.laplace(data)
        return -(np.abs(outputs - law.location) / law.scale + np.log(2 * law.scale)).sum(axis=1)

    def score(self, outputs: Array, pair: Pair) -> Array:
        """Return the log likelihood ratio from the coordinates that differ, shape (size,)."""
        a, b = self.laplace(pair.data), self.laplace(pair.neighbour)
        at = a.location != b.location
        outputs = np.asarray(outputs)[:, at]
        return ((np.abs(outputs - b.location[at]) - np.abs(outputs - a.location[at])) / a.scale[at]).sum(axis=1)


def rounded_total(noisy: Array, most: int) -> Array:
    """Return noisy counts rounded to the nearest integer and clipped to [0, most], int64."""
    return np.clip(np.rint(noisy), 0, most).astype(np.int64)


def largest_cells(values: Array, totals: Array) -> Array:
    """Return int8 bits, shape of ``values`` (size, cells): one for the totals[r] largest values of row r."""
    order = np.argsort(-values, axis=1, kind="stable")
    bits = np.zeros(values.shape, np.int8)
    np.put_along_axis(bits, order, (np.arange(values.shape[1]) < np.asarray(totals)[:, None]).astype(np.int8), axis=1)
    return bits
