"""Which of some canaries are in the training data: neighbours differ in one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from auditdp.adjacency import strategies as st
from auditdp.adjacency.base import MAX_EXHAUSTIVE, Pair, places, sides
from auditdp.errors import AdjacencyError
from auditdp.mechanism.protocol import brief

Included = NDArray[np.bool_]
"""Which canaries are in the data, shape (count,)."""


@dataclass(frozen=True)
class Canaries:
    """Records of which each may be in the data or not, beside others that always are; neighbours differ in one of them.

    An input is a bool array of shape (count,). What a canary is, the mechanism knows: a record, a node with its
    edges, an edge. Adding or removing one of them, whatever others are there, has to be a step between neighbours in the
    claim's sense.

    Source: Steinke, Nasr & Jagielski (2023), arXiv:2305.08846v1, Section 2.

    Args:
        count: How many there are, >= 1.

    Raises:
        AdjacencyError: If the count is out of range.

    >>> Canaries(3).pairs()[0].data
    array([False, False,  True])
    """

    count: int

    def __post_init__(self) -> None:
        if isinstance(self.count, bool) or not isinstance(self.count, int | np.integer) or self.count < 1:
            raise AdjacencyError(f"Canaries: expected count, an integer >= 1, got {self.count!r}")

    @property
    def name(self) -> str:
        """The adjacency and how many there are."""
        return "1 canary, in or out" if self.count == 1 else f"one of {self.count:,} canaries added or removed"

    def check(self, pair: Pair) -> None:
        """Raise unless both say which canaries are in, and differ in one."""
        for which, data in sides(pair):
            if np.shape(data) != (self.count,) or np.asarray(data).dtype != bool:
                raise AdjacencyError(f"{self.name}: expected {which}, bool of shape ({self.count},), got {brief(data)}")
        if (differ := int(np.sum(pair.data != pair.neighbour))) != 1:
            raise AdjacencyError(f"{self.name}: the inputs differ in {differ} canaries, expected exactly one: {pair}")

    def _pair(self, rest: Sequence[bool] | Included, place: int, name: str = "") -> Pair:
        included, excluded = np.array(rest, bool), np.array(rest, bool)
        included[place], excluded[place] = True, False
        return Pair(included, excluded, name)

    def pairs(self) -> list[Pair]:
        """Return the last, the first and the middle canary in or out, without any other and with all of them."""
        rests = [False, True] if self.count > 1 else [False]
        return [self._pair([rest] * self.count, place) for rest in rests for place, _ in places(self.count)]

    def exhaustive(self) -> list[Pair] | None:
        """Return every unordered pair, or None where there are too many."""
        if self.count > 20 or self.count * 2 ** (self.count - 1) > MAX_EXHAUSTIVE:
            return None
        everything = product((False, True), repeat=self.count)
        return [self._pair(rest, place) for rest in everything for place in range(self.count) if not rest[place]]

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return pairs of any canaries; the simplest has one."""

        def build(rest: list[bool], place: int) -> Pair:
            pair = self._pair(rest, place)
            return pair.swapped() if rest[place] else pair

        flags = st.lists(st.booleans(), min_size=self.count, max_size=self.count)
        return st.builds(build, flags, st.integers(0, self.count - 1))
