"""Corner cases of strategies: values at which code breaks.

Among numbers these are the ends of a domain, powers of two and their roots, zeros, and
numbers with a sum just below a power of two. ``numbers`` lists them for an interval,
``values`` lists the corner cases of any Hypothesis strategy by the strategy's
structure, and ``with_extremes`` generates them more often. ``Domain`` has the sums.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from auditdp.adjacency import strategies as st
from auditdp.adjacency.adjacency import LIMITS
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

# Integers of 8, 16, 32 and 64 bits end at these powers, with and without a sign, and
# doubles cease to hold all integers at 2^53.
POWERS_OF_TWO = [2**power for power in (7, 8, 15, 16, 31, 32, 53, 63, 64)]
OPEN_END = 2**31
"""Absolute value that stands for a missing or infinite end of a domain.

Twice the other end does if that is beyond.
"""
TINY_NUMBERS = (5e-324, 2.2250738585072014e-308, 2**-149, 2**-53)
"""Smallest double, normal double and single, and half the spacing of doubles at one."""
ODD_CHARACTERS = "0z Aß\u200b\n\0'😀"
"""Characters at which code breaks, such as white space or a character without width."""


def numbers(low: float | None, high: float | None, *, whole: bool) -> list[Any]:
    """Return numbers of an interval at which code breaks, the two ends first.

    A missing or infinite end is replaced as in ``_ends``. But a lower one is replaced
    by 0 if 0 is in the interval.

    Args:
        low: The lower end, or None if there is none.
        high: The upper end, or None if there is none.
        whole: Whether the numbers are integers; they are floats otherwise.

    >>> numbers(0, 300, whole=True)
    [0, 300, 1, 299, 150, 2, 11, 12, 15, 16, 127, 128, 129, 181, 182, 255, 256, 257]
    """
    first, last = _ends(low, high)
    start = first
    if low in (None, -math.inf) and last >= 0:
        # The simplest number stands for an end that does not exist.
        start = 0
    near: list[Any] = [0, 1, 2]
    for limit in POWERS_OF_TWO:
        near += [limit - 1, limit, limit + 1]
    for limit in POWERS_OF_TWO:
        # The largest integer whose square is below the limit, and the next one.
        root = math.isqrt(limit - 1)
        near += [root, root + 1]
    near = sorted({*near, *(-x for x in near)}, key=lambda x: (abs(x), x < 0))
    if whole:
        step: float = 1
        middle = (first + last) // 2
        special = []
    else:
        step = (last - first) / 2**10
        middle = first / 2 + last / 2
        infinite = [x for x in (low, high) if x in (math.inf, -math.inf)]
        tiny = [*TINY_NUMBERS, *(-x for x in TINY_NUMBERS)]
        special = [*infinite, 0.0, -0.0, *tiny, 0.5, 1e300, -1e300]
    candidates = [start, last, *special, start + step, last - step, middle, *near]
    if not whole:
        candidates = [float(x) for x in candidates]
    inside = [
        x
        for x in candidates
        if (low is None or low <= x) and (high is None or x <= high)
    ]
    return list({repr(x): x for x in inside}.values())


def _ends(low: float | None, high: float | None) -> tuple[float, float]:
    """Return both ends of an interval, or stand-ins for missing and infinite ends."""
    first = -math.inf if low is None else low
    last = math.inf if high is None else high
    if first == -math.inf:
        first = min(-OPEN_END, 2 * last)
    if last == math.inf:
        last = max(OPEN_END, 2 * first)
    return first, last


def values(strategy: st.SearchStrategy[Any]) -> list[Any]:
    """Return values of a strategy at which code breaks, its two ends first.

    - Values with several parts: all parts at the same end; one part at the other end
      than all others; the k-th corner cases of all parts together; each corner case of
      one part, with the others at the low end.
    - Lists and texts: the shortest, a long one of different elements, long ones of
      equal elements, and single elements.
    - A choice of strategies: the corner cases of each strategy, interleaved.

    >>> values(st.tuples(st.integers(0, 9), st.booleans()))[:4]
    [(0, False), (9, True), (9, False), (0, True)]
    >>> values(st.lists(st.integers(0, 9), max_size=3))[:5]
    [[], [0, 9, 1], [0, 0, 0], [9, 9, 9], [0]]
    """
    special = list(_structured(_part_of(strategy)))
    if not special:
        # The second value of a strategy without structure is nearly as simple as the
        # first, so the last of some values stands for the other end.
        first = first_values(strategy, 4)
        special = [*first[:1], *first[:0:-1]]
    return _distinct(special)


def _structured(part: StrategyPart) -> Iterable[Any]:
    """Return the corner cases of a strategy by its structure, none if it is unknown."""
    match part:
        case Tuples(parts=parts):
            return _crossed(map(values, parts), tuple)
        case FixedKeys(fields=fields):
            return _crossed(
                map(values, fields.values()),
                lambda row: dict(zip(fields, row, strict=True)),
            )
        case Built(target=target, arguments=arguments, named=named):
            # A class may refuse some combinations of its arguments, which are left out.
            count = len(arguments)
            return _crossed(
                map(values, [*arguments, *named.values()]),
                lambda row: target(
                    *row[:count], **dict(zip(named, row[count:], strict=True))
                ),
            )
        case Choice(parts=parts):
            return _interleaved([values(each) for each in parts])
        case Mapped(inner=inner, function=function):
            return _results(function, values(inner))
        case Filtered(inner=inner, conditions=conditions):
            return [
                value
                for value in values(inner)
                if all(any(_results(condition, [value])) for condition in conditions)
            ]
        case Lists():
            return _lists(part)
        case _:
            return leaf_values(part)


def _interleaved(lists: list[list[Any]]) -> Iterator[Any]:
    """Yield the values of several lists by turns.

    The first value of the first list comes first, and the first values of the other
    lists come last. So the two ends of the first list are in front.
    """
    yield from lists[0][:1]
    for k in range(1, max(map(len, lists))):
        for each in lists:
            yield from each[k : k + 1]
    for each in lists[1:]:
        yield from each[:1]


def _crossed(
    values_of_parts: Iterable[list[Any]], make: Callable[[list[Any]], Any]
) -> Iterator[Any]:
    """Yield corner cases of values with several parts.

    Args:
        values_of_parts: The corner cases of each part, the two ends first.
        make: Makes a value from a list of the values of its parts.
    """
    parts = list(values_of_parts)
    if not all(parts):
        return
    low = [part[0] for part in parts]
    high = [part[:2][-1] for part in parts]
    rows = [low, high]
    # Code often compares one part with the others, so each part is the only low or high
    # one. Then the k-th corner cases of all parts come together, because few values
    # cover all corner cases in this way.
    for place in range(len(parts))[: LIMITS.crossed_parts]:
        rows.append(_with(low, place, high[place]))
        rows.append(_with(high, place, low[place]))
    later = range(2, max(map(len, parts), default=0))
    for k in later:
        rows.append([part[k % len(part)] for part in parts])
    for k in later:
        for place, part in enumerate(parts):
            rows += [_with(low, place, value) for value in part[k : k + 1]]
    yield from _results(make, rows)


def _with(row: list[Any], place: int, value: Any) -> list[Any]:
    return [*row[:place], value, *row[place + 1 :]]


def _results(function: Callable[[Any], Any], arguments: Iterable[Any]) -> Iterator[Any]:
    """Yield the results of a user's function, without arguments for which it raises."""
    for argument in arguments:
        with suppress(Exception):
            yield function(argument)


