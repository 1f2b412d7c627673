"""Partitions: the cell of a number, by quantiles, or one cell for each name.

The more values there are, the finer are the cells. They get ever finer towards both
ends, so that rare events have cells of their own. If there are few distinct values,
each has a cell. If nearly all values occur once, the most frequent of the repeated
values have cells of their own. Neighbouring cells are also grouped to quarters.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from auditdp.betting.limits import LIMITS
from auditdp.numerics.arrays import Floats

MAX_ATOMS = 64
"""Number of distinct values up to which each has a cell.

With half of this value, the games of the benchmark take 2.1 % more calls
(`benchmarks/ablation.py`).
"""
FEWEST_IN_TAIL = 8
"""Smallest number of values in the outermost cell.

With half or twice this value, games on the mechanisms of
`benchmarks/ablation_mechanisms.py` take 2 % more calls.
"""
MOSTLY_DISTINCT = 0.75
"""Smallest share of distinct values in a sample of values that are mostly distinct.

For comparison: 4096 draws from 4096 equally likely values have a share of about two
thirds.
"""
MIDDLE = 0.4
"""Probability between the centres of two Laplace laws, under one of them.

It is (1 - e^-ε)/2: .2 at ε = .5, .4 at 1.6 and .5 at most.
"""


class Partition:
    """Cells, which are intervals of the line, and groups of cells, the quarters.

    A value y lies in cell c if edges[c-1] < y <= edges[c]; NaN ("no number here") lies
    in a cell of its own beyond +inf.

    Args:
        values: Values so far, shape (n,), which decide the edges.

    Attributes:
        edges: The upper edges of all cells but the last, increasing.
        size: Number of cells.
        quarters: The number of the quarter of every cell, shape (size,).
        shapes: Functions of the share u of values below the middle of each cell: 2u-1,
            1+ln u, 1+ln(1-u), the normal quantile of u, and (2u-1)/``MIDDLE`` clipped
            to [-1, 1], each with a mean of about 0 over the values; shape (5, size).
        unnamed: The cell of all rare names, if values are names; else None.
    """

    unnamed: int | None = None

    def __init__(self, values: Floats) -> None:
        values = np.sort(values)
        finite = values[: len(values) - np.count_nonzero(np.isnan(values))]
        self.edges = _edges(finite)
        if len(finite) < len(values):
            self.edges = np.append(self.edges, np.inf)
        self.size = len(self.edges) + 1
        # A quarter is made of whole cells, so its edges are rounded to those of cells.
        coarse = np.unique(_quantiles(finite, np.arange(1, 4) / 4))
        self.quarters = np.append(np.searchsorted(coarse, self.edges), len(coarse))
        counts = self.count(values)
        total = max(len(values), 1)
        below = (np.cumsum(counts) - counts / 2) / total
        u = np.clip(below, 0.5 / total, 1 - 0.5 / total)
        self.shapes = np.stack(
            [
                2 * u - 1,
                1 + np.log(u),
                1 + np.log1p(-u),
                ndtri(u),
                np.clip((2 * u - 1) / MIDDLE, -1, 1),
            ]
        )

    def index(self, values: Floats) -> NDArray[np.intp]:
        """Return the cell of each value."""
        return np.searchsorted(self.edges, values)

    def count(self, values: Floats) -> NDArray[np.intp]:
        """Return the number of values in each cell."""
        # Sorting all values is faster than a search for each of them.
        up_to = np.sort(values).searchsorted(self.edges, side="right")
        ends = np.concatenate([[0], up_to, [len(values)]])
        return np.asarray(ends[1:] - ends[:-1])


class Names(Partition):
    """Cells for names: one for each frequent name, and the last one for all others.

    At most 4,096 names have a cell of their own.
    """

    def __init__(self, values: Floats) -> None:
        names, counts = np.unique(values, return_counts=True)
        frequent = np.argsort(-counts, kind="stable")[: LIMITS.names]
        self.edges = np.sort(names[frequent])
        self.size = len(self.edges) + 1
        self.quarters = np.zeros(self.size, dtype=np.intp)
        self.shapes = np.zeros((5, self.size))
        self.unnamed = self.size - 1

    def index(self, values: Floats) -> NDArray[np.intp]:
        """Return the cell of each name."""
        cells = np.minimum(np.searchsorted(self.edges, values), self.size - 2)
        cells[self.edges[cells] != values] = self.size - 1
        return cells

    def count(self, values: Floats) -> NDArray[np.intp]:
        """Return the number of values with each name, then that of all other values."""
        values = np.sort(values)
        up_to = values.searchsorted(self.edges, side="right")
        named = up_to - values.searchsorted(self.edges)
        return np.append(named, len(values) - named.sum())


def _edges(values: Floats) -> Floats:
    """Return the edges of cells for sorted values.

    Up to 64 distinct values, except the largest, are edges themselves. Otherwise the
    edges are quantiles of the values, and numbers on both sides of each frequent value.
    """
    if not len(values):
        return values
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    if len(starts) <= MAX_ATOMS:
        return np.asarray(values[starts[:-1]])
    # The number of cells grows with the number of values to the power of 1/2.5.
    count = len(values)
    parts = int(np.clip(2 ** (np.log2(count) // 2.5), 4, LIMITS.quantiles))
    # Towards either end, each cell has half of the values of the cell before.
    halvings = max(1, int(np.log2(count / parts / FEWEST_IN_TAIL)))
    tail = parts * 2 ** np.arange(1, halvings + 1)
    ranks = np.concatenate([1 / tail, np.arange(1, parts) / parts, 1 - 1 / tail])
    return np.unique(
        np.concatenate([_quantiles(values, ranks), _around(values, starts)])
    )


def _around(values: Floats, starts: NDArray[np.intp]) -> Floats:
    """Return edges on both sides of each frequent value, if most values occur once.

    Otherwise the result is empty.

    Args:
        values: The values, sorted.
        starts: The index of the first occurrence of each distinct value.
    """
    if len(starts) < MOSTLY_DISTINCT * len(values):
        return values[:0]
    counts = np.diff(starts, append=len(values))
    several = np.flatnonzero(counts > 1)
    frequent = np.argsort(-counts[several], kind="stable")[: LIMITS.repeated_values]
    repeated = values[starts[several[frequent]]]
    return np.concatenate([np.nextafter(repeated, -np.inf), repeated])


def _quantiles(values: Floats, ranks: Floats) -> Floats:
    """Return the values at relative ranks, from 0 to 1, among sorted values."""
    if not len(values):
        return values
    return np.asarray(values[(ranks * (len(values) - 1)).astype(int)])
