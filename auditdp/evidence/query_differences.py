"""Queries on two neighbours, and traced releases that refute a calibration.

``QueryComparison`` evaluates the value before the noise on both inputs of a pair, with
the same internal randomness.

If a mechanism has no ``query``, a trace of its code shows the values to which it adds
noise (``traced_sensitivity``). Only a single release refutes a calibration, never the
loss of several releases together: each of them may be calibrated to the declared
sensitivity, while the claim is about all of them. Four conditions have to hold for this
release:

- its location differs between the inputs, in the declared norm, by more than the
  declared sensitivity;
- its noise alone loses more than the claim, by an exact computation; then the
  sensitivity is too small in whatever unit it is declared;
- the output depends on the release;
- runs with other draws confirm its loss (``auditdp.tracing.prediction``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from auditdp.adjacency import Adjacency, Pair
from auditdp.adjacency.adjacency import offers
from auditdp.adjacency.pair_search import draws
from auditdp.betting.pairs.search import attempted, generated, is_adjacent
from auditdp.errors import AuditError, MechanismError
from auditdp.evidence.exact_losses import ROUNDING_UNITS
from auditdp.evidence.request import EvidenceRequest
from auditdp.mechanism.calls.allowance import ASIDE, allowance, allowing
from auditdp.mechanism.calls.inputs import Inputs, is_sparse
from auditdp.mechanism.calls.leaves import EXACT
from auditdp.mechanism.capabilities import capabilities
from auditdp.mechanism.protocol import Array, brief
from auditdp.numerics.streams import Streams, position
from auditdp.record.details import SensitivityDetails
from auditdp.record.results import Counterexample, Evidence, Verdict
from auditdp.tracing import PairTrace, Trace, compare
from auditdp.tracing.composed_loss import ComposedLoss
from auditdp.tracing.draws import NOISY
from auditdp.tracing.losses import Moved
from auditdp.tracing.noise_families import moves
from auditdp.tracing.prediction import Experiments
from auditdp.tracing.trace_limits import SINGLE

DRAWS = 8
"""Number of seeds with which a query that draws randomness is compared on each pair."""


@dataclass(frozen=True)
class QueryDifference:
    """The values of a query on a pair, and the norm of their difference."""

    pair: Pair
    first: Any
    second: Any
    norm: float
    rounding: float
    """Bound on the error of ``norm`` from the rounding of both values."""


def _allowed(sensitivity: float, rounding: float) -> float:
    """Return the largest norm that does not refute the sensitivity.

    ``rounding`` bounds the error of the norm.
    """
    return sensitivity * (1 + 1e-9) + rounding


def evidence_of(
    details: SensitivityDetails,
    assumptions: list[str],
    statement: str,
    refuted: tuple[Pair, str] | None = None,
) -> Evidence:
    """Return the evidence of a comparison with the declared sensitivity.

    ``refuted`` is the pair that refutes the calibration and an explanation, or None.
    """
    counterexample, verdict = None, Verdict.NOT_REFUTED
    if refuted is not None:
        pair, explanation = refuted
        verdict = Verdict.MISCALIBRATED
        counterexample = Counterexample(
            pair=str(pair), python=pair.python, explanation=explanation
        )
    return Evidence(
        "sensitivity",
        verdict,
        statement,
        assumptions=assumptions,
        details=details,
        counterexample=counterexample,
    )


class QueryComparison:
    """Evaluates a query on both inputs of pairs, with the same randomness.

    Equal seeds couple the two evaluations, whatever each draws. So a difference within
    the sensitivity always counts. A larger difference counts only if both inputs leave
    the generator in the same state: otherwise they used different randomness.

    Attributes:
        largest: The largest difference that counts; None before there is one.
        pairs: Number of compared pairs.
        uncoupled: Number of pairs with a larger difference that did not count.
        random: Whether the query ever drew anything.

    Raises:
        MechanismError: If there is no query.
        AuditError: If the declared sensitivity or its norm is invalid.
    """

    def __init__(self, mechanism: Any, adjacency: Adjacency, streams: Streams) -> None:
        able = capabilities(mechanism)
        if able.query is None:
            raise MechanismError(
                f"{able.name}: has no query to compare; give it query(data, rng)"
            )
        self.query = able.query
        self.adjacency = adjacency
        self.name = f"{able.name}.query"
        self.sensitivity = able.sensitivity
        self.order, self.norm = able.norm.order, able.norm.name
        self.seeds = streams("query", 0).integers(2**63, size=DRAWS).tolist()
        self._inputs = Inputs()
        self.largest: QueryDifference | None = None
        self.pairs = self.uncoupled = 0
        self.random = False

    def refutes(self, difference: QueryDifference) -> bool:
        """Return True if the norm exceeds the sensitivity by more than rounding."""
        return difference.norm > _allowed(self.sensitivity, difference.rounding)

    def of(self, pair: Pair) -> QueryDifference | None:
        """Compare the query on a pair, with several seeds.

        Returns:
            The largest difference that counts, or None if none counts for any seed.

        Raises:
            AdjacencyError: If the pair is not adjacent.
            MechanismError: If the query raises, does not return finite numbers, has
                different shapes on neighbours, or differs between two calls with one
                seed.
        """
        self.adjacency.check(pair)
        if not self.pairs:
            self._check_repeats(pair.data)
        self.pairs += 1
        counting, dropped = [], False
        for seed in self.seeds:
            first, used = self._evaluate(pair.data, seed)
            second, also_used = self._evaluate(pair.neighbour, seed)
            difference = self._difference(pair, first, second)
            # A large difference between different amounts of randomness may be a
            # difference of draws.
            if used == also_used or not self.refutes(difference):
                counting.append(difference)
            else:
                dropped = True
            # A query that draws nothing is the same with the other seeds.
            if used == also_used == position(np.random.default_rng(seed)):
                break
            self.random = True
        self.uncoupled += dropped
        if not counting:
            return None
        worst = max(counting, key=lambda difference: difference.norm)
        if self.largest is None or worst.norm > self.largest.norm:
            self.largest = worst
        return worst

    def _evaluate(self, data: Any, seed: int) -> tuple[Any, Any]:
        """Return the query's value, and the final state of its generator."""
        rng = np.random.default_rng(seed)
        try:
            with self._inputs.lent(self.name, data) as (lent,):
                raw = self.query(lent, rng)
            value = raw.tocsr() if is_sparse(raw) else np.asarray(raw)
        except AuditError:
            raise
        except Exception as error:
            raise MechanismError(
                f"{self.name} raised {type(error).__name__} on input {brief(data)}: {error}"
            ) from error
        if value.dtype.kind not in "biuf":
            raise MechanismError(
                f"{self.name}: returned dtype {value.dtype} on input {brief(data)}, "
                "expected booleans, integers or "
                "floats; encode it as numbers"
            )
        if not np.isfinite(_entries(value)).all():
            raise MechanismError(
                f"{self.name}: returned NaN or an infinity on input {brief(data)}; no "
                "noise is calibrated to that, so "
                "clip it before the noise is added"
            )
        return value, position(rng)

    def _difference(self, pair: Pair, first: Any, second: Any) -> QueryDifference:
        if first.shape != second.shape:
            raise MechanismError(
                f"{self.name}: returned shape {first.shape} on {brief(pair.data)} and "
                f"{second.shape} on its neighbour "
                f"{brief(pair.neighbour)}; the number of released values then depends "
                "on the data, and no noise hides that: return one shape, such as a "
                "value for every possible record"
            )
        size = max(self._norm(first), self._norm(second))
        floats = [value.dtype for value in (first, second) if value.dtype.kind == "f"]
        # Integers from 2^53 on are rounded, too.
        if size >= EXACT:
            floats.append(np.dtype(float))
        unit = max((float(np.finfo(dtype).eps) for dtype in floats), default=0.0)
        norm, rounding = self._norm(minus(first, second)), ROUNDING_UNITS * unit * size
        return QueryDifference(pair, first, second, norm, rounding)

    def _norm(self, value: Any) -> float:
        entries = _entries(value).astype(float)
        return float(np.linalg.norm(entries, self.order)) if entries.size else 0.0

    def _check_repeats(self, data: Any) -> None:
        once, _ = self._evaluate(data, self.seeds[0])
        again, _ = self._evaluate(data, self.seeds[0])
        if once.shape != again.shape or _entries(minus(once, again)).any():
            raise MechanismError(
                f"{self.name}: gave {show(once)} and {show(again)} on one input with one seed; draw all its "
                "randomness from the rng that it is given"
            )


