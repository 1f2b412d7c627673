"""Probability that the output reveals a noisy number that one input alone has.

Code may release a count only if its noisy value exceeds a threshold. Suppose that only
one input has the key of the count. The outputs on both inputs are equal if the noisy
value is forced below the threshold, and differ if it is forced above. The probability
of the noisy values at which the outputs differ is the δ that the count costs. The
threshold is found by bisection between the points of a grid: exactly for whole noise in
the range of the grid, and up to the width of the last interval for other noise.
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
from auditdp.tracing.trace import Trace
from auditdp.tracing.trace_limits import LIMITS
from auditdp.tracing.watched_run import TracedRun

WHOLE_GRID = (-40, -20, -12, -8, -5, -3, -2, -1, 0, 1, 2, 3, 5, 8, 12, 20, 40)
"""Grid of noisy values for whole noise, as distances from the value before noise."""
GRID = (-30, -10, -5, -3, -2, -1, -0.5, -0.1, 0.1, 0.5, 1, 2, 3, 5, 10, 30)
"""Grid of noisy values for other noise, as distances in scales of the noise."""


@dataclass(frozen=True)
class ShownTail:
    """A noisy number that one input alone has, and how the output reveals it.

    Attributes:
        release: The release of the number, on the input that has it.
        chance: Probability that the noisy number has a value at which the outputs on
            the two inputs differ.
        outputs: Examples: pairs of outputs that differ. In each pair, the output on the
            input of the recorded run comes first.
    """

    release: Release
    chance: float
    outputs: Sequence[tuple[Any, Any]]


def threshold_tails(
    trace: Trace, first: TracedRun, second: TracedRun
) -> list[ShownTail]:
    """Return the noisy numbers of one input alone, each with its chance to be revealed.

    Args:
        trace: Trace of the function.
        first: A recorded run.
        second: Its replay.

    Returns:
        One item for each such number: those of the first run, then those of the second.
        The list is empty if any release of one input alone is something else, such as
        an array or noise of an unknown law.
    """
    # A release without a counterpart belongs to one input alone.
    used = {release.recorded for release in second.releases}
    alone = [(first, each) for each in first.releases if each.number not in used]
    alone += [(second, each) for each in second.releases if each.recorded is None]
    if not all(_has_known_law(release) for _, release in alone):
        return []
    found = []
    for run, release in alone:
        outputs = _Outputs(trace, run, release, second if run is first else first)
        chance = _probability(release, outputs.differ_at)
        pairs = outputs.unequal
        if run is second:
            pairs = [(there, here) for here, there in pairs]
        found.append(ShownTail(release, chance, pairs))
    return found


def _has_known_law(release: Release) -> bool:
    known = release.law.known
    if release.kind != NOISY or release.shape or known is None:
        return False
    if known.is_whole:
        return known.log_density is not None
    return known.log_density is not None and known.distribution is not None


class _Outputs:
    """Outputs on both inputs with one release forced to chosen results."""

    def __init__(
        self, trace: Trace, run: TracedRun, release: Release, other: TracedRun
    ) -> None:
        self._trace, self._run, self._other = trace, run, other
        self._number = release.number
        self.unequal: list[tuple[Any, Any]] = []

    def differ_at(self, result: float) -> bool:
        """Return True if the outputs differ when the release has this result."""
        trace, run = self._trace, self._run
        forced = trace.replay(run.data, run, forced={self._number: result})
        other = trace.replay(self._other.data, forced)
        if where_differ(forced.output, other.output) is None:
            return False
        self.unequal.append((forced.output, other.output))
        return True


def _probability(release: Release, differ_at: Callable[[float], bool]) -> float:
    """Return the probability of the noisy values at which the outputs differ.

    For whole noise, values beyond the grid are not counted. For other noise, the
    outputs beyond an end of the grid are assumed to be as at this end.

    Args:
        release: The release.
        differ_at: Function of a noisy value: whether the outputs differ at it. If it
            returns the same at two neighbouring points of the grid, it is assumed to
            return this in between as well.
    """
    law, known = release.law, release.law.known
    assert known is not None
    is_whole = known.is_whole
    if is_whole:
        start: float = int(np.rint(float(release.location or 0)))
        points = [start + k for k in WHOLE_GRID]
    else:
        start = float(release.location or 0.0)
        points = [start + abs(float(law.scale)) * k for k in GRID]
    # A first look at points of a grid finds where the answer changes.
    answers = [differ_at(point) for point in points]
    # Each interval from one change of the answer to the next has one answer.
    edges: list[float] = []
    for (low, before), (high, after) in pairwise(zip(points, answers, strict=True)):
        if before != after:
            edges.append(_edge(low, high, before, differ_at, is_whole=is_whole))
    first, last = (points[0], points[-1] + 1) if is_whole else (-math.inf, math.inf)
    total, differs = 0.0, answers[0]
    for low, high in pairwise([first, *edges, last]):
        if differs and is_whole:
            results = range(int(low), int(high))
            likelihoods = (law.log_likelihood(start, k) for k in results)
            total += math.fsum(map(math.exp, likelihoods))
        elif differs:
            scale, distribution = abs(float(law.scale)), known.distribution
            assert distribution is not None
            below, above = (
                distribution((end - start) / scale, law.parameter)
                for end in (low, high)
            )
            total += float(above - below)
        differs = not differs
    return total


def _edge(
    low: float,
    high: float,
    before: bool,
    differ_at: Callable[[float], bool],
    *,
    is_whole: bool,
) -> float:
    """Return the point between ``low`` and ``high`` at which ``differ_at`` changes.

    Args:
        low: A point.
        high: A larger point, at which ``differ_at`` returns the opposite.
        before: Result of ``differ_at`` at ``low``.
        differ_at: Function of a point.
        is_whole: Whether points are whole. The first point after the change is then
            returned, else the middle of the last interval.
    """
    for _ in range(LIMITS.bisections):
        if is_whole and high - low <= 1:
            return high
        middle = (low + high) // 2 if is_whole else (low + high) / 2
        if differ_at(middle) == before:
            low = middle
        else:
            high = middle
    return high if is_whole else (low + high) / 2
