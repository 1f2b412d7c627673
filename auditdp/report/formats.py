"""The formats of reports, and the files of a report.

A format is a function from a record to text, and an entry of ``FORMATS``. The functions
load templates and plots, so they are imported only when a report is made; the help of
the command line needs only the names. This module alone reads files of the user: the
record of the last report, and the files that a report would replace.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from auditdp.errors import ConfigurationError, did_you_mean
from auditdp.files import content_of, open_new, place_to_write

if TYPE_CHECKING:
    from auditdp.record.differences import Difference
    from auditdp.record.results import RunRecord

WIDTH = 100
"""Columns of a terminal of unknown width."""


@dataclass(frozen=True)
class Format:
    """A format of reports."""

    writer: str
    """Address of its function, such as ``package.module:function``."""
    begins: bytes
    """Bytes with which every report of this format begins, in upper or lower case."""
    holds: bytes = b""
    """Bytes that every report of this format contains."""
    takes: tuple[str, ...] = ()
    """Options of ``render`` that its function takes beside the record."""

    @property
    def is_judged(self) -> bool:
        """True if its reports show the differences from a baseline."""
        return "differences" in self.takes

    def refuse_what_is_not_ours(self, path: Path, *, shown: str = "") -> None:
        """Check that a file may be replaced by a report of this format.

        A missing or an empty file may be replaced, too. ``shown`` is the path in the
        message of the error; by default it is ``path``.

        Raises:
            ConfigurationError: If the file has any other content.
        """
        content = b""
        if path.is_file():
            content = content_of(path)
        # The doctype of HTML may be in capitals.
        begins = content.lstrip().lower().startswith(self.begins.lower())
        if content.strip() and not (begins and self.holds in content):
            name = next(name for name, known in FORMATS.items() if known is self)
            raise ConfigurationError(
                f"{shown or path} is there and is no {name} report of auditdp; give "
                "another path, or remove it"
            )


_REPORT = "auditdp.report"
_BASELINE = ("differences",)
FORMATS = {
    "terminal": Format(
        f"{_REPORT}.terminal:report", b"", b"audit", ("colour", "width")
    ),
    "json": Format("auditdp.record.results:RunRecord.to_json", b"{", b'"root_seed"'),
    "html": Format(f"{_REPORT}.html.pages:report", b"<!doctype html", b"auditdp"),
    "claims": Format(f"{_REPORT}.ledger:markdown", b"# Claims ledger"),
    "claims-json": Format(f"{_REPORT}.ledger:to_json", b"{", b'"root_seed"'),
    "junit": Format(
        f"{_REPORT}.machine_readable:junit", b"<?xml", b'name="auditdp"', _BASELINE
    ),
    "sarif": Format(
        f"{_REPORT}.machine_readable:sarif", b"{", b'"name": "auditdp"', _BASELINE
    ),
    "github": Format(f"{_REPORT}.forge:commands", b"::", b"title=", _BASELINE),
    "pull-request": Format(
        f"{_REPORT}.forge:pull_request", b"<!-- auditdp -->", b"", _BASELINE
    ),
}
"""The formats by their names on the command line."""


def format_of(name: str) -> Format:
    """Return the format of this name.

    Raises:
        ConfigurationError: If no format has this name.
    """
    if name not in FORMATS:
        suggestion = did_you_mean(name, FORMATS)
        raise ConfigurationError(f"unknown format {name!r}; {suggestion}")
    return FORMATS[name]


def render(
    record: RunRecord,
    name: str,
    *,
    colour: bool = False,
    width: int = WIDTH,
    differences: Sequence[Difference] | None = None,
) -> str:
    """Return the record as text.

    Args:
        record: The run.
        name: The format.
        colour: True to write ANSI colours; for the format ``terminal`` only.
        width: Columns of the terminal; for the format ``terminal`` only.
        differences: The differences from a baseline, or None if there is no baseline;
            for formats with ``is_judged`` only.

    Raises:
        ConfigurationError: If there is no such format.
    """
    chosen = format_of(name)
    # Each format takes some of the options.
    options = {"colour": colour, "width": width, "differences": differences}
    taken = {option: options[option] for option in chosen.takes}
    return str(resolve_name(chosen.writer)(record, **taken))


def target(text: str, option: str) -> tuple[str, Path]:
    """Return the name of the format and the absolute path of a requested report.

    The folder of the file is created.

    Args:
        text: The format and the path, such as ``html=report.html``.
        option: The option that has this text, for messages.

    Raises:
        ConfigurationError: If the text has another form, there is no such format, the
            file cannot be written, or it has other content than such a report.
    """
    name, equals, shown = text.partition("=")
    if not equals or not shown:
        raise ConfigurationError(
            f"{option} {text}: expected format=PATH, such as html=report.html"
        )
    chosen = format_of(name)
    path = Path(shown).absolute()
    writable(path, shown=shown)
    chosen.refuse_what_is_not_ours(path, shown=shown)
    return name, path


def writable(path: Path, *, shown: str = "") -> None:
    """Check that a file can be written, without changing it; its folder is created.

    Args:
        path: The file. A device or a pipe is refused, since a report replaces the file.
        shown: The path in the message of the error; by default ``path``.

    Raises:
        ConfigurationError: If the file cannot be written.
    """
    temporary = path.with_name(f".{path.name}.part")
    refused = f"cannot write {shown or path}"
    try:
        place_to_write(path)
        if path.exists() and not path.is_file():
            raise ConfigurationError(
                f"{refused}: it is there and is no file; give another path"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        # Opening a file to append tests the permission and changes nothing.
        if path.exists():
            path.open("ab").close()
        else:
            os.close(open_new(temporary))
    except OSError as error:
        raise ConfigurationError(
            f"{refused}: {error.strerror}; give another path"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def report_files(
    record: RunRecord,
    name: str,
    path: Path,
    *,
    previous: RunRecord | None = None,
    differences: Sequence[Difference] | None = None,
) -> dict[Path, str]:
    """Return the text of every file of a report, by path, in the order of writing.

    An HTML report has a folder beside it, with a page for each audit and the record.
    The next report at the same path is compared with that record.

    Args:
        record: The run.
        name: The format.
        path: The file of the report.
        previous: The run with which an HTML report is compared. By default it is the
            run of the report at ``path``, if there is one. The same run is not compared
            with itself.
        differences: The differences from a baseline, or None if there is no baseline;
            for formats with ``is_judged`` only.

    Raises:
        ConfigurationError: If there is no such format.
    """
    if name != "html":
        return {path: render(record, name, differences=differences)}
    from auditdp.record.results import RunRecord
    from auditdp.report.html import pages as html

    folder = f"{path.stem}_audits"
    if previous is None:
        # A last report that cannot be read is no reason to make none.
        with contextlib.suppress(OSError, ValueError, ConfigurationError):
            content = content_of(path.parent / folder / html.DATA)
            previous = RunRecord.from_json(content)
    # A report that is made again is compared with nothing.
    if previous == record:
        previous = None
    texts = html.pages(record, index=path.name, folder=folder, previous=previous)
    return {path.parent / file: text for file, text in texts.items()}
