"""The HTML report: an index, and a page for each audit.

No page loads anything from elsewhere, and none needs a script. The index has one
script, which searches its table. Everything from a record is escaped; plots are images
with the SVG of Matplotlib.

The index begins with the findings, and with the losses that the run would have missed,
by the kind of the claims. It groups declared faults by the paper of the claim, and
lists the verdicts that changed since the last report.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from auditdp.record.results import AuditResult, ClaimRecord, RunRecord, Verdict
from auditdp.report import numbers, sentences
from auditdp.report.facts import facts, pairs, plain, tables
from auditdp.report.guesses import CLEAN_RUN, MEANINGS, guessing
from auditdp.report.html.cards import (
    EvidenceView,
    evidence_views,
    file_name,
    first_sentence,
    heading,
    instead,
    label,
    meaning,
)
from auditdp.report.html.drawings import drawing, inputs
from auditdp.report.html.plots import TICKS, interval_of, place
from auditdp.report.ledger import ledger, repairs_of
from auditdp.report.numbers import bound
from auditdp.report.plain_text import printable, shell
from auditdp.report.sentences import AS_DECLARED, Standing, standing

STYLE = "report.css"
DATA = "record.json"
MOST_PLOTS = 450
"""Number of plots after which a report gets no more, since a plot takes 40 ms."""


@dataclass(frozen=True)
class AuditView:
    """A result, prepared for a template.

    Attributes:
        result: The result.
        address: The link from the index to its page, or to its place on the same page.
        instead: Sentences about the claims that hold instead of a refuted one.
    """

    result: AuditResult
    address: str
    instead: Sequence[str] = ()

    @property
    def anchor(self) -> str:
        """The id of its element on a page."""
        return f"audit-{file_name(self.result.id)}"


def report(record: RunRecord) -> str:
    """Return the record as one HTML page, with every audit on it."""
    views = _views(record, lambda result: f"#audit-{file_name(result.id)}")
    return _index(record, views, None, data=record.to_json(), at="", evidence=_Drawn())


def pages(
    record: RunRecord, *, index: str, folder: str, previous: RunRecord | None = None
) -> dict[str, str]:
    """Return the report as files: the index, and the pages of the audits in a folder.

    The folder also has the style sheet of the pages, and the record.

    Args:
        record: The run.
        index: File name of the index.
        folder: Name of the folder beside the index.
        previous: The run of the last report; None if there is none.

    Returns:
        The text of every file, by its path relative to the folder of the index. The
        index comes last. If the files are written in this order, all links of an index
        on the disk have a page.
    """
    views = _views(record, lambda result: f"{folder}/{file_name(result.id)}.html")
    style = files("auditdp.report.html").joinpath("report.css")
    texts = {f"{folder}/{STYLE}": style.read_text(encoding="utf-8")}
    # The empty names are the neighbours of the first and the last page.
    names = ["", *(f"{file_name(view.result.id)}.html" for view in views), ""]
    template = environment().get_template("audit.html.j2")
    evidence = _Drawn()
    for k, view in enumerate(views):
        texts[view.address] = template.render(
            record=record,
            view=view,
            evidence=evidence(view.result),
            back=f"../{index}",
            earlier=names[k],
            later=names[k + 2],
        )
    at = f"{folder}/{DATA}"
    data = record.to_json(indent=None)
    texts[at] = data
    texts[index] = _index(record, views, previous, data=data, at=at, evidence=evidence)
    return texts


def _views(record: RunRecord, address: Callable[[AuditResult], str]) -> list[AuditView]:
    repairs = repairs_of(record)
    views = []
    for results in sentences.by_standing(record).values():
        for result in results:
            holding = list(instead(result, repairs.get(result.id, [])))
            views.append(AuditView(result, address(result), holding))
    return views


class _Drawn:
    """A function that returns views of an audit's evidence, and counts their plots.

    Once they have ``MOST_PLOTS`` plots, the views of further audits have none.
    """

    def __init__(self) -> None:
        self.plots = 0

    def __call__(self, result: AuditResult) -> list[EvidenceView]:
        views = evidence_views(result, plots=self.plots < MOST_PLOTS)
        self.plots += sum(len(view.plots) for view in views)
        return views


def _index(
    record: RunRecord,
    views: Sequence[AuditView],
    previous: RunRecord | None,
    *,
    data: str,
    at: str,
    evidence: _Drawn,
) -> str:
    """Return the text of the index.

    Args:
        record: The run.
        views: Its audits, worst first.
        previous: The run of the last report; None if there is none.
        data: The record as JSON, whose digest the index states.
        at: The link to the file of the record; empty for a report of one page.
        evidence: Function that returns the evidence of an audit, which a report of one
            page displays.
    """
    groups: dict[Standing, list[AuditView]] = {}
    for view in views:
        groups.setdefault(standing(view.result), []).append(view)
    declared = [view for key in AS_DECLARED for view in groups.get(key, [])]
    # Audits of one purpose mostly have equal shares of alpha.
    shares = Counter((entry.purpose, entry.alpha) for entry in record.alpha_ledger)
    alpha = math.fsum(entry.alpha for entry in record.alpha_ledger)
    sums = "".join(f"{digest}  {name}\n" for name, digest in record.sources.items())
    return (
        environment()
        .get_template("index.html.j2")
        .render(
            record=record,
            views=views,
            groups=groups,
            ledger=ledger(record),
            by_id={view.result.id: view for view in views},
            declared=by_paper(declared),
            mutated=any(result.mutation is not None for result in record.results),
            shares=shares,
            total_alpha=bound(alpha, up=True),
            previous=previous,
            at=at,
            digest=hashlib.sha256(data.encode()).hexdigest(),
            sources=hashlib.sha256(sums.encode()).hexdigest(),
            evidence=evidence,
            most_plots=MOST_PLOTS,
        )
    )


@cache
def environment() -> Environment:
    """Return the Jinja environment of the templates, which escapes every value."""
    templates = Environment(
        loader=PackageLoader("auditdp.report.html", "."),
        autoescape=True,
        # A misspelled name in a template is an error, and not an empty text.
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_printable,
    )
    templates.filters |= {
        "bounds": numbers.bounds,
        "breakable": _breakable,
        "moment": _moment,
        "coded": coded,
        "count": numbers.count,
        "detectable": sentences.detectable,
        "duration": numbers.duration,
        "label": label,
        "n": "{:g}".format,
        "number": numbers.number,
        "paragraphs": _paragraphs,
        "plain": plain,
        "role": sentences.role,
        "shell": shell,
        "slug": lambda verdict: verdict.value.lower().replace("_", "-"),
    }
    shared: Mapping[str, Any] = {
        "as_declared": AS_DECLARED,
        "asked_otherwise": asked_otherwise,
        "changes": changes,
        "clean_run": CLEAN_RUN,
        "columns": COLUMNS,
        "drawing": drawing,
        "facts": facts,
        "first_sentence": first_sentence,
        "guessing": guessing,
        "heading": heading,
        "inputs": inputs,
        "interval": numbers.interval,
        "interval_of": interval_of,
        "meaning": meaning,
        "meanings": MEANINGS,
        "pairs": pairs,
        "sentences": sentences,
        "standing": standing,
        "standings": Standing,
        "summary": summary,
        "tables": tables,
        "ticks": {name: place(ratio) for name, ratio in TICKS.items()},
    }
    templates.globals |= shared
    return templates


def _printable(value: object) -> str:
    # Markup is a str that is escaped already.
    if isinstance(value, Markup):
        return value
    return printable(str(value), keep="\n")


def _moment(text: str) -> str:
    """Return a recorded time in words; a text that is no time is returned unchanged."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    zone = (" " + (moment.tzname() or "")).rstrip()
    return f"{moment.day} {moment:%B %Y, %H:%M}{zone}"


