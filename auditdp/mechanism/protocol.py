"""The Mechanism protocol, and adapters for functions of users.

A mechanism is any callable ``mechanism(data, size, *, rng)`` that returns ``size``
*independent* outputs for one input, stacked along the first axis. Independence makes
one call of ``size`` outputs as good as ``size`` single calls. A mechanism that shares
noise between the outputs of one call is a different mechanism, and
`mechanism/calls/independence.py` tests for it. A mechanism draws all its randomness
from ``rng`` and does not change its input. If it draws from elsewhere, it is declared
with ``unseeded``. NaN in an output means "no number here" (an unanswered query, the
padding of a short list) and is an output like any other.

A function ``f(data, rng)`` has one output a call. It may also return text, None, lists
of different lengths, dictionaries, tables and more (`mechanism/calls/leaves.py`). It
may raise: an exception is an output too, unless every call raises.
`auditdp.mechanism.calls` makes the calls.

Optional methods make audits stronger; the harness uses those that a mechanism has
(`auditdp.mechanism.capabilities`). In brackets stands the use of each:

- ``distribution(data) -> FiniteLaw``, ``StepLaw``, ``LaplaceLaw`` or ``GaussianLaw``:
  the exact law of the output itself (exact evidence, and the best forecaster);
- ``before_processing(data)``: the law of the value before post-processing, of any of
  these families. The privacy loss of the output is at most that of this law, so exact
  evidence can certify a claim by it, but never refute one. ``laplace(data)`` is an
  older name of this method;
- ``envelope() -> Envelope``: the smallest and the largest probability of every output
  over all records of a ``Box`` (exact evidence about all pairs of them);
- ``log_prob(outputs, data) -> array (size,)``: log density or probability (the best
  forecaster);
- ``output_range(data) -> (low, high)``, or None: an interval that holds every output, a
  number (estimation without asymptotics);
- ``score(outputs, pair) -> array (size,)``: one number per output that separates the
  two inputs of the pair (a forecaster);
- ``possible(outputs, data) -> bool array (size,)``: whether the input can give that
  very output (evidence of support);
- ``query(data, rng) -> array``: the value before the noise, with its internal
  randomness from ``rng``; ``sensitivity``, the number that the noise is calibrated to;
  and ``norm``, 'l1', 'l2', 'linf' or an order, in which that number bounds the change
  of the query between neighbours (evidence of sensitivity).
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import math
import re
from collections.abc import Callable
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from auditdp.errors import MechanismError

Array = NDArray[Any]
LITERALS = (bool, int, float, complex, str, bytes, type(None), np.generic)
"""Types of plain values whose ``repr`` is a literal of Python or numpy."""
PLAIN = (*LITERALS, date, time, timedelta, Decimal, Fraction)
"""Types of plain values whose ``repr`` determines the value."""


@runtime_checkable
class Mechanism(Protocol):
    """A randomised map from private data to a released output."""

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Return ``size`` independent outputs for ``data``, shape (size, ...)."""


