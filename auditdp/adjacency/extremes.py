"""Values at which code breaks: ends of a domain, powers of two and their roots, zeros, and sums just below a power."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from auditdp.adjacency.drawing import first_values
from auditdp.adjacency.hypothesis_internals import (
    Booleans,
    Built,
    Choice,
    Filtered,
    Floats,
    Integers,
    Listed,
    Mapped,
    Part,
    Records,
    Texts,
    Tuples,
    part_of,
)
from auditdp.errors import AdjacencyError
from auditdp.mechanism import identity_key

POWERS = (7, 8, 15, 16, 31, 32, 53, 63, 64)
"""Where integers of 8, 16, 32 and 64 bits end, with and without a sign, and where doubles stop to hold all integers."""
LIMITS = tuple(2**power for power in POWERS)
ROOTS = tuple(math.isqrt(limit - 1) for limit in LIMITS)
"""The largest integers whose squares are below those limits."""
FAR = 2**31
"""What stands for the end of a domain that has none."""
TINY = (5e-324, 2.2250738585072014e-308, 2**-149, 2**-53)
"""The smallest double, the smallest normal one, the smallest of single precision, and half of the spacing at one."""

MOST_ELEMENTS = 8
"""Of listed values, so many are tried although nothing is known of them: code may treat any by itself."""

Leaf = Callable[[Part], st.SearchStrategy[Any]]


def numbers(low: float | None, high: float | None, *, whole: bool) -> list[Any]:
    """Return numbers of an interval at which code breaks, the ends first; integers where they are to be ``whole``.

    >>> numbers(0, 300, whole=True)
    [0, 300, 1, 299, 150, 2, 11, 12, 15, 16, 127, 128, 129, 181, 182, 255, 256, 257]
    """
    least = -FAR if low is None or low == -math.inf else low
    most = FAR if high is None or high == math.inf else high
    ends: list[Any] = [0 if low in (None, -math.inf) and most >= 0 else least, most]
    step = 1 if whole else (most - least) / 2**10
    middle = (least + most) // 2 if whole else least / 2 + most / 2
    near = [c + d for c in LIMITS for d in (-1, 0, 1)] + [root + d for root in ROOTS for d in (0, 1)]
    powers = sorted({0, 1, 2, *near, *(-x for x in (1, 2, *near))}, key=lambda x: (abs(x), x < 0))
    special = [] if whole else [x for x in (low, high) if x in (math.inf, -math.inf)]
    special += [] if whole else [0.0, -0.0, *TINY, *(-x for x in TINY), 0.5, 1e300, -1e300]
    found: list[Any] = [*ends, *special, ends[0] + step, ends[1] - step, middle, *powers]
    found = found if whole else [float(x) for x in found]
    inside = [x for x in found if (low is None or low <= x) and (high is None or x <= high)]
    return list({repr(x): x for x in inside}.values())


def rebuilt(strategy: st.SearchStrategy[Any], leaf: Leaf) -> st.SearchStrategy[Any]:
    """Return a strategy with every leaf of its structure replaced; parts of unknown structure stay as they are."""
    match part_of(strategy):
        case Integers() | Floats() | Listed() | Booleans() | Texts() as found:
            return leaf(found)
        case Tuples(parts=parts):
            return st.tuples(*(rebuilt(part, leaf) for part in parts))
        case Records(fields=fields):
            return st.fixed_dictionaries({name: rebuilt(part, leaf) for name, part in fields.items()})
        case Choice(parts=parts):
            return st.one_of([rebuilt(part, leaf) for part in parts])
        case Built(target=target, arguments=arguments, named=named):
            rebuilt_named = {name: rebuilt(part, leaf) for name, part in named.items()}
            return st.builds(target, *(rebuilt(part, leaf) for part in arguments), **rebuilt_named)
        case Mapped(inner=inner, function=function):
            return rebuilt(inner, leaf).map(function)
        case Filtered(inner=inner, conditions=conditions):
            kept = rebuilt(inner, leaf)
            for condition in conditions:
                kept = kept.filter(condition)
            return kept
    return strategy


def values_of(part: Part) -> list[Any]:
    """Return the values of one leaf at which code breaks, its two ends first; empty where nobody can say."""
    match part:
        case Integers(low=low, high=high):
            return numbers(low, high, whole=True)
        case Floats(low=low, high=high, smallest=smallest, allow_nan=allow_nan):
            normal = [x for x in numbers(low, high, whole=False) if x == 0 or abs(x) >= smallest]
            return [*normal[:2], *[math.nan] * allow_nan, *normal[2:]]
        case Booleans():
            return [False, True]
        case Listed(elements=elements):
            listed = [elements[0], elements[-1], *at_limits(elements), *elements[:MOST_ELEMENTS]]
            return list({identity_key(value): value for value in listed}.values())
        case Texts(characters=characters, least=0):
            return ["", *first_values(characters, 4)]
    return []


def at_limits(values: Sequence[Any]) -> list[Any]:
    """Return those of some values that are numbers at which code breaks."""
    listed = [x for x in values if isinstance(x, int | float | np.number) and not isinstance(x, bool)]
    wanted = set(numbers(float(min(listed)), float(max(listed)), whole=True)) if listed else set()
    return [x for x in listed if x in wanted]


def with_extremes(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy that generates any values, values at which code breaks, and the two ends, each as often."""

    def leaf(part: Part) -> st.SearchStrategy[Any]:
        values = values_of(part)
        if not values:
            return part.strategy
        return st.one_of(part.strategy, st.sampled_from(values), st.sampled_from(values[:2]))

    return rebuilt(strategy, leaf)


