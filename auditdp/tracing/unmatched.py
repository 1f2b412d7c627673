"""A noisy value that one input alone has: how often does the output show it?

A count that is released only where it reaches a threshold, for a key that only one input has, is private by the tail of its
noise: with the value forced below the threshold both outputs are the same, above it they differ. The probability of the
results at which they differ is the δ that it costs, exact for whole noise in the range that is tried, and up to the
bisection for other noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from auditdp.tracing.draws import NOISY, Release
from auditdp.tracing.outputs import where_differ
from auditdp.tracing.run import TracedRun
from auditdp.tracing.trace import Trace

WHOLE_GRID = (-40, -20, -12, -8, -5, -3, -2, -1, 0, 1, 2, 3, 5, 8, 12, 20, 40)
"""Distances from the value that are looked at first, of whole noise."""
GRID = (-30, -10, -5, -3, -2, -1, -0.5, -0.1, 0.1, 0.5, 1, 2, 3, 5, 10, 30)
"""The same for other noise, in scales of it."""
BISECTIONS = 30


@dataclass(frozen=True)
class ShownTail:
    """A release that one input alone has.

    Attributes:
        release: The release.
        chance: The probability of results at which the outputs differ.
        outputs: Some of these, on the input of the recorded run and on the other one.
    """

    release: Release
    chance: float
    outputs: Sequence[tuple[Any, Any]]


def unmatched(first: TracedRun, second: TracedRun) -> list[tuple[TracedRun, Release]]:
    """Return the releases of a record and its replay that correspond to none of the other, with the run that has them."""
    used = {release.recorded for release in second.releases}
    alone = [(first, release) for release in first.releases if release.number not in used]
    return alone + [(second, release) for release in second.releases if release.recorded is None]


def shown(trace: Trace, first: TracedRun, second: TracedRun) -> list[ShownTail] | None:
    """Return how often the output shows each noisy number that one input alone has.

    Args:
        trace: Of the function.
        first: A recorded run.
        second: Its replay.

    Returns:
        One for each; None where one of them is no number with known noise, or shows at every result.
    """
    found = []
    for run, release in unmatched(first, second):
        known = release.law.known
        if release.kind != NOISY or release.shape or known is None or known.log_density is None:
            return None
        if not known.is_whole and known.distribution is None:
            return None
        differs = _Differs(trace, run, release.number, second if run is first else first)
        chance = _whole(release, differs) if known.is_whole else _continuous(release, differs)
        outputs = differs.outputs if run is first else [(there, here) for here, there in differs.outputs]
        found.append(ShownTail(release, chance, outputs))
    return found


class _Differs:
    """Tells whether outputs differ where one release has another result, and keeps the outputs that do."""

    def __init__(self, trace: Trace, run: TracedRun, number: int, other: TracedRun) -> None:
        self._trace, self._run, self._number, self._other = trace, run, number, other
        self.outputs: list[tuple[Any, Any]] = []

    def __call__(self, result: float) -> bool:
        forced = self._trace.replay(self._run.data, self._run, forced={self._number: result})
        other = self._trace.replay(self._other.data, forced)
        if where_differ(forced.output, other.output) is None:
            return False
        self.outputs.append((forced.output, other.output))
        return True


def _whole(release: Release, differs: Callable[[float], bool]) -> float:
    """Return the sum of the probabilities of the whole numbers around the value at which outputs differ.

    Between two points of a grid at which outputs both differ, or are both the same, they are taken to be so as well.
    """
    start = int(np.rint(float(release.location or 0)))
    points = [start + k for k in WHOLE_GRID]
    states = [differs(point) for point in points]
    shows = dict(zip(points, states, strict=True))
    for (a, before), (b, after) in pairwise(zip(points, states, strict=True)):
        low, high = a, b
        while before != after and high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if differs(middle) == before else (low, middle)
        shows |= {k: before if k <= low else after for k in range(a + 1, b)}
    return math.fsum(math.exp(release.law.log_likelihood(start, k)) for k, shown_there in shows.items() if shown_there)


def _continuous(release: Release, differs: Callable[[float], bool]) -> float:
    """Return the probability of the intervals in which outputs differ, their ends found by bisection."""
    law, start = release.law, float(release.location or 0.0)
    scale, known = abs(float(law.scale)), release.law.known
    assert known is not None
    distribution: Any = known.distribution
    points = [start + scale * t for t in GRID]
    states = [differs(point) for point in points]
    between = pairwise(zip(points, states, strict=True))
    ends = [_end(a, b, before, differs) for (a, before), (b, after) in between if before != after]
    state, total = states[0], 0.0
    for edges in pairwise([-math.inf, *ends, math.inf]):
        if state:
            low, high = (distribution((edge - start) / scale, law.parameter) for edge in edges)
            total += float(high - low)
        state = not state
    return total


def _end(a: float, b: float, before: bool, differs: Callable[[float], bool]) -> float:
    for _ in range(BISECTIONS):
        middle = (a + b) / 2
        a, b = (middle, b) if differs(middle) == before else (a, middle)
    return (a + b) / 2
