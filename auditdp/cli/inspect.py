"""``auditdp list`` and ``auditdp show``: what would run, without running it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from auditdp.cli.common import (
    CRASHED,
    NOTHING,
    Keyword,
    Paths,
    Profile,
    app,
    given,
    one_of,
    sandbox,
    say,
    settings,
    tell,
)
from auditdp.errors import ConfigurationError

if TYPE_CHECKING:
    from auditdp.runner.plan import Listed, PlanOptions


@app.command("list", short_help="List the audits that would run.")
def list_audits(paths: Paths = None, keyword: Keyword = "", profile: Profile = "") -> None:
    """List the audits that would run, with the first line of what they say."""
    declared, failures = _discovered(paths or list(settings(profile).paths), keyword)
    for item in declared:
        first = item.description.partition("\n")[0]
        mark = "" if item.expect == "holds" else f" [a {item.expect} is expected]"
        tell(f"{item.id}  {first}{mark}")
    for _, reason in failures:
        say(f"ERROR {reason}")
    if failures:
        raise typer.Exit(CRASHED)
    if not declared:
        say("no audits found")
        raise typer.Exit(NOTHING)


@app.command(short_help="Show what one audit declares.")
def show(identifier: Annotated[str, typer.Argument(metavar="ID", help="An audit's id.")]) -> None:
    """Show what one audit declares: its claim, source, parameters, neighbours and controls."""
    from auditdp.runner.plan import PlanOptions

    item, answer = answer_about(identifier, "show", options=PlanOptions(root_seed=0, default_timeout=SECONDS))
    tell(f"{item.id}\n\n{item.description}\n")
    for name, value in answer["rows"]:
        tell(f"  {name:<11} {value}")


SECONDS = 60.0
"""What the factory of an audit that is shown may take."""


def answer_about(identifier: str, kind: str, *arguments: Any, options: PlanOptions) -> tuple[Listed, Any]:
    """Return the one audit that is meant, and what a process of its own answers about it.

    Raises:
        ConfigurationError: If there is no such audit, or it is refused.
        Exit: With the code of a crash.
    """
    from auditdp.cli.ending import interruptible
    from auditdp.runner.plan import discover, make_plan
    from auditdp.runner.processes.workers import Workers

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
        raise typer.Exit(CRASHED)
    return item, answer


def _discovered(targets: list[str], keyword: str) -> tuple[list[Listed], list[tuple[str, str]]]:
    from auditdp.runner.processes.starting import start_early

    start_early(targets, needed=())  # it imports numpy meanwhile
    from auditdp.cli.ending import interruptible
    from auditdp.runner.plan import discover
    from auditdp.runner.processes.workers import Workers

    with interruptible(), Workers(needed=(), sandbox=sandbox(settings())) as processes:
        return discover(targets, keyword, collect=processes.collect)
