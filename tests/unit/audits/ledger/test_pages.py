"""The pages of the ledger: an overview, a page a paper, an answer to authors.

No text can break them.
"""

import json
from dataclasses import replace

import pytest

from auditdp.errors import ConfigurationError
from auditdp.record.results import Counterexample, Published, Verdict
from auditdp.report.plain_text import markdown, markdown_code
from audits.ledger.entries import Outcome, entries, tally, without_statement
from audits.ledger.pages import found_of, graphs, overview, page, to_json, two_inputs
from audits.ledger.statements import Fault, Kind, Paper, Parameter, Settled, Statement

EVIL = "<b>x</b>|`y` \x1b[31m[a](http://b)\n# *z*"
FALSE = Settled(Verdict.VIOLATED, "1 → 2", "because", "tests/x.py::test")


def statement(key, *audits, **more):
    """A statement with all that is required, of the audits with these ids or results."""
    ids = tuple(getattr(audit, "id", audit) for audit in audits)
    required = {"title": key, "kind": Kind.PUBLISHED, "claim": "It is ε-DP."}
    known = {**required, "place": "Section 1", "audits": ids}
    return Statement(**{"key": key, **known, **more})


def paper(*statements, title="A paper", read="Read."):
    parameters = {"epsilon": Parameter("ε", "the budget", "1")}
    return Paper("p", title, read, statements, parameters)


def changed(record, result, **fields):
    """The record with another form of one result."""
    results = [replace(r, **fields) if r.id == result.id else r for r in record.results]
    return replace(record, results=results)


def outcomes(record, *statements):
    return [entry.outcome for entry in entries(record, paper(*statements))]


def test_a_proof_proves_an_unrefuted_statement_and_hides_no_violation(published):
    record, violated, certified, clean = published
    found = outcomes(
        record,
        statement("a", certified),
        statement("b", clean, proof="by hand"),
        statement("c", violated, proof="by hand"),
    )
    assert found == [Outcome.CERTIFIED, Outcome.PROVED, Outcome.VIOLATED]


def test_the_worst_audit_decides_and_a_missing_one_is_reported(published):
    record, violated, certified, _ = published
    one = paper(statement("a", certified, violated), statement("b", "x::y"))
    both, gone = entries(record, one)
    assert (both.outcome, both.worst.audit) == (Outcome.VIOLATED, violated.id)
    assert (gone.outcome, gone.missing) == (Outcome.MISSING, ["x::y"])
    assert "**Partial: 1 audit" in overview(record, [paper(gone.statement)])


def test_kinds_are_counted_apart(published):
    record, violated, certified, _ = published
    one = paper(
        statement("a", violated),
        statement("b", certified, kind=Kind.DERIVED),
        statement("c", unaudited="nobody could"),
    )
    assert tally(entries(record, one)) == {
        Kind.PUBLISHED: {Outcome.VIOLATED: 1, Outcome.UNAUDITED: 1},
        Kind.DERIVED: {Outcome.CERTIFIED: 1},
    }


def test_arithmetic_settles_a_statement(published):
    one = paper(statement("a", settled=FALSE, instead="2 holds."))
    text = page(published[0], one)
    for part in ("VIOLATED", "1 → 2", "What holds instead"):
        assert part in text


def test_an_experiment_refutes_and_proves_nothing(published):
    settled = replace(FALSE, verdict=Verdict.INCONCLUSIVE)
    one = paper(statement("a", settled=settled, question="which ε?"))
    assert outcomes(published[0], *one.statements) == [Outcome.INCONCLUSIVE]
    text = page(published[0], one)
    assert "- **Found by experiment.** 1 → 2. because" in text
    assert "- **Question to the authors.** which ε?" in text
    assert " 0 are refuted" in overview(published[0], [one])


