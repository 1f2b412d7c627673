"""Neighbours among vectors of query answers: one answer changes, or any of them, each by at most the sensitivity."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from auditdp.adjacency import strategies as st
from auditdp.adjacency.base import EVERY, MAX_EXHAUSTIVE, Pair, different, places, sides
from auditdp.adjacency.extremes import Domain, numbers
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
            raise AdjacencyError(f"QueryAnswers: expected length, an integer >= 1, got {self.length!r}")
        if self.change not in ("one", "all"):
            raise AdjacencyError(f"QueryAnswers: expected change='one' or 'all', got {self.change!r}")
        if not (np.isfinite(self.sensitivity) and self.sensitivity > 0):
            raise AdjacencyError(f"QueryAnswers: expected a finite sensitivity > 0, got {self.sensitivity!r}")
        if self.shortest is not None and not 1 <= self.shortest <= self.length:
            raise AdjacencyError(f"QueryAnswers: expected shortest in 1..{self.length}, got {self.shortest!r}")
        if self.largest is not None and self.largest < 1:
            raise AdjacencyError(f"QueryAnswers: expected largest, an integer >= 1, got {self.largest!r}")

    @property
    def name(self) -> str:
        """The adjacency, its sizes and its domain."""
        lengths = f"{self.length}" if self.shortest is None else f"{self.shortest} to {self.length}"
        answers = "answer" if self.length == 1 else "answers"
        which = "one answer changes" if self.change == "one" else "all answers may change"
        domain = "" if self.largest is None else f", counts 0..{self.largest}"
        return f"{lengths} query {answers}, {which} by at most {self.sensitivity:g}{domain}"

    def check(self, pair: Pair) -> None:
        """Raise unless the two vectors are of the domain and differ as the adjacency says."""
        a, b = (self._vector(which, x) for which, x in sides(pair))
        if len(a) != len(b):
            raise AdjacencyError(f"{self.name}: the vectors have {len(a)} and {len(b)} answers, expected equally many")
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
        if array.ndim != 1 or not least <= len(array) <= self.length or array.dtype.kind not in "iuf":
            raise AdjacencyError(f"{self.name}: {which} is not such a vector of numbers: {brief(data)}")
        if not np.isfinite(array).all():
            raise AdjacencyError(f"{self.name}: {which} holds answers that are not finite: {brief(data)}")
        if self.largest is not None and not np.isin(array, self.sensitivity * np.arange(self.largest + 1)).all():
            raise AdjacencyError(f"{self.name}: {which} holds answers other than these counts: {brief(data)}")
        return array.astype(np.float64)

    def _pair(self, data: Sequence[int], neighbour: Sequence[int], name: str = "") -> Pair:
        a, b = (self.sensitivity * np.array(x, np.float64) for x in (data, neighbour))
        return Pair(a, b, name)

    def pairs(self) -> list[Pair]:
        """Return the field's patterns that belong to the adjacency, one-differ patterns first."""
        k, h = self.length, self.length // 2
        ones = [1] * k
        patterns = [("one below", ones, [0, *ones[1:]]), ("one above", ones, [2, *ones[1:]])]
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
        steps = [x for x in numbers(None if most is None else 0, most, whole=True) if abs(x) <= MOST_EXACT]
        found: list[tuple[list[Any], int]] = [([0] * k, place) for place in range(min(k, EVERY))]
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
        changed = (3 * values - 2) ** self.length if self.change == "all" else 2 * self.length * values**self.length
        if changed > 2 * MAX_EXHAUSTIVE:
            return None
        vectors = product(range(values), repeat=self.length)
        return [self._pair(b, a) for a in vectors for b in self._near(a, range(values)) if a < b]

    def _near(self, vector: tuple[int, ...], domain: range) -> Iterable[tuple[int, ...]]:
        """Every vector of the domain that is it, or changed by whole sensitivities."""
        answers = [[y for y in (x, x + 1, x - 1) if y in domain] for x in vector]
        if self.change == "all":
            return product(*answers)
        return ((*vector[:i], y, *vector[i + 1 :]) for i in reversed(range(len(vector))) for y in answers[i])

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return pairs of small multiples of the sensitivity; the simplest has zeros and one answer that differs."""
        low, high = (-REACH, REACH) if self.largest is None else (0, self.largest)

        @st.composite
        def pairs(draw: st.DrawFn) -> Pair:
            k = draw(st.integers(self.length if self.shortest is None else self.shortest, self.length))
            base = draw(st.lists(st.integers(low, high), min_size=k, max_size=k))
            step = [0] * k
            if self.change == "all":
                step = draw(st.lists(st.sampled_from((0, 1, -1)), min_size=k, max_size=k))
            step[draw(st.integers(0, k - 1))] = draw(st.sampled_from((1, -1)))
            # A step out of the domain is turned round, which stays inside because the domain has two values or more.
            moved = [x + d if low <= x + d <= high else x - d for x, d in zip(base, step, strict=True)]
            return self._pair(moved, base)

        return pairs()

    def wide(self) -> st.SearchStrategy[Pair]:
        """Return pairs of any counts of the domain; without ``largest``, of large numbers and fractions too.

        The answers of a vector are any, or all the same but for one.
        """
        if self.largest is not None:
            return self.strategy()
        far = st.integers(-(2**40), 2**40).map(lambda x: x / 2**10)
        number = st.one_of(st.integers(-REACH, REACH).map(float), st.integers(-(10**6), 10**6).map(float), far)
        change = st.sampled_from((1.0, -1.0, 0.5, -0.5, 0.125))

        @st.composite
        def pairs(draw: st.DrawFn) -> Pair:
            k = draw(st.integers(self.length if self.shortest is None else self.shortest, self.length))
            base = np.array(
                [draw(number)] * k if draw(st.booleans()) else draw(st.lists(number, min_size=k, max_size=k))
            )
            base[draw(st.integers(0, k - 1))] = draw(number)
            moved = base.copy()
            which = draw(st.integers(0, k - 1)) if self.change == "one" or draw(st.booleans()) else slice(None)
            moved[which] += draw(change)
            pair = Pair(self.sensitivity * moved, self.sensitivity * base)
            try:
                self.check(pair)
            except AdjacencyError:  # rounding made the change too large, or took it away
                st.reject()
            return pair

        return pairs()
