"""``auditdp nightly``: the run of a night, on fresh randomness, with one α for all nights together."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditdp.cli.common import CRASHED, FOUND, NOTHING, app, given, say, settings, taking, tell
from auditdp.cli.run.options import RunOptions
from auditdp.doors import write
from auditdp.errors import ConfigurationError

if TYPE_CHECKING:
    from auditdp.history.nightly.stream import Stream
    from auditdp.record.results import RunRecord

WEEK = 7


@dataclass(frozen=True, kw_only=True)
class NightlyOptions(RunOptions):
    """The options of a night's run, as they were given."""

    alpha: Annotated[
        float | None,
        typer.Option(help="Error probability of all nights together, for a new stream.", show_default="0.05"),
    ] = None
    file: Annotated[
        Path | None,
        typer.Option("--file", callback=given, help="State of the stream; that of the settings unless given."),
    ] = None


@app.command(short_help="Run the audits each night, with one α for all nights.")
@taking(NightlyOptions, "paths", "file", "workers", "alpha", "budget", "data", "report", "log_path", "quiet", "profile")
def nightly(options: NightlyOptions) -> None:
    """Run the audits as the next night of a stream; one error probability holds for all of its nights together.

    Each night has a seed of its own and its share of α. Where the sources of an audit are those of the night before, what
    its game has won is carried over, so that faults too small for one night add up. The file has to be kept from night to
    night, committed or in the cache of CI; a night that is run twice from the same file gives the same outcome.
    """
    from auditdp.cli.run.running import carry_out
    from auditdp.history.nightly.control import verdict_alpha
    from auditdp.history.nightly.stream import Stream, read_stream
    from auditdp.runner.record import read_log

    configuration, alpha, log_path = settings(options.profile), options.alpha, options.log_path
    path = options.file or Path(configuration.stream)
    stream = read_stream(path)
    if stream is None:
        chosen = alpha if alpha is not None else configuration.alpha
        if not 0 < chosen < 1:
            raise ConfigurationError(f"expected alpha strictly between 0 and 1, got {chosen!r}")
        stream = Stream(chosen, secrets.randbelow(2**32))
        say(f"no stream in {path}: this is night 1 of a new one, with α = {chosen:g} for all of its nights together")
    elif alpha is not None and alpha != stream.alpha:
        raise ConfigurationError(
            f"--alpha {alpha:g}: the stream in {path} has α = {stream.alpha:g}, which holds for all of its nights; another "
            "one needs a file of its own"
        )
    night = stream.night + 1
    say(
        f"night {night}: α = {verdict_alpha(stream.alpha, night):.3g} for its verdicts, of {stream.alpha:g} for all nights"
    )
    of_night = replace(options, seed=stream.seed(), alpha=verdict_alpha(stream.alpha, night))
    code = _ended(lambda: carry_out(of_night))
    if code == NOTHING and not log_path.is_file():
        raise typer.Exit(code)
    record = read_log(log_path)
    if record.root_seed != stream.seed() or record.status != "complete" or record.missing:
        say("the night did not end, so the stream stays as it was: run it again, with the same outcome")
        raise typer.Exit(code or CRASHED)
    after = stream.after(record, _sources(record))
    write(path, after.to_json())
    alarms = _reported(after, record)
    raise typer.Exit(FOUND if alarms else code)


def _ended(run: Callable[[], None]) -> int:
    try:
        run()
    except typer.Exit as end:
        return end.exit_code
    return 0


def _sources(record: RunRecord) -> dict[str, str]:
    """Return a digest of what each audit is made of, with auditdp and the libraries; none where that cannot be told."""
    import hashlib

    from auditdp.runner.sources.audits import HARNESS, Traced, trace
    from auditdp.runner.sources.imports import Imports

    root = Path.cwd().resolve()
    imports = Imports(root)
    harness = Traced(frozenset(HARNESS.rglob("*.py"))).digest(HARNESS)
    versions = f"{harness} {sorted(record.versions.items())} {record.device}"
    found = {}
    for result in record.results:
        name, _, factory = result.id.partition("::")
        traced = trace(imports, (root / name).resolve(), factory)
        if factory and not traced.opaque:
            parts = [traced.digest(root), versions, repr(sorted(result.parameters.items()))]
            found[result.id] = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return found


def _reported(after: Stream, record: RunRecord) -> list[str]:
    """Print what capital reports, and within how many nights it would report more; return the ids that are reported."""
    from auditdp.history.nightly.night_power import within
    from auditdp.report.numbers import bound, count, e_value
    from auditdp.report.text import printable

    alarms = [name for name, account in after.accounts.items() if account.alarm]
    for name in alarms:
        account = after.accounts[name]
        nights = count(after.night - account.since + 1, "night")
        since = f"reported on night {account.alarm}" if account.alarm != after.night else "reported tonight"
        capital = e_value(account.log_capital) if account.log_capital is not None else "0"
        tell(
            f"REFUTED OVER NIGHTS  {printable(name)}\n    {nights} with the same sources make a capital of {capital}, where "
            f"2/α = {2 / after.alpha:g} is enough; {since}; ends when its sources change"
        )
    lines = [
        f"    {printable(result.id)}: {level} = {bound(one, up=True)} in one night, {bound(week, up=True)} within {WEEK}"
        for result in record.results
        for level, one, week in within(result, after, WEEK)
    ]
    if lines:
        tell("a fault that begins tomorrow would be reported, nine times in ten, from")
        tell("\n".join(lines))
    carried = sum(account.since < after.night for account in after.accounts.values())
    tell(f"night {after.night} of the stream is written: {carried} of {len(after.accounts)} audits carried over")
    return alarms
