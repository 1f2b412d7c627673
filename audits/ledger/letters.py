"""A letter to the authors of each paper: what holds, what does not, faults of the published code, and how to check each.

One letter has two forms with the same words: Markdown, to be read beside the cards, and plain text, to be sent.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from auditdp.record.results import RunRecord
from auditdp.report.numbers import between
from auditdp.report.plain_text import markdown, markdown_code, one_line
from audits.ledger.answers import shown
from audits.ledger.entries import BEARING, FALSE, Entry, Outcome, entries
from audits.ledger.pages import headline, parameters_of
from audits.ledger.statements import Fault, Kind, Paper, Statement
from gnn.experiments.words import joined

SENDER = "The auditdp developers"
NO_LINK = "[address of the repository]"
"""Stands in a letter whose sender has not given the address."""
COMMAND = "Command"
COLUMNS = 78
"""Width of a line of plain text."""
HOLDS = {
    "Proved, under the conditions in brackets": (Outcome.PROVED,),
    "Proved by computation, for the sizes and parameters in brackets": (
        Outcome.CERTIFIED,
    ),
    "No violation was found, which is no proof": (
        Outcome.EQUIVALENT,
        Outcome.NOT_REFUTED,
    ),
}
UNDECIDED = (Outcome.INCONCLUSIVE, Outcome.ERROR, Outcome.SKIPPED, Outcome.MISSING)
NOT_DECIDED = {"Neither refuted nor proved": UNDECIDED}
ENDED = {
    ("holds", "hold"): (Outcome.PROVED, Outcome.CERTIFIED),
    ("had no violation that we found", "had no violation that we found"): (
        Outcome.EQUIVALENT,
        Outcome.NOT_REFUTED,
    ),
    ("does not hold", "do not hold"): BEARING,
    (
        "holds only for your parameters as we read them",
        "hold only for your parameters as we read them",
    ): (Outcome.BEYOND,),
    ("is a slip", "are slips"): (Outcome.SLIP,),
    ("is undecided", "are undecided"): UNDECIDED,
}
"""Outcomes of tested statements by their words, for one statement and for several."""


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
    questions = [
        entry
        for entry in found
        if entry.statement.settled and entry.outcome is Outcome.INCONCLUSIVE
    ]
    implied = [
        entry
        for entry in found
        if entry.statement.kind in (Kind.IMPLIED, Kind.AMBIGUOUS)
        and entry.outcome is not Outcome.UNAUDITED
        and entry not in questions
    ]
    tested = [e for e in published if e.outcome is not Outcome.UNAUDITED]
    bearing = sorted(_of(tested, BEARING), key=_severity)
    faults = [
        entry
        for entry in found
        if entry.statement.kind is Kind.CODE
        and (entry.outcome in BEARING or entry.statement.fault is Fault.READ)
    ]
    items = {
        "Statements that do not hold, as far as we can tell": bearing,
        "True for your parameters as we read them, and not beyond": _of(
            tested, [Outcome.BEYOND]
        ),
        "Faults of the published code": faults,
        "Questions about your experiments": questions,
    }
    parts = [
        *_head(record, paper, style, sender),
        *_summary(paper, published, tested, bearing, implied, style),
        *_how_to_check(record, paper, style, link),
        *_listed("Statements that hold", tested, HOLDS, style),
        *_listed("Not decided", tested, NOT_DECIDED, style),
    ]
    for heading, listed in items.items():
        parts += _items(heading, listed, paper, style)
    slips = f"The {paper.work} has it right elsewhere, or nothing rests on it"
    parts += _listed("Slips", tested, {slips: [Outcome.SLIP]}, style)
    parts += _listed(
        f"Other readings of your {paper.work}, and what its experiments rest on",
        implied,
        HOLDS | {"Not true, as far as we can tell": FALSE} | NOT_DECIDED,
        style,
    )
    mended = ", or which commit mends a fault of the code" if faults else ""
    closing = (
        f"We would be glad to learn where we are wrong{mended}. Please answer to the sender of this letter: we will "
        "correct our page, or put your answer on it."
    )
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
        f"Subject: statements of your {paper.work} on privacy, error and cost, tested",
    ]
    yield f"{style.break_}\n".join(lines)
    yield "Dear authors,"


def _day(record: RunRecord) -> str:
    """Return the last day of a run, such as "3 May 2026"; "" if none is recorded."""
    if not record.finished:
        return ""
    day = date.fromisoformat(record.finished[:10])
    return f"{day.day} {day:%B %Y}"


def _summary(
    paper: Paper,
    published: Sequence[Entry],
    tested: Sequence[Entry],
    bearing: Sequence[Entry],
    implied: Sequence[Entry],
    style: Style,
) -> Iterator[str]:
    """Yield the number of statements by their outcome, and what else was tested."""
    text = (
        f"We implemented the mechanisms of your {paper.work} and tested its statements on privacy, error and cost. As far "
        f"as we can tell, of {len(tested)} statements {_ended(tested)}."
    )
    if bearing:
        titles = "; ".join(entry.statement.title for entry in bearing)
        text += f" What does not hold: {style.text(titles)}."
    else:
        text += (
            f" We found no false statement on which a result of the {paper.work} rests."
        )
    left = len(published) - len(tested)
    if left:
        text += f" Your {paper.work} states {left} more, without a test of their own; the page named below has the reasons."
    if implied:
        text += (
            f" Where your {paper.work} can be read in another way, or its experiments rest on what it does not state, we "
            f"tested that too: of {len(implied)} such statements, listed at the end of this letter, {_ended(implied)}."
        )
    yield style.paragraph(text, "", "")


def _ended(tested: Sequence[Entry]) -> str:
    """Return the numbers of statements by their outcome, such as "2 hold and 1 is a slip"."""
    listed = []
    for (one, many), outcomes in ENDED.items():
        number = len(_of(tested, outcomes))
        if number:
            listed.append(f"{number} {one if number == 1 else many}")
    return joined(listed)


def _of(found: Sequence[Entry], outcomes: Sequence[Outcome]) -> list[Entry]:
    return [entry for entry in found if entry.outcome in outcomes]


def _how_to_check(
    record: RunRecord, paper: Paper, style: Style, link: str
) -> Iterator[str]:
    """Yield what was read, where page and code are, and how a finding is repeated."""
    revision = (record.revision or "unknown").partition(",")[0]
    page, name = f"reports/claims/{paper.key}.md", paper.statements[0].key
    yield style.paragraph(style.text(paper.read), "", "")
    yield style.paragraph(
        f"Our code is at {style.text(link or NO_LINK)}. The numbers of this letter are from a run of its revision "
        f"{style.code(revision)}. Our page is the file {style.code(page)} of the newest revision, with a card for each "
        f"statement; names such as {style.code(name)} are those of cards. You "
        f"need Python 3.11 or newer, make and 1.9 GB of disk. In a checkout run {style.code('make .venv/ready')}, and "
        f"put {style.code('.venv/bin')} in PATH. Each command below then repeats its finding, in less than a minute. "
        f"{style.code('auditdp')} prints the verdict, 'as declared', and the number; its '0 findings' means that it found "
        "nothing beyond what its file declares. With the seed, α and budget of the command its random numbers are ours. "
        "That α bounds the probability that a true claim is refuted by chance, and the budget is a number of calls. "
        f"{style.code('pytest')} prints 'passed'; the test that the command names has the argument and the numbers. A "
        "finding has the claim before the arrow, and our result after it. Losses are in nats, and rounded down; where the "
        "command prints 'ε = …', the value is exact and rounded up.",
        "",
        "",
    )


def _listed(
    heading: str,
    found: Sequence[Entry],
    groups: Mapping[str, Sequence[Outcome]],
    style: Style,
) -> Iterator[str]:
    """Yield a heading and the statements of each group; nothing if there is none.

    Args:
        heading: The heading.
        found: Statements, of which those of other outcomes are left out.
        groups: The outcomes of each group, by its words.
        style: The form of the letter.
    """
    listed = {words: _of(found, outcomes) for words, outcomes in groups.items()}
    if any(listed.values()):
        yield style.heading(heading)
    for words, group in listed.items():
        if group:
            yield f"{words}:"
            yield "\n".join(_line(entry, style) for entry in group)


def _line(entry: Entry, style: Style) -> str:
    """Return a statement with its place and, in brackets, who is a neighbour and for what it was shown.

    A false one has its card, what was found, what else is known and what holds instead.
    """
    statement, settled = entry.statement, entry.statement.settled
    if entry.outcome in FALSE:
        more = between("; ", statement.setting)
        if settled is not None and not more:
            more = f". {settled.why.rstrip('.')}"
        text = (
            f"{statement.title} ({statement.place}; card {statement.key}): {headline(entry)}{more}."
            f"{between(' Instead: ', _instead(statement))}"
        )
    else:
        conditions = [statement.adjacency.rstrip("."), statement.scope]
        if settled is not None and not statement.scope:
            conditions.append(settled.found)
        shown_for = between(" [", "; ".join(filter(None, conditions)), "]")
        text = f"{statement.title} ({statement.place}){shown_for}"
    return style.paragraph(style.text(text), "  ", "- ")


def _instead(statement: Statement) -> str:
    """Return what holds instead of a false statement, and its cost."""
    return statement.instead + between(" Cost: ", statement.cost)


def _items(
    heading: str, found: Sequence[Entry], paper: Paper, style: Style
) -> Iterator[str]:
    """Yield a heading and an item for each statement; nothing if there is none."""
    if not found:
        return
    yield style.heading(heading)
    for number, entry in enumerate(found, 1):
        mark = f"{number}. "
        indentation = " " * len(mark)
        title = style.title(style.text(entry.statement.title))
        lines = [style.paragraph(title + style.break_, indentation, mark)]
        fields = list(_fields(entry, paper, style))
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


def _fields(entry: Entry, paper: Paper, style: Style) -> Iterator[tuple[str, str]]:
    """Yield the label and the text of each field of an item that has a text."""
    statement, line = entry.statement, shown(entry)
    text, code = style.text, style.code
    fields = {
        "Where": text(statement.place),
        "Claim": text(statement.claim),
        "Question": text(statement.question),
        "Neighbours": text(statement.adjacency),
        "We find": text(headline(entry) or statement.fault.value),
        "Inputs": text(statement.inputs),
        "Read the output as": "",
        "Because": text(statement.unaudited),
    }
    command = ""
    if statement.settled is not None:
        fields["Because"] = text(statement.settled.why)
        command = f"pytest {statement.settled.test}"
    elif line is not None:
        if not statement.inputs:
            output = between(", at output ", code(line.output) if line.output else "")
            fields["Inputs"] = code(line.pair) + output
            if line.output:
                fields["Read the output as"] = text(statement.output)
            fields["Because"] = text(line.explanation)
        fields["Checked at"] = text(parameters_of(entry, line, paper))
        command = line.reproduce
    fields |= {
        "Scope": text(statement.scope),
        COMMAND: code(command) if command else "",
        "More on this": text(statement.setting),
        "Instead": text(_instead(statement)),
        "What would change our mind": text(statement.reconsider),
    }
    yield from ((label, words) for label, words in fields.items() if words)


def _severity(entry: Entry) -> tuple[bool, float]:
    """Statements with an audit before those that arithmetic settles, and of these the largest losses first."""
    line = shown(entry)
    return (line is None, -float(line.epsilon_lower or 0) if line else 0.0)
