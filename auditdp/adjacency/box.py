"""Local DP over vectors of a box: any two of them are neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditdp.adjacency import strategies as st
from auditdp.adjacency.base import Pair, different, places, sides
from auditdp.adjacency.extremes import Domain, numbers
from auditdp.errors import AdjacencyError
from auditdp.mechanism.protocol import brief

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
        if not (np.isfinite(self.low) and np.isfinite(self.high) and self.low < self.high):
            raise AdjacencyError(f"Box: expected finite low < high, got {self.low!r} and {self.high!r}")
        if not isinstance(self.dimension, int | np.integer) or self.dimension < 1:
            raise AdjacencyError(f"Box: expected dimension, an integer >= 1, got {self.dimension!r}")
        if not 1 <= self._least <= self.dimension:
            raise AdjacencyError(f"Box: expected shortest in 1..{self.dimension}, got {self.shortest!r}")

    @property
    def _least(self) -> int:
        return self.dimension if self.shortest is None else self.shortest

    @property
    def name(self) -> str:
        """The adjacency and its domain."""
        interval = f"[{self.low:g}, {self.high:g}]"
        if self.dimension == 1:
            return f"value LDP (any two numbers of {interval})"
        lengths = f"{self.dimension}" if self._least == self.dimension else f"{self._least} to {self.dimension}"
        return f"value LDP (any two vectors of {interval}, {lengths} coordinates)"

    def check(self, pair: Pair) -> None:
        """Raise unless both are vectors of the box, of one length, and differ."""
        a, b = (self._vector(which, x) for which, x in sides(pair))
        if len(a) != len(b):
            raise AdjacencyError(
                f"{self.name}: the vectors have {len(a)} and {len(b)} coordinates, expected equally many"
            )
        if (a == b).all():
            raise AdjacencyError(f"{self.name}: the two vectors are equal: {brief(pair.data)}")

    def _vector(self, which: str, data: Any) -> NDArray[np.float64]:
        array = np.asarray(data)
        if array.ndim != 1 or not self._least <= len(array) <= self.dimension or array.dtype.kind not in "iuf":
            raise AdjacencyError(f"{self.name}: {which} is not such a vector of numbers: {brief(data)}")
        if not ((array >= self.low) & (array <= self.high)).all():
            raise AdjacencyError(f"{self.name}: {which} has coordinates outside the box: {brief(data)}")
        return array.astype(np.float64)

    def pairs(self) -> list[Pair]:
        """Return the corners first, then one coordinate that differs, the middle, and half up against half down."""
        d, h = self.dimension, self.dimension // 2
        low, high, middle = (np.full(d, x) for x in (self.low, self.high, (self.low + self.high) / 2))
        single, split = low.copy(), low.copy()
        single[0] = self.high
        split[:h] = self.high
        patterns = [("highest against lowest", high, low), ("middle against lowest", middle, low)]
        patterns.append(("highest against middle", high, middle))
        if d > 1:
            patterns.append(("one coordinate", single, low))
        if d > 2:
            patterns.append(("half up, half down, against the reverse", split, self.low + self.high - split))
        return [Pair(a, b, name) for name, a, b in patterns]

    def corner_cases(self) -> list[Pair]:
        """Return vectors of boundary numbers against the lowest and the next ones, alone, first, last, and in a sum."""
        values = numbers(self.low, self.high, whole=False)
        inside = [self._at([k] * self.dimension) for k in (INNER, INNER - 1, STEPS - INNER)]
        found = list(permutations(inside, 2))
        for size in dict.fromkeys((self._least, self.dimension)):
            low = np.full(size, float(self.low))
            for before, value in zip([float(self.high), *values], values, strict=False):
                found += [(np.full(size, value), low), (np.full(size, value), np.full(size, before))]
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
                [draw(number)] * k if draw(st.booleans()) else draw(st.lists(number, min_size=k, max_size=k))
            )
            other = base.copy()
            other[draw(st.integers(0, k - 1)) if draw(st.booleans()) else slice(None)] = draw(number)
            st.assume(bool((base != other).any()))
            return Pair(other, base)

        return pairs()

    def _at(self, steps: list[int]) -> NDArray[np.float64]:
        share = np.array(steps) / STEPS
        return np.asarray(self.low * (1 - share) + self.high * share)
