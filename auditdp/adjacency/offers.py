"""What an adjacency can do beside listing its pairs: its optional methods, looked up and checked in one place.

`Adjacency` says what each of them means. One that is missing, or is None, is not offered. One that is offered is refused
here, with its name and what was expected, where it is no such method or returns something else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from auditdp.adjacency import strategies as st
from auditdp.adjacency.base import Adjacency, Pair
from auditdp.errors import AdjacencyError
from auditdp.mechanism.protocol import brief

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
        if found is not None and not (isinstance(found, list | tuple) and all(isinstance(p, Pair) for p in found)):
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
            raise self._refused(f"{name}() to return a Hypothesis strategy of Pair", found)
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
        return AdjacencyError(f"{self.adjacency.name}: expected {expected}, got {brief(found)}; correct or rename it")


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
    if missing and callable(getattr(given, "check", None)) and callable(getattr(given, "pairs", None)):
        raise AdjacencyError(
            f"{type(given).__name__}: has check() and pairs(), but no {' and no '.join(missing)}, which every adjacency has "
            "(exhaustive() may return None)"
        )
    return not missing
