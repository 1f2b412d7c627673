"""The report that a run prints: one line for each audit, what was found under it, and a summary.

Every function returns a string and asks nobody about the terminal: the caller, who knows whether it writes to one,
passes ``colour`` and ``width``. Names and pairs are shown with control characters escaped.

What a run changes of what was known, for a terminal: worst first, one paragraph each.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from auditdp.record.differences import FINDINGS, REGRESSIONS, Difference, Kind
from auditdp.record.results import (
    REFUTATIONS,
    AuditResult,
    Counterexample,
    RunRecord,
    Verdict,
)
from auditdp.record.traces import Fate
from auditdp.record.verdict import REMEDY
from auditdp.report.formats import WIDTH
from auditdp.report.guesses import (
    MEANINGS,
    aligned,
    at_most,
    columns,
    guessing,
    looked_at,
    proposed,
    rows,
    said,
    traced,
)
from auditdp.report.numbers import MISSING, bound, bounds, count, duration, number
from auditdp.report.plain_text import (
    printable,
    shell,
    shorten,
    terminal,
    without_commands,
)
from auditdp.report.sentences import (
    ENDED,
    Standing,
    audited_claims,
    beside,
    claim_itself,
    counted,
    crowded,
    missed,
    mutation_score,
    named,
    next_command,
    of_planned,
    outcomes,
    refuted,
    run_meaning,
    self_reported,
    slowest,
    standing,
    surviving,
    undecided,
    unseen,
    verdict_label,
    would_find,
)

INDENT = 4
LABEL = 13
MOST = 10_000
"""Characters of a text that are shown."""
CELL = 40
"""Characters of a cell of the table of releases."""
AS_PYTHON = "as Python"
COPIED = ("reproduce", "next", AS_PYTHON)
"""Labels of what is meant to be copied, and left whole."""
COLUMNS = 76
"""Columns from which the numbers of an audit stand beside each other."""
NARROW = 60
"""Columns below which a label stands above its text."""

STYLES: dict[Standing, str] = {
    Standing.UNCONFIRMED: "bold red",
    Standing.FINDING: "bold red",
    Standing.UNDECIDED: "yellow",
    Standing.DECLARED: "green",
    Standing.MISCALIBRATED: "green",
    Standing.CERTIFIED: "green",
    Standing.EQUIVALENT: "green",
    Standing.NOT_REFUTED: "cyan",
    Standing.INCONCLUSIVE: "yellow",
    Standing.ERROR: "magenta",
    Standing.SKIPPED: "yellow",
}


def report(record: RunRecord, *, colour: bool = False, width: int = WIDTH) -> str:
    """Return every audit in the order of the record, then the summary."""
    lines = [line(result, colour=colour, width=width) for result in record.results]
    return "\n".join([*lines, "", summary(record, colour=colour, width=width)]) + "\n"


def line(
    result: AuditResult,
    *,
    colour: bool = False,
    width: int = WIDTH,
    verbose: bool = False,
) -> str:
    """Return one audit: its verdict and numbers on a line, and indented under it what a person has to know.

    Only what is meant to be copied, an id or a command, runs over ``width`` columns; where ``verbose``, the lines at which
    a trace saw noise enter are shown.
    """
    text = _headline(result, width)
    for label, value, style in [*_notes(result), *(_traced(result) if verbose else [])]:
        text.append("\n").append_text(_note(label, value, style, width))
    return _write(text, colour)


def short(result: AuditResult) -> str:
    """Return a result on one line."""
    return printable(f"<{result.verdict}: {key_numbers(result)}>")


def key_numbers(result: AuditResult) -> str:
    """Return claim, bounds, calls and time of a result, as far as it has them."""
    claim = f"{result.claim.text} claimed" if result.claim else ""
    found = f"{bounds(result)} found" if bounds(result) != MISSING else ""
    early = "stopped early" if result.interrupted else ""
    calls = count(result.calls, "call") if result.calls else ""
    parts = [claim, found, calls, duration(result.seconds), early]
    return ", ".join(part for part in parts if part)


def summary(record: RunRecord, *, colour: bool = False, width: int = WIDTH) -> str:
    """Return the counts, how alpha was split, the root seed and revision, and without findings what that means."""
    found = outcomes(record)
    mutations = [
        result.mutation for result in record.results if result.mutation is not None
    ]
    total = of_planned(record)
    claims = count(audited_claims(record), "privacy claim")
    title = f"{total}, {claims}, in" if record.missing else f"{total} of {claims} in"
    title += f" {duration(record.seconds)}" + "".join(
        f" · {audits:,} {ENDED[what]}" for audits, what in unseen(record)
    )
    if record.status != "complete":
        title += f"\nthis run is {printable(record.status)}: audits are missing"
    elif record.missing:
        title += "\naudits are missing"
    whole = (
        record.audited
        and not record.ended(Verdict.ERROR)
        and record.status == "complete"
        and not record.missing
    )
    clean = whole and not any(result.is_unconfirmed for result in record.results)
    text = Text().append("─" * min(width, WIDTH) + "\n", style="dim")
    text.append(
        "\n".join(textwrap.fill(row, width) for row in title.split("\n")) + "\n",
        style="bold",
    )
    calm = "bold green" if clean else "bold yellow"
    for key, audits in found.items():
        words = named(key, audits) if record.audited or audits else "audited"
        text.append(
            _counted(audits, words, width) + "\n", style=STYLES[key] if audits else calm
        )
    rows = [
        (
            "verdicts",
            ", ".join(
                f"{many} {verdict}"
                for verdict in Verdict
                if (many := record.ended(verdict))
            )
            or "none",
        ),
        *([("self-report", own)] if (own := self_reported(record)) else []),
        *([("mutants", mutation_score(*mutations))] if mutations else []),
        *([("slowest", _slowest(record))] if slowest(record) else []),
        ("alpha", _alpha(record)),
        *([("many audits", crowd)] if (crowd := crowded(record)) else []),
        ("root seed", str(record.root_seed)),
        ("revision", record.revision or "unknown"),
        ("device", record.device or "unknown"),
        *([("sandbox", record.sandbox)] if record.sandbox else []),
    ]
    text.append("\n")
    for label, value in rows:
        text.append_text(_note(label, value, "", width, indent=0)).append("\n")
    if not found[Standing.FINDING]:
        text.append(
            "\n" + textwrap.fill(printable(run_meaning(record)), width),
            style="none" if clean else "bold yellow",
        )
    return _write(text, colour)


def _counted(many: int, what: str, width: int) -> str:
    return (
        f"{many:>{INDENT + 2},}  {what}"
        if width >= NARROW
        else textwrap.fill(f"{many:,} {what}", width)
    )


def _slowest(record: RunRecord) -> str:
    rows = [
        (duration(result.seconds), printable(result.id)) for result in slowest(record)
    ]
    widest = max(7, *(len(time) for time, _ in rows))
    return "\n".join(f"{time:<{widest}} {name}" for time, name in rows)


def _headline(result: AuditResult, width: int) -> Text:
    """The verdict and id, and the numbers in columns on the right; on lines of their own where there is no room."""
    verdict, name = verdict_label(result), printable(result.id)
    claim = printable(result.claim.text) if result.claim else MISSING
    shown = bounds(result) if result.claim else MISSING
    calls, time = (
        count(result.calls, "call") if result.calls else MISSING,
        duration(result.seconds),
    )
    text = Text().append(verdict, style=STYLES[standing(result)])
    if width < COLUMNS:
        text.append(
            f" {name}" if len(verdict) + 1 + len(name) <= width else f"\n  {name}"
        )
        numbers = " · ".join(
            part for part in (claim, shown, calls, time) if part != MISSING
        )
        return text.append(
            "\n"
            + textwrap.fill(
                numbers, width, initial_indent="  ", subsequent_indent="    "
            )
        )
    left = f"{verdict:<13} {name}"[len(verdict) :]
    right = f"{claim:<13} {shown:<16} {calls:>13} {time:>7}"
    room = width - len(right) - 2
    if room < len(verdict) + len(left):
        return text.append(f"{left}\n{right:>{width}}".rstrip())
    return text.append(f"{left:<{room - len(verdict)}}  {right}".rstrip())


def _notes(result: AuditResult) -> list[tuple[str, str, str]]:
    """What belongs under an audit, as (label, text, style)."""
    notes: list[tuple[str, str, str]] = []
    finding = standing(result) is Standing.FINDING
    if result.verdict is Verdict.ERROR:
        return [
            ("error", result.summary.removeprefix(f"{result.id}: "), "magenta"),
            *_command(result),
        ]
    if result.verdict is Verdict.SKIPPED:
        return [("reason", result.summary, "dim")]
    if reason := undecided(result):
        return [("undecided", reason, "yellow"), *_command(result)]
    for evidence in result.refuting:
        notes.append(("refuted", refuted(evidence), "bold red"))
        notes.extend(_counterexample(evidence.counterexample, "")[:2])
    notes.extend(("missed", sentence, "bold red") for sentence in missed(result))
    if result.verdict in REFUTATIONS:
        if finding and result.claim and result.claim.source:
            notes.append(("claimed in", result.claim.source, ""))
        if sentence := guessing(result):
            notes.append(("in short", sentence, ""))
        notes.extend(_counterexample(result.counterexample, result.summary))
        if result.verdict is Verdict.VIOLATED and finding and (rest := beside(result)):
            notes.append(("besides", rest, ""))
    notes.extend(("read off", sentence, "") for sentence in said(result))
    notes.extend((how, found.located, "yellow") for how, found in proposed(result))
    if result.verdict is Verdict.MISCALIBRATED and finding:
        notes.append(("means", f"{MEANINGS[result.verdict]} {REMEDY}", ""))
    if result.verdict is Verdict.MISCALIBRATED:
        notes.append(("the claim", claim_itself(result), ""))
    notes.extend(
        ("control", f"Survived: {sentence}", "bold red")
        for sentence in surviving(result)
    )
    if result.verdict is Verdict.INCONCLUSIVE and not surviving(result):
        notes.append(("because", result.summary, ""))
    if result.verdict is Verdict.NOT_REFUTED:
        power = would_find(result)
        notes.append(
            ("would find" if power else "because", power or result.summary, "")
        )
    notes.extend(("traced", sentence, "") for sentence in [at_most(result)] if sentence)
    notes.extend(("notice", text, "yellow") for text in result.notices)
    notes.extend((label, value, "") for label, value in counted(result))
    if result.mutation is not None:
        survivors = result.mutation.of(Fate.SURVIVED)
        notes.append(
            (
                "mutants",
                mutation_score(result.mutation),
                "yellow" if survivors else "green",
            )
        )
        notes.extend(
            ("survivor", f"{mutant.name}: {mutant.statement}", "yellow")
            for mutant in survivors
        )
    open_question = result.verdict is Verdict.INCONCLUSIVE and all(
        each.unconfirmed for each in result.refuting
    )
    if open_question and (command := shell(next_command(result))):
        notes.append(("next", command, "bold"))
    elif finding or result.verdict in REFUTATIONS or result.refuting:
        notes.extend(_command(result))
    return notes


def _traced(result: AuditResult) -> list[tuple[str, str, str]]:
    """What a trace looked at, the lines at which noise enters, and what it did not understand."""
    trace = traced(result)
    if trace is None:
        return []
    table = "\n".join(aligned([columns(result.claim), *rows(trace.lines)], CELL))
    notes = [("looked at", looked_at(trace), "dim")] if not at_most(result) else []
    notes += [("releases", table, "dim")] if trace.lines else []
    return notes + [("opaque", reason, "dim") for reason in trace.opaque]


def _counterexample(
    found: Counterexample | None, summary: str
) -> list[tuple[str, str, str]]:
    if found is None:
        return [("because", summary, "")] if summary else []
    pair = (AS_PYTHON, found.python, "") if found.python else ("pair", found.pair, "")
    notes = [pair, ("output", found.output, ""), ("because", found.explanation, "")]
    if not found.confirmed:
        notes.append(("note", "Not confirmed on fresh randomness.", "yellow"))
    return [note for note in notes if note[1]]


def _command(result: AuditResult) -> list[tuple[str, str, str]]:
    return (
        [("reproduce", command, "bold")] if (command := shell(result.reproduce)) else []
    )


def _note(
    label: str, value: str, style: str, width: int, *, indent: int = INDENT
) -> Text:
    """A label and its text; text is wrapped under itself, a command is left whole so that it can be copied."""
    narrow = width < NARROW
    start = " " * (4 if narrow else indent + LABEL)
    if label != "reproduce":
        value = shorten(value, MOST)  # wrapping takes quadratic time
    paragraphs = [printable(paragraph) for paragraph in value.strip().splitlines()] or [
        ""
    ]
    if label not in COPIED:
        room = width - len(start)
        paragraphs = [
            row for paragraph in paragraphs for row in (_wrap(paragraph, room) or [""])
        ]
    note = Text().append(
        f"  {label}\n{start}" if narrow else " " * indent + f"{label:<{LABEL}}",
        style="dim",
    )
    return note.append(("\n" + start).join(paragraphs), style=style or "none")


def _wrap(paragraph: str, room: int) -> list[str]:
    hanging = "    " if paragraph[:1] == " " and room > 3 * INDENT else ""
    return textwrap.wrap(
        paragraph, room, subsequent_indent=hanging, drop_whitespace=True
    )


def _alpha(record: RunRecord) -> str:
    shares: dict[str, list[float]] = {}
    for entry in record.alpha_ledger:
        shares.setdefault(entry.purpose, []).append(entry.alpha)
    if not shares:
        return "0: nothing in this run can be wrong by chance"
    total = bound(math.fsum(entry.alpha for entry in record.alpha_ledger), up=True)
    parts = [
        f"{purpose} {number(sum(each))} ({count(len(each), 'share')})"
        for purpose, each in shares.items()
    ]
    return f"{total} is the most that the probability of a wrong finding can be: {', '.join(parts)}"


def _write(text: Text, colour: bool) -> str:
    """The text with ANSI colours or without; never wrapped here, since lines are already as they should be."""
    if not colour:
        return without_commands(text.plain)
    console = Console(
        file=io.StringIO(),
        force_terminal=True,
        color_system="standard",
        no_color=False,
        width=10_000,
    )
    with console.capture() as capture:
        console.print(text, soft_wrap=True, highlight=False, end="")
    return without_commands(capture.get())


MOST_DIFFERENCES = {
    Kind.NOT_RUN: 0,
    Kind.CHANCE: 10,
    Kind.STRONGER: 10,
    Kind.NEW: 10,
    Kind.ACCEPTED: 10,
}
"""How many differences of a kind are listed, where not all are: nobody has to look at these."""


def differences_text(
    differences: Sequence[Difference],
    *,
    known: int,
    against: str,
    found_it: str = "",
    width: int = 100,
) -> str:
    """Return every difference, and then how many there are of each kind.

    ``known`` is how many audits were known before, and ``found_it`` says what a run that is not worse would have found.
    """
    lines = []
    seen: Counter[Kind] = Counter()
    for difference in differences:
        seen[difference.kind] += 1
        if seen[difference.kind] > MOST_DIFFERENCES.get(
            difference.kind, len(differences)
        ):
            continue
        lines.append(f"{difference.kind.value:<18} {printable(difference.audit)}")
        lines += textwrap.wrap(
            printable(difference.text),
            width,
            initial_indent=" " * 4,
            subsequent_indent=" " * 4,
        )
        if difference.kind in FINDINGS and difference.result is not None:
            lines += (
                [f"    reproduce: {command}"]
                if (command := shell(difference.result.reproduce))
                else []
            )
    closing = verdict(differences, known=known, against=against, found_it=found_it)
    return terminal(
        "\n".join(
            [*lines, *[""] * bool(lines), *textwrap.wrap(printable(closing), width)]
        )
    )


def verdict(
    differences: Sequence[Difference], *, known: int, against: str, found_it: str = ""
) -> str:
    """Return one sentence: how many differences of each kind there are, and of how many audits."""
    counts = Counter(difference.kind for difference in differences)
    counted = ", ".join(f"{counts[kind]} {kind.value}" for kind in Kind if counts[kind])
    whole = f"{count(known, 'audit')} in {against}"
    bad = sum(counts[kind] for kind in (*FINDINGS, Kind.CRASHED, *REGRESSIONS))
    if not bad:
        said = f"{whole}: nothing worse was seen" + (f" ({counted})" if counted else "")
        return f"{said}; {found_it}" if found_it else said
    return f"{whole}: {counted}"
