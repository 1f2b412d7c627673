"""Every report takes its counts from one place, and no headline counts more as proved than was proved."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from auditdp.record.details import Confirmation, GameDetails
from auditdp.record.differences import Difference, Kind
from auditdp.record.results import (
    AuditResult,
    ClaimRecord,
    Evidence,
    RunRecord,
    Verdict,
)
from auditdp.report.attestation import statement
from auditdp.report.formats import render
from auditdp.report.html.pages import pages
from auditdp.report.sentences import Standing, headline, outcomes, run_meaning

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
    assert (
        json.loads(render(clean, "sarif"))["runs"][0]["properties"]["outcome"] == line
    )
    properties = ElementTree.fromstring(render(clean, "junit")).iter("property")
    assert {each.get("name"): each.get("value") for each in properties}[
        "outcome"
    ] == line
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
    (page,) = (
        text
        for name, text in made.items()
        if name.endswith(".html") and name != "index.html"
    )
    assert f"<h1>{title}Adding half of the noise is 1-DP.</h1>" in page
    whole = render(run(replace(result)), "html")
    assert f'<p class="title">{title}Adding half of the noise is 1-DP.</p>' in whole


@pytest.fixture
def unconfirmed(clean):
    """A clean run and, last in it, a refutation that was not confirmed, by calls of one output or of several."""
    fresh = {"pair": "0 | 1", "calls": 81, "alpha": 0.025}
    game = GameDetails(
        threshold=math.log(20),
        refuted_at=92,
        confirmation=Confirmation(
            log_e_value=math.log(0.962), confirmed=False, **fresh
        ),
        together=Confirmation(log_e_value=math.log(53.6), confirmed=True, **fresh),
    )
    statement = "bets had multiplied their stake by 318; fresh calls, made one by one, "
    statement += "did not confirm it (e-value 0.962), and of several outputs did (53.6)"
    dropped = Evidence(
        "game",
        Verdict.INCONCLUSIVE,
        statement,
        log_e_value=math.log(318),
        details=game,
        unconfirmed=True,
    )
    return run(
        *clean.results,
        replace(
            ended(Verdict.INCONCLUSIVE, name="hidden"),
            evidence=[dropped],
            summary=statement,
        ),
    )


def test_a_refutation_that_was_not_confirmed_comes_first_in_every_report(unconfirmed):
    line = f"1 claim refuted, not confirmed; 0 findings in 16 audits; {KNOWN}"
    assert headline(unconfirmed) == line
    assert next(iter(outcomes(unconfirmed))) is Standing.UNCONFIRMED
    shown = {
        name: render(unconfirmed, name)
        for name in ("terminal", "html", "pull-request", "junit", "sarif", "github")
    }
    for name, text in shown.items():
        assert "A clean run means" not in text.partition('id="meaning"')[0], name
        assert all(value in text for value in ("318", "0.962", "53.6")), name
    for name in ("terminal", "pull-request", "github"):
        assert shown[name].count("318") == 1, name
    assert f"<h1>{line}</h1>" in shown["html"]
    assert shown["html"].index('id="finding-1"') < shown["html"].index('id="verdicts"')
    assert f"### Privacy audits: {line}\n" in shown["pull-request"]
    assert shown["github"].startswith("::error ")
    suite = ElementTree.fromstring(shown["junit"])
    assert (suite.get("failures"), suite.get("errors")) == ("1", "0")
    (found,) = json.loads(shown["sarif"])["runs"][0]["results"]
    assert found["ruleId"] == "auditdp/unconfirmed"
    assert statement(unconfirmed, "run.json", "0")["predicate"]["result"] == "FAILED"
    assert run_meaning(unconfirmed).startswith(
        "This is not a clean run: 1 claim was refuted"
    )


def test_two_refutations_that_were_not_confirmed_are_both_counted(unconfirmed):
    again = replace(unconfirmed.results[-1], id="audits/audit_a.py::again")
    assert headline(run(*unconfirmed.results, again)).startswith(
        "2 claims refuted, not confirmed; 0 findings"
    )
