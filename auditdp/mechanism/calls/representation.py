"""The representation of outputs: the form of their rows, which first outputs decide.

Forecasters work on arrays, in which every output is a row of the same shape and type.
If all first outputs are numbers, or arrays of numbers, of one shape, a row is the
output itself. Otherwise (lists of different lengths, text, answers mixed with flags) a
row has the *leaves* of the output in order (``leaves.py``). Such a *flat* row begins
with the number of leaves, and its leaves are padded with NaN. It ends with a number
that distinguishes outputs that do not fit; for outputs that fit, this number is NaN. If
first outputs are of several kinds, the kind is one of the numbers. If the order of keys
varies, the place of every key is one, too.

A later output of another kind or shape has a row as well, unless rows are integers or
bools; then it is an error. Among rows of doubles it begins with a NaN whose bits are a
*name* of the output: a hash that distinguishes it from numbers and from other outputs.

A law finds the outcome of a row by ``keys``. Only the value of an output is compared,
as far as its row contains it, and not its kind.
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
    is_plain_array,
    kind,
    leaves,
    paths,
    places,
    row_keys,
)
from auditdp.mechanism.protocol import Array

Outputs = Array | list[Any]
"""Outputs of one call: an array of them, or a list of the returned values."""
_NOT_A_NUMBER = 0x7FF8 << 48
"""The bits of a quiet NaN of IEEE 754, whose lower 51 bits are free."""
_IS_NUMBER = 1 << 50
"""Flag of a name that ends with the first bits of a number instead of a digest."""
_VALUE_BITS = 35
"""Number of bits at the end of a name that depend only on the value of the output.

