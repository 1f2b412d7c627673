import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import xmlschema

from auditdp.record.differences import Difference, Kind
from auditdp.record.results import LedgerEntry, Verdict
from auditdp.report.machine_readable import junit
from tests.unit.report.scenarios import only

SCHEMA = xmlschema.XMLSchema(Path(__file__).parent / "schemas" / "junit-10.xsd")


def cases(text):
    return {
        f"{case.get('classname')}::{case.get('name')}": case
        for case in ElementTree.fromstring(text).iter("testcase")
    }


def test_it_is_valid_and_has_one_case_for_each_audit(record):
    text = junit(record)
    SCHEMA.validate(text)
    assert len(cases(text)) == len(record.results)


def test_the_schema_refuses_what_is_none(record):
    with pytest.raises(xmlschema.XMLSchemaValidationError):
        SCHEMA.validate(re.sub("(</?)failure", r"\1failed", junit(record)))


def test_an_error_is_no_failure_and_totals_are_those_of_the_cases(record):
    suite = ElementTree.fromstring(junit(record)).find("testsuite")
    undecided = (Verdict.SKIPPED, Verdict.INCONCLUSIVE)
    counts = Counter()
    for result, case in zip(record.results, suite.iter("testcase"), strict=True):
        expected = "system-out"
        if result.is_finding:
            expected = "failure"
        elif result.verdict is Verdict.ERROR:
            expected = "error"
        elif result.verdict in undecided:
            expected = "skipped"
        assert [child.tag for child in case] == [expected], result.id
        counts[expected] += 1
    totals = {"failure": "failures", "error": "errors", "skipped": "skipped"}
    for tag, name in totals.items():
        assert int(suite.get(name)) == counts[tag] > 0
    assert int(suite.get("tests")) == counts.total()


def test_a_planned_audit_without_a_result_is_an_error(clean_record):
    ledger = [
        *clean_record.alpha_ledger,
        LedgerEntry("audits/audit_a.py::never", "", 0.01),
    ]
    text = junit(replace(clean_record, alpha_ledger=ledger, status="interrupted"))
    SCHEMA.validate(text)
    assert cases(text)["audits.audit_a::never"].find("error") is not None


def test_what_a_baseline_accepts_is_skipped_with_the_reason_and_what_is_gone_fails(
    record, audit
):
    accepted = audit("feature_rr")
    old = "audits/audit_old.py"
    known = [
        Difference(accepted.id, Kind.ACCEPTED, "repaired in release 3", accepted),
        Difference(f"{old}::gone", Kind.GONE, "there is no such audit any more"),
        Difference(f"{old}::elsewhere", Kind.NOT_RUN, "other audits"),
    ]
    text = junit(record, known)
    SCHEMA.validate(text)
    found = cases(text)
    (case,) = [case for name, case in found.items() if "feature_rr" in name]
    assert case.find("skipped").get("message") == "repaired in release 3"
    gone = found["audits.audit_old::gone"].find("failure")
    assert gone.get("type") == "regressed"
    assert "audits.audit_old::elsewhere" not in found


def test_what_a_small_budget_leaves_undecided_is_skipped_and_no_failure(audit):
    survived = audit("lap_graph")
    (before,) = cases(junit(only(survived))).values()
    (after,) = cases(junit(only(replace(survived, lacking=18_000)))).values()
    assert before.find("failure") is not None
    assert "leaves out 18,000 of the calls" in after.find("skipped").get("message")
