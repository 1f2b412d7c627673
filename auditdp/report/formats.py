"""The formats of a report: a line for each, with what writes it and how one is told from other files.

A format is a function from a record to text, in a file of its own, and its line here. The functions load templates and
plots, so they are imported when a report is made; the names alone are needed for options and their help.

Where a report goes: which files may be written, and writing them whole or not at all.

What a report in a file consists of; the one module here that reads the disk, for the record of the last report.

The JSON Schema of what ``--format json`` writes, as it lies in this package: one file for each version of a record.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from pydantic import TypeAdapter

from auditdp.errors import ConfigurationError, did_you_mean
from auditdp.files import content_of, open_new, place_to_write
from auditdp.record.details import KINDS
from auditdp.record.differences import Difference
from auditdp.record.results import SCHEMA, RunRecord

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
        ours = (
            content.lstrip().lower().startswith(self.begins.lower())
            and self.holds in content
        )
        if content.strip() and not ours:
            name = next(name for name, known in FORMATS.items() if known is self)
            raise ConfigurationError(
                f"{shown or path} is there and is no {name} report of auditdp; give another path, or remove it"
            )


_BASELINE = ("differences",)
FORMATS = {
    "terminal": Format(
        "auditdp.report.terminal:report", b"", b"audit", ("colour", "width")
    ),
    "json": Format("auditdp.record.results:RunRecord.to_json", b"{", b'"root_seed"'),
    "html": Format("auditdp.report.html.pages:report", b"<!doctype html", b"auditdp"),
    "claims": Format("auditdp.report.ledger:markdown", b"# Claims ledger"),
    "claims-json": Format("auditdp.report.ledger:to_json", b"{", b'"root_seed"'),
    "junit": Format(
        "auditdp.report.machine_readable:junit", b"<?xml", b'name="auditdp"', _BASELINE
    ),
    "sarif": Format(
        "auditdp.report.machine_readable:sarif", b"{", b'"name": "auditdp"', _BASELINE
    ),
    "github": Format("auditdp.report.forge:commands", b"::", b"title=", _BASELINE),
    "pull-request": Format(
        "auditdp.report.forge:pull_request", b"<!-- auditdp -->", b"", _BASELINE
    ),
}
"""The formats by the names that the command line knows."""


def format_of(name: str) -> Format:
    """Return the format of this name.

    Raises:
        ConfigurationError: If there is none.
    """
    if name not in FORMATS:
        raise ConfigurationError(
            f"unknown format {name!r}; {did_you_mean(name, FORMATS)}"
        )
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
    options: dict[str, Any] = {
        "colour": colour,
        "width": width,
        "differences": differences,
    }
    return str(
        resolve_name(chosen.writer)(
            record, **{option: options[option] for option in chosen.takes}
        )
    )


def target(text: str, option: str) -> tuple[str, Path]:
    """Return format and path of a report, which can be written and is no file of others.

    ``text`` is such as ``html=report.html``; the message names the ``option``.

    Raises:
        ConfigurationError: If there is no such format, or the file is none to write to.
    """
    name, equals, path = text.partition("=")
    if not equals or not path:
        raise ConfigurationError(
            f"{option} {text}: expected format=PATH, such as html=report.html"
        )
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
            raise ConfigurationError(
                f"cannot write {shown or path}: it is there and is no file; give another path"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            path.open("ab").close()
        else:
            os.close(open_new(temporary))
    except OSError as error:
        raise ConfigurationError(
            f"cannot write {shown or path}: {error.strerror}; give another path"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


FOLDER = "_audits"
"""What follows the name of an HTML report in that of the folder beside it, which holds a page for each audit."""


def report_files(
    record: RunRecord,
    name: str,
    path: Path,
    *,
    previous: RunRecord | None = None,
    differences: Sequence[Difference] | None = None,
) -> dict[Path, str]:
    """Return the text of every file of a report, in the order in which they are to be written.

    An HTML report has a folder beside it with a page for each audit and the record that it is made from: where the next
    report is made in its place, that is the last one.

    ``previous`` is the run of the last report, if not the one that lies at ``path``.

    Raises:
        ConfigurationError: If there is no such format.
    """
    if name != "html":
        return {path: render(record, name, differences=differences)}
    from auditdp.report.html import pages as html

    folder = path.stem + FOLDER
    previous = previous or _last(path.parent / folder / html.DATA)
    made = html.pages(
        record,
        index=path.name,
        folder=folder,
        previous=None if previous == record else previous,
    )
    return {path.parent / file: text for file, text in made.items()}


def _last(path: Path) -> RunRecord | None:
    """The record of the last report; None where there is none that can be read, which is no reason to make no other."""
    try:
        return RunRecord.from_json(content_of(path))
    except (OSError, ValueError, ConfigurationError):
        return None


PATH = Path(__file__).with_name(f"run-{SCHEMA}.schema.json")
"""The published schema of the version that this auditdp writes."""


def run_schema() -> dict[str, Any]:
    """Return the schema of a record, as its types say it; the kind of an evidence says which details it has.

    Fields may be added within a version, and a reader leaves alone what it does not know. A field that is not required may
    be removed. A change of the meaning of a field, or the removal of a required one, makes a new version.
    """
    schema = TypeAdapter(RunRecord).json_schema(mode="serialization")
    schema["$defs"]["Evidence"]["allOf"] = [
        {
            "if": {"properties": {"kind": {"const": kind}}},
            "then": {
                "properties": {"details": {"$ref": f"#/$defs/{about.record.__name__}"}}
            },
        }
        for kind, about in KINDS.items()
    ]
    types = {RunRecord.__name__: schema, **schema["$defs"]}
    for kind, field, text in _said_of_fields():
        if field in (properties := types.get(kind, {}).get("properties", {})):
            properties[field]["description"] = text
    schema["properties"]["schema"] = {
        "const": SCHEMA,
        "title": "Version of this schema",
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:auditdp:run:{SCHEMA}",
        **schema,
        "title": f"The record of a run of auditdp, version {SCHEMA}",
    }


def _said_of_fields() -> Iterator[tuple[str, str, str]]:
    """Yield each type of a record, a field, and what the source says of it."""
    for file in (Path(__file__).parents[1] / "record").glob("*.py"):
        body = ast.parse(file.read_text(encoding="utf-8")).body
        for kind in [node for node in body if isinstance(node, ast.ClassDef)]:
            for pair in pairwise(kind.body):
                match pair:
                    case ast.AnnAssign(target=ast.Name(name)), ast.Expr(
                        ast.Constant(str(text))
                    ):
                        yield kind.name, name, " ".join(text.split())


if __name__ == "__main__":
    PATH.write_text(
        json.dumps(run_schema(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
