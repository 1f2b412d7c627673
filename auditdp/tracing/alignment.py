"""Which releases of two runs correspond, where one of them has more at a line.

A loop over the keys of the data draws once for each, and a new key may come first. Where the passes of a loop are told
apart by a text, such as the key, they are put together by it. Else the releases of a line are put together in order,
those that are left over being the ones without which values move least: the shorter sequence is matched with a
subsequence of the longer one, by dynamic programming. Draws of a line are independent and of one law, so every way to
put them together is a coupling: where keys come in another order, the one in which values move least may be tried as
well, and counts where the outputs are then the same.

A loop over records that tosses a coin for each has one more, or less, on inputs that differ in a record: the coins of the
others stay theirs, as where they are drawn as one vector. Nothing but their place tells them apart.

Noise that is compared: with a number an event of known probability, with other noise a maximum, with a table a choice.
"""

from __future__ import annotations

import math
import operator
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from auditdp.adjacency import Pair
from auditdp.adjacency.symmetry import changed_record
from auditdp.mechanism.calls.inputs import of_tensor
from auditdp.tracing.draws import CHOICE, COIN, MAXIMUM, WHOLE, Release, WatchedDraw
from auditdp.tracing.linear_forms import Form, is_numeric, number
from auditdp.tracing.noise_families import NoiseLaw, moves, same
from auditdp.tracing.plain_values import all_of, ndim, shape_of, size_of
from auditdp.tracing.sites import here
from auditdp.tracing.watched_run import Key, TracedRun, law_and_groups

MOST = 10_000
"""Pairs of releases of a line that are compared, at most."""
TOSSED = ("uniform", "coin")
"""Families of draws that coins are made of."""
FAR = 1e12
"""Stands for a distance that is no number."""


def aligned(
    recorded: TracedRun, replayed: TracedRun, *, in_order: bool = True
) -> dict[Key, list[int | None]]:
    """Return, for lines and families with other numbers of releases, the recorded one for each of the replay's.

    Args:
        recorded: The record.
        replayed: A replay, in which releases were put together in order.
        in_order: Whether the order of a line is kept. Else lines with as many releases are matched as well.
    """
    sides = (_by_key(recorded.releases), _by_key(replayed.releases))
    coins = [
        {key: some for key, some in side.items() if some[0].kind == COIN}
        for side in sides
    ]
    found = _of_records(*coins, both=(recorded, replayed))
    for key, mine in sides[0].items():
        theirs = sides[1].get(key, [])
        if (
            key in found
            or not theirs
            or len(mine) * len(theirs) > MOST
            or max(len(mine), len(theirs)) < 2
        ):
            continue
        if not in_order:
            found[key] = _assigned(mine, theirs)
        elif (labelled := _labelled(mine, theirs)) is not None:
            found[key] = labelled
        elif len(mine) != len(theirs):
            found[key] = _matched(mine, theirs)
    return found


def aligned_draws(
    recorded: TracedRun, replayed: TracedRun
) -> dict[Key, list[int | None]]:
    """Return, for lines and samplers that draw what a coin is made of for each record, the same for their draws."""
    sides: list[dict[Key, list[WatchedDraw]]] = []
    for run in (recorded, replayed):
        sides.append(defaultdict(list))
        for draw in run.draws:
            if draw.law.family in TOSSED:
                sides[-1][draw.site, draw.method].append(draw)
    return _of_records(*sides, both=(recorded, replayed))


def _of_records(
    recorded: Mapping[Key, Sequence[Any]],
    replayed: Mapping[Key, Sequence[Any]],
    *,
    both: tuple[TracedRun, TracedRun],
) -> dict[Key, list[int | None]]:
    """Return the number of the recorded one for each of the replay's, where both have as many for each of their records."""
    other = {key: (some, replayed.get(key, ())) for key, some in recorded.items()}
    other = {
        key: sides
        for key, sides in other.items()
        if sides[1] and len(sides[0]) != len(sides[1])
    }
    changed = changed_record(Pair(*(run.data for run in both))) if other else None
    found: dict[Key, list[int | None]] = {}
    if changed is None:
        return found
    place, (before, after) = changed
    for key, (mine, theirs) in other.items():
        if (
            before
            and not len(mine) % before
            and len(mine) // before * after == len(theirs)
        ):
            found[key] = []
            for start in range(0, len(mine), before):
                numbers: list[int | None] = [
                    one.number for one in mine[start : start + before]
                ]
                numbers[place : place + (after < before)] = [None] * (after > before)
                found[key] += numbers
    return found


