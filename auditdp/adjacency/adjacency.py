"""A pair of inputs as Python to paste, with what differs marked: where the short text of a pair leaves some of it out.

What a pair of neighbours is, and what an adjacency answers.

What an adjacency can do beside listing its pairs: its optional methods, looked up and checked in one place.

`Adjacency` says what each of them means. One that is missing, or is None, is not offered. One that is offered is refused
here, with its name and what was expected, where it is no such method or returns something else.
"""

from __future__ import annotations

import ast
import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from auditdp.adjacency import strategies as st
from auditdp.errors import AdjacencyError
from auditdp.mechanism.calls.inputs import PLAIN, difference, first_difference
from auditdp.mechanism.protocol import (
    brief,
    columns_of,
    identity_key,
    is_table,
    rows_of,
)

LONGEST = 4_000
"""Characters beyond which a pair is not written out."""
WHOLE = 1 << 20
CALLED = {"float", "set", "frozenset", "np.array", "pd.DataFrame", "pl.DataFrame"}


def as_python(data: Any, neighbour: Any) -> str:
    """Return two assignments, of ``data`` and ``neighbour``, with what differs in a comment.

    Empty where the short text shows all of both, and where an input is too long, or of a type that cannot be written.

    >>> print(as_python([{"age": 40, "city": "Ulm"}] * 2 + [{"age": 7, "city": "Bonn"}], [{"age": 40, "city": "Ulm"}] * 2))
    data = [{'age': 40, 'city': 'Ulm'}] * 2 + [{'age': 7, 'city': 'Bonn'}]
    neighbour = [{'age': 40, 'city': 'Ulm'}] * 2  # without data[2], which is {'age': 7, 'city': 'Bonn'}
    """
    if not any(
        "..." in brief(each) or brief(each) != brief(each, WHOLE)
        for each in (data, neighbour)
    ):
        return ""
    try:
        one, other = _written(data), _written(neighbour)
    except TypeError:
        return ""
    here, there = _marks(_rows(data), _rows(neighbour))
    text = f"data = {one}{here}\nneighbour = {other}{there}"
    return text if len(text) <= LONGEST and is_data(text) else ""


def is_data(text: str) -> bool:
    """Return whether Python makes nothing but data: containers, numbers, texts, and objects of the classes that it names."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError):
        return False
    names = [
        ast.unparse(each.targets[0]) if isinstance(each, ast.Assign) else ""
        for each in body
    ]
    return names == ["data", "neighbour"] and all(_is_data(each.value) for each in body)  # type: ignore[attr-defined]


def _is_data(node: ast.AST) -> bool:
    match node:
        case ast.Constant():
            return True
        case ast.Call(
            func=ast.Name() | ast.Attribute() as called,
            args=arguments,
            keywords=keywords,
        ):
            name = ast.unparse(called)
            return (
                name in CALLED or (name.isidentifier() and name[:1].isupper())
            ) and all(
                map(_is_data, [*arguments, *(keyword.value for keyword in keywords)])
            )
        case (
            ast.List()
            | ast.Tuple()
            | ast.Set()
            | ast.Dict()
            | ast.UnaryOp()
            | ast.BinOp()
        ):
            inner = (each for each in ast.iter_child_nodes(node))
            return all(
                isinstance(each, ast.expr_context | ast.operator | ast.unaryop)
                or _is_data(each)
                for each in inner
            )
    return False


def _written(value: Any) -> str:
    """Return the Python of a value."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    if isinstance(value, PLAIN):
        return repr(value)
    if type(value) in (list, tuple):
        return _sequence(value)
    if type(value) is dict:
        return f"{{{', '.join(f'{_written(key)}: {_written(item)}' for key, item in value.items())}}}"
    if type(value) in (set, frozenset):
        inner = ", ".join(map(_written, sorted(value, key=repr)))
        return (
            f"{{{inner}}}"
            if inner and type(value) is set
            else f"{type(value).__name__}({f'[{inner}]' * bool(inner)})"
        )
    if isinstance(value, np.ndarray):
        return f"np.array({_written(value.tolist())}, dtype={_written(np.lib.format.dtype_to_descr(value.dtype))})"
    if is_table(value):
        return f"{'pd' if hasattr(value, 'iloc') else 'pl'}.DataFrame({_written(columns_of(value))})"
    if dataclasses.is_dataclass(value):
        fields = (
            (field.name, getattr(value, field.name))
            for field in dataclasses.fields(value)
            if field.init
        )
        return f"{type(value).__name__}({', '.join(f'{name}={_written(item)}' for name, item in fields)})"
    raise TypeError(f"no Python of {type(value).__name__}")


