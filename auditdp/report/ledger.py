"""The ledger of published claims: one line per claim, with its verdict, the evidence, and the repair that holds.

An audit is listed where it says under which published mechanism (``@audit(row=...)``). An audit that repairs a violated
claim of its own row stands in the line of that claim, and has none of its own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from auditdp.record.json_fields import json_number
from auditdp.record.results import AuditResult, Published, RunRecord, Verdict
from auditdp.report.numbers import bound, count, interval
from auditdp.report.plain_text import markdown as written
from auditdp.report.plain_text import markdown_code, one_line, shell, table
from auditdp.report.sentences import (
    crowded,
    detectable,
    run_meaning,
    self_reported,
    unseen,
)

SCHEMA = 2
PROOFS = (Verdict.CERTIFIED, Verdict.EQUIVALENT)
COLUMNS = (
    "reading",
    "claim",
    "verdict",
    "evidence",
    "found",
    "why",
    "what holds instead",
)


@dataclass(frozen=True)
class Repair:
    """The smallest change under which the claim holds: what is audited, how it ended, and what it costs."""

    statement: str
    verdict: Verdict
    certificate: str
    cost: str
    reproduce: str
    reading: str
    found: str
    audit: str


@dataclass(frozen=True)
class Line:
    """One published claim."""

    row: str
    reading: str
    statement: str
    """The claim in a sentence."""
    claim: str
    """The claim as it is audited, such as '1-DP'."""
    adjacency: str
    source: str
    verdict: Verdict
    evidence: str
    """The kind of evidence that the verdict rests on."""
    found: str
    """The exact epsilon, or the bounds, of that evidence, as a reader sees them."""
    epsilon_lower: float | str | None
    epsilon_upper: float | str | None
    counterexample: str
    """The smallest pair and why it breaks the claim, or its calibration, in one line; empty where neither is refuted."""
    pair: str
    output: str
    """The output that tells them apart most; empty where the evidence is not about one output."""
    explanation: str
    """What the counterexample shows, with both probabilities where it is about an output."""
    proof: str
    """What certifies the claim, or shows an estimate to be equivalent; else empty."""
    undecided: str
    """For a claim that is neither refuted nor certified: what would have been seen, and what would decide it."""
    reproduce: str
    parameters: Mapping[str, Any]
    repairs: Sequence[Repair]
    """Audits of claims that hold instead."""
    audit: str


def ledger(record: RunRecord) -> dict[str, list[Line]]:
    """Return the lines of every published mechanism, in the order of the record."""
    published = {
        result.id: result.published
        for result in record.results
        if result.published is not None
    }
    rows: dict[str, list[Line]] = {}
    for line in lines_of(record):
        repaired = published.get(published[line.audit].repairs)
        if repaired is None or repaired.row != line.row:
            rows.setdefault(line.row, []).append(line)
    return rows


def lines_of(record: RunRecord) -> list[Line]:
    """Return the line of every audit that is listed, repairs included, in the order of the record."""
    repairs = repairs_of(record)
    return [
        _line(r, r.published, repairs.get(r.id, []))
        for r in record.results
        if r.published is not None
    ]


def repairs_of(record: RunRecord) -> dict[str, list[AuditResult]]:
    """Return, by the id of a violated claim's audit, the audits of what holds instead."""
    found: dict[str, list[AuditResult]] = {}
    for result in record.results:
        if result.published is not None and result.published.repairs:
            found.setdefault(result.published.repairs, []).append(result)
    return found


def _line(
    result: AuditResult, published: Published, repairs: Sequence[AuditResult]
) -> Line:
    leading = result.leading
    lower, upper = (
        (leading.epsilon_lower, leading.epsilon_upper) if leading else (None, None)
    )
    found = result.counterexample
    undecided = [f"would have refuted {seen}" for seen in [detectable(result)] if seen]
    undecided += (
        [f"what would decide it: {published.decides}"] if published.decides else []
    )
    return Line(
        row=published.row,
        reading=published.reading,
        statement=_first_paragraph(result.description) or result.id,
        claim=result.claim.text if result.claim else "",
        adjacency=result.claim.adjacency if result.claim else "",
        source=result.claim.source if result.claim else "",
        verdict=result.verdict,
        evidence=leading.kind if leading else "",
        found=_found(result),
        epsilon_lower=json_number(lower),
        epsilon_upper=json_number(upper),
        counterexample=one_line(f"{found.pair}: {found.explanation}") if found else "",
        pair=one_line(found.pair) if found else "",
        output=one_line(found.output) if found else "",
        explanation=one_line(found.explanation) if found else "",
        proof=one_line(leading.statement)
        if leading and result.verdict in PROOFS
        else "",
        undecided="; ".join(undecided) if result.verdict is Verdict.NOT_REFUTED else "",
        reproduce=shell(result.reproduce),
        parameters=dict(result.parameters),
        repairs=[_repair(repair) for repair in repairs],
        audit=result.id,
    )


