"""The ledger of published claims as pages: an overview with short cells, and a page a paper with a card per statement."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict

from auditdp.record.results import RunRecord, Verdict
from auditdp.report.ledger import SCHEMA, Line, lines_of
from auditdp.report.numbers import between, count
from auditdp.report.plain_text import markdown, markdown_code, table
from auditdp.report.sentences import run_meaning, unseen
from audits.ledger.answers import answer, shown
from audits.ledger.entries import (
    BEARING,
    FALSE,
    MEANINGS,
    Entry,
    Outcome,
    entries,
    tally,
    without_statement,
)
from audits.ledger.statements import Kind, Paper

COLUMNS = ("statement", "where", "verdict", "claimed → found", "what holds instead")
LONGEST = 120
"""Characters of a cell of the overview; where a text has more, the cell links to the card, which has all of it."""


_GRAPH = re.compile(
    r"(?<!\d)(10|\d) nodes, (?:edges (\d\d(?: \d\d)*)|no edges|edges none)"
)
_NEEDED = re.compile(
    r"the claim is \((?P<epsilon>[^,]+), .+\)-DP.* δ\((?P=epsilon)\) = (?P<delta>\S*\d)"
)
"""The δ that the ε of a refuted (ε, δ) claim needs, in an explanation."""


TITLE = "What published claims are worth"


def overview(
    record: RunRecord,
    papers: Sequence[Paper],
    *,
    title: str = TITLE,
    folder: str = "claims",
    suffix: str = ".md",
) -> str:
    """Return the overview: counts, then a table for each paper with links to its page."""
    found = {paper.key: entries(record, paper) for paper in papers}
    everything = [entry for listed in found.values() for entry in listed]
    alpha = sum(entry.alpha for entry in record.alpha_ledger)
    partial = sum(len(entry.missing) for entry in everything)
    lines = [
        f"# {title}",
        "",
        f"Revision {markdown_code(record.revision or 'unknown')}, root seed {markdown_code(str(record.root_seed))}. "
        + markdown(run_meaning(record)),
        f"The probability that this run refutes any true claim by chance is at most {alpha:g}.",
        "",
        f"**{_stated(everything)}**",
        *(
            [
                "",
                f"**Partial: {count(partial, 'audit')} of the lines below did not run.**",
            ]
            if partial
            else []
        ),
        "",
        *table(
            (
                "whose claim",
                "statements",
                *(outcome.value for outcome in _shown(everything)),
            ),
            (
                (
                    kind.value,
                    str(sum(counter.values())),
                    *(str(counter[o] or "") for o in _shown(everything)),
                )
                for kind, counter in tally(everything).items()
            ),
        ),
        "",
        "; ".join(
            f"{outcome.value}: {MEANINGS[outcome]}"
            for outcome in _shown(everything)
            if outcome in MEANINGS
        )
        + ". Only the first row is about what papers state; a violation's number is rounded down.",
    ]
    for paper in papers:
        listed = [
            entry
            for entry in found[paper.key]
            if entry.outcome is not Outcome.UNAUDITED
        ]
        left = len(found[paper.key]) - len(listed)
        page = f"{folder}/{paper.key}{suffix}"
        beside = f" ([its page]({page}){f', {left} more not audited' if left else ''})"
        lines += [
            "",
            f"## {markdown(paper.title)}{beside}",
            "",
            *table(COLUMNS, (_row(entry, page) for entry in listed)),
        ]
    return "\n".join(lines) + "\n"


def _stated(found: Sequence[Entry]) -> str:
    """Return the number of refuted statements of the papers, by the kind of fault."""
    counts = tally(found).get(Kind.PUBLISHED, Counter())
    bearing = sum(counts[outcome] for outcome in BEARING)
    return (
        f"Of {count(counts.total(), 'published statement')} {bearing} are refuted. {counts[Outcome.BEYOND]} more fail only "
        f"for parameters that the paper does not use, and {counts[Outcome.SLIP]} are slips."
    )


def _shown(found: Sequence[Entry]) -> list[Outcome]:
    present = {entry.outcome for entry in found}
    return [outcome for outcome in Outcome if outcome in present]


def _row(entry: Entry, page: str) -> tuple[str, ...]:
    statement = entry.statement
    kind = "" if statement.kind is Kind.PUBLISHED else f" ({statement.kind.value})"
    card = f"{page}#{statement.key}"
    return (
        f"[{markdown(statement.title)}]({card}){kind}",
        _whole(statement.place, card),
        verdict_of(entry),
        _whole(headline(entry), card),
        _whole(statement.instead, card) if entry.outcome in FALSE else "",
    )


def _whole(text: str, card: str) -> str:
    """Return a text for a cell of the overview, or a link to its card: no cell is cut in mid-sentence."""
    return markdown(text) if len(text) <= LONGEST else f"[on its card]({card})"


def verdict_of(entry: Entry) -> str:
    """Return the verdict, and how many audits refute where others do not."""
    refuting = sum(Outcome(line.verdict.value) in FALSE for line in entry.checks)
    mixed = entry.verdict in FALSE and refuting < len(entry.checks)
    return (
        f"{entry.outcome.value} ({refuting} of {len(entry.checks)})"
        if mixed
        else entry.outcome.value
    )


def headline(entry: Entry) -> str:
    """Return the claim and the finding in one line, with the condition under which it holds."""
    condition = between(" (", entry.statement.condition, ")")
    if entry.statement.settled is not None:
        return entry.statement.settled.found + condition
    line = shown(entry) if entry.outcome in FALSE else entry.worst
    return found_of(line) + condition if line is not None else ""


def found_of(line: Line) -> str:
    """Return the finding of one audit: bounds, or the error of an estimate.

    If no ε keeps an (ε, δ) claim, the finding is the δ that the claimed ε needs.
    """
    if line.epsilon_lower == "inf" and (needed := _NEEDED.search(line.explanation)):
        return f"{line.claim} → ε = {needed['epsilon']} needs δ ≥ {needed['delta']}"
    if line.found != "–":
        return f"{line.claim} → {line.found}"
    if not line.explanation:
        return line.claim
    _, apart, shown = line.explanation.rpartition(
        "; " if line.verdict is Verdict.MISCALIBRATED else ": "
    )
    if apart:
        return f"{line.claim} → {shown.partition(', and')[0]}"
    last = line.explanation.rpartition(". ")[2]
    return f"{line.claim} → {last[:1].lower() if last[1:2].islower() else last[:1]}{last[1:]}"


Draw = Callable[[str, str], Sequence[str]]
"""Maps a recorded pair and output to the lines of a drawing, none if it cannot be drawn.
"""


def graphs(pair: str, output: str = "") -> list[str]:
    """Return a Mermaid drawing of the two graphs of a pair, of at most ten nodes; nothing of any other pair."""
    found = _GRAPH.findall(pair)
    if len(found) != 2:
        return []
    lines = ["```mermaid", "graph LR"]
    for letter, title, (nodes, edges) in zip(
        "ab", ("first input", "second input"), found, strict=True
    ):
        lines.append(f"  subgraph {letter}[{title}]")
        lines += [f"    {letter}{node}(({node}))" for node in range(int(nodes))]
        lines += [f"    {letter}{e[0]} --- {letter}{e[1]}" for e in edges.split()]
        lines.append("  end")
    return [*lines, "```"]


def page(record: RunRecord, paper: Paper, *, drawn: Draw = graphs) -> str:
    """Return the page of a paper: its reading, a card per statement, and the rest."""
    found = entries(record, paper)
    cards = [entry for entry in found if entry.outcome is not Outcome.UNAUDITED]
    rest = [entry for entry in found if entry.outcome is Outcome.UNAUDITED]
    lines = [f"# {markdown(paper.title)}", "", markdown(paper.read), ""]
    lines += table(
        ("whose claim", "statements", "how they ended"),
        (
            (
                kind.value,
                str(sum(counter.values())),
                ", ".join(f"{n} {outcome.value}" for outcome, n in counter.items()),
            )
            for kind, counter in tally(found).items()
        ),
    )
    for entry in cards:
        lines += ["", *_card(entry, paper, drawn)]
    if rest:
        lines += ["", "## Not audited", ""]
        lines += table(
            ("statement", "where", "because"),
            (
                (
                    f"{markdown(e.statement.claim)}{_kind(e)}",
                    markdown(e.statement.place),
                    markdown(e.statement.unaudited),
                )
                for e in rest
            ),
        )
    return "\n".join(lines) + "\n"


def _kind(entry: Entry) -> str:
    return (
        ""
        if entry.statement.kind is Kind.PUBLISHED
        else f" ({entry.statement.kind.value})"
    )


def _card(entry: Entry, paper: Paper, drawn: Draw) -> Iterator[str]:
    statement = entry.statement
    yield from [
        f'<a id="{statement.key}"></a>',
        "",
        f"## {markdown(statement.title)}: {verdict_of(entry)}",
        "",
    ]
    yield from [
        f"**Claim** ({statement.kind.value}; {markdown(statement.place)}). {markdown(statement.claim)}",
        "",
    ]
    for name, text in (
        ("Neighbours", statement.adjacency),
        ("Scope of the verdict", statement.scope),
        ("How to read an output", statement.output),
        ("Condition of the finding", statement.condition),
        ("Proof", statement.proof if entry.outcome is Outcome.PROVED else ""),
    ):
        if text:
            yield f"- **{name}.** {markdown(text)}"
    if (settled := statement.settled) is not None:
        yield f"- **Found by {settled.by}.** {markdown(settled.found)}. {markdown(settled.why)}"
        yield f"- **Recomputed by** {markdown_code(settled.test)}."
    for line in entry.checks:
        yield from _check(entry, line, paper, drawn)
    yield from (
        f"- **Not in this record:** {markdown_code(audit)}." for audit in entry.missing
    )
    for name, text in (
        ("More on this", statement.setting),
        ("What holds instead", statement.instead),
        ("Its cost", statement.cost),
        ("Question to the authors", statement.question),
    ):
        if text:
            yield f"- **{name}.** {markdown(text)}"
    if paper.answers and statement.kind is Kind.PUBLISHED and entry.outcome in FALSE:
        yield from [
            "",
            "<details><summary>To the authors</summary>",
            "",
            *answer(entry, paper),
            "",
            "</details>",
        ]


def _check(entry: Entry, line: Line, paper: Paper, drawn: Draw) -> Iterator[str]:
    several = (
        len({other.row for other in entry.checks}) > 1
    )  # a reading alone does not tell which mechanism it is of
    name = (
        f"{line.row}, {line.reading}"
        if several and line.reading
        else line.reading or line.row
    )
    inputs = (
        f"neighbours: {line.adjacency}"
        if line.evidence == "accounting"
        else line.adjacency
    )
    yield f"- **{markdown(name)}: {line.verdict}.** {markdown(found_of(line))}; {markdown(inputs)}."
    if line.parameters:
        yield f"  - with {markdown(parameters_of(entry, line, paper))}"
    if line.pair:
        name, first, second = two_inputs(line.pair)
        what = f"{markdown(name)}: " * bool(name)
        yield (
            f"  - {what}first input {markdown_code(first)}, second input {markdown_code(second)}"
            if second
            else f"  - {markdown(first)}"
        )
        if line.output:
            yield f"  - output {markdown_code(line.output)}"
        yield f"  - {markdown(line.explanation)}"
    elif line.proof:
        yield f"  - {markdown(line.proof)}"
    elif line.undecided:
        yield f"  - {markdown(line.undecided)}"
    for repair in line.repairs:
        cost = f" Cost: {markdown(repair.cost)}." if repair.cost else ""
        found = f"{repair.verdict}, {markdown(repair.found)}"
        yield f"  - instead, {markdown(repair.reading)}: {found}. {markdown(repair.statement)}{cost}"
    if line.reproduce:
        yield f"  - run it again: {markdown_code(line.reproduce)}"
    yield ""
    yield from drawn(line.pair, line.output)
    yield ""


def parameters_of(entry: Entry, line: Line, paper: Paper) -> str:
    """Return the parameters of an audit with their meanings, and those of the paper."""
    listed = []
    for name, value in line.parameters.items():
        known = paper.meaning(entry.statement, name)
        if known is None:
            listed.append(f"{name} = {value}")
            continue
        meaning = known.meaning
        refuted = Outcome(line.verdict.value) in BEARING
        if known.ascending and refuted:
            meaning += "; the smallest that shows a violation"
        theirs = between(f" ({paper.values_of}: ", known.paper, ")")
        listed.append(f"{known.letter} = {value}, {meaning}{theirs}")
    return "; ".join(listed)


def two_inputs(pair: str) -> tuple[str, str, str]:
    """Return the name and the two inputs of a rendered pair.

    >>> two_inputs("degree 1 | 0: [1] | [0]")
    ('degree 1 | 0', '[1]', '[0]')
    """
    name, _, shown = pair.rpartition(": ")
    first, bar, second = shown.partition(" | ")
    return (name, first, second) if bar and " | " not in second else ("", pair, "")


def to_json(record: RunRecord, papers: Sequence[Paper]) -> str:
    """Return everything as JSON: the run, the papers with their statements, and a line for each audit."""
    head = {
        "schema": SCHEMA,
        "root_seed": record.root_seed,
        "revision": record.revision,
        "status": record.status,
    }
    head |= {
        "audited": record.audited,
        **{what: number for number, what in unseen(record)},
    }
    listed = [
        {
            "key": paper.key,
            "title": paper.title,
            "read": paper.read,
            "parameters": {
                name: asdict(value) for name, value in paper.parameters.items()
            },
            "statements": [
                {
                    **asdict(e.statement),
                    "verdict": e.outcome.value,
                    "headline": headline(e),
                }
                for e in entries(record, paper)
            ],
        }
        for paper in papers
    ]
    of = {
        audit: (paper.key, s.key)
        for paper in papers
        for s in paper.statements
        for audit in s.audits
    }
    lines = [_with_statement(line, of) for line in lines_of(record)]
    left = [line.audit for line in without_statement(record, papers)]
    return (
        json.dumps(
            {**head, "papers": listed, "claims": lines, "no_statement": left},
            ensure_ascii=False,
            indent=2,
        )
        + "\n"
    )


def _with_statement(line: Line, of: Mapping[str, tuple[str, str]]) -> dict[str, object]:
    paper, statement = of.get(line.audit, ("", ""))
    return {**asdict(line), "paper": paper, "statement_key": statement}
