"""Where a report goes: the names of the formats, and the files that may be written; light, for options and their help."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from auditdp.doors import content_of, open_new, place_to_write
from auditdp.errors import ConfigurationError, did_you_mean

JUDGED = ("junit", "sarif", "github", "pull-request")
"""Names of the formats that also say what a run changes of a baseline."""
FORMATS = ("terminal", "json", "html", "claims", "claims-json", *JUDGED)
"""Names of all formats; ``formats`` has what writes them, and imports much."""
MARKS = {
    "html": (b"<!doctype html", b"auditdp"),
    "json": (b"{", b'"root_seed"'),
    "claims-json": (b"{", b'"root_seed"'),
    "claims": (b"# Claims ledger", b""),
    "terminal": (b"", b"audit"),
    "junit": (b"<?xml", b'name="auditdp"'),
    "sarif": (b"{", b'"name": "auditdp"'),
    "github": (b"::", b"title="),
    "pull-request": (b"<!-- auditdp -->", b""),
}
"""How a report of each format begins, and something that it holds."""


def known_format(name: str) -> None:
    """Raise unless there is a report format of this name.

    Raises:
        ConfigurationError: If there is none.
    """
    if name not in FORMATS:
        raise ConfigurationError(f"unknown format {name!r}; {did_you_mean(name, FORMATS)}")


def target(text: str, option: str) -> tuple[str, Path]:
    """Return format and path of a report, which can be written and is no file of others.

    Args:
        text: What was asked for, such as ``html=report.html``.
        option: The option's name, for the message.

    Raises:
        ConfigurationError: If there is no such format, or the file is none to write to.
    """
    name, equals, path = text.partition("=")
    if not equals or not path:
        raise ConfigurationError(f"{option} {text}: expected format=PATH, such as html=report.html")
    known_format(name)
    writable(Path(path).absolute(), shown=path)
    refuse_what_is_not_ours(Path(path).absolute(), name, shown=path)
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


def refuse_what_is_not_ours(path: Path, name: str, *, shown: str = "") -> None:
    """Raise if there is a file that is no report of this format: it would be lost."""
    if not path.is_file():
        return
    content, (begins, holds) = content_of(path), MARKS[name]
    if content.strip() and not (content.lstrip().lower().startswith(begins.lower()) and holds in content):
        raise ConfigurationError(
            f"{shown or path} is there and is no {name} report of auditdp; give another path, or remove it"
        )
