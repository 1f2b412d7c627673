"""Which line makes what got round the noise: a run once more, unwatched, line by line.

Where the same lines ran on both inputs, it is the line after which the code first holds a number by which the outputs
differ, more often than on the other input, or that which returns it. Where they did not, it is the last line that both
inputs had in common.
"""

from __future__ import annotations

import linecache
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from itertools import zip_longest
from types import FrameType
from typing import Any

import numpy as np

from auditdp.mechanism.calls.leaves import leaves
from auditdp.tracing.pair import PairTrace
from auditdp.tracing.sites import NOWHERE, CodeLine, _is_callers
from auditdp.tracing.trace import Trace
from auditdp.tracing.watched_run import TracedRun

MOST, DEEPEST = 2_048, 3
"""Numbers of a variable that are looked at, and how deep they may lie."""
MOST_LOOKED = 1_000_000
"""Numbers that are looked at in all, in half a second: a loop over many records may hold all of them at every line."""
Looks = Callable[[CodeLine, Any], None]
"""What is told of each line that ran: the line, and the variables, or what is returned."""


def made_at(trace: Trace, pair: PairTrace) -> CodeLine:
    """Return the line that makes what got round the noise on a pair; an unknown one where no line is seen to.

    Args:
        trace: Of the function.
        pair: What was seen of the pair.
    """
    try:
        return _parting(trace, pair) if pair.second.parted else _holding(trace, pair)
    except Exception:  # of the code that runs, or of outputs that are no numbers
        return NOWHERE


def _parting(trace: Trace, pair: PairTrace) -> CodeLine:
    """Return the last line before the inputs take other ways; none where a loop over records is longer on one."""
    ways: list[list[CodeLine]] = [[], []]
    for run, way in zip((pair.first, pair.second), ways, strict=True):
        _line_by_line(trace, run, lambda line, _, way=way: way.append(line))  # type: ignore[misc]
    for k, (one, other) in enumerate(zip_longest(*ways)):
        if one != other:
            line = ways[0][k - 1] if k else NOWHERE
            return (
                NOWHERE
                if " for " in f" {linecache.getline(line.file, line.line).lstrip()}"
                else line
            )
    return NOWHERE


def _holding(trace: Trace, pair: PairTrace) -> CodeLine:
    """Return the first line after which variables hold a number by which the outputs differ, more often than on the other.

    Such as 0.5 may be held on both, as something else. A line is preferred that holds the number of either on its own input,
    though after noise, which is no longer the same, none may.
    """
    both = [*zip(leaves(pair.first.output), leaves(pair.second.output), strict=True)]
    told = _told({one for one, other in both if one != other}, pair)
    others = _told({other for one, other in both if one != other}, pair)
    mine, theirs = (
        _held(trace, run, told | others) for run in (pair.first, pair.second)
    )
    found = list[tuple[bool, int, CodeLine]]()
    for when, held in mine.items():
        there = theirs.get(when, Counter())
        if (held - there).keys() & told:
            found.append((not (there - held).keys() & others, len(found), when[0]))
    return min(found)[-1] if found else NOWHERE


def _told(numbers: set[Any], pair: PairTrace) -> set[Any]:
    numbers = numbers - set(_numbers(pair.first.data))
    return {
        x for x in numbers if x != round(x)
    } or numbers  # whole numbers are everywhere


def _held(
    trace: Trace, run: TracedRun, told: Collection[float]
) -> dict[tuple[CodeLine, int], Counter[float]]:
    """Return, for each time that a line ran after which some numbers were held, how often.

    Lists and the like are looked at once: what is put into one later is seen where it is returned.
    """
    found, times = dict[tuple[CodeLine, int], Counter[float]](), Counter[CodeLine]()
    left, seen = iter(range(MOST_LOOKED)), dict[int, Any]()

    def look(line: CodeLine, held: Any) -> None:
        new = (
            {k: each for k, each in held.items() if id(each) not in seen}
            if isinstance(held, dict)
            else held
        )
        if isinstance(held, dict):
            seen.update(
                (id(each), each)
                for each in held.values()
                if isinstance(each, list | tuple | Mapping)
            )
        times[line] += 1
        with suppress(Exception):  # of objects that are not made in full
            if held_there := Counter(
                x for _, x in zip(left, _numbers(new), strict=False) if x in told
            ):
                found[line, times[line]] = held_there

    _line_by_line(trace, run, look)
    return found


def _line_by_line(trace: Trace, run: Any, look: Looks) -> None:
    """Run a function as it was run, and tell of each line of the caller's code what was there after it."""
    at: dict[FrameType, CodeLine] = {}

    def follow(frame: FrameType, event: str, value: Any) -> Any:
        code = frame.f_code
        if not _is_callers(code) or not linecache.getline(
            code.co_filename, frame.f_lineno
        ):  # as of named tuples
            return None
        if (line := at.get(frame)) is not None:
            look(line, frame.f_locals)
        at[frame] = CodeLine(code.co_filename, frame.f_lineno, code.co_name)
        if event == "return":
            look(at.pop(frame), value)
        return follow

    before = sys.gettrace()
    sys.settrace(follow)
    try:
        trace.plainly(run)
    finally:
        sys.settrace(before)


def _numbers(value: Any, depth: int = 0) -> Iterator[float]:
    """Yield the numbers of a variable that are at hand."""
    value = value.state_dict() if hasattr(value, "state_dict") else value
    if isinstance(value, int | float | np.number):
        yield float(value)
    elif isinstance(value, Mapping | list | tuple):
        for each in (
            (list(value.values()) if isinstance(value, Mapping) else value)[:MOST]
            if depth < DEEPEST
            else ()
        ):
            yield from _numbers(each, depth + 1)
    elif hasattr(value, "shape") and np.prod(value.shape) <= MOST:
        array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
        if array.dtype.kind in "fiub":
            yield from array.astype(float).ravel().tolist()
