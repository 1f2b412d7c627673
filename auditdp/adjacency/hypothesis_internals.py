"""All that is used of Hypothesis' private modules: what a strategy is made of, drawing by given choices, and quiet.

Hypothesis promises none of it. No other module imports its private names,
``tests/unit/adjacency/test_hypothesis_internals.py`` tests what is relied on, and pyproject.toml names the versions
that may be installed: a later one is allowed once that test passes.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import hypothesis
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.errors import StopTest, UnsatisfiedAssumption

from auditdp.errors import AuditError

try:
    from hypothesis._settings import local_settings
    from hypothesis.control import BuildContext
    from hypothesis.internal.conjecture import providers
    from hypothesis.internal.conjecture.data import ConjectureData
    from hypothesis.strategies._internal.lazy import unwrap_strategies
except ImportError as error:
    raise ImportError(
        f"Hypothesis {hypothesis.__version__} has no {error.name or error}, which auditdp uses; install a version that "
        "auditdp asks for (`pip check` names it)"
    ) from error

Strategy = st.SearchStrategy[Any]


@dataclass(frozen=True)
class StrategyPart:
    """A strategy of known structure.

    Attributes:
        strategy: The strategy, out of the wrapping that defers it.
    """

    strategy: Strategy


@dataclass(frozen=True)
class Integers(StrategyPart):
    """Integers between two ends; None where there is no end."""

    low: int | None
    high: int | None


@dataclass(frozen=True)
class Floats(StrategyPart):
    """Floating-point numbers between two ends, none nearer to 0 than ``smallest`` but 0 itself."""

    low: float
    high: float
    smallest: float
    allow_nan: bool


@dataclass(frozen=True)
class Booleans(StrategyPart):
    """Two values."""


@dataclass(frozen=True)
class ListedValues(StrategyPart):
    """Values that are listed."""

    elements: Sequence[Any]


@dataclass(frozen=True)
class Characters(StrategyPart):
    """One character; ``allowed`` holds the numbers of those that it may be."""

    allowed: Container[int]


@dataclass(frozen=True)
class Texts(StrategyPart):
    """Text of given characters, ``least`` to ``most`` of them."""

    characters: Strategy
    least: int
    most: float


@dataclass(frozen=True)
class Lists(StrategyPart):
    """A list of given elements, ``least`` to ``most`` of them; no two that share what one of ``keys`` returns."""

    element: Strategy
    least: int
    most: float
    keys: Sequence[Callable[[Any], Any]]


@dataclass(frozen=True)
class Tuples(StrategyPart):
    """A tuple of parts."""

    parts: Sequence[Strategy]


@dataclass(frozen=True)
class FixedKeys(StrategyPart):
    """A dictionary of given keys."""

    fields: Mapping[Any, Strategy]


@dataclass(frozen=True)
class Choice(StrategyPart):
    """One of several strategies."""

    parts: Sequence[Strategy]


@dataclass(frozen=True)
class Built(StrategyPart):
    """What a function makes of parts."""

    target: Callable[..., Any]
    arguments: Sequence[Strategy]
    named: Mapping[str, Strategy]


@dataclass(frozen=True)
class Mapped(StrategyPart):
    """What a function makes of another strategy's values."""

    inner: Strategy
    function: Callable[[Any], Any]


@dataclass(frozen=True)
class Filtered(StrategyPart):
    """Another strategy's values that fulfil conditions."""

    inner: Strategy
    conditions: Sequence[Callable[[Any], bool]]


def part_of(strategy: Strategy) -> StrategyPart:
    """Return what a strategy is made of; a ``StrategyPart`` of no family where that is not known.

    Raises:
        AuditError: If this version of Hypothesis keeps it in another place.
    """
    inner: Any = unwrap_strategies(strategy)  # type: ignore[no-untyped-call]
    try:
        return _read(inner)
    except AttributeError as error:
        raise AuditError(
            f"Hypothesis {hypothesis.__version__} keeps what {type(inner).__name__} is made of where auditdp does not look "
            f"({error}); install a version that auditdp asks for (`pip check` names it)"
        ) from error


def _read(inner: Any) -> StrategyPart:
    match type(inner).__name__:
        case "IntegersStrategy":
            return Integers(inner, inner.start, inner.end)
        case "FloatStrategy":
            return Floats(inner, inner.min_value, inner.max_value, inner.smallest_nonzero_magnitude, inner.allow_nan)
        case "BooleansStrategy":
            return Booleans(inner)
        case "SampledFromStrategy" | "JustStrategy":
            return ListedValues(inner, list(inner.elements))
        case "OneCharStringStrategy":
            return Characters(inner, inner.intervals)
        case "TextStrategy":
            return Texts(inner, inner.element_strategy, inner.min_size, inner.max_size)
        case "ListStrategy":
            return Lists(inner, inner.element_strategy, inner.min_size, inner.max_size, ())
        case "UniqueListStrategy" | "UniqueSampledListStrategy":
            element, keys = inner.element_strategy, inner.keys
            if inner.tuple_suffixes is not None:  # the items of a dictionary
                element, keys = st.tuples(element, *inner.tuple_suffixes.element_strategies), (itemgetter(0),)
            return Lists(inner, element, inner.min_size, inner.max_size, keys)
        case "TupleStrategy":
            return Tuples(inner, inner.element_strategies)
        case "FixedDictStrategy" if not inner.optional:
            return FixedKeys(inner, inner.mapping)
        case "OneOfStrategy":
            return Choice(inner, inner.original_strategies)
        case "BuildsStrategy":
            return Built(inner, inner.target, inner.args, inner.kwargs)
        case "MappedStrategy":
            return Mapped(inner, inner.mapped_strategy, inner.pack)
        case "FilteredStrategy":
            return Filtered(inner, inner.filtered_strategy, inner.flat_conditions)
    return StrategyPart(inner)


def drawn_by(strategy: Strategy, random: Random, prefix: Sequence[Any]) -> tuple[Any, tuple[Any, ...]] | None:
    """Return a value of which the first choices are given, and all its choices; None where the strategy refuses it."""
    data = ConjectureData(random=Random(random.getrandbits(64)), prefix=tuple(prefix))
    try:
        with undisturbed(settings()), BuildContext(data, is_final=False, wrapped_test=drawn_by):
            value = data.draw(strategy)
    except (StopTest, UnsatisfiedAssumption):
        return None
    return value, tuple(data.choices)


@contextmanager
def undisturbed(quiet: settings) -> Iterator[None]:
    """Keep out what belongs to the process: local constants, and the test and its health checks that may be around."""
    nothing = SimpleNamespace(set_for_type=lambda kind: ())
    constants = patch.multiple(providers, create=True, _get_local_constants=lambda: nothing, CONSTANTS_CACHE={})
    with constants, local_settings(quiet):
        yield