def _lists(part: Lists) -> Iterator[list[Any]]:
    elements = values(part.element)
    if part.least == part.most <= LIMITS.crossed_parts and not part.keys:
        yield from _crossed([elements] * part.least, list)
        return
    long = int(min(part.most, max(part.least, LIMITS.long_sequence)))
    # Few values of the elements break code; simple elements fill up a long list.
    candidates = list(elements)
    if len(elements) < long:
        candidates += first_values(part.element, long)
    different = _unlike(candidates, part.keys)
    lists = [different[: part.least], different[:long]]
    if len(different) < part.least:
        lists = []
    equal = [] if part.keys else [[element] * long for element in elements[:2]]
    # The first two lists are the ends: the empty list and a long one, or, if the list
    # cannot be empty, two lists of equal elements.
    yield from [*equal, *lists] if part.least else [*lists, *equal]
    if part.least <= 1 <= long:
        yield from ([element] for element in elements)


def _unlike(elements: Iterable[Any], keys: Sequence[Callable[[Any], Any]]) -> list[Any]:
    """Return elements that all differ, also in the results of each key function."""
    chosen: list[Any] = []
    used: set[Any] = set()
    for element in elements:
        names = set(enumerate(key(element) for key in (identity_key, *keys)))
        if not names & used:
            chosen.append(element)
            used |= names
    return chosen


