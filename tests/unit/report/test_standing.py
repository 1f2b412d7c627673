"""Every report takes its counts from one place, and no headline counts more as proved than was proved."""

import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from auditdp.record.differences import Difference, Kind
from auditdp.record.results import RunRecord, Verdict
from auditdp.report.attestation import statement
from auditdp.report.formats import render
from auditdp.report.html.pages import pages
from auditdp.report.sentences import Standing, headline, mutation_score, outcomes
from tests.unit.report.scenarios import (
    MUTATION,
    as_declared,
    ended,
    mutated,
    plain,
    unconfirmed,
)

KNOWN = (
    "3 claims refuted, as declared; 2 calibrations refuted, as declared; 5 proved; "
    "4 equivalent on the tested inputs; 1 not refuted"
)


def test_what_is_refuted_proved_or_only_tried_is_counted_apart():
    clean = as_declared()
    assert headline(clean) == f"0 findings in 15 audits; {KNOWN}"
    assert sum(outcomes(clean).values()) == len(clean.results)
    assert next(iter(outcomes(clean))) is Standing.FINDING
    worse = plain(*clean.results, ended(Verdict.VIOLATED))
    assert headline(worse) == f"1 finding in 16 audits; {KNOWN}"
    accepted = headline(worse, "1 accepted finding", findings=0, new="new ")
    start = "0 new findings in 16 audits; 1 accepted finding; 3 claims refuted, "
    assert accepted.startswith(start)
    skipped = plain(ended(Verdict.SKIPPED))
    assert headline(skipped) == "Nothing was audited; 1 skipped"


@pytest.mark.parametrize("made", [as_declared, unconfirmed])
def test_every_report_has_the_same_counts(made):
    record = made()
    line = headline(record)
    assert f"<h1>{line}</h1>" in render(record, "html")
    assert f"### Privacy audits: {line}\n" in render(record, "pull-request")
    (run,) = json.loads(render(record, "sarif"))["runs"]
    assert run["properties"]["outcome"] == line
    properties = ElementTree.fromstring(render(record, "junit")).iter("property")
    values = {each.get("name"): each.get("value") for each in properties}
    assert values["outcome"] == line
    for width in (60, 120):
        text = " ".join(render(record, "terminal", width=width).split())
        assert KNOWN.replace("; ", " ") in text
        assert "0 findings" in text


def test_a_finding_that_is_accepted_is_no_new_one():
    found = ended(Verdict.VIOLATED)
    known = [Difference(found.id, Kind.ACCEPTED, "see 12", found)]
    text = render(plain(found), "pull-request", differences=known)
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
    record = plain(ended(verdict, expected))
    title += "Adding half of the noise is 1-DP."
    made = "".join(pages(record, index="index.html", folder="pages").values())
    assert f"<h1>{title}</h1>" in made
    assert f'<p class="title">{title}</p>' in render(record, "html")


def test_a_refutation_that_was_not_confirmed_comes_first_in_every_report():
    record = unconfirmed()
    start = "1 claim refuted, not confirmed; 0 findings in 16 audits"
    assert headline(record) == f"{start}; {KNOWN}"
    assert next(iter(outcomes(record))) is Standing.UNCONFIRMED
    for name in ("terminal", "html", "pull-request", "junit", "sarif", "github"):
        text = render(record, name)
        assert "A clean run means" not in text.partition('id="meaning"')[0], name
        assert all(value in text for value in ("318", "0.962", "53.6")), name
        if name in ("terminal", "pull-request", "github"):
            assert text.count("318") == 1, name
    page = render(record, "html")
    assert page.index('id="finding-1"') < page.index('id="verdicts"')
    suite = ElementTree.fromstring(render(record, "junit"))
    assert (suite.get("failures"), suite.get("errors")) == ("1", "0")
    (found,) = json.loads(render(record, "sarif"))["runs"][0]["results"]
    assert found["ruleId"] == "auditdp/unconfirmed"
    assert statement(record, "run.json", "0")["predicate"]["result"] == "FAILED"
    again = replace(record.results[-1], id="audits/audit_a.py::again")
    two = headline(plain(*record.results, again))
    assert two.startswith("2 claims refuted, not confirmed; 0 findings")


def test_the_mutation_score_in_words():
    score = "2 of 3 killed (1 equivalent, 1 invalid)"
    assert mutation_score(MUTATION) == score
    both = mutation_score(MUTATION, replace(MUTATION, mutants=MUTATION.mutants[:1]))
    assert both.startswith("3 of 4 killed (")
    assert mutation_score(replace(MUTATION, mutants=[])) == "0 of 0 killed"
    for name in ("html", "terminal"):
        assert "utant" not in render(plain(ended(Verdict.NOT_REFUTED)), name)


def test_an_older_record_with_mutants_of_the_source_is_read():
    """It names the functions that were not mutated, and has an id for each mutant."""
    before = mutated()
    older = json.loads(before.to_json())
    mutation = older["results"][0]["mutation"]
    mutation["unread"] = ["f"]
    mutation["mutants"] = [mutant | {"id": "_1 + _2"} for mutant in mutation["mutants"]]
    assert RunRecord.from_plain(older) == before
