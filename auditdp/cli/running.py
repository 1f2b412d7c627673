"""``auditdp run``, from its options to its exit code.

``carry_out`` has the steps in order. ``_Run`` has the results, the log and the exit
code of the run. ``ProgressPrinter`` prints the results while the run goes on.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.text import Text

from auditdp.cli.common import (
    ExitCode,
    OutputError,
    coloured,
    columns,
    interruptible,
    on_output,
    print_report,
    read_run,
    sandbox,
    say,
    tell,
)
from auditdp.cli.project import settings
from auditdp.cli.run_options import RunOptions
from auditdp.cli.run_scope import (
    Continuation,
    against_baseline,
    against_revision,
    changed_targets,
    code_of,
    continuation,
    exit_code,
)
from auditdp.errors import ConfigurationError, StoppedError
from auditdp.files import write_together
from auditdp.record.baseline import read_baseline
from auditdp.record.budget import Budget
from auditdp.record.differences import Difference
from auditdp.record.results import AuditResult, RunRecord, Verdict
from auditdp.report import terminal
from auditdp.report.formats import format_of, render, report_files
from auditdp.report.plain_text import terminal as safe
from auditdp.report.progress_bar import Watch
from auditdp.report.sentences import assurance, run_meaning
from auditdp.report.terminal import differences_text
from auditdp.runner.changes import checked_out
from auditdp.runner.log import Log, RecordingError
from auditdp.runner.machines import Shard
from auditdp.runner.plan import Against, Plan, PlanOptions, Task, make_plan
from auditdp.runner.pool import Workers
from auditdp.runner.run_record import header, now, read_log, resumable

if TYPE_CHECKING:
    from auditdp.runner.machines import Remote


def carry_out(asked: RunOptions) -> None:
    """Collect, run, record and report the audits.

    Raises:
        Exit: With the exit code of the run, at the end.
        ConfigurationError: If an option or a setting is invalid, or a report could not
            be written.
    """
    configuration = settings(asked.profile)
    asked = asked.completed(configuration)
    baseline = Path(configuration.baseline)
    # A baseline that cannot be read is refused before anything runs.
    known = read_baseline(baseline) if asked.check else None
    going_on = continuation(asked) if asked.continued else None
    asked = going_on.asked if going_on is not None else asked
    part = asked.part
    last = (
        read_log(asked.log_path)
        if asked.resume
        else read_run(asked.log_path)
        if asked.last_failed
        else None
    )
    taken = {}
    if last is not None and asked.resume and not asked.last_failed:
        asked = asked.resumed(last)
        names = ("changed_since", "left_out", "among")
        taken = {name: last.arguments[name] for name in names if name in last.arguments}
    reports, count, overrides, since = (
        asked.reports,
        asked.count,
        asked.overrides,
        asked.base,
    )
    format_of(asked.output)
    root_seed = _root_seed(asked, configuration.seed)
    targets = asked.targets(configuration, last)
    if asked.last_failed and not targets:
        say(f"no audit in {asked.log_path} has to be repeated{_unfinished(last)}")
        raise typer.Exit(ExitCode.NOTHING)

    held = sandbox(configuration, asked.sandbox, network=asked.network)
    limits: dict[str, Any] = {
        "limit": asked.import_limit,
        "memory": asked.memory,
        "sandbox": held,
    }
    with interruptible(), ExitStack() as open_:
        cluster = None
        if asked.cluster:
            from auditdp.runner.machines import Cluster

            cluster = open_.enter_context(Cluster(asked.cluster, say=say))
        with Workers(
            overrides=overrides, count=count, on_print=_say_printed, **limits
        ) as processes:
            against, changed = None, dict[str, Any]()
            with importing(asked):
                if since:
                    targets, against, changed = _changed(
                        asked, since, targets, known or (), processes, open_
                    )
                options = asked.plan(configuration, root_seed, against)
                plan = _plan(targets, options, asked.keyword, going_on, processes)
            arguments = asked.recorded(plan, targets, configuration) | taken | changed
            start = header(
                plan, arguments, root_seed, sources=processes.sources, sandbox=str(held)
            )
            own = plan.tasks if part is None else part.own(plan.tasks)
            run = _Run(asked, plan, start, going_on, own, part)
            run.begin()
            run.go_on(
                cluster.executor(run.start, sorted(processes.sources), **limits)
                if cluster
                else processes
            )
        found = against_baseline(run.record, known) if known is not None else None
        if known is None and asked.compare:
            found = against_revision(run.record)
        run.publish(reports, found)
    if found is None:
        raise typer.Exit(run.exit_code())
    which = str(baseline) if known is not None else asked.compare
    number = len(known) if known is not None else run.record.planned
    # Without --quiet, the summary states this.
    seen = assurance(run.record) if asked.quiet else ""
    text = differences_text(
        found, known=number, against=which, found_it=seen, width=columns()
    )
    raise typer.Exit(run.judged(found, text, alone=known is None))


def _unfinished(last: RunRecord | None) -> str:
    """Return a note about audits without a result; empty if all have one."""
    if last is None or not last.missing:
        return ""
    what = f"; {len(last.missing)} of its {last.planned} audits have no result yet"
    return f"{what}: the run goes on, or was interrupted and is continued with --resume"


def _root_seed(asked: RunOptions, of_settings: int | None) -> int:
    seed = asked.seed if asked.seed is not None else of_settings
    if asked.shard and seed is None:
        raise ConfigurationError(
            "--shard needs --seed, the same one for all shards, so that they are one run"
        )
    return seed if seed is not None else secrets.randbelow(2**32)


def _say_printed(path: Path, text: str) -> None:
    say(f"{path} printed while it was imported:\n{text.rstrip()}")


def _changed(
    asked: RunOptions,
    since: str,
    among: Sequence[str],
    known: Collection[str],
    processes: Workers,
    open_: ExitStack,
) -> tuple[list[str], Against | None, dict[str, Any]]:
    """Return the targets that changes since a revision affect, and facts about them.

    Args:
        asked: The options of the run.
        since: The revision.
        among: The targets of the run, from which the changed ones are chosen.
        known: Ids of the baseline.
        processes: The workers, which collect the audits.
        open_: The stack that removes the checkout of the revision when it is closed.

    Returns:
        The targets; the checked-out revision if ``--compare`` is given, else None; and
        arguments for the record of the run.

    Raises:
        Exit: If no audit is affected and every file imports.
        ConfigurationError: If git cannot determine the changes, or a target or the
            keyword is invalid.
    """
    targets, left_out, commit = changed_targets(
        among, asked.keyword, since, processes.collect, known
    )
    kept = {"changed_since": since, "left_out": list(left_out), "among": list(among)}
    if not asked.compare:
        return targets, None, kept
    tree = open_.enter_context(checked_out(commit, Path.cwd()))
    return targets, Against(f"{since} ({commit})", commit, str(tree)), kept


def _plan(
    targets: Sequence[str],
    options: PlanOptions,
    keyword: str,
    going_on: Continuation | None,
    processes: Workers,
) -> Plan:
    """Return the plan of the run; it continues the game of ``going_on``, if given.

    Raises:
        Exit: If there is nothing to run, after a message.
        ConfigurationError: If a target, an option or the keyword is invalid.
    """
    plan = make_plan(targets, options, collect=processes.collect, keyword=keyword)
    if going_on is not None:
        plan = going_on.of(plan)
    if not plan.tasks and not plan.failures:
        where = ", ".join(targets) + (f" that match -k {keyword!r}" if keyword else "")
        say(
            f"no audits found; expected audit_*.py files with @audit functions in {where}"
        )
        raise typer.Exit(ExitCode.NOTHING)
    fault = Budget.read(plan.tasks[0].budget).fault if plan.tasks else None
    if fault is not None:
        say(
            f"every game has enough calls to find {fault.description}, with probability 9 in 10"
        )
    return plan


@dataclass
class _Run:
    """One run: its results so far, its log and its exit code.

    Results are kept in memory as well, so that verdicts do not depend on the log.
    """

    asked: RunOptions
    plan: Plan
    start: RunRecord
    """The record at the start, with an ERROR for each file that was not collected."""
    going_on: Continuation | None
    """The game that ``--continue`` continues; None without this option."""
    own: Sequence[Task]
    """The tasks of this run: those of its shard, or all."""
    part: Shard | None = None
    """The shard of the run; None for the whole run."""
    results: dict[str, AuditResult] = field(default_factory=dict)
    """Results by the ids of their audits."""
    status: str = "complete"
    code: int | None = None
    """The exit code if the run failed or was interrupted; it overrides all others."""
    seconds: float = 0.0
    finished: str = ""
    """The time of the end, which the log and all reports state."""
    resumes_whole: bool = True
    """False if a resumed log has lines that do not count."""

    def begin(self) -> None:
        """Open the log, and begin a new run in it.

        With ``--resume``, continue the interrupted run and take over its results.

        Raises:
            ConfigurationError: If the interrupted run had other options, code or
                versions.
        """
        self.log = Log(self.asked.log_path)
        before = self.log.before
        if self.going_on is not None:
            # ``Log.start`` copies the log to this name, and the header states it.
            self.start = self.going_on.stated(self.start, kept=self.log.free_name())
        if self.asked.resume and before is not None:
            for problem in before.problems:
                say(problem)
            self.resumes_whole = before.is_whole
            resumable(before.record, self.start)
            self.start = replace(
                self.start, run=before.record.run, started=before.record.started
            )
            planned = {task.id for task in self.plan.tasks}
            self.results = {
                result.id: result
                for result in before.record.results
                if result.id in planned
            }
            if (changed := self.log.resume(before)) is not None:
                say(f"the log as it was found is kept: {changed}")
        elif (
            kept := self.log.start(
                self.start, keep=self.going_on is not None and self.going_on.keep
            )
        ) is not None:
            what = f"{self.log.held}, kept as"
            if self.going_on is not None:
                what = "the run that is continued, which is kept as"
            elif before is not None:
                what = (
                    f"{self.log.held}, which is kept: continue it with --resume --log"
                )
            say(
                f"the log had {what} {os.path.relpath(kept) if self.going_on else kept}"
            )
        self.durations = (
            {result.id: result.seconds for result in before.record.results}
            if before is not None
            else {}
        )
        self.began = time.perf_counter()

    def go_on(self, executor: Workers | Remote) -> None:
        """Run the unfinished tasks, log and print every result, and close the log.

        An interrupt or a failure ends the loop, and sets ``status`` and ``code``. With
        ``-x``, the first result that has to be looked at ends it, and sets ``status``.
        """
        tasks = [task for task in self.own if task.id not in self.results]
        try:
            with ProgressPrinter(self.asked, self.durations) as printer:
                printer.begin(
                    self.start,
                    list(self.results.values()),
                    [task.id for task in tasks],
                    executor.count,
                )
                for result in executor.run(tasks):
                    self.results[result.id] = result
                    # The log comes before printing, which may fail.
                    self.log.add(result)
                    printer.finished(result)
                    if self.asked.first and result.needs_a_look:
                        self.status = (
                            "complete"
                            if all(t.id in self.results for t in self.own)
                            else "interrupted"
                        )
                        break
        except KeyboardInterrupt:
            self.status, self.code = "interrupted", ExitCode.INTERRUPTED
            say(f"interrupted; {self._how_to_go_on()}")
        except OutputError as error:
            self.status, self.code = "interrupted", error.code
            say(f"error: {error}; {self._how_to_go_on()}")
        except StoppedError as error:
            self.status, self.code = "interrupted", ExitCode.CRASHED
            say(f"error: {error}")
        finally:
            self._end()

    def _how_to_go_on(self) -> str:
        if self.going_on is not None:
            return "the continued game is unchanged: give the same command again"
        return f"what was finished is in {self.asked.log_path}: continue with --resume"

    def _end(self) -> None:
        self.seconds = time.perf_counter() - self.began
        self.finished = now()
        if self.part is not None and self.status == "complete":
            self.status = self.part.status
        try:
            if self.log.end(self.status, self.seconds, self.finished):
                say(
                    f"the log {self.asked.log_path} was changed while the run went on, and was written anew"
                )
        except RecordingError as error:
            if self.code is None:
                say(f"error: {error}")
            self.code = ExitCode.CRASHED

    @property
    def record(self) -> RunRecord:
        """The record of the run so far, with results in the order of the plan."""
        found = [
            self.results[task.id] for task in self.plan.tasks if task.id in self.results
        ]
        results = self.start.results + found
        return replace(
            self.start,
            status=self.status,
            seconds=self.seconds,
            finished=self.finished,
            results=results,
        )

    def publish(
        self, reports: Sequence[tuple[str, Path]], found: Sequence[Difference] | None
    ) -> None:
        """Write the reports of ``--report``, then print the summary or ``--format``.

        Args:
            reports: (format, path) of each ``--report``.
            found: Differences from the baseline or the other revision; None if the run
                is compared with neither.

        Raises:
            ConfigurationError: If a report could not be written, after all others.
        """
        record, problems = self.record, []
        for name, path in reports:
            try:
                write_together(
                    report_files(record, name, path, differences=found),
                    below=path.parent,
                )
            except ConfigurationError as error:
                problems.append(str(error))
        try:
            with on_output():
                if self.asked.output != "terminal":
                    print_report(
                        render(record, self.asked.output, differences=found),
                        self.asked.output,
                    )
                elif not self.asked.quiet:
                    typer.echo(
                        terminal.summary(
                            record, colour=coloured(sys.stdout), width=columns()
                        )
                    )
        except OutputError as error:
            say(f"error: {error}; the run is in {self.asked.log_path}: auditdp report")
            self.code = self.code or error.code
        if self.asked.output != "terminal" and not record.audited:
            say(run_meaning(record))
        if problems:
            raise ConfigurationError(
                "; ".join(problems) + "; the run itself is in its log: auditdp report"
            )

    def judged(self, found: Sequence[Difference], text: str, *, alone: bool) -> int:
        """Print the differences from a baseline or revision, and return the exit code.

        Args:
            found: The differences.
            text: The differences as text.
            alone: True without a baseline. Then the exit code of the run itself comes
                first, and that of the differences counts only if it is 0.
        """
        if self.asked.output == "terminal":
            tell(f"\n{text}")
        else:
            say(text)
        if self.code is not None:
            return self.code
        code = exit_code(found, self.record, self.asked.fail_on or ())
        return self._at_end((self.exit_code() or code) if alone else code)

    def exit_code(self) -> int:
        """Return the exit code of the run by its results, without any baseline."""
        missing = [task.id for task in self.own if task.id not in self.results]
        if self.code is not None:
            return self.code
        return self._at_end(
            code_of(self.record, self.asked.fail_on or (), missing=missing)
        )

    def _at_end(self, code: int) -> int:
        return code if code or self.resumes_whole else ExitCode.CRASHED


LAST_LINES = 5
"""If an audit ends with an error, this many of the lines that it printed last are shown."""


@contextmanager
def importing(options: RunOptions) -> Iterator[None]:
    """Show on a terminal that audit files are imported inside the block.

    The import may take long.
    """
    console = Console() if _is_shown_in_terminal(options) else Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status("importing audit files", spinner="line"):
        yield


def _is_shown_in_terminal(options: RunOptions) -> bool:
    """Return True if results are printed line by line to a terminal."""
    return options.output == "terminal" and sys.stdout.isatty()


class ProgressPrinter(ExitStack):
    """Prints the results of a run, and below them one line that shows its progress.

    Args:
        options: The options of the run.
        before: Duration of each audit in an earlier run in seconds, by id.
    """

    def __init__(self, options: RunOptions, before: Mapping[str, float]) -> None:
        super().__init__()
        self._options, self._before = options, before
        self._silent = options.output != "terminal"
        # On a terminal the progress line and the results share one console, which keeps
        # them apart. Otherwise the progress line goes to stderr.
        self._together = _is_shown_in_terminal(options)
        self._console = Console() if self._together else Console(stderr=True)

    def begin(
        self,
        record: RunRecord,
        known: Sequence[AuditResult],
        waiting: Sequence[str],
        workers: int,
    ) -> None:
        """Start the progress line, and print the first lines.

        These are the seed, files that failed to import, and results of an interrupted
        run. They are printed for the output format ``terminal`` only.

        Args:
            record: The record at the start.
            known: Results of the interrupted run.
            waiting: Ids of the audits that will run.
            workers: The number of audits that run at a time.
        """
        self._watch = self.enter_context(
            Watch(waiting, self._console, workers=workers, before=self._before)
        )
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
        """Print an audit that has just been finished.

        With ``--quiet``, only an audit that has to be looked at is printed.
        """
        self._watch.finished(result)
        self._print(result)

    def _print(self, result: AuditResult) -> None:
        if self._silent or (self._options.quiet and not result.needs_a_look):
            return
        with on_output():
            line = terminal.line(
                result,
                colour=coloured(sys.stdout),
                width=columns(),
                verbose=self._options.verbose,
            )
            printed = [safe(text) for text in result.printed.splitlines()]
            if result.verdict is not Verdict.ERROR and not self._options.verbose:
                printed = []
            shown = printed if self._options.verbose else printed[-LAST_LINES:]
            for text in (line, *(f"    printed      {line}" for line in shown)):
                if self._together:
                    self._console.print(
                        Text.from_ansi(text), soft_wrap=True, highlight=False
                    )
                else:
                    typer.echo(text)
