"""Pairs like a given pair: the same change, of other records among other data.

An audit of a trainer is usually given one pair, such as the data with and without a
record. Another record, or other data beside it, may move every training step as far as
clipping allows. The given pair states how neighbours differ, and its data state the
form of a record. The length of a record is its Euclidean norm. All generated pairs have
these limits:

- No pair changes more kinds of things than the given one: parts of a replaced record
  that are the same in both given inputs, such as features beside a changed label, are
  the same in both inputs of every pair, unless a user names a wider change.
- The number of records is the given one, since an accountant's sampling rate may rest
  on it.
- Every number is within the range of its column in the data. Every record is no longer
  than the longest in the data. If a record has features and labels, this holds for
  each of them.
- The record that changes is no shorter than the shortest in the data, since code may
  divide by its length.
- Whole numbers, such as labels, are values that occur in the data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from auditdp.adjacency import strategies as st
from auditdp.adjacency.adjacency import LIMITS, GivenPairs, Pair, different
from auditdp.adjacency.tabular import Tabular, by_number, same_entries, tabular
from auditdp.errors import AdjacencyError
from auditdp.numerics.arrays import Floats

GRID_STEPS = 64
"""Number of equal steps of a range; generated numbers are multiples of a step.

A step is so large that the rounding of sums does not become visible.
"""
MAX_LABELS = 10
"""Largest number of distinct values with which whole numbers count as labels.

