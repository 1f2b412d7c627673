"""The log-odds of an output whose noisy values it shows: both inputs are asked what the noise was added to.

Where that depends on earlier noise, as a gradient depends on the model, no few runs tell how. But the code says it, given
the output: replayed on an input with the output's noisy values in place of its own, it adds noise to values that are known,
and the density of each noisy value given those before it is known, too. Their product is the density of the output.

Noise that is used twice gives certainty: what is left of the noisy values is the same each time on the input that gave the
output, and on the other one it is not.

The replays have draws that were recorded before the first call, and what they say depends on the output alone, and on how
many were asked about before it: forecasts by it are valid as all that are read off the code (`traced.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from auditdp.adjacency import Pair
from auditdp.betting.forecasters.normal_laws import normal_law
from auditdp.betting.forecasters.traced_noise import Ratio, SeenRuns, function_of
from auditdp.betting.wealth.forecasts import Law
from auditdp.mechanism.calls.allowance import allowance
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats
from auditdp.tracing import Trace
from auditdp.tracing.draws import NOISY, Release
from auditdp.tracing.losses import Moved
from auditdp.tracing.watched_run import TracedRun

MOST = 128
"""Outputs of which the code is asked: a few decide."""
RUNS_EACH = 2
"""Runs for each of them, of which no more are made than are left."""
ROUNDED, SAME, SURE = 1e-6, 1e-4, 1e-3
"""How far the same noise is off by rounding at least, and at most, relative to its size, and to how far it is off on the
other input: where it is off there by as little, as where a clipped gradient is the same in every step, nothing is told."""
UNTOLD = 0.05
"""How often an output tells nothing, relative to those of one input: a bet that rules it out would lose much on it."""


def by_asking(
    trace: Trace, pair: Pair, seen: SeenRuns, *, reused: bool
) -> tuple[Ratio, Law] | None:
    """Return the log-odds of outputs by what the code adds noise to, given them; None where they do not show the noise.

    Args:
        trace: Of the mechanism.
        pair: The pair.
        seen: Runs of it, the first one recorded on its data.
        reused: Whether some noise is used twice, and certainty is wanted; else all of it is Gaussian, and used once.
    """
    first = seen.traces[0]
    if not seen.is_alike or reused != any(
        moved.why == "reuse" for moved in first.moved
    ):
        return None
    noisy = [place for place in seen.places if first.moved[place].first.kind == NOISY]
    columns = {
        first.moved[place].first.number: _columns(seen, place) for place in noisy
    }
    if any(column is None for each in columns.values() for column in each):
        return None
    if not reused and (
        len(noisy) < len(seen.places)
        or not all(map(_is_gaussian, first.first.releases))
    ):
        return None

    def asked(data: Any, row: Floats) -> TracedRun:
        releases = list(first.first.releases)
        for number, each in columns.items():
            values = np.array(
                [row[at] @ weights + offset for at, weights, offset in each]
            )
            releases[number] = replace(
                releases[number], result=values.reshape(releases[number].shape)
            )
        return trace.replay(data, replace(first.first, releases=releases))

    def odds(row: Floats) -> float:
        runs = [asked(data, row) for data in (pair.data, pair.neighbour)]
        if not reused:
            return (
                _log_density(runs[0]) - _log_density(runs[1])
                if _same_releases(*runs)
                else np.nan
            )
        one, other = (max(_off(run), ROUNDED) for run in runs)
        return float(
            np.inf
            if one < min(SAME, SURE * other)
            else -np.inf
            if other < min(SAME, SURE * one)
            else np.nan
        )

    if reused:
        return _Replays(trace, odds), Law(
            np.array([np.inf, -np.inf, 0.0]), np.array([1.0, 1.0, UNTOLD])
        )
    squares = [sum(_square(moved) for moved in each.moved) for each in seen.traces]
    return _Replays(trace, odds), normal_law(float(np.mean(squares)))


def _is_gaussian(release: Release) -> bool:
    return (
        release.kind == NOISY
        and release.law.family == "Gaussian"
        and release.groups is None
    )


def _same_releases(one: TracedRun, other: TracedRun) -> bool:
    return [(r.site, r.shape) for r in one.releases] == [
        (r.site, r.shape) for r in other.releases
    ]


def _log_density(run: TracedRun) -> float:
    """Return the log density of the noisy values of a run, each given those before it, but for what all runs share."""
    deviations = [
        np.asarray((r.result - r.centre) / r.law.scale, float) for r in run.releases
    ]
    scales = [
        np.broadcast_to(np.asarray(r.law.scale, float), r.shape) for r in run.releases
    ]
    return -sum(
        float((each**2 / 2 + np.log(scale)).sum())
        for each, scale in zip(deviations, scales, strict=True)
    )


def _square(moved: Moved) -> float:
    """Return the squared distance by which a value moves, in standard deviations."""
    one, other = moved.first, moved.second
    return float(
        np.square((np.asarray(one.centre, float) - other.centre) / one.law.scale).sum()
    )


@dataclass
class _Replays:
    """The log-odds of the first outputs; each copy has as many."""

    trace: Trace
    odds: Callable[[Floats], float]
    left: int = MOST

    def __call__(self, outputs: Array) -> Floats:
        most = int(min(self.left, allowance().left // RUNS_EACH))
        asked, self.left = (
            outputs[:most].astype(float),
            max(self.left - len(outputs), 0),
        )
        with self.trace:
            return np.array(
                [*map(self.odds, asked), *[0.0] * (len(outputs) - len(asked))]
            )


def _columns(seen: SeenRuns, place: int) -> Sequence[Any]:
    """Return how each number of a release follows from the output."""
    values = np.array(
        [
            np.ravel(np.real(release.result)).astype(float)
            for release in seen.of(place)[0]
        ]
    )
    return [function_of(column, seen.rows[0]) for column in values.T]


def _off(run: TracedRun) -> float:
    """Return how far noise that was used twice differs from itself in a run, relative to its size."""
    pairs = [
        (_noise(release), _noise(run.releases[n]))
        for release in run.releases
        for n in release.earlier
    ]
    if not pairs or any(one.shape != other.shape for one, other in pairs):
        return float("inf")
    return max(
        float(np.abs(one - other).max() / max(np.abs(other).max(), 1e-300))
        for one, other in pairs
    )


def _noise(release: Release) -> Floats:
    return np.asarray(
        (np.asarray(release.result, float) - release.centre) / release.factor
    )
