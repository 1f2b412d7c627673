"""Commands about recorded runs and declared audits, without a new run of all audits.

``replay`` and ``confirm`` repeat one audit, ``report`` renders a record, ``list`` and
``show`` describe declared audits, and ``explain`` describes a verdict.
"""

from __future__ import annotations

import secrets
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from auditdp.cli.again import options_of, task_of
from auditdp.cli.common import (
    Data,
    ExitCode,
    Keyword,
    Paths,
    Profile,
    Source,
    app,
    budget_option,
    coloured,
    columns,
    one_of,
    print_line,
    print_report,
    read_run,
    read_whole,
    reading_of,
    sandbox,
    say,
    tell,
)
from auditdp.cli.project import given, settings
from auditdp.errors import ConfigurationError, did_you_mean
from auditdp.files import write_together
from auditdp.report.formats import FORMATS, WIDTH, format_of, render, writable

if TYPE_CHECKING:
    from auditdp.record.results import AuditResult, Evidence
    from auditdp.runner.plan import Listed, PlanOptions

JUDGED = [name for name, format in FORMATS.items() if format.is_judged]


@app.command()
def replay(
    finding: Annotated[
        str,
        typer.Argument(
            help="The id of an audit in the last run, or enough of it to be unique."
        ),
    ],
    source: Annotated[
        Path | None,
        typer.Option(
            "--run", "--log", callback=given, help="Log or JSON report of the run."
        ),
    ] = None,
    data: Data = "",
) -> None:
    """Run one audit of a recorded run again, with its seed, level and budget.

    The outcomes are compared. The file has to be one that collection finds below the
    working folder: a record names the files to import, and may come from somebody else.
    """
    from auditdp.cli.common import interruptible
    from auditdp.mechanism.protocol import OWN_RANDOMNESS
    from auditdp.record.results import REFUTATIONS, Verdict
    from auditdp.runner.pool import Workers

    record = read_run(source)
    chosen = one_of(finding, record.results)
    if (
        chosen.claim is None
        and chosen.verdict is Verdict.ERROR
        and "::" not in chosen.id
    ):
        raise ConfigurationError(
            f"{chosen.id} did not import in that run, so there is nothing to replay"
        )
    options = options_of(record, chosen, data)
    with (
        interruptible(),
        Workers(overrides=options.overrides, sandbox=sandbox(settings())) as processes,
    ):
        task = task_of(chosen, options, processes)
        (result,) = processes.run([task])
        print_line(result)
        # If a mechanism draws its own randomness, the numbers differ, and only the
        # verdicts can be compared.
        own = OWN_RANDOMNESS in result.reproduce
        same = (
            result.verdict == chosen.verdict if own else _same_outcome(result, chosen)
        )
        say(
            f"{'same outcome as' if same else 'DIFFERENT OUTCOME from'} the recorded "
            f"run: {_shown(chosen)} then, "
            f"{_shown(result)} now"
        )
        if chosen.recorded:
            for line in processes.ask("again", task, chosen):
                say(line)
    if result.verdict is Verdict.ERROR:
        raise typer.Exit(ExitCode.CRASHED)
    if result.verdict is Verdict.SKIPPED and same:
        raise typer.Exit(ExitCode.NOTHING)
    if result.verdict in REFUTATIONS or not same:
        raise typer.Exit(ExitCode.FOUND)
    raise typer.Exit(ExitCode.INCONCLUSIVE if result.is_unconfirmed else ExitCode.OK)


@app.command("report")
def report_command(
    source: Source = None,
    output: Annotated[
        str,
        typer.Option(
            "-f",
            "--format",
            help=f"{', '.join(FORMATS)}; html for a file, terminal without one.",
        ),
    ] = "",
    path: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            callback=given,
            help="File to write; standard output unless given.",
        ),
    ] = None,
    author: Annotated[
        str,
        typer.Option(
            "--by", help="Name of the person who is responsible; the report states it."
        ),
    ] = "",
    since: Annotated[
        Path | None,
        typer.Option(
            "--since",
            callback=given,
            help="Log or JSON report of the last report's run, to print the changes.",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help=f"Say what it changes of the baseline, in {', '.join(JUDGED)}.",
        ),
    ] = False,
) -> None:
    """Render the report of a recorded run.

    html writes a folder beside the file with a page for each audit; without -o it is
    one page.

    Lines of a log that do not count are named and omitted; the exit code is then 3, and
    0 otherwise.
    """
    from auditdp.cli.run_scope import against_baseline
    from auditdp.record.baseline import read_baseline
    from auditdp.report.formats import report_files

    output = output or ("terminal" if path is None else "html")
    chosen = format_of(output)
    if path is not None:
        writable(path)
        chosen.refuse_what_is_not_ours(path)
    reading = reading_of(source)
    record = replace(reading.record, author=author or reading.record.author)
    found = (
        against_baseline(record, read_baseline(Path(settings().baseline)))
        if check
        else None
    )
    if path is None:
        print_report(
            render(
                record,
                output,
                colour=coloured(sys.stdout),
                width=columns(),
                differences=found,
            ),
            output,
        )
    else:
        previous = read_whole(since) if since else None
        files = report_files(record, output, path, previous=previous, differences=found)
        write_together(files, below=path.parent)
    if not reading.is_whole:
        raise typer.Exit(ExitCode.CRASHED)


