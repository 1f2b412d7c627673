"""A calibration that a trace refutes: one release by itself moves further than the mechanism declares.

A mechanism without ``query`` does not show the value to which it adds noise; a trace of its code does. A calibration is
refuted only by one release, never by the loss of several together: each of them may be calibrated to the declared
sensitivity, and the claim may be one about all of them. Four things have to hold of that release:

- its location moves further, in the declared norm, than the declared sensitivity;
- its noise alone loses more than the claim, exactly: then the sensitivity is too small in whatever unit it is declared;
- the output shows its result;
- runs with other draws confirm both (``auditdp.tracing.prediction``).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice

import numpy as np

from auditdp.adjacency import Pair
from auditdp.adjacency.drawing import draws
from auditdp.adjacency.offers import offers
from auditdp.betting.pairs import attempted, generated, is_adjacent
from auditdp.errors import AuditError
from auditdp.evidence.request import EvidenceRequest
from auditdp.evidence.sensitivity.query import ROUNDING_TOLERANCE, ROUNDING_UNITS, evidence_of
from auditdp.mechanism.calls.allowance import ASIDE, allowance, allowing
from auditdp.record.details import SensitivityDetails
from auditdp.record.results import Evidence
from auditdp.tracing import PairTrace, Trace, compare
from auditdp.tracing.composing import ComposedLoss
from auditdp.tracing.draws import NOISY
from auditdp.tracing.families import moves
from auditdp.tracing.findings import SINGLE
from auditdp.tracing.losses import Moved
from auditdp.tracing.prediction import Experiments

EXAMPLES = 100
"""Pairs beside the played ones, at most: corner cases, then drawn ones."""


def traced_sensitivity(request: EvidenceRequest) -> Evidence | None:
    """Compare the moves of single releases with the declared sensitivity.

    An excess of a relative 1e-9 of the sensitivity, plus 256 units in the last place of the values, is taken for rounding.

    Returns:
        MISCALIBRATED with a pair on which one release moves further, or NOT_REFUTED. None where the trace does not follow
        all of the code, or finds no noise on a value.
    """
    able = request.able
    try:
        order, norm, sensitivity = able.norm.order, able.norm.name, able.sensitivity
    except AuditError:  # what is declared is no sensitivity of a value
        return None
    trace, seed = Trace(request.adapted), int(request.streams("sensitivity", 0).integers(2**32))
    moves_of_pairs = list[tuple[float, Pair]]()
    pairs, refuted = 0, None
    most = int(ASIDE * allowance().left) // 2  # two runs each
    with trace, allowing(share=ASIDE):
        for pair in islice(_pairs(request, seed), most):
            rng = np.random.default_rng(seed)
            seen = attempted(partial(compare, trace, pair.data, pair.neighbour, rng, claim=request.privacy, outcomes=0))
            if seen is None or seen.extent != "full":
                return None
            pairs += 1
            noisy = [moved for moved in seen.noisy if moved.first.kind == NOISY]
            moves_of_pairs += [(_distance(moved, order), pair) for moved in noisy]
            allowed = sensitivity * (1 + SINGLE if seen.is_single else 1)
            above = (moved for moved in noisy if _exceeds(moved, allowed, order))
            refuted = next((moved for moved in above if attempted(partial(_loses, trace, seen, moved))), None)
            if refuted is not None:
                moves_of_pairs = [(_distance(refuted, order), pair)]
                break
    if not moves_of_pairs:
        return None
    largest, worst = max(moves_of_pairs, key=lambda each: each[0])
    details = SensitivityDetails(
        scope=f"{pairs:,} pairs of {request.adjacency.name}",
        sensitivity=sensitivity,
        norm=norm,
        largest_difference=largest,
        worst_pair=str(worst),
        pairs_compared=pairs,
        exhaustive=False,
    )
    assumptions = ["the trace observed every draw of the code", f"neighbours: {request.adjacency.name}"]
    declared = f"{norm} sensitivity {sensitivity:.6g}"
    if refuted is None:
        statement = (
            f"No release that moves further than the {declared} and loses more than the claim was shown in {details.scope}; "
            f"the largest move of a release is {largest:.6g} (this says nothing about the noise)"
        )
        return evidence_of(details, assumptions, statement)
    line = f"line {refuted.first.site.line}"
    statement = (
        f"The noise of {line} is calibrated to {declared}, but the value to which it is added moves by {largest:.6g} "
        "between two neighbours, and the output shows the sum: the calibration is refuted"
    )
    assumptions.append(f"the sensitivity is that of the value to which {line} adds noise")
    return evidence_of(details, assumptions, statement, (worst, statement))


def _pairs(request: EvidenceRequest, seed: int) -> Iterator[Pair]:
    """Yield the played pairs, then corner cases and drawn ones that are adjacent."""
    adjacency, play = request.adjacency, request.game.play
    yield from adjacency.pairs() if play is None else play
    if play is not None or not request.exhaustive:
        return
    offered, most = offers(adjacency), request.generated(EXAMPLES)
    corners = (offered.corner_cases or [])[: most // 2]
    drawn = [] if offered.generated is None else islice(draws(generated(adjacency), seed=seed), most - len(corners))
    yield from (pair for pair in (*corners, *(one.value for one in drawn)) if is_adjacent(adjacency, pair))


def _distance(moved: Moved, order: float) -> float:
    return float(np.linalg.norm(np.ravel(moves(moved.first.location, moved.second.location)), order))


def _exceeds(moved: Moved, sensitivity: float, order: float) -> bool:
    """Return whether a release moves further than is declared, by more than rounding."""
    size = max(float(np.linalg.norm(np.ravel(side.centre), order)) for side in (moved.first, moved.second))
    rounding = ROUNDING_UNITS * float(np.finfo(float).eps) * size
    return sensitivity * (1 + ROUNDING_TOLERANCE) + rounding < _distance(moved, order) < np.inf


def _loses(trace: Trace, seen: PairTrace, moved: Moved) -> bool:
    """Return whether the noise of a release alone loses more than the claim, as the output shows."""
    claim = seen.claim
    return (
        claim is not None
        and moved.loss is not None
        and not moved.why
        and not ComposedLoss.of([moved.loss]).satisfies(claim)
        and Experiments(trace, seen).shows_loss([moved])
    )
