"""The letters to authors: complete, in two forms with the same words, which no text can break."""

import re
from dataclasses import replace

import pytest

from auditdp.record.results import Verdict
from auditdp.report.plain_text import markdown, markdown_code
from audits.ledger.letters import COLUMNS, MARKDOWN, NO_LINK, PLAIN, letter
from audits.ledger.statements import Fault, Kind, Paper, Settled, Statement

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
        statement("reading", settled=FALSE, kind=Kind.AMBIGUOUS),
        statement("true", certified),
        statement("unseen", clean),
        statement("open", unaudited="accuracy"),
        statement("asked", settled=OPEN, kind=Kind.IMPLIED, question="which ε?"),
        statement("refuted", violated, instead="less.", condition="two moves"),
    ]
    return record, Paper("p", "A paper_1", "Read.", statements)


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
    assert "at https://x.org/repository, revision abc. " in words(text)
    assert NO_LINK not in text
    assert NO_LINK in letter(*written, PLAIN)
    lines = [line for line in text.splitlines() if "Command: " not in line]
    assert max(map(len, lines)) <= COLUMNS


def test_the_parts_of_a_letter_are_in_order(published, written):
    violated = published[1]
    text = letter(*written)
    parts = (
        "of 5 statements 2 hold, 1 does not hold, 1 holds for your parameters alone and 1 is a slip",
        "We did not test 1 more",
        "Proved by computation, for the size and parameters on the card: true",
        "No violation was found, which is no proof: unseen",
        "1. **refuted**",
        "(two moves)",
        "not beyond them",
        "1. **range**",
        "Slips",
        "1. **slip**",
        "published code",
        "1. **code**",
        "Questions",
        "1. **asked**",
        "*Question:* which ε?",
    )
    order = [text.index(part) for part in parts]
    assert order == sorted(order)
    assert markdown_code(violated.reproduce.partition(" --")[0]) in text
    assert markdown_code(" ".join(violated.counterexample.pair.split())) in text
    assert "**reading**" not in text
    assert "pytest tests/unit/audits -k test`" in text


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
