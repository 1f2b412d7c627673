"""Statements of papers with the findings of a run, one entry per statement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from auditdp.record.results import PRECEDENCE, RunRecord, Verdict
from auditdp.report.ledger import Line, lines_of
from audits.ledger.statements import Fault, Kind, Paper, Statement, check


class Outcome(StrEnum):
    """The outcome of a statement, from the worst to the best."""

    VIOLATED = "VIOLATED"
    MISCALIBRATED = "MISCALIBRATED"
    BEYOND = "OUT OF RANGE"
    SLIP = "SLIP"
    INCONCLUSIVE = "INCONCLUSIVE"
    ERROR = "ERROR"
    SKIPPED = "SKIPPED"
    MISSING = "NOT IN THIS RECORD"
    NOT_REFUTED = "NOT_REFUTED"
    EQUIVALENT = "EQUIVALENT"
    CERTIFIED = "CERTIFIED"
    PROVED = "PROVED"
    UNAUDITED = "NOT AUDITED"


BEARING = (Outcome.VIOLATED, Outcome.MISCALIBRATED)
"""False, where a guarantee or a result rests on it."""
FALSE = (*BEARING, Outcome.BEYOND, Outcome.SLIP)
_WORTH = {Fault.BEYOND: Outcome.BEYOND, Fault.SLIP: Outcome.SLIP}
_KEEPS = (Verdict.CERTIFIED, Verdict.EQUIVALENT, Verdict.NOT_REFUTED)
MEANINGS: dict[Outcome, str] = {
    Outcome.VIOLATED: "false: there is a counterexample",
    Outcome.MISCALIBRATED: "the sensitivity that the noise is calibrated to is too small; the argument fails",
    Outcome.BEYOND: "false, with a counterexample, for parameters only that the paper, as we read it, does not use",
    Outcome.SLIP: "false as printed; the paper has it right elsewhere, or nothing rests on it",
    Outcome.INCONCLUSIVE: "not decided; the card has the evidence",
    Outcome.PROVED: "an argument covers every size and parameter; its place is on the card",
    Outcome.CERTIFIED: "proved by computation for the size and parameters on the card, not beyond",
    Outcome.EQUIVALENT: "an estimate is within the stated margin, for the inputs on the card",
    Outcome.NOT_REFUTED: "no violation was seen; not evidence that there is none",
    Outcome.UNAUDITED: "listed on the paper's page with the reason",
}


@dataclass(frozen=True)
class Entry:
    """A statement with its audits in a record.

    Attributes:
        paper: Key of the paper.
        statement: The statement.
        checks: A line for each of its audits that the record has.
        missing: Ids of its audits that the record does not have.
    """

    paper: str
    statement: Statement
    checks: Sequence[Line]
    missing: Sequence[str]

    @property
    def outcome(self) -> Outcome:
        """The outcome; for a false statement, the kind of its fault."""
        return (
            _WORTH.get(self.statement.fault, self.verdict)
            if self.verdict in BEARING
            else self.verdict
        )

    @property
    def verdict(self) -> Outcome:
        """The worst of its audits; PROVED where a proof covers it and no audit contradicts it."""
        if self.statement.unaudited:
            return Outcome.UNAUDITED
        if self.statement.settled is not None:
            settled = self.statement.settled.verdict
            return (
                Outcome.PROVED
                if settled is Verdict.CERTIFIED
                else Outcome(settled.value)
            )
        found = [line.verdict for line in self.checks]
        if (
            self.statement.proof
            and found
            and all(verdict in _KEEPS for verdict in found)
        ):
            return Outcome.PROVED
        order = list(Outcome)
        outcomes = [Outcome(verdict.value) for verdict in found] + [
            Outcome.MISSING
        ] * bool(self.missing)
        return min(outcomes, key=order.index)

    @property
    def worst(self) -> Line | None:
        """The audit that decides; None where there is none."""
        order = [*PRECEDENCE, Verdict.ERROR, Verdict.SKIPPED]
        return min(
            self.checks, key=lambda line: order.index(line.verdict), default=None
        )


def entries(record: RunRecord, paper: Paper) -> list[Entry]:
    """Return an entry for every statement of a paper, in the order of the paper."""
    lines = {line.audit: line for line in lines_of(record)}
    return [
        Entry(
            paper.key,
            statement,
            [lines[audit] for audit in statement.audits if audit in lines],
            [audit for audit in statement.audits if audit not in lines],
        )
        for statement in paper.statements
    ]


def without_statement(record: RunRecord, papers: Sequence[Paper]) -> list[Line]:
    """Return the lines of audits that no statement names: neither directly nor as the repair of one that is named.

    Raises:
        ConfigurationError: If a key or an audit stands under two statements.
    """
    check(papers)
    lines = {line.audit: line for line in lines_of(record)}
    known = {
        audit
        for paper in papers
        for statement in paper.statements
        for audit in statement.audits
    }
    repairs = {repair.audit for line in lines.values() for repair in line.repairs}
    return [line for audit, line in lines.items() if audit not in known | repairs]


def tally(found: Iterable[Entry]) -> dict[Kind, Counter[Outcome]]:
    """Return the number of statements of each kind and outcome, without zeros."""
    counts: dict[Kind, Counter[Outcome]] = {kind: Counter() for kind in Kind}
    for entry in found:
        counts[entry.statement.kind][entry.outcome] += 1
    return {kind: counter for kind, counter in counts.items() if counter}
