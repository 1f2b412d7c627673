"""The statements of the papers.

Complete, consistent with the audits, and with tests that exist.
"""

import ast
import json
from functools import cache
from pathlib import Path

import pytest

from auditdp.auditing.decorator import collect
from auditdp.record.results import Verdict
from auditdp.report.plain_text import markdown
from audits.ledger.entries import FALSE
from audits.ledger.statements import Fault, Kind, check
from audits.papers import NEWER, PAPERS

ROOT = Path(__file__).resolve().parents[3]
STATEMENTS = [(paper, statement) for paper in PAPERS for statement in paper.statements]


@cache
def declared():
    """Every audit by its id."""
    return {
        d.id: d
        for path in sorted((ROOT / "audits").glob("audit_*.py"))
        for d in collect(path, ROOT)
    }


def test_no_key_and_no_audit_stands_twice():
    check(PAPERS)


def test_statements_name_audits_that_are_listed():
    wrong = [
        a
        for _, s in STATEMENTS
        for a in s.audits
        if a not in declared() or not declared()[a].row
    ]
    assert not wrong


def test_every_listed_audit_belongs_to_a_statement_or_repairs_one():
    named = {audit for _, statement in STATEMENTS for audit in statement.audits}
    repaired = {
        f"{audit.partition('::')[0]}::{d.repairs}"
        for audit, d in declared().items()
        if d.repairs and audit not in named
    }
    left = [
        audit
        for audit, d in declared().items()
        if d.row and audit not in named and not d.repairs
    ]
    assert not left
    assert repaired <= named


def test_what_is_declared_false_is_not_called_proved():
    wrong = [
        a
        for _, s in STATEMENTS
        for a in s.audits
        if s.proof and declared()[a].expect != "holds"
    ]
    assert not wrong


def test_false_claims_say_what_holds_instead_and_where():
    for _, statement in STATEMENTS:
        false = [a for a in statement.audits if declared()[a].expect != "holds"]
        settled = (
            statement.settled is not None
            and statement.settled.verdict is Verdict.VIOLATED
        )
        if false or settled:
            assert statement.instead, statement.key
        if (false or settled) and statement.kind is Kind.PUBLISHED and statement.audits:
            assert statement.setting, statement.key


def test_every_parameter_of_an_audit_has_a_meaning():
    missing = [
        (audit, name)
        for paper, statement in STATEMENTS
        for audit in statement.audits
        for name in declared()[audit].parameters
        if paper.meaning(statement, name) is None
    ]
    assert not missing


@pytest.mark.parametrize("statement", [s for _, s in STATEMENTS], ids=lambda s: s.key)
def test_the_verdict_is_not_part_of_the_claim(statement):
    words = statement.claim.rstrip(".").split()
    assert not {"True", "False", "True.", "False."} & set(words)
    assert len(statement.title) <= 60
    if statement.audits and "privacy" in statement.claim:
        assert statement.adjacency


def test_tests_that_settle_a_statement_exist():
    for _, statement in STATEMENTS:
        if statement.settled is not None:
            path, _, name = statement.settled.test.partition("::")
            functions = [
                n.name
                for n in ast.walk(ast.parse((ROOT / path).read_text()))
                if isinstance(n, ast.FunctionDef)
            ]
            assert name in functions, statement.settled.test


def test_descriptions_of_listed_audits_hold_no_verdict():
    wrong = [
        a
        for a, d in declared().items()
        if d.row
        and d.description.partition("\n\n")[0].rstrip().endswith((" True.", " False."))
    ]
    assert not wrong


def test_reviews_of_code_have_titles_that_state_it():
    assert all(paper.title.startswith("Code review of ") for paper in NEWER)
    assert not any(
        "Code review" in paper.title for paper in PAPERS if paper not in NEWER
    )


def test_a_false_published_statement_has_inputs_that_show_it():
    """Those of its audits that print a pair, or its own.

    What is called a slip or out of range is false.
    """
    for paper, statement in STATEMENTS:
        false = any(declared()[a].expect != "holds" for a in statement.audits)
        settled = (
            statement.settled is not None
            and statement.settled.verdict is Verdict.VIOLATED
        )
        accounted = all(
            "accounting" in a
            for a in statement.audits
            if declared()[a].expect != "holds"
        )
        if (
            paper.answers
            and statement.kind is Kind.PUBLISHED
            and (settled or (false and accounted))
        ):
            assert statement.inputs, statement.key
        if statement.fault is not Fault.RESULT:
            assert false or settled, statement.key


def test_the_letters_state_what_the_ledger_found():
    """As committed: what is refuted, out of range or a slip, in the ledger's words, and nothing else; a page each."""
    ledger = {
        paper["key"]: paper["statements"]
        for paper in json.loads((ROOT / "reports/claims.json").read_text())["papers"]
    }
    letters = sorted((ROOT / "reports/letters").glob("*.md"))
    assert [path.stem for path in letters] == sorted(
        p.key for p in PAPERS if p.answers and p not in NEWER
    )
    for path in letters:
        text = path.read_text(encoding="utf-8")
        assert len(text.split()) < 1000
        for statement in ledger[path.stem]:
            false = (
                statement["kind"] == Kind.PUBLISHED and statement["verdict"] in FALSE
            )
            assert (f"**{markdown(statement['title'])}**" in text) == false, statement[
                "key"
            ]
            if false:
                assert f"We find: {markdown(statement['headline'])}." in text, (
                    statement["key"]
                )
