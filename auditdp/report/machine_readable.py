"""Runs as JUnit XML and as SARIF 2.1.0, and the severity of each audit.

``judged`` computes the severity, with or without a baseline; all formats for CI use it.

JUnit, which every CI service reads, has one case for each audit, with the elements of
the schema that Jenkins publishes (junit-10.xsd). A finding is a failure, and so are a
claim that was refuted without confirmation and an audit that is weaker than in the
baseline. An audit that crashed, or was planned and has no result, is an error. A
skipped, inconclusive, undecided or accepted audit counts as skipped, with the reason.

SARIF (OASIS, errata 01) has a result for each finding, for each refutation that was not
confirmed, and for each audit that is weaker than in the baseline. Its place is the line
that a trace names, or that of the mechanism. Crashed, skipped and undecided audits are
notifications. A finding that a baseline accepts is a result with a suppression, whose
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
from auditdp.record.results import AuditResult, Place, RunRecord, Verdict
from auditdp.record.traces import Fate
from auditdp.report import numbers, terminal
from auditdp.report.facts import SPELLED_OUT, facts
from auditdp.report.guesses import MEANINGS, REMEDIES, UNCONFIRMED_REMEDY, line_of
from auditdp.report.plain_text import printable, xml
from auditdp.report.plain_text import sarif as text_of
from auditdp.report.sentences import (
    headline,
    reasons,
    remarks,
    unconfirmed,
    undecided,
)


class Level(StrEnum):
    """Severities of audits, worst first."""

    UNCONFIRMED = "refuted, not confirmed"
    """The audit has an undeclared refutation, and its verdict does not rest on it, for
    example because it was not confirmed."""
    FINDING = "finding"
    """The audit is a finding that no baseline accepts, or a mutant survived."""
    CRASHED = "crashed"
    """The audit failed or has no result, so nothing is known about the claim."""
    REGRESSED = "regressed"
    """Compared with the baseline, the audit is weaker, changed, skipped or gone."""
    ACCEPTED = "accepted"
    """The baseline accepts the finding."""
    UNDECIDED = "undecided"
    """The audit is inconclusive, skipped, or lacks calls to decide."""
    FINE = "fine"
    """The audit ended as declared."""


@dataclass(frozen=True)
class Judged:
    """The severity of an audit, with its reasons."""

    audit: str
    """The id of the audit."""
    level: Level
    reasons: tuple[str, ...]
    """Sentences; empty if the audit ended as declared."""
    result: AuditResult | None
    """The result; None if the run has none of this audit."""


def judged(
    record: RunRecord, differences: Sequence[Difference] | None = None
) -> list[Judged]:
    """Return the severity of each audit.

    First come the audits with a result, then planned ones without a result. Last come
    entries of the baseline that the run should have and does not.

    Args:
        record: The run.
        differences: The differences from a baseline, or None if there is no baseline.
    """
    by_audit: dict[str, dict[Kind, list[str]]] = {}
    for difference in differences or ():
        kinds = by_audit.setdefault(difference.audit, {})
        kinds.setdefault(difference.kind, []).append(difference.text)
    audits = []
    for result in record.results:
        level, texts = _judged(result, by_audit.pop(result.id, {}))
        audits.append(Judged(result.id, level, tuple(texts), result))
    crash = "It was planned and has no result, since the run did not end."
    for name in record.missing:
        by_audit.pop(name, None)
        audits.append(Judged(name, Level.CRASHED, (crash,), None))
    # These entries of the baseline have no result in this run.
    for name, kinds in by_audit.items():
        if kinds.keys() - {Kind.NOT_RUN}:
            texts = _regressions(kinds)
            level = Level.FINE
            if texts:
                level = Level.REGRESSED
            audits.append(Judged(name, level, tuple(texts), None))
    return audits


def _regressions(kinds: Mapping[Kind, list[str]]) -> list[str]:
    return [
        f"{kind.value}: {text}" for kind in REGRESSIONS for text in kinds.get(kind, ())
    ]


def _judged(
    result: AuditResult, kinds: Mapping[Kind, list[str]]
) -> tuple[Level, Sequence[str]]:
    """Return the severity of a result, and its reasons.

    ``kinds`` has the texts of its differences from a baseline, by kind.
    """
    if result.verdict is Verdict.ERROR:
        return Level.CRASHED, [result.summary.removeprefix(f"{result.id}: ")]
    regressed = _regressions(kinds)
    mutants = [] if result.mutation is None else result.mutation.of(Fate.SURVIVED)
    survived = [f"A mutant survived: {each.name}: {each.statement}" for each in mutants]
    # A baseline accepts findings, and no surviving mutants.
    is_open = result.is_finding and Kind.ACCEPTED not in kinds
    if survived or is_open or kinds.keys() & {*FINDINGS}:
        expired = kinds.get(Kind.EXPIRED, [])
        return Level.FINDING, [*reasons(result), *expired, *survived, *regressed]
    if result.is_unconfirmed:
        return Level.UNCONFIRMED, unconfirmed(result)
    if regressed:
        return Level.REGRESSED, regressed
    if Kind.ACCEPTED in kinds:
        return Level.ACCEPTED, kinds[Kind.ACCEPTED]
    # Nothing is known of these audits, which is no failure by itself.
    unclear = result.verdict in (Verdict.INCONCLUSIVE, Verdict.SKIPPED)
    if unclear or result.is_undecided:
        return Level.UNDECIDED, [undecided(result) or result.summary]
    return Level.FINE, []


def place(result: AuditResult | None) -> Place | None:
    """Return the place of a result: the line that a trace names, if there is one.

    Otherwise it is the line of the mechanism, or else that of the audit, or None.
    """
    if result is None:
        return None
    return line_of(result) or result.mechanism_at or result.audit_at


def worst_first(audits: Iterable[Judged]) -> list[Judged]:
    """Return the audits sorted by severity; equal ones keep their order."""
    order = list(Level)
    return sorted(audits, key=lambda item: order.index(item.level))


def message(item: Judged) -> str:
    """Return the message about an audit: its id, its reasons, and further facts.

    The facts are those with labels in ``SPELLED_OUT``, each on a line of its own. Facts
    that the reasons state are left out, and all facts of a regressed audit.
    """
    result = item.result
    why: Sequence[str] = item.reasons
    if item.level is Level.ACCEPTED and result is not None:
        why = reasons(result)
    lines = [f"{item.audit}: {' '.join(why)}"]
    if result is not None and item.level is not Level.REGRESSED:
        for fact in facts(result):
            if fact.label in SPELLED_OUT and fact.text not in lines[0]:
                gap = " "
                if fact.label == "as Python":
                    gap = "\n"
                label = fact.label[0].upper() + fact.label[1:]
                lines.append(f"{label}:{gap}{fact.text}")
    return "\n".join(lines)


OUTCOMES = {
    Level.UNCONFIRMED: "failure",
    Level.FINDING: "failure",
    Level.REGRESSED: "failure",
    Level.CRASHED: "error",
    Level.ACCEPTED: "skipped",
    Level.UNDECIDED: "skipped",
}
"""The JUnit element of a case by its severity; with other severities it passed."""


def junit(record: RunRecord, differences: Sequence[Difference] | None = None) -> str:
    """Return the run as a JUnit document.

    Args:
        record: The run.
        differences: Its differences from a baseline, or None if there is no baseline.
    """
    audits = judged(record, differences)
    ended = [OUTCOMES.get(item.level) for item in audits]
    totals = {
        "name": "auditdp",
        "tests": str(len(audits)),
        "failures": str(ended.count("failure")),
        "errors": str(ended.count("error")),
        "time": _seconds(record.seconds),
    }
    root = ElementTree.Element("testsuites", totals)
    skipped = {"skipped": str(ended.count("skipped"))}
    suite = ElementTree.SubElement(root, "testsuite", totals | skipped)
    # The schema takes no text that is not a time.
    with suppress(ValueError):
        started = datetime.fromisoformat(record.started)
        suite.set("timestamp", started.isoformat().removesuffix("+00:00"))
    properties = ElementTree.SubElement(suite, "properties")
    about = {
        "outcome": headline(record),
        "root seed": str(record.root_seed),
        "revision": record.revision,
        "status": record.status,
        "sandbox": record.sandbox,
        **remarks(record),
    }
    for name, value in about.items():
        ElementTree.SubElement(properties, "property", name=name, value=xml(value))
    suite.extend(map(_case, audits))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(item: Judged) -> ElementTree.Element:
    path, _, name = item.audit.partition("::")
    folder = path.removesuffix(".py").replace("/", ".")
    case = ElementTree.Element(
        "testcase", classname=xml(folder), name=xml(name or path)
    )
    result = item.result
    shown, kind, seconds = "", item.level.value, 0.0
    if result is not None:
        shown = xml(terminal.line(result))
        kind = result.verdict.value
        seconds = result.seconds
    case.set("time", _seconds(seconds))
    # A case that passed has its output, and no reasons.
    outcome = OUTCOMES.get(item.level)
    if outcome is None:
        if shown:
            ElementTree.SubElement(case, "system-out").text = shown
        return case
    why = xml(" ".join(item.reasons))
    element = ElementTree.SubElement(case, outcome, type=kind, message=why)
    if outcome != "skipped":
        element.text = shown
    return case


def _seconds(value: float) -> str:
    return f"{max(float(value), 0.0):.3f}"


SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/"
    "sarif-schema-2.1.0.json"
)
ROOT = "SRCROOT"
RULES = {
    "violated": ("ClaimViolated", MEANINGS[Verdict.VIOLATED]),
    "miscalibrated": ("NoiseMiscalibrated", MEANINGS[Verdict.MISCALIBRATED]),
    "unconfirmed": (
        "RefutedNotConfirmed",
        "A claim was refuted, and the refutation was not confirmed or does not "
        "count: nothing is decided, and the run is not clean.",
    ),
    "missed": (
        "DeclaredAndMissed",
        "An audit declares a finding, and it was not found.",
    ),
    "toothless": (
        "TwinSurvived",
        "A deliberately broken twin of the mechanism was not refuted: the audit has no "
        "power.",
    ),
    "weaker": (
        "AuditWeaker",
        "An audit shows less than its entry in the baseline, or is gone.",
    ),
}
"""SARIF rules: the name and the description of each rule by its id."""
HELP = {
    "violated": REMEDIES[Verdict.VIOLATED],
    "miscalibrated": REMEDIES[Verdict.MISCALIBRATED],
    "unconfirmed": UNCONFIRMED_REMEDY,
    "missed": (
        "The mechanism was repaired, or the audit finds less than before: correct "
        "the declaration, or give it more calls."
    ),
    "toothless": REMEDIES[Verdict.INCONCLUSIVE],
    "weaker": (
        "Restore the audits that are gone or weaker; if the change is intended, make the baseline anew with "
        "`auditdp baseline update`."
    ),
}
"""The remedy of each SARIF rule by its id."""
NOTIFIED = {Level.CRASHED: "error", Level.UNDECIDED: "warning"}
"""SARIF levels of the severities that become notifications instead of results."""


def sarif(record: RunRecord, differences: Sequence[Difference] | None = None) -> str:
    """Return the run as a SARIF log.

    Args:
        record: The run.
        differences: Its differences from a baseline, or None if there is no baseline.
    """
    audits = judged(record, differences)
    crashed = any(item.level is Level.CRASHED for item in audits)
    invocation: dict[str, Any] = {
        "executionSuccessful": record.status == "complete" and not crashed,
        "toolExecutionNotifications": [
            {
                "level": NOTIFIED[item.level],
                "message": {"text": text_of(f"{item.audit}: {' '.join(item.reasons)}")},
                "locations": [_location(place(item.result), item.audit)],
            }
            for item in audits
            if item.level in NOTIFIED
        ],
    }
    times = {"startTimeUtc": record.started, "endTimeUtc": record.finished}
    for name, time in times.items():
        # The format requires times that end with Z.
        if time:
            invocation[name] = time.replace("+00:00", "Z")
    rules = [
        {
            "id": f"auditdp/{key}",
            "name": name,
            "shortDescription": {"text": text},
            "help": {"text": HELP[key]},
            "defaultConfiguration": {"level": "error"},
        }
        for key, (name, text) in RULES.items()
    ]
    driver = {"name": "auditdp", "semanticVersion": __version__, "rules": rules}
    properties: dict[str, Any] = {
        "outcome": headline(record),
        "rootSeed": record.root_seed,
        "revision": printable(record.revision),
    }
    for label, sentence in remarks(record).items():
        # Properties have names in camel case.
        first, *rest = label.replace("-", " ").split()
        properties[first + "".join(map(str.capitalize, rest))] = printable(sentence)
    description = {"text": "The folder in which the audits were run."}
    silent = {*NOTIFIED, Level.FINE}
    run = {
        "tool": {"driver": driver},
        "originalUriBaseIds": {ROOT: {"description": description}},
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "results": [_result(item) for item in audits if item.level not in silent],
        "properties": properties,
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=1, ensure_ascii=False) + "\n"


def rule_of(item: Judged) -> str:
    """Return the key in ``RULES`` of the rule that an audit breaks.

    The severity must not be FINE, and not one of ``NOTIFIED``.
    """
    result = item.result
    if item.level is Level.UNCONFIRMED:
        return "unconfirmed"
    if item.level is Level.REGRESSED or result is None:
        return "weaker"
    if result.verdict is not result.declared:
        if result.verdict is Verdict.VIOLATED:
            return "violated"
        if result.verdict is Verdict.MISCALIBRATED:
            return "miscalibrated"
    missed = result.is_finding and not result.surviving_controls
    if missed:
        return "missed"
    return "toothless"


def _result(item: Judged) -> dict[str, Any]:
    result = item.result
    rule = rule_of(item)
    # Lines and numbers change between runs, and the rule of an audit does not.
    fingerprint = hashlib.sha256(f"{rule} {item.audit}".encode()).hexdigest()
    level = "error"
    if item.level is Level.REGRESSED:
        level = "warning"
    content: dict[str, Any] = {
        "ruleId": f"auditdp/{rule}",
        "ruleIndex": list(RULES).index(rule),
        "level": level,
        "message": {"text": text_of(message(item))},
        "locations": [_location(place(result), item.audit)],
        "partialFingerprints": {"auditId/v1": fingerprint},
    }
    if item.level is Level.ACCEPTED:
        reason = printable(" ".join(item.reasons))
        content["suppressions"] = [{"kind": "external", "justification": reason}]
    if result is None:
        return content
    places = {"the mechanism": result.mechanism_at, "the audit": result.audit_at}
    related = [
        _location(where, item.audit) | {"message": {"text": text}}
        for text, where in places.items()
        if where not in (None, place(result))
    ]
    if related:
        content["relatedLocations"] = related
    properties = {"verdict": result.verdict.value, "calls": result.calls}
    claimed = numbers.level(result.claim)
    if result.epsilon_lower is not None:
        lower = outwards(result.epsilon_lower, up=False, digits=6, against=claimed)
        properties["epsilonLower"] = lower
    if result.epsilon_upper is not None:
        upper = outwards(result.epsilon_upper, up=True, digits=6, against=claimed)
        properties["epsilonUpper"] = upper
    return content | {"properties": properties}


def _location(where: Place | None, audit: str) -> dict[str, Any]:
    """Return a SARIF location: the place, or else line 1 of the audit's file."""
    where = where or Place(audit.partition("::")[0], 1)
    artifact = {"uri": quote(where.file)}
    # Only files below the root have paths relative to it.
    if not where.file.startswith("/"):
        artifact["uriBaseId"] = ROOT
    function = {"fullyQualifiedName": printable(audit), "kind": "function"}
    return {
        "physicalLocation": {
            "artifactLocation": artifact,
            "region": {"startLine": where.line},
        },
        "logicalLocations": [function],
    }
