"""The JSON Schema of what ``--format json`` writes, as it lies in this package: one file for each version of a record."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from auditdp import record
from auditdp.record.details import KINDS
from auditdp.record.results import SCHEMA, RunRecord

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
            "then": {"properties": {"details": {"$ref": f"#/$defs/{about.record.__name__}"}}},
        }
        for kind, about in KINDS.items()
    ]
    types = {RunRecord.__name__: schema, **schema["$defs"]}
    for kind, field, text in _said_of_fields():
        if field in (properties := types.get(kind, {}).get("properties", {})):
            properties[field]["description"] = text
    schema["properties"]["schema"] = {"const": SCHEMA, "title": "Version of this schema"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:auditdp:run:{SCHEMA}",
        **schema,
        "title": f"The record of a run of auditdp, version {SCHEMA}",
    }


def _said_of_fields() -> Iterator[tuple[str, str, str]]:
    """Yield each type of a record, a field, and what the source says of it."""
    for file in Path(*record.__path__).glob("*.py"):
        body = ast.parse(file.read_text(encoding="utf-8")).body
        for kind in [node for node in body if isinstance(node, ast.ClassDef)]:
            for pair in pairwise(kind.body):
                match pair:
                    case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(text))):
                        yield kind.name, name, " ".join(text.split())


if __name__ == "__main__":
    PATH.write_text(json.dumps(run_schema(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
