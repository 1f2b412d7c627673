"""Import an audit file once, and return its declarations as planning needs them.

This module imports little, so that commands that run no audit start quickly.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from auditdp.auditing.decorator import Declared, collect
from auditdp.errors import CollectionError, ConfigurationError
from auditdp.runner.plan import Collected, Listed, Task
from auditdp.runner.sandbox import explained

_collected: dict[str, list[Declared]] = {}


def declared_by(path: Path, root: Path) -> list[Declared]:
    """Return the declarations of an audit file, which is imported once per process.

    Args:
        path: The audit file.
        root: The working folder, from which ids have their paths.

    Raises:
        CollectionError: If the file cannot be imported.
    """
    if str(path) not in _collected:
        _collected[str(path)] = collect(path, root)
    return _collected[str(path)]


def find(task: Task) -> Declared:
    """Return the declaration that a task runs.

    Raises:
        CollectionError: If the file cannot be imported, or does not declare the audit
            now, although the plan lists it.
    """
    for declared in declared_by(Path(task.path), Path(task.root)):
        if declared.id == task.id:
            return declared
    raise CollectionError(f"{task.path} lists {task.name}, and does not declare it")


def collected_from(path: Path, root: Path, overrides: Mapping[str, str]) -> Collected:
    """Import an audit file, and return its declarations or its failure as plain data.

    Args:
        path: The audit file.
        root: The working folder.
        overrides: Given parameters, as text. If an audit cannot read one of its
            parameters, its ``Listed.unreadable`` has the reason.
    """
    try:
        declared = declared_by(path.resolve(), root.resolve())
    except CollectionError as error:
        return Collected(failure=printable(explained(str(error))))
    audits = [_listed(item, overrides) for item in declared]
    return Collected(tuple(audits), sources=tuple(sorted(_sources(root.resolve()))))


def _listed(item: Declared, overrides: Mapping[str, str]) -> Listed:
    try:
        item.read(overrides)
        unreadable = ""
    except ConfigurationError as error:
        unreadable = str(error)
    names = tuple(item.parameters)
    return Listed(
        item.id,
        item.path,
        item.expect,
        item.timeout,
        item.description,
        names,
        unreadable,
    )


def _sources(root: Path) -> set[str]:
    """Return the files of all imported modules below the working folder.

    Hidden folders are skipped.
    """
    # Thousands of modules are in a few hundred folders, so folders are cached.
    folder = lru_cache(os.path.realpath)
    inside = os.path.join(root, "")
    found = set()
    for module in list(sys.modules.values()):
        if file := getattr(module, "__file__", None):
            path = os.path.join(folder(os.path.dirname(file)), os.path.basename(file))
            path = os.path.realpath(path) if os.path.islink(path) else path
            if path.startswith(inside) and f"{os.sep}." not in path[len(inside) - 1 :]:
                found.add(path)
    return found


def printable(text: str) -> str:
    """Return a text in which characters that UTF-8 cannot express are escaped."""
    return text.encode("utf-8", "backslashreplace").decode()
