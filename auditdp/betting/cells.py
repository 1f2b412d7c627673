"""Cells of a line: how often each coin fell into each of them, and what several estimators make of the counts.

Whatever an output looks like, a *view* of it is one number per call (`views.py`, `learners.py`). The line is cut into
cells at quantiles, finer as more calls are seen and ever finer towards both ends, so that rare events have cells of
their own; few distinct values are each a cell, and so are values that occur several times where nearly all occur once. Per
cell the odds of the coin are estimated from its counts alone:

- *plain*: ln((n₁ + ½)/(n₀ + ½)), the estimate of Krichevsky & Trofimov (1981);
- *cautious* and *wary*: the odds nearest to 0 within one or two and a half standard errors, so that an unsure cell does
  not bet;
- *certain*: ln((n₁ + 1/50)/(n₀ + 1/50)) while one of the counts is 0, and else nothing: for outputs that one of the
  inputs cannot give, with no bet on any other;
- *sloped*: proportional to the rank of the cell, which leaves one number to be learned;
- *curved*: a sum of the rank and of the logarithms of the shares of values below and above, which leaves three: odds that
  grow towards either end, as those of extremes do, are learned from a tenth of the calls that free cells need. What was
  fitted is shrunk as James & Stein (1961) shrink three means, so that nothing much is bet on what may be chance;
- *normal*: proportional to the normal quantile of the cell: the odds of normal noise, whose excess over those of another
  scale lies in the tails;
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
from scipy.special import expit, ndtri

from auditdp.betting.forecasts import Forecasts
from auditdp.dominating import Floats

MAX_ATOMS = 64
MOST_NAMES = 4096
FINEST = 128
FEWEST_IN_TAIL = 8
MOSTLY_DISTINCT = 0.75
REPEATED = 16
"""Values that are cut out of a line on which nearly all are distinct, at most."""
CERTAIN = 0.02
WARY = 2.5
NESTED = 4.0
NEWTON_STEPS = 3
COARSE = {"halves": 2, "quarters": 4}
VARIANTS = (
    *(f"{parts}{how}" for parts in COARSE for how in ("", ", cautious", ", mirrored")),
    *(
        f"cells{how}"
        for how in ("", ", cautious", ", wary", ", certain", ", nested", ", sloped", ", curved", ", normal")
    ),
)
WEIGHTS = {"cells, cautious": 2.0, "cells, sloped": 4.0, "cells, curved": 4.0, "cells, normal": 4.0}
"""Prior weights of variants beside 1: more for those that have little to learn, and so are right when calls are few."""
FITTED = {"cells, sloped": (slice(0, 1), 4.0), "cells, curved": (slice(0, 3), 4.0), "cells, normal": (slice(3, 4), 1.0)}
"""Which rows of ``Cells.shapes`` the log-odds of a variant are a sum of, and the ridge of their weights."""


class Cells:
    """A partition of the line, with its coarser versions.

    A value y lies in cell c if edges[c-1] < y <= edges[c]; NaN ("no number here") lies in a cell of its own beyond +inf.

    Args:
        values: What has been seen, shape (n,).

    Attributes:
        size: How many cells there are.
        groups: For each resolution, coarse ones first, which of its parts every cell belongs to, shape (size,).
        shapes: Functions of the share u of values below the middle of each cell: 2u-1, 1+ln u, 1+ln(1-u) and the normal
            quantile of u, each with a mean of about 0 over the values; shape (4, size).
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
        below = (np.cumsum(counts) - counts / 2) / max(len(values), 1)
        rare = 0.5 / max(len(values), 1)
        u = np.clip(below, rare, 1 - rare)
        self.shapes = np.stack([2 * u - 1, 1 + np.log(u), 1 + np.log1p(-u), ndtri(u)])

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


