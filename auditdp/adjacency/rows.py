"""Neighbours among collections of rows, whatever a row is: one row is added or removed, or one is replaced.

Rows at which code breaks: alone, among copies, with ties, with sums beside a limit.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, permutations, zip_longest
from typing import Any, Literal

import numpy as np

from auditdp.adjacency import strategies as st
from auditdp.adjacency.adjacency import EVERY, Pair, different, places, sides
from auditdp.adjacency.corner_cases import Domain, ends, values, with_extremes
from auditdp.adjacency.pair_search import first_values
from auditdp.errors import AdjacencyError
from auditdp.mechanism.protocol import brief, identity_key, is_table, rows_of

Change = Literal["add/remove", "replace"]
Item = tuple[Any, Any]
"""The key of a row, which is its place unless the collection is a dict, and the row."""
TABLES = ("pandas", "polars")
"""Libraries of tables, which are not imported before one is made."""
CONTAINERS = (list, tuple, str, dict, np.ndarray, "table", *TABLES)
MOST_DRAWN = 12
"""Rows of a generated collection that are drawn one by one; a longer one repeats them."""


@dataclass(frozen=True)
class Rows:
    """Collections of rows, of which two neighbours differ in one: it is there or not, or it is another one.

    Which of the two is meant decides what a claim says: a replaced row is one removed and another one added, and changes a
    histogram in two places. The name says it, and so do claims and reports. In a sequence the row may be at any place.

    Args:
        row: A Hypothesis strategy of one row, such as ``st.integers(0, 1000)`` or
            ``st.fixed_dictionaries({"age": st.integers(0, 120), "city": st.text()})``. Of matrices
            of a few values ``Records`` lists all pairs.
        change: "add/remove" or "replace".
        least: Fewest rows of an input.
        most: Most rows of an input, >= 1.
        into: What an input is: ``list``, ``tuple``, ``np.ndarray`` (one entry, or one line, a row), ``str`` (a row is one
            character), or ``dict`` (from the numbers 0, 1, ... to rows). Where rows are dicts of the same keys, 'table' is a
            structured array of numpy with a column for each, and 'pandas' or 'polars' a DataFrame.
        called: What a row is called, such as 'record' or 'word'.

    Raises:
        AdjacencyError: If an argument is out of range.
    """

    row: st.SearchStrategy[Any]
    change: Change
    least: int = 0
    most: int = 20
    into: type | Literal["table", "pandas", "polars"] = list
    called: str = "row"

    def __post_init__(self) -> None:
        if not isinstance(self.row, st.SearchStrategy):
            raise AdjacencyError(
                f"Rows: expected row, a Hypothesis strategy such as hypothesis.strategies.integers(0, 9), got "
                f"{brief(self.row)}"
            )
        if self.change not in ("add/remove", "replace"):
            raise AdjacencyError(
                f"Rows: expected change='add/remove' or 'replace', got {self.change!r}"
            )
        if not 0 <= self.least <= self.most or self._fewest > self.most:
            raise AdjacencyError(
                f"Rows: expected 0 <= least <= most with room for a change, got {self.least!r} and {self.most!r}"
            )
        if self.into not in CONTAINERS:
            names = ", ".join(
                kind if isinstance(kind, str) else kind.__name__ for kind in CONTAINERS
            )
            raise AdjacencyError(
                f"Rows: expected into, one of {names}, got {self.into!r}"
            )

    @property
    def _fewest(self) -> int:
        """The fewest rows of the larger input of a pair."""
        return max(self.least, 1) if self.change == "replace" else self.least + 1

    @property
    def name(self) -> str:
        """The convention, the sizes and what a row is."""
        what = (
            f"one {self.called} added or removed"
            if self.change == "add/remove"
            else f"one {self.called} replaced"
        )
        fewest = self.least if self.change == "add/remove" else self._fewest
        sizes = f"{fewest} to {self.most}" if fewest < self.most else f"{self.most}"
        return f"{what} ({sizes} {self.called}s{self._described}, {self._container})"

    @property
    def _container(self) -> str:
        return self.into if isinstance(self.into, str) else self.into.__name__

    @property
    def _described(self) -> str:
        text = repr(self.row)
        return (
            ""
            if " at 0x" in text
            else f" of {text if len(text) <= 60 else text[:59] + '…'}"
        )

    def check(self, pair: Pair) -> None:
        """Raise unless both are such collections and differ in one row; that rows are of a strategy is not checked."""
        a, b = (
            [(key, identity_key(row)) for key, row in self._items(which, data)]
            for which, data in sides(pair)
        )
        if self.change == "add/remove" and abs(len(a) - len(b)) != 1:
            raise AdjacencyError(
                f"{self.name}: the inputs have {len(a)} and {len(b)} {self.called}s, expected one more or less: {pair}"
            )
        if self.change == "replace" and len(a) != len(b):
            raise AdjacencyError(
                f"{self.name}: the inputs have {len(a)} and {len(b)} {self.called}s, expected equally many: {pair}"
            )
        if (differ := self._changes(a, b)) != 1:
            raise AdjacencyError(
                f"{self.name}: the inputs differ in {differ} {self.called}s, expected one: {pair}"
            )

    def _changes(self, a: list[Item], b: list[Item]) -> int:
        """Return how many rows are to be added, removed or replaced, one after the other, to get from a to b."""
        if self.into is dict:
            return len({key for key, _ in {*a} ^ {*b}})
        one, two = sorted(([row for _, row in a], [row for _, row in b]), key=len)
        if self.change == "replace":
            return int(sum(x != y for x, y in zip(one, two, strict=True)))
        place = next(
            (k for k, (x, y) in enumerate(zip(one, two, strict=False)) if x != y),
            len(one),
        )
        return 1 + int(
            sum(x != y for x, y in zip(one[place:], two[place + 1 :], strict=True))
        )

    def _items(self, which: str, data: Any) -> list[Item]:
        if not self._holds(data) or not self.least <= len(data) <= self.most:
            raise AdjacencyError(
                f"{self.name}: {which} is not such a {self._container}: {brief(data)}"
            )
        if isinstance(data, dict):
            return list(data.items())
        if self.into in TABLES:
            return list(enumerate(rows_of(data)))
        return list(enumerate(data.tolist() if isinstance(data, np.ndarray) else data))

    def _holds(self, data: Any) -> bool:
        if self.into in TABLES:
            return (
                is_table(data) and type(data).__module__.partition(".")[0] == self.into
            )
        if self.into in ("table", np.ndarray):
            return (
                isinstance(data, np.ndarray)
                and data.ndim > 0
                and (data.dtype.names is None) is (self.into != "table")
            )
        return isinstance(data, self.into)  # type: ignore[arg-type]

    def _made(self, items: Sequence[Item]) -> Any:
        """Return the input that holds these rows."""
        rows = [row for _, row in items]
        if self.into is dict:
            return dict(items)
        if self.into is str:
            return "".join(rows)
        if self.into not in (np.ndarray, "table", *TABLES):
            return self.into(rows)  # type: ignore[operator]
        like = self._ends[
            0
        ]  # it comes last and goes, so that an input without rows has their type and shape
        try:
            if self.into is np.ndarray:
                return np.array([*rows, like], self._dtype)[:-1]
            if not all(
                isinstance(row, dict) and row.keys() == like.keys() for row in rows
            ):
                raise TypeError("rows are not dicts of the same keys")
            if self.into in TABLES:
                columns = {name: [row[name] for row in (*rows, like)] for name in like}
                return (
                    importlib.import_module(str(self.into)).DataFrame(columns).head(-1)
                )
            return np.array(
                [tuple(row[name] for name in like) for row in rows], self._dtype
            )
        except (TypeError, ValueError, OverflowError, AttributeError) as error:
            raise AdjacencyError(
                f"Rows: cannot make a {self._container} of {brief(rows)}: {error}"
            ) from error
        except ModuleNotFoundError as error:
            raise AdjacencyError(
                f"Rows: into='{self.into}' needs it: pip install {self.into}"
            ) from error

    @cached_property
    def _dtype(self) -> np.dtype[Any] | None:
        """The type of an array, or of the columns of a table: numbers and booleans as they are, anything else as objects."""
        low, high = self._ends
        if self.into == "table":
            return np.dtype(
                [
                    (name, _number_type([low[name], high[name]]) or np.dtype(object))
                    for name in low
                ]
            )
        return _number_type([low, high])

    def _pair(
        self, rows: Sequence[Any], place: int, other: Any, name: str = ""
    ) -> Pair:
        """Return the pair in which the row at a place is there or not; with "replace", is the other one or the given one."""
        items = list(enumerate(rows))
        if self.change == "add/remove":
            return Pair(
                self._made(items), self._made(items[:place] + items[place + 1 :]), name
            )
        return Pair(
            self._made([*items[:place], (place, other), *items[place + 1 :]]),
            self._made(items),
            name,
        )

    @cached_property
    def _ends(self) -> tuple[Any, Any]:
        return ends(self.row)

    @cached_property
    def _distinct(self) -> list[Any]:
        """A few rows that differ from each other, the simplest first; of arrays, those that fit into their type."""
        return [row for row in first_values(self.row, 2 * DISTINCT) if self._fits(row)][
            :DISTINCT
        ] or [self._ends[0]]

    def _fits(self, row: Any) -> bool:
        with suppress(AdjacencyError):
            self._made([(0, row)])
            return True
        return False

    @property
    def _several(self) -> list[Any]:
        """A few rows, all different where there are enough."""
        count = min(max(self._fewest, DISTINCT), self.most)
        return [self._distinct[k % len(self._distinct)] for k in range(count)]

    def pairs(self) -> list[Pair]:
        """Return a change of the only row, of one among duplicates, of one unlike all others, and of one of several."""
        low, high = self._ends
        few = min(max(self._fewest, 3), self.most)
        several = self._several
        found = [
            self._pair(
                [low] * (self._fewest - 1) + [self._kept(high, low)],
                self._fewest - 1,
                high,
                "fewest",
            ),
            self._pair([high] * few, few - 1, low, "duplicates"),
            self._pair(
                [low] * (few - 1) + [self._kept(high, low)],
                few - 1,
                high,
                "unlike the others",
            ),
        ]
        for place, name in places(len(several)):
            rows = list(several)
            if self.change == "add/remove":
                rows[place] = high
            found.append(
                self._pair(
                    rows,
                    place,
                    high if differ(rows[place], high) else low,
                    f"{name} of {len(rows)}",
                )
            )
        return different(found)

    def _kept(self, added: Any, replaced: Any) -> Any:
        """Return the row that is there or not, or the one that another takes the place of."""
        return added if self.change == "add/remove" else replaced

    def exhaustive(self) -> None:
        """Return None: nobody counts the rows of a strategy."""

    def corner_cases(self) -> list[Pair]:
        """Return pairs at which code breaks, of each kind by turns.

        A row at which code breaks, alone; one among copies of another, or of itself; the one that breaks a tie; one that
        has the elements of all others; one of several different ones; and sums just below a power of two.
        """
        return list(self._corner_cases)

    @cached_property
    def _corner_cases(self) -> list[Pair]:
        found = []
        corners = RowCorners(
            self.row,
            self._ends,
            self._several,
            self.change == "add/remove",
            self._fewest,
            self.most,
        )
        for corner in filter(
            None, chain.from_iterable(zip_longest(*corners.of_each_kind()))
        ):
            rows, place, other = corner
            with suppress(
                AdjacencyError
            ):  # rows that do not fit into the type of an array
                found.append(self._pair(rows, place, other, "corner case"))
        return different(found)

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return collections of any rows; the simplest have few, simple ones."""
        return self._generated(self.row)

    def wide(self) -> st.SearchStrategy[Pair]:
        """Return collections with many of the rows at which code breaks, and with duplicates."""
        return self._generated(with_extremes(self.row))

    def _generated(self, row: st.SearchStrategy[Any]) -> st.SearchStrategy[Pair]:
        sizes, either = st.integers(self._fewest, self.most), st.booleans()

        @lru_cache  # Hypothesis looks at a strategy that is made anew as long as it draws from it
        def parts(
            size: int, fewest: int
        ) -> tuple[st.SearchStrategy[list[Any]], st.SearchStrategy[int]]:
            named = st.sampled_from([k for k, _ in places(size)])
            some = st.lists(row, min_size=fewest, max_size=min(size, MOST_DRAWN))
            return some, st.one_of(named, st.integers(0, size - 1))

        @st.composite
        def pairs(draw: st.DrawFn) -> Pair:
            size = draw(sizes)
            several, where = parts(size, 1 if draw(either) else min(size, MOST_DRAWN))
            some = draw(several)
            rows = [some[k % len(some)] for k in range(size)]
            place = draw(where)
            other = draw(row)
            if self.change == "add/remove":
                rows[place] = other if draw(either) else rows[place]
            elif not differ(rows[place], other):
                st.reject()
            try:
                return self._pair(rows, place, other)
            except AdjacencyError:  # a row that does not fit into the type of an array
                st.reject()

        return pairs()


