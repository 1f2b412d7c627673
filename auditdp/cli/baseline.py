"""``auditdp baseline update`` and ``check``, and ``auditdp compare``: what a run changes of what was known."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditdp.cli.common import Profile, Source, app, columns, given, read_whole, say, settings, tell
from auditdp.doors import write
from auditdp.errors import ConfigurationError

if TYPE_CHECKING:
    from auditdp.history.baseline.entries import Accepted

baseline_app = typer.Typer(no_args_is_help=True, help="What the audits are known to show, in a file that is reviewed.")
app.add_typer(baseline_app, name="baseline")

File = Annotated[
    Path | None, typer.Option("--file", callback=given, help="The baseline; that of the settings unless given.")
]


@baseline_app.command(short_help="Make the baseline from a recorded run.")
def update(
    source: Source = None,
    file: File = None,
    accept: Annotated[list[str] | None, typer.Option(help="Id of a finding to live with; with --reason.")] = None,
    reason: Annotated[str, typer.Option(help="Why it is lived with; the baseline keeps it.")] = "",
    expires: Annotated[str, typer.Option(help="Last day on which it is accepted, such as 2027-01-31.")] = "",
    profile: Profile = "",
) -> None:
    """Make the baseline from a recorded run, by default the last, and print what that changes of it.

    Findings have to be accepted one by one. Audits for which the run was not asked stay as they are.
    """
    from auditdp.cli.judging import against_baseline
    from auditdp.history.baseline.file import read_baseline, write_baseline
    from auditdp.history.baseline.update import updated
    from auditdp.report.numbers import count
    from auditdp.report.terminal.differences import differences_text

    path = _file(file, profile)
    record = read_whole(source)
    accepted = _accepted(accept or [], reason, expires)
    known = read_baseline(path) if path.exists() else {}
    if path.exists():
        found = against_baseline(record, known)
        tell(differences_text(found, known=len(known), against=str(path), width=columns()))
    entries = updated(known, record, accepted)
    if not entries:
        raise ConfigurationError("the run has no audits; a baseline without entries would hold nothing")
    write(path, write_baseline(entries.values()))
    tell(f"{path} has {count(len(entries), 'audit')}; review and commit it")


@baseline_app.command(short_help="Compare a recorded run with the baseline.")
def check(source: Source = None, file: File = None, profile: Profile = "") -> None:
    """Compare a recorded run, by default the last, with the baseline; exit code 6 where audits became weaker."""
    from auditdp.cli.judging import against_baseline, exit_code
    from auditdp.history.baseline.file import read_baseline
    from auditdp.report.assurance import assurance
    from auditdp.report.terminal.differences import differences_text

    path = _file(file, profile)
    record = read_whole(source)
    known = read_baseline(path)
    found, seen = against_baseline(record, known), assurance(record)
    tell(differences_text(found, known=len(known), against=str(path), found_it=seen, width=columns()))
    raise typer.Exit(exit_code(found, record, settings(profile).fail_on))


@baseline_app.command(short_help="Say whether the baseline can be read.")
def lint(file: File = None, profile: Profile = "") -> None:
    """Say whether the baseline can be read, without any run; for a hook before a commit."""
    from auditdp.history.baseline.file import read_baseline
    from auditdp.report.numbers import count

    path = _file(file, profile)
    tell(f"{path}: {count(len(read_baseline(path)), 'audit')}")


@app.command(short_help="Say what differs between two recorded runs.")
def compare(
    before: Annotated[Path, typer.Argument(metavar="A", callback=given, help="Log or JSON report of a run.")],
    after: Annotated[Path, typer.Argument(metavar="B", callback=given, help="Log or JSON report of a later run.")],
) -> None:
    """Compare two recorded runs as a run with a baseline: findings that are new, and audits that became weaker."""
    from auditdp.cli.judging import against_run, exit_code
    from auditdp.report.html.changes import asked_otherwise
    from auditdp.report.terminal.differences import differences_text

    first, second = read_whole(before), read_whole(after)
    for sentence in asked_otherwise(first, second):
        say(f"asked otherwise: {sentence}")
    found, number = against_run(first, second)
    tell(differences_text(found, known=number, against=str(before), width=columns()))
    raise typer.Exit(exit_code(found, second))


def _file(file: Path | None, profile: str) -> Path:
    return file or Path(settings(profile).baseline)


def _accepted(ids: list[str], reason: str, expires: str) -> dict[str, Accepted]:
    from auditdp.history.baseline.entries import Accepted

    if not ids and (reason or expires):
        raise ConfigurationError("--reason and --expires belong to a finding; give its id with --accept")
    if ids and not reason.strip():
        raise ConfigurationError(f"--accept {ids[0]}: say with --reason why this is lived with")
    try:
        until = date.fromisoformat(expires) if expires else None
    except ValueError:
        raise ConfigurationError(f"--expires {expires}: expected a date, such as 2027-01-31") from None
    return {identifier: Accepted(reason.strip(), until) for identifier in ids}
