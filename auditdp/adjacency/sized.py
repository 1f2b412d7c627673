"""Those pairs of an adjacency that have so many records, for a claim that depends on how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from auditdp.adjacency import strategies as st
from auditdp.adjacency.base import Adjacency, Pair
from auditdp.adjacency.offers import offers
from auditdp.adjacency.values import Neighbours
from auditdp.errors import AdjacencyError
from auditdp.mechanism.protocol import brief


def records(pair: Pair) -> int:
    """Return how many records a pair has: the length of the smaller input.

    Raises:
        AdjacencyError: If an input has no length.
    """
    try:
        return min(len(pair.data), len(pair.neighbour))
    except TypeError:
        raise AdjacencyError(f"expected two inputs with a number of records, len(data), got {pair}") from None


def of_size(adjacency: Adjacency, size: int) -> Adjacency:
    """Return the pairs of an adjacency with so many records; those that it lists are known to have them."""
    if isinstance(adjacency, Neighbours) and adjacency.search is None:
        return replace(adjacency, label=f"{adjacency.label}, {_size_text(size)}")
    return OfSize(adjacency, size)


def _size_text(size: int) -> str:
    return f"n = {size:,} in the smaller input"


@dataclass(frozen=True)
class OfSize:
    """The pairs of an adjacency whose smaller input has a given number of records."""

    whole: Adjacency
    size: int

    @property
    def name(self) -> str:
        """The adjacency and the size."""
        return f"{self.whole.name}, {_size_text(self.size)}"

    @property
    def remedy(self) -> str:
        """What to declare so that all pairs can be enumerated; empty where they can be."""
        return offers(self.whole).remedy

    def check(self, pair: Pair) -> None:
        """Raise unless the pair is in the adjacency and has that size."""
        self.whole.check(pair)
        if records(pair) != self.size:
            raise AdjacencyError(f"{self.name}: the smaller input has {records(pair):,} records: {brief(pair)}")

    def pairs(self) -> list[Pair]:
        """Return the pairs that the game plays, smallest first."""
        return self._fitting(self.whole.pairs())

    def exhaustive(self) -> list[Pair] | None:
        """Return every unordered pair of that size, or None where there are too many."""
        every = self.whole.exhaustive()
        return None if every is None else self._fitting(every)

    def corner_cases(self) -> list[Pair]:
        """Return the corner cases of that size."""
        return self._fitting(offers(self.whole).corner_cases or [])

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return a strategy of pairs of that size."""
        generated = offers(self.whole).generated
        return st.nothing() if generated is None else generated.filter(self._fits)

    def wide(self) -> st.SearchStrategy[Pair]:
        """Return a strategy of pairs of that size which ``strategy()`` seldom or never generates."""
        wide = offers(self.whole).wide
        return self.strategy() if wide is None else wide.filter(self._fits)

    def _fits(self, pair: Pair) -> bool:
        return records(pair) == self.size

    def _fitting(self, pairs: Sequence[Pair]) -> list[Pair]:
        return [pair for pair in pairs if self._fits(pair)]
