"""Neighbours like a pair that is given: the same change, of other records among other data, within what its data shows.

Whoever audits a trainer has one pair, such as the data with and without some record, and it shows little: another record,
or another rest of the data, may move every step as far as clipping allows. What a user has said is how the inputs differ
and, by the data, what records look like. Within that these pairs stay:

- no pair changes more kinds of things than the given one: parts of a replaced record that are the same in both inputs, such
  as features beside a changed label, are the same in both inputs of every pair, unless a user names a wider change;
- as many records as before, since an accountant's sampling rate may rest on their number;
- every number within its range in the data, and every record (of features and labels, each) no longer than the longest;
- the record that changes is no shorter than the shortest, since code may divide by its length;
- whole numbers, such as labels, are some that the data has.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from auditdp.adjacency import strategies as st
from auditdp.adjacency.adjacency import GivenPairs, Pair, different
from auditdp.adjacency.tabular import Tabular, by_number, same_entries, tabular
from auditdp.errors import AdjacencyError
from auditdp.numerics.arrays import Floats

MOST_LONG, MOST_CORNERS = 3, 8
"""Of the longest records, and of the corners of the ranges, so many are tried."""
MOST_TRIED = 64
"""Records, the longest ones, that are tried each where they are one of several and no numbers."""
MOST_FOLLOWED = 64
"""Columns of a record whose last one is told by the others."""
GRID = 64
"""Parts of a range in which numbers are generated: none is so small that it shows how sums are rounded."""
ROWS = 2
"""How many other rests are tried before another record."""
FEW_VALUES = 10
"""Whole numbers of which a column has no more are taken for labels."""
UP_TO = 1e-9
"""Rounding of lengths, relative."""
ADDED, ABSENT, REPLACED = (
    "one record added or removed",
    "one record put to {:g}",
    "one record replaced",
)
FREE = np.zeros(1, bool)
"""What stays of a record that may become any other one."""


class _Change(NamedTuple):
    """How the inputs of a pair differ: in the record at a place.

    Attributes:
        place: The place of the record.
        stays: Which parts of the record are the same in both inputs, as ``Tabular.stays`` has them.
        absent: The row that stands for a record that is absent; None where the record is missing, or another one.
        zeros: Which numbers of the record are those of the absent one in both inputs.
    """

    place: int
    stays: Any
    absent: Floats | None = None
    zeros: Any = FREE


@dataclass(frozen=True)
class Alike(GivenPairs):
    """Pairs that differ as a given one does, in one record, within what its data shows; see the module.

    Args:
        given: The pairs to play; the first one says how neighbours differ, and what records look like. An input is a
            sequence of records, which are numbers or sequences of numbers; or of any kind, such as documents or users with
            examples, in whose place others of the data are tried; an array or a tensor of them; or a tuple, a dict or a
            ``TensorDataset`` of arrays of one length, such as features and labels.
        change: How neighbours differ, such as 'one record replaced': one of ``readings``, the narrowest unless given.
        wider: How many times as wide ranges and lengths may be, >= 1.

    Raises:
        AdjacencyError: If the first pair does not differ in one record, or not by that change, or its inputs are none of
            these.
    """

    wider: float = 1.0

    def __post_init__(self) -> None:
        if not self.wider >= 1:
            raise AdjacencyError(
                f"Alike: expected wider >= 1, got wider={self.wider!r}"
            )
        _ = self._change

    @property
    def name(self) -> str:
        """How neighbours differ, and where others are looked for."""
        wider = "" if self.wider == 1 else f" {self.wider:g} times"
        searched = (
            f"neighbours searched: {self.reading}, within{wider} the data's ranges"
        )
        return f"pairs as given (adjacency not checked); {searched}"

    @cached_property
    def _sides(self) -> tuple[Tabular, Tabular]:
        both = self.given[0].data, self.given[0].neighbour
        try:
            made = [None if _is_empty(data) else tabular(data) for data in both]
        except AdjacencyError as error:
            try:
                made = [*by_number(*both)]
            except AdjacencyError:
                raise error from None
        like = made[0] or made[1]
        if like is None:
            raise AdjacencyError(f"Alike: both inputs are empty: {self.given[0]}")
        none = replace(like, rows=like.rows[:0])
        return made[0] or none, made[1] or none

    @cached_property
    def _change(self) -> _Change:
        return self.readings[self.reading]

    @cached_property
    def readings(self) -> dict[str, _Change]:
        """The changes that the first pair shows, the narrowest first."""
        first, second = (side.rows for side in self._sides)
        if first.shape[1:] == second.shape[1:]:
            if abs(len(first) - len(second)) == 1:
                longer, shorter = (
                    (first, second) if len(first) > len(second) else (second, first)
                )
                place = next(
                    (
                        k
                        for k in range(len(shorter))
                        if not _same(longer[k], shorter[k])
                    ),
                    len(shorter),
                )
                if _same(np.delete(longer, place, axis=0), shorter):
                    return {ADDED: _Change(place, FREE)}
            elif len(first) == len(second):
                places = [
                    k for k in range(len(first)) if not _same(first[k], second[k])
                ]
                if len(places) == 1:
                    return self._replaced(
                        places[0], second[places[0]], first[places[0]]
                    )
        raise AdjacencyError(
            f"Alike: the inputs do not differ in one record: {self.given[0]}"
        )

    def _replaced(self, place: int, one: Floats, other: Floats) -> dict[str, _Change]:
        """Return the readings of a record in place of another: absent, another in some parts, and another one."""
        found: dict[str, _Change] = {}
        stays, equal = self._sides[0].stays(one, other), same_entries(one, other)
        # Features alone may be put to 0, so that a label which is the same in both belongs to no absent record.
        labels = equal & self._labels & (not self._labels.all())
        absent = [
            row
            for row in (one, other)
            if not np.nan_to_num(np.where(labels, 0, row)).any()
        ]
        if absent:
            named, zeros = ABSENT.format(absent[0].flat[0]), equal & ~labels
            if zeros.any():
                some = f"{(~equal).sum()} of {len(equal)} parts of {named}, the others unchanged"
                found[some] = _Change(place, labels, absent[0], zeros)
            found[named] = _Change(place, labels, absent[0])
        elif stays.any():
            found[
                f"{(~stays).sum()} of {len(stays)} parts of {REPLACED}, the others unchanged"
            ] = _Change(place, stays)
        return found | {REPLACED: _Change(place, FREE)}

    @cached_property
    def _rows(self) -> Floats:
        """All records of the pair that are there."""
        rows = np.concatenate([side.rows for side in self._sides])
        return np.unique(rows[~np.isnan(rows).any(axis=1)], axis=0)

    @cached_property
    def _ranges(self) -> tuple[Floats, Floats]:
        low, high = self._rows.min(axis=0), self._rows.max(axis=0)
        more = (self.wider - 1) / 2 * (high - low) * ~self._labels
        return low - more, high + more

    @cached_property
    def _labels(self) -> Any:
        """Which columns hold whole numbers, of which the data has all that there are."""
        few = np.array(
            [len(np.unique(column)) <= FEW_VALUES for column in self._rows.T]
        )
        return self._sides[0].whole | (
            few & (self._rows == np.round(self._rows)).all(axis=0)
        )

    @cached_property
    def _between(self) -> tuple[Floats, Floats]:
        """The shortest and the longest that each part of a record may be."""
        lengths = self._lengths(self._rows)
        return lengths.min(axis=0) / self.wider * (1 - UP_TO), lengths.max(
            axis=0
        ) * self.wider * (1 + UP_TO)

    def _lengths(self, rows: Floats) -> Floats:
        """Return the length of each part of each row, shape (rows, parts)."""
        return np.stack(
            [np.linalg.norm(rows[:, part], axis=1) for part in self._sides[0].parts],
            axis=1,
        )

    def _within(self, row: Floats) -> Floats | None:
        """Return a row made no longer than the longest; None where it then leaves the ranges, or is too short."""
        row, longest = row.copy(), self._between[1] / (1 + UP_TO)
        for part, length, most in zip(
            self._sides[0].parts, self._lengths(row[None])[0], longest, strict=True
        ):
            row[part] *= np.where(
                self._labels[part], 1.0, min(1.0, most / length if length else 1.0)
            )
        low, high = self._ranges
        inside = (row >= low - UP_TO * np.abs(low)).all() and (
            row <= high + UP_TO * np.abs(high)
        ).all()
        return row if inside and self._is_between(row[None])[0] else None

    def _is_between(self, rows: Floats) -> Any:
        shortest, longest = self._between
        lengths = self._lengths(rows)
        return ((lengths >= shortest) & (lengths <= longest)).all(axis=1)

    @cached_property
    def candidates(self) -> list[Floats]:
        """Records to change: the longest and shortest, corners of the ranges, one turned round, an unlikely last number."""
        rows, (low, high) = self._rows, self._ranges
        by_length = rows[np.argsort(-np.linalg.norm(rows, axis=1), kind="stable")]
        few = (
            MOST_TRIED if rows.shape[1] == 1 and self._labels.all() else MOST_LONG
        )  # of no others there are ranges
        found = [*by_length[:few], *by_length[-1:]]
        if self._stays_by_record:
            found += [side.rows[self._change.place] for side in self._sides]
        if 1 < rows.shape[1] <= MOST_FOLLOWED:
            known = np.column_stack([rows[:, :-1], np.ones(len(rows))])
            odd = np.abs(
                known @ np.linalg.lstsq(known, rows[:, -1], rcond=None)[0] - rows[:, -1]
            )
            found.append(rows[int(np.argmax(odd))])
            found += [
                np.append(row[:-1], end)
                for row in found[:1]
                for end in (low[-1], high[-1])
            ]
        signs = (
            list(product((1, 0), repeat=rows.shape[1]))
            if 2 ** rows.shape[1] <= MOST_CORNERS
            else self._signs()
        )
        found += [np.where(sign, high, low) for sign in signs]
        found += [np.where(self._labels, row, -row) for row in by_length[:1]]
        if self.wider > 1:
            found += [
                np.where(self._labels, row, self.wider * row) for row in by_length[:1]
            ]
        inside = [row for each in found if (row := self._within(each)) is not None]
        return list(
            {row.tobytes(): row for row in inside if self._is_changed(row)}.values()
        )

    def _is_changed(self, row: Floats) -> bool:
        """Return whether there is another record to replace one, where it has to be one of the data with the same parts."""
        return not self._stays_by_record or not _same(
            self.opposite(row, self._change.stays), row
        )

    @property
    def _stays_by_record(self) -> bool:
        return bool(self._change.stays.any()) and not self._sides[0].is_in_columns

    def _signs(self) -> list[Any]:
        """Return corners of many columns: all one way, the last against the others, by turns, and some at random."""
        columns = self._rows.shape[1]
        last, turns = np.arange(columns) < columns - 1, np.arange(columns) % 2 == 0
        drawn = np.random.default_rng(0).random((MOST_CORNERS - 4, columns)) < 0.5
        return [
            np.ones(columns, bool),
            np.zeros(columns, bool),
            last,
            ~last,
            turns,
            *drawn,
        ][:MOST_CORNERS]

    def _rests(self, row: Floats) -> list[Floats]:
        """Return what others may be beside a record: as given, quiet, the same, against it by turns or all, or the opposite.

        A record whose last number, such as its label, is turned round has the opposite gradient where a model begins at 0.
        """
        shown, place = (
            max(self._sides, key=lambda side: len(side.rows)).rows,
            self._change.place,
        )
        rest = np.delete(shown, place, axis=0)
        against = self._against(row)
        turns = np.where(
            (np.arange(len(rest)) % 2 == 0)[:, None], against, row
        )  # with the record as many of each
        others = (
            np.tile(other, (len(rest), 1)) for other in (self.quiet, row, against)
        )
        return [rest, *others, turns, np.tile(self.opposite(row), (len(rest), 1))]

    def _against(self, row: Floats, stays: Any = FREE) -> Floats:
        """Return a record with its last number turned round, if that is no label and it is within; else its opposite."""
        turned = (
            None
            if self._labels[-1] or stays[-1]
            else self._within(np.append(row[:-1], -row[-1]))
        )
        return (
            self.opposite(row, stays)
            if turned is None
            else np.where(stays, row, turned)
        )

    @property
    def shortest(self) -> Floats:
        """The shortest record."""
        shortest: Floats = self._rows[
            int(np.argmin(np.linalg.norm(self._rows, axis=1)))
        ]
        return shortest

    @property
    def quiet(self) -> Floats:
        """Zeros where they are within the ranges, else the shortest record: for records that are the same in both inputs."""
        low, high = self._ranges
        zeros = np.where(self._labels, self.shortest, 0.0)
        return zeros if ((low <= zeros) & (zeros <= high)).all() else self.shortest

    def opposite(self, row: Floats, stays: Any = FREE) -> Floats:
        """Return the record that is most unlike one: it turned round where that is within, else the farthest there is.

        Args:
            row: The one.
            stays: Which parts of it are to stay.
        """
        like, rows = self._sides[0], self._rows
        if like.is_in_columns:
            turned = self._within(np.where(self._labels | stays, row, -row))
            if turned is not None and not _same(turned, row):
                return np.where(stays, row, turned)
            mixed = np.where(stays, row, rows)
            rows = mixed[self._is_between(mixed)]
        elif stays.any():
            kept = (like.stays(row, other) for other in rows)
            rows = rows[
                [
                    len(same) == len(stays) and bool((same | ~stays).all())
                    for same in kept
                ]
            ]
        rows = np.concatenate([row[None], rows])
        farthest: Floats = rows[int(np.argmax(np.linalg.norm(rows - row, axis=1)))]
        return farthest

    def _pair(
        self, row: Floats, rest: Floats, place: int, turn: int, name: str = ""
    ) -> Pair:
        """Return the pair of a record that is there or not, or is another one, among others; by turns, one of two."""
        like, (one, other) = self._sides[0], self.both(row, turn)
        full = like.made(np.insert(rest, place, one, axis=0))
        if self.reading == ADDED:
            return Pair(full, like.made(rest), name)
        return Pair(full, like.made(np.insert(rest, place, other, axis=0)), name)

    def both(self, row: Floats, turn: int = 0) -> tuple[Floats, Floats]:
        """Return a record, and the one that takes its place; by turns, one of two."""
        _, stays, absent, zeros = self._change
        if absent is None:
            return row, (self.opposite, self._against)[turn % 2](row, stays)
        row = np.where(zeros, absent, row)
        return row, np.where(stays, row, absent)

    def corner_cases(self) -> list[Pair]:
        """Return records to change among the others as given and among other ones: few show some of each."""
        place = self._change.place
        both = [
            (ROWS * k + turn, turn, row, rest)
            for k, row in enumerate(self.candidates)
            for turn, rest in enumerate(self._rests(row))
        ]
        ordered = sorted(both, key=lambda each: each[0])
        return different(
            self._pair(row, rest, min(place, len(rest)), turn, "like the given")
            for _, turn, row, rest in ordered
        )

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return pairs with any record of the ranges, among others as given or like it."""
        low, high = self._ranges
        values = [np.unique(column).tolist() for column in self._rows.T]
        columns = [
            st.sampled_from(known)
            if label
            else st.integers(0, GRID).map(partial(_between, a, b))
            for known, label, a, b in zip(values, self._labels, low, high, strict=True)
        ]
        size = max(len(side.rows) for side in self._sides)

        @st.composite
        def pairs(draw: st.DrawFn) -> Pair:
            row = self._within(np.array(draw(st.tuples(*columns)), float))
            row = (
                row
                if row is not None and self._is_changed(row)
                else draw(st.sampled_from(self.candidates))
            )
            turn, rest = draw(st.sampled_from([*enumerate(self._rests(row))]))
            made = self._pair(row, rest, draw(st.integers(0, size - 1)), turn)
            return made if different([made]) else st.reject()

        return pairs()


def changed_record(pair: Pair) -> tuple[int, tuple[int, int]] | None:
    """Return the place of the one record in which a pair differs, and the records of either input; None where it is none."""
    try:
        alike = Alike([pair])
    except AdjacencyError:
        return None
    one, other = alike._sides
    return alike._change.place, (len(one.rows), len(other.rows))


def _between(low: float, high: float, part: int) -> float:
    return float(low + part / GRID * (high - low))


def _is_empty(data: Any) -> bool:
    try:
        return len(data) == 0
    except TypeError:  # of what has no records
        return False


def _same(one: Any, other: Any) -> bool:
    return np.array_equal(one, other, equal_nan=True)
