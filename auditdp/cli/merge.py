"""``auditdp merge``: one run from the logs of its shards."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from auditdp.cli.common import CRASHED, OK, LogPath, app, coloured, columns, given, say
from auditdp.config import DEFAULT_LOG


@app.command(short_help="Make one run of the logs of its shards.")
def merge(
    logs: Annotated[
        list[Path], typer.Argument(callback=given, help="Logs of the shards (--log of auditdp run --shard).")
    ],
    log_path: LogPath = DEFAULT_LOG,
) -> None:
    """Make one run of the logs of its shards, which every command then reads as any other.

    Where a shard is lost, its audits are missing: the exit code is 3, and auditdp run --resume runs them. It is 3 at least,
    too, where lines of a log do not count.
    """
    from auditdp.cli.judging import code_of
    from auditdp.report.numbers import count
    from auditdp.report.terminal import run as terminal
    from auditdp.runner.log import Log
    from auditdp.runner.machines.shards import merged

    reading = merged(logs)
    record = reading.record
    for problem in reading.problems:
        say(problem)
    planned = {entry.audit for entry in record.alpha_ledger}
    log = Log(log_path)
    kept = log.start(replace(record, status="running", results=[r for r in record.results if r.id not in planned]))
    if kept is not None:
        say(f"the log had an unfinished run, which is kept: {os.path.relpath(kept)}")
    for result in record.results:
        if result.id in planned:
            log.add(result)
    log.end(record.status, float(record.seconds or 0))
    typer.echo(terminal.summary(record, colour=coloured(sys.stdout), width=columns()))
    if record.missing:
        some = ", ".join(record.missing[:3]) + (", …" if len(record.missing) > 3 else "")
        say(
            f"{count(len(record.missing), 'audit')} without a result: {some}; give the command of the shards again with "
            f"--resume and without --shard, and --log {log_path}"
        )
        raise typer.Exit(CRASHED)
    raise typer.Exit(code_of(record) or (OK if reading.is_whole else CRASHED))
