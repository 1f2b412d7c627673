"""The adjacencies of matrices over a finite domain, and of records of named fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise, product, zip_longest
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from auditdp.adjacency import strategies as st
from auditdp.adjacency.adjacency import (
    LIMITS,
    Pair,
    different,
    places,
    require_change,
    require_integer,
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
from auditdp.numerics.arrays import is_number

Record = dict[str, Any]


@dataclass(frozen=True)
class Records:
    """Matrices of shape (users, dimension); neighbours differ in one row.

    Each entry is one of the given values. A matrix is float64 if the values are
    numbers, and an array of text if they are texts.

    Args:
        users: Number of rows, >= 1.
        values: The whole domain of an entry, ascending: at least two numbers, or texts.
            For anything else, give ``Rows`` a strategy.
        dimension: Entries of a row, >= 1.

    Raises:
        AdjacencyError: If an argument is out of range.

    >>> Records(2, (0, 1)).name
    'one of 2 records replaced (1 feature of 0, 1)'
    """

    users: int
    values: Sequence[float] | Sequence[str]
    dimension: int = 1

    def __post_init__(self) -> None:
        require_integer(self, "users", 1)
        require_integer(self, "dimension", 1)
        are_numbers = all(is_number(value) for value in self.values)
        if not are_numbers and not all(isinstance(x, str) for x in self.values):
            raise AdjacencyError(
                "Records: expected values, all numbers or all texts, "
                f"got {brief(list(self.values))}; for rows of anything else give "
                "Rows(strategy, change='replace'), with a Hypothesis strategy of one row"
            )
        ascending = all(a < b for a, b in pairwise(self.values))  # type: ignore[operator]
        if len(self.values) < 2 or not ascending:
            raise AdjacencyError(
                "Records: expected at least two values, ascending, "
                f"got {list(self.values)!r}"
            )

    @property
    def _domain(self) -> NDArray[Any]:
        texts = isinstance(self.values[0], str)
        return np.array(self.values, None if texts else np.float64)

    @property
    def name(self) -> str:
        """The number of rows, the number of entries in a row, and the values."""
        named = [f"{x:g}" if is_number(x) else str(x) for x in self.values]
        if len(named) > LIMITS.named_values:
            named[2:-1] = ["…"]
        features = "1 feature" if self.dimension == 1 else f"{self.dimension} features"
        return (
            f"one of {self.users} records replaced ({features} of {', '.join(named)})"
        )

    def check(self, pair: Pair) -> None:
        """Raise unless both are such matrices and differ in one row."""
        for which, data in sides(pair):
            has_shape = np.shape(data) == (self.users, self.dimension)
            if not has_shape or not np.isin(data, self._domain).all():
                raise AdjacencyError(
                    f"{self.name}: {which} is not such a population: {brief(data)}"
                )
        count = int((pair.data != pair.neighbour).any(axis=1).sum())
        if count != 1:
            raise AdjacencyError(
                f"{self.name}: the inputs differ in {count} records, "
                f"expected one: {pair}"
            )

    def _pair(
        self, entries: Sequence[Any], place: int, other: Any, name: str = ""
    ) -> Pair:
        """Return the pair in which the row at a place has another value.

        Args:
            entries: The value of each row of the neighbour. All entries of a row are
                equal.
            place: The index of the row that changes.
            other: The value of that row in the data.
            name: The name of the pair.
        """
        second = np.array(entries, self._domain.dtype)
        first = second.copy()
        first[place] = other
        data, neighbour = (
            np.repeat(column[:, None], self.dimension, axis=1)
            for column in (first, second)
        )
        return Pair(data, neighbour, name)

    def pairs(self) -> list[Pair]:
        """Return changes of the last row from the lowest to the highest value.

        All other rows have the same value.
        """
        values = self._domain
        rests = [values[len(values) // 2], values[0], values[-1]]
        if self.users == 1:
            rests = rests[:1]
        last = self.users - 1
        return [
            self._pair([*[rest] * last, values[0]], last, values[-1]) for rest in rests
        ]

    def corner_cases(self) -> list[Pair]:
        """Return changes of rows at different places to values at which code breaks.

        The other rows have the lowest or the highest value, or values whose sum is just
        below a limit of integers.
        """
        size = self.users
        low, high = self.values[0], self.values[-1]
        special = [low, high, *at_limits(self.values)]
        cases: list[tuple[Sequence[Any], int, Any]] = [
            ([low] * size, place, high)
            for place in range(min(size, LIMITS.changed_places))
        ]
        for place, _ in places(size):
            for rest, other in product((low, high), special[: LIMITS.named_values]):
                cases.append(([rest] * size, place, other))
        cases += [([low] * size, size - 1, other) for other in special]
        # Integers overflow where the sum of all entries crosses a limit.
        domain = Domain.listing(self.values)
        if domain is not None:
            for limit in domain.limits(size * self.dimension):
                below = domain.summing((limit - 1) / self.dimension, size)
                for other in (high, domain.at_most(limit - 1)):
                    cases += [(below, size - 1, other), (below[::-1], 0, other)]
        return different(self._pair(*case, "corner case") for case in cases)

    def exhaustive(self) -> list[Pair] | None:
        """Return every unordered pair, or None if there are too many."""
        dtype = self._domain.dtype
        records = list(product(self.values, repeat=self.dimension))
        ordered_pairs = len(records) ** self.users * self.users * (len(records) - 1)
        if ordered_pairs > 2 * LIMITS.exhaustive_pairs:
            return None
        return [
            Pair(np.array(a, dtype), np.array([*a[:i], b, *a[i + 1 :]], dtype))
            for a in product(records, repeat=self.users)
            for i in range(self.users)
            for b in records
            if b < a[i]
        ]

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return pairs that differ in one row; the simplest have low values."""

        @st.composite
        def pairs(draw: st.DrawFn) -> Pair:
            entry = st.integers(0, len(self.values) - 1)
            record = st.lists(entry, min_size=self.dimension, max_size=self.dimension)
            rows = [draw(record) for _ in range(self.users)]
            place = draw(st.integers(0, self.users - 1))
            other = draw(record)
            # The next value keeps the draw, which would otherwise be rejected.
            if other == rows[place]:
                other = [(other[0] + 1) % len(self.values), *other[1:]]
            first = [*rows[:place], other, *rows[place + 1 :]]
            return Pair(self._domain[np.array(first)], self._domain[np.array(rows)])

        return pairs()


