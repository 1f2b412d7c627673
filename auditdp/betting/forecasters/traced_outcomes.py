"""How likely outputs are by what chance decides: numbers that are told by one event or choice each.

They are independent, as in randomised response of many bits, and have the probabilities that the trace knows; so has a
number that is always the same on an input.

How likely outputs are by noise that is not followed: runs with the same draws move by the same amount on the other input.

Noise is added to such numbers, however that is made; so it is with the differences of running sums. Its family and scale are
those that fit the runs best.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditdp.betting.forecasters.traced_noise import (
    CLOSE,
    MOST_FITTED,
    SPARE,
    Laws,
    Ratio,
    SeenRuns,
    Table,
)
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats
from auditdp.tracing.chance import tables_of
from auditdp.tracing.draws import ALONE, NOISY
from auditdp.tracing.noise_families import FAMILIES

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


def by_chance(
    seen: SeenRuns, open_: NDArray[np.bool_], *, enough: bool
) -> list[DecidedNumbers] | None:
    """Return what events and choices decide; None where they lose, or open columns differ, and it is not known how."""
    one, other = seen.rows
    chances = [
        place
        for place in seen.places
        if seen.of(place)[0][0].kind not in (NOISY, ALONE)
    ]
    lossy = any(seen.loses(place) for place in chances)
    if not open_.any() and not lossy:
        return []
    if not enough or one.shape[1] > MOST_FITTED:
        return None
    found, free = [], np.ones(one.shape[1], bool)
    constant = np.zeros(len(one), int), (np.ones(1), np.ones(1)), False
    for results, (p, q), loses in [
        constant,
        *(s for place in chances for s in _sources(seen, place)),
    ][:MOST_SOURCES]:
        decided = np.flatnonzero(
            free & (_decided(results, one) & _decided(results, other))
        )
        free[decided] = False
        if loses and not len(decided):
            return None
        if outcome := _outcome(
            results, (p, q), (one[:, decided], other[:, decided]), decided
        ):
            found.append(outcome)
    return None if np.any(open_ & free) else found


Source = tuple[NDArray[np.int64], tuple[Floats, Floats], bool]
"""The outcome of an event or a choice in every run, the probabilities of all on both inputs, and whether these differ."""


def _sources(seen: SeenRuns, place: int) -> list[Source]:
    """Return the events or choices of a release whose probabilities are the same in all runs."""
    first, second = seen.of(place)
    results = np.array([np.ravel(release.result) for release in first]).astype(int)
    known = [
        [
            np.broadcast_to(tables_of(r), (results.shape[1], tables_of(r).shape[-1]))
            for r in side
        ]
        for side in (first, second)
    ]
    if any(table.shape != known[0][0].shape for side in known for table in side):
        return []
    one, other = (np.array(side) for side in known)
    if np.any(one != one[0]) or np.any(other != other[0]):
        return []
    return [
        (
            results[:, k],
            (one[0, k], other[0, k]),
            bool(np.any(one[0, k] != other[0, k])),
        )
        for k in range(results.shape[1])
    ]


def _decided(results: NDArray[np.int64], rows: Floats) -> NDArray[np.bool_]:
    """Return which columns are the same in all runs with the same result."""
    parts = [rows[results == result] for result in np.unique(results)]
    return np.asarray(
        np.all([np.all(part == part[0], axis=0) for part in parts], axis=0)
    )


def _outcome(
    results: NDArray[np.int64],
    chances: tuple[Floats, Floats],
    rows: tuple[Floats, Floats],
    columns: NDArray[np.intp],
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
        return DecidedNumbers(
            columns, np.array(list(masses)), np.log(one) - np.log(other), (one, other)
        )


CORRELATED = 0.5
"""Of numbers with noise that is not followed: beyond what independent ones have in so few runs."""
FARTHEST = 1.3
"""Kolmogorov's distance of noise from the law that fits it, times the root of their number: 7 % of samples are further."""
ALIKE = 2.0
"""How far sizes of noise may be apart for one law to be fitted to all of it."""


