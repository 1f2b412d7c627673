"""The verification report: one self-contained HTML page with inline plots, to read, print and hand on.

The page needs no script and loads nothing. Everything that comes from a record is escaped; only the plots, which
``auditdp.report.svg`` escapes itself, are inserted as they are.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from auditdp.report import numbers
from auditdp.report.numbers import MISSING, as_float, number
from auditdp.report.standing import (
    Standing,
    alpha_by_purpose,
    audited_claims,
    by_standing,
    detectable,
    mutants_by_fate,
    mutation_score,
    named,
    reasons,
    role,
    standing,
    verdict_label,
)
from auditdp.report.svg import style_sheet
from auditdp.report.text import printable, shorten
from auditdp.report.wording import CLEAN_RUN, MEANINGS, SIGNS
from auditdp.results import AuditResult, ClaimRecord, Evidence, RunRecord

ROWS_SHOWN = 6
VALUE_LENGTH = 300
SCATTER_POINTS = 240  # in one plot, where a report has few of them
SCATTER_POINTS_OF_REPORT = 1600

KINDS = {
    "game": ("Game", "bets on which of two neighbours produced the output"),
    "exact": ("Exact", "the law of the output, enumerated or bounded"),
    "sensitivity": ("Sensitivity", "what is computed before the noise, on two neighbours"),
    "accounting": ("Accounting", "the claim, recomputed by independent accountants"),
    "estimation": ("Estimation", "what is promised about the estimates"),
    "one_run": ("One run", "many canaries in one execution"),
}

_PLACED = (
    *(
        "threshold",
        "refuted_at",
        "detectable_epsilon",
        "detectable_alternative",
        "exact_epsilon",
        "worst_pair",
        "scope",
    ),
    *("pairs_enumerated", "margin"),
)
"""Details that have a place of their own; any other is listed where it is a plain value."""


@dataclass(frozen=True)
class Plot:
    """An inline SVG and what stands under it."""

    svg: Markup
    caption: str


@dataclass(frozen=True)
class Table:
    """A small table of an evidence's numbers, with the name of a row in its first column."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left_out: int = 0


@dataclass(frozen=True)
class EvidenceView:
    """One kind of evidence, ready to be written."""

    evidence: Evidence
    title: str
    subtitle: str
    facts: Sequence[tuple[str, str]]
    plots: Sequence[Plot]
    tables: Sequence[Table]


@dataclass(frozen=True)
class AuditView:
    """One audit, ready to be written; ``anchor`` is its address in the page."""

    result: AuditResult
    anchor: str
    standing: Standing
    label: str
    reasons: Sequence[str]
    evidence: Sequence[EvidenceView]


def report(record: RunRecord) -> str:
    """Return the record as one HTML page."""
    from auditdp.report.overview import overview as draw  # loads matplotlib, which only a report with plots needs

    groups = by_standing(record)
    ordered = [result for results in groups.values() for result in results]
    scatters = sum("scatter" in evidence.details for result in ordered for evidence in result.evidence)
    points = min(SCATTER_POINTS, SCATTER_POINTS_OF_REPORT // max(1, scatters))
    views = [_audit(result, index, points) for index, result in enumerate(ordered, start=1)]
    overview = draw(ordered, prefix="o")
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            record=record,
            views=views,
            groups={key: [view for view in views if view.standing is key] for key in groups},
            headings=HEADINGS,
            overview=Markup(overview) if overview else None,
            claims=audited_claims(record),
            mutated=any(result.mutation is not None for result in record.results),
            purposes=alpha_by_purpose(record.alpha_ledger),
            total_alpha=sum(entry.alpha for entry in record.alpha_ledger),
            plot_styles=Markup(style_sheet()),
            anchors={view.result.id: view.anchor for view in views},
            signs=SIGNS,
            meanings=MEANINGS,
            clean_run=CLEAN_RUN,
            standings=Standing,
        )
    )


