"""Noise in other shapes: its entries, and how they are laid out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from auditdp.tracing.draws import Term
from auditdp.tracing.linear_forms import Form, with_law
from auditdp.tracing.plain_values import ndim, placed, shape_of, size_of

MOST_SUMMED = 64
"""Entries that are summed as draws, at most."""


class ShapedForm(Form):
    """A linear form of draws whose entries can be taken and laid out as those of an array."""

    __slots__ = ()

    def shaped(self, change: Callable[[Any], Any]) -> Any:
        """Return it with its entries laid out as a function lays out those of an array."""
        if self.settled is not None:
            settled = self.settled[0]
            return change(
                settled if hasattr(settled, "reshape") else np.asarray(settled)
            )
        shape, terms = shape_of(self.value), []
        for term in self.terms:
            index = change(np.broadcast_to(term.index, shape))
            index = int(index) if ndim(index) == 0 else index
            factor = (
                term.factor
                if ndim(term.factor) == 0
                else change(np.broadcast_to(term.factor, shape))
            )
            terms.append(Term(with_law(term.draw, change, shape), index, factor))
        offset = (
            self.offset
            if self.offset is None or not shape
            else change(np.broadcast_to(self.offset, shape))
        )
        value = self.value if hasattr(self.value, "reshape") else np.asarray(self.value)
        return type(self)(self.run, change(value), tuple(terms), offset, self.site)

    def laid(self, change: Callable[[Any], Any]) -> Any:
        """Return it in one part or in several, as a function lays entries out."""
        parts = change(self.value)
        if not isinstance(parts, list | tuple):
            return self.shaped(change)
        return type(parts)(
            self.shaped(partial(_part_of, change, k)) for k in range(len(parts))
        )

    def copied(self, value: Any) -> Any:
        """Return the same noise as another type."""
        return type(self)(self.run, value, self.terms, self.offset, self.site)

    def __getitem__(self, key: Any) -> Any:
        key = key.settle("is an index") if isinstance(key, Form) else key
        return self.shaped(lambda array: array[placed(key, array)])

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self.value)))

    def reshape(self, *shape: Any, **keywords: Any) -> Any:
        """Return it in another shape."""
        return self.shaped(lambda array: array.reshape(*shape, **keywords))

    def ravel(self) -> Any:
        """Return it flat."""
        return self.shaped(lambda array: array.ravel())

    flatten = ravel

    def squeeze(self, *arguments: Any, **keywords: Any) -> Any:
        """Return it without axes of one entry."""
        return self.shaped(lambda array: array.squeeze(*arguments, **keywords))

    def transpose(self, *axes: Any) -> Any:
        """Return it with other axes."""
        return self.shaped(lambda array: array.transpose(*axes))

    @property
    def T(self) -> Any:  # noqa: N802
        """Return it transposed."""
        return self.shaped(lambda array: array.T)

    def copy(self) -> Any:
        """Return the same noise in memory of its own."""
        return (
            self.settled[0].copy()
            if self.settled is not None
            else self.copied(np.array(self.value)[()])
        )

    def item(self, *arguments: Any) -> Any:
        """Return the only entry."""
        if self.settled is None and size_of(self.value) == 1 and not arguments:
            found = self.shaped(lambda array: array.reshape(()))
            found.value = (
                self.value.item() if hasattr(self.value, "item") else self.value
            )
            return found
        return self.settle("is used otherwise").item(*arguments)

    def tolist(self) -> Any:
        """Return its entries as a list."""
        if self.settled is None and ndim(self.value) == 1:
            return [entry.item() for entry in self]
        return self.settle("is used otherwise").tolist()

    def sum(self, *arguments: Any, **keywords: Any) -> Any:
        """Return the sum of the entries."""
        of_all = self.settled is None and not arguments and not keywords
        if of_all and ndim(self.value) == 1 and len(self.value) <= MOST_SUMMED:
            terms = tuple(
                term for k in range(len(self.value)) for term in self[k].terms
            )
            offset = (
                None
                if self.offset is None
                else np.broadcast_to(self.offset, shape_of(self.value)).sum()
            )
            return type(self)(self.run, self.value.sum(), terms, offset)
        from auditdp.tracing.array_functions import through

        found = through(type(self.value).sum, (self, *arguments), keywords)
        return (
            self.settle("is summed").sum(*arguments, **keywords)
            if found is None
            else found
        )


def _part_of(change: Callable[[Any], Any], number: int, array: Any) -> Any:
    return change(array)[number]
