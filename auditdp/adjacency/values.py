"""Adjacencies of any two values, of pairs that a user gives, and of one data size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from auditdp.adjacency import strategies as st
from auditdp.adjacency.adjacency import (
    LIMITS,
    Adjacency,
    Pair,
    different,
    offers,
    sides,
)
from auditdp.adjacency.corner_cases import at_limits, with_extremes
from auditdp.adjacency.pair_search import first_values
from auditdp.errors import AdjacencyError
from auditdp.mechanism.protocol import brief, identity_key


@dataclass(frozen=True)
class AnyValues:
    """Local DP over a value: any two different values of a domain are neighbours.

    Args:
        values: The values that the audit plays: those of a finite domain, or a grid of
            a larger one.
        finite: Whether ``values`` is the whole domain, so that all pairs of neighbours
            can be enumerated. By default, it is False if a value holds floating-point
            numbers, which are points of a continuum. It is True for other values, such
            as labels and bits.
        label: The name in reports, such as 'label LDP'.

    Raises:
        AdjacencyError: If there are fewer than two different values.
    """

    values: Sequence[Any]
    finite: bool | None = None
    label: str = "value LDP (any two values)"

    def __post_init__(self) -> None:
        if len(self._by_key) < 2:
            raise AdjacencyError(
                "AnyValues: expected at least two different values, "
                f"got {list(self.values)!r}"
            )

    @cached_property
    def _by_key(self) -> dict[Any, Any]:
        return {identity_key(value): value for value in self.values}

    @property
    def name(self) -> str:
        """The adjacency and the number of values."""
        return f"{self.label}, {'at ' * (not self.whole)}{len(self.values)} values"

    @property
    def whole(self) -> bool:
        """True if the values are the whole domain."""
        if self.finite is not None:
            return self.finite
        return not any(map(_holds_floats, self.values))

    @property
    def remedy(self) -> str:
        """The declaration that would allow all pairs to be enumerated, or ''."""
        if self.whole:
            return ""
        return "give AnyValues(..., finite=True) if these values are the whole domain"

    def check(self, pair: Pair) -> None:
        """Raise unless both inputs are among the values and differ."""
        keys = set()
        for _, value in sides(pair):
            keys.add(identity_key(value))
            if not keys <= self._by_key.keys():
                raise AdjacencyError(
                    f"{self.name}: {brief(value)} is not one of its values"
                )
        if len(keys) == 1:
            raise AdjacencyError(
                f"{self.name}: the two values are equal: {brief(pair.data)}"
            )

    def _all(self) -> list[Pair]:
        return [Pair(b, a) for a, b in combinations(self._by_key.values(), 2)]

    def pairs(self) -> list[Pair]:
        """Return the pair of the first and the last value, then some other pairs."""
        others = self._all()
        # The pair of both ends is the last of those with the first value.
        ends = others.pop(len(self._by_key) - 2)
        return [ends, *others][: LIMITS.listed_pairs]

    def corner_cases(self) -> list[Pair]:
        """Return pairs that consist of a number at which code breaks and another one.

        The other number is the next lower value, the lowest or the highest one. There
        are no corner cases if a value is no number, or if there are fewer than three.
        """
        # Other values than numbers have no order, and no limits at which code breaks.
        numbers = [x for x in self.values if isinstance(x, int | float | np.number)]
        if not 3 <= len(numbers) == len(self.values):
            return []
        numbers.sort()
        ends = numbers[0], numbers[-1]
        places = sorted({numbers.index(x) for x in at_limits(numbers)})
        both = [(numbers[place], numbers[place - 1]) for place in places if place]
        both += [(numbers[place], end) for place in places for end in ends]
        return different(Pair(*values, "corner case") for values in both)

    def exhaustive(self) -> list[Pair] | None:
        """Return all pairs, or None if they are too many or not the whole domain."""
        if self.whole and len(self._by_key) <= LIMITS.enumerated_values:
            return self._all()
        return None

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return pairs of any two different values."""
        values = list(self._by_key.values())
        # Places are drawn, because the values need not be hashable.
        place = st.integers(0, len(values) - 1)
        both = st.lists(place, min_size=2, max_size=2, unique=True)
        return both.map(lambda places: Pair(*(values[place] for place in places)))


