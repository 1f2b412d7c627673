"""Leaves: an output of any structure as numbers in order, without loss, and the way to each of them.

A number stands for itself, ``None`` for "no number here" (NaN), and a text for a number of its own, followed by its length,
its lines and the numbers in it; bytes by their length and the first of them. What a double does not hold (a large integer,
a ``Decimal``) is followed by what is left.
Containers are read in order: mappings and sets by their sorted keys, tables by columns, objects of a dataclass by fields,
with the name of their class.

Leaves are the *value* of an output: 0 and 0.0, a list and a tuple, a mapping in any order have the same. What else whoever
gets the output sees of it, types and the order of keys, is its ``kind``.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from decimal import Decimal
from fractions import Fraction
from itertools import groupby, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditdp.errors import MechanismError
from auditdp.mechanism.calls.inputs import is_sparse, of_tensor
from auditdp.mechanism.protocol import brief

NUMERIC = "biuf"
EXACT = 2**53
"""A double holds every integer up to this."""
EPOCH = datetime.datetime(1970, 1, 1)
MOST_NUMBERS = 16
"""Numbers that are read in a text, at most."""
MOST_BYTES = 64
"""The same of bytes: of a number, high ones tell its size."""
NAMES = {
    bool: "truth",
    np.bool_: "truth",
    int: "integer",
    np.int64: "integer",
    float: "double",
    np.float64: "double",
}
"""What numbers are called by their type; of numpy and of Python those are alike that hold the same."""
_IN_TEXT = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


class _Name(str):
    """A text that is a name, of which nothing is read: it is the same as another or not."""


class Raised(_Name):
    """That a call raised, as an output: a caller sees the type of an exception."""

    error: Any
    """What it raised, or the type of it."""

    @classmethod
    def of(cls, error: Any) -> Raised:
        """Return the output of a call that raised."""
        made = cls(
            f"raised {(error if isinstance(error, type) else type(error)).__name__}"
        )
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
    if (
        isinstance(output, np.ndarray)
        and output.dtype.kind in "bf"
        and output.dtype.itemsize <= 8
    ):
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
        yield from (
            f"{way} {start}".strip()
            for way in _ways(output, len(list(_numbers(output))))
        )
        return
    for way, part in parts:
        yield from paths(
            part, f"{way} of {start}" if way.startswith(("a", "the ")) else start + way
        )


def _ways(output: Any, count: int) -> list[str]:
    """Return what each number is of something that is no container: itself, and what its double does not hold."""
    if isinstance(output, complex | np.complexfloating):
        return ["the real part of", "the imaginary part of"]
    if isinstance(output, str) and not isinstance(output, _Name):
        more = [
            "the length of",
            "the number of lines of",
            *(f"number {k + 1} in" for k in range(count)),
        ]
    elif isinstance(output, bytes | bytearray | memoryview):
        more = ["the length of", *(f"byte {k + 1} of" for k in range(count))]
    elif isinstance(output, Decimal | Fraction):
        more = ["the exact value of"]
    elif isinstance(output, datetime.datetime):
        more = ["the time zone of"]
    else:
        more = ["the last digits of"] * count
    return ["", *more][:count]


def kind(output: Any) -> str:
    """Return what an output shows beside its leaves: the types of its containers and leaves, and the order of its keys.

    >>> kind(5) == kind(5.0), kind([1, 2]) == kind([3])
    (False, True)
    >>> kind({"a": 1, "b": 2}) == kind({"b": 2, "a": 1})
    False
    """
    if type(output) in NAMES:
        return NAMES[type(output)]
    if isinstance(output, np.ndarray) and output.dtype != object:
        return f"array of {output.dtype}"
    if isinstance(output, np.number):
        return str(output.dtype)
    if isinstance(output, Mapping):
        order = [place for _, place in _order(output)]
        moved = f" in the order {order}" if order != sorted(order) else ""
        return f"{type(output).__name__}{moved} of {_kinds(output[key] for key, _ in _order(output))}"
    if (
        type(output) in (list, tuple)
        and len(types := set(map(type, output))) == 1
        and (of := types.pop()) in NAMES
    ):
        return f"{type(output).__name__} of {NAMES[of]}"
    parts = _parts(output)
    return (
        type(output).__name__
        if parts is None
        else f"{_name_of_table(output)} of {_kinds(part for _, part in parts)}"
    )


def _kinds(parts: Iterable[Any]) -> str:
    """Return the kinds of some parts; of those that are alike it does not matter how many they are."""
    runs = [(name, len(list(same))) for name, same in groupby(map(kind, parts))]
    return (
        runs[0][0]
        if len(runs) == 1
        else ", ".join(f"{count} {name}" for name, count in runs)
    )


def _name_of_table(output: Any) -> str:
    """Return the name of a container's type, with the types of its columns and whether rows have labels."""
    types = getattr(output, "dtypes", getattr(output, "dtype", None))
    labelled = " with labels" if _index(output) else ""
    return (
        type(output).__name__
        + ("" if types is None else f" {list(map(str, np.atleast_1d(types)))}")
        + labelled
    )


