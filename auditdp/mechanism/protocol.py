"""The Mechanism protocol, and adapters for people's own functions; `auditdp.mechanism.calls` makes the calls.

A mechanism is any callable ``mechanism(data, size, *, rng)`` that returns ``size`` *independent* outputs for one input,
stacked along the first axis. Independence is what makes a batch of calls as good as that many single calls: a mechanism
that shares noise between the outputs of one call is a different mechanism (`mechanism/calls/independence.py` looks
for that). It draws all its randomness from ``rng``, and leaves its input as it is; one that draws from elsewhere is
declared with ``unseeded``. NaN in an output means "no number here" (a query that was not answered, the padding of a
short trace) and is an output like any other. A function ``f(data, rng)``, one output a call, may also return text,
None, lists of different lengths, dictionaries, tables and more (`mechanism/calls/leaves.py`), and raise: that is an
output too, unless it always does.

Optional methods make audits stronger; the harness uses those it finds (`auditdp.mechanism.capabilities`):

- ``distribution(data) -> FiniteLaw``, ``StepLaw``, ``LaplaceLaw`` or ``GaussianLaw``: the exact law of the output itself
  (exact evidence, and the best forecaster);
- ``before_processing(data)``, the law of what is computed before post-processing, of any of these families: the output loses
  at most what that law loses, so exact evidence can certify a claim by it and never refute one. ``laplace(data)`` is an
  older name of it;
- ``envelope() -> Envelope``: the least and the most probability of every output over all records of a ``Box`` (exact
  evidence about all pairs of them);
- ``log_prob(outputs, data) -> array (size,)``: log density or probability (the best forecaster);
- ``output_range(data) -> (low, high)``, or None: what every output, a number, lies between (estimation without asymptotics);
- ``score(outputs, pair) -> array (size,)``: one number per output that keeps what tells the pair apart;
- ``possible(outputs, data) -> bool array (size,)``: whether the input can give that very output (evidence of support);
- ``query(data, rng) -> array``, what is computed before the noise, with its internal randomness from ``rng``;
  ``sensitivity``, the number that the noise is calibrated to; and ``norm``, 'l1', 'l2', 'linf' or an order, in which
  that number bounds the change of the query between neighbours (evidence of sensitivity).
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
PLAIN = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    type(None),
    np.generic,
    date,
    time,
    timedelta,
    Decimal,
    Fraction,
)
"""Types of which the representation tells all."""


@runtime_checkable
class Mechanism(Protocol):
    """A randomised map from private data to something released."""

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Return ``size`` independent outputs for ``data``, shape (size, ...)."""


class PerCall:
    """Adapts a function of one output a call to the Mechanism protocol, as a list of whatever it returns.

    Args:
        function: ``function(data, rng)``; or ``function(data)`` where it draws from elsewhere.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = name_of(function)

    def __getattr__(self, attribute: str) -> Any:
        """Offer what else the function offers, such as the ``distribution`` of a callable object."""
        if attribute == "function":  # while a copy is being made
            raise AttributeError(attribute)
        return getattr(self.function, attribute)

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> list[Any]:
        """Call the function ``size`` times."""
        return [self._call(data, rng) for _ in range(size)]

    def _call(self, data: Any, rng: np.random.Generator) -> Any:
        return self.function(data, rng=rng)


OWN_RANDOMNESS = (
    "repeats the test and not its numbers: the mechanism draws its own randomness"
)
"""What a re-run of a mechanism does that is declared with ``unseeded``."""


class Unseeded(PerCall):
    """A mechanism that draws its randomness from elsewhere; see ``unseeded``."""

    seeded = False

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        parameters = _parameters(function) or {}
        self.takes_size = takes_size(function)
        self._takes_rng = "rng" in parameters

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Any:
        """Call the function once for all outputs where it takes a size, else once for each."""
        if not self.takes_size:
            return super().__call__(data, size, rng=rng)
        return self.function(
            data, size=size, **({"rng": rng} if self._takes_rng else {})
        )

    def _call(self, data: Any, rng: np.random.Generator) -> Any:
        return self.function(data, rng=rng) if self._takes_rng else self.function(data)


def unseeded(function: Callable[..., Any]) -> Unseeded:
    """Declare that a mechanism draws its randomness from elsewhere than the generator that an audit gives it.

    Libraries draw from the operating system, or from the global state of numpy or torch. Their calls are independent all the
    same, so the guarantee of a game is what it is for others; but running it again repeats the test and not its numbers.
    Reports say so, and the log keeps the outputs that a finding rests on, so that ``auditdp replay`` can check it again.

    Args:
        function: ``function(data)``, one output a call, or ``function(data, size)``, that many independent outputs.

    Raises:
        MechanismError: If it is not callable.

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
    """Return whether a mechanism draws from the generator that it is given, as all do that do not declare otherwise."""
    return getattr(mechanism, "seeded", True) is not False


