"""Log-odds of an output by replays of the code, with the noisy values of the output.

A value that noise is added to may depend on earlier noise, as a gradient depends on the
model. Then a few runs do not determine the value, but the code does: it is replayed on
each input with the noisy values of the output in place of its own. The replay records
each value before its noise. This gives the density of each noisy value given the
earlier ones, and the product of all is the density of the output on that input.

If noise is used twice, the log-odds are infinite. The noisy values minus the values
before noise are equal at both uses if the replay is on the right input, and differ
otherwise.

The replays use draws that were recorded before the first call. So their result depends
on the output only, and on the number of outputs before it. Forecasts by them are valid
for the same reason as all forecasts by laws from traces (`traced.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from auditdp.adjacency import Pair
from auditdp.betting.forecasters.normal_laws import normal_law
from auditdp.betting.forecasters.traced_noise import (
    LinearFunction,
    Ratio,
    TracedRuns,
    function_of,
    results_of,
)
from auditdp.betting.wealth.forecasts import Law
from auditdp.mechanism.calls.allowance import allowance
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats
from auditdp.tracing import Trace
from auditdp.tracing.draws import NOISY, Release
from auditdp.tracing.watched_run import TracedRun

MAX_REPLAYED_OUTPUTS = 128
"""Largest number of outputs of a game that are replayed: exact bets need no more."""


def by_replay(
    trace: Trace, pair: Pair, runs: TracedRuns, *, reused: bool
) -> tuple[Ratio, Law] | None:
    """Return log-odds by replays with the noisy values of each output, and their law.

    Args:
        trace: Trace of the mechanism.
        pair: The pair.
        runs: Traced runs of the pair; the first one is recorded on the pair's data.
        reused: True for infinite log-odds by noise that is used twice. False for
            log-odds by densities, if each release is Gaussian noise that is used once.

    Returns:
        The function from outputs to log-odds and the law of these log-odds. None if the
        code does not use its noise as ``reused`` states, if the runs are not alike
        (``TracedRuns.is_alike``), or if the output does not determine the noisy values.
    """
    first = runs.traces[0]
    has_reuse = any(moved.why == "reuse" for moved in first.moved)
    if not runs.is_alike or reused != has_reuse:
        return None
    noisy = [place for place in runs.places if first.moved[place].first.kind == NOISY]
    only_noise = len(noisy) == len(runs.places)
    if not reused and not (only_noise and all(map(_is_gaussian, first.first.releases))):
        return None
    columns: dict[int, list[LinearFunction]] = {}
    for place in noisy:
        values = results_of(runs.of(place)[0])
        functions = [function_of(column, runs.rows[0]) for column in values.T]
        found = [function for function in functions if function is not None]
        if len(found) < len(functions):
            return None
        columns[first.moved[place].first.number] = found
    replays = _Replays(trace, pair, first.first, columns, reused)
    if reused:
        # Without the third cell, a bet would lose everything on an output with log-odds
        # 0.
        weights = np.array([1.0, 1.0, 0.05])
        return replays, Law(np.array([np.inf, -np.inf, 0.0]), weights)
    squares = []
    for each in runs.traces:
        moves = [
            (np.asarray(moved.first.centre, float) - moved.second.centre)
            / moved.first.law.scale
            for moved in each.moved
        ]
        squares.append(sum(float(np.square(move).sum()) for move in moves))
    return replays, normal_law(float(np.mean(squares)))


def _is_gaussian(release: Release) -> bool:
    is_noise = release.kind == NOISY and release.law.family == "Gaussian"
    return is_noise and release.groups is None


@dataclass
class _Replays:
    """Function from outputs to log-odds: by replays at first, and 0 for later outputs.

    A copy that is made before the first call replays the same number of outputs.

    Attributes:
        trace: Trace of the mechanism.
        pair: The pair.
        recorded: The recorded run, whose draws the replays use.
        columns: By the number of a release, the linear functions from an output to the
            noisy values of this release.
        reused: Whether noise is used twice, so that log-odds are infinite.
        left: Number of outputs that may still be replayed.
    """

    trace: Trace
    pair: Pair
    recorded: TracedRun
    columns: Mapping[int, Sequence[LinearFunction]]
    reused: bool
    left: int = MAX_REPLAYED_OUTPUTS

    def __call__(self, outputs: Array) -> Floats:
        # An output takes one run on each input.
        affordable = int(min(self.left, allowance().left // 2))
        self.left = max(self.left - len(outputs), 0)
        odds = np.zeros(len(outputs))
        with self.trace:
            for k, row in enumerate(outputs[:affordable].astype(float)):
                odds[k] = self._log_odds(row)
        return odds

    def _log_odds(self, row: Floats) -> float:
        one, zero = (
            self._replayed(data, row) for data in (self.pair.data, self.pair.neighbour)
        )
        if not self.reused:
            kinds = [[(r.site, r.shape) for r in run.releases] for run in (one, zero)]
            if kinds[0] != kinds[1]:
                return math.nan
            return _log_density(one) - _log_density(zero)
        # Rounding alone makes a difference of 1e-6 in sums of many numbers.
        one_error, zero_error = (max(_reuse_error(run), 1e-6) for run in (one, zero))
        # On the right input, both uses agree to 1e-4, and a thousand times better than
        # on the other input. If they agree on both inputs, as if clipped gradients are
        # equal, the output has no information.
        if one_error < min(1e-4, zero_error / 1_000):
            return math.inf
        if zero_error < min(1e-4, one_error / 1_000):
            return -math.inf
        return math.nan

    def _replayed(self, data: Any, row: Floats) -> TracedRun:
        """Return a replay on an input with the noisy values of an output."""
        releases = list(self.recorded.releases)
        for number, functions in self.columns.items():
            values = np.array([row[at] @ by + offset for at, by, offset in functions])
            result = values.reshape(releases[number].shape)
            releases[number] = replace(releases[number], result=result)
        return self.trace.replay(data, replace(self.recorded, releases=releases))


def _log_density(run: TracedRun) -> float:
    """Return the log density of all noisy values (Gaussian), up to a constant."""
    total = 0.0
    for release in run.releases:
        scale = np.broadcast_to(np.asarray(release.law.scale, float), release.shape)
        deviation = np.asarray((release.result - release.centre) / scale, float)
        total -= float((deviation**2 / 2 + np.log(scale)).sum())
    return total


def _reuse_error(run: TracedRun) -> float:
    """Return the largest relative difference of two uses of the same noise."""
    errors = []
    for release in run.releases:
        for number in release.earlier:
            one, other = _noise(release), _noise(run.releases[number])
            if one.shape != other.shape:
                return math.inf
            size = max(float(np.abs(other).max()), np.finfo(float).tiny)
            errors.append(float(np.abs(one - other).max() / size))
    return max(errors, default=math.inf)


def _noise(release: Release) -> Floats:
    noisy = np.asarray(release.result, float)
    return np.asarray((noisy - release.centre) / release.factor)
