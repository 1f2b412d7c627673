"""Values at which code breaks: ends of a domain, powers of two and their roots, zeros, and sums just below a power."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from auditdp.adjacency import strategies as st
from auditdp.adjacency.pair_search import first_values
from auditdp.adjacency.strategy_parts import (
    Booleans,
    Built,
    Characters,
    Choice,
    Filtered,
    FixedKeys,
    Floats,
    Integers,
    ListedValues,
    Lists,
    Mapped,
    StrategyPart,
    Texts,
    Tuples,
)
from auditdp.errors import AdjacencyError
from auditdp.mechanism.protocol import identity_key

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

ODD = "0z Aß\u200b\n\0'😀"
"""Characters at which code breaks: a digit, ends of the alphabet, white space, what has no width, ends of texts, quotes."""
FIRST = 4
"""Characters that a text of an alphabet has, beside those: it may have none of them, or nothing but white space."""
LONGEST = 16
"""Elements, or characters, that a long list or text has where the strategy allows as many or more."""
MOST_CROSSED = 8
"""Parts of a value of which each has another end than all others, once."""


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
    near = [c + d for c in LIMITS for d in (-1, 0, 1)] + [
        root + d for root in ROOTS for d in (0, 1)
    ]
    powers = sorted(
        {0, 1, 2, *near, *(-x for x in (1, 2, *near))}, key=lambda x: (abs(x), x < 0)
    )
    special = [] if whole else [x for x in (low, high) if x in (math.inf, -math.inf)]
    special += (
        [] if whole else [0.0, -0.0, *TINY, *(-x for x in TINY), 0.5, 1e300, -1e300]
    )
    found: list[Any] = [
        *ends,
        *special,
        ends[0] + step,
        ends[1] - step,
        middle,
        *powers,
    ]
    found = found if whole else [float(x) for x in found]
    inside = [
        x for x in found if (low is None or low <= x) and (high is None or x <= high)
    ]
    return list({repr(x): x for x in inside}.values())


def values(strategy: st.SearchStrategy[Any]) -> list[Any]:
    """Return values of a strategy at which code breaks, those that tell most first: its two ends lead.

    Of parts that come together: all at one end, each at the other end by itself, the k-th values of all together, and each
    value of one part alone. Of lists and texts: the shortest, the longest of different elements and of equal ones, one
    element. Of a choice, by turns those of each.

    >>> values(st.tuples(st.integers(0, 9), st.booleans()))[:4]
    [(0, False), (9, True), (9, False), (0, True)]
    >>> values(st.lists(st.integers(0, 9), max_size=3))[:5]
    [[], [0, 9, 1], [0, 0, 0], [9, 9, 9], [0]]
    """
    found = list(_telling(_part_of(strategy)))
    if not found:
        first, *others = first_values(strategy, 4) or [None]
        found = [first, *others[::-1]] if others or first_values(strategy, 1) else []
    return _distinct(found)


def _telling(part: StrategyPart) -> Iterator[Any]:
    match part:
        case Tuples(parts=parts):
            yield from _crossed([values(each) for each in parts], tuple)
        case FixedKeys(fields=fields):
            yield from _crossed(
                [values(each) for each in fields.values()],
                lambda row: dict(zip(fields, row, strict=True)),
            )
        case Built(target=target, arguments=arguments, named=named):
            count = len(arguments)
            each = [values(part) for part in (*arguments, *named.values())]
            yield from _crossed(
                each,
                lambda row: target(
                    *row[:count], **dict(zip(named, row[count:], strict=True))
                ),
            )
        case Choice(parts=parts):
            each = [values(part) for part in parts]
            yield from each[0][:1]
            yield from (
                x
                for k in range(1, max(map(len, each)))
                for of in each
                for x in of[k : k + 1]
            )
            yield from (x for of in each[1:] for x in of[:1])
        case Mapped(inner=inner, function=function):
            yield from _made(function, values(inner))
        case Filtered(inner=inner, conditions=conditions):
            yield from (
                x
                for x in values(inner)
                if all(any(_made(condition, [x])) for condition in conditions)
            )
        case Lists():
            yield from _lists(part)
        case _:
            yield from values_of(part)


def _crossed(
    parts: Sequence[list[Any]], made: Callable[[list[Any]], Any]
) -> Iterator[Any]:
    """Yield what is made of a value of each part, which may refuse some."""
    if not all(parts):
        return
    low, high = (
        [part[0] for part in parts],
        [part[min(1, len(part) - 1)] for part in parts],
    )
    places, longest = range(len(parts)), max(map(len, parts), default=0)
    rows = [low, high]
    rows += [
        [*one[:k], other[k], *one[k + 1 :]]
        for k in places[:MOST_CROSSED]
        for one, other in ((low, high), (high, low))
    ]
    rows += [[part[k % len(part)] for part in parts] for k in range(2, longest)]
    rows += [
        [*low[:i], parts[i][k], *low[i + 1 :]]
        for k in range(2, longest)
        for i in places
        if k < len(parts[i])
    ]
    yield from _made(made, rows)


def _made(function: Callable[[Any], Any], of: Iterable[Any]) -> Iterator[Any]:
    """Yield what a user's function makes of some values, without those on which it raises."""
    for value in of:
        with suppress(Exception):
            yield function(value)


def _lists(part: Lists) -> Iterator[list[Any]]:
    """Yield lists: the shortest, the longest of different elements and of equal ones, and one of each single element."""
    long = int(min(part.most, max(part.least, LONGEST)))
    each = values(part.element)
    if part.least == part.most <= MOST_CROSSED and not part.keys:
        yield from _crossed([each] * part.least, list)
        return
    different = _unlike(
        [*each, *(first_values(part.element, long) if len(each) < long else [])],
        part.keys,
    )
    equal = [[x] * long for x in each[:2]] if not part.keys else []
    yield from ([], different[:long]) if not part.least else equal
    if part.least:
        yield from (
            (different[: part.least], different[:long])
            if len(different) >= part.least
            else ()
        )
    else:
        yield from equal
    yield from ([x] for x in each if part.least <= 1 <= long)


