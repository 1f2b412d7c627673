"""Estimators: the log-odds of the coin in every cell, from the counts there.

- ``Free``: the odds of each cell from its own counts. *Plain*: ln((n₁ + ½)/(n₀ + ½)),
  the estimate of Krichevsky & Trofimov (1981). *Cautious*: the odds nearest to 0 within
  one standard error, so that an unsure cell does not bet. *Certain*:
  ln((n₁ + 1/50)/(n₀ + 1/50)) while one of the counts is 0, otherwise 0; for outputs
  that one of the inputs cannot give.
- ``Quarters``: the odds of each quarter of the values. The laws on the two inputs are
  taken for mirror images, as under symmetric noise, which halves the number of odds.
- ``Nested``: the odds of a cell, shrunken towards those of the whole tail around it;
  for rare events.
- ``Shaped``: a sum of a few functions of the rank of the cell, with fitted weights.
  *Normal*: the normal quantile, for normal noise. *Clipped*: a ramp that is flat
  towards both ends, for Laplace noise and randomised response. *Curved*: both, the
  rank, and the logarithms of the shares of values below and above, for odds that grow
  towards either end, as those of extremes do.

To add an estimator, add it to ``ESTIMATORS``: every view gets an expert with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from auditdp.betting.forecasters.partitions import Partition
from auditdp.numerics.arrays import Floats

CERTAIN = 0.02
"""Prior count of the certain estimate, small so that few calls make it nearly certain.

With half or twice this value, games take at most 0.6 % more or fewer calls
(`benchmarks/ablation.py`).
"""
NESTED = 4.0
"""Weight of the tail around a cell, as a number of calls.

With half of this value, the games of the benchmark take 2.7 % more calls, and with
twice this value 3.9 % (`benchmarks/ablation.py`).
"""


class CellCounts:
    """The counts of both coins in the cells of several partitions, joined in one array.

    Args:
        partitions: The partitions.
        counts: Counts so far under coin 0 and coin 1, shape (2, all cells).

    Attributes:
        slices: The slice of the cells of each partition.
        starts: The index of the first cell of each partition.
        sizes: Number of cells of each partition.
        shapes: ``Partition.shapes`` of all cells, shape (5, all cells).
        quarters: The quarter of each cell, numbered over all partitions, shape (all
            cells,).
        opposite: For every quarter, the quarter opposite to it in its partition.
        unnamed: The indices of the cells of rare names (``Partition.unnamed``).
    """

    def __init__(self, partitions: Sequence[Partition], counts: Floats) -> None:
        self.counts = counts
        self.sizes = [partition.size for partition in partitions]
        ends = np.cumsum([0, *self.sizes])
        self.slices = [slice(a, b) for a, b in pairwise(ends)]
        self.starts = ends[:-1]
        self.shapes = np.concatenate([each.shapes for each in partitions], axis=1)
        self.unnamed = [
            start + partition.unnamed
            for start, partition in zip(self.starts, partitions, strict=True)
            if partition.unnamed is not None
        ]
        # Quarters are numbered through, so that all partitions are counted at once.
        first = np.cumsum([0, *(each.quarters[-1] + 1 for each in partitions)])
        self.quarters = np.concatenate(
            [
                start + partition.quarters
                for start, partition in zip(first[:-1], partitions, strict=True)
            ]
        )
        self.opposite = np.concatenate(
            [np.arange(b - 1, a - 1, -1) for a, b in pairwise(first)]
        )
        # The tail around a cell: it, the next cell towards the middle, and all cells
        # further out.
        size, start = np.repeat([self.sizes, self.starts], self.sizes, axis=1)
        place = np.arange(ends[-1]) - start
        self._is_lower = 2 * place < size
        step = np.where(self._is_lower, 1, -1)
        inner = start + np.clip(place + step, 0, size - 1)
        self._inner = np.where(self._is_lower, inner, inner - 1)
        self._before, self._last = start - 1, start + size - 1

    def of_tails(self) -> tuple[Floats, Floats]:
        """Return the counts of coin 0 and of coin 1 in the tail around every cell.

        Each array has the shape (all cells,). The tail has the cell, the next cell
        towards the middle, and all cells further out.
        """
        sums = np.concatenate([np.zeros((2, 1)), self.counts.cumsum(axis=1)], axis=1)
        up_to = sums[:, self._inner + 1]
        below = up_to - sums[:, self._before + 1]
        zeros, ones = np.where(self._is_lower, below, sums[:, self._last + 1] - up_to)
        return zeros, ones


def plain(ones: Floats, zeros: Floats, prior: float = 0.5) -> Floats:
    """Return the log-odds of coin 1, with ``prior`` added to the count of each coin."""
    return np.asarray(np.log((ones + prior) / (zeros + prior)))


def certain(ones: Floats, zeros: Floats) -> Floats:
    """Return the log-odds of coin 1 in cells with one coin alone, and 0 for others."""
    return np.where(np.minimum(ones, zeros) > 0, 0.0, plain(ones, zeros, CERTAIN))


def cautious(ones: Floats, zeros: Floats) -> Floats:
    """Return the log-odds of coin 1 nearest to 0 that are within one standard error.

    They belong to an end of the interval of Wilson (1927), or are 0 if it contains 1/2.
    """
    total = ones + zeros + 1.0
    centre = (ones - zeros) / total
    square = 1.0 / total
    width = np.sqrt(square * (1 - centre**2 + square))
    # This is |2p - 1| for the probability p of coin 1.
    lean = np.maximum(np.abs(centre) - width, 0.0) / (1 + square)
    return np.asarray(np.sign(centre) * np.log((1 + lean) / (1 - lean)))


@dataclass(frozen=True)
class Free:
    """The odds of every cell from its own counts.

    Attributes:
        name: The name in reports, after the name of the view.
        of_counts: Function from the counts of coin 1 and of coin 0 to log-odds.
        weight: Prior weight. It is larger for estimators with few parameters, which are
            accurate after few calls.
        of_names: Whether it applies to cells that are names, which have no order.
    """

    name: str
    of_counts: Callable[[Floats, Floats], Floats] = plain
    weight: float = 1.0
    of_names: bool = True

    def log_odds(self, counts: CellCounts) -> Floats:
        """Return the log-odds of coin 1 in every cell, shape (all cells,)."""
        zeros, ones = counts.counts
        return self.of_counts(ones, zeros)

    def plausible(
        self, counts: CellCounts, partition: int, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Draw the probability of coin 1 in each cell of a partition.

        Args:
            counts: The counts of all partitions.
            partition: The index of the partition.
            rng: Generator of the draw.

        Returns:
            The probabilities, and the share of each cell in the calls of the partition,
            both of shape (cells,).
        """
        return _drawn(counts.counts[:, counts.slices[partition]], rng)


