"""Rows of numbers for whatever a mechanism returns, of one kind that its first outputs decide.

Forecasters look at arrays, in which every output is a row of the same shape and type. Where all first outputs are numbers,
or arrays of them, of one shape, a row is that output. Elsewhere (lists of different lengths, text, answers mixed with flags)
an output is flattened to its *leaves* in order (``leaves.py``). Such a row begins with how many leaves there are, is padded
with NaN, and ends with a number that tells apart what does not fit. Where first outputs are of several kinds, the kind is a
number too, and where the order of keys varies, so is the place of every key.

Outputs that come later fit in any case. An output of another kind among rows of doubles begins with NaN that carries the
name of that output, so that it is told apart from numbers, and from outputs of other names.

What a law lists is compared with rows by ``keys``: the value of an output, read from its row, whatever its kind.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import chain, islice, pairwise
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditdp.errors import MechanismError
from auditdp.mechanism.calls.leaves import (
    EXACT,
    NAMES,
    NUMERIC,
    as_values,
    digest,
    form_key,
    hidden_number,
    kind,
    leaves,
    paths,
    places,
    row_keys,
)
from auditdp.mechanism.protocol import Array

Outputs = Array | list[Any]
"""Outputs of one call: an array with one row each, or a list of what a function of one output a call returned."""
MOST_SEEN = 4096
"""Outputs whose rows are remembered: answers, flags and short lists of them come again and again."""
SIMPLE = (str, bytes, int, bool, type(None))
LONGEST = 16
NOT_A_NUMBER = 0x7FF8 << 48
"""The bits of a quiet NaN of IEEE 754, whose lower 51 bits may hold anything."""
A_NUMBER = 1 << 50
"""Set in a name that ends with the first bits of a number, and not of a digest."""
VALUE = 35
"""Last bits of a name, which are of the value: sign, exponent and 23 bits of a double, or a digest of the leaves."""


@dataclass(frozen=True)
class Representation:
    """How the outputs of one mechanism become rows."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    flat: bool
    """Whether rows hold the leaves of outputs, between their number and the name of what does not fit."""
    typed: bool = False
    """Whether the first leaf is the kind of an output."""
    kind: str = ""
    """The kind of all first outputs; empty where there were several, or where rows are no doubles."""
    longest: int = 0
    """Leaves of the longest first output."""
    ordered: int = 0
    """Keys whose places follow the leaves: those of the longest first output, where their order varies."""
    _seen: dict[Any, Array] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    @classmethod
    def of(cls, samples: Iterable[Outputs]) -> Representation:
        """Return the representation for outputs that look like these.

        Numbers of one shape keep it, and their type where they come in arrays of many outputs. Where they come one by one
        they are doubles: a function may return 0 now and 0.5 later. Otherwise rows have room for twice as many leaves as the
        longest sample, or for exactly as many where all samples are arrays of many outputs; where these are of several
        kinds, the kind is a leaf of its own, since whoever gets the output sees it.
        """
        seen = [_Seen.of(outputs) for outputs in samples]
        shapes = {shape for one in seen for shape in one.shapes}
        types = {one.dtype for one in seen}
        kinds = {kind for one in seen for kind in one.kinds}
        double, together = np.dtype(np.float64), all(one.together for one in seen)
        longest = max((one.longest for one in seen), default=0)
        typed, alike = len(kinds) > 1, "".join(kinds) if len(kinds) == 1 else ""
        if None not in shapes and len(shapes) == 1 and len(types) == 1 and not typed:
            dtype = types.pop() if together else double
            return cls(
                shapes.pop() or (),
                dtype,
                flat=False,
                kind=alike if dtype == double else "",
                longest=longest,
            )
        orders = [order for one in seen for order in one.orders]
        ordered = 0 if _one_order(orders) else max(map(len, orders))
        width = max(1, (longest + typed) * (1 if together else 2))
        return cls((width + ordered + 2,), double, True, typed, alike, longest, ordered)

    @property
    def _width(self) -> int:
        """Leaves that a row has room for, the kind included."""
        return math.prod(self.shape) - self.ordered - 2

    def recorded(self) -> dict[str, Any]:
        """Return as plain data what is not seen of rows."""
        return {
            name: getattr(self, name)
            for name in ("flat", "typed", "kind", "longest", "ordered")
        }

    def names(self, sample: Any) -> list[str]:
        """Return what each number of a row is: the way to it in an output like this one."""
        if not self.flat:
            return [
                f"[{', '.join(map(str, place))}]" for place in np.ndindex(self.shape)
            ]
        width = self._width
        ways = ["its type"] * self.typed + list(paths(sample))
        ways += [f"part {k + 1}" for k in range(len(ways), width)]
        order = [way for way, _ in places(sample)]
        order += [
            f"the place of key {k + 1} of output"
            for k in range(len(order), self.ordered)
        ]
        return [
            "number of parts",
            *ways[:width],
            *order[: self.ordered],
            "what does not fit",
        ]

    def rows(self, outputs: Outputs) -> Array:
        """Return one row per output, of this shape and type.

        Raises:
            MechanismError: If a leaf is of a type that is not known; or if numbers of another shape or type come
                where rows are integers or booleans, which have no room for them.
        """
        array = outputs if isinstance(outputs, np.ndarray) else _array(outputs)
        fits = array is not None and not self.flat and array.shape[1:] == self.shape
        if (
            array is not None
            and fits
            and self._holds(array, outputs)
            and self._alike(outputs)
        ):
            return array.astype(self.dtype, copy=False)
        if not self.flat and self.dtype.kind != "f":
            what = (
                f"{array.dtype} outputs of shape {array.shape[1:]}"
                if array is not None
                else "ragged outputs"
            )
            raise MechanismError(
                f"returned {what} after {self.dtype} of shape {self.shape}; return one shape and type, or doubles"
            )
        rows = np.full((len(outputs), *self.shape), np.nan, self.dtype)
        place = self._flat if self.flat else self._plain
        for row, output in zip(
            rows.reshape(len(outputs), math.prod(self.shape)), outputs, strict=True
        ):
            if (name := _name(output)) is None:
                place(row, output)
            elif (known := self._seen.get(name)) is not None:
                row[:] = known
            else:
                place(row, output)
                if len(self._seen) < MOST_SEEN:
                    self._seen[name] = row.copy()
        return rows

    def _holds(self, array: Array, outputs: Outputs) -> bool:
        """Return whether rows of this type hold the array of some outputs without loss."""
        if array.dtype.kind not in NUMERIC:
            return False
        with np.errstate(invalid="ignore"):
            fits = np.can_cast(array.dtype, self.dtype) or bool(
                (array.astype(self.dtype) == array).all()
            )
        return fits and (self.dtype.kind != "f" or _doubles(array, outputs))

    def _alike(self, outputs: Outputs) -> bool:
        """Return whether outputs are all of the kind that the first were."""
        return not self.kind or _kinds(outputs) <= {self.kind}

    def _plain(self, row: Array, output: Any) -> None:
        """Fill the row of one output; of one that does not fit, the first number is NaN with its name."""
        given = _array(output)
        fits = (
            given is not None
            and given.shape == self.shape
            and given.dtype.kind in NUMERIC
            and _doubles(given, output)
        )
        if given is not None and fits:
            row[:] = given.ravel()
        if (
            len(row)
            and row.dtype == np.float64
            and not (fits and self._alike([output]))
        ):
            name = NOT_A_NUMBER | _name_of(output, list(leaves(output)), row.size)
            row[:1] = np.array([name], np.uint64).view(np.float64)

    def _flat(self, row: Array, output: Any) -> None:
        """Fill the row of one output: the number of its leaves, the leaves, and the name of those beyond the width."""
        of, found, width = kind(output), list(leaves(output)), self._width
        numbers = [*([digest(of)] if self.typed else []), *found]
        row[0] = len(numbers)
        row[1 : 1 + min(len(numbers), width)] = numbers[:width]
        if self.ordered:
            order = [place for _, place in islice(places(output), self.ordered)]
            row[1 + width : 1 + width + len(order)] = order
        if len(numbers) > width or (self.kind and of != self.kind):
            row[-1] = _name_of(output, found)

    def keys(self, rows: Array) -> list[Any]:
        """Return the value of each output as ``row_keys`` has it; where its row does not hold it, what is short for it."""
        if self.flat:
            start, room = 1 + self.typed, self._width
            return [
                _short(int(row[-1]), b"")
                if row[0] > room
                else as_values(row[start : 1 + int(row[0])]).tobytes()
                for row in rows
            ]
        found: list[Any] = row_keys(rows)
        named, names = _named(rows)
        for k, name in zip(named, names, strict=True):
            found[k] = _short(int(name), found[k][8:])
        return found

    def numbers(self, rows: Array) -> Array:
        """Return outputs for what a mechanism computes of them: their numbers, NaN where one has others, or fewer."""
        if self.flat:
            numbers = rows[:, 1 + self.typed :][:, : self.longest]
            return numbers[:, 0] if self.longest == 1 else numbers
        named, names = _named(rows)
        if len(named) and (whole := names & A_NUMBER > 0).any():
            rows = rows.copy()
            first = rows.reshape(len(rows), -1)[:, 0]
            first[named[whole]] = (names[whole] << np.uint64(64 - VALUE)).view(
                np.float64
            )
        return rows


