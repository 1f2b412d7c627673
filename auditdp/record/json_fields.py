"""Types of fields of records, and the base of records without their empty fields."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, PlainSerializer, model_serializer
from pydantic.dataclasses import dataclass

from auditdp.files import refuse_integers


def json_number(value: float | None) -> float | str | None:
    """Return a number for JSON, in which infinities and NaN are strings."""
    if value is None or math.isfinite(value):
        return value
    return str(float(value))


def _plain(value: Any) -> Any:
    """Return nested data with every number as ``json_number`` writes it."""
    if isinstance(value, float):
        return json_number(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    # Scalars and arrays of NumPy.
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _without_large_integers(value: dict[str, Any]) -> dict[str, Any]:
    # Reports convert integers to doubles, of which the largest is below 2^1024.
    refuse_integers(value, 1 << 1000)
    return value


_AS_JSON = PlainSerializer(json_number, when_used="json")

Number = Annotated[float, _AS_JSON]
Count = Annotated[int, Field(ge=0, lt=1 << 63)]
"""A number of calls, of pairs, and the like."""
Whole = Annotated[int, Field(gt=-(1 << 63), lt=1 << 63)]
Probability = Annotated[float, Field(ge=0, le=1), _AS_JSON]
Share = Annotated[float, Field(gt=1e-300), _AS_JSON]
"""A share of outputs, large enough to divide by."""
Seconds = Annotated[float, Field(ge=0), _AS_JSON]
Plain = Annotated[
    dict[str, Any],
    AfterValidator(_without_large_integers),
    PlainSerializer(_plain, when_used="json"),
]
"""A mapping to JSON data of any shape."""
Path = list[tuple[Count, Number]]
"""(calls, number after these calls), ascending."""
Curve = list[tuple[Number, Number]]
"""(ε, δ(ε)), ascending."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A record whose empty fields are left out of JSON."""

    keys: ClassVar[Mapping[str, str]] = {}
    """JSON keys by the names of the fields that have another key."""
    always: ClassVar[Collection[str]] = ()
    """Fields that are written as null if they are None."""

    def written(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the JSON object of the serialised fields."""
        # JSON keys may be reserved words of Python, such as ``class``.
        return {
            self.keys.get(name, name): value
            for name, value in fields.items()
            if value is not None or name in self.always
        }

    # A return type would become the JSON schema of every row.
    @model_serializer(mode="wrap")
    def _write(self, write):  # type: ignore[no-untyped-def]
        return self.written(write(self))
