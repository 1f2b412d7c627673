"""How likely outputs are on either input, read off runs of the code that were traced on both.

**Noise.** A value with noise that is a number of the output, or a linear function of its numbers, has the density that the
trace knows. Where what noise is added to differs from run to run, since rows are shuffled or sampled before, the density is
averaged over the runs. Where it differs without such chance it depends on earlier noise, as a gradient on the model: then it
is read as a linear function of the earlier noisy values, and what that leaves counts as noise.

**Noise that is not followed.** Runs on both inputs with the same draws, where every number of the output moves by the same
amount whatever is drawn, add noise to it, however that is made; so it is with the differences of running sums. Its family
and scale are those that fit the runs best.

**Chance.** Numbers of the output that are decided by one event or choice each, as in randomised response of many bits, are
independent, and have the probabilities that the trace knows; so has a number that is always the same on an input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from auditdp.betting.wealth.forecasts import Law
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats
from auditdp.tracing import PairTrace
from auditdp.tracing.draws import ALONE, NOISY, Release
from auditdp.tracing.families import FAMILIES, Family
from auditdp.tracing.losses import tables_of

Ratio = Callable[[Array], Floats]
"""Log-odds of rows, NaN for those that do not look like the traced ones."""
CLOSE = 1e-9
"""How far, relatively, rounding may take a noisy value from a linear function of the output."""
MOST_FITTED = 64
"""Numbers of an output among which linear functions are looked for, and what chance decides."""
SPARE = 8
"""Runs beyond the numbers of an output that a linear function of all of them has to fit."""
MORE_THAN_NEEDED, NEARLY = 4, 0.25
"""Runs beyond the coefficients of a linear function of earlier noisy values; what it may leave over, in scales."""
CORRELATED = 0.5
"""Of numbers with noise that is not followed: beyond what independent ones have in so few runs."""
FARTHEST = 1.3
"""Kolmogorov's distance of noise from the law that fits it, times the root of their number: 7 % of samples are further."""
ALIKE = 2.0
"""How far sizes of noise may be apart for one law to be fitted to all of it."""
MOST_SOURCES = 256
"""Events and choices that are looked at."""
GRID, WHOLE_GRID = np.linspace(-40.0, 40.0, 4_001), np.arange(-4_000, 4_001)
"""Where the density of noise is looked at, in its scales."""
DRAWN = 2_048
EVENLY = np.full(DRAWN, 1 / DRAWN)
"""Of the sums of several log-odds so many are drawn."""
Table = tuple[Floats, Floats]
"""Log-odds, and how often each comes on an input."""


@dataclass(frozen=True, eq=False)
class SeenRuns:
    """Traced runs of a pair.

    Attributes:
        traces: One for each run, recorded on the data or on the neighbour.
        forward: Whether it was recorded on the data.
        rows: The outputs on the data, and those on the neighbour with the same results of all releases, each of shape
            (runs, numbers).
    """

    traces: Sequence[PairTrace]
    forward: Sequence[bool]
    rows: tuple[Floats, Floats]

    @property
    def is_alike(self) -> bool:
        """Whether all of them are understood in full, and have the same releases on both inputs."""
        kinds = [
            [(m.first.site, m.first.kind, m.first.law.family, m.first.shape) for m in each.moved]
            for each in self.traces
        ]
        understood = all(each.extent == "full" and not each.second.parted for each in self.traces)
        return understood and all(one == kinds[0] for one in kinds)

    @property
    def places(self) -> range:
        """The releases, by their number."""
        return range(len(self.traces[0].moved))

    def of(self, place: int) -> tuple[list[Release], list[Release]]:
        """Return a release in all runs, on the data and on the neighbour."""
        pairs = [(m.first, m.second) for m in (each.moved[place] for each in self.traces)]
        first, second = zip(
            *(pair if forward else pair[::-1] for pair, forward in zip(pairs, self.forward, strict=True)), strict=True
        )
        return list(first), list(second)

    def loses(self, place: int) -> bool:
        """Return whether a release loses anything, or may."""
        return any(moved.loss is None or any(moved.loss) for moved in (each.moved[place] for each in self.traces))


