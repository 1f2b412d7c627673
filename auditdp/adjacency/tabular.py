"""Conversion of data to a matrix of numbers, one row per record, and back.

``tabular`` converts records of numbers. ``by_number`` converts records of any kind: a
row is then one number, the index of the record.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from auditdp.errors import AdjacencyError
from auditdp.mechanism.calls.inputs import attributes, of_tensor
from auditdp.mechanism.protocol import brief, identity_key
from auditdp.numerics.arrays import Floats


def same_entries(first: Floats, second: Floats) -> Any:
    """Return bools, one per entry: whether it is equal in both rows, or NaN in both."""
    return (first == second) | (np.isnan(first) & np.isnan(second))


@dataclass(frozen=True)
class Tabular:
    """Data whose records are rows of numbers."""

    rows: Floats
    """The numbers, shape (records, columns)."""
    parts: list[slice]
    """The columns of each array of the data, such as features and labels."""
    whole: Any
    """Bools, one per column: whether its type in the data is integer or bool."""
    build: Callable[[Floats], Any]
    """Function that returns data of the original type for such rows."""
    unchanged: Callable[[Floats, Floats], Any] = same_entries
    """Function of two rows that returns bools: where their records are equal.

    There is one bool per column. In the tables of ``by_number`` a row is the index of a
    record, and there is one bool per part of this record, such as a field or a word.
    """

    @property
    def is_in_columns(self) -> bool:
        """True if ``unchanged`` compares columns; False for tables of ``by_number``."""
        return self.unchanged is same_entries


def tabular(data: Any) -> Tabular:
    """Return data with records of numbers as rows.

    The data are a list or tuple of records, each a number or a sequence of numbers; an
    array or tensor whose first axis is the records; or a tuple, a dict or a
    ``TensorDataset`` of such arrays of one length.

    Raises:
        AdjacencyError: If the data are none of these.
    """
    try:
        parts = _parts(data)
        if parts:
            return _joined([tabular(part) for part in parts], partial(remade, data))
        if _is_array(data):
            return _of_array(data)
        return _of_sequence(data)
    except (TypeError, ValueError) as error:
        raise AdjacencyError(
            "expected records of numbers: a sequence or array of them, or features and "
            f"labels, got {brief(data)}: {error}"
        ) from error


def _parts(data: Any) -> list[Any] | None:
    """Return the parts of a dict, ``TensorDataset`` or tuple of arrays, else None."""
    if isinstance(data, Mapping):
        return [*data.values()]
    tensors = getattr(data, "tensors", None)
    if isinstance(tensors, tuple):
        return [*tensors]
    if isinstance(data, tuple) and len(data) > 1 and all(map(_is_array, data)):
        return [*data]
    return None


def number_of_records(data: Any) -> int | None:
    """Return the number of records of data.

    Returns:
        The length of the data, or None if they have none. For a dict, a
        ``TensorDataset`` or a tuple of arrays, it is the length of every part, or None
        if the parts have different lengths or one has none.
    """
    parts = _parts(data)
    try:
        sizes = {len(part) for part in ([data] if parts is None else parts)}
    except TypeError:
        # A part has no length.
        return None
    if len(sizes) == 1:
        return sizes.pop()
    return None


def by_number(*inputs: Any) -> list[Tabular]:
    """Return one table per input, with records of any kind as rows of one number.

    The number is an index of the record. The different records of all inputs, such as
    documents or users with examples, are sorted by their length (``_length``), so a
    longer record has a larger index. The first index is 0 if the shortest record is
    empty, else 1.

    Args:
        inputs: Sequences of records; or tuples or dicts of sequences, one for each part
            of the records, such as texts and labels.

    Raises:
        AdjacencyError: If an input has another form, or if a record contains something
            other than numbers and texts.
    """
    first = inputs[0]
    if all(_is_in_parts(data) and len(data) == len(first) for data in inputs):
        records = [[*zip(*_sequences(data), strict=True)] for data in inputs]
        return [
            replace(each, build=partial(_in_parts, inputs, each.build))
            for each in by_number(*records)
        ]
    are_sequences = all(isinstance(data, list | tuple | np.ndarray) for data in inputs)
    if not are_sequences or _is_mixed(first):
        raise AdjacencyError(f"expected sequences of records, got {brief(first)}")
    lengths: dict[Any, tuple[float, Any]] = {}
    try:
        for data in inputs:
            for record in data:
                lengths[identity_key(record)] = _length(record), record
    except Exception as error:
        # A record is an object that holds no data.
        raise AdjacencyError(
            f"expected records of numbers and texts: {error}"
        ) from error
    # The order makes the index of a record grow with its length, as a number does.
    keys = sorted(lengths, key=lambda key: lengths[key][0])
    start = int(bool(keys) and lengths[keys[0]][0] > 0)
    index = {key: place for place, key in enumerate(keys, start)}

    def record_at(row: Floats) -> Any:
        return lengths[keys[int(row[0]) - start]][1]

    def build(rows: Floats) -> Any:
        return _like(inputs, [*map(record_at, rows)])

    def unchanged(first: Floats, second: Floats) -> Any:
        return np.array(_same_parts(record_at(first), record_at(second)))

    tables = []
    for data in inputs:
        places = [index[identity_key(record)] for record in data]
        rows = np.array(places, float).reshape(-1, 1)
        tables.append(Tabular(rows, [slice(0, 1)], np.array([True]), build, unchanged))
    return tables


def _same_parts(first: Any, second: Any) -> list[bool]:
    """Return bools, one per part of two records: whether it is the same in both.

    The parts of tuples and dicts are their fields. The parts of a text are its words,
    and those of another sequence its items. Two sequences that differ in more than one
    item have no parts in common, since a word or a number may occur in both by chance.
    """
    if identity_key(first) == identity_key(second):
        return [True]
    fields: list[Any] = []
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        if first.keys() == second.keys():
            fields = [(first[key], second[key]) for key in first]
    elif isinstance(first, tuple) and isinstance(second, tuple):
        fields = [*zip(first, second, strict=False)] * (len(first) == len(second))
    if fields:
        return [same for both in fields for same in _same_parts(*both)]
    long, short = sorted(map(_items, (first, second)), key=len, reverse=True)
    place = 0
    while place < len(short) and long[place] == short[place]:
        place += 1
    # Either an item of the longer sequence is missing, or it is another one.
    rest = short[place + int(len(long) == len(short)) :]
    if len(long) > 1 and long[place + 1 :] == rest:
        return [k != place for k in range(len(long))]
    return [False]


def _items(record: Any) -> list[Any]:
    """Return the words of a text, or the identity keys of the items of a sequence.

    Any other value counts as a sequence of itself.
    """
    value = of_tensor(record)
    if isinstance(value, str):
        return value.split()
    is_array = isinstance(value, np.ndarray) and value.ndim
    if is_array or isinstance(value, list | tuple):
        return [*map(identity_key, value)]
    return [identity_key(value)]


def _is_mixed(data: Any) -> bool:
    """Return True if a tuple has arrays of several forms, like features and edges."""
    # Arrays of records of one kind share a type and the shape of a record.
    forms = {
        (type(item), getattr(item, "dtype", None), getattr(item, "shape", ())[1:])
        for item in data
    }
    return isinstance(data, tuple) and any(map(_is_array, data)) and len(forms) > 1


def remade(like: Any, parts: Sequence[Any]) -> Any:
    """Return parts as a sequence or dict with the type and the keys of ``like``."""
    if isinstance(like, Mapping):
        return copy.copy(like) | dict(zip(like, parts, strict=True))  # type: ignore[operator]
    if hasattr(like, "_make"):
        return like._make(parts)
    if hasattr(like, "tensors"):
        return type(like)(*parts)
    return type(like)(parts)


def with_attributes(like: Any, **values: Any) -> Any:
    """Return a copy of an object with other values of some of its attributes.

    The object may be frozen. Names that are no attributes of it are ignored.
    """
    names: Sequence[str] = ()
    if hasattr(like, "_replace"):
        names, change = like._fields, like._replace
    elif dataclasses.is_dataclass(like):
        names = [field.name for field in dataclasses.fields(like) if field.init]
        change = partial(dataclasses.replace, like)
    if names:
        return change(**{name: values[name] for name in values if name in names})
    copied = copy.copy(like)
    for name, value in values.items():
        if hasattr(like, name):
            setattr(copied, name, value)
    return copied


def _sequences(data: Any) -> list[Any]:
    """Return the values of a dict, or the items of a tuple."""
    if isinstance(data, Mapping):
        return [*data.values()]
    return [*data]


def _is_in_parts(data: Any) -> bool:
    """Return True if data are several sequences of one length."""
    if not isinstance(data, Mapping | tuple):
        return False
    parts = _sequences(data)
    return len(parts) > 1 and all(
        isinstance(part, list | np.ndarray) and len(part) == len(parts[0])
        for part in parts
    )


def _in_parts(
    inputs: Sequence[Any], build: Callable[[Floats], Any], rows: Floats
) -> Any:
    """Return the records of rows in the form of the inputs, a tuple or dict."""
    records = build(rows)
    parts = []
    for k, sequences in enumerate(zip(*map(_sequences, inputs), strict=True)):
        parts.append(_like(sequences, [record[k] for record in records]))
    return remade(inputs[0], parts)


def _like(sequences: Sequence[Any], items: list[Any]) -> Any:
    """Return items in a sequence of the same type as the given sequences."""
    first = sequences[0]
    if not isinstance(first, np.ndarray):
        return remade(first, items)
    # A text of another input may be longer than those of the first.
    dtype = np.dtype((np.result_type(*sequences), first.shape[1:]))
    return np.fromiter(items, dtype, len(items))


def _length(record: Any) -> float:
    """Return the Euclidean norm of the numbers, and lengths of texts, of a record."""
    if isinstance(record, str | bytes):
        return float(len(record))
    if isinstance(record, list | tuple | set | frozenset):
        return math.hypot(*map(_length, record))
    if not _is_array(record):
        parts = record if isinstance(record, Mapping) else attributes(record)
        if parts or isinstance(record, Mapping):
            return math.hypot(*map(_length, parts.values()))
    return float(np.linalg.norm(np.nan_to_num(np.asarray(of_tensor(record), float))))


def _is_array(data: Any) -> bool:
    return isinstance(of_tensor(data), np.ndarray)


def _joined(parts: list[Tabular], together: Callable[[Any], Any]) -> Tabular:
    """Return tables of one length side by side; ``together`` joins their data."""
    sizes = {len(part.rows) for part in parts}
    if len(sizes) != 1:
        raise ValueError(f"parts have {sorted(sizes)} records")
    ends = np.cumsum([0, *(part.rows.shape[1] for part in parts)]).tolist()
    slices = [slice(start, end) for start, end in pairwise(ends)]

    def build(rows: Floats) -> Any:
        tables = zip(parts, slices, strict=True)
        return together([part.build(rows[:, columns]) for part, columns in tables])

    rows = np.concatenate([part.rows for part in parts], axis=1)
    whole = np.concatenate([part.whole for part in parts])
    return Tabular(rows, slices, whole, build)


def _of_array(data: Any) -> Tabular:
    array = of_tensor(data)
    if array.ndim == 0 or array.dtype.kind not in "biuf":
        raise ValueError(f"an array of shape {array.shape} and type {array.dtype}")
    columns = math.prod(array.shape[1:])
    rows = array.reshape(len(array), columns).astype(float)

    def build(rows: Floats) -> Any:
        array_of_rows = rows.reshape(-1, *array.shape[1:]).astype(array.dtype)
        if array is data:
            return array_of_rows
        return data.new_tensor(array_of_rows)

    whole = np.full(columns, array.dtype.kind in "biu")
    return Tabular(rows, [slice(0, columns)], whole, build)


def _of_sequence(data: Any) -> Tabular:
    if not isinstance(data, list | tuple):
        raise TypeError(f"{type(data).__name__} is no sequence of records")
    if not data:
        raise ValueError("there are no records")
    first = data[0]
    is_sequence = isinstance(first, list | tuple)
    kinds = [*map(type, first)] if is_sequence else [type(first)]
    if not all(issubclass(kind, bool | int | float | np.number) for kind in kinds):
        raise TypeError(f"a record {brief(first)}")
    rows = np.array(data, float).reshape(len(data), -1)
    whole = np.array([issubclass(kind, bool | int | np.integer) for kind in kinds])

    def record(row: Floats) -> Any:
        # The numbers of a record may have several types, which an array cannot keep.
        values = [kind(value) for kind, value in zip(kinds, row.tolist(), strict=True)]
        if is_sequence:
            return remade(first, values)
        return values[0]

    def build(rows: Floats) -> Any:
        return remade(data, [*map(record, rows)])

    return Tabular(rows, [slice(0, rows.shape[1])], whole, build)