def short_keys(key: bytes) -> tuple[Any, Any]:
    """Return what stands for a value in rows that do not hold it: its first number cut short, or a digest."""
    return _short(A_NUMBER | _first_bits(key), key[8:]), _short(int(digest(key)), b"")


def _first_bits(key: bytes) -> int:
    return int.from_bytes(key[:8], "little") >> (64 - VALUE)


def _short(name: int, rest: bytes) -> tuple[int, bytes | None]:
    return name & (1 << VALUE) - 1, rest if name & A_NUMBER else None


def _name_of(output: Any, numbers: list[float], width: int = -1) -> int:
    """Return a name of 51 bits: for the value of an output, and for what else there is of it.

    ``numbers`` are its leaves. Where ``width`` of them make a row, the name holds the first of them, and else a digest of
    all.
    """
    key = as_values(np.array(numbers, dtype=np.float64)).tobytes()
    value = (
        _first_bits(key)
        if (whole := len(numbers) == width)
        else int(digest(key)) & (1 << VALUE) - 1
    )
    form = int(digest(form_key(output) + key)) & (A_NUMBER >> VALUE) - 1
    return whole * A_NUMBER | form << VALUE | value


def _named(rows: Array) -> tuple[NDArray[np.intp], NDArray[np.uint64]]:
    """Return which rows begin with a name, and the names."""
    if rows.dtype != np.float64 or not rows.size:
        return np.zeros(0, np.intp), np.zeros(0, np.uint64)
    first = np.ascontiguousarray(rows.reshape(len(rows), -1)[:, 0])
    named = np.flatnonzero(np.isnan(first))
    names = first[named].view(np.uint64) & np.uint64(2 * A_NUMBER - 1)
    return named[names > 0], names[names > 0]