They are the sign, the exponent and 23 bits of a double, or a digest of the leaves.
"""


@dataclass(frozen=True)
class Representation:
    """The form of the rows of one mechanism's outputs."""

    shape: tuple[int, ...]
    """Shape of a row."""
    dtype: np.dtype[Any]
    flat: bool
    """True if a row has several parts; if False, a row is the output itself.

    The parts are the number of leaves, the leaves, the places of keys, and a name,
    which is NaN for an output that fits.
    """
    typed: bool = False
    """True if the first leaf of a row is a digest of the output's kind."""
    kind: str = ""
    """The kind of all first outputs.

    It is empty if there were several kinds, or if rows are no doubles.
    """
    longest: int = 0
    """Largest number of leaves of a first output."""
    ordered: int = 0
    """Number of keys whose places follow the leaves in a row.

    It is 0 unless the order of keys varies.
    """
    _texts: dict[Any, Array] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    """Cache of the rows of texts, bytes, integers, bools and None."""

    @classmethod
    def of(cls, samples: Iterable[Outputs]) -> Representation:
        """Return the representation for outputs like those of some calls.

        If outputs are numbers of one shape, rows have this shape. They also have the
        type of the numbers, if these come in arrays of many outputs. Numbers that come
        one by one become doubles: a function may return 0 now and 0.5 later. Otherwise
        rows are flat, with room for twice the largest number of leaves of a sample, or
        for this number if all samples are arrays of many outputs. If samples are of
        several kinds, the kind is a leaf of its own, since the receiver of an output
        can distinguish kinds.

        Args:
            samples: The outputs of each call.
        """
        sampled = [_Sample.of(outputs) for outputs in samples]
        shapes = set(chain.from_iterable(one.shapes for one in sampled))
        kinds = set(chain.from_iterable(one.kinds for one in sampled))
        types = {one.dtype for one in sampled}
        double = np.dtype(np.float64)
        together = np.dtype(object) not in types
        longest = max((one.longest for one in sampled), default=0)
        typed = len(kinds) > 1
        alike = "".join(kinds) if len(kinds) == 1 else ""
        # Numbers of one shape, type and kind need no leaves: a row is the output.
        if None not in shapes and len(shapes) == 1 and len(types) == 1 and not typed:
            dtype = types.pop() if together else double
            checked = alike if dtype == double else ""
            shape = shapes.pop() or ()
            return cls(shape, dtype, flat=False, kind=checked, longest=longest)
        orders = [order for one in sampled for order in one.orders]
        ordered = 0 if _one_order(orders) else max(map(len, orders))
        width = max(1, (longest + typed) * (1 if together else 2))
        return cls((width + ordered + 2,), double, True, typed, alike, longest, ordered)

    @property
    def _width(self) -> int:
        """Number of leaves that a flat row has room for; the kind counts as a leaf."""
        return math.prod(self.shape) - self.ordered - 2

    def recorded(self) -> dict[str, Any]:
        """Return the fields other than shape and type, as plain data."""
        names = "flat", "typed", "kind", "longest", "ordered"
        return {name: getattr(self, name) for name in names}

    def names(self, sample: Any) -> list[str]:
        """Return a label of each number of a row.

        The label is an index, or in flat rows the path of a leaf in a sample output.
        """
        if not self.flat:
            return [str(list(index)) for index in np.ndindex(self.shape)]
        width = self._width
        ways = ["its type"] * self.typed + list(paths(sample))
        ways += [f"part {k + 1}" for k in range(len(ways), width)]
        order = [way for way, _ in places(sample)]
        for k in range(len(order), self.ordered):
            order.append(f"the place of key {k + 1} of output")
        shown = [*ways[:width], *order[: self.ordered]]
        return ["number of parts", *shown, "what does not fit"]

    def rows(self, outputs: Outputs) -> Array:
        """Return one row per output, an array of shape (outputs, *shape).

        Raises:
            MechanismError: If a leaf has an unsupported type, or if rows are integers
                or bools and an output has another shape or type.
        """
        array = _array(outputs)
        # All outputs are converted at once if rows hold them without loss.
        if (
            array is not None
            and not self.flat
            and array.shape[1:] == self.shape
            and self._holds(array, outputs)
            and self._alike(outputs)
        ):
            return array.astype(self.dtype, copy=False)
        if not self.flat and self.dtype.kind != "f":
            what = "ragged outputs"
            if array is not None:
                what = f"{array.dtype} outputs of shape {array.shape[1:]}"
            raise MechanismError(
                f"returned {what} after {self.dtype} of shape {self.shape}; return one shape and type, or doubles"
            )
        # Otherwise each output is converted alone; a number that is not set is NaN.
        width = math.prod(self.shape)
        rows = np.full((len(outputs), width), np.nan, self.dtype)
        fill = self._fill_flat if self.flat else self._fill_plain
        for row, output in zip(rows, outputs, strict=True):
            if type(output) not in (str, bytes, int, bool, type(None)):
                fill(row, output)
                continue
            key = type(output), output
            if key in self._texts:
                row[:] = self._texts[key]
                continue
            fill(row, output)
            # This protects memory.
            if len(self._texts) < 4096:
                self._texts[key] = row.copy()
        return rows.reshape(len(outputs), *self.shape)

    def _holds(self, array: Array, outputs: Outputs) -> bool:
        """Return True if rows can contain the array of some outputs without loss."""
        if array.dtype.kind not in NUMERIC:
            return False
        with np.errstate(invalid="ignore"):
            fits = np.can_cast(array.dtype, self.dtype)
            if not fits and not (array.astype(self.dtype) == array).all():
                return False
        return self.dtype.kind != "f" or _doubles(array, outputs)

    def _alike(self, outputs: Outputs) -> bool:
        """Return True if outputs are all of the kind of the first ones."""
        return not self.kind or _kinds(outputs) <= {self.kind}

    def _fill_plain(self, row: Array, output: Any) -> None:
        """Fill a row that is not flat with one output.

        If the output does not fit, its row begins with its name.
        """
        given = _array(output)
        fits = False
        if given is not None and given.shape == self.shape:
            fits = given.dtype.kind in NUMERIC and _doubles(given, output)
        if fits:
            assert given is not None
            row[:] = given.ravel()
        if (
            len(row)
            and row.dtype == np.float64
            and not (fits and self._alike([output]))
        ):
            name = _NOT_A_NUMBER | _name_of(output, list(leaves(output)), row.size)
            row[:1] = np.array([name], np.uint64).view(np.float64)

    def _fill_flat(self, row: Array, output: Any) -> None:
        """Fill a flat row with one output.

        Its last number is a name of the output if the output has too many leaves or
        another kind than the first outputs.
        """
        of, found, width = kind(output), list(leaves(output)), self._width
        numbers = [digest(of), *found] if self.typed else found
        # The layout is: number of leaves, leaves, places of keys, name.
        row[0] = len(numbers)
        row[1 : 1 + min(len(numbers), width)] = numbers[:width]
        if self.ordered:
            order = [place for _, place in islice(places(output), self.ordered)]
            row[1 + width : 1 + width + len(order)] = order
        if len(numbers) > width or (self.kind and of != self.kind):
            row[-1] = _name_of(output, found)

    def keys(self, rows: Array) -> list[Any]:
        """Return a key of each output, by which a law finds its outcome.

        The key is the value of the output, the bytes of ``row_keys``. If the row does
        not contain the whole value, the key is one of ``short_keys``.
        """
        found: list[Any]
        if not self.flat:
            found = list[Any](row_keys(rows))
            for k, name in zip(*_named(rows), strict=True):
                found[k] = _short(int(name), found[k][8:])
            return found
        found = []
        for row in rows:
            # If the output has too many leaves, its row ends with a digest of them.
            if row[0] > self._width:
                found.append(_short(int(row[-1]), b""))
            else:
                numbers = row[1 + self.typed : 1 + int(row[0])]
                found.append(as_values(numbers).tobytes())
        return found

    def numbers(self, rows: Array) -> Array:
        """Return the numbers of outputs, for the optional methods of the mechanism.

        A number that an output lacks, or that its row does not contain, is NaN.

        Returns:
            An array of the shape of ``rows``. From flat rows, the first leaves: shape
            (outputs, ``longest``), or (outputs,) if no first output has more than one.
        """
        if self.flat:
            numbers = rows[:, 1 + self.typed :][:, : self.longest]
            return numbers[:, 0] if self.longest == 1 else numbers
        named, names = _named(rows)
        whole = names & _IS_NUMBER > 0
        # A name of a number has its first bits, which are restored.
        if whole.any():
            rows = rows.copy()
            first = rows.reshape(len(rows), -1)[:, 0]
            bits = names[whole] << np.uint64(64 - _VALUE_BITS)
            first[named[whole]] = bits.view(np.float64)
        return rows


