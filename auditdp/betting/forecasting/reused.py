"""Certainty where noise is used twice: both inputs are asked what an output's noise was added to.

Two values with the same noise differ by what it was added to. Where that depends on earlier noise, as a gradient depends on
the model, no difference comes again. But the code says it, given an output that shows the noisy values: replayed on an
input with these values in place of its own, it adds noise to values that are known, and what is left is the noise. It is the
same each time on the input that gave the output, and on the other it is not.

The replays have draws that were recorded before the first call, and what they say depends on the output alone, and on how
many were asked about before it: forecasts by it are valid as all that are read off the code (`replayed.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from auditdp.adjacency import Pair
from auditdp.betting.forecasting.noise_laws import Ratio, function_of
from auditdp.betting.forecasting.seen_runs import SeenRuns
from auditdp.betting.wealth.forecasts import Law
from auditdp.mechanism.protocol import Array
from auditdp.numerics.arrays import Floats
from auditdp.tracing import Trace
from auditdp.tracing.draws import NOISY, Release
from auditdp.tracing.run import TracedRun

MOST = 64
"""Outputs of which the code is asked: each takes two runs, and a few decide."""
SAME, SURE = 1e-4, 1e-3
"""How far the same noise may be off by rounding, relative to its size, and to how far it is off on the other input."""


def by_reuse(trace: Trace, pair: Pair, seen: SeenRuns) -> tuple[Ratio, Law] | None:
    """Return certainty for the outputs that one input alone can give; None where no noise is used twice, or it is not shown.

    Args:
        trace: Of the mechanism.
        pair: The pair.
        seen: Runs of it, the first one recorded on its data.
    """
    first = seen.traces[0]
    if not seen.is_alike or all(moved.why != "reuse" for moved in first.moved):
        return None
    noisy = [place for place in seen.places if first.moved[place].first.kind == NOISY]
    columns = {first.moved[place].first.number: _columns(seen, place) for place in noisy}
    if any(column is None for each in columns.values() for column in each):
        return None

    def off(data: Any, row: Floats) -> float:
        releases = list(first.first.releases)
        for number, each in columns.items():
            values = np.array([row[at] @ weights + offset for at, weights, offset in each])
            releases[number] = replace(releases[number], result=values.reshape(releases[number].shape))
        return _off(trace.replay(data, replace(first.first, releases=releases)))

    def odds(row: Floats) -> float:
        one, other = off(pair.data, row), off(pair.neighbour, row)
        return float(np.inf if one < min(SAME, SURE * other) else -np.inf if other < min(SAME, SURE * one) else np.nan)

    return _Replays(trace, odds), Law(np.array([np.inf, -np.inf]), np.ones(2))


@dataclass
class _Replays:
    """The log-odds of the first outputs; each copy has as many."""

    trace: Trace
    odds: Callable[[Floats], float]
    left: int = MOST

    def __call__(self, outputs: Array) -> Floats:
        asked, self.left = outputs[: self.left].astype(float), max(self.left - len(outputs), 0)
        with self.trace:
            return np.array([*map(self.odds, asked), *[0.0] * (len(outputs) - len(asked))])


def _columns(seen: SeenRuns, place: int) -> Sequence[Any]:
    """Return how each number of a release follows from the output."""
    values = np.array([np.ravel(np.real(release.result)).astype(float) for release in seen.of(place)[0]])
    return [function_of(column, seen.rows[0]) for column in values.T]


def _off(run: TracedRun) -> float:
    """Return how far noise that was used twice differs from itself in a run, relative to its size."""
    pairs = [(_noise(release), _noise(run.releases[n])) for release in run.releases for n in release.earlier]
    if not pairs or any(one.shape != other.shape for one, other in pairs):
        return float("inf")
    return max(float(np.abs(one - other).max() / max(np.abs(other).max(), 1e-300)) for one, other in pairs)


def _noise(release: Release) -> Floats:
    return np.asarray((np.asarray(release.result, float) - release.centre) / release.factor)
