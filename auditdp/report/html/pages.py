"""The verification report: a light index, and one page for each audit beside it, to read, print and hand on.

No page needs a script or loads anything from elsewhere; the index has one, for the search in its table. Everything that
comes from a record is escaped; only plots are inserted as they are, as images that hold what Matplotlib wrote.

Which paper a claim is from, so that what is known of one paper stands together.

What changed since the last report: verdicts that are others, audits that are new, and audits that are gone.

What a run found, and what it could not have found, by what is claimed: the table that a report opens with.
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

from auditdp.record.results import AuditResult, RunRecord, Verdict
from auditdp.report import numbers
from auditdp.report.facts import PAIRS_SHOWN, plain
from auditdp.report.guesses import CLEAN_RUN, MEANINGS
from auditdp.report.html.cards import (
    AuditView,
    EvidenceView,
    audit_view,
    evidence_views,
    file_name,
)
from auditdp.report.html.plots import TICKS, place
from auditdp.report.ledger import ledger, repairs_of
from auditdp.report.numbers import bound, number
from auditdp.report.plain_text import printable, shell
from auditdp.report.sentences import (
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
    standing,
    undecided,
    verdict_label,
)

STYLE, DATA = "report.css", "record.json"
MOST_PLOTS = 450
"""Plots of a report: each takes 40 ms, and with more a report of 5,000 audits would take minutes."""


def report(record: RunRecord) -> str:
    """Return the record as one HTML page, with every audit on it."""
    views = _views(record, lambda result: f"#audit-{file_name(result.id)}")
    return _index(record, views, None, data=record.to_json(), at="", evidence=_Drawn())


def pages(
    record: RunRecord, *, index: str, folder: str, previous: RunRecord | None = None
) -> dict[str, str]:
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
    made = {
        f"{folder}/{STYLE}": files("auditdp.report.html")
        .joinpath("report.css")
        .read_text(encoding="utf-8")
    }
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
    return made | {
        index: _index(record, views, previous, data=made[at], at=at, evidence=evidence)
    }


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
    record: RunRecord,
    views: Sequence[AuditView],
    previous: RunRecord | None,
    *,
    data: str,
    at: str,
    evidence: _Drawn,
) -> str:
    """Return the index; ``data`` is the record as the file at a place beside the pages has it, or a JSON report of it."""
    groups = {
        key: [view for view in views if view.standing is key]
        for key in by_standing(record)
    }
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
            declared={
                paper: [by_id[result.id] for result in results]
                for paper, results in known.items()
            },
            claims=audited_claims(record),
            mutated=any(result.mutation is not None for result in record.results),
            shares=Counter(
                (entry.purpose, entry.alpha) for entry in record.alpha_ledger
            ),
            total_alpha=numbers.bound(
                math.fsum(entry.alpha for entry in record.alpha_ledger), up=True
            ),
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
        finalize=lambda value: (
            value if isinstance(value, Markup) else printable(str(value), keep="\n")
        ),
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
    return [
        coded(" ".join(paragraph.split()))
        for paragraph in text.strip().split("\n\n")
        if paragraph.strip()
    ]


def coded(text: str) -> Markup:
    """Return a text, escaped, with what stands between single or double backticks as code."""
    return Markup(
        re.sub(
            r"(``?)([^`]+)\1",
            r"<code>\2</code>",
            str(escape(printable(text, keep="\n"))),
        )
    )


def _breakable(audit_id: str) -> Markup:
    """An audit id that may be broken after its separators, where a column is narrow."""
    written = escape(printable(audit_id))
    for separator in ("/", "::", "["):
        written = Markup(
            written.replace(Markup(separator), Markup(f"{separator}<wbr>"))
        )
    return written


NO_PAPER = "Claims of no named paper"

_NAME = r"[A-Z][\w’'\-]+"
_PAPER = re.compile(
    rf"({_NAME}(?:(?:, | & | and ){_NAME})*(?: et al\.?)?) \(?((?:19|20)\d\d)\b"
)


def paper(source: str) -> str:
    """Return the authors and the year of the first paper that a source names.

    >>> paper("a reading of ours: Sajadmanesh et al. 2023 (GAP), arXiv:2203.00949")
    'Sajadmanesh et al. 2023'
    """
    found = _PAPER.search(source)
    return f"{found[1]} {found[2]}" if found else NO_PAPER


def by_paper(results: Sequence[AuditResult]) -> dict[str, list[AuditResult]]:
    """Return the audits of each paper, in the order of the record; those of no paper come last."""
    groups: dict[str, list[AuditResult]] = {}
    for result in results:
        groups.setdefault(
            paper(result.claim.source if result.claim else ""), []
        ).append(result)
    rest = groups.pop(NO_PAPER, [])
    return groups | ({NO_PAPER: rest} if rest else {})


@dataclass(frozen=True)
class Change:
    """An audit that ended otherwise than in the last report; ``then`` or ``now`` is empty where one of them lacks it."""

    audit: str
    then: str
    now: str
    finding: bool


def changes(previous: RunRecord, record: RunRecord) -> list[Change]:
    """Return the changes, new findings first, otherwise in the order of the new record and then of the old one.

    Audits that the new run planned and has no result of are not listed: they changed nothing.
    """
    old = {result.id: result for result in previous.results}
    new = {result.id: result for result in record.results}
    missing = set(record.missing)
    found = [
        Change(
            name,
            _verdict_text(old.get(name)),
            _verdict_text(new.get(name)),
            _finds(new.get(name)),
        )
        for name in [*new, *(name for name in old if name not in new)]
        if name not in missing
        and _verdict_text(old.get(name)) != _verdict_text(new.get(name))
    ]
    return sorted(found, key=lambda change: not change.finding)


def asked_otherwise(previous: RunRecord, record: RunRecord) -> Sequence[str]:
    """Return what the two runs were asked differently, as sentences."""
    asked = [
        ("root seed", previous.root_seed, record.root_seed),
        ("budget", previous.arguments.get("budget"), record.arguments.get("budget")),
        ("revision", previous.revision or "unknown", record.revision or "unknown"),
    ]
    return [
        f"{name} {then} then, {now} now" for name, then, now in asked if then != now
    ]


def _verdict_text(result: AuditResult | None) -> str:
    if result is None:
        return ""
    surviving = " (a control survived)" if result.surviving_controls else ""
    return verdict_label(result).replace("_", " ") + surviving


def _finds(result: AuditResult | None) -> bool:
    return result is not None and result.needs_a_look


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


@dataclass(frozen=True)
class ClaimSummary:
    """What became of the claims of one kind.

    Attributes:
        missed: Which losses may be there all the same.
    """

    claimed: str
    counts: Sequence[int]
    missed: str


def summary(record: RunRecord) -> list[ClaimSummary]:
    """Return what became of the claims of each kind, those with most audits first, and a last row for all of them."""
    kinds = Counter(_kind(result) for result in record.results)
    rows = [
        _row(kind, [r for r in record.results if _kind(r) == kind])
        for kind, _ in kinds.most_common()
    ]
    return [*rows, _row("all", record.results, len(record.missing))]


def _row(
    claimed: str, results: Sequence[AuditResult], missing: int = 0
) -> ClaimSummary:
    found = Counter(standing(result) for result in results)
    counts = [sum(found[each] for each in of) for of in COLUMNS.values()]
    return ClaimSummary(claimed, [*counts[:-1], counts[-1] + missing], _missed(results))


def _missed(results: Sequence[AuditResult]) -> str:
    """Say from which loss on clean games would have seen one, where they played."""
    powers = [
        result.power or math.inf
        for result in results
        if result.verdict is Verdict.NOT_REFUTED
    ]
    known = sorted(power for power in powers if power < math.inf)
    ends = dict.fromkeys(
        bound(power, up=True, digits=2) for power in (*known[:1], *known[-1:])
    )
    parts = [f"below {' to '.join(ends)}×"] if known else []
    return "; ".join(
        [
            *parts,
            *(
                [f"any in {len(powers) - len(known):,}"]
                if len(powers) > len(known)
                else []
            ),
        ]
    )


def _kind(result: AuditResult) -> str:
    """Return the kind of a claim in words.

    >>> _kind(AuditResult("a.py::b", Verdict.ERROR, "it crashed"))
    'not told'
    """
    words = re.findall(r"[A-Z]+[a-z]*", result.claim.kind) if result.claim else []
    return (
        " ".join(
            [
                *words[:1],
                *(word if word.isupper() else word.lower() for word in words[1:]),
            ]
        )
        or "not told"
    )
