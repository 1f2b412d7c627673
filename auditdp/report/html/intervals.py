"""What an audit found against what is claimed, on one axis: geometry for a template, in multiples of the claim."""

from __future__ import annotations

import math
from dataclasses import dataclass

from auditdp.record.details import GameDetails
from auditdp.record.results import AuditResult, Verdict, details
from auditdp.report.numbers import as_float, bounds, level
from auditdp.report.standing import role

DECADES = 1.0
"""The axis reaches from a tenth of the claim to ten times it."""
WIDTH = 200
"""Of the axis, in units of the drawing; the claim is in its middle."""

TICKS = {"⅒×": 0.1, "½×": 0.5, "1×": 1.0, "2×": 2.0, "10×": 10.0}
"""Multiples of the claim that the axis names."""


@dataclass(frozen=True)
class Interval:
    """A drawn interval.

    Attributes:
        start: Where the bar begins, 0 to ``WIDTH``.
        mark: Where the bound of the verdict stands.
        open: Whether nothing bounds the right end.
        detectable: Where a clean game would have refuted nine times in ten; None where it does not say.
        role: The name of its colour.
    """

    start: float
    end: float
    mark: float
    open: bool
    detectable: float | None
    role: str
    text: str


def interval_of(result: AuditResult) -> Interval | None:
    """Return what to draw of an audit; None where it claims no level of privacy or found no bound."""
    claimed, lower, upper = level(result.claim), as_float(result.epsilon_lower), as_float(result.epsilon_upper)
    if not claimed or not 0 < claimed < math.inf or (lower is None and upper is None):
        return None
    start = 0.0 if lower is None else place(lower / claimed)
    end = float(WIDTH) if upper is None else place(upper / claimed)
    smallest = next(
        (s for game in details(result.evidence, GameDetails) if (s := game.detectable_epsilon) is not None), None
    )
    seen = place(smallest / claimed) if smallest is not None and result.verdict is Verdict.NOT_REFUTED else None
    return Interval(
        start=start,
        end=max(start, end),
        mark=end if result.verdict is Verdict.CERTIFIED and upper is not None else start if lower is not None else end,
        open=upper is None or math.isinf(upper),
        detectable=seen,
        role=role(result),
        text=bounds(result),
    )


def place(ratio: float) -> float:
    """Return where a multiple of the claim stands on the axis; what lies beyond an end stands there."""
    if ratio <= 0:
        return 0.0
    decades = math.log10(ratio) if math.isfinite(ratio) else DECADES
    return round(WIDTH * (min(max(decades / DECADES, -1.0), 1.0) + 1) / 2, 1)
