"""The pages of the ledger: an overview, a page a paper, an answer to authors, and nothing that a text could break."""

import json
from dataclasses import replace

import pytest

from auditdp.errors import ConfigurationError
from auditdp.record.results import Counterexample, Published, Verdict
from auditdp.report.plain_text import markdown, markdown_code
from audits.ledger.entries import Outcome, entries, tally, without_statement
from audits.ledger.letters import letter
from audits.ledger.pages import (
    found_of,
    graphs,
    overview,
    page,
    to_json,
    two_inputs,
)
from audits.ledger.statements import Fault, Kind, Paper, Parameter, Settled, Statement

EVIL = "<b>x</b>|`y` \x1b[31m[a](http://b)\n# *z*"


def statement(key, *, audits=(), **more):
    """A statement with all that is required."""
    return Statement(
        **{
            "key": key,
            "title": key,
            "kind": Kind.PUBLISHED,
            "claim": "It is ε-DP.",
            "place": "Section 1",
            "audits": audits,
            **more,
        }
    )


def paper(*statements):
    return Paper(
        "p",
        "A paper",
        "Read.",
        statements,
        {"epsilon": Parameter("ε", "the budget", "1")},
    )


def test_a_proof_makes_a_certificate_or_a_clean_game_a_proved_statement_and_no_violation(
    published,
):
    record, violated, certified, clean = published
    found = entries(
        record,
        paper(
            statement("a", audits=(certified.id,)),
            statement("b", audits=(clean.id,), proof="by hand"),
            statement("c", audits=(violated.id,), proof="by hand"),
        ),
    )
    assert [e.outcome for e in found] == [
        Outcome.CERTIFIED,
        Outcome.PROVED,
        Outcome.VIOLATED,
    ]


def test_the_worst_audit_decides_and_a_missing_one_is_said(published):
    record, violated, certified, _ = published
    both, gone = entries(
        record,
        paper(
            statement("a", audits=(certified.id, violated.id)),
            statement("b", audits=("x::y",)),
        ),
    )
    assert (both.outcome, both.worst.audit) == (Outcome.VIOLATED, violated.id)
    assert (gone.outcome, gone.missing) == (Outcome.MISSING, ["x::y"])
    text = overview(record, [paper(gone.statement)])
    assert "**Partial: 1 audit of the lines below did not run.**" in text


def test_kinds_are_counted_apart(published):
    record, violated, certified, _ = published
    found = entries(
        record,
        paper(
            statement("a", audits=(violated.id,)),
            statement("b", audits=(certified.id,), kind=Kind.DERIVED),
            statement("c", unaudited="nobody could"),
        ),
    )
    assert tally(found) == {
        Kind.PUBLISHED: {Outcome.VIOLATED: 1, Outcome.UNAUDITED: 1},
        Kind.DERIVED: {Outcome.CERTIFIED: 1},
    }


def test_arithmetic_settles_a_statement(published):
    record, *_ = published
    false = Settled(Verdict.VIOLATED, "1 → 2", "because", "tests/x.py::test")
    text = page(record, paper(statement("a", settled=false, instead="2 holds.")))
    assert "VIOLATED" in text
    assert "1 → 2" in text
    assert "What holds instead" in text


def test_a_card_has_both_inputs_the_output_the_repair_and_the_command(published):
    record, violated, *_ = published
    shown = replace(
        violated,
        counterexample=Counterexample(
            "name: [0] | [1]", "probabilities .1 and .2", "[7]"
        ),
    )
    record = replace(
        record, results=[shown if r.id == violated.id else r for r in record.results]
    )
    record = replace(
        record,
        results=[
            replace(r, published=Published("row", "as deployed"))
            if r.id == violated.id
            else r
            for r in record.results
        ],
    )
    text = page(
        record,
        paper(
            statement(
                "a", audits=(violated.id,), instead="Less.", setting="worse there"
            )
        ),
    )
    for part in (
        "first input `[0]`, second input `[1]`",
        "output `[7]`",
        "4 times the variance",
        f"  - run it again: `{violated.reproduce}`",
    ):
        assert part in text
    assert "Dear authors of A paper," in text
    assert "What would change our mind" in text


