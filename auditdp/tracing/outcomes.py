"""Other outcomes of events and choices: the law of what the code decides by chance, for the same noisy values.

Randomised response draws a coin that does not depend on the data and turns the answer round by it, so with the same coin the
outputs differ on every pair. What counts is the law of the output. Here every outcome of the events and choices of a run is
forced in turn, on both inputs, with the noisy values as recorded; the probability of each is known, so the law of the output
given these values is exact where all outcomes fit into the budget. Where they do not, those that differ from the
recorded run in one outcome are looked at first.

A noisy value that one input alone has: how often does the output show it?

A count that is released only where it reaches a threshold, for a key that only one input has, is private by the tail of its
noise: with the value forced below the threshold both outputs are the same, above it they differ. The probability of the
results at which they differ is the δ that it costs, exact for whole noise in the range that is tried, and up to the
bisection for other noise.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from auditdp.mechanism.calls.leaves import Raised, form_key, leaves
from auditdp.tracing.chance import (
    is_by_chance,
    other_outcomes,
    probability_of,
)
from auditdp.tracing.draws import CHOICE, NOISY, Release
from auditdp.tracing.outputs import where_differ
from auditdp.tracing.trace import Trace
from auditdp.tracing.watched_run import TracedRun

MOST_RUNS = 64
"""Runs on each input, at most."""


@dataclass(frozen=True)
class Outcomes:
    """What chance decides on a pair, given the recorded noisy values.

    Attributes:
        masses: For each output seen, its probability on both inputs.
        complete: Whether all outcomes were tried.
        matched: Whether the recorded output was seen on the other input.
        only: An output that one input alone gives, and the runs that gave it; None where there is none.
        runs: How many runs were made.
        outputs: For each output seen, itself.
        telling: Numbers of recorded choices of which every other outcome that was tried, alone, gave another output.
    """

    masses: Mapping[bytes, tuple[float, float]]
    complete: bool
    matched: bool
    only: TracedRun | None
    runs: int
    outputs: Mapping[bytes, Any]
    telling: frozenset[int] = frozenset()

    @property
    def epsilon(self) -> float:
        """The largest |ln p/p′| over the outputs that both inputs give."""
        return max(
            (abs(math.log(p / q)) for p, q in self.masses.values() if p > 0 and q > 0),
            default=0.0,
        )

    @property
    def delta(self) -> float:
        """The probability of the outputs that one input alone gives, the larger of both directions."""
        first = math.fsum(p for p, q in self.masses.values() if q <= 0)
        second = math.fsum(q for p, q in self.masses.values() if p <= 0)
        return max(first, second)

    def delta_at(self, epsilon: float) -> float:
        """Return Σ (p − e^ε p′)₊, the larger of both directions."""
        factor = math.exp(min(epsilon, 700.0))
        first = math.fsum(max(p - factor * q, 0.0) for p, q in self.masses.values())
        return max(
            first, math.fsum(max(q - factor * p, 0.0) for p, q in self.masses.values())
        )


def explored(
    trace: Trace, recorded: TracedRun, neighbour: Any, most: int = MOST_RUNS
) -> Outcomes:
    """Return the law of the output on both inputs, over the outcomes of events and choices.

    Args:
        trace: Of the function.
        recorded: A run on the one input.
        neighbour: The other input.
        most: Runs on each input.
    """
    sides: list[dict[bytes, float]] = []
    complete, runs = True, 0
    examples: dict[bytes, TracedRun] = {}
    book = replace(recorded, releases=[*recorded.releases], draws=[*recorded.draws])
    tells: dict[int, bool] = {}
    choices = {
        release.number for release in recorded.releases if release.kind == CHOICE
    }
    for data in (recorded.data, neighbour):
        masses: dict[bytes, float] = {}
        waiting: deque[dict[int, Any]] = deque([{}])
        made = 0
        while waiting and made < most:
            forced = waiting.popleft()
            run = trace.replay(data, book, forced=forced)
            made += 1
            _extend(book, run)
            key = output_key(run.output)
            decided = [release for release in run.releases if is_by_chance(release)]
            masses[key] = masses.get(key, 0.0) + math.prod(map(probability_of, decided))
            examples.setdefault(key, run)
            changed = _only_change(recorded, forced) if not sides else None
            if changed in choices:
                tells[changed] = tells.get(changed, True) and key != output_key(
                    recorded.output
                )
            whole = _push(waiting, decided, forced)
            complete = complete and whole
        complete = complete and not waiting
        runs += made
        sides.append(masses)
    both = {
        key: (sides[0].get(key, 0.0), sides[1].get(key, 0.0))
        for key in {*sides[0], *sides[1]}
    }
    matched = sides[1].get(output_key(recorded.output), 0.0) > 0
    alone = [key for key, (p, q) in both.items() if (p > 0) != (q > 0)]
    only = examples[max(alone, key=lambda key: max(both[key]))] if alone else None
    outputs = {key: run.output for key, run in examples.items()}
    telling = frozenset(number for number, tell in tells.items() if tell)
    return Outcomes(both, complete, matched, only, runs, outputs, telling)


def _only_change(recorded: TracedRun, forced: Mapping[int, Any]) -> int | None:
    """Return the last release that is forced, where all before it are forced to what was recorded."""
    last = max(forced, default=-1)
    alike = all(number < len(recorded.releases) for number in forced) and all(
        np.array_equal(recorded.releases[number].result, forced[number])
        for number in forced
        if number != last
    )
    return last if alike and last >= 0 else None


def _extend(book: TracedRun, run: TracedRun) -> None:
    """Add to the record what only other outcomes lead to, so that both inputs get the same draws and noisy values."""
    have, seen = Counter((d.site, d.method) for d in book.draws), Counter[Any]()
    for draw in run.draws:
        seen[key := (draw.site, draw.method)] += 1
        if seen[key] > have[key]:
            book.draws.append(draw)
    have, seen = Counter((r.site, r.law.family) for r in book.releases), Counter()
    for release in run.releases:
        seen[key := (release.site, release.law.family)] += 1
        if seen[key] > have[key]:
            book.releases.append(release)


def _push(
    waiting: deque[dict[int, Any]], decided: list[Release], forced: Mapping[int, Any]
) -> bool:
    """Add the runs that differ from one in a later outcome; return whether all of them were added."""
    whole, last = True, max(forced, default=-1)
    for place, release in enumerate(decided):
        if release.number <= last:
            continue
        before = {earlier.number: earlier.result for earlier in decided[:place]}
        others, all_of_them = other_outcomes(release)
        whole = whole and all_of_them
        waiting.extend({**before, release.number: other} for other in others)
    return whole


def output_key(output: Any) -> bytes:
    """Return bytes that outputs share which are the same, their types included."""
    if isinstance(output, Raised):
        return str(output).encode()
    try:
        return np.array(list(leaves(output)), float).tobytes() + form_key(output)
    except Exception:  # of a type that no output of an audit may have
        return repr(output).encode()


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
    alone = [
        (first, release) for release in first.releases if release.number not in used
    ]
    return alone + [
        (second, release) for release in second.releases if release.recorded is None
    ]


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
        if (
            release.kind != NOISY
            or release.shape
            or known is None
            or known.log_density is None
        ):
            return None
        if not known.is_whole and known.distribution is None:
            return None
        differs = _Differs(
            trace, run, release.number, second if run is first else first
        )
        chance = (
            _whole(release, differs)
            if known.is_whole
            else _continuous(release, differs)
        )
        outputs = (
            differs.outputs
            if run is first
            else [(there, here) for here, there in differs.outputs]
        )
        found.append(ShownTail(release, chance, outputs))
    return found


class _Differs:
    """Tells whether outputs differ where one release has another result, and keeps the outputs that do."""

    def __init__(
        self, trace: Trace, run: TracedRun, number: int, other: TracedRun
    ) -> None:
        self._trace, self._run, self._number, self._other = trace, run, number, other
        self.outputs: list[tuple[Any, Any]] = []

    def __call__(self, result: float) -> bool:
        forced = self._trace.replay(
            self._run.data, self._run, forced={self._number: result}
        )
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
    return math.fsum(
        math.exp(release.law.log_likelihood(start, k))
        for k, shown_there in shows.items()
        if shown_there
    )


def _continuous(release: Release, differs: Callable[[float], bool]) -> float:
    """Return the probability of the intervals in which outputs differ, their ends found by bisection."""
    law, start = release.law, float(release.location or 0.0)
    scale, known = abs(float(law.scale)), release.law.known
    assert known is not None
    distribution: Any = known.distribution
    points = [start + scale * t for t in GRID]
    states = [differs(point) for point in points]
    between = pairwise(zip(points, states, strict=True))
    ends = [
        _end(a, b, before, differs)
        for (a, before), (b, after) in between
        if before != after
    ]
    state, total = states[0], 0.0
    for edges in pairwise([-math.inf, *ends, math.inf]):
        if state:
            low, high = (
                distribution((edge - start) / scale, law.parameter) for edge in edges
            )
            total += float(high - low)
        state = not state
    return total


def _end(a: float, b: float, before: bool, differs: Callable[[float], bool]) -> float:
    for _ in range(BISECTIONS):
        middle = (a + b) / 2
        a, b = (middle, b) if differs(middle) == before else (a, middle)
    return (a + b) / 2