def ratio_of(seen: SeenRuns, fixed: Sequence[int], *, averaged: bool) -> tuple[Ratio, Law | None] | None:
    """Return the log-odds of rows, and how often they are which where that is known; None where they cannot be read.

    Args:
        seen: The runs.
        fixed: Columns that are to be as they were in all runs, if they were the same there.
        averaged: Whether there are runs enough to average over them, and to see what chance decides.
    """
    if not seen.is_alike:
        return None
    hidden = averaged and any(seen.of(place)[0][0].kind != NOISY for place in seen.places)
    entries: list[NoisyNumber] = []
    one, other = seen.rows
    open_ = np.any((one != other) & ~(np.isnan(one) & np.isnan(other)), axis=0)
    for place in seen.places:
        lossy = seen.loses(place)
        if (lossy or open_.any()) and seen.of(place)[0][0].kind in (NOISY, ALONE):
            found = _entries(seen, place, entries, open_=bool(open_.any()), averaged=hidden)
            if found is None and lossy:
                return None
            entries += found or []
    open_[[entry.columns[0] for entry in entries if len(entry.columns) == 1]] = False
    outcomes = _by_chance(seen, open_, enough=averaged)
    if outcomes is None or not (entries or outcomes):
        return None
    same = {k: seen.rows[0][0, k] for k in fixed if len({*seen.rows[0][:, k].tolist()}) == 1}

    def ratio(outputs: Array) -> Floats:
        outputs = outputs.astype(float)
        odds = _log_odds_by(entries, outputs) if entries else np.zeros(len(outputs))
        for each in outcomes:
            odds = odds + each.log_odds(outputs)
        for place, value in same.items():
            odds[outputs[:, place] != value] = np.nan
        return np.asarray(odds)

    return ratio, _law_of([*entries, *outcomes])


def _law_of(parts: Sequence[NoisyNumber | _Outcome]) -> Law | None:
    """Return how often rows have which log-odds, by parts that are independent; None where that differs from run to run."""
    tables = [part.tables() for part in parts]
    known = [table for table in tables if table is not None]
    if len(known) < len(tables):
        return None
    rng, found = np.random.default_rng(0), []
    for side in (0, 1):
        odds, masses = known[0][side]
        if len(known) > 1:
            drawn = [rng.choice(each[side][0], DRAWN, p=each[side][1]) for each in known]
            with np.errstate(invalid="ignore"):
                odds, masses = np.nan_to_num(np.sum(drawn, axis=0), nan=0.0, posinf=np.inf, neginf=-np.inf), EVENLY
        found.append((odds, masses))
    return Law(*(np.concatenate(each) for each in zip(*found, strict=True))).grouped()


LinearFunction = tuple[NDArray[np.intp], Floats, float]
"""Columns of the output with their weights, and an offset."""


@dataclass(frozen=True, eq=False)
class Laws:
    """The laws of one noisy number on one input, one for each run.

    Attributes:
        family: Of the noise.
        numbers: What it is added to, its scale, and its parameter or NaN, shape (runs, 3).
    """

    family: Family
    numbers: Floats

    def log_densities(self, values: Floats) -> Floats:
        """Return the log density of each value by each law, shape (runs, values)."""
        assert self.family.log_density is not None  # else it is not read
        location, scale, parameter = self.numbers.T[..., None]
        logs = self.family.log_density((values - location) / scale, None if np.isnan(parameter[0]) else parameter)
        return np.asarray(logs) - (0.0 if self.family.is_whole else np.log(np.abs(scale)))

    def same_as(self, other: Laws) -> bool:
        """Return whether two have the same laws, run by run."""
        return self.family is other.family and np.array_equal(self.numbers, other.numbers, equal_nan=True)

    def read_by(self, function: LinearFunction, other: LinearFunction) -> Laws | None:
        """Return the laws of what another function of the output gives; None where both are not of one same column."""
        (columns, weights, offset), (others, by, start) = function, other
        if np.array_equal(columns, others) and np.allclose([*weights, offset], [*by, start], CLOSE):
            return self
        if self.family.is_whole or len(columns) != 1 or columns[0] != others[0]:
            return None
        ratio = by[0] / weights[0]
        moved = self.numbers * (ratio, ratio, 1.0) + (start - ratio * offset, 0.0, 0.0)
        return Laws(self.family, moved)

    def one(self) -> Laws | None:
        """Return their law where it is the same in all runs."""
        alike = all(np.array_equal(row, self.numbers[0], equal_nan=True) for row in self.numbers)
        return Laws(self.family, self.numbers[:1]) if alike else None


