"""``auditdp mutate``: would the audits notice if their mechanisms were broken?"""

from __future__ import annotations

from typing import Annotated

import typer

from auditdp.cli.common import DEFAULT_LOG, Data, Keyword, LogPath, Paths, Profile, Reports, app, budget_option
from auditdp.cli.run.run import run
from auditdp.report.formats import FORMATS


@app.command(short_help="Would the audits notice if their mechanisms were broken?")
def mutate(
    paths: Paths = None,
    keyword: Keyword = "",
    parameters: Annotated[list[str] | None, typer.Option("-P", help="name=value: a parameter of the audits.")] = None,
    workers: Annotated[str, typer.Option("-n", help="Worker processes: a number, or auto.", show_default="1")] = "",
    seed: Annotated[int | None, typer.Option(help="Root seed; a fresh one is drawn and printed unless given.")] = None,
    budget: Annotated[list[str] | None, budget_option("standard")] = None,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds per audit and its mutants.", show_default="600")
    ] = None,
    data: Data = "",
    report: Reports = None,
    output: Annotated[str, typer.Option("--format", help=f"Standard output: {', '.join(FORMATS)}.")] = "terminal",
    log_path: LogPath = DEFAULT_LOG,
    resume: Annotated[bool, typer.Option("--resume", help="Finish the interrupted run in the log.")] = False,
    profile: Profile = "",
) -> None:
    """Run the audits, and play each against broken twins derived from its mechanism; exit code 1 if one survives.

    The same as ``auditdp run --mutants``. A survivor is a fault that the audit does not see at this budget, or one that
    does not break the claim, which the audit may argue in ``equivalent_mutants={name: argument}``.
    """
    run(
        paths,
        keyword,
        parameters,
        workers=workers,
        seed=seed,
        budget=budget,
        timeout=timeout,
        data=data,
        report=report,
        output=output,
        log_path=log_path,
        resume=resume,
        mutants=True,
        profile=profile,
    )
