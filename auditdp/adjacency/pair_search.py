"""Searches for a value with a large score, and for the simplest value with a property.

``maximise`` and ``smallest`` are the two searches. ``draws`` and ``changed`` draw
single values. All run on Hypothesis and are deterministic: the same strategy,
functions, numbers and seed give the same result in any process. Hypothesis runs without
its database, deadlines and health checks, and without the constants that it otherwise
collects from the loaded modules of the project. Nothing is printed. Nothing is written
either, except that a strategy of text writes a table of characters to the folder of
Hypothesis. Each function imports Hypothesis when it is called.

A score or property has to be a function of the value. If it needs randomness, the value
has to contain a seed.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Generic, TypeVar

from auditdp.adjacency import strategies as st
from auditdp.adjacency.adjacency import Pair
from auditdp.errors import AuditError
from auditdp.mechanism.protocol import identity_key

Value = TypeVar("Value")

DRAWS_PER_VALUE = 10
"""Largest number of draws for each value that a search may visit.

A strategy may refuse most draws.
"""


class _Stop(BaseException):
    """Signal that ends a search at once.

    It is no ``Exception``, because Hypothesis would take an ``Exception`` for a failing
    example, and shrink it.
    """


@dataclass(frozen=True, eq=False)
class Drawn(Generic[Value]):
    """A value with the choices that Hypothesis made for it."""

    value: Value
    choices: tuple[Any, ...]


def draws(strategy: st.SearchStrategy[Value], *, seed: int) -> Iterator[Drawn[Value]]:
    """Yield independently drawn values, until 100 draws in a row are refused."""
    from auditdp.adjacency.hypothesis_internals import drawn_by

    # Hypothesis' ``find`` is not used here, because its values are mostly simple, and
    # many repeat parts of earlier values: in a third of them, an index of a list is the
    # first index.
    random = Random(seed)
    refused = 0
    while refused < DRAWS_PER_VALUE**2:
        drawn = _drawn(partial(drawn_by, strategy, random, ()))
        refused += 1
        if drawn is not None:
            refused = 0
            yield drawn


def changed(
    strategy: st.SearchStrategy[Value], drawn: Drawn[Value], *, seed: int
) -> Drawn[Value] | None:
    """Return a drawn value after one of its choices, chosen at random, is drawn anew.

    Returns:
        The new value, or None if ``drawn`` has no choices, or if the strategy refuses
        the new choices.
    """
    from auditdp.adjacency.hypothesis_internals import changed_by

    random = Random(seed)
    if not drawn.choices:
        return None
    place = random.randrange(len(drawn.choices))
    return _drawn(partial(changed_by, strategy, random, drawn.choices, place))


def _drawn(
    draw: Callable[[], tuple[Value, tuple[Any, ...]] | None],
) -> Drawn[Value] | None:
    try:
        result = draw()
    except Exception:
        # A function that a user maps over a strategy may raise any exception.
        return None
    if result is None:
        return None
    return Drawn(*result)


def first_values(strategy: st.SearchStrategy[Value], count: int) -> list[Value]:
    """Return at most ``count`` distinct values of a strategy, the simplest first."""
    distinct: dict[Any, Value] = {}

    def visit(value: Value) -> bool:
        distinct.setdefault(identity_key(value), value)
        return False

    walk(strategy, visit, examples=2 * count, visits=2 * count, seed=0)
    return list(distinct.values())[:count]


def aim(score: float) -> None:
    """Direct the running search of Hypothesis to larger scores.

    It can be called once for each value. Minus infinity and NaN have no effect.
    """
    from hypothesis import target

    if score > -math.inf:
        target(min(score, sys.float_info.max))


def walk(
    strategy: st.SearchStrategy[Any],
    visit: Callable[[Any], bool],
    *,
    examples: int,
    visits: int,
    seed: int,
) -> None:
    """Call ``visit`` with generated values until one has a property, then shrink it.

    Args:
        strategy: The strategy of values.
        visit: A function that returns True if a value has the property.
        examples: Largest number of generated values, if none has the property.
        visits: Largest number of calls of ``visit``, with those for shrinking.
        seed: Seed of the search.

    Raises:
        AuditError: If ``examples`` is not positive.
        Exception: The first exception that ``visit`` raises.
    """
    from hypothesis import HealthCheck, Phase, Verbosity, find, settings
    from hypothesis.errors import Flaky, NoSuchExample, Unsatisfiable

    from auditdp.adjacency.hypothesis_internals import undisturbed

    if examples < 1:
        raise AuditError(f"expected examples >= 1, got examples={examples!r}")
    visited = drawn = 0

    @st.composite
    def counted(draw: st.DrawFn) -> Any:
        nonlocal drawn
        # Hypothesis retries refused draws without a limit of its own.
        if drawn == DRAWS_PER_VALUE * visits:
            raise _Stop
        drawn += 1
        return draw(strategy)

    def condition(value: Any) -> bool:
        nonlocal visited
        if visited == visits:
            raise _Stop
        visited += 1
        try:
            return visit(value)
        except Exception as error:
            # Hypothesis would shrink and explain the caller's own error.
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
        with undisturbed(quiet):
            find(counted(), condition, settings=quiet, random=Random(seed))
    except _Stop as stop:
        if stop.__cause__ is not None:
            raise stop.__cause__ from None
    except (NoSuchExample, Unsatisfiable, Flaky):
        # No value has the property, none can be generated, or a value that had the
        # property did not have it again.
        pass


def maximise(
    strategy: st.SearchStrategy[Value],
    score: Callable[[Value], float],
    *,
    examples: int,
    seed: int,
) -> list[tuple[float, Value]]:
    """Search for a value with a large score.

    About half of the examples are generated. The others vary the choices of the best
    value one by one (``hypothesis.target``).

    Returns:
        The score and the value of every distinct visited value, the largest score
        first. A value is left out if its score is NaN or minus infinity, or if
        ``score`` raises an ``AuditError``.

    Raises:
        AuditError: The first error that ``score`` raised, if no value has a score; or
            if ``examples`` is not positive.
    """
    scores: dict[Any, tuple[float, Value]] = {}
    refused: list[AuditError] = []

    def visit(value: Value) -> bool:
        try:
            scored = float(score(value))
        except AuditError as error:
            refused.append(error)
            return False
        if scored > -math.inf:
            scores.setdefault(key(value), (scored, value))
            aim(scored)
        return False

    walk(strategy, visit, examples=examples, visits=examples, seed=seed)
    if refused and not scores:
        raise refused[0]
    return sorted(scores.values(), key=lambda entry: -entry[0])


def smallest(
    strategy: st.SearchStrategy[Value],
    holds: Callable[[Value], bool],
    *,
    examples: int,
    seed: int,
    start: Value | None = None,
    score: Callable[[Value], float] | None = None,
) -> Value | None:
    """Search for the simplest value, in Hypothesis' order, for which ``holds`` is true.

    The search finds any such value first, and then shrinks it.

    Args:
        strategy: The strategy of values.
        holds: The property, a function of the value.
        examples: Largest number of generated values, if none has the property. With
            shrinking, ``holds`` is called at most ``2 * examples`` times.
        seed: Seed of the search.
        start: A value with the property, if one is known.
        score: A function that is larger near values with the property. It directs the
            search if such values are rare. NaN and minus infinity give no direction.
            With the strategy, score, examples and seed of an earlier ``maximise``, the
            search visits the same values.

    Returns:
        The value, or ``start`` if no value has the property. ``start`` itself is not
        shrunk: Hypothesis shrinks the choices that made a value, and not the value.

    Raises:
        AuditError: If ``examples`` is not positive.
        Exception: The first exception that ``holds`` or ``score`` raises.
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
    """Return a key that two values or pairs share only if they are certainly equal."""
    if isinstance(value, Pair):
        return ("pair", identity_key(value.data), identity_key(value.neighbour))
    if isinstance(value, tuple | list):
        return tuple(key(item) for item in value)
    return identity_key(value)
