"""Workflow commands of GitHub Actions: a line of output for each finding, shown at the mechanism's own line.

GitHub shows ten of each level for a step (docs.github.com, "Workflow commands for GitHub Actions" and the limits of
annotations), so the worst come first and a last one says how many were left out.

A run as a comment on a pull request: what is new first, everything else folded, and never too long for GitHub.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from auditdp.record.differences import Difference, Kind
from auditdp.record.results import AuditResult, RunRecord
from auditdp.report.guesses import SIGNS, guessing, said
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
    shell,
    shorten,
    table,
    workflow,
)
from auditdp.report.sentences import (
    crowded,
    detectable,
    headline,
    run_meaning,
    self_reported,
)

COMMANDS = {
    Level.UNCONFIRMED: "error",
    Level.FINDING: "error",
    Level.CRASHED: "error",
    Level.REGRESSED: "warning",
    Level.UNDECIDED: "notice",
    Level.ACCEPTED: "notice",
}
MOST_ANNOTATIONS = 10


def commands(record: RunRecord, differences: Sequence[Difference] | None = None) -> str:
    """Return the commands, worst first; empty where everything is as declared."""
    lines = []
    audits = worst_first(judged(record, differences))
    for command in dict.fromkeys(COMMANDS.values()):
        of = [item for item in audits if COMMANDS.get(item.level) == command]
        shown = of if len(of) <= MOST_ANNOTATIONS else of[: MOST_ANNOTATIONS - 1]
        lines += [_line(command, item) for item in shown]
        if len(of) > len(shown):
            lines.append(
                f"::{command} title=auditdp::{len(of) - len(shown)} more are in the run's report"
            )
    if own := self_reported(record):
        lines.append(f"::notice title=auditdp::Self-reported: {own}")
    if many := crowded(record):
        lines.append(f"::notice title=auditdp::{workflow(many)}")
    return "".join(f"{line}\n" for line in lines)


def _line(command: str, item: Judged) -> str:
    where = place(item.result)
    properties = (
        {"file": where.file, "line": str(where.line)} if where is not None else {}
    )
    properties["title"] = f"{item.level.value}: {item.audit.rpartition('::')[2]}"
    texts = {
        name: workflow(text).replace(":", "%3A").replace(",", "%2C")
        for name, text in properties.items()
    }
    parts = ",".join(f"{name}={text}" for name, text in texts.items())
    return f"::{command} {parts}::{workflow(message(item))}"


MOST_COMMENT = 65_536
"""Characters that GitHub takes in a comment."""
MARK = "<!-- auditdp -->"
"""First line of a comment, by which the next run finds it again."""
LONG = 600
"""Characters of a pair or an explanation that are shown."""
HEADINGS = {
    Level.UNCONFIRMED: "Refuted, and not confirmed",
    Level.FINDING: "Findings",
    Level.CRASHED: "Crashed, so nothing was found out",
    Level.REGRESSED: "Weaker than the baseline",
    Level.UNDECIDED: "Undecided or skipped",
}
COLUMNS = ("audit", "claim", "verdict", "found", "power")


def pull_request(
    record: RunRecord, differences: Sequence[Difference] | None = None
) -> str:
    """Return the comment, in GitHub's Markdown."""
    audits = judged(record, differences)
    parts = [
        MARK,
        f"### Privacy audits: {_title(audits, record, differences is not None)}",
        "",
    ]
    end = ["", _footer(record)]
    room = (
        MOST_COMMENT - sum(len(part) + 1 for part in (*parts, *end)) - 200
    )  # for what says that something was left out
    body: list[str] = []
    left_out = 0
    for lines in _sections(audits, differences, record):
        text = "\n".join(lines)
        if left_out or len(text) + 1 > room:
            left_out += 1
            continue
        body.append(text)
        room -= len(text) + 1
    if left_out:
        body.append(
            f"\n*{count(left_out, 'part')} left out, for want of room: the report of the run has all of it.*"
        )
    return "\n".join([*parts, *body, *end]) + "\n"


def _title(audits: Sequence[Judged], record: RunRecord, with_baseline: bool) -> str:
    counts = Counter(item.level for item in audits)
    beside = [
        (counts[Level.REGRESSED], f"▼ {counts[Level.REGRESSED]:,} weaker"),
        (counts[Level.ACCEPTED], count(counts[Level.ACCEPTED], "accepted finding")),
    ]
    found, new = counts[Level.FINDING], "new " if with_baseline else ""
    return f"{'✕ ' * bool(found)}{headline(record, *(text for many, text in beside if many), findings=found, new=new)}"