def _number_type(values: list[Any]) -> np.dtype[Any] | None:
    """Return the type of an array of these values where they are numbers or booleans."""
    found = np.array(values).dtype
    return found if found.kind in "biufc" else None


def differ(one: Any, other: Any) -> bool:
    """Return whether two rows may be different ones."""
    return bool(identity_key(one) != identity_key(other))


Corner = tuple[list[Any], int, Any]
"""Rows, the place of the one that changes, and what it is replaced by where it is."""
DISTINCT = 6
"""Rows that differ from each other, in listed pairs."""
SINGLE_VALUES = 24
"""Rows at which code may break, each tried by itself."""
AMONG = 4
"""Of these, so many among copies of each other: both ends, and two that have another end in one part."""


@dataclass(frozen=True)
class RowCorners:
    """The corner cases of collections of rows."""

    row: st.SearchStrategy[Any]
    ends: tuple[Any, Any]
    """The least and the largest row."""
    several: Sequence[Any]
    """Rows that differ from each other as far as there are enough."""
    added: bool
    """Whether a row is added or removed; else one is replaced."""
    fewest: int
    """Rows of the larger input of a pair, at least."""
    most: int
    """Rows of the larger input of a pair, at most."""

    def kept(self, added: Any, replaced: Any) -> Any:
        """Return the row that is there or not, or the one that another takes the place of."""
        return added if self.added else replaced

    def of_each_kind(self) -> Iterator[Iterator[Corner]]:
        """Yield what there is of each kind."""
        domain, telling = Domain.of(self.row), values(self.row)[:SINGLE_VALUES]
        yield self._alone(telling)
        yield self._among_copies(telling[:AMONG])
        yield self._in_all_sizes()
        yield self._all_different(telling)
        yield self._ties(telling[:AMONG])
        yield self._with_all_elements(telling)
        yield self._one_of_several()
        yield self._sums(domain) if domain is not None else iter(())

    def _alone(self, telling: Sequence[Any]) -> Iterator[Corner]:
        """Each row at which code breaks, beside as few others as there may be."""
        low, high = self.ends
        for before, value in zip([high, *telling], telling, strict=False):
            yield [low] * (self.fewest - 1) + [value], self.fewest - 1, before

    def _among_copies(self, telling: Sequence[Any]) -> Iterator[Corner]:
        """A row beside copies of another, the last or the first."""
        for count in dict.fromkeys((self.most - 1, self.most // 2, self.fewest, 2)):
            if self.fewest <= count + 1 <= self.most:
                for k, (one, other) in enumerate(permutations(telling, 2)):
                    kept, place = self.kept(one, other), count * (k % 2 == 0)
                    yield (
                        [other] * place + [kept] + [other] * (count - place),
                        place,
                        one,
                    )

    def _in_all_sizes(self) -> Iterator[Corner]:
        low, high = self.ends
        for size in self._sizes:
            yield [high] * size, size - 1, low
            yield [low] * size, 0, high

    def _all_different(self, telling: Sequence[Any]) -> Iterator[Corner]:
        """A row before and after some that are all different."""
        for count in range(self.fewest, min(len(telling) - 1, self.most, DISTINCT) + 1):
            for place in (0, count - 1):
                kept = self.kept(telling[count - 1], telling[count])
                yield (
                    [*telling[:place], kept, *telling[place : count - 1]],
                    place,
                    telling[count - 1],
                )

    def _ties(self, telling: Sequence[Any]) -> Iterator[Corner]:
        """The row that breaks a tie of two kinds of rows."""
        for count in dict.fromkeys(((self.most - 1) // 2, 1, 2, self.most // 4)):
            if count and self.fewest <= 2 * count + 1 <= self.most:
                for one, other in permutations(telling[:2], 2):
                    yield (
                        [one] * count + [other] * count + [self.kept(other, one)],
                        2 * count,
                        other,
                    )

    def _with_all_elements(self, telling: Sequence[Any]) -> Iterator[Corner]:
        """A row that has the elements of all others, which have one each, after and before them."""
        containers = [
            row
            for row in telling
            if isinstance(row, Collection) and not isinstance(row, str)
        ]
        for row in sorted(containers, key=len, reverse=True)[:2]:
            others = [
                single
                for single in containers
                if len(single) == 1 and all(x in row for x in single)
            ]
            for count in dict.fromkeys((min(len(others), self.most - 1), 1)):
                if others and self.fewest <= count + 1 <= self.most:
                    yield [*others[:count], self.kept(row, others[0])], count, row
                    yield [self.kept(row, others[0]), *others[:count]], 0, row

    def _one_of_several(self) -> Iterator[Corner]:
        low, high = self.ends
        several = self.several
        for place in range(min(len(several), EVERY)):
            rows = [low] * len(several)
            if self.added:
                rows[place] = high
            yield rows, place, high
        for place, _ in places(len(several)):
            for value in (low, high, several[0], several[-1]):
                rows = list(several)
                if self.added:
                    rows[place] = value
                yield rows, place, value

    @property
    def _sizes(self) -> list[int]:
        """Numbers of rows of the larger input: few, many, and those that do not fit into a byte."""
        some = [
            self.fewest,
            self.fewest + 1,
            2,
            3,
            (self.fewest + self.most) // 2,
            self.most - 1,
            self.most,
        ]
        some += [limit + d for limit in (128, 256, 32768, 65536) for d in (0, 1)]
        return sorted({size for size in some if self.fewest <= size <= self.most})

    def _sums(self, domain: Domain) -> Iterator[Corner]:
        """Rows whose sum is just below a limit, and one that takes it across."""
        for limit in domain.limits(self.most):
            enough = next(
                (
                    n
                    for n in range(self.fewest, self.most + 1)
                    if limit <= n * domain.high
                ),
                self.most,
            )
            for count in dict.fromkeys((min(enough + 1, self.most), self.most)):
                if self.added:
                    rows = domain.summing(limit - 1, count - 1)
                    yield [*rows, domain.high], count - 1, None
                    yield [domain.high, *reversed(rows)], 0, None
                else:
                    rows = domain.summing(limit - 1, count)
                    yield rows, count - 1, domain.high
                    yield rows[::-1], 0, domain.high
