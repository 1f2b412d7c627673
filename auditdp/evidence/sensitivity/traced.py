"""The same for a mechanism without ``query``: what its code adds noise to is read off a trace.

The code runs on one input of a pair and is replayed on the other with the same noisy values (``auditdp.tracing``), so that
what an earlier noisy value decides is the same on both. A pair counts where all of the code is understood, both inputs have
the same releases, no order or sample of rows is drawn, and one line alone adds noise: to that its sensitivity can belong.

A sensitivity may be that of another unit than the code adds noise in. So a larger move refutes it only where the noise loses
more than the claim on that pair; then it is too small in any unit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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
from auditdp.record.details import SensitivityDetails
from auditdp.record.results import Evidence
from auditdp.tracing import PairTrace, Trace, compare
from auditdp.tracing.draws import NOISY
from auditdp.tracing.families import moves
from auditdp.tracing.sites import CodeLine

EXAMPLES = 100
"""Pairs beside the played ones, at most: corner cases, then drawn ones."""


@dataclass(frozen=True, eq=False)
class _Move:
    """How far what one line adds noise to moves on a pair.

    Attributes:
        pair: The pair.
        site: The line.
        norm: How far, in the declared norm.
        rounding: What rounding adds to that.
        loses: Whether the noise loses more than the claim.
    """

    pair: Pair
    site: CodeLine
    norm: float
    rounding: float
    loses: bool


def traced_sensitivity(request: EvidenceRequest) -> Evidence | None:
    """Compare what the code adds noise to with the declared sensitivity; None where nothing can be compared.

    Returns:
        MISCALIBRATED with the pair and both values, or NOT_REFUTED. An excess of a relative 1e-9 of the sensitivity, plus
        256 units in the last place of the values, is taken for rounding.
    """
    able = request.able
    try:
        order, norm, sensitivity = able.norm.order, able.norm.name, able.sensitivity
    except AuditError:  # what is declared is no sensitivity of a value
        return None
    trace, seed = Trace(request.adapted), int(request.streams("sensitivity", 0).integers(2**32))
    found, claim = list[_Move](), request.privacy
    with trace:
        for pair in _pairs(request, seed):
            rng = np.random.default_rng(seed)
            seen = attempted(partial(compare, trace, pair.data, pair.neighbour, rng, claim=claim, outcomes=0))
            move = None if seen is None else _moved(pair, seen, order)
            found += [] if move is None else [move]
            if not found and seen is not None and seen.extent != "full":
                return None
    if not found or len({move.site for move in found}) > 1:
        return None
    above = [move for move in found if move.norm > sensitivity * (1 + ROUNDING_TOLERANCE) + move.rounding]
    beyond = [move for move in above if move.loses]
    largest = max(beyond or found, key=lambda move: move.norm)
    line, count = f"line {largest.site.line}", f"{len(found):,} pairs of {request.adjacency.name}"
    details = SensitivityDetails(
        scope=count,
        sensitivity=sensitivity,
        norm=norm,
        largest_difference=largest.norm,
        worst_pair=str(largest.pair),
        pairs_compared=len(found),
        exhaustive=False,
    )
    assumptions = [
        f"the sensitivity is that of what {line} adds noise to",
        "a trace of the code saw all that it adds noise to",
        f"neighbours: {request.adjacency.name}",
    ]
    if not beyond:
        return evidence_of(
            details,
            assumptions,
            f"No move above the {norm} sensitivity {sensitivity:.6g} of what {line} adds noise to was seen in {count}; "
            f"the largest is {largest.norm:.6g} (this says nothing about the noise)",
        )
    statement = (
        f"The noise of {line} is calibrated to {norm} sensitivity {sensitivity:.6g}, but what it is added to moves by "
        f"{largest.norm:.6g} between two neighbours: the calibration is refuted"
    )
    return evidence_of(
        details, assumptions, statement, (largest.pair, f"{statement}; that is read off the code, in {count}")
    )


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


def _moved(pair: Pair, seen: PairTrace, order: float) -> _Move | None:
    """Return how far what is noised moves on a pair; None where the pair does not count."""
    noisy = [moved for moved in seen.moved if moved.first.kind == NOISY]
    sites = {moved.first.site for moved in noisy}
    if seen.extent != "full" or seen.second.parted or seen.by_chance or seen.is_hidden or len(sites) != 1:
        return None
    both = [(m.first.location, m.second.location) for m in noisy]
    shift = np.concatenate([np.ravel(moves(one, other)) for one, other in both])
    if not np.isfinite(shift).all():
        return None
    size = max(
        float(np.linalg.norm(np.concatenate([np.ravel(side) for side in sides]), order))
        for sides in zip(*both, strict=True)
    )
    rounding = ROUNDING_UNITS * float(np.finfo(float).eps) * size
    return _Move(pair, sites.pop(), float(np.linalg.norm(shift, order)), rounding, seen.satisfies is False)
