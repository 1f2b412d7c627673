from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import xmlschema

from auditdp.record.differences import Difference, Kind
from auditdp.record.results import LedgerEntry, Verdict
from auditdp.report.machine_readable import junit

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
        SCHEMA.validate(
            junit(record)
            .replace("<failure", "<failed")
            .replace("</failure", "</failed")
        )


def test_an_error_is_no_failure(record):
    shown = list(ElementTree.fromstring(junit(record)).iter("testcase"))
    for result, case in zip(record.results, shown, strict=True):
        expected = "failure" if result.is_finding else None
        if result.verdict is Verdict.ERROR:
            expected = "error"
        elif (
            result.verdict in (Verdict.SKIPPED, Verdict.INCONCLUSIVE)
            and not result.is_finding
        ):
            expected = "skipped"
        assert [child.tag for child in case] == [expected or "system-out"], result.id


def test_totals_are_those_of_the_cases(record):
    suite = ElementTree.fromstring(junit(record)).find("testsuite")
    counts = {
        tag: sum(1 for _ in suite.iter(tag))
        for tag in ("testcase", "failure", "error", "skipped")
    }
    names = {
        "testcase": "tests",
        "failure": "failures",
        "error": "errors",
        "skipped": "skipped",
    }
    assert counts == {tag: int(suite.get(name)) for tag, name in names.items()}
    assert min(counts.values()) > 0


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
    known = [
        Difference(accepted.id, Kind.ACCEPTED, "repaired in release 3", accepted),
        Difference(
            "audits/audit_old.py::gone", Kind.GONE, "there is no such audit any more"
        ),
        Difference(
            "audits/audit_old.py::elsewhere",
            Kind.NOT_RUN,
            "the run was asked for other audits",
        ),
    ]
    text = junit(record, known)
    SCHEMA.validate(text)
    found = cases(text)
    (case,) = [case for name, case in found.items() if "feature_rr" in name]
    assert case.find("skipped").get("message") == "repaired in release 3"
    assert found["audits.audit_old::gone"].find("failure").get("type") == "regressed"
    assert "audits.audit_old::elsewhere" not in found


@pytest.mark.parametrize(
    "text", ["\x00\x1b[31m", "\ufffe\uffff", "\ud800", "]]>", "<a>&b;"]
)
def test_text_that_xml_cannot_hold_is_escaped(record, text):
    result = replace(
        record.results[0],
        id=f"audits/a.py::{text}",
        summary=text,
        verdict=Verdict.ERROR,
    )
    made = junit(replace(record, results=[result], revision=text))
    SCHEMA.validate(made.encode("utf-8").decode())


def test_what_a_small_budget_leaves_undecided_is_skipped_and_no_failure(record, audit):
    failing = replace(
        record, results=[audit("lap_graph")], alpha_ledger=[]
    )  # a control survived
    lacking = replace(
        record, results=[replace(audit("lap_graph"), lacking=18_000)], alpha_ledger=[]
    )
    (before,), (after,) = cases(junit(failing)).values(), cases(junit(lacking)).values()
    assert before.find("failure") is not None
    assert "leaves out 18,000 of the calls" in after.find("skipped").get("message")
