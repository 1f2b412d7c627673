"""A standing answer to authors: for a published claim that is false, a short text that a person could send."""

from __future__ import annotations

from collections.abc import Iterator

from auditdp.report.ledger import Line
from auditdp.report.plain_text import markdown, shell
from audits.ledger.entries import Entry, Outcome
from audits.ledger.statements import Paper

RECONSIDER = (
    "a proof that covers this pair, an error in the stated law or in the code that computes it, or a sentence of the paper "
    "that excludes this setting"
)
WORTH = {
    Outcome.BEYOND: "We believe that it holds for the parameters of the paper as we read them, and not beyond",
    Outcome.SLIP: "We take it for a slip, which the paper has right elsewhere or on which nothing rests",
}
BELIEF = "We believe that it does not hold as stated"


def answer(entry: Entry, paper: Paper) -> Iterator[str]:
    """Yield the lines of the text: claim, counterexample, command, repair, and what would change our mind."""
    statement, line = entry.statement, shown(entry)
    yield f"Dear authors of {markdown(paper.title)},"
    yield ""
    yield f"in {markdown(statement.place)} we read this claim: {markdown(statement.claim)}"
    yield f"{WORTH.get(entry.outcome, BELIEF)}, and would be glad to learn where we are wrong."
    if statement.settled is not None:
        yield f"Found: {markdown(statement.settled.found)}. {markdown(statement.settled.why)}"
        yield f"The arithmetic is repeated by {markdown(statement.settled.test)}."
    elif line is not None:
        output = f", at output {markdown(line.output)}" if line.output else ""
        yield f"Counterexample ({markdown(line.claim)}): {markdown(line.pair)}{output}. {markdown(line.explanation)}."
        if statement.setting:
            yield f"More on this: {markdown(statement.setting)}"
        yield "This command shows it again, in a checkout of this repository:"
        yield ""
        yield "    " + shell(line.reproduce)  # an indented block, which no text can end
        yield ""
    if statement.instead:
        yield f"What holds instead: {markdown(statement.instead)}" + (
            f" Its cost: {markdown(statement.cost)}" if statement.cost else ""
        )
    yield f"What would change our mind: {markdown(statement.reconsider or RECONSIDER)}."


def shown(entry: Entry) -> Line | None:
    """Return the audit that represents a false statement: one about inputs, not formulas."""
    deciding = [
        line for line in entry.checks if line.verdict.value == entry.verdict.value
    ]
    return min(deciding, key=lambda line: line.evidence == "accounting", default=None)
