"""The likelihood ratio of two normal laws with one covariance, which is learned: what noisy sums of gradients come to.

A model that was trained with Gaussian noise is nearly normal, and so is the list of its steps. Then the log-odds are linear
in the output, along the direction that tells most per standard deviation (Fisher 1936, "The use of multiple measurements in
taxonomic problems"), and two moments of the scores are all that is to be learned beside it: an (ε, δ) with a small δ is
decided far out, where counts are few. Noise that is used twice leaves a direction without any.

How far the scores are apart is learned from calls that the direction was not learned from, so that it does not overfit.
Where both inputs can be run with the same draws beforehand, the change has hardly any noise, and few runs show both laws.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Self

import numpy as np
from scipy.special import ndtri

from auditdp.betting.wealth.forecasts import Law
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats, Labels

LEAST, OF_EACH = 16, 3
"""Calls before the first fit, and of each number of an output before covariances are learned."""
WIDEST = 1 << 16
"""Outputs of more numbers are none of its business."""
AGAIN = 1.25
"""It is fitted anew when calls have grown so many times."""
MOST_CORRELATED = 256
"""Numbers of an output whose covariance is learned, where calls are enough; of others each has a variance of its own."""
FINEST = 1e-6
"""Standard deviations of a direction, relative to those of its numbers, that are not taken for noise: what is finer shows
how numbers were rounded."""
LARGEST, SUREST = 1e30, 1e6
"""Numbers are clipped to it; standard deviations that scores are taken to be apart, at most."""
UNKNOWN = 0.17
"""How far the mean change may be off by what draws move it, relative to the scores' deviation: two runs of few differ so."""
CELLS = 128
"""Log-odds that a law of them is given by."""


class NormalRatio:
    """Forecasts by two normal laws of one covariance; it abstains until there are enough calls to know them."""

    name = "normal ratio"

    def __init__(self) -> None:
        self._next = LEAST
        self._line: tuple[Floats, float, float] | None = None

    def fit(self, outputs: Array, labels: Labels) -> Self:
        """Learn the direction and how far the scores along it are apart.

        Args:
            outputs: Shape (n, ...).
            labels: The coins, shape (n,).
        """
        rows = _rows(outputs)
        if (
            len(rows) < self._next
            or rows.shape[1] > WIDEST
            or min(labels.sum(), (1 - labels).sum()) < LEAST // 4
        ):
            return self
        self._next = math.ceil(AGAIN * len(rows))
        order = np.argsort(
            labels, kind="stable"
        )  # so that both halves have as many of each coin
        halves = [(rows[part], labels[part]) for part in (order[::2], order[1::2])]
        apart = [
            _apart(other[0] @ _direction(*half), other[1])[0]
            for half, other in (halves, halves[::-1])
        ]
        sure = max(float(np.mean(apart)) - 1 / math.sqrt(len(rows)), 0.0)
        direction = _direction(rows, labels)
        _, middle, deviation = _apart(rows @ direction, labels)
        self._line = direction, middle, sure / max(deviation, np.finfo(float).tiny)
        return self

    def log_odds(self, outputs: Array) -> Floats:
        """Return the log-odds of each output; 0 before the first fit."""
        if self._line is None:
            return np.zeros(len(outputs))
        return _scored(outputs, *self._line)


def by_change(
    one: Floats, other: Floats
) -> tuple[Callable[[Array], Floats], Law] | None:
    """Return the log-odds of rows by two normal laws, and how often they are which; None where the change is none of theirs.

    Two runs with the same draws count as one draw of the noise, whose covariance they show.

    Args:
        one: Outputs on the data, shape (runs, numbers).
        other: Outputs on the neighbour with the same draws.
    """
    if one.shape != other.shape:
        return None
    both = np.concatenate([one, other])
    kept = np.flatnonzero(
        np.isfinite(both).all(axis=0) & (both != both[0]).any(axis=0)
    )  # others tell nothing
    both, changes, draws = (
        both[:, kept],
        (one - other)[:, kept],
        ((one + other) / 2)[:, kept],
    )
    if not 0 < len(kept) <= MOST_CORRELATED:
        return None
    scale = (
        np.maximum(both.std(axis=0), FINEST * np.abs(both).max(axis=0))
        + np.finfo(float).tiny
    )
    change, centre = changes.mean(axis=0), draws.mean(axis=0)
    ways = [
        _told(change, draws - centre, scale, together) for together in (True, False)
    ]
    apart, shrunk, direction, deviation = max(ways, key=lambda each: each[1])
    unknown = (changes @ direction).std() / math.sqrt(
        len(one)
    )  # how far the change may be another one
    if not apart > 0 or unknown > UNKNOWN * max(
        deviation, UNKNOWN * abs(float(change @ direction))
    ):
        return None
    square = min(shrunk, SUREST) ** 2
    square = max(
        square - len(kept) * (unknown / max(deviation, np.finfo(float).tiny)) ** 2,
        square * FINEST,
    )
    middle, slope = (
        float(centre @ direction),
        square / (apart * max(deviation, np.finfo(float).tiny)),
    )
    law = normal_law(square)
    return lambda outputs: _scored(
        outputs.reshape(len(outputs), -1)[:, kept], direction, middle, slope
    ), law


