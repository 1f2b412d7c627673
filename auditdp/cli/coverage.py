"""``auditdp coverage``: public functions that draw noise and that no audit reaches, read from the sources and not run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditdp.cli.common import app, settings, tell
from auditdp.report.numbers import count
from auditdp.report.text import printable

if TYPE_CHECKING:
    from auditdp.runner.sources.reach import Reached


@dataclass(frozen=True)
class Drawing:
    """A public function that draws randomness."""

    file: Path
    line: int
    name: str
    reached: bool
    changed: bool


@app.command(short_help="List functions that draw noise and that no audit reaches.")
def coverage(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Files and folders of the code; all of the project's.")
    ] = None,
    since: Annotated[
        str, typer.Option("--changed-since", metavar="REV", help="Also count those that this changes.")
    ] = "",
) -> None:
    """List public functions that draw randomness and that no audit reaches, and count those of a change.

    Sources are read, and nothing is run: a function is found by what it calls, and reached where the declaration of an audit
    leads to it, from name to name and from file to file. Whether an audit is of any power is what a run says.
    """
    found = list(_drawing([path.resolve() for path in paths or [Path()]], since))
    for each in found:
        if not each.reached:
            mark = "  changed" if each.changed else ""
            place = each.file.relative_to(Path.cwd()) if each.file.is_relative_to(Path.cwd()) else each.file
            tell(f"{printable(str(place))}:{each.line}  {printable(each.name)}{mark}")
    reached = sum(each.reached for each in found)
    tell(f"{count(len(found), 'public function')} draw randomness; audits reach {reached:,}")
    if since:
        changed = [each for each in found if each.changed]
        reached = sum(each.reached for each in changed)
        tell(f"the change since {printable(since)} touches {len(changed):,} of them; audits reach {reached:,} of these")


def _drawing(paths: Sequence[Path], since: str) -> Iterator[Drawing]:
    from auditdp.cli.init.finding import drawing, files_of, functions_of, tree_of
    from auditdp.runner.sources.git import changed_since
    from auditdp.runner.sources.reach import WHOLE

    reached = _reached(Path.cwd().resolve())
    changed = changed_since(since, Path.cwd()) if since else None
    for file in dict.fromkeys(file for path in paths for file in files_of(path)):
        tree = tree_of(file, file.name)
        names, functions = reached.get(file, set()), functions_of(tree)
        touched = changed.names(file) if changed is not None and file in changed.files else set()
        for name in drawing(tree):
            of_file = {name.partition(".")[0], WHOLE}
            yield Drawing(file, functions[name].lineno, name, bool(names & of_file), bool(touched & of_file))


def _reached(root: Path) -> Reached:
    """Return what all audits of the project reach."""
    from auditdp.runner.sources.audits import trace
    from auditdp.runner.sources.imports import Imports
    from auditdp.runner.sources.reach import ALWAYS, Reach

    imports, starts = Imports(root, frozenset()), []
    for file in _audit_files(root):
        tree = imports.tree(file)
        names = [*_factories(tree)] if tree is not None else []
        starts += [(file, name) for name in names]
        starts += [(other, ALWAYS) for name in names for other in trace(imports, file, name).files]
    return Reach(imports).all(dict.fromkeys(starts))


def _audit_files(root: Path) -> Iterator[Path]:
    for name in settings().paths:
        place = root / name
        yield from sorted(place.rglob("audit_*.py")) if place.is_dir() else [place] if place.is_file() else []


def _factories(tree: ast.Module) -> Iterator[str]:
    """Yield the functions that declare an audit."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            names = {ast.unparse(each).partition("(")[0].rpartition(".")[2] for each in node.decorator_list}
            if "audit" in names:
                yield node.name
