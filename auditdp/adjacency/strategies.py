"""What is used of Hypothesis to make strategies; it is imported when one is made, since whoever lists pairs needs none."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hypothesis import assume, reject
    from hypothesis.strategies import (
        DrawFn,
        SearchStrategy,
        booleans,
        builds,
        composite,
        fixed_dictionaries,
        floats,
        integers,
        lists,
        nothing,
        one_of,
        sampled_from,
        tuples,
    )

__all__ = [
    "DrawFn",
    "SearchStrategy",
    "assume",
    "booleans",
    "builds",
    "composite",
    "fixed_dictionaries",
    "floats",
    "integers",
    "lists",
    "nothing",
    "one_of",
    "reject",
    "sampled_from",
    "tuples",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import hypothesis

    found = globals()[name] = getattr(hypothesis if name in ("assume", "reject") else hypothesis.strategies, name)
    return found
