"""Noisy numbers as functions of an output, and their laws on both inputs.

A traced run records each value that noise is added to, and the law of the noise. If the
noisy number is the same linear function of the output's numbers in all runs, an output
determines the noisy number, and the law gives its density.
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
"""A function from rows to log-odds, with NaN for outputs unlike the traced ones."""
Table = tuple[Floats, Floats]
"""Log-odds, and the probability of each of them on one input."""
LinearFunction = tuple[NDArray[np.intp], Floats, float]
"""Columns of the output with their weights, and an offset."""

ROUNDING = 1e-9
"""Largest relative error that counts as rounding."""
MAX_FITTED_COLUMNS = 64
"""Largest number of varying numbers of an output in a regression: this bounds time."""
SPARE_RUNS = 8
"""Number of runs, beyond the number of columns, that confirm a linear function."""


@dataclass(frozen=True, eq=False)
class Laws:
    """The laws of one noisy number on one input, one for each run.

    Attributes:
        family: The family of the noise.
        numbers: Location, scale, and shape parameter or NaN, shape (runs, 3).
    """

    family: Family
    numbers: Floats

    def log_densities(self, values: Floats) -> Floats:
        """Return the log density of each value by each law, shape (runs, values)."""
        location, scale, shape = self.numbers.T[..., None]
        parameter = None if np.isnan(shape[0]) else shape
        found: Floats = self.family.log_densities(values, location, scale, parameter)
        return found

    def same_as(self, other: Laws) -> bool:
        """Return True if the laws are equal, run by run."""
        equal = np.array_equal(self.numbers, other.numbers, equal_nan=True)
        return self.family is other.family and equal

    def transformed(self, old: LinearFunction, new: LinearFunction) -> Laws | None:
        """Return the laws of another linear function of the output.

        Args:
            old: The function whose laws these are.
            new: The other function.

        Returns:
            The laws. None if the functions differ, unless both are functions of the
            same single column and the noise is continuous.
        """
        (columns, weights, offset), (new_columns, new_weights, new_offset) = old, new
        same_columns = np.array_equal(columns, new_columns)
        if not same_columns:
            return None
        if np.allclose([*weights, offset], [*new_weights, new_offset], ROUNDING):
            return self
        if self.family.is_whole or len(columns) != 1:
            return None
        ratio = new_weights[0] / weights[0]
        shift = new_offset - ratio * offset
        numbers = self.numbers * (ratio, ratio, 1.0) + (shift, 0.0, 0.0)
        return Laws(self.family, numbers)

    def common(self) -> Laws | None:
        """Return the law that all runs have, as one run, or None if their laws differ.

        A difference of locations by rounding is ignored.
        """
        tolerance = 0.0
        if not self.family.is_whole:
            tolerance = ROUNDING * abs(self.numbers[0, 1])
        location, others = self.numbers[:, 0], self.numbers[:, 1:]
        repeated = np.tile(others[0], (len(others), 1))
        if not np.array_equal(others, repeated, equal_nan=True):
            return None
        # The difference of two equal infinite locations is NaN.
        near = np.abs(location - location[0]) <= tolerance
        if not np.all(near | (location == location[0])):
            return None
        return Laws(self.family, self.numbers[:1])


@dataclass(frozen=True, eq=False)
class NoisyNumber:
    """One noisy number, as a linear function of the output, and its laws.

    Attributes:
        columns: The columns of the output in the function.
        weights: The weight of each of these columns.
        offset: The constant of the function.
        laws: The laws of the number on the data, and on the neighbour.
    """

    columns: NDArray[np.intp]
    weights: Floats
    offset: float
    laws: tuple[Laws, Laws]

    def values(self, outputs: Floats) -> Floats:
        """Return the noisy number in each output."""
        return np.asarray(outputs[:, self.columns] @ self.weights + self.offset)

    def log_odds(self, outputs: Floats) -> Floats:
        """Return the log-odds of each output, by the laws of the first run."""
        values = self.values(outputs)
        one, zero = (law.log_densities(values)[0] for law in self.laws)
        return np.asarray(one - zero)

    def tables(self) -> list[Table]:
        """Return log-odds on a grid and their probabilities, for each input.

        The laws are those of the first run.
        """
        tables = []
        for side, law in enumerate(self.laws):
            location, scale, _ = law.numbers[0]
            # Light tails have no mass beyond forty scales; the step is 1/50 of a scale.
            grid = np.linspace(-40.0, 40.0, 4_001)
            if law.family.is_whole:
                grid = np.arange(-4_000.0, 4_001.0)
            values = location + scale * grid
            with np.errstate(all="ignore"):
                one, zero = (each.log_densities(values)[0] for each in self.laws)
                masses = np.exp((one, zero)[side])
                odds = np.nan_to_num(one - zero, nan=0.0, posinf=np.inf, neginf=-np.inf)
            tables.append((odds, masses / masses.sum()))
        return tables


def laws_of(releases: Sequence[Release]) -> list[Laws] | None:
    """Return the laws of each number of a release, or None if they are unknown.

    Each ``Laws`` has one law for each run.

    Args:
        releases: The release in each run.
    """
    family = releases[0].law.known
    if family is None or family.log_density is None:
        return None
    rows = []
    for release in releases:
        shape = np.nan if release.law.parameter is None else release.law.parameter
        parts = (release.centre, release.law.scale, shape)
        rows.append(
            [
                np.broadcast_to(np.asarray(part, float), release.shape).ravel()
                for part in parts
            ]
        )
    numbers = np.array(rows)
    return [Laws(family, numbers[:, :, k]) for k in range(numbers.shape[2])]


def results_of(releases: Sequence[Release]) -> Floats:
    """Return the noisy values of a release in each run, shape (runs, numbers)."""
    results = [np.ravel(np.real(release.result)) for release in releases]
    return np.array(results).astype(float)


def function_of(values: Floats, rows: Floats) -> LinearFunction | None:
    """Fit a value as a linear function of an output.

    Functions of one column are tried first, then those of two columns (a step of a
    training is the difference of two models), then those of all columns.

    Args:
        values: The value in each run, shape (runs,).
        rows: The outputs, shape (runs, numbers).

    Returns:
        The function. None if none fits up to rounding, if more than 64 columns vary, or
        if there are too few runs to confirm a function of all columns.
    """
    equal = np.flatnonzero(np.all(rows == values[:, None], axis=0))
    if len(equal):
        return equal[:1], np.ones(1), 0.0
    # A column that is constant or not finite determines nothing.
    varies = np.isfinite(rows).all(axis=0) & np.any(rows != rows[0], axis=0)
    varying = np.flatnonzero(varies)
    if not 0 < len(varying) <= MAX_FITTED_COLUMNS:
        return None
    centre, middle = rows[:, varying].mean(axis=0), values.mean()
    moves, target = rows[:, varying] - centre, values - middle
    tolerance = ROUNDING * np.max(np.abs(values))
    columns = _fitting_columns(target, moves, tolerance)
    if columns is None:
        if len(values) < len(varying) + SPARE_RUNS:
            return None
        columns = np.arange(len(varying))
    weights, *_ = np.linalg.lstsq(moves[:, columns], target, rcond=None)
    if np.abs(moves[:, columns] @ weights - target).max() > tolerance:
        return None
    return varying[columns], weights, float(middle - centre[columns] @ weights)


def _fitting_columns(
    target: Floats, moves: Floats, tolerance: float
) -> NDArray[np.intp] | None:
    """Return the first column, or else two columns, that determine the target linearly.

    Args:
        target: The values around their mean, shape (runs,).
        moves: The columns around their means, shape (runs, columns).
        tolerance: Largest error of a fit.

    Returns:
        One or two indices, or None if no columns fit.
    """
    firsts = [np.zeros(0, np.intp)]
    # Two runs determine the weights of two columns, and four more confirm them.
    if len(target) >= 6:
        firsts += [np.array([k]) for k in range(moves.shape[1])]
    for first in firsts:
        rest, left = moves, target
        for own in moves[:, first].T:
            # The part that the first column explains is subtracted from both sides.
            rest = moves - np.multiply.outer(own, own @ moves / (own @ own))
            left = target - own * (own @ target / (own @ own))
        with np.errstate(all="ignore"):
            slopes = left @ rest / np.square(rest).sum(axis=0)
            errors = np.abs(slopes * rest - left[:, None]).max(axis=0)
        fits = (errors <= tolerance) & np.isfinite(slopes) & (slopes != 0)
        if fits.any():
            return np.append(first, np.flatnonzero(fits)[0])
    return None


@dataclass(frozen=True, eq=False)
class TracedRuns:
    """Traced runs of a pair, each with its replay on the other input.

    Attributes:
        traces: One comparison for each run.
        forward: For each run, True if it was recorded on the data and replayed on the
            neighbour, False for the reverse.
        rows: The outputs on the data, and those on the neighbour with the same results
            of all releases, each of shape (runs, numbers).
    """

    traces: Sequence[PairTrace]
    forward: Sequence[bool]
    rows: tuple[Floats, Floats]

    @property
    def is_alike(self) -> bool:
        """True if all runs are traced in full, and have the same releases.

        It is False if the control flow of a run depends on the input.
        """
        kinds = []
        for trace in self.traces:
            if trace.extent != "full" or trace.second.parted:
                return False
            firsts = [moved.first for moved in trace.moved]
            kinds.append([(r.site, r.kind, r.law.family, r.shape) for r in firsts])
        return all(kind == kinds[0] for kind in kinds)

    @property
    def places(self) -> range:
        """The indices of the releases."""
        return range(len(self.traces[0].moved))

    def of(self, place: int) -> tuple[list[Release], list[Release]]:
        """Return release ``place`` of each run, on the data and on the neighbour."""
        ones, zeros = [], []
        for trace, is_forward in zip(self.traces, self.forward, strict=True):
            moved = trace.moved[place]
            both = [moved.first, moved.second]
            ones.append(both[1 - is_forward])
            zeros.append(both[is_forward])
        return ones, zeros

    def loses(self, place: int) -> bool:
        """Return True if the loss of a release is positive or unknown in some run."""
        losses = [trace.moved[place].loss for trace in self.traces]
        return any(loss is None or any(loss) for loss in losses)
