"""The import graph of Python files in a folder, and the code that a function reaches.

``Imports`` is the graph. Files are read as syntax trees. Imports within functions
count, and so do texts that are given to ``import_module``. An import by a computed name
cannot be followed: the file is then opaque, and callers have to assume that it imports
anything.

``Reach`` follows names. A function reaches statements at the top of files. A name leads
to the statements that bind it, these lead to the names that they use, and an import
leads to the name in the other file. If code uses a module as a whole, all statements of
the module are reached. Statements that bind no name, such as a call, run at the import,
so they are reached in every imported file. The same holds for functions with a
decorator that may register them. Docstrings and comments are not code.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path

IMPORTERS = ("import_module", "__import__")
PLAIN_DECORATORS = {
    "abc",
    "auditdp",
    "contextlib",
    "dataclasses",
    "functools",
    "typing",
}
"""Modules whose decorators register no function."""


@dataclass(frozen=True)
class Imported:
    """One import: the module, and the names that are imported from it."""

    name: str
    """Name of the module; in a relative import, the part after the dots, which may be
    empty."""
    folder: Path | None = None
    """Folder in which a relative import starts; None for an absolute import."""
    names: tuple[str, ...] = ()
    """Names that are imported from the module; each may be a module itself. Empty for
    ``import module``."""
    called: tuple[str, ...] = ()
    """Local names of ``names``, in the same order."""

    def bound(self, name: str) -> str:
        """Return the local name of an imported name; other names stay as they are."""
        return dict(zip(self.names, self.called, strict=True)).get(name, name)


@dataclass
class Imports:
    """The import graph of the files below a folder.

    Files outside the folder, or in hidden folders, are not followed.
    """

    root: Path
    """The folder, as an absolute path."""
    removed: frozenset[Path] = frozenset()
    """Files that no longer exist, and to which imports lead nonetheless."""
    _direct: dict[Path, frozenset[Path]] = field(default_factory=dict)
    opaque: dict[Path, int] = field(default_factory=dict)
    """Files that import by a computed name, or cannot be parsed, each with the line of
    that import or error. They are added when a method reads them."""

    def closure(self, files: Iterable[Path]) -> frozenset[Path]:
        """Return these files, and all files that they import, directly or not."""
        found: set[Path] = set()
        waiting = list(files)
        while waiting:
            file = waiting.pop()
            if file not in found:
                found.add(file)
                waiting += self.direct(file)
        return frozenset(found)

    def direct(self, file: Path) -> frozenset[Path]:
        """Return the files that a file imports directly.

        The ``__init__.py`` of their packages are among them.
        """
        if file not in self._direct:
            self._direct[file] = frozenset()
            if (tree := self.tree(file)) is not None:
                self._direct[file] = self.resolved(
                    self.imported(tree, file), beside=file.parent
                ) - {file}
        return self._direct[file]

    def tree(self, file: Path) -> ast.Module | None:
        """Return the syntax tree of a file, or None if there is no such Python file.

        A file that cannot be parsed has none either, and becomes opaque.
        """
        if file.suffix != ".py" or not file.is_file():
            return None
        try:
            return ast.parse(file.read_bytes(), str(file))
        except (SyntaxError, ValueError) as error:
            self.opaque[file] = getattr(error, "lineno", None) or 1
            return None

    def imported(self, tree: ast.AST, file: Path) -> Iterator[Imported]:
        """Yield the imports in some code; one by a computed name makes ``file`` opaque.

        Args:
            tree: The code: a syntax tree, or a part of one.
            file: The file of the code.
        """
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                yield from (Imported(alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                names = tuple(alias.name for alias in node.names)
                folder = (
                    file.parents[node.level - 1]
                    if 0 < node.level <= len(file.parents)
                    else None
                )
                yield Imported(
                    node.module or "",
                    folder,
                    names,
                    tuple(a.asname or a.name for a in node.names),
                )
            elif isinstance(node, ast.Call) and _called(node) in IMPORTERS:
                given = node.args[0] if node.args else None
                if (
                    isinstance(given, ast.Constant)
                    and isinstance(given.value, str)
                    and not given.value.startswith(".")
                ):
                    yield Imported(given.value)
                else:
                    self.opaque.setdefault(file, node.lineno)

    def resolved(
        self, imported: Iterable[Imported], *, beside: Path
    ) -> frozenset[Path]:
        """Return the files below the root to which imports lead.

        Args:
            imported: The imports of one file.
            beside: The folder of that file, since a script also imports files in its
                folder.
        """
        found: set[Path] = set()
        for item in imported:
            folders = (
                [item.folder] if item.folder is not None else [*self._folders, beside]
            )
            for folder in folders:
                parts = [part for part in item.name.split(".") if part]
                # A relative import runs the package that it starts from.
                first = 1 if item.folder is None else 0
                for names in [parts, *([*parts, name] for name in item.names)]:
                    found |= self._modules(folder, names, first)
        return frozenset(found)

    def module(self, name: str, folder: Path | None, *, beside: Path) -> list[Path]:
        """Return the files of a module, without those of the packages that contain it.

        The files are sorted. There are none if the module is not below the root.

        Args:
            name: Name of the module.
            folder: Folder in which a relative import starts; None for an absolute one.
            beside: The folder of the importing file.
        """
        parts = [part for part in name.split(".") if part]
        folders = [folder] if folder is not None else [*self._folders, beside]
        return sorted(
            {
                file
                for place in folders
                for file in self._modules(place, parts, len(parts))
            }
        )

    @cached_property
    def _folders(self) -> list[Path]:
        """The folders below the root in which absolute imports find modules.

        They are the root, its ``src``, and the folders of Python's path, such as those
        of editable installations.
        """
        given = [Path(entry).resolve() for entry in sys.path if entry]
        inside = [
            folder
            for folder in given
            if self._is_ours(folder) and "site-packages" not in folder.parts
        ]
        return list(dict.fromkeys([self.root, self.root / "src", *inside]))

    def _is_ours(self, path: Path) -> bool:
        return path.is_relative_to(self.root) and not any(
            p.startswith(".") for p in path.relative_to(self.root).parts
        )

    def _modules(self, folder: Path, parts: list[str], first: int) -> set[Path]:
        """Return the files of a module and of its packages, present or removed.

        Args:
            folder: The folder in which the name starts.
            parts: The parts of the module's name.
            first: Number of leading parts of the shortest package to include.
        """
        found = set()
        for length in range(first, len(parts) + 1):
            place = folder.joinpath(*parts[:length])
            candidates = [place / "__init__.py"] + (
                [place.with_suffix(".py")] if length else []
            )
            found |= {
                file
                for file in candidates
                if self._is_ours(file) and (file.is_file() or file in self.removed)
            }
        return found


def _called(node: ast.Call) -> str:
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


REFLECTING = {"globals", "locals", "vars", "eval", "exec", "__subclasses__"}
"""Functions by which code may use names that do not occur in it."""
ALWAYS = ""
"""Name of all statements of a file that run at every import of the file."""
WHOLE = "*"
"""Name of all statements of a file."""
Reached = dict[Path, set[str]]
"""The reached names of each file; ``ALWAYS`` and ``WHOLE`` may be among them."""


@dataclass
class Reach:
    """Finds the names that a name of a file reaches, also in imported files."""

    imports: Imports
    _parts: dict[Path, dict[str, list[ast.stmt]]] = field(default_factory=dict)

    def of(self, file: Path, name: str, files: Iterable[Path]) -> Reached:
        """Return the names that a name of a file reaches, and the name itself, by file.

        Args:
            file: The file.
            name: A name that the file binds at its top.
            files: Other imported files. Their statements that bind no name run at the
                import, so the names that they use are reached, too.
        """
        return self.all([(file, name), *((other, ALWAYS) for other in (file, *files))])

    def all(self, starts: Iterable[tuple[Path, str]]) -> Reached:
        """Return the names that several (file, name) reach, and themselves, by file."""
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
        for statement in (
            parts.get(name, ())
            if name != WHOLE
            else (s for every in parts.values() for s in every)
        ):
            used = {
                node.id for node in ast.walk(statement) if isinstance(node, ast.Name)
            }
            used |= {
                node.attr
                for node in ast.walk(statement)
                if isinstance(node, ast.Attribute)
            } & REFLECTING
            if used & REFLECTING:
                yield file, WHOLE
            yield from (
                (file, each)
                for each in used
                if each in parts or not hasattr(builtins, each)
            )
            for item in self.imports.imported(statement, file):
                yield from self._imported(item, file, name)

    def _imported(
        self, item: Imported, file: Path, name: str
    ) -> Iterator[tuple[Path, str]]:
        """Yield the (file, name) to which an import leads.

        Args:
            item: The import.
            file: The importing file.
            name: The local name that is reached. If the import binds it, only that part
                of the import is followed; otherwise all of it is.
        """
        own = self.imports.module(item.name, item.folder, beside=file.parent)
        bound = {each for each in item.names if item.bound(each) == name}
        for each in bound or item.names or (WHOLE,):
            inside = [
                place for place in own if each == WHOLE or each in self.parts(place)
            ]
            yield from ((place, each) for place in inside)
            if not inside:
                parts = ".".join(part for part in (item.name, each) if part)
                yield from (
                    (p, WHOLE)
                    for p in self.imports.module(parts, item.folder, beside=file.parent)
                )
                # A name that is missing now may have existed before.
                yield from ((place, each) for place in own)

    def parts(self, file: Path) -> dict[str, list[ast.stmt]]:
        """Return the statements at the top of a file by the names that they bind.

        They are those of ``parts_of``; {} if the file cannot be parsed.
        """
        if file not in self._parts:
            tree = self.imports.tree(file)
            self._parts[file] = {} if tree is None else parts_of(tree)
        return self._parts[file]


def parts_of(tree: ast.Module) -> dict[str, list[ast.stmt]]:
    """Return the statements at the top of a module by the names that they bind.

    Statements that run at every import have the name ``ALWAYS``. Docstrings, and the
    part that runs only in a script, are left out.
    """
    found: dict[str, list[ast.stmt]] = {ALWAYS: []}
    top = {
        name
        for statement in tree.body
        if not _modules(statement) <= PLAIN_DECORATORS
        for name in bound_by(statement)
    }
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
    """Return the names of a file whose statements differ between two versions.

    Args:
        before: The content of the old version; None if there is none.
        after: The content of the new version; None if there is none.

    Returns:
        The names, possibly with ``ALWAYS``; or ``WHOLE`` alone if a version is missing
        or cannot be parsed.
    """
    if before is None or after is None:
        return {WHOLE}
    try:
        old, new = (parts_of(ast.parse(text)) for text in (before, after))
    except (SyntaxError, ValueError):
        return {WHOLE}
    return {
        name
        for name in {*old, *new}
        if _code(old.get(name, [])) != _code(new.get(name, []))
    }


def bound_by(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a definition, an import or an assignment binds.

    An import of all names yields "*". Other statements yield none. Neither does an
    assignment to an attribute or an item.
    """
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        yield from (
            alias.asname or alias.name.partition(".")[0] for alias in statement.names
        )
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = (
            statement.targets
            if isinstance(statement, ast.Assign)
            else [statement.target]
        )
        names = [node for target in targets for node in ast.walk(target)]
        if all(
            isinstance(node, ast.Name | ast.Tuple | ast.List | ast.expr_context)
            for node in names
        ):
            yield from (node.id for node in names if isinstance(node, ast.Name))


