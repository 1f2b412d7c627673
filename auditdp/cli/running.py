"""What ``auditdp run`` does, from its options to its exit code."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import typer

from auditdp.baseline.file import read_baseline
from auditdp.cli.choosing import changed_targets
from auditdp.cli.common import (
    CRASHED,
    DEFAULT_LOG,
    FOUND,
    INCONCLUSIVE,
    INTERRUPTED,
    JUDGED,
    NOTHING,
    OK,
    columns,
    known_format,
    refuse_what_is_not_ours,
    say,
    settings,
    writable,
    write,
)
from auditdp.cli.ending import OutputError, interruptible, on_output
from auditdp.cli.judging import against_baseline, exit_code
from auditdp.cli.showing import Shown
from auditdp.config import Configuration
from auditdp.errors import ConfigurationError, StoppedError
from auditdp.report import terminal
from auditdp.report.differences import differences_text
from auditdp.report.formats import render
from auditdp.report.publishing import report_files
from auditdp.report.screen import coloured
from auditdp.report.standing import run_meaning
from auditdp.results import AuditResult, Fate, RunRecord, Verdict
from auditdp.runner.log import Log, RecordingError
from auditdp.runner.plan import Plan, make_plan
from auditdp.runner.record import header, now, read_log, resumable, scan_log
from auditdp.runner.workers import Workers

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True)
class Asked:
    """The options of a run, as they were given."""

    paths: tuple[str, ...] = ()
    keyword: str = ""
    parameters: tuple[str, ...] = ()
    workers: str = ""
    seed: int | None = None
    alpha: float | None = None
    budget: str = ""
    timeout: float | None = None
    data: str = ""
    report: tuple[str, ...] = ()
    output: str = "terminal"
    log_path: Path = DEFAULT_LOG
    resume: bool = False
    fail_on: frozenset[str] = frozenset()
    mutants: bool = False
    first: bool = False
    last_failed: bool = False
    quiet: bool = False
    verbose: bool = False
    max_memory: str = ""
    collection_timeout: float = 60.0
    profile: str = ""
    check: bool = False
    since: str = ""


def carry_out(asked: Asked) -> None:
    """Collect, run, record and report what was asked, and end with the run's exit code."""
    configuration = settings(asked.profile)
    fail_on = asked.fail_on or frozenset(configuration.fail_on)
    asked = replace(asked, fail_on=fail_on, max_memory=asked.max_memory or configuration.max_memory)
    baseline = Path(configuration.baseline) if asked.check else None
    if baseline is not None:
        read_baseline(baseline)  # one that cannot be read is refused before anything runs
    reports = _report_targets(asked.report)
    known_format(asked.output)
    count, memory = _worker_count(asked.workers or configuration.workers), _bytes(asked.max_memory)
    if not 0 < asked.collection_timeout < float("inf"):
        raise ConfigurationError(f"expected a finite collection timeout > 0 seconds, got {asked.collection_timeout!r}")
    seed = asked.seed
    if seed is None:
        seed = read_log(asked.log_path).root_seed if asked.resume else configuration.seed
    root_seed = seed if seed is not None else secrets.randbelow(2**32)
    targets = _targets(asked, configuration)
    overrides = _overrides(asked.parameters)

    def heard(path: Path, text: str) -> None:
        say(f"{path} printed while it was imported:\n{text.rstrip()}")

    with interruptible():
        with Workers(
            overrides=overrides, limit=asked.collection_timeout, memory=memory, count=count, heard=heard
        ) as processes:
            left_out: tuple[str, ...] = ()
            if asked.since:
                targets, left_out = changed_targets(targets, asked.keyword, asked.since, processes.collect)
            plan = make_plan(
                targets,
                root_seed=root_seed,
                collect=processes.collect,
                keyword=asked.keyword,
                overrides=overrides,
                alpha=asked.alpha if asked.alpha is not None else configuration.alpha,
                budget=asked.budget or configuration.budget,
                timeout=asked.timeout,
                default_timeout=configuration.timeout or None,
                data=_data_folder(asked.data or configuration.data),
                mutants=asked.mutants,
            )
            if not plan.tasks and not plan.failures:
                where = ", ".join(targets) + (f" that match -k {asked.keyword!r}" if asked.keyword else "")
                say(f"no audits found; expected audit_*.py files with @audit functions in {where}")
                raise typer.Exit(NOTHING)
            arguments = _arguments(plan, targets, asked, configuration)
            if asked.since:
                arguments |= {"changed_since": asked.since, "left_out": list(left_out)}
            run = _Run(asked, plan, header(plan, arguments, root_seed, sources=processes.sources))
            run.begin()
            run.go_on(processes, count)
        run.publish(reports, baseline)
    raise typer.Exit(run.exit_code() if baseline is None else run.judged(baseline))