class Names(Cells):
    """Cells for values that are names: each frequent one is a cell, and the last cell holds all others."""

    def __init__(self, values: Floats) -> None:
        names, counts = np.unique(values, return_counts=True)
        self.edges = np.sort(names[np.argsort(-counts, kind="stable")[:MOST_NAMES]])
        self.size = len(self.edges) + 1
        self.groups = [np.zeros(self.size, dtype=np.intp)] * len(COARSE) + [np.arange(self.size)]
        self.shapes = np.zeros((4, self.size))

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
        self._shapes = np.concatenate([cells.shapes for cells in partitions], axis=1)
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
        said += [plain[fine], cautious[fine], _cautious(ones, zeros, WARY), _certain(ones, zeros), self._nested()]
        said += [self._shaped(*fitted) for fitted in FITTED.values()]
        table = np.stack(said)
        table[:, self._silent] = 0.0
        seen = self.counts.sum(axis=0)
        return [Forecasts(table[:, s], batch[1, s], batch[0, s], (table[:, s], seen[s])) for s in self.slices]

    def _fit(self, rows: slice, penalty: float, only: slice | None = None) -> tuple[Floats, Floats]:
        """Fit log-odds that are a sum of some shapes: a ridge logistic regression in every partition, by Newton's steps.

        More than two weights are shrunk by 1 - (d - 2)/χ², where χ² is how far they are from 0 in standard errors, squared.

        Args:
            rows: Which shapes.
            penalty: The ridge.
            only: The cells of one partition, or None for all.

        Returns:
            The weights of the shapes, shape (partitions, shapes), and the second derivative of the penalised loss, which is
            the inverse of their covariance, (partitions, shapes, shapes).
        """
        cells = slice(None) if only is None else only
        starts, sizes = (self._starts, self._sizes) if only is None else ([0], [only.stop - only.start])
        shapes, (zeros, ones) = self._shapes[rows, cells], self.counts[:, cells]
        total, products = zeros + ones, shapes[:, None] * shapes[None]
        ridge = penalty * np.eye(len(shapes))
        weights = np.zeros((len(starts), len(shapes)))
        for _ in range(NEWTON_STEPS):
            p = expit(_sum_of(shapes, weights, sizes))
            push = np.add.reduceat(shapes * (ones - total * p), starts, axis=1).T - penalty * weights
            curvature = np.add.reduceat(products * (total * p * (1 - p)), starts, axis=2).transpose(2, 0, 1) + ridge
            weights = weights + np.linalg.solve(curvature, push[..., None])[..., 0]
        if (excess := len(shapes) - 2) > 0:
            chi_squared = np.einsum("ps,pst,pt->p", weights, curvature, weights)[:, None]
            weights = weights * np.maximum(chi_squared - excess, 0.0) / np.maximum(chi_squared, excess)
        return weights, curvature

    def _shaped(self, rows: slice, penalty: float) -> Floats:
        """Return log-odds that are a fitted sum of shapes, shape (cells,)."""
        weights, _ = self._fit(rows, penalty)
        return _sum_of(self._shapes[rows], weights, self._sizes)

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
        if (fitted := FITTED.get(VARIANTS[variant])) is not None:
            (weights,), (curvature,) = self._fit(*fitted, s)
            rows, _ = fitted
            weights = weights + np.linalg.solve(np.linalg.cholesky(curvature).T, rng.standard_normal(len(weights)))
            total = self.counts[:, s].sum(axis=0)
            return expit(weights @ self._shapes[rows, s]), total / total.sum()
        resolution = min(variant // 3, len(COARSE))
        group = self._part[resolution][s] - self._part[resolution][s][0]
        zeros, ones = (_sums(group, side[s]) for side in self.counts)
        return rng.beta(ones + 0.5, zeros + 0.5), (ones + zeros) / (ones + zeros).sum()


def _sum_of(shapes: Floats, weights: Floats, sizes: Sequence[int]) -> Floats:
    """Return for every cell the sum of its shapes, by the weights of its partition, shape (cells,)."""
    return np.asarray(np.einsum("sc,cs->c", shapes, np.repeat(weights, sizes, axis=0)))


def _sums(group: NDArray[np.intp], weights: Floats) -> Floats:
    return np.asarray(np.bincount(group, weights=weights), dtype=np.float64)


def _odds(ones: Floats, zeros: Floats, prior: float = 0.5) -> Floats:
    return np.asarray(np.log((ones + prior) / (zeros + prior)))


def _certain(ones: Floats, zeros: Floats) -> Floats:
    """Return the odds of the coin that alone was seen, and 0 where both were."""
    return np.where(np.minimum(ones, zeros) > 0, 0.0, _odds(ones, zeros, CERTAIN))


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
    return np.unique(np.concatenate([values[(ranks * (len(values) - 1)).astype(int)], _around(values, distinct)]))


def _around(values: Floats, distinct: Floats) -> Floats:
    """Cut out each of a few values that occur several times where nearly all occur once: they are no noise."""
    if len(distinct) < MOSTLY_DISTINCT * len(values):
        return distinct[:0]
    counts = np.diff(np.searchsorted(values, distinct), append=len(values))
    frequent = np.argsort(-counts, kind="stable")[:REPEATED]
    repeated = distinct[frequent[counts[frequent] > 1]]
    return np.concatenate([np.nextafter(repeated, -np.inf), repeated])


def _quantiles(values: Floats, parts: int) -> Floats:
    """Cut sorted values into ``parts`` of about equal size."""
    if not len(values):
        return values
    return np.unique(values[(np.arange(1, parts) / parts * (len(values) - 1)).astype(int)])
