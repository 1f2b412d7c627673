"""Pairs of neighbouring inputs, and the interface of an adjacency.

``Adjacency`` is the protocol that every adjacency follows; its docstring describes the
optional methods. ``offers`` calls them and checks their results. An optional method
that is missing or None is not offered. If an attribute of that name is not a method, or
the method returns a wrong type, an ``AdjacencyError`` names it.

``Pair.python`` writes a pair as Python source to paste. It complements the short text
of a pair, which leaves parts of long inputs out.
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


@dataclass(frozen=True)
class AdjacencyLimits:
    """Limits of this package on numbers of pairs, on sizes and on lengths of texts."""

    exhaustive_pairs: int = 20_000
    """Largest number of pairs that an adjacency enumerates."""
    unlabelled_nodes: int = 7
    """Largest number of nodes for an enumeration up to the order of the nodes.

    The enumeration tries all orders.
    """
    replaced_ids: int = 4
    """Largest number of ids for which ``Nodes`` enumerates pairs with edges replaced.

    Five ids have over 30,000 pairs.
    """
    removed_ids: int = 5
    """Largest number of ids for which ``Nodes`` enumerates pairs with a node removed.

    Six ids have over 100,000 pairs.
    """
    changed_places: int = 24
    """Largest number of entries or rows that are changed one by one in corner cases."""
    listed_values: int = 8
    """Number of the first values of a ``sampled_from`` list that are corner cases.

    The first and the last value, and values at limits of integers, are corner cases in
    any case.
    """
    crossed_parts: int = 8
    """Largest number of parts of a value that are tried as its only low or high part.

    A list of a fixed length up to this number counts as a value with parts.
    """
    long_sequence: int = 16
    """Length of a long list or text among the corner cases, if it is allowed."""
    distinct_rows: int = 6
    """Largest number of rows in a listed collection of different rows."""
    drawn_rows: int = 12
    """Largest number of drawn rows of an input; a longer input repeats them."""
    row_values: int = 24
    """Largest number of corner cases of a row that ``Rows`` uses."""
    copied_rows: int = 4
    """Largest number of special rows that are tried among copies of another row.

    The two ends are the first of them.
    """
    named_values: int = 12
    """Largest number of values that the name of ``Records`` lists completely.

    It is also the largest number of values to which the corner cases change the first
    and the middle row.
    """
    listed_fields: int = 6
    """Largest number of fields for which ``Fields`` lists a pair.

    It is also the largest number of corner cases of a field that are combined with a
    change of another field.
    """
    field_values: int = 16
    """Largest number of corner cases to which a field alone changes."""
    crossed_fields: int = 100
    """Largest number of pairs in which one field changes beside another special one."""
    searched_corners: int = 40
    """Largest number of corner cases that are taken from a user's strategy of pairs."""
    listed_pairs: int = 16
    """Largest number of pairs that ``AnyValues`` lists."""
    enumerated_values: int = 200
    """Largest number of values of which ``AnyValues`` enumerates all pairs."""
    long_records: int = 3
    """Number of the longest given records that are tried, beside new records."""
    known_records: int = 64
    """Number of the longest given records that are tried, if no others can be made."""
    range_corners: int = 8
    """Largest number of corners of the ranges of given data that are tried."""
    regression_columns: int = 64
    """Largest number of columns with which the last one is regressed on the others."""
    random_bytes: int = 1 << 16
    """Number of random bytes for a draw, if Hypothesis' choices cannot be given."""
    nested_strategies: int = 100
    """Largest depth of strategies nested in each other; it is Hypothesis' own limit."""
    cached_constants: int = 1_024
    """Largest size of the cache of Hypothesis' constants for types and ranges."""
    source: int = 4_000
    """Largest length of the source of a pair, in characters; a longer pair has none."""
    full_text: int = 1 << 20
    """Length above which even the complete text of an input is cut, in characters."""
    changed_part: int = 30
    """Largest length of the text of a part in which inputs differ, in characters."""


LIMITS = AdjacencyLimits()

# The source of a pair may call these names and classes, and consist of these nodes. It
# may be pasted, also if another process wrote it, so it must not run other code.
CONSTRUCTORS = {
    "float",
    "set",
    "frozenset",
    "np.array",
    "pd.DataFrame",
    "pl.DataFrame",
}
LITERALS = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.UnaryOp, ast.BinOp)
LEAVES = (ast.Constant, ast.expr_context, ast.operator, ast.unaryop)