HEADINGS: dict[Standing, str] = {
    Standing.FINDING: "Findings: to be looked at",
    Standing.DECLARED: "Declared violations, found again",
    Standing.CERTIFIED: "Certified",
    Standing.EQUIVALENT: "Equivalent within the margin",
    Standing.NOT_REFUTED: "Not refuted",
    Standing.INCONCLUSIVE: "Inconclusive",
    Standing.ERROR: "Errors",
    Standing.SKIPPED: "Skipped",
}


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("auditdp.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else printable(str(value), keep="\n"),
    )
    environment.filters |= {
        "bounds": numbers.bounds,
        "breakable": _breakable,
        "count": numbers.count,
        "detectable": detectable,
        "duration": numbers.duration,
        "e_value": numbers.e_value,
        "number": number,
        "paragraphs": _paragraphs,
        "plain": _plain,
    }
    environment.globals |= {
        "interval": numbers.interval,
        "mutants_by_fate": mutants_by_fate,
        "mutation_score": mutation_score,
        "named": named,
        "role": role,
    }
    return environment


def _audit(result: AuditResult, index: int, points: int) -> AuditView:
    evidence = [_evidence(entry, result, f"a{index}-{place}", points) for place, entry in enumerate(result.evidence)]
    return AuditView(
        result=result,
        anchor=f"audit-{index}",
        standing=standing(result),
        label=verdict_label(result).replace("_", " "),
        reasons=reasons(result),
        evidence=evidence,
    )


def _evidence(evidence: Evidence, result: AuditResult, prefix: str, points: int) -> EvidenceView:
    title, subtitle = KINDS.get(evidence.kind, (evidence.kind.replace("_", " ").capitalize(), ""))
    return EvidenceView(
        evidence=evidence,
        title=title,
        subtitle=subtitle,
        facts=list(_facts(evidence, result.claim)),
        plots=list(_plots(evidence, result.claim, prefix, points)),
        tables=list(_tables(evidence)),
    )


def _plots(evidence: Evidence, claim: ClaimRecord | None, prefix: str, points: int) -> Iterator[Plot]:
    from auditdp.report import figures

    details = evidence.details
    logarithmic = claim is not None and (bool(claim.delta) or claim.parameter == "mu")
    drawn = [
        (
            figures.wealth(details, prefix=f"{prefix}w"),
            "Wealth of the bets against the claim. If the claim is true, the line reaches the dashed threshold "
            "with probability at most α, whenever the run stops.",
        ),
        (
            figures.privacy_curves(details, logarithmic=logarithmic, prefix=f"{prefix}c"),
            "The privacy curve: the smallest δ that goes with each ε. The claim holds where the solid line is nowhere "
            "above the dashed one.",
        ),
        (
            figures.classes(details, prefix=f"{prefix}b"),
            "By class of inputs, with intervals. "
            + (
                "A cross marks a bias that is not zero; the shaded band is the margin."
                if as_float(details.get("margin")) is not None
                else "A cross marks a variance above its bound."
            ),
        ),
        (
            figures.scatter(details, points=points, prefix=f"{prefix}s"),
            "A sample of the points, evenly spaced, where there are many."
            + (" The dashed line is equality." if _mapping(details.get("scatter")).get("diagonal") else ""),
        ),
    ]
    for svg, caption in drawn:
        if svg is not None:
            yield Plot(Markup(svg), caption)


def _facts(evidence: Evidence, claim: ClaimRecord | None) -> Iterator[tuple[str, str]]:
    """The numbers of an evidence, as (name, value)."""
    details, letter = evidence.details, numbers.symbol(claim)
    found = numbers.interval(evidence.epsilon_lower, evidence.epsilon_upper, claim)
    if found != MISSING:
        yield "Bounds", found
    exact = details.get("exact_epsilon")
    if exact is not None:
        yield f"Exact {letter}", number(exact, digits=6)
    if details.get("worst_pair") is not None:
        yield "Worst pair", _plain(details["worst_pair"])
    if details.get("scope") is not None:
        yield "Scope", _plain(details["scope"])
    if details.get("pairs_enumerated") is not None:
        yield "Pairs enumerated", number(details["pairs_enumerated"])
    if evidence.log_e_value is not None:
        yield "e-value (wealth)", numbers.e_value(evidence.log_e_value)
    threshold = as_float(details.get("threshold"))
    if threshold is not None:
        yield "Threshold 1/α", numbers.e_value(threshold)
    if details.get("refuted_at") is not None:
        yield "Refuted after", f"{number(details['refuted_at'])} calls"
    if evidence.calls:
        yield "Calls", number(evidence.calls)
    smallest = as_float(details.get("detectable_epsilon"))
    if smallest is not None:
        against = details.get("detectable_alternative")
        yield (
            "Would have refuted, 9 times in 10",
            f"{letter} = {number(smallest)}" + (f" ({against})" if against else ""),
        )
    confirmation = _mapping(details.get("confirmation"))
    if confirmation:
        yield "Confirmation on fresh randomness", _confirmation(confirmation)
    margin = as_float(details.get("margin"))
    if margin is not None:
        yield "Margin", f"± {number(margin)}"
    for key, value in details.items():
        if key not in _PLACED and isinstance(value, str | int | float | bool):
            yield key.replace("_", " ").capitalize(), _plain(value)


