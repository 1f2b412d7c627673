"""Neighbours among populations of records whose entries are some of a few values: all of them can be listed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditdp.adjacency import strategies as st
from auditdp.adjacency.base import EVERY, MAX_EXHAUSTIVE, Pair, different, places, sides
from auditdp.adjacency.extremes import Domain, at_limits
from auditdp.errors import AdjacencyError
from auditdp.mechanism.protocol import brief

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
        if not any(all(isinstance(value, kind) for value in self.values) for kind in (NUMBERS, str)):
            raise AdjacencyError(
                f"Records: expected values, all numbers or all texts, got {brief(list(self.values))}; for rows of "
                "anything else give Rows(strategy, change='replace'), with a Hypothesis strategy of one row"
            )
        if len(self.values) < 2 or list(self.values) != sorted(set(self.values)):  # type: ignore[type-var]
            raise AdjacencyError(f"Records: expected at least two values, ascending, got {list(self.values)!r}")

    @property
    def _domain(self) -> NDArray[Any]:
        texts = isinstance(self.values[0], str)
        return np.array(self.values, None if texts else np.float64)

    @property
    def name(self) -> str:
        """How many records, of how many entries of what domain."""
        named = [value if isinstance(value, str) else f"{value:g}" for value in self.values]
        domain = ", ".join(named if len(named) <= MOST_NAMED else [*named[:2], "…", named[-1]])
        features = "1 feature" if self.dimension == 1 else f"{self.dimension} features"
        return f"one of {self.users} records replaced ({features} of {domain})"

    def check(self, pair: Pair) -> None:
        """Raise unless both are such matrices and differ in one line."""
        for which, data in sides(pair):
            if np.shape(data) != (self.users, self.dimension) or not np.isin(data, self._domain).all():
                raise AdjacencyError(f"{self.name}: {which} is not such a population: {brief(data)}")
        if (differ := int((pair.data != pair.neighbour).any(axis=1).sum())) != 1:
            raise AdjacencyError(f"{self.name}: the inputs differ in {differ} records, expected one: {pair}")

    def pairs(self) -> list[Pair]:
        """Return the last record moved from end to end, with all others in the middle, at one end, at the other."""
        values = self._domain
        ends = (values[len(values) // 2], values[0], values[-1])
        low, high = (np.full((1, self.dimension), values[k], values.dtype) for k in (0, -1))
        found = []
        for end in ends if self.users > 1 else ends[:1]:
            rest = np.full((self.users - 1, self.dimension), end, values.dtype)
            found.append(Pair(np.concatenate([rest, high]), np.concatenate([rest, low])))
        return found

    def corner_cases(self) -> list[Pair]:
        """Return every record changed, and one of three among extremes, ties, boundary numbers, and just below a limit."""
        values, size = self._domain, self.users
        found: list[tuple[Sequence[Any], int, Any]] = []
        low, high, wide = self.values[0], self.values[-1], size * self.dimension
        found += [([low] * size, place, high) for place in range(min(size, EVERY))]
        alike = [low, high, *at_limits(self.values)]
        for place, _ in places(size):
            found += [([rest] * size, place, other) for rest in (low, high) for other in alike[:MOST_NAMED]]
        found += [([low] * size, size - 1, value) for value in alike]
        if (domain := Domain.listing(self.values)) is not None:
            for limit in domain.limits(wide):
                for other in (high, domain.at_most(limit - 1)):
                    below = domain.summing((limit - 1) / self.dimension, size)
                    found += [(below, size - 1, other), (below[::-1], 0, other)]

        def pair(rows: Sequence[Any], place: int, other: Any) -> Pair:
            both = [*rows[:place], other, *rows[place + 1 :]], rows
            data, neighbour = (np.repeat(np.array(x, values.dtype)[:, None], self.dimension, axis=1) for x in both)
            return Pair(data, neighbour, "corner case")

        return different(pair(*case) for case in found)

    def exhaustive(self) -> list[Pair] | None:
        """Return every unordered pair, or None where there are too many."""
        size, dtype, records = self.users, self._domain.dtype, list(product(self.values, repeat=self.dimension))
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
