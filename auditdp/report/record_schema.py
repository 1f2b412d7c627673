"""The JSON schema of the record of a run.

The schema of each version is a file in this package. ``python -m
auditdp.report.record_schema`` writes the file of the present version.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from auditdp.record.details import KINDS
from auditdp.record.results import SCHEMA, RunRecord

PATH = Path(__file__).with_name(f"run-{SCHEMA}.schema.json")
"""The file of the schema of the present version."""


def run_schema() -> dict[str, Any]:
    """Return the JSON schema of a record, with the details of each kind of evidence.

    Fields may be added within a version, and a reader ignores unknown fields. A field
    that is not required may be removed. A change of the meaning of a field, or the
    removal of a required one, makes a new version.
    """
    schema = TypeAdapter(RunRecord).json_schema(mode="serialization")
    # Types alone cannot express that the kind of evidence decides the type of details.
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
    # Pydantic takes the docstrings of types, and not those of fields.
    for kind, field, text in _field_docstrings():
        properties = types.get(kind, {}).get("properties", {})
        if field in properties:
            properties[field]["description"] = text
    version = {"const": SCHEMA, "title": "Version of this schema"}
    schema["properties"]["schema"] = version
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:auditdp:run:{SCHEMA}",
        **schema,
        "title": f"The record of a run of auditdp, version {SCHEMA}",
    }


def _field_docstrings() -> Iterator[tuple[str, str, str]]:
    """Yield (class, field, docstring) for each field of the classes of a record."""
    for file in (Path(__file__).parents[1] / "record").glob("*.py"):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.ClassDef):
                continue
            for pair in pairwise(node.body):
                match pair:
                    case ast.AnnAssign(target=ast.Name(name)), ast.Expr(
                        ast.Constant(str(text))
                    ):
                        yield node.name, name, " ".join(text.split())


if __name__ == "__main__":
    text = json.dumps(run_schema(), indent=1, ensure_ascii=False)
    PATH.write_text(text + "\n", encoding="utf-8")
