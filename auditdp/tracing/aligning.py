"""Which releases of two runs correspond, where one of them has more at a line.

A loop over the keys of the data draws once for each, and a new key may come first. Where the passes of a loop are told
apart by a text, such as the key, they are put together by it. Else the releases of a line are put together in order,
those that are left over being the ones without which values move least: the shorter sequence is matched with a
subsequence of the longer one, by dynamic programming. Draws of a line are independent and of one law, so every way to
put them together is a coupling: where keys come in another order, the one in which values move least may be tried as
well, and counts where the outputs are then the same.

A loop over records that tosses a coin for each has one more, or less, on inputs that differ in a record: the coins of the
others stay theirs, as where they are drawn as one vector. Nothing but their place tells them apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from auditdp.adjacency import Pair
from auditdp.adjacency.alike import changed_record
from auditdp.tracing.draws import COIN, Release, WatchedDraw
from auditdp.tracing.families import moves
from auditdp.tracing.run import Key, TracedRun

MOST = 10_000
"""Pairs of releases of a line that are compared, at most."""
TOSSED = ("uniform", "coin")
"""Families of draws that coins are made of."""
FAR = 1e12
"""Stands for a distance that is no number."""


def aligned(recorded: TracedRun, replayed: TracedRun, *, in_order: bool = True) -> dict[Key, list[int | None]]:
    """Return, for lines and families with other numbers of releases, the recorded one for each of the replay's.

    Args:
        recorded: The record.
        replayed: A replay, in which releases were put together in order.
        in_order: Whether the order of a line is kept. Else lines with as many releases are matched as well.
    """
    sides = (_by_key(recorded.releases), _by_key(replayed.releases))
    coins = [{key: some for key, some in side.items() if some[0].kind == COIN} for side in sides]
    found = _of_records(*coins, both=(recorded, replayed))
    for key, mine in sides[0].items():
        theirs = sides[1].get(key, [])
        if key in found or not theirs or len(mine) * len(theirs) > MOST or max(len(mine), len(theirs)) < 2:
            continue
        if not in_order:
            found[key] = _assigned(mine, theirs)
        elif (labelled := _labelled(mine, theirs)) is not None:
            found[key] = labelled
        elif len(mine) != len(theirs):
            found[key] = _matched(mine, theirs)
    return found


def aligned_draws(recorded: TracedRun, replayed: TracedRun) -> dict[Key, list[int | None]]:
    """Return, for lines and samplers that draw what a coin is made of for each record, the same for their draws."""
    sides: list[dict[Key, list[WatchedDraw]]] = []
    for run in (recorded, replayed):
        sides.append(defaultdict(list))
        for draw in run.draws:
            if draw.law.family in TOSSED:
                sides[-1][draw.site, draw.method].append(draw)
    return _of_records(*sides, both=(recorded, replayed))


def _of_records(
    recorded: Mapping[Key, Sequence[Any]], replayed: Mapping[Key, Sequence[Any]], *, both: tuple[TracedRun, TracedRun]
) -> dict[Key, list[int | None]]:
    """Return the number of the recorded one for each of the replay's, where both have as many for each of their records."""
    other = {key: (some, replayed.get(key, ())) for key, some in recorded.items()}
    other = {key: sides for key, sides in other.items() if sides[1] and len(sides[0]) != len(sides[1])}
    changed = changed_record(Pair(*(run.data for run in both))) if other else None
    found: dict[Key, list[int | None]] = {}
    if changed is None:
        return found
    place, (before, after) = changed
    for key, (mine, theirs) in other.items():
        if before and not len(mine) % before and len(mine) // before * after == len(theirs):
            found[key] = []
            for start in range(0, len(mine), before):
                numbers: list[int | None] = [one.number for one in mine[start : start + before]]
                numbers[place : place + (after < before)] = [None] * (after > before)
                found[key] += numbers
    return found


def _by_key(releases: Sequence[Release]) -> dict[Key, list[Release]]:
    found: dict[Key, list[Release]] = defaultdict(list)
    for release in releases:
        found[release.site, release.law.family].append(release)
    return found


def _labelled(mine: Sequence[Release], theirs: Sequence[Release]) -> list[int | None] | None:
    """Return the same by labels, None where they tell nothing: some are missing or come twice, or all are in place."""
    labels = [[release.label for release in side] for side in (mine, theirs)]
    if labels[0] == labels[1] or any(not all(side) or len(set(side)) < len(side) for side in labels):
        return None
    numbers = {release.label: release.number for release in mine}
    return [numbers.get(release.label) for release in theirs]


def _matched(mine: Sequence[Release], theirs: Sequence[Release]) -> list[int | None]:
    """Return the number of the recorded release for each of the replay's, None for those that correspond to none."""
    short, long = (mine, theirs) if len(mine) < len(theirs) else (theirs, mine)
    spare = len(long) - len(short)
    # least[i][k]: of the first i of the short ones, where k of the long ones were passed over.
    least = np.full((len(short) + 1, spare + 1), np.inf)
    least[0] = 0.0
    for i, one in enumerate(short):
        for k in range(spare + 1):
            least[i + 1, k] = least[i, : k + 1].min() + _distance(one, long[i + k])
    places, k = [0] * len(short), int(np.argmin(least[len(short)]))
    for i in range(len(short) - 1, -1, -1):
        places[i] = i + k
        k = int(np.argmin(least[i, : k + 1]))
    if short is mine:
        taken = dict(zip(places, (release.number for release in mine), strict=True))
        return [taken.get(place) for place in range(len(theirs))]
    return [mine[place].number for place in places]


def _assigned(mine: Sequence[Release], theirs: Sequence[Release]) -> list[int | None]:
    """Return the same in any order: the assignment in which values move least."""
    from scipy.optimize import linear_sum_assignment  # slow to load: only where it is needed

    rows, columns = linear_sum_assignment([[_distance(one, other) for other in theirs] for one in mine])
    taken = {int(column): mine[row].number for row, column in zip(rows, columns, strict=True)}
    return [taken.get(place) for place in range(len(theirs))]


def _distance(one: Release, other: Release) -> float:
    """Return how far apart two locations are."""
    if np.shape(one.centre) != np.shape(other.centre):
        return FAR
    return min(float(np.abs(moves(one.centre, other.centre)).sum()), FAR)
