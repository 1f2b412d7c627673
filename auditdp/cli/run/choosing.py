"""``auditdp run --changed-since``: which audits a change concerns, and what is said of the others."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import typer

from auditdp.cli.common import OK, REGRESSED, say
from auditdp.history.baseline.entries import below
from auditdp.runner.plan import Collector, discover
from auditdp.runner.sources.git import changed_since
from auditdp.runner.sources.selection import concerned

LISTED = 20
"""Audits and files that are listed by name."""


def changed_targets(
    targets: Sequence[str], keyword: str, revision: str, collect: Collector, known: Collection[str] = ()
) -> tuple[list[str], tuple[str, ...], str]:
    """Return the ids of the audits that a change concerns, with files that do not import; ids left out; and the commit.

    What is left out is said, with the reason; where nothing is left, the command ends, and nothing was found.

    Of the ``known`` ids of a baseline none may be gone where nothing is run.

    Raises:
        ConfigurationError: If git cannot tell what changed.
    """
    changed = changed_since(revision, Path.cwd())
    declared, failures = discover(targets, keyword, collect=collect)
    found = concerned([(item.id, Path(item.path)) for item in declared], changed, Path.cwd().resolve())
    say(f"since {revision} ({changed.base}): {len(found.concerned)} of {len(declared)} audits are concerned")
    _list([f"{name}: {reason}" for name, reason in found.concerned.items()], "run ")
    _list(found.left_out, "left out, since nothing that it reaches changed: ")
    _list(found.untraced, "changed, and not followed because it is not Python: ")
    if not found.concerned and not failures:
        among, there = below(targets), {item.id for item in declared}
        if gone := sorted(name for name in known if among(name) and name not in there and not keyword):
            _list(gone, "gone, and in the baseline: ")
            raise typer.Exit(REGRESSED)
        say("no audit is concerned, so none was run; without --changed-since all are")
        raise typer.Exit(OK)
    return [*found.concerned, *(path for path, _ in failures)], found.left_out, changed.base


def _list(items: Sequence[str], what: str) -> None:
    for item in items[:LISTED]:
        say(f"  {what}{item}")
    if len(items) > LISTED:
        say(f"  {what}{len(items) - LISTED} more")
