"""How far apart a few outputs of two inputs are, for a search that looks at many pairs by few calls each.

That is no evidence, and need not be right about one pair: it has to rank pairs. Outputs of both inputs are taken to have
been made with the same randomness where that is possible, so that each differs from its partner by what the inputs change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats

KNOWN = 8.0
"""Outputs for which the usual deviation counts, beside the outputs themselves."""
NEVER_REPEATING = 0.9
"""Share of distinct values above which a column is taken for continuous."""
LEAST_SPREAD = 0.5
"""Share of the usual deviation that few outputs of numbers which repeat are taken to have: some are equal by chance."""
ERRORS = 2.0
"""Standard errors by which deviations have to differ."""
KURTOSIS = 6.0
"""Of Laplace noise: logarithms of two deviations, each of n outputs, differ with variance (6 - 1)/(2n); of normal, less."""
SPREAD_WEIGHT = 3.0
"""Of a difference between log deviations, in standard deviations of a mean."""
MOST_DIFFERENCES = 32
"""Differences of neighbouring columns are looked at where there are at most so many columns."""
ROUNDING = 1e-9
"""Differences of columns that are smaller, relative to the largest number, are taken for rounding."""
MISSING_WEIGHT = 3.0
"""Of a difference between shares of missing numbers."""


@dataclass(frozen=True, eq=False)
class Usual:
    """What outputs of one input are like: of every column, their sum, their largest, and differences of neighbours.

    Attributes:
        spread: The standard deviation, pooled over some inputs, shape (columns,).
        repeating: Whether values occur more than once, as those of continuous noise do not, shape (columns,).
    """

    spread: Floats
    repeating: NDArray[np.bool_]

    @classmethod
    def of(cls, sides: Sequence[Array]) -> Usual:
        """Return what is usual in outputs of some inputs, each of shape (n, d)."""
        distinct = [[len(np.unique(column)) / len(column) for column in _columns(side)[0].T] for side in sides]
        return cls(spread_of(sides), np.median(distinct, axis=0) < NEVER_REPEATING)


def spread_of(sides: Sequence[Array]) -> Floats:
    """Return the deviation of every column and of what is made of them, pooled over some inputs, shape (columns,)."""
    with np.errstate(all="ignore"):
        return np.asarray(np.nan_to_num(np.sqrt(np.mean([_columns(side)[0].var(axis=0) for side in sides], axis=0))))


def distance(ones: Array, zeros: Array, usual: Usual, spread: Floats) -> tuple[float, int]:
    """Return how far apart two few outputs are, in standard deviations, and in which column most.

    Looked at are the columns together, their sum, their largest, and the differences of neighbouring ones, which show noise
    that several have in common. Of each it is the gap between the means. The deviation
    of few outputs is mostly chance, but the same chance for all inputs where noise is added; so it is taken to be the usual
    one, times how much that of these outputs exceeds what listed inputs show with the same randomness. That ratio is drawn
    towards 1, as variances are in

        Smyth (2004), "Linear Models and Empirical Bayes Methods for Assessing Differential Expression in Microarray
        Experiments", Stat. Appl. Genet. Mol. Biol. 3, section 3.

    To that is added by how much one side's deviation exceeds that of the other beyond two standard errors. The distance is
    infinite where a side does not vary in numbers that hardly ever repeat, as those of continuous noise.

    Args:
        ones: Outputs of one input, shape (n, d).
        zeros: As many outputs of the other.
        usual: What outputs of one input are like.
        spread: The deviations of n outputs of listed inputs with this randomness, shape (columns,).
    """
    (one, here), (zero, there) = _columns(ones), _columns(zeros)
    n = len(one)
    with np.errstate(all="ignore"):
        spreads = np.stack([one.std(axis=0), zero.std(axis=0)])
        times = np.square(spreads).sum(axis=0) / np.where(spread > 0, spread, usual.spread) ** 2
        own = usual.spread * np.sqrt((KNOWN + n * times) / (KNOWN + 2 * n))
        own = np.where(usual.spread > 0, own, spreads.mean(axis=0))
        gap = np.abs(one.mean(axis=0) - zero.mean(axis=0))
        own_columns = here.shape[1]
        made = np.arange(len(gap)) >= own_columns + 2
        rounded = ROUNDING * max(float(np.abs(side[:, :own_columns]).max(initial=0.0)) for side in (one, zero))
        z = np.where(gap > np.where(made, rounded, 0.0), gap / np.where(made & (own <= rounded), 0.0, own), 0.0)
        low, high = np.sort(np.maximum(spreads, np.where(usual.repeating, LEAST_SPREAD * usual.spread, 0.0)), axis=0)
        error = math.sqrt((KURTOSIS - 1) / (2 * n))
        wider = np.where((high > 0) & ~made, np.log(high / low), 0.0) - ERRORS * error
        silent = ~made & (spreads.min(axis=0) == 0) & ~usual.repeating & ((spreads.max(axis=0) > 0) | (gap > 0))
        together = max(float(np.sqrt(np.square(z[:own_columns]).sum())), *z[own_columns:].tolist())
        missing = float(np.abs(here.mean(axis=0) - there.mean(axis=0)).max(initial=0.0))
        far = together + SPREAD_WEIGHT * max(float(wider.max()), 0.0) + MISSING_WEIGHT * missing
    where = int(np.argmax(np.where(silent, np.inf, z)))
    return np.inf if silent.any() or missing == 1 else float(np.nan_to_num(far, nan=0.0, posinf=np.inf)), where


def _columns(rows: Array) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the columns of rows and what is made of them, with 0 for what is not finite, and which columns are finite."""
    with np.errstate(all="ignore"):
        rows = rows.astype(np.float64)
        differences = np.diff(rows, axis=1)[:, : MOST_DIFFERENCES if rows.shape[1] <= MOST_DIFFERENCES else 0]
        found = np.column_stack([rows, rows.sum(axis=1), rows.max(axis=1, initial=-np.inf), differences])
    finite = np.isfinite(found)
    return np.where(finite, found, 0.0), finite[:, : rows.shape[1]]