class PerCall:
    """Adapter that makes a mechanism of a function with one output a call.

    A call returns a list of outputs. Attributes of the function, such as
    ``distribution``, are attributes of the adapter.

    Args:
        function: ``function(data, rng)``.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = name_of(function)

    def __getattr__(self, attribute: str) -> Any:
        """Return an attribute of the function, such as its ``distribution``."""
        # While the adapter is copied, it has no attribute ``function`` yet. This method
        # would then call itself without end.
        if attribute == "function":
            raise AttributeError(attribute)
        return getattr(self.function, attribute)

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> list[Any]:
        """Return a list of the outputs of ``size`` calls of the function."""
        return [self._call(data, rng) for _ in range(size)]

    def _call(self, data: Any, rng: np.random.Generator) -> Any:
        return self.function(data, rng=rng)


OWN_RANDOMNESS = (
    "repeats the test and not its numbers: the mechanism draws its own randomness"
)
"""Text of reports about a re-run of a mechanism that is declared with ``unseeded``."""


class Unseeded(PerCall):
    """Adapter of a function that does not draw from the audit's generator.

    ``unseeded`` makes it.
    """

    seeded = False

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self.takes_size = takes_size(function)
        self._takes_rng = "rng" in (_parameters(function) or {})

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Any:
        """Return ``size`` outputs, by one call of the function if it takes a size.

        The function gets ``rng`` only if it has an argument of this name.
        """
        if not self.takes_size:
            return super().__call__(data, size, rng=rng)
        given = {"rng": rng} if self._takes_rng else {}
        return self.function(data, size=size, **given)

    def _call(self, data: Any, rng: np.random.Generator) -> Any:
        return self.function(data, rng=rng) if self._takes_rng else self.function(data)


def unseeded(function: Callable[..., Any]) -> Unseeded:
    """Declare that a mechanism does not draw from the generator that an audit passes.

    Libraries often draw from the operating system, or from the global state of numpy or
    torch. If their calls are independent, the guarantee of a game is the usual one. But
    a re-run repeats the test with other random numbers. Reports state this, and the log
    contains the outputs that a finding rests on, so that ``auditdp replay`` can check
    the finding again.

    Args:
        function: ``function(data)``, with one output a call, or ``function(data,
            size)``, with ``size`` independent outputs.

    Raises:
        MechanismError: If ``function`` is not callable.

    >>> import random
    >>> unseeded(lambda x: x + random.gauss(0, 1)).seeded
    False
    """
    if not callable(function):
        raise MechanismError(
            f"unseeded: expected a function f(data) or f(data, size), got {brief(function)}"
        )
    return Unseeded(function)


def is_seeded(mechanism: Any) -> bool:
    """Return True if a mechanism draws from the generator that the audit passes.

    It does unless it is declared with ``unseeded``.
    """
    return getattr(mechanism, "seeded", True) is not False


def as_mechanism(function: Any) -> Mechanism:
    """Return a function as a mechanism.

    Args:
        function: ``f(data, size, *, rng)`` (vectorised), ``f(data, rng)`` (one output a
            call), or the result of ``unseeded``.

    Returns:
        The function itself if it takes a size, has no signature, or is a ``PerCall``
        already, such as the result of ``unseeded``. Otherwise a ``PerCall`` of it.

    Raises:
        MechanismError: If it is not callable, or is no ``PerCall`` and has a signature
            without an argument ``rng``.
    """
    if not callable(function):
        raise MechanismError(
            f"expected a mechanism: a callable f(data, size, *, rng) or f(data, rng), got {brief(function)}"
        )
    parameters = _parameters(function)
    # A builtin without a signature has to follow the protocol. A ``PerCall`` returns a
    # list where the protocol has an array, and `auditdp.mechanism.calls` expects that.
    if isinstance(function, PerCall) or parameters is None:
        return function  # type: ignore[no-any-return]
    variable = inspect.Parameter.VAR_KEYWORD
    names = [name for name, p in parameters.items() if p.kind is not variable]
    if "rng" not in names:
        raise MechanismError(
            f"{name_of(function)}: takes {', '.join(names) or 'nothing'}, but needs an argument 'rng' for its "
            "randomness: f(data, size, *, rng) or f(data, rng); where it draws from elsewhere, as libraries do, declare it "
            "with auditdp.unseeded(f)"
        )
    return function if takes_size(function) else PerCall(function)  # type: ignore[return-value]


def takes_size(function: Any) -> bool:
    """Return True if a function takes the number of outputs as an argument ``size``.

    ``size`` is then its second positional argument, or a keyword without a default. Any
    other ``size`` has a meaning of its own, such as the number of rows that a
    synthesizer makes.
    """
    parameters = list((_parameters(function) or {}).values())
    # A keyword with a default is an option of the function's own.
    for p in parameters:
        if p.name == "size" and p.kind is p.KEYWORD_ONLY and p.default is p.empty:
            return True
    positional = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    )
    return [p.name for p in parameters if p.kind in positional][1:2] == ["size"]


def _parameters(function: Any) -> dict[str, inspect.Parameter] | None:
    """Return the parameters of a function by name, or None if it has no signature."""
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return None


def is_vectorised(mechanism: Any) -> bool:
    """Return True if one call of the user's code can return many outputs."""
    if isinstance(mechanism, Unseeded):
        return mechanism.takes_size
    return not isinstance(mechanism, PerCall)


def name_of(mechanism: Any) -> str:
    """Return the name of a mechanism in reports.

    It is the mechanism's ``name``, or else its ``__name__``, or else its ``repr``. A
    ``functools.partial`` is named with its arguments: ``noisy_count(epsilon=1.0)``. If
    the ``repr`` contains a memory address, the name of the class is used instead,
    because no record may depend on an address.
    """
    name = getattr(mechanism, "name", None)
    if isinstance(name, str):
        return name
    if isinstance(mechanism, functools.partial):
        # This is the number of characters of an argument.
        longest = 20
        bound = [brief(value, longest) for value in mechanism.args]
        for name, value in mechanism.keywords.items():
            bound.append(f"{name}={brief(value, longest)}")
        return f"{name_of(mechanism.func)}({', '.join(bound)})"
    if getattr(mechanism, "__name__", None):
        return str(mechanism.__name__)
    text = repr(mechanism)
    return type(mechanism).__name__ if ADDRESS.search(text) else text