@dataclass(frozen=True)
class _Seen:
    """What is to be known of the outputs of one call."""

    together: bool
    """Whether they are an array of many outputs."""
    dtype: np.dtype[Any]
    """The type of that array; object where outputs come one by one."""
    shapes: set[tuple[int, ...] | None]
    """The shape of each output, None for one that is not numbers alone."""
    longest: int
    kinds: set[str]
    orders: list[list[str]]
    """The keys of each in order, by the way to them."""

    @classmethod
    def of(cls, outputs: Outputs) -> _Seen:
        if isinstance(outputs, np.ndarray):
            longest = math.prod(outputs.shape[1:])
            return cls(
                True, outputs.dtype, {outputs.shape[1:]}, longest, _kinds(outputs), []
            )
        longest = max((sum(1 for _ in leaves(output)) for output in outputs), default=0)
        orders = [
            [way for way, _ in sorted(places(output), key=itemgetter(1))]
            for output in outputs
        ]
        return cls(
            False,
            np.dtype(object),
            set(map(_shape, outputs)),
            longest,
            _kinds(outputs),
            orders,
        )


def _one_order(orders: Iterable[list[str]]) -> bool:
    """Return whether keys follow each other in one order in all of some outputs, though each may lack some of them."""
    after = TopologicalSorter[str]()
    for order in orders:
        for key, following in pairwise(order):
            after.add(following, key)
    try:
        after.prepare()
    except CycleError:
        return False
    return True


