import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from auditdp.record.differences import Difference, Kind
from auditdp.record.results import ControlResult, Place, Verdict
from auditdp.report import machine_readable
from auditdp.report.forge import commands
from auditdp.report.machine_readable import RULES, judged, rule_of, sarif
from tests.unit.report.scenarios import only

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
    started = replace(record, results=[], started="2026-06-11T08:00:00+00:00")
    for some in (record, clean_record, large_record, started):
        validated(sarif(some))


def test_a_remark_is_a_property_in_camel_case(record, monkeypatch):
    labels = {"one": "a", "two-part label": "b"}
    monkeypatch.setattr(machine_readable, "remarks", lambda run: labels)
    properties = validated(sarif(record))["properties"]
    assert (properties["one"], properties["twoPartLabel"]) == ("a", "b")


def test_the_schema_refuses_what_is_none(record):
    with pytest.raises(jsonschema.ValidationError):
        validated(sarif(record).replace('"level": "error"', '"level": "loud"', 1))


def test_only_findings_are_results(record):
    run = validated(sarif(record))
    findings = [result for result in record.results if result.is_finding]
    assert len(run["results"]) == len(findings)
    (invocation,) = run["invocations"]
    assert not invocation["executionSuccessful"]
    notes = invocation["toolExecutionNotifications"]
    texts = [note["message"]["text"] for note in notes]
    for name in ("dp_sgd", "lpgnn_ensemble"):  # which crashed, and was skipped
        assert sum(name in text for text in texts) == 1


def test_a_finding_points_at_the_mechanism_and_names_the_audit(audit):
    result = replace(
        audit("feature_rr"),
        mechanism_at=Place("my package/features.py", 40),
        audit_at=Place("audits/audit_f.py", 7),
    )
    run = validated(sarif(only(result)))
    (found,) = run["results"]
    where, related = (
        found[name][0]["physicalLocation"] for name in ("locations", "relatedLocations")
    )
    file = {"uri": "my%20package/features.py", "uriBaseId": "SRCROOT"}
    assert where == {"artifactLocation": file, "region": {"startLine": 40}}
    assert related["region"] == {"startLine": 7}
    rule = run["tool"]["driver"]["rules"][found["ruleIndex"]]
    assert rule["id"] == found["ruleId"] == "auditdp/violated"
    for part in (result.claim.text, "Pair: ", result.reproduce):
        assert part in found["message"]["text"]


def test_without_a_place_of_its_own_it_points_at_the_audits_file(audit):
    result = replace(audit("feature_rr"), mechanism_at=None, audit_at=None)
    (found,) = validated(sarif(only(result)))["results"]
    file = found["locations"][0]["physicalLocation"]["artifactLocation"]
    assert file["uri"] == "audits/audit_features.py"


def test_a_fingerprint_stays_where_lines_and_numbers_move(audit):
    def fingerprint(**changes):
        run = validated(sarif(only(replace(audit("feature_rr"), **changes))))
        return run["results"][0]["partialFingerprints"]

    one = fingerprint()
    at = Place("a.py", 99)
    moved = fingerprint(mechanism_at=at, epsilon_lower=2.0, calls=7, summary="x")
    assert one == moved
    assert one != fingerprint(id="audits/audit_features.py::another")
    assert one != fingerprint(verdict=Verdict.MISCALIBRATED)


def test_every_kind_of_finding_has_its_rule(audit):
    one = audit("feature_rr")
    survived = [ControlResult("twin", Verdict.NOT_REFUTED)]
    for rule, result in {
        "violated": one,
        "miscalibrated": replace(one, verdict=Verdict.MISCALIBRATED),
        "missed": replace(one, verdict=Verdict.NOT_REFUTED, expected="violation"),
        "toothless": replace(one, verdict=Verdict.INCONCLUSIVE, controls=survived),
    }.items():
        (item,) = judged(only(result))
        assert rule_of(item) == rule
    assert {"weaker", rule} < set(RULES)


def test_what_a_baseline_accepts_is_suppressed_and_what_is_weaker_is_a_warning(audit):
    one, other = audit("feature_rr"), audit("gaussian")
    known = [
        Difference(one.id, Kind.ACCEPTED, "repaired in release 3", one),
        Difference(other.id, Kind.WEAKER, "control 'x' is no longer refuted", other),
        Difference(
            "audits/audit_old.py::gone", Kind.GONE, "there is no such audit any more"
        ),
    ]
    run = validated(sarif(only(one, other), known))
    accepted, *worse = run["results"]
    (suppression,) = accepted["suppressions"]
    assert suppression["justification"] == "repaired in release 3"
    assert accepted["level"] == "error"
    for found in worse:
        assert (found["ruleId"], found["level"]) == ("auditdp/weaker", "warning")
    assert len(worse) == 2


def test_what_the_code_of_an_audit_computed_is_marked(audit):
    found = audit("feature_rr")
    evidence = [replace(each, self_reported=True) for each in found.evidence]
    own = only(replace(found, evidence=evidence))
    mark = "Self-reported: the verdict rests on numbers that the code of the audit computed."
    run = validated(sarif(own))
    assert mark in run["results"][0]["message"]["text"]
    stated = run["properties"]["selfReported"]
    assert stated.startswith("1 verdict rests on evidence that code of its audit")
    assert mark in commands(own).splitlines()[0]
    assert "elf-reported" not in sarif(only(found)) + commands(only(found))
