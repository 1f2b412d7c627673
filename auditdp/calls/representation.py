"""Rows of numbers for whatever a mechanism returns, of one kind that its first outputs decide.

Forecasters look at arrays, in which every output is a row of the same shape and type. Where all first outputs are numbers,
or arrays of them, of one shape, a row is that output. Elsewhere (lists of different lengths, text, answers mixed with flags)
an output is flattened to its *leaves* in order (``leaves.py``). Such a row begins with how many leaves there are, is padded
with NaN, and ends with a number that tells apart what does not fit.

Outputs that come later fit in any case. An output of another shape or type among rows of doubles becomes a row of NaN that
carries the name of that output, so that it is told apart from numbers, and from outputs of other names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditdp.calls.leaves import EXACT, NUMERIC, digest, kind, leaves, paths
from auditdp.errors import MechanismError

Array = NDArray[Any]
Outputs = Array | list[Any]
"""Outputs of one call: an array with one row each, or a list of what a function of one output a call returned."""
MOST_SEEN = 4096
"""Outputs whose rows are remembered: answers, flags and short lists of them come again and again."""
SIMPLE = (str, bytes, int, bool, type(None))
LONGEST = 16
NOT_A_NUMBER = 0x7FF8 << 48
"""The bits of a quiet NaN of IEEE 754, whose lower 48 bits may hold anything."""


@dataclass(frozen=True)
class Representation:
    """How the outputs of one mechanism become rows.

    Attributes:
        shape: The shape of a row.
        dtype: Its type.
        flat: Whether rows hold the leaves of outputs, between their number and the name of what does not fit.
        typed: Whether the first leaf is the kind of an output, or the type of the array that it came in.
        kind: The kind of all first outputs that came one by one; empty where there were several, or arrays of numbers.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    flat: bool
    typed: bool = False
    kind: str = ""
    _seen: dict[Any, Array] = field(init=False, repr=False, compare=False, default_factory=dict)

    @classmethod
    def of(cls, samples: Iterable[Outputs]) -> Representation:
        """Return the representation for outputs that look like these.

        Numbers of one shape keep it, and their type where they come in arrays of many outputs. Where they come one by one
        they are doubles: a function may return 0 now and 0.5 later. Otherwise rows have room for twice as many leaves as the
        longest sample, or for exactly as many where all samples are arrays of many outputs; where these are of several
        types, the type is a leaf of its own, since whoever gets the array sees it.
        """
        seen = [_Seen.of(outputs) for outputs in samples]
        shapes = {shape for one in seen for shape in one.shapes}
        types = {one.dtype for one in seen}
        kinds = {kind for one in seen for kind in one.kinds}
        double, together = np.dtype(np.float64), all(one.together for one in seen)
        alike = kinds.pop() if len(kinds) == 1 and not together else ""
        if (
            None not in shapes
            and len(shapes) == 1
            and len(types) == 1
            and not kinds
            and (shape := shapes.pop()) is not None
        ):
            return cls(shape, types.pop() if together else double, flat=False, kind="" if shape else alike)
        typed = len(types) > 1 if together else len(kinds) > 1
        longest = max((one.longest for one in seen), default=0) + typed
        return cls((max(1, longest if together else 2 * longest) + 2,), double, flat=True, typed=typed, kind=alike)

    def names(self, sample: Any) -> list[str]:
        """Return what each number of a row is: the way to it in an output like this one."""
        if not self.flat:
            return [f"[{', '.join(map(str, place))}]" for place in np.ndindex(self.shape)]
        width = math.prod(self.shape) - 2
        ways = ["its type"] * self.typed + list(paths(sample))
        ways += [f"part {k + 1}" for k in range(len(ways), width)]
        return ["number of parts", *ways[:width], "what does not fit"]

    def rows(self, outputs: Outputs) -> Array:
        """Return one row per output, of this shape and type.

        Raises:
            MechanismError: If a leaf is of a type that is not known; or if numbers of another shape or type come
                where rows are integers or booleans, which have no room for them.
        """
        array = outputs if isinstance(outputs, np.ndarray) else _array(outputs)
        fits = array is not None and not self.flat and array.shape[1:] == self.shape
        if array is not None and fits and self._holds(array, outputs) and self._alike(outputs):
            return array.astype(self.dtype, copy=False)
        if not self.flat and self.dtype.kind != "f":
            assert isinstance(outputs, np.ndarray)  # outputs that come one by one are represented by doubles
            raise MechanismError(
                f"returned {outputs.dtype} outputs of shape {outputs.shape[1:]} after {self.dtype} of shape {self.shape}; "
                "return one shape and type, or doubles"
            )
        rows = np.full((len(outputs), *self.shape), np.nan, self.dtype)
        place = self._flat if self.flat else self._plain
        for row, output in zip(rows.reshape(len(outputs), math.prod(self.shape)), outputs, strict=True):
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
            fits = np.can_cast(array.dtype, self.dtype) or bool((array.astype(self.dtype) == array).all())
        return fits and (self.dtype.kind != "f" or _doubles(array, outputs))

    def _alike(self, outputs: Outputs) -> bool:
        """Return whether outputs that come one by one are all of the kind that the first were."""
        return not self.kind or isinstance(outputs, np.ndarray) or {kind(output) for output in outputs} <= {self.kind}

    def _plain(self, row: Array, output: Any) -> None:
        """Fill the row of one output; one that does not fit leaves it NaN, with its name in the first place."""
        given = _array(output)
        fits = (
            given is not None and given.shape == self.shape and given.dtype.kind in NUMERIC and _doubles(given, output)
        )
        if given is not None and fits and self._alike([output]):
            row[:] = given.ravel()
        elif output is not None and len(row) and row.dtype == np.float64:
            bits = NOT_A_NUMBER | int(digest(f"{kind(output)} {_text(leaves(output))}"))
            row[:1] = np.array([bits], np.uint64).view(np.float64)

    def _flat(self, row: Array, output: Any) -> None:
        """Fill the row of one output: the number of its leaves, the leaves, and the name of those beyond the width."""
        of = str(output.dtype) if isinstance(output, np.ndarray | np.generic) else kind(output)
        numbers, width = [*([digest(of)] if self.typed else []), *leaves(output)], len(row) - 2
        row[0] = len(numbers)
        row[1 : 1 + min(len(numbers), width)] = numbers[:width]
        if len(numbers) > width or not self._alike([output]):
            row[-1] = digest(f"{of} {_text(numbers[width:])}")


