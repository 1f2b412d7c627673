"""Log-odds of two normal laws with one covariance, which is estimated.

A model that was trained with Gaussian noise is nearly normal, and so is the list of its
steps. The log-odds of two normal laws with one covariance are linear in the output:
they grow along the direction of Fisher (1936, "The use of multiple measurements in
taxonomic problems"). The *score* of an output is its product with this direction.
Beside the direction, only two moments of the scores have to be estimated. So few
outputs suffice for a claim (ε, δ) with a small δ, which is decided in the tails. If
noise is used twice, there is a direction without any variance.

`NormalRatio` learns from calls of the game. It estimates the distance of the scores on
other calls than the direction, so that the distance is not overestimated. `by_change`
learns from runs on both inputs with the same draws. Their difference is nearly free of
noise, so few runs determine both laws. `by_threshold` learns the best threshold of one
number from the same runs, for outputs that are far from normal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Self

import numpy as np
from scipy.special import ndtri

from auditdp.betting.limits import LARGEST_FINITE
from auditdp.betting.wealth.forecasts import Law
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats, Labels


class NormalLimits:
    """Limits of the fit of normal laws."""

    min_calls = 16
    """Smallest number of calls for the first fit."""
    correlated_columns = 256
    """Largest number of columns whose covariances are estimated: this bounds time."""
    min_deviation = 1e-6
    """Smallest standard deviation of noise, relative to the values: less is
    rounding."""
    distance = 1e6
    """Largest distance of two laws, in standard deviations, that is estimated."""


class NormalRatio:
    """Forecasts by two normal laws with one covariance, learned from calls."""

    name = "normal ratio"

    def __init__(self) -> None:
        self._next_fit = NormalLimits.min_calls
        self._line: tuple[Floats, float, float] | None = None

    def fit(self, outputs: Array, labels: Labels) -> Self:
        """Learn the direction, and the distance of the scores along it.

        The last fit stays until calls have grown by a quarter. The first fit needs 16
        calls. Every fit needs four calls of each coin, and at most 65,536 numbers.

        Args:
            outputs: Shape (n, ...).
            labels: The coins, shape (n,).
        """
        rows = _rows(outputs)
        rarest = min(labels.sum(), (1 - labels).sum())
        too_few = len(rows) < self._next_fit or rarest < NormalLimits.min_calls // 4
        # More than 65,536 numbers take too much memory.
        if too_few or rows.shape[1] > 1 << 16:
            return self
        # If each fit has a quarter more calls, all take five times as long as the last.
        self._next_fit = math.ceil(1.25 * len(rows))
        # Sorted by coin, every second row makes a half with half of each coin's calls.
        order = np.argsort(labels, kind="stable")
        halves = [(rows[part], labels[part]) for part in (order[::2], order[1::2])]
        distances = [
            _separation(other[0] @ _direction(*half), other[1])[0]
            for half, other in (halves, halves[::-1])
        ]
        # One standard error is subtracted: too large a distance loses more than too
        # small a distance.
        distance = max(float(np.mean(distances)) - 1 / math.sqrt(len(rows)), 0.0)
        direction = _direction(rows, labels)
        _, middle, deviation = _separation(rows @ direction, labels)
        slope = distance / max(deviation, np.finfo(float).tiny)
        self._line = direction, middle, slope
        return self

    def log_odds(self, outputs: Array) -> Floats:
        """Return the log-odds of each output; 0 before the first fit."""
        if self._line is None:
            return np.zeros(len(outputs))
        return _scores(outputs, *self._line)


def by_change(
    ones: Floats, zeros: Floats
) -> tuple[Callable[[Array], Floats], Law] | None:
    """Fit two normal laws to runs on both inputs that had the same draws.

    Two runs with the same draws are one observation of the noise. Their means have its
    covariance, and their difference is the change of the output between the inputs.

    Args:
        ones: Outputs on the data, shape (runs, numbers).
        zeros: Outputs on the neighbour with the same draws, of the same shape.

    Returns:
        The function from outputs to log-odds and the law of these log-odds. None if the
        mean change is 0 or differs too much between runs to be estimated, if more than
        256 finite numbers vary or none does, or if the outputs differ in length.
    """
    if ones.shape != zeros.shape:
        return None
    both = np.concatenate([ones, zeros])
    # A column that is not finite, or the same in all runs, has no part in the laws.
    varies = np.isfinite(both).all(axis=0) & (both != both[0]).any(axis=0)
    columns = np.flatnonzero(varies)
    if not 0 < len(columns) <= NormalLimits.correlated_columns:
        return None
    changes = (ones - zeros)[:, columns]
    draws = ((ones + zeros) / 2)[:, columns]
    scale = _column_scale(both[:, columns])
    change = changes.mean(axis=0)
    centre = draws.mean(axis=0)
    fits = [
        _fitted_direction(change, draws - centre, scale, correlated)
        for correlated in (True, False)
    ]
    distance, shrunk, direction, deviation = max(fits, key=lambda fit: fit[1])
    error = (changes @ direction).std() / math.sqrt(len(ones))
    moved = abs(float(change @ direction))
    # Draws may move the change by 0.17 standard deviations of the scores.
    accurate = error <= 0.17 * max(deviation, 0.17 * moved)
    if not distance > 0 or not accurate:
        return None
    deviation = max(deviation, np.finfo(float).tiny)
    square = min(shrunk, NormalLimits.distance) ** 2
    unbiased = square - len(columns) * (error / deviation) ** 2
    square = max(unbiased, square * NormalLimits.min_deviation)
    middle = float(centre @ direction)
    slope = square / (distance * deviation)

    def log_odds(outputs: Array) -> Floats:
        rows = outputs.reshape(len(outputs), -1)[:, columns]
        return _scores(rows, direction, middle, slope)

    return log_odds, normal_law(square)


def _fitted_direction(
    change: Floats, noise: Floats, scale: Floats, correlated: bool
) -> tuple[float, float, Floats, float]:
    """Return the distance of the scores, raw and shrunken, with their direction.

    With ν degrees of freedom and d correlated numbers, the expected squared distance is
    too large by the factor ν/(ν − d − 1), and the direction attains the fraction
    (ν − d + 1)/(ν + 1) of the true squared distance (Wishart laws). Together, this is a
    factor of about 1/(1 − d/ν)². One standard error, 1/√(2ν), is subtracted as well:
    bets for too large a distance lose, and bets for a smaller one gain nearly as much.

    Args:
        change: The change between the inputs, shape (numbers,).
        noise: The noise of each run, around its mean, shape (runs, numbers).
        scale: The scale of each number.
        correlated: Whether correlations between numbers are estimated.

    Returns:
        The distance in standard deviations, the shrunken distance, the direction, and
        the standard deviation of the scores.
    """
    draws = max(len(noise) - 1, 1)
    scaled_noise = noise / scale / math.sqrt(draws)
    direction = _fisher(change / scale, scaled_noise, correlated) / scale
    scores = noise @ direction
    deviation = math.sqrt(float(scores @ scores) / draws)
    moved = float(change @ direction)
    smallest = max(NormalLimits.min_deviation * abs(moved), np.finfo(float).tiny)
    distance = moved / max(deviation, smallest)
    parameters = len(change)
    if not correlated:
        parameters = 1
    shrinkage = 1 - parameters / draws - 1 / math.sqrt(2 * draws)
    return distance, distance * max(shrinkage, 0.0), direction, deviation


def normal_law(square: float) -> Law:
    """Return the law of the log-odds of two normal laws.

    Args:
        square: The squared distance of their means, in units of their variance.
    """
    cells = 128
    quantiles = ndtri((np.arange(cells) + 0.5) / cells)
    odds = square / 2 + math.sqrt(square) * quantiles
    weights = np.full(2 * cells, 1 / cells)
    return Law(np.concatenate([odds, -odds]), weights)


def by_threshold(
    ones: Floats, zeros: Floats, *, max_errors: float
) -> tuple[Callable[[Array], Floats], Law] | None:
    """Find the column and the threshold that separate the runs of both inputs best.

    The probability that the next run is on the right side is estimated by Laplace's
    rule of succession.

    Args:
        ones: Outputs on the data, shape (runs, numbers).
        zeros: Outputs on the neighbour, of the same shape.
        max_errors: Largest number of runs on the wrong side of the threshold, of both
            inputs together.

    Returns:
        The function from outputs to log-odds and the law of these log-odds. None if
        every threshold has more errors, or if the outputs differ in length or are
        empty.
    """
    if ones.shape != zeros.shape or not ones.size:
        return None
    runs = len(ones)
    both = np.concatenate([ones, zeros])
    order = np.argsort(both, axis=0)
    values = np.take_along_axis(both, order, axis=0)
    # Number of runs on the right side of a cut after each value, if runs on the data
    # are below the cut.
    ones_below = np.cumsum(order < runs, axis=0)
    below = 2 * ones_below + runs - np.arange(1, 2 * runs + 1)[:, None]
    right = np.maximum(below, 2 * runs - below)[:-1]
    right = np.where(values[1:] > values[:-1], right, 0)
    row, column = np.unravel_index(int(np.argmax(right)), right.shape)
    errors = 2 * runs - int(right[row, column])
    if errors > max_errors:
        return None
    sign = 1 if below[row, column] > runs else -1
    odds = sign * math.log((2 * runs - errors + 1) / (errors + 1))
    middle = (values[row, column] + values[row + 1, column]) / 2

    def log_odds(outputs: Array) -> Floats:
        numbers = outputs.reshape(len(outputs), -1)[:, column].astype(float)
        return np.asarray(odds * np.sign(middle - numbers))

    return log_odds, Law(np.array([odds, -odds]), np.ones(2))


def _scores(outputs: Array, direction: Floats, middle: float, slope: float) -> Floats:
    # A matrix product's order of summation, and so its last bits, would depend on the
    # number of rows, and the log-odds of an output on the other outputs of its batch.
    products = np.multiply(_rows(outputs), direction, order="C")
    return np.asarray(slope * (products.sum(axis=1) - middle))


def _rows(outputs: Array) -> Floats:
    rows = np.asarray(outputs, dtype=float).reshape(len(outputs), -1)
    rows = np.nan_to_num(rows, nan=0.0, posinf=LARGEST_FINITE, neginf=-LARGEST_FINITE)
    return np.asarray(np.clip(rows, -LARGEST_FINITE, LARGEST_FINITE))


def _column_scale(rows: Floats) -> Floats:
    finest = NormalLimits.min_deviation * np.abs(rows).max(axis=0)
    return np.asarray(np.maximum(rows.std(axis=0), finest) + np.finfo(float).tiny)


def _direction(rows: Floats, labels: Labels) -> Floats:
    """Return the direction of the scores that separate the coins best.

    Its shape is (numbers,). It is 0 if all rows have the same coin.
    """
    ones, zeros = rows[labels == 1], rows[labels == 0]
    if not len(ones) or not len(zeros):
        return np.zeros(rows.shape[1])
    scale = _column_scale(rows)
    change = (ones.mean(axis=0) - zeros.mean(axis=0)) / scale
    noise = np.concatenate([ones - ones.mean(axis=0), zeros - zeros.mean(axis=0)])
    noise = noise / scale / math.sqrt(max(len(rows) - 2, 1))
    # With fewer than three calls per column, the inverse of a covariance is mostly
    # chance.
    correlated = rows.shape[1] <= min(NormalLimits.correlated_columns, len(rows) / 3)
    return np.asarray(_fisher(change, noise, correlated) / scale)


def _fisher(change: Floats, noise: Floats, correlated: bool) -> Floats:
    """Return the change times the inverse of the covariance noiseᵀ noise.

    Without correlations, this is the change itself: the columns have unit variance.
    """
    if not correlated:
        return change
    _, lengths, axes = np.linalg.svd(noise, full_matrices=False)
    spread = np.maximum(lengths, NormalLimits.min_deviation)
    return np.asarray((axes @ change / spread**2) @ axes)


def _separation(scores: Floats, labels: Labels) -> tuple[float, float, float]:
    """Return the distance of the scores under both coins, their middle and deviation.

    The distance is in units of the standard deviation. With fewer than two scores of a
    coin, the results are 0, 0 and 1.
    """
    ones, zeros = scores[labels == 1], scores[labels == 0]
    if len(ones) < 2 or len(zeros) < 2:
        return 0.0, 0.0, 1.0
    squares = ones.var() * len(ones) + zeros.var() * len(zeros)
    deviation = math.sqrt(squares / max(len(scores) - 2, 1))
    gap = float(ones.mean() - zeros.mean())
    middle = float(ones.mean() + zeros.mean()) / 2
    smallest = max(NormalLimits.min_deviation * abs(gap), np.finfo(float).tiny)
    return gap / max(deviation, smallest), middle, deviation
