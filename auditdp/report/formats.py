"""The formats of a report, under the names that the command line knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from auditdp.history.baseline.differences import Difference
from auditdp.record.results import RunRecord
from auditdp.report import ledger
from auditdp.report.ci import github, junit, pull_request, sarif
from auditdp.report.html import pages as html
from auditdp.report.targets import known_format
from auditdp.report.terminal import run as terminal

FORMATS: dict[str, Callable[[RunRecord], str]] = {
    "terminal": terminal.report,
    "json": RunRecord.to_json,
    "html": html.report,
    "claims": ledger.markdown,
    "claims-json": ledger.to_json,
}
JUDGED: dict[str, Callable[[RunRecord, Sequence[Difference] | None], str]] = {
    "junit": junit.junit,
    "sarif": sarif.sarif,
    "github": github.commands,
    "pull-request": pull_request.pull_request,
}
"""Formats that also say what a run changes of a baseline."""


def render(
    record: RunRecord,
    format: str,
    *,
    colour: bool = False,
    width: int = terminal.WIDTH,
    differences: Sequence[Difference] | None = None,
) -> str:
    """Return the record as text.

    Args:
        record: The log of a run, complete or not.
        format: A name in ``FORMATS`` or ``JUDGED``.
        colour: Whether a terminal shows colours; for no other format.
        width: Columns of the terminal.
        differences: What the run changes of a baseline, for the formats that say so; None where none judges it.

    Raises:
        ConfigurationError: If there is no such format.
    """
    known_format(format)
    if format in JUDGED:
        return JUDGED[format](record, differences)
    if format == "terminal":
        return terminal.report(record, colour=colour, width=width)
    return FORMATS[format](record)