def _distinct(elements: Iterable[Any]) -> list[Any]:
    return list({identity_key(value): value for value in elements}.values())


def leaf_values(part: StrategyPart) -> list[Any]:
    """Return values at which code breaks, for a strategy that has no parts.

    Returns:
        The values, for numbers the two ends first. [] if none is known.
    """
    match part:
        case Integers(low=low, high=high):
            return numbers(low, high, whole=True)
        case Floats(low=low, high=high, smallest=smallest, allow_nan=allow_nan):
            special = numbers(low, high, whole=False)
            special = [x for x in special if x == 0 or abs(x) >= smallest]
            # The two ends stay in front.
            return [*special[:2], *[math.nan] * allow_nan, *special[2:]]
        case Booleans():
            return [False, True]
        case ListedValues(elements=elements):
            first = elements[: LIMITS.listed_values]
            return _distinct([elements[0], elements[-1], *at_limits(elements), *first])
        case Characters(allowed=allowed):
            return [odd for odd in ODD_CHARACTERS if ord(odd) in allowed]
        case Texts(characters=characters, least=least, most=most):
            some = [*values(characters), *first_values(characters, 4)]
            long = int(min(most, max(least, LIMITS.long_sequence)))
            letter = next((x for x in some if not x.isspace()), some[0])
            spaces = [x for x in some if x.isspace()][:1]
            # A text of one-letter words has the largest number of words.
            words = [((letter + space) * long)[:long] for space in spaces]
            single = [x * max(least, 1) for x in some if long]
            return [letter * least, *words, letter * long, *single]
    return []


def _part_of(strategy: st.SearchStrategy[Any]) -> StrategyPart:
    # The module imports Hypothesis, which is slow, so it is imported with a strategy.
    from auditdp.adjacency.hypothesis_internals import part_of

    return part_of(strategy)


def at_limits(values: Sequence[Any]) -> list[Any]:
    """Return the numbers among some values at which code breaks, in their order.

    Bools do not count as numbers.
    """
    listed = [
        x
        for x in values
        if isinstance(x, int | float | np.number) and not isinstance(x, bool)
    ]
    if not listed:
        return []
    special = set(numbers(float(min(listed)), float(max(listed)), whole=True))
    return [x for x in listed if x in special]


