"""Workflow commands of GitHub Actions, and the comment on a pull request.

A command is a line of output, which GitHub displays as an annotation at the line of the
mechanism. GitHub displays ten annotations of each level for a step (docs.github.com,
"Workflow commands for GitHub Actions" and the limits of annotations). So the worst
audits come first. If a level has more than ten, its last command states the number of
the others.

The comment begins with findings and other audits that need attention. Accepted findings
and the table of all audits are folded. It is never too long for GitHub.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from auditdp.record.differences import Difference, Kind
from auditdp.record.results import AuditResult, ClaimRecord, RunRecord
from auditdp.report.facts import CODE, SPELLED_OUT, Fact, facts
from auditdp.report.guesses import SIGNS
from auditdp.report.machine_readable import (
    Judged,
    Level,
    judged,
    message,
    place,
    worst_first,
)
from auditdp.report.numbers import bounds, count, number
from auditdp.report.plain_text import (
    markdown,
    markdown_code,
    shorten,
    table,
    workflow,
)
from auditdp.report.sentences import detectable, headline, remarks, run_meaning

COMMANDS = {
    Level.UNCONFIRMED: "error",
    Level.FINDING: "error",
    Level.CRASHED: "error",
    Level.REGRESSED: "warning",
    Level.UNDECIDED: "notice",
    Level.ACCEPTED: "notice",
}


class CommentLimits:
    """Limits of comments and annotations."""

    annotations = 10
    """Largest number of annotations of one level that GitHub displays for a step."""
    comment_characters = 65_536
    """Largest number of characters of a comment on GitHub."""
    long_text = 600
    """Largest number of characters of a reason, difference or fact in a comment."""


MARK = "<!-- auditdp -->"
"""First line of a comment, by which a later run recognises it."""


def commands(record: RunRecord, differences: Sequence[Difference] | None = None) -> str:
    """Return the workflow commands, one on each line, the worst audits first.

    Audits that ended as declared have no command. Remarks on the run come last.

    Args:
        record: The run.
        differences: Its differences from a baseline, or None if there is no baseline.
    """
    lines = []
    audits = worst_first(judged(record, differences))
    for command in dict.fromkeys(COMMANDS.values()):
        of_level = [item for item in audits if COMMANDS.get(item.level) == command]
        listed = of_level[: CommentLimits.annotations]
        if len(of_level) > CommentLimits.annotations:
            listed.pop()
        lines += [_command(command, item) for item in listed]
        # GitHub would drop further commands without a remark.
        rest = len(of_level) - len(listed)
        if rest:
            lines.append(
                f"::{command} title=auditdp::{rest} more are in the run's report"
            )
    for label, sentence in remarks(record).items():
        text = workflow(f"{label.capitalize()}: {sentence}")
        lines.append(f"::notice title=auditdp::{text}")
    return "".join(f"{line}\n" for line in lines)


def _command(command: str, item: Judged) -> str:
    properties = {}
    where = place(item.result)
    if where is not None:
        properties = {"file": where.file, "line": str(where.line)}
    properties["title"] = f"{item.level.value}: {item.audit.rpartition('::')[2]}"
    parts = []
    # Colons and commas separate the properties.
    for name, value in properties.items():
        text = workflow(value).replace(":", "%3A").replace(",", "%2C")
        parts.append(f"{name}={text}")
    return f"::{command} {','.join(parts)}::{workflow(message(item))}"


HEADINGS = {
    Level.UNCONFIRMED: "Refuted, and not confirmed",
    Level.FINDING: "Findings",
    Level.CRASHED: "Crashed, so nothing is known",
    Level.REGRESSED: "Weaker than the baseline",
    Level.UNDECIDED: "Undecided or skipped",
}
COLUMNS = ("audit", "claim", "verdict", "found", "power")


def pull_request(
    record: RunRecord, differences: Sequence[Difference] | None = None
) -> str:
    """Return the comment on a pull request, in GitHub's Markdown.

    If it would be too long, the least important parts are left out.

    Args:
        record: The run.
        differences: Its differences from a baseline, or None if there is no baseline.
    """
    audits = judged(record, differences)
    title = _title(audits, record, differences is not None)
    end = ["", _footer(record)]
    parts = [MARK, f"### Privacy audits: {title}", ""]
    # The remark on parts that were left out takes less than 200 characters.
    room = (
        CommentLimits.comment_characters
        - sum(len(part) + 1 for part in (*parts, *end))
        - 200
    )
    left_out = 0
    for lines in _sections(audits, differences or (), record):
        text = "\n".join(lines)
        # A negative room stays negative, so that no part follows one that was left out.
        room -= len(text) + 1
        if room < 0:
            left_out += 1
        else:
            parts.append(text)
    if left_out:
        parts.append(
            f"\n{count(left_out, 'part')} left out for want of space; the report of the run has all parts."
        )
    return "\n".join([*parts, *end]) + "\n"


def _title(audits: Sequence[Judged], record: RunRecord, with_baseline: bool) -> str:
    counts = Counter(item.level for item in audits)
    weaker, accepted = counts[Level.REGRESSED], counts[Level.ACCEPTED]
    beside = []
    if weaker:
        beside = [f"▼ {weaker:,} weaker"]
    beside += [count(accepted, "accepted finding")] if accepted else []
    findings = counts[Level.FINDING]
    new = ""
    if with_baseline:
        new = "new "
    return "✕ " * bool(findings) + headline(record, *beside, findings=findings, new=new)


def _sections(
    audits: Sequence[Judged], differences: Sequence[Difference], record: RunRecord
) -> Iterator[list[str]]:
    """Yield the parts of the comment as lists of lines, most important first.

    Their total length is not limited here.
    """
    for level, heading in HEADINGS.items():
        head = [f"#### {heading}", ""]
        # The heading stands before the first audit of the level alone.
        for item in audits:
            if item.level is level:
                yield [*head, *_item(item)]
                head = []
    improved = (Kind.STRONGER, Kind.NEW)
    yield from _listed("New and stronger audits", differences, improved)
    changed_laws = (Kind.LAW, Kind.DRAWS, Kind.NOT_COMPARED)
    yield from _listed(
        "Other releases than before, or not compared", differences, changed_laws
    )
    accepted = [
        f"- {markdown_code(item.audit)}: {markdown(' '.join(item.reasons))}"
        for item in audits
        if item.level is Level.ACCEPTED
    ]
    if accepted:
        yield _folded(count(len(accepted), "accepted finding"), accepted)
    rows = [_row(result) for result in record.results]
    if rows:
        yield _folded(f"All {count(len(rows), 'audit')}", table(COLUMNS, rows))


def _listed(
    heading: str, differences: Sequence[Difference], kinds: Sequence[Kind]
) -> Iterator[list[str]]:
    rows = [
        f"- {markdown_code(each.audit)}: {markdown(shorten(each.text, CommentLimits.long_text))}"
        for each in differences
        if each.kind in kinds
    ]
    if rows:
        yield [f"#### {heading}", "", *rows, ""]


def _item(item: Judged) -> list[str]:
    result = item.result
    audit = markdown_code(item.audit)
    if item.level is Level.UNDECIDED:
        verdict = ""
        if result:
            verdict = result.verdict.value
        why = markdown(shorten(" ".join(item.reasons), CommentLimits.long_text))
        return [f"- {audit} {verdict}: {why}", ""]
    where = place(result)
    at = ""
    if where:
        at = f" at {markdown_code(f'{where.file}:{where.line}')}"
    lines = [f"**{audit}**{at}", ""]
    lines += [
        f"- {markdown(shorten(reason, CommentLimits.long_text))}"
        for reason in item.reasons
    ]
    if result is not None and item.level is Level.FINDING:
        lines += chain.from_iterable(map(_spelled_out, facts(result)))
    return [*lines, ""]


def _spelled_out(fact: Fact) -> list[str]:
    if fact.label not in SPELLED_OUT:
        return []
    # Commands and pairs as Python are copied, so they are not cut.
    if fact.label == "as Python":
        return [f"- as Python: {markdown_code(row)}" for row in fact.text.splitlines()]
    if fact.label in ("reproduce", "next"):
        return [f"- {fact.label}: {markdown_code(fact.text)}"]
    text = shorten(fact.text, CommentLimits.long_text)
    if fact.label in CODE:
        return [f"- {fact.label}: {markdown_code(text)}"]
    return [f"- {fact.label}: {markdown(text)}"]


def _row(result: AuditResult) -> list[str]:
    claim = result.claim or ClaimRecord("", "", "")
    return [
        markdown(result.id),
        markdown(claim.text),
        f"{SIGNS[result.verdict]} {result.verdict.value.replace('_', ' ')}",
        bounds(result),
        markdown(detectable(result).partition(" (")[0]),
    ]


def _folded(title: str, rows: Sequence[str]) -> list[str]:
    return [f"<details><summary>{title}</summary>", "", *rows, "", "</details>", ""]


def _footer(record: RunRecord) -> str:
    alpha = number(sum(entry.alpha for entry in record.alpha_ledger))
    revision = markdown(record.revision or "no revision")
    text = run_meaning(record)
    for label, sentence in remarks(record).items():
        text += f" {label.capitalize()}: {sentence}."
    return (
        f"<sub>{markdown(text)}<br>α = {alpha} for the whole run · root seed "
        f"{record.root_seed} · {revision}</sub>"
    )