def _by_key(releases: Sequence[Release]) -> dict[Key, list[Release]]:
    found: dict[Key, list[Release]] = defaultdict(list)
    for release in releases:
        found[release.site, release.law.family].append(release)
    return found


def _labelled(
    mine: Sequence[Release], theirs: Sequence[Release]
) -> list[int | None] | None:
    """Return the same by labels, None where they tell nothing: some are missing or come twice, or all are in place."""
    labels = [[release.label for release in side] for side in (mine, theirs)]
    if labels[0] == labels[1] or any(
        not all(side) or len(set(side)) < len(side) for side in labels
    ):
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
    from scipy.optimize import (
        linear_sum_assignment,
    )  # slow to load: only where it is needed

    rows, columns = linear_sum_assignment(
        [[_distance(one, other) for other in theirs] for one in mine]
    )
    taken = {
        int(column): mine[row].number for row, column in zip(rows, columns, strict=True)
    }
    return [taken.get(place) for place in range(len(theirs))]


def _distance(one: Release, other: Release) -> float:
    """Return how far apart two locations are."""
    if np.shape(one.centre) != np.shape(other.centre):
        return FAR
    return min(float(np.abs(moves(one.centre, other.centre)).sum()), FAR)


COMPARISONS: dict[str, tuple[Callable[[Any, Any], Any], bool, bool]] = {
    "less": (operator.lt, True, True),
    "less_equal": (operator.le, True, False),
    "greater": (operator.gt, False, False),
    "greater_equal": (operator.ge, False, True),
}
"""By the name of numpy's function: the operator, whether small noise makes it true, and whether equality counts as large."""
MIRRORED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}


def compare(noise: Any, other: Any, name: str) -> Any:
    """Return the result of a comparison by the name of numpy's function: an event where its probability is known."""
    if not isinstance(noise, Form):
        noise, other, name = other, noise, MIRRORED[name]
    compute, small, strict = COMPARISONS[name]
    if isinstance(other, Form):
        found = _tournament(noise, other, compute, small)
        if found is not None:
            return found
        other = other.settle("is compared with noise")
    event = _event(noise, other, small, strict)
    if event is None:
        return compute(noise.settle("is compared with a number"), other)
    probability, limits, below = event
    term = noise.terms[0]
    happened = noise.run.release(
        COIN, NoiseLaw("coin"), probability, compute(noise.value, other), here(), ()
    )
    if term.draw.used:  # noise that went into a release is compared as well
        noise.run.traced.releases[-1].earlier = tuple(term.draw.earlier(term.index))
    seen = of_tensor(happened)
    is_below = (
        seen
        if small == bool(all_of(number(term.factor) * term.draw.law.scale > 0))
        else np.logical_not(seen)
    )
    low, high = limits
    term.draw.limits[term.index if isinstance(term.index, int) else WHOLE] = (
        np.where(is_below, low, np.maximum(low, below))[()],
        np.where(is_below, np.minimum(high, below), high)[()],
    )
    return happened


def _event(
    noise: Form, other: Any, small: bool, strict: bool
) -> tuple[Any, tuple[Any, Any], Any] | None:
    """Return the probability that a comparison is true, given earlier ones, what these leave, and P(draw below)."""
    if noise.settled is not None or len(noise.terms) != 1 or not is_numeric(other):
        return None
    term, draw = noise.terms[0], noise.terms[0].draw
    family = draw.law.known
    if family is None or family.distribution is None or noise.weight is not None:
        return None
    key = term.index if isinstance(term.index, int) else WHOLE
    if key not in draw.limits and draw.compared(term.index):
        return None
    whole = isinstance(term.index, int) or size_of(term.index) == size_of(draw.value)
    if not whole or size_of(other) > max(size_of(noise.value), 1):
        return None
    with np.errstate(all="ignore"):
        scale = number(term.factor) * draw.law.scale
        if not all_of(scale):
            return None
        offset = 0.0 if noise.offset is None else noise.offset
        point = (number(other) - offset) / scale
        positive = bool(all_of(scale > 0))
        if not positive and not all_of(scale < 0):
            return None
        if family.is_whole:  # P(U < z) is P(U <= z − 1) for whole z
            takes_equal = strict == positive
            point = np.where(
                takes_equal, np.ceil(point - 1e-9) - 1, np.floor(point + 1e-9)
            )[()]
        below = family.distribution(point, draw.law.parameter)
        low, high = limits = draw.limits.get(key, (0.0, 1.0))
        width = high - low
        inside = np.clip(
            (np.clip(below, low, high) - low) / np.where(width > 0, width, 1.0),
            0.0,
            1.0,
        )
        probability = inside if small == positive else 1 - inside
    return (
        probability[()] if isinstance(probability, np.ndarray) else probability,
        limits,
        below,
    )