def identity_key(data: Any) -> Any:
    """Return a hashable key that two inputs share only if they are certainly equal.

    Arrays are compared by type, shape and content, tables by index and columns,
    containers and dataclasses by their items (of dicts in any order), plain values by
    type and value. Any other object is compared by identity, and has to stay alive
    while the key is used.
    """
    kind = type(data).__name__
    # The bytes of an array of objects are addresses.
    if isinstance(data, np.ndarray):
        if data.dtype.hasobject:
            return "array", str(data.dtype), data.shape, identity_key(data.tolist())
        dtype = data.dtype.str if data.dtype.names is None else str(data.dtype)
        return "array", dtype, data.shape, data.tobytes()
    # A list and a tuple are different inputs, and so are a dict and its subclass.
    if isinstance(data, tuple | list):
        return kind, tuple(map(identity_key, data))
    if isinstance(data, dict):
        return kind, frozenset(map(identity_key, data.items()))
    if isinstance(data, PLAIN):
        return kind, repr(data)
    if isinstance(data, set | frozenset):
        return "set", frozenset(map(identity_key, data))
    if dataclasses.is_dataclass(data) and not isinstance(data, type):
        fields = [getattr(data, field.name) for field in dataclasses.fields(data)]
        return type(data).__module__, type(data).__qualname__, identity_key(fields)
    if is_table(data):
        index = data.index.to_numpy() if hasattr(data, "iloc") else None
        columns = [(str(name), data[name].to_numpy()) for name in data.columns]
        return "table", identity_key(index), identity_key(columns)
    return "object", id(data)


def is_table(data: Any) -> bool:
    """Return True for a DataFrame of pandas or polars; neither is imported here."""
    return type(data).__name__ == "DataFrame" and hasattr(data, "columns")


def columns_of(table: Any) -> dict[str, list[Any]]:
    """Return the values of each column of a table, by the names of columns."""
    of_pandas = hasattr(table, "iloc")
    columns = table.to_dict("list") if of_pandas else table.to_dict(as_series=False)
    return dict(columns)


def rows_of(table: Any) -> list[dict[str, Any]]:
    """Return the rows of a table, each as a dict by the names of columns."""
    columns = columns_of(table)
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _is_graph(data: Any) -> bool:
    """Return True if ``data`` is the symmetric int8 matrix of a graph without loops."""
    if not isinstance(data, np.ndarray) or data.dtype != np.int8 or data.ndim != 2:
        return False
    if len(data) < 2 or data.shape[0] != data.shape[1]:
        return False
    symmetric = (data == data.T).all() and not data.diagonal().any()
    return bool(symmetric and ((data == 0) | (data == 1)).all())


def _graph(data: Array, limit: int) -> str:
    """Return the edges of a graph, or their number if the text exceeds ``limit``."""
    between = "" if len(data) <= 10 else "-"
    edges = [f"{i}{between}{j}" for i, j in np.argwhere(np.triu(data))]
    listed = " ".join(["edges", *edges]) if edges else "no edges"
    text = f"{len(data)} nodes, {listed}"
    return text if len(text) <= limit else f"{len(data)} nodes, {len(edges):,} edges"


def _sequence(data: list[Any] | tuple[Any, ...]) -> str:
    """Return a text of the items of a sequence; items of equal texts are counted."""
    runs = []
    for text, same in itertools.groupby(map(_item, data)):
        count = len(list(same))
        runs.append(f"{count} × {text}" if count > 1 else text)
    return f"{len(data)} items: {', '.join(runs)}"


def _item(value: Any) -> str:
    """Return the text of an item; that of an array of over 20 entries is its shape."""
    shape = getattr(value, "shape", ())
    if not isinstance(shape, tuple) or math.prod(shape) <= 20:
        return repr(value)
    return f"{type(value).__name__.lower().removeprefix('nd')} of shape {tuple(shape)}"


ADDRESS = re.compile(r"(?: object)? at 0x[0-9a-fA-F]+(?=>)")


def _without_address(data: Any) -> str:
    """Return the repr of data, or class and attributes if the repr has an address."""
    text = repr(data)
    is_address = text.startswith("<") and ADDRESS.search(text) and not callable(data)
    if not is_address or not getattr(data, "__dict__", None):
        return text
    attributes = [f"{name}={value!r}" for name, value in vars(data).items()]
    return f"{type(data).__name__}({', '.join(attributes)})"


def brief(data: Any, limit: int = 60) -> str:
    """Return a short text of an input, on one line.

    The adjacency matrix of a graph is written as a list of its edges, such as 01 12, or
    as their number if there are too many to list. The text contains no memory address,
    since no record may depend on an address.

    Args:
        data: The input.
        limit: Largest number of characters; 160 for a graph.
    """
    if isinstance(data, np.generic):
        data = data.item()
    if _is_graph(data):
        # A report draws a graph from its edges; some 20 nodes with few edges fit in 160
        # characters.
        return _graph(data, 160)
    if is_table(data):
        text = f"{len(data)} row{'' if len(data) == 1 else 's'} {columns_of(data)}"
    elif isinstance(data, np.ndarray):
        text = np.array2string(data, threshold=20, separator=",")
    else:
        text = _without_address(data)
        if len(text) > limit and isinstance(data, list | tuple):
            text = _sequence(data)
    text = " ".join(ADDRESS.sub("", text).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