def _paragraphs(text: str) -> list[Markup]:
    """Return the paragraphs of a docstring, each as HTML of ``coded``."""
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
    return [coded(paragraph) for paragraph in paragraphs if paragraph]


def coded(text: str) -> Markup:
    """Return text as HTML; parts in single or double backticks become code."""
    # Backticks are not special in HTML, so the text is escaped before its code is
    # marked.
    written = str(escape(printable(text, keep="\n")))
    return Markup(re.sub(r"(``?)([^`]+)\1", r"<code>\2</code>", written))


def _breakable(audit_id: str) -> Markup:
    """Return an audit id as HTML with possible line breaks after its separators."""
    written = str(escape(printable(audit_id)))
    return Markup(re.sub(r"(/|::|\[)", r"\1<wbr>", written))


NO_PAPER = "Claims of no named paper"

_NAME = r"[A-Z][\w’'\-]+"
_PAPER = re.compile(
    rf"({_NAME}(?:(?:, | & | and ){_NAME})*(?: et al\.?)?) \(?((?:19|20)\d\d)\b"
)


def paper(source: str) -> str:
    """Return the authors and the year of the first paper that a claim's source names.

    It is ``NO_PAPER`` if the source names none.

    >>> paper("a reading of ours: Sajadmanesh et al. 2023 (GAP), arXiv:2203.00949")
    'Sajadmanesh et al. 2023'
    """
    match = _PAPER.search(source)
    if match:
        return f"{match[1]} {match[2]}"
    return NO_PAPER


def by_paper(views: Sequence[AuditView]) -> dict[str, list[AuditView]]:
    """Return the audits by the paper of their claim; those without one come last."""
    groups: dict[str, list[AuditView]] = {}
    for view in views:
        claim = view.result.claim or ClaimRecord("", "", "")
        groups.setdefault(paper(claim.source), []).append(view)
    # A key that is inserted again is the last one.
    if NO_PAPER in groups:
        groups[NO_PAPER] = groups.pop(NO_PAPER)
    return groups


