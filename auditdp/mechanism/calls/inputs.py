"""Inputs that stay what was declared: user code gets copies, and one that comes back changed is an error.

Every call of a mechanism is a run on the declared input. Code that changes its input in place (``x += noise``) runs the next
call on something else: the audit would then be about inputs that nobody declared.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np

from auditdp.errors import MechanismError

PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic)
Different: TypeAlias = tuple[str, Any, Any]
"""A place in two values, such as '.edges[3]', and the parts that they have there."""
UNKNOWN_TO_NUMPY = ("torch.bfloat16", "torch.float8")
"""How the names of torch's types of numbers begin that numpy has none for."""


class Inputs:
    """Lends a copy of every input to user code, and compares it with the original when it comes back.

    Attributes:
        kept: Types of inputs that cannot be copied. They are lent themselves, so that a change of them is not noticed.
    """

    def __init__(self) -> None:
        self._lent: dict[
            int, tuple[Any, Any]
        ] = {}  # the originals are kept alive, so that an id stays its object's own
        self.kept: set[str] = set()

    @contextmanager
    def lent(self, name: str, *inputs: Any) -> Iterator[tuple[Any, ...]]:
        """Give out the copies of some inputs.

        Raises:
            MechanismError: If a copy was changed; the next call gets a fresh one.
        """
        copies = tuple(self._copy(data) for data in inputs)
        try:
            yield copies
        finally:
            changes = [
                difference(data, lent)
                for data, lent in zip(inputs, copies, strict=True)
            ]
            for data, change in zip(inputs, changes, strict=True):
                if change is not None:
                    del self._lent[id(data)]
        for change in changes:
            if change is not None:
                raise MechanismError(
                    f"{name}: changes its input{change} in place, so that the next call runs on something that was not "
                    "declared; work on a copy, such as x = x.copy() or copy.deepcopy(x)"
                )

    def _copy(self, data: Any) -> Any:
        if isinstance(data, PLAIN):
            return data
        if id(data) not in self._lent:
            try:
                lent = copy.deepcopy(data)
            except Exception:  # whatever the objects of a user raise
                lent = data
                self.kept.add(type(data).__name__)
            self._lent[id(data)] = (data, lent)
        return self._lent[id(data)][1]


def difference(before: Any, after: Any, *, opaque: str | None = None) -> str | None:
    """Return where two values differ, such as '.edges[3]' ('' for the value itself), or None where they do not.

    Arrays, tables, sparse matrices, tensors, containers and plain values are compared by content; other objects by the
    attributes that ``before`` has, so that what an object remembers of its own value, such as a lazily made index, is no
    difference.

    ``opaque`` is returned for two different objects whose content cannot be seen.
    """
    found = _Comparison(opaque).of(before, after, "")
    return None if found is None else found[0]


def first_difference(before: Any, after: Any) -> Different | None:
    """Return the first place at which two values differ, and the parts that they have there; see ``difference``."""
    return _Comparison(None).of(before, after, "")


class _Comparison:
    """One comparison; remembers what it is inside of, since an object may hold itself."""

    def __init__(self, opaque: str | None) -> None:
        self.opaque = opaque
        self._inside: set[int] = set()

    def of(self, before: Any, after: Any, where: str) -> Different | None:
        if before is after or id(before) in self._inside:
            return None
        if type(before) is not type(after):
            return where, before, after
        if isinstance(before, PLAIN):
            return (
                None
                if before == after or (before != before and after != after)
                else (where, before, after)
            )
        self._inside.add(id(before))
        try:
            return self._content(before, after, where)
        finally:
            self._inside.discard(id(before))

    def _content(self, before: Any, after: Any, where: str) -> Different | None:
        here = where, before, after
        if isinstance(before, np.ndarray) and before.dtype != object:
            return None if _equal_arrays(before, after) else here
        if is_sparse(before):
            alike = (
                before.shape == after.shape
                and before.dtype == after.dtype
                and not (before != after).nnz
            )
            return None if alike else here
        if (array := of_tensor(before)) is not before:
            return None if _equal_arrays(array, of_tensor(after)) else here
        if callable(
            equals := getattr(before, "equals", None)
        ):  # a table of pandas or polars
            return None if equals(after) else here
        if isinstance(before, Mapping):
            return (
                self._items(before, after, where)
                if before.keys() == after.keys()
                else here
            )
        if isinstance(before, list | tuple | np.ndarray):
            if len(before) != len(after):
                return here
            if (
                isinstance(before, list | tuple)
                and all(type(item) in PLAIN for item in before)
                and before == after
            ):
                return None  # in one go: lists of numbers may be long
            return self._items(dict(enumerate(before)), dict(enumerate(after)), where)
        if held := attributes(before):
            others = attributes(after)
            found = (
                self.of(value, others.get(name), f"{where}.{name}")
                for name, value in held.items()
            )
            return next((place for place in found if place is not None), None)
        if type(before).__eq__ is object.__eq__:  # type: ignore[comparison-overlap]
            return None if self.opaque is None else (self.opaque, before, after)
        return None if before == after else here

    def _items(
        self, before: Mapping[Any, Any], after: Mapping[Any, Any], where: str
    ) -> Different | None:
        found = (
            self.of(value, after[key], f"{where}[{key!r}]")
            for key, value in before.items()
        )
        return next((place for place in found if place is not None), None)


def is_sparse(value: Any) -> bool:
    """Return whether a value is a sparse matrix or array of scipy, whose import takes longer than most audits need it."""
    return hasattr(value, "toarray") and hasattr(value, "nnz")


def of_tensor(value: Any) -> Any:
    """Return the array of torch's tensor or jax's array, which the harness does not import; anything else as it is."""
    if hasattr(value, "aval") and hasattr(value, "__array__"):
        return np.asarray(value)
    if not (hasattr(value, "detach") and hasattr(value, "numpy")):
        return value
    if str(value.layout) != "torch.strided":
        value = value.to_dense()
    if str(value.dtype).startswith(UNKNOWN_TO_NUMPY):
        value = value.float()
    return value.numpy(force=True)


def _equal_arrays(before: Any, after: Any) -> bool:
    if before.shape != after.shape or before.dtype != after.dtype:
        return False
    return bool(np.array_equal(before, after, equal_nan=before.dtype.kind in "fc"))


def attributes(value: Any) -> dict[str, Any]:
    """Return the attributes of an object, in its dictionary and in its slots."""
    slots = [
        name
        for kind in type(value).__mro__
        for name in np.atleast_1d(getattr(kind, "__slots__", []))
    ]
    return {
        str(name): getattr(value, name) for name in slots if hasattr(value, name)
    } | getattr(value, "__dict__", {})
