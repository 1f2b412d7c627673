"""Where a report goes: which files may be written, and writing them whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from auditdp.doors import open_new, place_to_write
from auditdp.errors import ConfigurationError
from auditdp.report.formats import format_of


def target(text: str, option: str) -> tuple[str, Path]:
    """Return format and path of a report, which can be written and is no file of others.

    ``text`` is such as ``html=report.html``; the message names the ``option``.

    Raises:
        ConfigurationError: If there is no such format, or the file is none to write to.
    """
    name, equals, path = text.partition("=")
    if not equals or not path:
        raise ConfigurationError(f"{option} {text}: expected format=PATH, such as html=report.html")
    chosen = format_of(name)
    writable(Path(path).absolute(), shown=path)
    chosen.refuse_what_is_not_ours(Path(path).absolute(), shown=path)
    return name, Path(path).absolute()


def writable(path: Path, *, shown: str = "") -> None:
    """Raise unless the file can be written; makes its folder, and leaves the file as it is.

    A device or a pipe cannot: a report is put in the place of whatever is there.
    """
    temporary = path.with_name(f".{path.name}.part")
    try:
        place_to_write(path)
        if path.exists() and not path.is_file():
            raise ConfigurationError(f"cannot write {shown or path}: it is there and is no file; give another path")
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            path.open("ab").close()
        else:
            os.close(open_new(temporary))
    except OSError as error:
        raise ConfigurationError(f"cannot write {shown or path}: {error.strerror}; give another path") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
