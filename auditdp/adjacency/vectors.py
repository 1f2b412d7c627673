"""The adjacencies of vectors: query answers of bounded sensitivity, and local DP."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from auditdp.adjacency import strategies as st
from auditdp.adjacency.adjacency import (
    LIMITS,
    Pair,
    different,
    is_integer,
    places,
    require_change,
    require_integer,
    sides,
)
from auditdp.adjacency.corner_cases import Domain, numbers
from auditdp.errors import AdjacencyError
from auditdp.mechanism.protocol import brief
from auditdp.numerics.arrays import is_number

Vector = NDArray[np.float64]
Steps = Sequence[float] | Vector
"""A vector of answers in units of the sensitivity."""

MAX_CORNER_ANSWER = 2**52
"""Largest answer of a corner case, in units of the sensitivity.

A double holds all integers up to 2^53, so a step of one is exact.
"""
REACH = 10
"""Largest absolute answer that ``strategy`` generates, in units of the sensitivity."""
GRID_STEPS = 16
"""Number of grid steps between the ends of a box, for generated coordinates."""


def _is_finite(number: Any) -> bool:
    return is_number(number) and math.isfinite(number)


class _VectorsOfLengths:
    """Base of the adjacencies whose inputs are vectors of numbers.

    Attributes:
        shortest: The smallest length, or None if all vectors have the same length.
    """

    shortest: int | None
    _entries: str
    """The plural noun for the entries of a vector in error messages."""

    @property
    def name(self) -> str:
        """The name of the adjacency."""
        raise NotImplementedError

    @property
    def _longest(self) -> int:
        """The largest length."""
        raise NotImplementedError

    @property
    def _shortest(self) -> int:
        if self.shortest is None:
            return self._longest
        return self.shortest

    def _check_shortest(self) -> None:
        if not is_integer(self._shortest) or not 1 <= self._shortest <= self._longest:
            raise AdjacencyError(
                f"{type(self).__name__}: expected shortest in 1..{self._longest}, "
                f"got {self.shortest!r}"
            )

    def _vectors(self, pair: Pair) -> list[Vector]:
        """Return both inputs as float64, after a check of lengths and domain."""
        vectors = [self._vector(which, data) for which, data in sides(pair)]
        if len(vectors[0]) != len(vectors[1]):
            raise AdjacencyError(
                f"{self.name}: the vectors have {len(vectors[0])} and "
                f"{len(vectors[1])} {self._entries}, expected equally many"
            )
        return vectors

    def _vector(self, which: str, data: Any) -> Vector:
        array = np.asarray(data)
        if (
            array.ndim != 1
            or not self._shortest <= len(array) <= self._longest
            or array.dtype.kind not in "iuf"
        ):
            raise AdjacencyError(
                f"{self.name}: {which} is not such a vector of numbers: {brief(data)}"
            )
        problem = self._problem(array)
        if problem:
            raise AdjacencyError(f"{self.name}: {which} {problem}: {brief(data)}")
        return array.astype(np.float64)

    def _problem(self, array: Vector) -> str:
        """Return an error text if an entry is outside the domain, or else ''."""
        raise NotImplementedError

    def _length(self) -> st.SearchStrategy[int]:
        return st.integers(self._shortest, self._longest)

    def _draw(self, draw: st.DrawFn, number: st.SearchStrategy[float]) -> Vector:
        """Draw a vector whose entries are all equal, or are drawn one by one."""
        length = draw(self._length())
        if draw(st.booleans()):
            return np.array([draw(number)] * length)
        return np.array(draw(st.lists(number, min_size=length, max_size=length)))


@dataclass(frozen=True)
class QueryAnswers(_VectorsOfLengths):
    """Vectors of query answers, float64, shape (length,); one or all answers change.

    With change "one", neighbours differ in exactly one answer, by at most the
    sensitivity. Such answers are disjoint counts, as in a histogram, of databases that
    differ in one record. With "all", every answer may differ by at most the
    sensitivity, in either direction. Such answers belong to arbitrary queries of that
    sensitivity. Every "one" pair is also an "all" pair.

    Source: Ding, Wang, Wang, Zhang & Kifer (2018), "Detecting Violations of
    Differential Privacy", CCS (arXiv:1805.10277): the patterns that ``pairs`` lists, in
    units of the sensitivity.

    Args:
        length: Number of answers, >= 1.
        change: "one" or "all".
        sensitivity: Largest change of an answer, finite and > 0.
        shortest: Smallest number of answers. Vectors of shortest..length answers are
            inputs too, so that a counterexample can shrink to the fewest answers. By
            default, every vector has ``length`` answers.
        largest: If given, an answer is the sensitivity times an integer in 0..largest.
            The set of inputs is then finite, so exact evidence can enumerate all pairs,
            unless ``shortest`` is given.

    Raises:
        AdjacencyError: If an argument is out of range.
    """

    length: int
    change: Literal["one", "all"] = "one"
    sensitivity: float = 1.0
    shortest: int | None = None
    largest: int | None = None

    _entries = "answers"

    def __post_init__(self) -> None:
        require_integer(self, "length", 1)
        require_change(self, "one", "all")
        if not (_is_finite(self.sensitivity) and self.sensitivity > 0):
            raise AdjacencyError(
                "QueryAnswers: expected a finite sensitivity > 0, "
                f"got {self.sensitivity!r}"
            )
        self._check_shortest()
        if self.largest is not None:
            require_integer(self, "largest", 1)

    @property
    def _longest(self) -> int:
        return self.length

    @property
    def _highest(self) -> float:
        if self.largest is None:
            return math.inf
        return self.largest

    @property
    def name(self) -> str:
        """The adjacency, its sizes and its domain."""
        lengths = f"{self.length}"
        if self.shortest is not None:
            lengths = f"{self.shortest} to {self.length}"
        answers = "answer" if self.length == 1 else "answers"
        which = {"one": "one answer changes", "all": "all answers may change"}
        domain = "" if self.largest is None else f", counts 0..{self.largest}"
        return (
            f"{lengths} query {answers}, {which[self.change]} by at most "
            f"{self.sensitivity:g}{domain}"
        )

    def check(self, pair: Pair) -> None:
        """Raise unless both vectors are in the domain and differ by the change."""
        a, b = self._vectors(pair)
        count = int((a != b).sum())
        if count == 0 or (self.change == "one" and count > 1):
            expected = "exactly" if self.change == "one" else "at least"
            raise AdjacencyError(
                f"{self.name}: the vectors differ in {count} answers, expected "
                f"{expected} one: {pair}"
            )
        gap = float(np.abs(a - b).max())
        if gap > self.sensitivity:
            raise AdjacencyError(f"{self.name}: an answer changes by {gap:g}: {pair}")

    def _problem(self, array: Vector) -> str:
        if not np.isfinite(array).all():
            return "holds answers that are not finite"
        if self.largest is not None:
            counts = self.sensitivity * np.arange(self.largest + 1)
            if not np.isin(array, counts).all():
                return "holds answers other than these counts"
        return ""

    def _pair(self, data: Steps, neighbour: Steps, name: str = "") -> Pair:
        a, b = (self.sensitivity * np.array(x, np.float64) for x in (data, neighbour))
        return Pair(a, b, name)

    def pairs(self) -> list[Pair]:
        """Return the patterns of Ding et al. that the adjacency allows, "one" first."""
        k = self.length
        half = k // 2
        # Each pattern compares ones with some equal answers, followed by equal others.
        patterns = [("one below", 0, 1, 1), ("one above", 2, 1, 1)]
        if self.change == "all" and k > 1:
            patterns += [
                ("one above, rest below", 2, 0, 1),
                ("one below, rest above", 0, 2, 1),
                ("half above, half below", 2, 0, half),
                ("all above", 2, 2, k),
                ("all below", 0, 0, k),
            ]
        listed = []
        for name, first, rest, count in patterns:
            answers = [first] * count + [rest] * (k - count)
            if max(answers) <= self._highest:
                listed.append(self._pair([1] * k, answers, name))
        if self.change == "all" and k > 1:
            swapped = [0] * half + [1] * (k - half)
            answers = [1 - answer for answer in swapped]
            listed.append(self._pair(answers, swapped, "halves swapped"))
        return listed

    def corner_cases(self) -> list[Pair]:
        """Return pairs in which one answer changes by the sensitivity.

        The other answers are zeros, or the vector is one at which code breaks: with an
        end of the domain, a limit of integers, a sum just below such a limit, or ties.
        """
        k = self.length
        bases: list[tuple[list[Any], int]] = [
            ([0] * k, place) for place in range(min(k, LIMITS.changed_places))
        ]
        lowest = None if self.largest is None else 0
        for count in numbers(lowest, self.largest, whole=True):
            if abs(count) > MAX_CORNER_ANSWER:
                continue
            bases.append(([count] * k, k - 1))
            for place, _ in places(k):
                base = [0] * k
                base[place] = count
                bases.append((base, place))
        if k > 1:
            domain = Domain(0, min(self._highest, MAX_CORNER_ANSWER), whole=True)
            for limit in domain.limits(k):
                below = domain.summing(limit - 1, k)
                bases += [(below[::-1], 0), (below, k - 1)]
        pairs = []
        for base, place in bases:
            # A step up from the largest count would leave the domain.
            if base[place] < self._highest:
                moved = [*base]
                moved[place] += 1
                pairs.append(self._pair(moved, base, "corner case"))
        return different(pairs)

    def exhaustive(self) -> list[Pair] | None:
        """Return every unordered pair of neighbouring count vectors.

        Counts of neighbours differ by whole sensitivities.

        Returns:
            The pairs, or None if there are too many, if ``largest`` is not given, or
            if ``shortest`` is given.
        """
        if self.largest is None or self.shortest is not None:
            return None
        values = range(self.largest + 1)
        ordered_pairs = 2 * self.length * len(values) ** self.length
        if self.change == "all":
            ordered_pairs = (3 * len(values) - 2) ** self.length
        # Each unordered pair counts twice. With "all", a coordinate can have 3 v - 2
        # combinations of a value and this or the next value, if v is their number.
        if ordered_pairs > 2 * LIMITS.exhaustive_pairs:
            return None
        return [
            self._pair(b, a)
            for a in product(values, repeat=self.length)
            for b in self._near(a, values)
            if a < b
        ]

    def _near(
        self, vector: tuple[int, ...], values: range
    ) -> Iterable[tuple[int, ...]]:
        """Yield the vector and its neighbours, all in units of the sensitivity."""
        answers = [[y for y in (x, x + 1, x - 1) if y in values] for x in vector]
        if self.change == "all":
            return product(*answers)
        return (
            (*vector[:place], answer, *vector[place + 1 :])
            for place in reversed(range(len(vector)))
            for answer in answers[place]
        )

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return pairs whose answers are small multiples of the sensitivity.

        The simplest pair has zeros and one answer that differs. With ``largest``, the
        answers are any counts.
        """
        low, high = (-REACH, REACH) if self.largest is None else (0, self.largest)

        @st.composite
        def pairs(draw: st.DrawFn) -> Pair:
            k = draw(self._length())
            base = draw(st.lists(st.integers(low, high), min_size=k, max_size=k))
            # With "all", the steps are arbitrary, but at least one answer changes.
            step = [0] * k
            if self.change == "all":
                any_step = st.sampled_from((0, 1, -1))
                step = draw(st.lists(any_step, min_size=k, max_size=k))
            step[draw(st.integers(0, k - 1))] = draw(st.sampled_from((1, -1)))
            moved = []
            for answer, change in zip(base, step, strict=True):
                # A step out of the domain is reversed. The domain has two values or
                # more, so the reversed step stays inside.
                inside = low <= answer + change <= high
                moved.append(answer + change if inside else answer - change)
            return self._pair(moved, base)

        return pairs()

    def wide(self) -> st.SearchStrategy[Pair]:
        """Return pairs of any counts; without ``largest``, large numbers and fractions.

        The numbers are multiples of the sensitivity: integers up to 10^6, and fractions
        up to 2^30. The answers of a vector are drawn one by one, or are all equal but
        for one.
        """
        if self.largest is not None:
            return self.strategy()
        number = st.one_of(
            st.integers(-REACH, REACH).map(float),
            st.integers(-(10**6), 10**6).map(float),
            st.integers(-(2**40), 2**40).map(lambda x: x / 2**10),
        )
        change = st.sampled_from((1.0, -1.0, 0.5, -0.5, 0.125))

        @st.composite
        def pairs(draw: st.DrawFn) -> Pair:
            base = self._draw(draw, number)
            place = st.integers(0, len(base) - 1)
            base[draw(place)] = draw(number)
            moved = base.copy()
            if self.change == "one" or draw(st.booleans()):
                moved[draw(place)] += draw(change)
            else:
                moved += draw(change)
            pair = self._pair(moved, base)
            try:
                self.check(pair)
            except AdjacencyError:
                # Rounding made the change too large, or made the vectors equal.
                st.reject()
            return pair

        return pairs()


