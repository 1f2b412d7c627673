"""What a run prints while it goes on: a line for each result, above a line that says how far it is."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import ExitStack

import typer
from rich.console import Console
from rich.text import Text

from auditdp.cli.common import coloured, columns
from auditdp.cli.ending import on_output
from auditdp.cli.run.options import RunOptions
from auditdp.record.results import AuditResult, Verdict
from auditdp.report.terminal import run as terminal
from auditdp.report.terminal.progress import Watch
from auditdp.report.text import terminal as safe
from auditdp.runner.events import AuditFinished, Event, RunStarted

LAST_LINES = 5
"""Lines that are shown of what was printed by an audit that ended in an error."""


class ProgressPrinter(ExitStack):
    """Listens to a run, and prints its results."""

    def __init__(self, options: RunOptions, before: Mapping[str, float]) -> None:
        super().__init__()
        self._options, self._before = options, before
        self._silent = options.output != "terminal"
        # On a terminal the watch and the lines share one console, which keeps them apart; else the watch is elsewhere.
        self._together = not self._silent and sys.stdout.isatty()
        self._console = Console() if self._together else Console(stderr=True)

    def __call__(self, event: Event) -> None:
        """Print what has happened."""
        match event:
            case RunStarted():
                watch = Watch(event.waiting, self._console, workers=event.workers, before=self._before)
                self._watch = self.enter_context(watch)
                self._begin(event)
            case AuditFinished(result):
                self._watch.finished(result)
                self._print(result)

    def _begin(self, started: RunStarted) -> None:
        """Print the seed, files that could not be collected, and what an interrupted run had found."""
        if self._silent:
            return
        with on_output():
            if not self._options.quiet:
                typer.echo(f"root seed {started.record.root_seed}")
            if started.before:
                typer.echo(f"finished before the interruption: {len(started.before)}")
        for result in [*started.record.results, *started.before]:
            self._print(result)

    def _print(self, result: AuditResult) -> None:
        ordinary = not (result.is_finding or result.verdict is Verdict.ERROR)
        if self._silent or (self._options.quiet and ordinary):
            return
        with on_output():
            line = terminal.line(result, colour=coloured(sys.stdout), width=columns(), verbose=self._options.verbose)
            printed = [safe(text) for text in result.printed.splitlines()]
            if result.verdict is not Verdict.ERROR and not self._options.verbose:
                printed = []
            shown = printed if self._options.verbose else printed[-LAST_LINES:]
            for text in (line, *(f"    printed      {line}" for line in shown)):
                if self._together:
                    self._console.print(Text.from_ansi(text), soft_wrap=True, highlight=False)
                else:
                    typer.echo(text)
