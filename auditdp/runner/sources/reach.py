"""What a function reaches: the statements at the top of files that it needs, through imports from file to file.

A name leads to the statements that bind it, these to the names that they use, and an import to the name in the other file. A
module that is used as a whole is reached as a whole. What runs at an import and binds no name, such as a call, is reached in
every file that is imported; so are decorated functions whose decorator is the project's own, which may register them.
Docstrings and comments are no code.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from auditdp.runner.sources.imports import Imported, Imports

REFLECTING = {"globals", "locals", "vars", "eval", "exec", "__subclasses__"}
"""Names by which code reaches others that it does not write down."""
ALWAYS = ""
"""Stands for what runs whenever a file is imported."""
WHOLE = "*"
"""Stands for all of a file."""
Reached = dict[Path, set[str]]
"""The names that are reached in each file, and ``ALWAYS`` or ``WHOLE``."""


@dataclass
class Reach:
    """Follows names from file to file."""

    imports: Imports
    _parts: dict[Path, dict[str, list[ast.stmt]]] = field(default_factory=dict)

    def of(self, file: Path, name: str, files: Iterable[Path]) -> Reached:
        """Return what a name of a file reaches."""
        return self.all([(file, name), *((other, ALWAYS) for other in (file, *files))])

    def all(self, starts: Iterable[tuple[Path, str]]) -> Reached:
        """Return what several names reach, each of a file."""
        found: Reached = {}
        waiting = list(starts)
        while waiting:
            place, wanted = waiting.pop()
            names = found.setdefault(place, set())
            if wanted in names or WHOLE in names:
                continue
            names.add(wanted)
            waiting += self._next(place, wanted)
        return found

    def _next(self, file: Path, name: str) -> Iterator[tuple[Path, str]]:
        parts = self.parts(file)
        for statement in parts.get(name, ()) if name != WHOLE else (s for every in parts.values() for s in every):
            used = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
            used |= {node.attr for node in ast.walk(statement) if isinstance(node, ast.Attribute)} & REFLECTING
            if used & REFLECTING:
                yield file, WHOLE
            yield from ((file, each) for each in used if each in parts or not hasattr(builtins, each))
            for item in self.imports.imported(statement, file):
                yield from self._imported(item, file, name)

    def _imported(self, item: Imported, file: Path, name: str) -> Iterator[tuple[Path, str]]:
        """Yield what an import reaches; of one that binds several names at the top, the part that binds this one."""
        own = self.imports.module(item.name, item.folder, beside=file.parent)
        bound = {each for each in item.names if item.bound(each) == name}
        for each in bound or item.names or (WHOLE,):
            inside = [place for place in own if each == WHOLE or each in self.parts(place)]
            yield from ((place, each) for place in inside)
            if not inside:
                parts = ".".join(part for part in (item.name, each) if part)
                yield from ((p, WHOLE) for p in self.imports.module(parts, item.folder, beside=file.parent))
                yield from ((place, each) for place in own)  # a name that is not there may have been

    def parts(self, file: Path) -> dict[str, list[ast.stmt]]:
        """Return the statements of a file by the names that they bind, and those that always run."""
        if file not in self._parts:
            tree = self.imports.tree(file)
            self._parts[file] = {} if tree is None else parts_of(tree)
        return self._parts[file]


def parts_of(tree: ast.Module) -> dict[str, list[ast.stmt]]:
    """Return the statements of a module by the names that they bind at its top, and those that always run."""
    found: dict[str, list[ast.stmt]] = {ALWAYS: []}
    top = {name for statement in tree.body for name in bound_by(statement)}
    for statement in tree.body:
        if _is_text(statement) or _is_script(statement):
            continue
        names = list(bound_by(statement))
        for name in names:
            found.setdefault(name, []).append(statement)
        if not names or "*" in names or _registers(statement, top):
            found[ALWAYS].append(statement)
    return found


def changed_names(before: bytes | None, after: bytes | None) -> set[str]:
    """Return the names of a file whose statements differ, ``ALWAYS`` among them; ``WHOLE`` where one cannot be read."""
    if before is None or after is None:
        return {WHOLE}
    try:
        old, new = (parts_of(ast.parse(text)) for text in (before, after))
    except (SyntaxError, ValueError):
        return {WHOLE}
    return {name for name in {*old, *new} if _code(old.get(name, [])) != _code(new.get(name, []))}


def bound_by(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement binds at the top of its module, if that is all that it does."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in statement.names)
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        names = [node for target in targets for node in ast.walk(target)]
        if all(isinstance(node, ast.Name | ast.Tuple | ast.List | ast.expr_context) for node in names):
            yield from (node.id for node in names if isinstance(node, ast.Name))


def _registers(statement: ast.stmt, own: set[str]) -> bool:
    """Return whether a decorator may register what it decorates: one that the file binds, auditdp's own aside."""
    decorators = getattr(statement, "decorator_list", ())
    names = {node.id for each in decorators for node in ast.walk(each) if isinstance(node, ast.Name)}
    return bool(names & (own - {"audit", "auditdp", "dataclass", "dataclasses", "functools", "property"}))


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_script(statement: ast.stmt) -> bool:
    """Return whether a statement runs only where the file is the script."""
    return isinstance(statement, ast.If) and ast.unparse(statement.test).replace('"', "'") == "__name__ == '__main__'"


def _code(statements: Iterable[ast.stmt]) -> list[str]:
    """Return what tells statements apart: not their places, nor texts that stand by themselves."""
    return [ast.dump(_Bare().visit(ast.parse(ast.unparse(statement)))) for statement in statements]


class _Bare(ast.NodeTransformer):
    """Leaves out texts that stand by themselves, as docstrings do."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """Put an empty statement in place of a text."""
        return ast.Pass() if _is_text(node) else node
