"""The leaves of an output of any structure: a sequence of doubles without loss.

The leaf of a number is the number, and that of ``None`` is NaN ("no number here"). A
text has a digest, its length, its number of lines and the first numbers in it. Bytes
have a digest, their length and the first of them. If a double does not hold a number
exactly, another leaf follows: the remainder of a large integer, or a digest of a
``Decimal``. Containers are read in order: mappings by sorted keys, sets by sorted
elements, tables by columns, objects of a dataclass by fields, with the name of their
class.

The leaves are the *value* of an output: 0 and 0.0, a list and a tuple, or a mapping in
any order have the same value. The *kind* of an output is everything else that its
receiver can distinguish: types, and the order of keys.
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
from auditdp.numerics.arrays import Floats

NUMERIC = "biuf"
EXACT = 2**53
"""Integer up to which a double holds every integer."""
NAMES = {
    bool: "truth",
    np.bool_: "truth",
    int: "integer",
    np.int64: "integer",
    float: "double",
    np.float64: "double",
}
"""The kind of a number by its type; types that hold the same numbers share a kind."""
_NUMBER_IN_TEXT = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_LAST_DIGITS = "the last digits of"


class _Name(str):
    """A text that has only one leaf, its digest."""


class Raised(_Name):
    """The output of a call that raised: a text with the type of the exception."""

    error: Any
    """The exception, or its type."""

    @classmethod
    def of(cls, error: Any) -> Raised:
        """Return the output of a call that raised this exception."""
        kind = error if isinstance(error, type) else type(error)
        made = cls(f"raised {kind.__name__}")
        made.error = error
        return made


def leaves(output: Any) -> Iterator[float]:
    """Yield the leaves of an output.

    Raises:
        MechanismError: If a leaf has an unsupported type.

    >>> list(leaves([True, (2.5, None)]))
    [1.0, 2.5, nan]
    >>> list(leaves(2**60 + 1))
    [1.152921504606847e+18, 1.0]
    """
    if is_plain_array(output):
        yield from output.ravel().astype(np.float64).tolist()
        return
    parts = _parts(output)
    if parts is None:
        for _, number in _numbers(output):
            yield number
    else:
        for _, part in parts:
            yield from leaves(part)


def is_plain_array(output: Any) -> bool:
    """Return True if an output is an array of bools, or of floats of up to 64 bits."""
    if not isinstance(output, np.ndarray):
        return False
    return output.dtype.kind in "bf" and output.dtype.itemsize <= 8


def paths(output: Any, start: str = "output") -> Iterator[str]:
    """Yield the path of every leaf, as Python source or as a phrase.

    >>> list(paths({"age": [3, 4]}, "report"))
    ['a key of report', "report['age'][0]", "report['age'][1]"]
    """
    parts = _parts(output)
    if parts is None:
        for way, _ in _numbers(output):
            yield f"{way} {start}".strip()
        return
    for way, part in parts:
        longer = start + way
        # The place is a phrase, as for a key.
        if way.startswith(("a", "the ")):
            longer = f"{way} of {start}"
        yield from paths(part, longer)


def kind(output: Any) -> str:
    """Return a text of the types of containers and leaves, and of the order of keys.

    >>> kind(5) == kind(5.0), kind([1, 2]) == kind([3])
    (False, True)
    >>> kind({"a": 1, "b": 2}) == kind({"b": 2, "a": 1})
    False
    """
    name = type(output).__name__
    if type(output) in NAMES:
        return NAMES[type(output)]
    if isinstance(output, np.ndarray) and output.dtype != object:
        return f"array of {output.dtype}"
    if isinstance(output, np.number):
        return str(output.dtype)
    if isinstance(output, Mapping):
        keys = _order(output)
        order = [place for _, place in keys]
        if order != sorted(order):
            name += f" in the order {order}"
        return f"{name} of {_kinds(output[key] for key, _ in keys)}"
    parts = _parts(output)
    if parts is None:
        return name
    # A table has types of columns, and perhaps labels of rows.
    columns = getattr(output, "dtypes", getattr(output, "dtype", None))
    if columns is not None:
        name += f" {list(map(str, np.atleast_1d(columns)))}"
    if _index(output):
        name += " with labels"
    return f"{name} of {_kinds(part for _, part in parts)}"


def _kinds(parts: Iterable[Any]) -> str:
    """Return a text of the kinds of parts, without their number if all are alike."""
    runs = [(name, len(list(same))) for name, same in groupby(map(kind, parts))]
    if len(runs) == 1:
        return runs[0][0]
    return ", ".join(f"{count} {name}" for name, count in runs)


def places(output: Any, start: str = "output") -> Iterator[tuple[str, float]]:
    """Yield a name and the place of every key of every mapping, by sorted keys.

    The place of a key is its index in the mapping's own order.

    >>> list(places({"b": 5, "a": 7}))
    [("the place of output['a']", 1.0), ("the place of output['b']", 0.0)]
    """
    if isinstance(output, str | bytes):
        return
    if isinstance(output, np.ndarray) and output.dtype != object:
        return
    if isinstance(output, Mapping):
        for key, place in _order(output):
            yield f"the place of {start}[{_label(key)}]", place
    for way, part in _parts(output) or ():
        yield from places(part, start + way)


def _order(output: Mapping[Any, Any]) -> list[tuple[Any, float]]:
    """Return the keys of a mapping, sorted by their labels, with their places in it."""
    keys = [(key, float(place)) for place, key in enumerate(output)]
    return sorted(keys, key=lambda item: _label(item[0]))


def _label(key: Any) -> str:
    return repr(key.item() if isinstance(key, np.generic) else key)


def row_keys(outputs: Sequence[Any] | NDArray[Any]) -> list[bytes]:
    """Return the value of each output as bytes, which are equal for equal leaves.

    So 1, 1.0 and True have the same bytes, and so have 0.0 and -0.0, NaN and None, and
    an array, a list and a tuple of the same numbers.
    """
    if isinstance(outputs, np.ndarray) and outputs.dtype.kind in NUMERIC:
        shape = len(outputs), math.prod(outputs.shape[1:])
        # Whole rows are compared if doubles hold all of their numbers.
        rows = outputs.reshape(shape).astype(np.float64)
        exact = outputs.dtype.itemsize <= 4 or outputs.dtype == np.float64
        if exact or not (np.abs(rows) >= EXACT).any():
            return [row.tobytes() for row in as_values(rows)]
    return [as_values(_array(output)).tobytes() for output in outputs]


def _array(output: Any) -> Floats:
    return np.array(list(leaves(output)), dtype=np.float64)


def as_values(numbers: Floats) -> Floats:
    """Return numbers with equal bits for equal values: no -0.0, NaN without a sign."""
    return np.asarray(np.where(np.isnan(numbers), np.abs(numbers), numbers) + 0.0)


def form_key(output: Any) -> bytes:
    """Return a hash of the kind of an output and of the signs of its zeros.

    It distinguishes outputs of the same value that differ in either.
    """
    numbers = _array(output)
    # The leaves of 0.0 and -0.0 are equal numbers, and the receiver sees the sign.
    minus_zeros = np.signbit(numbers) & (numbers == 0)
    return _hash(kind(output).encode() + minus_zeros.tobytes())


def digest(text: str | bytes) -> float:
    """Return a hash of a text as a whole number of six bytes, which a double holds."""
    data = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    return float(int.from_bytes(_hash(data), "big"))


def _hash(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=6).digest()


def _parts(output: Any) -> Iterable[tuple[str, Any]] | None:
    """Return the parts of a container with their paths, or None for a leaf.

    Tensors, sparse matrices, tables and columns are recognised without importing their
    libraries.
    """
    if isinstance(output, Mapping):
        return _items(output)
    # A record of a structured array has fields, as a mapping has keys.
    if isinstance(output, np.void) and output.dtype.names is not None:
        return _items({name: output[name] for name in output.dtype.names})
    if isinstance(output, np.ndarray):
        return ((_bracketed(index), value) for index, value in np.ndenumerate(output))
    if isinstance(output, list | tuple):
        # A named tuple has names of its entries.
        names = getattr(output, "_fields", ())
        ways = [f".{name}" for name in names] or (f"[{k}]" for k in range(len(output)))
        return zip(ways, output, strict=True)
    # Sets have no order, so that their elements are sorted.
    if isinstance(output, Set):
        return (("an element", value) for value in sorted(output, key=repr))
    if dataclasses.is_dataclass(output) and not isinstance(output, type):
        names = [field.name for field in dataclasses.fields(output)]
        fields = [(f".{name}", getattr(output, name)) for name in names]
        return [("the class", _Name(type(output).__name__)), *fields]
    array = of_tensor(output)
    if array is not output:
        return [("", array)]
    if is_sparse(output):
        return [("", output.toarray())]
    # The names of columns are leaves, since the receiver sees them.
    if hasattr(output, "columns") and hasattr(output, "to_dict"):
        found = _index(output)
        for name in output.columns:
            found.append((f"[{name!r}]", [_Name(repr(name)), list(output[name])]))
        return found
    if type(output).__name__ in ("Series", "Index") and hasattr(output, "dtype"):
        return [*_index(output), ("", list(output))]
    return None


def _bracketed(index: tuple[int, ...]) -> str:
    return str(list(index)) if index else ""


def _index(output: Any) -> list[tuple[str, Any]]:
    """Return the index of a table or column as a part, or [] if it numbers the rows."""
    index = list(getattr(output, "index", ())) if hasattr(output, "iloc") else []
    if index == list(range(len(index))):
        return []
    return [(".index", [_Name(repr(label)) for label in index])]


def _items(output: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    for key, _ in _order(output):
        label = _label(key)
        yield "a key", _Name(label)
        yield f"[{label}]", output[key]


def _numbers(output: Any) -> Iterator[tuple[str, float]]:
    """Yield the numbers of an output without parts, each with a prefix of its path."""
    if output is None:
        yield "", math.nan
    elif isinstance(output, str):
        yield "", digest(output)
        if not isinstance(output, _Name):
            yield "the length of", float(len(output))
            yield "the number of lines of", float(len(output.splitlines()))
            # Sixteen numbers are enough for the numbers that a message contains.
            numbers = islice(_NUMBER_IN_TEXT.finditer(output), 16)
            for place, number in enumerate(numbers, 1):
                yield f"number {place} in", float(number[0])
    elif isinstance(output, bytes | bytearray | memoryview):
        yield "", digest(bytes(output))
        yield "the length of", float(len(output))
        # The high bytes of a number that is written in 64 bytes show its size.
        for place, byte in enumerate(bytes(output[:64]), 1):
            yield f"byte {place} of", float(byte)
    elif isinstance(output, enum.Enum):
        yield "", digest(str(output))
    elif _is_exception(output):
        # Laws list an exception by this digest.
        yield "", digest(Raised.of(output))
    elif isinstance(output, bool | np.bool_):
        yield "", float(output)
    elif isinstance(output, int | np.integer):
        yield from _integer(int(output))
    elif isinstance(output, float | np.floating):
        yield "", float(output)
        own = hidden_number(output)
        if own is not None:
            yield _LAST_DIGITS, own
        if isinstance(output, np.longdouble) and math.isfinite(output):
            rest = output - np.longdouble(float(output))
            if rest:
                yield _LAST_DIGITS, float(rest)
    elif isinstance(output, complex | np.complexfloating):
        yield "the real part of", float(output.real)
        yield "the imaginary part of", float(output.imag)
    elif isinstance(output, Decimal | Fraction):
        yield "", float(output)
        yield "the exact value of", digest(str(output))
    elif isinstance(output, datetime.datetime):
        epoch = datetime.datetime(1970, 1, 1)
        yield "", (output.replace(tzinfo=None) - epoch).total_seconds()
        yield "the time zone of", digest(repr(output.tzinfo))
    elif isinstance(output, datetime.date):
        yield "", float(output.toordinal())
    elif isinstance(output, datetime.timedelta):
        yield "", output.total_seconds()
    else:
        raise MechanismError(
            f"cannot read an output of type {type(output).__name__}: {brief(output)}; return numbers, text, None, times, "
            "tables, objects of a dataclass, or lists, tuples, sets and dictionaries of them"
        )


def _is_exception(output: Any) -> bool:
    kind = output if isinstance(output, type) else type(output)
    return issubclass(kind, BaseException)


def hidden_number(output: Any) -> float | None:
    """Return the stored number of a ``float`` if its ``__float__`` returns another one.

    Arithmetic uses the stored number.

    Returns:
        The number, or None for equal numbers and for an output that is no ``float``.
    """
    if type(output) is float or isinstance(output, np.floating):
        return None
    if not isinstance(output, float):
        return None
    converted, own = float(output), float.__float__(output)
    both_nan = math.isnan(converted) and math.isnan(own)
    return None if converted == own or both_nan else own


def _integer(number: int) -> Iterator[tuple[str, float]]:
    """Yield doubles whose sum is the integer, the nearest double first."""
    way = ""
    try:
        # Each double takes the leading digits, and the rest is exact.
        while True:
            near = float(number)
            yield way, near
            way = _LAST_DIGITS
            number -= int(near)
            if number == 0:
                return
    except OverflowError:
        yield way, math.inf if number > 0 else -math.inf
        yield _LAST_DIGITS, digest(str(number))
