"""Commands that run no audit of the project.

They are ``coverage``, ``trace``, ``selftest`` and ``config show``.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditdp.cli.common import AnswerFormat, ExitCode, Profile, app, say, tell
from auditdp.cli.project import settings
from auditdp.cli.recorded import answer_about
from auditdp.configuration import KINDS
from auditdp.record.results import SYMBOLS
from auditdp.report.guesses import aligned, columns, rows
from auditdp.report.numbers import count
from auditdp.report.plain_text import printable

if TYPE_CHECKING:
    from auditdp.runner.imports import Reached
    from auditdp.runner.run_record import TracedAudit


@dataclass(frozen=True)
class Drawing:
    """A public function that draws randomness, as ``coverage`` counts it."""

    file: Path
    line: int
    name: str
    """Its name, or ``Class.method``."""
    reached: bool
    """True if the declaration of an audit leads to it."""
    changed: bool
    """True if it changed since the revision of ``--changed-since``."""


@app.command()
def coverage(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Files and folders of the code; by default all of the project."
        ),
    ] = None,
    since: Annotated[
        str,
        typer.Option(
            "--changed-since",
            metavar="REV",
            help="Also count the functions that changed since REV.",
        ),
    ] = "",
) -> None:
    """List public functions that draw randomness and that no audit reaches.

    Sources are read, and nothing is run. A function counts if it has a parameter such as
    rng, or calls code that draws. It is reached if the declaration of an audit leads to
    it, from name to name and from file to file. Only a run shows whether that audit has
    any power. With --changed-since, changed functions are marked, and also counted separately.
    """
    found = list(_drawing([path.resolve() for path in paths or [Path()]], since))
    for each in found:
        if not each.reached:
            mark = "  changed" if each.changed else ""
            place = (
                each.file.relative_to(Path.cwd())
                if each.file.is_relative_to(Path.cwd())
                else each.file
            )
            tell(f"{printable(str(place))}:{each.line}  {printable(each.name)}{mark}")
    reached = sum(each.reached for each in found)
    tell(
        f"{count(len(found), 'public function')} draw randomness; audits reach {reached:,}"
    )
    if since:
        changed = [each for each in found if each.changed]
        reached = sum(each.reached for each in changed)
        tell(
            f"the change since {printable(since)} touches {len(changed):,} of them; "
            f"audits reach {reached:,} of these"
        )


def _drawing(paths: Sequence[Path], since: str) -> Iterator[Drawing]:
    from auditdp.cli.init_discovery import drawing, files_of, functions_of, tree_of
    from auditdp.runner.changes import changed_since
    from auditdp.runner.imports import WHOLE

    reached = _reached(Path.cwd().resolve())
    changed = changed_since(since, Path.cwd()) if since else None
    for file in dict.fromkeys(file for path in paths for file in files_of(path)):
        tree = tree_of(file, file.name)
        names, functions = reached.get(file, set()), functions_of(tree)
        touched = (
            changed.names(file)
            if changed is not None and file in changed.files
            else set()
        )
        for name in drawing(tree):
            of_file = {name.partition(".")[0], WHOLE}
            yield Drawing(
                file,
                functions[name].lineno,
                name,
                bool(names & of_file),
                bool(touched & of_file),
            )


def _reached(root: Path) -> Reached:
    """Return the names that the audits of the project reach, by file."""
    from auditdp.runner.audit_sources import trace
    from auditdp.runner.imports import ALWAYS, Imports, Reach

    imports, starts = Imports(root, frozenset()), []
    for file in _audit_files(root):
        tree = imports.tree(file)
        names = [*_factories(tree)] if tree is not None else []
        starts += [(file, name) for name in names]
        starts += [
            (other, ALWAYS)
            for name in names
            for other in trace(imports, file, name).files
        ]
    return Reach(imports).all(dict.fromkeys(starts))


def _audit_files(root: Path) -> Iterator[Path]:
    for name in settings().paths:
        place = root / name
        yield from (
            sorted(place.rglob("audit_*.py"))
            if place.is_dir()
            else [place]
            if place.is_file()
            else []
        )


def _factories(tree: ast.Module) -> Iterator[str]:
    """Yield the names of the functions with the decorator ``audit``."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            names = {
                ast.unparse(each).partition("(")[0].rpartition(".")[2]
                for each in node.decorator_list
            }
            if "audit" in names:
                yield node.name


class TraceCommandLimits:
    """Default options of ``auditdp trace``, and a limit of its table."""

    pairs = 30
    """Default number of generated pairs."""
    seconds = 300.0
    """Default time limit, in seconds."""
    cell_characters = 60
    """Largest number of characters of a cell of the table of lines."""


