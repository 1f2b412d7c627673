"""A schedule saves time: it decides which calls a view sees, and which views are not learned or cut again.

Nothing else depends on it. Without one every view sees every call, which costs several times as much in long games; where
outputs are few, counting each distinct one once gives the same counts as counting every call.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from auditdp.betting.forecasters.partitions import MOST_NAMES, Names, Partition
from auditdp.betting.forecasters.views import View, fingerprint
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats

FEW_ROWS = 1 << 14
"""Rows up to which a batch is looked at in one piece: then most of the time goes into looking at all."""
OFTEN_DISTINCT = 0.75
"""Of a sample of rows that are 4096 different ones, all alike, about two thirds are distinct."""
WHOLE = 5
"""Views that see whole batches."""
BEHIND = 3.0
"""Nats from which on a view is clearly behind another."""
THINNING, LATE_THINNING = 8, 64
"""Other views see one call of so many; the latter once there are many calls."""
MANY_CALLS = 500_000
"""Calls of a pair from which on views that do not lead see less."""


class Schedule:
    """Which calls each view sees, and whether it is learned and cut again.

    Args:
        heavy: For each view whether it is slow.

    Attributes:
        thinning: For each view, it sees one call of so many.
        frozen: For each view, whether it is neither learned nor cut again.
        whole: Views that see whole batches.
        part: Other views see one call of so many.
        many_calls: From so many calls of a pair on, they see one of ``LATE_THINNING``.
        by_output: Whether outputs are counted by their distinct values, where these are few.
    """

    whole, part, many_calls, by_output = WHOLE, THINNING, MANY_CALLS, True

    def __init__(self, heavy: Sequence[bool]) -> None:
        self.thinning = [1] * len(heavy)
        self.frozen = [False] * len(heavy)
        self._heavy = np.array(heavy)
        self._rng = np.random.default_rng(0)
        self._distinct: DistinctOutputs | None = None

    def rank(self, log_wealth: Floats, calls: int) -> None:
        """Let only the best views see whole batches, and the others an eighth, or less once there are many calls.

        A heavy view sees them only where none gains more, and once there are many calls only where it gains clearly more
        than any other. Views that gain clearly less than another, and heavy ones that gain less at all, are frozen.

        Args:
            log_wealth: What the best expert of every view won on this pair lately, shape (views, statements).
            calls: Calls of this pair.
        """
        best = log_wealth
        behind = np.where(best > 0, best.max(axis=0) - best, np.inf).min(
            axis=1
        )  # a view that abstained is not behind
        early = calls < self.many_calls
        others, ahead = (self.part, 0.0) if early else (LATE_THINNING, BEHIND)
        lead = (best - best[~self._heavy].max(axis=0)).max(axis=1)
        too_heavy = self._heavy & ((behind > 0) | (lead < ahead))
        place = np.argsort(np.argsort(behind, kind="stable"), kind="stable")
        whole = (place < self.whole) & (np.isfinite(behind) | early) & ~too_heavy
        self.thinning = np.where(whole, 1, others).tolist()
        self.frozen = ((best.max() > BEHIND) & (too_heavy | (behind > BEHIND))).tolist()

    def thinned(self, thinning: int, zeros: int, ones: int) -> tuple[int, int]:
        """Return how many calls of either coin are among those that are seen, drawn without regard to the coins."""
        seen = -(-(zeros + ones) // thinning)
        few = (
            int(self._rng.hypergeometric(zeros, ones, seen)) if thinning > 1 else zeros
        )
        return few, seen - few

    def cut(
        self,
        sides: tuple[Array, Array],
        distinct: float,
        views: Sequence[View],
        partitions: Sequence[Partition],
    ) -> None:
        """Find the distinct outputs among those that are kept, when views have been cut anew.

        Args:
            sides: Rows under coin 0 and coin 1.
            distinct: The share of a sample of rows that are distinct.
            views: The views that were cut, and their partitions.
            partitions: Their partitions.
        """
        self._distinct = None
        if self.by_output and sides[0].shape[1] > 1 and distinct <= OFTEN_DISTINCT:
            rows = np.concatenate(sides)
            prints = fingerprint(rows)
            if len(np.unique(prints)) <= min(MOST_NAMES, len(rows) // 2):
                self._distinct = DistinctOutputs(rows, prints, views, partitions)

    def count(
        self,
        active: Sequence[int],
        views: Sequence[View],
        partitions: Sequence[Partition],
        sides: tuple[Array, Array],
    ) -> Floats:
        """Return the counts of a batch in the cells of some views, shape (2, all cells).

        Every call counts where outputs are counted by their distinct values, since every call pays for delta.

        Args:
            active: The places of the views.
            views: The views.
            partitions: Their partitions.
            sides: Rows under coin 0 and coin 1.
        """
        if self._distinct is not None:
            return np.stack([self._distinct.count(side) for side in sides])
        thinning = [self.thinning[k] for k in active]
        parts = {
            each: tuple(
                side[:seen]
                for side, seen in zip(
                    sides, self.thinned(each, len(sides[0]), len(sides[1])), strict=True
                )
            )
            for each in set(thinning)
        }
        return counted(views, partitions, [parts[each] for each in thinning])


class DistinctOutputs:
    """The different outputs that were seen, where they are few: then a batch is counted by output, and not by call.

    Args:
        rows: All outputs that are kept, shape (n, d).
        prints: Their fingerprints, shape (n,).
        views: The views that were cut into cells.
        partitions: Their partitions.
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
        self._cut = list(zip(views, partitions, strict=True))
        self._cells = [
            (partition.index(view.values(rows[first])), partition.size)
            for view, partition in self._cut
        ]

    def count(self, rows: Array) -> Floats:
        """Return the counts of rows in the cells of all views; rows that are new are looked at one by one."""
        prints = fingerprint(rows)
        *seen, others = self._names.count(prints)
        counts = np.concatenate(
            [
                np.bincount(cells, weights=seen, minlength=size)
                for cells, size in self._cells
            ]
        )
        if others:
            new = rows[self._names.index(prints) == len(seen)]
            counts += np.concatenate(
                [partition.count(view.values(new)) for view, partition in self._cut]
            )
        return counts


def counted(
    views: Sequence[View],
    partitions: Sequence[Partition],
    sides: Sequence[tuple[Array, ...]],
) -> Floats:
    """Return the counts of rows under coin 0 and coin 1 in the cells of views, shape (2, all cells).

    Args:
        views: The views.
        partitions: Their partitions.
        sides: For each view the rows that it sees, under coin 0 and under coin 1.
    """
    joined: dict[int, list[Array]] = {}
    counts = []
    for view, partition, (zeros, ones) in zip(views, partitions, sides, strict=True):
        if id(zeros) not in joined:
            few = len(zeros) + len(ones) <= FEW_ROWS
            joined[id(zeros)] = (
                [np.concatenate([zeros, ones])] if few else [zeros, ones]
            )
        seen = np.concatenate(
            [
                np.zeros(0),
                *(view.values(rows) for rows in joined[id(zeros)] if len(rows)),
            ]
        )
        counts.append(
            np.stack(
                [
                    partition.count(seen[: len(zeros)]),
                    partition.count(seen[len(zeros) :]),
                ]
            )
        )
    return np.concatenate(counts, axis=1).astype(np.float64)
