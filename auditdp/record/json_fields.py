"""Types of the fields of records, and ``Row``, the base of their classes."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, PlainSerializer, model_serializer
from pydantic.dataclasses import dataclass

from auditdp.files import refuse_integers


def json_number(value: float | None) -> float | str | None:
    """Return a number for JSON; infinities and NaN become strings, such as "inf"."""
    if value is None or math.isfinite(value):
        return value
    return str(float(value))


def _plain(value: Any) -> Any:
    """Return nested data for JSON: tuples and arrays become lists.

    Infinities and NaN become strings.
    """
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
    # Reports convert integers to doubles, and the largest double is below 2^1024.
    refuse_integers(value, 1 << 1000)
    return value


_AS_JSON = PlainSerializer(json_number, when_used="json")

Number = Annotated[float, _AS_JSON]
Count = Annotated[int, Field(ge=0, lt=1 << 63)]
"""A count of calls, pairs or other things."""
Whole = Annotated[int, Field(gt=-(1 << 63), lt=1 << 63)]
Probability = Annotated[float, Field(ge=0, le=1), _AS_JSON]
Share = Annotated[float, Field(gt=1e-300), _AS_JSON]
"""A share of outputs, so large that its inverse is a finite double."""
Seconds = Annotated[float, Field(ge=0), _AS_JSON]
Plain = Annotated[
    dict[str, Any],
    AfterValidator(_without_large_integers),
    PlainSerializer(_plain, when_used="json"),
]
"""A mapping from strings to JSON data of any shape."""
Path = list[tuple[Count, Number]]
"""Pairs of a number of calls and a value after these calls, by ascending calls."""
Curve = list[tuple[Number, Number]]
"""Pairs (ε, δ(ε)), by ascending ε."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """The base of records; JSON omits fields that are None, except those in ``always``."""

    keys: ClassVar[Mapping[str, str]] = {}
    """JSON keys by the name of the field, for fields whose key is not their name."""
    always: ClassVar[Collection[str]] = ()
    """Names of the fields that JSON has as null, if they are None."""

    def written(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the JSON object of the record.

        Args:
            fields: The serialised value of each field, by the field's name.
        """
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
