"""An estimator makes odds: the log-odds of the coin in every cell, from how often each coin fell there.

- ``Free``: the odds of each part of the line from its own counts. *Plain*: ln((n₁ + ½)/(n₀ + ½)), the estimate of
  Krichevsky & Trofimov (1981). *Cautious*: the odds nearest to 0 within one standard error, so that an unsure cell does not
  bet. *Certain*: ln((n₁ + 1/50)/(n₀ + 1/50)) while one of the counts is 0, and else nothing: for outputs that one of the
  inputs cannot give. *Mirrored*: the two inputs are taken for mirror images, as they are under symmetric noise, which halves
  what is to be learned.
- ``Nested``: the odds of a cell, drawn towards those of the whole tail around it, for rare events.
- ``Shaped``: a sum of few functions of the rank of the cell, with fitted weights. *Normal*: the normal quantile, for the
  odds of normal noise, whose excess over those of another scale lies in the tails. *Clipped*: a ramp that is flat towards
  both ends, for the odds of Laplace noise and of randomised response. *Curved*: both, the rank, and the logarithms of the
  shares of values below and above, for odds that grow towards either end, as those of extremes do.

To add an estimator, add one to ``ESTIMATORS``: each is an expert of every view.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from auditdp.betting.forecasters.partitions import CELLS, QUARTERS, Partition
from auditdp.numerics.arrays import Floats

CERTAIN = 0.02
"""Prior count of the certain estimate: small, so that an output which one input cannot give is soon near certain."""
NESTED = 4.0
"""Calls that the tail around a cell counts for."""
NEWTON_STEPS = 3
"""From 0; tests compare the result with a regression that has converged."""


class CellCounts:
    """The counts of both coins in the cells of several partitions, one partition after the other.

    Args:
        partitions: The partitions.
        counts: Counts so far under coin 0 and coin 1, shape (2, all cells).

    Attributes:
        slices: The cells of each partition.
        shapes: ``Partition.shapes`` of all cells, shape (5, all cells).
        sizes: How many cells each partition has.
        unnamed: Cells that hold what has no name.
    """

    def __init__(self, partitions: Sequence[Partition], counts: Floats) -> None:
        self.counts = counts
        self.sizes = [partition.size for partition in partitions]
        ends = np.cumsum([0, *self.sizes])
        self.slices = [slice(a, b) for a, b in pairwise(ends)]
        self.starts = ends[:-1]
        self.shapes = np.concatenate(
            [partition.shapes for partition in partitions], axis=1
        )
        self.unnamed = [
            s.start + partition.unnamed
            for s, partition in zip(self.slices, partitions, strict=True)
            if partition.unnamed is not None
        ]
        self._groups = [
            _joined([partition.groups[k] for partition in partitions])
            for k in (QUARTERS, CELLS)
        ]
        # The tail around a cell: it, the next cell towards the middle, and all cells further out.
        size, start = (
            np.repeat(each, self.sizes) for each in (self.sizes, self.starts)
        )
        place = np.arange(ends[-1]) - start
        self._lower = 2 * place < size
        inner = np.clip(place + np.where(self._lower, 1, -1), 0, size - 1)
        self._tail = (
            np.where(self._lower, start + inner, start + inner - 1),
            start - 1,
            start + size - 1,
        )

    def parts(self, resolution: int, partition: int | None = None) -> NDArray[np.intp]:
        """Return which part of a resolution every cell belongs to, counted from 0 in one partition or in all."""
        group, _ = self._groups[resolution]
        if partition is None:
            return group
        own = group[self.slices[partition]]
        return np.asarray(own - own[0])

    def mirror(self, resolution: int) -> NDArray[np.intp]:
        """Return for every part of a resolution the part that lies opposite to it in its partition."""
        return self._groups[resolution][1]

    def of_parts(
        self, resolution: int, partition: int | None = None
    ) -> tuple[Floats, Floats]:
        """Return the counts of coin 0 and of coin 1 in every part of a resolution."""
        cells = slice(None) if partition is None else self.slices[partition]
        group = self.parts(resolution, partition)
        zeros, ones = (
            np.bincount(group, weights=side[cells]).astype(np.float64)
            for side in self.counts
        )
        return zeros, ones

    def of_tails(self) -> tuple[Floats, Floats]:
        """Return the counts of coin 0 and of coin 1 in the tail around every cell."""
        inner, before, last = self._tail
        sums = np.concatenate(
            [np.zeros((2, 1)), np.cumsum(self.counts, axis=1)], axis=1
        )
        up_to = sums[:, inner + 1]
        zeros, ones = np.where(
            self._lower, up_to - sums[:, before + 1], sums[:, last + 1] - up_to
        )
        return zeros, ones


def _joined(
    groups: Sequence[NDArray[np.intp]],
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Number the parts of several partitions through, and return them with the part opposite to each."""
    starts = np.cumsum([0, *(group[-1] + 1 for group in groups)])
    joined = np.concatenate(
        [start + group for start, group in zip(starts, groups, strict=False)]
    )
    return joined, np.concatenate(
        [np.arange(b - 1, a - 1, -1) for a, b in pairwise(starts)]
    )