def _same_outcome(one: AuditResult, other: AuditResult) -> bool:
    """Return True if two results of an audit agree.

    They need the same verdict, and evidence of the same kinds with the same verdicts
    and numbers of calls. Wealth and bounds have to be equal, except for last digits
    that depend on the processor.
    """
    from auditdp.numerics.rounding import SAME, same_number

    parts = [
        [(e.kind, e.verdict, e.calls) for e in result.evidence]
        for result in (one, other)
    ]
    found: list[list[AuditResult | Evidence]] = [
        [result, *result.evidence] for result in (one, other)
    ]
    numbers = [
        [x for e in each for x in (e.log_e_value, e.epsilon_lower, e.epsilon_upper)]
        for each in found
    ]
    return (
        one.verdict is other.verdict
        and parts[0] == parts[1]
        and all(
            a == b or (a is not None and b is not None and same_number(a, b, near=SAME))
            for a, b in zip(*numbers, strict=True)
        )
    )


def _shown(result: AuditResult) -> str:
    wealth = [
        f"{e.kind} {e.log_e_value:.6g} nats"
        for e in result.evidence
        if e.log_e_value is not None
    ]
    return (
        f"{result.verdict} (wealth: {', '.join(wealth)})"
        if wealth
        else str(result.verdict)
    )


@app.command()
def confirm(
    finding: Annotated[
        str,
        typer.Argument(
            help="The id of a finding of the last run, or enough of it to be unique."
        ),
    ],
    source: Annotated[
        Path | None,
        typer.Option("--run", callback=given, help="Log or JSON report of the run."),
    ] = None,
    alpha: Annotated[
        float, typer.Option(help="Error probability of this test alone.")
    ] = 0.05,
    seed: Annotated[
        int | None,
        typer.Option(help="Root seed; a fresh one is drawn and printed unless given."),
    ] = None,
    budget: Annotated[list[str] | None, budget_option("that of the run")] = None,
    data: Data = "",
) -> None:
    """Test a finding again, with a fresh seed and a fresh α.

    The exit code is 1 if it is found again, 0 if not, and 3 if the audit crashes or is
    skipped. A refutation that the run did not confirm can be tested as well; if it is
    not confirmed again, the exit code is 4. The two tests are independent, so both
    refute a true claim with probability at most the product of their error
    probabilities. A finding that is not found again is not withdrawn: a smaller budget,
    or chance, may have missed it. The file has to be one that collection finds below
    the working folder.
    """
    from auditdp.cli.common import interruptible
    from auditdp.record.results import REFUTATIONS, Verdict
    from auditdp.runner.pool import Workers

    record = read_run(source)
    chosen = one_of(finding, record.results)
    if chosen.verdict not in REFUTATIONS and not chosen.is_unconfirmed:
        raise ConfigurationError(
            f"{chosen.id} ended {chosen.verdict}, so there is no finding to confirm"
        )
    root_seed = seed if seed is not None else _other_than(record.root_seed)
    if root_seed == record.root_seed:
        raise ConfigurationError(
            f"--seed {seed} is that of the run, whose finding it would only repeat; "
            "give another, or none (to repeat it: "
            "auditdp replay)"
        )
    was = options_of(record, chosen, data)
    budget_now = "".join(budget or ()) or was.budget
    with (
        interruptible(),
        Workers(overrides=was.overrides, sandbox=sandbox(settings())) as processes,
    ):
        options = replace(was, root_seed=root_seed, alpha=alpha, budget=budget_now)
        task = task_of(chosen, options, processes)
        (result,) = processes.run([task])
    tell(f"root seed {root_seed}")
    print_line(result)
    if result.verdict in (Verdict.ERROR, Verdict.SKIPPED):
        say(
            f"not confirmed: the audit ended {result.verdict}, so nothing is known about the finding"
        )
        raise typer.Exit(ExitCode.CRASHED)
    if result.verdict not in REFUTATIONS:
        say(
            f"not confirmed: {chosen.verdict} in the run, {result.verdict} on fresh "
            f"randomness (α = {alpha:g})"
        )
        raise typer.Exit(
            ExitCode.INCONCLUSIVE if result.is_unconfirmed else ExitCode.OK
        )
    if result.log_e_value is None:
        say(
            "confirmed: its refutation is computed without random draws, so no seed changes it"
        )
    else:
        from auditdp.numerics.rounding import outwards

        both = f"probability at most {outwards((chosen.alpha or 1) * alpha, up=True, digits=3)}"
        say(
            f"confirmed on fresh randomness with α = {alpha:g}; a true claim is refuted twice with {both}"
        )
    raise typer.Exit(ExitCode.FOUND)