def _kinds(outputs: Outputs) -> set[str]:
    """Return the kinds of some outputs; those of one array are alike."""
    if isinstance(outputs, np.ndarray):
        return set(map(kind, outputs[:1]))
    types = set(map(type, outputs))
    return (
        {NAMES[of] for of in types}
        if types <= NAMES.keys()
        else set(map(kind, outputs))
    )


def _shape(output: Any) -> tuple[int, ...] | None:
    given = _array(output)
    # An empty list may be followed by others.
    plain = given is not None and given.dtype.kind in NUMERIC and given.size
    return (
        given.shape
        if given is not None and plain and sum(1 for _ in leaves(output)) == given.size
        else None
    )


def _doubles(array: Array, outputs: Any) -> bool:
    """Return whether doubles hold what an array was made of: numbers beyond 2^53 may need more."""
    if array is outputs and array.dtype.kind in "bf" and array.dtype.itemsize <= 8:
        return True
    if any(hidden_number(part) is not None for part in _parts_of(outputs)):
        return False
    with np.errstate(invalid="ignore"):
        large = array.dtype.itemsize > 4 and bool(
            (np.abs(array.astype(np.float64)) >= EXACT).any()
        )
    return not large or sum(1 for _ in leaves(outputs)) == array.size


def _parts_of(outputs: Any) -> Iterable[Any]:
    """Return what lists of at most two levels hold, as far as it is no float of Python's own."""
    whole = outputs if isinstance(outputs, list | tuple) else (outputs,)
    flat = chain.from_iterable(
        each if isinstance(each, list | tuple) else (each,) for each in whole
    )
    return (each for each in flat if type(each) is not float)


def _array(output: Any) -> Array | None:
    try:
        return np.asarray(output)
    except ValueError:  # ragged
        return None


def _name(output: Any) -> Any:
    """Return what only equal outputs of one type share, where such an output is likely to come again; else None."""
    if type(output) in SIMPLE:
        return type(output), output
    if type(output) in (list, tuple) and len(output) <= LONGEST:
        types = tuple(map(type, output))
        return (
            (type(output), types, tuple(output))
            if all(of in SIMPLE for of in types)
            else None
        )
    return None


def stacked(outputs: Sequence[Outputs]) -> Outputs:
    """Return the outputs of several calls as those of one."""
    arrays = [part for part in outputs if isinstance(part, np.ndarray)]
    if (
        len(arrays) == len(outputs)
        and len({(part.shape[1:], part.dtype) for part in arrays}) == 1
    ):
        return np.concatenate(arrays)
    return [output for part in outputs for output in part]


class SeenAs:
    """A mechanism for forecasters: what it offers is asked for with rows (see ``auditdp.mechanism.capabilities``)."""

    def __init__(self, mechanism: Any, form: Representation) -> None:
        self.mechanism, self.form = mechanism, form

    def __getattr__(self, name: str) -> Any:
        if name == "mechanism":  # while a copy is being made
            raise AttributeError(name)
        return getattr(self.mechanism, name)

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Any:
        """Call the mechanism."""
        return self.mechanism(data, size, rng=rng)
