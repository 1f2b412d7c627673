"""One-run evidence: many canaries, each in the training data by its own coin, guessed from what one training releases.

Null hypothesis: adding or removing any one canary changes the law of what is released as the claim allows. Guarantee: the
verdict is VIOLATED, or the lower bound exceeds the truth, with probability at most alpha. Assumes that a canary more or less
is a step between neighbours, whatever the other canaries are, and that scores are computed from what is released and not
from the coins. For pure ε every number of guesses is tried at once, and the law of the maximum is known
(``auditdp.bounds.thresholds``); for any other claim all canaries, a quarter and a sixteenth of them are guessed, which is
fixed beforehand, with a third of alpha each (``auditdp.bounds.one_run``: the recursion of Mahloujifar, Melis & Chaudhuri
2024, arXiv:2410.22235v1, for the trade-off curve of the claim).

Several trainings, each with canaries and coins of its own, are one: jointly they are a mechanism of all the coins, in which
each coin is as protected as in its own training.

Before anything is believed of several trainings, the first is made again after the others, with its generator: where its
scores differ, trainings depend on each other. Of a mechanism that draws from elsewhere that they do not is assumed.

A finding is not confirmed by a second training, which would cost as much again: alpha is the probability of a false one.

Beside that it is said what follows ASSUMING Gaussian scores, and whether they look so
(``auditdp.bounds.stated_assumptions``). That is mostly more, and neither verdict nor bound of the audit comes of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from auditdp.adjacency import Adjacency
from auditdp.adjacency.nodes import Canaries
from auditdp.betting.wealth.levels import is_bound
from auditdp.bounds.api import in_one_run
from auditdp.bounds.privacy_curves import curve_of_claim
from auditdp.bounds.result import Bound, Question
from auditdp.bounds.stated_assumptions import Assumed, assuming_gaussian
from auditdp.claims.claim import Claim
from auditdp.errors import AdjacencyError, MechanismError
from auditdp.evidence.request import EvidenceRequest, withdrawn
from auditdp.mechanism.calls import Calls
from auditdp.mechanism.calls.independence import REMEDY, SAME
from auditdp.mechanism.calls.leaves import Raised
from auditdp.mechanism.protocol import Mechanism
from auditdp.numerics.arrays import Floats
from auditdp.numerics.rounding import at_least, confidence
from auditdp.numerics.streams import Streams, prefixed
from auditdp.record.details import OneRunDetails
from auditdp.record.results import SYMBOLS, Counterexample, Evidence, Verdict


def gathered(request: EvidenceRequest, alpha: float) -> Evidence:
    """Canaries of one training, or of as many as the audit names."""
    trainings = request.calls if request.budget.named is not None else 1
    made, adjacency = request.adapted, request.adjacency
    return one_run_evidence(
        made,
        request.privacy,
        adjacency,
        alpha=alpha,
        trainings=trainings,
        streams=request.streams,
    )


def one_run_evidence(
    mechanism: Mechanism,
    claim: Claim,
    adjacency: Adjacency,
    *,
    alpha: float,
    trainings: int,
    streams: Streams,
) -> Evidence:
    """Audit a claim by guessing which canaries were in.

    The mechanism is one of which canaries are in, bool, shape (canaries,); it returns a score of each, larger for those
    that look more like being in, each output of shape (canaries,). Each training has fresh coins. A false VIOLATED verdict,
    or a lower bound above the truth, has probability at most ``alpha``.

    Raises:
        AdjacencyError: If inputs are not canaries, or fewer than two coins are thrown.
        MechanismError: If the mechanism raises, or does not return a finite score for each canary.
    """
    if not isinstance(adjacency, Canaries):
        raise AdjacencyError(
            f"evidence 'one_run' needs pairs=Canaries(count), whose inputs say which are in, got {adjacency.name}"
        )
    if trainings * adjacency.count < 2:
        raise AdjacencyError(
            f"evidence 'one_run' needs two canaries or trainings at least, got {adjacency.name}"
        )
    made, streams = Calls(mechanism), prefixed(streams, "one_run:")
    coins = [
        streams("coins", k).random(adjacency.count) < 0.5 for k in range(trainings)
    ]
    scores = [
        _scores(made, included, streams("training", k))
        for k, included in enumerate(coins)
    ]
    question = Question(curve_of_claim(claim), alpha, claim.level)
    labels = np.concatenate(coins).astype(np.int8)
    bound = in_one_run(
        np.concatenate(scores), labels, question, rng=streams("order", 0)
    )
    assumed = (
        assuming_gaussian(np.concatenate(scores), labels, question)
        if is_bound(claim)
        else None
    )
    found = _evidence(bound, assumed, claim, adjacency, trainings)
    if trainings == 1 or not made.seeded or not (bound.lower > 0 or bound.refuted):
        return found
    again = _scores(made, coins[0], streams("training", 0))
    if np.allclose(again, scores[0], rtol=SAME, atol=SAME * np.abs(scores[0]).max()):
        return found
    return withdrawn(
        found,
        f"{made.name}: the first training gave other scores when it was made again. {REMEDY}",
    )


def _scores(calls: Calls, included: Any, rng: np.random.Generator) -> Floats:
    """Return the scores of one training's canaries."""
    (output,) = calls.outputs(included, 1, rng)
    if isinstance(output, Raised):
        raise MechanismError(
            f"{calls.name} raised {type(output.error).__name__}: {output.error} (on a training with {included.sum():,} of "
            f"{len(included):,} canaries)"
        ) from output.error
    try:
        scores = np.asarray(output, dtype=float)
    except (TypeError, ValueError):
        raise MechanismError(
            f"{calls.name}: expected a score for each canary, numbers, got {output!r:.60}"
        ) from None
    if scores.shape != included.shape or not np.isfinite(scores).all():
        wrong = (
            f"shape {scores.shape}"
            if scores.shape != included.shape
            else f"{scores[~np.isfinite(scores)][0]}"
        )
        raise MechanismError(
            f"{calls.name}: expected a finite score for each of {len(included):,} canaries, shape ({len(included)},), got "
            f"{wrong}; larger is more like 'in', and where nothing is known any one number will do"
        )
    return scores


