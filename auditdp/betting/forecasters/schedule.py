"""A schedule of the work of views: the calls that each counts, and when it learns.

It saves time in long games, which would take several times as long if every view
counted every call. It affects the power of a game only. If there are few distinct
outputs, a view is computed once for each of them, and every call is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from auditdp.betting.forecasters.partitions import MOSTLY_DISTINCT, Names, Partition
from auditdp.betting.forecasters.views import View, fingerprint
from auditdp.betting.limits import LIMITS
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats

Sides = tuple[Array, Array]
"""Rows under coin 0 and under coin 1."""


class Schedule:
    """The calls that each view counts, and whether it is learned and cut again.

    Args:
        heavy: For each view, whether it is slow.

    Attributes:
        thinning: For each view, the number k such that it counts one call in k.
        frozen: For each view, whether it is neither learned nor cut into cells again.
        whole: Largest number of views that count whole batches.
        part: Thinning of the other views.
        late_part: Thinning of the other views after ``many_calls`` calls of a pair.
        many_calls: Number of calls of a pair after which the other views count fewer
            calls.
        behind: Difference of recent gains, in nats, from which on a view is clearly
            behind another.
        by_output: Whether a view is computed once for each distinct output, if these
            are few.
    """

    whole = 5
    part = 8
    late_part = 64
    many_calls = 500_000
    behind = 3.0
    by_output = True

    def __init__(self, heavy: Sequence[bool]) -> None:
        self.thinning = [1] * len(heavy)
        self.frozen = [False] * len(heavy)
        self._heavy = np.array(heavy)
        self._rng = np.random.default_rng(0)
        self._distinct: DistinctOutputs | None = None

    def rank(self, log_wealth: Floats, calls: int) -> None:
        """Let only the best views count whole batches, and the others a part of them.

        A heavy view counts whole batches only if no other view gains more. After
        ``many_calls`` calls, it has to gain ``behind`` nats more than any view that is
        not heavy. Once some view has gained ``behind`` nats, views that are ``behind``
        nats behind the best one are frozen, and so are heavy views that do not count
        whole batches. Each view is compared at the anchor that favours it most.

        Args:
            log_wealth: Recent gain of the best expert of every view on this pair, in
                nats, shape (views, anchors).
            calls: Number of calls of this pair.
        """
        # A view that has gained nothing counts as infinitely far behind.
        gaps = np.where(log_wealth > 0, log_wealth.max(axis=0) - log_wealth, np.inf)
        gap = gaps.min(axis=1)
        is_early = calls < self.many_calls
        needed_lead, others = 0.0, self.part
        if not is_early:
            needed_lead, others = self.behind, self.late_part
        # A heavy view is compared with the best of all views that are not heavy.
        lead = (log_wealth - log_wealth[~self._heavy].max(axis=0)).max(axis=1)
        too_heavy = self._heavy & ((gap > 0) | (lead < needed_lead))
        place = np.argsort(np.argsort(gap, kind="stable"), kind="stable")
        whole = (place < self.whole) & (np.isfinite(gap) | is_early) & ~too_heavy
        self.thinning = np.where(whole, 1, others).tolist()
        is_clear = log_wealth.max() > self.behind
        self.frozen = (is_clear & (too_heavy | (gap > self.behind))).tolist()

    def thinned(self, thinning: int, zeros: int, ones: int) -> tuple[int, int]:
        """Return the numbers of calls of coin 0 and of coin 1 that a view counts.

        It counts one in ``thinning`` calls, chosen at random, of a batch with ``zeros``
        calls of coin 0 and ``ones`` calls of coin 1.
        """
        counted = -(-(zeros + ones) // thinning)
        if thinning > 1:
            zeros = int(self._rng.hypergeometric(zeros, ones, counted))
        return zeros, counted - zeros

    def cut(
        self,
        sides: Sides,
        distinct: float,
        views: Sequence[View],
        partitions: Sequence[Partition],
    ) -> None:
        """Store the distinct outputs if they are few; discard those stored before.

        This is called whenever views have been cut into cells.

        Args:
            sides: All stored rows, under coin 0 and under coin 1.
            distinct: Share of distinct rows in a sample.
            views: The views that were cut.
            partitions: The partition of each view.
        """
        self._distinct = None
        if self.by_output and sides[0].shape[1] > 1 and distinct <= MOSTLY_DISTINCT:
            rows = np.concatenate(sides)
            prints = fingerprint(rows)
            if len(np.unique(prints)) <= min(LIMITS.names, len(rows) // 2):
                self._distinct = DistinctOutputs(rows, prints, views, partitions)

    def count(
        self,
        active: Iterable[int],
        views: Sequence[View],
        partitions: Sequence[Partition],
        sides: Sides,
    ) -> Floats:
        """Return the counts of a batch in the cells of views, shape (2, all cells).

        If the distinct outputs are stored, every call is counted.

        Args:
            active: Indices of ``views`` among all views of the schedule.
            views: The views that are cut into cells.
            partitions: The partition of each of them.
            sides: Rows of the batch, under coin 0 and under coin 1.
        """
        if self._distinct is not None:
            return np.stack([self._distinct.count(side) for side in sides])
        parts: dict[int, Sides] = {}
        thinning = [self.thinning[k] for k in active]
        for each in set(thinning):
            zeros, ones = self.thinned(each, len(sides[0]), len(sides[1]))
            parts[each] = sides[0][:zeros], sides[1][:ones]
        return counted(views, partitions, [parts[each] for each in thinning])


class DistinctOutputs:
    """The cells of all distinct outputs, by which batches are counted.

    Args:
        rows: All stored outputs, shape (n, d).
        prints: The fingerprint of each output, shape (n,).
        views: The views that were cut into cells.
        partitions: The partition of each view.
    """

    def __init__(
        self,
        rows: Array,
        prints: Floats,
        views: Sequence[View],
        partitions: Sequence[Partition],
    ) -> None:
        self._names = Names(prints)
        _, first = np.unique(prints, return_index=True)
        self._cut = [
            (view, partition, partition.index(view.values(rows[first])))
            for view, partition in zip(views, partitions, strict=True)
        ]

    def count(self, rows: Array) -> Floats:
        """Return the counts of rows in the cells of all views, shape (all cells,)."""
        # Most rows are counted by their fingerprint alone; only new ones are viewed.
        prints = fingerprint(rows)
        *known, others = self._names.count(prints)
        new = rows[self._names.index(prints) == len(known)] if others else rows[:0]
        counts = []
        for view, partition, cells in self._cut:
            own = np.bincount(cells, weights=known, minlength=partition.size)
            if others:
                own = own + partition.count(view.values(new))
            counts.append(own)
        return np.concatenate(counts)


def counted(
    views: Sequence[View], partitions: Sequence[Partition], sides: Sequence[Sides]
) -> Floats:
    """Return the counts of rows in the cells of views, shape (2, all cells).

    Args:
        views: The views.
        partitions: The partition of each view.
        sides: For each view, the rows that it counts.
    """
    joined: dict[int, list[Array]] = {}
    counts = []
    for view, partition, pair in zip(views, partitions, sides, strict=True):
        zeros, ones = pair
        # For few rows, most of the time is spent on each call of a view; views that
        # count the same rows share the joined array.
        if id(zeros) not in joined:
            is_short = len(zeros) + len(ones) <= LIMITS.few_rows
            joined[id(zeros)] = [np.concatenate(pair)] if is_short else [zeros, ones]
        parts = [view.values(rows) for rows in joined[id(zeros)] if len(rows)]
        values = np.concatenate([np.zeros(0), *parts])
        counts.append(
            [
                partition.count(values[: len(zeros)]),
                partition.count(values[len(zeros) :]),
            ]
        )
    return np.concatenate(counts, axis=1).astype(np.float64)
