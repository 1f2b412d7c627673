"""All uses of Hypothesis' private modules, each with a documented fallback.

The private modules give the structure of a strategy, draw a value from given choices,
and isolate a search from its process. Hypothesis does not guarantee any of them in its
next version. If the structure of a strategy cannot be read, values are only drawn from
it; if choices cannot be given, bytes are given to ``fuzz_one_input``, which is
documented. No other module of the package imports a private module. Tests cover both
ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import cache, lru_cache, partial
from operator import itemgetter
from pkgutil import resolve_name
from random import Random
from types import SimpleNamespace
from typing import Any

from hypothesis import HealthCheck, Verbosity, given, settings
from hypothesis import strategies as st
from hypothesis.errors import StopTest, UnsatisfiedAssumption

from auditdp.adjacency.adjacency import LIMITS
from auditdp.adjacency.strategy_parts import (
    Booleans,
    Built,
    Characters,
    Choice,
    DrawnBy,
    Filtered,
    FixedKeys,
    Floats,
    Integers,
    ListedValues,
    Lists,
    Mapped,
    Strategy,
    StrategyPart,
    Texts,
    Tuples,
)


def _private(name: str) -> Any:
    """Return a private object by its path, or None if Hypothesis does not have it."""
    with suppress(ImportError, AttributeError):
        return resolve_name(name)
    return None


local_settings = _private("hypothesis._settings:local_settings")
unwrap_strategies = _private("hypothesis.strategies._internal.lazy:unwrap_strategies")
build_context = _private("hypothesis.control:BuildContext")
conjecture_data = _private("hypothesis.internal.conjecture.data:ConjectureData")
providers = _private("hypothesis.internal.conjecture.providers")

_constants: dict[Any, Any] = {}


def part_of(strategy: Strategy) -> StrategyPart:
    """Return the structure of a strategy: a plain ``StrategyPart`` if it is unknown."""
    inner: Any = strategy
    if unwrap_strategies is not None:
        inner = unwrap_strategies(strategy)
    try:
        return _structure(inner)
    except AttributeError:
        # Another version of Hypothesis has other attributes.
        return StrategyPart(inner)


def _structure(inner: Any) -> StrategyPart:
    match type(inner).__name__:
        case "IntegersStrategy":
            return Integers(inner, inner.start, inner.end)
        case "FloatStrategy":
            return Floats(
                inner,
                inner.min_value,
                inner.max_value,
                inner.smallest_nonzero_magnitude,
                inner.allow_nan,
            )
        case "BooleansStrategy":
            return Booleans(inner)
        case "SampledFromStrategy" | "JustStrategy":
            return ListedValues(inner, list(inner.elements))
        case "OneCharStringStrategy":
            return Characters(inner, inner.intervals)
        case "TextStrategy":
            return Texts(inner, inner.element_strategy, inner.min_size, inner.max_size)
        case "ListStrategy":
            return Lists(
                inner, inner.element_strategy, inner.min_size, inner.max_size, ()
            )
        case "UniqueListStrategy" | "UniqueSampledListStrategy":
            element, keys = inner.element_strategy, inner.keys
            if inner.tuple_suffixes is not None:
                # The elements are the items of a dictionary.
                suffixes = inner.tuple_suffixes.element_strategies
                element, keys = st.tuples(element, *suffixes), (itemgetter(0),)
            return Lists(inner, element, inner.min_size, inner.max_size, keys)
        case "TupleStrategy":
            return Tuples(inner, inner.element_strategies)
        case "FixedDictStrategy" if not inner.optional:
            return FixedKeys(inner, inner.mapping)
        case "FixedKeysDictStrategy":
            # Older versions call it so.
            values = inner.mapped_strategy.element_strategies
            return FixedKeys(inner, dict(zip(inner.keys, values, strict=True)))
        case "OneOfStrategy":
            return Choice(inner, inner.original_strategies)
        case "BuildsStrategy":
            return Built(inner, inner.target, inner.args, inner.kwargs)
        case "CompositeStrategy":
            return DrawnBy(inner, inner.definition, (inner.args, inner.kwargs))
        case "FlatMapStrategy":
            return DrawnBy(inner, inner.expand, inner.base)
        case "MappedStrategy":
            return Mapped(inner, inner.mapped_strategy, inner.pack)
        case "FilteredStrategy":
            return Filtered(inner, inner.filtered_strategy, inner.flat_conditions)
    return StrategyPart(inner)


def changed_by(
    strategy: Strategy, random: Random, choices: Sequence[Any], place: int
) -> tuple[Any, tuple[Any, ...]] | None:
    """Return a value with the given choices, except that one of them is drawn anew.

    Args:
        strategy: The strategy of the value.
        random: The randomness of the new choice.
        choices: The choices of an earlier value, from ``drawn_by``.
        place: The index of the choice that is drawn anew.

    Returns:
        The value and its choices. None if the strategy refuses them, or if choices are
        bytes (``knows_choices``) and the value does not use the one at ``place``.
    """
    if knows_choices():
        return _drawn_by_choices(strategy, random, choices, place)
    other = drawn_by(strategy, random, choices[:place])
    if other is None or len(other[1]) <= place:
        return None
    start = other[1][: place + 1]
    return drawn_by(strategy, random, (*start, *choices[place + 1 :]))


def drawn_by(
    strategy: Strategy, random: Random, prefix: Sequence[Any]
) -> tuple[Any, tuple[Any, ...]] | None:
    """Draw a value whose first choices are given.

    Args:
        strategy: The strategy of the value.
        random: The randomness of the other choices.
        prefix: The first choices.

    Returns:
        The value and all its choices, or None if the strategy refuses them.
    """
    if knows_choices():
        return _drawn_by_choices(strategy, random, prefix)
    return _drawn_by_bytes(strategy, random, prefix)


@cache
def knows_choices() -> bool:
    """Return True if choices can be given to this version of Hypothesis.

    If not, the choices of a value are bytes.
    """
    strategy = st.integers(0, 999)
    with suppress(Exception):
        replayed = _drawn_by_choices(strategy, Random(0), (7,))
        return replayed == (7, (7,)) != _drawn_by_choices(strategy, Random(0), (7,), 0)
    return False


_Data: Any = object if conjecture_data is None else conjecture_data


class _ChoicesAlone(_Data):  # type: ignore[misc]
    """Hypothesis' record of one draw, without a record of the nesting of strategies.

    Hypothesis needs the nesting for shrinking only, and it takes half of the time of a
    draw.
    """

    anew: tuple[int, Callable[[], None]] | None = None
    """Index of the choice that is drawn anew, and a function to call after it.

    None if no given choice is drawn anew.
    """

    def draw(
        self, strategy: Strategy, label: Any = None, observe_as: Any = None
    ) -> Any:
        """Draw a value of a strategy."""
        del label, observe_as
        strategy.validate()
        self.start_span(0)
        try:
            return unwrap_strategies(strategy).do_draw(self)
        finally:
            self.stop_span()

    def _pop_choice(self, choice_type: str, constraints: Any, *, forced: Any) -> Any:
        if self.anew is None or self.index != self.anew[0]:
            return super()._pop_choice(choice_type, constraints, forced=forced)
        self.index += 1
        value = getattr(self.provider, f"draw_{choice_type}")(**constraints)
        self.anew[1]()
        return value

    def start_span(self, label: int) -> None:
        """Enter a strategy; a draw that is nested too deep becomes invalid."""
        del label
        self.depth += 1
        if self.depth > LIMITS.nested_strategies:
            self.mark_invalid()

    def stop_span(self, *, discard: bool = False) -> None:
        """Leave a strategy."""
        del discard
        self.depth -= 1


def _drawn_by_choices(
    strategy: Strategy, random: Random, prefix: Sequence[Any], anew: int | None = None
) -> tuple[Any, tuple[Any, ...]] | None:
    own = Random(random.getrandbits(64))
    data = _ChoicesAlone(random=own, prefix=tuple(prefix))
    if anew is not None:
        # The generator is seeded again after the new choice, so that the choices after
        # it do not depend on the randomness that it used.
        data.anew = anew, partial(own.seed, random.getrandbits(64))
    try:
        with (
            undisturbed(settings()),
            build_context(data, is_final=False, wrapped_test=drawn_by),
        ):
            value = data.draw(strategy)
    except (StopTest, UnsatisfiedAssumption):
        return None
    return value, tuple(data.choices)


def _drawn_by_bytes(
    strategy: Strategy, random: Random, prefix: Sequence[Any]
) -> tuple[Any, tuple[Any, ...]] | None:
    """Draw a value as ``drawn_by`` does, where choices are bytes."""
    with undisturbed(_quiet()):
        draw, drawn = _by_bytes(strategy)
        used = draw(bytes(prefix) + random.randbytes(LIMITS.random_bytes))
    if used is None:
        return None
    return (drawn.pop(), tuple(used))


@cache
def _quiet() -> settings:
    return settings(
        database=None,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )


@lru_cache(maxsize=16)
def _by_bytes(strategy: Strategy) -> tuple[Callable[[bytes], bytes | None], list[Any]]:
    """Return ``(draw, drawn)`` for draws from a strategy by bytes.

    ``draw(buffer)`` appends a value to ``drawn`` and returns the bytes that it used, or
    None if the strategy refuses them.
    """
    drawn: list[Any] = []

    def keep(value: Any) -> None:
        drawn.append(value)

    test: Any = _quiet()(given(strategy)(keep))
    return test.hypothesis.fuzz_one_input, drawn


@contextmanager
def undisturbed(quiet: settings) -> Iterator[None]:
    """Isolate draws from the constants of local modules and from a surrounding test.

    Hypothesis prefers constants that occur in the loaded modules of the project, so
    draws would differ between processes. A surrounding test has its own settings and
    health checks; inside, the settings are ``quiet``.
    """
    no_constants = SimpleNamespace(set_for_type=lambda kind: ())
    if len(_constants) > LIMITS.cached_constants:
        _constants.clear()
    replaced = {
        "_get_local_constants": lambda: no_constants,
        "CONSTANTS_CACHE": _constants,
    }
    before = {
        name: getattr(providers, name) for name in replaced if hasattr(providers, name)
    }
    for name in before:
        setattr(providers, name, replaced[name])
    try:
        with nullcontext() if local_settings is None else local_settings(quiet):
            yield
    finally:
        for name, value in before.items():
            setattr(providers, name, value)
