"""All that is used of Hypothesis' private modules, and what is done where a version has them elsewhere.

They say what a strategy is made of, draw by given choices, and keep a search undisturbed. Hypothesis promises none of it, so
none of it is needed. A strategy that cannot be taken apart is only drawn from, and where choices cannot be given, bytes are,
to ``fuzz_one_input``, which is documented. No other module names what is private; both ways are tested.
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
    """Return something private, or None where this version of Hypothesis has it elsewhere."""
    with suppress(ImportError, AttributeError):
        return resolve_name(name)
    return None


local_settings = _private("hypothesis._settings:local_settings")
unwrap_strategies = _private("hypothesis.strategies._internal.lazy:unwrap_strategies")
build_context = _private("hypothesis.control:BuildContext")
conjecture_data = _private("hypothesis.internal.conjecture.data:ConjectureData")
providers = _private("hypothesis.internal.conjecture.providers")

MOST_BYTES = 1 << 16
"""Bytes that a value may be drawn from."""
MOST_NESTED = 100
"""Strategies that are parts of each other, as Hypothesis has it."""

MOST_CONSTANTS = 1_024
"""Kinds of numbers of which it is kept which constants are among them."""
_constants: dict[Any, Any] = {}


def part_of(strategy: Strategy) -> StrategyPart:
    """Return what a strategy is made of; a ``StrategyPart`` of no family where that is not known."""
    inner: Any = strategy if unwrap_strategies is None else unwrap_strategies(strategy)
    try:
        return _read(inner)
    except AttributeError:  # another version keeps it in another place
        return StrategyPart(inner)


def _read(inner: Any) -> StrategyPart:
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
            if inner.tuple_suffixes is not None:  # the items of a dictionary
                element, keys = (
                    st.tuples(element, *inner.tuple_suffixes.element_strategies),
                    (itemgetter(0),),
                )
            return Lists(inner, element, inner.min_size, inner.max_size, keys)
        case "TupleStrategy":
            return Tuples(inner, inner.element_strategies)
        case "FixedDictStrategy" if not inner.optional:
            return FixedKeys(inner, inner.mapping)
        case "FixedKeysDictStrategy":  # the same of older versions
            return FixedKeys(
                inner,
                dict(
                    zip(
                        inner.keys,
                        inner.mapped_strategy.element_strategies,
                        strict=True,
                    )
                ),
            )
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
    """Return a value of which one of the choices is made anew, and those after it are given as well; see ``drawn_by``."""
    if knows_choices():
        return _drawn_by_choices(strategy, random, choices, place)
    other = drawn_by(strategy, random, choices[:place])
    if other is None or len(other[1]) <= place:
        return None
    return drawn_by(strategy, random, (*other[1][: place + 1], *choices[place + 1 :]))


def drawn_by(
    strategy: Strategy, random: Random, prefix: Sequence[Any]
) -> tuple[Any, tuple[Any, ...]] | None:
    """Return a value of which the first choices are given, and all its choices; None where the strategy refuses it."""
    return (_drawn_by_choices if knows_choices() else _drawn_by_bytes)(
        strategy, random, prefix
    )


@cache
def knows_choices() -> bool:
    """Return whether this version of Hypothesis draws by choices as ``_drawn_by_choices`` has it do."""
    with suppress(Exception):
        kept, anew = (
            _drawn_by_choices(st.integers(0, 999), Random(0), (7,), place)
            for place in (None, 0)
        )
        return kept == (7, (7,)) != anew
    return False


_Data: Any = object if conjecture_data is None else conjecture_data


class _ChoicesAlone(_Data):  # type: ignore[misc]
    """Keeps what was chosen, and not which strategy is part of which, as shrinking has it: half of the time of a draw."""

    anew: tuple[int, Callable[[], None]] | None = None
    """The place of a choice that is drawn although it is given, and what is called after that."""

    def draw(
        self, strategy: Strategy, label: Any = None, observe_as: Any = None
    ) -> Any:
        """Return a value of a strategy."""
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
        """Go one strategy further in."""
        del label
        self.depth += 1
        if self.depth > MOST_NESTED:
            self.mark_invalid()

    def stop_span(self, *, discard: bool = False) -> None:
        """Go back."""
        del discard
        self.depth -= 1


def _drawn_by_choices(
    strategy: Strategy, random: Random, prefix: Sequence[Any], anew: int | None = None
) -> tuple[Any, tuple[Any, ...]] | None:
    own = Random(random.getrandbits(64))
    data = _ChoicesAlone(random=own, prefix=tuple(prefix))
    if anew is not None:
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
    """Return the same, of choices that are bytes."""
    with undisturbed(_quiet()):
        draw, drawn = _by_bytes(strategy)
        used = draw(bytes(prefix) + random.randbytes(MOST_BYTES))
    return None if used is None else (drawn.pop(), tuple(used))


@cache
def _quiet() -> settings:
    return settings(
        database=None,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )


@lru_cache(maxsize=16)
def _by_bytes(strategy: Strategy) -> tuple[Callable[[bytes], bytes | None], list[Any]]:
    """Return what draws from a strategy by bytes and returns those that it used, and the list that it adds the value to."""
    drawn: list[Any] = []

    def keep(value: Any) -> None:
        drawn.append(value)

    test: Any = _quiet()(given(strategy)(keep))
    return test.hypothesis.fuzz_one_input, drawn


@contextmanager
def undisturbed(quiet: settings) -> Iterator[None]:
    """Keep out what belongs to the process: local constants, and the test and its health checks that may be around."""
    nothing = SimpleNamespace(set_for_type=lambda kind: ())
    if len(_constants) > MOST_CONSTANTS:
        _constants.clear()
    without = {"_get_local_constants": lambda: nothing, "CONSTANTS_CACHE": _constants}
    before = {
        name: getattr(providers, name) for name in without if hasattr(providers, name)
    }
    for name in before:
        setattr(providers, name, without[name])
    try:
        with nullcontext() if local_settings is None else local_settings(quiet):
            yield
    finally:
        for name, value in before.items():
            setattr(providers, name, value)
