"""Experts: the default forecasters, one for each view of an output and each estimator.

A *view* (`views.py`, `learned_views.py`) maps an output to a number. A *partition*
(`partitions.py`) maps the number to a cell. An *estimator* (`estimators.py`) maps the
counts of both coins in the cell to odds. No expert is chosen: the wealth is averaged
over all, and leaders follow the best (`mixture.py`).
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
    NORMAL,
    QUARTERS,
    CellCounts,
    Estimator,
    log_odds_of,
)
from auditdp.betting.forecasters.learned_views import learned_views
from auditdp.betting.forecasters.partitions import Names, Partition
from auditdp.betting.forecasters.players import Player
from auditdp.betting.forecasters.schedule import Schedule
from auditdp.betting.forecasters.views import (
    View,
    as_rows,
    by_inputs,
    fingerprint,
    views_of,
)
from auditdp.betting.limits import LIMITS, NEGLIGIBLE, TINY
from auditdp.betting.wealth.forecasts import Forecasts
from auditdp.betting.wealth.regions import growth
from auditdp.errors import AuditError
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats

FIRST_CUT = 8
"""Number of calls after which views are cut into cells for the first time.

With twice this value, the games of the benchmark take 6.9 % more calls
(`benchmarks/ablation.py`).
"""


class ViewExperts:
    """Template of the experts, the default forecasters of black boxes.

    Args:
        prefix: Text before the names of the views.
        share: Prior weight of all experts together in the mixture.
        prepare: Function from outputs to rows of numbers, one for each output. Views
            are views of these rows; None for views of the outputs themselves.
        schedule: Function that returns the schedule. Its argument is a list with
            ``View.heavy`` of each view.
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
        self.prefix = prefix
        self.share = share
        self.prepare = prepare
        self.schedule = schedule

    def player(self, mechanism: Any, pair: Pair) -> ViewPlayer:
        """Return the player of one pair."""
        return ViewPlayer(pair, self)