def test_nobody_is_written_to_about_what_they_do_not_state(published):
    record, violated, *_ = published
    assert "Dear authors" not in page(
        record,
        paper(statement("a", audits=(violated.id,), kind=Kind.AMBIGUOUS, instead="x")),
    )


def test_the_overview_links_to_the_cards(published):
    record, violated, *_ = published
    one = paper(
        statement("a", audits=(violated.id,), instead="Less."),
        statement("b", unaudited="why not"),
    )
    text = overview(record, [one])
    assert "[a](claims/p.md#a)" in text
    assert '<a id="a"></a>' in page(record, one)
    assert "## A paper ([its page](claims/p.md), 1 more not audited)" in text
    assert "why not" in page(record, one)


def test_a_cell_of_the_overview_has_a_whole_text_or_a_link_to_the_card(published):
    record, violated, *_ = published
    short, long = "half of the noise keeps ε. " * 4, "half of the noise keeps ε. " * 5
    one = paper(
        statement("a", audits=(violated.id,), place=long, instead=short),
        statement(
            "b",
            settled=Settled(Verdict.VIOLATED, long, "because", "tests/x.py::test"),
            instead=long,
        ),
    )
    first, second = (
        row for row in overview(record, [one]).splitlines() if row.startswith("| [")
    )
    assert "| [on its card](claims/p.md#a) |" in first
    assert short.strip() in first
    assert second.count("[on its card](claims/p.md#b)") == 2
    assert "…" not in first + second


def test_what_an_output_shows_over_all_outputs_is_said_and_not_all_of_its_explanation(
    published,
):
    record, violated, *_ = published
    message = "This output has probability 1 on the first input and 0 on the second. Over all outputs ε = ∞ and δ(0.25) = 1"
    evidence = [
        replace(e, epsilon_lower=None, epsilon_upper=None) for e in violated.evidence
    ]
    changed = replace(
        violated,
        evidence=evidence,
        counterexample=Counterexample("[0] | [1]", message, "[7]"),
        published=Published("row"),
    )
    (entry,) = entries(
        replace(record, results=[changed]),
        paper(statement("a", audits=(violated.id,), instead="x")),
    )
    assert found_of(entry.worst).endswith("→ over all outputs ε = ∞ and δ(0.25) = 1")


def test_texts_are_shown_as_they_are(published):
    record, violated, *_ = published
    one = Paper(
        "p",
        EVIL,
        EVIL,
        [
            statement(
                "a",
                audits=(violated.id,),
                claim=EVIL,
                place=EVIL,
                instead=EVIL,
                setting=EVIL,
            )
        ],
    )
    for text in (overview(record, [one]), page(record, one)):
        assert "<b>" not in text
        assert "\x1b" not in text
        assert "http:/" not in text
    rows = [
        line
        for line in overview(record, [one]).splitlines()
        if line.startswith("| [a]")
    ]
    assert rows[0].replace("\\|", "").count("|") == 6


def test_cells_and_code_stay_on_one_line():
    assert (
        markdown(EVIL)
        == "&lt;b&gt;x&lt;/b&gt;\\|\\`y\\` \\\\x1b\\[31m\\[a\\](http:&#8203;//b) #&#8203; \\*z\\*"
    )
    assert markdown_code("a`\nb|") == "`` a` b| ``"
    assert markdown("- a") == "\\- a"


def test_graphs_are_drawn_and_nothing_else():
    lines = graphs("1 | 0 edges: 3 nodes, edges 01 12 | 3 nodes, no edges")
    assert graphs("3 nodes, edges 01 12 | 3 nodes, edges none") == lines
    assert [line.strip() for line in lines if "---" in line] == [
        "a0 --- a1",
        "a1 --- a2",
    ]
    assert graphs("[0] | [1]") == []


