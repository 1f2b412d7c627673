"""What a Hypothesis strategy is made of, as far as `hypothesis_internals.part_of` can tell."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from auditdp.adjacency import strategies as st

Strategy: TypeAlias = "st.SearchStrategy[Any]"


@dataclass(frozen=True)
class StrategyPart:
    """A strategy of known structure."""

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
class DrawnBy(StrategyPart):
    """The values that a function draws from other strategies."""

    function: Callable[..., Any]
    arguments: Any


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
