"""Importing audit files, as pytest imports test files."""

from __future__ import annotations

import ast
import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

from auditdp.auditing.decorator import Declared, line_in
from auditdp.config import given_imports
from auditdp.errors import AuditError, CollectionError, MissingExtraError


def collect(path: Path, root: Path | None = None) -> list[Declared]:
    """Import an audit file and return what it declares, in the order of the file.

    Ids are the path relative to ``root`` (the current directory unless given) and the factory's name, as in
    ``audits/audit_edges.py::dprr``.

    Raises:
        CollectionError: If the file does not import; the message holds the reason, and its line where there is one.
    """
    root = (root or Path.cwd()).resolve()
    resolved = path.resolve()
    label = resolved.relative_to(root).as_posix() if resolved.is_relative_to(root) else resolved.as_posix()
    spec = importlib.util.spec_from_file_location(f"_auditdp_{resolved.stem}_{abs(hash(str(resolved)))}", resolved)
    if spec is None or spec.loader is None:
        raise CollectionError(f"{label}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    # What lies beside the file and at the root can be imported, and stays so for imports inside factories. It comes last:
    # a file that is called like a library must not take the library's place.
    folders = (str(resolved.parent), str(root), *given_imports())
    sys.path += [folder for folder in folders if folder not in sys.path]
    try:
        spec.loader.exec_module(module)
    except BaseException as error:  # an exit, or what a test framework raises to skip
        line = line_in(error, str(resolved))
        place = label if line is None else f"{label}, line {line}"
        if isinstance(error, AuditError):
            raise CollectionError(f"{place}: {error}") from error
        if (missing := MissingExtraError.of(error)) is not None:
            raise CollectionError(f"{label}: {missing}") from error
        raise CollectionError(f"{place}: does not import: {type(error).__name__}: {error}") from error
    lines = _lines_of_functions(resolved)
    found = []
    for name, value in vars(module).items():
        if isinstance(value, Declared) and value.factory.__module__ == spec.name:
            wrong = value.wrong
            if len(lines.get(name, ())) > 1:
                first, last = lines[name][0], lines[name][-1]
                wrong = f"line {last}: the file has another function of this name in line {first}, which is lost; rename one"
            found.append(replace(value, id=f"{label}::{name}", path=str(resolved), wrong=wrong))
    return found


def _lines_of_functions(path: Path) -> dict[str, list[int]]:
    """Return the lines in which a file defines each of its decorated functions."""
    lines: dict[str, list[int]] = {}
    for node in ast.parse(path.read_bytes()).body:
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            lines.setdefault(node.name, []).append(node.lineno)
    return lines
