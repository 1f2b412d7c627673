"""Every report takes its counts from one place, and no headline counts more as proved than was proved."""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from auditdp.history.baseline.differences import Difference, Kind
from auditdp.record.results import AuditResult, ClaimRecord, Evidence, RunRecord, Verdict
from auditdp.report.formats import render
from auditdp.report.html.pages import pages
from auditdp.report.standing import Standing, headline, outcomes

CLAIM = ClaimRecord("PureDP", "1-DP", "value LDP", epsilon=1.0)
ENDED = [
    (Verdict.VIOLATED, "violation", 3),
    (Verdict.MISCALIBRATED, "miscalibration", 2),
    (Verdict.CERTIFIED, "holds", 5),
    (Verdict.EQUIVALENT, "holds", 4),
    (Verdict.NOT_REFUTED, "holds", 1),
]
KNOWN = "3 claims refuted, as declared; 2 calibrations refuted, as declared; 5 proved; 4 equivalent on the inputs that were "
KNOWN += "tried; 1 not refuted"


def ended(verdict, expected="holds", name="one"):
    return AuditResult(
        f"audits/audit_a.py::{name}",
        verdict,
        f"it ended {verdict}",
        expected=expected,
        description="Adding half of the noise is 1-DP.",
        claim=CLAIM,
        evidence=[Evidence("game", verdict, "…")],
    )


def run(*results):
    return RunRecord(1, "complete", {}, {}, "", "", [], list(results))


@pytest.fixture
def clean():
    """A run of each verdict, in which everything is as declared."""
    return run(*(ended(v, e, f"{v}_{k}") for v, e, many in ENDED for k in range(many)))


def test_what_is_refuted_proved_or_only_tried_is_counted_apart(clean):
    assert headline(clean) == f"0 findings in 15 audits; {KNOWN}"
    assert sum(outcomes(clean).values()) == len(clean.results)
    assert next(iter(outcomes(clean))) is Standing.FINDING
    worse = run(*clean.results, ended(Verdict.VIOLATED))
    assert headline(worse) == f"1 finding in 16 audits; {KNOWN}"
    assert headline(worse, "1 accepted finding", findings=0, new="new ").startswith(
        "0 new findings in 16 audits; 1 accepted finding; 3 claims refuted, as declared; "
    )
    assert headline(run(ended(Verdict.SKIPPED))) == "Nothing was audited; 1 skipped"


def test_every_report_has_the_same_counts(clean):
    line = headline(clean)
    assert f"<h1>{line}</h1>" in render(clean, "html")
    assert f"### Privacy audits: {line}\n" in render(clean, "pull-request")
    assert json.loads(render(clean, "sarif"))["runs"][0]["properties"]["outcome"] == line
    properties = ElementTree.fromstring(render(clean, "junit")).iter("property")
    assert {each.get("name"): each.get("value") for each in properties}["outcome"] == line
    for width in (60, 120):
        shown = " ".join(render(clean, "terminal", width=width).split())
        assert KNOWN.replace("; ", " ") in shown
        assert "0 findings" in shown


def test_a_finding_that_is_accepted_is_no_new_one():
    found = ended(Verdict.VIOLATED)
    known = [Difference(found.id, Kind.ACCEPTED, "see 12", found)]
    text = render(run(found), "pull-request", differences=known)
    assert "### Privacy audits: 0 new findings in 1 audit; 1 accepted finding\n" in text


@pytest.mark.parametrize(
    ("verdict", "expected", "title"),
    [
        (Verdict.VIOLATED, "violation", "Refuted: "),
        (Verdict.VIOLATED, "holds", "Refuted: "),
        (Verdict.MISCALIBRATED, "miscalibration", "Calibration refuted: "),
        (Verdict.CERTIFIED, "holds", ""),
        (Verdict.NOT_REFUTED, "holds", ""),
    ],
)
def test_a_false_claim_is_no_title(verdict, expected, title):
    result = ended(verdict, expected)
    made = pages(run(result), index="index.html", folder="pages")
    (page,) = (text for name, text in made.items() if name.endswith(".html") and name != "index.html")
    assert f"<h1>{title}Adding half of the noise is 1-DP.</h1>" in page
    whole = render(run(replace(result)), "html")
    assert f'<p class="title">{title}Adding half of the noise is 1-DP.</p>' in whole