@dataclass(frozen=True)
class Box(_VectorsOfLengths):
    """Local DP over vectors of numbers: any two vectors of a box are neighbours.

    An input is a vector of [low, high]^dimension, float64, shape (dimension,).

    Args:
        low: Smallest value of a coordinate.
        high: Largest value of a coordinate, > low.
        dimension: Number of coordinates, >= 1.
        shortest: Smallest number of coordinates. Vectors of shortest..dimension
            coordinates are inputs too, so that a counterexample can shrink to the
            fewest coordinates. Both vectors of a pair have the same number. By default,
            every vector has ``dimension`` coordinates.

    Raises:
        AdjacencyError: If an argument is out of range.
    """

    low: float
    high: float
    dimension: int = 1
    shortest: int | None = None

    _entries = "coordinates"

    def __post_init__(self) -> None:
        are_finite = _is_finite(self.low) and _is_finite(self.high)
        if not (are_finite and self.low < self.high):
            raise AdjacencyError(
                f"Box: expected finite low < high, got {self.low!r} and {self.high!r}"
            )
        require_integer(self, "dimension", 1)
        self._check_shortest()

    @property
    def _longest(self) -> int:
        return self.dimension

    @property
    def name(self) -> str:
        """The adjacency and its domain."""
        interval = f"[{self.low:g}, {self.high:g}]"
        if self.dimension == 1:
            return f"value LDP (any two numbers of {interval})"
        lengths = f"{self.dimension}"
        if self._shortest != self.dimension:
            lengths = f"{self._shortest} to {self.dimension}"
        return f"value LDP (any two vectors of {interval}, {lengths} coordinates)"

    def check(self, pair: Pair) -> None:
        """Raise unless both are vectors of the box, of one length, and differ."""
        a, b = self._vectors(pair)
        if (a == b).all():
            raise AdjacencyError(
                f"{self.name}: the two vectors are equal: {brief(pair.data)}"
            )

    def _problem(self, array: Vector) -> str:
        is_inside = ((array >= self.low) & (array <= self.high)).all()
        if is_inside:
            return ""
        return "has coordinates outside the box"

    def pairs(self) -> list[Pair]:
        """Return pairs of corners of the box, and pairs with its middle."""
        k = self.dimension
        values = (self.low, self.high, (self.low + self.high) / 2)
        low, high, middle = (np.full(k, value) for value in values)
        single, split = low.copy(), low.copy()
        single[0] = self.high
        split[: k // 2] = self.high
        patterns = [
            Pair(high, low, "highest against lowest"),
            Pair(middle, low, "middle against lowest"),
            Pair(high, middle, "highest against middle"),
        ]
        if k > 1:
            patterns.append(Pair(single, low, "one coordinate"))
        if k > 2:
            name = "half up, half down, against the reverse"
            patterns.append(Pair(split, self.low + self.high - split, name))
        return patterns

    def corner_cases(self) -> list[Pair]:
        """Return pairs at which code breaks.

        First come pairs of constant vectors inside the box. Then come vectors with a
        number at which code breaks, in all coordinates or in one. Their neighbour is
        the lowest vector, or a constant vector of another such number. Other pairs have
        sums just below and above a limit of integers.
        """
        # Code may clip at the ends, and treat all values near the middle alike, so
        # vectors strictly inside the box and near its ends are tried first.
        inner_steps = (GRID_STEPS - 2, GRID_STEPS - 3, 2)
        inside = [self._at([step] * self.dimension) for step in inner_steps]
        pairs = list(permutations(inside, 2))
        values = numbers(self.low, self.high, whole=False)
        for size in dict.fromkeys((self._shortest, self.dimension)):
            low = np.full(size, float(self.low))
            for before, value in zip([float(self.high), *values], values, strict=False):
                constant = np.full(size, value)
                pairs += [(constant, low), (constant, np.full(size, before))]
                if size > 1:
                    for place, _ in places(size):
                        single = low.copy()
                        single[place] = value
                        pairs.append((single, low))
            domain = Domain(self.low, self.high)
            for limit in domain.limits(size):
                below = np.array(domain.summing(limit - 1, size))
                above = below.copy()
                above[-1] = min(below[-1] + 2, self.high)
                pairs.append((above, below))
        return different(Pair(a, b, "corner case") for a, b in pairs if (a != b).any())

    def exhaustive(self) -> None:
        """Return None, because the box is a continuum."""

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return pairs of grid vectors; in the simplest, one coordinate differs."""

        @st.composite
        def pairs(draw: st.DrawFn) -> Pair:
            k = draw(self._length())
            steps = st.lists(st.integers(0, GRID_STEPS), min_size=k, max_size=k)
            base, other = draw(steps), draw(steps)
            # Another step keeps the draw, which would otherwise be rejected.
            if base == other:
                other[0] = (other[0] + 1) % (GRID_STEPS + 1)
            return Pair(self._at(other), self._at(base))

        return pairs()

    def wide(self) -> st.SearchStrategy[Pair]:
        """Return pairs of any vector and another one.

        The other one is constant, or differs in one coordinate.
        """
        number = st.floats(self.low, self.high)

        @st.composite
        def pairs(draw: st.DrawFn) -> Pair:
            base = self._draw(draw, number)
            other = base.copy()
            value = draw(number)
            place: Any = slice(None)
            if draw(st.booleans()):
                place = draw(st.integers(0, len(base) - 1))
            other[place] = value
            st.assume(bool((base != other).any()))
            return Pair(other, base)

        return pairs()

    def _at(self, steps: list[int]) -> Vector:
        """Return the vector of the box whose coordinates are given in grid steps."""
        share = np.array(steps) / GRID_STEPS
        return np.asarray(self.low * (1 - share) + self.high * share)
