"""The files that a Python file imports, below a folder; read from its syntax tree.

Imports inside functions count, and so do names that are given to ``import_module`` as text. A name that is computed cannot
be followed: the file is then said to be opaque, and whoever asks has to assume the worst of it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

IMPORTERS = ("import_module", "__import__")


@dataclass(frozen=True)
class Imported:
    """A module that is imported: its name, or for a relative import the folder that the name starts from."""

    name: str
    folder: Path | None = None
    names: tuple[str, ...] = ()
    """What is imported from it, each of which may be a module as well."""
    called: tuple[str, ...] = ()
    """What each of these is called where it is imported."""

    def bound(self, name: str) -> str:
        """Return what a name that is imported is called."""
        return dict(zip(self.names, self.called, strict=True)).get(name, name)


@dataclass
class Imports:
    """The import graph of the files below a folder.

    What lies outside it, or in a hidden folder of it, is somebody else's. An import that files which are ``removed`` would
    have answered leads to them still.
    """

    root: Path
    removed: frozenset[Path] = frozenset()
    _direct: dict[Path, frozenset[Path]] = field(default_factory=dict)
    opaque: dict[Path, int] = field(default_factory=dict)
    """Files that import by a computed name, or cannot be parsed, each with the line."""

    def closure(self, files: Iterable[Path]) -> frozenset[Path]:
        """Return these files and all that they import, directly or not."""
        found: set[Path] = set()
        waiting = list(files)
        while waiting:
            file = waiting.pop()
            if file not in found:
                found.add(file)
                waiting += self.direct(file)
        return frozenset(found)

    def direct(self, file: Path) -> frozenset[Path]:
        """Return the files that a file imports itself, with the packages that they lie in."""
        if file not in self._direct:
            self._direct[file] = frozenset()
            if (tree := self.tree(file)) is not None:
                self._direct[file] = self.resolved(self.imported(tree, file), beside=file.parent) - {file}
        return self._direct[file]

    def tree(self, file: Path) -> ast.Module | None:
        """Return the syntax tree of a file; None where there is none, which makes it opaque if it is there."""
        if file.suffix != ".py" or not file.is_file():
            return None
        try:
            return ast.parse(file.read_bytes(), str(file))
        except (SyntaxError, ValueError) as error:
            self.opaque[file] = getattr(error, "lineno", None) or 1
            return None

    def imported(self, tree: ast.AST, file: Path) -> Iterator[Imported]:
        """Yield what the code of a file imports."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                yield from (Imported(alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                names = tuple(alias.name for alias in node.names)
                folder = file.parents[node.level - 1] if 0 < node.level <= len(file.parents) else None
                yield Imported(node.module or "", folder, names, tuple(a.asname or a.name for a in node.names))
            elif isinstance(node, ast.Call) and _called(node) in IMPORTERS:
                given = node.args[0] if node.args else None
                if isinstance(given, ast.Constant) and isinstance(given.value, str) and not given.value.startswith("."):
                    yield Imported(given.value)
                else:
                    self.opaque.setdefault(file, node.lineno)

    def resolved(self, imported: Iterable[Imported], *, beside: Path) -> frozenset[Path]:
        """Return the files, below the root, that imports lead to, for scripts those ``beside`` them as well."""
        found: set[Path] = set()
        for item in imported:
            folders = [item.folder] if item.folder is not None else [*self._folders, beside]
            for folder in folders:
                parts = [part for part in item.name.split(".") if part]
                first = 1 if item.folder is None else 0  # a relative import runs the package that it starts from
                for names in [parts, *([*parts, name] for name in item.names)]:
                    found |= self._modules(folder, names, first)
        return frozenset(found)

    def module(self, name: str, folder: Path | None, *, beside: Path) -> list[Path]:
        """Return the files of a module itself, without those of the packages that it lies in."""
        parts = [part for part in name.split(".") if part]
        folders = [folder] if folder is not None else [*self._folders, beside]
        return sorted({file for place in folders for file in self._modules(place, parts, len(parts))})

    @cached_property
    def _folders(self) -> list[Path]:
        """Where modules are looked for: the root, its ``src``, and what an installation in place has put on the path."""
        given = [Path(entry).resolve() for entry in sys.path if entry]
        inside = [folder for folder in given if self._is_ours(folder) and "site-packages" not in folder.parts]
        return list(dict.fromkeys([self.root, self.root / "src", *inside]))

    def _is_ours(self, path: Path) -> bool:
        return path.is_relative_to(self.root) and not any(p.startswith(".") for p in path.relative_to(self.root).parts)

    def _modules(self, folder: Path, parts: list[str], first: int) -> set[Path]:
        """Return the files of a module and of the packages that it lies in, as far as they are there or were."""
        found = set()
        for length in range(first, len(parts) + 1):
            place = folder.joinpath(*parts[:length])
            candidates = [place / "__init__.py"] + ([place.with_suffix(".py")] if length else [])
            found |= {file for file in candidates if self._is_ours(file) and (file.is_file() or file in self.removed)}
        return found


def _called(node: ast.Call) -> str:
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
