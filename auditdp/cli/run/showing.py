"""What a run prints while it goes on: a line for each result, above a line that says how far it is."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Self

import typer
from rich.console import Console
from rich.text import Text

from auditdp.cli.common import columns
from auditdp.cli.ending import on_output
from auditdp.record.results import AuditResult, RunRecord, Verdict
from auditdp.report.terminal import run as terminal
from auditdp.report.terminal.progress import Watch
from auditdp.report.terminal.screen import coloured
from auditdp.report.text import terminal as safe

LAST_LINES = 5
"""Lines that are shown of what was printed by an audit that ended in an error."""


class Shown:
    """Prints the results of a run.

    Args:
        ids: The audits that are to be run, in order.
        silent: Whether standard output is for something else.
        quiet: Whether only what has to be looked at is printed.
        verbose: Whether what audits printed is printed too.
        before: Seconds that audits took in the last run, by id.
    """

    def __init__(
        self, ids: Sequence[str], *, silent: bool, quiet: bool, verbose: bool, before: Mapping[str, float]
    ) -> None:
        self._ids, self._silent, self._quiet, self._verbose = ids, silent, quiet, verbose
        self._before = before
        # On a terminal the watch and the lines share one console, which keeps them apart; else the watch is elsewhere.
        self._together = not silent and sys.stdout.isatty()
        self._console = Console() if self._together else Console(stderr=True)

    @contextmanager
    def working(self, workers: int) -> Iterator[Self]:
        """Show how far the run is meanwhile."""
        with Watch(self._ids, self._console, workers=workers, before=self._before) as self._watch:
            yield self

    def begin(self, record: RunRecord, before: Sequence[AuditResult]) -> None:
        """Print the seed, files that could not be collected, and what an interrupted run had found."""
        if self._silent:
            return
        with on_output():
            if not self._quiet:
                typer.echo(f"root seed {record.root_seed}")
            if before:
                typer.echo(f"finished before the interruption: {len(before)}")
        for result in [*record.results, *before]:
            self._print(result)

    def add(self, result: AuditResult) -> None:
        """Print a result."""
        self._watch.finished(result)
        if not self._silent:
            self._print(result)

    def _print(self, result: AuditResult) -> None:
        if self._quiet and not (result.is_finding or result.verdict is Verdict.ERROR):
            return
        with on_output():
            line = terminal.line(result, colour=coloured(sys.stdout), width=columns())
            printed = [safe(text) for text in result.printed.splitlines()]
            if result.verdict is not Verdict.ERROR and not self._verbose:
                printed = []
            shown = printed if self._verbose else printed[-LAST_LINES:]
            for text in (line, *(f"    printed      {line}" for line in shown)):
                if self._together:
                    self._console.print(Text.from_ansi(text), soft_wrap=True, highlight=False)
                else:
                    typer.echo(text)
