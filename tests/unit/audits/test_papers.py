"""The statements of the papers: complete, consistent with the audits, with tests that exist."""

import ast
import json
from functools import cache
from pathlib import Path

import pytest

from auditdp.auditing.decorator import collect
from auditdp.record.results import Verdict
from auditdp.report.plain_text import markdown
from audits.ledger.entries import FALSE, Outcome
from audits.ledger.statements import Fault, Kind, check
from audits.papers import NEWER, PAPERS

ROOT = Path(__file__).resolve().parents[3]
STATEMENTS = [(paper, statement) for paper in PAPERS for statement in paper.statements]
NAMED = [(audit, paper, one) for paper, one in STATEMENTS for audit in one.audits]


@pytest.fixture(scope="module")
def declared():
    """Every audit by its id."""
    found = {}
    for path in sorted((ROOT / "audits").glob("audit_*.py")):
        found |= {each.id: each for each in collect(path, ROOT)}
    return found


@cache
def functions(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def is_settled_as_false(statement):
    settled = statement.settled
    return settled is not None and settled.verdict is Verdict.VIOLATED


def test_no_key_and_no_audit_stands_twice():
    check(PAPERS)


def test_statements_name_audits_that_are_listed_and_prove_none_that_is_false(declared):
    for audit, _, statement in NAMED:
        assert declared[audit].row, audit
        assert not statement.proof or declared[audit].expect == "holds", audit


def test_every_listed_audit_belongs_to_a_statement_or_repairs_one(declared):
    named = {audit for audit, *_ in NAMED}
    for audit, each in declared.items():
        if each.row and audit not in named:
            assert each.repairs, audit
        if each.repairs and audit not in named:
            assert f"{audit.partition('::')[0]}::{each.repairs}" in named


def test_false_claims_state_the_inputs_the_setting_and_a_claim_that_holds(declared):
    """Inputs are those of its audits that print a pair, or its own."""
    for paper, statement in STATEMENTS:
        false = [a for a in statement.audits if declared[a].expect != "holds"]
        settled = is_settled_as_false(statement)
        published = statement.kind is Kind.PUBLISHED
        if false or settled:
            assert statement.instead, statement.key
            if published and statement.audits:
                assert statement.setting, statement.key
        else:
            kept = Fault.READ if statement.unaudited else Fault.RESULT
            assert statement.fault in (Fault.RESULT, kept), statement.key
        accounted = false and all("accounting" in audit for audit in false)
        if paper.answers and published and (settled or accounted):
            assert statement.inputs, statement.key


def test_every_parameter_of_an_audit_has_a_meaning(declared):
    for audit, paper, statement in NAMED:
        for name in declared[audit].parameters:
            assert paper.meaning(statement, name) is not None, (audit, name)


def test_sizes_that_a_card_calls_smallest_are_tried_in_ascending_order(
    declared,
):
    for audit, paper, statement in NAMED:
        each = declared[audit]
        if each.expect == "holds":
            continue
        known = {name: paper.meaning(statement, name) for name in each.parameters}
        ascending = {name for name, meaning in known.items() if meaning.ascending}
        assert ascending <= set(each.smallest), audit


def test_the_verdict_is_not_part_of_the_claim():
    for _, statement in STATEMENTS:
        words = statement.claim.rstrip(".").split()
        assert not {"True", "False", "True.", "False."} & set(words), statement.key
        assert len(statement.title) <= 60
        if statement.audits and "privacy" in statement.claim:
            assert statement.adjacency, statement.key


def test_tests_that_settle_a_statement_exist():
    for _, statement in STATEMENTS:
        if statement.settled is not None:
            path, _, name = statement.settled.test.partition("::")
            assert name in functions(path), statement.settled.test
            open_ = statement.settled.verdict is Verdict.INCONCLUSIVE
            assert bool(statement.question) == open_, statement.key


def test_descriptions_of_listed_audits_hold_no_verdict(declared):
    for audit, each in declared.items():
        summary = each.description.partition("\n\n")[0].rstrip()
        assert not (each.row and summary.endswith((" True.", " False."))), audit


def test_reviews_of_code_have_titles_that_state_it():
    for paper in PAPERS:
        named = "Code review" in paper.title
        assert named == (paper in NEWER)
        assert not named or paper.title.startswith("Code review of ")


def test_the_letters_state_the_findings_of_the_ledger():
    """As committed: the refuted statements in the ledger's words, and no others."""
    stored = json.loads((ROOT / "reports/claims.json").read_text())["papers"]
    ledger = {paper["key"]: paper["statements"] for paper in stored}
    letters = sorted((ROOT / "reports/letters").glob("*.md"))
    answered = [paper.key for paper in PAPERS if paper.answers and paper not in NEWER]
    assert [path.stem for path in letters] == sorted(answered)
    for path in letters:
        text = path.read_text(encoding="utf-8")
        assert len(text.split()) < 4600
        for statement in ledger[path.stem]:
            if statement["kind"] != Kind.PUBLISHED:
                continue
            false = statement["verdict"] in FALSE
            title = f"**{markdown(statement['title'])}**"
            found = statement["verdict"] in {*FALSE} - {Outcome.SLIP}
            assert (title in text) == found, statement["key"]
            if false:
                assert markdown(statement["headline"]) in text, statement["key"]