def places(output: Any, start: str = "output") -> Iterator[tuple[str, float]]:
    """Yield the place of every key in the order of its mapping, with what it is called; keys as leaves have them.

    >>> list(places({"b": 5, "a": 7}))
    [("the place of output['a']", 1.0), ("the place of output['b']", 0.0)]
    """
    if isinstance(output, str | bytes) or (
        isinstance(output, np.ndarray) and output.dtype != object
    ):
        return
    if isinstance(output, Mapping):
        yield from (
            (f"the place of {start}[{_label(key)}]", place)
            for key, place in _order(output)
        )
    for way, part in _parts(output) or ():
        yield from places(part, start + way)


def _order(output: Mapping[Any, Any]) -> list[tuple[Any, float]]:
    """Return the keys of a mapping, sorted, with their places in it."""
    return sorted(
        ((key, float(place)) for place, key in enumerate(output)),
        key=lambda item: _label(item[0]),
    )


def _label(key: Any) -> str:
    return repr(key.item() if isinstance(key, np.generic) else key)


def row_keys(outputs: Sequence[Any] | NDArray[Any]) -> list[bytes]:
    """Return the value of each output as bytes, which two share whose leaves are equal numbers, whatever their kind.

    1, 1.0 and True agree, 0.0 and -0.0, NaN and None, and an array, a list and a tuple of the same numbers.
    """
    if isinstance(outputs, np.ndarray) and outputs.dtype.kind in NUMERIC:
        rows = outputs.reshape(len(outputs), math.prod(outputs.shape[1:])).astype(
            np.float64
        )
        if (
            outputs.dtype.itemsize <= 4
            or (outputs.dtype == np.float64)
            or not (np.abs(rows) >= EXACT).any()
        ):
            return [row.tobytes() for row in as_values(rows)]
    return [
        as_values(np.array(list(leaves(output)), dtype=np.float64)).tobytes()
        for output in outputs
    ]


def as_values(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return numbers of which those that are equal have the same bits: NaN and zeros of one sign."""
    return np.asarray(np.where(np.isnan(numbers), np.abs(numbers), numbers) + 0.0)


def form_key(output: Any) -> bytes:
    """Return bytes that outputs of one value share where they are of one kind and have zeros of the same signs."""
    numbers = np.array(list(leaves(output)), dtype=np.float64)
    minus_zeros = np.signbit(numbers) & (numbers == 0)
    return hashlib.blake2b(
        kind(output).encode() + minus_zeros.tobytes(), digest_size=6
    ).digest()


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
        return (
            (f"[{', '.join(map(str, index))}]" if index else "", value)
            for index, value in np.ndenumerate(output)
        )
    if isinstance(output, list | tuple):
        names = getattr(output, "_fields", ())  # of a named tuple
        ways = [f".{name}" for name in names] or (f"[{k}]" for k in range(len(output)))
        return zip(ways, output, strict=True)
    if isinstance(output, Set):
        return (("an element", value) for value in sorted(output, key=repr))
    if dataclasses.is_dataclass(output) and not isinstance(output, type):
        fields = [
            (f".{field.name}", getattr(output, field.name))
            for field in dataclasses.fields(output)
        ]
        return iter([("the class", _Name(type(output).__name__)), *fields])
    return _table(output)


def _table(output: Any) -> Iterator[tuple[str, Any]] | None:
    """The parts of what other libraries make, none of which is imported here: tensors, sparse matrices, tables, columns."""
    if (array := of_tensor(output)) is not output:
        return iter([("", array)])
    if is_sparse(output):
        return iter([("", output.toarray())])
    if hasattr(output, "columns") and hasattr(output, "to_dict"):
        columns = [
            (f"[{name!r}]", [_Name(repr(name)), list(output[name])])
            for name in output.columns
        ]
        return iter([*_index(output), *columns])
    if type(output).__name__ in ("Series", "Index") and hasattr(output, "dtype"):
        return iter([*_index(output), ("", list(output))])
    return None


def _index(output: Any) -> list[tuple[str, Any]]:
    """Return the index of a table or a column, in a list, unless it only counts the rows."""
    index = list(getattr(output, "index", ())) if hasattr(output, "iloc") else []
    return (
        []
        if index == list(range(len(index)))
        else [(".index", [_Name(repr(label)) for label in index])]
    )


def _items(output: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    for key, _ in _order(output):
        yield "a key", _Name(_label(key))
        yield f"[{_label(key)}]", output[key]


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
            yield from (
                float(number[0])
                for number in islice(_IN_TEXT.finditer(output), MOST_NUMBERS)
            )
    elif isinstance(output, bytes | bytearray | memoryview):
        yield digest(bytes(output))
        yield float(len(output))
        yield from map(float, bytes(output[:MOST_BYTES]))
    elif isinstance(output, enum.Enum):
        yield digest(str(output))
    elif isinstance(output, BaseException) or (
        isinstance(output, type) and issubclass(output, BaseException)
    ):
        yield digest(Raised.of(output))  # as laws list it
    elif isinstance(output, bool | np.bool_):
        yield float(output)
    elif isinstance(output, int | np.integer):
        yield from _integer(int(output))
    elif isinstance(output, float | np.floating):
        yield float(output)
        if (own := hidden_number(output)) is not None:
            yield own
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


def hidden_number(output: Any) -> float | None:
    """Return what a float computes with, where its class converts it to another number; else None."""
    if (
        type(output) is float
        or isinstance(output, np.floating)
        or not isinstance(output, float)
    ):
        return None
    converted, own = float(output), float.__float__(output)
    return (
        None if converted == own or (math.isnan(converted) and math.isnan(own)) else own
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