def _sequence(value: list[Any] | tuple[Any, ...]) -> str:
    """Return a list or a tuple, what follows itself as often as it does."""
    runs = [
        (text, len(list(same)))
        for text, same in itertools.groupby(map(_written, value))
    ]
    start, end, comma = ("[", "]", "") if type(value) is list else ("(", ")", ",")
    parts: list[str] = []
    for repeated, some in itertools.groupby(runs, key=lambda run: run[1] > 1):
        if repeated:
            parts += [f"{start}{text}{comma}{end} * {count}" for text, count in some]
        else:
            texts = [text for text, _ in some]
            parts.append(
                f"{start}{', '.join(texts)}{comma if len(texts) == 1 else ''}{end}"
            )
    return " + ".join(parts) or start + end


def _rows(value: Any) -> Any:
    if is_table(value):
        return rows_of(value)
    return value.tolist() if isinstance(value, np.ndarray) else value


def _marks(data: Any, neighbour: Any) -> tuple[str, str]:
    """Return the comments of both lines, of which one is empty."""
    if (
        isinstance(data, dict)
        and isinstance(neighbour, dict)
        and data.keys() != neighbour.keys()
    ):
        lacking = [key for key in data if key not in neighbour]
        if lacking:
            return "", f"  # without data[{lacking[0]!r}]"
        return (
            f"  # without neighbour[{next(key for key in neighbour if key not in data)!r}]",
            "",
        )
    if (
        isinstance(data, list | tuple)
        and isinstance(neighbour, list | tuple)
        and len(data) != len(neighbour)
    ):
        longer, shorter = sorted((data, neighbour), key=len, reverse=True)
        pairs = zip(longer, shorter, strict=False)
        place = next(
            (k for k, (a, b) in enumerate(pairs) if identity_key(a) != identity_key(b)),
            len(shorter),
        )
        name = "data" if longer is data else "neighbour"
        mark = f"  # without {name}[{place}], which is {brief(longer[place])}"
        return ("", mark) if longer is data else (mark, "")
    where = difference(data, neighbour)
    return "", f"  # differs in {where}" if where else ""


