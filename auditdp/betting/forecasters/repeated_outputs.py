"""Forecasts from outputs that repeat although nearly all others are new.

A raw value that is released once in 2,000 calls occurs a few times in a game. This is
too rare for cells: a value gets its own cell only when calls have doubled, and the odds
of each cell have to be learned. Here only one probability is learned for all values:
that an output has the same coin again if all its earlier occurrences had one coin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditdp.adjacency import Pair
from auditdp.betting.forecasters.batches import Batch, Memory
from auditdp.betting.forecasters.partitions import MOSTLY_DISTINCT
from auditdp.betting.forecasters.players import Player
from auditdp.betting.forecasters.views import as_rows, fingerprint, labels_of
from auditdp.betting.limits import LIMITS, TINY
from auditdp.betting.wealth.forecasts import Forecasts
from auditdp.betting.wealth.regions import growth
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats

SHARE = 0.03
"""Prior weight; all views together have weight 1. Few mechanisms repeat outputs.

With twice this value, games on the mechanisms of `benchmarks/ablation_mechanisms.py`
take 5.4 % more calls.
"""
PRIOR = 0.25
"""Prior number of repetitions with the earlier coin, and of those with the other coin.

It is small, since without noise all repetitions have the earlier coin.

With half or twice this value, games take at most 1.0 % more calls
(`benchmarks/ablation.py`).
"""


@dataclass(eq=False)
class _Values:
    """The distinct values of one coordinate of outputs, with the coins of each value.

    Attributes:
        coins: For each value, 1 if it occurred under coin 1, plus 2 if under coin 0.
        agree: Number of calls with a value that had occurred under one coin only, and
            with this coin.
        disagree: Number of calls with such a value and the other coin.
        total: Number of calls.
        counts: Number of calls that repeated a value of coin 1 only, of calls that
            repeated a value of coin 0 only, and of all other calls.
        frozen: Whether values repeat so often that counting has ended; cells learn them
            better.
    """

    coins: dict[int, int] = field(default_factory=dict)
    agree: int = 0
    disagree: int = 0
    total: int = 0
    counts: Floats = field(default_factory=lambda: np.zeros(3))
    frozen: bool = False

    def cells(self, values: Sequence[int]) -> NDArray[np.float64]:
        """Return the numbers of values of coin 1 only, of coin 0 only, and of others.

        The shape is (3,). The others have occurred under both coins, or not at all.
        """
        coins = [self.coins.get(value, 0) for value in values]
        ones, zeros = coins.count(1), coins.count(2)
        return np.array([ones, zeros, len(coins) - ones - zeros], np.float64)

    def add(self, values: Sequence[int], coin: int) -> None:
        """Store values with their coin, given as 1 for coin 1 and 2 for coin 0."""
        self.total += len(values)
        if len(self.coins) < LIMITS.repeating_values:
            for value in values:
                self.coins[value] = self.coins.get(value, 0) | coin

    @property
    def log_odds(self) -> float:
        """Log-odds that a value, if it has had one coin so far, has this coin again."""
        return math.log((self.agree + PRIOR) / (self.disagree + PRIOR))


class Repeating(Player):
    """Forecasters that bet on repeated values, of each coordinate and of whole outputs.

    The object is a template as well: ``player`` returns a new one for each pair.
    """

    name = "repeats"

    def __init__(self) -> None:
        self._numbers: list[_Values] = []
        self._batch: list[tuple[Sequence[int], Sequence[int], Floats]] = []

    def player(self, mechanism: Any, pair: Pair) -> Repeating:
        """Return the player of one pair."""
        return Repeating()

    def open(self, like: Array, pairs: Sequence[Pair], labels: Sequence[str]) -> None:
        """Choose the coordinates to count.

        The whole output is always counted. It has half of ``SHARE``, or all of it if
        outputs are single numbers.
        """
        width = as_rows(like).shape[1]
        numbers = list(labels_of(width, labels)[: LIMITS.repeating_columns])
        if width <= 1:
            numbers = []
        self.names = [f"{name}, seen before" for name in [*numbers, "output"]]
        self.shares = [SHARE]
        if numbers:
            self.shares = [SHARE / 2 / len(numbers)] * len(numbers) + [SHARE / 2]
        self._numbers = [_Values() for _ in self.names]

    def forecast(self, batch: Batch) -> list[Forecasts]:
        """Return forecasts by the coins that equal values had in earlier batches.

        There is one element for each coordinate, and a last one for the whole output. A
        coordinate that is no longer counted abstains.
        """
        ones, zeros = self._values(batch.ones), self._values(batch.zeros)
        self._batch, forecasts = [], []
        for number, one, zero in zip(self._numbers, ones, zeros, strict=True):
            cells = number.cells(one), number.cells(zero)
            self._batch.append((one, zero, np.stack(cells)))
            if number.frozen:
                forecasts.append(Forecasts.abstaining(1))
                continue
            # Bets are only on values that have occurred under one coin only.
            odds = number.log_odds * np.array([[1.0, -1.0, 0.0]])
            forecasts.append(Forecasts(odds, *cells, (odds, number.counts.copy())))
        return forecasts

    def _values(self, side: Array) -> list[Sequence[int]]:
        """Return the values of every coordinate, and last of whole rows, as integers.

        A float is represented by its bits, and a row by its fingerprint. For a frozen
        coordinate the values are ().
        """
        rows = as_rows(side)
        if not len(rows):
            return [()] * len(self._numbers)
        kind = np.float64 if rows.dtype.kind == "f" else np.int64
        columns = list(rows[:, : len(self._numbers) - 1].astype(kind).T)
        values: list[Sequence[int]] = []
        for number, column in zip(self._numbers, [*columns, None], strict=True):
            if number.frozen:
                values.append(())
                continue
            if column is None:
                column = fingerprint(rows)
            values.append(np.ascontiguousarray(column).view(np.int64).tolist())
        return values

    def learn(self, memory: Memory, *, stalled: bool) -> None:
        """Store the values of the last batch; freeze coordinates that repeat often."""
        for number, (one, zero, cells) in zip(self._numbers, self._batch, strict=True):
            if number.frozen:
                continue
            number.agree += int(cells[0, 0] + cells[1, 1])
            number.disagree += int(cells[0, 1] + cells[1, 0])
            number.counts = number.counts + cells.sum(axis=0)
            number.add(one, 1)
            number.add(zero, 2)
            # A coordinate that repeats often has few values, and cells learn these
            # better.
            is_tried = LIMITS.repeating_trial <= number.total <= LIMITS.repeating_values
            if is_tried and len(number.coins) < MOSTLY_DISTINCT * number.total:
                number.frozen = True
                number.coins.clear()
        self._batch = []

    def plausible_growth(
        self, epsilon: float, rng: np.random.Generator, leading: int | None
    ) -> float:
        """Return the largest gain per call, in nats, of drawn probabilities.

        For each coordinate, the probability that a repetition has the earlier coin is
        drawn from its posterior. The result is 0 before the first repetition.
        """
        best = 0.0
        for number in self._numbers:
            bets = number.agree + number.disagree
            if bets and not number.frozen:
                drawn = rng.beta(number.agree + 0.5, number.disagree + 0.5)
                p = float(np.clip(drawn, TINY, 1 - TINY))
                best = max(best, bets / number.total * float(growth(p, epsilon)))
        return best
