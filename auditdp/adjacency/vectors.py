"""Neighbours among vectors of query answers: one answer changes, or any of them, each by at most the sensitivity.

Local DP over vectors of a box: any two of them are neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from auditdp.adjacency import strategies as st
from auditdp.adjacency.adjacency import (
    EVERY,
    MAX_EXHAUSTIVE,
    Pair,
    different,
    places,
    sides,
)
from auditdp.adjacency.corner_cases import Domain, numbers
from auditdp.errors import AdjacencyError
from auditdp.mechanism.protocol import brief

Answers = NDArray[np.float64]
MOST_EXACT = 2**52
"""Answers of corner cases are no larger: beyond, one more than a double may be that double."""
REACH = 10
"""Generated answers lie within this many sensitivities of zero."""


@dataclass(frozen=True)
class QueryAnswers:
    """Vectors of query answers, float64, shape (length,); neighbours change "one" of them, or "all" of them may change.

    With "one", neighbours differ in exactly one answer, by at most the sensitivity: disjoint counts, as in a histogram,
    of databases that differ in one record. With "all", every answer may differ by at most the sensitivity, in either
    direction: arbitrary queries of that sensitivity. Every "one" pair is also an "all" pair.

    Source: Ding, Wang, Wang, Zhang & Kifer (2018), "Detecting Violations of Differential Privacy", CCS
    (arXiv:1805.10277): the patterns that ``pairs`` lists, in units of the sensitivity.

    Args:
        length: Number of answers, >= 1.
        change: "one" or "all".
        sensitivity: Largest change of an answer, finite and > 0.
        shortest: Vectors of shortest..length answers are inputs too, so that a counterexample can shrink to the fewest
            answers; only ``length`` itself unless given.
        largest: Where given, an answer is an integer count in 0..largest times the sensitivity. Then the inputs are
            finitely many, and exact evidence can enumerate all pairs.

    Raises:
        AdjacencyError: If an argument is out of range.
    """

    length: int
    change: Literal["one", "all"] = "one"
    sensitivity: float = 1.0
    shortest: int | None = None
    largest: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.length, int | np.integer) or self.length < 1:
            raise AdjacencyError(
                f"QueryAnswers: expected length, an integer >= 1, got {self.length!r}"
            )
        if self.change not in ("one", "all"):
            raise AdjacencyError(
                f"QueryAnswers: expected change='one' or 'all', got {self.change!r}"
            )
        if not (np.isfinite(self.sensitivity) and self.sensitivity > 0):
            raise AdjacencyError(
                f"QueryAnswers: expected a finite sensitivity > 0, got {self.sensitivity!r}"
            )
        if self.shortest is not None and not 1 <= self.shortest <= self.length:
            raise AdjacencyError(
                f"QueryAnswers: expected shortest in 1..{self.length}, got {self.shortest!r}"
            )
        if self.largest is not None and self.largest < 1:
            raise AdjacencyError(
                f"QueryAnswers: expected largest, an integer >= 1, got {self.largest!r}"
            )

    @property
    def name(self) -> str:
        """The adjacency, its sizes and its domain."""
        lengths = (
            f"{self.length}"
            if self.shortest is None
            else f"{self.shortest} to {self.length}"
        )
        answers = "answer" if self.length == 1 else "answers"
        which = (
            "one answer changes" if self.change == "one" else "all answers may change"
        )
        domain = "" if self.largest is None else f", counts 0..{self.largest}"
        return f"{lengths} query {answers}, {which} by at most {self.sensitivity:g}{domain}"

    def check(self, pair: Pair) -> None:
        """Raise unless the two vectors are of the domain and differ as the adjacency says."""
        a, b = (self._vector(which, x) for which, x in sides(pair))
        if len(a) != len(b):
            raise AdjacencyError(
                f"{self.name}: the vectors have {len(a)} and {len(b)} answers, expected equally many"
            )
        differ, gap = int((a != b).sum()), float(np.abs(a - b).max())
        if differ == 0 or (self.change == "one" and differ > 1):
            raise AdjacencyError(
                f"{self.name}: the vectors differ in {differ} answers, expected "
                f"{'exactly' if self.change == 'one' else 'at least'} one: {pair}"
            )
        if gap > self.sensitivity:
            raise AdjacencyError(f"{self.name}: an answer changes by {gap:g}: {pair}")

    def _vector(self, which: str, data: Any) -> Answers:
        array = np.asarray(data)
        least = self.length if self.shortest is None else self.shortest
        if (
            array.ndim != 1
            or not least <= len(array) <= self.length
            or array.dtype.kind not in "iuf"
        ):
            raise AdjacencyError(
                f"{self.name}: {which} is not such a vector of numbers: {brief(data)}"
            )
        if not np.isfinite(array).all():
            raise AdjacencyError(
                f"{self.name}: {which} holds answers that are not finite: {brief(data)}"
            )
        if (
            self.largest is not None
            and not np.isin(array, self.sensitivity * np.arange(self.largest + 1)).all()
        ):
            raise AdjacencyError(
                f"{self.name}: {which} holds answers other than these counts: {brief(data)}"
            )
        return array.astype(np.float64)

    def _pair(
        self, data: Sequence[int], neighbour: Sequence[int], name: str = ""
    ) -> Pair:
        a, b = (self.sensitivity * np.array(x, np.float64) for x in (data, neighbour))
        return Pair(a, b, name)

    def pairs(self) -> list[Pair]:
        """Return the field's patterns that belong to the adjacency, one-differ patterns first."""
        k, h = self.length, self.length // 2
        ones = [1] * k
        patterns = [
            ("one below", ones, [0, *ones[1:]]),
            ("one above", ones, [2, *ones[1:]]),
        ]
        if self.change == "all" and k > 1:
            patterns += [
                ("one above, rest below", ones, [2] + [0] * (k - 1)),
                ("one below, rest above", ones, [0] + [2] * (k - 1)),
                ("half above, half below", ones, [2] * h + [0] * (k - h)),
                ("all above", ones, [2] * k),
                ("all below", ones, [0] * k),
                ("halves swapped", [1] * h + [0] * (k - h), [0] * h + [1] * (k - h)),
            ]
        most = 2 if self.largest is None else self.largest
        return [self._pair(a, b, name) for name, a, b in patterns if max(a + b) <= most]

    def corner_cases(self) -> list[Pair]:
        """Return a step of every answer, and steps at the ends of the domain, at limits of integers, in sums, of ties."""
        k, most = self.length, self.largest
        steps = [
            x
            for x in numbers(None if most is None else 0, most, whole=True)
            if abs(x) <= MOST_EXACT
        ]
        found: list[tuple[list[Any], int]] = [
            ([0] * k, place) for place in range(min(k, EVERY))
        ]
        for count in (x for x in steps if most is None or x < most):
            found.append(([count] * k, k - 1))
            for place, _ in places(k):
                base = [0] * k
                base[place] = count
                found.append((base, place))
        domain = Domain(0, MOST_EXACT if most is None else most, whole=True)
        for limit in domain.limits(k) if k > 1 else ():
            below = domain.summing(limit - 1, k)
            found += [(below[::-1], 0), (below, k - 1)]

        def moved(base: Sequence[int], place: int) -> list[int]:
            return [x + (j == place) for j, x in enumerate(base)]

        return different(
            self._pair(moved(base, place), base, "corner case")
            for base, place in found
            if most is None or base[place] < most
        )

    def exhaustive(self) -> list[Pair] | None:
        """Return every unordered pair of count vectors of the full length, or None where they are not few."""
        if self.largest is None or self.shortest is not None:
            return None
        values = self.largest + 1
        changed = (
            (3 * values - 2) ** self.length
            if self.change == "all"
            else 2 * self.length * values**self.length
        )
        if changed > 2 * MAX_EXHAUSTIVE:
            return None
        vectors = product(range(values), repeat=self.length)
        return [
            self._pair(b, a)
            for a in vectors
            for b in self._near(a, range(values))
            if a < b
        ]

    def _near(
        self, vector: tuple[int, ...], domain: range
    ) -> Iterable[tuple[int, ...]]:
        """Every vector of the domain that is it, or changed by whole sensitivities."""
        answers = [[y for y in (x, x + 1, x - 1) if y in domain] for x in vector]
        if self.change == "all":
            return product(*answers)
        return (
            (*vector[:i], y, *vector[i + 1 :])
            for i in reversed(range(len(vector)))
            for y in answers[i]
        )

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return pairs of small multiples of the sensitivity; the simplest has zeros and one answer that differs."""
        low, high = (-REACH, REACH) if self.largest is None else (0, self.largest)

        @st.composite
        def pairs(draw: st.DrawFn) -> Pair:
            k = draw(
                st.integers(
                    self.length if self.shortest is None else self.shortest, self.length
                )
            )
            base = draw(st.lists(st.integers(low, high), min_size=k, max_size=k))
            step = [0] * k
            if self.change == "all":
                step = draw(
                    st.lists(st.sampled_from((0, 1, -1)), min_size=k, max_size=k)
                )
            step[draw(st.integers(0, k - 1))] = draw(st.sampled_from((1, -1)))
            # A step out of the domain is turned round, which stays inside because the domain has two values or more.
            moved = [
                x + d if low <= x + d <= high else x - d
                for x, d in zip(base, step, strict=True)
            ]
            return self._pair(moved, base)

        return pairs()

    def wide(self) -> st.SearchStrategy[Pair]:
        """Return pairs of any counts of the domain; without ``largest``, of large numbers and fractions too.

        The answers of a vector are any, or all the same but for one.
        """
        if self.largest is not None:
            return self.strategy()
        far = st.integers(-(2**40), 2**40).map(lambda x: x / 2**10)
        number = st.one_of(
            st.integers(-REACH, REACH).map(float),
            st.integers(-(10**6), 10**6).map(float),
            far,
        )
        change = st.sampled_from((1.0, -1.0, 0.5, -0.5, 0.125))

        @st.composite
        def pairs(draw: st.DrawFn) -> Pair:
            k = draw(
                st.integers(
                    self.length if self.shortest is None else self.shortest, self.length
                )
            )
            base = np.array(
                [draw(number)] * k
                if draw(st.booleans())
                else draw(st.lists(number, min_size=k, max_size=k))
            )
            base[draw(st.integers(0, k - 1))] = draw(number)
            moved = base.copy()
            which = (
                draw(st.integers(0, k - 1))
                if self.change == "one" or draw(st.booleans())
                else slice(None)
            )
            moved[which] += draw(change)
            pair = Pair(self.sensitivity * moved, self.sensitivity * base)
            try:
                self.check(pair)
            except (
                AdjacencyError
            ):  # rounding made the change too large, or took it away
                st.reject()
            return pair

        return pairs()


STEPS = 16
"""Generated values lie on a grid of this many steps, which has the ends and the middle of the range."""
INNER = 14
"""A step near the end: code may clip at the ends, and leave out what is near the middle."""


@dataclass(frozen=True)
class Box:
    """Local DP over records of numbers: any two different vectors of [low, high]^dimension, float64, shape (dimension,).

    Args:
        low: Smallest value of a coordinate.
        high: Largest value of a coordinate, > low.
        dimension: Number of coordinates, >= 1.
        shortest: Vectors of shortest..dimension coordinates are inputs too, so that a counterexample can shrink to the
            fewest; both vectors of a pair have equally many. Only ``dimension`` itself unless given.

    Raises:
        AdjacencyError: If an argument is out of range.
    """

    low: float
    high: float
    dimension: int = 1
    shortest: int | None = None

    def __post_init__(self) -> None:
        if not (
            np.isfinite(self.low) and np.isfinite(self.high) and self.low < self.high
        ):
            raise AdjacencyError(
                f"Box: expected finite low < high, got {self.low!r} and {self.high!r}"
            )
        if not isinstance(self.dimension, int | np.integer) or self.dimension < 1:
            raise AdjacencyError(
                f"Box: expected dimension, an integer >= 1, got {self.dimension!r}"
            )
        if not 1 <= self._least <= self.dimension:
            raise AdjacencyError(
                f"Box: expected shortest in 1..{self.dimension}, got {self.shortest!r}"
            )

    @property
    def _least(self) -> int:
        return self.dimension if self.shortest is None else self.shortest

    @property
    def name(self) -> str:
        """The adjacency and its domain."""
        interval = f"[{self.low:g}, {self.high:g}]"
        if self.dimension == 1:
            return f"value LDP (any two numbers of {interval})"
        lengths = (
            f"{self.dimension}"
            if self._least == self.dimension
            else f"{self._least} to {self.dimension}"
        )
        return f"value LDP (any two vectors of {interval}, {lengths} coordinates)"

    def check(self, pair: Pair) -> None:
        """Raise unless both are vectors of the box, of one length, and differ."""
        a, b = (self._vector(which, x) for which, x in sides(pair))
        if len(a) != len(b):
            raise AdjacencyError(
                f"{self.name}: the vectors have {len(a)} and {len(b)} coordinates, expected equally many"
            )
        if (a == b).all():
            raise AdjacencyError(
                f"{self.name}: the two vectors are equal: {brief(pair.data)}"
            )

    def _vector(self, which: str, data: Any) -> NDArray[np.float64]:
        array = np.asarray(data)
        if (
            array.ndim != 1
            or not self._least <= len(array) <= self.dimension
            or array.dtype.kind not in "iuf"
        ):
            raise AdjacencyError(
                f"{self.name}: {which} is not such a vector of numbers: {brief(data)}"
            )
        if not ((array >= self.low) & (array <= self.high)).all():
            raise AdjacencyError(
                f"{self.name}: {which} has coordinates outside the box: {brief(data)}"
            )
        return array.astype(np.float64)

    def pairs(self) -> list[Pair]:
        """Return the corners first, then one coordinate that differs, the middle, and half up against half down."""
        d, h = self.dimension, self.dimension // 2
        low, high, middle = (
            np.full(d, x) for x in (self.low, self.high, (self.low + self.high) / 2)
        )
        single, split = low.copy(), low.copy()
        single[0] = self.high
        split[:h] = self.high
        patterns = [
            ("highest against lowest", high, low),
            ("middle against lowest", middle, low),
        ]
        patterns.append(("highest against middle", high, middle))
        if d > 1:
            patterns.append(("one coordinate", single, low))
        if d > 2:
            patterns.append(
                (
                    "half up, half down, against the reverse",
                    split,
                    self.low + self.high - split,
                )
            )
        return [Pair(a, b, name) for name, a, b in patterns]

    def corner_cases(self) -> list[Pair]:
        """Return vectors of boundary numbers against the lowest and the next ones, alone, first, last, and in a sum."""
        values = numbers(self.low, self.high, whole=False)
        inside = [
            self._at([k] * self.dimension) for k in (INNER, INNER - 1, STEPS - INNER)
        ]
        found = list(permutations(inside, 2))
        for size in dict.fromkeys((self._least, self.dimension)):
            low = np.full(size, float(self.low))
            for before, value in zip([float(self.high), *values], values, strict=False):
                found += [
                    (np.full(size, value), low),
                    (np.full(size, value), np.full(size, before)),
                ]
                for place, _ in places(size) if size > 1 else ():
                    one = low.copy()
                    one[place] = value
                    found.append((one, low))
            domain = Domain(self.low, self.high)
            for limit in domain.limits(size):
                below = np.array(domain.summing(limit - 1, size))
                above = below.copy()
                above[-1] = min(below[-1] + 2, self.high)
                found.append((above, below))
        return different(Pair(a, b, "corner case") for a, b in found if (a != b).any())

    def exhaustive(self) -> None:
        """Return None: the box is a continuum."""

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return two vectors on a grid; the simplest are short, with zeros steps from the low end and one that differs."""

        @st.composite
        def pairs(draw: st.DrawFn) -> Pair:
            k = draw(st.integers(self._least, self.dimension))
            steps = st.lists(st.integers(0, STEPS), min_size=k, max_size=k)
            base, other = draw(steps), draw(steps)
            if base == other:
                other[0] = (other[0] + 1) % (STEPS + 1)
            return Pair(self._at(other), self._at(base))

        return pairs()

    def wide(self) -> st.SearchStrategy[Pair]:
        """Return two vectors of any numbers of the box, which differ in one coordinate or in all."""
        number = st.floats(self.low, self.high)

        @st.composite
        def pairs(draw: st.DrawFn) -> Pair:
            k = draw(st.integers(self._least, self.dimension))
            base = np.array(
                [draw(number)] * k
                if draw(st.booleans())
                else draw(st.lists(number, min_size=k, max_size=k))
            )
            other = base.copy()
            other[
                draw(st.integers(0, k - 1)) if draw(st.booleans()) else slice(None)
            ] = draw(number)
            st.assume(bool((base != other).any()))
            return Pair(other, base)

        return pairs()

    def _at(self, steps: list[int]) -> NDArray[np.float64]:
        share = np.array(steps) / STEPS
        return np.asarray(self.low * (1 - share) + self.high * share)