def _tournament(
    noise: Form, other: Form, compute: Callable[[Any, Any], Any], small: bool
) -> Any:
    """Return which of two scores with Gumbel noise is larger, as an event; None where they are none.

    The larger of two is again a score with Gumbel noise, ln(e^v + e^w), independent of which one it was.
    """
    laws = [one.law for one in (noise, other)]
    alike = laws[0].family == laws[1].family == "Gumbel" and same(
        laws[0].scale, laws[1].scale
    )
    if (
        not alike
        or ndim(noise.value)
        or ndim(other.value)
        or noise.settled
        or other.settled
    ):
        return None
    scale = float(laws[0].scale)
    if scale <= 0 or any(one.weight == -math.inf for one in (noise, other)):
        return None
    scores = (
        float(0.0 if one.offset is None else one.offset) / scale
        for one in (noise, other)
    )
    mine, theirs = (
        s if one.weight is None else one.weight
        for s, one in zip(scores, (noise, other), strict=True)
    )
    larger = 1 / (1 + math.exp(min(theirs - mine, 700.0)))
    chance, result = 1 - larger if small else larger, compute(noise.value, other.value)
    happened = noise.run.release(COIN, NoiseLaw("coin"), chance, result, here(), ())
    winner, loser = (other, noise) if bool(happened) == small else (noise, other)
    winner.weight, loser.weight = float(np.logaddexp(mine, theirs)), -math.inf
    return happened


def searched(noise: Form, table: Any, side: str) -> Any:
    """Return the place in a table of sums of a uniform draw, as a choice; None where it is none."""
    if (
        noise.settled is not None
        or len(noise.terms) != 1
        or ndim(noise.value) > 1
        or ndim(table) != 1
    ):
        return None
    draw = noise.terms[0].draw
    if draw.law.family not in ("uniform", "integer") or draw.limits or draw.used:
        return None
    scale = float(number(noise.terms[0].factor) * draw.law.scale)
    if not scale > 0 or ndim(noise.offset):
        return None
    points = (np.asarray(table, float) - float(noise.offset or 0.0)) / scale
    if draw.law.family == "integer":
        points = points / draw.law.parameter
    chances = np.diff(np.clip(points, 0.0, 1.0), prepend=0.0, append=1.0)
    plain = np.searchsorted(table, noise.value, side=side)  # type: ignore[call-overload]
    return noise.run.release(
        CHOICE, NoiseLaw("choice"), np.maximum(chances, 0.0), plain, here(), noise.terms
    )


def largest(noise: Form, *arguments: Any, **keywords: Any) -> Any:
    """Return the place of the largest entry: a release of its name alone, where scores have Gumbel noise."""
    law, groups = law_and_groups(noise.terms, shape_of(noise.value))
    scale = np.asarray(law.scale, float)
    if (
        noise.settled is not None
        or law.family != "Gumbel"
        or arguments
        or keywords
        or groups is not None
        or not scale.size
        or not all_of(scale == scale.flat[0])
        or not scale.flat[0] > 0
    ):
        return np.argmax(noise.settle("is used by its order"), *arguments, **keywords)
    location = np.broadcast_to(
        0.0 if noise.offset is None else noise.offset, shape_of(noise.value)
    ).ravel()
    made = NoiseLaw("Gumbel", float(scale.flat[0]))
    return noise.run.release(
        MAXIMUM, made, location.copy(), np.argmax(noise.value), here(), noise.terms
    )
