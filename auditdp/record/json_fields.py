"""The fields of records, and a record whose empty fields are left out of JSON."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, PlainSerializer, model_serializer
from pydantic.dataclasses import dataclass

from auditdp.files import refuse_integers


def json_number(value: float | None) -> float | str | None:
    """Return the number as records write it: JSON has no infinities and no NaN, which become strings."""
    if value is None or math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")


def _write_plain(value: Any) -> Any:
    """Write every number inside nested plain data as ``json_number`` does."""
    if isinstance(value, float):
        return json_number(value)
    if isinstance(value, dict):
        return {key: _write_plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):  # numpy scalars and arrays
        return _write_plain(value.tolist())
    return (
        [_write_plain(item) for item in value]
        if isinstance(value, list | tuple)
        else value
    )


def _within(value: dict[str, Any]) -> dict[str, Any]:
    refuse_integers(value, 1 << 1000)  # of which no double comes near
    return value


Number = Annotated[float, PlainSerializer(json_number, when_used="json")]
Count = Annotated[int, Field(ge=0, lt=1 << 63)]
"""A number of calls, of pairs, and the like."""
Whole = Annotated[int, Field(gt=-(1 << 63), lt=1 << 63)]
Probability = Annotated[
    float, Field(ge=0, le=1), PlainSerializer(json_number, when_used="json")
]
Share = Annotated[
    float, Field(gt=1e-300), PlainSerializer(json_number, when_used="json")
]
"""A share of outputs that is divided by."""
Seconds = Annotated[float, Field(ge=0), PlainSerializer(json_number, when_used="json")]
Plain = Annotated[
    dict[str, Any],
    AfterValidator(_within),
    PlainSerializer(_write_plain, when_used="json"),
]
"""Data of any shape that JSON can hold."""
Path = list[tuple[Count, Number]]
"""(calls, a number after so many calls), ascending."""
Curve = list[tuple[Number, Number]]
"""(ε, δ(ε)), ascending."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A record whose empty fields are left out of JSON."""

    keys: ClassVar[Mapping[str, str]] = {}
    """The keys of JSON that are no names of Python, by field."""
    always: ClassVar[Collection[str]] = ()
    """The fields that are written as null where they are None."""

    def written(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return what JSON has of the fields."""
        kept = {
            name: value
            for name, value in fields.items()
            if value is not None or name in self.always
        }
        return {self.keys.get(name, name): value for name, value in kept.items()}

    @model_serializer(mode="wrap")
    def _write(self, write):  # type: ignore[no-untyped-def]  # a type would become the JSON schema
        return self.written(write(self))
