"""The verification report: a light index, and one page for each audit beside it, to read, print and hand on.

No page needs a script or loads anything from elsewhere; the index has one, for the search in its table. Everything that
comes from a record is escaped; only plots are inserted as they are, as images that hold what Matplotlib wrote.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from auditdp.record.results import AuditResult, RunRecord
from auditdp.report import numbers
from auditdp.report.html.cards import AuditView, EvidenceView, audit_view, evidence_views, file_name
from auditdp.report.html.changes import asked_otherwise, changes
from auditdp.report.html.facts import PAIRS_SHOWN, plain
from auditdp.report.html.intervals import TICKS, place
from auditdp.report.html.papers import by_paper
from auditdp.report.html.summary import COLUMNS, summary
from auditdp.report.ledger import ledger, repairs_of
from auditdp.report.numbers import number
from auditdp.report.standing import (
    AS_DECLARED,
    Standing,
    audited_claims,
    by_standing,
    crowded,
    detectable,
    headline,
    mutants_by_fate,
    mutation_score,
    named,
    of_planned,
    rarely,
    role,
    run_meaning,
    self_reported,
    slowest,
    undecided,
)
from auditdp.report.text import printable, shell
from auditdp.report.wording import CLEAN_RUN, MEANINGS

STYLE, DATA = "report.css", "record.json"
MOST_PLOTS = 450
"""Plots of a report: each takes 40 ms, and with more a report of 5,000 audits would take minutes."""


def report(record: RunRecord) -> str:
    """Return the record as one HTML page, with every audit on it."""
    views = _views(record, lambda result: f"#audit-{file_name(result.id)}")
    return _index(record, views, None, data=record.to_json(), at="", evidence=_Drawn())


def pages(record: RunRecord, *, index: str, folder: str, previous: RunRecord | None = None) -> dict[str, str]:
    """Return the report as files: the index, and in a folder a page for each audit, their style sheet, and the record.

    Args:
        record: The run.
        index: File name of the index.
        folder: Name of the folder beside it.
        previous: The run of the last report, if it is at hand.

    Returns:
        The text of every file, by its path relative to the folder of the index.
    """
    views = _views(record, lambda result: f"{folder}/{file_name(result.id)}.html")
    made = {f"{folder}/{STYLE}": files("auditdp.report.html").joinpath("report.css").read_text(encoding="utf-8")}
    names = [f"{file_name(view.result.id)}.html" for view in views]
    template, evidence = environment().get_template("audit.html.j2"), _Drawn()
    for k, view in enumerate(views):
        made[view.address] = template.render(
            record=record,
            view=view,
            evidence=evidence(view.result),
            started=_moment(record.started),
            back=f"../{index}",
            earlier=names[k - 1] if k else "",
            later=names[k + 1] if k + 1 < len(names) else "",
        )
    made[at := f"{folder}/{DATA}"] = record.to_json(indent=None)
    # The index last: while it is the old one, all its pages are there.
    return made | {index: _index(record, views, previous, data=made[at], at=at, evidence=evidence)}


def _views(record: RunRecord, address: Callable[[AuditResult], str]) -> list[AuditView]:
    repairs = repairs_of(record)
    ordered = [result for results in by_standing(record).values() for result in results]
    return [audit_view(result, repairs, address=address(result)) for result in ordered]


class _Drawn:
    """The evidence of audits, one after the other, with plots as long as these are not too many: those that come first."""

    def __init__(self) -> None:
        self.plots = 0

    def __call__(self, result: AuditResult) -> list[EvidenceView]:
        views = evidence_views(result, plots=self.plots < MOST_PLOTS)
        self.plots += sum(len(view.plots) for view in views)
        return views


def _index(
    record: RunRecord, views: Sequence[AuditView], previous: RunRecord | None, *, data: str, at: str, evidence: _Drawn
) -> str:
    """Return the index; ``data`` is the record as the file at a place beside the pages has it, or a JSON report of it."""
    groups = {key: [view for view in views if view.standing is key] for key in by_standing(record)}
    by_id = {view.result.id: view for view in views}
    known = by_paper([view.result for view in views if view.standing in AS_DECLARED])
    return (
        environment()
        .get_template("index.html.j2")
        .render(
            record=record,
            started=_moment(record.started),
            headline=headline(record),
            total=of_planned(record),
            missing=record.missing,
            views=views,
            groups=groups,
            ledger=ledger(record),
            by_id=by_id,
            addresses={name: view.address for name, view in by_id.items()},
            declared={paper: [by_id[result.id] for result in results] for paper, results in known.items()},
            claims=audited_claims(record),
            mutated=any(result.mutation is not None for result in record.results),
            shares=Counter((entry.purpose, entry.alpha) for entry in record.alpha_ledger),
            total_alpha=numbers.bound(math.fsum(entry.alpha for entry in record.alpha_ledger), up=True),
            slowest=slowest(record),
            previous=previous is not None,
            previous_started=_moment(previous.started) if previous else "",
            changes=changes(previous, record) if previous else [],
            asked=asked_otherwise(previous, record) if previous else [],
            meanings=MEANINGS,
            clean_run=CLEAN_RUN,
            run_meaning=run_meaning(record),
            self_reported=self_reported(record),
            crowded=crowded(record),
            standings=Standing,
            at=at,
            digest=hashlib.sha256(data.encode()).hexdigest(),
            sources=hashlib.sha256(
                "".join(f"{d}  {name}\n" for name, d in record.sources.items()).encode()
            ).hexdigest(),
            columns=COLUMNS,
            summary=summary(record),
            evidence=evidence,
            most_plots=MOST_PLOTS,
        )
    )


@cache
def environment() -> Environment:
    """Return the templates of reports, which escape whatever they are given."""
    made = Environment(
        loader=PackageLoader("auditdp.report.html", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else printable(str(value), keep="\n"),
    )
    made.filters |= {
        "bounds": numbers.bounds,
        "breakable": _breakable,
        "coded": coded,
        "count": numbers.count,
        "detectable": detectable,
        "duration": numbers.duration,
        "n": lambda value: f"{value:g}",
        "number": number,
        "paragraphs": _paragraphs,
        "plain": plain,
        "role": role,
        "shell": shell,
        "slug": lambda verdict: verdict.value.lower().replace("_", "-"),
    }
    shared: Mapping[str, Any] = {
        "as_declared": AS_DECLARED,
        "interval": numbers.interval,
        "mutants_by_fate": mutants_by_fate,
        "mutation_score": mutation_score,
        "named": named,
        "pairs_shown": PAIRS_SHOWN,
        "rarely": rarely,
        "undecided": undecided,
        "ticks": {name: place(ratio) for name, ratio in TICKS.items()},
    }
    made.globals |= shared
    return made


def _moment(text: str) -> str:
    """A recorded time as a reader writes it; as it is recorded where it is no time."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    zone = (" " + (moment.tzname() or "")).rstrip()
    return f"{moment.day} {moment:%B %Y, %H:%M}{zone}"


def _paragraphs(text: str) -> list[Markup]:
    """The paragraphs of a docstring; see ``coded``."""
    return [coded(" ".join(paragraph.split())) for paragraph in text.strip().split("\n\n") if paragraph.strip()]


def coded(text: str) -> Markup:
    """Return a text, escaped, with what stands between single or double backticks as code."""
    return Markup(re.sub(r"(``?)([^`]+)\1", r"<code>\2</code>", str(escape(printable(text, keep="\n")))))


def _breakable(audit_id: str) -> Markup:
    """An audit id that may be broken after its separators, where a column is narrow."""
    written = escape(printable(audit_id))
    for separator in ("/", "::", "["):
        written = Markup(written.replace(Markup(separator), Markup(f"{separator}<wbr>")))
    return written