def _told(
    change: Floats, rest: Floats, scale: Floats, together: bool
) -> tuple[float, float, Floats, float]:
    """Return how far apart scores are, that for other draws, their direction and deviation, by correlations or without.

    With ν draws beside the mean and d correlated numbers, the squared distance is too large by ν/(ν − d − 1) in the mean
    and the direction tells (ν − d + 1)/(ν + 1) of the truth (Wishart laws): together about 1/(1 − d/ν)². One standard
    deviation of the estimate, 1/√(2ν), is left out as well: bets for too large a distance lose what they are for, and those
    for a smaller one win nearly as much.
    """
    draws, numbers = max(len(rest) - 1, 1), len(change)
    direction = (
        _towards(change / scale, rest / scale / math.sqrt(draws), together) / scale
    )
    scores = rest @ direction
    deviation = math.sqrt(float(scores @ scores) / draws)
    moved = float(change @ direction)
    apart = moved / max(deviation, FINEST * abs(moved), np.finfo(float).tiny)
    kept = 1 - (numbers if together else 1) / draws - 1 / math.sqrt(2 * draws)
    return apart, apart * max(kept, 0.0), direction, deviation


def normal_law(square: float) -> Law:
    """Return how often two normal laws have which log-odds, whose means are so far apart, squared, in deviations."""
    odds = square / 2 + math.sqrt(square) * ndtri((np.arange(CELLS) + 0.5) / CELLS)
    return Law(np.concatenate([odds, -odds]), np.full(2 * CELLS, 1 / CELLS))


def by_threshold(
    one: Floats, other: Floats, *, most: float
) -> tuple[Callable[[Array], Floats], Law] | None:
    """Return the log-odds of rows by the one number, and on which side of a threshold it is, that tell most runs apart.

    How often the next run is on the right side follows Laplace's rule of succession; None where more are on the wrong one.

    Args:
        one: Outputs on the data, shape (runs, numbers).
        other: Outputs on the neighbour.
        most: So many may be on the wrong side.
    """
    if one.shape != other.shape or not one.size:
        return None
    both, runs = np.concatenate([one, other]), len(one)
    order = np.argsort(both, axis=0)
    values = np.take_along_axis(both, order, axis=0)
    ones = np.cumsum(order < runs, axis=0)
    below = (
        2 * ones + runs - np.arange(1, 2 * runs + 1)[:, None]
    )  # runs that are told, if those of the data are below
    told = np.where(
        values[1:] > values[:-1], np.maximum(below, 2 * runs - below)[:-1], 0
    )
    row, place = np.unravel_index(int(np.argmax(told)), told.shape)
    wrong = 2 * runs - int(told[row, place])
    if wrong > most:
        return None
    odds = math.log((2 * runs - wrong + 1) / (wrong + 1)) * (
        1 if below[row, place] > runs else -1
    )
    middle = (values[row, place] + values[row + 1, place]) / 2
    law = Law(np.array([odds, -odds]), np.ones(2))
    return (
        lambda outputs: (
            odds
            * np.sign(
                middle - outputs.reshape(len(outputs), -1)[:, place].astype(float)
            )
        ),
        law,
    )


def _scored(outputs: Array, direction: Floats, middle: float, slope: float) -> Floats:
    # A matrix product's order of summation, and so its last bits, would depend on how many rows there are.
    return np.asarray(
        slope * (np.multiply(_rows(outputs), direction, order="C").sum(axis=1) - middle)
    )


def _rows(outputs: Array) -> Floats:
    rows = np.asarray(outputs, dtype=float).reshape(len(outputs), -1)
    return np.asarray(
        np.clip(
            np.nan_to_num(rows, nan=0.0, posinf=LARGEST, neginf=-LARGEST),
            -LARGEST,
            LARGEST,
        )
    )


def _direction(rows: Floats, labels: Labels) -> Floats:
    """Return the direction that tells the coins apart best, by standard deviations."""
    ones, zeros = rows[labels == 1], rows[labels == 0]
    if not len(ones) or not len(zeros):
        return np.zeros(rows.shape[1])
    scale = (
        np.maximum(rows.std(axis=0), FINEST * np.abs(rows).max(axis=0))
        + np.finfo(float).tiny
    )
    change = (ones.mean(axis=0) - zeros.mean(axis=0)) / scale
    rest = (
        np.concatenate([ones - ones.mean(axis=0), zeros - zeros.mean(axis=0)]) / scale
    )
    together = rows.shape[1] <= min(MOST_CORRELATED, len(rows) / OF_EACH)
    return np.asarray(
        _towards(change, rest / math.sqrt(max(len(rows) - 2, 1)), together) / scale
    )


def _towards(change: Floats, rest: Floats, together: bool) -> Floats:
    """Return the direction of a change by the covariance of the rest, which is restᵀ rest; without correlations, itself."""
    if not together:
        return change
    _, lengths, axes = np.linalg.svd(rest, full_matrices=False)
    spread = np.maximum(lengths, FINEST)
    return np.asarray((axes @ change / spread**2) @ axes)


def _apart(scores: Floats, labels: Labels) -> tuple[float, float, float]:
    """Return how many standard deviations scores are apart, their middle, and the standard deviation."""
    ones, zeros = scores[labels == 1], scores[labels == 0]
    if len(ones) < 2 or len(zeros) < 2:
        return 0.0, 0.0, 1.0
    deviation = math.sqrt(
        (ones.var() * len(ones) + zeros.var() * len(zeros)) / max(len(scores) - 2, 1)
    )
    apart = float(ones.mean() - zeros.mean())
    middle = float(ones.mean() + zeros.mean()) / 2
    return (
        apart / max(deviation, FINEST * abs(apart), np.finfo(float).tiny),
        middle,
        deviation,
    )
