"""The letters to authors: complete, in two forms with the same words, which no text can break."""

import re
from dataclasses import replace

import pytest

from auditdp.record.results import Published, Verdict
from auditdp.report.plain_text import markdown, markdown_code
from audits.ledger.entries import MEANINGS, Outcome
from audits.ledger.letters import COLUMNS, MARKDOWN, NO_LINK, PLAIN, letter
from audits.ledger.statements import Fault, Kind, Paper, Parameter, Settled, Statement

EVIL = "<b>x</b>|`y` \x1b[31m[a](http://b)\n# *z* a_b"
FALSE = Settled(Verdict.VIOLATED, "1 → 2", "because", "tests/x.py::test")
OPEN = replace(FALSE, verdict=Verdict.INCONCLUSIVE)


def statement(key, *audits, **more):
    """A published statement whose title is its key."""
    given = {"title": key, "kind": Kind.PUBLISHED, "claim": "It is ε-DP.", **more}
    ids = tuple(audit.id for audit in audits)
    return Statement(key=key, place="Section 1", audits=ids, **given)


@pytest.fixture
def written(published):
    """A record and a paper with a statement of each outcome that a letter has."""
    record, violated, certified, clean = published
    record = replace(record, finished="2026-05-03T10:00:00+00:00", revision="abc, x")
    statements = [
        statement("slip", settled=FALSE, fault=Fault.SLIP, inputs="the numbers"),
        statement("range", settled=FALSE, fault=Fault.BEYOND, inputs="a large ε"),
        statement("code", settled=FALSE, kind=Kind.CODE, inputs="a seed"),
        statement("seeds", unaudited="one seed", kind=Kind.CODE, fault=Fault.READ),
        statement("reading", settled=FALSE, kind=Kind.AMBIGUOUS),
        statement("true", certified, scope="all n", adjacency="Two lists."),
        statement("sum", settled=replace(FALSE, verdict=Verdict.CERTIFIED)),
        statement("unseen", clean),
        statement("open", unaudited="accuracy"),
        statement("asked", settled=OPEN, kind=Kind.IMPLIED, question="which ε?"),
        statement("refuted", violated, instead="less.", condition="two moves"),
    ]
    return record, Paper("p", "A paper_1", "Read.", statements)


def item(statement, record, **more):
    """The lines of the only item of a letter to authors who stated one thing."""
    text = letter(record, Paper("p", "A paper", "Read.", [statement], **more), PLAIN)
    return words(text.partition("\n1. ")[2].partition("We would be glad")[0])


def words(text):
    """The words of a text, whatever its lines and markup are."""
    return " ".join(re.sub(r"[\\*`#-]", "", text).split())


def test_a_letter_can_be_sent(written):
    text = letter(*written, PLAIN, sender="A. Person", link="https://x.org/repository")
    for part in (
        "Date: 3 May 2026",
        "From: A. Person",
        "To: the authors of A paper_1",
        "Dear authors,",
        "With kind regards,\nA. Person",
    ):
        assert part in text
    assert (
        "at https://x.org/repository. The numbers of this letter are from a run of its revision abc. "
        in words(text)
    )
    assert NO_LINK not in text
    assert NO_LINK in letter(*written, PLAIN)
    lines = [line for line in text.splitlines() if "Command: " not in line]
    assert max(map(len, lines)) <= COLUMNS


def test_the_parts_of_a_letter_are_in_order(published, written):
    violated = published[1]
    text = letter(*written)
    parts = (
        "of 6 statements 2 hold, 1 had no violation that we found, 1 does not hold, 1 holds only for your parameters "
        "as we read them and 1 is a slip",
        "Your paper states 1 more, without a test",
        "of 1 such statements, listed at the end of this letter, 1 does not hold",
        "Proved, under the conditions in brackets",
        r"sum (Section 1) \[1 → 2\]",
        "Proved by computation, for the sizes and parameters in brackets",
        r"true (Section 1) \[Two lists; all n\]",
        "No violation was found, which is no proof",
        "- unseen",
        "1. **refuted**",
        "(two moves)",
        "and not beyond",
        "1. **range**",
        "published code",
        "1. **code**",
        "2. **seeds**",
        "read in the code, not run",
        "Questions",
        "1. **asked**",
        "*Question:* which ε?",
        "## Slips",
        "- slip (Section 1; card slip): 1 → 2. because.",
        "Other readings of your paper",
        "- reading",
    )
    order = [text.index(part) for part in parts]
    assert order == sorted(order)
    assert markdown_code(violated.reproduce) in text
    assert markdown_code(" ".join(violated.counterexample.pair.split())) in text
    assert "**reading**" not in text
    assert "pytest tests/x.py::test`" in text