@app.command()
def trace(
    identifier: Annotated[str, typer.Argument(metavar="ID", help="An audit's id.")],
    pairs: Annotated[
        int,
        typer.Option("--pairs", help="Pairs to generate beyond those listed.", min=0),
    ] = TraceCommandLimits.pairs,
    seed: Annotated[
        int, typer.Option("--seed", help="Seed of pairs and runs.", min=0)
    ] = 0,
    timeout: Annotated[
        float, typer.Option("--timeout", help="Seconds that it may take.")
    ] = TraceCommandLimits.seconds,
    output: Annotated[
        AnswerFormat, typer.Option("--format", help="How to print it.")
    ] = AnswerFormat.text,
) -> None:
    """Show the noise of each line of one mechanism, and its loss.

    A trace suggests and proves nothing. So the exit code is 0 also with a finding; the
    audit decides. It is 3 if the code crashes, and 5 if the audit is skipped.
    """
    from auditdp.runner.plan import PlanOptions
    from auditdp.runner.run_record import TRACED

    options = PlanOptions(root_seed=seed, timeout=timeout)
    item, answer = answer_about(identifier, "trace", pairs, options=options)
    if "skipped" in answer:
        say(f"SKIPPED {item.id}: {answer['skipped']}")
        raise typer.Exit(ExitCode.NOTHING)
    found: TracedAudit = answer["trace"]
    if output is AnswerFormat.json:
        tell(
            json.dumps(
                {"id": item.id, **TRACED.dump_python(found, mode="json")}, indent=2
            )
        )
    else:
        tell("\n".join(_text(item.id, found)))


def _text(identifier: str, found: TracedAudit) -> list[str]:
    heads = [
        *map(str.lower, columns(None)[:4]),
        f"{SYMBOLS.get(found.parameter, found.parameter)} lost",
        "share of the claim",
    ]
    listed = found.pairs - found.generated
    at = f" at {found.size}" * bool(found.size)
    lines = [
        identifier,
        f"claim {found.claim}{at}; {listed} listed and {found.generated} generated pairs",
        "",
    ]
    if found.lines:
        lines += [
            *aligned([heads, *rows(found.lines)], TraceCommandLimits.cell_characters),
            "",
        ]
    for finding in found.findings:
        kind = (
            "confirmed"
            if finding.confirmed
            else "suspicion"
            if finding.read_off
            else "where to look"
        )
        at = f" ({finding.file})" if finding.file else ""
        lines += [
            f"{kind}: {finding.sentence}{at}; on {finding.pairs} of {found.pairs} "
            f"pairs, such as {finding.pair}"
        ]
    lines += [f"opaque: {sentence}" for sentence in found.opaque]
    return [*lines, *[""] * bool(found.findings or found.opaque), found.result]


@app.command()
def selftest(seed: Annotated[int, typer.Option(help="Root seed.")] = 0) -> None:
    """Test that this installation refutes broken mechanisms, and no others.

    It takes less than a minute.
    """
    from auditdp.testing import selftest as check

    failures = 0
    for name, expected, verdict, calls in check(seed):
        good = verdict == expected
        failures += not good
        tell(
            f"{'ok  ' if good else 'FAIL'}  {name:<58} {verdict:<12} {calls:>9,} calls"
        )
    tell(
        f"{failures} failures"
        if failures
        else "the auditor refutes every broken twin and no correct mechanism"
    )
    raise typer.Exit(ExitCode.FOUND if failures else ExitCode.OK)


config_app = typer.Typer(no_args_is_help=True)
app.add_typer(config_app, name="config")


@config_app.callback()
def _group() -> None:
    """Show the settings, and where each comes from.

    Settings come from [tool.auditdp], its profiles, and the environment.
    """


@config_app.command(short_help="Show every setting, and the source of its value.")
def show(profile: Profile = "") -> None:
    """Show every setting as a line of TOML, with its origin.

    Options of a command override them all.
    """
    found = settings(profile)
    shown = {name: _toml(getattr(found, name)) for name in KINDS}
    width = max(len(f"{name} = {value}") for name, value in shown.items())
    tell(
        f"# project folder: {found.folder}"
        + (f", profile {found.profile}" if found.profile else "")
    )
    for name, value in shown.items():
        source = found.sources[name]
        line = f"{name} = {value}"
        tell(f"{line if value else f'# {name}: none':<{width}}  # {source}")


def _toml(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, tuple):
        return json.dumps(list(value), ensure_ascii=False)
    return (
        json.dumps(value, ensure_ascii=False)
        if isinstance(value, str | bool)
        else repr(value)
    )