def _registers(statement: ast.stmt, own: set[str]) -> bool:
    """Return True if a statement has a decorator that may register the function.

    Args:
        statement: The statement.
        own: Names that the file binds at its top, by definitions and imports, without
            those that it imports from ``PLAIN_DECORATORS``. A decorator that uses one
            of them may register, except as a keyword argument.
    """
    parts: list[ast.expr] = []
    for each in getattr(statement, "decorator_list", ()):
        parts += [each.func, *each.args] if isinstance(each, ast.Call) else [each]
    nodes = chain.from_iterable(map(ast.walk, parts))
    return any(isinstance(node, ast.Name) and node.id in own for node in nodes)


def _modules(statement: ast.stmt) -> set[str]:
    """Return the top-level modules that an import names; {""} for others.

    A relative import counts as one of the others.
    """
    if isinstance(statement, ast.ImportFrom) and not statement.level:
        return {str(statement.module).partition(".")[0]}
    if isinstance(statement, ast.Import):
        return {alias.name.partition(".")[0] for alias in statement.names}
    return {""}


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_script(statement: ast.stmt) -> bool:
    """Return True if a statement runs only if the file is the script."""
    return (
        isinstance(statement, ast.If)
        and ast.unparse(statement.test).replace('"', "'") == "__name__ == '__main__'"
    )


def _code(statements: Iterable[ast.stmt]) -> list[str]:
    """Return each statement as text, without its position and its docstrings."""
    return [
        ast.dump(_Bare().visit(ast.parse(ast.unparse(statement))))
        for statement in statements
    ]


class _Bare(ast.NodeTransformer):
    """Replaces docstrings, and other texts that are statements, by ``pass``."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """Return ``pass`` for a text, and other statements as they are."""
        return ast.Pass() if _is_text(node) else node
