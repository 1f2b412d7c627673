"""The source files of one audit: the audit file, and the files that it needs.

``imports`` has the import graph of all files; here it starts from one factory, the
function that declares an audit.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from auditdp.runner.imports import REFLECTING, Imports, bound_by

HARNESS = Path(__file__).resolve().parents[1]
"""The folder of auditdp. Imports are not followed into it, since a change of auditdp
affects every audit anyway."""


@dataclass(frozen=True)
class Traced:
    """The source files of an audit."""

    files: frozenset[Path]
    """The audit file, and the files that the audit imports, directly or not. Files of
    auditdp are left out."""
    opaque: str = ""
    """Why the audit may import further files; empty if it does not."""


def trace(imports: Imports, file: Path, factory: str) -> Traced:
    """Return the source files of an audit, within the folder of ``imports``.

    Of the imports of the audit file, only two kinds count: those that the factory
    reaches through names at the top of the file, and those in statements that always
    run. All imports of other files count.

    Args:
        imports: The import graph.
        file: The audit file.
        factory: Name of the function that declares the audit.

    Returns:
        The files. If the audit file cannot be parsed, it is the only one, and
        ``opaque`` has the reason.
    """
    tree = imports.tree(file)
    if tree is None:
        return Traced(frozenset({file}), f"{file.name} cannot be parsed")
    needed = _needed(tree, factory)
    parts = ast.Module(body=needed, type_ignores=[])
    direct = imports.resolved(imports.imported(parts, file), beside=file.parent)
    files = imports.closure(
        {found for found in direct if not found.is_relative_to(HARNESS)}
    )
    files = frozenset(
        {file} | {found for found in files if not found.is_relative_to(HARNESS)}
    )
    computed = sorted(
        (found, line) for found, line in imports.opaque.items() if found in files
    )
    if not computed:
        return Traced(files)
    name, line = computed[0]
    return Traced(
        files,
        f"{name.relative_to(imports.root).as_posix()}, line {line}, imports a name "
        "that only a run determines",
    )


def _needed(tree: ast.Module, factory: str) -> list[ast.stmt]:
    """Return the statements at the top of a module that a function needs.

    These are the statements that it reaches through names, and all statements that bind
    no name, since those always run. All statements are returned if the module does not
    define the function, or if names may be used that do not occur in the code.
    """
    bound: dict[str, list[ast.stmt]] = {}
    always: list[ast.stmt] = []
    for statement in tree.body:
        names = list(bound_by(statement))
        for name in names:
            bound.setdefault(name, []).append(statement)
        if not names or "*" in names:
            always.append(statement)
    if factory not in bound:
        return tree.body
    chosen: list[ast.stmt] = []
    waiting = [*bound[factory], *always]
    while waiting:
        statement = waiting.pop()
        if any(statement is other for other in chosen):
            continue
        chosen.append(statement)
        used = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        if used & REFLECTING:
            return tree.body
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            waiting += [found for name in used for found in bound.get(name, ())]
    return chosen
