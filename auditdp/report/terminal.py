"""Reports on a terminal: the facts of each audit, a summary, and differences.

No function queries the terminal: the caller passes ``colour`` and ``width``. Control
characters in names and pairs are escaped.
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
from auditdp.record.results import AuditResult, RunRecord, Verdict
from auditdp.report.facts import CODE, Fact, Tone, facts
from auditdp.report.formats import WIDTH
from auditdp.report.guesses import (
    CLEAN_RUN,
    aligned,
    at_most,
    columns,
    rows,
    trace_of,
    trace_scope,
)
from auditdp.report.numbers import (
    MISSING,
    between,
    bound,
    bounds,
    count,
    duration,
    number,
)
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
    cpu_sentence,
    mutation_score,
    of_planned,
    outcome_words,
    outcomes,
    remarks,
    run_meaning,
    slowest,
    standing,
    unseen,
    verdict_label,
)

INDENT = 4
LABEL = 13
"""Width of the label of a fact, in columns of the terminal."""
LONGEST = 10_000
"""Largest number of characters of a fact, since wrapping takes quadratic time."""
IN_HEADLINE = ("claim", "found", "self-reported")
"""Labels of facts that are not listed under the line of an audit.

This line has them already, or the summary of the run has them.
"""

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
    """Return the report: every audit in the order of the record, then the summary."""
    lines = [line(result, colour=colour, width=width) for result in record.results]
    return "\n".join([*lines, "", summary(record, colour=colour, width=width)]) + "\n"


def line(
    result: AuditResult,
    *,
    colour: bool = False,
    width: int = WIDTH,
    verbose: bool = False,
) -> str:
    """Return the verdict and the numbers of one audit on a line, and facts under it.

    Ids and commands may be longer than ``width`` columns, so that they can be copied.
    With ``verbose``, facts about the trace are listed, too: its scope, the lines of
    code that add noise, and the code that it does not understand.
    """
    text = _headline(result, width)
    listed = [fact for fact in facts(result) if fact.label not in IN_HEADLINE]
    if verbose:
        listed += _traced(result)
        if result.cpu_by_phase:
            listed.append(Fact("CPU", cpu_sentence([result]), Tone.QUIET))
    for fact in listed:
        text.append("\n").append_text(_note(fact, width))
    return _write(text, colour)


def short(result: AuditResult) -> str:
    """Return the verdict and the numbers of a result on one line, without its id."""
    return printable(f"<{result.verdict}: {key_numbers(result)}>")


def key_numbers(result: AuditResult) -> str:
    """Return the claim, bounds, calls and time that a result has, in one line."""
    parts = []
    if result.claim:
        parts = [f"{result.claim.text} claimed"]
    if bounds(result) != MISSING:
        parts.append(f"{bounds(result)} found")
    if result.calls:
        parts.append(count(result.calls, "call"))
    parts.append(duration(result.seconds))
    if result.interrupted:
        parts.append("stopped early")
    return ", ".join(parts)


def summary(record: RunRecord, *, colour: bool = False, width: int = WIDTH) -> str:
    """Return the summary of a run: outcomes, alpha and origin.

    If there are no findings, sentences about the meaning of the run follow.
    """
    counts = outcomes(record)
    meaning = run_meaning(record)
    is_clean = meaning.startswith(CLEAN_RUN)
    calm, closing = "bold yellow", "bold yellow"
    if is_clean:
        calm, closing = "bold green", "none"
    text = Text().append("─" * min(width, WIDTH) + "\n", style="dim")
    for row in _title(record):
        text.append(textwrap.fill(row, width) + "\n", style="bold")
    for key, audits in counts.items():
        words = "audited"
        if record.audited or audits:
            words = outcome_words(key, audits)
        row = textwrap.fill(f"{audits:>6,}  {words}", width, drop_whitespace=False)
        style = calm
        if audits:
            style = STYLES[key]
        text.append(row + "\n", style=style)
    text.append("\n")
    for label, value in _about(record).items():
        text.append_text(_note(Fact(label, value), width, indent=0)).append("\n")
    if not counts[Standing.FINDING]:
        text.append("\n" + textwrap.fill(printable(meaning), width), style=closing)
    return _write(text, colour)


def _title(record: RunRecord) -> list[str]:
    total = of_planned(record)
    claims = count(audited_claims(record), "privacy claim")
    audited = f"{total}, {claims}," if record.missing else f"{total} of {claims}"
    ended = "".join(f" · {audits:,} {ENDED[key]}" for audits, key in unseen(record))
    rows = [f"{audited} in {duration(record.seconds)}{ended}"]
    if record.status != "complete":
        rows.append(f"this run is {printable(record.status)}: audits are missing")
    elif record.missing:
        rows.append("audits are missing")
    return rows


def _about(record: RunRecord) -> dict[str, str]:
    """Return the rows of the summary under the outcomes, by label."""
    verdicts = Counter(result.verdict for result in record.results)
    numbers = [f"{verdicts[key]} {key}" for key in Verdict if verdicts[key]]
    rows = {"verdicts": ", ".join(numbers) or "none"}
    mutations = [each.mutation for each in record.results if each.mutation is not None]
    if mutations:
        rows["mutants"] = mutation_score(*mutations)
    # Times are aligned with each other.
    times = [(duration(each.seconds), printable(each.id)) for each in slowest(record)]
    widest = max([7, *(len(time) for time, _ in times)])
    rows["slowest"] = "\n".join(f"{time:<{widest}} {name}" for time, name in times)
    rows |= {
        "alpha": _alpha(record),
        **remarks(record),
        "root seed": str(record.root_seed),
    }
    rows |= {
        "revision": record.revision or "unknown",
        "device": record.device or "unknown",
        "sandbox": record.sandbox,
    }
    return {label: value for label, value in rows.items() if value}


def _headline(result: AuditResult, width: int) -> Text:
    """Return the verdict, the id and the numbers of a result.

    The numbers are in columns on the right, or below if the terminal is narrow.
    """
    label = verdict_label(result)
    claim, interval, calls = MISSING, MISSING, MISSING
    if result.claim:
        claim = printable(result.claim.text)
        interval = bounds(result)
    if result.calls:
        calls = count(result.calls, "call")
    time = duration(result.seconds)
    text = Text().append(label, style=STYLES[standing(result)])
    text.append(f"{label:<13} {printable(result.id)}".removeprefix(label))
    right = f"{claim:<13} {interval:<16} {calls:>13} {time:>7}"
    if len(right) > width:
        parts = [part for part in (claim, interval, calls, time) if part != MISSING]
        rows = textwrap.wrap(" · ".join(parts), width - INDENT)
        return text.append("".join(f"\n{' ' * INDENT}{row}" for row in rows))
    # The numbers of all audits are aligned on the right.
    room = width - len(right)
    if len(text) + 2 > room:
        return text.append("\n" + " " * room + right)
    return text.append(" " * (room - len(text)) + right)


def _traced(result: AuditResult) -> list[Fact]:
    """Return facts about the trace of a result.

    They are its scope, unless ``at_most`` states it, the lines of code with noise, and
    the code that it does not understand.
    """
    trace = trace_of(result)
    if trace is None:
        return []
    notes = []
    if not at_most(result):
        notes.append(Fact("traced", trace_scope(trace), Tone.QUIET))
    if trace.lines:
        table = aligned([columns(result.claim), *rows(trace.lines)], longest=40)
        notes.append(Fact("releases", "\n".join(table), Tone.QUIET))
    return notes + [Fact("opaque", reason, Tone.QUIET) for reason in trace.opaque]


def _note(fact: Fact, width: int, *, indent: int = INDENT) -> Text:
    """Return a fact as text: its label, and its text wrapped to ``width``.

    Commands and Python code are not wrapped, so that they can be copied.
    """
    start = "\n" + " " * (indent + LABEL)
    room = max(width - indent - LABEL, 1)
    value = fact.text
    if fact.label != "reproduce":
        value = shorten(value, LONGEST)
    lines = []
    for paragraph in printable(value.strip(), keep="\n").split("\n"):
        if fact.label in CODE and fact.label not in ("pair", "output"):
            lines.append(paragraph)
            continue
        # The rows of a table are indented, and their continuation more than they are.
        hanging = ""
        if paragraph[:1] == " " and room > 3 * INDENT:
            hanging = "    "
        lines += textwrap.wrap(paragraph, room, subsequent_indent=hanging) or [""]
    note = Text().append(" " * indent + f"{fact.label:<{LABEL - 1}} ", style="dim")
    return note.append(start.join(lines), style=fact.tone or "none")


def _alpha(record: RunRecord) -> str:
    shares: dict[str, list[float]] = {}
    # Shares are listed by purpose, since each audit has one of each.
    for entry in record.alpha_ledger:
        shares.setdefault(entry.purpose, []).append(entry.alpha)
    if not shares:
        return "0: no finding of this run rests on chance"
    total = bound(math.fsum(entry.alpha for entry in record.alpha_ledger), up=True)
    parts = [
        f"{number(sum(each))} shared by {count(len(each), 'audit')} for {purpose}"
        for purpose, each in shares.items()
    ]
    return f"the probability that this run has any wrong finding is at most {total} ({'; '.join(parts)})"


def _write(text: Text, colour: bool) -> str:
    """Return the text as a string, with ANSI colours or without; nothing is wrapped."""
    if not colour:
        return without_commands(text.plain)
    # Rich would query the terminal for properties that are not given.
    console = Console(
        file=io.StringIO(), force_terminal=True, color_system="standard", width=10_000
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
"""Largest number of listed differences of each kind that needs no action.