def as_mechanism(function: Any) -> Mechanism:
    """Return ``function`` as a Mechanism: itself if it takes a size, else adapted one call at a time.

    Args:
        function: ``f(data, size, *, rng)`` (vectorised) or ``f(data, rng)`` (one output a call).

    Raises:
        MechanismError: If it is not callable or takes neither form of arguments.
    """
    if not callable(function):
        raise MechanismError(
            f"expected a mechanism: a callable f(data, size, *, rng) or f(data, rng), got {brief(function)}"
        )
    if isinstance(function, PerCall):
        return function  # type: ignore[return-value]  # which returns a list, and only `auditdp.mechanism.calls` runs it
    parameters = _parameters(function)
    if parameters is None:
        return function  # type: ignore[no-any-return]  # builtins without a signature must follow the protocol
    names = [
        name
        for name, p in parameters.items()
        if p.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    if "rng" not in names:
        raise MechanismError(
            f"{name_of(function)}: takes {', '.join(names) or 'nothing'}, but needs an argument 'rng' for its "
            "randomness: f(data, size, *, rng) or f(data, rng); where it draws from elsewhere, as libraries do, declare it "
            "with auditdp.unseeded(f)"
        )
    if takes_size(function):
        return function  # type: ignore[no-any-return]
    return PerCall(function)  # type: ignore[return-value]


def takes_size(function: Any) -> bool:
    """Return whether a function is given how many outputs to return, as its second argument or as a keyword that it needs.

    Any other ``size`` is an argument of its own, such as how many rows a synthesizer makes.
    """
    parameters = (_parameters(function) or {}).values()
    if any(
        p.name == "size" and p.kind is p.KEYWORD_ONLY and p.default is p.empty
        for p in parameters
    ):
        return True
    positional = [
        p.name
        for p in parameters
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    return positional[1:2] == ["size"]


def _parameters(function: Any) -> dict[str, inspect.Parameter] | None:
    """Return the parameters of a function by name, or None for a builtin that tells none."""
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return None


def is_vectorised(mechanism: Any) -> bool:
    """Return whether a mechanism returns many outputs of one call of the user's code."""
    return not isinstance(mechanism, PerCall) or (
        isinstance(mechanism, Unseeded) and mechanism.takes_size
    )


def name_of(mechanism: Any) -> str:
    """Return the name that reports call a mechanism by: its ``name``, its function or class name, or its repr.

    A function of which some arguments are given is called by them, too: ``noisy_count(epsilon=1.0)``.

    Never a default repr: that holds a memory address, and a record must not depend on where objects lie.
    """
    name = getattr(mechanism, "name", None)
    if isinstance(name, str):
        return name
    if isinstance(mechanism, PerCall):
        return mechanism.name
    if isinstance(mechanism, functools.partial):
        bound = [brief(value, LONGEST_ARGUMENT) for value in mechanism.args]
        bound += [
            f"{name}={brief(value, LONGEST_ARGUMENT)}"
            for name, value in mechanism.keywords.items()
        ]
        return f"{name_of(mechanism.func)}({', '.join(bound)})"
    if getattr(mechanism, "__name__", None):
        return str(mechanism.__name__)
    text = repr(mechanism)
    return type(mechanism).__name__ if ADDRESS.search(text) else text


def identity_key(data: Any) -> Any:
    """Return a hashable key that two inputs share only if they are certainly the same.

    Arrays are compared by type, shape and content, tables by their columns, containers and dataclasses by their
    items (of dicts in any order), plain values by type and value, and anything else by identity (so the object has to stay
    alive as long as the key is used).
    """
    if isinstance(data, np.ndarray) and not data.dtype.hasobject:
        return (
            "array",
            data.dtype.str if data.dtype.names is None else str(data.dtype),
            data.shape,
            data.tobytes(),
        )
    if isinstance(data, np.ndarray):
        return ("array", str(data.dtype), data.shape, identity_key(data.tolist()))
    if isinstance(data, tuple | list):
        return (type(data).__name__, tuple(identity_key(item) for item in data))
    if isinstance(data, dict):
        return (
            type(data).__name__,
            frozenset(
                (identity_key(name), identity_key(value))
                for name, value in data.items()
            ),
        )
    if isinstance(data, PLAIN):
        return (type(data).__name__, repr(data))
    if isinstance(data, set | frozenset):
        return ("set", frozenset(map(identity_key, data)))
    if dataclasses.is_dataclass(data) and not isinstance(data, type):
        fields = tuple(
            identity_key(getattr(data, field.name))
            for field in dataclasses.fields(data)
        )
        return (type(data).__module__, type(data).__qualname__, fields)
    if is_table(data):
        index = identity_key(data.index.to_numpy()) if hasattr(data, "iloc") else None
        return (
            "table",
            index,
            tuple(
                (str(name), identity_key(data[name].to_numpy()))
                for name in data.columns
            ),
        )
    return ("object", id(data))


def is_table(data: Any) -> bool:
    """Return whether something is a table of pandas or polars, which the harness does not import."""
    return type(data).__name__ == "DataFrame" and hasattr(data, "columns")


def columns_of(table: Any) -> dict[str, list[Any]]:
    """Return the columns of a table."""
    found: dict[str, list[Any]] = (
        table.to_dict("list")
        if hasattr(table, "iloc")
        else table.to_dict(as_series=False)
    )
    return found


def rows_of(table: Any) -> list[dict[str, Any]]:
    """Return the rows of a table."""
    columns = columns_of(table)
    return [
        dict(zip(columns, row, strict=True))
        for row in zip(*columns.values(), strict=True)
    ]


def _is_graph(data: Any) -> bool:
    """Return whether something is the symmetric int8 matrix of a graph without loops."""
    if (
        not isinstance(data, np.ndarray)
        or data.dtype != np.int8
        or data.ndim != 2
        or len(data) < 2
    ):
        return False
    square = data.shape[0] == data.shape[1]
    return square and bool(
        (data == data.T).all()
        and not data.diagonal().any()
        and ((data == 0) | (data == 1)).all()
    )


def _runs(data: list[Any] | tuple[Any, ...]) -> str:
    """Return how many items a sequence has, and the items, those that follow each other and look the same as one."""
    runs = [
        (text, len(list(same))) for text, same in itertools.groupby(map(_item, data))
    ]
    return f"{len(data)} items: {', '.join(f'{count} × {text}' if count > 1 else text for text, count in runs)}"


def _item(value: Any) -> str:
    """Return an item of a sequence; an array or tensor of many entries by its shape."""
    shape = getattr(value, "shape", ())
    if not isinstance(shape, tuple) or math.prod(shape) <= MOST_ENTRIES:
        return repr(value)
    return f"{type(value).__name__.lower().removeprefix('nd')} of shape {tuple(shape)}"


MOST_ENTRIES = 20
"""Entries of an array in a sequence that is rendered in short, which are all listed."""
ADDRESS = re.compile(r"(?: object)? at 0x[0-9a-fA-F]+(?=>)")


def _without_address(data: Any) -> str:
    """Return the repr of an object; where that is its address, its class and its attributes."""
    text = repr(data)
    if (
        not text.startswith("<")
        or not ADDRESS.search(text)
        or not getattr(data, "__dict__", None)
        or callable(data)
    ):
        return text
    return f"{type(data).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(data).items())})"


LONGEST_ARGUMENT = 20
"""Characters of an argument in the name of a function of which some are given."""
LONGEST_GRAPH = 160
"""Characters of a graph whose edges are listed: a report draws it from them. Some 20 nodes with few edges have as many."""


def brief(data: Any, limit: int = 60) -> str:
    """Return a short, one-line rendering of an input: the adjacency matrix of a graph by its edges, such as 01 12.

    Of a graph with too many edges to list it has their number.

    It holds no address of an object, as no record may depend on where objects lie.
    """
    if isinstance(data, np.generic):
        data = data.item()
    if _is_graph(data):
        between = "" if len(data) <= 10 else "-"
        edges = [f"{i}{between}{j}" for i, j in np.argwhere(np.triu(data))]
        listed = (
            f"{len(data)} nodes, {' '.join(['edges', *edges]) if edges else 'no edges'}"
        )
        return (
            listed
            if len(listed) <= LONGEST_GRAPH
            else f"{len(data)} nodes, {len(edges):,} edges"
        )
    if is_table(data):
        text = f"{len(data)} row{'' if len(data) == 1 else 's'} {columns_of(data)}"
    elif isinstance(data, np.ndarray):
        text = np.array2string(data, threshold=20, separator=",")
    else:
        text = _without_address(data)
        if len(text) > limit and isinstance(data, list | tuple):
            text = _runs(data)
    text = " ".join(ADDRESS.sub("", text).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
