"""How audits stand for a program that reads them: with what is known of them, where there is a baseline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from auditdp.history.baseline.differences import FINDINGS, REGRESSIONS, Difference, Kind
from auditdp.record.mutation import Fate
from auditdp.record.results import AuditResult, Place, RunRecord, Verdict
from auditdp.report.reading import line_of
from auditdp.report.standing import reasons, unconfirmed, undecided


class Level(StrEnum):
    """How loud a report has to be about an audit."""

    UNCONFIRMED = "refuted, not confirmed"
    """The claim was refuted, and the verdict does not say so."""
    FINDING = "finding"
    """A person has to look."""
    CRASHED = "crashed"
    """Nothing was found out."""
    REGRESSED = "regressed"
    """Less is shown than was known."""
    ACCEPTED = "accepted"
    """A finding that the project lives with."""
    UNDECIDED = "undecided"
    """Inconclusive or skipped."""
    FINE = "fine"
    """As declared."""


@dataclass(frozen=True)
class Judged:
    """An audit and how it stands."""

    audit: str
    level: Level
    reasons: tuple[str, ...]
    result: AuditResult | None


def judged(record: RunRecord, differences: Sequence[Difference] | None = None) -> list[Judged]:
    """Return every audit of a record in its order, and after them those that are gone."""
    of: dict[str, list[Difference]] = {}
    for difference in differences or ():
        of.setdefault(difference.audit, []).append(difference)
    found = [_judged(result.id, result, of.get(result.id, [])) for result in record.results]
    known = {result.id for result in record.results}
    crash = "It was planned and has no result: the run did not end."
    found += [Judged(name, Level.CRASHED, (crash,), None) for name in record.missing]
    known |= set(record.missing)
    return found + [
        _judged(name, None, items)
        for name, items in of.items()
        if name not in known and any(item.kind is not Kind.NOT_RUN for item in items)
    ]


def _judged(name: str, result: AuditResult | None, items: Sequence[Difference]) -> Judged:
    by_kind: Mapping[Kind, list[str]] = {
        kind: [item.text for item in items if item.kind is kind] for kind in {item.kind for item in items}
    }
    regressed = [f"{kind.value}: {text}" for kind in REGRESSIONS for text in by_kind.get(kind, ())]
    mutants = result.mutation.of(Fate.SURVIVED) if result is not None and result.mutation is not None else []
    survivors = [f"A mutant survived: {mutant.name}: {mutant.statement}" for mutant in mutants]
    if result is not None and result.verdict is Verdict.ERROR:
        return Judged(name, Level.CRASHED, (result.summary.removeprefix(f"{name}: "),), result)
    if result is not None and (
        any(kind in by_kind for kind in FINDINGS) or (result.is_finding and Kind.ACCEPTED not in by_kind) or survivors
    ):
        expired = by_kind.get(Kind.EXPIRED, [])
        return Judged(name, Level.FINDING, (*reasons(result), *expired, *survivors, *regressed), result)
    if result is not None and result.is_unconfirmed:
        return Judged(name, Level.UNCONFIRMED, (*unconfirmed(result), result.summary), result)
    if regressed:
        return Judged(name, Level.REGRESSED, tuple(regressed), result)
    if Kind.ACCEPTED in by_kind:
        return Judged(name, Level.ACCEPTED, tuple(by_kind[Kind.ACCEPTED]), result)
    if result is not None and (result.is_undecided or result.verdict in (Verdict.INCONCLUSIVE, Verdict.SKIPPED)):
        return Judged(name, Level.UNDECIDED, (undecided(result) or result.summary,), result)
    return Judged(name, Level.FINE, (), result)


def place(result: AuditResult | None) -> Place | None:
    """Return where a report points: at the line that a trace read off, or else at the mechanism, or at the audit."""
    return None if result is None else line_of(result) or result.mechanism_at or result.audit_at


def worst_first(audits: Iterable[Judged]) -> list[Judged]:
    """Return the audits from the loudest to those that are as declared, otherwise in their order."""
    order = list(Level)
    return sorted(audits, key=lambda item: order.index(item.level))
