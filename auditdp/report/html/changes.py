"""What changed since the last report: verdicts that are others, audits that are new, and audits that are gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from auditdp.record.results import AuditResult, RunRecord
from auditdp.report.standing import verdict_label


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
        Change(name, _verdict_text(old.get(name)), _verdict_text(new.get(name)), _finds(new.get(name)))
        for name in [*new, *(name for name in old if name not in new)]
        if name not in missing and _verdict_text(old.get(name)) != _verdict_text(new.get(name))
    ]
    return sorted(found, key=lambda change: not change.finding)


def asked_otherwise(previous: RunRecord, record: RunRecord) -> Sequence[str]:
    """Return what the two runs were asked differently, as sentences."""
    asked = [
        ("root seed", previous.root_seed, record.root_seed),
        ("budget", previous.arguments.get("budget"), record.arguments.get("budget")),
        ("revision", previous.revision or "unknown", record.revision or "unknown"),
    ]
    return [f"{name} {then} then, {now} now" for name, then, now in asked if then != now]


def _verdict_text(result: AuditResult | None) -> str:
    if result is None:
        return ""
    surviving = " (a control survived)" if result.surviving_controls else ""
    return verdict_label(result).replace("_", " ") + surviving


def _finds(result: AuditResult | None) -> bool:
    return result is not None and result.needs_a_look
