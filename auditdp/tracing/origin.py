"""The line that makes a difference which no noise covers.

The code runs once more on each input, unwatched, line by line.

There are two cases. If the replay has other draws than the record, the line is the last
one before the two runs go different ways. Otherwise a number differs between the
outputs. The line is then the first one after which variables of the code hold this
number more often than on the other input. A number that a function returns counts as
held.
"""

from __future__ import annotations

import linecache
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from itertools import islice, zip_longest
from types import FrameType
from typing import Any

import numpy as np

from auditdp.mechanism.calls.leaves import leaves
from auditdp.tracing.pair import PairTrace
from auditdp.tracing.sites import NOWHERE, CodeLine, _is_callers
from auditdp.tracing.trace import Trace
from auditdp.tracing.trace_limits import LIMITS
from auditdp.tracing.watched_run import TracedRun

Visit = Callable[[CodeLine, Any], None]
"""Function that is called after each line that ran.

It gets the line and its local variables, or the line and the value that it returned.
"""


def made_at(trace: Trace, pair: PairTrace) -> CodeLine:
    """Return the line that makes a difference without noise.

    Args:
        trace: Trace of the function.
        pair: A pair whose outputs differ.

    Returns:
        The line; ``NOWHERE`` if it is not found, which includes any error.
    """
    try:
        if pair.second.parted:
            return _last_common_line(trace, pair)
        return _first_holding_line(trace, pair)
    except Exception:
        # The running code raised, or its outputs are no numbers.
        return NOWHERE


def _last_common_line(trace: Trace, pair: PairTrace) -> CodeLine:
    """Return the last line before the runs on the two inputs go to different lines.

    It is ``NOWHERE`` if that line has a ``for``, because then the loop may only have
    more passes on one input.
    """
    ways: list[list[CodeLine]] = []
    for run in (pair.first, pair.second):
        way: list[CodeLine] = []
        _visit_lines(trace, run, lambda line, _, way=way: way.append(line))  # type: ignore[misc]
        ways.append(way)
    last = NOWHERE
    for line, other in zip_longest(*ways):
        if line == other:
            last = line
            continue
        text = linecache.getline(last.file, last.line).lstrip()
        return NOWHERE if " for " in f" {text}" else last
    return NOWHERE


def _first_holding_line(trace: Trace, pair: PairTrace) -> CodeLine:
    """Return the first line after which variables hold a differing number.

    A number such as 0.5 may occur on both inputs by accident. So the variables on the
    first input have to hold a number of its output more often than on the second input.
    A line is preferred if the variables on the second input also hold a number of its
    output more often. ``NOWHERE`` is returned if there is no line of either kind.
    """
    outputs = leaves(pair.first.output), leaves(pair.second.output)
    unequal = [(a, b) for a, b in zip(*outputs, strict=True) if a != b]
    own = _distinctive({number for number, _ in unequal}, pair)
    others = _distinctive({number for _, number in unequal}, pair)
    mine, theirs = (
        _holding_lines(trace, run, own | others) for run in (pair.first, pair.second)
    )
    best = NOWHERE
    for (line, time), held in mine.items():
        there = theirs.get((line, time), Counter())
        # The number has to be held here, and more often than on the other input.
        if not (held - there).keys() & own:
            continue
        if (there - held).keys() & others:
            return line
        if best is NOWHERE:
            best = line
    return best


def _distinctive(numbers: set[Any], pair: PairTrace) -> set[Any]:
    """Return the numbers that do not occur in the data of the first input.

    Whole numbers are left out, unless all of these numbers are whole.
    """
    numbers = numbers - set(_numbers(pair.first.data))
    # Whole numbers also occur as counts and places, so they locate no line.
    return {number for number in numbers if number != round(number)} or numbers


def _holding_lines(
    trace: Trace, run: TracedRun, numbers: Collection[float]
) -> dict[tuple[CodeLine, int], Counter[float]]:
    """Return counts of some numbers in the variables, after each run of each line.

    A key is a line and the number of its runs so far. The value has the count of each
    number. A container is read once. A number that is added to it later is counted when
    a function returns the container.
    """
    found: dict[tuple[CodeLine, int], Counter[float]] = {}
    times: Counter[CodeLine] = Counter()
    budget = iter(range(LIMITS.read_numbers))
    # Containers are kept alive, so that an id stays that of its object.
    containers: dict[int, Any] = {}

    def visit(line: CodeLine, held: Any) -> None:
        times[line] += 1
        if isinstance(held, dict):
            fresh = {k: each for k, each in held.items() if id(each) not in containers}
            for each in held.values():
                if isinstance(each, list | tuple | Mapping):
                    containers[id(each)] = each
            held = fresh
        # An object may be incomplete, which raises any error.
        with suppress(Exception):
            pairs = zip(budget, _numbers(held), strict=False)
            counts = Counter(number for _, number in pairs if number in numbers)
            if counts:
                found[line, times[line]] = counts

    _visit_lines(trace, run, visit)
    return found


def _visit_lines(trace: Trace, run: TracedRun, visit: Visit) -> None:
    """Make a run again, and visit each line of the caller's code after it ran."""
    lines: dict[FrameType, CodeLine] = {}

    def follow(frame: FrameType, event: str, value: Any) -> Any:
        code = frame.f_code
        if not _is_callers(code):
            return None
        # Methods of named tuples have no source.
        if not linecache.getline(code.co_filename, frame.f_lineno):
            return None
        # A line has run when the next event of its frame arrives.
        if frame in lines:
            visit(lines[frame], frame.f_locals)
        lines[frame] = CodeLine(code.co_filename, frame.f_lineno, code.co_name)
        if event == "return":
            visit(lines.pop(frame), value)
        return follow

    # A debugger or a measurement of coverage may trace this process already.
    before = sys.gettrace()
    sys.settrace(follow)
    try:
        trace.plainly(run)
    finally:
        sys.settrace(before)


def _numbers(value: Any, depth: int = 0) -> Iterator[float]:
    """Yield the numbers of a variable, up to the limits of depth and size.

    Args:
        value: The value of the variable.
        depth: Number of containers around the value.
    """
    if hasattr(value, "state_dict"):
        value = value.state_dict()
    if isinstance(value, int | float | np.number):
        yield float(value)
    elif isinstance(value, Mapping | list | tuple):
        items = value.values() if isinstance(value, Mapping) else value
        for each in islice(
            items, LIMITS.read_entries if depth < LIMITS.read_depth else 0
        ):
            yield from _numbers(each, depth + 1)
    elif hasattr(value, "shape") and np.prod(value.shape) <= LIMITS.read_entries:
        array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
        if array.dtype.kind in "fiub":
            yield from array.astype(float).ravel().tolist()
