"""Noisy counts and cells of the Laplace graphs, and the choice of the largest cells."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from auditdp.adjacency import Pair
from auditdp.mechanism.laws import FiniteLaw, LaplaceLaw
from auditdp.mechanism.protocol import Array, name_of
from mechanisms.cells import Rng
from mechanisms.edges.largest_law import check_cells, largest_law, rounded_total_law
from mechanisms.rounding import laplace_scale, portion, remaining


class SplitBudget:
    """A budget ``epsilon`` of which ``share`` goes to a count or degree and the rest to the cells."""

    epsilon: float
    share: float | Fraction

    @cached_property
    def epsilon1(self) -> float:
        """The budget of the count or degree, rounded down."""
        return portion(self.epsilon, self.share)

    @cached_property
    def epsilon2(self) -> float:
        """The cells' budget, such that both sum to at most epsilon exactly."""
        return remaining(self.epsilon, self.epsilon1)

    @cached_property
    def cell_scale(self) -> float:
        """Laplace scale of a cell (sensitivity 1)."""
        return laplace_scale(1, self.epsilon2)


class LaplaceMessage(ABC):
    """A release of independent Laplace coordinates, which ``distribution(data)`` defines.

    The coordinates are those of real-valued Laplace noise: rounding of numpy's doubles is not part of the law.
    """

    @abstractmethod
    def distribution(self, data: Any) -> LaplaceLaw:
        """Return location and scale of every coordinate."""

    def __call__(self, data: Any, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent messages, float64, shape (size, coordinates)."""
        law = self.distribution(data)
        return law.location + rng.laplace(0.0, law.scale, (size, len(law.scale)))

    def log_prob(self, outputs: Array, data: Any) -> Array:
        """Return the log density of each message, shape (size,)."""
        return self.distribution(data).log_prob(outputs)

    def score(self, outputs: Array, pair: Pair) -> Array:
        """Return the log likelihood ratio from the coordinates that differ, shape (size,)."""
        a, b = self.distribution(pair.data), self.distribution(pair.neighbour)
        at = a.location != b.location
        outputs = np.asarray(outputs)[:, at]
        return (
            (np.abs(outputs - b.location[at]) - np.abs(outputs - a.location[at]))
            / a.scale[at]
        ).sum(axis=1)


def rounded_total(noisy: Array, most: int) -> Array:
    """Return noisy counts rounded to the nearest integer and clipped to [0, most], int64."""
    return np.clip(np.rint(noisy), 0, most).astype(np.int64)


def largest_cells(values: Array, totals: Array) -> Array:
    """Return int8 bits, shape of ``values`` (size, cells): one for the totals[r] largest values of row r."""
    order = np.argsort(-values, axis=1, kind="stable")
    bits = np.zeros(values.shape, np.int8)
    np.put_along_axis(
        bits,
        order,
        (np.arange(values.shape[1]) < np.asarray(totals)[:, None]).astype(np.int8),
        axis=1,
    )
    return bits


class LargestCells(ABC):
    """Post-processing of a Laplace message: its counts give T, and the T largest of its noisy cells become ones.

    The message holds ``counts`` noisy counts and then the noisy cells. T is ``weight`` times the sum of the counts, rounded
    to the nearest integer and clipped to the number of cells.
    """

    weight: ClassVar[Fraction] = Fraction(1)

    @property
    @abstractmethod
    def message(self) -> LaplaceMessage:
        """The release before post-processing."""

    @property
    def counts(self) -> int:
        """Number of coordinates of the message that are counts."""
        return 1

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent results as bits, int8, shape (size, cells)."""
        sent = self.message(data, size, rng=rng)
        cells = sent[:, self.counts :]
        totals = rounded_total(
            sent[:, : self.counts].sum(axis=1) * float(self.weight), cells.shape[1]
        )
        return largest_cells(cells, totals)

    def distribution(self, data: Array) -> FiniteLaw:
        """Return the law of the released bits, rigorously enclosed; at most 10 cells."""
        law, k = self.message.distribution(data), self.counts
        bits = law.location[k:].astype(np.int8)
        check_cells(name_of(self), len(bits))
        centre = int(Fraction(float(law.location[:k].sum())) * self.weight)
        scale = Fraction(float(law.scale[0])) * self.weight
        return largest_law(
            bits,
            rounded_total_law(centre, scale, len(bits), terms=k),
            float(law.scale[k]),
        )
