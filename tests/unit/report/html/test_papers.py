from dataclasses import replace

import pytest

from auditdp.record.results import Verdict
from auditdp.report.html.pages import (
    NO_PAPER,
    AuditView,
    asked_otherwise,
    by_paper,
    changes,
    paper,
)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "Zhang et al. 2024 (DPAR), arXiv:2210.04442, Theorem 1; Kairouz, Oh & Viswanath 2015",
            "Zhang et al. 2024",
        ),
        (
            "a reading that the paper does not make: Xiao, Chen & Tan 2014 (privHRG)",
            "Xiao, Chen & Tan 2014",
        ),
        (
            "Opacus' GaussianAccountant, after the limit of many steps in Bu, Dong, Long & Su 2020",
            "Bu, Dong, Long & Su 2020",
        ),
        ("Dwork & Roth (2014), Theorem A.1", "Dwork & Roth 2014"),
        ("our privacy statement, section 2", NO_PAPER),
        ("", NO_PAPER),
    ],
)
def test_the_paper_of_a_source(source, expected):
    assert paper(source) == expected


def test_papers_come_in_the_order_of_the_record_and_those_of_none_last(record):
    groups = by_paper([AuditView(result, "") for result in record.results])
    assert next(iter(groups)) == "Hidano & Murakami 2022"
    assert list(groups)[-1] == NO_PAPER
    assert sorted(
        view.result.id for views in groups.values() for view in views
    ) == sorted(r.id for r in record.results)


def test_changes_are_verdicts_that_are_others_new_findings_first(record):
    assert changes(record, record) == []
    first, second, third, *rest = record.results
    now = replace(
        record,
        results=[
            replace(first, summary="other words"),
            replace(second, verdict=Verdict.VIOLATED),
            *rest,
        ],
        alpha_ledger=[],
    )
    found = changes(record, now)
    assert [(c.audit, c.then, c.now, c.finding) for c in found] == [
        (second.id, "NOT REFUTED", "VIOLATED", True),
        (third.id, "VIOLATED", "", False),
    ]
    back = changes(now, record)
    assert [(c.audit, c.then, c.now) for c in back] == [
        (third.id, "", "VIOLATED"),
        (second.id, "VIOLATED", "NOT REFUTED"),
    ]


def test_what_an_interrupted_run_did_not_come_to_is_no_change(record):
    planned = [entry.audit for entry in record.alpha_ledger]
    some = replace(record, results=[r for r in record.results if r.id not in planned])
    assert some.missing
    assert changes(record, some) == []


def test_what_was_asked_otherwise(record):
    assert asked_otherwise(record, record) == []
    other = replace(record, root_seed=7, arguments={"budget": "quick"}, revision="abc")
    assert asked_otherwise(record, other) == [
        "root seed “20240611” then and “7” now",
        "budget “standard” then and “quick” now",
        "revision “4f1c2d7e9b” then and “abc” now",
    ]