Of other kinds all differences are listed.
"""


def differences_text(
    differences: Sequence[Difference],
    *,
    known: int,
    against: str,
    found_it: str = "",
    width: int = 100,
) -> str:
    """Return the differences from a baseline as text; the last sentence counts them.

    Args:
        differences: The differences, worst first.
        known: Number of audits in the baseline.
        against: Name of the baseline, or of the run or revision in its place.
        found_it: Sentence about the losses that the run would have found. It is printed
            if nothing is worse.
        width: Columns of the terminal.
    """
    lines = []
    listed: Counter[Kind] = Counter()
    for difference in differences:
        kind = difference.kind
        listed[kind] += 1
        # Nobody has to act on these kinds, so a few examples are enough.
        if listed[kind] > MOST_DIFFERENCES.get(kind, len(differences)):
            continue
        lines.append(f"{kind.value:<18} {printable(difference.audit)}")
        text = textwrap.wrap(printable(difference.text), width - INDENT)
        lines += [" " * INDENT + row for row in text]
        if kind in FINDINGS and difference.result is not None:
            command = shell(difference.result.reproduce)
            lines += filter(None, [between("    reproduce: ", command)])
    closing = verdict(differences, known=known, against=against, found_it=found_it)
    lines += [""] * bool(lines) + textwrap.wrap(printable(closing), width)
    return terminal("\n".join(lines))


def verdict(
    differences: Sequence[Difference], *, known: int, against: str, found_it: str = ""
) -> str:
    """Return a sentence with the numbers of audits and of differences of each kind.

    Args:
        differences: The differences from a baseline.
        known: Number of audits in the baseline.
        against: Name of the baseline, or of the run or revision in its place.
        found_it: Phrase that is added if nothing is worse; empty for none.
    """
    counts = Counter(difference.kind for difference in differences)
    numbers = ", ".join(f"{counts[kind]} {kind.value}" for kind in Kind if counts[kind])
    audits = f"{count(known, 'audit')} in {against}"
    if counts.keys() & {*FINDINGS, Kind.CRASHED, *REGRESSIONS}:
        return f"{audits}: {numbers}"
    beside = between(" (", numbers, ")") + between("; ", found_it)
    return f"{audits}: nothing worse was found{beside}"
