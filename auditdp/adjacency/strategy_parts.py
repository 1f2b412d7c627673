"""Structure of a Hypothesis strategy, as read by ``hypothesis_internals.part_of``."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from auditdp.adjacency import strategies as st

Strategy: TypeAlias = "st.SearchStrategy[Any]"


@dataclass(frozen=True)
class StrategyPart:
    """A strategy. Its structure is unknown unless the part is of a subclass."""

    strategy: Strategy


@dataclass(frozen=True)
class Integers(StrategyPart):
    """Integers between two ends, each of which may be None for no end."""

    low: int | None
    high: int | None


@dataclass(frozen=True)
class Floats(StrategyPart):
    """Floating-point numbers between two ends.

    ``smallest`` is the smallest absolute value of a number other than 0.
    """

    low: float
    high: float
    smallest: float
    allow_nan: bool


@dataclass(frozen=True)
class Booleans(StrategyPart):
    """False and True."""


@dataclass(frozen=True)
class ListedValues(StrategyPart):
    """Values of a list."""

    elements: Sequence[Any]


@dataclass(frozen=True)
class Characters(StrategyPart):
    """A character; ``allowed`` holds the code points of all such characters."""

    allowed: Container[int]


@dataclass(frozen=True)
class Texts(StrategyPart):
    """Text of ``least`` to ``most`` characters."""

    characters: Strategy
    least: int
    most: float


@dataclass(frozen=True)
class Lists(StrategyPart):
    """A list of ``least`` to ``most`` elements.

    No two elements share a result of one of the functions ``keys``.
    """

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
    """The results of a function of several strategies' values."""

    target: Callable[..., Any]
    arguments: Sequence[Strategy]
    named: Mapping[str, Strategy]


@dataclass(frozen=True)
class DrawnBy(StrategyPart):
    """The values that a function draws from other strategies."""

    function: Callable[..., Any]
    arguments: Any


@dataclass(frozen=True)
class Mapped(StrategyPart):
    """The results of a function of another strategy's values."""

    inner: Strategy
    function: Callable[[Any], Any]


@dataclass(frozen=True)
class Filtered(StrategyPart):
    """The values of another strategy for which all conditions hold."""

    inner: Strategy
    conditions: Sequence[Callable[[Any], bool]]
