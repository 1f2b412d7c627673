"""Outputs that were seen before, where nearly all are new: what repeats is a number without noise.

A raw value that is released once in 2,000 calls is seen a few times in a game, and by then it is over: cells of its own are
cut when calls have doubled, and each has to be learned. Here one number is learned for all of them: how often an output
that was seen under one coin alone comes under that coin again.
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
from auditdp.betting.forecasters.views import as_rows, fingerprint, labels_of
from auditdp.betting.wealth.forecasts import Forecasts
from auditdp.betting.wealth.regions import growth
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats

SHARE = 0.03
"""Prior weight beside the 1 of all views: most mechanisms have nothing to see here."""
PRIOR = 0.25
"""Of coins that agree, and that do not, to begin with. One that has no noise always agrees."""
MOST_COLUMNS = 16
"""Numbers of an output that are looked at."""
FEW = 64
"""Outputs after which a number that repeats is left to cells."""
NEARLY_ALL = 0.75
"""After a few outputs, numbers of which fewer are new are left to cells."""
MOST_KEPT = 1 << 18
"""Values that are kept of a number; bounds memory."""
ONE, ZERO = 1, 2


@dataclass(eq=False)
class _SeenOutputs:
    """The different values of one number of an output, with the coins under which each was seen.

    Attributes:
        counts: Calls that repeated a value of coin 1 alone, those that repeated one of coin 0 alone, and all others.
        frozen: Whether it repeats so often that it is left to cells.
    """

    coins: dict[int, int] = field(default_factory=dict)
    agree: int = 0
    disagree: int = 0
    total: int = 0
    counts: Floats = field(default_factory=lambda: np.zeros(3))
    frozen: bool = False

    def cells(self, values: Sequence[int]) -> NDArray[np.intp]:
        """Return how many values were seen under coin 1 alone, under coin 0 alone, and any other way."""
        seen = [self.coins.get(value, 0) for value in values]
        ones, zeros = seen.count(ONE), seen.count(ZERO)
        return np.array([ones, zeros, len(seen) - ones - zeros])

    def add(self, values: Sequence[int], coin: int) -> None:
        """Keep the values of one coin."""
        self.total += len(values)
        if len(self.coins) < MOST_KEPT:
            for value in values:
                self.coins[value] = self.coins.get(value, 0) | coin

    @property
    def log_odds(self) -> float:
        """Log-odds that a value comes under the coin again under which alone it was seen."""
        return math.log((self.agree + PRIOR) / (self.disagree + PRIOR))


class Repeating:
    """The forecaster of values that were seen before, number by number and as a whole; each pair has a player of its own."""

    name = "repeats"

    def __init__(self) -> None:
        self.names: list[str] = []
        self._seen: list[_SeenOutputs] = []
        self._batch: list[tuple[Sequence[int], Sequence[int], Floats]] = []

    def player(self, mechanism: Any, pair: Pair) -> Repeating:
        """Return the player of one pair."""
        return Repeating()

    @property
    def shares(self) -> Sequence[float]:
        """Half of the share for the whole output, and half for its numbers."""
        numbers = len(self.names) - 1
        return [SHARE / 2 / numbers] * numbers + [SHARE / 2] if numbers else [SHARE]

    def open(self, like: Array, pairs: Sequence[Pair], labels: Sequence[str]) -> None:
        """Choose what to look at, from outputs that look like those to come."""
        width = as_rows(like).shape[1]
        numbers = list(labels_of(width, labels)[:MOST_COLUMNS]) if width > 1 else []
        self.names = [f"{name}, seen before" for name in [*numbers, "output"]]
        self._seen = [_SeenOutputs() for _ in self.names]

    def forecast(self, batch: Batch) -> list[Forecasts]:
        """Forecast from the coins of the same values in earlier batches."""
        ones, zeros = (self._values(side) for side in (batch.ones, batch.zeros))
        self._batch, forecasts = [], []
        for seen, one, zero in zip(self._seen, ones, zeros, strict=True):
            if seen.frozen:
                self._batch.append(((), (), np.zeros(3)))
                forecasts.append(Forecasts.abstaining(1))
                continue
            cells = (
                seen.cells(one).astype(np.float64),
                seen.cells(zero).astype(np.float64),
            )
            odds = seen.log_odds * np.array([[1.0, -1.0, 0.0]])
            forecasts.append(Forecasts(odds, *cells, (odds, seen.counts.copy())))
            self._batch.append((one, zero, np.stack(cells)))
        return forecasts

    def _values(self, side: Array) -> list[Sequence[int]]:
        """Return the bits of every number that is looked at, and of whole rows."""
        rows = as_rows(side)
        if not len(rows):
            return [()] * len(self._seen)
        kind = np.float64 if rows.dtype.kind == "f" else np.int64
        bits = rows[:, : len(self._seen) - 1].astype(kind).view(np.int64)
        numbers = [
            () if seen.frozen else column.tolist()
            for seen, column in zip(self._seen, bits.T, strict=False)
        ]
        return [
            *numbers,
            () if self._seen[-1].frozen else fingerprint(rows).view(np.int64).tolist(),
        ]

    def learn(self, memory: Memory, *, stalled: bool) -> None:
        """Keep the values of the last batch; give up numbers that repeat often."""
        for seen, (one, zero, cells) in zip(self._seen, self._batch, strict=True):
            if seen.frozen:
                continue
            seen.agree += int(cells[0, 0] + cells[1, 1])
            seen.disagree += int(cells[0, 1] + cells[1, 0])
            seen.counts = seen.counts + cells.sum(axis=0)
            seen.add(one, ONE)
            seen.add(zero, ZERO)
            if (
                FEW <= seen.total <= MOST_KEPT
                and len(seen.coins) < NEARLY_ALL * seen.total
            ):
                seen.frozen = True
                seen.coins.clear()
        self._batch = []

    def rank(self, log_wealth: Floats, calls: int) -> None:
        """Do nothing: it costs little."""

    def plausible_growth(
        self, epsilon: float, rng: np.random.Generator, leading: int | None
    ) -> float:
        """Draw how often the most telling number agrees, and return what that would gain."""
        best = 0.0
        for seen in self._seen:
            if (bets := seen.agree + seen.disagree) and not seen.frozen:
                p = float(
                    np.clip(
                        rng.beta(seen.agree + 0.5, seen.disagree + 0.5),
                        1e-12,
                        1 - 1e-12,
                    )
                )
                best = max(best, bets / seen.total * float(growth(p, epsilon)))
        return best
