"""Noisy numbers as functions of an output, and their laws on either input.

Traced runs of a pair, from which it is read how likely outputs are on either input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats
from auditdp.tracing import PairTrace
from auditdp.tracing.draws import Release
from auditdp.tracing.noise_families import Family

Ratio = Callable[[Array], Floats]
"""Log-odds of rows, NaN for those that do not look like the traced ones."""
CLOSE = 1e-9
"""How far, relatively, rounding may take a noisy value from a linear function of the output."""
MOST_FITTED = 64
"""Numbers of an output among which linear functions are looked for, and what chance decides."""
SPARE, OF_TWO = 8, 6
"""Runs beyond the numbers of an output that a linear function of all of them has to fit; runs that one of two has to."""
GRID, WHOLE_GRID = np.linspace(-40.0, 40.0, 4_001), np.arange(-4_000, 4_001)
"""Where the density of noise is looked at, in its scales."""
Table = tuple[Floats, Floats]
"""Log-odds, and how often each comes on an input."""
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
        location, scale, parameter = self.numbers.T[..., None]
        found: Floats = self.family.log_densities(
            values, location, scale, None if np.isnan(parameter[0]) else parameter
        )
        return found

    def same_as(self, other: Laws) -> bool:
        """Return whether two have the same laws, run by run."""
        return self.family is other.family and np.array_equal(
            self.numbers, other.numbers, equal_nan=True
        )

    def read_by(self, function: LinearFunction, other: LinearFunction) -> Laws | None:
        """Return the laws of what another function of the output gives; None where both are not of one same column."""
        (columns, weights, offset), (others, by, start) = function, other
        if np.array_equal(columns, others) and np.allclose(
            [*weights, offset], [*by, start], CLOSE
        ):
            return self
        if self.family.is_whole or len(columns) != 1 or columns[0] != others[0]:
            return None
        ratio = by[0] / weights[0]
        moved = self.numbers * (ratio, ratio, 1.0) + (start - ratio * offset, 0.0, 0.0)
        return Laws(self.family, moved)

    def one(self) -> Laws | None:
        """Return their law where it is the same in all runs, up to how what noise is added to was rounded."""
        near = 0.0 if self.family.is_whole else CLOSE * abs(self.numbers[0, 1])
        location, others = self.numbers[:, 0], self.numbers[:, 1:]
        alike = np.array_equal(
            others, np.tile(others[0], (len(others), 1)), equal_nan=True
        )
        alike = alike and bool(
            np.all((np.abs(location - location[0]) <= near) | (location == location[0]))
        )
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
        moved = (
            0.0
            if self.slopes is None
            else np.multiply(outputs, self.slopes[side], order="C").sum(axis=1)
        )
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
    return np.array(
        [
            np.broadcast_to(np.asarray(part, float), release.shape).ravel()
            for part in parts
        ]
    )


def function_of(values: Floats, rows: Floats) -> LinearFunction | None:
    """Return how a value follows from an output: columns with their weights, and an offset; None where it does not."""
    alike = np.flatnonzero(np.all(rows == values[:, None], axis=0))
    if len(alike):
        return alike[:1], np.ones(1), 0.0
    drawn = np.flatnonzero(
        np.isfinite(rows).all(axis=0) & np.any(rows != rows[0], axis=0)
    )  # others tell nothing
    rows = rows[:, drawn]
    if not 0 < len(drawn) <= MOST_FITTED:
        return None
    low, high = int(np.argmin(values)), int(np.argmax(values))
    near = CLOSE * np.max(np.abs(values))
    with np.errstate(all="ignore"):
        slopes = (values[high] - values[low]) / (rows[high] - rows[low])
        offsets = values[low] - slopes * rows[low]
        fits = np.all(np.abs(slopes * rows + offsets - values[:, None]) <= near, axis=0)
    if len(found := np.flatnonzero(fits & np.isfinite(slopes) & (slopes != 0))):
        return drawn[found[:1]], slopes[found[:1]], float(offsets[found[0]])
    if (both := _two_columns(values, rows, near)) is not None:
        return drawn[both[0]], *both[1:]
    if len(values) < rows.shape[1] + SPARE:
        return None
    weights, *_ = np.linalg.lstsq(
        np.column_stack([rows, np.ones(len(rows))]), values, rcond=None
    )
    off = np.abs(rows @ weights[:-1] + weights[-1] - values).max()
    return (
        (drawn, np.asarray(weights[:-1], float), float(weights[-1]))
        if off <= near
        else None
    )


def _two_columns(values: Floats, rows: Floats, near: float) -> LinearFunction | None:
    """Return how a value follows from two numbers of an output, as a step does from the models before it and after it."""
    if len(values) < OF_TWO:
        return None
    centre, middle = rows.mean(axis=0), values.mean()
    off, value = rows - centre, values - middle
    with np.errstate(all="ignore"):
        for k, own in enumerate(off.T):
            rest, left = (
                each - np.multiply.outer(own, own @ each / (own @ own))
                for each in (off, value)
            )
            slopes = left @ rest / np.square(rest).sum(axis=0)
            fits = (
                np.all(np.abs(slopes * rest - left[:, None]) <= near, axis=0)
                & np.isfinite(slopes)
                & (slopes != 0)
            )
            if len(others := np.flatnonzero(fits)):
                columns = np.array([k, others[0]])
                weights, *_ = np.linalg.lstsq(off[:, columns], value, rcond=None)
                return columns, weights, float(middle - centre[columns] @ weights)
    return None


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
            [
                (m.first.site, m.first.kind, m.first.law.family, m.first.shape)
                for m in each.moved
            ]
            for each in self.traces
        ]
        understood = all(
            each.extent == "full" and not each.second.parted for each in self.traces
        )
        return understood and all(one == kinds[0] for one in kinds)

    @property
    def places(self) -> range:
        """The releases, by their number."""
        return range(len(self.traces[0].moved))

    def of(self, place: int) -> tuple[list[Release], list[Release]]:
        """Return a release in all runs, on the data and on the neighbour."""
        pairs = [
            (m.first, m.second) for m in (each.moved[place] for each in self.traces)
        ]
        first, second = zip(
            *(
                pair if forward else pair[::-1]
                for pair, forward in zip(pairs, self.forward, strict=True)
            ),
            strict=True,
        )
        return list(first), list(second)

    def loses(self, place: int) -> bool:
        """Return whether a release loses anything, or may."""
        return any(
            moved.loss is None or any(moved.loss)
            for moved in (each.moved[place] for each in self.traces)
        )
