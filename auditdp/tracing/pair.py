"""Comparison of two traced runs on neighbouring inputs.

It has the noisy values that differ, the privacy loss of each, and differences that no
noise covers. `compare` traces one pair. A search calls its steps one by one: `replayed`
compares a recorded run with its replay, `in_full` tries other outcomes of chance, and
`checked` tests the findings by other runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from auditdp.claims.claim import Claim
from auditdp.tracing.chance import is_by_chance
from auditdp.tracing.constant_noise import constant_lines, with_constants
from auditdp.tracing.findings import Finding, Printed, findings_of, of_line
from auditdp.tracing.order_statistics import ordered
from auditdp.tracing.outcomes import MOST_RUNS, explored
from auditdp.tracing.outputs import where_differ
from auditdp.tracing.pair_record import PairRecord
from auditdp.tracing.prediction import Prediction, predicted
from auditdp.tracing.threshold_tails import ShownTail, threshold_tails
from auditdp.tracing.trace import Trace
from auditdp.tracing.watched_run import TracedRun


@dataclass(frozen=True, eq=False)
class PairTrace(PairRecord, Printed):
    """A recorded run, its replay on a neighbour, and the findings.

    Attributes:
        prediction: The statements that runs with other draws confirmed; None if no such
            runs were made.
    """

    prediction: Prediction | None = None

    @property
    def is_bound(self) -> bool:
        """True if runs confirmed that the releases' loss bounds the output's loss.

        It is False if no such runs were made. See `prediction`.
        """
        return self.prediction is not None and self.prediction.is_bound

    @cached_property
    def findings(self) -> list[Finding]:
        """The findings: confirmed ones first, then those read off, then the others.

        See ``is_confirmed`` and ``is_read_off`` of ``Finding``.
        """
        found = findings_of(self)
        if self.prediction is not None:
            confirmed = self.prediction.confirmed
            found = [
                replace(each, is_confirmed=(each.kind, each.site) in confirmed)
                for each in found
            ]
        return sorted(
            found, key=lambda each: (not each.is_confirmed, not each.is_read_off)
        )

    @property
    def proposes(self) -> bool:
        """True if some finding is read off; see ``Finding.is_read_off``."""
        return any(finding.is_read_off for finding in self.findings)

    def __str__(self) -> str:
        """Return the findings, other lines with releases, and ``summary``, as lines."""
        found = [finding.sentence for finding in self.findings]
        lines = [of_line(pairs, self.claim) for pairs in self.by_line().values()]
        others = [line for line in lines if line not in found]
        return "\n".join([*map(str, self.findings), *others, self.summary])

    @property
    def summary(self) -> str:
        """A clause with the loss of all releases; it holds for this pair and run.

        Without a claim the clause states no loss.
        """
        if self.claim is None:
            return "on this pair and run; there is no claim to compare it with"
        loss = f"{self.claim.parameter} = {self.level:.6g}"
        if not self.is_bound or self.level == math.inf:
            return (
                f"on this pair and run, the part that the trace understands has a loss of "
                f"{loss}; the output may lose more, or less"
            )
        return f"on this pair and run: at most {loss}; the claim is {self.claim}"


def compare(
    trace: Trace,
    data: Any,
    neighbour: Any,
    rng: np.random.Generator,
    *,
    claim: Claim | None = None,
    outcomes: int = MOST_RUNS,
) -> PairTrace:
    """Record a run on an input, replay it on a neighbour, and compare both.

    Args:
        trace: Trace of the function. Callers with many pairs enter it once before them.
        data: The input.
        neighbour: The other input.
        rng: The generator of the recorded run.
        claim: The claim that the function has to satisfy; None to state the losses
            alone.
        outcomes: Largest number of runs on each input that try outcomes of events and
            choices. With 0, these runs are left out, and so are those that test the
            findings.
    """
    with trace:
        recorded = trace.record(data, rng)
        pair = replayed(trace, recorded, neighbour, claim=claim, outcomes=outcomes)
        return checked(trace, pair) if outcomes else pair


def checked(trace: Trace, pair: PairTrace) -> PairTrace:
    """Return the pair with its ``prediction``, made by runs with other draws.

    A pair that has one already is returned as it is.
    """
    if pair.prediction is not None:
        return pair
    with trace:
        return replace(pair, prediction=predicted(trace, pair, pair.findings))


def replayed(
    trace: Trace,
    recorded: TracedRun,
    neighbour: Any,
    *,
    claim: Claim | None = None,
    outcomes: int = MOST_RUNS,
) -> PairTrace:
    """Replay a recorded run on a neighbour, and compare both.

    A search that starts from one input calls this for each neighbour. The recorded run
    is made again if the replay finds a new line at which a sampler gets a location.

    Args:
        trace: Trace of the function.
        recorded: The recorded run.
        neighbour: The other input.
        claim: The claim that the function has to satisfy; None to state the losses
            alone.
        outcomes: Largest number of runs on each input that try outcomes of events and
            choices. With 0, the runs of ``in_full`` are left out, except those in which
            sums of a constant and noise count as noise. A set of lines with such sums
            is then tried once.
    """
    with trace:
        ambiguous = trace.locations.ambiguous
        second = trace.replay(neighbour, recorded)
        if trace.locations.ambiguous > ambiguous:
            # The replay drew around a location where the recorded run drew around 0.
            # That run has other releases with it, so it is recorded again.
            again = trace.again(recorded, recorded.constants)
            return replayed(trace, again, neighbour, claim=claim, outcomes=outcomes)
        pair = _best_order(trace, PairTrace.of(recorded, second, claim))
        if outcomes:
            return in_full(trace, pair, outcomes)
        # A search tries each set of lines once.
        if pair.differ is not None and constant_lines(pair) not in trace.tried:
            pair = with_constants(trace, pair)
        return pair


def in_full(trace: Trace, pair: PairTrace, outcomes: int) -> PairTrace:
    """Return the pair after further runs, as far as they apply to it.

    - If the outputs differ, runs are made in which sums of a constant and noise count
      as noise.
    - If the outputs differ, a replay on the same input tests whether it has the same
      output again.
    - If there is a loss, a run with another generator finds noise that is fixed.
    - If the loss exceeds the claim, runs test whether the output reveals only an order.
    - Other outcomes of events and choices are tried. If the runs have none, differ in
      their draws or releases, and there is a claim, the tails of noisy numbers of one
      input alone are computed.

    Args:
        trace: Trace of the function.
        pair: The comparison of a recorded run and its replay.
        outcomes: Largest number of runs on each input that try outcomes of events and
            choices.
    """
    with trace:
        if pair.differ is not None and not pair.doubt:
            pair = with_constants(trace, pair)
        first, second, moved = pair.first, pair.second, pair.moved
        fixed: frozenset[int] = frozenset()
        if any(each.loss and any(each.loss) for each in moved):
            draws = [draw for draw in first.draws if trace.is_fixed(draw, first)]
            fixed = frozenset(number for draw in draws for number in draw.used.values())
        repeats = pair.repeats
        if pair.differ is not None and repeats is None:
            again = trace.replay(first.data, first)
            repeats = where_differ(first.output, again.output) is None
        # The order alone loses less, which matters only above the claim.
        if pair.satisfies is False:
            moved = ordered(trace, first, moved)
        law, tails = None, list[ShownTail]()
        if any(map(is_by_chance, [*first.releases, *second.releases])):
            law = explored(trace, first, second.data, outcomes)
        elif pair.claim is not None and second.parted:
            tails = threshold_tails(trace, first, second)
        return replace(
            pair, moved=moved, outcomes=law, shown=tails, repeats=repeats, fixed=fixed
        )


def _best_order(trace: Trace, pair: PairTrace) -> PairTrace:
    """Return the comparison, with the releases in a better order if there is one.

    Every order of the releases of a line is a coupling of the draws. The alternative is
    the order in which values move least. It is better if it makes the outputs equal, or
    else if the loss is smaller.
    """
    claim, loss = pair.claim, pair.composed
    # The search for another order takes a run, and a good comparison needs none.
    if pair.differ is None and (claim is None or loss.satisfies(claim)):
        return pair
    other = trace.reordered(pair.second.data, pair.first, pair.second)
    if other is None:
        return pair
    anew = PairTrace.of(pair.first, other, claim)
    loses_less = claim is not None and anew.composed.share(claim) < loss.share(claim)
    if anew.differ is None:
        is_better = pair.differ is not None or loses_less
    else:
        is_better = pair.differ is not None and bool(other.parted) and loses_less
    return anew if is_better else pair
