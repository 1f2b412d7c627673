"""Searching for the input that shows most, and for the simplest one that still shows it, on top of Hypothesis.

Both searches are deterministic: the same strategy, functions, numbers and seed give the same answer in any process, and
nothing is printed. To that end Hypothesis runs without its database, deadlines and health checks, and without the
constants that it otherwise collects from whatever local modules happen to be loaded. Nothing is written either, except
that a strategy of text keeps a table of characters in Hypothesis's folder.

What is scored or tested has to be a function of the value: randomness belongs inside the value, as a seed.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from types import SimpleNamespace
from typing import Any, TypeVar
from unittest.mock import patch

from hypothesis import HealthCheck, Phase, Verbosity, find, settings, target
from hypothesis._settings import local_settings
from hypothesis.errors import Flaky, NoSuchExample, Unsatisfiable
from hypothesis.internal.conjecture import providers
from hypothesis.strategies import DrawFn, SearchStrategy, composite

from auditdp.adjacency import Pair
from auditdp.errors import AuditError
from auditdp.mechanism import identity_key

Value = TypeVar("Value")


DRAWN_FOR_EACH = 10
"""Values that a search draws for each that it may show: climbing may come across few that the strategy does not refuse."""


class _Stop(BaseException):
    """Ends a search at once; an ``Exception`` would be taken for one more failing example, and shrunk."""


def maximise(
    strategy: SearchStrategy[Value], score: Callable[[Value], float], *, examples: int, seed: int
) -> list[tuple[float, Value]]:
    """Return the distinct values that a search for a large score came across, best first.

    Half of the examples are generated, then the best is climbed from, choice by choice (``hypothesis.target``).

    Args:
        strategy: What generates the values.
        score: What to make large. An infinite score is the best there is. A value is left out if its score is NaN or
            minus infinity, or if it raises an ``AuditError``.
        examples: Evaluations of the score, at most.
        seed: The seed of the search.

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
            _aim(scored)
        return False

    _search(strategy, visit, examples=examples, visits=examples, seed=seed)
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

    Args:
        strategy: What generates the values; earlier alternatives and smaller numbers are simpler.
        holds: What to keep true; called at most ``2 * examples`` times.
        examples: Values to try until one holds, and again as many to shrink it.
        seed: The seed of the search.
        start: A value that is known to hold, returned if the search finds none of its own. It cannot be shrunk itself,
            since Hypothesis shrinks the choices that made a value, and not the value.
        score: What to make large until a value holds, called first on every value; NaN and minus infinity give no direction.

    Returns:
        The last value that held, or ``start`` if there was none.
    """
    best = start

    def visit(value: Value) -> bool:
        nonlocal best
        if score is not None:
            _aim(float(score(value)))
        if not holds(value):
            return False
        best = value
        return True

    _search(strategy, visit, examples=examples, visits=2 * examples, seed=seed)
    return best


def _aim(score: float) -> None:
    """Tell Hypothesis to seek more of this score; it takes finite ones only."""
    if score > -math.inf:
        target(min(score, sys.float_info.max))


def _search(
    strategy: SearchStrategy[Any], visit: Callable[[Any], bool], *, examples: int, visits: int, seed: int
) -> None:
    """Show ``visit`` generated values until it says True, and shrink that one; stop after so many visits."""
    if examples < 1:
        raise AuditError(f"expected examples >= 1, got examples={examples!r}")
    made = drawn = 0

    @composite
    def counted(draw: DrawFn) -> Any:
        nonlocal drawn
        if drawn == DRAWN_FOR_EACH * visits:
            raise _Stop
        drawn += 1
        return draw(strategy)

    def condition(value: Any) -> bool:
        nonlocal made
        if made == visits:
            raise _Stop
        made += 1
        try:
            return visit(value)
        except Exception as error:  # the caller's own error, which Hypothesis would shrink and explain
            raise _Stop from error

    quiet = settings(
        max_examples=examples,
        phases=(Phase.generate, Phase.target, Phase.shrink),
        database=None,
        deadline=None,
        derandomize=False,
        verbosity=Verbosity.quiet,
        backend="hypothesis",
        suppress_health_check=list(HealthCheck),
    )
    try:
        with _undisturbed(quiet):
            find(counted(), condition, settings=quiet, random=Random(seed))
    except _Stop as stop:
        if stop.__cause__ is not None:
            raise stop.__cause__ from None
    except (NoSuchExample, Unsatisfiable, Flaky):
        pass  # nothing holds, nothing can be generated, or what held once held no longer


@contextmanager
def _undisturbed(quiet: settings) -> Iterator[None]:
    """Keep out what belongs to the process: local constants, and the test and its health checks that may be around."""
    nothing = SimpleNamespace(set_for_type=lambda kind: ())
    constants = patch.multiple(providers, create=True, _get_local_constants=lambda: nothing, CONSTANTS_CACHE={})
    with constants, local_settings(quiet):
        yield


def key(value: Any) -> Any:
    """Return what two values, pairs of neighbours among them, share only if they are certainly the same."""
    if isinstance(value, Pair):
        return ("pair", identity_key(value.data), identity_key(value.neighbour))
    if isinstance(value, tuple | list):
        return tuple(key(item) for item in value)
    return identity_key(value)
