"""Sensitivity evidence: the query of a mechanism against the sensitivity of its noise.

A mechanism that adds noise to ``query(data, rng)`` scales it to a bound S on ‖query(x)
- query(x')‖ over all neighbours (Dwork, McSherry, Nissim & Smith 2006, "Calibrating
Noise to Sensitivity in Private Data Analysis", Definition 1). Here the query is
evaluated on both inputs of a pair and the norm is compared with S: no sampling, no
error probability.

A pair that needs S' > S refutes the *calibration*, and so the argument for the claim:
the verdict is MISCALIBRATED, and never VIOLATED. The claim is false as well if the
noise is additive, tight and of that norm: Laplace noise of scale S/ε makes the loss of
the pair exactly sup_y Σ_i (|y_i - b_i| - |y_i - a_i|) ε/S = ε ‖a - b‖₁/S, and Gaussian
noise of deviation S/μ makes it exactly ‖a - b‖₂ μ/S-Gaussian DP (Dong, Roth & Su 2022,
"Gaussian Differential Privacy", Theorem 2.7). But larger noise than that may satisfy
the claim, and this evidence does not observe the noise. Exact evidence and the game do,
and report VIOLATED by themselves. A sensitivity that holds proves nothing about the
noise, so this evidence never certifies a claim.

Randomness inside the query, such as sampling, comes from the given generator, and both
inputs get the same randomness u. If the difference is within S for every u, the
mechanism is a mixture over u of mechanisms with the claimed privacy, so it has that
privacy itself. The converse is false: another coupling of the two runs may show the
privacy if equal seeds do not. So a large difference counts only if both inputs drew
equal amounts, and under a stated assumption: the calibration is argued for equal
internal randomness.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from auditdp.adjacency import Adjacency, Pair
from auditdp.adjacency.adjacency import offers
from auditdp.adjacency.pair_search import smallest
from auditdp.errors import AdjacencyError, MechanismError
from auditdp.evidence.query_differences import (
    DRAWS,
    QueryComparison,
    QueryDifference,
    evidence_of,
    minus,
    show,
    traced_sensitivity,
)
from auditdp.evidence.request import EvidenceRequest
from auditdp.mechanism.protocol import brief
from auditdp.numerics.rounding import count
from auditdp.numerics.streams import Streams
from auditdp.record.details import SensitivityDetails
from auditdp.record.results import Evidence

EXAMPLES = 300
"""Largest number of pairs that the search generates."""
MAX_ENUMERATED = 5_000
"""Largest number of listed pairs that are all compared."""


def gathered(request: EvidenceRequest, alpha: float) -> Evidence | None:
    """Return the comparison of the query with the declared sensitivity.

    Only the listed pairs are compared unless the audit is exhaustive. If the mechanism
    declares a sensitivity and has no query, its code is traced instead.

    Returns:
        The evidence, or None if there is no sensitivity. Without a query, None also if
        the audit traces no code, or ``traced_sensitivity`` returns None.
    """
    # Nothing is drawn that a verdict rests on.
    del alpha
    able = request.able
    if able.is_calibrated:
        return sensitivity_evidence(
            request.mechanism,
            request.adjacency,
            streams=request.streams,
            play=request.game.play,
            examples=request.generated(EXAMPLES) if request.exhaustive else 0,
        )
    declared = able.query is None and able.finite_sensitivity is not None
    return traced_sensitivity(request) if declared and request.game.trace else None


def sensitivity_evidence(
    mechanism: Any,
    adjacency: Adjacency,
    *,
    streams: Streams,
    play: Sequence[Pair] | None = None,
    examples: int = EXAMPLES,
) -> Evidence:
    """Compare the query on neighbours with the declared sensitivity.

    Either all pairs are compared, or a pair with a large difference is searched for.

    Args:
        mechanism: Has ``query(data, rng) -> number, array or sparse matrix``;
            ``sensitivity``, a positive number; and ``norm``: 'l1', 'l2', 'linf' or an
            order >= 1, over all entries.
        adjacency: The neighbours. If they are at most 5,000 enumerated pairs, all are
            compared, and the first violating pair is reported. Otherwise the played
            pairs are compared, and then a search looks for larger norms and reports the
            simplest violating pair that it finds.
        streams: Random streams by purpose and batch, for the query and for the search.
        play: The pairs to be compared before the search; by default
            ``adjacency.pairs()``. Unused if all enumerated pairs are compared.
        examples: Largest number of pairs that the search generates. They are not
            uniform, so a search without a finding bounds nothing. With 0 only the
            played pairs are compared.

    Returns:
        Evidence with the verdict MISCALIBRATED, the pair and both values, or
        NOT_REFUTED. An excess of a relative 1e-9 of the sensitivity, plus 256 units in
        the last place of floating-point values, is attributed to rounding. The effect
        of rounding on a sensitivity (Casacuberta, Shoemate, Vadhan & Wagaman 2022) is
        not judged here.

    Raises:
        AuditError: If the sensitivity or the norm is invalid.
        MechanismError: If there is no query, or if it raises, does not return finite
            numbers, returns different shapes on neighbours, draws randomness from
            elsewhere, or draws different amounts of it on the two inputs of every pair,
            so that no difference counts.
        AdjacencyError: If a pair is not adjacent, or there is none.
    """
    comparison = QueryComparison(mechanism, adjacency, streams)
    everything = adjacency.exhaustive() if examples else None
    # Longer lists are searched instead.
    if everything is not None and len(everything) > MAX_ENUMERATED:
        everything = None
    listed = everything or (adjacency.pairs() if play is None else play)
    differences = [comparison.of(pair) for pair in listed]
    # The first violation in the list is reported.
    above = (d for d in differences if d is not None and comparison.refutes(d))
    violation = next(above, None)
    if everything is None and examples:
        rng = streams("sensitivity", 0)
        violation = _search(comparison, adjacency, examples, rng) or violation
    if not comparison.pairs:
        raise AdjacencyError(f"{adjacency.name}: lists no pairs to compare")
    if comparison.largest is None:
        raise MechanismError(
            f"{comparison.name}: draws another amount of randomness on the neighbour, "
            "so the same seed does not mean the same "
            "randomness; draw a fixed number of values, such as one for every possible record"
        )
    complete = everything is not None and not comparison.uncoupled
    return _evidence(comparison, violation, len(listed), complete=complete)


def _search(
    comparison: QueryComparison,
    adjacency: Adjacency,
    examples: int,
    rng: np.random.Generator,
) -> QueryDifference | None:
    """Search for pairs with a larger norm until one exceeds the sensitivity.

    Returns:
        The simplest violation that the search finds, or None.
    """
    generated = offers(adjacency).generated
    if generated is None:
        return None
    latest: QueryDifference | None = None
    violations: list[QueryDifference] = []

    def norm(pair: Pair) -> float:
        nonlocal latest
        latest = comparison.of(pair)
        return -math.inf if latest is None else latest.norm

    # The search calls this right after ``norm`` of the same pair, which computes the
    # difference.
    def violates(_: Pair) -> bool:
        if latest is None or not comparison.refutes(latest):
            return False
        violations.append(latest)
        return True

    seed = int(rng.integers(2**63))
    smallest(generated, violates, score=norm, examples=examples, seed=seed)
    return violations[-1] if violations else None


def _scope(comparison: QueryComparison, listed: int, *, complete: bool) -> str:
    """Return the compared pairs, in words.

    Args:
        comparison: The comparison of queries.
        listed: Number of listed pairs that were compared.
        complete: True if all pairs of the adjacency were compared, and all differences
            count.
    """
    pairs = count(listed, "pair")
    if complete:
        pairs = f"all {pairs}" if listed > 1 else "the only pair"
    elif comparison.pairs > listed:
        pairs += f" and {comparison.pairs - listed:,} generated ones"
    scope = f"{pairs} of {comparison.adjacency.name}"
    if comparison.random:
        scope += f", with {DRAWS} draws of the query's own randomness each"
    if comparison.uncoupled:
        scope += (
            f" (on {comparison.uncoupled:,} of them a larger one does not count, "
            "since the two inputs drew different amounts of randomness)"
        )
    return scope


def _evidence(
    comparison: QueryComparison,
    violation: QueryDifference | None,
    listed: int,
    *,
    complete: bool,
) -> Evidence:
    largest, norm = comparison.largest, comparison.norm
    sensitivity = comparison.sensitivity
    # The caller checks that a difference was found.
    assert largest is not None
    scope = _scope(comparison, listed, complete=complete)
    assumptions = [
        "the noise is added to this query and scaled to this sensitivity",
        "the query draws randomness from its generator only",
        f"neighbours: {comparison.adjacency.name}",
    ]
    if comparison.random:
        assumptions.append(
            "the calibration is argued for equal internal randomness on both inputs"
        )
    details = SensitivityDetails(
        scope=scope,
        sensitivity=sensitivity,
        norm=norm,
        largest_difference=largest.norm,
        worst_pair=str(largest.pair),
        pairs_compared=comparison.pairs,
        exhaustive=complete and not comparison.random,
    )
    if violation is not None:
        explanation = (
            f"Before the noise the first input gives {show(violation.first)} and the second "
            f"{show(violation.second)}{_where(violation)}; the {norm} norm of the difference is "
            f"{violation.norm:.6g}, and the noise is calibrated to {sensitivity:.6g}"
        )
        return evidence_of(
            details,
            assumptions,
            f"The noise is calibrated to {norm} sensitivity {sensitivity:.6g}, but two neighbours need "
            f"{violation.norm:.6g}: the calibration is refuted; the largest "
            f"difference in {scope} is {largest.norm:.6g}",
            (violation.pair, explanation),
        )
    held = f"No difference above the {norm} sensitivity {sensitivity:.6g} was found in {scope}"
    if complete:
        held = f"The {norm} sensitivity {sensitivity:.6g} holds for {scope}"
    within = ", above it by rounding alone" if largest.norm > sensitivity else ""
    return evidence_of(
        details,
        assumptions,
        f"{held}; the largest is {largest.norm:.6g}{within} (this says nothing about the noise)",
    )


def _where(violation: QueryDifference) -> str:
    """Return a phrase for the first four entries that differ.

    It is empty if the query has at most eight entries.
    """
    first, second = violation.first, violation.second
    size = math.prod(first.shape)
    if size <= 8:
        return ""
    places = np.transpose(minus(first, second).nonzero()).tolist()
    named = [f"{brief(first[*p])} and {brief(second[*p])} at {p}" for p in places[:4]]
    more = "; …" if len(places) > 4 else ""
    return f" (they differ in {len(places):,} of {size:,} entries: {'; '.join(named)}{more})"
