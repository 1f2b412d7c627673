"""Correspondence of the releases of two runs with different numbers of them.

A loop over the keys of the data draws once for each key, and a new key may come first.
The releases of a line correspond in order. The surplus ones are those without which
values move least: dynamic programming matches the shorter sequence with a subsequence
of the longer one. Draws of a line are independent and of one law, so every
correspondence is a coupling. Keys may also come in another order on the neighbour. So
there is a second correspondence, in which values move least and order does not matter.

A loop over records may toss a coin for each record. Then two inputs that differ in a
record have different numbers of coins. The other records keep their coins, as if all
coins were drawn as one vector.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from auditdp.adjacency import Pair
from auditdp.adjacency.symmetry import changed_record
from auditdp.numerics.arrays import Floats
from auditdp.tracing.draws import COIN, Release, WatchedDraw
from auditdp.tracing.noise_families import moves
from auditdp.tracing.trace_limits import LIMITS
from auditdp.tracing.watched_run import (
    Alignment,
    Item,
    Key,
    TracedRun,
    family_key,
    sampler_key,
)

TOSSED = ("uniform", "coin")
"""Families of draws with which code tosses a coin: uniform draws, and coins."""

Numbers = list[int | None]
"""Number of the recorded item for each item of a replay; None for a new one."""


class RunAlignment(NamedTuple):
    """Correspondence of the releases and of the draws of a replay with its record."""

    releases: Alignment
    draws: Alignment


def aligned(
    recorded: TracedRun, replayed: TracedRun, *, in_order: bool = True
) -> RunAlignment | None:
    """Return a better alignment of a replay with its record, or None.

    Args:
        recorded: The record.
        replayed: A replay of it.
        in_order: Whether releases of a line keep their order. Then only lines with
            different numbers of releases are aligned anew. Else the releases of every
            line are matched so that values move least.

    Returns:
        The alignment of the lines that are aligned anew. None if there is no such line,
        or if the replay has this alignment already.
    """
    before, after = (_by_key(run.releases, family_key) for run in (recorded, replayed))
    # Coins of records come first, since their places are known exactly.
    found = _by_record(recorded, replayed, *map(_coins, (before, after)))
    for key, mine in before.items():
        theirs = after.get(key, [])
        is_feasible = theirs and len(mine) * len(theirs) <= LIMITS.compared_releases
        if key in found or not is_feasible or max(len(mine), len(theirs)) < 2:
            continue
        if not in_order:
            found[key] = _by_distance(mine, theirs)
            continue
        if len(mine) != len(theirs):
            found[key] = _in_order(mine, theirs)
    if not found:
        return None
    tossed, tossed_again = (
        _by_key(filter(_is_tossed, run.draws), sampler_key)
        for run in (recorded, replayed)
    )
    draws = _by_record(recorded, replayed, tossed, tossed_again)
    own = {key: [each.recorded for each in after[key]] for key in found}
    # The draws of a first replay are in order.
    moved = [key for key in draws if not _is_in_order(draws[key], tossed[key])]
    if found == own and not (in_order and moved):
        return None
    return RunAlignment(found, draws)


def _is_in_order(numbers: Numbers, items: Sequence[WatchedDraw]) -> bool:
    own = [item.number for item in items][: len(numbers)]
    return numbers == own + [None] * (len(numbers) - len(own))


def _by_key(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    found: dict[Key, list[Item]] = defaultdict(list)
    for item in items:
        found[key(item)].append(item)
    return found


def _is_tossed(draw: WatchedDraw) -> bool:
    return draw.law.family in TOSSED


def _coins(by_key: Mapping[Key, list[Release]]) -> dict[Key, list[Release]]:
    return {key: found for key, found in by_key.items() if found[0].kind == COIN}


def _by_record(
    recorded: TracedRun,
    replayed: TracedRun,
    before: Mapping[Key, Sequence[Item]],
    after: Mapping[Key, Sequence[Item]],
) -> dict[Key, Numbers]:
    """Return the correspondence of draws or releases that a loop makes for each record.

    Args:
        recorded: The record.
        replayed: The replay.
        before: The recorded draws or releases, by their key.
        after: The draws or releases of the replay, by their key.

    Returns:
        The ``Numbers`` of each key that has different counts of items before and after,
        if the loop makes one item for each record. Empty if the inputs do not differ in
        one record.
    """
    keys = [key for key in before if key in after]
    keys = [key for key in keys if len(before[key]) != len(after[key])]
    pair = Pair(recorded.data, replayed.data)
    changed = changed_record(pair) if keys else None
    if changed is None:
        return {}
    place, (records, others) = changed
    found: dict[Key, Numbers] = {}
    for key in keys:
        numbers = [item.number for item in before[key]]
        if not records or len(numbers) % records:
            continue
        # The loop may run several times over all records.
        passes = len(numbers) // records
        if passes * others != len(after[key]):
            continue
        found[key] = []
        for start in range(0, len(numbers), records):
            # The missing record leaves its place, and a new one has no recorded draw.
            one_pass: Numbers = list(numbers[start : start + records])
            one_pass[place : place + (others < records)] = [None] * (others > records)
            found[key] += one_pass
    return found


def _in_order(mine: Sequence[Release], theirs: Sequence[Release]) -> Numbers:
    """Return the correspondence that keeps the order and in which values move least.

    Args:
        mine: The recorded releases of a line.
        theirs: The releases of the replay at this line.
    """
    distances = _distances(mine, theirs)
    is_shorter = len(mine) < len(theirs)
    if not is_shorter:
        distances = distances.T
    short, long = distances.shape
    surplus = long - short
    # least[i][k] is the smallest total move of the first i items of the shorter
    # sequence, if k items of the longer one are left out.
    least = np.full((short + 1, surplus + 1), np.inf)
    least[0] = 0.0
    for i in range(short):
        for k in range(surplus + 1):
            least[i + 1, k] = least[i, : k + 1].min() + distances[i, i + k]
    # The path back through the table names the place of each item.
    places, k = [0] * short, int(np.argmin(least[short]))
    for i in range(short - 1, -1, -1):
        places[i] = i + k
        k = int(np.argmin(least[i, : k + 1]))
    if not is_shorter:
        return [mine[place].number for place in places]
    return _numbers(mine, range(short), places, long)


def _by_distance(mine: Sequence[Release], theirs: Sequence[Release]) -> Numbers:
    """Return the correspondence in which values move least, in any order.

    The arguments are as for ``_in_order``: of the record, and of the replay.
    """
    # SciPy is slow to load, so it is imported only if it is needed.
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(_distances(mine, theirs))
    return _numbers(mine, rows, columns, len(theirs))


def _numbers(
    mine: Sequence[Release], rows: Iterable[int], columns: Iterable[int], count: int
) -> Numbers:
    numbers: Numbers = [None] * count
    for row, column in zip(rows, columns, strict=True):
        numbers[column] = mine[row].number
    return numbers


def _distances(mine: Sequence[Release], theirs: Sequence[Release]) -> Floats:
    """Return the L1 distance of each recorded location from each one of a replay.

    Returns:
        The distances, of shape (recorded releases, releases of the replay).
    """
    # Infinite distances would leave the assignment without a solution.
    far = 1e12
    distances = np.full((len(mine), len(theirs)), far)
    for i, first in enumerate(mine):
        for k, second in enumerate(theirs):
            if np.shape(first.centre) == np.shape(second.centre):
                moved = np.abs(moves(first.centre, second.centre)).sum()
                distances[i, k] = min(float(moved), far)
    return distances
