"""Data as a matrix of numbers, a line for each record, and the way back to what it was made from.

Pairs of 0/1 matrices of which one has one bit, or one undirected edge, more than the other.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, pairwise, permutations
from typing import Any

import numpy as np

from auditdp.adjacency import strategies as st
from auditdp.adjacency.adjacency import MAX_EXHAUSTIVE, Pair
from auditdp.errors import AdjacencyError
from auditdp.mechanism.calls.inputs import attributes, of_tensor
from auditdp.mechanism.protocol import brief, identity_key
from auditdp.numerics.arrays import Floats


def same_entries(one: Floats, other: Floats) -> Any:
    """Return which numbers of two rows are the same, NaN among them."""
    return (one == other) | (np.isnan(one) & np.isnan(other))


@dataclass(frozen=True)
class Tabular:
    """Records as lines of numbers."""

    rows: Floats
    """The numbers, shape (records, numbers)."""
    parts: list[slice]
    """Which columns belong together, such as those of features and those of labels."""
    whole: Any
    """Which columns hold whole numbers by their type."""
    made: Callable[[Floats], Any]
    """Makes data of the same form of other such rows."""
    stays: Callable[[Floats, Floats], Any] = same_entries
    """Returns which parts of the records of two rows are the same: their numbers, unless a row is the place of a record."""

    @property
    def is_in_columns(self) -> bool:
        """Whether the numbers of a row are the parts of its record."""
        return self.stays is same_entries


def tabular(data: Any) -> Tabular:
    """Return data as rows.

    They are a sequence of records, each a number or a sequence of numbers; an array or tensor of them; or a tuple, a dict
    or a ``TensorDataset`` of such arrays, of one length.

    Raises:
        AdjacencyError: If it is none of these.
    """
    try:
        if isinstance(data, Mapping) and data:
            parts = [tabular(value) for value in data.values()]
            return _joined(parts, partial(remade, data))
        tensors = getattr(data, "tensors", None)
        if isinstance(tensors, tuple) and tensors:
            return _joined(
                [tabular(each) for each in tensors], lambda made: type(data)(*made)
            )
        if (
            isinstance(data, tuple)
            and len(data) > 1
            and all(np.ndim(of_tensor(each)) and _is_array(each) for each in data)
        ):
            return _joined([tabular(each) for each in data], partial(remade, data))
        return _of_array(data) if _is_array(data) else _of_sequence(data)
    except (TypeError, ValueError) as error:
        raise AdjacencyError(
            f"expected records of numbers: a sequence or array of them, or features and labels, got {brief(data)}: {error}"
        ) from error


def number_of_records(data: Any) -> int | None:
    """Return how many records an input has that is a sequence, an array or arrays of one length; None for another."""
    if isinstance(data, Mapping):
        parts = [*data.values()]
    elif isinstance(tensors := getattr(data, "tensors", None), tuple):
        parts = [*tensors]
    else:
        several = (
            isinstance(data, tuple) and len(data) > 1 and all(map(_is_array, data))
        )
        parts = [*data] if several else [data]
    try:
        sizes = {len(part) for part in parts}
    except TypeError:  # of what has no length
        return None
    return sizes.pop() if len(sizes) == 1 else None


def by_number(*inputs: Any) -> list[Tabular]:
    """Return inputs whose records are of any kind, such as documents or users with examples, as rows of one whole number.

    It is the place of the record among all there are, the smallest first by the length of its numbers and texts: 0 is one
    that is empty.

    Args:
        inputs: Sequences of records; or tuples or dicts of sequences, one for each part of the records, such as texts and
            labels.

    Raises:
        AdjacencyError: If an input is neither, or its records have something else than numbers and texts.
    """
    first = inputs[0]
    if all(_is_in_parts(data) and len(data) == len(first) for data in inputs):
        parts = [
            [*zip(*(data.values() if isinstance(data, Mapping) else data), strict=True)]
            for data in inputs
        ]
        return [
            replace(each, made=partial(_in_parts, inputs, each.made))
            for each in by_number(*parts)
        ]
    if not all(
        isinstance(data, list | tuple | np.ndarray) for data in inputs
    ) or _is_mixed(first):
        raise AdjacencyError(f"expected sequences of records, got {brief(first)}")
    try:
        lengths = {
            identity_key(record): (_length(record), record)
            for data in inputs
            for record in data
        }
    except Exception as error:  # of a record that is no data
        raise AdjacencyError(
            f"expected records of numbers and texts: {error}"
        ) from error
    known = sorted(lengths, key=lambda key: lengths[key][0])
    start = int(lengths[known[0]][0] > 0) if known else 0  # an empty one alone is 0

    def record(row: Floats) -> Any:
        return lengths[known[int(row[0]) - start]][1]

    def made(rows: Floats) -> Any:
        return _like(inputs, [*map(record, rows)])

    def stays(one: Floats, other: Floats) -> Any:
        return np.array(_same_parts(record(one), record(other)))

    places = {key: place for place, key in enumerate(known, start)}
    numbers = [
        np.array([places[identity_key(record)] for record in data], float).reshape(
            -1, 1
        )
        for data in inputs
    ]
    return [
        Tabular(rows, [slice(0, 1)], np.array([True]), made, stays) for rows in numbers
    ]


def _same_parts(one: Any, other: Any) -> list[bool]:
    """Return which parts of two records are the same: of tuples and dicts their fields, of a sequence all but one item.

    Texts are sequences of words. Two sequences that differ in more than one item have no parts in common, since a word or
    a number may be the same in both by chance.
    """
    if identity_key(one) == identity_key(other):
        return [True]
    if (
        isinstance(one, Mapping)
        and isinstance(other, Mapping)
        and one.keys() == other.keys()
    ):
        return [same for key in one for same in _same_parts(one[key], other[key])]
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return [
            same for both in zip(one, other, strict=True) for same in _same_parts(*both)
        ]
    long, short = sorted(map(_items, (one, other)), key=len, reverse=True)
    differs = next(
        (
            k
            for k, both in enumerate(zip(long, short, strict=False))
            if both[0] != both[1]
        ),
        len(short),
    )
    rest = short[differs + (len(long) == len(short)) :]
    if len(long) > 1 and long[differs + 1 :] == rest:
        return [place != differs for place in range(len(long))]
    return [False]


def _items(record: Any) -> list[Any]:
    """Return the items of a sequence as what can be compared; a number or one word is an item itself."""
    value = of_tensor(record)
    if isinstance(value, str):
        return value.split()
    if isinstance(value, list | tuple) or (
        isinstance(value, np.ndarray) and value.ndim
    ):
        return [*map(identity_key, value)]
    return [identity_key(value)]


def _is_mixed(data: Any) -> bool:
    """Return whether a tuple has arrays of several forms, such as features and edges, which are no records."""
    forms = {
        (type(item), getattr(item, "dtype", None), getattr(item, "shape", ())[1:])
        for item in data
    }
    return isinstance(data, tuple) and any(map(_is_array, data)) and len(forms) > 1


def remade(like: Any, parts: Sequence[Any]) -> Any:
    """Return a sequence or a dict of the type, and with the keys, of another one, which holds these parts."""
    if isinstance(like, Mapping):
        return copy.copy(like) | dict(zip(like, parts, strict=True))  # type: ignore[operator]
    return type(like)._make(parts) if hasattr(like, "_make") else type(like)(parts)


def with_attributes(like: Any, **values: Any) -> Any:
    """Return a copy of an object in which those of the attributes that it has are others; it may be a frozen one."""
    names = (
        [field.name for field in dataclasses.fields(like) if field.init]
        if dataclasses.is_dataclass(like)
        else []
    )
    names = [*getattr(like, "_fields", names)]
    if names:
        anew = (
            like._replace
            if hasattr(like, "_replace")
            else partial(dataclasses.replace, like)
        )
        return anew(**{name: value for name, value in values.items() if name in names})
    made = copy.copy(like)
    for name, value in values.items():
        if hasattr(like, name):
            setattr(made, name, value)
    return made


def _is_in_parts(data: Any) -> bool:
    parts = (
        [*data.values()]
        if isinstance(data, Mapping)
        else data
        if isinstance(data, tuple)
        else []
    )
    return len(parts) > 1 and all(
        isinstance(part, list | np.ndarray) and len(part) == len(parts[0])
        for part in parts
    )


def _in_parts(
    inputs: Sequence[Any], made: Callable[[Floats], Any], rows: Floats
) -> Any:
    """Return records as inputs have them: in a tuple or a dict of their parts."""
    records = made(rows)
    both = [[*data.values()] if isinstance(data, Mapping) else data for data in inputs]
    parts = [
        _like(part, [record[k] for record in records])
        for k, part in enumerate(zip(*both, strict=True))
    ]
    return remade(inputs[0], parts)


def _like(sequences: Sequence[Any], items: list[Any]) -> Any:
    """Return items as a sequence of the type that some others have."""
    if not isinstance(sequences[0], np.ndarray):
        return remade(sequences[0], items)
    return np.fromiter(
        items,
        np.dtype((np.result_type(*sequences), sequences[0].shape[1:])),
        len(items),
    )


def _length(record: Any) -> float:
    if isinstance(record, str | bytes):
        return float(len(record))
    if isinstance(record, list | tuple | set | frozenset):
        return math.hypot(*map(_length, record))
    parts = (
        record
        if isinstance(record, Mapping)
        else {}
        if _is_array(record)
        else attributes(record)
    )
    if parts or isinstance(record, Mapping):
        return math.hypot(*map(_length, parts.values()))
    return float(np.linalg.norm(np.nan_to_num(np.asarray(of_tensor(record), float))))


def _is_array(data: Any) -> bool:
    return isinstance(of_tensor(data), np.ndarray)


def _joined(parts: list[Tabular], together: Callable[[Any], Any]) -> Tabular:
    sizes = {len(part.rows) for part in parts}
    if len(sizes) != 1:
        raise ValueError(f"parts have {sorted(sizes)} records")
    ends = np.cumsum([0, *(part.rows.shape[1] for part in parts)]).tolist()
    slices = [slice(start, end) for start, end in pairwise(ends)]

    def made(rows: Floats) -> Any:
        return together(
            [
                part.made(rows[:, columns])
                for part, columns in zip(parts, slices, strict=True)
            ]
        )

    whole = np.concatenate([part.whole for part in parts])
    return Tabular(
        np.concatenate([part.rows for part in parts], axis=1), slices, whole, made
    )


def _of_array(data: Any) -> Tabular:
    array = of_tensor(data)
    if array.ndim == 0 or array.dtype.kind not in "biuf":
        raise ValueError(f"an array of shape {array.shape} and type {array.dtype}")
    rows = array.reshape(len(array), int(np.prod(array.shape[1:]))).astype(float)

    def made(rows: Floats) -> Any:
        found = rows.reshape(-1, *array.shape[1:]).astype(array.dtype)
        return found if array is data else data.new_tensor(found)

    return Tabular(
        rows,
        [slice(0, rows.shape[1])],
        np.full(rows.shape[1], array.dtype.kind in "biu"),
        made,
    )


def _of_sequence(data: Any) -> Tabular:
    if not isinstance(data, list | tuple):
        raise TypeError(f"{type(data).__name__} is no sequence of records")
    if not data:
        raise ValueError("there are no records")
    first = data[0]
    kinds = [
        type(value) for value in (first if isinstance(first, list | tuple) else [first])
    ]
    if not all(issubclass(kind, bool | int | float | np.number) for kind in kinds):
        raise TypeError(f"a record {brief(first)}")
    rows = np.array(data, float).reshape(len(data), -1)
    whole = np.array([issubclass(kind, bool | int | np.integer) for kind in kinds])

    def record(row: Floats) -> Any:
        values = [kind(value) for kind, value in zip(kinds, row.tolist(), strict=True)]
        return remade(first, values) if isinstance(first, list | tuple) else values[0]

    return Tabular(
        rows,
        [slice(0, rows.shape[1])],
        whole,
        lambda rows: remade(data, [*map(record, rows)]),
    )


MOST_UNLABELLED = 7
"""Nodes up to which the order of nodes is tried out."""

Place = tuple[int, int]
"""Row and column of a bit; for an undirected edge, the smaller node first."""


@dataclass(frozen=True)
class Flips:
    """The pairs of matrices that differ in one place."""

    nodes: int
    """The matrices are int8, shape (nodes, nodes)."""
    places: Sequence[Place]
    """Where a matrix may have ones; elsewhere it is 0."""
    changing: Sequence[Place]
    """The places, among these, in which the two matrices of a pair may differ."""
    symmetric: bool = True
    """Whether a one at (i, j) is one at (j, i) too: a place is then an undirected edge."""

    def _matrix(self, ones: Sequence[Place]) -> np.ndarray[Any, Any]:
        matrix = np.zeros((self.nodes, self.nodes), np.int8)
        for i, j in ones:
            matrix[i, j] = 1
            if self.symmetric:
                matrix[j, i] = 1
        return matrix

    def pair(self, rest: Sequence[Place], place: Place, name: str = "") -> Pair:
        """Return the matrix with ones at the rest and at the place, against the one without the place."""
        return Pair(self._matrix([*rest, place]), self._matrix(rest), name)

    def exhaustive(self, ones: str) -> list[Pair] | None:
        """Return every pair, fewest ones first, or None above the limit; names of pairs count ``ones``, a plural."""
        if (
            len(self.places) > 20
            or len(self.changing) * 2 ** (len(self.places) - 1) > MAX_EXHAUSTIVE
        ):
            return None
        return [
            self.pair(rest, place, f"{size + 1} | {size} {ones}")
            for size in range(len(self.places))
            for rest in combinations(self.places, size)
            for place in self.changing
            if place not in rest
        ]

    def unlabelled(self, ones: str) -> list[Pair] | None:
        """Return one of all pairs that differ in the order of the nodes only, fewest edges first, or None above 7 nodes.

        For undirected graphs with all edges as places. Reorderings map the nodes of changing edges to themselves. A set of
        edges is a number, one bit for each edge; the smallest that a reordering makes of it stands for all of them.
        """
        if self.nodes > MOST_UNLABELLED:
            return None
        inner, number = (
            {node for edge in self.changing for node in edge},
            {e: k for k, e in enumerate(self.places)},
        )
        orders = [
            p
            for p in permutations(range(self.nodes))
            if {p[node] for node in inner} == inner
        ]
        moved = np.array(
            [
                [number[min(p[i], p[j]), max(p[i], p[j])] for i, j in self.places]
                for p in orders
            ]
        )
        bits = np.int64(1) << moved
        found, graphs = [], {0}
        for size in range(len(self.places)):
            larger = set()
            for graph in sorted(graphs):
                rest = [k for k in range(len(self.places)) if graph >> k & 1]
                images, seen = bits[:, rest].sum(axis=1), set()
                for k in set(range(len(self.places))) - set(rest):
                    larger.add(int((images + bits[:, k]).min()))
                    flipped = int((images * len(self.places) + moved[:, k]).min())
                    if self.places[k] in self.changing and flipped not in seen:
                        seen.add(flipped)
                        edges = [self.places[r] for r in rest]
                        found.append(
                            self.pair(
                                edges, self.places[k], f"{size + 1} | {size} {ones}"
                            )
                        )
            graphs = larger
        return found

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return pairs of any matrix and the same with any changing place flipped."""

        def build(present: list[bool], flipped: Place) -> Pair:
            ones = [
                place for place, here in zip(self.places, present, strict=True) if here
            ]
            pair = self.pair([place for place in ones if place != flipped], flipped)
            return pair if flipped in ones else pair.swapped()

        flags = st.lists(
            st.booleans(), min_size=len(self.places), max_size=len(self.places)
        )
        return st.builds(build, flags, st.sampled_from(self.changing))

    def wide(self) -> st.SearchStrategy[Pair]:
        """Return pairs of matrices with few ones, few zeros, or all ones of a few nodes, but for a few places."""
        few = st.lists(st.sampled_from(self.places), max_size=4, unique=True)
        hubs = st.lists(
            st.integers(0, self.nodes - 1), max_size=self.nodes, unique=True
        )

        def build(hubs: list[int], others: list[Place], flipped: Place) -> Pair:
            # A row of the matrix is a node's own, so that a place of a symmetric one belongs to two.
            full = {
                place
                for place in self.places
                if place[0] in hubs or (self.symmetric and place[1] in hubs)
            }
            ones = full ^ set(others)
            pair = self.pair(sorted(ones - {flipped}), flipped)
            return pair if flipped in ones else pair.swapped()

        return st.builds(build, hubs, few, st.sampled_from(self.changing))
