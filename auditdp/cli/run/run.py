"""``auditdp run``: collect audits, run them, record and report what was found."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from auditdp.cli.common import DEFAULT_LOG, Data, Keyword, LogPath, Paths, Profile, Reports, app, budget_option
from auditdp.report.formats import FORMATS


class Executor(StrEnum):
    """Where audits run."""

    processes = "processes"
    dask = "dask"


class FailOn(StrEnum):
    """What else makes a run fail."""

    none = "none"
    error = "error"
    inconclusive = "inconclusive"
    skipped = "skipped"


@app.command(short_help="Run audits, and report what was found.")
def run(
    paths: Paths = None,
    keyword: Keyword = "",
    parameters: Annotated[list[str] | None, typer.Option("-P", help="name=value: a parameter of the audits.")] = None,
    workers: Annotated[
        str, typer.Option("-n", help="Audits that run at a time: a number, or auto.", show_default="1")
    ] = "",
    seed: Annotated[int | None, typer.Option(help="Root seed; a fresh one is drawn and printed unless given.")] = None,
    alpha: Annotated[
        float | None, typer.Option(help="Error probability of the whole run.", show_default="0.05")
    ] = None,
    budget: Annotated[list[str] | None, budget_option("standard")] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds per audit.", show_default="600")] = None,
    data: Data = "",
    report: Reports = None,
    output: Annotated[
        str,
        typer.Option("--format", help=f"Standard output: {', '.join(FORMATS)}.", autocompletion=lambda: [*FORMATS]),
    ] = "terminal",
    log_path: LogPath = DEFAULT_LOG,
    resume: Annotated[bool, typer.Option("--resume", help="Finish the interrupted run in the log.")] = False,
    fail_on: Annotated[
        list[FailOn] | None,
        typer.Option(help="Also fail on inconclusive or skipped audits (exit code 4); repeatable. Errors always fail."),
    ] = None,
    mutants: Annotated[
        bool, typer.Option("--mutants", help="Also audit broken twins derived from each mechanism.")
    ] = False,
    first: Annotated[bool, typer.Option("-x", help="Stop after the first audit that has to be looked at.")] = False,
    last_failed: Annotated[
        bool, typer.Option("--last-failed", help="Only what had to be looked at in the run in the log.")
    ] = False,
    quiet: Annotated[bool, typer.Option("-q", help="Print only what has to be looked at.")] = False,
    verbose: Annotated[bool, typer.Option("-v", help="Print what audits print, too.")] = False,
    max_memory: Annotated[str, typer.Option(help="Memory that an audit may take, such as 2G.")] = "",
    collection_timeout: Annotated[float, typer.Option(help="Seconds for the import of an audit file.")] = 60.0,
    profile: Profile = "",
    continued: Annotated[
        str,
        typer.Option(
            "--continue",
            metavar="ID",
            help="Play the game of an audit of the run in the log on to more calls (--calls, or --find), with all that it "
            "has won.",
        ),
    ] = "",
    since: Annotated[
        str,
        typer.Option(
            "--changed-since",
            metavar="REV",
            help="Only audits whose sources changed since the working tree parted from a revision, such as origin/main.",
        ),
    ] = "",
    shard: Annotated[
        str,
        typer.Option(
            metavar="NUMBER/OF",
            help="Only a part of the audits, such as 2/8, for a machine of its own; auditdp merge makes one run of all.",
        ),
    ] = "",
    executor: Annotated[
        Executor, typer.Option(help="Where audits run: processes of this machine, or the workers of a dask cluster.")
    ] = Executor.processes,
    scheduler: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="The dask scheduler, such as tcp://node7:8786, or its scheduler file."),
    ] = "",
    check: Annotated[
        bool,
        typer.Option("--check", help="Judge the run by the baseline: new findings, and audits that became weaker."),
    ] = False,
) -> None:
    """Collect audits, run them, and report what was found."""
    from auditdp.cli.run.asked import Asked
    from auditdp.cli.run.running import carry_out

    carry_out(
        Asked(
            paths=tuple(paths or ()),
            keyword=keyword,
            parameters=tuple(parameters or ()),
            workers=workers,
            seed=seed,
            alpha=alpha,
            budget="".join(budget or ()),
            timeout=timeout,
            data=data,
            report=tuple(report or ()),
            output=output,
            log_path=log_path,
            resume=resume,
            fail_on=frozenset(map(str, fail_on or ())),
            mutants=mutants,
            first=first,
            last_failed=last_failed,
            quiet=quiet,
            verbose=verbose,
            max_memory=max_memory,
            collection_timeout=collection_timeout,
            profile=profile,
            check=check,
            since=since,
            continued=continued,
            shard=shard,
            executor=executor.value,
            scheduler=scheduler,
        )
    )