def _sections(
    audits: Sequence[Judged],
    differences: Sequence[Difference] | None,
    record: RunRecord,
) -> list[list[str]]:
    """What the comment consists of, most important first, in parts that are shown whole or not at all."""
    sections: list[list[str]] = []
    for level, heading in HEADINGS.items():
        of = [item for item in audits if item.level is level]
        short = level is Level.UNDECIDED
        for k, item in enumerate(of):
            sections.append(
                [
                    *([f"#### {heading}", ""] if k == 0 else []),
                    *(_pull_request_line(item) if short else _whole(item)),
                ]
            )
    better = [d for d in differences or () if d.kind in (Kind.STRONGER, Kind.NEW)]
    for k, d in enumerate(better, 1):
        head = ["#### New and stronger audits", ""] * (k == 1)
        sections.append(
            [
                *head,
                f"- {markdown_code(d.audit)}: {markdown(d.text)}",
                *[""] * (k == len(better)),
            ]
        )
    sections += _other_laws(differences or ())
    if accepted := [item for item in audits if item.level is Level.ACCEPTED]:
        lines = [
            f"- {markdown_code(item.audit)}: {markdown(' '.join(item.reasons))}"
            for item in accepted
        ]
        sections.append(_folded(f"{count(len(accepted), 'accepted finding')}", lines))
    if rows := [_row(result) for result in record.results]:
        sections.append(
            _folded(f"All {count(len(rows), 'audit')}", table(COLUMNS, rows))
        )
    return sections


def _other_laws(differences: Sequence[Difference]) -> list[list[str]]:
    """Return the mechanisms that release otherwise than another revision, and what was not compared: no reason to fail."""
    kinds = (Kind.LAW, Kind.DRAWS, Kind.NOT_COMPARED)
    rows = [
        f"- {markdown_code(d.audit)}: {markdown(shorten(d.text, LONG))}"
        for d in differences
        if d.kind in kinds
    ]
    return [["#### Released otherwise, or not compared", "", *rows, ""]] if rows else []


def _whole(item: Judged) -> list[str]:
    result, lines = item.result, [f"**{markdown_code(item.audit)}**{_where(item)}", ""]
    lines += [f"- {markdown(shorten(reason, LONG))}" for reason in item.reasons]
    if result is not None and item.level is Level.FINDING:
        if result.claim is not None:
            lines.append(
                f"- claim: {markdown(result.claim.text)} ({markdown(result.claim.adjacency)}); found: {bounds(result)}"
            )
        lines += [
            f"- read off the code: {markdown(shorten(each, LONG))}"
            for each in said(result)
        ]
        if (found := result.counterexample) is not None:
            lines += (
                [f"- in short: {markdown(sentence)}"]
                if (sentence := guessing(result))
                else []
            )
            shown = found.python.splitlines() or [shorten(found.pair, LONG)]
            lines += [f"- pair: {markdown_code(line)}" for line in shown]
            lines += (
                [f"- output: {markdown_code(shorten(found.output, LONG))}"]
                if found.output
                else []
            )
            lines.append(f"- {markdown(shorten(found.explanation, LONG))}")
        lines += (
            [f"- reproduce: {markdown_code(command)}"]
            if (command := shell(result.reproduce))
            else []
        )
    return [*lines, ""]


def _pull_request_line(item: Judged) -> list[str]:
    verdict = item.result.verdict.value if item.result is not None else ""
    return [
        f"- {markdown_code(item.audit)} {verdict}: {markdown(shorten(' '.join(item.reasons), LONG))}",
        "",
    ]


def _where(item: Judged) -> str:
    found = place(item.result)
    return (
        f" at {markdown_code(f'{found.file}:{found.line}')}"
        if found is not None
        else ""
    )


def _row(result: AuditResult) -> list[str]:
    claim = markdown(result.claim.text) if result.claim is not None else ""
    verdict = f"{SIGNS[result.verdict]} {result.verdict.value.replace('_', ' ')}"
    return [
        markdown(result.id),
        claim,
        verdict,
        bounds(result),
        markdown(detectable(result).partition(" (")[0]),
    ]


def _folded(title: str, rows: Sequence[str]) -> list[str]:
    return [f"<details><summary>{title}</summary>", "", *rows, "", "</details>", ""]


def _footer(record: RunRecord) -> str:
    alpha = number(sum(entry.alpha for entry in record.alpha_ledger))
    about = f"α = {alpha} for the whole run · root seed {record.root_seed} · {markdown(record.revision or 'no revision')}"
    own = f" Self-reported: {sentence}." if (sentence := self_reported(record)) else ""
    own += f" Many audits: {sentence}." if (sentence := crowded(record)) else ""
    return f"<sub>{markdown(run_meaning(record) + own)}<br>{about}</sub>"
