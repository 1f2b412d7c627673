"""Log-odds of an output with additive noise that the trace does not understand.

Two runs on both inputs with the same draws then differ by a constant, the shift, which
is the same for all draws. The family and the scale of the noise are fitted to the runs.
"""

from __future__ import annotations

import numpy as np

from auditdp.betting.forecasters.traced_noise import (
    MAX_FITTED_COLUMNS,
    ROUNDING,
    SPARE_RUNS,
    Laws,
    Ratio,
)
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats
from auditdp.tracing.noise_families import FAMILIES


def by_shift(ones: Floats, zeros: Floats) -> Ratio | None:
    """Return the log-odds of outputs that differ by a constant shift between inputs.

    Args:
        ones: Outputs on the data, shape (runs, numbers).
        zeros: Outputs on the neighbour with the same draws, of the same shape.

    Returns:
        The function from rows to log-odds. None if there is no shift, if it depends on
        the draws, if a shifted number has no noise, if the noise of several numbers is
        correlated, or if no family fits the noise. None also for outputs that are not
        finite, or have more than 64 numbers.
    """
    finite = np.isfinite(ones).all() and np.isfinite(zeros).all()
    if ones.shape != zeros.shape or ones.shape[1] > MAX_FITTED_COLUMNS or not finite:
        return None
    changes = zeros - ones
    shifts = np.median(changes, axis=0)
    tolerance = ROUNDING * max(np.abs(ones).max(), np.abs(zeros).max())
    moved = np.flatnonzero(np.abs(shifts) > tolerance)
    draws = ones[:, moved]
    is_drawn = [len(np.unique(column)) > SPARE_RUNS for column in draws.T]
    if not len(moved) or not all(is_drawn):
        return None
    if np.any(np.abs(changes - shifts) > tolerance):
        return None
    correlations = np.atleast_2d(np.corrcoef(draws.T)) - np.eye(len(moved))
    # Independent noise has smaller correlations in a hundred runs.
    if np.abs(correlations).max() > 0.5:
        return None
    centres = np.median(draws, axis=0)
    noise = draws - centres
    sizes = np.abs(noise).mean(axis=0)
    parts = list(noise.T)
    if sizes.max() <= 2 * sizes.min():
        # If all noise has nearly one size, one fit to all of it is better in the tails.
        parts = [noise.ravel()] * len(moved)
    laws = [_fitted(part) for part in parts]
    if not all(_fits(law, part) for law, part in zip(laws, parts, strict=True)):
        return None

    def log_odds(outputs: Array) -> Floats:
        values = outputs[:, moved].astype(float) - centres
        odds = np.zeros(len(outputs))
        with np.errstate(all="ignore"):
            for law, shift, x in zip(laws, shifts[moved], values.T, strict=True):
                odds += law.log_densities(x)[0] - law.log_densities(x - shift)[0]
        return odds

    return log_odds


def _fitted(noise: Floats) -> Laws:
    """Return the most likely law of noise whose median is 0, as ``Laws`` of one run."""
    size, deviation = float(np.mean(np.abs(noise))), float(np.std(noise))
    whole = np.rint(noise)
    if np.all(np.abs(noise - whole) <= ROUNDING * max(np.max(np.abs(noise)), 1.0)):
        # Two-sided geometric noise with this mean size has this ratio.
        ratio = (np.sqrt(1 + size**2) - 1) / size
        candidates = [
            ("two-sided geometric", (0.0, 1.0, 1 - ratio)),
            ("discrete Gaussian", (0.0, 1.0, deviation)),
        ]
    else:
        mean = float(np.mean(noise))
        candidates = [
            ("Laplace", (0.0, size, np.nan)),
            ("Gaussian", (mean, deviation, np.nan)),
            ("logistic", (mean, deviation * np.sqrt(3) / np.pi, np.nan)),
        ]
    laws = [Laws(FAMILIES[name], np.array([numbers])) for name, numbers in candidates]
    return max(laws, key=lambda law: float(law.log_densities(noise).sum()))


def _fits(law: Laws, noise: Floats) -> bool:
    """Return True if a law fits noise, by Kolmogorov's distance of distributions."""
    values, count = np.sort(noise), len(noise)
    location, scale, parameter = law.numbers[0]
    if law.family.is_whole:
        grid = np.arange(values[0], values[-1] + 1)
        expected = np.cumsum(np.exp(law.log_densities(grid)[0]))
        observed = np.searchsorted(values, grid, side="right") / count
    else:
        # All fitted families have a distribution function.
        assert law.family.distribution is not None
        expected = law.family.distribution((values - location) / scale, parameter)
        observed = (np.arange(count) + 0.5) / count
    # For 7 % of samples from the law itself, the distance is larger.
    return bool(np.abs(expected - observed).max() < 1.3 / np.sqrt(count))
