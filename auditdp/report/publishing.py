"""What a report in a file consists of; the one module here that reads the disk, for the record of the last report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from auditdp.doors import content_of
from auditdp.errors import ConfigurationError
from auditdp.history.baseline.differences import Difference
from auditdp.record.results import RunRecord
from auditdp.report.formats import render

FOLDER = "_audits"
"""What follows the name of an HTML report in that of the folder beside it, which holds a page for each audit."""


def report_files(
    record: RunRecord,
    name: str,
    path: Path,
    *,
    previous: RunRecord | None = None,
    differences: Sequence[Difference] | None = None,
) -> dict[Path, str]:
    """Return the text of every file of a report, in the order in which they are to be written.

    An HTML report has a folder beside it with a page for each audit and the record that it is made from: where the next
    report is made in its place, that is the last one.

    ``previous`` is the run of the last report, if not the one that lies at ``path``.

    Raises:
        ConfigurationError: If there is no such format.
    """
    if name != "html":
        return {path: render(record, name, differences=differences)}
    from auditdp.report.html import pages as html

    folder = path.stem + FOLDER
    previous = previous or _last(path.parent / folder / html.DATA)
    made = html.pages(record, index=path.name, folder=folder, previous=None if previous == record else previous)
    return {path.parent / file: text for file, text in made.items()}


def _last(path: Path) -> RunRecord | None:
    """The record of the last report; None where there is none that can be read, which is no reason to make no other."""
    try:
        return RunRecord.from_json(content_of(path))
    except (OSError, ValueError, ConfigurationError):
        return None
