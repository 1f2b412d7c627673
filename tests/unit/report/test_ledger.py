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


def test_a_repair_of_an_audit_that_did_not_run_has_a_line_of_its_own(published):
    record, violated, certified, _ = published
    rest = replace(record, results=[r for r in record.results if r.id != violated.id])
    assert [line.audit for line in ledger(rest)["the mechanism"]] == [certified.id]


def test_a_claim_that_is_not_decided_says_what_would_decide_it(published):
    (line,) = ledger(published[0])["another | mechanism"]
    assert line.undecided.startswith("would have refuted ε = ")
    assert line.undecided.endswith("what would decide it: a proof of the sensitivity")


def test_every_format_has_a_line_per_claim(published, record):
    listed, violated, *_ = published
    text = render(listed, "claims")
    lines = [line for line in text.splitlines() if line.startswith("| as ")]
    assert [line.replace("\\|", "").count("|") for line in lines] == [8, 8]
    stored = json.loads(render(listed, "claims-json"))
    assert stored["root_seed"] == listed.root_seed
    (claim,) = (each for each in stored["claims"] if each["audit"] == violated.id)
    assert claim["verdict"] == "VIOLATED"
    assert claim["repairs"][0]["cost"] == "4 times the variance"
    assert "Claims ledger" not in render(replace(record, results=[]), "html")
