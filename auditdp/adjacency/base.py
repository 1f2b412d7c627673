"""What a pair of neighbours is, and what an adjacency answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from auditdp.adjacency import strategies as st
from auditdp.adjacency.pasting import as_python
from auditdp.errors import AdjacencyError
from auditdp.mechanism.calls.inputs import first_difference
from auditdp.mechanism.protocol import brief, identity_key

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
        where = _where(self.data, self.neighbour) if one == other or " of shape (" in one else ""
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
    if all(getattr(each, "shape", ()) and not isinstance(each, np.generic) for each in (one, other)):
        return _in_row(np.asarray(one), np.asarray(other), at)
    if isinstance(one, str) and isinstance(other, str):
        letters = enumerate(zip(one, other, strict=False))
        place = next((k for k, (a, b) in letters if a != b), min(len(one), len(other)))
        at, one, other = f"{at}[{place}:]", one[place:], other[place:]
    return f"{at} is {brief(one, PART)} | {brief(other, PART)}" if at else ""


def _in_row(one: Any, other: Any, at: str) -> str:
    """Say the same of two arrays that differ in a row, or of which one has a row more; else nothing."""
    if one.ndim == 0 or one.shape[1:] != other.shape[1:] or abs(len(one) - len(other)) > 1 or one.dtype == object:
        return ""
    few = min(len(one), len(other))
    differ = (one[:few] != other[:few]).reshape(few, -1).any(axis=1)
    row = int(np.argmax(differ)) if differ.any() else few
    if row == max(len(one), len(other)):
        return ""
    sides = [brief(side[row]) if len(side) >= max(len(one), len(other)) else "absent" for side in (one, other)]
    return f"{at}[{row}] is {' | '.join(sides)}"


class Adjacency(Protocol):
    """A set of neighbouring pairs.

    What it may also have, or leave out, is looked up by ``auditdp.adjacency.offers``:

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
            raise AdjacencyError(f"{type(self).__name__}: expected change, {names}, got change={self.change!r}")
        return self.change or next(iter(self.readings))

    @property
    def searched(self) -> str:
        """The change in a sentence, and how another one is named."""
        others = " or ".join(repr(name) for name in self.readings if name != self.reading)
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
    return list(named.items()) if count > 2 else [(count - 1, "last"), (0, "first")][:count]


def sides(pair: Pair) -> tuple[tuple[str, Any], tuple[str, Any]]:
    """Return both inputs with what messages call them."""
    return ("data", pair.data), ("neighbour", pair.neighbour)