@dataclass(frozen=True)
class _Seen:
    """What is to be known of the outputs of one call.

    Attributes:
        together: Whether they are an array of many outputs.
        dtype: The type of that array; object where outputs come one by one.
        shapes: The shape of each output, None for one that is not numbers alone.
        longest: Leaves of the longest.
        kinds: The kinds of outputs that come one by one.
    """

    together: bool
    dtype: np.dtype[Any]
    shapes: set[tuple[int, ...] | None]
    longest: int
    kinds: frozenset[str] = frozenset()

    @classmethod
    def of(cls, outputs: Outputs) -> _Seen:
        if isinstance(outputs, np.ndarray):
            return cls(True, outputs.dtype, {outputs.shape[1:]}, math.prod(outputs.shape[1:]))
        longest = max((sum(1 for _ in leaves(output)) for output in outputs), default=0)
        kinds = frozenset(map(kind, outputs))
        return cls(False, np.dtype(object), {_shape(output) for output in outputs}, longest, kinds)


def _shape(output: Any) -> tuple[int, ...] | None:
    given = _array(output)
    # An empty list may be followed by others.
    plain = given is not None and given.dtype.kind in NUMERIC and given.size and _doubles(given, output)
    return given.shape if given is not None and plain else None


def _doubles(array: Array, outputs: Any) -> bool:
    """Return whether doubles hold what an array was made of: numbers beyond 2^53 may need more."""
    if array is outputs and array.dtype.kind in "bf" and array.dtype.itemsize <= 8:
        return True
    with np.errstate(invalid="ignore"):
        large = array.dtype.itemsize > 4 and bool((np.abs(array.astype(np.float64)) >= EXACT).any())
    return not large or sum(1 for _ in leaves(outputs)) == array.size


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
        return (type(output), types, tuple(output)) if all(of in SIMPLE for of in types) else None
    return None


def _text(numbers: Iterable[float]) -> str:
    return repr(list(numbers))


def stacked(outputs: Sequence[Outputs]) -> Outputs:
    """Return the outputs of several calls as those of one."""
    arrays = [part for part in outputs if isinstance(part, np.ndarray)]
    if len(arrays) == len(outputs) and len({(part.shape[1:], part.dtype) for part in arrays}) == 1:
        return np.concatenate(arrays)
    return [output for part in outputs for output in part]
