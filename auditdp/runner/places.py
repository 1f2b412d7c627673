"""The file and line of a definition, for reports."""

from __future__ import annotations

import functools
import inspect
from pathlib import Path
from typing import Any

from auditdp.mechanism.protocol import PerCall
from auditdp.record.results import Place


def place_of(thing: Any, root: Path) -> Place | None:
    """Return the file and line of a function, or of the class of another object.

    The place of an adapter, of a partial application and of a function decorated by
    ``functools.wraps`` is that of the wrapped function.

    Returns:
        The place, or None if it is unknown or outside ``root``.
    """
    if isinstance(thing, PerCall):
        return place_of(thing.function, root)
    if isinstance(thing, functools.partial):
        return place_of(thing.func, root)
    if not (inspect.isroutine(thing) or inspect.isclass(thing)):
        thing = type(thing)
    try:
        thing = inspect.unwrap(thing)
        file = Path(inspect.getsourcefile(thing) or "").resolve()
        code = getattr(thing, "__code__", None)
        line = (
            code.co_firstlineno
            if code is not None
            else inspect.getsourcelines(thing)[1]
        )
    except (TypeError, OSError, ValueError):
        return None
    if not file.is_relative_to(root) or not file.is_file():
        return None
    return Place(file.relative_to(root).as_posix(), max(line, 1))
