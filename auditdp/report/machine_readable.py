"""How audits stand for a program that reads them: with what is known of them, where there is a baseline.

A run as JUnit XML, which every CI service reads: one case per audit.

A finding is a FAILURE, and so is a claim that was refuted without being confirmed; an audit that crashed, or was planned
and has no result, is an ERROR, since nothing was found out;
an audit that is skipped, inconclusive or accepted counts as skipped, with the reason. The elements are those of the schema
that Jenkins publishes (junit-10.xsd).

A run as SARIF 2.1.0 (OASIS, errata 01): findings at the file and line of the mechanism that they are about.

Only findings, and refutations that were not confirmed, are results. What crashed, was skipped or decided nothing is a
notification, since nothing was found there. A finding that a baseline accepts is a result with a suppression, whose
justification is the reason.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from auditdp import __version__
from auditdp.numerics.rounding import outwards
from auditdp.record.differences import FINDINGS, REGRESSIONS, Difference, Kind
from auditdp.record.results import DECLARABLE, AuditResult, Place, RunRecord, Verdict
from auditdp.record.traces import Fate
from auditdp.report import terminal
from auditdp.report.guesses import (
    MEANINGS,
    REMEDIES,
    UNCONFIRMED_REMEDY,
    guessing,
    line_of,
    said,
)
from auditdp.report.numbers import level
from auditdp.report.plain_text import printable, shell, xml
from auditdp.report.plain_text import sarif as text_of
from auditdp.report.sentences import (
    crowded,
    headline,
    reasons,
    self_reported,
    unconfirmed,
    undecided,
)


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


def judged(
    record: RunRecord, differences: Sequence[Difference] | None = None
) -> list[Judged]:
    """Return every audit of a record in its order, and after them those that are gone."""
    of: dict[str, list[Difference]] = {}
    for difference in differences or ():
        of.setdefault(difference.audit, []).append(difference)
    found = [
        _judged(result.id, result, of.get(result.id, [])) for result in record.results
    ]
    known = {result.id for result in record.results}
    crash = "It was planned and has no result: the run did not end."
    found += [Judged(name, Level.CRASHED, (crash,), None) for name in record.missing]
    known |= set(record.missing)
    return found + [
        _judged(name, None, items)
        for name, items in of.items()
        if name not in known and any(item.kind is not Kind.NOT_RUN for item in items)
    ]


def _judged(
    name: str, result: AuditResult | None, items: Sequence[Difference]
) -> Judged:
    by_kind: Mapping[Kind, list[str]] = {
        kind: [item.text for item in items if item.kind is kind]
        for kind in {item.kind for item in items}
    }
    regressed = [
        f"{kind.value}: {text}"
        for kind in REGRESSIONS
        for text in by_kind.get(kind, ())
    ]
    mutants = (
        result.mutation.of(Fate.SURVIVED)
        if result is not None and result.mutation is not None
        else []
    )
    survivors = [
        f"A mutant survived: {mutant.name}: {mutant.statement}" for mutant in mutants
    ]
    if result is not None and result.verdict is Verdict.ERROR:
        return Judged(
            name, Level.CRASHED, (result.summary.removeprefix(f"{name}: "),), result
        )
    if result is not None and (
        any(kind in by_kind for kind in FINDINGS)
        or (result.is_finding and Kind.ACCEPTED not in by_kind)
        or survivors
    ):
        expired = by_kind.get(Kind.EXPIRED, [])
        return Judged(
            name,
            Level.FINDING,
            (*reasons(result), *expired, *survivors, *regressed),
            result,
        )
    if result is not None and result.is_unconfirmed:
        return Judged(
            name, Level.UNCONFIRMED, (*unconfirmed(result), result.summary), result
        )
    if regressed:
        return Judged(name, Level.REGRESSED, tuple(regressed), result)
    if Kind.ACCEPTED in by_kind:
        return Judged(name, Level.ACCEPTED, tuple(by_kind[Kind.ACCEPTED]), result)
    if result is not None and (
        result.is_undecided or result.verdict in (Verdict.INCONCLUSIVE, Verdict.SKIPPED)
    ):
        return Judged(
            name, Level.UNDECIDED, (undecided(result) or result.summary,), result
        )
    return Judged(name, Level.FINE, (), result)


def place(result: AuditResult | None) -> Place | None:
    """Return where a report points: at the line that a trace read off, or else at the mechanism, or at the audit."""
    return (
        None
        if result is None
        else line_of(result) or result.mechanism_at or result.audit_at
    )


def worst_first(audits: Iterable[Judged]) -> list[Judged]:
    """Return the audits from the loudest to those that are as declared, otherwise in their order."""
    order = list(Level)
    return sorted(audits, key=lambda item: order.index(item.level))


OUTCOMES = {
    Level.UNCONFIRMED: "failure",
    Level.FINDING: "failure",
    Level.REGRESSED: "failure",
    Level.CRASHED: "error",
    Level.ACCEPTED: "skipped",
    Level.UNDECIDED: "skipped",
}
"""The element that says what became of a case; none where it passed."""


def junit(record: RunRecord, differences: Sequence[Difference] | None = None) -> str:
    """Return the document."""
    audits = judged(record, differences)
    counts = {
        name: sum(OUTCOMES.get(item.level) == name for item in audits)
        for name in set(OUTCOMES.values())
    }
    totals = {
        "name": "auditdp",
        "tests": str(len(audits)),
        "failures": str(counts["failure"]),
        "errors": str(counts["error"]),
        "time": _seconds(record.seconds),
    }
    root = ElementTree.Element("testsuites", totals)
    suite = ElementTree.SubElement(
        root, "testsuite", totals | {"skipped": str(counts["skipped"])}
    )
    with suppress(ValueError):  # what is no time is left out, as the schema asks
        suite.set(
            "timestamp",
            datetime.fromisoformat(record.started).isoformat().removesuffix("+00:00"),
        )
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in (
        ("outcome", headline(record)),
        ("root seed", str(record.root_seed)),
        ("revision", record.revision),
        ("status", record.status),
        ("sandbox", record.sandbox),
        ("self-reported", self_reported(record)),
        ("many audits", crowded(record)),
    ):
        ElementTree.SubElement(properties, "property", name=name, value=xml(value))
    for item in audits:
        suite.append(_case(item))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(item: Judged) -> ElementTree.Element:
    path, _, name = item.audit.partition("::")
    folder = path.removesuffix(".py").replace("/", ".")
    case = ElementTree.Element(
        "testcase", classname=xml(folder), name=xml(name or path)
    )
    case.set("time", _seconds(item.result.seconds if item.result else 0.0))
    outcome = OUTCOMES.get(item.level)
    shown = xml(terminal.line(item.result)) if item.result is not None else ""
    if outcome is not None:
        kind = (
            item.result.verdict.value if item.result is not None else item.level.value
        )
        found = ElementTree.SubElement(
            case, outcome, type=kind, message=xml(" ".join(item.reasons))
        )
        found.text = shown if outcome != "skipped" else None
    elif shown:
        ElementTree.SubElement(case, "system-out").text = shown
    return case


def _seconds(value: float) -> str:
    return f"{max(float(value), 0.0):.3f}"


SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "SRCROOT"
RULES = {
    "violated": ("ClaimViolated", MEANINGS[Verdict.VIOLATED]),
    "miscalibrated": ("NoiseMiscalibrated", MEANINGS[Verdict.MISCALIBRATED]),
    "unconfirmed": (
        "RefutedNotConfirmed",
        "A claim was refuted, and that was not confirmed or not believed: nothing is decided, and the run is not clean.",
    ),
    "missed": (
        "DeclaredAndMissed",
        "An audit declares a finding, and it was not found.",
    ),
    "toothless": (
        "TwinSurvived",
        "A deliberately broken twin of the mechanism was not refuted: the audit has no power.",
    ),
    "weaker": (
        "AuditWeaker",
        "An audit shows less than the baseline says, or is gone.",
    ),
}
"""Name and description of what is found, by id."""
HELP = {
    "violated": REMEDIES[Verdict.VIOLATED],
    "miscalibrated": REMEDIES[Verdict.MISCALIBRATED],
    "unconfirmed": UNCONFIRMED_REMEDY,
    "missed": "Something was mended, or the audit sees less than it did: correct what it declares, or give it more calls.",
    "toothless": REMEDIES[Verdict.INCONCLUSIVE],
    "weaker": "Bring back what is gone or weaker; where it is meant, make the baseline anew with `auditdp baseline update`.",
}
"""What to do about it."""
LEVELS = {Level.CRASHED: "error", Level.UNDECIDED: "warning"}


def sarif(record: RunRecord, differences: Sequence[Difference] | None = None) -> str:
    """Return the log file."""
    audits = judged(record, differences)
    ids = list(RULES)
    notified = [_notification(item) for item in audits if item.level in LEVELS]
    invocation: dict[str, Any] = {
        "executionSuccessful": record.status == "complete"
        and all(item.level is not Level.CRASHED for item in audits),
        "toolExecutionNotifications": notified,
    }
    for name, when in (
        ("startTimeUtc", record.started),
        ("endTimeUtc", record.finished),
    ):
        if when:
            invocation[name] = when.replace("+00:00", "Z")
    run = {
        "tool": {
            "driver": {
                "name": "auditdp",
                "semanticVersion": __version__,
                "rules": [
                    {
                        "id": f"auditdp/{key}",
                        "name": name,
                        "shortDescription": {"text": text},
                        "help": {"text": HELP[key]},
                        "defaultConfiguration": {"level": "error"},
                    }
                    for key, (name, text) in RULES.items()
                ],
            }
        },
        "originalUriBaseIds": {
            ROOT: {"description": {"text": "The folder in which the audits were run."}}
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "results": [
            _result(item, ids)
            for item in audits
            if item.level
            in (Level.UNCONFIRMED, Level.FINDING, Level.REGRESSED, Level.ACCEPTED)
        ],
        "properties": {
            "outcome": headline(record),
            "rootSeed": record.root_seed,
            "revision": printable(record.revision),
            **({"selfReported": own} if (own := self_reported(record)) else {}),
            **({"manyAudits": printable(many)} if (many := crowded(record)) else {}),
        },
    }
    return (
        json.dumps(
            {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]},
            indent=1,
            ensure_ascii=False,
        )
        + "\n"
    )


def rule_of(item: Judged) -> str:
    """Return the id, in ``RULES``, of what is found."""
    result = item.result
    if item.level is Level.UNCONFIRMED:
        return "unconfirmed"
    if item.level is Level.REGRESSED or result is None:
        return "weaker"
    if (
        result.verdict in DECLARABLE.values()
        and DECLARABLE.get(result.expected) is not result.verdict
    ):
        return "violated" if result.verdict is Verdict.VIOLATED else "miscalibrated"
    return (
        "missed" if result.is_finding and not result.surviving_controls else "toothless"
    )


def _result(item: Judged, ids: Sequence[str]) -> dict[str, Any]:
    result, rule = item.result, rule_of(item)
    found: dict[str, Any] = {
        "ruleId": f"auditdp/{rule}",
        "ruleIndex": ids.index(rule),
        "level": "warning" if item.level is Level.REGRESSED else "error",
        "message": {"text": text_of(message(item))},
        "locations": [_location(place(result), item.audit)],
        "partialFingerprints": {
            "auditId/v1": hashlib.sha256(f"{rule} {item.audit}".encode()).hexdigest()
        },
    }
    if result is not None:
        around = {"the mechanism": result.mechanism_at, "the audit": result.audit_at}
        related = [
            (text, where)
            for text, where in around.items()
            if where not in (None, place(result))
        ]
        if related:
            found["relatedLocations"] = [
                _location(where, item.audit) | {"message": {"text": text}}
                for text, where in related
            ]
    if item.level is Level.ACCEPTED:
        found["suppressions"] = [
            {"kind": "external", "justification": printable(" ".join(item.reasons))}
        ]
    if result is not None:
        found["properties"] = _properties(result)
    return found


def message(item: Judged) -> str:
    """Return what a person has to know of a finding: the reasons, the pair, and the command that shows it again."""
    result = item.result
    why = (
        reasons(result)
        if item.level is Level.ACCEPTED and result is not None
        else item.reasons
    )
    parts = [f"{item.audit}: {' '.join(why)}"]
    if result is not None and item.level is not Level.REGRESSED:
        if result.claim is not None:
            parts.append(f"Claim: {result.claim.text} ({result.claim.adjacency}).")
        parts += [sentence] if (sentence := guessing(result)) else []
        parts += [
            "Self-reported: the verdict rests on what code of the audit computed."
        ] * result.is_self_reported
        parts += [f"Read off the code: {sentence}." for sentence in said(result)]
        if result.counterexample is not None:
            found = result.counterexample
            pair = (
                f"Pair, as Python:\n{found.python}\n"
                if found.python
                else f"Pair: {found.pair}. "
            )
            parts.append(f"{pair}{found.explanation}")
        if command := shell(result.reproduce):
            parts.append(f"Reproduce: {command}")
    return "\n".join(parts)


def _properties(result: AuditResult) -> dict[str, Any]:
    bounds = {
        "epsilonLower": (result.epsilon_lower, False),
        "epsilonUpper": (result.epsilon_upper, True),
    }
    return {
        "verdict": result.verdict.value,
        "calls": result.calls,
        **{
            name: outwards(value, up=up, digits=6, against=level(result.claim))
            for name, (value, up) in bounds.items()
            if value is not None
        },
    }


def _location(where: Place | None, audit: str) -> dict[str, Any]:
    """Return a location; without a place of its own it is the audit's file, which the id names."""
    file, line = (
        (where.file, where.line) if where is not None else (audit.partition("::")[0], 1)
    )
    artifact: dict[str, Any] = {
        "uri": quote(file),
        **({} if file.startswith("/") else {"uriBaseId": ROOT}),
    }
    return {
        "physicalLocation": {
            "artifactLocation": artifact,
            "region": {"startLine": line},
        },
        "logicalLocations": [
            {"fullyQualifiedName": printable(audit), "kind": "function"}
        ],
    }


def _notification(item: Judged) -> dict[str, Any]:
    return {
        "level": LEVELS[item.level],
        "message": {"text": text_of(f"{item.audit}: {' '.join(item.reasons)}")},
        "locations": [_location(place(item.result), item.audit)],
    }
