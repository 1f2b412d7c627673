"""Copies of inputs for user code, and the comparison that finds a changed input.

Every call of a mechanism has to be a run on the declared input. Code that changes its
input in place (``x += noise``) makes the next call run on another input. The audit
would then be about inputs that were never declared.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np

from auditdp.errors import MechanismError
from auditdp.mechanism.protocol import LITERALS

PLAIN = LITERALS
Different: TypeAlias = tuple[str, Any, Any]
"""A place at which two values differ, such as '.edges[3]', and their parts there."""


class Inputs:
    """Copies of inputs that are lent to user code and checked for changes.

    All calls on one input get the same copy.

    Attributes:
        kept: Names of the types of inputs that cannot be copied. Such inputs are lent
            themselves, and a change of them is not noticed.
    """

    def __init__(self) -> None:
        # The originals are kept alive, so that an id stays that of its object.
        self._lent: dict[int, tuple[Any, Any]] = {}
        self.kept: set[str] = set()

    @contextmanager
    def lent(self, name: str, *inputs: Any) -> Iterator[tuple[Any, ...]]:
        """Lend copies of inputs to the block, as a tuple, and check them at its end.

        Args:
            name: The name of the mechanism, for the error.
            inputs: The inputs.

        Raises:
            MechanismError: If a copy was changed. The next call gets a new copy.
        """
        copies = tuple(self._copy(data) for data in inputs)
        changes = []
        try:
            yield copies
        finally:
            for data, lent in zip(inputs, copies, strict=True):
                change = difference(data, lent)
                if change is not None:
                    changes.append(change)
                    self._lent.pop(id(data), None)
        if changes:
            raise MechanismError(
                f"{name}: changes its input{changes[0]} in place, so that the next call runs on something that was not "
                "declared; work on a copy, such as x = x.copy() or copy.deepcopy(x)"
            )

    def _copy(self, data: Any) -> Any:
        if isinstance(data, PLAIN):
            return data
        if id(data) not in self._lent:
            try:
                lent = copy.deepcopy(data)
            except Exception:
                # The objects of a user may raise anything.
                lent = data
                self.kept.add(type(data).__name__)
            self._lent[id(data)] = (data, lent)
        return self._lent[id(data)][1]


def difference(before: Any, after: Any, *, opaque: str | None = None) -> str | None:
    """Return the first place at which two values differ, such as '.edges[3]', if any.

    Arrays, tables, sparse matrices, tensors, containers and plain values are compared
    by content. Other objects are compared by the attributes that ``before`` has. So an
    attribute that an object computes and stores later, such as an index, is no
    difference.

    Args:
        before: A value.
        after: Another value.
        opaque: The place to return for two objects whose content cannot be read, or
            None to take them for equal.

    Returns:
        The place, '' for the whole value, or None if the values are equal.
    """
    found = _Comparison(opaque).of(before, after, "")
    return None if found is None else found[0]


def first_difference(before: Any, after: Any) -> Different | None:
    """Return the first place at which two values differ, with both parts, or None."""
    return _Comparison(None).of(before, after, "")


class _Comparison:
    """One comparison of two values; see ``difference``.

    It records the enclosing objects, since an object may contain itself.
    """

    def __init__(self, opaque: str | None) -> None:
        self.opaque = opaque
        self._inside: set[int] = set()

    def of(self, before: Any, after: Any, where: str) -> Different | None:
        if before is after or id(before) in self._inside:
            return None
        different = where, before, after
        if type(before) is not type(after):
            return different
        if isinstance(before, PLAIN):
            both_nan = before != before and after != after
            equal = before == after or both_nan
            return None if equal else different
        self._inside.add(id(before))
        try:
            return self._content(before, after, where)
        finally:
            self._inside.discard(id(before))

    def _content(self, before: Any, after: Any, where: str) -> Different | None:
        # The first rule that fits decides: arrays, tables, containers, then attributes.
        array = of_tensor(before)
        equals = getattr(before, "equals", None)
        if isinstance(array, np.ndarray) and array.dtype != object:
            equal = _equal_arrays(array, of_tensor(after))
        elif is_sparse(before):
            equal = before.shape == after.shape and before.dtype == after.dtype
            equal = equal and not (before != after).nnz
        elif callable(equals):
            # A table of pandas or polars.
            equal = equals(after)
        elif isinstance(before, Mapping):
            equal = before.keys() == after.keys()
            if equal:
                return self._items(before, after, where)
        elif isinstance(before, list | tuple | np.ndarray):
            equal = len(before) == len(after)
            if equal and not _plain_and_equal(before, after):
                items = dict(enumerate(before)), dict(enumerate(after))
                return self._items(*items, where)
        elif attributes(before):
            others = attributes(after)
            for name, value in attributes(before).items():
                found = self.of(value, others.get(name), f"{where}.{name}")
                if found is not None:
                    return found
            return None
        elif type(before).__eq__ is object.__eq__:  # type: ignore[comparison-overlap]
            # An object without attributes and without a comparison shows no content.
            return None if self.opaque is None else (self.opaque, before, after)
        else:
            equal = before == after
        return None if equal else (where, before, after)

    def _items(
        self, before: Mapping[Any, Any], after: Mapping[Any, Any], where: str
    ) -> Different | None:
        for key, value in before.items():
            found = self.of(value, after[key], f"{where}[{key!r}]")
            if found is not None:
                return found
        return None


def _plain_and_equal(before: Any, after: Any) -> bool:
    """Return True for equal sequences of plain values, by a fast comparison."""
    if isinstance(before, np.ndarray):
        return False
    return all(type(item) in PLAIN for item in before) and bool(before == after)


def is_sparse(value: Any) -> bool:
    """Return True if a value is a sparse matrix or array of scipy.

    Importing ``scipy.sparse`` for the test would take longer than most audits.
    """
    return hasattr(value, "toarray") and hasattr(value, "nnz")


def of_tensor(value: Any) -> Any:
    """Return the array of a tensor of torch or an array of jax, else the value itself.

    Neither library is imported here.
    """
    if hasattr(value, "aval") and hasattr(value, "__array__"):
        return np.asarray(value)
    if not (hasattr(value, "detach") and hasattr(value, "numpy")):
        return value
    if str(value.layout) != "torch.strided":
        value = value.to_dense()
    # numpy has no type for these numbers, which single precision holds.
    if str(value.dtype).startswith(("torch.bfloat16", "torch.float8")):
        value = value.float()
    return value.numpy(force=True)


def _equal_arrays(before: Any, after: Any) -> bool:
    if before.shape != after.shape or before.dtype != after.dtype:
        return False
    return bool(np.array_equal(before, after, equal_nan=before.dtype.kind in "fc"))


def attributes(value: Any) -> dict[str, Any]:
    """Return the attributes of an object by name, from its dictionary and its slots."""
    found = {}
    for kind in type(value).__mro__:
        for name in np.atleast_1d(getattr(kind, "__slots__", [])):
            if hasattr(value, name):
                found[str(name)] = getattr(value, name)
    return found | getattr(value, "__dict__", {})