def plain(ones: Floats, zeros: Floats, prior: float = 0.5) -> Floats:
    """Return the log-odds of counts, with a prior count of either coin."""
    return np.asarray(np.log((ones + prior) / (zeros + prior)))


def certain(ones: Floats, zeros: Floats) -> Floats:
    """Return the log-odds of the coin that alone was seen, and 0 where both were."""
    return np.where(np.minimum(ones, zeros) > 0, 0.0, plain(ones, zeros, CERTAIN))


def cautious(ones: Floats, zeros: Floats) -> Floats:
    """Return the log-odds nearest to 0 that lie within one standard error: the end of the interval of Wilson (1927)."""
    total = ones + zeros + 1.0
    centre = (ones - zeros) / total
    square = 1.0 / total
    lean = np.maximum(
        np.abs(centre) - np.sqrt(square * (1 - centre**2 + square)), 0.0
    ) / (1 + square)  # 2p - 1
    return np.asarray(np.sign(centre) * np.log((1 + lean) / (1 - lean)))


@dataclass(frozen=True)
class Free:
    """The odds of every part of a resolution from its own counts, or from its own and those of the part opposite to it.

    Attributes:
        name: What reports call it, after the name of its view.
        weight: Its prior weight: more for those that have little to learn, and so are right when calls are few.
        of_names: Whether it sees anything in cells that are names, of which no order means anything.
    """

    name: str
    resolution: int
    of_counts: Callable[[Floats, Floats], Floats] = plain
    mirrored: bool = False
    weight: float = 1.0

    @property
    def of_names(self) -> bool:
        """Names have no coarser parts."""
        return self.resolution == CELLS

    def log_odds(self, counts: CellCounts) -> Floats:
        """Return the log-odds of coin 1 in every cell, shape (all cells,)."""
        zeros, ones = counts.of_parts(self.resolution)
        if self.mirrored:
            mirror = counts.mirror(self.resolution)
            zeros, ones = zeros + ones[mirror], ones + zeros[mirror]
        return self.of_counts(ones, zeros)[counts.parts(self.resolution)]

    def plausible(
        self, counts: CellCounts, partition: int, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Draw the probability of coin 1 in each part of one partition from its posterior; return it with their shares."""
        zeros, ones = counts.of_parts(self.resolution, partition)
        return rng.beta(ones + 0.5, zeros + 0.5), (ones + zeros) / (ones + zeros).sum()


@dataclass(frozen=True)
class Nested(Free):
    """The odds of every cell, drawn towards those of the tail around it as if by a few calls of its own."""

    def log_odds(self, counts: CellCounts) -> Floats:
        """See ``Free``."""
        zeros, ones = counts.of_tails()
        share = (ones + 0.5) / (ones + zeros + 1)
        return plain(
            counts.counts[1] + NESTED * share,
            counts.counts[0] + NESTED * (1 - share),
            0.0,
        )


@dataclass(frozen=True)
class Shaped:
    """Log-odds that are a sum of some shapes: a ridge logistic regression in every partition, by Newton's steps.

    More than two weights are shrunk by 1 - (d - 2)/χ² (James & Stein 1961), where χ² is how far they are from 0 in standard
    errors, squared.

    Args:
        shapes: Which rows of ``Partition.shapes``.
        ridge: The penalty of the weights.
    """

    name: str
    shapes: slice
    ridge: float
    weight: float = 4.0
    of_names = False

    def log_odds(self, counts: CellCounts) -> Floats:
        """See ``Free``."""
        weights, _ = self._fit(
            counts.shapes[self.shapes], counts.counts, counts.starts, counts.sizes
        )
        return _sum_of(counts.shapes[self.shapes], weights, counts.sizes)

    def plausible(
        self, counts: CellCounts, partition: int, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """See ``Free``."""
        cells = counts.slices[partition]
        shapes, own = counts.shapes[self.shapes, cells], counts.counts[:, cells]
        (weights,), (curvature,) = self._fit(shapes, own, [0], [shapes.shape[1]])
        weights = weights + np.linalg.solve(
            np.linalg.cholesky(curvature).T, rng.standard_normal(len(weights))
        )
        total = own.sum(axis=0)
        return expit(weights @ shapes), total / total.sum()

    def _fit(
        self,
        shapes: Floats,
        counts: Floats,
        starts: Sequence[int] | NDArray[np.intp],
        sizes: Sequence[int],
    ) -> tuple[Floats, Floats]:
        """Return the weights in each partition, shape (partitions, shapes), and the inverse of their covariance."""
        zeros, ones = counts
        total, products = zeros + ones, shapes[:, None] * shapes[None]
        ridge = self.ridge * np.eye(len(shapes))
        weights = np.zeros((len(starts), len(shapes)))
        for _ in range(NEWTON_STEPS):
            p = expit(_sum_of(shapes, weights, sizes))
            push = (
                np.add.reduceat(shapes * (ones - total * p), starts, axis=1).T
                - self.ridge * weights
            )
            curvature = (
                np.add.reduceat(
                    products * (total * p * (1 - p)), starts, axis=2
                ).transpose(2, 0, 1)
                + ridge
            )
            weights = weights + np.linalg.solve(curvature, push[..., None])[..., 0]
        if (excess := len(shapes) - 2) > 0:
            chi_squared = np.einsum("ps,pst,pt->p", weights, curvature, weights)[
                :, None
            ]
            weights = (
                weights
                * np.maximum(chi_squared - excess, 0.0)
                / np.maximum(chi_squared, excess)
            )
        return weights, curvature


def _sum_of(shapes: Floats, weights: Floats, sizes: Sequence[int]) -> Floats:
    """Return for every cell the sum of its shapes, by the weights of its partition, shape (cells,)."""
    return np.asarray(np.einsum("sc,cs->c", shapes, np.repeat(weights, sizes, axis=0)))


Estimator = Free | Shaped
FEW_PARTS = Free("quarters", QUARTERS)
"""No expert's; what a pair may gain is drawn from it while calls are few."""
NORMAL = Shaped("cells, normal", slice(3, 4), 1.0)
ESTIMATORS: tuple[Estimator, ...] = (
    Free("quarters, mirrored", QUARTERS, mirrored=True),
    Free("cells", CELLS),
    Free("cells, cautious", CELLS, cautious, weight=2.0),
    Free("cells, certain", CELLS, certain),
    Nested("cells, nested", CELLS),
    Shaped("cells, curved", slice(0, 5), 1.0),
    NORMAL,
    Shaped("cells, clipped", slice(4, 5), 1.0),
)
ESTIMATOR_NAMES = frozenset(estimator.name for estimator in ESTIMATORS)


def log_odds_of(counts: CellCounts) -> Floats:
    """Return the log-odds of every estimator in every cell, shape (estimators, all cells); 0 where a value has no name."""
    table = np.stack([estimator.log_odds(counts) for estimator in ESTIMATORS])
    table[:, counts.unnamed] = 0.0
    return table
