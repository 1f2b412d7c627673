"""The ledger of published claims, with the verdict, evidence and repairs of each claim.

The ledger has a row for each published mechanism, and in it a line for each claim. An
audit is listed if it names its row (``@audit(row=...)``). A repair is an audit of a
change under which a violated claim is to hold. If it is in the same row as this claim,
it is part of the claim's line, and has no line of its own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from auditdp.record.json_fields import json_number
from auditdp.record.results import (
    AuditResult,
    ClaimRecord,
    Counterexample,
    Evidence,
    Published,
    RunRecord,
    Verdict,
)
from auditdp.report.numbers import between, bound, count, interval
from auditdp.report.plain_text import markdown as written
from auditdp.report.plain_text import markdown_code, one_line, shell, table
from auditdp.report.sentences import detectable, remarks, run_meaning, unseen

SCHEMA = 2
"""Version of the JSON ledger."""
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
    """A change under which a violated claim is to hold, with the audit of the change.

    ``certificate`` is the statement of that audit's leading evidence, or else its
    summary. ``cost`` is the cost in variance or accuracy; empty if none is stated.
    """

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
    """One published claim, its verdict and evidence."""

    row: str
    """The published mechanism."""
    reading: str
    """The audited reading of the claim, such as 'as stated' or 'as deployed'."""
    statement: str
    """The claim in a sentence."""
    claim: str
    """The claim of the audit, such as '1-DP'."""
    adjacency: str
    source: str
    verdict: Verdict
    evidence: str
    """The kind of evidence on which the verdict rests; empty if there is none."""
    found: str
    """The bounds of that evidence as an inequality; for a violation the lower alone."""
    epsilon_lower: float | str | None
    epsilon_upper: float | str | None
    counterexample: str
    """The pair and the explanation on one line; empty without a counterexample."""
    pair: str
    output: str
    """The output of the counterexample; empty if it is not about one output."""
    explanation: str
    """The explanation of the counterexample."""
    proof: str
    """The statement of the evidence for a proved claim or an equivalent estimate.

    It is empty with other verdicts.
    """
    undecided: str
    """The detectable loss of a claim that is NOT_REFUTED, and how to decide the claim.

    It is empty with other verdicts.
    """
    reproduce: str
    """The command that repeats the audit."""
    parameters: Mapping[str, Any]
    repairs: Sequence[Repair]
    """Changes under which the claim is to hold; each has its own verdict."""
    audit: str
    """The id of the audit."""


def ledger(record: RunRecord) -> dict[str, list[Line]]:
    """Return the lines by their published mechanism, in the order of the record.

    A repair in the row of its claim has no line, since it is part of the claim's line.
    """
    lines = lines_of(record)
    rows = {line.audit: line.row for line in lines}
    repaired: dict[str, str | None] = {}
    for name, repairs in repairs_of(record).items():
        repaired |= {repair.id: rows.get(name) for repair in repairs}
    lines_by_row: dict[str, list[Line]] = {}
    for line in lines:
        if repaired.get(line.audit) != line.row:
            lines_by_row.setdefault(line.row, []).append(line)
    return lines_by_row


def lines_of(record: RunRecord) -> list[Line]:
    """Return a line for every audit of a published mechanism, also for repairs."""
    repairs = repairs_of(record)
    return [
        _line(result, result.published, repairs.get(result.id, []))
        for result in record.results
        if result.published is not None
    ]


def repairs_of(record: RunRecord) -> dict[str, list[AuditResult]]:
    """Return the audits of repairs, by the id of the audit whose claim they repair."""
    repairs: dict[str, list[AuditResult]] = {}
    for result in record.results:
        if result.published is not None and result.published.repairs:
            repairs.setdefault(result.published.repairs, []).append(result)
    return repairs


def _line(
    result: AuditResult, published: Published, repairs: Sequence[AuditResult]
) -> Line:
    # An audit without a verdict on its claim has empty cells.
    nothing = Evidence("", result.verdict, "")
    leading = result.leading or nothing
    claim = result.claim or ClaimRecord("", "", "")
    counterexample = result.counterexample or Counterexample("", "")
    pair = one_line(counterexample.pair)
    explanation = one_line(counterexample.explanation)
    proof = ""
    undecided = []
    if result.verdict in PROOFS:
        proof = one_line(leading.statement)
    if result.verdict is Verdict.NOT_REFUTED:
        undecided = [
            between("would have refuted ", detectable(result)),
            between("what would decide it: ", published.decides),
        ]
    return Line(
        row=published.row,
        reading=published.reading,
        statement=_statement(result),
        claim=claim.text,
        adjacency=claim.adjacency,
        source=claim.source,
        verdict=result.verdict,
        evidence=leading.kind,
        found=_found(result),
        epsilon_lower=json_number(leading.epsilon_lower),
        epsilon_upper=json_number(leading.epsilon_upper),
        counterexample=f"{pair}: {explanation}".removeprefix(": "),
        pair=pair,
        output=one_line(counterexample.output),
        explanation=explanation,
        proof=proof,
        undecided="; ".join(filter(None, undecided)),
        reproduce=shell(result.reproduce),
        parameters=dict(result.parameters),
        repairs=[_repair(each, each.published) for each in repairs if each.published],
        audit=result.id,
    )


def _found(result: AuditResult) -> str:
    """Return the bounds of the leading evidence as an inequality; "–" without bounds.

    For a violation it has the lower bound alone.
    """
    leading = result.leading or Evidence("", result.verdict, "")
    # The upper bound of a violation is about the law, and no reader needs it.
    if result.verdict is Verdict.VIOLATED:
        return interval(leading.epsilon_lower, None, result.claim, refuted=True)
    return interval(leading.epsilon_lower, leading.epsilon_upper, result.claim)


def _repair(result: AuditResult, published: Published) -> Repair:
    leading = result.leading
    return Repair(
        statement=_statement(result),
        verdict=result.verdict,
        certificate=one_line(leading.statement if leading else result.summary),
        cost=published.cost,
        reproduce=shell(result.reproduce),
        reading=published.reading,
        found=_found(result),
        audit=result.id,
    )


def _statement(result: AuditResult) -> str:
    return one_line(result.description.partition("\n\n")[0]) or result.id


def to_json(record: RunRecord) -> str:
    """Return the ledger as JSON: the run, and a list of lines."""
    content = {
        "schema": SCHEMA,
        "root_seed": record.root_seed,
        "revision": record.revision,
        "status": record.status,
        "audited": record.audited,
        **{ended: audits for audits, ended in unseen(record)},
        "claims": [asdict(line) for row in ledger(record).values() for line in row],
    }
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"


def markdown(record: RunRecord) -> str:
    """Return the ledger as Markdown: a table for each published mechanism."""
    alpha = bound(math.fsum(entry.alpha for entry in record.alpha_ledger), up=True)
    rows = ledger(record)
    lines = [
        "# Claims ledger",
        "",
        "Published claims beside results of audits, at revision "
        f"{markdown_code(record.revision or 'unknown')}, root seed `{record.root_seed}`.",
        "The probability that this run refutes any true claim by chance is at most "
        f"{alpha}. {written(run_meaning(record))}",
        "",
        _totals(record, rows),
    ]
    for row, claims in rows.items():
        cells = [list(map(written, _cells(line))) for line in claims]
        commands = [line.reproduce for line in claims if line.reproduce]
        lines += ["", f"## {written(row)}", "", *table(COLUMNS, cells), ""]
        lines += [f"- {markdown_code(command)}" for command in commands]
    return "\n".join(lines) + "\n"


def _totals(record: RunRecord, rows: Mapping[str, Sequence[Line]]) -> str:
    verdicts = [line.verdict for claims in rows.values() for line in claims]
    counts = [f"{verdicts.count(key)} {key}" for key in Verdict if key in verdicts]
    totals = f"{count(len(verdicts), 'claim')}: {', '.join(counts)}."
    for label, sentence in remarks(record).items():
        totals += f" {label.capitalize()}: {written(sentence)}."
    return totals


def _cells(line: Line) -> list[str]:
    particulars = [part for part in (line.claim, line.adjacency, line.source) if part]
    claim = line.statement + between(" (", "; ".join(particulars), ")")
    repairs = []
    for repair in line.repairs:
        statement = f"{repair.statement} {repair.certificate}."
        cost = between(" Cost: ", repair.cost)
        repairs.append(f"{repair.verdict}: {statement}{cost}")
    why = line.counterexample or line.proof or line.undecided
    outcome = [line.verdict, line.evidence, line.found, why]
    return [line.reading, claim, *outcome, " ".join(repairs)]
