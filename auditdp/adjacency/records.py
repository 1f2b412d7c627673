"""Neighbours among populations of records: one record is replaced by another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from hypothesis import strategies as st

from auditdp.adjacency.base import MAX_EXHAUSTIVE, Pair, sides
from auditdp.errors import AdjacencyError
from auditdp.mechanism import brief


@dataclass(frozen=True)
class Records:
    """One record of a population is replaced: matrices of shape (users, dimension), float64, that differ in one row.

    Args:
        users: Number of records, >= 1.
        values: What each entry may be, the whole of its domain, ascending; at least two.
        dimension: Entries of a record, >= 1.

    Raises:
        AdjacencyError: If an argument is out of range.
    """

    users: int
    values: Sequence[float]
    dimension: int = 1

    def __post_init__(self) -> None:
        if self.users < 1 or self.dimension < 1:
            raise AdjacencyError(f"Records: expected users and dimension >= 1, got {self.users!r}, {self.dimension!r}")
        if len(self.values) < 2 or list(self.values) != sorted(set(self.values)):
            raise AdjacencyError(f"Records: expected at least two values, ascending, got {list(self.values)!r}")

    @property
    def name(self) -> str:
        """The adjacency and its domain."""
        domain = ", ".join(f"{value:g}" for value in self.values)
        features = "1 feature" if self.dimension == 1 else f"{self.dimension} features"
        return f"one of {self.users} records replaced ({features} of {domain})"

    def check(self, pair: Pair) -> None:
        """Raise unless both are such matrices and differ in exactly one row."""
        for which, data in sides(pair):
            if np.shape(data) != (self.users, self.dimension) or not np.isin(data, self.values).all():
                raise AdjacencyError(f"{self.name}: {which} is not such a population: {brief(data)}")
        if (differ := int((pair.data != pair.neighbour).any(axis=1).sum())) != 1:
            raise AdjacencyError(
                f"{self.name}: the populations differ in {differ} records, expected exactly one: {pair}"
            )

    def pairs(self) -> list[Pair]:
        """Return the last record moved from end to end, with all others in the middle, at one end, and at the other."""
        ends = (self.values[len(self.values) // 2], self.values[0], self.values[-1])
        low, high = (np.full((1, self.dimension), self.values[k], np.float64) for k in (0, -1))
        found = []
        for end in ends if self.users > 1 else ends[:1]:
            rest = np.full((self.users - 1, self.dimension), end, np.float64)
            found.append(Pair(np.concatenate([rest, high]), np.concatenate([rest, low])))
        return found

    def exhaustive(self) -> list[Pair] | None:
        """Return every unordered pair, or None where there are too many."""
        records = list(product(self.values, repeat=self.dimension))
        if len(records) ** self.users * self.users * (len(records) - 1) > 2 * MAX_EXHAUSTIVE:
            return None
        return [
            Pair(np.array(a, np.float64), np.array([*a[:i], b, *a[i + 1 :]], np.float64))
            for a in product(records, repeat=self.users)
            for i in range(self.users)
            for b in records
            if b < a[i]
        ]

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return populations that differ in one record; the simplest have the least values."""

        @st.composite
        def pairs(draw: st.DrawFn) -> Pair:
            entry = st.integers(0, len(self.values) - 1)
            record = st.lists(entry, min_size=self.dimension, max_size=self.dimension)
            places = [draw(record) for _ in range(self.users)]
            who, other = draw(st.integers(0, self.users - 1)), draw(record)
            if other == places[who]:
                other = [(other[0] + 1) % len(self.values), *other[1:]]
            neighbour = [*places[:who], other, *places[who + 1 :]]
            values = np.array(self.values, np.float64)
            return Pair(values[np.array(neighbour)], values[np.array(places)])

        return pairs()