def _entries(value: Any) -> Array:
    return value.data if is_sparse(value) else np.ravel(value)


def minus(first: Any, second: Any) -> Any:
    """Return the difference of two arrays or sparse matrices, in doubles."""
    between = first.astype(float) - second.astype(float)
    return between if is_sparse(between) else np.asarray(between)


def show(value: Any) -> str:
    """Return a short rendering of a query's value."""
    return f"a sparse {value.shape} matrix" if is_sparse(value) else brief(value[()])


def traced_sensitivity(request: EvidenceRequest) -> Evidence | None:
    """Compare single traced releases on neighbours with the declared sensitivity.

    An excess of a relative 1e-9 of the sensitivity (1e-5 in single precision), plus 256
    units in the last place of the values, is attributed to rounding.

    Returns:
        MISCALIBRATED with a pair on which one release differs by more than the
        sensitivity, or NOT_REFUTED. None if the declared sensitivity is invalid, if the
        trace fails or does not follow all of the code, or if it finds no noise on a
        value.
    """
    able = request.able
    try:
        order, norm, sensitivity = able.norm.order, able.norm.name, able.sensitivity
    except AuditError:
        # The declaration is no sensitivity of a value.
        return None
    trace = Trace(request.adapted)
    seed = int(request.streams("sensitivity", 0).integers(2**32))
    largest: tuple[float, Pair] | None = None
    pairs, refuted = 0, None
    # Each pair takes two runs.
    max_pairs = int(ASIDE * allowance().left) // 2
    with trace, allowing(share=ASIDE):
        for pair in islice(_pairs(request, seed), max_pairs):
            rng, claim = np.random.default_rng(seed), request.privacy
            traced = attempted(
                partial(
                    compare,
                    trace,
                    pair.data,
                    pair.neighbour,
                    rng,
                    claim=claim,
                    outcomes=0,
                )
            )
            # A trace that misses draws may attribute noise to the wrong value.
            if traced is None or traced.extent != "full":
                return None
            pairs += 1
            # Values in single precision are rounded more.
            allowed = sensitivity * (1 + SINGLE if traced.is_single else 1)
            noisy = [moved for moved in traced.noisy if moved.first.kind == NOISY]
            for moved in noisy:
                distance = _distance(moved, order)
                if largest is None or distance > largest[0]:
                    largest = distance, pair
            for moved in noisy:
                exceeds = _exceeds(moved, allowed, order)
                if exceeds and attempted(partial(_loses, trace, traced, moved)):
                    refuted, largest = moved, (_distance(moved, order), pair)
                    break
            if refuted is not None:
                break
    if largest is None:
        return None
    distance, worst = largest
    details = SensitivityDetails(
        scope=f"{pairs:,} pairs of {request.adjacency.name}",
        sensitivity=sensitivity,
        norm=norm,
        largest_difference=distance,
        worst_pair=str(worst),
        pairs_compared=pairs,
        exhaustive=False,
    )
    assumptions = [
        "the trace observed every draw of the code",
        f"neighbours: {request.adjacency.name}",
    ]
    declared = f"{norm} sensitivity {sensitivity:.6g}"
    if refuted is None:
        statement = (
            f"No release that differs by more than the {declared} and loses more than "
            f"the claim was shown in {details.scope}; "
            f"the largest difference of a release is {distance:.6g} (this says nothing about the noise)"
        )
        return evidence_of(details, assumptions, statement)
    line = f"line {refuted.first.site.line}"
    statement = (
        f"The noise of {line} is calibrated to {declared}, but the value to which it "
        f"is added differs by {distance:.6g} "
        "between two neighbours, and the output shows the sum: the calibration is refuted"
    )
    assumptions.append(
        f"the sensitivity is that of the value to which {line} adds noise"
    )
    return evidence_of(details, assumptions, statement, (worst, statement))


