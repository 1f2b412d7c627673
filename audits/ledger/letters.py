"""A letter for each paper: its false statements, the worst first, with counterexamples."""

from __future__ import annotations

from collections.abc import Iterator

from auditdp.record.results import RunRecord
from auditdp.report.ledger import Line
from auditdp.report.plain_text import markdown, markdown_code
from audits.ledger.answers import shown
from audits.ledger.entries import BEARING, FALSE, Entry, Outcome, entries
from audits.ledger.pages import found_of
from audits.ledger.statements import Kind, Paper


def letter(record: RunRecord, paper: Paper) -> str:
    """Return a letter to the authors of a paper, the worst fault first."""
    found = [
        e
        for e in entries(record, paper)
        if e.statement.kind is Kind.PUBLISHED and e.outcome in FALSE
    ]
    bearing = sorted((e for e in found if e.outcome in BEARING), key=_severity)
    lines = [
        f"# To the authors of {markdown(paper.title)}",
        "",
        "We tried the statements of your paper on privacy, error and cost. These do not hold, as far as we can tell; "
        f"`reports/claims/{paper.key}.md` has all of them. Each has inputs that show it, and a command for a checkout of "
        "our repository. We would be glad to learn where we are wrong, and will correct our page. Of the text: "
        f"{markdown(paper.read)}",
    ]
    lines += (
        [
            "",
            *(
                f"{place}. {' '.join(_item(entry))}"
                for place, entry in enumerate(bearing, 1)
            ),
        ]
        if bearing
        else []
    )
    for heading, outcome in (
        ("True for the parameters that you use, and not beyond them:", Outcome.BEYOND),
        (
            "Slips, as we read them, on which no result of the paper rests:",
            Outcome.SLIP,
        ),
    ):
        some = [entry for entry in found if entry.outcome is outcome]
        lines += (
            ["", heading, "", *(f"- {' '.join(_item(entry))}" for entry in some)]
            if some
            else []
        )
    return "\n".join(lines) + "\n"


def _item(entry: Entry) -> Iterator[str]:
    """Yield the sentences about one statement."""
    statement, line = entry.statement, shown(entry)
    yield f"**{markdown(statement.title)}** ({markdown(statement.place)})."
    if entry.outcome is not Outcome.SLIP:
        yield markdown(statement.claim)
    if statement.settled is not None:
        test = statement.settled.test.rpartition(":")[2]
        yield f"We find: {markdown(statement.settled.found)}. Inputs: {markdown(statement.inputs)}."
        yield f"{markdown_code(f'pytest tests/unit/audits -k {test}')}."
    elif line is not None:
        yield f"We find: {markdown(found_of(line))}. Inputs: {_inputs(entry, line)}. {markdown_code(_command(line))}."
    yield f"Instead: {markdown(statement.instead)}"


def _inputs(entry: Entry, line: Line) -> str:
    if entry.statement.inputs:
        return markdown(entry.statement.inputs)
    return markdown_code(line.pair) + (
        f", at output {markdown_code(line.output)}" if line.output else ""
    )


def _command(line: Line) -> str:
    """The command without its share of α, which a run of one audit does not need."""
    return " ".join(line.reproduce.split()[:3])


def _severity(entry: Entry) -> tuple[bool, float]:
    """Statements with an audit before those that arithmetic settles, and of these the largest losses first."""
    line = shown(entry)
    return (line is None, -float(line.epsilon_lower or 0) if line else 0.0)
