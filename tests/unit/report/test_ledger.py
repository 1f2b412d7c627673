"""The ledger of published claims: a line per claim, repairs in the line of what they repair."""

import json
from dataclasses import replace

from auditdp.record.results import Published, Verdict
from auditdp.report.formats import render
from auditdp.report.ledger import ledger


def test_a_repair_stands_in_the_line_of_the_claim_that_it_repairs(published):
    record, violated, certified, clean = published
    rows = ledger(record)
    assert {row: [line.audit for line in lines] for row, lines in rows.items()} == {
        "the mechanism": [violated.id],
        "another | mechanism": [clean.id],
    }
    (line,) = rows["the mechanism"]
    (repair,) = line.repairs
    assert (line.verdict, repair.verdict) == (Verdict.VIOLATED, Verdict.CERTIFIED)
    assert repair.cost == "4 times the variance"
    assert repair.reproduce == certified.reproduce
    assert "\n" not in line.counterexample
    assert line.counterexample.startswith(
        " ".join(violated.counterexample.pair.split())
    )


def test_a_repair_that_is_a_published_claim_of_another_row_has_its_own_line_too(
    published,
):
    record, violated, certified, _ = published
    other = Published("a third mechanism", "as stated", violated.id)
    results = [
        replace(r, published=other) if r.id == certified.id else r
        for r in record.results
    ]
    rows = ledger(replace(record, results=results))
    assert [line.audit for line in rows["a third mechanism"]] == [certified.id]
    assert len(rows["the mechanism"][0].repairs) == 1


def test_a_claim_that_is_not_decided_says_what_would_decide_it(published):
    record, *_ = published
    (line,) = ledger(record)["another | mechanism"]
    assert line.undecided.startswith("would have refuted ε = ")
    assert line.undecided.endswith("what would decide it: a proof of the sensitivity")


def test_a_repair_of_an_audit_that_did_not_run_has_a_line_of_its_own(published):
    record, violated, certified, _ = published
    rest = replace(record, results=[r for r in record.results if r.id != violated.id])
    assert [line.audit for line in ledger(rest)["the mechanism"]] == [certified.id]


def test_markdown_has_one_table_line_per_claim(published):
    record, violated, *_ = published
    text = render(record, "claims")
    lines = [line for line in text.splitlines() if line.startswith("| as ")]
    assert len(lines) == 2
    assert "## another \\| mechanism" in text
    assert "2 claims: 1 VIOLATED, 1 NOT_REFUTED." in text
    assert violated.reproduce in text
    assert all(line.replace("\\|", "").count("|") == 8 for line in lines)


def test_json_has_the_same_lines(published):
    record, violated, *_ = published
    stored = json.loads(render(record, "claims-json"))
    assert stored["root_seed"] == record.root_seed
    by_audit = {claim["audit"]: claim for claim in stored["claims"]}
    assert by_audit[violated.id]["verdict"] == "VIOLATED"
    assert by_audit[violated.id]["repairs"][0]["cost"] == "4 times the variance"


def test_the_page_has_the_ledger_only_where_claims_are_listed(published, record):
    listed, *_ = published
    assert "Claims ledger" not in render(record, "html")
    page = render(listed, "html")
    assert "Claims ledger" in page
    assert "4 times the variance" in page
