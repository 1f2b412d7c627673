"""``auditdp baseline``, ``compare`` and ``merge``: commands about several runs.

The first two compare a run with a baseline or with an earlier run. ``merge`` joins the
shards of one run.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditdp.cli.common import (
    ExitCode,
    LogPath,
    Profile,
    Source,
    app,
    coloured,
    columns,
    read_whole,
    say,
    tell,
)
from auditdp.cli.project import given, settings
from auditdp.configuration import DEFAULT_LOG
from auditdp.errors import ConfigurationError
from auditdp.files import write

if TYPE_CHECKING:
    from auditdp.record.baseline_entries import Accepted

baseline_app = typer.Typer(
    no_args_is_help=True,
    help="The known results of the audits, in a file that is reviewed.",
)
app.add_typer(baseline_app, name="baseline")

File = Annotated[
    Path | None,
    typer.Option(
        "--file",
        callback=given,
        help="The baseline; that of the settings unless given.",
    ),
]


@baseline_app.command(short_help="Make the baseline from a recorded run.")
def update(
    source: Source = None,
    file: File = None,
    accept: Annotated[
        list[str] | None,
        typer.Option(help="Id of a finding to accept; with --reason."),
    ] = None,
    reason: Annotated[
        str, typer.Option(help="Reason for accepting it; the baseline keeps it.")
    ] = "",
    expires: Annotated[
        str, typer.Option(help="Last day on which it is accepted, such as 2027-01-31.")
    ] = "",
    profile: Profile = "",
) -> None:
    """Make the baseline from a recorded run, by default the last, and print the changes.

    Findings have to be accepted one by one. Entries of audits that were not part of the
    run stay as they are.
    """
    from auditdp.cli.run_scope import against_baseline
    from auditdp.record.baseline import read_baseline, updated, write_baseline
    from auditdp.report.numbers import count
    from auditdp.report.terminal import differences_text

    path = _file(file, profile)
    record = read_whole(source)
    accepted = _accepted(accept or [], reason, expires)
    known = read_baseline(path) if path.exists() else {}
    if path.exists():
        found = against_baseline(record, known)
        tell(
            differences_text(
                found, known=len(known), against=str(path), width=columns()
            )
        )
    entries = updated(known, record, accepted)
    if not entries:
        raise ConfigurationError(
            "the run has no audits; a baseline without entries would hold nothing"
        )
    write(path, write_baseline(entries.values()))
    tell(f"{path} has {count(len(entries), 'audit')}; review and commit it")


@baseline_app.command(short_help="Compare a recorded run with the baseline.")
def check(source: Source = None, file: File = None, profile: Profile = "") -> None:
    """Compare a recorded run, by default the last, with the baseline.

    The exit code is 6 if an audit became weaker.
    """
    from auditdp.cli.run_scope import against_baseline, exit_code
    from auditdp.record.baseline import read_baseline
    from auditdp.report.sentences import assurance
    from auditdp.report.terminal import differences_text

    path = _file(file, profile)
    record = read_whole(source)
    known = read_baseline(path)
    found, seen = against_baseline(record, known), assurance(record)
    tell(
        differences_text(
            found, known=len(known), against=str(path), found_it=seen, width=columns()
        )
    )
    raise typer.Exit(exit_code(found, record, settings(profile).fail_on))


@baseline_app.command(short_help="Check that the baseline can be read.")
def lint(file: File = None, profile: Profile = "") -> None:
    """Check that the baseline can be read; for a hook before a commit."""
    from auditdp.record.baseline import read_baseline
    from auditdp.report.numbers import count

    path = _file(file, profile)
    tell(f"{path}: {count(len(read_baseline(path)), 'audit')}")


@app.command()
def compare(
    before: Annotated[
        Path,
        typer.Argument(
            metavar="A", callback=given, help="Log or JSON report of a run."
        ),
    ],
    after: Annotated[
        Path,
        typer.Argument(
            metavar="B", callback=given, help="Log or JSON report of a later run."
        ),
    ],
) -> None:
    """Print the differences of two recorded runs.

    They are, for example, new findings and audits that became weaker.
    """
    from auditdp.cli.run_scope import against_run, exit_code
    from auditdp.report.html.pages import asked_otherwise
    from auditdp.report.terminal import differences_text

    first, second = read_whole(before), read_whole(after)
    for sentence in asked_otherwise(first, second):
        say(f"other question: {sentence}")
    found, number = against_run(first, second)
    tell(differences_text(found, known=number, against=str(before), width=columns()))
    raise typer.Exit(exit_code(found, second))


def _file(file: Path | None, profile: str) -> Path:
    return file or Path(settings(profile).baseline)


def _accepted(ids: list[str], reason: str, expires: str) -> dict[str, Accepted]:
    from auditdp.record.baseline_entries import Accepted

    if not ids and (reason or expires):
        raise ConfigurationError(
            "--reason and --expires belong to a finding; give its id with --accept"
        )
    if ids and not reason.strip():
        raise ConfigurationError(
            f"--accept {ids[0]}: give the reason for accepting it with --reason"
        )
    try:
        until = date.fromisoformat(expires) if expires else None
    except ValueError:
        raise ConfigurationError(
            f"--expires {expires}: expected a date, such as 2027-01-31"
        ) from None
    return {identifier: Accepted(reason.strip(), until) for identifier in ids}


@app.command()
def merge(
    logs: Annotated[
        list[Path],
        typer.Argument(
            callback=given, help="Logs of the shards (--log of auditdp run --shard)."
        ),
    ],
    log_path: LogPath = DEFAULT_LOG,
) -> None:
    """Join the logs of shards to one run.

    If a shard is missing, so are its audits: the exit code is 3, and auditdp run
    --resume runs them. It is also 3 if lines of a log do not count.
    """
    from auditdp.cli.run_scope import code_of
    from auditdp.report import terminal
    from auditdp.report.numbers import count
    from auditdp.runner.log import Log
    from auditdp.runner.machines import merged

    reading = merged(logs)
    record = reading.record
    for problem in reading.problems:
        say(problem)
    planned = {entry.audit for entry in record.alpha_ledger}
    log = Log(log_path)
    # Files that failed to import have results of no task, which the header keeps.
    kept = log.start(
        replace(
            record,
            status="running",
            results=[r for r in record.results if r.id not in planned],
        )
    )
    if kept is not None:
        say(f"the log had {log.held}, which is kept: {os.path.relpath(kept)}")
    for result in record.results:
        if result.id in planned:
            log.add(result)
    log.end(record.status, float(record.seconds or 0), record.finished)
    typer.echo(terminal.summary(record, colour=coloured(sys.stdout), width=columns()))
    if record.missing:
        some = ", ".join(record.missing[:3]) + (
            ", …" if len(record.missing) > 3 else ""
        )
        say(
            f"{count(len(record.missing), 'audit')} without a result: {some}; give "
            "the command of the shards again with "
            f"--resume and without --shard, and --log {log_path}"
        )
        raise typer.Exit(ExitCode.CRASHED)
    # The exit code of a finding is for a complete record only.
    raise typer.Exit(code_of(record) if reading.is_whole else ExitCode.CRASHED)
