"""What passes before evidence that rests on calls is believed: a look at whether these are independent runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from auditdp.claims.base import Claim
from auditdp.errors import ExhaustedError, Timeout
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.calls.allowance import allowance
from auditdp.mechanism.calls.independence import LEAST_BUDGET, PROCESSES, look
from auditdp.numerics.randomness import Streams
from auditdp.record.details import GameDetails
from auditdp.record.results import REFUTATIONS, Evidence, Verdict

ONE_OUTPUT = (
    "every call on an input gave the same output: a mechanism that drew its noise before all calls (when it was imported or "
    "made, or from the data by a seed) cannot be told from one without noise, and the finding is about either"
)
"""What a finding says where nothing was drawn in any call that was looked at."""
KEPT = 1e-4
"""Probability that a mechanism which remembers its answers, and keeps the claim, is taken for one without noise, at most."""
MOST_ALONE = 1_024
"""Processes that show it, at most: up to a claim of 4.7-DP they keep that probability."""
UNBELIEVED = "but this is not believed, since too little was left to show that the calls are independent runs"
"""What is said of a finding where the calls, or the time, end before that was looked at."""
UNLOOKED = "no noise is kept from the first call on, for which the mechanism was not called in a process of its own"
"""An assumption, where a platform, an input or the budget did not allow that."""


def runs_alone(claim: Claim) -> int:
    """Return how many processes, with one call each, show a mechanism that keeps the claim and remembers its answers.

    Whoever guesses the input from the first output of a process is right with probability at most (1 + δ(0)) / 2, where the
    claim is true of such outputs. So that many guesses are all right with probability ``KEPT``, or they are ``MOST_ALONE``.
    """
    wrong = (1 - claim.delta_at(0.0)) / 2
    return MOST_ALONE if wrong <= 0 else min(math.ceil(math.log(KEPT) / math.log1p(-wrong)), MOST_ALONE)


def believed(
    evidence: Evidence,
    calls: Calls,
    inputs: Sequence[Any],
    streams: Streams,
    budget: int,
    *,
    claim: Claim | None = None,
) -> Evidence:
    """Return evidence whose calls look independent; else evidence of that alone, which decides and bounds nothing.

    A mechanism whose calls are independent passes but for a probability of a few 1e-6
    (``auditdp.mechanism.calls.independence``). A finding of which that cannot be shown with the runs and the time that are
    left is not believed either.
    """
    finding = evidence.verdict is not Verdict.NOT_REFUTED
    unlooked = replace(evidence, assumptions=[*evidence.assumptions, UNLOOKED])
    if budget < LEAST_BUDGET and not finding:  # too few to have been shown anything by
        return unlooked
    alone = PROCESSES if claim is None else runs_alone(claim)
    made, details = allowance().made, evidence.details
    try:
        looked = look(calls, inputs, streams, budget, finding=finding, alone=alone)
    except (ExhaustedError, Timeout) as error:
        if evidence.verdict in (Verdict.NOT_REFUTED, Verdict.INCONCLUSIVE):
            return unlooked
        return withdrawn(evidence, f"{evidence.statement}; {UNBELIEVED}: {error}")
    runs = allowance().made - made
    if isinstance(details, GameDetails):
        details = replace(details, independence_calls=runs)
    evidence = replace(evidence, calls=evidence.calls + runs, details=details)
    if looked.dependent:
        return withdrawn(evidence, looked.dependent)
    if looked.constant and evidence.verdict is Verdict.VIOLATED:
        evidence = replace(evidence, statement=f"{evidence.statement}; {ONE_OUTPUT}")
    return evidence if looked.untouched else replace(evidence, assumptions=[*evidence.assumptions, UNLOOKED])


def withdrawn(evidence: Evidence, reason: str) -> Evidence:
    """Return evidence that decides and bounds nothing, for this reason; it keeps that it refuted what is claimed."""
    details = evidence.details
    return replace(
        evidence,
        verdict=Verdict.INCONCLUSIVE,
        statement=reason,
        epsilon_lower=None,
        epsilon_upper=None,
        counterexample=None,
        unconfirmed=evidence.unconfirmed or evidence.verdict in REFUTATIONS,
        details=replace(details, bound_path=[]) if isinstance(details, GameDetails) else details,
    )
