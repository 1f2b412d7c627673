"""Leaves: an output of any structure as numbers in order, without loss, and the way to each of them.

A number stands for itself, ``None`` for "no number here" (NaN), and a text for a number of its own, followed by its length,
its lines and the numbers in it. What a double does not hold (a large integer, a ``Decimal``) is followed by what is left.
Containers are read in order: mappings and sets by their sorted keys, tables by columns, objects of a dataclass by fields,
with the name of their class.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Set
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np

from auditdp.calls.inputs import of_tensor
from auditdp.errors import MechanismError
from auditdp.mechanism import brief

NUMERIC = "biuf"
EXACT = 2**53
"""A double holds every integer up to this."""
EPOCH = datetime.datetime(1970, 1, 1)
MOST_NUMBERS = 16
"""Numbers that are read in a text, at most."""
MOST_TYPES = 8
"""Leaves whose types are looked at, at most."""
_IN_TEXT = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


class _Name(str):
    """A text that is a name, of which nothing is read: it is the same as another or not."""


class Raised(_Name):
    """That a call raised, as an output: a caller sees the type of an exception.

    Attributes:
        error: What it raised.
    """

    error: Exception

    @classmethod
    def of(cls, error: Exception) -> Raised:
        """Return the output of a call that raised."""
        made = cls(f"raised {type(error).__name__}")
        made.error = error
        return made


def leaves(output: Any) -> Iterator[float]:
    """Yield the leaves of an output as numbers.

    Raises:
        MechanismError: If a leaf is of a type that is not known.

    >>> list(leaves([True, (2.5, None)]))
    [1.0, 2.5, nan]
    >>> list(leaves(2**60 + 1))
    [1.152921504606847e+18, 1.0]
    """
    if isinstance(output, np.ndarray) and output.dtype.kind in "bf" and output.dtype.itemsize <= 8:
        yield from output.ravel().astype(np.float64).tolist()
    elif (parts := _parts(output)) is not None:
        for _, part in parts:
            yield from leaves(part)
    else:
        yield from _numbers(output)


def paths(output: Any, start: str = "output") -> Iterator[str]:
    """Yield the way to every leaf, as Python writes it.

    >>> list(paths({"age": [3, 4]}, "report"))
    ['a key of report', "report['age'][0]", "report['age'][1]"]
    """
    parts = _parts(output)
    if parts is None:
        yield from (f"{way} {start}".strip() for way in _ways(output, len(list(_numbers(output)))))
        return
    for way, part in parts:
        yield from paths(part, f"{way} of {start}" if way.startswith(("a", "the ")) else start + way)


def _ways(output: Any, count: int) -> list[str]:
    """Return what each number is of something that is no container: itself, and what its double does not hold."""
    if isinstance(output, complex | np.complexfloating):
        return ["the real part of", "the imaginary part of"]
    if isinstance(output, str) and not isinstance(output, _Name):
        more = ["the length of", "the number of lines of", *(f"number {k + 1} in" for k in range(count))]
    elif isinstance(output, bytes | bytearray | memoryview):
        more = ["the length of"]
    elif isinstance(output, Decimal | Fraction):
        more = ["the exact value of"]
    elif isinstance(output, datetime.datetime):
        more = ["the time zone of"]
    else:
        more = ["the last digits of"] * count
    return ["", *more][:count]


def kind(output: Any) -> str:
    """Return of what types an output is: those of its container and of its first leaves.

    >>> kind(5) == kind(5.0), kind([1, 2]) == kind([3])
    (False, True)
    """
    if isinstance(output, np.ndarray):
        return f"array of {output.dtype}"
    parts = _parts(output)
    if parts is not None:
        return f"{type(output).__name__} of {', '.join(sorted({kind(part) for _, part in islice(parts, MOST_TYPES)}))}"
    for name, types in (("truth", bool | np.bool_), ("integer", int | np.integer), ("double", float | np.floating)):
        if isinstance(output, types):
            return name
    return type(output).__name__


def digest(text: str | bytes) -> float:
    """Return a number of six bytes, which a double holds: equal texts share it, others hardly ever."""
    data = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    return float(int.from_bytes(hashlib.blake2b(data, digest_size=6).digest(), "big"))


def _parts(output: Any) -> Iterator[tuple[str, Any]] | None:
    """Return the parts of a container, each with the way to it; None for what is no container."""
    if isinstance(output, Mapping):
        return _items(output)
    if isinstance(output, np.void) and output.dtype.names is not None:
        return _items({name: output[name] for name in output.dtype.names})
    if isinstance(output, np.ndarray):
        return ((_place(index), value) for index, value in np.ndenumerate(output))
    if isinstance(output, list | tuple):
        names = getattr(output, "_fields", ())  # of a named tuple
        ways = [f".{name}" for name in names] or (f"[{k}]" for k in range(len(output)))
        return zip(ways, output, strict=True)
    if isinstance(output, Set):
        return (("an element", value) for value in sorted(output, key=repr))
    if dataclasses.is_dataclass(output) and not isinstance(output, type):
        fields = [(f".{field.name}", getattr(output, field.name)) for field in dataclasses.fields(output)]
        return iter([("the class", _Name(type(output).__name__)), *fields])
    return _table(output)


def _table(output: Any) -> Iterator[tuple[str, Any]] | None:
    """The parts of what other libraries make, none of which is imported here: tensors, sparse matrices, tables, columns."""
    if (array := of_tensor(output)) is not output:
        return iter([("", array)])
    if hasattr(output, "toarray") and hasattr(output, "nnz"):
        return iter([("", output.toarray())])
    if hasattr(output, "columns") and hasattr(output, "to_dict"):
        return ((f"[{name!r}]", [_Name(repr(name)), list(output[name])]) for name in output.columns)
    if type(output).__name__ in ("Series", "Index") and hasattr(output, "dtype"):
        return iter([("", list(output))])
    return None


def _items(output: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    for key in sorted(output, key=repr):
        yield "a key", _Name(repr(key))
        yield f"[{key!r}]", output[key]


def _place(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]" if index else ""


def _numbers(output: Any) -> Iterator[float]:
    """Yield what stands for something that is no container; at least one number."""
    if output is None:
        yield math.nan
    elif isinstance(output, str):
        yield digest(output)
        if not isinstance(output, _Name):
            yield from (float(len(output)), float(len(output.splitlines())))
            yield from (float(number[0]) for number in islice(_IN_TEXT.finditer(output), MOST_NUMBERS))
    elif isinstance(output, bytes | bytearray | memoryview):
        yield digest(bytes(output))
        yield float(len(output))
    elif isinstance(output, enum.Enum):
        yield digest(str(output))
    elif isinstance(output, bool | np.bool_):
        yield float(output)
    elif isinstance(output, int | np.integer):
        yield from _integer(int(output))
    elif isinstance(output, float | np.floating):
        yield float(output)
        if (
            isinstance(output, np.longdouble)
            and math.isfinite(output)
            and (rest := output - np.longdouble(float(output)))
        ):
            yield float(rest)
    elif isinstance(output, complex | np.complexfloating):
        yield from (float(output.real), float(output.imag))
    elif isinstance(output, Decimal | Fraction):
        yield float(output)
        yield digest(str(output))
    elif isinstance(output, datetime.datetime):
        yield (output.replace(tzinfo=None) - EPOCH).total_seconds()
        yield digest(repr(output.tzinfo))
    elif isinstance(output, datetime.date):
        yield float(output.toordinal())
    elif isinstance(output, datetime.timedelta):
        yield output.total_seconds()
    else:
        raise MechanismError(
            f"cannot read an output of type {type(output).__name__}: {brief(output)}; return numbers, text, None, times, "
            "tables, objects of a dataclass, or lists, tuples, sets and dictionaries of them"
        )


def _integer(number: int) -> Iterator[float]:
    """Yield doubles whose sum is the integer, the first of which is nearest to it."""
    try:
        while True:
            near = float(number)
            yield near
            number -= int(near)
            if number == 0:
                return
    except OverflowError:
        yield math.inf if number > 0 else -math.inf
        yield digest(str(number))
