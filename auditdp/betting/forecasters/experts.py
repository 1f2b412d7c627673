"""An expert bets: one for every view of an output and every estimator, which forecasts the coin from the counts.

Every *view* (`views.py`, `learned_views.py`) makes a number of an output, a *partition* (`partitions.py`) a cell of the
number, and an *estimator* (`estimators.py`) odds of the counts in the cell. Nobody chooses among the experts: the wealth is
averaged over all, and its leaders follow the best (`mixture.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from auditdp.adjacency import Pair
from auditdp.betting.forecasters.batches import Batch, Memory
from auditdp.betting.forecasters.estimators import (
    ESTIMATORS,
    FEW_PARTS,
    NORMAL,
    CellCounts,
    Estimator,
    log_odds_of,
)
from auditdp.betting.forecasters.learned_views import learned_views
from auditdp.betting.forecasters.partitions import Names, Partition
from auditdp.betting.forecasters.schedule import FEW_ROWS, Schedule
from auditdp.betting.forecasters.views import (
    View,
    as_rows,
    by_inputs,
    fingerprint,
    views_of,
)
from auditdp.betting.wealth.forecasts import Forecasts
from auditdp.betting.wealth.regions import growth
from auditdp.errors import AuditError
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats

FIRST_CUT = 8
"""Calls before views are cut into cells for the first time."""
SOON, LATE = 1.5, 2.0
"""They are cut anew when calls have grown so many times; the latter from ``FEW_ROWS`` calls on."""
SAMPLE = 4096
"""Rows from which the share of distinct ones is estimated."""
IDLE = 1e-9
"""Of its weight is what an expert has that never bets."""
RARELY_DISTINCT = 0.5
"""Names are left out where more of a sample's rows than this have one of their own."""
FINEST_FROM = 10_000
"""Calls from which on plausible odds are drawn from all cells, where no expert leads."""


class ViewExperts:
    """The default forecasters of black boxes, to be bound to a pair.

    Args:
        prefix: Put before the names of its views.
        share: Its prior weight in the mixture.
        prepare: Makes one row of numbers of each output, to be looked at in its place.
        schedule: Makes the schedule from which views are heavy.
    """

    name = "views"

    def __init__(
        self,
        prefix: str = "",
        *,
        share: float = 1.0,
        prepare: Callable[[Array], Array] | None = None,
        schedule: Callable[[Sequence[bool]], Schedule] = Schedule,
    ) -> None:
        self.prefix, self.share, self.prepare, self.schedule = (
            prefix,
            share,
            prepare,
            schedule,
        )

    def player(self, mechanism: Any, pair: Pair) -> ViewPlayer:
        """Return the player of one pair."""
        return ViewPlayer(pair, self)