@dataclass
class _Run:
    """A run with its log; verdicts and exit code come from what is in memory, whatever happens to the log.

    Attributes:
        asked: The options.
        plan: What is run.
        start: The record without results, but for files that could not be collected.
        results: By id, as they are finished.
        code: An exit code that overrides that of the results, where the run did not reach its end.
    """

    asked: Asked
    plan: Plan
    start: RunRecord
    results: dict[str, AuditResult] = field(default_factory=dict)
    status: str = "complete"
    code: int | None = None
    seconds: float = 0.0

    def begin(self) -> None:
        """Open the log, and take over what an interrupted run has finished."""
        self.before = _durations(self.asked.log_path)
        if self.asked.resume:
            reading = scan_log(self.asked.log_path)
            for problem in reading.problems:
                say(problem)
            resumable(reading.record, self.start)
            self.start = replace(self.start, run=reading.record.run, started=reading.record.started)
            planned = {task.id for task in self.plan.tasks}
            self.results = {result.id: result for result in reading.record.results if result.id in planned}
        self.log = Log(self.asked.log_path)
        if self.asked.resume:
            self.log.resume(self.start.run)
        elif (kept := self.log.start(self.start)) is not None:
            say(f"the log had an unfinished run, which is kept: continue it with --resume --log {kept}")
        self.began = time.perf_counter()

    def go_on(self, processes: Workers, count: int) -> None:
        """Run what is not finished, append every result to the log, print it as it comes, and close the log."""
        tasks = [task for task in self.plan.tasks if task.id not in self.results]
        asked = self.asked
        try:
            with Shown(
                [task.id for task in tasks],
                silent=asked.output != "terminal",
                quiet=asked.quiet,
                verbose=asked.verbose,
                before=self.before,
            ).working(count) as shown:
                shown.begin(self.start, list(self.results.values()))
                for result in processes.run(tasks):
                    self.log.add(result)
                    self.results[result.id] = result
                    shown.add(result)
                    if asked.first and (result.is_finding or result.verdict is Verdict.ERROR):
                        self.status = "complete" if len(self.results) == len(self.plan.tasks) else "interrupted"
                        break
        except KeyboardInterrupt:
            self.status, self.code = "interrupted", INTERRUPTED
            say(f"interrupted; what was finished is in {asked.log_path}: continue with --resume")
        except OutputError as error:
            self.status, self.code = "interrupted", error.code
            say(f"error: {error}; what was finished is in {asked.log_path}: continue with --resume")
        except StoppedError as error:
            self.status, self.code = "interrupted", CRASHED
            say(f"error: {error}")
        finally:
            self._end()

    def _end(self) -> None:
        self.seconds = time.perf_counter() - self.began
        try:
            if self.log.end(self.status, self.seconds):
                say(f"the log {self.asked.log_path} was changed while the run went on, and was written anew")
        except RecordingError as error:
            if self.code is None:
                say(f"error: {error}")
            self.code = CRASHED

    @property
    def record(self) -> RunRecord:
        """What the run has found out, in the order of the plan."""
        found = [self.results[task.id] for task in self.plan.tasks if task.id in self.results]
        results = self.start.results + found
        return replace(self.start, status=self.status, seconds=self.seconds, finished=now(), results=results)

    def publish(self, reports: Sequence[tuple[str, Path]], baseline: Path | None) -> None:
        """Write the reports, then standard output: the summary where the lines were shown already, else the record.

        Args:
            reports: Format and path of each.
            baseline: The baseline that judges the run; None where none does.
        """
        record, problems = self.record, []
        found = against_baseline(record, baseline)[0] if baseline is not None else None
        for name, path in reports:
            try:
                for file, text in report_files(record, name, path, differences=found).items():
                    write(file, text)
            except ConfigurationError as error:
                problems.append(str(error))
        try:
            with on_output():
                if self.asked.output != "terminal":
                    typer.echo(render(record, self.asked.output, differences=found), nl=self.asked.output not in JUDGED)
                elif not self.asked.quiet:
                    typer.echo(terminal.summary(record, colour=coloured(sys.stdout), width=columns()))
        except OutputError as error:
            say(f"error: {error}; the run is in {self.asked.log_path}: auditdp report")
            self.code = self.code or error.code
        if self.asked.output != "terminal" and not record.audited:
            say(run_meaning(record))
        if problems:
            raise ConfigurationError("; ".join(problems) + "; the run itself is in its log: auditdp report")

    def judged(self, baseline: Path) -> int:
        """Return what the run ends with where a baseline judges it, and say what it changes of that."""
        found, number = against_baseline(self.record, baseline)
        text = differences_text(found, known=number, against=str(baseline), width=columns())
        if self.asked.output == "terminal":
            typer.echo(f"\n{text}")
        else:
            say(text)
        return self.code if self.code is not None else exit_code(found, self.record)

    def exit_code(self) -> int:
        """Return what the run ends with."""
        record, fail_on = self.record, self.asked.fail_on
        if self.code is not None:
            return self.code
        survived = any(result.mutation and result.mutation.of(Fate.SURVIVED) for result in record.results)
        if survived or any(result.is_finding for result in record.results):
            return FOUND
        if record.ended(Verdict.ERROR):
            return CRASHED
        if not record.audited:
            return NOTHING
        inconclusive = record.ended(Verdict.INCONCLUSIVE) or any(result.is_undecided for result in record.results)
        if ("inconclusive" in fail_on and inconclusive) or ("skipped" in fail_on and record.ended(Verdict.SKIPPED)):
            return INCONCLUSIVE
        return OK


