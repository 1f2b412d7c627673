"""Neighbours among populations of records whose entries are some of a few values: all of them can be listed.

Neighbours among records of named fields, in a dict or an object: one field changes, or any of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product, zip_longest
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from auditdp.adjacency import strategies as st
from auditdp.adjacency.adjacency import (
    EVERY,
    MAX_EXHAUSTIVE,
    Pair,
    different,
    places,
    sides,
)
from auditdp.adjacency.corner_cases import (
    Domain,
    at_limits,
    ends,
    values,
    with_extremes,
)
from auditdp.errors import AdjacencyError
from auditdp.mechanism.protocol import brief, identity_key

MOST_NAMED = 12
"""Values that the name spells out."""
NUMBERS = (int, float, np.integer, np.floating)


@dataclass(frozen=True)
class Records:
    """Matrices of shape (users, dimension), of which one line is replaced; each entry is one of some values.

    They are float64 where the values are numbers, and arrays of text where they are texts.

    Args:
        users: Number of lines, >= 1.
        values: What each entry may be, the whole of its domain, ascending: at least two numbers, or texts. For anything
            else, give ``Rows`` a strategy.
        dimension: Entries of a line, >= 1.

    Raises:
        AdjacencyError: If an argument is out of range.

    >>> Records(2, (0, 1)).name
    'one of 2 records replaced (1 feature of 0, 1)'
    """

    users: int
    values: Sequence[float] | Sequence[str]
    dimension: int = 1

    def __post_init__(self) -> None:
        if self.users < 1 or self.dimension < 1:
            raise AdjacencyError(
                f"Records: expected users >= 1 and dimension >= 1, got {self.users!r} and {self.dimension!r}"
            )
        if not any(
            all(isinstance(value, kind) for value in self.values)
            for kind in (NUMBERS, str)
        ):
            raise AdjacencyError(
                f"Records: expected values, all numbers or all texts, got {brief(list(self.values))}; for rows of "
                "anything else give Rows(strategy, change='replace'), with a Hypothesis strategy of one row"
            )
        if len(self.values) < 2 or list(self.values) != sorted(set(self.values)):  # type: ignore[type-var]
            raise AdjacencyError(
                f"Records: expected at least two values, ascending, got {list(self.values)!r}"
            )

    @property
    def _domain(self) -> NDArray[Any]:
        texts = isinstance(self.values[0], str)
        return np.array(self.values, None if texts else np.float64)

    @property
    def name(self) -> str:
        """How many records, of how many entries of what domain."""
        named = [
            value if isinstance(value, str) else f"{value:g}" for value in self.values
        ]
        domain = ", ".join(
            named if len(named) <= MOST_NAMED else [*named[:2], "…", named[-1]]
        )
        features = "1 feature" if self.dimension == 1 else f"{self.dimension} features"
        return f"one of {self.users} records replaced ({features} of {domain})"

    def check(self, pair: Pair) -> None:
        """Raise unless both are such matrices and differ in one line."""
        for which, data in sides(pair):
            if (
                np.shape(data) != (self.users, self.dimension)
                or not np.isin(data, self._domain).all()
            ):
                raise AdjacencyError(
                    f"{self.name}: {which} is not such a population: {brief(data)}"
                )
        if (differ := int((pair.data != pair.neighbour).any(axis=1).sum())) != 1:
            raise AdjacencyError(
                f"{self.name}: the inputs differ in {differ} records, expected one: {pair}"
            )

    def pairs(self) -> list[Pair]:
        """Return the last record moved from end to end, with all others in the middle, at one end, at the other."""
        values = self._domain
        ends = (values[len(values) // 2], values[0], values[-1])
        low, high = (
            np.full((1, self.dimension), values[k], values.dtype) for k in (0, -1)
        )
        found = []
        for end in ends if self.users > 1 else ends[:1]:
            rest = np.full((self.users - 1, self.dimension), end, values.dtype)
            found.append(
                Pair(np.concatenate([rest, high]), np.concatenate([rest, low]))
            )
        return found

    def corner_cases(self) -> list[Pair]:
        """Return every record changed, and one of three among extremes, ties, boundary numbers, and just below a limit."""
        values, size = self._domain, self.users
        found: list[tuple[Sequence[Any], int, Any]] = []
        low, high, wide = self.values[0], self.values[-1], size * self.dimension
        found += [([low] * size, place, high) for place in range(min(size, EVERY))]
        alike = [low, high, *at_limits(self.values)]
        for place, _ in places(size):
            found += [
                ([rest] * size, place, other)
                for rest in (low, high)
                for other in alike[:MOST_NAMED]
            ]
        found += [([low] * size, size - 1, value) for value in alike]
        if (domain := Domain.listing(self.values)) is not None:
            for limit in domain.limits(wide):
                for other in (high, domain.at_most(limit - 1)):
                    below = domain.summing((limit - 1) / self.dimension, size)
                    found += [(below, size - 1, other), (below[::-1], 0, other)]

        def pair(rows: Sequence[Any], place: int, other: Any) -> Pair:
            both = [*rows[:place], other, *rows[place + 1 :]], rows
            data, neighbour = (
                np.repeat(np.array(x, values.dtype)[:, None], self.dimension, axis=1)
                for x in both
            )
            return Pair(data, neighbour, "corner case")

        return different(pair(*case) for case in found)

    def exhaustive(self) -> list[Pair] | None:
        """Return every unordered pair, or None where there are too many."""
        size, dtype, records = (
            self.users,
            self._domain.dtype,
            list(product(self.values, repeat=self.dimension)),
        )
        if len(records) ** size * size * (len(records) - 1) > 2 * MAX_EXHAUSTIVE:
            return None
        return [
            Pair(np.array(a, dtype), np.array([*a[:i], b, *a[i + 1 :]], dtype))
            for a in product(records, repeat=size)
            for i in range(size)
            for b in records
            if b < a[i]
        ]

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return matrices that differ in one line; the simplest have the least values."""

        @st.composite
        def pairs(draw: st.DrawFn) -> Pair:
            entry = st.integers(0, len(self.values) - 1)
            record = st.lists(entry, min_size=self.dimension, max_size=self.dimension)
            places = [draw(record) for _ in range(self.users)]
            who, other = draw(st.integers(0, self.users - 1)), draw(record)
            if other == places[who]:
                other = [(other[0] + 1) % len(self.values), *other[1:]]
            neighbour = [*places[:who], other, *places[who + 1 :]]
            values = self._domain
            return Pair(values[np.array(neighbour)], values[np.array(places)])

        return pairs()


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
        if not self.fields or not all(
            isinstance(field, st.SearchStrategy) for field in self.fields.values()
        ):
            raise AdjacencyError(
                f"Fields: expected fields, a Hypothesis strategy by name, got {brief(self.fields)}"
            )
        if self.change not in ("one", "any"):
            raise AdjacencyError(
                f"Fields: expected change='one' or 'any', got {self.change!r}"
            )
        if not isinstance(self.into, type):
            raise AdjacencyError(
                f"Fields: expected into, dict or a class that takes the fields, got {self.into!r}"
            )

    @property
    def name(self) -> str:
        """The convention and the fields."""
        what = (
            "one field of a record changes"
            if self.change == "one"
            else "value LDP (any fields of a record change)"
        )
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
            found = (
                data
                if self.into is dict
                else {name: getattr(data, name) for name in self.fields}
            )
        except AttributeError:
            found = None
        if (
            not isinstance(data, self.into)
            or found is None
            or found.keys() != self.fields.keys()
        ):
            raise AdjacencyError(
                f"{self.name}: {which} is not such a record: {brief(data)}"
            )
        return {name: identity_key(value) for name, value in found.items()}

    def _pair(
        self, base: Mapping[str, Any], changes: Mapping[str, Any], name: str = ""
    ) -> Pair:
        return Pair(self.into(**{**base, **changes}), self.into(**base), name)

    @cached_property
    def _ends(self) -> tuple[dict[str, Any], dict[str, Any]]:
        both = {name: ends(field) for name, field in self.fields.items()}
        return {name: low for name, (low, _) in both.items()}, {
            name: high for name, (_, high) in both.items()
        }

    def pairs(self) -> list[Pair]:
        """Return every field changed from end to end where one changes, at most six of them; else all, and the first."""
        low, high = self._ends
        single = [
            self._pair(low, {name: high[name]}, name)
            for name in list(self.fields)[:MOST_LISTED]
        ]
        return different(
            single
            if self.change == "one"
            else [self._pair(low, high, "all fields"), *single[:1]]
        )

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
            self._pair(
                {**high, name: low[name]}, {name: high[name]}, f"corner case: {name}"
            )
            for name in self.fields
        ]
        crossed = [
            self._pair(
                {**base, name: low[name], other: value},
                {name: high[name]},
                f"corner case: {name}, {other}",
            )
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
                    single.append(
                        self._pair(base, {name: value}, f"corner case: {name}")
                    )
                    single.append(
                        self._pair(
                            {**base, name: before},
                            {name: value},
                            f"corner case: {name}",
                        )
                    )
        by_turns = (
            pair
            for two in zip_longest(crossed, single)
            for pair in two
            if pair is not None
        )
        return different([*found, *by_turns])

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return two records of any values; the simplest have simple ones."""
        return self._generated(dict(self.fields))

    def wide(self) -> st.SearchStrategy[Pair]:
        """Return two records with many of the values at which code breaks."""
        return self._generated(
            {name: with_extremes(field) for name, field in self.fields.items()}
        )

    def _generated(
        self, fields: dict[str, st.SearchStrategy[Any]]
    ) -> st.SearchStrategy[Pair]:
        @st.composite
        def pairs(draw: st.DrawFn) -> Pair:
            base = {name: draw(field) for name, field in fields.items()}
            several = self.change == "any" and draw(st.booleans())
            changing = (
                list(fields) if several else [draw(st.sampled_from(list(fields)))]
            )
            changes = {name: draw(fields[name]) for name in changing}
            if all(
                identity_key(base[name]) == identity_key(changes[name])
                for name in changing
            ):
                st.reject()
            return self._pair(base, changes)

        return pairs()