def _evidence(
    bound: Bound,
    assumed: Assumed | None,
    claim: Claim,
    adjacency: Canaries,
    trainings: int,
) -> Evidence:
    runs = "one training" if trainings == 1 else f"{trainings:,} trainings"
    lower, sure = (
        f"{SYMBOLS[claim.parameter]} {at_least(bound.lower, claim.level)}, ",
        confidence(bound.alpha),
    )
    shown = f"({lower if is_bound(claim) else ''}{sure})"
    seen = f"Which canaries were in was guessed from {runs} ({bound.statistic})"
    also = (
        ""
        if assumed is None
        else f". {assumed.statement(SYMBOLS[claim.parameter], sure)}"
    )
    common: dict[str, Any] = {
        "kind": "one_run",
        "assumptions": [
            *bound.assumptions,
            f"neighbours: {adjacency.name}",
            f"source: {bound.source}",
        ],
        "epsilon_lower": bound.lower if is_bound(claim) else None,
        "calls": trainings,
        "details": OneRunDetails(
            canaries=adjacency.count,
            trainings=trainings,
            method=bound.method,
            p_value=bound.p_value,
            assumed_lower=None if assumed is None else assumed.lower,
            assumption_p_value=None if assumed is None else assumed.p_value,
            assumption_power=None if assumed is None else assumed.power,
        ),
    }
    if not bound.refuted:
        return Evidence(
            verdict=Verdict.NOT_REFUTED,
            statement=f"{seen}, which does not refute the claim {shown}{also}",
            **common,
        )
    assert bound.p_value is not None  # a claim was given
    explanation = f"{seen}; where the claim is true, guesses are right so often with probability at most {bound.p_value:.3g}"
    return Evidence(
        verdict=Verdict.VIOLATED,
        statement=f"{seen}, which refutes the claim {shown}{also}",
        counterexample=Counterexample(
            pair=f"{adjacency.name}, whichever others are there",
            explanation=explanation,
        ),
        **common,
    )
