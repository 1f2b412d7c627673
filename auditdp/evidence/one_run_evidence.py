"""One-run evidence: guesses about the canaries in the data of one training.

Each of many canaries is in the data by its own coin. Null hypothesis: adding or
removing any one canary changes the law of the release as the claim allows. Guarantee: a
false verdict VIOLATED, or a lower bound above the true level, has probability at most
alpha. Assumptions: adding a canary is a step between neighbours, whatever the other
canaries are, and scores are computed from the release and not from the coins.

For pure ε every number of guesses is tried at once, and the law of the maximum is known
(``auditdp.bounds.thresholds``). For any other claim, guesses are made about all
canaries, about a quarter and about a sixteenth of them, each with a third of alpha.
These numbers are fixed beforehand (``auditdp.bounds.one_run``: the recursion of
Mahloujifar, Melis & Chaudhuri 2024, arXiv:2410.22235v1, for the trade-off curve of the
claim).

Several trainings, each with canaries and coins of its own, count as one: jointly they
are a mechanism of all the coins, in which each coin is as protected as in its own
training.

Before a finding of several trainings is reported, the first training is repeated after
the others, with the same generator. If its scores differ, trainings depend on each
other. For a mechanism that draws its own randomness, independence is assumed.

A finding is not confirmed by a second training, which would cost the same again: alpha
bounds the probability of a false finding.

The evidence also states the consequence of ASSUMING Gaussian scores, and whether they
look Gaussian (``auditdp.bounds.stated_assumptions``). That bound is mostly larger, and
affects neither verdict nor bound of the audit.
"""

from __future__ import annotations

from dataclasses import replace
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
    """Return the evidence from guesses about canaries.

    It is from one training, or from the number of trainings that the audit names.
    """
    return one_run_evidence(
        request.adapted,
        request.privacy,
        request.adjacency,
        alpha=alpha,
        trainings=request.calls if request.budget.named is not None else 1,
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
    """Audit a claim by guessing which canaries were in the training data.

    The input of the mechanism is the presence of each canary, bool, shape (canaries,).
    Its output is a score of each canary, shape (canaries,), larger for canaries that
    look more like being in. Each training has fresh coins. A false VIOLATED verdict, or
    a lower bound above the true level, has probability at most ``alpha``.

    Returns:
        Evidence with the verdict VIOLATED or NOT_REFUTED. INCONCLUSIVE if there is a
        finding or a bound, but the first training has other scores when it is repeated.

    Raises:
        AdjacencyError: If inputs are not canaries, or fewer than two coins are thrown.
        MechanismError: If the mechanism raises, or does not return a finite score for
            each canary.
    """
    if not isinstance(adjacency, Canaries):
        raise AdjacencyError(
            "evidence 'one_run' needs pairs=Canaries(count), whose inputs say which "
            f"are in, got {adjacency.name}"
        )
    if trainings * adjacency.count < 2:
        raise AdjacencyError(
            f"evidence 'one_run' needs two canaries or trainings at least, got {adjacency.name}"
        )
    caller, streams = Calls(mechanism), prefixed(streams, "one_run:")
    places = range(trainings)
    coins = [streams("coins", k).random(adjacency.count) < 0.5 for k in places]
    scores = [_scores(caller, coins[k], streams("training", k)) for k in places]
    question = Question(curve_of_claim(claim), alpha, claim.level)
    # All trainings are guessed together, as one mechanism of all coins.
    labels = np.concatenate(coins).astype(np.int8)
    everything = np.concatenate(scores)
    bound = in_one_run(everything, labels, question, rng=streams("order", 0))
    assumed = None
    if is_bound(claim):
        assumed = assuming_gaussian(everything, labels, question)
    found = _evidence(bound, assumed, claim, adjacency, trainings)
    # A clean result needs no repetition, and a single training cannot depend on others.
    if trainings == 1 or not caller.seeded or not (bound.lower > 0 or bound.refuted):
        return found
    again = _scores(caller, coins[0], streams("training", 0))
    if np.allclose(again, scores[0], rtol=SAME, atol=SAME * np.abs(scores[0]).max()):
        return found
    return withdrawn(
        found,
        f"{caller.name}: the first training gave other scores when it was made again. {REMEDY}",
    )


def _scores(calls: Calls, included: Any, rng: np.random.Generator) -> Floats:
    """Return the scores of one training's canaries."""
    # An exception is no score: a training that fails decides nothing.
    (output,) = calls.outputs(included, 1, rng)
    if isinstance(output, Raised):
        raise MechanismError(
            f"{calls.name} raised {type(output.error).__name__}: {output.error} (on a "
            f"training with {included.sum():,} of "
            f"{len(included):,} canaries)"
        ) from output.error
    try:
        scores = np.asarray(output, dtype=float)
    except (TypeError, ValueError):
        raise MechanismError(
            f"{calls.name}: expected a score for each canary, numbers, got {output!r:.60}"
        ) from None
    if scores.shape != included.shape:
        wrong = f"shape {scores.shape}"
    elif not np.isfinite(scores).all():
        wrong = f"{scores[~np.isfinite(scores)][0]}"
    else:
        return scores
    raise MechanismError(
        f"{calls.name}: expected a finite score for each of {len(included):,} "
        f"canaries, shape ({len(included)},), got "
        f"{wrong}; larger is more like 'in', and where nothing is known any one number will do"
    )


def _evidence(
    bound: Bound,
    assumed: Assumed | None,
    claim: Claim,
    adjacency: Canaries,
    trainings: int,
) -> Evidence:
    runs = "one training" if trainings == 1 else f"{trainings:,} trainings"
    symbol, sure = SYMBOLS[claim.parameter], confidence(bound.alpha)
    lower, shown, also = None, f"({sure})", ""
    if is_bound(claim):
        lower = bound.lower
        shown = f"({symbol} {at_least(lower, claim.level)}, {sure})"
    details = OneRunDetails(
        canaries=adjacency.count,
        trainings=trainings,
        method=bound.method,
        p_value=bound.p_value,
    )
    if assumed is not None:
        also = f". {assumed.statement(symbol, sure)}"
        details = replace(
            details,
            assumed_lower=assumed.lower,
            assumption_p_value=assumed.p_value,
            assumption_power=assumed.power,
        )
    guessed = (
        f"The canaries of each training were guessed from {runs} ({bound.statistic})"
    )
    counterexample, verb = None, "does not refute"
    if bound.refuted:
        # The caller gave a claim.
        assert bound.p_value is not None
        verb = "refutes"
        explanation = (
            f"{guessed}; where the claim is true, guesses are right this often with probability at most "
            f"{bound.p_value:.3g}"
        )
        pair = f"{adjacency.name}, whichever others are there"
        counterexample = Counterexample(pair=pair, explanation=explanation)
    return Evidence(
        kind="one_run",
        verdict=Verdict.VIOLATED if bound.refuted else Verdict.NOT_REFUTED,
        statement=f"{guessed}, which {verb} the claim {shown}{also}",
        assumptions=[
            *bound.assumptions,
            f"neighbours: {adjacency.name}",
            f"source: {bound.source}",
        ],
        epsilon_lower=lower,
        calls=trainings,
        counterexample=counterexample,
        details=details,
    )