def with_extremes(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy of the same values that generates corner cases often.

    A part of a value that has no parts itself is an arbitrary value, a corner case or
    one of its two ends, with about equal probability.
    """
    match _part_of(strategy):
        case Tuples(parts=parts):
            return st.tuples(*map(with_extremes, parts))
        case FixedKeys(fields=fields):
            return st.fixed_dictionaries(_all_with_extremes(fields))
        case Choice(parts=parts):
            return st.one_of(list(map(with_extremes, parts)))
        case Built(target=target, arguments=arguments, named=named):
            return st.builds(
                target, *map(with_extremes, arguments), **_all_with_extremes(named)
            )
        case Mapped(inner=inner, function=function):
            return with_extremes(inner).map(function)
        case Filtered(inner=inner, conditions=conditions):
            filtered = with_extremes(inner)
            for condition in conditions:
                filtered = filtered.filter(condition)
            return filtered
        case Lists(element=element, least=least, most=most, keys=keys):
            strategy = st.lists(
                with_extremes(element),
                min_size=least,
                max_size=None if most == math.inf else int(most),
                unique_by=tuple(keys) or None,
            )
            special_values = values(strategy)
            if special_values:
                return st.one_of(strategy, st.sampled_from(special_values))
            return strategy
        case part:
            special_values = leaf_values(part)
            if not special_values:
                return strategy
            special = st.sampled_from(special_values)
            return st.one_of(strategy, special, st.sampled_from(special_values[:2]))


def _all_with_extremes(fields: Any) -> dict[Any, st.SearchStrategy[Any]]:
    return {name: with_extremes(field) for name, field in fields.items()}


def ends(strategy: st.SearchStrategy[Any]) -> tuple[Any, Any]:
    """Return two values of a strategy, for an interval its ends.

    They are the first two of ``values``, or else of generated values. If the strategy
    has only one value, both are this value.

    Raises:
        AdjacencyError: If the strategy generates nothing.
    """
    special = values(strategy)
    if len(special) < 2:
        special += first_values(strategy, 4)[::-1]
    if not special:
        raise AdjacencyError(
            f"expected a strategy that generates something, got {strategy!r}"
        )
    return special[0], special[1]


@dataclass(frozen=True)
class Domain:
    """Numbers of an interval, or of a list.

    Attributes:
        low: The lowest number.
        high: The highest number.
        whole: Whether the numbers of the interval are its integers.
        listed: The numbers of a list, ascending; empty for an interval.
    """

    low: float
    high: float
    whole: bool = False
    listed: Sequence[float] = ()

    @classmethod
    def of(cls, strategy: st.SearchStrategy[Any]) -> Domain | None:
        """Return the domain of a strategy of numbers, or None for another strategy.

        ``OPEN_END`` has the stand-ins for missing and infinite ends.
        """
        match _part_of(strategy):
            case Integers(low=low, high=high):
                return cls(*_ends(low, high), whole=True)
            case Floats(low=low, high=high):
                first, last = _ends(low, high)
                return cls(float(first), float(last))
            case ListedValues(elements=elements):
                return cls.listing(elements)
        return None

    @classmethod
    def listing(cls, values: Iterable[Any]) -> Domain | None:
        """Return the domain of a list that is not empty.

        Returns:
            The domain, or None if an item is a bool or no finite number.
        """
        listed = tuple(values)
        for value in listed:
            if not isinstance(value, int | float) or isinstance(value, bool):
                return None
            if not math.isfinite(value):
                return None
        return cls(min(listed), max(listed), listed=tuple(sorted(listed)))

    def at_most(self, x: float) -> float:
        """Return the largest number <= x of the domain, or the lowest if none is."""
        if x <= self.low:
            return self.low
        if self.listed:
            return self.listed[bisect_right(self.listed, x) - 1]
        return min(math.floor(x) if self.whole else x, self.high)

    def limits(self, count: int) -> list[int]:
        """Return the limits of integers that a sum of ``count`` numbers can reach.

        The limits are ``POWERS_OF_TWO`` and their negatives.
        """
        both = [*POWERS_OF_TWO, *(-limit for limit in POWERS_OF_TWO)]
        return [x for x in both if count * self.low < x <= count * self.high]

    def summing(self, total: float, count: int) -> list[float]:
        """Return ``count`` numbers, the largest first, with a sum of at most ``total``.

        Each number is the largest one that leaves room for the numbers after it. If
        ``total`` is less than ``count`` times the lowest number, all are the lowest.
        """
        terms: list[float] = []
        # Every number leaves room for the smallest sum of the numbers after it.
        for remaining in reversed(range(count)):
            terms.append(self.at_most(total - remaining * self.low))
            total -= terms[-1]
        return terms
