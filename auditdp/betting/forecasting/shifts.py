"""How likely outputs are by noise that is not followed: runs with the same draws move by the same amount on the other input.

Noise is added to such numbers, however that is made; so it is with the differences of running sums. Its family and scale are
those that fit the runs best.
"""

from __future__ import annotations

import numpy as np

from auditdp.betting.forecasting.noise_laws import CLOSE, MOST_FITTED, SPARE, Laws, Ratio
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats
from auditdp.tracing.families import FAMILIES

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
