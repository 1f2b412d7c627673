"""Structures of Hypothesis strategies, which ``hypothesis_internals.part_of`` returns.

Each class stands for one kind of strategy. Its fields are the strategy's arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from auditdp.adjacency import strategies as st

Strategy: TypeAlias = "st.SearchStrategy[Any]"


@dataclass(frozen=True)
class StrategyPart:
    """A strategy of unknown structure, and the base class of all structures."""

    strategy: Strategy


@dataclass(frozen=True)
class Integers(StrategyPart):
    """Integers from ``low`` to ``high``; None stands for an end that is missing."""

    low: int | None
    high: int | None


@dataclass(frozen=True)
class Floats(StrategyPart):
    """Floating-point numbers from ``low`` to ``high``, which may be infinite.

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
    """One of the listed ``elements``: the strategies ``sampled_from`` and ``just``."""

    elements: Sequence[Any]


@dataclass(frozen=True)
class Characters(StrategyPart):
    """Text of one character, whose code point is in ``allowed``."""

    allowed: Container[int]


@dataclass(frozen=True)
class Texts(StrategyPart):
    """Text of ``least`` to ``most`` characters; ``most`` may be infinite."""

    characters: Strategy
    least: int
    most: float


@dataclass(frozen=True)
class Lists(StrategyPart):
    """A list of ``least`` to ``most`` elements; ``most`` may be infinite.

    For every function in ``keys``, any two elements have different results.
    """

    element: Strategy
    least: int
    most: float
    keys: Sequence[Callable[[Any], Any]]


@dataclass(frozen=True)
class Tuples(StrategyPart):
    """A tuple with one value of each strategy in ``parts``."""

    parts: Sequence[Strategy]


@dataclass(frozen=True)
class FixedKeys(StrategyPart):
    """A dictionary with the keys of ``fields`` and a value of each key's strategy."""

    fields: Mapping[Any, Strategy]


@dataclass(frozen=True)
class Choice(StrategyPart):
    """A value of one of the strategies in ``parts``: the strategy ``one_of``."""

    parts: Sequence[Strategy]


@dataclass(frozen=True)
class Built(StrategyPart):
    """The result of ``target`` for values of other strategies: ``builds``."""

    target: Callable[..., Any]
    arguments: Sequence[Strategy]
    named: Mapping[str, Strategy]


@dataclass(frozen=True)
class DrawnBy(StrategyPart):
    """A value that a function draws: ``composite`` and ``flatmap``.

    ``arguments`` are the arguments of the function, or the base of ``flatmap``.
    """

    function: Callable[..., Any]
    arguments: Any


@dataclass(frozen=True)
class Mapped(StrategyPart):
    """The result of ``function`` for a value of another strategy: ``map``."""

    inner: Strategy
    function: Callable[[Any], Any]


@dataclass(frozen=True)
class Filtered(StrategyPart):
    """A value of another strategy for which all conditions hold: ``filter``."""

    inner: Strategy
    conditions: Sequence[Callable[[Any], bool]]
