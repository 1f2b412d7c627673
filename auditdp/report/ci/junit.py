"""A run as JUnit XML, which every CI service reads: one case per audit.

A finding is a FAILURE, and so is a claim that was refuted without being confirmed; an audit that crashed, or was planned
and has no result, is an ERROR, since nothing was found out;
an audit that is skipped, inconclusive or accepted counts as skipped, with the reason. The elements are those of the schema
that Jenkins publishes (junit-10.xsd).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from xml.etree import ElementTree

from auditdp.history.baseline.differences import Difference
from auditdp.record.results import RunRecord
from auditdp.report.ci.judged import Judged, Level, judged
from auditdp.report.standing import crowded, headline, self_reported
from auditdp.report.terminal import run as terminal
from auditdp.report.text import xml

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
    counts = {name: sum(OUTCOMES.get(item.level) == name for item in audits) for name in set(OUTCOMES.values())}
    totals = {
        "name": "auditdp",
        "tests": str(len(audits)),
        "failures": str(counts["failure"]),
        "errors": str(counts["error"]),
        "time": _seconds(record.seconds),
    }
    root = ElementTree.Element("testsuites", totals)
    suite = ElementTree.SubElement(root, "testsuite", totals | {"skipped": str(counts["skipped"])})
    with suppress(ValueError):  # what is no time is left out, as the schema asks
        suite.set("timestamp", datetime.fromisoformat(record.started).isoformat().removesuffix("+00:00"))
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
    case = ElementTree.Element("testcase", classname=xml(folder), name=xml(name or path))
    case.set("time", _seconds(item.result.seconds if item.result else 0.0))
    outcome = OUTCOMES.get(item.level)
    shown = xml(terminal.line(item.result)) if item.result is not None else ""
    if outcome is not None:
        kind = item.result.verdict.value if item.result is not None else item.level.value
        found = ElementTree.SubElement(case, outcome, type=kind, message=xml(" ".join(item.reasons)))
        found.text = shown if outcome != "skipped" else None
    elif shown:
        ElementTree.SubElement(case, "system-out").text = shown
    return case


def _seconds(value: float) -> str:
    return f"{max(float(value), 0.0):.3f}"