@dataclass(frozen=True)
class Quarters(Free):
    """The odds of every quarter, from its counts and those of the opposite quarter."""

    of_names: bool = False

    def log_odds(self, counts: CellCounts) -> Floats:
        """Return the log-odds of coin 1 in every cell, shape (all cells,)."""
        # The mirror image exchanges the coins and the ends of the line.
        zeros, ones = _grouped(counts.counts, counts.quarters)
        opposite = counts.opposite
        odds = self.of_counts(ones + zeros[opposite], zeros + ones[opposite])
        return np.asarray(odds[counts.quarters])

    def plausible(
        self, counts: CellCounts, partition: int, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Draw the probability of coin 1 in each quarter of a partition.

        The results are those of ``Free.plausible`` with quarters for cells.
        """
        cells = counts.slices[partition]
        quarters = counts.quarters[cells]
        return _drawn(_grouped(counts.counts[:, cells], quarters - quarters[0]), rng)


def _grouped(counts: Floats, groups: NDArray[np.intp]) -> Floats:
    """Return the counts of each coin in each group of cells, shape (2, groups)."""
    return np.array([np.bincount(groups, weights=side) for side in counts])


def _drawn(counts: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return probabilities of coin 1, drawn from their posterior, and cell shares."""
    zeros, ones = counts
    return rng.beta(ones + 0.5, zeros + 0.5), (ones + zeros) / (ones + zeros).sum()


@dataclass(frozen=True)
class Nested(Free):
    """The odds of every cell, shrunken towards those of the tail around it."""

    def log_odds(self, counts: CellCounts) -> Floats:
        """Return the log-odds of coin 1 in every cell, shape (all cells,)."""
        zeros, ones = counts.of_tails()
        # The tail gives the cell a prior of a few calls.
        share = (ones + 0.5) / (ones + zeros + 1)
        own_zeros, own_ones = counts.counts
        return plain(own_ones + NESTED * share, own_zeros + NESTED * (1 - share), 0.0)


@dataclass(frozen=True)
class Shaped:
    """Log-odds that are a weighted sum of shapes, by a ridge logistic regression.

    If there are d > 2 weights, they are shrunken by the factor 1 - (d - 2)/χ² (James &
    Stein 1961), where χ² is the squared distance of the weights from 0 in standard
    errors.

    Args:
        name: The name in reports, after the name of the view.
        shapes: The rows of ``Partition.shapes`` that are used.
        ridge: The penalty is half of ``ridge`` times the sum of the squared weights.
        weight: Prior weight of the estimator.
    """

    name: str
    shapes: slice
    ridge: float = 1.0
    weight: float = 4.0
    of_names = False

    def log_odds(self, counts: CellCounts) -> Floats:
        """Return the log-odds of coin 1 in every cell, shape (all cells,)."""
        shapes = counts.shapes[self.shapes]
        weights, _ = self._fit(shapes, counts.counts, counts.starts, counts.sizes)
        return _sum_of(shapes, weights, counts.sizes)

    def plausible(
        self, counts: CellCounts, partition: int, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Draw the probability of coin 1 in each cell of a partition.

        The arguments and results are those of ``Free.plausible``.
        """
        cells = counts.slices[partition]
        shapes, own = counts.shapes[self.shapes, cells], counts.counts[:, cells]
        (weights,), (curvature,) = self._fit(shapes, own, [0], [shapes.shape[1]])
        # A draw from the normal approximation of the posterior of the weights.
        noise = rng.standard_normal(len(weights))
        weights = weights + np.linalg.solve(np.linalg.cholesky(curvature).T, noise)
        total = own.sum(axis=0)
        return expit(weights @ shapes), total / total.sum()

    def _fit(
        self,
        shapes: Floats,
        counts: Floats,
        starts: Sequence[int] | NDArray[np.intp],
        sizes: Sequence[int],
    ) -> tuple[Floats, Floats]:
        """Fit the weights in each partition.

        Args:
            shapes: The shapes of all cells, shape (shapes, cells).
            counts: The counts of coin 0 and of coin 1, shape (2, cells).
            starts: The index of the first cell of each partition.
            sizes: Number of cells of each partition.

        Returns:
            The weights, shape (partitions, shapes), and the inverse of the covariance
            of each partition's weights, shape (partitions, shapes, shapes).
        """
        zeros, ones = counts
        total, products = zeros + ones, shapes[:, None] * shapes[None]
        ridge = self.ridge * np.eye(len(shapes))
        weights = np.zeros((len(starts), len(shapes)))
        # Three of Newton's steps are close to the converged regression, as tests
        # verify.
        for _ in range(3):
            p = expit(_sum_of(shapes, weights, sizes))
            push = np.add.reduceat(shapes * (ones - total * p), starts, axis=1).T
            push = push - self.ridge * weights
            bend = np.add.reduceat(products * (total * p * (1 - p)), starts, axis=2)
            curvature = bend.transpose(2, 0, 1) + ridge
            weights = weights + np.linalg.solve(curvature, push[..., None])[..., 0]
        excess = len(shapes) - 2
        if excess > 0:
            squares = np.einsum("ps,pst,pt->p", weights, curvature, weights)[:, None]
            shrunk = weights * np.maximum(squares - excess, 0.0)
            weights = shrunk / np.maximum(squares, excess)
        return weights, curvature


def _sum_of(shapes: Floats, weights: Floats, sizes: Sequence[int]) -> Floats:
    """Return the weighted sum of the shapes of every cell, shape (cells,).

    Args:
        shapes: The shapes of all cells, shape (shapes, cells).
        weights: The weights in each partition, shape (partitions, shapes).
        sizes: Number of cells of each partition.
    """
    return np.asarray(np.einsum("sc,cs->c", shapes, np.repeat(weights, sizes, axis=0)))


Estimator = Free | Shaped
QUARTERS = Quarters("quarters, mirrored")
NORMAL = Shaped("cells, normal", slice(3, 4))
ESTIMATORS: tuple[Estimator, ...] = (
    QUARTERS,
    Free("cells"),
    Free("cells, cautious", cautious, weight=2.0),
    Free("cells, certain", certain),
    Nested("cells, nested"),
    Shaped("cells, curved", slice(0, 5)),
    NORMAL,
    Shaped("cells, clipped", slice(4, 5)),
)
ESTIMATOR_NAMES = frozenset(estimator.name for estimator in ESTIMATORS)


def log_odds_of(counts: CellCounts) -> Floats:
    """Return the log-odds of every estimator, shape (estimators, all cells).

    They are in the order of ``ESTIMATORS``, and 0 for rare names.
    """
    table = np.stack([estimator.log_odds(counts) for estimator in ESTIMATORS])
    table[:, counts.unnamed] = 0.0
    return table