def _unlike(elements: Iterable[Any], keys: Sequence[Callable[[Any], Any]]) -> list[Any]:
    """Return the elements of which no two share what a key returns, or what they are."""
    kept: list[Any] = []
    seen: list[set[Any]] = [set() for _ in (identity_key, *keys)]
    for element in elements:
        names = [identity_key(element), *(key(element) for key in keys)]
        if not any(name in known for name, known in zip(names, seen, strict=True)):
            kept.append(element)
            for name, known in zip(names, seen, strict=True):
                known.add(name)
    return kept


def _distinct(found: Iterable[Any]) -> list[Any]:
    return list({identity_key(value): value for value in found}.values())


def values_of(part: StrategyPart) -> list[Any]:
    """Return the values of one leaf at which code breaks, its two ends first; empty where nobody can say."""
    match part:
        case Integers(low=low, high=high):
            return numbers(low, high, whole=True)
        case Floats(low=low, high=high, smallest=smallest, allow_nan=allow_nan):
            normal = [
                x
                for x in numbers(low, high, whole=False)
                if x == 0 or abs(x) >= smallest
            ]
            return [*normal[:2], *[math.nan] * allow_nan, *normal[2:]]
        case Booleans():
            return [False, True]
        case ListedValues(elements=elements):
            return _distinct(
                [
                    elements[0],
                    elements[-1],
                    *at_limits(elements),
                    *elements[:MOST_ELEMENTS],
                ]
            )
        case Characters(allowed=allowed):
            return [odd for odd in ODD if ord(odd) in allowed]
        case Texts(characters=characters, least=least, most=most):
            some, long = (
                [*values(characters), *first_values(characters, FIRST)],
                int(min(most, max(least, LONGEST))),
            )
            letter = next((one for one in some if not one.isspace()), some[0])
            words = [
                ((letter + space) * long)[:long] for space in some if space.isspace()
            ]  # as many as fit
            return [
                letter * least,
                *words[:1],
                letter * long,
                *(one * max(least, 1) for one in some if long),
            ]
    return []


def _part_of(strategy: st.SearchStrategy[Any]) -> StrategyPart:
    from auditdp.adjacency.hypothesis_internals import (
        part_of,
    )  # and Hypothesis, when there is a strategy to look at

    return part_of(strategy)


def at_limits(values: Sequence[Any]) -> list[Any]:
    """Return those of some values that are numbers at which code breaks."""
    listed = [
        x
        for x in values
        if isinstance(x, int | float | np.number) and not isinstance(x, bool)
    ]
    wanted = (
        set(numbers(float(min(listed)), float(max(listed)), whole=True))
        if listed
        else set()
    )
    return [x for x in listed if x in wanted]


def with_extremes(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy that generates any values, values at which code breaks, and the two ends, each as often."""
    match _part_of(strategy):
        case Tuples(parts=parts):
            return st.tuples(*map(with_extremes, parts))
        case FixedKeys(fields=fields):
            return st.fixed_dictionaries(
                {name: with_extremes(part) for name, part in fields.items()}
            )
        case Choice(parts=parts):
            return st.one_of(list(map(with_extremes, parts)))
        case Built(target=target, arguments=arguments, named=named):
            return st.builds(
                target,
                *map(with_extremes, arguments),
                **{k: with_extremes(v) for k, v in named.items()},
            )
        case Mapped(inner=inner, function=function):
            return with_extremes(inner).map(function)
        case Filtered(inner=inner, conditions=conditions):
            kept = with_extremes(inner)
            for condition in conditions:
                kept = kept.filter(condition)
            return kept
        case Lists(element=element, least=least, most=most, keys=keys):
            longest = None if most == math.inf else int(most)
            strategy = st.lists(
                with_extremes(element),
                min_size=least,
                max_size=longest,
                unique_by=tuple(keys) or None,
            )
            return (
                st.one_of(strategy, st.sampled_from(found))
                if (found := values(strategy))
                else strategy
            )
        case part:
            found = values_of(part)
            return (
                st.one_of(strategy, st.sampled_from(found), st.sampled_from(found[:2]))
                if found
                else strategy
            )


def ends(strategy: st.SearchStrategy[Any]) -> tuple[Any, Any]:
    """Return two values of a strategy that are as far apart as its structure says, else two that come first."""
    found = values(strategy)
    if len(found) < 2:
        found += first_values(strategy, 4)[::-1]
    if not found:
        raise AdjacencyError(
            f"expected a strategy that generates something, got {strategy!r}"
        )
    return found[0], found[1]


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
        match part := _part_of(strategy):
            case Integers() | Floats():
                low, high = (f(values_of(part)[:2]) for f in (min, max))
                return cls(low, high, isinstance(part, Integers))
            case ListedValues(elements=elements):
                return cls.listing(elements)
        return None

    @classmethod
    def listing(cls, values: Iterable[Any]) -> Domain | None:
        """Return the numbers that are listed, or None where there are others than numbers."""
        values = list(values)
        if not all(
            isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x)
            for x in values
        ):
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
        return [
            limit for limit in both if count * self.low < limit <= count * self.high
        ]

    def summing(self, total: float, count: int) -> list[float]:
        """Return so many numbers, the largest first, whose sum is as near below a total as the domain allows."""
        made: list[float] = []
        for left in range(count, 0, -1):
            made.append(self.at_most(total - (left - 1) * self.low))
            total -= made[-1]
        return made
