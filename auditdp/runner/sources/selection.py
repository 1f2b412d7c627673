"""Which audits a change of files concerns, each with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

from auditdp.runner.sources.audits import HARNESS, trace
from auditdp.runner.sources.git import Changed
from auditdp.runner.sources.imports import Imports
from auditdp.runner.sources.reach import WHOLE, Reach

FOR_ALL = (
    *("pyproject.toml", "setup.py", "setup.cfg", "*requirements*.txt"),
    *("*constraints*.txt", "*.lock", "Pipfile", "environment.y*ml"),
)
"""Names of files that say what is installed, and so concern every audit."""


@dataclass(frozen=True)
class Selection:
    """What is run and what is left out."""

    concerned: Mapping[str, str]
    """Why each audit that is run is run, by id."""
    left_out: tuple[str, ...]
    untraced: tuple[str, ...]
    """Changed files, relative to the folder, that no import leads to because they are not Python."""


def concerned(audits: Iterable[tuple[str, Path]], changed: Changed, root: Path) -> Selection:
    """Return which audits a change concerns.

    An audit is concerned where code that its factory reaches, in its file or in one that it imports below the folder,
    changed; where that cannot be told; and where auditdp itself, or what says which libraries are installed, changed.
    """
    imports = Imports(root, changed.removed)
    reach, names = Reach(imports), cache(changed.names)
    whole = _for_all(changed, root)
    reasons: dict[str, str] = {}
    left_out = []
    for identifier, file in audits:
        reason = whole or _reason(reach, file.resolve(), identifier.partition("::")[2], changed, names)
        if reason:
            reasons[identifier] = reason
        else:
            left_out.append(identifier)
    others = sorted(_shown(file, root) for file in changed.files if file.suffix != ".py" and file.is_relative_to(root))
    return Selection(reasons, tuple(left_out), tuple(others))


def _for_all(changed: Changed, root: Path) -> str:
    for file in sorted(changed.files):
        if file.is_relative_to(HARNESS):
            return f"auditdp itself changed ({_shown(file, root)})"
        if any(fnmatch(file.name, pattern) for pattern in FOR_ALL):
            return f"{_shown(file, root)} changed, which says what is installed"
    return ""


def _reason(reach: Reach, file: Path, name: str, changed: Changed, names: Callable[[Path], set[str]]) -> str:
    imports = reach.imports
    traced = trace(imports, file, name)
    touched = sorted(traced.files & changed.files)
    reached = reach.of(file, name, traced.files) if touched else {}
    touched = [each for each in touched if _meets(reached.get(each, set()), names(each))]
    if touched:
        more = f" and {len(touched) - 1} more" if len(touched) > 1 else ""
        return f"{_shown(touched[0], imports.root)} changed{more}"
    python = any(other.suffix == ".py" for other in changed.files)
    return traced.opaque if python else ""


def _meets(reached: set[str], changed: set[str]) -> bool:
    """Return whether names that are reached are among those that changed."""
    return bool(changed) if WHOLE in reached else bool(changed & {*reached, WHOLE})


def _shown(file: Path, root: Path) -> str:
    return file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file)