@dataclass(frozen=True)
class Fields:
    """Records of named fields; two neighbours differ in one field, or in any fields.

    Change "any" is local DP: the record of one person becomes that of another. Change
    "one" protects each field by itself, which is a weaker promise. The name of the
    adjacency states the change.

    Args:
        fields: A Hypothesis strategy for every field, such as ``{"age": st.integers(0,
            120), "city": st.text()}``.
        change: "one" or "any".
        into: Type of an input: ``dict``, or a class that takes the fields by name and
            has them as attributes, such as a dataclass.

    Raises:
        AdjacencyError: If an argument is out of range.
    """

    fields: Mapping[str, st.SearchStrategy[Any]]
    change: Literal["one", "any"]
    into: type = dict

    def __post_init__(self) -> None:
        are_strategies = all(
            isinstance(field, st.SearchStrategy) for field in self.fields.values()
        )
        if not self.fields or not are_strategies:
            raise AdjacencyError(
                "Fields: expected fields, a Hypothesis strategy by name, "
                f"got {brief(self.fields)}"
            )
        require_change(self, "one", "any")
        if not isinstance(self.into, type):
            raise AdjacencyError(
                "Fields: expected into, dict or a class that takes the fields, "
                f"got {self.into!r}"
            )

    @property
    def name(self) -> str:
        """The change, the type of a record and the names of its fields."""
        what = {
            "one": "one field of a record changes",
            "any": "value LDP (any fields of a record change)",
        }
        names = ", ".join(self.fields)
        return f"{what[self.change]}, {self.into.__name__} of {names}"

    def check(self, pair: Pair) -> None:
        """Raise unless both are such records and differ as the adjacency allows.

        The values are not compared with the strategies.
        """
        a, b = (self._keys(which, data) for which, data in sides(pair))
        count = sum(a[name] != b[name] for name in self.fields)
        if count == 0 or (self.change == "one" and count > 1):
            expected = "exactly" if self.change == "one" else "at least"
            raise AdjacencyError(
                f"{self.name}: the records differ in {count} fields, "
                f"expected {expected} one: {pair}"
            )

    def _keys(self, which: str, data: Any) -> Record:
        """Return the identity keys of the fields of an input, after a check of it."""
        fields: Any = {}
        if isinstance(data, dict):
            fields = data
        elif all(hasattr(data, name) for name in self.fields):
            fields = {name: getattr(data, name) for name in self.fields}
        if not isinstance(data, self.into) or fields.keys() != self.fields.keys():
            raise AdjacencyError(
                f"{self.name}: {which} is not such a record: {brief(data)}"
            )
        return {name: identity_key(value) for name, value in fields.items()}

    def _pair(self, base: Record, changes: Record, name: str = "") -> Pair:
        return Pair(self.into(**base | changes), self.into(**base), name)

    @cached_property
    def _ends(self) -> tuple[Record, Record]:
        """The record of the lowest values, and the record of the highest values."""
        low, high = {}, {}
        for name, field in self.fields.items():
            low[name], high[name] = ends(field)
        return low, high

    def pairs(self) -> list[Pair]:
        """Return changes of fields from their low end to their high end.

        With "one", one field changes in each pair. With "any", all fields change in the
        first pair, and only the first field in the second.
        """
        low, high = self._ends
        single = [self._pair(low, {name: high[name]}, name) for name in self.fields]
        if self.change == "one":
            return different(single[: LIMITS.listed_fields])
        return different([self._pair(low, high, "all fields"), single[0]])

    def exhaustive(self) -> None:
        """Return None, because the values of a strategy cannot be counted."""

    def corner_cases(self) -> list[Pair]:
        """Return changes of every field to and between values at which code breaks.

        A field also changes from end to end beside each special value of another field,
        because code may treat a combination of values as a special case.
        """
        return list(self._corner_cases)

    @cached_property
    def _corner_cases(self) -> list[Pair]:
        low, high = self._ends
        whole_range, crossed, single = [], [], []
        for name, field in self.fields.items():
            text = f"corner case: {name}"
            to_high = {name: high[name]}
            # All other fields are high here, and low in the listed pairs.
            whole_range.append(self._pair(high | {name: low[name]}, to_high, text))
            for other, field_of_other in self.fields.items():
                if other == name:
                    continue
                special = values(field_of_other)[: LIMITS.listed_fields]
                for value, base in product(special, self._ends):
                    changed = base | {name: low[name], other: value}
                    crossed.append(self._pair(changed, to_high, f"{text}, {other}"))
            special = values(field)[: LIMITS.field_values]
            # Each special value is compared with the end, and with the special value
            # before it.
            for base in self._ends:
                for before, value in zip([base[name], *special], special, strict=False):
                    change = {name: value}
                    single.append(self._pair(base, change, text))
                    single.append(self._pair(base | {name: before}, change, text))
        crossed = crossed[: LIMITS.crossed_fields]
        interleaved = chain.from_iterable(zip_longest(crossed, single))
        return different([*whole_range, *filter(None, interleaved)])

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return pairs of records with any values; the simplest have simple values."""
        return self._generated(dict(self.fields))

    def wide(self) -> st.SearchStrategy[Pair]:
        """Return pairs of records with many of the values at which code breaks."""
        return self._generated(
            {name: with_extremes(field) for name, field in self.fields.items()}
        )

    def _generated(
        self, fields: dict[str, st.SearchStrategy[Any]]
    ) -> st.SearchStrategy[Pair]:
        @st.composite
        def pairs(draw: st.DrawFn) -> Pair:
            base = {name: draw(field) for name, field in fields.items()}
            names = list(fields)
            if self.change == "one" or not draw(st.booleans()):
                names = [draw(st.sampled_from(names))]
            changes = {name: draw(fields[name]) for name in names}
            # The drawn changes may equal the values that they replace.
            if identity_key(base | changes) == identity_key(base):
                st.reject()
            return self._pair(base, changes)

        return pairs()