def short_keys(key: bytes) -> tuple[Any, Any]:
    """Return the two keys that a value may have in rows that do not contain all of it.

    The first has the first bits of the first number, and the other numbers. The second
    has a digest of the value.

    Args:
        key: The value, as bytes of ``row_keys``.
    """
    truncated = _short(_IS_NUMBER | _first_bits(key), key[8:])
    return truncated, _short(int(digest(key)), b"")


def _first_bits(key: bytes) -> int:
    return int.from_bytes(key[:8], "little") >> (64 - _VALUE_BITS)


def _short(name: int, rest: bytes) -> tuple[int, bytes | None]:
    return name & (1 << _VALUE_BITS) - 1, rest if name & _IS_NUMBER else None


def _name_of(output: Any, numbers: list[float], width: int = -1) -> int:
    """Return a name of 51 bits for an output that does not fit.

    It has a hash of the output's kind and value, and then bits of the value alone:
    the first bits of the first leaf if the output has ``width`` leaves, so that the
    others are in the row, or else a digest of all leaves.

    Args:
        output: The output.
        numbers: The leaves of the output.
        width: Number of leaves of a row that is not flat.
    """
    key = as_values(np.array(numbers, dtype=np.float64)).tobytes()
    form = int(digest(form_key(output) + key)) & (_IS_NUMBER >> _VALUE_BITS) - 1
    if len(numbers) == width:
        return _IS_NUMBER | form << _VALUE_BITS | _first_bits(key)
    return form << _VALUE_BITS | int(digest(key)) & (1 << _VALUE_BITS) - 1


def _named(rows: Array) -> tuple[NDArray[np.intp], NDArray[np.uint64]]:
    """Return the indices of rows that begin with a name, and the names."""
    if rows.dtype != np.float64 or not rows.size:
        return np.zeros(0, np.intp), np.zeros(0, np.uint64)
    first = np.ascontiguousarray(rows.reshape(len(rows), -1)[:, 0])
    named = np.flatnonzero(np.isnan(first))
    names = first[named].view(np.uint64) & np.uint64(2 * _IS_NUMBER - 1)
    return named[names > 0], names[names > 0]


