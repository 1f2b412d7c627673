"""The formats of a report: a line for each, with what writes it and how one is told from other files.

A format is a function from a record to text, in a file of its own, and its line here. The functions load templates and
plots, so they are imported when a report is made; the names alone are needed for options and their help.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from auditdp.doors import content_of
from auditdp.errors import ConfigurationError, did_you_mean

if TYPE_CHECKING:
    from auditdp.history.baseline.differences import Difference
    from auditdp.record.results import RunRecord

WIDTH = 100
"""Columns of a terminal, unless its own are known."""


@dataclass(frozen=True)
class Format:
    """A format of reports."""

    writer: str
    """The function, such as ``package.module:function``: of the record, and by name of what it ``takes``."""
    begins: bytes
    """How a report begins, in any case."""
    holds: bytes = b""
    """Something that a report holds."""
    takes: tuple[str, ...] = ()
    """Of the options of ``render``, those that it takes."""

    @property
    def is_judged(self) -> bool:
        """Whether it also says what a run changes of a baseline."""
        return "differences" in self.takes

    def refuse_what_is_not_ours(self, path: Path, *, shown: str = "") -> None:
        """Raise if there is a file that is no report of this format: it would be lost.

        Raises:
            ConfigurationError: If there is one.
        """
        content = content_of(path) if path.is_file() else b""
        ours = content.lstrip().lower().startswith(self.begins.lower()) and self.holds in content
        if content.strip() and not ours:
            name = next(name for name, known in FORMATS.items() if known is self)
            raise ConfigurationError(
                f"{shown or path} is there and is no {name} report of auditdp; give another path, or remove it"
            )


_CI, _BASELINE = "auditdp.report.ci", ("differences",)
FORMATS = {
    "terminal": Format("auditdp.report.terminal.run:report", b"", b"audit", ("colour", "width")),
    "json": Format("auditdp.record.results:RunRecord.to_json", b"{", b'"root_seed"'),
    "html": Format("auditdp.report.html.pages:report", b"<!doctype html", b"auditdp"),
    "claims": Format("auditdp.report.ledger:markdown", b"# Claims ledger"),
    "claims-json": Format("auditdp.report.ledger:to_json", b"{", b'"root_seed"'),
    "junit": Format(f"{_CI}.junit:junit", b"<?xml", b'name="auditdp"', _BASELINE),
    "sarif": Format(f"{_CI}.sarif:sarif", b"{", b'"name": "auditdp"', _BASELINE),
    "github": Format(f"{_CI}.github:commands", b"::", b"title=", _BASELINE),
    "pull-request": Format(f"{_CI}.pull_request:pull_request", b"<!-- auditdp -->", b"", _BASELINE),
}
"""The formats by the names that the command line knows."""


def format_of(name: str) -> Format:
    """Return the format of this name.

    Raises:
        ConfigurationError: If there is none.
    """
    if name not in FORMATS:
        raise ConfigurationError(f"unknown format {name!r}; {did_you_mean(name, FORMATS)}")
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

    ``differences`` are what the run changes of a baseline; None where none judges it.

    Raises:
        ConfigurationError: If there is no such format.
    """
    chosen = format_of(name)
    options: dict[str, Any] = {"colour": colour, "width": width, "differences": differences}
    return str(resolve_name(chosen.writer)(record, **{option: options[option] for option in chosen.takes}))
