"""Workflow commands of GitHub Actions: a line of output for each finding, shown at the mechanism's own line.

GitHub shows ten of each level for a step (docs.github.com, "Workflow commands for GitHub Actions" and the limits of
annotations), so the worst come first and a last one says how many were left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from auditdp.history.baseline.differences import Difference
from auditdp.record.results import RunRecord
from auditdp.report.ci.judged import Judged, Level, judged, place, worst_first
from auditdp.report.ci.sarif import message
from auditdp.report.standing import crowded, self_reported
from auditdp.report.text import workflow

COMMANDS = {
    Level.UNCONFIRMED: "error",
    Level.FINDING: "error",
    Level.CRASHED: "error",
    Level.REGRESSED: "warning",
    Level.UNDECIDED: "notice",
    Level.ACCEPTED: "notice",
}
MOST = 10


def commands(record: RunRecord, differences: Sequence[Difference] | None = None) -> str:
    """Return the commands, worst first; empty where everything is as declared."""
    lines = []
    audits = worst_first(judged(record, differences))
    for command in dict.fromkeys(COMMANDS.values()):
        of = [item for item in audits if COMMANDS.get(item.level) == command]
        shown = of if len(of) <= MOST else of[: MOST - 1]
        lines += [_line(command, item) for item in shown]
        if len(of) > len(shown):
            lines.append(f"::{command} title=auditdp::{len(of) - len(shown)} more are in the run's report")
    if own := self_reported(record):
        lines.append(f"::notice title=auditdp::Self-reported: {own}")
    if many := crowded(record):
        lines.append(f"::notice title=auditdp::{workflow(many)}")
    return "".join(f"{line}\n" for line in lines)


def _line(command: str, item: Judged) -> str:
    where = place(item.result)
    properties = {"file": where.file, "line": str(where.line)} if where is not None else {}
    properties["title"] = f"{item.level.value}: {item.audit.rpartition('::')[2]}"
    texts = {name: workflow(text).replace(":", "%3A").replace(",", "%2C") for name, text in properties.items()}
    parts = ",".join(f"{name}={text}" for name, text in texts.items())
    return f"::{command} {parts}::{workflow(message(item))}"