@dataclass(frozen=True, eq=False)
class NoisyNumber:
    """One noisy number, as a linear function of those of the output, and its laws on both inputs.

    Attributes:
        columns: Numbers of the output that it follows, with ``weights`` and ``offset``.
        laws: Its laws on the data, and on the neighbour.
        slopes: How what noise is added to grows with each number of the output, on either input.
    """

    columns: NDArray[np.intp]
    weights: Floats
    offset: float
    laws: tuple[Laws, Laws]
    slopes: tuple[Floats, Floats] | None = None

    def values(self, outputs: Floats) -> Floats:
        """Return what it is in each output."""
        return np.asarray(outputs[:, self.columns] @ self.weights + self.offset)

    def log_densities(self, outputs: Floats, side: int) -> Floats:
        """Return its log density in each output by the laws of an input, shape (runs, outputs)."""
        # A matrix product's last bits would depend on how many outputs there are.
        moved = 0.0 if self.slopes is None else np.multiply(outputs, self.slopes[side], order="C").sum(axis=1)
        return self.laws[side].log_densities(self.values(outputs) - moved)

    def tables(self) -> list[Table] | None:
        """Return which log-odds it has how often on either input; None where that differs from run to run."""
        if self.slopes is not None or any(len(law.numbers) > 1 for law in self.laws):
            return None
        found = []
        for side, law in enumerate(self.laws):
            location, scale, _ = law.numbers[0]
            values = location + scale * (WHOLE_GRID if law.family.is_whole else GRID)
            with np.errstate(all="ignore"):
                one, other = (each.log_densities(values)[0] for each in self.laws)
                odds, masses = (
                    np.nan_to_num(one - other, nan=0.0, posinf=np.inf, neginf=-np.inf),
                    np.exp((one, other)[side]),
                )
            found.append((odds, masses / masses.sum()))
        return found


def _log_odds_by(entries: Sequence[NoisyNumber], outputs: Floats) -> Floats:
    """Return the log-odds of outputs by their noisy numbers, whose joint density is averaged over runs."""
    with np.errstate(all="ignore"):
        sides = [np.asarray(sum(entry.log_densities(outputs, side) for entry in entries)) for side in (0, 1)]
        one, other = (side[0] if len(side) == 1 else logsumexp(side, axis=0) - np.log(len(side)) for side in sides)
        return np.asarray(one - other)


def _entries(
    seen: SeenRuns, place: int, before: Sequence[NoisyNumber], *, open_: bool, averaged: bool
) -> list[NoisyNumber] | None:
    """Return the numbers of one release that have another law on the other input; None where one cannot be read.

    Where outputs differ, these may be numbers as well that the output shows otherwise on the other input.
    """
    sides = seen.of(place)
    if any(release.groups is not None or release.earlier for release in sides[0]):
        return None
    laws = [laws_of(side) for side in sides]
    values = np.array([np.ravel(np.real(release.result)).astype(float) for release in sides[0]])
    entries = []
    for k in range(values.shape[1]):
        both = tuple(None if side is None else side[k] if averaged else side[k].one() for side in laws)
        slopes = None
        if laws[0] and laws[1] and None in both and not averaged and not open_:
            followed = [_following(side[k], seen.rows[0], before) for side in (laws[0], laws[1])]
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
        if one is not None and moved is not None and not (slopes is None and both[0].same_as(moved)):
            entries.append(NoisyNumber(*one, (both[0], moved), slopes))
    return entries


def _following(laws: Laws, rows: Floats, before: Sequence[NoisyNumber]) -> tuple[Laws, Floats] | None:
    """Return the law of a number whose location follows earlier ones, and how it grows with each number of the output."""
    columns = np.unique(np.concatenate([entry.columns for entry in before])) if before else np.zeros(0, np.intp)
    location, scale, parameter = laws.numbers.T
    if len(rows) < len(columns) + 1 + MORE_THAN_NEEDED or np.any(scale != scale[0]):
        return None
    known = np.column_stack([rows[:, columns], np.ones(len(rows))])
    weights, *_ = np.linalg.lstsq(known, location, rcond=None)
    off = float(np.linalg.norm(known @ weights - location) / np.sqrt(len(rows) - len(weights)))
    if not off <= NEARLY * abs(scale[0]):
        return None
    slopes = np.zeros(rows.shape[1])
    slopes[columns] = weights[:-1]
    return Laws(laws.family, np.array([[weights[-1], np.hypot(scale[0], off), parameter[0]]])), slopes


def laws_of(releases: Sequence[Release]) -> list[Laws] | None:
    """Return the laws of every number of a release; None where they are not known."""
    known = releases[0].law.known
    if known is None or known.log_density is None:
        return None
    numbers = np.array([_numbers(release) for release in releases])
    return [Laws(known, numbers[:, :, k]) for k in range(numbers.shape[2])]