def by_shift(one: Floats, other: Floats) -> Ratio | None:
    """Return the log-odds of rows whose numbers move by the same amount with any draws; None where they do not.

    Args:
        one: Outputs on the data, shape (runs, numbers).
        other: Outputs on the neighbour with the same draws.
    """
    if (
        one.shape != other.shape
        or one.shape[1] > MOST_FITTED
        or not np.isfinite([one, other]).all()
    ):
        return None
    if (found := _by_shift(one, other)) is not None or one.shape[1] == 1:
        return found
    between = _by_shift(_differences(one), _differences(other))
    return (
        None
        if between is None
        else lambda outputs: between(_differences(outputs.astype(float)))
    )


def _differences(rows: Floats) -> Floats:
    """Return the first number of each row, and the differences of the others: what running sums are the sums of."""
    return np.diff(rows, axis=1, prepend=0.0)


def _by_shift(one: Floats, other: Floats) -> Ratio | None:
    """Return the log-odds of independent numbers that move by the same amount with any draws."""
    shifts = np.median(other - one, axis=0)
    near = CLOSE * max(np.abs(one).max(), np.abs(other).max())
    moved = np.flatnonzero(np.abs(shifts) > near)
    drawn = [len(np.unique(column)) > SPARE for column in one.T[moved]]
    if not len(moved) or not all(drawn) or np.any(np.abs(other - one - shifts) > near):
        return None
    correlations = np.atleast_2d(np.corrcoef(one[:, moved].T)) - np.eye(len(moved))
    if np.abs(correlations).max() > CORRELATED:
        return None
    centres = np.median(one[:, moved], axis=0)
    sizes = np.abs(one[:, moved] - centres).mean(axis=0)
    alike = sizes.max() <= ALIKE * sizes.min()  # then they are fitted together
    off = one[:, moved] - centres
    parts = [off.ravel()] * len(moved) if alike else list(off.T)
    fitted = [_fitted(part) for part in parts]
    if not all(_fits(law, part) for law, part in zip(fitted, parts, strict=True)):
        return None

    def ratio(outputs: Array) -> Floats:
        values = outputs[:, moved].astype(float) - centres
        laws = zip(fitted, shifts[moved], values.T, strict=True)
        with np.errstate(all="ignore"):
            odds = [
                law.log_densities(x)[0] - law.log_densities(x - shift)[0]
                for law, shift, x in laws
            ]
        return np.asarray(np.sum(odds, axis=0))

    return ratio


def _fitted(values: Floats) -> Laws:
    """Return the law that fits noise best whose median is 0."""
    size, deviation = float(np.mean(np.abs(values))), float(np.std(values))
    if np.all(
        np.abs(values - np.rint(values)) <= CLOSE * max(np.max(np.abs(values)), 1.0)
    ):
        ratio = (
            np.sqrt(1 + size**2) - 1
        ) / size  # of two-sided geometric noise with this mean size
        tried = [
            ("two-sided geometric", (0.0, 1.0, 1 - ratio)),
            ("discrete Gaussian", (0.0, 1.0, deviation)),
        ]
    else:
        mean = float(np.mean(values))
        tried = [
            ("Laplace", (0.0, size, np.nan)),
            ("Gaussian", (mean, deviation, np.nan)),
        ]
        tried.append(("logistic", (mean, deviation * np.sqrt(3) / np.pi, np.nan)))
    laws = [Laws(FAMILIES[name], np.array([numbers])) for name, numbers in tried]
    return max(laws, key=lambda law: float(law.log_densities(values).sum()))


def _fits(law: Laws, values: Floats) -> bool:
    """Return whether the distribution of values is no further from a law than that of a sample, by Kolmogorov's distance."""
    found, count = np.sort(values), len(values)
    _, scale, parameter = law.numbers[0]
    if law.family.is_whole:
        grid = np.arange(found[0], found[-1] + 1)
        below = np.cumsum(np.exp(law.log_densities(grid)[0]))
        return bool(
            np.abs(below - np.searchsorted(found, grid, side="right") / count).max()
            < FARTHEST / np.sqrt(count)
        )
    assert law.family.distribution is not None  # as those that are fitted have
    below = law.family.distribution((found - law.numbers[0, 0]) / scale, parameter)
    return bool(
        np.abs(below - (np.arange(count) + 0.5) / count).max()
        < FARTHEST / np.sqrt(count)
    )