@dataclass(frozen=True)
class Change:
    """An audit whose verdict changed since the last report."""

    audit: str
    then: str
    """Its verdict in the last report; empty if that report has no result of it."""
    now: str
    """Its verdict in this report; empty if this report has no result of it."""
    finding: bool
    """True if somebody has to look at its result in this report."""


def changes(previous: RunRecord, record: RunRecord) -> list[Change]:
    """Return the audits whose verdicts differ between two runs.

    Those that somebody has to look at come first. Planned audits that have no result in
    the new run are left out.
    """
    old = {result.id: result for result in previous.results}
    new = {result.id: result for result in record.results}
    changed = []
    for name in dict.fromkeys([*new, *old]):
        now = new.get(name)
        then_text, now_text = _verdict_text(old.get(name)), _verdict_text(now)
        if then_text != now_text and name not in record.missing:
            is_finding = now is not None and now.needs_a_look
            changed.append(Change(name, then_text, now_text, is_finding))
    return sorted(changed, key=lambda change: not change.finding)


def asked_otherwise(previous: RunRecord, record: RunRecord) -> Sequence[str]:
    """Return phrases about differences in root seed, budget and revision of two runs."""
    options = [
        {
            "root seed": run.root_seed,
            "budget": run.arguments.get("budget"),
            "revision": run.revision or "unknown",
        }
        for run in (previous, record)
    ]
    then, now = options
    return [
        f"{name} “{then[name]}” then and “{now[name]}” now"
        for name in then
        if then[name] != now[name]
    ]


def _verdict_text(result: AuditResult | None) -> str:
    if result is None:
        return ""
    return label(result) + " (a control survived)" * bool(result.surviving_controls)


COLUMNS: dict[str, Sequence[Standing]] = {
    "Findings": (Standing.FINDING,),
    "Not confirmed": (Standing.UNCONFIRMED,),
    "Refuted, as declared": AS_DECLARED,
    "Proved": (Standing.CERTIFIED,),
    "Equivalent": (Standing.EQUIVALENT,),
    "Not refuted": (Standing.NOT_REFUTED,),
    "Nothing known": (
        Standing.UNDECIDED,
        Standing.INCONCLUSIVE,
        Standing.ERROR,
        Standing.SKIPPED,
    ),
}
"""Columns of the summary by heading, with the standings that each column counts."""


@dataclass(frozen=True)
class ClaimSummary:
    """A row of the summary: the outcomes of all claims of one kind.

    Attributes:
        claimed: The kind of the claims, in words.
        counts: The number of audits in each of ``COLUMNS``.
        missed: Words for the losses that clean games may have missed, as multiples of
            the claim; empty without such games.
    """

    claimed: str
    counts: Sequence[int]
    missed: str


def summary(record: RunRecord) -> list[ClaimSummary]:
    """Return the rows of the summary: kinds of claims, the most frequent first.

    The last row is for all claims, and also counts planned audits without a result.
    """
    kinds = Counter(_kind(result) for result in record.results)
    rows = []
    for kind, _ in kinds.most_common():
        of_kind = [result for result in record.results if _kind(result) == kind]
        rows.append(_row(kind, of_kind))
    return [*rows, _row("all", record.results, len(record.missing))]


def _row(
    claimed: str, results: Sequence[AuditResult], missing: int = 0
) -> ClaimSummary:
    standings = Counter(standing(result) for result in results)
    counts = [sum(standings[key] for key in keys) for keys in COLUMNS.values()]
    # Nothing is known of audits without a result.
    counts[-1] += missing
    clean = [each for each in results if each.verdict is Verdict.NOT_REFUTED]
    powers = [result.power or math.inf for result in clean]
    finite = sorted(power for power in powers if power < math.inf)
    missed = []
    if finite:
        ends = [bound(power, up=True, digits=2) for power in (finite[0], finite[-1])]
        missed.append(f"below {' to '.join(dict.fromkeys(ends))}×")
    if len(powers) > len(finite):
        missed.append(f"any in {len(powers) - len(finite):,}")
    return ClaimSummary(claimed, counts, "; ".join(missed))


def _kind(result: AuditResult) -> str:
    """Return the kind of a claim in words, such as 'Approx DP'.

    >>> _kind(AuditResult("a.py::b", Verdict.ERROR, "it crashed"))
    'not stated'
    """
    claim = result.claim or ClaimRecord("", "", "")
    # The name of a class such as ApproxDP becomes the words Approx DP.
    first, *rest = re.findall(r"[A-Z]+[a-z]*", claim.kind) or ["not stated"]
    words = [word if word.isupper() else word.lower() for word in rest]
    return " ".join([first, *words])