class ViewPlayer:
    """The experts of one pair, as a player.

    Args:
        pair: The pair.
        template: What it is made from.
    """

    def __init__(self, pair: Pair, template: ViewExperts) -> None:
        self.pair = pair
        self.schedule = Schedule([])
        self.views: Sequence[View] = []
        self._template = template
        self._no_rows: Array = np.zeros((0, 1))
        self._next_cut = FIRST_CUT
        self._active: list[int] = []
        self._partitions: list[Partition] = []
        self._counts: CellCounts | None = None
        self._batch: Floats | None = None

    @property
    def names(self) -> Sequence[str]:
        """Every view with every estimator."""
        return [
            f"{self._template.prefix}{view.name} in {e.name}"
            for view in self.views
            for e in ESTIMATORS
        ]

    @property
    def shares(self) -> Sequence[float]:
        """The share of all, divided by the weights of the views and of the estimators that see anything there."""
        weights = np.outer(
            [view.weight for view in self.views], [e.weight for e in ESTIMATORS]
        )
        weights[
            np.ix_(
                [view.names for view in self.views],
                [not e.of_names for e in ESTIMATORS],
            )
        ] *= IDLE
        return list(self._template.share * weights.ravel() / weights.sum())

    def open(
        self, like: Array, pairs: Sequence[Pair] = (), labels: Sequence[str] = ()
    ) -> None:
        """Choose the views, from outputs of independent calls that look like those to come, and from the game's pairs.

        Args:
            like: The outputs.
            pairs: The pairs of the game.
            labels: What each number of an output is called.
        """
        rows = self._rows(like)
        self._no_rows = rows[:0]
        with_inputs = any(
            by_inputs(pair, rows.shape[1]) for pair in pairs or [self.pair]
        )
        labels = labels if self._template.prepare is None else ()
        fixed = views_of(rows, self.pair, with_inputs=with_inputs, labels=labels)
        self.views = [*fixed, *learned_views(rows.shape[1])]
        self.schedule = self._template.schedule([view.heavy for view in self.views])

    def _rows(self, outputs: Array) -> Array:
        """Return the rows of some outputs, as views see them."""
        if not len(outputs):
            return self._no_rows
        return as_rows(
            outputs if self._template.prepare is None else self._prepared(outputs)
        )

    def _sides(self, batch: Batch) -> tuple[Array, Array]:
        """Return the rows of a batch under coin 0 and under coin 1; what prepares them sees the batch in random order."""
        prepared = self._template.prepare is not None
        ones, zeros = (
            batch.by_coin(self._prepared(batch.mixed))
            if prepared
            else (batch.ones, batch.zeros)
        )
        return (as_rows(zeros) if len(zeros) else self._no_rows), (
            as_rows(ones) if len(ones) else self._no_rows
        )

    def _prepared(self, outputs: Array) -> Array:
        assert (
            self._template.prepare is not None
        )  # asked where there is something to prepare with
        prepared = np.asarray(self._template.prepare(outputs))
        if prepared.shape[:1] != (len(outputs),):
            raise AuditError(
                f"{self._template.prefix.strip(': ')}: expected one row for each of {len(outputs)} outputs, got shape "
                f"{prepared.shape}"
            )
        return prepared

    def forecast(self, batch: Batch) -> list[Forecasts]:
        """Count the batch in the cells of every view, and forecast from the counts of earlier ones."""
        forecasts = [Forecasts.abstaining(len(ESTIMATORS))] * len(self.views)
        if self._counts is not None:
            sides, views = self._sides(batch), [self.views[k] for k in self._active]
            self._batch = self.schedule.count(
                self._active, views, self._partitions, sides
            )
            odds, seen = log_odds_of(self._counts), self._counts.counts.sum(axis=0)
            for k, s in zip(self._active, self._counts.slices, strict=True):
                forecasts[k] = Forecasts(
                    odds[:, s],
                    self._batch[1, s],
                    self._batch[0, s],
                    (odds[:, s], seen[s]),
                )
        return forecasts

    def learn(self, memory: Memory, *, stalled: bool) -> None:
        """Add the counts of the batch; learn and cut the views anew when the calls have grown by so much that it may pay."""
        if self._counts is not None and self._batch is not None:
            self._counts.counts += self._batch
            self._batch = None
        if (
            memory.calls < self._next_cut
            or memory.full
            or not (len(memory.ones) and len(memory.zeros))
        ):
            return
        self._next_cut = math.ceil(
            (SOON if memory.calls < FEW_ROWS else LATE) * memory.calls
        )
        sides = self._rows(memory.zeros), self._rows(memory.ones)
        step = -(-sum(map(len, sides)) // SAMPLE)
        # Every so many of both sides, as if they were one.
        sample = np.concatenate(
            [sides[0][::step], sides[1][-len(sides[0]) % step :: step]]
        )
        distinct = len(np.unique(fingerprint(sample))) / len(sample)
        before = self._cut_views()
        cut: dict[int, tuple[Partition, Floats]] = {}
        for k, view in enumerate(self.views):
            if self.schedule.frozen[k] and k in before:
                cut[k] = before[k]
            elif view.is_ready(memory.calls, stalled) and not (
                view.names and distinct > RARELY_DISTINCT
            ):
                values = view.learn(sides)
                partition = (Names if view.names else Partition)(np.concatenate(values))
                cut[k] = (
                    partition,
                    np.stack([partition.count(side) for side in values]).astype(
                        np.float64
                    ),
                )
        self._active, self._partitions = (
            list(cut),
            [partition for partition, _ in cut.values()],
        )
        self._counts = CellCounts(
            self._partitions, np.hstack([counts for _, counts in cut.values()])
        )
        self.schedule.cut(
            sides, distinct, [self.views[k] for k in self._active], self._partitions
        )

    def _cut_views(self) -> dict[int, tuple[Partition, Floats]]:
        """Return the partitions of the views that are cut, with the counts in their cells."""
        if self._counts is None:
            return {}
        parts = zip(self._active, self._partitions, self._counts.slices, strict=True)
        return {
            k: (partition, self._counts.counts[:, part]) for k, partition, part in parts
        }

    def rank(self, log_wealth: Floats, calls: int) -> None:
        """Let views that gain little see less; ``log_wealth`` is that of every expert, shape (experts, statements)."""
        by_view = log_wealth.reshape(len(self.views), len(ESTIMATORS), -1)
        self.schedule.rank(by_view.max(axis=1), calls)

    def plausible_growth(
        self, epsilon: float, rng: np.random.Generator, leading: int | None
    ) -> float:
        """Draw odds that the counts leave plausible and return what they would gain.

        Looks at the cells of the leading expert; where none has gained anything yet, at every view, at first coarsely.
        """
        if self._counts is None:
            return math.inf
        finest = self._counts.counts[:, self._counts.slices[0]].sum() >= FINEST_FROM
        chosen: Sequence[int] = range(len(self._active))
        estimator: Estimator = NORMAL if finest else FEW_PARTS
        if leading is not None and (view := leading // len(ESTIMATORS)) in self._active:
            place = self._active.index(view)
            chosen, estimator = (
                range(place, place + 1),
                ESTIMATORS[leading % len(ESTIMATORS)],
            )
        best = 0.0
        for k in chosen:
            p, share = estimator.plausible(self._counts, k, rng)
            best = max(
                best,
                float(
                    np.sum(
                        share
                        * growth(np.clip(np.maximum(p, 1 - p), 0.5, 1 - 1e-12), epsilon)
                    )
                ),
            )
        return best