def test_a_card_has_both_inputs_the_output_the_repair_and_the_command(published):
    record, violated, *_ = published
    example = Counterexample("name: [0] | [1]", "probabilities .1 and .2", "[7]")
    row = Published("row", "as deployed")
    record = changed(record, violated, counterexample=example, published=row)
    texts = {"instead": "Less.", "setting": "worse there", "condition": "if so"}
    one = paper(statement("a", violated, **texts))
    text = page(record, one)
    assert "(if so)" in overview(record, [one])
    for part in (
        "- **Condition of the finding.** if so",
        "first input `[0]`, second input `[1]`",
        "output `[7]`",
        "4 times the variance",
        f"`{violated.reproduce}`",
        "Dear authors of A paper,",
        "What would change our mind",
    ):
        assert part in text


def test_the_smallest_size_is_stated_of_a_refuted_audit_alone(published):
    record, violated, certified, _ = published
    sizes = {"N": 2, "M": 3}
    for result in (violated, certified):
        record = changed(record, result, parameters=sizes)
    meanings = {
        "N": Parameter("N", "nodes", "9", ascending=True),
        "M": Parameter("M", "rows"),
    }
    of_both = statement("a", violated, certified, instead="x", parameters=meanings)
    text = page(record, paper(of_both))
    refuted = (
        "N = 2, nodes; the smallest that shows a violation (paper: 9); M = 3, rows"
    )
    assert text.count(f"with {refuted}\n") == 1
    assert text.count("with N = 2, nodes (paper: 9); M = 3, rows\n") == 1


def test_no_letter_is_written_about_a_reading(published):
    record, violated, *_ = published
    one = paper(statement("a", violated, kind=Kind.AMBIGUOUS, instead="x"))
    assert "Dear authors" not in page(record, one)


def test_the_overview_links_to_the_cards(published):
    record, violated, *_ = published
    unaudited = statement("b", unaudited="why not")
    one = paper(statement("a", violated, instead="Less."), unaudited)
    text = overview(record, [one])
    assert "[a](claims/p.md#a)" in text
    assert "## A paper ([its page](claims/p.md), 1 more not audited)" in text
    assert '<a id="a"></a>' in page(record, one)
    assert "why not" in page(record, one)


def test_a_cell_of_the_overview_has_a_whole_text_or_a_link_to_the_card(published):
    record, violated, *_ = published
    sentence = "half of the noise keeps ε. "
    short, long = 4 * sentence, 5 * sentence
    settled = Settled(Verdict.VIOLATED, long, "because", "tests/x.py::test")
    one = paper(
        statement("a", violated, place=long, instead=short),
        statement("b", settled=settled, instead=long),
    )
    lines = overview(record, [one]).splitlines()
    first, second = (line for line in lines if line.startswith("| ["))
    assert "| [on its card](claims/p.md#a) |" in first
    assert short.strip() in first
    assert second.count("[on its card](claims/p.md#b)") == 2
    assert "…" not in first + second


@pytest.mark.parametrize(
    ("epsilon", "explanation", "expected"),
    [
        (
            None,
            "This output has probability 1 on the first input and 0 on the second. "
            "Over all outputs ε = ∞ and δ(0.25) = 1",
            "→ over all outputs ε = ∞ and δ(0.25) = 1",
        ),
        (1.31289, "because", "1.312 ≤ ε"),
        (
            "inf",
            "This output has probability 0.1 on the first input and 0.5 on the second; the claim is (1, 0.667)-DP. Over "
            "all outputs ε = ∞ and δ(1) = 0.7777",
            "→ ε = 1 needs δ ≥ 0.7777",
        ),
    ],
)
def test_a_finding_is_the_loss_over_all_outputs_rounded_down(
    published, epsilon, explanation, expected
):
    record, violated, *_ = published
    evidence = [
        replace(each, epsilon_lower=epsilon, epsilon_upper=epsilon)
        for each in violated.evidence
    ]
    record = changed(
        record,
        violated,
        evidence=evidence,
        counterexample=Counterexample("[0] | [1]", explanation, "[7]"),
        published=Published("row"),
    )
    (entry,) = entries(record, paper(statement("a", violated, instead="x")))
    assert expected in found_of(entry.worst)
    assert "This output" not in found_of(entry.worst)