class ViewPlayer(Player):
    """The experts of one pair, as a player.

    Args:
        pair: The pair.
        template: The template of the experts.

    Attributes:
        views: The views, chosen by ``open``.
        schedule: The schedule of the calls that each view counts.
    """

    def __init__(self, pair: Pair, template: ViewExperts) -> None:
        self.pair = pair
        self.schedule = Schedule([])
        self.views: Sequence[View] = []
        self._template = template
        self._no_rows: Array = np.zeros((0, 1))
        self._next_cut = FIRST_CUT
        self._partitions: dict[int, Partition] = {}
        self._counts: CellCounts | None = None
        self._batch: Floats | None = None

    def open(
        self, like: Array, pairs: Sequence[Pair] = (), labels: Sequence[str] = ()
    ) -> None:
        """Choose the views for the outputs and for the game's pairs.

        Args:
            like: Outputs of independent calls, as examples of those in the game.
            pairs: The pairs of the game; by default the player's own pair.
            labels: The names of the numbers of an output; empty if they are unknown.
        """
        template = self._template
        rows = self._rows(like)
        width = rows.shape[1]
        self._no_rows = rows[:0]
        with_inputs = any(by_inputs(pair, width) for pair in pairs or [self.pair])
        if template.prepare is not None:
            labels = ()
        fixed = views_of(rows, self.pair, with_inputs=with_inputs, labels=labels)
        self.views = [*fixed, *learned_views(width)]
        self.schedule = template.schedule([view.heavy for view in self.views])
        self.names = [
            f"{template.prefix}{view.name} in {estimator.name}"
            for view in self.views
            for estimator in ESTIMATORS
        ]
        weights = np.outer(
            [view.weight for view in self.views], [e.weight for e in ESTIMATORS]
        )
        # Some estimators never bet on names; their stake would be unused.
        is_idle = np.outer(
            [view.names for view in self.views], [not e.of_names for e in ESTIMATORS]
        )
        weights[is_idle] *= NEGLIGIBLE
        self.shares = list(template.share * weights.ravel() / weights.sum())

    def _rows(self, outputs: Array) -> Array:
        """Return outputs as rows for the views, shape (n, d)."""
        if not len(outputs):
            return self._no_rows
        return as_rows(self._prepared(outputs))

    def _sides(self, batch: Batch) -> tuple[Array, Array]:
        """Return the rows of a batch under coin 0 and under coin 1."""
        ones, zeros = batch.ones, batch.zeros
        if self._template.prepare is not None:
            # Code of the user gets the batch in random order.
            ones, zeros = batch.by_coin(self._prepared(batch.mixed))
        sides = [
            as_rows(side) if len(side) else self._no_rows for side in (zeros, ones)
        ]
        return sides[0], sides[1]

    def _prepared(self, outputs: Array) -> Array:
        template = self._template
        if template.prepare is None:
            return outputs
        prepared = np.asarray(template.prepare(outputs))
        if prepared.shape[:1] != (len(outputs),):
            raise AuditError(
                f"{template.prefix.strip(': ')}: expected one row for each of {len(outputs)} outputs, got shape "
                f"{prepared.shape}"
            )
        return prepared

    def forecast(self, batch: Batch) -> list[Forecasts]:
        """Return forecasts by the counts of earlier batches, and count this batch.

        ``learn`` adds the counts of this batch to those of earlier batches.

        Returns:
            The forecasts of the experts of each view, in the order of ``views``. The
            experts of a view abstain before it is cut into cells.
        """
        forecasts = [Forecasts.abstaining(len(ESTIMATORS))] * len(self.views)
        if self._counts is not None:
            sides = self._sides(batch)
            self._batch = self.schedule.count(
                self._partitions,
                [self.views[k] for k in self._partitions],
                list(self._partitions.values()),
                sides,
            )
            odds, weights = log_odds_of(self._counts), self._counts.counts.sum(axis=0)
            zeros, ones = self._batch
            for k, s in zip(self._partitions, self._counts.slices, strict=True):
                expected = odds[:, s], weights[s]
                forecasts[k] = Forecasts(odds[:, s], ones[s], zeros[s], expected)
        return forecasts

    def learn(self, memory: Memory, *, stalled: bool) -> None:
        """Add the counts of the batch; after enough calls, cut views into cells again.

        The arguments are those of ``Player.learn``.
        """
        if self._counts is not None and self._batch is not None:
            self._counts.counts += self._batch
            self._batch = None
        if memory.calls < self._next_cut or memory.full:
            return
        # Cells need both coins.
        if not (len(memory.ones) and len(memory.zeros)):
            return
        factor = LIMITS.late_cut_growth
        if memory.calls < LIMITS.few_rows:
            factor = LIMITS.early_cut_growth
        self._next_cut = math.ceil(factor * memory.calls)
        sides = self._rows(memory.zeros), self._rows(memory.ones)
        distinct = _distinct(*sides)
        # A frozen view keeps its cells and counts; all others are learned and cut anew.
        cut: dict[int, tuple[Partition, Floats]] = {}
        if self._counts is not None:
            for k, part in zip(self._partitions, self._counts.slices, strict=True):
                if self.schedule.frozen[k]:
                    cut[k] = self._partitions[k], self._counts.counts[:, part]
        for k, view in enumerate(self.views):
            # Names are useless if most rows have a name of their own.
            is_useless = view.names and distinct > 0.5
            if k in cut or is_useless or not view.is_ready(memory.calls, stalled):
                continue
            values = view.learn(sides)
            kind = Names if view.names else Partition
            partition = kind(np.concatenate(values))
            counts = [partition.count(side) for side in values]
            cut[k] = partition, np.array(counts, np.float64)
        self._partitions = {k: cut[k][0] for k in sorted(cut)}
        partitions = list(self._partitions.values())
        joined = np.hstack([cut[k][1] for k in self._partitions])
        self._counts = CellCounts(partitions, joined)
        views = [self.views[k] for k in self._partitions]
        self.schedule.cut(sides, distinct, views, partitions)

    def rank(self, log_wealth: Floats, calls: int) -> None:
        """Let views that gain little count fewer calls.

        Args:
            log_wealth: Recent gain of every expert in nats, at some anchors, shape
                (experts, anchors).
            calls: Number of calls of the pair.
        """
        by_view = log_wealth.reshape(len(self.views), len(ESTIMATORS), -1)
        self.schedule.rank(by_view.max(axis=1), calls)

    def plausible_growth(
        self, epsilon: float, rng: np.random.Generator, leading: int | None
    ) -> float:
        """Return the gain of a call, in nats, by odds drawn from their posterior.

        If an expert leads, odds are drawn for its cells. Otherwise they are drawn for
        each view, and the result is the largest gain. It is infinite before the first
        counts. The arguments are those of ``Player.plausible_growth``.
        """
        if self._counts is None:
            return math.inf
        # The best of many drawn odds would be large by chance alone, so that few
        # parameters are drawn.
        chosen: Sequence[int] = range(len(self._partitions))
        estimator: Estimator = QUARTERS
        if self._counts.counts[:, self._counts.slices[0]].sum() >= 10_000:
            estimator = NORMAL
        if leading is not None and leading // len(ESTIMATORS) in self._partitions:
            chosen = [list(self._partitions).index(leading // len(ESTIMATORS))]
            estimator = ESTIMATORS[leading % len(ESTIMATORS)]
        best = 0.0
        for k in chosen:
            p, share = estimator.plausible(self._counts, k, rng)
            likelier = np.clip(np.maximum(p, 1 - p), 0.5, 1 - TINY)
            best = max(best, float(np.sum(share * growth(likelier, epsilon))))
        return best


def _distinct(zeros: Array, ones: Array) -> float:
    """Return the share of distinct rows in a sample of rows of both sides."""
    step = -(-(len(zeros) + len(ones)) // LIMITS.sampled_rows)
    # Every step-th row of both sides, as if they were one array.
    sample = np.concatenate([zeros[::step], ones[-len(zeros) % step :: step]])
    return len(np.unique(fingerprint(sample))) / len(sample)
