"""The adjacency of collections of rows, of which one is added, removed or replaced.

Its corner cases are collections at which code breaks: a special row alone or among
copies, ties, many sizes, and sums just below a limit of integers.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, permutations, zip_longest
from operator import ne
from typing import Any, Literal

import numpy as np

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
from auditdp.adjacency.corner_cases import Domain, ends, values, with_extremes
from auditdp.adjacency.pair_search import first_values
from auditdp.errors import AdjacencyError
from auditdp.mechanism.protocol import brief, identity_key, is_table, rows_of

Keyed = dict[Any, Any]
"""Rows, or their identity keys, by the keys of a dict or the indices of a sequence."""
Corner = tuple[list[Any], int, Any]
"""Rows, the index of the row that changes, and the row that replaces it.

With change "add/remove", the row that changes is removed.
"""

TABLES = ("pandas", "polars")
"""Libraries of tables, which are imported on their first use."""
CONTAINERS = (list, tuple, str, dict, np.ndarray, "table", *TABLES)


@dataclass(frozen=True)
class Rows:
    """Collections of rows; two neighbours differ in one row.

    The row is added or removed, or it is replaced by another one. The choice changes
    the meaning of a claim: to replace a row is to remove one and add another, which
    changes a histogram in two places. The name of the adjacency states the choice, and
    so do reports. In a sequence the row may be at any place.

    Args:
        row: A Hypothesis strategy of one row, such as ``st.integers(0, 1000)`` or
            ``st.fixed_dictionaries({"age": st.integers(0, 120), "city": st.text()})``.
            For matrices of a small set of values, ``Records`` can enumerate all pairs.
        change: "add/remove" or "replace".
        least: Smallest number of rows of an input.
        most: Largest number of rows of an input, >= 1; with "add/remove", > ``least``.
        into: Type of an input: ``list``, ``tuple``, ``np.ndarray`` (a row is one entry
            of the first axis), ``str`` (a row is one character), or ``dict`` (keys 0,
            1, ..., and a row for each). If rows are dicts of the same keys, it may be
            'table', a structured array of numpy with a column for each key, or 'pandas'
            or 'polars', a DataFrame.
        called: Noun for a row, such as 'record' or 'word'.

    Raises:
        AdjacencyError: If an argument is out of range.
    """

    row: st.SearchStrategy[Any]
    change: Literal["add/remove", "replace"]
    least: int = 0
    most: int = 20
    into: type | Literal["table", "pandas", "polars"] = list
    called: str = "row"

    def __post_init__(self) -> None:
        if not isinstance(self.row, st.SearchStrategy):
            raise AdjacencyError(
                "Rows: expected row, a Hypothesis strategy such as "
                f"hypothesis.strategies.integers(0, 9), got {brief(self.row)}"
            )
        require_change(self, "add/remove", "replace")
        require_integer(self, "least", 0)
        # There has to be room for a change.
        require_integer(self, "most", self._fewest)
        if self.into not in CONTAINERS:
            names = ", ".join(map(_type_name, CONTAINERS))
            raise AdjacencyError(
                f"Rows: expected into, one of {names}, got {self.into!r}"
            )

    @property
    def _is_added(self) -> bool:
        return self.change == "add/remove"

    @property
    def _fewest(self) -> int:
        """Smallest number of rows of the larger input of a pair."""
        if self._is_added:
            return self.least + 1
        return max(self.least, 1)

    @property
    def name(self) -> str:
        """The change, the numbers of rows, the strategy of a row, and the type."""
        what = "added or removed" if self._is_added else "replaced"
        fewest = self.least if self._is_added else self._fewest
        sizes = f"{fewest} to {self.most}" if fewest < self.most else f"{self.most}"
        text = repr(self.row)
        if len(text) > 60:
            text = text[:59] + "…"
        # A text with an address differs from process to process.
        described = "" if " at 0x" in repr(self.row) else f" of {text}"
        return (
            f"one {self.called} {what} ({sizes} {self.called}s{described}, "
            f"{_type_name(self.into)})"
        )

    def check(self, pair: Pair) -> None:
        """Raise unless both are such collections and differ in one row.

        The rows are not compared with the strategy.
        """
        a, b = (self._keyed(which, data) for which, data in sides(pair))
        expected = "one more or less" if self._is_added else "equally many"
        if abs(len(a) - len(b)) != int(self._is_added):
            raise AdjacencyError(
                f"{self.name}: the inputs have {len(a)} and {len(b)} {self.called}s, "
                f"expected {expected}: {pair}"
            )
        count = self._changes(a, b)
        if count != 1:
            raise AdjacencyError(
                f"{self.name}: the inputs differ in {count} {self.called}s, "
                f"expected one: {pair}"
            )

    def _changes(self, a: Keyed, b: Keyed) -> int:
        """Return the number of changed rows, which is 1 exactly for neighbours.

        The caller has checked the sizes of the two inputs.
        """
        if self.into is dict:
            return len({key for key, _ in a.items() ^ b.items()})
        shorter, longer = sorted(([*a.values()], [*b.values()]), key=len)
        if not self._is_added:
            return int(sum(map(ne, shorter, longer)))
        # After the first difference, the longer sequence is compared without that row.
        place = 0
        while place < len(shorter) and shorter[place] == longer[place]:
            place += 1
        return 1 + int(sum(map(ne, shorter[place:], longer[place + 1 :])))

    def _keyed(self, which: str, data: Any) -> Keyed:
        """Return the identity keys of the rows of an input, after a check of it."""
        if not self._is_collection(data) or not self.least <= len(data) <= self.most:
            raise AdjacencyError(
                f"{self.name}: {which} is not such a {_type_name(self.into)}: "
                f"{brief(data)}"
            )
        if isinstance(data, np.ndarray):
            data = data.tolist()
        elif self.into in TABLES:
            data = rows_of(data)
        if not isinstance(data, dict):
            data = dict(enumerate(data))
        return {key: identity_key(row) for key, row in data.items()}

    def _is_collection(self, data: Any) -> bool:
        if self.into in TABLES:
            library = type(data).__module__.partition(".")[0]
            return is_table(data) and library == self.into
        if self.into in ("table", np.ndarray):
            is_array = isinstance(data, np.ndarray) and data.ndim > 0
            return is_array and (data.dtype.names is None) is (self.into != "table")
        return isinstance(data, self.into)  # type: ignore[arg-type]

    def _input(self, keyed: Keyed) -> Any:
        """Return the input with given rows.

        Raises:
            AdjacencyError: If the rows do not fit into the type of an input.
        """
        rows = [*keyed.values()]
        if self.into is dict:
            return dict(keyed)
        if self.into is str:
            return "".join(rows)
        if self.into in (list, tuple):
            return self.into(rows)
        # One more row, which is cut off again, gives an input without rows its types.
        last = self._ends[0]
        try:
            if self.into is np.ndarray:
                return np.array([*rows, last], self._dtype)[:-1]
            if not all(
                isinstance(row, dict) and row.keys() == last.keys() for row in rows
            ):
                raise TypeError("rows are not dicts of the same keys")
            if self.into in TABLES:
                columns = {name: [row[name] for row in (*rows, last)] for name in last}
                library = importlib.import_module(str(self.into))
                return library.DataFrame(columns).head(-1)
            lines = [tuple(row[name] for name in last) for row in rows]
            return np.array(lines, self._dtype)
        except (TypeError, ValueError, OverflowError, AttributeError) as error:
            raise AdjacencyError(
                f"Rows: cannot make a {_type_name(self.into)} of {brief(rows)}: {error}"
            ) from error
        except ModuleNotFoundError as error:
            raise AdjacencyError(
                f"Rows: into='{self.into}' needs it: pip install {self.into}"
            ) from error

    @cached_property
    def _dtype(self) -> Any:
        """The dtype of an array or of a table; None for an array of other objects."""
        low, high = self._ends
        if self.into != "table":
            return _number_type([low, high])
        return np.dtype(
            [(name, _number_type([low[name], high[name]]) or object) for name in low]
        )

    def _pair(
        self, rows: Sequence[Any], place: int, other: Any, name: str = ""
    ) -> Pair:
        """Return the pair in which the row at a place changes.

        With "add/remove", the neighbour has no such row. With "replace", the row is
        ``other`` in the data, and as in ``rows`` in the neighbour.
        """
        first = dict(enumerate(rows))
        second = dict(first)
        if self._is_added:
            del second[place]
        else:
            first[place] = other
        return Pair(self._input(first), self._input(second), name)

    @cached_property
    def _ends(self) -> tuple[Any, Any]:
        return ends(self.row)

    @cached_property
    def _several(self) -> list[Any]:
        """Some rows of the strategy, all different if enough of them fit the type."""
        distinct = []
        for row in first_values(self.row, 2 * LIMITS.distinct_rows):
            with suppress(AdjacencyError):
                self._input({0: row})
                distinct.append(row)
        distinct = distinct[: LIMITS.distinct_rows] or [self._ends[0]]
        count = min(max(self._fewest, LIMITS.distinct_rows), self.most)
        return [distinct[k % len(distinct)] for k in range(count)]

    def pairs(self) -> list[Pair]:
        """Return pairs that change the smallest input, a duplicate, and an outlier.

        In the other pairs, the last, the first or the middle of several different rows
        changes.
        """
        low, high = self._ends
        last = min(max(self._fewest, 3), self.most) - 1
        alone = [low] * (self._fewest - 1)
        changed = self._changing(high, low)
        listed = [
            self._pair([*alone, changed], len(alone), high, "fewest"),
            self._pair([high] * (last + 1), last, low, "duplicates"),
            self._pair([low] * last + [changed], last, high, "unlike the others"),
        ]
        count = len(self._several)
        for place, name in places(count):
            rows = list(self._several)
            if self._is_added:
                rows[place] = high
            other = high if differ(rows[place], high) else low
            listed.append(self._pair(rows, place, other, f"{name} of {count}"))
        return different(listed)

    def _changing(self, added: Any, replaced: Any) -> Any:
        """Return ``added`` if the change is "add/remove", else ``replaced``."""
        if self._is_added:
            return added
        return replaced

    def exhaustive(self) -> None:
        """Return None, because the rows of a strategy cannot be counted."""

    def corner_cases(self) -> list[Pair]:
        """Return pairs at which code breaks, the kinds of corner cases interleaved."""
        return list(self._corner_cases)

    @cached_property
    def _corner_cases(self) -> list[Pair]:
        pairs = []
        for corner in chain.from_iterable(zip_longest(*self._corner_kinds())):
            if corner is not None:
                rows, place, other = corner
                # Some rows may not fit into the type of an array.
                with suppress(AdjacencyError):
                    pairs.append(self._pair(rows, place, other, "corner case"))
        return different(pairs)

    def _corner_kinds(self) -> Iterator[Iterator[Corner]]:
        domain = Domain.of(self.row)
        # The two ends of the row come first, so each kind takes the first ones.
        special = values(self.row)[: LIMITS.row_values]
        yield self._alone(special)
        yield self._among_copies(special[: LIMITS.copied_rows])
        yield self._of_all_sizes()
        yield self._all_different(special)
        yield self._ties(special[:2])
        yield self._with_all_elements(special)
        yield self._one_of_several()
        if domain is not None:
            yield self._sums(domain)

    def _allows(self, size: int) -> bool:
        """Return True if the larger input of a pair may have ``size`` rows."""
        return self._fewest <= size <= self.most

    def _alone(self, special: Sequence[Any]) -> Iterator[Corner]:
        """Yield each special row, beside the smallest number of other rows."""
        low, high = self._ends
        others = [low] * (self._fewest - 1)
        for before, row in zip([high, *special], special, strict=False):
            yield [*others, row], len(others), before

    def _among_copies(self, special: Sequence[Any]) -> Iterator[Corner]:
        """Yield a special row after or before copies of another one."""
        for count in dict.fromkeys((self.most - 1, self.most // 2, self._fewest, 2)):
            if not self._allows(count + 1):
                continue
            for k, (row, copied) in enumerate(permutations(special, 2)):
                place = 0 if k % 2 else count
                rows = [copied] * count
                rows.insert(place, self._changing(row, copied))
                yield rows, place, row

    def _of_all_sizes(self) -> Iterator[Corner]:
        """Yield copies of a row, also in numbers from which an index may overflow.

        Such numbers are 2^7, 2^8, 2^15 and 2^16, and the next larger ones.
        """
        low, high = self._ends
        sizes = {
            *(self._fewest, self._fewest + 1, 2, 3),
            *((self._fewest + self.most) // 2, self.most - 1, self.most),
            *(128, 129, 256, 257, 32768, 32769, 65536, 65537),
        }
        for size in sorted(filter(self._allows, sizes)):
            yield [high] * size, size - 1, low
            yield [low] * size, 0, high

    def _all_different(self, special: Sequence[Any]) -> Iterator[Corner]:
        """Yield a changing row before and after other rows that are all different."""
        most = min(len(special) - 1, self.most, LIMITS.distinct_rows)
        for count in range(self._fewest, most + 1):
            changed = self._changing(special[count - 1], special[count])
            for place in (0, count - 1):
                rows = [*special[: count - 1]]
                rows.insert(place, changed)
                yield rows, place, special[count - 1]

    def _ties(self, special: Sequence[Any]) -> Iterator[Corner]:
        """Yield a row that breaks a tie of two kinds of rows."""
        for count in dict.fromkeys(((self.most - 1) // 2, 1, 2, self.most // 4)):
            if count and self._allows(2 * count + 1):
                for first, second in permutations(special, 2):
                    tie = [first] * count + [second] * count
                    changed = self._changing(second, first)
                    yield [*tie, changed], 2 * count, second

    def _with_all_elements(self, special: Sequence[Any]) -> Iterator[Corner]:
        """Yield a row with several elements, beside rows with one of its elements."""
        containers = [
            row
            for row in special
            if isinstance(row, Collection) and not isinstance(row, str)
        ]
        for row in sorted(containers, key=len, reverse=True)[:2]:
            # The row has the elements of these rows, and they have no others.
            singles = [
                single
                for single in containers
                if len(single) == 1 and all(element in row for element in single)
            ]
            for count in dict.fromkeys((min(len(singles), self.most - 1), 1)):
                if singles and self._allows(count + 1):
                    others = singles[:count]
                    changed = self._changing(row, singles[0])
                    yield [*others, changed], count, row
                    yield [changed, *others], 0, row

    def _one_of_several(self) -> Iterator[Corner]:
        """Yield changes at every index of equal rows, and at some of different rows."""
        low, high = self._ends
        several = self._several
        equal = [low] * len(several)
        cases = [(equal, place, high) for place in range(len(several))]
        cases = cases[: LIMITS.changed_places]
        for place, _ in places(len(several)):
            for other in (low, high, several[0], several[-1]):
                cases.append((several, place, other))
        for rows, place, other in cases:
            changed = list(rows)
            changed[place] = self._changing(other, rows[place])
            yield changed, place, other

    def _sums(self, domain: Domain) -> Iterator[Corner]:
        """Yield rows with a sum just below a limit, and a row that moves it across."""
        high = domain.high
        for limit in domain.limits(self.most):
            sizes = range(self._fewest, self.most + 1)
            enough = next(n for n in sizes if limit <= n * high)
            # The smallest collection that reaches the limit has room for one row more.
            for count in dict.fromkeys((min(enough + 1, self.most), self.most)):
                if self._is_added:
                    rows = domain.summing(limit - 1, count - 1)
                    yield [*rows, high], count - 1, None
                    yield [high, *reversed(rows)], 0, None
                else:
                    rows = domain.summing(limit - 1, count)
                    yield rows, count - 1, high
                    yield rows[::-1], 0, high

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return pairs with any rows; the simplest are short, with simple rows."""
        return self._generated(self.row)

    def wide(self) -> st.SearchStrategy[Pair]:
        """Return pairs with many corner cases of a row, and with duplicates."""
        return self._generated(with_extremes(self.row))

    def _generated(self, row: st.SearchStrategy[Any]) -> st.SearchStrategy[Pair]:
        sizes, either = st.integers(self._fewest, self.most), st.booleans()

        # Hypothesis analyses a strategy anew each time that it is constructed, which
        # takes as long as a draw.
        @lru_cache
        def parts(
            size: int, fewest: int
        ) -> tuple[st.SearchStrategy[list[Any]], st.SearchStrategy[int]]:
            named = st.sampled_from([place for place, _ in places(size)])
            most = min(size, LIMITS.drawn_rows)
            rows = st.lists(row, min_size=fewest, max_size=most)
            return rows, st.one_of(named, st.integers(0, size - 1))

        @st.composite
        def pairs(draw: st.DrawFn) -> Pair:
            size = draw(sizes)
            # Some collections repeat one or more drawn rows; others draw most rows.
            fewest = 1 if draw(either) else min(size, LIMITS.drawn_rows)
            several, any_place = parts(size, fewest)
            drawn = draw(several)
            rows = [drawn[k % len(drawn)] for k in range(size)]
            place = draw(any_place)
            other = draw(row)
            # An added row may be a copy of another row, or a new one.
            if self._is_added:
                if draw(either):
                    rows[place] = other
            elif not differ(rows[place], other):
                st.reject()
            try:
                return self._pair(rows, place, other)
            except AdjacencyError:
                # The rows do not fit into the type of an array.
                st.reject()

        return pairs()


def _type_name(kind: Any) -> str:
    if isinstance(kind, str):
        return kind
    return str(kind.__name__)


def _number_type(values: list[Any]) -> np.dtype[Any] | None:
    """Return the dtype of an array of numbers or bools, or None for other values."""
    dtype = np.array(values).dtype
    if dtype.kind in "biufc":
        return dtype
    return None


def differ(first: Any, second: Any) -> bool:
    """Return True if two rows are not certainly equal."""
    return bool(identity_key(first) != identity_key(second))