def test_texts_are_shown_as_they_are(published):
    record, violated, *_ = published
    texts = dict.fromkeys(("claim", "place", "instead", "setting"), EVIL)
    one = paper(statement("a", violated, **texts), title=EVIL, read=EVIL)
    cards = overview(record, [one])
    for text in (cards, page(record, one)):
        for part in ("<b>", "\x1b", "http:/"):
            assert part not in text
    row = next(line for line in cards.splitlines() if line.startswith("| [a]"))
    assert row.replace("\\|", "").count("|") == 6


def test_cells_and_code_stay_on_one_line():
    assert (
        markdown(EVIL)
        == "&lt;b&gt;x&lt;/b&gt;\\|\\`y\\` \\\\x1b\\[31m\\[a\\](http:&#8203;//b) #&#8203; \\*z\\*"
    )
    assert markdown_code("a`\nb|") == "`` a` b| ``"
    assert markdown("- a") == "\\- a"


def test_graphs_alone_are_drawn():
    lines = graphs("1 | 0 edges: 3 nodes, edges 01 12 | 3 nodes, no edges")
    assert graphs("3 nodes, edges 01 12 | 3 nodes, edges none") == lines
    edges = [line.strip() for line in lines if "---" in line]
    assert edges == ["a0 --- a1", "a1 --- a2"]
    assert graphs("[0] | [1]") == []


def test_the_two_inputs_of_a_pair_are_split_at_the_bar():
    assert two_inputs("a: 1 | 2") == ("a", "1", "2")
    assert two_inputs("no bar") == ("", "no bar", "")


def test_json_keeps_statements_and_lines(published):
    record, violated, certified, clean = published
    one = paper(statement("a", violated, instead="x"))
    stored = json.loads(to_json(record, [one]))
    assert stored["schema"] == 2
    assert stored["papers"][0]["statements"][0]["verdict"] == "VIOLATED"
    lines = {line["audit"]: line for line in stored["claims"]}
    assert set(lines) == {violated.id, certified.id, clean.id}
    assert lines[violated.id]["paper"] == "p"
    assert lines[violated.id]["statement_key"] == "a"
    assert stored["no_statement"] == [clean.id]


def test_an_audit_may_not_stand_under_two_statements(published):
    record, violated, *_ = published
    twice = paper(statement("a", violated), statement("b", violated))
    with pytest.raises(ConfigurationError, match="stands under two statements"):
        without_statement(record, [twice])


@pytest.mark.parametrize("more", [{}, {"audits": ("x::y",), "unaudited": "no"}])
def test_a_statement_is_decided_in_one_way(more):
    with pytest.raises(ConfigurationError, match="exactly one of audits, settled"):
        statement("a", **more)


@pytest.fixture
def every_fault(published):
    """A slip, a true statement that is called a slip, one out of range, and one that is refuted."""
    record, violated, certified, _ = published
    slip = {"settled": FALSE, "fault": Fault.SLIP, "inputs": "the numbers"}
    beyond = {"settled": FALSE, "fault": Fault.BEYOND, "inputs": "a large ε"}
    return record, paper(
        statement("slip", **slip, instead="Two."),
        statement("true", certified, fault=Fault.SLIP),
        statement("range", **beyond, instead="a range."),
        statement("refuted", violated, instead="less."),
    )


def test_slips_and_statements_out_of_range_are_counted_apart(every_fault):
    record, one = every_fault
    expected = [Outcome.SLIP, Outcome.CERTIFIED, Outcome.BEYOND, Outcome.VIOLATED]
    assert [entry.outcome for entry in entries(record, one)] == expected
    text = overview(record, [one])
    assert "**Of 4 published statements 1 are refuted. 1 more fail only" in text
    assert "1 are slips.**" in text
    assert "| SLIP | 1 → 2 | Two. |" in text
    assert "We take it for a slip" in page(record, one)