def _numbers(release: Release) -> Floats:
    """Return location, scale and parameter of every number of a release, shape (3, numbers)."""
    parameter = np.nan if release.law.parameter is None else release.law.parameter
    parts = (release.centre, release.law.scale, parameter)
    return np.array([np.broadcast_to(np.asarray(part, float), release.shape).ravel() for part in parts])


def function_of(values: Floats, rows: Floats) -> LinearFunction | None:
    """Return how a value follows from an output: columns with their weights, and an offset; None where it does not."""
    alike = np.flatnonzero(np.all(rows == values[:, None], axis=0))
    if len(alike):
        return alike[:1], np.ones(1), 0.0
    if rows.shape[1] > MOST_FITTED:
        return None
    low, high = int(np.argmin(values)), int(np.argmax(values))
    near = CLOSE * np.max(np.abs(values))
    with np.errstate(all="ignore"):
        slopes = (values[high] - values[low]) / (rows[high] - rows[low])
        offsets = values[low] - slopes * rows[low]
        fits = np.all(np.abs(slopes * rows + offsets - values[:, None]) <= near, axis=0)
    if len(found := np.flatnonzero(fits & np.isfinite(slopes) & (slopes != 0))):
        return found[:1], slopes[found[:1]], float(offsets[found[0]])
    if len(values) < rows.shape[1] + SPARE or not np.isfinite(rows).all():
        return None
    weights, *_ = np.linalg.lstsq(np.column_stack([rows, np.ones(len(rows))]), values, rcond=None)
    off = np.abs(rows @ weights[:-1] + weights[-1] - values).max()
    return (np.arange(rows.shape[1]), np.asarray(weights[:-1], float), float(weights[-1])) if off <= near else None


@dataclass(frozen=True, eq=False)
class _Outcome:
    """Numbers of the output that one event or choice decides: what they may be, and the log-odds of each."""

    columns: NDArray[np.intp]
    values: Floats
    odds: Floats
    masses: tuple[Floats, Floats]

    def tables(self) -> list[Table]:
        return [(self.odds, side) for side in self.masses]

    def log_odds(self, outputs: Floats) -> Floats:
        found = np.full(len(outputs), np.nan)
        for value, odds in zip(self.values, self.odds, strict=True):
            found[np.all(outputs[:, self.columns] == value, axis=1)] = odds
        return found


def _by_chance(seen: SeenRuns, open_: NDArray[np.bool_], *, enough: bool) -> list[_Outcome] | None:
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
) -> _Outcome | None:
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
        return _Outcome(columns, np.array(list(masses)), np.log(one) - np.log(other), (one, other))


def by_shift(one: Floats, other: Floats) -> Ratio | None:
    """Return the log-odds of rows whose numbers move by the same amount with any draws; None where they do not.

    Args:
        one: Outputs on the data, shape (runs, numbers).
        other: Outputs on the neighbour with the same draws.
    """
    if one.shape != other.shape or one.shape[1] > MOST_FITTED or not np.isfinite([one, other]).all():
        return None
    if (found := _by_shift(one, other)) is not None or one.shape[1] == 1:
        return found
    between = _by_shift(_differences(one), _differences(other))
    return None if between is None else lambda outputs: between(_differences(outputs.astype(float)))


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
            odds = [law.log_densities(x)[0] - law.log_densities(x - shift)[0] for law, shift, x in laws]
        return np.asarray(np.sum(odds, axis=0))

    return ratio


def _fitted(values: Floats) -> Laws:
    """Return the law that fits noise best whose median is 0."""
    size, deviation = float(np.mean(np.abs(values))), float(np.std(values))
    if np.all(np.abs(values - np.rint(values)) <= CLOSE * max(np.max(np.abs(values)), 1.0)):
        ratio = (np.sqrt(1 + size**2) - 1) / size  # of two-sided geometric noise with this mean size
        tried = [("two-sided geometric", (0.0, 1.0, 1 - ratio)), ("discrete Gaussian", (0.0, 1.0, deviation))]
    else:
        mean = float(np.mean(values))
        tried = [("Laplace", (0.0, size, np.nan)), ("Gaussian", (mean, deviation, np.nan))]
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
            np.abs(below - np.searchsorted(found, grid, side="right") / count).max() < FARTHEST / np.sqrt(count)
        )
    assert law.family.distribution is not None  # as those that are fitted have
    below = law.family.distribution((found - law.numbers[0, 0]) / scale, parameter)
    return bool(np.abs(below - (np.arange(count) + 0.5) / count).max() < FARTHEST / np.sqrt(count))
