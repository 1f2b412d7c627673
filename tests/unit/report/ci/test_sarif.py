from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from auditdp.record.differences import Difference, Kind
from auditdp.record.results import ControlResult, Place, Verdict
from auditdp.report.forge import commands
from auditdp.report.machine_readable import RULES, judged, rule_of, sarif

SCHEMA = json.loads(
    (Path(__file__).parent / "schemas" / "sarif-schema-2.1.0.json").read_text(
        encoding="utf-8"
    )
)


def validated(text):
    content = json.loads(text)
    jsonschema.Draft4Validator(SCHEMA).validate(content)
    (run,) = content["runs"]
    return run


def test_it_validates_against_the_published_schema(record, clean_record, large_record):
    for some in (
        record,
        clean_record,
        large_record,
        replace(record, results=[], started="2026-06-11T08:00:00+00:00"),
    ):
        validated(sarif(some))


def test_the_schema_refuses_what_is_none(record):
    with pytest.raises(jsonschema.ValidationError):
        validated(sarif(record).replace('"level": "error"', '"level": "loud"', 1))


def test_only_findings_are_results(record):
    run = validated(sarif(record))
    names = [
        result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"]
        for result in run["results"]
    ]
    assert len(names) == sum(result.is_finding for result in record.results)
    assert not run["invocations"][0]["executionSuccessful"]
    expected_text = [
        note["message"]["text"]
        for note in run["invocations"][0]["toolExecutionNotifications"]
    ]
    assert sum("dp_sgd" in text for text in expected_text) == 1  # which crashed
    assert (
        sum("lpgnn_ensemble" in text for text in expected_text) == 1
    )  # which was skipped


def test_a_finding_points_at_the_mechanism_and_names_the_audit(record, audit):
    result = replace(
        audit("feature_rr"),
        mechanism_at=Place("my package/features.py", 40),
        audit_at=Place("audits/audit_f.py", 7),
    )
    run = validated(sarif(replace(record, results=[result])))
    (found,) = run["results"]
    where = found["locations"][0]["physicalLocation"]
    assert where == {
        "artifactLocation": {"uri": "my%20package/features.py", "uriBaseId": "SRCROOT"},
        "region": {"startLine": 40},
    }
    assert found["relatedLocations"][0]["physicalLocation"]["region"] == {
        "startLine": 7
    }
    assert (
        run["tool"]["driver"]["rules"][found["ruleIndex"]]["id"]
        == found["ruleId"]
        == "auditdp/violated"
    )
    for part in (result.claim.text, "Pair: ", result.reproduce):
        assert part in found["message"]["text"]


def test_without_a_place_of_its_own_it_points_at_the_audits_file(record, audit):
    result = replace(audit("feature_rr"), mechanism_at=None, audit_at=None)
    (found,) = validated(sarif(replace(record, results=[result])))["results"]
    assert (
        found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        == "audits/audit_features.py"
    )


def test_a_fingerprint_stays_where_lines_and_numbers_move(record, audit):
    def fingerprint(result):
        return validated(sarif(replace(record, results=[result])))["results"][0][
            "partialFingerprints"
        ]

    one = audit("feature_rr")
    moved = replace(
        one,
        mechanism_at=Place("a.py", 99),
        epsilon_lower=2.0,
        calls=7,
        summary="otherwise",
    )
    assert fingerprint(one) == fingerprint(moved)
    assert fingerprint(one) != fingerprint(
        replace(one, id="audits/audit_features.py::another")
    )
    assert fingerprint(one) != fingerprint(replace(one, verdict=Verdict.MISCALIBRATED))


def test_every_kind_of_finding_has_its_rule(record, audit):
    one = audit("feature_rr")
    survived = [ControlResult("twin", Verdict.NOT_REFUTED)]
    for rule, result in {
        "violated": one,
        "miscalibrated": replace(one, verdict=Verdict.MISCALIBRATED),
        "missed": replace(one, verdict=Verdict.NOT_REFUTED, expected="violation"),
        "toothless": replace(one, verdict=Verdict.INCONCLUSIVE, controls=survived),
    }.items():
        (item,) = judged(replace(record, results=[result], alpha_ledger=[]))
        assert rule_of(item) == rule
    assert {"weaker", rule} < set(RULES)


def test_what_a_baseline_accepts_is_suppressed_and_what_is_weaker_is_a_warning(
    record, audit
):
    one, other = audit("feature_rr"), audit("gaussian")
    known = [
        Difference(one.id, Kind.ACCEPTED, "repaired in release 3", one),
        Difference(other.id, Kind.WEAKER, "control 'x' is no longer refuted", other),
        Difference(
            "audits/audit_old.py::gone", Kind.GONE, "there is no such audit any more"
        ),
    ]
    run = validated(sarif(replace(record, results=[one, other]), known))
    accepted, weaker, gone = run["results"]
    assert accepted["suppressions"] == [
        {"kind": "external", "justification": "repaired in release 3"}
    ]
    assert [found["ruleId"] for found in (weaker, gone)] == ["auditdp/weaker"] * 2
    assert [found["level"] for found in (accepted, weaker, gone)] == [
        "error",
        "warning",
        "warning",
    ]


def test_what_the_code_of_an_audit_computed_is_marked(record, audit):
    found = audit("feature_rr")
    own = replace(
        found, evidence=[replace(each, self_reported=True) for each in found.evidence]
    )
    mark = "Self-reported: the verdict rests on what code of the audit computed."
    run = validated(sarif(replace(record, results=[own], alpha_ledger=[])))
    assert mark in run["results"][0]["message"]["text"]
    assert run["properties"]["selfReported"].startswith(
        "1 verdict rests on evidence that code of its audit"
    )
    assert (
        mark
        in commands(replace(record, results=[own], alpha_ledger=[])).splitlines()[0]
    )
    plain = replace(record, results=[found], alpha_ledger=[])
    assert "elf-reported" not in sarif(plain) + commands(plain)
