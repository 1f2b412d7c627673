"""Forecasts for a batch: log-odds with the counts of the coins, and how often each is expected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from auditdp.numerics.arrays import Floats

MOST_CELLS = 32
"""Of a law: the time to find the nearest one grows with it."""
GROUPS = 256
"""Of a law that is kept."""
NEVER = 1e-9
"""Share of the calls below which a cell is left out of a law."""
FARTHEST = 25.0
"""Log-odds beyond which cells count as equally certain in a law."""


@dataclass(frozen=True, eq=False)
class Law:
    """The law of log-odds that a forecaster expects: they are calibrated, and as frequent as in earlier batches.

    Args:
        log_odds: The log-odds of its cells, shape (cells,).
        weights: How often each has occurred, shape (cells,).
    """

    log_odds: Floats
    weights: Floats

    def cells(self, most: int = MOST_CELLS) -> tuple[Floats, Floats]:
        """Return the probabilities of at most ``most`` groups of cells under coin 0 and coin 1, by increasing log-odds.

        Half of the cuts are quantiles and half are equally far apart, so that rare and telling cells stay apart.
        """
        seen = self.weights > NEVER * self.weights.sum()
        odds, weights = (
            np.clip(self.log_odds[seen], -FARTHEST, FARTHEST),
            self.weights[seen],
        )
        if not len(odds):
            return np.ones(1), np.ones(1)
        order = np.argsort(odds, kind="stable")
        odds, weights = odds[order], weights[order]
        below = (np.cumsum(weights) - weights / 2) / weights.sum()
        far = np.minimum((odds - odds[0]) / max(odds[-1] - odds[0], 1e-300), 1 - 1e-9)
        group = np.floor(below * (most // 2)) + np.floor(far * (most // 2))
        starts = np.flatnonzero(
            np.append(True, (np.diff(group) > 0) & (np.diff(odds) > 0))
        )
        zeros, ones = (
            np.add.reduceat(weights * expit(sign * odds), starts) for sign in (-1, 1)
        )
        return zeros / zeros.sum(), ones / ones.sum()

    def grouped(self) -> Law:
        """Return a law of few cells that is nearly the same."""
        zeros, ones = self.cells(GROUPS)
        return Law(np.log(ones) - np.log(zeros), zeros + ones)


@dataclass(frozen=True, eq=False)
class Forecasts:
    """The forecasts of several forecasters for one batch, with the coins: each forecast once, and how often it was made.

    Attributes:
        log_odds: Log-odds of coin 1, possibly infinite, shape (forecasters, m).
        ones: How many calls with coin 1 got each of the m forecasts, shape (m,).
        zeros: The same for coin 0, shape (m,).
        expected: Log-odds that each forecaster expects, shape (forecasters, k), and how often earlier batches had each,
            shape (k,); empty where nothing is known.
    """

    log_odds: Floats
    ones: Floats
    zeros: Floats
    expected: tuple[Floats, Floats] | None = None

    @classmethod
    def of_calls(
        cls, log_odds: Floats, labels: NDArray[np.int8], expected: Law | None = None
    ) -> Forecasts:
        """Return the forecasts of single calls: ``log_odds`` of shape (forecasters, n), ``labels`` of shape (n,)."""
        ones = np.asarray(labels, dtype=float)
        known = (
            None if expected is None else (expected.log_odds[None], expected.weights)
        )
        return cls(np.atleast_2d(log_odds), ones, 1 - ones, known)

    @classmethod
    def abstaining(cls, forecasters: int) -> Forecasts:
        """Return no forecast at all, which counts as abstaining."""
        return cls(np.zeros((forecasters, 0)), np.zeros(0), np.zeros(0))


class ForecastLine:
    """The forecasts of one batch in a line, forecaster by forecaster.

    Attributes:
        count: How many forecasters there are.
        who: Which of them made each forecast, increasing, shape (n,).
        log_odds: Log-odds of coin 1, shape (n,).
        ones: How many calls with coin 1 got each, shape (n,).
        zeros: The same for coin 0.
    """

    def __init__(self, forecasts: Sequence[Forecasts]) -> None:
        self._tables = [(f, k) for f in forecasts for k in range(len(f.log_odds))]
        sizes = [len(f.ones) for f, _ in self._tables]
        self.count = len(self._tables)
        self.who: NDArray[np.intp] = np.repeat(np.arange(self.count), sizes)
        self.log_odds = np.concatenate([f.log_odds.ravel() for f in forecasts])
        self.ones = np.concatenate([f.ones for f, _ in self._tables])
        self.zeros = np.concatenate([f.zeros for f, _ in self._tables])

    def law(self, forecaster: int) -> Law:
        """Return the law that a forecaster expects."""
        table, row = self._tables[forecaster]
        odds, weights = (
            (np.zeros((row + 1, 0)), np.zeros(0))
            if table.expected is None
            else table.expected
        )
        return Law(odds[row], weights)

    def of(self, forecaster: int) -> tuple[Floats, Floats, Floats]:
        """Return the log-odds of one forecaster, and how many calls of coin 1 and of coin 0 got each."""
        table, row = self._tables[forecaster]
        return table.log_odds[row], table.ones, table.zeros
