"""``auditdp replay`` and ``auditdp report``: the results of a recorded run, again."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditdp.cli.again import options_of, task_of
from auditdp.cli.common import (
    CRASHED,
    FOUND,
    INCONCLUSIVE,
    NOTHING,
    OK,
    Data,
    Source,
    app,
    coloured,
    columns,
    given,
    one_of,
    print_line,
    print_report,
    read_run,
    read_whole,
    reading_of,
    sandbox,
    say,
    settings,
)
from auditdp.doors import write_together
from auditdp.errors import ConfigurationError
from auditdp.report.formats import FORMATS, format_of, render
from auditdp.report.targets import writable

if TYPE_CHECKING:
    from auditdp.record.results import AuditResult, Evidence

JUDGED = [name for name, format in FORMATS.items() if format.is_judged]


@app.command(short_help="Run one audit of a recorded run again, bit for bit.")
def replay(
    finding: Annotated[str, typer.Argument(help="The id of an audit in the last run, or enough of it to be unique.")],
    source: Annotated[
        Path | None, typer.Option("--run", "--log", callback=given, help="Log or JSON report of the run.")
    ] = None,
    data: Data = "",
) -> None:
    """Run one audit of a recorded run again, with its randomness, level and budget, and compare the verdicts.

    Its file has to be one that collection finds below the working folder: a record names what is imported, and may come
    from somebody else.
    """
    from auditdp.cli.ending import interruptible
    from auditdp.mechanism.protocol import OWN_RANDOMNESS
    from auditdp.record.results import REFUTATIONS, Verdict
    from auditdp.runner.processes.workers import Workers

    record = read_run(source)
    chosen = one_of(finding, record.results)
    if chosen.claim is None and chosen.verdict is Verdict.ERROR and "::" not in chosen.id:
        raise ConfigurationError(f"{chosen.id} did not import in that run, so there is nothing to replay")
    options = options_of(record, chosen, data)
    with interruptible(), Workers(overrides=options.overrides, sandbox=sandbox(settings())) as processes:
        task = task_of(chosen, options, processes)
        (result,) = processes.run([task])
        print_line(result)
        # Where a mechanism draws its own randomness, the numbers differ and the verdict is what can be compared.
        own = OWN_RANDOMNESS in result.reproduce
        same = result.verdict == chosen.verdict if own else _same_outcome(result, chosen)
        say(
            f"{'same outcome as' if same else 'DIFFERENT OUTCOME from'} the recorded run: {_shown(chosen)} then, "
            f"{_shown(result)} now"
        )
        if chosen.recorded:
            for line in processes.ask("again", task, chosen):
                say(line)
    if result.verdict is Verdict.ERROR:
        raise typer.Exit(CRASHED)
    if result.verdict is Verdict.SKIPPED and same:
        raise typer.Exit(NOTHING)
    if result.verdict in REFUTATIONS or not same:
        raise typer.Exit(FOUND)
    raise typer.Exit(INCONCLUSIVE if result.is_unconfirmed else OK)


@app.command("report", short_help="Render the report of a recorded run, such as -f html.")
def report_command(
    source: Source = None,
    output: Annotated[
        str, typer.Option("-f", "--format", help=f"{', '.join(FORMATS)}; html for a file, terminal without one.")
    ] = "",
    path: Annotated[
        Path | None, typer.Option("-o", "--output", callback=given, help="File to write; standard output unless given.")
    ] = None,
    author: Annotated[str, typer.Option("--by", help="Who answers for it, as the report is to say.")] = "",
    since: Annotated[
        Path | None,
        typer.Option(
            "--since", callback=given, help="Log or JSON report of the last report's run, to say what changed."
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help=f"Say what it changes of the baseline, in {', '.join(JUDGED)}.")
    ] = False,
) -> None:
    """Render the report of a recorded run; html has a folder beside it with a page for each audit, or without -o one page.

    Lines of a log that do not count are named and left out; the exit code is 3 then, and 0 otherwise.
    """
    from auditdp.cli.judging import against_baseline
    from auditdp.history.baseline.file import read_baseline
    from auditdp.report.publishing import report_files

    output = output or ("terminal" if path is None else "html")
    chosen = format_of(output)
    if path is not None:
        writable(path)
        chosen.refuse_what_is_not_ours(path)
    reading = reading_of(source)
    record = replace(reading.record, author=author or reading.record.author)
    found = against_baseline(record, read_baseline(Path(settings().baseline))) if check else None
    if path is None:
        print_report(render(record, output, colour=coloured(sys.stdout), width=columns(), differences=found), output)
    else:
        previous = read_whole(since) if since else None
        files = report_files(record, output, path, previous=previous, differences=found)
        write_together(files, below=path.parent)
    if not reading.is_whole:
        raise typer.Exit(CRASHED)


def _same_outcome(one: AuditResult, other: AuditResult) -> bool:
    """Return whether two results are the same but for digits that differ between processors."""
    from auditdp.numerics.rounding import SAME, same_number

    parts = [[(e.kind, e.verdict, e.calls) for e in result.evidence] for result in (one, other)]
    found: list[list[AuditResult | Evidence]] = [[result, *result.evidence] for result in (one, other)]
    numbers = [[x for e in each for x in (e.log_e_value, e.epsilon_lower, e.epsilon_upper)] for each in found]
    return (
        one.verdict is other.verdict
        and parts[0] == parts[1]
        and all(
            a == b or (a is not None and b is not None and same_number(a, b, near=SAME))
            for a, b in zip(*numbers, strict=True)
        )
    )


def _shown(result: AuditResult) -> str:
    wealth = [f"{e.kind} {e.log_e_value:.6g} nats" for e in result.evidence if e.log_e_value is not None]
    return f"{result.verdict} (wealth: {', '.join(wealth)})" if wealth else str(result.verdict)