@dataclass(frozen=True)
class _Sample:
    """The properties of the outputs of one call that decide the representation."""

    dtype: np.dtype[Any]
    """The type of an array of many outputs; object if outputs come one by one."""
    shapes: set[tuple[int, ...] | None]
    """The shapes of outputs; None stands for an output that is not only numbers."""
    longest: int
    """Largest number of leaves of an output."""
    kinds: set[str]
    """The kinds of outputs."""
    orders: list[list[str]]
    """The paths of the keys of each output, in their order."""

    @classmethod
    def of(cls, outputs: Outputs) -> _Sample:
        kinds = _kinds(outputs)
        if isinstance(outputs, np.ndarray):
            shape = outputs.shape[1:]
            return cls(outputs.dtype, {shape}, math.prod(shape), kinds, [])
        longest = max(map(_leaf_count, outputs), default=0)
        orders = []
        for output in outputs:
            by_place = sorted(places(output), key=itemgetter(1))
            orders.append([way for way, _ in by_place])
        shapes = set(map(_shape, outputs))
        return cls(np.dtype(object), shapes, longest, kinds, orders)


def _leaf_count(output: Any) -> int:
    return sum(1 for _ in leaves(output))


def _one_order(orders: Iterable[list[str]]) -> bool:
    """Return True if one order of all keys agrees with the order of every output."""
    # Each output orders some of the keys. The orders agree if they have no cycle.
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
    """Return the set of kinds of outputs; an array of outputs has only one kind."""
    if isinstance(outputs, np.ndarray):
        return set(map(kind, outputs[:1]))
    # Numbers have a kind by type, and a batch may have many of them.
    types = set(map(type, outputs))
    if types <= NAMES.keys():
        return {NAMES[of] for of in types}
    return set(map(kind, outputs))


def _shape(output: Any) -> tuple[int, ...] | None:
    given = _array(output)
    # An empty list may be followed by others, so that it has no shape.
    if given is None or given.dtype.kind not in NUMERIC or not given.size:
        return None
    return given.shape if _leaf_count(output) == given.size else None


def _doubles(array: Array, outputs: Any) -> bool:
    """Return True if doubles hold the outputs of an array without loss.

    Integers from 2^53 on and long doubles may lose digits.

    Args:
        array: The outputs as an array.
        outputs: The outputs as the mechanism returned them.
    """
    if array is outputs and is_plain_array(outputs):
        return True
    if any(hidden_number(part) is not None for part in _flattened(outputs)):
        return False
    if array.dtype.itemsize <= 4:
        return True
    with np.errstate(invalid="ignore"):
        if not (np.abs(array.astype(np.float64)) >= EXACT).any():
            return True
    return _leaf_count(outputs) == array.size


def _flattened(outputs: Any) -> Iterable[Any]:
    """Yield the items of nested lists, two levels deep, except those of type float."""
    whole = outputs if isinstance(outputs, list | tuple) else (outputs,)
    for each in whole:
        for part in each if isinstance(each, list | tuple) else (each,):
            if type(part) is not float:
                yield part


def _array(output: Any) -> Array | None:
    try:
        return np.asarray(output)
    except ValueError:
        # The rows have different lengths.
        return None


def stacked(outputs: Sequence[Outputs]) -> Outputs:
    """Return the outputs of several calls in the form of outputs of one call."""
    arrays = [part for part in outputs if isinstance(part, np.ndarray)]
    forms = {(part.shape[1:], part.dtype) for part in arrays}
    if len(arrays) == len(outputs) and len(forms) == 1:
        return np.concatenate(arrays)
    return [output for part in outputs for output in part]


class SeenAs:
    """A mechanism together with the form of its rows.

    ``auditdp.mechanism.capabilities`` returns optional methods that take such rows.
    """

    def __init__(self, mechanism: Any, form: Representation) -> None:
        self.mechanism = mechanism
        self.form = form

    def __getattr__(self, name: str) -> Any:
        # While the object is copied, it has no attribute ``mechanism`` yet. This method
        # would then call itself without end.
        if name == "mechanism":
            raise AttributeError(name)
        return getattr(self.mechanism, name)

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Any:
        """Call the mechanism, and return its outputs as they are."""
        return self.mechanism(data, size, rng=rng)
