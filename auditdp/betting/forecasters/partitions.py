"""A partition makes a cell of a number: quantiles for numbers that are ordered, and one cell each for names.

Cells get finer as more values are seen and ever finer towards both ends, so that rare events have cells of their own; few
distinct values are each a cell, and so are values that occur several times where nearly all occur once. Every partition
is also read at coarser *resolutions*, whose parts are made of neighbouring cells.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from auditdp.numerics.arrays import Floats

MAX_ATOMS = 64
"""Distinct values up to which each is a cell."""
MOST_NAMES = 4096
"""Names with a cell of their own; bounds memory."""
FINEST = 128
"""Quantiles, but for those of the tails, at most."""
FEWEST_IN_TAIL = 8
"""Values in the outermost cell, at least."""
MOSTLY_DISTINCT = 0.75
"""Share of distinct values from which on values that repeat are cut out."""
REPEATED = 16
"""Values that are cut out, at most."""
MIDDLE = 0.4
"""Share of calls between the centres of two Laplace laws: (1 - e^-ε)/2, which is .2 at ε = .5, .4 at 1.6 and .5 at most."""
QUARTERS, CELLS = range(2)
"""Resolutions, by their place in ``Partition.groups``."""


class Partition:
    """Intervals of the line, with their coarser versions.

    A value y lies in cell c if edges[c-1] < y <= edges[c]; NaN ("no number here") lies in a cell of its own beyond +inf.

    Args:
        values: What has been seen, shape (n,).

    Attributes:
        size: How many cells there are.
        groups: For each resolution which of its parts every cell belongs to, shape (size,).
        shapes: Functions of the share u of values below the middle of each cell: 2u-1, 1+ln u, 1+ln(1-u), the normal
            quantile of u, and (2u-1)/``MIDDLE`` clipped to [-1, 1], each with a mean of about 0 over the values; shape
            (5, size).
        unnamed: The cell that holds what has no name, where values are names.
    """

    unnamed: int | None = None

    def __init__(self, values: Floats) -> None:
        values = np.sort(values)
        finite = (
            values[: np.searchsorted(values, np.nan)]
            if np.isnan(values[-1:]).any()
            else values
        )
        edges = _edges(finite)
        self.edges = np.append(edges, np.inf) if len(finite) < len(values) else edges
        self.size = len(self.edges) + 1
        self.groups = [self._parts(_quantiles(finite, 4)), np.arange(self.size)]
        counts = self.count(values)
        below = (np.cumsum(counts) - counts / 2) / max(len(values), 1)
        rare = 0.5 / max(len(values), 1)
        u = np.clip(below, rare, 1 - rare)
        self.shapes = np.stack(
            [
                2 * u - 1,
                1 + np.log(u),
                1 + np.log1p(-u),
                ndtri(u),
                np.clip((2 * u - 1) / MIDDLE, -1, 1),
            ]
        )

    def _parts(self, coarse: Floats) -> NDArray[np.intp]:
        """Return for every cell which of the coarser cells it belongs to."""
        return np.append(np.searchsorted(coarse, self.edges), len(coarse))

    def index(self, values: Floats) -> NDArray[np.intp]:
        """Return the cell of each value."""
        return np.searchsorted(self.edges, values)

    def count(self, values: Floats) -> NDArray[np.intp]:
        """Return how many of the values lie in each cell; sorting is faster than to look up each of them."""
        up_to = np.empty(self.size + 1, dtype=np.intp)
        up_to[0], up_to[-1] = 0, len(values)
        up_to[1:-1] = np.sort(values).searchsorted(self.edges, side="right")
        return up_to[1:] - up_to[:-1]


class Names(Partition):
    """Cells for values that are names: each frequent one is a cell, and the last cell holds all others."""

    def __init__(self, values: Floats) -> None:
        names, counts = np.unique(values, return_counts=True)
        self.edges = np.sort(names[np.argsort(-counts, kind="stable")[:MOST_NAMES]])
        self.size = len(self.edges) + 1
        self.groups = [np.zeros(self.size, dtype=np.intp), np.arange(self.size)]
        self.shapes = np.zeros((5, self.size))
        self.unnamed = self.size - 1

    def index(self, values: Floats) -> NDArray[np.intp]:
        """Return the cell of each name."""
        cells = np.minimum(np.searchsorted(self.edges, values), self.size - 2)
        cells[self.edges[cells] != values] = self.size - 1
        return cells

    def count(self, values: Floats) -> NDArray[np.intp]:
        """Return how often each name occurs, and last how many values have none."""
        values = np.sort(values)
        named = np.searchsorted(values, self.edges, side="right") - np.searchsorted(
            values, self.edges
        )
        return np.append(named, len(values) - named.sum())


def _edges(values: Floats) -> Floats:
    """Cut sorted values: each of few distinct ones apart, many at quantiles that get dense towards both ends."""
    starts = (
        np.flatnonzero(np.append(True, values[1:] != values[:-1]))
        if len(values)
        else np.zeros(0, dtype=np.intp)
    )
    if len(starts) <= MAX_ATOMS:
        return np.asarray(values[starts[:-1]])
    parts = int(np.clip(2 ** (np.log2(len(values)) // 2.5), 4, FINEST))
    tail = parts * 2 ** np.arange(
        1, max(1, int(np.log2(len(values) / parts / FEWEST_IN_TAIL))) + 1
    )
    ranks = np.concatenate([1 / tail, np.arange(1, parts) / parts, 1 - 1 / tail])
    return np.unique(
        np.concatenate(
            [values[(ranks * (len(values) - 1)).astype(int)], _around(values, starts)]
        )
    )


def _around(values: Floats, starts: NDArray[np.intp]) -> Floats:
    """Cut out each of a few values that occur several times where nearly all occur once: they are no noise.

    Args:
        values: Sorted.
        starts: The place of the first of each distinct value.
    """
    if len(starts) < MOSTLY_DISTINCT * len(values):
        return values[:0]
    counts = np.diff(starts, append=len(values))
    several = np.flatnonzero(counts > 1)
    repeated = values[
        starts[several[np.argsort(-counts[several], kind="stable")[:REPEATED]]]
    ]
    return np.concatenate([np.nextafter(repeated, -np.inf), repeated])


def _quantiles(values: Floats, parts: int) -> Floats:
    """Cut sorted values into ``parts`` of about equal size."""
    if not len(values):
        return values
    return np.unique(
        values[(np.arange(1, parts) / parts * (len(values) - 1)).astype(int)]
    )