def ends(strategy: st.SearchStrategy[Any]) -> tuple[Any, Any]:
    """Return two values of a strategy that are as far apart as its structure says, else the two that come first."""

    def end(k: int) -> list[Any]:
        def leaf(part: Part) -> st.SearchStrategy[Any]:
            values = values_of(part)
            return st.just(values[k]) if values else part.strategy

        return first_values(rebuilt(strategy, leaf), 1)

    low, high = (end(0) or first_values(strategy, 1)), end(1)
    if not low:
        raise AdjacencyError(f"expected a strategy that generates something, got {strategy!r}")
    if not high or identity_key(low[0]) == identity_key(high[0]):
        high = first_values(strategy, 4)[-1:]
    return low[0], high[0]


def leaf_values(strategy: st.SearchStrategy[Any], most: int) -> list[Any]:
    """Return values of a strategy in which the k-th value of every leaf comes together, as long as a leaf has one."""
    longest = 0
    if values := values_of(part_of(strategy)):
        return values[:most]

    def at(k: int) -> Leaf:
        def leaf(part: Part) -> st.SearchStrategy[Any]:
            nonlocal longest
            values = values_of(part)
            longest = max(longest, len(values))
            return st.just(values[k % len(values)]) if values else part.strategy

        return leaf

    found = first_values(rebuilt(strategy, at(0)), 1)
    for k in range(1, min(longest, most)):
        found += first_values(rebuilt(strategy, at(k)), 1)
    return found


@dataclass(frozen=True)
class Domain:
    """Numbers that records may be: all of an interval, or those that are listed, ascending."""

    low: float
    high: float
    whole: bool = False
    listed: Sequence[float] = ()

    @classmethod
    def of(cls, strategy: st.SearchStrategy[Any]) -> Domain | None:
        """Return the numbers that a strategy generates, or None where they are no numbers."""
        match part := part_of(strategy):
            case Integers() | Floats():
                low, high = (f(values_of(part)[:2]) for f in (min, max))
                return cls(low, high, isinstance(part, Integers))
            case Listed(elements=elements):
                return cls.listing(elements)
        return None

    @classmethod
    def listing(cls, values: Iterable[Any]) -> Domain | None:
        """Return the numbers that are listed, or None where there are others than numbers."""
        values = list(values)
        if not all(isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x) for x in values):
            return None
        return cls(min(values), max(values), listed=tuple(sorted(values)))

    def at_most(self, x: float) -> float:
        """Return the largest number of the domain that is not above x, or the lowest one."""
        if x <= self.low:
            return self.low
        if self.listed:
            return self.listed[bisect_right(self.listed, x) - 1]
        return min(math.floor(x) if self.whole else x, self.high)

    def limits(self, count: int) -> list[int]:
        """Return the limits that a sum of so many numbers may cross."""
        both = [*LIMITS, *(-limit for limit in LIMITS)]
        return [limit for limit in both if count * self.low < limit <= count * self.high]

    def summing(self, total: float, count: int) -> list[float]:
        """Return so many numbers, the largest first, whose sum is as near below a total as the domain allows."""
        made: list[float] = []
        for left in range(count, 0, -1):
            made.append(self.at_most(total - (left - 1) * self.low))
            total -= made[-1]
        return made