def as_python(data: Any, neighbour: Any) -> str:
    """Return assignments to ``data`` and ``neighbour``, with a comment on the change.

    Returns:
        The source. It is '' if the short texts (``brief``) show both inputs completely,
        if the source is too long, or if an input is of a type that cannot be written.

    >>> people = [{"age": 40, "city": "Ulm"}] * 2
    >>> print(as_python([*people, {"age": 7, "city": "Bonn"}], people))
    data = [{'age': 40, 'city': 'Ulm'}] * 2 + [{'age': 7, 'city': 'Bonn'}]
    neighbour = [{'age': 40, 'city': 'Ulm'}] * 2  # without data[2], which is {'age': 7, 'city': 'Bonn'}
    """
    inputs = data, neighbour
    texts = [brief(each) for each in inputs]
    full_texts = [brief(each, LIMITS.full_text) for each in inputs]
    if texts == full_texts and not any("..." in text for text in texts):
        return ""
    try:
        first, second = map(_source, inputs)
    except TypeError:
        return ""
    comments = _comments(*map(_as_rows, inputs))
    text = f"data = {first}{comments[0]}\nneighbour = {second}{comments[1]}"
    if len(text) <= LIMITS.source and is_data(text):
        return text
    return ""


def is_data(text: str) -> bool:
    """Return True if source code only assigns data to ``data`` and ``neighbour``.

    Data are numbers, texts, containers, arrays, tables, and instances of classes whose
    names begin with a capital letter.
    """
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError):
        return False
    targets = [
        ast.unparse(each.targets[0]) for each in body if isinstance(each, ast.Assign)
    ]
    return (
        targets == ["data", "neighbour"]
        and len(body) == len(targets)
        and all(_is_data(each.value) for each in body)  # type: ignore[attr-defined]
    )


def _is_data(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func)
        is_class = name.isidentifier() and name[:1].isupper()
        values = [*node.args, *(keyword.value for keyword in node.keywords)]
        return (is_class or name in CONSTRUCTORS) and all(map(_is_data, values))
    if isinstance(node, LITERALS):
        return all(map(_is_data, ast.iter_child_nodes(node)))
    return isinstance(node, LEAVES)


def _source(value: Any) -> str:
    """Return a Python expression of a value.

    Raises:
        TypeError: If the type of the value cannot be written.
    """
    kind = type(value).__name__
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    if isinstance(value, PLAIN):
        return repr(value)
    if type(value) in (list, tuple):
        return _sequence_source(value)
    if type(value) is dict:
        items = (f"{_source(key)}: {_source(item)}" for key, item in value.items())
        return f"{{{', '.join(items)}}}"
    if type(value) in (set, frozenset):
        inner = ", ".join(map(_source, sorted(value, key=repr)))
        if not inner:
            return f"{kind}()"
        if kind == "set":
            return f"{{{inner}}}"
        return f"{kind}([{inner}])"
    if isinstance(value, np.ndarray):
        dtype = _source(np.lib.format.dtype_to_descr(value.dtype))
        return f"np.array({_source(value.tolist())}, dtype={dtype})"
    if is_table(value):
        library = "pd" if hasattr(value, "iloc") else "pl"
        return f"{library}.DataFrame({_source(columns_of(value))})"
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value) if field.init]
        arguments = (f"{name}={_source(getattr(value, name))}" for name in names)
        return f"{kind}({', '.join(arguments)})"
    raise TypeError(f"no Python of {kind}")


def _sequence_source(value: list[Any] | tuple[Any, ...]) -> str:
    """Return the source of a list or tuple, with ``* n`` for n equal items in a row."""
    start, end, comma = ("[", "]", "") if type(value) is list else ("(", ")", ",")
    parts: list[str] = []
    single: list[str] = []

    def close() -> None:
        # Consecutive items without repetition share one pair of brackets.
        if single:
            last = comma if len(single) == 1 else ""
            parts.append(f"{start}{', '.join(single)}{last}{end}")
            single.clear()

    # Equal neighbours in a long sequence are common, such as rows that are copies.
    for text, group in itertools.groupby(map(_source, value)):
        count = len(list(group))
        if count == 1:
            single.append(text)
        else:
            close()
            parts.append(f"{start}{text}{comma}{end} * {count}")
    close()
    return " + ".join(parts) or start + end