def _confirmation(confirmation: dict[str, Any]) -> str:
    outcome = "confirmed" if confirmation.get("confirmed") else "not confirmed"
    calls, wealth = number(confirmation.get("calls")), numbers.e_value(confirmation.get("log_e_value"))
    return f"{outcome} after {calls} calls (e-value {wealth}, α = {number(confirmation.get('alpha'))})"


def _tables(evidence: Evidence) -> Iterator[Table]:
    details = evidence.details
    classes = _rows(details.get("classes"))
    if classes:
        columns = ["Class", "n", "Truth", "Mean", "Interval of the mean", "Variance", "Variance bound"]
        rows = [[_plain(row.get("class")), *map(number, _class_numbers(row))] for row in classes]
        for shown, row in zip(rows, classes, strict=True):
            shown.insert(4, f"{number(row.get('low'))} to {number(row.get('high'))}")
        yield Table("Classes of inputs", columns, rows[: 3 * ROWS_SHOWN], max(0, len(rows) - 3 * ROWS_SHOWN))
    pairs = sorted(_rows(details.get("pairs")), key=lambda row: -(as_float(row.get("calls")) or 0.0))
    if pairs:
        rows = [[_plain(row.get("pair")), number(row.get("calls")), number(row.get("growth"), 3)] for row in pairs]
        columns = ["Pair", "Calls", "Growth (nats per call)"]
        yield Table("Pairs played", columns, rows[:ROWS_SHOWN], max(0, len(rows) - ROWS_SHOWN))
    forecasters = sorted(_rows(details.get("forecasters")), key=_descending_wealth)
    if forecasters:
        rows = [[_plain(row.get("name")), numbers.e_value(row.get("log_wealth"))] for row in forecasters]
        yield Table("Forecasters", ["Forecaster", "Wealth"], rows[:ROWS_SHOWN], max(0, len(rows) - ROWS_SHOWN))


def _class_numbers(row: dict[str, Any]) -> list[Any]:
    return [row.get(key) for key in ("n", "truth", "mean", "variance", "variance_bound")]


def _descending_wealth(row: dict[str, Any]) -> float:
    wealth = as_float(row.get("log_wealth"))
    return math.inf if wealth is None else -wealth


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _rows(value: object) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list | tuple) else []


def _plain(value: object) -> str:
    """A parameter or detail of any type on one line."""
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return str(value) if isinstance(value, int) else number(value, digits=6)
    if isinstance(value, str):
        return shorten(value, VALUE_LENGTH)
    return shorten(json.dumps(value, ensure_ascii=False, default=str), VALUE_LENGTH)


def _paragraphs(text: str) -> list[Markup]:
    """The paragraphs of a docstring, escaped, with what stands between double backticks as code."""
    found = []
    for paragraph in text.strip().split("\n\n"):
        parts = printable(" ".join(paragraph.split())).split("``")
        marked = [
            escape(part) if k % 2 == 0 else Markup("<code>{}</code>").format(part) for k, part in enumerate(parts)
        ]
        found += [Markup("").join(marked)] if paragraph.strip() else []
    return found


def _breakable(audit_id: str) -> Markup:
    """An audit id that may be broken after its separators, where a column is narrow."""
    written = escape(printable(audit_id))
    for separator in ("/", "::", "["):
        written = Markup(written.replace(Markup(separator), Markup(f"{separator}<wbr>")))
    return written
