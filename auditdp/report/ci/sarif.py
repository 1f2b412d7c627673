"""A run as SARIF 2.1.0 (OASIS, errata 01): findings at the file and line of the mechanism that they are about.

Only findings, and refutations that were not confirmed, are results. What crashed, was skipped or decided nothing is a
notification, since nothing was found there. A finding that a baseline accepts is a result with a suppression, whose
justification is the reason.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from auditdp import __version__
from auditdp.history.baseline.differences import Difference
from auditdp.numerics.rounding import outwards
from auditdp.record.results import DECLARABLE, AuditResult, Place, RunRecord, Verdict
from auditdp.report.ci.judged import Judged, Level, judged, place
from auditdp.report.guessing import guessing
from auditdp.report.numbers import level
from auditdp.report.reading import said
from auditdp.report.standing import crowded, headline, reasons, self_reported
from auditdp.report.text import printable, shell
from auditdp.report.text import sarif as text_of
from auditdp.report.wording import MEANINGS, REMEDIES, UNCONFIRMED_REMEDY

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "SRCROOT"
RULES = {
    "violated": ("ClaimViolated", MEANINGS[Verdict.VIOLATED]),
    "miscalibrated": ("NoiseMiscalibrated", MEANINGS[Verdict.MISCALIBRATED]),
    "unconfirmed": (
        "RefutedNotConfirmed",
        "A claim was refuted, and that was not confirmed or not believed: nothing is decided, and the run is not clean.",
    ),
    "missed": ("DeclaredAndMissed", "An audit declares a finding, and it was not found."),
    "toothless": (
        "TwinSurvived",
        "A deliberately broken twin of the mechanism was not refuted: the audit has no power.",
    ),
    "weaker": ("AuditWeaker", "An audit shows less than the baseline says, or is gone."),
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
        "executionSuccessful": record.status == "complete" and all(item.level is not Level.CRASHED for item in audits),
        "toolExecutionNotifications": notified,
    }
    for name, when in (("startTimeUtc", record.started), ("endTimeUtc", record.finished)):
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
        "originalUriBaseIds": {ROOT: {"description": {"text": "The folder in which the audits were run."}}},
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "results": [
            _result(item, ids)
            for item in audits
            if item.level in (Level.UNCONFIRMED, Level.FINDING, Level.REGRESSED, Level.ACCEPTED)
        ],
        "properties": {
            "outcome": headline(record),
            "rootSeed": record.root_seed,
            "revision": printable(record.revision),
            **({"selfReported": own} if (own := self_reported(record)) else {}),
            **({"manyAudits": printable(many)} if (many := crowded(record)) else {}),
        },
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1, ensure_ascii=False) + "\n"


def rule_of(item: Judged) -> str:
    """Return the id, in ``RULES``, of what is found."""
    result = item.result
    if item.level is Level.UNCONFIRMED:
        return "unconfirmed"
    if item.level is Level.REGRESSED or result is None:
        return "weaker"
    if result.verdict in DECLARABLE.values() and DECLARABLE.get(result.expected) is not result.verdict:
        return "violated" if result.verdict is Verdict.VIOLATED else "miscalibrated"
    return "missed" if result.is_finding and not result.surviving_controls else "toothless"


def _result(item: Judged, ids: Sequence[str]) -> dict[str, Any]:
    result, rule = item.result, rule_of(item)
    found: dict[str, Any] = {
        "ruleId": f"auditdp/{rule}",
        "ruleIndex": ids.index(rule),
        "level": "warning" if item.level is Level.REGRESSED else "error",
        "message": {"text": text_of(message(item))},
        "locations": [_location(place(result), item.audit)],
        "partialFingerprints": {"auditId/v1": hashlib.sha256(f"{rule} {item.audit}".encode()).hexdigest()},
    }
    if result is not None:
        around = {"the mechanism": result.mechanism_at, "the audit": result.audit_at}
        related = [(text, where) for text, where in around.items() if where not in (None, place(result))]
        if related:
            found["relatedLocations"] = [
                _location(where, item.audit) | {"message": {"text": text}} for text, where in related
            ]
    if item.level is Level.ACCEPTED:
        found["suppressions"] = [{"kind": "external", "justification": printable(" ".join(item.reasons))}]
    if result is not None:
        found["properties"] = _properties(result)
    return found


def message(item: Judged) -> str:
    """Return what a person has to know of a finding: the reasons, the pair, and the command that shows it again."""
    result = item.result
    why = reasons(result) if item.level is Level.ACCEPTED and result is not None else item.reasons
    parts = [f"{item.audit}: {' '.join(why)}"]
    if result is not None and item.level is not Level.REGRESSED:
        if result.claim is not None:
            parts.append(f"Claim: {result.claim.text} ({result.claim.adjacency}).")
        parts += [sentence] if (sentence := guessing(result)) else []
        parts += ["Self-reported: the verdict rests on what code of the audit computed."] * result.is_self_reported
        parts += [f"Read off the code: {sentence}." for sentence in said(result)]
        if result.counterexample is not None:
            found = result.counterexample
            pair = f"Pair, as Python:\n{found.python}\n" if found.python else f"Pair: {found.pair}. "
            parts.append(f"{pair}{found.explanation}")
        if command := shell(result.reproduce):
            parts.append(f"Reproduce: {command}")
    return "\n".join(parts)


def _properties(result: AuditResult) -> dict[str, Any]:
    bounds = {"epsilonLower": (result.epsilon_lower, False), "epsilonUpper": (result.epsilon_upper, True)}
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
    file, line = (where.file, where.line) if where is not None else (audit.partition("::")[0], 1)
    artifact: dict[str, Any] = {"uri": quote(file), **({} if file.startswith("/") else {"uriBaseId": ROOT})}
    return {
        "physicalLocation": {"artifactLocation": artifact, "region": {"startLine": line}},
        "logicalLocations": [{"fullyQualifiedName": printable(audit), "kind": "function"}],
    }


def _notification(item: Judged) -> dict[str, Any]:
    return {
        "level": LEVELS[item.level],
        "message": {"text": text_of(f"{item.audit}: {' '.join(item.reasons)}")},
        "locations": [_location(place(item.result), item.audit)],
    }
