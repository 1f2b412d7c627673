"""Searching for the input that shows most, and for the simplest one that still shows it, on top of Hypothesis.

Both searches are deterministic, and print and write nothing (`adjacency/drawing.py`): the same strategy, functions, numbers
and seed give the same answer in any process.

What is scored or tested has to be a function of the value: randomness belongs inside the value, as a seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from auditdp.adjacency import Pair
from auditdp.adjacency.drawing import aim, walk
from auditdp.errors import AuditError
from auditdp.mechanism.protocol import identity_key

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Value = TypeVar("Value")


def maximise(
    strategy: SearchStrategy[Value], score: Callable[[Value], float], *, examples: int, seed: int
) -> list[tuple[float, Value]]:
    """Return the distinct values that a search for a large score came across, best first.

    Half of the examples are generated, then the best is climbed from, choice by choice (``hypothesis.target``).

    An infinite score is the best there is; a value is left out if its score is NaN or minus infinity, or if it raises an
    ``AuditError``.

    Raises:
        AuditError: The first that ``score`` raised, if no value at all could be scored.
    """
    found: dict[Any, tuple[float, Value]] = {}
    refused: list[AuditError] = []

    def visit(value: Value) -> bool:
        try:
            scored = float(score(value))
        except AuditError as error:
            refused.append(error)
            return False
        if scored > -math.inf:
            found.setdefault(key(value), (scored, value))
            aim(scored)
        return False

    walk(strategy, visit, examples=examples, visits=examples, seed=seed)
    if refused and not found:
        raise refused[0]
    return sorted(found.values(), key=lambda entry: -entry[0])


def smallest(
    strategy: SearchStrategy[Value],
    holds: Callable[[Value], bool],
    *,
    examples: int,
    seed: int,
    start: Value | None = None,
    score: Callable[[Value], float] | None = None,
) -> Value | None:
    """Return the simplest value that a search found for which ``holds`` is true, in the strategy's own order.

    A first such value is looked for, then shrunk. Where they are rare, a score that grows on the way to one is climbed;
    with the strategy, score, examples and seed of an earlier ``maximise`` the search takes the same path, so it comes
    across whatever that came across.

    ``holds`` is called at most ``2 * examples`` times: ``examples`` values are tried until one holds, and again as many to
    shrink it. Where none does, ``start`` is returned, which cannot be shrunk itself, since Hypothesis shrinks the choices
    that made a value, and not the value. NaN and minus infinity as a score give no direction.
    """
    best = start

    def visit(value: Value) -> bool:
        nonlocal best
        if score is not None:
            aim(float(score(value)))
        if not holds(value):
            return False
        best = value
        return True

    walk(strategy, visit, examples=examples, visits=2 * examples, seed=seed)
    return best


def key(value: Any) -> Any:
    """Return what two values, pairs of neighbours among them, share only if they are certainly the same."""
    if isinstance(value, Pair):
        return ("pair", identity_key(value.data), identity_key(value.neighbour))
    if isinstance(value, tuple | list):
        return tuple(key(item) for item in value)
    return identity_key(value)
