"""The options of ``auditdp run`` as they were given, and what they mean; what cannot be used is refused."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from auditdp.cli.again import data_of, paths_of
from auditdp.cli.common import DEFAULT_LOG
from auditdp.config import Configuration
from auditdp.errors import ConfigurationError
from auditdp.record.budgets import LONGEST
from auditdp.record.results import RunRecord, Verdict
from auditdp.report.targets import target
from auditdp.runner.machines.shards import Shard
from auditdp.runner.plan import Plan

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
    continued: str = ""
    shard: str = ""
    executor: str = "processes"
    scheduler: str = ""

    def completed(self, configuration: Configuration) -> Asked:
        """Return the options with those of the project's settings that stand in for what was not given."""
        return replace(
            self,
            fail_on=self.fail_on or frozenset(configuration.fail_on),
            max_memory=self.max_memory or configuration.max_memory,
            workers=self.workers or configuration.workers,
        )

    def resumed(self, last: RunRecord) -> Asked:
        """Return the options with those of the interrupted run in place of what was not given."""
        recorded = last.arguments
        alpha = float(
            f"{math.fsum(entry.alpha for entry in last.alpha_ledger):.12g}"
        )  # of which there is a share for each
        return replace(
            self,
            paths=self.paths or paths_of(last),
            keyword=self.keyword or recorded.get("keyword", ""),
            parameters=self.parameters or tuple(recorded.get("options", ())),
            seed=last.root_seed if self.seed is None else self.seed,
            alpha=self.alpha if self.alpha is not None else alpha or None,
            budget=self.budget or recorded.get("budget", ""),
            timeout=recorded.get("timeout")
            if self.timeout is None and recorded.get("timeout_for_all")
            else self.timeout,
            data=data_of(last, self.data),
            mutants=self.mutants or recorded.get("mutants", False),
            max_memory=self.max_memory or recorded.get("max_memory", ""),
        )

    @property
    def reports(self) -> list[tuple[str, Path]]:
        """Formats and paths of the reports; every path can be written and holds no file of others."""
        return [target(item, "--report") for item in self.report]

    @property
    def count(self) -> int:
        """How many audits run at a time."""
        if self.workers == "auto":
            from joblib import cpu_count

            return int(cpu_count())
        if not (self.workers.isascii() and self.workers.isdigit() and len(self.workers) < 7) or int(self.workers) < 1:
            raise ConfigurationError(f"-n {self.workers}: expected a number >= 1, or auto")
        return int(self.workers)

    @property
    def memory(self) -> int | None:
        """Bytes that an audit may take; None for no limit."""
        text = self.max_memory
        if not text:
            return None
        number, unit = (text[:-1], text[-1].upper()) if text[-1].upper() in UNITS else (text, "")
        if not (number.isascii() and number.isdigit() and len(number) < 16) or int(number) < 1:
            raise ConfigurationError(f"--max-memory {text}: expected bytes, with K, M, G or T after them, such as 2G")
        return int(number) * UNITS.get(unit, 1)

    @property
    def import_limit(self) -> float:
        """Seconds that the import of an audit file may take."""
        if not 0 < self.collection_timeout <= LONGEST:
            raise ConfigurationError(
                f"expected a finite collection timeout > 0 seconds, got {self.collection_timeout!r}"
            )
        return self.collection_timeout

    @property
    def part(self) -> Shard | None:
        """Which part of the run is done here; None for all of it.

        Raises:
            ConfigurationError: If it is none, or does not go with other options.
        """
        if not self.shard:
            return None
        for given, option, why in (
            (self.check, "--check", "judge the whole run: auditdp merge, then auditdp baseline check"),
            (self.last_failed, "--last-failed", "it depends on the log, which every shard has for itself"),
            (self.continued, "--continue", "that is one audit"),
        ):
            if given:
                raise ConfigurationError(f"--shard does not go with {option}: {why}")
        return Shard.read(self.shard)

    @property
    def cluster(self) -> str:
        """The address of the dask scheduler; empty where audits run on this machine.

        Raises:
            ConfigurationError: If the executor and the scheduler do not go together.
        """
        if (self.executor == "dask") != bool(self.scheduler):
            raise ConfigurationError(
                f"--executor {self.executor} with --scheduler {self.scheduler!r}: a cluster needs both, as in "
                "--executor dask --scheduler tcp://node7:8786"
            )
        return self.scheduler

    @property
    def overrides(self) -> dict[str, str]:
        """Parameters by name, as text."""
        found = {}
        for item in self.parameters:
            name, equals, value = item.partition("=")
            if not equals or not name:
                raise ConfigurationError(f"-P {item}: expected name=value")
            found[name] = value
        return found

    def targets(self, configuration: Configuration, last: RunRecord | None) -> list[str]:
        """Return what is to be collected: none where nothing failed in the last run and only that was asked for."""
        if not self.last_failed or last is None:
            return list(self.paths or configuration.paths)
        if self.paths or self.resume:
            raise ConfigurationError(
                "--last-failed says by itself what to run; give it without paths and without --resume"
            )
        return [r.id for r in last.results if r.is_finding or r.verdict is Verdict.ERROR]

    def data_folder(self, configuration: Configuration) -> str:
        """Return the folder of data files, absolute; empty for none."""
        text = self.data or configuration.data
        if not text:
            return ""
        if not Path(text).is_dir():
            raise ConfigurationError(f"--data {text}: no such folder")
        return str(Path(text).resolve())

    def recorded(self, plan: Plan, targets: Sequence[str], configuration: Configuration) -> dict[str, Any]:
        """Return what the record keeps: not the number of workers, on which nothing depends."""
        task = plan.tasks[0] if plan.tasks else None
        arguments = {
            "paths": list(targets),
            "keyword": self.keyword,
            "options": list(self.parameters),
            "parameters": {t.id: t.overrides for t in plan.tasks if t.overrides},
            "budget": task.budget if task else "",
            "timeout": self.timeout if self.timeout is not None else (configuration.timeout or None),
            "timeout_for_all": self.timeout is not None,  # whether it also holds for audits that declare their own
            "data": task.data if task else "",
            "mutants": bool(task and task.mutants),
        }
        return arguments | ({"max_memory": self.max_memory} if self.max_memory else {})