def _other_than(seed: int) -> int:
    drawn = secrets.randbelow(2**32 - 1)
    return drawn + (drawn >= seed)


@app.command("list")
def list_audits(
    paths: Paths = None, keyword: Keyword = "", profile: Profile = ""
) -> None:
    """List the audits that would run.

    Each has the first line of its description.
    """
    declared, failures = _discovered(paths or list(settings(profile).paths), keyword)
    for item in declared:
        first = item.description.partition("\n")[0]
        mark = "" if item.expect == "holds" else f" [a {item.expect} is expected]"
        tell(f"{item.id}  {first}{mark}")
    for _, reason in failures:
        say(f"ERROR {reason}")
    if failures:
        raise typer.Exit(ExitCode.CRASHED)
    if not declared:
        say("no audits found")
        raise typer.Exit(ExitCode.NOTHING)


@app.command()
def show(
    identifier: Annotated[str, typer.Argument(metavar="ID", help="An audit's id.")],
) -> None:
    """Show what one audit declares.

    That is its claim with its source, parameters, neighbours and controls.
    """
    from auditdp.runner.plan import PlanOptions

    item, answer = answer_about(
        identifier, "show", options=PlanOptions(root_seed=0, default_timeout=SECONDS)
    )
    tell(f"{item.id}\n\n{item.description}\n")
    for name, value in answer["rows"]:
        tell(f"  {name:<11} {value}")


SECONDS = 60.0
"""Time limit in seconds for the factory of the audit that ``show`` describes."""


def answer_about(
    identifier: str, kind: str, *arguments: Any, options: PlanOptions
) -> tuple[Listed, Any]:
    """Return an audit, and the answer of its own process to a question about it.

    The answer is a dictionary with one key: 'rows' for 'show', and 'trace' or 'skipped'
    for 'trace'.

    Args:
        identifier: The id of the audit, or a part of it that is unique.
        kind: The question, 'show' or 'trace'.
        arguments: For 'trace', the number of pairs to generate.
        options: The plan options, such as the seed and the time limit.

    Raises:
        ConfigurationError: If there is no such audit, or it does not import, or its
            declaration is refused.
        Exit: With the exit code of a crash, if the code of the audit raised an error.
        CrashError: If the process died, or cannot be started.
    """
    from auditdp.cli.common import interruptible
    from auditdp.runner.plan import discover, make_plan
    from auditdp.runner.pool import Workers

    with interruptible(), Workers(needed=(), sandbox=sandbox(settings())) as processes:
        target = given(identifier) if "::" in identifier else identifier
        if "::" not in identifier:
            declared, _ = discover(list(settings().paths), collect=processes.collect)
            target = str(one_of(identifier, declared).id)
        plan = make_plan([target], options, collect=processes.collect)
        if plan.failures:
            raise ConfigurationError(plan.failures[0][1])
        (item,), _ = discover([target], collect=processes.collect)
        answer = processes.ask(kind, plan.tasks[0], *arguments)
    if "refused" in answer:
        raise ConfigurationError(answer["refused"])
    if "crashed" in answer:
        say(f"ERROR {item.id}: {answer['crashed']}")
        raise typer.Exit(ExitCode.CRASHED)
    return item, answer


def _discovered(
    targets: list[str], keyword: str
) -> tuple[list[Listed], list[tuple[str, str]]]:
    from auditdp.cli.common import interruptible
    from auditdp.runner.plan import discover
    from auditdp.runner.pool import Workers

    with interruptible(), Workers(needed=(), sandbox=sandbox(settings())) as processes:
        return discover(targets, keyword, collect=processes.collect)


@app.command()
def explain(
    verdict: Annotated[
        str, typer.Argument(metavar="VERDICT", help="Such as NOT_REFUTED.")
    ],
) -> None:
    """Explain a verdict, and what to do about it.

    Raises:
        ConfigurationError: If there is no such verdict.
    """
    from auditdp.record.results import Verdict
    from auditdp.report.guesses import MEANINGS, REMEDIES

    name = verdict.upper().replace(" ", "_").replace("-", "_")
    if name not in [*Verdict]:
        raise ConfigurationError(
            f"unknown verdict {verdict!r}; {did_you_mean(name, [*Verdict])}"
        )
    paragraphs = [MEANINGS[Verdict(name)], f"What to do: {REMEDIES[Verdict(name)]}"]
    tell("\n\n".join([name, *(textwrap.fill(text, WIDTH) for text in paragraphs)]))