def _targets(asked: Asked, configuration: Configuration) -> list[str]:
    if not asked.last_failed:
        return list(asked.paths or configuration.paths)
    if asked.paths or asked.resume:
        raise ConfigurationError("--last-failed says by itself what to run; give it without paths and without --resume")
    failed = [r.id for r in read_log(asked.log_path).results if r.is_finding or r.verdict is Verdict.ERROR]
    if not failed:
        say(f"nothing in {asked.log_path} had to be looked at")
        raise typer.Exit(NOTHING)
    return failed


def _durations(path: Path) -> dict[str, float]:
    """Return how long each audit took in the run that is in the log; nothing if there is none that can be read."""
    with suppress(ConfigurationError):
        return {result.id: result.seconds for result in scan_log(path).record.results}
    return {}


def _overrides(parameters: Sequence[str]) -> dict[str, str]:
    found = {}
    for item in parameters:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise ConfigurationError(f"-P {item}: expected name=value")
        found[name] = value
    return found


def _arguments(plan: Plan, targets: Sequence[str], asked: Asked, configuration: Configuration) -> dict[str, Any]:
    """What was asked, as the record keeps it: without the number of workers, on which nothing depends."""
    task = plan.tasks[0] if plan.tasks else None
    arguments = {
        "paths": list(targets),
        "keyword": asked.keyword,
        "options": list(asked.parameters),
        "parameters": {t.id: t.overrides for t in plan.tasks if t.overrides},
        "budget": task.budget if task else "",
        "timeout": asked.timeout if asked.timeout is not None else (configuration.timeout or None),
        "timeout_for_all": asked.timeout is not None,  # whether it also holds for audits that declare their own
        "data": task.data if task else "",
        "mutants": bool(task and task.mutants),
    }
    return arguments | ({"max_memory": asked.max_memory} if asked.max_memory else {})


def _report_targets(reports: Sequence[str]) -> list[tuple[str, Path]]:
    """Read format=PATH and make sure, before anything runs, that every path can be written and holds no file of others."""
    targets = []
    for item in reports:
        name, equals, text = item.partition("=")
        if not equals or not text:
            raise ConfigurationError(f"--report {item}: expected format=PATH, such as html=report.html")
        known_format(name)
        path = Path(text).absolute()
        writable(path, shown=text)
        refuse_what_is_not_ours(path, name, shown=text)
        targets.append((name, path))
    return targets


def _data_folder(text: str) -> str:
    if not text:
        return ""
    if not Path(text).is_dir():
        raise ConfigurationError(f"--data {text}: no such folder")
    return str(Path(text).resolve())


def _worker_count(text: str) -> int:
    if text == "auto":
        from joblib import cpu_count

        return int(cpu_count())
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise ConfigurationError(f"-n {text}: expected a number >= 1, or auto")
    return int(text)


def _bytes(text: str) -> int | None:
    """Read a size such as 2G."""
    if not text:
        return None
    number, unit = (text[:-1], text[-1].upper()) if text[-1].upper() in UNITS else (text, "")
    if not (number.isascii() and number.isdigit()) or int(number) < 1:
        raise ConfigurationError(f"--max-memory {text}: expected bytes, with K, M, G or T after them, such as 2G")
    return int(number) * UNITS.get(unit, 1)