def test_a_letter_without_a_refuted_statement_does_not_announce_one(written):
    record, paper = written
    kept = [s for s in paper.statements if s.title in ("true", "slip")]
    text = letter(record, replace(paper, statements=kept))
    assert "We found no false statement on which a result of the paper rests." in text
    assert "do not hold" not in text
    assert "does not hold" not in text


def test_both_forms_have_the_same_words_and_the_plain_one_no_escapes(written):
    plain, formatted = letter(*written, PLAIN), letter(*written, MARKDOWN)
    assert words(plain) == words(formatted)
    assert "paper_1" in plain
    assert "\\" not in plain
    assert "&" not in plain


def test_no_text_breaks_a_letter(written):
    record, paper = written
    texts = {"claim": EVIL, "instead": EVIL, "condition": EVIL}
    hostile = [replace(each, **texts) for each in paper.statements]
    given = replace(paper, statements=hostile, read=EVIL, title=EVIL)
    formatted = letter(record, given, sender=EVIL, link=EVIL)
    for part in ("<b>", "\x1b", "http:/"):
        assert part not in formatted
    assert markdown(EVIL) in formatted
    plain = letter(record, given, PLAIN, sender=EVIL, link=EVIL)
    assert "\x1b" not in plain
    assert "\n# *z*" not in plain


def test_an_item_has_all_that_a_reader_needs_to_check_it(published):
    record, violated = published[:2]
    given = {"adjacency": "Two lists.", "scope": "all n", "setting": "worse"}
    one = statement("one", violated, **given, cost="twice", reconsider="a proof")
    name, value = next(iter(violated.parameters.items()))
    text = item(one, record, parameters={name: Parameter("ν", "a number", "7")})
    assert "Neighbours: Two lists. We find" in text
    assert f"Checked at: ν = {value}, a number (paper: 7)" in text
    assert "Scope: all n" in text
    assert f"Command: {words(violated.reproduce)} " in text
    assert "More on this: worse" in text
    assert text.endswith("What would change our mind: a proof")
    assert "What would change" not in item(replace(one, reconsider=""), record)


def test_an_output_is_explained_only_if_it_is_printed(published):
    record, violated = published[:2]
    one = statement("one", violated, output="a bit for each")
    because = f"Because: {words(violated.counterexample.explanation)}"
    assert f"Read the output as: a bit for each {because}" in item(one, record)
    other = item(replace(one, inputs="2 lists"), record)
    assert "Read the output" not in other
    assert because not in other
    shown = replace(violated.counterexample, output="")
    audit = replace(violated, counterexample=shown, published=Published("a row"))
    assert "Read the output" not in item(one, replace(record, results=[audit]))


def test_letters_state_how_a_finding_is_repeated_and_where_to_answer(written):
    text = words(letter(*written, PLAIN))
    for part in (
        "reports/claims/p.md",
        "Python 3.11",
        "'0 findings' means that",
        "its random numbers are ours",
        "Please answer to the sender",
    ):
        assert text.count(part) == 1


def test_the_heading_of_slips_is_what_a_slip_means(written):
    meaning = MEANINGS[Outcome.SLIP].partition("; ")[2]
    record, paper = written
    assert f"## Slips\n\nT{meaning[1:]}:\n\n- slip" in letter(record, paper)
    talk = letter(record, replace(paper, work="talk"))
    assert "Subject: statements of your talk" in talk
    assert "your paper" not in talk


def test_what_no_audit_decides_is_named(published):
    *_, clean = published
    record = published[0]
    paper = Paper("p", "A paper", "Read.", [statement("lost", replace(clean, id="x"))])
    text = letter(record, paper)
    assert "1 is undecided" in text
    assert "Neither refuted nor proved:\n\n- lost (Section 1)" in text
