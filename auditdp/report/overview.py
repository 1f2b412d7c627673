"""The first plot of the report: what every audit of a privacy claim found, against its claim, on one axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes

from auditdp.report.canvas import drawing, finish, log_ticks, new_axes
from auditdp.report.numbers import as_float, bounds, level, number
from auditdp.report.standing import role, verdict_label
from auditdp.report.svg import COLOURS
from auditdp.report.text import printable, short_names, shorten
from auditdp.results import AuditResult, Verdict

MARKERS: dict[Verdict, tuple[str, bool]] = {
    Verdict.VIOLATED: ("x", True),
    Verdict.MISCALIBRATED: ("^", True),
    Verdict.CERTIFIED: ("s", True),
    Verdict.NOT_REFUTED: ("o", False),
    Verdict.EQUIVALENT: ("o", True),
    Verdict.INCONCLUSIVE: ("D", False),
}
"""Marker of a verdict and whether it is filled."""


def overview(results: Sequence[AuditResult], *, prefix: str) -> str | None:
    """Draw what each audit of a privacy claim found, as a multiple of what is claimed; one row each."""
    shown = [result for result in results if (level(result.claim) or 0) > 0]
    if not shown:
        return None
    left, right = _ratio_limits(shown)
    names = [shorten(printable(name), 34) for name in short_names([result.id for result in shown])]
    with drawing():
        figure, axes = new_axes(900, 56 + 24 * len(shown), left=225, right=310, bottom=44)
        axes.set_xscale("log")
        axes.set_xlim(left, right)
        axes.set_ylim(len(shown) - 0.4, -0.6)
        log_ticks(axes, "x", left, right, lambda value: f"{number(value)}×")
        axes.set_yticks(range(len(shown)), names)
        axes.tick_params(axis="y", labelcolor=COLOURS["ink"])
        axes.grid(False, axis="y")
        axes.plot([1, 1], [len(shown) - 0.4, -0.6], color=COLOURS["ink"], linewidth=1.2)
        axes.set_xlabel("bounds found, as a multiple of what is claimed (1× is the claim)")
        for row, result in enumerate(shown):
            _overview_row(axes, row, result, left, right)
        label = f"Bounds found by {len(shown)} audits against their claims; the table below gives the same numbers."
        return finish(figure, prefix, label)


def _overview_row(axes: Axes, row: int, result: AuditResult, left: float, right: float) -> None:
    claimed = level(result.claim) or 1.0
    shade = COLOURS[role(result)]
    lower, upper = (as_float(value) for value in (result.epsilon_lower, result.epsilon_upper))
    start = left if lower is None else min(max(lower / claimed, left), right)
    end = right if upper is None else min(max(upper / claimed, left), right)
    verdict = verdict_label(result).replace("_", " ")
    for offset, text in ((14, bounds(result)), (165, verdict)):
        axes.annotate(text, (right, row), (offset, 0), textcoords="offset points", va="center", color=shade)
    if result.verdict not in MARKERS or (lower is None and upper is None):
        axes.text(math.sqrt(left * right), row, "no bounds", ha="center", va="center", color=COLOURS["soft"])
        return
    if upper is None:
        axes.plot([start, end], [row, row], color=shade, linewidth=1.2, linestyle=(0, (1, 3)))
    elif end > start:
        axes.plot([start, end], [row, row], color=shade, linewidth=5, alpha=0.35)
    marker, filled = MARKERS[result.verdict]
    at = end if result.verdict is Verdict.CERTIFIED else start
    face = shade if filled else "none"
    axes.plot([at], [row], marker, color=shade, markerfacecolor=face, markersize=8, markeredgewidth=2)
    for evidence in result.evidence:
        smallest = as_float(evidence.details.get("detectable_epsilon"))
        if result.verdict is Verdict.NOT_REFUTED and smallest is not None and smallest / claimed < right:
            axes.plot([smallest / claimed], [row], "|", color=shade, markersize=12, markeredgewidth=2)


def _ratio_limits(results: Sequence[AuditResult]) -> tuple[float, float]:
    """Limits of the overview's axis: all finite multiples, at least from a quarter to four and at most six decades."""
    ratios = [1.0]
    for result in results:
        for value in (as_float(result.epsilon_lower), as_float(result.epsilon_upper)):
            if value is not None and 0 < value < math.inf:
                ratios.append(value / (level(result.claim) or 1.0))
    return max(1e-3, min(0.25, min(ratios) / 1.4)), min(1e3, max(4.0, max(ratios) * 1.6))
