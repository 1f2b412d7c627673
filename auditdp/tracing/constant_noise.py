"""Noise that is added to a constant first, and only later to a value.

Code fills noise into zeros, or draws the initial weights of a model. The sum of a
constant and noise is a release by itself. A value that is added to the sum later has no
noise of its own, so the outputs differ. Here the runs are made again, and such sums
count as noise. If the outputs still differ, a number that the code computes from the
sum may hide the difference. Runs with other noise on the constants decide whether the
differing numbers depend on it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TypeVar

import numpy as np

from auditdp.tracing.draws import NOISY
from auditdp.tracing.outputs import occurs, same_form, unequal_numbers
from auditdp.tracing.pair_record import PairRecord
from auditdp.tracing.sites import CodeLine
from auditdp.tracing.trace import Trace

AnyPair = TypeVar("AnyPair", bound=PairRecord)


def with_constants(trace: Trace, pair: AnyPair) -> AnyPair:
    """Compare a pair again, with sums of a constant and noise counted as noise.

    Args:
        trace: Trace of the function. It stores the lines of such sums for later pairs.
        pair: A pair whose outputs differ.

    Returns:
        The comparison of new runs if their outputs are equal. Else the given pair, with
        its ``doubt`` set if noise on a constant may hide every number that differs.
    """
    lines = constant_lines(pair)
    if not lines:
        return pair
    outputs = pair.first.output, pair.second.output
    is_same_form = same_form(*outputs)
    differ = unequal_numbers(*outputs) if is_same_form else frozenset()
    unreached = trace.unreached.get(lines, frozenset())
    # Noise does not hide a number that it does not reach.
    if differ & unreached:
        return pair
    trace.tried.add(lines)
    again = trace.again(pair.first, lines)
    anew = type(pair).of(again, trace.replay(pair.second.data, again), pair.claim)
    if anew.differ is None:
        # Later pairs of a search are compared with these lines from the start.
        trace.constants |= lines
        return anew
    if not is_same_form:
        return pair
    doubt = _doubt(lines, anew)
    if doubt:
        differ = _unreached(trace, pair, lines, differ)
    trace.unreached[lines] = unreached | differ
    return pair if differ else replace(pair, doubt=doubt)


def constant_lines(pair: PairRecord) -> frozenset[CodeLine]:
    """Return the lines that add noise only to values equal on both inputs."""
    noisy = [each for each in pair.moved if each.first.kind == NOISY]
    moving = {each.first.site for each in noisy if each.distance or each.why}
    return frozenset(each.first.site for each in noisy) - moving


def _doubt(lines: frozenset[CodeLine], pair: PairRecord) -> str:
    """Return a clause on a noisy constant that the output does not show, or "".

    Args:
        lines: The lines that add noise to constants.
        pair: The comparison of runs in which such a sum is no release.
    """
    for each in pair.moved:
        release = each.first
        if release.site not in lines or each.distance:
            continue
        if not occurs(release.result, pair.first.output):
            line = release.site.line
            return f"the value to which line {line} adds noise does not change, and may hide the difference"
    return ""


def _unreached(
    trace: Trace, pair: PairRecord, lines: frozenset[CodeLine], differ: frozenset[int]
) -> frozenset[int]:
    """Return the differing numbers that the noise of some lines does not change.

    Runs on each input multiply the noisy constants by −10⁶ and by 0. The returned
    numbers stay the same in all of these runs. An example is a weight that the code
    overwrites after its initialisation.

    Args:
        trace: Trace of the function.
        pair: A pair whose outputs have the same form.
        lines: The lines that add noise to constants.
        differ: Indices of the numbers in which the outputs differ.

    Returns:
        The numbers as indices, a subset of ``differ``. Empty if a run has an output of
        another form.
    """
    # Huge noise of the other sign changes whatever is computed from it.
    for factor, run in product((-1e6, 0.0), (pair.first, pair.second)):
        forced = {
            release.number: factor * np.asarray(release.result)
            for release in run.releases
            if release.site in lines
        }
        other = trace.replay(run.data, pair.first, forced=forced).output
        if not same_form(run.output, other):
            return frozenset()
        differ -= unequal_numbers(run.output, other)
        if not differ:
            break
    return differ
