"""Cells of a line: how often each coin fell into each of them, and what several estimators make of the counts.

Whatever an output looks like, a *view* of it is one number per call (`views.py`, `learners.py`). The line is cut into
cells at quantiles, finer as more calls are seen and ever finer towards both ends, so that rare events have cells of
their own; few distinct values are each a cell. Per cell the odds of the coin are estimated from its counts alone:

- *plain*: ln((n₁ + ½)/(n₀ + ½)), the estimate of Krichevsky & Trofimov (1981);
- *cautious* and *wary*: the odds nearest to 0 within one or two and a half standard errors, so that an unsure cell does
  not bet;
- *certain*: the same with 1/50 in place of ½, for outputs that one of the inputs cannot give;
- *sloped*: proportional to the rank of the cell, which leaves one number to be learned;
- *nested*: the odds of a cell, drawn towards those of the whole tail around it, for rare events.

Each is made at several resolutions, from the same counts: halves, quarters, and all cells. At the coarse ones there is
also the *mirrored* estimate, which takes the two inputs to be mirror images (as they are under symmetric noise) and so has
half as much to learn.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from auditdp.betting.wealth import Floats, Forecasts

MAX_ATOMS = 64
MOST_NAMES = 4096
FINEST = 128
FEWEST_IN_TAIL = 8
CERTAIN = 0.02
WARY = 2.5
NESTED = 4.0
RIDGE = 4.0
COARSE = {"halves": 2, "quarters": 4}
VARIANTS = (
    *(f"{parts}{how}" for parts in COARSE for how in ("", ", cautious", ", mirrored")),
    *(f"cells{how}" for how in ("", ", cautious", ", wary", ", certain", ", nested", ", sloped")),
)


class Cells:
    """A partition of the line, with its coarser versions.

    A value y lies in cell c if edges[c-1] < y <= edges[c]; NaN ("no number here") lies in a cell of its own beyond +inf.

    Args:
        values: What has been seen, shape (n,).

    Attributes:
        size: How many cells there are.
        groups: For each resolution, coarse ones first, which of its parts every cell belongs to, shape (size,).
        ranks: The middle rank of every cell's values among all, from -1 to 1, shape (size,).
    """

    def __init__(self, values: Floats) -> None:
        values = np.sort(values)
        finite = values[: np.searchsorted(values, np.nan)] if np.isnan(values[-1:]).any() else values
        edges = _edges(finite)
        self.edges = np.append(edges, np.inf) if len(finite) < len(values) else edges
        self.size = len(self.edges) + 1
        self.groups = [self._parts(_quantiles(finite, parts)) for parts in COARSE.values()]
        self.groups.append(np.arange(self.size))
        counts = self.count(values)
        self.ranks = (2 * np.cumsum(counts) - counts) / max(len(values), 1) - 1

    def _parts(self, coarse: Floats) -> NDArray[np.intp]:
        """Return for every cell which of the coarser cells it belongs to."""
        return np.append(np.searchsorted(coarse, self.edges), len(coarse))

    def index(self, values: Floats) -> NDArray[np.intp]:
        """Return the cell of each value."""
        return np.searchsorted(self.edges, values)

    def count(self, values: Floats) -> NDArray[np.intp]:
        """Return how many of the values lie in each cell; sorting is faster than to look up each of them."""
        up_to = np.searchsorted(np.sort(values), self.edges, side="right")
        return np.diff(up_to, prepend=0, append=len(values))


class Names(Cells):
    """Cells for values that are names: each frequent one is a cell, and the last cell holds all others."""

    def __init__(self, values: Floats) -> None:
        names, counts = np.unique(values, return_counts=True)
        self.edges = np.sort(names[np.argsort(-counts, kind="stable")[:MOST_NAMES]])
        self.size = len(self.edges) + 1
        self.groups = [np.zeros(self.size, dtype=np.intp)] * len(COARSE) + [np.arange(self.size)]
        self.ranks = np.zeros(self.size)

    def index(self, values: Floats) -> NDArray[np.intp]:
        """Return the cell of each name."""
        cells = np.minimum(np.searchsorted(self.edges, values), self.size - 2)
        cells[self.edges[cells] != values] = self.size - 1
        return cells

    def count(self, values: Floats) -> NDArray[np.intp]:
        """Return how often each name occurs, and last how many values have none."""
        values = np.sort(values)
        named = np.searchsorted(values, self.edges, side="right") - np.searchsorted(values, self.edges)
        return np.append(named, len(values) - named.sum())


class Bank:
    """The counts of both coins in the cells of several partitions, and what every variant makes of them.

    Args:
        partitions: The partitions.
        counts: Counts so far under coin 0 and coin 1, shape (2, all cells), one partition after the other.
    """

    def __init__(self, partitions: Sequence[Cells], counts: Floats) -> None:
        self.counts = counts
        ends = np.cumsum([0, *(cells.size for cells in partitions)])
        self.slices = [slice(a, b) for a, b in pairwise(ends)]
        # Parts of all resolutions of all partitions in one line: where each cell's part lies, and where its mirror does.
        self._part, mirror, first = [], [], 0
        for resolution in range(len(COARSE) + 1):
            parts = [cells.groups[resolution] for cells in partitions]
            starts = np.cumsum([first, *(part[-1] + 1 for part in parts)])
            self._part.append(np.concatenate([start + part for start, part in zip(starts, parts, strict=False)]))
            mirror += [np.arange(b - 1, a - 1, -1) for a, b in pairwise(starts)]
            first = starts[-1]
        self._mirror = np.concatenate(mirror)
        self._starts, self._sizes = ends[:-1], [cells.size for cells in partitions]
        self._ranks = np.concatenate([cells.ranks for cells in partitions])
        # Around every cell lies a tail: it, the next cell towards the middle, and all cells further out.
        size = np.repeat([cells.size for cells in partitions], [cells.size for cells in partitions])
        start = np.repeat(ends[:-1], [cells.size for cells in partitions])
        place = np.arange(ends[-1]) - start
        self._left = 2 * place < size
        inner = np.clip(place + np.where(self._left, 1, -1), 0, size - 1)
        self._tail = np.where(self._left, start + inner, start + inner - 1), start - 1, start + size - 1
        # The last cell of names holds what has no name.
        self._silent = [
            s.stop - 1 for s, cells in zip(self.slices, partitions, strict=True) if isinstance(cells, Names)
        ]

    def forecasts(self, batch: Floats) -> list[Forecasts]:
        """Return what all variants say of a batch with these counts, shape (2, all cells), partition by partition."""
        where = np.concatenate(self._part)
        zeros, ones = (_sums(where, np.tile(side, len(self._part))) for side in self.counts)
        plain, cautious = _odds(ones, zeros), _cautious(ones, zeros)
        mirrored = _odds(ones + zeros[self._mirror], zeros + ones[self._mirror])
        said = [odds[part] for part in self._part[:-1] for odds in (plain, cautious, mirrored)]
        zeros, ones = self.counts
        fine = self._part[-1]
        said += [plain[fine], cautious[fine], _cautious(ones, zeros, WARY), _odds(ones, zeros, CERTAIN), self._nested()]
        said += [self._sloped()]
        table = np.stack(said)
        table[:, self._silent] = 0.0
        return [Forecasts(table[:, s], batch[1, s], batch[0, s]) for s in self.slices]

    def _sloped(self) -> Floats:
        """Return log-odds proportional to ranks: two Newton steps of a ridge logistic regression in every partition."""
        zeros, ones = self.counts
        slope = np.zeros(len(self._starts))
        for _ in range(2):
            p = expit(np.repeat(slope, self._sizes) * self._ranks)
            push = self._ranks * (ones - (ones + zeros) * p)
            weight = self._ranks**2 * (ones + zeros) * p * (1 - p)
            push, weight = (np.add.reduceat(part, self._starts) for part in (push, weight))
            slope += (push - RIDGE * slope) / (weight + RIDGE)
        return np.asarray(np.repeat(slope, self._sizes) * self._ranks)

    def _nested(self) -> Floats:
        """Return the odds of every cell, drawn towards those of the tail around it as if by a few calls of its own."""
        inner, before, last = self._tail
        sums = np.concatenate([np.zeros((2, 1)), np.cumsum(self.counts, axis=1)], axis=1)
        up_to = sums[:, inner + 1]
        zeros, ones = np.where(self._left, up_to - sums[:, before + 1], sums[:, last + 1] - up_to)
        share = (ones + 0.5) / (ones + zeros + 1)
        return _odds(self.counts[1] + NESTED * share, self.counts[0] + NESTED * (1 - share), 0.0)

    def plausible(self, rng: np.random.Generator, partition: int, variant: int) -> tuple[Floats, Floats]:
        """Draw the probability of coin 1, in each part that a variant reads, from its posterior; return it with shares."""
        s = self.slices[partition]
        resolution = min(variant // 3, len(COARSE))
        group = self._part[resolution][s] - self._part[resolution][s][0]
        zeros, ones = (_sums(group, side[s]) for side in self.counts)
        return rng.beta(ones + 0.5, zeros + 0.5), (ones + zeros) / (ones + zeros).sum()


def _sums(group: NDArray[np.intp], weights: Floats) -> Floats:
    return np.asarray(np.bincount(group, weights=weights), dtype=np.float64)


def _odds(ones: Floats, zeros: Floats, prior: float = 0.5) -> Floats:
    return np.asarray(np.log((ones + prior) / (zeros + prior)))


def _cautious(ones: Floats, zeros: Floats, errors: float = 1.0) -> Floats:
    """Return the log-odds nearest to 0 that lie within so many standard errors: the end of the interval of Wilson (1927)."""
    total = ones + zeros + 1.0
    centre = (ones - zeros) / total
    square = errors**2 / total
    lean = np.maximum(np.abs(centre) - np.sqrt(square * (1 - centre**2 + square)), 0.0) / (1 + square)  # 2p - 1
    return np.asarray(np.sign(centre) * np.log((1 + lean) / (1 - lean)))


def _edges(values: Floats) -> Floats:
    """Cut sorted values: each of few distinct ones apart, many at quantiles that get dense towards both ends."""
    distinct = values[np.append(True, values[1:] != values[:-1])] if len(values) else values
    if len(distinct) <= MAX_ATOMS:
        return np.asarray(distinct[:-1])
    parts = int(np.clip(2 ** (np.log2(len(values)) // 2.5), 4, FINEST))
    tail = parts * 2 ** np.arange(1, max(1, int(np.log2(len(values) / parts / FEWEST_IN_TAIL))) + 1)
    ranks = np.concatenate([1 / tail, np.arange(1, parts) / parts, 1 - 1 / tail])
    return np.asarray(np.unique(values[(ranks * (len(values) - 1)).astype(int)]))


def _quantiles(values: Floats, parts: int) -> Floats:
    """Cut sorted values into ``parts`` of about equal size."""
    if not len(values):
        return values
    return np.unique(values[(np.arange(1, parts) / parts * (len(values) - 1)).astype(int)])
