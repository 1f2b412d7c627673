"""How likely outputs are by what chance decides: numbers that are told by one event or choice each.

They are independent, as in randomised response of many bits, and have the probabilities that the trace knows; so has a
number that is always the same on an input.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditdp.betting.forecasting.noise_laws import MOST_FITTED, Table
from auditdp.betting.forecasting.seen_runs import SeenRuns
from auditdp.numerics.arrays import Floats
from auditdp.tracing.draws import ALONE, NOISY
from auditdp.tracing.losses import tables_of

MOST_SOURCES = 256
"""Events and choices that are looked at."""


@dataclass(frozen=True, eq=False)
class DecidedNumbers:
    """Numbers of the output that one event or choice decides: what they may be, and the log-odds of each."""

    columns: NDArray[np.intp]
    values: Floats
    odds: Floats
    masses: tuple[Floats, Floats]

    def tables(self) -> list[Table]:
        """Return which log-odds they have how often on either input."""
        return [(self.odds, side) for side in self.masses]

    def log_odds(self, outputs: Floats) -> Floats:
        """Return the log-odds of rows, NaN for values that no run had."""
        found = np.full(len(outputs), np.nan)
        for value, odds in zip(self.values, self.odds, strict=True):
            found[np.all(outputs[:, self.columns] == value, axis=1)] = odds
        return found


def by_chance(seen: SeenRuns, open_: NDArray[np.bool_], *, enough: bool) -> list[DecidedNumbers] | None:
    """Return what events and choices decide; None where they lose, or open columns differ, and it is not known how."""
    one, other = seen.rows
    chances = [place for place in seen.places if seen.of(place)[0][0].kind not in (NOISY, ALONE)]
    lossy = any(seen.loses(place) for place in chances)
    if not open_.any() and not lossy:
        return []
    if not enough or one.shape[1] > MOST_FITTED:
        return None
    found, free = [], np.ones(one.shape[1], bool)
    constant = np.zeros(len(one), int), (np.ones(1), np.ones(1)), False
    for results, (p, q), loses in [constant, *(s for place in chances for s in _sources(seen, place))][:MOST_SOURCES]:
        decided = np.flatnonzero(free & (_decided(results, one) & _decided(results, other)))
        free[decided] = False
        if loses and not len(decided):
            return None
        if outcome := _outcome(results, (p, q), (one[:, decided], other[:, decided]), decided):
            found.append(outcome)
    return None if np.any(open_ & free) else found


Source = tuple[NDArray[np.int64], tuple[Floats, Floats], bool]
"""The outcome of an event or a choice in every run, the probabilities of all on both inputs, and whether these differ."""


def _sources(seen: SeenRuns, place: int) -> list[Source]:
    """Return the events or choices of a release whose probabilities are the same in all runs."""
    first, second = seen.of(place)
    results = np.array([np.ravel(release.result) for release in first]).astype(int)
    known = [
        [np.broadcast_to(tables_of(r), (results.shape[1], tables_of(r).shape[-1])) for r in side]
        for side in (first, second)
    ]
    if any(table.shape != known[0][0].shape for side in known for table in side):
        return []
    one, other = (np.array(side) for side in known)
    if np.any(one != one[0]) or np.any(other != other[0]):
        return []
    return [
        (results[:, k], (one[0, k], other[0, k]), bool(np.any(one[0, k] != other[0, k])))
        for k in range(results.shape[1])
    ]


def _decided(results: NDArray[np.int64], rows: Floats) -> NDArray[np.bool_]:
    """Return which columns are the same in all runs with the same result."""
    parts = [rows[results == result] for result in np.unique(results)]
    return np.asarray(np.all([np.all(part == part[0], axis=0) for part in parts], axis=0))


def _outcome(
    results: NDArray[np.int64], chances: tuple[Floats, Floats], rows: tuple[Floats, Floats], columns: NDArray[np.intp]
) -> DecidedNumbers | None:
    """Return what some columns may be, with the log-odds; None where these are 0."""
    masses: dict[tuple[float, ...], list[float]] = {}
    for result in np.unique(results).tolist():
        for side in (0, 1):
            value = tuple(rows[side][results == result][0].tolist())
            masses.setdefault(value, [0.0, 0.0])[side] += float(chances[side][result])
    one, other = np.array(list(masses.values())).T
    if not len(columns) or np.array_equal(one, other):
        return None
    with np.errstate(divide="ignore"):
        return DecidedNumbers(columns, np.array(list(masses)), np.log(one) - np.log(other), (one, other))
