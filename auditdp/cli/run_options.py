"""The options of ``auditdp run``: their declaration, checks and default values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from auditdp.cli.again import data_of, paths_of
from auditdp.cli.common import (
    Data,
    Keyword,
    LogPath,
    Paths,
    Profile,
    Reports,
    Sandboxed,
    budget_option,
)
from auditdp.configuration import DEFAULT_LOG
from auditdp.errors import ConfigurationError
from auditdp.record.budget import LONGEST
from auditdp.report.formats import FORMATS

if TYPE_CHECKING:
    from auditdp.configuration import Configuration
    from auditdp.record.results import RunRecord
    from auditdp.runner.machines import Shard
    from auditdp.runner.plan import Against, Plan, PlanOptions

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
"""Bytes of each unit of ``--max-memory``."""


Output = Annotated[
    str,
    typer.Option(
        "--format",
        help=f"Standard output: {', '.join(FORMATS)}.",
        autocompletion=lambda: [*FORMATS],
    ),
]


class RunPlace(StrEnum):
    """Places where audits run."""

    processes = "processes"
    dask = "dask"


class FailOn(StrEnum):
    """Outcomes that make a run fail in addition to findings.

    Errors always fail, so 'error' adds nothing. 'none' on the command line replaces the
    outcomes of the settings by none.
    """

    none = "none"
    error = "error"
    inconclusive = "inconclusive"
    skipped = "skipped"
    changed = "changed"


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of ``auditdp run``, as they were given; each field is one option."""

    paths: Paths = None
    keyword: Keyword = ""
    parameters: Annotated[
        list[str] | None,
        typer.Option("-P", help="name=value: a parameter of the audits."),
    ] = None
    workers: Annotated[
        str,
        typer.Option(
            "-n", help="Audits that run at a time: a number, or auto.", show_default="1"
        ),
    ] = ""
    seed: Annotated[
        int | None,
        typer.Option(help="Root seed; a fresh one is drawn and printed unless given."),
    ] = None
    alpha: Annotated[
        float | None,
        typer.Option(help="Error probability of the whole run.", show_default="0.05"),
    ] = None
    budget: Annotated[list[str] | None, budget_option("standard")] = None
    timeout: Annotated[
        float | None,
        typer.Option(help="Seconds per audit, with its mutants.", show_default="600"),
    ] = None
    data: Data = ""
    report: Reports = None
    output: Output = "terminal"
    log_path: LogPath = DEFAULT_LOG
    resume: Annotated[
        bool, typer.Option("--resume", help="Finish the interrupted run in the log.")
    ] = False
    fail_on: Annotated[
        list[FailOn] | None,
        typer.Option(
            help=(
                "Also fail on inconclusive or skipped audits (exit code 4), or on "
                "any changed law (--compare; 6); repeatable. Errors always fail."
            )
        ),
    ] = None
    mutants: Annotated[
        bool,
        typer.Option(
            "--mutants",
            help="Also audit mutants of each mechanism: a fault in its noise.",
        ),
    ] = False
    first: Annotated[
        bool,
        typer.Option("-x", help="Stop after the first audit that has to be looked at."),
    ] = False
    last_failed: Annotated[
        bool,
        typer.Option(
            "--last-failed", help="Only what had to be looked at in the run in the log."
        ),
    ] = False
    quiet: Annotated[
        bool, typer.Option("-q", help="Print only what has to be looked at.")
    ] = False
    verbose: Annotated[
        bool,
        typer.Option(
            "-v", help="Also print the output of audits, and the lines that add noise."
        ),
    ] = False
    max_memory: Annotated[
        str, typer.Option(help="Memory that an audit may take, such as 2G.")
    ] = ""
    sandbox: Sandboxed = ""
    network: Annotated[
        bool, typer.Option("--network", help="Leave the network open to audits.")
    ] = False
    trace: Annotated[
        bool | None,
        typer.Option(
            "--trace/--no-trace",
            help="Trace the code before its game.",
            show_default="trace",
        ),
    ] = None
    collection_timeout: Annotated[
        float, typer.Option(help="Seconds for the import of an audit file.")
    ] = 60.0
    profile: Profile = ""
    continued: Annotated[
        str,
        typer.Option(
            "--continue",
            metavar="ID",
            help=(
                "Continue the game of an audit of the logged run up to more calls "
                "(--calls or --find), with its wealth so far."
            ),
        ),
    ] = ""
    since: Annotated[
        str,
        typer.Option(
            "--changed-since",
            metavar="REV",
            help=(
                "Only audits whose sources changed since the working tree branched "
                "off a revision, such as origin/main."
            ),
        ),
    ] = ""
    compare: Annotated[
        str,
        typer.Option(
            metavar="REV",
            help=(
                "Like --changed-since, and compare the releases of mechanisms with "
                "those at the revision. Changed ones get more calls."
            ),
        ),
    ] = ""
    shard: Annotated[
        str,
        typer.Option(
            metavar="NUMBER/OF",
            help=(
                "Only a part of the audits, such as 2/8, one for each machine; "
                "auditdp merge joins the parts to one run."
            ),
        ),
    ] = ""
    executor: Annotated[
        RunPlace,
        typer.Option(
            help="Where audits run: processes of this machine, or the workers of a dask cluster."
        ),
    ] = RunPlace.processes
    scheduler: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="The dask scheduler, such as tcp://node7:8786, or its scheduler file.",
        ),
    ] = ""
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Judge the run by the baseline: new findings, and audits that became weaker.",
        ),
    ] = False

    def completed(self, configuration: Configuration) -> Self:
        """Return the options, completed by the settings of the project.

        If ``fail_on``, ``max_memory``, ``workers`` or ``network`` is not given, it is
        taken from the settings.
        """
        return replace(
            self,
            fail_on=self.fail_on or [FailOn(name) for name in configuration.fail_on],
            max_memory=self.max_memory or configuration.max_memory,
            workers=self.workers or configuration.workers,
            network=self.network or configuration.network,
        )

    def resumed(self, last: RunRecord) -> Self:
        """Return the options of a run that finishes the interrupted run ``last``.

        Options that are not given and on which its results depend are taken from that
        run, such as paths, seed and budget.

        Raises:
            ConfigurationError: If the interrupted run has paths or data that are not
                those of this project.
        """
        recorded = last.arguments
        # The sum of equal shares differs from α by rounding, which 12 digits remove.
        shares = math.fsum(entry.alpha for entry in last.alpha_ledger)
        return replace(
            self,
            paths=self.paths or list(paths_of(last)),
            keyword=self.keyword or recorded.get("keyword", ""),
            parameters=self.parameters or list(recorded.get("options", ())),
            seed=last.root_seed if self.seed is None else self.seed,
            alpha=self.alpha
            if self.alpha is not None
            else float(f"{shares:.12g}") or None,
            budget=self.budget or [recorded.get("budget", "")],
            timeout=recorded.get("timeout")
            if self.timeout is None and recorded.get("timeout_for_all")
            else self.timeout,
            data=data_of(last, self.data),
            mutants=self.mutants or recorded.get("mutants", False),
            compare=self.compare or recorded.get("compare", ""),
            max_memory=self.max_memory or recorded.get("max_memory", ""),
            trace=recorded.get("trace", True) if self.trace is None else self.trace,
        )

    @property
    def reports(self) -> list[tuple[str, Path]]:
        """(format, absolute path) of each ``--report``.

        Raises:
            ConfigurationError: If a format is unknown, a path cannot be written, or a
                file there has other content than such a report.
        """
        from auditdp.report.formats import target

        return [target(item, "--report") for item in self.report or ()]

    @property
    def count(self) -> int:
        """The number of audits that run at a time; ``auto`` is the number of cores.

        Raises:
            ConfigurationError: If ``-n`` is neither a number >= 1 nor ``auto``.
        """
        if self.workers == "auto":
            from joblib import cpu_count

            return int(cpu_count())
        # ``isdigit`` alone accepts digits such as ², which ``int`` refuses.
        if (
            not (
                self.workers.isascii()
                and self.workers.isdigit()
                and len(self.workers) < 7
            )
            or int(self.workers) < 1
        ):
            raise ConfigurationError(
                f"-n {self.workers}: expected a number >= 1, or auto"
            )
        return int(self.workers)

    @property
    def memory(self) -> int | None:
        """The bytes of memory that an audit may take; None for no limit.

        Raises:
            ConfigurationError: If ``--max-memory`` is no positive integer, with or
                without K, M, G or T after it.
        """
        text = self.max_memory
        if not text:
            return None
        number, unit = (
            (text[:-1], text[-1].upper()) if text[-1].upper() in UNITS else (text, "")
        )
        if (
            not (number.isascii() and number.isdigit() and len(number) < 16)
            or int(number) < 1
        ):
            raise ConfigurationError(
                f"--max-memory {text}: expected bytes, with K, M, G or T after them, such as 2G"
            )
        return int(number) * UNITS.get(unit, 1)

    @property
    def import_limit(self) -> float:
        """The seconds that the import of an audit file may take.

        Raises:
            ConfigurationError: If ``--collection-timeout`` is not finite and > 0.
        """
        if not 0 < self.collection_timeout <= LONGEST:
            raise ConfigurationError(
                f"expected a finite collection timeout > 0 seconds, got {self.collection_timeout!r}"
            )
        return self.collection_timeout

    @property
    def part(self) -> Shard | None:
        """The shard of the run; None for the whole run.

        Raises:
            ConfigurationError: If ``--shard`` is invalid, or contradicts other options.
        """
        if not self.shard:
            return None
        for given, option, why in (
            (
                self.check,
                "--check",
                "judge the whole run: auditdp merge, then auditdp baseline check",
            ),
            (
                self.last_failed,
                "--last-failed",
                "it depends on the log, which every shard has for itself",
            ),
            (self.continued, "--continue", "that is one audit"),
        ):
            if given:
                raise ConfigurationError(f"--shard does not go with {option}: {why}")
        from auditdp.runner.machines import Shard

        return Shard.read(self.shard)

    @property
    def cluster(self) -> str:
        """The address of the dask scheduler; empty if audits run on this machine.

        Raises:
            ConfigurationError: If only one of ``--executor dask`` and ``--scheduler``
                is given.
        """
        if (self.executor == "dask") != bool(self.scheduler):
            raise ConfigurationError(
                f"--executor {self.executor} with --scheduler {self.scheduler!r}: a "
                "cluster needs both, as in "
                "--executor dask --scheduler tcp://node7:8786"
            )
        return self.scheduler

    @property
    def overrides(self) -> dict[str, str]:
        """The values of ``-P name=value`` by name, as text.

        Raises:
            ConfigurationError: If an item has another form.
        """
        found = {}
        for item in self.parameters or ():
            name, equals, value = item.partition("=")
            if not equals or not name:
                raise ConfigurationError(f"-P {item}: expected name=value")
            found[name] = value
        return found

    @property
    def calls(self) -> str:
        """The budget as text for ``Budget.read``; empty if it was not given."""
        return ",".join(self.budget or ())

    def targets(
        self, configuration: Configuration, last: RunRecord | None
    ) -> list[str]:
        """Return the targets to collect: paths and ids of audits.

        With ``--last-failed`` they are the ids of the results in ``last`` that have to
        be looked at, which may be an empty list. ``last`` is the run in the log, or
        None without ``--last-failed`` and ``--resume``.

        Raises:
            ConfigurationError: If ``--last-failed`` is given with paths or
                ``--resume``.
        """
        if not self.last_failed or last is None:
            return list(self.paths or configuration.paths)
        if self.paths or self.resume:
            raise ConfigurationError(
                "--last-failed says by itself what to run; give it without paths and without --resume"
            )
        return [result.id for result in last.results if result.needs_a_look]

    @property
    def base(self) -> str:
        """The revision of ``--changed-since`` or ``--compare``; empty if none is given.

        Raises:
            ConfigurationError: If both are given, or ``--compare`` with an option that
                contradicts it.
        """
        if not self.compare:
            return self.since
        for given, option, why in (
            (
                self.since,
                "--changed-since",
                "it has the same meaning, and compares as well",
            ),
            (
                self.scheduler,
                "--scheduler",
                "the other revision is checked out on this machine only",
            ),
            (
                self.continued,
                "--continue",
                "a comparison is made anew, and no game that goes on",
            ),
        ):
            if given:
                raise ConfigurationError(f"--compare does not go with {option}: {why}")
        return self.compare

    def plan(
        self,
        configuration: Configuration,
        root_seed: int,
        against: Against | None = None,
    ) -> PlanOptions:
        """Return the plan options; those not given are taken from the settings.

        Args:
            configuration: The settings.
            root_seed: The root seed of the run.
            against: The revision with which mechanisms are compared; None for none.

        Raises:
            ConfigurationError: If the data folder does not exist, or an item of ``-P``
                is not of the form name=value.
        """
        from auditdp.runner.plan import PlanOptions

        return PlanOptions(
            root_seed=root_seed,
            overrides=self.overrides,
            alpha=self.alpha if self.alpha is not None else configuration.alpha,
            budget=self.calls or configuration.budget,
            timeout=self.timeout,
            default_timeout=configuration.timeout or None,
            data=data_folder(self.data or configuration.data),
            mutants=self.mutants,
            against=against,
            trace=configuration.trace if self.trace is None else self.trace,
        )

    def recorded(
        self, plan: Plan, targets: Sequence[str], configuration: Configuration
    ) -> dict[str, Any]:
        """Return the options that the record of the run keeps, by name, as plain data.

        ``targets`` are the collected ones. The number of workers is not recorded, since
        results do not depend on it.
        """
        task = plan.tasks[0] if plan.tasks else None
        arguments = {
            "paths": list(targets),
            "keyword": self.keyword,
            "options": list(self.parameters or ()),
            "parameters": {t.id: t.overrides for t in plan.tasks if t.overrides},
            "budget": task.budget if task else "",
            "timeout": self.timeout
            if self.timeout is not None
            else (configuration.timeout or None),
            "timeout_for_all": self.timeout
            # The limit also applies to audits that declare their own.
            is not None,
            "data": task.data if task else "",
            "mutants": bool(task and task.mutants),
        }
        texts = {"max_memory": self.max_memory, "compare": self.compare}
        untraced = {"trace": False} if task and not task.trace else {}
        return (
            arguments | {name: text for name, text in texts.items() if text} | untraced
        )


def data_folder(text: str) -> str:
    """Return the absolute path of a folder of data files; empty if ``text`` is empty.

    Raises:
        ConfigurationError: If there is no such folder.
    """
    if text and not Path(text).is_dir():
        raise ConfigurationError(f"--data {text}: no such folder")
    return str(Path(text).resolve()) if text else ""
