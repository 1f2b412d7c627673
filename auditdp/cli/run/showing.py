"""What a run prints while it goes on: a line for each result, above a line that says how far it is."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

import typer
from rich.console import Console
from rich.text import Text

from auditdp.cli.common import coloured, columns
from auditdp.cli.ending import on_output
from auditdp.cli.run.options import RunOptions
from auditdp.record.results import AuditResult, RunRecord, Verdict
from auditdp.report.terminal import run as terminal
from auditdp.report.terminal.progress import Watch
from auditdp.report.text import terminal as safe

LAST_LINES = 5
"""Lines that are shown of what was printed by an audit that ended in an error."""


@contextmanager
def importing(options: RunOptions) -> Iterator[None]:
    """Show on a terminal that audit files are imported, which can take longer than the audits; nothing elsewhere."""
    console = Console() if _is_shown_in_terminal(options) else Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status("importing audit files", spinner="line"):
        yield


def _is_shown_in_terminal(options: RunOptions) -> bool:
    """Whether results are printed line by line, to a terminal."""
    return options.output == "terminal" and sys.stdout.isatty()


class ProgressPrinter(ExitStack):
    """Prints the results of a run until it is left; ``before`` has how long audits took in the run before it."""

    def __init__(self, options: RunOptions, before: Mapping[str, float]) -> None:
        super().__init__()
        self._options, self._before = options, before
        self._silent = options.output != "terminal"
        # On a terminal the watch and the lines share one console, which keeps them apart; else the watch is elsewhere.
        self._together = _is_shown_in_terminal(options)
        self._console = Console() if self._together else Console(stderr=True)

    def begin(self, record: RunRecord, known: Sequence[AuditResult], waiting: Sequence[str], workers: int) -> None:
        """Print the seed, files that could not be collected, and the results that an interrupted run had."""
        self._watch = self.enter_context(Watch(waiting, self._console, workers=workers, before=self._before))
        if self._silent:
            return
        with on_output():
            if not self._options.quiet:
                typer.echo(f"root seed {record.root_seed}")
            if known:
                typer.echo(f"finished before the interruption: {len(known)}")
        for result in [*record.results, *known]:
            self._print(result)

    def finished(self, result: AuditResult) -> None:
        """Print an audit that has just been finished."""
        self._watch.finished(result)
        self._print(result)

    def _print(self, result: AuditResult) -> None:
        if self._silent or (self._options.quiet and not result.needs_a_look):
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
