"""``auditdp list`` and ``auditdp show``: what would run, without running it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from auditdp.adjacency import as_adjacency
from auditdp.cli.common import CRASHED, NOTHING, Keyword, Paths, app, one_of, say
from auditdp.config import Configuration, load
from auditdp.errors import AuditError, ConfigurationError, Skip
from auditdp.mechanism import name_of
from auditdp.runner.plan import discover


@app.command("list")
def list_audits(paths: Paths = None, keyword: Keyword = "") -> None:
    """List the audits that would run, with the first line of what they say."""
    declared, failures = discover(paths or list(load(Path.cwd()).paths), keyword)
    for item in declared:
        first = item.description.partition("\n")[0]
        mark = "" if item.expect == "holds" else f" [a {item.expect} is expected]"
        typer.echo(f"{item.id}  {first}{mark}")
    for _, reason in failures:
        say(f"ERROR {reason}")
    if failures:
        raise typer.Exit(CRASHED)
    if not declared:
        say("no audits found")
        raise typer.Exit(NOTHING)


@app.command()
def show(identifier: Annotated[str, typer.Argument(metavar="ID", help="An audit's id.")]) -> None:
    """Show what one audit declares: its claim, source, parameters, neighbours and controls."""
    target = identifier if "::" in identifier else _resolve(identifier, load(Path.cwd()))
    declared, failures = discover([target])
    if failures:
        raise ConfigurationError(failures[0][1])
    item = declared[0]
    rows: list[tuple[str, str]] = [("source", item.source or "not stated"), ("expected", item.expect)]
    if item.row:
        rows += [("published", f"{item.row}, {item.reading}" if item.reading else item.row)]
    if item.repairs:
        rows += [("repairs", item.repairs)]
    rows += [("parameter", f"{name} = {value!r}") for name, value in item.parameters.items()]
    rows += [("tried", f"{name} = {', '.join(map(str, sizes))}") for name, sizes in item.smallest.items()]
    try:
        built, _ = item.build({})
        rows += [] if built.is_formula else [("mechanism", name_of(built.mechanism))]
        rows += [("claim", str(built.claim))]
        rows += [("accountant", accountant.name) for accountant in built.accountants]
        rows += [("about", built.about.describes.text)] if built.about is not None else []
        if built.inputs is not None:
            rows += [("inputs", name) for name in built.inputs]
        elif not built.is_formula:
            adjacency = as_adjacency(built.pairs)
            rows += [("neighbours", adjacency.name)]
            rows += [("pair", str(pair)) for pair in (built.play or adjacency.pairs())]
        rows += [("control", name_of(control)) for control in built.controls]
    except Skip as reason:
        rows += [("skipped", str(reason))]
    except AuditError:
        raise
    except Exception as error:
        say(f"ERROR {item.id}: {type(error).__name__}: {error}")
        raise typer.Exit(CRASHED) from error
    typer.echo(f"{item.id}\n\n{item.description}\n")
    for name, value in rows:
        typer.echo(f"  {name:<11} {value}")


def _resolve(fragment: str, configuration: Configuration) -> str:
    declared, _ = discover(list(configuration.paths))
    return str(one_of(fragment, declared).id)
