"""Neighbours among values: any two of a domain, or pairs as a user gives them.

Those pairs of an adjacency that have so many records, for a claim that depends on how many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from auditdp.adjacency import strategies as st
from auditdp.adjacency.adjacency import Adjacency, Pair, different, offers, sides
from auditdp.adjacency.corner_cases import at_limits, with_extremes
from auditdp.adjacency.pair_search import first_values
from auditdp.errors import AdjacencyError
from auditdp.mechanism.protocol import brief, identity_key

CORNERS = 40
"""Corner cases that are taken of a strategy of pairs."""


@dataclass(frozen=True)
class AnyValues:
    """Local DP over a value: any two different values of a domain are neighbours.

    Args:
        values: The values that the audit plays: those of a finite domain, or a grid of a larger one.
        finite: Whether ``values`` is the whole domain; only then are all of its pairs all neighbours. It has to be declared
            where a value holds floating-point numbers, which are points of a continuum; labels, bits and the like are taken
            to be all there are unless it is False.
        label: What reports call it, such as 'label LDP'.
    """

    values: Sequence[Any]
    finite: bool | None = None
    label: str = "value LDP (any two values)"
    _by_key: dict[Any, Any] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        self._by_key.update({identity_key(value): value for value in self.values})
        if len(self._by_key) < 2:
            raise AdjacencyError(
                f"AnyValues: expected at least two different values, got {list(self.values)!r}"
            )

    @property
    def name(self) -> str:
        """The adjacency and how many values there are."""
        return f"{self.label}, {'' if self.whole else 'at '}{len(self.values)} values"

    @property
    def whole(self) -> bool:
        """Whether the values are the whole domain."""
        return (
            not any(map(_holds_floats, self.values))
            if self.finite is None
            else self.finite
        )

    @property
    def remedy(self) -> str:
        """What to declare so that all pairs can be enumerated; empty where they can be."""
        return (
            ""
            if self.whole
            else "give AnyValues(..., finite=True) if these values are the whole domain"
        )

    def check(self, pair: Pair) -> None:
        """Raise unless both are values of the domain and differ."""
        keys = [identity_key(value) for _, value in sides(pair)]
        for key, (_, value) in zip(keys, sides(pair), strict=True):
            if key not in self._by_key:
                raise AdjacencyError(
                    f"{self.name}: {brief(value)} is not one of its values"
                )
        if keys[0] == keys[1]:
            raise AdjacencyError(
                f"{self.name}: the two values are equal: {brief(pair.data)}"
            )

    def _all(self) -> list[Pair]:
        values = list(self._by_key.values())
        return [Pair(b, a) for a, b in combinations(values, 2)]

    def pairs(self) -> list[Pair]:
        """Return the two ends first, then the other pairs, at most 16."""
        values = list(self._by_key.values())
        ends = Pair(values[-1], values[0])
        rest = [
            p
            for p in self._all()
            if not (p.data is ends.data and p.neighbour is ends.neighbour)
        ]
        return [ends, *rest][:16]

    def corner_cases(self) -> list[Pair]:
        """Return, of numbers, those at which code breaks against the one before, and against both ends."""
        numbers = [x for x in self.values if isinstance(x, int | float | np.number)]
        if len(numbers) < 3 or len(numbers) < len(self.values):
            return []
        ordered = sorted(numbers)
        places = {ordered.index(x) for x in at_limits(ordered)}
        found = [
            Pair(ordered[k], ordered[k - 1], "corner case") for k in sorted(places) if k
        ]
        found += [
            Pair(ordered[k], end, "corner case")
            for k in sorted(places)
            for end in (ordered[0], ordered[-1])
        ]
        return different(found)

    def exhaustive(self) -> list[Pair] | None:
        """Return all pairs where the values are the whole domain and not too many."""
        return self._all() if self.whole and len(self._by_key) <= 200 else None

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return any two different values."""
        values = list(self._by_key.values())
        index = st.lists(
            st.integers(0, len(values) - 1), min_size=2, max_size=2, unique=True
        )
        return index.map(lambda ij: Pair(values[ij[0]], values[ij[1]]))


def _holds_floats(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(map(_holds_floats, value))
    return (
        np.asarray(value).dtype.kind in "fc"
        if isinstance(value, np.ndarray | np.generic | float)
        else False
    )


@dataclass(frozen=True)
class Neighbours:
    """Pairs as a user gives them, with the user's own test of adjacency if there is one, and a strategy that makes more.

    Args:
        given: The pairs (data, neighbour) to play.
        relation: ``relation(a, b) -> bool``; without it the pairs are taken at the user's word, and reports say so.
        label: What reports call the adjacency.
        search: A Hypothesis strategy of further pairs (data, neighbour), which are searched for one that shows more than
            those given, and for a smaller one that shows a violation. Pairs that the relation refuses are left out.
        unsearched: Why no others are looked for, where that was wanted.

    Raises:
        AdjacencyError: If there is no pair, or something given is none.
    """

    given: Sequence[Any]
    relation: Callable[[Any, Any], bool] | None = None
    label: str = "pairs as given"
    search: st.SearchStrategy[Any] | None = None
    unsearched: str = ""

    def __post_init__(self) -> None:
        if not len(self.given):
            raise AdjacencyError(
                "Neighbours: expected at least one pair of neighbouring inputs, got none"
            )
        if self.search is not None and not isinstance(self.search, st.SearchStrategy):
            raise AdjacencyError(
                f"Neighbours: expected search, a Hypothesis strategy of pairs (data, neighbour), got {brief(self.search)}"
            )
        self.pairs()

    @property
    def name(self) -> str:
        """The label, and whether anybody checks it."""
        return (
            self.label
            if self.relation is not None
            else f"{self.label} (adjacency not checked)"
        )

    def check(self, pair: Pair) -> None:
        """Raise if the user's relation says no."""
        if self.relation is not None and not self.relation(pair.data, pair.neighbour):
            raise AdjacencyError(
                f"{self.label}: not neighbours under the given relation: {pair}"
            )

    def pairs(self) -> list[Pair]:
        """Return the pairs in the order given."""
        return [_as_pair(item) for item in self.given]

    def exhaustive(self) -> None:
        """Return None: nobody said that these are all pairs."""

    def corner_cases(self) -> list[Pair]:
        """Return the first pairs that the strategy of further pairs generates, where there is one."""
        if self.search is None:
            return []
        return different(
            first_values(with_extremes(self.search).map(_as_pair), CORNERS)
        )

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return further pairs where a strategy gives them, else one of the given pairs in either order."""
        if self.search is not None:
            return self.search.map(_as_pair)
        return st.sampled_from(
            [p for pair in self.pairs() for p in (pair, pair.swapped())]
        )


def _as_pair(item: Any) -> Pair:
    if isinstance(item, Pair):
        return item
    if not (isinstance(item, tuple | list) and len(item) == 2):
        raise AdjacencyError(
            f"Neighbours: expected pairs (data, neighbour), got {brief(item)}"
        )
    return Pair(item[0], item[1])


def records(pair: Pair) -> int:
    """Return how many records a pair has: the length of the smaller input.

    Raises:
        AdjacencyError: If an input has no length.
    """
    try:
        return min(len(pair.data), len(pair.neighbour))
    except TypeError:
        raise AdjacencyError(
            f"expected two inputs with a number of records, len(data), got {pair}"
        ) from None


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
            raise AdjacencyError(
                f"{self.name}: the smaller input has {records(pair):,} records: {brief(pair)}"
            )

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
