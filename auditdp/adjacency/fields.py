"""Neighbours among records of named fields, in a dict or an object: one field changes, or any of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any, Literal

from auditdp.adjacency import strategies as st
from auditdp.adjacency.base import Pair, different, sides
from auditdp.adjacency.extremes import ends, values, with_extremes
from auditdp.errors import AdjacencyError
from auditdp.mechanism.protocol import brief, identity_key

MOST_LISTED = 6
SINGLE_VALUES = 16
"""Values of a field at which code may break, each tried by itself."""
TOGETHER, MOST_TOGETHER = 6, 100
"""Values of a field that are tried with a change of another one, and how often that is done in all."""


@dataclass(frozen=True)
class Fields:
    """Records of named fields, of which two neighbours differ in one field, or in any.

    "any" is local DP: the record of one person becomes that of another. "one" protects each field by itself, which is less.
    The name says which is meant.

    Args:
        fields: A Hypothesis strategy for every field, such as ``{"age": st.integers(0, 120), "city": st.text()}``.
        change: "one" or "any".
        into: What an input is: ``dict``, or what takes the fields by name, such as a dataclass; they are its attributes.

    Raises:
        AdjacencyError: If an argument is out of range.
    """

    fields: Mapping[str, st.SearchStrategy[Any]]
    change: Literal["one", "any"]
    into: type = dict

    def __post_init__(self) -> None:
        if not self.fields or not all(isinstance(field, st.SearchStrategy) for field in self.fields.values()):
            raise AdjacencyError(f"Fields: expected fields, a Hypothesis strategy by name, got {brief(self.fields)}")
        if self.change not in ("one", "any"):
            raise AdjacencyError(f"Fields: expected change='one' or 'any', got {self.change!r}")
        if not isinstance(self.into, type):
            raise AdjacencyError(f"Fields: expected into, dict or a class that takes the fields, got {self.into!r}")

    @property
    def name(self) -> str:
        """The convention and the fields."""
        what = "one field of a record changes" if self.change == "one" else "value LDP (any fields of a record change)"
        return f"{what}, {self.into.__name__} of {', '.join(self.fields)}"

    def check(self, pair: Pair) -> None:
        """Raise unless both are such records and differ as the adjacency says; that values are generated is not checked."""
        a, b = (self._read(which, data) for which, data in sides(pair))
        differ = [name for name in self.fields if a[name] != b[name]]
        if not differ or (self.change == "one" and len(differ) > 1):
            expected = "exactly one" if self.change == "one" else "at least one"
            raise AdjacencyError(
                f"{self.name}: the records differ in {len(differ)} fields, expected {expected}: {pair}"
            )

    def _read(self, which: str, data: Any) -> dict[str, Any]:
        try:
            found = data if self.into is dict else {name: getattr(data, name) for name in self.fields}
        except AttributeError:
            found = None
        if not isinstance(data, self.into) or found is None or found.keys() != self.fields.keys():
            raise AdjacencyError(f"{self.name}: {which} is not such a record: {brief(data)}")
        return {name: identity_key(value) for name, value in found.items()}

    def _pair(self, base: Mapping[str, Any], changes: Mapping[str, Any], name: str = "") -> Pair:
        return Pair(self.into(**{**base, **changes}), self.into(**base), name)

    @cached_property
    def _ends(self) -> tuple[dict[str, Any], dict[str, Any]]:
        both = {name: ends(field) for name, field in self.fields.items()}
        return {name: low for name, (low, _) in both.items()}, {name: high for name, (_, high) in both.items()}

    def pairs(self) -> list[Pair]:
        """Return every field changed from end to end where one changes, at most six of them; else all, and the first."""
        low, high = self._ends
        single = [self._pair(low, {name: high[name]}, name) for name in list(self.fields)[:MOST_LISTED]]
        return different(single if self.change == "one" else [self._pair(low, high, "all fields"), *single[:1]])

    def exhaustive(self) -> None:
        """Return None: nobody counts the values of a strategy."""

    def corner_cases(self) -> list[Pair]:
        """Return, for every field, values at which code breaks against the end and the one before, others low or high.

        And every field from end to end with each value of one other: code may treat some combinations by themselves.
        """
        return list(self._corner_cases)

    @cached_property
    def _corner_cases(self) -> list[Pair]:
        low, high = self._ends
        found = [
            self._pair({**high, name: low[name]}, {name: high[name]}, f"corner case: {name}") for name in self.fields
        ]
        crossed = [
            self._pair({**base, name: low[name], other: value}, {name: high[name]}, f"corner case: {name}, {other}")
            for name in self.fields
            for other, field in self.fields.items()
            if other != name
            for value in values(field)[:TOGETHER]
            for base in self._ends
        ][:MOST_TOGETHER]
        single = []
        for name, field in self.fields.items():
            some = values(field)[:SINGLE_VALUES]
            for base in self._ends:
                for before, value in zip([base[name], *some], some, strict=False):
                    single.append(self._pair(base, {name: value}, f"corner case: {name}"))
                    single.append(self._pair({**base, name: before}, {name: value}, f"corner case: {name}"))
        by_turns = (pair for two in zip_longest(crossed, single) for pair in two if pair is not None)
        return different([*found, *by_turns])

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return two records of any values; the simplest have simple ones."""
        return self._generated(dict(self.fields))

    def wide(self) -> st.SearchStrategy[Pair]:
        """Return two records with many of the values at which code breaks."""
        return self._generated({name: with_extremes(field) for name, field in self.fields.items()})

    def _generated(self, fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Pair]:
        @st.composite
        def pairs(draw: st.DrawFn) -> Pair:
            base = {name: draw(field) for name, field in fields.items()}
            several = self.change == "any" and draw(st.booleans())
            changing = list(fields) if several else [draw(st.sampled_from(list(fields)))]
            changes = {name: draw(fields[name]) for name in changing}
            if all(identity_key(base[name]) == identity_key(changes[name]) for name in changing):
                st.reject()
            return self._pair(base, changes)

        return pairs()