MAX_EXHAUSTIVE = 20_000
"""Pairs that an adjacency enumerates at most."""
EVERY = 24
"""Places, of answers or rows, each of which changes in a corner case: code may treat any of them by itself."""
PART = 30
"""Characters of the parts in which two inputs differ."""


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring inputs: ``data`` (played when the coin shows 1) and ``neighbour`` (when it shows 0)."""

    data: Any
    neighbour: Any
    name: str = ""

    def __str__(self) -> str:
        one, other = brief(self.data), brief(self.neighbour)
        where = (
            _where(self.data, self.neighbour)
            if one == other or " of shape (" in one
            else ""
        )
        text = f"{one} | {other}{f' ({where})' if where else ''}"
        return f"{self.name}: {text}" if self.name else text

    @property
    def python(self) -> str:
        """Python that makes both inputs, what differs marked; empty where the text of the pair has all of them."""
        return as_python(self.data, self.neighbour)

    def swapped(self) -> Pair:
        """Return the pair in the other order."""
        return Pair(self.neighbour, self.data, self.name)


def _where(data: Any, neighbour: Any) -> str:
    """Return the first item or row in which two inputs differ, and both of it; empty where their own texts show no less."""
    found = first_difference(data, neighbour)
    if found is None:
        return ""
    at, one, other = found
    if all(
        getattr(each, "shape", ()) and not isinstance(each, np.generic)
        for each in (one, other)
    ):
        return _in_row(np.asarray(one), np.asarray(other), at)
    if isinstance(one, str) and isinstance(other, str):
        letters = enumerate(zip(one, other, strict=False))
        place = next((k for k, (a, b) in letters if a != b), min(len(one), len(other)))
        at, one, other = f"{at}[{place}:]", one[place:], other[place:]
    return f"{at} is {brief(one, PART)} | {brief(other, PART)}" if at else ""


def _in_row(one: Any, other: Any, at: str) -> str:
    """Say the same of two arrays that differ in a row, or of which one has a row more; else nothing."""
    if (
        one.ndim == 0
        or one.shape[1:] != other.shape[1:]
        or abs(len(one) - len(other)) > 1
        or one.dtype == object
    ):
        return ""
    few = min(len(one), len(other))
    differ = (one[:few] != other[:few]).reshape(few, -1).any(axis=1)
    row = int(np.argmax(differ)) if differ.any() else few
    if row == max(len(one), len(other)):
        return ""
    sides = [
        brief(side[row]) if len(side) >= max(len(one), len(other)) else "absent"
        for side in (one, other)
    ]
    return f"{at}[{row}] is {' | '.join(sides)}"


class Adjacency(Protocol):
    """A set of neighbouring pairs.

    What it may also have, or leave out, is looked up by ``auditdp.adjacency.adjacency``:

    - ``strategy()``: without it, no pairs are searched for beside those that are listed;
    - ``wide()``, a strategy of pairs that ``strategy()`` seldom or never generates: evidence that rests on a statement about
      all inputs looks there for one that contradicts it;
    - ``corner_cases()``, a list of pairs at which code is known to break: at the ends of the domain, at the limits of
      integers, with the fewest and the most records, with ties. They are not played as listed pairs are, but looked at with
      a few calls each;
    - ``remedy``, what to declare so that its pairs can be enumerated.
    """

    @property
    def name(self) -> str:
        """What reports call it, such as 'edge LDP, 8 nodes'."""

    def check(self, pair: Pair) -> None:
        """Raise ``AdjacencyError`` unless the pair is in the set."""

    def pairs(self) -> list[Pair]:
        """Return the pairs that the game plays, smallest first."""

    def exhaustive(self) -> list[Pair] | None:
        """Return every unordered pair of the set, or None where there are too many."""

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return a Hypothesis strategy that generates pairs of the set."""


@runtime_checkable
class UpToOrder(Protocol):
    """An adjacency that may enumerate one of all pairs that differ in the order of the nodes only."""

    unlabelled: bool
    """Whether it does."""

    def reordered(self, pair: Pair, number: int, rng: np.random.Generator) -> Pair:
        """Return a pair with its nodes in another order; whatever changes is the ``number``-th that can."""


@dataclass(frozen=True)
class GivenPairs:
    """What adjacencies share whose pairs are given, and which make others by the same change.

    Raises:
        AdjacencyError: If the first pair does not differ by the change.
    """

    given: Sequence[Pair]
    change: str | None = None

    @property
    def readings(self) -> Mapping[str, Any]:
        """The changes by which the first pair may be meant to differ, in words, the narrowest first."""
        raise NotImplementedError

    @property
    def reading(self) -> str:
        """The change by which other pairs are made: the narrowest unless another was named."""
        if self.change is not None and self.change not in self.readings:
            names = " or ".join(map(repr, self.readings))
            raise AdjacencyError(
                f"{type(self).__name__}: expected change, {names}, got change={self.change!r}"
            )
        return self.change or next(iter(self.readings))

    @property
    def searched(self) -> str:
        """The change in a sentence, and how another one is named."""
        others = " or ".join(
            repr(name) for name in self.readings if name != self.reading
        )
        another = (
            f"; search= of audit_training, or change= of {type(self).__name__}, may name another: {others}"
            if others
            else ""
        )
        return f"neighbours searched: {self.reading}{another}"

    def check(self, pair: Pair) -> None:
        """Do nothing: pairs that are given are taken at the user's word, and others are made by the same change."""

    def pairs(self) -> list[Pair]:
        """Return the pairs that are given."""
        return list(self.given)

    def exhaustive(self) -> None:
        """Return None: there are too many."""


