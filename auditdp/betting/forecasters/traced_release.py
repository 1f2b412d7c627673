"""How likely outputs are on either input, read off runs of the code that were traced on both.

A value with noise that is a number of the output, or a linear function of its numbers, has the density that the trace knows.
Where what noise is added to differs from run to run, since rows are shuffled or sampled before, the density is averaged over
the runs. Where it differs without such chance it depends on earlier noise, as a gradient on the model: then it is read as a
linear function of the earlier noisy values, and what that leaves counts as noise. Numbers that chance decides are in
`traced_outcomes.py`, and noise that is not followed in `traced_outcomes.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

from auditdp.betting.forecasters.traced_noise import (
    Laws,
    NoisyNumber,
    Ratio,
    SeenRuns,
    function_of,
    laws_of,
)
from auditdp.betting.forecasters.traced_outcomes import DecidedNumbers, by_chance
from auditdp.betting.wealth.forecasts import Law
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats
from auditdp.tracing.draws import ALONE, NOISY

MORE_THAN_NEEDED, NEARLY = 4, 0.25
"""Runs beyond the coefficients of a linear function of earlier noisy values; what it may leave over, in scales."""
DRAWN = 2_048
EVENLY = np.full(DRAWN, 1 / DRAWN)
"""Of the sums of several log-odds so many are drawn."""


def ratio_of(
    seen: SeenRuns, fixed: Sequence[int], *, averaged: bool
) -> tuple[Ratio, Law | None] | None:
    """Return the log-odds of rows, and how often they are which where that is known; None where they cannot be read.

    Args:
        seen: The runs.
        fixed: Columns that are to be as they were in all runs, if they were the same there.
        averaged: Whether there are runs enough to average over them, and to see what chance decides.
    """
    if not seen.is_alike:
        return None
    hidden = averaged and any(
        seen.of(place)[0][0].kind != NOISY for place in seen.places
    )
    entries: list[NoisyNumber] = []
    one, other = seen.rows
    open_ = np.any((one != other) & ~(np.isnan(one) & np.isnan(other)), axis=0)
    for place in seen.places:
        lossy = seen.loses(place)
        if (lossy or open_.any()) and seen.of(place)[0][0].kind in (NOISY, ALONE):
            found = _entries(
                seen, place, entries, open_=bool(open_.any()), averaged=hidden
            )
            if found is None and lossy:
                return None
            entries += found or []
    open_[[entry.columns[0] for entry in entries if len(entry.columns) == 1]] = False
    outcomes = by_chance(seen, open_, enough=averaged)
    if outcomes is None or not (entries or outcomes):
        return None
    same = {
        k: seen.rows[0][0, k] for k in fixed if len({*seen.rows[0][:, k].tolist()}) == 1
    }

    def ratio(outputs: Array) -> Floats:
        outputs = outputs.astype(float)
        odds = _log_odds_by(entries, outputs) if entries else np.zeros(len(outputs))
        for each in outcomes:
            odds = odds + each.log_odds(outputs)
        for place, value in same.items():
            odds[outputs[:, place] != value] = np.nan
        return np.asarray(odds)

    return ratio, _law_of([*entries, *outcomes])


def _law_of(parts: Sequence[NoisyNumber | DecidedNumbers]) -> Law | None:
    """Return how often rows have which log-odds, by parts that are independent; None where that differs from run to run."""
    tables = [part.tables() for part in parts]
    known = [table for table in tables if table is not None]
    if len(known) < len(tables):
        return None
    rng, found = np.random.default_rng(0), []
    for side in (0, 1):
        odds, masses = known[0][side]
        if len(known) > 1:
            drawn = [
                rng.choice(each[side][0], DRAWN, p=each[side][1]) for each in known
            ]
            with np.errstate(invalid="ignore"):
                odds, masses = (
                    np.nan_to_num(
                        np.sum(drawn, axis=0), nan=0.0, posinf=np.inf, neginf=-np.inf
                    ),
                    EVENLY,
                )
        found.append((odds, masses))
    return Law(*(np.concatenate(each) for each in zip(*found, strict=True))).grouped()


def _log_odds_by(entries: Sequence[NoisyNumber], outputs: Floats) -> Floats:
    """Return the log-odds of outputs by their noisy numbers, whose joint density is averaged over runs."""
    with np.errstate(all="ignore"):
        sides = [
            np.asarray(sum(entry.log_densities(outputs, side) for entry in entries))
            for side in (0, 1)
        ]
        one, other = (
            side[0] if len(side) == 1 else logsumexp(side, axis=0) - np.log(len(side))
            for side in sides
        )
        return np.asarray(one - other)


def _entries(
    seen: SeenRuns,
    place: int,
    before: Sequence[NoisyNumber],
    *,
    open_: bool,
    averaged: bool,
) -> list[NoisyNumber] | None:
    """Return the numbers of one release that have another law on the other input; None where one cannot be read.

    Where outputs differ, these may be numbers as well that the output shows otherwise on the other input.
    """
    sides = seen.of(place)
    if any(release.groups is not None or release.earlier for release in sides[0]):
        return None
    laws = [laws_of(side) for side in sides]
    values = np.array(
        [np.ravel(np.real(release.result)).astype(float) for release in sides[0]]
    )
    entries = []
    for k in range(values.shape[1]):
        both = tuple(
            None if side is None else side[k] if averaged else side[k].one()
            for side in laws
        )
        slopes = None
        if laws[0] and laws[1] and None in both and not averaged and not open_:
            followed = [
                _following(side[k], seen.rows[0], before) for side in (laws[0], laws[1])
            ]
            if followed[0] is not None and followed[1] is not None:
                both, slopes = zip(*followed, strict=True)
        if both[0] is None or both[1] is None:
            return None
        if (alike := slopes is None and both[0].same_as(both[1])) and not open_:
            continue
        one, other = (function_of(values[:, k], rows) for rows in seen.rows)
        moved = None if one is None or other is None else both[1].read_by(other, one)
        if moved is None and not alike:
            return None
        if (
            one is not None
            and moved is not None
            and not (slopes is None and both[0].same_as(moved))
        ):
            entries.append(NoisyNumber(*one, (both[0], moved), slopes))
    return entries


def _following(
    laws: Laws, rows: Floats, before: Sequence[NoisyNumber]
) -> tuple[Laws, Floats] | None:
    """Return the law of a number whose location follows earlier ones, and how it grows with each number of the output."""
    columns = (
        np.unique(np.concatenate([entry.columns for entry in before]))
        if before
        else np.zeros(0, np.intp)
    )
    location, scale, parameter = laws.numbers.T
    if len(rows) < len(columns) + 1 + MORE_THAN_NEEDED or np.any(scale != scale[0]):
        return None
    known = np.column_stack([rows[:, columns], np.ones(len(rows))])
    weights, *_ = np.linalg.lstsq(known, location, rcond=None)
    off = float(
        np.linalg.norm(known @ weights - location) / np.sqrt(len(rows) - len(weights))
    )
    if not off <= NEARLY * abs(scale[0]):
        return None
    slopes = np.zeros(rows.shape[1])
    slopes[columns] = weights[:-1]
    return Laws(
        laws.family, np.array([[weights[-1], np.hypot(scale[0], off), parameter[0]]])
    ), slopes
