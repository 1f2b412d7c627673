"""Rows at which code breaks: alone, among copies, with ties, with sums beside a limit."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from auditdp.adjacency import strategies as st
from auditdp.adjacency.base import EVERY, places
from auditdp.adjacency.extremes import Domain, values

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
                    yield [other] * place + [kept] + [other] * (count - place), place, one

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
                yield [*telling[:place], kept, *telling[place : count - 1]], place, telling[count - 1]

    def _ties(self, telling: Sequence[Any]) -> Iterator[Corner]:
        """The row that breaks a tie of two kinds of rows."""
        for count in dict.fromkeys(((self.most - 1) // 2, 1, 2, self.most // 4)):
            if count and self.fewest <= 2 * count + 1 <= self.most:
                for one, other in permutations(telling[:2], 2):
                    yield [one] * count + [other] * count + [self.kept(other, one)], 2 * count, other

    def _with_all_elements(self, telling: Sequence[Any]) -> Iterator[Corner]:
        """A row that has the elements of all others, which have one each, after and before them."""
        containers = [row for row in telling if isinstance(row, Collection) and not isinstance(row, str)]
        for row in sorted(containers, key=len, reverse=True)[:2]:
            others = [single for single in containers if len(single) == 1 and all(x in row for x in single)]
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
        some = [self.fewest, self.fewest + 1, 2, 3, (self.fewest + self.most) // 2, self.most - 1, self.most]
        some += [limit + d for limit in (128, 256, 32768, 65536) for d in (0, 1)]
        return sorted({size for size in some if self.fewest <= size <= self.most})

    def _sums(self, domain: Domain) -> Iterator[Corner]:
        """Rows whose sum is just below a limit, and one that takes it across."""
        for limit in domain.limits(self.most):
            enough = next((n for n in range(self.fewest, self.most + 1) if limit <= n * domain.high), self.most)
            for count in dict.fromkeys((min(enough + 1, self.most), self.most)):
                if self.added:
                    rows = domain.summing(limit - 1, count - 1)
                    yield [*rows, domain.high], count - 1, None
                    yield [domain.high, *reversed(rows)], 0, None
                else:
                    rows = domain.summing(limit - 1, count)
                    yield rows, count - 1, domain.high
                    yield rows[::-1], 0, domain.high
