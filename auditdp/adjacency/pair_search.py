"""Values of a Hypothesis strategy, the same in any process, with nothing printed.

Hypothesis runs without its database, deadlines and health checks, and without the constants that it otherwise collects from
whatever local modules happen to be loaded. Nothing is written either, except that a strategy of text keeps a table of
characters in Hypothesis's folder. It is imported by the functions that need it.

Searching for the input that shows most, and for the simplest one that still shows it, on top of Hypothesis.

Both searches are deterministic, and print and write nothing: the same strategy, functions, numbers and seed give the same
answer in any process.

What is scored or tested has to be a function of the value: randomness belongs inside the value, as a seed.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from auditdp.adjacency import strategies as st
from auditdp.adjacency.adjacency import Pair
from auditdp.errors import AuditError
from auditdp.mechanism.protocol import identity_key

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Value = TypeVar("Value")

DRAWN_FOR_EACH = 10
"""Values that are drawn for each that may be shown: climbing may come across few that the strategy does not refuse."""


class _Stop(BaseException):
    """Ends a search at once; an ``Exception`` would be taken for one more failing example, and shrunk."""


@dataclass(frozen=True, eq=False)
class Drawn(Generic[Value]):
    """A value with the choices that Hypothesis made for it."""

    value: Value
    choices: tuple[Any, ...]


def draws(strategy: st.SearchStrategy[Value], *, seed: int) -> Iterator[Drawn[Value]]:
    """Yield values that are drawn independently of each other, without end unless nearly all are refused.

    What ``find`` generates is mostly simple, and much of it is like what came before: a place in a list is the first one in
    a third of all values.
    """
    from auditdp.adjacency.hypothesis_internals import drawn_by

    random = Random(seed)
    refused = 0
    while refused < DRAWN_FOR_EACH**2:
        drawn = _made(partial(drawn_by, strategy, random, ()))
        refused = refused + 1 if drawn is None else 0
        if drawn is not None:
            yield drawn


def changed(
    strategy: st.SearchStrategy[Value], drawn: Drawn[Value], *, seed: int
) -> Drawn[Value] | None:
    """Return what a strategy makes of the choices of a value of which one, chosen at random, is made anew."""
    from auditdp.adjacency.hypothesis_internals import changed_by

    random = Random(seed)
    if not drawn.choices:
        return None
    return _made(
        partial(
            changed_by,
            strategy,
            random,
            drawn.choices,
            random.randrange(len(drawn.choices)),
        )
    )


def _made(
    draw: Callable[[], tuple[Value, tuple[Any, ...]] | None],
) -> Drawn[Value] | None:
    """Return a value, or None where the strategy refuses it or its code raises."""
    try:
        found = draw()
    except Exception:  # whatever a function raises that a user maps over a strategy
        return None
    return None if found is None else Drawn(*found)


def first_values(strategy: st.SearchStrategy[Value], count: int) -> list[Value]:
    """Return the first distinct values that a strategy generates, at most so many, the simplest first."""
    found: dict[Any, Value] = {}

    def visit(value: Value) -> bool:
        found.setdefault(identity_key(value), value)
        return False

    walk(strategy, visit, examples=2 * count, visits=2 * count, seed=0)
    return list(found.values())[:count]


def aim(score: float) -> None:
    """Tell Hypothesis to seek more of this score; it takes finite ones only."""
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
    """Show ``visit`` generated values until it says True, and shrink that one; stop after so many visits."""
    from hypothesis import HealthCheck, Phase, Verbosity, find, settings
    from hypothesis.errors import Flaky, NoSuchExample, Unsatisfiable

    from auditdp.adjacency.hypothesis_internals import undisturbed

    if examples < 1:
        raise AuditError(f"expected examples >= 1, got examples={examples!r}")
    made = drawn = 0

    @st.composite
    def counted(draw: st.DrawFn) -> Any:
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
        except (
            Exception
        ) as error:  # the caller's own error, which Hypothesis would shrink and explain
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
        pass  # nothing holds, nothing can be generated, or what held once held no longer


def maximise(
    strategy: SearchStrategy[Value],
    score: Callable[[Value], float],
    *,
    examples: int,
    seed: int,
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
