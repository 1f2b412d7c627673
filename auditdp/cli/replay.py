"""``auditdp replay`` and ``auditdp report``: what a recorded run said, again."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from auditdp.cli.common import (
    CRASHED,
    FORMATS,
    FOUND,
    JUDGED,
    NOTHING,
    OK,
    Data,
    Source,
    app,
    columns,
    given,
    known_format,
    one_of,
    print_line,
    print_report,
    read_run,
    refuse_what_is_not_ours,
    say,
    settings,
    writable,
    write,
)
from auditdp.errors import ConfigurationError

if TYPE_CHECKING:
    from auditdp.results import AuditResult


@app.command()
def replay(
    finding: Annotated[str, typer.Argument(help="The id of an audit in the last run, or enough of it to be unique.")],
    source: Annotated[Path | None, typer.Option("--run", callback=given, help="Log or JSON report of the run.")] = None,
    data: Data = "",
) -> None:
    """Run one audit of a recorded run again, with its randomness, level and budget, and compare the verdicts.

    Its file has to be one that collection finds below the working folder: a record names what is imported, and may come
    from somebody else.
    """
    from auditdp.cli.ending import interruptible
    from auditdp.mechanism import OWN_RANDOMNESS
    from auditdp.results import REFUTATIONS, Verdict
    from auditdp.runner.plan import make_plan
    from auditdp.runner.workers import Workers

    record = read_run(source)
    chosen = one_of(finding, record.results)
    if chosen.claim is None and chosen.verdict is Verdict.ERROR and "::" not in chosen.id:
        raise ConfigurationError(f"{chosen.id} did not import in that run, so there is nothing to replay")
    refuse_what_is_elsewhere(chosen.id)
    overrides = record.arguments.get("parameters", {}).get(chosen.id, {})
    with interruptible(), Workers(overrides=overrides) as processes:
        plan = make_plan(
            [chosen.id],
            root_seed=record.root_seed,
            collect=processes.collect,
            overrides=overrides,
            alpha=float(chosen.alpha or 0.05),
            budget=str(record.arguments.get("budget", "standard")),
            timeout=record.arguments.get("timeout") if record.arguments.get("timeout_for_all") else None,
            default_timeout=record.arguments.get("timeout"),
            data=data or str(record.arguments.get("data", "")),
        )
        if plan.failures:
            raise ConfigurationError(plan.failures[0][1])
        (result,) = processes.run(plan.tasks)
        print_line(result)
        # Where a mechanism draws its own randomness, the numbers differ and the verdict is what can be compared.
        own = OWN_RANDOMNESS in result.reproduce
        same = result.verdict == chosen.verdict if own else _outcome(result) == _outcome(chosen)
        say(
            f"{'same outcome as' if same else 'DIFFERENT OUTCOME from'} the recorded run: {_shown(chosen)} then, "
            f"{_shown(result)} now"
        )
        if any("outputs" in (evidence.details.get("confirmation") or {}) for evidence in chosen.evidence):
            for line in processes.ask("again", plan.tasks[0], chosen):
                say(line)
    if result.verdict is Verdict.ERROR:
        raise typer.Exit(CRASHED)
    if result.verdict is Verdict.SKIPPED and same:
        raise typer.Exit(NOTHING)
    raise typer.Exit(FOUND if result.verdict in REFUTATIONS or not same else OK)


def refuse_what_is_elsewhere(identifier: str) -> None:
    """Raise unless the file of an id is one that collection finds below the working folder.

    Raises:
        ConfigurationError: If it is not.
    """
    from auditdp.runner.plan import audit_files

    here, path = Path.cwd().resolve(), Path(identifier.partition("::")[0])
    named = [text for text in settings().paths if Path(text).exists()]
    found = {file.resolve() for file, _ in audit_files([".", *named])}
    if path.resolve() not in found or not path.resolve().is_relative_to(here):
        raise ConfigurationError(
            f"{path} is no audit file that is found below {here}, and a record must not choose what is imported; go to the "
            "folder of the run, or run the audit by its id"
        )


@app.command("report")
def report_command(
    source: Source = None,
    output: Annotated[
        str, typer.Option("-f", "--format", help=f"{', '.join(FORMATS)}; html for a file, terminal without one.")
    ] = "",
    path: Annotated[
        Path | None,
        typer.Option("-o", "--output", callback=given, help="File to write; standard output unless given."),
    ] = None,
    author: Annotated[str, typer.Option("--by", help="Who ran it, as the report is to say.")] = "",
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
    """Render the report of a recorded run; html has a folder beside it with a page for each audit."""
    from auditdp.baseline.file import read_baseline
    from auditdp.cli.judging import against_baseline
    from auditdp.report.formats import render
    from auditdp.report.publishing import report_files
    from auditdp.report.screen import coloured

    output = output or ("terminal" if path is None else "html")
    known_format(output)
    if path is not None:
        writable(path)
        refuse_what_is_not_ours(path, output)
    record = read_run(source)
    record = replace(record, author=author or record.author)
    found = against_baseline(record, read_baseline(Path(settings().baseline))) if check else None
    if path is None:
        print_report(render(record, output, colour=coloured(sys.stdout), width=columns(), differences=found), output)
        return
    previous = read_run(since) if since else None
    for file, text in report_files(record, output, path, previous=previous, differences=found).items():
        write(file, text)


def _outcome(result: AuditResult) -> tuple[Any, ...]:
    each = [(e.kind, e.verdict, e.log_e_value, e.epsilon_lower, e.epsilon_upper, e.calls) for e in result.evidence]
    return (result.verdict, result.epsilon_lower, result.epsilon_upper, each)


def _shown(result: AuditResult) -> str:
    wealth = [f"{e.kind} {e.log_e_value:.6g} nats" for e in result.evidence if e.log_e_value is not None]
    return f"{result.verdict} (wealth: {', '.join(wealth)})" if wealth else str(result.verdict)