def test_inputs_that_cannot_be_told_apart_are_shown_together():
    assert two_inputs("a: 1 | 2") == ("a", "1", "2")
    assert two_inputs("no bar") == ("", "no bar", "")


def test_a_violation_is_rounded_down(published):
    record, violated, *_ = published
    evidence = [
        replace(e, epsilon_lower=1.31289, epsilon_upper=1.31289)
        for e in violated.evidence
    ]
    record = replace(
        record,
        results=[replace(violated, evidence=evidence, published=Published("row"))],
    )
    (entry,) = entries(
        record, paper(statement("a", audits=(violated.id,), instead="x"))
    )
    assert "1.312 ≤ ε" in found_of(entry.worst)


def test_json_keeps_statements_and_lines(published):
    record, violated, certified, clean = published
    stored = json.loads(
        to_json(record, [paper(statement("a", audits=(violated.id,), instead="x"))])
    )
    assert stored["schema"] == 2
    assert stored["papers"][0]["statements"][0]["verdict"] == "VIOLATED"
    lines = {line["audit"]: line for line in stored["claims"]}
    assert (lines[violated.id]["paper"], lines[violated.id]["statement_key"]) == (
        "p",
        "a",
    )
    assert set(lines) == {violated.id, certified.id, clean.id}
    assert stored["no_statement"] == [clean.id]


def test_an_audit_may_not_stand_under_two_statements(published):
    record, violated, *_ = published
    twice = paper(
        statement("a", audits=(violated.id,)), statement("b", audits=(violated.id,))
    )
    with pytest.raises(ConfigurationError, match="stands under two statements"):
        without_statement(record, [twice])


@pytest.mark.parametrize("more", [{}, {"audits": ("x::y",), "unaudited": "no"}])
def test_a_statement_is_looked_at_in_one_way(more):
    with pytest.raises(
        ConfigurationError, match="exactly one of audits, settled and unaudited"
    ):
        statement("a", **more)


FALSE = Settled(Verdict.VIOLATED, "1 → 2", "because", "tests/x.py::test")


def of_every_worth(violated, certified):
    """A statement that is refuted, one out of range, a slip, and one that is true although it is called a slip."""
    return paper(
        statement(
            "slip",
            settled=FALSE,
            fault=Fault.SLIP,
            inputs="the numbers",
            instead="Two.",
        ),
        statement("true", audits=(certified.id,), fault=Fault.SLIP),
        statement(
            "range",
            settled=FALSE,
            fault=Fault.BEYOND,
            inputs="a large ε",
            instead="a range.",
        ),
        statement("refuted", audits=(violated.id,), instead="less."),
    )


def test_slips_and_what_is_out_of_range_are_counted_apart(published):
    record, violated, certified, _ = published
    one = of_every_worth(violated, certified)
    assert [e.outcome for e in entries(record, one)] == [
        Outcome.SLIP,
        Outcome.CERTIFIED,
        Outcome.BEYOND,
        Outcome.VIOLATED,
    ]
    text = overview(record, [one])
    assert (
        "**Of 4 published statements 1 are refuted. 1 more fail only for parameters that the paper does not use, and 1 are "
        "slips.**" in text
    )
    assert "| SLIP | 1 → 2 | Two. |" in text
    assert "We take it for a slip" in page(record, one)


def test_a_letter_has_the_refuted_statement_first_with_inputs_and_command_and_the_slip_last(
    published,
):
    record, violated, certified, _ = published
    text = letter(record, of_every_worth(violated, certified))
    order = [
        text.index(part)
        for part in (
            "1. **refuted**",
            "not beyond them:",
            "- **range**",
            "Slips",
            "- **slip**",
        )
    ]
    assert order == sorted(order)
    assert markdown_code(violated.reproduce.partition(" --")[0]) in text
    assert markdown_code(" ".join(violated.counterexample.pair.split())) in text
    assert "Inputs: the numbers. `pytest tests/unit/audits -k test`." in text
    assert "**true**" not in text