def _pairs(request: EvidenceRequest, seed: int) -> Iterator[Pair]:
    """Yield the played pairs, then adjacent corner cases and adjacent drawn pairs."""
    adjacency, play = request.adjacency, request.game.play
    yield from adjacency.pairs() if play is None else play
    if play is not None or not request.exhaustive:
        return
    # A hundred pairs beside the played ones protect time.
    # Corner cases have at most half of them, and drawn pairs the rest.
    offered, max_pairs = offers(adjacency), request.generated(100)
    others = list(offered.corner_cases or [])[: max_pairs // 2]
    if offered.generated is not None:
        drawn = islice(draws(generated(adjacency), seed=seed), max_pairs - len(others))
        others += [each.value for each in drawn]
    for pair in others:
        if is_adjacent(adjacency, pair):
            yield pair


def _distance(moved: Moved, order: float) -> float:
    moved_by = moves(moved.first.location, moved.second.location)
    return float(np.linalg.norm(np.ravel(moved_by), order))


def _exceeds(moved: Moved, sensitivity: float, order: float) -> bool:
    """Return True if a release differs by more than the sensitivity and rounding."""
    sides = moved.first, moved.second
    size = max(float(np.linalg.norm(np.ravel(each.centre), order)) for each in sides)
    rounding = ROUNDING_UNITS * float(np.finfo(float).eps) * size
    return _allowed(sensitivity, rounding) < _distance(moved, order) < np.inf


def _loses(trace: Trace, traced: PairTrace, moved: Moved) -> bool:
    """Return True if one release alone loses more than the claim.

    The loss is computed from the trace, and runs with other draws have to show it.
    """
    claim = traced.claim
    return (
        claim is not None
        and moved.loss is not None
        and not moved.why
        and not ComposedLoss.of([moved.loss]).satisfies(claim)
        and Experiments(trace, traced).shows_loss([moved])
    )