def different(pairs: Iterable[Pair]) -> list[Pair]:
    """Return the pairs whose two inputs differ, each once, whichever way round."""
    found: dict[Any, Pair] = {}
    for pair in pairs:
        one, other = identity_key(pair.data), identity_key(pair.neighbour)
        if one != other and (other, one) not in found:
            found.setdefault((one, other), pair)
    return list(found.values())


def places(count: int) -> list[tuple[int, str]]:
    """Return the last, first and middle place of so many, with their names.

    >>> places(2)
    [(1, 'last'), (0, 'first')]
    """
    named = {count - 1: "last"} | {0: "first"} | {count // 2: "middle"}
    return (
        list(named.items())
        if count > 2
        else [(count - 1, "last"), (0, "first")][:count]
    )


def sides(pair: Pair) -> tuple[tuple[str, Any], tuple[str, Any]]:
    """Return both inputs with what messages call them."""
    return ("data", pair.data), ("neighbour", pair.neighbour)


REQUIRED = ("name", "check", "pairs", "exhaustive")
"""What every adjacency has."""


@dataclass(frozen=True)
class Offers:
    """What an adjacency offers. What is looked up is kept."""

    adjacency: Adjacency

    @cached_property
    def generated(self) -> st.SearchStrategy[Pair] | None:
        """Any pairs of the set; None where it generates none."""
        return self._strategy("strategy")

    @cached_property
    def wide(self) -> st.SearchStrategy[Pair] | None:
        """Pairs that ``generated`` seldom or never has; None where there are no others."""
        return self._strategy("wide")

    @cached_property
    def corner_cases(self) -> Sequence[Pair] | None:
        """Pairs at which code is known to break; None where the adjacency does not say."""
        found = self._asked("corner_cases")
        if found is not None and not (
            isinstance(found, list | tuple) and all(isinstance(p, Pair) for p in found)
        ):
            raise self._refused("corner_cases() to return a list of Pair", found)
        return found

    @property
    def lists_corner_cases(self) -> bool:
        """Whether the adjacency says which pairs these are; they are not made for that."""
        return self._method("corner_cases") is not None

    @property
    def remedy(self) -> str:
        """What to declare so that all pairs can be enumerated, in words; empty where there is nothing to declare."""
        return str(getattr(self.adjacency, "remedy", None) or "")

    def _strategy(self, name: str) -> st.SearchStrategy[Pair] | None:
        found = self._asked(name)
        if found is not None and not isinstance(found, st.SearchStrategy):
            raise self._refused(
                f"{name}() to return a Hypothesis strategy of Pair", found
            )
        return found

    def _asked(self, name: str) -> Any:
        method = self._method(name)
        return None if method is None else method()

    def _method(self, name: str) -> Any:
        method = getattr(self.adjacency, name, None)
        if method is not None and not callable(method):
            raise self._refused(f"a method {name}()", method)
        return method

    def _refused(self, expected: str, found: Any) -> AdjacencyError:
        return AdjacencyError(
            f"{self.adjacency.name}: expected {expected}, got {brief(found)}; correct or rename it"
        )


def offers(adjacency: Adjacency) -> Offers:
    """Return what an adjacency offers.

    >>> from auditdp.adjacency import NeighbourList
    >>> offers(NeighbourList(nodes=4)).corner_cases is None
    True
    """
    return Offers(adjacency)


def is_adjacency(given: Any) -> bool:
    """Return whether something is an adjacency: it has all that every adjacency has.

    Raises:
        AdjacencyError: If it has a part of that, and so is meant to be one.
    """
    missing = [name for name in REQUIRED if not hasattr(given, name)]
    if (
        missing
        and callable(getattr(given, "check", None))
        and callable(getattr(given, "pairs", None))
    ):
        raise AdjacencyError(
            f"{type(given).__name__}: has check() and pairs(), but no {' and no '.join(missing)}, which every adjacency has "
            "(exhaustive() may return None)"
        )
    return not missing
