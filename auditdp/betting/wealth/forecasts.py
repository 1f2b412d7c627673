"""Forecasts for a batch: log-odds, counts of the coins, and the law of log-odds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from auditdp.betting.limits import LIMITS, NEGLIGIBLE
from auditdp.numerics.arrays import Floats


@dataclass(frozen=True, eq=False)
class Law:
    """The law that a calibrated forecaster expects of its own log-odds.

    Args:
        log_odds: The log-odds of the cells of the law, shape (cells,).
        weights: The relative frequency of each cell, not normalised, shape (cells,).
    """

    log_odds: Floats
    weights: Floats

    def cells(self, size: int = LIMITS.law_cells) -> tuple[Floats, Floats]:
        """Return the probabilities of groups of cells under coin 0 and under coin 1.

        The groups are sorted by increasing log-odds. A law of no cells has one group.

        Half of the cuts between groups are quantiles, and half are equally spaced
        log-odds. So rare cells with large log-odds are not merged with frequent ones.

        Args:
            size: Largest number of groups.
        """
        frequent = self.weights > NEGLIGIBLE * self.weights.sum()
        if not frequent.any():
            return np.ones(1), np.ones(1)
        # Cells with log-odds beyond 25 count as equally certain.
        odds, weights = (
            np.clip(self.log_odds[frequent], -25, 25),
            self.weights[frequent],
        )
        order = np.argsort(odds, kind="stable")
        odds, weights = odds[order], weights[order]
        # Position of each cell by probability and by log-odds, both from 0 to 1.
        below = (np.cumsum(weights) - weights / 2) / weights.sum()
        width = max(odds[-1] - odds[0], 1e-300)
        along = np.minimum((odds - odds[0]) / width, 1 - NEGLIGIBLE)
        group = np.floor(below * (size // 2)) + np.floor(along * (size // 2))
        is_new = (np.diff(group) > 0) & (np.diff(odds) > 0)
        starts = np.flatnonzero(np.append(True, is_new))
        zeros = np.add.reduceat(weights * expit(-odds), starts)
        ones = np.add.reduceat(weights * expit(odds), starts)
        return zeros / zeros.sum(), ones / ones.sum()

    def grouped(self) -> Law:
        """Return nearly the same law with at most 256 cells."""
        zeros, ones = self.cells(LIMITS.stored_law_cells)
        return Law(np.log(ones) - np.log(zeros), zeros + ones)


@dataclass(frozen=True, eq=False)
class Forecasts:
    """Forecasts of several forecasters for one batch, in m columns.

    Calls with equal forecasts may be counted in one column.

    Attributes:
        log_odds: Log-odds of coin 1, possibly infinite, shape (forecasters, m).
        ones: Number of calls with coin 1 in each column, shape (m,).
        zeros: Number of calls with coin 0 in each column, shape (m,).
        expected: Log-odds that each forecaster expects, shape (forecasters, k), and
            their relative frequencies, shape (k,); None if no law is known.
    """

    log_odds: Floats
    ones: Floats
    zeros: Floats
    expected: tuple[Floats, Floats] | None = None

    @classmethod
    def of_calls(
        cls, log_odds: Floats, labels: NDArray[np.int8], expected: Law | None = None
    ) -> Forecasts:
        """Return forecasts with one column for each call.

        Args:
            log_odds: Log-odds of each call, shape (forecasters, n), or (n,) for one
                forecaster.
            labels: The coins, shape (n,).
            expected: The law that the forecaster expects, or None if it is not known.
                With several forecasters it has to be None.
        """
        ones = np.asarray(labels, dtype=float)
        law = None
        if expected is not None:
            law = expected.log_odds[None], expected.weights
        return cls(np.atleast_2d(log_odds), ones, 1 - ones, law)

    @classmethod
    def abstaining(cls, forecasters: int) -> Forecasts:
        """Return forecasts without any call: every forecaster abstains."""
        return cls(np.zeros((forecasters, 0)), np.zeros(0), np.zeros(0))


class ForecastLine:
    """All forecasts of one batch in flat arrays, forecaster by forecaster.

    Attributes:
        count: Number of forecasters.
        who: Index of the forecaster of each forecast, increasing, shape (n,).
        log_odds: Log-odds of coin 1, shape (n,).
        ones: Number of calls with coin 1 for each forecast, shape (n,).
        zeros: Number of calls with coin 0 for each forecast, shape (n,).
    """

    def __init__(self, forecasts: Sequence[Forecasts]) -> None:
        self._tables = [(f, k) for f in forecasts for k in range(len(f.log_odds))]
        self.count = len(self._tables)
        parts = [self.of(k) for k in range(self.count)]
        sizes = [len(odds) for odds, _, _ in parts]
        self.who: NDArray[np.intp] = np.repeat(np.arange(self.count), sizes)
        self.log_odds, self.ones, self.zeros = map(
            np.concatenate, zip(*parts, strict=True)
        )

    def law(self, forecaster: int) -> Law:
        """Return the law that a forecaster expects; without one, a law of no cells."""
        table, row = self._tables[forecaster]
        if table.expected is None:
            return Law(np.zeros(0), np.zeros(0))
        odds, weights = table.expected
        return Law(odds[row], weights)

    def of(self, forecaster: int) -> tuple[Floats, Floats, Floats]:
        """Return the log-odds of one forecaster, and the calls of coin 1 and of coin 0.

        Each array has one entry per forecast.
        """
        table, row = self._tables[forecaster]
        return table.log_odds[row], table.ones, table.zeros