A column of an integer type is a label with any number of values.
"""
LENGTH_RTOL = 1e-9
"""Relative tolerance of lengths and ranges, for rounding."""

RECORD_ADDED = "one record added or removed"
RECORD_ABSENT = "one record put to {:g}"
RECORD_REPLACED = "one record replaced"
OTHERS_UNCHANGED = "{} of {} parts of {}, the others unchanged"

FREE = np.zeros(1, bool)
"""Bools of ``_Change`` if no part of the record is fixed; they are broadcast."""


class _Change(NamedTuple):
    """The change of one record between the two inputs of a pair.

    Attributes:
        place: The index of the record.
        unchanged: Bools, one per part of the record: whether the part is the same in
            both inputs.
        absent: The row that stands for an absent record, such as zeros, or None if the
            record is removed or replaced.
        zeros: Bools, one per number of the record: whether both inputs have the number
            of ``absent`` there.
    """

    place: int
    unchanged: Any = FREE
    absent: Floats | None = None
    zeros: Any = FREE


@dataclass(frozen=True)
class Alike(GivenPairs):
    """Pairs that differ in one record as a given pair does, within limits of its data.

    The module's docstring describes the limits.

    Args:
        given: The pairs to play. The first one states how neighbours differ, and the
            form of a record. An input is a sequence of records, an array or a tensor of
            records, or a tuple, a dict or a ``TensorDataset`` of arrays of one length,
            such as features and labels. A record is a number or a sequence of numbers.
            Records of any other kind, such as documents or users with examples, are
            only replaced by other records of the data.
        change: How neighbours differ, such as 'one record replaced': a key of
            ``readings``, by default the narrowest.
        wider: Factor by which ranges and lengths are wider than in the data, >= 1.

    Raises:
        AdjacencyError: If the first pair does not differ in one record, or not by that
            change, or its inputs have another form.
    """

    wider: float = 1.0

    def __post_init__(self) -> None:
        if not self.wider >= 1:
            raise AdjacencyError(
                f"Alike: expected wider >= 1, got wider={self.wider!r}"
            )
        super().__post_init__()

    @property
    def name(self) -> str:
        """The change of neighbours, and the ranges of the search."""
        wider = "" if self.wider == 1 else f" {self.wider:g} times"
        return (
            "pairs as given (adjacency not checked); neighbours searched: "
            f"{self.reading}, within{wider} the data's ranges"
        )

    @cached_property
    def _sides(self) -> tuple[Tabular, Tabular]:
        """Both inputs of the first pair; an empty one takes its form from the other."""
        both = self.given[0].data, self.given[0].neighbour
        try:
            tables = [None if _is_empty(data) else tabular(data) for data in both]
        except AdjacencyError as error:
            try:
                tables = [*by_number(*both)]
            except AdjacencyError:
                raise error from None
        like = tables[0] or tables[1]
        if like is None:
            raise AdjacencyError(f"Alike: both inputs are empty: {self.given[0]}")
        empty = replace(like, rows=like.rows[:0])
        return tables[0] or empty, tables[1] or empty

    @property
    def _form(self) -> Tabular:
        return self._sides[0]

    @cached_property
    def readings(self) -> dict[str, _Change]:
        """The changes that explain how the first pair differs, the narrowest first.

        The keys are texts for reports.
        """
        first, second = (side.rows for side in self._sides)
        shorter, longer = sorted((first, second), key=len)
        size = len(shorter)
        if first.shape[1:] == second.shape[1:]:
            is_same = same_entries(longer[:size], shorter).all(axis=1)
            changed = [*np.flatnonzero(~is_same).tolist(), size]
            place = changed[0]
            if len(longer) == size and len(changed) == 2:
                return self._replacements(place, second[place], first[place])
            if len(longer) == size + 1:
                rest = np.delete(longer, place, axis=0)
                if np.array_equal(rest, shorter, equal_nan=True):
                    return {RECORD_ADDED: _Change(place)}
        raise AdjacencyError(
            f"Alike: the inputs do not differ in one record: {self.given[0]}"
        )

    def _replacements(
        self, place: int, first: Floats, second: Floats
    ) -> dict[str, _Change]:
        """Return the readings of a pair in which one record is replaced.

        The replacement is an absent record such as zeros, or the same record with other
        parts, or any other record.
        """
        changes: dict[str, _Change] = {}
        unchanged = self._form.unchanged(first, second)
        equal = same_entries(first, second)
        # Features alone may be put to 0, so that a label which is the same in both
        # inputs belongs to no absent record.
        labels = equal & self._labels & (not self._labels.all())
        absent = [
            row
            for row in (first, second)
            if not np.nan_to_num(np.where(labels, 0, row)).any()
        ]
        if absent:
            name = RECORD_ABSENT.format(absent[0].flat[0])
            zeros = equal & ~labels
            if zeros.any():
                narrow = OTHERS_UNCHANGED.format((~equal).sum(), len(equal), name)
                changes[narrow] = _Change(place, labels, absent[0], zeros)
            changes[name] = _Change(place, labels, absent[0])
        elif unchanged.any():
            count = (~unchanged).sum()
            narrow = OTHERS_UNCHANGED.format(count, len(unchanged), RECORD_REPLACED)
            changes[narrow] = _Change(place, unchanged)
        changes[RECORD_REPLACED] = _Change(place)
        return changes

    @cached_property
    def _rows(self) -> Floats:
        """The distinct rows of both inputs, without rows that have a NaN."""
        rows = np.concatenate([side.rows for side in self._sides])
        return np.unique(rows[~np.isnan(rows).any(axis=1)], axis=0)

    @cached_property
    def _by_length(self) -> Floats:
        """The distinct rows, the longest first."""
        lengths = np.linalg.norm(self._rows, axis=1)
        by_length: Floats = self._rows[np.argsort(-lengths, kind="stable")]
        return by_length

    @cached_property
    def _ranges(self) -> tuple[Floats, Floats]:
        """The smallest and the largest allowed value of each column."""
        low, high = self._rows.min(axis=0), self._rows.max(axis=0)
        more = (self.wider - 1) / 2 * (high - low) * ~self._labels
        return low - more, high + more

    @cached_property
    def _labels(self) -> Any:
        """Bools, one per column: whether its values are labels."""
        is_short = [len(np.unique(column)) <= MAX_LABELS for column in self._rows.T]
        is_whole = (self._rows == np.round(self._rows)).all(axis=0)
        return self._form.whole | (np.array(is_short) & is_whole)

    @cached_property
    def _length_limits(self) -> tuple[Floats, Floats]:
        """The smallest and the largest allowed lengths, one per part of a record."""
        lengths = self._lengths(self._rows)
        shortest = lengths.min(axis=0) / self.wider * (1 - LENGTH_RTOL)
        return shortest, lengths.max(axis=0) * self.wider * (1 + LENGTH_RTOL)

    def _lengths(self, rows: Floats) -> Floats:
        """Return the length of each part of each row, shape (rows, parts)."""
        lengths = [np.linalg.norm(rows[:, part], axis=1) for part in self._form.parts]
        return np.stack(lengths, axis=1)

    def _within(self, row: Floats) -> Floats | None:
        """Return a row with its parts shortened to the largest allowed length.

        Returns:
            The row, or None if it is outside the ranges or too short.
        """
        row = row.copy()
        lengths = self._lengths(row[None])[0]
        limits = self._length_limits[1] / (1 + LENGTH_RTOL)
        # Labels are no numbers that could be shortened.
        for part, length, longest in zip(
            self._form.parts, lengths, limits, strict=True
        ):
            if length > longest:
                row[part] *= np.where(self._labels[part], 1.0, longest / length)
        low, high = self._ranges
        is_inside = (row >= low - LENGTH_RTOL * np.abs(low)) & (
            row <= high + LENGTH_RTOL * np.abs(high)
        )
        if is_inside.all() and self._has_length(row[None])[0]:
            return row
        return None

    def _has_length(self, rows: Floats) -> Any:
        """Return bools, one per row: whether the lengths of its parts are allowed."""
        shortest, longest = self._length_limits
        lengths = self._lengths(rows)
        return ((lengths >= shortest) & (lengths <= longest)).all(axis=1)

    @cached_property
    def candidates(self) -> list[Floats]:
        """Rows of the records to change, such as long and short ones."""
        rows = self._rows
        columns = rows.shape[1]
        low, high = self._ranges
        longest = self._by_length[0]
        has_ranges = columns > 1 or not self._labels.all()
        # Single labels have no ranges, so the records of the data are all there are.
        count = LIMITS.long_records if has_ranges else LIMITS.known_records
        rows_to_try = [*self._by_length[:count], self._by_length[-1]]
        if self._keeps_parts_of_record:
            # Few records of the data have parts in common with another one.
            rows_to_try += [side.rows[self._change.place] for side in self._sides]
        if 1 < columns <= LIMITS.regression_columns:
            # The last number of a record, such as its label, may follow from the
            # others. The record with the largest residual moves a model most.
            others = np.column_stack([rows[:, :-1], np.ones(len(rows))])
            fit = np.linalg.lstsq(others, rows[:, -1], rcond=None)[0]
            rows_to_try.append(rows[int(np.argmax(np.abs(others @ fit - rows[:, -1])))])
            rows_to_try += [np.append(longest[:-1], end) for end in (low[-1], high[-1])]
        rows_to_try += [np.where(is_high, high, low) for is_high in self._corners()]
        rows_to_try.append(np.where(self._labels, longest, -longest))
        if self.wider > 1:
            rows_to_try.append(np.where(self._labels, longest, self.wider * longest))
        distinct: dict[bytes, Floats] = {}
        for each in rows_to_try:
            row = self._within(each)
            if row is not None and self._is_changed(row):
                distinct[row.tobytes()] = row
        return list(distinct.values())

    def _is_changed(self, row: Floats) -> bool:
        """Return True if a record can change.

        It cannot if rows are indices of records, and no other record has its fixed
        parts.
        """
        if not self._keeps_parts_of_record:
            return True
        return not np.array_equal(self.opposite(row, self._change.unchanged), row)

    @property
    def _keeps_parts_of_record(self) -> bool:
        """True if the change fixes parts of a record, and these are no columns.

        Rows are then indices of records, as by ``tabular.by_number``.
        """
        return bool(self._change.unchanged.any()) and not self._form.is_in_columns

    def _corners(self) -> list[Any]:
        """Return corners of the ranges: for each, bools that are true for a high end.

        With many columns these are all high or all low, the last column against the
        others, alternating ends, and random corners.
        """
        columns = self._rows.shape[1]
        if 2**columns <= LIMITS.range_corners:
            return list(product((1, 0), repeat=columns))
        is_high = np.ones(columns, bool)
        is_last = np.arange(columns) == columns - 1
        is_even = np.arange(columns) % 2 == 0
        fixed = [is_high, ~is_high, ~is_last, is_last, is_even]
        # The generator is fixed, so that an audit is reproducible.
        shape = (LIMITS.range_corners - 4, columns)
        drawn = np.random.default_rng(0).random(shape) < 0.5
        return [*fixed, *drawn][: LIMITS.range_corners]

    def _rests(self, row: Floats) -> list[Floats]:
        """Return several choices of the other data beside a record, each as rows.

        They are the given data; zeros or short records; copies of the record, of one
        against it (``_against``), of both by turns; and copies of the opposite record.
        A record with the opposite last number, such as a target, has the opposite
        gradient if the weights of a model begin at 0.
        """
        longer = max(self._sides, key=lambda side: len(side.rows)).rows
        rest = np.delete(longer, self._change.place, axis=0)
        against = self._against(row)
        is_even = np.arange(len(rest))[:, None] % 2 == 0

        def copies(record: Floats) -> Floats:
            return np.tile(record, (len(rest), 1))

        return [
            rest,
            copies(self.quiet),
            copies(row),
            copies(against),
            np.where(is_even, against, row),
            copies(self.opposite(row)),
        ]

    def _against(self, row: Floats, unchanged: Any = FREE) -> Floats:
        """Return a record with its last number negated, or else its opposite.

        The last number is only negated if it is no label, may change, and remains
        within its range.
        """
        if not self._labels[-1] and not unchanged[-1]:
            turned = self._within(np.append(row[:-1], -row[-1]))
            if turned is not None:
                return np.where(unchanged, row, turned)
        return self.opposite(row, unchanged)

    @property
    def shortest(self) -> Floats:
        """The shortest record."""
        shortest: Floats = self._rows[np.argmin(np.linalg.norm(self._rows, axis=1))]
        return shortest

    @property
    def quiet(self) -> Floats:
        """A record with little effect, for the part of the data that both inputs share.

        It is the shortest record, with 0 for every number that is not a label. If 0 is
        out of range, it is the shortest record unchanged.
        """
        low, high = self._ranges
        zeros = np.where(self._labels, self.shortest, 0.0)
        if ((low <= zeros) & (zeros <= high)).all():
            return zeros
        return self.shortest

    def opposite(self, row: Floats, unchanged: Any = FREE) -> Floats:
        """Return the negated record, or else the record that is farthest from it.

        Labels and fixed parts are not negated. The farthest record is returned if the
        negated one is outside the ranges or equal to ``row``, or if rows are indices of
        records. It is a record of the data with the fixed parts of ``row``.

        Args:
            row: The record.
            unchanged: Bools, one per part of the record: whether the part must be the
                same in both inputs.
        """
        rows = self._rows
        if self._form.is_in_columns:
            turned = self._within(np.where(self._labels | unchanged, row, -row))
            if turned is not None and not np.array_equal(turned, row):
                return np.where(unchanged, row, turned)
            # Parts of other records replace those that may change.
            mixed = np.where(unchanged, row, rows)
            rows = mixed[self._has_length(mixed)]
        elif unchanged.any():
            rows = rows[[self._keeps(row, other, unchanged) for other in rows]]
        rows = np.concatenate([row[None], rows])
        farthest: Floats = rows[np.argmax(np.linalg.norm(rows - row, axis=1))]
        return farthest

    def _keeps(self, row: Floats, other: Floats, unchanged: Any) -> bool:
        """Return True if two records are the same in all parts that are fixed."""
        same = self._form.unchanged(row, other)
        return len(same) == len(unchanged) and bool((same | ~unchanged).all())

    def _pair(
        self, row: Floats, rest: Floats, place: int, turn: int, name: str = ""
    ) -> Pair:
        """Return the pair in which a record changes, beside other data.

        Args:
            row: The record in the first input; ``both`` returns its replacement.
            rest: The other records of both inputs.
            place: The index of the record.
            turn: The choice of the replacement, as in ``both``.
            name: The name of the pair.
        """
        build = self._form.build
        first, second = self.both(row, turn)
        neighbour = rest
        if self.reading != RECORD_ADDED:
            neighbour = np.insert(rest, place, second, axis=0)
        data = np.insert(rest, place, first, axis=0)
        return Pair(build(data), build(neighbour), name)

    def both(self, row: Floats, turn: int = 0) -> tuple[Floats, Floats]:
        """Return a record, and the record that replaces it.

        With an even ``turn`` the replacement is ``opposite``: the negated record, if
        the limits allow it. With an odd one it is ``_against``: the record with its
        last number negated, if the limits allow it.

        If the change is to an absent record, such as zeros, ``turn`` has no effect. The
        replacement is the absent record, with the labels of the first one in columns in
        which the given inputs agree.

        Args:
            row: The record. If the change is to an absent record, it becomes absent in
                the columns in which both given inputs are.
            turn: The choice of the replacement.
        """
        _, unchanged, absent, zeros = self._change
        if absent is not None:
            row = np.where(zeros, absent, row)
            return row, np.where(unchanged, row, absent)
        if turn % 2:
            return row, self._against(row, unchanged)
        return row, self.opposite(row, unchanged)

    def corner_cases(self) -> list[Pair]:
        """Return pairs in which a candidate changes, beside the given or other data."""
        cases = []
        for k, row in enumerate(self.candidates):
            for turn, rest in enumerate(self._rests(row)):
                # Two kinds of other data are tried before another record, so that the
                # first cases have several records and several kinds of data.
                cases.append((2 * k + turn, turn, row, rest))
        cases.sort(key=lambda case: case[0])
        place = self._change.place
        return different(
            self._pair(row, rest, min(place, len(rest)), turn, "like the given")
            for _, turn, row, rest in cases
        )

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return pairs in which any record in the ranges changes.

        The other data are the given data, or copies of one record or of two.
        """
        low, high = self._ranges
        columns: list[st.SearchStrategy[float]] = []
        for k, is_label in enumerate(self._labels):
            if is_label:
                columns.append(st.sampled_from(np.unique(self._rows[:, k]).tolist()))
            else:
                steps = st.integers(0, GRID_STEPS)
                columns.append(steps.map(partial(_on_grid, low[k], high[k])))
        size = max(len(side.rows) for side in self._sides)

        @st.composite
        def pairs(draw: st.DrawFn) -> Pair:
            # Every draw gives a pair: a record outside the limits becomes a candidate.
            row = self._within(np.array(draw(st.tuples(*columns)), float))
            if row is None or not self._is_changed(row):
                row = draw(st.sampled_from(self.candidates))
            turn, rest = draw(st.sampled_from([*enumerate(self._rests(row))]))
            pair = self._pair(row, rest, draw(st.integers(0, size - 1)), turn)
            if different([pair]):
                return pair
            return st.reject()

        return pairs()


def changed_record(pair: Pair) -> tuple[int, tuple[int, int]] | None:
    """Return the index of the record that differs, and the sizes of both inputs.

    Returns:
        The index of the record, in the longer input if the sizes differ; and the
        numbers of records of data and neighbour. None if the inputs do not differ in
        one record, or are not in a form that ``Alike`` reads.
    """
    try:
        alike = Alike([pair])
    except AdjacencyError:
        return None
    first, second = alike._sides
    return alike._change.place, (len(first.rows), len(second.rows))


def _on_grid(low: float, high: float, step: int) -> float:
    return float(low + step / GRID_STEPS * (high - low))


def _is_empty(data: Any) -> bool:
    try:
        return len(data) == 0
    except TypeError:
        # The data are no sequence.
        return False