def _holds_floats(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(map(_holds_floats, value))
    is_number = isinstance(value, np.ndarray | np.generic | float)
    return is_number and np.asarray(value).dtype.kind in "fc"


@dataclass(frozen=True)
class Neighbours:
    """Pairs that a user gives, with optional further pairs and a test of adjacency.

    Args:
        given: The pairs (data, neighbour) to play.
        relation: ``relation(a, b) -> bool``, the user's test of adjacency. Without it
            the user vouches for the pairs, and reports state that.
        label: The name in reports.
        search: A Hypothesis strategy of further pairs (data, neighbour). An audit
            searches them for a pair with a larger loss than the given ones, and for a
            smaller pair that refutes the claim. Pairs that the relation refuses are
            left out.
        unsearched: Text for reports: the reason why a requested search for other pairs
            is not possible.

    Raises:
        AdjacencyError: If ``given`` is empty or has an item that is no pair, or if
            ``search`` is no strategy.
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
                "Neighbours: expected search, a Hypothesis strategy of pairs "
                f"(data, neighbour), got {brief(self.search)}"
            )
        # An item that is no pair is refused at once.
        self.pairs()

    @property
    def name(self) -> str:
        """The label, and a note if ``relation`` is missing."""
        if self.relation is not None:
            return self.label
        return f"{self.label} (adjacency not checked)"

    def check(self, pair: Pair) -> None:
        """Raise if the user's relation refuses the pair."""
        if self.relation is not None and not self.relation(pair.data, pair.neighbour):
            raise AdjacencyError(
                f"{self.label}: not neighbours under the given relation: {pair}"
            )

    def pairs(self) -> list[Pair]:
        """Return the pairs in the order given."""
        return [_as_pair(item) for item in self.given]

    def exhaustive(self) -> None:
        """Return None, because there may be other pairs."""

    def corner_cases(self) -> list[Pair]:
        """Return the simplest pairs of ``search`` whose parts are mostly corner cases.

        Without ``search``, there are none.
        """
        if self.search is None:
            return []
        # Two of three parts of such a pair are values at which code breaks.
        pairs = with_extremes(self.search).map(_as_pair)
        return different(first_values(pairs, LIMITS.searched_corners))

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return further pairs; without ``search``, the given pairs in either order."""
        if self.search is not None:
            return self.search.map(_as_pair)
        pairs = self.pairs()
        return st.sampled_from([p for pair in pairs for p in (pair, pair.swapped())])


def _as_pair(item: Any) -> Pair:
    if isinstance(item, Pair):
        return item
    if not (isinstance(item, tuple | list) and len(item) == 2):
        raise AdjacencyError(
            f"Neighbours: expected pairs (data, neighbour), got {brief(item)}"
        )
    return Pair(item[0], item[1])


def records(pair: Pair) -> int:
    """Return the number of records of a pair: the length of the smaller input.

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
    """Return the pairs of an adjacency in which the smaller input has ``size`` records.

    If the adjacency is ``Neighbours`` without a search, only its label changes, and the
    size of its pairs is not checked.
    """
    if isinstance(adjacency, Neighbours) and adjacency.search is None:
        return replace(adjacency, label=f"{adjacency.label}, {_size_text(size)}")
    return OfSize(adjacency, size)


def _size_text(size: int) -> str:
    return f"n = {size:,} in the smaller input"


@dataclass(frozen=True)
class OfSize:
    """The pairs of an adjacency in which the smaller input has a given size."""

    whole: Adjacency
    size: int

    @property
    def name(self) -> str:
        """The adjacency and the size."""
        return f"{self.whole.name}, {_size_text(self.size)}"

    @property
    def remedy(self) -> str:
        """The declaration that would allow all pairs to be enumerated, or ''."""
        return offers(self.whole).remedy

    def check(self, pair: Pair) -> None:
        """Raise unless the pair is in the adjacency and has that size."""
        self.whole.check(pair)
        if not self._fits(pair):
            raise AdjacencyError(
                f"{self.name}: the smaller input has {records(pair):,} records: "
                f"{brief(pair)}"
            )

    def pairs(self) -> list[Pair]:
        """Return the pairs of that size that the whole adjacency lists."""
        return [*filter(self._fits, self.whole.pairs())]

    def exhaustive(self) -> list[Pair] | None:
        """Return every unordered pair of that size.

        Returns:
            The pairs, or None if the whole adjacency has too many pairs.
        """
        every = self.whole.exhaustive()
        if every is None:
            return None
        return [*filter(self._fits, every)]

    def corner_cases(self) -> list[Pair]:
        """Return the corner cases of that size."""
        return [*filter(self._fits, offers(self.whole).corner_cases or [])]

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return pairs of that size, none if the whole adjacency has no strategy."""
        generated = offers(self.whole).generated
        if generated is None:
            return st.nothing()
        return generated.filter(self._fits)

    def wide(self) -> st.SearchStrategy[Pair]:
        """Return pairs of that size from the wide strategy of the whole adjacency.

        Without a wide strategy it is the same as ``strategy``.
        """
        wide = offers(self.whole).wide
        if wide is None:
            return self.strategy()
        return wide.filter(self._fits)

    def _fits(self, pair: Pair) -> bool:
        return records(pair) == self.size