def _as_rows(value: Any) -> Any:
    if is_table(value):
        return rows_of(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value


def _comments(data: Any, neighbour: Any) -> tuple[str, str]:
    """Return the comments on both assignments; at least one of them is empty.

    The comment names an item that only one input has, beside the input without it, or
    else the first place at which the inputs differ.
    """
    if isinstance(data, dict) and isinstance(neighbour, dict):
        extra = [key for key in data if key not in neighbour]
        missing = [key for key in neighbour if key not in data]
        if extra:
            return "", f"  # without data[{extra[0]!r}]"
        if missing:
            return f"  # without neighbour[{missing[0]!r}]", ""
    if isinstance(data, list | tuple) and isinstance(neighbour, list | tuple):
        shorter, longer = sorted((neighbour, data), key=len)
        if len(shorter) < len(longer):
            # The first item that differs is the additional one.
            place = 0
            while place < len(shorter) and (
                identity_key(shorter[place]) == identity_key(longer[place])
            ):
                place += 1
            name = "data" if longer is data else "neighbour"
            text = f"  # without {name}[{place}], which is {brief(longer[place])}"
            if longer is data:
                return ("", text)
            return (text, "")
    where = difference(data, neighbour)
    return "", f"  # differs in {where}" if where else ""


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring inputs: ``data`` is run on coin 1, ``neighbour`` on coin 0.

    ``name`` is a text for reports, or ''.
    """

    data: Any
    neighbour: Any
    name: str = ""

    def __str__(self) -> str:
        first, second = brief(self.data), brief(self.neighbour)
        text = f"{first} | {second}"
        # Texts that are equal, or give only a shape, do not show the change.
        if first == second or " of shape (" in first:
            where = _changed_part(self.data, self.neighbour)
            text += f" ({where})" if where else ""
        if self.name:
            return f"{self.name}: {text}"
        return text

    @property
    def python(self) -> str:
        """Python source that assigns both inputs to ``data`` and ``neighbour``, or ''.

        It is '' if the text of the pair shows both inputs completely, if the source is
        too long, or if an input is of a type that cannot be written.
        """
        return as_python(self.data, self.neighbour)

    def swapped(self) -> Pair:
        """Return the pair in the other order."""
        return Pair(self.neighbour, self.data, self.name)


def _changed_part(data: Any, neighbour: Any) -> str:
    """Return a text of the first item or row in which two inputs differ.

    Returns:
        The place and both values, or '' if the inputs differ as a whole.
    """
    part = first_difference(data, neighbour)
    if part is None:
        return ""
    where, first, second = part
    if _is_array(first) and _is_array(second):
        return _changed_row(np.asarray(first), np.asarray(second), where)
    if isinstance(first, str) and isinstance(second, str):
        start = 0
        while first[start : start + 1] == second[start : start + 1]:
            start += 1
        where, first, second = f"{where}[{start}:]", first[start:], second[start:]
    cut = LIMITS.changed_part
    if where:
        return f"{where} is {brief(first, cut)} | {brief(second, cut)}"
    return ""


def _is_array(value: Any) -> bool:
    return bool(getattr(value, "shape", ())) and not isinstance(value, np.generic)


def _changed_row(first: Any, second: Any, where: str) -> str:
    """Return a text of the first row that differs between two arrays.

    One array may have one row more than the other.

    Returns:
        The place and both values, or '' if the shapes differ in another way, if no row
        differs, or if the arrays hold objects.
    """
    shorter, longer = sorted((len(first), len(second)))
    if (
        first.shape[1:] != second.shape[1:]
        or longer - shorter > 1
        or first.dtype == object
    ):
        return ""
    # Without a change among the common rows, the additional row is the last one.
    is_changed = (first[:shorter] != second[:shorter]).reshape(shorter, -1).any(axis=1)
    row = int(np.argmax(is_changed)) if is_changed.any() else shorter
    if row == longer:
        return ""
    values = [
        brief(side[row]) if len(side) == longer else "absent"
        for side in (first, second)
    ]
    return f"{where}[{row}] is {' | '.join(values)}"


class Adjacency(Protocol):
    """A set of neighbouring pairs.

    The following methods and the attribute are optional:

    - ``strategy()``. Without it, only the listed pairs are played.
    - ``wide()``, a strategy of pairs that ``strategy()`` seldom or never generates.
      Evidence that rests on a statement about all inputs searches it for a
      counterexample.
    - ``corner_cases()``, a list of pairs at which code often breaks: at the ends of the
      domain, at the limits of integers, with the fewest and the most records, with
      ties. The game does not play them like listed pairs, but tries each with a few
      calls.
    - ``remedy``, a text: the declaration that would allow all pairs to be enumerated.
    """

    @property
    def name(self) -> str:
        """The name in reports, such as 'edge LDP, 8 nodes'."""

    def check(self, pair: Pair) -> None:
        """Raise ``AdjacencyError`` unless the pair is in the set."""

    def pairs(self) -> list[Pair]:
        """Return the pairs that the game plays, at least one."""

    def exhaustive(self) -> list[Pair] | None:
        """Return every unordered pair, or None if the set cannot be enumerated."""

    def strategy(self) -> st.SearchStrategy[Pair]:
        """Return a Hypothesis strategy that generates pairs of the set."""


@runtime_checkable
class UpToOrder(Protocol):
    """An adjacency of graphs that can enumerate pairs up to the order of the nodes."""

    unlabelled: bool
    """True if ``exhaustive`` returns the pairs up to the order of the nodes.

    It then returns one of all pairs that differ only in this order.
    """

    def reordered(self, pair: Pair, number: int, rng: np.random.Generator) -> Pair:
        """Return a pair with its nodes in another random order.

        Args:
            pair: The pair.
            number: Index of the edge in which the graphs of the returned pair differ.
                It counts the edges that may change, modulo their number.
            rng: The randomness of the order.
        """


@dataclass(frozen=True)
class GivenPairs:
    """Base of the adjacencies that make more pairs with the change of a given pair.

    A *reading* is a description of how the first given pair differs, such as 'one
    record replaced'. One pair can have several readings.

    Args:
        given: The pairs to play.
        change: The reading by which other pairs are made, by default the narrowest.

    Raises:
        AdjacencyError: If the first pair does not differ by the change.
    """

    given: Sequence[Pair]
    change: str | None = None

    def __post_init__(self) -> None:
        # A pair that does not differ by the change is refused at once.
        _ = self._change

    @cached_property
    def _change(self) -> Any:
        """The details of the reading by which other pairs are made."""
        return self.readings[self.reading]

    @property
    def readings(self) -> Mapping[str, Any]:
        """The details of each reading of the first pair, the narrowest first."""
        raise NotImplementedError

    @property
    def reading(self) -> str:
        """The reading by which other pairs are made.

        Raises:
            AdjacencyError: If ``change`` is no reading of the first pair.
        """
        if self.change is not None and self.change not in self.readings:
            names = " or ".join(map(repr, self.readings))
            raise AdjacencyError(
                f"{type(self).__name__}: expected change, {names}, "
                f"got change={self.change!r}"
            )
        return self.change or next(iter(self.readings))

    @property
    def searched(self) -> str:
        """Text for reports: the reading, and the other ones that a user may name."""
        text = f"neighbours searched: {self.reading}"
        others = [repr(name) for name in self.readings if name != self.reading]
        if others:
            text += (
                f"; search= of audit_training, or change= of {type(self).__name__}, "
                f"may name another: {' or '.join(others)}"
            )
        return text

    def check(self, pair: Pair) -> None:
        """Do nothing, because the user vouches for the pairs and their change."""

    def pairs(self) -> list[Pair]:
        """Return the pairs that are given."""
        return list(self.given)

    def exhaustive(self) -> None:
        """Return None, because there are too many pairs."""


def different(pairs: Iterable[Pair]) -> list[Pair]:
    """Return the pairs whose inputs differ, without equal or swapped repetitions."""
    # The first of several equal pairs is kept, in its own order.
    distinct: dict[Any, Pair] = {}
    for pair in pairs:
        data, neighbour = identity_key(pair.data), identity_key(pair.neighbour)
        if data != neighbour and (neighbour, data) not in distinct:
            distinct.setdefault((data, neighbour), pair)
    return list(distinct.values())


def places(count: int) -> list[tuple[int, str]]:
    """Return the last, first and middle index of ``count`` items, with their names.

    >>> places(2)
    [(1, 'last'), (0, 'first')]
    """
    return [(count - 1, "last"), (0, "first"), (count // 2, "middle")][:count]


def sides(pair: Pair) -> tuple[tuple[str, Any], tuple[str, Any]]:
    """Return ("data", data) and ("neighbour", neighbour) of a pair, for messages."""
    return ("data", pair.data), ("neighbour", pair.neighbour)


def is_integer(value: Any) -> bool:
    """Return True if a value is an integer of Python or of NumPy, and no bool."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def require_integer(adjacency: Any, name: str, least: int) -> None:
    """Raise ``AdjacencyError`` unless the field ``name`` is an integer >= ``least``."""
    value = getattr(adjacency, name)
    if not is_integer(value) or value < least:
        raise AdjacencyError(
            f"{type(adjacency).__name__}: expected {name}, an integer >= {least}, "
            f"got {value!r}"
        )


def require_change(adjacency: Any, *allowed: str) -> None:
    """Raise ``AdjacencyError`` unless the field ``change`` has an allowed value."""
    if adjacency.change not in allowed:
        raise AdjacencyError(
            f"{type(adjacency).__name__}: expected "
            f"change={' or '.join(map(repr, allowed))}, got {adjacency.change!r}"
        )


@dataclass(frozen=True)
class Offers:
    """The results of the optional methods of an adjacency.

    Each method is called when its result is first read, and its result is stored here.
    ``AdjacencyError`` is raised if a result has a wrong type, or if an attribute with
    the name of a method is no method.
    """

    adjacency: Adjacency

    @cached_property
    def generated(self) -> st.SearchStrategy[Pair] | None:
        """The result of ``strategy()``, or None if the adjacency has no strategy."""
        return self._strategy("strategy")

    @cached_property
    def wide(self) -> st.SearchStrategy[Pair] | None:
        """The result of ``wide()``, or None if the adjacency has no wide strategy."""
        return self._strategy("wide")

    @cached_property
    def corner_cases(self) -> Sequence[Pair] | None:
        """The result of ``corner_cases()``, or None if there is no such method."""
        result = self._result("corner_cases")
        are_pairs = isinstance(result, list | tuple) and all(
            isinstance(pair, Pair) for pair in result
        )
        if result is not None and not are_pairs:
            raise self._refused("corner_cases() to return a list of Pair", result)
        return result  # type: ignore[no-any-return]

    @property
    def lists_corner_cases(self) -> bool:
        """True if the adjacency has a method ``corner_cases``; it is not called."""
        return self._method("corner_cases") is not None

    @property
    def remedy(self) -> str:
        """The declaration that would allow all pairs to be enumerated, or ''."""
        return str(getattr(self.adjacency, "remedy", None) or "")

    def _strategy(self, name: str) -> st.SearchStrategy[Pair] | None:
        result = self._result(name)
        if result is not None and not isinstance(result, st.SearchStrategy):
            expected = f"{name}() to return a Hypothesis strategy of Pair"
            raise self._refused(expected, result)
        return result

    def _result(self, name: str) -> Any:
        method = self._method(name)
        if method is None:
            return None
        return method()

    def _method(self, name: str) -> Any:
        method = getattr(self.adjacency, name, None)
        if method is not None and not callable(method):
            raise self._refused(f"a method {name}()", method)
        return method

    def _refused(self, expected: str, result: Any) -> AdjacencyError:
        return AdjacencyError(
            f"{self.adjacency.name}: expected {expected}, got {brief(result)}; "
            "correct or rename it"
        )


def offers(adjacency: Adjacency) -> Offers:
    """Return the optional methods of an adjacency, and their results.

    >>> from auditdp.adjacency import NeighbourList
    >>> offers(NeighbourList(nodes=4)).corner_cases is None
    True
    """
    return Offers(adjacency)


def is_adjacency(given: Any) -> bool:
    """Return True if an object has ``name``, ``check``, ``pairs`` and ``exhaustive``.

    Raises:
        AdjacencyError: If the object has ``check()`` and ``pairs()``, but no ``name``
            or no ``exhaustive``. It is then meant to be an adjacency.
    """
    required = ("name", "check", "pairs", "exhaustive")
    missing = [name for name in required if not hasattr(given, name)]
    methods = [getattr(given, name, None) for name in ("check", "pairs")]
    if missing and all(map(callable, methods)):
        raise AdjacencyError(
            f"{type(given).__name__}: has check() and pairs(), but no "
            f"{' and no '.join(missing)}, which every adjacency has "
            "(exhaustive() may return None)"
        )
    return not missing
