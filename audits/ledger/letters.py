"""A letter to the authors of each paper: what holds, what does not, faults of the published code, and how to check each.

One letter has two forms with the same words: Markdown, to be read beside the cards, and plain text, to be sent.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from auditdp.record.results import RunRecord
from auditdp.report.ledger import Line
from auditdp.report.numbers import between
from auditdp.report.plain_text import markdown, markdown_code, one_line
from audits.ledger.answers import shown
from audits.ledger.entries import BEARING, Entry, Outcome, entries
from audits.ledger.pages import headline
from audits.ledger.statements import Kind, Paper
from gnn.experiments.words import joined

SENDER = "The auditdp developers"
NO_LINK = "[address of the repository]"
"""Stands in a letter whose sender has not given the address."""
COMMAND = "Command"
COLUMNS = 78
"""Width of a line of plain text."""
HOLDS = {
    "Proved for every size and parameter": (Outcome.PROVED,),
    "Proved by computation, for the size and parameters on the card": (
        Outcome.CERTIFIED,
    ),
    "No violation was found, which is no proof": (
        Outcome.EQUIVALENT,
        Outcome.NOT_REFUTED,
    ),
}


@dataclass(frozen=True)
class Style:
    """A form of a letter.

    Attributes:
        text: Escapes a text for one line.
        code: Escapes a command or an input.
        heading: Sets a heading.
        paragraph: Sets a paragraph, with an indentation and a mark before its first line.
        title: Sets the title of a statement, which is escaped already.
        label: Sets the label of a field.
        break_: The mark at the end of a line that is not joined with the next one.
    """

    text: Callable[[str], str]
    code: Callable[[str], str]
    heading: Callable[[str], str]
    paragraph: Callable[[str, str, str], str]
    title: Callable[[str], str]
    label: Callable[[str], str]
    break_: str


def _wrapped(text: str, indentation: str, mark: str) -> str:
    return textwrap.fill(
        text,
        COLUMNS,
        initial_indent=mark or indentation,
        subsequent_indent=indentation,
        break_long_words=False,
        break_on_hyphens=False,
    )


MARKDOWN = Style(
    markdown,
    markdown_code,
    lambda text: f"## {text}",
    lambda text, indentation, mark: (mark or indentation) + text,
    lambda text: f"**{text}**",
    lambda text: f"*{text}:*",
    "\\",
)
PLAIN = Style(
    one_line,
    one_line,
    lambda text: f"{text}\n{'-' * len(text)}",
    _wrapped,
    lambda text: text,
    lambda text: f"{text}:",
    "",
)


def letter(
    record: RunRecord,
    paper: Paper,
    style: Style = MARKDOWN,
    *,
    sender: str = SENDER,
    link: str = "",
) -> str:
    """Return a letter to the authors of a paper, the worst fault first.

    Args:
        record: The record of a run; its last day is the date of the letter.
        paper: The paper.
        style: The form of the letter.
        sender: Who signs it.
        link: The address of the repository; ``NO_LINK`` stands for an empty one.
    """
    found = entries(record, paper)
    published = [e for e in found if e.statement.kind is Kind.PUBLISHED]
    code = [e for e in found if e.statement.kind is Kind.CODE]
    bearing = sorted((e for e in published if e.outcome in BEARING), key=_severity)
    parts = [
        *_head(record, paper, style, sender),
        *_summary(published, style),
        *_how_to_check(record, paper, style, link),
        *_holding(published, style),
        *_items("Statements that do not hold, as far as we can tell", bearing, style),
    ]
    for heading, outcome in (
        ("True for the parameters that you use, and not beyond them", Outcome.BEYOND),
        ("Slips, on which no result of the paper rests", Outcome.SLIP),
    ):
        listed = [entry for entry in published if entry.outcome is outcome]
        parts += _items(heading, listed, style)
    faults = [entry for entry in code if entry.outcome in BEARING]
    parts += _items("Faults of the published code", faults, style)
    questions = [
        entry
        for entry in found
        if entry.statement.settled and entry.outcome is Outcome.INCONCLUSIVE
    ]
    parts += _items("Questions about your experiments", questions, style)
    closing = "We would be glad to learn where we are wrong, and will correct our page."
    parts += [
        style.paragraph(closing, "", ""),
        f"With kind regards,{style.break_}\n{style.text(sender)}",
    ]
    return "\n\n".join(parts) + "\n"


def _head(record: RunRecord, paper: Paper, style: Style, sender: str) -> Iterator[str]:
    day = _day(record)
    lines = [
        *([f"Date: {day}"] if day else []),
        f"From: {style.text(sender)}",
        f"To: the authors of {style.text(paper.title)}",
        "Subject: statements of your paper on privacy, error and cost, tested",
    ]
    yield f"{style.break_}\n".join(lines)
    yield "Dear authors,"


def _day(record: RunRecord) -> str:
    """Return the last day of a run, such as "3 May 2026"; "" if none is recorded."""
    if not record.finished:
        return ""
    day = date.fromisoformat(record.finished[:10])
    return f"{day.day} {day:%B %Y}"


def _summary(published: Sequence[Entry], style: Style) -> Iterator[str]:
    """Yield a paragraph with the number of statements by their outcome."""
    tested = [e for e in published if e.outcome is not Outcome.UNAUDITED]
    kept = [outcome for outcomes in HOLDS.values() for outcome in outcomes]
    numbers = {
        ("holds", "hold"): kept,
        ("does not hold", "do not hold"): BEARING,
        (
            "holds for your parameters alone",
            "hold for your parameters alone",
        ): [Outcome.BEYOND],
        ("is a slip", "are slips"): [Outcome.SLIP],
    }
    listed, decided = [], 0
    for (one, many), outcomes in numbers.items():
        number = sum(entry.outcome in outcomes for entry in tested)
        decided += number
        if number:
            listed.append(f"{number} {one if number == 1 else many}")
    if decided < len(tested):
        listed.append(f"{len(tested) - decided} without a result")
    text = (
        "We implemented the mechanisms of your paper and tested its statements on privacy, error and cost. As far as we can "
        f"tell, of {len(tested)} statements {joined(listed)}."
    )
    left = len(published) - len(tested)
    if left:
        text += f" We did not test {left} more, and our page has the reason for each."
    if not any(e.outcome in BEARING for e in tested):
        text += " We found no false statement on which a result of the paper rests."
    yield style.paragraph(text, "", "")


def _how_to_check(
    record: RunRecord, paper: Paper, style: Style, link: str
) -> Iterator[str]:
    """Yield what was read, where the code is, and how a finding is repeated."""
    revision = (record.revision or "unknown").partition(",")[0]
    page, name = f"reports/claims/{paper.key}.md", paper.statements[0].key
    yield style.paragraph(f"Our reading: {style.text(paper.read)}", "", "")
    yield style.paragraph(
        f"Our code is at {style.text(link or NO_LINK)}, revision {style.code(revision)}. Its file {style.code(page)} has a "
        f"card for each statement, with its scope; names such as {style.code(name)} are those of cards. To prepare a "
        f"checkout, run {style.code('make .venv/ready')}. Then each command below repeats its finding there, with "
        f"{style.code('.venv/bin')} in PATH. A finding has the claim before the arrow, and our result after it. Losses "
        "are in nats, and rounded down.",
        "",
        "",
    )


def _holding(published: Sequence[Entry], style: Style) -> Iterator[str]:
    """Yield the statements that hold, by how far this is known."""
    lines = []
    for words, outcomes in HOLDS.items():
        titles = [
            f"{style.text(e.statement.title)} ({style.text(e.statement.place)})"
            for e in published
            if e.outcome in outcomes
        ]
        if titles:
            lines.append(style.paragraph(f"{words}: {'; '.join(titles)}.", "  ", "- "))
    if lines:
        yield style.heading("Statements that hold")
        yield "\n".join(lines)


def _items(heading: str, found: Sequence[Entry], style: Style) -> Iterator[str]:
    """Yield a heading and an item for each statement; nothing if there is none."""
    if not found:
        return
    yield style.heading(heading)
    for number, entry in enumerate(found, 1):
        mark = f"{number}. "
        indentation = " " * len(mark)
        title = style.title(style.text(entry.statement.title))
        lines = [style.paragraph(title + style.break_, indentation, mark)]
        fields = list(_fields(entry, style))
        for place, (label, text) in enumerate(fields, 1):
            end = style.break_ if place < len(fields) else ""
            field = f"{style.label(label)} {text}{end}"
            whole = label == COMMAND  # a line to be pasted into a shell
            lines.append(
                indentation + field
                if whole
                else style.paragraph(field, indentation, "")
            )
        yield "\n".join(lines)


def _fields(entry: Entry, style: Style) -> Iterator[tuple[str, str]]:
    """Yield the label and the text of each field of an item."""
    statement, line = entry.statement, shown(entry)
    text = style.text
    yield "Where", text(statement.place)
    yield "Claim", text(statement.claim)
    yield "We find", text(headline(entry))
    if statement.settled is not None:
        test = statement.settled.test.rpartition(":")[2]
        yield "Because", text(statement.settled.why)
        if statement.inputs:
            yield "Inputs", text(statement.inputs)
        yield COMMAND, style.code(f"pytest tests/unit/audits -k {test}")
    elif line is not None:
        yield "Inputs", _inputs(entry, line, style)
        if statement.output and line.output:
            yield "Read the output as", text(statement.output)
        yield COMMAND, style.code(_command(line))
    yield from (
        (label, text(given))
        for label, given in (
            ("At your setting", statement.setting),
            ("Instead", statement.instead),
            ("Question", statement.question),
        )
        if given
    )


def _inputs(entry: Entry, line: Line, style: Style) -> str:
    if entry.statement.inputs:
        return style.text(entry.statement.inputs)
    output = between(", at output ", style.code(line.output) if line.output else "")
    return style.code(line.pair) + output


def _command(line: Line) -> str:
    """The command without its share of α, which a run of one audit does not need."""
    return " ".join(line.reproduce.split()[:3])


def _severity(entry: Entry) -> tuple[bool, float]:
    """Statements with an audit before those that arithmetic settles, and of these the largest losses first."""
    line = shown(entry)
    return (line is None, -float(line.epsilon_lower or 0) if line else 0.0)