def _found(result: AuditResult) -> str:
    """The bounds of the evidence that decides; a violation is rounded down, whatever is known from above."""
    leading = result.leading
    lower, upper = (
        (leading.epsilon_lower, leading.epsilon_upper) if leading else (None, None)
    )
    refuted = result.verdict is Verdict.VIOLATED
    return interval(lower, None if refuted else upper, result.claim, refuted=refuted)


def _repair(result: AuditResult) -> Repair:
    leading, published = result.leading, result.published
    assert published is not None  # it says what it repairs
    return Repair(
        statement=_first_paragraph(result.description) or result.id,
        verdict=result.verdict,
        certificate=one_line(leading.statement if leading else result.summary),
        cost=published.cost,
        reproduce=shell(result.reproduce),
        reading=published.reading,
        found=_found(result),
        audit=result.id,
    )


def _first_paragraph(text: str) -> str:
    return one_line(text.partition("\n\n")[0])


def to_json(record: RunRecord) -> str:
    """Return the ledger as JSON: the run, and a list of lines."""
    lines = [asdict(line) for lines in ledger(record).values() for line in lines]
    head = {
        "schema": SCHEMA,
        "root_seed": record.root_seed,
        "revision": record.revision,
        "status": record.status,
    }
    head |= {
        "audited": record.audited,
        **{what: number for number, what in unseen(record)},
    }
    return json.dumps({**head, "claims": lines}, ensure_ascii=False, indent=2) + "\n"


def markdown(record: RunRecord) -> str:
    """Return the ledger as Markdown: a heading per published mechanism, and one table line per claim."""
    alpha = bound(math.fsum(entry.alpha for entry in record.alpha_ledger), up=True)
    lines = [
        "# Claims ledger",
        "",
        f"What published claims are worth, at revision {markdown_code(record.revision or 'unknown')}, "
        f"root seed `{record.root_seed}`.",
        f"The probability that this run refutes any true claim by chance is at most {alpha}. "
        + written(run_meaning(record)),
        "",
        *_totals(record),
    ]
    for row, found in ledger(record).items():
        lines += [
            "",
            f"## {written(row)}",
            "",
            *table(COLUMNS, [[*map(written, _cells(line))] for line in found]),
        ]
        lines += [
            "",
            *(f"- {markdown_code(line.reproduce)}" for line in found if line.reproduce),
        ]
    return "\n".join(lines) + "\n"


def _totals(record: RunRecord) -> Iterator[str]:
    verdicts = [line.verdict for lines in ledger(record).values() for line in lines]
    counts = [
        f"{verdicts.count(verdict)} {verdict}"
        for verdict in Verdict
        if verdict in verdicts
    ]
    own = f" Self-reported: {sentence}." if (sentence := self_reported(record)) else ""
    own += f" Many audits: {written(many)}." if (many := crowded(record)) else ""
    yield f"{count(len(verdicts), 'claim')}: {', '.join(counts)}.{own}"


def _cells(line: Line) -> list[str]:
    particulars = "; ".join(
        part for part in (line.claim, line.adjacency, line.source) if part
    )
    claim = f"{line.statement} ({particulars})" if particulars else line.statement
    repairs = [
        f"{r.verdict}: {r.statement} {r.certificate}."
        + (f" Cost: {r.cost}" if r.cost else "")
        for r in line.repairs
    ]
    why = line.counterexample or line.proof or line.undecided
    return [
        line.reading,
        claim,
        line.verdict,
        line.evidence,
        line.found,
        why,
        " ".join(repairs),
    ]
