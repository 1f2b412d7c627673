"""The folder of the project, in which commands run, and its settings."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from auditdp.configuration import DEFAULT_LOG, Configuration, load, project_folder
from auditdp.errors import ConfigurationError

_started: list[Path] = []


def enter_project() -> None:
    """Change to the folder of the project; ids of audits are relative to it.

    If a pyproject.toml on the way cannot be read, the folder stays.
    """
    _started.append(Path.cwd())
    try:
        folder = project_folder(Path.cwd())
    except ConfigurationError:
        # Commands that need settings report this error.
        return
    if folder != Path.cwd():
        os.chdir(folder)
        if (processes := sys.modules.get("multiprocessing.process")) is not None:
            processes.ORIGINAL_DIR = str(folder)  # type: ignore[attr-defined]  # where processes start


def settings(profile: str = "") -> Configuration:
    """Return the settings of the project in which the command was started.

    Args:
        profile: The name of a profile; empty for the one that ``AUDITDP_PROFILE``
            names, if any.

    Raises:
        ConfigurationError: If the settings cannot be read, or one is invalid.
    """
    return load(_started[-1] if _started else Path.cwd(), profile)


def given(value: Any) -> Any:
    """Return a path from the command line, made relative to the project's folder.

    Commands run in the folder of the project, but users write paths relative to the
    folder in which they start the command. An id of an audit, or a list, is changed in
    the same way. An empty value and the default log are returned as they are.
    """
    if isinstance(value, list):
        return [given(item) for item in value]
    if value in (None, "", DEFAULT_LOG) or not _started or _started[-1] == Path.cwd():
        return value
    # This also applies to an id such as audits/audit_edges.py::dprr.
    moved = os.path.relpath(_started[-1] / value, Path.cwd())
    return Path(moved) if isinstance(value, Path) else moved


def given_report(value: list[str] | None) -> list[str] | None:
    """Return texts ``format=PATH`` with each path relative to the project's folder.

    Without a value the list is empty.
    """
    parts = [item.partition("=") for item in value or ()]
    return [f"{name}{equals}{given(path)}" for name, equals, path in parts]
