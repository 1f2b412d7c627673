"""The state that all audits of a pytest process share, such as settings and α."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from auditdp.configuration import load
from auditdp.errors import AuditError
from auditdp.files import write_together
from auditdp.record.budget import Budget
from auditdp.record.results import RESULT, AuditResult, LedgerEntry, RunRecord
from auditdp.report import terminal
from auditdp.report.formats import WIDTH, report_files, target
from auditdp.runner.plan import Collected, Plan, PlanOptions, Task, make_plan
from auditdp.runner.pool import Workers
from auditdp.runner.run_record import header
from auditdp.runner.sandbox import Sandbox, sandbox_of


class AuditSession:
    """Settings and processes for the audits of one pytest process, and their report.

    Attributes:
        budget: The budget, as text for ``Budget.read``.
        seed: The root seed; 0 by default.
        fail_on: Outcomes that fail in addition to findings.
        trace: Whether the code of audits is traced.
        sources: Paths of the source files of the collected audits.
        selected: Ids of the audits that will run; they share α.

    Raises:
        UsageError: If a setting or an option cannot be used.
    """

    def __init__(self, config: pytest.Config) -> None:
        option = config.getoption
        try:
            self._settings = load(Path.cwd(), option("auditdp_profile"))
            self._reports = [
                target(text, "--auditdp-report") for text in option("auditdp_report")
            ]
        except AuditError as error:
            raise pytest.UsageError(str(error)) from error
        if self._settings.folder != Path.cwd():
            raise pytest.UsageError(
                f"audits have ids, and with them randomness, that are relative to {self._settings.folder}; call pytest there"
            )
        self.budget = option("auditdp_budget") or self._settings.budget
        try:
            Budget.read(self.budget)
        except AuditError as error:
            raise pytest.UsageError(
                f"--auditdp-budget {self.budget}: {error}"
            ) from error
        seed = option("auditdp_seed")
        self.seed = next((s for s in (seed, self._settings.seed) if s is not None), 0)
        alpha = option("auditdp_alpha")
        self._alpha = alpha if alpha is not None else self._settings.alpha
        self.fail_on, self.trace = self._settings.fail_on, self._settings.trace
        self.sources: set[str] = set()
        # Pytest selects audits after their collection.
        self.selected: list[str] = []
        self._tasks: dict[str, Task] = {}
        self._open = ExitStack()
        self._workers: Workers | None = None

    @cached_property
    def _sandbox(self) -> Sandbox:
        try:
            return sandbox_of(self._settings.sandbox, network=self._settings.network)
        except AuditError as error:
            raise pytest.UsageError(str(error)) from error

    def _processes(self) -> Workers:
        if self._workers is None:
            self._workers = self._open.enter_context(Workers(sandbox=self._sandbox))
        return self._workers

    def collect(self, path: Path) -> Collected:
        """Import an audit file in another process, and return its audits.

        If the import fails, there are no audits, and ``failure`` has the reason.
        """
        (collected,) = self._processes().collect([path])
        self.sources |= set(collected.sources)
        return collected

    def run(self, audit: str) -> AuditResult:
        """Run one audit in processes of its own and return its result.

        ``audit`` is one of the ids in ``selected``.

        Raises:
            UsageError: If a setting cannot be used.
        """
        if audit not in self._tasks:
            try:
                options = PlanOptions(
                    root_seed=self.seed,
                    alpha=self._alpha,
                    budget=self.budget,
                    default_timeout=self._settings.timeout or None,
                    data=str(Path(self._settings.data).resolve())
                    if self._settings.data
                    else "",
                    trace=self.trace,
                )
                plan = make_plan(
                    self.selected, options, collect=self._processes().collect
                )
            except AuditError as error:
                raise pytest.UsageError(str(error)) from error
            self._tasks = {task.id: task for task in plan.tasks}
        (result,) = self._processes().run([self._tasks[audit]])
        return result

    def report(
        self, gathered: Sequence[str], reporter: pytest.TerminalReporter
    ) -> None:
        """Print the summary of all results, and write the requested reports.

        Args:
            gathered: The results as JSON.
            reporter: The terminal of pytest.
        """
        record = self._record([RESULT.validate_json(text) for text in gathered])
        reporter.section("privacy audits")
        reporter.write_line(
            terminal.summary(record, width=min(reporter._tw.fullwidth, WIDTH))
        )
        for name, path in self._reports:
            write_together(report_files(record, name, path), below=path.parent)
            folder = self._settings.folder
            reporter.write_line(
                f"report: {path.relative_to(folder) if path.is_relative_to(folder) else path}"
            )

    def _record(self, results: Sequence[AuditResult]) -> RunRecord:
        """Return the record of the session, with the results sorted by id.

        The order does not depend on the processes that ran the audits.
        """
        ordered = sorted(results, key=lambda result: result.id)
        ids = [result.id for result in ordered]
        arguments: dict[str, Any] = {
            "paths": ids,
            "budget": self.budget,
            "parameters": {},
            "by": "pytest",
        }
        arguments |= {} if self.trace else {"trace": False}
        start = header(
            Plan([]),
            arguments,
            self.seed,
            sources=map(Path, self.sources),
            sandbox=str(self._sandbox),
        )
        ledger = [
            LedgerEntry(r.id, "verdict and lower bound", r.alpha or 0.0)
            for r in ordered
        ]
        seconds = sum(result.seconds for result in ordered)
        return replace(
            start,
            status="complete",
            results=list(ordered),
            alpha_ledger=ledger,
            seconds=seconds,
        )

    def close(self) -> None:
        """End the processes in which audits ran."""
        self._open.close()
